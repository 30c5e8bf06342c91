"""Second clusterings of scans: the same full counts, hence the same assisted estimates, as in memory."""

import json
import sqlite3
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from test_cli import paired, refused, run
from test_scan import SOURCES, frame_of, hostile, in_turn, population, postgres, spark, sqlite  # noqa: F401

import erbayes as eb
from erbayes import columns as u
from erbayes import metrics as m
from erbayes.large import (
    Columns,
    DatabaseTable,
    Dialect,
    DuckDB,
    GroupSource,
    Releases,
    RunSQL,
    SecondSource,
    drawing,
    scan,
)
from erbayes.study import populations as sim

pytestmark = pytest.mark.slow

duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
SUMS = tuple(x for x in m.ALL if all(not isinstance(c, u.GroupMax) for c in x.columns))
SOME = tuple(dict.fromkeys({column: x for x in SUMS for column in x.columns}.values()))
"""A metric for each column that is counted: all metrics are functions of totals of these."""
NAMED = Columns("record", "cluster")
BESIDE = {"by": SecondSource(cluster="other")}
EXACT = {"rtol": 1e-12, "atol": 1e-12}


def other(prediction, seed=4, kind="strings"):
    """A second clustering: most clusters as predicted, some split, two of the largest joined."""
    rng = np.random.default_rng(seed)
    codes = pd.factorize(prediction.to_numpy())[0]
    codes = np.where(rng.random(len(codes)) < 0.15, codes + rng.integers(1, 9, len(codes)), codes)
    first, second = pd.Series(codes).value_counts().index[:2]
    codes = np.where(codes == first, second, codes)
    made = {
        "strings": lambda c: [f"s{x}" for x in c],
        "integers": lambda c: c + 2**61,
        "hostile": lambda c: hostile(c, "s"),
    }
    return pd.Series(made[kind](codes), prediction.index)


def with_second(prediction, by):
    return frame_of(prediction).assign(other=by.to_numpy())


def same_counts(units, wanted):
    """Values and references of metrics, of which assisted estimates are made."""
    (found,) = eb.auxiliary.Second.scanned(units)
    position = [one.position(units) for one in (found, wanted)]
    np.testing.assert_array_equal(*position)
    assert found.count @ found.whole.size == wanted.whole.n.sum() and found.count.sum() == len(wanted.whole)
    for metric in SOME:
        np.testing.assert_allclose(found.value(metric), wanted.value(metric), **EXACT)
        own, memory = (s.reference(metric, p) for s, p in zip((found, wanted), position, strict=True))
        np.testing.assert_allclose(own.values, memory.values, **EXACT)
        np.testing.assert_allclose(own.out_of_reach, memory.out_of_reach, **EXACT)
    return found


def same(units, wanted, labels, design=None):
    """Counts, and assisted estimates of all metrics."""
    found = same_counts(units, wanted)
    sample = eb.Sample(units, design or eb.UniformClusters())
    tables = [eb.auxiliary.Assisted(s)(sample, m.ALL).table() for s in (found, wanted)]
    pd.testing.assert_frame_equal(*tables, rtol=1e-9)
    return tables[0]


@pytest.mark.parametrize(("source", "kind"), in_turn(0))
def test_every_source_counts_a_column_as_memory_does(source, kind, tmp_path):
    prediction, labels, _ = population(3, kind=kind)
    by = other(prediction, kind=kind)
    table = SOURCES[source](with_second(prediction, by), tmp_path)
    units = scan(table, labels, NAMED, missing=eb.Missing.OMIT, seconds=BESIDE)
    same_counts(units, eb.auxiliary.Second.of(prediction, labels, by, missing=eb.Missing.OMIT))


@pytest.mark.parametrize(("source", "kind"), in_turn(1, {"relation", "sqlite"}))
def test_every_second_table_counts_as_memory_does(source, kind, tmp_path):
    prediction, labels, _ = population(5, kind=kind)
    by = other(prediction, kind=kind)
    more = pd.concat(
        [by, pd.Series(by.iloc[:3].to_numpy(), [i * 2 for i in by.index[:3]])]
    )  # records of its own
    table = SOURCES[source](frame_of(more.sample(frac=1, random_state=1)), tmp_path)
    units = scan(prediction, labels, missing=eb.Missing.OMIT, seconds={"by": SecondSource(table)})
    same_counts(units, eb.auxiliary.Second.of(prediction, labels, by, missing=eb.Missing.OMIT))
    assert eb.auxiliary.Second.scanned(units)[0].left_out == (~more.index.isin(prediction.index)).sum()


