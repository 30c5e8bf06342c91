"""Sensitivity to errors of labels: intervals that allow for them, grids of rates, and tipping points.

Source of the analysis: Lash, Fox and Fink (2009), Applying Quantitative Bias Analysis to Epidemiologic Data.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from .._internal.arrays import FloatArray, Seed, draw_seed, generator
from .._internal.errors import (
    Alarm,
    DataError,
    Grade,
    NotIdentified,
    Sentence,
    need,
    need_object,
    number,
    show_progress,
    warn_of,
    whole,
)
from ..design.changes import find_responding, set_odds
from ..labels.annotators import RATES, SHARES, Annotator, check_rates
from ..labels.decisions import Decisions, class_additions, impute
from ..large.files import lies_elsewhere
from ..metrics.definitions import Metric, resolve_metric
from ..metrics.estimates import Estimates
from ..metrics.tables import Pictured, choose_quoted
from .pooling import pool

SPURIOUS = 0.2
"""Share of the stated additions for which labels have no piece, from which an alarm is raised."""
MOST = 0.99
"""Largest share of errors when rates are multiplied."""
FIRST, FURTHER, LAST = 40, 20, 200
"""Imputations that are made at first, in each step after that, and at most."""
PRECISE = 1 / 40
"""Monte Carlo error of an end, in widths of its interval, at which imputations are enough."""
FARTHEST = 3.0
"""Multiple of rates up to which a tipping point is looked for."""
TRIES = 20
"""Answers by which it is found at most; about six are enough."""
NEAR = 0.25
"""Distance from a tipping point, in shares of it, over which the slope of its error is measured."""
PHRASES = {
    "removed": ("strike out {} of the true records that they see", "strike out nothing"),
    "missed": ("miss {} of the other clusters with records of an entity", "miss nothing"),
    "kept": ("keep {} of the foreign records that they see", "keep nothing foreign"),
    "added": ("add {} namesakes per entity", "add nothing"),
}
"""What annotators do at each rate, and at a rate of 0."""
DRAWN = {"both": "both errors", "random": "drawing alone", "systematic": "labels alone"}
"""Answers of a picture, the one to quote first, by the names in its legend."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WithErrors(Pictured):
    """An answer with three intervals, each in the answer's own type, as `with_errors` returns it.

    `random`: the answer for the labels as they are, with the error of drawing alone; `systematic`: with the
    error of labels alone; `both`; `rates` (imputations, rates): the rates that were drawn; `source`: where
    they come from; `answer`, `given`, `design`, `seed`: what is answered anew from imputed labels.
    """

    picture: ClassVar[str] = "forest"
    random: Any
    systematic: Any
    both: Any
    rates: pd.DataFrame
    source: str
    answer: Callable[[Any, Any], Any]
    given: Decisions
    design: Any
    seed: int

    def run(self, rates: pd.DataFrame, first: int = 0) -> list[Any]:
        """Return the answers from labels that are imputed at each row of rates, with a seed for each row."""
        if (rates["unsure"] != 1).any() and find_responding(self.design) is None:
            raise DataError("unsure is about undecided draws, and the design, such as Responding, has none")
        answers = []
        for j, row in enumerate(rates.to_dict("records"), first):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", Alarm)  # those of the sample are raised once, as it is
                    labels = impute(self.given, row, np.random.default_rng([self.seed, j]))
                    design = self.design if row["unsure"] == 1 else set_odds(self.design, row["unsure"])
                    answers.append(self.answer(labels, design))
            except NotIdentified as why:
                told = ", ".join(f"{name} {value:.3g}" for name, value in row.items())
                raise NotIdentified(f"if errors of labels are undone at rates {told}: {why}") from why
        return answers

    def at(self, rates: pd.DataFrame, source: str, answers: Sequence[Any] = ()) -> WithErrors:
        """Return the same for other rates, to whose first rows there are `answers`."""
        answers = [*answers, *self.run(rates.iloc[len(answers) :], len(answers))]
        systematic, both = pool(answers, self.random)
        return replace(self, systematic=systematic, both=both, rates=rates, source=source)

    def table(self, *given: Any, **settings: Any) -> pd.DataFrame:
        """Return the three tables of the answer below one another, with its settings, such as `level`.

        The column `mcse` is the Monte Carlo standard error of an end of the interval, by M imputations:
        √(B/M + 2 B²/((M - 1) T)), for the variance B between them and T in all.
        """
        names = ("random", "systematic", "both")
        tables = {name: getattr(self, name).table(*given, **settings).reset_index() for name in names}
        M, se = len(self.rates), {name: _find_se(table) for name, table in tables.items()}
        B = se["systematic"] ** 2 / (1 + 1 / M)
        for name, own, T in (("random", 0 * B, B), ("systematic", B, B), ("both", B, se["both"] ** 2)):
            share = np.divide(own, T, out=np.zeros_like(B), where=T > 0)
            tables[name]["mcse"] = np.sqrt(own / M + 2 * own * share / (M - 1))
        table: pd.DataFrame = pd.concat(tables, names=["error"]).reset_index(level=0)
        return table.drop(columns="index", errors="ignore").reset_index(drop=True)

    def _quoted(self, *given: Any, **settings: Any) -> pd.DataFrame:
        """Return the rows of the table that allow for both errors, of metrics that are quoted."""
        table = self.table(*given, **settings)
        table = table[table["error"] == "both"].dropna(subset=["lower", "mcse"])
        names = choose_quoted([*table["metric"].unique()]) if "metric" in table else []
        return table[table["metric"].isin(names)] if names else table

    @property
    def settled(self) -> bool:
        """Whether the Monte Carlo error of ends that are quoted is at most `PRECISE` of the width."""
        table = self._quoted()
        return bool((table["mcse"] <= PRECISE * (table["upper"] - table["lower"])).all())

    def estimates_by_name(self) -> dict[str, Estimates]:
        """Return the answers with each error, if they are estimates."""
        if not isinstance(self.both, Estimates):
            raise DataError("a picture of all errors is of estimates: draw one answer, as by both.plot()")
        return {name: getattr(self, field) for field, name in DRAWN.items()}

    def _choose_printed(self) -> tuple[str, pd.DataFrame]:
        return f"If annotators {self.describe_rates()}", super()._choose_printed()[1]

    def describe_rates(self) -> str:
        """Return what annotators are taken to do, with the mean and the middle 95 % of each rate."""
        said = []
        for name, (phrase, nothing) in PHRASES.items():
            x = self.rates[name].to_numpy()
            values = (x.mean(), *np.quantile(x, [0.025, 0.975]))
            form = ".2g" if name not in SHARES else ".0%" if values[1] >= 0.01 else ".1%"
            mean, low, high = (f"{value:{form}}" for value in values)
            between = mean if low == high else f"{mean} ({low} to {high})"
            said.append(phrase.format(between) if x.any() else nothing)
        if (odds := self.rates["unsure"].mean()) != 1:
            said.append(f"leave draws undecided that err {odds:.2g} times as often as the others")
        return f"{', '.join(said[:-1])} and {said[-1]} (by {self.source})"

    def sentence(self, *given: Any, **settings: Any) -> str:
        """Return the answer in words, with its settings, what it assumes and what drawing alone would say."""
        of_both, of_draws = (_speak(answer, given, settings) for answer in (self.both, self.random))
        said = [f"If annotators {self.describe_rates()}: {of_both or 'see the table.'}"]
        if of_draws:
            said.append(f"By the error of drawing alone: {of_draws}")
        table = self._quoted(*given, **settings)
        if (table["mcse"] > _find_se(table) / 20).any():  # which two digits of the standard error show
            said.append(
                f"{len(self.rates)} imputations leave an error of {table['mcse'].max():.1g} in these ends."
            )
        return " ".join(said)

    def times(self, factor: float) -> WithErrors:
        """Return the same with all rates multiplied, such as by ½ and 2 for priors that may be wrong."""
        factor = number(factor, "factor", lambda x: 0 <= x < np.inf, "be a finite number of 0 or more")
        return self.at(multiply(self.rates, factor), f"{factor:g} times the rates of {self.source}")


