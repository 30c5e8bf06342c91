"""Partial pooling of the parameters of a part over groups, by normal approximations of each likelihood.

In coordinates z with a standard normal prior (`priors.Scores`), the parameters of group g are

    z_g = √(1 - κ²) ζ + κ ε_g,   ζ and ε_g standard normal

so that each group has the same prior as alone, whatever the spread κ: at κ = 1 nothing is shared, at 0 groups
are equal. Groups that share also follow the same candidate model. All parts of a model have one κ. The prior
of one group given the others is then a mixture of normals over a grid of κ, in a mixture with the prior
alone: a robust meta-analytic-predictive prior (Schmidli et al. 2014, Biometrics 70, 1023-1032).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import logsumexp

from .._internal.arrays import FloatArray
from .data import Evidence
from .importance import KHAT
from .model_average import ModelAverage
from .priors import InformedPrior, Scores
from .programs import CompiledPart, ParameterDraws

SPREADS = np.array([0.1, 0.2, 0.4, 1.0])
"""Spreads κ, in standard deviations of the prior, each as likely as another before the data.

Priors are wide, so that unrelated sources differ by about .7. With .7 they shared their candidate models, and
recall had an interval score 1.3 to 1.5 times that alone (benchmarks/bayes-sharing.md).
"""
UNRELATED = 0.5
"""Prior probability that a group is unrelated to the others, however close these are to each other.

It is that of Schmidli et al. Four releases that agree, followed by a sample of clusters from another source,
do less harm than with .2, and those of one source help as much (benchmarks/bayes-sharing.md).
"""


@dataclass(frozen=True, eq=False)
class NormalLikelihood:
    """A normal approximation of one group's likelihood of z: exp(b z - z A z/2) up to a constant.

    `A` (d, d), `b` (d,), and the log `mass` of the likelihood under the prior.
    """

    A: FloatArray
    b: FloatArray
    mass: float

    @classmethod
    def of(cls, z: FloatArray, mass: float) -> NormalLikelihood:
        """Return the likelihood whose posterior has the moments of these draws, (n, d)."""
        n, d = np.unique(z, axis=0).shape
        # the inverse of a covariance of n draws is too large by (n - 1)/(n - d - 2)
        values, vectors = np.linalg.eigh(np.cov(z.T).reshape(d, d) * (n - 1) / max(n - d - 2, 1))
        A = (vectors * np.maximum(1 / values - 1, 0.0)) @ vectors.T  # a posterior is not wider than its prior
        return cls(A, (A + np.eye(d)) @ z.mean(axis=0), mass)


def combine(groups: Sequence[NormalLikelihood], spread: float) -> tuple[float, FloatArray, FloatArray]:
    """Return the log evidence of groups with a spread, and mean and covariance of a further group's z."""
    A, b = np.stack([group.A for group in groups]), np.stack([group.b for group in groups])
    one, share = np.eye(b.shape[1]), 1 - spread**2
    # the likelihood of ζ is normal, with precision share A inverse and its product with the mean below
    inverse, alone = np.linalg.inv(one + spread**2 * A), np.linalg.inv(one + A)
    root = np.linalg.cholesky(one + share * (A @ inverse).sum(axis=0))
    inverse_root = np.linalg.inv(root)
    white = np.sqrt(share) * inverse_root @ np.einsum("gij,gj->i", inverse, b)
    log_scale = np.linalg.slogdet(inverse)[1].sum() - np.linalg.slogdet(alone)[1].sum()
    squares = np.einsum("gi,gij,gj", b, spread**2 * inverse - alone, b) + white @ white
    evidence = sum(group.mass for group in groups) + (log_scale + squares) / 2 - np.log(np.diag(root)).sum()
    mean = np.sqrt(share) * inverse_root.T @ white
    return float(evidence), mean, share * inverse_root.T @ inverse_root + spread**2 * one


def weigh(
    part: ModelAverage, groups: Sequence[Mapping[str, NormalLikelihood]]
) -> tuple[FloatArray, dict[str, Any]]:
    """Return log probabilities of model and spread, (model, spread), and moments of a further group's z."""
    prior = np.log([*part.probability.values()])
    masses = np.array([[group[name].mass for name in part.models] for group in groups])
    log_joint, moments = np.empty((len(prior), len(SPREADS))), {}
    for i, name in enumerate(part.models):
        combined = [combine([group[name] for group in groups], spread) for spread in SPREADS]
        log_joint[i] = prior[i] + [evidence for evidence, *_ in combined]
        moments[name] = [np.stack(v) for v in list(zip(*combined, strict=True))[1:]]
    # where nothing is shared, each group has a model of its own
    log_joint[:, -1] = prior + logsumexp(prior + masses, axis=1).sum()
    return log_joint - logsumexp(log_joint), moments


