"""Records -> clusters: validated once, by numbers that stand for the ids, with the outcome of plain pandas."""

import re
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
from checks import raises

import erbayes as eb
from erbayes._internal import remedies
from erbayes.large import scan
from erbayes.units.clustering import Clustering
from erbayes.units.ids import CHUNK, are_listed, look_up

pytestmark = pytest.mark.lowest
STRINGS = [
    "", "\0", "\0\0", "a", "a\0", "12345678", "12345678\0", "123456789", "x" * 64, "x" * 63, "é" * 32,
    "漢字", "🙂", " ",
]  # fmt: skip


def kinds(ids):
    """The same strings as pandas, pyarrow and Python hold them."""
    types = "str", object, "string[python]", "string[pyarrow]", "large_string[pyarrow]"
    return [pd.Index(ids, dtype=dtype) for dtype in types]


@pytest.mark.parametrize("long", [False, True])
def test_strings_that_hardly_differ_are_told_apart(long):
    ids = STRINGS + ["y" * 999, "y" * 998] * long
    for index in kinds(ids):
        assert list(Clustering.of(pd.Series(range(len(ids)), index)).records) == ids
    for twice in ids:
        for index in kinds([*ids, twice]):
            with pytest.raises(eb.DataError, match="record ids of the clustering: 1 duplicates, such as "):
                Clustering.of(pd.Series(0, index))


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint64", "Int64", "int64[pyarrow]", object])
def test_integers(dtype):
    values = np.random.default_rng(0).permutation(100)
    index = pd.Index(values, dtype=dtype)
    assert list(Clustering.of(pd.Series(0, index)).records) == values.tolist()
    assert index.tolist() == values.tolist()
    with pytest.raises(eb.DataError, match="1 duplicates, such as 7"):
        Clustering.of(pd.Series(0, index.append(index[index == 7])))


def test_integers_beyond_floats():
    assert len(Clustering.of({2**53: "a", 2**53 + 1: "a", 2**63: "b", -1: "c", 2**70: "d"}).records) == 5


def test_half_a_surrogate_pair_is_an_id():
    one, two = (pd.Index(["\ud800", "a", *more], dtype=object) for more in ([], ["a"]))
    assert len(Clustering.of(pd.Series(0, one)).records) == 2
    raises(eb.DataError, "1 duplicates, such as 'a'", Clustering.of, pd.Series(0, two))


@pytest.mark.parametrize(
    "records, listed", [([1, 2], ["1"]), (["1", "2"], [1]), ([1, "2"], ["1"]), ([], ["1"])]
)
def test_integers_and_their_text_are_not_the_same_id(records, listed):
    assert not are_listed(pd.Index(records), pd.Index(listed)).any()


@pytest.mark.parametrize("ids", [["b", "a", "b", "c"], [3, -1, 3, 2**60]])
def test_clusters_are_numbered_as_they_appear_whatever_holds_them(ids):
    categories = pd.Categorical(ids, categories=pd.unique(pd.Series([*ids[::-1], *ids[:1]])))
    more, objects = categories.add_categories([type(ids[0])(99)]), pd.Series(ids).to_numpy(dtype=object)
    for values in (ids, categories, more, objects):
        found = Clustering.of(pd.DataFrame({"r": range(4), "c": values}))
        assert found.codes.tolist() == [0, 1, 0, 2] and found.codes.dtype == np.int64
        assert list(found.clusters) == [ids[0], ids[1], ids[3]] and found.sizes.tolist() == [2, 1, 1]
    frame, texts = (pl.DataFrame({"r": range(4), "c": values}) for values in (ids, list(map(str, ids))))
    assert Clustering.of(frame).codes.tolist() == [0, 1, 0, 2]
    assert Clustering.of(texts.cast({"c": pl.Categorical})).sizes.tolist() == [2, 1, 1]


@pytest.mark.parametrize("clusters, message", [
    (pd.Categorical(["a", None]), "cluster ids of the clustering: 1 of 2 are missing"),
    (["a", None], "cluster ids of the clustering: 1 of 2 are missing, the first in row 2 of the data; fill them in"),
    (pd.Categorical([1.5, 2.5]), "cluster ids of the clustering must be all strings or all integers, not floating"),
    (pd.Categorical(["a", 1]), "cluster ids of the clustering must be all strings or all integers, not mixed"),
    ([1.0, 2.0], "cluster ids of the clustering must be all strings or all integers, not floating"),
])  # fmt: skip
def test_what_is_wrong_with_clusters_is_said(clusters, message):
    raises(eb.DataError, message, Clustering.of, pd.DataFrame({"r": [1, 2], "c": clusters}))


