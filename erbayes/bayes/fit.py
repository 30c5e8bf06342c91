"""Fits of a size model to a sample: by NUTS, or fast by importance sampling."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeGuard

import arviz as az
import numpy as np
import pandas as pd
import pymc as pm
import xarray as xr
from scipy.special import softmax
from scipy.stats import beta

from ..calibration import links_out_of_reach
from ..clustering import FloatArray
from ..diagnostics import out_of_balance
from ..estimate import Alarm
from ..files import replacing
from ..metrics import METRICS, Metric, pairwise_precision, pairwise_recall
from ..sample import Sample
from ..uncertain import Draws, Tabled
from ..units import (
    B3_RECALL,
    B3_RECALL_MEAN,
    COMMON_LINKS,
    EXACT,
    TRUE_LINKS,
    ClusterSum,
    Column,
    Known,
    NotIdentified,
    PieceSum,
)
from .evidence import Evidence
from .fast import FastFit
from .model import LOG_PRIOR, SizeModel
from .population import Completed, completed

KHAT = 0.7
"""Pareto shapes above this make importance weights unreliable (Vehtari et al. 2024)."""
RHAT = 1.01
ESS_A_CHAIN = 100
PRODUCED = (TRUE_LINKS, COMMON_LINKS, B3_RECALL, B3_RECALL_MEAN, EXACT)
"""Columns that a size model produces, besides those that the prediction or the sizes alone fix."""


class NotConverged(UserWarning):
    """A fit that should not be relied on as it is."""


def by_size_alone(column: Column | Known) -> TypeGuard[PieceSum]:
    """True where a column depends on the sizes of true entities alone: term(n, N, m) = n φ(N)."""
    if not isinstance(column, PieceSum):
        return False
    N = np.array([1.0, 2.0, 5.0, 40.0])
    whole, part = column.term(N, N, N), column.term(N / 2, N, 3 * N)
    return bool(np.allclose(part, whole / 2, rtol=1e-12))


@dataclass(frozen=True, eq=False, repr=False)
class Fit(Tabled):
    """Posterior draws of completed populations.

    Attributes
    ----------
    sample : Sample
    model : SizeModel
    evidence : Evidence
    by_size : dict of float arrays, (chain, draw, J)
        Expected entities of each size, and what becomes of them.
    population : Completed
        Realised populations, one a draw.
    log_prior : float array, (chain, draw)
        Log prior density of the size family.
    tree : DataTree
        posterior, log_likelihood (one value a sampled entity), observed_data, constant_data and, from
        NUTS, sample_stats: what ArviZ works on.
    pymc : pymc.Model or None
        The PyMC model; None for the fast fit.
    khat : dict
        Pareto shapes of the fast fit's parts.
    """

    sample: Sample
    model: SizeModel
    evidence: Evidence
    by_size: dict[str, FloatArray]
    population: Completed
    log_prior: FloatArray
    tree: xr.DataTree
    pymc: pm.Model | None
    khat: dict[str, float]

    def total(self, column: Column) -> FloatArray:
        """Posterior draws of a column's population total, (chain, draw).

        Raises
        ------
        NotIdentified
            A column that no part of the model produces.
        """
        found, units, known = self.population, self.sample.units, self.sample.units.known
        assert known is not None
        scale = self.evidence.predicted_links / np.maximum(found.common + found.false, 1e-300)
        s, kept = self.evidence.grid.size, self.by_size["kept"]
        links = s * (s - 1) / 2 * kept
        per_entity: FloatArray
        if isinstance(column, ClusterSum):
            return np.full(found.true.shape, known.total(column))
        if column == TRUE_LINKS:
            return np.asarray(found.true * scale)
        if column == COMMON_LINKS:
            return np.asarray(found.common * scale)
        if by_size_alone(column):
            per_entity = column.term(s, s, s)
        elif column == B3_RECALL:
            per_entity = (2 * links + s) / s
        elif column == B3_RECALL_MEAN:
            per_entity = (2 * links + s) / s**2
        elif column == EXACT:
            per_entity = self.by_size["intact"] * self.by_size["clean"]
        else:
            raise NotIdentified(
                f"no part of the size model says anything of '{column.name}': use taylor or the bootstrap "
                "for metrics that need it"
            )
        return np.asarray(units.column(column).sum() + (self._unsampled * per_entity).sum(-1))

    @cached_property
    def _unsampled(self) -> FloatArray:
        """Unsampled entities of each size, whose records and the sample's add to N, (chain, draw, J)."""
        number = self.population.number
        rest = self.evidence.records - self.evidence.data["sampled_records"]
        records = number @ self.evidence.grid.size
        return np.asarray(number * (rest / np.maximum(records, 1.0))[..., None])

    def identifies(self, metric: Metric) -> bool:
        """True where the model produces all totals of a metric."""
        return all(isinstance(c, Known | ClusterSum) or c in PRODUCED or by_size_alone(c)
                   for c in metric.columns)  # fmt: skip

    def totals(self, metrics: Sequence[Metric]) -> Draws:
        """Posterior draws of the totals that metrics need."""
        found: dict[str, FloatArray] = {}
        for column in (c for m in metrics for c in m.columns):
            if isinstance(column, Known):
                found[column.name] = np.full(self.population.true.shape, self.sample.known(column))
            elif column.name not in found:
                found[column.name] = self.total(column)
        return Draws(tuple(found), np.stack(list(found.values()), axis=-1), ((0.0, np.inf),) * len(found))

    def apply(self, metrics: Sequence[Metric]) -> Draws:
        """Posterior draws of metrics.

        Raises
        ------
        NotIdentified
            A metric whose columns no part of the model produces.
        """
        return self.totals(metrics).apply(metrics)

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """All metrics of `erbayes.metrics.METRICS` that the model produces."""
        return tuple(m for m in METRICS if self.identifies(m))

    def table(self, level: float = 0.95) -> pd.DataFrame:
        """Every metric that the model produces, with the weight of the prior on sizes on each.

        prior_shift: how far the mean moves, in posterior standard deviations, where the prior of the size
        family is raised to the power ½ or 2, whichever moves it more (Kallioinen et al. 2024). Above .3
        the answer rests on what the prior says of sizes that the sample has not seen.
        """
        found = self.apply(self.metrics)
        return found.table(level).assign(prior_shift=self.prior_shift(found))

    def prior_shift(self, draws: Draws) -> FloatArray:
        """Largest shift of each mean, in standard deviations, (k,); see `table`."""
        shifts = []
        for power in (0.5, 2.0):
            w = softmax((power - 1) * self.log_prior.ravel())
            shifts.append(np.abs(w @ draws.flat - draws.mean))
        certain = draws.sd <= 1e-12 * np.maximum(np.abs(draws.mean), 1)
        return np.where(certain, 0.0, np.max(shifts, axis=0) / np.where(certain, 1.0, draws.sd))

    def log_likelihood(self) -> xr.Dataset:
        """Log-likelihood of each distinct sampled entity, (chain, draw, entity).

        Of its size, as often as it was drawn, and of what became of it given its size; all but the bin of
        its intrusion, whose model is the same for all size families.
        """
        e, at, by = self.evidence.entities, self.evidence.entities.bin, self.by_size
        drawn = by["entities"] * self.evidence.data["selection"]
        found = e.draws * np.log(drawn / drawn.sum(-1, keepdims=True))[..., at]
        intact = np.clip(by["intact"][..., at], 1e-300, 1 - 1e-15)
        found += e.several * np.where(e.broken, np.log1p(-intact), np.log(intact))
        met = np.clip(by["met"][..., at], 1e-300, 1 - 1e-15)
        found += np.where(e.foreign > 0, np.log(met), np.log1p(-met))
        a = (by["share_mean"] * by["share_precision"])[..., at]
        b = by["share_precision"][..., at] - a
        found += np.where(e.broken & (e.size > 2), beta.logpdf(e.share, a, b), 0.0)
        names = {"entity": self.sample.units.ids.astype(str).to_numpy()}
        return xr.Dataset({"outcome": (("chain", "draw", "entity"), found)}, names)

    def problems(self) -> list[str]:
        """What is wrong with the chains, with remedies; empty where nothing is."""
        found = []
        diverging = int(self.tree["sample_stats"]["diverging"].sum())
        if diverging:
            found.append(f"{diverging} divergent transitions: raise target_accept, look at the priors")
        told = az.summary(self.tree, var_names=["metrics"], kind="diagnostics", round_to="none")
        key = told.loc[[f"metrics[{m.name}]" for m in (pairwise_precision, pairwise_recall)]]
        if key["r_hat"].max() > RHAT:
            found.append(f"R-hat {key['r_hat'].max():.3f} above {RHAT}: raise tune and draws")
        enough = ESS_A_CHAIN * self.tree["posterior"].sizes["chain"]
        if key["ess_bulk"].min() < enough:
            found.append(f"{key['ess_bulk'].min():.0f} effective draws, fewer than {enough:.0f}: raise draws")
        return found

    def predictive(self, *, draws: int = 500, rng: np.random.Generator) -> xr.DataTree:
        """The tree with prior, prior_predictive and posterior_predictive: counts on the model's grids.

        Raises
        ------
        NotIdentified
            The fast fit keeps no parameters to predict from.
        """
        if self.pymc is None:
            raise NotIdentified("the fast fit keeps no parameters to predict from: use nuts()")
        seeds = rng.integers(2**31, size=2)
        with self.pymc:
            before = pm.sample_prior_predictive(draws, random_seed=int(seeds[0]))
            after = pm.sample_posterior_predictive(self.tree, random_seed=int(seeds[1]), progressbar=False)
        tree = self.tree.copy()
        for name in ("prior", "prior_predictive"):
            tree[name] = before[name]
        tree["posterior_predictive"] = after["posterior_predictive"]
        return tree

    def save(self, path: Path | str) -> None:
        """Write the DataTree as netCDF; `arviz.from_netcdf` reads it."""
        with replacing(Path(path)) as new:
            self.tree.to_netcdf(new, engine="h5netcdf")


