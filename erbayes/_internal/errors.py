"""What users are told: errors, warnings, checks of arguments with the text of values, and progress."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from numbers import Real
from typing import Any

PACKAGE = (__file__.rpartition("_internal")[0],)
"""The folder of this package, whose lines warnings skip, so that they point to the line of the user."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """A way to end an error or an alarm: in words, with its argument in Python and its option in a shell."""

    what: str
    argument: str = ""
    option: str = ""

    @property
    def value(self) -> str:
        """Return the sentence, which names both."""
        argument = f": {self.argument}" if self.argument else ""
        return f"{self.what}{argument}{f' ({self.option})' if self.option else ''}"


def _end(what: str, remedies: Sequence[Remedy]) -> str:
    """Return a message with its remedies, which begin a sentence after a question."""
    told = "; ".join(remedy.value for remedy in remedies)
    asks = what.endswith("?") and told
    return f"{what} {told[0].upper()}{told[1:]}" if asks else f"{what}; {told}" if told else what


class DataError(ValueError):
    """Error for input that cannot be used.

    The message names the problem, its place, the number of cases and the remedy.

    Parameters
    ----------
    what : str
        The message without remedies. Control characters are escaped: no file can send commands to a terminal.
    *remedies : Remedy
        They end the message. Both are attributes too.

    Examples
    --------
    >>> leave_out = Remedy("leave them out", 'missing="omit"', "--missing omit")
    >>> error = DataError("2 labelled records are missing", leave_out)
    >>> print(error)
    2 labelled records are missing; leave them out: missing="omit" (--missing omit)
    >>> error.remedies[0].option
    '--missing omit'
    """

    def __init__(self, what: str, *remedies: Remedy) -> None:
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


def warn_of(alarms: Iterable[str]) -> None:
    """Warn of alarms about a result at the line of the user. Notes stand with the result alone."""
    for alarm in alarms:
        if grade_of(alarm) is not Grade.NOTE:
            warnings.warn(alarm, Alarm, skip_file_prefixes=PACKAGE)


def printable(text: str) -> str:
    """Return `text` with control characters escaped, except ends of lines and tabs."""
    return "".join(c if c.isprintable() or c in "\n\t" else repr(c)[1:-1] for c in text)


def head(values: Any, most: int = 3) -> str:
    """Return the first values, at most `most`, as text for a message."""
    import numpy as np  # not above, since messages are all that the shell needs to start

    shown = [repr(v.item() if isinstance(v, np.generic) else v) for v in list(values[:most])]
    return ", ".join(shown) + (", …" if len(values) > most else "")


def refuse_cases(cases: Any, are: str, then: str = "", *remedies: Remedy, of: int | None = None) -> None:
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
        said = repr(value)
        raise DataError(f"{what}, not {said if len(said) < 80 else type(value).__name__}")


def show_progress[Item](items: Iterable[Item], total: int, what: str, show: bool = True) -> Iterator[Item]:
    """Yield `items`, and show a bar labelled `what` on standard error if they take over two seconds."""
    start, advance = time.monotonic(), None
    with ExitStack() as stack:
        for done, item in enumerate(items, 1):
            yield item
            elapsed = time.monotonic() - start
            # a bar that is gone at once would only flicker
            if show and advance is None and elapsed > 0.2 and elapsed / done * total > 2:
                from rich.console import Console
                from rich.progress import Progress

                bar = stack.enter_context(Progress(console=Console(stderr=True), transient=True))
                task = bar.add_task(what, total=total, completed=done)
                advance = bar.advance
            elif advance is not None:
                advance(task)
