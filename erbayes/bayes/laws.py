"""Several laws for one part of a size model, of which the sample shows which holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._internal.arrays import FloatArray
from .._internal.errors import DataError
from .importance import resampled
from .parts import CompiledPart, Drawn, PartDraws


@dataclass(frozen=True)
class OneOf:
    """A part of a size model that follows one of several laws. The posterior weighs them by their evidence.

    The evidence of a law is its marginal likelihood. Draws come from each law with a probability in
    proportion to its prior weight times its evidence, which the known number of predicted links then
    changes further.

    Parameters
    ----------
    laws : mapping, name -> Part or SizeFamily
        The most usual law first. It stands for the part in `Fit.pymc`. All have the same observed
        variables, so that their evidence can be compared.
    weights : mapping, name -> float
        Prior weights, above 0. By default all are equal.

    Raises
    ------
    DataError
        No law, or weights that are not above 0 or of other names.

    Examples
    --------
    >>> from erbayes.bayes import Level, OneOf, Retention, SizeModel
    >>> careful, careless = Retention(), Retention(break_level=Level(0.5, 0.5))
    >>> law = OneOf({"careful": careful, "careless": careless}, {"careful": 3, "careless": 1})
    >>> SizeModel(retention=law).retention.probability
    {'careful': 0.75, 'careless': 0.25}
    """

    laws: Mapping[str, Any]
    weights: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.laws:
            raise DataError("OneOf needs a law or more")
        if self.weights and (
            set(self.weights) != set(self.laws) or not all(0 < w < np.inf for w in self.weights.values())
        ):
            raise DataError(
                f"weights must be above 0, one for each of {', '.join(self.laws)}, not {dict(self.weights)}"
            )

    @property
    def probability(self) -> dict[str, float]:
        """Prior probability of each law."""
        weights = {name: float(self.weights.get(name, 1.0)) for name in self.laws}
        return {name: w / sum(weights.values()) for name, w in weights.items()}

    def posterior(self, log_evidence: Sequence[float]) -> FloatArray:
        """Return the posterior probability of each law, from the log evidence of each."""
        log_joint = np.log([*self.probability.values()]) + log_evidence
        return np.asarray(np.exp(log_joint - np.logaddexp.reduce(log_joint)))

    @property
    def usual(self) -> Any:
        """Return the first law."""
        return next(iter(self.laws.values()))

    @property
    def title(self) -> str:
        """Name of the first law in messages."""
        return str(getattr(self.usual, "title", type(self.usual).__name__))

    def given_size(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Create the first law in a PyMC model, and return its quantities by size."""
        return dict(self.usual.given_size(data))


def laws(part: Any) -> OneOf:
    """Return a part as `OneOf`: itself, or the only law of one."""
    return part if isinstance(part, OneOf) else OneOf({"": part})


def compiled(part: Any, data: Mapping[str, Any]) -> OneOf:
    """Return the laws of a part, each a `CompiledPart` with these data."""
    of_part = laws(part)
    return replace(of_part, laws={name: CompiledPart.of(law, data) for name, law in of_part.laws.items()})


def weighed(name: str, part: OneOf, draws: Mapping[str, Drawn], rng: np.random.Generator) -> PartDraws:
    """Mix draws of the laws of a part by their probabilities; "<name>_law" is that of each draw."""
    if len(draws) == 1:
        only: CompiledPart = part.usual
        return only.evaluated(*draws.values())
    log_weights = np.log(list(part.probability.values()))
    log_joint = log_weights + [d.log_evidence for d in draws.values()]
    evidence = float(np.logaddexp.reduce(log_joint))
    C, K = next(iter(draws.values())).states.shape
    # Chains are independent, so that each weighs the laws by the evidence of its own points.
    of_chain = log_weights + np.stack(
        [np.full(C, d.log_evidence) if d.by_chain is None else d.by_chain for d in draws.values()], axis=-1
    )
    probability = np.exp(of_chain - np.logaddexp.reduce(of_chain, axis=1)[:, None])
    law = np.stack([rng.permutation(resampled(p, K, rng)) for p in probability])
    chosen = {i: n for i, n in enumerate(draws) if (law == i).any()}
    of_law = {i: part.laws[n].evaluated(draws[n], law == i) for i, n in chosen.items()}

    def mixed(values: Mapping[int, FloatArray]) -> FloatArray:
        one = next(iter(values.values()))
        result = np.empty((C, K, *one.shape[1:]), one.dtype)
        for i, of_one in values.items():
            result[law == i] = of_one
        return result

    def common(field: str) -> dict[str, FloatArray]:
        fields = {i: getattr(d, field) for i, d in of_law.items()}
        names = [k for k in next(iter(fields.values())) if all(k in f for f in fields.values())]
        return {k: mixed({i: f[k] for i, f in fields.items()}) for k in names}

    first: PartDraws = next(iter(of_law.values()))
    return replace(
        first,
        by_size=common("by_size"),
        parameters=common("parameters") | {f"{name}_law": law},
        log_prior=mixed({i: d.log_prior + log_weights[i] for i, d in of_law.items()}),
        khat=max(d.khat for d in of_law.values()),
        problems=[f"{chosen[i]}: {problem}" for i, d in of_law.items() for problem in d.problems],
        refitted=any(d.refitted for d in of_law.values()),
        statistics=common("statistics"),
        log_evidence=evidence,
    )
