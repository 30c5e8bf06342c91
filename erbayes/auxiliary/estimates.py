"""Estimates with the help of a stand-in for the truth: their intervals, tables and alarms."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.special import ndtri

from .._internal.arrays import FloatArray
from .._internal.errors import Grade, Sentence
from ..design.sample import Sample
from ..engine.diagnostics import alarms, out_of_balance
from ..metrics.definitions import Wanted, chosen
from ..metrics.intervals import Kind
from ..metrics.uncertain import Normal
from ..metrics.unseen import by_component
from .second import Changes

TOO_MUCH = 0.1
"""Share of a second clustering out of reach above which an alarm is raised, as it then makes the interval."""
BY_CHANCE = 1e-4
"""Probability that draws differ as much from all by chance, below which a second clustering is doubted.

It doubts no sound one of 1,640 and nearly all copies of the labels (benchmarks/assisted.md).
"""


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class AssistedEstimates(Normal):
    """Estimates with the help of second clusterings, or of cheap labels: a `Normal` with more fields.

    `weights` (k, s): λ of each; `between` (k, 2): distances to the least and the largest estimate that
    clusters out of reach allow; `skew` (k, 2): third moments down and up of what draws leave, 0 or more;
    `correlation` (k,): of effects on the estimate and on its correction; `worth` (k,): further draws that
    would shorten the default standard error as much; `out_of_reach` (k,): see `Second.reference`; `changes`
    (s,): see `Second.changes`; `notes` (k,): why a metric has no help, or "".
    """

    seconds: tuple[str, ...]
    weights: FloatArray = by_component(0)
    between: FloatArray = by_component(0)
    skew: FloatArray = by_component(0)
    correlation: FloatArray = by_component(0)
    worth: FloatArray = by_component(0)
    out_of_reach: FloatArray = by_component(0)
    changes: tuple[Changes, ...]
    notes: tuple[str, ...] = by_component(0)

    def interval(self, level: float = 0.95, kind: Kind | None = None) -> FloatArray:
        """Return two-sided intervals, (k, 2), cut to the support.

        Clusters out of reach leave a range of estimates. The interval begins where that of the least of them
        begins, and ends where that of the largest ends.

        If few draws hold most of what is left, the truth is rather on their side. Each end is further away by
        g (1 + 2z²)/6. Here g is its `skew`, and z the normal quantile of the level (Johnson 1978, Journal of
        the American Statistical Association 73, 536-544).
        """
        # shifted ends stand for the range between both cases, so that its variance is taken out again
        shifted = self.cov - np.diag(self.between.sum(axis=1) ** 2 / 12)
        down, up = (self.between + self.skew * (1 + 2 * ndtri((1 + level) / 2) ** 2) / 6).T
        low, high = (
            Normal.interval(replace(self, mean=self.mean + shift, cov=shifted), level, kind)
            for shift in (-down, up)
        )
        return np.column_stack([low[:, 0], high[:, 1]])

    def spread(self) -> dict[str, FloatArray]:
        """Return the columns `se_bound`, which has pseudo-draws and clusters out of reach too, and `df`."""
        return {"se_bound": self.sd, "df": np.broadcast_to(self.df, self.mean.shape)}

    def table(self, level: float = 0.95, kind: Kind | None = None) -> pd.DataFrame:
        """As `Normal.table`, with lambda (of each clustering), correlation, worth, out_of_reach and note."""
        table = Normal.table(self, level, kind)
        heads = [f"lambda of {name}" for name in self.seconds] if len(self.seconds) > 1 else ["lambda"]
        table[heads] = self.weights
        table["correlation"], table["worth"] = self.correlation, self.worth
        table["out_of_reach"] = self.out_of_reach
        if any(self.notes):
            table["note"] = list(self.notes)
        return table

    def alarms(self, sample: Sample, metrics: Wanted) -> list[Sentence]:
        """Return the alarms of a sample about metrics without help, and of what is out of reach."""
        alone = [metric for metric, note in zip(chosen(metrics), self.notes, strict=True) if note]
        sentences = alarms(sample, alone) if alone else out_of_balance(sample)
        return sentences + self.of_seconds()

    def of_seconds(self) -> list[Sentence]:
        """Return the alarms about second clusterings themselves."""
        return self._warn_known_labels() + self._warn_out_of_reach()

    def _warn_known_labels(self) -> list[Sentence]:
        """Return the alarms of second clusterings that seem to know the labels."""
        used = self.weights.any(axis=0)
        return [
            doubt
            for name, on, changes in zip(self.seconds, used, self.changes, strict=True)
            if on
            for doubt in known_labels(name, changes)
        ]

    def _warn_out_of_reach(self) -> list[Sentence]:
        """Return the alarm of second clusterings of which a large share is out of reach."""
        used = self.weights.any(axis=1) & (self.out_of_reach > TOO_MUCH)
        if not used.any():
            return []
        names = ", ".join(name for name, on in zip(self.names, used, strict=True) if on)
        what = (
            f"Up to {self.out_of_reach[used].max():.0%} of the second clustering is out of reach for "
            f"{names}: no draw reaches a cluster as large. There the second clustering may be "
            "right, or the prediction. The estimate is between both cases, and the interval reaches over "
            "both. Label more draws, or draw records instead of entities."
        )
        return [Sentence(what, Grade.CAUTION)]


def known_labels(name: str, changes: Changes) -> list[Sentence]:
    """Return the alarm of a second clustering that seems to know the labels, if it does."""
    if changes.chance >= BY_CHANCE:
        return []
    what = (
        f"{name!r} seems to know the labels: it differs from the prediction in {changes.drawn:.0%} of the "
        f"draws, and in {changes.every:.1%} of all. If it was made or trained with these labels, leave it "
        "out: the estimates are wrong."
    )
    return [Sentence(what, Grade.FAULT)]
