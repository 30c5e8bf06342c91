"""How much of an estimate rests on labels being perfect: grids, tipping points, probabilistic bias analysis.

With u the share of records elsewhere that are missed and v the share of foreign records of the home cluster
that are kept (`erbayes.labelling`), the totals TP, |T|, |P| that labels give are, to first order, linear in u
and v with slopes that are totals themselves. A `Law` names these; `corrected` turns a metric into the one
that true labels would have given, to be estimated by any engine. For draws proportional to size

    P = (P_obs - v)/(1 - v),    R = R_obs (1 - u)/(1 - u R_obs) at v = 0,

hence P_obs - P = v (1 - P) and R_obs - R ≈ u R (1 - R). `Restored` instead draws true entities behind the
labels and estimates from them: no linearisation, any design, any error model.

Source of the analysis: Lash, Fox and Fink (2009), Applying Quantitative Bias Analysis to Epidemiologic Data.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import stdtrit

from . import units as u_
from .bootstrap import PseudoDraws, Scheme, bootstrap
from .clustering import BoolArray, DataError, FloatArray
from .design import Design, DistinctEntities, Stratified, UniformClusters, UniformRecords, WeightedRecords
from .estimate import Alarm
from .labelling import Annotator, KeptRecords, MissedPieces, Rate, drawn, mislabel, restore
from .metrics import Metric, Value, pairwise_f, pairwise_precision, pairwise_recall
from .progress import track
from .sample import Sample
from .study import Estimates, Estimator, Taylor
from .taylor import taylor
from .uncertain import Draws, Tabled, Totals, natural_scale
from .units import COMMON_LINKS, PREDICTED_LINKS, TRUE_LINKS, Column, NotIdentified, PieceSum

PARTS = ("estimate", "lower", "upper")
PRF = (pairwise_precision, pairwise_recall, pairwise_f())
LINKS: tuple[Column, ...] = (COMMON_LINKS, TRUE_LINKS, PREDICTED_LINKS)


# First-order laws


def _nothing(n: FloatArray, N: FloatArray, m: FloatArray) -> FloatArray:
    return np.zeros_like(n)


NOTHING = PieceSum("nothing", _nothing)
_MISSING = PieceSum("missing_links", lambda n, N, m: n * (N - n) / 2)
_FALSE = PieceSum("false_links", lambda n, N, m: n * (m - n) / 2)
_AWAY_COMMON = PieceSum("away_common", lambda n, N, m: (1 - n / N) * u_.pairs(n))
_AWAY_TRUE = PieceSum("away_true", lambda n, N, m: (1 - n / N) * (n * (N - n) + u_.pairs(n)))
_AWAY_PREDICTED = PieceSum("away_predicted", lambda n, N, m: (1 - n / N) * n * (m - 1) / 2)
_KEPT_COMMON = PieceSum("kept_common", lambda n, N, m: n / N * (m - n) * n)
_KEPT_TRUE = PieceSum("kept_true", lambda n, N, m: n * (m - n))
_KEPT_PREDICTED = PieceSum("kept_predicted", lambda n, N, m: n / N * (m - n) * (m - 1) / 2)
_KEPT_PAIRS = PieceSum("kept_pairs", lambda n, N, m: n / N * u_.pairs(m - n))


@dataclass(frozen=True, slots=True)
class Law:
    """How the totals TP, |T| and |P| respond to errors; each field holds a column for each of the three.

    With odds o(x) = x/(1-x), true totals are observed + o(u) missed - o(v) kept + o(v)² again.

    Attributes
    ----------
    missed, kept, again : tuple of Column, (3,)
    """

    missed: tuple[Column, Column, Column]
    kept: tuple[Column, Column, Column]
    again: tuple[Column, Column, Column] = (NOTHING, NOTHING, NOTHING)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The distinct columns, those of observed links first."""
        return tuple(dict.fromkeys((*LINKS, *self.missed, *self.kept, *self.again)))


