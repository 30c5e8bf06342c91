"""Scans: the same units as in memory, whatever the database, and everything that can be wrong with a table."""

import hashlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest
from shell import done, refused

import erbayes as eb
from erbayes import DataError
from erbayes.large import Columns, DatabaseTable, Dialect, DuckDB, RunSQL, drawing, scan
from erbayes.large.database import RunSQLTable
from erbayes.large.duckdb import DuckTable
from erbayes.large.sums import refuse_different_records

pytestmark = pytest.mark.slow

duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
OF_ONE = [policy for policy in eb.Missing if policy is not eb.Missing.COMMON]
"""Policies for the records that one prediction is missing."""
NASTY = [
    "it's", 'say "x"', "back\\slash", "a'; DROP TABLE p; --", "é", "漢字", "", " ",
    *"%s :name ? $1".split(), "\n", *"*/ CHR(39) NULL NaN 007 7 1e3 - ` ';-- \\' 🙂".split(), "\t",
]  # fmt: skip


def hostile(codes, prefix=""):
    return np.array([f"{prefix}{NASTY[c % len(NASTY)]}{c // len(NASTY)}" for c in codes], dtype=object)


KINDS = {
    "strings": lambda codes, prefix: np.array([f"{prefix}{c}" for c in codes], dtype=object),
    "integers": lambda codes, prefix: np.asarray(codes) + 2**61,
    "hostile": hostile,
}


