"""What is said of a table, what another file says of its records, and what its columns mean."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from .._internal import remedies
from .._internal.arrays import EXACT, INDEX, BoolArray, FloatArray, label_components, need_table
from .._internal.errors import DataError, Remedy, head
from .._internal.names import JOIN, NAMES, find_known, join_ids, plain
from .ids import ids, kind

SIDES = (*(("_l", "_r"), ("_left", "_right"), ("_1", "_2"), ("_a", "_b"), ("_x", "_y"), ("1", "2")),)
"""Ends of the names of two columns that have one attribute of both records."""
FRONTS = (
    *(("left_", "right_"), ("left", "right"), ("l_", "r_"), ("ltable_", "rtable_"), ("source", "target")),
    ("from", "to"),
)
"""Beginnings of such names."""
DEDUPE = ("pairs", "score")
"""Fields of the array that dedupe's `score` returns."""
SWEEP = -np.inf
"""The threshold of a sweep over all thresholds, for which scores are found and each row is a link."""
HEADS = 0.5
"""Least share of ids of clusters that are records, for a cluster to have the id of its first record."""
TWO_TABLES = ("ltable", "source")
"""Beginnings of names that say that there are two tables, each of which may count its records from 0."""


@dataclass(frozen=True, slots=True)
class ColumnPair:
    """Two columns with one attribute, `stem`, of both records; `of_two`: their names say two tables."""

    left: Any
    right: Any
    stem: str
    of_two: bool


def pair_columns(columns: Sequence[Any]) -> list[ColumnPair]:
    """Return the pairs of columns whose names differ by a mark of the left and the right record."""
    by_name, pairs = {str(c).lower(): c for c in columns}, dict[tuple[Any, Any], ColumnPair]()
    for name in by_name:
        sides = ((name.removesuffix(one), other) for one, other in SIDES if name.endswith(one))
        mates = [(stem, stem + other, False) for stem, other in sides]
        fronts = ((name.removeprefix(one), other) for one, other in FRONTS if name.startswith(one))
        mates += [(stem, other + stem, name.startswith(TWO_TABLES)) for stem, other in fronts]
        for stem, mate, of_two in mates:
            if mate in by_name:
                both = by_name[name], by_name[mate]
                pairs.setdefault(both, ColumnPair(*both, plain(stem), of_two))
    return list(pairs.values())


def list_candidates(columns: Sequence[Any], score: Any = None) -> list[Any]:
    """Return the columns of a table of links that a reading may need; all if names do not show the ends."""
    pairs = pair_columns(columns)
    ends = {c for p in pairs if p.stem in NAMES["record"] for c in (p.left, p.right)}
    scores = [score] if score is not None else find_known(columns, "score")
    needed = {c for p in pairs if p.stem in NAMES["source"] for c in (p.left, p.right)} | ends | {*scores}
    return [c for c in columns if c in needed] if ends and scores else list(columns)


def join_source(source: pd.Series, column: pd.Series) -> pd.Series:
    """Return source and id as one text, (rows,), and refuse missing ones."""
    named = (source, f"column {source.name!r} of sources"), (column, f"column {column.name!r}")
    texts = (ids(x, what).astype(str).to_series(index=column.index) for x, what in named)
    return pd.Series(join_ids(*texts), name=column.name)


def read_numbers(column: pd.Series) -> pd.Series | None:
    """Return a column as numbers, also with decimal commas, NaN if missing; None if it has others."""
    types = pd.api.types
    if types.is_numeric_dtype(column):
        return None if types.is_complex_dtype(column) else column
    if not (types.is_object_dtype(column) or types.is_string_dtype(column)):
        return None  # times, for instance, whose numbers are of any unit
    texts = column.dropna().astype(str)
    if texts.str.contains(",").any() and texts.str.fullmatch(r"-?\d+(,\d+)?").all():
        if texts.str.fullmatch(r"-?[1-9]\d{0,2},\d{3}|-?\d+").all():
            return None  # 1,234 may be thousands
        column = column.str.replace(",", ".")
    numbers = pd.to_numeric(column.astype(str).where(column.notna()), errors="coerce")
    return numbers if len(texts) and numbers.notna().sum() == len(texts) else None


def find_readable(table: pd.DataFrame) -> list[Any]:
    """Return the columns that can have ids or scores: no index that pandas wrote, and no lists."""
    if not table.columns.is_unique:
        raise DataError(f"several columns are called {head(table.columns[table.columns.duplicated()])}")
    return [c for c in table.columns if not INDEX.fullmatch(str(c)) and has_plain_values(table[c])]


