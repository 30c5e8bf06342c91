"""First-order laws: how totals of links respond to errors of labelling, and metrics corrected by them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from .. import columns as u_
from ..arrays import BoolArray, FloatArray, floats
from ..columns import COMMON_LINKS, PREDICTED_LINKS, TRUE_LINKS, Column, Pieces, PieceSum, Term
from ..design import Design, WithLaw
from ..engine.closed_form import taylor
from ..errors import DataError, NotIdentified
from ..metrics import Metric, Value, chosen, pairwise_f, pairwise_precision, pairwise_recall
from ..sample import Sample

PRF = (pairwise_precision, pairwise_recall, pairwise_f())
"""Pairwise precision, recall and F1."""
LINKS: tuple[Column, ...] = (COMMON_LINKS, TRUE_LINKS, PREDICTED_LINKS)


def _nothing(n: FloatArray, N: FloatArray, m: FloatArray) -> FloatArray:
    return np.zeros_like(n)


@dataclass(frozen=True, slots=True)
class KeptAtHome:
    """First-order change of a total by one foreign record that is kept, if a unit weighs 1/N_c as labelled.

    A kept record adds `gain` to what its entity contributes, and makes the entity look larger by one record.
    With X_c the sum of `term` over the entity's pieces, a draw that contributed X_c/N_c then contributes
    (X_c + gain)/(N_c + 1). Each of n draws of a piece has m - n foreign records in its home cluster:
    Σ over pieces of n (m - n) (N_c gain - X_c)/(N_c (N_c + 1)).

    Attributes
    ----------
    name : str
    term, gain : callable (n, N_c, m) -> float array
    """

    name: str
    term: Term
    gain: Term

    def identified(self, units: Pieces) -> bool:
        return units.by_entity and not np.isnan(units.N).any()

    def count(self, units: Pieces) -> FloatArray:
        if not self.identified(units):
            raise NotIdentified(f"'{self.name}' is identified only if whole true entities are sampled")
        n, N, m = units.n, units.N, units.m
        whole = np.bincount(units.group, weights=self.term(n, N, m))[units.group]
        moved = n * (m - n) * (N * self.gain(n, N, m) - whole) / (N * (N + 1))
        return np.bincount(units.unit, weights=moved, minlength=len(units))


NOTHING = PieceSum("nothing", _nothing)
_MISSING = PieceSum("missing_links", lambda n, N, m: n * (N - n) / 2)
_FALSE = PieceSum("false_links", lambda n, N, m: n * (m - n) / 2)
_FALSE_COMMON = KeptAtHome("false_common_links", COMMON_LINKS.term, lambda n, N, m: n)
_FALSE_PREDICTED = KeptAtHome(
    "false_predicted_links", lambda n, N, m: n * (m - 1) / 2, lambda n, N, m: (m - 1) / 2
)
_AWAY_COMMON = PieceSum("away_common", lambda n, N, m: (1 - n / N) * u_.pairs(n))
_AWAY_TRUE = PieceSum("away_true", lambda n, N, m: (1 - n / N) * (n * (N - n) + u_.pairs(n)))
_AWAY_PREDICTED = PieceSum("away_predicted", lambda n, N, m: (1 - n / N) * n * (m - 1) / 2)
_KEPT_COMMON = PieceSum("kept_common", lambda n, N, m: n / N * (m - n) * n)
_KEPT_TRUE = PieceSum("kept_true", lambda n, N, m: n * (m - n))
_KEPT_PREDICTED = PieceSum("kept_predicted", lambda n, N, m: n / N * (m - n) * (m - 1) / 2)
_KEPT_PAIRS = PieceSum("kept_pairs", lambda n, N, m: n / N * u_.pairs(m - n))


@dataclass(frozen=True, slots=True)
class Law:
    """How the totals TP, |T| and |P| respond to errors; each field holds a column for each of the three.

    With odds o(x) = x/(1-x), true totals are observed + o(u) missed - o(v) kept + o(v)² again.

    Attributes
    ----------
    missed, kept, again : tuple of Column, (3,)
    """

    missed: tuple[Column, Column, Column]
    kept: tuple[Column, Column, Column]
    again: tuple[Column, Column, Column] = (NOTHING, NOTHING, NOTHING)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The distinct columns, those of observed links first."""
        return tuple(dict.fromkeys((*LINKS, *self.missed, *self.kept, *self.again)))


PROPORTIONAL = Law((NOTHING, _MISSING, NOTHING), (_FALSE_COMMON, _FALSE, _FALSE_PREDICTED))
"""Draws proportional to size, weighted by 1/N_c *as labelled*. What a draw adds to |T| is (N_c - 1)/2, linear
in the records found. Missed pieces leave TP and |P| as they are, since an entity that looks smaller weighs
more. Kept records change them if an entity is in several pieces (see `KeptAtHome`)."""

