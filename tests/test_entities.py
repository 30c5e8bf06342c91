"""Number and mean size of entities: the formula by brute force, values by hand, and one interval in every door."""

from dataclasses import replace
from itertools import product
from math import expm1, isnan, log, log1p
from operator import mul

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import gamma, norm, t

import erbayes as eb
from erbayes.engine.closed_form import ClosedForm

BOTH = ["entities", "mean-cluster-size"]


def population(seed=0, entities=600, wrong=0.1):
    """Entities of 1 to 12 records and their clusters, from each of which some records are missing."""
    r = np.random.default_rng(seed)
    truth = pd.Series(np.repeat(np.arange(entities), np.minimum(r.zipf(2.0, entities), 12)))
    return truth, truth.where(r.random(len(truth)) >= wrong, 10_000 + truth.index)


def count_by_hand(truth, prediction, drawn, chance, once=False):
    """Estimate and 95 % limits of the number of entities, in loops over draws of entities and records.

    `chance`: of an entity of each size, up to a factor; the chance at one draw if each entity counts `once`.
    """
    N, M, draws = len(truth), prediction.nunique(), len(drawn)
    size, m = truth.value_counts(), prediction.value_counts()

    def missed(*entities):
        return max(1 - sum(chance(size[c]) for c in entities), 0) ** draws if once else 1.0

    drawn = sorted(set(drawn)) if once else drawn
    n = len(drawn)
    v = [1 / size[c] for c in drawn]
    led = [sum(1 / m[k] for k in prediction[truth == c]) / size[c] for c in drawn]
    share = [size[c] / (1 - missed(c) if once else chance(size[c])) for c in drawn]
    share = [a / sum(share) for a in share]
    kish = 1 / sum(a * a for a in share)
    # a set of units is missed with probability e^-Σrπ; without repeats in the count, r is 1
    r = [-log(missed(c)) / (1 - missed(c)) if once else 1.0 for c in drawn]
    unseen = sum(missed(c) * a for a, c in zip(share, drawn, strict=True))
    effective = unseen / sum(missed(c) * a * a / x for a, c, x in zip(share, drawn, r, strict=True))
    moves = [a * (x - y) for a, x, y in zip(share, v, led, strict=True)]
    moves = [0.0 if abs(d) < 1e-13 else d for d in moves]
    total = sum(map(abs, moves))
    moving = total**2 / sum(d * d for d in moves) if total else 0.0
    typical = sum(d * d for d in moves) / total if total else 0.0
    step = (moving * typical * unseen + 2 * 0.5 / effective) / (moving + 2)

    def covariance(x, y):
        if not once:
            return n / (n - 1) * sum(map(mul, x, y))
        found = 0.0
        for i, j in product(range(n), repeat=2):
            c, d = drawn[i], drawn[j]
            each = (1 - missed(c)) * (1 - missed(d))
            both = 1 - missed(c) if i == j else 1 - missed(c) - missed(d) + missed(c, d)
            found += (both - each) / both * x[i] * y[j]
        return found

    sides = []
    for sign in (1, -1):
        part = [max(sign * d, 0.0) for d in moves]
        own = sum(part) ** 2 / sum(d * d for d in part) if sum(part) else 0.0
        df = min(max(kish * (n - 1) / n, 1), own + 5)
        left = [d - a * sum(part) for d, a in zip(part, share, strict=True)]
        V = covariance(left, left) + step**2 / 2
        wide, mean = V * (t.ppf(0.975, df) / norm.ppf(0.975)) ** 2, sum(part) + step / 2
        low, high = (gamma.ppf(p, mean**2 / wide, scale=wide / mean) for p in (0.025, 0.975))
        sides.append((sum(part), max(sum(part) - low, 0), max(high - sum(part), 0), V, left))
    (G, g_down, g_up, V_g, z_g), (L, l_down, l_up, V_l, z_l) = sides
    r = covariance(z_g, z_l) / (V_g * V_l) ** 0.5
    x = M / N + G - L
    lower = x - (g_down**2 + l_up**2 - 2 * r * g_down * l_up) ** 0.5
    upper = x + (g_up**2 + l_down**2 - 2 * r * g_up * l_down) ** 0.5
    # no fewer entities than are labelled, and no more than there are records beside theirs
    labelled, records = len(set(drawn)), sum(size[c] for c in set(drawn))
    return [min(max(N * end, labelled), N - records + labelled) for end in (x, lower, upper)]