_compiled: dict[Any, Any] = {}


def _once(key: Any, compile: Callable[[], Any]) -> Any:
    """What was compiled under this key before, or now."""
    if key not in _compiled:
        _compiled[key] = compile()
    return _compiled[key]


def priors(model: SizeModel, evidence: Evidence) -> dict[str, Any]:
    """Parameters of a model's priors by name; found once for each model."""
    found: dict[str, Any] = _once(("priors", model), lambda: model.priors(evidence))
    return found


def fast(sample: Sample, model: SizeModel | None = None, *, draws: int = 1000,
         rng: np.random.Generator) -> Fit:  # fmt: skip
    """Fit a size model by importance sampling: tenths of a second, once it is compiled.

    Parameters
    ----------
    sample : Sample
    model : SizeModel, optional
    draws : int
    rng : Generator

    Raises
    ------
    NotIdentified
        Units, designs or predictions that a size model cannot take (see `Evidence.of`).

    Warns
    -----
    Alarm
        The sample speaks against the known totals of the prediction.
    NotConverged
        Importance weights with a Pareto shape above .7.
    """
    model, evidence = model or SizeModel(), Evidence.of(sample)
    engine = FastFit(model, evidence)
    joined = engine.fit(evidence.data | priors(model, evidence), draws, rng)
    _warn_of_contradictions(sample)
    if joined.khat["total"] > KHAT:
        warnings.warn(
            f"few draws agree with the known {evidence.predicted_links:,.0f} predicted links (Pareto k "
            f"{joined.khat['total']:.2f}): either this family of sizes is wrong, or the prediction is not "
            "the population that was sampled", NotConverged, stacklevel=2)  # fmt: skip
    bad = {part: k for part, k in joined.khat.items() if k > KHAT and part != "total"}
    if bad:
        told = ", ".join(f"{part} {k:.2f}" for part, k in bad.items())
        warnings.warn(f"importance weights are unreliable (Pareto k of {told}, above {KHAT}): use nuts()",
                      NotConverged, stacklevel=2)  # fmt: skip
    by_size = {k: v[None] for k, v in joined.by_size.items()}
    tree = xr.DataTree.from_dict({"posterior": _by_size_dataset(by_size, evidence)})
    return _fit(sample, model, evidence, tree, joined.log_prior[None], None, joined.khat, rng)


