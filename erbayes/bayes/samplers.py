"""Samplers of parts: importance sampling, and NUTS in coordinates with a nearly standard normal posterior."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, ClassVar, Protocol

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from arviz_stats.base import array_stats
from pytensor.graph.replace import graph_replace
from scipy.linalg import block_diag

from ..arrays import FloatArray, generator
from ..errors import DataError
from .importance import KHAT, NEGLIGIBLE, Approximation, approximated
from .laws import OneOf
from .parts import COMPILER, CompiledPart, Drawn, Program

RHAT = 1.01
"""Largest R-hat of chains that can be relied on."""
ESS_PER_CHAIN = 100
"""Smallest number of effective draws per chain that can be relied on."""
FEWEST_DRAWS = 50
"""Smallest number of draws from which the Pareto shape of their weights can be estimated."""
NUTS_SAMPLERS = ("nutpie", "pymc", "numpyro", "blackjax")
"""Values of `nuts_sampler` in `pymc.sample`; each is a package."""
PILOT_DRAWS = 1000
"""Draws of the approximation that gives NUTS its coordinates."""


def need_draws(draws: int) -> None:
    """Raise DataError for fewer than `FEWEST_DRAWS` draws."""
    if draws < FEWEST_DRAWS:
        raise DataError(f"{draws} draws are too few: draws must be {FEWEST_DRAWS} or more")


class NotConverged(UserWarning):
    """Warning that a fit cannot be relied on, with the reasons."""


class Sampler(Protocol):
    """A way to draw the parameters of independent parts, with `draws` draws in each chain."""

    @property
    def draws(self) -> int: ...
    def __call__(self, parts: Sequence[OneOf], rng: np.random.Generator) -> list[dict[str, Drawn]]:
        """Return posterior draws of each law of each part. Laws are objects of `CompiledPart`."""
        ...


def problems_of_chains(chains: FloatArray, names: list[str]) -> list[str]:
    """Return the problems of chains, with remedies: a high R-hat, or too few effective draws.

    Parameters
    ----------
    chains : float array, (chain, draw, k)
    names : list of str, (k,)
        Names of the quantities.

    Returns
    -------
    list of str
        One line per problem, about the worst quantity.
    """
    problems = []
    r_hat = array_stats.rhat(chains, chain_axis=0, draw_axis=1)
    if np.nanmax(r_hat, initial=0) > RHAT:
        worst = names[int(np.nanargmax(r_hat))]
        problems.append(f"R-hat {np.nanmax(r_hat):.3f} of {worst} above {RHAT}: raise tune and draws")
    ess = array_stats.ess(chains, chain_axis=0, draw_axis=1, method="bulk")
    fewest = ESS_PER_CHAIN * len(chains)
    if np.nanmin(ess, initial=np.inf) < fewest:
        worst, least = names[int(np.nanargmin(ess))], np.nanmin(ess)
        problems.append(f"{least:.0f} effective draws of {worst}, fewer than {fewest:.0f}: raise draws")
    return problems


@dataclass(frozen=True, slots=True, eq=False)
class Chains:
    """Draws of NUTS.

    Attributes
    ----------
    thetas : list of float arrays, (chain, draw, d)
        Parameters of each part.
    statistics : dict, name -> array, (chain, draw)
        Statistics of the transitions, under ArviZ's names.
    """

    thetas: list[FloatArray]
    statistics: dict[str, Any]


RENAMED = {
    "depth": "tree_depth",
    "maxdepth_reached": "reached_max_treedepth",
    "mean_tree_accept": "acceptance_rate",
    "logp": "lp",
}
"""Statistics that have another name in nutpie than in ArviZ."""
STATISTICS = (
    "diverging",
    "n_steps",
    "tree_depth",
    "reached_max_treedepth",
    "step_size",
    "acceptance_rate",
    "energy",
    "energy_error",
    "max_energy_error",
    "lp",
)
"""Statistics of NUTS that are kept, by their names in ArviZ."""


@dataclass(frozen=True, slots=True, eq=False)
class Whitened:
    """Independent parts as one density of z, (d,). The parameters of all parts are θ = centre + root z.

    Attributes
    ----------
    parts : sequence of CompiledPart
    centre : float array, (d,)
    root : float array, (d, d)
    """

    compiled: ClassVar[dict[tuple[Program, ...], tuple[Packing, Any]]] = {}

    parts: Sequence[CompiledPart]
    centre: FloatArray
    root: FloatArray

    @classmethod
    def of(cls, parts: Sequence[CompiledPart], posteriors: Sequence[Approximation]) -> Whitened:
        """Choose coordinates in which the approximate posteriors of the parts are standard normal."""
        centre = np.concatenate([posterior.centre for posterior in posteriors])
        return cls(parts, centre, block_diag(*(posterior.root for posterior in posteriors)))

    @property
    def coordinates(self) -> list[slice]:
        """Coordinates of each part in θ."""
        ends = np.cumsum([len(part.start) for part in self.parts])
        return [slice(end - len(part.start), end) for part, end in zip(self.parts, ends, strict=True)]

    def log_density(self, z: Any) -> Any:
        """Return the log density at a symbolic z. The data are constants."""
        theta = self.centre + (pt.constant(self.root) * z).sum(axis=-1)
        own = self.coordinates
        return sum(part.log_density(theta[i]) for part, i in zip(self.parts, own, strict=True))

    def thetas(self, z: FloatArray) -> list[FloatArray]:
        """Return the parameters of each part at each z, (chain, draw, d)."""
        theta = self.centre + z @ self.root.T
        return [theta[..., own] for own in self.coordinates]

    @property
    def values(self) -> list[Any]:
        """Return the centre, the root and the data of all parts."""
        return [self.centre, self.root, *(v for part in self.parts for v in part.data.values())]

    def packed_density(self, z: Any) -> tuple[Any, Packing]:
        """Return the log density at a symbolic z, and a `Packing` of the symbols of its data."""
        centre, root = pt.vector("centre"), pt.matrix("root")
        theta, symbols, terms = centre + (root * z).sum(axis=-1), [centre, root], []
        for part, own in zip(self.parts, self.coordinates, strict=True):
            data = [v.clone() for v in part.program.graph.data.values()]
            terms.append(part.program.log_density(theta[own], data))
            symbols += data
        return sum(terms), Packing(symbols)

    def for_nutpie(self) -> Any:
        """Return the density as a model of nutpie, which is compiled once for all data of these parts."""
        import nutpie

        programs = tuple(part.program for part in self.parts)
        with COMPILER:
            if programs not in self.compiled:
                with pm.Model(check_bounds=False) as model:
                    density, packing = self.packed_density(pm.Flat("z", shape=len(self.centre)))
                    packed = pm.Data("packed", packing.vector(self.values))
                    pm.Potential("density", packing.unpacked(density, packed))
                self.compiled[programs] = packing, nutpie.compile_pymc_model(model)
            packing, compiled = self.compiled[programs]
            return compiled.with_data(packed=packing.vector(self.values))


@dataclass(frozen=True, slots=True, eq=False)
class Packing:
    """All data of a graph in one vector, because nutpie needs seconds to compile each datum that it reads.

    Attributes
    ----------
    symbols : list
        One for each datum: a scalar, vector or matrix.
    """

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
    """Sampler that draws all parts jointly by the No-U-Turn sampler (Hoffman and Gelman 2014).

    nutpie draws if it is installed and `nuts_sampler` names no other package. It compiles the parts once
    more, as one function that runs in threads.

    Parameters
    ----------
    draws, tune, chains, cores, target_accept, progressbar, nuts_sampler
        Arguments of `pymc.sample`.

    Raises
    ------
    DataError
        Fewer than 1 chain, or a sampler that is unknown or not installed.
    """

    draws: int
    tune: int
    chains: int
    cores: int | None = None
    target_accept: float = 0.8
    progressbar: bool = True
    nuts_sampler: str | None = None

    def __post_init__(self) -> None:
        if self.chains < 1:
            raise DataError(f"{self.chains} chains: chains must be 1 or more")
        if self.nuts_sampler is None:
            return
        installed = [name for name in NUTS_SAMPLERS if find_spec(name) is not None]
        if self.nuts_sampler not in installed:
            known = "not installed" if self.nuts_sampler in NUTS_SAMPLERS else "unknown"
            raise DataError(
                f"nuts_sampler='{self.nuts_sampler}' is {known}: choose from {', '.join(installed)}"
            )

    def __call__(self, parts: Sequence[OneOf], rng: np.random.Generator) -> list[dict[str, Drawn]]:
        laws = [law for part in parts for law in part.laws.values()]
        posteriors = [p for law in laws for p in approximated([law], PILOT_DRAWS, rng)]
        chains, draws = self.sampled(laws, posteriors, rng), []
        for law, posterior, thetas in zip(laws, posteriors, chains.thetas, strict=True):
            about: dict[str, Any] = {
                "khat": posterior.khat,
                "problems": problems_of_chains(thetas, law.coordinates) if self.chains > 1 else [],
                "statistics": chains.statistics,
            }
            draws.append(law.drawn(thetas, posterior.log_evidence, rng, **about))
        return by_part(parts, draws)

    def sampled(
        self, parts: Sequence[CompiledPart], posteriors: Sequence[Approximation], rng: np.random.Generator
    ) -> Chains:
        """Draw all parts, in coordinates in which their posterior is nearly standard normal."""
        by_nutpie = self.nuts_sampler in (None, "nutpie") and find_spec("nutpie") is not None
        draw, whitened = self._by_nutpie if by_nutpie else self._by_pymc, Whitened.of(parts, posteriors)
        tree = draw(whitened, int(rng.integers(2**31)))
        named = {RENAMED.get(k, k): v.to_numpy() for k, v in tree["sample_stats"].data_vars.items()}
        statistics = {k: named[k] for k in STATISTICS if k in named}
        return Chains(whitened.thetas(tree["posterior"]["z"].to_numpy()), statistics)

    def _by_nutpie(self, whitened: Whitened, seed: int) -> Any:
        import nutpie

        return nutpie.sample(
            whitened.for_nutpie(),
            draws=self.draws,
            tune=self.tune,
            chains=self.chains,
            cores=self.cores,
            seed=seed,
            target_accept=self.target_accept,
            progress_bar=self.progressbar,
        )

    def _by_pymc(self, whitened: Whitened, seed: int) -> Any:
        with COMPILER, pm.Model():
            pm.Potential("density", whitened.log_density(pm.Flat("z", shape=len(whitened.centre))))
            return pm.sample(
                draws=self.draws,
                tune=self.tune,
                chains=self.chains,
                cores=self.cores,
                target_accept=self.target_accept,
                random_seed=seed,
                progressbar=self.progressbar,
                nuts_sampler=self.nuts_sampler or "pymc",
                compute_convergence_checks=False,
            )


@dataclass(frozen=True, slots=True)
class Importance:
    """Sampler that draws each part by importance sampling, or by NUTS if the weights are unreliable.

    Parameters
    ----------
    draws : int
        Draws per chain.
    chains : int
        Number of chains among which the draws are divided.
    """

    draws: int
    chains: int = 1

    def __call__(self, parts: Sequence[OneOf], rng: np.random.Generator) -> list[dict[str, Drawn]]:
        K, draws = self.draws * self.chains, []
        laws = [law for part in parts for law in part.laws.values()]
        posteriors = [
            posterior
            for part in parts
            for posterior in approximated([*part.laws.values()], K, rng, [*part.probability.values()])
        ]
        nuts = NUTS(draws=-(-K // 2), tune=250, chains=2, progressbar=False)
        for law, p in zip(laws, posteriors, strict=True):
            unreliable, thetas, problems = p.khat > KHAT and p.share >= NEGLIGIBLE, p.thetas, []
            refitted = unreliable and find_spec("nutpie") is not None
            if refitted:
                (by_nuts,) = nuts.sampled([law], [p], rng).thetas
                thetas = by_nuts.reshape(-1, len(p.centre))[:K]
            elif unreliable:
                problems = [
                    f"importance weights are unreliable (Pareto k {p.khat:.2f}, above {KHAT}): "
                    "install nutpie, or use nuts()"
                ]
            thetas = thetas.reshape(self.chains, self.draws, -1)
            about = {"khat": p.khat, "refitted": refitted, "problems": problems}
            draws.append(law.drawn(thetas, p.log_evidence, rng, **about))
        return by_part(parts, draws)


def by_part(parts: Sequence[OneOf], draws: Iterable[Drawn]) -> list[dict[str, Drawn]]:
    """Return the draws of all laws by part and law."""
    each = iter(draws)
    return [{name: next(each) for name in part.laws} for part in parts]


def one_seed(rng: Any, random_seed: Any) -> np.random.Generator:
    """Return the generator of the one seed that is not None."""
    if rng is not None and random_seed is not None:
        raise DataError("both rng and random_seed were given, which are two names of the seed: give one")
    return generator(rng if random_seed is None else random_seed)
