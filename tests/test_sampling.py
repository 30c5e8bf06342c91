"""Draws: which records, with which probability, and estimates that are unbiased over all of them."""

import hashlib
import json
import pickle
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product

import numpy as np
import pandas as pd
import pytest
from repeats import each_draw

import erbayes as eb
from erbayes import labels as sa
from erbayes import metrics as m
from erbayes.design.draws import count_fixed
from erbayes.labels.plans import PLANS, from_plain, to_plain
from erbayes.labels.source import in_order, keys_of

PRED = {1: "a", 2: "a", 3: "b", 4: "b", 5: "b", 6: "c", 7: "d", 8: "d", 9: "e"}
TRUE = {1: "x", 2: "x", 3: "x", 4: "y", 5: "y", 6: "z", 7: "u", 8: "v", 9: "v"}
M = {r: list(PRED.values()).count(k) for r, k in PRED.items()}
KIND = {r: "odd" if r % 2 else "even" for r in PRED}
ODDS = {r: float(r) for r in PRED}
LARGER = {f"r{i}": f"k{int(i**0.6)}" for i in range(2000)}
OF_SIZE = pd.Series(LARGER).map(pd.Series(LARGER).value_counts())
BANDS = {r: "1" if s < 15 else "15" if s < 25 else "25" for r, s in OF_SIZE.items()}
"""Strata of records, by the size of their predicted cluster."""
P = m.pairwise_precision


def shares(weight):
    total = sum(weight.values())
    return {r: w / total for r, w in weight.items()}


def uniform():
    return dict.fromkeys(PRED, 1.0)


def multipurpose():
    """√(1 + (x² + y²)/2), where x and y are m - 1 and 1/m over their root mean squares over records."""
    links, clusters = (sum(e(s) ** 2 for s in M.values()) / 9 for e in EFFECTS)
    return {r: (1 + ((s - 1) ** 2 / links + s**-2 / clusters) / 2) ** 0.5 for r, s in M.items()}


EFFECTS = [lambda s: s - 1, lambda s: 1 / s]
CHANCES = {
    sa.Records(): shares(uniform()),
    sa.LinkEnds(): shares({r: s - 1 for r, s in M.items()}),
    sa.Multipurpose(): shares(multipurpose()),
    sa.GivenProbabilities(): shares(ODDS),
}
"""The chance of each record under each plan with replacement, in plain Python."""


def values_of(plan):
    return {sa.GivenProbabilities: ODDS, sa.Strata: KIND}.get(type(plan))


# Which records
def in_key_order(ids, seed):
    """Ids in the order of their keys, in plain Python."""
    return sorted(ids, key=lambda i: (hashlib.md5(f"{seed}:{i}".encode()).hexdigest()[:16], str(i)))


def on_a_line(chance, n, seed):
    """Records laid end to end in the order of their keys, each as long as its chance."""
    ordered = in_key_order(PRED, seed)
    ends = np.cumsum([chance[r] for r in ordered])
    at = np.searchsorted(ends, np.random.default_rng(seed).random(n), side="right")
    return [ordered[i] for i in at]


def by_size(chance, n, seed):
    """A size, a cluster of this size, a record of this cluster: each by one random number."""
    clusters = {s: in_key_order({k for r, k in PRED.items() if M[r] == s}, seed) for s in set(M.values())}
    ends = np.cumsum([sum(p for r, p in chance.items() if M[r] == s) for s in sorted(clusters)])
    found, met = [], {}
    for a, b, c in np.random.default_rng(seed).random((n, 3)):
        s = sorted(clusters)[int(np.searchsorted(ends, a, side="right"))]
        place = (s, int(b * len(clusters[s])))
        met.setdefault(place, sum(size == s for size, _ in met))
        cluster = clusters[s][met[place]]
        found.append(in_key_order([r for r, k in PRED.items() if k == cluster], seed)[int(c * s)])
    return found


@pytest.mark.parametrize("plan", CHANCES, ids=repr)
@pytest.mark.parametrize("seed", [0, 7])
def test_draws_are_those_made_by_hand(plan, seed):
    drawn = sa.draw(PRED, plan, n=30, seed=seed, values=values_of(plan))
    wanted = (on_a_line if isinstance(plan, sa.GivenProbabilities) else by_size)(CHANCES[plan], 30, seed)
    assert drawn.table["record"].tolist() == wanted
    assert drawn.table["cluster"].tolist() == [PRED[r] for r in wanted]
    assert drawn.table["size"].tolist() == [M[r] for r in wanted]
    np.testing.assert_allclose(drawn.table["probability"], [CHANCES[plan][r] for r in wanted], rtol=1e-12)
    inside = {k for r, k in PRED.items() if r in set(wanted)}
    assert dict(drawn.members.to_numpy().tolist()) == {r: k for r, k in PRED.items() if k in inside}


