"""The size model with a second clustering: matches by sets of records, links by plain loops, truth and nonsense."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import erbayes as eb
from erbayes import bayes
from erbayes import metrics as m
from erbayes.bayes.contract import DATA, SECOND_DATA, coords
from erbayes.bayes.evidence import Evidence
from erbayes.bayes.population import Links, completed, unsampled
from erbayes.simulate import LogNormal, Misattribution, PitmanYor, population

pytestmark = pytest.mark.filterwarnings("ignore::erbayes.bayes.NotConverged")
P, R = m.pairwise_precision, m.pairwise_recall
RECORDS = 20_000


@cache
def world():
    """Entities, a prediction that splits those of more than 30 records, and the value of recall."""
    rng = np.random.default_rng(5)
    truth = population(LogNormal(0.5, 1.5), RECORDS, rng)
    codes = truth.to_numpy()
    pieces = np.empty(len(codes), dtype=np.int64)
    for code, size in enumerate(np.bincount(codes)):
        of_piece = PitmanYor(1.0, 0.1).draw(int(size), rng) if size > 30 else np.array([size])
        pieces[codes == code] = rng.permutation(np.repeat(np.arange(len(of_piece)), of_piece))
    prediction = pd.Series(pd.factorize(codes * 10_000 + pieces)[0], index=truth.index)
    whole = pd.DataFrame({"t": codes, "p": prediction.to_numpy()})
    kept = sum(n * (n - 1) / 2 for n in whole.groupby(["t", "p"]).size())
    return truth, prediction, kept / sum(n * (n - 1) / 2 for n in whole.groupby("t").size())


def noisy(rate, seed=1):
    truth = world()[0]
    return pd.Series(Misattribution(rate).apply(truth.to_numpy(), np.random.default_rng(seed)), truth.index)


def shuffled(seed=1):
    truth = world()[0]
    return pd.Series(np.random.default_rng(seed).permutation(truth.to_numpy()), truth.index)


def labels(seed, n=100):
    truth = world()[0]
    chosen = np.random.default_rng(seed).choice(truth.nunique(), n, replace=False)
    return truth[truth.isin(chosen)]


def sample(seed, n=100):
    return eb.Sample(eb.measure(world()[1], labels(seed, n)), eb.UniformClusters())


def fitted(seed, second, n=100, **kwargs):
    model = bayes.SizeModel(second=eb.Second.of(world()[1], labels(seed, n), second), **kwargs)
    return bayes.fast(sample(seed, n), model, rng=seed)


# Counts


def sets(clusters):
    return {c: set(r) for c, r in clusters.groupby(clusters).groups.items()}


def test_matches_and_clusters_left_are_those_of_sets_of_records():
    second, at = noisy(0.15), sample(3)
    evidence = Evidence.of(at, second=eb.Second.of(world()[1], labels(3), second))
    entities, clusters, predicted = sets(labels(3)), sets(second), sets(world()[1])
    of_record = {r: k for k, records in predicted.items() for r in records}
    matched, left = {}, {}
    for c, records in clusters.items():
        touching = {e: entity & records for e, entity in entities.items() if entity & records}
        near = [e for e, both in touching.items() if len(both) / len(entities[e] | records) > 0.5]
        assert len(near) < 2
        if near:
            matched[near[0]] = c
        elif sum(map(len, touching.values())) < len(records) / 2:
            left[c] = records
    assert 60 < len(matched) < 100
    assert evidence.matched.known.tolist() == [e in matched for e in at.units.ids]
    grid, data = evidence.grid, evidence.data

    def by_bin(value, some):
        out = np.zeros(len(grid.size))
        for records in some.values():
            out[grid.bin(np.array([float(len(records))]))[0]] += value(records)
        return out

    def common(records):
        return sum(n * (n - 1) / 2 for n in pd.Series([of_record[r] for r in records]).value_counts())

    def foreign(records):
        return sum(len(predicted[of_record[r]] - records) for r in records)

    every = {
        "second": (lambda r: 1, clusters),
        "second_records": (len, clusters),
        "left": (lambda r: 1, left),
    }
    every |= {"left_records": (len, left), "left_true": (lambda r: len(r) * (len(r) - 1) / 2, left)}
    every |= {"left_common": (common, left), "left_foreign": (foreign, left)}
    every |= {"matched": (lambda r: 1, {e: clusters[c] for e, c in matched.items()})}
    for name, (value, some) in every.items():
        np.testing.assert_allclose(data[name], by_bin(value, some), err_msg=name)
    # errors of entities that match no cluster are the data of the other parts
    others = {e: entities[e] for e in entities if e not in matched}
    np.testing.assert_array_equal(data["entities"], by_bin(lambda r: 1, others))
    np.testing.assert_array_equal(data["met"], by_bin(lambda r: foreign(r) > 0, others))
    largest = grid.bin(np.array([max(len(clusters[c]) for c in matched.values())]))[0]
    np.testing.assert_array_equal(data["out_of_reach"], np.arange(len(grid.size)) > largest)


def test_differences_of_pairs_by_leaving_each_out():
    second, entities = noisy(0.1), sets(labels(3))
    data = Evidence.of(sample(3), second=eb.Second.of(world()[1], labels(3), second)).data
    clusters, predicted = sets(second), sets(world()[1])
    of_record = {r: k for k, records in predicted.items() for r in records}
    rows, changed, records_of = [], 1, 1
    for entity in entities.values():
        near = [c for c in clusters.values() if len(entity & c) / len(entity | c) > 0.5]
        for cluster in near:
            row = []
            for s in (entity, cluster):
                n = pd.Series([of_record[r] for r in s]).value_counts()
                all_predicted = sum(len(predicted[of_record[r]]) - 1 for r in s) / 2
                row += [len(s) * (len(s) - 1) / 2, (n * (n - 1) / 2).sum(), all_predicted]
            rows.append(row)
            changed, records_of = changed + len(entity ^ cluster), records_of + len(entity)
    x = np.array(rows)

    def three(y):
        t, f, p, T, F, Q = y.sum(axis=0)
        return np.array([np.log(t / T), np.log(f / t) - np.log(F / T), ((p - f) - (Q - F)) / Q])

    out = np.array([three(np.delete(x, i, axis=0)) for i in range(len(x))])
    variance = (len(x) - 1) * out.var(axis=0) + (0.5 / len(x)) ** 2
    np.testing.assert_allclose(data["pair_difference"], three(x), rtol=1e-9)
    np.testing.assert_allclose(data["pair_error"], np.sqrt(variance), rtol=1e-9)
    assert data["pair_change"] == pytest.approx(changed / records_of)


def test_the_data_are_those_of_the_dictionary():
    data = Evidence.of(sample(3), second=eb.Second.of(world()[1], labels(3), noisy(0.1))).data
    assert set(data) == set(DATA) | set(SECOND_DATA)
    lengths = {dim: len(values) for dim, values in coords(data).items()}
    for name, datum in SECOND_DATA.items():
        assert np.shape(data[name]) == tuple(lengths[dim] for dim in datum.dims), name


def test_other_labels_are_refused():
    second = eb.Second.of(world()[1], labels(3), noisy(0.1))
    with pytest.raises(eb.DataError, match="was not counted with the prediction and the labels"):
        bayes.fast(sample(4), bayes.SizeModel(second=second))


def test_a_second_clustering_that_is_not_counted_is_refused():
    with pytest.raises(eb.DataError, match=r"is counted by Second.of\(prediction, labels, by\), not Series"):
        bayes.SizeModel(second=noisy(0.1))


# Populations


def by_hand():
    data = {
        "size": np.array([1.0, 4.0, 10.0]),
        "selection": np.ones(3),
        "draws": 5,
        "repeats": 1.0,
        "fixed_size": 1.0,
        "records": 900.0,
        "predicted_links": 900.0,
        "sampled_records": 40.0,
        "sampled_true_links": 70.0,
        "sampled_common_links": 50.0,
        "sampled_foreign": 36.0,
        "second": np.array([50, 30, 20]),
        "left": np.array([40.0, 25.0, 12.0]),
        "left_records": np.array([40.0, 110.0, 130.0]),
        "left_true": np.array([0.0, 170.0, 600.0]),
        "left_common": np.array([0.0, 120.0, 250.0]),
        "left_foreign": np.array([10.0, 90.0, 200.0]),
    }
    by_size = {
        "entities": np.array([[300.0, 60.0, 36.0]]),
        "intact": np.array([[1.0, 0.3, 0.2]]),
        "kept": np.array([[1.0, 0.7, 0.4]]),
        "kept_square": np.array([[1.0, 0.6, 0.3]]),
        "foreign": np.array([[0.1, 0.5, 0.8]]),
        "foreign_square": np.array([[0.4, 1.0, 1.5]]),
        "stands": np.array([[0.9, 0.7, 0.4]]),
        "stands_true": np.array([[1.0, 1.1, 1.2]]),
        "stands_kept": np.array([[1.0, 0.9, 2.5]]),
        "stands_foreign": np.array([[0.0, 0.1, -0.5]]),
    }
    return by_size, data


def one_by_one(draws):
    """Populations whose clusters stand or not, each on its own: true, common and false links, and records."""
    by, data = by_hand()
    rng, out = np.random.default_rng(2), np.zeros((draws, 4))
    for j in range(3):
        n = data["left"][j]
        true = data["left_true"][j] / n * by["stands_true"][0, j]
        share = data["left_common"][j] / max(data["left_true"][j], 1) * by["stands_kept"][0, j]
        predicted = (2 * data["left_common"][j] + data["left_foreign"][j]) / n
        foreign = max(data["left_foreign"][j] / n + by["stands_foreign"][0, j] * predicted, 0)
        for _ in range(int(n)):
            stands = rng.random(draws) < by["stands"][0, j]
            worth = np.array([true, true * min(share, 1), foreign / 2, data["left_records"][j] / n])
            out += stands[:, None] * worth
    return out


def test_links_of_standing_clusters_by_single_clusters():
    by, data = by_hand()
    rest = unsampled(by["entities"], data, by["stands"])
    ordinary = {k: v for k, v in by.items() if not k.startswith("stands")}
    plain, found = Links.of(rest, ordinary, data), Links.of(rest, by, data)
    clusters = one_by_one(40_000)
    np.testing.assert_allclose(
        [(found.true - plain.true)[0], (found.common - plain.common)[0], (found.false - plain.false)[0]],
        clusters.mean(axis=0)[:3],
        rtol=0.01,
    )
    cov = np.cov(clusters.T)
    assert (found.common_variance - plain.common_variance)[0] == pytest.approx(cov[1, 1], rel=0.05)
    assert (found.false_variance - plain.false_variance)[0] == pytest.approx(cov[2, 2], rel=0.05)
    assert (found.covariance - plain.covariance)[0] == pytest.approx(cov[1, 2], rel=0.06)
    # the records of the rest, and those of the clusters and the sample, are all
    assert rest[0] @ data["size"] == pytest.approx(900 - 40 - clusters[:, 3].mean(), rel=0.01)


def test_completed_populations_keep_all_records():
    by, data = by_hand()
    many = {k: np.broadcast_to(v, (4000, 3)) for k, v in by.items()}
    found = completed(many, data, np.random.default_rng(1), tries=1)
    p, left = by["stands"][0], data["left"]
    np.testing.assert_allclose(found.standing.mean(axis=0), left * p, rtol=0.02)
    np.testing.assert_allclose(found.standing.var(axis=0), left * p * (1 - p), rtol=0.1)
    records = found.number @ data["size"] + found.standing @ (data["left_records"] / left)
    assert records.mean() == pytest.approx(900 - 40, rel=0.01)
    # entities of the rest replace clusters that do not stand
    assert np.corrcoef(found.number @ data["size"], found.standing @ data["left_records"])[0, 1] < -0.3
    links = Links.of(unsampled(by["entities"], data, by["stands"]), by, data)
    assert found.true.mean() == pytest.approx(links.true[0], rel=0.02)
    assert found.common.mean() == pytest.approx(links.common[0], rel=0.02)
    assert found.false.mean() == pytest.approx(links.false[0], rel=0.03)
    # the expected variance leaves out that rest and clusters replace each other, and so is a little too large
    assert 0.75 < (found.common + found.false).var() / links.variance[0] < 1


# Fits


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_truth_as_second_clustering_makes_a_tight_posterior(seed):
    fit, plain = fitted(seed, world()[0]), bayes.fast(sample(seed), rng=seed)
    (low, high), wide = fit.apply(R).interval(0.95)[0], np.ptp(plain.apply(R).interval(0.95))
    assert low < world()[2] < high
    assert high - low < min(0.2, wide / 2)
    assert fit.apply(R).mean[0] == pytest.approx(world()[2], abs=0.05)


def test_noise_in_the_second_clustering_is_learned():
    """Noise of .1 loses a fifth of the links: its own count of recall is far off, the posterior is not."""
    second = noisy(0.1)
    counted = eb.Second.of(world()[1], labels(1), second).value(R)
    assert abs(counted - world()[2]) > 0.05
    inside = []
    for seed in range(6):
        low, high = fitted(seed, second).apply(R).interval(0.95)[0]
        inside.append(low < world()[2] < high)
    assert sum(inside) >= 5


@pytest.mark.parametrize("seed", [1, 2])
def test_a_second_clustering_of_no_use_leaves_the_ordinary_model(seed):
    fit, plain = fitted(seed, shuffled()), bayes.fast(sample(seed), rng=seed)
    assert not fit.evidence.matched.used and not fit.population.standing.any()
    assert (fit.table().by_second == 0).all()
    assert "nothing is taken from it" in fit.explain()
    for metric in (P, R):
        one, other = fit.apply(metric).flat.ravel(), plain.apply(metric).flat.ravel()
        assert stats.ks_2samp(one, other).statistic < 0.1
    for name in ("entities", "kept"):  # the grids agree up to 1,000 records
        ours, plains = (np.log(f.by_size[name][..., :50]).mean(axis=(0, 1)) for f in (fit, plain))
        np.testing.assert_allclose(ours, plains, atol=0.35)


def test_what_rests_on_the_second_clustering_is_said():
    fit = fitted(2, noisy(0.02))
    table = fit.table(metrics=[P, R])
    share = fit.by_second.sum(-1)
    assert (table.by_second == share.mean()).all() and share.mean() > 0.5
    text = fit.explain()
    assert "The second clustering 'second' has" in text and "match one: more than half of the" in text
    assert "by_second" not in bayes.fast(sample(2), rng=1).table()
    assert any("take precision from SizeModel() alone" in a for a in fit.alarms)
    (alarm,) = [a for a in fit.alarms if "rests on the second clustering 'second'" in a]
    assert "UniformRecords" in alarm


def test_all_metrics_and_files_take_it(tmp_path):
    fit = fitted(2, noisy(0.02))
    table = fit.table(metrics=[x for x in eb.ALL if fit.identifies(x)])
    assert table[["estimate", "lower", "upper"]].notna().all(axis=None)
    assert table.estimate["b3-recall"] == pytest.approx(
        eb.measure(world()[1], world()[0]).column(m.b3_recall.columns[0]).sum() / RECORDS, abs=0.08
    )
    fit.save(tmp_path / "fit.nc")
    saved = bayes.Fit.load(tmp_path / "fit.nc")
    pd.testing.assert_series_equal(saved.table().estimate, fit.table().estimate)
    checks = fit.predictive(draws=50, rng=1)
    assert set(checks["prior_predictive"].data_vars) == set(checks["observed_data"].data_vars)
    n = fit.log_likelihood()
    assert n.shape[-1] == 100 and np.isfinite(n).all()


def test_engines_of_other_second_clusterings_differ_in_studies():
    one, other = (
        bayes.Modelled(bayes.SizeModel(second=eb.Second.of(world()[1], labels(1), s)))
        for s in (noisy(0.02), noisy(0.02, 2))
    )
    assert repr(one) != repr(other)


@pytest.mark.study
def test_nuts_agrees_with_the_fast_fit():
    second = eb.Second.of(world()[1], labels(2), noisy(0.05))
    model = bayes.SizeModel(second=second)
    slow = bayes.nuts(sample(2), model, draws=1000, chains=2, cores=1, rng=1, progressbar=False)
    quick = bayes.fast(sample(2), model, draws=2000, rng=1)
    for metric in (P, R):
        one, other = slow.apply(metric), quick.apply(metric)
        assert abs(one.mean - other.mean)[0] < 0.25 * one.sd[0]
        assert one.sd[0] == pytest.approx(other.sd[0], rel=0.25)
    for name in ("stands", "stands_kept"):
        a, b = slow.by_size[name], quick.by_size[name]
        np.testing.assert_allclose(a.mean(axis=(0, 1)), b.mean(axis=(0, 1)), atol=0.05)


@pytest.mark.study
def test_intervals_keep_their_promise():
    """40 samples, a second clustering with noise: coverage of recall, and half the width of the ordinary model."""
    inside, width, wide = [], [], []
    for seed in range(40):
        low, high = fitted(seed, noisy(0.02)).apply(R).interval(0.95)[0]
        inside.append(low < world()[2] < high)
        width.append(high - low)
        wide.append(np.ptp(bayes.fast(sample(seed), rng=seed).apply(R).interval(0.95)))
    assert np.mean(inside) >= 0.9
    assert np.mean(width) < np.mean(wide) / 2
