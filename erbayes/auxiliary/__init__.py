"""Estimates with auxiliary information: a second clustering, or cheap labels of many draws."""

from .assistance import Assisted
from .estimates import AssistedEstimates
from .planned_phases import Phases, phases
from .second import Second
from .two_phases import TwoPhase

__all__ = ["Assisted", "AssistedEstimates", "Phases", "Second", "TwoPhase", "phases"]
