"""Partial pooling of a law's parameters over groups, by normal approximations of each group's likelihood.

In coordinates z with a standard normal prior (`told.Scores`), the parameters of group g are

    z_g = √(1 - κ²) ζ + κ ε_g,   ζ and ε_g standard normal

so that each group has the same prior as alone, whatever the spread κ: at κ = 1 nothing is shared, at 0 groups
are equal. Groups that share also follow the same law. What the others tell of one group is then a mixture of
normals over a grid of κ, in a mixture with the prior alone: a robust meta-analytic-predictive prior (Schmidli
et al. 2014, Biometrics 70, 1023-1032).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import logsumexp

from .._internal.arrays import FloatArray
from .evidence import Evidence
from .laws import OneOf
from .parts import CompiledPart, Drawn
from .told import Scores, Told

SPREADS = np.array([0.1, 0.2, 0.4, 0.7, 1.0])
"""Spreads κ, in standard deviations of the prior, each as likely as another before the data."""
STRANGER = 0.2
"""Probability that a group has nothing in common with the others, however alike these are to each other.

Without it four earlier releases that agreed with each other taught a fifth that did not, against its sample.
"""
OfPart = Mapping[str, Drawn]
"""Draws of each law of a part."""


@dataclass(frozen=True, eq=False)
class Site:
    """A normal approximation of one group's likelihood of z: exp(b z - z A z/2) up to a constant.

    `A` (d, d), `b` (d,), and the log `mass` of the likelihood under the prior.
    """

    A: FloatArray
    b: FloatArray
    mass: float

    @classmethod
    def of(cls, z: FloatArray, mass: float) -> Site:
        """Return the site whose posterior has the moments of these draws, (n, d)."""
        n, d = np.unique(z, axis=0).shape
        # the inverse of a covariance of n draws is too large by (n - 1)/(n - d - 2)
        values, vectors = np.linalg.eigh(np.cov(z.T).reshape(d, d) * (n - 1) / max(n - d - 2, 1))
        A = (vectors * np.maximum(1 / values - 1, 0.0)) @ vectors.T  # a posterior is not wider than its prior
        return cls(A, (A + np.eye(d)) @ z.mean(axis=0), mass)

    def given(self, spread: float) -> tuple[FloatArray, FloatArray, float]:
        """Return precision and its product with the mean of what the site tells of ζ, and a log constant."""
        one = np.eye(len(self.b))
        inverse = np.linalg.inv(one + spread**2 * self.A)
        share, alone = 1 - spread**2, np.linalg.inv(one + self.A)
        constant = (
            np.linalg.slogdet(inverse)[1]
            - np.linalg.slogdet(alone)[1]
            + self.b @ (spread**2 * inverse - alone) @ self.b
        )
        return share * self.A @ inverse, np.sqrt(share) * inverse @ self.b, self.mass + constant / 2


def combine(sites: Sequence[Site], spread: float) -> tuple[float, FloatArray, FloatArray]:
    """Return the log evidence of groups with a spread, and mean and covariance of a further group's z."""
    told = [site.given(spread) for site in sites]
    d = len(sites[0].b)
    root = np.linalg.cholesky(np.eye(d) + sum(precision for precision, *_ in told))
    inverse = np.linalg.inv(root)
    white = inverse @ sum(product for _, product, _ in told)
    evidence = sum(c for *_, c in told) - np.log(np.diag(root)).sum() + white @ white / 2
    share = 1 - spread**2
    mean, cov = np.sqrt(share) * inverse.T @ white, share * inverse.T @ inverse + spread**2 * np.eye(d)
    return float(evidence), mean, cov


