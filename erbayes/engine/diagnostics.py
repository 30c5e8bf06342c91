"""Diagnostics of a sample: balance against known totals, influence of units, alarms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from .._internal.errors import Grade, NotIdentified, Remedy, Sentence
from ..design import UniformRecords
from ..design.calibration import links_out_of_reach
from ..design.contract import WithChances, WithLaw
from ..design.nonresponse import Responding
from ..design.sample import Sample, need_sample
from ..metrics.columns import PIECES, PREDICTED_CLUSTERS, PREDICTED_LINKS, RECORDS, ClusterSum, Known, pairs
from ..metrics.definitions import (
    PER_RECORD,
    POSITIVE,
    USUAL,
    Group,
    Metric,
    N,
    Value,
    Wanted,
    chosen,
    chosen_one,
    pairwise_precision,
)
from ..metrics.uncertain import EMPTY, Draws, Normal
from ..metrics.unseen import NOTABLE
from .closed_form import effects, taylor
from .leave_one_out import jackknife

UNRESOLVED = 0.1
"""Share of unresolved draws above which estimates depend on an assumption about them."""
LEFT_OUT = 0.05
"""Share of labelled records left out above which the rest no longer stands for the population. If the matcher
finds none of the links of what is left out, recall is too high by at most 1/(1 - .05), or 5 %, up to it."""
ROUNDING = 1e-9
"""Distance of an estimate from an end of its range that is rounding."""
ERRORS = 3.0
"""Standard errors between estimated and known predicted links above which a sample is out of balance, which
chance brings in one of 370 samples if estimates are normal."""
JOINED = 5
"""Number of one-record entities in larger predicted clusters that makes labels doubtful, by convention."""


def balance(sample: Sample) -> pd.DataFrame:
    """Compare estimated totals of the prediction with known ones.

    Totals are estimated as N Σ w y / Σ w records, in which an unknown scale of the weights w cancels. If
    weights are absolute, a further row compares the estimated number of records with N. Under a heavy tail
    the sample misses large clusters, and estimates too few predicted links.

    Returns
    -------
    DataFrame
        One row per total. Columns: estimate, se, known, ratio (of the estimate to the known one).

    Raises
    ------
    NotIdentified
        If the totals of the prediction are not known.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b", 4: "b"}, {1: "x", 2: "x"})
    >>> balance(eb.Sample(units, eb.UniformClusters()))["ratio"]
    predicted_links       1.0
    predicted_clusters    1.0
    Name: ratio, dtype: float64
    """
    need_sample(sample)
    totals = [PREDICTED_LINKS, PREDICTED_CLUSTERS]
    ratios = [scale_to_records(c) for c in totals]
    if sample.expansion.absolute:
        totals.insert(0, RECORDS)
        ratios.insert(0, Metric("records", (RECORDS,), lambda r: r, PER_RECORD, POSITIVE, "Σw records"))
    fit = taylor(sample, ratios).apply(ratios, order=1)
    return compare_with_known(fit, [sample.known(Known(c)) for c in totals])


def scale_to_records(column: ClusterSum) -> Metric:
    """Return a total as a ratio to records, times their known number."""
    return Metric(column.name, (column, RECORDS, N), _scale, PER_RECORD, POSITIVE, "N Σwy / Σw records")


def _scale(y: Value, r: Value, N: Value) -> Value:
    return N * y / r


def compare_with_known(fit: Normal, totals: Sequence[float]) -> pd.DataFrame:
    """Return a table of estimated and known totals, (k,), with their ratio."""
    known = np.array(totals)
    ratio = np.divide(fit.mean, known, out=np.full(len(known), np.nan), where=known > 0)
    columns = {"estimate": fit.mean, "se": fit.sd, "known": known, "ratio": ratio}
    return pd.DataFrame(columns, index=list(fit.names))


def influence(sample: Sample, metric: Metric | str = pairwise_precision) -> pd.DataFrame:
    """Return the influence of each unit on a metric, the largest first.

    Influence is how much a unit moves the metric to first order: J (z - z̄) summed over its draws, with J the
    gradient of the metric by the totals, z the contribution of a draw, and z̄ the mean of contributions.
    Without a unit the estimate changes by about minus its influence. Influences sum to 0.

    Returns
    -------
    DataFrame
        One row per unit. Columns:

        - records, pieces and draws: their numbers.
        - missing: records of the unit outside its largest piece.
        - wrong: records of others in the predicted cluster of that piece.
        - foreign_links: predicted links between the unit and other records.
        - influence: in the unit of the metric.

    Raises
    ------
    NotIdentified
        If the metric is 0/0 in the sample.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b"}, {1: "x", 2: "x", 3: "y"})
    >>> influence(eb.Sample(units, eb.UniformClusters()), "mean-cluster-size")["influence"]
    x    0.25
    y   -0.25
    Name: influence, dtype: float64
    """
    need_sample(sample)
    units, expansion = sample.units, sample.expansion
    metric = chosen_one(metric)
    effect = effects(sample, [metric])[:, 0]
    if np.isnan(effect).any():
        raise NotIdentified(f"no unit has an influence on {metric.name}: {EMPTY}")
    order = np.lexsort((units.m, units.n, units.unit))
    main = order[np.append(np.flatnonzero(np.diff(units.unit[order])), len(order) - 1)]
    foreign = units.n * (units.m - 1) - 2 * pairs(units.n)
    columns = {
        "records": units.size,
        "pieces": units.column(PIECES),
        "missing": units.size - units.n[main],
        "wrong": units.m[main] - units.n[main],
        "foreign_links": np.bincount(units.unit, foreign, len(units)),
        "draws": np.bincount(expansion.unit, minlength=len(units)),
        "influence": np.bincount(expansion.unit, effect - effect.mean(), len(units)),
    }
    table = pd.DataFrame(columns, index=units.ids)
    return table.sort_values("influence", key=np.abs, ascending=False, kind="stable")


def alarms(sample: Sample, metrics: Wanted = USUAL) -> list[Sentence]:
    """Return the alarms of a sample: sentences about doubtful estimates, each with its grade and remedy.

    The list is empty if there are none. The grade of each sentence says what it means for those who quote a
    number (its `Grade`). These bounds are conventions, not tests of a stated size.

    - Note: no draw shows an error of a metric, so that its standard error is 0.
    - Caution: a standard error is 0 although the metric is not at an end of its range; a jackknife standard
      error is over 1.5 times Taylor's; a single draw decides whether a metric is 0/0.
    - Fault: there is a single draw; estimated predicted links are over 3 standard errors off their known
      number; over a tenth of all predicted links are in clusters larger than any in the sample, and a metric
      counts links (else a caution); over a tenth of the draws are unresolved (see `Responding`); over three
      repeats are expected, and there is none; each labelled entity has one record, and the prediction joins
      five or more of these to others; over a twentieth of the labelled records are left out
      (`Missing.OMIT`), which a census can have too.

    Raises
    ------
    NotIdentified
        If the sample cannot estimate a metric.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b"}, {1: "x", 2: "x"})
    >>> alarms(eb.Sample(units, eb.UniformClusters()))
    ['A single draw gives no variance: label more units.']
    """
    need_sample(sample)
    metrics = chosen(metrics)
    if sample.expansion.variance.census:
        return _warn_left_out(sample)
    if len(sample.expansion.unit) == 1:
        single = Sentence("A single draw gives no variance: label more units.", Grade.FAULT)
        return [single, *_warn_left_out(sample)]
    fit = taylor(sample, metrics).apply(metrics)
    return [
        *_warn_no_variation(fit),
        *warn_heavy_tail(sample, metrics, fit),
        *_warn_out_of_reach(sample, metrics),
        *out_of_balance(sample),
        *_warn_unresolved(sample),
        *_warn_repeats_dropped(sample),
        *_warn_entities_of_one(sample),
        *_warn_left_out(sample),
    ]


def _warn_no_variation(fit: Normal) -> list[Sentence]:
    """Return the alarms of metrics without a standard error: at an end of their range, and inside it."""
    sure = [(name, at_an_end(fit, j)) for j, name in enumerate(fit.names) if fit.sd[j] == 0]
    flawless, equal = ([name for name, end in sure if end is wanted] for wanted in (True, False))
    sentences = []
    if flawless:
        what = (
            f"The sample shows no variation of {', '.join(flawless)}: a standard error of 0 is no evidence "
            "of perfection, and the default interval allows for errors that no draw has shown."
        )
        sentences.append(Sentence(what, Grade.NOTE))
    if equal:
        what = (
            f"The sample shows no variation of {', '.join(equal)}, since all draws are alike: an interval "
            "without length is no evidence of certainty; label more units."
        )
        sentences.append(Sentence(what, Grade.CAUTION))
    return sentences


def at_an_end(fit: Normal | Draws, j: int) -> bool:
    """Return whether an estimate is an end of its range up to rounding, as without an error in the sample."""
    return bool(np.isclose(fit.estimate[j], fit.support[j], rtol=0, atol=ROUNDING).any())


def _warn_out_of_reach(sample: Sample, metrics: Sequence[Metric]) -> list[Sentence]:
    """Return the alarm of predicted links in clusters larger than any that the sample touches."""
    if sample.units.known is None or (beyond := links_out_of_reach(sample.units)) <= NOTABLE:
        return []
    counted = any(metric.group is Group.LINKS for metric in metrics)
    what = f"{beyond:.0%} of all predicted links lie in clusters larger than any that the sample touches"
    return [Sentence(what, Grade.FAULT if counted else Grade.CAUTION, _describe_remedy(sample))]


def _warn_repeats_dropped(sample: Sample) -> list[Sentence]:
    """Return the alarm of repeats that were to be expected, and that the labels do not show."""
    if (repeats := _count_expected_repeats(sample)) <= 3:
        return []
    remedy = Remedy.DISTINCT if isinstance(sample.design, UniformRecords) else Remedy.EVERY_DRAW
    what = (
        f"About {repeats:.0f} pairs of draws of the same unit were to be expected and the labels show none: "
        "repeats were dropped, or the prediction is not the population that was sampled"
    )
    return [Sentence(what, Grade.FAULT, remedy)]


def _warn_entities_of_one(sample: Sample) -> list[Sentence]:
    """Return the alarm of labels that seem to list drawn records only, not all records of their entities."""
    units = sample.units
    joined = int((units.m > 1).sum())
    if not units.by_entity or (units.N > 1).any() or joined < JOINED:
        return []
    what = (
        f"Each of the {len(units.n):,} labelled entities has a single record, although the prediction joins "
        f"{joined:,} of these records to others: the labels must list every record of each sampled entity, "
        "not only the drawn records."
    )
    return [Sentence(what, Grade.FAULT)]


def _warn_left_out(sample: Sample) -> list[Sentence]:
    """Return the alarm of too many labelled records that were left out, since the prediction has none."""
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
    return [Sentence(what, Grade.FAULT, Remedy.ALL_RECORDS)]


def _warn_unresolved(sample: Sample) -> list[Sentence]:
    """Return the alarm of too many draws that nobody could resolve."""
    design = sample.design
    if not isinstance(design, Responding) or design.unresolved <= UNRESOLVED:
        return []
    what = (
        f"{design.unresolved:.0%} of the draws are unresolved, and estimates assume that these are like the "
        "resolved draws of their classes"
    )
    return [Sentence(what, Grade.FAULT, Remedy.WORST_CASES)]


def warn_heavy_tail(sample: Sample, metrics: Sequence[Metric], fit: Normal) -> list[Sentence]:
    """Return the alarms of estimates that depend on few units."""
    alone = "A single unit carries an estimate ({}): label more units."
    try:
        jack = jackknife(sample, metrics)
    except NotIdentified as undefined:
        return [Sentence(alone.format(undefined), Grade.CAUTION)]
    sentences = []
    reasons = zip(fit.names, fit.undefined, jack.undefined, strict=True)
    fragile = [name for name, before, after in reasons if after and not before]
    if fragile:
        left_out = f"{', '.join(fragile)} is 0/0 if one draw is left out"
        sentences.append(Sentence(alone.format(left_out), Grade.CAUTION))
    heavy = [m for m, j, t in zip(fit.names, jack.sd, fit.sd, strict=True) if j > 1.5 * t > 0]
    if heavy:
        what = f"Heavy tail: jackknife standard errors exceed Taylor's by half or more for {', '.join(heavy)}"
        sentences.append(Sentence(what, Grade.CAUTION, Remedy.INFLUENCE))
    return sentences


def unbalanced_links(sample: Sample) -> pd.Series | None:
    """Return the row of predicted links in `balance` if they are out of balance, else None."""
    unreached = sample.expansion.unreached
    if sample.units.population is None or (unreached is not None and unreached.column(RECORDS).any()):
        return None
    links = balance(sample).T["predicted_links"]
    # the last term lets rounding pass where the standard error is 0
    return links if abs(links.estimate - links.known) > ERRORS * links.se + 1e-9 * links.known else None


def out_of_balance(sample: Sample) -> list[Sentence]:
    """Return the alarm if estimated predicted links are over 3 standard errors off their known number."""
    links = unbalanced_links(sample)
    if links is None:
        return []
    what = (
        f"Out of balance: the sample estimates {links.estimate:,.0f} predicted links (se {links.se:,.0f}), "
        f"the prediction holds {links.known:,.0f}: either the prediction is not the population that was "
        "sampled, and must be restricted to it, or the sample missed large clusters"
    )
    return [Sentence(what, Grade.FAULT, _describe_remedy(sample))]


def _describe_remedy(sample: Sample) -> Remedy:
    """Return how to reach large clusters, for a sample that missed them."""
    design = sample.design
    by_entity = isinstance(design, WithLaw) and not design.weights_follow_labels
    return Remedy.BY_SIZE if by_entity else Remedy.LARGE


def _count_expected_repeats(sample: Sample) -> float:
    """Return the expected pairs of draws of one unit, C2(n) Σ p_c², if no repeat was drawn; else 0."""
    unit, design = sample.expansion.unit, sample.design
    if not isinstance(design, WithChances) or getattr(design, "population", None) is not None:
        return 0.0
    if sample.units.population is None or len(np.unique(unit)) < len(unit):
        return 0.0
    # the mean chance of drawn units estimates Σ p_c², since a unit is drawn with chance p_c
    return float(len(unit) * (len(unit) - 1) / 2 * design.chances(sample.units)[unit].mean())
