"""Alarms as sentences with a grade, in Python and in the words of the shell; what is known before any label."""

import ast
import copy
import itertools
import pickle
import re
import warnings
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from shell import done, run
from source import parse, parse_package

import erbayes as eb
from erbayes import metrics as m
from erbayes._internal import remedies
from erbayes._internal.errors import Grade, Sentence, grade_of
from erbayes.design.records import expect_unreached_links
from erbayes.engine import diagnostics
from erbayes.large import scan
from erbayes.metrics.columns import PREDICTED_CLUSTERS, PREDICTED_LINKS, RECORDS
from erbayes.units.units import KnownTotals


def graded(sample, start, metrics):
    """The grade of the alarm that starts, or goes on, with `start`."""
    (alarm,) = [a for a in eb.alarms(sample, metrics) if start in a]
    return alarm.grade.value


def test_a_sentence_is_a_str_with_a_grade_that_copies_keep():
    sentence = Sentence("Out of balance", Grade.FAULT, remedies.DISTINCT, remedies.MORE)
    assert sentence == f"Out of balance; {remedies.DISTINCT.value}; {remedies.MORE.value}."
    assert Sentence("It is so.", Grade.NOTE) == "It is so."
    for again in (copy.copy(sentence), copy.deepcopy(sentence), pickle.loads(pickle.dumps(sentence))):
        assert again == sentence and again.grade is Grade.FAULT and again.remedies == sentence.remedies
    moved = sentence.about("kind B: ")
    assert moved == f"kind B: {sentence}" and moved.grade is Grade.FAULT
    assert moved.remedies == sentence.remedies and grade_of("a text of a user") is Grade.CAUTION


def test_every_alarm_of_a_sample_has_a_row_of_the_page():
    """Functions quote the name of their row. `alarms` makes that of a single draw itself."""
    page = (Path(__file__).parents[1] / "docs/guide/which-estimator.md").read_text(encoding="utf-8")
    table = page.partition("| alarm |")[2].partition("\n\n")[0]
    rows, told = {*re.findall(r"^\| (\w[^|]*) \|", table, re.M)}, {"a single draw"}
    for function in parse(Path(diagnostics.__file__)).body:
        calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
        if function.__class__ is ast.FunctionDef and "Sentence" in {getattr(c.func, "id", "") for c in calls}:
            names = re.findall(r'"(.+?)"', ast.get_docstring(function).partition("\n")[0])
            assert names or function.name == "alarms", f"quote the name of its row in {function.name}"
            told |= {*names}
    assert not told - rows, f"add {sorted(told - rows)} to the alarms in docs/guide/which-estimator.md"
    assert not rows - told, f"docs/guide/which-estimator.md has alarms that there are not: {rows - told}"


def test_a_warning_has_the_grade_of_its_sentence():
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        eb.estimate({1: "a", 2: "a", 3: "b"}, {1: "x", 2: "x"}, eb.UniformClusters(), [m.pairwise_recall])
    assert [w.message.grade for w in raised if w.category is eb.Alarm] == [Grade.FAULT]
    assert eb.Alarm("plain").grade is Grade.CAUTION is eb.Alarm().grade


