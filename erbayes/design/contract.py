"""The protocol of designs, and the draws that they return."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

from .._internal.arrays import FloatArray
from .._internal.errors import DataError
from ..units.units import Units
from .draws import DrawnUnits, Round


def WithRepeats(design: Any) -> Any:
    """Return another design, each draw of which counts as often as it was made ([B22]).

    By default a unit that was drawn twice counts once, since the second draw shows nothing new, with the
    chance to be drawn at all (docs/settled.md). Each draw counts in Hansen and Hurwitz (1943).

    Parameters
    ----------
    design : UniformRecords, ByPredictedSize, KnownSelection or Pooled
        A design that holds another one, such as `Calibrated`, holds this one instead.

    Raises
    ------
    DataError
        If the design is another one.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b", 4: "b"}, {1: "x", 2: "x", 3: "y"})
    >>> design = eb.UniformRecords(draws=["x", "x", "y"])
    >>> design.expand(units).weight.round(3), WithRepeats(design).expand(units).weight.round(3)
    (array([1.143, 1.73 ]), array([0.667, 0.667, 1.333]))
    """
    if not hasattr(design, "repeats") or isinstance(design, type):
        raise DataError(
            "WithRepeats takes UniformRecords, ByPredictedSize, KnownSelection or Pooled, not "
            f"{type(design).__name__}: no other design counts a unit once that was drawn twice, and one that "
            "holds another design takes WithRepeats inside it"
        )
    return replace(design, repeats=True)


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
