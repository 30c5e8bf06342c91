"""Studies by repeated sampling: how far estimates and intervals can be trusted.

`study` draws samples from populations whose truth is known by a *plan*, lets an *annotator* label them, and
gives each sample to every *estimator*, an engine of `erbayes.engine` with a kind of interval.
"""

from __future__ import annotations

import hashlib
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import batched, product
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pandas as pd

from .._internal.arrays import IntArray
from .._internal.errors import DataError, NotIdentified, show_progress, whole
from ..design import ByPredictedSize, UniformClusters, UniformRecords
from ..design.contract import Design
from ..design.sample import Sample, need_sample
from ..engine.named import Engine, Estimator, adapt_to_study, find_engine
from ..labels import Annotator, draw, mislabel
from ..labels.plans import Plan, PlanBySize, Records, need_positive_total
from ..metrics.definitions import Metric, MetricLike, resolve_metrics
from ..metrics.estimates import EMPTY
from ..metrics.intervals import check_level, need_suitable
from ..units.measuring import measure
from ..units.units import Units
from .measures import CELL, Study, name_bounds
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
        `Records()` and other plans by predicted size draw records with replacement, and take their entities.
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


BLOCK = 250
"""Number of repetitions that are drawn together."""
PopulationLike = Population | Callable[[np.random.Generator], Population]
Answers = Mapping[str, tuple[Any, Any]]
"""Figures of estimators by name, (..., k, columns), and their reasons and kinds of interval, (..., k, 2)."""


def study(
    populations: Mapping[str, PopulationLike],
    plans: Mapping[str, StudyPlan],
    sizes: Sequence[int],
    estimators: Mapping[str, Engine | Estimator | str],
    metrics: MetricLike,
    *,
    repetitions: int,
    seed: int,
    level: float | Sequence[float] = 0.95,
    annotators: Mapping[str, AnnotatorLike | None] | None = None,
) -> Study:
    """Draw samples from known populations repeatedly, and compare every estimator with the truth.

    All estimators and all annotators get the same samples. Random numbers follow from `seed` and the names of
    population, plan and size, so that results depend neither on the number of workers nor on what else is
    studied. Workers share it in a block of `with joblib.parallel_config(n_jobs=2)`. docs/guide/own-study.md
    says what a plan, an engine, an interval and an annotator have to be.

    Parameters
    ----------
    populations : mapping, name -> Population or function
        A function of a Generator draws the population anew in each repetition. If it draws parameters from a
        prior, the study is simulation-based calibration (see `Study.tree`).
    plans : mapping, name -> plan of `erbayes.labels`, UniformEntities or function
        A function of a population, n and a Generator returns a `Sample`.
    sizes : sequence of int
        Numbers of draws.
    estimators : mapping, name -> Engine, Estimator or name of an engine
        An engine has the kind of interval of its results. Estimators with equal engines share each fit. A
        size model gives each sample 250 draws, unless you say how many, and is compiled in each process.
    metrics : Metric or str, or several
    repetitions : int
        Samples of each cell, 1 or more.
    level : float in (0, 1), or several
        Levels of intervals. The first is that of coverage; several give weighted interval scores and PIT.
    annotators : mapping, name -> Annotator, function or None, optional
        A function of true labels, prediction and a Generator returns labels; None, the default, errs never.

    Examples
    --------
    >>> from erbayes import engine, metrics
    >>> from erbayes.labels import Records
    >>> from erbayes.study import populations as simulate
    >>> people = simulate.simulate(simulate.Zeta(2.5, 30), simulate.Misattribution(0.1), 2000, 1)
    >>> trial = study({"zeta": people}, {"records": Records()}, [100], {"closed": engine.Taylor()},
    ...               [metrics.pairwise_recall], repetitions=50, seed=1)
    >>> trial.table()[["estimator", "metric", "repetitions", "failures"]]
      estimator           metric  repetitions  failures
    0    closed  pairwise-recall           50         0
    """
    repetitions, metrics = whole(repetitions, "repetitions of a study"), resolve_metrics(metrics)
    levels = tuple(level) if isinstance(level, Sequence) else (level,)
    for one in levels:
        check_level(one)
    for plan in plans.values():
        need_plan(plan)
    asked = {
        name: Estimator.of(find_engine(engine) if isinstance(engine, str) else engine)
        for name, engine in estimators.items()
    }
    fixed = {name: people for name, people in populations.items() if isinstance(people, Population)}
    truths = {name: {m.name: people.value(m) for m in metrics} for name, people in fixed.items()}
    cells = [
        _Cell((p, d, n, a), populations[p], truths.get(p), plans[d], annotator, levels, seed)
        for p, d, n in product(populations, plans, sizes)
        for a, annotator in (annotators or {"": None}).items()
    ]
    frames = _run_cells(cells, asked, metrics, repetitions)
    runs = pd.concat(frames, ignore_index=True)
    for i, name in enumerate(CELL if annotators else CELL[:-1]):
        runs.insert(i, name, np.repeat([cell.key[i] for cell in cells], [len(frame) for frame in frames]))
    return Study(runs, levels[0])


