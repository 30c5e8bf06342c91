"""Second clusterings and cheap labels in the shell: comparisons, and remedies in the words of their options."""

import json

import numpy as np
import pandas as pd
import pytest
from test_cli import paired, refused, run

import erbayes as eb
from erbayes.labels import machine_labels
from erbayes.study import populations as sim

RNG = np.random.default_rng(8)
TRUTH = sim.population(sim.LogNormal(0.5, 1.0), 1500, RNG).rename(index="r{:05d}".format)
OLD, NEW, SLOW = (
    pd.Series(sim.Misattribution(error).apply(TRUTH.to_numpy(), RNG), TRUTH.index)
    for error in (0.25, 0.15, 0.02)
)
RECORDS = TRUTH.index[RNG.integers(len(TRUTH), size=300)]
DRAWN = TRUTH[RECORDS[:100]].tolist()
LABELS = TRUTH[TRUTH.isin(DRAWN)]
DESIGN = eb.UniformRecords(draws=DRAWN)
METRICS = ["pairwise-precision", "pairwise-recall"]
DRAWING = ("--design", "uniform-records", "--drawn", "drawn.csv", "--metrics", ",".join(METRICS))
ANSWERS = pd.DataFrame(
    [
        (drawn, record, 0.9 if NEW[drawn] == NEW[record] else 0.2)
        for drawn in RECORDS.unique()
        for record in TRUTH.index[(OLD == OLD[drawn]) | (NEW == NEW[drawn])]
    ],
    columns=["drawn", "record", "probability"],
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, codes in (("old", OLD), ("new", NEW), ("slow", SLOW), ("labels", LABELS)):
        pd.DataFrame({"record": codes.index, "cluster": codes}).to_csv(f"{name}.csv", index=False)
    both = pd.DataFrame({"record": OLD.index, "old": OLD, "new": NEW, "slow": SLOW})
    both.to_csv("both.csv", index=False)
    both[["slow", "record"]].to_csv("swapped.csv", index=False)
    pd.DataFrame({"unit": DRAWN}).to_csv("drawn.csv", index=False)
    pd.DataFrame({"record": RECORDS}).to_csv("machine-drawn.csv", index=False)
    ANSWERS.to_csv("answers.csv", index=False)
    return tmp_path


# A comparison with the help of a second clustering

TWO = ("old.csv", "new.csv")
WAYS = {
    "a file": (TWO, "--assist slow.csv"),
    "a column of a file": (TWO, "--assist both.csv --assist-cluster slow --record record"),
    "columns of one file": (
        ("both.csv",),
        "--cluster old --cluster new --assist-cluster slow --record record",
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_comparison_in_the_shell_is_that_of_python(folder, way):
    predictions, options = WAYS[way]
    shown = run("compare", *predictions, "labels.csv", *DRAWING, "--format", "json", *options.split())
    assert shown.exit_code == 0, shown.output
    engine = eb.auxiliary.Assisted.of({"old": OLD, "new": NEW}, LABELS, by=SLOW)
    wanted = eb.compare({"old": OLD, "new": NEW}, LABELS, DESIGN, METRICS, engine=engine).differences()
    alone = eb.compare({"old": OLD, "new": NEW}, LABELS, DESIGN, METRICS).differences()
    assert (wanted["se"] < [0.5, 0.95] * alone["se"]).all(), "recall has much out of reach here"
    rows = paired(shown)
    for name in ("estimate", "se", "lower", "upper"):
        np.testing.assert_allclose([row[name] for row in rows], wanted[name], rtol=1e-6)
    assert "\nold: lambda 0." in shown.stderr and "\nnew: lambda 0." in shown.stderr


def test_one_of_the_predictions_helps_the_other(folder):
    shown = run("compare", "old.csv", "slow.csv", "labels.csv", *DRAWING, "--assist", "slow.csv")
    assert shown.exit_code == 0, shown.output
    assert "\nslow: lambda 0.00 for pairwise-precision, 0.00 for pairwise-recall" in shown.stderr
    assert "\nold: lambda 0.9" in shown.stderr


@pytest.mark.parametrize(
    "options, message",
    [
        ("--assist-cluster slow", "of which there are 2 files: name a file by --assist"),
        ("--assist slow.csv --by country", "--by takes no second clustering"),
        ("--assist slow.csv --output slow.csv", "cannot write slow.csv"),
    ],
)
def test_comparisons_without_help_are_refused(folder, options, message):
    assert message in refused("compare", "old.csv", "new.csv", "labels.csv", *DRAWING, *options.split())


# Remedies in the words of the options


@pytest.mark.parametrize(
    "options, remedy",
    [
        ("--assist both.csv", "name them: --record, --assist-cluster"),
        ("--assist slow.csv --assist-cluster z", "name them: --record, --assist-cluster"),
        (
            "--cheap answers.csv --cheap-drawn machine-drawn.csv",
            "least probability of a match: --cheap-threshold",
        ),
    ],
)
def test_remedies_name_the_options_of_the_file(folder, options, remedy):
    said = refused("estimate", "old.csv", "labels.csv", *DRAWING, *options.split())
    assert remedy in said
    assert "--edges" not in said and "--cluster" not in said


# Answers of a machine


def answered(**changes):
    for name, table in changes.items():
        table.to_csv(f"{name}.csv", index=False)
    cheap = ("--cheap", "answers.csv", "--cheap-drawn", "machine-drawn.csv", "--cheap-threshold", "0.5")
    return ("estimate", "old.csv", "labels.csv", *DRAWING, *cheap)


@pytest.mark.parametrize(
    "table",
    [
        ANSWERS,
        ANSWERS[["record", "probability", "drawn"]],
        ANSWERS.assign(model="x")[["model", *reversed(ANSWERS.columns)]],
        ANSWERS.set_axis(["left", "right", "p"], axis=1),
    ],
    ids=["in order", "in another order", "with another column", "without these names"],
)
def test_answers_are_read_by_name(folder, table):
    shown = run(*answered(answers=table), "--format", "json")
    assert shown.exit_code == 0, shown.output
    machine = machine_labels(ANSWERS, RECORDS)
    wanted = eb.two_phase(
        OLD, LABELS, DESIGN, METRICS, cheap=machine.labels, cheap_design=machine.design
    ).table()
    found = pd.DataFrame(json.loads(shown.stdout)["estimates"]).set_index("metric")
    np.testing.assert_allclose(found["estimate"], wanted["estimate"])
    assert (wanted["lambda"] > 0).any()


def test_answers_with_too_many_columns_name_the_remedy(folder):
    table = ANSWERS.set_axis(["left", "right", "p"], axis=1).assign(model="x")
    said = refused(*answered(answers=table))
    assert "and 3 columns are needed: name 3 columns as answers.csv:COLUMNS" in said
    assert "--record" not in said


def test_unusable_answers_name_their_remedy(folder):
    percent = ANSWERS.assign(probability=100 * ANSWERS["probability"])
    assert "divide percentages by 100" in refused(*answered(answers=percent))
    strange = pd.concat([ANSWERS, ANSWERS[:1].assign(record="new", probability=None)])
    said = refused(*answered(answers=strange))
    assert "1 records of the answers are not in the prediction, such as 'new': drop these answers" in said