PROPORTIONAL = Law((NOTHING, _MISSING, NOTHING), (_FALSE, _FALSE, NOTHING))
"""Draws proportional to size, weighted by 1/N_c *as labelled*. What a draw adds to |T| is (N_c - 1)/2, linear
in the records found; TP and |P| stay, since an entity that looks smaller weighs more."""

FIXED = Law((_AWAY_COMMON, _AWAY_TRUE, _AWAY_PREDICTED), (_KEPT_COMMON, _KEPT_TRUE, _KEPT_PREDICTED),
            (_KEPT_PAIRS, _KEPT_PAIRS, NOTHING))  # fmt: skip
"""Weights that do not depend on the labels, as under uniform clusters; home is that of a record drawn
uniformly from the entity, C2(n) (1 - n/N) the links that are lost with a piece, and so on."""


def law_of(design: Design) -> Law:
    """The law that goes with a design.

    Raises
    ------
    DataError
        A design of which no law is known here.
    """
    if isinstance(design, UniformRecords | DistinctEntities | WeightedRecords):
        return PROPORTIONAL
    if isinstance(design, UniformClusters | Stratified):
        return FIXED
    raise DataError(f"no first-order law goes with {type(design).__name__}: pass law=, or use Restored "
                    "or restored_analysis")  # fmt: skip


def _odds(share: ArrayLike, what: str) -> FloatArray:
    x = np.asarray(share, dtype=float)
    bad = ~((x >= 0) & (x < 1))
    if bad.any():
        raise DataError(f"the share {what} must lie in [0, 1); {int(bad.sum())} of {x.size} do not")
    return np.asarray(x / (1 - x))


def corrected(metric: Metric, u: ArrayLike, v: ArrayLike, law: Law = PROPORTIONAL) -> Metric:
    """The metric that true labels would have given, as a metric of what imperfect ones give.

    Parameters
    ----------
    metric : Metric
        Of common, true and predicted links only: pairwise precision, recall, F, Jaccard and the like.
    u, v : float or float arrays, in [0, 1)
        Shares missed and kept. Arrays go along the leading axes of the totals: one pair a draw.
    law : Law

    Raises
    ------
    DataError
        Other totals than links; shares outside [0, 1).

    Examples
    --------
    >>> import erbayes as eb
    >>> labels = {1: "x", 2: "x", 3: "y", 4: "y"}
    >>> sample = eb.Sample(eb.measure({1: "a", 2: "a", 3: "a", 4: "b"}, labels), eb.UniformRecords())
    >>> P = [corrected(eb.metrics.pairwise_precision, 0.0, 0.2)]
    >>> eb.taylor(sample, P).apply(P, order=1).mean.round(3)  # (1/3 - .2)/.8
    array([0.167])
    """
    other = [c.name for c in metric.columns if c not in LINKS]
    if other:
        raise DataError(f"{metric.name} rests on {', '.join(other)}: only metrics of common, true and "
                        "predicted links have a closed form; use Restored or restored_analysis")  # fmt: skip
    missed, kept = _odds(u, "missed"), _odds(v, "kept")
    columns = law.columns

    def formula(*totals: Value) -> Value:
        raw, true, predicted = _links(totals, missed, kept, law)
        common = np.maximum(raw, 0)
        links = common, common + np.maximum(true - raw, 0), np.maximum(predicted, common)
        by_name = {c.name: x for c, x in zip(LINKS, links, strict=True)}
        return metric.formula(*(by_name[c.name] for c in metric.columns))

    return replace(metric, columns=columns, formula=formula, source=f"{metric.source}, corrected labels")


def _links(totals: Iterable[Value], missed: FloatArray, kept: FloatArray, law: Law) -> list[Value]:
    """TP, |T| and |P| of true labels, from the totals of a law's columns and odds of errors."""
    seen = dict(zip((c.name for c in law.columns), totals, strict=True))
    return [
        seen[x.name] + missed * seen[a.name] - kept * seen[b.name] + kept**2 * seen[c.name]
        for x, a, b, c in zip(LINKS, law.missed, law.kept, law.again, strict=True)
    ]


