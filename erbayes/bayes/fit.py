"""Fits of a size model to a sample: by NUTS, or fast by importance sampling."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import pandas as pd
import pymc as pm
import xarray as xr
from scipy.stats import beta

from ..arrays import FloatArray
from ..calibration import links_out_of_reach
from ..columns import (
    B3_RECALL,
    B3_RECALL_MEAN,
    COMMON_LINKS,
    EXACT,
    TRUE_LINKS,
    ClusterSum,
    Column,
    Known,
    PieceSum,
)
from ..diagnostics import out_of_balance
from ..errors import Alarm, NotIdentified
from ..files import replacing
from ..metrics import METRICS, Metric, Wanted, chosen, pairwise_precision, pairwise_recall
from ..sample import Sample
from ..uncertain import Draws, Tabled
from .evidence import Evidence
from .importance import KHAT, smoothed
from .joined import Joined, joined
from .model import SizeModel
from .outcomes import BETWEEN
from .parts import CompiledPart
from .population import Completed, completed
from .samplers import NUTS, Importance, Sampler, enough, problems_of_chains

PRODUCED = (TRUE_LINKS, COMMON_LINKS, B3_RECALL, B3_RECALL_MEAN, EXACT, *BETWEEN)
"""Columns that a size model produces, besides those that the prediction or the sizes alone fix."""


UNCOMPILED = {"mode": "FAST_COMPILE"}
"""Predictions are drawn once; compiling them takes longer than drawing them."""


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
    draws : Joined
        Of the parts that the known number of predicted links ties.
    population : Completed
        Realised populations, one a draw.
    seed : int
        Of the parts that nothing ties, which are fitted when a metric first asks for them.
    """

    sample: Sample
    model: SizeModel
    evidence: Evidence
    draws: Joined
    population: Completed
    seed: int

    @property
    def by_size(self) -> dict[str, FloatArray]:
        """Expected entities of each size, and what becomes of them, (chain, draw, J)."""
        return self.draws.by_size

    @property
    def log_prior(self) -> FloatArray:
        """Log prior density of the size family, (chain, draw)."""
        return self.draws.log_prior["sizes"]

    @property
    def khat(self) -> dict[str, float]:
        """Pareto shapes of the weights of importance sampling, by part."""
        return self.draws.khat

    @cached_property
    def pymc(self) -> pm.Model:
        """The tied parts as one PyMC model."""
        return self.model.build(self.evidence)

    @cached_property
    def exact(self) -> FloatArray:
        """Chance that an entity is predicted exactly, by size, (chain, draw, J)."""
        clean = self._free("exactness", self.evidence.data, 0)["clean"]
        return self.by_size["intact"] * np.where(self.by_size["met"] > 0, clean, 1.0)

    def _between(self, column: Column) -> FloatArray:
        """Mean by size of a column that lies between bounds, (chain, draw, J)."""
        between, size = BETWEEN[column], self.evidence.grid.size
        counted = between.evidence(self.evidence.entities, self.sample.units.column(column), size)
        found = self._free("bounded", self.evidence.data | counted, 1 + list(BETWEEN).index(column))
        return between.expected(size, self, found["bounded_mean"])

    def _free(self, place: str, data: dict[str, Any], stream: int) -> dict[str, FloatArray]:
        """Draws by size of the part in a place that nothing ties."""
        part = self.model.untied[place]
        chains, draws = self.population.true.shape
        rng = np.random.default_rng([self.seed, stream])
        (found,) = Importance(draws, chains)([CompiledPart.of(part, data)], rng)
        if found.problems:
            warnings.warn(f"{place}: {'; '.join(found.problems)}", NotConverged, stacklevel=4)
        return found.by_size

    @cached_property
    def _totals(self) -> dict[Column, FloatArray]:
        return {}

    def total(self, column: Column) -> FloatArray:
        """Posterior draws of a column's population total, (chain, draw).

        Raises
        ------
        NotIdentified
            A column that no part of the model produces.
        """
        if column not in self._totals:
            self._totals[column] = self._total(column)
        return self._totals[column]

    def _total(self, column: Column) -> FloatArray:
        found, units, known = self.population, self.sample.units, self.sample.units.known
        assert known is not None
        s, kept = self.evidence.grid.size, self.by_size["kept"]
        links = s * (s - 1) / 2 * kept
        per_entity: FloatArray
        if isinstance(column, ClusterSum):
            return np.full(found.true.shape, known.total(column))
        if column in (COMMON_LINKS, TRUE_LINKS):
            return self._links(column)
        if by_size_alone(column):
            per_entity = column.term(s, s, s)
        elif column == B3_RECALL:
            per_entity = (2 * links + s) / s
        elif column == B3_RECALL_MEAN:
            per_entity = (2 * links + s) / s**2
        elif column == EXACT:
            per_entity = self.exact
        elif column in BETWEEN:
            per_entity = self._between(column)
        else:
            raise NotIdentified(
                f"no part of the size model says anything of '{column.name}': use taylor or the bootstrap "
                "for metrics that need it"
            )
        return np.asarray(units.column(column).sum() + (self._unsampled * per_entity).sum(-1))

    def _links(self, column: Column) -> FloatArray:
        """Common or true links, of populations scaled to the known number of predicted links.

        Where there is no false link, common links are the predicted ones, not merely nearly so; and true
        links are the common ones where none is lost.
        """
        found, predicted = self.population, self.evidence.predicted_links
        scale = predicted / np.maximum(found.common + found.false, 1e-300)
        common = np.where((found.false == 0) & (found.common > 0), predicted, found.common * scale)
        if column == COMMON_LINKS:
            return common
        return np.where(found.true == found.common, common, found.true * scale)

    @cached_property
    def _unsampled(self) -> FloatArray:
        """Unsampled entities of each size, whose records and the sample's add to N, (chain, draw, J)."""
        number = self.population.number
        rest = self.evidence.records - self.evidence.data["sampled_records"]
        records = number @ self.evidence.grid.size
        return np.asarray(number * (rest / np.maximum(records, 1.0))[..., None])

    def identifies(self, metric: Metric) -> bool:
        """True where the model produces all totals of a metric."""
        return all(
            isinstance(c, Known | ClusterSum) or c in PRODUCED or by_size_alone(c) for c in metric.columns
        )

    def totals(self, metrics: Wanted) -> Draws:
        """Posterior draws of the totals that metrics need."""
        found: dict[str, FloatArray] = {}
        for column in (c for m in chosen(metrics) for c in m.columns):
            if isinstance(column, Known):
                found[column.name] = np.full(self.population.true.shape, self.sample.known(column))
            elif column.name not in found:
                found[column.name] = self.total(column)
        return Draws(tuple(found), np.stack(list(found.values()), axis=-1), ((0.0, np.inf),) * len(found))

    def apply(self, metrics: Wanted) -> Draws:
        """Posterior draws of metrics, within what they can be.

        Modelled totals know nothing of their inequalities with known ones: a draw beyond the end of a
        metric's support is set to that end.

        Raises
        ------
        NotIdentified
            A metric whose columns no part of the model produces.
        """
        metrics = chosen(metrics)
        found = self.totals(metrics).apply(metrics)
        return replace(found, values=np.clip(found.values, *np.transpose(found.support)))

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """All metrics of `erbayes.metrics.METRICS` that the model produces."""
        return tuple(m for m in METRICS if self.identifies(m))

    def table(self, level: float = 0.95) -> pd.DataFrame:
        """Every metric that the model produces, with the weight of the prior on sizes on each.

        prior_shift: how far the mean moves, in posterior standard deviations, where the prior of the size
        family is raised to the power ½ or 2, whichever moves it more (Kallioinen et al. 2024). Above .3
        the answer rests on what the prior says of sizes that the sample has not seen. It says nothing of
        the priors of retention and leakage: for these fit again with others.
        """
        found = self.apply(self.metrics)
        return found.table(level).assign(prior_shift=self.prior_shift(found))

    def prior_shift(self, draws: Draws) -> FloatArray:
        """Largest shift of each mean, in standard deviations, (k,); see `table`."""
        shifts = []
        for power in (0.5, 2.0):
            w, _ = smoothed((power - 1) * self.log_prior.ravel())
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
        """What is wrong with the draws, with remedies; empty where nothing is."""
        found, total = list(self.draws.problems), self.draws.khat["total"]
        if total > KHAT:
            found.append(
                f"few draws agree with the known {self.evidence.predicted_links:,.0f} predicted links "
                f"(Pareto k {total:.2f}): either this family of sizes is wrong, or the prediction is not the "
                "population that was sampled"
            )
            return found
        key = self.apply([pairwise_precision, pairwise_recall])
        if len(key.values) > 1:
            found += problems_of_chains(key.values, list(key.names))
        return found

    @cached_property
    def tree(self) -> xr.DataTree:
        """What ArviZ works on.

        posterior (parameters, quantities by size, metrics), log_likelihood (one value a sampled entity),
        observed_data, constant_data and, from NUTS, sample_stats.
        """
        evidence, entities, metrics = self.evidence, self.evidence.entities, self.apply(self.metrics)
        by_size = {f"{k}_by_size": (("chain", "draw", "entity_size"), v) for k, v in self.by_size.items()}
        dims = {v.name: self.pymc.named_vars_to_dims.get(v.name, ()) for v in self.pymc.free_RVs}
        parameters = {
            k: (("chain", "draw", *(dims[k] or [f"{k}_dim_{i}" for i in range(v.ndim - 2)])), v)
            for k, v in self.draws.parameters.items()
        }
        posterior = {
            **parameters,
            **by_size,
            "log_prior": (("chain", "draw"), self.log_prior),
            "metrics": (("chain", "draw", "metric"), metrics.values),
        }
        names = {"entity": self.sample.units.ids.astype(str).to_numpy()}
        sizes = {"entity_size": evidence.grid.size}
        of_sample = {**names, **sizes, "sampled_size": evidence.grid.size[evidence.data["sampled"]]}
        each = {
            "size": entities.size,
            "links": entities.links,
            "foreign": entities.foreign,
            "draws": entities.draws,
        }
        sampled, several = evidence.data["sampled"], evidence.data["several"]
        counted = {"met_entities": evidence.data["met"], "broken_entities": several - evidence.data["intact"]}
        observed = {k: ("entity", v) for k, v in each.items()}
        observed |= {"drawn_sizes": ("entity_size", evidence.data["drawn"])}
        observed |= {k: ("sampled_size", v[sampled]) for k, v in counted.items()}
        known = {
            "records": evidence.records,
            "predicted_links": evidence.predicted_links,
            **{k: ("entity_size", evidence.data[k]) for k in ("log_predicted", "selection")},
            "several": ("sampled_size", several[sampled]),
        }
        groups = {
            "posterior": xr.Dataset(posterior, {**sizes, "metric": list(metrics.names)}),
            "log_likelihood": self.log_likelihood(),
            "observed_data": xr.Dataset(observed, of_sample),
            "constant_data": xr.Dataset(known, of_sample),
        }
        if self.draws.diverging is not None:
            stats = {"diverging": self.draws.diverging, "n_steps": self.draws.steps}
            groups["sample_stats"] = xr.Dataset({k: (("chain", "draw"), v) for k, v in stats.items()})
        return xr.DataTree.from_dict(groups)

    def predictive(self, *, draws: int = 500, rng: np.random.Generator) -> xr.DataTree:
        """The tree with prior, prior_predictive and posterior_predictive: counts on the model's grids."""
        seeds = rng.integers(2**31, size=2)
        free = [v.name for v in self.pymc.free_RVs]
        posterior = self.tree["posterior"].to_dataset()[free]
        with self.pymc:
            before = pm.sample_prior_predictive(draws, random_seed=int(seeds[0]), compile_kwargs=UNCOMPILED)
            after = pm.sample_posterior_predictive(
                posterior,
                freeze_vars=free,
                random_seed=int(seeds[1]),
                progressbar=False,
                compile_kwargs=UNCOMPILED,
            )
        tree = self.tree.copy()
        for name in ("prior", "prior_predictive"):
            tree[name] = before[name]
        tree["posterior_predictive"] = after["posterior_predictive"]
        return tree

    def save(self, path: Path | str) -> None:
        """Write the DataTree as netCDF; `arviz.from_netcdf` reads it."""
        with replacing(Path(path)) as new:
            self.tree.to_netcdf(new, engine="h5netcdf")


