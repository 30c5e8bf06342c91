"""Where predictions lie: folders, dialects, collations and engines, each with the units of measure or an error."""

import gzip
import os
import sqlite3
import subprocess
import sys
import uuid
from decimal import Decimal
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shell import refused
from test_scan import duckdb, frame_of, population, postgres, same, sqlite  # noqa: F401

import erbayes as eb
from erbayes._internal.files import read_table
from erbayes.large import Columns, DatabaseTable, Dialect, DuckDB, Files, RunSQL, scan
from erbayes.large.files import opened

pytestmark = pytest.mark.lowest
FRAME = pd.DataFrame({"record": list("abcd"), "cluster": ["x", "x", "y", "z"]})
MORE = pd.DataFrame({"record": ["q", "r"], "cluster": ["x", "y"]})
LABELS = {"a": "e", "b": "e"}
NAMES = Columns("record", "cluster")


def of(*frames):
    return eb.measure(pd.concat(frames), LABELS)


def written(folder, *frames, name="{}.parquet"):
    folder.mkdir(parents=True, exist_ok=True)
    for i, frame in enumerate(frames):
        frame.to_parquet(folder / name.format(i), index=False)
    return folder


# Collations
def unaccented(text):
    return text.replace("á", "a")


BLIND = {
    "NOCASE": None, "RTRIM": None, "accents": unaccented, "signs": lambda text: text.replace("-", ""),
    "numbers": lambda text: text.lstrip("0"),
}  # fmt: skip


def collated(collation, column):
    """A table of SQLite, one column of which takes different strings for one."""
    database = sqlite3.connect(":memory:")
    if BLIND.get(collation):
        form = BLIND[collation]
        database.create_collation(collation, lambda a, b: (form(a) > form(b)) - (form(a) < form(b)))
    columns = ", ".join(
        f"{name} TEXT" + f" COLLATE {collation}" * (name == column) for name in ("record", "cluster", "year")
    )
    database.execute(f"CREATE TABLE p ({columns})")
    rows = [("1", "aB3", "x"), ("2", "aB3", "x"), ("3", "Ab3", "x"), ("4", "z", "x")]
    database.executemany("INSERT INTO p VALUES (?, ?, ?)", rows)
    return database


@pytest.mark.parametrize("collation", BLIND)
@pytest.mark.parametrize("column", ["record", "cluster", "year"])
def test_columns_that_take_different_ids_for_one_are_refused(collation, column):
    """Whatever ids the table has, and whatever the labels touch."""
    database = collated(collation, column)
    table = RunSQL(lambda sql: database.execute(sql).fetchall(), "p", dialect=Dialect.SQLITE)
    told = f"column '{column}' of the prediction takes '.*' and '.*' for one id: scan a view in which"
    with pytest.raises(eb.DataError, match=told):
        scan(table, {"4": "e"}, NAMES, groups="year")
    binary = ", ".join(f"{name} COLLATE BINARY AS {name}" for name in ("record", "cluster", "year"))
    database.execute(f"CREATE VIEW exact AS SELECT {binary} FROM p")
    exact = RunSQL(table.run, "exact", dialect=Dialect.SQLITE)
    wanted = eb.measure({"1": "aB3", "2": "aB3", "3": "Ab3", "4": "z"}, {"1": "e", "3": "e"})
    same(scan(exact, {"1": "e", "3": "e"}, NAMES, groups="year"), wanted)


def test_collations_of_duckdb(tmp_path):
    """They count in a relation, which is grouped by its own connection, and not in the hashes of a scan."""
    with duckdb.connect(tmp_path / "x.duckdb") as connection:
        columns = ", ".join(f"{name} VARCHAR COLLATE NOCASE" for name in ("record", "cluster", "year"))
        connection.execute(f"CREATE TABLE p ({columns})")
        connection.execute("INSERT INTO p VALUES ('a', 'x', 'q'), ('b', 'X', 'q'), ('c', 'x', 'Q')")
        with pytest.raises(eb.DataError, match="column 'record' of the prediction takes 'a' and 'A' for one"):
            scan(connection.table("p"), LABELS, NAMES)
    table = DatabaseTable(tmp_path / "x.duckdb", "p")
    same(scan(table, LABELS, NAMES), eb.measure({"a": "x", "b": "X", "c": "x"}, LABELS))


