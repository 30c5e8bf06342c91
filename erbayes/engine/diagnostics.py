"""Alarms of a sample: what makes its estimates doubtful, each in a sentence with its grade and remedy."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from .._internal import remedies
from .._internal.errors import Grade, NotIdentified, Remedy, Sentence
from ..design import ByPredictedSize, Stratified, UniformClusters, UniformRecords
from ..design.changes import find_responding
from ..design.contract import innermost
from ..design.records import draws_records
from ..design.sample import ERRORS, Sample, need_sample
from ..metrics.columns import EXACT, PREDICTED_CLUSTERS, RECORDS
from ..metrics.definitions import DEFAULT_METRICS, Group, MetricLike, resolve_metrics
from ..metrics.estimates import Estimates
from ..metrics.tables import is_at_an_end, say_undecided
from ..metrics.unseen import NOTABLE
from ..units.settled import chance_capped
from .closed_form import with_jackknife
from .fitted import Fitted, fit_sample

MIXED = "mixed"
"""How kinds of intervals begin that allow for both readings of a heap in the predicted sizes."""
LEFT_OUT = 0.05
"""Share of labelled records left out above which the rest no longer stands for the population. If the matcher
finds none of the links of what is left out, recall is too high by at most 1/(1 - .05), or 5 %, up to it."""
ROUNDING = 1e-9
"""Distance of an estimate from an end of its range that is rounding."""
FELT = 0.0005
"""Relative error of predicted links that no metric feels. Shares of links move by half a third decimal."""
MISSED = 0.01
"""Chance to miss all clusters larger than those that draws touch that explains nothing, one in a hundred."""
JOINED = 5
"""Number of one-record entities in larger predicted clusters that makes labels doubtful, by convention."""
ALL_WRONG = 20
"""Number of labelled entities, none predicted exactly, that makes their choice doubtful. One sample in twenty
is so where one in seven is right."""


def alarms(
    sample: Sample, metrics: MetricLike = DEFAULT_METRICS, printed: pd.DataFrame | None = None
) -> list[Sentence]:
    """Return the alarms of a sample: sentences about unreliable estimates, each with its grade and remedy.

    The list is empty if there are none. The grade of each sentence says what it means for those who quote a
    number (its `Grade`). These bounds are conventions, not tests of a stated size. A table of all alarms,
    with the reason of each grade and what to do, is in docs/guide/which-estimator.md.

    Parameters
    ----------
    sample : Sample
    metrics : Metric or str, or several
    printed : DataFrame, optional
        The intervals next to which the alarms are read, as `Estimates.table` returns them. By default those
        of the closed form.

    Raises
    ------
    NotIdentified
        If the sample cannot estimate a metric.

    See Also
    --------
    balance : known totals against estimated ones.
    influence : the units that carry an estimate.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b"}, {1: "x", 2: "x"})
    >>> alarms(eb.Sample(units, eb.UniformClusters()))
    ['A single draw gives no variance: label more.']
    """
    need_sample(sample)
    fitted = fit_sample(sample, metrics)
    if sample.expansion.census:
        return _warn_left_out(sample)
    if len(sample) == 1:
        single = Sentence("A single draw gives no variance: label more.", Grade.FAULT)
        return [single, *_warn_left_out(sample)]
    intervals = fitted.estimates.table() if printed is None else printed
    short = _find_short(fitted, intervals)
    unreached_share = _warn_unreached(fitted, short)
    # that fewer links are seen is told by the alarm before, or allowed for by intervals
    excused = bool(unreached_share) or short.empty
    return [
        *_warn_no_variation(fitted.estimates, intervals),
        *warn_heavy_tail(fitted),
        *unreached_share,
        *_warn_heap(fitted, intervals),
        *out_of_balance(sample, metrics, excused),
        *warn_undecided(sample),
        *_warn_records(sample),
        *_warn_odd_labels(sample),
        *([] if sample.units.known is None else sample.units.known.look()),
        *_warn_left_out(sample),
    ]


def _choose_shorter(intervals: pd.DataFrame, lengths: Mapping[str, float]) -> pd.DataFrame:
    """Return the rows about metrics, by name, whose intervals are at most as long as these `lengths`."""
    rows = intervals if "metric" in intervals else intervals.reset_index()
    longest = np.array([lengths.get(name, -np.inf) for name in rows["metric"]])
    short: pd.DataFrame = rows[rows["upper"].to_numpy() - rows["lower"].to_numpy() <= longest]
    return short


def _name_intervals(rows: pd.DataFrame) -> str:
    kinds, names = (", ".join(rows[column].unique()) for column in ("kind", "metric"))
    return f"{kinds} intervals of {names}"


# docstrings quote the name that an alarm has in docs/guide/which-estimator.md
def _warn_no_variation(fit: Estimates, intervals: pd.DataFrame) -> list[Sentence]:
    """Return "no variation: no draw shows an error", or "no variation, all draws are alike"."""
    settled = np.ptp(fit.unseen.certain, axis=-1) <= ROUNDING  # labels leave one value, if they are right
    still = np.flatnonzero((fit.sd == 0) & ~settled).tolist()
    sure = [(fit.names[j], is_at_an_end(float(fit.mean[j]), fit.support[j])) for j in still]
    flawless, equal = ([name for name, end in sure if end is wanted] for wanted in (True, False))
    sentences = []
    if flawless:
        points, grade = _choose_shorter(intervals, dict.fromkeys(flawless, ROUNDING)), Grade.FAULT
        what = f"The sample shows no variation of {', '.join(flawless)}: a standard error of 0 is no "
        if points.empty:
            said, grade = "intervals allow for errors that no draw has shown.", Grade.NOTE
        else:
            said = f"{_name_intervals(points)} have no length: do not quote them."
        sentences.append(Sentence(f"{what}evidence of perfection, and {said}", grade))
    if equal:
        what = f"The sample shows no variation of {', '.join(equal)}, since all draws are alike: "
        if _choose_shorter(intervals, dict.fromkeys(equal, ROUNDING)).empty:
            what += "only unseen draws give its interval a length; label more."
        else:
            what += "an interval without length is no evidence of certainty; label more."
        sentences.append(Sentence(what, Grade.CAUTION))
    return sentences


def _find_short(fitted: Fitted, intervals: pd.DataFrame) -> pd.DataFrame:
    """Return the rows whose intervals do not allow for unreached predicted links."""
    share, certain = fitted.sample.out_of_reach, np.ptp(fitted.estimates.unseen.certain, axis=-1)
    # what is out of reach may be all right or all wrong, and an interval of both is as long as its share, or
    # as what labels leave possible
    lengths = {
        metric.name: min(float(share[at]), length) - ROUNDING
        for metric, length in zip(fitted.metrics, certain.tolist(), strict=True)
        if (at := metric.averaged[fitted.sample.units.by_entity]) >= 0
    }
    return _choose_shorter(intervals, lengths)


def _warn_unreached(fitted: Fitted, short: pd.DataFrame) -> list[Sentence]:
    """Return "links out of reach": predicted links in clusters larger than any that the sample touches."""
    if (unreached := float(fitted.sample.unreached_links)) <= NOTABLE:
        return []
    what = f"{unreached:.0%} of all predicted links lie in clusters larger than any that the sample touches"
    if len(short):
        what += f", and {_name_intervals(short)} are too short to allow for what these hold"
    elif any(metric.group is Group.LINKS for metric in fitted.metrics):
        entities = " and recall" if fitted.sample.out_of_reach[1] else ""
        what += f": intervals of precision{entities} allow any value there"
        what += "" if entities else ", and recall is that of what draws can reach"
    return [Sentence(what, Grade.FAULT if len(short) else Grade.CAUTION, *reach_large(fitted.sample))]


def _warn_heap(fitted: Fitted, intervals: pd.DataFrame) -> list[Sentence]:
    """Return "a heap in the predicted sizes", which a matcher's cap may have made, if intervals ignore it."""
    heap, looks = fitted.sample.heap, fitted.sample.looks
    if heap is None or not chance_capped(looks):
        return []
    names = [m.name for m in fitted.metrics if m.depends_on_true_size]
    rows = _choose_shorter(intervals, dict.fromkeys(names, np.inf))
    rows = rows[~rows["kind"].str.startswith(MIXED)]
    if rows.empty:
        return []
    seen = "" if looks is None else f". {looks}"
    what = f"{heap}{seen}. {_name_intervals(rows)} do not allow for entities that are cut"
    model = Remedy("a size model allows for it", "engine='size model'", "--engine size-model")
    remedy = remedies.LOOK if looks is None else model
    return [Sentence(what, Grade.FAULT, remedy, show_heap(fitted.sample))]


