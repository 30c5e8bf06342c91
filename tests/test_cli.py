import gzip
import hashlib
import io
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import numpy as np
import pandas as pd
import pytest
import typer
from scipy import stats
from shell import done, listed, refused, run
from test_census import population
from typer.testing import CliRunner

import erbayes as eb
from erbayes._internal import digits
from erbayes._internal.errors import Grade, Sentence
from erbayes.cli import TAKES, app
from erbayes.cli.analyses import SEED
from erbayes.cli.options import ORDER, TOPICS, say
from erbayes.cli.predictions import DesignName
from erbayes.cli.printing import Answer

F1 = [eb.metrics.pairwise_f()]
PRED, TRUE = population(4)
LABELS = TRUE[TRUE.isin(sorted(TRUE.unique())[:8])].astype(str)
ENTITIES = list(LABELS.unique())
DRAWN = [*ENTITIES, ENTITIES[0], ENTITIES[3], ENTITIES[3]]
WEIGHTS = pd.Series(np.arange(1.0, 9.0) ** 1.5, ENTITIES)
LONELY = pd.Series(["a"] * 7 + ["b"], ENTITIES)
STRATA = pd.Series([f"s{i % 3}" for i in range(8)], ENTITIES)


def write(path, **columns):
    pd.DataFrame(columns).to_csv(path, index=False)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Files of every kind; also the current folder."""
    monkeypatch.chdir(tmp_path)
    fill()
    return tmp_path


def fill():
    for name, content in contents().items():
        Path(name).write_bytes(content)


@cache
def contents():
    """The bytes of each file, by its name."""
    other = PRED.copy()
    other.iloc[::7] = 3
    tables = {
        "p": {"record": PRED.index, "cluster": PRED},
        "drawn": {"entity": DRAWN},
        "draws": {"X": range(len(DRAWN)), "day": [f"d{i % 3}" for i in range(len(DRAWN))], "entity": DRAWN},
        "weights": {"entity": WEIGHTS.index, "weight": WEIGHTS},
        "strata": {"entity": STRATA.index, "stratum": STRATA},
        "lonely": {"entity": LONELY.index, "stratum": LONELY},
        "lonely-sizes": {"stratum": ["a", "b"], "number": [9, 6]},
        "sizes": {"stratum": ["s0", "s1", "s2"], "number": [5, 9, 4]},
        "q": {"record": other.index, "cluster": other},
    }
    files = {f"{name}.csv": pd.DataFrame(one).to_csv(index=False).encode() for name, one in tables.items()}
    return files | {"l.parquet": LABELS.rename_axis("record").rename("entity").reset_index().to_parquet()}


def paired(*args):
    """Rows of a comparison that are differences."""
    return [row for row in listed("compare", *args) if " - " in row["prediction"]]


def estimated(*args, files=("p.csv", "l.parquet")):
    (row,) = listed("estimate", *files, "--metrics", "pairwise-f1", *args)
    return row


ESTIMATE = ("estimate", "p.csv", "l.parquet", "--design")
SIZES = {"s0": 5, "s1": 9, "s2": 4}
DESIGNS = {
    "uniform-records": eb.UniformRecords(),
    "uniform-records --drawn drawn.csv": eb.UniformRecords(DRAWN),
    "uniform-records --drawn draws.csv": eb.UniformRecords(DRAWN),  # of several columns one has entities
    "uniform-records --population 60": eb.UniformRecords(population=60),
    "distinct-entities --draws 30": eb.DistinctEntities(30),
    "distinct-entities --draws 90": eb.DistinctEntities(90),
    "distinct-entities --draws 90 --population 600": eb.DistinctEntities(90, 600),
    "uniform-clusters": eb.UniformClusters(),
    "uniform-clusters --population 17": eb.UniformClusters(17),
    "uniform-clusters --drawn drawn.csv": eb.UniformClusters(draws=DRAWN),
    "known-weights --weights weights.csv": eb.KnownWeights(WEIGHTS),
    "known-weights --weights weights.csv --drawn drawn.csv": eb.KnownWeights(WEIGHTS, DRAWN),
    "known-weights --weights weights.csv --population 17": eb.KnownWeights(WEIGHTS, population=17),
    "stratified --strata strata.csv --populations sizes.csv": eb.Stratified(STRATA, SIZES),
}


@pytest.mark.parametrize("args", DESIGNS)
def test_each_design_with_each_of_its_options(folder, args):
    wanted = eb.estimate(PRED, LABELS, DESIGNS[args], F1).table().iloc[0]
    found = estimated("--design", *args.split())
    for key in ("estimate", "se", "df", "lower", "upper", "level"):
        assert found[key] == pytest.approx(wanted[key], rel=1e-12), key


def test_the_designs_above_are_all_and_differ():
    """Or the test above could not tell an option that is ignored."""
    called, named = {args.split()[0] for args in DESIGNS}, {*get_args(DesignName)}
    assert not {*TAKES} - called, f"{ {*TAKES} - called }: add a call to DESIGNS in tests/test_cli.py"
    assert named == {*TAKES}, "DesignName and DESIGNS of erbayes/cli/predictions.py have other names"
    seen = [eb.estimate(PRED, LABELS, d, F1) for args, d in DESIGNS.items() if "draws.csv" not in args]
    assert len({(round(f.mean[0], 9), round(f.sd[0], 9)) for f in seen}) == len(seen)


FILES = {"drawn": "drawn.csv", "weights": "weights.csv", "strata": "strata.csv", "populations": "sizes.csv"}
VALUES = {option: FILES.get(option, "30") for options in TAKES.values() for option in options}


@pytest.mark.parametrize("design, option", [(d, o) for d in TAKES for o in VALUES if o not in TAKES[d]])
def test_options_of_another_design_are_refused(folder, design, option):
    message = refused(*ESTIMATE, design, f"--{option}", VALUES[option])
    assert f"--design {design} does not take --{option}; it takes --" in message


@pytest.mark.parametrize("args, message", [
    ("distinct-entities", "--design distinct-entities needs --draws"),
    ("known-weights", "--design known-weights needs --weights"),
    ("stratified --strata strata.csv", "--design stratified needs --strata and --populations"),
    ("stratified --populations sizes.csv", "--design stratified needs --strata and --populations"),
    ("stratified --strata lonely.csv --populations lonely-sizes.csv", "strata hold a single draw"),
    ("distinct-entities --draws 3", "3 draws cannot have found 8 distinct units"),
    ("uniform-clusters --population 0", "Invalid value for '--population'"),
    ("uniform-clusters --level 2", "level must lie strictly between 0 and 1, not 2.0"),
    ("uniform-clusters --metrics precisio", "no metric 'precisio': did you mean 'precision' or "),
    ("uniform-clusters --cluster nope", "p.csv has no column 'nope'; it has 'record', 'cluster'; choose two: "),
    ("uniform-clusters --cluster nope --memory-limit 1GB",
        "the prediction has no column 'nope'; it has 'record', 'cluster'; name them: Columns"),
    ("uniform-clusters --entity nope", "the table of the labels has no column 'nope'"),
    ("uniform-clusters --alone nope", "no record that was read has a cluster 'nope', which --alone names"),
    ("uniform-clusters --records p.csv", "no prediction that was read has links: leave it out, or say --edges"),
    ("uniform-clusters --record nope", "no file that was read has a column 'nope', which --record names"),
    ("uniform-clusters --record cluster --cluster cluster", "p.csv: one column cannot serve twice"),
    ("uniform-clusters --output none/found.csv", "cannot write none/found.csv: No such file or directory"),
    ("uniform-clusters --output .", "cannot write .: it is not a regular file"),
    ("nope", "'nope' is not one of 'uniform-records', 'distinct-entities'"),
])  # fmt: skip
def test_errors_say_what_and_exit_2(folder, args, message):
    assert message in refused(*ESTIMATE, *args.split())


def test_too_many_files_are_told_which_command_takes_them(folder):
    given = ("p.csv", "q.csv", "l.parquet", "--design", "uniform-clusters")
    assert "(l.parquet): report takes one PREDICTION, and erbayes compare sev" in refused("report", *given)
    assert refused("metrics", "f1", "p.csv").endswith("extra argument(s) (p.csv)\n")


@pytest.mark.parametrize("name, content, message", [
    ("empty.csv", b"", "cannot read empty.csv: its first line is blank, which must name the columns"),
    ("ragged.csv", b"record,cluster\n1,a\n2,b,c\n", "cannot read ragged.csv: Error tokenizing data"),
    ("wide.csv", b"record,cluster\n1,a,x\n2,b,y\n", "wide.csv: its lines have more fields than its header"),
    ("bytes.csv", b"record,cluster\n\xff\xfe,a\n", "cannot read bytes.csv: 'utf-8' codec can't decode"),
    ("one.csv", b"record+cluster\n1+a\n", "one.csv needs 2 columns; it has 'record+cluster'"),
    ("gap.csv", b"record,cluster\n1,a\n2,\n", "cluster ids of the prediction gap.csv: 1 of 2 are missing"),
    ("twice.csv", b"record,cluster\n1,a\n1,b\n", "record ids of the prediction twice.csv: 1 duplicates, such as '1'"),
    ("text.parquet", b"record,cluster\n1,a\n", "cannot read text.parquet: "),
    ("empty.parquet", b"", "cannot read empty.parquet: "),
    ("blank.csv", b'record,cluster\n"1",a\n"2" ,b\n',
        "cannot read blank.csv: line 3: ',' expected after '\"'; nothing, not even a blank, may stand"),
    ("cut.csv.gz", gzip.compress(b"record,cluster\n1,a\n" * 99, mtime=0)[:40], "cannot read cut.csv.gz: "),
    ("not.csv.gz", b"record,cluster\n1,a\n", "cannot read not.csv.gz: "),
])  # fmt: skip
def test_unreadable_files(folder, name, content, message):
    (folder / name).write_bytes(content)
    assert message in refused("estimate", name, "l.parquet", "--design", "uniform-clusters")


@pytest.mark.parametrize("args, rows, message", [
    ("known-weights --weights", "e,w\n1,2\n2,x\n", "bad.csv, column 'w': 1 of 2 are not numbers, such as 'x' of '2'"),
    ("known-weights --weights", "1,2\n2,3\n", "'2' is the name of its second column: is the first line a row"),
    ("known-weights --weights", "e,w\n1,2\n1,3\n", "bad.csv: 1 ids are listed twice, such as '1'"),
    ("known-weights --weights", "e,w\n1,2\n2,\n", "bad.csv, column 'w': 1 of 2 are missing"),
    ("known-weights --weights", "e,w\n1,2\n", "weights are missing for "),
    ("stratified --populations sizes.csv --strata", "e,s\n1,a\n,b\n", "bad.csv, column 'e': 1 of 2 are missing"),
    ("stratified --populations sizes.csv --strata", "e,s\n1,a\n1,b\n", "bad.csv: 1 ids are listed twice"),
    ("stratified --strata strata.csv --populations", "s,n\ns0,5.5\n", "1 of 1 are not whole numbers, such as '5.5'"),
    ("stratified --strata strata.csv --populations", "s,n\ns0,5\n", "2 strata have no population size"),
    ("uniform-records --drawn", "e\nnobody\n", "1 draws name units without labels: 'nobody'"),
])  # fmt: skip
def test_unusable_design_files(folder, args, rows, message):
    (folder / "bad.csv").write_text(rows, encoding="utf-8")
    assert message in refused(*ESTIMATE, *args.split(), "bad.csv")


@pytest.mark.parametrize("command", ["estimate p.csv", "compare p.csv q.csv"])
def test_labels_that_the_prediction_lacks(folder, command):
    (folder / "more.csv").write_text("record,entity\nr1,x\nzz,x\nr2,y\nr3,y\n", encoding="utf-8")
    args = (*command.split(), "more.csv", "--design", "uniform-clusters", "--metrics", "pairwise-recall")
    told = refused(*args)
    assert "1 of 4 labelled records are not in the prediction, such as 'zz'" in told
    if command == "estimate p.csv":
        assert told.endswith('("omit", "singleton" or "together"): missing="omit" (--missing omit)\n')
    done(*args, "--missing", "omit")


@pytest.mark.parametrize(
    "name", ["p.tsv", "p.tsv.gz", "p.csv.gz", "p.parquet", "named.parquet", "integers.parquet"]
)
def test_kinds_of_files(folder, name):
    """All give the same estimate; integer ids of Parquet meet the text ids of CSV."""
    digits = PRED.index.str.removeprefix("r")
    frame = pd.DataFrame({"record": digits, "cluster": PRED.to_numpy()})
    write("l.csv", record=LABELS.index.str.removeprefix("r"), entity=LABELS)
    if name == "named.parquet":
        frame.set_index("record").to_parquet(name)
    elif name == "integers.parquet":
        frame.astype({"record": "int32"}).to_parquet(name)
    elif name == "p.parquet":
        frame.to_parquet(name)
    else:
        frame.to_csv(name, index=False, sep="\t" if "tsv" in name else ",")
    found = estimated("--design", "uniform-clusters", files=(name, "l.csv"))
    assert found["estimate"] == estimated("--design", "uniform-clusters")["estimate"]


def test_columns_by_name(folder):
    write("p2.csv", id=range(len(PRED)), cluster=PRED, record=PRED.index)
    write("l2.csv", entity=LABELS, record=LABELS.index)
    write("l3.csv", entity="one", record=LABELS.index, person=LABELS)
    wanted = estimated("--design", "uniform-clusters")
    named = ("--record", "record", "--cluster", "cluster", "--entity", "person")
    assert estimated("--design", "uniform-clusters", *named, files=("p2.csv", "l3.csv")) == wanted
    # the entity column need not be named: it is the first that is not the record column
    assert estimated("--design", "uniform-clusters", *named[:4], files=("p2.csv", "l2.csv")) == wanted


def fill_more():
    """Draws enough for intervals, also by group."""
    i, rng = np.arange(1200), np.random.default_rng(1)
    for name, share in (("p.csv", 0.9), ("q.csv", 0.75)):
        cluster = np.where(rng.random(1200) < share, i // 4, rng.integers(0, 300, 1200))
        write(name, record=i, cluster=cluster, part=rng.integers(0, 2, 1200))
    write("sampled.csv", record=i[:96], entity=i[:96] // 4)
    write("e.csv", l=i[:-1], r=i[1:], score=(i[1:] // 4 == i[:-1] // 4) + 0.1 * rng.integers(0, 9, 1199))


@pytest.mark.every(2)
@pytest.mark.parametrize("more", ["", "--by part --attributes p.csv:record", "--annotator-errors missed=.1"])
@pytest.mark.parametrize("call", ["estimate p.csv", "compare p.csv q.csv", "impact p.csv"])
def test_tables_and_sentences_have_the_interval_that_is_asked_for(folder, monkeypatch, call, more):
    """The estimate ± t standard errors in each row, and what is quoted are ends of rows."""
    for name in ("FIRST", "LAST"):
        monkeypatch.setattr(f"erbayes.analysis.sensitivity.{name}", 5)
    fill_more()
    asked = f"{call} sampled.csv -d uniform-clusters --level .8 --interval symmetric {more} --format json"
    shown = json.loads(done(*asked.split()).stdout)
    table, said = pd.DataFrame(shown["estimates"]), " ".join(shown["sentences"])
    assert json.dumps(shown["read"]).count("1,200 records in ") == call.count(".csv")
    half = table["estimate"] - table["lower"]
    if "impact" not in call or "--by" not in more:  # whose ends allow for skewness
        np.testing.assert_allclose(half, table["upper"] - table["estimate"], rtol=1e-9)
    if "df" in table:
        np.testing.assert_allclose(half, stats.t.ppf(0.9, table["df"]) * table["se"], rtol=1e-9)
    quoted = re.findall(r"(-?[\d.]+)( %)? to (-?[\d.]+)", said)
    assert quoted or ("impact" not in call and "--by" in more)
    for low, unit, high in quoted:
        half = [0.501 * 10.0 ** -len(x.partition(".")[2]) for x in (low, high)]
        off = table[["lower", "upper"]] * (100 if unit else 1) - [float(low), float(high)]
        assert (off.abs() <= half).all(axis=1).any(), (low, high)


PICTURES = {
    "estimate p.csv --picture a.png": "forest",
    "estimate p.csv --picture a.html": "forest",
    "estimate p.csv --by part --picture a.svg": "by_domain",
    "compare p.csv q.csv --picture a.pdf": "comparison",
    "thresholds e.csv --records p.csv --at 3 --picture a.html": "curve",
    "thresholds e.csv --records p.csv --at 3 --picture a.svg": "curve",
}


@pytest.mark.parametrize("call", PICTURES)
def test_a_picture_shows_what_is_printed(folder, monkeypatch, call):
    """The same result, with the level and the interval that are asked for."""
    fill_more()
    drawn = []

    def draw(result, **settings):
        drawn.append((result, settings))
        figure = SimpleNamespace(savefig=Path.touch)
        return SimpleNamespace(to_html=lambda *_, **__: "", get_figure=lambda root: figure)

    for name in ("plot", "explore"):
        monkeypatch.setattr(f"erbayes.metrics.tables.Pictured.{name}", draw)
    asked = "-d uniform-clusters -m f1 --level .8 --interval wald"
    shown = pd.DataFrame(listed(*call.split(), "sampled.csv", *asked.split()))
    ((result, settings),) = drawn
    assert result.picture == PICTURES[call] and Path(call.split()[-1]).exists()
    (kind,) = settings.pop("kinds", [settings.pop("kind", None)])
    table, ends = result.table(**settings, kind=kind), ["estimate", "lower", "upper"]
    np.testing.assert_array_equal(shown[ends].astype(float), table[ends])
    assert table["lower"].notna().any()
    assert result.picture != "by_domain" or result.settings.rng == SEED  # so that it is the same again


def test_json_says_null_for_what_a_single_draw_cannot_tell(folder):
    write("single.csv", record=["r0", "r1"], entity=["x", "x"])
    shown = run(*"estimate p.csv single.csv -d uniform-clusters -m b3-recall --format json".split())
    (row,) = json.loads(shown.stdout, parse_constant=pytest.fail)["estimates"]
    assert row["se"] is None and row["lower"] is None and row["estimate"] == 1
    assert "fault: A single draw gives no variance" in shown.stderr
    assert json.loads(Answer(table=pd.DataFrame({"x": [np.inf]})).render("json", 0)) == [{"x": None}]


@pytest.mark.parametrize("predictions", [("estimate", "p.csv"), ("compare", "p.csv", "q.csv")])
def test_errors_of_draws_name_their_options(folder, predictions):
    write("strange.csv", entity=["nobody"])
    said = refused(*predictions, "l.parquet", "--design", "uniform-records", "--drawn", "strange.csv")
    assert "(--design uniform-records --drawn strange.csv)" in said


IDLE = {
    "estimate p.csv:record l.parquet -d uniform-clusters --edges": "a link has two records",
    "estimate p.csv l.parquet -d uniform-clusters --edges --cluster cluster": "links, which have no --cluster",
    "draw p.csv -d uniform-records -n 9 --seed 1 -o f --overlap 0.5": "--overlap needs --annotators, two of whom",
}


@pytest.mark.parametrize("call", IDLE)
def test_an_option_that_would_change_nothing_is_refused(folder, call):
    assert IDLE[call] in refused(*call.split())


@pytest.mark.parametrize("twice", ["-m precision -m recall", "--metrics f1 -m f1", "--level 0.9 --level=0.8"])
def test_an_option_that_stands_twice_is_refused(folder, twice):
    name = "--level" if "level" in twice else "--metrics"
    said = f"{name} stands there 2 times: give it once, with commas if it takes several values"
    assert said in refused(*ESTIMATE, "uniform-clusters", *twice.split())


def test_names_are_no_markup_and_whole(folder):
    name = "[bold]<b>&" + "a-very-long-name-" * 12
    (folder / f"{name}.csv").write_text((folder / "q.csv").read_text(encoding="utf-8"), encoding="utf-8")
    asked = "l.parquet --design uniform-clusters --metrics b3-recall,b3-precision".split()
    shown = run("compare", "p.csv", f"{name}.csv", *asked).stdout
    assert re.findall(rf"b3-(\w+) +{re.escape(name)} - p ", shown) == ["recall", "precision"]


@pytest.mark.parametrize(("options", "said"), [
    (("thresholds", "--records", "p.csv", "--picture", "x.csv"), "ends in .svg, .png"),
    (("estimate", "--output", "x.foo"), "ends in .csv, .json, .txt"),
    (("estimate", "--output", "x.csv", "--format", "json"), "ends in .csv: leave out --format"),
    (("report", "--output", "x.pdf"), "ends in .html, .htm"),
])  # fmt: skip
def test_formats_of_outputs_are_checked_before_anything_is_read(folder, options, said):
    write("p.csv", wrong=[1], table=[2], of=[3], columns=[4])
    command, *more = options
    told = refused(command, "p.csv", "l.parquet", "--design", "uniform-clusters", *more)
    assert told.startswith("erbayes: ") and said in told and "columns" not in told


def test_cells_that_begin_like_a_formula_are_guarded_in_csv(folder):
    groups = ["=cmd|'/C calc'!A0" if i % 2 else "-5" for i in range(len(PRED))]
    write("a.csv", record=PRED.index, region=groups)
    by = ("--by", "region", "--attributes", "a.csv", "--metrics", "b3-recall", "--format")
    args = ("compare", "q.csv", "p.csv", "l.parquet", "--design", "uniform-clusters", *by)
    shown = run(*args, "csv")
    found = pd.read_csv(io.StringIO(shown.stdout), dtype={"domain": str})
    assert sorted(found["domain"]) == ["'=cmd|'/C calc'!A0", "-5"]
    assert "note: 1 cells begin like a formula, such as \"=cmd|'/C calc'!A0\"" in shown.stderr
    rows = listed(*args[:-1])
    assert found["estimate"].tolist() == pytest.approx([row["estimate"] for row in rows])
    assert {row["domain"] for row in rows} == {"=cmd|'/C calc'!A0", "-5"}


def test_a_program_gets_alarms_and_what_was_read_and_may_stop_at_a_fault(folder):
    write("single.csv", record=["r0", "r1"], entity=["x", "x"])
    args = ("estimate", "p.csv", "single.csv", "--design", "uniform-clusters", "--metrics", "b3-recall")
    shown = run(*args, "--format", "json")
    found = json.loads(shown.stdout)
    assert shown.exit_code == 0 and list(found) == ["sentences", "estimates", "alarms", "read"]
    grades = [alarm["grade"] for alarm in found["alarms"]]
    assert "fault" in grades and all(alarm["text"] in shown.stderr for alarm in found["alarms"])
    faults = f"{grades.count('fault')} faults" if grades.count("fault") > 1 else "a fault"
    assert found["sentences"] == [f"Do not quote these numbers yet: {faults} must be mended first."]
    counts = {"draws": 1, "labelled_units": 1, "labelled_records": 2, "records": len(PRED)}
    assert counts.items() <= found["read"].items() and "cluster of p.csv" in found["read"]["text"]
    strict = run(*args, "--strict")
    assert strict.exit_code == 1 and "b3-recall" in strict.stdout
    done(*ESTIMATE, "uniform-clusters", "--strict")


def test_keys_are_never_cut_in_a_terminal(monkeypatch, folder):
    monkeypatch.setattr("erbayes.cli.printing.Formatted._width", 80)
    long = "a-long-release"
    (folder / f"{long}.csv").write_text((folder / "q.csv").read_text(encoding="utf-8"), encoding="utf-8")
    args = ("compare", f"{long}.csv", "p.csv", "l.parquet", "--design", "uniform-clusters")
    shown = run(*args, "--metrics", "pairwise-precision")
    *_, head, _, old, new, difference = shown.stdout.splitlines()
    assert head.split() == "metric prediction estimate lower 95 % upper 95 %".split()
    assert [old.split()[:2], new.split()[:2]] == [["pairwise-precision", long], ["pairwise-precision", "p"]]
    assert f"p - {long}" in difference and max(map(len, (head, difference))) <= 80
    assert "note: 80 characters have no room for se, df, kind: see --format csv" in shown.stderr
    monkeypatch.setattr("erbayes.cli.printing.Formatted._width", 30)
    assert f"pairwise-precision   {long} " in run(*args).stdout


@pytest.mark.parametrize("format", ["table", "csv", "json"])
def test_output_is_what_would_be_printed(folder, format):
    """In the format of the option, or of the ending of the file."""
    args = (*ESTIMATE, "uniform-clusters")
    printed = done(*args, "--format", format).stdout
    assert done(*args, "--format", format, "--output", "found").stdout == ""
    assert (folder / "found").read_text(encoding="utf-8") == printed
    if format != "table":
        done(*args, "--output", f"x.{format}")
        assert (folder / f"x.{format}").read_text(encoding="utf-8") == printed


def test_a_failed_run_leaves_the_old_output(folder):
    (folder / "found.csv").write_text("good", encoding="utf-8")
    refused(*ESTIMATE, "uniform-clusters", "--level", "2", "--output", "found.csv")
    assert (folder / "found.csv").read_text(encoding="utf-8") == "good"
    assert not list(folder.glob(".erbayes-*"))


def test_compare_refuses_what_it_cannot_name(folder):
    (folder / "old").mkdir()
    (folder / "old" / "p.csv.gz").write_bytes(gzip.compress((folder / "q.csv").read_bytes()))
    message = refused("compare", "p.csv", "old/p.csv.gz", "l.parquet", "--design", "uniform-clusters")
    assert "predictions go by their files' names, which must differ: 'p', 'p'" in message
    message = refused("compare", "p.csv", "l.parquet", "--design", "uniform-clusters")
    assert message.startswith("erbayes: a comparison needs two predictions or more, not 1: give LABELS last")


def test_metrics_lists_every_metric_with_its_formula():
    shown = done("metrics")
    rows = [re.split(r" {2,}", line, maxsplit=3) for line in shown.stdout.splitlines()[2:]]
    assert rows == [[m.group.value, m.name, m.meaning, m.source] for m in eb.metrics.ALL]
    listed = json.loads(run("metrics", "--format", "json").stdout)
    assert listed[0] == {
        "about": "Links between records",
        "metric": "pairwise-precision",
        "meaning": "Of the links that the matcher made, the share that is right.",
        "formula": eb.metrics.pairwise_precision.source,
    }


def test_version(monkeypatch):
    monkeypatch.setattr(eb, "__version__", "9.8.7", raising=False)
    shown = run("--version")
    assert (shown.exit_code, shown.stdout) == (0, "erbayes 9.8.7\n")


def test_help_explains_every_design():
    shown = run("estimate", "--help").stdout
    for design in TAKES:
        assert f"\n    {design} " in shown, f"explain {design} in the docstring of estimate_command"
    assert "erbayes estimate clusters.csv labels.csv -d uniform-records" in " ".join(shown.split())


def wide(*args):
    """What is printed in a terminal of 110 columns."""
    return CliRunner().invoke(app, args, terminal_width=110).stdout


@pytest.mark.parametrize("command", ["estimate", "draw", "compare", "report", "plan", "check"])
def test_help_fits_a_screen_of_sixty_lines(command):
    shown = wide(command, "-h")
    assert shown == wide(command, "--help") and 25 < len(shown.splitlines()) <= 60
    assert "More options: erbayes help " in shown


def test_summaries_are_not_cut():
    shown = run("--help").stdout
    assert "..." not in shown.partition("Commands:")[2]
    summaries = re.findall(r"^  (\w+) ", shown.partition("Commands:")[2], re.M)
    assert summaries == ORDER and set(ORDER) == set(typer.main.get_command(app).commands)
    assert f"Commands: {', '.join(ORDER)}" in run("help").stdout.replace("\n", " ")


def test_every_option_is_explained_by_help_or_by_a_topic():
    """Hidden options stand under the topic that the help names."""
    for name, command in typer.main.get_command(app).commands.items():
        shown = wide(name, "--help")
        named = shown.partition("More options: erbayes help ")[2].replace("\n", " ").split(", ")
        more = "".join(wide("help", topic.strip()) for topic in named if topic)
        for option in command.params:
            shown_as = option.opts[-1] if option.opts[-1][0] == "-" else option.metavar
            assert shown_as in (more if option.hidden else shown), (name, option.name)
            assert option.help, (name, option.name)


def test_help_lists_topics_and_shows_commands():
    shown = run("help").stdout
    for topic in TOPICS:
        assert topic in " ".join(shown.split()).replace("- ", "-")
        assert " ".join(run("help", topic).stdout.split()).startswith(TOPICS[topic][:30])
    assert run("help", "plan").stdout.partition("\n")[2] == run("plan", "--help").stdout.partition("\n")[2]
    assert "no topic 'plans'; there are 'files', " in refused("help", "plans")


@pytest.mark.parametrize("wrong, message", [
    (("--design", "uniform"), "'uniform' is not one of 'uniform-records', 'distinct-entities',"),
    (("--draws", "many"), "Invalid value for '--draws': write a whole number"),
    (("--level", "high"), "Invalid value for '--level': write a number"),
    (("--engine", "model"), "'model' is not one of 'closed-form', 'bootstrap',"),
])  # fmt: skip
def test_no_library_speaks_of_values(folder, wrong, message):
    said = " ".join(refused("estimate", "p.csv", "l.parquet", *wrong).split())
    assert message in said and "Input should" not in said and "Value error" not in said


def test_alarms_have_colours_in_a_terminal_alone(monkeypatch, capsys):
    say(Sentence("\x1b[2J few draws", Grade.CAUTION))
    assert capsys.readouterr().err == "caution: \\x1b[2J few draws\n"
    told = []
    monkeypatch.setattr("erbayes.cli.options.typer.echo", lambda text, err: told.append(text))
    for grade in Grade:
        say(Sentence("few draws", grade))
    assert [text.partition("few")[0] for text in told] == [
        "note:\x1b[0m ",
        "\x1b[33mcaution:\x1b[0m ",
        "\x1b[31m\x1b[1mfault:\x1b[0m ",
    ]
    monkeypatch.setenv("NO_COLOR", "1")
    say(Sentence("few draws", Grade.FAULT))
    assert told[-1] == "\x1b[1mfault:\x1b[0m few draws"  # bold is no colour


def test_long_cells_are_folded_in_a_terminal_alone(monkeypatch, folder):
    wide = run("metrics").stdout
    assert max(map(len, wide.splitlines())) > 150
    monkeypatch.setattr("erbayes.cli.printing.Formatted._width", 80)
    shown = run("metrics").stdout
    assert max(map(len, shown.splitlines())) <= 80 and len(shown.splitlines()) > len(wide.splitlines())


def process(*args, cwd):
    """The real thing, in a process of its own."""
    where = str(Path(eb.__file__).parents[1])
    code = f"import sys; sys.path.insert(0, {where!r}); from erbayes.cli import app; app(prog_name='erbayes')"
    settings = {"capture_output": True, "text": True, "timeout": 120, "encoding": "utf-8"}
    return subprocess.run([sys.executable, "-c", code, *args], cwd=cwd, **settings)


@pytest.mark.slow
def test_a_process_prints_and_tells_errors_without_a_traceback(folder):
    done = process(*ESTIMATE, "uniform-clusters", "--metrics", "b3-recall", "--format", "csv", cwd=folder)
    assert done.returncode == 0, done.stderr
    head = "metric,method,estimate,se,df,lower,upper,level,kind"
    assert done.stdout.startswith(f"{head}\nb3-recall,closed-form,")
    (folder / "empty.csv").write_text("", encoding="utf-8")
    done = process("estimate", "none.csv", "l.parquet", "--design", "uniform-clusters", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert "none.csv" in done.stderr and "Traceback" not in done.stderr
    for args, named in ((("empty.csv", "l.parquet"), "empty.csv"), (("p.csv", "."), ".")):
        told = run("estimate", *args, "--design", "uniform-clusters")
        assert (told.exit_code, told.stdout) == (2, "") and named in told.stderr
        assert isinstance(told.exception, SystemExit) and "Traceback" not in told.stderr


def test_report(folder, monkeypatch):
    call = "erbayes report p.csv l.parquet --design uniform-clusters --title TITLE --metrics pairwise-f1,b3-recall"
    call = [{"TITLE": "A <b>"}.get(w, w) for w in f"{call} --level 0.9 --output found.html".split()]
    monkeypatch.setattr("sys.argv", call)
    assert done(*call[1:]).stdout == "wrote found.html\n"
    page = (folder / "found.html").read_text(encoding="utf-8")
    chosen = [eb.metrics.pairwise_f(), eb.metrics.b3_recall]
    (low, high) = eb.estimate(PRED, LABELS, eb.UniformClusters(), chosen).interval(0.9)[0]
    assert f"{low:.3f}–{high:.3f}" in page and "<h1>A &lt;b&gt;</h1>" in page
    assert "erbayes report p.csv l.parquet --design uniform-clusters --title &#39;A &lt;b&gt;&#39;" in page
    digest = hashlib.sha256((folder / "p.csv").read_bytes()).hexdigest()
    assert f"p.csv, {(folder / 'p.csv').stat().st_size:,} bytes, SHA-256 {digest}" in page


def test_report_leaves_the_old_page_where_it_fails(folder):
    (folder / "report.html").write_text("old", encoding="utf-8")
    (folder / "strangers.csv").write_text("unit\nnobody\n", encoding="utf-8")
    call = "report p.csv l.parquet -d uniform-records --drawn strangers.csv --replace"
    assert "draws name units without labels" in refused(*call.split())
    assert (folder / "report.html").read_text(encoding="utf-8") == "old"


def test_plan(folder):
    args = "plan p.csv l.parquet --design uniform-clusters --half-width 0.04".split()
    named = [row["metric"] for row in listed(*args, "--metrics", "b3-recall, f1")]
    assert named == ["b3-recall", "pairwise-f1"] * 3
    assert "a plan needs --half-width" in refused(*args[:5])
    assert "half widths must be above 0" in refused(*args[:6], "0")
    assert "a half width of 2 says nothing: write 0.02 for 2 points" in refused(*args[:6], "2")
    assert "'--half-width': write a number; 2% is 0.02" in refused(*args[:6], "2%")
    few = (*args[:6], "0.001", "-m", "entities")
    _, records, units = listed(*few)
    # records of which each entity counts once come near a census, and units drawn again and again do not
    assert records["n"] > 0 and units["n"] is None and "do not reach its half width" in units["reason"]
    rest = PRED.drop(LABELS.index[:1])
    write("rest.csv", record=rest.index, cluster=rest)
    unknown = (args[0], "rest.csv", *args[2:6], "0.0001", "-m", "mean-cluster-size", "--missing", "together")
    for row in listed(*unknown):
        assert row["n"] is None and "do not reach its half width" in row["reason"]


OLD = PRED[np.arange(len(PRED)) % 5 > 0]
OLD_LABELS = LABELS[LABELS.index.isin(OLD.index)]


@pytest.fixture
def framed(folder):
    """A prediction that has gained records since the labels were made."""
    write("new.csv", record=PRED.index, cluster=PRED)
    write("old-labels.csv", record=OLD_LABELS.index, entity=OLD_LABELS)
    write("old.csv", record=OLD.index, cluster="any")
    write("ids.csv", record=OLD.index)
    return folder


FRAMES = ("old.csv", "ids.csv")


@pytest.mark.every(3)
@pytest.mark.parametrize("scanned", ["", "--memory-limit 1GB"])
@pytest.mark.parametrize("frame", FRAMES)
def test_the_frame_of_older_labels(framed, frame, scanned):
    wanted = eb.estimate(OLD, OLD_LABELS, eb.UniformRecords(), F1).table().iloc[0]
    given = ("new.csv", "old-labels.csv", "--design", "uniform-records", "--frame", frame)
    shown = done("estimate", *given, "--metrics", "pairwise-f1", "--format", "json", *scanned.split())
    (row,) = json.loads(shown.stdout)["estimates"]
    for key in ("estimate", "se", "lower", "upper"):
        assert row[key] == pytest.approx(wanted[key], rel=1e-12)
    outside = len(PRED) - len(OLD)
    assert f"note: records outside the frame: {outside} of {len(PRED)}; precision without" in shown.stderr
    assert "records of the frame missing in the prediction: 0" in shown.stderr
    assert (f"{len(OLD):,} records of the frame scanned" in shown.stderr) == bool(scanned)
    plan = done("plan", *given, "--half-width", "0.1", *scanned.split())
    assert "records outside the frame" in plan.stderr


@pytest.mark.every(2)
@pytest.mark.parametrize("scanned", ["", "--memory-limit 1GB"])
def test_comparison_inside_the_frame(framed, scanned):
    other = pd.Series(np.where(np.arange(len(PRED)) % 7 > 0, PRED, 3), PRED.index)
    write("other.csv", record=PRED.index, cluster=other)
    both = {"new": OLD, "other": other[OLD.index]}
    wanted = eb.compare(both, OLD_LABELS, eb.UniformRecords(), F1).differences()
    for frame in FRAMES:
        given = ("new.csv", "other.csv", "old-labels.csv", "--design", "uniform-records", "--frame", frame)
        (row,) = paired(*given, "--metrics", "pairwise-f1", *scanned.split())
        assert (row["estimate"], row["se"]) == pytest.approx((wanted.estimate[0], wanted.se[0]), rel=1e-12)
    assert "note: other: records outside the frame" in run("compare", *given, *scanned.split()).stderr


def test_totals_of_groups_inside_the_frame_are_estimated(framed):
    half = pd.Series(np.where(np.arange(len(PRED)) % 2, "a", "b"), PRED.index)
    write("half.csv", record=PRED.index, half=half)
    given = ("new.csv", "old-labels.csv", "--design", "uniform-records", "--frame", "old.csv")
    found = listed("estimate", *given, "--metrics", "rand", "--by", "half", "--attributes", "half.csv")
    sample = eb.Sample(eb.measure(PRED, OLD_LABELS, frame=OLD.index), eb.UniformRecords())
    wanted = eb.by_domain(sample, half, "rand").table()
    assert [row["estimate"] for row in found] == pytest.approx(wanted["estimate"].tolist(), rel=1e-12)


def test_labels_outside_the_frame_are_refused(framed):
    pd.DataFrame({"record": OLD_LABELS.index[:1]}).to_parquet("l.parquet")
    given = ("new.csv", "old-labels.csv", "--design", "uniform-records", "--frame", "l.parquet")
    assert "labelled records are outside the frame" in refused("estimate", *given)


def test_a_frame_in_a_folder_is_scanned(framed):
    (framed / "older").mkdir()
    (framed / "old.csv").rename(framed / "older" / "old.csv")
    given = ("old-labels.csv", "--design", "uniform-records", "--metrics", "pairwise-f1", "--frame", "older")
    wanted = eb.estimate(OLD, OLD_LABELS, eb.UniformRecords(), F1).estimate[0]
    shown = run("estimate", "new.csv", *given, "--format", "json")
    assert json.loads(shown.stdout)["estimates"][0]["estimate"] == pytest.approx(wanted, rel=1e-12)
    assert f"{len(OLD)} records of the frame scanned" in shown.stderr
    compared = done("compare", "new.csv", "p.csv", *given)
    assert "p: records outside the frame" in compared.stderr


def test_a_database_is_no_frame(framed):
    pytest.importorskip("duckdb").connect("old.duckdb").close()
    given = ("new.csv", "old-labels.csv", "--design", "uniform-records", "--frame", "old.duckdb")
    said = "--frame old.duckdb is a DuckDB database: a frame is a file or a folder"
    assert said in refused("estimate", *given)


def test_every_run_says_what_it_read(folder):
    read = (
        f"read {len(PRED)} records in {PRED.nunique()} clusters (record, cluster of p.csv); "
        f"{len(LABELS)} labelled records of 8 entities (record, entity of l.parquet)"
    )
    common = ("l.parquet", "--design", "uniform-clusters", "--metrics", "b3-recall")
    shown = run("estimate", "p.csv", *common, "--format", "json")
    assert shown.stderr.splitlines()[0] == read and json.loads(shown.stdout)["estimates"]
    assert run("report", "p.csv", *common).stderr.splitlines()[0] == read
    assert read.removeprefix("read ") in (folder / "report.html").read_text(encoding="utf-8")


def links(prediction):
    """Each record and the one before it in its cluster, in no order, and itself in between."""
    ids = pd.Series(prediction.index)
    before = ids.groupby(prediction.to_numpy()).shift(1)
    found = pd.DataFrame({"l": before, "r": ids}).dropna()
    return pd.concat([found, found.assign(l=found.r)]).sample(frac=1, random_state=1)


@pytest.mark.every(2)
@pytest.mark.parametrize("name", ["e.csv", "e.parquet"])
def test_edges_give_the_estimates_of_their_components(folder, name):
    edges = links(PRED).assign(p=0.9)
    weak = edges.assign(l=edges.l.sample(frac=1, random_state=2).to_numpy(), p=0.2)
    for frame, file in ((edges[["l", "r"]], name), (pd.concat([weak, edges]), f"scored-{name}")):
        frame.to_csv(file, index=False) if name == "e.csv" else frame.to_parquet(file, index=False)
    write("all.csv", record=PRED.index)
    wanted = estimated("--design", "uniform-clusters")
    options = ("--design", "uniform-clusters", "--edges", "--records", "all.csv")
    for records in ("all.csv", "p.csv"):  # which may be an older prediction
        assert estimated(*options[:-1], records, files=(name, "l.parquet")) == wanted
    scored = (*options, "--score", "p", "--threshold", "0.9")
    assert estimated(*scored, files=(f"scored-{name}", "l.parquet")) == wanted
    assert estimated(*scored[:-4], files=(f"scored-{name}:r,l,p@.9", "l.parquet")) == wanted
    shown = run("estimate", name, "l.parquet", *options).stderr
    alone = int((PRED.map(PRED.value_counts()) == 1).sum())
    read = f"read {len(edges)} links of {len(PRED)} records in {PRED.nunique()} clusters (l and r of {name}; "
    assert read in shown and f"{alone} of the records are linked to no other)" in shown
    shown = run("estimate", f"scored-{name}", "l.parquet", *scored).stderr
    assert f"read {2 * len(edges)} pairs of {len(PRED)} records" in shown
    assert f"(l and r, links from 0.9 on by p of scored-{name}; " in shown
    for command in ("plan --half-width 0.1", "report"):
        done(*command.split(), f"scored-{name}", "l.parquet", *scored, "--metrics", "pairwise-f1")
    compared = run("compare", f"scored-{name}", name, "l.parquet", *scored, "--metrics", "pairwise-f1")
    assert "has no column 'p'" in compared.stderr
    write("q.csv", l=PRED.index, r=PRED.index)
    (row,) = paired(name, "q.csv", "l.parquet", *options, "--metrics", "b3-recall")
    alone = pd.Series(PRED.index, PRED.index)
    found = eb.compare({"e": PRED, "q": alone}, LABELS, eb.UniformClusters(), "b3-recall").differences()
    assert row["estimate"] == pytest.approx(found.estimate[0], rel=1e-12)


def test_edges_say_that_records_in_no_pair_do_not_count(folder):
    options = ("l.parquet", "--design", "uniform-clusters", "--edges")
    links(PRED).to_csv("e.csv", index=False)
    said = "'l' and 'r' share ids, which are of one list, or of two tables"
    assert said in refused("estimate", "e.csv", *options)
    links(PRED).query("l != r").set_axis(["id_l", "id_r"], axis=1).to_csv("e.csv", index=False)
    shown = run("estimate", "e.csv", *options)
    assert "records that are in no pair are not known: --records lists them" in shown.stderr


@pytest.mark.parametrize("args, message", [
    ("e.csv --edges", "is each row a link, or is 'p' a score or an answer? Say which, with the least score"),
    ("e.csv --edges --score p", "without a threshold, scores 'p' of any size would be links"),
    ("x.csv --edges --records ids.csv --threshold 0.5", "a threshold of 0.5 needs the column of scores"),
    ("w.csv --edges --records ids.csv --score p --threshold 0.5", "scores 'p' must be numbers, not such as 'match', 'no'"),
    ("p.csv --threshold 0.5", "p.csv has records and clusters, which no threshold makes links"),
    ("p.csv --edges --memory-limit 1GB", "with --edges, PREDICTION and --frame are files"),
    (". --edges", "with --edges, PREDICTION and --frame are files that are read into memory"),
    ("p.csv --edges --frame .", "with --edges, PREDICTION and --frame are files that are read"),
    ("p.csv --memory-limit -1", "'-1' is not an amount of memory such as 4GB"),
    ("p.csv --memory-limit 0GB", "'0GB' is not an amount of memory such as 4GB"),
    ("w.csv", "w.csv has 3 columns, 'l', 'r', 'p', and it is not clear which is the cluster; 'p' looks like"),
    ("w.csv", "(FILE:RECORD,CLUSTER); if rows are links between records: Clustering.from_pairs(table) (FILE --edges)"),
    ("half.csv --missing error", "hoose a policy to go on "),
])  # fmt: skip
def test_what_a_file_does_not_say_must_be_said(folder, args, message):
    write("ids.csv", id=["r0", "r1", "r2"])
    write("x.csv", l=["r0", "r1"], r=["r1", "r2"])
    write("e.csv", l=["r0", "r1"], r=["r1", "r2"], p=[0.9, 0.2])
    write("w.csv", l=["r0", "r1"], r=["r1", "r2"], p=["match", "no"])
    pd.DataFrame({"record": PRED.index, "cluster": PRED.to_numpy()}).to_csv("index.csv")
    half = PRED[LABELS.index[: len(LABELS) // 2]]
    write("half.csv", record=half.index, cluster=half)
    first, *options = args.split()
    shown = refused("estimate", first, "l.parquet", "--design", "uniform-clusters", *options)
    assert message in " ".join(shown.split())


def test_labels_of_answers_are_refused_with_their_remedy(folder):
    write("stars.csv", l=LABELS.index[:2], r=LABELS.index[2:4], clerical_match_score=[1.0, 0.0])
    message = refused("estimate", "p.csv", "stars.csv", "--design", "uniform-clusters")
    assert "'clerical_match_score' looks like scores or answers about pairs" in message
    assert "erbayes.labels.read_stars makes entities of them, and of a list of true pairs" in message


def test_a_database_needs_its_table(folder):
    duckdb = pytest.importorskip("duckdb")
    duckdb.connect("x.duckdb").close()
    message = refused("estimate", "x.duckdb", "l.parquet", "--design", "uniform-clusters")
    assert message.startswith("erbayes: x.duckdb is a DuckDB database; ") and "(--table NAME)" in message


@pytest.mark.parametrize(
    "command", ["estimate p.csv", "compare p.csv q.csv", "report p.csv", "plan p.csv --half-width 1"]
)
@pytest.mark.parametrize("output", ["p.csv", "l.parquet", "old.csv", "/dev/stdout", "closed.csv", "none/x"])
def test_outputs_are_refused_before_anything_is_read(folder, monkeypatch, command, output):
    (folder / "closed.csv").write_text("old", encoding="utf-8")
    (folder / "closed.csv").chmod(0o444)
    (folder / "old.csv").write_text("old", encoding="utf-8")
    monkeypatch.setattr("erbayes._internal.files.read_columns", lambda *args: pytest.fail("was read"))
    given = ("l.parquet", "-d", "uniform-clusters", "--frame", "old.csv", "--output", output)
    assert f"cannot write {output}: " in refused(*command.split(), *given)


def test_contents_of_files_send_no_commands_to_a_terminal(folder):
    (folder / "x.csv").write_text("record,\x1b]0;title\x07\nr0,a\n", encoding="utf-8")
    args = ("--design", "uniform-clusters", "--missing", "singleton", "--metrics", "b3-recall")
    for options in (args, (*args, "--cluster", "nope")):
        shown = run("estimate", "x.csv", "l.parquet", *options)
        assert "\\x1b]0;title\\x07" in shown.stderr and "\x1b" not in shown.stderr


def test_a_report_has_your_own_numbers(folder):
    write("orders.csv", record=PRED.index, amount=np.arange(len(PRED)) % 7)
    given = ("p.csv", "l.parquet", "--design", "uniform-records", "--drawn", "drawn.csv")
    wanted = ("--statistic", "mean(sales)", "--feature", "sales=amount:sum", "--attributes", "orders.csv")
    shown = done("report", *given, *wanted, "--metrics", "b3")
    assert shown.stdout == "wrote report.html\n", shown.output
    page = (folder / "report.html").read_text(encoding="utf-8")
    (row,) = listed("impact", *given, *wanted)
    assert "Your own numbers" in page and "mean(sales)" in page
    assert digits.format_number(row["predicted"]) in page and digits.format_number(row["estimate"]) in page
    digest = hashlib.sha256((folder / "orders.csv").read_bytes()).hexdigest()
    assert f"orders.csv, {(folder / 'orders.csv').stat().st_size:,} bytes, SHA-256 {digest}" in page
    assert "--attributes needs --by" in refused("report", *given, "--attributes", "orders.csv", "--replace")


def test_a_file_of_all_records_may_have_other_columns(folder):
    write("edges.csv", a=[1, 2], b=[2, 3])
    write("people.csv", town="Rome", id=range(9), name="x")
    call = "draw edges.csv --edges --records people.csv -d uniform-records -n 2 --seed 1 -o out"
    assert "read 2 links of 9 records in 7 clusters" in done(*call.split()).stderr
