"""Causes of error: features of units, and the records of the most influential ones, for review."""

from __future__ import annotations

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


def _of_records(units: Units, attributes: Any) -> pd.DataFrame:
    """Return the attributes of labelled records, in the order of `piece_of`."""
    need(attributes, pd.DataFrame, "attributes are a DataFrame, one row per record with its id in the index")
    if units.piece_of is None:
        raise DataError("these units have no ids of records")
    ids, among = units.piece_of.index, "labelled records"
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
