"""Intervals of closed-form estimates, against SciPy's distributions and arithmetic by hand."""

import numpy as np
import pandas as pd
import pytest
from closed import closed
from scipy import stats

import erbayes as eb
from erbayes import engine
from erbayes import metrics as m

pytestmark = [pytest.mark.kernel, pytest.mark.lowest]
SUPPORTS = ((0.0, 1.0), (-1.0, 1.0), (0.0, np.inf), (1.0, np.inf), (-np.inf, np.inf))


def fit(mean, sd=0.05, df=9.0, support=(0.0, 1.0), draws=20.0, extremes=None):
    return closed(mean, sd**2, df, support, effective=draws, reach=extremes)


def by_hand(x, sd, df, support, draws, reach, p, mass=0.5):
    """One quantile, with SciPy's distributions and pseudo-draws counted one by one."""
    low, high = reach
    mass *= ((high + low) / (high - low)) ** 2
    weights = np.array([draws, mass, mass])
    x = np.average([x, x + low, x + high], weights=weights)
    V = (draws**2 * sd**2 + mass * low**2 + mass * high**2) / weights.sum() ** 2
    V *= (stats.t.ppf(p, df) / stats.norm.ppf(p)) ** 2
    least, most = support
    if np.isfinite(most):
        y, v = (x - least) / (most - least), V / (most - least) ** 2
        size = y * (1 - y) / v
        return least + (most - least) * stats.beta.ppf(p, size * y, size * (1 - y))
    if np.isfinite(least):
        mean = x - least
        return least + stats.gamma.ppf(p, mean**2 / V, scale=V / mean)
    return x + stats.norm.ppf(p) * np.sqrt(V)


@pytest.mark.parametrize("support", SUPPORTS)
@pytest.mark.parametrize("mass", [0.0, 1.0, 2.5])
def test_quantiles_are_those_of_scipy(support, mass):
    x, reach = (2.3, (-0.9, 1.7)) if support[1] == np.inf else (0.7, (-0.6, 0.2))
    found = fit(x, support=support, extremes=np.array([reach]))
    low, high = found.interval(0.9, eb.intervals.BetaGamma(mass))[0]
    for bound, p in ((low, 0.05), (high, 0.95)):
        assert bound == pytest.approx(by_hand(x, 0.05, 9.0, support, 20.0, reach, p, mass), rel=1e-9)


def test_pseudo_draws_reach_to_the_ends_of_a_bounded_support_by_default():
    found = fit(0.8).interval()
    wanted = [by_hand(0.8, 0.05, 9.0, (0.0, 1.0), 20.0, (-0.8, 0.2), p) for p in (0.025, 0.975)]
    np.testing.assert_allclose(found[0], wanted, rtol=1e-9)
    np.testing.assert_array_equal(fit(2.0, support=(0.0, np.inf)).unseen.reach, [[0.0, 0.0]])


@pytest.mark.parametrize("draws", [20, 100, 1000])
def test_a_sample_without_error_has_about_the_interval_of_jeffreys_prior(draws):
    low, high = fit(1.0, 0.0, np.inf, draws=draws).interval()[0]
    assert low == pytest.approx(stats.beta.ppf(0.025, draws + 0.5, 0.5), abs=0.1 / draws) and high == 1
    np.testing.assert_allclose(fit(0.0, 0.0, np.inf, draws=draws).interval()[0], [0, 1 - low], rtol=1e-12)


@pytest.mark.parametrize("support", [(0.0, 1.0), (-1.0, 1.0)])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_skewness_beyond_that_of_equal_draws_moves_its_end(support, level):
    """A share of n equal draws that are right or wrong has the skewness that Beta quantiles have, and no end moves."""
    x, n, size = 0.8, 50, support[1] - support[0]
    mean, sd = support[0] + size * x, size * np.sqrt(x * (1 - x) / n)
    equal = size**3 * x * (1 - x) * (1 - 2 * x) / n**2
    none = np.zeros((1, 2))
    plain = closed(mean, sd**2, support=support, effective=50.0, reach=none).interval(level)
    step = (1 + 2 * stats.norm.ppf((1 + level) / 2) ** 2) / 6 / sd**2
    for third, moved in (
        (equal, [0, 0]),
        (equal / 2, [0, 0]),
        (1.5 * equal, [step * equal / 2, 0]),
        (-equal / 3, [0, -step * equal / 3]),
    ):
        skewed = closed(mean, sd**2, support=support, effective=50.0, reach=none, third=np.array([third]))
        np.testing.assert_allclose(skewed.interval(level) - plain, [moved], atol=1e-12)
    both = closed(0.8, 0.01, support=(0.0, np.inf), third=np.array([1.0]))
    np.testing.assert_array_equal(both.interval(), closed(0.8, 0.01, support=(0.0, np.inf)).interval())