@pytest.mark.every(3)
@pytest.mark.parametrize("n", [3, 8, 25, 60])
@pytest.mark.parametrize("wrong", [0.0, 0.02, 0.3, 1.0])
def test_counts_of_drawn_records_are_those_of_loops(n, wrong):
    once = (n in (3, 25)) == (wrong in (0.0, 0.3))
    truth, prediction = population(n, wrong=wrong)
    drawn = truth.iloc[np.random.default_rng(1).integers(0, len(truth), n)].tolist()
    K, low, high = count_by_hand(truth, prediction, drawn, lambda size: size / len(truth), once)
    design = eb.UniformRecords(drawn, repeats=not once)
    found = eb.estimate(prediction, truth[truth.isin(drawn)], design, BOTH)
    assert_allclose(found.mean, [K, len(truth) / K], rtol=1e-9)
    assert_allclose(found.interval()[0], [low, high], rtol=1e-8)
    assert_allclose(found.interval()[1], [len(truth) / high, len(truth) / low], rtol=1e-8)


def test_counts_of_entities_with_known_chances_are_those_of_loops():
    truth, prediction = population(3)
    drawn = np.random.default_rng(2).choice(truth.nunique(), 80).tolist()
    roots = (lambda size: size**0.5, eb.design.BySize(np.sqrt, drawn))
    for chance, design in ((lambda size: 1.0, eb.UniformClusters(draws=drawn)), roots):
        found = eb.estimate(prediction, truth[truth.isin(drawn)], design, BOTH)
        by_hand = count_by_hand(truth, prediction, drawn, chance)
        assert_allclose([found.mean[0], *found.interval()[0]], by_hand, rtol=1e-8)


