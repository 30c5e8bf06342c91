"""Alarms as sentences with a grade, in Python and in the words of the shell; what is known before any label."""

import copy
import itertools
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import erbayes as eb
from erbayes import metrics as m
from erbayes._internal.errors import Grade, Remedy, Sentence, grade_of
from erbayes.cli import app
from erbayes.cli.options import REMEDIES
from erbayes.design.calibration import links_expected_beyond
from erbayes.metrics.columns import PREDICTED_CLUSTERS, PREDICTED_LINKS, RECORDS
from erbayes.units.units import KnownTotals


def run(*args):
    return CliRunner().invoke(app, [str(a) for a in args])


def graded(sample, start, metrics):
    """The grade of the alarm that starts, or goes on, with `start`."""
    (alarm,) = [a for a in eb.alarms(sample, metrics) if start in a]
    return alarm.grade.value


def test_a_sentence_is_a_str_with_a_grade_that_copies_keep():
    sentence = Sentence("Out of balance", Grade.FAULT, Remedy.DISTINCT, Remedy.LARGE)
    assert sentence == f"Out of balance; {Remedy.DISTINCT.value}; {Remedy.LARGE.value}."
    assert Sentence("It is so.", Grade.NOTE) == "It is so."
    for again in (copy.copy(sentence), copy.deepcopy(sentence), pickle.loads(pickle.dumps(sentence))):
        assert again == sentence and again.grade is Grade.FAULT and again.remedies == sentence.remedies
    moved = sentence.about("kind B: ")
    assert moved == f"kind B: {sentence}" and moved.grade is Grade.FAULT
    assert moved.remedies == sentence.remedies
    assert grade_of("a text of a user") is Grade.CAUTION


def test_a_warning_has_the_grade_of_its_sentence():
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        eb.estimate({1: "a", 2: "a", 3: "b"}, {1: "x", 2: "x"}, eb.UniformClusters(), [m.pairwise_recall])
    assert [w.message.grade for w in raised if w.category is eb.Alarm] == [Grade.FAULT]
    assert eb.Alarm("plain").grade is Grade.CAUTION is eb.Alarm().grade


