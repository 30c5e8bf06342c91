"""Corrections by control variates: effects of draws on metrics, weights and errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from .._internal.arrays import BoolArray, FloatArray, IntArray
from ..design.sample import Sample
from ..design.variance import Variance
from ..engine.fitted import columns_of, taylor
from ..metrics.columns import Known
from ..metrics.definitions import Metric
from ..metrics.uncertain import Normal
from .estimates import AssistedEstimates
from .reference import Reference
from .second import Changes

MASS = 0.5
"""Weight of each of the two pseudo-draws on which the control variate is wholly wrong, in draws.

It is that of the default interval (see `BetaGamma`).
"""
FEWEST_DRAWS = 10
"""Number of draws below which no weight is estimated, since it would fit their noise."""


@dataclass(frozen=True, slots=True, eq=False)
class Linearised:
    """Metrics of a sample, (k,), with `effect` of each draw, and `linear` changes without it, (n, k)."""

    sample: Sample
    metrics: tuple[Metric, ...]
    fit: Normal
    effect: FloatArray
    linear: FloatArray

    @classmethod
    def of(cls, sample: Sample, metrics: tuple[Metric, ...]) -> Linearised:
        totals, variance = taylor(sample, metrics), sample.expansion.variance
        counted, _ = columns_of(metrics)
        Z = sample.contributions(counted)
        J = totals.slopes(metrics)[:, : len(counted)].T
        linear = np.zeros((len(Z), len(metrics)))
        if len(Z) >= FEWEST_DRAWS:
            change, scale = variance.jackknife(Z)
            linear = (change @ J) * np.sqrt(scale)[:, None]
        return cls(sample, metrics, totals.apply(metrics), variance.residuals(Z) @ J, linear)

    def refuse(self, j: int) -> str:
        """Return why metric j can have no help; "" if it can."""
        if self.sample.expansion.variance.census:
            return "the sample holds every unit"
        if len(self.linear) < FEWEST_DRAWS:
            return f"{len(self.linear)} draws are fewer than {FEWEST_DRAWS}"
        return self.fit.reasons[j] or ("" if self.varies(j) else "the sample shows no variation")

    def varies(self, j: int) -> bool:
        """Return whether draws move metric j by more than rounding."""
        # effects that cancel leave rounding
        return bool(np.abs(self.linear[:, j]).max() > 1e-12 * max(abs(self.fit.mean[j]), 1.0))

    def pseudo(self, j: int, right: float) -> FloatArray:
        """Return how far two pseudo-draws move metric j, λu + d down or u + λd up with λ = `right`, (2,).

        Each is an average entity for which the control variate is wrong in one or the other direction.
        """
        reach, theta = np.asarray(self.fit.unseen.reach)[j], self.sample.expansion.variance.mean_fpc
        # at least 1/n, by the rule of three (Korn and Graubard 1998)
        each = max(self.share_of_average(j), 1 / len(self.effect)) * np.sqrt(theta)
        # an error that no draw shows moves the metric no further than a draw without help does
        moves, most = (reach - right * reach[::-1]) * each, self.typical(j)
        return np.asarray(np.clip(moves, -most, most))

    def share_of_average(self, j: int) -> float:
        """Return the share of an average entity in the total that metric j averages over, Σwa/(Σw Σa)."""
        totals = [(c, share) for c, share in self.metrics[j].size if not isinstance(c, Known)]
        if not totals:
            return 0.0
        counted, weight = self.sample.contributions([c for c, _ in totals]), self.sample.expansion.weight
        a = counted @ np.array([coefficient for _, coefficient in totals], dtype=float)
        return float(np.sum(weight * a) / (weight.sum() * a.sum()))

    def typical(self, j: int) -> float:
        """Return how far a draw moves metric j if the control variate is no help: √(Σr⁴/Σr² + 3 Σr²/n)."""
        r = self.linear[:, j]
        # the root of the mean x⁴ over the mean x² of differences x of two draws, so that equal draws do not
        # count; if every draw is right or wrong, as for exact entities, it is the move of one wrong draw
        square = np.sum(r**2)
        return float(np.sqrt(np.sum(r**4) / square + 3 * square / len(r)))


@dataclass(frozen=True, slots=True, eq=False)
class ControlVariate:
    """Metrics with other clusters in the place of the truth, (k,), whose error in a sample is known."""

    name: str
    reasons: tuple[str, ...]
    mean: FloatArray
    known: Callable[[Metric], Reference]
    choosing: FloatArray
    effect: FloatArray
    linear: FloatArray
    changes: Changes

    @classmethod
    def of(
        cls,
        own: Linearised,
        name: str,
        reasons: Sequence[str],
        second: Linearised | None,
        known: Callable[[Metric], Reference],
        changes: Changes,
        first: tuple[Linearised, IntArray] | None = None,
    ) -> ControlVariate:
        """Spread estimates of the metrics without a reason, `second`, over all; None if each is 0/0."""
        truth, able = f"with {name!r} as the truth", [j for j, why in enumerate(reasons) if not why]
        found = [why or f"it is 0/0 {truth}" for why in reasons]
        if second is None:
            none = np.zeros_like(own.linear)
            return cls(name, tuple(found), np.zeros(len(found)), known, none, none, none, changes)
        for at, j in enumerate(able):
            if not second.fit.reasons[at] and (first is None or not first[0].fit.reasons[at]):
                found[j] = "" if second.varies(at) else f"the sample shows no variation {truth}"

        def spread(values: FloatArray) -> FloatArray:
            every = np.zeros((len(values), len(found)))
            every[:, able] = values
            return np.where([not why for why in found], every, 0.0)

        effect, linear = second.effect, second.linear
        if first is not None:
            whole, position = first
            effect = nested(effect, whole.effect, position)
            linear = nested(linear, whole.linear, position)
        arrays = spread(second.linear), spread(effect), spread(linear)
        return cls(name, tuple(found), spread(second.fit.mean[None])[0], known, *arrays, changes)


def nested(second: FloatArray, first: FloatArray, position: IntArray) -> FloatArray:
    """Return effects of n draws on an estimate, (n, k), less those of all n' draws, (n', k), n first."""
    others = np.delete(first, position, axis=0)
    return np.vstack([second - first[position], -others])


def correct(
    own: Linearised, variates: Sequence[ControlVariate], variance: Variance
) -> tuple[AssistedEstimates, FloatArray]:
    """Return the estimates of a sample with control variates, and what is left of effects, (draws, k)."""
    found = [_choose_weights(own, j, variates) for j in range(len(own.metrics))]
    weights = np.array([weight for weight, _ in found])
    shift, between, out_of_reach = _compare_with_known(own, variates, weights)
    residuals, left = (_subtract(own, variates, weights, name) for name in ("effect", "linear"))
    moves = _move_pseudo_draws(own, weights)
    # clusters out of reach have the variance of a uniform distribution
    further = MASS * np.sum(moves**2, axis=1) + between.sum(axis=1) ** 2 / 12
    cov = variance.covariance(residuals) + np.diag(further)
    fit = _shift_fit(own, weights.any(axis=1), shift, cov, left)
    estimates = AssistedEstimates(
        **{f.name: getattr(fit, f.name) for f in fields(Normal)},
        seconds=tuple(variate.name for variate in variates),
        weights=weights,
        between=between,
        skew=_compute_skew(left, moves) * weights.any(axis=1)[:, None],
        correlation=_correlate(own, variates, weights),
        worth=_count_worth(own, fit),
        out_of_reach=out_of_reach,
        changes=tuple(variate.changes for variate in variates),
        notes=tuple(note for _, note in found),
    )
    return estimates, residuals


def _shift_fit(
    own: Linearised, helped: BoolArray, shift: FloatArray, cov: FloatArray, left: FloatArray
) -> Normal:
    """Return the default fit, in which metrics with help are corrected."""
    fit = own.fit
    # a correction may lead beyond the range of a metric
    corrected = np.clip(fit.mean + shift, *np.array(fit.support).T)
    before, after = np.sum(own.linear**2, axis=0), np.sum(left**2, axis=0)
    # the pseudo-draws of the interval fade with the standard error
    share = np.divide(np.minimum(after, before), before, out=np.ones_like(before), where=helped)
    return replace(
        fit,
        mean=np.where(helped, corrected, fit.mean),
        cov=np.where(np.logical_or.outer(helped, helped), cov, fit.cov),
        unseen=replace(
            fit.unseen,
            reach=fit.unseen.reach * np.sqrt(share)[:, None],
            out_of_reach=np.where(helped, 0.0, fit.unseen.out_of_reach),  # `between` has it for these
        ),
    )


def _count_worth(own: Linearised, fit: Normal) -> FloatArray:
    """Return how many draws more would shorten the default standard errors as much, (k,)."""
    before, after = np.diagonal(own.fit.cov), np.diagonal(fit.cov)
    # variances fall as 1/n, so that their ratio says how many draws more would be as good
    gain = np.divide(before, after, out=np.ones_like(before), where=after > 0) - 1
    return np.maximum(np.round(len(own.effect) * gain), 0)


def _choose_weights(own: Linearised, j: int, variates: Sequence[ControlVariate]) -> tuple[FloatArray, str]:
    """Return the weights of control variates for metric j, (s,), and a note if there is none."""
    reasons = [variate.reasons[j] for variate in variates]
    if why := own.refuse(j) or ("; ".join(dict.fromkeys(reasons)) if all(reasons) else ""):
        return np.zeros(len(variates)), why
    weights = fit_weights(own.linear[:, j], np.stack([v.choosing[:, j] for v in variates], axis=1))
    return weights, "" if weights.any() else "the gain is not clear"


def fit_weights(target: FloatArray, effects: FloatArray) -> FloatArray:
    """Return λ = Σde/Σe² in [0, 1] of s control variates: the best first, others take a part of it."""
    weights = np.zeros(effects.shape[1])
    for _ in weights:
        left = target - effects @ weights
        moves = effects - (effects @ weights)[:, None]
        product, square = left @ moves, np.sum(moves**2, axis=0)
        steps = np.clip(np.divide(product, square, out=np.zeros_like(square), where=square > 0), 0, 1)
        best = int(np.argmax(steps * (2 * product - steps * square)))
        weights *= 1 - steps[best]
        weights[best] += steps[best]
    return weights


def _subtract(
    own: Linearised, variates: Sequence[ControlVariate], weights: FloatArray, name: str
) -> FloatArray:
    """Return the effects d - λe of all draws by their name in `Linearised`, (draws, k)."""
    explained = sum(w * getattr(variate, name) for w, variate in zip(weights.T, variates, strict=True))
    mine = getattr(own, name)
    return np.asarray(np.pad(mine, ((0, len(explained) - len(mine)), (0, 0))) - explained)


def _compare_with_known(
    own: Linearised, variates: Sequence[ControlVariate], weights: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return corrections λ (θ^S - θ̂^S), distances to both ends, (k, 2), and shares out of reach, (k,)."""
    known, right = np.zeros((*weights.shape, 4)), np.minimum(weights.sum(axis=1), 1.0)
    for j, s in np.argwhere(weights > 0).tolist():
        reference = variates[s].known(own.metrics[j])
        # where both clusterings disagree, the second one is right as often as among draws, which λ says
        known[j, s] = reference.likely(right[j]), *reference.range, reference.out_of_reach
    errors = known[..., 0] - np.stack([variate.mean for variate in variates], axis=1)
    ends = np.abs(known[..., 1:3] - known[..., :1])
    between = np.sum(weights[..., None] * ends, axis=1)
    return np.sum(weights * errors, axis=1), between, known[..., 3].max(axis=1)


