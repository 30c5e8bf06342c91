"""The columns of a prediction that are read, and the types of their ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .._internal.errors import DataError, Remedy, head
from .._internal.known_columns import find_known
from .._internal.tables import INDEX, refuse_names, separator_hint
from .database import Database


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a prediction that are read, and how its ids are taken.

    Parameters
    ----------
    record, cluster : str, optional
        Columns of record and cluster ids; by default the only two of a table. If predictions are a mapping of
        names to sources, `cluster` may be one too, of names to columns.
    any_id : bool
        True takes every id for that of a real cluster, also ids such as -1 and "NULL" that usually mean none
        (see `erbayes.Clustering.of`). Labels have their own: `Clustering.of(labels, any_id=True)`.

    Examples
    --------
    >>> import pandas as pd
    >>> from erbayes.large import scan
    >>> table = pd.DataFrame({"id": [1, 2], "old": ["a", "b"], "new": ["c", "c"]})
    >>> scan(table, {1: "x", 2: "x"}, Columns("id", "new")).columns
    ('id', 'new')
    """

    record: str | None = None
    cluster: str | Mapping[str, str | None] | None = None
    any_id: bool = False

    def cluster_of(self, name: str) -> str | None:
        """Return the column of clusters of a prediction."""
        return self.cluster.get(name) if isinstance(self.cluster, Mapping) else self.cluster


def use_columns(
    database: Database, record: str | None, clusters: Sequence[str | None], others: tuple[str, ...] = ()
) -> tuple[str, list[str]]:
    """Choose the columns of records and clusters, prepare these and others, and refuse ids of other types.

    Ids that are unique inside their source alone become one id with it.
    """
    named = [cluster for cluster in clusters if cluster is not None]
    pairs = [
        chosen_columns(database, record, cluster, (*others, *(c for c in named if c != cluster)))
        for cluster in clusters
    ]
    chosen = list(dict.fromkeys([pairs[0][0], *(cluster for _, cluster in pairs)]))
    sources = [c for c in find_known(database.columns(), "source") if c not in chosen][:1]
    database.use(*dict.fromkeys([*chosen, *others, *sources]))
    for source in sources:
        id, origin = database.id(chosen[0]), database.value(source)
        several = f"SELECT 1 AS a FROM {database.table} GROUP BY {id} HAVING MIN({origin}) < MAX({origin})"
        if database.rows(f"SELECT COUNT(*) FROM ({several}) AS t")[0][0]:
            database.join_source(chosen[0], source)
    for column in chosen:
        if (kind := database.kind(column)) not in {"string", "integer", None}:
            what = "record" if column == chosen[0] else "cluster"
            raise DataError(
                f"{what} ids of the prediction must be all strings or all integers, not {kind}; convert them "
                "to text where they lie"
            )
    return chosen[0], [cluster for _, cluster in pairs]


def chosen_columns(
    database: Database, record: str | None, cluster: str | None, others: tuple[str, ...] = ()
) -> tuple[str, str]:
    """Return the columns of records and of clusters: those named, or the only two that are not."""
    columns = database.columns()
    free = [c for c in columns if c not in {*others, record, cluster}]
    known = {meaning: find_known(free, meaning) for meaning in ("record", "cluster")}
    record, cluster = (
        known[meaning][0] if name is None and len(known[meaning]) == 1 else name
        for meaning, name in (("record", record), ("cluster", cluster))
    )
    named = [c for c in (record, cluster, *others) if c is not None]
    remedy = Remedy.SCANNED_COLUMNS
    choices = dict.fromkeys((c for c in (record, cluster) if c is not None), remedy)
    refuse_names(named, columns or named, "the prediction", choices)
    missing = [record, cluster].count(None)
    unnamed = [c for c in columns if c not in named and c not in database.by_folder]
    if missing and len(unnamed) > missing:
        raise DataError(f"the prediction has {len(columns)} columns, {head(columns, 20)}, not 2", remedy)
    rest = iter(unnamed)
    record, cluster = (name if name is not None else next(rest, None) for name in (record, cluster))
    if record is None or cluster is None:
        index = [c for c in columns if c in database.by_folder and INDEX.fullmatch(c)]
        raise DataError(
            "the prediction needs a column of records and one of clusters"
            + (f"; it has {head(columns, 20)}{separator_hint(columns)}" if columns else "")
            + (f", of which pandas wrote {head(index)} for an index without a name" if index else ""),
            remedy,
        )
    return record, cluster