def population(seed, records=300, kind="strings", lacking=20):
    """A prediction, labels of some entities (some of whose records the prediction lacks), and blocks."""
    rng = np.random.default_rng(seed)
    entity = rng.integers(records // 3, size=records + lacking)
    cluster = np.where(rng.random(len(entity)) < 0.7, entity, rng.integers(records // 4, size=len(entity)))
    ids = pd.Index(KINDS[kind](rng.permutation(len(entity)), "r"))
    labelled = np.isin(entity, rng.choice(records // 3, 30, replace=False))
    order = rng.permutation(np.flatnonzero(labelled))
    labels = pd.Series(KINDS[kind](entity, "e")[order], ids[order])
    blocks = pd.Series([f"b{e % 7}" for e in entity[order]], ids[order])
    return pd.Series(KINDS[kind](cluster, "c")[:records], ids[:records]), labels, blocks


def same(found, wanted):
    assert list(found.ids) == list(wanted.ids)
    for name in ("unit", "group", "n", "N", "m", "cluster"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name), err_msg=name)
    assert (found.unmatched, found.by_entity) == (wanted.unmatched, wanted.by_entity)
    assert (found.known is None) == (wanted.known is None)
    if wanted.known is not None:
        np.testing.assert_array_equal(found.known.size, wanted.known.size)
        np.testing.assert_array_equal(found.known.count, wanted.known.count)
        assert found.known.singletons == wanted.known.singletons
    assert found.population == wanted.population


def frame_of(prediction):
    return pd.DataFrame({"record": prediction.index, "cluster": prediction.to_numpy()})


def sqlite(frame, table="p"):
    """A database of little power; table and columns may have any name."""
    database = sqlite3.connect(":memory:")
    # draws need it, and it has none of its own
    database.create_function("MD5", 1, lambda text: hashlib.md5(str(text).encode()).hexdigest())
    frame.to_sql(table, database, index=False)
    return RunSQL(lambda sql: database.execute(sql).fetchall(), table, dialect=Dialect.SQLITE)


def parquet(frame, folder):
    frame.to_parquet(folder / "p.parquet", index=False)
    return folder / "p.parquet"


def parquet_folder(frame, folder):
    (folder / "p" / "deep").mkdir(parents=True)
    (folder / "p" / "_SUCCESS").touch()
    frame[:100].to_parquet(folder / "p" / "a's [1]*.parquet", index=False)
    frame[100:].to_parquet(folder / "p" / "deep" / "b.parquet", index=False)
    return folder / "p"


def table(frame, folder):
    with duckdb.connect(folder / "x.duckdb") as connection:
        connection.register("f", frame)
        connection.execute('CREATE SCHEMA "s.1"')
        connection.execute('CREATE TABLE "s.1"."p""; --" AS SELECT * FROM f')
    return DatabaseTable(folder / "x.duckdb", ("s.1", 'p"; --'))


SOURCES = {
    "parquet": parquet,
    "folder": parquet_folder,
    "pattern": lambda frame, folder: str(parquet_folder(frame, folder) / "**" / "*.parquet"),
    "database": table,
    "pandas": lambda frame, folder: frame,
    "categorical": lambda frame, folder: frame.astype("category"),
    "polars": lambda frame, folder: pl.from_pandas(frame),
    "polars categorical": lambda frame, folder: pl.from_arrow(pa.Table.from_pandas(frame.astype("category"))),
    "arrow": lambda frame, folder: pa.Table.from_pandas(frame),
    "chunks": lambda frame, folder: pa.concat_tables(
        pa.Table.from_pandas(part.astype("category"), preserve_index=False)
        for part in (frame[:100], frame[200:], frame[100:200])
    ),
    "reader": lambda frame, folder: pa.Table.from_pandas(frame).to_reader(50),
    "dataset": lambda frame, folder: pa.dataset.dataset(parquet_folder(frame, folder), format="parquet"),
    "relation": lambda frame, folder: duckdb.from_arrow(pa.Table.from_pandas(frame, preserve_index=False)),
    "sqlite": lambda frame, folder: sqlite(frame),
}


ENGINES = ("parquet", "database", "pandas", "relation", "sqlite")
"""A source of each way in which SQL is run or columns are written."""


def in_turn(sources, first=0):
    """Pairs of a source and a kind of ids, kinds in turn, beginning with one of them."""
    kinds = list(KINDS)
    return [(source, kinds[(first + i) % len(kinds)]) for i, source in enumerate(sources)]


@pytest.mark.parametrize(("source", "kind"), in_turn(SOURCES))
def test_every_source_gives_the_units_of_measure(source, kind, tmp_path):
    prediction, labels, _ = population(3, kind=kind)
    opened = SOURCES[source](frame_of(prediction), tmp_path)
    found = scan(opened, labels, Columns("record", "cluster"), missing=eb.Missing.OMIT)
    same(found, eb.measure(prediction, labels, missing=eb.Missing.OMIT))
    assert found.rows == len(prediction)


# each pair of a policy, a kind of ids and a database; odd seeds have blocks
@pytest.mark.parametrize(
    ("missing", "kind", "database"),
    [
        (missing, kind, DuckDB(threads=1 + (i + j) % 3))
        for i, missing in enumerate(OF_ONE)
        for j, kind in enumerate(KINDS)
    ],
)
def test_policies_and_blocks_on_random_tables(missing, kind, database):
    for seed in range(3):
        prediction, labels, blocks = population(seed, 90, kind, 0 if missing is eb.Missing.ERROR else 9)
        blocks = blocks if seed % 2 else None
        wanted = eb.measure(prediction, labels, blocks=blocks, missing=missing)
        same(scan(prediction, labels, blocks=blocks, missing=missing, database=database), wanted)


@pytest.fixture
def postgres(tmp_path_factory):
    """A server of its own, reached through a socket in a temporary folder; root may not run it, so postgres does."""
    program = shutil.which("postgres")
    if program is None:
        pytest.skip("PostgreSQL is not installed")
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
    programs, user = Path(program).resolve().parent, {"user": "postgres"} if os.getuid() == 0 else {}

    def run(name, *args):
        subprocess.run(
            [programs / name, *args], check=True, stdout=subprocess.DEVNULL, cwd="/", timeout=120, **user
        )

    with tempfile.TemporaryDirectory() as folder:
        if user:
            shutil.chown(folder, "postgres")
        data = f"{folder}/data"
        run("initdb", "-D", data, *"-A trust -U postgres --no-sync -E UTF8 --locale C.UTF-8".split())
        options = f"-k {folder} -c listen_addresses='' -c fsync=off"
        run("pg_ctl", "-D", data, "-w", "-l", f"{folder}/log", "-o", options, "start")
        try:
            with psycopg.connect(host=folder, user="postgres", dbname="postgres") as connection:
                yield connection
        finally:
            run("pg_ctl", "-D", data, "-m", "immediate", "stop")


def test_a_hundred_thousand_rows_in_postgresql(postgres):
    records = 100_000
    cluster = np.random.default_rng(0).integers(records // 4, size=records)
    frame = pd.DataFrame(
        {"record": [f"US{i}-{i % 3}" for i in range(records)], "cluster": [f"it's {c}" for c in cluster]}
    )
    with postgres.cursor() as cursor:
        cursor.execute('CREATE SCHEMA "s.1"')
        cursor.execute('CREATE TABLE "s.1"."p""; --" ("it\'s" text, cluster text)')
        with cursor.copy('COPY "s.1"."p""; --" FROM STDIN') as copy:
            copy.write("".join(f"{record}\t{cluster}\n" for record, cluster in frame.itertuples(index=False)))
    labels = frame[frame.cluster.isin(frame.cluster[:50])].set_index("record").cluster
    labels["it's \\ 'unknown'; --"] = labels.iloc[0]
    table = RunSQL(lambda sql: postgres.execute(sql).fetchall(), ("s.1", 'p"; --'))
    names = Columns("it's", "cluster")
    given = {"missing": eb.Missing.OMIT}
    same(scan(table, labels, names, **given), eb.measure(frame, labels, **given))
    postgres.execute('INSERT INTO "s.1"."p""; --" VALUES (\'US0-0\', \'x\')')
    with pytest.raises(DataError, match="1 duplicates, such as 'US0-0'"):
        scan(table, labels, names, missing=eb.Missing.OMIT)


@pytest.mark.parametrize(
    "connect, literal", [(duckdb.connect, Dialect().literal), (sqlite3.connect, Dialect.SQLITE.literal)]
)
def test_literals_mean_what_they_say(connect, literal):
    connection = connect(":memory:")
    for text in NASTY:
        assert connection.execute(f"SELECT {literal(text)}").fetchall() == [(text,)]


def test_answers_are_asked_of_all_rows(tmp_path):
    """As in memory, wherever the first "no" stands."""
    rows = pd.DataFrame({"record": range(400), "cluster": np.arange(400) // 2, "is_match": ["yes"] * 400})
    labels = {0: "a", 1: "a"}
    assert len(scan(parquet(rows, tmp_path), labels)) == len(eb.measure(rows, labels)) == 1
    rows.loc[[250, 300], "is_match"] = "no"
    for read in (lambda: scan(parquet(rows, tmp_path), labels), lambda: eb.measure(rows, labels)):
        with pytest.raises(DataError, match="2 of 400 rows say no in 'is_match'"):
            read()


def test_csv_ids_are_text(tmp_path):
    (tmp_path / "p.csv").write_text('record,cluster\n007,NA\n7,null\n"a,b","x ""y"""\n1e3,NA\n', "utf-8")
    labels = {"007": "e", "7": "e", "a,b": "f", "1e3": "f"}
    found = scan(tmp_path / "p.csv", labels, Columns(any_id=True))
    real = eb.Clustering.of({"007": "NA", "7": "null", "a,b": 'x "y"', "1e3": "NA"}, any_id=True)
    same(found, eb.measure(real, labels))
    (tmp_path / "q.tsv").write_text("cluster\trecord\nNA\t007\n", "utf-8")
    assert scan(tmp_path / "q.tsv", {"007": "e"}, Columns("record", "cluster")).rows == 1
    with pytest.raises(DataError, match="prediction are of type string, those of the labels of type integer"):
        scan(tmp_path / "p.csv", {7: "e"})
    (tmp_path / "p.csv").write_text("record,cluster\n1,\n2,a\n", "utf-8")
    with pytest.raises(
        DataError, match="of the prediction: 1 of 2 are missing, such as where 'record' is '1'"
    ):
        scan(tmp_path / "p.csv", {"2": "e"})


def test_csv_files_whose_columns_are_in_another_order(tmp_path):
    (tmp_path / "a.csv").write_text("record,cluster\n1,x\n", "utf-8")
    (tmp_path / "b.csv").write_text("cluster,record\nx,2\n", "utf-8")
    same(scan(tmp_path, {"1": "e", "2": "e"}), eb.measure({"1": "x", "2": "x"}, {"1": "e", "2": "e"}))


def test_the_index_that_pandas_hides_comes_first(tmp_path):
    frame = pd.DataFrame({"record": ["a", "b"], "cluster": ["x", "x"], "year": [1, 2]})
    frame.drop(columns="year").set_index("record").to_parquet(tmp_path / "p[1].parquet")
    same(scan(tmp_path / "p[1].parquet", {"a": "e"}), eb.measure({"a": "x", "b": "x"}, {"a": "e"}))


def test_an_index_without_a_name_is_no_column_unless_named(tmp_path):
    clusters, labels = pd.Series(["x", "x"], ["b", "a"], name="cluster"), {"a": "e"}
    lone, spare = tmp_path / "lone.parquet", tmp_path / "spare.parquet"
    clusters.to_frame().to_parquet(lone)
    frame_of(clusters).set_axis([5, 2]).to_parquet(spare)
    wanted = eb.measure(clusters, labels)
    same(scan(spare, labels), wanted)
    same(scan(lone, labels, Columns("__index_level_0__", "cluster")), wanted)
    said = "it has 'cluster', '__index_level_0__', of which pandas wrote '__index_level_0__' for an index without"
    with pytest.raises(DataError, match=said):
        scan(lone, labels)


def test_a_first_line_that_is_no_heading_is_refused(tmp_path):
    """So is a heading below the first line: neither loses a record nor makes one."""
    rows = ["record,cluster", *(f"r{i},c{i // 3}" for i in range(40))]
    for name, lines in (("once", rows), ("bare", rows[1:]), ("twice", [*rows[:9], rows[0], *rows[9:]])):
        (tmp_path / f"{name}.csv").write_text("\n".join(lines), "utf-8")
    once, labels = tmp_path / "once.csv", {"r1": "e", "r2": "e"}
    scan(once, labels)
    said = "the prediction: .* in the column of this name"
    for path in (tmp_path / "bare.csv", tmp_path / "twice.csv"):
        with pytest.raises(DataError, match=said):
            scan(path, labels)
        with pytest.raises(DataError, match=said), drawing(path):
            pass
        with pytest.raises(DataError, match=said):
            scan({"p": once, "q": path}, labels)


NEAR = "but 1 ids there differ from these in case or blanks, or in the form of Unicode only, such as"


def broken(records, clusters, **options):
    return lambda: scan(pd.DataFrame({"r": records, "c": clusters}), {"a": "e", "b": "e"}, **options)


@pytest.mark.parametrize("work, message", [
    (broken(["a", "b", "k"], ["x", None, None]), r"cluster ids of the prediction: 2 of 3 are missing, such as where 'r' is 'b', 'k'"),
    (broken(["a", None, "b"], ["x", "y", "z"]), r"record ids of the prediction: 1 of 3 are missing, such as where 'c' is 'y'"),
    (broken(["a", "b", "a"], ["x", "y", "z"]), r"record ids of the prediction: 1 duplicates, such as 'a'"),
    (broken(["a", "b", "k", "k"], ["x", "y", "x", "x"]), r"1 duplicates, such as 'k'"),
    (broken(["a", "b", "k", "k", "k"], ["x", "y", "x", "z", "w"]), r"2 duplicates, such as 'k'"),
    (broken(["a", "b", "k", "k"], ["x", "y", "z", "z"]), r"1 duplicates, such as 'k'"),
    (broken(["a", "k"], ["x", "x"]),
        "1 of 2 labelled records are not in the prediction, such as 'b'; choose a policy to go on"),
    (broken(["A", "b ", "a"], ["x", "y", "x"]), rf"1 labelled records are not in the prediction, such as 'b'; {NEAR} 'b '"),
    (lambda: scan(pd.DataFrame({"r": ["a", "b"], "c": ["x", "y"]}), {"a": "e", "z": "e", " B ": "e"}),
        rf"not in the prediction, such as 'z', ' B '; {NEAR} 'b'"),
    (broken(["k"], ["x"], missing=eb.Missing.OMIT), r"none of the labelled records is in the prediction"),
    (broken([1, 2], ["x", "x"]), r"of type integer, those of the labels of type string"),
    (broken([1.0, 2.0], ["x", "x"]), r"record ids of the prediction must be all strings or all integers, not DOUBLE"),
    (broken(["a", "b"], [1.0, 2.0]), r"cluster ids of the prediction must be all strings or all integers, not DOUBLE"),
    (broken(pd.Categorical(["a", "b"]), pd.Categorical([1.5, 2])), r"cluster ids of the prediction must be .* not DOUBLE"),
    (broken(["a", "b"], pd.Categorical(["x", None])), r"cluster ids of the prediction: 1 of 2 are missing, such as where 'r' is 'b'"),
    (broken(pd.Series(["a", 1], dtype=object), ["x", "x"]), r"column 'r' of the prediction must be all strings or all integers"),
    (broken(["a"], ["x"], columns=Columns("no")), r"the prediction has no column 'no'; it has 'r', 'c'"),
    (broken(["a"], ["x"], columns=Columns("r", "r")), r"one column cannot serve twice: 'r', 'r'"),
    (broken(["a"], ["x"], database=DuckDB(memory_limit="9" * 30 + "GB")), r"DuckDB does not start"),
    (lambda: scan(pd.DataFrame({"r": ["a"]}), {"a": "e"}),
        r"the prediction needs a column of records and one of clusters; it has 'r'; name them"),
    (lambda: scan(3, {"a": "e"}), r"cannot scan a int: expected files"),
    (lambda: scan(pd.DataFrame([["a", "x"]], columns=["r", "r"]), {"a": "e"}),
        r"the prediction has 2 columns 'r'|one column cannot serve"),
    (lambda: scan(pd.Series(["x"], ["a"]), {}), r"the labels hold no record"),
    (lambda: scan("no/such.parquet", {"a": "e"}), r"cannot read no/such.parquet: there is no such file"),
    (lambda: scan(sqlite(pd.DataFrame({"r": ["a"]})), {"a": "e"}),
        r"the prediction needs a column of records and one of clusters; name them"),
    (lambda: scan(sqlite(pd.DataFrame({"r": [1.5], "c": ["x"]})), {"a": "e"}, Columns("r", "c")), r"record ids .* not float"),
])  # fmt: skip
def test_what_is_wrong_is_said(work, message):
    with pytest.raises(DataError, match=message):
        work()


def test_an_engine_that_does_not_see_case_is_refused():
    engine = sqlite(pd.DataFrame({"r": ["a"], "c": ["x"]}))
    blind = RunSQL(
        lambda sql: [("A", *row[1:]) if sql.startswith("SELECT r, c") else row for row in engine.run(sql)],
        "p",
        dialect=Dialect.SQLITE,
    )
    with pytest.raises(DataError, match="the database takes 'A' for a labelled record, which has another id"):
        scan(blind, {"a": "e"}, Columns("r", "c"))


def test_duplicates_far_from_the_sample_are_counted_exactly(monkeypatch):
    records = [str(i) for i in range(4000)]
    frame = pd.DataFrame({"r": records + records[-1:], "c": [*records, "0"]})
    for part in (20_000_000, 500):
        monkeypatch.setattr("erbayes.large.duckdb.PART", part)
        with pytest.raises(DataError, match=r"record ids of the prediction: 1 duplicates, such as '3999'"):
            scan(frame, {"7": "e"})


def test_parts_add_up(monkeypatch):
    prediction, labels, blocks = population(0)
    monkeypatch.setattr("erbayes.large.duckdb.PART", 40)
    options = {"blocks": blocks, "missing": eb.Missing.OMIT}
    same(scan(prediction, labels, **options), eb.measure(prediction, labels, **options))


def test_folders_of_several_kinds_are_refused(tmp_path):
    frame_of(population(0)[0]).to_csv(tmp_path / "a.csv", index=False)
    (tmp_path / "notes.txt").touch()
    with pytest.raises(DataError, match=r"1 of 2 files are neither Parquet, CSV nor TSV, such as 'notes"):
        scan(tmp_path, {"a": "e"})
    (tmp_path / "notes.txt").unlink()
    parquet(frame_of(population(0)[0]), tmp_path)
    with pytest.raises(DataError, match=r"holds files of several kinds: '.csv', '.parquet'"):
        scan(tmp_path, {"a": "e"})
    (tmp_path / "none").mkdir()
    with pytest.raises(DataError, match="there is no such file"):
        scan(tmp_path / "none", {"a": "e"})


def test_nothing_is_changed_and_nothing_left_behind(tmp_path):
    prediction, labels, _ = population(0, lacking=0)
    frame = frame_of(prediction).astype("category")
    before, folder = frame.copy(), tmp_path / "spill"
    folder.mkdir()
    scan(frame, labels, database=DuckDB(folder=folder))
    pd.testing.assert_frame_equal(frame, before)
    connection = duckdb.connect()
    relation = connection.from_arrow(pa.Table.from_pandas(frame_of(prediction)))
    scan(relation, labels)
    views = connection.execute("SELECT view_name FROM duckdb_views()").fetchall()
    assert not [view for (view,) in views if "erbayes" in view]
    assert not list(folder.iterdir()) and not Path(".tmp").exists()


def test_interruption_of_any_statement_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    prediction, labels, _ = population(0, lacking=0)
    path = parquet(frame_of(prediction), tmp_path)
    threads, connection = threading.active_count(), duckdb.connect()
    connection.from_arrow(pa.Table.from_pandas(frame_of(prediction))).create_view("p")
    for source in (path, frame_of(prediction), connection.table("p")):
        for last in range(1, 99):
            left = iter(range(last))

            def stopped(work, left=left):
                def run(*args):
                    if next(left, None) is None:
                        raise KeyboardInterrupt
                    return work(*args)

                return run

            with monkeypatch.context() as patch:
                patch.setattr("erbayes.large.duckdb.DuckTable.rows", stopped(DuckTable.rows))
                patch.setattr("erbayes.large.database.RunSQLTable.rows", stopped(RunSQLTable.rows))
                try:
                    scan(source, labels)
                    break
                except KeyboardInterrupt:
                    assert list(tmp_path.iterdir()) == [path] and threading.active_count() == threads
                    views = connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal")
                    assert views.fetchall() == [("p",)]
        assert last >= 6


@pytest.fixture(scope="module")
def three_million(tmp_path_factory):
    """A file whose scan does not fit into 60 MB."""
    path = tmp_path_factory.mktemp("large") / "p.parquet"
    rows = "SELECT r::VARCHAR AS r, (r // 2)::VARCHAR AS c FROM range(3000000) t(r) ORDER BY hash(r)"
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({rows}) TO '{path}' (FORMAT parquet)")
    return path


def started(code):
    """A process that runs this code."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "encoding": "utf-8"}
    return subprocess.Popen([sys.executable, "-c", code], **pipes)


@pytest.mark.parametrize("number, end", [(signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, 143)])
def test_interruption_of_a_scan_that_spills_leaves_nothing(three_million, tmp_path, number, end):
    """The process is told to stop while its temporary folder holds files."""
    code = f"""
import sys; sys.path.insert(0, {str(Path(eb.__file__).parents[1])!r})
from erbayes.large import DuckDB, scan
folder = {str(tmp_path)!r}
scan({str(three_million)!r}, {{"7": "e"}}, database=DuckDB(memory_limit="60MB", threads=1, folder=folder))
"""
    process = started(code)
    while not list(tmp_path.glob("erbayes-*/spill/*")):
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.01)
    process.send_signal(number)
    _, told = process.communicate(timeout=60)
    assert process.returncode == end
    assert told.rstrip().endswith("KeyboardInterrupt" if number == signal.SIGINT else "")
    assert not list(tmp_path.iterdir())


def test_interruption_of_a_long_statement_ends_at_once(tmp_path):
    """The process is told to stop while it counts."""
    code = f"""
import sys; sys.path.insert(0, {str(Path(eb.__file__).parents[1])!r})
import pandas as pd
from erbayes.large import DuckDB
from erbayes.large.files import opened
with opened([pd.DataFrame()], DuckDB(folder={str(tmp_path)!r}, threads=1)) as (database,):
    print("ready", flush=True)
    database.rows("SELECT COUNT(*) FROM range(3000000) a, range(3000000) b WHERE hash(a.range + b.range) % 7 = 1")
"""
    process = started(code)
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.5)
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert time.monotonic() - start < 20 and told.rstrip().endswith("KeyboardInterrupt")
    assert not list(tmp_path.iterdir())


def test_a_small_memory_limit_spills(tmp_path):
    """A million records whose keys alone take 16 MB, under a limit of 60 MB."""
    records = 1_000_000
    prediction = pd.Series(np.random.default_rng(0).integers(records // 3, size=records))
    frame = pd.DataFrame({"r": "US" + prediction.index.astype(str), "c": "US" + prediction.astype(str)})
    frame.to_parquet(tmp_path / "p.parquet")
    labels = frame[frame.c.isin(frame.c[:20])].set_index("r").c
    limit = DuckDB(memory_limit="60MB", threads=1, folder=tmp_path)
    same(scan(tmp_path / "p.parquet", labels, database=limit), eb.measure(frame, labels))
    assert [p.name for p in tmp_path.iterdir()] == ["p.parquet"]


def test_duckdb_is_asked_for_where_it_is_lacking(monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(DataError, match=r"scanning needs DuckDB: pip install 'erbayes\[scale\]'"):
        scan(pd.Series(["x"], ["a"]), {"a": "e"})


def test_erbayes_is_imported_without_engines():
    code = "import sys, erbayes, erbayes.large; assert not {'duckdb', 'pyspark'} & set(sys.modules)"
    where = {**os.environ, "PYTHONPATH": str(Path(eb.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", code], check=True, env=where)


def test_scans_in_threads_do_not_meet():
    prediction, labels, _ = population(0, lacking=0)
    with ThreadPoolExecutor(4) as threads:
        for units in threads.map(lambda _: scan(prediction, labels), range(4)):
            same(units, eb.measure(prediction, labels))


def shell(*args, command="estimate"):
    """Rows of an answer, and what is said beside them."""
    options = "--design uniform-clusters --metrics pairwise-f1 --format json".split()
    options += ["--missing", "omit"] if "--missing" not in args else []
    found = done(command, *args, *options)
    return json.loads(found.stdout)["estimates"], found.stderr


@pytest.mark.parametrize("kind", ["strings", "integers"])
def test_the_command_line_scans_folders_databases_and_large_files(tmp_path, monkeypatch, kind):
    prediction, labels, _ = population(2, kind=kind)
    frame, path = frame_of(prediction), tmp_path / "l.csv"
    pd.DataFrame({"record": labels.index, "entity": labels.to_numpy()}).to_csv(path, index=False)
    wanted, said = shell(parquet(frame, tmp_path), path)
    assert "scanned" not in said
    parquet_folder(frame, tmp_path)
    where = table(frame, tmp_path)
    with duckdb.connect(where.path) as connection:
        connection.execute('CREATE TABLE "a b" AS SELECT * FROM "s.1"."p""; --"')
    frame.to_csv(tmp_path / "p.csv.gz", index=False)
    for args in (("p",), ("x.duckdb", "--table", "a b"), ("p.parquet", "--memory-limit", "1GB")):
        found, said = shell(tmp_path / args[0], path, *args[1:])
        assert found == wanted and "; no duplicates among all record ids" in said
    monkeypatch.setattr("erbayes._internal.files.LARGE", 0)
    for name in ("p.parquet", "p.csv.gz"):
        found, said = shell(tmp_path / name, path)
        assert found == wanted and "scanned" in said
    monkeypatch.setattr("erbayes.cli.predictions.find_spec", lambda name: None)
    found, said = shell(tmp_path / "p.parquet", path)
    assert found == wanted and "scanned" not in said
    unknown = ("estimate", tmp_path / "x.duckdb", path, "--table", "none", "-d", "uniform-clusters")
    assert "x.duckdb has no table 'none'; it has 'a b', 's.1.p\"; --'" in refused(*unknown)
    assert shell(tmp_path / "x.duckdb", path, "--table", 's.1.p"; --')[0] == wanted


@pytest.mark.parametrize(
    "command", [["report", "--metrics", "pairwise-f1", "--replace"], ["plan", "--half-width", "0.1"]]
)
def test_reports_and_plans_scan_too(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    releases(tmp_path)

    def told(*source):
        options = ["--design", "uniform-clusters", "--missing", "omit", "--output", "out"]
        found = done(command[0], *source, "l.csv", *options, *command[1:])
        return (tmp_path / "out").read_text("utf-8").partition("<h2>Data and design</h2>")[0], found.stderr

    wanted, _ = told("old.parquet")
    for source in (["old.parquet", "--memory-limit", "1GB"], ["x.duckdb", "--table", "old"]):
        found, said = told(*source)
        assert found == wanted and "300 records scanned" in said
    assert "300 records scanned" in told("dir/new")[1]


@pytest.mark.parametrize("packing", ["bz2", "xz", "zip", "tar", "tar.gz"])
def test_what_duckdb_cannot_unpack_is_read(tmp_path, monkeypatch, packing):
    prediction, labels, _ = population(2)
    path, packed = tmp_path / "l.csv", tmp_path / f"p.csv.{packing}"
    pd.DataFrame({"record": labels.index, "entity": labels.to_numpy()}).to_csv(path, index=False)
    frame_of(prediction).to_csv(packed, index=False)
    wanted, _ = shell(parquet(frame_of(prediction), tmp_path), path)
    monkeypatch.setattr("erbayes._internal.files.LARGE", 0)
    (found, said), (_, scanned) = shell(packed, path), shell(packed, path, "--memory-limit", "1GB")
    assert found == wanted and said.splitlines()[1:] == scanned.splitlines()[2:]
    with pytest.raises(DataError, match=rf"cannot scan .*p.csv.{packing}: DuckDB unpacks '.gz', '.zst' only"):
        scan(packed, labels)


def releases(folder, gaps=False):
    """Two predictions as files of their own, as columns of a file and as tables, and the labels of both."""
    prediction, labels, blocks = population(2)
    other = prediction.sample(frac=1, random_state=0)
    other[::5] = other.iloc[0]
    if gaps:
        prediction, other = prediction[20:], other.drop(prediction.index[-12:])
    both = pd.DataFrame({"old": prediction, "new": other}).rename_axis("record").reset_index()
    both.to_parquet(folder / "both.parquet", index=False)
    frame_of(prediction).to_parquet(folder / "old.parquet", index=False)
    frame_of(other).to_csv(folder / "new.csv.bz2", index=False)
    (folder / "dir" / "new").mkdir(parents=True)
    frame_of(other)[:99].to_parquet(folder / "dir" / "new" / "1.parquet", index=False)
    frame_of(other)[99:].to_parquet(folder / "dir" / "new" / "2.parquet", index=False)
    with duckdb.connect(folder / "x.duckdb") as connection:
        connection.register("b", both)
        for name in ("old", "new"):
            kept = f"SELECT record, {name} FROM b WHERE {name} IS NOT NULL"
            connection.execute(f"CREATE TABLE {name} AS {kept}")
    pd.DataFrame({"record": labels.index, "entity": labels.to_numpy()}).to_csv(folder / "l.csv", index=False)
    return prediction, other, labels, blocks


COMPARED = [
    "old.parquet dir/new l.csv",
    "old.parquet new.csv.bz2 l.csv --memory-limit 1GB",
    "both.parquet l.csv --cluster old --cluster new --record record --memory-limit 1GB",
    "x.duckdb l.csv --table old --table new",
    "both.parquet l.csv --cluster old --cluster new --record record",
    "old.parquet new.csv.bz2 l.csv",
]


# each call with large files and without, and both of these with common records
@pytest.mark.parametrize(
    ("args", "common", "large"),
    [
        (a, i % 2 == large and a[:4] != "both", large)
        for i, a in enumerate(COMPARED)
        for large in (False, True)
    ],
)
def test_the_command_line_compares_scans(tmp_path, monkeypatch, args, common, large):
    """Also if each prediction lacks some records, on those that both have."""
    monkeypatch.chdir(tmp_path)
    old, new, labels, _ = releases(tmp_path, gaps=common)
    if large:
        monkeypatch.setattr("erbayes._internal.files.LARGE", 0)
    found, told = shell(*args.split(), *["--missing", "common"] * common, command="compare")
    scanned = [line.split(" scanned")[0] for line in told.splitlines() if " records scanned" in line]
    records = 268 if common else 300
    both = [f"old: {records} records", f"new: {records} records"]
    assert scanned == (both if large or args in COMPARED[:4] else [])
    (row,) = [row for row in found if " - " in row["prediction"]]
    missing = eb.Missing.COMMON if common else eb.Missing.OMIT
    metrics = [eb.metrics.pairwise_f()]
    compared = eb.compare({"old": old, "new": new}, labels, eb.UniformClusters(), metrics, missing=missing)
    wanted = compared.differences().iloc[0]
    assert row["prediction"] == "new - old"
    for key in ("estimate", "se", "lower", "upper"):
        assert row[key] == pytest.approx(wanted[key])
    said = f"caution: {compared.left_out} labelled records, which not all predictions have, are left out"
    assert (said in told) == common


def test_scans_of_different_records_are_not_compared(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    old, *_ = releases(tmp_path)
    asked = ("compare", "old.parquet", "other.parquet", "l.csv", "-d", "uniform-clusters")
    said = {"299": old[1:], "300, of which 299 are in both": old.rename({old.index[0]: "another"})}
    for number, other in said.items():
        frame_of(other).to_parquet("other.parquet")
        told = refused(*asked, "--missing", "omit", "--memory-limit", "1GB")
        assert f"'old' and 'other' cover different records, 300 and {number}; " in told


@pytest.mark.parametrize("kind", KINDS)
def test_common_records_give_the_units_of_measure(tmp_path, kind):
    prediction, labels, blocks = population(2, kind=kind)
    old, new = prediction[30:], prediction[::-1][9:]
    new[::5] = new.iloc[0]
    shared = old.index.intersection(new.index)
    wanted = {
        name: eb.measure(p[p.index.isin(shared)], labels, blocks=blocks, missing=eb.Missing.OMIT)
        for name, p in (("old", old), ("new", new))
    }
    database = sqlite3.connect(":memory:")
    frame_of(old).to_sql("old", database, index=False)
    frame_of(new).to_sql("new", database, index=False)

    def run(sql):
        return database.execute(sql).fetchall()

    for sources in (
        {"old": parquet(frame_of(old), tmp_path), "new": frame_of(new).astype({"cluster": "category"})},
        {"old": table(frame_of(old), tmp_path), "new": pl.from_pandas(frame_of(new))},
        {name: RunSQL(run, name, Dialect.SQLITE) for name in wanted},
    ):
        found = scan(sources, labels, Columns("record", "cluster"), blocks=blocks)
        for name, units in found.items():
            assert units.rows == len(shared)
            same(units, wanted[name])


def test_a_record_twice_in_one_prediction_is_not_common():
    old, new = pd.Series(["x", "x", "x"], ["a", "a", "b"]), pd.Series(["y"], ["b"])
    found = scan({"old": old, "new": new}, {"b": "e"})
    assert [units.rows for units in found.values()] == [1, 1]


def test_each_prediction_has_a_column_of_its_own():
    table = pd.DataFrame({"id": list("abcd"), "old": list("xxyy"), "new": list("zwwz")})
    labels = {"a": "e", "b": "e", "c": "e"}
    found = scan({"old": table, "new": table}, labels, Columns("id", {"old": "old", "new": "new"}))
    for name, units in found.items():
        assert units.columns == ("id", name)
        same(units, eb.measure(table.set_index("id")[name], labels))


def test_predictions_that_lie_in_files_are_judged_as_those_in_memory(tmp_path):
    old, new, labels, blocks = releases(tmp_path, gaps=True)
    files = {"old": tmp_path / "old.parquet", "new": str(tmp_path / "dir" / "new")}
    design, metrics = eb.UniformClusters(), [eb.metrics.pairwise_f(), eb.metrics.b3_recall]
    with pytest.raises(DataError, match="'old' and 'new' cover different records"):
        eb.compare(files, labels, design, metrics, missing=eb.Missing.OMIT)
    for given in (files, {"old": files["old"], "new": frame_of(new)}):
        found = eb.compare(given, labels, design, metrics, missing=eb.Missing.COMMON)
        wanted = eb.compare({"old": old, "new": new}, labels, design, metrics, missing=eb.Missing.COMMON)
        pd.testing.assert_frame_equal(found.differences(), wanted.differences())
        assert found.left_out == wanted.left_out > 0
    same = {"old": files["old"], "again": files["old"]}
    with pytest.raises(DataError, match="labelled records are not in the prediction"):
        eb.compare(same, labels, design, metrics, missing=eb.Missing.COMMON)
    eb.compare(same, labels, design, metrics, missing=eb.Missing.SINGLETON)
    with pytest.raises(DataError, match="the policy 'common' is for several predictions"):
        scan(files["old"], labels, missing=eb.Missing.COMMON)
    alone = eb.estimate(files["old"], labels, design, metrics, blocks=blocks, missing=eb.Missing.OMIT)
    wanted = eb.estimate(old, labels, design, metrics, blocks=blocks, missing=eb.Missing.OMIT)
    pd.testing.assert_frame_equal(alone.table(), wanted.table())


@pytest.mark.parametrize("old, new, message", [
    (pd.Series(["x"], ["a"]), pd.Series(["x"], ["b"]), "no record is in every prediction"),
    (pd.Series(["x"], ["a"]), pd.Series(["x"], [1]), "of type integer, those of the labels of type string"),
    (pd.Series(["x"], ["a"]), pd.Series(["x", "x"], ["a", "a"]), "1 duplicates, such as 'a'"),
    (pd.Series(["x"], ["a"]), pd.Series(["x", None], ["a", "b"]), "cluster ids of the prediction: 1 of 2 are missing"),
    (pd.Series(["x"], ["a"]), sqlite(pd.DataFrame({"r": ["a"]})), "in one database alone"),
])  # fmt: skip
def test_what_is_wrong_with_predictions_to_be_compared_is_said(old, new, message):
    with pytest.raises(DataError, match=message):
        scan({"old": old, "new": new}, {"a": "e"})


def test_scans_for_different_labels_are_not_compared():
    prediction, labels, _ = population(0, lacking=0)
    one, other = (scan(prediction, labels[:k]) for k in (40, 50))
    with pytest.raises(DataError, match="'a' and 'b' are scans for different labels, or leave out different"):
        refuse_different_records({"a": one, "b": other})


def test_scans_are_compared_as_what_they_scan(tmp_path):
    old, new, labels, _ = releases(tmp_path)
    design, metrics = eb.UniformClusters(), [eb.metrics.pairwise_f()]
    scans = {name: scan(p, labels, missing=eb.Missing.OMIT) for name, p in (("old", old), ("new", new))}
    wanted = eb.compare({"old": old, "new": new}, labels, design, metrics, missing=eb.Missing.OMIT)
    for given in (labels, None):
        found = eb.compare(scans, given, design, metrics)
        pd.testing.assert_frame_equal(found.differences(), wanted.differences())
    alone = eb.estimate(scans["new"], design=design, metrics=metrics)
    same = eb.estimate(eb.Sample(scans["new"], design), metrics=metrics)
    pd.testing.assert_frame_equal(alone.table(), same.table())
    joined = labels.where(labels != labels.iloc[0], labels.iloc[-1])
    fewer = (labels[1:], rf"the {len(labels) - 1} labels, which are not its own")
    more = pd.concat([labels, pd.Series("z", ["nobody"])])
    for other, said in (fewer, (joined, "not its own"), (more, "not its own")):
        with pytest.raises(DataError, match=said):
            eb.compare(scans, other, design)
        with pytest.raises(DataError, match="or scan the prediction again with what is given"):
            eb.estimate(scans["new"], other, design)
    with pytest.raises(DataError, match="already: leave out blocks, frame, or"):
        eb.compare(scans, None, design, blocks=labels, frame=labels.index)
    with pytest.raises(DataError, match="scan every prediction or none: 'new' is not a scan"):
        eb.compare(scans | {"new": new}, labels, design)
    fewer = scan(new[new.index != old.index[0]], labels, missing=eb.Missing.OMIT)
    said = r"'old' and 'new' cover different records, 300 and 299; .* missing=.common"
    with pytest.raises(DataError, match=said):
        eb.compare(scans | {"new": fewer}, labels, design)
