"""What the columns of a table mean: which have records, clusters, both ends of links, scores, sources.

Readings that names or values allow are listed, the likeliest first, and values refute some. If those left
give the same clusters, the first is taken; if they give others, an error asks, with the numbers of both. No
evidence is weighed, so that an ambiguous table costs a question only if an answer depends on it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from .._internal.arrays import EXACT, BoolArray, FloatArray, label_components
from .._internal.errors import DataError, Remedy, head
from .._internal.known_columns import find_known
from .._internal.tables import looks_like_answers, need_table, refuse_names, separator_hint, to_frame
from .facts import (
    HALF,
    NOTHING,
    SWEEP,
    ColumnPair,
    Facts,
    Named,
    find_readable,
    has_plain_values,
    is_dense,
    is_forest,
    is_unique_column,
    join_source,
    mark_answers,
    read_numbers,
)
from .ids import are_listed, ids, kind
from .scores import list_scores

DEDUPE = ("pairs", "score")
"""Fields of the array that dedupe's `score` returns."""
FEW = 0.1
"""Share of rows with a repeated id up to which rows may be records, of which a few are in two clusters."""
NUMBER = re.compile(r"-?\d{2,}([.,]\d+)?")
"""Ids that stand where names of columns should; 0 and 1 are names that pandas gives."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reading:
    """What the columns of a table mean: one column of records and one of clusters, or two of ends of links.

    `sources`: the column of the source of each id, in which alone the id is unique; `other`: the column of
    clusters or of scores, None if each row is a link; `repeats`: rows that repeat another and are left out.
    """

    table: pd.DataFrame
    ids: tuple[Any, ...]
    sources: tuple[Any, ...] = ()
    other: Any = None
    threshold: float | None = None
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
        """Return records without a cluster as clusters of their own, or without them."""
        blank = self.table[self.other].isna()
        if not own:
            return replace(self, table=self.table[~blank])
        texts, key = self.table[self.other].astype("str"), self.key().astype("str")
        # a record that others are said to belong to is the head of their cluster
        heads = bool(texts[~blank].isin(key).mean() >= HALF) and bool(key[blank].isin(texts[~blank]).any())
        filled = texts.mask(blank, key if heads else "own " + key)
        return replace(self, table=self.table.assign(**{self.other: filled}))

    def scores(self) -> FloatArray:
        """Return scores, (rows,), in single precision if the table has them so."""
        column, said = self.table[self.other], f"{self.what}: scores {self.other!r} must"
        scores = read_numbers(column)
        if scores is None or pd.api.types.is_bool_dtype(column):
            wrong = column[pd.to_numeric(column, errors="coerce").isna()].dropna()
            raise DataError(f"{said} be numbers, not such as {head(wrong if len(wrong) else column)}")
        if missing := int(scores.isna().sum()):
            raise DataError(
                f"{self.what}: {missing:,} of {len(scores):,} scores {self.other!r} are missing: leave these "
                "rows out if the matcher rejected them, or score them"
            )
        if pd.api.types.is_integer_dtype(scores) and (large := (scores >= EXACT) | (scores <= -EXACT)).any():
            raise DataError(
                f"{said} keep their order, and {int(large.sum()):,} of {len(scores):,} are integers from "
                "2**53 on, which lose it: subtract one number from all"
            )
        return scores.to_numpy(dtype=np.float32 if scores.dtype == np.float32 else float)

    def links(self) -> BoolArray:
        """Return whether each row is a link, (rows,)."""
        if self.other is None:
            return np.ones(len(self.table), dtype=bool)
        if self.threshold is None:
            return np.asarray(mark_answers(self.table[self.other]) == 1, dtype=bool)
        return np.asarray(self.scores() >= self.threshold, dtype=bool)

    def partition(self, listed: pd.Index | None = None) -> pd.Series:
        """Return the cluster of each record, (N,), also of those in `listed`, by the id of the record."""
        if not self.of_links:
            return pd.Series(pd.factorize(self.table[self.other])[0], self.key())
        ends = [self.key(0), self.key(1), *([] if listed is None else [pd.Series(listed)])]
        codes, records = pd.factorize(pd.concat(ends, ignore_index=True))
        E, on = len(self.table), self.links()
        return pd.Series(label_components(codes[:E][on], codes[E : 2 * E][on], len(records)), records)

    def in_words(self) -> str:
        """Return the columns that were taken, in words."""
        pairs = ("+".join(map(str, [*self.sources[i : i + 1], id])) for i, id in enumerate(self.ids))
        said = " and ".join(pairs)
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
    if isinstance(links, pd.MultiIndex):
        return links.to_frame(index=False, name=_name_levels(links))
    table = need_table(links, said)
    if isinstance(table.index, pd.MultiIndex) and table.index.nlevels == 2:
        names = _name_levels(table.index)
        if twice := [name for name in names if name in table.columns]:
            raise DataError(f"{head(twice)} is a level of the index and a column: rename one of them")
        return table.reset_index(names=names)
    return table


def _name_levels(index: pd.MultiIndex) -> list[Any]:
    """Return the names of levels; left and right if they have none."""
    named = None not in index.names and len(set(index.names)) == index.nlevels
    return list(index.names) if named or index.nlevels != 2 else ["left", "right"]


def read_prediction(
    table: pd.DataFrame,
    named: Named = NOTHING,
    *,
    listed: pd.Index | None = None,
    sample: pd.Index | None = None,
    hints: Named = NOTHING,
    groups: str = "cluster",
    what: str = "prediction",
) -> Reading:
    """Return what the columns of a matcher's table, or of labels, mean.

    Parameters
    ----------
    named : Named
        What the user has said.
    listed, sample : Index, optional
        All records, and some of them, such as those that are labelled.
    hints : Named
        What was said of another table of the same matcher, for a table whose names and values do not suffice.
    groups : str
        What records are grouped by: "cluster", or "entity" in labels.
    what : str
        How messages name the table.

    Raises
    ------
    DataError
        If no reading is possible, or two that give other clusters.
    """
    readable = find_readable(table)
    if all(NUMBER.fullmatch(str(c)) and isinstance(c, str) for c in table.columns) and len(table.columns):
        raise DataError(f"the first line of the {what} is {head(table.columns)}: it must name the columns")
    remedy = Remedy.SCORE if named.links else Remedy.COLUMNS
    remedies = dict.fromkeys(named.columns, remedy)
    refuse_names(named.columns, list(table.columns), f"the table of the {what}", remedies)
    if nested := [c for c in named.columns if not has_plain_values(table[c])]:
        raise DataError(f"the {what}: {head(nested)} has lists or other objects, and no ids or numbers")
    columns = [c for c in table.columns if c in named.columns or c in readable]
    facts = _Table(
        table=table, columns=columns, named=named, listed=listed, sample=sample, groups=groups, what=what
    )
    readings = facts.list_readings()
    if not readings and hints != NOTHING:
        hinted = replace(named, record=named.record or hints.record, cluster=named.cluster or hints.cluster)
        readings = replace(facts, named=hinted).list_readings()
    if not readings:
        raise facts.explain()
    return settle(readings, listed)


def read_records(records: Any, what: str = "prediction", record: Any = None) -> pd.Index:
    """Return the ids of a list of all records, which may be a column or a table with one record a row."""
    if not (hasattr(records, "columns") or hasattr(records, "column_names")):
        return ids(records, f"all records of the {what}")
    table = to_frame(records)
    columns = find_readable(table)
    if not columns:
        raise DataError(
            f"all records of the {what} need a column of ids; there is {head(table.columns) or 'none'}"
        )
    sources = find_known(columns, "source")
    free = [c for c in columns if c not in sources] or columns
    unique = (c for c in free if is_unique_column(table[c]))
    known = [record] if record is not None else find_known(free, "record")
    chosen = known[0] if known else next(unique, free[0])
    key = table[chosen]
    if sources and chosen not in sources and not is_unique_column(key):
        if not table.duplicated([sources[0], chosen]).any():
            key = join_source(table[sources[0]], key)
    return ids(key, f"all records of the {what}").rename(chosen)


def find_records(table: pd.DataFrame, record: Any = None) -> pd.Index | None:
    """Return the ids of records of labels, as far as names or repeats show which column has them."""
    chosen = [record] if record is not None else find_known(table.columns, "record")
    if not chosen and len(table.columns) == 2:
        once = [c for c in table.columns if is_unique_column(table[c])]
        chosen = once if len(once) == 1 else []
    return pd.Index(table[chosen[0]].dropna()) if chosen else None


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
    at = other.index.get_indexer(one.index)
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
    said += f" or {count(other, another)}"
    if not (one.of_links and other.of_links):
        return DataError(said, Remedy.COLUMNS, Remedy.LINKS)
    return DataError(said, Remedy.WHICH_LIST if one.other == other.other else Remedy.WHICH_SCORE)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Table(Facts):
    """A table whose columns are to be read."""

    def list_readings(self) -> list[Reading]:
        """Return the readings that names and values leave, the likeliest first."""
        named, ends = self.named, self.ends
        clusters = self.find_columns(self.groups, self.columns)
        only_ends = ends and named.cluster is None and not find_known(self.columns, "record")
        if named.links is not True and not named.ends and clusters and not only_ends:
            return self.read_clusters(clusters)
        if ends and named.links is not False:
            return [reading for pair in ends for reading in self.read_links(pair)]
        if ends and not self.find_columns("record", self.columns):
            return []  # the error says that rows look like links, which are no records
        free = [c for c in self.columns if c not in (*self.sources, named.score)]
        record = self.find_columns("record", free)
        if len(record) == 1 and len(free) == 2 and named.links is not True:
            (cluster,) = (c for c in free if c != record[0])
            return self.read_memberships(record[0], cluster)
        if len(free) > 2 and named.score is None and named.links is not False:
            measures = self.find_measures(free)
            free = [c for c in free if c not in measures]
        return self.read_bare(free[0], free[1]) if len(free) == 2 else []

    def read_clusters(self, clusters: Sequence[Any]) -> list[Reading]:
        """Return readings of columns that have clusters."""
        free = [c for c in self.columns if c not in clusters]
        free = [c for c in free if c not in self.sources] or free
        record = self._choose_record(free, clusters[0])
        return [r for c in clusters for r in self.read_memberships(record, c)] if record is not None else []

    def _choose_record(self, free: Sequence[Any], cluster: Any) -> Any:
        """Return the column of records next to that of clusters, None if there is none."""
        if self.named.record is not None or len(free) == 1:
            return self.named.record if self.named.record is not None else free[0]
        named = find_known(free, "record")
        if self.known is None and named:
            return named[0]

        def names_once(column: Any) -> bool:
            return any(not reading.repeats for reading in self.read_memberships(column, cluster))

        fitting = [c for c in free if self.known is not None and self.has_records(c)]
        # a name that another file has for records says more than one that matchers use
        equal = [c for c in fitting if self.known is not None and c == self.known.name]
        fitting = equal or [c for c in named if c in fitting] or fitting
        if fitting or named:
            return next(filter(names_once, fitting), (fitting or named)[0])
        once = list(filter(names_once, free))
        # numbers that occur once may be those of a phone
        return next((c for c in once if read_numbers(self.table[c]) is None), next(iter(once), None))

    def read_memberships(self, record: Any, cluster: Any) -> list[Reading]:
        """Return readings as records and clusters: each id once, or once inside its source."""
        sources = [c for c in self.sources if c not in (record, cluster)]
        plain = Reading(table=self.table, ids=(record,), other=cluster, what=self.what)
        if is_unique_column(self.table[record]) and not (self.joined and sources):
            return [plain]
        rows = self.table.drop_duplicates([record, cluster, *sources])
        plain = replace(plain, table=rows, repeats=len(self.table) - len(rows))
        # ids without their source are not those of a list that has both joined
        apart = self.joined and self.listed is not None and not self.listed.isin(rows[record]).any()
        if rows[record].is_unique and not apart:
            return [plain]
        once = (c for c in sources if not rows.duplicated([c, record]).any() and rows[c].notna().all())
        return [replace(plain, sources=(c,)) for c in once]

    def read_links(self, pair: ColumnPair) -> list[Reading]:
        """Return readings of a pair of columns as both ends of links."""
        left, right = pair.left, pair.right
        readings = [
            Reading(table=self.table, ids=(left, right), other=score, threshold=threshold, what=self.what)
            for score, threshold in list_scores(self, left, right)
        ]
        both = [pd.Index(self.table[end].unique()) for end in (left, right)]
        if self.origin is not None:
            columns = zip(self.origin, (left, right), strict=True)
            ends = [self.table[[s, i]].set_axis(["s", "i"], axis=1) for s, i in columns]
            if self.joined or pd.concat(ends).drop_duplicates()["i"].duplicated().any():
                return [replace(reading, sources=self.origin) for reading in readings]
        elif self.known is not None and self.joined and not are_listed(both[0], self.known).any():
            raise DataError(
                f"{self.what}: records have sources, and links have none: from which source is each end?"
            )
        elif not self.named.one_list and self.listed is None and both[0].isin(both[1]).any():
            if pair.of_two or (self.table[left] == self.table[right]).any():
                raise DataError(
                    f"{self.what}: {left!r} and {right!r} share ids, which are of one list, or of two "
                    "tables that both count from 0",
                    Remedy.WHICH_LIST,
                )
        return readings

    def read_bare(self, one: Any, other: Any) -> list[Reading]:
        """Return readings of two columns whose names say nothing: values alone decide."""
        named, readings = self.named, list[Reading]()
        if named.links is not True:
            orders = [(one, other), (other, one)]
            # if neither column has known records, whoever looks these up says so
            for record, cluster in [o for o in orders if self.has_records(o[0])] or orders:
                if not readings and self._has_all_named(record, cluster):
                    readings = self.read_memberships(record, cluster)
        if named.links is False:
            swapped = [r for r in readings if r.ids == (other,)]
            return [] if swapped and self.table[one].isin(self.table[other]).any() else readings
        if not self._can_be_ends(one, other):
            return readings
        if not readings:
            repeats = min(self.table[c].duplicated(keep=False).mean() for c in (one, other))
            if named.links is None and 0 < repeats <= FEW:
                raise DataError(
                    f"{self.what}: rows of {one!r} and {other!r} are links of two records, or records of "
                    f"which {repeats:.0%} are in two clusters: leave out a row of each, or give these "
                    "clusters one id",
                    make_pairs_remedy(self.what),
                )
            return self.read_links(ColumnPair(one, other, "", True))
        (record,), cluster = readings[0].ids, readings[0].other
        child, parent = self.table[record], self.table[cluster]
        # rows that lead from record to record in a circle, or to no head, are no links to heads
        chained = is_unique_column(parent) or ((child == parent).any() and is_forest(child, parent))
        if is_dense(parent) or not chained:
            return readings
        one_list = replace(self, named=replace(named, one_list=True))
        return [*readings, *one_list.read_links(ColumnPair(record, cluster, "", False))]

    def _has_all_named(self, record: Any, cluster: Any) -> bool:
        """Return False if clusters are called as listed records that have no row, as ends of links are."""
        if self.listed is None or not self.has_records(cluster):
            return True
        names = pd.Index(self.table[cluster].unique())
        return bool(names.isin(self.table[record]).mean() >= HALF)

    def _can_be_ends(self, one: Any, other: Any) -> bool:
        """Return whether the two columns can have both ends of links."""
        columns = self.table[one], self.table[other]
        if self.named.links is True:
            return True
        if self.sources or any(column.isna().any() for column in columns):
            return False  # one source in a row is that of one record
        if self.listed is not None:
            return self.has_records(one) and self.has_records(other)
        values = (pd.Index(column.unique()) for column in columns)
        if self.sample is not None and not all(are_listed(self.sample, ids).any() for ids in values):
            return False
        return bool(columns[0].isin(columns[1]).any()) or all(map(is_unique_column, columns))

    def explain(self) -> DataError:
        """Return the error for columns that have no reading."""
        columns, table = self.columns, f"the table of the {self.what}"
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
            said = f"{shown}: it is not clear which have both records of a link"
            return DataError(said, Remedy.SCORED)
        clusters = self.find_columns(self.groups, columns)
        free = [c for c in columns if c not in clusters and c not in self.sources]
        record = self.find_columns("record", free)
        record = record or [c for c in free if self.known is not None and self.has_records(c)] or free[:1]
        others = clusters or [c for c in free if c not in record]
        if len(others) == 1 and len(record) == 1:
            return explain_repeats(self.table[record[0]], self.table[others[0]], self.what)
        which = self.groups if len(record) == 1 else "record"
        said = f"{table} has {len(columns)} columns, {head(columns, 20)}, and it is not clear"
        said += f" which is the {which}"
        judging = [c for c in columns if looks_like_answers(self.table[c])]
        if judging:
            said += f"; {head(judging)} looks like scores or answers about pairs"
        return DataError(said, Remedy.COLUMNS, *([make_pairs_remedy(self.what)] if judging else []))


def explain_repeats(record: pd.Series, cluster: pd.Series, what: str) -> DataError:
    """Error for repeated records, with a likely cause: equal rows, pairs, or columns in the other order."""
    records, (codes, clusters) = ids(record, f"record ids of the {what}"), pd.factorize(cluster)
    rows = pd.DataFrame({"record": records, "code": codes})
    twice, same = records[records.duplicated()], int(rows.duplicated().sum())
    said = f"record ids of the {what}: {len(twice):,} duplicates, such as {head(twice)}"
    if same == len(twice):
        return DataError(f"{said}; each repeats an earlier row with the same cluster, and can be dropped")
    clusters = pd.Index(clusters)
    named = int(clusters.isin(records).sum()) if kind(clusters) == kind(records) else 0
    if 2 * named >= len(clusters):
        said += f"; {named:,} of {len(clusters):,} cluster ids are ids of records"
        return DataError(f"{said}, as in pairs of records", make_pairs_remedy(what))
    if len(clusters) == len(codes):
        said += "; no cluster id is, as if the columns were in the other order"
        return DataError(said, Remedy.ORDER, make_pairs_remedy(what))
    rows = rows.drop_duplicates()
    one = rows["record"][rows["record"].duplicated()].iloc[:1]
    both = clusters[rows["code"][rows["record"].isin(one)]]
    said += f"; {same:,} of them repeat an earlier row" * (same > 0)
    said += f"; {head(one)} is in {head(both, 2)}: keep one row of each record, or give both clusters one id"
    return DataError(said)


def make_pairs_remedy(what: str) -> Remedy:
    """Remedy for pairs of records instead of memberships."""
    return Remedy.ANSWERS if what == "labels" else Remedy.LINKS
