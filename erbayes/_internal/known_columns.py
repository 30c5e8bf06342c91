"""Names that well-known matchers give to the columns of their tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from .errors import DataError

if TYPE_CHECKING:
    import pandas as pd

NAMES = {
    # Splink, Senzing, AWS Entity Resolution, FEBRL, Zingg; dedupe has no name for it
    "record": "uniqueid recordid recid zzid record id".split(),
    # Splink and dedupe's CSV, dedupe, Zingg, Senzing, AWS
    "cluster": "clusterid canonicalid zcluster resolvedentityid matchid cluster entityid".split(),
    "source": "sourcedataset datasource zsource zzsource inputsourcearn source dataset".split(),
    # Splink, recordlinkage, dedupe, Zingg
    "score": "matchweight matchprobability score probability prob proba similarity confidence "
    "confidencescore zscore".split(),
    # py_entitymatching and tables of answers
    "answer": "predicted prediction match ismatch samepair".split(),
    "entity": "entity entityid person personid truth".split(),
}
"""Names of matchers for columns of each meaning, as `plain` writes them; the first is preferred."""
JOIN = "-__-"
"""What joins source and id of records whose ids are unique in their source alone, as in Splink."""


def plain(name: Any) -> str:
    """Return a name in small letters and digits alone."""
    return re.sub(r"[^a-z0-9]", "", str(name).lower())


def find_known(columns: Iterable[Any], meaning: str) -> list[Any]:
    """Return the columns whose names matchers give to a meaning, the preferred first."""
    known = NAMES[meaning]
    return sorted((c for c in columns if plain(c) in known), key=lambda c: known.index(plain(c)))


def join_ids(source: pd.Series, ids: pd.Series) -> pd.Series:
    """Return source and id of each record as one text, (rows,), and refuse sources in which `JOIN` occurs."""
    if (inside := source.str.contains(JOIN, regex=False)).any():
        raise DataError(
            f"{int(inside.sum()):,} sources hold {JOIN!r}, which joins source and id: call them otherwise"
        )
    joined: pd.Series = source + JOIN + ids
    return joined


def choose_record(columns: Sequence[Any], record: Any = None) -> Any:
    """Return the column of records of a table of attributes: that of this name, a known one, or the first."""
    return record if record in columns else next(iter(find_known(columns, "record")), columns[0])
