"""Statistics against brute force, their influences against numerical derivatives, and their texts."""

import numpy as np
import pandas as pd
import pytest

from erbayes import DataError
from erbayes import statistics as st
from erbayes.metrics import formulas

R = np.random.default_rng(0)
N = 200
ROWS = pd.DataFrame({"size": np.minimum(R.zipf(2.0, N), 60).astype(float), "x": R.gamma(2, 3, N)})
W = R.uniform(0.5, 2, N)
TEXTS = (
    "count",
    "count(size>=2)",
    "share(size>=2 and x<5)",
    "mean(x)",
    "total(x)",
    "ratio(x, size)",
    "gini",
    "gini(x)",
    "top(30)",
    "top(0.05, x)",
    "quantile_share(0.5, x)",
    "x ~ log(size) + size",
)


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

    A = np.column_stack([np.ones(len(w)), np.log(s), s]) * np.sqrt(w)[:, None]
    return (
        [K],
        [sum(w[s >= 2])],
        [sum(w[(s >= 2) & (x < 5)]) / K],
        [X / K],
        [X],
        [X / T],
        [difference(s) / (2 * K * T)],
        [difference(x) / (2 * K * X)],
        [highest(s, w, 30) / T],
        [highest(x, w, 0.05 * K) / X],
        [1 - highest(x, w, 0.5 * K) / X],
        np.linalg.lstsq(A, np.sqrt(w) * x, rcond=None)[0],
    )


@pytest.mark.parametrize("text", TEXTS)
def test_values_are_those_of_brute_force(text):
    if "~" in text:
        pytest.importorskip("formulaic")
    found = st.parse(text).fit(ROWS).value(ROWS, W)
    expected = brute_force(ROWS["x"].to_numpy(), ROWS["size"].to_numpy(), W)[TEXTS.index(text)]
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("text", TEXTS)
def test_influences_are_numerical_derivatives(text):
    if "~" in text:
        pytest.importorskip("formulaic")
    statistic = st.parse(text).fit(ROWS)
    _, influence = statistic.linearise(ROWS, W)
    h, numerical = 1e-6, np.empty_like(influence)
    for i in range(N):
        step = h * (np.arange(N) == i)
        numerical[i] = (statistic.value(ROWS, W + step) - statistic.value(ROWS, W - step)) / (2 * h)
    assert np.abs(numerical - influence).max() <= 1e-6 * max(np.abs(influence).max(), 1.0)


def test_leverage_gives_the_change_without_a_row():
    pytest.importorskip("formulaic")
    fitted = st.regression("x ~ log(size)").fit(ROWS)
    value, influence = fitted.jackknife(ROWS, W)
    for i in range(0, N, 20):
        without = fitted.value(ROWS.drop(index=i), np.delete(W, i))
        np.testing.assert_allclose(W[i] * influence[i], value - without, rtol=1e-8)


def test_leverage_counts_up_to_nine_tenths():
    pytest.importorskip("formulaic")
    alone = pd.DataFrame({"size": [1.0, 1.0, 1.0, 2.0], "x": [1.0, 2.0, 6.0, 4.0]})
    fitted, w = st.regression("x ~ size").fit(alone), np.array([1.0, 1.0, 1e-9, 1.0])
    _, exact = fitted.linearise(alone, w)
    _, found = fitted.jackknife(alone, w)
    own = np.array([0.5, 0.5, 0.0, 0.9])  # the last row alone has its size
    np.testing.assert_allclose(found, exact / (1 - own)[:, None], atol=1e-6)
    wide = exact.copy()
    wide[3] = 1.0
    raised = st.Statistic(fitted.names, lambda rows, w: (np.zeros(2), wide), leverage=fitted.leverage)
    np.testing.assert_allclose(raised.jackknife(alone, w)[1][3], 10.0, rtol=1e-6)


def test_a_function_without_influence_leaves_rows_out():
    def doubled(rows, weights):
        return 2 * (weights @ rows["x"])

    def squared(rows, weights):
        return (weights @ rows["x"]) ** 2

    value, influence = st.statistics_of(doubled)[0].linearise(ROWS, W)
    assert value == pytest.approx(2 * W @ ROWS["x"])
    np.testing.assert_allclose(influence[:, 0], 2 * ROWS["x"], rtol=1e-9)
    _, influence = st.statistics_of(squared)[0].linearise(ROWS, W)
    without = (W @ ROWS["x"] - W * ROWS["x"]) ** 2
    np.testing.assert_allclose(influence[:, 0], ((W @ ROWS["x"]) ** 2 - without) / W, rtol=1e-9)


