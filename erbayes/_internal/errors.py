"""Errors, warnings, checks of arguments, and the text of values in messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from numbers import Real
from typing import Any

PACKAGE = (__file__.rpartition("_internal")[0],)
"""The folder of this package, whose lines warnings skip, so that they point to the line of the user."""


class Remedy(Enum):
    """Remedies that end errors and alarms: each names what to do in Python and, in brackets, in a shell."""

    MISSING = 'choose a policy to go on: missing="omit", "singleton" or "together" (--missing omit)'
    DIFFERING = 'missing="common" (--missing common) compares them on the records that they share'
    COLUMNS = "choose two, such as table[['record', 'cluster']] (--record, --cluster, --entity)"
    ORDER = (
        "if columns are in the other order, choose them: table[['record', 'cluster']] (--record, --cluster, "
        "--entity)"
    )
    SCANNED_COLUMNS = "name them: Columns(record=..., cluster=...) (--record, --cluster)"
    COVER = (
        "give these records clusters of their own in it or, if none of them is labelled, leave them out: "
        "frame=the second clustering"
    )
    LEAVE_OUT = 'leave them out: missing="omit" (--missing omit)'
    LINKS = "if rows are links between records, Clustering.from_pairs (--edges) makes clusters of them"
    ANSWERS = (
        "if rows are answers about pairs of records, erbayes.labels.read_stars makes entities of them, and "
        "of a list of true pairs erbayes.Clustering.from_pairs"
    )
    SCORE = (
        "choose the rows that are links and two columns, or score='column' and threshold=x (--left, --right, "
        "--score with --threshold)"
    )
    BLANK = (
        "fill them in, such as by clusters.fillna(records), or leave these rows out (erbayes clusters FILE "
        "--blank own or omit)"
    )
    WHICH_SCORE = "say which: score='match_probability' or 'match_weight' (--score)"
    AT_COLUMNS = "name the column of each: at={0.9: 'column', 0.5: 'another'} (--at 0.9=COLUMN,0.5=ANOTHER)"
    BARE_LINKS = "or, if each is a link, give the two columns of records alone (FILE:LEFT,RIGHT)"
    WHICH_LIST = (
        "list all records if they are of one list: records=ids (--records); if they are of two tables, give "
        "the table of each id in a column, such as source_l and source_r"
    )
    SCORED = (
        "choose two columns of ids and one of scores: table[['left', 'right', 'score']] (--left, --right, "
        "--score)"
    )
    REPLACE = "or replace=True (--replace), and they are lost"
    DECIDE = (
        "see Labels.problems (erbayes labels FOLDER); decide them in the sheets, or all at once by "
        "Labels.disputed() (--decide)"
    )
    DRAWN_FROM = (
        "to judge another prediction of the records, name the one drawn from: "
        "Labels.design(drawn_from=...) (--drawn-from)"
    )
    FRAME = "frame=that one (--frame) counts its records only"
    ANY_ID = "or, if a real cluster has it, Clustering.of(memberships, any_id=True) (--any-id)"
    SCANNED_ANY_ID = "or, if a real cluster has it, Columns(any_id=True) (--any-id)"
    MEMORY = "allow it more: DuckDB(memory_limit='8GB') (--memory-limit 8GB), or fewer threads in Python"
    UNLISTED = (
        "list all records, Clustering.from_pairs(pairs, records=ids) (--records); or, if records in no pair "
        'are known to be linked to nothing, missing="singleton" (--missing singleton)'
    )
    DATABASE = "scan it: erbayes.large.DatabaseTable(path, table) (--table NAME)"
    VIEW = (
        "if you trust the database, let it: DatabaseTable(path, table, reads_files=True) (or make a table of "
        "its view)"
    )
    DISTINCT = (
        "if repeats were dropped, the design is DistinctEntities(n) (--design distinct-entities --draws); if "
        "records were drawn without replacement, list the entity of every draw in draws= (--drawn), with "
        "population= (--population)"
    )
    MORE_RECORDS = (
        "if they were drawn from more records, pass their number, records=, or count each draw: repeats=True"
    )
    EVERY_DRAW = (
        "if repeats were dropped, list the unit of every draw in draws= (--drawn); if units were drawn "
        "without replacement, the design is KnownInclusion"
    )
    MORE = "label more draws (of a folder: erbayes draw --more N FOLDER)"
    LOOK = (
        "look whether the entities of five of these clusters go on in others, with at least a fifth as many "
        "records, and say of how many: Sample(..., looks=Looks(found, of=5)) (--looks FOUND/5)"
    )
    CAPPED = "a size model allows for it: engine='size model' (--engine size-model)"
    RECORDS = "or draw records instead of entities, which reach large ones (erbayes draw)"
    INFLUENCE = (
        "few units carry the estimate, see influence() (erbayes report), and report the jackknife's "
        "intervals as well"
    )
    ALL_RECORDS = (
        "give the prediction all records, by records=ids (--records) if it is made of edges, or count these "
        'as clusters of their own: missing="singleton" (--missing singleton)'
    )
    ATTRIBUTES = "name it: attributes=table (--attributes TABLE)"
    FEATURE = "name it: features={'span': ('year', 'range')} (--feature span=year:range)"
    BANDS = (
        "look at these answers again, or draw pairs of bands that end higher: "
        "pairs.draw_pairs(..., bands=[...]) (or of a file without the lowest scores)"
    )
    THRESHOLD = (
        "give the least score of a link, threshold=x (--threshold), or choose links alone, in two columns"
    )
    SIZE_MODEL = (
        "a size model needs UniformRecords, UniformClusters, DistinctEntities or BySize, or the part of a "
        "folder's draws that is of uniform records: Labels.uniform() (--design uniform-records)"
    )
    WORST_CASES = "ask more annotators, and report labels.worst_cases (--worst-cases) next to the estimates"


@dataclass(frozen=True, slots=True)
class Way:
    """A way to answer a question of an error: in words, with its argument and its option."""

    what: str
    argument: str
    option: str

    @property
    def value(self) -> str:
        """Return the sentence, which names both."""
        return f"{self.what}: {self.argument} ({self.option})"


def _end(what: str, remedies: Sequence[Remedy | Way]) -> str:
    """Return a message with its remedies."""
    return "; ".join([what, *(remedy.value for remedy in remedies)])


class DataError(ValueError):
    """Error for input that cannot be used.

    The message names the problem, its place, the number of cases and the remedy.

    Parameters
    ----------
    what : str
        The message without remedies. Control characters are escaped, so that no file can send commands to a
        terminal.
    *remedies : Remedy or Way
        They end the message. Both are attributes too.

    Examples
    --------
    >>> error = DataError("2 labelled records are missing", Remedy.LEAVE_OUT)
    >>> print(error)
    2 labelled records are missing; leave them out: missing="omit" (--missing omit)
    >>> error.remedies
    (<Remedy.LEAVE_OUT: 'leave them out: missing="omit" (--missing omit)'>,)
    """

    def __init__(self, what: str, *remedies: Remedy | Way) -> None:
        self.what, self.remedies = printable(what), remedies
        super().__init__(_end(self.what, remedies))


class NotIdentified(DataError):
    """Error for a quantity that a sample cannot estimate. The message names the reason."""


class Grade(Enum):
    """How much an alarm matters to those who quote a number."""

    NOTE = "note"
    """Numbers and intervals are right, and the sentence says how to read them."""
    CAUTION = "caution"
    """An interval may be too short. It can be quoted together with the sentence."""
    FAULT = "fault"
    """Numbers are wrong if the sentence is right, and no interval allows for it, so that none is quoted."""


class Sentence(str):
    """The sentence of an alarm, with its grade."""

    what: str
    grade: Grade
    remedies: tuple[Remedy, ...]

    def __new__(cls, what: str, grade: Grade, *remedies: Remedy) -> Sentence:
        sentence = super().__new__(cls, f"{_end(what, remedies)}." if remedies else what)
        sentence.what, sentence.grade, sentence.remedies = what, grade, remedies
        return sentence

    def __getnewargs__(self) -> tuple[Any, ...]:
        """Return the arguments that make it again, for copies and pickles."""
        return (self.what, self.grade, *self.remedies)

    def about(self, place: str) -> Sentence:
        """Return the sentence with `place` in front, such as the name of a domain or an engine."""
        return Sentence(f"{place}{self.what}", self.grade, *self.remedies)


def grade_of(sentence: str) -> Grade:
    """Return the grade of an alarm. That of a plain text, as engines of users may return, is a caution."""
    return sentence.grade if isinstance(sentence, Sentence) else Grade.CAUTION


class Alarm(UserWarning):
    """Warning about a sample whose estimates may be wrong. The message names the remedy.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings(record=True, action="always") as raised:
    ...     warnings.warn(Sentence("Out of balance.", Grade.FAULT), Alarm)
    >>> raised[0].message.grade
    <Grade.FAULT: 'fault'>
    """

    @property
    def grade(self) -> Grade:
        """Return the grade of the sentence; a caution if it is plain text."""
        return grade_of(self.args[0]) if self.args else Grade.CAUTION


def printable(text: str) -> str:
    """Return `text` with control characters escaped, except ends of lines and tabs."""
    return "".join(c if c.isprintable() or c in "\n\t" else repr(c)[1:-1] for c in text)


def head(values: Any, most: int = 3) -> str:
    """Return the first values, at most `most`, as text for a message."""
    import numpy as np  # not above, since messages are all that the shell needs to start

    shown = [repr(v.item() if isinstance(v, np.generic) else v) for v in list(values[:most])]
    return ", ".join(shown) + (", …" if len(values) > most else "")


def refuse_cases(
    cases: Any, are: str, then: str = "", *remedies: Remedy | Way, of: int | None = None
) -> None:
    """Refuse cases if there are any, by a message such as "3 of 20 records have no label, such as 'r7'".

    `of` is the number of all. A {n} in `are` is the place of the number, if it does not come first.
    """
    if len(cases):
        number = f"{len(cases):,}{'' if of is None else f' of {of:,}'}"
        # no format, since names of a user's own in the message may have braces
        said = are.replace("{n}", number) if "{n}" in are else f"{number} {are}, such as"
        raise DataError(f"{said} {head(cases)}{then}", *remedies)


def whole(value: Any, what: str, least: int = 1, most: int | None = None) -> int:
    """Return an integer from `least` to `most` as an int; `what` names it in the message."""
    numeric = isinstance(value, Real) and not isinstance(value, bool)
    if not numeric or value % 1 != 0 or value < least or (most is not None and value > most):
        ends = f"{least} or more" if most is None else f"{least:,} to {most:,}"
        raise DataError(f"{what} must be a whole number, {ends}, not {value!r}")
    return int(value)


def member[Choice: Enum](value: Any, of: type[Choice], argument: str) -> Choice:
    """Return the member of the enumeration `of` that `value` is or is a word for, and refuse all else."""
    try:
        return of(value)
    except ValueError as error:
        words = ", ".join(repr(choice.value) for choice in of)
        raise DataError(f"{argument} must be one of {words}, not {value!r}") from error


def need(value: Any, of: type, what: str) -> None:
    """Refuse anything but an object of the class `of`. `what` starts the message."""
    if not isinstance(value, of):
        kind = "None" if value is None else type(value).__name__
        raise DataError(f"{what}, not {f'the class {value.__name__}' if isinstance(value, type) else kind}")


def number(value: Any, what: str, allowed: Callable[[float], bool], must: str) -> float:
    """Return an allowed real number as a float; `what` names it and `must` says the condition."""
    try:
        fine = isinstance(value, Real) and not isinstance(value, bool) and allowed(float(value))
    except OverflowError:
        fine = False
    if not fine:
        raise DataError(f"{what} must {must}, not {head([value])}")
    return float(value)


def import_extra(module: str, what: str, extra: str) -> Any:
    """Import what an extra brings, and refuse to go on without it; `what` starts the message."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise DataError(f"{what}: pip install 'erbayes[{extra}]'") from error


def need_object(value: Any, method: str, what: str) -> None:
    """Refuse a value that is not an object with the method `method`. `what` starts the message."""
    if isinstance(value, type):
        raise DataError(f"{value.__name__} is a class: pass an object of it, {value.__name__}(...)")
    if not hasattr(value, method):
        raise DataError(f"{what}, not {value!r}")
