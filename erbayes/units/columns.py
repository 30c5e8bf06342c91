"""Which role each column of a table has: one order of evidence, and a question for what is left.

What somebody has said comes first, then names that another file uses for records, then values, then names of
matchers. Roles are record, cluster, source, end of a link, score, answer, row number and attribute. A column
that has none of them, and could change the answer, is asked about; if two readings give the same clusters,
nothing is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from .._internal.arrays import BoolArray, IntArray
from .._internal.errors import DataError, Remedy, Way, head
from .._internal.known_columns import JOIN, JUDGED, NAMES, PLAIN, find_known, plain
from .._internal.tables import looks_like_answers, refuse_names, separator_hint, to_frame
from .facts import (
    ColumnPair,
    find_readable,
    has_plain_values,
    join_source,
    pair_columns,
    read_numbers,
)
from .ids import are_listed, ids, kind
from .reading import SWEEP, Named, Near, Reading, explain_repeats, make_pairs_remedy

HALF = 0.5
"""Share of the other file's ids that a column of records has; of its own, if that file has all records."""
HEAD = 1000
"""Rows that may refute what a column has, before all rows are asked."""
WORDS = 6
"""Words up to which a column beside links may have answers."""
FEW = 20
"""Rows from which shares of them count."""
FEW_ROWS = 5
"""Rows from which numbers 1, 2, 3 and so on count them."""
REPEATED = 0.1
"""Share of rows with a repeated id up to which rows may be records, of which a few are in two clusters."""
NUMBER = re.compile(r"-?\d{2,}([.,]\d+)?")
"""Ids that stand where names of columns should; 0 and 1 are names that pandas gives."""
PARTS = re.compile(r"[\s,;|]+")
"""What separates ids that one cell lists."""


def read_prediction(
    table: pd.DataFrame,
    named: Named = Named(),  # noqa: B008  it never changes
    near: Near | None = None,
    *,
    groups: str = "cluster",
    what: str = "prediction",
) -> Reading:
    """Return what the columns of a matcher's table, or of labels, mean.

    Parameters
    ----------
    named : Named
        What the user has said.
    near : Near, optional
        What another file says of records.
    groups : str
        What records are grouped by: "cluster", or "entity" in labels.
    what : str
        How messages name the table.

    Raises
    ------
    DataError
        If no reading is possible, or two that give other clusters.
    """
    if all(NUMBER.fullmatch(str(c)) and isinstance(c, str) for c in table.columns) and len(table.columns):
        raise DataError(f"the first line of the {what} is {head(table.columns)}: it must name the columns")
    remedy = Remedy.SCORE if named.links else Remedy.COLUMNS
    remedies = dict.fromkeys(named.columns, remedy)
    refuse_names(named.columns, list(table.columns), f"the table of the {what}", remedies)
    if nested := [c for c in named.columns if not has_plain_values(table[c])]:
        raise DataError(f"the {what}: {head(nested)} has lists or other objects, and no ids or numbers")
    columns = _Columns(table, named, near, groups, what)
    readings = columns.list_readings()
    if not readings:
        raise columns.explain()
    return settle(readings, near.listed if near else None)


def find_keys(table: pd.DataFrame, record: Any = None) -> Near | None:
    """Return what a table says of records: its unique columns, without row numbers if there are others."""
    columns = _Columns(table, Named(record=record))
    unique = [c for c in columns.usable if columns.is_unique(c)]
    keys = [c for c in unique if not columns.counts_rows(c, in_order=False)] or unique
    keys = [record] if record is not None else keys or find_known(columns.usable, "record")[:1]
    return Near({c: columns.distinct(c) for c in keys}) if keys else None


def find_record(table: pd.DataFrame, near: Near | None, what: str, record: Any = None) -> Any:
    """Return the column of records of a table of attributes, of drawn records or of all records."""
    columns = _Columns(table, Named(record=record), near, what=what)
    if not columns.usable and record is None:
        raise DataError(f"{what} needs a column of ids; there is {head(list(table.columns)) or 'none'}")
    free = [c for c in columns.usable if c not in columns.sources] or columns.usable
    return columns.find_record(free, [])


