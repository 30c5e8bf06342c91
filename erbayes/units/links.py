"""Facts of columns, which of them have both ends of links, and which decides that a row is a link."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np
import pandas as pd

from .._internal import remedies
from .._internal.arrays import BoolArray
from .._internal.errors import DataError, Remedy, head
from .._internal.names import DISTANCE, JOIN, JUDGED, NAMES, PLAIN, RIVAL, find_known, plain
from .ids import are_listed, are_unique, kind
from .reading import SWEEP, ColumnPair, Named, Near, Reading, find_readable, pair_columns, read_numbers

HALF = 0.5
"""Share of the other file's ids that a column of records has; of its own, if that file has all records."""
HEAD, FIRST = 1000, 10_000
"""Rows that may refute what a column has, and that all of its values differ, before all rows are asked."""
WORDS = 6
"""Words up to which a column beside links may have answers."""
FEW_ROWS, FEW = 5, 20
"""Rows from which numbers 1, 2, 3 and so on count them, and from which shares of them count."""
PARTS = re.compile(r"[\s,;|]+")
"""What separates ids that one cell lists."""
Deciding = tuple[Any, float | None, BoolArray | None]
"""The column that decides, None if each row is a link, with the threshold of scores or the rows that are."""


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
        values: pd.Index = self._once("distinct", column, lambda x: pd.Index(x.dropna().unique()))
        return values

    def is_unique(self, column: Any) -> bool:
        """Return whether each value occurs once, and none is missing; a few rows refute most columns."""
        alone: bool = self._once("unique", column, lambda x: are_unique(x.head(FIRST)) and are_unique(x))
        return alone

    def is_constant(self, column: Any) -> bool:
        """Return whether all rows have one value."""
        return self.table[column].head(HEAD).nunique() < 2 and len(self.distinct(column)) == 1

    def numbers(self, column: Any) -> pd.Series | None:
        """Return a column as numbers, None if it has others; a few rows refute most columns."""
        few = self._once("first numbers", column, lambda x: read_numbers(x.head(HEAD)))
        numbers: pd.Series | None = None if few is None else self._once("numbers", column, read_numbers)
        return numbers

    def has_decimals(self, column: Any) -> bool:
        """Return whether a column has numbers of which some are not whole."""
        if (numbers := self.numbers(column)) is None:
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
        if (numbers := self.numbers(column)) is None:
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
        if (near := self.near) is None:
            return True
        ids = [near.keys[column]] if column in near.keys else [*near.keys.values(), *near.parts[1:]]
        # ids of another type say nothing here, and are refused later
        same = (x for x in ids if len(x) and self._kind(column) == kind(x))
        return any(self._share(column, x) >= HALF for x in same)

    def _kind(self, column: Any) -> str:
        return kind(self.distinct(column))

    def _share(self, column: Any, ids: pd.Index) -> float:
        """Return which share of the other file's ids a column has; of its own, if the file has all."""
        if self.near and self.near.whole:
            return float(are_listed(self.distinct(column), ids).mean()) if len(self.table) else 0.0
        x = self.table[column]  # in which few are looked for, without all of its distinct values
        return float(x[are_listed(pd.Index(x), ids)].nunique() / len(ids))

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
        if not known or self.groups != "cluster":
            return known
        rivals = (c for c in self.usable if c not in known and RIVAL.fullmatch(plain(c)))
        return known + [c for c in rivals if not self.is_unique(c) and not self.is_constant(c)]

    def find(self, column: Any, group: Any, ids: pd.Index) -> pd.Index:
        """Return the group, or the row if `group` is None, in which a unique column has each id."""
        value = np.arange(len(self.table)) if group is None else pd.factorize(self.table[group])[0]
        found: pd.Index = pd.Index(pd.Series(value, self.table[column]).reindex(ids).to_numpy())
        return found


def plain_word(word: Any) -> str:
    """Return a word of a cell in small letters and digits alone, a sign as it is; 1.0 is 1."""
    return plain(str(word).removesuffix(".0")) or str(word)


