"""Options of what is asked: metrics, kinds of interval, least values, and engines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, ClassVar

import erbayes as eb

from .._internal.errors import DataError, head
from .analyses import Analysis, Result
from .lazily import engine_contract, named_engines
from .options import flag, message, option

if TYPE_CHECKING:
    from .inputs import One

COMPILES = "note: the size model compiles first, which takes about a minute"
SEED = 1
"""Seed of engines that draw, so that the same call prints the same numbers."""


class KindName(Enum):
    """Kind of interval."""

    BETA_GAMMA = "beta-gamma"
    SYMMETRIC = "symmetric"
    WALD = "wald"
    ANYTIME = "anytime"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Options of the metrics and their kind of interval."""

    panel: ClassVar = "Metrics"

    metrics: str | None = option("Names with commas, such as precision,recall: see erbayes metrics.", "-m")
    every: bool = flag("Estimate every metric, instead of --metrics.", "--all")
    interval: KindName = option(
        "Kind of interval. symmetric: on the logit scale for shares, on the log scale for counts. "
        "anytime: valid if labels are looked at again and again.",
        rare=True,
        default=KindName.BETA_GAMMA,
    )

    @property
    def kind(self) -> eb.intervals.Kind:
        """Return the kind of interval that --interval names."""
        match self.interval:
            case KindName.BETA_GAMMA:
                return eb.intervals.DEFAULT
            case KindName.SYMMETRIC:
                return eb.intervals.Symmetric()
            case KindName.WALD:
                return eb.intervals.WALD
            case KindName.ANYTIME:
                return eb.intervals.Anytime()

    def chosen_metrics(self) -> Sequence[eb.metrics.Metric]:
        """Return the metrics that the options name."""
        if self.metrics is None:
            return eb.metrics.ALL if self.every else eb.metrics.USUAL
        if self.every:
            raise DataError("--all names every metric and --metrics names some: leave out one of the two")
        return eb.metrics.chosen(name.strip() for name in self.metrics.split(","))


@dataclass(frozen=True, kw_only=True)
class Minima:
    """Options of the least values that metrics must reach."""

    panel: ClassVar = "Minima"

    min_precision: float | None = option("Least pairwise precision, such as 0.95.")
    min_recall: float | None = option("Least pairwise recall, such as 0.8.")
    minimum: list[str] | None = option(
        "Least value of any metric. Several are allowed.", "--min", metavar="METRIC=VALUE"
    )

    def read(self) -> dict[eb.metrics.Metric | str, float]:
        """Return the least value of each metric."""
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


class EngineName(Enum):
    """Engines of estimates."""

    CLOSED_FORM = "closed-form"
    BOOTSTRAP = "bootstrap"
    JACKKNIFE = "jackknife"
    SIZE_MODEL = "size-model"
    POOL = "pool"
    ADVISED = "advised"


@dataclass(frozen=True, kw_only=True)
class Engines(Analysis):
    """Options of the engine."""

    panel: ClassVar = "Metrics"

    engine: EngineName | None = option(
        "closed-form (the default), bootstrap, jackknife, size-model, pool, or advised, which says why.",
        metavar="ENGINE",
    )
    side_by_side: bool = flag("Closed form, bootstrap and size model in one table.")

    def __post_init__(self) -> None:
        if self.engine is not None and self.side_by_side:
            raise DataError("--side-by-side has engines of its own: leave out --engine")

    @property
    def option(self) -> str | None:
        """Name of the option that asks for another engine than the closed form."""
        if self.side_by_side:
            return "--side-by-side"
        return None if self.engine in (None, EngineName.CLOSED_FORM) else "--engine"

    def run(
        self, inputs: One, asked: Asked, sample: eb.Sample, metrics: Sequence[eb.metrics.Metric]
    ) -> Result:
        """Run the engines, with the alarms that they have of their own."""
        three = [EngineName.CLOSED_FORM, EngineName.BOOTSTRAP, EngineName.SIZE_MODEL]
        names = three if self.side_by_side else [self.engine or EngineName.CLOSED_FORM]
        made = {name.value: _make_engine(name) for name in names}
        if self.engine is EngineName.ADVISED:  # whether it has a model, the sample decides
            taken, _ = named_engines.advise(sample, metrics)
            if named_engines.fits_a_model(taken):
                message(COMPILES)
        found = {name: engine(sample, metrics, SEED) for name, engine in made.items()}
        alarms: list[str] = list(eb.alarms(sample, metrics))
        for engine in made.values():
            if isinstance(engine, engine_contract.Doubting):
                alarms += engine.alarms(sample, metrics, SEED)
        if self.side_by_side:
            return Result(eb.side_by_side(found, metrics, level=inputs.level).table(), "", alarms)
        ((name, result),) = found.items()
        # an engine that draws has an interval of its own, unless one is asked for
        own = self.option is not None and asked.interval is KindName.BETA_GAMMA
        return Result(result.table(inputs.level, None if own else asked.kind).reset_index(), name, alarms)


def _make_engine(name: EngineName) -> eb.engine.Engine:
    """Return the engine of a name. The room of models is loaded only for one."""
    engine = named_engines.find_engine(name.value)  # which refuses if its packages are missing
    if name in (EngineName.SIZE_MODEL, EngineName.POOL):
        message(COMPILES)
    return engine
