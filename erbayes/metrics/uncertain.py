"""Results of engines: uncertain vectors, with their intervals, contrasts and tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Never, Self

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from scipy.special import ndtr

from .._internal.arrays import FloatArray, Seed, generator
from .._internal.digits import shown
from .._internal.errors import DataError, NotIdentified, head, import_extra
from .._internal.nearest import Nearest
from .definitions import Metric, MetricLike, resolve_metric, resolve_metrics
from .intervals import (
    DEFAULT,
    Anytime,
    Distribution,
    EqualTailed,
    Kind,
    Support,
    allow_unreached,
    array_stats,
    interval,
)
from .moves import Moves
from .sentences import choose_quoted, describe_metric
from .unseen import ROUNDING, Unseen, by_component, map_components, stack_components

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from plotly.graph_objects import Figure

NEGATIVE = (
    "its variance estimate is below 0, as that of Horvitz and Thompson can be in a small sample: use the "
    "jackknife, keep the draws with their repeats (UniformRecords), or label more units"
)
EMPTY = "it is 0/0 in this sample, since its denominator is 0"


class Tabled(Nearest, ABC):
    """A result that prints as its table, in consoles and notebooks (see `erbayes._internal.digits`).

    Columns and conversions of its table are its own: `result["estimate"]`, `result.to_csv("found.csv")`.
    """

    __slots__ = ()
    explored: ClassVar[str] = "table"

    @abstractmethod
    def table(self) -> pd.DataFrame:
        """Return the result as a table, with all digits."""

    def to_frame(self, *chosen: Any, **settings: Any) -> pd.DataFrame:
        """Return `table`, with its arguments, under the name that it has in pandas."""
        return self.table(*chosen, **settings)

    def summary(self, *chosen: Any, **settings: Any) -> pd.DataFrame:
        """Return `table`, with its arguments such as `level`, under the name that it has in ArviZ."""
        return self.table(*chosen, **settings)

    def explore(self, *chosen: Any, **settings: Any) -> Figure:
        """Show the table of `explored`, with its arguments, by `erbayes.plots.explore`."""
        shown = getattr(self, self.explored)(*chosen, **settings)
        figure: Figure = import_module("erbayes.plots").explore(shown)
        return figure

    if not TYPE_CHECKING:  # since those of results with rows by name return other types

        def __getitem__(self, name: Metric | str) -> pd.Series | pd.DataFrame:
            """Return a column of `table`, or what it has of a metric."""
            table = self.table()
            if isinstance(name, str) and name in table:
                return table[name]
            with suppress(ValueError):  # as a DataError is
                metrics = [metric.name for metric in resolve_metrics(name)]
                if table.index.isin(metrics).any():
                    return table.loc[metrics if len(metrics) > 1 else metrics[0]]
                if "metric" in table and len(rows := table[table["metric"].isin(metrics)]):
                    return rows.reset_index(drop=True)
            raise DataError(f"no column {name!r}; the table has {', '.join(map(str, table))}")

        def __contains__(self, name: object) -> bool:
            """Return True if there is something in brackets under this name."""
            with suppress(ValueError):  # as a DataError is
                self[name]
                return True
            return False

    def _choose_printed(self) -> tuple[str, pd.DataFrame]:
        """Return a heading, and the part of the table that is printed under it."""
        return type(self).__name__, self.table()

    def __repr__(self) -> str:
        heading, table = self._choose_printed()
        return f"{heading}\n{shown(table).to_string(max_rows=60)}"

    def _repr_html_(self) -> str:
        heading, table = self._choose_printed()
        return f"{heading}{shown(table).to_html(max_rows=60)}"


class Pictured(Tabled):
    """A result that draws itself, by the function of `erbayes.plots` that draws a `picture`."""

    __slots__ = ()
    picture: ClassVar[str]

    def plot(self, *chosen: Any, **settings: Any) -> Axes:
        """Draw the result, with arguments of its function in `erbayes.plots`."""
        # imported here, since pictures lie above results, and matplotlib is an extra
        draw = getattr(import_module("erbayes.plots"), f"draw_{self.picture}")
        axes: Axes = draw(self, *chosen, **settings)
        return axes


class Estimates(Pictured):
    """Estimates of metrics with their uncertainty, jointly: what every engine returns.

    `estimates["pairwise-recall"]` is one of them, `table()` has all with their intervals, `sentence()` says
    them in words, and `plot()` draws them. A loop over them takes the rows of the table. A `Normal` has a
    mean and a covariance, and `Draws` are bootstrap replicates or posterior draws.

    Attributes
    ----------
    names : tuple of str, (k,)
    support : tuple of (float, float), (k,)
        The least and the largest value of each.
    kind : Kind, by default
    remarks : tuple of str
        What the engine says of this result, a sentence each.
    """

    __slots__ = ()
    picture: ClassVar[str] = "forest"
    kind: ClassVar[Kind]
    names: tuple[str, ...]
    support: tuple[Support, ...]
    remarks: tuple[str, ...]
    unseen: Unseen

    def __sub__(self, other: object) -> Never:
        """Refuse a difference, which needs the draws that both estimates share."""
        raise DataError("differences are paired: compare(predictions, labels, design).subtract('old', 'new')")

    def keys(self) -> tuple[str, ...]:
        """Return the names, as `dict(estimates)` asks for them."""
        return self.names

    @property
    def alarms(self) -> tuple[str, ...]:
        """Return the alarms of the engine about this result; a sentence without a grade is a caution."""
        return self.remarks

    @property
    @abstractmethod
    def uncut(self) -> FloatArray:
        """Return the point estimates, (..., k), as if labels settled nothing."""

    @property
    def estimate(self) -> FloatArray:
        """Return the point estimates, (..., k), at the nearest certain value."""
        return self.unseen.nearest(self.uncut)

    @property
    def sd(self) -> FloatArray:
        """Return standard errors, or standard deviations of draws, (..., k).

        They are at most half of the distance of certain ends, between which no number has more (Popoviciu).
        """
        half = np.ptp(self.unseen.certain, axis=-1) / 2
        rounding = half <= ROUNDING * np.maximum(np.abs(self.uncut), 1)
        return np.asarray(np.minimum(self.uncut_sd, np.where(rounding, 0.0, half)))

    @property
    @abstractmethod
    def uncut_sd(self) -> FloatArray:
        """Return standard errors, or standard deviations of draws, (..., k), as if labels settled nothing."""

    @property
    @abstractmethod
    def reasons(self) -> tuple[str, ...]:
        """Return why a component has no estimate or no standard error, (k,); "" if it has both."""

    @abstractmethod
    def spread(self) -> dict[str, FloatArray]:
        """Return the columns of tables with the uncertainty of the components, (..., k) each."""

    @property
    def census(self) -> bool:
        """Whether every unit is labelled, so that there is no sampling error."""
        return False

    @abstractmethod
    def as_draws(self, number: int = 4000, rng: Seed = None, kind: Distribution = DEFAULT) -> Draws:
        """Return draws of the vector: itself, or `number` ones of a `Normal`, distributed as `kind`."""

    def interval(self, level: float = 0.95, kind: Kind | None = None) -> FloatArray:
        """Return two-sided intervals, (..., k, 2), by default of the class's `kind`.

        They are cut to the support, and to the ends that are certain if the labels are right.
        """
        return self.unseen.cut(self.uncut, self._bound(level, kind))[1]

    def _bound(self, level: float, kind: Kind | None) -> FloatArray:
        """Return intervals, (..., k, 2), as if labels settled nothing."""
        return interval(self, level, self.kind if kind is None else kind)

    def name_kind(self, j: int, kind: Kind | None = None) -> str:
        """Return the name of the kind of interval of component j."""
        return (kind or self.kind).label(self, j)

    def table(self, level: float = 0.95, kind: Kind | None = None, settled: bool = False) -> pd.DataFrame:
        """Return estimates, uncertainties, intervals with their kind, and any reasons why one is missing.

        If `settled`, columns `least` and `most` have the values that are possible whatever the records
        without a label are, if the labels are right (docs/settled.md).
        """
        bounds, shape = self.interval(level, kind), self.estimate.shape
        labels = np.broadcast_to([self.name_kind(j, kind) for j in range(len(self.names))], shape)
        index = pd.Index(self.names, name="metric")
        if len(shape) > 1:
            index = pd.MultiIndex.from_product([*map(range, shape[:-1]), self.names])
        columns = {
            "estimate": self.estimate,
            **self.spread(),
            "lower": bounds[..., 0],
            "upper": bounds[..., 1],
            "level": np.full(shape, level),
            "kind": np.where(np.isnan(bounds[..., 0]), "none", labels),
        }
        if settled:
            columns |= dict(zip(("least", "most"), np.moveaxis(self._settled, -1, 0), strict=True))
        reasons = np.broadcast_to(self.reasons, shape).ravel()
        return pd.DataFrame({k: x.ravel() for k, x in columns.items()} | reason_column(reasons), index=index)

    @property
    def _settled(self) -> FloatArray:
        """Return certain ends inside the support, (..., k, 2)."""
        return np.asarray(np.clip(self.unseen.certain, *np.transpose(self.support)[..., None]))

    def estimates_by_name(self) -> Mapping[str, Estimates]:
        """Return what `erbayes.plots.draw_forest` draws of a result, by name: this alone, without a name."""
        return {"": self}

    def _choose_printed(self) -> tuple[str, pd.DataFrame]:
        # without the level, which the heading says, and without degrees of freedom
        return "Estimates with 95 % intervals", self.table().drop(columns=["df", "level"], errors="ignore")

    def __getitem__(self, metric: Metric | str) -> pd.Series:
        """Return the row of one metric in `table()`: `estimate`, `lower`, `upper` and the rest.

        Examples
        --------
        >>> given = dict(names=("rand",), df=np.array([20.0]), support=((0.0, 1.0),))
        >>> found = Normal(mean=np.array([0.8]), cov=np.array([[0.01]]), **given)
        >>> round(found["rand"].upper, 2)
        np.float64(0.96)
        """
        if metric not in self.names:
            if isinstance(metric, str) and metric in self.table():
                raise DataError(f"{metric!r} is a column, not a metric: table()[{metric!r}] has it of all")
            named = resolve_metric(metric).name
            if named not in self.names:
                raise DataError(f"{named} is not among these metrics: {', '.join(self.names)}")
            metric = named
        row = self.table().loc[metric]
        assert isinstance(row, pd.Series)
        return row

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[pd.Series]:
        """Return the rows of `table()`, of which `pandas.DataFrame(estimates)` makes the table again."""
        return (row for _, row in self.table().iterrows())

    def __contains__(self, metric: object) -> bool:
        with suppress(DataError):
            return metric in self.names or resolve_metric(metric).name in self.names
        return False

    def sentence(self, level: float = 0.95, kind: Kind | None = None) -> str:
        """Return the estimates of precision and recall in words, or else those of the first two metrics.

        Examples
        --------
        >>> given = dict(names=("pairwise-recall",), df=np.array([20.0]), support=((0.0, 1.0),))
        >>> found = Normal(mean=np.array([0.8]), cov=np.array([[0.01]]), **given)
        >>> print(found.sentence())
        Of the links that are truly there, the matcher found 80 % (95 % interval 56 % to 96 %).
        """
        bounds, percent, sentences = self.interval(level, kind), f"{100 * level:g}", list[str]()
        for name in choose_quoted(self.names):
            j = self.names.index(name)
            if why := self.reasons[j]:
                sentences.append(f"There is no estimate of {name}: {why}.")
                continue
            named = any("% interval" in sentence for sentence in sentences)
            sentences.append(describe_metric(self, j, bounds[j], percent, named=named, census=self.census))
        return " ".join(sentences)


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Normal(Estimates):
    """An uncertain vector as a mean and a covariance.

    Leading axes are samples of a study. All methods take them except `contrast` and `as_draws`.

    Attributes
    ----------
    names : tuple of str, (k,)
    mean : float array, (..., k)
    cov : float array, (..., k, k)
        NaN if the sample has no variance estimate, as for a single draw.
    df : float array, (..., k)
        Degrees of freedom of each standard error.
    support : tuple of (float, float), (k,)
    undefined : tuple of str, (k,)
        Why a component is NaN; "" if it is not.
    unseen : Unseen
        What no draw has shown of each component. By default nothing is unreached, and draws are without
        number.
    moves : Moves, optional
        Gains and losses of draws, for components that are such sums.

    Examples
    --------
    >>> given = dict(names=("recall",), df=np.array([20.0]), support=((0.0, 1.0),))
    >>> Normal(mean=np.array([0.8]), cov=np.array([[0.01]]), **given).interval().round(2)
    array([[0.56, 0.96]])
    """

    kind: ClassVar[Kind] = DEFAULT
    names: tuple[str, ...] = by_component(0)
    mean: FloatArray = by_component(-1)
    cov: FloatArray = by_component(-2, -1)
    df: FloatArray = by_component(-1)
    support: tuple[Support, ...] = by_component(0)
    undefined: tuple[str, ...] = by_component(0, default=())
    unseen: Unseen = by_component(-1, default=Unseen())
    moves: Moves = by_component(-1, default=None)
    remarks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # an array for each component, so that none of them is forgotten when components are selected
        of_each = self.unseen.for_metrics(measure_distances(self.mean, self.support))
        object.__setattr__(self, "unseen", of_each)
        object.__setattr__(self, "undefined", self.undefined or ("",) * len(self.names))
        if self.moves is None:
            object.__setattr__(self, "moves", Moves.none(len(self.names)))

    @property
    def uncut(self) -> FloatArray:
        return self.mean

    @property
    def _variance(self) -> FloatArray:
        """Return variances, (..., k), with 0 for those that are rounding."""
        variance = np.diagonal(self.cov, axis1=-2, axis2=-1)
        # a variance of 0 marks an estimate without errors in the sample, which rounding must not hide
        return np.where(np.abs(variance) <= 1e-24 * np.maximum(self.mean**2, 1), 0.0, variance)

    @property
    def reasons(self) -> tuple[str, ...]:
        below = np.moveaxis(self._variance < 0, -1, 0)
        return tuple(
            why or (NEGATIVE if b.any() else "") for why, b in zip(self.undefined, below, strict=True)
        )

    @property
    def census(self) -> bool:
        return bool(np.isinf(self.unseen.effective).all() and not (self._variance > 0).any())

    @property
    def uncut_sd(self) -> FloatArray:
        """Return standard errors, (..., k): 0 if only rounding is left, NaN if there is none."""
        variance = self._variance
        if (variance < 0).any() and all(self.reasons):
            raise DataError(_describe_reasons(self))
        return np.sqrt(np.where(variance < 0, np.nan, variance))

    def plain(self) -> Normal:
        """Return the same without what a subclass adds."""
        return Normal(**{f.name: getattr(self, f.name) for f in fields(Normal)})

    def spread(self) -> dict[str, FloatArray]:
        return {"se": self.sd, "df": np.broadcast_to(self.df, self.mean.shape)}

    def as_draws(self, number: int = 4000, rng: Seed = None, kind: Distribution = DEFAULT) -> Draws:
        """Return draws from the distributions of the intervals, joined by a normal copula, (1, number, k)."""
        known = self.uncut_sd > 0
        sd = np.where(known, self.uncut_sd, 1.0)
        correlation = np.where(np.outer(known, known), self.cov / np.outer(sd, sd), np.eye(len(sd)))
        value, vector = np.linalg.eigh(correlation)
        z = generator(rng).standard_normal((number, len(sd))) * np.sqrt(np.maximum(value, 0))
        moving, support = self.moves.there, np.array(self.support)
        ends = np.where(moving[:, None], self.unseen.certain, support)
        values = np.clip(kind.quantile(self, ndtr(z @ vector.T)), *ends.T)
        unreached_share = np.where(moving, 0.0, self.unseen.unreached_share)
        unseen = Unseen(unreached_share=unreached_share, certain=self.unseen.certain)
        return Draws(self.names, values[None], self.support, self.mean, unseen)

    def part(self, at: Sequence[int]) -> Self:
        """Return the components at the positions `at`, jointly. Negative ones count from the end."""
        j = _locate_names(at, self.names)
        return map_components(lambda axes, x: _take_components(axes, x, j), self)

    def contrast(self, weights: FloatArray, names: Sequence[str]) -> Contrast:
        """Return linear combinations by `weights`, (j, k), such as differences of correlated estimates.

        Examples
        --------
        >>> given = dict(names=("a", "b"), df=np.full(2, 9.0), support=((-np.inf, np.inf),) * 2)
        >>> fit = Normal(mean=np.array([0.8, 0.9]), cov=np.full((2, 2), 0.01), **given)
        >>> fit.contrast([[-1, 1]], ["b - a"]).sd
        array([0.])
        """
        C = _check_weights(weights, names, self.names)
        cov = compute_covariance(C, np.where(np.isnan(self.cov), 0.0, self.cov), 1e-12)
        lost = (C != 0) @ np.isnan(np.diagonal(self.cov))
        cov[lost], cov[:, lost] = np.nan, np.nan
        reasons = np.array(self.undefined, dtype=object)
        return Contrast(
            names=tuple(names),
            mean=_combine_linearly(C, self.estimate),
            cov=cov,
            df=np.array([self.df[row != 0].min() for row in C]),
            support=((-np.inf, np.inf),) * len(C),
            undefined=tuple("; ".join(dict.fromkeys(filter(None, reasons[row != 0]))) for row in C),
            unseen=Unseen(effective=np.array([self.unseen.effective[row != 0].min() for row in C])),
            parts=self,
            weights=C,
        )


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Contrast(Normal):
    """Linear combinations of `parts`, (k,), by `weights`, (j, k), with intervals from those of the parts.

    With estimates x_i, correlations r_il and arms δ_i of the parts on the sides to which weights w_i turn
    them, the arm of Σ w_i x_i is √(ΣΣ w_i δ_i w_l δ_l r_il), so that nothing for which the intervals of the
    parts allow is lost (Zou and Donner 2008, Statistics in Medicine 27, 1693-1702). Variances in r_il include
    what the kind adds for errors that no draw has shown. One draw that shows an error of both parts would
    otherwise make their correlation 1, and cancel the arms of all other errors.
    """

    parts: Normal
    weights: FloatArray = by_component(0)

    def _bound(self, level: float, kind: Kind | None) -> FloatArray:
        w, kind = self.weights, self.parts.kind if kind is None else kind
        # what no draw shows of one part does not go with that of another, however few draws make both
        unseen = kind.spread_unseen(self.parts) if isinstance(kind, Distribution | Anytime) else 0.0
        sd = np.sqrt(self.parts.uncut_sd**2 + unseen)
        both = np.outer(sd, sd)
        # a part without a standard error has an arm all the same, which goes with no other
        r = np.divide(self.parts.cov, both, out=np.zeros_like(both), where=both > 0)
        np.fill_diagonal(r, 1.0)
        down, up = np.abs(self.parts.interval(level, kind) - self.parts.estimate[:, None]).T
        # a negative weight turns the arm up of a part into one down
        turned = (w * np.where(w < 0, up, down), w * np.where(w < 0, down, up))
        of_each = (np.where(w != 0, arm, 0.0) for arm in turned)
        arms = [np.sqrt(np.maximum(np.sum((arm @ r) * arm, axis=1), 0.0)) for arm in of_each]
        return np.stack([self.mean - arms[0], self.mean + arms[1]], axis=-1)

    def name_kind(self, j: int, kind: Kind | None = None) -> str:
        of_part = self.parts.name_kind(int(np.flatnonzero(self.weights[j])[-1]), kind)
        return f"{of_part}, of the parts"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Draws(Estimates):
    """An uncertain vector as draws of it: bootstrap replicates or posterior draws.

    Attributes
    ----------
    names : tuple of str, (k,)
    values : float array, (chain, draw, k)
    support : tuple of (float, float), (k,)
    centre : float array, (k,), optional
        The estimates. By default the means of the draws.
    unseen : Unseen
        What no draw has shown of each component; by default nothing is unreached.

    Examples
    --------
    >>> draws = Draws(("a", "b"), np.array([[[1.0, 2.0], [3.0, 4.0]]]), ((0.0, np.inf),) * 2)
    >>> draws.mean, draws.part([1]).estimate
    (array([2., 3.]), array([3.]))
    """

    kind: ClassVar[Kind] = EqualTailed()
    names: tuple[str, ...] = by_component(0)
    values: FloatArray = by_component(-1)
    support: tuple[Support, ...] = by_component(0)
    centre: FloatArray | None = by_component(-1, default=None)
    unseen: Unseen = by_component(-1, default=Unseen())
    remarks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "unseen", self.unseen.for_metrics(np.zeros((len(self.names), 2))))

    @property
    def uncut(self) -> FloatArray:
        return self.mean if self.centre is None else self.centre

    @property
    def flat(self) -> FloatArray:
        """Return all draws, (chain x draw, k)."""
        return self.values.reshape(-1, self.values.shape[-1])

    @property
    def reasons(self) -> tuple[str, ...]:
        number, undefined = len(self.flat), np.isnan(self.flat).sum(axis=0).tolist()
        why = f"of {number} draws, since its denominator is 0 there: label more units"
        # in no draw as in the sample itself, such as a prediction without a link, which no label changes
        return tuple(EMPTY if n == number else f"it is 0/0 in {n} {why}" if n else "" for n in undefined)

    @property
    def mean(self) -> FloatArray:
        """Return the means over draws, (k,)."""
        return np.asarray(self.flat.mean(axis=0))

    @property
    def cov(self) -> FloatArray:
        """Return the covariances over draws, (k, k)."""
        return np.atleast_2d(np.cov(self.flat, rowvar=False))

    @property
    def uncut_sd(self) -> FloatArray:
        """Return the standard deviations over draws, (k,)."""
        return np.asarray(self.flat.std(axis=0, ddof=1))

    def _bound(self, level: float, kind: Kind | None) -> FloatArray:
        return allow_unreached(self, Estimates._bound(self, level, kind))

    def spread(self) -> dict[str, FloatArray]:
        return {"sd": self.sd}

    def table(
        self, level: float = 0.95, kind: Kind | None = None, settled: bool = False, errors: bool = False
    ) -> pd.DataFrame:
        """Return what `Estimates.table` returns, with Monte Carlo errors of the ends on request.

        If `errors`, columns `lower_mcse` and `upper_mcse` have the standard errors of the two quantiles, by
        which the ends of an interval move from seed to seed. More draws make them smaller. They are NaN for
        highest-density intervals, and leave out what `unseen` adds. They need the extra `bayes`.

        References
        ----------
        Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021), Bayesian Analysis 16, 667-718.

        Examples
        --------
        >>> values = np.random.default_rng(1).standard_normal((4, 1000, 1))
        >>> draws = Draws(("a",), values, ((-np.inf, np.inf),))
        >>> draws.table(errors=True)[["lower", "lower_mcse", "upper_mcse"]].round(2)
                lower  lower_mcse  upper_mcse
        metric
        a       -1.94        0.03        0.05
        """
        table = Estimates.table(self, level, kind, settled)
        if errors:
            table[["lower_mcse", "upper_mcse"]] = self._compute_end_errors(level, kind)
        return table

    def _compute_end_errors(self, level: float, kind: Kind | None) -> FloatArray:
        """Return Monte Carlo standard errors of equal-tailed intervals, (k, 2); NaN for other kinds."""
        if not isinstance(kind or self.kind, EqualTailed):
            return np.full((len(self.names), 2), np.nan)
        of, by = self._varying, {"chain_axis": 0, "draw_axis": 1, "method": "quantile"}
        ends = [array_stats().mcse(of, prob=p, **by) for p in ((1 - level) / 2, (1 + level) / 2)]
        return np.stack(ends, axis=-1)

    @property
    def _varying(self) -> FloatArray:
        """Return what of the draws varies from seed to seed, (chain, draw, k)."""
        return self.values

    def as_draws(self, number: int = 4000, rng: Seed = None, kind: Distribution = DEFAULT) -> Draws:
        return self

    def part(self, at: Sequence[int]) -> Self:
        """Return the components at the positions `at`, jointly."""
        return map_components(lambda axes, x: _take_components(axes, x, list(at)), self)

    def contrast(self, weights: FloatArray, names: Sequence[str]) -> Draws:
        """Return linear combinations, draw by draw: see `Normal.contrast`."""
        C = _check_weights(weights, names, self.names)
        values, centre = (_combine_linearly(C, x) for x in (self.values, self.estimate))
        return Draws(tuple(names), values, ((-np.inf, np.inf),) * len(C), centre)

    @property
    def tree(self) -> xr.DataTree:
        """Return the draws as a tree for ArviZ, whose group `posterior` has one variable, `metrics`."""
        values, names = {"posterior": {"metrics": self.values}}, {"metric": list(self.names)}
        tree: xr.DataTree = import_extra("arviz", "a tree needs ArviZ", "bayes").from_dict(
            values, dims={"metrics": ["metric"]}, coords=names
        )
        return tree

    def apply(self, metrics: MetricLike) -> Draws:
        """Apply metrics to draws of totals, draw by draw. A metric that is 0/0 in a draw is NaN there."""
        metrics = resolve_metrics(metrics)
        values = np.empty((*self.values.shape[:-1], len(metrics)))
        totals = np.ascontiguousarray(np.moveaxis(self.values, -1, 0))
        for j, metric in enumerate(metrics):
            with np.errstate(divide="ignore", invalid="ignore"):
                values[..., j] = metric.formula(*(totals[i] for i in positions(metric, self.names)))
        draws = Draws(tuple(m.name for m in metrics), values, tuple(m.support for m in metrics))
        if all(draws.reasons):
            raise NotIdentified(_describe_reasons(draws))
        return draws


def _take_components(axes: Sequence[int], x: Any, at: Sequence[int]) -> Any:
    """Return the components at the positions `at` of a tuple, or of an array along its `axes`."""
    if isinstance(x, tuple):
        return tuple(x[i] for i in at)
    for axis in axes:
        x = np.take(x, at, axis)
    return x


def stacked(fits: Sequence[Normal], cov: FloatArray) -> Normal:
    """Return several fits as one vector, with their joint covariance `cov`."""
    return stack_components(*fits, cov=cov)


def _describe_reasons(result: Estimates) -> str:
    """Return the reasons of all components, each after its name."""
    return "; ".join(f"{name}: {why}" for name, why in zip(result.names, result.reasons, strict=True))


def measure_distances(mean: FloatArray, support: Sequence[Support]) -> FloatArray:
    """Return the ends of each support less the mean, (..., k, 2); 0 for a support without bounds."""
    ends = np.where(np.isfinite(support).all(axis=1, keepdims=True), support, np.nan)
    return np.nan_to_num(ends - mean[..., None])


def reason_column(reasons: Iterable[str]) -> dict[str, list[str]]:
    """Return a table column of reasons, or none if all of them are empty."""
    column = list(reasons)
    return {"reason": column} if any(column) else {}


def compute_covariance(J: FloatArray, V: FloatArray, rounding: float = 1e-14) -> FloatArray:
    """Return J V J', the covariance of linear forms J, with 0 for entries that are rounding."""
    sparse = J if J.ndim > 2 or np.isnan(V).any() else csr_array(J)  # a metric has few totals
    cov, size = _compute_form(sparse, V), _compute_form(abs(sparse), np.abs(V))
    # entries that cancel are 0, so that no interval has the length of rounding
    return np.where((np.abs(cov) <= rounding * size) | ((cov < 0) & (cov >= -1e-12 * size)), 0.0, cov)


