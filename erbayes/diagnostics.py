"""What stands behind an estimate: balance against known totals, influence of each unit, alarms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from .calibration import links_out_of_reach
from .columns import PIECES, PREDICTED_CLUSTERS, PREDICTED_LINKS, RECORDS, ClusterSum, Known, pairs
from .design import UniformRecords
from .engine.closed_form import effects, taylor
from .engine.jackknife import jackknife
from .errors import DataError, NotIdentified
from .frame import Cut
from .metrics import (
    PER_RECORD,
    POSITIVE,
    USUAL,
    Metric,
    N,
    Wanted,
    chosen,
)
from .sample import Sample, need_sample
from .uncertain import EMPTY, Normal

JOINED = 5
"""Records of one-record entities that the prediction joins to others, from which the labels are doubted."""


def balance(sample: Sample) -> pd.DataFrame:
    """Estimated against known totals of the prediction.

    Totals are estimated as N Σ w y / Σ w records, which no unknown scale of the weights touches;
    where weights are absolute a row tells how well they sum to N. Under a heavy tail the sample
    misses the giants and estimates too few predicted links.

    Returns
    -------
    DataFrame
        Rows: totals. Columns: estimate, se, known, ratio (estimate / known; NaN where that is 0).

    Raises
    ------
    NotIdentified
        Where the totals of the prediction are not known.

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

    def scaled(column: ClusterSum) -> Metric:
        return Metric(
            column.name,
            (column, RECORDS, N),
            lambda y, r, N: N * y / r,
            PER_RECORD,
            POSITIVE,
            "N Σwy / Σw records",
        )

    columns = [PREDICTED_LINKS, PREDICTED_CLUSTERS]
    ratios = [scaled(c) for c in columns]
    if sample.expansion.absolute:
        columns.insert(0, RECORDS)
        ratios.insert(0, Metric("records", (RECORDS,), lambda r: r, PER_RECORD, POSITIVE, "Σw records"))
    found = taylor(sample, ratios).apply(ratios, order=1)
    known = np.array([sample.known(Known(c)) for c in columns])
    ratio = np.divide(found.mean, known, out=np.full(len(known), np.nan), where=known > 0)
    return pd.DataFrame(
        {"estimate": found.mean, "se": found.sd, "known": known, "ratio": ratio},
        index=list(found.names),
    )


def influence(sample: Sample, metric: Metric | str) -> pd.DataFrame:
    """Which units drive an estimate, the most influential first.

    Influence is J (z_s - z̄), the linearised effect on the metric, summed over the draws of a unit:
    it sums to 0, and leaving a unit out moves the estimate by about minus its influence.

    Returns
    -------
    DataFrame, one row a unit
        records; pieces; missing (records outside the unit's largest piece) and wrong (records of
        others in the predicted cluster of that piece); foreign_links (predicted links that leave the
        unit's pieces); draws; influence.

    Raises
    ------
    NotIdentified
        A metric that is 0/0 in the sample.
    """
    need_sample(sample)
    units, expansion = sample.units, sample.expansion
    metric, *others = chosen(metric)
    if others:
        raise DataError(f"influence is on one metric, not on {1 + len(others)}")
    effect = effects(sample, [metric])[:, 0]
    if np.isnan(effect).any():
        raise NotIdentified(f"no unit has an influence on {metric.name}: {EMPTY}")
    order = np.lexsort((units.m, units.n, units.unit))
    main = order[np.append(np.flatnonzero(np.diff(units.unit[order])), len(order) - 1)]
    table = pd.DataFrame(
        {
            "records": units.size,
            "pieces": units.column(PIECES),
            "missing": units.size - units.n[main],
            "wrong": units.m[main] - units.n[main],
            "foreign_links": np.bincount(
                units.unit, units.n * (units.m - 1) - 2 * pairs(units.n), len(units)
            ),
            "draws": np.bincount(expansion.unit, minlength=len(units)),
            "influence": np.bincount(expansion.unit, weights=effect - effect.mean(), minlength=len(units)),
        },
        index=units.ids,
    )
    return table.sort_values("influence", key=np.abs, ascending=False, kind="stable")


