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
from .combinations import Combination, check_weights, combine_linearly, compute_covariance
from .definitions import Metric, Support, resolve_metric
from .intervals import DEFAULT, EqualTailed, Kind, shift_ends
from .tables import UNDECIDED, Pictured, describe_quoted, tabulate
from .unseen import ROUNDING, Moves, Unseen, by_component, map_components

if TYPE_CHECKING:
    import xarray as xr

NEGATIVE = (
    "its variance estimate is below 0, as that of Horvitz and Thompson can be in a small sample: use the "
    "jackknife, keep the draws with their repeats (UniformRecords), or label more"
)
EMPTY = "its denominator is 0 in this sample"


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
    """The same components if undecided answers are all `wrong`, and all `right`; their `share`."""

    wrong: Estimates = by_component(0)
    right: Estimates = by_component(0)
    share: float

    @property
    def decide(self) -> bool:
        """Whether they are as many that what is quoted is the range of both cases."""
        return self.share >= UNDECIDED

    def find_ends(self, own: FloatArray, level: float) -> FloatArray:
        """Return the worst and the best end, (k, 2), of the intervals `own` and those of both cases."""
        ends = np.stack([own, self.wrong.interval(level), self.right.interval(level)])
        low_high = np.stack([ends[..., 0].min(axis=0), ends[..., 1].max(axis=0)], axis=-1)
        turned = self.wrong.estimate > self.right.estimate
        return np.where(turned[:, None], low_high[:, ::-1], low_high)


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Estimates(Pictured):
    """Estimates of metrics with their uncertainty, jointly: what every engine returns.

    `table()` has all with their intervals, `sentence()` says them in words, and `plot()` draws them. A loop
    over them takes the rows of the table. Leading axes are samples of a study; all methods take them except
    `contrast`, `as_draws` and `sentence`.

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
    undefined, origin : tuple of str, (k,)
        Why a component is NaN, or "", and how kinds of intervals begin, such as "mixed" for two readings.
    unseen : Unseen
        What no draw has shown of each component, and what labels settle. By default nothing is unreached, and
        draws are without number.
    moves : Moves, optional
        Gains and losses of draws, for components that are such sums.
    values : float array, (chain, draw, k), optional
        Bootstrap replicates or posterior draws (see `of_draws`).
    other, weight : Estimates and float array, (k,), optional
        The same metrics by another engine, whose intervals have the weight 1 - `weight`, such as the closed
        form next to replicates.
    combined, replicated, bets, cases : optional
        The parts of linear combinations, what replicates vary about, numbers of draws, and both cases of
        answers that nobody could give.
    kind : Kind
        The default kind of interval.
    remarks, notes : tuple of str
        What the engine says of this result, a sentence each, and what intervals say of themselves, next to
        `sentence` too, as that they depend on a prior.
    fitted : object, optional
        The fit of a model behind them, which reports explain.

    Examples
    --------
    >>> given = dict(names=("pairwise-recall", "rand"), df=np.full(2, 20.0), support=((0.0, 1.0),) * 2)
    >>> found = Estimates(mean=np.array([0.8, 0.9]), cov=np.full((2, 2), 0.01), **given)
    >>> found.interval().round(2)
    array([[0.56, 0.96],
           [0.63, 1.  ]])
    >>> round(found["rand"].upper, 2), found.contrast([[-1, 1]], ["rand - recall"]).sd
    (np.float64(1.0), array([0.]))
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
        k, drawn = len(self.names), self.values is not None
        distances = np.zeros((k, 2)) if drawn else measure_distances(self.mean, self.support)
        object.__setattr__(self, "unseen", self.unseen.for_metrics(distances))
        object.__setattr__(self, "undefined", self.undefined or ("",) * k)
        object.__setattr__(self, "origin", self.origin or ("",) * k)
        object.__setattr__(self, "moves", self.moves or Moves.none(*self.mean.shape))

    @classmethod
    def of_draws(
        cls, names: tuple[str, ...], values: FloatArray, support: tuple[Support, ...], **given: Any
    ) -> Self:
        """Return draws of metrics, (chain, draw, k), as estimates: by default the means of the draws."""
        flat, k = values.reshape(-1, len(names)), len(names)
        why = f"of {len(flat)} draws, since its denominator is 0 there: label more"
        lost = np.isnan(flat).sum(axis=0).tolist()
        # in no draw as in the sample itself, such as a prediction without a link, which no label changes
        of_each = (EMPTY if n == len(flat) else f"it is 0/0 in {n} {why}" if n else "" for n in lost)
        own: dict[str, Any] = {"mean": flat.mean(axis=0), "df": np.full(k, np.inf), "kind": EqualTailed()}
        own |= {"cov": np.cov(flat, rowvar=False).reshape(k, k), "undefined": tuple(of_each)}
        return cls(names=names, values=values, support=support, **own | given)

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
        """Return standard errors, or those of draws, (..., k), at most half of certain ends (Popoviciu)."""
        half, size = np.ptp(self.unseen.certain, axis=-1) / 2, np.maximum(np.abs(self.uncut), 1)
        return np.asarray(np.minimum(self.uncut_sd, np.where(half <= ROUNDING * size, 0.0, half)))

    @property
    def uncut_sd(self) -> FloatArray:
        """Return standard errors, (..., k), as if labels settled nothing: 0 for rounding, NaN for none."""
        variance = _find_variances(self)
        if (variance < 0).any() and all(self.reasons):
            raise DataError(describe_reasons(self))
        own = np.sqrt(np.where(variance < 0, np.nan, variance))
        return own if self.other is None else average(self.weight, own, self.other.uncut_sd)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Return why a component has no estimate or no standard error, (k,); "" if it has both."""
        return _find_reasons(self)

    @property
    def census(self) -> bool:
        """Whether every unit is labelled, so that there is no sampling error."""
        certain = np.isinf(self.unseen.effective).all() and not (_find_variances(self) > 0).any()
        return bool(self.values is None and certain)

    def as_draws(self, number: int = 4000, rng: Seed = None) -> Estimates:
        """Return its draws, with equal tails, or `number` ones that are distributed as default intervals."""
        if self.values is not None:
            return replace(self, replicated=None, kind=EqualTailed())
        return _draw(self, number, generator(rng))

    def part(self, at: Sequence[int]) -> Self:
        """Return the components at the positions `at`, jointly. Negative ones count from the end."""
        j = _locate_names(at, self.names)
        return map_components(lambda axes, x: _take_components(axes, x, j), self)

    def contrast(self, weights: FloatArray, names: Sequence[str]) -> Estimates:
        """Return linear combinations by `weights`, (j, k), such as differences; of draws, draw by draw."""
        return _combine(self, check_weights(weights, names, self.names), tuple(names))

    def interval(self, level: float = 0.95, kind: Kind | None = None) -> FloatArray:
        """Return two-sided intervals, (..., k, 2), by default of their own `kind`.

        They are cut to the support, and to the ends that are certain if the labels are right.
        """
        return self.unseen.cut(self.uncut, self.uncut_interval(level, kind))[1]

    def uncut_interval(self, level: float = 0.95, kind: Kind | None = None) -> FloatArray:
        """Return intervals, (..., k, 2), as if labels settled nothing."""
        return _find_bounds(self, level, self.kind if kind is None else kind)

    def name_kind(self, j: int, kind: Kind | None = None) -> str:
        """Return the name of the kind of interval of component j."""
        return _name_kind(self, j, self.kind if kind is None else kind)

    def table(
        self, level: float = 0.95, kind: Kind | None = None, settled: bool = False, errors: bool = False
    ) -> pd.DataFrame:
        """Return estimates, uncertainties, intervals with their kind, and any reasons why one is missing.

        If answers are undecided, columns `worst` and `best` have the outer ends of intervals if all of them
        are wrong, and if all are right. If `settled`, columns `least` and `most` have the values that are
        possible whatever the records without a label are, if the labels are right (docs/intervals.md). If
        `errors`, columns `lower_mcse` and `upper_mcse` have the Monte Carlo standard errors of equal-tailed
        intervals of draws, by which their ends move from seed to seed, without what `unseen` adds (Vehtari et
        al. 2021, Bayesian Analysis 16, 667-718). They need the extra `bayes`.
        """
        return tabulate(self, level, kind, settled, errors)

    @property
    def tree(self) -> xr.DataTree:
        """Return the draws as a tree for ArviZ, whose group `posterior` has one variable, `metrics`."""
        given = {"dims": {"metrics": ["metric"]}, "coords": {"metric": list(self.names)}}
        make = import_extra("arviz", "a tree needs ArviZ", "bayes").from_dict
        tree: xr.DataTree = make({"posterior": {"metrics": self.chains}}, **given)
        return tree

    def estimates_by_name(self) -> Mapping[str, Estimates]:
        """Return what `erbayes.plots.draw_forest` draws of a result, by name: this alone, without a name."""
        return {"": self}

    def __getitem__(self, metric: Metric | str) -> pd.Series:
        """Return the row of one metric in `table()`: `estimate`, `lower`, `upper` and the rest."""
        row = self.table().loc[_find_name(self, metric)]
        assert isinstance(row, pd.Series)
        return row

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[pd.Series]:
        """Return the rows of `table()`, of which `pandas.DataFrame(estimates)` makes the table again."""
        return (row for _, row in self.table().iterrows())

    def __contains__(self, metric: object) -> bool:
        with suppress(DataError):
            return _find_name(self, metric) in self.names
        return False

    def sentence(self, level: float = 0.95, kind: Kind | None = None) -> str:
        """Return the estimates of precision and recall in words, or else those of the first two metrics.

        Examples
        --------
        >>> given = dict(names=("pairwise-recall",), df=np.array([20.0]), support=((0.0, 1.0),))
        >>> print(Estimates(mean=np.array([0.8]), cov=np.array([[0.01]]), **given).sentence())
        Of the links that are truly there, the matcher found 80 % (95 % interval 56 % to 96 %).
        """
        return " ".join([*self.sentences(level, kind), *self.notes])

    def sentences(self, level: float = 0.95, kind: Kind | None = None, draws: str = "No draw") -> list[str]:
        """Return the sentences of `sentence`; `draws`: those none of which shows an error."""
        return describe_quoted(self, self.interval(level, kind), level, draws)