# seeds have blocks or not, and a frame or not: each pair of these and of a database
@pytest.mark.parametrize(
    ("database", "seed"),
    [
        (database, seed)
        for database, seeds in (
            (DuckDB(), (0, 3)),
            (DuckDB(keep=False), (1, 2)),
            (DuckDB(one_in=1), (0, 3)),
        )
        for seed in seeds
    ],
)
def test_blocks_frames_and_groups(database, seed):
    prediction, labels, blocks = population(seed, 90, lacking=0)
    by, frame = other(prediction), prediction.index[:80].union(labels.index)
    country = pd.Series(np.where(np.arange(len(prediction)) % 3, "FR", "US"), prediction.index)
    table = with_second(prediction, by).assign(country=country.to_numpy())
    options = {"blocks": blocks if seed % 2 else None, "frame": frame if seed > 1 else None}
    units = scan(table, labels, NAMED, groups="country", seconds=BESIDE, database=database, **options)
    same(units, eb.auxiliary.Second.of(prediction, labels, by, **options), labels)
    wanted = scan(table.drop(columns="other"), labels, NAMED, groups="country", **options)
    np.testing.assert_array_equal(units.groupings[0].counted, wanted.groupings[0].counted)


def test_several_at_once_and_plain_sql_with_short_lists():
    prediction, labels, _ = population(1, 90, "hostile", lacking=0)
    first, second = other(prediction, 1, "hostile"), other(prediction, 2, "integers")
    table = with_second(prediction, first).assign(third=second.to_numpy())
    engine = sqlite(table)
    engine = RunSQL(engine.run, engine.name, dialect=Dialect.SQLITE, longest=50)
    both = {"first": SecondSource(cluster="other"), "second": SecondSource(cluster="third")}
    for source in (engine, table):
        found = eb.auxiliary.Second.scanned(scan(source, labels, NAMED, seconds=both))
        for one, by in zip(found, (first, second), strict=True):
            wanted = eb.auxiliary.Second.of(prediction, labels, by)
            np.testing.assert_allclose([one.value(x) for x in SUMS], [wanted.value(x) for x in SUMS], **EXACT)
    assert [one.name for one in found] == ["first", "second"]


def test_spark_counts_as_memory_does(spark):  # noqa: F811
    prediction, labels, _ = population(2, 90, "hostile", lacking=0)
    by = other(prediction, kind="hostile")
    rows = with_second(prediction, by).to_numpy().tolist()
    frame = spark.createDataFrame(rows, ["record", "cluster", "other"])
    same(scan(frame, labels, NAMED, seconds=BESIDE), eb.auxiliary.Second.of(prediction, labels, by), labels)
    with pytest.raises(eb.DataError, match="takes no second table, such as that of 'by'"):
        scan(frame, labels, NAMED, seconds={"by": SecondSource(frame)})
    assert not spark.catalog.listTables()


def test_postgresql_counts_as_memory_does(postgres):  # noqa: F811
    prediction, labels, _ = population(2, 90, "hostile", lacking=0)
    by = other(prediction, kind="hostile")
    with postgres.cursor() as cursor:
        cursor.execute('CREATE TABLE p (record text, cluster text COLLATE "C", other text)')
        with cursor.copy("COPY p FROM STDIN") as copy:
            for row in with_second(prediction, by).itertuples(index=False):
                copy.write_row(row)
    table = RunSQL(lambda sql: postgres.execute(sql).fetchall(), "p")
    same(scan(table, labels, NAMED, seconds=BESIDE), eb.auxiliary.Second.of(prediction, labels, by), labels)


def three(kind, seed=3):
    """Predictions of the same records with labels, the last of which all have, and a second clustering of each."""
    prediction, labels, _ = population(seed, 90, kind, lacking=0)
    releases = {"a": prediction, "b": other(prediction, 7, kind), "c": other(prediction, 8, kind)}
    return releases, labels, {name: other(p, 9 + i, kind) for i, (name, p) in enumerate(releases.items())}


@pytest.mark.parametrize(
    ("source", "kind"),
    [("pandas", "hostile"), ("parquet", "integers"), ("sqlite", "hostile"), ("relation", "strings")],
)
def test_every_release_has_its_second_column(source, kind, tmp_path):
    releases, labels, seconds = three(kind)
    rows = [with_second(p, seconds[name]).assign(v=name) for name, p in releases.items()]
    table = SOURCES[source](pd.concat(rows).sample(frac=1, random_state=0), tmp_path)
    found = scan(Releases(table, "v"), labels, NAMED, seconds=BESIDE)
    assert set(found) == set(releases)
    for name, units in found.items():
        same_counts(units, eb.auxiliary.Second.of(releases[name], labels, seconds[name]))


@pytest.mark.parametrize("database", [DuckDB(), DuckDB(keep=False)])
def test_a_second_table_serves_every_release_of_any_type(database):
    releases, labels, seconds = three("strings")
    by, days = seconds["a"], [date(2021, 1, 1), date(2021, 7, 1), date(2022, 1, 1)]
    rows = [
        pa.Table.from_pandas(frame_of(p), preserve_index=False).append_column("v", pa.array([day] * len(p)))
        for day, p in zip(days, releases.values(), strict=True)
    ]
    country = pd.Series(np.where(np.arange(len(by)) % 3, "FR", "US"), by.index)
    found = scan(
        Releases(pa.concat_tables(rows), "v"),
        labels,
        NAMED,
        groups=GroupSource(pd.DataFrame({"record": by.index, "country": country.to_numpy()}), "country"),
        seconds={"by": SecondSource(by)},
        database=database,
    )
    for day, prediction in zip(days, releases.values(), strict=True):
        same_counts(found[day], eb.auxiliary.Second.of(prediction, labels, by))
        wanted = eb.by_domain(
            eb.Sample(eb.measure(prediction, labels), eb.UniformClusters()), country, prediction=prediction
        )
        own = eb.by_domain(eb.Sample(found[day], eb.UniformClusters()), "country")
        pd.testing.assert_frame_equal(own.table(), wanted.table(), rtol=1e-9)


