"""The curve of thresholds: its estimates, bands, sets of the best and certificates."""

import re
import sqlite3
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from closed import closed
from scipy.stats import beta, norm

import erbayes as eb
from erbayes._internal.names import find_thresholds
from erbayes.analysis.thresholds import CAUTIOUS, Curve, _count_needed, _keep_best, load_edges
from erbayes.engine import Jackknife, Resampled, Taylor
from erbayes.large import DatabaseTable, Dialect, RunSQL
from erbayes.large.duckdb import DuckTable
from erbayes.metrics.intervals import simultaneous_level

NOWHERE = np.zeros((1, 2))
"""No unreached links can move an estimate."""


def matcher(entities=120, seed=1):
    """Entities of one to four records, edges inside them with high scores, and edges to others with low ones."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(entities), rng.integers(1, 5, entities))
    N = len(truth)
    rows = [(i, i + 1, rng.normal(3, 2)) for i in range(N - 1) if truth[i] == truth[i + 1]]
    rows += [(i, j, rng.normal(-1, 2)) for i, j in rng.integers(0, N, (N, 2))]
    edges = pd.DataFrame(rows, columns=["l", "r", "score"]).round({"score": 1})
    return edges, pd.Series(truth)


def sampled(truth, draws, seed=2):
    """Labels of the entities of records drawn at random, and their design."""
    drawn = truth.to_numpy()[np.random.default_rng(seed).integers(0, len(truth), draws)]
    return truth[truth.isin(drawn)], eb.UniformRecords(drawn)


EDGES, TRUTH = matcher()
LABELS, DESIGN = sampled(TRUTH, 60)
ROOT = eb.columns.ClusterSum("root", np.sqrt)


def curve_of(at=12, metrics=eb.metrics.DEFAULT_METRICS, **options):
    return eb.thresholds(EDGES, LABELS, DESIGN, metrics, records=TRUTH.index, at=at, **options)


def clustering(threshold):
    return eb.Clustering.from_pairs(EDGES, score="score", threshold=threshold, records=TRUTH.index)


def test_undecided_draws_are_a_fault_of_a_curve_too():
    resolved = np.ones(len(DESIGN.draws) + 10, dtype=bool)
    resolved[:10] = False
    with pytest.warns(eb.Alarm, match="10 of 70 draws are undecided"):
        eb.thresholds(EDGES, LABELS, eb.design.Responding(DESIGN, resolved), records=TRUTH.index, at=3)


@pytest.mark.parametrize("chances", ["by entities", "by the prediction"])
def test_each_threshold_is_judged_as_its_clustering_by_itself(chances):
    """Chances by predicted size are those of one prediction, from which draws were made."""
    design = DESIGN
    if chances == "by the prediction":
        design = eb.design.ByPredictedSize(ROOT)
        with pytest.raises(eb.DataError, match="chances of ByPredictedSize are those of one prediction"):
            eb.thresholds(EDGES, LABELS, design, records=TRUTH.index, at=12)
        design = eb.design.FrozenWeights(design, eb.measure(clustering(1.0), LABELS))
    curve = eb.thresholds(EDGES, LABELS, design, records=TRUTH.index, at=12)
    assert len(curve_of(1000, "pairwise-f1").thresholds) == EDGES.score.nunique() < 1000
    for k, threshold in enumerate(curve.thresholds):
        sample = eb.Sample(eb.measure(clustering(threshold), LABELS), design)
        alone = eb.engine.taylor(sample).apply(eb.metrics.DEFAULT_METRICS)
        part = slice(6 * k, 6 * k + 6)
        np.testing.assert_allclose(curve.joint.mean[part], alone.mean, rtol=1e-12)
        np.testing.assert_allclose(curve.joint.cov[part, part], alone.cov, rtol=1e-9, atol=1e-18)
    few = [2.0, 1.0, -1.0]
    together = eb.compare({str(t): clustering(t) for t in few}, LABELS, DESIGN).joint
    np.testing.assert_allclose(curve_of(few).joint.cov, together.cov, rtol=1e-12, atol=1e-18)


def test_a_census_has_bands_of_width_0_and_one_best_threshold_or_ties():
    design = eb.UniformClusters(population=TRUTH.nunique())
    curve = eb.thresholds(EDGES, TRUTH, design, records=TRUTH.index, at=30)
    table = curve.table("pairwise-f1")
    np.testing.assert_allclose(table.upper - table.lower, 0, atol=1e-15)
    assert table.estimate.max() == curve.best("pairwise-f1").estimate.iloc[0]
    assert len(curve.best("pairwise-f1")) == 1
    best = clustering(curve.best("pairwise-f1").threshold[0])
    twice = {1.0: best, 2.0: best, 3.0: clustering(5.0)}
    assert set(eb.thresholds(twice, TRUTH, design).best("pairwise-f1").threshold) == {1.0, 2.0}
    reached = curve.table("pairwise-precision").query("estimate >= .8")
    assert curve.certified("pairwise-precision", 0.8).threshold <= reached.threshold.max()


def test_a_band_is_that_of_all_thresholds_of_one_metric():
    curve = curve_of()
    part = curve.joint.part(range(1, 72, 6))
    enough = [k for k in range(12) if curve.effective[k, 1] >= 10]
    level = simultaneous_level(part.part(enough), 0.9)
    assert 0.9 < level < 0.99
    table = curve.table("pairwise-recall", 0.9)
    np.testing.assert_allclose(table[["lower", "upper"]], part.interval(level), rtol=1e-12)
    assert list(curve.table().metric.unique()) == [metric.name for metric in eb.metrics.DEFAULT_METRICS]
    assert "Curve" in repr(curve)


def test_below_ten_effective_draws_there_is_no_interval():
    curve = curve_of()
    for effective, refused in ((9.99, True), (10.0, False)):
        of_fourth = np.where(np.arange(12)[:, None] == 4, effective, 50.0)
        other = replace(curve, effective=np.repeat(of_fourth, 6, 1))
        row = other.table("pairwise-recall").loc[4]
        assert (row.kind == "none") == np.isnan(row.lower) == refused
        if refused:
            assert row.reason == "9.99 effective draws are fewer than 10: looser thresholds have more"
            assert row.threshold in set(other.best("pairwise-recall").threshold)
    falling = np.where(np.arange(12)[:, None] < 10, 50.0, [[9.0]])
    reasons = replace(curve, effective=np.repeat(falling, 6, 1)).table("pairwise-recall").reason
    assert set(reasons[10:]) == {"9 effective draws are fewer than 10"}


def test_without_links_in_the_sample_precision_is_undefined_and_stays_in_the_set():
    curve = curve_of([50.0, 2.0, 0.0], metrics=("pairwise-precision", "pairwise-f1"))
    row = curve.table("pairwise-precision").loc[0]
    assert np.isnan(row.estimate) and "denominator is 0" in row.reason
    assert curve.best("pairwise-precision").threshold.iloc[-1] == 50.0


@pytest.mark.parametrize("engine", [None, "jackknife", Resampled(replicates=20)])
def test_one_metric_alone_has_the_same_curve_though_it_is_0_over_0_somewhere(engine):
    at = [50.0, 2.0, 0.0]
    alone = curve_of(at, metrics="pairwise-precision", engine=engine, rng=1)
    several = curve_of(at, engine=engine, rng=1).table("pairwise-precision")
    pd.testing.assert_frame_equal(alone.table(), several)
    assert alone.joint.names == ("pairwise-precision",) * 3
    given = {t: clustering(t) for t in at}
    given = eb.thresholds(given, LABELS, DESIGN, "pairwise-precision", engine=engine, rng=1)
    pd.testing.assert_frame_equal(given.table(), several)
    with pytest.raises(eb.NotIdentified, match="pairwise-precision: its denominator is 0"):
        none = {t: clustering(50.0) for t in (50.0, 49.0)}
        eb.thresholds(none, LABELS, DESIGN, "pairwise-precision", engine=engine, rng=1)


def test_the_set_of_two_thresholds_is_a_test_of_their_difference():
    x, z = np.array([0.8, 0.9]), norm.ppf(0.95)
    # the standard error of the difference decides: 0.1 is z standard errors where sd = 0.1 / z
    cov = [np.diag([v / 2, v / 2]) for v in ((0.1 / z / 0.97) ** 2, (0.1 / z / 1.03) ** 2)]
    assert _keep_best(x, cov[0], 0.95, False, NOWHERE, NOWHERE).tolist() == [True, True]
    assert _keep_best(x, cov[1], 0.95, False, NOWHERE, NOWHERE).tolist() == [False, True]


def test_the_set_of_many_by_a_plain_simulation():
    rng = np.random.default_rng(5)
    x, root = rng.normal(0, 1.3, 12), rng.normal(size=(12, 12))
    cov = root @ root.T / 12
    z = rng.multivariate_normal(np.zeros(12), cov, 40_000)
    margin = []
    for k in range(12):
        others = [j for j in range(12) if j != k]
        se = [np.sqrt(cov[j, j] + cov[k, k] - 2 * cov[j, k]) for j in others]
        worst = max((x[j] - x[k]) / s for j, s in zip(others, se, strict=True))
        drawn = np.max([(z[:, j] - z[:, k]) / s for j, s in zip(others, se, strict=True)], axis=0)
        margin.append(np.quantile(drawn, 0.95) - worst)
    assert min(np.abs(margin)) > 0.05 and 1 < (np.array(margin) > 0).sum() < 11
    assert _keep_best(x, cov, 0.95, False, NOWHERE, NOWHERE).tolist() == [g > 0 for g in margin]


def test_a_threshold_stays_whose_links_no_draw_reaches():
    """One false giant holds most links of the loose threshold, and no draw of 40 has met it."""
    rng = np.random.default_rng(0)
    true = pd.Series(np.repeat(np.arange(3000), rng.integers(1, 7, 3000)))
    alone = rng.random(len(true)) < 0.06
    strict = true.where(~alone, 10_000 + np.arange(len(true)))
    loose = true.where(~true.isin(rng.choice(3000, 60, False)), 9_999)
    stayed = []
    for seed in range(15):
        drawn = true.sample(40, replace=True, random_state=seed).to_numpy()
        labels, design = true[true.isin(drawn)], eb.UniformRecords(drawn)
        curve = eb.thresholds({2: strict, 1: loose}, labels, design, "pairwise-f1")
        stayed.append(2 in curve.best()["threshold"].tolist())
    assert all(stayed), "the strict threshold is the best, and 4 samples of 15 lost it"


def test_what_no_draw_reaches_keeps_a_threshold_by_hand():
    """The first gains by .05 at most and the second loses by .1: as certain arms, and as those of chance."""
    x, cov = np.array([0.7, 0.9]), np.diag([0.03**2, 0.03**2])
    parts, apart = np.array([[0.0, 0.05], [0.1, 0.0]]), 0.2 / (0.03 * 2**0.5)
    assert apart > 4 and _keep_best(x, cov, 0.95, False, NOWHERE, NOWHERE).tolist() == [False, True]
    assert _keep_best(x, cov, 0.95, False, parts, NOWHERE).all(), "a gap of .05 is 1.2 standard errors"
    assert not _keep_best(x, cov, 0.95, False, parts[::-1], NOWHERE).all(), "these cannot close the gap"
    for factor, stays in ((1.8, False), (2.2, True)):
        se = np.hypot(0.03 * 2**0.5, factor * np.hypot(0.1, 0.05) / norm.ppf(0.975))
        assert (0.2 / se < norm.ppf(0.95)) == stays
        assert _keep_best(x, cov, 0.95, False, NOWHERE, factor * parts).all() == stays


def test_thresholds_that_no_draw_tells_apart_stay_together():
    cov, x = np.full((3, 3), 0.01), np.array([0.7, 0.8, 0.9])
    assert _keep_best(x, cov, 0.95, False, NOWHERE, NOWHERE).all()
    assert _keep_best(x, cov, 0.95, True, NOWHERE, NOWHERE).tolist() == [False, False, True]


def test_errors_that_no_draw_has_shown_may_decide_which_is_best():
    """With n effective draws and reaches d and u, the variance added is ((u + d)/(u - d))² (u² + d²)/(2 n²)."""
    curve = curve_of([2.0, 1.0], metrics="pairwise-f1")
    x, n, sd = np.array([0.691, 0.7]), 80.0, 0.0006
    added = [(1 - 2 * f) ** 2 / (2 * n**2) * (f**2 + (1 - f) ** 2) for f in x]
    for scale, stays in ((0.97, True), (1.03, False)):
        gap = norm.ppf(0.95) * np.sqrt(sum(added) + 2 * sd**2) * scale
        mean = np.array([0.7 - gap, 0.7])
        joint = closed(mean, np.eye(2) * sd**2, n, names=curve.joint.names, effective=n)
        found = replace(curve, joint=joint, effective=np.full((2, 1), n)).best("pairwise-f1")
        assert (2.0 in set(found.threshold)) == stays


def flat(x, sd, effective=1000.0):
    """A curve of precision with given estimates and standard errors."""
    curve = curve_of([5.0, 4.0, 3.0, 2.0, 1.0], metrics="pairwise-precision")
    joint = closed(x, np.diag(np.array(sd) ** 2), 1e9, names=curve.joint.names, effective=1e9)
    return replace(curve, joint=joint, effective=np.full((5, 1), effective))


def lower_limit(x, sd):
    n = x * (1 - x) / sd**2
    return beta.ppf(0.05, n * x, n * (1 - x))


def test_certificates_stop_at_the_first_threshold_whose_limit_is_too_low():
    x, sd = [0.99, 0.98, 0.97, 0.93, 0.97], [0.005] * 5
    found = flat(x, sd).certified("pairwise-precision", 0.95)
    assert (found.threshold, found.next, found.draws) == (3.0, 2.0, np.inf)
    assert found.lower == pytest.approx(lower_limit(0.97, 0.005), abs=1e-6)
    assert "At a threshold of 3, pairwise-precision is 0.95 or more (95% confidence)." in str(found)
    assert "The next threshold, 2, has an estimate below that." in str(found)
    every = flat([0.99] * 5, sd).certified("pairwise-precision", 0.95)
    assert (every.threshold, every.next, every.draws) == (1.0, None, None)
    assert str(every).endswith("(95% confidence).")


def test_further_draws_that_would_certify_the_next_threshold():
    curve = flat([0.99, 0.98, 0.97, 0.96, 0.9], [0.005, 0.005, 0.005, 0.02, 0.02])
    found = curve.certified("pairwise-precision", 0.95)
    assert found.next == 2.0
    # 60 draws have sd .02; with n draws it is .02 √(60/n), and the limit reaches .95 about there
    n = 60 + found.draws
    assert lower_limit(0.96, 0.02 * np.sqrt(60 / n)) == pytest.approx(0.95, abs=0.0015)
    assert f"About {found.draws:,.0f} further draws would certify 2." in str(found)


def test_nothing_is_certified_if_the_first_limit_is_too_low():
    found = flat([0.9] * 5, [0.01] * 5).certified("pairwise-precision", 0.95)
    assert (found.threshold, found.lower, found.next) == (None, None, 5.0)
    assert str(found).startswith("No threshold is certified to have pairwise-precision of 0.95 or more")
    none = flat([0.99] * 5, [0.001] * 5, effective=29.0).certified("pairwise-precision", 0.5)
    assert (none.threshold, none.next) == (None, None) and "the effective draws would be too few" in str(none)


def test_good_thresholds_with_too_few_effective_draws_are_named():
    curve = flat([0.99, 0.98, 0.3, 0.2, 0.1], [0.005] * 5)
    effective = np.array([[20.0], [45.6], [50], [60], [70]])
    found = replace(curve, effective=effective).certified("pairwise-precision", 0.95)
    assert (found.threshold, found.next, found.skipped, found.effective) == (None, 2.0, 4.0, 45.6)
    assert str(found).endswith(
        "The first threshold with enough effective draws, 2, has an estimate below that. It takes 59 effective "
        "draws, and 4, whose estimate is not below, has 45: label more records."
    )
    everywhere = replace(curve, effective=np.full((5, 1), 29.0)).certified("pairwise-precision", 0.5)
    assert "too few at every threshold. It takes 30 effective draws, and 5, whose" in str(everywhere)
    below = flat([0.3, 0.3, 0.3, 0.2, 0.1], [0.005] * 5)
    other = replace(below, effective=effective).certified("pairwise-precision", 0.95)
    assert other.skipped is None and str(other).endswith("The next threshold, 2, has an estimate below that.")


def test_certificates_begin_with_thirty_effective_draws_and_with_enough_for_the_share():
    assert _count_needed(0.5, 0.95) == _count_needed(0.9, 0.95) == 30
    for least in (0.92, 0.95, 0.99):
        n = _count_needed(least, 0.95)
        assert least**n == pytest.approx(0.05)
        fit = closed(1.0, 0.0, 1e9, effective=n)
        assert fit.interval(0.9, CAUTIOUS)[0, 0] == pytest.approx(least, abs=0.1 * (1 - least))
    curve = flat([0.99] * 5, [0.005] * 5)
    for first, effective in ((5.0, 30.0), (4.0, 29.9)):
        effective = np.array([[effective], [40], [40], [40], [40.0]])
        joint = replace(curve.joint, mean=np.array([0.99, 0.99, 0.2, 0.2, 0.2]))
        if first == 4.0:
            joint = replace(joint, mean=np.array([0.2, 0.99, 0.2, 0.2, 0.2]))
        found = replace(curve, joint=joint, effective=effective).certified("pairwise-precision", 0.8)
        assert found.threshold == 4.0


@pytest.mark.parametrize("arguments, said", [
    (("entities", 0.5), "the curve has pairwise-precision, .*, not entities: name one of these"),
    (("pairwise-precision", 95), "what is certified must lie between 0 and 1, not 95"),
    (("pairwise-precision", 0.9, 0.4), "level of a certificate must lie between 0.5 and 1, not 0.4"),
])  # fmt: skip
def test_bad_certificates_are_refused(arguments, said):
    with pytest.raises(eb.DataError, match=said):
        curve_of().certified(*arguments)
    with pytest.raises(eb.DataError, match="certificates are of shares, and mean-cluster-size is none"):
        curve_of(metrics="mean-cluster-size").certified("mean-cluster-size", 0.5)


def test_clusterings_that_are_no_components_come_as_one_per_threshold():
    few = [4.0, 2.0, 0.0]
    given = eb.thresholds({t: clustering(t) for t in (0.0, 4.0, 2.0)}, LABELS, DESIGN)
    assert given.thresholds.tolist() == few
    pd.testing.assert_frame_equal(given.table(), curve_of(few).table())
    with pytest.raises(eb.DataError, match="a threshold must be a number, not 'loose'"):
        eb.thresholds({"loose": clustering(0), 1.0: clustering(1)}, LABELS, DESIGN)


SPLINK = {4.0: "cluster_mw_4", 1.5: "cluster_mw_1_5", -0.5: "cluster_mw_-0_5"}


def splink_table():
    """One row per record, one column of cluster ids per threshold, shuffled, as Splink writes it."""
    columns = {name: clustering(threshold) for threshold, name in SPLINK.items()}
    ids = {name: pd.Series(c.clusters[c.codes], c.records) for name, c in columns.items()}
    return pd.DataFrame(ids).rename_axis("unique_id").reset_index().sample(frac=1, random_state=1)


def test_a_column_of_clusters_per_threshold_is_counted_where_it_lies(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    table = splink_table()
    text = table.astype(str)
    wanted = eb.thresholds({t: clustering(t) for t in SPLINK}, LABELS, DESIGN)
    table.rename(columns={"unique_id": "who"}).to_parquet(tmp_path / "c.parquet", index=False)
    text.to_csv(tmp_path / "c.csv", index=False)
    with duckdb.connect(tmp_path / "c.duckdb") as connection:
        connection.execute(f"CREATE TABLE clusters AS SELECT * FROM '{tmp_path}/c.parquet'")
    sqlite = sqlite3.connect(":memory:")
    table.to_sql("clusters", sqlite, index=False)
    run = RunSQL(lambda sql: sqlite.execute(sql).fetchall(), "clusters", Dialect.SQLITE)
    sources = [
        *((table, LABELS), (pa.table(table), LABELS), (tmp_path / "c.parquet", LABELS)),
        (table.set_axis(["who", *SPLINK], axis=1), LABELS),
        (DatabaseTable(tmp_path / "c.duckdb", "clusters"), LABELS),
        (tmp_path / "c.csv", LABELS.set_axis(LABELS.index.astype(str))),
    ]
    found = [eb.thresholds(source, labels, DESIGN) for source, labels in sources]
    found.append(eb.thresholds(run, LABELS, DESIGN, records="unique_id", at=SPLINK))
    for curve in found:
        assert curve.thresholds.tolist() == [4.0, 1.5, -0.5]
        np.testing.assert_array_equal(curve.joint.mean, wanted.joint.mean)
        np.testing.assert_array_equal(curve.joint.cov, wanted.joint.cov)
    assert eb.thresholds(table, LABELS, DESIGN, at=2).thresholds.tolist() == [4.0, -0.5]
    assert eb.thresholds(table, LABELS, DESIGN, at=[1.5, 4]).thresholds.tolist() == [4.0, 1.5]


def test_the_table_is_read_once_for_all_thresholds(tmp_path, monkeypatch):
    splink_table().to_parquet(tmp_path / "c.parquet", index=False)
    run, statements = DuckTable.rows, []
    monkeypatch.setattr(DuckTable, "rows", lambda self, sql: statements.append(sql) or run(self, sql))
    eb.thresholds(tmp_path / "c.parquet", LABELS, DESIGN)
    assert sum("GROUP BY r" in sql for sql in statements) == 1  # duplicates


@pytest.mark.parametrize(("names", "thresholds"), [
    (["cluster_p_0_5", "cluster_p_0_95"], [0.5, 0.95]),
    (["cluster_0_0", "cluster_p_0_7", "cluster_1_0"], [0, 0.7, 1]),
    (["cluster_mw_minus_inf", "cluster_mw_-2_5", "cluster_mw_3", "cluster_mw_inf"],
        [-np.inf, -2.5, 3, np.inf]),
    (["cluster-0.5", "cluster-0.9"], [0.5, 0.9]),
    (["canonical_id@-1.5", "canonical_id@2"], [-1.5, 2]),
    ([0.5, 0.9, 1e-07], [0.5, 0.9, 1e-07]),
    (["threshold=80", "threshold=90"], [80, 90]),
    (["cluster_p_0_5", "cluster_p_0_9", "line_1", "line_2"], [0.5, 0.9]),
    (["cluster_id", "score_0.5"], []),
    (["line_1", "line_2"], []),
])  # fmt: skip
def test_thresholds_end_the_names_of_columns(names, thresholds):
    wanted = dict(zip(thresholds, names[: len(thresholds)], strict=True))
    assert find_thresholds(["unique_id", *names]) == wanted


@pytest.mark.parametrize("names", [
    ["cluster_2020", "cluster_2021"],
    ["1", "2", "3"],
    ["component_0.5", "component_0.9"],
    ["cluster_p_0_5", "cluster_p_0_9", "cluster_mw_1", "cluster_mw_2"],
    ["cluster_0.5", "cluster_0_5"],
])  # fmt: skip
def test_thresholds_that_are_not_clear_are_asked_for(names):
    with pytest.raises(eb.DataError, match=r"not clear at which thresholds .*; name the column of each: at="):
        find_thresholds(["unique_id", *names])


@pytest.mark.parametrize(("change", "options", "said"), [
    ({}, {"at": [0.7]}, "no column has clusters at 0.7; there are -0.5, 1.5, 4.0"),
    ({}, {"at": {0.7: "none"}}, "has no column 'none'"),
    ({}, {"records": [1, 2]}, "has a row for each record: leave out the list"),
    ({"cluster_mw_1_5": None}, {}, "cluster ids of the prediction at 1.5: 313 of 313 are missing"),
    ({"unique_id": 1}, {}, "duplicates, such as 1"),
])  # fmt: skip
def test_tables_of_clusters_are_refused_with_a_sentence(change, options, said):
    with pytest.raises(eb.DataError, match=re.escape(said)):
        eb.thresholds(splink_table().assign(**change), LABELS, DESIGN, **options)


@pytest.mark.parametrize("engine", ["jackknife", Taylor(1), Jackknife(), Resampled(replicates=60)])
def test_any_engine_that_can_compare(engine):
    curve = curve_of([4.0, 2.0, 0.0], engine=engine, rng=1)
    predictions = {str(t): clustering(t) for t in (4.0, 2.0, 0.0)}
    joint = eb.compare(predictions, LABELS, DESIGN, engine=engine, rng=1).joint
    np.testing.assert_allclose(curve.joint.estimate, joint.estimate, rtol=1e-12)
    assert len(curve.best("pairwise-f1")) >= 1 and curve.certified("b3-precision", 0.5).threshold is not None
    with pytest.raises(eb.DataError, match="no method `paired`"):
        curve_of(engine=lambda sample, metrics, rng=None: None)


def test_distances_raise_an_alarm():
    with pytest.warns(eb.Alarm, match="if scores are distances, give their negatives"):
        eb.thresholds(EDGES.assign(score=-EDGES.score), LABELS, DESIGN, records=TRUTH.index, at=5)


def test_more_estimates_than_memory_holds_are_refused():
    many = [*np.linspace(-2, 2, 1001)]
    for given in (EDGES, {t: {} for t in many}):
        with pytest.raises(eb.DataError, match="1,001 thresholds x 4 metrics are more than 4,000 estimates"):
            eb.thresholds(given, LABELS, DESIGN, eb.metrics.DEFAULT_METRICS[:4], records=TRUTH.index, at=many)


def test_edges_are_read_where_they_lie(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    whole = curve_of(5).table()
    EDGES.to_parquet(tmp_path / "e.parquet", index=False)
    splink = EDGES.set_axis(["unique_id_l", "unique_id_r", "match_weight"], axis=1).assign(gamma_x=1)
    with duckdb.connect(tmp_path / "e.duckdb") as connection:
        connection.execute("CREATE TABLE scored AS SELECT * FROM splink")
    table = DatabaseTable(tmp_path / "e.duckdb", "scored")
    for source in (tmp_path / "e.parquet", str(tmp_path / "*.parquet"), table, duckdb.from_df(splink)):
        found = eb.thresholds(source, LABELS, DESIGN, records=TRUTH.index, at=5)
        pd.testing.assert_frame_equal(found.table(), whole)
    EDGES.to_csv(tmp_path / "e.csv", index=False)
    as_text = LABELS.set_axis(LABELS.index.astype(str))
    found = eb.thresholds(tmp_path / "e.csv", as_text, DESIGN, records=TRUTH.index.astype(str), at=5)
    pd.testing.assert_frame_equal(found.table(), whole)


@pytest.mark.parametrize(("text", "fits"), [(False, True), (True, False)])
def test_edges_beyond_memory_are_refused_with_the_number_that_fits(tmp_path, monkeypatch, text, fits):
    edges = EDGES.astype({"l": str, "r": str}) if text else EDGES
    edges.to_parquet(tmp_path / "e.parquet")
    monkeypatch.setattr("erbayes.analysis.thresholds.find_memory", lambda: 120 * len(EDGES))
    if fits:
        assert len(load_edges(tmp_path / "e.parquet", None)) == len(EDGES)
        return
    said = f"{len(EDGES):,} edges take .* enough for {120 * len(EDGES) // 250}: leave out the lowest scores"
    with pytest.raises(eb.DataError, match=said):
        load_edges(tmp_path / "e.parquet", None)


def test_edges_and_labels_are_not_changed():
    edges, labels = EDGES.copy(), LABELS.copy()
    eb.thresholds(edges, labels, DESIGN, records=TRUTH.index, at=5)
    pd.testing.assert_frame_equal(edges, EDGES)
    pd.testing.assert_series_equal(labels, LABELS)


def test_a_curve_is_drawn_with_its_bands():
    figure = pytest.importorskip("matplotlib.figure").Figure()
    curve = curve_of()
    ax = curve.plot(["pairwise-precision", "pairwise-recall"], ax=figure.subplots())
    assert [line.get_label() for line in ax.get_lines()] == ["pairwise-precision", "pairwise-recall"]
    table = curve.table("pairwise-recall")
    np.testing.assert_allclose(ax.get_lines()[1].get_ydata(), table.estimate)
    band = ax.collections[1].get_paths()[0].vertices
    assert band[:, 1].max() == pytest.approx(table.upper.max()) and isinstance(curve, Curve)


def test_thresholds_close_to_1_are_told_apart_in_words():
    edges = EDGES.assign(score=1 - 1e-7 / (10 + EDGES["score"] - EDGES["score"].min()))
    curve = eb.thresholds(edges, LABELS, DESIGN, "pairwise-precision", records=TRUTH.index)
    found = curve.certified("pairwise-precision", 0.5)
    text, x = re.search(r"threshold of (\S+),", str(found))[1], list(curve.thresholds)
    assert text != "1" and np.abs(curve.thresholds - float(text)).argmin() == x.index(found.threshold)