def test_nothing_at_all():
    series = (pd.Series([], dtype=dtype) for dtype in ("str", "category"))
    for empty in ({}, *series, pd.DataFrame({"r": [], "c": []})):
        assert len(Clustering.of(empty).records) == 0


@cache
def drawn(dtype, seed, most):
    types = {"Int64": "int64", "int64[pyarrow]": "int64", object: "uint64"}
    ends, rng = np.iinfo(types.get(dtype, dtype)), np.random.default_rng(seed)
    few = [ends.min, ends.max, ends.max - 1, *range(0, 120, seed)]
    wide = rng.integers(max(ends.min, -(2**40)), min(ends.max, 2**40), size=most)
    found = list(dict.fromkeys([*few, *(wide.tolist() if ends.bits > 8 else [])]))
    return [found[i] for i in rng.permutation(len(found))]


@pytest.mark.every(3)
@pytest.mark.parametrize("wanted", ["int8", "uint8", "int32", "int64", "uint64", "Int64", object])
@pytest.mark.parametrize("records", ["int8", "uint8", "int32", "int64", "uint64", "int64[pyarrow]", object])
def test_integers_are_found_where_they_are(records, wanted):
    """Ends of every range, and enough records for several chunks and for some that share a slot."""
    held = drawn(records, 1, 2 * CHUNK)
    inside = np.iinfo("int64" if wanted == "Int64" else "uint64" if wanted is object else wanted)
    asked = drawn(wanted, 2, 3000) + [i for i in held[:2000] if inside.min <= i <= inside.max]
    asked, position = list(dict.fromkeys(asked)), {id: i for i, id in enumerate(held)}
    found = look_up(pd.Index(held, dtype=records), pd.Index(asked, dtype=wanted))
    assert found.tolist() == [position.get(id, -1) for id in asked] and (found >= 0).sum() > 20


def components(ids, links):
    """Sets of records that chains of links join, by merging sets one link at a time."""
    home = {i: {i} for i in ids}
    for a, b in links:
        both = home[a] | home[b]
        for i in both:
            home[i] = both
    return {frozenset(s) for s in home.values()}


def sets(found):
    names = found.clusters.take(found.codes)
    groups = pd.Series(found.records, names).groupby(level=0).agg(frozenset)
    assert all(name in group for name, group in groups.items())
    return set(groups)


@pytest.mark.parametrize("seed", range(4))
def test_links_become_connected_components(seed):
    rng = np.random.default_rng(seed)
    ids = [f"r{i}" for i in range(40)] if seed % 2 else list(range(100, 140))
    ends = [(ids[a], ids[b]) for a, b in rng.integers(0, 30, (25, 2))]  # self pairs and repeats too
    scores = rng.integers(0, 11, 25) / 10
    table = pd.DataFrame(ends, columns=["l", "r"])
    met = {i for pair in ends for i in pair}
    assert sets(Clustering.from_pairs(table)) == components(met, ends)
    assert sets(Clustering.from_pairs(pl.DataFrame(table), records=ids)) == components(ids, ends)
    table.insert(1, "p", scores)
    strong = [pair for pair, p in zip(ends, scores, strict=True) if p >= 0.5]
    found = Clustering.from_pairs(table[scores > -1].iloc[::-1], score="p", threshold=0.5)
    assert sets(found) == components(met, strong)
    assert list(Clustering.from_pairs(table[["l", "r"]], records=ids).records) == ids
    assert list(table.columns) == ["l", "p", "r"]


SCORED = pd.DataFrame({"l": ["a", "b"], "r": ["b", "c"], "p": [0.9, 0.1]})