def test_releases_that_differ_in_their_records_have_seconds_of_the_common_ones():
    releases, labels, seconds = three("hostile")
    kept = {n: p.drop(index=p.index[i::17]) for i, (n, p) in enumerate(releases.items())}
    shared = [r for r in labels.index.union(releases["a"].index) if all(r in p.index for p in kept.values())]
    rows = [with_second(p, seconds[n].loc[p.index]).assign(v=n) for n, p in kept.items()]
    found = scan(Releases(pd.concat(rows), "v", common=True), labels, NAMED, seconds=BESIDE)
    for name, prediction in kept.items():
        own = prediction.loc[shared]
        wanted = eb.auxiliary.Second.of(own, labels, seconds[name], missing=eb.Missing.OMIT)
        same(found[name], wanted, labels)


@pytest.mark.parametrize(
    ("kind", "framed"), [("strings", True), ("integers", False), ("hostile", False), ("hostile", True)]
)
def test_common_records_have_second_tables_and_columns(kind, framed, tmp_path):
    releases, labels, seconds = three(kind)
    frame = labels.index.union(releases["a"].index[:150]) if framed else None
    kept = {
        n: p.drop(index=p.index.difference(labels.index)[i::17]) for i, (n, p) in enumerate(releases.items())
    }
    shared = [r for r in kept["a"].index if all(r in p.index for p in kept.values())]
    table = seconds["a"].loc[shared].sample(frac=1, random_state=0)
    sources = {n: with_second(p, seconds[n].loc[p.index]) for n, p in kept.items()}
    sources["b"].to_parquet(tmp_path / "b.parquet", index=False)
    found = scan(
        sources | {"b": tmp_path / "b.parquet"},
        labels,
        NAMED,
        frame=frame,
        seconds={"table": SecondSource(table), "own": SecondSource(cluster="other")},
    )
    for name, units in found.items():
        for second, by in zip(eb.auxiliary.Second.scanned(units), (table, seconds[name]), strict=True):
            options = {"missing": eb.Missing.OMIT, "frame": frame}
            wanted = eb.auxiliary.Second.of(kept[name].loc[shared], labels, by, **options)
            one = replace(units, seconds=tuple(s for s in units.seconds if s.name == second.name))
            same_counts(one, wanted)


@pytest.mark.parametrize("seconds", [None, BESIDE])
def test_a_release_without_labelled_records_is_refused(seconds):
    prediction, labels, _ = population(3)
    table = pd.concat([with_second(prediction, other(prediction)).assign(v=name) for name in "abc"])
    table = table[(table["v"] != "b") | ~table["record"].isin(labels.index)]
    alone = table[table["v"] == "b"].drop(columns="v")
    options = {"columns": NAMED, "missing": eb.Missing.OMIT, "seconds": seconds}
    with pytest.raises(eb.DataError, match="none of the labelled records is in the prediction"):
        scan(Releases(table, "v"), labels, **options)
    with pytest.raises(eb.DataError, match="none of the labelled records is in the prediction"):
        scan(alone, labels, **options)


@pytest.mark.parametrize("share", [1, 7])
def test_parts_that_are_counted_in_turn_are_the_whole(share, monkeypatch):
    monkeypatch.setattr("erbayes.large.duckdb.PART", share)  # some of many parts are empty, few of few
    releases, labels, seconds = three("strings")
    some = releases["a"].index[:15]
    labels = labels[labels.index.isin(some)]
    releases, seconds = ({name: x.loc[some] for name, x in of.items()} for of in (releases, seconds))
    rows = [with_second(p, seconds[name]).assign(v=name) for name, p in releases.items()]
    for name, units in scan(Releases(pd.concat(rows), "v"), labels, NAMED, seconds=BESIDE).items():
        same_counts(units, eb.auxiliary.Second.of(releases[name], labels, seconds[name]))


