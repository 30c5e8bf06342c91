"""A fit of a size model by importance sampling, with its tables and alarms."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from .._internal.arrays import BoolArray, FloatArray, Seed, generator
from .._internal.errors import PACKAGE, Alarm, DataError, NotIdentified, Sentence
from ..design.predicted import draws_records
from ..design.sample import Sample
from ..engine import PooledDraws
from ..engine.diagnostics import out_of_balance
from ..engine.fitted import fit_sample
from ..engine.known_clusters import ClosedForm
from ..engine.pool import MIXED, MODEL, POOLED, QUOTED, as_quoted, pool_quantiles
from ..metrics.columns import TRUE_LINKS
from ..metrics.definitions import (
    DEFAULT_METRICS,
    Metric,
    MetricLike,
    pairwise_precision,
    pairwise_recall,
    resolve_metrics,
)
from ..metrics.uncertain import Draws, Estimates
from ..metrics.unseen import stack_components
from .by_model import FittedByModel
from .data import Evidence
from .heap import read_as_capped
from .importance import need_draws
from .model import SizeModel, need_model
from .model_average import draw_parts, mix_draws
from .population import join_and_complete
from .summary import explained, extrapolates, find_alarms, is_unreliable
from .totals import split_identified
from .tree import FittedTree

DRAWS = 10_000
"""Draws of one answer, since the ends of intervals of 1,000 move by up to .7 posterior sd with the seed."""
STREAM = 2**20 + 1
"""Stream of the seed of a fit for the closed form of metrics that the model does not have."""
CHAINS = 4
"""Chains of a fit. ArviZ's diagnostics need two or more, and PyMC draws four."""


