"""First-order laws: how totals of links respond to errors of labelling, and how metrics are corrected."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from ..._internal.arrays import BoolArray, FloatArray, floats
from ..._internal.errors import DataError, NotIdentified
from ...design import Design, WithLaw
from ...design.sample import Sample
from ...engine.closed_form import taylor
from ...metrics import columns as u_
from ...metrics.columns import COMMON_LINKS, PREDICTED_LINKS, TRUE_LINKS, Column, Pieces, PieceSum, Term
from ...metrics.definitions import (
    Metric,
    Metrics,
    Value,
    chosen,
    pairwise_f,
    pairwise_precision,
    pairwise_recall,
)

PRF = Metrics((pairwise_precision, pairwise_recall, pairwise_f()), "PRF")
"""Pairwise precision, recall and F1."""
LINKS: tuple[Column, ...] = (COMMON_LINKS, TRUE_LINKS, PREDICTED_LINKS)


@dataclass(frozen=True, slots=True)
class KeptAtHome:
    """First-order change Σ n (m - n) (N_c gain - X_c)/(N_c (N_c + 1)) of a total per record kept in home.

    Units weigh 1/N_c as labelled: a draw that contributed X_c/N_c, with X_c the sum of `term` over the pieces
    of its entity, contributes (X_c + gain)/(N_c + 1), and n draws of a piece have m - n such records each.
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
        total = np.bincount(units.group, weights=self.term(n, N, m))[units.group]
        change = n * (m - n) * (N * self.gain(n, N, m) - total) / (N * (N + 1))
        return np.bincount(units.unit, weights=change, minlength=len(units))


NOTHING = PieceSum("nothing", lambda n, N, m: np.zeros_like(n))
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


@dataclass(frozen=True, slots=True, repr=False)
class Law:
    """Response of totals of links to errors of labelling, for `corrected`.

    Each total of true labels is the observed total plus corrections, which are totals of other columns:

        true = observed + o(u) missed - o(v) kept + o(v)² again,

    where u and v are the shares missed and kept, and o(x) = x/(1 - x) are odds.

    Attributes
    ----------
    missed, kept, again : tuple of Column, (3,)
        The columns of the corrections, for common, true and predicted links.
    name : str
        The name by which signatures show the law.
    """

    missed: tuple[Column, Column, Column]
    kept: tuple[Column, Column, Column]
    again: tuple[Column, Column, Column] = field(default_factory=lambda: (NOTHING, NOTHING, NOTHING))
    name: str = field(default="", compare=False)

    def __repr__(self) -> str:
        return self.name or f"Law({', '.join(column.name for column in self.columns[len(LINKS) :])})"

    @property
    def columns(self) -> tuple[Column, ...]:
        """Return the distinct columns, those of observed links first."""
        return tuple(dict.fromkeys((*LINKS, *self.missed, *self.kept, *self.again)))


PROPORTIONAL = Law(
    (NOTHING, _MISSING, NOTHING), (_FALSE_COMMON, _FALSE, _FALSE_PREDICTED), name="PROPORTIONAL"
)
"""The law of draws proportional to size, weighted by 1/N_c *as labelled*. A draw contributes (N_c - 1)/2 to
true links, which is linear in the labelled records. Missed pieces leave common and predicted links as they
are, since an entity that looks smaller weighs more. Kept records change them if an entity is in several
pieces (see `KeptAtHome`)."""

FIXED = Law(
    (_AWAY_COMMON, _AWAY_TRUE, _AWAY_PREDICTED),
    (_KEPT_COMMON, _KEPT_TRUE, _KEPT_PREDICTED),
    (_KEPT_PAIRS, _KEPT_PAIRS, NOTHING),
    "FIXED",
)
"""The law of weights that do not depend on the labels, as under uniform clusters. Home is the predicted
cluster of a record drawn uniformly from the entity. A piece of n records is thus outside home with
probability 1 - n/N. Missing it loses C2(n) (1 - n/N) common links in mean."""


