"""Completed populations: sampled entities as observed, and the others drawn from the size model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._internal.arrays import BoolArray, FloatArray, IntArray

FLOOR = 0.01
"""Smallest relative standard deviation of the known number of predicted links. It keeps posteriors smooth."""
CEILING = 0.5
"""Largest one. It is a cap if tails are heavy, so that the known number always has an influence."""
NEAR = 0.05
"""Relative standard deviation by which the links of a completed population differ from the known number."""


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """Expected `true`, `common` and `false` predicted links of a population, and variances of the realised
    ones.

    They are arrays (...) or PyTensor's tensors, so that PyMC models and importance sampling share
    formulas.
    """

    true: Any
    common: Any
    false: Any
    common_variance: Any
    false_variance: Any
    covariance: Any

    @classmethod
    def of(cls, rest: Any, by_size: Mapping[str, Any], data: Mapping[str, Any]) -> Links:
        """Add links of sampled entities, and of clusters that stand for some, to those of the `rest`."""
        s = data["size"]
        foreign, foreign_square = (by_size.get(name, 0.0) for name in ("foreign", "foreign_square"))
        c2 = s * (s - 1) / 2
        records, links = rest * s, rest * c2
        kept = links * by_size["kept"]
        true = links.sum(-1) + data["sampled_true_links"]
        common = kept.sum(-1) + data["sampled_common_links"]
        common_variance = (links * c2 * by_size["kept_square"]).sum(-1)
        if "stands" in by_size:
            p, (true_left, common_left) = by_size["stands_left"], of_clusters(by_size, data)
            true = true + (p * true_left).sum(-1)
            common = common + (p * common_left).sum(-1)
            spread = p * (1 - p) / data["left"].clip(1, np.inf)
            common_variance = common_variance + (spread * common_left**2).sum(-1)
        return cls(
            true,
            common,
            ((records * foreign).sum(-1) + data["sampled_foreign"]) / 2,
            common_variance,
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
    """Return the chance that no draw is an entity, by size, for expected numbers of `entities`, (..., J)."""
    q, repeats, fixed = data["selection"], data["repeats"], data["fixed_size"]
    total = (entities * q).sum(-1)[..., None]
    p, n = q / total, fixed * data["draws"] + (1 - fixed) * total
    return repeats * (1 - p.clip(0, 1)) ** n + (1 - repeats) * (1 - n * p).clip(0, 1)


def of_clusters(by_size: Mapping[str, Any], data: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return true and common links of the entities in place of the clusters left, (..., 2 J)."""
    true = data["left_true"] * by_size["stands_true"]
    kept = (data["left_common"] / data["left_true"].clip(1, np.inf) * by_size["stands_kept"]).clip(0, 1)
    return true, true * kept


def unsampled(by_size: Mapping[str, Any], data: Mapping[str, Any]) -> Any:
    """Return the expected number of entities outside the sample, M_s (1 - π_s), by size, (..., J)."""
    entities = by_size["entities"]
    rest, records = entities * chance_undrawn(entities, data), data["records"] - data["sampled_records"]
    if "stands" in by_size:
        rest = rest * (1 - data["second"] * by_size["stands"] / entities).clip(0, 1)
        records = (records - (by_size["stands_left"] * data["left_records"]).sum(-1)).clip(0, np.inf)
    # scaled, so that the records of the sample and of the rest add to N
    return rest * (records / ((rest * data["size"]).sum(-1) + 1e-200))[..., None]


def log_density_of_total(links: Links, log: Any, log_total: Any) -> Any:
    """Return the log density of log \\|P\\|, normal around the log of the expected number."""
    spread = links.relative_variance
    return -0.5 * (log(links.predicted) - log_total) ** 2 / spread - 0.5 * log(spread)


@dataclass(frozen=True, slots=True, eq=False)
class Completed:
    """Completed populations: numbers of unsampled entities by size, (..., J), and of links, (...).

    `standing`, (..., 2 J), are clusters of the second clustering that stand for further entities.
    """

    number: FloatArray
    standing: FloatArray
    true: FloatArray
    common: FloatArray
    false: FloatArray


