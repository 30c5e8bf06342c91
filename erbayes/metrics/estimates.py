"""Estimates of metrics: what every engine returns, with intervals, contrasts and tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Never, Self

import numpy as np
import pandas as pd
from scipy.special import ndtr

from .._internal.arrays import FloatArray, Seed, generator
from .._internal.errors import DataError, head, import_extra
from .combinations import check_weights, combine_linearly, compute_covariance
from .definitions import Metric, resolve_metric
from .intervals import (
    DEFAULT,
    Anytime,
    Distribution,
    EqualTailed,
    Kind,
    Support,
    compute_end_errors,
    shift_ends,
)
from .sentences import UNDECIDED, describe_quoted
from .tables import Pictured, reason_column
from .unseen import ROUNDING, Moves, Unseen, by_component, map_components

if TYPE_CHECKING:
    import xarray as xr

NEGATIVE = (
    "its variance estimate is below 0, as that of Horvitz and Thompson can be in a small sample: use the "
    "jackknife, keep the draws with their repeats (UniformRecords), or label more"
)
EMPTY = "its denominator is 0 in this sample"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Combination:
    """Linear combinations of `parts`, (k,), by `weights`, (j, k), with intervals from those of the parts.

    With estimates x_i, correlations r_il and arms δ_i of the parts on the sides to which weights w_i turn
    them, the arm of Σ w_i x_i is √(ΣΣ w_i δ_i w_l δ_l r_il), so that nothing for which the intervals of the
    parts allow is lost (Zou and Donner 2008, Statistics in Medicine 27, 1693-1702). Variances in r_il include
    what the kind adds for errors that no draw has shown. One draw that shows an error of both parts would
    otherwise make their correlation 1, and cancel the arms of all other errors.
    """

    parts: Estimates
    weights: FloatArray = by_component(0)

    def find_arms(self, level: float, kind: Kind) -> FloatArray:
        """Return the arms down and up, (2, j), of intervals of a kind."""
        w, parts = self.weights, self.parts
        # what no draw shows of one part does not go with that of another, however few draws make both
        unseen = kind.spread_unseen(parts) if isinstance(kind, Distribution | Anytime) else 0.0
        sd = np.sqrt(parts.uncut_sd**2 + unseen)
        both = np.outer(sd, sd)
        # a part without a standard error has an arm all the same, which goes with no other
        r = np.divide(parts.cov, both, out=np.zeros_like(both), where=both > 0)
        np.fill_diagonal(r, 1.0)
        down, up = np.abs(parts.interval(level, kind) - parts.estimate[:, None]).T
        # a negative weight turns the arm up of a part into one down
        turned = (w * np.where(w < 0, up, down), w * np.where(w < 0, down, up))
        of_each = (np.where(w != 0, arm, 0.0) for arm in turned)
        return np.stack([np.sqrt(np.maximum(np.sum((arm @ r) * arm, axis=1), 0.0)) for arm in of_each])


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Replication:
    """What bootstrap replicates vary about, `plain`, (k,), and a sixth of their skewness, `acceleration`."""

    plain: FloatArray = by_component(0)
    acceleration: FloatArray = by_component(0)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Bets:
    """Numbers of draws in [0, 1], `values`, whose mean a metric is, and their `shares`, (..., n, k) each."""

    values: FloatArray = by_component(-1)
    shares: FloatArray = by_component(-1)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Cases:
    """Each component alone if undecided answers are all `wrong`, and all `right`, (k,); their `share`."""

    wrong: tuple[Estimates, ...] = by_component(0)
    right: tuple[Estimates, ...] = by_component(0)
    share: float

    @classmethod
    def of(cls, wrong: Estimates, right: Estimates, share: float) -> Self:
        """Return both cases of the same components, each of which stands alone."""
        of_each = [tuple(case.part([j]) for j in range(len(case))) for case in (wrong, right)]
        return cls(wrong=of_each[0], right=of_each[1], share=share)

    @property
    def decide(self) -> bool:
        """Whether they are as many that what is quoted is the range of both cases."""
        return self.share >= UNDECIDED

    def find_ends(self, own: FloatArray, level: float) -> FloatArray:
        """Return the worst and the best end, (k, 2), of the intervals `own` and those of both cases."""
        cases = self.wrong, self.right
        ends = np.stack([own, *(np.concatenate([x.interval(level) for x in case]) for case in cases)])
        wrong, right = (np.concatenate([x.estimate for x in case]) for case in cases)
        low_high = np.stack([ends[..., 0].min(axis=0), ends[..., 1].max(axis=0)], axis=-1)
        return np.where((wrong > right)[:, None], low_high[:, ::-1], low_high)


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Estimates(Pictured):
    """Estimates of metrics with their uncertainty, jointly: what every engine returns.

    `estimates["pairwise-recall"]` is one of them, `table()` has all with their intervals, `sentence()` says
    them in words, and `plot()` draws them. A loop over them takes the rows of the table. What intervals allow
    for is data of each component, which one method applies in one order. Leading axes are samples of a study;
    all methods take them except `contrast` and `as_draws`.

    Attributes
    ----------
    names : tuple of str, (k,)
    mean : float array, (..., k)
        Estimates as if labels settled nothing.
    cov : float array, (..., k, k)
        NaN if the sample has no variance estimate, as for a single draw.
    df : float array, (..., k)
        Degrees of freedom of each standard error; infinite for draws.
    support : tuple of (float, float), (k,)
        The least and the largest value of each.
    undefined : tuple of str, (k,)
        Why a component is NaN; "" if it is not.
    unseen : Unseen
        What no draw has shown of each component, and what labels settle. By default nothing is unreached, and
        draws are without number.
    moves : Moves, optional
        Gains and losses of draws, for components that are such sums.
    values : float array, (chain, draw, k), optional
        Bootstrap replicates or posterior draws (see `of_draws`).
    other : Estimates, optional
        The same metrics by another engine, whose intervals have the weight 1 - `weight`, such as the closed
        form next to replicates.
    weight : float array, (k,), optional
        Weight of the own intervals, from 0 to 1, if there is an `other`.
    origin : tuple of str, (k,)
        How kinds of intervals begin, such as "mixed" for draws of both readings of a heap; "" by default.
    combined : Combination, optional
        The parts of linear combinations.
    replicated : Replication, optional
    bets : Bets, optional
    cases : Cases, optional
        Both cases of answers that nobody could give.
    kind : Kind
        The default kind of interval.
    remarks : tuple of str
        What the engine says of this result, a sentence each.
    notes : tuple of str
        What intervals say of themselves, next to `sentence` too, as that they depend on a prior.
    fitted : object, optional
        The fit of a model behind them, which reports explain.

    Examples
    --------
    >>> given = dict(names=("recall",), df=np.array([20.0]), support=((0.0, 1.0),))
    >>> Estimates(mean=np.array([0.8]), cov=np.array([[0.01]]), **given).interval().round(2)
    array([[0.56, 0.96]])
    """

    picture: ClassVar[str] = "forest"
    names: tuple[str, ...] = by_component(0)
    mean: FloatArray = by_component(-1)
    cov: FloatArray = by_component(-2, -1)
    df: FloatArray = by_component(-1)
    support: tuple[Support, ...] = by_component(0)
    undefined: tuple[str, ...] = by_component(0, default=())
    unseen: Unseen = by_component(-1, default=Unseen())
    moves: Moves = by_component(-1, default=None)
    values: FloatArray | None = by_component(-1, default=None)
    other: Estimates | None = by_component(-1, default=None)
    weight: FloatArray = by_component(-1, default=None)
    origin: tuple[str, ...] = by_component(0, default=())
    combined: Combination | None = by_component(0, default=None)
    replicated: Replication | None = by_component(0, default=None)
    bets: Bets | None = by_component(-1, default=None)
    cases: Cases | None = by_component(0, default=None)
    kind: Kind = DEFAULT
    remarks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    fitted: Any = None

    def __post_init__(self) -> None:
        # an array for each component, so that none of them is forgotten when components are selected
        drawn = self.values is not None
        distances = np.zeros((len(self.names), 2)) if drawn else measure_distances(self.mean, self.support)
        object.__setattr__(self, "unseen", self.unseen.for_metrics(distances))
        for name in ("undefined", "origin"):
            object.__setattr__(self, name, getattr(self, name) or ("",) * len(self.names))
        if self.moves is None:
            object.__setattr__(self, "moves", Moves.none(len(self.names)))

    @classmethod
    def of_draws(
        cls,
        names: tuple[str, ...],
        values: FloatArray,
        support: tuple[Support, ...],
        centre: FloatArray | None = None,
        unseen: Unseen | None = None,
        **given: Any,
    ) -> Self:
        """Return draws of metrics, (chain, draw, k), as estimates: by default the means of the draws.

        Examples
        --------
        >>> draws = Estimates.of_draws(("a", "b"), np.array([[[1.0, 2.0], [3.0, 4.0]]]), ((0.0, np.inf),) * 2)
        >>> draws.mean, draws.part([1]).estimate
        (array([2., 3.]), array([3.]))
        """
        flat, k = values.reshape(-1, len(names)), len(names)
        why = f"of {len(flat)} draws, since its denominator is 0 there: label more"
        # in no draw as in the sample itself, such as a prediction without a link, which no label changes
        undefined = tuple(
            EMPTY if n == len(flat) else f"it is 0/0 in {n} {why}" if n else ""
            for n in np.isnan(flat).sum(axis=0).tolist()
        )
        return cls(
            names=names,
            mean=np.asarray(flat.mean(axis=0)) if centre is None else centre,
            cov=np.cov(flat, rowvar=False).reshape(k, k),
            df=np.full(k, np.inf),
            support=support,
            undefined=undefined,
            unseen=unseen or Unseen(),
            values=values,
            **{"kind": EqualTailed()} | given,
        )

    def __sub__(self, other: object) -> Never:
        """Refuse a difference, which needs the draws that both estimates share."""
        raise DataError("differences are paired: compare(predictions, labels, design).subtract('old', 'new')")

    def keys(self) -> tuple[str, ...]:
        """Return the names, as `dict(estimates)` asks for them."""
        return self.names

    @property
    def alarms(self) -> tuple[str, ...]:
        """Return the alarms of the engine about this result; a sentence without a grade is a caution."""
        return (*self.remarks, *self.notes)

    @property
    def chains(self) -> FloatArray:
        """Return the draws, (chain, draw, k), and refuse estimates without draws."""
        if self.values is None:
            raise DataError("these estimates are no draws: as_draws() makes draws of them")
        return self.values

    @property
    def flat(self) -> FloatArray:
        """Return all draws, (chain x draw, k)."""
        return self.chains.reshape(-1, len(self.names))

    @property
    def estimate(self) -> FloatArray:
        """Return the point estimates, (..., k), at the nearest certain value."""
        return self.unseen.nearest(self.uncut)

    @property
    def uncut(self) -> FloatArray:
        """Return the point estimates, (..., k), as if labels settled nothing."""
        return self.mean if self.other is None else average(self.weight, self.mean, self.other.uncut)

    @property
    def sd(self) -> FloatArray:
        """Return standard errors, or standard deviations of draws, (..., k).

        They are at most half of the distance of certain ends, between which no number has more (Popoviciu).
        """
        half = np.ptp(self.unseen.certain, axis=-1) / 2
        rounding = half <= ROUNDING * np.maximum(np.abs(self.uncut), 1)
        return np.asarray(np.minimum(self.uncut_sd, np.where(rounding, 0.0, half)))

    @property
    def _variance(self) -> FloatArray:
        """Return variances, (..., k), with 0 for those that are rounding."""
        variance = np.diagonal(self.cov, axis1=-2, axis2=-1)
        # a variance of 0 marks an estimate without errors in the sample, which rounding must not hide
        return np.where(np.abs(variance) <= 1e-24 * np.maximum(self.mean**2, 1), 0.0, variance)

    @property
    def uncut_sd(self) -> FloatArray:
        """Return standard errors, (..., k), as if labels settled nothing.

        They are 0 if only rounding is left, and NaN if there is none.
        """
        variance = self._variance
        if (variance < 0).any() and all(self.reasons):
            raise DataError(describe_reasons(self))
        own = np.sqrt(np.where(variance < 0, np.nan, variance))
        return own if self.other is None else average(self.weight, own, self.other.uncut_sd)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Return why a component has no estimate or no standard error, (k,); "" if it has both."""
        below = np.moveaxis(self._variance < 0, -1, 0)
        own = [why or (NEGATIVE if b.any() else "") for why, b in zip(self.undefined, below, strict=True)]
        if self.other is not None:
            taken = zip(self.weight, own, self.other.reasons, strict=True)
            own = [mine if weight else theirs for weight, mine, theirs in taken]
        return tuple(own)

    @property
    def census(self) -> bool:
        """Whether every unit is labelled, so that there is no sampling error."""
        certain = np.isinf(self.unseen.effective).all() and not (self._variance > 0).any()
        return bool(self.values is None and certain)

    def as_draws(self, number: int = 4000, rng: Seed = None, kind: Distribution = DEFAULT) -> Estimates:
        """Return draws of the vector: its own with equal tails, or `number` ones distributed as `kind`.

        These are joined by a normal copula.
        """
        if self.values is not None:
            return replace(self, replicated=None, kind=EqualTailed())
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
        return Estimates.of_draws(self.names, values[None], self.support, self.mean, unseen)

    def part(self, at: Sequence[int]) -> Self:
        """Return the components at the positions `at`, jointly. Negative ones count from the end."""
        j = _locate_names(at, self.names)
        return map_components(lambda axes, x: _take_components(axes, x, j), self)

    def contrast(self, weights: FloatArray, names: Sequence[str]) -> Estimates:
        """Return linear combinations by `weights`, (j, k), such as differences of correlated estimates.

        Draws are combined draw by draw.

        Examples
        --------
        >>> given = dict(names=("a", "b"), df=np.full(2, 9.0), support=((-np.inf, np.inf),) * 2)
        >>> fit = Estimates(mean=np.array([0.8, 0.9]), cov=np.full((2, 2), 0.01), **given)
        >>> fit.contrast([[-1, 1]], ["b - a"]).sd
        array([0.])
        """
        C = check_weights(weights, names, self.names)
        centre = combine_linearly(C, self.unseen.nearest(self.mean))
        support = ((-np.inf, np.inf),) * len(C)
        if self.values is not None:
            drawn = Estimates.of_draws(tuple(names), combine_linearly(C, self.values), support, centre)
            if self.other is None:
                return drawn
            least = np.array([self.weight[row != 0].min() for row in C])
            return replace(drawn, other=self.other.contrast(C, names), weight=least)
        cov = compute_covariance(C, np.where(np.isnan(self.cov), 0.0, self.cov), 1e-12)
        lost = (C != 0) @ np.isnan(np.diagonal(self.cov))
        cov[lost], cov[:, lost] = np.nan, np.nan
        reasons = np.array(self.undefined, dtype=object)
        return Estimates(
            names=tuple(names),
            mean=centre,
            cov=cov,
            df=np.array([self.df[row != 0].min() for row in C]),
            support=support,
            undefined=tuple("; ".join(dict.fromkeys(filter(None, reasons[row != 0]))) for row in C),
            unseen=Unseen(effective=np.array([self.unseen.effective[row != 0].min() for row in C])),
            combined=Combination(parts=self, weights=C),
            kind=self.kind,
        )

    def interval(self, level: float = 0.95, kind: Kind | None = None) -> FloatArray:
        """Return two-sided intervals, (..., k, 2), by default of their own `kind`.

        They are cut to the support, and to the ends that are certain if the labels are right.
        """
        return self.unseen.cut(self.uncut, self.uncut_interval(level, kind))[1]

    def uncut_interval(self, level: float = 0.95, kind: Kind | None = None) -> FloatArray:
        """Return intervals, (..., k, 2), as if labels settled nothing."""
        kind = self.kind if kind is None else kind
        if self.combined is not None:
            down, up = self.combined.find_arms(level, kind)
            return np.stack([self.mean - down, self.mean + up], axis=-1)
        bounds = shift_ends(self, level, kind)
        if self.values is not None:
            bounds = DEFAULT.widened(self, bounds)
        if self.other is None:
            return bounds
        return average(self.weight[:, None], bounds, self.other.uncut_interval(level))

    def name_kind(self, j: int, kind: Kind | None = None) -> str:
        """Return the name of the kind of interval of component j."""
        if self.combined is not None:
            of_part = int(np.flatnonzero(self.combined.weights[j])[-1])
            return f"{self.combined.parts.name_kind(of_part, kind)}, of the parts"
        name = (self.kind if kind is None else kind).label(self, j)
        if self.other is not None and (share := 100 * self.weight[j]) < 100:
            other = self.other.name_kind(j)
            name = f"{share:.0f} % {name}, {100 - share:.0f} % {other}" if share else other
        return f"{self.origin[j]} {name}".strip()

    def spread(self) -> dict[str, FloatArray]:
        """Return the columns of tables with the uncertainty of the components, (..., k) each."""
        if self.values is not None:
            return {"sd": self.sd}
        return {"se": self.sd, "df": np.broadcast_to(self.df, self.mean.shape)}

    def table(
        self, level: float = 0.95, kind: Kind | None = None, settled: bool = False, errors: bool = False
    ) -> pd.DataFrame:
        """Return estimates, uncertainties, intervals with their kind, and any reasons why one is missing.

        If answers are undecided, columns `worst` and `best` have the outer ends of intervals if all of them
        are wrong, and if all are right. If `settled`, columns `least` and `most` have the values that are
        possible whatever the records without a label are, if the labels are right (docs/intervals.md). If
        `errors`, columns `lower_mcse` and `upper_mcse` have the Monte Carlo standard errors of the two
        quantiles of draws, by which the ends of an interval move from seed to seed. More draws make them
        smaller. They are NaN for other intervals than equal-tailed ones, and leave out what `unseen` adds.
        They need the extra `bayes`.

        References
        ----------
        Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021), Bayesian Analysis 16, 667-718.

        Examples
        --------
        >>> values = np.random.default_rng(1).standard_normal((4, 1000, 1))
        >>> draws = Estimates.of_draws(("a",), values, ((-np.inf, np.inf),))
        >>> draws.table(errors=True)[["lower", "lower_mcse", "upper_mcse"]].round(2)
                lower  lower_mcse  upper_mcse
        metric
        a       -1.94        0.03        0.05
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
        if self.cases is not None:
            columns |= dict(zip(("worst", "best"), self.cases.find_ends(bounds, level).T, strict=True))
        if settled:
            ends = np.clip(self.unseen.certain, *np.transpose(self.support)[..., None])
            columns |= {"least": ends[..., 0], "most": ends[..., 1]}
        reasons = np.broadcast_to(self.reasons, shape).ravel()
        table = pd.DataFrame({k: x.ravel() for k, x in columns.items()} | reason_column(reasons), index=index)
        if errors:
            table[["lower_mcse", "upper_mcse"]] = compute_end_errors(self, level, kind or self.kind)
        return table

    @property
    def tree(self) -> xr.DataTree:
        """Return the draws as a tree for ArviZ, whose group `posterior` has one variable, `metrics`."""
        values = {"posterior": {"metrics": self.chains}}
        tree: xr.DataTree = import_extra("arviz", "a tree needs ArviZ", "bayes").from_dict(
            values, dims={"metrics": ["metric"]}, coords={"metric": list(self.names)}
        )
        return tree

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
        >>> found = Estimates(mean=np.array([0.8]), cov=np.array([[0.01]]), **given)
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
        >>> found = Estimates(mean=np.array([0.8]), cov=np.array([[0.01]]), **given)
        >>> print(found.sentence())
        Of the links that are truly there, the matcher found 80 % (95 % interval 56 % to 96 %).
        """
        return " ".join([*self.sentences(level, kind), *self.notes])

    def sentences(
        self, level: float = 0.95, kind: Kind | None = None, *, draws: str = "No draw"
    ) -> list[str]:
        """Return the sentences of `sentence`; `draws`: those none of which shows an error."""
        return describe_quoted(self, self.interval(level, kind), level, draws)


def average(weight: FloatArray, own: FloatArray, other: FloatArray) -> FloatArray:
    """Return weight own + (1 - weight) other; each alone where it has the whole weight, also next to NaN."""
    with np.errstate(invalid="ignore"):
        both = weight * own + (1 - weight) * other
    return np.where(weight == 1, own, np.where(weight == 0, other, both))


def _take_components(axes: Sequence[int], x: Any, at: Sequence[int]) -> Any:
    """Return the components at the positions `at` of a tuple, or of an array along its `axes`."""
    if isinstance(x, tuple):
        return tuple(x[i] for i in at)
    for axis in axes:
        x = np.take(x, at, axis)
    return x


def describe_reasons(result: Estimates) -> str:
    """Return the reasons of all components, each after its name."""
    return "; ".join(f"{name}: {why}" for name, why in zip(result.names, result.reasons, strict=True))


def measure_distances(mean: FloatArray, support: Sequence[Support]) -> FloatArray:
    """Return the ends of each support less the mean, (..., k, 2); 0 for a support without bounds."""
    ends = np.where(np.isfinite(support).all(axis=1, keepdims=True), support, np.nan)
    return np.nan_to_num(ends - mean[..., None])


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
