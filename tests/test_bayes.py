"""The Bayesian engine: plain loops, direct simulation, the census, and simulation-based calibration."""

import warnings
from functools import cache
from importlib import import_module

import numpy as np
import oracle
import pandas as pd
import pymc as pm
import pytest
import xarray as xr
from pytensor.compile.mode import Mode
from scipy import stats

import erbayes as eb
from erbayes import bayes
from erbayes import metrics as m
from erbayes.bayes.evidence import Evidence, _smoothed
from erbayes.bayes.fast import CompiledPart, resampled, smoothed
from erbayes.bayes.fit import by_size_alone
from erbayes.bayes.population import NEAR, Completed, Links, completed, log_density_of_total, unsampled
from erbayes.design import BySize
from erbayes.simulate import Chain, LogNormal, Merges, Misattribution, Splits, simulate
from erbayes.units import COLUMNS, COMMON_LINKS, PREDICTED_LINKS, RECORDS, TRUE_LINKS

pytestmark = pytest.mark.filterwarnings("ignore::erbayes.bayes.NotConverged")
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


@pytest.fixture(scope="module")
def fit():
    return bayes.fast(clusters(60, 1), rng=rng())


# Evidence

PRED = {1: "a", 2: "a", 3: "b", 4: "b", 5: "b", 6: "c", 7: "d", 8: "d", 9: "e"}
TRUE = {1: "x", 2: "x", 3: "x", 4: "y", 5: "y", 6: "z", 7: "u", 8: "v", 9: "v"}