def test_integers_of_two_types_stay_exact():
    """One statement returns integers that have a sign, and another larger ones that have none."""
    n = 64
    by = pd.Series([2**62 + i // 4 for i in range(n - 8)] + [2**63 + 2**10 + 1] * 4 + [2**63 + 2**10 + 2] * 4)
    by.iloc[: n - 8] = [2**62 + i // 2 for i in range(n - 8)]
    prediction = pd.Series([2**62 + i // 3 for i in range(n)])
    labels = pd.Series(["e"] * 4, range(4))
    table = pa.table(
        {
            "record": np.arange(n),
            "cluster": prediction.to_numpy(),
            "other": pa.array(by.to_list(), pa.uint64()),
            "v": pa.array([date(2021, 1, 1)] * n),
        }
    )
    wanted = eb.auxiliary.Second.of(prediction, labels, by)
    (units,) = scan(Releases(table, "v"), labels, NAMED, seconds=BESIDE).values()
    same(units, wanted, labels)
    with duckdb.connect() as connection:
        connection.register("p", table)
        source = RunSQL(lambda sql: connection.execute(sql).fetchall(), "p")
        same(scan(source, labels, NAMED, seconds=BESIDE), wanted, labels)


def test_clusters_that_are_alike_leave_the_database_as_one_row():
    rng = np.random.default_rng(0)
    truth = sim.population(sim.LogNormal(0.5, 1.0), 20_000, rng)
    prediction = pd.Series(sim.Misattribution(0.1).apply(truth.to_numpy(), rng), truth.index)
    by = pd.Series(sim.Misattribution(0.02).apply(truth.to_numpy(), rng), truth.index)
    drawn = truth.sample(100, replace=True, random_state=rng)
    labels, design = truth[truth.isin(drawn)], eb.UniformRecords(list(drawn))
    units = scan(prediction, labels, seconds={"by": SecondSource(by)})
    (joint,) = units.seconds
    wanted = eb.auxiliary.Second.of(prediction, labels, by)
    assert len(joint.n) < 0.5 * len(wanted.whole.n)
    table = same(units, wanted, labels, design)
    assert table["lambda"].max() > 0.8


def test_pieces_of_equal_size_do_not_cancel_in_fingerprints():
    """Two pieces alike in a cluster, against none, and against four."""
    prediction = pd.Series(list("aabbccddeeffgghhiijj"), range(20))
    by = pd.Series([0] * 4 + [1] * 8 + [2] * 6 + [3] * 2, range(20))
    labels = pd.Series([0, 0], [18, 19])
    units = scan(prediction, labels, seconds={"by": SecondSource(by)})
    (found,), wanted = eb.auxiliary.Second.scanned(units), eb.auxiliary.Second.of(prediction, labels, by)
    for metric in SUMS:
        np.testing.assert_allclose(found.value(metric), wanted.value(metric), **EXACT)
    assert sorted(found.count * found.whole.size) == [2, 4, 6, 8]


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(5)
    truth = sim.population(sim.LogNormal(0.5, 1.0), 3000, rng)
    truth.index = [f"r{i}" for i in truth.index]
    prediction = pd.Series(sim.Misattribution(0.2).apply(truth.to_numpy(), rng), truth.index).astype(str)
    by = pd.Series(sim.Misattribution(0.02).apply(truth.to_numpy(), rng), truth.index).astype(str)
    drawn = truth.sample(150, replace=True, random_state=rng).astype(str)
    labels = truth.astype(str)[truth.astype(str).isin(drawn)]
    frame_of(prediction).to_parquet("old.parquet", index=False)
    frame_of(by).to_csv("new.csv", index=False)
    with_second(prediction, by).to_parquet("both.parquet", index=False)
    with duckdb.connect("x.duckdb") as connection:
        connection.execute("CREATE TABLE pair AS SELECT * FROM 'both.parquet'")
    Path("folder").mkdir()
    frame_of(by).to_parquet("folder/a.parquet", index=False)
    frame_of(labels).to_csv("labels.csv", index=False)
    drawn.rename("unit").to_csv("drawn.csv", index=False)
    return prediction, by, labels, eb.UniformRecords(list(drawn))


@pytest.mark.parametrize(
    "prediction, by",
    [
        ("old.parquet", "new.csv"),
        ("old.parquet", {"second": Path("folder")}),
        ("old.parquet", None),
        (None, Path("new.csv")),
        ("both.parquet", SecondSource(cluster="other")),
        (DatabaseTable("x.duckdb", "pair"), SecondSource(cluster="other")),
        ("old.parquet", SecondSource("both.parquet", cluster="other")),
        ("old.parquet", SecondSource(DatabaseTable("x.duckdb", "pair"), "other", "record")),
    ],
)
def test_assisted_takes_files_and_tables(files, prediction, by):
    clusters, second, labels, design = files
    if isinstance(by, SecondSource) and by.record == "record":
        by = SecondSource(by.source, cluster="other", record="record")
    elif isinstance(by, SecondSource) and isinstance(by.source, DatabaseTable):
        by = SecondSource(by.source, cluster="other", record="record")
    found = eb.assisted(
        clusters if prediction is None else prediction,
        labels,
        design,
        eb.metrics.ALL,
        by=second if by is None else by,
    )
    wanted = eb.assisted(clusters, labels, design, eb.metrics.ALL, by=second)
    pd.testing.assert_frame_equal(found.table(), wanted.table(), rtol=1e-9)
    assert found.weights.max() > 0.8


def test_scans_are_compared_with_help(files):
    prediction, by, labels, design = files
    table = with_second(prediction, by)
    units = {
        name: scan(table, labels, Columns("record", name), seconds={"third": SecondSource(cluster=helper)})
        for name, helper in (("cluster", "other"), ("other", "cluster"))
    }
    helped = eb.auxiliary.Assisted(
        tuple(s for one in units.values() for s in eb.auxiliary.Second.scanned(one))
    )
    memory = {"cluster": prediction, "other": by}
    found = eb.compare(units, labels, design, "pairwise-recall", engine=helped)
    wanted = eb.compare(
        memory, labels, design, "pairwise-recall", engine=eb.auxiliary.Assisted.of(memory, labels)
    )
    pd.testing.assert_frame_equal(found.differences(), wanted.differences(), rtol=1e-9)


# In the shell

SHELL = (
    "labels.csv",
    "--design",
    "uniform-records",
    "--drawn",
    "drawn.csv",
    "--metrics",
    "all",
    "--format",
    "json",
)


@pytest.mark.parametrize(
    "prediction, options",
    [
        ("old.parquet", ["--assist", "new.csv"]),
        ("old.parquet", ["--assist", "new.csv", "--memory-limit", "1GB"]),
        ("old.parquet", ["--assist", "folder", "--memory-limit", "1GB"]),
        ("old.parquet", ["--assist", "both.parquet", "--assist-cluster", "other", "--memory-limit", "1GB"]),
        ("both.parquet", ["--cluster", "cluster", "--assist-cluster", "other"]),
        ("both.parquet", ["--cluster", "cluster", "--assist-cluster", "other", "--memory-limit", "1GB"]),
        ("x.duckdb", ["--table", "pair", "--cluster", "cluster", "--assist-cluster", "other"]),
    ],
)
def test_the_shell_is_python(files, prediction, options):
    clusters, second, labels, design = files
    several = any(name in " ".join([prediction, *options]) for name in ("both", "pair"))
    named = ["--record", "record"] if several else []
    named += ["--entity", "cluster"] if named else []
    if prediction == "old.parquet" and named:
        named += ["--cluster", "cluster"]
    shown = run("estimate", prediction, *SHELL, *options, *named)
    assert shown.exit_code == 0, shown.output
    rows = pd.DataFrame(json.loads(shown.stdout)["estimates"])
    wanted = eb.assisted(clusters, labels, design, eb.metrics.ALL, by=second).table()
    for name in ("estimate", "lower", "upper", "lambda"):
        np.testing.assert_allclose(rows[name].to_numpy(dtype=float), wanted[name], rtol=1e-9)
    scanned = "--memory-limit" in options or "--table" in options
    echo = "assist: scanned 3,000 records" if scanned else "assist: read 3,000 records"
    assert echo in shown.stderr


@pytest.fixture
def three_files(files):
    """Two predictions of the same records, and a slow one that helps."""
    prediction, by, *_ = files
    slow = by.where(np.random.default_rng(3).random(len(by)) > 0.01, "s" + by)
    frame_of(by).to_parquet("new.parquet", index=False)
    frame_of(slow).to_parquet("slow.parquet", index=False)
    whole = frame_of(prediction).assign(new=by.to_numpy(), slow=slow.to_numpy())
    whole.to_parquet("whole.parquet", index=False)
    with duckdb.connect("three.duckdb") as connection:
        for name in ("old", "new", "slow", "whole"):
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM '{name}.parquet'")
    return files, slow


SCAN = ["--memory-limit", "1GB"]
TABLES = ["--table", "old", "--table", "new"]
COLUMNS = ["--cluster", "cluster", "--cluster", "new", "--record", "record", "--entity", "cluster"]


@pytest.mark.parametrize(
    "predictions, options",
    [
        ("old.parquet new.parquet", ["--assist", "slow.parquet"]),
        ("old.parquet new.parquet", ["--assist", "slow.parquet", *SCAN]),
        ("old.parquet new.parquet", ["--assist", "slow.parquet", "--missing", "common"]),
        ("old.parquet new.parquet", ["--assist", "slow.parquet", "--missing", "common", *SCAN]),
        ("three.duckdb", ["--assist", "slow.parquet", *TABLES]),
        ("whole.parquet", ["--assist-cluster", "slow", *COLUMNS]),
        ("whole.parquet", ["--assist-cluster", "slow", *COLUMNS, *SCAN]),
        ("whole.parquet", ["--assist-cluster", "slow", *COLUMNS, "--missing", "common", *SCAN]),
        ("three.duckdb", ["--table", "whole", "--assist-cluster", "slow", *COLUMNS]),
    ],
)
def test_compare_with_help_is_python(three_files, predictions, options):
    (prediction, new, labels, design), slow = three_files
    shown = run("compare", *predictions.split(), *SHELL, *options)
    assert shown.exit_code == 0, shown.output
    rows = pd.DataFrame(paired(shown))
    both = {"old": prediction, "new": new}
    engine = eb.auxiliary.Assisted.of(both, labels, by={"slow": slow})
    wanted = eb.compare(both, labels, design, eb.metrics.ALL, engine=engine).differences()
    assert set(rows["method"]) == {"assisted"}
    for name in ("estimate", "lower", "upper"):
        np.testing.assert_allclose(rows[name].to_numpy(dtype=float), wanted[name], rtol=1e-9, atol=1e-12)
    scanned = "--memory-limit" in options or "--table" in options
    assert shown.stderr.count("scanned 3,000 records in") == (2 if scanned else 0)
    assert shown.stderr.count("assist: read 3,000 records") == (0 if scanned else 1)
    plain = eb.compare(both, labels, design, eb.metrics.ALL).differences()
    assert (wanted["se"] < 0.9 * plain["se"]).any()


@pytest.mark.parametrize("options", [[], SCAN, ["--missing", "common"], ["--missing", "common", *SCAN]])
def test_each_prediction_may_help_the_other(three_files, options):
    (prediction, new, labels, design), _ = three_files
    both = {"old": prediction, "new": new}
    if "common" in options:
        both = {"old": prediction.iloc[50:], "new": new.drop(index=new.index[100:140])}
        for name, one in both.items():
            frame_of(one).to_parquet(f"{name}.parquet", index=False)
        frame_of(prediction).to_parquet("o.parquet", index=False)
        frame_of(new).to_parquet("n.parquet", index=False)
    helpers = ["o.parquet", "n.parquet"] if "common" in options else ["old.parquet", "new.parquet"]
    helpers = [word for name in helpers for word in ("--assist", name)]
    shown = run("compare", "old.parquet", "new.parquet", *SHELL, *helpers, *options)
    assert shown.exit_code == 0, shown.output
    rows = pd.DataFrame(paired(shown))
    policy = eb.Missing.COMMON if "common" in options else eb.Missing.ERROR
    engine = eb.auxiliary.Assisted.of(both, labels, by={"old": prediction, "new": new}, missing=policy)
    wanted = eb.compare(both, labels, design, eb.metrics.ALL, engine=engine, missing=policy).differences()
    for name in ("estimate", "lower", "upper"):
        np.testing.assert_allclose(rows[name].to_numpy(dtype=float), wanted[name], rtol=1e-9, atol=1e-12)


def test_refusals_of_compare(three_files):
    both = ("compare", "old.parquet", "new.parquet", *SHELL)
    assert "--by takes no second clustering" in refused(*both, "--assist", "slow.parquet", "--by", "x")
    said = refused(*both, "--assist", "three.duckdb", *SCAN)
    assert "--assist three.duckdb is a DuckDB database: write its table to a file" in said
    said = refused(*both, "--assist-cluster", "slow")
    assert "of which there are 2 files: name a file by --assist" in said
    frame = pd.read_parquet("slow.parquet")
    frame[["cluster", "record"]].set_axis(["c", "i"], axis=1).to_parquet("turned.parquet", index=False)
    said = refused(*both, "--assist", "turned.parquet", "--assist-cluster", "c", *SCAN)
    assert "'c' is the column of records of the second clustering 'turned'" in said
    assert "name both: --record, which is one name for all files, and --assist-cluster" in said
    said = refused(*both, "--assist", "slow.parquet", "--output", "slow.parquet")
    assert "cannot write slow.parquet" in said


# Refusals


def lacking(frame, by):
    return scan(frame, {"a": "e"}, seconds={"by": by})


FRAME = pd.DataFrame({"record": list("abcd"), "cluster": list("xxyy")})


@pytest.mark.parametrize(
    "work, message",
    [
        (
            lambda: lacking(FRAME, SecondSource(FRAME[:3])),
            "second clustering 'by' is missing 1 of 4 records of the prediction, such as 'd', and must cover all",
        ),
        (
            lambda: scan(
                FRAME.assign(o=["1", None, "2", "2"]),
                {"a": "e"},
                NAMED,
                seconds={"o": SecondSource(cluster="o")},
            ),
            "second clustering 'o' is missing 1 of 4 records of the prediction, such as 'b'",
        ),
        (
            lambda: lacking(FRAME, SecondSource(pd.concat([FRAME, FRAME[1:3]]))),
            "record ids of the second clustering 'by': 2 duplicates, such as 'b', 'c'",
        ),
        (
            lambda: lacking(FRAME, SecondSource(pd.DataFrame({"r": [1, 2], "c": [1, 2]}))),
            "those of the second clustering 'by' of type integer",
        ),
        (
            lambda: lacking(FRAME, SecondSource(FRAME.assign(cluster=[0.5, 1, 2, 3]))),
            "cluster ids of the second clustering 'by' must be all strings or all integers, not DOUBLE",
        ),
        (
            lambda: lacking(FRAME, SecondSource(pd.concat([FRAME, FRAME.assign(record=None)[:3]]))),
            "record ids of the second clustering 'by': 3 of 7 are missing: fill them in",
        ),
        (
            lambda: lacking(FRAME, SecondSource(FRAME.rename(columns={"cluster": "c"}).assign(more=1))),
            "'by' has 3 columns, 'record', 'c', 'more', not 2; name both: SecondSource",
        ),
        (
            lambda: lacking(FRAME, SecondSource(FRAME, cluster="z")),
            "the second clustering 'by' has no column 'z'; it has 'record', 'cluster'",
        ),
        (
            lambda: scan(FRAME, {"a": "e"}, NAMED, seconds={"o": SecondSource(cluster="o")}),
            "the prediction has no column 'o'; it has 'record', 'cluster'",
        ),
        (
            lambda: scan(FRAME, {"a": "e"}, NAMED, seconds={"o": SecondSource(cluster="cluster")}),
            "one column cannot serve twice",
        ),
        (
            lambda: scan(sqlite(FRAME), {"a": "e"}, NAMED, seconds={"by": SecondSource(FRAME)}),
            "a table with a database of its own takes no second table, such as that of 'by'",
        ),
        (
            lambda: scan(
                Releases(pd.concat([FRAME.assign(v="old"), FRAME.assign(v="new")]), "v"),
                {"a": "e"},
                NAMED,
                seconds={"b": SecondSource(FRAME[1:])},
            ),
            "second clustering 'b' is missing 1 of 4 records of '(old|new)', such as 'a'",
        ),
        (
            lambda: scan({"p": FRAME, "q": FRAME}, {"a": "e"}, seconds={"b": SecondSource(cluster="z")}),
            "the prediction has no column 'z'",
        ),
        (
            lambda: scan(
                {"p": FRAME.assign(z=[0.5, 1, 2, 3])},
                {"a": "e"},
                NAMED,
                seconds={"b": SecondSource(cluster="z")},
            ),
            "cluster ids of the second clustering 'b' must be all strings or all integers, not DOUBLE",
        ),
        (
            lambda: scan({"p": FRAME}, {"a": "e"}, seconds={"by": SecondSource(sqlite(FRAME))}),
            "a table with a database of its own takes no second table, such as that of 'by'",
        ),
        (
            lambda: lacking(
                FRAME, SecondSource(FRAME[["cluster", "record"]].set_axis(["c", "i"], axis=1), "c")
            ),
            "'c' is the column of records of the second clustering 'by', and cannot be that of clusters too: "
            "it has 'c', 'i'; name both: SecondSource",
        ),
        (lambda: scan(FRAME, {"a": "e"}, seconds=FRAME), "seconds must map names to second clusterings"),
        (lambda: scan(FRAME, {"a": "e"}, seconds={"b": FRAME}), r"seconds\['b'\] must be a SecondSource"),
        (
            lambda: scan(FRAME, {"a": "e"}, missing=eb.Missing.SINGLETON, seconds={"b": SecondSource(FRAME)}),
            r"leave them out: missing=Missing\.OMIT",
        ),
        (lambda: SecondSource(), "a second clustering is a table or a column"),
        (lambda: SecondSource(cluster="c", record="r"), "record= is a column of a second table"),
        (
            lambda: eb.auxiliary.Second.scanned(scan(FRAME, {"a": "e"})),
            "no second clustering was counted with these units",
        ),
        (
            lambda: eb.auxiliary.Second.scanned(eb.measure(FRAME, {"a": "e"})),
            "no second clustering was counted with these",
        ),
        (
            lambda: eb.auxiliary.Assisted.of({"p": Path("p.parquet"), "q": FRAME}, {"a": "e"}),
            "'p' lies in files or tables: scan each prediction",
        ),
    ],
)
def test_what_is_wrong_is_said(work, message):
    with pytest.raises(eb.DataError, match=message):
        work()


def test_a_part_of_the_labelled_units_is_refused_if_larger_clusters_came_as_kinds():
    sizes = [32, 31, 30, 29, 28, 20] + [2] * 40
    truth = pd.Series(np.repeat(np.arange(len(sizes)), sizes))
    prediction = truth.where(truth.index % 5 != 0, -truth.index)
    labels = truth[truth.isin([1, 4, 9, 10, 11, 12])]
    units = scan(prediction, labels, seconds={"by": SecondSource(truth)})
    (found,) = eb.auxiliary.Second.scanned(units)
    wanted = eb.auxiliary.Second.of(prediction, labels, truth)
    for keep in ([0, 1, 2, 3, 4, 5], [0, 2, 4]):
        np.testing.assert_allclose(
            found.reference(m.b3_recall, np.array(keep)).values,
            wanted.reference(m.b3_recall, np.array(keep)).values,
            **EXACT,
        )
    with pytest.raises(eb.DataError, match="scan for its labels alone"):
        found.reference(m.b3_recall, np.array([1, 3, 4]))


def test_parts_of_predicted_giants_come_one_by_one():
    """They are no larger than touched clusters, but out of reach (see `Second.reference`)."""
    sizes = [90, 60, 60, 60] + [3] * 60
    truth = pd.Series(np.repeat(np.arange(len(sizes)), sizes))
    by = truth.where(truth != 0, 10**6 + truth.index % 9)
    labels = truth[truth.isin([1, 2, 3, 9])]
    units = scan(truth, labels, seconds={"by": SecondSource(by)})
    same(units, eb.auxiliary.Second.of(truth, labels, by), labels)
    (found,) = eb.auxiliary.Second.scanned(units)
    reference = found.reference(m.b3_precision, found.position(units))
    assert reference.out_of_reach == pytest.approx(90 / sum(sizes))


def test_only_clusters_larger_than_the_reached_ones_come_one_by_one():
    """An entity of 50 records reaches the largest of its five clusters, with all of its records."""
    sizes = [50, 11, 9, 8, 7] + [3] * 60
    truth = pd.Series(np.repeat(np.arange(len(sizes)), sizes))
    by = truth.where(truth != 0, 10**6 + truth.index % 5)
    units = scan(truth, truth[truth == 0], seconds={"by": SecondSource(by)})
    (found,) = eb.auxiliary.Second.scanned(units)
    one_by_one = found.whole.size[np.unique(found.whole.unit[found.whole.cluster >= 0])]
    assert sorted(one_by_one) == [10] * 5 + [11]


def test_a_table_that_changes_is_refused():
    database = sqlite3.connect(":memory:")
    prediction, labels, _ = population(1, 90, lacking=0)
    with_second(prediction, other(prediction)).to_sql("p", database, index=False)

    def run(sql):
        if "SUM(n)" in sql:
            database.execute("DELETE FROM p WHERE record = ?", [labels.index[0]])
        return database.execute(sql).fetchall()

    with pytest.raises(eb.DataError, match="the pieces of the second clustering 'by' do not add up"):
        scan(RunSQL(run, "p", dialect=Dialect.SQLITE), labels, NAMED, seconds=BESIDE)


def test_refusals_of_the_shell(files):
    both = ("estimate", "both.parquet", *SHELL, "--record", "record", "--entity", "cluster")
    said = refused(*both, "--cluster", "cluster", "--assist-cluster", "z")
    assert "has no column 'z'" in said
    said = refused("estimate", "old.parquet", *SHELL, "--assist", "x.duckdb", "--memory-limit", "1GB")
    assert "--assist x.duckdb is a DuckDB database: write its table to a file" in said
    said = refused("estimate", "old.parquet", *SHELL, "--assist", "folder")
    assert "--assist folder is a folder" in said


def test_a_first_line_that_is_no_heading_is_refused(files):
    """So is a heading below the first line: neither loses a record nor makes one."""
    prediction, _, labels, _ = files
    largest = prediction == prediction.value_counts().index[0]
    rows = frame_of(prediction[(~largest).sort_values(kind="stable").index]).to_csv(index=False).splitlines()
    Path("bare.csv").write_text("\n".join(rows[1:]))
    Path("twice.csv").write_text("\n".join([*rows[:9], rows[0], *rows[9:]]))
    Path("once.csv").write_text("\n".join(rows))
    scan(Path("once.csv"), labels, seconds={"by": SecondSource(Path("once.csv"))})
    for name in ("bare.csv", "twice.csv"):
        with pytest.raises(eb.DataError, match=r"the prediction: .* in the column of this name"):
            scan(Path(name), labels)
        with pytest.raises(eb.DataError, match=r"the second clustering 'by': .* in the column of this name"):
            scan(Path("once.csv"), labels, seconds={"by": SecondSource(Path(name))})
        with (
            pytest.raises(eb.DataError, match=r"the prediction: .* in the column of this name"),
            drawing(Path(name)),
        ):
            pass
        with pytest.raises(eb.DataError, match=r"the prediction: .* in the column of this name"):
            scan({"p": Path("once.csv"), "q": Path(name)}, labels)


@pytest.mark.parametrize("scanned", [False, True])
def test_other_separators_and_encodings_are_read_or_named(files, scanned):
    table, options = pd.read_csv("new.csv", dtype=str), ["--memory-limit", "1GB"] * scanned
    table.to_csv("semi.csv", index=False, sep=";")
    table.to_csv("wide.csv", index=False, encoding="utf-16")
    table.assign(record=table["record"].str.upper() + " ").to_csv("upper.csv", index=False)
    for name, said in (
        ("semi.csv", "are its columns separated by ';', not by commas?"),
        ("wide.csv", "it is not text in UTF-8"),
    ):
        if scanned:
            assert said in refused("estimate", name, *SHELL, *options)
            assert said in refused("estimate", "old.parquet", *SHELL, "--assist", name, *options)
            continue
        read, plain = (json.loads(run("estimate", one, *SHELL).stdout) for one in (name, "new.csv"))
        assert read["estimates"] == plain["estimates"]
    said = refused("estimate", "old.parquet", *SHELL, "--assist", "upper.csv", *options)
    wanted = "ids written in another way" if scanned else "are there in another case or with other blanks"
    assert wanted in said and "--frame" not in said
