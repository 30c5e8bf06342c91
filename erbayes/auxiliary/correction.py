"""Metrics corrected by a control variate: why one has none, and the value that corrects it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from .._internal.arrays import BoolArray, FloatArray
from ..design.draws import DrawnUnits
from ..design.sample import Sample
from ..engine.control_variate import (
    FEWEST_DRAWS,
    ROUNDING,
    ControlVariate,
    Effects,
    count_equivalent_labels,
    pad_draws,
    take_default,
)
from ..engine.fitted import fit_sample
from ..metrics.definitions import Metric
from ..metrics.moves import Moves
from ..metrics.uncertain import Normal
from .estimates import AssistedEstimates
from .reference import Reference
from .second import ChangedShare


@dataclass(frozen=True, slots=True, eq=False)
class Linearised:
    """Metrics of a sample, (k,), with the effects of its draws.

    `centre` (k,): the value of draws without an error, the nearest end of the range of a share.
    """

    sample: Sample
    metrics: tuple[Metric, ...]
    fit: Normal
    effects: Effects
    centre: FloatArray

    @classmethod
    def of(cls, sample: Sample, metrics: tuple[Metric, ...], centre: FloatArray | None = None) -> Linearised:
        fitted = fit_sample(sample, metrics)
        mean = fitted.plain.mean
        if centre is None:
            centre = np.where([metric.is_share for metric in metrics], np.round(mean), np.nan)
        about = fitted.shares * np.where(np.isnan(centre), 0.0, mean - centre)
        effects = Effects.of(fitted.contributions, fitted.slopes.T, sample.expansion, about)
        return cls(sample, metrics, fitted.estimates, effects, centre)

    @property
    def varies(self) -> BoolArray:
        """Whether draws change each metric, (k,)."""
        return self.effects.vary(self.fit.mean)

    @property
    def still(self) -> FloatArray:
        """Return the share of draws that do not move each metric about its centre, (k,)."""
        shares = fit_sample(self.sample, self.metrics).shares
        return np.asarray(np.sum(shares * (np.abs(self.effects.moved) <= ROUNDING), axis=0))

    def explain(self) -> list[str]:
        """Return why each metric cannot be assisted; "" if it can."""
        draws = len(self.effects.change)
        if self.sample.expansion.census:
            return ["the sample holds every unit"] * len(self.metrics)
        if draws < FEWEST_DRAWS:
            return [f"{draws} draws are fewer than {FEWEST_DRAWS}"] * len(self.metrics)
        return [
            why or ("" if varies else "the sample shows no variation")
            for why, varies in zip(self.fit.reasons, self.varies, strict=True)
        ]


@dataclass(frozen=True, slots=True, eq=False)
class ControlMetrics:
    """Metrics with other clusters in place of the truth, (k,), as the sample estimates them.

    `reasons`: why one is no control, or ""; `mean` (k,): their estimates; `known`: the value of each in the
    population; `effects` on their errors; `shared` (n, k): changes of `mean` without each draw of the sample.
    """

    name: str
    reasons: tuple[str, ...]
    mean: FloatArray
    known: Callable[[Metric], Reference]
    effects: Effects
    shared: FloatArray
    changed: ChangedShare

    @classmethod
    def of(
        cls,
        target: Linearised,
        name: str,
        reasons: Sequence[str],
        control: Linearised | None,
        known: Callable[[Metric], Reference],
        changed: ChangedShare,
        error: Effects | None = None,
    ) -> ControlMetrics:
        """Spread metrics without a reason, `control`, over all; None if each is 0/0.

        `error`: effects on the errors of the control, if its value in the population is estimated too.
        """
        truth, able = f"with {name!r} as the truth", [j for j, why in enumerate(reasons) if not why]
        why_not = [why or f"it is 0/0 {truth}" for why in reasons]
        if control is None:
            none = np.zeros_like(target.effects.change)
            return cls(name, tuple(why_not), none[0], known, Effects(none, none, none), none, changed)
        error = control.effects if error is None else error
        for j, varies, undefined in zip(able, control.varies, control.fit.reasons, strict=True):
            if not undefined:
                why_not[j] = "" if varies else f"the sample shows no variation {truth}"
        usable = np.array([not why for why in why_not])

        def spread(values: FloatArray) -> FloatArray:
            spread_out = np.zeros((*values.shape[:-1], len(why_not)))
            spread_out[..., able] = values
            return np.where(usable, spread_out, 0.0)

        effects = Effects(*map(spread, error.arrays))
        mean, shared = spread(control.fit.mean), spread(control.effects.change)
        return cls(name, tuple(why_not), mean, known, effects, shared, changed)


def correct(
    target: Linearised, control: ControlMetrics, variance: DrawnUnits, default: Normal
) -> tuple[AssistedEstimates, FloatArray]:
    """Return the estimates of a sample, corrected by a control, and what is left of effects, (draws, k).

    Metrics that the control does not help are those of `default`.
    """
    notes = [why or reason for why, reason in zip(target.explain(), control.reasons, strict=True)]
    usable = np.array([not why for why in notes])
    variate = ControlVariate.of(target.effects, control.effects, usable, variance, control.shared)
    assisted = variate.weight > 0
    shift, between, unreached = _compare_with_reference(target, control, variate.weight)
    # a correction may lead out of the range of a metric
    mean = np.clip(target.fit.mean + shift, *np.array(target.fit.support).T)
    shifted = replace(target.fit, mean=np.where(assisted, mean, target.fit.mean))
    fit = variate.correct(shifted, _find_moves(target, variate, variance), between)
    fit = take_default(fit, default, ~assisted)
    estimates = AssistedEstimates(
        **{f.name: getattr(fit, f.name) for f in fields(Normal)},
        second=control.name,
        weights=variate.weight,
        correlation=variate.correlation,
        equivalent_labels=count_equivalent_labels(
            len(target.sample), np.diagonal(default.cov), np.diagonal(fit.cov)
        ),
        unreached_share=unreached,
        changed=control.changed,
        notes=tuple(
            why or ("" if helps else "the gain is not clear")
            for why, helps in zip(notes, assisted, strict=True)
        ),
    )
    return estimates, variate.residual


def _find_moves(target: Linearised, variate: ControlVariate, variance: DrawnUnits) -> Moves:
    """Return gains and losses of the draws in which the control is wrong."""
    fitted, metrics, unseen = fit_sample(target.sample, target.metrics), target.metrics, target.fit.unseen
    # a share is 0 or 1 on an entity, and others move no further than by pseudo-units
    length = np.abs(unseen.reach).sum(axis=-1)
    whole = np.where([m.is_share for m in metrics], [m.clusters_in_error for m in metrics], length)
    # towards the middle of the scale, where no entity is all wrong, unseen draws move less, as those of the
    # default interval, but no less than a draw without a control does
    fade = np.divide(np.abs(unseen.reach.sum(axis=-1)), length, out=np.zeros_like(length), where=length > 0)
    with np.errstate(invalid="ignore"):  # 0 × ∞ in a census
        typical = target.effects.typical * unseen.effective
    reach = np.maximum(fade * whole, np.fmin(whole, typical))
    return Moves.of(
        variate.moved,
        pad_draws(fitted.shares, len(variate.moved)),
        lambda both: variance.covariance(variance.residuals(both)),
        variance=np.diagonal(variate.cov),
        reach=reach[:, None].repeat(2, axis=1),
        effective=unseen.effective,
        fpc=fitted.unseen_shares,
        df=target.fit.df,
    )


def _compare_with_reference(
    target: Linearised, control: ControlMetrics, weight: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return corrections λ (θ^S - θ̂^S), distances to both ends, (k, 2), and unreached shares, (k,)."""
    shift, between, unreached = np.zeros(len(weight)), np.zeros((len(weight), 2)), np.zeros(len(weight))
    for j in np.flatnonzero(weight):
        reference = control.known(target.metrics[j])
        # where both clusterings disagree, the second one is right as often as among draws, which λ says
        value = reference.likely(weight[j])
        shift[j] = weight[j] * (value - control.mean[j])
        between[j] = weight[j] * np.abs(np.subtract(reference.range, value))
        unreached[j] = reference.unreached_share
    return shift, between, unreached
