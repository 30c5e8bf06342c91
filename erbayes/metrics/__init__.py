"""What is measured, and what an uncertain answer looks like."""

from typing import TYPE_CHECKING

from .._internal.nearest import refuse_attribute
from . import definitions
from .definitions import *
from .uncertain import Draws, Normal

__all__ = [*definitions.__all__, "Draws", "Normal"]

if not TYPE_CHECKING:  # so that type checkers still refuse names that are wrong
    __getattr__ = refuse_attribute(__name__, __all__, "pairwise_")  # as `precision` is in short
