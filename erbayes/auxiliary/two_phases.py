"""Estimates from two phases: cheap labels of many draws, careful ones of some of these.

    eb.two_phase(prediction, labels, design, cheap=answers, cheap_design=eb.UniformRecords(draws)).table()

A machine, or an earlier vendor, labels n' draws. Careful annotators label a random part of them, n draws. A
metric is estimated from the careful labels, θ̂_H(n), and from the cheap ones of the same draws, θ̂_L(n), and
of all draws, θ̂_L(n'). The cheap labels of all draws take the place of the known value of a control variate:

    θ̂_H(n) + λ (θ̂_L(n') - θ̂_L(n))

The correction has mean 0 to first order, whatever the cheap labels are, because the part is random. A unit
counts once in each of the three under `UniformRecords`, if records have ids: careful and cheap units then
share records, and one variance has all three.

Sources: Neyman (1938), Journal of the American Statistical Association 33, 101-116 (double sampling). Cochran
(1977), Sampling Techniques, chapter 12.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from .._internal.arrays import IntArray, Seed
from .._internal.errors import DataError, NotIdentified, head, warn_of
from ..design import UniformRecords
from ..design.changes import Responding
from ..design.contract import Design
from ..design.draws import DrawnUnits, Round, count_each, count_once
from ..design.sample import Sample, need_sample
from ..engine.closed_form import ClosedForm, with_cases
from ..engine.control_variate import Effects
from ..large import scan
from ..large.files import lies_elsewhere
from ..metrics.columns import EXACT
from ..metrics.definitions import DEFAULT_METRICS, Metric, MetricLike, resolve_metrics
from ..units.measuring import measure
from .assistance import AssistedEstimates, Control, Linearised, correct
from .second import ChangedShare, Reference


@dataclass(frozen=True, slots=True, eq=False)
class TwoPhase:
    """Estimates from careful labels of some draws, with cheap labels of all: an engine.

    `cheap`: all draws by their cheap labels; `careful` (n,): as in `two_phase`.
    """

    cheap: Sample
    careful: Sequence[int] | IntArray | None = None

    def __post_init__(self) -> None:
        need_sample(self.cheap)

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> AssistedEstimates:
        need_sample(sample)
        metrics = resolve_metrics(metrics)
        for one, which in ((sample, "careful"), (self.cheap, "cheap")):
            _need_ordered(one, which)
        if sample.units.known is None or not sample.units.known.equals(self.cheap.units.known):
            raise DataError(
                "careful and cheap labels were counted with other predictions: pass the same to both"
            )
        position = self._locate_careful_draws(len(sample))
        pairs = find_common_records(sample, self.cheap)
        if pairs is not None:
            _need_same_draws(sample, self.cheap, position, pairs)
        records = {getattr(x.design, "records", None) for x in (sample, self.cheap)}
        if not (sample.expansion.once and self.cheap.expansion.once and len(records) == 1):
            pairs = None  # a unit counts once by both labels, of records drawn from as many
        every, careful = self.cheap, sample
        if pairs is None:
            every, careful = every.count_each(), careful.count_each()
        target, variance = Linearised.of(careful, metrics), careful.expansion
        part, error = None, None
        known = dict.fromkeys(metrics, np.nan)
        with suppress(NotIdentified):  # every metric is 0/0 by the cheap labels
            entire = Linearised.of(every, metrics)
            part = Linearised.of(subsample(every, position), metrics)
            if pairs is None:
                phases = pair_draws(position, len(every))
            else:
                phases = share_draws(careful, every, position, pairs)
            own, of_part, of_all = phases.spread(target.effects, part.effects, entire.effects)
            error = Effects(of_part.residual - of_all.residual, of_part.change - of_all.change)
            target, variance = replace(target, effects=own), phases.variance
            known = dict(zip(metrics, entire.fit.mean.tolist(), strict=True))
        changed, reasons = _count_changes(self.cheap, position), [""] * len(metrics)

        def find_known(metric: Metric) -> Reference:
            return Reference(np.full(2, known[metric]), 0.0)

        control = Control("cheap", reasons, part, find_known, changed, error)
        return correct(target, control, variance, ClosedForm()(sample, metrics))[0]

    def _locate_careful_draws(self, n: int) -> IntArray:
        """Return the positions of the n draws of a sample among those with cheap labels."""
        draws = len(self.cheap)
        position = np.arange(n) if self.careful is None else np.asarray(self.careful)
        whole = position.shape == (n,) and np.issubdtype(position.dtype, np.integer)
        if not whole or len(np.unique(position)) < n or position.min() < 0 or position.max() >= draws:
            raise DataError(
                f"careful has {position.size} positions for {n} draws: it needs a different one for each, "
                f"whole numbers from 0, among the {draws} draws with cheap labels"
            )
        if draws < n + 2:
            raise DataError(
                f"{draws - n} draws have cheap labels only, and 2 or more are needed: pass as cheap the "
                "labels of all draws, those with careful labels too"
            )
        return position


def _need_ordered(sample: Sample, which: str) -> None:
    """Refuse draws that are not independent, or that have no order."""
    variance, name = sample.expansion.count_each(), type(sample.design).__name__
    if variance.once or variance.L is not None or variance.df_lost > 1:
        raise DataError(f"two phases need independent draws of one stratum, and those of {name} are not")
    if (variance.unseen < 1).any():
        raise DataError(
            f"two phases need draws with replacement: leave out population= of the {which} design"
        )
    if getattr(sample.design, "draws", None) is None:
        raise DataError(
            f"the {which} design {name} does not say in which order units were drawn: pass draws=, the unit "
            "of each draw, in the same order in both designs"
        )


def find_common_records(careful: Sample, cheap: Sample) -> IntArray | None:
    """Return the careful and the cheap unit of each record with both labels, (r, 2); None if not known."""
    units_of_records = []
    for sample in (careful, cheap):
        piece_of = sample.units.piece_of
        if piece_of is None or sample.units.unmatched or not isinstance(sample.design, UniformRecords):
            return None
        units_of_records.append(pd.Series(sample.units.unit[piece_of], piece_of.index))
    return pd.concat(units_of_records, axis=1, join="inner").to_numpy()


def _need_same_draws(careful: Sample, cheap: Sample, position: IntArray, pairs: IntArray) -> None:
    """Refuse draws of records whose careful and cheap units do not share the record that was drawn."""
    draws = careful.expansion.order, cheap.expansion.order[position]
    # a pair of units as one number, so that all are looked up at once
    width = len(cheap.units)
    apart = np.flatnonzero(~np.isin(draws[0] * width + draws[1], pairs[:, 0] * width + pairs[:, 1]))
    if len(apart):
        one, other = (s.units.ids[d[apart[:1]]] for s, d in zip((careful, cheap), draws, strict=True))
        raise DataError(
            f"the careful and the cheap unit of a draw share the record that was drawn; in {len(apart):,} of "
            f"{len(position):,} draws they share none, such as {head(one)} and {head(other)} of draw "
            f"{apart[0] + 1}: bring both lists of draws into the order of drawing"
        )


def _make_round(sample: Sample, draws: int) -> Round:
    assert isinstance(sample.design, UniformRecords)
    return sample.design.make_round(sample.units, draws)


class Phases(NamedTuple):
    """Rows in which careful labels, cheap labels of the same draws, and those of all draws have a variance.

    `row`: rows of each of the three; `group` (rows,): rows that move together.
    """

    variance: DrawnUnits
    row: Sequence[IntArray]
    group: IntArray

    def spread(self, *effects: Effects) -> list[Effects]:
        """Return effects of the draws of each of the three on all rows, and changes without groups."""
        spread_out = []
        for one, row in zip(effects, self.row, strict=True):
            residual = np.zeros((len(self.group), one.residual.shape[1]))
            change = np.zeros((self.group.max() + 1, one.change.shape[1]))
            residual[row] = one.residual
            np.add.at(change, self.group[row], one.change)
            spread_out.append(replace(one, residual=residual, change=change))
        return spread_out


def share_draws(careful: Sample, cheap: Sample, position: IntArray, pairs: IntArray) -> Phases:
    """Return phases in which a unit counts once in each of the three, and units that share records overlap.

    `pairs` (r, 2): careful and cheap unit of each record with both labels.
    """
    n, first, second = len(position), len(careful.units), len(cheap.units)
    p, q = (_make_round(one, n).p for one in (careful, cheap))
    rounds = [Round(n, np.concatenate([p, q, q])), Round(len(cheap) - n, np.concatenate([0 * p, 0 * q, q]))]
    order = cheap.expansion.order
    sets = [careful.expansion.order, first + order[position], first + second + order]
    both, number = np.unique(pairs, axis=0, return_counts=True)
    c, e, same = both[:, 0], both[:, 1], np.arange(second)
    share = number * (p / careful.units.size)[c]
    i, j = np.concatenate([c, c, first + same]), first + np.concatenate([e, second + e, second + same])
    size = first + 2 * second
    overlap = csr_array((np.concatenate([share, share, q]), (i, j)), (size, size))
    variance = count_once(np.concatenate(sets), rounds, overlap=overlap + overlap.T)
    row = np.split(np.arange(len(variance.unit)), np.cumsum([len(np.unique(x)) for x in sets[:2]]))
    group = connected_components(overlap[variance.unit][:, variance.unit], directed=False)[1]
    return Phases(variance, row, group.astype(np.int64))


def pair_draws(position: IntArray, draws: int) -> Phases:
    """Return phases in which each draw counts, those with careful labels first."""
    n, order = len(position), np.empty(draws, dtype=np.int64)
    order[np.append(position, np.delete(np.arange(draws), position))] = np.arange(draws)
    variance = count_each(np.arange(draws), np.ones(draws), np.repeat([0, 1], [n, draws - n]))
    return Phases(variance, (np.arange(n), np.arange(n), order), np.arange(draws))


def subsample(sample: Sample, position: IntArray) -> Sample:
    """Return the sample of the draws at some positions, (n,), whose weights estimate the same totals."""
    n, expansion = len(position), sample.expansion
    order = expansion.order[position]
    if expansion.once:
        part = count_once(order, [_make_round(sample, n)])
    else:
        weight = expansion.weight[position] * (len(expansion.unit) / n)
        part = count_each(order, weight, absolute=expansion.absolute)
    return Sample(sample.units, sample.design, replace(part, unreached=expansion.unreached))


def _count_changes(cheap: Sample, position: IntArray) -> ChangedShare:
    """Return how often cheap labels differ from the prediction, among careful draws and among all."""
    from scipy.stats import hypergeom  # a second of imports, which few need

    changed = cheap.units.column(EXACT)[cheap.expansion.order] == 0
    x, n = int(changed[position].sum()), len(position)
    # of draws in random order, the number of careful ones that differ is hypergeometric (Fisher's exact test)
    chance = hypergeom.sf(x - 1, len(changed), int(changed.sum()), n)
    return ChangedShare(x / n, float(changed.mean()), float(chance))


def two_phase(
    prediction: Any,
    labels: Any,
    design: Design,
    metrics: MetricLike = DEFAULT_METRICS,
    *,
    cheap: Any,
    cheap_design: Design,
    careful: Sequence[int] | IntArray | None = None,
    undecided: Sequence[int] | IntArray = (),
    frame: Any = None,
) -> AssistedEstimates:
    """Estimate metrics from careful labels of some draws, assisted by cheap labels of all (two phases).

    Parameters
    ----------
    prediction, labels, design, metrics, frame
        As in `erbayes.estimate`, for the draws with careful labels. The design needs `draws=`.
    cheap : memberships
        The cheap labels of all draws, those with careful labels too. None of them needs to be right.
    cheap_design : Design
        The design of all draws, with the unit that each has by the cheap labels, in order of the draws.
    careful : sequence of int, (n,), optional
        Positions of the draws with careful labels among all; by default the first of those that are decided.
    undecided : sequence of int
        Positions of draws that were to have careful labels, which nobody could give. The others stand
        for them, and the table has the worst and the best case.

    Returns
    -------
    AssistedEstimates
        As from `erbayes.assisted`.

    Warns
    -----
    Alarm
        For each sentence of `erbayes.alarms` about the metrics that are not assisted.

    Raises
    ------
    DataError, NotIdentified
        If the input cannot be used, or if the careful labels cannot estimate a metric.

    See Also
    --------
    erbayes.assisted : if the second opinion covers all records.
    erbayes.labels.machine_labels : makes cheap labels of a machine's answers.

    Examples
    --------
    >>> import erbayes as eb
    >>> truth = {i: i // 4 for i in range(800)}
    >>> prediction = {i: i // 4 if i % 16 < 8 else -i for i in range(800)}
    >>> draws = list(range(0, 200, 2))
    >>> careful = {i: c for i, c in truth.items() if c in draws[:25]}
    >>> cheap = {i: c for i, c in truth.items() if c in draws}
    >>> estimates = eb.two_phase(prediction, careful, eb.UniformRecords(draws[:25]), "b3-recall",
    ...                          cheap=cheap, cheap_design=eb.UniformRecords(draws))
    >>> estimates.table()[["estimate", "se_bound", "lambda"]].round(3)
               estimate  se_bound  lambda
    metric
    b3-recall     0.625     0.035     1.0
    """
    metrics = resolve_metrics(metrics)
    count = scan if lies_elsewhere(prediction) else measure
    sample = Sample(count(prediction, labels, frame=frame), design)
    if len(undecided) and careful is None:
        first = range(len(sample) + len(undecided))
        if strange := [x for x in undecided if x not in first]:
            raise DataError(f"undecided are positions of the first {len(first)} draws, not {head(strange)}")
        careful = np.delete(np.array(first), np.asarray(undecided, dtype=int))
    if careful is not None and (twice := np.intersect1d(careful, undecided)).size:
        raise DataError(f"{len(twice)} draws are careful and undecided, such as {head(twice)}: a draw is one")
    every = Sample(count(prediction, cheap, frame=frame), cheap_design)
    estimates = TwoPhase(every, careful)(sample, metrics)
    if len(undecided):
        decided = np.arange(len(sample) + len(undecided)) < len(sample)
        sample = Sample(sample.units, Responding(design, decided))
        estimates = with_cases(estimates, sample, metrics)
    warn_of(estimates.find_alarms(sample, metrics))
    return estimates
