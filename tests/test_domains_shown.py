"""Domains in the shell, in pictures and in reports."""

import json

import numpy as np
import pandas as pd
import pytest
from shell import done, refused
from test_cli import DRAWN, LABELS, PRED, folder, write  # noqa: F401

import erbayes as eb
from erbayes import plots
from erbayes.analysis.domains import compare_by_domain
from erbayes.report import report

SIDES = ["north" if i % 3 else "south" for i in range(len(PRED))]
GROUP = pd.Series(SIDES, PRED.index.astype(str), name="region")
METRICS = ["pairwise-precision", "entities"]
DESIGN = eb.UniformRecords(DRAWN)
SCANNED = ("--memory-limit", "1GB")


@pytest.fixture
def files(folder):  # noqa: F811
    write("a.csv", record=GROUP.index, region=GROUP, other=1)
    write("p3.csv", record=PRED.index, cluster=PRED, region=GROUP.to_numpy())
    return folder


def shown(*args, command="estimate", prediction=("p.csv",)):
    always = f"--design uniform-records --drawn drawn.csv --metrics {','.join(METRICS)} --format json"
    found = done(command, *prediction, "l.parquet", *always.split(), *args)
    return pd.DataFrame(json.loads(found.stdout)["estimates"]), found.stderr


def sample():
    pred = PRED.set_axis(PRED.index.astype(str))
    return eb.Sample(eb.measure(pred, LABELS.set_axis(LABELS.index.astype(str))), DESIGN), pred


def same(table, expected):
    columns = ["domain", "metric", "estimate", "se", "n_eff"]
    pd.testing.assert_frame_equal(table[columns], expected[columns], check_dtype=False)


NAMES = ("--record", "record", "--cluster", "cluster")


def test_a_table_of_attributes_and_a_column_of_the_prediction(files):
    own, pred = sample()
    wanted = eb.by_domain(own, GROUP, METRICS, prediction=pred).table()
    table, notes = shown("--by", "region", "--attributes", "a.csv")
    same(table, wanted)
    assert list(table.columns[:3]) == ["domain", "metric", "method"]
    assert f"read {len(PRED)} values of region (2 groups; record, region of a.csv)" in notes
    same(shown("--by", "region", *NAMES, prediction=("p3.csv",))[0], wanted)


@pytest.mark.parametrize("scanned", [(), SCANNED])
def test_records_without_a_value(files, scanned):
    own, _ = sample()
    labelled = LABELS.index.astype(str)
    outside = GROUP.index[~GROUP.index.isin(labelled)][:2]
    write("a.csv", record=GROUP.index, region=GROUP.mask(GROUP.index.isin(outside)))
    table, notes = shown(*scanned, "--by", "region", "--attributes", "a.csv")
    assert "note: 2 records of PREDICTION have no region, so that its totals are estimated" in notes
    same(table, eb.by_domain(own, GROUP, METRICS).table())
    if not scanned:  # the most of any prediction
        few = PRED[~PRED.index.isin(outside)]
        write("few.csv", record=few.index, cluster=few)
        given = "l.parquet --design uniform-records --by region --attributes a.csv --missing common".split()
        assert "note: 2 records of PREDICTION" in done("compare", "few.csv", "p.csv", *given).stderr
        write(
            "a.csv", record=GROUP.index, region=GROUP
        )  # totals of both are of other records than those shared
        assert "PREDICTION have no" not in done("compare", "few.csv", "p.csv", *given).stderr
    write("a.csv", record=GROUP.index, region=GROUP.mask(GROUP.index.isin(labelled[:4])))
    given = (*scanned, *"--design uniform-records --by region --attributes a.csv".split())
    text = refused("estimate", "p.csv", "l.parquet", *given)
    assert "'region' has no value for 4 of" in text and (scanned or "labelled records" in text)