def alarms(sample: Sample, metrics: Wanted = USUAL) -> list[str]:
    """What is wrong with an estimate, in sentences that name the remedy; empty where nothing is.

    A single draw; standard errors of 0 in a sample that is not a census; jackknife standard errors
    above 1.5 times Taylor's; predicted links estimated more than 3 standard errors off their known
    number; more than a tenth of all predicted links in clusters larger than any that the sample
    touches; at least three repeats to be expected under uniform records where the draws show none; dates
    (`erbayes.Dated`) that show the labels to be older than the frame; labelled entities of one record
    each, of which the prediction joins five or more to others.
    The bounds are conventions, not tests of a stated size.

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
        return []
    if len(sample.expansion.unit) == 1:
        return ["A single draw gives no variance: label more units."]
    found = []
    fit = taylor(sample, metrics).apply(metrics)
    sure = [m for m, sd in zip(fit.names, fit.sd, strict=True) if sd == 0]
    if sure:
        found.append(
            f"The sample shows no variation of {', '.join(sure)}: a standard error of 0 is no evidence "
            "of perfection; label more units."
        )
    found += _heavy_tail(sample, metrics, fit)
    if sample.units.known is not None and (beyond := links_out_of_reach(sample.units)) > 0.1:
        found.append(
            f"{beyond:.0%} of all predicted links lie in clusters larger than any that the sample "
            "touches; sample with probability proportional to size."
        )
    found += out_of_balance(sample) + _labels_older(sample)
    if (repeats := _repeats_expected(sample)) > 3:
        found.append(
            f"About {repeats:.0f} pairs of draws of the same unit were to be expected and the labels "
            "show none: if repeats were dropped, the design is DistinctEntities; otherwise the "
            "prediction is not the population that was sampled."
        )
    return found + _entities_of_one(sample)


def _entities_of_one(sample: Sample) -> list[str]:
    """The alarm of labels that seem to list drawn records alone, not all records of their entities."""
    units = sample.units
    joined = int((units.m > 1).sum())
    if not units.by_entity or (units.N > 1).any() or joined < JOINED:
        return []
    return [
        f"Each of the {len(units.n):,} labelled entities has a single record, although the prediction joins "
        f"{joined:,} of these records to others: the labels must list every record of each sampled entity, "
        "not the drawn records alone."
    ]


def _heavy_tail(sample: Sample, metrics: Sequence[Metric], fit: Normal) -> list[str]:
    try:
        jack = jackknife(sample, metrics)
    except NotIdentified as undefined:
        return [f"A single unit carries an estimate ({undefined}): label more units."]
    found = []
    reasons = zip(fit.names, fit.undefined, jack.undefined, strict=True)
    alone = [name for name, before, after in reasons if after and not before]
    if alone:
        found.append(
            f"A single unit carries an estimate ({', '.join(alone)} is 0/0 where one draw is left out): "
            "label more units."
        )
    heavy = [m for m, j, t in zip(fit.names, jack.sd, fit.sd, strict=True) if j > 1.5 * t > 0]
    if not heavy:
        return found
    return [
        *found,
        f"Heavy tail: jackknife standard errors exceed Taylor's by half or more for {', '.join(heavy)}; "
        "few units carry the estimate, see influence(), and trust no closed-form interval.",
    ]


def out_of_balance(sample: Sample) -> list[str]:
    """The alarm of a sample whose predicted links are over 3 standard errors off their known number."""
    if sample.units.population is None:
        return []
    links = balance(sample).loc["predicted_links"]
    if not abs(links.estimate - links.known) > 3 * links.se + 1e-9 * links.known:
        return []
    return [
        f"Out of balance: the sample estimates {links.estimate:,.0f} predicted links (se {links.se:,.0f}), "
        f"the prediction holds {links.known:,.0f}; the sample missed large clusters, or the prediction is "
        "not the population that was sampled. Sample with probability proportional to size, or restrict the "
        "prediction to what was sampled from."
    ]


def look_older(cut: Cut, draws: int) -> bool:
    """Whether labels look older than the prediction.

    Two things together show it. So many records are newer than every labelled one that as many draws of
    records would miss all of them with probability .01 at most: (1 - share)^draws ≤ .01. Left out, these
    change pairwise precision by over 1 %. Without dates nothing can show it: a new record of a labelled
    entity and a false link look the same.

    Parameters
    ----------
    cut : Cut
        The prediction, cut at the newest labelled record (`FrameFacts.labelled`).
    draws : int

    Examples
    --------
    >>> look_older(Cut(inside=88, outside=12, links_inside=0.9), draws=40)
    True
    """
    newer = cut.outside / (cut.inside + cut.outside)
    return cut.links_inside <= 0.99 and (1 - newer) ** draws <= 0.01


def _labels_older(sample: Sample) -> list[str]:
    """The alarm of labels that are older than the frame, where `erbayes.Dated` gives dates."""
    facts = sample.units.frame
    if facts is None or facts.labelled is None:
        return []
    cut = facts.labelled
    if not look_older(cut, sample.expansion.unit.shape[-1]):
        return []
    newer = cut.outside / (cut.inside + cut.outside)
    return [
        f"{newer:.0%} of the records are newer than every labelled one: if the labels were made before these "
        f"came, pairwise precision comes out at {cut.links_inside:.3f} of what it is. End the frame with the "
        f"labels: {facts.newest}."
    ]


def _repeats_expected(sample: Sample) -> float:
    """C2(n) Σ p_c² under uniform records with replacement, where no repeat was drawn; else 0."""
    records, unit, design = sample.units.population, sample.expansion.unit, sample.design
    if not isinstance(design, UniformRecords) or design.population is not None:
        return 0.0
    if records is None or len(np.unique(unit)) < len(unit):
        return 0.0
    return float(len(unit) * (len(unit) - 1) / 2 * sample.units.size[unit].mean() / records)
