"""Metrics corrected by a control variate: why one has none, the value that corrects it, and alarms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from .._internal.arrays import BoolArray, FloatArray
from .._internal.errors import Grade, Sentence
from ..design.draws import DrawnUnits
from ..design.sample import Sample
from ..engine.control_variate import FEWEST_DRAWS, ControlVariate, Effects, count_equivalent_labels
from ..engine.diagnostics import alarms, out_of_balance, warn_undecided
from ..engine.fitted import fit_sample
from ..metrics.definitions import Metric, MetricLike, resolve_metrics
from ..metrics.estimates import Estimates
from ..metrics.intervals import Kind
from ..metrics.unseen import by_component, map_components
from .second import ChangedShare, Reference

TOO_MUCH = 0.1
"""Unreached share of a second clustering above which an alarm is raised, as it then makes the interval."""
BY_CHANCE = 1e-4
"""Probability that draws differ as much from all by chance, below which an alarm is raised.

It is raised for none of 1,640 sound second clusterings, and for nearly all copies of the labels
(benchmarks/assisted.md).
"""


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class AssistedEstimates(Estimates):
    """Estimates assisted by a second clustering, or by cheap labels: `Estimates` with more fields.

    `second`: its name; `weights` (k,): λ of each metric; `equivalent_labels` (k,): further draws that would
    shorten the default standard error as much; `unreached_share` (k,): see `Second.reference`; `changed`: see
    `Second.changes`; `unassisted` (k,): why a metric is not assisted, or "".
    """

    error: ClassVar[str] = "se_bound"  # with pseudo-draws and unreached clusters
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
        table = Estimates.table(self, level, kind, settled, errors)
        table["lambda"], table["equivalent_labels"] = self.weights, self.equivalent_labels
        table["unreached_share"] = self.unreached_share
        if any(self.unassisted):
            table["note"] = list(self.unassisted)
        return table

    def find_alarms(self, sample: Sample, metrics: MetricLike) -> list[Sentence]:
        """Return the alarms about metrics that are not assisted, and about the second clustering."""
        alone = [
            metric for metric, note in zip(resolve_metrics(metrics), self.unassisted, strict=True) if note
        ]
        sentences = alarms(sample, alone) if alone else [*out_of_balance(sample), *warn_undecided(sample)]
        return sentences + self.of_second()

    def of_second(self) -> list[Sentence]:
        """Return the alarms of a second clustering that seems to know the labels, or is often unreached."""
        sentences, changed = self._warn_unreached(), self.changed
        if self.weights.any() and changed.chance < BY_CHANCE:
            what = (
                f"{self.second!r} seems to know the labels: it differs from the prediction in "
                f"{changed.drawn:.0%} of the draws, and in {changed.population:.1%} of all. If it was made "
                "or trained with these labels, leave it out: the estimates are wrong."
            )
            sentences = [Sentence(what, Grade.FAULT), *sentences]
        return sentences

    def _warn_unreached(self) -> list[Sentence]:
        """Return the alarm of a second clustering of which draws leave a large share unreached."""
        large = (self.weights > 0) & (self.unreached_share > TOO_MUCH)
        if not large.any():
            return []
        names = ", ".join(name for name, on in zip(self.names, large, strict=True) if on)
        what = (
            f"Up to {self.unreached_share[large].max():.0%} of the second clustering is unreached for "
            f"{names}: no draw touches a cluster as large. There the second clustering may be right, or the "
            "prediction. The estimate is between both cases, and the interval covers both. Label more draws, "
            "or draw records instead of entities."
        )
        return [Sentence(what, Grade.CAUTION)]


@dataclass(frozen=True, slots=True, eq=False)
class Linearised:
    """Metrics of a sample, (k,), with the effects of its draws."""

    sample: Sample
    metrics: tuple[Metric, ...]
    fit: Estimates
    effects: Effects

    @classmethod
    def of(cls, sample: Sample, metrics: tuple[Metric, ...]) -> Linearised:
        fitted = fit_sample(sample, metrics)
        effects = Effects.of(fitted.contributions, fitted.slopes.T, sample.expansion)
        return cls(sample, metrics, fitted.estimates, effects)

    @property
    def varies(self) -> BoolArray:
        """Whether draws change each metric, (k,)."""
        return self.effects.vary(self.fit.mean)

    def explain(self) -> list[str]:
        """Return why each metric cannot be assisted; "" if it can."""
        draws = len(self.sample.expansion.unit)
        if self.sample.expansion.census:
            return ["the sample holds every unit"] * len(self.metrics)
        if draws < FEWEST_DRAWS:
            return [f"{draws} draws are fewer than {FEWEST_DRAWS}"] * len(self.metrics)
        return [
            why or ("" if varies else "the sample shows no variation")
            for why, varies in zip(self.fit.reasons, self.varies, strict=True)
        ]

    def reach(self) -> FloatArray:
        """Return changes by the average entity that lowers, or raises, each metric most, (k, 2)."""
        expansion, fitted = self.sample.expansion, fit_sample(self.sample, self.metrics)
        shares = fitted.shares
        # the share of an average entity in the total averaged over, of at least 1/n, by the rule of three
        share = np.maximum(expansion.weight @ shares / expansion.weight.sum(), 1 / len(shares))
        return np.asarray(self.fit.unseen.reach * (share * np.sqrt(fitted.unseen_shares))[:, None])


@dataclass(frozen=True, slots=True, eq=False)
class ControlMetrics:
    """Metrics with other clusters in place of the truth, (k,), as the sample estimates them.

    `reasons`: why one is no control, or ""; `mean` (k,): their estimates; `known`: the value of each in the
    population; `effects` on their errors; `unreached_share`: that of each, if no range of `known` has it.
    """

    name: str
    reasons: tuple[str, ...]
    mean: FloatArray
    known: Callable[[Metric], Reference]
    effects: Effects
    changed: ChangedShare
    unreached_share: FloatArray | float = 0.0

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

        `error`: effects on the error of the control, if its value in the population is estimated too.
        """
        truth, able = f"with {name!r} as the truth", [j for j, why in enumerate(reasons) if not why]
        why_not = [why or f"it is 0/0 {truth}" for why in reasons]
        if control is None:
            none = np.zeros_like(target.effects.change)
            return cls(name, tuple(why_not), none[0], known, Effects(none, none), changed)
        error = error or control.effects
        for j, varies, undefined in zip(able, control.varies, control.fit.reasons, strict=True):
            if not undefined:
                why_not[j] = "" if varies else f"the sample shows no variation {truth}"
        usable = np.array([not why for why in why_not])

        def spread(values: FloatArray) -> FloatArray:
            spread_out = np.zeros((*values.shape[:-1], len(why_not)))
            spread_out[..., able] = values
            return np.where(usable, spread_out, 0.0)

        effects = Effects(spread(error.residual), spread(error.change))
        return cls(name, tuple(why_not), spread(control.fit.mean), known, effects, changed)


