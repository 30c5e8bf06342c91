"""The analyses of `erbayes estimate`. They exclude each other, so that a call makes one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import erbayes as eb

from .._internal.errors import DataError
from .lazily import pd
from .options import flag

if TYPE_CHECKING:
    from .asked import Asked
    from .inputs import One


class Result(NamedTuple):
    """What `erbayes estimate` prints: a table that a method made, after alarms."""

    table: pd.DataFrame
    method: str
    alarms: Sequence[str]


class Analysis:
    """Options that ask for one way of making estimates of a prediction."""

    @property
    def option(self) -> str | None:
        """Name of the option that asks for the analysis, None if none does."""
        raise NotImplementedError

    def refuse(self, inputs: One, asked: Asked) -> None:
        """Refuse inputs and options that do not go with the analysis, before anything is read."""
        return

    def of_scan(self, inputs: One) -> dict[str, Any]:
        """Return arguments of a scan that counts what the analysis needs."""
        return {}

    def run(
        self, inputs: One, asked: Asked, sample: eb.Sample, metrics: Sequence[eb.metrics.Metric]
    ) -> Result:
        """Estimate metrics from the sample of the inputs."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class WorstCases(Analysis):
    """The option of bounds of metrics, whatever the draws of a folder are that nobody resolved."""

    panel: ClassVar = "Design"

    worst: bool = flag(
        "Bounds of metrics, whatever the draws of a folder are that nobody resolved.",
        "--worst-cases",
        rare=True,
    )

    @property
    def option(self) -> str | None:
        return "--worst-cases" if self.worst else None

    def refuse(self, inputs: One, asked: Asked) -> None:
        """Refuse labels that do not say what draws are unresolved, and intervals that are not exact."""
        if inputs.returned is None:
            raise DataError(
                "--worst-cases needs a folder of erbayes draw as LABELS, which says what draws are unresolved"
            )
        if asked.interval.value not in ("beta-gamma", "anytime"):
            raise DataError(
                f"--worst-cases has exact intervals: leave out --interval {asked.interval.value}, or "
                "choose anytime"
            )

    def run(
        self, inputs: One, asked: Asked, sample: eb.Sample, metrics: Sequence[eb.metrics.Metric]
    ) -> Result:
        """Bound metrics by exact intervals of the best and the worst case."""
        if not isinstance(sample.design, eb.design.Responding):
            raise DataError(
                f"{inputs.labels} has no unresolved draws: each draw has a complete answer, or nobody "
                "has begun its task; leave out --worst-cases"
            )
        # the exact interval of a fixed number of draws stands for the default of --interval
        anytime = asked.interval.value == "anytime"
        kind = eb.engine.AnytimeBetting() if anytime else eb.engine.Betting()
        bounds = eb.labels.worst_cases(sample, metrics, inputs.level, kind)
        return Result(bounds.reset_index(), "worst cases", eb.alarms(sample, metrics))


def choose_analysis(*analyses: Analysis) -> Analysis:
    """Return the analysis that options ask for, the last one if they ask for none."""
    wanted = [analysis for analysis in analyses if analysis.option is not None]
    if len(wanted) > 1:
        names = ", ".join(str(analysis.option) for analysis in wanted)
        raise DataError(f"{names} ask for different analyses: leave out all but one")
    return [*wanted, analyses[-1]][0]
