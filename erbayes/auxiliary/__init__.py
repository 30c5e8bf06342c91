"""Estimates with auxiliary information: a second clustering, or cheap labels of many draws."""

from .assistance import Assisted
from .second import Second

__all__ = ["Assisted", "Second"]