def correct(
    target: Linearised, control: ControlMetrics, variance: DrawnUnits, default: Estimates
) -> tuple[AssistedEstimates, FloatArray]:
    """Return the estimates of a sample, corrected by a control, and what is left of effects, (draws, k).

    Metrics that the control does not help are those of `default`.
    """
    notes = [why or reason for why, reason in zip(target.explain(), control.reasons, strict=True)]
    usable, given = np.array([not why for why in notes]), (target.effects, control.effects, target.reach())
    variate = ControlVariate.of(*given, usable, variance)
    # a number of entities has a control already, the known number of predicted clusters
    worse = default.moves.there & (np.diagonal(variate.cov) >= np.diagonal(default.cov))
    variate = ControlVariate.of(*given, usable & ~worse, variance)
    assisted = variate.weight > 0
    shift, between, unreached = _compare_with_reference(target, control, variate.weight)
    # unreached clusters have the variance of a uniform distribution between both cases
    cov = variate.cov + np.diag(between.sum(axis=1) ** 2 / 12)
    shifted = _shift_fit(target, variate, shift, cov, control.unreached_share)
    fit = _take_default(shifted, default, ~assisted)
    fit = replace(fit, unseen=replace(fit.unseen, skew=variate.skew, between=between))
    estimates = AssistedEstimates(
        **{f.name: getattr(fit, f.name) for f in fields(Estimates)},
        second=control.name,
        weights=variate.weight,
        equivalent_labels=count_equivalent_labels(
            len(target.sample), np.diagonal(default.cov), np.diagonal(fit.cov)
        ),
        unreached_share=unreached,
        changed=control.changed,
        unassisted=tuple(
            why or ("" if helps else "the gain is not clear")
            for why, helps in zip(notes, assisted, strict=True)
        ),
    )
    return estimates, variate.residual


def _shift_fit(
    target: Linearised,
    variate: ControlVariate,
    shift: FloatArray,
    cov: FloatArray,
    unreached_share: FloatArray | float,
) -> Estimates:
    """Return the default fit, in which assisted metrics are corrected."""
    fit, assisted = target.fit, variate.weight > 0
    # a correction may lead out of the range of a metric
    corrected = np.clip(fit.mean + shift, *np.array(fit.support).T)
    return replace(
        fit,
        mean=np.where(assisted, corrected, fit.mean),
        cov=np.where(np.logical_or.outer(assisted, assisted), cov, fit.cov),
        unseen=replace(
            fit.unseen,
            # the pseudo-draws of the interval fade with the standard error
            reach=fit.unseen.reach * np.sqrt(variate.remaining)[:, None],
            unreached_share=np.where(assisted, unreached_share, fit.unseen.unreached_share),
            # `skew` has them
            third=np.where(assisted, 0.0, fit.unseen.third),
        ),
    )


def _take_default(fit: Estimates, default: Estimates, alone: BoolArray) -> Estimates:
    """Return a fit with the components of the default where it is `alone`, (k,), at the same correlations."""

    def choose(axes: Sequence[int], own: Any, other: Any) -> Any:
        if isinstance(own, tuple):
            return tuple(
                theirs if lone else mine for lone, mine, theirs in zip(alone, own, other, strict=True)
            )
        return np.where(alone.reshape(-1, *[1] * (-1 - axes[0])), other, own)

    before, after = np.diagonal(fit.cov), np.where(alone, np.diagonal(default.cov), np.diagonal(fit.cov))
    scale = np.sqrt(np.divide(after, before, out=np.ones_like(after), where=before > 0))
    both = np.logical_and.outer(alone, alone)
    return map_components(
        choose, fit, default, cov=np.where(both, default.cov, fit.cov * np.outer(scale, scale))
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