@dataclass(frozen=True, eq=False, repr=False)
class Fit(FittedByModel, FittedTree):
    """A fit of a size model: posterior draws of finite populations and of their metrics.

    Attributes
    ----------
    evidence : Evidence
        The data of the model, from `sample`.
    draws : JoinedDraws
        Posterior draws of the tied parts: sizes, retention and leakage.
    population : Populations
        Finite populations, one per draw.
    parts : dict, part -> dict, model -> ParameterDraws
        Draws of each candidate model, before the parts are tied.
    capped : CappedReading or None
        True links if the matcher cuts entities at a heap in the predicted sizes. None without such a heap, or
        if draws of records show what it is.

    Examples
    --------
    >>> import erbayes as eb
    >>> from erbayes import bayes, datasets
    >>> case = datasets.people()
    >>> sample = eb.Sample(eb.measure(case.prediction, case.labels), eb.UniformRecords(case.drawn))
    >>> fit = bayes.fast(sample, rng=1)
    >>> fit.pooled("pairwise-recall").interval().round(2)
    array([[0.88, 0.94]])
    """

    def table(
        self, level: float = 0.95, metrics: MetricLike | None = None, errors: bool = False
    ) -> pd.DataFrame:
        """Return estimates and intervals of metrics, and how they depend on priors and models.

        Parameters
        ----------
        metrics : Metric or str, or several, optional
            By default `erbayes.metrics.DEFAULT_METRICS`. Those that the model does not have are quoted from
            the closed form, and have no posterior.
        errors : bool
            Whether there are columns of the Monte Carlo errors of `lower` and `upper` (see `Draws.table`).

        Returns
        -------
        DataFrame, one row per metric
            Columns of `Draws.table` for the draws of `Fit.recommended`, and these.

            - prior_shift, prior_shift_error: the largest shift of the mean, in posterior standard deviations,
              if the prior of one part counts twice, and its Monte Carlo standard error. Above .3, the answer
              depends on that prior.
            - posterior_lower, posterior_upper: the interval of the posterior.
            - pooled_lower, pooled_upper: that of `Fit.pooled`; NaN if the closed form has no such metric.
            - model_lower, model_upper, if parts have candidate models: the widest range of the intervals
              under those that the sample does not reject (see `Fit.models`).
        """
        metrics = _choose_metrics(metrics)
        table = self.recommended(metrics).table(level, errors=errors)
        modelled, _ = split_identified(dict.fromkeys(metrics))
        return table.join(self._compare_answers(modelled, level)) if modelled else table

    def _compare_answers(self, metrics: Sequence[Metric], level: float) -> pd.DataFrame:
        """Return how metrics depend on priors and models, with the intervals of posterior and pool."""
        draws = self.apply(metrics)
        shift, error = self.prior_shift(draws), self.prior_shift_error(draws)
        largest = np.arange(len(shift)), shift.to_numpy().argmax(axis=1)
        pooled = np.full((len(metrics), 2), np.nan)
        for j, metric in enumerate(metrics):
            if (pool := self._pool(metric)) is not None:
                pooled[j] = pool.interval(level)[0]
        table = pd.DataFrame(index=shift.index)
        table["prior_shift"] = shift.to_numpy()[largest]
        table["prior_shift_error"] = error.to_numpy()[largest]
        for name, bounds in (("posterior", draws.interval(level)), ("pooled", pooled)):
            table[[f"{name}_lower", f"{name}_upper"]] = bounds
        if not self.by_model:
            return table
        under = self.models(metrics, level).query("not rejected").groupby("metric")
        return table.assign(model_lower=under.lower.min(), model_upper=under.upper.max())

    def __getitem__(self, metric: Metric | str) -> pd.Series:
        """Return the row of one metric in the table of `recommended`."""
        return self.recommended(metric)[metric]

    def interval(self, level: float = 0.95, metrics: MetricLike | None = None) -> FloatArray:
        """Return the intervals of `recommended`, (k, 2), by default of the metrics of `table`."""
        return self.recommended(_choose_metrics(metrics)).interval(level)

    def estimates_by_name(self) -> dict[str, Estimates]:
        """Return the recommended draws of the metrics of `table`, without a name, for a picture."""
        return {"": self.recommended(_choose_metrics(None))}

    def __array__(self, *_: Any, **__: Any) -> Any:
        """Refuse to be an array, as which ArviZ takes what it does not know."""
        raise DataError("a fit is no array; ArviZ takes its tree, as in az.summary(fit.tree)")

    def pooled(self, metrics: MetricLike) -> PooledDraws:
        """Return metrics by a pool of this fit and the closed form, (chain, draw, k).

        Each end of an interval is .65 times that of the posterior, which depends on priors for entities
        outside the sample, plus .35 times that of the closed form, which depends on the design alone. If over
        a quarter of the true links are expected in entities larger than any sampled one, intervals of metrics
        that count true links span both. The result is not a posterior: posterior draws are shifted so that
        their quantiles are the pooled ones. A metric that the model does not have is that of the closed form,
        and one without a closed form raises NotIdentified.
        """
        return self._complete(resolve_metrics(metrics), self._pool_modelled)

    def _pool_modelled(self, metrics: Sequence[Metric]) -> PooledDraws:
        posterior, closed = self._uncapped.apply(metrics), fit_sample(self.sample, metrics).estimates
        closed = replace(closed, names=posterior.names)
        pool = pool_quantiles([posterior, closed], [MODEL, 1 - MODEL], spans=self._find_spans(metrics))
        return self._allow_cap(self._wrap(pool, metrics, POOLED, posterior.values), metrics)

    def _find_spans(self, metrics: Sequence[Metric]) -> BoolArray:
        """Return of which metrics a pool spans both of its members, (k,)."""
        return np.array([TRUE_LINKS in m.columns and extrapolates(self) for m in metrics], dtype=bool)

    def recommended(self, metrics: MetricLike) -> PooledDraws:
        """Return the draws of metrics that `table`, engines and reports show, (chain, draw, k).

        They are those of the pool if records were drawn, where it covers at least as often as the posterior,
        and if the alarm of recall calls the posterior unreliable for a metric that counts true links (see
        `alarms`). Other metrics, and those without a pool, have the draws of the posterior, and metrics that
        the model does not have the quantiles of the closed form.
        """
        return self._complete(resolve_metrics(metrics), self._recommend_modelled)

    def _recommend_modelled(self, metrics: Sequence[Metric]) -> PooledDraws:
        draws, always = self._uncapped.apply(metrics), draws_records(self.sample.design, self.sample.units)
        posterior = self._allow_cap(self._wrap(draws, metrics, "", draws.values), metrics)
        unreliable = not always and is_unreliable(self._uncapped)
        leads = [always or (unreliable and TRUE_LINKS in m.columns) for m in metrics]
        pools = [self._pool(m) if first else None for m, first in zip(metrics, leads, strict=True)]
        columns = [posterior.part([j]) if pool is None else pool for j, pool in enumerate(pools)]
        return stack_components(*columns)

    def _wrap(self, draws: Draws, metrics: Sequence[Metric], origin: str, model: FloatArray) -> PooledDraws:
        """Return draws as recommended ones of this fit, all of them of one origin."""
        values = {f.name: getattr(draws, f.name) for f in fields(Draws)} | {"centre": draws.uncut}
        named, spans = (origin,) * len(metrics), self._find_spans(metrics)
        return Recommended(**values, origin=named, model=model, spans=spans, fitted=self)

    def _complete(
        self, metrics: Sequence[Metric], answer: Callable[[Sequence[Metric]], PooledDraws]
    ) -> PooledDraws:
        """Return an answer of this fit about metrics, and the closed form of those that the model has not."""
        modelled, others = split_identified(metrics)
        if not others:
            return answer(metrics)
        closed, rng = ClosedForm()(self.sample, metrics), np.random.default_rng([self.seed, STREAM])
        of_others = closed.part([metrics.index(metric) for metric in others])
        drawn = as_quoted(of_others, self.population.true.shape, rng)
        quoted = self._wrap(drawn, others, QUOTED, drawn.model)
        found = {metric: quoted.part([j]) for j, metric in enumerate(others)}
        if modelled:
            given = answer(modelled)
            found |= {metric: given.part([j]) for j, metric in enumerate(modelled)}
        return replace(stack_components(*(found[metric] for metric in metrics)), closed=closed)

    @cached_property
    def _uncapped(self) -> Fit:
        """This fit if entities end at a heap in the predicted sizes."""
        return self if self.capped is None else replace(self, capped=None)

    def _allow_cap(self, draws: PooledDraws, metrics: Sequence[Metric]) -> PooledDraws:
        """Return draws of which some have the recall, and all that counts true links, under a cap."""
        mixed = self.allows_cap(metrics)
        if self.capped is None or not mixed.any():
            return draws
        model = self.apply(metrics).values
        values = np.where(self.capped.cut[..., None] & mixed, model, draws.values)
        centre = draws.uncut + (values - draws.values).mean(axis=(0, 1))
        origin = tuple(MIXED if m else one for m, one in zip(mixed, draws.origin, strict=True))
        return replace(draws, values=values, centre=centre, origin=origin, model=model)

    def allows_cap(self, metrics: Sequence[Metric]) -> BoolArray:
        """Return which metrics have draws of both readings of a heap in the predicted sizes, (k,)."""
        likely = self.capped is not None and self.capped.chance > 0
        return np.array([likely and TRUE_LINKS in m.columns for m in metrics], dtype=bool)

    def _pool(self, metric: Metric) -> PooledDraws | None:
        """Return the pool of a metric; None if the closed form has no interval of it."""
        try:
            pool = self.pooled(metric)
        except NotIdentified:
            return None
        return None if pool.reasons[0] else pool

    @cached_property
    def alarms(self) -> list[Sentence]:
        """The alarm of recall, with grade and remedy, if there is one.

        It is raised if more than a quarter of the true links are expected in entities larger than any sampled
        one, and the interval of recall is shorter than half of that share. A heap in the predicted sizes has
        one in its place, if a cap is likely.
        """
        return find_alarms(self._uncapped, self.capped)

    def explain(self, level: float = 0.95) -> str:
        """Explain what pairwise precision and recall depend on: sample, prediction and priors."""
        metrics = [pairwise_precision, pairwise_recall]
        draws, posterior = self.recommended(metrics), self.apply(metrics).interval(level)
        bounds = draws.interval(level)
        # draws of both readings of a heap are no longer called pooled, where those of one of them are
        mixed = draws.comes_from(MIXED) & (bounds != posterior).any(axis=1)
        pooled = draws.comes_from(POOLED) | mixed
        return explained(self, level, {draws.names[j]: bounds[j] for j in np.flatnonzero(pooled)})


