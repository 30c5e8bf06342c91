"""Any answer of the package under errors of labels, by multiple imputation of the true labels.

Sources: Rubin (1987), Multiple Imputation for Nonresponse in Surveys. Barnard and Rubin (1999), Biometrika
86, 948-955 (degrees of freedom).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from ..._internal.arrays import FloatArray, Seed, draw_seed, generator
from ..._internal.errors import (
    PACKAGE,
    Alarm,
    DataError,
    Grade,
    NotIdentified,
    Sentence,
    need_object,
    number,
    whole,
)
from ...design.changes import find_responding, set_odds
from ...labels.annotators.annotator import RATES, SHARES, Annotator, check_rates
from ...labels.annotators.decisions import Decisions, class_additions, impute
from ...labels.drawing.stopping import ALLOWED, CERTAIN, Check
from ...large.sources import lies_elsewhere
from ...metrics.estimates import Estimates, measure_distances
from ...metrics.sentences import choose_quoted
from ...metrics.tables import Pictured
from ...metrics.unseen import UNSETTLED, Moves, Unseen, compute_t_quantiles, map_components

SPURIOUS = 0.2
"""Share of the stated additions for which labels have no piece, from which an alarm is raised."""
MOST = 0.99
"""Largest share of errors when rates are multiplied."""
FIRST, FURTHER, LAST = 40, 20, 200
"""Imputations that are made at first, in each step after that, and at most."""
PRECISE = 1 / 40
"""Monte Carlo error of an end, in widths of its interval, at which imputations are enough."""
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

    def table(self, **settings: Any) -> pd.DataFrame:
        """Return the three tables of the answer below one another, with its `settings`, such as `level`.

        The column `mcse` is the Monte Carlo standard error of an end of the interval, by M imputations:
        √(B/M + 2 B²/((M - 1) T)), for the variance B between them and T in all.
        """
        names = ("random", "systematic", "both")
        tables = {name: getattr(self, name).table(**settings).reset_index() for name in names}
        M, se = len(self.rates), {name: _find_se(table) for name, table in tables.items()}
        B = se["systematic"] ** 2 / (1 + 1 / M)
        for name, own, T in (("random", 0 * B, B), ("systematic", B, B), ("both", B, se["both"] ** 2)):
            share = np.divide(own, T, out=np.zeros_like(B), where=T > 0)
            tables[name]["mcse"] = np.sqrt(own / M + 2 * own * share / (M - 1))
        table: pd.DataFrame = pd.concat(tables, names=["error"]).reset_index(level=0)
        return table.drop(columns="index", errors="ignore").reset_index(drop=True)

    def _quoted(self, level: float = 0.95) -> pd.DataFrame:
        """Return the rows of the table that allow for both errors, of metrics that are quoted."""
        table = self.table() if isinstance(self.both, Check) else self.table(level=level)
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
        table = self.table()
        return f"If annotators {self.describe_rates()}", table.drop(columns=["df", "level"], errors="ignore")

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

    def sentence(self, level: float = 0.95) -> str:
        """Return the answer in words, with what it assumes, and what the error of drawing alone would say."""
        said = [f"If annotators {self.describe_rates()}: {_speak(self.both, level) or 'see the table.'}"]
        if of_draws := _speak(self.random, level):
            said.append(f"By the error of drawing alone: {of_draws}")
        table = self._quoted(level)
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
    found = table["se"] if "se" in table else (table["upper"] - table["lower"]) / 4
    return found.to_numpy(dtype=float)


def _speak(answer: Any, level: float) -> str:
    if hasattr(answer, "sentence"):
        return str(answer.sentence(level))
    return " ".join(answer.sentences()) if hasattr(answer, "sentences") else ""


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
        warnings.warn(Sentence(said, Grade.CAUTION), Alarm, skip_file_prefixes=PACKAGE)
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
        warnings.warn(Sentence(said, Grade.CAUTION), Alarm, skip_file_prefixes=PACKAGE)


def find_estimates(answer: Any) -> dict[str, Estimates]:
    """Return the estimates in an answer, by the name of their field; "" if the answer is estimates itself."""
    if isinstance(answer, Estimates):
        return {"": answer}
    parts = {f.name: getattr(answer, f.name) for f in fields(answer)} if is_dataclass(answer) else {}
    return {name: part for name, part in parts.items() if isinstance(part, Estimates)}


def pool(answers: Sequence[Any], plain: Any) -> tuple[Any, Any]:
    """Pool answers from imputed labels, (M,): with the error of labels alone, and with that of draws too."""
    if isinstance(plain, Check):
        return _pool_checks(answers, plain)
    found = [find_estimates(answer) for answer in answers]
    pooled = {
        name: _pool_estimates([_align(one[name], part.names) for one in found], part)
        for name, part in find_estimates(plain).items()
    }
    if not pooled:
        raise DataError(
            "answer returns what estimate, compare, by_domain, impact, thresholds or check return, not "
            f"{type(plain).__name__}"
        )
    if "" in pooled:
        return pooled[""]
    systematic, both = (replace(plain, **{name: two[i] for name, two in pooled.items()}) for i in (0, 1))
    return systematic, both


def _align(result: Any, names: Sequence[str]) -> Any:
    """Return the components with these names, refusing results without one of them."""
    if result.names == tuple(names):
        return result
    if lost := [name for name in names if name not in result.names]:
        raise DataError(
            f"there is no {lost[0]!r} once errors of labels are undone: give the groups of all records"
        )
    return result.part([result.names.index(name) for name in names])


def _pool_estimates(results: Sequence[Any], plain: Estimates) -> tuple[Any, Any]:
    """Pool estimates of one engine: moments by Rubin's rules, or all draws."""
    if plain.values is None:
        return _pool_moments(results, plain)
    x = np.array([result.estimate for result in results])
    draws = np.concatenate([result.flat for result in results])
    centre, unseen = x.mean(axis=0), _keep_agreed(results[0].unseen, [r.unseen for r in results])
    return (
        Estimates.of_draws(plain.names, x[None], plain.support, centre),
        Estimates.of_draws(plain.names, draws[None], plain.support, centre, unseen),
    )


