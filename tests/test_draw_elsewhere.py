"""Draws from files and tables: the same as in memory, whatever the database, and what is refused."""

import sqlite3
from collections import Counter
from hashlib import md5

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from checks import raises
from test_scan import ENGINES, NASTY, SOURCES, duckdb, frame_of, in_turn, population

import erbayes as eb
from erbayes.labels import (
    GivenProbabilities,
    LinkEnds,
    Multipurpose,
    PredictedClusters,
    Records,
    Strata,
    draw,
)
from erbayes.labels.source import InMemory
from erbayes.large import Columns, DatabaseTable, Dialect, Files, RunSQL, drawing

pytestmark = pytest.mark.slow

NAMES = Columns("record", "cluster")
PLANS = {
    "records": Records(),
    "links": LinkEnds(),
    "multipurpose": Multipurpose(),
    "clusters": PredictedClusters(),
    "clusters by links": PredictedClusters(LinkEnds()),
}
LARGE = [2**53, 2**53 + 1, 2**63 - 1, -(2**63), 0, -7]


def same_draw(found, wanted):
    """The same records in the same order; members in any order."""
    pd.testing.assert_frame_equal(found.table, wanted.table, check_dtype=False, check_column_type=False)
    members = [
        Counter(zip(drawn.members["record"], drawn.members["cluster"], strict=True))
        for drawn in (found, wanted)
    ]
    assert members[0] == members[1]
    assert (found.fingerprint, found.records) == (wanted.fingerprint, wanted.records)


@pytest.mark.parametrize(("source", "kind"), in_turn(ENGINES, 2))
def test_every_source_draws_what_memory_draws(source, kind, tmp_path):
    prediction, _, _ = population(3, kind=kind)
    elsewhere = SOURCES[source](frame_of(prediction), tmp_path)
    with drawing(elsewhere, NAMES) as opened:
        for plan in (Multipurpose(), PredictedClusters(LinkEnds())):
            same_draw(draw(opened, plan, n=25, seed=7), draw(prediction, plan, n=25, seed=7))


@pytest.mark.parametrize("seed", range(len(PLANS)))
def test_hostile_ids(seed, tmp_path):
    """Ids made of hostile parts, of any length, in files of every kind and in a table; a plan for each seed."""
    rng = np.random.default_rng(seed)
    parts = np.array([*NASTY, "x" * 70, "00", "0007", "\u0301"], dtype=object)
    ids = {"".join(rng.choice(parts, size=rng.integers(1, 5))) for _ in range(150)} - {""}
    # no id that means none, or that is there with other blanks at its end
    prediction = "c" + pd.Series(rng.choice([*ids][:40], size=len(ids)), sorted(ids)) + "."
    frame, plan = frame_of(prediction), [*PLANS.values()][seed]
    wanted = draw(prediction, plan, n=12, seed=seed)
    frame.to_parquet(tmp_path / "p.parquet", index=False)
    same_draw(draw(tmp_path / "p.parquet", plan, n=12, seed=seed), wanted)
    wanted.refuse_another(tmp_path / "p.parquet")
    with duckdb.connect(tmp_path / "x.duckdb") as connection:
        connection.register("f", frame)
        connection.execute("CREATE TABLE p AS SELECT * FROM f")
    same_draw(draw(DatabaseTable(tmp_path / "x.duckdb", "p"), plan, n=12, seed=seed), wanted)
    plain = prediction[~prediction.index.str.contains(r"[\r\n]")]
    plain = plain[~plain.str.contains(r"[\r\n]")]
    for name in (("p.csv", "p.csv.gz", "p.tsv")[seed % 3],):  # text in turn
        separator = "\t" if "tsv" in name else ","
        frame_of(plain).to_csv(tmp_path / name, index=False, sep=separator, quoting=1)
        same_draw(draw(tmp_path / name, plan, n=12, seed=seed), draw(plain, plan, n=12, seed=seed))


