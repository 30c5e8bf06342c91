"""Options of metrics, and the analyses of `erbayes estimate`, of which a call makes one."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, NamedTuple

import erbayes as eb

from .._internal.errors import DataError, Grade, NotIdentified, Sentence, head
from .inputs import One
from .lazily import arrays, named_engines, pd
from .options import flag, option, panel

type Metrics = Sequence[eb.metrics.Metric]


class KindName(Enum):
    BETA_GAMMA = "beta-gamma"
    SYMMETRIC = "symmetric"
    WALD = "wald"
    ANYTIME = "anytime"


@panel("Metrics")
class MetricOptions:
    """Options of the metrics and their kind of interval."""

    metrics: str | None = option(
        "Names with commas, such as precision,recall, or all: see erbayes metrics.", "-m"
    )
    interval: KindName = option(
        "Kind of interval. symmetric: on the logit scale for shares, on the log scale for counts. "
        "anytime: valid if labels are looked at again and again.",
        rare=True,
        default=KindName.BETA_GAMMA,
    )

    @property
    def kind(self) -> eb.intervals.Kind:
        kinds: dict[KindName, eb.intervals.Kind] = {
            KindName.BETA_GAMMA: eb.intervals.DEFAULT,
            KindName.SYMMETRIC: eb.intervals.Symmetric(),
            KindName.WALD: eb.intervals.WALD,
            KindName.ANYTIME: eb.intervals.Anytime(),
        }
        return kinds[self.interval]

    def chosen_metrics(self) -> Metrics:
        if self.metrics is None:
            return eb.metrics.DEFAULT_METRICS
        return eb.metrics.resolve_metrics(name.strip() for name in self.metrics.split(","))


@panel("Minima")
class Minima:
    """Options of the least values that metrics must reach."""

    min_precision: float | None = option("Least pairwise precision, such as 0.95.")
    min_recall: float | None = option("Least pairwise recall, such as 0.8.")
    minimum: list[str] | None = option(
        "Least value of any metric. Several are allowed.", "--min", metavar="METRIC=VALUE"
    )

    def read(self) -> dict[eb.metrics.Metric | str, float]:
        pairwise = {
            eb.metrics.pairwise_precision.name: self.min_precision,
            eb.metrics.pairwise_recall.name: self.min_recall,
        }
        named = [(name, least) for name, least in pairwise.items() if least is not None]
        for text in self.minimum or []:
            name, _, value = (part.strip() for part in text.partition("="))
            try:
                named.append((name, float(value)))
            except ValueError as error:
                raise DataError(f"--min {text}: write METRIC=VALUE, such as b3-recall=0.9") from error
        if not named:
            raise DataError("nothing to check: give --min-precision, --min-recall or --min METRIC=VALUE")
        names = [name for name, _ in named]
        if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
            raise DataError(f"{len(twice)} metrics have two minima, such as {head(twice)}: leave out one")
        return dict(named)


SEED = 1
"""Seed of engines that draw, so that the same call prints the same numbers."""


class Result(NamedTuple):
    """What `erbayes estimate` prints: a table that a method made, alarms, and a sentence to quote.

    `drawn`: what `--picture` draws.
    """

    table: pd.DataFrame
    method: str
    alarms: Sequence[str]
    sentence: str = ""
    drawn: Any = None


@panel("Design")
class WorstCases:
    """The option of bounds of metrics, whatever the draws of a folder are that nobody resolved."""

    worst: bool = flag(
        "Bounds of metrics, whatever the draws of a folder are that nobody resolved.",
        "--worst-cases",
        rare=True,
    )

    @property
    def option(self) -> str | None:
        return "--worst-cases" if self.worst else None

    def refuse(self, inputs: One, asked: MetricOptions) -> None:
        """Refuse labels that do not say what draws are unresolved, and intervals that are not exact."""
        if not self.worst:
            return
        if inputs.returned is None:
            raise DataError(
                "--worst-cases needs a folder of erbayes draw as LABELS, which says what draws are unresolved"
            )
        if asked.interval not in (KindName.BETA_GAMMA, KindName.ANYTIME):
            raise DataError(
                f"--worst-cases has exact intervals: leave out --interval {asked.interval.value}, or "
                "choose anytime"
            )

    def run(self, inputs: One, asked: MetricOptions, sample: eb.Sample, metrics: Metrics) -> Result:
        """Bound metrics by exact intervals of the best and the worst case."""
        if not isinstance(sample.design, eb.design.Responding):
            raise DataError(
                f"{inputs.labels} has no unresolved draws: each draw has a complete answer, or nobody "
                "has begun its task; leave out --worst-cases"
            )
        # the exact interval of a fixed number of draws replaces the default of --interval
        kind = eb.engine.Betting(anytime=asked.interval is KindName.ANYTIME)
        bounds = eb.labels.worst_cases(sample, metrics, inputs.level, kind)
        return Result(bounds.reset_index(), "worst cases", eb.alarms(sample, metrics))


class EngineName(Enum):
    CLOSED_FORM = "closed-form"
    BOOTSTRAP = "bootstrap"
    JACKKNIFE = "jackknife"
    SIZE_MODEL = "size-model"
    POOL = "pool"
    ADVISED = "advised"


@panel("Metrics")
class EngineOption:
    engine: EngineName | None = option(
        "closed-form (default), bootstrap, jackknife, size-model, pool or advised, with why.",
        metavar="ENGINE",
    )

    @property
    def name(self) -> EngineName:
        return self.engine or EngineName.CLOSED_FORM

    def choose_kind(self, asked: MetricOptions) -> eb.intervals.Kind | None:
        """Return the kind of interval: an engine that draws has its own, unless --interval names one."""
        of_engine = self.name is not EngineName.CLOSED_FORM and asked.interval is KindName.BETA_GAMMA
        return None if of_engine else asked.kind


@panel("Metrics")
class Engines(EngineOption):
    side_by_side: bool = flag("Closed form, bootstrap and size model in one table.")

    def __post_init__(self) -> None:
        if self.engine is not None and self.side_by_side:
            raise DataError("--side-by-side has engines of its own: leave out --engine")

    @property
    def option(self) -> str | None:
        """Name of the option that asks for another engine than the closed form."""
        if self.side_by_side:
            return "--side-by-side"
        return None if self.name is EngineName.CLOSED_FORM else "--engine"

    def refuse(self, asked: MetricOptions) -> None:
        """Refuse a kind of interval that would change nothing."""
        if self.side_by_side and asked.interval is not KindName.BETA_GAMMA:
            raise DataError("--side-by-side has the interval of each engine: leave out --interval")

    def run(self, inputs: One, asked: MetricOptions, sample: eb.Sample, metrics: Metrics) -> Result:
        """Estimate metrics by the engine, or by several."""
        if self.side_by_side:
            return _set_side_by_side(sample, metrics, inputs.level)
        result, kind = _run_engine(self.name, sample, metrics), self.choose_kind(asked)
        table = result.table(inputs.level, kind).reset_index()
        alarms = [*eb.alarms(sample, metrics, table), *result.alarms]
        return Result(table, self.name.value, alarms, result.sentence(inputs.level, kind), result)


def _run_engine(name: EngineName, sample: eb.Sample, metrics: Metrics) -> Any:
    return named_engines.find_engine(name.value)(sample, metrics, arrays.draw_seed(SEED))


def _set_side_by_side(sample: eb.Sample, metrics: Metrics, level: float) -> Result:
    """Return the results of three engines in one table, with a sentence for an engine without a result."""
    outcomes: dict[str, Any] = {}
    for name in (EngineName.CLOSED_FORM, EngineName.BOOTSTRAP, EngineName.SIZE_MODEL):
        try:
            outcomes[name.value] = _run_engine(name, sample, metrics)
        except NotIdentified as why:
            outcomes[name.value] = why
    engines = eb.side_by_side(outcomes, metrics, level=level)
    table, results = engines.table(), [one for one in outcomes.values() if not isinstance(one, NotIdentified)]
    alarms = [*eb.alarms(sample, metrics, table), *(alarm for one in results for alarm in one.alarms)]
    notes = [Sentence(said, Grade.NOTE) for said in engines.describe_lacking()]
    return Result(table, "", [*alarms, *notes], results[0].sentence(level))


def choose_one(*options: str | None) -> str | None:
    """Return the option of these that asks for an analysis, None if none does, and refuse several."""
    chosen = [option for option in options if option is not None]
    if len(chosen) > 1:
        raise DataError(f"{', '.join(chosen)} ask for different analyses: leave out all but one")
    return next(iter(chosen), None)