@pytest.mark.parametrize("kind", ["record", "cluster"])
def test_collations_and_types_of_postgresql(postgres, kind):  # noqa: F811
    def told(type, *rows, labels=LABELS):
        postgres.execute("DROP TABLE IF EXISTS p")
        types = {"record": "text", "cluster": "text"} | {kind: type}
        postgres.execute(f"CREATE TABLE p (record {types['record']}, cluster {types['cluster']})")
        for row in rows:
            plain = [f"CAST(%s AS {type.partition(' COLLATE')[0]})" for type in types.values()]
            postgres.execute(f"INSERT INTO p VALUES ({', '.join(plain)})", row)
        return scan(RunSQL(lambda sql: postgres.execute(sql).fetchall(), "p"), labels, NAMES)

    postgres.prepare_threshold = None
    rows = [("a", "x"), ("b", "x"), ("c", "y")]
    for level, pair in (("ks-level2", "'a' and 'A'"), ("ks-level1-kc", "'a' and 'á'")):
        name = level.replace("-", "_")
        provider = f"(provider=icu, locale='und-u-{level}', deterministic=false)"
        postgres.execute(f"CREATE COLLATION {name} {provider}")
        with pytest.raises(eb.DataError, match=f"takes {pair} for one id"):
            told(f"text COLLATE {name}", *rows)
    with pytest.raises(eb.DataError, match="takes 'a' and 'a ' for one id"):
        told("char(6)", *rows)
    same(told('text COLLATE "C"', *rows), eb.measure(dict(rows), LABELS))
    ids = {name: f"550e8400-e29b-41d4-a716-44665544000{i}" for i, name in enumerate("abcdxy")}
    rows = [
        tuple(ids[v] if c == kind else v for c, v in zip(("record", "cluster"), row, strict=True))
        for row in rows
    ]
    labels = {ids[r]: e for r, e in LABELS.items()} if kind == "record" else LABELS
    same(told("uuid", *rows, labels=labels), eb.measure(dict(rows), labels))
    if kind == "record":
        with pytest.raises(eb.DataError, match=f"in the form of Unicode only, such as '{ids['a']}'"):
            told("uuid", *rows, labels={ids["a"].upper(): "e"})
    for type, value in (("bytea", b"a"), ("boolean", True), ("numeric", Decimal("1.5"))):
        with pytest.raises(eb.DataError, match=f"{kind} ids .* not {value.__class__.__name__}; convert them"):
            told(type, *[tuple(value if c == kind else "a" for c in ("record", "cluster"))])
    with pytest.raises(eb.DataError, match=r"refuses a statement of the scan: column .* does not exist"):
        scan(RunSQL(lambda sql: postgres.execute(sql).fetchall(), "p"), LABELS, Columns("no", "cluster"))


@pytest.mark.parametrize("ids", [(1, "2"), ("1", 2)])
def test_ids_of_several_types_in_one_column_of_sqlite_are_refused(ids):
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE p (record, cluster)")
    database.executemany("INSERT INTO p VALUES (?, 'x')", [(id,) for id in ids])
    with pytest.raises(eb.DataError, match=r"record ids of the prediction must be .* not mixed"):
        scan(RunSQL(lambda sql: database.execute(sql).fetchall(), "p"), {"1": "e"}, NAMES)


# Statements
def listening(frame, longest):
    """A table of SQLite, and the statements that it was sent."""
    engine, sent = sqlite(frame), []

    def run(sql):
        sent.append(sql)
        return engine.run(sql)

    return RunSQL(run, "p", dialect=Dialect.SQLITE, longest=longest), sent


@pytest.mark.parametrize("longest", [50, 300, 200_000])
def test_lists_are_bounded_by_their_bytes(longest):
    prediction, labels, _ = population(1, 90, "hostile")
    table, sent = listening(frame_of(prediction), longest)
    found = scan(table, labels, NAMES, missing=eb.Missing.OMIT)
    same(found, eb.measure(prediction, labels, missing=eb.Missing.OMIT))
    listing = [sql for sql in sent if " IN (" in sql and "none_id" not in sql]
    lists = [sql.rpartition(" IN (")[2].partition(") GROUP BY")[0].encode() for sql in listing]
    longest_id = max(len(Dialect.SQLITE.literal(id).encode()) for id in [*labels.index, *prediction])
    assert max(map(len, lists)) <= max(longest, longest_id) + len(")") and (len(lists) > 3) == (longest < 1e5)


def test_an_id_longer_than_a_list_has_a_list_of_its_own():
    ids = ["a" * 99, "b", "c" * 99]
    table, sent = listening(pd.DataFrame({"record": ids, "cluster": "x"}), 50)
    assert scan(table, dict.fromkeys(ids, "e"), NAMES).n.tolist() == [3]
    lists = [sql.rpartition(" IN (")[2] for sql in sent if sql.startswith("SELECT r, c") and " IN (" in sql]
    assert lists == [f"'{id}')" for id in ids]


@pytest.mark.parametrize("literal, empty, written", [
    (Dialect().literal, "''", "'it' || CHR(39) || 's ' || 'é'"),
    (Dialect.SQLITE.literal, "''", "'it' || CHAR(39) || 's ' || 'é'"),
    (Dialect.MYSQL.literal, "CONCAT('')", "CONCAT('it', CHAR(39 USING utf8mb4), 's ', 'é')"),
])  # fmt: skip
def test_literals_of_dialects(literal, empty, written):
    assert literal("") == empty and literal("it's é") == written


