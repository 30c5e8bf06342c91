"""Edges and their sweep, against a search through each graph that knows nothing of either."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from checks import raises

import erbayes as eb
from erbayes.units.clustering import Clustering
from erbayes.units.edges import Edges, sweep

WEIGHTS = pd.DataFrame({"l": [*"abcd"], "r": [*"bcae"], "weight": [7.0, 3.0, 5.0, -1.0]})
ALL = list("abcdefg")


def component_of(records, links):
    """Component of each record by walking along links, one record at a time."""
    near = {r: set() for r in range(records)}
    for a, b in links:
        near[a].add(b)
        near[b].add(a)
    found = {}
    for first in range(records):
        waiting = [first]
        while waiting:
            r = waiting.pop()
            if r not in found:
                found[r] = first
                waiting += near[r]
    return [found[r] for r in range(records)]


def test_random_graphs():
    rng = np.random.default_rng(0)
    for _ in range(300):
        N, E = rng.integers(2, 25), rng.integers(1, 50)
        # few values and few records make ties, repeated edges and edges of a record with itself
        left, right, score = *rng.integers(0, N, (2, E)), rng.integers(0, 8, E) / 7
        at = np.unique(rng.choice([*score, -0.1, 0.3, 1.2], 5))[::-1]
        watched = rng.permutation(N)[: rng.integers(1, N + 1)]
        edges = Edges(pd.RangeIndex(N), left, right, score)
        for threshold, level in zip(at, sweep(edges, at, watched), strict=True):
            links = [(a, b) for a, b, s in zip(left, right, score, strict=True) if s >= threshold]
            component = component_of(N, links)
            sizes = [component.count(component[r]) for r in range(N)]
            for x, r in enumerate(watched):
                assert level.sizes[level.cluster[x]] == sizes[r]
                for y, q in enumerate(watched):
                    assert (level.cluster[x] == level.cluster[y]) == (component[r] == component[q])
            counts = {s: sizes.count(s) / s for s in set(sizes)}
            assert dict(zip(level.known.size, level.known.count, strict=True)) == counts


def test_long_chains_and_more_bands_than_a_byte_counts():
    N = 700
    edges = Edges(pd.RangeIndex(N), np.arange(N - 1), np.arange(1, N), np.arange(N - 1.0)[::-1])
    at = np.arange(N - 1.0)[::-1]
    for links, level in enumerate(sweep(edges, at, np.arange(N)), 1):
        assert level.sizes.tolist() == [links + 1] + [1] * (N - links - 1)
    assert len(set(level.cluster)) == 1


def test_as_from_pairs_at_each_threshold_also_in_single_precision():
    rng = np.random.default_rng(3)
    for dtype in (np.float64, np.float32):
        table = pd.DataFrame({"l": rng.integers(0, 60, 90), "r": rng.integers(0, 60, 90)})
        table["score"] = rng.choice([0.1, 0.3, 0.7, 0.9], 90).astype(dtype)
        edges = Edges.of(table, range(60))
        at = edges.thresholds([0.9, 0.3, 0.1])
        for threshold, level in zip([0.9, 0.3, 0.1], sweep(edges, at, np.arange(60)), strict=True):
            other = Clustering.from_pairs(table, score="score", threshold=threshold, records=range(60))
            assert len(set(zip(level.cluster, other.codes, strict=True))) == len(set(other.codes))
            assert level.sizes[level.cluster].tolist() == other.sizes[other.codes].tolist()


def test_thresholds_are_quantiles_of_distinct_scores():
    table = pd.DataFrame({"l": [0] * 103, "r": [1] * 103, "score": [*range(101), 0, 0]})
    edges = Edges.of(table, [0, 1])
    assert edges.thresholds(3).tolist() == [100, 50, 0]
    assert edges.thresholds(200).tolist() == list(range(100, -1, -1))
    assert edges.thresholds([3, 5, 3]).tolist() == [5, 3]
    long = Edges.of(table.assign(score=[0.123456] * 100 + [0.71828] * 3), [0, 1])
    assert long.thresholds(2).tolist() == [0.7, 0.123456]  # the shortest number above the next lower score


def test_columns_of_splink_and_of_dedupe_are_known():
    scores = {"match_weight": [3.0, 4.0], "match_probability": [0.8, 0.9]}
    splink = pd.DataFrame(scores | {"unique_id_l": [1, 2], "unique_id_r": [2, 3], "gamma_name": [1, 1]})
    edges = Edges.of(splink, [1, 2, 3])
    assert (edges.left.tolist(), edges.right.tolist(), edges.score.tolist()) == ([0, 1], [1, 2], [3, 4])
    assert Edges.of(splink, [1, 2, 3], "match_probability").score.tolist() == [0.8, 0.9]
    assert Edges.of(splink.drop(columns="match_weight"), [1, 2, 3]).score.tolist() == [0.8, 0.9]
    dedupe = np.array([((1, 2), 0.5), ((2, 3), 0.25)], dtype=[("pairs", "i8", 2), ("score", "f4")])
    edges = Edges.of(dedupe, [1, 2, 3])
    assert (edges.left.tolist(), edges.score.tolist(), edges.score.dtype) == ([0, 1], [0.5, 0.25], np.float32)
    two = splink.assign(source_dataset_l="a", source_dataset_r=["a", "b"])
    listed = ["a-__-1", "a-__-2", "a-__-3", "b-__-3", "b-__-1"]
    assert Edges.of(two.assign(unique_id_r=[2, 1]), listed).right.tolist() == [1, 4]
    with pytest.raises(eb.DataError, match="of type string, those of the list of all records of type int"):
        Edges.of(two.assign(unique_id_r=[2, 1]), [1, 2, 3])
    assert len(Edges.of(two.assign(source_dataset_r="a"), [1, 2, 3]).score) == 2


def test_the_score_may_be_any_column_that_is_named():
    assert Edges.of(WEIGHTS[["weight", "l", "r"]], ALL, "weight").score.tolist() == [7, 3, 5, -1]


@pytest.mark.parametrize(("edges", "records", "said"), [
    (WEIGHTS, None, "do not name records that no edge has: .*records=ids"),
    ([("a", "b", 1.0)], ALL, "expected a DataFrame or an Arrow table of two ids and a score, not list"),
    (WEIGHTS[["l", "r"]], ALL, "has 'l', 'r': it is not clear .*one of scores: table"),
    (WEIGHTS.rename(columns={"weight": "w"}).assign(x=[2, 3, 5, 4]), ALL,
        "it is not clear which has the scores; say which: score='w' .FILE:l,r,w.; say which: score='x'"),
    (WEIGHTS[:0], ALL, "has no row: without an edge there is no threshold"),
    (WEIGHTS.assign(weight=[1, np.nan, 2, np.nan]), ALL, "2 of 4 scores 'weight' are missing: leave these rows out"),
    (WEIGHTS.assign(weight=list("abcd")), ALL, "scores 'weight' must be numbers, not such as 'a', 'b', 'c'"),
    (WEIGHTS.assign(weight=[True, False, True, True]), ALL, "scores 'weight' must be numbers"),
    (WEIGHTS.assign(r=[5, 6, 7, 9]), ALL, "are of type string, those of the column .r. of type integer"),
    (WEIGHTS, list("abcd"), "1 of 5 records in the edges are not among all records, such as 'e'"),
    (WEIGHTS, range(6), "of the edges are of type string, those of the list of all records of type integer: none"),
    (WEIGHTS, [*ALL, "a"], "all records of the edges: 1 duplicates, such as 'a'"),
    (WEIGHTS.assign(r=WEIGHTS.l), ALL, "every edge joins a record with itself"),
])  # fmt: skip
def test_bad_edges_are_refused_with_a_sentence(edges, records, said):
    raises(eb.DataError, said, Edges.of, edges, records)


@pytest.mark.parametrize(("scores", "at", "said"), [
    ([0.1, 0.2, 0.9, 1.0], [3], "all scores lie between 0 and 1, .* 1 of 1 thresholds do not, such as 3.0"),
    ([0.1, 0.2, 0.9, 1.0], [0.5, -1], "1 of 2 thresholds do not, such as -1.0"),
    ([2, 3, 4, 5], [4, 1, 0], "2 of 3 thresholds are below the least score, .* such as 1.0, 0.0: .* begin at 2"),
    ([2, 3, 4, 5], [6], "no edge has a score of 6.0 or more: the greatest is 5"),
    ([2, 2, 2, 2], 9, "all 4 scores are 2.0, which is one clustering and no curve"),
    ([2, 3, 4, 5], [], "no threshold is given"),
    ([2, 3, 4, 5], [4, np.nan], "a threshold must be a number, not nan"),
    ([2, 3, 4, 5], ["4"], "a threshold must be a number, not '4'"),
    ([2, 3, 4, 5], 0, "a number of thresholds, must be a whole number, 1 or more, not 0"),
    ([2, 3, 4, 5], "many", "must be a whole number, 1 or more, not 'many'"),
])  # fmt: skip
def test_bad_thresholds_are_refused_with_a_sentence(scores, at, said):
    with pytest.raises(eb.DataError, match=said):
        Edges.of(WEIGHTS.assign(weight=np.array(scores, dtype=float)), ALL).thresholds(at)


def test_thresholds_at_the_ends_of_the_scores_are_taken():
    assert Edges.of(WEIGHTS.assign(weight=[0.0, 0.5, 0.9, 1.0]), ALL).thresholds([0, 1]).tolist() == [1, 0]
    assert Edges.of(WEIGHTS, ALL).thresholds([-1, 7, 8]).tolist() == [8, 7, -1]
    edges = Edges.of(WEIGHTS.assign(weight=[0.0, 0.5, 0.9, 1.1]), ALL)
    assert edges.thresholds([1.2, 1.1]).tolist() == [1.2, 1.1]


def test_labelled_records_that_are_not_listed_are_refused():
    with pytest.raises(eb.DataError, match="1 of 2 labelled records are not among all records, such as 'z'"):
        Edges.of(WEIGHTS, ALL).watch(Clustering.of({"a": "x", "z": "x"}))


def chain(true, false):
    """Edges of entities of two, with scores of those inside and of those to another record."""
    rows = [(2 * i, 2 * i + 1, s) for i, s in enumerate(true)]
    rows += [(2 * i, 1000 + i, s) for i, s in enumerate(false)]
    edges = Edges.of(pd.DataFrame(rows, columns=["l", "r", "score"]), range(2000))
    return edges, Clustering.of({r: r // 2 for r in range(2 * len(true))})


def test_distances_raise_an_alarm_beyond_four_and_a_half_standard_errors():
    # 10 and 10 edges, all in the wrong order: share 1, error sqrt(21 / 1200) = .132, 3.8 errors from a half
    # 14 and 14: error sqrt(29 / 2352) = .111, 4.503 errors; 13 and 13: 4.33
    edges, labels = chain(range(14), range(14, 28))
    (doubt,) = edges.alarms(labels)
    assert "in 100% of comparisons: if scores are distances, give their negatives" in doubt
    assert doubt.grade.value == "fault"
    assert replace(edges, left=edges.right, right=edges.left).alarms(labels) == [doubt]
    ordered, ties, alone = (range(14, 28), range(14)), ([1] * 14, [1] * 14), (range(14), [])
    for true, false in ((range(10), range(10, 20)), ordered, ties, alone):
        edges, labels = chain(true, false)
        assert edges.alarms(labels) == []
    edges, labels = chain([0] * 40 + [1] * 40, [1] * 80)  # equal scores count by half
    assert "in 75% of comparisons" in edges.alarms(labels)[0]


def test_integers_that_floating_point_would_round_are_no_scores():
    frame = pd.DataFrame({"l": ["a", "b"], "r": ["b", "c"], "score": [2, 5]})
    for kind, more in (("int64", 2**60), ("uint64", 2**63)):
        large = frame.assign(score=frame["score"].astype(kind) + np.array(more, dtype=kind))
        with pytest.raises(eb.DataError, match=r"2 of 2 are integers from 2\*\*53 on, which lose it"):
            eb.thresholds(large, {"a": "x"}, eb.UniformClusters(population=3), records=list("abc"))
        with pytest.raises(eb.DataError, match=r"2 of 2 are integers from 2\*\*53 on, which lose it"):
            eb.Clustering.from_pairs(large, score="score", threshold=3.0, records=list("abc"))
    options = {"score": "score", "threshold": 3.0, "records": list("abc")}
    assert len(eb.Clustering.from_pairs(frame.assign(score=[2, 2**53 - 1]), **options).sizes) == 2
    refused = ([2, 2**53], "1 of 2 are integers from 2..53 on"), ([2j, 5j], "numbers, not such as 2j")
    for scores, said in refused:
        raises(eb.DataError, said, eb.Clustering.from_pairs, frame.assign(score=scores), **options)
