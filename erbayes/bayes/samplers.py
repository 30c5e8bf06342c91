"""Samplers of parts: importance sampling, and NUTS where the posterior is nearly standard normal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, ClassVar, Protocol

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from arviz_stats.base import array_stats
from pytensor.graph.replace import graph_replace
from scipy.linalg import block_diag

from ..arrays import FloatArray
from ..errors import DataError
from .importance import KHAT, Approximation, approximated
from .parts import COMPILER, CompiledPart, PartDraws, Program

RHAT = 1.01
ESS_A_CHAIN = 100
FEWEST_DRAWS = 50
"""Fewer draws are too few for the Pareto shape of their weights."""
NUTS_SAMPLERS = ("nutpie", "pymc", "numpyro", "blackjax")
"""Names that `pymc.sample` takes; each is a package."""
PREPARED = 1000
"""Draws of the approximation in whose coordinates NUTS runs."""


def enough(draws: int) -> None:
    """Raise DataError for fewer than `FEWEST_DRAWS` draws."""
    if draws < FEWEST_DRAWS:
        raise DataError(f"{draws} draws are too few: draws must be {FEWEST_DRAWS} or more")


class Sampler(Protocol):
    """Draws independent parts: so many draws in each chain."""

    @property
    def draws(self) -> int: ...
    def __call__(self, parts: Sequence[CompiledPart], rng: np.random.Generator) -> list[PartDraws]: ...


def problems_of_chains(chains: FloatArray, names: list[str]) -> list[str]:
    """R-hat above 1.01 or too few effective draws among quantities (chain, draw, k), with remedies."""
    found = []
    r_hat = array_stats.rhat(chains, chain_axis=0, draw_axis=1)
    if np.nanmax(r_hat, initial=0) > RHAT:
        worst = names[int(np.nanargmax(r_hat))]
        found.append(f"R-hat {np.nanmax(r_hat):.3f} of {worst} above {RHAT}: raise tune and draws")
    ess, enough = array_stats.ess(chains, chain_axis=0, draw_axis=1, method="bulk"), ESS_A_CHAIN * len(chains)
    if np.nanmin(ess, initial=np.inf) < enough:
        worst = names[int(np.nanargmin(ess))]
        found.append(f"{np.nanmin(ess):.0f} effective draws of {worst}, fewer than {enough:.0f}: raise draws")
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Chains:
    """What NUTS found.

    Attributes
    ----------
    thetas : list of float arrays, (chain, draw, d)
        Of each part.
    statistics : dict of arrays, (chain, draw)
        What the sampler says of each transition, under ArviZ's names.
    """

    thetas: list[FloatArray]
    statistics: dict[str, Any]


RENAMED = {
    "depth": "tree_depth",
    "maxdepth_reached": "reached_max_treedepth",
    "mean_tree_accept": "acceptance_rate",
    "logp": "lp",
}
"""Statistics that nutpie calls otherwise than ArviZ."""
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
    """Independent parts as one density of z, (d,), with all their parameters θ = centre + root z.

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
    def of(cls, parts: Sequence[CompiledPart], found: Sequence[Approximation]) -> Whitened:
        """The parts in coordinates in which their approximations are standard normal."""
        return cls(parts, np.concatenate([f.centre for f in found]), block_diag(*(f.root for f in found)))

    @property
    def at(self) -> list[slice]:
        """Coordinates of each part."""
        ends = np.cumsum([len(part.start) for part in self.parts])
        return [slice(end - len(part.start), end) for part, end in zip(self.parts, ends, strict=True)]

    def log_density(self, z: Any) -> Any:
        """Log density at a symbolic z; the data are constants."""
        theta = self.centre + (pt.constant(self.root) * z).sum(axis=-1)
        return sum(part.log_density(theta[at]) for part, at in zip(self.parts, self.at, strict=True))

    def thetas(self, z: FloatArray) -> list[FloatArray]:
        """Parameters of each part at each z, (chain, draw, d)."""
        theta = self.centre + z @ self.root.T
        return [theta[..., at] for at in self.at]

    @property
    def values(self) -> list[Any]:
        """The centre, the root and the data of all parts."""
        return [self.centre, self.root, *(v for part in self.parts for v in part.data.values())]

    def packed_density(self, z: Any) -> tuple[Any, Packing]:
        """Log density at a symbolic z, of symbols that a `Packing` replaces by one vector."""
        centre, root = pt.vector("centre"), pt.matrix("root")
        theta, symbols, terms = centre + (root * z).sum(axis=-1), [centre, root], []
        for part, at in zip(self.parts, self.at, strict=True):
            own = [v.clone() for v in part.program.graph.data.values()]
            terms.append(part.program.log_density(theta[at], own))
            symbols += own
        return sum(terms), Packing(symbols)

    def for_nutpie(self) -> Any:
        """The density as nutpie samples it: compiled once for all data of these parts."""
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
    """All data of a graph as one vector: nutpie needs seconds to compile each datum that it reads.

    Attributes
    ----------
    symbols : list
        One for each datum: a scalar, vector or matrix.
    """

    symbols: list[Any]

    def vector(self, values: Sequence[Any]) -> FloatArray:
        """Scalars, then where each array ends and how long its rows are, then the arrays."""
        scalars = [float(v) for v in values if not np.ndim(v)]
        arrays = [np.asarray(v, dtype=float) for v in values if np.ndim(v)]
        first = len(scalars) + 2 * len(arrays) + 1
        ends = first + np.cumsum([0, *(v.size for v in arrays)])
        rows = [float(v.shape[-1]) for v in arrays]
        return np.concatenate([scalars, ends, rows, *(v.ravel() for v in arrays)])

    def unpacked(self, graph: Any, vector: Any) -> Any:
        """The graph with parts of a symbolic vector in place of its data."""
        scalars = [v for v in self.symbols if not v.ndim]
        arrays = [v for v in self.symbols if v.ndim]
        s, k = len(scalars), len(arrays)
        found = {v: vector[i].astype(v.dtype) for i, v in enumerate(scalars)}
        whole = vector[s : s + 2 * k + 1].astype("int64")
        for i, v in enumerate(arrays):
            array = vector[whole[i] : whole[i + 1]].astype(v.dtype)
            found[v] = array if v.ndim == 1 else array.reshape((-1, whole[k + 1 + i]))
        return graph_replace(graph, found, strict=False)


