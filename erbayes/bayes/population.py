"""From draws of parts to finite populations with about the known number of predicted links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from .._internal.arrays import BoolArray, FloatArray, IntArray
from .._internal.errors import DataError
from .importance import resampled, truncated
from .programs import PartDraws

FLOOR = 0.01
"""Smallest relative standard deviation of the known number of predicted links. It keeps posteriors smooth."""
CEILING = 0.5
"""Largest one, so that the known number has an influence even if tails are heavy."""
NEAR = 0.05
"""Relative standard deviation by which the links of a population may differ from the known number."""
PARTNERS = 4
"""Number of partners of each draw of the first part, of which one is chosen."""
TIED = ("entities", "kept", "kept_square", "foreign", "foreign_square")
"""Quantities by size on which the number of predicted links depends."""


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedLinks:
    """Expected links of a population and variances of the realised ones, as arrays, (...), or tensors."""

    true: Any
    common: Any
    false: Any
    common_variance: Any
    false_variance: Any
    covariance: Any

    @classmethod
    def of(cls, rest: Any, by_size: Mapping[str, Any], data: Mapping[str, Any]) -> ExpectedLinks:
        """Add the links of sampled entities to those of the `rest`."""
        s = data["size"]
        foreign, foreign_square = (by_size.get(name, 0.0) for name in ("foreign", "foreign_square"))
        c2 = s * (s - 1) / 2
        records, links = rest * s, rest * c2
        kept = links * by_size["kept"]
        return cls(
            links.sum(-1) + data["sampled_true_links"],
            kept.sum(-1) + data["sampled_common_links"],
            ((records * foreign).sum(-1) + data["sampled_foreign"]) / 2,
            (links * c2 * by_size["kept_square"]).sum(-1),
            (records * s * foreign_square).sum(-1) / 4,
            (kept * s * foreign).sum(-1) / 2,
        )

    @property
    def predicted(self) -> Any:
        """Expected number of predicted links, the common and the false ones."""
        return self.common + self.false

    @property
    def variance(self) -> Any:
        """Variance of the realised number of predicted links."""
        return self.common_variance + self.false_variance + 2 * self.covariance

    @property
    def relative_variance(self) -> Any:
        """Variance of the log number of predicted links, from the square of `FLOOR` to that of `CEILING`."""
        return (self.variance / self.predicted**2).clip(0, CEILING**2) + FLOOR**2


def chance_undrawn(entities: Any, data: Mapping[str, Any]) -> Any:
    """Return the probability that no draw selects an entity, by size, given `entities` per size, (..., J)."""
    q, repeats, fixed = data["selection"], data["repeats"], data["fixed_size"]
    total = (entities * q).sum(-1)[..., None]
    p, n = q / total, fixed * data["draws"] + (1 - fixed) * total
    return repeats * (1 - p.clip(0, 1)) ** n + (1 - repeats) * (1 - n * p).clip(0, 1)


def expect_unsampled(by_size: Mapping[str, Any], data: Mapping[str, Any]) -> Any:
    """Return the expected number of unsampled entities, M_s (1 - π_s), by size, (..., J)."""
    entities = by_size["entities"]
    rest, records = entities * chance_undrawn(entities, data), data["records"] - data["sampled_records"]
    # scaled, so that the records of the sample and of the rest add to N
    return rest * (records / ((rest * data["size"]).sum(-1) + 1e-200))[..., None]


def log_density_of_total(links: ExpectedLinks, log_total: Any) -> Any:
    """Return the log density of log \\|P\\|, normal around the log of the expected number."""
    spread = links.relative_variance
    return -0.5 * (np.log(links.predicted) - log_total) ** 2 / spread - 0.5 * np.log(spread)


@dataclass(frozen=True, slots=True, eq=False)
class JoinedDraws:
    """Joint posterior draws of parts, (chain, draw, ...), from `agreeing` effective combinations."""

    by_size: dict[str, FloatArray]
    parameters: dict[str, FloatArray]
    log_prior: dict[str, FloatArray]
    khat: dict[str, float]
    agreeing: float
    problems: list[str]
    log_evidence: float = 0.0


def join_parts(
    parts: Mapping[str, PartDraws], data: Mapping[str, Any], rng: np.random.Generator
) -> JoinedDraws:
    """Join draws of independent parts, the first that of sizes, by the known number of predicted links."""
    for (one, a), (other, b) in combinations(parts.items(), 2):
        for name in [*(a.by_size.keys() & b.by_size), *(a.parameters.keys() & b.parameters)]:
            raise DataError(f"both {one} and {other} have a '{name}': rename one of them")
    first, *others = parts.values()
    C, K = next(iter(first.by_size.values())).shape[:2]
    chain, draw = np.arange(C)[:, None], np.broadcast_to(np.arange(K), (C, K))
    rest, log_total = expect_unsampled(first.by_size, data), np.log(data["predicted_links"])
    tied = {k: (i, v) for i, p in enumerate(others) for k, v in p.by_size.items() if k in TIED}
    # Resampled draws of a part have copies next to each other. All draws of a part are shifted by one number,
    # so that copies stay next to each other among the joint draws, where ArviZ's effective sample size allows
    # for them, as it cannot for copies at random places. Partners of a draw are neighbours, and the shifts of
    # the second and third part have opposite directions, so that combinations differ.
    first_partner = rng.integers(K, size=(len(others), C, 1))
    direction = (-1) ** np.arange(len(others)).reshape(-1, 1, 1)
    partners = (draw + first_partner + direction * np.arange(PARTNERS).reshape(-1, 1, 1, 1)) % K
    log_w = np.empty((C, K, PARTNERS))
    for j, partner in enumerate(partners):
        by_size = first.by_size | {k: v[chain, partner[i]] for k, (i, v) in tied.items()}
        log_w[..., j] = log_density_of_total(ExpectedLinks.of(rest, by_size, data), log_total)
    w = truncated(log_w.ravel())  # weights are bounded, since the density of the total is
    pairs = np.stack([resampled(of_chain / of_chain.sum(), K, rng) for of_chain in w.reshape(C, -1)])
    of_first, choice = np.divmod(pairs, PARTNERS)
    draws = [of_first, *(partners[choice, i, chain, of_first] for i in range(len(others)))]
    chosen = dict(zip(parts, draws, strict=True))

    def joint(field: str) -> dict[str, FloatArray]:
        return {k: v[chain, chosen[name]] for name, p in parts.items() for k, v in getattr(p, field).items()}

    log_evidence = float(np.logaddexp.reduce(log_w, axis=None) - np.log(log_w.size))
    return JoinedDraws(
        joint("by_size"),
        joint("parameters"),
        {name: p.log_prior[chain, chosen[name]] for name, p in parts.items()},
        {name: p.khat for name, p in parts.items()},
        float(1 / (w**2).sum()),
        [f"{name}: {problem}" for name, p in parts.items() for problem in p.problems],
        sum(p.log_evidence for p in parts.values()) + log_evidence,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Populations:
    """Finite populations: numbers of unsampled entities by size, (..., J), and of all links, (...)."""

    number: FloatArray
    true: FloatArray
    common: FloatArray
    false: FloatArray


def draw_populations(
    by_size: Mapping[str, FloatArray], data: Mapping[str, Any], rng: np.random.Generator, tries: int = 3
) -> Populations:
    """Draw a finite population for each posterior draw, (..., J), and choose one of `tries` by its links.

    Numbers of entities are Poisson, shares of links kept beta and foreign links gamma distributed, with the
    moments of the model.
    """
    s, expected = data["size"], expect_unsampled(by_size, data)
    c2, steady = s * (s - 1) / 2, _mark_steady_sizes(expected, by_size, data)
    number = np.empty(expected.shape)
    number[..., steady], *once = (v[0] for v in _draw_entities(expected, by_size, s, steady, 1, rng))
    numbers, common, foreign = _draw_entities(expected, by_size, s, ~steady, tries, rng)
    common = common + once[0] + data["sampled_common_links"]
    false = (foreign + once[1] + data["sampled_foreign"]) / 2
    distance = (np.log(np.maximum(common + false, 0.5)) - np.log(data["predicted_links"])) / NEAR
    # The largest of log weights plus Gumbel noise is a draw with these weights.
    chosen = np.argmax(-0.5 * distance**2 + rng.gumbel(size=distance.shape), axis=0)[None]
    number[..., ~steady] = np.take_along_axis(numbers, chosen[..., None], 0)[0]
    common, false = (np.take_along_axis(v, chosen, 0)[0] for v in (common, false))
    return Populations(number, number @ c2 + data["sampled_true_links"], common, false)


STEADY = 0.03
"""Relative standard deviation of predicted links, caused by all sizes that are drawn once for all tries."""


def _mark_steady_sizes(
    expected: FloatArray, by_size: Mapping[str, FloatArray], data: Mapping[str, Any]
) -> BoolArray:
    """Return True for sizes whose entities hardly change the number of predicted links by chance, (J,)."""
    s = data["size"]
    # The square of a sum of two terms is at most twice the sum of their squares.
    foreign = by_size.get("foreign_square", 0.0)  # a model without leakage has none
    of_one = 2 * ((s * (s - 1) / 2) ** 2 * by_size["kept_square"] + s**2 * foreign / 4)
    variance = (expected * of_one).reshape(-1, len(s)).mean(axis=0) / data["predicted_links"] ** 2
    order = np.argsort(variance)
    steady = np.zeros(len(s), dtype=bool)
    steady[order] = np.cumsum(variance[order]) < STEADY**2
    return steady


def _draw_entities(
    expected: FloatArray,
    by_size: Mapping[str, FloatArray],
    s: FloatArray,
    chosen: BoolArray,
    tries: int,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Draw the entities of some sizes, (tries, ..., j), and their common and foreign links, (tries, ...)."""
    s, expected = s[chosen], expected[..., chosen]
    intact, kept, kept_square = (by_size[name][..., chosen] for name in ("intact", "kept", "kept_square"))
    none = np.zeros(chosen.shape)
    foreign, square = (by_size.get(name, none)[..., chosen] for name in ("foreign", "foreign_square"))
    drawn = (tries, *expected.shape)
    complete = rng.poisson(expected * intact, drawn)
    broken = rng.poisson(expected * (1 - intact), drawn)
    number = (complete + broken).astype(float)
    mean = np.clip((kept - intact) / (1 - intact + 1e-300), 0, 1)
    variance = np.maximum((kept_square - intact) / (1 - intact + 1e-300) - mean**2, 0)
    common = (complete + broken * _draw_mean_share(broken, mean, variance, rng)) @ (s * (s - 1) / 2)
    shape = foreign**2 / np.maximum(square - foreign**2, 1e-12 * foreign**2 + 1e-300)
    scale = s * foreign / np.where(shape > 0, shape, 1)
    return number, common, np.einsum("...j,...j", scale, rng.standard_gamma(number * shape))


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
    return draws, draw_populations(draws.by_size, data, rng)