@pytest.mark.slow
@dataclass(frozen=True)
class InOrderOfSize:
    """A plan of one's own, which forgets that the order of its draws must be random."""

    def draw(self, source, n, seed):
        return sa.Records().draw(source, n, seed).sort_values(["size", "record"])

    def design(self, drawn):
        return eb.UniformRecords(drawn.units)


def test_the_first_draws_of_a_plan_of_ones_own_are_a_sample_of_all():
    """Whoever stops labelling early has labelled a random part, not the smallest clusters."""
    n, firsts, means, source = 30, [], [], sa.source.InMemory.of(LARGER)
    for seed in range(40):
        drawn = sa.draw(source, InOrderOfSize(), n=n, seed=seed)
        if seed < 5:
            own = InOrderOfSize().draw(source, n, seed)
            assert sorted(drawn.table["record"]) == sorted(own["record"])
        firsts.append(drawn.table["size"][: n // 3].mean())
        means.append(drawn.table["size"].mean())
    gap = np.array(firsts) - np.array(means)
    assert abs(gap.mean()) < 4 * gap.std() / np.sqrt(len(gap))
    assert own["size"][: n // 3].mean() < own["size"].mean()


def test_the_order_of_rows_and_the_type_of_table_do_not_matter():
    shuffled = pd.Series(LARGER).sample(frac=1, random_state=1)
    frame = pd.DataFrame({"id": shuffled.index, "k": shuffled.to_numpy()})
    for plan in (sa.Multipurpose(), sa.PredictedClusters(sa.Records())):
        first = sa.draw(LARGER, plan, n=40, seed=9)
        for same in (shuffled, frame, sa.source.InMemory.of(frame)):
            again = sa.draw(same, plan, n=40, seed=9)
            pd.testing.assert_frame_equal(again.table, first.table)
            assert again.fingerprint == first.fingerprint


def test_ids_that_are_numbers_draw_as_their_texts_do():
    numbers = sa.draw(PRED, sa.Records(), n=20, seed=1).table["record"]
    texts = sa.draw({str(r): k for r, k in PRED.items()}, sa.Records(), n=20, seed=1).table["record"]
    assert numbers.astype(str).tolist() == texts.tolist()


def test_records_of_one_key_are_ordered_by_their_texts():
    rows = pd.DataFrame({"record": ["b", "é", "a", "c"], "key": np.array([5, 5, 5, 1], dtype=np.uint64)})
    assert in_order(rows)["record"].tolist() == ["c", "a", "b", "é"]


def test_the_fingerprint_is_that_of_the_documentation_and_notices_changes():
    drawn = sa.draw(PRED, sa.Records(), n=20, seed=1)
    assert set(drawn.table["cluster"]) == set("abcde")
    lines = sorted(f"{r}\t{k}".encode() for r, k in PRED.items())
    digest = hashlib.md5(b"\n".join([b"1:2,2:2,3:1", *lines])).hexdigest()[:16]
    assert drawn.fingerprint == f"9-5-{digest}"
    drawn.refuse_another(dict(reversed(PRED.items())))
    for other in (PRED | {9: "d"}, {r: k for r, k in PRED.items() if r != 9}, PRED | {1: "b", 3: "a"}):
        with pytest.raises(eb.DataError, match="this is not the prediction that was drawn from: its finger"):
            drawn.refuse_another(other)


def rename(prediction):
    """The same clusters under other names, of which two are old ones."""
    names = dict(zip("abcdef", ["b", "a", "v", "w", "x", "y"], strict=True))
    return {record: names[cluster] for record, cluster in prediction.items()}


@pytest.mark.parametrize("elsewhere", [False, True])
def test_names_of_clusters_are_no_part_of_what_was_drawn_from(elsewhere):
    duckdb = pytest.importorskip("duckdb") if elsewhere else None

    def source(prediction):
        table = pd.DataFrame({"r": prediction.keys(), "c": prediction.values()})
        return duckdb.from_df(table.astype(str)) if elsewhere else dict(zip(*table.to_numpy().T, strict=True))

    drawn = sa.draw(source(PRED), sa.Records(), n=20, seed=1)
    assert drawn.is_from(source(rename(PRED)))
    # of the same sizes, two of which change hands: those of one cluster, and those of two
    for other in (PRED | {1: "b", 3: "a"}, rename(PRED | {1: "b", 3: "a"})):
        assert not drawn.is_from(source(other))
    clusters = sa.draw(source(PRED), sa.PredictedClusters(sa.Records()), n=3, seed=1)
    assert clusters.is_from(source(PRED)) and not clusters.is_from(source(rename(PRED)))


def test_clusters_that_are_split_and_joined_are_others_under_any_name():
    before = {1: "a", 2: "a", 3: "b", 4: "c", 5: "c", 6: "d"}
    drawn = sa.draw(before, sa.Records(), n=40, seed=1)
    assert set(drawn.table["record"]) == set(before)
    after = {1: "a", 2: "e", 3: "b", 4: "c", 5: "c", 6: "b"}
    assert sorted(map(list(after.values()).count, set(after.values()))) == [1, 1, 2, 2]
    assert drawn.is_from(dict(before)) and not drawn.is_from(after)


def test_predicted_clusters_have_no_repeats_and_their_probabilities():
    size = {k: list(PRED.values()).count(k) for k in PRED.values()}
    cases = [
        (sa.PredictedClusters(), 2, dict.fromkeys(size, 2 / 5)),
        (sa.PredictedClusters(sa.Records()), 2, {k: 2 * s / 9 for k, s in size.items()}),
        (sa.PredictedClusters(sa.Records()), 4, {"a": 1, "b": 1, "d": 1, "c": 0.5, "e": 0.5}),
        (sa.PredictedClusters(sa.LinkEnds()), 2, {"a": 0.5, "b": 1, "d": 0.5, "c": 0, "e": 0}),
    ]
    source = sa.source.InMemory.of(PRED)
    for plan, n, wanted in cases:
        counts = dict.fromkeys(size, 0)
        for seed in range(20):
            table = plan.draw(source, n, seed)
            assert table["cluster"].is_unique and len(table) == n
            assert [PRED[r] for r in table["record"]] == table["cluster"].tolist()
            for k in table["cluster"]:
                counts[k] += 1
        np.testing.assert_allclose(table["probability"], [wanted[k] for k in table["cluster"]], rtol=1e-12)
        for k, p in wanted.items():
            assert abs(counts[k] / 20 - p) <= 4.5 * np.sqrt(p * (1 - p) / 20)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plan", "n"),
    [(sa.PredictedClusters(), 60), (sa.PredictedClusters(sa.Multipurpose()), 75), (sa.Strata(), 300)],
    ids=str,
)
def test_the_first_third_of_the_draws_estimates_without_bias(plan, n):
    prediction = pd.Series(LARGER)
    source = sa.source.InMemory.of(prediction, BANDS)
    truth = prediction + np.where(np.arange(len(prediction)) % 3, "x", "y")
    columns = [eb.columns.RECORDS, eb.columns.PREDICTED_LINKS]
    ratios = []
    for seed in range(12):
        drawn = sa.draw(source, plan, n=n, seed=seed)
        values = BANDS if isinstance(plan, sa.Strata) else None
        first = drawn.table["record"][: len(drawn.table) // 3]
        later = drawn.table["record"][~drawn.table["record"].isin(first)]
        clusters = prediction[first].unique()
        if isinstance(plan, sa.PredictedClusters):
            labels = truth[truth.isin(truth[prediction.isin(clusters)])]
            units = eb.measure_predicted(prediction, labels, clusters)
        else:
            labels = truth[truth.isin(truth[first])]
            units = eb.measure(prediction, labels)
        sample = eb.Sample(units, drawn.design(labels, values, unlabelled=list(later)))
        known = [units.known.total(column) for column in columns]
        ratios.append(sample.contributions(columns).sum(axis=0) / known)
    off = np.abs(np.mean(ratios, axis=0) - 1)
    assert (off <= 4 * np.std(ratios, axis=0, ddof=1) / np.sqrt(len(ratios)) + 0.01).all()


def test_strata_draw_in_proportion_inside_themselves():
    drawn = sa.draw(LARGER, sa.Strata(), n=15, seed=1, values=BANDS).table
    assert [BANDS[r] for r in drawn["record"]] == drawn["stratum"].tolist()
    records = {h: list(BANDS.values()).count(h) for h in ("1", "15", "25")}
    np.testing.assert_allclose(drawn["probability"], [1 / records[h] for h in drawn["stratum"]])
    default = sa.draw(LARGER, sa.Strata(), n=50, seed=1, values=BANDS).table["stratum"].value_counts()
    for h, n in records.items():
        assert abs(default[h] - 50 * n / 2000) < 1 or default[h] == 2
    values = {r: int(r[1:]) % 3 for r in LARGER}
    table = sa.draw(LARGER, sa.Strata(), n=30, seed=1, values=values).table
    assert [values[r] for r in table["record"]] == table["stratum"].tolist()


# Estimates: unbiased over all draws of a plan, with the design that it makes itself
SIZES = pd.Series(M)
LABELS = pd.Series(TRUE)
CENSUS = eb.engine.taylor(eb.Sample(eb.measure(PRED, TRUE), eb.UniformClusters(5)), eb.metrics.ALL)


@cache
def known():
    return eb.measure(PRED, TRUE).known


@cache
def units_of(entities):
    return eb.measure(PRED, LABELS[LABELS.isin(entities)])


def designed(plan, records, probability, **columns):
    """The sample of these draws, by the design that the plan makes of their table."""
    table = pd.DataFrame({"record": records, "probability": probability} | columns)
    table = table.assign(cluster=table["record"].map(PRED), size=table["record"].map(M))
    drawn = sa.RecordDraws(table, plan, len(records), 0, known(), "")
    labels = LABELS[LABELS.isin(LABELS[records])]
    values = values_of(plan)
    values = None if values is None else {r: values[r] for r in labels.index}
    return eb.Sample(units_of(frozenset(labels)), drawn.design(labels, values))


def unbiased(chance, samples, columns):
    """Check totals of columns, and their variances, over all samples."""
    wanted = np.array([c.count(eb.measure(PRED, TRUE)).sum() for c in columns])
    mean, variance = [], []
    for sample in samples:
        Z = sample.contributions(columns)
        mean.append(Z.sum(axis=0))
        variance.append(sample.expansion.covariance(Z).diagonal())
    mean, variance = np.array(mean), np.array(variance)
    assert sum(chance) == pytest.approx(1)
    np.testing.assert_allclose(chance @ mean, wanted, rtol=1e-12)
    np.testing.assert_allclose(chance @ variance, chance @ (mean - wanted) ** 2, rtol=1e-9, atol=1e-9)


ANY = [c for c in eb.columns.COLUMNS if c.identified(eb.measure(PRED, TRUE))]


@pytest.mark.parametrize("plan", CHANCES, ids=repr)
def test_totals_are_unbiased_over_all_draws(plan):
    p, chance, samples = CHANCES[plan], [], []
    # the order of two draws says nothing: each pair of different records comes in two
    for records in combinations_with_replacement(PRED, 2):
        if p[records[0]] * p[records[1]]:
            extra = {"value": [ODDS[r] for r in records]} if isinstance(plan, sa.GivenProbabilities) else {}
            chance.append(p[records[0]] * p[records[1]] * len(set(records)))
            samples.append(designed(plan, list(records), [p[r] for r in records], **extra))
    columns = [eb.columns.COMMON_LINKS, eb.columns.PREDICTED_LINKS] if plan == sa.LinkEnds() else ANY
    unbiased(np.array(chance), samples, columns)


def test_totals_are_unbiased_over_all_draws_in_strata():
    p = [shares(dict.fromkeys((r for r in PRED if KIND[r] == h), 1.0)) for h in ("even", "odd")]
    chance, samples = [], []
    # two draws in each of two strata, whose order says nothing: each pair of different records comes in two
    for pairs in product(*(combinations_with_replacement(q, 2) for q in p)):
        records = [r for pair in pairs for r in pair]
        single = [q[r] for q, pair in zip(p, pairs, strict=True) for r in pair]
        chance.append(np.prod(single) * 2 ** sum(a != b for a, b in pairs))
        strata = [KIND[r] for r in records]
        samples.append(designed(sa.Strata(), list(records), single, stratum=strata))
    unbiased(np.array(chance), samples, ANY)


def systematic(p, order, start):
    """Positions that points at equal distances choose from elements in an order, (n,)."""
    return order[np.searchsorted(np.cumsum(p[order]), start + np.arange(round(p.sum())), side="right")]


@pytest.mark.slow
def test_hartley_and_rao_are_close_in_random_order():
    rng = np.random.default_rng(1)
    size = rng.gamma(1.5, size=300) + 0.1
    p, y = 12 * size / size.sum(), size * rng.uniform(0.5, 1.5, 300)
    assert p.max() < 1
    estimates, variances = [], []
    for _ in range(3000):
        taken = systematic(p, rng.permutation(300), rng.random())
        z = (y / p)[taken]
        estimates.append(z.sum())
        variance = count_fixed(taken, p[taken], float((p**2).sum()))
        variances.append(variance.covariance(z[:, None])[0, 0])
    assert np.mean(estimates) == pytest.approx(y.sum(), rel=0.01)
    assert np.mean(variances) == pytest.approx(np.var(estimates), rel=0.08)


@pytest.mark.slow
def test_predicted_clusters_are_estimated_by_their_own_design():
    prediction, truth = pd.Series(LARGER), pd.Series({r: i // 7 for i, r in enumerate(LARGER)})
    census = eb.measure_predicted(prediction, truth, prediction.unique())
    wanted = census.column(eb.columns.COMMON_LINKS).sum() / census.column(eb.columns.PREDICTED_LINKS).sum()
    for of in (None, sa.Records(), sa.LinkEnds()):
        plan, found = sa.PredictedClusters(of), []
        for seed in range(20):
            drawn = sa.draw(prediction, plan, n=30, seed=seed)
            labels = truth[truth.isin(truth[drawn.members["record"]])]
            units = eb.measure_predicted(prediction, labels, drawn.table["cluster"])
            fit = eb.engine.taylor(eb.Sample(units, drawn.design(labels)), [P]).apply([P])
            found.append((fit.mean[0] - wanted) / fit.sd[0])
        assert abs(np.mean(found)) < 0.6 and np.std(found) < 1.6


def test_squares_of_predicted_clusters_are_those_of_the_population():
    size = pd.Series(LARGER).value_counts()
    for plan, weight in (
        (sa.PredictedClusters(sa.Records()), size),
        (sa.PredictedClusters(sa.LinkEnds()), size**2 - size),
    ):
        drawn = sa.draw(LARGER, plan, n=20, seed=1)
        inclusion = 20 * weight / weight.sum()
        assert inclusion.max() < 1
        design = drawn.design({r: r for r in LARGER})
        assert design.squares == pytest.approx((inclusion**2).sum(), rel=1e-12)
        assert list(design.never) == ([1] if (weight == 0).any() else [])


# Identified or refused
ENDS = eb.design.ByPredictedSize(eb.columns.PREDICTED_LINKS)


def test_ends_of_links_identify_only_totals_that_vanish_on_predicted_singletons():
    """By brute force: an entity wholly of predicted singletons has chance 0, whatever it counts."""
    sample = eb.Sample(eb.measure(PRED, {r: e for r, e in TRUE.items() if e in "xy"}), ENDS)
    alone = eb.measure({1: 1, 2: 2, 3: 3, 4: 4}, {1: "a", 2: "a", 3: "a", 4: "b"})
    kept = {c.name for c in ANY if not alone.column(c).any()}
    assert {"common_links", "predicted_links"} <= kept
    assert not kept & {"true_links", "records", "entities", "exact"}
    for column in ANY:
        if column.name in kept:
            sample.contributions([column])
            continue
        said = f"'{column.name}' is not identified: records of predicted single.*pool the draws with uniform"
        with pytest.raises(eb.NotIdentified, match=said):
            sample.contributions([column])


def test_ends_of_links_identify_all_if_no_cluster_is_a_singleton():
    prediction = {r: k if M[r] > 1 else "f" for r, k in PRED.items()}
    found = eb.engine.taylor(eb.Sample(eb.measure(prediction, TRUE), ENDS), eb.metrics.ALL)
    assert np.isfinite(found.mean).all()


def test_the_default_identifies_all():
    labels = {r: e for r, e in TRUE.items() if e in "xyv"}
    table = {"record": [1, 4, 8], "cluster": ["a", "b", "d"], "size": [2, 3, 2], "probability": [0.1] * 3}
    drawn = sa.RecordDraws(pd.DataFrame(table), sa.Multipurpose(), 3, 0, known(), "")
    sample = eb.Sample(eb.measure(PRED, labels), drawn.design(labels))
    assert np.isfinite(eb.engine.taylor(sample, eb.metrics.ALL).mean).all()


def test_precision_by_ends_of_links_is_a_plain_mean():
    labels = {r: e for r, e in TRUE.items() if e in "xyv"}
    units = eb.measure(PRED, labels)
    share = units.column(eb.columns.COMMON_LINKS) / units.column(eb.columns.PREDICTED_LINKS)
    found = eb.engine.taylor(each_draw(eb.Sample(units, ENDS)), [P]).apply([P])
    assert found.mean[0] == pytest.approx(share.mean(), rel=1e-12)
    assert found.sd[0] == pytest.approx(share.std(ddof=1) / 3**0.5, rel=1e-12)


def test_another_prediction_than_the_one_drawn_from_is_refused():
    drawn = sa.draw(PRED, n=5, seed=1)
    labels = LABELS[LABELS.isin(LABELS[drawn.table["record"]])]
    design = drawn.design(labels)
    assert np.isfinite(eb.Sample(eb.measure(PRED, labels), design).expansion.weight).all()
    said = "of 9 records in 5 clusters, 2 of size 1, but this one has 9 records in 4 clusters, 1 of"
    with pytest.raises(eb.DataError, match=said):
        eb.Sample(eb.measure(PRED | {9: "d"}, labels), design)


def test_labelled_records_that_the_prediction_lacks():
    labels = {1: "x", 2: "x", 99: "x"}
    for missing in (eb.Missing.SINGLETON, eb.Missing.TOGETHER):
        with pytest.raises(eb.NotIdentified, match="could not be drawn; leave them out"):
            eb.Sample(eb.measure(PRED, labels, missing=missing), ENDS)
    units = eb.measure(PRED, labels, missing=eb.Missing.OMIT)
    np.testing.assert_allclose(eb.Sample(units, ENDS).expansion.weight, [10 / 2])


# Files
@pytest.mark.parametrize("strata", [2, 3, 4])
@pytest.mark.parametrize("n", [8, 9, 11])
def test_draws_of_strata_are_as_near_to_proportional_as_two_of_each_allow(strata, n):
    """By enumeration of all numbers of draws."""
    of_record = np.repeat(range(strata), np.random.default_rng(n).integers(1, 9, strata) ** 2)
    share, records = np.bincount(of_record) * n / len(of_record), range(len(of_record))
    drawn = sa.draw(dict.fromkeys(records, "a"), sa.Strata(), n=n, seed=1, values=dict(enumerate(of_record)))
    draws = np.bincount(of_record[drawn.table["record"]])
    every = np.array([x for x in product(range(2, n + 1), repeat=strata) if sum(x) == n])
    best = ((every - share) ** 2).sum(axis=1).min()
    assert draws.min() >= 2 and ((draws - share) ** 2).sum() == pytest.approx(best)


@pytest.mark.parametrize("plan", [*CHANCES, sa.Strata(), sa.PredictedClusters(sa.Records())], ids=repr)
def test_what_was_drawn_is_read_back(plan):
    values = values_of(plan)
    drawn = sa.draw(PRED, plan, n=5, seed=3, values=values)
    text = drawn.to_json()
    again = sa.RecordDraws.from_json(text, drawn.table, drawn.members)
    assert again.plan == plan and again.to_json() == text
    assert (again.n, again.seed, again.records, again.fingerprint) == (5, 3, 9, drawn.fingerprint)
    assert json.loads(text)["sizes"] == {"1": 2, "2": 2, "3": 1}
    if not isinstance(plan, sa.PredictedClusters):
        labels = LABELS[LABELS.isin(LABELS[drawn.table["record"]])]
        units = eb.measure(PRED, labels)
        weights = [d.design(labels, values).expand(units).weight for d in (drawn, again)]
        np.testing.assert_array_equal(*weights)


def test_every_plan_has_a_name():
    room = sa.plans
    plans = {x for x in vars(room).values() if isinstance(x, type) and hasattr(x, "draw")}
    assert plans - {room.Plan, room._WithReplacement, room.NewRecords} == set(PLANS.values())


def test_a_sample_of_the_default_plan_is_pickled():
    sample = eb.Sample(eb.measure(PRED, TRUE), sa.draw(PRED, n=60, seed=1).design(TRUE))
    again = pickle.loads(pickle.dumps(sample))
    np.testing.assert_array_equal(eb.estimate(again).table()["upper"], eb.estimate(sample).table()["upper"])


# Bad input
@pytest.mark.parametrize("call, message", [
    (lambda: sa.draw(PRED, sa.Records, n=5, seed=1), "Records is a class: pass an object of it"),
    (lambda: sa.draw(PRED, "uniform", n=5, seed=1), "a plan is an object such as LinkEnds"),
    (lambda: sa.draw({}, sa.Records(), n=5, seed=1), "the prediction has no record"),
    (lambda: sa.draw({1: 1, 2: 2}, sa.LinkEnds(), n=5, seed=1), "the total of 'predicted_links' is 0 in this prediction"),
    (lambda: sa.draw(PRED, sa.GivenProbabilities(), n=5, seed=1), "GivenProbabilities needs a value of every record"),
    (lambda: sa.draw(PRED, sa.GivenProbabilities(), n=5, seed=1, values={1: 1}), "8 of 9 records have no value, such as 2, 3, 4"),
    (lambda: sa.draw(PRED, sa.GivenProbabilities(), n=5, seed=1, values=ODDS | {1: 0}), "1 of 9 chances are not above 0 and finite"),
    (lambda: sa.draw(PRED, sa.GivenProbabilities(), n=5, seed=1, values=KIND), "chances must be numbers: could not convert"),
    (lambda: sa.draw(PRED, sa.GivenProbabilities(), n=5, seed=1, values=pd.Series(1, [1, 2, 1])), "values: 1 records are listed twice, such as 1"),
    (lambda: sa.draw(PRED, sa.GivenProbabilities(), n=3, seed=1, values=ODDS).design(TRUE, values=KIND), "chances must be numbers"),
    (lambda: sa.draw(PRED, sa.Strata(), n=5, seed=1), "Strata needs a value of every record"),
    (lambda: sa.draw(PRED, sa.Strata(), n=3, seed=1, values=KIND), "3 draws do not give each of 2 strata two draws"),
    (lambda: sa.PredictedClusters(sa.GivenProbabilities()), "of must be a plan whose chances depend on predicted size"),
    (lambda: sa.draw(PRED, sa.PredictedClusters(), n=6, seed=1), "6 draws without replacement of 5 predicted clusters"),
    (lambda: sa.draw(PRED, sa.PredictedClusters(sa.LinkEnds()), n=4, seed=1), "of 3 predicted clusters with a chance"),
    (lambda: sa.draw(PRED, sa.Records(), n=3, seed=1).design({1: "x"}), "drawn records have no label"),
    (lambda: sa.RecordDraws.from_json("{}", pd.DataFrame()), "the description of draws: 'version' must be 1"),
    (lambda: sa.RecordDraws.from_json("[1]", pd.DataFrame()), "it is list, and no object in braces"),
    (lambda: from_plain({"name": "magic"}), "no plan of this erbayes is called 'magic'"),
    (lambda: to_plain(object()), "only the plans of erbayes.labels can be written, not object"),
    (lambda: eb.design.Pooled([]), "parts must be a list of designs, one or more"),
    (lambda: eb.design.Pooled([eb.UniformRecords()]), "UniformRecords in a pool needs its draws"),
    (lambda: eb.design.Pooled([eb.UniformClusters(draws=["x"])]), "draws by UniformClusters cannot be pooled"),
])  # fmt: skip
def test_bad_input(call, message):
    with pytest.raises(eb.DataError, match=message):
        call()


def test_weights_are_fractions_of_the_known_total():
    """Every weight 1/(n p_c), or 1/π_c of an entity, in rational numbers."""
    drawn = sa.draw(PRED, sa.LinkEnds(), n=6, seed=2)
    labels = LABELS[LABELS.isin(LABELS[drawn.table["record"]])]
    units, design = eb.measure(PRED, labels), drawn.design(labels)
    each, once = replace(design, repeats=True).expand(units), design.expand(units)
    owners = [TRUE[r] for r in drawn.table["record"]]
    p = {e: sum(Fraction(M[r] - 1, 10) for r in TRUE if TRUE[r] == e) for e in set(owners)}
    np.testing.assert_allclose(each.weight, [float(1 / (6 * p[e])) for e in owners], rtol=1e-14)
    wanted = [float(1 / (1 - (1 - p[e]) ** 6)) for e in units.ids]
    np.testing.assert_allclose(once.weight, wanted, rtol=1e-14)
    assert isinstance(keys_of(["a"], 1)[0], np.uint64)
