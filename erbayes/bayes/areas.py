"""Small-area models of domains with posterior draws, by PyMC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import arviz as az
import numpy as np
import pandas as pd
import pymc as pm

from .._internal.arrays import FloatArray, Seed, generator
from ..analysis.areas import Direct
from ..metrics.intervals import check_level
from ..metrics.uncertain import Tabled
from .samplers import need_draws, problems_of_chains


def area_model(direct: Direct, spread: float = 0.5) -> Any:
    """Make the Fay-Herriot model of direct estimates as a PyMC model.

    The true values are θ = Xβ + τz, with z standard normal, and the direct ones are normal about them with
    their joint covariance. Covariates are scaled to standard deviation 1 before. The constant is normal with
    mean and variance of the estimates, other coefficients are normal(0, 1), and τ is half-normal.
    """
    X = direct.X.copy()
    X[:, 1:] = (X[:, 1:] - X[:, 1:].mean(axis=0)) / X[:, 1:].std(axis=0)
    centre, width = np.zeros(X.shape[1]), np.ones(X.shape[1])
    centre[0], width[0] = direct.y.mean(), direct.y.std() + np.sqrt(np.diagonal(direct.V).mean())
    coords = {"domain": list(direct.names), "coefficient": list(direct.columns)}
    with pm.Model(coords=coords) as model:
        beta = pm.Normal("beta", centre, width, dims="coefficient")
        tau = pm.HalfNormal("tau", spread)
        z = pm.Normal("z", dims="domain")
        theta = pm.Deterministic("theta", X @ beta + tau * z, dims="domain")
        pm.MvNormal(
            "direct",
            theta[np.flatnonzero(direct.there)],
            chol=np.linalg.cholesky(direct.V),
            observed=direct.y,
        )
    return model


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AreaDraws(Tabled):
    """Posterior draws of a metric by domain, beside its direct estimates.

    `tree`: posterior draws and statistics of the sampler, for ArviZ. theta is on the logit or log scale.
    """

    direct: Direct
    tree: Any

    @property
    def draws(self) -> FloatArray:
        """Return draws of the metric, (chain, draw, d)."""
        return np.asarray(self.direct.scale.inverse(self.tree["posterior"]["theta"].to_numpy()))

    def problems(self) -> list[str]:
        """Return the reasons not to rely on the draws, with remedies; an empty list if there are none."""
        theta = self.tree["posterior"]["theta"].to_numpy()
        problems = problems_of_chains(theta, list(self.direct.names))
        if diverging := int(self.tree["sample_stats"]["diverging"].sum()):
            problems.append(f"{diverging} transitions diverged: raise target_accept, or tune")
        return problems

    def summary(self) -> pd.DataFrame:
        """Return ArviZ's summary of coefficients, τ and the θ of each domain."""
        table: pd.DataFrame = az.summary(self.tree, var_names=["beta", "tau", "theta"])
        return table

    def table(self, level: float = 0.95) -> pd.DataFrame:
        """Return direct estimates, and means and equal-tailed intervals of the draws, one row per domain."""
        check_level(level)
        flat = self.draws.reshape(-1, len(self.direct.names))
        low, high = np.quantile(flat, [(1 - level) / 2, (1 + level) / 2], axis=0)
        return self.direct.beside(flat.mean(axis=0), low, high, level, "equal-tailed")


@dataclass(frozen=True, slots=True, kw_only=True)
class PosteriorAreas:
    """An engine of `erbayes.analysis.areas.small_areas`: draws from the posterior of the Fay-Herriot model.

    Parameters
    ----------
    spread : float, above 0
        Standard deviation of the half-normal prior of τ, on the logit or log scale.
    draws, tune, chains : int
        As in `pymc.sample`.
    rng : Generator, int or None
    options : mapping
        Further arguments of `pymc.sample`.

    Raises
    ------
    DataError
        For too few draws.
    """

    spread: float = 0.5
    draws: int = 1000
    tune: int = 1000
    chains: int = 4
    rng: Seed = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        need_draws(self.draws)

    def __call__(self, direct: Direct) -> AreaDraws:
        """Return posterior draws of each domain."""
        seed = int(generator(self.rng).integers(2**31))
        settings: dict[str, Any] = {"cores": 1, "progressbar": False, "target_accept": 0.95}
        settings |= {"tune": self.tune, "chains": self.chains, "random_seed": seed, **self.options}
        with area_model(direct, self.spread):
            return AreaDraws(direct, pm.sample(self.draws, **settings))