def _pool_moments(fits: Sequence[Estimates], plain: Estimates) -> tuple[Any, Any]:
    """Pool by Rubin's rules; variances within are at least those of the labels, if there is room for them."""

    def average(axes: Sequence[int], *of_each: Any) -> Any:
        return of_each[0] if isinstance(of_each[0], tuple) else np.mean(of_each, axis=0)

    M, x = len(fits), np.array([fit.mean for fit in fits])
    lost = np.isnan(x).sum(axis=0).tolist()
    undefined = tuple(
        why or (f"it has no estimate in {n} of {M} imputations of the labels" if n else "")
        for why, n in zip(plain.undefined, lost, strict=True)
    )
    mean = map_components(average, *fits, undefined=undefined)
    unseen = _keep_agreed(mean.unseen, [fit.unseen for fit in fits])
    between = (1 + 1 / M) * np.atleast_2d(np.cov(x, rowvar=False))
    own, of_plain, of_labels = (np.diagonal(cov) for cov in (mean.cov, plain.cov, between))
    room, before = (-measure_distances(at, plain.support).prod(axis=-1) for at in (mean.mean, plain.mean))
    nearer = np.divide(room, before, out=np.ones_like(room), where=before > 0)
    # a share with less than half of the room to the ends of its range cannot vary as much
    of_plain = of_plain * np.minimum(2 * nearer, 1)
    # D W̄ D + (1 + 1/M) B, for the covariance B of the means and D = diag √max(1, W_plain/W̄)
    floor = np.sqrt(np.maximum(np.divide(of_plain, own, out=np.ones_like(own), where=own > 0), 1.0))
    cov = mean.cov * np.outer(floor, floor) + between
    # where imputations have no variance within, although labels have
    np.fill_diagonal(cov, np.fmax(np.diagonal(cov), of_plain + of_labels))
    total = np.diagonal(cov)
    share = np.divide(of_labels, total, out=np.zeros_like(total), where=total > 0)
    with np.errstate(divide="ignore"):
        of_imputations = (M - 1) / share**2
    observed = np.maximum((mean.df + 1) / (mean.df + 3) * mean.df * (1 - share), 1.0)
    # Barnard and Rubin (1999), in a census too; without errors of labels imputations differ by rounding
    df = np.asarray(np.where(share > 1e-12, 1 / (1 / of_imputations + (share < 1) / observed), mean.df))
    both = replace(mean, cov=cov, df=df, unseen=unseen, moves=mean.moves.inflated(total, own))
    df, moves = np.full(len(total), M - 1.0), Moves.none(len(total))
    systematic = replace(mean, cov=between, df=df, unseen=Unseen(), moves=moves)
    return systematic, both


def _keep_agreed(unseen: Unseen, of_each: Sequence[Unseen]) -> Unseen:
    """Return what is unseen of components, with ends that are certain only where all imputations agree."""
    ends = np.array([one.certain for one in of_each])
    return replace(unseen, certain=np.where((ends != ends[0]).any(axis=0), UNSETTLED, ends[0]))


def _pool_checks(checks: Sequence[Check], plain: Check) -> tuple[Any, Any]:
    """Pool intervals of checks by arms: √(δ² + t² (1 + 1/M) B), δ that of draws (Zou and Donner 2008)."""
    M, x = len(checks), np.array([check.estimate for check in checks])
    arms = np.mean([np.abs(check.interval - check.estimate[:, None]) for check in checks], axis=0)
    arms = np.fmax(arms, np.abs(plain.interval - plain.estimate[:, None]))
    t = compute_t_quantiles(np.array([M - 1.0]), np.array([(1 + plain.level) / 2]))
    of_labels = (t * np.sqrt((1 + 1 / M) * x.var(axis=0, ddof=1)))[:, None]
    centre, sides = x.mean(axis=0), np.array([-1.0, 1.0])
    of_each = (of_labels, np.sqrt(arms**2 + of_labels**2))
    same = np.all([np.isclose(check.interval, plain.interval).all(axis=1) for check in checks], axis=0)
    kinds = tuple(
        kind if agreed or kind != CERTAIN else ALLOWED
        for kind, agreed in zip(plain.kinds, same.tolist(), strict=True)
    )
    plain = replace(plain, kinds=kinds)
    systematic, both = (plain.allow(centre, centre[:, None] + arm * sides) for arm in of_each)
    return systematic, both