def read_records(records: Any, what: str = "prediction", record: Any = None) -> pd.Index:
    """Return the ids of a list of all records, which may be a column or a table with one record a row."""
    what = f"all records of the {what}"
    if not (hasattr(records, "columns") or hasattr(records, "column_names")):
        return ids(records, what)
    table = to_frame(records)
    chosen = find_record(table, None, what, record)
    key, sources = table[chosen], find_known(table.columns, "source")
    if sources and chosen not in sources and not pd.Index(key).is_unique:
        if not table.duplicated([sources[0], chosen]).any():
            key = join_source(table[sources[0]], key)
    return ids(key, what).rename(chosen)


def settle(readings: Sequence[Reading], listed: pd.Index | None) -> Reading:
    """Return the first of several readings if all give the same clusters, and ask if they do not."""
    first, *others = readings
    if others:
        partition = first.partition(listed)
        for other in others:
            if not _are_equal(partition, another := other.partition(listed)):
                raise _ask(first, partition, other, another)
    return first


def _are_equal(one: pd.Series, other: pd.Series) -> bool:
    """Return whether two partitions are of the same records into the same clusters."""
    at = other.index.get_indexer(one.index) if other.index.is_unique else np.array([-1])
    if len(one) != len(other) or (at < 0).any():
        return False
    return np.array_equal(pd.factorize(one)[0], pd.factorize(other.iloc[at])[0])


def _ask(one: Reading, partition: pd.Series, other: Reading, another: pd.Series) -> DataError:
    """Error that asks which of two readings is meant."""

    def count(reading: Reading, clusters: pd.Series) -> str:
        rows = "links" if reading.of_links else "records and clusters"
        numbers = f"{len(clusters):,} records in {clusters.nunique(dropna=False):,} clusters"
        return f"{numbers} ({rows}: {reading.in_words()})"

    said = f"{one.what}: columns can be read in two ways, which give {count(one, partition)}"
    return DataError(f"{said} or {count(other, another)}", one.remedy, other.remedy)


