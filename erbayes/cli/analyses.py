"""The analyses of `erbayes estimate`. They exclude each other, so that a call makes one of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import erbayes as eb

from .._internal.errors import DataError
from .asked import SEED, Asked, Engines, KindName
from .assist import Assist
from .domains import Domains
from .inputs import One
from .lazily import engine_contract, pd
from .phases import Cheap

if TYPE_CHECKING:
    from ..analysis.domains.estimates import ByDomain


class Result(NamedTuple):
    """What `erbayes estimate` prints: a table that a method made, after alarms."""

    table: pd.DataFrame
    method: str
    alarms: Sequence[str]


@dataclass(frozen=True)
class Analysis(ABC):
    """One way of making estimates of a prediction."""

    inputs: One
    asked: Asked

    def refuse(self) -> None:
        """Refuse inputs and options that do not go with the analysis, before anything is read."""
        return

    def of_scan(self) -> dict[str, Any]:
        """Return arguments of a scan that counts what the analysis needs."""
        return {}

    @abstractmethod
    def run(self, sample: eb.Sample, metrics: Sequence[eb.metrics.Metric]) -> Result:
        """Estimate metrics from the sample of the inputs."""


@dataclass(frozen=True)
class ByEngine(Analysis):
    """Estimates by the engine that --engine names, or by several side by side."""

    named: Engines

    def run(self, sample: eb.Sample, metrics: Sequence[eb.metrics.Metric]) -> Result:
        """Run the engines, with the alarms that they have of their own."""
        made = self.named.engines
        self.named.announce(sample, metrics)
        found = {name: engine(sample, metrics, SEED) for name, engine in made.items()}
        alarms: list[str] = list(eb.alarms(sample, metrics))
        for engine in made.values():
            if isinstance(engine, engine_contract.Doubting):
                alarms += engine.alarms(sample, metrics, SEED)
        level = self.inputs.level
        if self.named.side_by_side:
            return Result(eb.side_by_side(found, metrics, level=level).table(), "", alarms)
        ((name, result),) = found.items()
        # an engine that draws has an interval of its own, unless one is asked for
        own = self.named.given and self.asked.interval is KindName.BETA_GAMMA
        return Result(result.table(level, None if own else self.asked.kind).reset_index(), name, alarms)


@dataclass(frozen=True)
class ByGroup(Analysis):
    """Estimates for each group of --by, or of links across those of --across."""

    domains: Domains

    def of_scan(self) -> dict[str, Any]:
        """Return the groups that a scan counts."""
        return self.domains.of_scan(self.inputs)

    def run(self, sample: eb.Sample, metrics: Sequence[eb.metrics.Metric]) -> Result:
        """Estimate metrics of all groups jointly."""
        by = self.estimate(sample, metrics)
        alarms = [*by.alarms(), *eb.alarms(sample, metrics)]
        return Result(by.table(self.inputs.level, self.asked.kind), "closed-form", alarms)

    def estimate(self, sample: eb.Sample, metrics: Sequence[eb.metrics.Metric]) -> ByDomain:
        """Return the metrics of each group."""
        groups = self.domains.groups(self.inputs, [sample.units])
        known = self.domains.known(self.inputs, groups)
        return eb.by_domain(sample, groups, metrics, prediction=known.get(""), links=self.domains.links)


@dataclass(frozen=True)
class Helped(Analysis):
    """Estimates with the help of the second clusterings of --assist."""

    helped: Assist

    def refuse(self) -> None:
        """Refuse inputs without drawn records, and a second clustering that is the labels."""
        self.helped.refuse(self.inputs)

    def of_scan(self) -> dict[str, Any]:
        """Return the second clusterings that a scan counts."""
        return self.helped.of_scan(self.inputs)

    def run(self, sample: eb.Sample, metrics: Sequence[eb.metrics.Metric]) -> Result:
        """Estimate metrics, after alarms of the second clusterings too."""
        engine = self.helped.engine_of_one(self.inputs, sample.units)
        found = engine(sample, metrics)
        alarms = engine.of_prediction(sample) + found.alarms(sample, metrics)
        table = found.table(self.inputs.level, self.asked.kind)
        return Result(table.reset_index(), "assisted", alarms)


@dataclass(frozen=True)
class TwoPhases(Analysis):
    """Estimates with the cheap labels of --cheap, of which LABELS correct some."""

    cheap: Cheap

    def refuse(self) -> None:
        """Refuse designs without independent draws in their order."""
        self.cheap.refuse(self.inputs)

    def run(self, sample: eb.Sample, metrics: Sequence[eb.metrics.Metric]) -> Result:
        """Estimate metrics from both kinds of labels."""
        found = self.cheap.estimates(self.inputs, sample, metrics)
        table = found.table(self.inputs.level, self.asked.kind)
        return Result(table.reset_index(), "two phases", found.alarms(sample, metrics))


@dataclass(frozen=True)
class WorstCases(Analysis):
    """Bounds of metrics, whatever the draws of a folder are that nobody resolved."""

    def refuse(self) -> None:
        """Refuse labels that do not say what draws are unresolved, and intervals that are not exact."""
        if self.inputs.returned is None:
            raise DataError(
                "--worst-cases needs a folder of erbayes draw as LABELS, which says what draws are unresolved"
            )
        if self.asked.interval not in (KindName.BETA_GAMMA, KindName.ANYTIME):
            raise DataError(
                f"--worst-cases has exact intervals: leave out --interval {self.asked.interval.value}, or "
                "choose anytime"
            )

    def run(self, sample: eb.Sample, metrics: Sequence[eb.metrics.Metric]) -> Result:
        """Bound metrics by exact intervals of the best and the worst case."""
        if not isinstance(sample.design, eb.design.Responding):
            raise DataError(
                f"{self.inputs.labels} has no unresolved draws: each draw has a complete answer, or nobody "
                "has begun its task; leave out --worst-cases"
            )
        # the exact interval of a fixed number of draws stands for the default of --interval
        kind = eb.engine.Betting(anytime=self.asked.interval is KindName.ANYTIME)
        bounds = eb.labels.worst_cases(sample, metrics, self.inputs.level, kind)
        return Result(bounds.reset_index(), "worst cases", eb.alarms(sample, metrics))


def choose_analysis(
    inputs: One, asked: Asked, *, domains: Domains, helped: Assist, cheap: Cheap, named: Engines, worst: bool
) -> Analysis:
    """Return the analysis that options ask for, by the closed form if they ask for none."""
    analyses: dict[str, Analysis] = {}
    if worst:
        analyses["--worst-cases"] = WorstCases(inputs, asked)
    if domains.column is not None:
        analyses["--by" if domains.across is None else "--across"] = ByGroup(inputs, asked, domains)
    if helped.given:
        analyses["--assist" if helped.assist else "--assist-cluster"] = Helped(inputs, asked, helped)
    if cheap.cheap is not None:
        analyses["--cheap"] = TwoPhases(inputs, asked, cheap)
    if named.given:
        analyses["--side-by-side" if named.side_by_side else "--engine"] = ByEngine(inputs, asked, named)
    if len(analyses) > 1:
        raise DataError(f"{', '.join(analyses)} ask for different analyses: leave out all but one")
    return next(iter(analyses.values()), ByEngine(inputs, asked, named))