class NotConverged(UserWarning):
    """Warning that a fit is unreliable, with the reasons."""


def _choose_metrics(metrics: MetricLike | None) -> tuple[Metric, ...]:
    """Return metrics as objects, by default the default ones."""
    return resolve_metrics(DEFAULT_METRICS if metrics is None else metrics)


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Recommended(PooledDraws):
    """The draws of `Fit.recommended` or `Fit.pooled`."""

    fitted: Fit

    @property
    def alarms(self) -> tuple[str, ...]:
        """Return remarks, the alarms of the fit if recall is among the metrics, and the note of pools."""
        alarms = self.fitted.alarms if pairwise_recall.name in self.names else ()
        return (*self.remarks, *alarms, *self.note)


def fast(sample: Sample, model: SizeModel | None = None, *, draws: int = DRAWS, rng: Seed = None) -> Fit:
    """Fit a size model by importance sampling.

    The first fit takes some seconds, further ones about one. NumPy computes them, or Numba in a block of many
    fits (see `compiled`).

    Parameters
    ----------
    sample : Sample
        Sampled entities, under a design by which the probability of an entity depends only on its size.
    model : SizeModel, optional
        By default `SizeModel()`.
    draws : int
        Posterior draws, 50 or more, in four chains that share the proposals but no point. Some are copies:
        of 1,000 draws, 500 to 800 are effective, as `arviz.ess` shows. Fewer are quicker, and
        `Fit.table(errors=True)` shows how exact the ends of intervals are.

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
        Importance weights are unreliable, of a part (a Pareto shape above .7) or of the known number of
        predicted links. For a part, raise `draws`, take another model of it, such as
        `LogNormalSizes` for sizes, or sample the model by ``pymc.sample(model=fit.pymc)``.

    References
    ----------
    Cornuet, Marin, Mira and Robert (2012), Scandinavian Journal of Statistics 39, 798-812.

    Examples
    --------
    >>> import erbayes as eb
    >>> from erbayes import bayes, datasets
    >>> case = datasets.people()
    >>> sample = eb.Sample(eb.measure(case.prediction, case.labels), eb.UniformRecords(case.drawn))
    >>> bayes.fast(sample, rng=1).table().loc["pairwise-precision", "estimate"].round(2)
    np.float64(0.82)
    """
    number, model, rng = -(-need_draws(draws) // CHAINS), need_model(model), generator(rng)
    evidence = Evidence.of(sample)
    tied = model.compile(evidence.data)
    parts = draw_parts(tied, number, CHAINS, rng)
    mixed = {place: mix_draws(place, tied[place], of_part, rng) for place, of_part in parts.items()}
    joint, population = join_and_complete(mixed, evidence.data, rng)
    seed = int(rng.integers(2**31))
    capped = read_as_capped(sample, evidence, population, seed)
    fit = Fit(sample, model, evidence, joint, population, seed, parts, capped=capped)
    for alarm in out_of_balance(sample):
        known = f"{alarm} A size model relies on the known total."
        warnings.warn(Sentence(known, alarm.grade), Alarm, skip_file_prefixes=PACKAGE)
    if problems := fit.problems():
        warnings.warn("; ".join(problems), NotConverged, skip_file_prefixes=PACKAGE)
    return fit
