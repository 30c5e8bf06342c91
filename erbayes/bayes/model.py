"""The size model: its three parts, tied by common links, and the finite populations that they complete."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.tensor.special import log_softmax

from .._internal.arrays import FloatArray, IntArray
from .._internal.errors import DataError, need_object
from .contract import RETURNED, Data, ModelPart, PlacedPart, coords, dimensions, tensor, title
from .data import Evidence, chance_undrawn
from .error_models import Mates, Retention
from .priors import PredictionInformed, SizeFamily, counts
from .programs import CompiledPart, PartDraws, building

FLOOR = 0.01
"""Smallest relative standard deviation of a number of common links. It keeps posteriors smooth."""
CEILING = 0.5
"""Largest one, so that common links have an influence even if tails are heavy."""
NEAR = 0.05
"""Relative standard deviation by which common links of a population may differ from those of the mates."""
PARTNERS = 16
"""Pairs of a draw of sizes and one of retention, of which each draw of the mates takes one."""


def expect_links(rest: Any, by_size: Mapping[str, Any], data: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    """Return expected true and common links of sampled entities and the `rest`, and a relative variance.

    They are arrays, (...), or tensors. The variance is that of the log of the realised common links, from the
    square of `FLOOR` to that of `CEILING`.
    """
    c2 = data["size"] * (data["size"] - 1) / 2
    links = rest * c2
    common = (links * by_size["kept"]).sum(-1) + data["sampled_common_links"]
    variance = (links * c2 * by_size["kept_square"]).sum(-1) / (common**2 + 1e-200)
    return links.sum(-1) + data["sampled_true_links"], common, variance.clip(0, CEILING**2) + FLOOR**2


def expect_unsampled(by_size: Mapping[str, Any], data: Mapping[str, Any]) -> Any:
    """Return the expected number of unsampled entities, M_s (1 - π_s), by size, (..., J)."""
    entities, q = by_size["entities"], data["selection"]
    rest = entities * chance_undrawn(q, (entities * q).sum(-1)[..., None], data)
    records = data["records"] - data["sampled_records"]
    # scaled, so that the records of the sample and of the rest add to N
    return rest * (records / ((rest * data["size"]).sum(-1) + 1e-200))[..., None]


@dataclass(frozen=True, slots=True)
class Sizes:
    """The part for sizes: how many entities have each size, and the sizes of the draws."""

    family: SizeFamily

    @property
    def title(self) -> str:
        return title(self.family)

    def given_size(self, data: Mapping[str, Any]) -> dict[str, Any]:
        weights = tensor(self.family.log_weights(data), "log_weights", self.title)
        log_p = log_softmax(weights + pt.log(data["selection"]), axis=-1)
        counts("drawn_sizes", data["draws"], log_p, data["drawn"], dims="entity_size")
        of_records = log_softmax(weights + pt.log(data["size"]), axis=-1)
        return {"entities": data["records"] * pt.exp(of_records) / data["size"]}


@dataclass(frozen=True, slots=True)
class SizeModel:
    """A model of how many entities have each size, of the links that they keep, and of mates that are right.

    Parameters
    ----------
    sizes : SizeFamily
        How many entities have each size.
    retention : ModelPart
        Links that an entity keeps: `Retention`, or a part of your own (`contract.RETURNED`).
    mates : ModelPart
        Mates in predicted clusters that are of one entity: `Mates`, or your own. It alone decides precision.

    Raises
    ------
    DataError
        A part that is a class, or has no method of its place.

    Examples
    --------
    >>> from erbayes.bayes import Mates, SizeModel, ZetaSizes
    >>> list(SizeModel(sizes=ZetaSizes(), mates=Mates(all_right=0.2)).tied)
    ['sizes', 'retention', 'mates']
    """

    sizes: SizeFamily = field(default_factory=PredictionInformed)
    retention: ModelPart = field(default_factory=Retention)
    mates: ModelPart = field(default_factory=Mates)

    def __post_init__(self) -> None:
        for place in RETURNED:
            method = "log_weights" if place == "sizes" else "given_size"
            need_object(getattr(self, place), method, f"{place} of a SizeModel must have a method {method}")

    @property
    def tied(self) -> dict[str, PlacedPart]:
        """Return the parts, which are independent but for the number of common links."""
        parts = {"sizes": Sizes(self.sizes), "retention": self.retention, "mates": self.mates}
        return {place: PlacedPart(place, part) for place, part in parts.items()}

    def compile(self, data: Mapping[str, Any]) -> dict[str, CompiledPart]:
        """Return the parts, compiled and with these data."""
        return {place: CompiledPart.of(part, data) for place, part in self.tied.items()}

    def build(self, evidence: Evidence, log_common: FloatArray) -> pm.Model:
        """Build one PyMC model of the parts, given posterior draws of the log number of common links.

        Sizes and retention observe the mean and variance of these, so that nothing of them moves precision.
        """
        numbers = evidence.data
        data = Data({name: pt.as_tensor(np.asarray(v)) for name, v in numbers.items()})
        with building(), pm.Model(coords=coords(numbers), model=None) as model:
            by_size: dict[str, Any] = {}
            for part in self.tied.values():
                by_size |= part.given_size(data)
            for name in ("entities", "intact", "kept", "kept_square", "mates_right"):
                by_size[name] = pm.Deterministic(f"{name}_by_size", by_size[name], dims=dimensions(name))
            true, common, variance = expect_links(expect_unsampled(by_size, data), by_size, data)
            sd = pt.sqrt(variance + np.var(log_common))
            pm.Normal("log_common_links", pt.log(common), sd, observed=np.mean(log_common))
            right = numbers["sampled_common_links"] + numbers["unlabelled_links"] @ by_size["mates_right"]
            pm.Deterministic("expected_precision", right / max(evidence.predicted_links, 0.5))
            pm.Deterministic("expected_recall", common / true)
        return model


def need_model(model: SizeModel | None) -> SizeModel:
    """Return a model, by default `SizeModel()`, and refuse what is none."""
    model = SizeModel() if model is None else model
    need_object(model, "tied", "a model is an object such as SizeModel()")
    return model


def log_ratio(links: FloatArray, known: FloatArray) -> FloatArray:
    """Return the log of a ratio of numbers of links, each taken for half a link at least."""
    return np.asarray(np.log(np.maximum(links, 0.5)) - np.log(np.maximum(known, 0.5)))


@dataclass(frozen=True, slots=True, eq=False)
class JoinedDraws:
    """Joint posterior draws of parts, (chain, draw, ...).

    `common` and `b3` are the links and the sum of B-cubed precisions of records that are right, by the mates,
    (chain, draw). `agreeing` is the mean agreement of these links with those of sizes and retention.
    """

    by_size: dict[str, FloatArray]
    parameters: dict[str, FloatArray]
    log_prior: dict[str, FloatArray]
    common: FloatArray
    b3: FloatArray
    agreeing: float


def poststratify(
    right: FloatArray, data: Mapping[str, Any], rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return common links and the sum of B-cubed precisions, (...), given draws of `mates_right`, (..., c).

    Known pieces are kept, and other records have the share q of their mates, with noise of single clusters.
    """
    links, precision = data["unlabelled_links"], data["unlabelled_precision"]
    share, drawn = right.copy(), np.flatnonzero(links > 0)
    q = right[..., drawn]
    noisy = rng.beta(np.maximum(q * precision[drawn], 1e-9), np.maximum((1 - q) * precision[drawn], 1e-9))
    share[..., drawn] = np.where(q < 1, noisy, q)
    b3 = np.minimum(data["known_b3"] + share @ data["unlabelled_b3"], data["records"])
    return data["sampled_common_links"] + share @ links, b3


