"""A fit of a size model, by importance sampling (`fast`) or by NUTS (`nuts`), with its tables and alarms."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from .._internal.arrays import Seed, generator
from .._internal.errors import Alarm, DataError, Grade, NotIdentified, Sentence
from ..design.contract import draws_records
from ..design.sample import Sample
from ..engine import PooledDraws, taylor
from ..engine.diagnostics import out_of_balance
from ..engine.pool import pool_quantiles
from ..metrics.columns import TRUE_LINKS
from ..metrics.definitions import USUAL, Metric, Wanted, chosen, pairwise_precision, pairwise_recall
from ..metrics.intervals import Kind
from ..metrics.uncertain import Draws
from ..metrics.unseen import stack_components
from .by_law import FittedLaws
from .evidence import Evidence
from .explained import alarms, explained, is_disowned, is_unseen
from .laws import weighed
from .model import SizeModel, need_model
from .population import populations
from .samplers import NUTS, Importance, NotConverged, need_draws
from .totals import identifies
from .tree import FittedTree

MODEL = 0.65
"""Weight of a size model in its pool with the closed form, chosen on populations of their own.

Under records .6 to .7 have the same coverage, and with less weight precision under clusters has an interval
score above .6 of the closed form's (benchmarks/bayes-pool.md).
"""
NOTE = (
    f"pool a size model, with a weight of {MODEL:g}, and the closed form, or span both: they depend on a "
    "prior for the sizes and errors of the entities that were not drawn."
)
"""What intervals of a pool say of themselves."""
CHAINS = 4
"""Chains of a fast fit. ArviZ's R-hat and effective number need two or more, and PyMC draws four."""


