"""The size model with a second clustering: matches by sets of records, links by plain loops, truth and nonsense."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from populations import PitmanYor
from scipy import special, stats

import erbayes as eb
from erbayes import bayes
from erbayes import metrics as m
from erbayes._internal.arrays import generator
from erbayes.bayes import PredictionInformed
from erbayes.bayes.contract import DATA, SECOND_DATA, coords
from erbayes.bayes.evidence import Evidence
from erbayes.bayes.laws import compiled
from erbayes.bayes.model import WithSecond
from erbayes.bayes.parts import PartDraws, own_model
from erbayes.bayes.population import Links, completed, given, unsampled
from erbayes.bayes.samplers import Importance
from erbayes.study.populations import LogNormal, Misattribution, population

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::erbayes.bayes.NotConverged")]
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


def fitted(seed, second, n=100, draws=1000, **kwargs):
    model = bayes.SizeModel(second=eb.auxiliary.Second.of(world()[1], labels(seed, n), second), **kwargs)
    return bayes.fast(sample(seed, n), model, draws=draws, rng=seed)


# Counts


def sets(clusters):
    return {c: set(r) for c, r in clusters.groupby(clusters).groups.items()}


def test_matches_and_clusters_left_are_those_of_sets_of_records():
    second, at = noisy(0.15), sample(3)
    evidence = Evidence.of(at, second=eb.auxiliary.Second.of(world()[1], labels(3), second))
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
    guests = {c: 0 for c in clusters}
    for e, entity in entities.items():
        for c in [] if e in matched else clusters:
            guests[c] += 2 * len(entity & clusters[c]) > len(entity)
    assert sum(guests[c] for c in left) > 2

    def by_bin(value, some):
        out = np.zeros(len(grid.size))
        for records in some.values():
            out[grid.bin(np.array([float(len(records))]))[0]] += value(records)
        return out

    def common(records):
        return sum(n * (n - 1) / 2 for n in pd.Series([of_record[r] for r in records]).value_counts())

    def foreign(records):
        return sum(len(predicted[of_record[r]] - records) for r in records)

    every = {"second": (lambda r: 1, clusters), "second_records": (len, clusters)}
    every |= {"matched": (lambda r: 1, {e: clusters[c] for e, c in matched.items()})}
    of_left = {"left": lambda r: 1, "left_records": len, "left_common": common}
    of_left |= {"left_true": lambda r: len(r) * (len(r) - 1) / 2}
    untouched, touched = (
        {c: r for c, r in left.items() if bool(guests[c]) == some} for some in (False, True)
    )
    for name, value in of_left.items():
        both = [by_bin(value, some) for some in (untouched, touched)]
        np.testing.assert_allclose(data[name], np.concatenate(both), err_msg=name)
    number = by_bin(lambda r: guests[next(c for c in left if left[c] is r)], touched)
    np.testing.assert_allclose(data["guests"], np.concatenate([0 * number, number]))
    assert data["guest_rate"] == pytest.approx(100 / RECORDS)
    of_matched = [(entities[e], clusters[c]) for e, c in matched.items()]
    shares = (1 + sum(len(c - e) for e, c in of_matched)) / (2 + sum(len(c) for _, c in of_matched))
    assert data["foreign_share"] == pytest.approx(shares)
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
    data = Evidence.of(sample(3), second=eb.auxiliary.Second.of(world()[1], labels(3), second)).data
    clusters, predicted = sets(second), sets(world()[1])
    of_record = {r: k for k, records in predicted.items() for r in records}
    rows, changed, records_of = [], 1, 1
    for entity in entities.values():
        near = [c for c in clusters.values() if len(entity & c) / len(entity | c) > 0.5]
        for cluster in near:
            row = []
            for s in (entity, cluster):
                n = pd.Series([of_record[r] for r in s]).value_counts()
                row += [len(s) * (len(s) - 1) / 2, (n * (n - 1) / 2).sum()]
            rows.append(row)
            changed, records_of = changed + len(entity ^ cluster), records_of + len(entity)
    x = np.array(rows)

    def two(y):
        t, f, T, F = y.sum(axis=0)
        return np.array([np.log(t / T), np.log(f / t) - np.log(F / T)])

    out = np.array([two(np.delete(x, i, axis=0)) for i in range(len(x))])
    variance = (len(x) - 1) * out.var(axis=0) + (0.5 / len(x)) ** 2
    np.testing.assert_allclose(data["pair_difference"], two(x), rtol=1e-9)
    np.testing.assert_allclose(data["pair_error"], np.sqrt(variance), rtol=1e-9)
    assert data["pair_change"] == pytest.approx(changed / records_of)


def test_the_data_are_those_of_the_dictionary():
    data = Evidence.of(sample(3), second=eb.auxiliary.Second.of(world()[1], labels(3), noisy(0.1))).data
    assert set(data) == set(DATA) | set(SECOND_DATA)
    lengths = {dim: len(values) for dim, values in coords(data).items()}
    for name, datum in SECOND_DATA.items():
        assert np.shape(data[name]) == tuple(lengths[dim] for dim in datum.dims), name


def test_other_labels_are_refused():
    second = eb.auxiliary.Second.of(world()[1], labels(3), noisy(0.1))
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
        "left": np.array([40.0, 22.0, 8.0, 0.0, 3.0, 4.0]),
        "left_records": np.array([40.0, 98.0, 90.0, 0.0, 12.0, 40.0]),
        "left_true": np.array([0.0, 150.0, 420.0, 0.0, 20.0, 180.0]),
        "left_common": np.array([0.0, 110.0, 170.0, 0.0, 10.0, 80.0]),
    }
    by_size = {
        "entities": np.array([[300.0, 60.0, 36.0]]),
        "intact": np.array([[1.0, 0.3, 0.2]]),
        "kept": np.array([[1.0, 0.7, 0.4]]),
        "kept_square": np.array([[1.0, 0.6, 0.3]]),
        "foreign": np.array([[0.1, 0.5, 0.8]]),
        "foreign_square": np.array([[0.4, 1.0, 1.5]]),
        "stands": np.array([[0.9, 0.7, 0.4]]),
        "stands_left": np.array([[0.9, 0.8, 0.6, 0.9, 0.4, 0.1]]),
        "stands_true": np.array([[1.0, 1.1, 1.2] * 2]),
        "stands_kept": np.array([[1.0, 0.9, 2.5] * 2]),
    }
    return by_size, data


def one_by_one(draws):
    """Populations whose clusters stand or not, each on its own: true and common links, and records."""
    by, data = by_hand()
    rng, out = np.random.default_rng(2), np.zeros((draws, 3))
    for j in np.flatnonzero(data["left"]):
        n = data["left"][j]
        true = data["left_true"][j] / n * by["stands_true"][0, j]
        share = data["left_common"][j] / max(data["left_true"][j], 1) * by["stands_kept"][0, j]
        for _ in range(int(n)):
            stands = rng.random(draws) < by["stands_left"][0, j]
            worth = np.array([true, true * min(share, 1), data["left_records"][j] / n])
            out += stands[:, None] * worth
    return out


def test_links_of_standing_clusters_by_single_clusters():
    by, data = by_hand()
    rest = unsampled(by, data)
    ordinary = {k: v for k, v in by.items() if not k.startswith("stands")}
    plain, found = Links.of(rest, ordinary, data), Links.of(rest, by, data)
    clusters = one_by_one(40_000)
    np.testing.assert_allclose(
        [(found.true - plain.true)[0], (found.common - plain.common)[0]],
        clusters.mean(axis=0)[:2],
        rtol=0.01,
    )
    variance = clusters[:, 1].var()
    assert (found.common_variance - plain.common_variance)[0] == pytest.approx(variance, rel=0.05)
    assert found.false == plain.false and found.false_variance == plain.false_variance
    # the records of the rest, and those of the clusters and the sample, are all
    assert rest[0] @ data["size"] == pytest.approx(900 - 40 - clusters[:, 2].mean(), rel=0.01)


def test_completed_populations_keep_all_records():
    by, data = by_hand()
    many = {k: np.broadcast_to(v, (4000, v.shape[1])) for k, v in by.items()}
    found = completed(many, data, np.random.default_rng(1), tries=1)
    p, left = by["stands_left"][0], data["left"]
    np.testing.assert_allclose(found.standing.mean(axis=0), left * p, rtol=0.02)
    np.testing.assert_allclose(found.standing.var(axis=0), left * p * (1 - p), rtol=0.1)
    records = found.number @ data["size"] + found.standing @ (data["left_records"] / np.maximum(left, 1))
    assert records.mean() == pytest.approx(900 - 40, rel=0.01)
    # entities of the rest replace clusters that do not stand
    assert (
        np.corrcoef(
            found.number @ data["size"], found.standing @ (data["left_records"] / np.maximum(left, 1))
        )[0, 1]
        < -0.3
    )
    links = Links.of(unsampled(by, data), by, data)
    assert found.true.mean() == pytest.approx(links.true[0], rel=0.02)
    assert found.common.mean() == pytest.approx(links.common[0], rel=0.02)
    assert found.false.mean() == pytest.approx(links.false[0], rel=0.03)
    # the expected variance leaves out that rest and clusters replace each other, and so is a little too large
    assert 0.75 < (found.common + found.false).var() / links.variance[0] < 1


# The part for sizes, and the cut


def part_draws(data, number=400):
    part = compiled(WithSecond(PredictionInformed()), data)
    (drawn,) = Importance(number)([part], generator(1))
    return part.usual.evaluated(drawn[""])


def test_clusters_left_stand_by_their_guests_as_poisson_numbers_tell():
    """Two kinds of clusters, and two kinds of those that fail: the chances of all four from scipy's Poisson."""
    data = dict(
        Evidence.of(sample(3), second=eb.auxiliary.Second.of(world()[1], labels(3), noisy(0.15))).data
    )
    J, draws = len(data["size"]), part_draws(data)
    par = {k: v[0] for k, v in draws.parameters.items()}
    share = special.expit(par["foreign_log_odds"] + special.logit(data["foreign_share"]))
    crowd = special.expit(par["crowd_log_odds"])
    with_guests = J + np.flatnonzero(data["left"][J:])
    assert len(with_guests) > 1
    for j in [1, 8, *with_guests]:
        guests = round(data["guests"][j] / max(data["left"][j], 1))
        if guests * data["left"][j] != data["guests"][j]:
            continue  # the mean of several clusters is no whole number
        records = data["guest_rate"] * data["size"][j % J]
        if_stands, if_crowd = (stats.poisson.pmf(guests, records * x) for x in (share, 1.0))
        p = draws.by_size["stands"][0][:, j % J]
        fails = (1 - p) * (crowd * if_crowd + (1 - crowd) * if_stands)
        np.testing.assert_allclose(
            draws.by_size["stands_left"][0][:, j], p * if_stands / (p * if_stands + fails), rtol=1e-6
        )