def test_third_moments_of_a_share_of_draws():
    """Of n draws with replacement of T units, by enumeration of chances: Σ p (v - x)³ over n² is that of the mean."""
    prediction = pd.Series(np.repeat(np.arange(60), 3))
    truth = prediction.where(np.arange(180) % 9 > 0, 1000 + prediction)
    ids = truth.drop_duplicates()
    drawn = ids.sample(40, replace=True, random_state=3).tolist()
    sample = eb.Sample(eb.measure(prediction, truth[truth.isin(drawn)]), eb.UniformClusters(draws=drawn))
    fitted = engine.fitted.fit_sample(sample, [m.b3_recall, m.cluster_recall])
    right = np.array([(prediction[truth == c].nunique() == 1) & (3 == (truth == c).sum()) for c in drawn])
    wanted = np.sum((right - right.mean()) ** 3) / 40**3
    assert fitted.estimates.unseen.third[1] == pytest.approx(wanted, rel=1e-9)


def test_a_census_has_an_interval_of_length_0_and_a_single_draw_none():
    np.testing.assert_array_equal(fit(0.8, 0.0, draws=np.inf).interval(), [[0.8, 0.8]])
    for support in SUPPORTS:
        assert np.isnan(fit(0.9, np.nan, support=support).interval()).all()


@pytest.mark.parametrize("x", [-0.01, 0.0, 1.0, 1.02])
def test_estimates_at_and_beyond_the_ends_of_the_support(x):
    low, high = fit(x, 0.03).interval()[0]
    assert 0 <= low < high <= 1 and low <= np.clip(x, 0, 1) <= high


def test_intervals_reach_to_the_estimate():
    extremes = np.array([[-1.0, 0.0]])
    low, high = fit(0.999, 1e-6, draws=4.0, extremes=extremes).interval(0.2)[0]
    assert low < high == 0.999


def test_symmetric():
    x, step = 0.8, stats.t.ppf(0.975, 9.0) * 0.05
    np.testing.assert_allclose(fit(x).interval(kind=eb.intervals.Symmetric())[0], [x - step, x + step])
    found = fit(3.0, support=(0.0, np.inf)).interval(kind=eb.intervals.Symmetric())[0]
    np.testing.assert_allclose(found, [3.0 - step, 3.0 + step])
    normal = stats.norm.ppf(0.975) * 0.05
    np.testing.assert_allclose(fit(x).interval(kind=eb.intervals.WALD)[0], [x - normal, x + normal])
    np.testing.assert_allclose(fit(1.0).interval(kind=eb.intervals.Symmetric())[0], [1 - step, 1])


def test_labels_of_kinds():
    def labels(kind, supports=SUPPORTS):
        return [kind.label(fit(2.0, support=support), 0) for support in supports]

    assert labels(eb.intervals.BetaGamma()) == ["Beta", "Beta", "Gamma", "Gamma", "t"]
    assert labels(eb.intervals.Symmetric(), SUPPORTS[::2]) == ["t", "t", "t"]
    assert labels(eb.intervals.WALD) == ["Wald"] * 5


# How far entities can move each metric
def sampled(seed=0, predicted=False):
    rng = np.random.default_rng(seed)
    true, pred = np.sort(rng.integers(0, 40, 160)), rng.integers(0, 60, 160)
    pred[true < 30] = true[true < 30]
    prediction, labels = pd.Series(pred), pd.Series(true)
    if predicted:
        clusters = pd.unique(pred)[::2]
        return eb.Sample(eb.measure_predicted(prediction, labels, clusters), eb.UniformClusters())
    return eb.Sample(eb.measure(prediction, labels[labels % 2 == 0]), eb.UniformRecords())


STOCK = {  # all right; all wrong; singleton; singleton in a cluster of s: pieces (n, N, m)
    False: lambda s: [[(s, s, s)], [(1, s, s)] * s, [(1, 1, 1)], [(1, 1, s)]],
    True: lambda s: [[(s, s, s)], [(1, s, s)] * s, [(1, 1, 1)], [(1, s, 1)]],
}
METRICS = (*m.ALL, m.P_clust)