def _estimate_records(sample: Sample) -> tuple[float, float, float] | None:
    """Return the estimated number of records of units that count once, its error, and the number N itself.

    Σ N_c/π_c is unbiased for N, if draws are as the design says. None if the design has no such chances.
    """
    draws, units = sample.expansion, sample.units
    if not draws.once or draws.theta is None or draws.L is not None or units.population is None:
        return None
    if not draws.reaches(RECORDS):
        return None
    N = getattr(innermost(sample.design), "records", None)
    N = float(units.population if N is None or units.unmatched else N)
    size = units.size[draws.unit]
    estimate = float(draws.weight @ size)
    # the variance among all units, of which a row stands for as many as its weight says: the unbiased one is
    # near 0 for draws without a repeat, whatever their number
    scale, unseen, n = N / estimate, 0.0, len(draws.order)
    if draws.repeats is not None:  # so that the chances of all units add to 1, as draws are of a fixed number
        times = np.bincount(draws.order, minlength=len(units))[draws.unit]
        expected = np.bincount(draws.order, 1 / draws.repeats, len(units))[draws.unit] / times
        scale = n / float(draws.weight @ expected)
        # unless chances are those of records, one unseen draw may differ from all others
        unseen = 0.0 if np.allclose(expected * N, n * size, rtol=1e-9) else estimate / n
    y = draws.weight**2 * size * scale
    pi = np.asarray(draws.A.T @ (1 - draws.unseen) / draws.A.sum(axis=0))
    joint = draws.G * np.outer(pi, pi) / (1 - draws.G)
    sums = draws.A.T @ y
    within = draws.unseen - np.asarray(draws.A @ np.diag(joint)) * draws.weight
    variance = float(sums @ joint @ sums + (y * size) @ within)
    if draws.by_share is not None:
        slope, shares = draws.by_share
        variance += float((draws.weight * size) @ slope @ shares @ slope.T @ (draws.weight * size))
    return estimate, float(np.hypot(np.sqrt(max(variance, 0.0)), unseen)), N


