"""What a new user meets on the way: options that are missing, columns that a folder knows, tables to read."""

import json
import re
import shlex

import pandas as pd
import pytest
from shell import done, refused, run
from test_cli import folder, paired  # noqa: F401
from test_cli_thresholds import files  # noqa: F401
from test_folder import fill
from test_thresholds_curve import EDGES, TRUTH
from typer.testing import CliRunner

from erbayes.cli import app
from erbayes.cli.options import ORDER
from erbayes.labels.folder import read_folder


def test_missing_options_are_named_all_at_once(folder):  # noqa: F811
    told = refused("draw", "p.csv", "-n5")
    assert "Missing: --seed, --output. The help says what each is" in told
    assert "uniform-records" not in told, "names without a meaning"
    assert "Missing: PREDICTION, --n, --seed" in refused("draw")
    # a wrong value is told even if another option is missing
    assert "'uniform' is not one of 'multipurpose'" in refused("draw", "p.csv", "-d", "uniform")


def draw_from(prediction, options):
    """Draw a folder, and answer it by the truth."""
    done("draw", prediction, "-d", "uniform-records", "-n", 30, "--seed", 5, *options, "-o", "f")
    fill(read_folder("f"), TRUTH.rename(str))


@pytest.mark.every(2)
@pytest.mark.parametrize("of_edges", [False, True])
def test_a_folder_knows_all_records_of_scored_edges(files, of_edges):  # noqa: F811
    pd.DataFrame({"key": TRUTH.index, "group": range(len(TRUTH))}).to_csv("own.csv", index=False)
    left, right, score = EDGES.columns
    links = (f"edges.csv:{left},{right},{score}@3", ["--records", "ids.csv"])
    draw_from(*(links if of_edges else ("own.csv", ["--cluster", "group"])))
    call = ("thresholds", "edges.csv", "f", "--at", "3", "--format", "json")
    found = done(*call)
    assert found.stdout == run(*call, "--records", "ids.csv").stdout


def test_columns_that_a_folder_knows_are_not_asked_for(files):  # noqa: F811
    pd.DataFrame({"key": TRUTH.index, "group": range(len(TRUTH))}).to_csv("own.csv", index=False)
    draw_from("own.csv", ["--cluster", "group"])
    told = refused("thresholds", "edges.csv", "labels.csv", "-d", "uniform-records")
    assert "--records FILE" in told
    told = refused("thresholds", "own.csv", "labels.csv", "-d", "uniform-records")
    assert "own.csv has 'key', 'group': it is not clear which has the scores" in told


def test_a_person_reads_twenty_thresholds_and_a_program_all(files):  # noqa: F811
    call = ("thresholds", "edges.csv", "labels.csv", "--records", "ids.csv")
    call += tuple(shlex.split("--design uniform-records --drawn drawn.csv -m f1"))
    everything = json.loads(run(*call, "--at", "45", "--format", "json").stdout)["estimates"]
    shown = run(*call, "--at", "45")
    answer, bands, blank, head, _, *rows = shown.stdout.splitlines()
    assert answer.startswith("A threshold of ") and "cover a metric at all thresholds" in bands and not blank
    assert head.split() == ["threshold", "pairwise-f1"] and len(rows) == 21
    assert answer.split()[3] in [row.split()[0] for row in rows], "also the threshold that is named"
    assert f"note: 21 of {len(everything)} thresholds are shown; --format csv has all" in shown.stderr
    few = run(*call, "--at", "3")
    assert "are shown" not in few.stderr


@pytest.mark.parametrize("command", ORDER)
def test_help_fits_a_terminal_of_eighty_columns(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = CliRunner().invoke(app, [command, "--help"], terminal_width=80).output.splitlines()
    assert len(lines) > 3 and max(map(len, lines)) <= 80


def test_a_report_says_that_nobody_may_have_looked(files):  # noqa: F811
    """As the shell does: an annotator who only presses Enter makes every estimate 1."""
    TRUTH.rename("group").rename_axis("key").reset_index().to_csv("own.csv", index=False)
    draw_from("own.csv", ["--cluster", "group"])
    written = done("report", "f")
    assert "never changed a default" in written.stderr
    with open("report.html", encoding="utf-8") as page:
        text = page.read()
    assert "caution" in text and "never changed a default" in text and "<td>cautions" not in text


def test_annotators_do_not_see_the_prediction(files):  # noqa: F811
    """Splink's table of clusters has all attributes, and the cluster, blind or not; --show keeps it, also for more draws."""
    table = pd.DataFrame({"unique_id": TRUTH.index, "cluster_id": [i // 2 for i in range(len(TRUTH))]})
    table.assign(name="n", copy=table["cluster_id"] + 9).to_csv("own.csv", index=False)
    draw = "draw own.csv -d uniform-records -n 9 --seed 5 --attributes own.csv"
    drawn = run(*draw.split(), "--blind", "-o", "f")
    said = "cluster_id, copy of own.csv left out, which would tell the prediction to annotators: --show cluster_id,copy"
    assert drawn.exit_code == 0 and said in drawn.stderr
    for file in ("f/sheet-A.csv", "f/label-A.html", "f/tasks.csv"):
        with open(file, encoding="utf-8") as text:
            assert not {"cluster_id", "copy"} & set(
                re.findall(r"\w+", text.read().partition("<script")[0])
            ), file
    shown = run(*draw.split(), "--show", "copy", "-o", "g")
    assert "note: cluster_id of own.csv left out" in shown.stderr
    assert "copy" in pd.read_csv("g/sheet-A.csv").columns
    assert run("draw", "--more", "3", "g").exit_code == 0 and "copy" in pd.read_csv("g/sheet-A.csv").columns
    assert "has no column 'nope'" in refused(*draw.split(), "--show", "nope", "-o", "h")
