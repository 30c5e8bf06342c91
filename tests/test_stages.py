"""Stages at which links are lost and made, against a count of pairs one by one."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from test_edges import component_of

import erbayes as eb
from erbayes import plots
from erbayes.analysis.causes import FALSE, FOUND
from erbayes.engine import Jackknife, Resampled, Taylor
from erbayes.metrics.columns import RECORDS, OfUnits
from erbayes.metrics.definitions import Metric
from erbayes.report import report


def by_hand(truth, rows, threshold):
    """Shares of stages in a population, pair by pair."""
    N = len(truth)
    strong = {frozenset(row[:2]) for row in rows if row[2] >= threshold and row[0] != row[1]}
    at, loosest = (component_of(N, [row[:2] for row in rows if row[2] >= t]) for t in (threshold, -np.inf))
    count = dict.fromkeys(("true", "predicted", "edges", *FOUND, *FALSE), 0)
    for a, b in combinations(range(N), 2):
        true, edge = truth[a] == truth[b], frozenset((a, b)) in strong
        predicted = at[a] == at[b]
        count["true"] += true
        count["predicted"] += predicted
        count["edges"] += edge
        stage = 0 if edge else 1 if predicted else 2 if loosest[a] == loosest[b] else 3
        count[FOUND[stage]] += true
        count[FALSE[0]] += edge and not true
        count[FALSE[1]] += predicted and not edge and not true
    return [count[name] / count["true"] for name in FOUND] + [
        count[FALSE[0]] / count["edges"],
        count[FALSE[1]] / by_closure if (by_closure := count["predicted"] - count["edges"]) else np.nan,
    ]


def matcher(seed, N=40):
    rng = np.random.default_rng(seed)
    truth = np.sort(rng.integers(0, N // 3, N))
    # few records make repeated edges, edges of a record with itself, and ties
    pairs = rng.integers(0, N, (2 * N, 2))
    near = [(i, min(i + j, N - 1)) for i in range(N) for j in (1, 2) if rng.random() < 0.5]
    rows = [
        (a, b, float(rng.integers(-3, 4) + 2 * (truth[a] == truth[b]))) for a, b in [*pairs[: N // 2], *near]
    ]
    return truth, rows


def stages(truth, rows, threshold, design=None, **options):
    labels = pd.Series(truth)
    design = design or eb.UniformClusters(population=labels.nunique())
    table = pd.DataFrame(rows, columns=["l", "r", "s"])
    return eb.stages(table, labels, design, threshold, records=labels.index, **options)


@pytest.mark.slow
def test_a_census_is_the_count_pair_by_pair():
    for seed in range(40):
        truth, rows = matcher(seed)
        for threshold in (1, 2, 4):
            found = stages(truth, rows, threshold)
            np.testing.assert_allclose(found.joint.mean, by_hand(truth, rows, threshold), atol=1e-12)
            table = found.table()
            assert (table.upper - table.lower).max() < 1e-12


def test_shares_of_a_sample_add_up_to_1_and_are_recall_and_precision():
    truth, rows = matcher(3, 300)
    drawn = truth[np.random.default_rng(4).integers(0, 300, 40)]
    labels = pd.Series(truth)[np.isin(truth, drawn)]
    table = pd.DataFrame(rows, columns=["l", "r", "s"])
    design, records = eb.UniformRecords(drawn), range(300)
    for engine in (None, Jackknife(), Resampled(replicates=50)):
        found = eb.stages(table, labels, design, 2, records=records, engine=engine, rng=1)
        assert found.joint.estimate[:4].sum() == pytest.approx(1, abs=1e-12)
    found = eb.stages(table, labels, design, 2, records=records)
    curve = eb.thresholds(table, labels, design, "pairwise-recall", records=records, at=[2, table.s.min()])
    recall, reached = curve.joint.mean
    found = found.joint.mean
    np.testing.assert_allclose([found[:2].sum(), found[2], found[3]], [recall, reached - recall, 1 - reached])


def test_the_sentence_says_where_links_are_lost():
    truth, rows = matcher(3)
    found = stages(truth, rows, 2)
    *_, lost, never = found.joint.mean[:4]
    assert str(found) == (
        f"Of 100 true links {100 * (lost + never):.0f} are missed, and of 100 missed links "
        f"{100 * never / (lost + never):.0f} were never compared."
    )
    cut = [row for row in rows if row[2] >= 1]
    said = "never compared, or score below 1, the least score of the file."
    assert str(stages(truth, cut, 2)).endswith(said)
    compared = pd.DataFrame([row[:2] for row in rows[:1]], columns=["l", "r"])
    assert str(stages(truth, cut, 2, candidates=compared)).endswith(" were never compared.")
    whole = [(a, b, 1.0) for a, b in combinations(range(9), 2) if a // 3 == b // 3] + [(0, 3, 0.0)]
    assert str(stages(np.arange(9) // 3, whole, 1)) == "No link is missed in this sample."


def test_below_ten_effective_draws_a_share_has_no_interval():
    truth = np.arange(120) // 2
    pairs = [(2 * i, 2 * i + 1, 1.0) for i in range(60)]
    # four pairs of entities have a false edge, and eight of 60 draws thus have false links by closure
    chain = [(2 * i, 2 * i + 2, 1.0) for i in range(0, 8, 2)]
    found = stages(truth, [*pairs, *chain, (0, 9, -1.0)], 1, eb.UniformClusters())
    assert found.effective[5] == pytest.approx(8)
    for effective, refused in ((9.99, True), (10.0, False)):
        row = replace(found, effective=np.full(6, effective)).table().loc[5]
        assert (row.stage, row.estimate) == ("false by closure", pytest.approx(1))
        assert np.isnan(row.lower) == refused == (row.kind == "none")
        assert not refused or row.reason == "9.99 effective draws are fewer than 10"


def test_candidates_that_were_compared_are_lost_by_the_threshold():
    truth, rows = [0, 0, 0, 1, 1, 2], [(0, 1, 5.0), (0, 5, 3.0)]
    found = stages(truth, rows, 5, candidates=pd.DataFrame([(2, 1), (5, 5)], columns=["a", "b"]))
    np.testing.assert_allclose(found.joint.mean[:4], [1 / 4, 0, 2 / 4, 1 / 4])
    with pytest.raises(eb.DataError, match="1 of 2 records in the candidates are not among all records"):
        stages(truth, rows, 5, candidates=pd.DataFrame([(2, 9)], columns=["a", "b"]))


def test_files_that_keep_too_few_edges_raise_an_alarm():
    truth, rows = [0, 0, 0, 1, 1, 2], [(0, 1, 5.0), (0, 5, 3.0), (1, 2, 4.0)]
    with pytest.warns(eb.Alarm, match="no edge below the threshold, so that no link can be lost by it"):
        stages(truth, rows, 3)
    best = [(0, 1, 5.0), (2, 5, 3.0), (4, 5, 2.0)]
    with pytest.warns(eb.Alarm, match="if the file keeps the best edge of each record only"):
        stages(truth, best, 3)


def test_distances_raise_an_alarm():
    truth, rows = matcher(1)
    distances = [(a, b, -s - 10 * (truth[a] == truth[b])) for a, b, s in rows]
    with pytest.warns(eb.Alarm, match="if scores are distances, give their negatives"):
        stages(truth, distances, distances[0][2])


@pytest.mark.filterwarnings("error::erbayes.Alarm")
def test_files_with_all_edges_raise_none():
    stages([0, 0, 0, 1, 1, 2], [(0, 1, 5.0), (0, 5, 3.0), (1, 5, 2.0)], 3)
    stages([0, 0, 1, 1, 2, 2], [(0, 1, 5.0), (2, 5, 3.0)], 4)


def test_thresholds_beyond_the_scores_are_refused():
    with pytest.raises(eb.DataError, match=r"no edge has a score of 9.0 or more"):
        stages(*matcher(1), 9)
    with pytest.raises(eb.DataError, match="are below the least score"):
        stages(*matcher(1), -9)


def test_columns_of_units_are_those_that_are_given():
    units = eb.measure({1: "a", 2: "a", 3: "b"}, {1: "x", 2: "x", 3: "y"})
    cost = OfUnits("cost", pd.Series({"y": 5.0, "x": 2.0, "z": 9.0}))
    metric = Metric("mean cost", (cost, RECORDS), lambda c, r: c / r, ((RECORDS, 1.0),), (0.0, np.inf), "")
    found = eb.engine.taylor(eb.Sample(units, eb.UniformClusters(population=2)), [metric]).apply([metric])
    assert found.mean[0] == pytest.approx(7 / 3)
    with pytest.raises(eb.NotIdentified, match="'cost' has values of whole labelled units alone"):
        OfUnits("cost", pd.Series({"y": 5.0})).count(units)
    with pytest.raises(eb.NotIdentified, match="'cost' has values of whole labelled units alone"):
        cost.count(units.pseudo_units)
    grouped = eb.Sample(units, eb.UniformClusters())
    with pytest.raises(eb.NotIdentified, match="no part in a domain"):
        eb.by_domain(grouped, {1: "FR", 2: "FR", 3: "US"}, [metric])


def test_the_bar_and_the_report_show_where_links_are_lost():
    figure = pytest.importorskip("matplotlib.figure").Figure()
    found = stages(*matcher(3), 2)
    bars = plots.draw_stages(found, ax=figure.subplots()).patches
    np.testing.assert_allclose([bar.get_width() for bar in bars], found.joint.mean[:4])
    starts = [bar.get_x() for bar in bars]
    np.testing.assert_allclose(starts, [0, *np.cumsum(found.joint.mean[:3])], atol=1e-15)
    page = report(found, ["b3-recall"], engines={"closed form": Taylor()})
    assert "<h2>Where links are lost</h2>" in page and str(found) in page
    assert "<th>never compared</th>" in page
    page = report(found.sample, ["b3-recall"], engines={"closed form": Taylor()})
    assert "Where links are lost" not in page
