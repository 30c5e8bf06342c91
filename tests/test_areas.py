"""Small-area estimates of domains."""

import numpy as np
import pandas as pd
import pytest

import erbayes as eb
from erbayes.analysis.areas import direct_estimates, eblup, small_areas
from erbayes.engine import Resampled

pytestmark = pytest.mark.kernel


def by_parts(parts=20, draws=300, seed=0, share=None):
    """Domains of very different sizes, with a true value of b3-recall each."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 6, 3000)
    true = np.repeat(np.arange(3000), sizes)
    share = rng.dirichlet(np.full(parts, 1.0)) if share is None else share
    part = rng.choice(parts, 3000, p=share)
    chance = 1 / (1 + np.exp(-rng.normal(-1.5, 0.5, parts)))
    pred = np.where(rng.random(len(true)) < chance[part[true]], true + 10_000, true)
    picked = true[rng.integers(0, len(true), draws)]
    units = eb.measure(pd.Series(pred), pd.Series(true)[np.isin(true, picked)])
    sample = eb.Sample(units, eb.UniformRecords(list(picked)))
    group = pd.Series(part[true], name="part")
    pieces = pd.DataFrame({"true": true, "pred": pred, "part": group})
    found = pieces.groupby(["true", "pred"])["part"].transform("size") / pieces.groupby("true")[
        "part"
    ].transform("size")
    exact = found.groupby(group.astype(str)).mean()
    return eb.by_domain(sample, group, ["b3-recall", "adjusted-rand"]), exact


def test_independent_errors_shrink_one_by_one():
    """The textbook's formulas for a diagonal V, domain by domain (Rao and Molina 2015, section 6.2)."""
    rng = np.random.default_rng(1)
    D = rng.uniform(0.05, 0.6, 15)
    x = np.column_stack([np.ones(15), rng.normal(size=15)])
    y = x @ [0.5, -0.3] + rng.normal(size=15) * np.sqrt(0.2 + D)
    theta, mse, tau2, beta = eblup(y, np.diag(D), x, np.ones(15, dtype=bool))

    def fitted(A):
        w = 1 / (A + D)
        S = sum(w[i] * np.outer(x[i], x[i]) for i in range(15))
        b = np.linalg.solve(S, sum(w[i] * x[i] * y[i] for i in range(15)))
        return w, S, b

    grid = np.linspace(0.001, 3, 30_000)
    values = []
    for A in grid[::10]:
        w, S, b = fitted(A)
        values.append(
            np.log(A)
            + 0.5 * np.log(w).sum()
            - 0.5 * np.log(np.linalg.det(S))
            - 0.5 * (w * (y - x @ b) ** 2).sum()
        )
    assert tau2 == pytest.approx(grid[::10][int(np.argmax(values))], abs=0.002)
    w, S, b = fitted(tau2)
    W = np.diag(w) - (w[:, None] * x) @ np.linalg.inv(S) @ (w[:, None] * x).T
    for i in range(15):
        gamma = tau2 / (tau2 + D[i])
        assert theta[i] == pytest.approx(gamma * y[i] + (1 - gamma) * x[i] @ b, rel=1e-9)
        g1, g2 = gamma * D[i], (1 - gamma) ** 2 * x[i] @ np.linalg.inv(S) @ x[i]
        g3 = D[i] ** 2 / (tau2 + D[i]) ** 3 * 2 / np.trace(W @ W)
        assert mse[i] == pytest.approx(g1 + g2 + 2 * g3, rel=1e-9)
    np.testing.assert_allclose(beta, b, rtol=1e-9)


def test_correlated_errors_by_conditioning():
    """With a flat prior for β, the predictor is a normal's conditional mean; β of variance 1e5 is nearly flat."""
    rng = np.random.default_rng(2)
    root = rng.normal(size=(9, 9)) / 5
    V, X = root @ root.T + 0.1 * np.eye(9), np.column_stack([np.ones(10), rng.normal(size=10)])
    there = np.arange(10) != 4
    y = rng.normal(size=9)
    theta, mse, tau2, _ = eblup(y, V, X, there)
    prior = 1e5 * X @ X.T + tau2 * np.eye(10)
    gain = prior[:, there] @ np.linalg.inv(prior[np.ix_(there, there)] + V)
    np.testing.assert_allclose(theta, gain @ y, rtol=1e-4, atol=1e-4)
    conditional = np.diagonal(prior - gain @ prior[there])
    assert (mse > conditional - 1e-6).all() and mse[4] == pytest.approx(conditional[4], rel=0.01)


def test_small_domains_come_nearer_to_the_truth():
    direct, model, held = [], [], []
    for seed in range(10):
        result, exact = by_parts(seed=seed)
        table = small_areas(result, "b3-recall").table().set_index("domain")
        few = table.index[(table.n_eff < 10) & table.direct.notna()]
        truth = exact[few]
        direct += list((table.direct[few] - truth) ** 2)
        model += list((table.estimate[few] - truth) ** 2)
        held += list((table.lower <= exact[table.index]) & (exact[table.index] <= table.upper))
    assert np.mean(model) < 0.4 * np.mean(direct)
    assert np.mean(held) >= 0.93


