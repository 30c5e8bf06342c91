"""Fits of a size model to a sample: by NUTS, or fast by importance sampling."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeGuard

import arviz as az
import numpy as np
import pymc as pm
import xarray as xr
from pymc.model.transform.optimization import freeze_dims_and_data

from ..arrays import FloatArray, generator
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
from ..errors import Alarm, NotIdentified, need_object
from ..files import replacing
from ..metrics import Metric, pairwise_precision, pairwise_recall
from ..sample import Sample
from .evidence import Evidence
from .importance import KHAT
from .joined import Joined, joined
from .likelihood import DIMS, Factor, factors
from .model import SizeModel
from .outcomes import BETWEEN
from .parts import CompiledPart, drawn_from_prior
from .population import Completed, completed
from .posterior import Posterior, Saved
from .samplers import NUTS, Importance, Sampler, enough, problems_of_chains


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
class Fit(Posterior):
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

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone: what is derived from them is derived again."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @property
    def size(self) -> FloatArray:
        """Records of an entity of each size, (J,)."""
        return self.evidence.grid.size

    @property
    def by_size(self) -> dict[str, FloatArray]:
        """Expected entities of each size, and what becomes of them, (chain, draw, J)."""
        return self.draws.by_size

    @property
    def log_prior(self) -> Mapping[str, FloatArray]:
        """Log prior density of the parameters of sizes, retention and leakage, (chain, draw) each."""
        return self.draws.log_prior

    @property
    def khat(self) -> dict[str, float]:
        """Pareto shapes of the weights of importance sampling, by part."""
        return self.draws.khat

    @cached_property
    def pymc(self) -> pm.Model:
        """The tied parts as one PyMC model with its data frozen, to look at, to change and to sample.

        `pm.sample(model=fit.pymc)` draws parameters and quantities by size. The observed variables are
        counts of the sampled entities by bins of size, sufficient for the parameters. Their log densities
        leave out what depends on the counts alone. Two things are outside the model:

        - the chances that the prediction makes no error at all of one kind, `unbroken` and `unmet` of
          `SizeModel`. Both are 0 here, as they are in the fit if an entity shows such an error.
        - the completion (see `erbayes.bayes.population`). Metrics are of finite populations that hold the
          sample as it is, and are not functions of the parameters.
        """
        model = self.model.build(self.evidence)
        switches = {v.name: 0 for v in model.free_RVs if v.dtype == "int64"}
        return freeze_dims_and_data(pm.do(model, switches))

    @cached_property
    def exact(self) -> FloatArray:
        """Chance that an entity is predicted exactly, by size, (chain, draw, J)."""
        clean = self._free("exactness", self.evidence.data, 0)["clean"]
        return self.by_size["intact"] * np.where(self.by_size["met"] > 0, clean, 1.0)

    def between(self, column: Column) -> FloatArray:
        """Mean by size of a column that lies between bounds (`BETWEEN`), (chain, draw, J)."""
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
    def _totals(self) -> dict[Column | Known, FloatArray]:
        return {}

    def total(self, column: Column | Known) -> FloatArray:
        """Posterior draws of a column's population total, (chain, draw).

        Raises
        ------
        NotIdentified
            A column that no part of the model produces, and that `EXPECTED` lacks.
        """
        if column not in self._totals:
            self._totals[column] = self._total(column)
        return self._totals[column]

    def _total(self, column: Column | Known) -> FloatArray:
        if isinstance(column, Known):
            return np.full(self.population.true.shape, self.sample.known(column))
        if isinstance(column, ClusterSum):
            return self._total(Known(column))
        if column in LINKS:
            return self._links(column)
        if column in EXPECTED:
            each = EXPECTED[column](self)
        elif by_size_alone(column):
            each = column.term(self.size, self.size, self.size)
        else:
            raise NotIdentified(
                f"no part of the size model says anything of '{column.name}': use taylor or the bootstrap "
                "for metrics that need it, or add what an entity of each size is expected to have of it to "
                "erbayes.bayes.EXPECTED"
            )
        sampled = self.sample.units.column(column).sum()
        return np.asarray(sampled + (self._unsampled * each).sum(-1))

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
        """True if the model produces all totals of a metric."""
        return all(
            isinstance(c, Known | ClusterSum) or c in LINKS or c in EXPECTED or by_size_alone(c)
            for c in metric.columns
        )

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
    def factors(self) -> dict[str, Factor]:
        """What the sampled entities show, with the likelihood of each thing; see `likelihood`."""
        return factors(self.evidence.entities, self.evidence.data, self.by_size)

    def log_likelihood(self) -> FloatArray:
        """Log-likelihood of each distinct sampled entity, (chain, draw, entity).

        Of its size, as often as it was drawn; of its links kept given its size; and of the foreign records
        that it meets given its size.

        Notes
        -----
        The posterior also rests on the known number of predicted links, \\|P\\|, which is no entity's.
        Leave-one-out keeps it, and takes the links of an entity that is left out to be as uncertain as
        before. They are then among those of unsampled entities, on which \\|P\\| bears more. For a giant
        that holds much of \\|P\\| its density is doubtful for that reason.
        """
        found = np.zeros((*self.population.true.shape, len(self.evidence.entities.bin)))
        for factor in self.factors.values():
            found[..., factor.entity] += factor.log_density()
        return found

    @cached_property
    def tree(self) -> xr.DataTree:
        """What ArviZ works on.

        - posterior: metrics and parameters, without those that are the same in all draws;
        - by_size: quantities by size of entities, and totals: those that the metrics are made of;
        - log_likelihood: one value for each sampled entity (see `log_likelihood`);
        - log_prior: of each part;
        - observed_data: what the sampled entities show (see `likelihood.factors`);
        - constant_data: what is known of the prediction, the design and the sampled entities;
        - sample_stats: from NUTS, of the transitions that drew the sizes.
        """
        entities, data, metrics = self.evidence.entities, self.evidence.data, self.apply(self.metrics)
        totals = self.totals(self.metrics)
        parameters = {k: v for k, v in self.draws.parameters.items() if np.ptp(v) > 0}
        known = {k: getattr(entities, k) for k in ("links", "foreign", "draws")}
        known |= {"records_of_entity": entities.size, "predicted_links": self.evidence.predicted_links}
        known |= {k: data[k] for k in ("records", "log_predicted", "selection")}
        groups: dict[str, Mapping[str, Any]] = {
            "posterior": {**parameters, "metrics": metrics.values},
            "by_size": {f"{name}_by_size": v for name, v in self.by_size.items()},
            "totals": {"totals": totals.values},
            "log_likelihood": {"outcome": self.log_likelihood()},
            "log_prior": self.log_prior,
            "observed_data": {name: factor.observed for name, factor in self.factors.items()},
            "constant_data": known,
            "sample_stats": self.draws.statistics,
        }
        return self._as_tree(groups, {"metric": list(metrics.names), "column": list(totals.names)})

    def _as_tree(
        self, groups: Mapping[str, Mapping[str, Any]], coords: Mapping[str, Any] | None = None
    ) -> xr.DataTree:
        """Groups of arrays by ArviZ's conventions, with the names of dimensions and of what made them."""
        ids = self.sample.units.ids.astype(str).to_numpy()
        of_entity = ("outcome", "links", "foreign", "draws", "records_of_entity")
        dims: dict[str, Any] = dict(self.pymc.named_vars_to_dims)
        dims |= {"metrics": ("metric",), "totals": ("column",), **dict.fromkeys(of_entity, ("entity",))}
        dims |= {name: (DIMS[name],) for name in self.factors}
        found = {k: np.asarray(v) for k, v in self.pymc.coords.items() if v is not None}
        found |= {"entity": ids, "entity_size": self.size, **(coords or {})}
        found |= {DIMS[name]: ids[factor.entity] for name, factor in self.factors.items()}
        made = {
            "inference_library": "erbayes",
            "inference_library_version": version("erbayes"),
            "sampler": "NUTS" if self.draws.statistics else "importance sampling",
        }
        filled = {name: group for name, group in groups.items() if group}
        attributes = dict.fromkeys(("/", *filled), made)
        tree: xr.DataTree = az.from_dict(filled, coords=found, dims=dims, attrs=attributes)
        return tree

    def predictive(self, *, draws: int = 500, rng: np.random.Generator | int | None = None) -> xr.DataTree:
        """The tree for predictive checks: what the model expects of the sampled entities, and what they show.

        prior_predictive and posterior_predictive have the names of observed_data. The size of an entity is
        predicted among the distinct entities of a sample by this design, the rest given the sampled sizes.
        log_likelihood is of each variable alone, as `arviz.plot_loo_pit` needs it. prior holds parameters.

        Parameters
        ----------
        draws : int
            From the prior. There are as many from the posterior as the fit has.
        rng : Generator, int or None
            A generator, or its seed; None is another seed at each call.
        """
        rng, data = generator(rng), self.evidence.data
        found = {n: drawn_from_prior(p, data, draws, rng) for n, p in self.model.tied.items()}
        by_size = {k: v for part in found.values() for k, v in part.by_size.items()}
        before = factors(self.evidence.entities, data, by_size)
        groups = {
            "prior": {k: v for part in found.values() for k, v in part.parameters.items()},
            "prior_predictive": {name: factor.drawn(rng) for name, factor in before.items()},
            "posterior_predictive": {name: factor.drawn(rng) for name, factor in self.factors.items()},
            "log_likelihood": {name: factor.log_density() for name, factor in self.factors.items()},
        }
        tree = self.tree.copy()
        tree.update(self._as_tree(groups).children)
        return tree

    def save(self, path: Path | str) -> None:
        """Write `tree` as netCDF, for `Fit.load` and `arviz.from_netcdf`."""
        with replacing(Path(path)) as new:
            self.tree.to_netcdf(new, engine="h5netcdf")

    @staticmethod
    def load(path: Path | str) -> Saved:
        """What a fit saved: its table, its metrics and its tree, without the sample and the model.

        To keep all of a fit, pickle it.

        Parameters
        ----------
        path : Path or str
            A file of `save`, or a folder of `fit.tree.to_zarr`.

        Raises
        ------
        DataError
            A file that cannot be read, or that holds no saved fit.
        """
        return Saved.load(path)


LINKS = (COMMON_LINKS, TRUE_LINKS)
EXPECTED: dict[Column, Callable[[Fit], FloatArray]] = {
    B3_RECALL: lambda fit: 1 + (fit.size - 1) * fit.by_size["kept"],
    B3_RECALL_MEAN: lambda fit: (1 + (fit.size - 1) * fit.by_size["kept"]) / fit.size,
    EXACT: lambda fit: fit.exact,
    **{column: partial(Fit.between, column=column) for column in BETWEEN},
}
"""Mean of a column among entities of each size, (chain, draw, J). Add your own, and fits have its total.

`fit.by_size` has of entities of `fit.size` records the chance to be in one predicted cluster (intact), the
mean share of links kept (kept), the chance to meet a foreign record (met), and the mean number of foreign
records that each record meets (foreign). `fit.exact` has the chance to be predicted exactly. Links are not
in this table: they are completed with \\|P\\|. Neither are columns that sizes of entities alone fix.
"""


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
    rng, model, evidence = generator(rng), SizeModel() if model is None else model, Evidence.of(sample)
    need_object(model, "tied", "a model is an object such as SizeModel()")
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
