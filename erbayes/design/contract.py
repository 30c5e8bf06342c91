"""The protocols of designs."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from .._internal.arrays import FloatArray
from ..units.units import Units
from .draws import DrawnUnits, Round


class Design(Protocol):
    """A way of drawing units."""

    def expand(self, units: Units) -> DrawnUnits:
        """Return the draws of a sample with their weights and their variance."""


@runtime_checkable
class HasRounds(Protocol):
    """A design of rounds of draws whose chances are known, so that a unit counts once."""

    def rounds(self, units: Units) -> list[Round]:
        """Return the rounds: their numbers of draws, and the chances of all units."""

    def expand(self, units: Units) -> DrawnUnits: ...


@runtime_checkable
class SelectedBySize(Protocol):
    """A design under which the selection probability of a unit depends on its size alone."""

    @property
    def without_repeats(self) -> bool:
        """True if no unit is drawn twice."""

    @property
    def fixed_size(self) -> bool:
        """True if the design fixes the number of draws. Else `selection` returns inclusion probabilities."""

    def expand(self, units: Units) -> DrawnUnits: ...

    def selection(self, size: FloatArray, units: Units) -> FloatArray:
        """Return the selection probability of a unit of each size, (k,), up to a factor."""


def innermost(design: Any) -> Any:
    """Return the design by which draws were made, which others, such as `FrozenWeights`, hold."""
    while hasattr(design, "design"):
        design = design.design
    return design