def test_guests_count_in_the_likelihood_as_a_mixture_of_poisson_numbers():
    data = dict(
        Evidence.of(sample(3), second=eb.auxiliary.Second.of(world()[1], labels(3), noisy(0.15))).data
    )
    J = len(data["size"])
    data |= {"left": np.zeros(2 * J), "guests": np.zeros(2 * J)}
    data["left"][[12, J + 12]], data["guests"][J + 12] = (
        (4.0, 3.0),
        6.0,
    )  # three clusters with two guests each
    model, by_size = own_model(WithSecond(PredictionInformed()), data)
    point = model.initial_point()
    logp = model.compile_logp(vars=model["sampled_guests"], sum=True)
    chance = model.replace_rvs_by_values([by_size["stands"]])[0]
    stands = model.compile_fn(chance, inputs=model.value_vars, on_unused_input="ignore")
    values = []
    for crowd, foreign in ((-2.0, 0.0), (0.5, 1.0), (3.0, -1.0)):
        here = point | {"crowd_log_odds": np.array(crowd), "foreign_log_odds": np.array(foreign)}
        p, records = stands(here)[12], data["guest_rate"] * data["size"][12]
        share = special.expit(foreign + special.logit(data["foreign_share"]))
        w, both = special.expit(crowd), 0.0
        for number, guests in ((4, 0), (3, 2)):
            if_stands, if_crowd = (stats.poisson.pmf(guests, records * x) for x in (share, 1.0))
            both += number * np.log(p * if_stands + (1 - p) * (w * if_crowd + (1 - w) * if_stands))
        values.append(float(logp(here)) - both)
    np.testing.assert_allclose(values, values[0], atol=1e-8)  # terms of the data alone are left out


