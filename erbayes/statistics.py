"""Statistics of a user's own: functions of entities and their weights, each with its influence.

A statistic S is a function of rows, which are entities with features, and of their weights. Its influence is
the derivative by the weight of each row, u = ∂S/∂w, so that the variance of S follows from that of a total.

| text | object | is |
| --- | --- | --- |
| `count`, `count(size>=10)` | `count` | the number of entities, or of those with a property |
| `share(size>=10)` | `share` | the share of the entities that have a property |
| `total(sales)`, `mean(sales)` | `total`, `mean` | of a feature over entities |
| `ratio(sales, orders)` | `ratio` | the total of a feature over that of another |
| `quantile_share(0.5, sales)` | `quantile_share` | the share of a total that the lower half has |
| `top(100, sales)`, `top(0.01, sales)` | `top` | the share of the highest 100, or of the highest hundredth |
| `gini(sales)` | `gini` | the Gini coefficient, 0 if all entities are equal |
| `span ~ log(size)` | `regression` | each coefficient of a linear regression by least squares |

Every entity has the feature `size`, its number of records, which the last three take by default.

Sources: Deville (1999), Survey Methodology 25, 193-203 (influences). Binder and Kovačević (1995), Survey
Methodology 21, 137-145 (Gini and shares).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ._internal.arrays import FloatArray
from ._internal.errors import DataError, Remedy, head
from .metrics.definitions import POSITIVE, UNIT
from .metrics.intervals import Support

Function = Callable[[pd.DataFrame, FloatArray], Any]
ANY = (-np.inf, np.inf)
MOST = 0.9
"""Leverage that counts at most, since a row alone with its value has 1 and would change without bound."""
SIZE = "size"
"""The feature that every entity has, its number of records."""

_COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}
_CONDITION = re.compile(r"\s*(\w+)\s*(>=|<=|==|!=|>|<)\s*([-+.\w]+)\s*")

_DECIDED_BY_FEW = (
    "a few entities decide it, and no sample of others knows them: label the largest predicted clusters as a "
    "stratum of their own (Stratified), and read it off them"
)
_OF_PAIRS = "it is of ties between entities, whose weights no sample of single entities knows"
REFUSED = {
    **dict.fromkeys(("max", "min", "maximum", "minimum", "largest", "range"), _DECIDED_BY_FEW),
    **dict.fromkeys(("names", "rank", "ranks", "list", "which"), _DECIDED_BY_FEW),
    **dict.fromkeys(("degree", "density", "triangles", "components", "centrality", "ties"), _OF_PAIRS),
    **dict.fromkeys(
        ("median", "quantile"),
        "it jumps from value to value, so that it has no influence: ask for the share of the entities up to "
        "a value, such as share(size<=3)",
    ),
}
"""Why statistics with these names are refused, with what to do instead."""


@dataclass(frozen=True, slots=True, eq=False)
class Statistic:
    """A statistic of entities, or several of one kind such as the coefficients of a regression.

    Attributes
    ----------
    names : tuple of str, (k,)
        As tables print them.
    function : callable (rows, weights) -> value, or (value, influence)
        Rows are a DataFrame of features, (n,), and weights a float array, (n,). The value is a number or
        (k,), and the influence (n,) or (n, k). Without one, rows are left out in turn (the jackknife).
    support : (float, float)
        The least and the largest value, from which the kind of interval follows.
    features : tuple of str
        Names of features without which rows are no input.
    fitted : callable rows -> Statistic, optional
        Makes the statistic that is meant by all rows of a population, such as one with the names of the
        coefficients. By default it is this one.
    leverage : callable (rows, weights) -> float array, (n,), optional
        Share of each row in its own fitted value. The change without a row is its influence over 1 less this.

    Examples
    --------
    >>> rows = pd.DataFrame({"size": [1.0, 2.0, 5.0]})
    >>> share("size>=2").linearise(rows, np.ones(3))[0].round(3)
    array([0.667])
    """

    names: tuple[str, ...]
    function: Function
    support: Support = ANY
    features: tuple[str, ...] = ()
    fitted: Callable[[pd.DataFrame], Statistic] | None = None
    leverage: Callable[[pd.DataFrame, FloatArray], FloatArray] | None = None

    def fit(self, rows: pd.DataFrame) -> Statistic:
        """Return the statistic as all rows of a population mean it.

        Raises
        ------
        DataError
            If rows have no feature of a name.
        """
        if lacking := [name for name in self.features if name not in rows.columns]:
            raise DataError(
                f"{', '.join(self.names)} needs {head(lacking)}, and the features are "
                f"{head(rows.columns, 20)}",
                Remedy.FEATURE,
            )
        return self if self.fitted is None else self.fitted(rows)

    def value(self, rows: pd.DataFrame, weights: FloatArray) -> FloatArray:
        """Return the values, (k,), of rows with weights, (n,); NaN for 0/0."""
        return self._compute(rows, weights)[0]

    def linearise(self, rows: pd.DataFrame, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the values, (k,), and the influence of each row on each of them, (n, k)."""
        value, influence = self._compute(rows, weights)
        if influence is None:
            # the change without a row, per unit of its weight, which is exact for totals
            without = [self.value(*_leave_out(i, rows, weights)) for i in range(len(rows))]
            influence = (value - np.array(without)) / weights[:, None]
        return value, influence.reshape(len(rows), len(value))

    def jackknife(self, rows: pd.DataFrame, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return as `linearise`, with influences of least squares as large as rows that are left out have.

        Source: MacKinnon and White (1985), Journal of Econometrics 29, 305-325.
        """
        value, influence = self.linearise(rows, weights)
        if self.leverage is not None:
            own = np.minimum(self.leverage(rows, weights), MOST)
            influence = influence / (1 - own)[:, None]
        return value, influence

    def _compute(self, rows: pd.DataFrame, weights: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        with np.errstate(divide="ignore", invalid="ignore"):
            found = self.function(rows, weights)
        value, influence = found if isinstance(found, tuple) else (found, None)
        values = np.atleast_1d(np.asarray(value, dtype=float))
        if values.shape != (len(self.names),):
            raise DataError(
                f"{', '.join(self.names)} must be {len(self.names)} numbers, not of shape {values.shape}"
            )
        values = np.where(np.isfinite(values), values, np.nan)
        return values, None if influence is None else np.asarray(influence, dtype=float)


def _leave_out(i: int, rows: pd.DataFrame, weights: FloatArray) -> tuple[pd.DataFrame, FloatArray]:
    return rows.drop(rows.index[i]), np.delete(weights, i)


def statistic_of(wanted: Any) -> Statistic:
    """Return a statistic from an object, its text, or a function of a user's own.

    Raises
    ------
    DataError
        If it is none of these, or one that no sample of entities tells.

    Examples
    --------
    >>> statistic_of("top(100)").names, statistic_of(lambda rows, weights: weights.sum()).names
    (('top(100)',), ('<lambda>',))
    """
    if isinstance(wanted, Statistic):
        return wanted
    if isinstance(wanted, str):
        return parse(wanted)
    if wanted in MAKERS.values():
        raise DataError(f"{wanted.__name__} makes a statistic: call it, as in {wanted.__name__}(...)")
    if callable(wanted):
        return Statistic((getattr(wanted, "__name__", type(wanted).__name__),), wanted)
    raise DataError(f"a statistic is an object of erbayes.statistics, its text or a function, not {wanted!r}")


def parse(text: str) -> Statistic:
    """Return the statistic of a text, as the command line takes it (see the table above).

    Raises
    ------
    DataError
        If there is no such statistic, if it takes other arguments, or if no sample of entities tells it.

    Examples
    --------
    >>> parse("ratio(sales, orders)").features
    ('sales', 'orders')
    """
    call = re.fullmatch(r"\s*(\w+)\s*(?:\((.*)\))?\s*", text)
    if "~" in text:
        return regression(call[2] if call and call[1] == "regression" else text.strip())
    name = call[1] if call else text
    if name in REFUSED:
        raise DataError(f"{text!r} is not estimated, since {REFUSED[name]}")
    if call is None or name not in MAKERS:
        raise DataError(f"no statistic {text!r}; there are {', '.join(MAKERS)}, and formulas y ~ x")
    arguments = [_read_number(part.strip()) for part in (call[2] or "").split(",") if part.strip()]
    try:
        return MAKERS[name](*arguments)
    except TypeError as error:
        raise DataError(f"{text!r}: {error}") from error


def _read_number(text: str) -> Any:
    """Return the number that a text is, or the text."""
    try:
        return int(text) if text.isdecimal() else float(text)
    except ValueError:
        return text


def evaluate(term: str, rows: pd.DataFrame) -> FloatArray:
    """Return the values of a feature, or 1 where a condition such as `size>=2 and span<5` holds, (n,)."""
    if not _find_features(term)[1]:
        return rows[term].to_numpy(dtype=float)
    holds = np.ones(len(rows), dtype=bool)
    for part in term.split(" and "):
        name, sign, value = _take_apart(part)
        holds &= np.asarray(_COMPARED[sign](rows[name].to_numpy(dtype=float), float(value)))
    return holds.astype(float)


def _take_apart(condition: str) -> tuple[str, str, str]:
    """Return the feature, the sign and the number of a condition."""
    found = _CONDITION.fullmatch(condition)
    if found is None or not isinstance(_read_number(found[3]), int | float):
        raise DataError(f"a condition compares a feature with a number, as in size>=10, not {condition!r}")
    return found[1], found[2], found[3]


def _find_features(*terms: Any) -> tuple[tuple[str, ...], bool]:
    """Return the features of terms, each a feature or a condition, and whether one is a condition."""
    names: list[str] = []
    conditions = False
    for term in terms:
        if not isinstance(term, str):
            raise DataError(f"a feature is named by its text, as in 'size', not {term!r}")
        if re.search("[<>=]", term):
            names += [_take_apart(part)[0] for part in term.split(" and ")]
            conditions = True
        else:
            names.append(term)
    return tuple(dict.fromkeys(names)), conditions


def count(condition: str | None = None) -> Statistic:
    """Return the number of entities, or of those for which a condition such as `size>=10` holds.

    Examples
    --------
    >>> rows = pd.DataFrame({"size": [1.0, 2.0, 5.0]})
    >>> count().value(rows, np.ones(3)), count("size>=2").value(rows, np.ones(3))
    (array([3.]), array([2.]))
    """
    if condition is None:
        return Statistic(("count",), lambda rows, w: (w.sum(), np.ones(len(w))), POSITIVE)
    return _make_total(f"count({condition})", condition)


def total(feature: str) -> Statistic:
    """Return the total of a feature over entities, Σ w x, whose influence is x."""
    return _make_total(f"total({feature})", feature)


def mean(feature: str) -> Statistic:
    """Return the mean of a feature over entities, Σ w x / Σ w, whose influence is (x - mean)/Σ w."""
    return _make_ratio(f"mean({feature})", feature, None)


def share(condition: str) -> Statistic:
    """Return the share of the entities for which a condition such as `size>=10` holds.

    Raises
    ------
    DataError
        If it is no condition.
    """
    if not _find_features(condition)[1]:
        _take_apart(condition)
    return _make_ratio(f"share({condition})", condition, None, UNIT)


def ratio(feature: str, other: str) -> Statistic:
    """Return the total of a feature over that of another, Σ w x / Σ w y.

    Its influence is (x - ratio y)/Σ w y.
    """
    return _make_ratio(f"ratio({feature}, {other})", feature, other)


def _make_total(name: str, term: str) -> Statistic:
    def function(rows: pd.DataFrame, w: FloatArray) -> tuple[Any, FloatArray]:
        x = evaluate(term, rows)
        return w @ x, x

    return _with_signs((name,), function, (term,))


def _make_ratio(name: str, top: str, bottom: str | None, support: Support | None = None) -> Statistic:
    def function(rows: pd.DataFrame, w: FloatArray) -> tuple[Any, FloatArray]:
        x = evaluate(top, rows)
        y = np.ones(len(w)) if bottom is None else evaluate(bottom, rows)
        Y = w @ y
        S = w @ x / Y
        return S, (x - S * y) / Y

    terms = (top,) if bottom is None else (top, bottom)
    if support is not None:
        return Statistic((name,), function, support, _find_features(*terms)[0])
    return _with_signs((name,), function, terms)


def _with_signs(names: tuple[str, ...], function: Function, terms: tuple[str, ...]) -> Statistic:
    """Return a statistic that is 0 or more if no value of its terms in the population is below 0."""
    features, _ = _find_features(*terms)

    def fitted(rows: pd.DataFrame) -> Statistic:
        positive = all((evaluate(term, rows) >= 0).all() for term in terms)
        return Statistic(names, function, POSITIVE if positive else ANY, features)

    return Statistic(names, function, ANY, features, fitted)


def gini(feature: str = SIZE) -> Statistic:
    """Return the Gini coefficient of a feature that is 0 or more: ΣΣ w w' |x - x'| / (2 K T).

    K = Σ w and T = Σ w x. Its influence is Σ_d w_d |x - x_d| / (K T) - G (1/K + x/T).

    Examples
    --------
    >>> rows = pd.DataFrame({"size": [1.0, 3.0]})
    >>> gini().value(rows, np.ones(2))
    array([0.25])
    """

    def function(rows: pd.DataFrame, w: FloatArray) -> tuple[Any, FloatArray]:
        x = _take_positive(feature, rows)
        value, of_row = np.unique(x, return_inverse=True)
        W = np.bincount(of_row, w, len(value))
        K, T = W.sum(), W @ value
        below, part = np.cumsum(W), np.cumsum(W * value)
        # Σ_d w_d |x - x_d|, from the rows below and those above
        apart = value * (2 * below - K) + T - 2 * part
        G = W @ apart / (2 * K * T)
        return G, (apart / (K * T) - G * (1 / K + value / T))[of_row]

    return Statistic((_name_of("gini", None, feature),), function, UNIT, (feature,))


def top(how_many: float, feature: str = SIZE) -> Statistic:
    """Return the share of the total of a feature that the highest entities have.

    With q the value of the last of them and k their number, it is (Σ w (x - q)⁺ + q k)/T for T = Σ w x. Since
    this is least at q, its influence is that of a fixed q: ((x - q)⁺ - S x)/T, plus q p/T for the share p.

    Parameters
    ----------
    how_many : float
        The number k of entities, 1 or more, or their share p, below 1.
    feature : str
        A feature that is 0 or more.

    Examples
    --------
    >>> rows = pd.DataFrame({"size": [1.0, 1.0, 2.0, 6.0]})
    >>> top(1).value(rows, np.ones(4)), top(0.5).value(rows, np.ones(4))
    (array([0.6]), array([0.8]))
    """
    if isinstance(how_many, bool) or not isinstance(how_many, int | float) or not how_many > 0:
        raise DataError(f"top takes a number of entities, or their share below 1, not {how_many!r}")

    def function(rows: pd.DataFrame, w: FloatArray) -> tuple[Any, FloatArray]:
        return _compute_top(_take_positive(feature, rows), w, float(how_many))

    return Statistic((_name_of("top", how_many, feature),), function, UNIT, (feature,))


def quantile_share(p: float, feature: str = SIZE) -> Statistic:
    """Return the share of the total of a feature that the lowest share p of the entities have.

    It is the ordinate of the Lorenz curve at p.

    Examples
    --------
    >>> rows = pd.DataFrame({"size": [1.0, 1.0, 2.0, 6.0]})
    >>> quantile_share(0.5).value(rows, np.ones(4))
    array([0.2])
    """
    if isinstance(p, bool) or not isinstance(p, int | float) or not 0 < p < 1:
        raise DataError(f"quantile_share takes a share of the entities between 0 and 1, not {p!r}")

    def function(rows: pd.DataFrame, w: FloatArray) -> tuple[Any, FloatArray]:
        S, u = _compute_top(_take_positive(feature, rows), w, 1 - p)
        return 1 - S, -u

    return Statistic((_name_of("quantile_share", p, feature),), function, UNIT, (feature,))


def _compute_top(x: FloatArray, w: FloatArray, how_many: float) -> tuple[Any, FloatArray]:
    """Return the share of the highest, k or the share p, in the total of x, and its influence, (n,)."""
    K, T = w.sum(), w @ x
    p = how_many if how_many < 1 else float(how_many >= K)  # more than there are is all of them
    k = p * K if p else how_many
    order = np.argsort(-x, kind="stable")
    # the sum of weights may be k up to rounding
    last = np.searchsorted(np.cumsum(w[order]), k * (1 - 1e-12))
    q = x[order][min(int(last), len(x) - 1)]
    beyond = np.maximum(x - q, 0)
    S = (w @ beyond + q * k) / T
    return S, (beyond + q * p - S * x) / T


def _take_positive(feature: str, rows: pd.DataFrame) -> FloatArray:
    """Return a feature, (n,), refusing values below 0, of which parts of a total make no sense."""
    x = rows[feature].to_numpy(dtype=float)
    if (x < 0).any():
        raise DataError(
            f"{(x < 0).sum():,} of {len(x):,} values of {feature!r} are below 0: shares of a total and Gini "
            "need values of 0 or more"
        )
    return x


def _name_of(kind: str, how_many: float | None, feature: str) -> str:
    """Return the text of a statistic, without the feature if that is the size."""
    arguments = [
        *([f"{how_many:g}"] if how_many is not None else []),
        *([feature] if feature != SIZE else []),
    ]
    return f"{kind}({', '.join(arguments)})" if arguments else kind


def regression(formula: str) -> Statistic:
    """Return the coefficients of a linear regression over entities by least squares, B = (X'WX)⁻¹ X'Wy.

    Their influences are (X'WX)⁻¹ x (y - x'B). Formulas are those of the library formulaic, which the extra
    `formulas` installs. What a formula learns from data, such as levels or a mean, comes from all predicted
    clusters.

    Parameters
    ----------
    formula : str
        Such as "span ~ log(size) + first".

    Raises
    ------
    DataError
        If formulaic is not installed, or if the formula is none of these features.
    """
    if not isinstance(formula, str) or formula.count("~") != 1:
        raise DataError(f"a regression is a formula such as 'span ~ log(size)', not {formula!r}")

    def fitted(rows: pd.DataFrame) -> Statistic:
        spec = _make_matrices(formula, rows).model_spec
        names = tuple(f"{formula}: {name}" for name in spec.rhs.column_names)

        def function(rows: pd.DataFrame, w: FloatArray) -> tuple[FloatArray, FloatArray]:
            found = _make_matrices(spec, rows)
            y, X = (np.asarray(part, dtype=float) for part in (found.lhs, found.rhs))
            squares = X.T @ (w[:, None] * X)
            if np.linalg.matrix_rank(squares) < len(names):  # collinear in these rows
                return np.full(len(names), np.nan), np.zeros_like(X)
            inverse = np.linalg.inv(squares)
            B = inverse @ (X.T @ (w * y[:, 0]))
            return B, X @ inverse * (y - (X @ B)[:, None])

        def leverage(rows: pd.DataFrame, w: FloatArray) -> FloatArray:
            X = np.asarray(_make_matrices(spec, rows).rhs, dtype=float)
            return w * np.sum(X @ np.linalg.pinv(X.T @ (w[:, None] * X)) * X, axis=1)

        return Statistic(names, function, leverage=leverage)

    def unfitted(rows: pd.DataFrame, w: FloatArray) -> Any:
        raise DataError(f"{formula} has coefficients once it is fitted to all rows: use Statistic.fit")

    return Statistic((formula,), unfitted, fitted=fitted)


def _make_matrices(spec: Any, rows: pd.DataFrame) -> Any:
    """Return the matrices y and X of a formula, or of what another fit has learned from it."""
    try:
        from formulaic import model_matrix
        from formulaic.errors import FormulaicError
    except ModuleNotFoundError as error:
        raise DataError("regressions need formulaic: pip install 'erbayes[formulas]'") from error
    try:
        with np.errstate(divide="ignore", invalid="ignore"):  # refused below
            found = model_matrix(spec, rows, na_action="ignore", context={})
    except FormulaicError as error:
        raise DataError(
            f"{spec}: {error}; the features are {head(rows.columns, 20)}", Remedy.FEATURE
        ) from error
    if not all(np.isfinite(np.asarray(part, dtype=float)).all() for part in (found.lhs, found.rhs)):
        raise DataError(f"{spec}: some entities or clusters have no finite value, such as the log of 0")
    return found


MAKERS: dict[str, Callable[..., Statistic]] = {
    maker.__name__: maker
    for maker in (count, share, mean, total, ratio, quantile_share, top, gini, regression)
}
"""Functions that make statistics, by the names that texts have."""


def statistics_of(wanted: Any) -> tuple[Statistic, ...]:
    """Return one statistic or several, as `statistic_of` takes them, each with names of its own.

    Examples
    --------
    >>> [statistic.names for statistic in statistics_of(["count", gini()])]
    [('count',), ('gini',)]
    """
    several = isinstance(wanted, Iterable) and not isinstance(wanted, str)
    found = tuple(statistic_of(one) for one in (wanted if several else [wanted]))
    if not found:
        raise DataError("no statistic is asked for: name one or more, such as 'count'")
    names = [name for statistic in found for name in statistic.names]
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise DataError(f"{len(twice)} statistics have one name, such as {head(twice)}: leave out one")
    return found
