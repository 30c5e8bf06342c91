"""A second clustering of a scan: a column of the scanned table, or a second table, and the joint counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from .._internal.arrays import FloatArray, IntArray
from .._internal.errors import DataError, Remedy, head
from .._internal.policies import Missing
from ..units.checks import NEARLY_ALL
from .choice import chosen_columns, refuse_kind
from .database import ByRelease, Database, changed, refuse_unlike


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

    Examples
    --------
    >>> from erbayes.large import Columns, scan
    >>> both = pd.DataFrame({"record": [1, 2, 3], "old": ["a", "a", "b"], "new": ["c", "c", "c"]})
    >>> units = scan(both, {1: "x", 2: "x"}, Columns("record", "old"),
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
class SecondColumn:
    """The clusters of a second clustering, opened; `name` is for messages."""

    name: str
    key: str
    column: str
    joined: str | None
    heading: str | None = None
    names: tuple[str, ...] = ()
    no_clusters: Mapping[Any, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, database: Database, name: str, cluster: str, number: int) -> SecondColumn:
        """Take a column of the prediction, after `Database.use`."""
        refuse_kind(database.kind(cluster), f"cluster ids of the second clustering {name!r}")
        nones = database.no_clusters(cluster)
        return cls(name, database.key(cluster), f"s{number}", None, no_clusters=nones)

    @classmethod
    def of_table(
        cls, table: Database, name: str, wanted: SecondSource, number: int, prediction: tuple[Database, str]
    ) -> SecondColumn:
        """Take the clusters of a second table, whose ids of records have the type of the prediction's."""
        database, of_prediction = prediction
        record, cluster = _choose_names(table, name, wanted, of_prediction)
        table.use(record, cluster)
        refuse_unlike(database.kind(of_prediction), table.kind(record), f"second clustering {name!r}")
        own = cls.of(table, name, cluster, number)
        keys = f"SELECT {table.key(record)} AS r, {own.key} AS {own.column} FROM {table.table}"
        heading = table.repeats_heading({"r": record, own.column: cluster})
        return replace(own, joined=f"({keys}) AS q", heading=heading, names=(record, cluster))


def _choose_names(table: Database, name: str, wanted: SecondSource, like: str) -> tuple[str, str]:
    """Return the columns of records and clusters of a second table; `like`: records of the prediction."""
    columns, record, what = table.columns(), wanted.record, f"the second clustering {name!r}"
    if record is None:
        record = like if like in columns else (columns or [""])[0]
        if record == wanted.cluster:
            raise DataError(
                f"{record!r} is the column of records of {what}, and cannot be that of clusters too: it has "
                f"{head(columns, 20)}",
                Remedy.SECOND_COLUMNS,
            )
    return chosen_columns(table, record, wanted.cluster, (), what, Remedy.SECOND_COLUMNS)


@dataclass(frozen=True, slots=True, eq=False)
class Joint:
    """The joint counts of a prediction and a second clustering: (p,) pieces of the clusters of the second.

    Clusters that labels touch or that may be out of reach are known one by one, the others by rows of pieces
    that are alike. `unit`: row of each piece; `cluster`: its predicted cluster, -1 if known by pieces only;
    `n`, `m`: records of both; `count` (rows,): clusters in a row; `piece_of`: piece of each labelled record;
    `left_out`: records of the second clustering that the prediction has not.
    """

    name: str
    unit: IntArray
    cluster: IntArray
    n: FloatArray
    m: FloatArray
    count: FloatArray
    piece_of: pd.Series
    left_out: int = 0

    @property
    def size(self) -> FloatArray:
        """Records of the clusters of the second clustering, (rows,)."""
        return np.bincount(self.unit, self.n, len(self.count))