def test_entities_differ_from_their_clusters_in_the_direction_that_matched_pairs_show():
    data = dict(
        Evidence.of(sample(3), second=eb.auxiliary.Second.of(world()[1], labels(3), noisy(0.05))).data
    )
    shown = {"pair_difference": np.array([0.15, -0.2]), "pair_error": np.full(2, 0.01), "pair_change": 1e-6}
    draws = part_draws(data | shown)
    assert np.log(draws.by_size["stands_true"]).mean() == pytest.approx(0.15, abs=0.02)
    assert np.log(draws.by_size["stands_kept"]).mean() == pytest.approx(-0.2, abs=0.02)


def test_a_cut_chooses_draws_by_each_total_alone():
    """Frequencies of choices for given numbers of common links, against all combinations one by one."""
    by, data = by_hand()
    rng = np.random.default_rng(3)
    data |= {"sampled_foreign": 0.0}
    entities = by["entities"][0] * np.array([[1, 1, 1], [1, 1.2, 0.6], [1, 0.5, 1.4]])
    kept = np.array([[1.0, 0.7, 0.4], [1.0, 0.5, 0.2], [1.0, 0.9, 0.8]])
    sizes = {"entities": entities, "stands": by["stands"], "stands_left": by["stands_left"]}
    sizes |= {"stands_true": by["stands_true"], "stands_kept": by["stands_kept"]}
    repeated = {k: np.broadcast_to(v, (3, v.shape[1])).repeat(400, axis=0)[None] for k, v in sizes.items()}
    shares = {"kept": kept, "kept_square": kept**2 + 0.02 * (kept < 1), "intact": kept**2}
    losses = {k: v.repeat(400, axis=0)[None] for k, v in shares.items()}
    losses["kept_square"] *= 1 + 1e-6 * rng.random((1, 1200, 1))  # weights differ, for their Pareto shape
    parts = {
        "sizes": PartDraws(repeated, {}, np.zeros((1, 1200)), 0.0, []),
        "retention": PartDraws(losses, {}, np.zeros((1, 1200)), 0.0, []),
    }
    expected = {}
    for i in range(3):
        for j in range(3):
            of = {k: np.broadcast_to(v, (3, v.shape[1]))[i] for k, v in sizes.items()}
            expected[i, j] = Links.of(unsampled(of, data), of | {k: v[j] for k, v in shares.items()}, data)
    for total in (600.0, 800.0):
        found = given(parts, np.full((1, 1200), total), data, rng)
        weights = {
            at: stats.norm.pdf(np.log(total), np.log(of.common), np.sqrt(of.relative_variance))
            for at, of in expected.items()
        }
        assert max(weights.values()) > 3 * min(weights.values())
        for (i, j), w in weights.items():
            same = (found.by_size["entities"][0] == entities[i]).all(-1)
            same &= (found.by_size["kept"][0] == kept[j]).all(-1)
            assert same.mean() == pytest.approx(w / sum(weights.values()), abs=0.04)


