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
    from . import metrics as metrics
    from . import plots as plots
    from . import report as report
    from . import study as study
    from . import units as units
    from ._internal.errors import Alarm, DataError, NotIdentified
    from ._internal.policies import Missing
    from .analysis import pairs as pairs
    from .analysis.comparison import compare
    from .analysis.domains import by_domain
    from .analysis.estimation import estimate
    from .analysis.impact import impact
    from .analysis.stages import stages
    from .analysis.thresholds import thresholds
    from .auxiliary.assistance import assisted
    from .auxiliary.two_phases import two_phase
    from .design import (
        DistinctEntities,
        KnownWeights,
        Stratified,
        UniformClusters,
        UniformRecords,
        WeightedRecords,
    )
    from .design.refreshed import top_up
    from .design.sample import Sample
    from .engine import side_by_side
    from .engine.diagnostics import alarms, balance, influence
    from .metrics import columns as columns
    from .metrics import intervals as intervals
    from .metrics import statistics as statistics
    from .metrics.uncertain import Estimates
    from .units.clustering import Clustering
    from .units.measuring import measure, measure_predicted

    __version__: str

__all__ = [
    "Alarm",
    "Clustering",
    "DataError",
    "DistinctEntities",
    "Estimates",
    "KnownWeights",
    "Missing",
    "NotIdentified",
    "Sample",
    "Stratified",
    "UniformClusters",
    "UniformRecords",
    "WeightedRecords",
    "alarms",
    "assisted",
    "balance",
    "by_domain",
    "compare",
    "estimate",
    "impact",
    "influence",
    "measure",
    "measure_predicted",
    "side_by_side",
    "stages",
    "thresholds",
    "top_up",
    "two_phase",
]

_HOMES = {
    "_internal.errors": "Alarm DataError NotIdentified",
    "_internal.policies": "Missing",
    "analysis.comparison": "compare",
    "analysis.domains": "by_domain",
    "analysis.estimation": "estimate",
    "analysis.impact": "impact",
    "analysis.stages": "stages",
    "analysis.thresholds": "thresholds",
    "auxiliary.assistance": "assisted",
    "auxiliary.two_phases": "two_phase",
    "design": "DistinctEntities KnownWeights Stratified UniformClusters UniformRecords WeightedRecords",
    "design.refreshed": "top_up",
    "design.sample": "Sample",
    "engine": "side_by_side",
    "engine.diagnostics": "alarms balance influence",
    "metrics.uncertain": "Estimates",
    "units.clustering": "Clustering",
    "units.measuring": "measure measure_predicted",
}
"""The public names of each module, which is loaded when one of them is first used."""
_MODULES = {name: home for home, names in _HOMES.items() for name in names.split()}
_ROOMS = {
    name: name
    for name in (
        "analysis auxiliary bayes datasets design engine labels large metrics plots report study units"
    ).split()
} | {
    "columns": "metrics.columns",
    "intervals": "metrics.intervals",
    "pairs": "analysis.pairs",
    "statistics": "metrics.statistics",
}
"""The rooms, and the modules inside them that are used as much as a room."""


def __getattr__(name: str) -> Any:
    """Load what `import erbayes` leaves out, so that this import costs nothing: names, rooms, the version."""
    if name in _MODULES:
        value = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    elif name in _ROOMS:
        value = import_module(f".{_ROOMS[name]}", __name__)
    elif name == "__version__":
        from importlib.metadata import version

        value = version(__name__)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_ROOMS, "__version__"})