def test_what_an_engine_refuses_is_told_without_its_control_characters(tmp_path):
    def run(sql):
        raise RuntimeError("no \x1b]0;title\x07 \u202e\nmore")

    with pytest.raises(eb.DataError, match=r"the database refuses a statement of the scan: no \\x1b") as told:
        scan(RunSQL(run, "p"), LABELS, NAMES)
    assert str(told.value).endswith(r"\x1b]0;title\x07 \u202e" "\nmore")
    good = "".join(f"r{i},x\n" for i in range(30_000))  # more than DuckDB looks at first
    (tmp_path / "p.csv").write_text(f"record,cluster\n{good}b,\x1b]0;title\x07,x\n", encoding="utf-8")
    with pytest.raises(eb.DataError, match="DuckDB cannot scan the prediction") as told:
        scan(tmp_path / "p.csv", LABELS)
    assert "title" in str(told.value) and "\x1b" not in str(told.value) and "\x07" not in str(told.value)


# Tables that change
@pytest.mark.parametrize(
    "written", ["INSERT INTO p SELECT 'n' || record, 'x' FROM p", "UPDATE p SET cluster = 'w' || cluster"]
)
def test_tables_that_change_are_counted_as_of_one_moment_or_refused(written):
    """A writer comes before each of the statements in turn."""
    told = []
    for at in range(1, 14):
        engine = sqlite(FRAME)
        sent = []

        def run(sql, engine=engine, sent=sent, at=at):
            sent.append(sql)
            if len(sent) == at:
                engine.run(written)
            return engine.run(sql)

        try:
            found = scan(RunSQL(run, "p", dialect=Dialect.SQLITE), LABELS, NAMES)
        except eb.DataError as error:
            assert "the prediction changed while it was scanned" in str(error)
            told.append(str(error))
            continue
        after = [(r, c) for r, c in engine.run("SELECT record, cluster FROM p")]
        moments = [dict(FRAME.itertuples(index=False)), dict(after)]
        assert any(found.rows == len(m) and found.m[0] == list(m.values()).count(m["a"]) for m in moments)
    assert len(told) >= 1 and "REPEATABLE READ" in told[0]


@pytest.mark.parametrize("change", ["cluster = 'w'", "cluster = 'w' WHERE cluster <> 'x'"])
def test_a_cluster_whose_size_no_cluster_has_is_refused(change):
    """Records stay as many as they were; the second change leaves one cluster of 2 where the labels met two."""
    engine = sqlite(pd.DataFrame({"record": list("abcdef"), "cluster": list("xxyyzz")}))

    def run(sql):
        if sql.startswith("SELECT c, COUNT(*)"):
            engine.run(f"UPDATE p SET {change}")
        return engine.run(sql)

    with pytest.raises(eb.DataError, match="a cluster that the labels touch has a size that no cluster has"):
        scan(RunSQL(run, "p", dialect=Dialect.SQLITE), {"a": "e", "c": "e"}, NAMES)


# Folders


# each name as each kind of file, and each name and each kind in each of the four ways to name the files
@pytest.mark.every(3)
@pytest.mark.parametrize(
    ("kind", "name", "way"),
    [
        (kind, name, (i + j) % 4)
        for i, kind in enumerate(["parquet", "csv", "tsv"])
        for j, name in enumerate(["cluster=prod", "Cluster=prod", "record=1", "year=1"])
    ],
)
def test_names_of_parent_folders_are_no_columns(tmp_path, kind, name, way):
    path = tmp_path / name / f"p.{kind}"
    path.parent.mkdir()
    if kind == "parquet":
        FRAME.to_parquet(path, index=False)
    else:
        FRAME.to_csv(path, index=False, sep="\t" if kind == "tsv" else ",")
    ways = (path, path.parent, str(path.parent / "*"), f"file://{path}")
    same(scan(ways[way], LABELS), of(FRAME))


def test_names_of_folders_do_not_replace_a_column_of_the_files(tmp_path):
    written(tmp_path / "cluster=prod", FRAME)
    written(tmp_path / "cluster=test", MORE)
    same(scan(tmp_path, LABELS), of(FRAME, MORE))
    written(tmp_path / "v" / "year=1", FRAME.assign(YEAR=2021))
    assert scan(tmp_path / "v", LABELS, NAMES, groups="YEAR").groupings[0].values.tolist() == [2021]


@pytest.mark.parametrize("pattern", ["", "*/*.parquet", "**/*.parquet", "file"])
def test_columns_of_folders_are_text(tmp_path, pattern):
    for year, frame in (("007", FRAME), ("7", MORE)):
        written(tmp_path / "cluster=prod" / "all" / f"year={year}", frame[["record"]].assign(k=frame.cluster))
    folder = tmp_path / "cluster=prod" / "all"
    source = f"file://{folder}/year=*/*.parquet" if pattern == "file" else folder / pattern
    found = scan(source, LABELS, Columns("record", "k"), groups="year")
    assert found.groupings[0].values.tolist() == ["007", "7"] and found.rows == 6