def average(weight: FloatArray, own: FloatArray, other: FloatArray) -> FloatArray:
    """Return weight own + (1 - weight) other; each alone where it has the whole weight, also next to NaN."""
    with np.errstate(invalid="ignore"):
        both = weight * own + (1 - weight) * other
    return np.where(weight == 1, own, np.where(weight == 0, other, both))


def measure_distances(mean: FloatArray, support: Sequence[Support]) -> FloatArray:
    """Return the ends of each support less the mean, (..., k, 2); 0 for a support without bounds."""
    ends = np.where(np.isfinite(support).all(axis=1, keepdims=True), support, np.nan)
    return np.nan_to_num(ends - mean[..., None])


def describe_reasons(result: Estimates) -> str:
    """Return the reasons of all components, each after its name."""
    return "; ".join(f"{name}: {why}" for name, why in zip(result.names, result.reasons, strict=True))


def _find_variances(fit: Estimates) -> FloatArray:
    """Return variances, (..., k), with 0 for those that are rounding."""
    variance = np.diagonal(fit.cov, axis1=-2, axis2=-1)
    # a variance of 0 marks an estimate without errors in the sample, which rounding must not hide
    return np.where(np.abs(variance) <= 1e-24 * np.maximum(fit.mean**2, 1), 0.0, variance)


