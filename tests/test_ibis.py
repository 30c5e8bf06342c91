"""Tables of Ibis are counted where they lie, with the units of measure, whatever ids and names they hold."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from test_scan import KINDS, NASTY, frame_of, population, postgres, same  # noqa: F401

import erbayes as eb
from erbayes.labels import draw
from erbayes.labels.plans import Records
from erbayes.large import Columns, GroupSource, drawing, scan
from erbayes.large.database import IbisDialect, read_through_ibis

ibis = pytest.importorskip("ibis", reason="Ibis is not installed")

# Ibis 12 itself calls what pandas 3 and DuckDB 2 are about to remove
pytestmark = [
    pytest.mark.filterwarnings("ignore:The 'future.infer_string' option"),
    pytest.mark.filterwarnings("ignore:fetch_arrow_table"),
]
DIALECTS = tuple("bigquery clickhouse databricks duckdb mysql postgres snowflake sqlite trino".split())
LABELS = {"a": "e", "b": "e"}
FRAME = pd.DataFrame({"record": list("abcd"), "cluster": list("xxyz")})


@pytest.fixture(params=["duckdb", "sqlite", "postgres"])
def connection(request, tmp_path):
    if request.param == "postgres":
        server = request.getfixturevalue("postgres").info
        connected = ibis.postgres.connect(host=server.host, user=server.user, database=server.dbname)
    else:
        pytest.importorskip(request.param.replace("sqlite", "sqlite3"))
        connected = getattr(ibis, request.param).connect(tmp_path / "there.db")
    yield connected
    connected.disconnect()


def put(connection, frame, name="p"):
    """A table with these rows, in a database."""
    return connection.create_table(name, ibis.memtable(pa.Table.from_pandas(frame, preserve_index=False)))


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_gives_the_units_of_measure(connection, kind):
    prediction, labels, _ = population(3, kind=kind)
    found = scan(put(connection, frame_of(prediction)), labels, missing=eb.Missing.OMIT)
    same(found, eb.measure(prediction, labels, missing=eb.Missing.OMIT))
    assert found.rows == len(prediction)


def test_the_front_door_takes_a_table(connection):
    prediction, labels, _ = population(3, lacking=0)
    design = eb.UniformClusters()
    found = eb.estimate(put(connection, frame_of(prediction)), labels, design)
    pd.testing.assert_frame_equal(found.table(), eb.estimate(prediction, labels, design).table())


def test_names_of_tables_and_columns_may_hold_anything(connection):
    names = ['re"co`rd', "clu;--ster"]
    table = put(connection, FRAME.set_axis(names, axis=1), 'a table\'s "name"; --')
    same(scan(table, LABELS, Columns(*names)), eb.measure(FRAME, LABELS))
    with pytest.raises(eb.DataError, match="clutser"):
        scan(table, LABELS, Columns(names[0], "clutser"))


def test_a_table_of_another_schema_is_read_there():
    pytest.importorskip("duckdb")
    connection = ibis.duckdb.connect()
    connection.raw_sql("CREATE SCHEMA s; CREATE TABLE p AS SELECT 'a' AS record, 'x' AS cluster")
    table = connection.create_table("p", ibis.memtable(pa.Table.from_pandas(FRAME)), database="s")
    same(scan(table, LABELS), eb.measure(FRAME, LABELS))


def test_only_tables_and_views_are_scanned(connection):
    table = put(connection, pd.concat([FRAME, FRAME.assign(record="d")]))
    some = table.filter(table.record != "d")
    for expression in (
        some,
        ibis.memtable(pa.Table.from_pandas(FRAME)),
        ibis.table({"record": "string"}, name="p"),
    ):
        with pytest.raises(eb.DataError, match=r"by connection\.create_view\(name, expression\)"):
            scan(expression, LABELS)
    view = connection.create_view("v", some)
    same(scan(view, LABELS), eb.measure(FRAME[FRAME.record != "d"], LABELS))


def test_faults_are_found_there(connection):
    with pytest.raises(eb.DataError, match="1 duplicates, such as 'a'"):
        scan(put(connection, pd.concat([FRAME, FRAME[:1]]), "twice"), LABELS)
    with pytest.raises(eb.DataError, match="missing"):
        scan(put(connection, FRAME.assign(cluster=["x", "x", None, "z"]), "gaps"), LABELS)
    with pytest.raises(eb.DataError, match="with a database of its own takes no second table"):
        scan(FRAME, LABELS, groups=GroupSource(put(connection, FRAME, "groups"), "cluster"))


def test_a_collation_without_case_is_refused():
    connection = ibis.sqlite.connect()
    connection.raw_sql("CREATE TABLE p (record TEXT, cluster TEXT COLLATE NOCASE)")
    connection.raw_sql("INSERT INTO p VALUES ('a', 'x'), ('b', 'X')")
    with pytest.raises(eb.DataError, match="'cluster' of the prediction takes 'a' and 'A' for one"):
        scan(connection.table("p"), LABELS)


def test_the_draw_is_that_from_memory():
    pytest.importorskip("duckdb")
    prediction, _, _ = population(3)
    with drawing(put(ibis.duckdb.connect(), frame_of(prediction))) as there:
        found = draw(there, Records(), n=20, seed=4)
    wanted = draw(prediction, Records(), n=20, seed=4)
    assert list(found.table["record"]) == list(wanted.table["record"])
    assert found.fingerprint == wanted.fingerprint


class Cursorless:
    """A connection that returns rows in place of a cursor, as BigQuery's does."""

    def __init__(self, connection):
        self.connection, self.dialect = connection, connection.dialect

    def raw_sql(self, sql):
        return iter(self.connection.raw_sql(sql).fetchall())


def test_a_connection_may_return_rows(connection, monkeypatch):
    table = put(connection, FRAME)
    monkeypatch.setattr(type(table), "get_backend", lambda self: Cursorless(connection))
    same(scan(table, LABELS), eb.measure(FRAME, LABELS))


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("text", NASTY)
def test_what_is_written_is_read_as_one_literal_or_name(dialect, text):
    """The parser of the dialect reads back what was written, so that no text leaves its quotes."""
    import sqlglot

    written = IbisDialect(sqlglot=dialect)
    literal, name = (
        sqlglot.parse_one(f"SELECT {w}", dialect=dialect).selects[0]
        for w in (written.literal(text), written.quote(text))
    )
    assert literal.is_string and literal.this == text
    assert isinstance(name, sqlglot.exp.Column) and name.name == text


def test_the_columns_come_with_the_table(connection):
    source = read_through_ibis(put(connection, FRAME))
    assert list(source.names) == ["record", "cluster"] and source.name[-1] == "p"
    assert np.array(source.run("SELECT 1, 2")).tolist() == [[1, 2]]
