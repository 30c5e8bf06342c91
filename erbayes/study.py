"""Repeated-sampling studies: how far estimates and intervals can be trusted.

    study(populations, plans, sizes, estimators, metrics, repetitions=..., seed=...)

draws samples from known populations and asks every estimator about each. A *plan* draws a sample. An
*estimator* is an engine (see `erbayes.engine`), with its own kind of interval or with another one.
"""

from __future__ import annotations

import hashlib
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

from .arrays import FloatArray, IntArray
from .design import UniformClusters, UniformRecords
from .engine.contract import Engine, Estimator
from .errors import DataError
from .intervals import check_level, need_suitable
from .metrics import Metric, Wanted, chosen
from .progress import track
from .sample import Sample
from .simulate import Population
from .studyfile import StudyFile, code_of, named
from .uncertain import Tabled
from .units import Units

BLOCK = 250
"""Repetitions that are drawn, kept and resumed together."""
RUN = ("estimate", "lower", "upper", "failed", "seconds", "warned")


@dataclass(frozen=True, eq=False)
class Samples:
    """Many samples of n draws from one population, by one uniform design.

    Attributes
    ----------
    together : Sample
        All at once: the expansion has a leading axis of samples, its units are the whole population.
    """

    units: Units
    design: UniformRecords | UniformClusters
    unit: IntArray

    @cached_property
    def together(self) -> Sample:
        return Sample(self.units, self.design, self.design.expand_draws(self.units, self.unit))

    @cached_property
    def each(self) -> list[Sample]:
        """One by one, each with its own units only."""
        found = []
        for drawn in self.unit:
            chosen, unit = np.unique(drawn, return_inverse=True)
            taken = self.units.take(chosen)
            design = replace(self.design, draws=taken.ids[unit])
            found.append(Sample(taken, design, design.expand_draws(taken, unit)))
        return found


class Plan(Protocol):
    """A way of drawing samples of n units from a population."""

    def draw(self, units: Units, n: int, samples: int, rng: np.random.Generator) -> Samples: ...


@dataclass(frozen=True, slots=True)
class DrawRecords:
    """n records uniformly with replacement, each leading to its entity; repeats are kept as draws."""

    def draw(self, units: Units, n: int, samples: int, rng: np.random.Generator) -> Samples:
        before = units.records_before
        record = rng.integers(before[-1], size=(samples, n))
        return Samples(units, UniformRecords(), np.searchsorted(before, record, side="right") - 1)


@dataclass(frozen=True, slots=True)
class DrawClusters:
    """n entities uniformly with replacement."""

    def draw(self, units: Units, n: int, samples: int, rng: np.random.Generator) -> Samples:
        return Samples(units, UniformClusters(), rng.integers(len(units), size=(samples, n)))


@dataclass(frozen=True, slots=True)
class DrawDistinctClusters:
    """n entities uniformly without replacement."""

    def draw(self, units: Units, n: int, samples: int, rng: np.random.Generator) -> Samples:
        if n > len(units):
            raise DataError(f"{n} distinct entities from a population of {len(units)}")
        drawn = [rng.choice(len(units), n, replace=False) for _ in range(samples)]
        return Samples(units, UniformClusters(population=len(units)), np.array(drawn))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Study(Tabled):
    """Every estimate of a study.

    Attributes
    ----------
    runs : DataFrame
        One row a repetition, estimator and metric: population, plan, n, estimator, metric, truth,
        repetition, estimate, lower, upper, failed, seconds (of that estimator for all metrics), warned (1 if
        it raised a warning).
    level : float
    """

    runs: pd.DataFrame
    level: float

    def table(self) -> pd.DataFrame:
        """One row a cell, estimator and metric.

        bias and rmse of the estimate; coverage of the interval with its Monte Carlo standard error;
        its mean width and interval score, width + (2/α)(distance by which the truth is missed)
        (Gneiting and Raftery 2007, section 6.2); failures, which no other figure contains; mean
        seconds; warnings, the number of repetitions in which there were any.
        """
        runs = self.runs
        alpha = 1 - self.level
        miss = np.maximum(runs.lower - runs.truth, 0) + np.maximum(runs.truth - runs.upper, 0)
        width = runs.upper - runs.lower
        figures = pd.DataFrame(
            {
                "error": runs.estimate - runs.truth,
                "square": (runs.estimate - runs.truth) ** 2,
                "covered": (miss == 0).where(width.notna()).astype(float),
                "width": width,
                "interval_score": width + 2 / alpha * miss,
                "failed": runs.failed.astype(float),
                "seconds": runs.seconds,
                "warned": runs.warned,
            }
        )
        by = [runs[c] for c in ("population", "plan", "n", "estimator", "metric")]
        groups = figures.groupby(by, sort=False, observed=True)
        mean, count = groups.mean(), groups.count()
        table = pd.DataFrame(
            {
                "truth": runs.truth.groupby(by, sort=False, observed=True).first(),
                "repetitions": groups.size(),
                "failures": groups.failed.sum().astype(int),
                "bias": mean.error,
                "rmse": np.sqrt(mean.square),
                "coverage": mean.covered,
                "coverage_se": np.sqrt(mean.covered * (1 - mean.covered) / count.covered),
                "width": mean.width,
                "interval_score": mean.interval_score,
                "seconds": mean.seconds,
                "warnings": groups.warned.sum().astype(int),
            }
        )
        return table.reset_index()


