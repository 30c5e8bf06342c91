"""Options of metrics: which ones, their kind of interval, and their minima."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import erbayes as eb

from .._internal.errors import DataError, head
from .options import option, panel

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
