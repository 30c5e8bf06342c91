"""The likelihood of each sampled entity, factor by factor, and predictions of the same observations.

An entity has up to six observations. Each has a factor, given the observations before it:

1. its size
2. whether it is broken
3. if it is broken, the share of its links that it keeps
4. whether it meets a foreign record
5. if it meets some, their number per record
6. whether it matches a cluster of the second clustering, if there is one; it has no observations 2 to 5 then
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import beta

from .._internal.arrays import FloatArray, IntArray
from .evidence import Entities
from .grid import nearest
from .population import chance_undrawn

DIMS = {
    "size": "entity",
    "broken": "entity_of_several",
    "share": "broken_entity",
    "met": "modelled_entity",
    "rate": "met_entity",
    "matched": "entity",
}
"""Dimension of each factor, along the sampled entities that have the observation."""
TINY, NEARLY = 1e-300, 1 - 1e-15
"""Limits of chances whose logarithm is taken."""


@dataclass(frozen=True, slots=True, eq=False)
class Event:
    """Factor of an event, observed as 1 or 0, whose `chance` is (chain, draw, k)."""

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
    """Factor of a share in (0, 1), beta distributed with `mean` and `precision`, (chain, draw, k) each."""

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
class Category:
    """Factor of one of V values, counted some `times`, by the `chance` in the `row` of an entity.

    `chance` is (chain, draw, R, V), and `weights` are those of predicted observations.
    """

    entity: IntArray
    row: IntArray
    position: IntArray
    value: Any
    chance: FloatArray
    weights: FloatArray
    times: Any = 1

    @property
    def observed(self) -> Any:
        return self.value[self.position]

    def log_density(self) -> FloatArray:
        chance = self.chance[..., self.row, self.position]
        return np.asarray(self.times * np.log(np.clip(chance, TINY, None)))

    def drawn(self, rng: np.random.Generator) -> Any:
        *draws, R, V = self.weights.shape
        row = np.arange(np.prod(draws, dtype=int)).reshape(*draws, 1) * R + self.row
        return self.value[categorical(self.weights.reshape(-1, V), row, rng)]


Factor = Event | Share | Category
"""One factor of the likelihood, of what is `observed` of k sampled entities.

It has the log density of the observations, and draws predicted ones, (chain, draw, k).
"""


def categorical(weights: FloatArray, row: IntArray, rng: np.random.Generator) -> IntArray:
    """Draw positions 0 to V - 1 by the weights, (R, V), of each `row`, in the shape of `row`."""
    total = weights.cumsum(axis=-1)
    last = weights.shape[-1] - 1
    # Row r is moved to (r, r + 1], so that all rows form one increasing array for one search.
    ends = total / total[:, -1:] + np.arange(len(total))[:, None]
    position = np.searchsorted(ends.ravel(), row + rng.random(row.shape), side="right") - row * (last + 1)
    return np.asarray(np.clip(position, 0, last))


def factors(
    entities: Entities, data: Mapping[str, Any], by_size: Mapping[str, FloatArray]
) -> dict[str, Factor]:
    """Return the factors that some sampled entity has, by name; `by_size` is (chain, draw, J)."""
    e, bins, rest = entities, entities.bin, ~entities.matched
    several, met = np.flatnonzero(e.several & rest), np.flatnonzero((e.foreign > 0) & rest)
    broken, modelled = np.flatnonzero(e.broken & (e.size > 2) & rest), np.flatnonzero(rest)
    anyone, number = np.arange(len(bins)), by_size["entities"]
    of_draws, of_distinct = number * data["selection"], number * (1 - chance_undrawn(number, data))
    found: dict[str, Factor] = {
        "size": Category(
            anyone,
            np.zeros_like(bins),
            bins,
            np.floor(data["size"]).astype(np.int64),
            (of_draws / of_draws.sum(axis=-1, keepdims=True))[..., None, :],
            of_distinct[..., None, :],
            e.draws,
        ),
        "broken": Event(several, e.broken[several].astype(int), 1 - by_size["intact"][..., bins[several]]),
        "share": Share(
            broken,
            e.share[broken],
            by_size["share_mean"][..., bins[broken]],
            by_size["share_precision"][..., bins[broken]],
        ),
    }
    if "met" in by_size:
        position = nearest(np.exp2(data["log_intrusion"] + 3), e.rate[met])
        row, chance = data["in_doubling"][bins[met]], by_size["intrusion_chance"]
        found["met"] = Event(modelled, (e.foreign > 0)[rest].astype(int), by_size["met"][..., bins[rest]])
        found["rate"] = Category(met, row, position, data["intrusion_value"], chance, chance)
    if "stands" in by_size:
        chance = data["second"] * by_size["stands"] / number
        found["matched"] = Event(anyone, e.matched.astype(int), chance[..., bins])
    return {name: factor for name, factor in found.items() if len(factor.entity)}