def join_parts(
    parts: Mapping[str, PartDraws], data: Mapping[str, Any], rng: np.random.Generator
) -> JoinedDraws:
    """Join draws of the parts by the common links: each draw of the mates takes one of some pairs of others.

    It goes one way. Each draw of the mates stays, so that precision depends on no prior of sizes.
    """
    for (one, a), (other, b) in combinations(parts.items(), 2):
        for name in [*(a.by_size.keys() & b.by_size), *(a.parameters.keys() & b.parameters)]:
            raise DataError(f"both {one} and {other} have a '{name}': rename one of them")
    sizes, retention, mates = (parts[name] for name in ("sizes", "retention", "mates"))
    common, b3 = poststratify(mates.by_size["mates_right"], data, rng)
    C, K = common.shape
    chain, draw = np.arange(C)[:, None], np.arange(K)
    # Resampled draws of a part have copies next to each other. All draws of a part are shifted by one number,
    # so that copies stay next to each other among the joint draws, where ArviZ's effective sample size allows
    # for them, as it cannot for copies at random places. The pairs of a draw are far apart.
    shift, step = rng.integers(K, size=(2, C, 1)), max(K // PARTNERS, 1)
    j = step * np.arange(PARTNERS).reshape(-1, 1, 1)
    pairs = np.stack([(draw + shift[0] + j) % K, (draw + shift[1] - j) % K])
    rest, log_w = expect_unsampled(sizes.by_size, data), np.empty((PARTNERS, C, K))
    distance = np.empty_like(log_w)
    for at, (i, r) in enumerate(pairs.swapaxes(0, 1)):
        kept = {name: retention.by_size[name][chain, r] for name in ("kept", "kept_square")}
        _, expected, variance = expect_links(rest[chain, i], kept, data)
        distance[at] = log_ratio(expected, common) ** 2 / variance
        log_w[at] = -distance[at] / 2 - np.log(variance) / 2
    # the largest of log weights plus Gumbel noise is a draw with these weights
    best = (log_w + rng.gumbel(size=log_w.shape)).argmax(axis=0)
    of_sizes, of_retention = (np.take_along_axis(of, best[None], 0)[0] for of in pairs)
    chosen = {"sizes": of_sizes, "retention": of_retention, "mates": np.broadcast_to(draw, (C, K))}

    def joint(field: str) -> dict[str, FloatArray]:
        return {k: v[chain, chosen[name]] for name, p in parts.items() for k, v in getattr(p, field).items()}

    log_prior = {name: p.log_prior[chain, chosen[name]] for name, p in parts.items()}
    x = common - common.mean()
    for name in ("sizes", "retention"):
        # a prior of sizes changes what follows from a number of common links, and not this number, so that
        # what a line in it says goes
        y = log_prior[name]
        log_prior[name] = np.asarray(y - x * (x * y).sum() / max((x * x).sum(), 1e-300))
    agreeing = float(np.exp(-distance.min(axis=0) / 2).mean())
    return JoinedDraws(joint("by_size"), joint("parameters"), log_prior, common, b3, agreeing)


@dataclass(frozen=True, slots=True, eq=False)
class Populations:
    """Finite populations: numbers of unsampled entities by size, (..., J), and of all links, (...)."""

    number: FloatArray
    true: FloatArray
    common: FloatArray

    def scale_true(self, common: FloatArray) -> FloatArray:
        """Return true links, (...), scaled as the own common links to those of a draw."""
        scaled = np.maximum(self.true * np.exp(log_ratio(common, self.common)), common)
        # if no link is lost, true links equal the common ones
        return np.where(self.true == self.common, common, scaled)


def draw_populations(
    by_size: Mapping[str, FloatArray],
    common: FloatArray,
    data: Mapping[str, Any],
    rng: np.random.Generator,
    tries: int = 3,
) -> Populations:
    """Draw a finite population for each posterior draw, (..., J), one of `tries` chosen by `common` links.

    Numbers of entities are Poisson and shares of links kept beta distributed, with the moments of the model.
    """
    s, expected = data["size"], expect_unsampled(by_size, data)
    numbers, found = _draw_entities(expected, by_size, s, tries, rng)
    found = found + data["sampled_common_links"]
    distance = log_ratio(found, common) / NEAR
    chosen = np.argmax(-0.5 * distance**2 + rng.gumbel(size=distance.shape), axis=0)[None]
    number = np.take_along_axis(numbers, chosen[..., None], 0)[0]
    found = np.take_along_axis(found, chosen, 0)[0]
    return Populations(number, number @ (s * (s - 1) / 2) + data["sampled_true_links"], found)


def _draw_entities(
    expected: FloatArray,
    by_size: Mapping[str, FloatArray],
    s: FloatArray,
    tries: int,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Draw the entities of each size, (tries, ..., J), and their common links, (tries, ...)."""
    intact, kept, kept_square = (by_size[name] for name in ("intact", "kept", "kept_square"))
    drawn = (tries, *expected.shape)
    complete = rng.poisson(expected * intact, drawn)
    broken = rng.poisson(expected * (1 - intact), drawn)
    number = (complete + broken).astype(float)
    mean = np.clip((kept - intact) / (1 - intact + 1e-300), 0, 1)
    variance = np.maximum((kept_square - intact) / (1 - intact + 1e-300) - mean**2, 0)
    common = (complete + broken * _draw_mean_share(broken, mean, variance, rng)) @ (s * (s - 1) / 2)
    return number, common


MANY = 30
"""Number of broken entities above which the mean of their shares is normal."""


def _draw_mean_share(
    broken: IntArray, mean: FloatArray, variance: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Draw the mean share of links that `broken` entities keep, (tries, ..., J)."""
    share = np.empty(broken.shape)
    share[...] = mean
    some = np.flatnonzero((broken > 0) & (variance > 1e-12))
    n = broken.ravel()[some]
    for few in (True, False):
        at = some[(n <= MANY) == few]
        m, v = (x.ravel()[at % mean.size] for x in (mean, variance))
        v = v / broken.ravel()[at]
        # beta, so that a single very large entity may keep any share from 0 to 1
        if few:
            precision = np.maximum(m * (1 - m) / v - 1, 1e-6)
            drawn = rng.beta(np.maximum(m * precision, 1e-9), np.maximum((1 - m) * precision, 1e-9))
        else:
            drawn = m + np.sqrt(v) * rng.standard_normal(len(at))
        share.ravel()[at] = drawn
    return np.clip(share, 0, 1)


def join_and_complete(
    parts: Mapping[str, PartDraws], data: Mapping[str, Any], rng: np.random.Generator
) -> tuple[JoinedDraws, Populations]:
    """Join draws of parts, and draw a finite population for each joint draw."""
    draws = join_parts(parts, data, rng)
    return draws, draw_populations(draws.by_size, draws.common, data, rng)
