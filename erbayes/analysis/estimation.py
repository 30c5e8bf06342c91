"""Estimates from memberships in one call."""

from __future__ import annotations

import warnings
from typing import Any

from .._internal.errors import Alarm
from ..design import Design
from ..design.sample import Sample
from ..engine.closed_form import taylor
from ..engine.diagnostics import alarms
from ..large import scan
from ..large.sources import lies_elsewhere
from ..metrics.definitions import USUAL, Wanted, chosen
from ..metrics.uncertain import Normal
from ..units.measuring import Missing, measure


def estimate(
    prediction: Any,
    labels: Any,
    design: Design,
    metrics: Wanted = USUAL,
    *,
    blocks: Any = None,
    missing: Missing = Missing.ERROR,
    frame: Any = None,
) -> Normal:
    """Estimate metrics of a prediction from a labelled sample.

    Parameters
    ----------
    prediction : memberships, or files and tables
        As in `erbayes.measure`. Files and tables are those of `erbayes.large.scan` with two columns.
    labels, blocks, missing, frame
        As in `erbayes.measure`.
    design : Design
        How the labelled units were drawn.
    metrics : Metric or str, or several
        Objects of `erbayes.metrics`, or names as tables print them.

    Returns
    -------
    Normal
        The metrics, jointly. `.table()` returns estimates, standard errors and intervals.

    Warns
    -----
    Alarm
        For each sentence of `alarms`.

    Raises
    ------
    DataError
        If the memberships, the design or the metrics cannot be used.
    NotIdentified
        If the sample cannot estimate a metric.

    Examples
    --------
    >>> from erbayes import UniformClusters
    >>> prediction = {1: "a", 2: "a", 3: "b", 4: "b", 5: "b"}
    >>> labels = {1: "x", 2: "x", 3: "x", 4: "y", 5: "y"}
    >>> estimates = estimate(prediction, labels, UniformClusters(population=2),
    ...                      ["pairwise-precision", "pairwise-recall"])
    >>> estimates.table()[["estimate", "se"]]
                        estimate   se
    metric
    pairwise-precision       0.5  0.0
    pairwise-recall          0.5  0.0
    """
    metrics = chosen(metrics)
    count = scan if lies_elsewhere(prediction) else measure
    sample = Sample(count(prediction, labels, blocks=blocks, missing=missing, frame=frame), design)
    for alarm in alarms(sample, metrics):
        warnings.warn(alarm, Alarm, stacklevel=2)
    return taylor(sample, metrics).apply(metrics)
