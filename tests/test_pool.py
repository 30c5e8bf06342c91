"""Linear pools against mixtures by SciPy, and the pool of a size model with the closed form."""

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq

import erbayes as eb
from erbayes import metrics as m
from erbayes.engine import LinearPool, Resampled, Taylor, linear_pool
from erbayes.study.populations import LogNormal, Splits, simulate

LINE = ((-np.inf, np.inf),)
P, R = m.pairwise_precision, m.pairwise_recall


def normal(mean, sd=1.0):
    return eb.metrics.Normal(("x",), np.array([mean]), np.array([[sd**2]]), np.array([np.inf]), LINE)


def mixed(parts, weights, p):
    """Quantile of a mixture of distributions, by its distribution function."""
    return brentq(lambda x: sum(w * d.cdf(x) for d, w in zip(parts, weights, strict=True)) - p, -100, 100)


@pytest.mark.parametrize("weights", [(0.5, 0.5), (0.2, 0.8)])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_two_normals_are_a_mixture(weights, level):
    one, other = stats.norm(0, 1), stats.norm(3, 2)
    pool = linear_pool([normal(0.0), normal(3.0, 2.0)], weights, draws=200_000, rng=1)
    ends = [mixed((one, other), weights, p) for p in ((1 - level) / 2, (1 + level) / 2)]
    assert pool.interval(level)[0] == pytest.approx(ends, abs=2e-3)
    mean = weights[1] * 3
    assert pool.estimate == pytest.approx([mean], abs=1e-4)
    assert pool.sd**2 == pytest.approx([weights[0] + weights[1] * (4 + 9) - mean**2], rel=1e-3)


def test_draws_and_a_normal_are_a_mixture():
    values = stats.gamma(3).ppf((np.arange(5000) + 0.5) / 5000)
    draws = eb.metrics.Draws(("x",), np.random.default_rng(1).permutation(values)[None, :, None], LINE)
    pool = linear_pool([draws, normal(0.0)], draws=10_000, rng=1)
    ends = [mixed((stats.gamma(3), stats.norm()), (0.5, 0.5), p) for p in (0.025, 0.975)]
    assert pool.interval()[0] == pytest.approx(ends, abs=5e-3)
    assert sorted(pool.flat[:, 0])[-1] == values.max()


def test_a_distribution_pooled_with_itself_is_itself():
    closed = Taylor()(SAMPLE, [P, R])
    assert linear_pool([closed, closed], draws=40_000, rng=1).interval() == pytest.approx(
        closed.interval(), abs=2e-4
    )
    draws = Resampled(replicates=400)(SAMPLE, [P, R], 1)
    pool = linear_pool([draws, draws], draws=800, rng=1)
    assert pool.interval() == pytest.approx(draws.interval(kind=eb.intervals.EqualTailed()), abs=1e-9)


def test_a_weight_of_one_gives_that_part():
    closed, draws = Taylor()(SAMPLE, [P, R]), Resampled(replicates=400)(SAMPLE, [P, R], 1)
    alone = linear_pool([closed, draws], [1, 0], draws=40_000, rng=1)
    assert alone.interval() == pytest.approx(closed.interval(), abs=2e-4)
    alone = linear_pool([closed, draws], [0, 2], draws=400, rng=1)
    assert np.sort(alone.flat, axis=0).tolist() == np.sort(draws.flat, axis=0).tolist()


def test_metrics_stay_joined_within_each_part():
    """Covariance of a mixture: the mean covariance, and that of the means."""
    support = LINE * 2
    parts = [
        eb.metrics.Normal(
            ("a", "b"), np.array([x, y]), np.array([[1.0, c], [c, 1.0]]), np.full(2, np.inf), support
        )
        for x, y, c in ((0.0, 0.0, 0.9), (1.0, -1.0, -0.3))
    ]
    pool = linear_pool(parts, draws=100_000, rng=1)
    assert pool.cov == pytest.approx(np.array([[1.25, 0.3 - 0.25], [0.3 - 0.25, 1.25]]), abs=0.015)


