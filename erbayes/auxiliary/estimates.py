"""Assisted estimates: their intervals, tables and alarms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from .._internal.arrays import FloatArray
from .._internal.errors import Grade, Sentence
from ..design.sample import Sample
from ..engine.diagnostics import alarms, out_of_balance, warn_undecided
from ..metrics.definitions import MetricLike, resolve_metrics
from ..metrics.estimates import Estimates
from ..metrics.intervals import Kind
from ..metrics.unseen import by_component
from .second import ChangedShare

TOO_MUCH = 0.1
"""Unreached share of a second clustering above which an alarm is raised, as it then makes the interval."""
BY_CHANCE = 1e-4
"""Probability that draws differ as much from all by chance, below which an alarm is raised.

It is raised for none of 1,640 sound second clusterings, and for nearly all copies of the labels
(benchmarks/assisted.md).
"""


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class AssistedEstimates(Estimates):
    """Estimates assisted by a second clustering, or by cheap labels: `Estimates` with more fields.

    `second`: its name; `weights` (k,): λ of each metric; `correlation` (k,): of effects of draws on the
    estimate and on its correction; `equivalent_labels` (k,): further draws that would shorten the default
    standard error as much; `unreached_share` (k,): see `Second.reference`; `changed`: see `Second.changes`;
    `unassisted` (k,): why a metric is not assisted, or "".
    """

    second: str
    weights: FloatArray = by_component(0)
    correlation: FloatArray = by_component(0)
    equivalent_labels: FloatArray = by_component(0)
    unreached_share: FloatArray = by_component(0)
    changed: ChangedShare
    unassisted: tuple[str, ...] = by_component(0)

    def spread(self) -> dict[str, FloatArray]:
        """Return the columns `se_bound`, which includes pseudo-draws and unreached clusters, and `df`."""
        return {"se_bound": self.sd, "df": np.broadcast_to(self.df, self.mean.shape)}

    def table(
        self, level: float = 0.95, kind: Kind | None = None, settled: bool = False, errors: bool = False
    ) -> pd.DataFrame:
        """As `Estimates.table`, with lambda, correlation, equivalent_labels, unreached_share and note."""
        table = Estimates.table(self, level, kind, settled, errors)
        table["lambda"], table["correlation"] = self.weights, self.correlation
        table["equivalent_labels"], table["unreached_share"] = self.equivalent_labels, self.unreached_share
        if any(self.unassisted):
            table["note"] = list(self.unassisted)
        return table

    def find_alarms(self, sample: Sample, metrics: MetricLike) -> list[Sentence]:
        """Return the alarms about metrics that are not assisted, and about the second clustering."""
        alone = [
            metric for metric, note in zip(resolve_metrics(metrics), self.unassisted, strict=True) if note
        ]
        sentences = alarms(sample, alone) if alone else [*out_of_balance(sample), *warn_undecided(sample)]
        return sentences + self.of_second()

    def of_second(self) -> list[Sentence]:
        """Return the alarms about the second clustering, if it assists a metric."""
        known = known_labels(self.second, self.changed) if self.weights.any() else []
        return known + self._warn_unreached()

    def _warn_unreached(self) -> list[Sentence]:
        """Return the alarm of a second clustering of which draws leave a large share unreached."""
        large = (self.weights > 0) & (self.unreached_share > TOO_MUCH)
        if not large.any():
            return []
        names = ", ".join(name for name, on in zip(self.names, large, strict=True) if on)
        what = (
            f"Up to {self.unreached_share[large].max():.0%} of the second clustering is unreached for "
            f"{names}: no draw touches a cluster as large. There the second clustering may be right, or the "
            "prediction. The estimate is between both cases, and the interval covers both. Label more draws, "
            "or draw records instead of entities."
        )
        return [Sentence(what, Grade.CAUTION)]


def known_labels(name: str, changed: ChangedShare) -> list[Sentence]:
    """Return the alarm of a second clustering that seems to know the labels, if it does."""
    if changed.chance >= BY_CHANCE:
        return []
    what = (
        f"{name!r} seems to know the labels: it differs from the prediction in {changed.drawn:.0%} of the "
        f"draws, and in {changed.population:.1%} of all. If it was made or trained with these labels, leave "
        "it out: the estimates are wrong."
    )
    return [Sentence(what, Grade.FAULT)]
