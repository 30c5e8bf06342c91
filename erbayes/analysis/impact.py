"""What errors of a matcher do to a user's own numbers, such as the count of customers.

A statistic of the true entities is estimated from labelled ones. The same draws estimate the statistic of the
predicted clusters, which is known, so that its error there corrects the estimate (a control variate).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from .._internal.arrays import FloatArray, IntArray
from .._internal.digits import format_number
from .._internal.errors import DataError, Sentence
from .._internal.remedies import Missing
from ..design.changes import find_responding
from ..design.contract import Design
from ..design.sample import Sample, need_labels_and_design
from ..engine.closed_form import estimate_by_odds, improve_counts
from ..engine.control_variate import ControlVariate, Effects, count_equivalent_labels
from ..engine.diagnostics import warn_undecided
from ..large.duckdb import EMBEDDED, DuckDB
from ..large.files import Source, lies_elsewhere
from ..large.scanning import Scanned, scan
from ..large.sums import scan_features
from ..metrics.columns import ENTITIES, RECORDS
from ..metrics.estimates import Cases, Estimates
from ..metrics.intervals import DEFAULT, Kind
from ..metrics.statistics import Statistic, statistics_of
from ..metrics.tables import Pictured, reason_column
from ..metrics.unseen import count_moving
from ..units.clustering import Clustering, Memberships
from ..units.features import Attributes, Featured
from ..units.measuring import measure, read_framed, sampled_labels
from ..units.units import Units

FEWEST = 10.0
"""Effective draws of a statistic below which it is refused.

