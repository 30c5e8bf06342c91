"""Causes of error: features of units, and the records of the most influential ones, for review."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from .._internal.errors import DataError, head, need, refuse_cases, whole
from ..design.sample import Sample, need_sample
from ..engine.fitted import influence
from ..metrics.columns import PIECES
from ..metrics.definitions import Metric
from ..units.ids import same_kind
from ..units.units import Units

Rule = Callable[[pd.Series], Any]
"""A function of the values that the records of one unit have."""


def features(sample: Sample) -> pd.DataFrame:
    """Return features that every sample has, one row per unit.

    Pieces and the largest predicted cluster describe the prediction too. They say where errors are rather
    than why.

    Returns
    -------
    DataFrame
        Columns: records; pieces, the number of pieces; and largest_cluster, the records of the largest
        predicted cluster that has records of the unit.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b"}, {1: "x", 2: "x", 3: "x"})
    >>> features(eb.Sample(units, eb.UniformClusters()))
       records  pieces  largest_cluster
    x      3.0     2.0              2.0
    """
    need_sample(sample)
    units, largest = sample.units, sample.units.largest_touched
    columns = {"records": units.size, "pieces": units.column(PIECES), "largest_cluster": largest}
    return pd.DataFrame(columns, index=units.ids)


def aggregated(
    sample: Sample, attributes: pd.DataFrame, rule: Rule | Mapping[str, Rule] | None = None
) -> pd.DataFrame:
    """Make features of units from attributes of records.

    Parameters
    ----------
    attributes : DataFrame
        One row per record, whose id is in the index. It may have further records.
    rule : callable Series -> value, or mapping column -> callable, optional
        How the values of the records of a unit become one, such as `pd.Series.nunique`. By default the mean.

    Returns
    -------
    DataFrame
        One row per unit, one column per attribute. A mapping chooses its columns.

    Raises
    ------
    DataError
        If labelled records have no row or several, if a value is missing, or if a text has no rule.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b"}, {1: "x", 2: "x", 3: "y"})
    >>> names = pd.DataFrame({"name": ["Ann", "Anne", "Bob"]}, index=[1, 2, 3])
    >>> aggregated(eb.Sample(units, eb.UniformClusters()), names, pd.Series.nunique)
       name
    x     2
    y     1
    """
    need_sample(sample)
    units = sample.units
    records = _of_records(units, attributes)
    rules = dict(rule) if isinstance(rule, Mapping) else dict.fromkeys(records.columns, rule)
    if unknown := [c for c in rules if c not in records]:
        raise DataError(f"attributes have no column {head(unknown)}; they have {head(records.columns, 10)}")
    found = {}
    for column, how in rules.items():
        values = records[column]
        said = f"{column!r} has no value for {{n}} of {len(values):,} labelled records, such as"
        refuse_cases(values.index[values.isna()], said, ": give them one of their own")
        if how is None and not pd.api.types.is_numeric_dtype(values):
            raise DataError(f"{column!r} has no mean: choose rule=, such as pd.Series.nunique")
        groups = values.groupby(_locate_units(units).to_numpy())
        found[column] = (groups.mean() if how is None else groups.agg(how)).to_numpy()
    return pd.DataFrame(found, index=units.ids)


def _locate_units(units: Units) -> pd.Series:
    if units.piece_of is None:
        raise DataError("these units have no ids of records: give features of units")
    return pd.Series(units.unit[units.piece_of], index=units.piece_of.index)


def _of_records(units: Units, attributes: Any) -> pd.DataFrame:
    """Return the attributes of labelled records, in the order of `piece_of`."""
    need(attributes, pd.DataFrame, "attributes are a DataFrame, one row per record with its id in the index")
    ids, among = _locate_units(units).index, "labelled records"
    same_kind(attributes.index, ids, among, "ids in the index of attributes")
    table: pd.DataFrame = attributes[attributes.index.isin(ids)]
    twice = table.index[table.index.duplicated()].unique()
    refuse_cases(twice, f"attributes have several rows for {{n}} {among}, such as")
    position = table.index.get_indexer(ids)
    refuse_cases(ids[position < 0], f"attributes have no row for {{n}} of {len(ids):,} {among}, such as")
    return table.iloc[position]


def review(sample: Sample, metric: Metric | str, attributes: pd.DataFrame, *, most: int = 20) -> pd.DataFrame:
    """List the records of the most influential units with their attributes, for a person who reviews them.

    `.to_csv(path, index=False)` exports the list.

    Parameters
    ----------
    attributes : DataFrame
        One row per record, whose id is in the index. It may have further records.
    most : int
        The number of units.

    Returns
    -------
    DataFrame
        One row per record; the most influential unit first, and in it the largest piece. Columns: unit;
        influence, as in `erbayes.influence`; record; piece, numbered within the unit; cluster_size, the
        records of its predicted cluster; then the attributes.

    Raises
    ------
    DataError, NotIdentified
        If labelled records have no row or several, or if the metric is 0/0 in the sample.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b", 4: "c"}, {1: "x", 2: "x", 3: "x", 4: "y"})
    >>> names = pd.DataFrame({"name": ["Ann", "Ann", "Anne", "Bob"]}, index=[1, 2, 3, 4])
    >>> found = review(eb.Sample(units, eb.UniformClusters()), "b3-recall", names, most=1)
    >>> found.drop(columns="influence")
      unit  record  piece  cluster_size  name
    0    x       1      1             2   Ann
    1    x       2      1             2   Ann
    2    x       3      2             1  Anne
    """
    need_sample(sample)
    most, units = whole(most, "most units"), sample.units
    shown = _of_records(units, attributes)
    moved = influence(sample, metric)["influence"].head(most)
    order = np.lexsort((-units.n, units.unit))  # pieces of each unit, the largest first
    place = np.empty(len(order), dtype=np.int64)
    first = np.searchsorted(units.unit[order], np.arange(len(units)))
    place[order] = np.arange(len(order)) - first[units.unit[order]] + 1
    assert units.piece_of is not None  # _of_records needs it
    piece = units.piece_of.to_numpy()
    columns = {
        "unit": units.ids[units.unit[piece]],
        "influence": moved.reindex(units.ids).to_numpy()[units.unit[piece]],
        "record": shown.index,
        "piece": place[piece],
        "cluster_size": units.m[piece].astype(np.int64),
    }
    if clash := [c for c in shown.columns if c in columns]:
        raise DataError(f"attributes have columns {head(clash)}, as the list itself: rename them")
    table = pd.concat([pd.DataFrame(columns), shown.reset_index(drop=True)], axis=1)
    rank = pd.Series(np.arange(len(moved)), index=moved.index).reindex(table["unit"]).to_numpy()
    table = table.assign(_rank=rank)[~np.isnan(rank)]
    return table.sort_values(["_rank", "piece"], kind="stable").drop(columns="_rank").reset_index(drop=True)