def weigh(part: OneOf, groups: Sequence[Mapping[str, Site]]) -> tuple[FloatArray, dict[str, Any]]:
    """Return log joint probabilities of law and spread, (law, spread), and moments of a further group's z."""
    prior = np.log([*part.probability.values()])
    masses = np.array([[sites[law].mass for law in part.laws] for sites in groups])
    log_joint, moments = np.empty((len(prior), len(SPREADS))), {}
    for i, law in enumerate(part.laws):
        found = [combine([sites[law] for sites in groups], spread) for spread in SPREADS]
        log_joint[i] = prior[i] + [evidence for evidence, *_ in found]
        moments[law] = [np.stack(v) for v in list(zip(*found, strict=True))[1:]]
    # where nothing is shared, each group has a law of its own
    log_joint[:, -1] = prior + logsumexp(prior + masses, axis=1).sum()
    return log_joint - logsumexp(log_joint), moments


@dataclass(frozen=True, eq=False)
class Shared:
    """What other samples tell of a model: laws with new weights and priors, in coordinates common to all.

    `data`: a centre and bases of functions of size in common; `weights`: place -> law -> prior probability;
    `told`: place -> law -> prior; `earlier`: the evidence of the other samples.
    """

    data: Mapping[str, Any]
    weights: Mapping[str, Mapping[str, float]]
    told: Mapping[str, Mapping[str, Told]]
    earlier: tuple[Evidence, ...]

    def fill(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Return the data of a sample with the common centre and bases."""
        return place_in_common(data, self.data)


def find_common(evidence: Sequence[Evidence]) -> dict[str, Any]:
    """Return a centre that no draw moves, and the bases of the longest grids, for functions of size."""
    knowns = [e.units.known for e in evidence]
    centres = [np.average(np.log2(k.size), weights=k.size * k.count) for k in knowns if k is not None]
    longest = {k: max((e.data[k] for e in evidence), key=len) for k in ("basis", "intrusion_basis")}
    return {"centre": float(np.mean(centres)), **longest}


def place_in_common(data: Mapping[str, Any], common: Mapping[str, Any]) -> dict[str, Any]:
    """Return data with a common centre and common bases: grids begin alike, and functions end flat."""
    rows = {
        k: common[k][np.minimum(np.arange(len(data[k])), len(common[k]) - 1)]
        for k in ("basis", "intrusion_basis")
    }
    return {**data, "centre": common["centre"], **rows}


def find_sites(part: OneOf, draws: OfPart) -> dict[str, Site]:
    """Return the site of each compiled law of a part, from its draws under the prior alone."""
    sites = {}
    for law, drawn in draws.items():
        z = find_scores(part.laws[law]).z(drawn.thetas.reshape(-1, drawn.thetas.shape[-1]))
        sites[law] = Site.of(z, drawn.log_evidence)
    return sites


def find_scores(part: CompiledPart) -> Scores:
    """Return the coordinates in which the prior of a compiled part is standard normal."""
    return Scores.of(part.coordinates, part.heavy_tails, part.data)


def tell(part: OneOf, groups: Sequence[Mapping[str, Site]]) -> tuple[dict[str, float], dict[str, Told]]:
    """Return weights and priors of the laws of a compiled part, for a further group."""
    log_joint, moments = weigh(part, groups)
    joint = (1 - STRANGER) * np.exp(log_joint)
    joint[:, -1] += STRANGER * np.array([*part.probability.values()])
    weights, told = {}, {}
    for law, of_law in zip(part.laws, joint, strict=True):
        weights[law], (means, covs) = float(of_law.sum()), moments[law]
        kept = of_law > 1e-12 * of_law.sum()  # others have no influence, and no logarithm
        mixture = of_law[kept] / of_law[kept].sum()
        told[law] = Told(find_scores(part.laws[law]), mixture, means[kept], covs[kept])
    return weights, told


def in_common(evidence: Sequence[Evidence]) -> tuple[dict[str, Any], list[Evidence]]:
    """Return the common data of several samples, and each with them."""
    common = find_common(evidence)
    return common, [replace(e, data=place_in_common(e.data, common)) for e in evidence]
