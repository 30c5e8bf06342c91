"""Options of what is asked: metrics, kinds of interval, least values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, ClassVar

from .._internal.errors import DataError, head
from .lazily import definitions, intervals
from .options import flag, option

if TYPE_CHECKING:
    from ..metrics.definitions import Metric
    from ..metrics.intervals import Kind


class KindName(Enum):
    """Kind of interval."""

    BETA_GAMMA = "beta-gamma"
    SYMMETRIC = "symmetric"
    WALD = "wald"
    ANYTIME = "anytime"


def kinds() -> dict[KindName, Kind]:
    """Kinds of interval by name."""
    return {
        KindName.BETA_GAMMA: intervals.DEFAULT,
        KindName.SYMMETRIC: intervals.Symmetric(),
        KindName.WALD: intervals.WALD,
        KindName.ANYTIME: intervals.Anytime(),
    }


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
    def kind(self) -> Kind:
        """Return the kind of interval that --interval names."""
        return kinds()[self.interval]

    def chosen_metrics(self) -> Sequence[Metric]:
        """Return the metrics that the options name."""
        if self.metrics is None:
            return definitions.ALL if self.every else definitions.USUAL
        if self.every:
            raise DataError("--all names every metric and --metrics names some: leave out one of the two")
        return definitions.chosen(name.strip() for name in self.metrics.split(","))


@dataclass(frozen=True, kw_only=True)
class Minima:
    """Options of the least values that metrics must reach."""

    panel: ClassVar = "Minima"

    min_precision: float | None = option("Least pairwise precision, such as 0.95.")
    min_recall: float | None = option("Least pairwise recall, such as 0.8.")
    minimum: list[str] | None = option(
        "Least value of any metric. Several are allowed.", "--min", metavar="METRIC=VALUE"
    )

    def read(self) -> dict[Metric | str, float]:
        """Return the least value of each metric."""
        pairwise = {
            definitions.pairwise_precision.name: self.min_precision,
            definitions.pairwise_recall.name: self.min_recall,
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
