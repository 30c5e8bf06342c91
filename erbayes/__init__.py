"""How good is my entity resolution? Honest estimates from a small labelled sample."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import analysis as analysis
    from . import auxiliary as auxiliary
    from . import bayes as bayes
    from . import datasets as datasets
    from . import design as design
    from . import engine as engine
    from . import labels as labels
    from . import large as large
    from . import metrics
    from . import plots as plots
    from . import report as report
    from . import study as study
    from . import units as units
    from ._internal.errors import Alarm, DataError, NotIdentified
    from ._internal.policies import Differing, Missing, SingleUnit
    from .analysis.comparison import Comparison, compare
    from .analysis.domains import by_domain
    from .analysis.estimation import estimate
    from .analysis.stages import stages
    from .analysis.thresholds import thresholds
    from .auxiliary.assistance import Assisted, assisted
    from .auxiliary.estimates import AssistedEstimates
    from .auxiliary.second import Second
    from .auxiliary.two_phases import TwoPhase, two_phase
    from .design import (
        ByPredictedSize,
        BySize,
        DistinctEntities,
        KeptWeights,
        KnownChances,
        KnownInclusion,
        KnownWeights,
        PoissonRecords,
        Pooled,
        Stratified,
        SystematicRecords,
        UniformClusters,
        UniformRecords,
        WeightedRecords,
        paper_theta,
        sampling_fraction,
    )
    from .design.calibration import ByGroup, Calibrated, linear, links_by_size, raking
    from .design.nonresponse import Responding, size_classes
    from .design.renewed import topped_up
    from .design.sample import Sample
    from .engine import P_naive, R_naive, jackknife, naive, side_by_side, taylor
    from .engine.diagnostics import alarms, balance, influence
    from .metrics import columns
    from .metrics.definitions import ALL, USUAL
    from .metrics.intervals import (
        WALD,
        Anytime,
        BetaGamma,
        EqualTailed,
        HighestDensity,
        Scale,
        Symmetric,
        identity,
        log,
        logit,
    )
    from .metrics.uncertain import Draws, Estimates, Normal, Totals
    from .units.clustering import Clustering
    from .units.frame import Dated, links_inside
    from .units.measuring import measure, measure_predicted
    from .units.units import Units

    __version__: str

__all__ = [
    "ALL",
    "USUAL",
    "WALD",
    "Alarm",
    "Anytime",
    "Assisted",
    "AssistedEstimates",
    "BetaGamma",
    "ByGroup",
    "ByPredictedSize",
    "BySize",
    "Calibrated",
    "Clustering",
    "Comparison",
    "DataError",
    "Dated",
    "Differing",
    "DistinctEntities",
    "Draws",
    "EqualTailed",
    "Estimates",
    "HighestDensity",
    "KeptWeights",
    "KnownChances",
    "KnownInclusion",
    "KnownWeights",
    "Missing",
    "Normal",
    "NotIdentified",
    "P_naive",
    "PoissonRecords",
    "Pooled",
    "R_naive",
    "Responding",
    "Sample",
    "Scale",
    "Second",
    "SingleUnit",
    "Stratified",
    "Symmetric",
    "SystematicRecords",
    "Totals",
    "TwoPhase",
    "UniformClusters",
    "UniformRecords",
    "Units",
    "WeightedRecords",
    "alarms",
    "assisted",
    "balance",
    "by_domain",
    "columns",
    "compare",
    "estimate",
    "identity",
    "influence",
    "jackknife",
    "linear",
    "links_by_size",
    "links_inside",
    "log",
    "logit",
    "measure",
    "measure_predicted",
    "metrics",
    "naive",
    "paper_theta",
    "raking",
    "sampling_fraction",
    "side_by_side",
    "size_classes",
    "stages",
    "taylor",
    "thresholds",
    "topped_up",
    "two_phase",
]

_HOMES = {
    "_internal.errors": "Alarm DataError NotIdentified",
    "_internal.policies": "Differing Missing SingleUnit",
    "analysis.comparison": "Comparison compare",
    "analysis.domains": "by_domain",
    "analysis.estimation": "estimate",
    "analysis.stages": "stages",
    "analysis.thresholds": "thresholds",
    "auxiliary.assistance": "Assisted assisted",
    "auxiliary.estimates": "AssistedEstimates",
    "auxiliary.second": "Second",
    "auxiliary.two_phases": "TwoPhase two_phase",
    "design": (
        "ByPredictedSize BySize DistinctEntities KeptWeights KnownChances KnownInclusion "
        "KnownWeights PoissonRecords Pooled Stratified SystematicRecords "
        "UniformClusters UniformRecords WeightedRecords paper_theta sampling_fraction"
    ),
    "design.calibration": "ByGroup Calibrated linear links_by_size raking",
    "design.nonresponse": "Responding size_classes",
    "design.renewed": "topped_up",
    "design.sample": "Sample",
    "engine": "P_naive R_naive jackknife naive side_by_side taylor",
    "engine.diagnostics": "alarms balance influence",
    "metrics": "columns",
    "metrics.definitions": "ALL USUAL",
    "metrics.intervals": (
        "WALD Anytime BetaGamma EqualTailed HighestDensity Scale Symmetric identity log logit"
    ),
    "metrics.uncertain": "Draws Estimates Normal Totals",
    "units.clustering": "Clustering",
    "units.frame": "Dated links_inside",
    "units.measuring": "measure measure_predicted",
    "units.units": "Units",
}
"""The public names of each module, which is loaded when one of them is first used."""
_MODULES = {name: home for home, names in _HOMES.items() for name in names.split()}
_ROOMS = frozenset(
    "analysis auxiliary bayes datasets design engine labels large metrics plots report study units".split()
)


def __getattr__(name: str) -> Any:
    """Load what `import erbayes` leaves out, so that this import costs nothing: names, rooms, the version."""
    if name in _MODULES:
        value = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    elif name in _ROOMS:
        value = import_module(f".{name}", __name__)
    elif name == "__version__":
        from importlib.metadata import version

        value = version(__name__)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_ROOMS, "__version__"})
