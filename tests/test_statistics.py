"""Statistics against brute force, their influences against numerical derivatives, and their texts."""

import ast
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from erbayes import DataError
from erbayes import statistics as st

R = np.random.default_rng(0)
N = 200
ROWS = pd.DataFrame({"size": np.minimum(R.zipf(2.0, N), 60).astype(float), "x": R.gamma(2, 3, N)})
W = R.uniform(0.5, 2, N)
TEXTS = (
    "count", "count(size>=2)", "share(size>=2 and x<5)", "mean(x)", "total(x)", "ratio(x, size)",
    "gini", "gini(x)", "top(30)", "top(0.05, x)", "quantile_share(0.5, x)",
)  # fmt: skip


def highest(x, w, k):
    """Total of the k highest by weight, one row after the other."""
    taken = left = 0.0
    left = k
    for i in sorted(range(len(x)), key=lambda i: -x[i]):
        part = min(w[i], left)
        taken, left = taken + part * x[i], left - part
    return taken


def brute_force(x, s, w):
    """Values of TEXTS by loops over rows."""
    K, T, X = sum(w), sum(w * s), sum(w * x)

    def difference(v):
        return sum(w[i] * w[j] * abs(v[i] - v[j]) for i in range(len(w)) for j in range(len(w)))

    return (
        K,
        sum(w[s >= 2]),
        sum(w[(s >= 2) & (x < 5)]) / K,
        X / K,
        X,
        X / T,
        difference(s) / (2 * K * T),
        difference(x) / (2 * K * X),
        highest(s, w, 30) / T,
        highest(x, w, 0.05 * K) / X,
        1 - highest(x, w, 0.5 * K) / X,
    )


@pytest.mark.parametrize("text", TEXTS)
def test_values_are_those_of_brute_force(text):
    found = st.parse(text).fit(ROWS).value(ROWS, W)
    expected = brute_force(ROWS["x"].to_numpy(), ROWS["size"].to_numpy(), W)[TEXTS.index(text)]
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("text", TEXTS)
def test_influences_are_numerical_derivatives(text):
    statistic = st.parse(text).fit(ROWS)
    _, influence = statistic.linearise(ROWS, W)
    h, numerical = 1e-6, np.empty_like(influence)
    for i in range(N):
        step = h * (np.arange(N) == i)
        numerical[i] = (statistic.value(ROWS, W + step) - statistic.value(ROWS, W - step)) / (2 * h)
    assert np.abs(numerical - influence).max() <= 1e-6 * max(np.abs(influence).max(), 1.0)


