"""A comparison says the same wherever predictions lie, in numbers, reasons and verdicts."""

import sqlite3
from functools import cache

import numpy as np
import pandas as pd
import pytest
from test_scan import postgres  # noqa: F401

import erbayes as eb
from erbayes.large import Columns, DatabaseTable, Dialect, RunSQL, scan

pytestmark = pytest.mark.slow

duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
NAMES = Columns("record", "cluster")


def split(rng, clusters, rate):
    """Clusters of which some records are alone."""
    alone = rng.random(len(clusters)) < rate
    return np.where(alone, 10**6 * rng.integers(1, 99) + np.arange(len(clusters)), clusters)


def make(name, records=3000):
    """Two predictions, labels of some entities, and the design, where what both share decides."""
    rng = np.random.default_rng(["giants", "good", "settled", "tail"].index(name))
    records = 240 if name == "settled" else records
    size = {"tail": np.minimum(rng.zipf(1.8, records), 400), "giants": rng.choice([1, 2, 3, 900], records)}
    size = size.get(name, np.full(records, 3))
    entity = np.repeat(np.arange(records), size)[:records]
    old = split(rng, entity, {"good": 0.002, "settled": 0.1}.get(name, 0.01))
    if name == "giants":
        old = np.where(rng.random(records) < 0.3, 10**9 + entity % 2, old)
    new = split(rng, old, {"good": 0.001, "tail": 0.002}.get(name, 0.02))
    number = entity.max() + 1
    drawn = rng.choice(number, int(number * (0.8 if name == "settled" else 0.05)) + 12, replace=False)
    labelled = np.flatnonzero(np.isin(entity, drawn))
    predictions = {n: pd.Series(c, range(records)) for n, c in (("old", old), ("new", new))}
    return predictions, pd.Series(entity[labelled], labelled), eb.UniformClusters(population=int(number))


POPULATIONS = {name: make(name) for name in ("giants", "good", "settled", "tail")}


@cache
def in_memory(name):
    """What a comparison in memory says."""
    found = eb.compare(*POPULATIONS[name], eb.metrics.ALL)
    return found.table(), found.sentence()


def same(found, name):
    """All numbers, kinds and reasons, and the verdict, are those of memory."""
    table, sentence = in_memory(name)
    pd.testing.assert_frame_equal(found.table(), table, rtol=1e-12, atol=1e-12)
    assert found.sentence() == sentence


def frame_of(prediction):
    return pd.DataFrame({"record": prediction.index, "cluster": prediction.to_numpy()})


def in_files(predictions, folder):
    for name, prediction in predictions.items():
        frame_of(prediction).sample(frac=1, random_state=1).to_parquet(folder / f"{name}.parquet")
    return {name: folder / f"{name}.parquet" for name in predictions}


def in_one_database(predictions, folder):
    with duckdb.connect(folder / "x.duckdb") as connection:
        for name, prediction in predictions.items():
            connection.register("f", frame_of(prediction))
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM f")
    return {name: DatabaseTable(folder / "x.duckdb", name) for name in predictions}


def in_sqlite(predictions, folder):
    database = sqlite3.connect(":memory:")
    for name, prediction in predictions.items():
        frame_of(prediction).to_sql(name, database, index=False)

    def run(sql):
        return database.execute(sql).fetchall()

    # ids in lists of some hundred bytes, of which several name one cell
    return {name: RunSQL(run, name, Dialect.SQLITE, 300, ["record", "cluster"]) for name in predictions}


@pytest.mark.parametrize("lie", [in_files, in_one_database, in_sqlite])
@pytest.mark.parametrize("name", POPULATIONS)
def test_a_comparison_is_the_same_wherever_it_is_counted(name, lie, tmp_path):
    predictions, labels, design = POPULATIONS[name]
    same(eb.compare(lie(predictions, tmp_path), labels, design, eb.metrics.ALL), name)


@pytest.mark.parametrize("name", POPULATIONS)
def test_scans_that_were_finished_apart_are_compared_as_those_in_memory(name, tmp_path):
    predictions, labels, design = POPULATIONS[name]
    scans = {n: scan(frame_of(p), labels) for n, p in predictions.items()}
    same(eb.compare(scans, design=design, metrics=eb.metrics.ALL), name)


