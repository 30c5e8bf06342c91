"""From a draw to labels: tasks, sheets that nothing breaks, answers read back, and the estimate from them."""

import json
import re
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from checks import raises
from repeats import each_draw

import erbayes as eb
from erbayes import labels as sampling
from erbayes._internal import digits
from erbayes._internal.errors import DataError
from erbayes._internal.files import alone
from erbayes.labels import read_labels
from erbayes.labels.folder import _compute_fingerprint as compute_fingerprint
from erbayes.labels.folder import add_draws
from erbayes.labels.labelling_tasks import guarded, read_sheet, unguarded, write_sheet
from erbayes.labels.verdicts import HARMLESS, Fault, State

pytestmark = pytest.mark.slow

HOSTILE = [
    "=1+1", '=HYPERLINK("http://x";"y")', "+49 30", *"-5 @SUM(A1) ＝1".split(), "\t=1", " =1",
    *"'=1 ''=1 'x ' 007 7 7.0 1E5 2020-01-01 1/2 .5 12345678901234567890 TRUE nan #N/A a,b;c q\"u\"".split(),
    "two\nlines", " blanks ", "é名\u202e", *"</script><b> __proto__ y".split(), "r 1",
]  # fmt: skip
"""Ids that a spreadsheet program, a CSV reader or a browser may take for something else."""
CONTROL = ["a\rb", "a\x00b", "a\x1b[2J"]
"""Ids that CSV holds and XLSX does not."""
SUFFIXES = (".csv", ".xlsx")
PLANS = [sampling.Records(), sampling.LinkEnds(), sampling.Multipurpose(), sampling.Strata()]
METRICS = ["pairwise-precision"]


def world(integers=False):
    """A prediction of 200 records, the truth, and attributes. The first ids are hostile."""
    rng = np.random.default_rng(5)
    ids = list(range(200)) if integers else [*HOSTILE, *(f"r{i}" for i in range(200 - len(HOSTILE)))]
    ids = [ids[i] for i in rng.permutation(200)]
    person = rng.integers(0, 60, 200)
    cluster = np.where(rng.random(200) < 0.2, rng.integers(60, 75, 200), person)
    index = pd.Index(ids, dtype=object if not integers else None)
    pred = pd.Series([f"c{c}" for c in cluster], index)
    true = pd.Series([f"p{p}" for p in person], index)
    attributes = pd.DataFrame({"record": ids, "name": [HOSTILE[i % len(HOSTILE)] for i in range(200)]})
    return pred, true, attributes


def candidates_of(drawn, true):
    clusters = isinstance(drawn.plan, sampling.PredictedClusters)
    records = (drawn.members if clusters else drawn.table)["record"].unique()
    rows = [(r, c) for r in records for c in true.index[true == true[r]]]
    # others are added by hand, without outer blanks
    shown = [(r, c) for i, (r, c) in enumerate(rows) if i % 2 or str(c) != str(c).strip()]
    return pd.DataFrame(shown, columns=["record", "candidate"])