FIXED = Law(
    (_AWAY_COMMON, _AWAY_TRUE, _AWAY_PREDICTED),
    (_KEPT_COMMON, _KEPT_TRUE, _KEPT_PREDICTED),
    (_KEPT_PAIRS, _KEPT_PAIRS, NOTHING),
)
"""Weights that do not depend on the labels, as under uniform clusters; home is that of a record drawn
uniformly from the entity, C2(n) (1 - n/N) the links that are lost with a piece, and so on."""


def law_of(design: Design) -> Law:
    """The law that goes with a design.

    Raises
    ------
    DataError
        A design of which no law is known here.
    """
    if isinstance(design, WithLaw):
        return PROPORTIONAL if design.weights_follow_labels else FIXED
    raise DataError(
        f"no first-order law goes with {type(design).__name__}: pass law=, or use Restored "
        "or restored_analysis"
    )


def odds(share: ArrayLike, what: str) -> FloatArray:
    """x/(1 - x) of shares in [0, 1); DataError names what other ones are shares of."""
    x = floats(share, f"shares {what}")
    bad = ~((x >= 0) & (x < 1))
    if bad.any():
        raise DataError(f"the share {what} must lie in [0, 1); {int(bad.sum())} of {x.size} do not")
    return np.asarray(x / (1 - x))


def corrected(metric: Metric | str, u: ArrayLike, v: ArrayLike, law: Law = PROPORTIONAL) -> Metric:
    """The metric that true labels would have given, as a metric of what imperfect ones give.

    Parameters
    ----------
    metric : Metric or str
        Of common, true and predicted links only: pairwise precision, recall, F, Jaccard and the like.
    u, v : float or float arrays, in [0, 1)
        Shares missed and kept. Arrays go along the leading axes of the totals: one pair a draw.
    law : Law

    Raises
    ------
    DataError
        Other totals than links; shares outside [0, 1).

    Examples
    --------
    >>> import erbayes as eb
    >>> labels = {1: "x", 2: "x", 4: "y"}
    >>> sample = eb.Sample(eb.measure({1: "a", 2: "a", 3: "a", 4: "b"}, labels), eb.UniformRecords())
    >>> P = [corrected(eb.metrics.pairwise_precision, 0.0, 0.2)]
    >>> eb.taylor(sample, P).apply(P, order=1).mean.round(3)  # (1/2 - .2)/.8
    array([0.375])
    """
    (metric,) = chosen(metric)
    other = [c.name for c in metric.columns if c not in LINKS]
    if other:
        raise DataError(
            f"{metric.name} rests on {', '.join(other)}: only metrics of common, true and "
            "predicted links have a closed form; use Restored or restored_analysis"
        )
    missed, kept = odds(u, "missed"), odds(v, "kept")
    columns = law.columns

    def formula(*totals: Value) -> Value:
        raw, true, predicted = _links(totals, missed, kept, law)
        common = np.maximum(raw, 0)
        links = common, common + np.maximum(true - raw, 0), np.maximum(predicted, common)
        by_name = {c.name: x for c, x in zip(LINKS, links, strict=True)}
        return metric.formula(*(by_name[c.name] for c in metric.columns))

    return replace(metric, columns=columns, formula=formula, source=f"{metric.source}, corrected labels")


def _links(totals: Iterable[Value], missed: FloatArray, kept: FloatArray, law: Law) -> list[Value]:
    """TP, |T| and |P| of true labels, from the totals of a law's columns and odds of errors."""
    seen = dict(zip((c.name for c in law.columns), totals, strict=True))
    return [
        seen[x.name] + missed * seen[a.name] - kept * seen[b.name] + kept**2 * seen[c.name]
        for x, a, b, c in zip(LINKS, law.missed, law.kept, law.again, strict=True)
    ]


def breaks_down(sample: Sample, u: ArrayLike, v: ArrayLike, law: Law) -> BoolArray:
    """Where a law, being of first order, leaves fewer true or predicted links than common ones.

    Under fixed weights that is so where a large share kept is undone of small entities in large predicted
    clusters: more records than labels hold.

    Parameters
    ----------
    sample : Sample
    u, v : float or float arrays
    law : Law
    """
    metric = corrected(pairwise_precision, 0.0, 0.0, law)
    totals = taylor(sample, [metric])
    seen = np.moveaxis(totals.mean[..., totals.positions(metric)], -1, 0)
    common, true, predicted = _links(seen, odds(u, "missed"), odds(v, "kept"), law)
    return np.asarray(np.minimum(true, predicted) - common < -1e-9 * np.abs(common))