def multiply(rates: pd.DataFrame, factor: float, names: Sequence[str] = RATES) -> pd.DataFrame:
    """Return rates of which those with these names are multiplied, shares up to `MOST`."""
    rates = rates.assign(**{name: rates[name] * factor for name in names})
    return rates.assign(**{name: rates[name].clip(upper=MOST) for name in SHARES})


def _find_se(table: pd.DataFrame) -> FloatArray:
    """Return standard errors of the rows of a table, or a quarter of the interval where it has none."""
    return (table["se"] if "se" in table else (table["upper"] - table["lower"]) / 4).to_numpy(dtype=float)


def _speak(answer: Any, given: Any, settings: Any) -> str:
    if hasattr(answer, "sentence"):
        return str(answer.sentence(*given, **settings))
    return " ".join(answer.sentences(*given, **settings)) if hasattr(answer, "sentences") else ""


def with_errors(
    answer: Callable[[Any, Any], Any],
    labels: Any,
    design: Any,
    shown: Any,
    annotator: Annotator | pd.DataFrame,
    *,
    starts: Any = None,
    imputations: int | None = None,
    rng: Seed = None,
) -> WithErrors:
    """Answer any question with intervals that allow for errors of labels, which annotators have made.

    Errors are undone in the labels: true labels that may be behind those given are drawn, for rates that are
    drawn from their priors. The answer is computed from each, and Rubin's rules pool the answers. The data do
    not correct the rates: wide priors are safe, and too low ones are not.

    Parameters
    ----------
    answer : callable
        A call of the package as a function of labels and design, such as `partial(eb.estimate, prediction)`,
        `partial(eb.compare, {"old": old, "new": new})` or `lambda labels, design: eb.by_domain(...)`.
    labels : memberships
    design : Design
    shown : memberships, or a mapping of names to several
        The prediction from whose clusters annotators started. In a comparison all predictions, that one
        first: annotators favour it, and the imputation has to look at the others too.
    annotator : Annotator or DataFrame
        Rates of errors. A table has a row per imputation and columns removed, missed, kept, added and unsure
        (or some of them), such as correlated draws or a posterior.
    starts : sequence of record ids, optional
        The records from which entities were labelled, as those drawn. By default one of each is drawn.
    imputations : int, optional
        2 or more. By default 40, and 20 more, up to 200, until imputation leaves an error of a fortieth of
        the width in the ends of intervals that are quoted.
    rng : Generator, int or None

    Returns
    -------
    WithErrors
        `.random`, `.systematic` and `.both` are answers of the type of `answer`; `.table()` has all three,
        and `.sentence()` is to be quoted. `.times(2)` doubles the rates.

    Warns
    -----
    Alarm
        If labels have too few pieces that could have been added as often as the rates say, or records that
        are missing in `shown`.

    Raises
    ------
    DataError, NotIdentified
        If rates are 1 or more, if an entity has no start, or if an answer cannot be computed or pooled.

    References
    ----------
    Lash, Fox and Fink (2009), Applying Quantitative Bias Analysis to Epidemiologic Data.

    Rubin (1987), Multiple Imputation for Nonresponse in Surveys.

    Examples
    --------
    >>> from functools import partial
    >>> import erbayes as eb
    >>> from erbayes.datasets import people
    >>> from erbayes.labels import Annotator, Beta
    >>> example = people()
    >>> answer = partial(eb.estimate, example.prediction, metrics="pairwise-recall")
    >>> design, annotator = eb.UniformRecords(example.drawn), Annotator(missed=Beta(3, 17))
    >>> found = eb.with_errors(answer, example.labels, design, example.prediction, annotator, rng=1)
    >>> found.table()[["error", "metric", "estimate", "lower", "upper"]].round(2)
            error           metric  estimate  lower  upper
    0      random  pairwise-recall      0.91   0.88   0.94
    1  systematic  pairwise-recall      0.90   0.87   0.92
    2        both  pairwise-recall      0.90   0.85   0.93
    """
    need_object(
        answer, "__call__", "answer is a function of labels and design, as partial(eb.estimate, prediction)"
    )
    if lies_elsewhere(shown):
        raise DataError(
            "true labels are drawn among records in memory: give shown as memberships of the records of the "
            "clusters that labels touch, and of a random share of all other clusters"
        )
    rng = generator(rng)
    first = FIRST if imputations is None else whole(imputations, "imputations", 2)
    given = Decisions(labels, shown, starts, rng)
    if absent := len(given.elsewhere):
        said = (
            f"{absent:,} of {absent + np.count_nonzero(given.who >= 0):,} labelled records are missing in "
            "the shown prediction, and are taken as right: give all that annotators saw"
        )
        warn_of([Sentence(said, Grade.CAUTION)])
    seed = draw_seed(rng)
    if isinstance(annotator, pd.DataFrame):
        rates, source = check_rates(annotator.reset_index(drop=True)), "a table of rates"
    else:
        need_object(annotator, "draw", "annotator is an Annotator, such as Annotator(missed=Beta(3, 17))")
        rates, source = annotator.draw(first, rng), annotator.source
    _warn_spurious(given, float(rates["added"].mean()))
    random, answers = answer(labels, design), list[Any]()
    found = WithErrors(random, random, random, rates, source, answer, given, design, seed)
    while True:
        answers += found.run(rates.iloc[len(answers) :], len(answers))
        found = found.at(rates, source, answers)
        if isinstance(annotator, pd.DataFrame) or imputations or len(rates) >= LAST or found.settled:
            return found
        rates = pd.concat([rates, annotator.draw(FURTHER, rng)], ignore_index=True)


