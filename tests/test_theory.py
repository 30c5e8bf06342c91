"""The formulas of docs/guide/theory.md, and of docstrings that it names, give the numbers of the package."""

from math import comb

import numpy as np
import pandas as pd
import pytest
from repeats import each_draw
from scipy import stats

import erbayes as eb
from erbayes.analysis.planning import forecast
from erbayes.engine import bootstrap

pytestmark = pytest.mark.kernel
RNG = np.random.default_rng(3)
ENTITY = np.repeat(np.arange(120), RNG.integers(1, 9, 120))
N = len(ENTITY)
CLUSTER = np.where(RNG.random(N) < 0.15, 1000 + RNG.integers(0, 60, N), ENTITY)
CLUSTER = np.where(RNG.random(N) < 0.1, CLUSTER + 1, CLUSTER)
PREDICTION = dict(enumerate(CLUSTER.tolist()))
TRUTH = dict(enumerate(ENTITY.tolist()))
DRAWN = ENTITY[RNG.integers(0, N, 60)].tolist()
DISTINCT = list(dict.fromkeys(DRAWN))
LABELS = {record: entity for record, entity in TRUTH.items() if entity in DISTINCT}
PRECISION = "pairwise-precision"
n = len(DRAWN)


def columns(entity, cluster=CLUSTER):
    """Step 1: common, true and predicted links of an entity, by pieces."""
    own = ENTITY == entity
    size, links = own.sum(), np.zeros(3)
    for k in np.unique(cluster[own]):
        piece, m = (own & (cluster == k)).sum(), (cluster == k).sum()
        links += [piece * (piece - 1) / 2, piece * (size - 1) / 2, piece * (m - 1) / 2]
    return links


def counted(entities, cluster=CLUSTER):
    sizes = np.array([(ENTITY == e).sum() for e in entities])
    return np.array([columns(e, cluster) for e in entities]), sizes


Y, SIZE = counted(DRAWN)


def covariance(z, theta):
    """Step 6."""
    return theta * len(z) / (len(z) - 1) * (z - z.mean(axis=0)).T @ (z - z.mean(axis=0))


def slopes(total):
    """First derivatives of precision by common, true and predicted links."""
    return np.array([1 / total[2], 0, -total[0] / total[2] ** 2])


def estimated(z, V):
    """Steps 5, 7 and 9: estimate, standard error, degrees of freedom, effective number of draws."""
    common, _, predicted = z.sum(axis=0)
    H = np.zeros((3, 3))
    H[0, 2] = H[2, 0] = -1 / predicted**2
    H[2, 2] = 2 * common / predicted**3
    J = slopes(z.sum(axis=0))
    a = z[:, 2]
    effective = a.sum() ** 2 / (a**2).sum()
    value = common / predicted - (H * V).sum() / 2
    return value, np.sqrt(J @ V @ J), effective * (len(z) - 1) / len(z), effective


def default_interval(z, V, unseen, r, third):
    """Step 10; `third`: third moments of multipliers of draws."""
    value, se, df, _ = estimated(z, V)
    skewness = np.sum(third * (z @ slopes(z.sum(axis=0))) ** 3) / se**2
    return quantiles(value, se**2, df, *distances(z, value), count_against(z, unseen, r), skewness)


def count_against(z, unseen, r):
    """Step 10: the draws against which errors count that no draw has shown."""
    a = z[:, 2]
    return (unseen * a).sum() * a.sum() / (unseen * a**2 / r).sum()


def distances(z, value):
    """Step 10, move 1."""
    sizes = np.unique(CLUSTER, return_counts=True)[1]
    s = round((sizes**2).sum() / sizes.sum())
    pairs = s * (s - 1) / 2
    # the right singleton has no link
    imagined = np.array([[pairs] * 3, [0, pairs, pairs], [0, 0, (s - 1) / 2]])
    moved = imagined @ slopes(z.sum(axis=0)) * z[:, 2].sum() / imagined[:, 2]
    return min(max(moved.max(), 0), 1 - value), min(max(-moved.min(), 0), value)