def fast(
    sample: Sample,
    model: SizeModel | None = None,
    *,
    draws: int = 1000,
    rng: np.random.Generator | int | None = None,
) -> Fit:
    """Fit a size model by importance sampling: tenths of a second, once it is compiled.

    Parts whose importance weights are unreliable, with a Pareto shape above .7, are drawn by NUTS where
    nutpie is installed, which once compiles the model for it.

    Parameters
    ----------
    sample : Sample
    model : SizeModel, optional
    draws : int
        50 or more.
    rng : Generator, int or None
        A generator, or its seed, which PyMC calls `random_seed`; None is another seed at each call.

    Raises
    ------
    DataError
        Too few draws, or a part that breaks its contract (see `erbayes.bayes.contract`).
    NotIdentified
        Units, designs or predictions that a size model cannot take (see `Evidence.of`).

    Warns
    -----
    Alarm
        The sample speaks against the known totals of the prediction.
    NotConverged
        Importance weights that are unreliable, of a part or of the known number of predicted links.
    """
    return _fitted(sample, model, Importance(draws), rng)


def nuts(
    sample: Sample,
    model: SizeModel | None = None,
    *,
    draws: int = 1000,
    tune: int = 1000,
    chains: int = 4,
    cores: int | None = None,
    target_accept: float = 0.8,
    rng: np.random.Generator | int | None = None,
    progressbar: bool = True,
    nuts_sampler: str | None = None,
) -> Fit:
    """Fit a size model by NUTS, in coordinates where its parts are nearly standard normal.

    The parts' posterior given the known number of predicted links is the product of theirs, which NUTS
    draws, times its density, by which the draws are resampled (see `joined`). Parts that it does not tie
    are drawn by importance sampling as in `fast`.

    Parameters
    ----------
    sample : Sample
    model : SizeModel, optional
    draws, tune, chains, cores, target_accept, progressbar, nuts_sampler
        As of `pymc.sample`, with 50 draws or more. nutpie is used where it is installed and `nuts_sampler`
        names no other: it compiles a model once, for whatever data and parameters of priors.
    rng : Generator, int or None
        A generator, or its seed, which PyMC calls `random_seed`; None is another seed at each call.

    Raises
    ------
    DataError
        Too few draws, a sampler that is unknown or not installed, or a part that breaks its contract (see
        `erbayes.bayes.contract`).
    NotIdentified
        Units, designs or predictions that a size model cannot take (see `Evidence.of`).

    Warns
    -----
    Alarm
        The sample speaks against the known totals of the prediction.
    NotConverged
        Divergences; an R-hat above 1.01 or fewer than 100 effective draws a chain of any parameter or of
        pairwise precision or recall; few draws that agree with the known number of predicted links.
    """
    sampler = NUTS(draws, tune, chains, cores, target_accept, progressbar, nuts_sampler)
    return _fitted(sample, model, sampler, rng)


def _fitted(
    sample: Sample, model: SizeModel | None, sampler: Sampler, rng: np.random.Generator | int | None
) -> Fit:
    enough(sampler.draws)
    rng, model, evidence = np.random.default_rng(rng), model or SizeModel(), Evidence.of(sample)
    parts = [CompiledPart.of(part, evidence.data) for part in model.tied.values()]
    draws = joined(dict(zip(model.tied, sampler(parts, rng), strict=True)), evidence.data, rng)
    population = completed(draws.by_size, evidence.data, rng)
    fit = Fit(sample, model, evidence, draws, population, int(rng.integers(2**31)))
    if links_out_of_reach(sample.units) < 0.1:
        for told in out_of_balance(sample):
            warnings.warn(f"{told} A size model takes the known total for true.", Alarm, stacklevel=3)
    problems = fit.problems()
    if problems:
        warnings.warn("; ".join(problems), NotConverged, stacklevel=3)
    return fit