def weigh_error(metric):
    """How much of what a metric averages over an entity in error has, with two clusters, over a right one."""
    size = [(k, 2 if c == eb.columns.PREDICTED_CLUSTERS else 1) for c, k in metric.size if k > 0]
    return sum(k * has for k, has in size) / sum(k for k, _ in size)


@pytest.mark.parametrize("predicted", [False, True])
def test_extremes_are_derivatives_towards_samples_of_one_entity(predicted):
    sample = sampled(predicted=predicted)
    chosen = [m.purity, m.b3_precision, m.pairwise_recall] if predicted else METRICS
    totals = eb.engine.taylor(sample, chosen)
    found = totals.apply(chosen, order=1)
    known = sample.units.known
    s = round(float((known.size**2 * known.count).sum() / (known.size * known.count).sum()))
    for j, metric in enumerate(chosen):
        columns = [c for c in metric.columns if not isinstance(c, eb.columns.Known)]
        at = {name: totals.mean[i] for i, name in enumerate(totals.names)}
        moves = []
        for pieces in STOCK[predicted](s):
            n, N, size = (np.array(x, float) for x in zip(*pieces, strict=True))
            one = {}
            for c in (*columns, *(c for c, _ in metric.size)):
                if isinstance(c, eb.columns.GroupMax):
                    one[c.name] = c.term(n, N, size).max()
                else:
                    terms = c.term(n, N, size) if hasattr(c, "term") else n * c.phi(size)
                    one[c.name] = terms.sum()
            per = sum(k * at[c.name] for c, k in metric.size), sum(k * one[c.name] for c, k in metric.size)
            if per[1] == 0:
                continue
            eps = 1e-6
            x = [
                at[c.name] + (eps * one[c.name] * per[0] / per[1] if c in columns else 0)
                for c in metric.columns
            ]
            moves.append((metric.formula(*x) - metric.formula(*(at[c.name] for c in metric.columns))) / eps)
        low, high = metric.support
        wanted = [
            np.clip(min(moves), min(low - found.mean[j], 0), 0) * weigh_error(metric),
            np.clip(max(moves), 0, max(high - found.mean[j], 0)),
        ]
        reach = found.unseen.reach[j]
        np.testing.assert_allclose(reach, wanted, rtol=1e-4, atol=1e-6, err_msg=metric.name)


def test_precision_and_recall_can_move_to_0_and_1_and_the_rand_index_hardly():
    metrics = [m.pairwise_precision, m.pairwise_recall, m.rand]
    found = eb.engine.taylor(sampled(), metrics).apply(metrics)
    first = eb.engine.taylor(sampled(), [m.rand]).apply([m.rand], order=1)
    np.testing.assert_allclose(found.unseen.reach[:2], part(found).unseen.reach, atol=0.02)
    assert (np.abs(first.unseen.reach) < 0.1).all() and np.diff(found.interval()[2])[0] < 0.1


def part(found):
    first = {name: getattr(found, name)[:2] for name in ("names", "mean", "df", "support")}
    return eb.metrics.Estimates(cov=found.cov[:2, :2], **first)


def test_components_are_taken_with_their_intervals():
    found = eb.engine.taylor(sampled(), METRICS).apply(METRICS)
    taken = found.part([3, 0, 11])
    assert taken.names == tuple(METRICS[j].name for j in (3, 0, 11))
    np.testing.assert_array_equal(taken.interval(), found.interval()[[3, 0, 11]])
    np.testing.assert_array_equal(taken.cov, found.cov[np.ix_([3, 0, 11], [3, 0, 11])])


