"""Averages of candidate models for one part of a size model, weighted by their marginal likelihood."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._internal.arrays import FloatArray
from .._internal.errors import DataError
from .contract import title
from .importance import KHAT, NEGLIGIBLE, Approximation, approximated, resampled
from .programs import CompiledPart, ParameterDraws, PartDraws, draw_from_prior


@dataclass(frozen=True)
class ModelAverage:
    """A part of a size model with several candidate models, of which each draw follows one.

    The posterior probability of a model is in proportion to its prior weight times its marginal likelihood
    (its evidence). The known number of predicted links changes it further.

    Parameters
    ----------
    models : mapping, name -> ModelPart or SizeFamily
        All have the same observed variables, so that their evidence can be compared.
    weights : mapping, name -> float
        Prior weights, above 0. By default all are equal.

    Raises
    ------
    DataError
        No model, or weights that are not above 0 or have other names.

    References
    ----------
    Hoeting, Madigan, Raftery and Volinsky (1999), Statistical Science 14, 382-417.

    Examples
    --------
    >>> from erbayes.bayes import ModelAverage, NormalPrior, Retention
    >>> careful, careless = Retention(), Retention(break_level=NormalPrior(0.5, 0.5))
    >>> ModelAverage({"careful": careful, "careless": careless}, {"careful": 3, "careless": 1}).probability
    {'careful': 0.75, 'careless': 0.25}
    """

    models: Mapping[str, Any]
    weights: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.models:
            raise DataError("ModelAverage needs one model or more")
        if self.weights and (
            set(self.weights) != set(self.models) or not all(0 < w < np.inf for w in self.weights.values())
        ):
            raise DataError(
                f"weights must be above 0, one for each of {', '.join(self.models)}, not {dict(self.weights)}"
            )

    @property
    def probability(self) -> dict[str, float]:
        """Prior probability of each model."""
        weights = {name: float(self.weights.get(name, 1.0)) for name in self.models}
        return {name: w / sum(weights.values()) for name, w in weights.items()}

    def posterior(self, log_evidence: Sequence[float]) -> FloatArray:
        """Return the posterior probability of each model, from the log evidence of each."""
        log_joint = np.log([*self.probability.values()]) + log_evidence
        return np.asarray(np.exp(log_joint - np.logaddexp.reduce(log_joint)))

    @property
    def usual(self) -> Any:
        """Return the first model."""
        return next(iter(self.models.values()))

    @property
    def title(self) -> str:
        return title(self.usual)

    def given_size(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Create the first model in a PyMC model, and return its quantities by size."""
        return dict(self.usual.given_size(data))


def as_average(part: Any) -> ModelAverage:
    """Return a part as `ModelAverage`, if need be of one model without a name."""
    return part if isinstance(part, ModelAverage) else ModelAverage({"": part})


def compile_part(part: Any, data: Mapping[str, Any]) -> ModelAverage:
    """Return the candidate models of a part, each a `CompiledPart` with these data."""
    average = as_average(part)
    return replace(average, models={k: CompiledPart.of(model, data) for k, model in average.models.items()})


def draw_parts(
    parts: Mapping[str, ModelAverage], draws: int, chains: int, rng: np.random.Generator
) -> dict[str, dict[str, ParameterDraws]]:
    """Draw each `CompiledPart` of each part by importance sampling, with `draws` draws in each chain."""
    posteriors = [
        approximated([*part.models.values()], draws * chains, rng, [*part.probability.values()], chains)
        for part in parts.values()
    ]
    return {
        place: {
            name: _draw_states(model, posterior, rng)
            for (name, model), posterior in zip(part.models.items(), of_part, strict=True)
        }
        for (place, part), of_part in zip(parts.items(), posteriors, strict=True)
    }


