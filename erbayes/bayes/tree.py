"""A fit as a tree of groups for ArviZ, with the likelihood of each sampled entity and predictions.

An entity has up to three observations, each with a factor given those before it: its size, whether it is
broken, and the share of its links that it then keeps. Its mates have a quasi-likelihood, which predicts none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from typing import Any

import arviz as az
import numpy as np
import pymc as pm
import xarray as xr
from scipy.stats import beta

from .._internal.arrays import FloatArray, IntArray, Seed, generator
from .contract import DATA, dimensions
from .data import SampledEntities, chance_undrawn
from .model import log_ratio
from .programs import draw_from_prior
from .totals import FittedTotals, draw_totals

DIMS = {"size": "entity", "broken": "entity_of_several", "share": "broken_entity"}
"""Dimension of each factor, along the sampled entities that have the observation."""
TINY, NEARLY = 1e-300, 1 - 1e-15
"""Limits of probabilities whose logarithm is taken."""


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
class Event:
    """Factor of an event, observed as 1 or 0, whose `chance` is (chain, draw, k)."""

    entity: IntArray
    observed: IntArray
    chance: FloatArray

    def log_density(self) -> FloatArray:
        p = np.clip(self.chance, TINY, NEARLY)
        return np.log(np.where(self.observed == 1, p, 1 - p))

    def drawn(self, rng: np.random.Generator) -> Any:
        return (rng.random(self.chance.shape) < self.chance).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Category:
    """Factor of one of V values, counted some `times`, by the `chance` of each, (chain, draw, V).

    `weights`, (chain, draw, V), are those of predicted observations.
    """

    entity: IntArray
    position: IntArray
    value: Any
    chance: FloatArray
    weights: FloatArray
    times: Any = 1

    @property
    def observed(self) -> Any:
        return self.value[self.position]

    def log_density(self) -> FloatArray:
        return np.asarray(self.times * np.log(np.clip(self.chance[..., self.position], TINY, None)))

    def drawn(self, rng: np.random.Generator) -> Any:
        *draws, V = self.weights.shape
        row = np.arange(np.prod(draws, dtype=int)).reshape(*draws, 1) + np.zeros_like(self.position)
        return self.value[categorical(self.weights.reshape(-1, V), row, rng)]


Factor = Share | Event | Category
"""One factor of the likelihood of what is `observed` of k sampled entities, (chain, draw, k)."""


def categorical(weights: FloatArray, row: IntArray, rng: np.random.Generator) -> IntArray:
    """Draw positions 0 to V - 1 by the weights, (R, V), of each `row`, in the shape of `row`."""
    total = weights.cumsum(axis=-1)
    last = weights.shape[-1] - 1
    # Row r is shifted to (r, r + 1], so that all rows form one increasing array for one search.
    ends = total / total[:, -1:] + np.arange(len(total))[:, None]
    position = np.searchsorted(ends.ravel(), row + rng.random(row.shape), side="right") - row * (last + 1)
    return np.asarray(np.clip(position, 0, last))


def factors(
    entities: SampledEntities, data: Mapping[str, Any], by_size: Mapping[str, FloatArray]
) -> dict[str, Factor]:
    """Return the factors that some sampled entity has, by name; `by_size` is (chain, draw, J)."""
    e, bins, number, q = entities, entities.bin, by_size["entities"], data["selection"]
    several, broken = np.flatnonzero(e.several), np.flatnonzero(e.broken & (e.size > 2))
    total = (number * q).sum(axis=-1, keepdims=True)
    by_name: dict[str, Factor] = {
        "size": Category(
            np.arange(len(bins)),
            bins,
            np.floor(data["size"]).astype(np.int64),
            number * q / total,
            number * (1 - chance_undrawn(q, total, data)),
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
    return {name: factor for name, factor in by_name.items() if len(factor.entity)}


class FittedTree(FittedTotals):
    """A fit for the tools of PyMC and ArviZ."""

    @cached_property
    def pymc(self) -> pm.Model:
        """Return the model that was fitted as one PyMC model, to print, to change and to sample.

        `unbroken` and `all_right`, if the sample shows no such error, say that the population has none.
        Observed are counts of the sampled entities by bins of size, whose log densities omit terms of the
        counts alone, the mates that are right, and the log number of common links, of which they have the
        mean. Precision and recall are those of expected links: finite populations are not part of the model.
        """
        return self.model.build(self.evidence, log_ratio(self.draws.common, np.ones(1)))

    @cached_property
    def factors(self) -> dict[str, Factor]:
        """Return the factors of the likelihood of the sampled entities, by name."""
        return factors(self.evidence.entities, self.evidence.data, self.by_size)

    def log_likelihood(self) -> FloatArray:
        """Return the log-likelihood of each distinct sampled entity, (chain, draw, entity).

        It has the entity's `factors`, that of the size once per draw, and the mates of its records. The
        density of the number of common links stays, so that leave-one-out is inexact for a very large entity.
        """
        log_density = np.zeros((*self.population.true.shape, len(self.evidence.entities.bin)))
        for factor in self.factors.values():
            log_density[..., factor.entity] += factor.log_density()
        mates = self.evidence.mates
        q = np.clip(self.by_size["mates_right"][..., self.evidence.grid.bin(mates.size)], TINY, NEARLY)
        of_piece = mates.weight * (mates.right * np.log(q) + (1 - mates.right) * np.log1p(-q))
        for piece, entity in enumerate(mates.entity):
            log_density[..., entity] += of_piece[..., piece]
        return log_density

    @cached_property
    def tree(self) -> xr.DataTree:
        """Return the fit as a tree of groups, for ArviZ.

        - posterior: metrics, and parameters that vary between draws
        - by_size, totals: quantities by size of entities, and the totals of which the metrics are functions
        - log_likelihood, log_prior: one value per sampled entity, and one per part
        - observed_data: observations of the sampled entities (see `factors`)
        - constant_data: known quantities of the prediction, the design and the sampled entities
        """
        metrics, totals = self.apply(self.metrics), draw_totals(self.metrics, self.total)
        parameters = {k: v for k, v in self.draws.parameters.items() if np.ptp(v) > 0}
        entities, data = self.evidence.entities, self.evidence.data
        groups: dict[str, Mapping[str, Any]] = {
            "posterior": {**parameters, "metrics": metrics.chains},
            "by_size": {f"{name}_by_size": v for name, v in self.by_size.items()},
            "totals": {"totals": totals.chains},
            "log_likelihood": {"outcome": self.log_likelihood()},
            "log_prior": self.draws.log_prior,
            "observed_data": {name: factor.observed for name, factor in self.factors.items()},
            "constant_data": {
                **{k: getattr(entities, k) for k in ("links", "draws")},
                "records_of_entity": entities.size,
                "predicted_links": self.evidence.predicted_links,
                **{k: data[k] for k in ("records", "log_predicted", "selection")},
            },
        }
        return self._build_tree(groups, {"metric": list(metrics.names), "column": list(totals.names)})

    def _build_tree(
        self, groups: Mapping[str, Mapping[str, Any]], coords: Mapping[str, Any] | None = None
    ) -> xr.DataTree:
        """Return groups of arrays as a tree by ArviZ's conventions, with dimensions and coordinates."""
        ids = self.evidence.units.ids.astype(str).to_numpy()
        of_entity = ("outcome", "links", "draws", "records_of_entity")
        dims: dict[str, Any] = {name: datum.dims for name, datum in DATA.items()}
        dims |= {f"{name}_by_size": dimensions(name) for name in self.by_size}
        dims |= self.pymc.named_vars_to_dims
        dims |= {"metrics": ("metric",), "totals": ("column",), **dict.fromkeys(of_entity, ("entity",))}
        dims |= {name: (DIMS[name],) for name in self.factors}
        labels = {k: np.asarray(v) for k, v in self.pymc.coords.items() if v is not None}
        labels |= {"entity": ids, "entity_size": self.size, **(coords or {})}
        labels |= {DIMS[name]: ids[factor.entity] for name, factor in self.factors.items()}
        origin = {"inference_library": "erbayes", "sampler": "importance sampling"}
        origin["inference_library_version"] = version("erbayes")
        filled = {name: group for name, group in groups.items() if group}
        attributes = dict.fromkeys(("/", *filled), origin)
        tree: xr.DataTree = az.from_dict(filled, coords=labels, dims=dims, attrs=attributes)
        return tree

    def predictive(self, *, draws: int = 500, rng: Seed = None) -> xr.DataTree:
        """Return the tree with predicted observations added, for prior and posterior predictive checks.

        Groups prior_predictive, from this number of draws, and posterior_predictive, from those of the fit,
        have the variables of observed_data: sizes of the distinct entities of a sample by this design, and
        others given the sampled sizes. Group log_likelihood has each variable, prior the parameters.
        """
        rng, data = generator(rng), self.evidence.data
        prior = [draw_from_prior(part, data, draws, rng) for part in self.model.tied.values()]
        by_size = {k: v for part in prior for k, v in part.by_size.items()}
        of_prior = factors(self.evidence.entities, data, by_size)
        groups = {
            "prior": {k: v for part in prior for k, v in part.parameters.items()},
            "prior_predictive": {name: factor.drawn(rng) for name, factor in of_prior.items()},
            "posterior_predictive": {name: factor.drawn(rng) for name, factor in self.factors.items()},
            "log_likelihood": {name: factor.log_density() for name, factor in self.factors.items()},
        }
        tree = self.tree.copy()
        tree.update(self._build_tree(groups).children)
        return tree
