"""Estimates assisted by a second clustering of the same records.

    eb.assisted(prediction, labels, design, by=second).table()

A second clustering S, such as the next release or a slower matcher, takes the place of the truth. The value
θ^S of a metric with S as the truth is known, since S covers all records. The labelled units estimate the same
value. The error of that estimate, θ^S - θ̂^S, is then known too, and corrects the estimate of the true value
(see `erbayes.engine.control_variate`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from .._internal.arrays import BoolArray, FloatArray, IntArray, Seed
from .._internal.errors import DataError, Grade, NotIdentified, Sentence, head, need, warn_of
from .._internal.remedies import Missing
from ..design.contract import Design
from ..design.draws import DrawnUnits
from ..design.sample import Sample, need_sample
from ..engine.closed_form import ClosedForm
from ..engine.control_variate import FEWEST_DRAWS, ControlVariate, Effects, count_equivalent_labels
from ..engine.diagnostics import alarms, out_of_balance, warn_undecided
from ..engine.fitted import Fitted, columns_of, fit_sample
from ..metrics.definitions import DEFAULT_METRICS, Metric, MetricLike, resolve_metrics
from ..metrics.estimates import Estimates
from ..metrics.intervals import Kind
from ..metrics.unseen import by_component, stack_components
from ..units.measuring import measure
from .second import ChangedShare, Reference, Second

TOO_MUCH = 0.1
"""Unreached share of a second clustering above which an alarm is raised, as it then makes the interval."""
SHOWN = 2.0
"""Standard errors within which draws show the errors of a second clustering (benchmarks/assisted.md)."""
BY_CHANCE = 1e-4
"""Probability that draws differ as much from all by chance, below which an alarm is raised.