def quantiles(value, variance, df, u, d, effective, skewness=0.0, level=0.95):
    """Step 10, moves 2 to 5."""
    epsilon = ((u - d) / (u + d)) ** 2 / 2 / effective
    x = value + epsilon / (1 + 2 * epsilon) * (u - d)
    v = (variance + epsilon / effective * (u**2 + d**2)) / (1 + 2 * epsilon) ** 2
    ends = []
    for p in ((1 - level) / 2, (1 + level) / 2):
        wider = v * (stats.t.ppf(p, df) / stats.norm.ppf(p)) ** 2
        size = x * (1 - x) / wider
        ends.append(stats.beta.ppf(p, size * x, size * (1 - x)))
    beta = (1 - 2 * x) * v / (x * (1 - x))
    beyond = max(abs(skewness) - abs(beta), 0) if skewness * beta > 0 else abs(skewness)
    k = (1 + 2 * stats.norm.ppf((1 + level) / 2) ** 2) / 6
    return [ends[0] - k * beyond * (skewness < 0), ends[1] + k * beyond * (skewness > 0)]


def agrees(found, z, V, unseen, r, third):
    value, se, df, _ = estimated(z, V)
    np.testing.assert_allclose([found.mean[0], found.sd[0], found.df[0]], [value, se, df], rtol=1e-10)
    matches(found, default_interval(z, V, unseen, r, third))


def matches(found, ends, rtol=1e-10):
    """The interval moves with its estimate into the certain ends, which test_settled has by enumeration."""
    (low, high), x = found.unseen.certain[0], found.mean[0]
    wanted = np.clip(np.array(ends) + np.clip(x, low, high) - x, low, high)
    np.testing.assert_allclose(found.interval()[0], wanted, rtol=rtol)


@pytest.mark.parametrize(("design", "weight", "theta"), [
    (eb.UniformRecords(draws=DRAWN, repeats=True), N / (n * SIZE), 1.0),
    (eb.UniformRecords(draws=DRAWN, population=N, repeats=True), N / (n * SIZE), 1 - n / N),
    (eb.UniformClusters(draws=DRAWN), np.full(n, 1 / n), 1.0),
    (eb.design.BySize(np.sqrt, draws=DRAWN), 1 / np.sqrt(SIZE), 1.0),
])  # fmt: skip
def test_estimates_and_default_intervals(design, weight, theta):
    z = weight[:, None] * Y
    found = eb.estimate(PREDICTION, LABELS, design, PRECISION)
    agrees(found, z, covariance(z, theta), theta, 1 / theta, theta * (2 * theta - 1))


@pytest.mark.parametrize("population", [None, N])
def test_each_entity_counts_once(population):
    y, size = counted(DISTINCT)

    def miss(s):
        return (1 - s / N) ** n if population is None else comb(N - s, n) / comb(N, n)

    missed = np.array([miss(int(s)) for s in size])
    both = np.array([[1 - miss(int(s)) - miss(int(t)) + miss(int(s + t)) for s in size] for t in size])
    found = 1 - missed
    np.fill_diagonal(both, found)
    z = y / found[:, None]
    V = z.T @ ((both - np.outer(found, found)) / both) @ z
    designs = [eb.UniformRecords(DRAWN, population)] + [eb.DistinctEntities(n)] * (population is None)
    for design in designs:
        estimates = eb.estimate(PREDICTION, LABELS, design, PRECISION)
        agrees(estimates, z, V, missed, -np.log(missed) / found, missed * (2 * missed - 1))


@pytest.mark.parametrize("strata", [False, True])
def test_a_known_chance_for_each_unit_and_strata_have_the_correction_of_the_units(strata):
    """Step 10, where draws favour some units: the first ten distinct entities are certain to be drawn."""
    y, _ = counted(DISTINCT)
    rate = np.where(np.arange(len(y)) < 10, 1.0, 0.125)
    z = y / rate[:, None]
    if not strata:
        V = ((1 - rate)[:, None] * z).T @ z
        design = eb.design.KnownInclusion(pd.Series(rate, DISTINCT), fixed_size=False)
        with np.errstate(divide="ignore"):
            r, third = -np.log(1 - rate) / rate, (1 - rate) * (1 - 2 * rate)
            agrees(eb.estimate(PREDICTION, LABELS, design, PRECISION), z, V, 1 - rate, r, third)
        return
    few = z[10:]
    V = 0.875 * len(few) / (len(few) - 1) * (few - few.mean(axis=0)).T @ (few - few.mean(axis=0))
    design = eb.Stratified(pd.Series(rate == 1, DISTINCT), {True: 10, False: 8 * len(few)})
    found = eb.estimate(PREDICTION, LABELS, design, PRECISION)
    value, se, _, effective = estimated(z, V)
    df, unseen = effective * (len(z) - 2) / len(z), np.where(rate == 1, 0, 0.875)
    skewness = np.sum(unseen * (2 * unseen - 1) * (z @ slopes(z.sum(axis=0))) ** 3) / se**2
    against = count_against(z, unseen, 1 / 0.875)
    matches(found, quantiles(value, se**2, df, *distances(z, value), against, skewness))


