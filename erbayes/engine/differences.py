"""Differences of predictions that are judged by the same draws: gains less losses (docs/guide/theory.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from .._internal.arrays import BoolArray, FloatArray
from ..design.sample import Sample
from ..metrics import columns as u
from ..metrics import definitions
from ..metrics.estimates import Estimates
from ..metrics.unseen import NOTABLE, Moves, Unseen, round_outward, stack_components
from ..units.settled import Overlap, Overlaps
from ..units.units import KnownTotals
from .fitted import Fitted, fit_sample
from .replicates import set_beside

ROUNDING = 1e-12
"""Difference of two metrics that is rounding, over the first one or over 1."""


@dataclass(frozen=True, slots=True, eq=False)
class _Side:
    """One of two predictions: its fitted sample, and its metrics, (k,), as an engine estimates them."""

    draws: Fitted
    fit: Estimates


def subtract(
    joint: Estimates,
    samples: Sequence[Sample],
    metrics: Sequence[definitions.Metric],
    pairs: Sequence[tuple[int, int]],
    names: Sequence[str],
    overlaps: Overlaps,
) -> Estimates:
    """Return metrics of the second less the first prediction of each pair, (pairs x metrics), jointly.

    `joint` has all metrics of the first prediction, then of the second, and so on; `samples` are the same
    draws with the overlaps of each.
    """
    k, one = len(metrics), np.eye(len(samples))
    change = np.kron([one[second] - one[first] for first, second in pairs], np.eye(k))

    def move(fit: Estimates, samples: Sequence[Sample]) -> Estimates:
        sides = [
            _Side(fit_sample(sample, metrics), fit.part(range(i * k, i * k + k)))
            for i, sample in enumerate(samples)
        ]
        plain = replace(fit.contrast(change, names), combined=None)
        of_each = [
            _move(plain.part(range(at * k, at * k + k)), sides[i], sides[j], shared)
            for at, ((i, j), shared) in enumerate(zip(pairs, overlaps.find(pairs), strict=True))
        ]
        return stack_components(*of_each, cov=plain.cov)

    if joint.values is None:
        return move(joint, samples)
    drawn = joint.contrast(change, names)
    if joint.other is None:
        return drawn
    fit = move(joint.other, samples)
    if joint.replicated is not None:
        return set_beside(drawn, fit, fit.moves.moving)
    return replace(drawn, unseen=Unseen(certain=fit.unseen.certain), other=fit)


def _move(difference: Estimates, first: _Side, second: _Side, shared: Overlap) -> Estimates:
    """Return the differences of two predictions with the gains and losses of draws."""
    certain = _find_certain_ends(first, second, shared)
    variance, effective = first.draws.sample.expansion, difference.unseen.effective
    size = np.maximum(np.abs(first.fit.mean), 1.0)
    D = np.clip(np.where(np.abs(difference.mean) <= ROUNDING * size, 0.0, difference.mean), *certain.T)
    theta = np.maximum(first.draws.unseen_shares, second.draws.unseen_shares)
    a, e = (first.draws.shares + second.draws.shares) / 2, second.draws.changes - first.draws.changes
    if np.isinf(effective).any() and not variance.census:  # an engine of a user, which counts no draws
        effective = np.minimum(effective, 1 / (theta * (a**2).sum(axis=0)))
    unreached_share, unreached = _measure_unreached(first, second, shared)
    moves = Moves.of(
        np.where(_find_equal(first.draws, second.draws), 0.0, e + a * (D - e.sum(axis=0))),
        a,
        lambda both: variance.covariance(variance.residuals(both)),
        variance=np.diagonal(difference.cov),
        reach=_measure_reach(first, second),
        effective=effective,
        fpc=theta,
        df=difference.df,
    )
    unseen = Unseen(effective=effective, unreached_share=unreached_share, certain=certain)
    return replace(difference, mean=D, unseen=unseen, moves=replace(moves, **unreached))


def _find_equal(first: Fitted, second: Fitted) -> BoolArray:
    """Return which draws count the same for both predictions, and so move no difference, (n, k)."""
    one, other = first.contributions, second.contributions
    same = np.abs(one - other) <= ROUNDING * np.maximum(np.abs(one), 1.0)
    at = {column.name: i for i, column in enumerate(first.counted)}
    of_each = [[at[c.name] for c in metric.columns if c.name in at] for metric in first.metrics]
    return np.stack([same[:, columns].all(axis=1) for columns in of_each], axis=1)


def _measure_reach(first: _Side, second: _Side) -> FloatArray:
    """Return how far an unseen draw of average size moves a difference up and down, (k, 2)."""
    of_pseudo_units = np.maximum(*(np.abs(side.fit.unseen.reach).sum(axis=-1) for side in (first, second)))
    metrics, by_entity = first.draws.metrics, first.draws.sample.units.by_entity
    # a share is 0 or 1 on a unit, and others move no further than by pseudo-units
    in_error = [m.count_in_error(by_entity) for m in metrics]
    whole = np.where([m.is_share for m in metrics], in_error, of_pseudo_units)
    return whole[:, None].repeat(2, axis=1)


def _measure_unreached(
    first: _Side, second: _Side, shared: Overlap
) -> tuple[FloatArray, dict[str, FloatArray]]:
    """Return the largest unreached share, (k,), with `parts` and `at_most` of `Moves`.

    Predicted links of one prediction may all be right or all be wrong. Those of both are so in both, but
    weigh more in the prediction with fewer links. True links and records that are out of reach differ only
    where clusters do; elsewhere the difference is 0. They may also be fewer than the predicted ones.
    """
    sides = first, second
    known = [side.draws.sample.units.known for side in sides]
    links = [0.0 if totals is None else totals.total(u.PREDICTED_LINKS) for totals in known]
    found = [float(side.draws.sample.unreached_links) for side in sides]
    weights, common, records = list(found), 0.0, list(found)
    if all(links) and known[0] is not None:
        for at, (side, (size, alone)) in enumerate(zip(sides, shared.alone, strict=True)):
            alone = alone * (size > side.draws.sample.largest_touched)
            weights[at] = float(alone.sum() / links[at])
            common = max(common, (found[at] - weights[at]) * links[at])
            # a record's recall changes by no more than its share of such links
            records[at] = float((2 * alone / np.maximum(size - 1, 1)).sum() / known[0].total(u.RECORDS))
    change = common / links[1] - common / links[0] if common else 0.0
    averaged = np.array([m.averaged[True] for m in first.draws.metrics])
    of_level = [side.fit.unseen.unreached_share for side in sides]
    # of clusters that no draw touches, since what draws underrepresent is in no clusters that could be named
    limits = [np.minimum(x, share) * (share > NOTABLE) for x, share in zip(of_level, found, strict=True)]
    bound = np.maximum(*limits)
    x, y = first.fit.mean, second.fit.mean
    right = (x + y) / 2 if change > 0 else 1 - (x + y) / 2
    down = weights[0] * (1 - x), weights[1] * y, abs(change) * right
    up = weights[0] * x, weights[1] * (1 - y), abs(change) * (1 - right)
    none, of_each = np.zeros_like(x), np.array([weights, weights, records])[averaged]  # (k, 2)
    down_of_truth = of_each[:, 0], bound * np.maximum(y - x, 0.0), none
    up_of_truth = of_each[:, 1], bound * np.maximum(x - y, 0.0), none
    predicted, truth = (
        np.stack([np.stack(part, axis=-1) for part in both], axis=1)
        for both in ((down, up), (down_of_truth, up_of_truth))
    )
    is_predicted, is_truth = (averaged == 0) & (np.maximum(*of_level) > 0), (averaged > 0) & (bound > 0)
    share = np.where(is_predicted, max(*weights, abs(change)), np.where(is_truth, bound, 0.0))
    parts = np.where(is_predicted[:, None, None], predicted, truth * is_truth[:, None, None])
    return share, {"parts": parts, "at_most": is_truth.astype(float)}


def _find_certain_ends(first: _Side, second: _Side, shared: Overlap) -> FloatArray:
    """Return the least and the largest possible difference, whatever records without a label are, (k, 2)."""
    one, other = (
        np.clip(side.fit.unseen.certain, *np.transpose(side.fit.support)[..., None])
        for side in (first, second)
    )
    ends = other - one[:, ::-1]
    known = first.draws.sample.units.known, second.draws.sample.units.known
    settled = _bound_by_labels(first.draws.sample, second.draws.sample, shared)
    for j, metric in enumerate(first.draws.metrics):
        bounds = settled.get(metric)
        if metric.group is definitions.Group.TRUTH:
            bounds = 0.0, 0.0
        elif bounds is None and known[0] is not None and known[1] is not None:
            bounds = _bound_by_shared(metric, known[0], known[1], shared)
        if bounds is not None:
            ends[j] = np.clip(ends[j], *bounds)
    return round_outward(ends)


def _bound_by_labels(
    first: Sample, second: Sample, shared: Overlap
) -> dict[definitions.Metric, tuple[float, float]]:
    """Return the ends of differences that labels of whole entities leave possible (docs/intervals.md)."""
    if not (first.settled and second.settled):
        return {}
    both, moved = shared.open_links, shared.open_records
    a, b = (_Links.of(sample) for sample in (first, second))
    alone_a, alone_b, change = a.open - both, b.open - both, b.common - a.common
    ends, N = dict[definitions.Metric, tuple[float, float]](), first.units.total(u.RECORDS)
    if a.predicted and b.predicted:
        right, scale = (
            b.common / b.predicted - a.common / a.predicted,
            both * (1 / b.predicted - 1 / a.predicted),
        )
        least = right - alone_a / a.predicted + min(scale, 0.0)
        ends[definitions.pairwise_precision] = least, right + alone_b / b.predicted + max(scale, 0.0)
    least, most, joined = change - alone_a, change + alone_b, a.joined or 1.0
    ends[definitions.pairwise_recall] = (
        least / (a.true + alone_a if least < 0 else joined),
        most / (a.true + alone_b if most > 0 else joined),
    )
    for metric, column in ((definitions.b3_precision, u.B3_PRECISION), (definitions.b3_recall, u.B3_RECALL)):
        known = float(second.units.column(column).sum() - first.units.column(column).sum())
        ends[metric] = (known - moved) / N, (known + moved) / N
    return ends


class _Links(NamedTuple):
    """Links of a prediction: `common` and `true` ones with a label, `open` ones without, all `predicted`.

    `joined`: true links if all records without a label are one entity.
    """

    common: float
    true: float
    open: float
    predicted: float
    joined: float

    @classmethod
    def of(cls, sample: Sample) -> _Links:
        """Return the links of a sample whose labels settle some."""
        assert sample.settled is not None
        worst, best = ({c: float(total[0]) for c, total in end.items()} for end in sample.settled[0])
        left = best[u.COMMON_LINKS] - worst[u.COMMON_LINKS]
        true, joined = best[u.TRUE_LINKS] - left, worst[u.TRUE_LINKS] + left
        return cls(worst[u.COMMON_LINKS], true, left, worst[u.PREDICTED_LINKS], joined)


def _bound_by_shared(
    metric: definitions.Metric, first: KnownTotals, second: KnownTotals, shared: Overlap
) -> tuple[float, float] | None:
    """Return the ends of a difference that what both predictions share allows; None if it allows any."""
    # records in clusters that are in both predictions have the same values
    moved = 1 - shared.records / first.total(u.RECORDS)
    if moved == 0:
        return 0.0, 0.0
    if metric in (definitions.b3_precision, definitions.b3_recall):
        return -moved, moved
    totals = {
        definitions.pairwise_precision: (u.PREDICTED_LINKS, shared.links),
        definitions.cluster_precision: (u.PREDICTED_CLUSTERS, shared.clusters),
    }
    if metric not in totals:  # true links and entities are not known
        return None
    column, same = totals[metric]
    a, b = first.total(column), second.total(column)
    if not (a and b):
        return None
    scale = same * (1 / b - 1 / a)
    return -(a - same) / a + min(scale, 0.0), (b - same) / b + max(scale, 0.0)