def study(
    populations: Mapping[str, Population],
    plans: Mapping[str, Plan],
    sizes: Sequence[int],
    estimators: Mapping[str, Engine | Estimator],
    metrics: Wanted,
    *,
    repetitions: int,
    seed: int,
    level: float = 0.95,
    workers: int = 1,
    file: Path | str | None = None,
    progress: bool = True,
) -> Study:
    """Draw samples of known populations again and again, and ask every estimator about each.

    All estimators see the same samples. Each cell (population, plan, size) has its own stream of
    random numbers, derived from `seed` and its names: results do not depend on the number of workers,
    nor on which other cells and estimators there are.

    Parameters
    ----------
    populations, plans : mappings by name
    estimators : mapping, name -> Engine or Estimator
        An engine alone has the kind of interval of its results.
    sizes : sequence of int
        Numbers of draws.
    metrics : Metric or str, or several
    repetitions : int
    seed : int
    level : float in (0, 1)
    workers : int
        Processes; -1 for one a core.
    file : path, optional
        SQLite file that keeps finished blocks of 250 repetitions. A study that was stopped goes on
        there. A block is used again only if everything that it depends on is the same. See Notes.
    progress : bool
        Show a bar.

    Returns
    -------
    Study

    Raises
    ------
    DataError
        Fewer than 1 repetition; a level outside (0, 1); a file that is locked, damaged, read-only or not
        of a study.

    Warns
    -----
    UserWarning
        The file holds finished blocks of this study that other code made, or that are cut off.

    Notes
    -----
    A block depends on its population, names, number of draws, level and seed, and on code: the sources of
    erbayes, the versions of NumPy and SciPy, and plan, metrics and estimator. Their code is compared in
    its compiled form, with the functions, classes and values that it refers to by name, in closures and in
    fields. Comments do not matter. Other installed packages count by their version. Blocks of other code
    stay in the file. An estimator that counts its calls needs a field with `repr=False` for the count: a
    changed value elsewhere is taken for a changed estimator.

    Examples
    --------
    >>> from erbayes import engine, metrics, simulate
    >>> rng = np.random.default_rng(1)
    >>> people = simulate.simulate(simulate.Zeta(2.5, 30), simulate.Misattribution(0.1), 2000, rng)
    >>> found = study({"zeta": people}, {"records": DrawRecords()}, [100], {"closed": engine.Taylor()},
    ...               [metrics.pairwise_recall], repetitions=50, seed=1)
    >>> found.table()[["estimator", "metric", "repetitions", "failures"]]
      estimator           metric  repetitions  failures
    0    closed  pairwise-recall           50         0
    """
    if repetitions < 1:
        raise DataError(f"a study needs 1 repetition or more, not {repetitions}")
    check_level(level)
    metrics = chosen(metrics)
    asked = {e: Estimator.of(f) for e, f in estimators.items()}
    contents = {name: _content(p.units) for name, p in populations.items()}
    cells = [
        _Cell(
            name,
            populations[name].units,
            contents[name],
            plan_name,
            plans[plan_name],
            n,
            metrics,
            level,
            seed,
        )
        for name, plan_name, n in product(populations, plans, sizes)
    ]
    blocks = [
        (c, first, min(BLOCK, repetitions - first)) for c in cells for first in range(0, repetitions, BLOCK)
    ]
    code = {(p, e): code_of(plans[p], metrics, asked[e]) for p, e in product(plans, asked)}
    keys = [
        {e: c.asked(first, count, e, f) + code[c.plan_name, e] for e, f in asked.items()}
        for c, first, count in blocks
    ]
    shapes = [(count, len(metrics), len(RUN)) for _, _, count in blocks]
    with StudyFile(file) as kept:
        found = kept.load({k: shape for of, shape in zip(keys, shapes, strict=True) for k in of.values()})
        jobs = []
        for block, of in zip(blocks, keys, strict=True):
            lacking = {e: (of[e], f) for e, f in asked.items() if of[e] not in found}
            if lacking:
                jobs.append(joblib.delayed(_run)(*block, lacking))
        done = joblib.Parallel(n_jobs=workers, return_as="generator_unordered")(jobs)
        for runs in track(done, len(jobs), "study", progress):
            found |= runs
            kept.keep(runs)
    truths = {name: [p.value(m) for m in metrics] for name, p in populations.items()}
    return Study(
        pd.concat(
            [
                cell.frame(first, e, found[key], truths[cell.population])
                for (cell, first, _), of in zip(blocks, keys, strict=True)
                for e, key in of.items()
            ],
            ignore_index=True,
        ),
        level,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Cell:
    """A population, a plan and a size."""

    population: str
    units: Units
    content: str
    plan_name: str
    plan: Plan
    n: int
    metrics: tuple[Metric, ...]
    level: float
    seed: int

    def rng(self, first: int, *names: str) -> np.random.Generator:
        """Random numbers of the block of repetitions that starts at `first`."""
        key = repr((self.population, self.plan_name, self.n, first, names)).encode()
        words = np.frombuffer(hashlib.sha256(key).digest(), dtype=np.uint32)
        return np.random.default_rng([self.seed, *words.tolist()])

    def asked(self, first: int, count: int, name: str, estimator: Estimator) -> str:
        """A digest of what a block of one estimator's runs answers."""
        known = (
            self.population,
            self.content,
            self.plan_name,
            named(self.plan),
            self.n,
            name,
            named(estimator),
            [m.name for m in self.metrics],
            self.level,
            self.seed,
            first,
            count,
        )
        return hashlib.sha256(repr(known).encode()).hexdigest()

    def frame(self, first: int, name: str, runs: FloatArray, truth: Sequence[float]) -> pd.DataFrame:
        count, k, _ = runs.shape
        same = {"population": self.population, "plan": self.plan_name, "n": self.n, "estimator": name}
        return pd.DataFrame(
            {
                **same,
                "metric": np.tile([m.name for m in self.metrics], count),
                "truth": np.tile(truth, count),
                "repetition": np.repeat(np.arange(first, first + count), k),
                **dict(zip(RUN, runs.reshape(-1, len(RUN)).T, strict=True)),
            }
        )


def _content(units: Units) -> str:
    """A fingerprint of a population."""
    found = hashlib.sha256()
    for array in (units.unit, units.n, units.N, units.m, units.cluster):
        found.update(np.ascontiguousarray(array))
    return found.hexdigest()


def _run(
    cell: _Cell, first: int, count: int, estimators: Mapping[str, tuple[str, Estimator]]
) -> dict[str, FloatArray]:
    """Runs of each estimator by key, (count, metrics, figures): see `RUN`."""
    samples = cell.plan.draw(cell.units, cell.n, count, cell.rng(first))
    runs = {}
    for e, (key, estimator) in estimators.items():
        rng, run = cell.rng(first, e), np.full((count, len(cell.metrics), len(RUN)), np.nan)
        if getattr(estimator.engine, "together", False):
            start = time.perf_counter()
            _ask(estimator, samples.together, cell, rng, run)
            run[..., 4] = (time.perf_counter() - start) / count
        else:
            for own, sample in zip(run, samples.each, strict=True):
                start = time.perf_counter()
                _ask(estimator, sample, cell, rng, own)
                own[..., 4] = time.perf_counter() - start
        run[..., 3] = np.isnan(run[..., 0])
        runs[key] = run
    return runs


def _ask(
    estimator: Estimator, sample: Sample, cell: _Cell, rng: np.random.Generator, run: FloatArray
) -> None:
    """Write estimates and intervals into `run`; leave NaN if the estimator fails."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = estimator.engine(sample, cell.metrics, rng)
    except DataError:
        return
    finally:
        run[..., 5] = bool(caught)
    need_suitable(estimator.kind or found.kind, found)
    with suppress(DataError):
        run[..., 1:3] = found.interval(cell.level, estimator.kind)
        run[..., 0] = found.estimate
