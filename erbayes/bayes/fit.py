"""A fit of a size model by importance sampling: its answers, tables and alarms, and what they depend on."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from arviz_stats.base import array_stats

from .._internal import remedies
from .._internal.arrays import BoolArray, FloatArray, Seed, generator
from .._internal.errors import PACKAGE, DataError, Grade, NotIdentified, Sentence, warn_of
from ..design.sample import Sample
from ..engine.closed_form import ClosedForm
from ..engine.diagnostics import MIXED, alarms, out_of_balance, reach_large, show_heap
from ..metrics.columns import PREDICTED_LINKS, RECORDS, TRUE_LINKS, pairs
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
from ..units.settled import SETTLED
from .data import Evidence
from .importance import need_draws
from .model import SizeModel, join_and_complete, need_model
from .totals import FittedTotals, identifies, read_as_capped, split_identified
from .tree import FittedTree

DRAWS = 10_000
"""Draws of one answer, since the ends of intervals of 1,000 move by up to .7 posterior sd with the seed."""
STREAM = 2**20 + 1
"""Stream of the seed of a fit for the closed form of metrics that the model does not have."""
MODEL = 0.8
"""Weight of the posterior in each end of an interval; the closed form has the rest.

The larger it is, the shorter are intervals of precision. With .9, these covered only .88 in one of twelve
populations that were set aside (benchmarks/averages.md).
"""
CHAINS = 4
"""Chains of a fit. ArviZ's diagnostics need two or more, and PyMC draws four."""
SENSITIVE = 0.3
"""Shift of a mean, in posterior standard deviations, above which an answer depends on a prior."""
UNREACHED = 0.25
"""Largest share of the true links in entities larger than any sampled one for which there is no alarm."""
SURE = 0.5
"""Length of the 95 % interval of recall over the unreached share, from which there is no alarm.

The unreached links alone could move recall by their share. Of 300 samples of five populations, 130 had a
share above `UNREACHED`. All 26 of their intervals that missed were shorter than half of it, and 37 of the 104
others.
"""