def _warn_records(sample: Sample) -> list[Sentence]:
    """Return "draws from another number of records" than N, or dependent ones, by the records they tell."""
    found = _estimate_records(sample)
    if found is None or abs(found[0] - found[2]) <= ERRORS * found[1] + ROUNDING * found[2]:
        return []
    estimate, error, N = found
    what = f"By the units that draws have found, they are from {estimate:,.0f} records (se {error:,.0f}), "
    what += f"not from the {N:,.0f} of the prediction: "
    if estimate < N:
        what += "too few different units, so that draws are listed more than once, or units were left out"
        return [Sentence(what, Grade.FAULT)]
    what += "repeats were dropped, no record could be drawn twice, or more records could be drawn"
    uniform = isinstance(sample.design, UniformRecords)
    ways = (remedies.DISTINCT, remedies.MORE_RECORDS) if uniform else (remedies.EVERY_DRAW,)
    return [Sentence(what, Grade.FAULT, *ways)]


def say_what_would_show(sample: Sample) -> list[str]:
    """Return what an alarm of the draws would have found, where it found nothing."""
    found = _estimate_records(sample)
    if found is None or found[1] <= 0:
        return []
    most = found[2] + ERRORS * found[1]
    return [
        f"Draws from {most:,.0f} records or more, with the {found[2]:,.0f} of the prediction among them, "
        "would have raised an alarm, as draws of half of the records without replacement do"
    ]


