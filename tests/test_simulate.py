"""Size laws against enumerated probabilities, mechanisms against their exact expectations. Seeds are fixed."""

from collections import Counter
from itertools import combinations
from math import comb, erf, exp, gamma, log, prod, sqrt

import numpy as np
import oracle
import pandas as pd
import pytest
from populations import Homonyms, NegativeBinomial, PitmanYor, RareErrors, SizeDependent
from scipy.stats import chisquare

import erbayes as eb
from erbayes import metrics as m
from erbayes.study import populations as sim

SIZES = [1, 1, 1, 2, 5, 40]


def lognormal_pmf(s, mu, sigma):
    below = [0.5 * (1 + erf((log(x) - mu) / sigma / sqrt(2))) if x else 0.0 for x in (s - 1, s)]
    return below[1] - below[0]


def negative_binomial_pmf(s, mean, alpha):
    p = alpha / (alpha + mean)
    return gamma(s + alpha) / gamma(alpha) / gamma(s + 1) * p**alpha * (1 - p) ** s / (1 - p**alpha)


INDEPENDENT = {
    "zeta": (sim.Zeta(3.0), lambda s: s**-3.0 / 1.2020569031595942),
    "zeta to 6": (sim.Zeta(1.0, largest=6), lambda s: 1 / s / 2.45 if s <= 6 else 0.0),
    "log-normal": (sim.LogNormal(0.7, 0.9), lambda s: lognormal_pmf(s, 0.7, 0.9)),
    "negative binomial": (NegativeBinomial(1.5, 0.4), lambda s: negative_binomial_pmf(s, 1.5, 0.4)),
    "empirical": (sim.Empirical(SIZES), lambda s: SIZES.count(s) / len(SIZES)),
}
LAWS = [law for law, _ in INDEPENDENT.values()] + [sim.Zeta(1.1), sim.Zeta(0.0, largest=100)]
LAWS += [sim.LogNormal(800.0, 900.0), NegativeBinomial(1e-3, 2.0), PitmanYor(3.0), PitmanYor(3.0, 0.5)]
LAWS += [PitmanYor(-0.4, 0.6), PitmanYor(1e6, 0.1)]
MECHANISMS = [
    sim.Misattribution(0.2), sim.Splits(0.5), sim.Merges(0.3), Homonyms(2, 5), Homonyms(2, 5, 0.5),
    SizeDependent(-2.0, 0.5), RareErrors(4), sim.Chain((sim.Splits(0.5), sim.Merges(0.3))),
]  # fmt: skip
PERFECT = [
    sim.Misattribution(0.0), sim.Splits(0.0), sim.Merges(0.0), Homonyms(0, 5), Homonyms(2, 5, 0.0),
    SizeDependent(-np.inf, 0.0), RareErrors(0), sim.Chain(()),
]  # fmt: skip
REFINE = [sim.Splits(0.5), SizeDependent(-1.0, 0.5)]
COARSEN = [sim.Merges(0.5), Homonyms(3, 4), RareErrors(6)]


def rng(seed=1):
    return np.random.default_rng(seed)


def codes_of(sizes):
    return np.repeat(np.arange(len(sizes)), sizes)


