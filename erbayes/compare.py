"""Several predictions judged by one sample, with paired differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from .clustering import Clustering, DataError
from .design import Design
from .metrics import METRICS, Metric
from .sample import Sample
from .taylor import effects, taylor
from .uncertain import Normal, Scale, Tabled, identity
from .units import Missing, measure


class Coverage(Enum):
    """What to do where predictions cover different records."""

    ERROR = "error"
    """Refuse (the default)."""
    COMMON = "common"
    """Judge all of them on the records that every one covers; labels shrink to these too."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Comparison(Tabled):
    """Metrics of several predictions, jointly.

    Attributes
    ----------
    predictions, metrics : tuple of str
    joint : Normal
        Metrics of the first prediction, then of the second, and so on, with all covariances.
    samples : tuple of Sample
        The sample as each prediction sees it, for `alarms`, `balance` and `influence`.
    left_out : int
        Labelled records left out since a prediction lacks them (`Coverage.COMMON`).
    """

    predictions: tuple[str, ...]
    metrics: tuple[str, ...]
    joint: Normal
    samples: tuple[Sample, ...]
    left_out: int = 0

    def differences(self, level: float = 0.95, scale: Scale = identity) -> pd.DataFrame:
        """Each prediction minus each earlier one: a tidy table with paired standard errors."""
        k = len(self.metrics)
        rows, names = [], []
        for (i, first), (j, second) in combinations(enumerate(self.predictions), 2):
            for m, metric in enumerate(self.metrics):
                row = np.zeros(len(self.joint.names))
                row[j * k + m], row[i * k + m] = 1.0, -1.0
                rows.append(row)
                names.append((f"{second} - {first}", metric))
        table = self.joint.contrast(np.array(rows), [f"{m} of {d}" for d, m in names]).table(level, scale)
        table.index = pd.MultiIndex.from_tuples(names, names=["difference", "metric"])
        return table.reset_index()

    def table(self, level: float = 0.95) -> pd.DataFrame:
        """Estimates of every prediction, tidy."""
        table = self.joint.table(level)
        table.index = pd.MultiIndex.from_product(
            [self.predictions, self.metrics], names=["prediction", "metric"]
        )
        return table.reset_index()


def compare(
    predictions: Mapping[str, Any], labels: Any, design: Design, metrics: Sequence[Metric] = METRICS,
    *, blocks: Any = None, missing: Missing = Missing.ERROR, coverage: Coverage = Coverage.ERROR,
) -> Comparison:  # fmt: skip
    """Judge two or more predictions by the same sample.

    Parameters
    ----------
    predictions : mapping, name -> memberships
    labels, design, metrics, blocks, missing
        As in `erbayes.estimate`.
    coverage : Coverage
        What to do where the predictions cover different records.

    Raises
    ------
    DataError
        Fewer than two predictions, or (with `Coverage.ERROR`) different records.

    Examples
    --------
    >>> import erbayes as eb
    >>> a = {1: "a", 2: "a", 3: "b", 4: "c", 5: "c"}
    >>> b = {1: "a", 2: "a", 3: "a", 4: "c", 5: "c"}
    >>> labels = {1: "x", 2: "x", 3: "x", 4: "y", 5: "y"}
    >>> found = compare({"a": a, "b": b}, labels, eb.UniformClusters(), [eb.metrics.b3_recall])
    >>> found.differences()[["difference", "metric", "estimate"]].round(3)
      difference     metric  estimate
    0      b - a  b3-recall     0.309
    """
    if len(predictions) < 2:
        raise DataError(f"a comparison needs two predictions or more, not {len(predictions)}")
    clusterings = {name: Clustering.of(p, f"prediction {name!r}") for name, p in predictions.items()}
    first, *others = clusterings.values()
    common = first.records
    for other in others:
        common = common.intersection(other.records)
    beyond = {name: len(c.records) - len(common) for name, c in clusterings.items()}
    partial = {name: extra for name, extra in beyond.items() if extra}
    if partial and coverage is Coverage.ERROR:
        raise DataError(
            f"the predictions share {len(common)} records; beyond these "
            + ", ".join(f"{name!r} covers {extra}" for name, extra in partial.items())
            + ": choose Coverage.COMMON to compare them on what they share"
        )
    if partial:
        missing = Missing.OMIT
        clusterings = {n: c.restrict(common) for n, c in clusterings.items()}
    fits, parts, samples = [], [], []
    for clustering in clusterings.values():
        sample = Sample(measure(clustering, labels, blocks=blocks, missing=missing), design)
        samples.append(sample)
        fits.append(taylor(sample, metrics).apply(metrics))
        parts.append(effects(sample, metrics))
    joint = Normal(
        tuple(f"{m.name} of {name}" for name in clusterings for m in metrics),
        np.concatenate([f.mean for f in fits]),
        sample.expansion.variance.covariance(np.hstack(parts)),
        np.concatenate([f.df for f in fits]),
        tuple(s for f in fits for s in f.support),
        fits[0].draws,
    )
    left_out = samples[0].units.unmatched if partial else 0
    return Comparison(tuple(clusterings), tuple(m.name for m in metrics), joint, tuple(samples), left_out)

