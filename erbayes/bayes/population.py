"""The population that a model implies, completed: sampled entities as they are, the rest predicted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import FloatArray

FLOOR = 0.01
"""Least relative standard deviation of the known number of predicted links, for smooth posteriors."""
CEILING = 0.5
"""The largest; heavier tails than that are cut, so that the known number always counts."""


NEAR = 0.05
"""Relative standard deviation within which a completed population has the known number of predicted links."""


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """Expected links of the population, and how a finite population varies around them.

    Works on arrays (..., J) and on PyTensor's alike, and so is the same for NUTS and for the fast fit.

    Attributes
    ----------
    true, common, false : totals of true, common and false predicted links
    common_variance, false_variance, covariance
        Of the realised totals of a population whose unsampled entities are Poisson in number.
    kept_variance
        Of common links given the sizes.
    """

    true: Any
    common: Any
    false: Any
    common_variance: Any
    false_variance: Any
    covariance: Any
    kept_variance: Any

    @classmethod
    def of(cls, left: Any, by_size: Mapping[str, Any], data: Mapping[str, Any]) -> Links:
        """Links of `left`, the expected numbers of unsampled entities by size, and of the sampled ones."""
        s = data["size"]
        c2, kept, square = s * (s - 1) / 2, by_size["kept"], by_size["kept_square"]
        foreign, foreign_square = by_size["foreign"], by_size["foreign_square"]
        return cls(
            (left * c2).sum(-1) + data["sampled_true_links"],
            (left * c2 * kept).sum(-1) + data["sampled_common_links"],
            ((left * s * foreign).sum(-1) + data["sampled_foreign"]) / 2,
            (left * c2**2 * square).sum(-1),
            (left * s**2 * foreign_square).sum(-1) / 4,
            (left * c2 * s * kept * foreign).sum(-1) / 2,
            (left * c2**2 * (square - kept**2)).sum(-1),
        )

    @property
    def predicted(self) -> Any:
        """Predicted links: common ones and false ones."""
        return self.common + self.false

    @property
    def variance(self) -> Any:
        """Of the realised number of predicted links."""
        return self.common_variance + self.false_variance + 2 * self.covariance

    @property
    def relative_variance(self) -> Any:
        return (self.variance / self.predicted**2).clip(0, CEILING**2) + FLOOR**2


def missed(entities: Any, data: Mapping[str, Any]) -> Any:
    """Chance that the design does not find an entity of each size, (..., J).

    `entities`, (..., J), are the expected numbers of each size.
    """
    q, repeats, fixed = data["selection"], data["repeats"], data["fixed_size"]
    every = (entities * q).sum(-1)[..., None]
    p, n = q / every, fixed * data["draws"] + (1 - fixed) * every
    return repeats * (1 - p.clip(0, 1)) ** n + (1 - repeats) * (1 - n * p).clip(0, 1)


def unsampled(entities: Any, data: Mapping[str, Any]) -> Any:
    """Expected entities that the sample does not hold, by size, (..., J).

    M_s (1 - π_s) with π_s the chance that the design finds an entity of size s, scaled so that their
    records are those that the sample leaves.
    """
    left = entities * missed(entities, data)
    rest = data["records"] - data["sampled_records"]
    return left * (rest / ((left * data["size"]).sum(-1) + 1e-200))[..., None]


def log_density_of_total(links: Links, log: Any, log_total: Any) -> Any:
    """log N(log |P|; log expected predicted links, relative variance)."""
    spread = links.relative_variance
    return -0.5 * (log(links.predicted) - log_total) ** 2 / spread - 0.5 * log(spread)


@dataclass(frozen=True, slots=True, eq=False)
class Completed:
    """Links of realised populations, (...,): sampled entities as they are, the others drawn.

    Attributes
    ----------
    number : float array, (..., J)
        Unsampled entities of each size.
    true, common, false : float arrays, (...,)
    """

    number: FloatArray
    true: FloatArray
    common: FloatArray
    false: FloatArray


def completed(
    by_size: Mapping[str, FloatArray], data: Mapping[str, Any], rng: np.random.Generator, tries: int = 4
) -> Completed:
    """A finite population for each posterior draw.

    The unsampled entities of each size are Poisson in number, their mean share of links kept is normal and
    their foreign links are gamma distributed, with the moments of the model. Of `tries` populations the
    one is kept, at random with normal weights of relative standard deviation `NEAR`, whose predicted links
    come near \\|P\\|. Nothing is drawn where all entities are sampled.

    Parameters
    ----------
    by_size : arrays (..., J)
    """
    s, left = data["size"], unsampled(by_size["entities"], data)
    c2 = s * (s - 1) / 2
    kept, foreign = by_size["kept"], by_size["foreign"]
    spread = np.sqrt(np.maximum(by_size["kept_square"] - kept**2, 0))
    shape = foreign**2 / np.maximum(by_size["foreign_square"] - foreign**2, 1e-12 * foreign**2 + 1e-300)
    number = rng.poisson(left, (tries, *left.shape)).astype(float)
    some = number > 0
    mean = kept + spread / np.sqrt(np.where(some, number, 1)) * rng.standard_normal(number.shape)
    gamma = rng.standard_gamma(np.where(some, number * shape, 0))
    each = s * foreign / np.where(shape > 0, shape, 1)
    true = number @ c2 + data["sampled_true_links"]
    common = (number * np.clip(mean, 0, 1)) @ c2 + data["sampled_common_links"]
    false = (np.einsum("...j,...j", each, gamma) + data["sampled_foreign"]) / 2
    off = (np.log(common + false) - np.log(data["predicted_links"])) / NEAR
    chosen = np.argmax(-0.5 * off**2 + rng.gumbel(size=off.shape), axis=0)[None]
    number = np.take_along_axis(number, chosen[..., None], 0)[0]
    return Completed(number, *(np.take_along_axis(v, chosen, 0)[0] for v in (true, common, false)))
