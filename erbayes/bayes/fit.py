"""A fit of a size model: totals, tables, alarms, and the tree for ArviZ."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
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

from .._internal.arrays import FloatArray
from .._internal.errors import NotIdentified, Sentence
from .._internal.files import replacing
from ..analysis.domains import in_domain
from ..design.sample import Sample
from ..engine import linear_pool, taylor
from ..metrics.columns import (
    B3_RECALL,
    B3_RECALL_MEAN,
    COMMON_LINKS,
    EXACT,
    TRUE_LINKS,
    ClusterSum,
    Column,
    Known,
    PieceSum,
    pairs,
)
from ..metrics.definitions import USUAL, Metric, Wanted, chosen, pairwise_precision, pairwise_recall
from ..metrics.uncertain import Draws
from .contract import ALL_DATA
from .doubts import alarms, is_disowned
from .evidence import Evidence
from .explained import explained
from .joined import Joined, populations
from .laws import compiled, laws
from .likelihood import DIMS, Factor, factors
from .matched import Matched
from .model import SizeModel
from .outcomes import BETWEEN
from .parts import Drawn, PartDraws, drawn_from_prior
from .population import Completed, of_clusters
from .posterior import TABLE, Posterior, Saved
from .samplers import Importance, NotConverged, mixing, one_seed, problems_of_chains


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
    matched : Matched or None
        The second clustering beside the sampled entities.
    truth : Fit or None
        The fit of true entities with the help of a second clustering, given the common links of this fit.
        None if there is no second clustering, or if too few sampled entities match its clusters.
    """

    sample: Sample
    model: SizeModel
    evidence: Evidence
    draws: Joined
    population: Completed
    seed: int
    parts: dict[str, dict[str, Drawn]] = field(default_factory=dict)
    untied: dict[int, dict[str, FloatArray]] = field(default_factory=dict)
    matched: Matched | None = None
    truth: Fit | None = None

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
        """Log prior density of the parameters of sizes, retention and leakage, (chain, draw) each.

        With a second clustering there are those of its sizes and retention too.
        """
        truth = {} if self.truth is None else self.truth.log_prior
        return self.draws.log_prior | {f"{name} by second": v for name, v in truth.items()}

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
        clean = self._fit_untied("exactness", self.evidence.data, 0)["clean"]
        return self.by_size["intact"] * np.where(self.by_size.get("met", 0.0) > 0, clean, 1.0)

    def between(self, column: Column) -> FloatArray:
        """Return the mean by size of a column that lies between bounds (`BETWEEN`), (chain, draw, J)."""
        between, size = BETWEEN[column], self.evidence.grid.size
        every = self.evidence.entities
        values = self.evidence.units.column(column)[~every.matched]
        counted = between.evidence(every.take(~every.matched), values, size)
        untied = self._fit_untied("bounded", self.evidence.data | counted, 1 + list(BETWEEN).index(column))
        return between.expected(size, self, untied["bounded_mean"])

    def _fit_untied(self, place: str, data: dict[str, Any], stream: int) -> dict[str, FloatArray]:
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
            self._totals[column] = self._compute_total(column)
        return self._totals[column]

    def _compute_total(self, column: Column | Known) -> FloatArray:
        if isinstance(column, Known):
            return np.full(self.population.true.shape, self.evidence.units.total(column.column))
        if isinstance(column, ClusterSum):
            return self._compute_total(Known(column))
        if column in COMPLETED:
            return self._compute_links(column)
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
        return np.asarray(sampled + (self._unsampled * mean).sum(-1))

    def _compute_links(self, column: Column) -> FloatArray:
        """Return common or true links of the completed populations, scaled to the known predicted links.

        Without false links, common links equal the predicted ones exactly, not up to rounding. If no link is
        lost, true links equal the common ones. With a second clustering, each common link has as many true
        links as in the populations of `truth`.
        """
        links, predicted = self.population, self.evidence.predicted_links
        scale = predicted / np.maximum(links.common + links.false, 1e-300)
        common = np.where((links.false == 0) & (links.common > 0), predicted, links.common * scale)
        if column == COMMON_LINKS:
            return common
        if self.truth is not None:
            links = self.truth.population
            return np.asarray(common * links.true / np.maximum(links.common, 1e-300))
        return np.where(links.true == links.common, common, links.true * scale)

    @cached_property
    def _unsampled(self) -> FloatArray:
        """Unsampled entities of each size, (chain, draw, J). Their records and the sample's add to N."""
        number = self.population.number
        records = self.evidence.records - self.evidence.data["sampled_records"]
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
        of_laws, fits = self._evaluated, {}
        of_truth = None if self.truth is None else self.truth._evaluated
        for i, names in enumerate(combinations):
            rng = np.random.default_rng([self.seed, 1 + len(BETWEEN) + i])
            chosen = dict(zip(self.parts, names, strict=True))
            fit = self._fit_under_laws(chosen, of_laws, rng)
            if self.truth is not None and of_truth is not None:
                common = fit.total(COMMON_LINKS)
                fit = replace(fit, truth=self.truth._fit_under_laws(chosen, of_truth, rng, common))
            fits[", ".join(name for name in names if name)] = fit
        return fits

    @property
    def _evaluated(self) -> dict[str, dict[str, PartDraws]]:
        """Draws of each law of the tied parts, with their quantities by size."""
        tied = {place: compiled(part, self.evidence.data) for place, part in self.model.tied.items()}
        return {
            place: {name: tied[place].laws[name].evaluated(d) for name, d in drawn.items()}
            for place, drawn in self.parts.items()
        }

    def _fit_under_laws(
        self,
        chosen: Mapping[str, str],
        of_laws: Mapping[str, Mapping[str, PartDraws]],
        rng: np.random.Generator,
        common: FloatArray | None = None,
    ) -> Fit:
        """Return the fit under one law for each part, without a second clustering."""
        of_law = {place: draws[chosen[place]] for place, draws in of_laws.items()}
        draws, population = populations(of_law, self.evidence.data, rng, common)
        parts = {place: {chosen[place]: d[chosen[place]]} for place, d in self.parts.items()}
        return replace(self, draws=draws, population=population, parts=parts, truth=None)

    def laws(
        self, metrics: Wanted = (pairwise_precision, pairwise_recall), level: float = 0.95
    ) -> pd.DataFrame:
        """Return intervals of metrics under each combination of laws, and its probability.

        Parameters
        ----------
        metrics : Metric or str, or several
        level : float in (0, 1)

        Returns
        -------
        DataFrame, one row per metric and combination
            estimate, lower and upper under the laws; prior, their probability before the sample, the product
            of `OneOf.probability`; posterior, the share of the posterior draws that follow them, and
            posterior_error, its Monte Carlo standard error between the chains; log_evidence, less that of the
            combination with the most evidence; rejected, True if log_evidence is below -4.6, a Bayes factor
            of 1/100. It has no row if each part has one law.

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
        for (law, fit), chances in zip(self.by_law.items(), self._compute_chances(), strict=True):
            draws, evidence = fit.apply(metrics), fit.draws.log_evidence - best
            for name, estimate, (lower, upper) in zip(
                draws.names, draws.mean, draws.interval(level), strict=True
            ):
                rows[name, law] = (estimate, lower, upper, *chances, evidence, evidence < REJECTED)
        index = pd.MultiIndex.from_tuples(rows, names=["metric", "law"]) if rows else None
        columns = ["estimate", "lower", "upper", "prior", "posterior", "posterior_error"]
        columns += ["log_evidence", "rejected"]
        return pd.DataFrame(list(rows.values()), index=index, columns=columns)

    def convergence(self) -> pd.DataFrame:
        """Return how well the draws of each law can be relied on.

        `NotConverged` warns of a law in proportion to its posterior probability. This table has all laws.

        Returns
        -------
        DataFrame, one row per part and law
            probability is that of the law, before the known number of predicted links ties the parts. khat is
            the Pareto shape of its importance weights, with `nuts` of a pilot run. r_hat is the largest R-hat
            of a parameter, and worst is this parameter. effective is the smallest number of effective draws
            of a parameter. A fit by `nuts` also has the number of divergent transitions as divergent.

        Examples
        --------
        >>> import erbayes as eb
        >>> from erbayes import bayes, datasets
        >>> case = datasets.people()
        >>> sample = eb.Sample(eb.measure(case.prediction, case.labels), eb.UniformRecords(case.drawn))
        >>> bayes.fast(sample, rng=1).convergence().loc["retention"].index.to_list()
        ['usual', 'uneven', 'threshold']
        """
        rows = {}
        for place, draws in self.parts.items():
            part = compiled(self.model.tied[place], self.evidence.data)
            probability = part.posterior([d.log_evidence for d in draws.values()])
            for (law, drawn), p in zip(draws.items(), probability, strict=True):
                rows[place, law] = {"probability": p, "khat": drawn.khat}
                if len(drawn.thetas) > 1:
                    r_hat, effective = mixing(drawn.thetas, part.laws[law].coordinates)
                    rows[place, law] |= {"r_hat": r_hat[0], "worst": r_hat[1], "effective": effective[0]}
                if drawn.statistics:
                    rows[place, law]["divergent"] = int(np.sum(drawn.statistics["diverging"]))
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis(["part", "law"])

    def _compute_chances(self) -> list[tuple[float, float, float]]:
        """Return prior and posterior probability of each combination of laws, and the error of the latter.

        They are in the order of `by_law`. The error is that of a mean of chains, which are independent.
        """
        if not self.by_law:
            return []
        several = {place: laws(part) for place, part in self.model.tied.items()}
        followed = {
            place: np.asarray(self.draws.parameters[f"{place}_law"])
            for place, part in several.items()
            if len(part.laws) > 1
        }
        chances = []
        for names in product(*self.parts.values()):
            chosen = dict(zip(self.parts, names, strict=True))
            prior = np.prod([several[place].probability[name] for place, name in chosen.items()])
            follows = [law == list(several[p].laws).index(chosen[p]) for p, law in followed.items()]
            share = np.all(follows, axis=0).mean(axis=1)
            error = share.std(ddof=1) / np.sqrt(len(share)) if len(share) > 1 else np.nan
            chances.append((float(prior), float(share.mean()), float(error)))
        return chances

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
            Columns of `Posterior.table`. If the alarm of recall is raised, lower and upper of the metrics
            that count true links are those of a linear pool with the closed form, and kind says so (see
            `disowned`). posterior_lower and posterior_upper are the interval of the posterior, and
            pooled_lower and pooled_upper that of the pool (see `pooled`); NaN if the closed form lacks the
            metric. If parts have several laws, law_lower and law_upper are the ends of the widest range of
            the intervals under the laws that the sample does not reject (see `laws`). With a second
            clustering, by_second is the share of the true links that is taken from it (see `by_second`).

        Raises
        ------
        NotIdentified
            A metric whose columns have no draws.
        """
        metrics = chosen([x for x in USUAL if self.identifies(x)] if metrics is None else metrics)
        table = super().table(level, metrics)
        bounds = np.full((len(table), 2), np.nan)
        for i, metric in enumerate(metrics):
            with suppress(NotIdentified):
                bounds[i] = self.pooled(metric).interval(level)[0]
        table = table.assign(posterior_lower=table["lower"], posterior_upper=table["upper"])
        table = table.assign(pooled_lower=bounds[:, 0], pooled_upper=bounds[:, 1])
        led = table.index.isin([m.name for m in self.disowned(metrics)]) & table["pooled_lower"].notna()
        table.loc[led, ["lower", "upper"]] = table.loc[led, ["pooled_lower", "pooled_upper"]].to_numpy()
        table.loc[led, "kind"] = POOLED
        if self.matched is not None:
            table = table.assign(by_second=self.by_second.sum(-1).mean())
        if not self.by_law:
            return table
        under = self.laws(metrics, level).query("not rejected").groupby("metric")
        return table.assign(law_lower=under.lower.min(), law_upper=under.upper.max())

    def pooled(self, metrics: Wanted) -> Draws:
        """Return metrics by a linear pool of this fit and the closed form, with equal weights.

        The posterior rests on laws for entities outside the sample. The closed form rests on the design alone
        (see `erbayes.taylor`). Half of the draws come from each. The interval is therefore wide where the
        closed form doubts what the laws say, and its ends are between those of both where they agree.

        This is no posterior. `apply`, `tree` and the tools of ArviZ have the posterior.

        Parameters
        ----------
        metrics : Metric or str, or several

        Returns
        -------
        Draws, (1, 2 x chain x draw, k)

        Raises
        ------
        NotIdentified
            A metric that has no draws, or that the sample cannot estimate by the closed form.

        Notes
        -----
        The distribution function of each metric is the mean of those of the posterior and of the closed form
        (see `erbayes.engine.linear_pool`). Weights of one half are set before the data: the closed form has
        no likelihood, so that the sample cannot weigh it against the laws.

        Examples
        --------
        >>> import erbayes as eb
        >>> from erbayes import bayes, datasets
        >>> case = datasets.people()
        >>> sample = eb.Sample(eb.measure(case.prediction, case.labels), eb.UniformRecords(case.drawn))
        >>> bayes.fast(sample, rng=1).pooled("pairwise-recall").interval().round(2)
        array([[0.88, 0.94]])
        """
        posterior, local = self.apply(metrics), chosen(metrics)
        domain, links = self.evidence.domain, self.evidence.links
        if domain is not None:
            local = tuple(in_domain(metric, domain, links, known=True) for metric in local)
        closed = replace(taylor(self.sample, local).apply(local), names=posterior.names)
        return linear_pool([posterior, closed], draws=2 * len(posterior.flat), rng=self.seed)

    def disowned(self, metrics: Wanted) -> tuple[Metric, ...]:
        """Return the metrics whose posterior intervals the alarm of recall disowns: those of true links.

        There are none without the alarm (see `alarms`). `table`, `erbayes.side_by_side` and reports show the
        pool of these metrics first.

        Parameters
        ----------
        metrics : Metric or str, or several

        Examples
        --------
        >>> import erbayes as eb
        >>> from erbayes import bayes, datasets
        >>> case = datasets.people()
        >>> sample = eb.Sample(eb.measure(case.prediction, case.labels), eb.UniformRecords(case.drawn))
        >>> bayes.fast(sample, rng=1).disowned("pairwise-recall")
        ()
        """
        if not self.is_disowned:
            return ()
        return tuple(metric for metric in chosen(metrics) if TRUE_LINKS in metric.columns)

    def quoted(self, metrics: Wanted) -> Draws:
        """Return draws of metrics to quote: those of the pool if they are disowned, else of the posterior.

        Parameters
        ----------
        metrics : Metric or str, or several

        Returns
        -------
        Draws, (1, 2 x chain x draw, k)
            Posterior draws are there twice, since the pool has as many of the closed form. Draws of a metric
            of the pool and of one of the posterior are not joint.
        """
        draws, metrics = self.apply(metrics), chosen(metrics)
        values = np.repeat(draws.flat, 2, axis=0)
        for metric in self.disowned(metrics):
            values[:, metrics.index(metric)] = self.pooled(metric).flat[:, 0]
        return replace(draws, values=values[None])

    @cached_property
    def is_disowned(self) -> bool:
        """Whether the interval of recall is far shorter than the share of links that no draw has seen."""
        return is_disowned(self)

    @property
    def by_second(self) -> FloatArray:
        """Share of the true links in clusters of the second clustering, by size, (chain, draw, J).

        These clusters stand for entities outside the sample. Without a second clustering the shares are 0.
        """
        if self.truth is None:
            return np.zeros_like(self.by_size["entities"])
        truth, data = self.truth.population, self.truth.evidence.data
        (true, _), left = of_clusters(self.truth.by_size, data), data["left"]
        all_links = np.maximum(truth.true, 1.0)[..., None]
        shares = truth.standing * true / np.maximum(left, 1) / all_links
        return np.asarray(shares.reshape(*shares.shape[:-1], 2, -1).sum(-2))

    @property
    def doubt(self) -> float:
        """Expected doubt about clusters of the second clustering that are out of reach of the sample."""
        log_odds = self.draws.parameters.get("fails_out_of_reach", np.array(-np.inf))
        return float(np.mean(1 / (1 + np.exp(-log_odds))))

    @property
    def unseen(self) -> FloatArray:
        """Share of the true links in entities larger than any sampled one, (chain, draw)."""
        if self.truth is not None:
            return self.truth.unseen
        size, largest = self.size, self.evidence.entities.size.max()
        links = self.population.number * pairs(size)
        return np.asarray(links[..., size > largest].sum(-1) / np.maximum(self.population.true, 1.0))

    @cached_property
    def alarms(self) -> list[Sentence]:
        """Sentences about metrics that rest on entities which the sample lacks, each with grade and remedy.

        There is one for recall if more than a quarter of the true links are expected in entities larger than
        any sampled one, and the interval of recall is shorter than half of that share: the fit is then sure
        of what no draw has shown. It has the range over the laws that the sample does not reject. There is
        one if a quarter or more are in clusters of the second clustering that are larger than any that a
        sampled entity matches. There is a note if nothing is taken from the second clustering.
        """
        return alarms(self)

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
        if self.truth is not None:
            problems += [f"by second: {problem}" for problem in self.truth.draws.problems]
            if (agreeing := self.truth.draws.agreeing) < FEWEST_AGREEING:
                problems.append(
                    "few draws with the second clustering agree with the common links that the sample "
                    f"expects ({agreeing:.0f} effective ones): look at recall without it"
                )
        if self.draws.statistics and len(self.population.true) > 1:
            key = self.apply([pairwise_precision, pairwise_recall])
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
        rng, data = one_seed(rng, random_seed), self.evidence.data
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
        """Write `tree` and `table()` as netCDF, for `Fit.load` and `arviz.from_netcdf`."""
        tree = self.tree.copy()
        tree.attrs[TABLE] = self.table().to_json(orient="split", double_precision=15)
        with replacing(Path(path)) as new:
            tree.to_netcdf(new, engine="h5netcdf")

    @staticmethod
    def load(path: Path | str) -> Saved:
        """Read a saved fit, which has the table, the metrics and the tree, but not the sample and the model.

        A file of `save` has every column of `Fit.table` at the level .95. The closed form and the fits under
        each law are not saved, so that tables of other levels have the columns of the posterior draws.

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
POOLED = "linear pool"
"""Kind of interval of a metric that the alarm of recall disowns."""
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