TYPES = {
    "integer": pa.array([7, 8], pa.int64()),
    "string": pa.array(["007", " 8 "]),
    "DOUBLE": pa.array([7.4, 6.6]),
    "UUID": pa.array([bytes(15) + b"1", bytes(15) + b"2"], pa.uuid()),
}


@pytest.mark.parametrize("i", range(6))
def test_parquet_files_of_different_types_are_refused(tmp_path, i):
    first, second = list(combinations(TYPES, 2))[i]
    column, text = ("record", "cluster")[i % 2], i >= 3
    for i, kind in enumerate((first, second)):
        plain = pa.array([f"a{i}", f"b{i}"])
        columns = {"record": plain, "cluster": plain} | {column: TYPES[kind]}
        pq.write_table(pa.table(columns), tmp_path / f"{i}.parquet")
    with pytest.raises(eb.DataError) as told:
        scan(Files(tmp_path, text=text), {"a0": "e"})
    assert f"column '{column}' of the prediction is " in str(told.value)
    assert f"{first} in 0.parquet" in str(told.value) and f"{second} in 1.parquet" in str(told.value)


def test_parquet_files_whose_integers_differ_in_width(tmp_path):
    big = [2**63 + 5, 2**40, -3, 9]
    types = [pa.uint64(), pa.int64(), pa.int8(), pa.decimal128(38, 0)]
    for i, (id, type) in enumerate(zip(big, types, strict=True)):
        columns = {"record": pa.array([id], type), "cluster": pa.array([id % 2], type)}
        pq.write_table(pa.table(columns), tmp_path / f"{i}.parquet")
    labels = dict.fromkeys(big[:2], "e")
    same(scan(tmp_path, labels), eb.measure({id: id % 2 for id in big}, labels))
    told = {str(id): e for id, e in labels.items()}
    same(scan(Files(tmp_path, text=True), told), eb.measure({str(id): str(id % 2) for id in big}, told))


def test_fields_within_columns_are_not_columns(tmp_path):
    for i, id in enumerate((1, "1")):
        inside = [{"more": [{"record": id}], "record": id, "cluster": id}]
        columns = {"inside": inside, "record": ["ab"[i]], "cluster": ["x"]}
        pq.write_table(pa.table(columns), tmp_path / f"{i}.parquet")
    same(scan(tmp_path, LABELS, NAMES), eb.measure({"a": "x", "b": "x"}, LABELS))


def test_what_is_not_committed_is_not_read(tmp_path):
    written(tmp_path, FRAME)
    for hidden in ("_temporary/0/attempt_1", ".hidden", "part/_x"):
        written(tmp_path / hidden, MORE, name="part-{}.parquet")
    for source in (tmp_path, f"{tmp_path}/**/*.parquet", f"{tmp_path}/**"):
        same(scan(source, LABELS), of(FRAME))
    same(scan(f"{tmp_path}/_temporary/*/*/*.parquet", {"q": "e"}), eb.measure(MORE, {"q": "e"}))


def test_linked_folders_and_files_are_read(tmp_path):
    written(tmp_path / "real", MORE)
    written(tmp_path / "linked", FRAME)
    (tmp_path / "linked" / "more").symlink_to("../real")
    same(scan(tmp_path / "linked", LABELS), of(FRAME, MORE))
    (tmp_path / "linked" / "again.parquet").symlink_to("../real/0.parquet")
    with pytest.raises(eb.DataError, match=r"leads to .*again.parquet, whose records would be counted twice"):
        scan(tmp_path / "linked", LABELS)
    (tmp_path / "linked" / "again.parquet").unlink()
    (tmp_path / "linked" / "loop").symlink_to(".")
    with pytest.raises(eb.DataError, match=r"loop leads to .*linked, whose records would be counted twice"):
        scan(tmp_path / "linked", LABELS)
    (tmp_path / "linked" / "loop").unlink()
    (tmp_path / "linked" / "gone.parquet").symlink_to("nowhere")
    with pytest.raises(eb.DataError, match=r"cannot read .*gone.parquet: it leads nowhere"):
        scan(tmp_path / "linked", LABELS)


def test_folders_that_cannot_be_read_are_told(tmp_path, monkeypatch):
    written(tmp_path, FRAME)
    written(tmp_path / "closed", MORE)
    listed = os.scandir

    def refused(path):
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(os, "scandir", refused)
    with pytest.raises(eb.DataError, match=r"cannot read .*closed: Permission denied"):
        scan(tmp_path, LABELS)


@pytest.mark.parametrize("log, kind", [
    ("_delta_log/0.json", "Delta"),
    ("part/_delta_log/0.json", "Delta"),
    (".hoodie/hoodie.properties", "Hudi"),
    ("_spark_metadata/0", "Spark streaming"),
    ("metadata/v1.metadata.json", "Iceberg"),
])  # fmt: skip
def test_tables_with_a_log_are_told(tmp_path, log, kind):
    written(tmp_path / "data", FRAME)
    (tmp_path / log).parent.mkdir(parents=True)
    (tmp_path / log).touch()
    with pytest.raises(eb.DataError, match=f"is a table of {kind}, some of whose files no longer count"):
        scan(tmp_path, LABELS)


