"""What each sampled entity shows: its likelihood, and what a model predicts in its place.

An entity shows up to five things, each given those before it: its size, whether the prediction breaks it, the
share of its links that a broken one keeps, whether it meets a foreign record, and how many of them it meets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.stats import beta

from ..arrays import FloatArray, IntArray
from .evidence import Entities
from .grid import nearest
from .population import missed

DIMS = {
    "size": "entity",
    "broken": "entity_of_several",
    "share": "broken_entity",
    "met": "entity",
    "rate": "met_entity",
}
"""Dimension of each thing that sampled entities show, which are the entities that show it."""
TINY, NEARLY = 1e-300, 1 - 1e-15
"""Chances are cut to these before their logarithm is taken."""


class Factor(Protocol):
    """One thing that sampled entities show, k of them.

    Attributes
    ----------
    entity : int array, (k,)
        Position of each among the distinct sampled entities.
    observed : array, (k,)
    """

    @property
    def entity(self) -> IntArray: ...
    @property
    def observed(self) -> Any: ...
    def log_density(self) -> FloatArray:
        """Log density of what was observed, (chain, draw, k)."""
        ...

    def drawn(self, rng: np.random.Generator) -> Any:
        """What the model predicts in its place, (chain, draw, k)."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Event:
    """What happens to an entity or does not, as 1 or 0, with a chance (chain, draw, k)."""

    entity: IntArray
    observed: IntArray
    chance: FloatArray

    def log_density(self) -> FloatArray:
        p = np.clip(self.chance, TINY, NEARLY)
        return np.asarray(np.where(self.observed, np.log(p), np.log1p(-p)))

    def drawn(self, rng: np.random.Generator) -> Any:
        return (rng.random(self.chance.shape) < self.chance).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Share:
    """A share in (0, 1), beta distributed with some mean and precision, (chain, draw, k)."""

    entity: IntArray
    observed: FloatArray
    mean: FloatArray
    precision: FloatArray

    def log_density(self) -> FloatArray:
        a = self.mean * self.precision
        return np.asarray(beta.logpdf(self.observed, a, self.precision - a))

    def drawn(self, rng: np.random.Generator) -> Any:
        a = self.mean * self.precision
        return rng.beta(np.maximum(a, 1e-9), np.maximum(self.precision - a, 1e-9))


@dataclass(frozen=True, slots=True, eq=False)
class Rate:
    """Foreign records that a record meets, in bins, with the chance of each bin, (chain, draw, R, V).

    `row` and `bin`, (k,), are where the chance of what was observed lies; `value`, (V,), is that of each bin.
    """

    entity: IntArray
    row: IntArray
    bin: IntArray
    chance: FloatArray
    value: FloatArray

    @property
    def observed(self) -> FloatArray:
        return np.asarray(self.value[self.bin])

    def log_density(self) -> FloatArray:
        return np.log(np.clip(self.chance[..., self.row, self.bin], TINY, None))

    def drawn(self, rng: np.random.Generator) -> Any:
        *draws, R, V = self.chance.shape
        every = np.arange(np.prod(draws, dtype=int)).reshape(*draws, 1) * R + self.row
        return self.value[categorical(self.chance.reshape(-1, V), every, rng)]


@dataclass(frozen=True, slots=True, eq=False)
class Size:
    """Sizes: of draws for the likelihood, an entity drawn twice counted twice, and of distinct entities.

    `of_draws` and `of_distinct`, (chain, draw, J), are weights of sizes in a draw, and among the distinct
    entities of a sample; `size`, (J,), is that of each bin.
    """

    entity: IntArray
    bin: IntArray
    times: IntArray
    of_draws: FloatArray
    of_distinct: FloatArray
    size: IntArray

    @property
    def observed(self) -> IntArray:
        return np.asarray(self.size[self.bin])

    def log_density(self) -> FloatArray:
        p = self.of_draws / self.of_draws.sum(axis=-1, keepdims=True)
        return np.asarray(self.times * np.log(np.clip(p[..., self.bin], TINY, None)))

    def drawn(self, rng: np.random.Generator) -> Any:
        *draws, J = self.of_distinct.shape
        row = np.arange(np.prod(draws, dtype=int)).reshape(*draws, 1)
        each = np.broadcast_to(row, (*draws, len(self.entity)))
        return self.size[categorical(self.of_distinct.reshape(-1, J), each, rng)]


def categorical(weights: FloatArray, row: IntArray, rng: np.random.Generator) -> IntArray:
    """Positions drawn in proportion to weights, (R, V), each from the row that it is given.

    Examples
    --------
    >>> categorical(np.array([[0.0, 1.0], [3.0, 0.0]]), np.array([0, 1, 0]), np.random.default_rng(1))
    array([1, 0, 1])
    """
    total = weights.cumsum(axis=-1)
    last = weights.shape[-1] - 1
    every = total / total[:, -1:] + np.arange(len(total))[:, None]  # one increasing array of all rows
    at = np.searchsorted(every.ravel(), row + rng.random(row.shape), side="right") - row * (last + 1)
    return np.asarray(np.clip(at, 0, last))


def factors(
    entities: Entities, data: Mapping[str, Any], by_size: Mapping[str, FloatArray]
) -> dict[str, Factor]:
    """What the sampled entities show, under quantities by size (chain, draw, J).

    size, broken, share (kept of the most that a broken entity of 3 records or more can keep), met, rate
    (foreign records that a record meets); without those that no sampled entity shows.
    """
    e, bins = entities, entities.bin
    several, met = np.flatnonzero(e.several), np.flatnonzero(e.foreign > 0)
    parted = np.flatnonzero(e.broken & (e.size > 2))
    intrusion = nearest(np.exp2(data["log_intrusion"] + 3), e.rate[met])
    every, number = np.arange(len(bins)), by_size["entities"]
    found: dict[str, Factor] = {
        "size": Size(
            every,
            bins,
            e.draws,
            number * data["selection"],
            number * (1 - missed(number, data)),
            np.floor(data["size"]).astype(np.int64),
        ),
        "broken": Event(several, e.broken[several].astype(int), 1 - by_size["intact"][..., bins[several]]),
        "share": Share(
            parted,
            e.share[parted],
            by_size["share_mean"][..., bins[parted]],
            by_size["share_precision"][..., bins[parted]],
        ),
        "met": Event(every, (e.foreign > 0).astype(int), by_size["met"][..., bins]),
        "rate": Rate(
            met,
            data["in_doubling"][bins[met]],
            intrusion,
            by_size["intrusion_chance"],
            data["intrusion_value"],
        ),
    }
    return {name: factor for name, factor in found.items() if len(factor.entity)}
