"""The command `erbayes thresholds` prints what `erbayes.thresholds` returns."""

from io import StringIO

import numpy as np
import pandas as pd
import pytest
from shell import done, refused, run
from test_folder import fill
from test_thresholds_curve import DESIGN, EDGES, LABELS, SPLINK, TRUTH, splink_table

import erbayes as eb
from erbayes.labels.folder import read_folder


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    EDGES.to_csv("edges.csv", index=False)
    LABELS.rename("entity").rename_axis("record").to_csv("labels.csv")
    TRUTH.index.to_frame(name="record").to_csv("ids.csv", index=False)
    pd.Series(DESIGN.draws, name="entity").to_csv("drawn.csv", index=False)


def judge(*args):
    return run("thresholds", *args, "labels.csv", "--design", "uniform-records", "--drawn", "drawn.csv")


def table_of(result):
    assert result.exit_code == 0, result.output
    return pd.read_csv(StringIO(result.stdout)).fillna({"reason": ""})


def test_an_engine_is_asked_for_by_name(files):
    given = ("edges.csv", "--records", "ids.csv", "--at", "4", "-m", "pairwise-f1", "--engine", "bootstrap")
    curve = eb.thresholds(EDGES, LABELS, DESIGN, "f1", records=TRUTH.index, at=4, engine="bootstrap", rng=1)
    pd.testing.assert_frame_equal(
        table_of(judge(*given, "--format", "csv")), curve.table(), check_dtype=False
    )


def draw_folder(plan):
    """A folder of 40 draws, in whose sheet the truth has answered."""
    named = ("--edges", "--score", "score", "--threshold", "2", "--records", "ids.csv", "--design", plan)
    done("draw", "edges.csv", *named, "-n", "40", "--seed", "1", "-o", plan)
    fill(read_folder(plan), TRUTH.rename(str))


@pytest.mark.slow
def test_folders_of_any_plan_of_records_judge_all_thresholds(files, monkeypatch):
    some = ("--records", "ids.csv", "--at", "2,0", "--metrics", "pairwise-precision,b3-recall", "-f", "csv")
    text = EDGES.astype({"l": str, "r": str})
    at_two = eb.Clustering.from_pairs(text, score="score", threshold=2, records=TRUTH.index.astype(str))
    for plan in ("multipurpose", "uniform-records"):
        draw_folder(plan)
        found = table_of(run("thresholds", "edges.csv", plan, *some))
        returned = eb.labels.read_labels(plan)
        metrics = ["pairwise-precision", "b3-recall"]
        own = eb.estimate(eb.Sample(eb.measure(at_two, returned.labels), returned.design()), metrics=metrics)
        at = found[found.threshold == 2].set_index("metric")
        np.testing.assert_allclose(at.estimate[metrics], own.estimate, rtol=1e-9)
        np.testing.assert_allclose(at.se[metrics], own.sd, rtol=1e-9)
    monkeypatch.setattr("erbayes.analysis.sensitivity.LAST", 40)
    errors = ("--annotator-errors", "removed=.3")  # so that more links are right than were labelled
    right = table_of(run("thresholds", "edges.csv", plan, *some, *errors)).estimate
    assert (right > found.estimate + 0.002)[found.metric == "pairwise-precision"].all()
    draw_folder("predicted-clusters")
    said = refused("thresholds", "edges.csv", "predicted-clusters", *some)
    assert "judge only the prediction that they were drawn from" in said


def test_a_folder_that_tops_up_another_is_read_with_it(files, monkeypatch):
    draw_folder("uniform-records")
    labels = LABELS.set_axis(LABELS.index.astype(str))
    monkeypatch.setattr("erbayes.cli.inputs.Returned.both", (labels, DESIGN))
    some = ("--records", "ids.csv", "--at", "6", "--format", "csv")
    found = table_of(run("thresholds", "edges.csv", "uniform-records", *some))
    pd.testing.assert_frame_equal(found, table_of(judge("edges.csv", *some)))


def test_edges_lie_in_parquet_or_in_a_database(files):
    duckdb = pytest.importorskip("duckdb")
    EDGES.to_parquet("edges.parquet")
    with duckdb.connect("edges.duckdb") as connection:
        connection.execute("CREATE TABLE scored AS SELECT * FROM 'edges.parquet'")
    some = ("--records", "ids.csv", "--at", "6", "--metrics", "pairwise-f1", "--format", "csv")
    plain = table_of(judge("edges.csv", *some))
    for source in (("edges.parquet",), ("edges.duckdb", "--table", "scored")):
        pd.testing.assert_frame_equal(table_of(judge(*source, *some)), plain)
    assert "(--table NAME)" in judge("edges.duckdb", *some).stderr
    pd.testing.assert_frame_equal(table_of(judge("edges.duckdb:l,r", "--table", "scored", *some)), plain)
    drawn = ("draw", "edges.duckdb", "--table", "scored", "--edges", "--design", "pairs", "-n", "20")
    done(*drawn, "--seed", "1", "--records", "ids.csv", "-o", "pairs")


