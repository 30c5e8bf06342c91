"""The fast fit: each part by Laplace and importance sampling, joined by the known total.

Parts are independent but for the known number of predicted links. So each is approximated on its own, in
few dimensions: a t distribution around the mode, adapted twice to what importance sampling found, and
weights smoothed by Pareto's distribution (Vehtari et al. 2024). Draws of the parts are then joined at random
and weighted by how well they add to the known total.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.graph.replace import clone_replace, vectorize_graph
from scipy.optimize import minimize

from ..clustering import FloatArray
from .evidence import Evidence
from .model import LOG_PRIOR, Part, SizeModel
from .population import Links, log_density_of_total, unsampled

DF = 7.0
"""Degrees of freedom of proposals."""


@dataclass(frozen=True, slots=True, eq=False)
class PartDraws:
    """Draws of one part.

    Attributes
    ----------
    by_size : dict of float arrays, (K, J)
    khat : float
        Pareto shape of the importance weights.
    """

    by_size: dict[str, FloatArray]
    khat: float


class CompiledPart:
    """One part compiled once; fitted to new data, and under new priors, without compiling again."""

    def __init__(self, model: SizeModel, part: Part, evidence: Evidence) -> None:
        self.model, by_size = model.part(part, evidence)
        point = self.model.initial_point()
        values, theta = self.model.value_vars, pt.vector("theta", dtype="float64")
        sizes = [int(np.prod(np.shape(point[v.name]))) for v in values]
        ends = np.cumsum(sizes)
        pieces = {v: theta[e - k : e].reshape(np.shape(point[v.name]))
                  for v, e, k in zip(values, ends, sizes, strict=True)}  # fmt: skip
        outputs = self.model.replace_rvs_by_values(list(by_size.values()))
        density, *outputs = clone_replace([self.model.logp(), *outputs], pieces)
        self.names = list(by_size)
        self.start = np.concatenate([np.ravel(point[v.name]) for v in values]).astype(float)
        self.slope = _function([theta], [-density, -pt.grad(density, theta)])
        many = pt.matrix("thetas", dtype="float64")
        self.many = _function([many], vectorize_graph([density, *outputs], {theta: many}))

    def fit(self, data: dict[str, Any], draws: int, rng: np.random.Generator) -> PartDraws:
        for name, value in data.items():
            if name in self.model.named_vars:
                held = self.model[name]
                held.set_value(np.asarray(value, dtype=held.dtype))
        mode, cov = self._laplace()
        scale = 1.1
        for _ in range(3):
            root = np.linalg.cholesky(cov) * scale
            t = rng.standard_normal((draws, len(mode)))
            t *= np.sqrt(DF / rng.chisquare(DF, (draws, 1)))
            theta = mode + t @ root.T
            density, *outputs = self.many(theta)
            log_w = density + 0.5 * (DF + len(mode)) * np.log1p((t**2).sum(axis=1) / DF)
            w, khat = smoothed(np.where(np.isfinite(log_w), log_w, -np.inf))
            mode = w @ theta
            off = theta - mode
            size = 1 / (w @ w)
            cov = (size * (off.T * w) @ off + len(mode) * cov) / (size + len(mode))
            scale = 1.2
        at = resampled(w, rng)
        return PartDraws({k: v[at] for k, v in zip(self.names, outputs, strict=True)}, khat)

    def _laplace(self) -> tuple[FloatArray, FloatArray]:
        found = minimize(self.slope, self.start, jac=True, method="L-BFGS-B", options={"maxiter": 500}).x
        k = len(found)
        H = np.array([(self.slope(found + e)[1] - self.slope(found - e)[1]) / 2e-4 for e in np.eye(k) * 1e-4])
        values, vectors = np.linalg.eigh((H + H.T) / 2)
        return found, (vectors / np.maximum(values, 0.05)) @ vectors.T


@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    """Draws of all parts together.

    Attributes
    ----------
    by_size : dict of float arrays, (K, J)
    log_prior : float array, (K,)
        Log prior density of the size family.
    khat : dict, part -> Pareto shape
    """

    by_size: dict[str, FloatArray]
    log_prior: FloatArray
    khat: dict[str, float]


class FastFit:
    """A size model for the fast fit; parts that another model has in common with it are compiled once."""

    compiled: ClassVar[dict[Any, CompiledPart]] = {}

    def __init__(self, model: SizeModel, evidence: Evidence) -> None:
        self.parts = []
        for key, part in zip(model.structure, model.parts, strict=True):
            if key not in self.compiled:
                self.compiled[key] = CompiledPart(model, part, evidence)
            self.parts.append(self.compiled[key])

    def fit(
        self, data: dict[str, Any], draws: int, rng: np.random.Generator, partners: int = 4
    ) -> Joined:
        """Posterior draws of everything by size.

        Parameters
        ----------
        data : dict
            Evidence and parameters of priors, by name.
        draws : int
            K, of each part and of all together.
        partners : int
            Random partners that each draw of a part is tried with.
        """
        found = [part.fit(data, draws, rng) for part in self.parts]
        at = [np.concatenate([rng.permutation(draws) for _ in range(partners)]) for _ in found]
        by_size = {k: v[i] for f, i in zip(found, at, strict=True) for k, v in f.by_size.items()}
        links = Links.of(unsampled(by_size["entities"], data), by_size, data)
        w, khat = smoothed(log_density_of_total(links, np.log, np.log(data["predicted_links"])))
        chosen = resampled(w, rng)[:: partners]
        names = ("sizes", "retention", "leakage", "exactness", "total")
        khats = dict(zip(names, [*(f.khat for f in found), khat], strict=True))
        log_prior = by_size.pop(LOG_PRIOR)[chosen]
        return Joined({k: v[chosen] for k, v in by_size.items()}, log_prior, khats)


def _function(inputs: list[Any], outputs: list[Any]) -> Any:
    return pytensor.function(inputs, outputs, mode="NUMBA", trust_input=True, on_unused_input="ignore")


def smoothed(log_w: FloatArray) -> tuple[FloatArray, float]:
    """Pareto-smoothed weights that add to 1, and the Pareto shape: -∞ where all weigh the same."""
    from arviz_stats.base import array_stats

    if np.ptp(log_w[np.isfinite(log_w)]) < 1e-9:
        return np.isfinite(log_w) / np.isfinite(log_w).sum(), -np.inf
    log_smooth, khat = array_stats.psislw(-log_w)
    w = np.exp(log_smooth - log_smooth.max())
    return w / w.sum(), float(khat)


def resampled(w: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Systematic resampling in random order: positions, as many as weights."""
    at = np.searchsorted(np.cumsum(w), (np.arange(len(w)) + rng.random()) / len(w)).clip(0, len(w) - 1)
    return rng.permutation(at)