def test_a_comparison_is_the_same_in_postgresql(postgres):  # noqa: F811
    predictions, labels, design = POPULATIONS["tail"]
    for name, prediction in predictions.items():
        postgres.execute(f"CREATE TABLE {name} (record bigint, cluster bigint)")
        with postgres.cursor().copy(f"COPY {name} FROM STDIN") as copy:
            for row in prediction.items():
                copy.write_row(row)

    def run(sql):
        return postgres.execute(sql).fetchall()

    tables = {name: RunSQL(run, name, names=["record", "cluster"]) for name in predictions}
    same(eb.compare(tables, labels, design, eb.metrics.ALL), "tail")


def test_records_that_all_share_and_columns_of_one_table(tmp_path):
    """Of three predictions with other records each, also inside a frame."""
    (predictions, labels, design), metrics = POPULATIONS["tail"], eb.metrics.ALL
    old, new = predictions.values()
    three = {"old": old[20:], "new": new[:-300], "third": old[::-1][9:]}
    files, given = in_files(three, tmp_path), {"missing": eb.Missing.COMMON}
    found, wanted = (eb.compare(x, labels, design, metrics, **given).table() for x in (files, three))
    pd.testing.assert_frame_equal(found, wanted, rtol=1e-12)
    frame = old.index[labels.index.min() : 2900].union(labels.index)
    wanted = eb.compare(predictions, labels, design, metrics, frame=frame).table()
    found = eb.compare(in_files(predictions, tmp_path), labels, design, metrics, frame=frame).table()
    pd.testing.assert_frame_equal(found, wanted, rtol=1e-12)
    table = pd.DataFrame(predictions).rename_axis("record").reset_index()
    columns = Columns("record", {"old": "old", "new": "new"})
    scans = scan(dict.fromkeys(predictions, table), labels, columns)
    same(eb.compare(scans, design=design, metrics=metrics), "tail")


def test_predictions_in_other_orders_are_aligned_once():
    predictions, labels, design = POPULATIONS["tail"]
    shuffled = {"old": predictions["old"], "new": predictions["new"].sample(frac=1, random_state=3)}
    text = {name: prediction.rename(str) for name, prediction in shuffled.items()}
    for given, known in ((shuffled, labels), (text, labels.rename(str))):
        same(eb.compare(given, known, design, eb.metrics.ALL), "tail")


# Which differences are shown
def several(number, records=600):
    entity = np.arange(records) // 3
    names = [f"m{i:02d}" for i in range(number)]
    predictions = {n: pd.Series(split(np.random.default_rng(i), entity, 0.1)) for i, n in enumerate(names)}
    labelled = np.flatnonzero(np.isin(entity, np.arange(0, records // 3, 4)))
    return predictions, pd.Series(entity[labelled], labelled), eb.UniformClusters(population=records // 3)


def test_of_five_predictions_differences_from_the_first_are_shown_and_others_when_asked():
    found = eb.compare(*several(5), "f1")
    assert [*found.differences()["difference"]] == [f"m0{i} - m00" for i in range(1, 5)]
    every, first = found.differences("all"), found.differences()
    assert len(every) == 10 and len(found.table(pairs="all")) == 15 and len(found.table()) == 9
    pd.testing.assert_frame_equal(every[every["difference"].isin(first["difference"])], first)
    assert len(eb.compare(*several(4), "f1").differences()) == 6
    with pytest.raises(eb.DataError, match="'all', or 'first' for differences from the first, not 'each'"):
        found.differences("each")


def test_scans_count_other_pairs_when_asked(tmp_path):
    predictions, labels, design = several(5)
    files = in_files(predictions, tmp_path)
    found, wanted = (eb.compare(p, labels, design, "precision") for p in (files, predictions))
    pd.testing.assert_frame_equal(found.differences("all"), wanted.differences("all"), rtol=1e-12)
    found = eb.compare(files, labels, design, "precision")
    files["m03"].unlink()
    with pytest.raises(eb.DataError, match=r"m03\.parquet: there is no such file"):
        found.differences("all")


def test_scans_that_share_no_record_are_refused():
    labels, given = {"a": "e", "b": "e"}, {"missing": eb.Missing.OMIT}
    scans = {n: scan(pd.Series("x", [n, f"{n}'s {{}}"], name="c"), labels, **given) for n in "ab"}
    with pytest.raises(eb.DataError, match="cover different records, 2 and 2, of which 0 are in both"):
        eb.compare(scans, design=eb.UniformClusters())