# Files
CELLS = [*"# a b 7 007".split(), " ", "\t", *"; | ' \" , \\".split(), "# ", *"NULL NA é - . 1.5".split()]
CELLS += ["2020-01-01", "true", "\n", "\r", "\r\n", *"10:00 & % // -- 漢 $".split(), "\ufeff", "\0x"[1:]]


@pytest.mark.every(4)
@pytest.mark.parametrize("seed", range(30))
def test_small_csv_files_are_read_as_pandas_reads_them(tmp_path, seed):
    """Short files, in which few values are seen, of characters that a guess may take for something else."""
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(1, 40))
    some = rng.choice(CELLS, size=4)

    def drawn(prefix):
        return [f"{''.join(rng.choice(some, size=rng.integers(0, 3)))}{prefix}{i}" for i in range(rows)]

    clusters = rng.choice(drawn("c"), size=rows)
    header = [f"{rng.choice(CELLS[:8])}record", "cluster", f"{rng.choice(CELLS[:8])}x"]
    frame = pd.DataFrame(dict(zip(header, (drawn(""), clusters, rng.choice(some, size=rows)), strict=True)))
    path = tmp_path / str(rng.choice(["p.csv", "p.tsv", "p.csv.gz"]))
    separator = "\t" if path.suffix == ".tsv" else ","
    line = str(rng.choice(["\n", "\r\n"]))
    frame.to_csv(path, index=False, sep=separator, lineterminator=line, quoting=int(rng.integers(0, 2)))
    labels = dict(zip(frame.iloc[:, 0][:5], ["e", "e", "f", "f", "g"], strict=False))
    named = scan(path, labels, Columns(header[0], "cluster"))
    same(named, eb.measure(frame.iloc[:, :2], labels))


def test_rows_that_begin_with_a_hash_are_rows(tmp_path):
    rows = [(f"{'#' if i % 3 == 1 else ''}{i}", f"c{i // 3}") for i in range(300)]
    frame = pd.DataFrame(rows, columns=["record", "cluster"])
    frame.to_csv(tmp_path / "p.csv", index=False)
    found = scan(tmp_path / "p.csv", {"0": "e", "2": "e"}, NAMES)
    same(found, eb.measure(frame, {"0": "e", "2": "e"}))
    assert found.rows == 300


BLANK = r"p.csv: its first line is blank, which must name the columns"


@pytest.mark.parametrize("data, said", [
    (b"\nrecord,cluster\na,x\n", BLANK),
    (b"\r\nrecord,cluster\r\na,x\r\n", BLANK),
    (b" \nrecord,cluster\na,x\n", BLANK),
    (b"", BLANK),
    ("record,cluster\na,b\n".encode("utf-16-le"), "it has NUL characters, as damaged files and UTF-16 without"),
])  # fmt: skip
def test_a_first_line_that_names_no_columns_is_told(tmp_path, data, said):
    (tmp_path / "p.csv").write_bytes(data)
    with pytest.raises(eb.DataError, match=said):
        scan(tmp_path / "p.csv", {"a": "e"})


@pytest.mark.parametrize("kind", ["csv", "parquet", "frame", "arrow"])
def test_columns_whose_names_differ_in_case_only(tmp_path, kind):
    columns = {"id": "klm", "cluster": "xxy", "ID": "abc", "CLUSTER": "vvv"}
    frame = pd.DataFrame({name: list(values) for name, values in columns.items()})
    sources = {"frame": frame, "arrow": pa.Table.from_pandas(frame)}
    frame.to_csv(tmp_path / "p.csv", index=False)
    frame.to_parquet(tmp_path / "p.parquet")
    source = sources.get(kind, tmp_path / f"p.{kind}")
    lower = {"k": "e", "l": "e"}
    for record, cluster, labels in (
        ("id", "CLUSTER", lower),
        ("ID", "cluster", LABELS),
        ("ID", "id", LABELS),
    ):
        wanted = eb.measure(frame[[record, cluster]], labels)
        same(scan(source, labels, Columns(record, cluster)), wanted)
    with pytest.raises(eb.DataError, match="has no column 'Cluster'; it has 'id', 'cluster', 'ID'"):
        scan(source, LABELS, Columns(cluster="Cluster"))


@pytest.mark.parametrize("name", ["~x.parquet", "s3:.parquet", "http:x.csv", "~x.csv", "gs:x.tsv"])
def test_names_of_files_that_look_like_places_elsewhere(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"record": list("abc"), "cluster": list("xxy")})
    if name.endswith("parquet"):
        frame.to_parquet(tmp_path / name)
    else:
        frame.to_csv(tmp_path / name, sep="\t" if "tsv" in name else ",", index=False)
    assert read_table(Path(name)).equals(frame) and scan(name, {"a": "e"}).rows == 3