TWO_FILES = pd.Series(np.arange(4000) // 2)
"""2,000 entities with a record in each of two files."""
DRAWN = TWO_FILES.iloc[np.random.default_rng(0).integers(0, 4000, 100)].tolist()
SAMPLED = (TWO_FILES[TWO_FILES.isin(DRAWN)], eb.UniformRecords(DRAWN))


def test_entities_of_one_size_have_the_rule_of_three():
    """Half an entity more or less for 3.2 of 100 records: 2,000 ± 4,000 x .032/2."""
    labels, design = SAMPLED
    assert len(set(DRAWN)) == 98
    # 98 entities that are seen with chance π in 100 draws count as 98 x -log(1 - π)/π
    missed = 100 * log1p(-1 / 2000)
    for counted, as_draws in ((replace(design, repeats=True), 100), (design, 98 * missed / expm1(missed))):
        found, half = eb.estimate(TWO_FILES, labels, counted, BOTH), 64.2 * 100 / as_draws
        assert_allclose(found.interval()[0], [2000 - half, 2000 + half], atol=0.1)
        assert_allclose(found.interval()[1], [4000 / (2000 + half), 4000 / (2000 - half)], rtol=1e-4)


def test_every_door_has_the_same_interval():
    columns = ["estimate", "lower", "upper"]
    for truth, prediction in ((TWO_FILES, TWO_FILES), population(5)):
        drawn = truth.iloc[np.random.default_rng(3).integers(0, len(truth), 90)].tolist()
        labels, design = truth[truth.isin(drawn)], eb.UniformRecords(drawn)
        found = eb.estimate(prediction, labels, design, BOTH).table()[columns]
        impact = eb.impact(prediction, labels, design, ["count", "gini", "mean(size)"])
        numbers = impact.table().loc[["count", "mean(size)"]]
        assert_array_equal(numbers[columns], found)
        assert_array_equal(numbers["predicted"], [prediction.nunique(), len(truth) / prediction.nunique()])
        sample = eb.Sample(eb.measure(prediction, labels), design)
        beside = eb.side_by_side(sample, BOTH, engines=["closed form"]).table()
        assert_array_equal(beside[columns], found)
        resampled = eb.engine.bootstrap(sample, BOTH, replicates=9, rng=1, progress=False)  # of totals alone
        assert_array_equal(resampled.table()[columns], found)
        assert [isnan(weight) for weight in impact.weights] == [True, False, True]
        assert "the clusters say" in impact.sentences()[0] and "do not tell" not in impact.sentences()[0]


def test_the_number_times_the_mean_size_is_that_of_the_records_in_draws_too():
    truth, prediction = population(1)
    drawn = truth.iloc[:60].tolist()
    found = eb.estimate(prediction, truth[truth.isin(drawn)], eb.UniformRecords(drawn), BOTH)
    for level in (0.5, 0.8, 0.99):
        assert_allclose(found.interval(level)[0] * found.interval(level)[1, ::-1], len(truth))
    draws = found.as_draws(200, rng=0)
    assert_allclose(draws.values.prod(axis=-1), len(truth))
    assert_array_equal(draws.estimate, found.estimate)


def test_a_known_cluster_that_no_draw_shows_counts_with_its_size():
    """Draws of entities seldom meet one of 200 records, and labelled entities all have two."""
    truth = pd.Series([*np.repeat(np.arange(4900), 2), *[5000] * 200])
    for prediction in (truth, truth.where(truth.index % 100 > 0, 6000 + truth.index)):
        found = eb.estimate(prediction, truth[truth < 300], eb.UniformClusters(), "entities")
        low, high = found.interval()[0]
        assert low < 4901 < high < 5000


def test_what_is_known_and_what_is_not_stays_as_it_is():
    truth, prediction = population(2)
    census = eb.estimate(prediction, truth, eb.UniformClusters(truth.nunique()), BOTH)
    assert_allclose(census.interval()[0], truth.nunique())
    sampled = sorted(prediction.unique())[:90]
    touched = truth[truth.isin(truth[prediction.isin(sampled)])]
    units = eb.measure_predicted(prediction, touched, sampled)
    more = pd.concat([truth[truth < 40], pd.Series({-1: 0})])
    unknown = eb.measure(prediction, more, missing=eb.Missing.TOGETHER)
    for sample, metrics in (
        (eb.Sample(units, eb.UniformClusters(prediction.nunique())), BOTH),
        (eb.Sample(unknown, eb.UniformClusters()), BOTH[1:]),
    ):
        plain = eb.engine.taylor(sample, metrics).apply(metrics)
        found = ClosedForm()(sample, eb.metrics.resolve_metrics(metrics))
        assert_array_equal(found.interval(), plain.interval())


def test_units_that_were_not_drawn_are_not_known():
    truth, prediction = population(3)
    units, design = eb.measure(prediction, truth), eb.UniformClusters()
    sample = eb.Sample(units, design, design.expand_draws(units, np.array([0, 1, 5])))
    low, high = ClosedForm()(sample, [eb.metrics.entities]).interval()[0]
    assert low < truth.nunique() < high


def test_domains_have_numbers_of_their_own():
    truth, prediction = population(4)
    drawn = truth.iloc[np.random.default_rng(5).integers(0, len(truth), 120)].tolist()
    table = pd.DataFrame({"record": truth.index, "country": np.where(truth % 2, "FR", "US")})
    given = {"attributes": table, "by": "country"}
    found = eb.impact(prediction, truth[truth.isin(drawn)], eb.UniformRecords(drawn), **given)
    assert not np.isnan(found.weights).any() and not found.fit.moves.there.any()


class TestKnownNumberOfClusters:
    """Numbers of entities follow the known number of predicted clusters, in the front door."""

    @staticmethod
    def world(seed=0, n=300, entities=1500):
        r = np.random.default_rng(seed)
        size = np.minimum(r.zipf(2.2, entities), 40)
        truth = pd.Series(np.repeat(np.arange(entities), size))
        split = r.random(len(truth)) < 0.15
        prediction = pd.Series(pd.factorize(np.where(split, truth + 10_000, truth))[0])
        drawn = truth.iloc[r.integers(0, len(truth), n)].tolist()
        return truth, prediction, truth[truth.isin(drawn)], drawn

    def test_covariances_between_both_kinds_are_those_of_repeated_samples(self):
        truth, prediction, _, _ = self.world()
        units, metrics = eb.measure(prediction, truth), [eb.metrics.pairwise_recall, eb.metrics.entities]
        drawn = np.random.default_rng(1).integers(0, len(truth), (300, 300))
        many = eb.Sample.many(units, eb.UniformRecords(), units.ids.get_indexer(truth)[drawn])
        found = ClosedForm()(many, metrics)
        said = found.cov[:, 0, 1] / found.sd.prod(axis=1)
        assert said.mean() == pytest.approx(np.corrcoef(found.mean.T)[0, 1], abs=0.15)

    def test_a_census_stays_as_it_is(self):
        truth, prediction, _, _ = self.world(entities=60)
        whole = eb.UniformClusters(truth.nunique())
        assert eb.estimate(prediction, truth, whole, "entities").sd[0] == 0

    def test_weights_up_to_a_factor_and_unresolved_draws(self):
        _, prediction, labels, drawn = self.world()
        for design in (
            eb.KnownWeights(dict(zip(drawn, 1 / labels.value_counts().loc[drawn], strict=True)), drawn),
            eb.design.Responding(eb.UniformRecords(drawn), [True] * len(drawn) + [False] * 9),
        ):
            found = eb.estimate(prediction, labels, design, ["entities", "pairwise-recall"])
            sample = eb.Sample(eb.measure(prediction, labels), design)
            plain = eb.engine.taylor(sample, "entities").apply("entities")
            assert found.sd[0] < 0.6 * plain.sd[0] and abs(found.mean[0] - plain.mean[0]) < 4 * plain.sd[0]
