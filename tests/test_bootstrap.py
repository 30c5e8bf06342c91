"""Bootstrap: R's replicate weights, theory of the multipliers, SciPy's intervals."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from test_calibration import drawn, two
from test_golden import GOLDEN, METRICS, R, pps, sample

import erbayes as eb
from erbayes import metrics as m
from erbayes.design.variance import StratifiedDraws
from erbayes.engine import BCa, RaoWu, bootstrap
from erbayes.engine.schemes import Scheme
from erbayes.metrics.columns import PREDICTED_LINKS, RECORDS
from erbayes.metrics.intervals import EqualTailed

pytestmark = [pytest.mark.kernel, pytest.mark.lowest]
PR = (m.pairwise_precision, m.pairwise_recall, m.cluster_recall)


class Efron(Scheme):
    """n_h draws with replacement in each stratum, as a user can write it."""

    def multipliers(self, draws, replicates, rng):
        r = np.empty((replicates, len(draws.stratum)))
        for h, theta in enumerate(draws.fpc):
            n = int((draws.stratum == h).sum())
            counts = rng.multinomial(n, np.full(n, 1 / n), replicates)
            r[:, draws.stratum == h] = 1 + np.sqrt(theta) * (counts - 1)
        return r


class Given(Scheme):
    """Multipliers that are given, as a user can write it."""

    def __init__(self, values):
        self.values = np.asarray(values, dtype=float)

    def multipliers(self, draws, replicates, rng):
        return self.values

    def chunks(self, draws, replicates, rng):
        yield self.values


SCHEMES = (Efron(), RaoWu())


def rng(seed=1):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("kind", ["bootstrap", "subbootstrap"])
def test_fixed_replicates_of_R(kind):
    given = pd.read_csv(GOLDEN / f"rep_{kind}_200.csv").to_numpy(dtype=float)
    given = given if given.shape == (200, 60) else given.T
    chosen = tuple(METRICS.values())
    found = bootstrap(pps(), chosen, Given(given), replicates=200, rng=rng())
    off = found.flat - found.fit.mean
    case, compared = f"pps_wr_{kind}_200fixed_mse", 0
    for j, name in enumerate(METRICS):
        if (case, name, "se") in R.index:
            assert np.sqrt((off[:, j] ** 2).sum() / 199) == pytest.approx(R[case, name, "se"], rel=1e-10)
            compared += 1
    assert compared >= 6


STRATA = np.array([1, 0, 1, 0, 1, 1, 0, 1])


@pytest.mark.parametrize("theta", [[1.0, 1.0], [0.4, 0.7], [0.0, 0.5], [0.6]])
def test_moments_of_the_multipliers(theta):
    B, theta = 200_000, np.array(theta)
    strata = STRATA % len(theta)
    r = RaoWu().multipliers(StratifiedDraws(strata, theta), B, rng())
    n = np.bincount(strata)
    for h in range(len(n)):
        np.testing.assert_allclose(r[:, h == strata].sum(axis=1), n[h], rtol=1e-12)
    # Rao-Wu's multipliers have the covariance that makes the variance of a total unbiased
    wanted = np.zeros((8, 8))
    for h in range(len(n)):
        one = (h == strata).astype(float)
        unbiased = (np.diag(one) - np.outer(one, one) / n[h]) * n[h] / (n[h] - 1)
        wanted += theta[h] * unbiased
    np.testing.assert_allclose(r.mean(axis=0), 1, atol=0.02)
    np.testing.assert_allclose(np.cov(r.T), wanted, atol=0.02)


@pytest.mark.parametrize("scheme", [Efron(), RaoWu()])
def test_census_has_no_uncertainty(scheme):
    pred, true, _, _ = drawn()
    s = eb.Sample(eb.measure(pred, true), eb.UniformClusters(population=true.nunique()))
    found = bootstrap(s, PR, scheme, replicates=50, rng=rng())
    np.testing.assert_allclose(found.sd, 0, atol=1e-14)
    np.testing.assert_allclose(
        found.interval(kind=EqualTailed()), found.fit.mean[:, None] * [1, 1], rtol=1e-12
    )


def test_standard_deviations_agree_with_taylor():
    found = bootstrap(pps(), PR, replicates=40_000, rng=rng())
    totals = eb.engine.taylor(pps(), PR)
    np.testing.assert_allclose(
        found.totals.cov, totals.cov, atol=0.03 * np.outer(*[np.diag(totals.cov) ** 0.5] * 2).max()
    )
    np.testing.assert_allclose(found.sd, found.fit.sd, rtol=0.1)


def test_percentile_and_BCa_against_scipy():
    s = pps()
    found = bootstrap(s, PR[:2], Efron(), replicates=2000, rng=rng())
    for j, metric in enumerate(PR[:2]):
        y, x = s.contributions(metric.columns).T

        def ratio(y, x):
            return y.sum() / x.sum()

        given = stats._resampling.BootstrapResult(
            confidence_interval=None, bootstrap_distribution=found.flat[:, j], standard_error=0.0
        )
        for method, kind, rtol in (
            ("percentile", EqualTailed(), 1e-12),
            ("BCa", BCa(), 1e-9),
        ):
            wanted = stats.bootstrap(
                (y, x),
                ratio,
                paired=True,
                vectorized=False,
                n_resamples=0,
                bootstrap_result=given,
                method=method,
            ).confidence_interval
            np.testing.assert_allclose(found._bound(0.95, kind)[j], np.clip(wanted, 0, 1), rtol=rtol)


def test_BCa_of_a_skewed_estimate():
    s = sample("s_srswor.csv", lambda d: eb.UniformClusters())[0]
    P = m.pairwise_precision
    found = bootstrap(s, [P], Efron(), replicates=4000, rng=rng())
    y, x = s.contributions(P.columns).T
    given = stats._resampling.BootstrapResult(
        confidence_interval=None, bootstrap_distribution=found.flat[:, 0], standard_error=0.0
    )
    # the kinds themselves, since so few draws move it that the closed form takes their place in tables
    bca, plain = (kind.bounds(found, 0.9)[0] for kind in (BCa(), EqualTailed()))
    wanted = stats.bootstrap(
        (y, x),
        lambda y, x: y.sum() / x.sum(),
        paired=True,
        vectorized=False,
        n_resamples=0,
        bootstrap_result=given,
        method="BCa",
        confidence_level=0.9,
    ).confidence_interval
    np.testing.assert_allclose(bca, wanted, rtol=1e-9)
    assert np.abs(bca - plain).max() > 0.02


def replicated(shares):
    """Recall of 32 entities, half of them right; replicate b gives those right ones weight shares[b]."""
    truth = pd.Series(np.arange(64) // 2)
    s = eb.Sample(eb.measure(truth.where(truth < 16, 100 + np.arange(64)), truth), eb.UniformClusters())
    given = np.outer(shares, np.arange(32) < 16) + np.outer(1 - np.asarray(shares), np.arange(32) >= 16)
    return bootstrap(s, [m.pairwise_recall], Given(2 * given), replicates=len(shares), rng=rng())


def test_BCa_counts_replicates_that_equal_the_estimate_by_half():
    found = replicated([0.3, 0.5, 0.5, 0.5, 0.6, 0.7])
    assert found.fit.mean[0] == 0.5 and found.acceleration()[0] == pytest.approx(0, abs=1e-12)
    z0 = stats.norm.ppf((1 + 3 / 2) / 6)
    at = stats.norm.cdf(2 * z0 + stats.norm.ppf([0.1, 0.9]))
    wanted = np.quantile([0.3, 0.5, 0.5, 0.5, 0.6, 0.7], at)
    np.testing.assert_allclose(found._bound(0.8, BCa())[0], wanted, rtol=1e-9)


@pytest.mark.parametrize(("shares", "side"), [([0.6, 0.7, 0.8], "lower"), ([0.1, 0.2, 0.3], "upper")])
def test_BCa_where_all_replicates_lie_on_one_side(shares, side):
    low, high = replicated(shares)._bound(0.9, BCa())[0]
    assert shares[0] <= low <= high <= shares[-1]
    assert low == pytest.approx(0.6, abs=0.01) if side == "lower" else high == pytest.approx(0.3, abs=0.01)


def perfect():
    true = pd.Series(np.repeat(np.arange(300), np.arange(300) % 5 + 1))
    return eb.Sample(eb.measure(true, true[true < 100]), eb.UniformRecords())


def test_a_sample_without_errors_has_the_interval_of_the_closed_form():
    plain = bootstrap(perfect(), PR[:2], replicates=100, rng=rng())
    assert (EqualTailed().bounds(plain, 0.95) == 1).all()
    np.testing.assert_array_equal(plain.interval(), plain.fit.interval())


@pytest.mark.parametrize("scheme", [Efron(), RaoWu()])
def test_calibrated_replicates_meet_the_known_totals(scheme):
    pred, _, labels, draws = drawn(0, n=150)
    design = eb.design.Calibrated(eb.UniformRecords(draws), two, fewest=0)
    s = eb.Sample(eb.measure(pred, labels), design)
    found = bootstrap(s, [m.P_rec, m.pairwise_recall, m.rand], scheme, replicates=3000, rng=rng())
    for column in (RECORDS, PREDICTED_LINKS):
        j = found.totals.names.index(column.name)
        free = found.sample.expansion.variance.slope.all()
        np.testing.assert_allclose(
            found.totals.flat[:, j], s.units.known.total(column), rtol=1e-9 if free else 0.2
        )
    np.testing.assert_allclose(found.sd, found.fit.sd, rtol=0.25)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_same_seed_same_replicates(scheme):
    one, two_ = (bootstrap(pps(), PR, scheme, replicates=50, rng=rng(7)).values for _ in range(2))
    assert (one == two_).all()
    assert (bootstrap(pps(), PR, scheme, replicates=50, rng=rng(8)).values != one).any()


def test_refusals():
    pred, _, labels, draws = drawn()
    units = eb.measure(pred, labels)
    with pytest.raises(eb.NotIdentified, match="distinct units are not independent draws"):
        bootstrap(eb.Sample(units, eb.DistinctEntities(60)), PR, rng=rng())
    one = eb.Sample(eb.measure({1: 1, 2: 1}, {1: 1, 2: 1}), eb.UniformClusters())
    with pytest.raises(eb.NotIdentified, match="1 of 1 strata hold a single draw"):
        bootstrap(one, PR, rng=rng())
    with pytest.raises(eb.DataError, match="two replicates or more, not 1"):
        bootstrap(eb.Sample(units, eb.UniformRecords(draws)), PR, replicates=1, rng=rng())
    few = eb.Sample(
        eb.measure({i: i // 2 for i in range(9)}, {i: i // 2 for i in (0, 1, 8)}), eb.UniformClusters()
    )
    with pytest.raises(eb.NotIdentified, match=r"pairwise-precision: it is 0/0 in \d+ of 200 draws"):
        bootstrap(few, PR[:2], replicates=200, rng=rng())
    with pytest.raises(eb.DataError, match="level must lie strictly between 0 and 1"):
        bootstrap(eb.Sample(units, eb.UniformRecords(draws)), PR, replicates=20, rng=rng()).interval(1.0)
