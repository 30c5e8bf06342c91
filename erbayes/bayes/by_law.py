"""A fit under each law of its parts: fits, probabilities and convergence of the laws, as tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from itertools import product
from typing import Self

import numpy as np
import pandas as pd

from ..metrics.definitions import Wanted, pairwise_precision, pairwise_recall
from .laws import laws
from .outcomes import BETWEEN
from .parts import PartDraws
from .population import populations
from .samplers import mixing
from .totals import FittedTotals

REJECTED = -4.6
"""Log Bayes factor against the best law, below which a sample rejects a law. It is 1/100."""
OfLaws = Mapping[str, Mapping[str, PartDraws]]
"""Draws by place of a part and by law."""


def evaluate_laws(fit: FittedTotals) -> OfLaws:
    """Return the draws of each law of the tied parts, with their quantities by size."""
    tied = fit.model.compiled(fit.evidence.data)
    return {
        place: {name: tied[place].laws[name].evaluated(d) for name, d in drawn.items()}
        for place, drawn in fit.parts.items()
    }


def restrict_to_laws[F: FittedTotals](
    fit: F, chosen: Mapping[str, str], of_laws: OfLaws, rng: np.random.Generator
) -> F:
    """Return a fit under one law for each part."""
    of_law = {place: draws[chosen[place]] for place, draws in of_laws.items()}
    draws, population = populations(of_law, fit.evidence.data, rng)
    parts = {place: {chosen[place]: d[chosen[place]]} for place, d in fit.parts.items()}
    return replace(fit, draws=draws, population=population, parts=parts)


def list_combinations(fit: FittedTotals) -> list[dict[str, str]]:
    """Return each combination of the laws of the tied parts, place -> law, the most usual first."""
    return [dict(zip(fit.parts, names, strict=True)) for names in product(*fit.parts.values())]


def compute_chances(fit: FittedTotals) -> list[tuple[float, float, float]]:
    """Return chances of `list_combinations` before and after the sample, and the error between chains."""
    tied, chances = fit.model.tied, []
    for chosen in list_combinations(fit):
        prior = np.prod([laws(tied[place]).probability[law] for place, law in chosen.items()])
        follows = [
            fit.draws.parameters[f"{place}_law"] == [*fit.parts[place]].index(law)
            for place, law in chosen.items()
            if len(fit.parts[place]) > 1
        ]
        share = np.all(follows, axis=0).mean(axis=1)
        error = share.std(ddof=1) / np.sqrt(len(share)) if len(share) > 1 else np.nan
        chances.append((float(prior), float(share.mean()), float(error)))
    return chances


class FittedLaws(FittedTotals):
    """What each law of the parts of a fit says, and how well its draws can be relied on."""

    @cached_property
    def by_law(self) -> dict[str, Self]:
        """Fits under each combination of laws, the most usual first; none if each part has one law."""
        combinations, fits = list_combinations(self), dict[str, Self]()
        if len(combinations) < 2:
            return fits
        of_laws = evaluate_laws(self)
        for i, chosen in enumerate(combinations):
            # The first streams of the seed belong to the untied parts.
            rng = np.random.default_rng([self.seed, 1 + len(BETWEEN) + i])
            under = restrict_to_laws(self, chosen, of_laws, rng)
            fits[", ".join(name for name in chosen.values() if name)] = under
        return fits

    def laws(
        self, metrics: Wanted = (pairwise_precision, pairwise_recall), level: float = 0.95
    ) -> pd.DataFrame:
        """Return intervals of metrics under each combination of laws, and its probability."""
        chances = compute_chances(self) if self.by_law else []
        best = max((fit.draws.log_evidence for fit in self.by_law.values()), default=0.0)
        rows = {}
        for (law, fit), of_law in zip(self.by_law.items(), chances, strict=True):
            draws, evidence = fit.apply(metrics), fit.draws.log_evidence - best
            bounds = draws.interval(level)
            for name, estimate, (lower, upper) in zip(draws.names, draws.mean, bounds, strict=True):
                rows[name, law] = (estimate, lower, upper, *of_law, evidence, evidence < REJECTED)
        index = pd.MultiIndex.from_tuples(rows, names=["metric", "law"]) if rows else None
        columns = ["estimate", "lower", "upper", "prior", "posterior", "posterior_error"]
        columns += ["log_evidence", "rejected"]
        return pd.DataFrame(list(rows.values()), index=index, columns=columns)

    def convergence(self) -> pd.DataFrame:
        """Return how well the draws of each law can be relied on.

        `NotConverged` warns of a law in proportion to its posterior probability. This table has all laws.
        """
        rows, tied = {}, self.model.compiled(self.evidence.data)
        for place, draws in self.parts.items():
            probability = tied[place].posterior([d.log_evidence for d in draws.values()])
            for (law, drawn), p in zip(draws.items(), probability, strict=True):
                row = rows[place, law] = {"probability": p, "khat": drawn.khat}
                if len(drawn.thetas) > 1:
                    r_hat, effective = mixing(drawn.thetas, tied[place].laws[law].coordinates)
                    row |= {"r_hat": r_hat[0], "worst": r_hat[1], "effective": effective[0]}
                if drawn.statistics:
                    row["divergent"] = int(np.sum(drawn.statistics["diverging"]))
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis(["part", "law"])
