"""A second clustering of a scan: a column of the scanned table, or a second table, and the joint counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..arrays import FloatArray, IntArray
from ..errors import DataError, head
from ..tables import refuse_names
from ..units import Missing, same_kind
from .database import Database, KeyColumn

WITNESSES = 3
"""Number of clusters of some size or more that labels must touch for others of this size to be in reach."""
CHANGED = (
    "the prediction changed while it was scanned: the pieces of the second clustering {name!r} do not add up "
    "to its records. Scan a copy or a version of it, or all in one transaction of isolation REPEATABLE READ"
)


@dataclass(frozen=True, slots=True)
class SecondSource:
    """A second clustering that a scan counts: a column of the scanned table, or a second table.

    Parameters
    ----------
    source : as in `scan`, optional
        The second table, one row per record. By default it is the scanned table.
    cluster : str, optional
        The column of clusters. A second table of two columns needs no name.
    record : str, optional
        The column of records of a second table. By default it is called as in the scanned table, or it is the
        first column.

    Raises
    ------
    DataError
        If there is neither a table nor a column, or a column of records without a table.

    Examples
    --------
    >>> from erbayes.large import scan
    >>> both = pd.DataFrame({"record": [1, 2, 3], "old": ["a", "a", "b"], "new": ["c", "c", "c"]})
    >>> units = scan(both, {1: "x", 2: "x"}, record="record", cluster="old",
    ...              seconds={"new": SecondSource(cluster="new")})
    >>> sorted(units.seconds[0].n.tolist())
    [1.0, 2.0]
    """

    source: Any = None
    cluster: str | None = None
    record: str | None = None

    def __post_init__(self) -> None:
        if self.source is None and self.cluster is None:
            raise DataError("a second clustering is a table or a column: pass source=, cluster=, or both")
        if self.source is None and self.record is not None:
            raise DataError("record= is a column of a second table: pass source= too, or leave it out")


@dataclass(frozen=True, slots=True)
class SecondColumn(KeyColumn):
    """The clusters of a second clustering, opened.

    Attributes
    ----------
    name : str
        The name that messages print.
    key, column, joined : str
        As in `KeyColumn`.
    """

    name: str
    key: str
    column: str
    joined: str | None

    @classmethod
    def of(cls, database: Database, name: str, cluster: str, number: int) -> SecondColumn:
        """Take a column of the prediction, after `Database.use`.

        Raises
        ------
        DataError
            Ids that are neither text nor integers.
        """
        if database.kind(cluster) not in {"string", "integer", None}:
            raise DataError(
                f"cluster ids of the second clustering {name!r} must be all strings or all integers, not "
                f"{database.kind(cluster)}; convert them to text where they lie"
            )
        return cls(name, database.key(cluster), f"s{number}", None)

    @classmethod
    def of_table(
        cls, table: Database, name: str, wanted: SecondSource, number: int, prediction: tuple[Database, str]
    ) -> SecondColumn:
        """Take the clusters of a second table.

        Raises
        ------
        DataError
            As `of`. Columns that are lacking or not named, or ids of another type than the prediction's.
        """
        (database, of_prediction), columns = prediction, table.columns()
        record = wanted.record
        if record is None:
            others = [c for c in columns if c != wanted.cluster]
            record = of_prediction if of_prediction in others else (others or [""])[0]
        free = [c for c in columns if c != record and c not in table.by_folder]
        if wanted.cluster is None and len(free) > 1:
            raise DataError(
                f"the second clustering {name!r} has {len(columns)} columns, {head(columns, 20)}, instead of "
                "2: name that of clusters, SecondSource(source, cluster=...)"
            )
        cluster = wanted.cluster if wanted.cluster is not None else (free or [""])[0]
        refuse_names([record, cluster], columns, f"the second clustering {name!r}")
        table.use(record, cluster)
        kinds = database.kind(of_prediction), table.kind(record)
        if None not in kinds:
            same_kind(str(kinds[0]), str(kinds[1]), f"second clustering {name!r}")
        own = cls.of(table, name, cluster, number)
        keys = f"SELECT {table.key(record)} AS r, {own.key} AS {own.column} FROM {table.table}"
        return cls(name, own.key, own.column, f"({keys}) AS q")


@dataclass(frozen=True, slots=True, eq=False)
class Joint:
    """The joint counts of a prediction and a second clustering: pieces of the clusters of the second.

    Clusters that the labels touch are known one by one, and so are those larger than the third largest of
    these. The others are known by their pieces: one row stands for all that are alike.

    Attributes
    ----------
    name : str
    unit : int array, (p,)
        Row of the clusters of the second clustering that each piece belongs to, sorted.
    cluster : int array, (p,)
        Number of the predicted cluster of each piece; -1 for clusters that are known by their pieces only.
    n, m : float arrays, (p,)
        Records of the piece, and of its predicted cluster.
    count : float array, (rows,)
        Number of clusters of the second clustering that each row stands for.
    piece_of : Series
        Piece of each labelled record of the prediction, whose id is in the index.
    """

    name: str
    unit: IntArray
    cluster: IntArray
    n: FloatArray
    m: FloatArray
    count: FloatArray
    piece_of: pd.Series

    @property
    def size(self) -> FloatArray:
        """Records of the clusters of the second clustering, (rows,)."""
        return np.bincount(self.unit, self.n, len(self.count))


def refuse_kept(missing: Missing) -> None:
    """Refuse policies that add records, which no full count has.

    Raises
    ------
    DataError
        Policies other than `Missing.ERROR` and `Missing.OMIT`.
    """
    if missing not in {Missing.ERROR, Missing.OMIT}:
        raise DataError(
            f"assisted estimates cannot keep labelled records that the prediction lacks, as "
            f"{missing} does: choose Missing.OMIT"
        )


def joint(
    database: Database, table: str, second: SecondColumn, of_record: dict[Any, tuple[Any, Any]], rows: int
) -> Joint:
    """Count the pieces that clusters of a prediction and of a second clustering share.

    The table has the keys c of predicted clusters and, in the column of `second`, those of its clusters.
    `of_record` has both for each labelled record, and `rows` is the number of records.

    Raises
    ------
    DataError
        The counts contradict each other, since the table changed.
    """
    name = second.name
    shared = database.keep(
        f"SELECT {second.column} AS s, c, COUNT(*) AS n FROM {table} GROUP BY {second.column}, c"
    )
    sizes = database.keep(f"SELECT c, COUNT(*) AS m FROM {table} GROUP BY c")
    pieces = database.keep(
        f"SELECT j.s, j.c, j.n, a.m FROM (SELECT s, c, n FROM {shared}) AS j "
        f"JOIN (SELECT c, m FROM {sizes}) AS a ON a.c = j.c"
    )
    database.forget(sizes)
    database.forget(shared)
    counts = database.keep(f"SELECT s, n, m, COUNT(*) AS k FROM {pieces} GROUP BY s, n, m")
    alike = database.keep(f"SELECT s, {database.alike('s', 'n', 'm', 'k')} AS f FROM {counts} GROUP BY s")
    kinds = database.fetched(
        f"SELECT a.f, b.n, b.m, b.k, COUNT(*) FROM (SELECT s, n, m, k FROM {counts}) AS b "
        f"JOIN (SELECT s, f FROM {alike}) AS a ON a.s = b.s GROUP BY a.f, b.n, b.m, b.k "
        "ORDER BY a.f, b.n, b.m",
        ["f", "n", "m", "k", "count"],
    )
    database.forget(counts)
    touched = list({s for _, s in of_record.values()})
    lists = database.listed(touched)
    sums = [
        int(size)
        for inside in lists
        for (size,) in database.rows(f"SELECT SUM(n) FROM {pieces} WHERE s IN ({inside}) GROUP BY s")
    ]
    if len(sums) < len(touched):
        raise DataError(CHANGED.format(name=name))
    larger = f"SELECT s FROM {pieces} GROUP BY s HAVING SUM(n) > {sorted(sums)[-WITNESSES:][0]}"
    whole = (f"SELECT s, c, n, m FROM {pieces} WHERE s IN ({inside})" for inside in [*lists, larger])
    known = pd.concat(
        [
            database.fetched(
                f"SELECT j.s, j.c, j.n, j.m, a.f FROM ({select}) AS j "
                f"JOIN (SELECT s, f FROM {alike}) AS a ON a.s = j.s",
                ["s", "c", "n", "m", "f"],
            )
            for select in whole
        ],
        ignore_index=True,
    ).drop_duplicates(["s", "c"])  # the largest touched clusters came twice
    database.forget(alike)
    database.forget(pieces)
    found = _joint(name, known, kinds, of_record)
    if found.count @ found.size != rows:
        raise DataError(CHANGED.format(name=name))
    return found


def _joint(
    name: str, known: pd.DataFrame, kinds: pd.DataFrame, of_record: dict[Any, tuple[Any, Any]]
) -> Joint:
    """Make the counts of clusters that are known one by one, and of kinds of all clusters, in order.

    The columns of `kinds` are taken out one by one, since they may be large.
    """
    known = known.sort_values(["s", "c"])  # lists of ids came one by one
    own, keys = pd.factorize(known["s"])
    cluster, _ = pd.factorize(known["c"])
    fingerprint = kinds.pop("f").to_numpy()
    begins = np.append(True, fingerprint[1:] != fingerprint[:-1])
    fingerprints, left = pd.Index(fingerprint[begins]), kinds.pop("count").to_numpy(dtype=float)[begins]
    first = np.unique(own, return_index=True)[1]
    single = fingerprints.get_indexer(pd.Index(known["f"].iloc[first]))
    left -= np.bincount(single[single >= 0], minlength=len(left))
    if (single < 0).any() or (left < 0).any():
        raise DataError(CHANGED.format(name=name))
    place = {pair: i for i, pair in enumerate(zip(known["s"].tolist(), known["c"].tolist(), strict=True))}
    piece_of = {record: place.get((s, c), -1) for record, (c, s) in of_record.items()}
    if -1 in piece_of.values():
        raise DataError(CHANGED.format(name=name))
    kind = np.cumsum(begins) - 1
    times = np.where(left[kind] > 0, kinds.pop("k").to_numpy(dtype=np.int64), 0)
    row = np.cumsum(left > 0) - 1 + len(keys)
    n, m = (
        np.append(known[c].to_numpy(dtype=float), np.repeat(kinds.pop(c).to_numpy(dtype=float), times))
        for c in ("n", "m")
    )
    return Joint(
        name,
        unit=np.append(own, np.repeat(row[kind], times)),
        cluster=np.append(cluster, np.full(len(n) - len(cluster), -1)),
        n=n,
        m=m,
        count=np.append(np.ones(len(keys)), left[left > 0]),
        piece_of=pd.Series(list(piece_of.values()), index=pd.Index(list(piece_of)), dtype=np.int64),
    )


def refuse_lacking(lacking: int, rows: int, name: str, examples: Any) -> None:
    """Refuse a second clustering that lacks records of the prediction."""
    if lacking:
        raise DataError(
            f"the second clustering {name!r} lacks {lacking:,} of {rows:,} records of the prediction, such "
            f"as {head(examples)}: it must cover all of them; restrict the prediction to the records of both "
            "with frame=, or give the others clusters of their own"
        )
