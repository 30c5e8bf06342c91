"""Statistics of a user's own: functions of entities and their weights, each with its influence.

The influence is the derivative of a statistic S by the weight of each entity, u = ∂S/∂w, so that the variance
of S follows from that of a total. `docs/guide/own-numbers.md` lists the texts of statistics.

Sources: Deville (1999), Survey Methodology 25, 193-203. Binder and Kovačević (1995), Survey Methodology 21,
137-145 (Gini and shares).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any

import numpy as np
import pandas as pd

from .._internal.arrays import FloatArray
from .._internal.errors import DataError, Remedy, head, number
from .definitions import POSITIVE, UNIT, Metric, Support, entities, mean_cluster_size

__all__ = ["count", "gini", "mean", "quantile_share", "ratio", "share", "top", "total"]

Function = Callable[[pd.DataFrame, FloatArray], Any]
ANY = (-np.inf, np.inf)
SIZE = "size"
"""The feature that every entity has, its number of records."""
COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}
REFUSED = {
    ("max", "min", "maximum", "minimum", "largest", "names", "rank", "list"): (
        "a few entities decide it, which a sample may not have: label the largest predicted clusters as a "
        "stratum of their own (Stratified), and read it off them"
    ),
    ("degree", "density", "triangles", "components", "centrality", "ties"): (
        "it is of ties between entities, which a sample of single entities does not tell: label pairs"
    ),
    ("median", "quantile"): (
        "it jumps from value to value, so that it has no influence: ask for the share of the entities up to "
        "a value, such as share(size<=3)"
    ),
}
"""Why statistics of these names are refused, with what to do instead."""


@dataclass(frozen=True, slots=True, eq=False)
class Statistic:
    """A statistic of entities.

    `function` takes rows, a DataFrame of features (n,), and weights (n,), and returns the value, or the value
    with its influence, (n,). Without one, rows are left out in turn (the jackknife). `terms`: features, or
    conditions on features, that rows need; `signed`: true if the statistic is 0 or more wherever its terms
    are; `metric`: the metric of `erbayes.metrics` that it is, if it is one.

    One form needs not all rows: `sums` are terms (t,) of a total Σ w t, or (t, u) of a ratio; None is 1.
    """

    name: str
    function: Function
    support: Support = ANY
    terms: tuple[str, ...] = ()
    signed: bool = False
    metric: Metric | None = None
    sums: tuple[str | None, ...] = ()

    @property
    def features(self) -> list[str]:
        """Features that the terms need, each once."""
        of_each = ([name for name, *_ in list_comparisons(term)] or [term] for term in self.terms)
        return [*dict.fromkeys(name for names in of_each for name in names)]

    def refuse_without(self, rows: pd.DataFrame) -> None:
        """Refuse rows without the features of the statistic's terms."""
        if lacking := [name for name in self.features if name not in rows.columns]:
            said = f"{self.name} needs {head(lacking)}, and the features are "
            raise DataError(
                f"{said}{head(rows.columns, 20)}",
                Remedy("name it", "features={'span': ('year', 'range')}", "--feature span=year:range"),
            )

    def fit(self, rows: pd.DataFrame) -> Statistic:
        """Return the statistic as all rows of a population mean it, refusing rows without its terms."""
        self.refuse_without(rows)
        positive = self.signed and all((evaluate(term, rows) >= 0).all() for term in self.terms)
        return replace(self, support=POSITIVE) if positive else self

    def value(self, rows: pd.DataFrame, weights: FloatArray) -> float:
        """Return the value of rows with weights, (n,); NaN for 0/0."""
        return self._compute(rows, weights)[0]

    def linearise(self, rows: pd.DataFrame, weights: FloatArray) -> tuple[float, FloatArray]:
        """Return the value, and the influence of each row on it, (n,)."""
        value, influence = self._compute(rows, weights)
        if influence is None:
            # the change without a row, per unit of its weight, which is exact for totals
            places = np.arange(len(rows))
            without = [self.value(rows[places != i], weights[places != i]) for i in places]
            influence = (value - np.array(without)) / weights
        return value, influence

    def _compute(self, rows: pd.DataFrame, weights: FloatArray) -> tuple[float, FloatArray | None]:
        with np.errstate(divide="ignore", invalid="ignore"):
            found = self.function(rows, weights)
        value, influence = found if isinstance(found, tuple) else (found, None)
        if np.ndim(value):
            raise DataError(f"{self.name}: numbers of shape {np.shape(value)}, not one number")
        if influence is not None and (influence := np.asarray(influence, dtype=float)).shape != (len(rows),):
            said = f"influences of shape {influence.shape}, and not of each of {len(rows):,} rows"
            raise DataError(f"{self.name}: {said}")
        return float(value) if np.isfinite(value) else np.nan, influence