Those of residuals are no guard, since a sample that missed the few draws of large residuals has many of them:
intervals that pass cover .88 (benchmarks/impact.md).
"""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Impact(Pictured):
    """Statistics of the true entities next to those of the predicted clusters, as `impact` returns them.

    `predicted` (k,): those of the predicted clusters, which are known; `fit`, `plain`: those of the true
    entities, with the help of the prediction and without; `weights` (k,): λ of each, how far the prediction
    is followed, NaN for gains less losses; `effective`, `domains` (k,): effective draws and domain of each;
    `notes`: sentences about missing attributes.
    """

    picture: ClassVar[str] = "errors"
    kind: ClassVar[Kind] = DEFAULT
    predicted: FloatArray
    fit: Estimates
    plain: Estimates
    weights: FloatArray
    effective: FloatArray
    domains: tuple[str, ...]
    draws: int
    notes: tuple[Sentence, ...] = ()

    @property
    def equivalent_labels(self) -> FloatArray:
        """Return the number of further labels that would shorten the plain standard error as much, (k,)."""
        return count_equivalent_labels(self.draws, self.plain.sd**2, self.fit.sd**2)

    def table(self, level: float = 0.95, kind: Kind | None = None) -> pd.DataFrame:
        """Return a row per statistic, and per domain if there are any.

        Columns are `predicted`, from the clusters, `estimate`, `se`, `lower` and `upper` of the truth,
        `difference` of the first two with `least` and `most`, `equivalent_labels`, and `reason` if a
        statistic has no estimate.
        """
        table = pd.DataFrame({"predicted": self.predicted}, index=pd.Index(self.fit.names, name="statistic"))
        columns = ["estimate", "se", "lower", "upper", *["worst", "best"] * (self.fit.cases is not None)]
        table[columns] = self.fit.table(level, kind)[columns].to_numpy()
        table["difference"] = table["predicted"] - table["estimate"]
        table["least"], table["most"] = (table["predicted"] - table[end] for end in ("upper", "lower"))
        table = table.assign(equivalent_labels=self.equivalent_labels, **reason_column(self.fit.reasons))
        table.loc[table["estimate"].isna(), ["se", "equivalent_labels"]] = np.nan
        if any(self.domains):
            table.insert(0, "domain", self.domains)
        return table

    def sentences(self, level: float = 0.95, kind: Kind | None = None) -> list[str]:
        """Return a sentence about each statistic, which a reader without statistics understands."""
        table = self.table(level, kind).reset_index()
        if self.fit.cases is not None and self.fit.cases.decide:  # what is quoted is the range of both cases
            table[["lower", "upper"]] = np.sort(table[["worst", "best"]])
            table["least"], table["most"] = (table["predicted"] - table[end] for end in ("upper", "lower"))
        return [*(_describe(row) for _, row in table.iterrows()), *self.notes]


def _describe(row: pd.Series) -> str:
    about = f"{row['statistic']}{f' of {row["domain"]}' if 'domain' in row else ''}"
    said, true, lower, upper = (
        format_number(row[name]) for name in ("predicted", "estimate", "lower", "upper")
    )
    if np.isnan(row["lower"]):
        why = row.get("reason") or "nothing bounds what the undecided draws are"
        return f"{about}: the clusters say {said}, and there is no estimate of the truth: {why}."
    start = f"{about}: the clusters say {said}, and the truth is about {true} ({lower} to {upper})"
    if row["least"] <= 0 <= row["most"]:
        return f"{start}, so that the labels do not show this number to be wrong."
    if not row["lower"] > 0:
        return f"{start}, so that the clusters are wrong by {format_number(row['difference'])}."
    ends = sorted(abs(row["predicted"] / row[end] - 1) for end in ("lower", "upper"))
    error = row["predicted"] / row["estimate"] - 1
    return (
        f"{start}, so that the clusters' number is {abs(error):.0%} too {'high' if error > 0 else 'low'} "
        f"({ends[0]:.0%} to {ends[1]:.0%})."
    )


def impact(
    prediction: Source,
    labels: Memberships | None = None,
    design: Design | None = None,
    statistics: Any = ("count",),
    *,
    attributes: Any = None,
    features: Mapping[str, Any] | None = None,
    by: str | None = None,
    missing: Missing | str = Missing.ERROR,
    frame: Any = None,
) -> Impact:
    """Estimate statistics of the true entities, and how wrong those of the predicted clusters are.

    Parameters
    ----------
    prediction : memberships, or files and tables
        Predicted cluster of every record of the population. Files and tables are those of
        `erbayes.large.scan` with two columns; `attributes` then is such a source as well.
    labels, design, frame
        As in `erbayes.estimate`.
    missing : Missing
        `Missing.ERROR`, or `Missing.OMIT`, which leaves out labelled records that are not in the prediction.
    statistics : Statistic, str or callable, or several
        Objects of `erbayes.statistics`, their text, or functions (rows, weights) -> (value, influence). If a
        function returns a value alone, entities are left out in turn (the jackknife).
    attributes : DataFrame or Arrow table, optional
        Attributes of all records, with a column of their ids.
    features : mapping, name -> (column, aggregate), optional
        Features of entities: sum, mean, min, max, range or distinct of a column, or a function of its values.
        Missing values are refused, except by known-sum and so on, which take the other values.
    by : str, optional
        A column of `attributes`: each statistic is estimated for each of its values too. An entity with
        records of several counts in each by its share of records.

    Raises
    ------
    DataError
        If the input cannot be used, or if no sample of entities identifies a statistic.

    Examples
    --------
    >>> from erbayes import UniformClusters
    >>> prediction = {1: "a", 2: "a", 3: "b", 4: "c", 5: "d", 6: "d"}
    >>> labels = {1: "x", 2: "x", 3: "x", 4: "y", 5: "z", 6: "z"}
    >>> numbers = impact(prediction, labels, UniformClusters(population=3), ["count", "mean(size)"])
    >>> numbers.table()[["predicted", "estimate", "difference"]]
               predicted  estimate  difference
    statistic
    count            4.0       3.0         1.0
    mean(size)       1.5       2.0        -0.5
    """
    design = need_labels_and_design(labels, design, "impact(prediction, labels, design)")
    if lies_elsewhere(prediction):
        if frame is not None or by is not None:
            raise DataError(
                "a prediction that is scanned takes no frame and no by here: read it, or scan a view"
            )
        labels = sampled_labels(labels)
        units: Units = scan(prediction, labels, missing=missing)
    else:
        labels, read = read_framed({"": prediction}, labels, frame)
        prediction, _ = read[""]
        units = measure(prediction, labels, missing=missing)
    given = {"attributes": attributes, "features": features, "by": by}
    return impact_of(Sample(units, design), prediction, labels, statistics, **given)


def impact_of(
    sample: Sample,
    prediction: Source,
    labels: Memberships,
    statistics: Any = ("count",),
    *,
    attributes: Any = None,
    features: Mapping[str, Any] | None = None,
    by: str | None = None,
    database: DuckDB = EMBEDDED,
) -> Impact:
    """Do as `impact` for units of any kind: entities, blocks, sampled predicted clusters, or of a scan."""
    labels = Clustering.of(labels, "labels")
    if isinstance(sample.units, Scanned):
        given: dict[str, Any] = {"attributes": attributes, "features": features, "database": database}
        fitted, values, featured = scan_features(prediction, sample.units, labels, statistics, **given)
        return estimate_impact(sample, FittedStatistics(fitted, values), featured)
    why = "statistics of predicted clusters need all of them, and labelled records beyond them have no place"
    prediction = sample.units.need_prediction(prediction, why)
    table = Attributes.of(attributes, features, by, prediction.records)
    featured = Featured.of(sample.units, prediction, labels, table)
    return estimate_impact(sample, FittedStatistics.of(featured, statistics), featured)


@dataclass(frozen=True, slots=True, eq=False)
class FittedStatistics:
    """Statistics that are fitted to all predicted clusters, with their values by domain."""

    statistics: tuple[Statistic, ...]
    values: Mapping[str, FloatArray]

    @classmethod
    def of(cls, featured: Featured, statistics: Any) -> FittedStatistics:
        """Compute statistics of all predicted clusters."""
        fitted = tuple(statistic.fit(featured.clusters) for statistic in statistics_of(statistics))
        values = {}
        for name, share in featured.cluster_shares.items():
            inside = share > 0
            rows, w = (
                (featured.clusters, share) if inside.all() else (featured.clusters[inside], share[inside])
            )
            values[name] = np.array([statistic.value(rows, w) for statistic in fitted])
        return cls(fitted, values)


def estimate_impact(sample: Sample, fitted: FittedStatistics, featured: Featured) -> Impact:
    """Estimate statistics of the true entities from a sample and their values by the prediction."""
    found = _correct_by_clusters(sample, fitted, featured)
    if (design := find_responding(sample.design, odds=1)) is None:
        return found
    wrong, right = estimate_by_odds(sample, lambda one: _correct_by_clusters(one, fitted, featured).fit)
    cases = Cases(wrong=wrong, right=right, share=design.unresolved)
    return replace(found, fit=replace(found.fit, cases=cases), notes=(*found.notes, *warn_undecided(sample)))


def _correct_by_clusters(sample: Sample, fitted: FittedStatistics, featured: Featured) -> Impact:
    """Estimate statistics, each of which its error in the predicted clusters corrects."""
    variance, units, domains = sample.expansion, sample.units, len(fitted.values)
    variance.need_reached(ENTITIES)
    touched, of_piece = np.unique(featured.cluster_of, return_inverse=True)
    shares = {name: share[touched] for name, share in featured.cluster_shares.items()}
    of_entities = featured.entities, featured.entity_of, units.n / units.N, featured.entity_shares
    of_clusters = featured.clusters.iloc[touched], of_piece, units.n / units.m, shares
    (truth, d), (mirrored, e) = (_linearise(sample, fitted, *side) for side in (of_entities, of_clusters))
    empty = np.isnan(truth)
    effects, control = (Effects.of(np.where(empty, 0.0, x), variance) for x in (d, e))
    plain = Estimates(
        names=tuple(statistic.name for statistic in fitted.statistics) * domains,
        mean=truth,
        cov=variance.covariance(variance.residuals(np.where(empty, 0.0, d))),
        df=np.full(len(truth), max(float(np.count_nonzero(variance.weight) - variance.df_lost), 1.0)),
        support=tuple(statistic.support for statistic in fitted.statistics) * domains,
    )
    effective = count_moving(effects.change)[0] * effects.vary(truth)
    undefined = tuple(_explain(*of_each, variance.census) for of_each in zip(empty, effective, strict=True))
    refused = np.array([bool(why) for why in undefined])
    unknown = np.tile([-np.inf, np.inf], (len(truth), 1))
    variate = ControlVariate.of(effects, control, unknown, ~refused, variance)
    predicted = np.concatenate(list(fitted.values.values()))
    weight = variate.weight
    mean = truth + weight * np.where(weight > 0, predicted - mirrored, 0.0)
    least, most = np.array(plain.support).T
    mean = np.where(refused, np.nan, np.clip(mean, least, most))
    fit = replace(plain, mean=mean, cov=variate.cov, undefined=undefined)
    of_each = [statistic.metric for statistic in fitted.statistics]
    if not any(fitted.values):  # numbers of all entities are those of `estimate`
        fit, _ = improve_counts(sample, fit, variate.residual, of_each)
    gained = fit.moves.there
    corrected = replace(fit, unseen=replace(fit.unseen, skew=np.where(gained[:, None], 0.0, variate.skew)))
    weights = np.where(gained, np.nan, weight)
    names = tuple(np.repeat(list(fitted.values), len(fitted.statistics)).tolist())
    return Impact(predicted, corrected, plain, weights, effective, names, len(sample), featured.notes)


def _explain(empty: bool, effective: float, census: bool) -> str:
    """Return why a statistic has no estimate; "" if it has."""
    if empty:
        return "no labelled entity is in its denominator, or in its domain"
    if census or effective >= FEWEST:
        return ""
    if effective == 0:
        return (
            "draws do not differ in it, so that nothing says how far rarer entities would move it: label more"
        )
    return f"it depends on {effective:.1f} effective draws, fewer than {FEWEST:g}: label more"


def _linearise(
    sample: Sample,
    fitted: FittedStatistics,
    rows: pd.DataFrame,
    row: IntArray,
    share: FloatArray,
    domains: Mapping[str, FloatArray],
) -> tuple[FloatArray, FloatArray]:
    """Return statistics of entities or predicted clusters in each domain, (k,), and effects of draws, (n, k).

    `rows` (r,): their features, of which each piece has the `share` of its `row`, (p,).
    """
    expansion, size, of_piece = sample.expansion, sample.units.size, sample.units.unit
    weight = np.bincount(expansion.unit, expansion.weight, len(size))
    scale = 1.0
    if not expansion.absolute:  # weights up to a factor are scaled to the known number of records
        scale = float(sample.units.total(RECORDS) / (weight @ size))
    values, effects = [], []
    for inside in (domains[name] for name in fitted.values):
        w = np.bincount(row, (weight * scale)[of_piece] * share, len(inside)) * inside
        weighted = np.flatnonzero(w)
        for statistic in fitted.statistics:
            value, influence = np.nan, np.zeros(len(inside))
            if len(weighted):
                value, of_row = statistic.linearise(rows.iloc[weighted], w[weighted])
                influence[weighted] = of_row * inside[weighted]
            of_unit = np.bincount(of_piece, share * influence[row], len(size))
            if not expansion.absolute:
                # a unit that weighs more takes weight from all others
                of_unit = of_unit - size * (weight @ of_unit / (weight @ size))
            values.append(value)
            effects.append(expansion.weight * scale * of_unit[expansion.unit])
    return np.array(values), np.stack(effects, axis=1)
