import io
import json

import pandas as pd
import pytest
from test_census import population
from typer.testing import CliRunner

import erbayes as eb
from erbayes.cli import app


@pytest.fixture
def files(tmp_path):
    pred, true = population(4)
    labels = true[true.isin(sorted(true.unique())[:8])]
    pred.rename("cluster").rename_axis("record").reset_index().astype(str).to_csv(tmp_path / "p.csv", index=False)
    labels.rename("entity").rename_axis("record").reset_index().astype(str).to_parquet(tmp_path / "l.parquet")
    return tmp_path, pred, labels


def run(*args):
    return CliRunner().invoke(app, [str(a) for a in args])


def test_json_has_the_estimates_at_full_precision(files):
    path, pred, labels = files
    shown = run("estimate", path / "p.csv", path / "l.parquet", "--design", "uniform-records",
                "--metrics", "pairwise-precision,b3-recall", "--format", "json", "--level", "0.9")  # fmt: skip
    assert shown.exit_code == 0, shown.output
    wanted = eb.estimate(pred, labels, eb.UniformRecords(),
                         [eb.metrics.pairwise_precision, eb.metrics.b3_recall]).table(0.9)  # fmt: skip
    rows = json.loads(shown.stdout)
    assert [r["metric"] for r in rows] == list(wanted.index)
    for row in rows:
        for key in ("estimate", "se", "lower", "upper", "level"):
            assert row[key] == pytest.approx(wanted.loc[row["metric"], key], rel=1e-14)
        assert row["method"] == "taylor"


def test_csv_table_and_html(files):
    path, _, _ = files
    args = ("estimate", path / "p.csv", path / "l.parquet", "--design", "uniform-clusters", "--format")
    table = pd.read_csv(io.StringIO(run(*args, "csv").stdout))
    assert len(table) == len(eb.metrics.METRICS)
    assert "pairwise-precision" in run(*args, "table").stdout
    assert "<td>pairwise-precision</td>" in run(*args, "html").stdout


@pytest.mark.parametrize("extra, message", [
    (("--metrics", "precision"), "no metric 'precision'; there are pairwise-precision"),
    (("--cluster", "nope"), "has no column 'nope'"),
    (("--level", "2"), "level must lie strictly between 0 and 1"),
])  # fmt: skip
def test_errors_say_what_and_exit_2(files, extra, message):
    path, _, _ = files
    shown = run("estimate", path / "p.csv", path / "l.parquet", "--design", "uniform-records", *extra)
    assert shown.exit_code == 2
    assert message in shown.stderr


def test_labels_that_the_prediction_lacks(files):
    path, _, _ = files
    (path / "more.csv").write_text("record,entity\nr1,x\nzz,x\nr2,y\nr3,y\n")
    args = ("estimate", path / "p.csv", path / "more.csv", "--design", "uniform-clusters",
            "--metrics", "pairwise-recall")  # fmt: skip
    shown = run(*args)
    assert shown.exit_code == 2
    assert "1 of 4 labelled records are not in the prediction, such as 'zz'" in shown.stderr
    assert run(*args, "--missing", "omit").exit_code == 0