def test_a_sample_without_errors_keeps_the_end_of_its_interval():
    whole = eb.measure({i: i // 2 for i in range(400)}, {i: i // 2 for i in range(100)})
    closed = Taylor()(eb.Sample(whole, eb.UniformRecords()), [P])
    assert closed.interval()[0, 1] == 1
    low = eb.metrics.Draws(closed.names, np.linspace(0.5, 0.9, 500)[None, :, None], closed.support)
    lower, upper = linear_pool([low, closed], rng=1).interval()[0]
    assert upper == 1 and lower == pytest.approx(np.quantile(low.flat, 0.05), abs=1e-3)


def test_the_pool_does_not_depend_on_the_seed_but_for_the_order():
    one, other = (linear_pool([normal(0.0), normal(1.0)], draws=100, rng=seed).flat[:, 0] for seed in (1, 2))
    assert sorted(one) == sorted(other) and one.tolist() != other.tolist()


@pytest.mark.parametrize(
    "results, arguments, words",
    [
        ([normal(0.0)], {}, "two results or more, not 1"),
        ([normal(0.0), Taylor], {}, "the same metrics, not for x and for"),
        ([normal(0.0), normal(1.0)], {"weights": [1.0]}, "are 2 numbers of 0 or more"),
        ([normal(0.0), normal(1.0)], {"weights": [-1.0, 2.0]}, "are 2 numbers of 0 or more"),
        ([normal(0.0), normal(1.0)], {"weights": [0.0, 0.0]}, "not all 0"),
        ([normal(0.0), normal(1.0)], {"weights": [np.nan, 1.0]}, "are 2 numbers of 0 or more"),
        ([normal(0.0), normal(1.0)], {"draws": 1}, "needs as many draws or more, not 1"),
    ],
)
def test_what_cannot_be_pooled_is_refused(results, arguments, words):
    results = [one()(SAMPLE, [P]) if one is Taylor else one for one in results]
    with pytest.raises(eb.DataError, match=words):
        linear_pool(results, **arguments)


def test_an_engine_of_engines():
    engine = LinearPool((Taylor(), Resampled(replicates=400)), (1.0, 3.0), draws=4000)
    found = engine(SAMPLE, [P, R], 1)
    boot = Resampled(replicates=400)(SAMPLE, [P, R], np.random.default_rng(1))
    by_hand = linear_pool([Taylor()(SAMPLE, [P, R]), boot], [1, 3], draws=4000, rng=2)
    assert found.interval() == pytest.approx(by_hand.interval(), abs=1e-9)
    assert engine.alarms(SAMPLE, [P, R]) == []
    with pytest.raises(eb.DataError, match=r"each of engines is an object such as Taylor\(\)"):
        LinearPool((Taylor(), "bootstrap"))


WORLD = simulate(LogNormal(0.8, 1.0), Splits(0.3), 8000, 3)
DRAWN = WORLD.true.sample(60, random_state=4)
SAMPLE = eb.Sample(eb.measure(WORLD.pred, WORLD.true[WORLD.true.isin(DRAWN)]), eb.UniformRecords(draws=DRAWN))


@pytest.fixture(scope="module")
def fit():
    pytest.importorskip("pymc", reason="pymc is not installed")
    from erbayes import bayes

    return bayes.fast(SAMPLE, draws=500, rng=1)


def test_a_fit_pools_with_the_closed_form(fit):
    """The distribution function of the pool is the mean of both, at both ends."""
    posterior, closed = fit.apply([P, R]).flat, Taylor()(SAMPLE, [P, R])
    found = fit.pooled([P, R])
    assert found.names == ("pairwise-precision", "pairwise-recall")
    p = np.linspace(0.0005, 0.9995, 1000)[:, None]
    levels = np.stack([closed.interval(abs(1 - 2 * x[0]))[:, int(x[0] > 0.5)] for x in p])
    for j, ends in enumerate(found.interval()):
        for end, wanted in zip(ends, (0.025, 0.975), strict=True):
            below = [np.mean(v[:, j] <= end) for v in (posterior, levels)]
            strictly = [np.mean(v[:, j] < end) for v in (posterior, levels)]
            assert np.mean(strictly) - 2e-3 <= wanted <= np.mean(below) + 2e-3


def test_a_fit_shows_the_pool_in_its_table(fit):
    table = fit.table(0.9)
    assert len(table) == 6
    pooled = fit.pooled(list(table.index)).interval(0.9)
    np.testing.assert_allclose(table[["pooled_lower", "pooled_upper"]], pooled, rtol=1e-12)
    assert ((table.pooled_lower < table.estimate) & (table.estimate < table.pooled_upper)).all()
