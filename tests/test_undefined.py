"""A metric that a sample cannot give is NaN with a reason, and the others stand."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from closed import closed
from shell import done, listed
from test_bootstrap import given

import erbayes as eb
from erbayes import metrics as m
from erbayes.analysis.planning import forecast
from erbayes.engine import BCa, Resampled, bootstrap, side_by_side
from erbayes.metrics.intervals import EqualTailed
from erbayes.report import report

pytestmark = pytest.mark.kernel
# 20 entities of one record, half of which the prediction joins to others: no true link, so no recall
PREDICTION = {i: i // 2 if i < 10 else 100 + i for i in range(40)}
SINGLES = {i: i for i in range(0, 40, 2)}
METRICS = [m.b3_precision, m.pairwise_recall, m.pairwise_precision, m.entities]
DEFINED = np.array([True, False, True, True])
EMPTY = "its denominator is 0 in this sample"
SAMPLE = eb.Sample(eb.measure(PREDICTION, SINGLES), eb.UniformClusters())


def alone(metrics):
    return eb.engine.taylor(SAMPLE, metrics).apply(metrics)


def test_the_others_are_what_they_are_without_it():
    found = alone(METRICS)
    others = [x for x, there in zip(METRICS, DEFINED, strict=True) if there]
    np.testing.assert_array_equal(np.isnan(found.mean), ~DEFINED)
    assert found.reasons == ("", EMPTY, "", "")
    np.testing.assert_allclose(found.mean[DEFINED], alone(others).mean, rtol=1e-15)
    expected = alone(others)
    # an effect is a sum of ratios of size 1, exact to a few eps; a covariance is a mean of its products with another
    rounding = 4 * np.finfo(float).eps * expected.sd.max()
    np.testing.assert_allclose(found.cov[np.ix_(DEFINED, DEFINED)], expected.cov, rtol=1e-15, atol=rounding)
    table = found.table()
    assert table["reason"].tolist() == ["", EMPTY, "", ""]
    np.testing.assert_array_equal(table[["estimate", "se", "lower", "upper"]].isna().all(axis=1), ~DEFINED)
    pd.testing.assert_frame_equal(table[DEFINED].drop(columns="reason"), alone(others).table())
    assert found.part([1, 0]).reasons == (EMPTY, "")


def test_a_table_without_a_reason_has_no_column_of_them():
    assert "reason" not in alone([m.b3_precision, m.entities]).table()


@pytest.mark.parametrize("asked", [[m.pairwise_recall], [m.pairwise_recall, m.muc_recall]])
def test_nothing_left_is_an_error(asked):
    for order in (1, 2):
        with pytest.raises(eb.NotIdentified, match=r"pairwise-recall.*: its denominator is 0 in this sample"):
            eb.engine.taylor(SAMPLE, asked).apply(asked, order)


def test_a_contrast_is_undefined_where_it_needs_the_metric():
    rows = [[1, 0, -1, 0], [1, -1, 0, 0], [0, 0, 0, 2]]
    for joint in (alone(METRICS), bootstrap(SAMPLE, METRICS, replicates=50, rng=1)):
        found = joint.contrast(rows, ["P - P", "P - R", "2 K"])
        np.testing.assert_array_equal(np.isnan(found.mean), [False, True, False])
        np.testing.assert_array_equal(np.isnan(found.sd), [False, True, False])
        assert found.mean[0] == pytest.approx(joint.mean[0] - joint.mean[2], rel=1e-12)
        assert found.mean[2] == pytest.approx(2 * joint.mean[3], rel=1e-12)
        assert [bool(why) for why in found.reasons] == [False, True, False]


def test_alarms_speak_of_the_others():
    both, without = ([x for x in METRICS if x is not m.pairwise_recall or keep] for keep in (True, False))
    assert eb.alarms(SAMPLE, both) == eb.alarms(SAMPLE, without)
    said = "no unit has an influence on pairwise-recall: its denominator is 0"
    with pytest.raises(eb.NotIdentified, match=said):
        eb.influence(SAMPLE, "pairwise-recall")


# one entity of two records among ones: recall is 0/0 where it is left out, or not drawn again
FRAGILE = eb.Sample(eb.measure(PREDICTION, SINGLES | {1: 0}), eb.UniformClusters())


def test_the_jackknife_of_what_a_single_unit_carries():
    found = eb.engine.jackknife(FRAGILE, METRICS)
    closed = eb.engine.taylor(FRAGILE, METRICS).apply(METRICS, order=1)
    np.testing.assert_allclose(found.mean, closed.mean, rtol=1e-15)
    np.testing.assert_array_equal(np.isnan(found.sd), ~DEFINED)
    assert found.reasons == ("", "its jackknife is 0/0 if one draw is left out", "", "")
    said = "A single unit carries an estimate (pairwise-recall is 0/0 if one draw is left out): label more."
    assert [a for a in eb.alarms(FRAGILE, METRICS) if a.startswith("A single unit")] == [said]


@pytest.mark.parametrize("kind", [EqualTailed(), BCa()])
def test_the_bootstrap_of_the_others(kind):
    boot = bootstrap(SAMPLE, METRICS, replicates=100, rng=1)
    bounds = boot.interval(0.9, kind)
    np.testing.assert_array_equal(np.isnan(bounds).all(axis=1), ~DEFINED)
    np.testing.assert_array_equal(np.isnan(bounds).any(axis=1), ~DEFINED)
    others = [x for x, there in zip(METRICS, DEFINED, strict=True) if there]
    wanted = bootstrap(SAMPLE, others, replicates=100, rng=1).interval(0.9, kind)
    np.testing.assert_allclose(bounds[DEFINED], wanted, rtol=1e-12)
    assert [*filter(None, boot.table(0.9, EqualTailed())["reason"])] == [EMPTY]


@pytest.mark.parametrize("kind", [EqualTailed(), BCa()])
def test_a_metric_that_some_replicates_lack_has_the_interval_of_the_closed_form(kind, monkeypatch):
    """Two entities have links, so that every draw may be left out; one replicate has neither."""
    found = bootstrap(FRAGILE, METRICS, replicates=100, rng=1)  # no replicate loses the one unit with a link
    closed = eb.estimate(FRAGILE, metrics=METRICS).interval(0.9)
    np.testing.assert_allclose(found.interval(0.9, kind)[~DEFINED], closed[~DEFINED], rtol=1e-12)
    sample = eb.Sample(eb.measure(PREDICTION, SINGLES | {1: 0, 3: 2}), eb.UniformClusters())
    counts = np.random.default_rng(1).multinomial(20, np.full(20, 0.05), 60)
    counts[:, :2] += 1
    counts[7, :2] = 0
    boot = bootstrap(sample, METRICS, **given(monkeypatch, counts))
    closed = eb.estimate(sample, metrics=METRICS).interval(0.9)
    assert np.isnan(boot.values[0, 7]).tolist() == (~DEFINED).tolist()
    np.testing.assert_allclose(boot.interval(0.9, kind)[~DEFINED], closed[~DEFINED], rtol=1e-12)
    assert np.isfinite(boot.interval(0.9, kind)).all()


def test_naive_side_by_side_and_planning():
    results = {"Taylor": eb.engine.taylor(SAMPLE, METRICS), "given": alone(METRICS)}
    results["bootstrap"] = bootstrap(SAMPLE, METRICS, replicates=50, rng=1)
    results["naive"] = eb.engine.naive(SAMPLE.units, [m.b3_precision, m.pairwise_recall])
    found = side_by_side(results, METRICS[:1] + METRICS[2:])
    assert not found.lacking.keys() - {("naive", "pairwise-precision"), ("naive", "entities")}
    with pytest.raises(eb.NotIdentified, match=r"no result has pairwise-recall: .*denominator is 0"):
        side_by_side({"given": alone(METRICS)}, METRICS)
    engines = {"Taylor": eb.engine.taylor, "jackknife": eb.engine.jackknife}
    table = side_by_side({name: engine(FRAGILE, METRICS) for name, engine in engines.items()}, METRICS)
    assert list(table.lacking) == [("jackknife", "pairwise-recall")]
    rows = {x.name: 1 + (x is not METRICS[1]) for x in METRICS}
    assert table.rows.groupby("metric").size().to_dict() == rows


def test_a_plan_of_the_others():
    designs = {"r": eb.UniformRecords(), "k": eb.UniformClusters()}
    wish = np.array([0.1, 0.1, 0.1, 5.0])
    found = forecast(SAMPLE, METRICS, designs)
    others = forecast(SAMPLE, [x for x, there in zip(METRICS, DEFINED, strict=True) if there], designs)
    table, rest = found.table(wish), others.table(wish[DEFINED])
    bad = table["metric"] == "pairwise-recall"
    assert table["reason"].tolist() == [EMPTY if x else "" for x in bad]
    assert table.loc[bad].drop(columns=["design", "metric", "reason"]).isna().any(axis=1).all()
    defined = table[~bad].drop(columns="reason").reset_index(drop=True)
    pd.testing.assert_frame_equal(defined, rest, check_dtype=False)
    assert "reason" not in rest
    for name, outlook in found.designs.items():
        half = outlook.half_widths(30, 0.95)
        assert np.isnan(half).tolist() == [x is METRICS[1] for x in METRICS]
        np.testing.assert_array_equal(half[DEFINED], others.designs[name].half_widths(30, 0.95))
    with pytest.raises(eb.NotIdentified, match="pairwise-recall, muc-recall: its denominator is 0"):
        forecast(SAMPLE, [m.pairwise_recall, m.muc_recall], designs)


@pytest.mark.parametrize("engine", [None, Resampled(replicates=60)])
def test_a_comparison_of_the_others(engine):
    both, design = {"a": PREDICTION, "b": {i: i // 4 for i in range(40)}}, eb.UniformClusters()
    found = eb.compare(both, SINGLES, design, METRICS, engine=engine, rng=1)
    for table in (found.differences(), found.table()):
        bad = table["metric"] == "pairwise-recall"
        assert table.loc[bad, ["estimate", "lower", "upper"]].isna().all(axis=None)
        assert table.loc[~bad, ["estimate", "lower", "upper"]].notna().all(axis=None)
        assert (table["reason"] != "").tolist() == bad.tolist()


def test_a_comparison_with_a_prediction_without_links():
    alone, pairs = {i: i for i in range(40)}, {i: i // 2 for i in range(40)}
    labels, metrics = {i: i // 2 for i in range(20)}, [m.pairwise_precision, m.b3_precision]
    for both in ({"a": alone, "b": pairs}, {"b": pairs, "a": alone}):
        table = eb.compare(both, labels, eb.UniformRecords(), metrics).differences()
        assert table["reason"].tolist() == [EMPTY, ""] and table["upper"].isna().tolist() == [True, False]


ENGINES = [(None, "xyz"), (Resampled(replicates=60), "xyz"), (eb.engine.BoundedMeans(), "xz")]


@pytest.mark.parametrize(("engine", "names"), ENGINES)
def test_a_domain_without_draws_beside_others(engine, names):
    """The last of the domains, of 160 records, of which the first 80 have labels."""
    edges = np.linspace(0, 80, len(names))[1:]
    groups = {i: names[np.searchsorted(edges, i, "right")] for i in range(160)}
    prediction, labels = {i: i // 2 if i % 7 else i // 14 for i in range(160)}, {i: i // 2 for i in range(80)}
    drawn = np.random.default_rng(1).permutation(40)  # bets need the order of drawing
    sample = eb.Sample(eb.measure(prediction, labels), eb.UniformRecords(drawn))
    found = eb.by_domain(sample, groups, [m.b3_precision], engine=engine, rng=1, fewest=1)
    for table in (found.table(), found.differences()):
        of_last = table.iloc[:, 0].str.contains("z")
        assert (table["lower"].isna() == of_last).all()
        assert (table["reason"].eq("no labelled record is in this domain") == of_last).all()


@pytest.mark.parametrize("engine", [None, Resampled(replicates=60)])
def test_a_domain_whose_denominator_is_0_is_not_without_labels(engine):
    """Records of y are predicted singletons: they make no link that could be right, and have labels."""
    groups = {i: "x" if i < 60 else "y" for i in range(120)}
    prediction, labels = {i: i // 2 if i < 60 else i for i in range(120)}, {i: i // 3 for i in range(120)}
    sample = eb.Sample(eb.measure(prediction, labels), eb.UniformClusters())
    found = eb.by_domain(sample, groups, ["pairwise-precision", "b3-recall"], engine=engine, rng=1).table()
    reason = found.set_index(["domain", "metric"])["reason"]
    assert reason["y", "pairwise-precision"] == EMPTY and not reason["y", "b3-recall"]


def test_the_page_says_why():
    page = report(SAMPLE, [m.pairwise_recall, m.b3_precision])
    for engine in ("closed form", "jackknife", "bootstrap"):
        assert f"pairwise-recall, {engine}: {EMPTY}." in page
    assert f"no unit has an influence on pairwise-recall: {EMPTY}." in page


def test_the_shell_prints_null_and_why(tmp_path):
    files = []
    for name, rows in (("p", PREDICTION), ("l", SINGLES)):
        files.append(str(tmp_path / f"{name}.csv"))
        pd.Series(rows).rename_axis("record").rename("cluster").reset_index().to_csv(files[-1], index=False)
    call = ["estimate", *files, "--design", "uniform-clusters", "--metrics", "b3-precision,pairwise-recall"]
    rows = listed(*call)
    assert [row["reason"] for row in rows] == ["", EMPTY]
    assert [rows[1][c] for c in ("estimate", "se", "lower", "upper")] == [None] * 4
    assert isinstance(rows[0]["estimate"], float)
    call = ["plan", *call[1:], "--half-width", "0.1"]
    rows = listed(*call)
    assert [row["reason"] for row in rows] == ["", EMPTY] * 3
    assert [rows[1][c] for c in ("n", "n_low", "n_high", "cost")] == [None] * 4
    assert isinstance(rows[0]["n"], int) and EMPTY in done(*call).stdout


# Variances below 0
def test_a_variance_below_0_takes_no_other_row():
    cov = np.array([[-1e-4, 0, 0], [0, 4e-4, 0], [0, 0, -1e-26]])
    found = closed([0.5] * 3, cov, 9.0, names="abc", effective=10)
    np.testing.assert_allclose(found.sd, [np.nan, 0.02, 0], atol=1e-16)
    reasons = found.table()["reason"]
    assert "variance estimate is below 0" in reasons["a"] and "use the jackknife" in reasons["a"]
    assert reasons["b"] == reasons["c"] == "" and found.table()["estimate"].tolist() == [0.5] * 3
    both = found.contrast([[1, -1, 0], [1, 0, -1]], ["a - b", "a - c"])
    assert both.sd[0] == pytest.approx(np.sqrt(3e-4)) and np.isnan(both.sd[1])
    with pytest.raises(eb.DataError, match="a - c: its variance estimate is below 0"):
        both.contrast([[0, 1]], ["a - c"]).sd  # noqa: B018


def test_even_metrics_have_variance_0_whatever_the_rounding():
    """All entities err alike up to their number of records: ratios do not vary, totals do."""
    rng = np.random.default_rng(4)
    for _ in range(40):
        many = rng.integers(1, 60)
        true = np.repeat(np.arange(many), 3 * rng.integers(1, 4, many))
        pred = np.arange(len(true)) // 3 if rng.random() < 0.5 else true
        sample = eb.Sample(eb.measure(pd.Series(pred), pd.Series(true)), eb.UniformClusters())
        chosen = [m.pairwise_precision, m.b3_precision, m.muc_precision]
        if many > 1:
            np.testing.assert_array_equal(eb.engine.taylor(sample, chosen).apply(chosen).sd, 0)


def test_an_engine_whose_variance_is_below_0_stands_beside_others():
    totals = eb.engine.taylor(SAMPLE, "b3-precision")
    found = side_by_side({"Taylor": totals, "own": replace(totals, cov=-totals.cov)}, "b3-precision")
    assert found.rows["method"].tolist() == ["Taylor"] and "below 0" in found.lacking["own", "b3-precision"]


@pytest.mark.slow
# a histogram of one size says nothing about others, so that a fit warns of its weights
@pytest.mark.filterwarnings("ignore:.*importance weights are unreliable")
@pytest.mark.parametrize("engine", ["size model", "posterior", "bootstrap"])
def test_no_label_helps_the_precision_of_a_prediction_without_links(engine):
    units = eb.measure({i: i for i in range(400)}, {i: i // 3 for i in range(99)})
    sample = eb.Sample(units, eb.UniformClusters())
    found = eb.estimate(sample, metrics=[m.pairwise_precision, m.pairwise_recall], engine=engine, rng=1)
    assert found.table().loc["pairwise-precision", "reason"] == EMPTY and "label more" not in found.sentence()


@pytest.mark.parametrize("n", [2, 5, 20, 50])
@pytest.mark.parametrize("own, of", [(4, 7), (2, 3), (2, 6)])
def test_draws_that_are_alike_leave_no_variance_by_rounding(own, of, n):
    """Each entity is some of the records of its cluster, and counts once by its chance to be drawn at all."""
    prediction = {i: i // of for i in range(3000 * of)}
    labels = {i + of * k: k for k in range(n) for i in range(own)}
    found = eb.estimate(prediction, labels, eb.UniformRecords(list(range(n))), "b3-precision")
    assert found.sd[0] == 0 and not found.reasons[0] and found.estimate[0] == pytest.approx(own / of)


def test_a_ratio_to_nothing_has_no_estimate():
    """Predicted links over true ones, of which the sample has none."""
    prediction, labels = {i: i // 2 for i in range(50)}, {i: i for i in range(20)}
    design = eb.UniformRecords(list(range(20)))
    found = eb.estimate(prediction, labels, design, ["link-ratio", "pairwise-precision"])
    assert np.isnan(found.estimate[0]) and "denominator is 0" in found.reasons[0] and found.estimate[1] == 0
