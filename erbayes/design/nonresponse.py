"""Non-response: draws that nobody could resolve stay in the data, in weighting classes.

An unresolved draw has no entity, so that the resolved draws of its class get its weight. Estimates are
unbiased if draws are missing at random within classes, which no data of the sample can show.

Source: Oh and Scheuren (1983), in Incomplete Data in Sample Surveys 2, 143-184; Särndal, Swensson and Wretman
(1992), chapter 15 (response homogeneity groups).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from .._internal.arrays import BoolArray, FloatArray, IntArray
from .._internal.errors import DataError, NotIdentified, need_object, refuse_cases, whole
from ..units.units import Units
from .contract import Design, Expansion, with_repeats
from .strata import Pooled
from .variance import StratifiedDraws, Variance, centre

FEWEST = 10
"""Number of resolved draws that each class by size needs, so that its share does not depend on a few."""


@dataclass(frozen=True, slots=True, eq=False)
class RespondingDraws(Variance):
    """Variance of draws in two phases: drawn, then resolved with one probability within each class.

    `base`: variance of all n draws; `position` (r,): place of each resolved draw; `code`, `record` (n,):
    class and record of each draw.
    """

    base: StratifiedDraws
    position: IntArray
    code: IntArray
    record: IntArray

    @property
    def classes(self) -> int:
        """Return the number G of classes."""
        return int(self.code.max()) + 1

    @property
    def df_lost(self) -> int:
        return self.base.df_lost + self.classes - 1

    @property
    def census(self) -> bool:
        return False

    @property
    def unseen(self) -> FloatArray:
        return self.base.unseen[self.position]

    @property
    def repeated(self) -> FloatArray:
        return self.base.repeated[self.position]

    @property
    def independent(self) -> StratifiedDraws:
        if self._find_record_factors()[1].any():
            raise NotIdentified(
                "draws of one record are resolved together, so they are not independent, and no bootstrap "
                "resamples them; use the closed form or the jackknife"
            )
        return self.base

    def _find_record_factors(self) -> tuple[IntArray, FloatArray]:
        """Return the record of each resolved draw, (r,), and (1 - r_g/n_g)(1 - 1/a) of each of a draws."""
        drawn, resolved, code = self._count_classes()
        record = self.record[self.position]
        draws = np.bincount(record, minlength=int(self.record.max()) + 1)
        unresolved = np.zeros(len(draws))
        unresolved[record] = (1 - resolved / drawn)[code]
        return record, unresolved * (1 - 1 / np.maximum(draws, 1))

    def _sum_by_record(self, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return sums of Z about class means, (k', k), and their factors, (k',), of repeated records."""
        record, factor = self._find_record_factors()
        sums = np.zeros((len(factor), Z.shape[-1]))
        np.add.at(sums, record, centre(Z, self.code[self.position]))
        return sums[factor > 0], factor[factor > 0]

    def _count_classes(self) -> tuple[FloatArray, FloatArray, IntArray]:
        """Return the draws and the resolved draws of each class, (G,), and the class of resolved draws."""
        resolved = self.code[self.position]
        drawn = np.bincount(self.code, minlength=self.classes).astype(float)
        return drawn, np.bincount(resolved, minlength=self.classes).astype(float), resolved

    def covariance(self, residuals: FloatArray) -> FloatArray:
        """Return the covariance of totals, (k, k), of both phases.

        It is that of all draws with z_s - m_g + m_g r_g/n_g, or m_g r_g/n_g if unresolved, for the mean m_g
        of the r_g of n_g draws, plus (1 - r_g/n_g)(1 - 1/a)(Σ z_s - m_g)² of each record of a > 1 draws.
        """
        drawn, _, code = self._count_classes()
        sums = np.zeros((self.classes, residuals.shape[-1]))
        np.add.at(sums, code, residuals)
        rows = (sums / drawn[:, None])[self.code]
        rows[self.position] += centre(residuals, code)
        # all draws of a record are resolved or none, so that they vary together in the second phase
        sums, factor = self._sum_by_record(residuals)
        return self.base.covariance(rows) + sums.T @ (factor[:, None] * sums)

    def replicates(self, Z: FloatArray, multipliers: FloatArray) -> FloatArray:
        """As `Variance.replicates`, for multipliers of all draws, (B, n), with classes adjusted anew."""
        drawn, resolved, code = self._count_classes()
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
        """As `Variance.jackknife`, with each draw and each repeated record left out in turn."""
        if len(self.code) == 1:
            raise DataError("a single draw has no jackknife")
        stratum = self.base.stratum
        n = np.bincount(stratum)[stratum]
        without = np.where(stratum[:, None] == stratum, (n / np.maximum(n - 1, 1))[:, None], 1.0)
        np.fill_diagonal(without, 0.0)
        change = self.replicates(Z, without) - Z.sum(axis=0)
        sums, factor = self._sum_by_record(Z)
        # repeated records are left out with all their draws too, scaled as their part in `covariance`
        return np.vstack([change, -sums]), np.append(self.base.fpc[stratum] * (n - 1) / n, factor)