def test_a_warning_points_to_the_line_of_the_user():
    """How deep in the package it is raised is not theirs to know, and `filterwarnings` goes by their module."""
    prediction, labels = {r: r // 2 for r in range(200)}, {r: r // 4 for r in range(80)}
    distances = pd.DataFrame(
        [(r, r + d, d) for r in range(0, 80, 4) for d in (1, 4)], columns=["a", "b", "score"]
    )
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        eb.estimate(prediction, labels, eb.UniformRecords())
        eb.compare({"old": prediction, "new": {r: r // 3 for r in range(200)}}, labels, eb.UniformRecords())
        eb.thresholds(distances, labels, eb.UniformRecords(), ["b3-recall"], records=range(200))
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    assert {w.filename for w in raised} == {__file__}
    said = {re.search(r"eb\.(\w+)", lines[w.lineno - 1])[1] for w in raised}
    assert said == {"estimate", "compare", "thresholds"}


@pytest.mark.slow
def test_every_warning_of_the_package_skips_the_lines_of_the_package():
    nodes = (node for tree in parse_package().values() for node in ast.walk(tree))
    calls = (node for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute))
    warned = [ast.unparse(call) for call in calls if ast.unparse(call.func) == "warnings.warn"]
    assert warned and all(re.search(r", skip_file_prefixes=(errors\.)?PACKAGE\)$", text) for text in warned)


def beside_a_giant(records):
    """Twenty sampled entities of two pairs each, whose prediction has a giant that no draw touches."""
    prediction = {r: r // 2 for r in range(2000)} | {10**6 + i: 10**6 for i in range(records)}
    return eb.Sample(eb.measure(prediction, {r: r // 4 for r in range(80)}), eb.UniformRecords())


def test_links_out_of_reach_are_a_fault_of_intervals_that_do_not_allow_for_them():
    sample = beside_a_giant(60)
    metrics = [m.pairwise_precision, m.pairwise_recall, m.b3_recall]
    found = eb.estimate(sample, metrics=metrics)
    for printed in (
        None,
        found.table(),
        found.table(kind=eb.intervals.Anytime()),
        eb.estimate(sample, metrics=metrics, engine="bootstrap", rng=1).table(),
    ):
        (said,) = (a for a in eb.alarms(sample, metrics, printed) if "larger than any" in a)
        assert said.grade is Grade.CAUTION and "intervals of precision allow any value there" in said
    for printed, kind in (
        (found.table(kind=eb.intervals.WALD), "Wald"),
        (found.table(kind=eb.intervals.Symmetric()), "t"),
    ):
        (said,) = (a for a in eb.alarms(sample, metrics, printed) if "larger than any" in a)
        assert said.grade is Grade.FAULT
        assert f"and {kind} intervals of pairwise-precision are too short to allow for what these" in said
    (said,) = (a for a in eb.alarms(sample, [m.b3_recall]) if "larger than any" in a)
    assert said.grade is Grade.CAUTION and "precision" not in said, "it counts no links"


@pytest.mark.parametrize(("length", "grade"), [(0.001, "fault"), (-0.001, "caution")])
def test_an_interval_allows_for_links_out_of_reach_if_it_is_as_long_as_their_share(length, grade):
    """The giant of 60 has 1,770 links of 2,770."""
    table = pd.DataFrame({"metric": ["pairwise-precision"], "kind": ["mine"], "lower": [0.0]})
    table["upper"] = 1770 / 2770 - length
    said = [a for a in eb.alarms(beside_a_giant(60), "precision", table) if "64% of all" in a]
    assert [a.grade.value for a in said] == [grade]


@pytest.mark.parametrize(("giant", "off"), [(517, False), (518, True)])
def test_a_giant_that_chance_would_not_have_missed_is_out_of_balance(giant, off):
    """Twenty draws of records miss 517 of 2,517 with chance .0101, and 518 of 2,518 with .00999."""
    assert bool((2000 / (2000 + giant)) ** 20 <= 0.01) is off
    sample = beside_a_giant(giant)
    alarms = [a for a in eb.alarms(sample, [m.pairwise_precision]) if a.startswith("Out of balance")]
    assert [a.grade for a in alarms] == [Grade.FAULT] * off


@pytest.mark.parametrize(("design", "off"), [
    (eb.UniformClusters(), False),
    (eb.design.ByPredictedSize(eb.columns.RECORDS), False),
    (eb.design.ByPredictedSize(eb.columns.PREDICTED_LINKS), True),
])  # fmt: skip
def test_chance_misses_a_giant_as_the_design_draws(design, off):
    """A giant of 200 is one cluster of 1,001, a tenth of the records, and .95 of the links."""
    prediction = {r: r // 2 for r in range(2000)} | {10**6 + i: 10**6 for i in range(200)}
    sample = eb.Sample(eb.measure(prediction, {r: r // 4 for r in range(80)}), design)
    found = [a for a in eb.alarms(sample, "b3-recall") if a.startswith("Out of balance")]
    assert bool(found) is off


@pytest.mark.parametrize(("length", "off"), [(0.083, True), (0.084, False)])
def test_chance_is_no_excuse_beside_intervals_that_do_not_allow_for_it(length, off):
    """A giant of 14 has 91 of 1,091 links, .0834 of them, and 200 draws that are alike estimate 1,007."""
    prediction = {r: r // 2 for r in range(2000)} | {10**6 + i: 10**6 for i in range(14)}
    sample = eb.Sample(eb.measure(prediction, {r: r // 4 for r in range(800)}), eb.UniformRecords())
    table = pd.DataFrame({"metric": ["pairwise-precision"], "kind": "mine", "lower": 0.0, "upper": length})
    assert any(a.startswith("Out of balance") for a in eb.alarms(sample, "precision", table)) is off


@pytest.mark.parametrize(("singles", "grade"), [(9, "note"), (12, "fault")])
def test_a_discrepancy_that_no_metric_feels_is_a_note(singles, grade):
    """Of 10,000 predicted links, 8,000 pairs that are alike estimate half a link more per single record."""
    prediction = {r: r // 2 if r < 20_000 else r for r in range(20_000 + singles)}
    labels = {r: r // 2 for r in range(16_000)}
    sample = eb.Sample(eb.measure(prediction, labels), eb.UniformRecords([*range(8000), 0]))
    assert graded(sample, "Out of balance", [m.pairwise_recall]) == grade
    if grade == "fault":
        assert graded(sample, "Out of balance", [m.b3_recall]) == "caution", "it counts no links"


def test_an_interval_without_length_is_a_fault_if_no_draw_shows_an_error():
    labels = {r: r // 2 for r in range(40)}
    sample = eb.Sample(eb.measure({r: r // 2 for r in range(400)}, labels), eb.UniformClusters())
    metrics = [m.pairwise_precision, m.pairwise_recall]
    found = eb.estimate(sample, metrics=metrics)
    (note,) = eb.alarms(sample, metrics)
    assert note.grade is Grade.NOTE and note.endswith("intervals allow for errors that no draw has shown.")
    (fault,) = eb.alarms(sample, metrics, found.table(kind=eb.intervals.WALD))
    assert fault.grade is Grade.FAULT and fault.endswith(
        "Wald intervals of pairwise-precision, pairwise-recall have no length: do not quote them."
    )


def test_doors_speak_of_the_intervals_that_they_print(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("p.csv", "again.csv"):
        pd.DataFrame({"record": range(400), "cluster": np.arange(400) // 2}).to_csv(name, index=False)
    pd.DataFrame({"record": range(40), "entity": np.arange(40) // 2}).to_csv("l.csv", index=False)
    pd.DataFrame({"record": range(400), "g": ["a", "b"] * 200}).to_csv("g.csv", index=False)
    drawn = ("l.csv", "--design", "uniform-clusters", "--metrics", "precision", "--interval")
    for command, files, more in (
        ("estimate", ["p.csv"], []),
        ("estimate", ["p.csv"], ["--attributes", "g.csv", "--by", "g"]),
        ("compare", ["p.csv", "again.csv"], []),
    ):
        for kind, grade in (("beta-gamma", "note"), ("wald", "fault")):
            shown = done(command, *files, *drawn, kind, *more)
            assert f"{grade}: " in shown.stderr and "shows no variation of pairwise-precision" in shown.stderr
            assert ("Wald intervals of pairwise-precision have no length" in shown.stderr) is (kind == "wald")


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
    fours = {i: i // 4 for i in range(80)}
    dropped = eb.Sample(eb.measure(fours, fours), eb.UniformRecords())
    assert graded(dropped, "By the units that draws have found", [m.b3_recall]) == "fault"
    design = eb.design.Responding(eb.UniformRecords(list(range(10))), [True] * 10 + [False] * 2)
    lost = eb.Sample(eb.measure(prediction, {i: i // 2 for i in range(20)}), design)
    assert graded(lost, "are undecided", [m.b3_recall]) == "fault"


def test_the_shell_prints_grades_and_remedies(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"record": range(84), "cluster": np.arange(84) // 2}).to_csv("p.csv", index=False)
    pd.DataFrame({"record": range(80), "entity": np.arange(80) // 2}).to_csv("l.csv", index=False)
    shown = done("estimate", "p.csv", "l.csv", "--design", "uniform-records")
    # each of 40 pairs is found with chance 1 - (82/84)^40 = .619, and 80/.619 is 129
    assert "note: The sample shows no variation of pairwise-precision" in shown.stderr
    fault = "fault: By the units that draws have found, they are from 129 records"
    assert fault in shown.stderr and "warning:" not in shown.stderr
    assert "DistinctEntities(n) (--design distinct-entities --draws)" in shown.stderr
    assert "if records were drawn without replacement, list the entity of every draw in" in shown.stderr
    checked = run("check", "p.csv", "l.csv", "--design", "uniform-records", "--min-recall", "0.5")
    assert checked.exit_code == 3 and fault in checked.stderr


SIZES = {1: 6, 2: 3, 3: 2, 5: 1}
KNOWN = KnownTotals(np.array(list(SIZES), dtype=float), np.array(list(SIZES.values()), dtype=float))


@pytest.mark.parametrize("chance, weigh", [
    (RECORDS, lambda s: s), (PREDICTED_CLUSTERS, lambda s: 1), (PREDICTED_LINKS, lambda s: s * (s - 1) / 2),
])  # fmt: skip
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
    assert expect_unreached_links(KNOWN, chance, n) == pytest.approx(expected, rel=1e-12)
    backwards = KnownTotals(KNOWN.size[::-1], KNOWN.count[::-1])
    assert expect_unreached_links(backwards, chance, n) == pytest.approx(expected, rel=1e-12)


def test_no_link_is_out_of_reach_of_a_prediction_without_links():
    assert expect_unreached_links(KnownTotals(np.ones(1), np.full(1, 9.0)), RECORDS, 2) == 0.0


@pytest.mark.parametrize(("giant", "said"), [(14, False), (15, True)])
def test_draw_says_before_any_label_that_large_clusters_are_left_out(giant, said, tmp_path, monkeypatch):
    """A giant of 14 records has 91 links of 911, one of 15 has 105 of 925: below and above a tenth."""
    monkeypatch.chdir(tmp_path)
    clusters = np.append(np.arange(1640) // 2, np.full(giant, 9999))
    pd.DataFrame({"record": range(len(clusters)), "cluster": clusters}).to_csv("p.csv", index=False)
    shown = done("draw", "p.csv", "--design", "uniform-records", "--n", "5", "--seed", "1", "--output", "out")
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
    options = ("--design", "uniform-records", "--drawn", "d.csv", "-f", "csv", "--half-width", "0.1")
    shown = done("plan", "p.csv", "l.csv", *options, "--metrics", "b3-recall,b3-precision")
    n = pd.read_csv(StringIO(shown.stdout)).query("design == 'uniform-clusters'")["n"]
    said = f"note: uniform-clusters: {n.max():,.0f} draws are"
    assert n.min() < n.max() and said in shown.stderr and "note: uniform-records: " not in shown.stderr
    assert "they do not tell recall of large entities" in shown.stderr


@pytest.mark.parametrize(("size", "clusters", "noted", "cased", "part"), [
    (10, 40, True, 0, 10**6), (10, 40, True, 2, 9), (10, 46, False, 2, 10**6), (30, 18, False, 0, 9),
    (30, 19, True, 2, 10**6),
])  # fmt: skip
def test_a_cluster_with_most_links_and_ids_in_two_cases_are_noted(
    tmp_path, monkeypatch, size, clusters, noted, cased, part
):
    """A cluster of ten has 45 links, and pairs one each; in memory, in a scan, in a draw and for `clusters`."""
    monkeypatch.setattr("erbayes.large.duckdb.PART", part)
    ids = [f"c{k}" for k in range(clusters)]
    for k in range(cased):
        ids[2 * k + 1] = ids[2 * k].upper()
    cluster = np.append(np.repeat(ids, 2), ["X-9"] * size)
    prediction = pd.Series(
        cluster, pd.Index([f"r{i}" for i in range(len(cluster))], name="record"), name="cluster"
    )
    prediction.to_csv(tmp_path / "p.csv")
    labels = pd.Series(["a", "a", "b"], ["r0", "r1", "r2"])
    wanted = [f"One predicted cluster, of {size} records, has "] * noted
    wanted += [f"{cased} predicted clusters have ids that differ from others in case only"] * bool(cased)
    for units in (eb.measure(prediction, labels), scan(tmp_path / "p.csv", labels)):
        said = [
            a
            for a in eb.alarms(eb.Sample(units, eb.UniformRecords()))
            if a.startswith(("One pre", f"{cased} pre"))
        ]
        assert len(said) == len(wanted) and all(map(str.startswith, said, wanted))
        assert all(alarm.grade.value == "note" for alarm in said)
    for source in (prediction, tmp_path / "p.csv"):
        with warnings.catch_warnings(record=True) as raised:
            warnings.simplefilter("always")
            eb.labels.draw(source, n=5, seed=1)
        said = [str(w.message) for w in raised if " predicted cluster" in str(w.message)]
        assert len(said) == len(wanted) and all(map(str.startswith, said, wanted))