@dataclass(frozen=True, eq=False)
class _Cell:
    """One cell of a study; `key` has the names of its population, plan, number of draws and annotator."""

    key: tuple[str, str, int, str]
    population: PopulationLike
    truths: Any
    plan: Any
    annotator: AnnotatorLike | None
    levels: tuple[float, ...]
    seed: int

    def rng(self, first: int, *names: str) -> np.random.Generator:
        """Return the random numbers of the repetitions that start at `first`, the same for all annotators."""
        key = repr((*self.key[:3], first, names)).encode()
        # by names and not by positions, so that a study can be extended without changing what was drawn
        words = np.frombuffer(hashlib.sha256(key).digest(), dtype=np.uint32)
        return np.random.default_rng([self.seed, *words.tolist()])

    def draw_each(self, many: Samples | None, repetitions: Sequence[int]) -> Iterator[tuple[Population, Any]]:
        """Yield the population and the labelled sample of each repetition, or the error why there is none."""
        for i, repetition in enumerate(repetitions):
            people = self.population
            if not isinstance(people, Population):
                people = people(self.rng(repetition, "population"))
            try:
                rng = self.rng(repetition)
                sample = many.take_one(i) if many else draw_one(self.plan, people, self.key[2], rng)
                if self.annotator is not None:
                    rng = self.rng(repetition, "annotator", self.key[3])
                    sample = relabel(sample, people, self.annotator, rng)
                yield people, sample
            except DataError as error:
                yield people, error


@dataclass(frozen=True, eq=False)
class _Asked:
    """What one engine is asked: metrics, and the estimators that read its results, by name."""

    engine: Engine
    metrics: tuple[Metric, ...]
    estimators: dict[str, Estimator]


def _run_cells(
    cells: Sequence[_Cell], estimators: Mapping[str, Estimator], metrics: tuple[Metric, ...], repetitions: int
) -> list[pd.DataFrame]:
    """Return the runs of each cell, in the order of estimators, repetitions and metrics."""
    import joblib  # which reports need not load, though they know of populations

    asked: dict[Any, _Asked] = {}
    for name, estimator in estimators.items():  # equal engines are asked once
        new = _Asked(adapt_to_study(estimator.engine), metrics, {})
        asked.setdefault(_find_key(estimator.engine), new).estimators[name] = estimator
    blocks = [range(first, min(first + BLOCK, repetitions)) for first in range(0, repetitions, BLOCK)]
    jobs = [joblib.delayed(_run)(cell, block, list(asked.values())) for cell in cells for block in blocks]
    results = joblib.Parallel(return_as="generator")(jobs)
    found = show_progress(results, len(jobs), "study", sys.stderr.isatty())
    order = {name: i for i, name in enumerate(estimators)}
    runs = []
    for of_cell in batched(found, len(blocks)):
        frame = pd.concat(map(pd.DataFrame, of_cell), ignore_index=True)
        runs.append(frame.sort_values("estimator", key=lambda names: names.map(order), kind="stable"))
    return runs


def _find_key(engine: Engine) -> Any:
    """Return what equal engines have in common: themselves, or the identity of one without a hash."""
    with suppress(TypeError):
        hash(engine)
        return engine
    return id(engine)


