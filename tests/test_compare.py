import numpy as np
import pandas as pd
import pytest
from test_census import population

import erbayes as eb
from erbayes import metrics as m
from erbayes._internal.errors import Grade
from erbayes.engine import Resampled

CHOSEN = [m.pairwise_precision, m.pairwise_recall, m.adjusted_rand]


def two(seed=5):
    pred, true = population(seed)
    other = pred.copy()
    other.iloc[::7] = 1000 + np.arange(len(other.iloc[::7]))
    return pred, other, true


def test_each_prediction_as_by_itself_and_the_difference_paired():
    pred, other, true = two()
    some = true[true.isin(sorted(true.unique())[:9])]
    design = eb.UniformRecords(repeats=True)
    found = eb.compare({"a": pred, "b": other}, some, design, CHOSEN)
    for k, p in enumerate((pred, other)):
        alone = eb.estimate(p, some, design, CHOSEN)
        part = slice(3 * k, 3 * k + 3)
        np.testing.assert_allclose(found.joint.mean[part], alone.mean, rtol=1e-14)
        np.testing.assert_allclose(found.joint.cov[part, part], alone.cov, rtol=1e-8)
    table = found.differences()
    assert list(table.difference.unique()) == ["b - a"]
    certain = found.subtract("a", "b").unseen.certain
    paired = found.joint.estimate[3:] - found.joint.estimate[:3]
    np.testing.assert_allclose(table.estimate, np.clip(paired, *certain.T), rtol=1e-14)
    # by the definition of the ratio's linearisation, draw by draw
    drawn = [eb.measure(p, some).table() for p in (pred, other)]
    e = []
    for t in drawn:
        w = 1 / t.records
        top, bottom = (w * t.common_links), (w * t.predicted_links)
        e.append((top - top.sum() / bottom.sum() * bottom) / bottom.sum())
    d = e[1] - e[0]
    n = len(d)
    assert found.subtract("a", "b").uncut_sd[0] == pytest.approx(
        np.sqrt(n / (n - 1) * (d**2).sum()), rel=1e-10
    )


def test_intervals_of_differences_hold_at_once():
    """In a population of which nearly all is without labels, so that these settle few ends."""
    pred, other, true = two()
    third = other.copy()
    third.iloc[::5] = 2000
    pred, other, third, true = (
        pd.concat([(one + 10**4 * i).rename(lambda r, i=i: f"{i} {r}") for i in range(50)])
        for one in (pred, other, third, true)
    )
    some = true[true.isin(sorted(true.unique())[:12])]
    found = eb.compare({"a": pred, "b": other, "c": third}, some, eb.UniformRecords(), CHOSEN)
    together, alone = (found.differences(simultaneous=s) for s in (True, False))
    assert list(together.difference.unique()) == ["b - a", "c - a", "c - b"]
    pd.testing.assert_frame_equal(together[["estimate", "se"]], alone[["estimate", "se"]])
    # the level of three differences lies between that of one and Bonferroni's, but for Monte Carlo error
    three = found.differences(1 - 0.049 / 3)
    certain = np.vstack(
        [found.subtract(*pair).unseen.certain for pair in (("a", "b"), ("a", "c"), ("b", "c"))]
    )
    longer = (together.lower < alone.lower) | (together.lower == certain[:, 0])
    assert longer.all() and (together.lower >= three.lower).all()
    longer = (together.upper > alone.upper) | (together.upper == certain[:, 1])
    assert longer.all() and (together.upper <= three.upper).all()
    assert ((together.lower != certain[:, 0]).sum(), (together.upper != certain[:, 1]).sum()) == (6, 8)