def _warn_odd_labels(sample: Sample) -> list[Sentence]:
    """Return "each labelled entity has one record", or "no labelled entity is predicted exactly"."""
    units = sample.units
    joined = int((units.m > 1).sum())
    if units.by_entity and joined >= JOINED and not (units.N > 1).any():
        what = f"Each of the {len(units):,} labelled entities has a single record, although the prediction "
        what += f"joins {joined:,} of these to others: labels must list every record of each sampled entity"
    elif units.by_entity and len(units) >= ALL_WRONG and not units.column(EXACT).any():
        what = (
            f"None of the {len(units):,} labelled entities is predicted exactly. If they were chosen because "
            "they looked wrong, no estimate can be trusted: draw at random"
        )
    else:
        return []
    return [Sentence(what, Grade.FAULT)]


def _warn_left_out(sample: Sample) -> list[Sentence]:
    """Return "labelled records left out", if they are many, since the prediction has none of them."""
    units = sample.units
    # the other policies leave the number of predicted clusters, or all totals, unknown
    if not units.unmatched or units.known is None or not units.known.singletons:
        return []
    labelled = units.unmatched + int(units.n.sum())
    if units.unmatched <= LEFT_OUT * labelled:
        return []
    what = (
        f"{units.unmatched:,} of {labelled:,} labelled records ({units.unmatched / labelled:.0%}) are left "
        "out, since they are in no predicted cluster. They are rarely like the others: if the matcher linked "
        "them to nothing, recall is too high"
    )
    return [Sentence(what, Grade.FAULT, remedies.ALL_RECORDS)]


def warn_undecided(sample: Sample) -> list[Sentence]:
    """Return "draws undecided", as nobody could resolve them, and "no draw of a large cluster resolved"."""
    design = find_responding(sample.design)
    if design is None:
        return []
    tried = design.tried.sum()
    said = f"{round(design.unresolved * tried):,} of {tried:,} draws are undecided"
    if design.odds == 1:
        sentences = [say_undecided(said, design.unresolved, "other draws of their classes")]
    else:
        what = f"{said}: they have {design.odds:g} times the odds of an error of other draws of their classes"
        sentences = [Sentence(f"{what}, which you state and no label shows", Grade.CAUTION)]
    lost = design.expect_lost()
    if len(lost := lost[lost < MISSED].sort_values()):
        large = f"{len(lost)} large predicted cluster{'s' * (len(lost) > 1)}"
        what = (
            f"No draw of {large} is resolved, such as {lost.index[0]!r}, which "
            "chance leaves in fewer than one sample in a hundred: no other draw is like those of an entity "
            "that is wholly missing"
        )
        sentences.append(Sentence(what, Grade.FAULT, Remedy("ask more annotators about these draws")))
    return sentences


def warn_heavy_tail(fitted: Fitted) -> list[Sentence]:
    """Return "a single unit carries an estimate", or "heavy tail": estimates that depend on few units."""
    alone = "A single unit carries an estimate ({}): label more."
    try:
        jack = with_jackknife(fitted.plain, fitted)
    except NotIdentified as undefined:
        return [Sentence(alone.format(undefined), Grade.CAUTION)]
    sentences, fit = [], fitted.estimates
    reasons = zip(fit.names, fit.undefined, jack.undefined, strict=True)
    fragile = [name for name, before, after in reasons if after and not before]
    if fragile:
        left_out = f"{', '.join(fragile)} is 0/0 if one draw is left out"
        sentences.append(Sentence(alone.format(left_out), Grade.CAUTION))
    both = zip(fit.names, jack.uncut_sd, fit.uncut_sd, strict=True)
    heavy = [name for name, j, t in both if j > 1.5 * t > 0]
    if heavy:
        what = f"Heavy tail: jackknife standard errors exceed Taylor's by half or more for {', '.join(heavy)}"
        sentences.append(Sentence(what, Grade.CAUTION, remedies.INFLUENCE))
    return sentences