# Fits


@pytest.mark.parametrize("rate", [0.02, 0.15])
def test_a_second_clustering_has_no_influence_on_precision(rate):
    fit, plain = fitted(2, noisy(rate)), bayes.fast(sample(2), rng=2)
    others = [x for x in eb.metrics.USUAL if fit.identifies(x) and R.columns[1] not in x.columns]
    np.testing.assert_array_equal(fit.apply(P).values, plain.apply(P).values)
    np.testing.assert_array_equal(fit.apply(others).values, plain.apply(others).values)
    # precision, recall and F of one draw are those of one population
    p, r, f = np.moveaxis(fit.apply([P, R, m.pairwise_f()]).values, -1, 0)
    np.testing.assert_allclose(f, 2 * p * r / (p + r))


def test_crowds_in_the_place_of_giants_are_refused():
    """Small entities in lumps as large as giants: sampled ones are guests there, so that nothing is taken."""
    truth = world()[0]
    size, rng = truth.map(truth.value_counts()), np.random.default_rng(8)
    lump = pd.Series(rng.integers(8, size=truth.nunique()), truth.unique())
    second = truth.where((size > 5) | (truth % 2 == 0), 10**6 + truth.map(lump))
    fit, plain = fitted(1, second), bayes.fast(sample(1), rng=1)
    assert second.value_counts().max() > size.max() / 3
    assert fit.truth is None and fit.matched.used
    assert fit.matched.guests.sum() > 5
    assert any("is not used" in alarm and "lie in its clusters" in alarm for alarm in fit.alarms)
    assert "lie in its clusters" in fit.explain()
    np.testing.assert_array_equal(fit.apply(R).values, plain.apply(R).values)


def test_a_second_clustering_that_mends_nothing_leaves_the_ordinary_model():
    """The prediction itself breaks what the prediction breaks."""
    fit, plain = fitted(1, world()[1]), bayes.fast(sample(1), rng=1)
    assert fit.matched.broken > 0 and fit.matched.mended == 0 and fit.matched.known.any()
    pd.testing.assert_frame_equal(fit.table().drop(columns="by_second"), plain.table())
    assert any("only 0 of them are more complete" in alarm for alarm in fit.alarms)


def test_mended_entities_are_those_with_more_records_in_a_cluster_than_in_any_piece():
    second, entities = noisy(0.1), sets(labels(5))
    matched = Evidence.of(sample(5), second=eb.auxiliary.Second.of(world()[1], labels(5), second)).matched
    broken = mended = 0
    for records in entities.values():
        largest = world()[1].loc[list(records)].value_counts().max()
        if largest < len(records):
            broken += 1
            of = second.loc[list(records)].value_counts()
            whole = (second == of.index[0]).sum()
            mended += of.max() > largest and 3 * of.max() > len(records) + whole
    assert (matched.broken, matched.mended) == (broken, mended)
    assert broken >= mended > 0


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
    counted = eb.auxiliary.Second.of(world()[1], labels(1), second).value(R)
    assert abs(counted - world()[2]) > 0.05
    inside = []
    for seed in range(6):
        low, high = fitted(seed, second).apply(R).interval(0.95)[0]
        inside.append(low < world()[2] < high)
    assert sum(inside) >= 5


