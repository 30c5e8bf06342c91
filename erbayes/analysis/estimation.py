"""The front door: estimates of a prediction from a labelled sample, in one call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._internal.arrays import Seed, draw_seed
from .._internal.errors import DataError, warn_of
from .._internal.remedies import Missing
from ..design.contract import Design
from ..design.sample import Sample, need_labels_and_design
from ..engine.diagnostics import alarms
from ..engine.named import EngineLike, run_engine
from ..large import scan
from ..large.counted import Scanned
from ..large.sources import Source, lies_elsewhere
from ..metrics.definitions import DEFAULT_METRICS, MetricLike, resolve_metrics
from ..metrics.estimates import Estimates
from ..units.clustering import Memberships
from ..units.measuring import measure

PredictionLike = Source | Sample | Scanned


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
        or a table of a database (see `erbayes.large.scan`), which is counted there. A finished
        scan has its labels, `estimate(scan, design=design)`, and a `Sample` also its design,
        `estimate(sample)`.
    labels : memberships
        The true entity of each labelled record, with *all* records of each sampled entity.
    design : Design
        How the labelled entities were drawn. The usual ones are

        - `UniformRecords(drawn)`: records were drawn, each with the same chance, and all records of their
          entities were labelled. `drawn` is the entity of each draw, repeats kept; one that was
          drawn twice counts once.
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
    **unknown
        There are no others: a result takes the level of its intervals, as in `found.table(level=0.9)`.

    Returns
    -------
    Estimates
        The metrics, jointly. `found.table()` has estimates, standard errors and intervals,
        `found["pairwise-recall"].lower` one number, `found.sentence()` words to quote, and `found.plot()`
        draws them.

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