def statistics_of(wanted: Any) -> tuple[Statistic, ...]:
    """Return one statistic or several from objects, texts, and functions of a user's own."""
    several = isinstance(wanted, Iterable) and not isinstance(wanted, str)
    found = tuple(map(_as_statistic, wanted if several else [wanted]))
    names = [statistic.name for statistic in found]
    if not names:
        raise DataError("no statistic is asked for: name one or more, such as 'count'")
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise DataError(f"{len(twice)} statistics have one name, such as {head(twice)}: leave out one")
    return found


def _as_statistic(wanted: Any) -> Statistic:
    if isinstance(wanted, Statistic | str):
        return parse(wanted) if isinstance(wanted, str) else wanted
    if not callable(wanted) or wanted in MAKERS.values():
        what = f"call it, as in {wanted.__name__}(...)" if callable(wanted) else f"not {wanted!r}"
        raise DataError(f"a statistic is an object of erbayes.statistics, its text or a function: {what}")
    return Statistic(getattr(wanted, "__name__", type(wanted).__name__), wanted)


def parse(text: str) -> Statistic:
    """Return the statistic of a text, as the command line takes it, such as `top(100, sales)`."""
    call = re.fullmatch(r"\s*(\w+)\s*(?:\((.*)\))?\s*", text)
    name = call[1] if call else text
    for names, why in REFUSED.items():
        if name in names:
            raise DataError(f"{text!r} is not estimated, since {why}")
    if call is None or name not in MAKERS:
        raise DataError(f"no statistic {text!r}; there are {', '.join(MAKERS)}, and functions in Python")
    arguments = [_read_number(part.strip()) for part in (call[2] or "").split(",") if part.strip()]
    try:
        signature(MAKERS[name]).bind(*arguments)
    except TypeError as error:
        raise DataError(f"{text!r}: write {name}({', '.join(signature(MAKERS[name]).parameters)})") from error
    return MAKERS[name](*arguments)


def _read_number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def evaluate(term: str, rows: pd.DataFrame) -> FloatArray:
    """Return the values of a feature, or 1 where a condition such as `size>=2 and span<5` holds, (n,)."""
    if not (comparisons := list_comparisons(term)):
        return rows[term].to_numpy(dtype=float)
    holds = np.ones(len(rows), dtype=bool)
    for name, sign, value in comparisons:
        holds &= np.asarray(COMPARED[sign](rows[name].to_numpy(dtype=float), value))
    return holds.astype(float)


def list_comparisons(term: str) -> list[tuple[str, str, float]]:
    """Return feature, sign and number of each comparison of a condition; none if the term is a feature."""
    return [_take_apart(part) for part in term.split(" and ")] if re.search("[<>=]", term) else []


def _take_apart(condition: Any) -> tuple[str, str, float]:
    found = re.fullmatch(r"\s*(\w+)\s*(>=|<=|==|!=|>|<)\s*([-+.\w]+)\s*", str(condition))
    if found is None or isinstance(_read_number(found[3]), str):
        raise DataError(f"a condition compares a feature with a number, as in size>=10, not {condition!r}")
    return found[1], found[2], float(found[3])


def _of_sums(name: str, sums: tuple[str | None, ...], support: Support = ANY, **given: Any) -> Statistic:
    """Return a total Σ w x, whose influence is x, or a ratio R of totals, with (x - R y)/Σ w y; None is 1."""

    def function(rows: pd.DataFrame, w: FloatArray) -> tuple[Any, FloatArray]:
        x, *below = (np.ones(len(w)) if term is None else evaluate(term, rows) for term in sums)
        if not below:
            return w @ x, x
        S = w @ x / (w @ below[0])
        return S, (x - S * below[0]) / (w @ below[0])

    terms = tuple(term for term in sums if term is not None)
    return Statistic(name, function, support, terms, sums=sums, **given)


def count(condition: str | None = None) -> Statistic:
    """Return the number of entities, or of those for which a condition such as `size>=10` holds."""
    if condition is None:
        return _of_sums("count", (None,), POSITIVE, metric=entities)
    list_comparisons(condition)
    return _of_sums(f"count({condition})", (condition,), POSITIVE)


def total(feature: str) -> Statistic:
    """Return the total of a feature over entities, Σ w x, whose influence is x."""
    return _of_sums(f"total({feature})", (str(feature),), signed=True)


def mean(feature: str) -> Statistic:
    """Return the mean of a feature over entities, Σ w x / Σ w, whose influence is (x - mean)/Σ w."""
    metric = mean_cluster_size if feature == SIZE else None
    return _of_sums(f"mean({feature})", (str(feature), None), signed=True, metric=metric)


