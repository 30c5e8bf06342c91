"""A fit of a size model by importance sampling, with its tables and alarms."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from arviz_stats.base import array_stats
from scipy.linalg import block_diag

from .._internal.arrays import BoolArray, FloatArray, Seed, generator
from .._internal.errors import PACKAGE, Alarm, DataError, Grade, NotIdentified, Sentence
from ..design.sample import Sample
from ..engine.closed_form import ClosedForm
from ..engine.diagnostics import MIXED, out_of_balance
from ..metrics.definitions import (
    DEFAULT_METRICS,
    Metric,
    MetricLike,
    pairwise_precision,
    pairwise_recall,
    resolve_metrics,
)
from ..metrics.estimates import Estimates
from ..metrics.intervals import DEFAULT
from ..metrics.unseen import Unseen, stack_components
from .data import Evidence
from .heap import read_as_capped
from .importance import need_draws
from .model import SizeModel, need_model
from .population import join_and_complete
from .summary import explained, find_alarms
from .totals import identifies, split_identified
from .tree import FittedTree

DRAWS = 10_000
"""Draws of one answer, since the ends of intervals of 1,000 move by up to .7 posterior sd with the seed."""
STREAM = 2**20 + 1
"""Stream of the seed of a fit for the closed form of metrics that the model does not have."""
MODEL = 0.8
"""Weight of the posterior in each end of an interval; the closed form has the rest.

The larger it is, the shorter are intervals of precision. With .9, these covered only .88 in one of twelve
populations that were set aside (benchmarks/bayes-pool.md).
"""
CHAINS = 4
"""Chains of a fit. ArviZ's diagnostics need two or more, and PyMC draws four."""


