"""Unresolved draws: what metrics would be in the worst cases, and draws that are imputed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from ..._internal.errors import DataError, NotIdentified
from ...design.changes import Responding, WithRepeats
from ...design.sample import Sample, need_sample
from ...engine.bounded_means import REFUTED, Betting, draws_of, with_draws
from ...engine.fitted import fit_sample
from ...metrics.definitions import DEFAULT_METRICS, Metric, MetricLike, resolve_metrics
from ...metrics.estimates import Estimates
from ...metrics.intervals import Kind
from ...metrics.tables import reason_column
from ...units.units import Units

BETTING = Betting()


def worst_cases(
    sample: Sample, metrics: MetricLike = DEFAULT_METRICS, level: float = 0.95, kind: Kind = BETTING
) -> pd.DataFrame:
    """Return bounds of metrics, whatever the unresolved draws are.

    In one case every unresolved draw is all wrong, with the ratio 0. In the other it is all right, with the
    ratio 1. The interval from the lower bound of the first to the upper bound of the second needs no
    assumption about unresolved draws. Bounds exist for metrics that are means of bounded numbers under the
    design (see `erbayes.engine.draws_of`). For others a single draw can count without limit.

    Parameters
    ----------
    sample : Sample
        With the design `Responding`.
    metrics : Metric or str, or several
    level : float
    kind : Kind
        `Betting`.

    Returns
    -------
    DataFrame
        Indexed by metric: estimate, adjusted by classes; all_wrong and all_right, the estimates of both
        cases; lower and upper, bounds of their intervals; level; reason, if a metric has no bounds.

    Examples
    --------
    >>> import erbayes as eb
    >>> prediction = {i: i // 2 for i in range(400)}
    >>> labels = {i: i // 2 for i in range(100)}
    >>> drawn = eb.UniformRecords(draws=range(50))
    >>> design = eb.design.Responding(drawn, [True, False] * 5 + [True] * 45)
    >>> sample = eb.Sample(eb.measure(prediction, labels), design)
    >>> worst_cases(sample, "b3-recall")[["estimate", "all_wrong", "all_right", "lower", "upper"]].round(2)
               estimate  all_wrong  all_right  lower  upper
    metric
    b3-recall       1.0       0.91       1.0   0.78    1.0
    """
    need_sample(sample)
    design, metrics = sample.design, resolve_metrics(metrics)
    if not isinstance(design, Responding):
        raise DataError(
            "worst cases are those of unresolved draws, with the design Responding, not "
            f"{type(design).__name__}"
        )
    fit = fit_sample(sample, metrics).estimates
    rows, reasons = [], []
    for j, metric in enumerate(metrics):
        try:
            row, reason = _bound_metric(sample.units, design, metric, fit.part([j]), level, kind), ""
        except NotIdentified as unbounded:
            row, reason = {}, str(unbounded)
        rows.append({"estimate": fit.mean[j]} | row)
        reasons.append(reason)
    columns = ["estimate", "all_wrong", "all_right", "lower", "upper"]
    index = pd.Index([m.name for m in metrics], name="metric")
    table = pd.DataFrame(rows, columns=columns, index=index, dtype=float)
    return table.assign(level=level, **reason_column(reasons))


def _bound_metric(
    units: Units, design: Responding, metric: Metric, fit: Estimates, level: float, kind: Kind
) -> dict[str, float]:
    """Return the estimates of a metric if unresolved draws are all wrong and all right, and both bounds."""
    answered = np.asarray(design.resolved)
    values, shares = draws_of(Sample(units, design.design), metric)
    of_all = np.ones((len(answered), 1))
    of_all[answered, 0] = shares
    ends = []
    # a draw's value is in [0, 1], so that all wrong and all right bound whatever unresolved draws are
    for case in (0.0, 1.0):
        x = np.full((len(answered), 1), case)
        x[answered, 0] = values
        mean = (of_all * x).sum(axis=0) / of_all.sum()
        (interval,) = with_draws(replace(fit, mean=mean), x, of_all).interval(level, kind)
        if np.isnan(interval).any():
            raise NotIdentified(f"{metric.name} has no bounds: {REFUTED}")
        ends.append((mean[0], interval))
    (wrong, low), (right, high) = ends
    return {"all_wrong": wrong, "all_right": right, "lower": low[0], "upper": high[1]}


def complete_draws(design: Any, exact: pd.Series, delta: float, rng: np.random.Generator) -> Any:
    """Return the design with an entity for each unresolved draw, that of a resolved draw of its class.

    `exact`: whether each entity is predicted exactly. Donors are from a bootstrap of the resolved draws, so
    that imputations vary as these do (Rubin and Schenker 1986, JASA 81, 366-374), and those that are not
    predicted exactly have the odds `delta` (0 to ∞).
    """
    draws = getattr(getattr(design, "design", None), "draws", None)
    if not isinstance(design, Responding) or draws is None:
        raise DataError(
            "delta is about unresolved draws: it needs the design Responding of another one that lists "
            "draws, such as Responding(UniformRecords(draws), resolved)"
        )
    resolved, entities = np.asarray(design.resolved), pd.Index(draws)
    classes = (
        np.zeros(len(resolved))
        if design.classes is None
        else pd.factorize(pd.Series(list(design.classes)))[0]
    )
    wrong = ~exact.reindex(entities).to_numpy(dtype=bool)
    donors = np.full(len(resolved), -1)
    donors[resolved] = np.arange(len(entities))
    of_resolved = classes[resolved]
    for code in np.unique(classes[~resolved]):
        pool = np.flatnonzero(of_resolved == code)
        pool = rng.choice(pool, len(pool))
        weight = np.where(wrong[pool], delta, 1.0) if np.isfinite(delta) else wrong[pool].astype(float)
        weight = weight if weight.any() else np.ones(len(pool))
        here = np.flatnonzero(~resolved & (classes == code))
        donors[here] = rng.choice(pool, len(here), p=weight / weight.sum())
    base: Any = design.design
    # a donor stands for another entity, so that its repeats count
    completed = replace(base, draws=entities.take(donors))
    return WithRepeats(completed) if hasattr(completed, "repeats") else completed
