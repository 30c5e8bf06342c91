"""Estimates with the help of a second clustering of the same records.

    eb.assisted(prediction, labels, design, by=second).table()

A second clustering S, such as the next release or a slower matcher, stands in for the truth. The value θ^S of
a metric with S as the truth is known, since S covers all records. The labelled units estimate the same value.
The error of that estimate, θ^S - θ̂^S, is then known too, and corrects the estimate of the true value:

    θ̂ + λ (θ^S - θ̂^S)

The correction has mean 0 to first order, whatever S is. A poor S can lengthen intervals, not bend them. The
guards below keep λ at 0 where S does not help.

Sources: Cassel, Särndal and Wretman (1976), Biometrika 63, 615-620 (difference and regression estimators).
Angelopoulos, Duchi and Zrnic (2023), arXiv 2311.01453 (PPI++, the weight λ). Mozer (2026), arXiv 2603.19160
(prediction-powered inference as survey estimation).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from .arrays import FloatArray, IntArray, Seed
from .clustering import Clustering
from .design import Design
from .diagnostics import alarms, out_of_balance
from .engine.closed_form import columns_of, stacked, taylor
from .engine.jackknife import scaled_changes
from .errors import Alarm, DataError, NotIdentified, head, need, number
from .intervals import Kind
from .large import lies_elsewhere
from .metrics import USUAL, Metric, Wanted, chosen
from .sample import Sample, need_sample
from .second import Reference, Second
from .tables import is_table
from .uncertain import Normal
from .units import Missing, Units, measure

FOLDS = 5
"""Number of folds of draws. The weight of each fold comes from the others."""
CLEAR = 0.1
"""Share of the variance that a second clustering must explain in draws that did not choose its weight."""
MASS = 0.25
"""Weight of each of the two pseudo-draws on which the second clustering is wholly wrong."""
TOO_MUCH = 0.1
"""Share of a second clustering out of reach from which an alarm is raised."""
FEWEST_DRAWS = 10
"""Number of draws below which no weight is estimated."""


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class AssistedEstimates(Normal):
    """Estimates of metrics with the help of second clusterings.

    Attributes
    ----------
    names, mean, cov, df, support, effective, extremes, undefined
        As in `Normal`. A metric without help has the default estimate.
    seconds : tuple of str, (s,)
        Names of the second clusterings.
    weights : float array, (k, s)
        λ of each metric and second clustering. They are in [0, 1], and so is their sum.
    correlation : float array, (k,)
        Correlation of a draw's effect on the estimate with that on its correction; NaN without help.
    worth : float array, (k,)
        Number of further draws that would shorten the default standard error as much.
    out_of_reach : float array, (k,)
        Share of the second clustering in clusters that no draw is witness to (see `Second.reference`).
    notes : tuple of str, (k,)
        Why a metric has no help; "" if it has.
    """

    seconds: tuple[str, ...]
    weights: FloatArray
    correlation: FloatArray
    worth: FloatArray
    out_of_reach: FloatArray
    notes: tuple[str, ...]

    def table(self, level: float = 0.95, kind: Kind | None = None) -> pd.DataFrame:
        """As `Normal.table`, with the columns lambda, correlation, worth, out_of_reach and note.

        With several second clusterings, there is a column "lambda of NAME" for each. `note` is there if a
        metric has no help.
        """
        table = Normal.table(self, level, kind)
        heads = [f"lambda of {name}" for name in self.seconds] if len(self.seconds) > 1 else ["lambda"]
        table[heads] = self.weights
        table["correlation"], table["worth"] = self.correlation, self.worth
        table["out_of_reach"] = self.out_of_reach
        if any(self.notes):
            table["note"] = list(self.notes)
        return table

    def part(self, at: Sequence[int]) -> AssistedEstimates:
        """Return the metrics at the positions `at`, jointly."""
        part, j = Normal.part(self, at), list(at)
        return AssistedEstimates(
            **{f.name: getattr(part, f.name) for f in fields(Normal)},
            seconds=self.seconds,
            weights=self.weights[j],
            correlation=self.correlation[j],
            worth=self.worth[j],
            out_of_reach=self.out_of_reach[j],
            notes=tuple(self.notes[i] for i in j),
        )

    def alarms(self, sample: Sample, metrics: Wanted) -> list[str]:
        """Return the alarms of a sample about metrics without help, and of what is out of reach.

        Parameters
        ----------
        sample : Sample
            The sample of these estimates.
        metrics : Metric or str, or several
            The metrics of these estimates, in order.
        """
        alone = [metric for metric, note in zip(chosen(metrics), self.notes, strict=True) if note]
        sentences = alarms(sample, alone) if alone else out_of_balance(sample)
        return sentences + self._out_of_reach()

    def _out_of_reach(self) -> list[str]:
        """Return the alarm of second clusterings of which a large share is out of reach."""
        used = self.weights.any(axis=1) & (self.out_of_reach > TOO_MUCH)
        if not used.any():
            return []
        names = ", ".join(name for name, on in zip(self.names, used, strict=True) if on)
        return [
            f"Up to {self.out_of_reach[used].max():.0%} of the second clustering is out of reach for "
            f"{names}: no draw touches its largest clusters. The estimate is halfway between what the second "
            "clustering and what the prediction says of them; draw records instead of entities to reach them."
        ]


@dataclass(frozen=True, slots=True)
class Assisted:
    """Estimates with the help of second clusterings: an engine.

    Parameters
    ----------
    seconds : Second, or several
        Second clusterings, counted with the prediction that is judged (see `Second.of`). For a comparison,
        those of each prediction (see `Assisted.of`).
    fewest : float
        The effective number of draws that the value of a metric with the second clustering as the truth must
        rest on. With fewer the metric has no help.

    Raises
    ------
    DataError
        If `seconds` are none. When called, if none was counted with the prediction and units of the sample.

    Notes
    -----
    For each metric let d_s be the effect of draw s on the estimate, and e_s that on the estimate with the
    second clustering as the truth.

    - λ is Σde/Σe², cut to [0, 1]. It is fitted in five folds: that of a fold comes from the draws of the
      others. Draws of one unit share a fold.
    - λ is 0 unless it explains more than a tenth of Σd² in draws that did not choose it. It is also 0 unless
      the interval gets shorter, with pseudo-draws and degrees of freedom but without clusters out of reach.
    - With several second clusterings the best one is first. Others take over a part of its weight if that
      again explains more than a tenth of what is left.
    - The variance is that of the design for d - λe, or that of the jackknife if it is larger. Degrees of
      freedom follow from the kurtosis κ of d - λe: 2n/(κ - 1), and at most those of the default.
    - Two pseudo-draws, a quarter of a draw each, stand for errors of the second clustering that no draw has
      shown. Each moves the metric as far as any entity can.
    - Clusters of the second clustering out of reach (see `Second.reference`) may be right, or the prediction
      may be right about them, or neither is known. The value is taken to be uniform between the least and
      the largest of the three.

    Examples
    --------
    >>> import erbayes as eb
    >>> truth = {i: i // 4 for i in range(800)}
    >>> prediction = {i: (i // 4, i % 4 < 3) for i in range(400)}
    >>> prediction = {i: i // 4 if i < 400 else -i for i in range(800)}
    >>> labels = {i: c for i, c in truth.items() if c % 5 == 0}
    >>> sample = eb.Sample(eb.measure(prediction, labels), eb.UniformClusters())
    >>> engine = Assisted(Second.of(prediction, labels, by=truth))
    >>> engine(sample, [eb.metrics.pairwise_recall]).weights
    array([[1.]])
    """

    seconds: Second | tuple[Second, ...]
    fewest: float = 3.0

    def __post_init__(self) -> None:
        seconds = (self.seconds,) if isinstance(self.seconds, Second) else tuple(self.seconds)
        if not seconds:
            raise DataError("no second clustering: pass one, such as Second.of(prediction, labels, by)")
        for second in seconds:
            need(second, Second, "a second clustering is counted by Second.of(prediction, labels, by)")
        object.__setattr__(self, "seconds", seconds)
        number(self.fewest, "fewest", lambda x: 0 <= x < np.inf, "be 0 or more and finite")

    def __repr__(self) -> str:
        counted = ", ".join(f"{s!r} {s.content[:12]}" for s in self._all)
        return f"Assisted({counted}, fewest={self.fewest:g})"

    @property
    def _all(self) -> tuple[Second, ...]:
        return (self.seconds,) if isinstance(self.seconds, Second) else self.seconds

    @classmethod
    def of(
        cls,
        predictions: Mapping[str, Any],
        labels: Any,
        by: Mapping[str, Any] | None = None,
        *,
        blocks: Any = None,
        missing: Missing = Missing.ERROR,
        frame: Any = None,
    ) -> Assisted:
        """Make the engine of a comparison: each prediction is helped by others.

        Parameters
        ----------
        predictions : mapping, name -> memberships
            The predictions that `erbayes.compare` judges.
        labels, blocks, missing, frame
            As in `Second.of`.
        by : mapping, name -> memberships, optional
            Second clusterings. By default each prediction is helped by all others.

        Returns
        -------
        Assisted

        Examples
        --------
        >>> import erbayes as eb
        >>> truth = {i: i // 4 for i in range(400)}
        >>> new = {i: i // 4 if i < 300 else -i for i in range(400)}
        >>> old = {i: i // 4 if i < 200 else -i for i in range(400)}
        >>> labels = {i: c for i, c in truth.items() if c % 2}
        >>> engine = Assisted.of({"old": old, "new": new}, labels, by={"slow": truth})
        >>> comparison = eb.compare({"old": old, "new": new}, labels, eb.UniformClusters(),
        ...                         "pairwise-recall", engine=engine)
        >>> comparison.differences()[["difference", "estimate"]].round(3)
          difference  estimate
        0  new - old     0.251
        """
        options = {"blocks": blocks, "missing": missing, "frame": frame}
        helpers = dict(predictions) if by is None else by
        seconds = tuple(
            Second.of(prediction, labels, helper, name=other, **options)
            for name, prediction in predictions.items()
            for other, helper in helpers.items()
            if by is not None or other != name
        )
        return cls(seconds)

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> AssistedEstimates:
        judged = self._judge(sample, metrics)
        fit = judged.fit
        helped = fit.weights.any(axis=1)
        cov = np.where(np.logical_or.outer(helped, helped), _covariance(sample, [judged]), fit.cov)
        before, after = np.diagonal(fit.cov), np.diagonal(cov)
        shortened = helped & (after > 0)
        gain = np.divide(before, after, out=np.ones_like(before), where=shortened) - 1
        worth = np.maximum(np.round(sample.expansion.unit.shape[-1] * gain), 0)
        return replace(fit, cov=cov, worth=worth)

    def paired(self, samples: Sequence[Sample], metrics: Sequence[Metric], rng: Seed = None) -> Normal:
        """As `Paired.paired`: each sample is helped by the second clusterings counted with its prediction."""
        judged = [self._judge(sample, metrics) for sample in samples]
        return stacked([one.fit for one in judged], _covariance(samples[0], judged))

    def _judge(self, sample: Sample, metrics: Sequence[Metric]) -> _Judged:
        """Return the estimates of one sample, with the covariance of the default."""
        need_sample(sample)
        own = _Effects.of(sample, chosen(metrics))
        found = [(second, second.position(sample.units)) for second in self._all]
        helpers = [_Helper.of(second, at, sample, own.metrics) for second, at in found if at is not None]
        if not helpers:
            raise DataError(
                "no second clustering was counted with the prediction and the labels of this sample: make "
                "both from the same, with Second.of(prediction, labels, by) and measure(prediction, labels)"
            )
        helps = [_help(own, j, helpers, self.fewest) for j in range(len(own.metrics))]
        fit = own.fit
        corrected = np.clip(fit.mean + [h.correction for h in helps], *np.array(fit.support).T)
        fit = replace(
            fit,
            mean=np.where([h.note == "" for h in helps], corrected, fit.mean),
            df=np.minimum(fit.df, [h.df for h in helps]),
            extremes=fit.reach * np.array([[h.left] for h in helps]),
        )
        estimates = AssistedEstimates(
            **{f.name: getattr(fit, f.name) for f in fields(Normal)},
            seconds=tuple(helper.second.name for helper in helpers),
            weights=np.stack([h.weights for h in helps]),
            correlation=np.array([h.correlation for h in helps]),
            worth=np.zeros(len(helps)),
            out_of_reach=np.array([h.out_of_reach for h in helps]),
            notes=tuple(h.note for h in helps),
        )
        residuals = own.effect - np.stack([h.explained for h in helps], axis=1)
        return _Judged(
            estimates, residuals, np.array([h.jack for h in helps]), np.array([h.further for h in helps])
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Judged:
    """Assisted estimates of one sample, before their covariance is made.

    Attributes
    ----------
    fit : AssistedEstimates
        With the covariance of the default estimates.
    residuals : float array, (n draws, k)
        Effects d - λe of draws.
    jack : float array, (k,)
        Variances by the jackknife; 0 for a metric without help.
    further : float array, (k,)
        Variances of pseudo-draws and of clusters out of reach.
    """

    fit: AssistedEstimates
    residuals: FloatArray
    jack: FloatArray
    further: FloatArray


def _covariance(sample: Sample, judged: Sequence[_Judged]) -> FloatArray:
    """Return the joint covariance of the estimates, with standard errors of the jackknife if larger."""
    cov = sample.expansion.variance.covariance(np.hstack([one.residuals for one in judged]))
    jack = np.concatenate([one.jack for one in judged])
    taylors = np.diagonal(cov)
    wider = np.divide(jack, taylors, out=np.ones_like(jack), where=(taylors > 0) & (jack > taylors))
    further = np.concatenate([one.further for one in judged])
    return np.asarray(cov * np.sqrt(np.outer(wider, wider)) + np.diag(further))


@dataclass(frozen=True, slots=True, eq=False)
class _Effects:
    """What each draw does to metrics.

    Attributes
    ----------
    sample : Sample
    metrics : tuple of Metric, (k,)
    fit : Normal
        The default estimates.
    effect : float array, (n draws, k)
        Linearised contributions, from which the design makes a covariance.
    linear, jack : float arrays, (n draws, k)
        Changes without each draw, to first order and exactly. Their squares sum to the variance. They are NaN
        for a metric that is 0/0 without one of the draws, and if there are few draws.
    """

    sample: Sample
    metrics: tuple[Metric, ...]
    fit: Normal
    effect: FloatArray
    linear: FloatArray
    jack: FloatArray

    @classmethod
    def of(cls, sample: Sample, metrics: tuple[Metric, ...]) -> _Effects:
        totals, variance = taylor(sample, metrics), sample.expansion.variance
        counted, _ = columns_of(metrics)
        Z = sample.contributions(counted)
        J = totals.slopes(metrics)[:, : len(counted)].T
        linear = jack = np.full((len(Z), len(metrics)), np.nan)
        if len(Z) >= FEWEST_DRAWS:
            change, scale = variance.jackknife(Z)
            linear = (change @ J) * np.sqrt(scale)[:, None]
            with suppress(NotIdentified):  # every metric is 0/0 without one of the draws
                jack = scaled_changes(sample, totals, metrics)
        return cls(sample, metrics, totals.apply(metrics), variance.residuals(Z) @ J, linear, jack)

    def refused(self, j: int) -> str:
        """Return why metric j can have no help; "" if it can."""
        if self.sample.expansion.variance.census:
            return "the sample holds every unit"
        if len(self.linear) < FEWEST_DRAWS:
            return f"{len(self.linear)} draws are fewer than {FEWEST_DRAWS}"
        if self.fit.reasons[j]:
            return self.fit.reasons[j]
        if not np.isfinite(self.jack[:, j]).all():
            return "it is 0/0 if one draw is left out"
        return "" if self.varies(j) else "the sample shows no variation"

    def varies(self, j: int) -> bool:
        """Return whether draws move metric j by more than rounding."""
        return bool(np.abs(self.linear[:, j]).max() > 1e-12 * max(abs(self.fit.mean[j]), 1.0))

    def draws(self, j: int) -> float:
        """Return the effective number of draws over the finite-population correction of metric j."""
        return float(np.broadcast_to(self.fit.effective, self.fit.mean.shape)[j])


@dataclass(frozen=True, slots=True, eq=False)
class _Helper:
    """A second clustering with the draws of one sample.

    Attributes
    ----------
    second : Second
    position : int array, (u,)
        Positions of the sample's units in `second`.
    metrics : tuple of Metric
    reasons : tuple of str
        Why a metric is no sum over records; "" if it is one.
    effects : _Effects or None
        Effects on the metrics that are sums over records, with the second clustering as the truth. None if
        there are no such metrics, or if all are 0/0.
    """

    second: Second
    position: IntArray
    metrics: tuple[Metric, ...]
    reasons: tuple[str, ...]
    effects: _Effects | None

    @classmethod
    def of(cls, second: Second, position: IntArray, sample: Sample, metrics: tuple[Metric, ...]) -> _Helper:
        units = second.units.take(position)
        reasons = tuple(_no_sum(metric, units) for metric in metrics)
        able = tuple(metric for metric, why in zip(metrics, reasons, strict=True) if not why)
        effects = None
        with suppress(NotIdentified):
            effects = _Effects.of(Sample(units, sample.design, sample.expansion), able) if able else None
        return cls(second, position, metrics, reasons, effects)

    def help(self, j: int, fewest: float) -> _StandIn | str:
        """Return the second clustering in the place of the truth for metric j, or why it cannot help."""
        if self.reasons[j]:
            return self.reasons[j]
        at, effects, name = (
            self.reasons[:j].count(""),
            self.effects,
            f"with {self.second.name!r} as the truth",
        )
        if effects is None or effects.fit.reasons[at] or not np.isfinite(effects.jack[:, at]).all():
            return f"it is 0/0 {name}"
        draws = effects.draws(at)
        if (resting := draws * self.theta) < fewest:
            return f"it rests on {resting:.1f} effective draws {name}, fewer than {fewest:g}"
        if not effects.varies(at):
            return f"the sample shows no variation {name}"
        return _StandIn(
            effects.fit.mean[at],
            self.second.reference(self.metrics[j], self.position),
            effects.effect[:, at],
            effects.linear[:, at],
            effects.jack[:, at],
            draws,
        )

    @property
    def theta(self) -> float:
        """The finite-population correction, averaged over draws."""
        return 1.0 if self.effects is None else self.effects.sample.expansion.variance.theta_mean


@dataclass(frozen=True, slots=True, eq=False)
class _StandIn:
    """A metric with a second clustering in the place of the truth.

    Attributes
    ----------
    mean : float
        The estimate from the labelled units, θ̂^S.
    reference : Reference
        The value, θ^S.
    effect, linear, jack : float arrays, (n draws,)
        As in `_Effects`.
    draws : float
        The effective number of draws over the finite-population correction.
    """

    mean: float
    reference: Reference
    effect: FloatArray
    linear: FloatArray
    jack: FloatArray
    draws: float


@dataclass(frozen=True, slots=True, eq=False)
class _Help:
    """The help of second clusterings for one metric.

    Attributes
    ----------
    weights : float array, (s,)
    explained : float array, (n draws,)
        λe, to be taken from the effects of draws.
    correction : float
        λ (θ^S - θ̂^S).
    correlation, df, jack, further, out_of_reach : float
    left : float
        The share of the standard error that draws leave.
    note : str
        Why there is no help; "" if there is.
    """

    weights: FloatArray
    explained: FloatArray
    note: str = ""
    correction: float = 0.0
    correlation: float = np.nan
    df: float = np.inf
    left: float = 1.0
    jack: float = 0.0
    further: float = 0.0
    out_of_reach: float = 0.0


def _help(own: _Effects, j: int, helpers: Sequence[_Helper], fewest: float) -> _Help:
    """Return the help of second clusterings for metric j."""
    n, weights = len(own.effect), np.zeros(len(helpers))
    none = np.zeros(n)
    if why := own.refused(j):
        return _Help(weights, none, why)
    answers = [helper.help(j, fewest) for helper in helpers]
    stand_ins = [answer for answer in answers if isinstance(answer, _StandIn)]
    if not stand_ins:
        return _Help(weights, none, "; ".join(dict.fromkeys(map(str, answers))))
    target = own.linear[:, j]
    shares = cross_fitted(target, np.stack([s.linear for s in stand_ins], axis=1), own.sample.expansion.unit)
    if not shares.any():
        return _Help(weights, none, "the gain is not clear")
    used = shares.mean(axis=0)
    weights[[isinstance(answer, _StandIn) for answer in answers]] = used
    linear, jack, explained = (
        sum(share * getattr(s, name) for share, s in zip(shares.T, stand_ins, strict=True))
        for name in ("linear", "jack", "effect")
    )
    left, weighed = target - linear, list(zip(used, stand_ins, strict=True))
    spread = sum(w * s.reference.range for w, s in weighed)
    theta = own.sample.expansion.variance.theta_mean
    draws = min(own.draws(j), *(s.draws for s in stand_ins))
    pseudo = MASS * np.sum(own.fit.reach[j] ** 2) * theta / (n * draws)
    jackknifed, df = np.sum((own.jack[:, j] - jack) ** 2), min(_degrees(left), own.fit.df[j])
    lengths = [
        variance * stdtrit(degrees, 0.975) ** 2
        for variance, degrees in (
            (max(np.sum(left**2), jackknifed) + pseudo, df),
            (np.sum(target**2), own.fit.df[j]),
        )
    ]
    if lengths[0] >= lengths[1]:
        return _Help(np.zeros(len(helpers)), none, "the gain is not clear")
    return _Help(
        weights,
        explained,
        correction=sum(w * (s.reference.centre - s.mean) for w, s in weighed),
        correlation=float(np.corrcoef(target, linear)[0, 1]),
        df=float(df),
        left=float(np.sqrt(min(np.sum(left**2) / np.sum(target**2), 1.0))),
        jack=float(jackknifed),
        further=float(pseudo + spread**2 / 12),
        out_of_reach=max(s.reference.out_of_reach for w, s in weighed if w > 0),
    )


def _no_sum(metric: Metric, units: Units) -> str:
    """Return why a metric is no function of sums over records; "" if it is one."""
    counted, _ = columns_of([metric])
    lacking = [c.name for c in counted if not c.identified(units)]
    return f"{head(lacking)} is no sum over records" if lacking else ""


def cross_fitted(target: FloatArray, effects: FloatArray, unit: IntArray) -> FloatArray:
    """Return the weight of each second clustering for each draw, (n, s): 0 where there is no clear gain.

    The weights of a draw come from the draws of other folds.

    Parameters
    ----------
    target : float array, (n,)
        Effect of each draw on a metric.
    effects : float array, (n, s)
        Effect with each second clustering as the truth.
    unit : int array, (n,)
        Unit of each draw. Draws of one unit share a fold.

    Examples
    --------
    >>> effect = np.linspace(-1, 1, 20)
    >>> weights = cross_fitted(0.5 * effect, effect[:, None], np.arange(20))
    >>> weights.min(), weights.max()
    (np.float64(0.5), np.float64(0.5))
    """
    weights, left = np.zeros_like(effects), target
    for _ in range(effects.shape[1]):
        current = np.sum(weights * effects, axis=1)
        moves = [effects[:, s] - current for s in range(effects.shape[1])]
        steps = [_step(left, move, unit) for move in moves]
        rests = [left - step * move for step, move in zip(steps, moves, strict=True)]
        best = int(np.argmin([np.sum(rest**2) for rest in rests]))
        if np.sum(rests[best] ** 2) >= (1 - CLEAR) * np.sum(left**2):
            break
        weights *= 1 - steps[best][:, None]
        weights[:, best] += steps[best]
        left = rests[best]
    return weights


def _step(target: FloatArray, effect: FloatArray, unit: IntArray) -> FloatArray:
    """Return Σ target effect / Σ effect² of the other folds, cut to [0, 1], for each draw, (n,).

    Units are dealt to folds in order of their effects, so that each fold has its share of large ones.
    """
    order = np.lexsort((unit, np.abs(effect)))
    first = np.diff(unit[order], prepend=-1) != 0
    fold = np.empty(len(unit), dtype=np.int64)
    fold[order] = (np.cumsum(first) - 1) % FOLDS
    product, square = (np.bincount(fold, x, FOLDS) for x in (target * effect, effect**2))
    others = square.sum() - square
    slope = np.divide(product.sum() - product, others, out=np.zeros(FOLDS), where=others > 0)
    return np.asarray(np.clip(slope, 0, 1)[fold])


def _degrees(left: FloatArray) -> float:
    """Return the degrees of freedom of Σ left², 2n/(κ - 1) with κ the kurtosis; ∞ if all are 0."""
    squares = left**2
    if not squares.any():
        return np.inf
    kurtosis = len(left) * np.sum(squares**2) / np.sum(squares) ** 2
    return float(max(2 * len(left) / max(kurtosis - 1, 1e-9), 1.0))


def assisted(
    prediction: Any,
    labels: Any,
    design: Design,
    metrics: Wanted = USUAL,
    *,
    by: Any,
    blocks: Any = None,
    missing: Missing = Missing.ERROR,
    frame: Any = None,
) -> AssistedEstimates:
    """Estimate metrics of a prediction from a labelled sample, with the help of a second clustering.

    Parameters
    ----------
    prediction, labels, design, metrics, blocks, frame
        As in `erbayes.estimate`.
    by : memberships, or mapping of name -> memberships
        One or several second clusterings of the same records, such as the next release. None of them needs
        to be good.
    missing : Missing
        `Missing.ERROR` or `Missing.OMIT`.

    Returns
    -------
    AssistedEstimates
        The metrics, jointly. `.table()` shows the weight λ of the second clustering beside each. A metric
        that it cannot help has the default estimate, and a note with the reason.

    Warns
    -----
    Alarm
        For each sentence of `erbayes.alarms` about the metrics without help, and if a large share of the
        second clustering is out of reach.

    Raises
    ------
    DataError
        If the inputs cannot be used. If the second clustering lacks records of the prediction. If the
        prediction lies in files or tables.
    NotIdentified
        If the sample cannot estimate a metric.

    Examples
    --------
    >>> import erbayes as eb
    >>> truth = {i: i // 4 for i in range(400)}
    >>> prediction = {i: i // 4 if i < 200 else -i for i in range(400)}
    >>> labels = {i: c for i, c in truth.items() if c % 5 == 0}
    >>> estimates = eb.assisted(prediction, labels, eb.UniformClusters(), "pairwise-recall", by=truth)
    >>> estimates.table()[["estimate", "se", "lambda"]].round(3)
                     estimate     se  lambda
    metric
    pairwise-recall     0.503  0.018     1.0
    """
    metrics = chosen(metrics)
    if lies_elsewhere(prediction):
        raise DataError(
            "an assisted estimate needs the prediction in memory: pass a DataFrame of records and clusters, "
            "such as pandas.read_parquet(path)"
        )
    options = {"blocks": blocks, "missing": missing, "frame": frame}
    helpers = by if _named(by) else {"second": by}
    engine = Assisted(
        tuple(Second.of(prediction, labels, c, name=str(name), **options) for name, c in helpers.items())
    )
    sample = Sample(measure(prediction, labels, **options), design)
    estimates = engine(sample, metrics)
    for alarm in estimates.alarms(sample, metrics):
        warnings.warn(alarm, Alarm, stacklevel=2)
    return estimates


def _named(by: Any) -> bool:
    """Return whether second clusterings are a mapping of names, not the memberships of one."""
    return (
        isinstance(by, Mapping)
        and len(by) > 0
        and all(isinstance(c, Mapping | pd.Series | Clustering) or is_table(c) for c in by.values())
    )
