"""Studies by repeated sampling: how far estimates and intervals can be trusted.

`study` draws samples from populations whose truth is known by a *plan* of `erbayes.labels`, and gives each
sample to every *estimator*, an engine of `erbayes.engine` with a kind of interval.
"""

from __future__ import annotations

import hashlib
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Protocol

import joblib
import numpy as np
import pandas as pd

from .._internal.arrays import FloatArray, IntArray
from .._internal.errors import DataError
from .._internal.progress import show_progress
from ..design import ByPredictedSize, PoissonRecords, UniformClusters, UniformRecords
from ..design.sample import Sample
from ..engine.contract import Engine, Estimator
from ..labels.drawing.plans import PlanBySize, Poisson, Records, need_positive_total
from ..metrics.columns import ClusterSum
from ..metrics.definitions import Metric, MetricLike, resolve_metrics
from ..metrics.intervals import check_level, need_suitable
from ..metrics.uncertain import Tabled
from ..units.units import Units
from .finished import StudyFolder, code_of, plain_repr
from .populations import Population

BLOCK = 250
"""Number of repetitions that are drawn and stored together."""
RUN = ("estimate", "lower", "upper", "failed", "seconds", "warned")
"""Figures of a run, in the order of the last axis of its array."""


@dataclass(frozen=True, eq=False)
class Samples:
    """Many samples from one population, by one design.

    `unit` (samples, n): position of the unit of each draw; `batch`: all samples as one, whose expansion has a
    leading axis; `separate`: one sample each, with its own units only.
    """

    units: Units
    design: UniformRecords | UniformClusters | ByPredictedSize | PoissonRecords
    unit: IntArray | list[IntArray]

    @cached_property
    def batch(self) -> Sample | None:
        if isinstance(self.design, PoissonRecords):
            return None
        return Sample(self.units, self.design, self.design.expand_draws(self.units, np.asarray(self.unit)))

    @cached_property
    def separate(self) -> list[Sample]:
        if isinstance(self.design, PoissonRecords):
            return [Sample(self.units.take(row), self.design) for row in self.unit]
        samples = []
        for row in self.unit:
            distinct, unit = np.unique(row, return_inverse=True)
            units = self.units.take(distinct)
            design = replace(self.design, draws=units.ids[unit])
            samples.append(Sample(units, design, design.expand_draws(units, unit)))
        return samples


class OwnPlan(Protocol):
    """A way of drawing samples of n units from a population."""

    def draw_samples(self, units: Units, n: int, samples: int, rng: np.random.Generator) -> Samples:
        """Draw samples of n draws each from all units of a population."""