def _find_reasons(fit: Estimates) -> tuple[str, ...]:
    """Return why components have no estimate or no standard error, (k,)."""
    below = np.moveaxis(_find_variances(fit) < 0, -1, 0)
    own = tuple(why or (NEGATIVE if b.any() else "") for why, b in zip(fit.undefined, below, strict=True))
    if fit.other is None:
        return own
    taken = zip(fit.weight, own, fit.other.reasons, strict=True)
    return tuple(mine if weight else theirs for weight, mine, theirs in taken)


def _draw(fit: Estimates, number: int, rng: np.random.Generator) -> Estimates:
    """Return draws of a vector without draws, distributed as `DEFAULT`, and joined by a normal copula."""
    known = fit.uncut_sd > 0
    sd = np.where(known, fit.uncut_sd, 1.0)
    correlation = np.where(np.outer(known, known), fit.cov / np.outer(sd, sd), np.eye(len(sd)))
    value, vector = np.linalg.eigh(correlation)
    z = rng.standard_normal((number, len(sd))) * np.sqrt(np.maximum(value, 0))
    moving, support = fit.moves.there, np.array(fit.support)
    ends = np.where(moving[:, None], fit.unseen.certain, support)
    values = np.clip(DEFAULT.quantile(fit, ndtr(z @ vector.T)), *ends.T)
    unreached_share = np.where(moving, 0.0, fit.unseen.unreached_share)
    unseen = Unseen(unreached_share=unreached_share, certain=fit.unseen.certain)
    return Estimates.of_draws(fit.names, values[None], fit.support, mean=fit.mean, unseen=unseen)