def test_error_counts_of_a_sample_without_errors_have_upper_limits_above_0():
    truth = pd.Series({r: r // 4 for r in range(400)})
    sample = eb.Sample(eb.measure(truth, truth[:100]), eb.UniformRecords())
    bounds = eb.engine.taylor(sample, [m.splits, m.merges]).apply([m.splits, m.merges]).interval()
    assert (bounds[:, 0] == 0).all() and (bounds[:, 1] > 1).all()


# Degrees of freedom
@pytest.mark.parametrize("strata", [1, 5, 100])
def test_degrees_of_freedom_of_even_strata_are_draws_less_strata(strata):
    """As R's degf: 100 strata of 2 draws have 100."""
    truth = pd.Series(np.arange(1600) // 2)
    chosen = truth[truth < 200]
    ids = np.arange(200)
    design = eb.Stratified(pd.Series(ids % strata, ids), {h: 800 // strata for h in range(strata)})
    found = eb.engine.taylor(eb.Sample(eb.measure(truth, chosen), design), [m.b3_recall]).apply([m.b3_recall])
    assert found.df[0] == pytest.approx(200 - strata)


def test_degrees_of_freedom_are_1_at_least():
    truth = pd.Series([0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1])
    assert eb.estimate(truth, truth, eb.UniformClusters(), [m.pairwise_recall]).df[0] == 1.0


def test_pseudo_draws_count_against_effective_draws_over_the_finite_population_correction():
    truth = pd.Series(np.arange(300) // 3)
    for population, theta in ((None, 1.0), (100, 0.8), (20, 0.0)):
        sample = eb.Sample(eb.measure(truth, truth[truth < 20]), eb.UniformClusters(population))
        found = eb.engine.taylor(sample, [m.pairwise_recall]).apply([m.pairwise_recall])
        assert found.unseen.effective == (pytest.approx(20 / theta) if theta else np.inf)


class OfTheSample:
    """A column that is known of the sampled units alone."""

    def __init__(self, name, values):
        self.name, self.values = name, np.array(values)

    def identified(self, units):
        return True

    def count(self, units):
        if len(units) != len(self.values):
            raise eb.NotIdentified("known of the sampled units alone")
        return self.values


def test_what_stock_entities_cannot_tell_may_move_to_the_ends_of_its_support():
    truth = pd.Series(np.arange(30) // 3)
    top, bottom = OfTheSample("top", [1.0, 0.5] * 5), OfTheSample("bottom", [1.0] * 10)
    own = m.Metric("own", (top, bottom), lambda x, y: x / y, ((bottom, 1.0),), m.UNIT, "")
    sample = eb.Sample(eb.measure(truth, truth), eb.UniformRecords())
    found = eb.engine.taylor(sample, [own, m.b3_recall]).apply([own, m.b3_recall])
    np.testing.assert_allclose(found.unseen.reach, [[-0.75, 0.25], [1 / 3 - 1, 0]], atol=1e-9)


@pytest.mark.parametrize("predicted", [False, True])
def test_singletons_of_either_side_are_in_stock(predicted):
    """Of records alone on one side, those alone on the other too: every stock singleton moves it."""
    alone = (lambda n, N, m: N) if not predicted else (lambda n, N, m: m)
    single = eb.columns.PieceSum("single", lambda n, N, m: (alone(n, N, m) == 1) * 1.0)
    both = eb.columns.PieceSum("both", lambda n, N, m: ((N == 1) & (m == 1)) * 1.0)
    own = m.Metric("own", (both, single), lambda x, y: x / y, ((single, 1.0),), m.UNIT, "")
    truth, pred = pd.Series([0, 1, 2, 2, 3, 4, 5, 5]), pd.Series([0, 1, 2, 3, 4, 4, 5, 6])
    if predicted:
        units = eb.measure_predicted(pred, truth, [0, 1, 2, 3, 4, 5, 6])
    else:
        units = eb.measure(pred, truth)
    found = eb.engine.taylor(eb.Sample(units, eb.UniformClusters()), [own]).apply([own], order=1)
    x = found.mean[0]
    assert 0 < x < 1
    np.testing.assert_allclose(found.unseen.reach, [[-x, 1 - x]])


def test_a_comparison_shows_the_intervals_of_each_prediction_alone():
    truth = pd.Series(np.arange(60) // 4)
    old, new = truth.replace({3: 2}), truth.where(np.arange(60) % 7 > 0, 99)
    metrics = [m.pairwise_recall, m.rand, m.splits]
    together = eb.compare({"old": old, "new": new}, truth[:40], eb.UniformRecords(), metrics).table()
    for name, prediction in (("old", old), ("new", new)):
        sample = eb.Sample(eb.measure(prediction, truth[:40]), eb.UniformRecords())
        alone = eb.engine.Taylor()(sample, metrics)
        rows = together[together.prediction == name][["lower", "upper"]]
        np.testing.assert_allclose(rows, alone.interval(), rtol=1e-12)