@pytest.mark.parametrize("wrong", [np.ones(N - 1), np.ones((N, 2)), np.ones((2, N // 2))])
def test_an_influence_has_a_value_for_each_row(wrong):
    (own,) = st.statistics_of(lambda rows, w: (w.sum(), wrong))
    with pytest.raises(DataError, match=f"not of each of {N:,} rows"):
        own.linearise(ROWS, W)


def test_more_than_there_are_is_all_of_them():
    value, influence = st.top(1e6).linearise(ROWS, W)
    assert value == pytest.approx(1)
    np.testing.assert_allclose(influence, 0, atol=1e-15)


def test_support_follows_from_the_signs_of_a_population():
    below = ROWS.assign(x=ROWS["x"] - 5)
    for text in ("total(x)", "mean(x)", "ratio(x, size)"):
        assert st.parse(text).fit(ROWS).support == st.POSITIVE
        assert st.parse(text).fit(below).support == st.ANY
    for text in ("share(x>=2)", "gini", "top(3)", "quantile_share(0.2)"):
        assert st.parse(text).fit(below).support == st.UNIT


def test_empty_denominators_and_collinear_columns_are_nan():
    assert np.isnan(st.ratio("size", "x").value(ROWS.assign(x=0.0), W)).all()
    pytest.importorskip("formulaic")
    same = st.regression("x ~ size").fit(ROWS).value(ROWS.assign(size=2.0), W)
    assert np.isnan(same).all()


def test_levels_of_a_formula_come_from_the_population():
    pytest.importorskip("formulaic")
    rows = ROWS.assign(kind=np.arange(N) % 3)
    fitted = st.regression("x ~ C(kind)").fit(rows)
    assert fitted.names == (
        "x ~ C(kind): Intercept",
        "x ~ C(kind): C(kind)[T.1]",
        "x ~ C(kind): C(kind)[T.2]",
    )
    assert fitted.value(rows.iloc[:2], W[:2]).shape == (3,)  # no row of the third kind


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("max(size)", "a few entities decide it.*Stratified"),
        ("names(10)", "a few entities decide it.*Stratified"),
        ("triangles", "ties between entities"),
        ("median(size)", r"share\(size<=3\)"),
        ("mode(size)", "no statistic 'mode.size.'; there are count, share"),
        ("share(size)", "compares a feature with a number"),
        ("count(size>=many)", "compares a feature with a number"),
        ("top(size)", "a number of entities, or their share"),
        ("quantile_share(2)", "between 0 and 1"),
        ("top", "'top'"),
        ("a ~ b ~ c", r"'a ~ b ~ c' is not read at position 7, '~': a formula is y ~ x"),
        (" ~ size", "is not read at position 1, '~'"),
        ("size ~", "is not read at its end"),
        ("size ~ x.y", r"at position 9, '\.'"),
        ("x + size ~ 1", "one number is explained"),
        ("size ~ C(log(x))", r"at position 13, '\('"),
        ("size ~ x + C(x + size)", r"at position 16, '\+'"),
        ("size ~ poly(x, 1000000000)", "'1000000000': here is a whole number from 1 to 200"),
        ("size ~ bs(x, df=1e9)", "'e9'"),
        ("size ~ x**99", "a whole number from 1 to 9"),
        ("size ~ log(9**9**9)", "more than 200 columns"),
        ("size ~ (a + b + c + d)**5", "more than 200 columns"),
        ("size ~ " + "a*b*c*d*e*f*g*h", "more than 200 columns"),
        ("size ~ " + "(" * 51 + "size" + ")" * 51, "a formula has at most 50 brackets, not 51"),
        ("size ~ " + " + ".join(f"x{i}" for i in range(10_000)), "at most 1,000 letters"),
        (st.gini, "call it"),
        (3, "a statistic is an object"),
    ],
)
def test_what_is_no_statistic_is_refused_with_what_to_do(wanted, said):
    with pytest.raises(DataError, match=said):
        st.statistics_of(wanted)


PAYLOADS = (
    "size ~ __import__('os').system('touch ran')",
    "{__import__('os').system('touch ran')} ~ size",
    "size ~ {[c for c in ().__class__.__base__.__subclasses__() if c.__name__=='Popen'][0](['touch','ran'])}",
    "size ~ open('ran','w').close()",
    "size ~ log(open('ran','w'))",
    "size ~ log(x.__class__.__init__.__globals__)",
    "size ~ np.load('x.npy', allow_pickle=True)",
    "size ~ I(x.to_csv('ran'))",
    "size ~ x.to_pickle('ran')",
    "size ~ x # {open('ran', 'w')}",
    "size ~ `x` + {open('ran', 'w')}",
    "size ~ log(x, out=open)",
    "size ~ x[open]",
    "size ~ log (open)",
    "size ~ (log)(x)",
    "size ~ ｏｐｅｎ(x)",
)


@pytest.mark.parametrize("text", PAYLOADS)
def test_nothing_of_a_formula_is_run(text, tmp_path, monkeypatch):
    pytest.importorskip("formulaic")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError):
        st.parse(text).fit(ROWS)
    assert not [*tmp_path.iterdir()]


def test_any_formula_is_fitted_or_refused(monkeypatch):
    pytest.importorskip("formulaic")
    import builtins
    import os

    import formulaic

    run, given, fit = [], [], formulaic.model_matrix
    st.parse("x ~ bs(x, df=4) + poly(x, 2)").fit(ROWS)  # which imports what it needs
    monkeypatch.setattr(os, "system", run.append)
    monkeypatch.setattr(builtins, "open", lambda *a, **k: run.append(a))
    monkeypatch.setattr(pd.Series, "to_csv", lambda *a, **k: run.append(a))
    monkeypatch.setattr(
        formulaic, "model_matrix", lambda spec, *a, **k: given.append(spec) or fit(spec, *a, **k)
    )
    monkeypatch.setitem(builtins.__dict__, "evil", lambda *a, **k: run.append(a))
    sound = [
        *"+-*/:()",
        "**",
        "size",
        "x",
        "1",
        "0",
        "2.5",
        "2",
        "log(",
        ")",
        "poly(x, 2)",
        "C(size)",
        "bs(x, df=4)",
    ]
    hostile = [
        *"~,=.[]{}|&%^@;\"'`#\\ \n",
        "9",
        "df=",
        "evil",
        "evil(x)",
        "x.to_csv(1)",
        "open('f')",
        "os",
        "ｅvil(x)",
    ]
    rng, fitted = np.random.default_rng(0), 0
    for i in range(3000):
        own = rng.choice(sound + hostile * (i % 3 == 0), rng.integers(1, 9))
        try:
            text = f"size ~ x {rng.choice(list('+*:/'))} {''.join(own)}"
            values = st.parse(text).fit(ROWS).value(ROWS, W)
        except DataError:
            continue
        assert values.dtype == float and len(values)
        fitted += 1
    assert fitted > 50 and not run
    texts = [spec for spec in given if isinstance(spec, str)]
    assert all(set(text) <= set("+-*/:()~,=. 0123456789sizexlogpyCbdf") for text in texts)


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
    with pytest.raises(DataError, match=r"numbers of shape .2,., not 1"):
        st.statistics_of(lambda rows, w: np.ones(2))[0].value(ROWS, W)
    pytest.importorskip("formulaic")
    with pytest.raises(DataError, match="the features are 'size', 'x'"):
        st.regression("x ~ span").fit(ROWS)
    with pytest.raises(DataError, match="no finite value"):
        st.regression("x ~ log(size - 1)").fit(ROWS)


@pytest.mark.parametrize(
    "call", ["log(x)", "sqrt(x)", "exp(x)", "center(x)", "scale(x)", "poly(x, 2)", "bs(x, 4)", "C(x)"]
)
def test_each_function_of_a_formula_is_known(call):
    rows = pd.DataFrame({"x": np.tile([1.0, 2.0, 3.0, 4.0, 5.0], 8), "size": np.arange(1.0, 41)})
    text = formulas.Formula(f"size ~ {call}", {"x": 5}).text
    assert len(formulas.make_matrices(call, text, rows).rhs) == 40
