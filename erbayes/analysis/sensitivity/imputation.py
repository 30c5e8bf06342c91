"""Any answer of the package under errors of labels, by multiple imputation of the true labels.

Sources: Rubin (1987), Multiple Imputation for Nonresponse in Surveys. Barnard and Rubin (1999), Biometrika
86, 948-955 (degrees of freedom).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd

from ..._internal.arrays import Seed, draw_seed, generator
from ..._internal.digits import shown as rounded
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
from ...labels.annotators.error_models import (
    RATES,
    Annotator,
    Rate,
    check_rates,
    class_additions,
    drawn,
    impute,
)
from ...labels.annotators.pieces import Labelling
from ...labels.drawing.stopping import ALLOWED, CERTAIN, Check
from ...labels.drawing.unresolved import complete_draws
from ...large.sources import lies_elsewhere
from ...metrics.estimates import Estimates
from ...metrics.moves import Moves
from ...metrics.quantiles import compute_t_quantiles
from ...metrics.sentences import choose_quoted
from ...metrics.tables import Pictured
from ...metrics.unseen import UNSETTLED, Unseen, map_components

SPURIOUS = 0.2
"""Share of the stated additions for which labels have no piece, from which an alarm is raised."""
MOST = 0.99
"""Largest share of missed or kept cases when rates are multiplied."""
PHRASES = {
    "missed": "miss {} of the pieces of entities elsewhere",
    "kept": "keep {} of the foreign records",
    "added": "add {} foreign clusters per entity",
    "delta": "leave draws unresolved that err {} times as often as the others",
}
"""What annotators do at each rate."""
DRAWN = {"both": "both errors", "random": "drawing alone", "systematic": "labels alone"}
"""Answers of a picture, the one to quote first, by the names in its legend."""


@dataclass(frozen=True, slots=True, eq=False)
class Imputing:
    """An answer for labels that can be imputed: `answer(labels, design)`, in which only these vary."""

    answer: Callable[[Any, Any], Any]
    given: Labelling
    design: Any
    seed: int

    def run(self, rates: pd.DataFrame) -> list[Any]:
        """Return the answers from labels that are imputed at each row of rates, with a seed for each row."""
        answers = []
        for j, row in enumerate(rates.to_dict("records")):
            rng, design = np.random.default_rng([self.seed, j]), self.design
            if "delta" in row:
                design = complete_draws(design, self.given.exact, row["delta"], rng)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", Alarm)  # those of the sample are raised once, as it is
                    answers.append(self.answer(impute(self.given, row, rng), design))
            except NotIdentified as why:
                told = ", ".join(f"{name} {value:.3g}" for name, value in row.items())
                raise NotIdentified(f"if errors of labels are undone at rates {told}: {why}") from why
        return answers


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WithErrors(Pictured):
    """An answer with three intervals, each in the answer's own type, as `with_errors` returns it.

    `random`: the answer for the labels as they are, with the error of drawing alone; `systematic`: with the
    error of labels alone; `both`; `rates` (imputations, rates): the rates that were drawn; `source`: where
    they come from.
    """

    picture: ClassVar[str] = "forest"
    random: Any
    systematic: Any
    both: Any
    rates: pd.DataFrame
    source: str
    imputing: Imputing

    def table(self, **settings: Any) -> pd.DataFrame:
        """Return the three tables of the answer below one another, with its `settings`, such as `level`."""
        parts = {name: getattr(self, name) for name in ("random", "systematic", "both")}
        tables = {name: part.table(**settings).reset_index() for name, part in parts.items()}
        table: pd.DataFrame = pd.concat(tables, names=["error"]).reset_index(level=0)
        return table.drop(columns="index", errors="ignore").reset_index(drop=True)

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
        for name, phrase in PHRASES.items():
            if name in self.rates and self.rates[name].any():
                x = self.rates[name].to_numpy()
                ends, percent = np.quantile(x, [0.025, 0.975]), name in ("missed", "kept")
                mean, low, high = (f"{v:.0%}" if percent else f"{v:.2g}" for v in (x.mean(), *ends))
                said.append(phrase.format(mean if low == high else f"{mean} ({low} to {high})"))
        return f"{', '.join(said) or 'err in nothing'} (by {self.source})"

    def sentence(self, level: float = 0.95) -> str:
        """Return the answer in words, with what it assumes, and what each error alone would say."""
        said = [f"If annotators {self.describe_rates()}: {_speak(self.both, level) or 'see the table.'}"]
        if of_draws := _speak(self.random, level):
            said.append(f"By the error of drawing alone: {of_draws}")
        if isinstance(self.systematic, Estimates):
            table = rounded(self.systematic.table(level))
            rows = [(name, table.loc[name]) for name in choose_quoted(self.systematic.names)]
            ends = ", ".join(f"{name} from {row['lower']} to {row['upper']}" for name, row in rows)
            said.append(f"By errors of labels alone: {ends}.")
        return " ".join(said)

    def times(self, factor: float) -> WithErrors:
        """Return the same with all rates multiplied, such as by ½ and 2 for priors that may be wrong."""
        factor = number(factor, "factor", lambda x: 0 <= x < np.inf, "be a finite number of 0 or more")
        scaled = (self.rates[RATES] * factor).clip(upper=[MOST, MOST, np.inf], axis=1)
        rates = self.rates.assign(**scaled)
        source = f"{factor:g} times the rates of {self.source}"
        systematic, both = pool(self.imputing.run(rates), self.random)
        return replace(self, systematic=systematic, both=both, rates=rates, source=source)


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
    delta: float | Rate | None = None,
    imputations: int = 30,
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
        Rates of errors. A table has a row per imputation and columns missed, kept and added (or some of
        them), such as correlated draws or a posterior.
    starts : sequence of record ids, optional
        The records from which entities were labelled, as those drawn. By default one of each is drawn.
    delta : float or Rate, optional
        Under the design `Responding`: the odds of an error of unresolved draws, over those of the resolved
        ones of their class. 1 is missing at random, and 0 and ∞ are the bounds.
    imputations : int
        2 or more.
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
    1  systematic  pairwise-recall      0.90   0.88   0.92
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
    rng, imputations = generator(rng), whole(imputations, "imputations", 2)
    given = Labelling.of(labels, shown, starts, rng)
    if absent := len(given.elsewhere):
        said = (
            f"{absent:,} of {absent + len(given.record):,} labelled records are missing in the shown "
            "prediction, and are taken as right: give all that annotators saw"
        )
        warnings.warn(Sentence(said, Grade.CAUTION), Alarm, skip_file_prefixes=PACKAGE)
    if isinstance(annotator, pd.DataFrame):
        rates, source = check_rates(annotator.reset_index(drop=True)), "a table of rates"
    else:
        need_object(annotator, "draw", "annotator is an Annotator, such as Annotator(missed=Beta(3, 17))")
        rates, source = annotator.draw(imputations, rng), annotator.source
    if delta is not None:
        rates = rates.assign(delta=drawn(delta, rng, (len(rates),)))
    _warn_spurious(given, float(rates["added"].mean()))
    imputing = Imputing(answer, given, design, draw_seed(rng))
    random = answer(labels, design)
    systematic, both = pool(imputing.run(rates), random)
    return WithErrors(random, systematic, both, rates, source, imputing)


def _warn_spurious(given: Labelling, w: float) -> None:
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


class ByError(NamedTuple):
    """An answer with the error of labels alone, and with it and the error of drawing."""

    systematic: Any
    both: Any


def find_estimates(answer: Any) -> dict[str, Estimates]:
    """Return the estimates in an answer, by the name of their field; "" if the answer is estimates itself."""
    if isinstance(answer, Estimates):
        return {"": answer}
    parts = {f.name: getattr(answer, f.name) for f in fields(answer)} if is_dataclass(answer) else {}
    return {name: part for name, part in parts.items() if isinstance(part, Estimates)}


def pool(answers: Sequence[Any], plain: Any) -> ByError:
    """Pool the answers from imputed labels, (M,), into the type of the `plain` answer."""
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
    return ByError(*(replace(plain, **{name: two[i] for name, two in pooled.items()}) for i in (0, 1)))


def _align(result: Any, names: Sequence[str]) -> Any:
    """Return the components with these names, refusing results without one of them."""
    if result.names == tuple(names):
        return result
    if lost := [name for name in names if name not in result.names]:
        raise DataError(
            f"there is no {lost[0]!r} once errors of labels are undone: give the groups of all records"
        )
    return result.part([result.names.index(name) for name in names])


def _pool_estimates(results: Sequence[Any], plain: Estimates) -> ByError:
    """Pool estimates of one engine: moments by Rubin's rules, or all draws."""
    if plain.values is None:
        return _pool_moments(results, plain)
    x = np.array([result.estimate for result in results])
    draws = np.concatenate([result.flat for result in results])
    centre, unseen = x.mean(axis=0), _keep_agreed(results[0].unseen, [r.unseen for r in results])
    return ByError(
        Estimates.of_draws(plain.names, x[None], plain.support, centre),
        Estimates.of_draws(plain.names, draws[None], plain.support, centre, unseen),
    )


def _pool_moments(fits: Sequence[Estimates], plain: Estimates) -> ByError:
    """Pool by Rubin's rules, with no variance within below that of the labels as they are."""

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
    # Barnard and Rubin (1999); without errors of labels all imputations are equal but for rounding
    df = np.asarray(np.where(share > 1e-12, 1 / (1 / of_imputations + 1 / observed), mean.df))
    both = replace(mean, cov=cov, df=df, unseen=unseen, moves=mean.moves.inflated(total, own))
    df, moves = np.full(len(total), M - 1.0), Moves.none(len(total))
    systematic = replace(mean, cov=between, df=df, unseen=Unseen(), moves=moves)
    return ByError(systematic, both)


def _keep_agreed(unseen: Unseen, of_each: Sequence[Unseen]) -> Unseen:
    """Return what is unseen of components, with ends that are certain only where all imputations agree."""
    ends = np.array([one.certain for one in of_each])
    return replace(unseen, certain=np.where((ends != ends[0]).any(axis=0), UNSETTLED, ends[0]))


def _pool_checks(checks: Sequence[Check], plain: Check) -> ByError:
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
    return ByError(*(plain.allow(centre, centre[:, None] + arm * sides) for arm in of_each))
