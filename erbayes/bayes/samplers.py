"""Samplers of one part: importance sampling, and NUTS where the posterior is nearly standard normal."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np
import pymc as pm
from arviz_stats.base import array_stats

from ..clustering import FloatArray
from .importance import KHAT, Approximation, approximated
from .parts import CompiledPart, PartDraws

RHAT = 1.01
ESS_A_CHAIN = 100
PREPARED = 1000
"""Draws of the approximation in whose coordinates NUTS runs."""


class Sampler(Protocol):
    """Draws a part."""

    def __call__(self, part: CompiledPart, rng: np.random.Generator) -> PartDraws: ...


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
    thetas : float array, (chain, draw, d)
    diverging, steps : arrays, (chain, draw)
        Divergent transitions; leapfrog steps.
    """

    thetas: FloatArray
    diverging: Any
    steps: Any


@dataclass(frozen=True, slots=True)
class NUTS:
    """Draws a part by the No-U-Turn sampler (Hoffman and Gelman 2014).

    nutpie is used where it is installed and `nuts_sampler` names no other; it calls the compiled part, and
    compiles nothing itself.

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

    def __call__(self, part: CompiledPart, rng: np.random.Generator) -> PartDraws:
        found = approximated(part, PREPARED, rng)
        chains = self.sampled(part, found, rng)
        diverging = int(chains.diverging.sum())
        told = problems_of_chains(chains.thetas, part.coordinates) if self.chains > 1 else []
        if diverging:
            told.insert(0, f"{diverging} divergent transitions: raise target_accept, look at the priors")
        return part.draws(chains.thetas, part.flawless(found.log_evidence), rng, khat=found.khat,
                          diverging=chains.diverging, steps=chains.steps, problems=told)  # fmt: skip

    def sampled(self, part: CompiledPart, found: Approximation, rng: np.random.Generator) -> Chains:
        """Draws of θ = centre + root z, NUTS on z."""
        by_nutpie = self.nuts_sampler is None and find_spec("nutpie") is not None
        engine = self._by_nutpie if by_nutpie else self._by_pymc
        tree = engine(part, found.centre, found.root, int(rng.integers(2**31)))
        z, stats = tree["posterior"]["z"].to_numpy(), tree["sample_stats"]
        return Chains(found.centre + z @ found.root.T, stats["diverging"].to_numpy(),
                      stats["n_steps"].to_numpy())  # fmt: skip

    def _by_nutpie(self, part: CompiledPart, centre: FloatArray, root: FloatArray, seed: int) -> Any:
        import nutpie
        from nutpie.compiled_pyfunc import from_pyfunc

        d = len(centre)

        def log_density(z: FloatArray) -> tuple[float, FloatArray]:
            value, slope = part.slope(centre + root @ z)
            return -float(value), -(slope @ root)

        def start(seed: int) -> FloatArray:
            return np.random.default_rng(seed).standard_normal(d)

        model = from_pyfunc(d, lambda: log_density, lambda *_: lambda z: {"z": z}, [np.dtype(float)], [(d,)],
                            ["z"], make_initial_point_fn=start)  # fmt: skip
        # The compiled part keeps its inputs in one place: no two threads may call it.
        return nutpie.sample(model, draws=self.draws, tune=self.tune, chains=self.chains, cores=1, seed=seed,
                             target_accept=self.target_accept, progress_bar=self.progressbar)  # fmt: skip

    def _by_pymc(self, part: CompiledPart, centre: FloatArray, root: FloatArray, seed: int) -> Any:
        with pm.Model():
            z = pm.Flat("z", shape=len(centre))
            pm.Potential("density", part.log_density(centre + root @ z))
            return pm.sample(
                draws=self.draws, tune=self.tune, chains=self.chains, cores=self.cores,
                target_accept=self.target_accept, random_seed=seed, progressbar=self.progressbar,
                nuts_sampler=self.nuts_sampler or "pymc", compute_convergence_checks=False,
            )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Importance:
    """Draws a part by importance sampling; by NUTS where the weights cannot be relied on.

    Parameters
    ----------
    draws : int
    chains : int
        That the draws are dealt to.
    """

    draws: int
    chains: int = 1

    def __call__(self, part: CompiledPart, rng: np.random.Generator) -> PartDraws:
        K = self.draws * self.chains
        found, told = approximated(part, K, rng), []
        flawless, thetas, steps = part.flawless(found.log_evidence), found.thetas, None
        if found.khat > KHAT and find_spec("nutpie") is not None:
            chains = NUTS(draws=-(-K // 2), tune=250, chains=2, progressbar=False).sampled(part, found, rng)
            thetas, steps = (v.reshape(-1, *v.shape[2:])[:K] for v in (chains.thetas, chains.steps))
        elif found.khat > KHAT:
            told = [f"importance weights are unreliable (Pareto k {found.khat:.2f}, above {KHAT}): "
                    "install nutpie, or use nuts()"]  # fmt: skip
        thetas = thetas.reshape(self.chains, self.draws, -1)
        return part.draws(thetas, flawless, rng, khat=found.khat, refitted=steps is not None, problems=told)
