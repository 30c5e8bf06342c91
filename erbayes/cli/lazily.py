"""Modules that commands use. Each is loaded when it is first used, so that help comes at once."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from .. import auxiliary, large
    from .. import design as designing
    from .. import engine as engines
    from .. import labels as labelling
    from .. import plots as plotting
    from .._internal import digits
    from .._internal import files as disk
    from ..analysis import comparison as comparing
    from ..analysis import domains as by_groups
    from ..analysis import impact as impacts
    from ..analysis import pairs as judged_pairs
    from ..analysis import planning
    from ..analysis import thresholds as curves
    from ..auxiliary import assistance, two_phases
    from ..auxiliary import second as second_clusterings
    from ..design import calibration, nonresponse
    from ..design import sample as sampling
    from ..engine import contract as engine_contract
    from ..engine import diagnostics
    from ..engine import named as named_engines
    from ..labels.drawing import folder as folders
    from ..labels.drawing import page as pages
    from ..labels.drawing import plans, sheets, stopping
    from ..labels.drawing import source as sources
    from ..labels.reading import faults as answer_faults
    from ..labels.reading import returned as returned_answers
    from ..large import counted, joint
    from ..large import features as large_features
    from ..large import files as large_files
    from ..metrics import columns as columns_of
    from ..metrics import definitions, intervals, statistics
    from ..report import page as reporting
    from ..units import clustering as clusterings
    from ..units import edges, features, grouping, measuring
    from ..units import frame as frames
else:

    class _Unloaded:
        """A name for a module, which is loaded when an attribute of it is asked for."""

        def __init__(self, path: str) -> None:
            self._path = path

        def __getattr__(self, name: str) -> Any:
            return getattr(import_module(self._path, __package__), name)

    _NAMED = """
    np=numpy pd=pandas auxiliary=..auxiliary large=..large statistics=..metrics.statistics designing=..design
    engines=..engine labelling=..labels judged_pairs=..analysis.pairs plotting=..plots
    digits=.._internal.digits disk=.._internal.files
    comparing=..analysis.comparison by_groups=..analysis.domains impacts=..analysis.impact
    planning=..analysis.planning curves=..analysis.thresholds
    assistance=..auxiliary.assistance two_phases=..auxiliary.two_phases
    second_clusterings=..auxiliary.second calibration=..design.calibration
    nonresponse=..design.nonresponse sampling=..design.sample diagnostics=..engine.diagnostics
    engine_contract=..engine.contract named_engines=..engine.named
    folders=..labels.drawing.folder pages=..labels.drawing.page plans=..labels.drawing.plans
    sheets=..labels.drawing.sheets stopping=..labels.drawing.stopping
    sources=..labels.drawing.source answer_faults=..labels.reading.faults
    returned_answers=..labels.reading.returned large_features=..large.features
    large_files=..large.files counted=..large.counted joint=..large.joint
    columns_of=..metrics.columns definitions=..metrics.definitions intervals=..metrics.intervals
    reporting=..report.page clusterings=..units.clustering edges=..units.edges features=..units.features
    frames=..units.frame grouping=..units.grouping measuring=..units.measuring
    """
    _PATHS = dict(named.split("=") for named in _NAMED.split())
    globals().update({name: _Unloaded(path) for name, path in _PATHS.items()})
