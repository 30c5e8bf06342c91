"""Metrics under stated errors of labelling: an engine that undoes them, a grid of shares, tipping points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import pairwise
from math import isfinite
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from ..._internal.arrays import FloatArray, Seed, floats, generator
from ..._internal.errors import DataError, NotIdentified, number, whole
from ..._internal.progress import show_progress
from ...design.sample import Sample, need_sample
from ...engine.closed_form import Taylor
from ...engine.contract import Engine, Estimator
from ...labels import Annotator, KeptRecords, MissedPieces
from ...labels.annotators.error_models import restore
from ...metrics.definitions import Metric, MetricLike, resolve_metric, resolve_metrics
from ...metrics.uncertain import Draws, Normal, Tabled
from ...metrics.unseen import map_components
from .bias import PRF

PARTS = ("estimate", "lower", "upper")


@dataclass(frozen=True, slots=True)
class Restored:
    """An engine that estimates as if labelling errors were undone, by several draws of the true entities.

    `u`: share missed of pieces; `v`: share of single foreign records that were included.
    """

    u: float
    v: float
    engine: Engine = field(default_factory=Taylor)
    draws: int = 20  # their noise is then small beside the standard error

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> Normal | Draws:
        need_sample(sample)
        rng, model = generator(rng), Annotator(MissedPieces(self.u), KeptRecords(self.v))
        results = []
        for _ in range(self.draws):
            truth = Sample(restore(sample.units, model, rng), sample.design)
            results.append(self.engine(truth, metrics, rng))
        return averaged(results)


def averaged(results: Sequence[Normal | Draws]) -> Normal | Draws:
    """Return the average of several results of an engine: of moments of `Normal`, or all draws of `Draws`."""
    first, *others = results
    if not others:
        return first

    def mean(_: Any, *of_each: Any) -> Any:
        return of_each[0] if isinstance(of_each[0], tuple) else np.mean(of_each, axis=0)

    if isinstance(first, Normal):
        return map_components(mean, first, *[r for r in others if isinstance(r, Normal)])
    values = np.concatenate([result.flat for result in results if isinstance(result, Draws)])
    centre = np.mean([result.estimate for result in results], axis=0)
    return Draws(first.names, values[None], first.support, centre)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Grid(Tabled):
    """Metrics, (a, b, k), for shares missed `u` and shares kept `v`; NaN if no link is left."""

    names: tuple[str, ...]
    u: FloatArray
    v: FloatArray
    estimate: FloatArray
    lower: FloatArray
    upper: FloatArray
    level: float

    def table(self) -> pd.DataFrame:
        """Table of estimates and intervals, one row per metric and pair of shares."""
        index = pd.MultiIndex.from_product([self.u, self.v, self.names], names=["u", "v", "metric"])
        parts = {p: getattr(self, p).ravel() for p in PARTS}
        return pd.DataFrame(parts, index=index).reset_index()


def grid(
    sample: Sample,
    u: ArrayLike,
    v: ArrayLike,
    metrics: MetricLike = PRF,
    *,
    engine: Engine | Estimator | None = None,
    level: float = 0.95,
    draws: int = 20,
    rng: Seed = None,
    progress: bool = True,
) -> Grid:
    """Estimate metrics as if annotators had missed a share u and kept a share v.

    Parameters
    ----------
    u, v : sequences of float, in [0, 1)
        Shares missed, and shares kept. Every pair of them is a point of the grid.
    metrics : Metric or str, or several
    engine : Engine or Estimator, optional
        `Taylor()` by default. An engine without an `Estimator` has the kind of interval of its results.
    level : float in (0, 1)
    draws : int
        Draws of the true entities behind the labels, over which estimates are averaged.
    rng : Generator, int or None
        Every point of the grid starts from the same state, so that the grid is smooth.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({i: i // 3 for i in range(240)}, {i: i // 4 for i in range(120)})
    >>> sample = eb.Sample(units, eb.UniformRecords())
    >>> grid(sample, [0, 0.2], [0], [eb.metrics.pairwise_recall], rng=1).estimate[:, 0, 0].round(2)
    array([0.44, 0.38])
    """
    u, v = floats(u, "shares u"), floats(v, "shares v")
    if not (u.ndim == v.ndim == 1 and len(u) and len(v)):
        raise DataError("a grid needs a sequence of shares u and one of shares v")
    for shares, name in ((u, "u"), (v, "v")):
        if not ((shares >= 0) & (shares < 1)).all():
            raise DataError(f"shares {name} must lie in [0, 1), not {shares.tolist()}")
    need_sample(sample)
    metrics, rng, draws = resolve_metrics(metrics), generator(rng), whole(draws, "draws of a grid")
    estimator = Estimator.of(engine or Taylor())
    points = [(x, y) for x in u.tolist() for y in v.tolist()]
    values = np.full((len(points), len(PARTS), len(metrics)), np.nan)
    for i, (x, y) in enumerate(show_progress(points, len(points), "grid", progress)):
        try:
            # the same random numbers at each point, so that differences between points are no noise
            result = Restored(x, y, estimator.engine, draws)(sample, metrics, deepcopy(rng))
        except NotIdentified:
            if i == len(points) - 1 and np.isnan(values).all():
                raise
            continue
        values[i] = [result.estimate, *result.interval(level, estimator.kind).T]
    estimate, lower, upper = np.moveaxis(values, 1, 0).reshape(3, len(u), len(v), len(metrics))
    return Grid(tuple(m.name for m in metrics), u, v, estimate, lower, upper, level)


@dataclass(frozen=True, slots=True)
class Tipping:
    """The smallest shares of errors that bring a metric under a value, NaN if none up to .99 does so.

    `u`: share missed, if none is kept; `v`: share kept, if none is missed; `both`: if the two are equal.
    """

    metric: str
    under: float
    estimate: float
    u: float
    v: float
    both: float


STEPS = (*(i / 20 for i in range(20)), 0.99)
"""Shares between which a tipping point is looked for. Metrics fall smoothly, so that twenty are enough."""


def tipping(
    sample: Sample,
    metric: Metric | str,
    under: float,
    *,
    engine: Engine | None = None,
    draws: int = 20,
    rng: Seed = None,
) -> Tipping:
    """Find the smallest errors of labelling that bring an estimate under a stated value.

    Parameters
    ----------
    under : float
        The stated value, in the unit of the metric.
    engine : Engine, optional
        `Taylor()` by default.
    draws : int
        As for `grid`. Their noise is the same at every share.
    rng : Generator, int or None

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({i: i // 3 for i in range(240)}, {i: i // 4 for i in range(120)})
    >>> sample = eb.Sample(units, eb.UniformRecords())
    >>> round(tipping(sample, eb.metrics.pairwise_recall, 0.4, rng=1).u, 2)
    0.13
    """
    need_sample(sample)
    number(under, "under", isfinite, "be a finite number")
    metric, seed, draws = resolve_metric(metric), generator(rng), whole(draws, "draws of a tipping point")

    def above(u: float, v: float) -> float:
        adjusted = Restored(u, v, engine or Taylor(), draws)
        return float(adjusted(sample, [metric], deepcopy(seed)).estimate[0]) - under

    def root(path: Callable[[float], tuple[float, float]]) -> float:
        # step by step, since the metric may be 0/0 further out
        for low, high in pairwise(STEPS):
            try:
                if above(*path(high)) <= 0:
                    return float(brentq(lambda x: above(*path(x)), low, high, xtol=1e-6))
            except NotIdentified:  # no link is left
                break
        return np.nan

    start = above(0.0, 0.0)
    paths = (lambda x: (x, 0.0)), (lambda x: (0.0, x)), (lambda x: (x, x))
    u, v, both = (root(path) if start > 0 else 0.0 for path in paths)
    return Tipping(metric.name, under, start + under, u, v, both)