def _move_pseudo_draws(own: Linearised, weights: FloatArray) -> FloatArray:
    """Return how far the two pseudo-draws move metrics, (k, 2), 0 without help."""
    right = np.minimum(weights.sum(axis=1), 1.0)
    return np.array([own.pseudo(j, share) if share > 0 else np.zeros(2) for j, share in enumerate(right)])


def _compute_skew(left: FloatArray, moves: FloatArray) -> FloatArray:
    """Return third moments of draws and pseudo-draws down and up, over second moments, (k, 2), 0 or more."""
    # a metric is larger without a draw that lowers it
    third = [-1, 1] * (MASS * moves**3 - np.sum(left**3, axis=0)[:, None])
    second = np.sum(left**2, axis=0) + MASS * np.sum(moves**2, axis=1)
    return np.asarray(np.maximum(third, 0) / np.maximum(second, 1e-300)[:, None])


def _correlate(own: Linearised, variates: Sequence[ControlVariate], weights: FloatArray) -> FloatArray:
    """Return correlations of effects of draws with those on their corrections, (k,), NaN without help."""
    explained = sum(w * v.choosing for w, v in zip(weights.T, variates, strict=True))
    return np.array(
        [
            np.corrcoef(d, e)[0, 1] if weight.any() else np.nan
            for d, e, weight in zip(own.linear.T, np.transpose(explained), weights, strict=True)
        ]
    )