@dataclass(frozen=True, slots=True)
class UniformEntities:
    """Plan of a study: entities drawn uniformly, which takes a population whose entities are known.

    They are drawn with replacement, so that repeats stay draws.

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


def draw_samples(
    plan: PlanBySize | Poisson | OwnPlan, units: Units, n: int, samples: int, rng: np.random.Generator
) -> Samples:
    """Draw many samples of n draws from a population, by a plan of a study.

    Parameters
    ----------
    plan : plan of `erbayes.labels`, UniformEntities or OwnPlan
        `Records()` and other plans with chances by predicted size draw records with replacement, and take the
        entity of each. `Poisson` draws each record independently, n in expectation.
    units : Units
        All units of the population.

    Raises
    ------
    DataError
        A plan that needs records in an order or values of them, such as `Systematic()`; or one that draws
        nothing.

    Examples
    --------
    >>> from erbayes.labels import RootSize
    >>> from erbayes.study import populations
    >>> people = populations.simulate(populations.Zeta(2.5, 30), populations.Splits(0.2), 100, rng=1)
    >>> draw_samples(RootSize(), people.units, 5, 3, np.random.default_rng(1)).unit.shape
    (3, 5)
    """
    if isinstance(plan, type) or not (
        isinstance(plan, Poisson | PlanBySize) or hasattr(plan, "draw_samples")
    ):
        raise DataError(
            f"a study draws by chances of predicted size, such as Records() or RootSize(), by Poisson(), by "
            f"UniformEntities(), or by an object with a method draw_samples, not by {plan!r}"
        )
    if isinstance(plan, Poisson):
        design = PoissonRecords(_find_chance_column(plan.of, units), n)
        taken = rng.random((samples, len(units))) < design.included(units)
        return Samples(units, design, [np.flatnonzero(row) for row in taken])
    if isinstance(plan, Records):
        before = np.append(0, np.cumsum(units.size.astype(np.int64)))  # records in the units before each one
        record = rng.integers(before[-1], size=(samples, n))
        return Samples(units, UniformRecords(), np.searchsorted(before, record, side="right") - 1)
    if isinstance(plan, PlanBySize):
        column = _find_chance_column(plan, units)
        ends = np.cumsum(units.column(column))
        unit = np.searchsorted(ends, rng.random((samples, n)) * ends[-1], side="right")
        # rounding may bring a place to the very end, behind which no unit has a chance
        return Samples(units, ByPredictedSize(column), np.minimum(unit, np.searchsorted(ends, ends[-1])))
    return plan.draw_samples(units, n, samples, rng)


def _find_chance_column(plan: PlanBySize, units: Units) -> ClusterSum:
    """Return the column of chances of a plan, refusing one that draws nothing."""
    if units.known is None:
        raise DataError("the sizes of predicted clusters are not known: chances are functions of them")
    column = plan.column(units.known)
    need_positive_total(column, units.known)
    return column


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Study(Tabled):
    """All estimates of a study, `runs`, one row per repetition, estimator and metric."""

    runs: pd.DataFrame
    level: float

    def table(self) -> pd.DataFrame:
        """Summarise the runs, one row per population, plan, n, estimator and metric."""
        runs = self.runs
        miss = np.maximum(runs.lower - runs.truth, 0) + np.maximum(runs.truth - runs.upper, 0)
        width = runs.upper - runs.lower
        figures = runs.assign(
            error=runs.estimate - runs.truth,
            square=(runs.estimate - runs.truth) ** 2,
            covered=(miss == 0).where(width.notna()).astype(float),
            width=width,
            score=width + 2 / (1 - self.level) * miss,
        )
        by = ["population", "plan", "n", "estimator", "metric"]
        table = figures.groupby(by, sort=False, observed=True).agg(
            truth=("truth", "first"),
            repetitions=("truth", "size"),
            failures=("failed", "sum"),
            bias=("error", "mean"),
            rmse=("square", "mean"),
            coverage=("covered", "mean"),
            coverage_se=("covered", "count"),
            width=("width", "mean"),
            interval_score=("score", "mean"),
            seconds=("seconds", "mean"),
            warnings=("warned", "sum"),
        )
        table["rmse"] = np.sqrt(table["rmse"])
        table["coverage_se"] = np.sqrt(table["coverage"] * (1 - table["coverage"]) / table["coverage_se"])
        return table.astype({"failures": int, "warnings": int}).reset_index()


def study(
    populations: Mapping[str, Population],
    plans: Mapping[str, PlanBySize | Poisson | OwnPlan],
    sizes: Sequence[int],
    estimators: Mapping[str, Engine | Estimator],
    metrics: MetricLike,
    *,
    repetitions: int,
    seed: int,
    level: float = 0.95,
    folder: Path | str | None = None,
) -> Study:
    """Draw samples from known populations repeatedly, and compare every estimator with the truth.

    All estimators receive the same samples. Each cell (population, plan, size) has its own stream of random
    numbers, derived from `seed` and the names, so that results depend neither on the number of workers nor on
    other cells and estimators.

    Parameters
    ----------
    populations : mapping, name -> Population
    plans : mapping, name -> plan of `erbayes.labels`, UniformEntities or OwnPlan
        See `draw_samples`.
    sizes : sequence of int
        Numbers of draws.
    estimators : mapping, name -> Engine or Estimator
        An engine without an `Estimator` has the kind of interval of its results.
    metrics : Metric or str, or several
    repetitions : int
        Samples of each cell, 1 or more.
    level : float in (0, 1)
    folder : path, optional
        Folder of finished blocks of 250 repetitions, one file each, from which a study that was stopped
        continues. A block is used again only if everything that it depends on is the same (see Notes).

    Raises
    ------
    DataError
        A folder that cannot be written to, or a damaged file in it.

    Warns
    -----
    UserWarning
        The folder has finished blocks of this study that other code made.

    Notes
    -----
    A block depends on its population, names, number of draws, level and seed, and on code: the sources of
    erbayes, versions of other packages, and functions, classes and values to which the plan, the metrics and
    the estimator refer. Code is compared in its compiled form, so that comments do not matter. An estimator
    that counts its calls needs a field with `repr=False`.

    Several processes share the work in a block of `with joblib.parallel_config(n_jobs=2)`.

    Examples
    --------
    >>> from erbayes import engine, metrics
    >>> from erbayes.labels import Records
    >>> from erbayes.study import populations as simulate
    >>> rng = np.random.default_rng(1)
    >>> people = simulate.simulate(simulate.Zeta(2.5, 30), simulate.Misattribution(0.1), 2000, rng)
    >>> runs = study({"zeta": people}, {"records": Records()}, [100], {"closed": engine.Taylor()},
    ...              [metrics.pairwise_recall], repetitions=50, seed=1)
    >>> runs.table()[["estimator", "metric", "repetitions", "failures"]]
      estimator           metric  repetitions  failures
    0    closed  pairwise-recall           50         0
    """
    if repetitions < 1:
        raise DataError(f"a study needs 1 repetition or more, not {repetitions}")
    check_level(level)
    metrics = resolve_metrics(metrics)
    answering = {name: Estimator.of(engine) for name, engine in estimators.items()}
    cells = [
        _Cell(name, p.units, _hash_population(p.units), plan, plans[plan], n, metrics, level, seed)
        for name, p in populations.items()
        for plan, n in product(plans, sizes)
    ]
    blocks = [
        (c, first, min(BLOCK, repetitions - first)) for c in cells for first in range(0, repetitions, BLOCK)
    ]
    keys = _key_blocks(blocks, answering, stored=folder is not None)
    finished = _run_missing(blocks, keys, answering, StudyFolder(folder))
    truths = {name: [p.value(m) for m in metrics] for name, p in populations.items()}
    frames = [
        cell.frame(first, e, finished[key], truths[cell.population])
        for (cell, first, _), block_keys in zip(blocks, keys, strict=True)
        for e, key in block_keys.items()
    ]
    return Study(pd.concat(frames, ignore_index=True), level)


@dataclass(frozen=True, slots=True, eq=False)
class _Cell:
    """One cell of a study: a population, a plan and a number of draws."""

    population: str
    units: Units
    content: str
    plan_name: str
    plan: PlanBySize | Poisson | OwnPlan
    n: int
    metrics: tuple[Metric, ...]
    level: float
    seed: int

    def rng(self, first: int, *names: str) -> np.random.Generator:
        """Return the random numbers of the block of repetitions that starts at `first`."""
        key = repr((self.population, self.plan_name, self.n, first, names)).encode()
        # by names and not by positions, so that a study can be extended without changing what was drawn
        words = np.frombuffer(hashlib.sha256(key).digest(), dtype=np.uint32)
        return np.random.default_rng([self.seed, *words.tolist()])

    def question(self, first: int, count: int, name: str, estimator: Estimator) -> str:
        """Make a digest of all that fixes a block of one estimator's runs, except code."""
        cell = (self.population, self.content, self.plan_name, plain_repr(self.plan), self.n)
        answering = (name, plain_repr(estimator), [m.name for m in self.metrics], self.level)
        parts = (*cell, *answering, self.seed, first, count)
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def frame(self, first: int, name: str, runs: FloatArray, truth: Sequence[float]) -> pd.DataFrame:
        """Return runs, (count, metrics, figures), as rows of `Study.runs`."""
        count, k, _ = runs.shape
        return pd.DataFrame(
            {
                "population": self.population,
                "plan": self.plan_name,
                "n": self.n,
                "estimator": name,
                "metric": np.tile([m.name for m in self.metrics], count),
                "truth": np.tile(truth, count),
                "repetition": np.repeat(np.arange(first, first + count), k),
                **dict(zip(RUN, runs.reshape(-1, len(RUN)).T, strict=True)),
            }
        )