def share(condition: str) -> Statistic:
    """Return the share of the entities for which a condition such as `size>=10` holds."""
    for part in str(condition).split(" and "):
        _take_apart(part)
    return _of_sums(f"share({condition})", (condition, None), UNIT)


def ratio(feature: str, other: str) -> Statistic:
    """Return a total over another, R = Σ w x / Σ w y, whose influence is (x - R y)/Σ w y."""
    return _of_sums(f"ratio({feature}, {other})", (str(feature), str(other)), signed=True)


def gini(feature: str = SIZE) -> Statistic:
    """Return the Gini coefficient of a feature that is 0 or more: ΣΣ w w' |x - x'| / (2 K T).

    K = Σ w and T = Σ w x. Its influence is Σ_d w_d |x - x_d| / (K T) - G (1/K + x/T).
    """

    def function(rows: pd.DataFrame, w: FloatArray) -> tuple[Any, FloatArray]:
        value, of_row = np.unique(_take_positive(feature, rows), return_inverse=True)
        W = np.bincount(of_row, w, len(value))
        K, T = W.sum(), W @ value
        below, part = np.cumsum(W), np.cumsum(W * value)
        apart = value * (2 * below - K) + T - 2 * part  # Σ_d w_d |x - x_d|
        G = W @ apart / (2 * K * T)
        return G, (apart / (K * T) - G * (1 / K + value / T))[of_row]

    return Statistic(_name_of("gini", None, feature), function, UNIT, (feature,))


def top(how_many: float, feature: str = SIZE) -> Statistic:
    """Return the share of the total of a feature that the highest entities have.

    With q the value of the last of them and k their number, it is (Σ w (x - q)⁺ + q k)/T for T = Σ w x. Since
    this is least at q, its influence is that of a fixed q: ((x - q)⁺ - S x)/T, plus q p/T for the share p. If
    k entities have the highest value q, it is 0, as no draw says how far rarer ones would move a maximum.

    Parameters
    ----------
    how_many : float
        The number k of entities, 1 or more, or their share p, below 1.
    feature : str
        A feature that is 0 or more.
    """
    number(how_many, "top", lambda x: x > 0, "take a number of entities, or their share below 1")

    def function(rows: pd.DataFrame, w: FloatArray) -> tuple[Any, FloatArray]:
        return _compute_top(_take_positive(feature, rows), w, float(how_many))

    return Statistic(_name_of("top", how_many, feature), function, UNIT, (feature,))


def quantile_share(p: float, feature: str = SIZE) -> Statistic:
    """Return the share of the total of a feature that the lowest share p have, the Lorenz curve at p."""
    number(p, "quantile_share", lambda x: 0 < x < 1, "take a share of the entities between 0 and 1")

    def function(rows: pd.DataFrame, w: FloatArray) -> tuple[Any, FloatArray]:
        S, u = _compute_top(_take_positive(feature, rows), w, 1 - p)
        return 1 - S, -u

    return Statistic(_name_of("quantile_share", p, feature), function, UNIT, (feature,))


def _compute_top(x: FloatArray, w: FloatArray, how_many: float) -> tuple[Any, FloatArray]:
    """Return the share of the highest, k or the share p, in the total of x, and its influence, (n,)."""
    K, T = w.sum(), w @ x
    p = how_many if how_many < 1 else float(how_many >= K)  # more than there are is all of them
    k = p * K if p else how_many
    order = np.argsort(-x, kind="stable")
    last = np.searchsorted(np.cumsum(w[order]), k * (1 - 1e-12))  # weights may add to k up to rounding
    q = x[order][min(int(last), len(x) - 1)]
    beyond = np.maximum(x - q, 0)
    S = (w @ beyond + q * k) / T
    return S, (beyond + q * p - S * x) / T * (p > 0 or beyond.any())


def _take_positive(feature: str, rows: pd.DataFrame) -> FloatArray:
    x = rows[feature].to_numpy(dtype=float)
    if below := int((x < 0).sum()):
        said = f"{below:,} of {len(x):,} values of {feature!r} are below 0"
        raise DataError(f"{said}: shares of a total and Gini need values of 0 or more")
    return x


def _name_of(kind: str, how_many: float | None, feature: str) -> str:
    shown = [] if how_many is None else [f"{how_many:g}"]
    shown += [str(feature)] * (feature != SIZE)
    return f"{kind}({', '.join(shown)})" if shown else kind


MAKERS: dict[str, Callable[..., Statistic]] = {
    maker.__name__: maker for maker in (count, share, mean, total, ratio, quantile_share, top, gini)
}
"""Functions that make statistics, by the names that texts have."""
