"""Records of the most influential units, for a person who reviews them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..._internal.errors import DataError, head, whole
from ...design.sample import Sample, need_sample
from ...engine.diagnostics import influence
from ...metrics.definitions import Metric
from .unit_features import of_records


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
    shown = of_records(units, attributes)
    moved = influence(sample, metric)["influence"].head(most)
    order = np.lexsort((-units.n, units.unit))  # pieces of each unit, the largest first
    place = np.empty(len(order), dtype=np.int64)
    first = np.searchsorted(units.unit[order], np.arange(len(units)))
    place[order] = np.arange(len(order)) - first[units.unit[order]] + 1
    assert units.piece_of is not None  # of_records needs it
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
