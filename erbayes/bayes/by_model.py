"""A fit under each of its candidate models: fits, probabilities and convergence, as tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import product
from typing import Any, Self

import numpy as np
import pandas as pd
from arviz_stats.base import array_stats

from .._internal.arrays import FloatArray
from ..metrics.definitions import MetricLike, pairwise_precision, pairwise_recall
from .heap import read_as_capped
from .model_average import as_average
from .population import join_and_complete
from .totals import FittedTotals

REJECTED = -4.6
"""Log Bayes factor against the best model, below which a sample rejects a model. It is 1/100."""


class FittedByModel(FittedTotals):
    """A fit whose parts may have candidate models."""

    @property
    def _combinations(self) -> list[dict[str, str]]:
        """Each combination of the models of the tied parts, place -> model, the first of each first."""
        return [dict(zip(self.parts, names, strict=True)) for names in product(*self.parts.values())]

    @cached_property
    def by_model(self) -> dict[str, Self]:
        """Fits under each combination of models, the first of each first; none if each part has one."""
        combinations, fits = self._combinations, dict[str, Self]()
        if len(combinations) < 2:
            return fits
        data = self.evidence.data
        tied = self.model.compile(data)
        draws = {
            place: {name: tied[place].models[name].evaluated(d) for name, d in of_part.items()}
            for place, of_part in self.parts.items()
        }
        for i, models in enumerate(combinations):
            rng = np.random.default_rng([self.seed, i])
            of_models = {place: draws[place][name] for place, name in models.items()}
            joint, population = join_and_complete(of_models, data, rng)
            parts = {place: {name: self.parts[place][name]} for place, name in models.items()}
            name = ", ".join(name for name in models.values() if name)
            capped = read_as_capped(self.sample, self.evidence, population, self.seed)
            fits[name] = replace(self, draws=joint, population=population, parts=parts, capped=capped)
        return fits

    def _compute_probabilities(self) -> list[tuple[float, float, float]]:
        """Return prior and posterior probability of each combination, and the error between chains."""
        tied, probabilities = self.model.tied, []
        for models in self._combinations:
            prior = np.prod([as_average(tied[place]).probability[name] for place, name in models.items()])
            follows = [
                self.draws.parameters[f"{place}_model"] == [*self.parts[place]].index(name)
                for place, name in models.items()
                if len(self.parts[place]) > 1
            ]
            share = np.all(follows, axis=0).mean(axis=1)
            error = share.std(ddof=1) / np.sqrt(len(share)) if len(share) > 1 else np.nan
            probabilities.append((float(prior), float(share.mean()), float(error)))
        return probabilities

    def models(
        self, metrics: MetricLike = (pairwise_precision, pairwise_recall), level: float = 0.95
    ) -> pd.DataFrame:
        """Return intervals of metrics under each combination of models, and its probability."""
        probabilities = self._compute_probabilities() if self.by_model else []
        best = max((fit.draws.log_evidence for fit in self.by_model.values()), default=0.0)
        rows = {}
        for (model, fit), probability in zip(self.by_model.items(), probabilities, strict=True):
            draws, evidence = fit.apply(metrics), fit.draws.log_evidence - best
            bounds = draws.interval(level)
            for name, estimate, (lower, upper) in zip(draws.names, draws.mean, bounds, strict=True):
                rows[name, model] = estimate, lower, upper, *probability, evidence, evidence < REJECTED
        index = pd.MultiIndex.from_tuples(rows, names=["metric", "model"]) if rows else None
        columns = ["estimate", "lower", "upper", "prior", "posterior", "posterior_error"]
        columns += ["log_evidence", "rejected"]
        return pd.DataFrame(list(rows.values()), index=index, columns=columns)

    def convergence(self) -> pd.DataFrame:
        """Return the diagnostics of the draws of each candidate model, one row per part and model.

        See Also
        --------
        NotConverged : warns of a model in proportion to its posterior probability.
        """
        rows, tied = {}, self.model.compile(self.evidence.data)
        for place, of_part in self.parts.items():
            probability = tied[place].posterior([d.log_evidence for d in of_part.values()])
            for (model, draws), p in zip(of_part.items(), probability, strict=True):
                mixing = _find_mixing(draws.thetas, tied[place].models[model].coordinates)
                rows[place, model] = {"probability": p, "khat": draws.khat, **mixing}
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis(["part", "model"])


def _find_mixing(chains: FloatArray, names: Sequence[str]) -> dict[str, Any]:
    """Return the largest R-hat of chains, (chain, draw, d), whose it is, and the fewest effective draws."""
    r_hat = array_stats.rhat(chains, chain_axis=0, draw_axis=1)
    effective = array_stats.ess(chains, chain_axis=0, draw_axis=1, method="bulk")
    worst = int(np.argmax(np.where(np.isnan(r_hat), 1.0, r_hat)))  # a parameter that does not vary has none
    return {"r_hat": float(r_hat[worst]), "worst": names[worst], "effective": float(np.nanmin(effective))}