@dataclass(frozen=True, eq=False, repr=False)
class Fit(FittedLaws, FittedTree):
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

    Examples
    --------
    >>> import erbayes as eb
    >>> from erbayes import bayes, datasets
    >>> case = datasets.people()
    >>> sample = eb.Sample(eb.measure(case.prediction, case.labels), eb.UniformRecords(case.drawn))
    >>> fit = bayes.fast(sample, rng=1)
    >>> fit.pooled("pairwise-recall").interval().round(2)
    array([[0.88, 0.94]])
    >>> fit.explain()[:14]
    'The sample has'
    """

    def table(self, level: float = 0.95, metrics: Wanted | None = None) -> pd.DataFrame:
        """Return estimates and intervals of metrics, and how far they depend on priors and laws.

        Parameters
        ----------
        level : float in (0, 1)
        metrics : Metric or str, or several, optional
            By default those of `erbayes.metrics.USUAL` that have draws.

        Returns
        -------
        DataFrame, one row per metric
            Columns of `Draws.table`, and these.

            - prior_shift: the shift of the mean, in posterior standard deviations, if the prior of one part
              counts twice, for the part with the largest shift. Above .3, the answer depends on that prior.
              prior_shift_error is its Monte Carlo standard error, .1 to .4 with 1,000 draws.
            - posterior_lower, posterior_upper: the interval of the posterior. The first columns are of the
              draws to quote (`Fit.quoted`), which are those of the pool if kind says so.
            - pooled_lower, pooled_upper: the interval of `Fit.pooled`; NaN if the closed form has no such
              metric.
            - law_lower, law_upper, if parts have several laws: the ends of the widest range of the intervals
              under the laws that the sample does not reject (see `Fit.laws`).

        Raises
        ------
        NotIdentified
            A metric whose columns have no draws.
        """
        metrics = chosen([m for m in USUAL if identifies(m)] if metrics is None else metrics)
        draws = self.apply(metrics)
        shift, error = self.prior_shift(draws), self.prior_shift_error(draws)
        largest = np.arange(len(shift)), shift.to_numpy().argmax(axis=1)
        own, pooled = draws.interval(level), np.full((len(metrics), 2), np.nan)
        for j, metric in enumerate(metrics):
            if (pool := self._pool(metric)) is not None:
                pooled[j] = pool.interval(level)[0]
        table = self.quoted(metrics).table(level)
        table = table.assign(
            prior_shift=shift.to_numpy()[largest],
            prior_shift_error=error.to_numpy()[largest],
            posterior_lower=own[:, 0],
            posterior_upper=own[:, 1],
            pooled_lower=pooled[:, 0],
            pooled_upper=pooled[:, 1],
        )
        if not self.by_law:
            return table
        under = self.laws(metrics, level).query("not rejected").groupby("metric")
        return table.assign(law_lower=under.lower.min(), law_upper=under.upper.max())

    def pooled(self, metrics: Wanted) -> PooledDraws:
        """Return metrics by a pool of this fit and the closed form, (chain, draw, k).

        Each end of an interval is .65 times that of the posterior, which depends on priors for entities
        outside the sample, plus .35 times that of the closed form, which depends on the design alone. If
        over a quarter of the true links are expected in entities larger than any sampled one, intervals of
        metrics that count true links span both. This is no posterior, although each draw is a posterior
        draw that was moved.

        Raises
        ------
        NotIdentified
            A metric that has no draws, or that the sample cannot estimate by the closed form.
        """
        metrics = chosen(metrics)
        posterior, closed = self.apply(metrics), taylor(self.sample, metrics).apply(metrics)
        closed = replace(closed, names=posterior.names)
        unseen = [m.name for m in metrics if TRUE_LINKS in m.columns and is_unseen(self)]
        pooled = pool_quantiles([posterior, closed], [MODEL, 1 - MODEL], outer=unseen)
        return self._wrap(pooled, True)

    def quoted(self, metrics: Wanted) -> PooledDraws:
        """Return draws of metrics to quote, (chain, draw, k), which `table` and all engines and reports show.

        Metrics have the draws of their pool if records were drawn, where it covers as often as the posterior
        or more often, and those that count true links if the alarm of recall disowns their posterior (see
        `alarms`). All others have the draws of the posterior, as do those without a pool.
        """
        metrics = chosen(metrics)
        posterior, always = self._wrap(self.apply(metrics), False), draws_records(self.sample.design)
        disowned = not always and is_disowned(self)
        leads = [always or (disowned and TRUE_LINKS in m.columns) for m in metrics]
        pools = [self._pool(m) if first else None for m, first in zip(metrics, leads, strict=True)]
        columns = [posterior.part([j]) if pool is None else pool for j, pool in enumerate(pools)]
        return stack_components(*columns)

    def _wrap(self, draws: Draws, pooled: bool) -> PooledDraws:
        """Return draws of this fit to quote, all of them of the pool or none."""
        given = {f.name: getattr(draws, f.name) for f in fields(Draws)} | {"centre": draws.estimate}
        return Quoted(**given, pooled=np.full(len(draws.names), pooled), fitted=self)

    def _pool(self, metric: Metric) -> PooledDraws | None:
        """Return the pool of a metric; None if the closed form has no interval of it."""
        try:
            pool = self.pooled(metric)
        except NotIdentified:
            return None
        return None if pool.reasons[0] else pool

    @cached_property
    def alarms(self) -> list[Sentence]:
        """Sentences about metrics that depend on entities outside the sample, each with grade and remedy.

        There is one for recall if more than a quarter of the true links are expected in entities larger than
        any sampled one, and the interval of recall is shorter than half of that share.
        """
        return alarms(self)

    def explain(self, level: float = 0.95) -> str:
        """Return in words what pairwise precision and recall rest on, with intervals of this level.

        Paragraphs are about the sample, the prediction and the priors.
        """
        quoted = self.quoted([pairwise_precision, pairwise_recall])
        ends = zip(quoted.names, quoted.interval(level), quoted.pooled, strict=True)
        return explained(self, level, {name: bounds for name, bounds, pooled in ends if pooled})


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Quoted(PooledDraws):
    """Draws of a fit to quote, of its pool in the components `pooled` (see `Fit.quoted`)."""

    fitted: Fit

    @property
    def note(self) -> tuple[Sentence, ...]:
        """Return the note of metrics that are pooled, if there are any."""
        if not self.pooled.any():
            return ()
        names = [name for name, pooled in zip(self.names, self.pooled, strict=True) if pooled]
        of = "" if self.pooled.all() else f" of {', '.join(names)}"
        return (Sentence(f"Intervals{of} {NOTE}", Grade.NOTE),)

    @property
    def doubts(self) -> tuple[str, ...]:
        """Return remarks, the alarms of the fit if recall is among the metrics, and the note of pools."""
        own = self.fitted.alarms if pairwise_recall.name in self.names else ()
        return (*self.remarks, *own, *self.note)

    def sentence(self, level: float = 0.95, kind: Kind | None = None) -> str:
        """Return what `Estimates.sentence` returns, and the note of what is pooled."""
        return " ".join([PooledDraws.sentence(self, level, kind), *self.note])


def fast(sample: Sample, model: SizeModel | None = None, *, draws: int = 1000, rng: Seed = None) -> Fit:
    """Fit a size model by importance sampling.

    The first fit compiles the model, which takes some seconds. Further fits take tenths of a second. If the
    importance weights of a part are unreliable, with a Pareto shape above .7, the part is drawn by NUTS,
    which needs one more compilation.

    Parameters
    ----------
    sample : Sample
        Sampled entities, under a design by which the chance of an entity depends only on its size.
    model : SizeModel, optional
        By default `SizeModel()`.
    draws : int
        Posterior draws, 50 or more, in four chains that share the proposals but no point. Some are copies:
        of 1,000 draws, 500 to 800 are effective, as `arviz.ess` shows.
    rng : Generator, int or None
        A generator or its seed. None is a new seed at each call.

    Returns
    -------
    Fit

    Raises
    ------
    DataError
        Too few draws, or a part that breaks its contract.
    NotIdentified
        Units, a design or a prediction that a size model cannot use.

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
    sampler = Importance(-(-need_draws(draws) // CHAINS), CHAINS)
    return _fit_and_warn(sample, model, sampler, generator(rng))


def nuts(
    sample: Sample, model: SizeModel | None = None, *, draws: int = 1000, rng: Seed = None, **settings: Any
) -> Fit:
    """Fit a size model by NUTS, in coordinates in which its posterior is nearly standard normal.

    Use it to check a fast fit. NUTS draws each law of the tied parts, and the draws are resampled with the
    density of the known number of predicted links as weight. Untied parts are drawn by importance sampling.

    Parameters
    ----------
    sample, model, rng
        As for `fast`.
    draws : int
        Posterior draws of each chain, 50 or more.
    **settings
        As for `pymc.sample`: tune (1000 by default), chains (4), cores, target_accept (.9) and progressbar.
        nutpie draws. It compiles a model once for all data and parameters of priors.

    Returns
    -------
    Fit

    Raises
    ------
    DataError
        As `fast`, or a model `after` other fits.
    NotIdentified
        As `fast`.

    Warns
    -----
    Alarm
        As `fast`.
    NotConverged
        Few draws agree with the known number of predicted links; more than 1 in 1,000 transitions diverge; an
        R-hat is above 1.01, or fewer than 100 draws per chain are effective, of a parameter or of pairwise
        precision or recall. A law counts in proportion to its posterior probability (`Fit.convergence`).
    """
    sampler = NUTS(need_draws(draws), **settings)
    if isinstance(model, SizeModel) and model.shared is not None:
        raise DataError("a model after other fits has priors that NUTS cannot draw: use fast()")
    return _fit_and_warn(sample, model, sampler, generator(rng))


def _fit_and_warn(
    sample: Sample, model: SizeModel | None, sampler: Importance | NUTS, rng: np.random.Generator
) -> Fit:
    """Fit a model by a sampler, and warn of problems."""
    model = need_model(model)
    evidence = Evidence.of(sample)
    if model.shared is not None:
        evidence = replace(evidence, data=model.shared.fill(evidence.data))
    fit = draw_and_join(sample, model, evidence, sampler, rng)
    for alarm in out_of_balance(sample):
        known = f"{alarm} A size model relies on the known total."
        warnings.warn(Sentence(known, alarm.grade), Alarm, stacklevel=3)
    if problems := fit.problems():
        warnings.warn("; ".join(problems), NotConverged, stacklevel=3)
    return fit


def draw_and_join(
    sample: Sample,
    model: SizeModel,
    evidence: Evidence,
    sampler: Importance | NUTS,
    rng: np.random.Generator,
) -> Fit:
    """Draw the parts of a model, and join them by the predicted links."""
    tied = model.compiled(evidence.data)
    parts = dict(zip(tied, sampler([*tied.values()], rng), strict=True))
    mixed = {place: weighed(place, tied[place], of_laws, rng) for place, of_laws in parts.items()}
    draws, population = populations(mixed, evidence.data, rng)
    return Fit(sample, model, evidence, draws, population, int(rng.integers(2**31)), parts)