@dataclass(frozen=True, eq=False)
class LinkReader:
    """The readings of a table as links between records."""

    evidence: ColumnFacts

    @cached_property
    def pairs(self) -> list[ColumnPair]:
        """The pairs of columns with one attribute of both records."""
        return pair_columns(self.evidence.usable)

    @cached_property
    def origin(self) -> tuple[Any, ...]:
        """The columns of the sources of both ends."""
        if len(self.evidence.named.sources) == 2:
            return self.evidence.named.sources
        return next(((p.left, p.right) for p in self.pairs if p.stem in NAMES["source"]), ())

    @cached_property
    def ends(self) -> list[ColumnPair]:
        """The pairs of columns that can have both ends.

        Names of the other file come first, then its ids, then known names; else the pair with most distinct
        values, if equal ids have equal values in each other pair.
        """
        e, near = self.evidence, self.evidence.near
        if e.named.ends:
            left, right = e.named.ends
            return [ColumnPair(left, right, "", False)]
        pairs = [p for p in self.pairs if p.stem not in NAMES["source"]]
        full = [p for p in pairs if e.table[[p.left, p.right]].notna().all(axis=None)]
        names = {plain(c) for c in (near.keys if near else ()) if c is not None}
        shared = [p for p in full if p.stem in names]
        known = [p for p in full if p.stem in ("", *NAMES["record"])]
        # many are written by matchers, of which others are looked at only if those of known names have no ids
        listed = (shared, known, full) if near and near.whole else ()
        fits = ([p for p in some if e.has_ids(p.left) and e.has_ids(p.right)] for some in listed)
        full = next(filter(None, fits), full)
        full = [p for p in shared if p in full] or [p for p in known if p in full] or full
        if len(pairs) < 2 or not full or full[0] in [*shared, *known]:
            return full
        codes = {p: pd.factorize(self._stack(p))[0] for p in pairs}
        top = max(full, key=lambda p: codes[p].max())
        tells = (len(np.unique(codes[top] * len(x) + x)) == codes[top].max() + 1 for x in codes.values())
        return [top] if all(tells) else []

    def _stack(self, pair: ColumnPair) -> pd.Series:
        """Return the ids of both ends, joined with their source, below each other."""
        table, columns = self.evidence.table, (self.origin, (pair.left, pair.right))
        both = (pd.concat([table[c] for c in x], ignore_index=True).astype("str") for x in columns if x)
        stacked: pd.Series = reduce(lambda sources, ids: sources + JOIN + ids, both)
        return stacked

    def read(self, pair: ColumnPair) -> list[Reading]:
        """Return the readings of a pair of columns as both ends."""
        e, near, left, right = self.evidence, self.evidence.near, pair.left, pair.right
        if lists := split_lists(e, right, left):
            table = e.table.assign(**{right: pd.Series(lists, e.table.index)}).explode(right)
            return [Reading(table=table[table[right].notna()], ids=(left, right), what=e.what)]
        readings = [
            Reading(table=e.table, ids=(left, right), other=c, threshold=t, on=on, what=e.what)
            for c, t, on in self.decide(left, right)
        ]
        one, other = e.distinct(left), e.distinct(right)
        if self.origin:
            columns = zip(self.origin, (left, right), strict=True)
            ends = [e.table[[s, i]].set_axis(["s", "i"], axis=1) for s, i in columns]
            if (near and near.parts) or pd.concat(ends).drop_duplicates()["i"].duplicated().any():
                return [replace(reading, sources=self.origin) for reading in readings]
        elif near and near.parts and not any(are_listed(one, x).any() for x in near.keys.values()):
            raise DataError(f"{e.what}: records have sources, and links have none: from which is each end?")
        elif not e.named.one_list and not (near and near.whole) and one.isin(other).any():
            if pair.of_two or (e.table[left] == e.table[right]).any():
                said = f"{e.what}: {left!r} and {right!r} share ids, which are of one list, or of two tables"
                listed = Remedy("list all records if they are of one list", "records=ids", "--records FILE")
                in_column = "give the table of each id in a column, such as source_l and source_r"
                two = Remedy(f"or, if they are of two tables, {in_column}")
                raise DataError(f"{said} that both count from 0", listed, two)
        return readings

    def decide(self, left: Any, right: Any) -> list[Deciding]:
        """Return what can decide which rows are links; several may, and then are compared."""
        e, said, threshold = self.evidence, self.evidence.named, self.evidence.named.threshold
        if said.word is not None:
            return [(said.score, None, (e.table[said.score].astype("str") == said.word).to_numpy())]
        taken = {left, right, *e.sources, *(c for p in self.pairs for c in (p.left, p.right))}
        rest = [c for c in e.usable if c not in taken and plain(c) != "matchkey"]
        rest = [c for c in rest if plain(c) in NAMES["score"] or not e.counts_rows(c)]
        known = [said.score] if said.score is not None else find_known(rest, "score")
        scores = [c for c in known if e.numbers(c) is not None and e.answers(c) is None]
        if known and not scores and (threshold is not None or e.answers(known[0]) is None):
            scores = known[:1]  # words where scores should be are shown by whoever reads them
        answers = self._find_answers(rest, known, scores)
        sure = [said.score] if said.score is not None else find_known(answers, "answer")
        sure += [c for c in answers if c in known]
        loose = [c for c in rest if c not in (*known, *answers) and self._could_judge(c)]
        if threshold is not None and not scores and not answers:
            scores = [c for c in loose if e.numbers(c) is not None]
            if len(scores) != 1 or not e.has_decimals(scores[0]):
                raise self._ask_for_scores(loose, rest, left, right)
        elif loose and not scores and not sure and not said.ends:
            for column in (c for c in find_known(rest, "answer") if e.numbers(c) is None):
                words = e.distinct(column)
                other = [w for w in words if plain_word(w) not in frozenset.union(*PLAIN, *JUDGED)]
                said_so = f"{e.what}: answers {column!r} must be 1 or 0, yes or no, not such as"
                raise DataError(f"{said_so} {head(other or words)}", self._name(column, left, right))
            raise DataError(
                f"{e.what}: is each row a link, or is {head([*loose, *answers])} a score or an answer?",
                *(self._name(c, left, right) for c in [*loose, *answers][:2]),
                Remedy("or, if each is", f"table[[{left!r}, {right!r}]]", f"FILE:{left},{right} --edges"),
            )
        if not scores:
            return [(c, None, e.answers(c)) for c in answers] or [(None, None, None)]
        if threshold is None:
            said_so = f"{e.what}: without a threshold, scores {scores[0]!r} of any size would be links"
            raise DataError(said_so, remedies.THRESHOLD)
        if DISTANCE.fullmatch(plain(scores[0])):
            said_so = f"{e.what}: {scores[0]!r} is a distance by its name, and scores are larger for likelier"
            column, option = f"table.assign(score=-table[{scores[0]!r}])", f"FILE:{left},{right},score@-X"
            raise DataError(f"{said_so} links", Remedy("take its negative", column, option))
        return [(scores[0], threshold, None)] if threshold == SWEEP else self._cut(scores, answers, threshold)

    def _find_answers(self, rest: Sequence[Any], known: Sequence[Any], scores: Sequence[Any]) -> list[Any]:
        """Return the columns with answers: words for yes and no by a known name, or words of judgement."""
        e, named = self.evidence, find_known(rest, "answer")
        families = {c: () if c in known or c in named else (JUDGED,) for c in rest if c not in scores}
        found = [c for c, words in families.items() if e.answers(c, *words) is not None]
        return [c for c in found if c in known or len(e.words(c)) > 1 or c in named]

    def _could_judge(self, column: Any) -> bool:
        """Return whether a column could say which rows are links: numbers that are no key, or few words."""
        e = self.evidence
        key = len(e.table) >= FEW and e.is_unique(column) and not e.has_decimals(column)
        differ = e.numbers(column) is not None and len(e.distinct(column)) > 1
        return (differ and not key) or len(e.words(column)) > 1

    def _cut(self, scores: Sequence[Any], answers: Sequence[Any], threshold: float) -> list[Deciding]:
        """Return the scores whose threshold it can be, and answers beside them."""
        e = self.evidence
        numbers = {c: e.numbers(c) for c in scores}
        above = [c for c, x in numbers.items() if x is not None and x.max() > 1]
        if len(scores) == 1 and (x := numbers[scores[0]]) is not None and len(x) > 1:
            if 0 < threshold <= 1 and x.min() >= threshold and x.max() > 1:
                said = f"{e.what}: scores {scores[0]!r} lie between {x.min():g} and {x.max():g}, all above"
                said += f" {threshold:g}: is that a share, and scores are not?"
                raise DataError(said, remedies.THRESHOLD)
        # a threshold above 1 is none of probabilities, and one up to 1 may be of either
        fitting = above if threshold > 1 and above else sorted(scores, key=lambda c: c in above)
        found: list[Deciding] = [(c, threshold, None) for c in fitting]
        x = numbers[fitting[0]]
        if x is None or (e.named.ends and e.named.score is not None):
            return found
        linked = (x >= threshold).to_numpy()
        both = ((c, e.answers(c)) for c in answers if c not in scores)
        return found + [(c, None, linked & yes) for c, yes in both if yes is not None]

    def _ask_for_scores(self, loose: Sequence[Any], rest: Sequence[Any], left: Any, right: Any) -> DataError:
        e = self.evidence
        if e.named.threshold == SWEEP:
            said = f"the table of the {e.what} has {head(e.usable, 20)}: it is not clear which has the scores"
            ways = [Remedy("say which", f"score={c!r}", f"FILE:{left},{right},{c}") for c in loose[:3]]
        else:
            said = f"{e.what}: a threshold of {e.named.threshold:g} needs the column of scores; there is"
            said += f" {head(rest, 20) or 'none'}"
            ways = [self._name(c, left, right) for c in loose[:3]]
        return DataError(said, *(ways or [remedies.SCORED]))

    def _name(self, column: Any, left: Any, right: Any) -> Remedy:
        """Return how to say that a column decides which rows are links."""
        e, file = self.evidence, f"FILE:{left},{right},{column}"
        if e.answers(column) is not None:
            return Remedy("say which", f"score={column!r}", file)
        if e.numbers(column) is not None or not e.words(column):
            least = "say which, with the least score of a link"
            return Remedy(least, f"score={column!r}, threshold=x", f"{file}@X")
        word = str(e.distinct(column)[0])
        chosen = f"table[table[{column!r}] == {word!r}][[{left!r}, {right!r}]]"
        return Remedy("say which word is a link", chosen, f"{file}={word}")


def split_lists(e: ColumnFacts, cells: Any, records: Any) -> list[list[str]]:
    """Return the ids of each cell if cells list ids of another column's records."""
    column = e.table[cells]
    some = [x for x in column.head(HEAD) if isinstance(x, str) and PARTS.search(x.strip())]
    if not some or kind(ids := e.distinct(records)) != "string" or pd.Index(some).isin(ids).any():
        return []
    parts = pd.Index([part for x in some for part in PARTS.split(x.strip())])
    if parts.isin(ids).mean() < HALF:
        return []
    return [PARTS.split(x.strip()) if isinstance(x, str) else [] for x in column]