def breaks_down(sample: Sample, u: ArrayLike, v: ArrayLike, law: Law) -> BoolArray:
    """Where a law, being of first order, leaves fewer true or predicted links than common ones.

    Under fixed weights that is so where a large share kept is undone of small entities in large predicted
    clusters: more records than labels hold.

    Parameters
    ----------
    sample : Sample
    u, v : float or float arrays
    law : Law
    """
    metric = corrected(pairwise_precision, 0.0, 0.0, law)
    totals = taylor(sample, [metric])
    seen = np.moveaxis(totals.mean[..., totals.where(metric)], -1, 0)
    common, true, predicted = _links(seen, _odds(u, "missed"), _odds(v, "kept"), law)
    return np.asarray(np.minimum(true, predicted) - common < -1e-9 * np.abs(common))


# Grid and tipping point


class Adjustment(Protocol):
    """A way of asking what estimates would be, had annotators missed a share u and kept a share v."""

    def __call__(
        self, sample: Sample, metrics: Sequence[Metric], u: float, v: float, level: float,
        rng: np.random.Generator,
    ) -> Estimates: ...  # fmt: skip


@dataclass(frozen=True, slots=True)
class ClosedForm:
    """Any estimator on corrected metrics.

    Parameters
    ----------
    estimator : Estimator
    law : Law, optional
        By default that of the design.

    Raises
    ------
    NotIdentified
        Shares so large that the closed form breaks down (see `breaks_down`).
    """

    estimator: Estimator = field(default_factory=Taylor)
    law: Law | None = None

    def __call__(
        self, sample: Sample, metrics: Sequence[Metric], u: float, v: float, level: float,
        rng: np.random.Generator,
    ) -> Estimates:  # fmt: skip
        law = self.law or law_of(sample.design)
        if breaks_down(sample, u, v, law).any():
            raise NotIdentified(f"at u = {u:g}, v = {v:g} the closed form undoes more than labels hold: "
                                "use Restored")  # fmt: skip
        return self.estimator(sample, [corrected(m, u, v, law) for m in metrics], level, rng)


def by_pieces(u: float, v: float) -> Annotator:
    """Whole pieces missed, single records kept."""
    return Annotator(MissedPieces(u), KeptRecords(v))