def links(codes):
    n = np.unique(codes, return_counts=True)[1]
    return int((n * (n - 1) // 2).sum())


def common_links(a, b):
    return links(a * (b.max() + 1) + b)


def likely(observed, expected):
    """Chi-square, classes of less than 5 expected put together."""
    observed, expected = np.asarray(observed, float), np.asarray(expected, float)
    rare = expected < 5
    if rare.any():
        observed = np.append(observed[~rare], observed[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    kept = expected > 0
    assert observed[~kept].sum() == 0
    assert chisquare(observed[kept], expected[kept], sum_check=False).pvalue > 0.001


def near(draws, expected):
    """The mean of independent draws is within 4 standard errors."""
    draws = np.asarray(draws, float)
    assert abs(draws.mean() - expected) < 4 * draws.std(ddof=1) / sqrt(len(draws))


# Size laws
@pytest.mark.parametrize("law", LAWS, ids=repr)
@pytest.mark.parametrize("records", [1, 2, 7, 5000])
def test_sizes_fill_the_population_exactly(law, records):
    sizes = law.draw(records, rng())
    assert sizes.dtype == np.int64 and sizes.sum() == records and sizes.min() >= 1
    np.testing.assert_array_equal(sizes, law.draw(records, rng()))


@pytest.mark.parametrize("name", INDEPENDENT)
def test_independent_sizes_follow_their_law(name):
    law, pmf = INDEPENDENT[name]
    first = law.draw(200_000, rng())[:15_000]
    assert len(first) == 15_000
    top = 60
    expected = np.array([pmf(s) for s in range(1, top)])
    observed = np.bincount(np.minimum(first, top), minlength=top + 1)[1:]
    likely(observed, 15_000 * np.append(expected, 1 - expected.sum()))


@pytest.mark.slow
@pytest.mark.parametrize("name", INDEPENDENT)
def test_truncated_populations_follow_the_law(name):
    law, pmf = INDEPENDENT[name]
    p1, p2 = pmf(1), pmf(2)
    expected = {(3,): 1 - p1 - p2, (2, 1): p2, (1, 2): p1 * (1 - p1), (1, 1, 1): p1 * p1}
    source = rng()
    seen = Counter(tuple(law.draw(3, source).tolist()) for _ in range(3000))
    assert seen.keys() <= expected.keys()
    likely([seen[k] for k in expected], [3000 * p for p in expected.values()])


def eppf(sizes, theta, sigma):
    """Pitman (2006), theorem 3.2."""
    n, k = sum(sizes), len(sizes)
    tables = prod(theta + i * sigma for i in range(1, k))
    joins = prod(prod(j - sigma for j in range(1, s)) for s in sizes)
    return tables * joins / prod(theta + i for i in range(1, n))


@pytest.mark.parametrize(
    "theta, sigma", [(1.0, 0.0), (8.0, 0.0), (0.0, 0.6), (0.7, 0.3), (-0.3, 0.5), (6.0, 0.9)]
)
def test_pitman_yor_has_its_partition_probabilities(theta, sigma):
    expected = Counter()
    for p in oracle.partitions(5):
        sizes = tuple(Counter(p).values())
        expected[sizes] += eppf(sizes, theta, sigma)
    assert sum(expected.values()) == pytest.approx(1, rel=1e-12)
    law, source = PitmanYor(theta, sigma), rng()
    seen = Counter(tuple(law.draw(5, source).tolist()) for _ in range(4000))
    assert seen.keys() <= expected.keys()
    likely([seen[k] for k in expected], [4000 * p for p in expected.values()])


@pytest.mark.parametrize("theta, sigma", [(20.0, 0.0), (2.0, 0.5), (-0.2, 0.7)])
def test_pitman_yor_number_and_concentration(theta, sigma):
    n, tables = 300, 1.0
    for i in range(1, n):
        tables += (theta + sigma * tables) / (theta + i)
    source = rng()
    drawn = [PitmanYor(theta, sigma).draw(n, source) for _ in range(1500)]
    near([len(s) for s in drawn], tables)
    near([(s * (s - 1)).sum() for s in drawn], n * (n - 1) * (1 - sigma) / (1 + theta))


def test_population_lists_entities_side_by_side():
    law = sim.Zeta(2.2)
    true = sim.population(law, 500, rng())
    sizes = law.draw(500, rng())
    assert true.index.equals(pd.RangeIndex(500))
    np.testing.assert_array_equal(true, codes_of(sizes))


def test_empirical_keeps_a_copy():
    given = np.array([3])
    law = sim.Empirical(given)
    given[0] = 9
    assert law.draw(4, rng()).tolist() == [3, 1]


# Mechanisms
TRUE = codes_of(sim.Zeta(2.0, largest=30).draw(2000, rng(7)))


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_mechanisms_are_reproducible_and_leave_their_input_alone(mechanism):
    before = TRUE.copy()
    pred = mechanism.apply(TRUE, rng())
    np.testing.assert_array_equal(TRUE, before)
    assert not np.shares_memory(pred, TRUE) and pred.dtype == np.int64
    np.testing.assert_array_equal(np.unique(pred), np.arange(pred.max() + 1))
    np.testing.assert_array_equal(pred, mechanism.apply(TRUE, rng()))
    assert (pred != mechanism.apply(TRUE, rng(2))).any()
    assert common_links(TRUE, pred) < max(links(TRUE), links(pred))


@pytest.mark.parametrize("mechanism", PERFECT, ids=repr)
def test_without_errors_the_prediction_is_perfect(mechanism):
    pred = mechanism.apply(TRUE, rng())
    assert links(pred) == links(TRUE) == common_links(TRUE, pred) and not np.shares_memory(pred, TRUE)


@pytest.mark.parametrize("mechanism", [*REFINE, *COARSEN], ids=repr)
def test_splits_never_merge_and_merges_never_split(mechanism):
    pred = mechanism.apply(TRUE, rng())
    fewer, more = (pred, TRUE) if mechanism in REFINE else (TRUE, pred)
    assert common_links(TRUE, pred) == links(fewer) < links(more)


@pytest.mark.parametrize("mechanism", [*MECHANISMS, *PERFECT], ids=repr)
def test_codes_must_be_compact(mechanism):
    gap = np.concatenate([TRUE, [TRUE.max() + 3]])
    with pytest.raises(eb.DataError, match="0 to K - 1; 2 are not used: "):
        mechanism.apply(gap, rng())
    with pytest.raises(eb.DataError, match="0 to K - 1; 2 of 3 are out of range"):
        mechanism.apply(np.array([0, -1, 3]), rng())
    with pytest.raises(eb.DataError, match="no records"):
        mechanism.apply(np.array([], dtype=np.int64), rng())


def test_misattribution_expectations():
    """Equal sizes s: a picked record is in any given cluster with probability s/N."""
    K, s, k = 30, 4, 24
    N, true = K * s, codes_of([s] * K)
    intact = (N - k) * (N - k - 1) / (N * (N - 1))
    source = rng()
    drawn = [sim.Misattribution(k / N).apply(true, source) for _ in range(1500)]
    true_links = K * comb(s, 2)
    kept = true_links * (intact + (1 - intact) * s / N)
    wrong = (comb(N, 2) - true_links) * (1 - intact) * s / N
    near([common_links(true, p) for p in drawn], kept)
    near([links(p) for p in drawn], kept + wrong)


def test_misattribution_picks_records_and_not_entities():
    true = codes_of([900, *[1] * 100])
    pred = sim.Misattribution(0.5).apply(true, rng())
    kept = np.unique(true[:900] * 10**6 + pred[:900], return_counts=True)[1].max()
    assert kept == pytest.approx(900 * (0.5 + 0.5 * 0.9), abs=40)


def test_a_split_has_a_uniform_cut_of_random_records():
    true = codes_of([4] * 9000)
    pred = sim.Splits(1.0).apply(true, rng()).reshape(-1, 4)
    seen = Counter(tuple((row == row[0]).tolist()) for row in pred)
    alone = {tuple(j != i if i else j == 0 for j in range(4)): 1 / 6 for i in range(4)}
    halves = {tuple(j in (0, i) for j in range(4)): 1 / 9 for i in (1, 2, 3)}
    expected = alone | halves
    assert seen.keys() == expected.keys()
    likely([seen[k] for k in expected], [9000 * p for p in expected.values()])


def test_splits_expected_recall():
    sizes = np.bincount(TRUE)
    source = rng()
    drawn = [common_links(TRUE, sim.Splits(0.3).apply(TRUE, source)) for _ in range(400)]
    large = sizes[sizes > 1]
    near(drawn, links(TRUE) - 0.3 * (large * (large + 1) / 6).sum())


def test_one_merge_joins_any_two():
    source = rng()
    seen = Counter()
    for _ in range(1200):
        pred = sim.Merges(0.25).apply(np.arange(4), source)
        assert pred.max() == 2
        seen[next(p for p in combinations(range(4), 2) if pred[p[0]] == pred[p[1]])] += 1
    likely([seen[p] for p in combinations(range(4), 2)], [200] * 6)


def test_all_entities_merge_at_rate_1():
    sizes = np.bincount(sim.Merges(1.0).apply(np.arange(1000), rng()))
    assert sizes.min() >= 2
    assert sim.Merges(1.0).apply(np.zeros(3, dtype=np.int64), rng()).tolist() == [0, 0, 0]


@pytest.mark.slow
def test_merges_expected_precision_at_a_low_rate():
    sizes = np.bincount(TRUE)
    K = len(sizes)
    source = rng()
    drawn = [links(sim.Merges(1 / K).apply(TRUE, source)) for _ in range(1500)]
    near(drawn, links(TRUE) + (len(TRUE) ** 2 - (sizes**2).sum()) / (K * (K - 1)))


def test_homonyms_are_lumps_of_whole_entities():
    pred = Homonyms(3, 50).apply(TRUE, rng())
    entities = pd.Series(TRUE).groupby(pred).nunique()
    assert sorted(entities[entities > 1]) == [50, 50, 50] and pred.max() + 1 == TRUE.max() + 1 - 3 * 49


def test_homonyms_with_a_share_keep_links_on_both_sides():
    true = codes_of([3] * 40)
    source = rng()
    kept = [common_links(true, Homonyms(2, 20, 0.3).apply(true, source)) for _ in range(1000)]
    near(kept, 120 * (0.3**2 + 0.7**2))


def test_size_dependent_expected_links_by_size():
    sizes = [2, 5, 20]
    true = codes_of(sizes)
    source = rng()
    drawn = [SizeDependent(-2.5, 0.7).apply(true, source) for _ in range(2000)]
    for c, s in enumerate(sizes):
        p = 1 / (1 + exp(2.5 - 0.7 * log(s)))
        near([links(d[true == c]) for d in drawn], comb(s, 2) * (1 - p) ** 2)


def test_rare_errors_are_exactly_as_many():
    found = sim.simulate(sim.Zeta(2.0, largest=30), RareErrors(12), 3000, rng())
    K = len(found.units)
    assert found.value(m.cluster_recall) == pytest.approx(1 - 12 / K, rel=1e-12)
    assert found.value(m.splits) == 6 and found.value(m.pairwise_recall) == 1


def test_a_chain_applies_its_steps_in_turn():
    split, merge = sim.Splits(0.5), sim.Merges(0.3)
    source = rng()
    step = merge.apply(split.apply(TRUE, source), source)
    np.testing.assert_array_equal(sim.Chain((split, merge)).apply(TRUE, rng()), step)


# Populations
@pytest.mark.parametrize("seed", range(4))
def test_values_are_those_of_brute_force(seed):
    noise = sim.Chain((sim.Splits(0.3), sim.Misattribution(0.2), sim.Merges(0.1)))
    found = sim.simulate(sim.Zeta(1.8, largest=12), noise, 60, rng(seed))
    expected = oracle.truth(found.true.tolist(), found.pred.tolist())
    metrics = (*m.ALL, m.P_clust, m.P_rec, m.purity, m.closest_cluster_precision)
    for metric in metrics:
        assert found.value(metric) == pytest.approx(expected[metric.name], rel=1e-12, abs=1e-12), metric
    both = (expected["inverse-purity"] + expected["purity"]) / 2
    assert found.value(m.van_dongen) == pytest.approx(1 - both, rel=1e-12)


def test_the_same_seed_gives_the_same_population():
    a, b = (sim.simulate(PitmanYor(5.0, 0.3), sim.Misattribution(0.1), 400, rng(3)) for _ in range(2))
    pd.testing.assert_series_equal(a.pred, b.pred)
    pd.testing.assert_series_equal(a.true, b.true)
    assert repr(a) == repr(b)


def test_real_data_are_restricted_to_what_both_cover():
    prediction = pd.Series({"r5": "k", "r1": "a", "r2": "a", "r9": "z", "r3": "a"})
    truth = {"r1": "x", "r2": "x", "r3": "y", "r4": "y", "r5": "y"}
    given = prediction.copy()
    found = sim.Population.of(prediction, truth)
    pd.testing.assert_series_equal(prediction, given)
    assert found.dropped == 2 and found.pred.to_dict() == {"r5": "k", "r1": "a", "r2": "a", "r3": "a"}
    assert found.true.to_dict() == {"r1": "x", "r2": "x", "r3": "y", "r5": "y"}
    assert found.value(m.pairwise_precision) == pytest.approx(1 / 3)
    assert found.value(m.pairwise_recall) == pytest.approx(1 / 2)
    assert found.total(eb.columns.RECORDS) == found.units.population == 4


def test_populations_that_do_not_fit():
    with pytest.raises(eb.DataError, match=r"2 records of type int64.* share no record"):
        sim.Population.of({1: "a", 2: "a"}, {"1": "x"})
    with pytest.raises(eb.DataError, match="the 2 records of the prediction are not the 1 of the truth"):
        sim.Population(pd.Series({1: "a", 2: "a"}), pd.Series({1: "x"}))
    with pytest.raises(eb.NotIdentified, match="pairwise-precision is 0/0 in this population of 2 records"):
        sim.Population.of({1: "a", 2: "b"}, {1: "x", 2: "x"}).value(m.pairwise_precision)


@pytest.mark.parametrize("make, message", [
    (lambda: sim.Zeta(2.0, 0), "largest of Zeta must be a whole number, 1 or more, not 0"),
    (lambda: sim.LogNormal(np.inf, 1.0), "mu of LogNormal"),
    (lambda: NegativeBinomial(0.0, 1.0), "mean of NegativeBinomial"),
    (lambda: NegativeBinomial(1.0, -1.0), "dispersion of NegativeBinomial must be above 0 and finite, not -1.0"),
    (lambda: PitmanYor(1.0, 1.0), "discount of PitmanYor"),
    (lambda: PitmanYor(0.0), "strength of PitmanYor must be above -?0 and finite, not 0.0"),
    (lambda: PitmanYor(-0.5, 0.5), "strength of PitmanYor"),
    (lambda: sim.Empirical([]), "one size or more"),
    (lambda: sim.Empirical([1.0, 2.0]), "sizes must be integers, not float64"),
    (lambda: sim.Empirical([3, 0, -1]), "2 of 3 sizes are below 1, such as 0, -1"),
    (lambda: Homonyms(-1, 5), "lumps of Homonyms"),
    (lambda: Homonyms(1, 1), "size of Homonyms must be a whole number, 2 or more, not 1"),
    (lambda: Homonyms(1, 2, 1.5), "share of Homonyms"),
    (lambda: SizeDependent(float("nan"), 1.0), "base of SizeDependent"),
    (lambda: SizeDependent(0.0, np.inf), "slope of SizeDependent"),
    (lambda: RareErrors(3), "entities of RareErrors must be even, 0 or more, not 3"),
    (lambda: RareErrors(4).apply(np.arange(3), rng()), "RareErrors needs 4 entities, but there are 3"),
    (lambda: Homonyms(2, 3).apply(np.arange(5), rng()), "Homonyms needs 6 entities, but there are 5"),
])  # fmt: skip
def test_bad_parameters_say_so(make, message):
    with pytest.raises(eb.DataError, match=message):
        make()


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_a_population_needs_records(law):
    with pytest.raises(eb.DataError, match="a whole number, 1 or more, not 0"):
        sim.population(law, 0, rng())


def test_customers_are_written_in_several_ways_and_have_their_truth():
    table, same = (sim.customers(sim.Zeta(2.5, 60), 3000, rng=7) for _ in range(2))
    pd.testing.assert_frame_equal(table, same)
    assert table.index.is_unique and len(table) == 3000
    sizes = table["person"].value_counts()
    assert sizes.max() > 5 and (sizes == 1).any()
    assert table["email"].isna().mean() == pytest.approx(0.35, abs=0.03)
    ways = table[["given", "family"]].agg(" ".join, axis=1).groupby(table["person"]).nunique()
    assert (ways[sizes[sizes > 3].index] > 1).mean() > 0.5
    persons = table.groupby(["given", "family"])["person"].nunique()
    assert (persons > 1).any()  # namesakes, as frequent names are given more often, by their rank
    family = table.groupby("person")["family"].first().value_counts()
    assert family.iloc[0] == pytest.approx(len(sizes) / (1 / np.arange(1, 95)).sum(), rel=0.2)
    assert table.groupby("phone")["person"].nunique().max() == 1
    with pytest.raises(eb.DataError, match="a distribution of sizes"):
        sim.customers(3, 10)
