"""Engines without random numbers: the closed form, the jackknife, and naive metrics; undecided draws.

Metrics of totals have the covariance of the design by Taylor linearisation (Binette et al. 2022, arXiv
2210.01230). The closed form of the front door also knows the number of predicted clusters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pandas as pd

from .._internal.arrays import FloatArray, Seed
from .._internal.errors import NotIdentified
from ..design import UniformClusters
from ..design.changes import find_responding, set_odds
from ..design.draws import list_distinct
from ..design.sample import Sample, need_sample
from ..metrics.columns import ENTITIES, EXACT, PREDICTED_CLUSTERS, RECORDS
from ..metrics.definitions import (
    DEFAULT_METRICS,
    Metric,
    MetricLike,
    entities,
    mean_cluster_size,
    pairwise_precision,
    resolve_metrics,
)
from ..metrics.estimates import Cases, Estimates
from ..metrics.unseen import Moves, round_outward, stack_components, sum_rows
from ..units.units import Units, need_units
from .fitted import Fitted, fit_sample


@dataclass(frozen=True, slots=True)
class Taylor:
    """The closed form: an engine of bias-corrected estimates with linearised standard errors.

    Parameters
    ----------
    order : int
        2 for estimates corrected for bias, 1 for plain ones.
    """

    batched: ClassVar[bool] = True
    order: int = 2

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> Estimates:
        fit = fit_sample(sample, metrics)
        return fit.estimates if self.order > 1 else fit.plain

    def paired(self, samples: Sequence[Sample], metrics: Sequence[Metric], rng: Seed = None) -> Estimates:
        effects = np.hstack([fit_sample(sample, metrics).effects for sample in samples])
        cov = samples[0].expansion.covariance(effects)
        return stack_components(*(self(sample, metrics) for sample in samples), cov=cov)


COUNTED = (entities, mean_cluster_size)
HALF = 0.5
"""Entities by which a record of an unseen draw may have more, or fewer, than its predicted clusters."""


@dataclass(frozen=True, slots=True)
class ClosedForm:
    """The closed form, in which the known number of predicted clusters improves `COUNTED`."""

    batched: ClassVar[bool] = True

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> Estimates:
        return _estimate(sample, metrics)[0]

    def paired(self, samples: Sequence[Sample], metrics: Sequence[Metric], rng: Seed = None) -> Estimates:
        fits, moved = zip(*(_estimate(sample, metrics) for sample in samples), strict=True)
        joint: Estimates = stack_components(*fits, cov=samples[0].expansion.covariance(np.hstack(moved)))
        return joint


def _estimate(sample: Sample, metrics: Sequence[Metric]) -> tuple[Estimates, FloatArray]:
    """Return metrics of a sample, and what each draw moves them by, (n, k)."""
    fitted = fit_sample(sample, metrics)
    return improve_counts(sample, fitted.estimates, fitted.effects, metrics)


def improve_counts(
    sample: Sample, found: Estimates, moved: FloatArray, metrics: Sequence[Metric | None]
) -> tuple[Estimates, FloatArray]:
    """Return `found`, which draws move by `moved`, (n, k), with better numbers of entities and mean sizes.

    Components are these metrics, or None for another one.
    """
    units, variance = sample.units, sample.expansion
    at = [j for j, metric in enumerate(metrics) if metric in COUNTED]
    if not at or not units.by_entity or units.population is None or variance.census:
        return found, moved
    better, moved_by = _count_entities(sample, [metrics[j] for j in at])
    moved, k = moved.copy(), len(found.names)
    moved[..., at] = moved_by
    # those of one fit are there already, without the rounding of another order
    is_counted = np.isin(np.arange(k), at)
    cov = np.where(np.logical_or.outer(is_counted, is_counted), variance.covariance(moved), found.cov)
    cov[..., *np.ix_(at, at)] = better.cov
    take = np.arange(k)
    take[at] = k + np.arange(len(at))
    both = stack_components(found, better, cov=None).part(take.tolist())
    return replace(both, names=found.names, cov=cov), moved


def _count_entities(sample: Sample, metrics: Sequence[Metric | None]) -> tuple[Estimates, FloatArray]:
    """Return the number of entities K, or the mean size N/K, and what each draw moves them by, (..., n, k).

    K is the known number of predicted clusters, plus gains, less losses N a_s (v_s - x_s) of draws, for the
    share a_s of a draw in the records, and its entities v_s and predicted clusters x_s per record.
    """
    units, draws = sample.units, sample.expansion
    columns = (units.column(c)[draws.unit][..., None] for c in (RECORDS, ENTITIES, PREDICTED_CLUSTERS))
    (size, counted, clusters), N = columns, units.total(RECORDS)
    a = draws.weight[..., None] * size / sum_rows(size, draws.weight)[..., None, :]
    d = N * a * (counted - clusters) / size
    drawn, there = list_distinct(draws.unit)
    least, in_drawn = ((units.column(c)[drawn] * there).sum(axis=-1) for c in (ENTITIES, RECORDS))
    ends = np.stack([least, N - in_drawn + least], axis=-1)[..., None, :]  # others have a record at least
    K = np.clip(units.total(PREDICTED_CLUSTERS) + d.sum(axis=-2), ends[..., 0], ends[..., 1])
    moved = draws.residuals(d - a * d.sum(axis=-2, keepdims=True))
    counting = fit_sample(sample, entities)
    plain, cov = counting.estimates, draws.covariance(moved)
    moves = Moves.of(
        d,
        a,
        lambda both: draws.covariance(draws.residuals(both)),
        variance=cov[..., 0],
        reach=np.full((1, 2), HALF * N),
        effective=plain.unseen.effective,
        fpc=counting.unseen_shares,
        df=plain.df,
    )
    number = replace(plain, mean=K, cov=cov, moves=moves).part([0] * len(metrics))
    is_size = np.array([metric == mean_cluster_size for metric in metrics])
    slope, certain = np.where(is_size, -N / K**2, 1.0), np.where(is_size[:, None], N / ends[..., ::-1], ends)
    fit = replace(
        number,
        mean=np.where(is_size, N / K, K),
        cov=slope[..., None] * slope[..., None, :] * cov,
        support=tuple(COUNTED[size].support for size in is_size.astype(int)),
        unseen=replace(number.unseen, certain=round_outward(certain)),
        moves=replace(number.moves, over=np.where(is_size, N, np.full_like(slope, np.nan))),
    )
    return fit, moved * slope[..., None, :]


UNDEFINED = "its jackknife is 0/0 if one draw is left out"


def jackknife(sample: Sample, metrics: MetricLike = DEFAULT_METRICS) -> Estimates:
    """Estimate metrics with jackknife standard errors: each draw is left out in turn.

    The variance is Σ_s θ_h (n_h - 1)/n_h (g_(s) - g)² over draws, with g the metric, g_(s) the metric without
    draw s, and n_h and θ_h the draws and the finite-population correction of its stratum. Estimates are not
    corrected for bias. A standard error far above Taylor's is a sign of a heavy tail.

    Raises
    ------
    DataError, NotIdentified
        If there is a single draw, or if every metric is 0/0 without one of the draws.

    See Also
    --------
    taylor : the closed form, which is linear in the draws.
    bootstrap : replicates of the draws.

    References
    ----------
    Wolter (2007), Introduction to Variance Estimation, chapter 4.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b"}, {1: "x", 2: "x", 3: "y"})
    >>> jackknife(eb.Sample(units, eb.UniformClusters()), "mean-cluster-size").sd
    array([0.5])
    """
    fitted = fit_sample(sample, metrics)
    return with_jackknife(fitted.plain, fitted)


def with_jackknife(fit: Estimates, fitted: Fitted) -> Estimates:
    """Return estimates with the covariance of the jackknife."""
    changes = fitted.jackknifed
    undefined = tuple(
        why or (UNDEFINED if lost else "")
        for why, lost in zip(fit.undefined, np.isnan(changes).any(axis=0), strict=True)
    )
    return replace(fit, cov=changes.T @ changes, undefined=undefined)


@dataclass(frozen=True, slots=True)
class Jackknife:
    """The jackknife: an engine with estimates of the closed form and the standard errors of `jackknife`."""

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> Estimates:
        fitted = fit_sample(sample, metrics)
        return with_jackknife(fitted.estimates, fitted)

    def paired(self, samples: Sequence[Sample], metrics: Sequence[Metric], rng: Seed = None) -> Estimates:
        # each draw is left out of all samples at once
        joint = np.hstack([fit_sample(sample, metrics).jackknifed for sample in samples])
        return stack_components(*(self(sample, metrics) for sample in samples), cov=joint.T @ joint)


def naive(units: Units, metrics: MetricLike = DEFAULT_METRICS) -> pd.Series:
    """Compute metrics on the labelled records alone, as a Series by their names: a warning, no estimate.

    Wrong links to records outside the sample are missed, so that precision is far too high. These are P_naive
    and R_naive of Binette et al. (2022) for any metric. There is no honest standard error.

    Raises
    ------
    NotIdentified
        If the units are predicted clusters, for which the paper has no naive estimators.

    See Also
    --------
    erbayes.estimate : the metrics of all records.

    References
    ----------
    Binette et al. (2022), arXiv 2210.01230, section 2.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "a", 4: "a"}, {1: "x", 2: "x"})
    >>> P_naive(units)
    1.0
    >>> P = [eb.metrics.pairwise_precision]
    >>> round(float(eb.engine.taylor(eb.Sample(units, eb.UniformClusters()), P).apply(P).mean[0]), 3)
    0.333
    """
    census = _as_census(units, resolve_metrics(metrics))
    return pd.Series(census.mean, pd.Index(census.names, name="metric"), name="naive")


def P_naive(units: Units) -> float:
    """Compute pairwise precision on the labelled records alone, the paper's P_naive (see `naive`)."""
    return float(naive(units, [pairwise_precision]).iloc[0])