def has_plain_values(column: pd.Series) -> bool:
    """Return whether values of a column can be compared with each other, as lists cannot, also in tuples."""
    inferred = pd.api.types.infer_dtype(column, skipna=True) if column.dtype == object else ""
    try:
        set(column if inferred.startswith("mixed") else ())
    except TypeError:
        return False
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """What somebody has said of a table: names of columns, None if not said.

    `ends`: columns of both records of a link; `sources`: of the source of each record; `links`: True if each
    row is a link, False if it is a record, None if its columns decide; `one_list`: True if both ends are of
    one list; `word`: the word of a link in the column `score`.
    """

    record: Any = None
    cluster: Any = None
    ends: tuple[Any, ...] = ()
    score: Any = None
    word: str | None = None
    sources: tuple[Any, ...] = ()
    threshold: float | None = None
    links: bool | None = None
    one_list: bool = False

    def __post_init__(self) -> None:
        for column in self.columns:
            if not isinstance(column, Hashable):
                raise DataError(f"a column is named by its name, not by {head([column])}")

    @property
    def columns(self) -> list[Any]:
        """Return all columns that are named."""
        columns = (self.record, self.cluster, *self.ends, self.score, *self.sources)
        return [column for column in columns if column is not None]


@dataclass(frozen=True)
class Near:
    """What another file says of records: the columns that can have them, with their ids.

    `whole`: it has all records.
    """

    keys: dict[Any, pd.Index]
    whole: bool = False

    @classmethod
    def all_of(cls, records: pd.Index | None) -> Near | None:
        """Return what a list of all records says, None if there is none."""
        return None if records is None else cls({records.name: records}, True)

    @property
    def first(self) -> pd.Index:
        """Return the ids of the first column."""
        return next(iter(self.keys.values()))

    @property
    def listed(self) -> pd.Index | None:
        """Return all records, None if only some are known."""
        return self.first if self.whole else None

    @cached_property
    def parts(self) -> tuple[pd.Index, ...]:
        """The sources and the ids of records whose source and id are joined; none if they are not."""
        if not len(self.first) or JOIN not in str(self.first[0]):
            return ()
        parts = self.first.str.partition(JOIN, expand=True)
        return parts.get_level_values(0).unique(), parts.get_level_values(2).unique()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reading:
    """What the columns of a table mean: one column of records and one of clusters, or two of ends of links.

    `sources`: the column of the source of each id, in which alone the id is unique; `other`: the column of
    clusters or of scores, None if each row is a link; `on`: which rows are links by answers, (rows,);
    `repeats`: rows that repeat another and are left out.
    """

    table: pd.DataFrame
    ids: tuple[Any, ...]
    sources: tuple[Any, ...] = ()
    other: Any = None
    threshold: float | None = None
    on: BoolArray | None = None
    repeats: int = 0
    what: str = "prediction"

    @property
    def of_links(self) -> bool:
        """Return whether each row has both ends of a link."""
        return len(self.ids) == 2

    def key(self, end: int = 0) -> pd.Series:
        """Ids of records, or of one end of links, (rows,); text of source and id if ids need their source."""
        column = self.table[self.ids[end]]
        return join_source(self.table[self.sources[end]], column) if self.sources else column

    @property
    def chosen(self) -> pd.DataFrame:
        """Return the columns that were taken."""
        return self.table[[*self.sources, *self.ids, *([] if self.other is None else [self.other])]]

    def fill(self, own: bool) -> Reading:
        """Return the reading with records without a cluster as clusters of their own, or without them."""
        blank = self.table[self.other].isna()
        if not own:
            return replace(self, table=self.table[~blank])
        texts, key = self.table[self.other].astype("str"), self.key().astype("str")
        # a record that others are said to belong to is the head of their cluster
        heads = bool(texts[~blank].isin(key).mean() >= HEADS) and bool(key[blank].isin(texts[~blank]).any())
        filled = texts.mask(blank, key if heads else "own " + key)
        return replace(self, table=self.table.assign(**{self.other: filled}))

    def separate(self, word: str) -> Reading:
        """Return each record whose cluster is called by a word as a cluster of its own."""
        clusters = self.table[self.other].astype("str")
        alone = clusters.mask(clusters == word, "alone " + self.key().astype("str"))
        return replace(self, table=self.table.assign(**{self.other: alone}))

    def scores(self) -> FloatArray:
        """Return scores, (rows,), in single precision if the table has them so."""
        column, said = self.table[self.other], f"{self.what}: scores {self.other!r} must"
        scores = read_numbers(column)
        if scores is None or pd.api.types.is_bool_dtype(column):
            wrong = column[pd.to_numeric(column, errors="coerce").isna()].dropna()
            raise DataError(f"{said} be numbers, not such as {head(wrong if len(wrong) else column)}")
        if missing := int(scores.isna().sum()):
            told = f"{self.what}: {missing:,} of {len(scores):,} scores {self.other!r} are missing"
            raise DataError(f"{told}: leave these rows out if the matcher rejected them, or score them")
        if pd.api.types.is_integer_dtype(scores) and (large := (scores >= EXACT) | (scores <= -EXACT)).any():
            lost = f"{int(large.sum()):,} of {len(scores):,} are integers from 2**53 on, which lose it"
            raise DataError(f"{said} keep their order, and {lost}: subtract one number from all")
        return scores.to_numpy(dtype=np.float32 if scores.dtype == np.float32 else float)

    def links(self) -> BoolArray:
        """Return whether each row is a link, (rows,)."""
        if self.on is not None:
            return self.on
        if self.threshold is None:
            return np.ones(len(self.table), dtype=bool)
        return np.asarray(self.scores() >= self.threshold, dtype=bool)

    def partition(self, listed: pd.Index | None = None) -> pd.Series:
        """Return the cluster of each record, (N,), also of those in `listed`, by the id of the record."""
        if not self.of_links:
            return pd.Series(pd.factorize(self.table[self.other])[0], self.key())
        ends = [self.key(0), self.key(1), *([] if listed is None else [pd.Series(listed)])]
        codes, records = pd.factorize(pd.concat(ends, ignore_index=True))
        E, on = len(self.table), self.links()
        return pd.Series(label_components(codes[:E][on], codes[E : 2 * E][on], len(records)), records)

    @property
    def remedy(self) -> Remedy:
        """Return how to say that this reading is meant, by all of its columns."""
        names = [*self.ids, *([] if self.other is None else [self.other])]
        columns, file = ", ".join(map(repr, names)), f"FILE:{','.join(map(str, names))}"
        if not self.of_links:
            return Remedy("if rows are records", f"table[[{columns}]]", file)
        if self.other is None:
            made = f"Clustering.from_pairs(table[[{columns}]])"
            return Remedy("if rows are links", made, f"{file} --edges")
        at = "" if self.threshold is None else f"@{self.threshold:g}"
        return Remedy(f"if links are by {self.other!r}", f"score={self.other!r}", f"{file}{at}")

    def in_words(self) -> str:
        """Return the columns that were taken, in words."""
        keys = ("+".join(map(str, [*self.sources[i : i + 1], id])) for i, id in enumerate(self.ids))
        said = " and ".join(keys)
        if not self.of_links:
            said += f", {self.other}"
        elif self.threshold == SWEEP:
            said += f", scores: {self.other}"
        elif self.threshold is not None:
            said += f", links from {self.threshold:g} on by {self.other}"
        elif self.other is not None:
            said += f", links by {self.other}"
        if self.sources:
            said += f"; ids are unique inside sources alone, so that records are like {self.key().iloc[0]}"
        return said + (f"; {self.repeats:,} rows repeat another" if self.repeats else "")