def _compute_form(J: Any, V: FloatArray) -> FloatArray:
    """Return J V J' for symmetric V and dense or sparse J."""
    return np.asarray(J @ np.swapaxes(J @ V, -1, -2))


def _locate_names(at: Any, names: Sequence[str]) -> list[int]:
    """Return positions among `names` as a list, (j,), refusing names and those past the end."""
    j = list(at) if isinstance(at, Iterable) and not isinstance(at, str) else [at]
    k = len(names)
    bad = [i for i in j if isinstance(i, bool) or not isinstance(i, int | np.integer) or not -k <= i < k]
    if bad or not j:
        raise DataError(
            f"components are taken by position, 0 to {k - 1}, not {head(bad) or 'none'}; they are "
            + ", ".join(f"{i} {name}" for i, name in enumerate(names))
        )
    return [int(i) for i in j]


def _check_weights(weights: Any, names: Sequence[str], of: Sequence[str]) -> FloatArray:
    """Return the weights of linear combinations as an array, (names, of), refusing other shapes."""
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise DataError(f"names of combinations must be a list of str, not {names!r}")
    try:
        C = np.atleast_2d(np.asarray(weights, dtype=float))
    except (TypeError, ValueError) as error:
        raise DataError(f"weights of a combination must be numbers, one row per name: {error}") from error
    if C.shape != (len(names), len(of)):
        raise DataError(
            f"weights must have one row per name, {len(names)}, and one column per component, {len(of)}, "
            f"not shape {C.shape}"
        )
    if not np.isfinite(C).all():
        raise DataError("weights of a combination must be finite")
    if not (C != 0).any(axis=1).all():
        raise DataError("weights of a combination are all 0")
    return C


def _combine_linearly(C: FloatArray, x: FloatArray) -> FloatArray:
    """Return linear combinations of the last axis. They are NaN only if a NaN has a weight other than 0."""
    lost = np.isnan(x) @ (C != 0).T
    return np.where(lost, np.nan, np.where(np.isnan(x), 0.0, x) @ C.T)


def positions(metric: Metric, names: Sequence[str]) -> list[int]:
    """Return the positions of a metric's totals among `names`, and refuse a metric without one of them."""
    lacking = [c.name for c in metric.columns if c.name not in names]
    if lacking:
        raise NotIdentified(f"{metric.name} needs {lacking}, which are not among the totals")
    return [names.index(c.name) for c in metric.columns]