@pytest.mark.parametrize(("args", "said"), [
    (("edges.csv", "--at", "few"), "--at few: write a number of thresholds"),
    (("edges.csv", "--at", "99,"), "no edge has a score of 99.0 or more"),
    (("edges.csv", "--score", "word"), "has no column 'word'"),
    (("edges.csv@3",), "edges.csv is taken at all thresholds: leave out the one behind its name"),
    (("words.csv",), "scores 'score' must be numbers, not such as 'high'"),
])  # fmt: skip
def test_bad_options_are_refused_with_a_sentence(files, args, said):
    EDGES.assign(score=EDGES.score.astype(str).replace({"3.0": "high"})).to_csv("words.csv", index=False)
    result = judge(*args, "--records", "ids.csv")
    assert result.exit_code == 2 and said in result.stderr


def test_the_table_of_splink_needs_no_names_of_columns(files):
    left, right, score = EDGES.columns
    own = EDGES.rename(columns={left: "unique_id_l", right: "unique_id_r", score: "match_weight"})
    beside = {"match_probability": 0.5, "name_l": "x", "name_r": "y", "gamma_name": 1, "match_key": "0"}
    order = ["match_weight", "match_probability", "unique_id_l", "unique_id_r", *list(beside)[1:]]
    own.assign(**beside)[order].to_csv("splink.csv", index=False)
    own.loc[own["match_weight"] >= 2, ["unique_id_l", "unique_id_r"]].to_csv("links.csv", index=False)
    some = ("--records", "ids.csv", "--at", "6", "--metrics", "pairwise-f1", "--format", "csv")
    shown, plain = judge("splink.csv", *some), judge("edges.csv", *some)
    pd.testing.assert_frame_equal(table_of(shown), table_of(plain))
    assert "scores: match_weight of splink.csv" in shown.stderr
    design = ("labels.csv", "--design", "uniform-records", "--drawn", "drawn.csv", "--format", "csv")
    for command in ("estimate", "impact"):
        found, wanted = (
            done(command, name, *design, "--edges", "--records", "ids.csv", *more)
            for name, more in (("splink.csv", ("--threshold", "2")), ("links.csv", ()))
        )
        assert found.stdout == wanted.stdout
        assert "unique_id_l and unique_id_r, links from 2 on by match_weight of splink.csv" in found.stderr
    every = ("--edges", "--records", "ids.csv", "-d", "uniform-records", "-n", "9", "--seed", "1", "-o", "f")
    said = refused("draw", "splink.csv", *every)
    assert "without a threshold, scores 'match_weight' of any size would be links; give the" in said


def test_a_column_of_clusters_per_threshold_is_read_by_name_or_as_it_is_told(files):
    table = splink_table()
    table.to_csv("clusters.csv", index=False)
    table.to_parquet("clusters.parquet", index=False)
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect("clusters.duckdb") as connection:
        connection.execute("CREATE TABLE t AS SELECT * FROM 'clusters.parquet'")
    renamed = table.rename(columns={name: f"v{i}" for i, name in enumerate(SPLINK.values())})
    renamed = renamed.rename(columns={"unique_id": "k"}).assign(
        name="x", id=table["unique_id"][::-1].to_numpy()
    )
    renamed.to_csv("renamed.csv", index=False)
    wanted = eb.thresholds(table, LABELS, DESIGN, ["pairwise-f1"]).table()
    named = ("--at", "4=v0,1.5=v1,-0.5=v2", "--record", "k")
    some = ("--metrics", "pairwise-f1", "--format", "csv")
    for source in (
        *(("clusters.csv",), ("clusters.parquet",), ("clusters.duckdb", "--table", "t")),
        ("renamed.csv", *named),
    ):
        result = judge(*source, *some)
        pd.testing.assert_frame_equal(table_of(result), wanted, check_dtype=False)
    own = pd.DataFrame({"id": LABELS.index[::-1], "k": LABELS.index, "entity": LABELS})
    own.to_csv("labels.csv", index=False)  # in which --record names the column too
    pd.testing.assert_frame_equal(table_of(judge("renamed.csv", *named, *some)), wanted, check_dtype=False)
    own[["k", "entity"]].to_csv("labels.csv", index=False)
    said = "read clusters at 3 thresholds of clusters.csv: -0.5 (cluster_mw_-0_5), 1.5 (cluster_mw_1_5), 4"
    assert said in judge("clusters.csv", *some).stderr
    unclear = dict(zip(SPLINK.values(), ("cluster_1", "cluster_2", "x"), strict=True))
    table.rename(columns=unclear).to_csv("r.csv")
    assert "(--at 0.9=COLUMN,0.5=ANOTHER)" in judge("r.csv", *some).stderr
    assert "leave out --records" in judge("clusters.csv", "--records", "ids.csv", *some).stderr


def test_who_knows_all_records_is_said_where_it_is_true():
    by_pairs, by_entities = (run(name, "-h").stdout for name in ("pairs", "thresholds"))
    assert "knows all records" in " ".join(by_entities.split()) and "remembers" not in by_pairs
