"""What is said of a table, what another file says of its records, and what the values of its columns say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from .._internal.arrays import BoolArray
from .._internal.known_columns import JUDGED, PLAIN, RIVAL, find_known, plain
from .facts import find_readable, read_numbers
from .ids import are_listed, kind
from .reading import Named, Near

HALF = 0.5
"""Share of the other file's ids that a column of records has; of its own, if that file has all records."""
HEAD = 1000
"""Rows that may refute what a column has, before all rows are asked."""
WORDS = 6
"""Words up to which a column beside links may have answers."""
FEW_ROWS = 5
"""Rows from which numbers 1, 2, 3 and so on count them."""


def _list_distinct(column: pd.Series) -> Any:
    """Return the distinct values of a column, without missing ones; integers that rise are all different."""
    values = column.to_numpy() if isinstance(column.dtype, np.dtype) and column.dtype.kind in "iu" else None
    if values is not None and (values[1:] > values[:-1]).all():
        return pd.Index(values)
    return pd.Index(column.dropna().unique())


@dataclass(frozen=True, eq=False)
class ColumnFacts:
    """Facts of the columns of a table, each of which is found once.

    `groups`: what records are grouped by, "cluster", or "entity" in labels; `what`: how messages name it.
    """

    table: pd.DataFrame
    named: Named = Named()  # noqa: RUF009  it never changes
    near: Near | None = None
    groups: str = "cluster"
    what: str = "prediction"
    _found: dict[tuple[str, Any], Any] = field(default_factory=dict)

    def _once(self, fact: str, column: Any, find: Callable[[pd.Series], Any]) -> Any:
        if (fact, column) not in self._found:
            self._found[fact, column] = find(self.table[column])
        return self._found[fact, column]

    @cached_property
    def usable(self) -> list[Any]:
        """The columns that can have ids or scores: no index that pandas wrote, no lists, no blanks alone."""
        said, rows = self.named.columns, len(self.table)
        return [c for c in find_readable(self.table) if c in said or not rows or self.table[c].notna().any()]

    def known(self, meaning: str) -> list[Any]:
        """Return the columns whose names matchers give to a meaning, the preferred first."""
        return find_known(self.usable, meaning)

    def distinct(self, column: Any) -> pd.Index:
        """Return the distinct values of a column, without missing ones."""
        values: pd.Index = self._once("distinct", column, _list_distinct)
        return values

    def is_unique(self, column: Any) -> bool:
        """Return whether each value occurs once, and none is missing."""
        return len(self.distinct(column)) == len(self.table)

    def is_constant(self, column: Any) -> bool:
        """Return whether all rows have one value."""
        return len(self.distinct(column)) == 1

    def numbers(self, column: Any) -> pd.Series | None:
        """Return a column as numbers, None if it has others; a few rows refute most columns."""

        def read(x: pd.Series) -> pd.Series | None:
            return None if read_numbers(x.head(HEAD)) is None else read_numbers(x)

        numbers: pd.Series | None = self._once("numbers", column, read)
        return numbers

    def has_decimals(self, column: Any) -> bool:
        """Return whether a column has numbers of which some are not whole."""
        numbers = self.numbers(column)
        if numbers is None:
            return False
        # of a column of whole numbers with gaps pandas makes floats
        floats = pd.api.types.is_float_dtype(self.table[column]) and not numbers.isna().any()
        return floats or bool((numbers.dropna() % 1 != 0).any())

    def counts_rows(self, column: Any, in_order: bool = True) -> bool:
        """Return whether a column counts rows from 0 or 1 on, in their order or in any."""
        rows, x = len(self.table), self.table[column]
        ends = (str(rows), str(rows - 1), f"{rows}.0", f"{rows - 1}.0")
        if rows < FEW_ROWS or (in_order and str(x.iloc[-1]) not in ends) or not self.is_unique(column):
            return False
        numbers = self.numbers(column)
        if numbers is None:
            return False
        counted = numbers.to_numpy() if in_order else np.sort(numbers.to_numpy())
        return counted[0] in (0, 1) and bool((counted - counted[0] == np.arange(rows)).all())

    def words(self, column: Any) -> list[str]:
        """Return the words of a column that has few."""
        few = self.table[column].head(HEAD).nunique() <= WORDS and len(self.distinct(column)) <= WORDS
        return list(dict.fromkeys(map(plain_word, self.distinct(column)))) if few else []

    def answers(self, column: Any, *families: tuple[frozenset[str], frozenset[str]]) -> BoolArray | None:
        """Return whether each row is a link by a column of answers, (rows,), None if it has other words."""
        words, rows = self.words(column), self.table[column]
        for yes, no in families or (PLAIN, JUDGED):
            if words and yes | no >= set(words) and rows.notna().all():
                linked = rows.map({w: plain_word(w) in yes for w in self.distinct(column)})
                return np.asarray(linked, dtype=bool)
        return None

    def has_ids(self, column: Any) -> bool:
        """Return whether a column has ids of the other file: half of them, or half of its own."""
        near = self.near
        if near is None:
            return True
        ids = [near.keys[column]] if column in near.keys else [*near.keys.values(), *near.parts[1:]]
        # ids of another type say nothing here, and are refused later
        return any(
            len(x) > 0 and self._kind(column) == kind(x) and self._share(column, x) >= HALF for x in ids
        )

    def _kind(self, column: Any) -> str:
        return kind(self.distinct(column))

    def _share(self, column: Any, ids: pd.Index) -> float:
        """Return which share of the other file's ids a column has; of its own, if the file has all."""
        one, among = self.distinct(column), ids
        if not (self.near and self.near.whole):
            one, among = among, one
        return float(are_listed(one, among).mean()) if len(one) else 0.0

    @cached_property
    def sources(self) -> list[Any]:
        """The columns of the source of records, by name or by the sources in joined ids."""
        known = list(self.named.sources) or self.known("source")
        if known or self.near is None or not self.near.parts:
            return known
        return [c for c in self.usable if self.distinct(c).astype(str).isin(self.near.parts[0]).all()]

    @cached_property
    def clusters(self) -> list[Any]:
        """The columns of clusters, by what is said or by name, with those that may be clusters as well."""
        if self.named.cluster is not None:
            return [self.named.cluster]
        known = self.known(self.groups)
        rivals = [c for c in self.usable if c not in known and RIVAL.fullmatch(plain(c))]
        of_clusters = known and self.groups == "cluster"
        return known + [
            c for c in rivals if of_clusters and not self.is_unique(c) and not self.is_constant(c)
        ]

    def find(self, column: Any, group: Any, ids: pd.Index) -> pd.Index:
        """Return the group, or the row if `group` is None, in which a unique column has each id."""
        value = np.arange(len(self.table)) if group is None else pd.factorize(self.table[group])[0]
        found: pd.Index = pd.Index(pd.Series(value, self.table[column]).reindex(ids).to_numpy())
        return found


def plain_word(word: Any) -> str:
    """Return a word of a cell in small letters and digits alone; 1.0 is 1."""
    return plain(str(word).removesuffix(".0"))