def direct_by_hand(result, metric, pooled=True, fewest=10.0):
    """The direct estimates of theory, step 32, domain by domain: h(y), V, and the σ² of one draw."""
    fit = result.result(metric)
    j = [m.name for m in result.metrics].index(metric)
    n = [float(x) for x in result.effective[:, j]]
    g, se = fit.mean.tolist(), fit.sd.tolist()
    there = [i for i in range(len(n)) if n[i] > 0]
    middle = sum(n[i] * g[i] for i in there) / sum(n[i] for i in there)
    y = {i: (n[i] * g[i] + middle) / (n[i] + 1) for i in there}
    good = [i for i in there if n[i] >= fewest and se[i] > 0]
    variances = {i: n[i] * (se[i] / (y[i] * (1 - y[i]))) ** 2 for i in good}
    sigma2 = sum(n[i] * variances[i] for i in good) / sum(n[i] for i in good)
    V = np.zeros((len(there), len(there)))
    for a, i in enumerate(there):
        for b, k in enumerate(there):
            alike = fit.cov[i, k] / (se[i] * se[k]) if se[i] * se[k] > 0 else 0.0
            alike = 1.0 if i == k else alike
            V[a, b] = alike * sigma2 / np.sqrt((n[i] + 1) * (n[k] + 1))
    return np.array([np.log(y[i] / (1 - y[i])) for i in there]), V, there, se


@pytest.mark.parametrize("seed", [0, 3])
def test_direct_estimates_have_a_pooled_pseudo_draw_and_one_variance_per_draw(seed):
    result, _ = by_parts(parts=30, draws=200, seed=seed)
    y, V, there, se = direct_by_hand(result, "b3-recall")
    assert len(there) < 30 or seed != 0  # some domain has no draw,
    assert any(se[i] == 0 for i in there)  # and some have draws without an error
    found = direct_estimates(result, "b3-recall")
    assert list(np.flatnonzero(found.there)) == there
    np.testing.assert_allclose(found.y, y, rtol=1e-12)
    np.testing.assert_allclose(np.diagonal(found.V), np.diagonal(V), rtol=1e-8)
    np.testing.assert_allclose(found.V, V, rtol=1e-6, atol=1e-8)


