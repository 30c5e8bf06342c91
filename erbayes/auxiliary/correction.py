"""Corrections by a stand-in for the truth: effects of draws, weights, guards and errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace

import numpy as np
from scipy.special import stdtrit

from .._internal.arrays import FloatArray, IntArray
from .._internal.errors import NotIdentified
from ..design.sample import Sample
from ..design.variance import Variance
from ..engine.closed_form import columns_of, taylor
from ..engine.leave_one_out import scaled_changes
from ..metrics.columns import Known
from ..metrics.definitions import Metric
from ..metrics.intervals import DEFAULT
from ..metrics.uncertain import Normal
from .estimates import AssistedEstimates
from .reference import Reference
from .second import Changes

FOLDS = 5
"""Number of folds of draws. The weight of each fold comes from the others."""
CLEAR = 0.1
"""Share of the variance that a second clustering must explain in draws that did not choose its weight."""
MASS = 0.5
"""Weight of each of the two pseudo-draws on which the second clustering is wholly wrong, in draws.

It is that of the default interval (see `BetaGamma`).
"""
FEWEST_DRAWS = 10
"""Number of draws below which no weight is estimated."""


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """Assisted estimates of one sample, before their covariance is made.

    Attributes
    ----------
    fit : with the covariance of the default estimates
    variance : the variation of all draws: those of the sample, then any others of the stand-in
    residuals : effects d - λe of all draws, (draws, k)
    jack : variances by the jackknife, (k,), 0 for a metric without help
    further : variances of pseudo-draws and of clusters out of reach, (k,)
    draws : number of draws of the sample
    """

    fit: AssistedEstimates
    variance: Variance
    residuals: FloatArray
    jack: FloatArray
    further: FloatArray
    draws: int

    @property
    def estimates(self) -> AssistedEstimates:
        """Return the estimates of this sample, with their covariance and worth."""
        helped = self.fit.weights.any(axis=1)
        cov = np.where(np.logical_or.outer(helped, helped), covariance_of([self]), self.fit.cov)
        before, after = np.diagonal(self.fit.cov), np.diagonal(cov)
        shortened = helped & (after > 0)
        # variances fall as 1/n, so that their ratio says how many draws more would be as good
        gain = np.divide(before, after, out=np.ones_like(before), where=shortened) - 1
        return replace(self.fit, cov=cov, worth=np.maximum(np.round(self.draws * gain), 0))


def covariance_of(judged: Sequence[Judged]) -> FloatArray:
    """Return the joint covariance of estimates, with standard errors of the jackknife if larger."""
    cov = judged[0].variance.covariance(np.hstack([one.residuals for one in judged]))
    jack = np.concatenate([one.jack for one in judged])
    taylors = np.diagonal(cov)
    # the jackknife sees what first order misses, so that the larger variance counts; correlations stay
    wider = np.divide(jack, taylors, out=np.ones_like(jack), where=(taylors > 0) & (jack > taylors))
    further = np.concatenate([one.further for one in judged])
    return np.asarray(cov * np.sqrt(np.outer(wider, wider)) + np.diag(further))


def judge(own: Effects, helpers: Sequence[Helper], fewest: float, variance: Variance) -> Judged:
    """Return the estimates of one sample, `own`, with the help of stand-ins for the truth, (s,)."""
    helps = [_choose_help(own, j, helpers, fewest) for j in range(len(own.metrics))]
    fit = own.fit
    # a correction may lead beyond the range of a metric
    corrected = np.clip(fit.mean + [h.correction for h in helps], *np.array(fit.support).T)
    fit = replace(
        fit,
        mean=np.where([h.note == "" for h in helps], corrected, fit.mean),
        df=np.where([h.note == "" for h in helps], [h.df for h in helps], fit.df),
        extremes=fit.reach * np.array([[h.left] for h in helps]),
        beyond=np.where([h.note == "" for h in helps], 0.0, fit.beyond),  # `between` has it for the others
    )
    estimates = AssistedEstimates(
        **{f.name: getattr(fit, f.name) for f in fields(Normal)},
        seconds=tuple(helper.name for helper in helpers),
        weights=np.stack([h.weights for h in helps]),
        between=np.stack([h.between for h in helps]),
        skew=np.stack([h.skew for h in helps]),
        correlation=np.array([h.correlation for h in helps]),
        worth=np.zeros(len(helps)),
        out_of_reach=np.array([h.out_of_reach for h in helps]),
        changes=tuple(helper.changes for helper in helpers),
        notes=tuple(h.note for h in helps),
    )
    explained = np.stack([h.explained for h in helps], axis=1)
    residuals = np.pad(own.effect, ((0, len(explained) - len(own.effect)), (0, 0))) - explained
    further = np.array([h.further for h in helps])
    return Judged(estimates, variance, residuals, np.array([h.jack for h in helps]), further, len(own.effect))


@dataclass(frozen=True, slots=True, eq=False)
class Effects:
    """Effects of each draw on metrics.

    Attributes
    ----------
    fit : the default estimates
    effect : linearised contributions, (n draws, k), from which the design makes a covariance
    linear, jack : changes without each draw, to first order and exactly, (n draws, k), whose squares sum to
        the variance; NaN for a metric that is 0/0 without one of the draws, and for few draws
    """

    sample: Sample
    metrics: tuple[Metric, ...]
    fit: Normal
    effect: FloatArray
    linear: FloatArray
    jack: FloatArray

    @classmethod
    def of(cls, sample: Sample, metrics: tuple[Metric, ...]) -> Effects:
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
        # effects that cancel leave rounding
        return bool(np.abs(self.linear[:, j]).max() > 1e-12 * max(abs(self.fit.mean[j]), 1.0))

    def pseudo(self, j: int, right: float) -> FloatArray:
        """Return how far two pseudo-draws move metric j, λu + d down or u + λd up with λ = `right`, (2,).

        Each is an average entity for which the second clustering is wrong in one or the other direction. Its
        share of the total is Σwa/(Σw Σa), at least 1/n, by the rule of three (Korn and Graubard 1998).
        """
        expansion, reach = self.sample.expansion, self.fit.reach[j]
        totals = [(c, share) for c, share in self.metrics[j].size if not isinstance(c, Known)]
        n, share = len(self.effect), 0.0
        if totals:
            counted = self.sample.contributions([column for column, _ in totals])
            a = counted @ np.array([coefficient for _, coefficient in totals], dtype=float)
            share = np.sum(expansion.weight * a) / (expansion.weight.sum() * a.sum())
        each = max(share, 1 / n) * np.sqrt(expansion.variance.theta_mean)
        # an error that no draw shows moves the metric no further than a draw without help does
        moves, most = (reach - right * reach[::-1]) * each, self.typical(j)
        return np.asarray(np.clip(moves, -most, most))

    def typical(self, j: int) -> float:
        """Return how far a draw moves metric j if the second clustering is no help: √(Σr⁴/Σr² + 3 Σr²/n)."""
        r = self.linear[:, j]
        # the root of the mean x⁴ over the mean x² of differences x of two draws, so that equal draws do not
        # count; if every draw is right or wrong, as for exact entities, it is the move of one wrong draw
        square = np.sum(r**2)
        return float(np.sqrt(np.sum(r**4) / square + 3 * square / len(r)))

    def of_interval(self, j: int) -> float:
        """Return the variance that the pseudo-draws of the default interval add to metric j."""
        reach, effective = self.fit.reach[j], self.draws(j)
        return float(DEFAULT.share(reach, effective) / effective * np.sum(reach**2))

    def draws(self, j: int) -> float:
        """Return the effective number of draws over the finite-population correction of metric j."""
        return float(np.broadcast_to(self.fit.effective, self.fit.mean.shape)[j])


@dataclass(frozen=True, slots=True, eq=False)
class Helper:
    """A stand-in for the truth with the draws of one sample.

    Attributes
    ----------
    reasons : why the stand-in has no value of a metric; "" if it has one
    effects : on the metrics that have a value, with the stand-in as the truth; None if all are 0/0
    reference : Metric -> the value θ^S
    changes : how often the stand-in differs from the prediction
    first : effects on θ^S of all draws of the stand-in, if θ^S is an estimate
    position : of the draws of the sample among these, (n,)
    """

    name: str
    reasons: tuple[str, ...]
    effects: Effects | None
    reference: Callable[[Metric], Reference]
    changes: Changes
    first: Effects | None = None
    position: IntArray | None = None

    @property
    def others(self) -> int:
        """Return the number of draws of the stand-in beyond those of the sample."""
        return (
            0 if self.first is None or self.position is None else len(self.first.linear) - len(self.position)
        )

    def help(self, j: int, fewest: float) -> StandIn | str:
        """Return the stand-in in the place of the truth for metric j, or why it cannot help."""
        if self.reasons[j]:
            return self.reasons[j]
        at, effects, name = self.reasons[:j].count(""), self.effects, f"with {self.name!r} as the truth"
        if effects is None or effects.fit.reasons[at] or not np.isfinite(effects.jack[:, at]).all():
            return f"it is 0/0 {name}"
        resting = effects.draws(at) * effects.sample.expansion.variance.theta_mean
        if resting < fewest:
            return f"it rests on {resting:.1f} effective draws {name}, fewer than {fewest:g}"
        if not effects.varies(at):
            return f"the sample shows no variation {name}"
        if self.first is not None and not np.isfinite(self.first.jack[:, at]).all():
            return f"it is 0/0 {name}"
        return StandIn(
            mean=effects.fit.mean[at],
            reference=self.reference(effects.metrics[at]),
            choosing=effects.linear[:, at],
            effect=self._compute_error_effects("effect")[:, at],
            linear=self._compute_error_effects("linear")[:, at],
            jack=self._compute_error_effects("jack")[:, at],
        )

    def _compute_error_effects(self, name: str) -> FloatArray:
        """Return effects on the error θ̂^S - θ^S by their name in `Effects`, (draws, metrics)."""
        own = np.asarray(getattr(self.effects, name))
        if self.first is None or self.position is None:
            return own
        return nested(own, getattr(self.first, name), self.position)


def nested(second: FloatArray, first: FloatArray, position: IntArray) -> FloatArray:
    """Return effects of n draws, (n, k), on an estimate less those of all n' draws on it, (n', k), n first.

    >>> nested(np.array([[0.5], [-0.5]]), np.array([[0.25], [0.0], [-0.25]]), np.array([0, 2])).ravel()
    array([ 0.25, -0.25, -0.  ])
    """
    others = np.delete(first, position, axis=0)
    return np.vstack([second - first[position], -others])


@dataclass(frozen=True, slots=True, eq=False)
class StandIn:
    """A metric with a stand-in for the truth: the estimate θ̂^S, `mean`, and the value θ^S, `reference`.

    `choosing`, the changes of θ̂^S without each draw, (n draws,), choose the weight; `effect`, `linear` and
    `jack`, (draws,), are as in `Effects`, for the error θ̂^S - θ^S.
    """

    mean: float
    reference: Reference
    choosing: FloatArray
    effect: FloatArray
    linear: FloatArray
    jack: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Help:
    """The help of stand-ins for one metric; other fields are as in `AssistedEstimates` and `Judged`.

    Attributes
    ----------
    weights : λ of each stand-in, (s,)
    explained : λe, (draws,), to be taken from the effects of draws
    correction : λ (θ^S - θ̂^S)
    between : distances, (2,), from the correction to the least and largest that clusters out of reach allow
    left : the share of the standard error that draws leave
    note : why there is no help; "" if there is
    """

    weights: FloatArray
    explained: FloatArray
    note: str = ""
    correction: float = 0.0
    between: FloatArray = field(default_factory=lambda: np.zeros(2))
    skew: FloatArray = field(default_factory=lambda: np.zeros(2))
    correlation: float = np.nan
    df: float = np.inf
    left: float = 1.0
    jack: float = 0.0
    further: float = 0.0
    out_of_reach: float = 0.0


def _choose_help(own: Effects, j: int, helpers: Sequence[Helper], fewest: float) -> Help:
    """Return the help of stand-ins for metric j."""
    n, weights = len(own.effect), np.zeros(len(helpers))
    none = np.zeros(n + max(helper.others for helper in helpers))
    if why := own.refused(j):
        return Help(weights, none, why)
    answers = [helper.help(j, fewest) for helper in helpers]
    stand_ins = [answer for answer in answers if isinstance(answer, StandIn)]
    if not stand_ins:
        return Help(weights, none, "; ".join(dict.fromkeys(map(str, answers))))
    target = own.linear[:, j]
    choosing = np.stack([s.choosing for s in stand_ins], axis=1)
    shares = cross_fitted(target, choosing, own.sample.expansion.unit)
    if not shares.any():
        return Help(weights, none, "the gain is not clear")
    used = shares.mean(axis=0)
    weights[[isinstance(answer, StandIn) for answer in answers]] = used
    others = len(none) - n
    # draws of the stand-in alone chose no weight, so that they take the mean weight
    every = np.vstack([shares, np.tile(used, (others, 1))])
    linear, jack, explained = (
        sum(share * getattr(s, name) for share, s in zip(every.T, stand_ins, strict=True))
        for name in ("linear", "jack", "effect")
    )
    left, weighed = np.pad(target, (0, others)) - linear, list(zip(used, stand_ins, strict=True))
    # the weight is also the rate at which the second clustering is right where both disagree
    right = min(float(used.sum()), 1.0)
    likely = [s.reference.likely(right) for s in stand_ins]
    ends = [np.abs(np.array(s.reference.range) - value) for s, value in zip(stand_ins, likely, strict=True)]
    between = np.asarray(used @ np.stack(ends))
    moves = own.pseudo(j, right)
    pseudo = MASS * float(np.sum(moves**2))
    jackknifed = np.sum((np.pad(own.jack[:, j], (0, others)) - jack) ** 2)
    of_draws = max(np.sum(left**2), jackknifed)
    df = satterthwaite(of_draws, min(_compute_degrees(left), own.fit.df[j]), pseudo)
    remaining = float(np.sqrt(min(np.sum(left**2) / np.sum(target**2), 1.0)))
    # help that does not shorten the interval, with all that it adds to it, is not taken
    lengths = [
        (variance + share**2 * own.of_interval(j)) * stdtrit(degrees, 0.975) ** 2
        for variance, share, degrees in (
            (of_draws + pseudo, remaining, df),
            (np.sum(target**2), 1.0, own.fit.df[j]),
        )
    ]
    if lengths[0] >= lengths[1]:
        return Help(np.zeros(len(helpers)), none, "the gain is not clear")
    return Help(
        weights,
        explained,
        correction=sum(w * (value - s.mean) for value, (w, s) in zip(likely, weighed, strict=True)),
        between=between,
        skew=np.maximum([-1, 1] * (MASS * moves**3 - np.sum(left**3)), 0) / max(of_draws + pseudo, 1e-300),
        correlation=float(np.corrcoef(target, np.sum(shares * choosing, axis=1))[0, 1]),
        df=float(df),
        left=remaining,
        jack=float(jackknifed),
        # the variance of a uniform distribution between both cases
        further=float(pseudo + between.sum() ** 2 / 12),
        out_of_reach=max(s.reference.out_of_reach for w, s in weighed if w > 0),
    )


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
        steps = [_fit_weights_across_folds(left, move, unit) for move in moves]
        rests = [left - step * move for step, move in zip(steps, moves, strict=True)]
        best = int(np.argmin([np.sum(rest**2) for rest in rests]))
        # each weight is estimated from the same few draws, so that a small gain is as likely chance
        if np.sum(rests[best] ** 2) >= (1 - CLEAR) * np.sum(left**2):
            break
        weights *= 1 - steps[best][:, None]
        weights[:, best] += steps[best]
        left = rests[best]
    return weights


def _fit_weights_across_folds(target: FloatArray, effect: FloatArray, unit: IntArray) -> FloatArray:
    """Return Σ target effect / Σ effect² of the other folds, cut to [0, 1], for each draw, (n,)."""
    # units are dealt to folds in order of their effects, so that each fold has its share of large ones; only
    # units that are equal in all this come in the order of the labels
    first_to_last = effect, target, np.bincount(unit)[unit].astype(float)
    # or errors of the last digit would decide the order
    rounded = [np.round(x / (np.abs(x).max() or 1.0), 9) for x in first_to_last]
    order = np.lexsort((unit, *rounded[::-1], np.abs(rounded[0])))
    first = np.diff(unit[order], prepend=-1) != 0
    fold = np.empty(len(unit), dtype=np.int64)
    fold[order] = (np.cumsum(first) - 1) % FOLDS
    product, square = (np.bincount(fold, x, FOLDS) for x in (target * effect, effect**2))
    others = square.sum() - square
    # no draw chooses its own weight
    slope = np.divide(product.sum() - product, others, out=np.zeros(FOLDS), where=others > 0)
    return np.asarray(np.clip(slope, 0, 1)[fold])


def satterthwaite(variance: float, df: float, known: float) -> float:
    """Return the degrees of freedom of a variance estimate with `df` of its own plus a known variance.

    They are (v + u)²/(v²/df), with v the estimate and u the known variance.

    Source: Satterthwaite (1946), Biometrics Bulletin 2, 110-114.

    Examples
    --------
    >>> satterthwaite(1.0, 5.0, 0.0), satterthwaite(1.0, 5.0, 1.0)
    (5.0, 20.0)
    """
    return float(df * (1 + known / variance) ** 2) if variance > 0 else np.inf


def _compute_degrees(left: FloatArray) -> float:
    """Return the degrees of freedom of Σ left², 2n/(κ - 1) with κ the kurtosis; ∞ if all are 0."""
    squares = left**2
    if not squares.any():
        return np.inf
    # the variance of a variance of n draws has 2n/(κ - 1) degrees of freedom, n for normal ones
    kurtosis = len(left) * np.sum(squares**2) / np.sum(squares) ** 2
    return float(max(2 * len(left) / max(kurtosis - 1, 1e-9), 1.0))
