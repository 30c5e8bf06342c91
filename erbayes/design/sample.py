"""Samples: units with the design by which they were drawn, the input of every engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import InitVar, dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd

from .._internal.arrays import FloatArray, IntArray
from .._internal.digits import describe, facts_to_html
from .._internal.errors import DataError, need, need_object
from ..metrics.columns import PREDICTED_LINKS, RECORDS, ClusterSum, Column, InDomain, Known
from ..metrics.definitions import UNIT, Group, Metric, link_ratio
from ..metrics.tables import Pictured
from ..metrics.unseen import NOTABLE, ROUNDING, UNSETTLED, count_unseen, round_outward
from ..units.settled import Heap, Looks, Totals, find_heap, settle
from ..units.units import Units, need_units
from .changes import leave_out
from .contract import Design
from .draws import DrawnUnits, list_distinct
from .records import draws_records

ERRORS = 3.0
"""Standard errors between estimated and known predicted links above which a sample is out of balance, which
chance brings in one of 370 samples if estimates are normal."""


@dataclass(frozen=True, eq=False, repr=False)
class Sample(Pictured):
    """Labelled units with the design by which they were drawn.

    Parameters
    ----------
    units : Units
        As `erbayes.measure` returns them.
    design : Design
        Refuses units that do not fit it with a `DataError`.
    drawn : DrawnUnits, optional
        Draws, their weights and their variance, by default those that the design makes from the units. The
        sample has them as `expansion`.
    looks : Looks, optional
        What a look at some clusters of a heap in the predicted sizes has shown (see `alarms`). A prediction
        without a heap takes none.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b"}, {1: "x", 2: "x", 3: "y"})
    >>> eb.Sample(units, eb.UniformRecords()).contributions([eb.columns.RECORDS]).ravel()
    array([2.25, 1.8 ])
    """

    picture: ClassVar[str] = "balance"
    units: Units
    design: Design
    drawn: InitVar[DrawnUnits | None] = None
    looks: Looks | None = None
    expansion: DrawnUnits = field(init=False)

    def __post_init__(self, drawn: DrawnUnits | None) -> None:
        need_units(self.units)
        need_object(self.design, "expand", "a design is an object such as UniformRecords()")
        if self.looks is not None:
            need(self.looks, Looks, "looks are Looks(found, of=number)")
            # draws that are given come from a sample whose looks have been accepted
            if drawn is None and (self.units.known is None or find_heap(self.units.known) is None):
                raise DataError("looks tell what a heap in the predicted sizes is, and these have none")
        object.__setattr__(self, "design", leave_out(self.design, self.units))
        object.__setattr__(self, "expansion", drawn or self.design.expand(self.units))

    @classmethod
    def many(cls, units: Units, design: Any, unit: IntArray) -> Self:
        """Return samples by one design, whose draws are the units at the positions `unit`, (samples, n)."""
        return cls(units, design, design.expand_draws(units, unit))

    def with_units(self, units: Units) -> Sample:
        """Return the same draws of units that are counted in another way, such as by groups."""
        return Sample(units, self.design, self.expansion, self.looks)

    def __repr__(self) -> str:
        return f"Sample({len(self)} draws of {self.units!r} by {type(self.design).__name__})"

    def __len__(self) -> int:
        """Return the number of draws."""
        return int(self.expansion.order.shape[-1])

    @property
    def leading(self) -> tuple[int, ...]:
        """Return the leading axes of results: those of many samples of a study, which are fitted at once."""
        return self.expansion.unit.shape[:-1]

    def table(self) -> pd.DataFrame:
        """Return `facts` as a table; that of `units` has a row per unit."""
        return pd.DataFrame({"value": self.facts()}).rename_axis("fact")

    def facts(self) -> dict[str, str]:
        """Return facts about the data and the design in words, each under its name.

        Examples
        --------
        >>> from erbayes import UniformClusters, measure
        >>> units = measure({1: "a", 2: "a", 3: "b"}, {1: "x", 2: "x"})
        >>> sample = Sample(units, UniformClusters(population=2))
        >>> sample.facts()["the prediction"], sample.facts()["design"]
        ('3 records in 2 clusters', 'UniformClusters(population=2)')
        """
        units = self.units
        kind = "entities or blocks" if units.by_entity else "predicted clusters"
        facts = {
            "design": describe(self.design),
            "draws": f"{len(self):,}",
            "labelled units": f"{len(units):,} {kind}",
            "labelled records": f"{int(units.n.sum()):,}",
            "the largest unit": f"{int(units.size.max()):,} records",
            "overlaps with predicted clusters": f"{len(units.n):,}",
        }
        if units.unmatched:
            facts["labelled records missing in the prediction"] = f"{units.unmatched:,}"
        if left_out := len(units.omitted):
            facts["labelled units missing in the prediction, left out with their draws"] = f"{left_out:,}"
        if units.frame is not None:
            facts |= units.frame.in_words()
        if units.known is not None:
            facts["the prediction"] = str(units.known)
        return facts

    def _repr_html_(self) -> str:
        return facts_to_html("Sample", self.facts())

    def contributions(self, columns: Sequence[Column]) -> FloatArray:
        """Return the contribution of each row of draws to each total, weight times column, (k, c)."""
        for column in columns:
            self.expansion.need_reached(column)
        # draw by draw, since a study has all units of the population
        drawn = [self.units.column(column)[self.expansion.unit] for column in columns]
        return np.moveaxis(np.stack(drawn) * self.expansion.weight, 0, -1)

    def count_each(self) -> Sample:
        """Return the same draws, each counted as often as it was made, where the design says its weight."""
        return Sample(self.units, self.design, self.expansion.count_each(), self.looks)

    @cached_property
    def fits(self) -> dict[Any, Any]:
        """Fits of this sample by their metrics, which `erbayes.engine.fitted` fills."""
        return {}

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @cached_property
    def heap(self) -> Heap | None:
        """Return the heap in the predicted sizes if labels leave open whether entities end there; else None.

        Draws of records show it if one of their entities is larger, since large ones are drawn most.
        """
        heap = None if self.units.known is None else find_heap(self.units.known)
        if heap is None or not self.units.by_entity:
            return None
        return None if draws_records(self.design, self.units) and self.units.size.max() > heap.size else heap

    @cached_property
    def largest_touched(self) -> FloatArray:
        """Return the records of the largest predicted cluster that draws touch, (...)."""
        return np.asarray(self.units.largest_touched[self.expansion.unit].max(axis=-1))

    def unreached_share(self, column: ClusterSum) -> FloatArray:
        """Return the share of a total in clusters larger than any that draws touch, (...); 0 if not known."""
        known = self.units.known
        return np.zeros(self.leading) if known is None else known.share_above(column, self.largest_touched)

    @cached_property
    def unreached_links(self) -> FloatArray:
        """Return the share of predicted links in clusters larger than any that draws touch, (...)."""
        return self.unreached_share(PREDICTED_LINKS)

    def estimate_known(
        self, columns: Sequence[ClusterSum | InDomain], per: Sequence[ClusterSum | InDomain] = ()
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return estimates of known totals and their errors, (..., k), and the totals themselves, (k,).

        Estimates are scaled to the known totals of `per` (k,), such as records, in which an unknown scale of
        weights cancels. An error counts one unseen draw of average size.
        """
        draws, known = self.expansion, np.array([self.units.total(column) for column in columns])
        z, k = self.contributions([*columns, *per]), len(columns)
        y = x = effect = z[..., :k]
        with np.errstate(divide="ignore", invalid="ignore"):  # a domain without draws
            if per:
                x = z[..., k:]
                sums = x.sum(axis=-2, keepdims=True)
                scale = np.array([self.units.total(column) for column in per]) / sums
                y, effect = scale * y, scale * (y - y.sum(axis=-2, keepdims=True) / sums * x)
            estimate = y.sum(axis=-2)
            squares = np.diagonal(draws.covariance(draws.residuals(effect)), axis1=-2, axis2=-1)
            # draws that are all alike have no variance, and yet know no total unless their design fixes it
            one = estimate / count_unseen(x, draws.unseen, draws.repeated)
        one = np.where(np.abs(estimate - known) <= 1e-9 * known, 0.0, one)
        squares = np.where(squares < (ROUNDING * estimate) ** 2, 0.0, squares)
        return estimate, np.sqrt(squares + one**2), known

    @cached_property
    def balance_links(self) -> tuple[FloatArray, FloatArray, float] | None:
        """Return estimated predicted links, their error, (...) each, and their number; None if not known."""
        if self.units.population is None or not self.expansion.reaches(RECORDS):
            return None
        estimate, error, known = self.estimate_known([PREDICTED_LINKS], [RECORDS])
        return estimate[..., 0], error[..., 0], float(known[0])

    @cached_property
    def underrepresented_links(self) -> FloatArray:
        """Return the share of predicted links for which draws cannot speak, (...); 0 if it is not known.

        They are unreached, or are missing in an estimate that is over three errors below their number.
        Draws of records seldom miss so many by chance: there it is rather a prediction of other records.
        """
        share = self.unreached_links
        found = None if draws_records(self.design, self.units) else self.balance_links
        if found is None or not found[-1]:
            return share
        estimate, error, number = found
        return np.maximum(share, np.where(estimate < number - ERRORS * error, 1 - estimate / number, 0.0))

    @cached_property
    def out_of_reach(self) -> FloatArray:
        """Return shares of predicted links, true links and records for which draws cannot speak, (..., 3).

        Nobody knows how many true links are in large clusters that no draw touches. If more than a tenth of
        the predicted links is there and units were drawn, as large a share of the true links may be, and the
        share of the records in these clusters. Draws of records reach large entities, so that it is 0.
        """
        links, records = self.underrepresented_links, self.unreached_share(RECORDS)
        unknown = (links > NOTABLE) & (not draws_records(self.design, self.units))
        return np.stack([links, np.where(unknown, links, 0.0), np.where(unknown, records, 0.0)], axis=-1)

    @cached_property
    def settled(self) -> list[tuple[Totals, Totals]] | None:
        """Worst and best totals that right labels leave possible, by family of metrics: see `settle`."""
        unit, there = list_distinct(self.expansion.order)
        return settle(self.units, np.atleast_2d(unit), np.atleast_2d(there))

    def certain(self, metrics: Sequence[Metric]) -> FloatArray:
        """Return the least and the largest value of metrics that right labels leave possible, (..., k, 2).

        It is (-∞, ∞) where they settle nothing, as for shares of other things than links, records by
        B-cubed, whole clusters and singletons.
        """
        ends = np.tile(UNSETTLED, (*self.leading, len(metrics), 1))
        for j, metric in enumerate(metrics):
            settles = metric == link_ratio or (metric.support == UNIT and metric.group is not Group.OTHER)
            if settles and self.settled:
                ends[..., j, :] = _find_ends(metric, self.settled, ends[..., j, :])
        return round_outward(ends)


