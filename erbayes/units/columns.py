"""Which role each column of a table has: one order of evidence, and a question for what is left.

What somebody has said comes first, then names that another file uses for records, then values, then names of
matchers. Roles are record, cluster, source, end of a link, score, answer, row number and attribute. A column
that has none of them is asked about, unless two readings give the same clusters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pandas as pd

from .._internal import remedies
from .._internal.arrays import looks_like_answers, refuse_names, separator_hint, to_frame
from .._internal.errors import DataError, Remedy, head
from .._internal.names import JUDGED, NAMES, find_known, plain
from .ids import are_listed, are_unique, as_index, ids, kind
from .links import FEW, HALF, ColumnFacts, LinkReader, split_lists
from .reading import (
    ColumnPair,
    Named,
    Near,
    Reading,
    explain_repeats,
    has_plain_values,
    join_source,
    make_pairs_remedy,
)

REPEATED = 0.1
"""Share of rows with a repeated id up to which rows may be records, of which a few are in two clusters."""
NUMBER = re.compile(r"-?\d{2,}([.,]\d+)?")
"""Ids that stand where names of columns should; 0 and 1 are names that pandas gives."""
IN_MEMORY = frozenset(["pandas", "pyarrow", "polars"])
"""Packages whose tables are in memory, so that they can be read more than once."""


def read_prediction(
    table: pd.DataFrame,
    named: Named = Named(),  # noqa: B008  it never changes
    near: Near | None = None,
    *,
    groups: str = "cluster",
    what: str = "prediction",
) -> Reading:
    """Return what the columns of a matcher's table, or of labels, mean.

    DataError if no reading is possible, or two that give other clusters. `named`: what the user has said;
    `near`: what another file says of records; `groups`: what records are grouped by, "cluster", or "entity"
    in labels; `what`: how messages name the table.
    """
    refuse_numbers(list(table.columns), what)
    remedy = dict.fromkeys(named.columns, remedies.SCORED if named.links else remedies.COLUMNS)
    refuse_names(named.columns, list(table.columns), f"the table of the {what}", remedy)
    if nested := [c for c in named.columns if not has_plain_values(table[c])]:
        raise DataError(f"the {what}: {head(nested)} has lists or other objects, and no ids or numbers")
    evidence = ColumnFacts(table, named, near, groups, what)
    readings = list_readings(evidence)
    if not readings:
        raise explain_columns(evidence)
    return settle(readings, near.listed if near else None)


def refuse_numbers(columns: Sequence[Any], what: str) -> None:
    """Refuse a table whose first line is a record."""
    if columns and all(isinstance(c, str) and NUMBER.fullmatch(c) for c in columns):
        raise DataError(f"the first line of the {what} is {head(columns)}: it must name the columns")


def find_keys(table: pd.DataFrame, record: Any = None) -> Near | None:
    """Return what a table says of records: its unique columns, without row numbers if there are others."""
    e = ColumnFacts(table, Named(record=record))
    unique = [c for c in e.usable if e.is_unique(c)]
    keys = [c for c in unique if not e.counts_rows(c, in_order=False)] or unique
    keys = [record] if record is not None else keys or e.known("record")[:1]
    return Near({c: e.distinct(c) for c in keys}) if keys else None


def find_near(given: Any) -> Near | None:
    """Return what memberships, a table or a list say of records; None of what is not in memory."""
    if hasattr(given, "columns") and type(given).__module__.partition(".")[0] in IN_MEMORY:
        return find_keys(to_frame(given))
    if isinstance(given, Mapping):
        given = list(given)
    given = given.index if isinstance(given, pd.Series) else getattr(given, "records", given)
    if not isinstance(given, pd.Index | list) or not len(given):
        return None
    return Near({getattr(given, "name", None): as_index(given)})


def find_record(table: pd.DataFrame, near: Near | None, what: str, record: Any = None) -> Any:
    """Return the column of records of a table of attributes, of drawn records or of all records."""
    e = ColumnFacts(table, Named(record=record), near, what=what)
    if not e.usable and record is None:
        raise DataError(f"{what} needs a column of ids; there is {head(list(table.columns)) or 'none'}")
    return pick_record(e, [])


def read_records(
    records: Any, what: str = "prediction", record: Any = None, near: Near | None = None
) -> pd.Index:
    """Return the ids of a list of all records, which may be a column or a table with one record a row."""
    what = f"all records of the {what}"
    if not (hasattr(records, "columns") or hasattr(records, "column_names")):
        return ids(records, what)
    table = to_frame(records)
    chosen = find_record(table, near, what, record)
    key, sources = table[chosen], find_known(table.columns, "source")
    apart = sources and chosen not in sources and not are_unique(key)
    if apart and not table.duplicated([sources[0], chosen]).any():
        key = join_source(table[sources[0]], key)
    return ids(key, what).rename(chosen)


def settle(readings: Sequence[Reading], listed: pd.Index | None) -> Reading:
    """Return the first of several readings if all give the same clusters, and ask if they do not."""
    first, *others = readings
    one = first.partition(listed) if others else pd.Series()
    for other in others:
        another = other.partition(listed)
        at = another.index.get_indexer(one.index) if another.index.is_unique else np.array([-1])
        same = len(one) == len(another) and (at >= 0).all()
        if not same or not np.array_equal(pd.factorize(one)[0], pd.factorize(another.iloc[at])[0]):
            sizes = [
                f"{len(p):,} records in {p.nunique(dropna=False):,} clusters "
                f"({'links' if r.of_links else 'records and clusters'}: {r.in_words()})"
                for r, p in ((first, one), (other, another))
            ]
            said = f"{first.what}: columns can be read in two ways, which give {' or '.join(sizes)}"
            raise DataError(said, first.remedy, other.remedy)
    return first


def list_readings(e: ColumnFacts) -> list[Reading]:
    """Return the readings that names and values leave, the likeliest first."""
    links, said, named = LinkReader(e), e.named, e.known("record")
    by_name = e.clusters and (said.cluster is not None or named or not links.ends)
    if by_name and said.links is not True and not said.ends:
        record = pick_record(e, e.clusters)
        ask_of_answers(e, record, e.clusters[0])
        return [] if record is None else [r for g in e.clusters for r in read_memberships(e, record, g)]
    if links.ends and said.links is not False:
        return [reading for pair in links.ends for reading in links.read(pair)]
    if links.ends and said.record is None and not named:
        return []  # the error says that rows look like links, which are no records
    free = _leave_out(e, [c for c in e.usable if c not in (*e.sources, said.score)], named)
    return _read_two(e, links, free, named) if len(free) == 2 else []


def pick_record(e: ColumnFacts, groups: Sequence[Any]) -> Any:
    """Return the column of records: by names of the other file, by values, by known names.

    A number of the row is taken only if nothing else is there, or if all others number rows too.
    """
    free = [c for c in e.usable if c not in groups]
    return _pick_among(e, [c for c in free if c not in e.sources] or free, groups)


def _pick_among(e: ColumnFacts, free: Sequence[Any], groups: Sequence[Any]) -> Any:
    if e.named.record is not None:
        return e.named.record
    if len(free) < 2:
        return next(iter(free), None)
    named, near = find_known(free, "record"), e.near
    fits = [c for c in free if near and c in near.keys and e.has_ids(c)]
    fits = fits or [c for c in free if near and e.has_ids(c)]
    pool = fits or named or list(free)
    numbered = all(e.counts_rows(c, in_order=False) for c in pool)
    evidence: list[Callable[[Any], bool]] = [
        lambda c: numbered or not e.counts_rows(c) or (not near and c in named),
        e.is_unique,
        lambda c: any(read_memberships(e, c, g) for g in groups if g != c),
    ]
    for speaks_for in evidence:
        pool = [c for c in pool if speaks_for(c)] or pool
    if near and fits and len(pool) > 1:
        _ask_of_records(e, pool, groups, near)
    # numbers that occur once may be those of a phone
    texts = (c for c in [*named, *pool] if c in pool and (c in named or e.numbers(c) is None))
    return next(texts, pool[0])


def _ask_of_records(e: ColumnFacts, pool: Sequence[Any], groups: Sequence[Any], near: Near) -> None:
    """Ask which column has the records if rows of the other file get other clusters, or rows, by them."""
    group = groups[0] if groups else None
    found = {c: e.find(c, group, near.keys.get(c, near.first)) for c in pool if e.is_unique(c)}
    for x, y in pairwise(found):
        if not found[x].equals(found[y]):
            said = f"{e.what}: records are {x!r} or {y!r}, which both have ids of the other file"
            both = (x, y), (y, x)
            ways = (Remedy(f"if {a!r}", f"table.drop(columns={b!r})", f"--record {a}") for a, b in both)
            more, pairs = _say_judging(e)
            raise DataError(said + more, *ways, *pairs)


def ask_of_answers(e: ColumnFacts, record: Any, cluster: Any) -> None:
    """Ask about rows that say by a column of answers that they are none, as pairs for training do."""
    if e.named.record is not None and e.named.cluster is not None:
        return
    for column in (c for c in e.usable if c not in (record, cluster, *e.sources)):
        answers = e.answers(column, *([] if find_known([column], "answer") else [JUDGED]))
        if answers is not None and 0 < answers.mean() < 1:
            no = f"{int((~answers).sum()):,} of {len(answers):,} rows say no in {column!r}"
            way = Remedy("if they are", f"table[[{record!r}, {cluster!r}]]", f"FILE:{record},{cluster}")
            raise DataError(f"{e.what}: {no}: are they in their clusters?", way)


def read_memberships(e: ColumnFacts, record: Any, cluster: Any) -> list[Reading]:
    """Return readings as records and clusters: each id once, or once inside its source."""
    sources, near = [c for c in e.sources if c not in (record, cluster)], e.near
    joined = bool(near and near.parts)
    read = Reading(table=e.table, ids=(record,), other=cluster, what=e.what)
    if e.is_unique(record) and not (joined and sources):
        return [read]
    rows = e.table.drop_duplicates([record, cluster, *sources])
    read = replace(read, table=rows, repeats=len(e.table) - len(rows))
    # ids without their source are not those of a list that has both joined
    apart = near is not None and joined and near.whole and not near.first.isin(rows[record]).any()
    if rows[record].is_unique and not apart:
        return [read]
    once = (c for c in sources if not rows.duplicated([c, record]).any() and rows[c].notna().all())
    return [replace(read, sources=(c,)) for c in once]


def _leave_out(e: ColumnFacts, free: list[Any], named: Sequence[Any]) -> list[Any]:
    """Return what is left of more than two columns without those that are neither records nor clusters."""
    said = e.named
    evidence: list[Callable[[Any], bool]] = [
        lambda c: e.counts_rows(c) and c not in named and not (e.near and e.has_ids(c)),
        lambda c: len(e.table) >= FEW and e.is_constant(c),
        lambda c: bool(said.links) and plain(c) in NAMES["score"],
        lambda c: said.links is not False and _measures(e, c),
    ]
    for speaks_against in evidence:
        rest = [c for c in free if c == said.record or not speaks_against(c)] if len(free) > 2 else free
        free = rest if len(rest) >= 2 else free
    groups = [c for c in free if not e.is_unique(c)] if len(free) > 2 else []
    if len(groups) == 1 and (e.near or named or said.record is not None):
        # other keys of rows are no clusters
        free = [_pick_among(e, [c for c in free if c not in groups], groups), *groups]
    return free


def _measures(e: ColumnFacts, column: Any) -> bool:
    if e.numbers(column) is None or (e.near is not None and e.has_ids(column)):
        return False
    asked = bool(e.named.links) and (e.near is not None or e.answers(column) is not None)
    return asked or e.has_decimals(column) or plain(column) in NAMES["score"]


def _read_two(e: ColumnFacts, links: LinkReader, free: Sequence[Any], named: Sequence[Any]) -> list[Reading]:
    """Return the readings of two columns: records by what is said, by the other file, or by values."""
    said, near = e.named, e.near.keys if e.near else {}
    shared = [c for c in free if c in near and e.has_ids(c)]
    known = [c for c in free if c == said.record]
    known = known or (shared if len(shared) == 1 else [c for c in named if c in free])
    for record in known[:1] if said.links is not True else ():
        (other,) = (c for c in free if c != record)
        sure = record == said.record or record in named
        if sure or not (e.is_unique(record) and _may_link(e, record, other)):
            return read_memberships(e, record, other)
        free = [record, other]
    return _read_bare(e, links, *free)


def _read_bare(e: ColumnFacts, links: LinkReader, one: Any, other: Any) -> list[Reading]:
    """Return readings of two columns whose names say nothing: values alone decide."""
    said, near, readings = e.named, e.near, list[Reading]()
    orders = [(one, other), (other, one)]
    for a, b in orders if said.links is None else ():
        if split_lists(e, b, a):
            links_of = Reading(table=e.table, ids=(a, b)).remedy
            raise DataError(f"{e.what}: cells of {b!r} list ids of records", links_of)
    # if neither column has known records, whoever looks these up says so
    for a, b in ([o for o in orders if e.has_ids(o[0])] or orders) if said.links is not True else ():
        heads = near is None or not near.whole or said.links is False or not e.has_ids(b)
        # clusters that are called as listed records have rows of these, as ends of links have not
        if not readings and (heads or e.distinct(b).isin(e.table[a]).mean() >= HALF):
            readings = read_memberships(e, a, b)
    if said.links is False or not _may_link(e, one, other):
        swapped = said.links is False and readings and readings[0].ids == (other,) and not near
        return [] if swapped and e.table[one].isin(e.table[other]).any() else readings
    if not readings:
        repeats = min(e.table[c].duplicated(keep=False).mean() for c in (one, other))
        if said.links is None and 0 < repeats <= REPEATED:
            either = f"{e.what}: rows of {one!r} and {other!r} are links of two records, or records of which"
            either += f" {repeats:.0%} are in two clusters: leave out a row of each, or give these clusters"
            raise DataError(f"{either} one id", make_pairs_remedy(e.what))
        return links.read(ColumnPair(one, other, "", True))
    one_list = LinkReader(replace(e, named=replace(said, one_list=True)))
    linked = one_list.read(ColumnPair(one, other, "", False))
    if len(e.table) < FEW:
        return [*readings, *linked]
    # clusters with the numbers of records join nearly all of these, if rows are taken for links
    largest = [r.partition().value_counts(normalize=True).iloc[0] for r in (readings[0], linked[0])]
    return readings if largest[0] <= HALF < largest[1] else [*readings, *linked]


def _may_link(e: ColumnFacts, one: Any, other: Any) -> bool:
    near, ids = e.near, (e.distinct(one), e.distinct(other))
    if e.named.links is not None:
        return e.named.links
    if e.sources or e.table[[one, other]].isna().any(axis=None):
        return False  # one source in a row is that of one record
    if near is not None and near.whole:
        return e.has_ids(one) and e.has_ids(other)
    if near is not None and not all(
        any(kind(key) == kind(x) and are_listed(key, x).any() for key in near.keys.values()) for x in ids
    ):
        return False
    return bool(ids[0].isin(ids[1]).any()) or (e.is_unique(one) and e.is_unique(other))


def _say_judging(e: ColumnFacts) -> tuple[str, list[Remedy]]:
    """Return what columns of scores or answers say of a table of records, with the remedy for pairs."""
    if not (judging := [c for c in e.usable if looks_like_answers(e.table[c])]):
        return "", []
    return f"; {head(judging)} looks like scores or answers about pairs", [make_pairs_remedy(e.what)]


def explain_columns(e: ColumnFacts) -> DataError:
    """Return the error for columns that have no reading."""
    columns, table, links = e.usable, f"the table of the {e.what}", LinkReader(e)
    if len(columns) < 2:
        hint = separator_hint(columns)
        if nested := [c for c in e.table if not has_plain_values(e.table[c])]:
            hint = f"; {head(nested)} has lists or other objects, and no ids"
        return DataError(f"{table} needs 2 columns; it has {head(columns) or 'none'}{hint}")
    shown = f"{table} has {head(columns, 20)}"
    if e.named.links is False and links.ends:
        said = f"{shown}: {head([links.ends[0].left, links.ends[0].right])} look like both records of a link"
        return DataError(said, remedies.COLUMNS, make_pairs_remedy(e.what))
    if e.named.links is True:
        # ids differ most, and both ends are of the same records
        likely = sorted(columns, key=lambda c: -len(e.distinct(c)))[:5]
        both = max(combinations(likely, 2), key=lambda x: e.distinct(x[0]).isin(e.distinct(x[1])).sum())
        left, right = next(((p.left, p.right) for p in links.pairs), [c for c in columns if c in both])
        blank = int(e.table[[left, right]].isna().any(axis=1).sum())
        if blank and (links.pairs or e.distinct(left).isin(e.distinct(right)).any()):
            said = f"{blank:,} of {len(e.table):,} rows have no id in {left!r} or {right!r}: leave them out"
            return DataError(f"the table of the {e.what}: {said}")
        ends = {left: "left", right: "right"}
        ends |= {c: f"other {c}" for c in e.table if c in ends.values() and c not in ends}
        way = Remedy("if these have", f"table.rename(columns={ends})", remedies.SCORED.option)
        return DataError(f"{shown}: it is not clear which have both records of a link", way)
    free = [c for c in columns if c not in (*e.clusters, *e.sources)]
    repeated = [c for c in free if not e.is_unique(c)] if e.clusters else []
    for source, id in ((a, b) for a in free for b in repeated if a != b and len(e.words(a)) > 1):
        if not e.table.duplicated([source, id]).any():  # what makes ids unique may be their source
            rename = f"table.rename(columns={{{source!r}: 'source'}})"
            way = Remedy("if that is their source", rename, f"FILE:{source}+{id},{e.clusters[0]}")
            return DataError(f"{e.what}: ids {id!r} repeat, and are unique inside {source!r}", way)
    record = _pick_among(e, free, e.clusters)
    others = e.clusters or [c for c in free if c != record]
    if record is not None and len(others) == 1:
        return explain_repeats(e.table[record], e.table[others[0]], e.what, bool(e.clusters))
    which, (more, ways) = "record" if e.clusters else e.groups, _say_judging(e)
    said = f"{table} has {len(columns)} columns, {head(columns, 20)}, and it is not clear which is the"
    return DataError(f"{said} {which}{more}", remedies.COLUMNS, *ways)
