"""Estimates of one prediction from a labelled sample, and of several with their paired differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from .._internal import remedies
from .._internal.arrays import IntArray, Seed, draw_seed
from .._internal.digits import shown
from .._internal.errors import DataError, head, member, need, warn_of
from .._internal.remedies import Missing
from ..design.contract import Design
from ..design.sample import Sample, need_labels_and_design
from ..engine.diagnostics import alarms
from ..engine.differences import subtract
from ..engine.named import EngineLike, estimate_paired, find_engine, need_paired, run_engine
from ..large.files import Source, lies_elsewhere
from ..large.scanning import Scanned, scan
from ..large.sums import overlaps_of, refuse_different_records
from ..metrics.definitions import DEFAULT_METRICS, Metric, MetricLike, resolve_metrics
from ..metrics.estimates import Estimates
from ..metrics.intervals import Kind, check_level
from ..metrics.tables import Pictured, choose_quoted, describe_difference
from ..units.clustering import Clustering, Memberships
from ..units.ids import kind, locate_all
from ..units.measuring import measure, read_framed, sampled_labels
from ..units.settled import Overlaps
from ..units.units import Units
from .rows import intervals_table, tidy

PredictionLike = Source | Sample | Scanned
FEW = 4
"""Most predictions all of whose differences are shown."""


def estimate(
    prediction: PredictionLike,
    labels: Memberships | None = None,
    design: Design | None = None,
    metrics: MetricLike = DEFAULT_METRICS,
    *,
    engine: EngineLike | None = None,
    blocks: Memberships | None = None,
    missing: Missing | str = Missing.ERROR,
    frame: Any = None,
    rng: Seed = None,
) -> Estimates:
    """Estimate how good a prediction is on all records, from a labelled sample.

    Parameters
    ----------
    prediction : memberships, files or tables, finished scan, or Sample
        The cluster of *every* record: a Series or a dict from record to cluster, or a table of two columns
        (pandas, polars, Arrow). If it does not fit in memory, the name of a file or folder of Parquet or CSV,
        or a table of a database (see `erbayes.large.scan`), which is counted there. A finished scan has its
        labels, `estimate(scan, design=design)`, and a `Sample` also its design, `estimate(sample)`.
    labels : memberships
        The true entity of each labelled record, with *all* records of each sampled entity.
    design : Design
        How the labelled entities were drawn. The usual ones are

        - `UniformRecords(drawn)`: records were drawn, each with the same chance, and all records of their
          entities were labelled. `drawn` is the entity of each draw, repeats kept, which count once.
        - `DistinctEntities(n)`: the same with n draws, if nobody noted which entities were drawn twice.
        - `UniformClusters()`: entities were drawn, each with the same chance.
        - `KnownWeights(1 / p)`: entities were drawn with probabilities p.
        - `Stratified(stratum, population)`: entities were drawn within strata.
        - `erbayes.labels.read_labels(folder).design()`: `erbayes draw` chose the records.
    metrics : Metric or str, or several
        Names or objects of `erbayes.metrics`. The default are precision, recall and F1 of links, B-cubed
        precision and recall, and the share of entities that are predicted exactly. `"precision"`, `"recall"`,
        `"f1"` and `"b3"` are understood, and `erbayes.metrics.ALL` has every metric.
    engine : Engine or str, optional
        `"closed form"` (the default), `"bootstrap"`, `"jackknife"`, `"size model"`, `"posterior"` (that of
        the size model alone), or `"advised"`, which takes the one that suits the sample and says why. Or an
        object of `erbayes.engine` or `erbayes.bayes` with settings of its own.
    blocks : memberships, optional
        The block of each record, if all records of blocks were labelled.
    missing : Missing
        What to do with labelled records that the prediction does not have.
    frame : record ids or memberships, optional
        The records from which the sample was drawn, if the prediction has others too.
    rng : Generator, int or None
        A seed makes the results of engines that draw random numbers repeatable.

    Returns
    -------
    Estimates
        The metrics, jointly. `found.table()` has estimates and intervals, `found["pairwise-recall"].lower`
        one number, `found.sentence()` words to quote, and `found.plot()` draws them.

    Warns
    -----
    Alarm
        For each caution and fault of `alarms`, and of the result's own `alarms`. Notes, which say how to read
        numbers that are right, are there alone.

    Raises
    ------
    DataError, NotIdentified
        If the input cannot be used, or if the sample cannot estimate a metric.

    See Also
    --------
    compare : several predictions, by the same draws.
    by_domain : groups of records.
    side_by_side : several engines.
    impact : numbers of your own that were computed from the clusters.

    References
    ----------
    Binette et al. (2022), arXiv 2210.01230.

    Examples
    --------
    >>> import erbayes as eb
    >>> from erbayes.datasets import people
    >>> example = people()
    >>> found = eb.estimate(example.prediction, example.labels, eb.UniformRecords(example.drawn))
    >>> found
    Estimates with 95 % intervals
                       estimate     se  lower  upper  kind
    metric
    pairwise-precision    0.822  0.026  0.763  0.869  Beta
    pairwise-recall       0.914  0.015  0.878  0.940  Beta
    pairwise-f1           0.866  0.017  0.825  0.896  Beta
    b3-precision          0.903  0.014  0.874  0.928  Beta
    b3-recall             0.923  0.012  0.897  0.943  Beta
    cluster-recall        0.664  0.037  0.589  0.734  Beta
    """
    # one seed, as in `side_by_side`, whose rows are then those of this function
    metrics, seed = resolve_metrics(metrics), draw_seed(rng)
    if isinstance(prediction, Sample):
        if any(given is not None for given in (labels, design, blocks, frame)):
            raise DataError(
                "a Sample has its labels and its design: give it alone, as in estimate(sample, metrics=[...])"
            )
        sample = prediction
    elif isinstance(prediction, Scanned):
        prediction.refuse_others(labels, blocks=blocks, frame=frame)
        sample = Sample(prediction, need_labels_and_design(prediction, design, "estimate(scan, design=...)"))
    else:
        design = need_labels_and_design(labels, design, "estimate(prediction, labels, design)")
        count: Callable[..., Any] = scan if lies_elsewhere(prediction) else measure
        sample = Sample(count(prediction, labels, blocks=blocks, missing=missing, frame=frame), design)
    found = run_engine(engine, sample, metrics, seed)
    warn_of([*alarms(sample, metrics, found.table()), *found.alarms])
    return found


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Comparison(Pictured):
    """Metrics of several predictions, jointly.

    `predictions`: their names; `metrics`; `joint`: metrics of the first prediction, then of the second, and
    so on, jointly; `samples`: the sample with the overlaps of each prediction, for `alarms`, `balance` and
    `influence`; `overlaps`: what every two predictions share; `left_out`: labelled records that are left out,
    since a prediction does not have them (`Missing.COMMON`).
    """

    picture: ClassVar[str] = "comparison"
    explored: ClassVar[str] = "differences"
    predictions: tuple[str, ...]
    metrics: tuple[Metric, ...]
    joint: Estimates
    samples: tuple[Sample, ...]
    overlaps: Overlaps
    left_out: int = 0

    def __getitem__(self, prediction: str) -> Estimates:
        """Return the metrics of one prediction, jointly."""
        if prediction not in self.predictions:
            raise DataError(f"no prediction {prediction!r}; there are {', '.join(self.predictions)}")
        i, k = self.predictions.index(prediction), len(self.metrics)
        return self.joint.part(range(i * k, (i + 1) * k))

    def estimates_by_name(self) -> Mapping[str, Estimates]:
        """Return the metrics of each prediction."""
        return {name: self[name] for name in self.predictions}

    def subtract(self, first: str, second: str) -> Estimates:
        """Return the metrics of the prediction `second` minus those of `first`, jointly, by paired draws."""
        if unknown := [name for name in (first, second) if name not in self.predictions]:
            raise DataError(f"no prediction {head(unknown)}; there are {', '.join(self.predictions)}")
        if first == second:
            raise DataError(f"a difference needs two different predictions, not {first!r} twice")
        pair = self.predictions.index(first), self.predictions.index(second)
        names = [metric.name for metric in self.metrics]
        return subtract(self.joint, self.samples, self.metrics, [pair], names, self.overlaps)

    def differences(
        self,
        level: float | str = 0.95,
        kind: Kind | None = None,
        *,
        pairs: str | None = None,
        simultaneous: bool = False,
    ) -> pd.DataFrame:
        """Return the differences of predictions, each minus each earlier one, with paired standard errors.

        There is one row per difference and metric. An interval allows for differences that no draw has shown
        (see `erbayes.engine.differences`), and has no length only where a difference is certain. Of more than
        four predictions the differences are those from the first, and `differences("all")` or `pairs="all"`
        has those of each two, whose time grows with the square of their number.
        """
        level, pairs = (0.95, level) if isinstance(level, str) else (level, pairs)
        asked = _list_pairs(len(self.predictions), pairs)
        names = [f"{self.predictions[new]} - {self.predictions[old]}" for old, new in asked]
        repeated = [name for name in names for _ in self.metrics]
        joint = subtract(self.joint, self.samples, self.metrics, asked, repeated, self.overlaps)
        return self._tabulate(joint, "difference", names, level, kind, simultaneous)

    def sentence(self, level: float = 0.95, kind: Kind | None = None) -> str:
        """Return in words how predictions differ from the first, by precision and recall or the first two.

        Examples
        --------
        >>> import erbayes as eb
        >>> labels = {i: i // 4 for i in range(120)}
        >>> old, new = ({i: i // size for i in range(1200)} for size in (2, 3))
        >>> print(compare({"old": old, "new": new}, labels, eb.UniformClusters(), "b3-recall").sentence())
        In b3-recall, new is above old by 0.083 (95 % interval 0.054 to 0.113).
        """
        table, sentences = self.differences(level, kind, pairs="first"), []
        first, *others = self.predictions
        for new, name in product(others, choose_quoted([m.name for m in self.metrics])):
            rows = table[(table["difference"] == f"{new} - {first}") & (table["metric"] == name)]
            said = {str(column): cell for column, (cell,) in shown(rows).items()}
            bounds = rows[["lower", "upper"]].to_numpy()[0].tolist()
            sentences.append(describe_difference(name, first, new, bounds, f"{100 * level:g}", said))
        return " ".join(sentences)

    def levels(
        self, level: float = 0.95, kind: Kind | None = None, *, simultaneous: bool = False
    ) -> pd.DataFrame:
        """Return the estimates, one row per prediction and metric. Parameters are those of `differences`."""
        return self._tabulate(self.joint, "prediction", self.predictions, level, kind, simultaneous)

    def _tabulate(
        self,
        joint: Estimates,
        rows: str,
        names: Sequence[str],
        level: float,
        kind: Kind | None,
        simultaneous: bool,
    ) -> pd.DataFrame:
        """Return all metrics of each row, of which `joint` has the first to the last for each of `names`."""
        check_level(level)
        metrics = [metric.name for metric in self.metrics]
        columns = {rows: [name for name in names for _ in metrics], "metric": metrics * len(names)}
        every, few = len(metrics) * simultaneous, [""] * len(joint.names)
        return tidy(intervals_table(columns, joint, level, kind, few, every))

    def table(
        self,
        level: float = 0.95,
        kind: Kind | None = None,
        *,
        pairs: str | None = None,
        simultaneous: bool = False,
    ) -> pd.DataFrame:
        """Return the estimates of each prediction and below them their differences, metric by metric.

        A difference is often much more certain than its parts, since all predictions are judged by the same
        draws: two intervals that overlap are no sign that the predictions are equal.
        """
        paired = self.differences(level, kind, pairs=pairs, simultaneous=simultaneous)
        paired = paired.rename(columns={"difference": "prediction"})
        both = pd.concat([self.levels(level, kind, simultaneous=simultaneous), paired], ignore_index=True)
        both = both[["metric", "prediction", *both.columns.drop(["metric", "prediction"])]]
        return both.fillna({"reason": ""}).sort_values(
            "metric", key=lambda m: pd.factorize(m)[0], kind="stable", ignore_index=True
        )


def _list_pairs(number: int, pairs: str | None = None) -> list[tuple[int, int]]:
    """Return the positions of each two predictions, or of the first and each other one, in order."""
    pairs = pairs or ("all" if number <= FEW else "first")
    if pairs not in {"all", "first"}:
        raise DataError(f"pairs are 'all', or 'first' for differences from the first, not {pairs!r}")
    return [pair for pair in combinations(range(number), 2) if pairs == "all" or pair[0] == 0]


def compare(
    predictions: Mapping[str, Any],
    labels: Memberships | None = None,
    design: Design | None = None,
    metrics: MetricLike = DEFAULT_METRICS,
    *,
    blocks: Memberships | None = None,
    missing: Missing | str = Missing.ERROR,
    frame: Any = None,
    engine: EngineLike | None = None,
    rng: Seed = None,
) -> Comparison:
    """Estimate metrics of two or more predictions, and their differences, from one sample.

    Parameters
    ----------
    predictions : mapping, name -> memberships, or files and tables, or results of `erbayes.large.scan`
        If one is in files or tables, `erbayes.large.scan` counts all of them.
    labels, design, metrics, blocks, frame
        As in `erbayes.estimate`. A finished scan has labels, blocks, policy and frame already, so that they
        are left out: `compare(scans, design=design)`. A frame leaves releases the same records.
    missing : Missing
        As in `erbayes.estimate`. `Missing.COMMON` compares predictions on the records that they share.
    engine : Engine or str, optional
        A name as in `erbayes.estimate`, or an engine with a method `paired`. Each prediction has the estimate
        that it has there with this seed, but for metrics of the truth alone, such as the number of entities:
        all have that of the prediction with the least relative standard error. Differences of a size model
        average the quantiles of its draws and of the closed form. `"advised"` takes one engine for all.
    rng : Generator, int or None
        The source of chance, for engines that need one. A seed makes results repeatable.

    Warns
    -----
    Alarm
        For each sentence of `alarms` about the sample of a prediction, whose name stands before it, and of
        the engine about its result.

    Raises
    ------
    DataError
        If there are fewer than two predictions, or if the engine has no method `paired`. If the predictions
        cover different records, except under `Missing.COMMON`, and in finished scans always.
    NotIdentified
        If the sample cannot estimate a metric.

    See Also
    --------
    estimate : one prediction.
    thresholds : one matcher at many thresholds.
    stages : steps of one matcher.

    References
    ----------
    Zou and Donner (2008), Statistics in Medicine 27, 1693-1702.

    Examples
    --------
    >>> import erbayes as eb
    >>> a = {1: "a", 2: "a", 3: "b", 4: "c", 5: "c"}
    >>> b = {1: "a", 2: "a", 3: "a", 4: "c", 5: "c"}
    >>> labels = {1: "x", 2: "x", 3: "x", 4: "y", 5: "y"}
    >>> comparison = compare({"a": a, "b": b}, labels, eb.UniformClusters(), [eb.metrics.b3_recall])
    >>> comparison.differences()[["difference", "metric", "estimate"]].round(3)
      difference     metric  estimate
    0      b - a  b3-recall     0.267
    """
    comparison = estimate_jointly(
        predictions, labels, design, metrics, blocks, missing, frame, engine=engine, rng=rng
    )
    if any(isinstance(sample.units, Scanned) for sample in comparison.samples):
        # now, since a connection may be closed later
        comparison.overlaps.find(_list_pairs(len(comparison.predictions)))
    levels = comparison.levels()
    for name, sample in zip(comparison.predictions, comparison.samples, strict=True):
        warn_of(
            alarm.about(f"{name}: ")
            for alarm in alarms(sample, metrics, levels[levels["prediction"] == name])
        )
    warn_of(comparison.joint.alarms)
    return comparison


def estimate_jointly(
    predictions: Mapping[str, Any],
    labels: Memberships | None,
    design: Design | None,
    metrics: MetricLike,
    blocks: Memberships | None = None,
    missing: Missing | str = Missing.ERROR,
    frame: Any = None,
    engine: EngineLike | None = None,
    rng: Seed = None,
) -> Comparison:
    """Return what `compare` does, without its alarms, for those who say them in words of their own."""
    need(predictions, Mapping, "predictions must map names to memberships, as in {'old': old, 'new': new}")
    scans = {name: p for name, p in predictions.items() if isinstance(p, Scanned)}
    design = need_labels_and_design(scans or labels, design, "compare(predictions, labels, design)")
    missing = member(missing, Missing, "missing")
    if len(predictions) < 2:
        raise DataError(f"a comparison needs two predictions or more, not {len(predictions)}")
    if scans and (lacking := [name for name in predictions if name not in scans]):
        raise DataError(f"scan every prediction or none: {head(lacking)} is not a scan")
    metrics = resolve_metrics(metrics)
    for finished in scans.values():
        finished.refuse_others(labels, blocks=blocks, frame=frame)
    if common := missing is Missing.COMMON:
        missing = Missing.ERROR  # of labelled records that no prediction has
    if any(map(lies_elsewhere, predictions.values())):
        labels, given = sampled_labels(labels), {"blocks": blocks, "missing": missing, "frame": frame}
        if common:
            scans = scan(dict(predictions), labels, **given)
        else:
            scans = {name: scan(p, labels, **given) for name, p in predictions.items()}
    if scans:
        refuse_different_records(scans)
        return compare_counted(scans, design, metrics, overlaps_of(scans), engine, rng, common)
    labels, within = read_framed(predictions, labels, frame)
    clusterings = {name: clustering for name, (clustering, _) in within.items()}
    shared = on_shared_records(clusterings, common)
    if any(len(shared[name].records) < len(clusterings[name].records) for name in shared):
        missing = Missing.OMIT
    units = {
        name: replace(measure(c, labels, blocks=blocks, missing=missing), frame=within[name][1])
        for name, c in shared.items()
    }
    overlaps = Overlaps.of([*shared.values()], labels.records)
    return compare_counted(units, design, metrics, overlaps, engine, rng, common)


def on_shared_records(clusterings: Mapping[str, Clustering], common: bool) -> dict[str, Clustering]:
    """Put predictions into the order of the first, on the records of all if `common`, or refuse others."""
    kinds = {name: kind(c.records) for name, c in clusterings.items() if len(c.records)}
    if len(set(kinds.values())) > 1:
        types = ", ".join(f"those of {name!r} of type {id_type}" for name, id_type in kinds.items())
        raise DataError(f"record ids of the predictions differ in type: {types}; convert them to one type")
    first = next(iter(clusterings.values()))
    inside, codes = np.ones(len(first.records), dtype=bool), dict[str, IntArray]()
    for name, other in clusterings.items():
        codes[name] = other.codes
        if not other.records.equals(first.records):
            at = locate_all(first.records, other.records)
            codes[name] = np.full(len(inside), -1)
            codes[name][at[at >= 0]] = other.codes[at >= 0]
            inside &= codes[name] >= 0
    shared = int(inside.sum())
    partial = {n: len(c.records) - shared for n, c in clusterings.items() if len(c.records) > shared}
    # a prediction made of pairs misses records that are linked to none, so that what it shares is not known
    complete = all(clustering.complete for clustering in clusterings.values())
    if partial and not (common and complete):
        raise DataError(
            f"the predictions share {shared:,} records; beyond these "
            + ", ".join(f"{name!r} covers {extra:,}" for name, extra in partial.items()),
            remedies.DIFFERING if complete else remedies.LISTED,
        )
    records = first.records[inside] if partial else first.records
    in_order = dict[str, Clustering]()
    for name, clustering in clusterings.items():
        in_order[name] = clustering
        if partial or codes[name] is not clustering.codes:
            own, used = pd.factorize(codes[name][inside])
            clusters = clustering.clusters[used]
            in_order[name] = Clustering(records, own.astype(np.int64), clusters, clustering.complete)
    return in_order


def compare_counted(
    units: Mapping[str, Units],
    design: Design,
    metrics: Sequence[Metric],
    overlaps: Overlaps,
    engine: EngineLike | None = None,
    rng: Seed = None,
    common: bool = False,
) -> Comparison:
    """Return the comparison of predictions whose units are counted."""
    samples = tuple(Sample(u, design) for u in units.values())
    joint = estimate_paired(need_paired(find_engine(engine)), samples, metrics, rng)
    left_out = samples[0].units.unmatched if common and samples[0].units.population is not None else 0
    return Comparison(tuple(units), tuple(metrics), joint, samples, overlaps, left_out)