@pytest.mark.parametrize("seed", [1, 2])
def test_a_second_clustering_of_no_use_leaves_the_ordinary_model(seed):
    fit, plain = fitted(seed, shuffled()), bayes.fast(sample(seed), rng=seed)
    assert not fit.matched.used and fit.truth is None
    assert (fit.table().by_second == 0).all()
    assert "nothing is taken from it" in fit.explain()
    pd.testing.assert_frame_equal(fit.table().drop(columns="by_second"), plain.table())


def test_what_rests_on_the_second_clustering_is_said():
    fit = fitted(2, noisy(0.02))
    table = fit.table(metrics=[P, R])
    share = fit.by_second.sum(-1)
    assert (table.by_second == share.mean()).all() and share.mean() > 0.5
    text = fit.explain()
    assert "The second clustering 'second' has" in text and "match one: more than half of the" in text
    assert "by_second" not in bayes.fast(sample(2), rng=1).table()
    (alarm,) = [a for a in fit.alarms if "rests on the second clustering 'second'" in a]
    assert "UniformRecords" in alarm


def test_a_second_clustering_that_knows_the_labels_is_doubted():
    """It is the prediction, in which labelled records have their entity."""
    truth, prediction, _ = world()
    drawn = truth.sample(100, replace=True, random_state=3)
    known, own = prediction.copy(), truth[truth.isin(drawn)]
    known[own.index] = own + prediction.max() + 1
    at_random = eb.Sample(eb.measure(prediction, own), eb.UniformRecords(draws=list(drawn)))
    for by, doubted in ((known, True), (noisy(0.02), False)):
        model = bayes.SizeModel(second=eb.auxiliary.Second.of(prediction, own, by))
        fit = bayes.fast(at_random, model, draws=200, rng=1)
        assert any("seems to know the labels" in alarm for alarm in fit.alarms) == doubted


def test_all_metrics_and_predictions_take_it():
    fit = fitted(2, noisy(0.02))
    table = fit.table(metrics=[x for x in eb.metrics.ALL if fit.identifies(x)])
    assert table[["estimate", "lower", "upper"]].notna().all(axis=None)
    assert table.estimate["pairwise-recall"] == pytest.approx(world()[2], abs=0.08)
    checks = fit.predictive(draws=50, rng=1)
    assert set(checks["prior_predictive"].data_vars) == set(checks["observed_data"].data_vars)
    for of in (fit, fit.truth):
        n = of.log_likelihood()
        assert n.shape[-1] == 100 and np.isfinite(n).all()
    assert "matched" in fit.truth.tree["observed_data"].data_vars


def test_engines_of_other_second_clusterings_differ_in_studies():
    one, other = (
        bayes.Modelled(bayes.SizeModel(second=eb.auxiliary.Second.of(world()[1], labels(1), s)))
        for s in (noisy(0.02), noisy(0.02, 2))
    )
    assert repr(one) != repr(other)


@pytest.mark.study
def test_nuts_agrees_with_the_fast_fit():
    second = eb.auxiliary.Second.of(world()[1], labels(2), noisy(0.05))
    model = bayes.SizeModel(second=second)
    slow = bayes.nuts(sample(2), model, draws=1000, chains=2, cores=1, rng=1, progressbar=False)
    quick = bayes.fast(sample(2), model, draws=2000, rng=1)
    for metric in (P, R):
        one, other = slow.apply(metric), quick.apply(metric)
        assert abs(one.mean - other.mean)[0] < 0.25 * one.sd[0]
        # P is so skewed that its sd differs by a third between seeds of either way, and by chance alone
        assert stats.ks_2samp(one.flat[:, 0], other.flat[:, 0]).statistic < 0.08
    assert slow.apply(R).sd[0] == pytest.approx(quick.apply(R).sd[0], rel=0.25)
    for name in ("stands", "stands_kept"):
        a, b = (np.log(fit.truth.by_size[name]) for fit in (slow, quick))
        # in units of the posterior's own width, which is large where no sampled entity has such a size
        assert np.all(abs(a.mean(axis=(0, 1)) - b.mean(axis=(0, 1))) < 0.25 * a.std(axis=(0, 1)))


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
