"""Samplers of parts: importance sampling, and NUTS in whitened coordinates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from arviz_stats.base import array_stats

from .._internal.arrays import FloatArray
from .._internal.errors import DataError, whole
from .importance import KHAT, NEGLIGIBLE, Approximation, approximated
from .model_average import ModelAverage
from .programs import CompiledPart, ParameterDraws, Program, building

RHAT = 1.01
"""Largest R-hat of reliable chains."""
ESS_PER_CHAIN = 100
"""Fewest effective draws per chain of reliable chains."""
DIVERGENT = 0.001
"""Largest share of divergent transitions of a reliable fit."""
FEWEST_DRAWS = 50
"""Fewest draws from which the Pareto shape of their weights can be estimated."""
PILOT_DRAWS = 1000
"""Draws of the approximation that gives NUTS its coordinates."""


def need_draws(draws: Any) -> int:
    """Return a number of draws as an integer; raise DataError if it is none, or below `FEWEST_DRAWS`."""
    number = whole(draws, "draws", 0)
    if number < FEWEST_DRAWS:
        raise DataError(f"{number} draws are too few: draws must be {FEWEST_DRAWS} or more")
    return number


class NotConverged(UserWarning):
    """Warning that a fit is unreliable, with the reasons."""


def problems_of_chains(
    chains: FloatArray, names: list[str], probability: float = 1.0, diverging: int = 0
) -> list[str]:
    """Return the problems of chains, (chain, draw, k), with remedies: they diverge, or do not mix.

    A model of probability p needs p times the effective draws, and may have 1/p times the R² - 1.
    """
    problems = []
    if diverging * probability > DIVERGENT * chains[..., 0].size:
        problems = [f"{diverging} divergent transitions: raise target_accept, look at the priors"]
    if len(chains) < 2:
        return problems
    (r_hat, worst), (effective, slowest) = mixing(chains, names)
    largest, fewest = np.sqrt(1 + (RHAT**2 - 1) / probability), ESS_PER_CHAIN * len(chains) * probability
    if r_hat > largest:
        problems.append(f"R-hat {r_hat:.3f} of {worst} above {largest:.4g}: raise tune and draws")
    if effective < fewest:
        problems.append(f"{effective:.0f} effective draws of {slowest}, fewer than {fewest:.0f}: raise draws")
    return problems


def mixing(chains: FloatArray, names: list[str]) -> tuple[tuple[float, str], tuple[float, str]]:
    """Return the largest R-hat and the fewest effective draws, each with the name of its quantity."""
    r_hat = array_stats.rhat(chains, chain_axis=0, draw_axis=1)
    ess = array_stats.ess(chains, chain_axis=0, draw_axis=1, method="bulk")
    # quantities that do not vary have no R-hat
    worst = np.argmax(np.where(np.isnan(r_hat), 1.0, r_hat))
    slowest = np.argmin(np.where(np.isnan(ess), np.inf, ess))
    return (float(r_hat[worst]), names[worst]), (float(ess[slowest]), names[slowest])


SAME = ("diverging", "n_steps", "step_size", "energy", "energy_error", "max_energy_error")
STATISTICS = dict(zip(SAME, SAME, strict=True)) | {
    "depth": "tree_depth",
    "maxdepth_reached": "reached_max_treedepth",
    "mean_tree_accept": "acceptance_rate",
    "logp": "lp",
}
"""Names of statistics of NUTS in ArviZ, by their names in nutpie."""


def pack(values: Iterable[Any]) -> FloatArray:
    """Return arrays as one vector, because nutpie needs seconds to compile each datum.

    First are the places where the arrays begin and end, then the lengths of their rows.
    """
    arrays = [np.asarray(v, dtype=float) for v in values]
    places = 2 * len(arrays) + 1 + np.cumsum([0, *(v.size for v in arrays)])
    rows = [v.shape[-1] if v.ndim else 1 for v in arrays]
    return np.concatenate([places, rows, *(v.ravel() for v in arrays)])


def unpack(packed: Any, symbols: Sequence[Any]) -> list[Any]:
    """Return the arrays of a symbolic vector by `pack`, with the types of symbols."""
    k, values = len(symbols), []
    places = packed[: 2 * k + 1].astype("int64")
    for i, v in enumerate(symbols):
        value = packed[places[i] : places[i + 1]] if v.ndim else packed[places[i]]
        value = value.reshape((-1, places[k + 1 + i])) if v.ndim > 1 else value
        values.append(value.astype(v.dtype))
    return values


def whitened_density(program: Program, z: Any, packed: Any) -> Any:
    """Return the log density at θ = centre + root z, symbolically. `packed` are centre, root and data."""
    centre, root, *data = unpack(packed, [pt.vector(), pt.matrix(), *program.data.values()])
    return program.log_density(centre + (root * z).sum(axis=-1), data)


@cache
def compile_for_nutpie(program: Program) -> Any:
    """Compile the whitened density of a program for all its data, as a model of nutpie."""
    import nutpie

    with building(), pm.Model() as model:
        z, packed = pm.Flat("z", shape=program.theta.type.shape), pm.Data("packed", np.zeros(1))
        pm.Potential("density", whitened_density(program, z, packed))
        return nutpie.compile_pymc_model(model)


@dataclass(frozen=True, slots=True)
class NUTS:
    """Sampler by nutpie's No-U-Turn sampler (Hoffman and Gelman 2014), with arguments as of `pymc.sample`."""

    draws: int
    tune: int = 1000
    chains: int = 4
    cores: int | None = None
    target_accept: float = 0.9
    progressbar: bool = True

    def __post_init__(self) -> None:
        if self.chains < 1:
            raise DataError(f"{self.chains} chains: chains must be 1 or more")

    def __call__(
        self, parts: Sequence[ModelAverage], rng: np.random.Generator
    ) -> list[dict[str, ParameterDraws]]:
        return [self._draw_models(part, rng) for part in parts]

    def _draw_models(self, part: ModelAverage, rng: np.random.Generator) -> dict[str, ParameterDraws]:
        """Draw each candidate model of a part."""
        pilots = [approximated([model], PILOT_DRAWS, rng)[0] for model in part.models.values()]
        probability, draws = part.posterior([pilot.adapted.log_evidence for pilot in pilots]), {}
        for (name, model), pilot, p in zip(part.models.items(), pilots, probability, strict=True):
            thetas, statistics = self.sampled(model, pilot, rng)
            diverging = int(np.sum(statistics.get("diverging", 0)))
            problems = problems_of_chains(thetas, model.coordinates, p, diverging)
            about = {"khat": pilot.khat, "problems": problems, "statistics": statistics}
            draws[name] = model.drawn(thetas, pilot.log_evidence, rng, **about)
        return draws

    def sampled(
        self, part: CompiledPart, posterior: Approximation, rng: np.random.Generator
    ) -> tuple[FloatArray, dict[str, Any]]:
        """Return draws of θ, (chain, draw, d), and their statistics under ArviZ's names, (chain, draw).

        They are drawn in coordinates in which the posterior is nearly standard normal.
        """
        import nutpie

        (centre, root), seed = posterior.find_moments(), int(rng.integers(2**31))
        packed = pack([centre, root, *part.data.values()])
        names = ("draws", "tune", "chains", "cores", "target_accept")
        settings = {name: getattr(self, name) for name in names}
        model = compile_for_nutpie(part.program).with_data(packed=packed)
        tree = nutpie.sample(model, seed=seed, progress_bar=self.progressbar, **settings)
        stats = tree["sample_stats"].data_vars
        statistics = {STATISTICS[k]: v.to_numpy() for k, v in stats.items() if k in STATISTICS}
        return centre + tree["posterior"]["z"].to_numpy() @ root.T, statistics


