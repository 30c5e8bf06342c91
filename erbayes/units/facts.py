"""What names and values say of the columns of a table: sources, measures, both ends of links, records."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from .._internal import known_columns
from .._internal.errors import DataError, head
from .._internal.known_columns import JOIN, NAMES, find_known, plain
from .._internal.tables import INDEX, NO, YES
from .ids import are_listed, ids, kind

SIDES = (*(("_l", "_r"), ("_left", "_right"), ("_1", "_2"), ("_a", "_b"), ("_x", "_y"), ("1", "2")),)
"""Ends of the names of two columns that have one attribute of both records."""
FRONTS = (
    *(("left_", "right_"), ("left", "right"), ("l_", "r_"), ("ltable_", "rtable_"), ("source", "target")),
    ("from", "to"),
)
"""Beginnings of such names."""
TWO_TABLES = ("ltable", "source")
"""Beginnings of names that say that there are two tables, each of which may count its records from 0."""
HALF = 0.5
"""Least share of a column's ids that are listed, or of labelled records in it, for it to have records."""
HEAD = 1000
"""Rows that may refute what a column has, before all rows are asked."""
DENSE = 10
"""Clusters from which on numbers without a gap are those of clusters, and not of records that lead them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """What somebody has said of a table: names of columns, None if not said.

    `ends`: columns of both records of a link; `sources`: of the source of each record; `links`: True if each
    row is a link, False if it is a record, None if its columns decide; `one_list`: True if both ends are of
    one list.
    """

    record: Any = None
    cluster: Any = None
    ends: tuple[Any, ...] = ()
    score: Any = None
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


NOTHING = Named()
SWEEP = -np.inf
"""The threshold of a sweep over all thresholds, for which scores are found and each row is a link."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Facts:
    """What names and values say of the columns of a table, as in `read_prediction`."""

    table: pd.DataFrame
    columns: list[Any]
    named: Named
    listed: pd.Index | None
    sample: pd.Index | None
    groups: str
    what: str

    @property
    def known(self) -> pd.Index | None:
        """Return the ids of records that are known: all of them, or some."""
        return self.sample if self.listed is None else self.listed

    @cached_property
    def _parts(self) -> tuple[pd.Index, pd.Index] | None:
        """The sources and the ids of known records whose source and id are joined; None if they are not."""
        if self.known is None or not len(self.known) or JOIN not in str(self.known[0]):
            return None
        parts = self.known.str.partition(JOIN, expand=True)
        return parts.get_level_values(0).unique(), parts.get_level_values(2).unique()

    @property
    def joined(self) -> bool:
        """Return whether source and id are joined in the ids that are known."""
        return self._parts is not None

    def find_columns(self, meaning: str, columns: Sequence[Any]) -> list[Any]:
        """Return the columns of a meaning: the one that is named, or those whose names are known."""
        named = self.named.record if meaning == "record" else self.named.cluster
        return [named] if named is not None else find_known(columns, meaning)

    @cached_property
    def sources(self) -> list[Any]:
        """The columns of the source of records, by name or by the sources in joined ids."""
        known = list(self.named.sources) or find_known(self.columns, "source")
        if known or self._parts is None:
            return known
        texts = {c: pd.Index(self.table[c].dropna().astype("str").unique()) for c in self.columns}
        return [c for c, text in texts.items() if text.isin(self._parts[0]).all()]

    def find_measures(self, free: Sequence[Any]) -> list[Any]:
        """Return the columns that measure how similar two records are."""
        numbers = {c: n for c in free if (n := read_numbers(self.table[c])) is not None}
        rules = [
            [c for c in find_known(free, "score") if c in numbers],
            [c for c, n in numbers.items() if self.table[c].dtype.kind == "f" or (n % 1 != 0).any()],
        ]
        if self.named.links:  # or the number may be that of a cluster
            rules += [
                [c for c in numbers if self.listed is not None and not self.has_records(c)],
                [c for c in numbers if mark_answers(self.table[c]) is not None],
                list(free[2:]),  # who says that rows are links gives both ends, then the score
            ]
        return next((measures for measures in rules if len(free) - len(measures) == 2), [])

    def has_records(self, column: Any) -> bool:
        """Return whether a column can have ids of records, by those that are known."""
        if self.known is None:
            return True
        values = pd.Index(self.table[column].dropna().unique())
        for known in (self.known, *(self._parts or ())[1:]):
            some, among = (values, known) if self.listed is not None else (known, values)
            # ids of another type say nothing here, and are refused later
            if not len(some) or kind(some) != kind(among) or are_listed(some, among).mean() >= HALF:
                return True
        return False

    @cached_property
    def pairs(self) -> list[ColumnPair]:
        """The pairs of columns with one attribute of both records."""
        return pair_columns(self.columns)

    @cached_property
    def ends(self) -> list[ColumnPair]:
        """The pairs of columns that can have both ends of links."""
        if self.named.ends:
            left, right = self.named.ends
            return [ColumnPair(left, right, "", False)]
        pairs = [p for p in self.pairs if p.stem not in NAMES["source"]]
        full = [p for p in pairs if self.table[[p.left, p.right]].notna().all(axis=None)]
        chosen = [p for p in full if p.stem in ("", *NAMES["record"])]
        if self.listed is not None:
            # others, of which matchers write many, are looked at only if those of known names have none
            others = [p for p in full if p not in chosen]
            # if no pair is of listed records, whoever looks these up says so
            full = self._find_listed(chosen) or self._find_listed(others) or full
            chosen = [p for p in chosen if p in full]
        if not chosen and len(pairs) > 1:
            for rows in (self.table.head(HEAD), self.table):
                full = [p for p in full if self._determines(p, pairs, rows)]
        return chosen or full

    def _find_listed(self, pairs: Sequence[ColumnPair]) -> list[ColumnPair]:
        """Return the pairs of columns of which both have listed records."""
        return [p for p in pairs if self.has_records(p.left) and self.has_records(p.right)]

    def _determines(self, pair: ColumnPair, others: Sequence[ColumnPair], rows: pd.DataFrame) -> bool:
        """Return whether equal ids have equal values in each other pair of columns."""

        def stack(left: Any, right: Any) -> pd.Series:
            stacked: pd.Series = pd.concat([rows[left], rows[right]], ignore_index=True).astype("str")
            return stacked

        key = stack(pair.left, pair.right)
        if self.origin is not None:
            key = key + JOIN + stack(*self.origin)
        several = (o for o in others if o is not pair)
        return all(key.nunique() == (key + JOIN + stack(o.left, o.right)).nunique() for o in several)

    @cached_property
    def origin(self) -> tuple[Any, Any] | None:
        """The columns of the sources of both ends of links."""
        if len(self.named.sources) == 2:
            return self.named.sources
        return next(((p.left, p.right) for p in self.pairs if p.stem in NAMES["source"]), None)


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

    def add(name: str, stem: str, mate: str, of_two: bool = False) -> None:
        if mate in by_name:
            both = by_name[name], by_name[mate]
            pairs.setdefault(both, ColumnPair(*both, plain(stem), of_two))

    for name in by_name:
        for one, other in SIDES:
            if name.endswith(one):
                add(name, stem := name.removesuffix(one), stem + other)
        for one, other in FRONTS:
            if name.startswith(one):
                add(name, stem := name.removeprefix(one), other + stem, name.startswith(TWO_TABLES))
    return list(pairs.values())


