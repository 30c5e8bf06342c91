"""The protocol of designs, and the draws that they return."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from .._internal.arrays import FloatArray, IntArray
from .._internal.errors import DataError, NotIdentified, head
from ..metrics.columns import Column, Pieces
from ..units.units import Units
from .variance import Variance


@dataclass(frozen=True, slots=True, eq=False)
class Expansion:
    """Draws with their weights and their variance. The sum of weight × column over draws estimates a total.

    `unit`, `weight` (..., n): position of the unit of each draw, and the units that it represents;
    `absolute`: false if weights are known only up to a common factor; `unreached`: pseudo-units of every
    kind that the design never draws, or None.
    """

    unit: IntArray
    weight: FloatArray
    absolute: bool
    variance: Variance
    unreached: Pieces | None = None

    def need_reached(self, column: Column) -> None:
        """Refuse a column that counts on units which the design never draws."""
        if self.unreached is None or not self.unreached.column(column).any():
            return
        sizes = np.unique(self.unreached.m).astype(int)
        where = "predicted singletons" if sizes.tolist() == [1] else f"clusters of {head(sizes)} records"
        raise NotIdentified(
            f"the total of '{column.name}' is not identified: records of {where} have chance 0, and units "
            "wholly of these are never drawn; mix the design with uniform records"
        )


@dataclass(frozen=True, slots=True, eq=False)
class WithRepeats:
    """Another design, each draw of which counts as often as it was made ([B22]; Hansen and Hurwitz 1943).

    By default a unit that was drawn twice counts once, since the second draw shows nothing new, with the
    chance to be drawn at all (docs/settled.md). Bootstraps and bets resample draws, and take this design.

    Parameters
    ----------
    design : UniformRecords, ByPredictedSize or KnownSelection
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
    (array([1.143, 0.   , 1.73 ]), array([0.667, 0.667, 1.333]))
    """

    design: Any

    def __post_init__(self) -> None:
        if not counts_once(self.design):
            raise DataError(
                "WithRepeats holds UniformRecords, ByPredictedSize or KnownSelection, not "
                f"{type(self.design).__name__}: no other design counts a unit once that was drawn twice, and "
                "one that holds another design takes WithRepeats inside it"
            )

    def expand(self, units: Units) -> Expansion:
        return self.expand_draws(units, self.design.expand(units).unit)

    def expand_draws(self, units: Units, unit: IntArray) -> Expansion:
        """Return the expansion of draws, whose units are at the positions `unit`, (..., n)."""
        expansion: Expansion = self.design.expand_repeats(units, unit)
        return expansion


def counts_once(design: Any) -> bool:
    """Return whether a design counts each unit once, however often it was drawn."""
    return hasattr(design, "expand_repeats") and not isinstance(design, WithRepeats)


def with_repeats(design: Any) -> Any:
    """Return a design, or the one that it holds, with each draw counted as often as it was made."""
    if isinstance(design, WithRepeats):
        return design
    if counts_once(design):
        return WithRepeats(design)
    inner = getattr(design, "design", None)
    if inner is None or (counted := with_repeats(inner)) is inner:
        return design
    return replace(design, design=counted)


class Design(Protocol):
    """A way of drawing units."""

    def expand(self, units: Units) -> Expansion:
        """Return the draws of a sample with their weights and their variance."""


@runtime_checkable
class SelectedBySize(Protocol):
    """A design under which the selection probability of a unit depends on its size alone."""

    @property
    def without_repeats(self) -> bool:
        """True if no unit is drawn twice."""

    @property
    def fixed_size(self) -> bool:
        """True if the design fixes the number of draws. Else `selection` returns inclusion probabilities."""

    def expand(self, units: Units) -> Expansion: ...

    def selection(self, size: FloatArray, units: Units) -> FloatArray:
        """Return the selection probability of a unit of each size, (k,), up to a factor."""


@runtime_checkable
class IndependentDraws(Protocol):
    """A design of independent draws, each of which selects a unit with a known probability."""

    def selection_probabilities(self, units: Units) -> FloatArray:
        """Return the probability that one draw selects each unit, (units,)."""

    @property
    def draws(self) -> Any:
        """Return the unit of each draw by its id, with repeats; None if each labelled unit is one draw."""

    def undrawn_sizes(self, units: Units) -> FloatArray:
        """Return the sizes of predicted clusters whose records are never drawn."""

    def expand(self, units: Units) -> Expansion: ...


@runtime_checkable
class SizeDependentWeights(Protocol):
    """A design whose weights change with labelling errors in a known way (`erbayes.analysis.sensitivity`)."""

    @property
    def depends_on_labels(self) -> bool:
        """True if a unit weighs less the more records its labels give it; False if weights ignore labels."""


def draws_records(design: Design) -> bool:
    """Return whether units are known to be reached by draws of their records."""
    return isinstance(design, SizeDependentWeights) and design.depends_on_labels