SAMPLE = each_draw(eb.Sample(eb.measure(PREDICTION, LABELS), eb.UniformRecords(draws=DRAWN, population=N)))
Z = N / (n * SIZE)[:, None] * Y
LEFT = np.array([np.delete(Z, s, 0).sum(axis=0) * n / (n - 1) for s in range(n)])
LEFT = LEFT[:, 0] / LEFT[:, 2]
FULL = Z[:, 0].sum() / Z[:, 2].sum()
EFFECTS = (Z[:, 0] - FULL * Z[:, 2]) / Z[:, 2].sum()


def test_jackknife():
    """Step 8."""
    wanted = (1 - n / N) * (n - 1) / n * ((LEFT - FULL) ** 2).sum()
    np.testing.assert_allclose(eb.engine.jackknife(SAMPLE, PRECISION).sd[0], np.sqrt(wanted), rtol=1e-10)


def test_symmetric_interval():
    """Step 11."""
    x, se, df, _ = estimated(Z, covariance(Z, 1 - n / N))
    ends = x + np.array([-1, 1]) * stats.t.ppf(0.975, df) * se
    found = eb.engine.taylor(SAMPLE, PRECISION).apply(PRECISION)
    np.testing.assert_allclose(found.interval(0.95, eb.intervals.Symmetric())[0], ends, rtol=1e-10)


def test_bca():
    """Step 12."""
    found = bootstrap(SAMPLE, PRECISION, rng=1, progress=False)
    values = found.flat[:, 0]
    z0 = stats.norm.ppf((values < FULL).mean() + (values == FULL).mean() / 2)
    # a multiplier has the third moment θ(2θ - 1), and V is the one variance
    theta, e = 1 - n / N, EFFECTS
    V = theta * n / (n - 1) * ((e - e.mean()) ** 2).sum()
    A = theta * (2 * theta - 1) * (e**3).sum() / (6 * V**1.5)
    z = stats.norm.ppf([0.025, 0.975])
    at = stats.norm.cdf(z0 + (z0 + z) / (1 - A * (z0 + z)))
    np.testing.assert_allclose(found.interval()[0], np.quantile(values, at), rtol=1e-10)


def test_difference_of_two_predictions():
    """Step 14, with entities merged two by two as the second prediction."""
    merged = ENTITY // 2
    both = {"old": PREDICTION, "new": dict(enumerate(merged.tolist()))}
    other = N / (n * SIZE)[:, None] * counted(DRAWN, merged)[0]
    e = Z @ slopes(Z.sum(axis=0)) - other @ slopes(other.sum(axis=0))
    wanted = np.sqrt(n / (n - 1) * ((e - e.mean()) ** 2).sum())
    design = eb.UniformRecords(draws=DRAWN, repeats=True)
    found = eb.compare(both, LABELS, design, PRECISION).differences()
    np.testing.assert_allclose(found["se"], wanted, rtol=1e-10)


@pytest.mark.parametrize("design", [eb.UniformRecords(), eb.UniformClusters()])
def test_variance_of_one_draw(design):
    """Step 23, from a census."""
    y, size = counted(np.unique(ENTITY))
    a = size.astype(float) if isinstance(design, eb.UniformRecords) else np.ones(len(size))
    e = y @ slopes(y.sum(axis=0))
    census = eb.Sample(eb.measure(PREDICTION, TRUTH), eb.UniformClusters(population=len(size)))
    found = forecast(census, PRECISION, {"planned": design}).designs["planned"].variance[0]
    np.testing.assert_allclose(found, a.sum() * (e**2 / a).sum() - e.sum() ** 2, rtol=1e-10)


def grouped(entity, group):
    """Step 28: columns of the records of a group, in pieces of a whole entity."""
    own = ENTITY == entity
    size, links = own.sum(), np.zeros(3)
    for k in np.unique(CLUSTER[own]):
        piece, m = own & (CLUSTER == k), (CLUSTER == k).sum()
        share, there = (piece & group).sum() / piece.sum(), piece.sum()
        links += share * np.array([there * (there - 1) / 2, there * (size - 1) / 2, there * (m - 1) / 2])
    return links