@dataclass(frozen=True, eq=False, repr=False)
class Fit(FittedTree):
    """A fit of a size model: posterior draws of finite populations and of their metrics.

    Attributes
    ----------
    evidence : Evidence
        The data of the model, from `sample`.
    draws : JoinedDraws
        Posterior draws of the tied parts: sizes, retention and mates.
    population : Populations
        Finite populations, one per draw.
    parts : dict, part -> ParameterDraws
        Draws of each part, before they are tied.
    capped : CappedReading or None
        The entities above a heap in the predicted sizes, if the matcher cuts them there. None without such a
        heap, or if draws of records show what it is.

    Examples
    --------
    >>> import erbayes as eb
    >>> from erbayes import bayes, datasets
    >>> case = datasets.people()
    >>> sample = eb.Sample(eb.measure(case.prediction, case.labels), eb.UniformRecords(case.drawn))
    >>> fit = bayes.fast(sample, rng=1)
    >>> fit.estimate("pairwise-recall").interval().round(2)
    array([[0.88, 0.94]])
    """

    def table(
        self, level: float = 0.95, metrics: MetricLike = DEFAULT_METRICS, errors: bool = False
    ) -> pd.DataFrame:
        """Return estimates and intervals of metrics, and how they depend on priors.

        Parameters
        ----------
        metrics : Metric or str, or several
            Those that the model does not have are quoted from
            the closed form, and have no posterior.
        errors : bool
            Whether there are columns of the Monte Carlo errors of both ends (see `Estimates.table`).

        Returns
        -------
        DataFrame, one row per metric
            Columns of `Estimates.table` for `Fit.estimate`, and these.

            - prior_shift, prior_shift_error: the largest shift of the mean, in posterior standard deviations,
              if the prior of one part counts twice, and its Monte Carlo standard error. Above .3, the answer
              depends on that prior.
            - posterior_lower, posterior_upper: the interval of the posterior.
            - closed_lower, closed_upper: that of the closed form.
        """
        metrics = resolve_metrics(metrics)
        answer = self.estimate(metrics)
        table = answer.table(level, errors=errors)
        modelled, _ = split_identified(dict.fromkeys(metrics))
        assert answer.other is not None
        table[["closed_lower", "closed_upper"]] = answer.other.interval(level)
        return table.join(self._compare_answers(modelled, level)) if modelled else table

    def _compare_answers(self, metrics: Sequence[Metric], level: float) -> pd.DataFrame:
        """Return how metrics depend on priors, with the intervals of the posterior."""
        draws = self.apply(metrics)
        shift, error = self.prior_shift(draws), self.prior_shift_error(draws)
        largest = np.arange(len(shift)), shift.to_numpy().argmax(axis=1)
        table = pd.DataFrame(index=shift.index)
        table["prior_shift"] = shift.to_numpy()[largest]
        table["prior_shift_error"] = error.to_numpy()[largest]
        table[["posterior_lower", "posterior_upper"]] = draws.interval(level)
        return table

    def __getitem__(self, metric: Metric | str) -> pd.Series:
        """Return the row of one metric in the table of `estimate`."""
        return self.estimate(metric)[metric]

    def interval(self, level: float = 0.95, metrics: MetricLike = DEFAULT_METRICS) -> FloatArray:
        """Return the intervals of `estimate`, (k, 2), by default of the metrics of `table`."""
        return self.estimate(metrics).interval(level)

    def estimates_by_name(self) -> dict[str, Estimates]:
        """Return the metrics of `table`, without a name, for a picture."""
        return {"": self.estimate(DEFAULT_METRICS)}

    def __array__(self, *_: Any, **__: Any) -> Any:
        """Refuse to be an array, as which ArviZ takes what it does not know."""
        raise DataError("a fit is no array; ArviZ takes its tree, as in az.summary(fit.tree)")

    def estimate(self, metrics: MetricLike, weight: float = MODEL) -> Estimates:
        """Return metrics with the intervals that tables, engines and reports show, jointly.

        Each end is `weight` times that of the posterior, which depends on priors for entities outside the
        sample, and the rest is that of the closed form, which depends on the design alone. If a matcher may
        cap its clusters, the closed form only has its share in the reading that it does not. A metric that
        the model does not have is that of the closed form. `values` are the posterior draws.
        """
        metrics = resolve_metrics(metrics)
        modelled, others = split_identified(metrics)
        own, shape = np.array([m in modelled for m in metrics]), self.population.true.shape
        values = np.full((*shape, len(metrics)), np.nan)
        if modelled:
            values[..., own] = self.apply(modelled).chains
        closed, lost = self._estimate_closed(metrics, values)
        if others:
            quoted, rng = (
                closed.part(np.flatnonzero(~own).tolist()),
                np.random.default_rng([self.seed, STREAM]),
            )
            values[..., ~own] = quoted.as_draws(shape[0] * shape[1], rng).flat.reshape(*shape, -1)
        capped, cut = self.allows_cap(metrics), 0.0 if self.capped is None else self.capped.cut.mean()
        shares = np.select([~own, lost, capped], [0.0, 1.0, cut + (1 - cut) * weight], weight)
        names = tuple(metric.name for metric in metrics)
        return Estimates.of_draws(
            names,
            values,
            tuple(metric.support for metric in metrics),
            unseen=Unseen(certain=closed.unseen.certain),
            other=closed,
            weight=shares,
            origin=tuple(np.where(capped, MIXED, "").tolist()),
            remarks=tuple(self.alarms) if pairwise_recall in metrics else (),
            notes=describe_weights(names, shares),
            fitted=self,
        )

    def _estimate_closed(self, metrics: Sequence[Metric], values: FloatArray) -> tuple[Estimates, BoolArray]:
        """Return the closed form of metrics, and which of those that the model has lack it, (k,).

        These are summaries of posterior draws, `values`, which take its place without a weight.
        """
        if (closed := _ask_closed_form(self.sample, metrics)) is not None:
            return closed, np.array([bool(why) for why in closed.reasons])
        known = [m for m in metrics if not identifies(m) or _ask_closed_form(self.sample, [m])]
        named = tuple(m.name for m in metrics), values, tuple(m.support for m in metrics)
        closed = replace(Estimates.of_draws(*named), values=None, kind=DEFAULT)
        if known:
            found = ClosedForm()(self.sample, known)
            both = stack_components(found, closed, cov=block_diag(found.cov, closed.cov))
            place = [known.index(m) if m in known else len(known) + j for j, m in enumerate(metrics)]
            closed = both.part(place)
        return closed, np.array([m not in known for m in metrics])

    def allows_cap(self, metrics: Sequence[Metric]) -> BoolArray:
        """Return which metrics have draws of both readings of a heap in the predicted sizes, (k,)."""
        likely = self.capped is not None and self.capped.chance > 0
        return np.array([likely and identifies(m) and m.depends_on_true_size for m in metrics], dtype=bool)

    @cached_property
    def alarms(self) -> list[Sentence]:
        """The alarm of recall, with grade and remedy, if there is one.

        It is raised if more than a quarter of the true links are expected in entities larger than any sampled
        one, and the interval of recall is shorter than half of that share. A heap in the predicted sizes has
        one in its place, if a cap is likely.
        """
        uncapped = self if self.capped is None else replace(self, capped=None)
        return find_alarms(uncapped, self.capped)

    def convergence(self) -> pd.DataFrame:
        """Return the diagnostics of the draws of each part, one row per part.

        Columns are khat, the Pareto shape of importance weights, the largest R-hat and whose it is, and the
        fewest effective draws.

        See Also
        --------
        NotConverged : warns if weights are unreliable.
        """
        rows, parts = {}, self.model.compile(self.evidence.data)
        for place, draws in self.parts.items():
            r_hat = array_stats.rhat(draws.thetas, chain_axis=0, draw_axis=1)
            effective = array_stats.ess(draws.thetas, chain_axis=0, draw_axis=1, method="bulk")
            # a parameter that does not vary has none
            worst = int(np.argmax(np.where(np.isnan(r_hat), 1.0, r_hat)))
            rows[place] = {
                "khat": draws.khat,
                "r_hat": float(r_hat[worst]),
                "worst": parts[place].coordinates[worst],
                "effective": float(np.nanmin(effective)),
            }
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("part")

    def explain(self, level: float = 0.95) -> str:
        """Explain what pairwise precision and recall depend on: sample, prediction and priors."""
        answer = self.estimate([pairwise_precision, pairwise_recall])
        return explained(self, level, answer)


