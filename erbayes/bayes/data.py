"""The data of a size model: counts of a sample on grids, and known totals of the prediction."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from .._internal import remedies
from .._internal.arrays import FloatArray, IntArray
from .._internal.errors import NotIdentified
from ..design.contract import SelectedBySize
from ..design.sample import Sample, need_sample
from ..metrics.columns import COMMON_LINKS, PREDICTED_LINKS, RECORDS, pairs
from ..units.units import KnownTotals, Units
from .grid import INTRUSION, SizeGrid, basis, nearest

REACH = 16.0
"""The grid of sizes ends at this many times the largest predicted cluster or sampled entity, or at N."""
SMOOTHING = 0.4
"""Standard deviation of the kernel that smooths histograms of predicted sizes, in doublings."""


@dataclass(frozen=True, slots=True, eq=False)
class SampledEntities:
    """The distinct sampled entities, (u,): records, predicted links, and the bin of their size.

    `foreign` counts pairs of an entity's record and a foreign one in one predicted cluster.
    """

    size: FloatArray
    links: FloatArray
    foreign: FloatArray
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

        It has k = (s - 2) f/C2(s - 1) for f predicted links.
        """
        # an entity of two records has no step, and its share of ½ has no influence on the fit
        steps = np.maximum(self.size - 2, 0)
        kept = np.where(steps > 0, self.links / np.maximum(pairs(self.size - 1), 1), 0)
        return np.asarray((np.minimum(kept, 1) * steps + 0.5) / (steps + 1))

    @property
    def rate(self) -> FloatArray:
        """Mean number of foreign records in the predicted cluster of an entity's record, (u,)."""
        return self.foreign / self.size


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """The data of a size model (`contract.DATA`), from a sample and from the prediction."""

    units: Units
    grid: SizeGrid
    entities: SampledEntities
    data: dict[str, Any]
    predicted_links: float

    @classmethod
    def of(cls, sample: Sample) -> Evidence:
        """Count a sample of entities, and refuse a sample that no size model can use."""
        design, units = need_design(sample), sample.units
        draws = np.bincount(sample.expansion.order, minlength=len(units))
        known, size, common = units.known, units.size, units.column(COMMON_LINKS)
        assert known is not None
        grid = _make_grid(known, size.max())
        foreign = 2 * (units.column(PREDICTED_LINKS) - common)
        entities = SampledEntities(size, common, np.maximum(foreign, 0), draws, grid.bin(size))
        data = _count_entities(grid, known, entities) | {
            "centre": np.log2(size).mean(),
            "selection": np.asarray(design.selection(grid.size, sample.units), dtype=float),
            "repeats": 0.0 if design.without_repeats else 1.0,
            "fixed_size": 1.0 if design.fixed_size else 0.0,
        }
        return cls(units, grid, entities, data, known.total(PREDICTED_LINKS))


def data_of_prediction(known: KnownTotals) -> dict[str, Any]:
    """Return the data of a size model before any draw; `centre` is the mean for records of the prediction."""
    grid, empty, none = _make_grid(known), np.empty(0), np.empty(0, dtype=np.int64)
    entities = SampledEntities(empty, empty, empty, none, none)
    return _count_entities(grid, known, entities) | {
        "centre": np.average(np.log2(known.size), weights=known.size * known.count),
        "selection": grid.size,
        "repeats": 1.0,
        "fixed_size": 1.0,
    }


def _make_grid(known: KnownTotals, *sizes: float) -> SizeGrid:
    """Return the grid for the clusters of a prediction and for entities of these sizes."""
    largest = max([known.size.max(), *sizes])
    return SizeGrid.up_to(max(min(REACH * largest, known.total(RECORDS)), largest))


def _count_entities(grid: SizeGrid, known: KnownTotals, entities: SampledEntities) -> dict[str, Any]:
    """Return the data that do not depend on the design."""
    biased = known.size @ (known.size * known.count) / (known.size @ known.count)
    return {
        "size": grid.size,
        "width": grid.width,
        "x": grid.x,
        "basis": basis(grid.x),
        "log_biased_mean": np.log(biased),
        "records": known.total(RECORDS),
        "predicted_links": max(known.total(PREDICTED_LINKS), 0.5),
        **_smooth_prediction(grid, known),
        **_count_draws(grid, entities),
        **_count_errors(grid, _make_intrusion_bins(known), entities),
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
            "without a predicted cluster were kept: use Missing.OMIT"
        )
    return design


