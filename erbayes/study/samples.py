"""Samples of a study: what a plan draws, what an annotator makes of it, and the records behind it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pandas as pd

from .._internal.arrays import IntArray
from .._internal.errors import DataError
from ..design import ByPredictedSize, UniformClusters, UniformRecords
from ..design.contract import Design
from ..design.sample import Sample, need_sample
from ..labels import Annotator, draw, mislabel
from ..labels.drawing.plans import Plan, PlanBySize, Records, need_positive_total
from ..units.measuring import measure
from ..units.units import Units
from .populations import Population

MOST_DRAWS = 200_000
"""Draws that are fitted at once, since arrays of more take longer to come from memory than to compute."""


@dataclass(frozen=True, eq=False)
class Samples:
    """Many samples from one population, by one design.

    `unit`, (samples, n) or a list of rows, is the position of the unit of each draw. `batches` have many
    samples each, with all units, if the design has a method `expand_draws` for that, else there is none.
    `separate` has one sample each, with its own units. A design whose `draws` are None gets them.
    """

    units: Units
    design: Design
    unit: IntArray | list[IntArray]

    @cached_property
    def batches(self) -> list[Sample]:
        if not hasattr(self.design, "expand_draws") or isinstance(self.unit, list):
            return []
        step = max(1, MOST_DRAWS // max(1, self.unit.shape[1]))
        parts = (self.unit[first : first + step] for first in range(0, len(self.unit), step))
        return [Sample.many(self.units, self.design, part) for part in parts]

    @property
    def separate(self) -> list[Sample]:
        return [self.take_one(i) for i in range(len(self.unit))]

    def take_one(self, i: int) -> Sample:
        """Return the sample at position i."""
        distinct, unit = np.unique(self.unit[i], return_inverse=True)
        units, design = self.units.take(distinct), self.design
        if getattr(design, "draws", ()) is None:
            design = replace(design, draws=units.ids[unit])  # type: ignore[type-var]
        return Sample(units, design)


@runtime_checkable
class BatchPlan(Protocol):
    """A plan of one's own that draws many samples at once, of n draws each from all units of a population."""

    def draw_samples(self, units: Units, n: int, samples: int, rng: np.random.Generator) -> Samples: ...


StudyPlan = Plan | PlanBySize | BatchPlan | Callable[[Population, int, np.random.Generator], Sample]
AnnotatorLike = Annotator | Callable[[pd.Series, pd.Series, np.random.Generator], Any]


@dataclass(frozen=True, slots=True)
class UniformEntities:
    """Plan of a study: entities drawn uniformly, with replacement, so that repeats stay draws.

    Examples
    --------
    >>> from erbayes.study import populations
    >>> people = populations.simulate(populations.Zeta(2.5, 30), populations.Splits(0.2), 100, rng=1)
    >>> (sample,) = draw_samples(UniformEntities(), people.units, 5, 1, np.random.default_rng(1)).separate
    >>> len(sample.design.draws)
    5
    """

    def draw_samples(self, units: Units, n: int, samples: int, rng: np.random.Generator) -> Samples:
        return Samples(units, UniformClusters(), rng.integers(len(units), size=(samples, n)))


def draws_batches(plan: Any) -> bool:
    """Return whether `draw_samples` takes a plan."""
    return isinstance(plan, PlanBySize | BatchPlan) and not isinstance(plan, type)


def draw_samples(
    plan: PlanBySize | BatchPlan, units: Units, n: int, samples: int, rng: np.random.Generator
) -> Samples:
    """Draw many samples of n draws from a population at once.

    Parameters
    ----------
    plan : plan by predicted size, UniformEntities or BatchPlan
        `Records()` and other plans with chances by predicted size draw records with replacement, and take the
        entity of each.
    units : Units
        All units of the population.

    Raises
    ------
    DataError
        A plan that draws one sample at a time, or one that draws nothing.

    Examples
    --------
    >>> from erbayes.labels import Multipurpose
    >>> from erbayes.study import populations
    >>> people = populations.simulate(populations.Zeta(2.5, 30), populations.Splits(0.2), 100, rng=1)
    >>> draw_samples(Multipurpose(), people.units, 5, 3, np.random.default_rng(1)).unit.shape
    (3, 5)
    """
    if not draws_batches(plan):
        raise DataError(f"{plan!r} draws one sample at a time, in a study or by erbayes.labels.draw")
    if isinstance(plan, Records):
        of_record = np.repeat(np.arange(len(units)), units.size.astype(np.int64))
        return Samples(units, UniformRecords(), of_record[rng.integers(len(of_record), size=(samples, n))])
    if isinstance(plan, PlanBySize):
        if units.known is None:
            raise DataError("the sizes of predicted clusters are not known: chances are functions of them")
        column = plan.column(units.known)
        need_positive_total(column, units.known)
        ends = np.cumsum(units.column(column))
        unit = np.searchsorted(ends, rng.random((samples, n)) * ends[-1], side="right")
        # rounding may bring a place to the very end, behind which no unit has a chance
        return Samples(units, ByPredictedSize(column), np.minimum(unit, np.searchsorted(ends, ends[-1])))
    return plan.draw_samples(units, n, samples, rng)


def need_plan(plan: Any) -> None:
    """Refuse anything but a plan of a study."""
    if isinstance(plan, type) or not (draws_batches(plan) or hasattr(plan, "design") or callable(plan)):
        raise DataError(
            "a study draws by a plan of erbayes.labels, such as Records(), by UniformEntities(), or by a "
            f"function of a population, n and rng that returns a Sample, not by {plan!r}"
        )


def draw_one(plan: Any, population: Population, n: int, rng: np.random.Generator) -> Sample:
    """Draw one sample of n draws by any plan of a study, labelled without errors."""
    if draws_batches(plan):
        return draw_samples(plan, population.units, n, 1, rng).separate[0]
    if hasattr(plan, "design"):
        return population.label(draw(population.pred, plan, n=n, seed=int(rng.integers(2**63))))
    sample: Sample = plan(population, n, rng)
    need_sample(sample)
    return sample


def relabel(sample: Sample, people: Population, annotator: AnnotatorLike, rng: np.random.Generator) -> Sample:
    """Return a sample with the labels that an annotator makes of the true ones, by the same design."""
    if not sample.units.by_entity:
        raise DataError("annotators label entities; this plan draws predicted clusters")
    truth = people.true[people.true.isin(sample.units.ids)]
    if isinstance(annotator, Annotator):
        labels = mislabel(truth, people.pred, annotator, rng=rng)
    else:
        labels = annotator(truth, people.pred, rng)
    return Sample(measure(people.pred, labels), sample.design)