class NotConverged(UserWarning):
    """Warning that a fit is unreliable, with the reasons."""


def _ask_closed_form(sample: Sample, metrics: Sequence[Metric]) -> Estimates | None:
    """Return the closed form of metrics; None where a sample has none."""
    try:
        return ClosedForm()(sample, metrics)
    except NotIdentified:
        return None


def describe_weights(names: Sequence[str], weights: FloatArray) -> tuple[Sentence, ...]:
    """Return notes of metrics in whose intervals posterior and closed form have these weights."""
    prior = "which depends on a prior for the sizes and errors of the entities that were not drawn"
    said = {1.0: f"are those of a size model, {prior}.", 0.0: "are those of the closed form."}
    notes = []
    for w in dict.fromkeys(weights.tolist()):
        of = ", ".join(name for name, one in zip(names, weights, strict=True) if one == w)
        both = (
            f"average those of a size model ({w:.0%}), {prior}, and those of the closed form ({1 - w:.0%})."
        )
        notes.append(f"Intervals{'' if (weights == w).all() else f' of {of}'} {said.get(w, both)}")
    return tuple(Sentence(note, Grade.NOTE) for note in notes)


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
        Importance weights of a part are unreliable (a Pareto shape above .7), or sizes and retention hardly
        agree with the links that are right. For a part, raise `draws`, take another model of it, such as
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
    compiled = model.compile(evidence.data)
    parts = {place: part.sampled(number, CHAINS, rng) for place, part in compiled.items()}
    tied = {place: part.evaluated(parts[place]) for place, part in compiled.items()}
    joint, population = join_and_complete(tied, evidence.data, rng)
    seed = int(rng.integers(2**31))
    capped = read_as_capped(sample, evidence, population, seed)
    fit = Fit(sample, model, evidence, joint, population, seed, parts, capped=capped)
    for alarm in out_of_balance(sample):
        known = f"{alarm} A size model relies on the known total."
        warnings.warn(Sentence(known, alarm.grade), Alarm, skip_file_prefixes=PACKAGE)
    if problems := fit.problems():
        warnings.warn("; ".join(problems), NotConverged, skip_file_prefixes=PACKAGE)
    return fit
