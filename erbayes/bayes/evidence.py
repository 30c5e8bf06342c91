"""Evidence: all that a model sees of a sample, as counts on grids and known totals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import FloatArray, IntArray
from ..columns import COMMON_LINKS, PREDICTED_LINKS, RECORDS, pairs
from ..design import SelectedBySize
from ..errors import NotIdentified
from ..sample import Sample, need_sample
from ..units import KnownTotals
from .grid import INTRUSION, SizeGrid, basis, nearest

REACH = 4.0
"""No entity is larger than this many times the largest predicted cluster or sampled entity."""
SMOOTHING = 0.4
"""Standard deviation of the kernel that smooths histograms of predicted sizes, in doublings."""


@dataclass(frozen=True, slots=True, eq=False)
class Entities:
    """The distinct sampled entities.

    Attributes
    ----------
    size, links, foreign : float arrays, (u,)
        Records, links found, and pairs with a foreign record in the same predicted cluster.
    draws : int array, (u,)
        How often each was drawn.
    bin : int array, (u,)
        Bin of its size.
    """

    size: FloatArray
    links: FloatArray
    foreign: FloatArray
    draws: IntArray
    bin: IntArray

    @property
    def several(self) -> Any:
        """True for entities of two records or more."""
        return self.size > 1

    @property
    def broken(self) -> Any:
        """True where not all records are in one predicted cluster."""
        return self.links < pairs(self.size)

    @property
    def share(self) -> FloatArray:
        """Links kept of the most that a broken entity can keep, in (0, 1), (u,).

        k = \\(f/C_2(s-1)\\) (s - 2) of s - 2 steps, as (k + ½)/(s - 1): size 2 has ½ and no weight.
        """
        steps = np.maximum(self.size - 2, 0)
        kept = np.where(steps > 0, self.links / np.maximum(pairs(self.size - 1), 1), 0)
        return np.asarray((np.minimum(kept, 1) * steps + 0.5) / (steps + 1))

    @property
    def rate(self) -> FloatArray:
        """Foreign records that a record meets, on average over the entity, (u,)."""
        return self.foreign / self.size


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What a sample says, on grids.

    Attributes
    ----------
    grid : SizeGrid
    entities : Entities
    data : dict of arrays
        The data of the PyMC model by name.
    records, predicted_links : float
        N and \\|P\\| of the whole prediction.
    """

    grid: SizeGrid
    entities: Entities
    data: dict[str, Any]
    records: float
    predicted_links: float

    @classmethod
    def of(cls, sample: Sample) -> Evidence:
        """Evidence of a sample of entities.

        Raises
        ------
        NotIdentified
            Units that are no single entities, totals that are not known, or a design under which
            inclusion does not depend on an entity's size alone.
        """
        need_sample(sample)
        units, design, known = sample.units, sample.design, sample.units.known
        if not units.by_entity or len(np.unique(units.group)) != len(units):
            raise NotIdentified(
                "a size model wants sampled true entities as units: blocks and predicted "
                "clusters are for taylor and the bootstrap"
            )
        if not isinstance(design, SelectedBySize):
            raise NotIdentified(
                f"under {type(design).__name__} the chance of an entity is no known function of its size; "
                "a size model wants UniformRecords, UniformClusters, DistinctEntities or BySize"
            )
        if known is None or not known.singletons:
            raise NotIdentified(
                "a size model needs the histogram of all predicted cluster sizes, which "
                "labelled records kept outside it blur: use Missing.OMIT"
            )
        size, links = units.size, units.column(COMMON_LINKS)
        biased = known.size @ (known.size * known.count) / (known.size @ known.count)
        grid = SizeGrid.up_to(REACH * max(known.size.max(), size.max()))
        draws = np.bincount(sample.expansion.unit, minlength=len(units))
        foreign = 2 * (units.column(PREDICTED_LINKS) - links)
        entities = Entities(size, links, np.maximum(foreign, 0), draws, grid.bin(size))
        records, predicted = known.total(RECORDS), known.total(PREDICTED_LINKS)
        shared = {
            "size": grid.size,
            "width": grid.width,
            "x": grid.x,
            "basis": basis(grid.x),
            "centre": np.log2(size).mean(),
            "log_biased_mean": np.log(biased),
            "records": records,
            "predicted_links": max(predicted, 0.5),
            "selection": np.asarray(design.selection(grid.size, units), dtype=float),
            "repeats": 0.0 if design.without_repeats else 1.0,
            "fixed_size": 1.0 if design.fixed_size else 0.0,
        }
        intrusion = INTRUSION[: int(nearest(INTRUSION, known.size[-1:])[0]) + 2]
        counted = _counted(grid, intrusion, entities) | _of_prediction(grid, intrusion, known)
        return cls(grid, entities, shared | counted, records, predicted)


