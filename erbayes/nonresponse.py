"""Non-response: draws that nobody could resolve stay in the data.

An unresolved draw has no entity, so that it adds nothing to any total. The draws of its class that were
resolved stand for it as well. That is right if the resolved and the unresolved draws of a class are alike on
average ("missing at random within classes"). No data of the sample can show whether they are.

Source: Oh and Scheuren (1983), in Incomplete Data in Sample Surveys 2, 143-184; Särndal, Swensson and Wretman
(1992), chapter 15 (response homogeneity groups).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .arrays import BoolArray, FloatArray, IntArray
from .design import Design, Expansion
from .errors import DataError, NotIdentified, head, need_object, whole
from .units import Units
from .variance import StratifiedDraws

FEWEST = 10
"""Number of resolved draws that each class by size needs."""


@dataclass(frozen=True, slots=True, eq=False)
class RespondingDraws:
    """Variance of draws in two phases: drawn, then resolved with one probability within each class.

    Attributes
    ----------
    base : StratifiedDraws
        Variance of all n draws, resolved or not.
    position : int array, (r,)
        Position of each resolved draw among all.
    code : int array, (n,)
        Class of each draw, 0 to G - 1.
    """

    base: StratifiedDraws
    position: IntArray
    code: IntArray

    @property
    def classes(self) -> int:
        """Return the number G of classes."""
        return int(self.code.max()) + 1

    @property
    def lost(self) -> int:
        return self.base.lost + self.classes - 1

    @property
    def census(self) -> bool:
        return False

    @property
    def theta_mean(self) -> float:
        return self.base.theta_mean

    @property
    def independent(self) -> StratifiedDraws:
        return self.base

    def _counts(self) -> tuple[FloatArray, FloatArray, IntArray]:
        """Return the draws and the resolved draws of each class, (G,), and the class of resolved draws."""
        resolved = self.code[self.position]
        drawn = np.bincount(self.code, minlength=self.classes).astype(float)
        return drawn, np.bincount(resolved, minlength=self.classes).astype(float), resolved

    def residuals(self, Z: FloatArray) -> FloatArray:
        return Z

    def covariance(self, residuals: FloatArray) -> FloatArray:
        """Return the covariance of totals, (k, k), of both phases.

        It is that of all draws with z_s - m_g + m_g r_g/n_g for a resolved draw of class g, and m_g r_g/n_g
        for an unresolved one. m_g is the mean contribution of the r_g resolved draws of the n_g in the class.
        """
        drawn, resolved, code = self._counts()
        sums = np.zeros((self.classes, residuals.shape[-1]))
        np.add.at(sums, code, residuals)
        rows = (sums / drawn[:, None])[self.code]
        rows[self.position] += residuals - (sums / resolved[:, None])[code]
        return self.base.covariance(rows)

    def replicates(self, Z: FloatArray, multipliers: FloatArray) -> FloatArray:
        """As `Variance.replicates`, for multipliers of all draws, (B, n). Classes are adjusted anew.

        Raises
        ------
        NotIdentified
            If a replicate has draws of a class, none of which is resolved.
        """
        drawn, resolved, code = self._counts()
        totals = np.zeros((len(multipliers), Z.shape[1]))
        for g in range(self.classes):
            here = code == g
            weights = multipliers[:, self.position[here]]
            of_all, of_resolved = multipliers[:, self.code == g].sum(axis=1), weights.sum(axis=1)
            if ((of_all > 0) & (of_resolved <= 0)).any():
                raise NotIdentified(
                    "a replicate holds no resolved draw of a class: merge classes of few resolved draws"
                )
            factor = np.divide(of_all, of_resolved, out=np.zeros_like(of_all), where=of_resolved > 0)
            totals += factor[:, None] * (weights @ (Z[here] * resolved[g] / drawn[g]))
        return totals

    def jackknife(self, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """As `Variance.jackknife`, with each draw left out in turn, also unresolved ones."""
        n = len(self.code)
        if n == 1:
            raise DataError("a single draw has no jackknife")
        without = (1 - np.eye(n)) * n / (n - 1)
        return self.replicates(Z, without) - Z.sum(axis=0), self.base.theta * np.ones(n) * (n - 1) / n


@dataclass(frozen=True, slots=True, eq=False)
class Responding:
    """Another design, some of whose draws nobody could resolve (weighting classes).

    A resolved draw of a class weighs n_g/r_g times what it would weigh if every draw had been resolved. The
    class has n_g draws, of which r_g are resolved. Estimates have no bias if draws of a class are resolved
    with one probability, whatever their entities. Variances allow for both phases, drawing and resolving.

    Parameters
    ----------
    design : Design
        The design of the resolved draws, in the order of drawing: independent draws without strata.
    resolved : sequence of bool, (n,)
        Every draw in the order of drawing: True if its entity is labelled.
    classes : sequence, (n,), optional
        Class of each draw, known without its label, such as that of `size_classes`. By default there is one.

    Raises
    ------
    DataError
        If there is not one class per draw, or if one is missing. In `expand`, if the design has another
        number of draws than are resolved, if a class has no resolved draw, or if the design has strata.

    Examples
    --------
    Of four drawn records one could not be resolved:

    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b", 4: "b"}, {1: "x", 2: "x", 3: "y"})
    >>> design = Responding(eb.UniformRecords(["x", "y", "y"]), [True, True, False, True])
    >>> design.expand(units).weight.round(3)
    array([0.667, 1.333, 1.333])
    """

    design: Design
    resolved: Sequence[bool] | BoolArray
    classes: Sequence[Any] | pd.Series | IntArray | None = None

    def __post_init__(self) -> None:
        need_object(
            self.design, "expand", "a design with unresolved draws is an object such as UniformRecords()"
        )
        resolved = self._resolved()
        if self.classes is None:
            return
        classes = pd.Series(list(self.classes))
        if len(classes) != len(resolved):
            raise DataError(f"{len(classes)} classes for {len(resolved)} draws: each draw has one class")
        if missing := int(classes.isna().sum()):
            raise DataError(
                f"{missing} of {len(classes)} draws have no class: make these a class of their own"
            )

    @property
    def unresolved(self) -> float:
        """Share of the draws that are not resolved."""
        return float(1 - self._resolved().mean())

    def _resolved(self) -> BoolArray:
        resolved = np.asarray(self.resolved)
        if resolved.dtype != bool or resolved.ndim != 1 or not resolved.any():
            raise DataError("resolved holds True or False for every draw, and True for one or more")
        return resolved

    def expand(self, units: Units) -> Expansion:
        base, resolved = self.design.expand(units), self._resolved()
        n, r = len(resolved), base.unit.shape[-1]
        if not isinstance(base.variance, StratifiedDraws) or base.variance.lost > 1:
            raise DataError(
                f"{type(self.design).__name__} takes no unresolved draws: weights are adjusted for "
                "independent draws with replacement, without strata; for strata, make the design of the "
                "resolved draws alone, since strata are classes themselves"
            )
        if r != resolved.sum():
            raise DataError(f"{resolved.sum()} of {n} draws are resolved, but the design has {r} draws")
        code, names = pd.factorize(np.zeros(n) if self.classes is None else pd.Series(list(self.classes)))
        position = np.flatnonzero(resolved)
        variance = RespondingDraws(
            StratifiedDraws(np.zeros(n, np.int64), base.variance.theta), position, code
        )
        drawn, answered, of_draw = variance._counts()
        if not answered.all():
            empty = np.asarray(names)[answered == 0]
            raise DataError(
                f"{len(empty)} classes hold no resolved draw, such as {head(empty)}: merge them with others"
            )
        weight = base.weight * (r / n * drawn / answered)[of_draw]
        return Expansion(base.unit, weight, base.absolute, variance, base.unreached)


def size_classes(size: Any, resolved: Sequence[bool] | BoolArray, fewest: int = FEWEST) -> IntArray:
    """Return classes of draws by the size of their predicted cluster, for `Responding`.

    Classes start at powers of 2. From the largest down, they are merged until each has `fewest` resolved
    draws.

    Parameters
    ----------
    size : sequence of int, (n,)
        Records in the predicted cluster of each drawn record.
    resolved : sequence of bool, (n,)
    fewest : int

    Returns
    -------
    int array, (n,)
        The least size of each draw's class.

    Raises
    ------
    DataError
        If there is not one size per draw.

    Examples
    --------
    >>> size_classes([1, 1, 2, 3, 9, 40], [True, True, True, True, False, True], fewest=2)
    array([1, 1, 2, 2, 2, 2])
    """
    sizes, answered = np.asarray(size, dtype=float), np.asarray(resolved, dtype=bool)
    if sizes.shape != answered.shape or not (sizes >= 1).all():
        raise DataError(f"{sizes.size} sizes of 1 or more are needed for {answered.size} draws")
    start, fewest, count = 2 ** (np.frexp(sizes)[1].astype(np.int64) - 1), whole(fewest, "fewest"), 0
    least: list[int] = []
    for power in np.unique(start)[::-1]:
        count += int(answered[start == power].sum())
        if count >= fewest:
            least.append(int(power))
            count = 0
    edges = np.unique([*least[:-1], int(start.min())])
    return np.asarray(edges[np.searchsorted(edges, start, side="right") - 1])
