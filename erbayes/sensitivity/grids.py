"""What metrics would be under stated errors of labelling: grids of them, and tipping points."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from ..arrays import FloatArray, Seed, floats, generator
from ..engine.closed_form import Taylor
from ..engine.contract import Engine
from ..errors import DataError, NotIdentified, number
from ..intervals import Kind
from ..metrics import Metric, Wanted, chosen
from ..progress import track
from ..sample import Sample, need_sample
from ..uncertain import Tabled
from .adjusted import Adjusted
from .adjustments import Adjustment, Corrected
from .laws import PRF

PARTS = ("estimate", "lower", "upper")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Grid(Tabled):
    """Metrics over shares missed and kept.

    Attributes
    ----------
    names : tuple of str, (k,)
    u, v : float arrays, (a,), (b,)
    estimate, lower, upper : float arrays, (a, b, k)
        NaN where no link would be left, or where the closed form breaks down.
    level : float
    """

    names: tuple[str, ...]
    u: FloatArray
    v: FloatArray
    estimate: FloatArray
    lower: FloatArray
    upper: FloatArray
    level: float

    def table(self) -> pd.DataFrame:
        """One row a metric and pair of shares."""
        index = pd.MultiIndex.from_product([self.u, self.v, self.names], names=["u", "v", "metric"])
        parts = {p: getattr(self, p).ravel() for p in PARTS}
        return pd.DataFrame(parts, index=index).reset_index()


def grid(
    sample: Sample,
    u: ArrayLike,
    v: ArrayLike,
    metrics: Wanted = PRF,
    *,
    adjust: Adjustment | None = None,
    engine: Engine | None = None,
    kind: Kind | None = None,
    level: float = 0.95,
    rng: Seed = None,
    progress: bool = True,
) -> Grid:
    """Estimate metrics as if annotators had missed a share u and kept a share v.

    Parameters
    ----------
    sample : Sample
    u, v : sequences of float, in [0, 1)
    metrics : Metric or str, or several
    adjust : Adjustment, optional
        `Corrected()` by default.
    engine : Engine, optional
        `Taylor()` by default.
    kind : Kind, optional
        Of interval; by default that of the engine's results.
    level : float in (0, 1)
    rng : Generator, int or None
        Every point of the grid starts from the same state, so that it is smooth.
    progress : bool

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({i: i // 3 for i in range(24)}, {i: i // 4 for i in range(12)})
    >>> sample = eb.Sample(units, eb.UniformRecords())
    >>> found = grid(sample, [0, 0.2], [0], [eb.metrics.pairwise_recall], rng=np.random.default_rng(1))
    >>> found.estimate[:, 0, 0].round(2)
    array([0.44, 0.39])
    """
    u, v = floats(u, "shares u"), floats(v, "shares v")
    if not (u.ndim == v.ndim == 1 and len(u) and len(v)):
        raise DataError("a grid needs a sequence of shares u and one of shares v")
    need_sample(sample)
    metrics, rng, adjust = chosen(metrics), generator(rng), adjust or Corrected()
    points = [(x, y) for x in u.tolist() for y in v.tolist()]
    found = np.full((len(points), len(PARTS), len(metrics)), np.nan)
    for i, (x, y) in enumerate(track(points, len(points), "grid", progress)):
        try:
            one = Adjusted(adjust, x, y, engine or Taylor())(sample, metrics, deepcopy(rng))
        except NotIdentified:
            if i == len(points) - 1 and np.isnan(found).all():
                raise
            continue
        found[i] = [one.estimate, *one.interval(level, kind).T]
    estimate, lower, upper = np.moveaxis(found, 1, 0).reshape(3, len(u), len(v), len(metrics))
    return Grid(tuple(m.name for m in metrics), u, v, estimate, lower, upper, level)


@dataclass(frozen=True, slots=True)
class Tipping:
    """The smallest error that brings a metric under a value.

    NaN where none below .99 does, or none at which the closed form still holds (see `breaks_down`).

    Attributes
    ----------
    metric : str
    under, estimate : float
        The stated value, and the estimate where labels are perfect.
    u, v, both : float
        Share missed where none is kept, share kept where none is missed, both shares where they are equal.
    """

    metric: str
    under: float
    estimate: float
    u: float
    v: float
    both: float


STEPS = (*(i / 20 for i in range(20)), 0.99)


def tipping(
    sample: Sample,
    metric: Metric | str,
    under: float,
    *,
    adjust: Adjustment | None = None,
    engine: Engine | None = None,
    rng: Seed = None,
) -> Tipping:
    """The smallest error of labelling that brings an estimate under a stated value.

    Parameters
    ----------
    sample : Sample
    metric : Metric or str
    under : float
    adjust : Adjustment, optional
        `Corrected()` by default. `Restored` has noise of its restorations, the same at every share.
    engine : Engine, optional
        `Taylor()` by default.
    rng : Generator, int or None

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({i: i // 3 for i in range(24)}, {i: i // 4 for i in range(12)})
    >>> sample = eb.Sample(units, eb.UniformRecords())
    >>> found = tipping(sample, eb.metrics.pairwise_recall, 0.4, rng=np.random.default_rng(1))
    >>> round(found.u, 2)  # but for the correction of bias: R_obs = 4/9, 1 - (5/4) (.4/.6)
    0.16
    """
    need_sample(sample)
    number(under, "under", isfinite, "be a finite number")
    (metric,), adjust, start_of = chosen(metric), adjust or Corrected(), generator(rng)

    def above(u: float, v: float) -> float:
        adjusted = Adjusted(adjust, u, v, engine or Taylor())
        return float(adjusted(sample, [metric], deepcopy(start_of)).estimate[0]) - under

    def root(path: Callable[[float], tuple[float, float]]) -> float:
        for low, high in pairwise(STEPS):
            try:
                if above(*path(high)) <= 0:
                    return float(brentq(lambda x: above(*path(x)), low, high, xtol=1e-6))
            except NotIdentified:  # no link is left, or the closed form breaks down
                break
        return np.nan

    start = above(0.0, 0.0)
    paths = (lambda x: (x, 0.0)), (lambda x: (0.0, x)), (lambda x: (x, x))
    u, v, both = (root(path) if start > 0 else 0.0 for path in paths)
    return Tipping(metric.name, under, start + under, u, v, both)