@dataclass(frozen=True, eq=False)
class _Columns:
    """A table whose columns are to be read, with what is known of each column."""

    table: pd.DataFrame
    named: Named = Named()  # noqa: RUF009  it never changes
    near: Near | None = None
    groups: str = "cluster"
    what: str = "prediction"
    facts: dict[tuple[str, Any], Any] = field(default_factory=dict)

    # Facts of a column, each found once

    def _once(self, fact: str, column: Any, make: Callable[[pd.Series], Any]) -> Any:
        if (fact, column) not in self.facts:
            self.facts[fact, column] = make(self.table[column])
        return self.facts[fact, column]

    @cached_property
    def usable(self) -> list[Any]:
        """The columns that can have ids or scores: no index that pandas wrote, no lists, no blanks alone."""
        said = self.named.columns
        return [c for c in find_readable(self.table) if c in said or not self._is_empty(c)]

    def _is_empty(self, column: Any) -> bool:
        return bool(len(self.table) and self.table[column].isna().all())

    def is_unique(self, column: Any) -> bool:
        """Return whether each value occurs once, and none is missing."""
        return len(self.distinct(column)) == len(self.table)

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

    def distinct(self, column: Any) -> pd.Index:
        """Return the distinct values of a column, without missing ones."""
        values: pd.Index = self._once("distinct", column, lambda x: pd.Index(x.dropna().unique()))
        return values

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
        both = ((self.distinct(column), x) if near.whole else (x, self.distinct(column)) for x in ids)
        # ids of another type say nothing here, and are refused later
        return any(
            len(x) > 0 and kind(x) == kind(among) and bool(are_listed(x, among).mean() >= HALF)
            for x, among in both
        )

    @cached_property
    def sources(self) -> list[Any]:
        """The columns of the source of records, by name or by the sources in joined ids."""
        known = list(self.named.sources) or find_known(self.usable, "source")
        if known or self.near is None or not self.near.parts:
            return known
        return [c for c in self.usable if self.distinct(c).astype(str).isin(self.near.parts[0]).all()]

    # Which readings are possible

    def list_readings(self) -> list[Reading]:
        """Return the readings that names and values leave, the likeliest first."""
        said, named = self.named, find_known(self.usable, "record")
        groups = [said.cluster] if said.cluster is not None else find_known(self.usable, self.groups)
        only_ends = self.ends and said.cluster is None and not named
        if groups and said.links is not True and not said.ends and not only_ends:
            free = [c for c in self.usable if c not in groups]
            record = self.find_record([c for c in free if c not in self.sources] or free, groups)
            return [] if record is None else [r for g in groups for r in self.read_memberships(record, g)]
        if self.ends and said.links is not False:
            return [reading for pair in self.ends for reading in self.read_links(pair)]
        if self.ends and said.record is None and not named:
            return []  # the error says that rows look like links, which are no records
        return self._read_others(named)

    def _read_others(self, named: Sequence[Any]) -> list[Reading]:
        """Return the readings of columns of which no name says clusters or ends of links."""
        said = self.named
        free = [c for c in self.usable if c not in (*self.sources, said.score)]
        rules: list[Callable[[Any], bool]] = [
            lambda c: self.counts_rows(c) and c not in named and not (self.near and self.has_ids(c)),
            lambda c: len(self.table) >= FEW and len(self.distinct(c)) == 1,
            lambda c: bool(said.links) and plain(c) in NAMES["score"],
            *([self._measures] * (said.links is not False)),
        ]
        for leaves_out in rules:
            rest = [c for c in free if c == said.record or not leaves_out(c)]
            free = rest if len(free) > 2 <= len(rest) else free
        groups = [c for c in free if not self.is_unique(c)]
        if len(free) > 2 and len(groups) == 1 and (self.near or named or said.record is not None):
            # other keys of rows are no clusters
            free = [self.find_record([c for c in free if c not in groups], groups), *groups]
        if len(free) != 2:
            return []
        near = self.near.keys if self.near else {}
        shared = [c for c in free if c in near and self.has_ids(c)]
        known = [c for c in free if c == said.record]
        known = known or (shared if len(shared) == 1 else [c for c in named if c in free])
        for record in known[:1] if said.links is not True else ():
            (other,) = (c for c in free if c != record)
            sure = record == said.record or record in named
            if sure or not (self.is_unique(record) and self._may_link(record, other)):
                return self.read_memberships(record, other)
            free = [record, other]
        return self.read_bare(free[0], free[1])

    def _measures(self, column: Any) -> bool:
        """Return whether a column measures how similar two records are."""
        if self.numbers(column) is None or (self.near is not None and self.has_ids(column)):
            return False
        asked = bool(self.named.links) and (self.near is not None or self.answers(column) is not None)
        return asked or self.has_decimals(column) or plain(column) in NAMES["score"]

    def find_record(self, free: Sequence[Any], groups: Sequence[Any]) -> Any:
        """Return the column of records: by names of the other file, by values, by known names.

        A number of the row is taken only if nothing else is there, or if all others number rows too.
        """
        if self.named.record is not None or len(free) < 2:
            return self.named.record if self.named.record is not None else next(iter(free), None)
        named, near = find_known(free, "record"), self.near
        fits = [c for c in free if near and c in near.keys and self.has_ids(c)]
        fits = fits or [c for c in free if near and self.has_ids(c)]
        pool = fits or named or list(free)
        numbered = all(self.counts_rows(c, in_order=False) for c in pool)
        rules: list[Callable[[Any], bool]] = [
            lambda c: numbered or not self.counts_rows(c) or (not near and c in named),
            self.is_unique,
            lambda c: any(self.read_memberships(c, g) for g in groups if g != c),
        ]
        for fine in rules:
            pool = [c for c in pool if fine(c)] or pool
        if near and fits and len(pool) > 1:
            self._ask_of_records(pool, groups, near)
        # numbers that occur once may be those of a phone
        texts = (c for c in [*named, *pool] if c in pool and (c in named or self.numbers(c) is None))
        return next(texts, pool[0])

    def _ask_of_records(self, pool: Sequence[Any], groups: Sequence[Any], near: Near) -> None:
        """Ask which column has the records if rows of the other file get other clusters, or rows, by them."""
        value = pd.factorize(self.table[groups[0]])[0] if groups else np.arange(len(self.table))
        found = {
            c: pd.Series(value, self.table[c]).reindex(near.keys.get(c, near.first)).to_numpy()
            for c in pool
            if self.is_unique(c)
        }
        for first, other in pairwise(found):
            if not np.array_equal(found[first], found[other], equal_nan=True):
                said = (
                    f"{self.what}: records are {first!r} or {other!r}, which both have ids of the other file"
                )
                ways = [
                    Way(f"if {x!r}", f"leave out {y!r}", f"--record {x}")
                    for x, y in ((first, other), (other, first))
                ]
                raise DataError(said + self._judging[0], *ways, *self._judging[1])

    def read_memberships(self, record: Any, cluster: Any) -> list[Reading]:
        """Return readings as records and clusters: each id once, or once inside its source."""
        sources, near = [c for c in self.sources if c not in (record, cluster)], self.near
        joined = bool(near and near.parts)
        read = Reading(table=self.table, ids=(record,), other=cluster, what=self.what)
        if self.is_unique(record) and not (joined and sources):
            return [read]
        rows = self.table.drop_duplicates([record, cluster, *sources])
        read = replace(read, table=rows, repeats=len(self.table) - len(rows))
        # ids without their source are not those of a list that has both joined
        apart = near is not None and joined and near.whole and not near.first.isin(rows[record]).any()
        if rows[record].is_unique and not apart:
            return [read]
        once = (c for c in sources if not rows.duplicated([c, record]).any() and rows[c].notna().all())
        return [replace(read, sources=(c,)) for c in once]

    # Links

    @cached_property
    def pairs(self) -> list[ColumnPair]:
        """The pairs of columns with one attribute of both records."""
        return pair_columns(self.usable)

    @cached_property
    def origin(self) -> tuple[Any, ...]:
        """The columns of the sources of both ends of links."""
        if len(self.named.sources) == 2:
            return self.named.sources
        return next(((p.left, p.right) for p in self.pairs if p.stem in NAMES["source"]), ())

    @cached_property
    def ends(self) -> list[ColumnPair]:
        """The pairs of columns that can have both ends of links.

        Names of the other file come first, then its ids, then known names; else the pair with most distinct
        values, if equal ids have equal values in each other pair.
        """
        if self.named.ends:
            left, right = self.named.ends
            return [ColumnPair(left, right, "", False)]
        pairs = [p for p in self.pairs if p.stem not in NAMES["source"]]
        full = [p for p in pairs if self.table[[p.left, p.right]].notna().all(axis=None)]
        names = {plain(c) for c in (self.near.keys if self.near else ()) if c is not None}
        shared = [p for p in full if p.stem in names]
        known = [p for p in full if p.stem in ("", *NAMES["record"])]
        # many are written by matchers, of which others are looked at only if those of known names have no ids
        for some in (shared, known, full) if self.near and self.near.whole else ():
            if fits := [p for p in some if self.has_ids(p.left) and self.has_ids(p.right)]:
                full = fits
                break
        full = [p for p in shared if p in full] or [p for p in known if p in full] or full
        if len(pairs) < 2 or not full or full[0] in [*shared, *known]:
            return full
        codes = {p: pd.factorize(self._stack(p))[0] for p in pairs}
        top = max(full, key=lambda p: codes[p].max())
        return [top] if all(tells(codes[top], x) for x in codes.values()) else []

    def _stack(self, pair: ColumnPair) -> pd.Series:
        """Return the ids of both ends, joined with their source, below each other."""

        def stack(left: Any, right: Any) -> pd.Series:
            stacked: pd.Series = pd.concat([self.table[left], self.table[right]], ignore_index=True)
            return stacked.astype("str")

        key = stack(pair.left, pair.right)
        return stack(*self.origin) + JOIN + key if self.origin else key

    def read_links(self, pair: ColumnPair) -> list[Reading]:
        """Return readings of a pair of columns as both ends of links."""
        left, right, near = pair.left, pair.right, self.near
        if lists := self._split_lists(right, left):
            table = self.table.assign(**{right: pd.Series(lists, self.table.index)}).explode(right)
            return [Reading(table=table[table[right].notna()], ids=(left, right), what=self.what)]
        readings = [
            Reading(table=self.table, ids=(left, right), other=c, threshold=t, on=on, what=self.what)
            for c, t, on in self.list_scores(left, right)
        ]
        both = [self.distinct(end) for end in (left, right)]
        if self.origin:
            columns = zip(self.origin, (left, right), strict=True)
            ends = [self.table[[s, i]].set_axis(["s", "i"], axis=1) for s, i in columns]
            if (near and near.parts) or pd.concat(ends).drop_duplicates()["i"].duplicated().any():
                return [replace(reading, sources=self.origin) for reading in readings]
        elif near and near.parts and not any(are_listed(both[0], x).any() for x in near.keys.values()):
            raise DataError(
                f"{self.what}: records have sources, and links have none: from which source is each end?"
            )
        elif not self.named.one_list and not (near and near.whole) and both[0].isin(both[1]).any():
            if pair.of_two or (self.table[left] == self.table[right]).any():
                raise DataError(
                    f"{self.what}: {left!r} and {right!r} share ids, which are of one list, or of two "
                    "tables that both count from 0",
                    Remedy.WHICH_LIST,
                )
        return readings

    def list_scores(self, left: Any, right: Any) -> list[tuple[Any, float | None, BoolArray | None]]:
        """Return the columns that decide which rows are links, with the threshold of scores or the links."""
        said, threshold = self.named, self.named.threshold
        if said.word is not None:
            return [(said.score, None, (self.table[said.score].astype("str") == said.word).to_numpy())]
        taken = {left, right, *self.sources, *(c for p in self.pairs for c in (p.left, p.right))}
        rest = [c for c in self.usable if c not in taken and plain(c) != "matchkey"]
        rest = [c for c in rest if plain(c) in NAMES["score"] or not self.counts_rows(c)]
        known = [said.score] if said.score is not None else find_known(rest, "score")
        scores = [c for c in known if self.numbers(c) is not None and self.answers(c) is None]
        if known and not scores and (threshold is not None or self.answers(known[0]) is None):
            scores = known[:1]  # words where scores should be are shown by whoever reads them
        answers = self._find_answers(rest, known, scores)
        sure = [said.score] if said.score is not None else find_known(answers, "answer")
        sure += [c for c in answers if c in known]
        loose = [c for c in rest if c not in (*known, *answers) and self._could_judge(c)]
        if threshold is not None and not scores and not answers:
            scores = [c for c in loose if self.numbers(c) is not None]
            if len(scores) != 1 or not self.has_decimals(scores[0]):
                raise self._ask_for_scores(loose, rest, left, right)
        elif loose and not scores and not sure and not said.ends:
            self._refuse_answers(find_known(rest, "answer"), left, right)
            raise DataError(
                f"{self.what}: is each row a link, or is {head([*loose, *answers])} a score or an answer?",
                *(self._name(c, left, right) for c in [*loose, *answers][:2]),
                Way("or, if each is", f"table[[{left!r}, {right!r}]]", f"FILE:{left},{right} --edges"),
            )
        if not scores:
            return [(c, None, self.answers(c)) for c in answers] or [(None, None, None)]
        if threshold is None:
            raise DataError(
                f"{self.what}: without a threshold, scores {scores[0]!r} of any size would be links",
                Remedy.THRESHOLD,
            )
        if threshold == SWEEP:
            return [(scores[0], threshold, None)]
        return self._cut_scores(scores, answers, threshold)

    def _find_answers(self, rest: Sequence[Any], known: Sequence[Any], scores: Sequence[Any]) -> list[Any]:
        """Return the columns with answers: words for yes and no by a known name, or words of judgement."""

        def judges(column: Any) -> bool:
            by_name = column in (*known, *find_known([column], "answer"))
            return self.answers(column, *([] if by_name else [JUDGED])) is not None

        found = [c for c in rest if c not in scores and judges(c)]
        return [c for c in found if c in known or len(self.words(c)) > 1 or find_known([c], "answer")]

    def _ask_for_scores(self, loose: Sequence[Any], rest: Sequence[Any], left: Any, right: Any) -> DataError:
        """Return the error for a threshold without a column of scores."""
        if self.named.threshold == SWEEP:
            said = f"the table of the {self.what} has {head(self.usable, 20)}: it is not clear which has the"
            ways = [Way("say which", f"score={c!r}", f"FILE:{left},{right},{c}") for c in loose[:3]]
            return DataError(f"{said} scores", *ways, *([] if ways else [Remedy.SCORED]))
        said = f"{self.what}: a threshold of {self.named.threshold:g} needs the column of scores"
        answers = [self._name(c, left, right) for c in loose[:3]]
        said += f"; there is {head(rest, 20) or 'none'}"
        return DataError(said, *answers, *([] if answers else [Remedy.SCORE]))

    def _refuse_answers(self, columns: Iterable[Any], left: Any, right: Any) -> None:
        """Refuse a column of answers that has other words than those for yes and no."""
        for column in columns:
            if self.numbers(column) is None:
                words = self.distinct(column)
                other = [w for w in words if plain_word(w) not in frozenset.union(*PLAIN, *JUDGED)]
                said = f"{self.what}: answers {column!r} must be 1 or 0, yes or no, not such as"
                raise DataError(f"{said} {head(other or words)}", self._name(column, left, right))

    def _cut_scores(
        self, scores: Sequence[Any], answers: Sequence[Any], threshold: float
    ) -> list[tuple[Any, float | None, BoolArray | None]]:
        """Return the scores whose threshold it can be, and answers beside them."""
        numbers = {c: self.numbers(c) for c in scores}
        above = [c for c, x in numbers.items() if x is not None and x.max() > 1]
        if len(scores) == 1 and (x := numbers[scores[0]]) is not None and len(x) > 1:
            if 0 < threshold <= 1 and x.min() >= threshold and x.max() > 1:
                raise DataError(
                    f"{self.what}: scores {scores[0]!r} lie between {x.min():g} and {x.max():g}, all above "
                    f"{threshold:g}: is that a share, and scores are not?",
                    Remedy.THRESHOLD,
                )
        # a threshold above 1 is none of probabilities, and one up to 1 may be of either
        fitting = above if threshold > 1 and above else sorted(scores, key=lambda c: c in above)
        found: list[tuple[Any, float | None, BoolArray | None]] = [(c, threshold, None) for c in fitting]
        x = numbers[fitting[0]]
        if x is None or (self.named.ends and self.named.score is not None):
            return found
        linked = (x >= threshold).to_numpy()
        both = ((c, self.answers(c)) for c in answers if c not in scores)
        return found + [(c, None, linked & yes) for c, yes in both if yes is not None]

    def _could_judge(self, column: Any) -> bool:
        """Return whether a column could say which rows are links: numbers that are no key, or few words."""
        key = len(self.table) >= FEW and self.is_unique(column) and not self.has_decimals(column)
        differ = self.numbers(column) is not None and len(self.distinct(column)) > 1
        return (differ and not key) or len(self.words(column)) > 1

    def _name(self, column: Any, left: Any, right: Any) -> Way:
        """Return how to say that a column decides which rows are links."""
        if self.answers(column) is not None:
            return Way("say which", f"score={column!r}", f"FILE:{left},{right},{column}")
        if self.numbers(column) is not None or not self.words(column):
            said = "say which, with the least score of a link"
            return Way(said, f"score={column!r}, threshold=x", f"FILE:{left},{right},{column}@X")
        word = str(self.distinct(column)[0])
        return Way(
            "say which word is a link",
            f"table[table[{column!r}] == {word!r}][[{left!r}, {right!r}]]",
            f"FILE:{left},{right},{column}={word}",
        )

    # Two columns without known names

    def read_bare(self, one: Any, other: Any) -> list[Reading]:
        """Return readings of two columns whose names say nothing: values alone decide."""
        said, near, readings = self.named, self.near, list[Reading]()
        orders = [(one, other), (other, one)]
        for a, b in orders if said.links is None else ():
            if self._split_lists(b, a):
                raise DataError(
                    f"{self.what}: cells of {b!r} list ids of records",
                    Reading(table=self.table, ids=(a, b)).remedy,
                )
        # if neither column has known records, whoever looks these up says so
        for a, b in ([o for o in orders if self.has_ids(o[0])] or orders) if said.links is not True else ():
            heads = near is None or not near.whole or said.links is False or not self.has_ids(b)
            # clusters that are called as listed records have rows of these, as ends of links have not
            if not readings and (heads or self.distinct(b).isin(self.table[a]).mean() >= HALF):
                readings = self.read_memberships(a, b)
        if said.links is False or not self._may_link(one, other):
            swapped = said.links is False and readings and readings[0].ids == (other,) and not near
            return [] if swapped and self.table[one].isin(self.table[other]).any() else readings
        if not readings:
            repeats = min(self.table[c].duplicated(keep=False).mean() for c in (one, other))
            if said.links is None and 0 < repeats <= REPEATED:
                raise DataError(
                    f"{self.what}: rows of {one!r} and {other!r} are links of two records, or records of "
                    f"which {repeats:.0%} are in two clusters: leave out a row of each, or give these "
                    "clusters one id",
                    make_pairs_remedy(self.what),
                )
            return self.read_links(ColumnPair(one, other, "", True))
        one_list = replace(self, named=replace(said, one_list=True))
        linked = one_list.read_links(ColumnPair(one, other, "", False))
        if len(self.table) < FEW:
            return [*readings, *linked]
        # clusters with the numbers of records join nearly all of these, if rows are taken for links
        largest = [r.partition().value_counts(normalize=True).iloc[0] for r in (readings[0], linked[0])]
        return readings if largest[0] <= HALF < largest[1] else [*readings, *linked]

    def _may_link(self, one: Any, other: Any) -> bool:
        """Return whether two columns can have both ends of links."""
        near, ids = self.near, (self.distinct(one), self.distinct(other))
        if self.named.links is not None:
            return self.named.links
        if self.sources or self.table[[one, other]].isna().any(axis=None):
            return False  # one source in a row is that of one record
        if near is not None and near.whole:
            return self.has_ids(one) and self.has_ids(other)
        if near is not None and not all(
            any(kind(key) == kind(x) and are_listed(key, x).any() for key in near.keys.values()) for x in ids
        ):
            return False
        return bool(ids[0].isin(ids[1]).any()) or (self.is_unique(one) and self.is_unique(other))

    def _split_lists(self, cells: Any, records: Any) -> list[list[str]]:
        """Return the ids of each cell if cells list ids of another column's records."""
        ids, column = self.distinct(records), self.table[cells]
        some = [x for x in column.head(HEAD) if isinstance(x, str) and PARTS.search(x.strip())]
        if not some or kind(ids) != "string" or pd.Index(some).isin(ids).any():
            return []
        parts = pd.Index([part for x in some for part in PARTS.split(x.strip())])
        if parts.isin(ids).mean() < HALF:
            return []
        return [PARTS.split(x.strip()) if isinstance(x, str) else [] for x in column]

    # What is said if nothing fits

    @cached_property
    def _judging(self) -> tuple[str, list[Remedy]]:
        """What columns of scores or answers say of a table of records, with the remedy for pairs."""
        judging = [c for c in self.usable if looks_like_answers(self.table[c])]
        if not judging:
            return "", []
        said = f"; {head(judging)} looks like scores or answers about pairs"
        return said, [make_pairs_remedy(self.what)]

    def explain(self) -> DataError:
        """Return the error for columns that have no reading."""
        columns, table = self.usable, f"the table of the {self.what}"
        if len(columns) < 2:
            hint = separator_hint(columns)
            if not isinstance(self.table.index, pd.RangeIndex):
                hint = ": if records are its index, reset_index() makes them a column"
            return DataError(f"{table} needs 2 columns; it has {head(columns) or 'none'}{hint}")
        shown = f"{table} has {head(columns, 20)}"
        if self.named.links is False and self.ends:
            ends = [self.ends[0].left, self.ends[0].right]
            said = f"{shown}: {head(ends)} look like both records of a link"
            return DataError(said, Remedy.COLUMNS, make_pairs_remedy(self.what))
        if self.named.links is True:
            return DataError(f"{shown}: it is not clear which have both records of a link", Remedy.SCORED)
        groups = [self.named.cluster] if self.named.cluster is not None else find_known(columns, self.groups)
        free = [c for c in columns if c not in groups and c not in self.sources]
        for source in free if groups else ():
            for id in free:  # a column that makes ids unique may be their source
                if id != source and not self.is_unique(id) and len(self.words(source)) > 1:
                    if not self.table.duplicated([source, id]).any():
                        return DataError(
                            f"{self.what}: ids {id!r} repeat, and are unique inside {source!r}",
                            Way(
                                "if that is their source",
                                f"table.rename(columns={{{source!r}: 'source'}})",
                                f"FILE:{source}+{id},{groups[0]}",
                            ),
                        )
        record = self.find_record(free, groups)
        others = groups or [c for c in free if c != record]
        if record is not None and len(others) == 1:
            said_clusters = bool(groups)
            return explain_repeats(self.table[record], self.table[others[0]], self.what, said_clusters)
        which = "record" if groups else self.groups
        said = f"{table} has {len(columns)} columns, {head(columns, 20)}, and it is not clear which is the"
        said += f" {which}"
        return DataError(said + self._judging[0], Remedy.COLUMNS, *self._judging[1])


def plain_word(word: Any) -> str:
    """Return a word of a cell in small letters and digits alone; 1.0 is 1."""
    return plain(str(word).removesuffix(".0"))


def tells(key: IntArray, other: IntArray) -> bool:
    """Return whether equal codes have equal other codes."""
    return len(np.unique(key * (int(other.max()) + 2) + other)) == int(key.max()) + 1