def nuts(
    sample: Sample, model: SizeModel | None = None, *, draws: int = 1000, tune: int = 1000, chains: int = 4,
    cores: int | None = None, target_accept: float = 0.9, rng: np.random.Generator, progressbar: bool = True,
    nuts_sampler: str | None = None,
) -> Fit:  # fmt: skip
    """Fit a size model by NUTS.

    Parameters
    ----------
    sample : Sample
    model : SizeModel, optional
    draws, tune, chains, cores, target_accept, progressbar, nuts_sampler
        As of `pymc.sample`. nutpie is used where it is installed and `nuts_sampler` names no other; it
        compiles once for all samples and priors of a model's structure.
    rng : Generator

    Raises
    ------
    NotIdentified
        Units, designs or predictions that a size model cannot take (see `Evidence.of`).

    Warns
    -----
    Alarm
        The sample speaks against the known totals of the prediction.
    NotConverged
        Divergences, an R-hat above 1.01, or an effective number of draws below 100 a chain.
    """
    model, evidence = model or SizeModel(), Evidence.of(sample)
    built = model.build(evidence)
    seed = int(rng.integers(2**31))
    if nuts_sampler is None and find_spec("nutpie") is not None:
        tree = _by_nutpie(model, built, draws=draws, tune=tune, chains=chains, cores=cores,
                          target_accept=target_accept, seed=seed, progress_bar=progressbar)  # fmt: skip
    else:
        with built:
            tree = pm.sample(draws=draws, tune=tune, chains=chains, cores=cores, target_accept=target_accept,
                             random_seed=seed, progressbar=progressbar, nuts_sampler=nuts_sampler,
                             compute_convergence_checks=False)  # fmt: skip
    log_prior = tree.posterior[LOG_PRIOR].to_numpy()
    fit = _fit(sample, model, evidence, tree, log_prior, built, {}, rng)
    _warn_of_contradictions(sample)
    problems = fit.problems()
    if problems:
        warnings.warn("; ".join(problems), NotConverged, stacklevel=2)
    return fit


