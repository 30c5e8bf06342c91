"""What every door refuses alike: memory, scans and the shell, with the remedy in the words of each."""

import os
import sqlite3
import uuid
from contextlib import chdir
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pytest
from checks import raises
from pandas._libs.parsers import STR_NA_VALUES
from pyarrow import parquet
from shell import run
from test_scan import postgres  # noqa: F401

import erbayes as eb
from erbayes.large import Columns, DatabaseTable, Dialect, DuckDB, GroupSource, RunSQL, drawing, scan
from erbayes.units.ids import NULL_NUMBERS, NULL_TEXTS, list_null_ids

duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")

LABELS = {"a": "e", "b": "e"}
OTHERS = {str: ["x", "y"], int: [7, 8]}


def shell(folder, *args):
    with chdir(folder):
        return run(*args)


def table_of(id, records="abcd"):
    """Two records share `id`, each other one has a cluster of its own."""
    return pd.DataFrame({"record": list(records), "cluster": [id, id, *OTHERS[type(id)]]})


def sqlite(frame):
    database = sqlite3.connect(":memory:")
    frame.to_sql("p", database, index=False)
    return RunSQL(lambda sql: database.execute(sql).fetchall(), "p", dialect=Dialect.SQLITE)


def stored(frame, folder):
    with duckdb.connect(folder / "x.duckdb") as connection:
        connection.register("f", frame)
        connection.execute("CREATE TABLE p AS SELECT * FROM f")
    return DatabaseTable(folder / "x.duckdb", "p")


def relation(frame, folder):
    return duckdb.connect().from_df(frame)


def parquet_file(frame, folder):
    frame.to_parquet(folder / "p.parquet", index=False)
    return folder / "p.parquet"


SOURCES = {
    "frame": lambda frame, folder: frame,
    "categorical": lambda frame, folder: frame.astype({"cluster": "category"}),
    "arrow": lambda frame, folder: pa.table(frame),
    "parquet": parquet_file,
    "database": stored,
    "relation": relation,
    "sqlite": lambda frame, folder: sqlite(frame),
}


def test_the_list_has_what_libraries_write():
    """Each spelling where it comes from: pandas, its own missing values as text, and NumPy's."""
    none = (None, np.nan, pd.NA, pd.NaT, float("nan"), np.float32("nan"), uuid.UUID(int=0))
    written = {str(x) for x in none}
    assert (written | STR_NA_VALUES) <= set(list_null_ids("string"))
    texts = set(list_null_ids("string"))
    assert {str(n) for n in NULL_NUMBERS} | {"-1.0", "-2.0", "-3.0", " NULL", "  ", "nan "} <= texts
    for dtype in (np.int64, np.int32):
        with np.errstate(invalid="ignore"):
            assert int(np.array([np.nan]).astype(dtype)[0]) in NULL_NUMBERS
    assert pd.factorize(pd.Series([None, "a"]))[0][0] in list_null_ids("integer")
    assert not {0, 1} & set(list_null_ids("integer")) and all(text == text.lower() for text in NULL_TEXTS)


NONES = ["", " ", *"-1 -1.0 -2 nan NaN None NONE NULL nUlL NA n/a <NA> NaT \\N ? 0".split()]


def with_two_sources(ids):
    """Pairs of an id and a source: each id in SQLite, and every other in one of DuckDB's.

    The rule is one condition in each of the two, so that all pairs would ask it seven times.
    """
    *own, other = SOURCES
    return [(id, other) for id in ids] + [(id, own[i % len(own)]) for i, id in enumerate(ids[::2])]


@pytest.mark.every(3)
@pytest.mark.parametrize(
    ("id", "source"), with_two_sources([*NONES, "00000000-0000-0000-0000-000000000000", -1, -3]), ids=repr
)
def test_a_shared_id_for_none_is_refused_at_every_door(source, id, tmp_path):
    frame = table_of(id)
    told = r"cluster ids of the .*: 2 of 4 records have .*, which stands for no cluster, .* with 1 link: "
    with pytest.raises(eb.DataError, match=told) as in_memory:
        eb.measure(frame, LABELS)
    assert str(in_memory.value).endswith("Clustering.of(memberships, any_id=True) (--any-id)")
    opened = SOURCES[source](frame, tmp_path)
    with pytest.raises(eb.DataError, match=told) as scanned:
        scan(opened, LABELS, Columns("record", "cluster"))
    assert str(scanned.value).endswith("if it is a real id: Columns(any_id=True) (--any-id)")
    meant = scan(opened, LABELS, Columns("record", "cluster", any_id=True))
    real = eb.measure(eb.Clustering.of(frame, any_id=True), LABELS)
    assert meant.table().equals(real.table()) and meant.m.tolist() == [2.0]
    if source == "sqlite":  # it has no MD5
        return
    with pytest.raises(eb.DataError, match=told), drawing(opened, NAMES) as _:
        pass
    with drawing(opened, Columns("record", "cluster", any_id=True)) as opened_prediction:
        assert opened_prediction.known.count.sum() == 3