None of 1,640 sound second clusterings raises it, and nearly all copies of labels do (benchmarks/assisted.md).
"""


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class AssistedEstimates(Estimates):
    """Estimates assisted by a second clustering, or by cheap labels: `Estimates` with more fields.

    `second`: its name; `weights` (k,): λ of each metric; `equivalent_labels` (k,): further draws that would
    shorten the default standard error as much; `unreached_share` (k,): see `Second.reference`; `changed`: see
    `Second.changes`; `unassisted` (k,): why a metric is not assisted, or "".
    """

    second: str
    weights: FloatArray = by_component(0)
    equivalent_labels: FloatArray = by_component(0)
    unreached_share: FloatArray = by_component(0)
    changed: ChangedShare
    unassisted: tuple[str, ...] = by_component(0)

    def table(
        self, level: float = 0.95, kind: Kind | None = None, settled: bool = False, errors: bool = False
    ) -> pd.DataFrame:
        """As `Estimates.table`, with lambda, equivalent_labels, unreached_share and note."""
        # with pseudo-draws and unreached clusters, standard errors are bounds
        table = Estimates.table(self, level, kind, settled, errors).rename(columns={"se": "se_bound"})
        table["lambda"], table["equivalent_labels"] = self.weights, self.equivalent_labels
        table["unreached_share"] = self.unreached_share
        if any(self.unassisted):
            table["note"] = list(self.unassisted)
        return table

    def find_alarms(self, sample: Sample, metrics: MetricLike) -> list[Sentence]:
        """Return the alarms about metrics that are not assisted, and about the second clustering."""
        both = zip(resolve_metrics(metrics), self.unassisted, strict=True)
        alone = [metric for metric, note in both if note]
        sentences = alarms(sample, alone) if alone else [*out_of_balance(sample), *warn_undecided(sample)]
        return sentences + self.of_second()

    def of_second(self) -> list[Sentence]:
        """Return the alarms of a second clustering that seems to know the labels, or is often unreached."""
        sentences, changed = [], self.changed
        if self.weights.any() and changed.chance < BY_CHANCE:
            what = (
                f"{self.second!r} seems to know the labels: it differs from the prediction in "
                f"{changed.drawn:.0%} of the draws, and in {changed.population:.1%} of all. If it was made "
                "or trained with these labels, leave it out: the estimates are wrong."
            )
            sentences.append(Sentence(what, Grade.FAULT))
        large = (self.weights > 0) & (self.unreached_share > TOO_MUCH)
        if large.any():
            names = ", ".join(name for name, on in zip(self.names, large, strict=True) if on)
            what = (
                f"Up to {self.unreached_share[large].max():.0%} of the second clustering is unreached for "
                f"{names}: no draw touches a cluster as large. There the second clustering may be right, or "
                "the prediction. The estimate is between both cases, and the interval covers both. Label "
                "more draws, or draw records instead of entities."
            )
            sentences.append(Sentence(what, Grade.CAUTION))
        return sentences


@dataclass(frozen=True, slots=True, eq=False)
class Linearised:
    """A fitted sample with its metrics, (k,), and the effects of its draws on them."""

    fitted: Fitted
    fit: Estimates
    effects: Effects

    @classmethod
    def of(cls, sample: Sample, metrics: Sequence[Metric]) -> Linearised:
        fitted = fit_sample(sample, metrics)
        return cls(fitted, fitted.estimates, Effects.of(fitted.changes, sample.expansion))

    @property
    def varies(self) -> BoolArray:
        """Whether draws change each metric, (k,)."""
        return self.effects.vary(self.fit.mean)

    def explain(self) -> list[str]:
        """Return why each metric cannot be assisted; "" if it can."""
        expansion, k = self.fitted.sample.expansion, len(self.fitted.metrics)
        if expansion.census:
            return ["the sample holds every unit"] * k
        if (draws := len(expansion.unit)) < FEWEST_DRAWS:
            return [f"{draws} draws are fewer than {FEWEST_DRAWS}"] * k
        of_each = zip(self.fit.reasons, self.varies, strict=True)
        return [why or ("" if varies else "the sample shows no variation") for why, varies in of_each]

    def reach(self) -> FloatArray:
        """Return changes by the average entity that lowers, or raises, each metric most, (k, 2)."""
        fitted, shares = self.fitted, self.fitted.shares
        weight = fitted.sample.expansion.weight[:, None] * (shares > 0)
        # the share of an average entity of those in the total averaged over, of at least 1/n (rule of three)
        share = np.maximum(np.average(shares, axis=0, weights=weight), 1 / np.count_nonzero(shares, axis=0))
        return np.asarray(self.fit.unseen.reach * (share * np.sqrt(fitted.unseen_shares))[:, None])


@dataclass(frozen=True, slots=True, eq=False)
class Control:
    """Metrics with other clusters in place of the truth, as the sample estimates them.

    `reasons` (k,): why one has no control, or ""; `metrics`: the others, None if each is 0/0; `known`: the
    value of each in the population; `error`: effects on errors of `metrics`, if those are estimated.
    """

    name: str
    reasons: Sequence[str]
    metrics: Linearised | None
    known: Callable[[Metric], Reference]
    changed: ChangedShare
    error: Effects | None = None

    def spread(self, target: Linearised) -> tuple[list[str], FloatArray, Effects]:
        """Return why metrics have no control, their values, (k,), and effects on their errors, 0 if none."""
        truth, able = f"with {self.name!r} as the truth", [not why for why in self.reasons]
        reasons = [why or f"it is 0/0 {truth}" for why in self.reasons]
        if self.metrics is None:
            none = np.zeros_like(target.effects.change)
            return reasons, none[0], Effects(none, none)
        of_each = zip(np.flatnonzero(able), self.metrics.varies, self.metrics.fit.reasons, strict=True)
        for j, varies, undefined in of_each:
            if not undefined:
                reasons[j] = "" if varies else f"the sample shows no variation {truth}"
        usable = np.array([not why for why in reasons])

        def fill(values: FloatArray) -> FloatArray:
            filled = np.zeros((*values.shape[:-1], len(reasons)))
            filled[..., able] = values
            return np.where(usable, filled, 0.0)

        error = self.error or self.metrics.effects
        return reasons, fill(self.metrics.fit.mean), Effects(fill(error.residual), fill(error.change))


def correct(
    target: Linearised, control: Control, variance: DrawnUnits, default: Estimates
) -> tuple[AssistedEstimates, FloatArray]:
    """Return the estimates of a sample, corrected by a control, and what is left of effects, (draws, k).

    Metrics that the control does not help are those of `default`.
    """
    reasons, mean, effects = control.spread(target)
    notes = [why or reason for why, reason in zip(target.explain(), reasons, strict=True)]
    usable, given = np.array([not why for why in notes]), (target.effects, effects, target.reach())
    variate = ControlVariate.of(*given, usable, variance)
    # a number of entities has a control already, the known number of predicted clusters
    worse = default.moves.there & (np.diagonal(variate.cov) >= np.diagonal(default.cov))
    variate = ControlVariate.of(*given, usable & ~worse, variance)
    assisted = variate.weight > 0
    shown = SHOWN * variate.control_sd
    shift, between, unreached = np.zeros(len(assisted)), np.zeros((len(assisted), 2)), np.zeros(len(assisted))
    for j in np.flatnonzero(assisted):
        reference, weight = control.known(target.fitted.metrics[j]), variate.weight[j]
        # where both clusterings disagree, the second one is right as often as among draws, which λ says
        value = reference.likely(weight)
        shift[j] = weight * (value - mean[j])
        # a value further away than draws show is so by errors of the prediction, or of the second one alone
        low, high = reference.range
        low, high = min(low, mean[j] + shown[j]), max(high, mean[j] - shown[j])
        between[j] = weight * np.array([value - low, high - value])
        unreached[j] = reference.unreached_share
    fit = _shift_fit(target.fit, variate, shift, between)
    fit = _take_default(fit, default, ~assisted)
    fit = replace(fit, unseen=replace(fit.unseen, skew=variate.skew, between=between))
    of_both = np.diagonal(default.cov), np.diagonal(fit.cov)
    gains = ["" if helps else "the gain is not clear" for helps in assisted]
    estimates = AssistedEstimates(
        **{f.name: getattr(fit, f.name) for f in fields(Estimates)},
        second=control.name,
        weights=variate.weight,
        equivalent_labels=count_equivalent_labels(len(target.fitted.sample), *of_both),
        unreached_share=unreached,
        changed=control.changed,
        unassisted=tuple(why or gain for why, gain in zip(notes, gains, strict=True)),
    )
    return estimates, variate.residual


def _shift_fit(fit: Estimates, variate: ControlVariate, shift: FloatArray, between: FloatArray) -> Estimates:
    """Return a fit whose assisted metrics are corrected by `shift`, (k,), `between` (k, 2) both cases."""
    assisted = variate.weight > 0
    # a correction may lead out of the range of a metric
    corrected = np.clip(fit.mean + shift, *np.array(fit.support).T)
    # what no draw shows has the variance of a uniform distribution between both cases
    cov = variate.cov + np.diag(between.sum(axis=1) ** 2 / 12)
    unseen = replace(
        fit.unseen,
        # the pseudo-draws of the interval fade with the standard error
        reach=fit.unseen.reach * np.sqrt(variate.remaining)[:, None],
        # `skew` has them
        third=np.where(assisted, 0.0, fit.unseen.third),
    )
    both = np.logical_or.outer(assisted, assisted)
    return replace(
        fit, mean=np.where(assisted, corrected, fit.mean), cov=np.where(both, cov, fit.cov), unseen=unseen
    )


def _take_default(fit: Estimates, default: Estimates, alone: BoolArray) -> Estimates:
    """Return a fit with the components of the default where it is `alone`, (k,), at the same correlations."""
    chosen = stack_components(fit, default).part((np.arange(len(alone)) + len(alone) * alone).tolist())
    before, after = np.diagonal(fit.cov), np.diagonal(chosen.cov)
    scale = np.sqrt(np.divide(after, before, out=np.ones_like(after), where=before > 0))
    both = np.logical_and.outer(alone, alone)
    return replace(chosen, cov=np.where(both, default.cov, fit.cov * np.outer(scale, scale)))


@dataclass(frozen=True, slots=True)
class Assisted:
    """Estimates assisted by a second clustering: an engine.

    Parameters
    ----------
    seconds : Second, or several
        The second clustering, counted with the prediction that is judged (see `Second.of`), or with each of
        those that are compared.

    Notes
    -----
    Clusters of the second clustering that no draw reaches (`Second.reference`) may be right as they are, or
    as the prediction has them. The interval covers both cases, and the estimate takes the second clustering
    to be right about a share λ of them. All else is as in `erbayes.engine.control_variate.ControlVariate`.

    See Also
    --------
    erbayes.assisted : one prediction, in one call.
    erbayes.two_phase : if the second opinion covers some records only.

    References
    ----------
    Cassel, Särndal and Wretman (1976), Biometrika 63, 615-620: difference and regression estimators.
    Mozer (2026), arXiv 2603.19160: prediction-powered inference as survey estimation.

    Examples
    --------
    >>> import erbayes as eb
    >>> truth = {i: i // 4 for i in range(800)}
    >>> prediction = {i: i // 4 if i < 400 else -i for i in range(800)}
    >>> labels = {i: c for i, c in truth.items() if c % 5 == 0}
    >>> sample = eb.Sample(eb.measure(prediction, labels), eb.UniformClusters())
    >>> engine = Assisted(Second.of(prediction, labels, by=truth))
    >>> engine(sample, [eb.metrics.pairwise_recall]).weights
    array([1.])

    For a comparison, in which each prediction has the help of one clustering:

    >>> both = {"new": prediction, "old": {i: -i for i in range(800)}}
    >>> engine = Assisted([Second.of(each, labels, by=truth) for each in both.values()])
    >>> comparison = eb.compare(both, labels, eb.UniformClusters(), "pairwise-recall", engine=engine)
    >>> comparison.differences()[["difference", "estimate"]].round(3)
      difference  estimate
    0  old - new      -0.5
    """

    seconds: Second | Sequence[Second]

    def __post_init__(self) -> None:
        if not self.counted:
            raise DataError("no second clustering: pass one, such as Second.of(prediction, labels, by)")
        for second in self.counted:
            need(second, Second, "a second clustering is counted by Second.of(prediction, labels, by)")
        object.__setattr__(self, "seconds", self.counted)

    @property
    def counted(self) -> tuple[Second, ...]:
        """Return the second clusterings, one for each prediction."""
        return (self.seconds,) if isinstance(self.seconds, Second) else tuple(self.seconds)

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> AssistedEstimates:
        estimates = self._correct(sample, metrics)[0]
        return replace(estimates, remarks=(*self.of_prediction(sample), *estimates.of_second()))

    def paired(self, samples: Sequence[Sample], metrics: Sequence[Metric], rng: Seed = None) -> Estimates:
        """As `Paired.paired`: the second clustering counted with its prediction assists each sample."""
        fits, residuals = zip(*(self._correct(sample, metrics) for sample in samples), strict=True)
        cov = samples[0].expansion.covariance(np.hstack(residuals))
        # pseudo-draws and unreached clusters are those of each sample alone
        np.fill_diagonal(cov, np.concatenate([np.diagonal(fit.cov) for fit in fits]))
        names = [f.name for f in fields(Estimates)]
        plain = [Estimates(**{name: getattr(fit, name) for name in names}) for fit in fits]
        return stack_components(*plain, cov=cov)

    def of_prediction(self, sample: Sample) -> list[Sentence]:
        """Return the alarm of a second clustering that is the prediction of a sample itself."""
        same = [s.name for s in self.counted if s.is_prediction and s.position(sample.units) is not None]
        what = (
            f"The second clustering {head(same[:1])} is the prediction itself, and shows none of its errors: "
            "give another one, or none."
        )
        return [Sentence(what, Grade.CAUTION)] if same else []

    def _correct(self, sample: Sample, metrics: Sequence[Metric]) -> tuple[AssistedEstimates, FloatArray]:
        """Return the estimates of one sample, and what is left of the effects of draws."""
        need_sample(sample)
        metrics = resolve_metrics(metrics)
        for second in self.counted:
            if (position := second.position(sample.units)) is not None:
                control = _make_control(sample, metrics, second, position)
                default = ClosedForm()(sample, metrics)
                return correct(Linearised.of(sample, metrics), control, sample.expansion, default)
        raise DataError(
            "no second clustering was counted with the prediction and the labels of this sample: make "
            "both from the same, with Second.of(prediction, labels, by) and measure(prediction, labels). "
            "In a sensitivity analysis, labels that are restored are others: use another engine"
        )


def _make_control(sample: Sample, metrics: Sequence[Metric], second: Second, position: IntArray) -> Control:
    """Return metrics with a second clustering as the truth, whose units at `position` are of the sample."""
    units, reasons = second.units.take(position), []
    for metric in metrics:
        no_sums = [c.name for c in columns_of([metric])[0] if not c.identified(units)]
        why = f"{head(no_sums)} is no sum over records" if no_sums else ""
        reasons.append(f"{second.name!r} is the prediction itself" if second.is_prediction else why)
    able = tuple(metric for metric, why in zip(metrics, reasons, strict=True) if not why)
    control = None
    with suppress(NotIdentified):  # every metric is 0/0 with the second clustering as the truth
        control = Linearised.of(sample.with_units(units), able) if able else None
    known = partial(second.reference, position=position)
    return Control(second.name, reasons, control, known, second.changes(sample))


def assisted(
    prediction: Any,
    labels: Any,
    design: Design,
    metrics: MetricLike = DEFAULT_METRICS,
    *,
    by: Any,
    blocks: Any = None,
    missing: Missing | str = Missing.ERROR,
    frame: Any = None,
) -> AssistedEstimates:
    """Estimate metrics of a prediction from a labelled sample, assisted by a second clustering.

    Parameters
    ----------
    prediction, labels, design, metrics, blocks, frame
        As in `erbayes.estimate`, in memory.
    by : memberships
        The second clustering of the same records, such as the next release. It need not be good. Of several,
        give the best one.
    missing : Missing
        `Missing.ERROR` or `Missing.OMIT`.

    Returns
    -------
    AssistedEstimates
        `.table()` shows the weight λ next to each metric. A metric that cannot be assisted has the default
        estimate and a note.

    Warns
    -----
    Alarm
        For each sentence of `erbayes.alarms` about the metrics that are not assisted, and if draws leave a
        large share of the second clustering unreached.

    Raises
    ------
    DataError, NotIdentified
        If the second clustering does not have all records of the prediction, if either is in files or tables,
        and as `erbayes.estimate`.

    See Also
    --------
    erbayes.compare : judges several predictions by the same sample.
    erbayes.auxiliary.Assisted : the engine, for reports and comparisons.

    Examples
    --------
    >>> import erbayes as eb
    >>> truth = {i: i // 4 for i in range(400)}
    >>> prediction = {i: i // 4 if i < 200 else -i for i in range(400)}
    >>> labels = {i: c for i, c in truth.items() if c % 5 == 0}
    >>> estimates = eb.assisted(prediction, labels, eb.UniformClusters(), "pairwise-recall", by=truth)
    >>> estimates.table()[["estimate", "se_bound", "lambda"]].round(3)
                     estimate  se_bound  lambda
    metric
    pairwise-recall       0.5      0.05     1.0
    """
    metrics = resolve_metrics(metrics)
    options = {"blocks": blocks, "missing": missing, "frame": frame}
    engine = Assisted(Second.of(prediction, labels, by, **options))
    sample = Sample(measure(prediction, labels, **options), design)
    estimates = engine(sample, metrics)
    warn_of(engine.of_prediction(sample) + estimates.find_alarms(sample, metrics))
    return estimates