def _warn_of_contradictions(sample: Sample) -> None:
    """A size model takes known totals for true: say so where the sample speaks against them."""
    if links_out_of_reach(sample.units) < 0.1:
        for told in out_of_balance(sample):
            warnings.warn(f"{told} A size model takes the known total for true.", Alarm, stacklevel=3)


def _by_nutpie(model: SizeModel, built: pm.Model, **how: Any) -> xr.DataTree:
    import nutpie

    lengths = tuple(len(v) for v in built.coords.values())
    compiled = _once(("nutpie", model.structure, lengths), lambda: nutpie.compile_pymc_model(built))
    used = {v.name for v in compiled.shared_var_keys}
    data = {v.name: v.get_value() for v in built.data_vars if v.name in used}
    coords = {k: pd.Index(v) for k, v in built.coords.items()}
    tree: xr.DataTree = nutpie.sample(replace(compiled.with_data(**data), _coords=coords), **how)
    return tree


def _by_size_dataset(by_size: dict[str, FloatArray], evidence: Evidence) -> xr.Dataset:
    dims = ("chain", "draw", "entity_size")
    return xr.Dataset({f"{k}_by_size": (dims, v) for k, v in by_size.items()},
                      {"entity_size": evidence.grid.size})  # fmt: skip


def _fit(
    sample: Sample, model: SizeModel, evidence: Evidence, tree: xr.DataTree, log_prior: FloatArray,
    built: pm.Model | None, khat: dict[str, float], rng: np.random.Generator,
) -> Fit:  # fmt: skip
    """Populations completed, and all that ArviZ wants in the tree."""
    posterior = tree["posterior"].to_dataset()
    by_size = {str(k).removesuffix("_by_size"): v.to_numpy() for k, v in posterior.items()
               if str(k).endswith("_by_size")}  # fmt: skip
    population = completed(by_size, evidence.data, rng)
    fit = Fit(sample, model, evidence, by_size, population, log_prior, tree, built, khat)
    draws = fit.apply(fit.metrics)
    tree["posterior"] = xr.DataTree(posterior.assign_coords(metric=list(draws.names)).assign(
        metrics=(("chain", "draw", "metric"), draws.values)))  # fmt: skip
    tree["log_likelihood"] = xr.DataTree(fit.log_likelihood())
    entities = evidence.entities
    observed = {"size": entities.size, "links": entities.links, "foreign": entities.foreign,
                "draws": entities.draws}  # fmt: skip
    names = {"entity": sample.units.ids.astype(str).to_numpy()}
    tree["observed_data"] = xr.DataTree(xr.Dataset({k: ("entity", v) for k, v in observed.items()}, names))
    known = {"records": evidence.records, "predicted_links": evidence.predicted_links,
             "log_predicted": ("entity_size", evidence.data["log_predicted"]),
             "selection": ("entity_size", evidence.data["selection"])}  # fmt: skip
    tree["constant_data"] = xr.DataTree(xr.Dataset(known, {"entity_size": evidence.grid.size}))
    return fit
