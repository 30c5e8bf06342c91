"""Rules to stop labelling: each metric reaches its minimum, fails, or needs more labels.

The rule: the intervals of all metrics cover jointly with probability `level` or more (Bonferroni: each has
the level 1 - (1 - level)/k, for k metrics). A metric *holds* if its interval is at or above the minimum,
*fails* if it is below, and is *open* otherwise. With probability `level` or more no such verdict is wrong.

Intervals that are not exact ignore predicted clusters larger than any that a draw touches. The share φ of
links or records in them, the unreached share, is known. A check therefore allows any value for this share
(partial identification), and a metric that counts links stays open while φ is notable. All metrics that do
not fail stay open while an alarm of the sample is a fault. If draws are undecided, a metric holds or fails
only if it does so whether all of them are wrong or right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import ClassVar, NamedTuple

import numpy as np
import pandas as pd

from .._internal.arrays import FloatArray
from .._internal.errors import DataError, Grade, NotIdentified, Sentence, need_object, number, refuse_cases
from ..design.sample import Sample, need_sample
from ..engine.bounded_means import REFUTED, Betting, BoundedMeans, with_draws
from ..engine.closed_form import ClosedForm, with_cases
from ..engine.diagnostics import alarms, reach_large
from ..metrics import Estimates, Metric, link_ratio, resolve_metrics
from ..metrics.columns import PREDICTED_LINKS, RECORDS, TRUE_LINKS, ClusterSum, whole_column
from ..metrics.intervals import DEFAULT, Anytime, Kind, check_level
from ..metrics.tables import Pictured, reason_column
from ..metrics.unseen import NOTABLE, ROUNDING, UNSETTLED

MOST = 100_000
"""The largest number of draws for which a check looks ahead."""


class Verdict(Enum):
    """Whether a metric is at least its minimum."""

    HOLDS = "holds"
    FAILS = "fails"
    OPEN = "open"
    """The labels do not decide yet, or show too little of the prediction for a verdict."""


SAID = {Verdict.HOLDS: "holds", Verdict.FAILS: "fails", Verdict.OPEN: "is open"}
"""Each verdict as the verb of a sentence."""
STATUS = {Verdict.HOLDS: 0, Verdict.FAILS: 1, Verdict.OPEN: 3}
"""Each verdict as the exit status of a command."""
ANYTIME, EXACT = Anytime(), Betting(anytime=True)
"""The kinds of interval of `REPEATED`."""


@dataclass(frozen=True, slots=True)
class Rule:
    """The rule by which a check decides. `REPEATED` and `ONCE` are the usual ones.

    Parameters
    ----------
    level : float in (0, 1)
        Probability with which all intervals cover jointly.
    kind, exact : Kind
        Kinds of interval of most metrics, and of those that are means of bounded numbers (see
        `erbayes.engine.BoundedMeans`).

    Examples
    --------
    >>> Rule(0.9).kind
    Anytime(draws=200.0, kind=BetaGamma(mass=0.5))
    """

    level: float = 0.95
    kind: Kind = ANYTIME
    exact: Kind = EXACT

    def __post_init__(self) -> None:
        check_level(self.level)
        for kind in (self.kind, self.exact):
            need_object(kind, "bounds", "a kind of interval is an object such as Anytime() or Betting()")


CERTAIN = "certain if the labels are right"
"""The kind of an interval outside which no partition of the other records puts a metric."""
ALLOWED = "errors of labels"
"""The kind of what was such an interval, once it allows for errors of labels."""
REPEATED = Rule()
"""Confidence sequences, if labels are looked at again and again and labelling may stop at any look."""
ONCE = Rule(kind=DEFAULT, exact=Betting())
"""Intervals, if labels are looked at once and their number was fixed beforehand. Most are shorter."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Check(Pictured):
    """Verdicts of a check, one per metric, (k,).

    `level`: that of each `interval`, (k, 2); `further`: about how many further draws would decide, None if
    100,000 would not; `reasons`: why more draws like those so far would not help, or "".
    """

    picture: ClassVar[str] = "check"
    metrics: tuple[Metric, ...]
    minimum: FloatArray
    estimate: FloatArray
    interval: FloatArray
    level: float
    kinds: tuple[str, ...]
    verdicts: tuple[Verdict, ...]
    further: tuple[int | None, ...]
    reasons: tuple[str, ...]
    alarms: tuple[Sentence, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """FAILS if a metric fails, else OPEN if one is open, else HOLDS."""
        return next(v for v in (Verdict.FAILS, Verdict.OPEN, Verdict.HOLDS) if v in self.verdicts)

    def __bool__(self) -> bool:
        """Refuse to be true or false, since a verdict may also be open."""
        raise DataError("a check holds, fails or is open: ask for found.verdict.value == 'holds'")

    def allow(self, estimate: FloatArray, interval: FloatArray) -> Check:
        """Return the verdicts by other estimates, (k,), and intervals, (k, 2), that allow for more.

        A verdict that this leaves open stays so with more draws, which do not shorten what is allowed for.
        """
        interval = np.clip(interval, *np.array([m.support for m in self.metrics]).T[:, :, None])
        verdicts, reasons = list(self.verdicts), list(self.reasons)
        for j, (bounds, least) in enumerate(zip(interval, self.minimum, strict=True)):
            if verdicts[j] not in {Verdict.OPEN, _judge_bounds(bounds, least)}:
                reasons[j] = f"it {SAID[verdicts[j]]} only if labels have no errors"
                verdicts[j] = Verdict.OPEN
        further = tuple(None if v is Verdict.OPEN else n for v, n in zip(verdicts, self.further, strict=True))
        allowed = replace(self, estimate=estimate, interval=interval, further=further)
        return replace(allowed, verdicts=tuple(verdicts), reasons=tuple(reasons))

    def table(self) -> pd.DataFrame:
        """Return the verdicts, one row per metric."""
        columns = {
            "minimum": self.minimum,
            "estimate": self.estimate,
            "lower": self.interval[:, 0],
            "upper": self.interval[:, 1],
            "level": self.level,
            "kind": self.kinds,
            "verdict": [v.value for v in self.verdicts],
            "further": pd.array(self.further, dtype="Int64"),
        } | reason_column(self.reasons)
        return pd.DataFrame(columns, index=pd.Index([m.name for m in self.metrics], name="metric"))

    def sentences(self) -> list[str]:
        """Return each verdict as a sentence, for logs."""
        said = []
        for j, (metric, verdict) in enumerate(zip(self.metrics, self.verdicts, strict=True)):
            lower, upper = self.interval[j]
            lies = "has no interval" if np.isnan(lower) else f"lies between {lower:.4g} and {upper:.4g}"
            how = CERTAIN if self.kinds[j] == CERTAIN else f"{100 * self.level:g} %, {self.kinds[j]}"
            further, then = self.further[j], ""
            if self.reasons[j]:
                then = f", but {self.reasons[j]}"
            elif verdict is Verdict.OPEN:
                more = f"about {further:,} further draws would" if further else f"{MOST:,} draws would not"
                then = f"; {more} decide"
            required = f"it {lies} ({how}), and {self.minimum[j]:g} is required"
            said.append(f"{metric.name} {SAID[verdict]}: {required}{then}.")
        return said


def check(sample: Sample, minimum: Mapping[Metric | str, float], rule: Rule = REPEATED) -> Check:
    """Check whether metrics reach their minimum.

    Parameters
    ----------
    sample : Sample
        If its design lists draws, they are in the order of drawing. Bets are made on such draws alone.
    minimum : mapping, metric -> float
        The least value that is required, inside the range of the metric, which the sample identifies.
    rule : Rule
        `REPEATED`, `ONCE`, or a rule of your own.

    Returns
    -------
    Check
        `.verdict` is the answer, `.table()` and `.sentences()` say why, and `.alarms` are those of the sample
        (see `erbayes.alarms`). While one of these is a fault, metrics fail or are open.

    Examples
    --------
    >>> import erbayes as eb
    >>> prediction = {i: i // 4 for i in range(4000)}
    >>> draws = np.random.default_rng(1).integers(1000, size=250)  # entities, in the order of drawing
    >>> labels = {i: i // 4 for i in range(4000) if i // 4 in draws}
    >>> sample = eb.Sample(eb.measure(prediction, labels), eb.UniformRecords(draws))
    >>> found = check(sample, {"pairwise-precision": 0.95, "b3-recall": 0.99})
    >>> found.table()[["minimum", "lower", "verdict", "further"]].round(3)
                        minimum  lower verdict  further
    metric
    pairwise-precision     0.95  0.976   holds        0
    b3-recall              0.99  0.977    open      331
    >>> found.verdict
    <Verdict.OPEN: 'open'>
    """
    need_sample(sample)
    need_object(minimum, "items", "minimum maps metrics to numbers, such as {'pairwise-precision': 0.95}")
    need_object(rule, "exact", "a rule is an object such as REPEATED or ONCE")
    if not minimum:
        raise DataError("nothing to check: no metric has a minimum")
    named = [(metric, least) for name, least in minimum.items() for metric in resolve_metrics(name)]
    metrics = tuple(metric for metric, _ in named)
    twice = [m.name for m in dict.fromkeys(metrics) if metrics.count(m) > 1]
    refuse_cases(twice, "metrics have two minima", ": leave out one")
    required = np.array([_check_minimum(metric, least) for metric, least in named])
    level = 1 - (1 - rule.level) / len(metrics)
    answers = [_judge_metric(sample, m, x, rule, level) for m, x in zip(metrics, required, strict=True)]
    raised = tuple(alarms(sample, metrics))
    for fault in (alarm for alarm in raised if alarm.grade is Grade.FAULT):
        reason = f"the sample has a fault: {fault.what.removesuffix('.')}"
        answers = [one if one.verdict is Verdict.FAILS else one.stay_open(reason) for one in answers]
    estimate, interval, kinds, verdicts, further, reasons = zip(*answers, strict=True)
    numbers = required, np.array(estimate), np.array(interval), level
    return Check(metrics, *numbers, kinds, verdicts, further, reasons, raised)


class _Answer(NamedTuple):
    """The verdict of one metric, with the numbers from which it follows."""

    estimate: float
    interval: FloatArray
    kind: str
    verdict: Verdict
    further: int | None
    reason: str

    def stay_open(self, reason: str) -> _Answer:
        """Return the answer as an open one, for a reason if it has none."""
        return self._replace(verdict=Verdict.OPEN, further=None, reason=self.reason or reason)


def _judge_metric(sample: Sample, metric: Metric, minimum: float, rule: Rule, level: float) -> _Answer:
    """Return the verdict of one metric at the level of its interval, in both cases of undecided draws."""
    try:
        fit = BoundedMeans()(sample, [metric])
    except NotIdentified:
        fit = ClosedForm()(sample, [metric])
    if np.isnan(fit.sd).any():
        raise DataError(f"{metric.name} has no standard error in this sample: label more")
    answer = _judge_fit(sample, metric, fit, minimum, rule, level)
    if (cases := with_cases(fit, sample, [metric]).cases) is None:
        return answer
    of_each = [_judge_fit(sample, metric, case, minimum, rule, level) for case in (cases.wrong, cases.right)]
    ends = np.stack([answer.interval, *(one.interval for one in of_each)])
    answer = answer._replace(interval=np.array([ends[:, 0].min(), ends[:, 1].max()]))
    if answer.verdict is Verdict.OPEN or {one.verdict for one in of_each} == {answer.verdict}:
        return answer
    return answer.stay_open(f"undecided draws, {cases.share:.1%} of all, decide")


def _judge_fit(
    sample: Sample, metric: Metric, fit: Estimates, minimum: float, rule: Rule, level: float
) -> _Answer:
    kind, known, unreached = rule.exact, None, 0.0
    # an exact interval covers the truth whatever the draws missed; any other one is of what they reach, and
    # then allows any value for the rest
    if not rule.exact.suits(fit):
        kind, sized = rule.kind, {whole_column(c) for c, _ in metric.size}
        # predicted links instead of true ones, because unreached true links are not known
        links = bool(sized & {TRUE_LINKS, PREDICTED_LINKS})
        known = PREDICTED_LINKS if links else RECORDS if RECORDS in sized else None
        if known is not None:
            unreached = float(sample.underrepresented_links if links else sample.unreached_share(known))
    fits = [
        replace(fit, unseen=replace(fit.unseen, unreached_share=np.array([share])))
        for share in (0.0, unreached if metric.is_share else 0.0)
    ]
    fit, (reached, of_all) = fits[0], (one.interval(level, kind)[0] for one in fits)
    verdict, reason = _judge_bounds(of_all, minimum), ""
    # what labels settle holds whatever draws reach, at any look
    certain = _judge_bounds(fit.unseen.certain[0], minimum) is not Verdict.OPEN
    if verdict is not Verdict.FAILS and not certain:
        undecided = verdict is not _judge_bounds(reached, minimum)
        refuted = np.isnan(of_all).any()
        reason = REFUTED if refuted else _explain_unreached(sample, known, unreached, undecided)
    further: int | None = None if reason else 0
    if verdict is Verdict.OPEN and not reason:
        further = _count_further_draws(fit, kind, level, minimum, len(sample))
    interval, called = (fit.unseen.certain[0], CERTAIN) if certain else (of_all, kind.label(fit, 0))
    return _Answer(fit.estimate[0], interval, called, Verdict.OPEN if reason else verdict, further, reason)


def _explain_unreached(sample: Sample, known: ClusterSum | None, share: float, undecided: bool) -> str:
    """Return why more draws would not decide, or "": the `share` of a known total that they do not reach."""
    of_links = known is PREDICTED_LINKS
    # nothing bounds true links missed among unreached records, so that a notable share keeps metrics of links
    # open
    if known is None or not share or not (undecided or (of_links and share > NOTABLE)):
        return ""
    where = "lie in predicted clusters larger than any that a draw touches"
    if share > float(sample.unreached_share(known)):
        where = "are missing in what the draws estimate of their number"
    remedy = "; ".join(remedy.value for remedy in reach_large(sample))
    return f"{100 * share:.3g}% of all {'predicted links' if of_links else 'records'} {where}: {remedy}"


def _check_minimum(metric: Metric, value: object) -> float:
    """Return a minimum, refusing one outside the range of its metric."""
    if metric == link_ratio:
        raise DataError("link-ratio is best at 1: give precision and recall a minimum")
    least, most = metric.support
    must = f"lie between {least:g} and {most:g}, both excluded"
    return number(value, f"the minimum of {metric.name}", lambda x: least < x < most, must)


def _judge_bounds(bounds: FloatArray, minimum: float) -> Verdict:
    lower, upper = bounds + ROUNDING * np.clip(np.abs(bounds), 1.0, 1e300)
    return Verdict.HOLDS if lower >= minimum else Verdict.FAILS if upper < minimum else Verdict.OPEN


def _extrapolate_fit(fit: Estimates, draws: int, total: int) -> Estimates:
    """Return a fit of `draws` draws as it would be after `total`, if further draws were like those so far."""
    factor = total / draws
    # further labels settle more, by how much nobody knows
    unsettled = np.broadcast_to(UNSETTLED, fit.unseen.certain.shape)
    more = {"effective": fit.unseen.effective * factor, "third": fit.unseen.third / factor**2}
    unseen = replace(fit.unseen, **more, certain=unsettled)
    longer = replace(fit, cov=fit.cov / factor, df=fit.df * factor, unseen=unseen)
    # betting needs single draws, so that those at hand are repeated
    if (bets := fit.bets) is not None:
        k = len(fit.names)
        return with_draws(longer, np.resize(bets.values, (total, k)), np.resize(bets.shares, (total, k)))
    return longer


def _count_further_draws(fit: Estimates, kind: Kind, level: float, minimum: float, draws: int) -> int | None:
    """Return how many further draws would decide, or None if `MOST` would not."""

    def decided(total: int) -> bool:
        bounds = _extrapolate_fit(fit, draws, total).interval(level, kind)[0]
        return _judge_bounds(bounds, minimum) is not Verdict.OPEN

    low, high = draws, draws + 1
    # doubling and then bisection, because each look ahead costs an interval
    while not decided(high):
        low, high = high, 2 * high
        if high > MOST:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if decided(middle) else (middle, high)
    return high - draws