def test_a_domain_gives_the_variance_from_as_many_draws_as_the_settings_ask_for():
    result, _ = by_parts(parts=30, draws=200, seed=3)
    n = np.sort(result.effective[:, 0][np.nan_to_num(result.effective[:, 0]) > 0])
    exactly = float(n[len(n) // 2])
    for fewest in (exactly, np.nextafter(exactly, np.inf)):
        asked = eb.by_domain(result.sample, "part", ["b3-recall"], fewest=fewest)
        wanted = direct_by_hand(asked, "b3-recall", fewest=fewest)[1]
        found = direct_estimates(asked, "b3-recall").V
        np.testing.assert_allclose(np.diagonal(found), np.diagonal(wanted), rtol=1e-8)


def test_no_domain_with_an_error_has_a_reason_and_no_estimate():
    """Without an error in any domain, no pseudo-draw moves a share off the end of the scale."""
    truth = pd.Series(np.repeat(np.arange(200), 3))
    sample = eb.Sample(eb.measure(truth, truth[truth < 80]), eb.UniformClusters(200))
    result = eb.by_domain(sample, pd.Series(np.repeat(np.arange(200) % 5, 3), name="part"), "b3-recall")
    with pytest.raises(eb.DataError, match="a standard error above 0"):
        small_areas(result, "b3-recall")


def test_intervals_cover_domains_of_few_draws():
    """15 domains of 25 to 375 entities and 150 draws, over populations whose domains differ anew."""
    held, few = [], []
    for seed in range(24):
        result, exact = by_parts(parts=15, draws=150, seed=seed, share=np.arange(1, 16) / 120)
        table = small_areas(result, "b3-recall").table().set_index("domain")
        here = (table.lower <= exact[table.index]) & (exact[table.index] <= table.upper)
        held += list(here)
        few += list(here[(table.n_eff < 5) & table.direct.notna()])
    assert len(few) > 50 and np.mean(few) >= 0.87
    assert 0.93 <= np.mean(held) <= 0.985


def test_direct_estimates_stay_beside_the_model():
    result, _ = by_parts()
    table = small_areas(result, "b3-recall").table()
    own = result.table()
    own = own[own.metric == "b3-recall"].reset_index()
    np.testing.assert_array_equal(table.direct, own.estimate)
    np.testing.assert_array_equal(table.n_eff, own.n_eff)


def test_covariates():
    result, exact = by_parts()
    informed = small_areas(result, "b3-recall", pd.DataFrame({"truth": np.log(exact / (1 - exact))}))
    plain = small_areas(result, "b3-recall")
    assert informed.tau2 < plain.tau2 and informed.beta[1] > 0.5


class TestBadInput:
    def test_draws(self):
        result, _ = by_parts()
        group = pd.Series({r: i % 5 for i, r in enumerate(result.sample.units.piece_of.index)})
        drawn = eb.by_domain(result.sample, group, "b3-recall", engine=Resampled(replicates=100), rng=1)
        with pytest.raises(eb.DataError, match="closed form"):
            small_areas(drawn, "b3-recall")

    def test_metrics(self):
        result, _ = by_parts()
        with pytest.raises(eb.DataError, match="neither a logit nor a log scale"):
            small_areas(result, "adjusted-rand")
        with pytest.raises(eb.DataError, match="no 'b3-precision'; they have b3-recall"):
            small_areas(result, "b3-precision")

    def test_few_domains(self):
        result, _ = by_parts(parts=3)
        with pytest.raises(eb.DataError, match="needs 4 or more"):
            small_areas(result, "b3-recall")

    def test_covariates(self):
        result, exact = by_parts()
        with pytest.raises(eb.DataError, match="are missing for 1 of"):
            small_areas(result, "b3-recall", pd.DataFrame({"x": exact[1:]}))
        with pytest.raises(eb.DataError, match="the same for every domain"):
            small_areas(result, "b3-recall", pd.DataFrame({"x": exact * 0}))
        with pytest.raises(eb.DataError, match="must be numbers"):
            small_areas(result, "b3-recall", pd.DataFrame({"x": exact.index + "x"}, index=exact.index))
        with pytest.raises(eb.DataError, match="1 repeated rows"):
            small_areas(result, "b3-recall", pd.DataFrame({"x": pd.concat([exact, exact[:1]])}))

    def test_no_variance_to_borrow(self):
        result, _ = by_parts(draws=25)
        with pytest.raises(eb.DataError, match="no variance can be borrowed"):
            direct_estimates(eb.by_domain(result.sample, "part", "b3-recall", fewest=1000), "b3-recall")


@pytest.mark.slow
def test_the_closed_form_and_pymc_agree():
    pm = pytest.importorskip("pymc")
    result, _ = by_parts(draws=1200)  # enough that τ hardly depends on its prior
    closed, d = small_areas(result, "b3-recall").table(), direct_estimates(result, "b3-recall")
    with pm.Model():
        tau = pm.HalfNormal("tau", 0.5)
        theta = pm.Deterministic("theta", pm.Normal("mean", d.y.mean(), 1.0) + tau * pm.Normal("z", size=20))
        pm.MvNormal("direct", theta[np.flatnonzero(d.there)], d.V, observed=d.y)
        found = pm.sample(
            500, tune=500, chains=2, cores=1, random_seed=1, target_accept=0.95, progressbar=False
        )
    draws = d.scale.inverse(found["posterior"]["theta"].to_numpy()).reshape(1000, -1)
    lower, upper = np.quantile(draws, [0.025, 0.975], axis=0)
    np.testing.assert_allclose(draws.mean(axis=0), closed.estimate, atol=0.02)
    np.testing.assert_allclose((upper - lower) / (closed.upper - closed.lower), 1, atol=0.15)


class TestCounts:
    def test_they_keep_their_own_variance_and_need_a_covariate(self):
        """Splits are a total of their domain: without a covariate a small domain would move to the mean."""
        result, _ = by_parts(parts=15, draws=400, share=np.arange(1, 16) / 120)
        counts = eb.by_domain(result.sample, "part", "splits")
        with pytest.raises(eb.DataError, match="splits grows with the records of a domain"):
            small_areas(counts, "splits")
        with pytest.raises(eb.DataError, match="splits grows with the records of a domain"):
            small_areas(counts, "splits", pd.DataFrame(index=[str(i) for i in range(15)]))
        records = pd.Series(np.log(np.arange(1, 16)), [str(i) for i in range(15)], name="log records")
        found = direct_estimates(counts, "splits", records.to_frame())
        fit = counts.result("splits")
        moved, variance = eb.intervals.BetaGamma().moments(fit)
        n = counts.effective[:, 0]
        own = np.sqrt(variance) / moved
        good = n >= 10
        shared = np.sqrt((n[good] ** 2 * own[good] ** 2).sum() / n[good].sum() / n)
        assert 0 < good.sum() < 15
        np.testing.assert_allclose(found.y, np.log(moved), rtol=1e-12)
        np.testing.assert_allclose(np.diagonal(found.V), np.where(good, own, shared) ** 2, rtol=1e-8)

    def test_a_mean_needs_no_covariate(self):
        result, _ = by_parts(parts=15, draws=400, share=np.arange(1, 16) / 120)
        means = eb.by_domain(result.sample, "part", "variation-of-information")
        assert small_areas(means, "variation-of-information").tau2 > 0
