"""Results as people read them: tables that print, that draw themselves and go to pandas, and sentences."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from .._internal import digits
from .._internal.arrays import FloatArray
from .._internal.digits import shown
from .._internal.errors import DataError, Grade, Sentence
from .._internal.names import Nearest
from .definitions import ALL, UNIT, Metric, Support, pairwise_precision, pairwise_recall, resolve_metrics
from .intervals import Kind, compute_end_errors

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from plotly.graph_objects import Figure

    from .estimates import Estimates


class Tabled(Nearest, ABC):
    """A result that prints as its table, in consoles and notebooks (see `erbayes._internal.digits`).

    Columns and conversions of its table are its own: `result["estimate"]`, `result.to_csv("found.csv")`.
    """

    __slots__ = ()
    explored: ClassVar[str] = "table"

    @abstractmethod
    def table(self) -> pd.DataFrame:
        """Return the result as a table, with all digits."""

    def to_frame(self, *chosen: Any, **settings: Any) -> pd.DataFrame:
        """Return `table`, with its arguments, under the name that it has in pandas."""
        return self.table(*chosen, **settings)

    def summary(self, *chosen: Any, **settings: Any) -> pd.DataFrame:
        """Return `table`, with its arguments such as `level`, under the name that it has in ArviZ."""
        return self.table(*chosen, **settings)

    def explore(self, *chosen: Any, **settings: Any) -> Figure:
        """Show the table of `explored`, with its arguments, by `erbayes.plots.explore`."""
        shown = getattr(self, self.explored)(*chosen, **settings)
        figure: Figure = import_module("erbayes.plots").explore(shown)
        return figure

    if not TYPE_CHECKING:  # since those of results with rows by name return other types

        def __getitem__(self, name: Metric | str) -> pd.Series | pd.DataFrame:
            """Return a column of `table`, or what it has of a metric."""
            table = self.table()
            if isinstance(name, str) and name in table:
                return table[name]
            with suppress(ValueError):  # as a DataError is
                metrics = [metric.name for metric in resolve_metrics(name)]
                if table.index.isin(metrics).any():
                    return table.loc[metrics if len(metrics) > 1 else metrics[0]]
                if "metric" in table and len(rows := table[table["metric"].isin(metrics)]):
                    return rows.reset_index(drop=True)
            raise DataError(f"no column {name!r}; the table has {', '.join(map(str, table))}")

        def __contains__(self, name: object) -> bool:
            """Return True if there is something in brackets under this name."""
            with suppress(ValueError):  # as a DataError is
                self[name]
                return True
            return False

    def _choose_printed(self) -> tuple[str, pd.DataFrame]:
        """Return a heading, which says the level, and the part of the table that is printed under it."""
        heading, table = type(self).__name__, self.table()
        if "level" in table and len(table):
            heading += f" with {100 * table['level'].iloc[0]:g} % intervals"
        return heading, table.drop(columns=["df", "level"], errors="ignore")

    def __repr__(self) -> str:
        heading, table = self._choose_printed()
        return f"{heading}\n{shown(table).to_string(max_rows=60)}"

    def _repr_html_(self) -> str:
        heading, table = self._choose_printed()
        return f"{heading}{shown(table).to_html(max_rows=60)}"


class Pictured(Tabled):
    """A result that draws itself, by the function of `erbayes.plots` that draws a `picture`."""

    __slots__ = ()
    picture: ClassVar[str]

    def plot(self, *chosen: Any, **settings: Any) -> Axes:
        """Draw the result, with arguments of its function in `erbayes.plots`."""
        # imported here, since pictures lie above results, and matplotlib is an extra
        draw = getattr(import_module("erbayes.plots"), f"draw_{self.picture}")
        axes: Axes = draw(self, *chosen, **settings)
        return axes


def reason_column(reasons: Iterable[str]) -> dict[str, list[str]]:
    """Return a table column of reasons, or none if all of them are empty."""
    column = list(reasons)
    return {"reason": column} if any(column) else {}


def tabulate(result: Estimates, level: float, kind: Kind | None, settled: bool, errors: bool) -> pd.DataFrame:
    """Return the table of estimates (see `Estimates.table`)."""
    bounds, shape = result.interval(level, kind), result.estimate.shape
    labels = np.broadcast_to([result.name_kind(j, kind) for j in range(len(result))], shape)
    index = pd.Index(result.names, name="metric")
    if len(shape) > 1:
        index = pd.MultiIndex.from_product([*map(range, shape[:-1]), result.names])
    columns = {"estimate": result.estimate}
    if result.values is None:
        columns |= {"se": result.sd, "df": np.broadcast_to(result.df, shape)}
    else:
        columns["sd"] = result.sd
    columns |= {"lower": bounds[..., 0], "upper": bounds[..., 1], "level": np.full(shape, level)}
    columns["kind"] = np.where(np.isnan(bounds[..., 0]), "none", labels)
    if result.cases is not None:
        columns |= dict(zip(("worst", "best"), result.cases.find_ends(bounds, level).T, strict=True))
    if settled:
        ends = np.clip(result.unseen.certain, *np.transpose(result.support)[..., None])
        columns |= {"least": ends[..., 0], "most": ends[..., 1]}
    reasons = np.broadcast_to(result.reasons, shape).ravel()
    table = pd.DataFrame({k: x.ravel() for k, x in columns.items()} | reason_column(reasons), index=index)
    if errors:
        table[["lower_mcse", "upper_mcse"]] = compute_end_errors(result, level, kind or result.kind)
    return table


ROUNDING = 1e-9
"""Length of an interval, or distance from an end of the range, below which there is rounding only."""
IN_WORDS = {
    pairwise_precision.name: "Of the links that the matcher made, {} are right",
    pairwise_recall.name: "Of the links that are truly there, the matcher found {}",
}
"""Sentences by metric. The first metrics of any other result are named as tables name them."""
_PRECISE, _FOUND = "{} of the links that the matcher made are right", "{} of the true links are found"
NONE_SHOWN = {
    (pairwise_precision.name, True): ("showed a false link", _PRECISE),
    (pairwise_precision.name, False): ("showed a right link", _PRECISE),
    (pairwise_recall.name, True): ("showed a missed link", _FOUND),
    (pairwise_recall.name, False): ("showed a link that was found", _FOUND),
}
"""What no draw showed and what an interval says of it, by metric and whether it is at its upper end."""
UNDECIDED = 0.1
"""Share of undecided answers from which estimates depend on what nobody knows of them. If .11 of 300 answers
about pairs were undecided, of wrong pairs more often, .94 of intervals covered the truth, and .50 if .33
were. Of draws, .53 of intervals of recall did if .22 were undecided."""
OTHER_SHOWN = {True: ("lowers {name}", "{name} is {}"), False: ("raises {name}", "{name} is {}")}
"""The same for any other metric."""


def say_undecided(said: str, share: float, likeness: str) -> Sentence:
    """Return the sentence about undecided answers, a fault from a tenth of them on.

    `said`: how many there are; `likeness`: what estimates take them to be like.
    """
    if share < UNDECIDED:
        return Sentence(f"{said}: {likeness} stand for them", Grade.NOTE)
    why = f"{said}, and nothing shows that {likeness} are like them"
    return Sentence(f"{why}: quote the range from worst to best", Grade.FAULT)


def describe_range(name: str, support: Support, ends: FloatArray, share: float) -> str:
    """Return the sentence to quote of a metric whose undecided answers, a `share`, may decide it."""
    if np.isnan(ends).any():
        return (
            f"Do not quote {name}: {share:.0%} of the draws are undecided, and nothing bounds what they are."
        )
    written = _choose_format(support, float(ends.mean()), float(np.ptp(ends)) / 4)
    between = f"between {written(float(ends.min()))} and {written(float(ends.max()))}"
    return (
        f"{IN_WORDS.get(name, f'{name} is {{}}').format(between)}, as {share:.0%} of the draws are undecided."
    )


def choose_quoted(names: Sequence[str]) -> list[str]:
    """Return the metrics that sentences are about: precision and recall, or else the first two."""
    return [name for name in names if name in IN_WORDS] or list(names[:2])


def describe_quoted(result: Estimates, bounds: FloatArray, level: float, draws: str) -> list[str]:
    """Return a sentence for each quoted metric with its interval, (k, 2); no `draws` show some errors."""
    percent, sentences = f"{100 * level:g}", list[str]()
    cases = result.cases
    for name in choose_quoted(result.names):
        j = result.names.index(name)
        if why := result.reasons[j]:
            sentences.append(f"There is no estimate of {name}: {why}.")
            continue
        if cases is not None and cases.decide:
            ends = cases.find_ends(bounds, level)[j]
            sentences.append(describe_range(name, result.support[j], ends, cases.share))
            continue
        named = any("% interval" in sentence for sentence in sentences)
        sentences.append(describe_metric(result, j, bounds[j], percent, draws, named))
    return sentences


def name_in_words(name: str, support: Support) -> str:
    """Return the name of a metric, or of a difference, which has lower values than the metric can have."""
    least = next((metric.support[0] for metric in ALL if metric.name == name), support[0])
    return f"the difference in {name}" if support[0] < least else name


def describe_metric(result: Estimates, j: int, ends: FloatArray, level: str, draws: str, named: bool) -> str:
    """Return the sentence about metric j, with what is certain of it if its interval, (2,), was cut there.

    `draws`: those none of which shows an error; `named`: whether an earlier sentence has named the `level`.
    """
    support, census = result.support[j], result.census
    name = name_in_words(result.names[j], support)
    estimate, sd = float(result.estimate[j]), float(result.sd[j])
    bounds, certain = ends.tolist(), result.unseen.certain[j].tolist()
    if np.ptp(certain) <= ROUNDING and not census:
        return f"If the labels are right, {name} is {_choose_format(support, estimate, 5e-4)(estimate)}."
    if np.ptp(bounds) <= ROUNDING and not census:
        return f"Do not quote {name}: its interval has no length, since no draw differs."
    if sd == 0 and not census and is_at_an_end(estimate, support):
        said = describe_flawless(name, support, estimate, bounds, level, draws)
    else:
        said = describe_estimate(name, support, estimate, sd, bounds, "" if named else level, census)
    cut = any(end == bound != most for end, bound, most in zip(certain, bounds, support, strict=True))
    if census or not cut or not np.isfinite(certain).all():
        return said
    low, high = map(_choose_format(support, estimate, float(np.ptp(certain)) / 2), certain)
    lies = f"{name} lies between {low} and {high}, whatever the other records are"
    return f"{said} If the labels are right, {lies}."


def describe_estimate(
    name: str, support: Support, estimate: float, sd: float, bounds: Sequence[float], level: str, census: bool
) -> str:
    """Return a sentence with an estimate and its interval, whose `level` is named if it is not empty."""
    written = _choose_format(support, estimate, sd)
    within = f"{level} % interval " * bool(level) + " to ".join(map(written, bounds))
    unknown = "no interval" + ", since a single draw has no variance" * bool(np.isnan(sd))
    known = unknown if np.isnan(bounds[0]) else within
    precision = "no sampling error, since every unit is labelled" if census else known
    sentence = IN_WORDS.get(name, f"The estimate of {name} is {{}}")
    return f"{sentence.format(written(estimate))} ({precision})."


def is_at_an_end(estimate: float, support: Support) -> bool:
    """Return whether an estimate is an end of its range up to rounding, as without an error in the sample."""
    return bool(np.isclose(estimate, support, rtol=0, atol=ROUNDING).any())


def describe_flawless(
    name: str, support: Support, estimate: float, bounds: Sequence[float], level: str, draws: str
) -> str:
    """Return the sentence about a metric at an end of its range, since none of the `draws` shows an error."""
    best = bool(np.isclose(estimate, support[1], rtol=0, atol=ROUNDING))
    end = float(bounds[0] if best else bounds[1])
    written = _format_end(support, end, float(np.ptp(bounds)) / 2, best)
    shown, bound = NONE_SHOWN.get((name, best), OTHER_SHOWN[best])
    what = bound.format(f"{'at least' if best else 'at most'} {written}", name=name)
    return f"{draws} {shown.format(name=name)}; with {level} % confidence {what}."


def describe_difference(
    of: str, old: str, new: str, bounds: Sequence[float], level: str, said: Mapping[str, str]
) -> str:
    """Return a sentence about the difference of a metric, new less old; `said` has its numbers as text."""
    low, high = bounds
    if np.isnan(low):
        return f"In {of}, the difference of {new} and {old} has no interval: {said.get('reason')}."
    within = f"{level} % interval {said['lower']} to {said['upper']}"
    if low <= 0 <= high:
        return f"In {of}, {new} and {old} cannot be told apart (difference {said['estimate']}, {within})."
    way, size = "above" if low > 0 else "below", said["estimate"].removeprefix("-")
    return f"In {of}, {new} is {way} {old} by {size} ({within})."


def describe_faults(faults: int, what: str) -> str:
    """Return the sentence in place of numbers that are not to be quoted, because of faults."""
    name = "a fault" if faults == 1 else f"{faults} faults"
    return f"Do not quote {what} yet: {name} must be mended first."


def _format_end(support: Support, end: float, error: float, best: bool) -> str:
    """Return an end of an interval with the digits of the table, a share as a percentage."""
    if support != UNIT:
        return digits.format_number(end, digits.decimals(end, error))
    places = max(digits.decimals(1.0, error) - 2, 0)
    # a lower end of 99.96 % must not read as 100 %
    while places < digits.MOST and round(100 * end, places) == (100 if best else 0):
        places += 1
    return f"{100 * end:.{places}f} %"


def _choose_format(support: Support, value: float, error: float) -> Callable[[float], str]:
    """Return a function that writes numbers of a metric in a sentence, shares as percentages."""
    if support != UNIT:
        return lambda x: digits.format_number(x, digits.decimals(value, error))
    places = max(digits.decimals(100 * value, 100 * error) - 1, 0)
    while places < 2 and 0 < value < 1 and round(100 * value, places) in (0, 100):
        places += 1
    return lambda x: f"{100 * x:.{places}f} %"