def _draw_states(model: CompiledPart, posterior: Approximation, rng: np.random.Generator) -> ParameterDraws:
    """Return draws of a model from its weighted points, with the reason not to rely on their weights."""
    khat, problems = posterior.khat, list[str]()
    if khat > KHAT and posterior.share >= NEGLIGIBLE:
        problems = [
            f"importance weights are unreliable (Pareto k {khat:.2f}, above {KHAT}): raise draws, take "
            "another model of this part, or sample the model by pymc.sample(model=fit.pymc)"
        ]
    by_chain = np.logaddexp(posterior.adapted.by_chain, model.log_flawless)
    about = {"khat": khat, "problems": problems, "by_chain": by_chain}
    return model.drawn(posterior.thetas, posterior.log_evidence, rng, **about)


def mix_draws(
    name: str, part: ModelAverage, draws: Mapping[str, ParameterDraws], rng: np.random.Generator
) -> PartDraws:
    """Mix draws of candidate models by their probabilities; "<name>_model" has the number of each draw's."""
    if len(draws) == 1:
        only: CompiledPart = part.usual
        return only.evaluated(*draws.values())
    log_weights = np.log(list(part.probability.values()))
    evidence = float(np.logaddexp.reduce(log_weights + [d.log_evidence for d in draws.values()]))
    C, K = next(iter(draws.values())).states.shape
    # Chains are independent, so that each weights the models by the evidence of its own points.
    by_chain = log_weights + np.stack([d.by_chain for d in draws.values()], axis=-1)
    probability = np.exp(by_chain - np.logaddexp.reduce(by_chain, axis=1)[:, None])
    model = np.stack([rng.permutation(resampled(p, K, rng)) for p in probability])
    chosen = {n: model == i for i, n in enumerate(draws) if (model == i).any()}
    parts = {n: part.models[n].evaluated(draws[n], here) for n, here in chosen.items()}

    def mix(values: Mapping[str, FloatArray]) -> FloatArray:
        one = next(iter(values.values()))
        mixed = np.empty((C, K, *one.shape[1:]), one.dtype)
        for n, of_model in values.items():
            mixed[chosen[n]] = of_model
        return mixed

    def mix_common(field: str) -> dict[str, FloatArray]:
        fields = {n: getattr(d, field) for n, d in parts.items()}
        first, *others = fields.values()
        return {k: mix({n: f[k] for n, f in fields.items()}) for k in first if all(k in f for f in others)}

    prior = dict(zip(draws, log_weights, strict=True))
    return PartDraws(
        mix_common("by_size"),
        mix_common("parameters") | {f"{name}_model": model},
        mix({n: d.log_prior - _mean_log_prior(part.models[n]) + prior[n] for n, d in parts.items()}),
        max(d.khat for d in parts.values()),
        [f"{n}: {problem}" for n, d in parts.items() for problem in d.problems],
        evidence,
    )


def draw_average_from_prior(
    part: Any, data: Mapping[str, Any], draws: int, rng: np.random.Generator
) -> PartDraws:
    """Draw a part from the prior, (1, draws, ...), with its candidate models in random order.

    Parameters are those that all candidates have.
    """
    average = as_average(part)
    counts = rng.multinomial(draws, [*average.probability.values()])
    drawn = [
        draw_from_prior(model, data, int(number), rng)
        for model, number in zip(average.models.values(), counts, strict=True)
        if number
    ]
    order, first = rng.permutation(draws), drawn[0]

    def join(values: Sequence[FloatArray]) -> FloatArray:
        return np.concatenate(values, axis=1)[:, order]

    def join_common(field: str) -> dict[str, FloatArray]:
        fields = [getattr(d, field) for d in drawn]
        return {k: join([f[k] for f in fields]) for k in fields[0] if all(k in f for f in fields)}

    log_prior = join([d.log_prior for d in drawn])
    return replace(
        first, by_size=join_common("by_size"), parameters=join_common("parameters"), log_prior=log_prior
    )


def _mean_log_prior(part: CompiledPart) -> float:
    """Return about the mean log prior density of draws from the prior of a candidate.

    Densities of candidates with wider priors or with more parameters are lower everywhere. Without this mean
    a prior that counts twice would prefer other candidates for that alone.
    """
    centre = ParameterDraws(part.start[None, None], np.zeros((1, 1), dtype=np.int64), np.nan)
    # in each coordinate a normal density has on average 1/2 less than at its centre
    return part.evaluated(centre).log_prior.item() - len(part.start) / 2
