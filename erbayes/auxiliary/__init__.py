"""Estimates with auxiliary information: a second clustering, or cheap labels of many draws."""

from .planned_phases import Phases, phases

__all__ = ["Phases", "phases"]