@dataclass(frozen=True, eq=False, repr=False)
class Fit(FittedTree):
    """A fit of a size model, as `fast` returns it: draws of finite populations and of their metrics.

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
    """

    def table(
        self, level: float = 0.95, metrics: MetricLike = DEFAULT_METRICS, errors: bool = False
    ) -> pd.DataFrame:
        """Return estimates and intervals of metrics, and how they depend on priors.

        Parameters
        ----------
        metrics : Metric or str, or several
            Those that the model does not have are quoted from the closed form, and have no posterior.
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
        assert answer.other is not None
        table[["closed_lower", "closed_upper"]] = answer.other.interval(level)
        modelled, _ = split_identified(dict.fromkeys(metrics))
        if not modelled:
            return table
        draws = self.apply(modelled)
        shift, error = self.prior_shift(draws), self.prior_shift_error(draws)
        largest = np.arange(len(shift)), shift.to_numpy().argmax(axis=1)
        columns = {"prior_shift": shift.to_numpy()[largest], "prior_shift_error": error.to_numpy()[largest]}
        own = pd.DataFrame(columns, index=shift.index)
        own[["posterior_lower", "posterior_upper"]] = draws.interval(level)
        return table.join(own)

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

    def estimate(self, metrics: MetricLike, weight: float | FloatArray = MODEL) -> Estimates:
        """Return metrics with the intervals that tables, engines and reports show, jointly.

        Each end is `weight`, a number or one for each metric, times that of the posterior, which depends on
        priors for entities outside the sample, and the rest is that of the closed form, which depends on the
        design alone. What depends on true sizes, if a matcher may cap its clusters, is the posterior's, since
        the closed form knows of no cap. A metric without a weight, or that the model does not have, is the
        closed form's. `values` are the posterior draws.
        """
        metrics = resolve_metrics(metrics)
        modelled, _ = split_identified(metrics)
        own, shape = np.array([m in modelled for m in metrics]), self.population.true.shape
        values = np.full((*shape, len(metrics)), np.nan)
        if modelled:
            values[..., own] = self.apply(modelled).chains
        closed, lost = self._estimate_closed(metrics, values)
        open_ = self.capped is not None and self.capped.chance > 0
        capped = own & [open_ and metric.depends_on_true_size for metric in metrics]
        alone = lost | capped
        quoted = ~own | (~alone & (np.asarray(weight) == 0))
        if quoted.any():
            part = closed.part(np.flatnonzero(quoted).tolist())
            rng = np.random.default_rng([self.seed, STREAM])
            values[..., quoted] = part.as_draws(shape[0] * shape[1], rng).flat.reshape(*shape, -1)
        shares = np.select([~own, alone], [0.0, 1.0], weight)
        names = tuple(metric.name for metric in metrics)
        return Estimates.of_draws(
            names,
            values,
            tuple(metric.support for metric in metrics),
            unseen=Unseen(certain=closed.unseen.certain),
            other=closed,
            weight=shares,
            origin=tuple(np.where(capped, MIXED, "").tolist()),
            remarks=tuple(self.remarks) if shares[[m == pairwise_recall for m in metrics]].any() else (),
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
            place = [known.index(m) if m in known else len(known) + j for j, m in enumerate(metrics)]
            closed = stack_components(found, closed).part(place)
        return closed, np.array([m not in known for m in metrics])

    @property
    def alarms(self) -> list[Sentence]:
        """The alarms of the sample (see `erbayes.alarms`) next to the intervals of `table`, and `remarks`."""
        return [*alarms(self.sample, printed=self.estimate(DEFAULT_METRICS).table()), *self.remarks]

    @cached_property
    def remarks(self) -> list[Sentence]:
        """The alarm of recall, if there is one, or that of a heap in the predicted sizes if a cap is likely.

        That of recall is raised if more than a quarter of the true links are expected in entities larger than
        any sampled one, and its interval is shorter than half of that share.
        """
        if self.capped is not None and self.capped.chance > 0:
            if self.capped.chance > 1 - SETTLED:
                return [Sentence(f"{self.capped}.", Grade.NOTE)]
            return [Sentence(str(self.capped), Grade.CAUTION, remedies.LOOK, show_heap(self.sample))]
        uncapped = self if self.capped is None else replace(self, capped=None)
        if not is_unreliable(uncapped):
            return []
        share, largest = self.unreached_share.mean(), self.evidence.entities.size.max()
        (lower, upper) = uncapped.apply([pairwise_recall]).interval(0.95)[0]
        what = (
            f"pairwise-recall depends on entities larger than any in the sample: {100 * share:.0f} % of the "
            f"true links are expected in entities of more than {largest:,.0f} records. The interval of the "
            f"model, {lower:.2f} to {upper:.2f}, is too short for what is not known of these"
        )
        return [Sentence(what, Grade.CAUTION, *reach_large(self.sample))]

    def convergence(self) -> pd.DataFrame:
        """Return the diagnostics of the draws of each part, one row per part.

        Columns are khat, the Pareto shape of importance weights, the largest R-hat and whose it is, and the
        fewest effective draws.
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
                "worst": parts[place].program.names[worst],
                "effective": float(np.nanmin(effective)),
            }
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("part")

    def explain(self, level: float = 0.95) -> str:
        """Explain what pairwise precision and recall depend on: sample, prediction and priors."""
        capped = [] if self.capped is None else [f"{self.capped}."]
        of_data = _explain_sample(self), _explain_prediction(self)
        return "\n\n".join([*of_data, *capped, *_explain_metrics(self, level)])


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

    The first fit takes some seconds, further ones about one. NumPy computes them, or Numba (see `compiled`).

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

    Examples
    --------
    >>> import erbayes as eb
    >>> from erbayes import bayes, datasets
    >>> case = datasets.people()
    >>> sample = eb.Sample(eb.measure(case.prediction, case.labels), eb.UniformRecords(case.drawn))
    >>> bayes.fast(sample, rng=1).table().loc["pairwise-precision", "estimate"].round(2)
    np.float64(0.81)
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
    said = "A size model relies on the known total."
    warn_of(Sentence(f"{alarm} {said}", alarm.grade) for alarm in out_of_balance(sample))
    if problems := fit.problems():
        warnings.warn("; ".join(problems), NotConverged, skip_file_prefixes=PACKAGE)
    return fit


def is_unreliable(fit: FittedTotals) -> bool:
    """Return True if the interval of recall is far shorter than the unreached share of the true links."""
    try:
        recall = fit.apply([pairwise_recall])
    except NotIdentified:  # no true link in some draws, whose recall is refused
        return False
    (lower, upper) = recall.interval(0.95)[0]
    settled, share = bool(np.ptp(recall.unseen.certain[0]) == 0), float(fit.unreached_share.mean())
    return not settled and share > UNREACHED and bool(upper - lower < SURE * share)


