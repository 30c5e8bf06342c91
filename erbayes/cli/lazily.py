"""Modules next to the public names. Each is loaded when it is first used, so that help comes at once."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from .._internal import cells, digits, outside_json
    from .._internal import files as disk
    from .._internal import tables as checks
    from ..analysis import impact as impacts
    from ..analysis import thresholds as curves
    from ..auxiliary import two_phases
    from ..design import calibration
    from ..engine import named as named_engines
    from ..labels.drawing import folder as folders
    from ..labels.drawing import more, plans, sheets, stopping
    from ..labels.drawing import page as pages
    from ..labels.drawing import source as sources
    from ..labels.reading import faults as answer_faults
    from ..labels.reading import returned as returned_answers
    from ..large import counted
    from ..large import features as large_features
    from ..large import files as large_files
    from ..report import page as reports
    from ..units import clustering as clusterings
    from ..units import edges, facts, features, ids, reading
    from ..units import frame as frames
else:

    class _Unloaded:
        """A name for a module, which is loaded when an attribute of it is asked for."""

        def __init__(self, path: str) -> None:
            self._path = path

        def __getattr__(self, name: str) -> Any:
            return getattr(import_module(self._path, __package__), name)

    _NAMED = """
    np=numpy pd=pandas digits=.._internal.digits disk=.._internal.files
    outside_json=.._internal.outside_json impacts=..analysis.impact
    cells=.._internal.cells reports=..report.page
    curves=..analysis.thresholds two_phases=..auxiliary.two_phases calibration=..design.calibration
    named_engines=..engine.named folders=..labels.drawing.folder more=..labels.drawing.more
    pages=..labels.drawing.page plans=..labels.drawing.plans sheets=..labels.drawing.sheets
    sources=..labels.drawing.source stopping=..labels.drawing.stopping
    answer_faults=..labels.reading.faults returned_answers=..labels.reading.returned
    counted=..large.counted large_features=..large.features large_files=..large.files
    clusterings=..units.clustering features=..units.features
    frames=..units.frame ids=..units.ids edges=..units.edges facts=..units.facts
    checks=.._internal.tables
    reading=..units.reading
    """
    _PATHS = dict(named.split("=") for named in _NAMED.split())
    globals().update({name: _Unloaded(path) for name, path in _PATHS.items()})
