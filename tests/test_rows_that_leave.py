"""Rows that leave a database, and the same numbers as in memory: sums and touched rows alone."""

import sqlite3
from functools import cache, partial

import numpy as np
import pandas as pd
import pytest
from test_scan import postgres  # noqa: F401

import erbayes as eb
from erbayes.large import Columns, Dialect, RunSQL, scan
from erbayes.large.database import RunSQLTable
from erbayes.large.duckdb import DuckTable

pytestmark = pytest.mark.slow

DESIGN = eb.UniformRecords
RECORDS = 200_000
SIZES = ["count", "mean(size)", "share(size>=2)", "count(size>=3)", "total(size)"]
OF_SUMS = ["count", "mean(s)", "ratio(s, size)", "share(s>500 and size>=2)"]
FEATURES = {"s": ("amount", "sum")}
NAMES = Columns("record", "cluster")


@cache
def population(records):
    """A prediction with attributes, labels of the entities of 400 drawn records, and the draws."""
    i, rng = np.arange(records), np.random.default_rng(0)
    entity = i // 3
    cluster = np.where(rng.random(records) < 0.05, records + i, entity)
    cluster = np.where(rng.random(records) < 0.04, rng.integers(0, records, records) // 3, cluster)
    amount, group = rng.integers(0, 1000, records), [f"g{g:02d}" for g in rng.integers(0, 50, records)]
    table = pd.DataFrame({"record": i + 2**61, "cluster": cluster + 2**55, "amount": amount, "g": group})
    draws = rng.choice(records, 400)
    labelled = np.flatnonzero(np.isin(entity, draws // 3))
    return table, pd.Series(entity[labelled], table["record"][labelled]), (draws // 3).tolist()


@pytest.fixture
def collected(monkeypatch):
    """The number of rows that statements return."""
    numbers = []

    def counting(work):
        def run(*args):
            rows = work(*args)
            numbers.append(len(rows))
            return rows

        return run

    for table in (DuckTable, RunSQLTable):
        monkeypatch.setattr(table, "rows", counting(table.rows))
    monkeypatch.setattr(DuckTable, "fetched", counting(DuckTable.fetched))
    return numbers


def in_sqlite(table, folder):
    database = sqlite3.connect(":memory:")
    table.to_sql("p", database, index=False)
    return RunSQL(lambda sql: database.execute(sql).fetchall(), "p", Dialect.SQLITE, names=[*table.columns])


def in_file(table, folder):
    table.to_parquet(folder / "p.parquet", index=False)
    return folder / "p.parquet"


ENGINES = {"duckdb": in_file, "sqlite": in_sqlite}


def by_group(sample, groups, **options):
    found = eb.by_domain(sample, groups, **options)
    return pd.concat([found.table(), found.against_rest()], ignore_index=True)


def estimate(source, labels, design):
    return eb.estimate(eb.Sample(scan(source, labels, NAMES), design)).table()


def groups(source, labels, design):
    return by_group(eb.Sample(scan(source, labels, NAMES, groups="g"), design), "g")


def numbers(source, labels, design, statistics=SIZES, **options):
    return eb.impact(source, labels, design, statistics, **options).table()


QUESTIONS = {
    "estimate": (estimate, 2000),
    "groups": (groups, 5000),
    "impact of sizes": (numbers, 5000),
    "impact of sums": (partial(numbers, statistics=OF_SUMS, features=FEATURES), 5000),
}


@cache
def memory(question, records):
    """The same numbers in memory."""
    table, labels, draws = population(records)
    pairs, design = table[["record", "cluster"]], DESIGN(draws)
    if question == "estimate":
        return eb.estimate(pairs, labels, design).table()
    if question == "groups":
        sample = eb.Sample(eb.measure(pairs, labels), design)
        return by_group(sample, table.set_index("record")["g"], prediction=pairs)
    ask = QUESTIONS[question][0]
    ask = ask if isinstance(ask, partial) else partial(ask)
    attributes = {"attributes": table[["record", "amount", "g"]]} if "features" in ask.keywords else {}
    return ask(pairs, labels, design, **attributes)


def check(source, question, records, collected):
    """Compare a source with memory, and return the number of rows that were collected."""
    _, labels, draws = population(records)
    ask, _ = QUESTIONS[question]
    both = ask(source, labels, DESIGN(draws)), memory(question, records)
    # sums of numbers that are no integers depend on the order of rows, which their differences magnify
    rounded = "sums" in question
    left_out = ["difference", "least", "most"] if rounded else []
    found, expected = (t.drop(columns=left_out).select_dtypes("number").to_numpy(float) for t in both)
    np.testing.assert_allclose(found, expected, rtol=1e-12 if rounded else 0, atol=0)
    return sum(collected)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("question", QUESTIONS)
def test_sums_and_touched_rows_alone_leave_a_database(engine, question, collected, tmp_path):
    source = ENGINES[engine](population(RECORDS)[0], tmp_path)
    assert check(source, question, RECORDS, collected) <= QUESTIONS[question][1]


@pytest.mark.parametrize("records", [20_000, 40_000])
def test_rows_that_leave_follow_the_labels(records, collected, tmp_path):
    """Sizes and values are as many in larger predictions, up to their own range."""
    check(in_file(population(records)[0], tmp_path), "impact of sizes", records, collected)
    assert sum(collected) <= 4000


def same_rows(source, collected):
    """As many rows as SQLite returns, which is asked for types of columns and collations too."""
    table, *_ = population(3000)
    for question in QUESTIONS:
        rows = []
        for each in (source, in_sqlite(table, None)):
            collected.clear()
            rows.append(check(each, question, 3000, collected))
        assert abs(rows[1] - rows[0]) <= 20


def test_the_same_rows_leave_postgresql(postgres, collected):  # noqa: F811
    table, *_ = population(3000)
    postgres.execute("CREATE TABLE p (record bigint, cluster bigint, amount int, g text)")
    with postgres.cursor().copy("COPY p FROM STDIN") as copy:
        for row in table.itertuples(index=False):
            copy.write_row(row)
    same_rows(RunSQL(lambda sql: postgres.execute(sql).fetchall(), "p", names=[*table.columns]), collected)


@pytest.mark.parametrize("dialect", ["bigquery", "snowflake", "databricks", "redshift", "trino"])
def test_statements_parse_in_warehouses(dialect):
    """They are not run there. BigQuery and Databricks quote names as Spark does."""
    sqlglot = pytest.importorskip("sqlglot", reason="sqlglot is not installed")
    table, labels, draws = population(3000)
    database, sent = sqlite3.connect(":memory:"), []
    table.to_sql("p", database, index=False)

    def run(sql):
        sent.append(sql)
        return database.execute(sql).fetchall()

    source = RunSQL(run, "p", names=[*table.columns])
    for ask, _ in QUESTIONS.values():
        ask(source, labels, DESIGN(draws))
    for sql in sent:
        own = sql.replace('"', "`") if dialect in {"bigquery", "databricks"} else sql
        sqlglot.parse_one(own, dialect=dialect)