@dataclass(frozen=True, slots=True)
class Restored:
    """Any estimator, of any metrics, on true entities drawn behind the labels (`labelling.restore`).

    Parameters
    ----------
    estimator : Estimator
    model : callable (u, v) -> Annotator
    draws : int
        Restorations that estimates and ends of intervals are averaged over.
    """

    estimator: Estimator = field(default_factory=Taylor)
    model: Callable[[float, float], Annotator] = by_pieces
    draws: int = 20

    def __call__(
        self, sample: Sample, metrics: Sequence[Metric], u: float, v: float, level: float,
        rng: np.random.Generator,
    ) -> Estimates:  # fmt: skip
        model = self.model(u, v)
        found = [
            self.estimator(Sample(restore(sample.units, model, rng), sample.design), metrics, level, rng)
            for _ in range(self.draws)
        ]
        return Estimates(*(np.mean([getattr(f, part) for f in found], axis=0) for part in PARTS))


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
    sample: Sample, u: ArrayLike, v: ArrayLike, metrics: Sequence[Metric] = PRF, *,
    adjust: Adjustment | None = None, level: float = 0.95, rng: np.random.Generator, progress: bool = True,
) -> Grid:  # fmt: skip
    """What metrics would be, had annotators missed a share u and kept a share v.

    Parameters
    ----------
    sample : Sample
    u, v : sequences of float, in [0, 1)
    metrics : sequence of Metric
    adjust : Adjustment, optional
        `ClosedForm()` by default.
    level : float
    rng : Generator
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
    u, v = np.asarray(u, dtype=float), np.asarray(v, dtype=float)
    if not (u.ndim == v.ndim == 1 and len(u) and len(v)):
        raise DataError("a grid needs a sequence of shares u and one of shares v")
    adjust = adjust or ClosedForm()
    points = [(x, y) for x in u.tolist() for y in v.tolist()]
    found = np.full((len(points), len(PARTS), len(metrics)), np.nan)
    for i, (x, y) in enumerate(track(points, len(points), "grid", progress)):
        try:
            one = adjust(sample, metrics, x, y, level, deepcopy(rng))
        except NotIdentified:
            if i == len(points) - 1 and np.isnan(found).all():
                raise
            continue
        found[i] = [getattr(one, part) for part in PARTS]
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
    sample: Sample, metric: Metric, under: float, *, adjust: Adjustment | None = None,
    rng: np.random.Generator,
) -> Tipping:  # fmt: skip
    """The smallest error of labelling that brings an estimate under a stated value.

    Parameters
    ----------
    sample : Sample
    metric : Metric
    under : float
    adjust : Adjustment, optional
        `ClosedForm()` by default. `Restored` has noise of its restorations, the same at every share.
    rng : Generator

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({i: i // 3 for i in range(24)}, {i: i // 4 for i in range(12)})
    >>> sample = eb.Sample(units, eb.UniformRecords())
    >>> found = tipping(sample, eb.metrics.pairwise_recall, 0.4, rng=np.random.default_rng(1))
    >>> round(found.u, 2)  # but for the correction of bias: R_obs = 4/9, 1 - (5/4) (.4/.6)
    0.16
    """
    adjust = adjust or ClosedForm()

    def above(u: float, v: float) -> float:
        return float(adjust(sample, [metric], u, v, 0.95, deepcopy(rng)).estimate[0]) - under

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


# Probabilistic bias analysis


class Engine(Protocol):
    """Draws of corrected metrics, (1, B, k): the uncertainty of sampling around B pairs of rates."""

    def __call__(
        self, sample: Sample, metrics: Sequence[Metric], u: FloatArray, v: FloatArray, law: Law,
        rng: np.random.Generator,
    ) -> Draws: ...  # fmt: skip


@dataclass(frozen=True, slots=True)
class Resampling:
    """A bootstrap of the totals.

    Parameters
    ----------
    scheme : Scheme
        The default wants one stratum drawn with replacement; `RaoWu()` takes others.
    """

    scheme: Scheme = field(default_factory=PseudoDraws)

    def __call__(
        self, sample: Sample, metrics: Sequence[Metric], u: FloatArray, v: FloatArray, law: Law,
        rng: np.random.Generator,
    ) -> Draws:  # fmt: skip
        plain = [corrected(m, 0.0, 0.0, law) for m in metrics]
        boot = bootstrap(sample, plain, self.scheme, replicates=len(u), rng=rng, progress=False)
        return boot.totals.apply([corrected(m, u, v, law) for m in metrics])


@dataclass(frozen=True, slots=True)
class LogitT:
    """Draws from the t distributions, on natural scales, that the default intervals come from.

    Location and scale are those of `Normal.interval`, pseudo-draws and all, from its ends away from the
    nearer limit; correlations are those of the closed form.
    """

    def __call__(
        self, sample: Sample, metrics: Sequence[Metric], u: FloatArray, v: FloatArray, law: Law,
        rng: np.random.Generator,
    ) -> Draws:  # fmt: skip
        totals = taylor(sample, [corrected(m, 0.0, 0.0, law) for m in metrics])
        parts = [
            self._draw(_repeated(totals, len(x)), [corrected(m, x, y, law) for m in metrics], rng)
            for x, y in ((u[i : i + CHUNK], v[i : i + CHUNK]) for i in range(0, len(u), CHUNK))
        ]
        values = np.concatenate(parts)[None]
        return Draws(tuple(m.name for m in metrics), values, tuple(m.support for m in metrics))

    def _draw(self, totals: Totals, metrics: Sequence[Metric], rng: np.random.Generator) -> FloatArray:
        found = totals.apply(metrics)
        empty = [n for n, x in zip(found.names, found.mean.T, strict=True) if np.isnan(x).any()]
        if empty:
            raise NotIdentified(f"{', '.join(empty)} is 0/0 under some of the rates: no link is left")
        sure = found.sd == 0
        sd = np.where(sure, 1.0, found.sd)
        correlation = found.cov / (sd[..., None] * sd[..., None, :]) + sure[..., None] * np.eye(len(metrics))
        value, vector = np.linalg.eigh(correlation)
        z = rng.standard_normal(found.mean.shape) * np.sqrt(np.maximum(value, 0))
        df = np.minimum(found.df, 1e9)
        least = df.min(axis=-1, keepdims=True)
        t = np.einsum("bij,bj->bi", vector, z) / np.sqrt(2 * rng.standard_gamma(least / 2) / least)
        outer, inner = found.interval(0.5), found.interval(0.2)
        values = np.empty_like(found.mean)
        for j, support in enumerate(found.support):
            scale, side = natural_scale(support), np.where(found.mean[:, j] > 0.5, 0, 1)
            far, near = (
                scale.forward(np.clip(x[np.arange(len(x)), j, side], support[0] + TINY, support[1] - TINY))
                for x in (outer, inner)
            )
            start = stdtrit(df[:, j], 0.6)
            step = (far - near) / (stdtrit(df[:, j], 0.75) - start)  # of one unit of t, outwards
            values[:, j] = scale.inverse(near - step * start + t[:, j] * np.abs(step))
        return values


CHUNK = 500
"""Draws of which derivatives are held in memory at a time."""
TINY = 1e-12


def _repeated(totals: Totals, times: int) -> Totals:
    """The same totals along a leading axis."""
    mean, cov, moment = (
        np.broadcast_to(x, (times, *x.shape)) for x in (totals.mean, totals.cov, totals.moment)
    )
    return replace(totals, mean=mean, cov=cov, moment=moment)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BiasAnalysis(Tabled):
    """A bias-adjusted result beside the plain one.

    Attributes
    ----------
    plain, adjusted : Draws
        Metrics where labels are taken as perfect, and where they are not.
    rates : Draws
        Shares missed and kept that go with each draw.
    """

    plain: Draws
    adjusted: Draws
    rates: Draws

    def table(self, level: float = 0.95) -> pd.DataFrame:
        """One row a metric, plain and adjusted."""
        tables = {"plain": self.plain.table(level), "adjusted": self.adjusted.table(level)}
        return pd.concat(tables, names=["labels"]).reset_index()

    def to_datatree(self) -> Any:
        """An xarray.DataTree: groups plain, posterior (adjusted) and rates, dimensions chain and draw.

        Raises
        ------
        DataError
            Where xarray is not installed.
        """
        try:
            xr = import_module("xarray")
        except ModuleNotFoundError as error:
            raise DataError("a DataTree needs xarray: pip install xarray") from error
        groups = {"plain": self.plain, "posterior": self.adjusted, "rates": self.rates}
        return xr.DataTree.from_dict({
            group: xr.Dataset({n: (("chain", "draw"), d.values[..., j]) for j, n in enumerate(d.names)})
            for group, d in groups.items()
        })  # fmt: skip


def bias_analysis(
    sample: Sample, missed: float | Rate, kept: float | Rate, metrics: Sequence[Metric] = PRF, *,
    engine: Engine | None = None, law: Law | None = None, draws: int = 4000, rng: np.random.Generator,
) -> BiasAnalysis:  # fmt: skip
    """Uncertainty of sampling and of labelling together, in closed form.

    Each draw has rates of its own, and the same noise of sampling in the plain and the adjusted result.

    Parameters
    ----------
    sample : Sample
    missed, kept : float or Rate
        Shares u and v: known, a `Beta` prior, or `Recaptured` from two annotators (whose strictest labels
        the sample then must hold: `Pair.units()`).
    metrics : sequence of Metric
        Of common, true and predicted links.
    engine : Engine, optional
        `LogitT()` by default.
    law : Law, optional
        By default that of the design.
    draws : int
    rng : Generator

    Raises
    ------
    DataError
        Metrics or designs without a closed form (see `restored_analysis`); known shares outside [0, 1).

    Warns
    -----
    Alarm
        Rates so large that the closed form breaks down (see `breaks_down`).

    Examples
    --------
    >>> import erbayes as eb
    >>> from erbayes.labelling import Beta
    >>> units = eb.measure({i: i // 3 for i in range(240)}, {i: i // 4 for i in range(120)})
    >>> sample = eb.Sample(units, eb.UniformRecords())
    >>> found = bias_analysis(sample, Beta(20, 80), 0.0, rng=np.random.default_rng(1))
    >>> found.plain.mean.round(2), found.adjusted.mean.round(2)
    (array([0.67, 0.44, 0.53]), array([0.67, 0.39, 0.49]))
    """
    law, engine = law or law_of(sample.design), engine or LogitT()
    for rate, what in ((missed, "missed"), (kept, "kept")):
        if not isinstance(rate, Rate):
            _odds(rate, what)
    u, v = (np.minimum(drawn(r, rng, (draws,)), 1 - 1e-9) for r in (missed, kept))
    broken = breaks_down(sample, u, v, law).mean()
    if broken:
        warnings.warn(f"for {broken:.1%} of the rates the closed form undoes more than labels hold, and is "
                      "cut there: use restored_analysis", Alarm, stacklevel=2)  # fmt: skip
    none = np.zeros(draws)
    plain = engine(sample, metrics, none, none, law, deepcopy(rng))
    adjusted = engine(sample, metrics, u, v, law, rng)
    return BiasAnalysis(plain, adjusted, _rates(np.stack([u, v], axis=-1)))


def _rates(values: FloatArray) -> Draws:
    return Draws(("missed", "kept"), values[None], ((0.0, 1.0), (0.0, 1.0)))


class PlainEngine(Protocol):
    """Draws of metrics, as many as asked or more, around a sample whose labels are taken as perfect."""

    def __call__(
        self, sample: Sample, metrics: Sequence[Metric], draws: int, rng: np.random.Generator
    ) -> Draws: ...


@dataclass(frozen=True, slots=True)
class Bootstrapped:
    """Replicates of a bootstrap.

    Parameters
    ----------
    scheme : Scheme
        As in `Resampling`.
    """

    scheme: Scheme = field(default_factory=PseudoDraws)

    def __call__(
        self, sample: Sample, metrics: Sequence[Metric], draws: int, rng: np.random.Generator
    ) -> Draws:
        replicates = max(draws, 2)
        return bootstrap(sample, metrics, self.scheme, replicates=replicates, rng=rng, progress=False).draws


class Posterior(Protocol):
    """A fitted model, such as `erbayes.bayes.Fit`."""

    def apply(self, metrics: Sequence[Metric], /) -> Draws: ...


@dataclass(frozen=True, slots=True)
class Fitted:
    """The posterior of a model that is fitted to each sample.

    Parameters
    ----------
    fit : callable (sample, rng=rng) -> Posterior
        Such as `erbayes.bayes.fast`, or a `functools.partial` of it with a model and a number of draws.
    """

    fit: Callable[..., Posterior]

    def __call__(
        self, sample: Sample, metrics: Sequence[Metric], draws: int, rng: np.random.Generator
    ) -> Draws:
        return self.fit(sample, rng=rng).apply(metrics)


def restored_analysis(
    sample: Sample, model: Annotator, metrics: Sequence[Metric] = PRF, *, engine: PlainEngine | None = None,
    imputations: int = 500, draws: int = 10, rng: np.random.Generator, progress: bool = True,
) -> BiasAnalysis:  # fmt: skip
    """The same by multiple imputation: an engine's draws averaged over true entities behind the labels.

    Rates are drawn from their priors, true entities given the rates (`labelling.restore`), metrics given
    these by the engine: rates, restored labels and the engine's own uncertainty are in one posterior.
    Nothing flows back from the engine to the rates.

    Parameters
    ----------
    sample : Sample
    model : Annotator
        How annotators err, with priors on the rates.
    metrics : sequence of Metric
        Any that the engine identifies.
    engine : PlainEngine, optional
        `Bootstrapped()` by default; `Fitted(bayes.fast)` for the size model, with fewer imputations.
    imputations : int
        Rates drawn, and samples restored.
    draws : int
        Taken from the engine for each, at random where it gives more.
    rng : Generator
    progress : bool

    Raises
    ------
    DataError
        Fewer than one imputation or draw, or an engine that gives fewer draws than asked.

    Warns
    -----
    Warning
        What the engine warned of in restored samples: once for each category, with the number of samples.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({i: i // 3 for i in range(240)}, {i: i // 4 for i in range(120)})
    >>> model, rng = Annotator(MissedPieces(0.2)), np.random.default_rng(1)
    >>> found = restored_analysis(eb.Sample(units, eb.UniformRecords()), model, imputations=50, rng=rng)
    >>> bool(found.adjusted.mean[1] < found.plain.mean[1])
    True
    """
    if min(imputations, draws) < 1:
        raise DataError(f"imputations and draws must be 1 or more, not {imputations} and {draws}")
    engine = engine or Bootstrapped()
    plain = engine(sample, metrics, imputations * draws, rng)
    values: list[FloatArray] = []
    told: list[dict[type[Warning], str]] = []
    rates = np.empty((imputations, 2))
    for i in track(range(imputations), imputations, "restoring", progress):
        known = model.fixed(rng)
        rates[i] = drawn(known.missed.rate, rng), drawn(known.kept.rate, rng)
        truth = Sample(restore(sample.units, known, rng), sample.design)
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            found = engine(truth, metrics, draws, rng).flat
        told.append({w.category: str(w.message) for w in heard})
        if len(found) < draws:
            raise DataError(f"the engine gives {len(found)} draws of a sample where {draws} are asked for")
        values.append(found[rng.choice(len(found), draws, replace=False)])
    for category in dict.fromkeys(c for one in told for c in one):
        messages = [one[category] for one in told if category in one]
        warnings.warn(f"in {len(messages)} of {imputations} restored samples, the first time: {messages[0]}",
                      category, stacklevel=2)  # fmt: skip
    adjusted = Draws(plain.names, np.concatenate(values)[None], plain.support)
    return BiasAnalysis(plain, adjusted, _rates(np.repeat(rates, draws, axis=0)))


# Estimators for studies


@dataclass(frozen=True, slots=True)
class Mislabelled:
    """Another estimator on what an annotator makes of the sample: errors put into a study.

    Parameters
    ----------
    model : Annotator
        Rates with priors are drawn anew for each sample.
    estimator : Estimator
    """

    model: Annotator
    estimator: Estimator

    def __call__(
        self, sample: Sample, metrics: Sequence[Metric], level: float, rng: np.random.Generator
    ) -> Estimates:
        seen = Sample(mislabel(sample.units, self.model, rng), sample.design)
        return self.estimator(seen, metrics, level, rng)


@dataclass(frozen=True, slots=True)
class BiasAdjusted:
    """Medians and intervals of a bias analysis.

    Parameters
    ----------
    missed, kept : float or Rate
    engine : Engine
    draws : int
    """

    missed: float | Rate
    kept: float | Rate
    engine: Engine = field(default_factory=LogitT)
    draws: int = 1000

    def __call__(
        self, sample: Sample, metrics: Sequence[Metric], level: float, rng: np.random.Generator
    ) -> Estimates:
        found = bias_analysis(sample, self.missed, self.kept, metrics, engine=self.engine, draws=self.draws,
                              rng=rng).adjusted  # fmt: skip
        return Estimates(np.median(found.flat, axis=0), *found.interval(level).T)


@dataclass(frozen=True, slots=True)
class RestoredAdjusted:
    """Medians and intervals of a restored analysis.

    Parameters
    ----------
    model : Annotator
    engine : PlainEngine
    imputations, draws : int
    """

    model: Annotator
    engine: PlainEngine = field(default_factory=Bootstrapped)
    imputations: int = 200
    draws: int = 10

    def __call__(
        self, sample: Sample, metrics: Sequence[Metric], level: float, rng: np.random.Generator
    ) -> Estimates:
        found = restored_analysis(
            sample, self.model, metrics, engine=self.engine, imputations=self.imputations, draws=self.draws,
            rng=rng, progress=False,
        ).adjusted  # fmt: skip
        return Estimates(np.median(found.flat, axis=0), *found.interval(level).T)
