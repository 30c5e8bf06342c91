"""Populations: a prediction and the truth on the same records, simulated or real."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from ..._internal.arrays import Seed, generator
from ..._internal.errors import NotIdentified, need_object
from ...design.sample import Sample
from ...labels import RecordDraws
from ...metrics.columns import Column, Known
from ...metrics.definitions import Metric, resolve_metric
from ...units.clustering import Clustering
from ...units.measuring import measure, measure_predicted
from ...units.units import Units
from .synthetic import EntitySizes, Mechanism, require


def population(sizes: EntitySizes, records: int, rng: Seed = None) -> pd.Series:
    """Draw the entity of each record of a synthetic population, (N,), in which those of one are neighbours.

    Parameters
    ----------
    sizes : EntitySizes
    records : int
        Number of records N, 1 or more.
    rng : Generator, int or None

    Examples
    --------
    >>> from erbayes.study.populations import Empirical
    >>> population(Empirical([2]), 3, np.random.default_rng(1)).tolist()
    [0, 0, 1]
    """
    need_object(sizes, "draw", "a distribution of sizes is an object such as Zeta(2.5, 60)")
    drawn = sizes.draw(records, generator(rng))
    index = pd.RangeIndex(records, name="record")
    return pd.Series(np.repeat(np.arange(len(drawn)), drawn), index, name="entity")


def _restrict(clustering: Clustering, records: pd.Index) -> pd.Series:
    """Return the memberships of some of the records of a clustering."""
    position = clustering.records.get_indexer(records)
    return pd.Series(clustering.clusters.take(clustering.codes[position]), index=records)


@dataclass(frozen=True, slots=True, eq=False)
class Population:
    """A prediction and the truth of the same records, from which every metric has a known value.

    Attributes
    ----------
    pred, true : Series, (N,)
        Predicted cluster and true entity, both indexed by record.
    dropped : int
        Number of records that only the prediction or only the truth had.
    units : Units
        All entities, counted from the prediction and the truth.

    Examples
    --------
    >>> from erbayes import metrics
    >>> everyone = Population.of({1: "a", 2: "a", 3: "a"}, {1: "x", 2: "x", 3: "y", 4: "y"})
    >>> everyone
    Population(3 records, 2 entities, 1 predicted clusters, 1 records dropped)
    >>> round(everyone.value(metrics.pairwise_precision), 3)
    0.333
    """

    pred: pd.Series
    true: pd.Series
    dropped: int = 0
    units: Units = field(init=False)

    def __post_init__(self) -> None:
        require(
            self.pred.index.equals(self.true.index),
            f"the {len(self.pred)} records of the prediction are not the {len(self.true)} of the truth "
            "in the same order; Population.of restricts both to what they share",
        )
        object.__setattr__(self, "units", measure(self.pred, self.true))

    @classmethod
    def of(cls, prediction: Any, truth: Any) -> Population:
        """Make a population from two clusterings of real records. It has the records that both cover."""
        pred, true = Clustering.of(prediction, "prediction"), Clustering.of(truth, "truth")
        common = pred.records.intersection(true.records, sort=False)
        require(
            len(common) > 0,
            f"the prediction ({len(pred.records)} records of type {pred.records.dtype}) and the truth "
            f"({len(true.records)} of type {true.records.dtype}) share no record",
        )
        dropped = len(pred.records) + len(true.records) - 2 * len(common)
        return cls(_restrict(pred, common), _restrict(true, common), dropped)

    def total(self, column: Column | Known) -> float:
        """Return the total of a column over entities, or else over predicted clusters."""
        if isinstance(column, Known):
            column = column.column
        units = self.units
        # entities as units do not have it, but predicted clusters may
        if not column.identified(units):
            units = measure_predicted(self.pred, self.true, self.pred.unique())
        return float(column.count(units).sum())

    def value(self, metric: Metric | str) -> float:
        """Return the true value of a metric: its formula at the population totals."""
        metric = resolve_metric(metric)
        totals = np.array([self.total(c) for c in metric.columns])
        with np.errstate(divide="ignore", invalid="ignore"):
            value = float(metric.formula(*totals))
        if np.isnan(value):
            raise NotIdentified(f"{metric.name} is 0/0 in this population of {len(self.true)} records")
        return value

    def label(self, drawn: RecordDraws, unresolved: Sequence[Any] = ()) -> Sample:
        """Return drawn records with their true labels, as a sample; `unresolved` ones have no label."""
        table, design = drawn.table, drawn.design(self.true, unresolved=unresolved)
        if drawn.of_clusters:
            return Sample(measure_predicted(self.pred, self.true, table["cluster"]), design)
        entities = self.true.loc[table["record"][~table["record"].isin(unresolved)]]
        return Sample(self.units.take(np.unique(self.units.ids.get_indexer(pd.Index(entities)))), design)

    def __repr__(self) -> str:
        return (
            f"Population({len(self.true)} records, {len(self.units)} entities, "
            f"{self.pred.nunique()} predicted clusters, {self.dropped} records dropped)"
        )


def simulate(sizes: EntitySizes, errors: Mechanism, records: int, rng: Seed = None) -> Population:
    """Make a synthetic population: entities with `sizes`, and a prediction with `errors`.

    Parameters
    ----------
    sizes : EntitySizes
        Draws the sizes of the entities.
    errors : Mechanism
        Makes the predicted clusters from the entities.
    records : int
        Number of records N, 1 or more.
    rng : Generator, int or None

    Raises
    ------
    DataError
        Fewer than 1 record, or fewer entities than the errors need.

    Examples
    --------
    >>> from erbayes import metrics
    >>> from erbayes.study.populations import Merges, Zeta
    >>> everyone = simulate(Zeta(2.5), Merges(0.005), 2000, np.random.default_rng(1))
    >>> everyone.value(metrics.pairwise_recall), everyone.value(metrics.splits)
    (1.0, 5.0)
    """
    rng = generator(rng)
    true = population(sizes, records, rng)
    need_object(errors, "apply", "errors are made by an object such as Misattribution(0.1)")
    pred = pd.Series(errors.apply(true.to_numpy(), rng), true.index, name="cluster")
    return Population(pred, true)
