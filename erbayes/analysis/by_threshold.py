"""Tables with one row per record and one column of cluster ids per threshold, as Splink and others write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from .._internal.errors import DataError, head
from .._internal.known_columns import NAMES, find_thresholds
from .._internal.tables import is_table, refuse_names, to_frame
from ..large import Columns, DuckDB, scan
from ..large.sources import lies_elsewhere, opened
from ..units.clustering import Clustering
from ..units.columns import read_prediction
from ..units.edges import spread_thresholds
from ..units.ids import ids
from ..units.reading import Named, Near, explain_repeats, pair_columns


def choose_columns(source: Any, at: Any) -> dict[float, Any]:
    """Return the column of clusters at each threshold; none if the rows of a table are edges."""
    if isinstance(at, Mapping):
        return dict(at)
    columns = _list_columns(source)
    # both ends of an edge may be called id_1 and id_2
    if any(pair.stem in ("", *NAMES["record"]) for pair in pair_columns(columns)):
        return {}
    found = find_thresholds(columns)
    if not found:
        return {}
    if isinstance(at, str) or not isinstance(at, Iterable):
        return {t: found[t] for t in spread_thresholds(np.sort([*found]), at).tolist()}
    if unknown := [threshold for threshold in at if threshold not in found]:
        raise DataError(f"no column has clusters at {head(unknown)}; there are {head(sorted(found), 20)}")
    return {threshold: found[threshold] for threshold in at}


def _list_columns(source: Any) -> Sequence[Any]:
    if not lies_elsewhere(source):
        return list(to_frame(source).columns) if is_table(source) else []
    with opened([source], DuckDB()) as (table,):
        return table.columns()


def read_clusters(
    source: Any, labels: Clustering, record: Any, columns: Mapping[float, Any]
) -> dict[float, Any]:
    """Return the clusters at each threshold, or what a scan counts of them, where the table lies."""
    if not (record is None or isinstance(record, str)):
        raise DataError("a table of clusters has a row for each record: leave out the list of all records")
    if lies_elsewhere(source):
        of_threshold = {str(threshold): column for threshold, column in columns.items()}
        units = scan(dict.fromkeys(of_threshold, source), labels, Columns(record, of_threshold))
        return {threshold: units[str(threshold)] for threshold in columns}
    table = to_frame(source)
    refuse_names(list(columns.values()), list(table.columns), "the table of clusters")
    rest = [c for c in table.columns if c not in set(columns.values())]
    first = next(iter(columns.values()))
    named = Named(record=record, cluster=first, links=False)
    reading = read_prediction(table[[*rest, first]], named, Near({labels.records.name: labels.records}))
    if reading.repeats:
        raise explain_repeats(table[reading.ids[0]], table[first], reading.what)
    # one index, so that labelled records are looked up in it once
    records = ids(reading.key(), f"record ids of the {reading.what}")
    return {
        threshold: Clustering.of(pd.Series(table[column].array, records), f"prediction at {threshold:g}")
        for threshold, column in columns.items()
    }