def test_groups():
    """Step 28."""
    group = RNG.random(N) < 0.4
    country = {i: "in" if there else "out" for i, there in enumerate(group)}
    z = N / (n * SIZE)[:, None] * np.array([grouped(e, group) for e in DRAWN])
    value, se, df, effective = estimated(z, covariance(z, 1.0))
    sample = each_draw(eb.Sample(eb.measure(PREDICTION, LABELS), eb.UniformRecords(draws=DRAWN)))
    found = eb.by_domain(sample, country, PRECISION, prediction=PREDICTION).table().iloc[0]
    wanted = [value, se, df, effective]
    np.testing.assert_allclose(found[["estimate", "se", "df", "n_eff"]].astype(float), wanted, rtol=1e-10)


def by_second(entity, second):
    """Step 29: columns of the records of an entity, with a second clustering as the truth."""
    links = np.zeros(3)
    for i in np.flatnonzero(ENTITY == entity):
        one, other = second == second[i], CLUSTER == CLUSTER[i]
        links += [((one & other).sum() - 1) / 2, (one.sum() - 1) / 2, (other.sum() - 1) / 2]
    return links


def effects(z):
    """Step 7: effects of the draws less their mean."""
    e = z @ slopes(z.sum(axis=0))
    return e - e.mean()


def test_a_second_clustering():
    """Step 29, for second clusterings with weight 1."""
    z = N / (n * SIZE)[:, None] * Y
    value, _, df, effective = estimated(z, covariance(z, 1.0))
    u, d = distances(z, value)
    checked, design = 0, eb.UniformRecords(draws=DRAWN)
    sample = each_draw(eb.Sample(eb.measure(PREDICTION, LABELS), design))
    apart = 0
    for seed in (0, 7, 12, 13, 17, 21):
        alike = np.random.default_rng(seed).random(120) < 0.25
        second = np.where(alike[ENTITY], 10_000 + CLUSTER, ENTITY)
        if seed % 2:  # two clusters that no draw touches, and that share predicted clusters
            away = np.flatnonzero(~np.isin(ENTITY, DRAWN) & ~np.isin(second, second[np.isin(ENTITY, DRAWN)]))
            far = away[np.argsort(CLUSTER[away], kind="stable")][:60]
            second[far] = 20_000 + np.arange(60) % 2
        counted_by = eb.auxiliary.Second.of(PREDICTION, LABELS, dict(enumerate(second.tolist())))
        found = eb.auxiliary.Assisted(counted_by)(sample, [eb.metrics.pairwise_precision])
        other = N / (n * SIZE)[:, None] * np.array([by_second(e, second) for e in DRAWN])
        of_truth, of_second = effects(z), effects(other)
        left = of_truth - of_second
        if found.weights[0] < 1 or not left.any():
            continue
        variance = n / (n - 1) * (left**2).sum()
        weight, links = N / (n * SIZE), N / (n * SIZE) * Y[:, 2]
        h = max(1 / n, (weight * links).sum() / (weight.sum() * links.sum()))
        r = np.sqrt(n / (n - 1)) * of_truth
        typical = np.sqrt((r**4).sum() / (r**2).sum() + 3 / n * (r**2).sum())
        moves = np.minimum(h * np.array([d + u, u + d]), typical)
        p = (moves**2).sum() / 2
        values = counted_by.reference(eb.metrics.pairwise_precision, counted_by.position(sample.units)).values
        likely = values[0]  # the weight is 1: all unreached clusters are as they are
        below, above = likely - min(values), max(values) - likely
        delta, apart = below + above, apart + (below != above)
        mean = value + likely - estimated(other, covariance(other, 1.0))[0]
        wanted = [mean, np.sqrt(variance + p + delta**2 / 12), df]
        np.testing.assert_allclose([found.mean[0], found.uncut_sd[0], found.df[0]], wanted, rtol=1e-8)
        third = np.sqrt(n / (n - 1)) ** 3 * (left**3).sum()
        g = np.maximum(np.array([-third, third]) + moves**3 / 2, 0) / (variance + p)
        further = (1 + 2 * stats.norm.ppf(0.975) ** 2) / 6 * g
        share = np.sqrt((left**2).sum() / (of_truth**2).sum())
        ends = [
            quantiles(mean + shift, variance + p, df, share * u, share * d, effective)
            for shift in (-below - further[0], above + further[1])
        ]
        matches(found, [ends[0][0], min(ends[1][1], 1)], 1e-7)
        checked += 1
    assert checked > 2 and apart