def list_candidates(columns: Sequence[Any], score: Any = None) -> list[Any]:
    """Return the columns of a table of links that a reading may need; all if names do not show the ends."""
    pairs = pair_columns(columns)
    sources, ends = (
        {c for p in pairs if p.stem in NAMES[meaning] for c in (p.left, p.right)}
        for meaning in ("source", "record")
    )
    scores = [score] if score is not None else find_known(columns, "score")
    return [c for c in columns if c in sources | ends | set(scores)] if ends and scores else list(columns)


def join_source(source: pd.Series, column: pd.Series) -> pd.Series:
    """Return source and id as one text, (rows,), and refuse missing ones."""
    named = [(source, f"column {source.name!r} of sources"), (column, f"column {column.name!r}")]
    texts, ends = (ids(x, what).astype(str).to_series(index=column.index) for x, what in named)
    return pd.Series(known_columns.join_ids(texts, ends), name=column.name)


def read_numbers(column: pd.Series) -> pd.Series | None:
    """Return a column as numbers, also with decimal commas, NaN if missing; None if it has others."""
    types = pd.api.types
    if types.is_numeric_dtype(column):
        return None if types.is_complex_dtype(column) else column
    if not (types.is_object_dtype(column) or types.is_string_dtype(column)):
        return None  # times, for instance, whose numbers are of any unit
    texts = column.dropna().astype(str)
    if texts.str.contains(",").any() and texts.str.fullmatch(r"-?\d+(,\d+)?").all():
        # 1,234 may be thousands
        if texts.str.fullmatch(r"-?[1-9]\d{0,2},\d{3}|-?\d+").all():
            return None
        column = column.str.replace(",", ".")
    numbers = pd.to_numeric(column.astype(str).where(column.notna()), errors="coerce")
    return numbers if len(texts) and numbers.notna().sum() == len(texts) else None


def mark_answers(column: pd.Series) -> pd.Series | None:
    """Return answers, 1 for a link and 0 for none; None if a column has others."""
    for rows in (column.head(HEAD), column):  # a few rows distinguish most scores from answers
        words = rows.astype(str).str.strip().str.lower().str.removesuffix(".0")
        yes = words.isin(YES)
        if not len(words) or not (yes | words.isin(NO)).all():
            return None
    return yes.astype(float)


def find_readable(table: pd.DataFrame) -> list[Any]:
    """Return the columns that can have ids or scores: no index that pandas wrote, and no lists."""
    if not table.columns.is_unique:
        raise DataError(f"several columns are called {head(table.columns[table.columns.duplicated()])}")
    return [c for c in table.columns if not INDEX.fullmatch(str(c)) and has_plain_values(table[c])]


def has_plain_values(column: pd.Series) -> bool:
    """Return whether values of a column can be compared with each other."""
    mixed = column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) == "mixed"
    return not mixed or all(isinstance(value, Hashable) for value in column)


def is_unique_column(column: pd.Series) -> bool:
    """Return whether each value occurs once, and none is missing."""
    return not column.isna().any() and pd.Index(column).is_unique


def is_dense(column: pd.Series) -> bool:
    """Return whether a column numbers many clusters from 0 or 1 on, without a gap."""
    numbers = np.sort(pd.to_numeric(pd.Series(column.unique()).astype(str), errors="coerce"))
    counted = np.arange(len(numbers))
    many = len(numbers) >= DENSE
    return many and any(np.array_equal(numbers, counted + first) for first in (0, 1))


def is_forest(child: pd.Series, parent: pd.Series) -> bool:
    """Return whether each chain of parents ends in a record that is its own parent or has no row.

    Clusters that are numbered as records are have a circle with a probability of about 1 - e/N.
    """
    codes, records = pd.factorize(pd.concat([child, parent], ignore_index=True))
    above = np.arange(len(records))
    above[codes[: len(child)]] = codes[len(child) :]
    first = above
    for _ in range(len(records).bit_length()):  # pointers doubled
        above = above[above]
    return bool((first[above] == above).all())