def _key_blocks(
    blocks: Sequence[tuple[_Cell, int, int]], estimators: Mapping[str, Estimator], stored: bool
) -> list[dict[str, str]]:
    """Return the key of each estimator in each block: all that its runs depend on, and its code."""
    plans = {cell.plan_name: cell for cell, _, _ in blocks}
    code = {
        (p, e): code_of(plans[p].plan, plans[p].metrics, estimators[e]) if stored else ""
        for p, e in product(plans, estimators)
    }
    return [
        {e: f"{c.question(first, count, e, f)}-{code[c.plan_name, e]}" for e, f in estimators.items()}
        for c, first, count in blocks
    ]


def _run_missing(
    blocks: Sequence[tuple[_Cell, int, int]],
    keys: Sequence[Mapping[str, str]],
    estimators: Mapping[str, Estimator],
    store: StudyFolder,
) -> dict[str, FloatArray]:
    """Return the runs of all blocks by key: those in the store, and the others, which are put into it."""
    finished, jobs = store.load(key for block_keys in keys for key in block_keys.values()), []
    for block, block_keys in zip(blocks, keys, strict=True):
        missing = {e: (block_keys[e], f) for e, f in estimators.items() if block_keys[e] not in finished}
        if missing:
            jobs.append(joblib.delayed(_run)(*block, missing))
    # in any order, so that finished blocks are stored at once and a study that is stopped can go on
    results = joblib.Parallel(return_as="generator_unordered")(jobs)
    for runs in show_progress(results, len(jobs), "study", sys.stderr.isatty()):
        finished |= runs
        store.keep(runs)
    return finished