def _explain_sample(fit: Fit) -> str:
    e, several = fit.evidence.entities, fit.evidence.entities.several
    known = fit.evidence.data["sampled_true_links"] / np.maximum(fit.total(TRUE_LINKS), 1.0)
    foreign = fit.evidence.units.column(PREDICTED_LINKS) - e.links
    return (
        f"The sample has {_format_count(int(e.draws.sum()), 'draw')} of "
        f"{_format_count(len(e.size), 'entity')}, of {e.size.min():,.0f} to {e.size.max():,.0f} records, "
        f"with {_format_percent(known)} of the true links. "
        f"{(e.broken & several).sum():,} of {several.sum():,} with two records or more are broken, and "
        f"{(foreign > 0).sum():,} of {len(e.size):,} meet a foreign record."
    )


def _explain_prediction(fit: Fit) -> str:
    known, largest = fit.evidence.units.known, fit.evidence.entities.size.max()
    assert known is not None  # a fit needs the sizes of predicted clusters
    links = known.count * pairs(known.size)
    in_larger = links[known.size > largest].sum() / max(links.sum(), 1.0)
    return (
        f"The prediction has {known.total(RECORDS):,.0f} records in {known.count.sum():,.0f} clusters of up "
        f"to {known.size.max():,.0f} records, and {links.sum():,.0f} links. {_format_share(in_larger)} of "
        f"its links are in clusters of more than {largest:,.0f} records, the size of the largest sampled "
        "entity. Every posterior draw has as many records, and its right links are a share of these links."
    )


def _explain_metrics(fit: Fit, level: float) -> list[str]:
    metrics, largest = [pairwise_precision, pairwise_recall], fit.evidence.entities.size.max()
    draws, answer = fit.apply(metrics), fit.estimate(metrics)
    (true, larger), shift = _share_unsampled_sizes(fit), fit.prior_shift(draws)
    unlabelled = fit.evidence.data["unlabelled_links"].sum() / max(fit.evidence.predicted_links, 1.0)
    extrapolated = {
        pairwise_precision.name: (
            f"Of {_format_share(unlabelled)} of the predicted links no record is labelled, and the share of "
            "them that is right depends on the sizes of their clusters alone"
        ),
        pairwise_recall.name: (
            f"{_format_percent(true)} of the true links are expected in entities of sizes without a draw, "
            f"and {_format_percent(larger)} in entities of more than {largest:,.0f} records"
        ),
    }
    paragraphs, ends = [], zip(draws.interval(level), answer.interval(level), answer.weight, strict=True)
    for name, mean, ((lower, upper), (low, high), own) in zip(draws.names, draws.mean, ends, strict=True):
        shifts = ", ".join(f"{x:.2f} ({part})" for part, x in shift.loc[name].items())
        sentences = [
            f"{name} is {mean:.3f}, {100 * level:g} % interval {lower:.3f} to {upper:.3f}.",
            f"{extrapolated[name]}.",
            f"If the prior of one part counted twice, the mean would move by {shifts} posterior standard "
            f"deviations. Above {SENSITIVE:g} an answer depends on that prior.",
        ]
        if name == pairwise_recall.name and is_unreliable(fit):
            sentences.append("The alarm above calls this interval too short.")
        sentences.append(f"With {1 - own:.0%} of the closed form it is {low:.3f} to {high:.3f}.")
        paragraphs.append(" ".join(sentences))
    return paragraphs


def _share_unsampled_sizes(fit: Fit) -> list[FloatArray]:
    """Return shares of the true links in entities of sizes in whose bin no draw is, (chain, draw) each.

    They are of all these, and of those in entities larger than any sampled one.
    """
    data, s = fit.evidence.data, fit.size
    unsampled = ~np.isin(np.arange(len(s)), data["sampled"])
    true, all_true = fit.population.number * pairs(s), np.maximum(fit.population.true, 1.0)
    larger = unsampled & (s > fit.evidence.entities.size.max())
    return [true[..., unsampled].sum(-1) / all_true, true[..., larger].sum(-1) / all_true]


def _format_percent(shares: FloatArray) -> str:
    low, high = np.quantile(shares, [0.025, 0.975])
    return f"{_format_share(shares.mean())} (95 %: {_format_share(low)} to {_format_share(high)})"


def _format_share(share: float) -> str:
    return f"{100 * share:.0f} %" if share == 0 or share >= 0.01 else f"{100 * share:.2g} %"


def _format_count(number: int, noun: str) -> str:
    several = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else several}"