@pytest.mark.slow
def test_a_scanned_prediction(files):
    own, pred = sample()
    pd.read_csv("a.csv", dtype=str).to_parquet("a.parquet")
    pd.read_csv("a.csv", dtype=str).to_csv("a.csv.bz2", index=False)
    wanted = eb.by_domain(own, GROUP, METRICS, prediction=pred).table()
    args = (*SCANNED, "--by", "region")
    for path in ("a.csv", "a.parquet", "a.csv.bz2"):
        table, notes = shown(*args, "--attributes", path)
        same(table, wanted)
        assert f"2 groups of region scanned (region of {path})" in notes
    same(shown(*args, *NAMES, prediction=("p3.csv",))[0], wanted)


@pytest.mark.slow
def test_comparisons(files):
    q = pd.read_csv("q.csv", dtype=str).set_index("record").cluster
    both, labels = {"q": q, "p": sample()[1].astype(str)}, LABELS.set_axis(LABELS.index.astype(str))
    compared = eb.compare(both, labels, DESIGN, METRICS)
    wanted = compare_by_domain(compared, GROUP, METRICS, predictions=both).table()
    given, common = (
        {"command": "compare", "prediction": ("q.csv", "p.csv")},
        ("--missing", "common", *SCANNED),
    )
    for more in ((), SCANNED, common):
        table, notes = shown("--by", "region", "--attributes", "a.csv", *more, **given)
        same(table, wanted)
        assert set(table.difference) == {"p - q"}
    assert notes.count("2 groups of region scanned (region of a.csv)") == 2
    turned, _ = shown("--by", "region", *NAMES, *common, command="compare", prediction=("p3.csv", "q.csv"))
    same(turned.assign(estimate=-turned.estimate), wanted)


@pytest.mark.parametrize("args, message", [
    (("--attributes", "a.csv"), "--attributes needs --by or --across"),
    (("--by", "region", "--across", "region", "--attributes", "a.csv"), "ask for two results"),
    (("--by", "nothing", "--attributes", "a.csv"), "a.csv has no column 'nothing'; it has 'record'"),
    (("--by", "region"), "p.csv has no column 'region'; it has 'record', 'cluster' (--attributes TABLE, if"),
    (("--by", "record", "--attributes", "a.csv"), "a.csv: 'record' is its column of ids: name another one"),
])  # fmt: skip
def test_refused(files, args, message):
    assert message in refused("estimate", "p.csv", "l.parquet", "--design", "uniform-records", *args)


def test_a_picture():
    from matplotlib.figure import Figure

    own, pred = sample()
    found = eb.by_domain(own, GROUP, METRICS, prediction=pred, fewest=0)
    ax = plots.draw_by_domain(found, ax=Figure().subplots())
    assert [t.get_text() for t in ax.get_yticklabels()] == ["pairwise-precision", "north", "south"]
    (points,) = [line for line in ax.lines if line.get_marker() == "o"]
    wanted = found.table().query("metric == 'pairwise-precision'").estimate
    np.testing.assert_array_equal(points.get_xdata(), wanted)
    few = eb.by_domain(own, GROUP, METRICS, fewest=1000)
    ax = plots.draw_by_domain(few, "entities", ax=Figure().subplots())
    assert [len(line.get_xdata()) for line in ax.lines if line.get_marker() == "x"] == [2]
    with pytest.raises(eb.DataError, match="the result has no 'b3-recall'"):
        plots.draw_by_domain(few, "b3-recall")


@pytest.mark.slow
def test_a_report(files):
    own, _ = sample()
    domains = eb.by_domain(own, GROUP.replace("south", "<south>"), METRICS, fewest=0)
    page = report(domains, METRICS)
    assert "<h2>How good for whom: by region</h2>" in page
    assert "&lt;south&gt;" in page and "<south>" not in page
    args = "--design uniform-records --drawn drawn.csv --metrics entities --by region --attributes a.csv"
    done("report", "p.csv", "l.parquet", *args.split())
    assert "by region" in (files / "report.html").read_text(encoding="utf-8")
