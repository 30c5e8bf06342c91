"""DataFrames of Spark are counted by their own session, with the units, groups and draws of memory."""

from importlib.util import find_spec

import pandas as pd
import pyarrow as pa
import pytest
from test_draw_elsewhere import same_draw
from test_overlap import POPULATIONS
from test_overlap import same as same_comparison
from test_scan import frame_of, population, same
from test_scan_groups import same as same_groups
from test_scan_groups import variable, with_groups

import erbayes as eb
from erbayes.labels import LinkEnds, PredictedClusters, Records, draw
from erbayes.large import Columns, Dialect, RunSQL, scan

pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    if find_spec("pyspark") is None:
        pytest.skip("pyspark is not installed")
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        # tables of a hundred rows: to compile queries, and Spark itself well, takes longer than to run them
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.pyspark.python", "/bin/false")  # nothing needs a Python worker
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("spark")))
        .getOrCreate()
    )
    yield session
    session.stop()


def to_spark(session, frame, names=None):
    """A DataFrame of Spark by Arrow, as a list would need a Python worker."""
    table = pa.Table.from_pandas(frame, preserve_index=False)
    return session.createDataFrame(table.rename_columns(names or table.column_names))


@pytest.mark.parametrize(
    ("kind", "missing"), [("integers", eb.Missing.SINGLETON), ("hostile", eb.Missing.TOGETHER)]
)
def test_a_dataframe_gives_the_units_and_draws_of_memory(spark, kind, missing):
    prediction, labels, blocks = population(3, 90, kind, 9)
    frame = to_spark(spark, frame_of(prediction), ["rec`ord", "clu ster"])
    found = scan(frame, labels, blocks=blocks, missing=missing)
    same(found, eb.measure(prediction, labels, blocks=blocks, missing=missing))
    for plan in (LinkEnds(), PredictedClusters()):
        same_draw(draw(frame, plan, n=12, seed=5), draw(prediction, plan, n=12, seed=5))
    assert not spark.catalog.listTables()


def test_a_dataframe_is_a_view_behind_sql(spark):
    """The same units, totals and rows as a function that runs the session's SQL."""
    prediction, labels, _ = population(5, 90, "hostile")
    frame = to_spark(spark, frame_of(prediction), ["r", "it's c"])
    frame.createOrReplaceTempView("p")
    table = RunSQL(lambda sql: spark.sql(sql).collect(), "p", Dialect.SPARK)
    one, other = (scan(s, labels, Columns("r", "it's c"), missing=eb.Missing.OMIT) for s in (frame, table))
    spark.catalog.dropTempView("p")
    same(one, other)
    assert one.rows == other.rows == len(prediction)


def test_groups_and_common_records(spark):
    prediction, labels, _ = population(3, lacking=0)
    frame = to_spark(spark, with_groups(prediction, variable(prediction)))
    found = scan(frame, labels, Columns("record", "cluster"), groups="country")
    same_groups(found, eb.measure(prediction, labels), variable(prediction), prediction)
    old, new = prediction[30:], prediction[::-1][9:]
    shared = prediction.index.isin(old.index.intersection(new.index))
    frames = {name: to_spark(spark, frame_of(p)) for name, p in (("old", old), ("new", new))}
    for units in scan(frames, labels).values():
        same(units, eb.measure(prediction[shared], labels, missing=eb.Missing.OMIT))


def test_a_comparison_is_that_of_memory(spark):
    predictions, labels, design = POPULATIONS["settled"]
    frames = {name: to_spark(spark, frame_of(p)) for name, p in predictions.items()}
    same_comparison(eb.compare(frames, labels, design, eb.metrics.ALL), "settled")
    assert not spark.catalog.listTables()


def test_what_is_wrong_is_found(spark):
    frame = to_spark(spark, pd.DataFrame({"id": ["a", "a", "b"], "c": ["x", "y", None]}))
    with pytest.raises(
        eb.DataError, match="cluster ids of the prediction: 1 of 3 are missing, such as where 'id'"
    ):
        draw(frame, Records(), n=5, seed=1)
    with pytest.raises(eb.DataError, match="1 duplicates, such as 'a'"):
        scan(frame.dropna(), {"a": "e"})
    with pytest.raises(eb.DataError, match="not float"):
        scan(frame.selectExpr("CAST(1.5 AS DOUBLE) AS id", "c"), {"a": "e"})
    with pytest.raises(eb.DataError, match="has no column 'recrod'"):
        scan(frame, {"a": "e"}, Columns("recrod", "c"))
    assert not spark.catalog.listTables()
