"""What is measured, and what an uncertain answer looks like."""

from . import definitions
from .definitions import *
from .uncertain import Estimates

__all__ = [*definitions.__all__, "Estimates"]