def _as_census(units: Units, metrics: Sequence[Metric]) -> Estimates:
    """Return the metrics of a census, as if the labelled records were the population."""
    need_units(units)
    if not units.by_entity:
        raise NotIdentified("naive metrics are those of labelled entities, not of predicted clusters")
    # the closed form of a census is the plain metric, so that no formula is written twice
    census = Sample(units.isolated(), UniformClusters(population=len(units)))
    return fit_sample(census, metrics).plain


@dataclass(frozen=True, slots=True)
class Naive:
    """An engine of naive metrics (see `naive`), without standard errors."""

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> Estimates:
        need_sample(sample)
        census = _as_census(sample.units, metrics)
        return replace(census, cov=np.full_like(census.cov, np.nan))


FEWEST_WRONG = 5
"""Decided draws with an error from which the worst undecided ones can be like them, if no share."""


def with_cases[Found: Estimates](found: Found, sample: Sample, metrics: Sequence[Metric]) -> Found:
    """Return estimates with both cases of draws that nobody could resolve, if the sample has some.

    Undecided draws count as much as the decided ones of their class on average. In a share the ratio of each
    is 0, or 1. In any other metric a draw can count without limit, so that they are as bad, or as good, as
    the decided draws of their class can be, by `Responding` with odds of ∞ and 0. Cases are those of the
    closed form, moved and scaled as `found` differs from it.
    """
    design, units, drawn = find_responding(sample.design, odds=1), sample.units, sample.expansion
    if design is None or drawn.undecided is None:
        return found
    fitted = fit_sample(sample, metrics)
    # a unit may have draws of several classes, which weigh what they represent
    weight = np.ones(len(drawn.order)) if drawn.repeats is None else drawn.repeats
    each = drawn.undecided * weight, weight
    lost, of_all = (np.bincount(drawn.order, w, len(units))[drawn.unit] for w in each)
    lost = lost / of_all
    few = (units.column(EXACT)[drawn.order] == 0).sum() < FEWEST_WRONG
    # with shares a_s of draws, and their ratios v_s: Σ ρ_s a_s and Σ ρ_s a_s (v_s - mean)
    share, gone = lost @ fitted.shares, lost @ fitted.changes
    plain, mean, variance = ClosedForm()(sample, metrics), found.uncut, found.uncut_sd**2
    scale = np.divide(variance, plain.uncut_sd**2, out=np.ones_like(mean), where=plain.uncut_sd > 0)
    is_share, draws, cases = np.array([m.is_share for m in metrics]), design.tried.sum(), []
    by_odds = estimate_by_odds(sample, lambda one: ClosedForm()(one, metrics))
    for case, ratio in zip(by_odds, (0.0, 1.0), strict=True):
        mixed = np.clip(mean - gone + share * (ratio - mean), 0.0, 1.0)
        moved = np.nan if few and ratio == 0 else case.mean + mean - plain.uncut
        spread = (1 - share) ** 2 * variance + share * (1 - share) * (mean - ratio) ** 2 / draws
        cov = np.diag(np.where(is_share, spread, case.uncut_sd**2 * scale))
        cases.append(replace(case, mean=np.where(is_share, mixed, moved), cov=cov))
    return replace(found, cases=Cases(wrong=cases[0], right=cases[1], share=design.unresolved))


def estimate_by_odds(sample: Sample, answer: Callable[[Sample], Estimates]) -> list[Estimates]:
    """Return an answer if undecided draws are as bad, and as good, as the decided ones of their class."""
    designs = (set_odds(sample.design, odds) for odds in (np.inf, 0.0))
    return [answer(Sample(sample.units, design)) for design in designs]
