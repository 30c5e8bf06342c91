"""Metrics: smooth functions of totals over units.

Weights that are known up to a factor suffice for every metric except P_rec, since a common factor of all
totals cancels. A metric that counts something is scaled by N / Σ records, and the prediction gives N. A
predicted quantity such as |P| is estimated from the sampled units, although it is known, because errors of
numerator and denominator then cancel in part. (Compare the paper's P_block with its P_rec.)

In formulas, TP, |T| and |P| are the numbers of common, true and predicted links, and N is the number of
records. The numbers of entities and of predicted clusters are |C| and |Ĉ|, and that of exactly predicted
entities is S. The number of pieces is B. A piece has n records, its entity N_c and its predicted cluster m.

Sources: [B22] Binette et al. (2022), arXiv 2210.01230. [M10] Menestrina et al. (2010), generalised
merge distance. [R07] Rosenberg and Hirschberg (2007), V-measure. [T07] Talburt et al. (2007).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from csv import DictReader
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from functools import cached_property
from io import StringIO
from operator import truediv
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from .._internal.arrays import FloatArray
from .._internal.errors import DataError, Remedy, number
from . import columns as u

Support = tuple[float, float]
UNIT: Support = (0.0, 1.0)
"""The least and the largest value of a share."""
POSITIVE: Support = (0.0, np.inf)
"""The least and the largest value of a count."""
Value = NDArray[Any]


class Group(Enum):
    """Headings of metrics in long tables, by subject."""

    LINKS = "Links between records"
    WHOLE = "Whole entities and clusters"
    RECORDS = "Records"
    INFORMATION = "Information"
    EDITS = "Splits and merges"
    TRUTH = "The true entities"
    OTHER = "Other metrics"


@dataclass(frozen=True, eq=False)
class Metric:
    """A smooth function of totals, with its name and its meaning.

    Attributes
    ----------
    name : str
    columns : tuple of Column or Known
        The totals that `formula` takes, in order.
    formula : callable
        Vectorised, and analytic in its arguments, since derivatives use complex steps.
    size : tuple of (Column, coefficient)
        The sum of totals that the metric averages over, whose effective draws give the degrees of freedom.
    support : (float, float)
        The least and the largest value.
    source : str, of formula and citation
    absolute : bool
        True if totals that are known up to a factor do not suffice.
    meaning : str
        The metric in one sentence of at most 25 words.
    group : Group

    Examples
    --------
    The number of predicted clusters per entity:

    >>> from erbayes.metrics.columns import ENTITIES, PREDICTED_CLUSTERS
    >>> columns, size = (PREDICTED_CLUSTERS, ENTITIES), ((ENTITIES, 1.0),)
    >>> Metric("clusters-per-entity", columns, lambda k, c: k / c, size, POSITIVE, "|Ĉ|/|C|")
    <clusters-per-entity: |Ĉ|/|C|>
    """

    name: str
    columns: tuple[u.Column | u.Known, ...]
    formula: Callable[..., Value]
    size: tuple[tuple[u.Column, float], ...]
    support: Support
    source: str
    absolute: bool = False
    meaning: str = ""
    group: Group = Group.OTHER

    def __repr__(self) -> str:
        return f"<{' '.join(filter(None, (f'{self.name}:', self.meaning, self.source)))}>"

    @cached_property
    def is_share(self) -> bool:
        """Whether this is a ratio of totals on [0, 1] whose denominator is its `size`."""
        if self.support != UNIT or any(isinstance(c, u.Known) for c in self.columns):
            return False
        names = list(dict.fromkeys(c.name for c in (*self.columns, *(sized for sized, _ in self.size))))
        # metric times size is a sum over units, if it adds at two points without a pattern
        first, second = np.sqrt(2 + np.arange(2 * len(names))).reshape(2, -1)

        def top(y: FloatArray) -> float:
            by_name = dict(zip(names, y, strict=True))
            size = sum(coefficient * by_name[c.name] for c, coefficient in self.size)
            return float(self.formula(*(by_name[c.name] for c in self.columns)) * size)

        with np.errstate(invalid="ignore", divide="ignore"):
            return bool(np.isclose(top(first + second), top(first) + top(second), rtol=1e-9, atol=0))

    def __reduce_ex__(self, protocol: SupportsIndex, /) -> str | tuple[Any, ...]:
        """Return how copies and pickles make it again: by its name, since formulas may have none."""
        if NAMED.get(self.name) is self:
            return _find_metric, (self.name,)
        return object.__reduce_ex__(self, protocol)

    def __call__(self, *_: Any, **__: Any) -> Any:
        """Refuse to be called with a prediction, as functions of other packages are."""
        asked = f"estimate(prediction, labels, design, metrics={self.name!r})"
        raise DataError(f"{self.name} is a metric to ask for, and no function: call erbayes.{asked}")

    @cached_property
    def averaged(self) -> tuple[int, int]:
        """The place in `AVERAGED` of what this is a share of, alone or with others, also in a domain.

        The first is for samples of predicted clusters, the second for others; -1 stands for none. Of shares
        of records it is that of B-cubed recall, and of B-cubed precision if predicted clusters were drawn:
        strangers in a large cluster are entities of their own, which other draws reach.
        """
        sizes = [u.whole_column(c) for c, _ in self.size] if self.is_share else []
        counted = [u.whole_column(c) for c in self.columns if self.is_share and not isinstance(c, u.Known)]
        if links := [at for at, column in enumerate(AVERAGED[:2]) if any(column == size for size in sizes)]:
            return links[0], links[0]
        precision, recall = (any(c == one for c in counted) for one in (u.B3_PRECISION, u.B3_RECALL))
        return 2 if precision or recall else -1, 2 if recall else -1

    @cached_property
    def depends_on_true_size(self) -> bool:
        """Whether it differs if a matcher caps its clusters, and no sampled entity shows it."""
        return any(map(u.depends_on_true_size, self.columns))

    def count_in_error(self, by_entity: bool) -> float:
        """Return how much of what this averages over a unit in error has, over a right one."""
        sizes = {u.whole_column(c): max(share, 0.0) for c, share in self.size}
        # an entity that errs has two predicted clusters or more, a cluster two entities; right ones have one
        others = u.PREDICTED_CLUSTERS if by_entity else u.ENTITIES
        return 1 + sizes.get(others, 0.0) / (sum(sizes.values()) or 1.0)


AVERAGED: tuple[u.Column, ...] = (u.PREDICTED_LINKS, u.TRUE_LINKS, u.RECORDS)
"""Totals of which draws may leave a share out of reach (see `erbayes.Sample.out_of_reach`)."""


def coefficients_of_size(metrics: Sequence[Metric], names: Sequence[str]) -> FloatArray:
    """Return the coefficients of the total that each metric averages over, by totals, (metrics, k)."""
    at = {name: i for i, name in enumerate(names)}
    coefficients = np.zeros((len(metrics), len(names)))
    for j, metric in enumerate(metrics):
        for column, coefficient in metric.size:
            if column.name in at:
                coefficients[j, at[column.name]] += coefficient
    return coefficients


class Metrics(tuple[Metric, ...]):
    """A tuple of metrics that signatures show by one name."""

    name: str

    def __new__(cls, metrics: Iterable[Metric], name: str = "") -> Metrics:
        collection = super().__new__(cls, metrics)
        collection.name = name
        return collection

    def __repr__(self) -> str:
        return self.name or super().__repr__()


# words stand in a table of their own, so that formulas can be read below each other
WORDS = {
    row["metric"]: (Group[row["group"]], row["source"], row["meaning"])
    for row in DictReader(StringIO(Path(__file__).with_name("definitions.csv").read_text(encoding="utf-8")))
}
"""Group, source and meaning of metrics, by name."""


def _make_metric(
    name: str,
    columns: tuple[u.Column | u.Known, ...],
    formula: Callable[..., Value],
    size: tuple[tuple[u.Column, float], ...],
    support: Support = UNIT,
    absolute: bool = False,
) -> Metric:
    """Return a metric with the words of its row in definitions.csv."""
    if name not in WORDS:
        raise LookupError(f"{name} has no words: add its row to erbayes/metrics/definitions.csv")
    group, source, meaning = WORDS[name]
    return Metric(name, columns, formula, size, support, source, absolute, meaning, group)


def _make_ratio(name: str, top: u.Column, bottom: u.Column, support: Support = UNIT) -> Metric:
    """Return the ratio of two totals as a metric, by a formula that computes many at once."""
    return _make_metric(name, (top, bottom), truediv, ((bottom, 1.0),), support)


def _make_count(name: str, columns: tuple[u.Column, ...], count: Callable[..., Value]) -> Metric:
    """Return a number of things in the population, N times their number per record, as a metric."""

    def formula(*totals: Value) -> Value:
        *counted, r, N = totals
        return np.asarray(N * count(*counted) / r)

    return _make_metric(name, (*columns, u.RECORDS, N), formula, PER_RECORD, POSITIVE)


def _make_muc(name: str, clusters: u.Column) -> Metric:
    """Return (N - B)/(N - K) for the K clusters of one side, of which the fewest links are N - K."""
    size = ((u.RECORDS, 1.0), (clusters, -1.0))
    return _make_metric(name, (u.RECORDS, u.PIECES, clusters), lambda r, b, k: (r - b) / (r - k), size)


N = u.Known(u.RECORDS)
EVERYONE = u.Known(u.RECORDS, everyone=True)
PREDICTED = u.Known(u.PREDICTED_LINKS)
PER_RECORD = ((u.RECORDS, 1.0),)
"""What a metric averages over if that is records, for `Metric.size`."""
LINKS = ((u.TRUE_LINKS, 1.0), (u.PREDICTED_LINKS, 1.0))
_pairwise = (u.COMMON_LINKS, u.TRUE_LINKS, u.PREDICTED_LINKS)
_pairs = (*_pairwise, u.RECORDS, EVERYONE)
_entropy = (u.N_LOG_N, u.N_LOG_SIZE, u.N_LOG_M, u.RECORDS)
_entropies = (*_entropy, EVERYONE)
_entropies_swapped = (u.N_LOG_N, u.N_LOG_M, u.N_LOG_SIZE, u.RECORDS, EVERYONE)


def _make_f(
    of: str, columns: tuple[u.Column, u.Column, u.Column], beta: float, source: str, group: Group
) -> Metric:
    """Return the weighted harmonic mean of precision a/c and recall a/b, from columns of a, b and c."""
    number(beta, f"beta of {of}_f", lambda x: 0 <= x < np.inf, "be 0 or more and finite")
    b2, (_, true, predicted) = beta**2, columns
    weighs = ": high only if both are high"
    if b2 != 1:
        weighs = f", in which {of} recall weighs {b2:g} times as much"
    meaning = f"The harmonic mean of {of} precision and {of} recall{weighs}."
    size = ((true, b2), (predicted, 1.0))

    def formula(a: Value, b: Value, c: Value) -> Value:
        return np.asarray((1 + b2) * a / (b2 * b + c))

    return Metric(f"{of}-f{beta:g}", columns, formula, size, UNIT, source, meaning=meaning, group=group)


def pairwise_f(beta: float = 1.0) -> Metric:
    """Make pairwise F, (1+β²) TP / (β²|T| + |P|), of common, true and predicted links, with β 0 or more.

    Examples
    --------
    >>> pairwise_f(2).name
    'pairwise-f2'
    """
    return _make_f("pairwise", _pairwise, beta, "(1+β²)TP/(β²|T|+|P|)", Group.LINKS)


def cluster_f(beta: float = 1.0) -> Metric:
    """Make cluster F, (1+β²) S / (β²|C| + |Ĉ|), with S the exactly predicted entities, and β 0 or more.

    Examples
    --------
    >>> cluster_f(0.5).name
    'cluster-f0.5'
    """
    columns = (u.EXACT, u.ENTITIES, u.PREDICTED_CLUSTERS)
    return _make_f("cluster", columns, beta, "(1+β²)S/(β²|C|+|Ĉ|)", Group.WHOLE)


def _subtract_cleanly(a: Value, b: Value) -> Value:
    """Return a - b, or 0 if only rounding is left, so that 0/0 stays 0/0 under every design."""
    gap = np.asarray(a - b)
    # the imaginary part remains, since it holds the derivative of a complex step
    return np.where(np.abs(gap.real) <= 1e-13 * np.abs(np.real(b)), gap - gap.real, gap)


def _compute_adjusted_rand(tp: Value, t: Value, p: Value, r: Value, N: Value) -> Value:
    """Return the adjusted Rand index from common, true and predicted links and records."""
    chance = 2 * t * p / (r * (N - 1))
    return _subtract_cleanly(tp, chance) / _subtract_cleanly((t + p) / 2, chance)


def _compute_removed(x: Value, l: Value, k: Value, r: Value, N: Value) -> Value:
    """Return the share of the entropy of a clustering, with Σ n log n of l, that another, of k, removes."""
    return 1 - _subtract_cleanly(k, x) / _subtract_cleanly(r * np.log(N), l)


def _compute_v(x: Value, l: Value, k: Value, r: Value, N: Value) -> Value:
    """Return the V-measure from the sums n log n of pieces, of entities and of predicted clusters."""
    full = r * np.log(N)
    unknown = _subtract_cleanly(full, k) + _subtract_cleanly(full, l)
    return np.asarray(2 * _subtract_cleanly(full + x, l + k) / unknown)


# Each metric below has its columns, the formula of their totals, what it averages over, and its range, while
# its words are in definitions.csv.

# Links between records
pairwise_precision = _make_ratio("pairwise-precision", u.COMMON_LINKS, u.PREDICTED_LINKS)
pairwise_recall = _make_ratio("pairwise-recall", u.COMMON_LINKS, u.TRUE_LINKS)
pairwise_f1 = pairwise_f()
fowlkes_mallows = _make_metric("fowlkes-mallows", _pairwise, lambda tp, t, p: tp / np.sqrt(t * p), LINKS)
jaccard = _make_metric("jaccard", _pairwise, lambda tp, t, p: tp / (t + p - tp), LINKS)
rand = _make_metric("rand", _pairs, lambda tp, t, p, r, N: 1 - 2 * (t + p - 2 * tp) / (r * (N - 1)), LINKS)
adjusted_rand = _make_metric("adjusted-rand", _pairs, _compute_adjusted_rand, LINKS, (-1.0, 1.0))
link_ratio = _make_ratio("link-ratio", u.PREDICTED_LINKS, u.TRUE_LINKS, POSITIVE)

# Whole entities and clusters
cluster_precision = _make_ratio("cluster-precision", u.EXACT, u.PREDICTED_CLUSTERS)
cluster_recall = _make_ratio("cluster-recall", u.EXACT, u.ENTITIES)
cluster_f1 = cluster_f()
closest_cluster_recall = _make_ratio("closest-cluster-recall", u.CLOSEST, u.ENTITIES)
closest_cluster_precision = _make_ratio(
    "closest-cluster-precision", u.CLOSEST_PREDICTED, u.PREDICTED_CLUSTERS
)

# Records
b3_precision = _make_ratio("b3-precision", u.B3_PRECISION, u.RECORDS)
b3_recall = _make_ratio("b3-recall", u.B3_RECALL, u.RECORDS)
b3_precision_entities = _make_ratio("b3-precision-entities", u.B3_PRECISION_MEAN, u.ENTITIES)
b3_recall_entities = _make_ratio("b3-recall-entities", u.B3_RECALL_MEAN, u.ENTITIES)
inverse_purity = _make_ratio("inverse-purity", u.LARGEST_PIECE, u.RECORDS)
purity = _make_ratio("purity", u.LARGEST_PIECE_PREDICTED, u.RECORDS)
split_rate = _make_metric("split-rate", (u.LARGEST_PIECE, u.RECORDS), lambda b, r: 1 - b / r, PER_RECORD)
_largest = (u.LARGEST_PIECE, u.LARGEST_PIECE_PREDICTED, u.RECORDS)
van_dongen = _make_metric("van-dongen", _largest, lambda a, b, r: 1 - (a + b) / (2 * r), PER_RECORD)
ceaf = _make_ratio("ceaf", u.BEST_MATCHING, u.RECORDS)

# Information
homogeneity = _make_metric("homogeneity", _entropies, _compute_removed, PER_RECORD)
completeness = _make_metric("completeness", _entropies_swapped, _compute_removed, PER_RECORD)
v_measure1 = _make_metric("v-measure1", _entropies, _compute_v, PER_RECORD)
mutual_information = _make_metric(
    "mutual-information", _entropies, lambda x, l, k, r, N: np.log(N) + (x - l - k) / r, PER_RECORD, POSITIVE
)
variation_of_information = _make_metric(
    "variation-of-information", _entropy, lambda x, l, k, r: (l + k - 2 * x) / r, PER_RECORD, POSITIVE
)

# Splits and merges
splits = _make_count("splits", (u.PIECES, u.PREDICTED_CLUSTERS), lambda b, k: b - k)
merges = _make_count("merges", (u.PIECES, u.ENTITIES), lambda b, c: b - c)
_edits = u.PieceSum("basic-merge-distance", lambda n, N, m: 2 - n / m - n / N)
basic_merge_distance = _make_count("basic-merge-distance", (_edits,), lambda d: d)
muc_precision = _make_muc("muc-precision", u.PREDICTED_CLUSTERS)
muc_recall = _make_muc("muc-recall", u.ENTITIES)
_parts = (u.ENTITIES, u.PREDICTED_CLUSTERS, u.PIECES)
talburt_wang = _make_metric("talburt-wang", _parts, lambda c, k, b: np.sqrt(c * k) / b, ((u.PIECES, 1.0),))

# The true entities
entities = _make_count("entities", (u.ENTITIES,), lambda c: c)
mean_cluster_size = _make_ratio("mean-cluster-size", u.RECORDS, u.ENTITIES, (1.0, np.inf))
singleton_share = _make_ratio("singleton-share", u.TRUE_SINGLETONS, u.ENTITIES)
matching_rate = _make_metric(
    "matching-rate", (u.TRUE_SINGLETONS, u.RECORDS), lambda s, r: 1 - s / r, PER_RECORD
)
_squares = u.PieceSum("size_power2", lambda n, N, m: n * N)
_per_size = (u.RECORDS, N)
hill1 = _make_metric(
    "hill1", (u.N_LOG_SIZE, *_per_size), lambda s, r, N: N * np.exp(-s / r), PER_RECORD, POSITIVE
)
hill2 = _make_metric("hill2", (_squares, *_per_size), lambda s, r, N: N * r / s, PER_RECORD, POSITIVE)

_every = [m for m in vars().values() if isinstance(m, Metric)]
ALL = Metrics((m for m in _every if all(map(u.is_of_entities, m.columns))), "ALL")
"""Every metric above that sampled entities identify, in this order, group by group."""
OTHERS = Metrics((m for m in _every if m not in ALL), "OTHERS")
"""The metrics above that sampled entities do not identify."""

# The paper's names [B22, appendix A.2]. Weights come from the design: under uniform records
# R_rec is R_clust, and under either design P_clust is N ΣTP / (|P| Σ records).
P_block = pairwise_precision
R_block = R_clust = R_rec = pairwise_recall
_per_record, _absolute = (u.COMMON_LINKS, u.RECORDS, N, PREDICTED), (u.COMMON_LINKS, PREDICTED)
P_clust = _make_metric("P_clust", _per_record, lambda tp, r, N, P: N * tp / (P * r), PER_RECORD, POSITIVE)
P_rec = _make_metric("P_rec", _absolute, lambda tp, P: tp / P, PER_RECORD, POSITIVE, absolute=True)

PAPER = dict(P_block=P_block, R_block=R_block, P_clust=P_clust, R_clust=R_clust, P_rec=P_rec, R_rec=R_rec)
"""The estimators of [B22] by their names there."""

DEFAULT_METRICS = Metrics(
    (pairwise_precision, pairwise_recall, pairwise_f1, b3_precision, b3_recall, cluster_recall),
    "DEFAULT_METRICS",
)
"""The metrics that are estimated if none are named."""

NAMED: dict[str, Metric] = {m.name: m for m in (*ALL, *OTHERS)} | PAPER
"""Every metric by the name that tables print."""
FAMILIES: dict[str, Callable[[float], Metric]] = {"pairwise-f": pairwise_f, "cluster-f": cluster_f}
"""Functions that make metrics with a parameter, which ends the name."""
ALIASES: dict[str, tuple[Metric, ...]] = {
    "precision": (pairwise_precision,),
    "recall": (pairwise_recall,),
    "f1": (pairwise_f1,),
    "b3": (b3_precision, b3_recall),
    "all": ALL,
}
"""What people mean by short names, while tables print the full ones."""
MetricLike = Metric | str | Iterable[Metric | str]
"""The type of arguments for metrics, one or several, as objects or names."""


def resolve_metrics(metrics: MetricLike) -> tuple[Metric, ...]:
    """Return metrics as objects.

    Names are those that tables print, such as `pairwise-precision` or `pairwise-f2`. The short names
    `precision`, `recall` and `f1` mean the pairwise metrics, `b3` both of B-cubed, and `all` those of `ALL`.
    Capitals do not matter.

    Examples
    --------
    >>> [metric.name for metric in resolve_metrics(["pairwise-recall", pairwise_f(2)])]
    ['pairwise-recall', 'pairwise-f2']
    >>> [metric.name for metric in resolve_metrics(["recall", "b3"])]
    ['pairwise-recall', 'b3-precision', 'b3-recall']
    """
    if isinstance(metrics, tuple) and metrics and all([isinstance(metric, Metric) for metric in metrics]):
        return metrics
    if isinstance(metrics, Metric | str) or not isinstance(metrics, Iterable):
        return _as_metrics(metrics)
    objects = tuple(metric for each in metrics for metric in _as_metrics(each))
    if not objects:
        raise DataError("no metric is asked for: name one or more, such as 'pairwise-precision'")
    return objects


def resolve_metric(metric: Any) -> Metric:
    """Return one metric as an object, where `resolve_metrics` takes several."""
    found = resolve_metrics(metric)
    if len(found) > 1:
        names = " or ".join(one.name for one in found)
        raise DataError(f"one metric is needed, and {metric!r} stands for {len(found)}: name {names}")
    return found[0]


def _as_metrics(metric: Any) -> tuple[Metric, ...]:
    if isinstance(metric, Metric):
        return (metric,)
    if isinstance(metric, str):
        return ALIASES.get(metric.lower()) or (_find_metric(metric),)
    if callable(metric):
        name = getattr(metric, "__name__", repr(metric))
        raise DataError(f"{name} makes a metric and is none itself: call it, as in pairwise_f(2)")
    raise DataError(f"a metric is an object of erbayes.metrics or its name, not {metric!r}")


def _find_metric(name: str) -> Metric:
    lowered = {known.lower(): known for known in NAMED}
    if name.lower() in lowered:
        return NAMED[lowered[name.lower()]]
    if family := re.fullmatch(rf"({'|'.join(FAMILIES)})(\d+\.?\d*)", name.lower()):
        return FAMILIES[family[1]](float(family[2]))
    alike = {known.lower().replace("_", "-"): known for known in (*NAMED, *ALIASES)}
    alike |= {"count": entities.name, "f-measure": "f1"}  # `impact` has a statistic of this name
    asked = name.lower().replace("_", "-")
    if weight := re.search(r"f(\d+\.?\d*)$", asked):
        alike |= {made: made for made in (f"{family}{weight[1]}" for family in FAMILIES)}
    # the end of a name says what is measured, which tells more than like letters do
    near = [n for n in alike if n.endswith(f"-{asked}")] + get_close_matches(asked, alike)
    if near:
        meant = " or ".join(repr(alike[n]) for n in dict.fromkeys(near))
        raise DataError(f"no metric {name!r}: did you mean {meant}?")
    raise DataError(f"no metric {name!r}", Remedy("see all", "erbayes.metrics.ALL", "erbayes metrics"))


if not TYPE_CHECKING:  # type checkers read lists of names alone, and take all public ones if there is none
    _others = "ALL DEFAULT_METRICS PER_RECORD UNIT Metric cluster_f pairwise_f resolve_metrics".split()
    __all__ = [*_others, *(name for name, value in vars().items() if isinstance(value, Metric))]