def _counted(grid: SizeGrid, intrusion: FloatArray, entities: Entities) -> dict[str, Any]:
    """Sufficient statistics of the sampled entities in each bin of size."""
    J, bins = len(grid.size), entities.bin

    def total(of: Any, weights: Any = None) -> Any:
        return np.bincount(bins[of], None if weights is None else weights[of], J)

    several, met, broken = entities.several, entities.foreign > 0, entities.broken & (entities.size > 2)
    share, every = entities.share, np.ones(len(bins), dtype=bool)
    met_bin, doubling = nearest(intrusion, entities.rate[met]), grid.doubling
    cell = doubling[bins[met]] * len(intrusion) + met_bin
    intrusions = np.bincount(cell, minlength=(doubling[-1] + 1) * len(intrusion))
    n = np.bincount(met_bin, minlength=len(intrusion))
    mean = np.bincount(met_bin, entities.rate[met], len(intrusion)) / np.maximum(n, 1)
    return {
        "drawn": total(every, entities.draws.astype(float)).astype(np.int64),
        "draws": int(entities.draws.sum()),
        "several": total(several),
        "intact": total(several & ~entities.broken),
        "broken": total(broken),
        "intact_all": total(~entities.broken),
        "clean": total(~entities.broken & ~met),
        "shares": np.column_stack([total(broken, np.log(share)), total(broken, np.log1p(-share))]),
        "entities": total(every),
        "met": total(met),
        "sampled": np.unique(bins),
        "intrusions": intrusions.reshape(-1, len(intrusion)),
        "met_by_doubling": np.bincount(doubling[bins[met]], minlength=doubling[-1] + 1),
        "sampled_doublings": np.unique(doubling[bins]),
        "in_doubling": doubling,
        "doubling_x": np.arange(doubling[-1] + 1) + 0.5,
        "intrusion_value": np.where(n > 0, mean, intrusion),
        "sampled_records": float(entities.size.sum()),
        "sampled_true_links": float(pairs(entities.size).sum()),
        "sampled_common_links": float(entities.links.sum()),
        "sampled_foreign": float(entities.foreign.sum()),
    }


def _of_prediction(grid: SizeGrid, intrusion: FloatArray, known: KnownTotals) -> dict[str, Any]:
    """Smoothed histograms of the prediction, as log weights: clusters by size, records by intrusion."""
    span = np.log2((grid.lower + grid.width) / grid.lower)
    clusters = _smoothed(grid.x, span, np.log2(known.size), known.count)
    last = grid.x <= np.log2(known.size.max())
    density = clusters / span
    near = last & (grid.x > np.log2(known.size.max()) - 3)
    if near.sum() > 2:
        slope = min(
            np.polyfit(
                grid.x[near], np.log(np.maximum(density[near], 1e-3)), 1, w=np.sqrt(clusters[near] + 1e-9)
            )[0],
            -1.0,
        )
    else:
        slope = -1.0
    edge = np.flatnonzero(last)[-1]
    beyond = max(density[edge], 1e-3) * np.exp((slope - 0.5) * (grid.x - grid.x[edge])) * span
    clusters = np.where(last, np.maximum(clusters, 1e-6), np.maximum(beyond, 1e-12))
    v, merged = np.log2(intrusion), known.size > 1
    met, count = np.maximum(known.size[merged] - 1, 1), (known.size * known.count)[merged]
    exposure = _smoothed(v, np.where(v > -0.25, 1.0, 1e-9), np.log2(met), count)
    if not merged.any():
        exposure = np.ones(len(v))
    below = exposure[np.searchsorted(v, 0.0)] * 2 ** (v / 2)
    exposure = np.where(v < 0, below, np.maximum(exposure, exposure.sum() * 1e-6))
    return {
        "log_predicted": np.log(clusters),
        "log_exposure": np.log(exposure),
        "log_intrusion": v - 3,
        "intrusion_basis": basis(v),
    }


def _smoothed(x: FloatArray, span: FloatArray, at: FloatArray, count: FloatArray) -> FloatArray:
    """Counts at `at` spread over the points x by a normal kernel, in proportion to their spans."""
    kernel = np.exp(-0.5 * ((x[:, None] - at) / SMOOTHING) ** 2) * span[:, None]
    return np.asarray((kernel / kernel.sum(axis=0)) @ count)