def test_columns_of_one_name_in_csv(tmp_path):
    (tmp_path / "p.csv").write_text("record,cluster,cluster\na,x,v\nb,x,w\nc,y,w\n", encoding="utf-8")
    same(scan(tmp_path / "p.csv", LABELS, NAMES), eb.measure({"a": "x", "b": "x", "c": "y"}, LABELS))


def test_parquet_whose_name_does_not_say_so(tmp_path):
    written(tmp_path / "job", FRAME, MORE, name="00000{}_0")
    same(scan(tmp_path / "job" / "000000_0", LABELS), of(FRAME))
    same(scan(tmp_path / "job", LABELS), of(FRAME, MORE))


def test_metadata_that_cannot_be_read_are_told(tmp_path):
    table = pa.Table.from_pandas(FRAME).replace_schema_metadata({"pandas": "no json"})
    pq.write_table(table, tmp_path / "p.parquet")
    with pytest.raises(eb.DataError, match=r"cannot read .*p.parquet"):
        scan(tmp_path / "p.parquet", LABELS)
    pq.write_table(pa.table({"record": ["a"], "cluster": ["x"]}, metadata={}), tmp_path / "q.parquet")
    data = (tmp_path / "q.parquet").read_bytes()
    at = data.index(b"ARROW:schema") + 40
    (tmp_path / "q.parquet").write_bytes(data[:at] + b"!!!!" + data[at + 4 :])
    with pytest.raises(eb.DataError, match=r"cannot read .*q.parquet"):
        scan(tmp_path / "q.parquet", LABELS)


# Databases
def test_tables_of_schemas_go_by_their_names(tmp_path):
    path = tmp_path / "x.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute("CREATE SCHEMA a; CREATE TABLE a.u AS SELECT 'c' AS record, 'x' AS cluster")
        connection.execute("CREATE SCHEMA s; CREATE TABLE s.t AS SELECT 'a' AS record, 'x' AS cluster")
        connection.execute("""CREATE TABLE "a.u" AS SELECT 'b' AS record, 'x' AS cluster""")
    for table, record in (("s.t", "a"), (("s", "t"), "a"), ("S.T", "a"), ("a.u", "b")):
        assert scan(DatabaseTable(path, table), {record: "e"}).rows == 1
    with pytest.raises(eb.DataError, match=r"x.duckdb has no table 't'; it has 'a.u', 'a.u', 's.t'"):
        scan(DatabaseTable(path, "t"), {"a": "e"})


def test_a_file_of_sqlite_is_told(tmp_path):
    with sqlite3.connect(tmp_path / "x.db") as database:
        database.execute("CREATE TABLE p (record, cluster)")
    database.close()
    with pytest.raises(eb.DataError, match=r"x.db is a database of SQLite: scan it by RunSQL in Python"):
        scan(DatabaseTable(tmp_path / "x.db", "p"), LABELS)
    (tmp_path / "y.db").write_text("no database", encoding="utf-8")
    with pytest.raises(eb.DataError, match=r"DuckDB cannot scan the prediction: .*y.db"):
        scan(DatabaseTable(tmp_path / "y.db", "p"), LABELS)


# Ids
UUIDS = {name: f"550e8400-e29b-41d4-a716-44665544000{i}" for i, name in enumerate("abcd")}


@pytest.mark.every(3)
@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("kind", ["arrow", "parquet", "database", "relation"])
def test_uuids_are_text(tmp_path, kind, text):
    binary = pa.array([uuid.UUID(i).bytes for i in UUIDS.values()], pa.uuid())
    table = pa.table({"record": binary, "cluster": binary.take(pa.array([0, 0, 1, 2]))})
    pq.write_table(table, tmp_path / "p.parquet")
    with duckdb.connect(tmp_path / "x.duckdb") as connection:
        connection.register("t", table)
        connection.execute("CREATE TABLE p AS SELECT * FROM t")
    with duckdb.connect(tmp_path / "x.duckdb", read_only=True) as connection:
        sources = {
            "arrow": table,
            "parquet": Files(tmp_path / "p.parquet", text),
            "database": DatabaseTable(tmp_path / "x.duckdb", "p", text),
            "relation": connection.table("p"),
        }
        if kind != "relation":
            connection.close()
        a, b, c, d = UUIDS.values()
        wanted = {a: a, b: a, c: b, d: c}
        same(scan(sources[kind], {a: "e", d: "e"}), eb.measure(wanted, {a: "e", d: "e"}))
        with pytest.raises(eb.DataError, match=f"1 ids there differ from these in case .*, such as '{a}'"):
            scan(sources[kind], {a.upper(): "e"})