def _find_ends(metric: Metric, settled: list[tuple[Totals, Totals]], unsettled: FloatArray) -> FloatArray:
    """Return the values of a metric at the worst and the best totals of its family, (..., 2), in order."""
    columns = [c.column if isinstance(c, Known) else c for c in metric.columns]
    for family in reversed(settled):  # true links alone are the last one
        if family[0].keys() >= {*columns}:
            with np.errstate(invalid="ignore", divide="ignore"):
                ends = np.stack([metric.formula(*[t[c] for c in columns]) for t in family], axis=-1)
            ends = np.sort(ends, axis=-1).reshape(unsettled.shape)
            return np.where(np.isnan(ends).any(axis=-1, keepdims=True), unsettled, ends)
    return unsettled


def need_sample(value: Any, many: bool = False) -> None:
    """Refuse anything but a `Sample`, such as units without a design, and many at once unless `many` do."""
    need(value, Sample, "a Sample is needed, such as Sample(measure(prediction, labels), design)")
    if value.leading and not many:
        said = f"one sample is needed here, and not {len(value.expansion.unit):,} at once"
        raise DataError(f"{said}: ask for each alone, or ask Taylor(), which takes many")


def need_labels_and_design(labels: Any, design: Design | None, call: str) -> Design:
    """Return the design, and refuse a call without labels or without a design."""
    absent = [name for name, value in (("labels", labels), ("design", design)) if value is None]
    if design is None or absent:
        raise DataError(
            f"{' and '.join(absent)} {'are' if labels is None else 'is'} missing: give {call}, such as "
            "UniformRecords(drawn) if records were drawn at random"
        )
    return design