def _warn_spurious(given: Decisions, w: float) -> None:
    """Raise an alarm if labels have fewer pieces that can have been added than w per entity."""
    classes, expected = class_additions(given)
    stated, there = w * len(given.entities), np.bincount(classes, minlength=len(expected))
    there[0] = 0  # pieces that cannot have been added
    removed = np.minimum(w * expected, there).sum()
    # the number of additions is a Poisson variable
    if stated - removed > SPURIOUS * stated + 2 * np.sqrt(stated):
        said = (
            f"rates say that {stated:.0f} foreign clusters were added, and labels have only "
            f"{removed:.0f} pieces that can be such: the rate added is too high"
        )
        warn_of([Sentence(said, Grade.CAUTION)])


def grid(
    found: WithErrors,
    rates: pd.DataFrame,
    *,
    imputations: int = 20,
    level: float = 0.95,
    progress: bool = True,
) -> pd.DataFrame:
    """Estimate as if annotators had erred at stated rates, without priors.

    Parameters
    ----------
    found : WithErrors
        From `erbayes.with_errors`, with an answer that is estimates, as that of `erbayes.estimate`.
    rates : DataFrame
        A row per point, with columns as `Annotator` has them; rates that are not there are 0, and unsure 1.
    imputations : int
        Imputed labels at each point, 2 or more. All points have the same random numbers, so that differences
        between them are no noise.
    level : float in (0, 1)

    Returns
    -------
    DataFrame
        A row per point and metric: the rates, the estimate, an interval for the error of drawing, and the
        Monte Carlo standard error of its ends.

    See Also
    --------
    erbayes.plots.draw_tipping : contours over two rates.

    Examples
    --------
    >>> from functools import partial
    >>> import erbayes as eb
    >>> prediction, labels = {i: i // 3 for i in range(240)}, {i: i // 4 for i in range(120)}
    >>> answer = partial(eb.estimate, prediction, metrics="pairwise-recall")
    >>> nothing = eb.labels.Annotator()
    >>> found = eb.with_errors(answer, labels, eb.UniformRecords(), prediction, nothing, imputations=2, rng=1)
    >>> points = pd.DataFrame({"missed": [0.0, 0.2]})
    >>> grid(found, points)[["missed", "metric", "estimate"]].round(2)
       missed           metric  estimate
    0     0.0  pairwise-recall      0.44
    1     0.2  pairwise-recall      0.37
    """
    need(found, WithErrors, "a grid is of what with_errors returns")
    need(rates, pd.DataFrame, "rates are a DataFrame with columns such as missed and kept")
    if not isinstance(found.random, Estimates):
        raise DataError(
            "a grid is of estimates: give with_errors an answer that returns them, such as "
            "lambda labels, design: eb.compare(...).subtract('old', 'new')"
        )
    rates, imputations = check_rates(rates.reset_index(drop=True)), whole(imputations, "imputations", 2)
    parts: list[pd.DataFrame] = []
    for at in show_progress(range(len(rates)), len(rates), "grid", progress):
        point = rates.loc[[at] * imputations].reset_index(drop=True)
        part = found.at(point, "a table of rates").table(level=level)
        part = part.loc[part["error"] == "both", ["metric", "estimate", "lower", "upper", "mcse"]]
        parts.append(pd.concat([point.head(len(part)), part.reset_index(drop=True)], axis=1))
    return pd.concat(parts, ignore_index=True)