def _count_draws(grid: SizeGrid, entities: SampledEntities) -> dict[str, Any]:
    """Count the draws of each size, and the links of the sampled entities."""
    return {
        "drawn": np.bincount(entities.bin, entities.draws, len(grid.size)).astype(np.int64),
        "draws": int(entities.draws.sum()),
        "sampled_records": float(entities.size.sum()),
        "sampled_true_links": float(pairs(entities.size).sum()),
        "sampled_common_links": float(entities.links.sum()),
        "sampled_foreign": float(entities.foreign.sum()),
    }


def _count_errors(grid: SizeGrid, intrusion: FloatArray, entities: SampledEntities) -> dict[str, Any]:
    """Count the sufficient statistics of the errors of entities, in each bin of size."""
    J, bins = len(grid.size), entities.bin

    def total(included: Any) -> IntArray:
        return np.bincount(bins[included], minlength=J)

    several, met, broken = entities.several, entities.foreign > 0, entities.broken & (entities.size > 2)
    share, shares = entities.share[broken, None], np.zeros((J, 2))
    np.add.at(shares, bins[broken], np.hstack([np.log(share), np.log1p(-share)]))
    met_bin, doubling = nearest(intrusion, entities.rate[met]), grid.doubling
    cell = doubling[bins[met]] * len(intrusion) + met_bin
    intrusions = np.bincount(cell, minlength=(doubling[-1] + 1) * len(intrusion))
    n = np.bincount(met_bin, minlength=len(intrusion))
    mean = np.bincount(met_bin, entities.rate[met], len(intrusion)) / np.maximum(n, 1)
    return {
        "several": total(several),
        "intact": total(several & ~entities.broken),
        "broken": total(broken),
        "shares": shares,
        "entities": np.bincount(bins, minlength=J),
        "met": total(met),
        "sampled": np.unique(bins),
        "intrusions": intrusions.reshape(-1, len(intrusion)),
        "met_by_doubling": np.bincount(doubling[bins[met]], minlength=doubling[-1] + 1),
        "sampled_doublings": np.unique(doubling[bins]),
        "in_doubling": doubling,
        "doubling_x": np.arange(doubling[-1] + 1) + 0.5,
        "intrusion_value": np.where(n > 0, mean, intrusion),
    }


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
    return np.log(np.where(predicted, np.maximum(clusters, 1e-6), np.maximum(tail, 1e-12)))


def _make_intrusion_bins(known: KnownTotals) -> FloatArray:
    """Return the bins of intrusion that a prediction can have."""
    return INTRUSION[: int(nearest(INTRUSION, known.size[-1:])[0]) + 2]


@lru_cache(maxsize=8)
def _smooth_prediction(grid: SizeGrid, known: KnownTotals) -> dict[str, FloatArray]:
    """Smooth the histograms of clusters by size and of records by intrusion, as log weights."""
    v = np.log2(_make_intrusion_bins(known))
    merged = known.size > 1
    neighbours, count = np.maximum(known.size[merged] - 1, 1), (known.size * known.count)[merged]
    exposure = _smooth_counts(v, np.where(v > -0.25, 1.0, 1e-9), np.log2(neighbours), count)
    if not merged.any():
        exposure = np.ones(len(v))
    below = exposure[np.searchsorted(v, 0.0)] * 2 ** (v / 2)
    exposure = np.where(v < 0, below, np.maximum(exposure, exposure.sum() * 1e-6))
    curves = {
        "log_predicted": _smooth_cluster_counts(grid, known),
        "log_exposure": np.log(exposure),
        "log_intrusion": v - 3,
        "intrusion_basis": basis(v),
    }
    for curve in curves.values():
        curve.setflags(write=False)
    return curves


def _smooth_counts(x: FloatArray, span: FloatArray, place: FloatArray, count: FloatArray) -> FloatArray:
    """Spread counts from their places over the points x, (J,), by a normal kernel times the spans."""
    kernel = np.exp(-0.5 * ((x[:, None] - place) / SMOOTHING) ** 2) * span[:, None]
    return np.asarray((kernel / kernel.sum(axis=0)) @ count)
