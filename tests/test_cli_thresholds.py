"""The command `erbayes thresholds` prints what `erbayes.thresholds` and `erbayes.stages` return."""

from io import StringIO

import pandas as pd
import pytest
from test_thresholds_curve import DESIGN, EDGES, LABELS, TRUTH
from typer.testing import CliRunner

import erbayes as eb
from erbayes.cli import app


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    EDGES.to_csv("edges.csv", index=False)
    LABELS.rename("entity").rename_axis("record").to_csv("labels.csv")
    TRUTH.index.to_frame(name="record").to_csv("ids.csv", index=False)
    pd.Series(DESIGN.draws, name="entity").to_csv("drawn.csv", index=False)


def run(*args, design=("--design", "uniform-records", "--drawn", "drawn.csv")):
    return CliRunner().invoke(app, ["thresholds", *args, "labels.csv", *design])


def table_of(result):
    assert result.exit_code == 0, result.output
    return pd.read_csv(StringIO(result.stdout)).fillna({"reason": ""})


def test_the_table_is_that_of_python_with_notes_of_the_best_and_the_certified(files):
    some = ("--at", "6", "--metrics", "pairwise-f1,pairwise-precision", "--min-precision", "0.5")
    result = run("edges.csv", "--records", "ids.csv", *some, "--format", "csv", "--picture", "c.svg")
    curve = eb.thresholds(
        EDGES, LABELS, DESIGN, ["pairwise-f1", "pairwise-precision"], records=TRUTH.index, at=6
    )
    pd.testing.assert_frame_equal(table_of(result), curve.table(), check_dtype=False)
    (best,) = curve.best("pairwise-f1").threshold
    assert f"note: {best:g} has the best estimate of pairwise-f1; the other 5 thresholds are" in result.stderr
    assert f"note: {curve.certified('pairwise-precision', 0.5)}" in result.stderr
    assert "read " in result.stderr and "scores: score of edges.csv" in result.stderr
    with open("c.svg", encoding="utf-8") as picture:
        assert "<svg" in picture.read()


def test_a_minimum_asks_for_its_metric_and_all_thresholds_that_may_be_best_are_counted(files):
    some = ("--at", "40", "--metrics", "pairwise-f1", "--min-precision", "0.5", "--format", "csv")
    result = run("edges.csv", "--records", "ids.csv", *some)
    assert table_of(result).metric.unique().tolist() == ["pairwise-f1", "pairwise-precision"]
    best = eb.thresholds(EDGES, LABELS, DESIGN, records=TRUTH.index, at=40).best("pairwise-f1").threshold
    said = (
        f"{len(best)} of 40 thresholds, from {best.min():g} to {best.max():g}, cannot be told from the best"
    )
    assert len(best) > 1 and said in result.stderr


def test_edges_lie_in_parquet_or_in_a_database(files):
    duckdb = pytest.importorskip("duckdb")
    EDGES.to_parquet("edges.parquet")
    with duckdb.connect("edges.duckdb") as connection:
        connection.execute("CREATE TABLE scored AS SELECT * FROM 'edges.parquet'")
    some = ("--records", "ids.csv", "--at", "6", "--metrics", "pairwise-f1", "--format", "csv")
    plain = table_of(run("edges.csv", *some))
    for source in (("edges.parquet",), ("edges.duckdb", "--table", "scored")):
        pd.testing.assert_frame_equal(table_of(run(*source, *some)), plain)
    assert "name its table: --table NAME" in run("edges.duckdb", *some).stderr
    named = ("--table", "scored", "--left", "l", "--right", "r")
    assert "make a view of two ids and a score" in run("edges.duckdb", *named, *some).stderr
    drawn = ("draw", "edges.duckdb", "--table", "scored", "--edges", "--design", "pairs", "-n", "20")
    result = CliRunner().invoke(app, [*drawn, "--seed", "1", "--records", "ids.csv", "-o", "pairs"])
    assert result.exit_code == 0, result.output


def test_stages_are_those_of_python(files):
    result = run("edges.csv", "--records", "ids.csv", "--stages", "2", "--format", "csv")
    found = eb.stages(EDGES, LABELS, DESIGN, 2, records=TRUTH.index)
    pd.testing.assert_frame_equal(table_of(result), found.table(), check_dtype=False)
    assert f"note: {found}" in result.stderr


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--records", "ids.csv", "--at", "few"), "--at few: write a number of thresholds"),
        (("--records", "ids.csv", "--at", "99,"), "no edge has a score of 99.0 or more"),
        (("--records", "ids.csv", "--left", "l", "--right", "r", "--score", "word"), "has no column 'word'"),
    ],
)
def test_bad_options_are_refused_with_a_sentence(files, args, said):
    result = run("edges.csv", *args)
    assert result.exit_code == 2
    assert said in result.stderr


def test_scores_that_are_no_numbers_are_refused(files):
    EDGES.assign(score=EDGES.score.astype(str).replace({"3.0": "high"})).to_csv("edges.csv", index=False)
    result = run("edges.csv", "--records", "ids.csv")
    assert "scores 'score' are not numbers, such as 'high'" in result.stderr


def test_the_table_of_splink_needs_no_names_of_columns(files):
    left, right, score = EDGES.columns
    own = EDGES.rename(columns={left: "unique_id_l", right: "unique_id_r", score: "match_weight"})
    beside = {"match_probability": 0.5, "name_l": "x", "name_r": "y", "gamma_name": 1, "match_key": "0"}
    order = ["match_weight", "match_probability", "unique_id_l", "unique_id_r", *list(beside)[1:]]
    own.assign(**beside)[order].to_csv("splink.csv", index=False)
    own[["unique_id_l", "unique_id_r"]].to_csv("links.csv", index=False)
    some = ("--records", "ids.csv", "--at", "6", "--metrics", "pairwise-f1", "--format", "csv")
    shown, plain = run("splink.csv", *some), run("edges.csv", *some)
    pd.testing.assert_frame_equal(table_of(shown), table_of(plain))
    assert "scores: match_weight of splink.csv" in shown.stderr
    design = ("labels.csv", "--design", "uniform-records", "--drawn", "drawn.csv", "--format", "csv")
    for command in ("estimate", "impact"):
        found, wanted = (
            CliRunner().invoke(app, [command, name, *design, "--edges", "--records", "ids.csv"])
            for name in ("splink.csv", "links.csv")
        )
        assert found.exit_code == wanted.exit_code == 0, (found.output, wanted.output)
        assert found.stdout == wanted.stdout
        assert "unique_id_l, unique_id_r of splink.csv" in found.stderr