def tipping(found: WithErrors, metric: Metric | str, under: float, *, progress: bool = True) -> pd.DataFrame:
    """Find how many times as often annotators must err for an estimate to fall under a stated value.

    Each rate is multiplied alone, the others as they were drawn, and then `all` of them. Imputations have the
    random numbers of `found`, so that `found.times` of the tipping point of `all` has the value.

    The table has a row per rate, and one for all: the `tipping_point`, a multiple up to 3, and its Monte
    Carlo standard error `mcse`. Both are NaN if three times the rate does not bring the metric under the
    value by two errors, and 0 if it is under the value without errors of this kind.

    Parameters
    ----------
    metric : Metric or str
        A metric of the answer, or the name of another component.
    under : float
        The stated value, in the unit of the metric.

    Examples
    --------
    >>> from functools import partial
    >>> import erbayes as eb
    >>> prediction, labels = {i: i // 3 for i in range(240)}, {i: i // 4 for i in range(120)}
    >>> answer = partial(eb.estimate, prediction, metrics="pairwise-recall")
    >>> errors = eb.labels.Annotator(missed=eb.labels.Beta(2, 18))
    >>> found = eb.with_errors(answer, labels, eb.UniformRecords(), prediction, errors, imputations=8, rng=1)
    >>> tipping(found, "recall", 0.4).round(1)
             tipping_point  mcse
    rate
    removed            NaN   NaN
    missed             1.1   0.2
    kept               NaN   NaN
    added              NaN   NaN
    all                1.1   0.2
    """
    number(under, "under", isfinite, "be a finite number")
    need(found, WithErrors, "a tipping point is of what with_errors returns")
    named = metric if metric in found.random.names else resolve_metric(metric).name
    if named not in found.random.names:
        raise DataError(f"{named} is not among {', '.join(found.random.names)}")
    j = found.random.names.index(named)
    least, most = found.random.support[j]
    if not least <= under <= most:
        raise DataError(f"under must be from {least:g} to {most:g}, as {named} is, not {under:g}")
    points, kinds = {}, {name: [name] for name in RATES if found.rates[name].any()} | {"all": RATES}
    for name in show_progress(kinds, len(kinds), "tipping points", progress):
        points[name] = _find_root(found, j, under, kinds[name])
    table = pd.DataFrame.from_dict(points, "index", columns=["tipping_point", "mcse"], dtype=float)
    return table.reindex([*RATES, "all"]).rename_axis("rate")


def _find_root(found: WithErrors, j: int, under: float, names: list[str]) -> tuple[float, float]:
    """Return the multiple of some rates at which component j falls under a value, and its error."""

    def measure(factor: float) -> tuple[float, float]:
        x = np.array([fit.estimate[j] for fit in found.run(multiply(found.rates, factor, names))])
        return float(x.mean()) - under, float(x.std(ddof=1) / np.sqrt(len(x)))

    low, (above, _), high, (below, error) = 0.0, measure(0.0), FARTHEST, measure(FARTHEST)
    if above < 0:
        return 0.0, np.nan
    if below > -2 * error:
        return np.nan, np.nan
    for _ in range(TRIES):  # of false position
        at = low + above * (high - low) / (above - below)
        mean, error = measure(at)
        if abs(mean) <= error / 10:
            break
        low, above, high, below = (low, above, at, mean) if mean < 0 else (at, mean, high, below)
    fall = measure(at * (1 - NEAR))[0] - measure(at * (1 + NEAR))[0]
    return at, error * 2 * NEAR * at / abs(fall)