@pytest.mark.parametrize(
    ("id", "source"),
    with_two_sources([0, 1, -4, -99, "1", "00", "none of these", "nap", "-1a", "naN x", "x", "an"]),
    ids=repr,
)
def test_ordinary_ids_are_taken(source, id, tmp_path):
    frame = table_of(id)
    found = scan(SOURCES[source](frame, tmp_path), LABELS, Columns("record", "cluster"))
    assert found.table().equals(eb.measure(frame, LABELS).table())


READ_ALIKE = {
    "records last": lambda t: t[["cluster", "customer"]],
    "bare columns": lambda t: t[["cluster", "customer"]].set_axis(["grp", "key"], axis=1),
    "numbers of rows": lambda t: t.assign(X=range(1, len(t) + 1))[["X", "customer", "cluster"]],
    "numbers of rows, shuffled": lambda t: (
        t.sample(frac=1, random_state=7).assign(X=range(len(t))).sort_index()[["X", "customer", "cluster"]]
    ),
    "a known name that counts rows": lambda t: t.assign(id=range(len(t)))[["id", "cluster", "customer"]],
    "attributes": lambda t: t.assign(email=[f"u{i}@x.org" for i in range(len(t))], city="Rome"),
    "no name of clusters, attributes": lambda t: t.assign(grp=t.cluster, city="Rome").drop(columns="cluster"),
    "two clusterings": lambda t: t.assign(canonical_id=range(len(t))),
    "pairs that somebody answered": lambda t: t.assign(match=["yes", "no"] * (len(t) // 2)),
    "no column of clusters": lambda t: t[["customer"]],
    "a first line that is a record": lambda t: t[["customer", "cluster"]].set_axis(["7001", "81"], axis=1),
}


@pytest.mark.every(3)
@pytest.mark.parametrize("rows", [60, 1500])
@pytest.mark.parametrize("how", READ_ALIKE)
def test_every_door_reads_the_same_columns(how, rows, tmp_path):
    """More rows than are looked at, which then cannot say that a column is unique."""
    rng = np.random.default_rng(3)
    ids, cluster = rng.permutation(rows), rng.integers(0, rows // 2, rows)
    table = pd.DataFrame({"customer": [str(i) for i in ids], "cluster": [f"c{i}" for i in cluster]})
    some = rng.permutation(rows)[: rows // 3]
    labels = pd.DataFrame({"X": range(len(some)), "customer": table.customer[some], "who": ids[some] // 2})
    table = READ_ALIKE[how](table)

    def count(measure):
        try:
            return measure().table().to_numpy().tolist()
        except eb.DataError:
            return "refused"

    wanted = count(lambda: eb.measure(table, labels))
    assert (wanted == "refused") is (how in list(READ_ALIKE)[-4:])
    sources = ("frame", "arrow", "parquet", "sqlite")
    for source in sources[(list(READ_ALIKE).index(how) + (rows > 60)) % 2 :: 2]:
        opened = SOURCES[source](table, tmp_path)
        if source == "sqlite":
            opened = replace(opened, names=list(table.columns))
        assert count(lambda opened=opened: scan(opened, labels)) == wanted, source


def test_ids_that_are_an_index_are_a_column_in_a_file_and_refused_in_memory(tmp_path):
    """An index that is in no column would be dropped, and the next column taken for it."""
    plain = pd.DataFrame({"record": list("abcd"), "cluster": list("ppqr"), "age": [3, 1, 4, 1]})
    indexed, wanted = plain.set_index("record"), eb.measure(plain, LABELS).table()
    for table in (pa.Table.from_pandas(indexed), plain.set_index("record", drop=False), plain[::-1]):
        assert eb.measure(table, LABELS).table().equals(wanted)
    indexed.to_parquet(tmp_path / "p.parquet")
    plain.to_csv(tmp_path / "p.csv", index=False)
    asked = [*"draw p.csv -n 2 --seed 1 --attributes".split(), "p.parquet"]
    assert shell(tmp_path, *asked, "-o", "f").exit_code == 0
    given = {"attributes": indexed, "features": {"old": ("age", "max")}}
    unnamed = indexed.rename_axis(None)
    for table in (indexed, unnamed):
        told = "'cluster', 'age' has the index 'a', 'b', 'c', …: reset_index.. makes a column of it"
        raises(eb.DataError, told, eb.measure, table, LABELS)
        given["attributes"] = table
        raises(eb.DataError, told, eb.impact, plain, LABELS, eb.UniformClusters(), ["mean(old)"], **given)


def test_attributes_and_frames_that_are_scanned_are_not_joined_by_the_number_of_the_row():
    rng = np.random.default_rng(3)
    ids = rng.permutation(150) + 7  # more rows than are looked at
    table = pd.DataFrame({"customer": ids, "cluster": np.arange(150) // 3})
    labels = pd.Series(np.arange(60) // 3, ids[:60])
    rows = pd.DataFrame({"X": rng.permutation(150), "customer": ids, "country": ["FR", "DE", "PE"] * 50})
    units = scan(table, labels, groups=GroupSource(rows, "country"))
    groups = pd.Series(rows.country.to_numpy(), ids)
    same = eb.measure(table, labels).grouped(groups, name="country", prediction=table)
    found = [one.groupings[0].table(one) for one in (units, same)]
    assert found[0].equals(found[1])
    # most numbers of rows are ids
    units = scan(table, labels, groups=GroupSource(rows.rename(columns={"customer": "rec"}), "country"))
    assert units.groupings[0].table(units).equals(found[1])
    said = "table of attributes: records are 'X' or 'rec', which both have ids"
    with pytest.raises(eb.DataError, match=said):
        attributes = rows.assign(X=rows.X + 7).rename(columns={"customer": "rec"})
        scan(table, labels, groups=GroupSource(attributes, "country"))
    older = rows[["X", "customer"]][:75].assign(X=range(20, 95))
    with pytest.raises(eb.DataError, match="frame: records are 'X' or 'customer', which both have ids"):
        scan(table, labels, frame=pa.dataset.dataset(pa.table(older)))
    framed = scan(table, labels, frame=pa.dataset.dataset(pa.table(older.assign(X=range(500, 575)))))
    assert framed.table().equals(eb.measure(table, labels, frame=ids[:75]).table())


@pytest.mark.every(3)
@pytest.mark.parametrize("source", SOURCES)
def test_blanks_at_the_ends_of_clusters_are_told_by_scans_too(source, tmp_path):
    for k, blank in enumerate((" ", "\t", "\u00a0")):
        (folder := tmp_path / str(k)).mkdir()
        frame = pd.DataFrame({"record": list("abcd"), "cluster": ["x1", f"x1{blank}", "x2", "x2"]})
        for measure in (
            eb.measure,
            lambda t, labels, folder=folder: scan(SOURCES[source](t, folder), labels, NAMES),
        ):
            with pytest.raises(eb.DataError, match=r"1 of . are there without the blanks at their ends too"):
                measure(frame, LABELS)
        if source == "frame":
            padded = frame.assign(cluster=[f"{x.strip()}{blank}" for x in frame.cluster])
            assert scan(padded, LABELS, NAMES).rows == 4


@pytest.mark.every(3)
@pytest.mark.parametrize("source", SOURCES)
def test_what_makes_such_an_id_ordinary(source, tmp_path):
    """One record alone; "0" beside "1"; the id of one of the cluster's own records, not of another's."""
    for clusters in (["NA", "x", "y", "z"], ["0", "0", "1", "z"], ["d", "x", "NA", "NA"]):
        records = ["a", "b", "c", "NA"] if clusters[3] == "NA" else list("abcd")
        frame = pd.DataFrame({"record": records, "cluster": clusters})
        (tmp_path / clusters[0]).mkdir()
        found = scan(SOURCES[source](frame, tmp_path / clusters[0]), LABELS, Columns("record", "cluster"))
        assert found.table().equals(eb.measure(frame, LABELS).table())
    stranger = pd.DataFrame({"record": ["a", "b", "NA", "d"], "cluster": ["NA", "NA", "x", "y"]})
    for count in (eb.measure, lambda t, labels: scan(SOURCES[source](t, tmp_path), labels, NAMES)):
        raises(eb.DataError, "2 of 4 records have 'NA'", count, stranger, LABELS)


ZEROS = {
    "alone": ({"0": 2}, False),
    "as large as the largest other": ({"0": 3, "1500": 3, "17": 1}, True),
    "larger than any other": ({"0": 4, "1500": 3, "17": 1}, False),
    "larger, beside a digit": ({"0": 4, "1500": 3, "7": 1}, True),
    "beside other texts": ({"0": 2, "1500": 2, "e17": 1}, False),
    "of one record": ({"0": 1, "e17": 2}, True),
}


@pytest.mark.every(3)
@pytest.mark.parametrize("text", ["object", "category", "str", "string[pyarrow]"])
@pytest.mark.parametrize(("sizes", "ordinary"), ZEROS.values(), ids=ZEROS)
def test_zero_is_an_entity_of_a_sample_unless_it_stands_out(sizes, ordinary, text):
    """A sample of the entities 0, 1, 2, ... may have none of 1 to 9, whereas a whole prediction has them."""
    ids = np.repeat([*sizes], [*sizes.values()])
    records = [f"r{i}" for i in range(len(ids))]
    labels = pd.Series(ids, records, dtype=text)
    prediction = dict.fromkeys(records, "w")

    def scan_labels():
        frame = pd.DataFrame({"record": records, "cluster": "w"})
        return scan(frame, labels, Columns("record", "cluster"))

    for read in (lambda: eb.measure(prediction, labels), scan_labels):
        if ordinary:
            assert sorted(read().size) == sorted(sizes.values())
        else:
            raises(eb.DataError, f"cluster ids of the labels: {sizes['0']} of .* have '0'", read)
    if "7" not in sizes and sizes["0"] > 1:
        with pytest.raises(eb.DataError, match=r"cluster ids of the prediction: . of .* have '0'"):
            eb.measure(labels, prediction)


NAMES = Columns("record", "cluster")


def test_labels_blocks_and_second_clusterings_have_the_rule_too():
    prediction = table_of("w")
    for what, work in {
        "labels": lambda: eb.measure(prediction, {"a": "nan", "b": "NaN", "c": "nan"}),
        "blocks": lambda: eb.measure(prediction, LABELS, blocks={"a": "NULL", "b": "NULL"}),
        "second clustering 's'": lambda: eb.auxiliary.Second.of(prediction, LABELS, table_of("NA"), name="s"),
    }.items():
        raises(eb.DataError, f"cluster ids of the {what}: 2 of [234] records have", work)


def test_common_records_have_the_rule_too():
    old, new = table_of("w"), table_of("NULL")
    raises(eb.DataError, "in 'new': 2 of 4 records have 'NULL'", scan, {"old": old, "new": new}, LABELS)
    assert len(scan({"old": old, "new": new}, LABELS, Columns(any_id=True))) == 2


def test_the_shell_refuses_them_and_has_an_option(tmp_path):
    table_of("NA").to_csv(tmp_path / "p.csv", index=False)
    pd.DataFrame({"record": list("abcd"), "entity": list("eeff")}).to_csv(tmp_path / "l.csv", index=False)
    command = ["estimate", "p.csv", "l.csv", "--design", "uniform-clusters"]
    for door in ([], ["--memory-limit", "1GB"]):
        refused = shell(tmp_path, *command, *door)
        assert refused.exit_code == 2 and refused.stderr.strip().endswith("any_id=True) (--any-id)")
        assert shell(tmp_path, *command, *door, "--any-id").exit_code == 0
    draw = ["draw", "p.csv", "--design", "uniform-records", "--n", "2", "--seed", "1", "--output"]
    assert "--any-id" in shell(tmp_path, *draw, "f").stderr
    assert shell(tmp_path, *draw, "f", "--any-id").exit_code == 0
    table_of("w").to_csv(tmp_path / "w.csv", index=False)
    draw = ["draw", "w.csv", "--looser", "p.csv", *draw[2:]]
    assert "looser clustering p.csv: 2 of 4" in shell(tmp_path, *draw, "g").stderr
    assert shell(tmp_path, *draw, "g", "--any-id").exit_code == 0


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """4,000 entities of two among 20,000 records, of which the matcher finds 70 %: recall is .70."""
    folder, rng = tmp_path_factory.mktemp("pairs"), np.random.default_rng(0)
    records = np.array([f"k{i:05d}" for i in range(20_000)])
    entity = np.r_[np.arange(12_000), 12_000 + np.repeat(np.arange(4000), 2)]
    found = 12_000 + 2 * np.flatnonzero(rng.random(4000) < 0.7)
    table = pd.DataFrame({"id_l": records[found], "id_r": records[found + 1]})
    drawn = entity[rng.integers(20_000, size=400)]
    sampled = np.isin(entity, drawn)
    labels = pd.DataFrame({"record": records[sampled], "entity": entity[sampled].astype(str)})
    table.to_csv(folder / "e.csv", index=False)
    labels.to_csv(folder / "l.csv", index=False)
    pd.Series(drawn, name="entity").to_csv(folder / "d.csv", index=False)
    pd.Series(records, name="record").to_csv(folder / "all.csv", index=False)
    return folder, table, labels.set_index("record")["entity"], drawn.astype(str), records, len(found) / 4000


def test_pairs_alone_refuse_to_leave_out_records_that_are_in_no_pair(pairs):
    _, table, labels, drawn, records, truth = pairs
    alone, whole = eb.Clustering.from_pairs(table), eb.Clustering.from_pairs(table, records=records)
    design, recall = eb.UniformRecords(drawn), ["pairwise-recall"]
    for policy in (eb.Missing.ERROR, eb.Missing.OMIT):
        with pytest.raises(eb.DataError, match="pairs do not name records that are linked to none") as error:
            eb.estimate(alone, labels, design, recall, missing=policy)
        listed, singletons = str(error.value).split("list all records: ")[1].split("; or, ")
        assert listed == "records=ids (--records FILE)"
        assert singletons.endswith("(--missing singleton)") and "omit" not in str(error.value)
        with pytest.raises(eb.DataError, match="pairs do not name"):
            eb.auxiliary.Second.of(alone, labels, whole, name="whole", missing=policy)
    # records kept as singletons have no number, so that each draw counts
    right = eb.estimate(whole, labels, replace(design, repeats=True), recall)
    same = eb.estimate(alone, labels, design, recall, missing=eb.Missing.SINGLETON)
    # clusters stand in another order, and sums of floats differ by it in the last digit
    np.testing.assert_allclose(right.estimate, same.estimate, rtol=1e-13)
    found = right.table().loc["pairwise-recall"]
    assert found["lower"] < truth < found["upper"]


def test_records_kept_as_singletons_leave_the_links_of_the_prediction_known():
    """No singleton has a link, so that the total is known of any number of them; that of records is not."""
    prediction, labels = {1: "a", 2: "a", 3: "a", 4: "b"}, {1: "x", 2: "x", 9: "x"}
    units = eb.measure(prediction, labels, missing=eb.Missing.SINGLETON)
    assert units.total(eb.columns.PREDICTED_LINKS) == 3
    for column in (eb.columns.RECORDS, eb.columns.PREDICTED_CLUSTERS):
        raises(eb.NotIdentified, "were kept as singletons", units.total, column)


def test_pairs_alone_stay_pairs_alone_inside_a_frame(pairs):
    """The restricted prediction misses the same records, and recall would count found links only."""
    _, table, labels, _, records, _ = pairs
    alone = eb.Clustering.from_pairs(table)
    frame = records[np.isin(records, labels.index) | (np.arange(len(records)) % 2 == 0)]
    for policy in (eb.Missing.ERROR, eb.Missing.OMIT):
        with pytest.raises(eb.DataError, match="pairs do not name records that are linked to none"):
            eb.measure(alone, labels, missing=policy, frame=frame)


def test_pairs_alone_refuse_common_records(pairs):
    _, table, labels, drawn, _, _ = pairs
    predictions = {"all": eb.Clustering.from_pairs(table), "half": eb.Clustering.from_pairs(table[::2])}
    for policy in (eb.Missing.ERROR, eb.Missing.COMMON):
        with pytest.raises(eb.DataError, match="list all records: records=ids"):
            eb.compare(predictions, labels, eb.UniformRecords(drawn), missing=policy)


def test_the_shell_names_the_list_of_records_first(pairs):
    folder, table, labels, drawn, records, _ = pairs
    command = ["estimate", "e.csv", "l.csv", "--edges", "--design", "uniform-records", "--drawn", "d.csv"]
    command += ["--metrics", "pairwise-recall"]
    for policy in ([], ["--missing", "omit"]):
        refused = shell(folder, *command, *policy)
        assert refused.exit_code == 2
        assert refused.stderr.index("(--records FILE)") < refused.stderr.index("--missing singleton")
        assert "leave out --edges" not in refused.stderr
    # each entity counts once, unless records kept as singletons leave their number unknown
    whole, design = eb.Clustering.from_pairs(table, records=records), eb.UniformRecords(drawn)
    for more, counted in (
        (["--records", "all.csv"], design),
        (["--missing", "singleton"], replace(design, repeats=True)),
    ):
        told = shell(folder, *command, *more)
        assert told.exit_code == 0
        fit = eb.estimate(whole, labels, counted, ["pairwise-recall"])
        x, low, high = (f"{end:.0%}".replace("%", " %") for end in (fit.estimate[0], *fit.interval()[0]))
        assert f"found {x} (95 % interval {low} to {high})" in told.stdout


@pytest.mark.parametrize("left, right, records, warned", [
    ("abd", "xxy", False, True), ("abd", "xxy", True, False), ("abd", "xyz", False, False),
    ("abd", "ddb", False, False), ("aabd", "xxxy", False, False),
])  # fmt: skip
def test_memberships_that_are_taken_for_edges(tmp_path, left, right, records, warned):
    """A cluster of several records stands in several rows; pairs that are all of two records do not show it."""
    pd.DataFrame({"l": [*left], "r": [*right]}).to_csv(tmp_path / "e.csv", index=False)
    pd.DataFrame({"record": ["a", "b"], "entity": ["e", "e"]}).to_csv(tmp_path / "l.csv", index=False)
    pd.Series(["a", "b", "d", *dict.fromkeys(right)], name="record").to_csv(tmp_path / "all.csv", index=False)
    more = ["--records", "all.csv"] if records else []
    found = shell(tmp_path, "estimate", "e.csv", "l.csv", "--edges", "--design", "uniform-clusters", *more)
    assert ("e.csv has each l once, and none of them as r: if these are" in found.stderr) is warned


ENGINES = {"sqlite": lambda frame, folder: sqlite(frame), "parquet": parquet_file}
ENGINES |= {"database": stored, "relation": relation}
MISTYPED = {
    "record": lambda t: scan(t, LABELS, Columns("recrod", "cluster")),
    "cluster": lambda t: scan(t, LABELS, Columns("record", "clutser")),
    "groups": lambda t: scan(t, LABELS, NAMES, groups="contry"),
}
FURTHER = table_of("w").assign(country="k", release=1)
RIGHT = {
    "record": lambda t: scan(t, LABELS, NAMES),
    "groups": lambda t: scan(t, LABELS, NAMES, groups="country"),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("column", MISTYPED)
def test_a_mistyped_column_is_refused_in_every_engine(engine, column, tmp_path):
    """SQLite reads a quoted name that is no column as a text, of which all records would be one cluster."""
    raises(eb.DataError, r"recrod|clutser|contry", MISTYPED[column], ENGINES[engine](FURTHER, tmp_path))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("column", RIGHT)
def test_the_right_column_is_read_in_every_engine(engine, column, tmp_path):
    found = RIGHT[column](ENGINES[engine](FURTHER, tmp_path))
    assert found.table().equals(eb.measure(FURTHER[["record", "cluster"]], LABELS).table())


def test_a_mistyped_column_of_postgresql(postgres):  # noqa: F811
    columns = ", ".join(f"{name} {'int' if name == 'release' else 'text'}" for name in FURTHER)
    postgres.execute(f"CREATE TABLE p ({columns})")
    with postgres.cursor() as cursor:
        row = ", ".join(["%s"] * FURTHER.shape[1])
        cursor.executemany(f"INSERT INTO p VALUES ({row})", FURTHER.to_numpy().tolist())
    postgres.commit()

    def run(sql):
        try:
            return postgres.execute(sql).fetchall()
        finally:
            postgres.rollback()

    for work in MISTYPED.values():
        raises(eb.DataError, r"recrod|clutser|contry", work, RunSQL(run, "p"))
    for work in RIGHT.values():
        assert len(work(RunSQL(run, "p"))) == 1
    postgres.execute(
        "CREATE TABLE q AS SELECT 'r' || i AS record, (i / 2)::numeric(20, 0) AS cluster FROM generate_series(2, 9) i"
    )
    postgres.commit()
    labels = {"r2": "e", "r3": "e", "r4": "e"}
    same = eb.measure({f"r{i}": i // 2 for i in range(2, 10)}, labels)
    found = scan(RunSQL(run, "q"), labels, NAMES)
    assert found.m.tolist() == same.m.tolist() and found.n.tolist() == same.n.tolist()


@pytest.mark.parametrize(("rows", "told"), [
    (lambda found: [{"x": row[0]} for row in found], "a plain cursor does, not a dict"),
    (lambda found: ["".join(map(str, row)) for row in found], "not a str"),
    (lambda found: [b"a" for _ in found], "not a bytes"),
    (lambda found: [1 for _ in found], "not a int"),
    (pd.DataFrame, "not a DataFrame"),
    (lambda found: pa.table({"x": [1]}), "not a Table"),
    (lambda found: None, "not a NoneType"),
])  # fmt: skip
def test_rows_of_another_form_are_refused(rows, told):
    engine = sqlite(table_of("w"))
    with pytest.raises(eb.DataError, match=f"run must return rows.* {told}"):
        scan(RunSQL(lambda sql: rows(engine.run(sql)), "p", dialect=Dialect.SQLITE), LABELS, NAMES)


@pytest.mark.parametrize("rows", [iter, tuple, lambda found: np.array(found, dtype=object)])
def test_rows_of_these_forms_are_taken(rows):
    engine = sqlite(table_of("w"))
    found = scan(RunSQL(lambda sql: rows(engine.run(sql)), "p", dialect=Dialect.SQLITE), LABELS, NAMES)
    assert found.m.tolist() == [2.0]


def decimals(type, *values):
    clusters = pa.array([Decimal(value) for value in values], type)
    return pa.table({"record": list("abcd")[: len(values)], "cluster": clusters})


def test_decimals_without_places_are_integers_at_every_door(tmp_path):
    large = "12345678901234567890123"
    table = decimals(pa.decimal128(38, 0), large, large, "7", "8")
    parquet.write_table(table, tmp_path / "p.parquet")
    pd.DataFrame({"record": list("ab"), "entity": list("ee")}).to_csv(tmp_path / "l.csv", index=False)
    wanted = eb.measure({"a": 1, "b": 1, "c": 2, "d": 3}, LABELS).table()
    frame = table.to_pandas()
    assert eb.Clustering.of(frame).clusters.tolist() == [int(large), 7, 8]
    for units in (eb.measure(frame, LABELS), scan(table, LABELS), scan(tmp_path / "p.parquet", LABELS)):
        assert units.table().equals(wanted)
    command = ["estimate", "p.parquet", "l.csv", "--design", "uniform-clusters", "--format", "csv"]
    found = [shell(tmp_path, *command, *door) for door in ([], ["--memory-limit", "1GB"])]
    assert [one.exit_code for one in found] == [0, 0] and found[0].stdout == found[1].stdout


@pytest.mark.parametrize("values", [("7.0", "7.0"), ("7.5", "8.5")])
def test_decimals_with_places_are_refused_at_every_door(tmp_path, values):
    table = decimals(pa.decimal128(10, 1), *values)
    parquet.write_table(table, tmp_path / "p.parquet")
    for work in (
        lambda: eb.measure(table.to_pandas(), LABELS),
        lambda: scan(tmp_path / "p.parquet", LABELS),
        lambda: scan(duckdb.connect().from_arrow(table), LABELS),
    ):
        raises(eb.DataError, r"must be all strings or all integers, not (decimal|DECIMAL|Decimal)", work)


def test_a_fraction_among_decimals_is_refused():
    """NUMERIC without places holds both 5 and 5.5, of which the first and the last may be whole."""
    ids = {"a": Decimal(5), "b": Decimal("5.5"), "c": Decimal(9)}
    engine = sqlite(pd.DataFrame({"record": list(ids), "cluster": [5, 55, 99]}))

    def run(sql):
        return [tuple(Decimal("5.5") if v == 55 else v for v in row) for row in engine.run(sql)]

    with pytest.raises(eb.DataError, match=r"must be all strings or all integers, not 5\.5"):
        scan(RunSQL(run, "p", dialect=Dialect.SQLITE), {"b": "e"}, NAMES)


def test_floats_of_16_bits_and_uuids_are_refused_in_words(tmp_path):
    half = pa.table({"record": list("ab"), "cluster": pa.array(np.array([1, 2], np.float16))})
    parquet.write_table(half, tmp_path / "p.parquet")
    pd.DataFrame({"record": list("ab"), "entity": list("ee")}).to_csv(tmp_path / "l.csv", index=False)
    raises(eb.DataError, "all strings or all integers, not floating", eb.measure, half.to_pandas(), LABELS)
    for door in ([], ["--memory-limit", "1GB"]):
        found = shell(tmp_path, "estimate", "p.parquet", "l.csv", "--design", "uniform-clusters", *door)
        assert found.exit_code == 2 and "must be all strings or all integers" in found.stderr
    objects = {uuid.UUID(int=1): "a", uuid.UUID(int=2): "a"}
    raises(eb.DataError, r"not UUID objects: make text of each, str\(id\)", eb.measure, objects, objects)
    raises(eb.DataError, "not mixed", eb.measure, {uuid.UUID(int=1): "a", Decimal("1.5"): "a"}, LABELS)


BROKEN = {
    "short row": ("record,cluster\na,x\nb\nc,y\n", r"CSV Error on Line: 3"),
    "long row": ("record,cluster\na,x\nb,y,z\nc,y\n", r"CSV Error on Line: 3"),
    "open quote": ('record,cluster\na,x\n"b,y\nc,z\n', r"Line: [34]"),
    "text after a quote": ('record,cluster\na,x\n"b"b,y\nc,z\n', r"Line: 3"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_row_of_a_scanned_file_is_named(tmp_path, fault):
    content, told = BROKEN[fault]
    (tmp_path / "p.csv").write_text(content, encoding="utf-8")
    with pytest.raises(eb.DataError, match=told) as error:
        scan(tmp_path / "p.csv", LABELS)
    told = str(error.value)
    assert all(word not in told for word in ("Possible", "strict_mode", "null_padding", "DESCRIBE"))


@pytest.mark.parametrize(
    "other", ["record,cluster\nc,y\n", "cluster,record\ny,c\n", "record,cluster,more\nc,y,1\n"]
)
def test_files_of_a_folder_are_read_by_their_own_headers(tmp_path, other):
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "1.csv").write_text("record,cluster\na,x\nb,x\n", encoding="utf-8")
    (tmp_path / "p" / "2.csv").write_text(other, encoding="utf-8")
    found = scan(tmp_path / "p", {"a": "e", "b": "e", "c": "f"}, NAMES)
    wanted = eb.measure({"a": "x", "b": "x", "c": "y"}, {"a": "e", "b": "e", "c": "f"})
    assert found.table().equals(wanted.table())


def test_out_of_memory_in_the_words_of_the_door(tmp_path):
    rows = pd.DataFrame({"record": np.arange(400_000).astype(str), "cluster": np.arange(400_000).astype(str)})
    rows.to_parquet(tmp_path / "p.parquet", index=False)
    said = r"allow it more, or fewer threads in Python: DuckDB\(memory_limit="
    with pytest.raises(eb.DataError, match=said) as error:
        scan(tmp_path / "p.parquet", {"1": "x"}, database=DuckDB("5MB", threads=1, folder=tmp_path))
    assert "SET " not in str(error.value)
    pd.DataFrame({"record": ["1"], "entity": ["e"]}).to_csv(tmp_path / "l.csv", index=False)
    command = ["estimate", "p.parquet", "l.csv", "--design", "uniform-clusters", "--memory-limit", "5MB"]
    assert "(--memory-limit 8GB)" in shell(tmp_path, *command).stderr


@pytest.mark.parametrize("header", [",", " , ", '"",""'])
def test_a_blank_header_is_refused_at_every_door(tmp_path, header):
    (tmp_path / "p.csv").write_text(f"{header}\na,x\nb,x\n", encoding="utf-8")
    pd.DataFrame({"record": list("ab"), "entity": list("ee")}).to_csv(tmp_path / "l.csv", index=False)
    for door in ([], ["--memory-limit", "1GB"]):
        found = shell(tmp_path, "estimate", "p.csv", "l.csv", "--design", "uniform-clusters", *door)
        assert "its first line is blank, which must name the columns" in found.stderr


@pytest.mark.parametrize("command", ["estimate", "report", "plan", "check", "compare"])
@pytest.mark.parametrize("link", [None, os.symlink, os.link])
def test_one_file_for_two_inputs_is_refused(tmp_path, command, link):
    table_of("w").to_csv(tmp_path / "p.csv", index=False)
    table_of("v").to_csv(tmp_path / "o.csv", index=False)
    other = "p.csv"
    if link is not None:
        link(tmp_path / "p.csv", tmp_path / "q.csv")
        other = "q.csv"
    needed = {"plan": ["--half-width", "0.1"], "report": ["--output", "r.html"]}
    needed["check"] = ["--min-recall", "0.5"]
    further = ["o.csv"] if command == "compare" else []
    design = ["--design", "uniform-clusters", *needed.get(command, [])]
    found = shell(tmp_path, command, *further, "p.csv", other, *design)
    assert found.exit_code == 2 and f"PREDICTION p.csv and LABELS {other} are one file" in found.stderr
    if command == "compare" and link is not None:
        table_of("u").to_csv(tmp_path / "l.csv", index=False)
        found = shell(tmp_path, command, "p.csv", other, "l.csv", *design)
        assert f"PREDICTION p.csv and PREDICTION {other} are one file" in found.stderr


def test_columns_of_one_table_may_serve_both(tmp_path):
    table_of("w").assign(entity=list("eeff")).to_csv(tmp_path / "t.csv", index=False)
    named = ["--record", "record", "--cluster", "cluster", "--entity", "entity"]
    found = shell(tmp_path, "estimate", "t.csv", "t.csv", *named, "--design", "uniform-clusters")
    assert found.exit_code == 0
