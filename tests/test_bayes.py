"""The Bayesian engine: plain loops, direct simulation, the census, and simulation-based calibration."""

import re
import warnings
from functools import cache, partial
from itertools import product
from types import SimpleNamespace
from typing import get_args

import numpy as np
import oracle
import pandas as pd
import pymc as pm
import pytest
from checks import raises
from numpy.testing import assert_allclose, assert_array_equal
from own_families import BodyAndTail, NegativeBinomial
from pytensor.compile.mode import Mode
from repeats import each_draw
from scipy import optimize, special, stats

import erbayes as eb
from erbayes import bayes
from erbayes import metrics as m
from erbayes.bayes.contract import LOG_FLAWLESS, SizeGrid, basis
from erbayes.bayes.data import AskedMates, Evidence, _count_unlabelled, _fit_curve, _smooth_counts
from erbayes.bayes.importance import approximated
from erbayes.bayes.model import (
    Populations,
    Sizes,
    draw_populations,
    expect_links,
    expect_unsampled,
    join_parts,
    poststratify,
)
from erbayes.bayes.programs import CompiledPart, PartDraws, Program, own_model
from erbayes.bayes.totals import depends_on_size
from erbayes.design import BySize
from erbayes.engine.named import EngineName
from erbayes.metrics.columns import COLUMNS, COMMON_LINKS, PREDICTED_LINKS, RECORDS, TRUE_LINKS
from erbayes.study.populations import Chain, LogNormal, Merges, Misattribution, Splits, simulate
from erbayes.units.units import KnownTotals

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::erbayes.bayes.NotConverged")]
PLAIN = Mode("py", None)
P, R = m.pairwise_precision, m.pairwise_recall


def rng(seed=1):
    return np.random.default_rng(seed)


NOISE, LUMPS = Misattribution(0.1), Chain((Splits(0.15), Merges(0.05)))


@cache
def world(errors=NOISE, records=4000):
    return simulate(LogNormal(1.0, 1.0), errors, records, rng())


def clusters(n, seed, pop=None):
    """A sample of n entities, each as likely."""
    pop = pop or world()
    chosen = rng(seed).choice(pop.true.nunique(), n, replace=False)
    return eb.Sample(eb.measure(pop.pred, pop.true[pop.true.isin(chosen)]), eb.UniformClusters())


def by_records(n, seed, pop=None):
    pop = pop or world()
    drawn = pop.true.iloc[rng(seed).integers(len(pop.true), size=n)].tolist()
    return eb.Sample(eb.measure(pop.pred, pop.true[pop.true.isin(drawn)]), eb.UniformRecords(draws=drawn))


def by_root(n, seed):
    """Nine of the entities are drawn again."""
    units = by_records(n, seed).units
    return eb.Sample(units, BySize(np.sqrt, draws=[*units.ids, *units.ids[:9]]))


CHANCE = {clusters: np.ones_like, by_records: np.asarray, by_root: np.sqrt}


@pytest.fixture(scope="module")
def fit():
    return bayes.fast(clusters(60, 1), draws=1000, rng=rng())


PRED = {1: "a", 2: "a", 3: "b", 4: "b", 5: "b", 6: "c", 7: "d", 8: "d", 9: "e"}
TRUE = {1: "x", 2: "x", 3: "x", 4: "y", 5: "y", 6: "z", 7: "u", 8: "v", 9: "v"}


def test_entities_of_a_sample():
    draws = ["x", "v", "x", "z", "y"]
    units = eb.measure(PRED, {r: e for r, e in TRUE.items() if e in draws})
    e = Evidence.of(eb.Sample(units, eb.UniformRecords(draws))).entities
    at = units.ids.get_indexer(["x", "y", "z", "v"])
    assert e.size[at].tolist() == [3, 2, 1, 2] and e.links[at].tolist() == [1, 1, 0, 0]
    assert e.draws[at].tolist() == [2, 1, 1, 1] and e.broken[at].tolist() == [True, False, False, True]
    assert e.several[at].tolist() == [True, True, False, True]
    # x keeps 1 of at most C2(2) = 1 links: 1 of 1 step, (1 + ½)/2; v has no step, ½
    assert e.share[at][[0, 3]].tolist() == [0.75, 0.5]


