"""Records -> clusters: validated once, by numbers that stand for the ids, with the outcome of plain pandas."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import erbayes as eb
from erbayes import clustering
from erbayes.clustering import CHUNK, LONGEST, Clustering
from erbayes.units import _look_up

STRINGS = [
    "",
    "\0",
    "\0\0",
    "a",
    "a\0",
    "12345678",
    "12345678\0",
    "123456789",
    "x" * LONGEST,
    "x" * (LONGEST - 1),
    "é" * 32,
    "漢字",
    "🙂",
    " ",
]


def kinds(ids):
    """The same strings as pandas, pyarrow and Python hold them."""
    return [
        pd.Index(ids, dtype=d)
        for d in ("str", object, "string[python]", "string[pyarrow]", "large_string[pyarrow]")
    ]


@pytest.mark.parametrize("long", [False, True])
def test_strings_that_hardly_differ_are_told_apart(long):
    ids = STRINGS + ["y" * 999, "y" * 998] * long
    for index in kinds(ids):
        assert list(Clustering.of(pd.Series(range(len(ids)), index)).records) == ids
    for twice in ids:
        for index in kinds([*ids, twice]):
            with pytest.raises(eb.DataError, match="record ids of the clustering: 1 duplicates, such as "):
                Clustering.of(pd.Series(0, index))


@pytest.mark.parametrize("seed", range(5))
def test_duplicates_are_found_as_pandas_finds_them(seed):
    """Also those far apart, one among short and one among long strings."""
    rng = np.random.default_rng(seed)
    ids = np.array([f"US{n}" for n in rng.permutation(2 * CHUNK)], dtype=object)
    ids[-1] = "z" * 50
    assert Clustering.of(pd.Series(0, ids)).sizes.tolist() == [2 * CHUNK]
    ids[rng.integers(CHUNK, 2 * CHUNK - 1)] = ids[rng.integers(CHUNK)]
    for index in kinds(ids):
        with pytest.raises(eb.DataError, match="1 duplicates, such as "):
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


def test_strings_with_one_digest_are_not_duplicates(monkeypatch):
    monkeypatch.setattr(clustering, "_digests", lambda strings: np.zeros(len(strings), dtype=np.uint64))
    assert len(Clustering.of({"a": 1, "b": 2}).records) == 2
    with pytest.raises(eb.DataError, match="1 duplicates, such as 'a'"):
        Clustering.of(pd.Series(0, ["a", "b", "a"]))


def test_half_a_surrogate_pair_is_an_id():
    one, two = (pd.Index(["\ud800", "a", *more], dtype=object) for more in ([], ["a"]))
    assert len(Clustering.of(pd.Series(0, one)).records) == 2
    with pytest.raises(eb.DataError, match="1 duplicates, such as 'a'"):
        Clustering.of(pd.Series(0, two))


@pytest.mark.parametrize("ids", [["b", "a", "b", "c"], [3, -1, 3, 2**60]])
def test_clusters_are_numbered_as_they_appear_whatever_holds_them(ids):
    categories = pd.Categorical(ids, categories=pd.unique(pd.Series([*ids[::-1], *ids[:1]])))
    for values in (
        ids,
        categories,
        categories.add_categories([type(ids[0])(99)]),
        pd.Series(ids).to_numpy(dtype=object),
    ):
        found = Clustering.of(pd.DataFrame({"r": range(4), "c": values}))
        assert found.codes.tolist() == [0, 1, 0, 2] and found.codes.dtype == np.int64
        assert list(found.clusters) == [ids[0], ids[1], ids[3]]
        assert found.sizes.tolist() == [2, 1, 1]
    frame = pl.DataFrame({"r": range(4), "c": ids})
    assert Clustering.of(frame).codes.tolist() == [0, 1, 0, 2]
    assert Clustering.of(
        pl.DataFrame({"r": range(4), "c": list(map(str, ids))}).cast({"c": pl.Categorical})
    ).sizes.tolist() == [2, 1, 1]


@pytest.mark.parametrize(
    "clusters, message",
    [
        (pd.Categorical(["a", None]), "cluster ids of the clustering: 1 of 2 are missing"),
        (["a", None], "cluster ids of the clustering: 1 of 2 are missing"),
        (
            pd.Categorical([1.5, 2.5]),
            "cluster ids of the clustering must be all strings or all integers, not floating",
        ),
        (
            pd.Categorical(["a", 1]),
            "cluster ids of the clustering must be all strings or all integers, not mixed",
        ),
        ([1.0, 2.0], "cluster ids of the clustering must be all strings or all integers, not floating"),
    ],
)
def test_what_is_wrong_with_clusters_is_said(clusters, message):
    with pytest.raises(eb.DataError, match=message):
        Clustering.of(pd.DataFrame({"r": [1, 2], "c": clusters}))


def test_nothing_at_all():
    for empty in (
        {},
        pd.Series([], dtype="str"),
        pd.Series([], dtype="category"),
        pd.DataFrame({"r": [], "c": []}),
    ):
        assert len(Clustering.of(empty).records) == 0


@pytest.mark.parametrize("wanted", ["int8", "uint8", "int32", "int64", "uint64", "Int64", object])
@pytest.mark.parametrize("records", ["int8", "uint8", "int32", "int64", "uint64", "int64[pyarrow]", object])
def test_integers_are_found_where_they_are(records, wanted):
    """Ends of every range, and enough records for several chunks and for some that share a slot."""

    def drawn(dtype, seed, most):
        types = {"Int64": "int64", "int64[pyarrow]": "int64", object: "uint64"}
        ends, rng = np.iinfo(types.get(dtype, dtype)), np.random.default_rng(seed)
        few = [ends.min, ends.max, ends.max - 1, *range(0, 120, seed)]
        wide = rng.integers(max(ends.min, -(2**40)), min(ends.max, 2**40), size=most)
        found = list(dict.fromkeys([*few, *(wide.tolist() if ends.bits > 8 else [])]))
        return [found[i] for i in rng.permutation(len(found))]

    held = drawn(records, 1, 2 * CHUNK)
    inside = np.iinfo("int64" if wanted == "Int64" else "uint64" if wanted is object else wanted)
    asked = drawn(wanted, 2, 3000) + [i for i in held[:2000] if inside.min <= i <= inside.max]
    asked, position = list(dict.fromkeys(asked)), {id: i for i, id in enumerate(held)}
    found = _look_up(pd.Index(held, dtype=records), pd.Index(asked, dtype=wanted))
    assert found.tolist() == [position.get(id, -1) for id in asked]
    assert (found >= 0).sum() > 20
