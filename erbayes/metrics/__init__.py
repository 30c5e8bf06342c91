"""What is measured, and what an uncertain answer looks like."""

from . import definitions
from .definitions import *
from .uncertain import Draws, Normal

__all__ = [*definitions.__all__, "Draws", "Normal"]