@pytest.mark.parametrize("draw", [clusters, by_records])
def test_counts_on_grids_are_the_sample(draw):
    sample = draw(80, 3)
    evidence, pop = Evidence.of(sample), world()
    d, grid = evidence.data, evidence.grid
    records = {e: set(r.index) for e, r in pop.true[pop.true.isin(sample.units.ids)].groupby(pop.true)}
    cluster = {k: set(r.index) for k, r in pop.pred.groupby(pop.pred)}
    wanted = {k: np.zeros(len(grid.size)) for k in ("drawn", "several", "intact", "broken")}
    shares = np.zeros((len(grid.size), 2))
    total = dict.fromkeys(("records", "true", "common"), 0)
    draws = pd.Series(sample.units.ids[each_draw(sample).expansion.unit]).value_counts()
    for entity, own in records.items():
        s = len(own)
        j = max(i for i in range(len(grid.lower)) if grid.lower[i] <= s)
        pieces = [len(own & cluster[k]) for k in set(pop.pred[list(own)])]
        links, intact = sum(n * (n - 1) // 2 for n in pieces), len(pieces) == 1
        wanted["drawn"][j] += draws[entity]
        wanted["several"][j] += s > 1
        wanted["intact"][j] += intact and s > 1
        wanted["broken"][j] += not intact and s > 2
        if not intact and s > 2:
            w = (links / ((s - 1) * (s - 2) / 2) * (s - 2) + 0.5) / (s - 1)
            shares[j] += [np.log(w), np.log(1 - w)]
        for key, value in zip(total, (s, s * (s - 1) / 2, links), strict=True):
            total[key] += value
    for key, value in wanted.items():
        assert_array_equal(d[key], value, err_msg=key)
    assert_allclose(d["shares"], shares, rtol=1e-10)
    assert [d[f"sampled_{k}"] for k in ("records", "true_links", "common_links")] == list(total.values())
    assert d["draws"] == d["drawn"].sum() == 80
    assert evidence.data["records"] == 4000 and evidence.predicted_links == world().total(PREDICTED_LINKS)


@pytest.mark.parametrize("draw", CHANCE)
def test_mates_are_those_of_single_records(draw):
    """Each record of a drawn entity asks one mate; weights, dispersion and what is left, record by record."""
    sample, pop = draw(80, 3), world()
    evidence = Evidence.of(sample)
    d, grid, true = evidence.data, evidence.grid, pop.true
    labelled = set(true.index[true.isin(sample.units.ids)])
    of_cluster, size = {k: list(r.index) for k, r in pop.pred.groupby(pop.pred)}, true.value_counts()

    drawn = each_draw(sample).units.size[each_draw(sample).expansion.unit].astype(float)
    total = 4000 * len(drawn) / sum(drawn / CHANCE[draw](drawn))

    def missed(s):
        return (1 - CHANCE[draw](float(s)) / total) ** len(drawn)

    asked, right = np.zeros((2, len(d["asked"])))
    for r in labelled:
        # as if the entity of r had not been drawn
        records = [x for x in of_cluster[pop.pred[r]] if x not in labelled or true[x] == true[r]]
        if (m := len(records)) > 1:
            weight = (1 - missed(m)) / (1 - missed(size[true[r]])) * missed(size[true[r]]) / m
            mates = [true[x] == true[r] for x in records if x != r]
            asked[grid.bin(np.array([m]))[0]] += weight
            right[grid.bin(np.array([m]))[0]] += weight * np.mean(mates)
    phi = evidence.mates.dispersion
    assert 0 < phi <= evidence.mates.noise + 1e-9 or phi <= 1
    assert_allclose(d["asked"] * phi, asked, rtol=1e-9)
    assert_allclose(d["right"] * phi, right, rtol=1e-9)
    links, b3, known = np.zeros(len(asked)), np.zeros(len(asked)), 0.0
    for records in of_cluster.values():
        left, m = sum(r not in labelled for r in records), len(records)
        own = pd.Series([true[r] for r in records if r in labelled]).value_counts()
        known += (own**2).sum() / m + left / m
        if left:
            links[grid.bin(np.array([left]))[0]] += left * (left - 1) / 2
            b3[grid.bin(np.array([left]))[0]] += left * (left - 1) / m
    assert_allclose(d["unlabelled_links"], links, rtol=1e-12)
    assert_allclose(d["unlabelled_b3"], b3, rtol=1e-12)
    assert d["known_b3"] == pytest.approx(known, rel=1e-12)


def test_dispersion_is_the_variance_between_entities():
    """By SciPy's search for the mode, and sums over entities; copies of mates within one are one observation."""
    g, x = rng(), np.log2(np.arange(1.0, 9))
    bins, entity = g.integers(1, 8, 300), np.repeat(np.arange(100), 3)
    w, y = g.uniform(0.2, 1, 300), np.repeat(g.random(100), 3).round()
    X = np.column_stack([np.ones(8), x - np.average(x[bins], weights=w), basis(x)])[bins]

    def loss(b):
        eta, (a, *rest) = X @ b, b
        prior = (a - 2) ** 2 / 8 + rest[0] ** 2 / 2 / 0.36 + np.sum(np.square(rest[1:])) / 2 / 0.25
        return w @ (np.logaddexp(0, eta) - y * eta) + prior

    best = optimize.minimize(loss, np.zeros(X.shape[1]), options={"gtol": 1e-8}).x
    q = special.expit(X @ best)
    assert_allclose(_fit_curve(x, bins, w, y), q, atol=1e-5)
    single, between = 0.5 + w @ (q * (1 - q)), 0.5
    for one in range(100):
        between += sum(w[i] * (y[i] - q[i]) for i in range(300) if entity[i] == one) ** 2
    sizes = np.arange(1.0, 9)[bins]
    n = 1 + y * (sizes - 1)
    units = SimpleNamespace(unit=entity, n=n, N=np.full(300, 9.0), m=sizes, cluster=np.arange(300))
    # the chances that make the weights w
    chances = iter([w * sizes / units.n, np.full(300, 0.5)])
    found = AskedMates.of(units, lambda _: next(chances), SizeGrid.up_to(8), x)
    assert found.dispersion == pytest.approx(min(between / single, 1), rel=1e-4)
    assert found.noise == pytest.approx(min((0.5 + w @ (y - q) ** 2) / single, 1), rel=1e-4)
    assert_allclose(found.weight * found.dispersion, w, rtol=1e-9)


def test_smoothing_moves_counts_and_loses_none():
    x, at, count = np.arange(0, 12, 0.25), np.array([0.1, 3.0, 7.7]), np.array([5.0, 2.0, 1.0])
    found = _smooth_counts(x, np.ones(len(x)), at, count)
    assert found.sum() == pytest.approx(8, rel=1e-12) and x[8 + np.argmax(found[8:20])] == 3.0
    far = abs(x[:, None] - at).min(axis=1) > 2.5
    assert found[far].max() < 1e-6


def sampled(entities, design, **how):
    return eb.Sample(eb.measure(PRED, {r: e for r, e in TRUE.items() if e in entities}, **how), design)


@pytest.mark.parametrize("sample, message", [
    (lambda: sampled("xyz", eb.UniformClusters(), blocks={1: 0, 2: 0, 3: 0, 4: 0, 5: 0, 6: 1}), "true entities as units"),
    (lambda: eb.Sample(eb.measure_predicted(PRED, TRUE, ["a", "b"]), eb.UniformClusters()), "true entities as units"),
    (lambda: sampled("xy", eb.KnownWeights({"x": 1, "y": 2})), "the chance of an entity is no known function of its size"),
    (lambda: sampled("xy", eb.Stratified({"x": 0, "y": 0}, {0: 5})), "the chance of an entity is no known function of its size"),
    (lambda: sampled("xy", eb.WeightedRecords(["x", "y"], [0.1, 0.2])), "the chance of an entity is no known function of its size"),
    (lambda: eb.Sample(eb.measure(PRED, {1: "x", 2: "x", 99: "x"}, missing=eb.Missing.SINGLETON), eb.UniformClusters()),
        "were kept; leave them out"),
    (lambda: eb.Sample(eb.measure(PRED, {1: "x", 2: "x", 99: "x"}, missing=eb.Missing.TOGETHER), eb.UniformClusters()),
        "were kept; leave them out"),
])  # fmt: skip
def test_samples_that_a_size_model_refuses(sample, message):
    raises(eb.NotIdentified, message, bayes.fast, sample(), draws=1000, rng=rng())


def test_omitted_records_are_no_obstacle():
    units = eb.measure(PRED, {1: "x", 2: "x", 99: "x", 4: "y", 5: "y"}, missing=eb.Missing.OMIT)
    assert Evidence.of(eb.Sample(units, eb.UniformClusters())).data["sampled_records"] == 4


@pytest.mark.parametrize(("design", "repeats"), [
    (eb.UniformRecords(["x", "y", "y"]), 1.0),
    (eb.DistinctEntities(3), 0.0),
    (eb.UniformClusters(), 1.0),
    (eb.UniformClusters(population=4), 0.0),
])  # fmt: skip
def test_whether_an_entity_can_be_drawn_again(design, repeats):
    units = eb.measure(PRED, {1: "x", 2: "x", 4: "y", 5: "y"})
    assert Evidence.of(eb.Sample(units, design)).data["repeats"] == repeats


def by_hand(J=6, draws=3, seed=1):
    g = rng(seed)
    intact = g.uniform(0.2, 0.9, (draws, J))
    kept = intact + (1 - intact) * g.uniform(0.1, 0.5, (draws, J))
    by_size = {
        "intact": 0.3 * kept,
        "kept": kept,
        "kept_square": kept**2 + (kept * (1 - kept)) * 0.4,
        "entities": g.uniform(50, 500, (draws, J)),
    }
    data = {
        "size": np.array([1.0, 2.0, 3.0, 5.0, 9.0, 30.0])[:J],
        "sampled_true_links": 70.0,
        "sampled_common_links": 50.0,
        "sampled_records": 90.0,
        "records": 6000.0,
        "selection": np.ones(J),
        "repeats": 1.0,
        "fixed_size": 1.0,
        "draws": 40,
    }
    return by_size, data


def test_links_by_plain_loops():
    by, data = by_hand()
    left = by["entities"] * 0.9
    true_links, common_links, variances = expect_links(left, by, data)
    for k in range(3):
        true, common, variance = 70.0, 50.0, 0.0
        for j, s in enumerate(data["size"]):
            M, pairs = left[k, j], s * (s - 1) / 2
            true += M * pairs
            common += M * pairs * by["kept"][k, j]
            # a sum over a Poisson number of entities has variance M E(x²)
            variance += M * pairs**2 * by["kept_square"][k, j]
        assert true_links[k] == pytest.approx(true, rel=1e-12)
        assert common_links[k] == pytest.approx(common, rel=1e-12)
        assert variances[k] == pytest.approx(min(variance / common**2, 0.25) + 1e-4, rel=1e-12)


def test_poststratified_shares_have_their_mean_and_noise():
    g, q = rng(), np.array([0.5, 0.7, 1.0, 0.9])
    data = {
        "unlabelled_links": np.array([0.0, 10.0, 40.0, 300.0]),
        "unlabelled_precision": np.array([1.0, 3.0, 8.0, 20.0]),
        "unlabelled_b3": np.array([0.0, 4.0, 9.0, 30.0]),
        "sampled_common_links": 17.0,
        "known_b3": 60.0,
        "records": 1000.0,
    }
    common, b3 = poststratify(np.tile(q, (40_000, 1)), data, g)
    mean = 17 + data["unlabelled_links"] @ q
    sd = np.sqrt(sum(data["unlabelled_links"] ** 2 * q * (1 - q) / (data["unlabelled_precision"] + 1)))
    assert common.mean() == pytest.approx(mean, abs=5 * sd / 200) and common.std() == pytest.approx(
        sd, rel=0.02
    )
    assert b3.mean() == pytest.approx(60 + data["unlabelled_b3"] @ q, abs=0.1)
    common, b3 = poststratify(np.ones((5, 4)), data, g)
    assert (common == 367).all() and (b3 == 103).all()


def test_noise_of_clusters_is_that_of_clusters_one_by_one():
    """Of c clusters of one size, all right or all wrong, shares vary as the beta distribution says."""
    g, q, sizes, counts = rng(), 0.7, np.array([8.0, 9.0]), np.array([6, 3])
    known = KnownTotals(sizes, counts.astype(float))
    data = _count_unlabelled(SizeGrid.up_to(20), known, 1.0, None)
    links = [g.binomial(c, q, 20_000) * s * (s - 1) / 2 for s, c in zip(sizes, counts, strict=True)]
    bins = SizeGrid.up_to(20).bin(sizes)
    assert bins[0] == bins[1] == np.flatnonzero(data["unlabelled_links"])[0]
    share = sum(links) / data["unlabelled_links"].sum()
    found = stats.beta(*(x * data["unlabelled_precision"][bins[0]] for x in (q, 1 - q)))
    assert found.std() == pytest.approx(share.std() * np.sqrt(0.95), rel=0.02)


@pytest.mark.parametrize("plan", ["repeats", "no repeats", "distinct"])
def test_unsampled_entities_by_brute_force(plan):
    size, M, g = np.array([1.0, 2.0, 7.0, 40.0]), np.array([60, 30, 12, 3]), rng()
    distinct, repeats = plan == "distinct", plan == "repeats"
    n, chance = (50, size) if distinct else (25, np.sqrt(size) if repeats else np.ones(4))
    every, missed = np.repeat(np.arange(4), M), np.zeros(4)
    for _ in range(4000):
        got = g.choice(len(every), n, replace=plan != "no repeats", p=chance[every] / chance[every].sum())
        missed += np.bincount(np.delete(every, np.unique(got)), minlength=4)
    data = {"selection": chance, "draws": n, "repeats": float(repeats), "fixed_size": float(not distinct)}
    data |= {"records": 324.0, "sampled_records": 190.0 if distinct else 100.0, "size": size}
    if distinct:  # which are found with their inclusion
        data["selection"] = eb.DistinctEntities(n, 324).selection(size, None)
        data["draws"] = (M - missed / 4000).sum() - 5
    found = expect_unsampled({"entities": M[None].astype(float)}, data)[0]
    if not distinct:
        assert found @ size == pytest.approx(324.0 - 100.0, rel=1e-12)
    assert_allclose(found / found.sum(), missed / missed.sum(), rtol=0.02, atol=2e-4 * distinct)


def one_by_one(by, data, left, draws, seed):
    """True and common links of populations of single entities: a Poisson number of each size, links kept of each."""
    g, J = rng(seed), len(data["size"])
    out = np.tile(np.array([data["sampled_true_links"], data["sampled_common_links"]]), (draws, 1))
    for j in range(J):
        s, whole, y, y2 = data["size"][j], *(by[k][0, j] for k in ("intact", "kept", "kept_square"))
        number = g.poisson(left[0, j], draws)
        at, total = np.repeat(np.arange(draws), number), number.sum()
        if s > 1:
            high = (y2 - whole) / (y - whole)  # of a broken entity; the first two moments matter
            kept = high * (g.random(total) < (y - whole) / (1 - whole) / high)
            kept = np.where(g.random(total) < whole, 1.0, kept)
            out[:, 0] += number * s * (s - 1) / 2
            out[:, 1] += s * (s - 1) / 2 * np.bincount(at, kept, draws)
    return out


def many(by, draws):
    return {k: np.broadcast_to(v[:1], (draws, v.shape[-1])) for k, v in by.items()}


def columns(found: Populations):
    return np.stack([found.true, found.common], axis=-1)


def test_completed_populations_have_the_moments_of_single_entities():
    by, data = by_hand()
    data["records"] = 40_000.0
    left = expect_unsampled(by, data)
    found = columns(draw_populations(many(by, 20_000), np.full(20_000, 1e4), data, rng(), tries=1))
    wanted = one_by_one(by, data, left, 5000, 2)
    error = wanted.std(axis=0) * np.sqrt(1 / 20_000 + 1 / 5000)
    assert (np.abs(found.mean(axis=0) - wanted.mean(axis=0)) < 5 * error).all()
    assert_allclose(np.sqrt(np.diag(np.cov(found.T))), np.sqrt(np.diag(np.cov(wanted.T))), rtol=0.05)
    assert_allclose(np.corrcoef(found.T), np.corrcoef(wanted.T), atol=0.05)
    _, expected, variance = expect_links(left, by, data)
    spread = np.sqrt(variance[0] - 1e-4) * expected[0]
    assert found[:, 1].std() == pytest.approx(spread, rel=0.05)


def test_one_giant_is_intact_or_keeps_a_share_of_its_own():
    """The law of its share, given that there is one: an atom at 1, and else a beta distribution."""
    data = {
        "size": np.array([1.0, 1000.0]),
        "selection": np.ones(2),
        "repeats": 1.0,
        "fixed_size": 1.0,
        "draws": 0,
        "records": 2000.0,
        "sampled_records": 0.0,
        "sampled_true_links": 0.0,
        "sampled_common_links": 0.0,
    }
    share, intact = stats.beta(1.2, 0.6), 0.7
    square = share.var() + share.mean() ** 2
    by = {
        "entities": np.tile([1000.0, 1.0], (20_000, 1)),
        "intact": np.tile([1.0, intact], (20_000, 1)),
        "kept": np.tile([1.0, intact + (1 - intact) * share.mean()], (20_000, 1)),
        "kept_square": np.tile([1.0, intact + (1 - intact) * square], (20_000, 1)),
    }
    found = draw_populations(by, np.full(20_000, 1e5), data, rng(), tries=1)
    kept = (found.common / np.maximum(found.true, 1))[found.number[:, 1] == 1]
    assert (kept == 1).mean() == pytest.approx(intact, abs=4 * np.sqrt(0.21 / len(kept)))
    assert stats.kstest(kept[kept < 1], share.cdf).pvalue > 1e-3
    two = (found.common / np.maximum(found.true, 1))[found.number[:, 1] == 2]
    assert (two == 1).mean() == pytest.approx(intact**2, abs=4 * np.sqrt(0.25 / len(two)))


def test_chosen_populations_have_the_common_links_of_the_draw():
    by, data = by_hand()
    plain = one_by_one(by, data, expect_unsampled(by, data), 40_000, 3)
    known = np.quantile(plain[:, 1], 0.8)
    weight = stats.norm(np.log(known), 0.05).pdf(np.log(plain[:, 1]))
    found = columns(draw_populations(many(by, 3000), np.full(3000, known), data, rng(), tries=64))
    wanted = weight @ plain / weight.sum()
    spread = np.sqrt(weight @ (plain - wanted) ** 2 / weight.sum())
    assert (np.abs(found.mean(axis=0) - wanted) < 0.1 * spread).all()


def test_true_links_follow_the_common_ones():
    found = Populations(np.zeros((4, 1)), np.array([90.0, 40.0, 40.0, 0.0]), np.array([60.0, 40.0, 0.0, 0.0]))
    common = np.array([80.0, 44.0, 0.25, 0.0])
    # two thirds are kept; all are; none is known, and half a link stands for it; there is no link
    assert_allclose(found.scale_true(common), [120.0, 44.0, 40.0, 0.0])


def test_nothing_is_drawn_of_a_census():
    by, data = by_hand()
    data |= {"sampled_records": data["records"]}
    found = draw_populations(by, np.full(3, 50.0), data, rng())
    assert not found.number.any()
    assert_array_equal(columns(found), [[70.0, 50.0]] * 3)


def alone(part, draws, rng):
    """Draws of a part by importance sampling, with their quantities."""
    return part.evaluated(part.sampled(draws, 1, rng))


def test_tails_of_priors_where_the_data_are_silent():
    """Coefficients of a smooth function under their prior: t with 3 degrees of freedom, far out too."""
    data = {**Evidence.of(clusters(60, 1)).data}
    for counted in ("several", "intact", "broken", "shares"):
        data[counted] = np.zeros_like(data[counted])
    compiled = CompiledPart.of(bayes.Retention(), data)
    found = approximated(compiled, 20_000, rng())
    scale, at = bayes.Retention().share_amplitude, np.array(compiled.program.names) == "share_tilt_weights"
    for w in found.draw(20_000)[0][:, at].T / scale:
        assert np.quantile(np.abs(w), [0.5, 0.95, 0.995]) == pytest.approx(
            stats.t(3).isf([0.25, 0.025, 0.0025]), rel=0.15
        )


def zeta_part(evidence):
    part = Sizes(bayes.ZetaSizes())
    return part, CompiledPart.of(part, evidence.data)


def test_evidence_and_moments_by_quadrature():
    evidence = Evidence.of(clusters(60, 1))
    _, compiled = zeta_part(evidence)
    at = np.linspace(-4, 4, 4001)[:, None]
    density = compiled.log_densities(at)
    area = np.trapezoid(np.exp(density - density.max()), at[:, 0])
    found = approximated(compiled, 4000, rng())
    thetas = found.draw(4000)
    assert found.log_evidence == pytest.approx(np.log(area) + density.max(), abs=0.02)
    p = np.exp(density - density.max()) / area
    mean = np.trapezoid(at[:, 0] * p, at[:, 0])
    sd = np.sqrt(np.trapezoid((at[:, 0] - mean) ** 2 * p, at[:, 0]))
    assert [thetas.mean(), thetas.std()] == pytest.approx([mean, sd], rel=0.05)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
def test_priors_without_a_scale(bad):
    for prior, what in ((bayes.StudentTPrior, "scale"), (bayes.NormalPrior, "standard deviation")):
        raises(ValueError, f"a prior's {what} must be above 0 and finite, not {bad}", prior, 0.0, bad)


def test_chances_and_amplitudes_of_priors():
    data = Evidence.of(clusters(60, 1)).data
    with pytest.raises(ValueError, match=r"a prior probability must lie in \[0, 1\], not 1\.5"):
        own_model(bayes.Retention(unbroken=1.5), data)
    with pytest.raises(ValueError, match="a prior's amplitude must be above 0 and finite, not 0"):
        own_model(bayes.Mates(amplitude=0), data)


def test_densities_far_out_are_small():
    """No rounding error of a large precision may pass for a density."""
    evidence = Evidence.of(clusters(60, 1))
    compiled = CompiledPart.of(bayes.Retention(), evidence.data)
    far = compiled.start + 10.0 ** rng().uniform(0, 3, (400, 1)) * rng().standard_normal(
        (400, len(compiled.start))
    )
    best = approximated(compiled, 500, rng())
    highest = compiled.log_densities(best.draw(500)[0]).max()
    density = compiled.log_densities(far)
    assert np.nanmax(density) < highest + 1


def test_each_draw_of_the_mates_takes_a_pair_that_agrees_with_it():
    """Against all pairs, weighted exactly, of each half of the draws of the mates."""
    by, data = by_hand(draws=300)
    data["records"] = 600_000.0
    g, shape = rng(3), (2, 150)
    M = (900 * data["size"] ** (-1 + 0.4 * g.standard_normal((300, 1)))).reshape(*shape, 6)
    by = {k: v.reshape(*shape, 6) for k, v in by.items()}
    _, links, _ = expect_links(expect_unsampled({"entities": M}, data), by, data)
    ends = np.quantile(links, [0.2, 0.8])
    J, half = 3, np.arange(150) < 75
    low, high = (ends - 50) / (2 * ends[1])
    right = np.where(half[None, :, None], low, high) * np.ones((2, 1, J)) + 1e-4 * g.random((2, 150, J))
    data |= {"unlabelled_links": np.full(J, 2 * ends[1] / J), "unlabelled_b3": np.ones(J)}
    data |= {"unlabelled_precision": np.full(J, 1e9), "known_b3": 5.0}
    parts = {
        "sizes": PartDraws({"entities": M}, {"a": M[..., 0]}, M[..., 1]),
        "retention": PartDraws(
            {k: by[k] for k in ("kept", "kept_square")}, {"b": by["kept"][..., 1]}, M[..., 2]
        ),
        "mates": PartDraws({"mates_right": right}, {"c": right[..., 0]}, M[..., 3]),
    }
    found = [join_parts(parts, data, rng(seed)) for seed in range(40)]
    one = found[0]
    assert 0 < one.agreeing <= 1
    for each in found:
        assert_array_equal(each.by_size["mates_right"], right)
        assert_array_equal(each.parameters["c"], right[..., 0])
        assert_allclose(each.common, 50 + right @ data["unlabelled_links"], rtol=1e-3)
        assert_allclose(each.b3, 5 + right.sum(axis=-1), rtol=1e-3)
    i, j = np.meshgrid(np.arange(150), np.arange(150), indexing="ij")
    for c in range(2):
        targets = []
        kept = {name: by[name][c][j] for name in ("kept", "kept_square")}
        _, expected, variance = expect_links(expect_unsampled({"entities": M[c][i]}, data), kept, data)
        for of in (half, ~half):
            distance = np.log(expected) - np.log(one.common[c, of].mean())
            w = np.exp(-(distance**2) / variance / 2) / np.sqrt(variance)
            wanted = np.average(M[c, ..., 5][i], weights=w), np.average(by["kept"][c, ..., 4][j], weights=w)
            got = (
                np.mean([f.by_size["entities"][c, of, 5] for f in found]),
                np.mean([f.by_size["kept"][c, of, 4] for f in found]),
            )
            spread = M[c, ..., 5].std(), by["kept"][c, ..., 4].std()
            assert abs(got[0] - wanted[0]) < 0.2 * spread[0] and abs(got[1] - wanted[1]) < 0.2 * spread[1]
            targets.append(wanted)
        assert np.abs(np.subtract(*targets) / spread).max() > 0.25, "common links matter here"
    assert_array_equal(one.parameters["a"], one.by_size["entities"][..., 0])
    assert_array_equal(one.parameters["b"], one.by_size["kept"][..., 1])
    ratio = one.by_size["kept_square"] - one.by_size["kept"] ** 2
    assert_allclose(ratio, by_hand_spread(one.by_size["kept"]), rtol=1e-9)  # of one and the same draw
    assert_array_equal(one.log_prior["mates"], M[..., 3])
    for name, own in (("sizes", one.by_size["entities"][..., 1]), ("retention", None)):
        prior = one.log_prior[name]
        assert abs(np.corrcoef(prior.ravel(), one.common.ravel())[0, 1]) < 1e-9, "given common links"
        if own is not None:
            slope, _ = np.polyfit(one.common.ravel(), own.ravel(), 1)
            told = own - slope * (one.common - one.common.mean())
            assert_allclose(prior, told, rtol=1e-6)


def by_hand_spread(kept):
    return kept * (1 - kept) * 0.4


def test_precision_does_not_depend_on_sizes_or_retention():
    levels = (bayes.NormalPrior(x, 0.01) for x in (1.0, -2.0))
    stiff = bayes.Retention(*levels, break_amplitude=0.01, share_amplitude=0.01)
    rigid = bayes.SizeModel(bayes.LogNormalSizes(0.01, 0.01), stiff)
    sample = by_records(60, 1)
    found = [bayes.fast(sample, model, draws=4000, rng=rng(2)).apply([P, R]) for model in (None, rigid)]
    assert abs(found[0].mean[0] - found[1].mean[0]) < 0.1 * found[0].sd[0]
    assert abs(found[0].mean[1] - found[1].mean[1]) > found[0].sd[1]
    fit = bayes.fast(sample, draws=1000, rng=1)
    shift = fit.prior_shift(fit.apply([P, R]))
    assert (shift.loc[P.name, ["sizes", "retention"]] < 1e-9).all()
    assert (shift.loc[R.name] > 0).all() and shift.loc[P.name, "mates"] > 0.01


def test_census_has_no_uncertainty(fit):
    pop = world(records=800)
    sample = eb.Sample(pop.units, eb.UniformClusters(population=pop.true.nunique()))
    found = bayes.fast(sample, draws=400, rng=rng())
    draws = found.apply(found.metrics)
    wanted = oracle.truth(pd.factorize(pop.true)[0].tolist(), pd.factorize(pop.pred)[0].tolist())
    assert {P.name, R.name, "adjusted-rand", "b3-recall", "matching-rate", "hill2"} < set(draws.names)
    for name, mean, sd in zip(draws.names, draws.mean, draws.sd, strict=True):
        assert mean == pytest.approx(wanted[name], rel=1e-9) and sd < 1e-9 * max(mean, 1)
    shift = found.table(metrics=found.metrics).prior_shift
    assert (shift < 0.01).all()


@pytest.mark.parametrize("draw", [clusters, by_records])
@pytest.mark.parametrize("errors", [NOISE, LUMPS])
def test_samples_cover_the_truth(errors, draw):
    pop, hits, wide = world(errors), np.zeros(2), []
    truth = np.array([pop.value(P), pop.value(R)])
    for seed in range(12):
        found = bayes.fast(draw(100, seed + 50, pop), rng=rng(seed), draws=400)
        low, high = found.apply([P, R]).interval().T
        hits += (low <= truth) & (truth <= high)
        wide.append(high - low)
    assert (hits >= 9).all()  # P(fewer than 9 of 12) is 2e-3 at a coverage of .95
    assert (np.mean(wide, axis=0) < 0.32).all()


@pytest.mark.study
@pytest.mark.parametrize("draw", [clusters, by_records])
@pytest.mark.parametrize("errors", [NOISE, LUMPS, Misattribution(0.03), Splits(0.3)])
def test_coverage(errors, draw):
    held = []
    for seed in range(
        100
    ):  # another world each time: in one of 4,000 records luck with its giants would decide
        pop = simulate(LogNormal(1.0, 1.0), errors, 4000, rng(seed + 500))
        truth = np.array([pop.value(P), pop.value(R)])
        low, high = (
            bayes.fast(draw(100, seed + 1000, pop), draws=1000, rng=rng(seed)).apply([P, R]).interval().T
        )
        held.append((low <= truth) & (truth <= high))
    print(errors, draw.__name__, "coverage of P, R", np.mean(held, axis=0))
    assert (
        np.mean(held, axis=0) >= 0.84
    ).all()  # .90, the bar of a cell, less two Monte Carlo standard errors


def test_totals_hold_the_known_ones(fit):
    pop = world()
    for column in (RECORDS, PREDICTED_LINKS):
        assert (fit.total(column) == pop.total(column)).all()
    common, true = fit.total(COMMON_LINKS), fit.total(TRUE_LINKS)
    assert fit.total(COMMON_LINKS).shape == (4, 250)
    assert_allclose(fit.apply([P]).values[..., 0], common / pop.total(PREDICTED_LINKS), rtol=1e-12)
    assert_allclose(fit.apply([R]).values[..., 0], fit.population.common / fit.population.true, rtol=1e-12)
    assert (common <= true).all() and (common <= pop.total(PREDICTED_LINKS)).all()
    records = (fit.by_size["entities"] * fit.evidence.grid.size).sum(-1)
    assert_allclose(records, 4000, rtol=1e-9)
    assert (fit.total(COLUMNS[4]) >= len(fit.sample.units)).all()


def test_every_total_is_near_the_truth(fit):
    """Poisson noise of the realised population may not hide what is known: all records are N."""
    pop, sizes = world(), np.unique(world().true, return_counts=True)[1]
    draws = fit.apply(fit.metrics)
    z = {
        n: (mean - pop.value(metric)) / sd
        for n, mean, sd, metric in zip(draws.names, draws.mean, draws.sd, fit.metrics, strict=True)
    }
    assert max(map(abs, z.values())) < 4
    # entities that hold most records are intact or nearly so: recall of a record is known to a few percent
    assert draws.sd[draws.names.index("b3-recall")] < 0.04
    low, high = np.transpose(draws.support)
    assert ((draws.values >= low) & (draws.values <= high)).all() and sizes.sum() == 4000


def test_another_prior_and_sample_need_no_compilation(fit, monkeypatch):
    def refuse(*_):
        raise AssertionError("compiled again")

    monkeypatch.setattr(Program, "_compile", refuse)
    larger = bayes.NormalPrior(-9, 0.001), bayes.NormalPrior(1.5, 0.001), bayes.NormalPrior(0, 0.001)
    rigid = bayes.SizeModel(bayes.PredictionInformed(0.001, 0.001, *larger, bayes.StudentTPrior(0.0, 0.001)))
    found = bayes.fast(fit.sample, rigid, draws=1000, rng=rng())
    spread = [np.log(f.by_size["entities"]).std(axis=1).mean() for f in (found, fit)]
    assert spread[0] < 0.05 * spread[1]
    for sample in (by_records(40, 9), eb.Sample(fit.sample.units, BySize(np.sqrt))):
        assert bayes.fast(sample, draws=1000, rng=rng()).population.true.shape == (4, 250)
    with pytest.raises(AssertionError, match="compiled again"):
        bayes.fast(fit.sample, bayes.SizeModel(BodyAndTail(6)), draws=1000, rng=rng())


@pytest.mark.parametrize("metric, column", [
    (m.purity, "largest_piece_predicted"),
    (m.closest_cluster_precision, "closest_entity"),
    (m.ceaf, "best_matching"),
    (m.basic_merge_distance, "basic-merge-distance"),
])  # fmt: skip
def test_metrics_that_no_part_produces(fit, metric, column):
    with pytest.raises(eb.NotIdentified, match=f"returns '{column}': use the closed form or the bootstrap"):
        fit.apply([P, metric])
    assert metric not in fit.metrics


@pytest.mark.parametrize("asked, blocks", [
    ([P, m.cluster_recall, R], None), ([m.cluster_recall], None), ([P, R], {i: i // 6 for i in range(9)}),
])  # fmt: skip
def test_engines_and_metrics_that_a_refusal_names_are_taken(asked, blocks):
    prediction, true = {i: i // 3 if i != 8 else 9 for i in range(9)}, {i: i // 3 for i in range(9)}
    ask = partial(eb.estimate, prediction, true, eb.UniformClusters(), blocks=blocks)
    with pytest.raises(eb.NotIdentified) as refused:
        ask(asked, engine="posterior")
    remedy = re.split("which |: use ", str(refused.value))[1]
    engines = [name for name in get_args(EngineName) if name in remedy]
    names = {x.name for x in m.ALL if re.search(rf"(?<![\w-]){x.name}(?![\w-])", remedy)}
    assert engines and bool(names) is (len(asked) == 3)
    for metrics, engine in [*product([asked], engines), *[(sorted(names), "posterior")] * bool(names)]:
        assert len(ask(metrics, engine=engine)) == len(metrics)


def test_columns_of_size_alone_are_those_that_no_prediction_changes():
    g, true = rng(), world().true
    codes = [g.integers(0, k, len(true)) for k in (3, 700)]
    units = [eb.measure(pd.Series(c, true.index), true) for c in codes]
    for column in COLUMNS:
        same = column.identified(units[0]) and np.allclose(*(u.column(column) for u in units), rtol=1e-12)
        assert depends_on_size(column) == (same and column != RECORDS), column.name
    assert depends_on_size(m.hill2.columns[0])


@pytest.mark.parametrize("errors, certain, open_", [(Splits(0.3), P, R), (Merges(0.1), R, P)])
def test_a_metric_of_exactly_one_is_covered(errors, certain, open_):
    pop = world(errors)
    assert pop.value(certain) == 1 > pop.value(open_)
    for draw in (clusters, by_records):
        found = bayes.fast(draw(100, 5, pop), draws=4000, rng=rng())
        (low, high), (_, below) = found.apply([certain, open_]).interval()
        assert 0.8 < low < high == 1 and below < 1 and found.apply([certain]).values.max() <= 1 + 1e-12


def test_chance_of_no_error_by_bayes_rule():
    """Prior odds times the likelihood ratio, the latter by draws from the prior."""
    chance, sample = 0.2, clusters(40, 5, world(Merges(0.1)))
    part, d = bayes.Retention(unbroken=chance), Evidence.of(sample).data
    model, _ = own_model(part, d)
    none = pm.draw(model["broken_entities"], 4000, random_seed=1, mode=PLAIN).sum(axis=1) == 0
    unbroken = pm.draw(model["unbroken"], 4000, random_seed=1, mode=PLAIN)
    assert unbroken.mean() == pytest.approx(chance, abs=0.03) and (d["several"] - d["intact"]).sum() == 0
    compiled = CompiledPart.of(part, d)
    approximate = approximated(compiled, 2000, rng())
    found = np.exp(compiled.log_flawless - np.logaddexp(approximate.log_evidence, compiled.log_flawless))
    assert found == pytest.approx(chance / none.mean(), abs=0.05)  # P(unbroken | none broken)
    drawn = alone(compiled, 2000, rng())
    assert drawn.parameters["unbroken"].mean() == pytest.approx(found, abs=0.03)
    assert ((drawn.by_size["kept"] == 1).all(axis=-1) == (drawn.parameters["unbroken"] == 1)).all()


def test_table(fit):
    found = fit.table(0.9, fit.metrics)
    assert list(found.columns) == [
        *("estimate", "sd", "lower", "upper", "level", "kind", "closed_lower", "closed_upper"),
        *("prior_shift", "prior_shift_error", "posterior_lower", "posterior_upper"),
    ]
    assert list(found.index) == [x.name for x in fit.metrics]
    assert ((found.lower < found.estimate) & (found.estimate < found.upper)).all()
    assert np.isfinite(found.drop(columns="kind")).all(axis=None) and (found.level == 0.9).all()
    values = fit.apply([P]).flat[:, 0]
    ends, row = np.quantile(values, [0.05, 0.95]), found.loc[P.name]
    assert_allclose(row[["posterior_lower", "posterior_upper"]].astype(float), ends, rtol=1e-9)
    closed = eb.estimate(fit.sample, metrics=[P])
    other = closed.interval(0.9)[0]
    assert_allclose(row[["closed_lower", "closed_upper"]].astype(float), other, rtol=1e-9)
    assert_allclose(row[["lower", "upper"]].astype(float), 0.8 * ends + 0.2 * other, rtol=1e-9)
    assert row.estimate == pytest.approx(0.8 * values.mean() + 0.2 * closed.estimate[0], rel=1e-9)


@pytest.mark.filterwarnings("default")
def test_bad_weights_are_told(fit, monkeypatch):
    told = r"retention: importance weights are unreliable \(Pareto k .*raise draws, .* pymc.sample\(model=fit.pymc\)"
    with monkeypatch.context() as patched:
        patched.setattr("erbayes.bayes.totals.KHAT", -10.0)
        with pytest.warns(bayes.NotConverged, match=told):
            bayes.fast(fit.sample, draws=1000, rng=rng())
    monkeypatch.setattr("erbayes.bayes.totals.LEAST_AGREEING", 1e9)
    with pytest.warns(
        bayes.NotConverged,
        match=r"few draws of sizes and retention agree with the number .* \(agreement 0\.\d+",
    ) as raised:
        bayes.fast(fit.sample, draws=1000, rng=rng())
    assert {w.filename for w in raised} == {__file__}, "the line of the user"
    monkeypatch.setattr("erbayes.bayes.totals.LEAST_AGREEING", 0.02)
    monkeypatch.setattr("erbayes.bayes.totals.KHAT", 10.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bayes.fast(fit.sample, draws=1000, rng=rng())


DATA_OF = {"drawn_sizes": "drawn", "kept_shares": "shares", "right_mates": "right"}


def spread(simulated, d, name):
    """Simulated data on the whole grid: 0 where nothing was sampled."""
    out = np.zeros_like(d[name])
    out[slice(None) if name in ("drawn", "right") else d["sampled"]] = simulated
    return out


def of_size(by, grid):
    """What a part's posterior is ranked by."""
    s, out = grid.size, []
    at = [np.searchsorted(s, v) for v in (2, 6, 20)]
    for name in ("intact", "kept", "share_precision", "mates_right"):
        out += [by[name][..., j] for j in at if name in by]
    if "entities" in by:
        M = by["entities"]
        out += [M.sum(-1), M[..., 0] / M.sum(-1), (M * s * (s - 1)).sum(-1), (M * s)[..., at[2] :].sum(-1)]
    return np.stack(out, axis=-1)


def ranks(pick, model, simulations, draws=99, seed=1, evidence=None):
    """Rank of each truth among thinned posterior draws, (simulations, quantities), and the Pareto shapes.

    Parameters are drawn from the prior, data from the model's own random variables.
    """
    evidence = evidence or Evidence.of(clusters(100, 11))
    part, d = pick(model), evidence.data
    simulated, by = own_model(part, d)
    by.pop(LOG_FLAWLESS, None)
    seen = [v.name for v in simulated.observed_RVs]
    drawn = pm.draw([*by.values(), *(simulated[v] for v in seen)], simulations, random_seed=seed, mode=PLAIN)
    truth = of_size(dict(zip(by, drawn, strict=False)), evidence.grid)
    observed = dict(zip(seen, drawn[len(by) :], strict=True))
    g, found, khat = rng(seed), [], []
    for i in range(simulations):
        new = {DATA_OF[k]: spread(v[i], d, DATA_OF[k]) for k, v in observed.items() if k in DATA_OF}
        if "broken_entities" in observed:
            new["intact"] = d["several"] - spread(observed["broken_entities"][i], d, "several")
            if not observed["broken_entities"][i].any():  # nothing broken has no shares
                new |= {"broken": 0 * d["broken"], "shares": 0 * d["shares"]}
        compiled = CompiledPart.of(part, d | new)
        thetas = compiled.sampled(10 * draws + 10, 1, g)
        fitted = compiled.evaluated(thetas)
        posterior = of_size({k: v[0] for k, v in fitted.by_size.items()}, evidence.grid)
        posterior = posterior[g.permutation(len(posterior))[:draws]]
        ties = (posterior == truth[i]).sum(axis=0)
        found.append((posterior < truth[i]).sum(axis=0) + g.integers(0, ties + 1))
        khat.append(thetas.khat)
    return np.array(found), np.array(khat)


def uniformity(rank, draws=99, bins=10):
    """p-values by chi-square, and largest distance of the ECDF from the line in units of its simultaneous band."""
    observed = np.stack([np.histogram(r, bins, (0, draws + 1))[0] for r in rank.T])
    p = stats.chisquare(observed, axis=1).pvalue
    off = np.array([stats.kstest((r + 0.5) / (draws + 1), "uniform").statistic for r in rank.T])
    return p, off / stats.kstwo(len(rank)).ppf(0.999)


def sizes(model):
    return Sizes(model.sizes)


OFTEN = bayes.SizeModel(retention=bayes.Retention(unbroken=0.4), mates=bayes.Mates(all_right=0.4))
FAMILIES = (bayes.PredictionInformed, NegativeBinomial, bayes.LogNormalSizes, bayes.ZetaSizes, BodyAndTail)
PARTS = {
    **{family.__name__: (sizes, bayes.SizeModel(family())) for family in FAMILIES},
    "Retention": (lambda model: model.retention, bayes.SizeModel()),
    "Mates": (lambda model: model.mates, bayes.SizeModel()),
    "often unbroken": (lambda model: model.retention, OFTEN),
    "often right": (lambda model: model.mates, OFTEN),
}


def test_every_public_part_is_calibrated():
    public = {name: getattr(bayes, name) for name in bayes.__all__}
    parts = {name for name, value in public.items() if isinstance(value, type)}
    parts = {n for n in parts if hasattr(public[n], "log_weights") or hasattr(public[n], "given_size")}
    assert parts <= set(PARTS), "add it to PARTS"


def test_calibration_and_refits_of_one_part():
    model = bayes.SizeModel(bayes.ZetaSizes())
    rank, khat = ranks(sizes, model, 60)
    p, off = uniformity(rank, bins=5)
    assert (p > 1e-3).all() and (off < 1).all() and (khat < 0.7).all()


@pytest.mark.study
@pytest.mark.parametrize("name", PARTS)
def test_calibration(name):
    rank, khat = ranks(*PARTS[name], 500)
    p, off = uniformity(rank)
    high, most = (khat > 0.7).mean(), khat.max().round(2)
    print(name, "chi-square", p.round(4), "ECDF", off.round(2), "k-hat > .7:", high, "max", most)
    level = 1e-3 / rank.shape[1]
    assert (p > level).all() and (off < 1.2).all()


def test_refit_under_another_prior_is_a_fresh_fit(monkeypatch):
    evidence, other = Evidence.of(clusters(100, 11)).data, Evidence.of(by_records(30, 4)).data
    wide, narrow = (Sizes(bayes.ZetaSizes(v)) for v in (0.6, 0.05))
    alone(CompiledPart.of(wide, evidence), 200, rng(3))
    narrowed = CompiledPart.of(narrow, other)
    assert narrowed.program is CompiledPart.of(wide, evidence).program
    assert narrowed.data["size_log_excess_sd"] == 0.05
    again = alone(narrowed, 500, rng(5)).by_size["entities"]
    monkeypatch.setattr(CompiledPart, "cache", {})
    monkeypatch.setattr(Program, "cache", [])
    fresh = CompiledPart.of(narrow, other)
    assert fresh.program is not narrowed.program
    assert_array_equal(again, alone(fresh, 500, rng(5)).by_size["entities"])
