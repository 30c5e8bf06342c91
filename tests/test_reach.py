"""What no draw can show: the share of links out of reach, in intervals and in checks."""

import json
import math
import operator
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from oracle import partitions
from scipy.stats import binom
from shell import done, run

import erbayes as eb
from erbayes import metrics as m
from erbayes.engine import Jackknife, betting
from erbayes.labels import ONCE, REPEATED, Rule, check
from erbayes.labels.stopping import Verdict

P, R, F1, CR = m.pairwise_precision, m.pairwise_recall, m.pairwise_f1, m.cluster_recall
TABLE = [P, R, F1, m.b3_precision, m.b3_recall, CR]


def giant(pairs, sampled=20, wrong=2):
    """A giant of 5 records (10 links) that no draw touches, beside `pairs` predicted pairs. The first `wrong`
    sampled pairs are two entities each, of which both are drawn."""
    prediction = {r: r // 2 for r in range(2 * pairs)} | {10**6 + i: 10**6 for i in range(5)}
    labels = {r: (r if r < 2 * wrong else 10**5 + r // 2) for r in range(2 * sampled)}
    return prediction, labels


def of_giant(pairs, design=None, **kind):
    prediction, labels = giant(pairs, **kind)
    return eb.Sample(eb.measure(prediction, labels), design or eb.UniformRecords())


def plain(sample, metrics, level=0.95, kind=None):
    """Intervals without the share out of reach."""
    fit = eb.engine.taylor(sample, metrics).apply(metrics)
    seen = replace(fit.unseen, unreached_share=np.zeros(len(fit.names)))
    return replace(fit, unseen=seen).interval(level, kind)


def widened(x, ends, share):
    """An interval of a share x, of which `share` may have any value: errors add up, or, if it is small, as chance."""
    arms = (1 - share) * (x - ends[0]), (1 - share) * (ends[1] - x)
    parts = share * x, share * (1 - x)
    down, up = map(operator.add if share > 0.1 else math.hypot, arms, parts)
    return x - down, x + up


# The share
def links(sizes):
    return sum(s * (s - 1) / 2 for s in sizes)


def test_the_share_is_counted_from_the_clusters_that_the_draws_touch():
    rng = np.random.default_rng(2)
    prediction = pd.Series(np.repeat(np.arange(60), rng.integers(1, 30, 60)))
    truth = pd.Series(np.arange(len(prediction)) // 2)
    units = eb.measure(prediction, truth)
    design = eb.UniformRecords()
    at = rng.integers(0, len(units), (10, 2))
    many = eb.Sample.many(units, design, at)
    sizes = prediction.value_counts()
    for column, weigh in ((eb.columns.PREDICTED_LINKS, links), (eb.columns.RECORDS, sum)):
        found = many.unreached_share(column)
        for i in range(10):
            touched = sizes[prediction[truth.isin(units.ids[at[i]])]].max()
            assert found[i] == pytest.approx(weigh(sizes[sizes > touched]) / weigh(sizes))
    assert 0 < found.mean() < 1, "some samples touch the largest cluster, and some do not"


def test_the_share_is_0_if_the_prediction_is_not_known_as_a_whole_or_has_no_links():
    kept = eb.measure({1: "a", 2: "a"}, {1: "x", 2: "x", 3: "x"}, missing=eb.Missing.TOGETHER)
    assert kept.known is None
    assert eb.Sample(kept, eb.UniformClusters()).unreached_share(eb.columns.PREDICTED_LINKS) == 0
    alone = eb.Sample(eb.measure({1: "a", 2: "b"}, {1: "x"}), eb.UniformClusters())
    assert alone.unreached_share(eb.columns.PREDICTED_LINKS) == 0


# The default interval
@pytest.mark.parametrize("level", [0.5, 0.95])
@pytest.mark.parametrize("pairs", [2000, 190, 90, 89, 20])
def test_the_share_enters_the_intervals_of_precision_and_f1(pairs, level):
    """However small it is; 10 of 100 links are chance like any other error, 10 of 99 are not."""
    sample = of_giant(pairs)
    share, of_links = 10 / (10 + pairs), np.array([x in (P, F1) for x in TABLE])
    fit = eb.engine.taylor(sample, TABLE).apply(TABLE)
    for kind in (None, eb.intervals.Anytime(), eb.intervals.BetaGamma(0.3)):
        found, seen = fit.interval(level, kind), plain(sample, TABLE, level, kind)
        allowed = [widened(x, ends, share) for x, ends in zip(fit.mean, seen, strict=True)]
        np.testing.assert_allclose(found, np.where(of_links[:, None], allowed, seen), rtol=1e-13)


@pytest.mark.parametrize(
    "design",
    [
        eb.UniformRecords(),
        eb.DistinctEntities(50),
        eb.UniformClusters(),
        eb.Stratified({e: "a" for e in set(giant(60)[1].values())}, {"a": 100}),
        eb.design.Responding(eb.UniformRecords(), [True] * 22),
    ],
    ids=lambda x: type(x).__name__,
)
def test_draws_of_every_design_allow_for_it(design):
    """Entities as well as records: 95 % intervals of precision covered .65 where a share of .6 did not count."""
    fit = eb.engine.taylor(of_giant(60, design), P).apply(P)
    np.testing.assert_allclose(fit.unseen.unreached_share, 10 / 70)


@pytest.mark.parametrize("pairs", [20, 100])
@pytest.mark.parametrize("drawn", ["entities", "records", "predicted clusters"])
def test_recall_of_units_allows_for_it_above_a_tenth(pairs, drawn):
    """Ten links of 10 + pairs are in a cluster of five records, of 2 pairs + 5, that no draw touches. Drawn clusters
    do not show strangers in it, and intervals of B-cubed precision that did not allow for them covered .10 to .43."""
    metrics = [P, m.pairwise_recall, m.b3_recall, m.b3_precision]
    links, records = 10 / (10 + pairs), 5 / (2 * pairs + 5)
    sample = of_giant(pairs, eb.UniformRecords() if drawn == "records" else eb.UniformClusters())
    if drawn == "predicted clusters":
        sample = eb.Sample(eb.measure_predicted(*giant(pairs), range(20)), sample.design)
    fit = eb.engine.taylor(sample, metrics).apply(metrics)
    unknown = links > 0.1 and drawn != "records"
    wanted = [links, links * unknown, records * unknown, records * unknown * (drawn != "entities")]
    np.testing.assert_allclose(fit.unseen.unreached_share, wanted, rtol=1e-12)
    if unknown and drawn == "entities":
        seen = plain(sample, metrics)
        allowed = [widened(x, *both) for x, *both in zip(fit.mean, seen, wanted, strict=True)]
        np.testing.assert_allclose(fit.interval(), allowed, rtol=1e-12)


def test_differences_of_recall_allow_for_true_links_out_of_reach_where_clusters_differ():
    """A giant of 60 records in halves, or whole, which no drawn pair touches; every fourth pair is split."""
    truth = pd.Series([*np.repeat(range(40), 2), *[99] * 60])
    old = truth.where(truth < 99, 99 + (truth.index % 2)).mask((truth % 4 == 0) & (truth.index % 2 == 1), -1)
    old[old == -1] = -1 - np.arange((old == -1).sum())
    new = old.mask(truth == 99, 99)
    pairs, halves, whole = 30, 2 * links([30]), links([60])
    metrics = [m.pairwise_recall, m.b3_recall]
    for first, second, there in ((old, new, 1), (new, old, 0)):
        labels = truth[truth.isin(range(0, 40, 2))]
        compared = eb.compare({"a": first, "b": second}, labels, eb.UniformClusters(), metrics)
        found = compared.subtract("a", "b")
        share = whole / (pairs + whole), 60 / 140
        np.testing.assert_allclose(found.unseen.unreached_share, share)
        alone = (whole - halves) / (pairs + whole), 2 * (whole - halves) / 59 / 140
        wanted = np.zeros((2, 2, 3))
        wanted[:, there, 0] = alone
        wanted[:, 0, 1] = share * np.maximum(found.mean, 0)
        wanted[:, 1, 1] = share * np.maximum(-found.mean, 0)
        np.testing.assert_allclose(found.moves.parts, wanted, atol=1e-15)
        reached = replace(found, unseen=replace(found.unseen, unreached_share=np.zeros(2)))
        alone = np.abs(reached.uncut_interval() - found.mean[:, None])
        # none of the true links need be out of reach
        arms = np.maximum(alone, alone * (1 - np.array(share))[:, None] + wanted.sum(axis=-1))
        ends = found.mean[:, None] + [-1, 1] * arms
        np.testing.assert_allclose(found.uncut_interval(), ends, rtol=1e-12)
        low, high = found.interval().T
        true = np.array([(whole - halves) / (40 + whole), 30 / 140]) * (1 if there else -1)
        assert (low <= true + 1e-9).all() and (true <= high + 1e-9).all()
    # both have the same giant: it only brings a difference of the others nearer to 0
    less = old.mask(truth % 8 == 0, truth)
    labels = truth[truth.isin(range(0, 40, 2))]
    compared = eb.compare({"a": old, "b": less}, labels, eb.UniformClusters(), metrics)
    found = compared.subtract("a", "b")
    assert (found.moves.parts[:, :, 0] == 0).all() and (found.moves.parts[:, 0, 1] > 0).all()


def test_intervals_of_other_kinds_are_what_their_sources_say():
    sample = of_giant(20)
    fit = eb.engine.taylor(sample, P).apply(P)
    (estimate,), (error,) = fit.mean, fit.sd
    wald = np.clip(estimate + 1.959963984540054 * error * np.array([-1, 1]), 0, 1)
    np.testing.assert_allclose(fit.interval(0.95, eb.intervals.WALD)[0], wald)
    kind = eb.intervals.Symmetric()
    np.testing.assert_array_equal(fit.interval(0.95, kind), plain(sample, P, 0.95, kind))


def test_the_share_stays_with_its_metric():
    sample = of_giant(20)
    fit = eb.engine.taylor(sample, TABLE).apply(TABLE)
    np.testing.assert_allclose(fit.unseen.unreached_share, [1 / 3, 0, 1 / 3, 0, 0, 0])
    part = fit.part([3, 2])
    np.testing.assert_array_equal(part.interval(), fit.interval()[[3, 2]])
    jackknife = Jackknife()(sample, TABLE)
    np.testing.assert_array_equal(jackknife.unseen.unreached_share, fit.unseen.unreached_share)
    twice = {"a": giant(20)[0], "b": giant(20)[0]}
    joint = eb.compare(twice, giant(20)[1], eb.UniformRecords(), TABLE).joint
    alone = eb.engine.Taylor()(sample, TABLE)
    np.testing.assert_allclose(joint.interval(), np.tile(alone.interval(), (2, 1)), rtol=1e-12)


# What the share implies
def counted(prediction, truth, metric):
    """Pairwise and B-cubed metrics by plain counting of pairs and records."""
    p, t = np.asarray(prediction), np.asarray(truth)
    same_p, same_t = p[:, None] == p, t[:, None] == t
    if metric in (m.b3_precision, m.b3_recall):
        below = same_p if metric is m.b3_precision else same_t
        return np.mean((same_p & same_t).sum(1) / below.sum(1))
    common, predicted, true = ((x.sum() - len(p)) / 2 for x in (same_p & same_t, same_p, same_t))
    return {P: common / predicted, R: common / true, F1: 2 * common / (predicted + true)}[metric]


@pytest.mark.parametrize("metric", [P, m.b3_precision, m.b3_recall])
def test_precision_and_b3_lie_in_the_range_for_every_truth_of_a_giant(metric):
    """52 truths of a giant of 5 records beside 12 records in reach: by enumeration."""
    inner = np.array([0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 4, 4]), np.array([0, 0, 1, 2, 2, 3, 3, 3, 4, 5, 6, 6])
    inside = counted(*inner, metric)
    share = 10 / (10 + 10) if metric is P else 5 / 17  # 3 + 1 + 3 + 1 + 1 links in reach, and the pair 4
    if metric is P:
        share = 10 / (10 + (3 + 1 + 3 + 1 + 1))
    values = []
    for way in partitions(5):
        truth = np.concatenate([inner[1], 100 + np.array(way)])
        values.append(counted(np.concatenate([inner[0], [9] * 5]), truth, metric))
    assert min(values) >= (1 - share) * inside - 1e-12
    assert max(values) == pytest.approx((1 - share) * inside + share)


def test_nothing_bounds_the_true_links_that_are_missed_out_of_reach():
    """A quarter of links is out of reach, in five clusters of one entity: recall is below (1 - φ) L."""
    prediction = np.concatenate([np.repeat(np.arange(50), 3), 100 + np.repeat(np.arange(5), 5)])
    truth = np.concatenate([np.repeat(np.arange(50), 3), np.full(25, 100)])
    share = 50 / (150 + 50)
    assert counted(prediction, truth, R) == 200 / 450 < 1 - share
    labels = pd.Series(truth)[truth < 40]
    sample = eb.Sample(eb.measure(pd.Series(prediction), labels), eb.UniformRecords())
    found = check(sample, {R: 0.5, P: 0.5})
    assert found.verdicts == (Verdict.OPEN, Verdict.OPEN)
    assert found.interval[0, 0] > 200 / 450, "the interval alone would be wrong"


# Checks
@pytest.mark.parametrize("rule", [REPEATED, ONCE])
@pytest.mark.parametrize("metric", [P, R, F1, m.fowlkes_mallows, m.jaccard])
@pytest.mark.parametrize("pairs, verdict", [(90, Verdict.HOLDS), (89, Verdict.OPEN)])
def test_metrics_of_links_do_not_hold_while_a_notable_share_is_out_of_reach(pairs, verdict, metric, rule):
    found = check(of_giant(pairs), {metric: 0.3}, rule)
    assert found.verdicts == (verdict,) and found.interval[0, 0] > 0.3
    if verdict is Verdict.OPEN:
        assert found.further == (None,)
        reason = "10.1% of all predicted links lie in predicted clusters larger than any that a draw touches"
        assert found.reasons[0].startswith(reason) and "label more draws" in found.reasons[0]
        assert found.table()["reason"].tolist() == list(found.reasons) and reason in repr(found)[:9999]
        assert found.sentences()[0].endswith(f"0.3 is required, but {found.reasons[0]}.")
    else:
        assert found.reasons == ("",) and "reason" not in found.table()


SAMPLED = sorted(set(giant(190, sampled=60)[1].values()))
"""With six repeats, as draws of 385 records have some, and with few are a fault."""


@pytest.mark.parametrize("rule", [REPEATED, ONCE])
@pytest.mark.parametrize("metric", [P, R, F1])
@pytest.mark.parametrize("design", [eb.UniformRecords([*SAMPLED, *SAMPLED[:6]]), eb.UniformClusters()])
def test_a_check_allows_for_any_share(design, metric, rule):
    """5 of 100 predicted links are out of reach, which no table would tell."""
    sample = of_giant(190, design, sampled=60)
    (low, high), share = plain(sample, [metric], 0.95, rule.kind)[0], 10 / 200
    (certain,) = eb.engine.Taylor()(sample, [metric]).unseen.certain
    found = check(sample, {metric: 0.3}, rule)
    least, most = widened(found.estimate[0], (low, high), share)
    np.testing.assert_allclose(found.interval[0], np.clip([least, most], *certain))
    between = (least + low) / 2  # only the share out of reach is in the way
    open_ = check(sample, {metric: between}, rule)
    assert open_.verdicts == (Verdict.OPEN,) and open_.reasons[0].startswith("5% of all predicted links")
    assert check(sample, {metric: least - 1e-9}, rule).verdicts == (Verdict.HOLDS,)
    above = check(sample, {metric: low + 0.01}, rule)
    assert above.verdicts == (Verdict.OPEN,) and above.reasons == ("",) and above.further[0] > 0


def test_b3_allows_for_the_records_out_of_reach_and_cluster_recall_for_nothing():
    """Under uniform entities no draw may show the records of giants; it shows entities as they are."""
    sample = of_giant(60, eb.UniformClusters(), sampled=30)
    for metric, share in ((m.b3_recall, 5 / 125), (m.b3_precision, 5 / 125), (CR, 0.0)):
        low, high = plain(sample, [metric], 0.95, REPEATED.kind)[0]
        found = check(sample, {metric: 0.3})
        if found.kinds[0].startswith("Beta"):
            ends = widened(found.estimate[0], (low, high), share)
            (certain,) = eb.engine.Taylor()(sample, [metric]).unseen.certain
            np.testing.assert_allclose(found.interval[0], np.clip(np.clip(ends, 0, 1), *certain))
        assert found.verdicts == (Verdict.HOLDS,)
    ends = plain(sample, [m.b3_recall], 0.95, REPEATED.kind)[0]
    least, _ = widened(check(sample, {m.b3_recall: 0.3}).estimate[0], ends, 5 / 125)
    found = check(sample, {m.b3_recall: (least + ends[0]) / 2})
    assert found.verdicts == (Verdict.OPEN,) and found.reasons[0].startswith("4% of all records lie in")


def test_a_metric_fails_whatever_is_out_of_reach():
    """All of a notable share may be right, and precision is too low all the same."""
    sample = of_giant(60, wrong=20)
    high = plain(sample, [P], 0.95, REPEATED.kind)[0, 1]
    most = 60 / 70 * high + 10 / 70
    assert check(sample, {P: most + 1e-6}).verdicts == (Verdict.FAILS,)
    assert check(sample, {P: most + 1e-6}).reasons == ("",)
    assert check(sample, {P: most - 1e-6}).verdicts == (Verdict.OPEN,)
    assert check(sample, {P: high + 1e-6}).reasons[0].startswith("14.3% of all")


def test_exact_intervals_need_no_guard():
    prediction, labels = giant(60, wrong=0)
    drawn = list(eb.measure(prediction, labels).ids)
    design = eb.design.ByPredictedSize(eb.columns.PREDICTED_LINKS, drawn)
    sample = eb.Sample(eb.measure(prediction, labels), design)
    found = check(sample, {P: 0.5})
    np.testing.assert_allclose(found.interval[0], betting(np.ones(20), anytime=True))
    assert found.verdicts == (Verdict.HOLDS,) and found.reasons == ("",)
    assert sample.unreached_share(eb.columns.PREDICTED_LINKS) == 10 / 70


def off_balance(known, wrong):
    """40 pairs of 2,080 records, `wrong` of which are apart in the prediction, and `known` predicted links."""
    right = 40 - wrong
    sampled = {r: r // 2 if r < 2 * right else 1000 + r for r in range(80)}
    others = {80 + r: 10**4 + (r // 2 if r < 2 * (known - right) else r + 10**4) for r in range(2000)}
    return eb.Sample(eb.measure(sampled | others, {r: r // 2 for r in range(80)}), eb.UniformRecords())


@pytest.mark.parametrize("known, off", [(200, True), (400, False), (640, False), (900, True)])
def test_metrics_do_not_hold_out_of_balance(known, off):
    """520 predicted links are estimated with a standard error of 83, whose triple is the bar of the alarm."""
    found = check(off_balance(known, 20), {R: 0.01, m.b3_recall: 0.3})
    assert found.verdicts == (Verdict.OPEN if off else Verdict.HOLDS,) * 2
    said = "the sample has a fault: Out of balance: the sample estimates 520 predicted links"
    assert [why.startswith(said) for why in found.reasons] == [off] * 2


def test_designs_that_never_draw_some_records_have_no_balance():
    prediction, labels = giant(200, wrong=2)
    prediction |= {10**7 + i: 10**7 + i for i in range(4000)}
    units = eb.measure(prediction, labels)
    sample = eb.Sample(units, eb.design.ByPredictedSize(eb.columns.PREDICTED_LINKS))
    assert check(sample, {P: 0.3}, Rule(exact=eb.intervals.Anytime())).reasons == ("",)


def wrong_giant(giant=60, records=5000, seed=3):
    """Entities of 1 to 4 records, right but for one cluster of strangers."""
    rng = np.random.default_rng(seed)
    size = rng.integers(1, 5, records // 2)
    truth = np.repeat(np.arange(len(size)), size)[:records]
    prediction = truth.copy()
    prediction[rng.choice(records, giant, replace=False)] = 10**6
    return pd.Series(prediction), pd.Series(truth)


def split_giants(seed=0, records=8000):
    """Many perfect small entities, and ten of 60 to 200 records in two halves."""
    rng = np.random.default_rng(seed)
    size = np.concatenate([rng.integers(1, 5, records // 2), rng.integers(60, 200, 10)])
    truth = np.repeat(np.arange(len(size)), size)
    halves = 10**6 + 2 * truth + np.arange(len(truth)) % 2
    return pd.Series(np.where(truth >= records // 2, halves, truth)), pd.Series(truth)


def passes(population, design, metric, samples, looks):
    """Shares of samples that pass a minimum just above the truth at a look: now, and without the share."""
    units = eb.measure(*population)
    census = eb.Sample(units, eb.UniformClusters(population=len(units)))
    truth = eb.engine.taylor(census, metric).apply(metric, 1).mean[0]
    weight = units.size if isinstance(design, eb.UniformRecords) else np.ones(len(units))
    rng = np.random.default_rng(5)
    now, before = np.zeros((2, samples), bool)
    for i in range(samples):
        at = rng.choice(len(units), looks[-1], p=weight / weight.sum())
        for n in looks:
            sample = eb.Sample(units, design, design.expand_draws(units, at[:n]))
            now[i] |= check(sample, {metric: truth + 1e-6}).verdict is Verdict.HOLDS
            before[i] |= plain(sample, [metric], 0.95, eb.intervals.Anytime())[0, 0] > truth
    return now.mean(), before.mean()


SPLIT = split_giants()


@pytest.mark.study
@pytest.mark.parametrize("design", [eb.UniformRecords(), eb.UniformClusters()])
@pytest.mark.parametrize("population", [wrong_giant(), SPLIT], ids=["wrong giant", "split giants"])
@pytest.mark.parametrize("metric", TABLE)
def test_false_passes_with_giants_are_rare_at_every_look(population, design, metric):
    if metric is CR and isinstance(design, eb.UniformRecords):
        pytest.skip("its interval is not exact, and giants are no cause of that")
    if metric in (P, m.b3_precision) and population is SPLIT:
        pytest.skip("split entities leave precision at 1, which no minimum exceeds")
    now, _ = passes(population, design, metric, 300, [10, 15, 20, 30, 45, 65, 100, 150, 200])
    assert now <= binom.ppf(0.99, 300, 0.025) / 300


def test_the_shell_leaves_it_open_with_the_reason(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    prediction, labels = giant(60)
    pd.Series(prediction, name="cluster").rename_axis("record").to_csv("p.csv")
    pd.Series(labels, name="entity").rename_axis("record").to_csv("l.csv")
    pd.Series(sorted(set(labels.values())), name="entity").to_csv("d.csv", index=False)
    words = ("check", "p.csv", "l.csv", "--design", "uniform-records", "--drawn", "d.csv")
    for option in ("--min-precision", "--min-recall"):
        shown = run(*words, option, "0.3")
        assert shown.exit_code == 3
        assert "but 14.3% of all predicted links lie in predicted clusters larger" in shown.stdout
    (row,) = json.loads(run(*words, "--min-precision", "0.3", "--format", "json").stdout)["estimates"]
    assert row["verdict"] == "open" and row["reason"].startswith("14.3% of all") and row["further"] is None
    shown = done(*words, "--min", "b3-recall=0.3")
    assert "reason" not in shown.stdout