def _hash_population(units: Units) -> str:
    """Make a digest of a population."""
    digest = hashlib.sha256()
    for array in (units.unit, units.n, units.N, units.m, units.cluster):
        digest.update(np.ascontiguousarray(array))
    return digest.hexdigest()


def _run(
    cell: _Cell, first: int, count: int, estimators: Mapping[str, tuple[str, Estimator]]
) -> dict[str, FloatArray]:
    """Draw a block of samples, and return the figures `RUN` of each estimator, (count, metrics, figures)."""
    samples = draw_samples(cell.plan, cell.units, cell.n, count, cell.rng(first))
    runs = {}
    for e, (key, estimator) in estimators.items():
        rng, run = cell.rng(first, e), np.full((count, len(cell.metrics), len(RUN)), np.nan)
        if getattr(estimator.engine, "batched", False) and samples.batch is not None:
            start = time.perf_counter()
            _estimate(estimator, samples.batch, cell, rng, run)
            run[..., 4] = (time.perf_counter() - start) / count
        else:
            for row, sample in zip(run, samples.separate, strict=True):
                start = time.perf_counter()
                _estimate(estimator, sample, cell, rng, row)
                row[..., 4] = time.perf_counter() - start
        run[..., 3] = np.isnan(run[..., 0])
        runs[key] = run
    return runs


def _estimate(
    estimator: Estimator, sample: Sample, cell: _Cell, rng: np.random.Generator, run: FloatArray
) -> None:
    """Write estimates and intervals into `run`. They stay NaN if the estimator fails."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            estimates = estimator.engine(sample, cell.metrics, rng)
    except DataError:
        return
    finally:
        run[..., 5] = bool(caught)
    need_suitable(estimator.kind or estimates.kind, estimates)
    with suppress(DataError):
        run[..., 1:3] = estimates.interval(cell.level, estimator.kind)
        run[..., 0] = estimates.estimate