def test_different_coverage_is_said_and_chosen():
    pred, other, true = two()
    both = {"a": pred, "b": other.iloc[5:]}
    with pytest.raises(eb.DataError, match="share 55 records; beyond these 'a' covers 5"):
        eb.compare(both, true, eb.UniformClusters(), CHOSEN)
    found = eb.compare(both, true, eb.UniformClusters(), CHOSEN, missing=eb.Missing.COMMON)
    wanted = eb.estimate(pred.iloc[5:], true.iloc[5:], eb.UniformClusters(), CHOSEN)
    np.testing.assert_allclose(found.joint.mean[:3], wanted.mean, rtol=1e-12)
    with pytest.raises(eb.DataError, match="two predictions or more"):
        eb.compare({"a": pred}, true, eb.UniformClusters(), CHOSEN)


TRUTH = [metric for metric in m.ALL if metric.group is m.definitions.Group.TRUTH]


@pytest.mark.every(3)
@pytest.mark.parametrize("engine", ["closed form", "jackknife", "bootstrap"])
@pytest.mark.parametrize("metric", TRUTH, ids=str)
def test_one_truth_has_one_number_whatever_is_predicted(metric, engine):
    true = pd.Series(np.arange(600) // 2 - (np.arange(600) // 2) % 3 // 2)
    predictions = {"a": true.where(true.index % 9 > 0, 9000 + true.index), "b": true}
    drawn = true.iloc[np.random.default_rng(0).integers(0, len(true), 90)].tolist()
    labels, design = true[true.isin(drawn)], eb.UniformRecords(drawn)
    found = eb.compare(predictions, labels, design, [m.pairwise_recall, metric], engine=engine, rng=1)
    columns = ["estimate", "lower", "upper"]
    levels = found.levels().query("metric == @metric.name")[columns].to_numpy()
    np.testing.assert_array_equal(levels[0], levels[1])
    row = found.differences().set_index("metric").loc[metric.name]
    assert (row[["estimate", "lower", "upper", "se" if "se" in row else "sd"]].fillna(0) == 0).all()
    # the level is that of a prediction alone, of the one with fewer errors where it matters
    if engine == "closed form":
        alone = eb.estimate(true, labels, design, metric).table()[columns].to_numpy()[0]
        np.testing.assert_allclose(levels[0], alone)


def test_the_number_of_entities_is_that_of_the_prediction_that_knows_it_best():
    true = pd.Series(np.arange(600) // 3)
    poor, other = (true.where(true.index % 4 != part, 9000 + true.index) for part in (0, 1))
    drawn = true.iloc[np.random.default_rng(1).integers(0, len(true), 90)].tolist()
    given = true[true.isin(drawn)], eb.UniformRecords(drawn), ["entities", "mean-cluster-size"]
    # of two that are alike, one knows the number better by its error, and the other one the mean size
    alike = {"poor": poor, "other": other}
    for predictions in ({"poor": poor, "good": true}, {"good": true, "poor": poor}, alike):
        found = eb.compare(predictions, *given)
        assert found["poor"].estimate.prod() == pytest.approx(len(true))
        for name in predictions if "good" in predictions else ():
            np.testing.assert_allclose(found[name].interval(), eb.estimate(true, *given).interval())


def test_what_is_left_out_is_counted():
    pred, true = population(4)
    other = pred.drop(true.index[true == true.iloc[0]][:1])
    found = eb.compare(
        {"a": pred, "b": other}, true, eb.UniformClusters(), [m.pairwise_recall], missing=eb.Missing.COMMON
    )
    assert found.left_out == 1
    assert len(found.samples) == 2 and eb.alarms(found.samples[0], [m.pairwise_recall]) == []


def test_nothing_is_left_out_unasked():
    """Where predictions cover the same records, COMMON leaves out nothing."""
    pred, other, true = two()
    both, more = {"a": pred, "b": other}, pd.concat([true, pd.Series({"new": true.iloc[0]})])
    design, common = eb.UniformClusters(), eb.Missing.COMMON
    with pytest.raises(eb.DataError, match="1 of 61 labelled records are not in the prediction"):
        eb.compare(both, more, design, CHOSEN[:1], missing=common)
    for missing in (eb.Missing.OMIT, eb.Missing.SINGLETON):
        assert eb.compare(both, more, design, CHOSEN[:1], missing=missing).left_out == 0
    with pytest.raises(eb.DataError, match="the policy 'common' is for several predictions"):
        eb.measure(pred, true, missing=common)


def test_paired_bootstrap_agrees_with_the_closed_form_and_is_paired():
    true = pd.Series(np.arange(2000) // 4)
    pred = true.where(np.arange(2000) % 7 > 0, np.arange(2000) % 40)
    other = pred.where(np.arange(2000) % 9 > 0, np.arange(2000) + 5000)
    labels = true[true < 120]
    two_ = {"a": pred, "b": other}
    engine = Resampled(replicates=3000)
    closed = eb.compare(two_, labels, eb.UniformClusters(), [m.b3_recall]).joint
    found = eb.compare(two_, labels, eb.UniformClusters(), [m.b3_recall], engine=engine, rng=1)
    np.testing.assert_allclose(found.joint.cov, closed.cov, rtol=0.1)
    alone = eb.compare(
        {"a": pred, "b": pred}, labels, eb.UniformClusters(), [m.b3_recall], engine=engine, rng=1
    )
    assert (alone.joint.values[..., 0] == alone.joint.values[..., 1]).all()
    row = found.differences(0.9).iloc[0]
    gap = found.joint.flat[:, 1] - found.joint.flat[:, 0]
    assert row.sd == pytest.approx(gap.std(ddof=1), rel=1e-9)
    assert [row.lower, row.upper] == pytest.approx(list(np.quantile(gap, [0.05, 0.95])))


def test_alarms_are_raised_under_the_name_of_each_prediction():
    pred, other, true = two()
    some = true[true.isin(sorted(true.unique())[:2])]
    design = eb.UniformClusters()
    with pytest.warns(eb.Alarm) as raised:
        comparison = eb.compare({"old": pred, "new": other}, some, design, CHOSEN)
    alone = zip(comparison.predictions, comparison.samples, strict=True)
    found = [(name, alarm) for name, sample in alone for alarm in eb.alarms(sample, CHOSEN)]
    expected = [f"{name}: {alarm}" for name, alarm in found if alarm.grade is not Grade.NOTE]
    assert {text.split(":")[0] for text in expected} == {"old", "new"}
    assert [str(w.message) for w in raised if w.category is eb.Alarm] == expected


def test_a_sentence_says_which_prediction_is_above():
    labels = {i: i // 4 for i in range(400)}
    by = {name: {i: i // size for i in range(400)} for name, size in (("old", 2), ("new", 3), ("same", 2))}
    found = eb.compare(by, labels, eb.UniformClusters(), ["b3-recall", "cluster-recall"])
    first, second, third, _ = found.sentence(0.9).split(". ")[:4]
    row = found.differences(0.9).iloc[0]
    assert first.startswith(f"In b3-recall, new is above old by {row.estimate:.4f} (90 % interval ")
    assert second.startswith("In cluster-recall, new and old cannot be told apart (difference ")
    assert third.startswith("In b3-recall, same and old cannot be told apart (difference ")
    backwards = eb.compare({n: by[n] for n in ("new", "old")}, labels, eb.UniformClusters(), "b3-recall")
    assert backwards.sentence().startswith(f"In b3-recall, old is below new by {row.estimate:.4f} ")


def test_a_difference_has_no_sentence_of_a_metric():
    """It would say that ".01 of the links are right"."""
    old, new, truth = two()
    labels = truth[truth.isin(sorted(truth.unique())[:9])]
    both = eb.compare({"old": old, "new": new}, labels, eb.UniformClusters(), CHOSEN)
    said = both.subtract("old", "new").sentence()
    assert said.startswith("The estimate of the difference in pairwise-precision is ")
    assert "of the links" not in said
    rand = both.subtract("old", "new").part([2]).sentence()
    assert "adjusted-rand" in rand and "are right" in both["new"].sentence()