def to_links_table(links: Any, said: str) -> pd.DataFrame:
    """Return links as a table, also dedupe's array of pairs and scores, and recordlinkage's index."""
    if isinstance(links, np.ndarray) and links.dtype.names == DEDUPE:
        pairs = links["pairs"]
        return pd.DataFrame({"left": pairs[:, 0], "right": pairs[:, 1], "score": links["score"]})
    table = need_table(pd.DataFrame(index=links) if isinstance(links, pd.MultiIndex) else links, said)
    if isinstance(table.index, pd.MultiIndex) and table.index.nlevels == 2:
        names = list(table.index.names)
        names = ["left", "right"] if None in names or names[0] == names[1] else names
        if twice := [name for name in names if name in table.columns]:
            raise DataError(f"the index has {head(names)}, and {head(twice)} is a column too: rename that")
        return table.reset_index(names=names)
    return table


def explain_repeats(record: pd.Series, cluster: pd.Series, what: str, named: bool = False) -> DataError:
    """Error for repeated records, with a likely cause: equal rows, pairs, or columns in the other order.

    `named`: the column of clusters has their name, so that rows are no pairs.
    """
    records, (codes, found) = ids(record, f"record ids of the {what}"), pd.factorize(cluster)
    rows, clusters = pd.DataFrame({"record": records, "code": codes}), pd.Index(found)
    twice, same = records[records.duplicated()], int(rows.duplicated().sum())
    said = f"record ids of the {what}: {len(twice):,} duplicates, such as {head(twice)}"
    if same == len(twice):
        return DataError(f"{said}; each repeats an earlier row with the same cluster, and can be dropped")
    ids_of_records = int(clusters.isin(records).sum()) if kind(clusters) == kind(records) else 0
    if not named and 2 * ids_of_records >= len(clusters):
        said += f"; {ids_of_records:,} of {len(clusters):,} cluster ids are ids of records"
        return DataError(f"{said}, as in pairs of records", make_pairs_remedy(what))
    if not named and len(clusters) == len(codes):
        said += "; no cluster id is, as if the columns were in the other order"
        return DataError(said, remedies.ORDER, make_pairs_remedy(what))
    rows = rows.drop_duplicates()
    one = rows["record"][rows["record"].duplicated()].iloc[:1]
    both = clusters[rows["code"][rows["record"].isin(one)]]
    said += f"; {same:,} of them repeat an earlier row" * (same > 0)
    said += f"; {head(one)} is in {head(both, 2)}: keep one row of each record, or give both clusters one id"
    return DataError(said)


def make_pairs_remedy(what: str) -> Remedy:
    """Remedy for pairs of records instead of memberships."""
    return remedies.ANSWERS if what == "labels" else remedies.LINKS