def law_of(design: Design) -> Law:
    """Return the law of a design: `PROPORTIONAL` or `FIXED`.

    Raises
    ------
    DataError
        The design has no first-order law.

    Examples
    --------
    >>> import erbayes as eb
    >>> law_of(eb.UniformRecords()), law_of(eb.UniformClusters())
    (PROPORTIONAL, FIXED)
    """
    if isinstance(design, WithLaw):
        return PROPORTIONAL if design.weights_follow_labels else FIXED
    raise DataError(
        f"no first-order law goes with {type(design).__name__}: pass law=, or use Restored "
        "or restored_analysis"
    )


def odds(share: ArrayLike, what: str) -> FloatArray:
    """Return the odds x/(1 - x) of shares x in [0, 1), which messages call the share `what`."""
    x = floats(share, f"shares {what}")
    outside = ~((x >= 0) & (x < 1))
    if outside.any():
        raise DataError(f"the share {what} must lie in [0, 1); {int(outside.sum())} of {x.size} do not")
    return np.asarray(x / (1 - x))


def corrected(metric: Metric | str, u: ArrayLike, v: ArrayLike, law: Law = PROPORTIONAL) -> Metric:
    """Return the metric of true labels, as a metric to estimate from labels with errors.

    Parameters
    ----------
    metric : Metric or str
        A metric of common, true and predicted links only, such as pairwise precision, recall, F or Jaccard.
    u, v : float or float arrays, in [0, 1)
        Shares missed and kept. Arrays go along the leading axes of the totals: one pair per draw.
    law : Law
        How totals respond to the errors. See `law_of` for that of a design.

    Returns
    -------
    Metric
        It has the name of `metric`.

    Raises
    ------
    DataError
        A metric of other totals than links, or shares outside [0, 1).

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
    others = [c.name for c in metric.columns if c not in LINKS]
    if others:
        raise DataError(
            f"{metric.name} needs the totals {', '.join(others)}: only metrics of common, true and "
            "predicted links have a closed form; use Restored or restored_analysis"
        )
    missed, kept = odds(u, "missed"), odds(v, "kept")
    columns = law.columns

    def formula(*totals: Value) -> Value:
        raw, true, predicted = _correct_links(totals, missed, kept, law)
        common = np.maximum(raw, 0)
        # beyond the bounds of first order, totals are cut to possible ones: see breaks_down
        links = common, common + np.maximum(true - raw, 0), np.maximum(predicted, common)
        by_name = {c.name: x for c, x in zip(LINKS, links, strict=True)}
        return metric.formula(*(by_name[c.name] for c in metric.columns))

    return replace(metric, columns=columns, formula=formula, source=f"{metric.source}, corrected labels")


def _correct_links(totals: Iterable[Value], missed: FloatArray, kept: FloatArray, law: Law) -> list[Value]:
    """Common, true and predicted links of true labels, from the totals of a law's columns and odds."""
    by_name = dict(zip((c.name for c in law.columns), totals, strict=True))
    return [
        by_name[x.name] + missed * by_name[a.name] - kept * by_name[b.name] + kept**2 * by_name[c.name]
        for x, a, b, c in zip(LINKS, law.missed, law.kept, law.again, strict=True)
    ]


def breaks_down(sample: Sample, u: ArrayLike, v: ArrayLike, law: Law) -> BoolArray:
    """Return whether shares are too large for a law, which is of first order.

    The law then leaves fewer true or predicted links than common ones. Under fixed weights this happens if a
    large share kept is undone for small entities in large predicted clusters. More records are then taken
    away than the labels hold.

    Parameters
    ----------
    sample : Sample
    u, v : float or float arrays of one shape, in [0, 1)
        Shares missed and kept.
    law : Law

    Returns
    -------
    bool array, of the shape of u and v

    Raises
    ------
    DataError
        Shares outside [0, 1).

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({i: i // 9 for i in range(90)}, {0: "x", 9: "y", 18: "y"})
    >>> breaks_down(eb.Sample(units, eb.UniformClusters()), 0.0, np.array([0.0, 0.5]), FIXED)
    array([False,  True])
    """
    metric = corrected(pairwise_precision, 0.0, 0.0, law)
    totals = taylor(sample, [metric])
    estimates = np.moveaxis(totals.mean[..., totals.positions(metric)], -1, 0)
    common, true, predicted = _correct_links(estimates, odds(u, "missed"), odds(v, "kept"), law)
    # equal totals may differ by rounding
    return np.asarray(np.minimum(true, predicted) - common < -1e-9 * np.abs(common))