def _combine(fit: Estimates, C: FloatArray, names: tuple[str, ...]) -> Estimates:
    """Return linear combinations of estimates by the rows of C, (j, k)."""
    centre = combine_linearly(C, fit.unseen.nearest(fit.mean))
    support, used = ((-np.inf, np.inf),) * len(C), C != 0
    if fit.values is not None:
        drawn = Estimates.of_draws(names, combine_linearly(C, fit.values), support, mean=centre)
        if fit.other is None:
            return drawn
        least = np.array([fit.weight[row].min() for row in used])
        return replace(drawn, other=fit.other.contrast(C, names), weight=least)
    cov = compute_covariance(C, np.where(np.isnan(fit.cov), 0.0, fit.cov), 1e-12)
    lost = used @ np.isnan(np.diagonal(fit.cov))
    cov[lost], cov[:, lost] = np.nan, np.nan
    reasons = np.array(fit.undefined, dtype=object)
    return Estimates(
        names=names,
        mean=centre,
        cov=cov,
        df=np.array([fit.df[row].min() for row in used]),
        support=support,
        undefined=tuple("; ".join(dict.fromkeys(filter(None, reasons[row]))) for row in used),
        unseen=Unseen(effective=np.array([fit.unseen.effective[row].min() for row in used])),
        combined=Combination(parts=fit, weights=C),
        kind=fit.kind,
    )


def _find_bounds(fit: Estimates, level: float, kind: Kind) -> FloatArray:
    """Return intervals of a kind, (..., k, 2), as if labels settled nothing."""
    if fit.combined is not None:
        down, up = fit.combined.find_arms(level, kind)
        return np.stack([fit.mean - down, fit.mean + up], axis=-1)
    bounds = shift_ends(fit, level, kind)
    if fit.values is not None:
        bounds = DEFAULT.widened(fit, bounds)
    if fit.other is None:
        return bounds
    return average(fit.weight[:, None], bounds, fit.other.uncut_interval(level))


def _name_kind(fit: Estimates, j: int, kind: Kind) -> str:
    """Return the name of the kind of interval of component j."""
    if fit.combined is not None:
        of_part = int(np.flatnonzero(fit.combined.weights[j])[-1])
        return f"{fit.combined.parts.name_kind(of_part, kind)}, of the parts"
    name = kind.label(fit, j)
    if fit.other is not None and (share := 100 * fit.weight[j]) < 100:
        other = fit.other.name_kind(j)
        name = f"{share:.0f} % {name}, {100 - share:.0f} % {other}" if share else other
    return f"{fit.origin[j]} {name}".strip()


def _take_components(axes: Sequence[int], x: Any, at: Sequence[int]) -> Any:
    """Return the components at the positions `at` of a tuple, or of an array along its `axes`."""
    if isinstance(x, tuple):
        return tuple(x[i] for i in at)
    for axis in axes:
        x = np.take(x, at, axis)
    return x


def _find_name(fit: Estimates, metric: Any) -> str:
    """Return the name of a metric of a result, and refuse one that it has not, or a column."""
    if metric in fit.names:
        return str(metric)
    if isinstance(metric, str) and metric in fit.table():
        raise DataError(f"{metric!r} is a column, not a metric: table()[{metric!r}] has it of all")
    name = resolve_metric(metric).name
    if name not in fit.names:
        raise DataError(f"{name} is not among these metrics: {', '.join(fit.names)}")
    return name


def _locate_names(at: Any, names: Sequence[str]) -> list[int]:
    """Return positions among `names` as a list, (j,), refusing names and those past the end."""
    j = list(at) if isinstance(at, Iterable) and not isinstance(at, str) else [at]
    k = len(names)
    bad = [i for i in j if isinstance(i, bool) or not isinstance(i, int | np.integer) or not -k <= i < k]
    if bad or not j:
        told = ", ".join(f"{i} {name}" for i, name in enumerate(names))
        what = f"components are taken by position, 0 to {k - 1}, not {head(bad) or 'none'}; they are {told}"
        raise DataError(what)
    return [int(i) for i in j]