def test_entities_of_a_sample():
    draws = ["x", "v", "x", "z", "y"]
    units = eb.measure(PRED, {r: e for r, e in TRUE.items() if e in draws})
    e = Evidence.of(eb.Sample(units, eb.UniformRecords(draws))).entities
    at = units.ids.get_indexer(["x", "y", "z", "v"])
    assert e.size[at].tolist() == [3, 2, 1, 2]
    assert e.links[at].tolist() == [1, 1, 0, 0]
    assert e.foreign[at].tolist() == [2, 2, 0, 1]  # pairs (3, 4), (3, 5); (4, 3), (5, 3); (8, 7)
    assert e.draws[at].tolist() == [2, 1, 1, 1]
    assert e.broken[at].tolist() == [True, False, False, True]
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
    wanted = {k: np.zeros(len(grid.size)) for k in ("drawn", "several", "intact", "broken", "intact_all", "clean",
                                                    "entities", "met")}  # fmt: skip
    shares, intrusions = np.zeros((len(grid.size), 2)), []
    total = dict.fromkeys(("records", "true", "common", "foreign"), 0)
    draws = pd.Series(sample.units.ids[sample.expansion.unit]).value_counts()
    for entity, own in records.items():
        s = len(own)
        j = max(i for i in range(len(grid.lower)) if grid.lower[i] <= s)
        pieces = [len(own & cluster[k]) for k in set(pop.pred[list(own)])]
        links, foreign = sum(n * (n - 1) // 2 for n in pieces), sum(len(cluster[pop.pred[r]] - own) for r in own)
        intact = len(pieces) == 1
        wanted["entities"][j] += 1
        wanted["drawn"][j] += draws[entity]
        wanted["several"][j] += s > 1
        wanted["intact"][j] += intact and s > 1
        wanted["intact_all"][j] += intact
        wanted["clean"][j] += intact and not foreign
        wanted["broken"][j] += not intact and s > 2
        wanted["met"][j] += foreign > 0
        if not intact and s > 2:
            w = (links / ((s - 1) * (s - 2) / 2) * (s - 2) + 0.5) / (s - 1)
            shares[j] += [np.log(w), np.log(1 - w)]
        if foreign:
            intrusions.append((int(np.log2(s)), foreign / s))
        for key, value in zip(total, (s, s * (s - 1) / 2, links, foreign), strict=True):
            total[key] += value
    for key, value in wanted.items():
        np.testing.assert_array_equal(d[key], value, err_msg=key)
    np.testing.assert_allclose(d["shares"], shares, rtol=1e-10)
    assert [d[f"sampled_{k}"] for k in ("records", "true_links", "common_links", "foreign")] == list(total.values())
    assert d["draws"] == d["drawn"].sum() == 80
    assert d["draws"] > d["entities"].sum() or draw is clusters
    found = d["intrusions"].sum(axis=1)
    np.testing.assert_array_equal(found, np.bincount([i for i, _ in intrusions], minlength=len(found)))
    np.testing.assert_array_equal(d["met_by_doubling"], found)
    # the values of the bins keep the mean of what is in them
    assert d["intrusions"].sum(axis=0) @ d["intrusion_value"] == pytest.approx(sum(v for _, v in intrusions))
    assert evidence.records == 4000 and evidence.predicted_links == world().total(PREDICTED_LINKS)


def test_smoothing_moves_counts_and_loses_none():
    x, at, count = np.arange(0, 12, 0.25), np.array([0.1, 3.0, 7.7]), np.array([5.0, 2.0, 1.0])
    found = _smoothed(x, np.ones(len(x)), at, count)
    assert found.sum() == pytest.approx(8, rel=1e-12)
    assert x[8 + np.argmax(found[8:20])] == 3.0
    far = abs(x[:, None] - at).min(axis=1) > 2.5
    assert found[far].max() < 1e-6


def sampled(entities, design, **how):
    return eb.Sample(eb.measure(PRED, {r: e for r, e in TRUE.items() if e in entities}, **how), design)


@pytest.mark.parametrize("sample, message", [
    (lambda: sampled("xyz", eb.UniformClusters(), blocks={1: 0, 2: 0, 3: 0, 4: 0, 5: 0, 6: 1}), "true entities as units"),
    (lambda: eb.Sample(eb.measure_predicted(PRED, TRUE, ["a", "b"]), eb.UniformClusters()), "true entities as units"),
    (lambda: sampled("xy", eb.KnownWeights({"x": 1, "y": 2})), "under KnownWeights the chance"),
    (lambda: sampled("xy", eb.Stratified({"x": 0, "y": 0}, {0: 5})), "under Stratified the chance"),
    (lambda: sampled("xy", eb.WeightedRecords(["x", "y"], [0.1, 0.2])), "under WeightedRecords the chance"),
    (lambda: sampled("xyzuv", eb.Calibrated(eb.UniformClusters(), eb.links_by_size, fewest=0)), "under Calibrated the chance"),
    (lambda: eb.Sample(eb.measure(PRED, {1: "x", 2: "x", 99: "x"}, missing=eb.Missing.SINGLETON), eb.UniformClusters()),
     "use Missing.OMIT"),
    (lambda: eb.Sample(eb.measure(PRED, {1: "x", 2: "x", 99: "x"}, missing=eb.Missing.TOGETHER), eb.UniformClusters()),
     "use Missing.OMIT"),
])  # fmt: skip
def test_samples_that_a_size_model_refuses(sample, message):
    with pytest.raises(eb.NotIdentified, match=message):
        bayes.fast(sample(), rng=rng())


def test_omitted_records_are_no_obstacle():
    units = eb.measure(PRED, {1: "x", 2: "x", 99: "x", 4: "y", 5: "y"}, missing=eb.Missing.OMIT)
    assert Evidence.of(eb.Sample(units, eb.UniformClusters())).data["sampled_records"] == 4


# Links and populations


def by_hand(J=6, draws=3, seed=1):
    g = rng(seed)
    intact, met = g.uniform(0.2, 0.9, (2, draws, J))
    kept = intact + (1 - intact) * g.uniform(0.1, 0.5, (draws, J))
    v = g.uniform(0.5, 4.0, (draws, J))
    by_size = {"kept": kept, "kept_square": kept**2 + (kept * (1 - kept)) * 0.4, "foreign": met * v,
               "foreign_square": met * v**2 * 1.7, "entities": g.uniform(50, 500, (draws, J))}  # fmt: skip
    data = {"size": np.array([1.0, 2.0, 3.0, 5.0, 9.0, 30.0])[:J], "sampled_true_links": 70.0, "sampled_common_links": 50.0,
            "sampled_foreign": 36.0, "sampled_records": 90.0, "records": 6000.0, "predicted_links": 9000.0,
            "selection": np.ones(J), "repeats": 1.0, "draws": 40}  # fmt: skip
    return by_size, data


def test_links_by_plain_loops():
    by, data = by_hand()
    left = by["entities"] * 0.9
    found = Links.of(left, by, data)
    for k in range(3):
        true, common, false, vc, vf, cov, vk = 70.0, 50.0, 18.0, 0.0, 0.0, 0.0, 0.0
        for j, s in enumerate(data["size"]):
            M, pairs, y, o = left[k, j], s * (s - 1) / 2, by["kept"][k, j], by["foreign"][k, j]
            true += M * pairs
            common += M * pairs * y
            false += M * s * o / 2
            # a sum over a Poisson number of entities has variance M E(x²), covariance M E(xy)
            vc += M * pairs**2 * by["kept_square"][k, j]
            vf += M * (s / 2) ** 2 * by["foreign_square"][k, j]
            cov += M * (pairs * y) * (s * o / 2)
            vk += M * pairs**2 * (by["kept_square"][k, j] - y**2)
        for got, wanted in zip((found.true, found.common, found.false, found.common_variance, found.false_variance,
                                found.covariance, found.kept_variance), (true, common, false, vc, vf, cov, vk), strict=True):  # fmt: skip
            assert got[k] == pytest.approx(wanted, rel=1e-12)
        assert found.predicted[k] == pytest.approx(common + false, rel=1e-12)
        assert found.variance[k] == pytest.approx(vc + vf + 2 * cov, rel=1e-12)
        spread = np.sqrt(min((vc + vf + 2 * cov) / (common + false) ** 2, 0.25) + 1e-4)
        density = stats.norm(np.log(common + false), spread).logpdf(np.log(9000.0)) + np.log(2 * np.pi) / 2
        assert log_density_of_total(found, np.log, np.log(9000.0))[k] == pytest.approx(density, rel=1e-10)


@pytest.mark.parametrize("repeats", [True, False])
def test_unsampled_entities_by_brute_force(repeats):
    size, M, n = np.array([1.0, 2.0, 7.0, 40.0]), np.array([60, 30, 12, 3]), 25
    chance = np.ones(4) if not repeats else np.sqrt(size)
    every = np.repeat(np.arange(4), M)
    missed, g = np.zeros(4), rng()
    for _ in range(4000):
        got = g.choice(len(every), n, replace=repeats, p=chance[every] / chance[every].sum())
        missed += np.bincount(np.delete(every, np.unique(got)), minlength=4)
    data = {"selection": chance, "draws": n, "repeats": float(repeats), "records": 324.0, "sampled_records": 100.0,
            "size": size}  # fmt: skip
    found = unsampled(M[None].astype(float), data)[0]
    assert found @ size == pytest.approx(324.0 - 100.0, rel=1e-12)
    np.testing.assert_allclose(found / found.sum(), missed / missed.sum(), rtol=0.02)


def test_distinct_entities_are_found_with_their_inclusion():
    size, M, n = np.array([1.0, 2.0, 7.0, 40.0]), np.array([60, 30, 12, 3]), 50
    every = np.repeat(np.arange(4), M)
    missed, g = np.zeros(4), rng()
    for _ in range(4000):
        got = g.choice(len(every), n, p=size[every] / size[every].sum())
        missed += np.bincount(np.delete(every, np.unique(got)), minlength=4)
    data = {"selection": eb.DistinctEntities(n, int(M @ size)).selection(size, None), "draws": (M - missed / 4000).sum(), "repeats": 0.0,
            "records": float(M @ size), "sampled_records": 190.0, "size": size}  # fmt: skip
    found = unsampled(M[None].astype(float), data)[0]
    np.testing.assert_allclose(found / found.sum(), missed / missed.sum(), rtol=0.02, atol=2e-4)


def one_by_one(by, data, left, draws, seed):
    """Populations of single entities: a Poisson number of each size, links kept and foreign ones of each."""
    g, J = rng(seed), len(data["size"])
    seen = [data["sampled_true_links"], data["sampled_common_links"], data["sampled_foreign"] / 2]
    out = np.tile(np.array(seen), (draws, 1))
    for j in range(J):
        s, y, y2, o, o2 = data["size"][j], *(by[k][0, j] for k in ("kept", "kept_square", "foreign", "foreign_square"))
        number = g.poisson(left[0, j], draws)
        at, total = np.repeat(np.arange(draws), number), number.sum()
        if s > 1:
            high = y2 / y  # y is `high` with probability y/high, else 0: these moments and no others matter
            kept = high * (g.random(total) < y / high)
            out[:, 0] += number * s * (s - 1) / 2
            out[:, 1] += s * (s - 1) / 2 * np.bincount(at, kept, draws)
        high = o2 / o
        met = high * (g.random(total) < o / high)
        out[:, 2] += s * np.bincount(at, met, draws) / 2
    return out


def many(by, draws):
    return {k: np.broadcast_to(v[:1], (draws, v.shape[-1])) for k, v in by.items()}


def columns(found: Completed):
    return np.stack([found.true, found.common, found.false], axis=-1)


def test_completed_populations_have_the_moments_of_single_entities():
    by, data = by_hand()
    data["records"] = 40_000.0
    left = unsampled(by["entities"], data)
    found = columns(completed(many(by, 20_000), data, rng(), tries=1))
    wanted = one_by_one(by, data, left, 5000, 2)
    error = wanted.std(axis=0) * np.sqrt(1 / 20_000 + 1 / 5000)
    assert (np.abs(found.mean(axis=0) - wanted.mean(axis=0)) < 5 * error).all()
    np.testing.assert_allclose(np.sqrt(np.diag(np.cov(found.T))), np.sqrt(np.diag(np.cov(wanted.T))), rtol=0.05)
    np.testing.assert_allclose(np.corrcoef(found.T), np.corrcoef(wanted.T), atol=0.05)
    expected = Links.of(left, by, data)
    assert found[:, 1].std() == pytest.approx(np.sqrt(expected.common_variance[0]), rel=0.05)
    assert found[:, 1:].sum(axis=1).std() == pytest.approx(np.sqrt(expected.variance[0]), rel=0.05)


def test_chosen_populations_have_the_known_number_of_links():
    by, data = by_hand()
    plain = one_by_one(by, data, unsampled(by["entities"], data), 40_000, 3)
    links = plain[:, 1] + plain[:, 2]
    data["predicted_links"] = np.quantile(links, 0.8)
    weight = stats.norm(np.log(data["predicted_links"]), NEAR).pdf(np.log(links))
    found = columns(completed(many(by, 3000), data, rng(), tries=64))
    wanted = weight @ plain / weight.sum()
    spread = np.sqrt(weight @ (plain - wanted) ** 2 / weight.sum())
    assert (np.abs(found.mean(axis=0) - wanted) < 0.1 * spread).all()


def test_nothing_is_drawn_of_a_census():
    by, data = by_hand()
    data |= {"sampled_records": data["records"]}
    found = completed(by, data, rng())
    assert not found.number.any()
    np.testing.assert_array_equal(columns(found), [[70.0, 50.0, 18.0]] * 3)


# Importance sampling


def test_systematic_resampling_keeps_frequencies():
    w = np.array([0.5, 0.05, 0.2, 0.25])
    weights = np.repeat(w / 25, 25)
    counts = np.bincount(resampled(weights, rng()) // 25, minlength=4)
    np.testing.assert_allclose(counts, 100 * w, atol=1)


def test_smoothed_weights():
    g = rng()
    x = g.standard_t(7, 20_000) * 1.2
    w, khat = smoothed(stats.norm(0.3, 1).logpdf(x) - stats.t(7, 0, 1.2).logpdf(x))
    assert w.sum() == pytest.approx(1) and khat < 0.5
    assert [w @ x, w @ x**2] == pytest.approx([0.3, 1.09], abs=0.04)
    even, khat = smoothed(np.zeros(500))
    np.testing.assert_allclose(even, 1 / 500)
    assert khat < 0.5


# The fast fit


def test_census_has_no_uncertainty(fit):
    pop = world(records=800)
    sample = eb.Sample(pop.units, eb.UniformClusters(population=pop.true.nunique()))
    found = bayes.fast(sample, rng=rng())
    draws = found.apply(found.metrics)
    wanted = oracle.truth(pd.factorize(pop.true)[0].tolist(), pd.factorize(pop.pred)[0].tolist())
    assert {"pairwise-precision", "pairwise-recall", "entities", "cluster-precision", "cluster-recall", "b3-recall",
            "hill1", "hill2"} <= set(draws.names)  # fmt: skip
    for name, mean, sd in zip(draws.names, draws.mean, draws.sd, strict=True):
        assert mean == pytest.approx(wanted[name], rel=1e-9)
        assert sd < 1e-9 * max(mean, 1)
    shift = found.table().prior_shift
    assert (shift < 0.01).all()


@pytest.mark.parametrize("draw", [clusters, by_records])
@pytest.mark.parametrize("errors", [NOISE, LUMPS])
def test_samples_cover_the_truth(errors, draw):
    pop, hits, wide = world(errors), np.zeros(2), []
    truth = np.array([pop.value(P), pop.value(R)])
    for seed in range(12):
        low, high = bayes.fast(draw(100, seed + 50, pop), rng=rng(seed), draws=500).apply([P, R]).interval().T
        hits += (low <= truth) & (truth <= high)
        wide.append(high - low)
    assert (hits >= 9).all()  # P(fewer than 9 of 12) is 2e-3 at a coverage of .95
    assert (np.mean(wide, axis=0) < 0.3).all()


@pytest.mark.study
@pytest.mark.parametrize("draw", [clusters, by_records])
@pytest.mark.parametrize("errors", [NOISE, LUMPS, Misattribution(0.03), Splits(0.3)])
def test_coverage(errors, draw):
    pop = world(errors)
    truth = np.array([pop.value(P), pop.value(R)])
    ends = [bayes.fast(draw(100, seed + 1000, pop), rng=rng(seed)).apply([P, R]).interval() for seed in range(100)]
    share = np.mean([(e[:, 0] <= truth) & (truth <= e[:, 1]) for e in ends], axis=0)
    print(errors, draw.__name__, "coverage of P, R", share)
    assert (share >= 0.88).all()  # P(fewer than 88 of 100) is 2e-3 at a coverage of .95


def test_totals_hold_the_known_ones(fit):
    pop = world()
    for column in (RECORDS, PREDICTED_LINKS):
        assert (fit.total(column) == pop.total(column)).all()
    common, true = fit.total(COMMON_LINKS), fit.total(TRUE_LINKS)
    assert fit.total(COMMON_LINKS).shape == (1, 1000)
    found = fit.population
    np.testing.assert_allclose(common, found.common / (found.common + found.false) * pop.total(PREDICTED_LINKS), rtol=1e-12)
    np.testing.assert_allclose(fit.apply([P]).values[..., 0], found.common / (found.common + found.false), rtol=1e-12)
    np.testing.assert_allclose(fit.apply([R]).values[..., 0], found.common / found.true, rtol=1e-12)
    assert (common <= true).all()
    records = (fit.by_size["entities"] * fit.evidence.grid.size).sum(-1)
    np.testing.assert_allclose(records, 4000, rtol=1e-9)
    assert (fit.total(COLUMNS[4]) >= len(fit.sample.units)).all()


def test_every_total_is_near_the_truth(fit):
    """Poisson noise of the realised population may not hide what is known: all records are N."""
    pop, sizes = world(), np.unique(world().true, return_counts=True)[1]
    draws = fit.apply(fit.metrics)
    z = {n: (mean - pop.value(metric)) / sd for n, mean, sd, metric in
         zip(draws.names, draws.mean, draws.sd, fit.metrics, strict=True)}  # fmt: skip
    assert max(map(abs, z.values())) < 4
    # entities that hold most records are intact or nearly so: recall of a record is known to a few percent
    assert draws.sd[draws.names.index("b3-recall")] < 0.03
    assert (draws.flat[:, draws.names.index("b3-recall")] <= 1).all()
    assert sizes.sum() == 4000


def test_the_same_seed_gives_the_same(fit):
    again, other = (bayes.fast(clusters(60, 1), rng=rng(seed)) for seed in (1, 2))
    np.testing.assert_array_equal(again.apply([P, R]).values, fit.apply([P, R]).values)
    assert (other.apply([P, R]).values != fit.apply([P, R]).values).any()
    np.testing.assert_allclose(other.apply([P, R]).mean, fit.apply([P, R]).mean, atol=0.2 * fit.apply([P, R]).sd.min())


def test_another_prior_and_sample_need_no_compilation(fit, monkeypatch):
    def refuse(*_):
        raise AssertionError("compiled again")

    monkeypatch.setattr(import_module("erbayes.bayes.fast"), "CompiledPart", refuse)
    rigid = bayes.SizeModel(bayes.PredictionInformed(slope=0.001, amplitude=0.001))
    found = bayes.fast(fit.sample, rigid, rng=rng())
    spread = [np.log(f.by_size["entities"]).std(axis=1).mean() for f in (found, fit)]
    assert spread[0] < 0.05 * spread[1]
    for sample in (by_records(40, 9), eb.Sample(fit.sample.units, BySize(np.sqrt))):
        assert bayes.fast(sample, rng=rng()).population.true.shape == (1, 1000)
    with pytest.raises(AssertionError, match="compiled again"):
        bayes.fast(fit.sample, bayes.SizeModel(bayes.BodyAndTail(13)), rng=rng())


@pytest.mark.parametrize("metric, column", [(m.merges, "pieces"), (m.b3_precision, "b3_precision"),
    (m.inverse_purity, "largest_piece"), (m.v_measure(), "n_log_n"), (m.purity, "largest_piece_predicted")])  # fmt: skip
def test_metrics_that_no_part_produces(fit, metric, column):
    with pytest.raises(eb.NotIdentified, match=f"says anything of '{column}': use taylor or the bootstrap"):
        fit.apply([P, metric])
    assert not fit.identifies(metric) and metric not in fit.metrics


def test_columns_of_size_alone_are_those_that_no_prediction_changes():
    g, true = rng(), world().true
    codes = [g.integers(0, k, len(true)) for k in (3, 700)]
    units = [eb.measure(pd.Series(c, true.index), true) for c in codes]
    for column in COLUMNS:
        same = column.identified(units[0]) and np.allclose(*(u.column(column) for u in units), rtol=1e-12)
        assert by_size_alone(column) == (same and column != RECORDS), column.name
    assert by_size_alone(m.hill_number(2).columns[0])


def test_table(fit):
    found = fit.table(0.9)
    assert list(found.columns) == ["estimate", "sd", "lower", "upper", "level", "prior_shift"]
    assert list(found.index) == [x.name for x in fit.metrics]
    assert ((found.lower < found.estimate) & (found.estimate < found.upper)).all()
    assert np.isfinite(found).all(axis=None) and (found.level == 0.9).all()
    values = fit.apply([P]).flat[:, 0]
    wanted = [values.mean(), values.std(ddof=1), *np.quantile(values, [0.05, 0.95])]
    np.testing.assert_allclose(found.loc[P.name, ["estimate", "sd", "lower", "upper"]].astype(float), wanted, rtol=1e-9)


def test_weight_of_the_prior(fit):
    draws = fit.apply([P, R])
    for k, shift in enumerate(fit.prior_shift(draws)):
        x, prior = draws.flat[:, k], fit.log_prior.ravel()
        moved = []
        for power in (-0.5, 1.0):
            w = np.exp(power * (prior - prior.mean()))
            moved.append(abs(w @ x / w.sum() - x.mean()) / x.std(ddof=1))
        assert shift == pytest.approx(max(moved), abs=0.1)


def test_log_likelihood_of_each_entity(fit):
    e, d = fit.evidence.entities, fit.evidence.data
    found = fit.tree["log_likelihood"]["outcome"].to_numpy()
    assert found.shape == (1, 1000, 60)
    for k in (0, 700):
        by = {name: v[0, k] for name, v in fit.by_size.items()}
        chance = by["entities"] * d["selection"] / (by["entities"] @ d["selection"])
        for i in range(60):
            j = e.bin[i]
            wanted = e.draws[i] * np.log(chance[j]) + stats.bernoulli(by["met"][j]).logpmf(e.foreign[i] > 0)
            if e.size[i] > 1:
                intact = e.links[i] == e.size[i] * (e.size[i] - 1) / 2
                wanted += stats.bernoulli(by["intact"][j]).logpmf(intact)
                if not intact and e.size[i] > 2:
                    mean, precision = by["share_mean"][j], by["share_precision"][j]
                    wanted += stats.beta(mean * precision, (1 - mean) * precision).logpdf(e.share[i])
            assert found[0, k, i] == pytest.approx(wanted, rel=1e-9)


def test_tree_is_saved_and_read(fit, tmp_path):
    pytest.importorskip("h5netcdf")
    path = tmp_path / "fit.nc"
    fit.save(str(path))
    with xr.open_datatree(path) as again:
        assert {"posterior", "log_likelihood", "observed_data", "constant_data"} <= set(again.children)
        np.testing.assert_array_equal(again["posterior"]["metrics"], fit.apply(fit.metrics).values)
        assert list(again["posterior"]["metric"].to_numpy()) == [x.name for x in fit.metrics]
        np.testing.assert_array_equal(again["observed_data"]["size"], fit.sample.units.size)


@pytest.mark.filterwarnings("default")
def test_bad_weights_are_told(fit, monkeypatch):
    monkeypatch.setattr("erbayes.bayes.fit.KHAT", -10.0)
    with pytest.warns(bayes.NotConverged, match=r"Pareto k of sizes \S+, retention .*, above -10.0\): use nuts"):
        bayes.fast(fit.sample, rng=rng())
    monkeypatch.setattr("erbayes.bayes.fit.KHAT", 10.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bayes.fast(fit.sample, rng=rng())


# Simulation-based calibration

DATA_OF = {"drawn_sizes": "drawn", "kept_shares": "shares", "met_entities": "met", "intrusion_counts": "intrusions"}


def of_size(by, grid):
    """What a part's posterior is ranked by."""
    s, out = grid.size, []
    at = [np.searchsorted(s, v) for v in (2, 6, 40)]
    for name in ("intact", "kept", "share_precision", "met", "foreign", "clean"):
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
    part = pick(model)
    simulated, by = model.part(part, evidence)
    seen = [v.name for v in simulated.observed_RVs]
    drawn = pm.draw([*by.values(), *(simulated[v] for v in seen)], simulations, random_seed=seed, mode=PLAIN)
    truth = of_size(dict(zip(by, drawn, strict=False)), evidence.grid)
    observed = dict(zip(seen, drawn[len(by) :], strict=True))
    compiled, g, d = CompiledPart(model, part, evidence), rng(seed), evidence.data
    found, khat = [], []
    for i in range(simulations):
        new = {DATA_OF[k]: v[i] for k, v in observed.items() if k in DATA_OF}
        if "broken_entities" in observed:
            new["intact"] = d["several"] - observed["broken_entities"][i]
        if "stained_entities" in observed:
            new["clean"] = d["intact_all"] - observed["stained_entities"][i]
        fitted = compiled.fit(d | new, 10 * draws + 10, g)
        posterior = of_size(fitted.by_size, evidence.grid)[10::10]
        ties = (posterior == truth[i]).sum(axis=0)
        found.append((posterior < truth[i]).sum(axis=0) + g.integers(0, ties + 1))
        khat.append(fitted.khat)
    return np.array(found), np.array(khat)


def uniformity(rank, draws=99, bins=10):
    """p-values by chi-square, and largest distance of the ECDF from the line in units of its simultaneous band."""
    observed = np.stack([np.histogram(r, bins, (0, draws + 1))[0] for r in rank.T])
    p = stats.chisquare(observed, axis=1).pvalue
    off = np.array([stats.kstest((r + 0.5) / (draws + 1), "uniform").statistic for r in rank.T])
    return p, off / stats.kstwo(len(rank)).ppf(0.999)


def sizes(model):
    return model.entities


PARTS = {
    **{type(f).__name__: (sizes, bayes.SizeModel(f)) for f in (
        bayes.PredictionInformed(), bayes.NegativeBinomial(), bayes.LogNormal(), bayes.PoissonLogNormal(),
        bayes.Zeta(), bayes.CutZeta(), bayes.BodyAndTail())},
    "Retention": (lambda model: model.retention.given_size, bayes.SizeModel()),
    "Leakage": (lambda model: model.leakage.given_size, bayes.SizeModel()),
    "Exactness": (lambda model: model.exactness.given_size, bayes.SizeModel()),
}  # fmt: skip


def test_calibration_and_refits_of_one_part():
    model = bayes.SizeModel(bayes.Zeta())
    rank, khat = ranks(sizes, model, 60)
    p, off = uniformity(rank, bins=5)
    assert (p > 1e-3).all() and (off < 1).all()
    assert (khat < 0.7).all()


@pytest.mark.study
@pytest.mark.parametrize("name", PARTS)
def test_calibration(name):
    rank, khat = ranks(*PARTS[name], 500)
    p, off = uniformity(rank)
    print(name, "chi-square", p.round(4), "ECDF", off.round(2), "k-hat > .7:", (khat > 0.7).mean(), "max", khat.max().round(2))
    level = 1e-3 / rank.shape[1]
    assert (p > level).all() and (off < 1.2).all()


def test_refit_under_another_prior_is_a_fresh_fit():
    evidence, other = Evidence.of(clusters(100, 11)), Evidence.of(by_records(30, 4))
    wide, narrow = (bayes.SizeModel(bayes.Zeta(v)) for v in (0.6, 0.05))
    fresh = CompiledPart(narrow, narrow.entities, other)
    used = CompiledPart(wide, wide.entities, evidence)
    used.fit(evidence.data, 200, rng(3))
    assert set(narrow.priors(evidence)) >= {"size_log_excess_sd"} and narrow.priors(evidence)["size_log_excess_sd"] == 0.05
    again = used.fit(other.data | narrow.priors(other), 500, rng(5)).by_size["entities"]
    np.testing.assert_allclose(again, fresh.fit(other.data, 500, rng(5)).by_size["entities"], rtol=1e-4)


# NUTS


@pytest.mark.study
def test_nuts_agrees_with_the_fast_fit(fit):
    off = []
    for seed, draw in ((1, clusters), (2, clusters), (3, by_records), (4, by_records)):
        sample = draw(100, seed + 200)
        slow = bayes.nuts(sample, rng=rng(seed), draws=2500, chains=4, cores=2, progressbar=False)
        assert slow.problems() == []
        quick = bayes.fast(sample, rng=rng(seed), draws=10_000)
        a, b = slow.apply([P, R]), quick.apply([P, R])
        off.append((b.interval() - a.interval()) / a.sd[:, None])
        print(draw.__name__, "ends of P, R off by", off[-1].round(3).tolist(), "sd; k-hat", quick.khat)
    assert np.abs(off).max() < 0.15