@dataclass(frozen=True, eq=False)
class BorrowedPriors:
    """Priors of a model from other samples, in coordinates common to all.

    `data`: common centre and bases of functions of size; `weights`: place -> model -> prior probability;
    `informed`: place -> model -> prior; `earlier`: the data of the other samples.
    """

    data: Mapping[str, Any]
    weights: Mapping[str, Mapping[str, float]]
    informed: Mapping[str, Mapping[str, InformedPrior]]
    earlier: tuple[Evidence, ...]


def place_on_grids(data: Mapping[str, Any], common: Mapping[str, Any]) -> dict[str, Any]:
    """Return data with a common centre and common bases, since all grids begin with the same sizes."""
    rows = {
        k: common[k][np.minimum(np.arange(len(data[k])), len(common[k]) - 1)]
        for k in ("basis", "intrusion_basis")
    }
    return {**data, "centre": common["centre"], **rows}


def align_grids(evidence: Sequence[Evidence]) -> tuple[dict[str, Any], list[Evidence]]:
    """Return a centre that depends on no draw and the bases of the longest grids, and all data with them."""
    knowns = [e.units.known for e in evidence]
    centres = [np.average(np.log2(k.size), weights=k.size * k.count) for k in knowns if k is not None]
    longest = {k: max((e.data[k] for e in evidence), key=len) for k in ("basis", "intrusion_basis")}
    common = {"centre": float(np.mean(centres)), **longest}
    return common, [replace(e, data=place_on_grids(e.data, common)) for e in evidence]


def approximate_likelihoods(
    part: ModelAverage, draws: Mapping[str, ParameterDraws]
) -> dict[str, NormalLikelihood]:
    """Return the likelihood of each compiled model of a part, from its draws under the prior alone."""
    likelihoods = {}
    for name, of_model in draws.items():
        z = find_scores(part.models[name]).z(of_model.thetas.reshape(-1, of_model.thetas.shape[-1]))
        d = z.shape[1]
        # moments of a few points and their copies made models certain that fitted none of the samples
        unreliable = of_model.khat > KHAT and not of_model.refitted
        flat = NormalLikelihood(np.zeros((d, d)), np.zeros(d), of_model.log_evidence)
        likelihoods[name] = flat if unreliable else NormalLikelihood.of(z, of_model.log_evidence)
    return likelihoods


def find_scores(part: CompiledPart) -> Scores:
    """Return the coordinates in which the prior of a compiled part is standard normal."""
    return Scores.of(part.coordinates, part.heavy_tails, part.data)


def weigh_spreads(log_joints: Iterable[FloatArray]) -> FloatArray:
    """Return the probability of each spread, common to all parts, from the `weigh` of each part."""
    log_p = np.sum([logsumexp(of_part, axis=0) for of_part in log_joints], axis=0)
    return np.asarray(np.exp(log_p - logsumexp(log_p)))


def borrow(
    parts: Mapping[str, ModelAverage], groups: Mapping[str, Sequence[Mapping[str, NormalLikelihood]]]
) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, InformedPrior]]]:
    """Return weights and priors of the models of compiled parts, by part and model, for a further group."""
    of_parts = {place: weigh(part, groups[place]) for place, part in parts.items()}
    spread = weigh_spreads(log_joint for log_joint, _ in of_parts.values())
    weights, informed = dict[str, dict[str, float]](), dict[str, dict[str, InformedPrior]]()
    for place, (log_joint, moments) in of_parts.items():
        joint = (1 - UNRELATED) * spread * np.exp(log_joint - logsumexp(log_joint, axis=0))
        joint[:, -1] += UNRELATED * np.array([*parts[place].probability.values()])
        weights[place], informed[place] = {}, {}
        for (name, model), mixture in zip(parts[place].models.items(), joint, strict=True):
            weights[place][name] = float(mixture.sum())
            notable = mixture > 1e-12 * mixture.sum()  # others have no influence, and no logarithm
            (means, covs), mixture = moments[name], mixture[notable] / mixture[notable].sum()
            informed[place][name] = InformedPrior(find_scores(model), mixture, means[notable], covs[notable])
    return weights, informed