def refuse_kept(missing: Missing) -> None:
    """Refuse policies other than `Missing.ERROR` and `OMIT`: they add records, which no full count has."""
    if missing not in {Missing.ERROR, Missing.OMIT}:
        raise DataError(
            "estimates with the help of other clusterings cannot keep labelled records that are missing in "
            f"the prediction, as the policy {missing.value!r} does",
            Remedy.LEAVE_OUT,
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Kinds:
    """Clusters of a second clustering known by their pieces only: unit, n and m, (p,); count, (rows,)."""

    unit: IntArray
    n: FloatArray
    m: FloatArray
    count: FloatArray


def joint(
    database: Database,
    table: str,
    second: SecondColumn,
    of_record: Mapping[Any, dict[Any, tuple[Any, Any]]],
    unit_of: Mapping[Any, pd.Series],
    rows: Mapping[Any, int],
    by: ByRelease,
) -> dict[Any, Joint]:
    """Count the pieces that clusters of a prediction and of a second clustering share, by release."""
    v, s = by.v, second.column
    error = changed(f"the pieces of the second clustering {second.name!r} do not add up to its records")
    sizes_of = _count_touched(database, table, s, of_record, by)
    if not all(all(sizes.values()) for sizes in sizes_of.values()):
        raise error
    # clusters that labels touch, and those larger than any that a unit reaches, are read one by one; the rest
    # is counted by kind, so that memory grows with kinds and not with records
    touched = [*{key for sizes in sizes_of.values() for key in sizes}]
    largest = min(_find_largest_reached(of_record[of], unit_of[of], sizes) for of, sizes in sizes_of.items())
    sizes = database.keep(f"SELECT {v}c, COUNT(*) AS m FROM {table} GROUP BY {v}c")
    every: list[pd.DataFrame] = []
    kinds: dict[Any, list[_Kinds]] = {of: [] for of in of_record}
    for condition in database.parts(s, sum(rows.values())):
        part = f"(SELECT {v}{s} AS s, c FROM {table} WHERE {condition}) AS part"
        pieces = _keep_pieces(database, part, sizes, by)
        known = _read_one_by_one(database, pieces, by, touched, largest)
        alike = _count_kinds(database, pieces, by, known)
        every.append(known)
        for of, found in kinds.items():
            found.append(_list_kinds(_take_release(known, of), _take_release(alike, of), error))
    database.forget(sizes)
    known = pd.concat(every, ignore_index=True)
    joints = {
        of: _make_joint(second.name, _take_release(known, of), kinds.pop(of), places, error)
        for of, places in of_record.items()
    }
    if any(found.count @ found.size != rows[of] for of, found in joints.items()):
        raise error
    return joints


def _count_touched(
    database: Database, table: str, s: str, of_record: Mapping[Any, dict[Any, tuple[Any, Any]]], by: ByRelease
) -> dict[Any, dict[Any, int]]:
    """Return the records of each cluster of column s that labels touch, by release and key."""
    sizes = {of: {key: 0 for _, key in places.values()} for of, places in of_record.items()}
    touched = {key for keys in sizes.values() for key in keys}
    select = f"SELECT {by.v}{s}, COUNT(*) FROM {table}"
    for *release, key, records in database.rows_with(select, s, touched, f" GROUP BY {by.v}{s}"):
        of = release[0] if release else None
        if key in sizes.get(of, {}):
            sizes[of][key] = int(records)
    return sizes


def _find_largest_reached(
    of_record: Mapping[Any, tuple[Any, Any]], unit: pd.Series, size: Mapping[Any, int]
) -> int:
    """Return the records of the largest cluster that a unit reaches, 0 if none (see `Second.reference`)."""
    shared = Counter((u, of_record[record][1]) for record, u in unit.items())
    own = unit.value_counts()
    # a unit with a stray record in a very large cluster says nothing about it, so that half of either counts
    reached = (size[s] for (u, s), n in shared.items() if 2 * n >= own[u] or 2 * n >= size[s])
    return max(reached, default=0)


def _keep_pieces(database: Database, part: str, sizes: str, by: ByRelease) -> str:
    """Return a table of the pieces of rows s, c of a part: s, c, n, and the sizes m of predicted clusters."""
    v = by.v
    shared = database.keep(f"SELECT {v}s, c, COUNT(*) AS n FROM {part} GROUP BY {v}s, c")
    pieces = database.keep(
        f"SELECT {by.a}a.s, a.c, a.n, b.m FROM (SELECT {v}s, c, n FROM {shared}) AS a "
        f"JOIN (SELECT {v}c, m FROM {sizes}) AS b ON a.c = b.c{by.join}"
    )
    database.forget(shared)
    return pieces


def _read_one_by_one(
    database: Database, pieces: str, by: ByRelease, touched: list[Any], largest: int
) -> pd.DataFrame:
    """Read the pieces of touched clusters, and of those larger than any that a unit reaches."""
    inside = f"SUM(CASE WHEN m > {largest} THEN n ELSE 0 END)"
    large = f"SUM(n) > {largest} OR 2 * {inside} > SUM(n)"
    conditions = [f"s IN ({keys})" for keys in (database.listed(touched) if touched else [])]
    conditions.append(f"s IN (SELECT s FROM {pieces} GROUP BY {by.v}s HAVING {large})")
    select, columns = f"SELECT {by.v}s, c, n, m FROM {pieces}", [*by.names, "s", "c", "n", "m"]
    parts = [database.fetched(f"{select} WHERE {condition}", columns) for condition in conditions]
    # as objects, or pandas makes floats of integers of two types
    known = pd.concat([part.astype({"s": object, "c": object}) for part in parts], ignore_index=True)
    return known.drop_duplicates([*by.names, "s", "c"])


def _count_kinds(database: Database, pieces: str, by: ByRelease, known: pd.DataFrame) -> pd.DataFrame:
    """Return the pieces of one cluster of each kind, after adding the kind of each cluster to `known`."""
    v, a, join, names = by
    counts = database.keep(f"SELECT {v}s, n, m, COUNT(*) AS k FROM {pieces} GROUP BY {v}s, n, m")
    database.forget(pieces)
    alike = database.keep(
        f"SELECT {v}s, {database.alike('s', 'n', 'm', 'k')} AS f FROM {counts} GROUP BY {v}s"
    )
    # a kind is named after the least of its clusters
    kinds = database.keep(f"SELECT {v}f, MIN(s) AS s, COUNT(*) AS z FROM {alike} GROUP BY {v}f")
    named = f"(SELECT {v}f, s FROM {kinds}) AS b ON a.f = b.f{join}"
    select = f"SELECT {a}a.s, b.s FROM (SELECT {v}s, f FROM {alike}) AS a JOIN {named}"
    of_known = database.rows_with(select, "a.s", known["s"].unique().tolist())
    kind = {tuple(cluster): least for *cluster, least in of_known}
    clusters = known[[*names, "s"]].itertuples(index=False, name=None)
    known["kind"] = pd.Series([kind.get(cluster) for cluster in clusters], known.index, dtype=object)
    database.forget(alike)
    found = database.fetched(
        f"SELECT {a}a.s, a.n, a.m, a.k, b.z FROM (SELECT {v}s, n, m, k FROM {counts}) AS a "
        f"JOIN (SELECT {v}s, z FROM {kinds}) AS b ON a.s = b.s{join} ORDER BY {a}a.s, a.n, a.m",
        [*names, "kind", "n", "m", "k", "count"],
    )
    database.forget(kinds)
    database.forget(counts)
    return found


def _take_release(table: pd.DataFrame, release: Any) -> pd.DataFrame:
    """Return the rows of a release; all of them if there are no releases."""
    if "release" not in table:
        return table
    mine: pd.DataFrame = table[table["release"] == release]
    return mine.drop(columns="release")


def _list_kinds(known: pd.DataFrame, alike: pd.DataFrame, changed: DataError) -> _Kinds:
    """Return the kinds of all clusters of a part, without the clusters that are known one by one."""
    # columns are taken out one by one, since a table of all kinds may be large
    kind = alike.pop("kind").to_numpy()
    begins = np.append(True, kind[1:] != kind[:-1])[: len(kind)]
    names, left = pd.Index(kind[begins]), alike.pop("count").to_numpy(dtype=float)[begins]
    del kind
    if known["kind"].isna().any():
        raise changed
    number, of_known = np.cumsum(begins) - 1, known.groupby("s", sort=False)
    single = names.get_indexer(pd.Index(of_known["kind"].first(), dtype=names.dtype))
    # clusters that are known one by one were counted in their kinds too
    left -= np.bincount(single[single >= 0], minlength=len(left))
    if (single < 0).any() or (left < 0).any():
        raise changed
    n, m, times = (alike.pop(x).to_numpy() for x in ("n", "m", "k"))
    n, m, times = n.astype(float), m.astype(float), times.astype(np.int64)
    sizes = np.bincount(number, n * times, len(left))[single]
    if (sizes != of_known["n"].sum().to_numpy()).any():
        raise changed
    times = np.where(left[number] > 0, times, 0)
    unit = np.repeat((np.cumsum(left > 0) - 1)[number], times)
    return _Kinds(unit, np.repeat(n, times), np.repeat(m, times), left[left > 0])


def _make_joint(
    name: str,
    known: pd.DataFrame,
    kinds: list[_Kinds],
    of_record: dict[Any, tuple[Any, Any]],
    changed: DataError,
) -> Joint:
    """Make the counts of clusters that are known one by one, and of kinds of all others, in order."""
    known = known.sort_values(["s", "c"])  # lists of ids came one by one
    own, keys = pd.factorize(known["s"])
    cluster, _ = pd.factorize(known["c"])
    place = {pair: i for i, pair in enumerate(zip(known["s"].tolist(), known["c"].tolist(), strict=True))}
    piece_of = {record: place.get((s, c), -1) for record, (c, s) in of_record.items()}
    if -1 in piece_of.values():
        raise changed
    first = len(keys) + np.cumsum([0, *(len(part.count) for part in kinds)])
    n, m = (
        np.concatenate([known[x].to_numpy(dtype=float), *(getattr(part, x) for part in kinds)])
        for x in ("n", "m")
    )
    return Joint(
        name,
        unit=np.concatenate([own, *(part.unit + i for part, i in zip(kinds, first, strict=False))]),
        cluster=np.append(cluster, np.full(len(n) - len(cluster), -1)),
        n=n,
        m=m,
        count=np.concatenate([np.ones(len(keys)), *(part.count for part in kinds)]),
        piece_of=pd.Series(list(piece_of.values()), index=pd.Index(list(piece_of)), dtype=np.int64),
    )


def refuse_repeated_heading(times: int, columns: Iterable[str], what: str) -> None:
    """Refuse rows that have the names of their columns."""
    if times:
        raise DataError(
            f"{what}: {times:,} rows hold {' or '.join(map(repr, columns))} in the column of this name: is "
            "the first line a record, or one of several headers? The first line of each file, and no other, "
            "must name the columns"
        )


def refuse_lacking(lacking: int, rows: int, name: str, examples: Any, whose: str = "the prediction") -> None:
    """Refuse a second clustering that lacks records of the prediction."""
    if not lacking:
        return
    lacks = f"the second clustering {name!r} is missing {lacking:,} of {rows:,} records of {whose}, such as "
    if lacking >= NEARLY_ALL * rows:
        raise DataError(
            f"{lacks}{head(examples)}: are its ids written in another way, or are its columns in the other "
            "order?"
        )
    raise DataError(f"{lacks}{head(examples)}, and must cover all of them", Remedy.COVER)