@pytest.mark.parametrize("text", [False, True])
def test_decimals_without_fraction_are_integers(tmp_path, text):
    ids = [1, 2, 10**30, -5]
    decimals = pa.array(ids, pa.decimal128(38, 0))
    clusters = decimals.take(pa.array([0, 0, 2, 2]))
    pq.write_table(pa.table({"record": decimals, "cluster": clusters}), tmp_path / "p.parquet")
    form = str if text else int
    labels = {form(1): "e", form(10**30): "e"}
    wanted = {form(i): form(c) for i, c in zip(ids, [1, 1, 10**30, 10**30], strict=True)}
    same(scan(Files(tmp_path / "p.parquet", text), labels), eb.measure(wanted, labels))
    with pytest.raises(eb.DataError, match="1 duplicates, such as 1"):
        scan(pa.table({"record": decimals.take(pa.array([0, 0])), "cluster": clusters[:2]}), {1: "e"})
    fractions = pa.table({"record": pa.array([1], pa.decimal128(5, 2)), "cluster": ["x"]})
    with pytest.raises(eb.DataError, match=r"record ids .* not DECIMAL\(5,2\); convert"):
        scan(fractions, {1: "e"})


@pytest.mark.every(3)
@pytest.mark.parametrize("records", [[1, 2], [2**63, 2], [-1, 2**63], [2**64 + 1, -1]])
@pytest.mark.parametrize("labels", [[1, 2], [2**63], [-1, 2**63], [2**64 + 1, -1], [10**30]])
def test_integers_of_any_size(records, labels):
    frame = pd.DataFrame({"record": records, "cluster": records[::-1]}, dtype=object)
    labels = pd.Series("e", pd.Index(dict.fromkeys([*labels, *records]), dtype=object))
    given = {"missing": eb.Missing.SINGLETON}
    same(scan(frame, labels, **given), eb.measure(frame, labels, **given))


@pytest.mark.parametrize("ids", [[10**40, 1], [1, "a"]])
def test_ids_that_no_column_can_hold_are_told(ids):
    frame = pd.DataFrame({"record": pd.Series(ids, dtype=object), "cluster": "x"})
    with pytest.raises(eb.DataError, match="'record' of the prediction must be all strings or all integers"):
        scan(frame, {1: "e"})
    with pytest.raises(eb.DataError, match="cannot be looked for"):
        scan(pd.Series(["x"], [1]), pd.Series("e", pd.Index([10**40], dtype=object)))


def test_halves_of_characters_are_told():
    halves = pd.DataFrame({"record": pd.Series(["a\ud800", "b"], dtype=object), "cluster": "x"})
    with pytest.raises(eb.DataError, match=r"'record' of the prediction must be .*surrogates not allowed"):
        scan(halves, {"b": "e"})
    with pytest.raises(eb.DataError, match=r"cannot be looked for: .*surrogates not allowed"):
        scan(FRAME, pd.Series("e", pd.Index(["a\ud800"], dtype=object)))


# Temporary folders
@pytest.mark.slow
def test_folders_of_killed_processes_are_removed(tmp_path):
    code = f"""
import sys; sys.path.insert(0, {str(Path(eb.__file__).parents[1])!r})
import pandas as pd
from erbayes.large import DuckDB
from erbayes.large.files import opened
with opened([pd.DataFrame()], DuckDB(folder={str(tmp_path)!r})):
    print("ready", flush=True)
    sys.stdin.read()
"""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    (tmp_path / "erbayes-unlocked").mkdir()
    with (
        subprocess.Popen([sys.executable, "-c", code], **pipes) as killed,
        subprocess.Popen([sys.executable, "-c", code], **pipes) as alive,
    ):
        assert killed.stdout.readline() == alive.stdout.readline() == "ready\n"
        with opened([FRAME], DuckDB(folder=tmp_path)):
            before = set(tmp_path.iterdir())
            assert len(before) == 4
            killed.kill()
            killed.wait(timeout=60)
            scan(FRAME, LABELS, database=DuckDB(folder=tmp_path))
            assert len(set(tmp_path.iterdir())) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["erbayes-unlocked"]


def test_folders_that_do_not_exist_are_told(tmp_path):
    with pytest.raises(eb.DataError, match=r"cannot make a temporary folder in .*nodir: No such file"):
        scan(FRAME, LABELS, database=DuckDB(folder=tmp_path / "nodir"))


def test_lazy_frames_are_told(tmp_path):
    written(tmp_path, FRAME)
    said = r"cannot scan a LazyFrame: expected files, or of a LazyFrame its \.collect"
    with pytest.raises(eb.DataError, match=said):
        scan(pl.scan_parquet(tmp_path / "0.parquet"), LABELS)