@dataclass(frozen=True, slots=True)
class Importance:
    """Sampler of each part by importance sampling, or by NUTS if the weights are unreliable."""

    draws: int
    chains: int = 1

    def __call__(
        self, parts: Sequence[ModelAverage], rng: np.random.Generator
    ) -> list[dict[str, ParameterDraws]]:
        """Return draws of each `CompiledPart` of each part."""
        draws = self.draws * self.chains
        posteriors = [
            approximated([*part.models.values()], draws, rng, [*part.probability.values()], self.chains)
            for part in parts
        ]
        return [
            {
                name: self._draw(model, posterior, rng)
                for (name, model), posterior in zip(part.models.items(), of_part, strict=True)
            }
            for part, of_part in zip(parts, posteriors, strict=True)
        ]

    def _draw(
        self, model: CompiledPart, posterior: Approximation, rng: np.random.Generator
    ) -> ParameterDraws:
        """Draw a model from its weighted points, or by NUTS if the weights are unreliable."""
        khat, thetas, problems = posterior.khat, posterior.thetas, list[str]()
        unreliable = khat > KHAT and posterior.share >= NEGLIGIBLE
        refitted = unreliable and model.informed is None  # NUTS cannot draw an informed prior
        if refitted:
            # whitened by the points, chains need little tuning
            nuts = NUTS(draws=self.draws, tune=250, chains=self.chains, progressbar=False)
            thetas, _ = nuts.sampled(model, posterior, rng)
        elif unreliable:
            problems = [f"importance weights are unreliable (Pareto k {khat:.2f}, above {KHAT}): raise draws"]
        by_chain = np.logaddexp(posterior.adapted.by_chain, model.log_flawless)
        about = {"khat": khat, "refitted": refitted, "problems": problems, "by_chain": by_chain}
        return model.drawn(thetas, posterior.log_evidence, rng, **about)