@dataclass(frozen=True, slots=True, eq=False)
class Responding:
    """Another design, some of whose draws nobody could resolve (weighting classes).

    A resolved draw weighs n_g/r_g times what it would weigh if every draw had been resolved, for r_g resolved
    of the n_g draws of its class. Estimates are unbiased if draws of a class are resolved with one
    probability, whatever their entities. Variances include both phases, drawing and resolving.

    Parameters
    ----------
    design : Design
        The design of the resolved draws, in the order of drawing: independent and with replacement, uniform
        without replacement, or `Pooled`.
    resolved : sequence of bool, (n,)
        True for each draw whose entity is labelled, in the order of drawing, and part by part under `Pooled`.
    classes : sequence, (n,), optional
        Class of each draw, known without its label, such as that of `size_classes`. By default there is one.
        Under `Pooled` of several parts they are needed, each within one part.
    records : sequence of record ids, (n,), optional
        The drawn record of each draw, if records repeat. The variance then allows for draws that are resolved
        together.
    begun : sequence of bool, (n,), optional
        False for draws that nobody has tried to resolve, and that chance alone left out.

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
    records: Sequence[Any] | pd.Series | None = None
    begun: Sequence[bool] | BoolArray | None = None

    def __post_init__(self) -> None:
        said = "a design with unresolved draws is an object such as UniformRecords()"
        need_object(self.design, "expand", said)
        resolved = self._check_resolved()
        given = {"drawn records": self.records, "marks of begun draws": self.begun, "classes": self.classes}
        for what, values in given.items():
            if values is not None and len(values) != len(resolved):
                raise DataError(f"{len(values)} {what} for {len(resolved)} draws: each draw has one")
        if unbegun := int((resolved & ~self.tried).sum()):
            raise DataError(f"{unbegun} draws are resolved, but not begun")
        missing = 0 if self.classes is None else int(pd.Series(list(self.classes)).isna().sum())
        if missing:
            said = "draws have no class: make these a class of their own"
            raise DataError(f"{missing} of {len(resolved)} {said}")

    @property
    def unresolved(self) -> float:
        """Share of the draws that are not resolved, among those that were begun."""
        return float(1 - self._check_resolved()[self.tried].mean())

    @property
    def tried(self) -> BoolArray:
        """True for each draw that was begun, resolved or not, (n,)."""
        if self.begun is None:
            return np.ones(len(self.resolved), dtype=bool)
        begun = np.asarray(self.begun)
        if begun.dtype != bool:
            raise DataError("begun holds True or False for every draw")
        return begun

    def _check_resolved(self) -> BoolArray:
        resolved = np.asarray(self.resolved)
        if resolved.dtype != bool or resolved.ndim != 1 or not resolved.any():
            raise DataError("resolved holds True or False for every draw, and True for one or more")
        return resolved

    def expand(self, units: Units) -> Expansion:
        base: Expansion = with_repeats(self.design).expand(units)
        resolved = self._check_resolved()
        n, r = len(resolved), base.unit.shape[-1]
        variance = self._need_adjustable(base.variance)
        if r != resolved.sum():
            raise DataError(f"{resolved.sum()} of {n} draws are resolved, but the design has {r} draws")
        code, share = self._code_classes(resolved)
        stratum = self._find_strata(variance, code, resolved)
        weight = base.weight * r / n
        if isinstance(self.design, Pooled):
            weight = 1 / self.design.expected(units, np.bincount(stratum))[base.unit]
        record = np.arange(n) if self.records is None else pd.factorize(pd.Series(list(self.records)))[0]
        of_all = StratifiedDraws(stratum, variance.fpc)
        responding = RespondingDraws(of_all, np.flatnonzero(resolved), code, record)
        return replace(base, weight=weight / share, variance=responding)

    def _code_classes(self, resolved: BoolArray) -> tuple[IntArray, FloatArray]:
        """Return the class of each draw, (n,), and the share r_g/n_g of that of each resolved draw, (r,)."""
        classes = np.zeros(len(resolved)) if self.classes is None else pd.Series(list(self.classes))
        code, names = pd.factorize(classes)
        drawn = np.bincount(code)
        answered = np.bincount(code[resolved], minlength=len(drawn))
        said = "{n} classes hold no resolved draw, such as"
        refuse_cases(np.asarray(names)[answered == 0], said, ": merge them with others")
        return code, (answered / drawn)[code[resolved]]

    def _need_adjustable(self, variance: Variance) -> StratifiedDraws:
        """Return the variance, refusing designs whose weights cannot be adjusted draw by draw."""
        name = type(self.design).__name__
        if not isinstance(variance, StratifiedDraws):
            raise DataError(
                f"{name} takes no unresolved draws: resolve each draw, list draws with their repeats "
                "(UniformRecords), or draw records with replacement"
            )
        if variance.df_lost > 1 and not isinstance(self.design, Pooled):
            raise DataError(
                f"{name} takes no unresolved draws: make the design of the resolved draws alone, since "
                "strata are classes themselves"
            )
        return variance

    def _find_strata(self, variance: StratifiedDraws, code: IntArray, resolved: BoolArray) -> IntArray:
        """Return the stratum of every draw, (n,): that of the resolved draws of its class."""
        of_class = np.full(int(code.max()) + 1, -1)
        of_class[code[resolved]] = variance.stratum
        if (mixed := of_class[code[resolved]] != variance.stratum).any():
            raise DataError(
                f"{int(mixed.sum())} draws share a class with draws of another part: classes lie within the "
                "parts of Pooled"
            )
        return np.asarray(of_class[code])


def size_classes(size: Any, resolved: Sequence[bool] | BoolArray, fewest: int = FEWEST) -> IntArray:
    """Return classes of draws by the size of their predicted cluster, for `Responding`.

    Classes start at powers of 2, and are merged from the largest down until each has `fewest` resolved draws.

    Parameters
    ----------
    size : sequence of int, (n,)
        Records in the predicted cluster of each drawn record.
    resolved : sequence of bool, (n,)
    fewest : int

    Returns
    -------
    int array, (n,), the least size of each draw's class

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
