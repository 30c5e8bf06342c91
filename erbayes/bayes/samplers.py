"""Samplers of parts: importance sampling, and NUTS in whitened coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from arviz_stats.base import array_stats
from pytensor.graph.replace import graph_replace

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


def problems_of_chains(chains: FloatArray, names: list[str], probability: float = 1.0) -> list[str]:
    """Return the problems of chains, (chain, draw, k), with remedies: high R-hat or few effective draws.

    A model of probability p needs p times the effective draws, and may have 1/p times the R² - 1.
    """
    (r_hat, worst), (effective, slowest) = mixing(chains, names)
    largest, fewest = np.sqrt(1 + (RHAT**2 - 1) / probability), ESS_PER_CHAIN * len(chains) * probability
    problems = []
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


@dataclass(frozen=True, slots=True, eq=False)
class Chains:
    """Draws of NUTS, `thetas`, (chain, draw, d), with its `statistics` under ArviZ's names, (chain, draw)."""

    thetas: FloatArray
    statistics: dict[str, Any]

    def problems(self, part: CompiledPart, probability: float) -> list[str]:
        """Return the problems of the chains of a model with this posterior probability, with remedies."""
        problems, diverging = [], int(np.sum(self.statistics.get("diverging", 0)))
        if diverging * probability > DIVERGENT * self.thetas[..., 0].size:
            problems = [f"{diverging} divergent transitions: raise target_accept, look at the priors"]
        if len(self.thetas) > 1:
            problems += problems_of_chains(self.thetas, part.coordinates, probability)
        return problems


SAME = ("diverging", "n_steps", "step_size", "energy", "energy_error", "max_energy_error")
STATISTICS = dict(zip(SAME, SAME, strict=True)) | {
    "depth": "tree_depth",
    "maxdepth_reached": "reached_max_treedepth",
    "mean_tree_accept": "acceptance_rate",
    "logp": "lp",
}
"""Names of statistics of NUTS in ArviZ, by their names in nutpie."""


@dataclass(frozen=True, slots=True, eq=False)
class Whitened:
    """The density of a part as a function of z, (d,), with the parameters θ = centre + root z."""

    compiled: ClassVar[dict[Program, tuple[Packing, Any]]] = {}

    part: CompiledPart
    centre: FloatArray
    root: FloatArray

    def thetas(self, z: FloatArray) -> FloatArray:
        """Return the parameters at each z, (chain, draw, d)."""
        return self.centre + z @ self.root.T

    @property
    def values(self) -> list[Any]:
        return [self.centre, self.root, *self.part.data.values()]

    def packed_density(self, z: Any) -> tuple[Any, Packing]:
        """Return the log density at a symbolic z, and a `Packing` of the symbols of its data."""
        centre, root = pt.vector("centre"), pt.matrix("root")
        data = [v.clone() for v in self.part.program.graph.data.values()]
        density = self.part.program.log_density(centre + (root * z).sum(axis=-1), data)
        return density, Packing([centre, root, *data])

    def for_nutpie(self) -> Any:
        """Return the density as a model of nutpie, which is compiled once for all data of such parts."""
        import nutpie

        program = self.part.program
        if program not in self.compiled:
            with pm.Model() as model:
                # a graph of packed data is compiled once for all samples
                density, packing = self.packed_density(pm.Flat("z", shape=len(self.centre)))
                packed = pm.Data("packed", packing.vector(self.values))
                pm.Potential("density", packing.unpacked(density, packed))
            self.compiled[program] = packing, nutpie.compile_pymc_model(model)
        packing, compiled = self.compiled[program]
        return compiled.with_data(packed=packing.vector(self.values))


@dataclass(frozen=True, slots=True, eq=False)
class Packing:
    """All data of a graph in one vector, because nutpie needs seconds to compile each datum."""

    symbols: list[Any]

    def vector(self, values: Sequence[Any]) -> FloatArray:
        """Pack values: scalars, then the end of each array, then the length of its rows, then the arrays."""
        scalars = [float(v) for v in values if not np.ndim(v)]
        arrays = [np.asarray(v, dtype=float) for v in values if np.ndim(v)]
        first = len(scalars) + 2 * len(arrays) + 1
        ends = first + np.cumsum([0, *(v.size for v in arrays)])
        rows = [float(v.shape[-1]) for v in arrays]
        return np.concatenate([scalars, ends, rows, *(v.ravel() for v in arrays)])

    def unpacked(self, graph: Any, vector: Any) -> Any:
        """Return the graph with slices of a symbolic vector in place of its data."""
        scalars = [v for v in self.symbols if not v.ndim]
        arrays = [v for v in self.symbols if v.ndim]
        s, k = len(scalars), len(arrays)
        slices = {v: vector[i].astype(v.dtype) for i, v in enumerate(scalars)}
        whole = vector[s : s + 2 * k + 1].astype("int64")
        for i, v in enumerate(arrays):
            array = vector[whole[i] : whole[i + 1]].astype(v.dtype)
            slices[v] = array if v.ndim == 1 else array.reshape((-1, whole[k + 1 + i]))
        return graph_replace(graph, slices, strict=False)


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
            chains = self.sampled(model, pilot, rng)
            about = {"problems": chains.problems(model, p), "statistics": chains.statistics}
            draws[name] = model.drawn(chains.thetas, pilot.log_evidence, rng, khat=pilot.khat, **about)
        return draws

    def sampled(self, part: CompiledPart, posterior: Approximation, rng: np.random.Generator) -> Chains:
        """Draw a part, in coordinates in which its posterior is nearly standard normal."""
        import nutpie

        whitened, seed = Whitened(part, posterior.centre, posterior.root), int(rng.integers(2**31))
        with building():
            model = whitened.for_nutpie()
        names = ("draws", "tune", "chains", "cores", "target_accept")
        settings = {name: getattr(self, name) for name in names}
        tree = nutpie.sample(model, seed=seed, progress_bar=self.progressbar, **settings)
        stats = tree["sample_stats"].data_vars
        statistics = {STATISTICS[k]: v.to_numpy() for k, v in stats.items() if k in STATISTICS}
        return Chains(whitened.thetas(tree["posterior"]["z"].to_numpy()), statistics)


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
            thetas = nuts.sampled(model, posterior, rng).thetas
        elif unreliable:
            problems = [f"importance weights are unreliable (Pareto k {khat:.2f}, above {KHAT}): raise draws"]
        by_chain = np.logaddexp(posterior.adapted.by_chain, model.log_flawless)
        about = {"khat": khat, "refitted": refitted, "problems": problems, "by_chain": by_chain}
        return model.drawn(thetas, posterior.log_evidence, rng, **about)
