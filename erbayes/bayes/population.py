"""Completed populations: sampled entities as observed, and the others drawn from the size model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import FloatArray

FLOOR = 0.01
"""Smallest relative standard deviation of the known number of predicted links. It keeps posteriors smooth."""
CEILING = 0.5
"""Largest one. It is a cap if tails are heavy, so that the known number always has an influence."""
NEAR = 0.05
"""Relative standard deviation by which the links of a completed population differ from the known number."""


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """Expected links of a population, and the variances of the links of a finite population.

    Attributes are arrays (...) or PyTensor's tensors, so that PyMC models and importance sampling share the
    formulas.

    Attributes
    ----------
    true, common, false : array or tensor
        Expected number of true links, of common links, and of false predicted links.
    common_variance, false_variance, covariance : array or tensor
        Variances and covariance of the realised numbers, if the number of unsampled entities is Poisson.
    kept_variance : array or tensor
        Variance of common links given the sizes.
    """

    true: Any
    common: Any
    false: Any
    common_variance: Any
    false_variance: Any
    covariance: Any
    kept_variance: Any

    @classmethod
    def of(cls, rest: Any, by_size: Mapping[str, Any], data: Mapping[str, Any]) -> Links:
        """Add the links of the sampled entities to those expected of the `rest`, by size, (..., J)."""
        s = data["size"]
        c2, kept, square = s * (s - 1) / 2, by_size["kept"], by_size["kept_square"]
        foreign, foreign_square = by_size["foreign"], by_size["foreign_square"]
        return cls(
            (rest * c2).sum(-1) + data["sampled_true_links"],
            (rest * c2 * kept).sum(-1) + data["sampled_common_links"],
            ((rest * s * foreign).sum(-1) + data["sampled_foreign"]) / 2,
            (rest * c2**2 * square).sum(-1),
            (rest * s**2 * foreign_square).sum(-1) / 4,
            (rest * c2 * s * kept * foreign).sum(-1) / 2,
            (rest * c2**2 * (square - kept**2)).sum(-1),
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
    """Return the chance that the design draws an entity at no draw, by size, (..., J).

    `entities`, (..., J), are the expected numbers of entities of each size.
    """
    q, repeats, fixed = data["selection"], data["repeats"], data["fixed_size"]
    total = (entities * q).sum(-1)[..., None]
    p, n = q / total, fixed * data["draws"] + (1 - fixed) * total
    return repeats * (1 - p.clip(0, 1)) ** n + (1 - repeats) * (1 - n * p).clip(0, 1)


def unsampled(entities: Any, data: Mapping[str, Any]) -> Any:
    """Return the expected number of entities outside the sample, by size, (..., J).

    It is M_s (1 - π_s). M_s is the expected number of entities of size s, and π_s the chance that the design
    draws one of them. The numbers are scaled so that their records and the sample's add to N.
    """
    rest = entities * chance_undrawn(entities, data)
    records = data["records"] - data["sampled_records"]
    return rest * (records / ((rest * data["size"]).sum(-1) + 1e-200))[..., None]


def log_density_of_total(links: Links, log: Any, log_total: Any) -> Any:
    """Return the log density of log \\|P\\|, normal around the log of the expected number."""
    spread = links.relative_variance
    return -0.5 * (log(links.predicted) - log_total) ** 2 / spread - 0.5 * log(spread)


@dataclass(frozen=True, slots=True, eq=False)
class Completed:
    """Completed populations: numbers of unsampled entities, and of links.

    Attributes
    ----------
    number : float array, (..., J)
        Unsampled entities of each size.
    true, common, false : float arrays, (...)
        Number of true links, of common links, and of false predicted links.
    """

    number: FloatArray
    true: FloatArray
    common: FloatArray
    false: FloatArray


def completed(
    by_size: Mapping[str, FloatArray], data: Mapping[str, Any], rng: np.random.Generator, tries: int = 4
) -> Completed:
    """Draw a finite population for each posterior draw.

    The number of unsampled entities of each size is Poisson. Their mean share of links kept is normal, and
    their foreign links are gamma distributed, with the moments of the model. `tries` populations are drawn
    for each posterior draw. One of them is chosen at random: its weight is larger if its predicted links are
    near \\|P\\|. Nothing is drawn if all entities are sampled.

    Parameters
    ----------
    by_size : mapping, name -> float array, (..., J)
        Quantities by size of the posterior draws.
    data : mapping, name -> array
        Entries are those of `contract.DATA`.
    rng : Generator
    tries : int
        1 or more.

    Returns
    -------
    Completed
    """
    s, expected = data["size"], unsampled(by_size["entities"], data)
    c2 = s * (s - 1) / 2
    kept, foreign = by_size["kept"], by_size["foreign"]
    spread = np.sqrt(np.maximum(by_size["kept_square"] - kept**2, 0))
    shape = foreign**2 / np.maximum(by_size["foreign_square"] - foreign**2, 1e-12 * foreign**2 + 1e-300)
    number = rng.poisson(expected, (tries, *expected.shape)).astype(float)
    mean = kept + spread / np.sqrt(np.maximum(number, 1)) * rng.standard_normal(number.shape)
    gamma = rng.standard_gamma(number * shape)
    scale = s * foreign / np.where(shape > 0, shape, 1)
    true = number @ c2 + data["sampled_true_links"]
    common = (number * np.clip(mean, 0, 1)) @ c2 + data["sampled_common_links"]
    false = (np.einsum("...j,...j", scale, gamma) + data["sampled_foreign"]) / 2
    distance = (np.log(common + false) - np.log(data["predicted_links"])) / NEAR
    # The largest of log weights plus Gumbel noise is a draw with these weights.
    chosen = np.argmax(-0.5 * distance**2 + rng.gumbel(size=distance.shape), axis=0)[None]
    number = np.take_along_axis(number, chosen[..., None], 0)[0]
    return Completed(number, *(np.take_along_axis(v, chosen, 0)[0] for v in (true, common, false)))