def _run(cell: _Cell, repetitions: range, asked: Sequence[_Asked]) -> dict[str, Any]:
    """Return columns of runs of a block of repetitions, by estimator, repetition and metric."""
    many, apart, answers, first = None, list[_Asked](), dict[str, Any](), repetitions[0]
    if isinstance(cell.population, Population) and draws_batches(cell.plan):  # others are drawn one by one
        n, count = cell.key[2], len(repetitions)
        many = draw_samples(cell.plan, cell.population.units, n, count, cell.rng(first))
    batches = [] if many is None or cell.annotator is not None else many.batches
    for a in asked:
        if batches and getattr(a.engine, "batched", False):
            rng, k = cell.rng(first, "engine"), len(a.metrics)
            found = [_ask(a, batch, rng, cell.levels, (*batch.leading, k)) for batch in batches]
            for name in a.estimators:
                answers[name] = [np.concatenate(x) for x in zip(*(part[name] for part in found), strict=True)]
        else:
            apart.append(a)
    metrics, truths, each = {m for a in asked for m in a.metrics}, [cell.truths] * len(repetitions), []
    for j, (people, sample) in enumerate(cell.draw_each(many, repetitions) if apart else ()):
        truths[j] = cell.truths or {metric.name: _find_truth(people, metric) for metric in metrics}
        of_run = dict[str, Any]()
        for a in apart:
            of_run |= _ask(a, sample, cell.rng(repetitions[j], "engine"), cell.levels, (len(a.metrics),))
        each.append(of_run)
    for name in each[0] if each else ():
        answers[name] = [np.stack(parts) for parts in zip(*(of_run[name] for of_run in each), strict=True)]
    parts = []
    for name, metric_names in ((name, [m.name for m in a.metrics]) for a in asked for name in a.estimators):
        truth = [of_run[metric] for of_run in truths for metric in metric_names]
        named = np.repeat(name, len(truth)), np.tile(metric_names, len(repetitions))
        figures, told = answers[name]
        counted = np.repeat(repetitions, len(metric_names)), truth, *told.reshape(-1, 2).T
        parts.append((*named, *counted, figures.reshape(len(truth), -1)))
    *columns, reason, kind, figures = (np.concatenate(part) for part in zip(*parts, strict=True))
    frame = dict(zip(("estimator", "metric", "repetition", "truth"), columns, strict=True))
    names = ("estimate", "se", *name_bounds(cell.levels), "seconds", "warned")
    reason[np.isnan(frame["truth"])] = "it is 0/0 in this population"
    return frame | dict(zip(names, figures.T, strict=True)) | {"reason": reason, "kind": kind}


def _find_truth(population: Population, metric: Metric) -> float:
    with suppress(NotIdentified):
        return population.value(metric)
    return np.nan


def _ask(
    asked: _Asked, sample: Any, rng: np.random.Generator, levels: Sequence[float], shape: tuple[int, ...]
) -> Answers:
    """Return the answers of an engine about a sample, several as one, or the error why there is none."""
    found, start, why = None, time.perf_counter(), sample if isinstance(sample, DataError) else None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = asked.engine(sample, asked.metrics, rng) if why is None else None
        except DataError as error:
            why = error
    if isinstance(why, NotIdentified) and why is not sample and len(asked.metrics) > 1:
        # a metric that no draws identify must not take the others with it
        parts = [_Asked(asked.engine, (metric,), asked.estimators) for metric in asked.metrics]
        apart = [_ask(part, sample, rng, levels, (*shape[:-1], 1)) for part in parts]
        of_all = {name: zip(*(answers[name] for answers in apart), strict=True) for name in asked.estimators}
        return {name: (np.concatenate(x, -2), np.concatenate(y, -2)) for name, (x, y) in of_all.items()}
    seconds, answers = time.perf_counter() - start, {}
    for name, estimator in asked.estimators.items():
        start, figures = time.perf_counter(), np.full((*shape, 4 + 2 * len(levels)), np.nan)
        told = np.full((*shape, 2), "", dtype=object)
        told[..., 0] = str(why or EMPTY)
        if found is not None:
            need_suitable(estimator.kind or found.kind, found)
            try:
                bounds = [found.interval(level, estimator.kind) for level in levels]
                figures[..., 0], figures[..., 1] = found.estimate, found.sd
                figures[..., 2:-2] = np.concatenate(bounds, axis=-1)
                if np.isnan(found.estimate).any():
                    told[..., 0] = [reason or EMPTY for reason in found.reasons]
                told[..., 1] = [found.name_kind(j, estimator.kind) for j in range(len(found.names))]
            except DataError as error:
                figures[..., :2], told[..., 0] = np.nan, str(error)
        told[~np.isnan(figures[..., 0]), 0] = ""
        told[np.isnan(figures[..., 2]), 1] = ""
        samples = shape[0] if len(shape) > 1 else 1
        figures[..., -2:] = (seconds + time.perf_counter() - start) / samples, bool(caught)
        answers[name] = figures, told
    return answers
