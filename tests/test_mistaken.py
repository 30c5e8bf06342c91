"""Edges in the place of memberships are refused, and memberships are not, whatever their clusters are called."""

import numpy as np
import pandas as pd
import pytest

import erbayes as eb
from erbayes._internal import remedies
from erbayes._internal.errors import printable
from erbayes.units.measuring import are_edges

N = 2000


def world(seed, order="shuffled", err=0.05):
    """True entity and predicted cluster of each record, as numbers."""
    rng = np.random.default_rng(seed)
    sizes = np.minimum(rng.zipf(2.3, N), 40)
    sizes = np.sort(sizes)[::-1] if order == "sizes" else sizes
    entity = np.repeat(np.arange(N), sizes)[:N]
    if order == "shuffled":
        rng.shuffle(entity)
    merged = np.where(rng.random(N) < err, rng.integers(0, N, N), np.arange(N))
    cluster = merged[entity]
    gone = rng.random(N) < err
    cluster[gone] = N + np.arange(gone.sum())
    return entity, cluster, rng


def drawn(entity, rng, n=60):
    return np.isin(entity, entity[rng.integers(0, N, n)])


def previous(ids, cluster):
    """Parent of each record: the one before it in its cluster, itself for the first."""
    ids = pd.Series(ids)
    return ids.groupby(cluster).shift(1).fillna(ids).astype(ids.dtype).to_numpy()


def first(ids, cluster):
    return pd.Series(ids).groupby(cluster).transform("first").to_numpy()


IDS = {
    "numbers": lambda rng: np.arange(N),
    "shuffled numbers": lambda rng: rng.permutation(N) + 1,
    "strings": lambda rng: np.array([f"r{i:05}" for i in rng.permutation(N)], dtype=object),
}
EDGES = {
    "representatives without a row": lambda ids, c: (first(ids, c), first(ids, c) != ids),
    "singletons on their own": lambda ids, c: (
        first(ids, c),
        (first(ids, c) != ids) | (pd.Series(c).map(pd.Series(c).value_counts()) == 1).to_numpy(),
    ),
    "parents": lambda ids, c: (previous(ids, c), np.ones(N, dtype=bool)),
    "links": lambda ids, c: (previous(ids, c), previous(ids, c) != ids),
}


@pytest.mark.parametrize("ids", IDS)
@pytest.mark.parametrize("kind", EDGES)
@pytest.mark.parametrize("missing", [eb.Missing.ERROR, eb.Missing.OMIT])
def test_edges_are_refused_whatever_the_policy(ids, kind, missing):
    entity, cluster, rng = world(1)
    records, chosen = IDS[ids](rng), drawn(entity, rng)
    other, rows = EDGES[kind](records, cluster)
    prediction = pd.Series(other[rows], records[rows])
    labels = pd.Series(entity[chosen] + 10**6, records[chosen])
    with pytest.raises(eb.DataError, match="rows of the prediction look like pairs of records") as error:
        eb.measure(prediction, labels, missing=missing)
    assert error.value.remedies == (remedies.LINKS,)
    clusters = eb.Clustering.from_pairs(pd.DataFrame({"l": records[rows], "r": other[rows]}), records=records)
    wanted = eb.measure(pd.Series(cluster, records), labels).table()
    pd.testing.assert_frame_equal(eb.measure(clusters, labels).table(), wanted)


@pytest.mark.parametrize("ids", IDS)
@pytest.mark.parametrize("kind", ["representatives without a row", "links"])
def test_labels_that_are_edges_are_refused(ids, kind):
    entity, cluster, rng = world(2)
    records, chosen = IDS[ids](rng), drawn(entity, rng)
    other, rows = EDGES[kind](records, entity)
    rows &= chosen
    prediction, labels = pd.Series(cluster + 10**6, records), pd.Series(other[rows], records[rows])
    with pytest.raises(eb.DataError, match="rows of the labels look like pairs of records") as error:
        eb.measure(prediction, labels)
    assert error.value.remedies == (remedies.ANSWERS,)