@pytest.mark.parametrize("pairs, options, message", [
    (SCORED, {}, "is each row a link, or is 'p' a score or an answer"),
    (SCORED, {"score": "p"}, "without a threshold, scores 'p' of any size would be links; give the least score"),
    (SCORED, {"score": "p", "threshold": np.nan}, "threshold must be a number, not nan"),
    (SCORED[["l", "r"]], {"threshold": 0.5}, "a threshold of 0.5 needs the column of scores"),
    (SCORED, {"score": "q", "threshold": 0.5}, "has no column 'q'; it has 'l', 'r', 'p'"),
    (SCORED.assign(p=[None, 0.1]), {"score": "p", "threshold": 0.5}, "1 of 2 scores 'p' are missing"),
    (SCORED.assign(p=["match", "non-match"]), {"score": "p", "threshold": 0.5},
        "scores 'p' must be numbers, not such as 'match', 'non-match'"),
    (SCORED[["l", "p"]], {"score": "p", "threshold": 0.5}, "it is not clear which have both records"),
    (SCORED[["l", "r"]], {"records": ["a", "b"]}, "1 of 3 records in the pairs are not among all .* 'c'"),
    (SCORED[["l", "r"]], {"records": ["x", "y"]}, "3 of 3 records in the pairs are not among all"),
    (SCORED[["l", "r"]], {"records": [1, 2]}, "of type string, those of the list of all records of type integer"),
    (SCORED[["l", "r"]], {"records": ["a", "b", "c", "c"]}, "all records of the pairs: 1 duplicates"),
    (SCORED[["l", "r"]].assign(r=[1, 2]), {}, "are of type string, those of the column .r. of type integer"),
    (SCORED[["l", "r"]].assign(r=["a", None]), {}, "column 'r' of the pairs: 1 of 2 are missing"),
    ({"a": "b"}, {}, "pairs: expected a DataFrame or an Arrow table, not dict"),
])  # fmt: skip
def test_pairs_that_do_not_say_what_is_a_link(pairs, options, message):
    raises(eb.DataError, message, Clustering.from_pairs, pairs, **options)


def test_a_question_about_a_column_of_words_ends_if_its_remedy_is_followed():
    pairs = SCORED.assign(by=["human", "machine"]).drop(columns="p")
    rename = r"if these have: table.rename\(columns={'l': 'left', 'r': 'right'}\)"
    raises(eb.DataError, rename, Clustering.from_pairs, pairs)
    rename = r"columns={'l': 'left', 'r': 'right', 'left': 'other left'}\)"
    raises(eb.DataError, rename, Clustering.from_pairs, pairs.rename(columns={"by": "left"}))
    named = pairs.rename(columns={"l": "left", "r": "right"})
    raises(eb.DataError, "which word is a link: table.table.'by'. == 'human'", Clustering.from_pairs, named)
    assert Clustering.from_pairs(named[named["by"] == "human"][["left", "right"]]).sizes.tolist() == [2]
    said = "the table of the pairs: 1 of 2 rows have no id in 'left' or 'right'"
    raises(eb.DataError, said, Clustering.from_pairs, named.assign(left=["a", None]))
    chain = pd.DataFrame({"first": list("aabc"), "second": list("bbca"), "note": ["n1", "n2", "n3", "n4"]})
    for notes in (chain["note"], chain["note"].where(chain["second"] == "b")):  # no row need have one
        ends = "{'first': 'left', 'second': 'right'}"
        raises(eb.DataError, re.escape(ends), Clustering.from_pairs, chain.assign(note=notes))


@pytest.mark.parametrize("cells", [[(1, [2]), (1,)], [1, [2]], [{1}, "x"]], ids=str)
def test_a_column_of_lists_is_no_column_of_ids(cells):
    table = pd.DataFrame({"a": ["x", "y"], "b": [1, 1], "c": cells})
    assert Clustering.of(table).sizes.tolist() == [2]
    said = "needs 2 columns; it has 'a'; 'c' has lists or other objects, and no ids"
    raises(eb.DataError, said, Clustering.of, table[["a", "c"]])


def test_of_the_table_of_splink_the_named_score_counts():
    table = pd.DataFrame({"match_weight": [9.0, 1.0], "match_probability": [0.99, 0.6], "gamma_name": 1})
    table = table.assign(unique_id_l=["a", "b"], unique_id_r=["b", "c"])
    by_weight = Clustering.from_pairs(table, score="match_weight", threshold=2, records=list("abc"))
    by_share = Clustering.from_pairs(table, score="match_probability", threshold=0.5, records=list("abc"))
    assert (by_weight.sizes.tolist(), by_share.sizes.tolist()) == ([2, 1], [3])
    with pytest.raises(eb.DataError, match="without a threshold, scores 'match_weight' of any size"):
        Clustering.from_pairs(table)
    table = table.assign(source_dataset_l=["A", "A"], source_dataset_r=["A", "B"], unique_id_l=["a", "c"])
    of_both = Clustering.from_pairs(table, score="match_weight", threshold=2)
    assert sorted(map(sorted, sets(of_both))) == [["A-__-a", "A-__-b"], ["A-__-c"], ["B-__-c"]]