def test_links_out_of_reach_are_a_fault_of_metrics_that_count_links_alone():
    prediction = {r: r // 2 for r in range(100)} | {10**6 + i: 99 for i in range(50)}
    sample = eb.Sample(eb.measure(prediction, {r: r // 4 for r in range(80)}), eb.UniformClusters())
    assert graded(sample, "larger than any", [m.pairwise_recall, m.b3_recall]) == "fault"
    assert graded(sample, "larger than any", [m.b3_recall, m.cluster_recall]) == "caution"
    assert graded(sample, "Out of balance", [m.b3_recall]) == "fault"


def test_what_rests_on_few_units_is_a_caution():
    units = eb.measure({r: r for r in range(9)}, {0: "a", 1: "a", 2: "b", 3: "c"})
    assert graded(eb.Sample(units, eb.UniformClusters()), "A single unit", [m.pairwise_recall]) == "caution"
    tail = {i: 1000 + i for i in range(60)} | dict.fromkeys(range(60, 120), 1)
    true = {i: i // 2 for i in range(60)} | dict.fromkeys(range(60, 120), 5000)
    sample = eb.Sample(eb.measure(tail, true), eb.UniformClusters())
    assert graded(sample, "Heavy tail", [m.pairwise_recall]) == "caution"


def test_labels_that_make_numbers_wrong_are_faults():
    prediction = {i: i // 2 for i in range(40)}
    alone = eb.Sample(eb.measure(prediction, {i: f"e{i}" for i in range(0, 20, 2)}), eb.UniformRecords())
    assert graded(alone, "must list every record", [m.b3_recall]) == "fault"
    dropped = eb.Sample(eb.measure(prediction, {i: i // 2 for i in range(40)}), eb.UniformRecords())
    assert graded(dropped, "pairs of draws", [m.b3_recall]) == "fault"
    design = eb.design.Responding(eb.UniformRecords(list(range(10))), [True] * 10 + [False] * 2)
    lost = eb.Sample(eb.measure(prediction, {i: i // 2 for i in range(20)}), design)
    assert graded(lost, "unresolved", [m.b3_recall]) == "fault"


def test_every_remedy_has_words_of_the_shell_without_python():
    for remedy in Remedy:
        assert not any(word in REMEDIES[remedy] for word in ("draws=", "()", "sampling.", "DistinctEntities"))


def test_the_shell_prints_grades_and_its_own_words(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"record": range(40), "cluster": np.arange(40) // 2}).to_csv("p.csv", index=False)
    pd.DataFrame({"record": range(40), "entity": np.arange(40) // 2}).to_csv("l.csv", index=False)
    shown = run("estimate", "p.csv", "l.csv", "--design", "uniform-records")
    assert shown.exit_code == 0
    assert "note: The sample shows no variation of pairwise-precision" in shown.stderr
    assert "fault: About 10 pairs of draws" in shown.stderr and "warning:" not in shown.stderr
    assert "choose --design distinct-entities with --draws" in shown.stderr
    assert "DistinctEntities" not in shown.stderr
    checked = run("check", "p.csv", "l.csv", "--design", "uniform-records", "--min-recall", "0.5")
    assert checked.exit_code == 3 and "fault: About 10 pairs of draws" in checked.stderr


SIZES = {1: 6, 2: 3, 3: 2, 5: 1}
KNOWN = KnownTotals(np.array(list(SIZES), dtype=float), np.array(list(SIZES.values()), dtype=float))


@pytest.mark.parametrize(
    ("chance", "weigh"),
    [(RECORDS, lambda s: s), (PREDICTED_CLUSTERS, lambda s: 1), (PREDICTED_LINKS, lambda s: s * (s - 1) / 2)],
)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_links_that_no_draw_is_expected_to_reach(chance, weigh, n):
    """Every sequence of n draws of clusters, one by one, with its chance."""
    clusters = [s for s, k in SIZES.items() for _ in range(k)]
    weight = np.array([weigh(s) for s in clusters], dtype=float)
    p, links = weight / weight.sum(), [s * (s - 1) / 2 for s in clusters]
    expected = 0.0
    for drawn in itertools.product(range(len(clusters)), repeat=n):
        reached = max(clusters[i] for i in drawn)
        beyond = sum(x for s, x in zip(clusters, links, strict=True) if s > reached)
        expected += np.prod(p[list(drawn)]) * beyond / sum(links)
    assert links_expected_beyond(KNOWN, chance, n) == pytest.approx(expected, rel=1e-12)
    backwards = KnownTotals(KNOWN.size[::-1], KNOWN.count[::-1])
    assert links_expected_beyond(backwards, chance, n) == pytest.approx(expected, rel=1e-12)


def test_no_link_is_out_of_reach_of_a_prediction_without_links():
    assert links_expected_beyond(KnownTotals(np.ones(1), np.full(1, 9.0)), RECORDS, 2) == 0.0


@pytest.mark.parametrize(("giant", "said"), [(14, False), (15, True)])
def test_draw_says_before_any_label_that_large_clusters_are_left_out(giant, said, tmp_path, monkeypatch):
    """A giant of 14 records has 91 links of 911, one of 15 has 105 of 925: below and above a tenth."""
    monkeypatch.chdir(tmp_path)
    clusters = np.append(np.arange(1640) // 2, np.full(giant, 9999))
    pd.DataFrame({"record": range(len(clusters)), "cluster": clusters}).to_csv("p.csv", index=False)
    shown = run("draw", "p.csv", "--design", "uniform-records", "--n", "5", "--seed", "1", "--output", "out")
    assert shown.exit_code == 0, shown.output
    drawn = pd.read_csv("out/drawn.csv")
    assert not (drawn.astype(str) == "9999").any(axis=None), "the giant is not drawn"
    assert ("largest predicted cluster of these draws has 2 records, and 11%" in shown.stderr) is said


def test_plan_says_which_design_leaves_out_large_clusters(tmp_path, monkeypatch):
    """Two giants with most links: some fifty records reach them, as many entities do not."""
    monkeypatch.chdir(tmp_path)
    clusters = np.concatenate([np.arange(4000) // 2, np.repeat([8888, 9999], 400)])
    pd.DataFrame({"record": range(4800), "cluster": clusters}).to_csv("p.csv", index=False)
    drawn = np.random.default_rng(1).integers(4800, size=60)
    truth = np.where(np.arange(4800) % 9 == 0, clusters + 10**5, clusters)
    chosen = np.isin(truth, truth[drawn])
    pd.DataFrame({"record": np.flatnonzero(chosen), "entity": truth[chosen]}).to_csv("l.csv", index=False)
    pd.Series(truth[drawn], name="entity").to_csv("d.csv", index=False)
    options = ("--design", "uniform-records", "--drawn", "d.csv", "--metrics", "b3-recall")
    shown = run("plan", "p.csv", "l.csv", *options, "--half-width", "0.1")
    assert shown.exit_code == 0, shown.output
    assert "note: uniform-clusters: " in shown.stderr and "note: uniform-records: " not in shown.stderr
    assert "they do not tell recall of large entities" in shown.stderr
