"""Fits of a size model to a sample, by importance sampling (`fast`) or by NUTS (`nuts`)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any, TypeGuard

import arviz as az
import numpy as np
import pandas as pd
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
    RECORDS,
    TRUE_LINKS,
    ClusterSum,
    Column,
    Domain,
    Known,
    Links,
    PieceSum,
    pairs,
)
from ..datasets import people
from ..design import UniformRecords
from ..diagnostics import out_of_balance
from ..domains import out_of_balance as domains_out_of_balance
from ..errors import Alarm, DataError, NotIdentified, need_object
from ..files import replacing
from ..metrics import Metric, Wanted, pairwise_precision, pairwise_recall
from ..sample import Sample
from ..units import measure
from .contract import ALL_DATA
from .evidence import Evidence
from .explained import explained
from .joined import Joined, joined
from .laws import compiled, weighed
from .likelihood import DIMS, Factor, factors
from .model import SizeModel
from .outcomes import BETWEEN
from .parts import Drawn, drawn_from_prior
from .population import Completed, completed, of_clusters
from .posterior import Posterior, Saved
from .samplers import NUTS, Importance, Sampler, need_draws, problems_of_chains


class NotConverged(UserWarning):
    """Warning that a fit cannot be relied on, with the reasons."""


def depends_on_size(column: Column | Known) -> TypeGuard[PieceSum]:
    """Return True if a column depends only on the sizes of true entities: term(n, N, m) = n φ(N)."""
    if not isinstance(column, PieceSum):
        return False
    N = np.array([1.0, 2.0, 5.0, 40.0])
    whole, part = column.term(N, N, N), column.term(N / 2, N, 3 * N)
    return bool(np.allclose(part, whole / 2, rtol=1e-12))


@dataclass(frozen=True, eq=False, repr=False)
class Fit(Posterior):
    """A fit of a size model: posterior draws of completed populations and of their metrics.

    Functions `fast` and `nuts` make it. `table` returns estimates and intervals, `apply` draws of metrics.

    Attributes
    ----------
    sample : Sample
    model : SizeModel
    evidence : Evidence
        The data of the model.
    draws : Joined
        Posterior draws of the tied parts: sizes, retention and leakage.
    population : Completed
        Completed populations, one per draw.
    seed : int
        Seed of the untied parts, which are fitted when a metric first needs them.
    parts : dict, part -> dict, law -> Drawn
        Draws of each law of the tied parts, before they are tied.
    untied : dict, stream -> dict
        Quantities by size of the untied parts that were fitted so far.
    """

    sample: Sample
    model: SizeModel
    evidence: Evidence
    draws: Joined
    population: Completed
    seed: int
    parts: dict[str, dict[str, Drawn]] = field(default_factory=dict)
    untied: dict[int, dict[str, FloatArray]] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        """Return only the fields. Cached properties are computed anew after unpickling."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @property
    def size(self) -> FloatArray:
        """Records of an entity of each size, (J,)."""
        return self.evidence.grid.size

    @property
    def by_size(self) -> dict[str, FloatArray]:
        """Expected entities of each size, and the quantities of the tied parts, (chain, draw, J)."""
        return self.draws.by_size

    @property
    def log_prior(self) -> Mapping[str, FloatArray]:
        """Log prior density of the parameters of sizes, retention and leakage, (chain, draw) each."""
        return self.draws.log_prior

    @property
    def khat(self) -> dict[str, float]:
        """Pareto shapes of importance weights, by part."""
        return self.draws.khat

    @property
    def agreeing(self) -> float:
        """Effective number of combinations of draws that agree with the known number of predicted links."""
        return self.draws.agreeing

    @cached_property
    def pymc(self) -> pm.Model:
        """Return the tied parts as one PyMC model with frozen data, to inspect, to change and to sample.

        `pm.sample(model=fit.pymc)` draws parameters and quantities by size, and `pm.do` replaces any of them
        by a value. Data and parameters of priors are constants without names. `pm.do` refuses their names by
        a KeyError, and `pm.model_to_graphviz` shows only variables.

        The observed variables are counts of the sampled entities by bins of size, which are sufficient for
        the parameters. Their log densities leave out terms that depend on the counts alone. The model lacks
        two things:

        - the chances that the prediction makes no error of one kind, `unbroken` of `Retention` and `unmet`
          of `Leakage`. Both are 0 here, as they are in the fit if a sampled entity has such an error.
        - the completion (see `erbayes.bayes.population`). Metrics are of finite populations that contain the
          sample as observed. They are not functions of the parameters.
        """
        model = self.model.build(self.evidence)
        switches = {v.name: 0 for v in model.free_RVs if v.dtype == "int64"}
        frozen = freeze_dims_and_data(pm.do(model, switches))
        for datum in list(frozen.data_vars):
            frozen.data_vars.remove(datum)
            del frozen.named_vars[datum.name]
            frozen.named_vars_to_dims.pop(datum.name, None)
        return frozen

    @cached_property
    def exact(self) -> FloatArray:
        """Chance that an entity is exactly predicted, by size, (chain, draw, J)."""
        clean = self._untied("exactness", self.evidence.data, 0)["clean"]
        return self.by_size["intact"] * np.where(self.by_size["met"] > 0, clean, 1.0)

    def between(self, column: Column) -> FloatArray:
        """Return the mean by size of a column that lies between bounds (`BETWEEN`), (chain, draw, J)."""
        between, size = BETWEEN[column], self.evidence.grid.size
        every = self.evidence.entities
        values = self.evidence.units.column(column)[~every.matched]
        counted = between.evidence(every.take(~every.matched), values, size)
        untied = self._untied("bounded", self.evidence.data | counted, 1 + list(BETWEEN).index(column))
        return between.expected(size, self, untied["bounded_mean"])

    def _untied(self, place: str, data: dict[str, Any], stream: int) -> dict[str, FloatArray]:
        """Fit an untied part, and return its draws by size."""
        if stream in self.untied:
            return self.untied[stream]
        part = self.model.untied[place]
        chains, draws = self.population.true.shape
        rng = np.random.default_rng([self.seed, stream])
        only = compiled(part, data)
        (drawn,) = Importance(draws, chains)([only], rng)[0].values()
        if drawn.problems:
            problems = f"{self.evidence.where}{place}: {'; '.join(drawn.problems)}"
            warnings.warn(problems, NotConverged, stacklevel=4)
        self.untied[stream] = only.usual.evaluated(drawn).by_size
        return self.untied[stream]

    @cached_property
    def _totals(self) -> dict[Column | Known, FloatArray]:
        return {}

    def total(self, column: Column | Known) -> FloatArray:
        """Return posterior draws of a column's population total, (chain, draw).

        Parameters
        ----------
        column : Column or Known

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
            return np.full(self.population.true.shape, self.evidence.units.total(column.column))
        if isinstance(column, ClusterSum):
            return self._total(Known(column))
        if column in COMPLETED:
            return self._links(column)
        if column in EXPECTED:
            mean = EXPECTED[column](self)
        elif depends_on_size(column):
            mean = column.term(self.size, self.size, self.size)
        else:
            raise NotIdentified(
                f"no part of the size model returns '{column.name}': use taylor or the bootstrap for metrics "
                "that need it, or add its mean among entities of each size to erbayes.bayes.EXPECTED"
            )
        sampled = self.evidence.units.column(column).sum()
        total, matched = sampled + (self._unsampled * mean).sum(-1), self.evidence.matched
        if matched is not None:
            total = total + self.population.standing @ matched.mean(column, self.evidence.grid)
        return np.asarray(total)

    def _links(self, column: Column) -> FloatArray:
        """Return common or true links of the completed populations, scaled to the known predicted links.

        Without false links, common links equal the predicted ones exactly, not up to rounding. If no link is
        lost, true links equal the common ones.
        """
        links, predicted = self.population, self.evidence.predicted_links
        scale = predicted / np.maximum(links.common + links.false, 1e-300)
        common = np.where((links.false == 0) & (links.common > 0), predicted, links.common * scale)
        if column == COMMON_LINKS:
            return common
        return np.where(links.true == links.common, common, links.true * scale)

    @cached_property
    def _unsampled(self) -> FloatArray:
        """Unsampled entities of each size, (chain, draw, J). Their records and the sample's add to N."""
        number = self.population.number
        records = self.evidence.records - self.evidence.data["sampled_records"]
        if self.evidence.matched is not None:
            of_cluster = self.evidence.matched.mean(RECORDS, self.evidence.grid)
            records = np.maximum(records - self.population.standing @ of_cluster, 0)
        return np.asarray(number * (records / np.maximum(number @ self.size, 1.0))[..., None])

    def identifies(self, metric: Metric) -> bool:
        """Return True if the model produces all totals of a metric."""
        return all(
            isinstance(c, Known | ClusterSum) or c in COMPLETED or c in EXPECTED or depends_on_size(c)
            for c in metric.columns
        )

    @cached_property
    def by_law(self) -> dict[str, Fit]:
        """Return the fit under each combination of the laws of its parts, the most usual first.

        The dictionary is empty if each part has one law.
        """
        combinations = list(product(*self.parts.values()))
        if len(combinations) < 2:
            return {}
        fits, data = {}, self.evidence.data
        tied = {place: compiled(part, data) for place, part in self.model.tied.items()}
        of_laws = {
            place: {name: tied[place].laws[name].evaluated(d) for name, d in drawn.items()}
            for place, drawn in self.parts.items()
        }
        for i, names in enumerate(combinations):
            rng = np.random.default_rng([self.seed, 1 + len(BETWEEN) + i])
            chosen = list(zip(tied, names, strict=True))
            draws = joined({place: of_laws[place][name] for place, name in chosen}, data, rng)
            parts = {place: {name: self.parts[place][name]} for place, name in chosen}
            population = completed(draws.by_size, data, rng)
            name = ", ".join(name for name in names if name)
            fits[name] = replace(self, draws=draws, population=population, parts=parts)
        return fits

    def laws(
        self, metrics: Wanted = (pairwise_precision, pairwise_recall), level: float = 0.95
    ) -> pd.DataFrame:
        """Return intervals of metrics under each combination of laws.

        Parameters
        ----------
        metrics : Metric or str, or several
        level : float in (0, 1)

        Returns
        -------
        DataFrame, one row per metric and combination
            estimate, lower and upper under the law; log_evidence, less that of the combination with the most
            evidence; rejected, True if log_evidence is below -4.6, a Bayes factor of 1/100. It has no
            row if each part has one law.

        Examples
        --------
        >>> import erbayes as eb
        >>> from erbayes import bayes, datasets
        >>> case = datasets.people()
        >>> sample = eb.Sample(eb.measure(case.prediction, case.labels), eb.UniformRecords(case.drawn))
        >>> bayes.fast(sample, rng=1).laws("pairwise-recall").index.get_level_values("law")[0]
        'predicted, usual'
        """
        best = max((fit.draws.log_evidence for fit in self.by_law.values()), default=0.0)
        rows = {}
        for law, fit in self.by_law.items():
            draws, evidence = fit.apply(metrics), fit.draws.log_evidence - best
            for name, estimate, (lower, upper) in zip(
                draws.names, draws.mean, draws.interval(level), strict=True
            ):
                rows[name, law] = (estimate, lower, upper, evidence, evidence < REJECTED)
        index = pd.MultiIndex.from_tuples(rows, names=["metric", "law"]) if rows else None
        columns = ["estimate", "lower", "upper", "log_evidence", "rejected"]
        return pd.DataFrame(list(rows.values()), index=index, columns=columns)

    def table(self, level: float = 0.95, metrics: Wanted | None = None) -> pd.DataFrame:
        """Return estimates and intervals of metrics, and how far they rest on priors and laws.

        Parameters
        ----------
        level : float in (0, 1)
        metrics : Metric or str, or several, optional
            By default those of `erbayes.USUAL` that have draws.

        Returns
        -------
        DataFrame, one row per metric
            Columns of `Posterior.table`. If parts have several laws, law_lower and law_upper are the ends of
            the widest range of the intervals under the laws that the sample does not reject (see `laws`).
            With a second clustering, by_second is the share of the true links that is taken from it (see
            `by_second`).

        Raises
        ------
        NotIdentified
            A metric whose columns have no draws.
        """
        table = super().table(level, metrics)
        if self.evidence.matched is not None:
            table = table.assign(by_second=self.by_second.sum(-1).mean())
        if not self.by_law:
            return table
        under = self.laws(list(table.index), level).query("not rejected").groupby("metric")
        return table.assign(law_lower=under.lower.min(), law_upper=under.upper.max())

    @property
    def by_second(self) -> FloatArray:
        """Share of the true links in clusters of the second clustering, by size, (chain, draw, J).

        These clusters stand for entities outside the sample. Without a second clustering the shares are 0.
        """
        if self.evidence.matched is None:
            return np.zeros_like(self.by_size["entities"])
        (true, _, _), left = of_clusters(self.by_size, self.evidence.data), self.evidence.data["left"]
        all_links = np.maximum(self.population.true, 1.0)[..., None]
        return np.asarray(self.population.standing * true / np.maximum(left, 1) / all_links)

    @property
    def unseen(self) -> FloatArray:
        """Share of the true links in entities larger than any sampled one, (chain, draw)."""
        size, largest = self.size, self.evidence.entities.size.max()
        links = self.population.number * pairs(size)
        return np.asarray(links[..., size > largest].sum(-1) / np.maximum(self.population.true, 1.0))

    @cached_property
    def alarms(self) -> list[str]:
        """Sentences about metrics that rest on entities which the sample lacks, each with its remedy.

        There is one for recall if more than `UNSEEN` of the true links are expected in entities larger than
        any sampled one. It has the range over the laws that the sample does not reject. There is one if as
        many are in clusters of the second clustering that are larger than any that a sampled entity matches.
        With a second clustering there is one for precision too, whose intervals do not keep their promise.
        """
        share, largest = self.unseen.mean(), self.evidence.entities.size.max()
        alarms = self._by_second_alone()
        if self.evidence.matched is not None:
            alarms.append(PRECISION_BY_SECOND)
        if share <= UNSEEN:
            return alarms
        sentences = [
            f"pairwise-recall rests on entities that the sample lacks: {100 * share:.0f} % of the true links "
            f"are expected in entities of more than {largest:,.0f} records, the largest in the sample."
        ]
        if self.by_law:
            under = self.laws(pairwise_recall).query("not rejected")
            sentences.append(
                "Laws of sizes and errors that the sample does not tell apart put recall between "
                f"{under.lower.min():.2f} and {under.upper.max():.2f}."
            )
        return [" ".join([*sentences, REMEDY]), *alarms]

    def _by_second_alone(self) -> list[str]:
        """Return the alarm about clusters of the second clustering that are larger than any matched one."""
        matched, data = self.evidence.matched, self.evidence.data
        if matched is None:
            return []
        share = (self.by_second @ data["out_of_reach"]).mean()
        if share <= UNSEEN:
            return []
        largest = matched.size[matched.cluster[matched.known]].max()
        return [
            f"pairwise-recall rests on the second clustering {matched.second.name!r}: {100 * share:.0f} % of "
            f"the true links are taken from its clusters of more than {largest:,.0f} records, the largest "
            f"that a sampled entity matches. {REMEDY}"
        ]

    def explain(self, level: float = 0.95) -> str:
        """Return in words what pairwise precision and recall rest on.

        The paragraphs are facts of this fit, on these subjects:

        - the sample: its sizes, its broken entities, and its share of the true links
        - the prediction: its known number of links, and how many lie in clusters larger than sampled entities
        - the priors: probabilities of the laws, and for both metrics the share of links in entities of sizes
          that no draw has seen, the largest `prior_shift`, and the range over the laws

        The picture that belongs to it is `erbayes.plots.retention`.

        Parameters
        ----------
        level : float in (0, 1)
            Level of the intervals of metrics.

        Returns
        -------
        str
            Paragraphs with an empty line between them.

        Examples
        --------
        >>> import erbayes as eb
        >>> from erbayes import bayes, datasets
        >>> case = datasets.people()
        >>> sample = eb.Sample(eb.measure(case.prediction, case.labels), eb.UniformRecords(case.drawn))
        >>> bayes.fast(sample, rng=1).explain()[:14]
        'The sample has'
        """
        return explained(self, level)

    def problems(self) -> list[str]:
        """Return the reasons not to rely on the draws, with remedies; an empty list if there are none."""
        problems, agreeing = list(self.draws.problems), self.draws.agreeing
        if agreeing < FEWEST_AGREEING:
            problems.append(
                f"few draws agree with the known {self.evidence.predicted_links:,.0f} predicted links "
                f"({agreeing:.0f} effective ones, fewer than {FEWEST_AGREEING:.0f}): either this family of "
                "sizes is wrong, or the prediction is not the population that was sampled"
            )
            return problems
        key = self.apply([pairwise_precision, pairwise_recall])
        if len(key.values) > 1:
            problems += problems_of_chains(key.values, list(key.names))
        return problems

    @cached_property
    def factors(self) -> dict[str, Factor]:
        """Factors of the likelihood of the sampled entities (see `erbayes.bayes.likelihood`)."""
        return factors(self.evidence.entities, self.evidence.data, self.by_size)

    def log_likelihood(self) -> FloatArray:
        """Return the log-likelihood of each distinct sampled entity, (chain, draw, entity).

        It is the sum of the terms of its size, of its links kept, and of the foreign records that it meets.
        The first term counts once per draw, the others are given the size. With a second clustering there is
        a term of whether one of its clusters matches the entity. A matched entity has no terms of errors.

        Notes
        -----
        The posterior also depends on the known number of predicted links, \\|P\\|, which belongs to no single
        entity. Leave-one-out keeps the density of this number, in which the links of the entity that is left
        out still count as observed. The result is therefore doubtful for a giant that holds much of \\|P\\|.
        """
        log_density = np.zeros((*self.population.true.shape, len(self.evidence.entities.bin)))
        for factor in self.factors.values():
            log_density[..., factor.entity] += factor.log_density()
        return log_density

    @cached_property
    def tree(self) -> xr.DataTree:
        """Return the fit as a tree of groups, for ArviZ.

        - posterior: metrics, and parameters that vary between draws
        - by_size: quantities by size of entities
        - totals: the totals of which the metrics are functions
        - log_likelihood: one value per sampled entity (see `log_likelihood`)
        - log_prior: log prior density of each part
        - observed_data: observations of the sampled entities (see `likelihood.factors`)
        - constant_data: known quantities of the prediction, the design and the sampled entities
        - sample_stats: statistics of the transitions of NUTS that drew the sizes
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
        """Return groups of arrays as a tree by ArviZ's conventions, with dimensions and coordinates."""
        ids = self.evidence.units.ids.astype(str).to_numpy()
        of_entity = ("outcome", "links", "foreign", "draws", "records_of_entity")
        dims: dict[str, Any] = {name: datum.dims for name, datum in ALL_DATA.items()}
        dims |= self.pymc.named_vars_to_dims
        dims |= {"metrics": ("metric",), "totals": ("column",), **dict.fromkeys(of_entity, ("entity",))}
        dims |= {name: (DIMS[name],) for name in self.factors}
        labels = {k: np.asarray(v) for k, v in self.pymc.coords.items() if v is not None}
        labels |= {"entity": ids, "entity_size": self.size, **(coords or {})}
        labels |= {DIMS[name]: ids[factor.entity] for name, factor in self.factors.items()}
        origin = {
            "inference_library": "erbayes",
            "inference_library_version": version("erbayes"),
            "sampler": "NUTS" if self.draws.statistics else "importance sampling",
        }
        filled = {name: group for name, group in groups.items() if group}
        attributes = dict.fromkeys(("/", *filled), origin)
        tree: xr.DataTree = az.from_dict(filled, coords=labels, dims=dims, attrs=attributes)
        return tree

    def predictive(
        self,
        *,
        draws: int = 500,
        rng: np.random.Generator | int | None = None,
        random_seed: np.random.Generator | int | None = None,
    ) -> xr.DataTree:
        """Return the tree with predicted observations added, for prior and posterior predictive checks.

        Groups prior_predictive and posterior_predictive have the variables of observed_data. Sizes are
        predicted for the distinct entities of a sample by this design. The other variables are predicted
        given the sampled sizes. Group log_likelihood has each variable separately, as `arviz.plot_loo_pit`
        needs it. Group prior has parameters.

        Parameters
        ----------
        draws : int
            Draws from the prior. Those from the posterior are the draws of the fit.
        rng, random_seed : Generator, int or None
            A generator or its seed, as in `fast`. None is a new seed at each call.

        Returns
        -------
        DataTree

        Raises
        ------
        DataError
            Both rng and random_seed.
        """
        rng, data = _one_seed(rng, random_seed), self.evidence.data
        prior = [drawn_from_prior(part, data, draws, rng) for part in self.model.tied.values()]
        by_size = {k: v for part in prior for k, v in part.by_size.items()}
        prior_factors = factors(self.evidence.entities, data, by_size)
        groups = {
            "prior": {k: v for part in prior for k, v in part.parameters.items()},
            "prior_predictive": {name: factor.drawn(rng) for name, factor in prior_factors.items()},
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
        """Read a saved fit, which has the table, the metrics and the tree, but not the sample and the model.

        To keep all of a fit, pickle it.

        Parameters
        ----------
        path : Path or str
            A file of `save`, or a folder of `fit.tree.to_zarr`.

        Returns
        -------
        Saved

        Raises
        ------
        DataError
            A file that cannot be read, or that holds no saved fit.
        """
        return Saved.load(path)


FEWEST_AGREEING = 100.0
"""Fewest effective combinations of draws that must agree with the known number of predicted links."""
REJECTED = -4.6
"""Log Bayes factor against the best law, below which a sample rejects a law. It is 1/100."""
REMEDY = (
    "Draw records uniformly instead (UniformRecords), or entities with a chance that grows with "
    "their size, such as its root (BySize(numpy.sqrt))."
)
"""The remedy if the sample lacks the largest entities."""
PRECISION_BY_SECOND = (
    "pairwise-precision by a size model with a second clustering held the truth in .65 of samples, not in "
    ".95: take precision from SizeModel() alone."
)
"""The alarm for precision if there is a second clustering."""
UNSEEN = 0.25
"""Largest share of the true links in entities beyond the sampled sizes for which there is no alarm."""
COMPLETED = (COMMON_LINKS, TRUE_LINKS)
"""Columns whose totals are those of the completed populations."""
EXPECTED: dict[Column, Callable[[Fit], FloatArray]] = {
    B3_RECALL: lambda fit: 1 + (fit.size - 1) * fit.by_size["kept"],
    B3_RECALL_MEAN: lambda fit: (1 + (fit.size - 1) * fit.by_size["kept"]) / fit.size,
    EXACT: lambda fit: fit.exact,
    **{column: partial(Fit.between, column=column) for column in BETWEEN},
}
"""Functions of a fit that return the mean of a column among entities of each size, (chain, draw, J).

Add a function for a column of your own, and fits have its total. `fit.by_size` has these quantities of
entities with `fit.size` records:

- intact: the chance to be in one predicted cluster
- kept: the mean share of links kept
- met: the chance to meet a foreign record
- foreign: the mean number of foreign records that each record meets

`fit.exact` is the chance to be exactly predicted. The table does not need true and common links, which follow
from the completed populations, or columns that depend only on the sizes of entities.
"""


def fast(
    sample: Sample,
    model: SizeModel | None = None,
    *,
    domain: Domain | None = None,
    links: Links = Links.SHARED,
    draws: int = 1000,
    rng: np.random.Generator | int | None = None,
    random_seed: np.random.Generator | int | None = None,
) -> Fit:
    """Fit a size model by importance sampling.

    The first fit compiles the model, which takes some seconds. Further fits take tenths of a second. If the
    importance weights of a part are unreliable, with a Pareto shape above .7, the part is drawn by NUTS. This
    needs nutpie, and one more compilation.

    Parameters
    ----------
    sample : Sample
        Sampled entities, under a design by which the chance of an entity depends only on its size.
    model : SizeModel, optional
        By default `SizeModel()`.
    domain : Domain, optional
        The group of whole entities that is the population; by default all records. The units must be grouped
        by its variable, which must be known for all records of the prediction (see `Units.grouped`).
    links : Links
        How links between the domain and other records count (see `Evidence.of`).
    draws : int
        Posterior draws, 50 or more.
    rng, random_seed : Generator, int or None
        A generator or its seed, under the name of this package or of PyMC. None is a new seed at each call.

    Returns
    -------
    Fit

    Raises
    ------
    DataError
        Too few draws, both rng and random_seed, or a part that breaks its contract (see
        `erbayes.bayes.contract`).
    NotIdentified
        Units, a design, a prediction or a domain that a size model cannot use (see `Evidence.of`).

    Warns
    -----
    Alarm
        The sample contradicts the known totals of the prediction.
    NotConverged
        Importance weights are unreliable, of a part or of the known number of predicted links.

    Examples
    --------
    >>> import erbayes as eb
    >>> from erbayes import bayes, datasets
    >>> case = datasets.people()
    >>> sample = eb.Sample(eb.measure(case.prediction, case.labels), eb.UniformRecords(case.drawn))
    >>> fit = bayes.fast(sample, rng=1)
    >>> fit.table().loc["pairwise-precision", "estimate"].round(2)
    np.float64(0.82)
    """
    return _fitted(sample, model, domain, links, Importance(draws), _one_seed(rng, random_seed))


def nuts(
    sample: Sample,
    model: SizeModel | None = None,
    *,
    domain: Domain | None = None,
    links: Links = Links.SHARED,
    draws: int = 1000,
    tune: int = 1000,
    chains: int = 4,
    cores: int | None = None,
    target_accept: float = 0.8,
    rng: np.random.Generator | int | None = None,
    progressbar: bool = True,
    nuts_sampler: str | None = None,
    random_seed: np.random.Generator | int | None = None,
) -> Fit:
    """Fit a size model by NUTS, in coordinates in which its posterior is nearly standard normal.

    Use it to check a fast fit, or if a fast fit is unreliable. The joint posterior of the tied parts is the
    product of the parts' posteriors times the density of the known number of predicted links. NUTS draws the
    parts. The draws are then resampled with that density as weight (see `joined`). Untied parts are drawn by
    importance sampling.

    Parameters
    ----------
    sample : Sample
        Sampled entities, as for `fast`.
    model : SizeModel, optional
        By default `SizeModel()`.
    domain, links
        As for `fast`.
    draws, tune, chains, cores, target_accept, progressbar, nuts_sampler
        Arguments of `pymc.sample`, with 50 draws or more. nutpie draws if it is installed and `nuts_sampler`
        names no other package. It compiles a model once for all data and parameters of priors.
    rng, random_seed : Generator, int or None
        A generator or its seed, under the name of this package or of PyMC. None is a new seed at each call.

    Returns
    -------
    Fit

    Raises
    ------
    DataError
        Too few draws, both rng and random_seed, a sampler that is unknown or not installed, or a part that
        breaks its contract (see `erbayes.bayes.contract`).
    NotIdentified
        Units, a design, a prediction or a domain that a size model cannot use (see `Evidence.of`).

    Warns
    -----
    Alarm
        The sample contradicts the known totals of the prediction.
    NotConverged
        Divergences; few draws that agree with the known number of predicted links; an R-hat above 1.01, or
        fewer than 100 effective draws per chain, of a parameter or of pairwise precision or recall.
    """
    sampler = NUTS(draws, tune, chains, cores, target_accept, progressbar, nuts_sampler)
    return _fitted(sample, model, domain, links, sampler, _one_seed(rng, random_seed))


def warm_up() -> None:
    """Compile the default model and keep it on disk, so that the first fit of later processes is quick.

    It fits the model to example data, and makes the table. Run it once after installation or an update, for
    instance while an image is built. On an empty disk cache it needs a minute of processor time. Fits by NUTS
    compile more, in the first call of each process.

    Examples
    --------
    >>> from erbayes import bayes
    >>> bayes.warm_up()
    """
    case = people()
    sample = Sample(measure(case.prediction, case.labels), UniformRecords(case.drawn))
    fast(sample, rng=1).table()


def _one_seed(rng: Any, random_seed: Any) -> np.random.Generator:
    """Return the generator of the one seed that is not None."""
    if rng is not None and random_seed is not None:
        raise DataError("both rng and random_seed were given, which are two names of the seed: give one")
    return generator(rng if random_seed is None else random_seed)


def _fitted(
    sample: Sample,
    model: SizeModel | None,
    domain: Domain | None,
    links: Links,
    sampler: Sampler,
    rng: np.random.Generator,
) -> Fit:
    """Fit a model by a sampler, and warn of problems."""
    need_draws(sampler.draws)
    model = SizeModel() if model is None else model
    need_object(model, "tied", "a model is an object such as SizeModel()")
    evidence = Evidence.of(sample, domain, links, model.second)
    tied = {place: compiled(part, evidence.data) for place, part in model.tied.items()}
    parts = dict(zip(tied, sampler([*tied.values()], rng), strict=True))
    mixed = {place: weighed(place, tied[place], of_laws, rng) for place, of_laws in parts.items()}
    draws = joined(mixed, evidence.data, rng)
    population = completed(draws.by_size, evidence.data, rng)
    fit = Fit(sample, model, evidence, draws, population, int(rng.integers(2**31)), parts)
    if links_out_of_reach(evidence.units) < 0.1:
        out = (
            out_of_balance(sample)
            if domain is None
            else domains_out_of_balance(sample, [domain], links, fewest=0)
        )
        for alarm in out:
            warnings.warn(f"{alarm} A size model relies on the known total.", Alarm, stacklevel=3)
    problems = fit.problems()
    if problems:
        warnings.warn(evidence.where + "; ".join(problems), NotConverged, stacklevel=3)
    return fit