NAMES = {
    "in order of appearance": lambda ids, c, rng: pd.factorize(c)[0],
    "sorted, from 1": lambda ids, c, rng: pd.factorize(c, sort=True)[0] + 1,
    "any": lambda ids, c, rng: rng.choice(2 * N + 400, 2 * N + 400, replace=False)[c],
    "the first record": lambda ids, c, rng: first(ids, c),
    "the least record": lambda ids, c, rng: pd.Series(ids).groupby(c).transform("min").to_numpy(),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("order", ["shuffled", "sorted", "sizes"])
@pytest.mark.parametrize("labelled", ["drawn", "first", "all"])
def test_clusters_may_have_any_name(name, order, labelled):
    """Also that of a record by coincidence, or of one of their own records."""
    entity, cluster, rng = world(3, order)
    ids = rng.permutation(N) if order == "shuffled" else np.arange(N)
    chosen = {"drawn": drawn(entity, rng), "first": entity < 60, "all": entity >= 0}[labelled]
    prediction = pd.Series(NAMES[name](ids, cluster, rng), ids)
    labels = pd.Series(NAMES[name](ids, entity, rng), ids)[chosen]
    found = eb.measure(prediction, labels)
    wanted = eb.measure(pd.Series(cluster, ids), pd.Series(entity, ids)[chosen])
    np.testing.assert_array_equal(found.n, wanted.n)


def test_a_few_clusters_may_have_lost_the_record_that_they_are_named_after():
    entity, cluster, rng = world(4)
    ids = IDS["strings"](rng)
    names = first(ids, cluster)
    moved = rng.random(N) < 0.02
    names[moved] = [f"new{i}" for i in range(moved.sum())]
    assert len(eb.measure(pd.Series(names, ids), pd.Series(entity, ids)[drawn(entity, rng)]))


PREDICTION = pd.Series(["a", "a", "b", "b", "c", "c"], ["x1", "x2", "x3", "x4", "x5", "x6"])


@pytest.mark.parametrize("labels, message", [
    ({"X1": "e", " x2 ": "e", "zz": "f"},
        "3 of 3 labelled .*; 2 of them are there in another case or with other blanks: bring both"),
    ({"a": "x1", "b": "x2"},
        "2 of them are ids of its clusters.*; 2 of 2 entities are records of the pred.* in the other order"),
    ({"zz": "e", "yy": "e"},
        "2 of 2 .* 'zz', 'yy'; are the files or their columns in each other's place, or"),
    ({f"y{i}": "e" for i in range(9)}, "the labels hold more records than the prediction, which has 6"),
])  # fmt: skip
def test_what_is_likely_is_asked_where_nearly_all_are_missing(labels, message):
    for missing in set(eb.Missing) - {eb.Missing.COMMON}:
        with pytest.raises(eb.DataError, match=message) as error:
            eb.measure(PREDICTION, labels, missing=missing)
        other_order = (remedies.ORDER,) if "in the other order" in message else ()
        assert error.value.remedies == other_order  # no policy for records that are lacking


@pytest.mark.parametrize("prediction, labels, message", [
    (["007", "08"], ["7", "8"], "2 of them are there with other leading zeros"),
    (["\u00e9", "a\u0301"], ["e\u0301", "\u00e1"],
        r"2 .* are there in another form of Unicode \(NFC or NFD\)"),
    (["7", "8"], ["7.0", "8.0"], r"2 of them are there with or without '\.0' at the end"),
    (["0", "1", "2"], ["p", "q"], "its records are 0, 1, 2, …: are they the index of a table"),
])  # fmt: skip
def test_ids_that_are_written_otherwise(prediction, labels, message):
    with pytest.raises(eb.DataError, match=message):
        eb.measure(dict.fromkeys(prediction, "c"), dict.fromkeys(labels, "e"))


def test_an_index_of_numbers_is_recognised():
    with pytest.raises(eb.DataError, match="its records are 0, 1, 2, …"):
        eb.measure(pd.Series("c", range(9)), pd.Series("e", [70, 80]))


@pytest.mark.parametrize("prediction, labelled", [(range(9), [1, 2, 80]), ([], [70, 80])])
def test_numbers_that_are_ids_are_no_index(prediction, labelled):
    with pytest.raises(eb.DataError, match="labelled records are not in the prediction") as error:
        eb.measure(pd.Series("c", pd.Index(prediction, dtype=int)), pd.Series("e", labelled))
    assert "index of a table" not in str(error.value)


def test_a_policy_is_offered_where_only_some_are_missing():
    said = r'1 of 3 .*; choose a policy to go on \("omit", "singleton" or "together"\): missing="omit"'
    with pytest.raises(eb.DataError, match=said) as error:
        eb.measure(PREDICTION, {"x1": "e", "x2": "e", "x9": "e"})
    assert error.value.remedies == (remedies.MISSING,)
    assert str(error.value) == f"{error.value.what}; {remedies.MISSING.value}"


def test_no_message_sends_commands_to_a_terminal():
    error = eb.DataError("a \x1b]0;title\x07 b\r\x9b \u202e c\n\td é")
    assert str(error) == "a \\x1b]0;title\\x07 b\\r\\x9b \\u202e c\n\td é" and printable("'") == "'"


def shown(home=0, elsewhere=0, nowhere=0, unrelated=0, share=1e-5):
    """Known groups of one row each, of which so many name a record of their own group, of another, of none."""
    n = home + elsewhere + nowhere + unrelated
    rows = np.arange(n)
    own = np.repeat([0, n, -1, -1], [home, elsewhere, nowhere, unrelated])
    known = np.where(rows < n - unrelated, rows, -1)
    return are_edges(rows, rows, np.where(own == 0, rows, own), known, np.full(n, share))


@pytest.mark.parametrize("rows, edges", [
    ({"elsewhere": 9}, True),
    ({"nowhere": 9}, True),
    ({"home": 9}, False),
    ({"elsewhere": 9, "share": 0.3}, False),
    ({"elsewhere": 9, "share": 0.1}, False),
    ({"elsewhere": 9, "share": 0.087}, False),  # by chance with a probability of 1e-6 or more
    ({"elsewhere": 9, "share": 0.086}, True),
    ({"elsewhere": 9, "share": 0.05}, True),
    ({"elsewhere": 9, "unrelated": 35}, True),
    ({"elsewhere": 9, "unrelated": 37}, False),
    ({"home": 89, "elsewhere": 11}, True),
    ({"home": 91, "elsewhere": 9}, False),
    ({"home": 49, "nowhere": 51}, True),
    ({"home": 51, "nowhere": 49}, False),
    ({"unrelated": 9}, False),
])  # fmt: skip
def test_bounds_of_what_is_taken_for_edges(rows, edges):
    assert shown(**rows) is edges


@pytest.mark.parametrize(
    ("entities", "records", "told"), [("112233", 12, True), ("112233", 11, False), ("1122345", 20, False)]
)
def test_labels_are_no_draws(entities, records, told):
    """Three entities of two records are drawn twice each, and labels are not more than half of all records."""
    ids = [f"r{i}" for i in range(records)]
    labels = pd.Series(list(entities), ids[: len(entities)])
    units = eb.measure(pd.Series(range(records), ids), labels)
    for design in (
        eb.UniformRecords(list(entities)),
        eb.design.WeightedRecords(list(entities), [0.1] * len(entities)),
    ):
        if told:
            said = "3 entities are drawn as often as they have labelled records, 6 times in all: are these"
            with pytest.raises(
                eb.DataError, match=rf"{said} the labels, .* draws=labels.drawn. .--drawn FILE."
            ):
                design.expand(units)
        else:
            assert len(design.expand(units).weight)
