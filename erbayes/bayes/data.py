"""The data of a size model: counts of a sample on grids, and known totals of the prediction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import expit

from .._internal import remedies
from .._internal.arrays import FloatArray, IntArray
from .._internal.errors import NotIdentified
from ..design.contract import SelectedBySize
from ..design.sample import Sample, need_sample
from ..metrics.columns import B3_PRECISION, COMMON_LINKS, PREDICTED_LINKS, RECORDS, pairs
from ..units.units import KnownTotals, Units
from .contract import RANK, SINGLE, SizeGrid, basis

REACH = 16.0
"""The grid of sizes ends at this many times the largest predicted cluster or sampled entity, or at N."""
SMOOTHING = 0.4
"""Standard deviation of the kernel that smooths histograms of predicted sizes, in doublings."""
ROUGH = np.array([2.0, 0.6, *RANK * [0.5]])
"""Prior standard deviations of level, slope and tilt of the curve around which mates vary, as of `Mates`."""
PSEUDO = 0.5
"""Added to either variance of the dispersion of mates, so that a few pieces do not settle it."""
MOST_NOISE = 0.95
"""Largest dispersion between clusters of one size, whose share of right pairs then has a density."""


@dataclass(frozen=True, slots=True, eq=False)
class SampledEntities:
    """The distinct sampled entities, (u,): records, predicted links, and the bin of their size."""

    size: FloatArray
    links: FloatArray
    draws: IntArray
    bin: IntArray

    @property
    def several(self) -> Any:
        """Mark entities of two records or more, (u,)."""
        return self.size > 1

    @property
    def broken(self) -> Any:
        """Mark entities whose records are in two predicted clusters or more, (u,)."""
        return self.links < pairs(self.size)

    @property
    def share(self) -> FloatArray:
        """Share (k + ½)/(s - 1) of the most links that a broken entity of s records can keep, (u,).

        It has k = (s - 2) f/C2(s - 1) for f predicted links. That of two records, ½, moves no fit.
        """
        steps = np.maximum(self.size - 2, 0)
        kept = np.where(steps > 0, self.links / np.maximum(pairs(self.size - 1), 1), 0)
        return np.asarray((np.minimum(kept, 1) * steps + 0.5) / (steps + 1))


@dataclass(frozen=True, slots=True, eq=False)
class AskedMates:
    """The mates of sampled records among those of their predicted cluster without a label, by piece, (p,).

    A piece has n records of an entity of s. Put back among the records of its predicted cluster that have no
    label, it makes them l = `size`. One random mate of its records is of the same entity with probability
    `right` = (n - 1)/(l - 1). Its `weight` (n/l) π(l) (1/π(s) - 1), with π(s) the probability that any draw
    selects an entity of s, stands for those that none selects. It is over `dispersion`, the variance of sums
    over entities to that of single mates, at most 1. `noise` is that ratio for shares of pieces.
    """

    entity: IntArray
    size: FloatArray
    right: FloatArray
    weight: FloatArray
    dispersion: float = 1.0
    noise: float = 1.0

    @classmethod
    def of(cls, units: Units, drawn: Any, grid: SizeGrid, x: FloatArray) -> AskedMates:
        """Ask the mates of a sample; `drawn` gives π of sizes, and `x` are the bins of predicted clusters."""
        left = units.m - np.bincount(units.cluster, units.n)[units.cluster] + units.n
        some = left > 1
        n, s, l, entity = units.n[some], units.N[some], left[some], units.unit[some]
        y, w = (n - 1) / (l - 1), n / l * drawn(l) * (1 / drawn(s) - 1)
        q = _fit_curve(x, grid.bin(l), w, y)
        single = w @ (q * (1 - q)) + PSEUDO
        squares = w @ (y - q) ** 2, (np.bincount(entity, w * (y - q)) ** 2).sum()
        noise, dispersion = (min((float(square) + PSEUDO) / single, 1.0) for square in squares)
        return cls(entity, l, y, w / dispersion, dispersion, noise)


def _fit_curve(x: FloatArray, bins: IntArray, w: FloatArray, y: FloatArray) -> FloatArray:
    """Return the chances of right mates by a ridge logistic regression on sizes of clusters, (p,)."""
    centre = np.average(x[bins], weights=w) if w.any() else 0.0
    X = np.column_stack([np.ones(len(x)), x - centre, basis(x)])[bins]
    start = np.array([2.0, *np.zeros(1 + RANK)])
    b, precision = start, ROUGH**-2
    for _ in range(25):  # Newton's steps, of at most 1 in each coordinate
        q = expit(X @ b)
        curvature = (X.T * (w * q * (1 - q))) @ X + np.diag(precision)
        step = np.linalg.solve(curvature, X.T @ (w * (y - q)) - (b - start) * precision)
        b = b + step / max(1.0, np.abs(step).max())
    return np.asarray(expit(X @ b))


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """The data of a size model (`contract.DATA`), from a sample and from the prediction."""

    units: Units
    grid: SizeGrid
    entities: SampledEntities
    mates: AskedMates
    data: dict[str, Any]
    predicted_links: float

    @classmethod
    def of(cls, sample: Sample) -> Evidence:
        """Count a sample of entities, and refuse a sample that no size model can use."""
        design, units = need_design(sample), sample.units
        draws = np.bincount(sample.expansion.order, minlength=len(units))
        known, size = units.known, units.size
        assert known is not None
        grid = _make_grid(known, size.max())
        entities = SampledEntities(size, units.column(COMMON_LINKS), draws, grid.bin(size))
        selection = {
            "selection": np.asarray(design.selection(grid.size, units), dtype=float),
            "repeats": 0.0 if design.without_repeats else 1.0,
            "fixed_size": 1.0 if design.fixed_size else 0.0,
            "draws": int(draws.sum()),
        }
        # the sum of the chances of all entities, from those of the draws (Hansen and Hurwitz 1943)
        total = known.total(RECORDS) * draws.sum() / (draws @ (size / design.selection(size, units)))

        def drawn(sizes: FloatArray) -> Any:
            return 1 - chance_undrawn(np.asarray(design.selection(sizes, units)), total, selection)

        mates = AskedMates.of(units, drawn, grid, _list_cluster_bins(grid, known))
        data = _count_entities(grid, known, entities, mates, units) | selection
        data["centre"] = np.log2(size).mean()
        return cls(units, grid, entities, mates, data, known.total(PREDICTED_LINKS))


def data_of_prediction(known: KnownTotals) -> dict[str, Any]:
    """Return the data of a size model before any draw; `centre` is the mean for records of the prediction."""
    grid, empty, none = _make_grid(known), np.empty(0), np.empty(0, dtype=np.int64)
    entities, mates = SampledEntities(empty, empty, none, none), AskedMates(none, empty, empty, empty)
    return _count_entities(grid, known, entities, mates) | {
        "centre": np.average(np.log2(known.size), weights=known.size * known.count),
        "selection": grid.size,
        "repeats": 1.0,
        "fixed_size": 1.0,
        "draws": 0,
    }


def chance_undrawn(q: Any, total: Any, data: Mapping[str, Any]) -> Any:
    """Return the probability that no draw selects an entity, from its chance q in a draw out of a total."""
    repeats, fixed = data["repeats"], data["fixed_size"]
    p, n = q / total, fixed * data["draws"] + (1 - fixed) * total
    return repeats * (1 - p.clip(0, 1)) ** n + (1 - repeats) * (1 - n * p).clip(0, 1)


def _make_grid(known: KnownTotals, size: float = 1.0) -> SizeGrid:
    """Return the grid for the clusters of a prediction and for entities of up to a size."""
    largest = max(known.size.max(), size)
    return SizeGrid.up_to(max(min(REACH * largest, known.total(RECORDS)), largest))


def _count_entities(
    grid: SizeGrid,
    known: KnownTotals,
    entities: SampledEntities,
    mates: AskedMates,
    units: Units | None = None,
) -> dict[str, Any]:
    """Return the data that do not depend on the design."""
    biased = known.size @ (known.size * known.count) / (known.size @ known.count)
    return {
        "size": grid.size,
        "width": grid.width,
        "x": grid.x,
        "basis": basis(grid.x),
        "log_biased_mean": np.log(biased),
        "records": known.total(RECORDS),
        "log_predicted": _smooth_cluster_counts(grid, known),
        "drawn": np.bincount(entities.bin, entities.draws, len(grid.size)).astype(np.int64),
        "sampled_records": float(entities.size.sum()),
        "sampled_true_links": float(pairs(entities.size).sum()),
        "sampled_common_links": float(entities.links.sum()),
        **_count_errors(grid, entities),
        **_count_mates(grid, known, mates),
        **_count_unlabelled(grid, known, mates.noise, units),
    }


def need_design(sample: Sample) -> SelectedBySize:
    """Return the design of a sample, and refuse a sample that no size model can use."""
    need_sample(sample)
    units, design = sample.units, sample.design
    if not units.by_entity or len(np.unique(units.group)) != len(units):
        raise NotIdentified(
            "a size model needs sampled true entities as units: use the closed form or the "
            "bootstrap for blocks and predicted clusters"
        )
    if not isinstance(design, SelectedBySize):
        raise NotIdentified(
            "the chance of an entity is no known function of its size under this design", remedies.SIZE_MODEL
        )
    if units.known is None or not units.known.singletons:
        raise NotIdentified(
            "a size model needs the exact histogram of predicted cluster sizes, but labelled records "
            "without a predicted cluster were kept",
            remedies.LEAVE_OUT,
        )
    return design


def _count_errors(grid: SizeGrid, entities: SampledEntities) -> dict[str, Any]:
    """Count the sufficient statistics of the errors of entities, in each bin of size."""
    J, bins, several = len(grid.size), entities.bin, entities.several
    broken = entities.broken & (entities.size > 2)
    share, shares = entities.share[broken, None], np.zeros((J, 2))
    np.add.at(shares, bins[broken], np.hstack([np.log(share), np.log1p(-share)]))
    return {
        "several": np.bincount(bins[several], minlength=J),
        "intact": np.bincount(bins[several & ~entities.broken], minlength=J),
        "broken": np.bincount(bins[broken], minlength=J),
        "shares": shares,
        "sampled": np.unique(bins),
    }


def _list_cluster_bins(grid: SizeGrid, known: KnownTotals) -> FloatArray:
    """Return log2 of the sizes of the bins of predicted clusters."""
    return grid.x[: max(SINGLE, 1 + int(grid.bin(known.size[-1:])[0]))]


def _count_mates(grid: SizeGrid, known: KnownTotals, mates: AskedMates) -> dict[str, Any]:
    """Count the mates that are asked and those that are right, in each bin of sizes of predicted clusters."""
    bins, x = grid.bin(mates.size), _list_cluster_bins(grid, known)
    # counts of nothing are whole numbers, which another type of data would be
    asked, right = (np.bincount(bins, v, len(x)) + 0.0 for v in (mates.weight, mates.weight * mates.right))
    return {
        "cluster_x": x,
        "cluster_basis": basis(x),
        "cluster_centre": float(np.average(x, weights=asked)) if asked.any() else float(x.mean()),
        "asked": asked,
        "right": right,
    }


def _count_unlabelled(
    grid: SizeGrid, known: KnownTotals, noise: float, units: Units | None
) -> dict[str, Any]:
    """Count pairs of records without a label in one predicted cluster, in bins of the number of such records.

    Of `clusters` of one size, the share of the pairs that is right has variance q (1 - q) `noise` / clusters.
    """
    size, left, clusters, b3 = known.size, known.size, known.count, 0.0
    if units is not None:
        m, labelled = np.zeros(units.cluster.max() + 1), np.bincount(units.cluster, units.n)
        m[units.cluster] = units.m
        m, labelled = m[m > 0], labelled[m > 0]
        whole = known.count - np.bincount(np.searchsorted(known.size, m), minlength=len(known.size))
        size, left = np.append(size, m), np.append(left, m - labelled)
        clusters, b3 = np.append(whole, np.ones(len(m))), units.column(B3_PRECISION).sum()
    size, left, clusters = (v[(left > 0) & (clusters > 0)] for v in (size, left, clusters))
    J, bins = len(_list_cluster_bins(grid, known)), grid.bin(left)
    links = np.bincount(bins, clusters * pairs(left), J) + 0.0
    share = clusters * pairs(left) / np.maximum(links[bins], 1e-300)
    variance = np.bincount(bins, share**2 / clusters, J) * min(noise, MOST_NOISE)
    return {
        "unlabelled_links": links,
        "unlabelled_precision": 1 / np.where(links > 0, variance, 1.0) - 1 + 1e-3,
        "unlabelled_b3": np.bincount(bins, 2 * clusters * pairs(left) / size, J) + 0.0,
        "known_b3": float(b3 + (clusters * left / size).sum()),
    }


@lru_cache(maxsize=8)
def _smooth_cluster_counts(grid: SizeGrid, known: KnownTotals) -> FloatArray:
    """Return the log of the smoothed number of clusters by size, extrapolated past the largest, (J,)."""
    span = np.log2((grid.lower + grid.width) / grid.lower)
    clusters = _smooth_counts(grid.x, span, np.log2(known.size), known.count)
    predicted, density = grid.x <= np.log2(known.size.max()), clusters / span
    near = predicted & (grid.x > np.log2(known.size.max()) - 3)
    slope = -1.0
    if near.sum() > 2:
        log_density, weight = np.log(np.maximum(density[near], 1e-3)), np.sqrt(clusters[near] + 1e-9)
        slope = min(np.polyfit(grid.x[near], log_density, 1, w=weight)[0], slope)
    # Past the largest predicted cluster the histogram falls on at this slope, a little steeper to be safe.
    edge = np.flatnonzero(predicted)[-1]
    tail = max(density[edge], 1e-3) * np.exp((slope - 0.5) * (grid.x - grid.x[edge])) * span
    smoothed = np.log(np.where(predicted, np.maximum(clusters, 1e-6), np.maximum(tail, 1e-12)))
    smoothed.setflags(write=False)
    return np.asarray(smoothed)


def _smooth_counts(x: FloatArray, span: FloatArray, place: FloatArray, count: FloatArray) -> FloatArray:
    """Spread counts from their places over the points x, (J,), by a normal kernel times the spans."""
    kernel = np.exp(-0.5 * ((x[:, None] - place) / SMOOTHING) ** 2) * span[:, None]
    return np.asarray((kernel / kernel.sum(axis=0)) @ count)