def test_no_pairs():
    none = SCORED[["l", "r"]].iloc[:0]
    assert len(Clustering.from_pairs(none).records) == 0
    assert Clustering.from_pairs(none, records=["a", "b"]).sizes.tolist() == [1, 1]


@pytest.mark.parametrize("kind", [lambda t: t, pl.DataFrame])
def test_columns_are_not_chosen_by_position(kind):
    table = kind(pd.DataFrame({"key": ["a", "b"], "annotator": ["x", "x"], "who": ["e", "e"]}))
    said = r"the table of the labels has 3 columns, 'key', 'annotator', 'who', and it is not clear which is "
    said += r"the entity; choose two: table.set_index\('record'\)\['cluster'\] \(FILE:RECORD,CLUSTER\)$"
    raises(eb.DataError, said, eb.measure, {"a": 1, "b": 1}, table)
    assert len(Clustering.of(table[["key", "who"]]).clusters) == 1


def test_an_index_that_became_a_column_is_left_out():
    table = pd.DataFrame({"Unnamed: 0": [0, 1], "id": ["a", "b"], "cluster": ["x", "x"]})
    assert list(Clustering.of(table).records) == ["a", "b"]


@pytest.mark.parametrize("values, told", [
    ([0.5, 0.9], True),
    ([0, 1], True),
    ([True, False], True),
    (["match", "Non-match"], True),
    (["no link", "link"], True),
    (["1.0", "0"], True),
    ([2000, 2001], False),
    (["ann", "bob"], False),
])  # fmt: skip
def test_a_third_column_of_scores_or_answers_means_pairs(values, told):
    table = pd.DataFrame({"l": ["a", "b"], "r": ["c", "d"], "third": values})
    with pytest.raises(eb.DataError) as error:
        Clustering.of(table)
    assert ("'third' looks like scores or answers about pairs" in str(error.value)) is told
    assert (remedies.LINKS in error.value.remedies) is told


@pytest.mark.parametrize("rows, message", [
    ([("a", "x"), ("b", "x"), ("a", "x")],
        "1 duplicates, such as 'a'; each repeats an earlier row with the same cluster, and can be dropped"),
    ([("a", "b"), ("a", "c"), ("b", "c")], "1 of 2 cluster ids are ids of records, as in pairs of records"),
    ([("a", "x"), ("b", "x"), ("a", "x"), ("a", "y")], "2 duplicates, .*; 1 of them repeat an earlier row"),
    ([("b", "z"), ("a", "x"), ("a", "x"), ("b", "x"), ("b", "y")],
        "3 duplicates, .*; 'b' is in 'z', 'x', …: keep one row of each record, or give both clusters one id"),
    ([("a", "x"), ("b", "x"), ("a", "y")], "1 duplicates, such as 'a'; 'a' is in 'x', 'y': keep one row"),
])  # fmt: skip
def test_why_records_are_repeated(rows, message):
    raises(eb.DataError, message, Clustering.of, pd.DataFrame(rows, columns=["r", "c"]))


def test_a_frame_of_an_old_polars_is_told_the_version():
    """Polars 1.2 had no Arrow stream: its frame, any other object of polars, and a frame of another library."""

    def of(module, name):
        return type(name, (), {"__module__": module})()

    hint = "; frames of polars can be read from polars 1.3 on"
    for door in (Clustering.of, lambda table: scan(table, {"a": "e"})):
        for module, name, hinted in (
            ("polars.dataframe.frame", "DataFrame", True),
            ("polars.lazyframe.frame", "GroupBy", False),
            ("polarsish.frame", "DataFrame", False),
        ):
            with pytest.raises(eb.DataError, match=f"(not|cannot scan a) {name}") as refusal:
                door(of(module, name))
            assert (hint in str(refusal.value)) == hinted


def test_records_of_each_cluster_are_no_memberships():
    with pytest.raises(eb.DataError, match="list objects: give the cluster of each record, not the records"):
        Clustering.of({"x": ["a", "b"]})
    raises(eb.DataError, "expected a Series, a mapping", Clustering.of, [{"a", "b"}, {"c"}])
