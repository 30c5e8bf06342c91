"""Partial pooling of a law's parameters over groups, by normal approximations of each group's likelihood.

In coordinates z with a standard normal prior (`priors.Scores`), the parameters of group g are

    z_g = √(1 - κ²) ζ + κ ε_g,   ζ and ε_g standard normal

so that each group has the same prior as alone, whatever the spread κ: at κ = 1 nothing is shared, at 0 groups
are equal. Groups that share also follow the same law. All parts of a model have one κ. What the others tell
of one group is then a mixture of normals over a grid of κ, in a mixture with the prior alone: a robust
meta-analytic-predictive prior (Schmidli et al. 2014, Biometrics 70, 1023-1032).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import logsumexp

from .._internal.arrays import FloatArray
from .evidence import Evidence
from .importance import KHAT
from .laws import OneOf
from .parts import CompiledPart, Drawn
from .priors import Scores, Told

SPREADS = np.array([0.1, 0.2, 0.4, 1.0])
"""Spreads κ, in standard deviations of the prior, each as likely as another before the data.

Priors are wide, so that sources with nothing in common differ by about .7. With .7 they taught each other
their laws, and recall had an interval score 1.3 to 1.5 times that alone (benchmarks/bayes-sharing.md).
"""
STRANGER = 0.5
"""Probability that a group has nothing in common with the others, however alike these are to each other.

It is that of Schmidli et al. Four releases that agree, followed by a sample of clusters from another source,
do less harm than with .2, and those of one source teach as much (benchmarks/bayes-sharing.md).
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


def combine(sites: Sequence[Site], spread: float) -> tuple[float, FloatArray, FloatArray]:
    """Return the log evidence of groups with a spread, and mean and covariance of a further group's z."""
    A, b = np.stack([site.A for site in sites]), np.stack([site.b for site in sites])
    one, share = np.eye(b.shape[1]), 1 - spread**2
    # what a group tells of ζ is normal, with precision share A inverse and its product with the mean below
    inverse, alone = np.linalg.inv(one + spread**2 * A), np.linalg.inv(one + A)
    root = np.linalg.cholesky(one + share * (A @ inverse).sum(axis=0))
    inverse_root = np.linalg.inv(root)
    white = np.sqrt(share) * inverse_root @ np.einsum("gij,gj->i", inverse, b)
    log_scale = np.linalg.slogdet(inverse)[1].sum() - np.linalg.slogdet(alone)[1].sum()
    squares = np.einsum("gi,gij,gj", b, spread**2 * inverse - alone, b) + white @ white
    evidence = sum(site.mass for site in sites) + (log_scale + squares) / 2 - np.log(np.diag(root)).sum()
    mean = np.sqrt(share) * inverse_root.T @ white
    return float(evidence), mean, share * inverse_root.T @ inverse_root + spread**2 * one


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
        d = z.shape[1]
        # moments of a few points and their copies made laws certain that fitted none of the samples
        unreliable = drawn.khat > KHAT and not drawn.refitted
        silent = Site(np.zeros((d, d)), np.zeros(d), drawn.log_evidence)
        sites[law] = silent if unreliable else Site.of(z, drawn.log_evidence)
    return sites


def find_scores(part: CompiledPart) -> Scores:
    """Return the coordinates in which the prior of a compiled part is standard normal."""
    return Scores.of(part.coordinates, part.heavy_tails, part.data)


def weigh_spreads(log_joints: Iterable[FloatArray]) -> FloatArray:
    """Return the probability of each spread, which all parts have in common, from the `weigh` of each."""
    log_p = np.sum([logsumexp(of_part, axis=0) for of_part in log_joints], axis=0)
    return np.asarray(np.exp(log_p - logsumexp(log_p)))


def tell(
    parts: Mapping[str, OneOf], groups: Mapping[str, Sequence[Mapping[str, Site]]]
) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, Told]]]:
    """Return weights and priors of the laws of compiled parts, by part and law, for a further group."""
    found = {place: weigh(part, groups[place]) for place, part in parts.items()}
    spread = weigh_spreads(log_joint for log_joint, _ in found.values())
    weights, told = dict[str, dict[str, float]](), dict[str, dict[str, Told]]()
    for place, (log_joint, moments) in found.items():
        of_laws = np.exp(log_joint - logsumexp(log_joint, axis=0))
        joint = (1 - STRANGER) * spread * of_laws
        joint[:, -1] += STRANGER * np.array([*parts[place].probability.values()])
        weights[place], told[place] = {}, {}
        for (law, part), of_law in zip(parts[place].laws.items(), joint, strict=True):
            kept = of_law > 1e-12 * of_law.sum()  # others have no influence, and no logarithm
            (means, covs), mixture = moments[law], of_law[kept] / of_law[kept].sum()
            weights[place][law] = float(of_law.sum())
            told[place][law] = Told(find_scores(part), mixture, means[kept], covs[kept])
    return weights, told


def in_common(evidence: Sequence[Evidence]) -> tuple[dict[str, Any], list[Evidence]]:
    """Return a centre that no draw moves and the bases of the longest grids, and all samples with them."""
    knowns = [e.units.known for e in evidence]
    centres = [np.average(np.log2(k.size), weights=k.size * k.count) for k in knowns if k is not None]
    longest = {k: max((e.data[k] for e in evidence), key=len) for k in ("basis", "intrusion_basis")}
    common = {"centre": float(np.mean(centres)), **longest}
    return common, [replace(e, data=place_in_common(e.data, common)) for e in evidence]