@pytest.mark.parametrize("plan", PLANS)
def test_integers_and_their_text_are_drawn_alike(plan, tmp_path):
    """The key of an id is made of its text, so that CSV and Parquet draw alike."""
    ids = [*LARGE, *range(100, 160)]
    prediction = pd.Series((np.arange(len(ids)) // 3 + 1) * 2**40, ids)
    frame_of(prediction).to_parquet(tmp_path / "p.parquet", index=False)
    frame_of(prediction).to_csv(tmp_path / "p.csv", index=False)
    wanted = draw(prediction, PLANS[plan], n=15, seed=2)
    same_draw(draw(tmp_path / "p.parquet", PLANS[plan], n=15, seed=2), wanted)
    text = draw(tmp_path / "p.csv", PLANS[plan], n=15, seed=2)
    same_draw(draw(Files(tmp_path / "p.parquet", text=True), PLANS[plan], n=15, seed=2), text)
    as_text = prediction.set_axis(prediction.index.astype(str)).astype(str)
    same_draw(draw(as_text, PLANS[plan], n=15, seed=2), text)
    assert text.table["record"].tolist() == wanted.table["record"].astype(str).tolist()


def test_integers_beyond_64_bits(tmp_path):
    ids = pa.array([10**30, 10**30 + 1, 5, -5, 10**37], pa.decimal128(38, 0))
    clusters = ids.take(pa.array([0, 0, 1, 1, 1]))
    pq.write_table(pa.table({"record": ids, "cluster": clusters}), tmp_path / "p.parquet")
    numbers, records = ([int(i.as_py()) for i in column] for column in (clusters, ids))
    prediction = pd.Series(numbers, pd.Index(records, dtype=object), dtype=object)
    found, wanted = (draw(p, Records(), n=9, seed=1).table for p in (tmp_path / "p.parquet", prediction))
    assert found.to_numpy().tolist() == wanted.to_numpy().tolist()


def by_hand(prediction, seed):
    """Record, cluster, size and key, one by one."""
    size = Counter(prediction)
    return {
        (record, cluster, size[cluster], int(md5(f"{seed}:{record}".encode()).hexdigest()[:16], 16))
        for record, cluster in prediction.items()
    }


def rows_of(table, names=("record", "cluster", "size", "key")):
    rows = list(table[list(names)].itertuples(index=False, name=None))
    assert len(set(rows)) == len(rows)
    return set(rows)


@pytest.fixture(params=["memory", "duckdb", "sqlite", "relation"])
def source(request, tmp_path):
    prediction, _, _ = population(6, kind="hostile")
    if request.param == "memory":
        yield prediction, InMemory.of(prediction)
        return
    frame = frame_of(prediction)
    elsewhere = frame if request.param == "duckdb" else SOURCES[request.param](frame, tmp_path)
    with drawing(elsewhere, NAMES) as opened:
        yield prediction, opened


def test_known_sizes(source):
    prediction, opened = source
    of_size = Counter(Counter(prediction).values())
    assert dict(zip(opened.known.size, opened.known.count, strict=True)) == of_size


def test_records_up_to_a_key_of_their_size(source):
    prediction, opened = source
    highest = {1: 2**63, 2: 2**64 - 1, 3: 0, 99: 2**64 - 1}
    wanted = {row for row in by_hand(prediction, 11) if row[3] <= highest.get(row[2], -1)}
    assert rows_of(opened.up_to(highest, 11)) == wanted and len(wanted) > 20
    (row, *_) = sorted(wanted)
    assert row in rows_of(opened.up_to({row[2]: row[3]}, 11))
    assert row not in rows_of(opened.up_to({row[2]: row[3] - 1}, 11)) and opened.up_to({}, 11).empty


def test_buckets_and_their_counts(source):
    prediction, opened = source
    wanted = by_hand(prediction, 12)
    buckets = sorted({key >> 48 for *_, key in wanted})[::3]
    found = opened.in_buckets(np.array(buckets), 12)
    assert rows_of(found) == {row for row in wanted if row[3] >> 48 in buckets}
    assert set(found) <= {"record", "cluster", "size", "key"}  # values are there if they are asked for
    counts = opened.counts(12)[["bucket", "size", "records"]].itertuples(index=False, name=None)
    assert Counter({(b, m): k for b, m, k in counts}) == Counter((key >> 48, m) for _, _, m, key in wanted)


def test_members_and_look_up(source):
    prediction, opened = source
    clusters = prediction.unique()[:5]
    wanted = {(r, c) for r, c in prediction.items() if c in clusters}
    assert rows_of(opened.members(pd.Index(clusters)), ("record", "cluster")) == wanted
    records, size = prediction.index[::7], Counter(prediction)
    found = opened.look_up(records.append(pd.Index(["unknown"])))
    wanted = {(r, prediction[r], size[prediction[r]]) for r in records}
    assert rows_of(found, ("record", "cluster", "size")) == wanted
    assert opened.members(pd.Index([])).empty and opened.look_up(pd.Index([])).empty


def test_clusters_as_records(source):
    prediction, opened = source
    clusters = opened.of_clusters()
    size = Counter(prediction)
    wanted = {(c, c, m, int(md5(f"3:{c}".encode()).hexdigest()[:16], 16)) for c, m in size.items()}
    assert rows_of(clusters.up_to(dict.fromkeys(size.values(), 2**64 - 1), 3)) == wanted
    assert clusters.counts(3)["records"].sum() == len(size)


@pytest.mark.parametrize("plan", [Records(), LinkEnds(), Multipurpose()])
def test_draws_have_their_chances_and_are_independent(plan):
    """Counts over many seeds against chances, and pairs of draws against products of chances."""
    prediction = {f"r{i}": f"c{c}" for i, c in enumerate([0, 0, 0, 0, 1, 1, 2, 2, 3])}
    size = Counter(prediction.values())
    phi = {
        Records: lambda m: 1 / 9,
        LinkEnds: lambda m: (m - 1) / 16,
        Multipurpose: lambda m: (1 + ((m - 1) ** 2 * 9 / 40 + m**-2 * 9 / 2.25) / 2) ** 0.5,
    }[type(plan)]
    p = np.array([phi(size[c]) for c in prediction.values()])
    p = p / p.sum() if plan == Multipurpose() else p
    assert p.sum() == pytest.approx(1)
    position = {r: i for i, r in enumerate(prediction)}
    seeds, n = 4, 20_000
    pairs = np.zeros((9, 9))
    for seed in range(seeds):
        table = draw(prediction, plan, n=n, seed=seed).table
        at = table["record"].map(position).to_numpy()
        np.add.at(pairs, (at[::2], at[1::2]), 1)
        assert table["probability"].to_numpy() == pytest.approx(p[at])
    expected = n / 2 * seeds * np.outer(p, p)
    assert pairs[expected == 0].sum() == 0
    z = (pairs - expected)[expected > 0] / np.sqrt(expected[expected > 0])
    assert np.abs(z).max() < 4.5 and (z**2).mean() == pytest.approx(1, abs=6 * (2 / len(z)) ** 0.5)


def test_first_draws_follow_the_keys():
    """Over many seeds, every record is the first as often: keys are a random order of the clusters."""
    prediction = {f"r{i}": f"c{i // 2}" for i in range(8)}
    source = InMemory.of(prediction)
    first = Counter(Records().draw(source, 1, seed)["record"][0] for seed in range(120))
    assert sum((k - 15) ** 2 / 15 for k in first.values()) < 24.3  # 99.9 % of chi-square with 7 degrees
    assert len(first) == 8


@pytest.mark.parametrize("plan", [Records(), LinkEnds(), Multipurpose()])
def test_fewer_draws_are_the_first_of_more(plan):
    prediction, _, _ = population(8)
    more, fewer = draw(prediction, plan, n=60, seed=1).table, draw(prediction, plan, n=25, seed=1).table
    pd.testing.assert_frame_equal(more[:25], fewer)


def test_a_whole_size_drawn_many_times(tmp_path):
    """More draws than clusters: every record is met, and a second look finds those that the first missed."""
    prediction = pd.Series([f"c{i // 2}" for i in range(8)], [f"r{i}" for i in range(8)])
    frame_of(prediction).to_parquet(tmp_path / "p.parquet")
    found = draw(tmp_path / "p.parquet", Records(), n=200, seed=1)
    same_draw(found, draw(prediction, Records(), n=200, seed=1))
    assert set(found.table["record"]) == set(prediction.index)


def test_a_second_look(monkeypatch):
    """If too few clusters lie below the first guess, more are asked for, with the same draws."""
    prediction = pd.Series(np.arange(4000) // 2)
    wanted = draw(prediction, Records(), n=50, seed=1)
    asked = []
    original = InMemory.up_to

    def short(self, highest, seed):
        asked.append(highest)
        return original(self, {m: key // (40 if len(asked) == 1 else 1) for m, key in highest.items()}, seed)

    monkeypatch.setattr(InMemory, "up_to", short)
    same_draw(draw(prediction, Records(), n=50, seed=1), wanted)
    assert len(asked) > 1


def test_values_are_a_column(tmp_path):
    prediction, _, _ = population(9)
    frame = frame_of(prediction)
    frame["weight"] = 1.0 + np.arange(len(frame)) % 5
    frame["region"] = np.where(np.arange(len(frame)) % 3, "it's north", "süd")
    frame.to_parquet(tmp_path / "p.parquet", index=False)
    for column, plan in (("weight", GivenProbabilities()), ("region", Strata())):
        with drawing(tmp_path / "p.parquet", NAMES, value=column) as opened:
            found = draw(opened, plan, n=30, seed=4)
        wanted = draw(prediction, plan, n=30, seed=4, values=frame.set_index("record")[column])
        same_draw(found, wanted)
        frame[["record", "cluster", column]].to_parquet(tmp_path / "three.parquet", index=False)
        same_draw(draw(tmp_path / "three.parquet", plan, n=30, seed=4, values=column), wanted)
    frame.loc[3, "weight"] = np.nan
    said = "values of the prediction: 1 of 300 are missing in column 'weight'"
    with pytest.raises(eb.DataError, match=said), drawing(frame, NAMES, value="weight"):
        pass
    with pytest.raises(eb.DataError, match="are the name of a column"):
        draw(tmp_path / "p.parquet", Strata(), n=30, seed=4, values={"a": 1})


def test_frames(tmp_path):
    prediction, _, _ = population(10)
    frame_of(prediction).to_parquet(tmp_path / "p.parquet", index=False)
    inside = prediction[np.arange(len(prediction)) % 3 < 2]
    with drawing(tmp_path / "p.parquet", NAMES, frame=inside.index) as opened:
        same_draw(draw(opened, LinkEnds(), n=30, seed=4), draw(inside, LinkEnds(), n=30, seed=4))


@pytest.mark.parametrize(("records", "clusters", "message"), [
    ("ab", ["x", None], "cluster ids of the prediction: 1 of 2 are missing, such as where 'record' is 'b'"),
    ("abkk", "xxyz", "1 duplicates, such as 'k'"),  # which are not drawn, for they have no links
    ("", "", "the prediction has no record"),
])  # fmt: skip
def test_what_a_scan_refuses(records, clusters, message, tmp_path):
    columns = {"record": records, "cluster": clusters}
    table = pa.table({name: pa.array([*values], pa.string()) for name, values in columns.items()})
    pq.write_table(table, tmp_path / "p.parquet")
    raises(eb.DataError, message, draw, tmp_path / "p.parquet", LinkEnds(), n=3, seed=1)


def test_databases_without_md5_are_told():
    frame = pd.DataFrame({"record": ["a"], "cluster": ["x"]})
    database = sqlite3.connect(":memory:")
    frame.to_sql("p", database, index=False)
    table = RunSQL(lambda sql: database.execute(sql).fetchall(), "p", Dialect.SQLITE)
    with pytest.raises(eb.DataError, match="SQLite has no MD5: define one by"), drawing(table, NAMES):
        pass
    run = table.run

    def other(sql):
        return [("5D41402ABC4B2A76B9719D911017C592",)] if "MD5" in sql else run(sql)

    said, table = "draws need a database whose MD5 returns hexadecimal", RunSQL(other, "p", table.dialect)
    with pytest.raises(eb.DataError, match=said), drawing(table, NAMES):
        pass


@pytest.mark.parametrize("plan", [Records(), PredictedClusters()])
def test_tables_that_change_are_told(plan):
    with duckdb.connect() as connection:
        rows = "SELECT 'r' || i AS record, 'c' || (i // 3) AS cluster FROM range(90) AS t(i)"
        connection.execute(f"CREATE TABLE p AS {rows}")
        said = r"the prediction changed while it was read: \d+ clusters or sizes"
        with drawing(connection.table("p")) as opened, pytest.raises(eb.DataError, match=said):
            connection.execute("DELETE FROM p WHERE record IN (SELECT MIN(record) FROM p GROUP BY cluster)")
            draw(opened, plan, n=9, seed=1)
