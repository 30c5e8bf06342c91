"""What is measured, and what an uncertain answer looks like."""

from . import definitions
from .definitions import *
from .estimates import Estimates

__all__ = [*vars(definitions)["__all__"], "Estimates"]