def values_of(plan, pred):
    """Return strata for a plan that needs some, the first third of the records and the others."""
    strata = np.where(np.arange(len(pred)) < len(pred) // 3, "s", "t")
    return pd.Series(strata, pred.index) if isinstance(plan, sampling.Strata) else None


def made(path, plan=None, n=30, integers=False, **more):
    pred, true, attributes = world(integers)
    drawn = sampling.draw(pred, plan or sampling.Records(), n=n, seed=7, values=values_of(plan, pred))
    tasks = sampling.tasks(drawn, attributes, candidates_of(drawn, true))
    return sampling.write_folder(path, drawn, tasks, **more), pred, true


def answered(sheet, true):
    """A sheet as a perfect annotator fills it, with rows for records that it lacks."""
    by_text = {str(r): p for r, p in true.items()}
    drawn = sheet["record"].where(sheet["role"] == "drawn").ffill()
    same = [by_text[r] == by_text[d] for r, d in zip(sheet["record"], drawn, strict=True)]
    sheet = sheet.assign(same=np.where(same, "y", "n"))
    added = [
        {"task": task, "record": str(r), "same": "Y "}
        for (task, d), rows in sheet.assign(drawn=drawn).groupby(["task", "drawn"], sort=False)
        for r in true.index[true == by_text[d]]
        if str(r) not in set(rows["record"])
    ]
    return pd.concat([sheet, pd.DataFrame(added, columns=["task", "record", "same"])]).fillna("")


def saved(folder, annotator, sheet):
    """The file of answers that the page of an annotator saves."""
    answers = []
    for task, rows in sheet.groupby("task", sort=False):
        first, rest = rows.iloc[0], rows.iloc[1:]
        shown, added = rest[rest["role"] != ""], rest[rest["role"] == ""]
        answers.append(
            {
                "task": int(task),
                "record": first["record"],
                "same": shown["record"][shown["same"] == "y"].tolist(),
                "different": shown["record"][shown["same"] == "n"].tolist(),
                "added": added["record"].tolist(),
                "cannot_tell": first["cannot_tell"] == "x",
                "note": "",
                "done": first["same"] == "y",
            }
        )
    content = {"version": 1, "fingerprint": folder.fingerprint, "annotator": annotator, "answers": answers}
    (folder.path / f"answers-{annotator}.json").write_text(json.dumps(content), encoding="utf-8")


def in_doubt(*tasks):
    """A change of sheets: nobody could tell about these tasks."""

    def change(annotator, sheet):
        here = sheet["task"].isin(map(str, tasks))
        sheet.loc[here, "same"] = ""
        sheet.loc[here & (sheet["role"] == "drawn"), "cannot_tell"] = "x"
        return sheet[~here | (sheet["role"] != "")]

    return change


def fill(folder, true, suffix=".csv", change=lambda annotator, sheet: sheet):
    for annotator in folder.dealt:
        path = folder.path / f"sheet-{annotator}.csv"
        sheet = change(annotator, answered(read_sheet(path), true))
        if suffix == ".json":
            saved(folder, annotator, sheet)
        else:
            write_sheet(sheet, path.with_suffix(suffix))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_hostile_text_is_read_back_unchanged(tmp_path, suffix):
    table = pd.DataFrame({"record": HOSTILE, "name": HOSTILE, "same": ""}, dtype=object)
    write_sheet(table, tmp_path / f"s{suffix}")
    back = read_sheet(tmp_path / f"s{suffix}")
    assert back["record"].tolist() == HOSTILE
    assert back["name"].tolist() == HOSTILE[:-6] + [t.replace("\u202e", "\\u202e") for t in HOSTILE[-6:]]
    assert (back["same"] == "").all()


def test_no_cell_of_a_csv_sheet_begins_a_formula_or_changes_as_a_number(tmp_path):
    write_sheet(pd.DataFrame({"record": HOSTILE}, dtype=object), tmp_path / "s.csv")
    raw = pd.read_csv(tmp_path / "s.csv", dtype=str, keep_default_na=False)["record"]
    assert not raw.str.match(r"\s*[=+\-@＝\t\r\n]").any()
    plain = raw[raw.str.match(r"\s*[.\d]")]
    assert plain.tolist() == ["7"]


@pytest.mark.lowest
def test_every_cell_of_an_xlsx_sheet_is_text(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    table = pd.DataFrame({"task": range(len(HOSTILE)), "record": HOSTILE}, dtype=object)
    write_sheet(table, tmp_path / "s.xlsx")
    cells = [cell for row in openpyxl.load_workbook(tmp_path / "s.xlsx").active.iter_rows() for cell in row]
    assert {cell.data_type for cell in cells} == {"s"} and {cell.number_format for cell in cells} == {"@"}


def test_guards_are_taken_off_only_if_they_were_put_on():
    rng = np.random.default_rng(1)
    letters = list("'=+-@0123456789. \tab＝E/")
    texts = ["".join(rng.choice(letters, rng.integers(1, 6))) for _ in range(1000)]
    assert [unguarded(guarded(t)) for t in texts] == texts
    assert len({guarded(t) for t in texts}) == len(set(texts))
    table, found = digits.guard(pd.DataFrame({"left": [*texts, "-5", "+1e3", "007"], "n": -1.5}))
    assert table["left"].map(digits.unguard).tolist() == [*texts, "-5", "+1e3", "007"]
    assert table["left"].tolist()[-3:] == ["-5", "+1e3", "007"] and (table["n"] == -1.5).all()
    assert found and all(f"'{text}" in set(table["left"]) for text in found)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("id", ["", "  ", "\ud800x", *CONTROL])
def test_ids_that_a_file_cannot_hold_are_refused(tmp_path, suffix, id):
    table = pd.DataFrame({"record": ["r1", id]}, dtype=object)
    if suffix == ".csv" and id in CONTROL:
        write_sheet(table, tmp_path / "s.csv")
        assert read_sheet(tmp_path / "s.csv")["record"].tolist() == ["r1", id]
        return
    with pytest.raises(DataError, match=f"1 ids cannot be written to {suffix[1:].upper()} files"):
        write_sheet(table, tmp_path / f"s{suffix}")


def test_what_spreadsheet_programs_make_of_csv_files(tmp_path):
    path = tmp_path / "s.csv"
    path.write_bytes("task;record;same\r\n1;'007;y\r\n;;\r\n2.0;é;\r\n".encode())
    table = read_sheet(path)
    assert table.to_numpy().tolist() == [["1", "007", "y"], ["2.0", "é", ""]]
    assert table.index.tolist() == [2, 4]
    path.write_bytes("task,record\n1,é\n".encode("cp1252"))
    raises(DataError, "not UTF-8; save it as", read_sheet, path)
    path.write_text("task,record\n1,a,b\n", encoding="utf-8")
    raises(DataError, "1 rows have more cells than names, such as row 2", read_sheet, path)
    path.write_text("", encoding="utf-8")
    raises(DataError, "it is empty", read_sheet, path)
    (tmp_path / "s.xlsx").write_bytes(b"PK no")
    raises(DataError, r"cannot read .*s\.xlsx", read_sheet, tmp_path / "s.xlsx")


@pytest.mark.lowest
def test_numbers_that_an_annotator_types_into_xlsx(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["task", "record", "same"], [1, 17, "y"], [1.0, None, True]):
        book.active.append(row)
    book.save(tmp_path / "s.xlsx")
    assert read_sheet(tmp_path / "s.xlsx").to_numpy().tolist() == [["1", "17", "y"], ["1", "", "True"]]


MEMBERS = pd.DataFrame({"record": ["a1", "a2", "b1"], "cluster": ["a", "a", "b"]})
DRAWN = SimpleNamespace(table=MEMBERS.iloc[[1, 2, 1]], members=MEMBERS, of_clusters=False)


def test_a_record_drawn_twice_is_one_task_and_candidates_are_shown_once():
    rows = [("a2", "b1", "name"), ("a2", "b1", "date"), ("a2", "a1", "x"), ("zz", "q", "x")]
    candidates = pd.DataFrame(rows, columns=["record", "candidate", "why"])
    table = sampling.tasks(DRAWN, None, candidates)
    assert table["task"].tolist() == [1, 1, 1, 2] and table["record"].tolist() == ["a2", "a1", "b1", "b1"]
    assert table["role"].tolist() == ["drawn", "cluster", "candidate", "drawn"]
    assert table["why"].fillna("").tolist() == ["", "", "name", ""]


def test_rows_of_attributes_that_repeat_another_are_left_out():
    once, twice = (sampling.tasks(DRAWN, pd.concat([MEMBERS] * times)) for times in (1, 2))
    pd.testing.assert_frame_equal(once, twice)


REFUSED_TASKS = {
    "attributes without a column": (dict(attributes=MEMBERS[["record"]]), "needs a record and at least one column"),
    "attributes that lack a record": (dict(attributes=MEMBERS.iloc[:1]), "2 of 3 shown records have no attributes, such as 'a2', 'b1'"),
    "attributes twice": (dict(attributes=pd.concat([MEMBERS, MEMBERS.assign(cluster="z")])), "3 shown records have several different rows"),
    "a reserved name": (dict(attributes=MEMBERS.rename(columns={"cluster": "same"})), "attributes cannot be called 'same'"),
    "other ids": (dict(attributes=MEMBERS.assign(record=[1, 2, 3])), "of type string, those of the .* of type integer: none could match"),
    "candidates of other columns": (dict(candidates=pd.DataFrame(np.ones((1, 4)))), "table of candidates has no column 'record', 'candidate'"),
    "candidates of nobody": (dict(candidates=pd.DataFrame({"record": ["x"], "candidate": ["y"]})), "none of the 1 candidates is for a drawn record"),
    "candidates of other ids": (dict(candidates=pd.DataFrame({"record": [1], "candidate": [2]})), "candidates of type integer"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED_TASKS)
def test_tables_that_do_not_fit_the_draws_are_refused(case):
    tables, message = REFUSED_TASKS[case]
    raises(DataError, message, sampling.tasks, DRAWN, **tables)


@pytest.mark.parametrize("annotators", [1, 2, 3, 5])
@pytest.mark.parametrize("overlap", [0, 0.2, 1])
def test_tasks_are_dealt_evenly_and_the_share_of_overlap_to_two(annotators, overlap):
    dealt = sampling.labelling_tasks.dealt(100, annotators, overlap, seed=4)
    times = pd.Series([t for tasks in dealt.values() for t in tasks]).value_counts()
    assert sorted(times.index) == list(range(1, 101))
    assert times.max() <= 2 and (times == 2).sum() == (100 * overlap if annotators > 1 else 0)
    sizes = [len(tasks) for tasks in dealt.values()]
    assert max(sizes) - min(sizes) <= 2 and all(tasks == sorted(tasks) for tasks in dealt.values())
    assert dealt == sampling.labelling_tasks.dealt(100, annotators, overlap, seed=4)
    if 0 < overlap < 1 and annotators > 1:
        assert dealt != sampling.labelling_tasks.dealt(100, annotators, overlap, seed=5)


def test_dealing_refuses_numbers_out_of_range():
    for arguments, message in (((3, 4), "4 annotators for 3 tasks: at most 3"), ((3, 1, 1.5), "overlap must lie in"), ((100, 27), "at most 26")):  # fmt: skip
        raises(DataError, message, sampling.labelling_tasks.dealt, *arguments)


# the first plan in each form of answers, and the other plans in forms that take turns
@pytest.mark.parametrize("plan, suffix", [
    (PLANS[i], [".csv", ".xlsx", ".json"][j % 3])
    for i, j in [(0, 1), (0, 2), *enumerate(range(len(PLANS)))]
])  # fmt: skip
def test_estimates_from_the_folder_are_those_of_labels_typed_in(tmp_path, plan, suffix):
    folder, pred, true = made(tmp_path / "f", plan, annotators=2)
    fill(folder, true, suffix)
    labels = read_labels(tmp_path / "f")
    assert not len(labels.problems) and not len(labels.unresolved)
    values = values_of(plan, pred)
    drawn = sampling.draw(pred, plan, n=30, seed=7, values=values)
    typed = true[true.isin(true[drawn.table["record"]])]
    wanted = eb.estimate(pred, typed, drawn.design(typed), METRICS)
    found = eb.estimate(pred, labels.labels, labels.design(values=values), METRICS)
    assert found.estimate == pytest.approx(wanted.estimate, rel=1e-12)
    assert found.sd == pytest.approx(wanted.sd, rel=1e-9, abs=1e-12)
    assert set(labels.labels.index) == set(typed.index)


CLUSTERS = [sampling.PredictedClusters(of) for of in (None, sampling.Records(), sampling.LinkEnds())]


def lazy(pred, true):
    """An annotator who leaves blank whatever another task of the predicted cluster settles."""
    cluster, person = ({str(r): x for r, x in memberships.items()} for memberships in (pred, true))

    def change(annotator, sheet):
        drawn = sheet[sheet["role"] == "drawn"]
        seen = pd.DataFrame({"c": drawn["record"].map(cluster), "p": drawn["record"].map(person)})
        settled = sheet["task"].isin(drawn["task"][seen.duplicated()])
        assert settled.any()
        return sheet.assign(same=sheet["same"].where(~settled, ""))[~settled | (sheet["role"] != "")]

    return change


# each pair of a plan, a form of answers and a kind of annotator
@pytest.mark.parametrize("plan, suffix, eager", [
    (plan, suffix, bool((i + j) % 2))
    for i, plan in enumerate(CLUSTERS)
    for j, suffix in enumerate([".csv", ".json"])
])  # fmt: skip
def test_drawn_clusters_are_estimated_as_from_labels_typed_in(tmp_path, plan, suffix, eager):
    folder, pred, true = made(tmp_path / "f", plan, n=15, annotators=2)
    fill(folder, true, suffix, **({} if eager else {"change": lazy(pred, true)}))
    labels = read_labels(tmp_path / "f", pred)
    assert not len(labels.problems) and not len(labels.unresolved) and not len(labels.lost)
    counts = labels.summary()
    assert (counts["settled"].sum() == 0) == eager and counts["unanswered"].sum() == 0
    drawn = sampling.draw(pred, plan, n=15, seed=7)
    typed = true[true.isin(true[drawn.members["record"]])]
    units = eb.measure_predicted(pred, typed, drawn.table["cluster"])
    under_links = plan.of == sampling.LinkEnds()  # which tell no recall
    metrics = eb.metrics.resolve_metrics(METRICS if under_links else eb.metrics.DEFAULT_METRICS)
    samples = eb.Sample(units, drawn.design(typed)), eb.Sample(labels.units(pred), labels.design())
    wanted, found = (eb.engine.taylor(sample, metrics).apply(metrics) for sample in samples)
    assert ((wanted.estimate > 0) & (wanted.estimate <= 1)).all()
    assert found.estimate == pytest.approx(wanted.estimate, rel=1e-12)
    assert found.sd == pytest.approx(wanted.sd, rel=1e-9, abs=1e-12)
    ends, others = (sample.certain(metrics) for sample in samples)
    np.testing.assert_allclose(ends, others, rtol=1e-12)
    assert np.isfinite(ends).all() and {*labels.labels.index} == {*typed.index}


def test_every_record_of_a_drawn_cluster_is_a_task_that_shows_later_ones(two):
    folder, _ = two
    assert folder.tasks[["task", "record", "role"]].to_numpy().tolist() == [
        *[[1, f"r{r}", "drawn" if r == 1 else "cluster"] for r in (1, 2, 3, 4)],
        *[[2, f"r{r}", "drawn" if r == 2 else "cluster"] for r in (2, 3, 4)],
        *[[3, f"r{r}", "drawn" if r == 3 else "cluster"] for r in (3, 4)],
        [4, "r4", "drawn"],
        [5, "s", "drawn"],
    ]


def test_tasks_of_a_drawn_cluster_go_to_the_same_annotators(tmp_path):
    folder, pred, _ = made(tmp_path / "f", CLUSTERS[0], n=12, annotators=3, overlap=0.5)
    own = folder.tasks[folder.tasks["role"] == "drawn"].set_index("task")["record"].map(pred)
    has = pd.DataFrame({name: own.index.isin(numbers) for name, numbers in folder.dealt.items()}, own.index)
    assert (has.groupby(own).nunique() == 1).all(axis=None)
    dealt = has.groupby(own).first()
    assert dealt.sum(axis=1).value_counts().to_dict() == {1: 6, 2: 6} and {*dealt.sum()} == {6}
    both = (folder.drawn, sampling.draw(pred, CLUSTERS[0], n=12, seed=7))
    members = (drawn.members.sort_values("record", ignore_index=True) for drawn in both)
    pd.testing.assert_frame_equal(*members, check_dtype=False)


@pytest.fixture
def two(tmp_path):
    """A folder of two drawn predicted clusters: A of four records, tasks 1 to 4, and B of one, task 5."""
    pred = {"r1": "A", "r2": "A", "r3": "A", "r4": "A", "s": "B", "z": "C"}
    draws = (sampling.draw(pred, CLUSTERS[0], n=2, seed=i) for i in range(100))
    drawn = next(drawn for drawn in draws if drawn.table["record"].tolist() == ["r1", "s"])
    folder = sampling.write_folder(tmp_path / "f", drawn, sampling.tasks(drawn))
    return folder, pred


def answers_of(folder, rows):
    """Write sheet-A: by task, the answers to its rows in their order, and ids that are added."""
    table = folder.tasks[["task", "record", "role"]].assign(same="", cannot_tell="")
    more = []
    for task, (marks, *added) in rows.items():
        here = table["task"] == task
        if marks == "?":
            table.loc[here & (table["role"] == "drawn"), "cannot_tell"] = "x"
        else:
            table.loc[here, "same"] = list(marks)
        more += [{"task": task, "record": r, "role": "", "same": "y", "cannot_tell": ""} for r in added]
    table = pd.concat([table, pd.DataFrame(more, columns=table.columns)])
    write_sheet(table, folder.path / "sheet-A.csv", ())
    return read_labels(folder)


def test_what_settles_a_task_of_a_drawn_cluster(two):
    folder, pred = two
    cases = {
        "y for all": ({1: ("yyyy",), 5: ("y",)}, 1),
        "two entities": ({1: ("yyny",), 3: ("yn",), 5: ("y",)}, 2),
        "a record of elsewhere": ({1: ("yyyy", "z"), 5: ("y",)}, 1),
    }
    for case, (rows, entities) in cases.items():
        labels = answers_of(folder, rows)
        assert not len(labels.lost) and not len(labels.problems), case
        assert labels.labels[["r1", "r2", "r3", "r4"]].nunique() == entities, case
    states = labels.states.set_index("task")["state"]
    assert [states[t] for t in range(1, 6)] == [State.ANSWERED, *[State.SETTLED] * 3, State.ANSWERED]
    units = labels.units(pred).table().loc["A"]
    assert (units["records"], units["common_links"]) == (4, 6) and labels.units(pred).N[0] == 5


def test_contradictions_between_tasks_of_a_drawn_cluster_are_told(two):
    folder, _ = two
    cases = {
        "r4 in two entities": ({1: ("yyny",), 3: ("yy",), 5: ("y",)}, Fault.IN_TWO_ENTITIES),
        "joined and not": ({1: ("yyny",), 3: ("yn", "r1"), 5: ("y",)}, Fault.DIFFERING),
        "by a chain": ({1: ("yyny",), 2: ("yyn",), 3: ("yn",), 5: ("y",)}, Fault.INTRANSITIVE),
    }
    for case, (rows, fault) in cases.items():
        labels = answers_of(folder, rows)
        assert fault in set(labels.problems["fault"]), case
        raises(DataError, fault.value, labels.units, {})


def test_clusters_without_a_complete_answer_are_left_out(two):
    folder, pred = two
    cases = {
        "a blank task that no other settles": ({1: ("yyny",), 5: ("y",)}, State.INCOMPLETE),
        "half a task": ({1: ("yyn ",), 5: ("y",)}, State.INCOMPLETE),
        "nobody can tell": ({1: ("yyny",), 3: ("?",), 5: ("y",)}, State.CANNOT_TELL),
        "a doubt beside a y": ({1: ("yyyy",), 3: ("?",), 5: ("y",)}, State.CANNOT_TELL),
        "not begun": ({5: ("y",)}, State.UNANSWERED),
    }
    for case, (rows, state) in cases.items():
        labels = answers_of(folder, rows)
        assert labels.lost.tolist() == [state], case
        assert labels.labels.to_dict() == {"s": "s"}, case
        assert labels.units(pred).ids.tolist() == ["B"], case
    with pytest.raises(DataError, match="no drawn predicted cluster has a complete answer yet"):
        _ = answers_of(folder, {1: ("yyny",)}).labels


def test_a_task_of_another_drawn_cluster_settles_nothing(two):
    """Whether a cluster counts must depend on its own tasks alone, or early clusters choose late ones."""
    folder, pred = two
    labels = answers_of(folder, {1: ("yyyy", "s")})
    assert labels.lost.tolist() == [State.UNANSWERED] and labels.units(pred).ids.tolist() == ["A"]
    assert labels.units(pred).N[0] == 5


@pytest.mark.parametrize("doubt", [True, False])
def test_clusters_drawn_by_size_take_no_unresolved_draws_but_those_left_by_chance(tmp_path, doubt):
    folder, pred, true = made(tmp_path / "f", CLUSTERS[1], n=20)
    table, drawn = folder.drawn.table, folder.tasks[folder.tasks["role"] == "drawn"]
    first = drawn["task"][drawn["record"].map(pred) == table["cluster"].iloc[0]]

    def leave_first(annotator, sheet):
        sheet = in_doubt(*first)(annotator, sheet)
        return sheet if doubt else sheet.assign(cannot_tell="")

    fill(folder, true, change=leave_first)
    labels = read_labels(folder)
    units, design = labels.units(pred), labels.design()
    assert labels.lost.tolist() == [State.CANNOT_TELL if doubt else State.UNANSWERED]
    if doubt:
        raises(DataError, "KnownInclusion takes no unresolved draws", design.expand, units)
    else:
        weight = 20 / 19 / table["probability"].to_numpy()[1:]
        assert design.expand(units).weight == pytest.approx(weight, rel=1e-12)


def test_drawn_clusters_are_not_taken_for_entities(two):
    folder, pred = two
    labels = answers_of(folder, {1: ("yyyy",), 5: ("y",)})
    raises(DataError, "draw", eb.estimate, pred, labels.labels, labels.design())


def test_drawn_clusters_judge_their_own_prediction_only(two):
    folder, pred = two
    labels = answers_of(folder, {1: ("yyyy", "new"), 5: ("y",)})
    with pytest.raises(DataError, match="this is not the prediction that was drawn from") as error:
        labels.units(pred | {"z": "B"})
    assert not error.value.remedies
    raises(DataError, "judge only the prediction that they were drawn from", labels.design, drawn_from=pred)
    raises(DataError, "1 of 6 labelled records are not in the prediction, such as 'new'", labels.units, pred)
    sizes = {missing: labels.units(pred, missing=missing).N[0] for missing in list(eb.Missing)[1:-1]}
    assert sizes == {eb.Missing.SINGLETON: 5, eb.Missing.TOGETHER: 5, eb.Missing.OMIT: 4}


def test_integers_stay_integers(tmp_path):
    folder, _, true = made(tmp_path / "f", integers=True)
    fill(folder, true)
    labels = read_labels(folder).labels
    assert labels.index.dtype == np.int64
    assert set(labels.index) == set(true.index[true.isin(true[folder.drawn.table["record"]])])


def test_a_folder_is_read_as_it_was_written(tmp_path):
    plan = sampling.Multipurpose()
    folder, pred, _ = made(tmp_path / "f", plan, annotators=3, facts={"prediction": "p.csv"})
    drawn, read = sampling.draw(pred, plan, n=30, seed=7), folder.drawn
    pd.testing.assert_frame_equal(read.table, drawn.table, check_dtype=False, rtol=0, atol=0)
    assert (read.plan, read.seed, read.fingerprint) == (plan, 7, drawn.fingerprint)
    assert set(map(tuple, folder.drawn.members.to_numpy())) == set(map(tuple, drawn.members.to_numpy()))
    assert folder.facts["prediction"] == "p.csv" and folder.facts["overlap"] == 0.2
    assert {"date", "erbayes"} <= folder.facts.keys() and list(folder.dealt) == ["A", "B", "C"]
    assert "30 draws" in repr(folder) and "p.csv" in str(folder.facts)
    about = json.loads((tmp_path / "f" / "drawn.json").read_text(encoding="utf-8"))
    assert about["drawn"]["plan"] == {"name": "multipurpose"}


def test_sheets_hold_what_the_tasks_show(tmp_path):
    folder, *_ = made(tmp_path / "f", annotators=2)
    for annotator, numbers in folder.dealt.items():
        shown = folder.tasks[folder.tasks["task"].isin(numbers)]
        for suffix in SUFFIXES:
            sheet = read_sheet(tmp_path / "f" / f"sheet-{annotator}{suffix}")
            assert list(sheet) == ["task", "record", "role", "name", "same", "cannot_tell", "note"]
            assert sheet["record"].tolist() == shown["record"].tolist()
        assert folder.fingerprint in (tmp_path / "f" / f"label-{annotator}.html").read_text(encoding="utf-8")


def test_the_folder_says_which_file_goes_to_whom(tmp_path):
    """Each of its files once, the key among those that stay."""
    folder, *_ = made(tmp_path / "f", annotators=2)
    sent, kept = (tmp_path / "f" / "README.txt").read_text(encoding="utf-8").split("DO NOT SEND")
    for annotator, numbers in folder.dealt.items():
        (line,) = [line for line in sent.splitlines() if f"to annotator {annotator}:" in line]
        named = {f"label-{annotator}.html", *(f"sheet-{annotator}{suffix}" for suffix in SUFFIXES)}
        assert set(re.findall(r"[\w-]+\.\w+", line)) == named and f"({len(numbers)} tasks)" in line
    said = re.findall(r"[\w-]+\.(?:csv|xlsx|json|html)", sent + kept.split("PUT INTO")[0])
    assert sorted(said) == sorted(p.name for p in folder.path.iterdir() if p.name != "README.txt")
    assert "write y or n under same" in sent
    assert {"tasks.csv", "drawn.csv", "drawn.json"} <= set(re.findall(r"[\w-]+\.\w+", kept))


def test_nothing_half_written_takes_the_place_of_a_folder(tmp_path, monkeypatch):
    made(tmp_path / "f")
    before = {p.name: p.read_bytes() for p in (tmp_path / "f").iterdir()}

    def fails(*args, **more):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("erbayes.labels.folder.labelling_page", fails)
    raises(DataError, r"cannot write .*No space left", made, tmp_path / "f", n=10)
    raises(DataError, r"cannot write .*No space left", made, tmp_path / "g", n=10)
    assert {p.name: p.read_bytes() for p in (tmp_path / "f").iterdir()} == before
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


def test_only_folders_of_draws_without_answers_are_replaced(tmp_path):
    made(tmp_path / "f")
    folder, _, true = made(tmp_path / "f", n=10)
    assert len(folder.drawn.table) == 10
    fill(folder, true)
    raises(DataError, r"it holds answers, in 'sheet-A.csv'.*replace=True", made, tmp_path / "f", n=20)
    made(tmp_path / "f", n=20, replace=True)
    (tmp_path / "f" / "answers-A.json").write_text("{}", encoding="utf-8")
    raises(DataError, r"it holds answers, in 'answers-A\.json'", made, tmp_path / "f", n=20)
    (tmp_path / "f" / "answers-A.json").unlink()
    (tmp_path / "f" / "notes.txt").write_text("mine", encoding="utf-8")
    raises(DataError, r"it holds other files, such as 'notes\.txt'", made, tmp_path / "f", n=20, replace=True)
    (tmp_path / "empty").mkdir()
    made(tmp_path / "empty")
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    raises(DataError, "cannot write", made, tmp_path / "file")
    raises(DataError, r"cannot write .*No such file", made, tmp_path / "no" / "where")


def test_a_draw_that_was_changed_is_refused(tmp_path):
    made(tmp_path / "f")
    table = read_sheet(tmp_path / "f" / "drawn.csv")
    write_sheet(table.assign(probability="0.9"), tmp_path / "f" / "drawn.csv")
    raises(DataError, "has changed since the draw", read_labels, tmp_path / "f")
    raises(DataError, "is no folder that erbayes draw has written", read_labels, tmp_path)


TASKS = {"task": [1, 1, 1, 2, 2, 3], "record": ["a1", "a2", "x1", "b1", "b2", "s1"]}
TASKS |= {"role": ["drawn", "cluster", "candidate", "drawn", "cluster", "drawn"]}
TASKS = pd.DataFrame(TASKS)
PRED = {"a1": "a", "a2": "a", "x1": "x", "b1": "b", "b2": "b", "s1": "s", "x2": "x", "q": "q"}
GOOD = {1: {"a1": "y", "a2": "y", "x1": "n"}, 2: {"b1": "y", "b2": "n"}, 3: {"s1": "y"}}


@pytest.fixture
def small(tmp_path):
    """A folder of three tasks for two annotators, both of whom get all."""
    drawn = sampling.draw(PRED, sampling.Records(), n=3, seed=1)
    table = {"record": ["a1", "b1", "s1"], "cluster": ["a", "b", "s"], "size": [2, 2, 1]}
    table["probability"] = 1 / 8
    members = pd.DataFrame({"record": ["a1", "a2", "b1", "b2", "s1"], "cluster": [*"aabbs"]})
    drawn = replace(drawn, table=pd.DataFrame(table), members=members)
    tasks = TASKS.assign(same="", cannot_tell="")
    return sampling.write_folder(tmp_path / "f", drawn, tasks, annotators=2, overlap=1)


def write(folder, annotator, answers=GOOD, doubts=(), more=(), suffix=".csv"):
    """Write a sheet: answers by task and record, tasks in doubt, and further rows."""
    rows = [
        (t, r, role, answers.get(t, {}).get(r, ""), "x" if t in doubts and role == "drawn" else "")
        for t, r, role in TASKS.itertuples(index=False)
    ]
    table = pd.DataFrame([*rows, *more], columns=[*TASKS, "same", "cannot_tell"], dtype=object)
    write_sheet(table[table["same"] != "gone"], folder.path / f"sheet-{annotator}{suffix}", ())


def but(task, **changes):
    return GOOD | {task: GOOD[task] | changes}


CASES = {
    "a blank row": (dict(answers=but(1, x1="")), [(1, "x1", Fault.BLANK)], {1: State.INCOMPLETE}),
    "a row of blanks": (dict(more=[(1, " ", " ", " ", " ")]), [], {}),
    "a task that is not done": (dict(answers=but(1, a1="")), [(1, "a1", Fault.BLANK)], {1: State.INCOMPLETE}),
    "a blank task": (dict(answers={1: GOOD[1], 2: GOOD[2]}), [(3, "s1", Fault.UNANSWERED)], {3: State.UNANSWERED}),
    "nobody can tell": (dict(answers={1: GOOD[1], 2: GOOD[2]}, doubts=(3,)), [], {3: State.CANNOT_TELL}),
    "a doubt with answers": (dict(doubts=(1,)), [(1, "", Fault.YET_ANSWERED)], {1: State.CANNOT_TELL}),
    "another word": (dict(answers=but(1, x1="maybe")), [(1, "x1", Fault.UNREADABLE)], {1: State.INCOMPLETE}),
    "both": (dict(more=[(1, "x1", "candidate", "y", "")]), [(1, "x1", Fault.CONTRADICTED)], {1: State.INCOMPLETE}),
    "the drawn record is not itself": (dict(answers=but(1, a1="n")), [(1, "a1", Fault.DRAWN_REJECTED)], {1: State.INCOMPLETE}),
    "a row is gone": (dict(answers=but(1, x1="gone")), [(1, "x1", Fault.ROW_MISSING)], {1: State.INCOMPLETE}),
    "no such task": (dict(more=[(9, "a1", "drawn", "y", "")]), [("9", "", Fault.UNKNOWN_TASK)], {}),
    "no task": (dict(more=[("", "q", "", "y", "")]), [("", "", Fault.UNKNOWN_TASK)], {}),
    "a task of another draw": (dict(more=[(2, "zz", "drawn ", "y", "")]), [(2, "zz", Fault.OTHER_RECORD), (2, "b1", Fault.UNANSWERED)], {2: State.UNANSWERED}),
    "another spelling of the record": (dict(more=[(2, "B1 ", "drawn", "y", "")]), [(2, "B1 ", Fault.CHANGED), (2, "b1", Fault.UNANSWERED)], {2: State.UNANSWERED}),
    "a spreadsheet rounded": (dict(more=[(2, "1.00001E+11", "drawn", "y", "")]), [(2, "1.00001E+11", Fault.CHANGED), (2, "b1", Fault.UNANSWERED)], {2: State.UNANSWERED}),
    "a record that is not shown": (dict(more=[(1, "q", "", "", "")]), [(1, "q", Fault.NOT_SHOWN)], {}),
    "an unknown record": (dict(more=[(1, "zz", "", "y", "")]), [(1, "zz", Fault.UNKNOWN_RECORD)], {}),
    "two entities": (dict(answers=but(1, x1="y"), more=[(2, "x1", "", "y", "")]), [(1, "x1", Fault.IN_TWO_ENTITIES), (2, "x1", Fault.IN_TWO_ENTITIES)], {}),
    "an intransitive answer": (dict(more=[(2, "a1", "", "y", ""), (2, "x1", "", "y", "")]), [(1, "x1", Fault.INTRANSITIVE)], {}),
    "two drawn records": (dict(more=[(2, "a1", "", "y", ""), (1, "b1", "", "n", "")]), None, {}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_every_fault_is_listed_with_its_place(small, case):
    arguments, wanted, states = CASES[case]
    write(small, "A", **arguments)
    labels = read_labels(small, PRED)
    found = list(labels.problems[["task", "record", "fault"]].itertuples(index=False, name=None))
    if wanted is None:
        assert Fault.DIFFERING in {fault for *_, fault in found}
    else:
        assert sorted(map(str, found)) == sorted(map(str, wanted))
    unresolved = dict(labels.unresolved[["task", "state"]].itertuples(index=False, name=None))
    assert unresolved == states
    faults = set(labels.problems["fault"])
    if faults <= HARMLESS:
        assert len(labels.labels)
    else:
        with pytest.raises(DataError, match=f"1 times: |2 times: .*{next(iter(faults - HARMLESS)).value}"):
            _ = labels.labels
        assert len(labels.disputed()) or faults == {Fault.UNKNOWN_TASK}


@pytest.mark.parametrize("column", ["task", "record", "role", "same", "cannot_tell"])
def test_cells_with_blanks_at_their_ends_read_as_without(small, column):
    write(small, "A", {1: GOOD[1], 2: GOOD[2]}, doubts=[3], more=[(1, "q", "", "y", "")])
    plain, path = read_labels(small, PRED), small.path / "sheet-A.csv"
    sheet = read_sheet(path)
    write_sheet(sheet.assign(**{column: " " + sheet[column] + " "}), path, ())
    for name in ("labels", "problems", "unresolved"):
        assert getattr(read_labels(small, PRED), name).equals(getattr(plain, name))


def test_ids_that_are_no_integers_cannot_be_added(tmp_path):
    folder, _, true = made(tmp_path / "f", integers=True)

    def typed(annotator, sheet):
        return pd.concat([sheet, pd.DataFrame({"task": ["1"], "record": ["r17"], "same": ["y"]})]).fillna("")

    fill(folder, true, change=typed)
    labels = read_labels(folder)
    assert labels.problems["fault"].tolist() == [Fault.NO_ID]
    assert labels.problems["where"].iloc[0].startswith("sheet-A.csv, row ")


def test_annotators_who_agree_are_joined_and_those_who_differ_are_listed(small):
    write(small, "A")
    write(small, "B", {1: GOOD[1] | {"x1": "y"}, 3: {}}, doubts=(2,))
    labels = read_labels(small)
    assert labels.problems[["annotator", "task", "record", "fault"]].to_numpy().tolist() == [
        ["A, B", 1, "x1", Fault.DISPUTED],
        ["B", 2, "b1", Fault.ONE_CANNOT_TELL],
    ]
    assert labels.unresolved.to_numpy().tolist() == [[1, "a1", State.DISPUTED]]
    assert labels.summary().to_numpy().tolist() == [["A", 3, 3, 0, 0, 0], ["B", 3, 1, 1, 0, 1]]
    with pytest.raises(DataError, match=r"1 times: annotators differ on the record; such as task 1, x1; see"):
        _ = labels.labels
    assert labels.agreement()["tasks"].unique().tolist() == [1]


def test_agreement_is_weighted_by_the_chances_of_the_draw(tmp_path):
    folder, _, true = made(tmp_path / "f", sampling.Multipurpose(), annotators=2, overlap=1)

    def flipped(annotator, sheet):
        here = (annotator == "B") & (sheet["role"] == "cluster") & (sheet["task"].astype(int) % 3 == 0)
        return sheet.assign(same=np.where(here, np.where(sheet["same"] == "y", "n", "y"), sheet["same"]))

    fill(folder, true, change=flipped)
    first = folder.drawn.table.drop_duplicates("record").set_index("record")["probability"]
    top = bottom = 0.0
    for task, rows in folder.tasks.groupby("task"):
        record = rows["record"].iloc[0]
        entity = set(true.index[true == true[record]])
        cluster = set(rows["record"][rows["role"] == "cluster"])
        other = entity ^ cluster if task % 3 == 0 else entity
        size = (len(entity) + len(other)) / 2
        top += (entity == other) / (first[record] * size)
        bottom += 1 / (first[record] * size)
    table = read_labels(folder).agreement().set_index("share")
    assert table["estimate"]["identical-entities"] == pytest.approx(top / bottom, abs=0.02)
    assert 0.3 < top / bottom < 0.95


def test_disputes_are_decided_in_a_sheet(small):
    write(small, "A")
    write(small, "B", but(1, x1="y"), more=[(1, "q", "", "y", "")])
    labels = read_labels(small)
    path = labels.write_disputed()
    sheet = read_sheet(path)
    answers = [["a1", "y", "y"], ["a2", "y", "y"], ["x1", "n", "y"], ["q", "", "y"]]
    assert sheet[["record", "answer of A", "answer of B"]].to_numpy().tolist() == answers
    raises(DataError, "it is there already", labels.write_disputed)
    assert len(read_labels(small).unresolved) == 1  # the sheet is blank
    write_sheet(sheet.assign(same=["y", "y", "y", "n"]), path)
    decided = read_labels(small)
    assert set(decided.labels[decided.labels == "a1"].index) == {"a1", "a2", "x1"}
    assert not len(decided.problems)
    three = dict.fromkeys([("A", "B"), ("A", "C"), ("B", "C")], decided.pairs["A", "B"])
    for pairs, who in ((decided.pairs, 2), (three, 3)):
        errors = replace(decided, pairs=pairs).annotator_errors()
        assert errors.source == f"3 settled tasks of {who} annotators"
    of_both = decided.pairs["A", "B"].rates(decided.labels)
    assert replace(decided.annotator_errors(), source="") == replace(of_both, source="")
    assert of_both != replace(
        decided.pairs["A", "B"].rates(decided.labels, of_first=True), source=of_both.source
    )
    raises(DataError, "no task needs a decision", decided.write_disputed)


def test_files_of_one_annotator_are_read_as_one(small):
    write(small, "A", {1: GOOD[1]})
    write(small, "A", {2: GOOD[2], 3: GOOD[3]}, suffix=".xlsx")
    assert not len(read_labels(small).problems)
    write(small, "A", but(1, x1=""))
    write(small, "A", GOOD, suffix=".xlsx")
    assert not len(read_labels(small).unresolved), "a complete answer comes before another"
    (small.path / "sheet-A.xlsx").unlink()
    write(small, "A", GOOD)
    write(small, "B", but(1, x1="y"))
    assert read_labels(small).problems["fault"].tolist() == [Fault.DISPUTED], "twice A is one annotator"
    (small.path / "sheet-B.csv").unlink()
    write(small, "A", {1: GOOD[1]})
    write(small, "A", but(1, x1="y"), suffix=".xlsx")
    labels = read_labels(small)
    assert labels.problems[["task", "record", "fault"]].to_numpy().tolist() == [[1, "x1", Fault.CONTRADICTED]]
    assert labels.files == ("sheet-A.csv", "sheet-A.xlsx")


def test_files_that_cannot_be_read_are_listed_and_stop_labels(small):
    write(small, "A")
    (small.path / "answers.csv").write_text("task,record\n", encoding="utf-8")
    (small.path / "sheet-C.csv").write_text("task,record\n", encoding="utf-8")
    (small.path / "sheet-D.xlsx").write_text("no", encoding="utf-8")
    other = {"version": 1, "fingerprint": "other", "annotator": "B", "answers": []}
    (small.path / "answers-B.json").write_text(json.dumps(other), encoding="utf-8")
    labels = read_labels(small)
    assert set(labels.problems["fault"]) == {Fault.UNREAD}
    said = "\n".join(labels.problems["where"])
    unnamed = "files with answers are sheet-NAME"
    told = (unnamed, "sheet-C.csv has no column 'role', 'same'", "sheet-D.xlsx", "belong to another draw")
    for text in told:
        assert text in said
    with pytest.raises(DataError, match="4 times: the file is not read"):
        _ = labels.labels


def test_labels_that_nobody_has_made_are_refused(small):
    labels = read_labels(small)
    assert labels.files == () and len(labels.unresolved) == 3
    with pytest.raises(DataError, match="no task has a complete answer yet"):
        _ = labels.labels
    assert not len(labels.agreement()) and "0 of 3 tasks" in repr(labels) and "<table" in labels._repr_html_()


def multipurpose(original):
    """The chance of a record by the size of its cluster, up to a factor (no library code)."""
    size = original.map(original.value_counts())
    links, clusters = ((size - 1) ** 2).mean(), (1 / size**2).mean()
    return lambda n: np.sqrt(1 + ((n - 1) ** 2 / links + 1 / n**2 / clusters) / 2)


def by_hand(true, original, judged, phi, drawn):
    """Precision of `judged` by the draws, with chances from the clusters of `original` (no library code)."""
    total = sum(phi(n) * n for n in original.value_counts())
    size = original.map(original.value_counts())
    top = bottom = 0.0
    for record in drawn:
        entity = true.index[true == true[record]]
        p = sum(phi(size[r]) for r in entity) / total
        pieces = judged[judged.index.isin(entity)].value_counts()
        sizes = judged.value_counts()[pieces.index]
        top += (pieces * (pieces - 1) / 2).sum() / p
        bottom += (pieces * (sizes - 1) / 2).sum() / p
    return top / bottom


def plain(prediction, labels, design, **more):
    """Precision without the correction for bias."""
    sample = each_draw(eb.Sample(eb.measure(prediction, labels.labels, **more), design))
    return eb.engine.taylor(sample, METRICS).apply(METRICS, order=1).estimate[0]


def newer_prediction(path, plan=None):
    """A folder of 60 draws with all answers, and another prediction beside its own."""
    folder, pred, true = made(path, plan, n=60)
    fill(folder, true)
    return folder, pred, true, read_labels(folder), pred.mask(np.arange(len(pred)) % 4 == 0, "c1")


def test_another_prediction_is_judged_by_the_chances_of_the_draw(tmp_path):
    folder, pred, true, labels, newer = newer_prediction(tmp_path / "f", sampling.Multipurpose())
    with pytest.raises(DataError, match=r"pass the prediction that was drawn .*Labels.design\(drawn_from"):
        eb.estimate(newer, labels.labels, labels.design(), METRICS)
    wanted = by_hand(true, pred, newer, multipurpose(pred), folder.drawn.table["record"])
    assert plain(newer, labels, labels.design(drawn_from=pred)) == pytest.approx(wanted, rel=1e-12)
    wrong = by_hand(true, newer, newer, multipurpose(newer), folder.drawn.table["record"])
    assert abs(wanted - wrong) > 1e-3
    lost = true == true[folder.drawn.table["record"][0]]
    fewer = by_hand(true, pred, newer[~lost], multipurpose(pred), folder.drawn.table["record"])
    found = plain(newer[~lost], labels, labels.design(drawn_from=pred), missing="omit")
    assert found == pytest.approx(fewer, rel=1e-12)
    same = eb.estimate(pred, labels.labels, labels.design(drawn_from=pred), METRICS)
    own = eb.estimate(pred, labels.labels, labels.design(), METRICS)
    assert (same.estimate, same.sd) == (own.estimate, own.sd)
    of_own = by_hand(true, pred, pred, multipurpose(pred), folder.drawn.table["record"])
    assert plain(pred, labels, labels.design()) == pytest.approx(of_own, rel=1e-12)


def test_uniform_records_judge_every_prediction_of_their_records(tmp_path):
    folder, pred, true, labels, newer = newer_prediction(tmp_path / "f")
    found = plain(newer, labels, labels.design())
    wanted = by_hand(true, pred, newer, lambda m: 1, folder.drawn.table["record"])
    assert found == pytest.approx(wanted, rel=1e-12)
    more = pd.concat([newer, pd.Series({"new": "c1"})])
    with pytest.raises(DataError, match="records = 200, but the prediction holds 201 records: restrict it"):
        eb.estimate(more, labels.labels, labels.design(), METRICS)
    assert plain(more, labels, labels.design(), frame=pred) == found


def test_ends_of_links_of_one_prediction_do_not_identify_the_precision_of_another(tmp_path):
    _, pred, _, labels, newer = newer_prediction(tmp_path / "f", sampling.LinkEnds())
    design = labels.design(drawn_from=pred)
    raises(eb.NotIdentified, "have chance 0", eb.estimate, newer, labels.labels, design, METRICS)
    own, same = (eb.estimate(pred, labels.labels, d, METRICS) for d in (labels.design(), design))
    assert same.estimate == own.estimate


def test_kept_weights_need_the_same_records_and_units():
    old, labels = {1: "a", 2: "a", 3: "b"}, {1: "x", 2: "x", 3: "y"}
    design = eb.design.FrozenWeights(eb.UniformRecords(), eb.measure(old, labels))
    with pytest.raises(DataError, match="holds 4 records, and the one that was drawn from 3"):
        design.expand(eb.measure(old | {4: "b"}, labels))
    with pytest.raises(DataError, match="1 labelled units are in one of the prediction and that"):
        design.expand(eb.measure(old, {1: "x", 2: "x"}))
    with pytest.raises(DataError, match="drawn_from is Units"):
        eb.design.FrozenWeights(eb.UniformRecords(), old).expand(eb.measure(old, labels))


def test_draws_without_an_answer_stay_in_the_data_or_count_as_not_made(tmp_path):
    folder, pred, true = made(tmp_path / "f", sampling.Multipurpose(), n=60)
    lost = folder.drawn.table["record"].unique()[:9]

    def blank(annotator, sheet):
        drawn = sheet["task"].map(sheet[sheet["role"] == "drawn"].set_index("task")["record"])
        doubt, not_begun = drawn.isin(lost[:6]), drawn.isin(lost[6:])
        sheet.loc[doubt | not_begun, "same"] = ""
        sheet.loc[doubt & (sheet["role"] == "drawn"), "cannot_tell"] = "x"
        return sheet[(sheet["role"] != "") | ~(doubt | not_begun)]

    fill(folder, true, change=blank)
    labels = read_labels(folder)
    assert labels.unresolved["state"].value_counts().to_dict() == {State.CANNOT_TELL: 6, State.UNANSWERED: 3}
    design = labels.design()
    records = folder.drawn.table["record"]
    assert isinstance(design, eb.design.Responding) and not records.is_unique
    assert list(design.resolved) == list(~records.isin(lost))
    assert list(design.begun) == list(~records.isin(lost[6:]))
    assert np.isfinite(eb.estimate(pred, labels.labels, design, METRICS).sd).all()


def rewritten(path, change, fits=False):
    """Change the facts of a folder; `fits` makes its fingerprint fit again, as of one that Python wrote."""
    about = json.loads((path / "drawn.json").read_text(encoding="utf-8"))
    change(about)
    if fits:
        tables = [(path / name).read_bytes() for name in ("drawn.csv", "tasks.csv")]
        about["fingerprint"] = compute_fingerprint(tables, about)
    (path / "drawn.json").write_text(json.dumps(about), encoding="utf-8")


def test_the_plan_and_the_types_of_a_draw_are_in_its_fingerprint(tmp_path):
    folder, *_ = made(tmp_path / "f", sampling.Multipurpose(), integers=True)
    original = (tmp_path / "f" / "drawn.json").read_text(encoding="utf-8")
    changes = {
        "plan": lambda about: about["drawn"].update(plan={"name": "uniform-records"}),
        "n": lambda about: about["drawn"].update(n=7),
        "sizes": lambda about: about["drawn"]["sizes"].update({"1": 1}),
        "types": lambda about: about["types"].update(record="string"),
        "overlap": lambda about: about.update(overlap=0.5),
    }
    for change in changes.values():
        rewritten(tmp_path / "f", change)
        with pytest.raises(DataError, match=r"drawn\.json has changed since the draw.*restore all three"):
            read_labels(tmp_path / "f")
    (tmp_path / "f" / "drawn.json").write_text(original, encoding="utf-8")
    rewritten(tmp_path / "f", lambda about: about.update(date="2020-01-01"))  # which weighs nothing
    assert read_labels(tmp_path / "f").folder.fingerprint == folder.fingerprint


@pytest.mark.parametrize("fact", ["date", "annotators", "overlap", "blind", "types", "drawn", "record"])
def test_a_fact_that_is_missing_is_named_also_if_the_fingerprint_fits(tmp_path, fact):
    folder, *_ = made(tmp_path / "f", sampling.Multipurpose())
    rewritten(folder.path, lambda about: (about["types"] if fact == "record" else about).pop(fact), fits=True)
    said = rf"drawn\.json: 1 facts are missing .* such as '{'types' if fact == 'record' else fact}': restore"
    with pytest.raises(DataError, match=said):
        read_labels(folder.path)


def test_two_who_draw_more_at_once_lose_nothing(tmp_path):
    """The second one is refused while the first one writes, and if there are more draws since it has read."""
    folder, pred, _ = made(tmp_path / "f", sampling.Multipurpose())
    drawn = sampling.draw(pred, sampling.Multipurpose(), n=40, seed=7)
    tasks = sampling.tasks(drawn, world()[2])
    with alone(tmp_path / "f" / "drawn.json"), pytest.raises(DataError, match="written by another process"):
        add_draws(folder, drawn, tasks, {"date": "x"})
    assert len(add_draws(folder, drawn, tasks, {"date": "x"}).drawn.table) == 40
    with pytest.raises(DataError, match="has 40 draws since, not 30: begin again"):
        add_draws(folder, drawn, tasks, {"date": "x"})


def test_brackets_within_brackets_and_tasks_that_do_not_exist_are_refused(tmp_path):
    made(tmp_path / "f")
    for text in ("[" * 200_000, '{"a":' * 50 + "1" + "}" * 50):
        (tmp_path / "f" / "drawn.json").write_text(text, encoding="utf-8")
        with pytest.raises(DataError, match=r"cannot read .*drawn\.json: it has brackets in brackets, over"):
            read_labels(tmp_path / "f")
        with pytest.raises(DataError, match="cannot read the description of draws: it has brackets"):
            sampling.RecordDraws.from_json(text, pd.DataFrame())
    (tmp_path / "f" / "drawn.json").write_text("[]", encoding="utf-8")
    raises(DataError, r"drawn\.json: it is list, and no object in braces", read_labels, tmp_path / "f")


HOSTILE_ANSWERS = {
    "deep": "[" * 100_000,
    "deep in a field": '{"version": 1, "answers": ' + "[" * 500 + "]" * 500 + "}",
    "a long number": '{"version": 1, "answers": [' + "9" * 5000 + "]}",
    "no number": '{"version": NaN}',
    "empty": "",
    "null": "null",
    "a list": "[]",
    "a prototype": '{"__proto__": {"a": 1}}',
    "half of a pair": '{"version": "\\ud800"}',
    "a long version": '{"version": "' + "x" * 10**6 + '", "answers": []}',
}


@pytest.mark.parametrize("name", HOSTILE_ANSWERS)
def test_hostile_files_of_answers_are_faults_in_a_short_sentence(small, name):
    (small.path / "answers-A.json").write_text(HOSTILE_ANSWERS[name], encoding="utf-8")
    problems = read_labels(small).problems
    (where,) = problems["where"][problems["fault"] == Fault.UNREAD]
    assert "answers-A.json: " in where and len(where) < 400


def test_files_of_answers_that_no_page_has_written_are_not_read(small, monkeypatch):
    monkeypatch.setattr("erbayes._internal.files.LARGEST_JSON", 9)
    (small.path / "answers-A.json").write_text('{"a": 123}', encoding="utf-8")
    problems = read_labels(small).problems
    assert problems["where"].str.contains("it has 10 bytes, and 9 are the most that is read").any()


def test_xlsx_sheets_that_are_no_xml_are_told(tmp_path):
    path = tmp_path / "sheet.xlsx"
    write_sheet(pd.DataFrame({"task": ["1"], "record": ["a"]}), path)
    with zipfile.ZipFile(path) as book:
        parts = {name: book.read(name) for name in book.namelist()}
    bomb = b'<!DOCTYPE l [<!ENTITY a "aaaaaaaaaa">'
    for i in range(9):
        bomb += b'<!ENTITY a%d "%s">' % (i, (b"&a%d;" % (i - 1) if i else b"&a;") * 10)
    for damaged in (b"<worksheet", b"", b"<?xml version='1.0'?>" + bomb + b"]><worksheet>&a8;</worksheet>"):
        with zipfile.ZipFile(path, "w") as book:
            for name, content in parts.items():
                book.writestr(name, damaged if name.endswith("sheet1.xml") else content)
        raises(DataError, r"cannot read .*sheet\.xlsx", read_sheet, path)


@pytest.mark.skipif(sys.platform != "linux", reason="folders are exchanged at one stroke on Linux")
def test_a_folder_is_there_at_every_moment_while_it_is_replaced(tmp_path):
    """A process that is killed between any two calls of the system leaves the old folder or the new one."""
    made(tmp_path / "f")
    moved, real = [], Path.replace
    with pytest.MonkeyPatch.context() as patch:  # nothing moves the folder away
        patch.setattr(Path, "replace", lambda one, other: (moved.append(one), real(one, other))[1])
        made(tmp_path / "f", n=10)
    assert tmp_path / "f" not in moved and len(read_labels(tmp_path / "f").folder.drawn.table) == 10


def test_the_next_draw_removes_what_a_killed_one_has_left(tmp_path):
    code = f"""
import sys; sys.path.insert(0, {str(Path(eb.__file__).parents[1])!r})
from pathlib import Path
from erbayes.labels.folder import replacing_folder
with replacing_folder(Path({str(tmp_path / "g")!r})) as new:
    (new / "attributes.csv").write_text("Ann")
    print("ready", flush=True)
    sys.stdin.read()
"""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    interrupted = tmp_path / ".erbayes-interrupted"  # between two renames: the only copy of old answers
    for part in ("new", "old"):
        (interrupted / part).mkdir(parents=True)
    (interrupted / "lock").touch()
    with (
        subprocess.Popen([sys.executable, "-c", code], **pipes) as killed,
        subprocess.Popen([sys.executable, "-c", code], **pipes) as alive,
    ):
        assert killed.stdout.readline() == alive.stdout.readline() == "ready\n"
        assert len(list(tmp_path.glob(".erbayes-*/new/attributes.csv"))) == 2
        killed.kill()
        killed.wait(timeout=60)
        made(tmp_path / "f")
        assert len(list(tmp_path.glob(".erbayes-*/new/attributes.csv"))) == 1
    assert {path.name for path in tmp_path.iterdir()} == {"f", "g", ".erbayes-interrupted"}


def test_outputs_are_written_where_no_file_can_be_locked(tmp_path, monkeypatch):
    def fails(*args):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("fcntl.flock", fails)
    made(tmp_path / "f")
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


@pytest.mark.parametrize("plan", [PLANS[-1], CLUSTERS[0]], ids=lambda plan: type(plan).__name__)
def test_tasks_that_nobody_can_tell_stay_in_the_data_under_other_plans(tmp_path, plan):
    folder, _, true = made(tmp_path / "f", plan, n=40)
    last = folder.tasks["task"].max()

    def change(annotator, sheet):
        sheet.loc[sheet["task"].astype(int) == last, ["same", "cannot_tell"]] = ""
        return in_doubt(1)(annotator, sheet)

    fill(folder, true, change=change)
    labels = read_labels(folder)
    design = labels.design(values=values_of(plan, world()[0]))
    assert isinstance(design, eb.design.Responding)
    lost = sum(state is State.CANNOT_TELL for state in labels.lost)
    assert lost == 1 and (~np.asarray(design.resolved)).sum() >= lost
    sample = eb.Sample(labels.units(world()[0]), design)
    assert np.isfinite(eb.engine.taylor(sample, METRICS).apply(METRICS).sd).all()


@pytest.mark.parametrize(
    "change",
    [
        {"plan": {"name": "uniform-records"}},
        {"plan": {"name": "stratified", "starts": [1]}},
        {"plan": {"name": "predicted-clusters", "of": {}}},
        {"plan": 3},
        {"n": 99},
        {"n": "x"},
        {"seed": None},
        {"fingerprint": None},
        {"sizes": {"1": 5}},
        {"sizes": {"a": 1}},
        {"sizes": {}},
        {"records": 7},
        *("version", "plan", "n", "seed", "records", "fingerprint", "sizes"),
    ],
    ids=str,
)
def test_draws_are_made_again_of_what_was_written_and_nothing_else(change):
    """By one changed fact, or without it."""
    drawn = sampling.draw(pd.Series(np.arange(400) // 3), sampling.Multipurpose(), n=30, seed=1)
    facts = json.loads(drawn.to_json())
    assert sampling.RecordDraws.from_json(json.dumps(facts), drawn.table).n == 30
    _ = facts.pop(change) if isinstance(change, str) else facts.update(change)
    lost = f"{change!r}( must be 1|: restore its file)" if isinstance(change, str) else ": "
    with pytest.raises(DataError, match=rf"the description of draws.*{lost}"):
        sampling.RecordDraws.from_json(json.dumps(facts), drawn.table)