def slope_of_the_page():
    """The regression of docs/guide/own-numbers.md, as a reader copies it."""
    page = Path(__file__).parents[1] / "docs" / "guide" / "own-numbers.md"
    (code,) = re.findall(r"^```python\n(import numpy.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
    names = {"np": np}
    exec(ast.unparse(next(x for x in ast.parse(code).body if isinstance(x, ast.FunctionDef))), names)
    return names["slope"]


def test_the_regression_of_the_page_has_the_influence_of_least_squares():
    """Slope by `lstsq`; its influence over 1 less the leverage is the change without a row, refitted."""
    rows, (slope,) = ROWS.rename(columns={"x": "sales"}), st.statistics_of(slope_of_the_page())
    value, influence = slope.linearise(rows, W)
    A = np.column_stack([np.ones(N), np.log(rows["size"])]) * np.sqrt(W)[:, None]
    b = np.sqrt(W) * rows["sales"].to_numpy()

    def refit(kept):
        return np.linalg.lstsq(A[kept], b[kept], rcond=None)[0][1]

    assert value == pytest.approx(refit(np.arange(N)), rel=1e-10)
    leverage = np.diag(A @ np.linalg.pinv(A))
    without = np.array([refit(np.arange(N) != i) for i in range(N)])
    np.testing.assert_allclose(W * influence / (1 - leverage), value - without, rtol=1e-8)
    (left_out,) = st.statistics_of(lambda rows, w: slope.function(rows, w)[0])
    np.testing.assert_allclose(left_out.linearise(rows, W)[1], (value - without) / W, rtol=1e-8)


def test_a_function_without_influence_leaves_rows_out():
    def doubled(rows, weights):
        return 2 * (weights @ rows["x"])

    def squared(rows, weights):
        return (weights @ rows["x"]) ** 2

    value, influence = st.statistics_of(doubled)[0].linearise(ROWS, W)
    assert value == pytest.approx(2 * W @ ROWS["x"])
    np.testing.assert_allclose(influence, 2 * ROWS["x"], rtol=1e-9)
    _, influence = st.statistics_of(squared)[0].linearise(ROWS, W)
    without = (W @ ROWS["x"] - W * ROWS["x"]) ** 2
    np.testing.assert_allclose(influence, ((W @ ROWS["x"]) ** 2 - without) / W, rtol=1e-9)


@pytest.mark.parametrize("wrong", [np.ones(N - 1), np.ones((N, 2)), np.ones((2, N // 2))])
def test_an_influence_has_a_value_for_each_row(wrong):
    (own,) = st.statistics_of(lambda rows, w: (w.sum(), wrong))
    with pytest.raises(DataError, match=f"not of each of {N:,} rows"):
        own.linearise(ROWS, W)


def test_one_is_one_entity_and_more_than_there_are_is_all_of_them():
    assert st.top(1).value(ROWS, W) == pytest.approx(highest(ROWS["size"], W, 1) / (W @ ROWS["size"]))
    value, influence = st.top(1e6).linearise(ROWS, W)
    assert value == pytest.approx(1)
    np.testing.assert_allclose(influence, 0, atol=1e-15)


def test_support_follows_from_the_signs_of_a_population():
    below = ROWS.assign(x=ROWS["x"] - 5)
    for text in ("total(x)", "mean(x)", "ratio(x, size)"):
        assert st.parse(text).fit(ROWS).support == st.POSITIVE and st.parse(text).fit(below).support == st.ANY
    for text in ("share(x>=2)", "gini", "top(3)", "quantile_share(0.2)"):
        assert st.parse(text).fit(below).support == st.UNIT


def test_empty_denominators_are_nan():
    assert np.isnan(st.ratio("size", "x").value(ROWS.assign(x=0.0), W))


@pytest.mark.parametrize(("wanted", "said"), [
    ("max(size)", "a few entities decide it.*Stratified"),
    ("names(10)", "a few entities decide it.*Stratified"),
    ("triangles", "ties between entities"),
    ("median(size)", r"share\(size<=3\)"),
    ("mode(size)", "no statistic 'mode.size.'; there are count, share"),
    ("share(size)", "compares a feature with a number"),
    ("count(size>=many)", "compares a feature with a number"),
    ("top(size)", "a number of entities, or their share"),
    ("top", "'top'"),
    ("x ~ size", "and functions in Python"),
    (st.gini, "call it"),
    (3, "a statistic is an object"),
])  # fmt: skip
def test_what_is_no_statistic_is_refused_with_what_to_do(wanted, said):
    with pytest.raises(DataError, match=said):
        st.statistics_of(wanted)


def test_statistics_have_names_of_their_own():
    with pytest.raises(DataError, match="2 statistics have one name"):
        st.statistics_of(["count", "count()", "gini", "gini(size)"])
    with pytest.raises(DataError, match="no statistic is asked for"):
        st.statistics_of([])


def test_features_that_are_not_there_are_named():
    with pytest.raises(DataError, match=r"mean.span. needs 'span', and the features are 'size', 'x'"):
        st.mean("span").fit(ROWS)
    with pytest.raises(DataError, match="2 of 200 values of 'x' are below 0"):
        st.gini("x").value(ROWS.assign(x=np.r_[-1, -1, np.ones(N - 2)]), W)
    with pytest.raises(DataError, match=r"numbers of shape .2,., not one number"):
        st.statistics_of(lambda rows, w: np.ones(2))[0].value(ROWS, W)