@dataclass(frozen=True, slots=True)
class NUTS:
    """Draws parts together by the No-U-Turn sampler (Hoffman and Gelman 2014).

    nutpie is used where it is installed and `nuts_sampler` names no other; it compiles the parts once more,
    together, for threads.

    Parameters
    ----------
    draws, tune, chains, cores, target_accept, progressbar, nuts_sampler
        As of `pymc.sample`.
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

    def __call__(self, parts: Sequence[CompiledPart], rng: np.random.Generator) -> list[PartDraws]:
        found = [approximated(part, PREPARED, rng) for part in parts]
        chains, drawn = self.sampled(parts, found, rng), []
        for part, f, thetas in zip(parts, found, chains.thetas, strict=True):
            told = problems_of_chains(thetas, part.coordinates) if self.chains > 1 else []
            drawn.append(
                part.draws(
                    thetas,
                    part.flawless(f.log_evidence),
                    rng,
                    khat=f.khat,
                    problems=told,
                    statistics=chains.statistics,
                )
            )
        return drawn

    def sampled(
        self, parts: Sequence[CompiledPart], found: Sequence[Approximation], rng: np.random.Generator
    ) -> Chains:
        """Draws of all parts, in coordinates where they are nearly standard normal."""
        by_nutpie = self.nuts_sampler in (None, "nutpie") and find_spec("nutpie") is not None
        engine, whitened = self._by_nutpie if by_nutpie else self._by_pymc, Whitened.of(parts, found)
        tree = engine(whitened, int(rng.integers(2**31)))
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
    """Draws each part by importance sampling; by NUTS where the weights cannot be relied on.

    Parameters
    ----------
    draws : int
    chains : int
        That the draws are dealt to.
    """

    draws: int
    chains: int = 1

    def __call__(self, parts: Sequence[CompiledPart], rng: np.random.Generator) -> list[PartDraws]:
        K = self.draws * self.chains
        found, drawn = [approximated(part, K, rng) for part in parts], []
        by_nuts: list[FloatArray] = []
        if any(f.khat > KHAT for f in found) and find_spec("nutpie") is not None:
            nuts = NUTS(draws=-(-K // 2), tune=250, chains=2, progressbar=False)
            by_nuts = nuts.sampled(parts, found, rng).thetas
        for i, (part, f) in enumerate(zip(parts, found, strict=True)):
            bad, thetas, told = f.khat > KHAT, f.thetas, []
            refitted = bad and bool(by_nuts)
            if refitted:
                thetas = by_nuts[i].reshape(-1, len(f.centre))[:K]
            elif bad:
                told = [
                    f"importance weights are unreliable (Pareto k {f.khat:.2f}, above {KHAT}): "
                    "install nutpie, or use nuts()"
                ]
            thetas, flawless = thetas.reshape(self.chains, self.draws, -1), part.flawless(f.log_evidence)
            drawn.append(part.draws(thetas, flawless, rng, khat=f.khat, refitted=refitted, problems=told))
        return drawn