def test_common_records_of_ids_that_are_cast(tmp_path):
    """UUIDs and decimals among predictions of text and of integers."""
    binary = pa.array([uuid.UUID(i).bytes for i in UUIDS.values()], pa.uuid())
    old = pa.table({"record": binary, "cluster": pa.array([1, 1, 2, 2], pa.decimal128(38, 0))})
    new = pd.Series([1, 1, 1], list(UUIDS.values())[:3])
    labels = dict.fromkeys(list(UUIDS.values())[:3], "e")
    found = scan({"old": old, "new": new}, labels)
    for name, clusters in (("old", [1, 1, 2]), ("new", [1, 1, 1])):
        same(found[name], eb.measure(pd.Series(clusters, new.index), labels))


@pytest.fixture
def foreign(tmp_path):
    """A database with a table, and a view of a file beside it."""
    (tmp_path / "secret.csv").write_text("record,cluster\na,x\nb,y\n", encoding="utf-8")
    with duckdb.connect(tmp_path / "f.duckdb") as connection:
        connection.execute(f"CREATE TABLE t AS SELECT * FROM read_csv('{tmp_path / 'secret.csv'}')")
        connection.execute(f"CREATE VIEW v AS SELECT * FROM read_csv('{tmp_path / 'secret.csv'}')")
    return tmp_path / "f.duckdb"


def test_a_view_reads_files_only_if_that_is_asked_for(foreign):
    with pytest.raises(eb.DataError, match=r"a view reads a file of its own.*reads_files=True"):
        scan(DatabaseTable(foreign, "v"), {"a": "e"})
    for trusted in (DatabaseTable(foreign, "t"), DatabaseTable(foreign, "v", reads_files=True)):
        assert scan(trusted, {"a": "e"}).rows == 2
    (foreign.parent / "link.duckdb").symlink_to(foreign)
    assert scan(DatabaseTable(foreign.parent / "link.duckdb", "t"), {"a": "e"}).rows == 2


def test_the_shell_names_a_remedy_of_its_own_for_a_view(foreign):
    drawn = ("draw", foreign, *"--table v -d uniform-records -n 1 --seed 1 -o".split(), foreign.parent / "d")
    assert "make a table of the view" in refused(*drawn) and not (foreign.parent / "d").exists()


def test_no_connection_fetches_code_or_reads_other_files(tmp_path):
    written(tmp_path, FRAME)
    (file,) = tmp_path.iterdir()
    with DuckDB(progress=False).connected([str(file)]) as connection:
        kept = dict(connection.execute("SELECT name, value FROM duckdb_settings()").fetchall())
        count = connection.execute(f"SELECT COUNT(*) FROM read_parquet('{file}')")
        assert count.fetchall() == [(len(FRAME),)]
        elsewhere = f"FROM read_csv('{__file__}')", f"COPY (SELECT 1) TO '{tmp_path}/x.csv'"
        wider = "SET enable_external_access = true", f"SET allowed_paths = ['{__file__}']"
        for sql in (*elsewhere, *wider, "LOAD httpfs", "INSTALL httpfs"):
            with pytest.raises(duckdb.Error):
                connection.execute(sql)
    for name in ("autoinstall_known_extensions", "autoload_known_extensions", "enable_external_access"):
        assert kept[name] == "false"


@pytest.mark.parametrize(
    ("options", "bits"), [({"threads": 1}, 25), ({"threads": 2}, 25), ({"memory_limit": "1GB"}, 0)]
)
def test_arrays_of_dense_ids_take_no_more_memory_than_their_rows(options, bits):
    with opened([FRAME], DuckDB(progress=False, **options)) as (table,):
        shown = "SELECT current_setting('perfect_ht_threshold')"
        ((before,),) = table.rows(shown)
        with table.counting(20_000_000):
            assert table.rows(shown) == [(bits,)]
        assert table.rows(shown) == [(before,)]


@pytest.mark.parametrize("url", ["https://u:password@h/x.parquet", "s3://bucket/x.csv"])
def test_nothing_is_downloaded(url):
    with pytest.raises(eb.DataError, match=r"nothing is downloaded: download the file") as told:
        scan(url, {"a": "e"})
    assert "password" not in str(told.value)


@pytest.mark.parametrize(
    ("option", "said"),
    [({"threads": n}, "1 to 1,024") for n in (0, -1, 1.5, 1025, 10**6, "2", True)]
    + [({"memory_limit": x}, "is not an amount") for x in ("-1GB", "0GB", "1", "much", "٣GB", "", 4)],
)
def test_options_of_duckdb_are_checked_before_it_starts(option, said):
    with pytest.raises(eb.DataError, match=said):
        DuckDB(**option)


@pytest.mark.parametrize("name", ["wide.csv", "wide.csv.gz"])
def test_a_first_line_without_an_end_is_refused_early(tmp_path, name):
    with (gzip.open if name.endswith("gz") else open)(tmp_path / name, "wb") as file:
        file.write(b"record," + b"c" * 1_100_000)
    said = "its first line, which names the columns, is over 1,048,576 letters"
    for read in (lambda: scan(tmp_path / name, {"a": "e"}), lambda: read_table(tmp_path / name)):
        with pytest.raises(eb.DataError, match=said):
            read()