def completed(
    by_size: Mapping[str, FloatArray], data: Mapping[str, Any], rng: np.random.Generator, tries: int = 3
) -> Completed:
    """Draw a finite population for each posterior draw, (..., J), near the known number of predicted links.

    Numbers of entities are Poisson, shares of links kept are beta and foreign links gamma distributed,
    with the moments of the model. One of `tries` populations is chosen by its predicted links.
    """
    s, expected = data["size"], unsampled(by_size, data)
    c2, steady = s * (s - 1) / 2, _mark_steady_sizes(expected, by_size, data)
    expected = expected[None]
    standing = np.zeros((tries, *expected.shape[1:-1], 2 * len(s)))
    known_true, known_common = np.zeros((2, 1))
    if "stands" in by_size:
        left, chance = data["left"].astype(np.int64), by_size["stands_left"]
        standing = rng.binomial(left, chance, standing.shape).astype(float)
        # Records of clusters that stand for no entity, beyond those expected, belong to other entities.
        records = (left * chance - standing) @ (data["left_records"] / np.maximum(left, 1))
        others = np.maximum(expected @ s, 1e-200)
        expected = expected * (np.maximum(others + records, 0) / others)[..., None]
        known_true, known_common = (
            np.einsum("...j,...j", standing, links / np.maximum(left, 1))
            for links in of_clusters(by_size, data)
        )
    number = np.empty(expected.shape[1:])
    number[..., steady], *once = (v[0] for v in _draw_entities(expected[:1], by_size, s, steady, 1, rng))
    numbers, common, foreign = _draw_entities(expected, by_size, s, ~steady, tries, rng)
    common = common + once[0] + data["sampled_common_links"] + known_common
    false = (foreign + once[1] + data["sampled_foreign"]) / 2
    distance = (np.log(np.maximum(common + false, 0.5)) - np.log(data["predicted_links"])) / NEAR
    # The largest of log weights plus Gumbel noise is a draw with these weights.
    chosen = np.argmax(-0.5 * distance**2 + rng.gumbel(size=distance.shape), axis=0)[None]
    number[..., ~steady], standing = (
        np.take_along_axis(v, chosen[..., None], 0)[0] for v in (numbers, standing)
    )
    known_true, common, false = (
        np.take_along_axis(np.broadcast_to(v, distance.shape), chosen, 0)[0]
        for v in (known_true, common, false)
    )
    true = number @ c2 + data["sampled_true_links"] + known_true
    return Completed(number, standing, true, common, false)


STEADY = 0.03
"""Relative standard deviation of predicted links that sizes may cause together which no try draws anew."""


def _mark_steady_sizes(
    expected: FloatArray, by_size: Mapping[str, FloatArray], data: Mapping[str, Any]
) -> BoolArray:
    """Return True for sizes whose entities hardly change the number of predicted links by chance, (J,)."""
    s = data["size"]
    if "stands" in by_size:
        return np.zeros(len(s), dtype=bool)
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
    drawn = (tries, *expected.shape[1:])
    whole = rng.poisson(expected * intact, drawn)
    broken = rng.poisson(expected * (1 - intact), drawn)
    number = (whole + broken).astype(float)
    mean = np.clip((kept - intact) / (1 - intact + 1e-300), 0, 1)
    variance = np.maximum((kept_square - intact) / (1 - intact + 1e-300) - mean**2, 0)
    common = (whole + broken * _draw_mean_share(broken, mean, variance, rng)) @ (s * (s - 1) / 2)
    shape = foreign**2 / np.maximum(square - foreign**2, 1e-12 * foreign**2 + 1e-300)
    scale = s * foreign / np.where(shape > 0, shape, 1)
    return number, common, np.einsum("...j,...j", scale, rng.standard_gamma(number * shape))


MANY = 30
"""Number of broken entities above which the mean of their shares is normal."""


def _draw_mean_share(
    broken: IntArray, mean: FloatArray, variance: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Draw the mean share of links that a number of `broken` entities keep, (tries, ..., J)."""
    share = np.empty(broken.shape)
    share[...] = mean
    some = np.flatnonzero((broken > 0) & (variance > 1e-12))
    n = broken.ravel()[some]
    for few in (True, False):
        at = some[(n <= MANY) == few]
        m, v = (x.ravel()[at % mean.size] for x in (mean, variance))
        v = v / broken.ravel()[at]
        # a beta mean, so that a single broken giant may keep any share from 0 to 1
        if few:
            precision = np.maximum(m * (1 - m) / v - 1, 1e-6)
            drawn = rng.beta(np.maximum(m * precision, 1e-9), np.maximum((1 - m) * precision, 1e-9))
        else:
            drawn = m + np.sqrt(v) * rng.standard_normal(len(at))
        share.ravel()[at] = drawn
    return np.clip(share, 0, 1)
