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
from .._internal.errors import DataError, need_object, refuse_cases, whole
from ..units.units import Units
from .contract import Design, HasRounds
from .draws import DrawnUnits, Round, count_classes, count_once

FEWEST = 10
"""Number of resolved draws that each class by size needs, so that its share does not depend on a few."""


@dataclass(frozen=True, slots=True, eq=False)
class Responding:
    """Another design, some of whose draws nobody could resolve (weighting classes).

    The r_g resolved draws of a class are r_g draws from what the class holds, so that a unit counts once, by
    its chance to be among them in any class. Where each draw counts, a resolved draw weighs n_g/r_g times
    what it would weigh if every draw had been resolved, for n_g draws of its class. Estimates are unbiased if
    draws of a class are resolved with one probability, whatever their entities.

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
    begun : sequence of bool, (n,), optional
        False for draws that nobody has tried to resolve, and that chance alone left out. The variance does
        not allow for draws of one record that are begun together (.57 of the true one where half of the
        records of giants were begun).

    Examples
    --------
    Of four drawn records one could not be resolved:

    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b", 4: "b"}, {1: "x", 2: "x", 3: "y"})
    >>> design = Responding(eb.UniformRecords(["x", "y", "y"]), [True, True, False, True])
    >>> design.expand(units).weight.round(3)
    array([1.143, 1.73 ])
    """

    design: Design
    resolved: Sequence[bool] | BoolArray
    classes: Sequence[Any] | pd.Series | IntArray | None = None
    begun: Sequence[bool] | BoolArray | None = None

    def __post_init__(self) -> None:
        said = "a design with unresolved draws is an object such as UniformRecords()"
        need_object(self.design, "expand", said)
        resolved = self._check_resolved()
        given = {"marks of begun draws": self.begun, "classes": self.classes}
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

    def expand(self, units: Units) -> DrawnUnits:
        draws = self.design.expand(units)
        resolved = self._check_resolved()
        n, r = len(resolved), len(draws.order)
        known = draws.once or draws.df_lost > 1  # the chances of units, or of the parts of Pooled
        rounds = self.design.rounds(units) if known and isinstance(self.design, HasRounds) else []
        self._need_adjustable(draws, known=bool(rounds))
        if r != resolved.sum():
            raise DataError(f"{resolved.sum()} of {n} draws are resolved, but the design has {r} draws")
        code, drawn = self._code_classes(resolved)
        of_draw = np.zeros(r, dtype=np.int64) if draws.stratum is None else draws.stratum
        stratum = self._find_strata(of_draw, code, resolved)
        code, resolved_of = code[resolved], np.bincount(code[resolved], minlength=len(drawn))
        represented = (drawn / resolved_of)[code]
        of_stratum = np.bincount(stratum, drawn)
        if rounds:
            expected = np.sum([n_t * one.p for n_t, one in zip(of_stratum, rounds, strict=True)], axis=0)
            repeats = represented / expected[draws.order]
        else:
            repeats = draws.weight * (r / n) * represented
        # the draws of a unit do not tell its share in each class of several parts, nor in what was begun
        if self.begun is not None or 1 < len(rounds) < len(drawn):
            draws = draws.count_each()
        if not draws.once:
            return count_classes(draws, repeats, code, stratum, drawn)
        at = draws.order * len(drawn) + code
        seen = np.bincount(at, np.ones(r), len(units) * len(drawn)).reshape(len(units), -1)
        found = count_once(
            draws.order,
            [
                _make_round(rounds[h], int(resolved_of[g]), drawn[g] / of_stratum[h], seen, stratum == h, g)
                for g, h in enumerate(stratum.tolist())
            ],
            repeats,
            code,
        )
        return replace(found, unreached=draws.unreached)

    def _code_classes(self, resolved: BoolArray) -> tuple[IntArray, FloatArray]:
        """Return the class of each draw, (n,), and the number of draws of each class, (G,)."""
        classes = np.zeros(len(resolved)) if self.classes is None else pd.Series(list(self.classes))
        code, names = pd.factorize(classes)
        answered = np.bincount(code[resolved], minlength=len(names))
        said = "{n} classes hold no resolved draw, such as"
        refuse_cases(np.asarray(names)[answered == 0], said, ": merge them with others")
        return code, np.bincount(code).astype(float)

    def _need_adjustable(self, draws: DrawnUnits, known: bool) -> None:
        """Refuse designs without `known` chances of units, and whose weights cannot be adjusted by draw."""
        name = type(self.design).__name__
        if not known and (draws.once or draws.L is not None):
            raise DataError(
                f"{name} takes no unresolved draws: resolve each draw, list draws with their repeats "
                "(UniformRecords), or draw records with replacement"
            )
        if not known and draws.df_lost > 1:
            raise DataError(
                f"{name} takes no unresolved draws: make the design of the resolved draws alone, since "
                "strata are classes themselves"
            )

    def _find_strata(self, of_draw: IntArray, code: IntArray, resolved: BoolArray) -> IntArray:
        """Return the stratum of each class, (G,), which is that of its resolved draws `of_draw`."""
        of_class = np.full(int(code.max()) + 1, -1)
        of_class[code[resolved]] = of_draw
        if (mixed := of_class[code[resolved]] != of_draw).any():
            raise DataError(
                f"{int(mixed.sum())} draws share a class with draws of another part: classes lie within the "
                "parts of Pooled"
            )
        return of_class


def _make_round(
    one: Round, resolved: int, share: float, seen: FloatArray, inside: BoolArray, g: int
) -> Round:
    """Return the resolved draws of a class g as a round of draws among what the class holds.

    `share`: of the draws of its round; `seen` (units, G): resolved draws of units by class; `inside` (G,):
    classes of the same round. The share of a unit that is in a class is that of its resolved draws.
    """
    of_unit = seen[:, inside].sum(axis=1)
    part = np.divide(seen[:, g], of_unit, out=np.full(len(seen), share), where=of_unit > 0)
    population = None if one.population is None else int(np.rint(one.population * share))
    return Round(resolved, one.p * part / share, population)


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