def _find_missed_by_chance(sample: Sample) -> float:
    """Return the share of unreached predicted links if chance may have missed them, else 0."""
    design = sample.design
    # a draw reaches a record, or an entity, which is in a cluster at least and in few as a rule
    by_unit = RECORDS if draws_records(design, sample.units) else PREDICTED_CLUSTERS
    chance = design.probability if isinstance(design, ByPredictedSize) else by_unit
    missed = (1 - float(sample.unreached_share(chance))) ** len(sample)
    return float(sample.unreached_links) if missed > MISSED else 0.0


def out_of_balance(
    sample: Sample, metrics: MetricLike = DEFAULT_METRICS, excused: bool = True
) -> list[Sentence]:
    """Return "out of balance" if estimated predicted links are over 3 errors off their known number.

    If `excused`, the estimate may leave out unreached links that chance can have missed.
    """
    if (found := sample.balance_links) is None:
        return []
    estimate, error, known = float(found[0]), float(found[1]), found[2]
    # the last term lets rounding pass in a census
    margin = ERRORS * error + 1e-9 * known
    least = known * (1 - _find_missed_by_chance(sample)) if excused else known
    if least - margin <= estimate <= known + margin:
        return []
    what = f"Out of balance: the sample estimates {estimate:,.0f} predicted links (se {error:,.0f}), "
    what += f"the prediction holds {known:,.0f}"
    if abs(estimate - known) <= FELT * known:
        return [Sentence(f"{what}, which moves no metric by a unit of its third decimal.", Grade.NOTE)]
    what += _explain_balance(sample, estimate > known)
    counted = any(metric.group is Group.LINKS for metric in resolve_metrics(metrics))
    # draws of entities often meet too few large clusters by chance, for which intervals then allow
    allowed = excused and estimate < known and not draws_records(sample.design, sample.units)
    grade = Grade.FAULT if counted and not allowed else Grade.CAUTION
    return [Sentence(what, grade, *reach_large(sample))]


def _explain_balance(sample: Sample, above: bool) -> str:
    """Say which clusters a sample has too few of: small ones, if it estimates too many predicted links."""
    units, draws, known = sample.units, sample.expansion, sample.units.known
    assert known is not None  # as their links are
    weight = np.bincount(draws.unit, draws.weight, len(units))[units.unit]
    counted, records = units.n if units.counted is None else units.counted, known.size * known.count
    found = np.bincount(np.searchsorted(known.size, units.m), weight * counted, len(known.size))
    found *= records.sum() / found.sum()
    # the size at which most records of smaller clusters are missing, or of larger ones
    gap = np.cumsum(records - found)[:-1]
    at = int((gap if above else -gap).argmax())
    part = slice(at + 1) if above else slice(at + 1, None)
    size = f"{known.size[at]:,.0f} or fewer" if above else f"{known.size[at + 1]:,.0f} or more"
    what = (
        f"by chance the sample has too few {'small' if above else 'large'} clusters (it estimates "
        f"{found[part].sum():,.0f} records in clusters of {size}, the prediction holds "
        f"{records[part].sum():,.0f}), and its metrics are those of the others"
    )
    # a design that compares the prediction with the one drawn from refuses any other
    same = known.equals(getattr(innermost(sample.design), "drawn_from", None))
    other = "either the prediction is not the population that was sampled, and must be restricted to it, or "
    return f": {'' if same else other}{what}"


def show_heap(sample: Sample) -> Remedy:
    """Return which draws show what a heap in the predicted sizes is."""
    return remedies.MORE if draws_records(sample.design, sample.units) else remedies.RECORDS


def reach_large(sample: Sample) -> tuple[Remedy, ...]:
    """Return how to reach the clusters that a sample has too few of: never by another draw of records."""
    by_entity = isinstance(sample.design, UniformClusters | Stratified)
    return (remedies.MORE, remedies.RECORDS) if by_entity else (remedies.MORE,)
