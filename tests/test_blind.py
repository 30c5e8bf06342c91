"""Folders that hide the prediction from annotators, tasks with a known answer, and what they tell of annotators."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from checks import raises
from shell import done, refused, run
from test_folder import answered, fill, saved, world

import erbayes as eb
from erbayes import labels as sampling
from erbayes._internal.errors import DataError
from erbayes.labels import read_labels
from erbayes.labels.folder import read_folder
from erbayes.labels.labelling_tasks import read_sheet, write_sheet
from erbayes.labels.verdicts import Fault, State

PRED, TRUE, _ = world()


def folder_of(path, plan=None, n=30, controls=None, candidates=None, **more):
    """A folder of draws with every second true link as a candidate."""
    drawn = sampling.draw(PRED, plan or sampling.Records(), n=n, seed=7)
    rows = [(r, c) for r in drawn.members["record"].unique() for c in TRUE.index[TRUE == TRUE[r]]]
    near = pd.DataFrame(rows[::2], columns=["record", "candidate"]) if candidates is None else candidates
    shown = sampling.tasks(drawn, None, near, controls=controls)
    return sampling.write_folder(path, drawn, shown, **more)


def estimates(labels):
    found = eb.estimate(PRED, labels.labels, labels.design(), ["pairwise-precision", "b3-recall"])
    return found.table()


def controls_of(folder):
    return folder.tasks[folder.tasks["role"] == "control"]


def lazy(annotator, sheet):
    """What Enter alone answers: the cluster is the same, with controls in it, and candidates are not."""
    shown = sheet[sheet["role"] != ""]
    return shown.assign(same=np.where(shown["role"] == "candidate", "n", "y"))


HIDDEN = [{"blind": True}, {"controls": 0.3}, {"blind": True, "controls": 0.3}]
SHOWN = [sampling.Records(), sampling.Multipurpose()]
FORMS = [".csv", ".xlsx", ".json"]


# each plan in each form of answers, and each form with two ways to hide
@pytest.mark.every(2)
@pytest.mark.parametrize(
    ("plan", "suffix", "hidden"),
    [(SHOWN[i], FORMS[j], HIDDEN[(i + j) % 3]) for i in range(2) for j in range(3)],
)
def test_blind_and_controls_leave_labels_and_estimates_as_they_are(tmp_path, plan, suffix, hidden):
    """A truthful annotator gives the same labels as in a plain folder."""
    found = []
    for name, more in (("plain", {}), ("hidden", hidden)):
        folder = folder_of(tmp_path / name, plan, **more)
        fill(folder, TRUE, suffix)
        labels = read_labels(folder, PRED)
        assert not len(labels.problems)
        found.append((labels.labels.sort_index(), estimates(labels)))
    (plain, table), (labels, changed) = found
    pd.testing.assert_series_equal(labels, plain)
    pd.testing.assert_frame_equal(changed, table)


def test_blind_sheets_tell_no_role_and_no_order(tmp_path):
    folder = folder_of(tmp_path / "f", blind=True, controls=0.5, annotators=2, overlap=1)
    other = folder_of(tmp_path / "g", blind=True, controls=0.5, annotators=2, overlap=1)
    assert folder.blind and read_folder(folder.path).blind
    first, second, again = (
        read_sheet(f.path / f"sheet-{name}.csv") for f, name in [(folder, "A"), (folder, "B"), (other, "A")]
    )
    pd.testing.assert_frame_equal(first, again)
    pd.testing.assert_frame_equal(first, second)
    assert set(first["role"]) == {"drawn", "shown"} and "why" not in first
    assert (first.groupby("task")["role"].first() == "drawn").all()
    rows = folder.tasks[["task", "record", "role"]].itertuples(index=False)
    role = {(str(task), record): role for task, record, role in rows}
    assert sorted(zip(first["task"], first["record"], strict=True)) == sorted(role)
    rest = first[first["role"] == "shown"]
    place = rest.groupby("task").cumcount() / rest.groupby("task")["task"].transform("size")
    true = pd.Series([role[key] for key in zip(rest["task"], rest["record"], strict=True)], index=rest.index)
    means = place.groupby(true).mean()
    assert set(means.index) == {"cluster", "candidate", "control"}
    assert (means > 0.25).all() and (means < 0.65).all(), "no role comes first or last"


def test_a_why_of_candidates_is_not_in_a_blind_sheet(tmp_path):
    why = pd.DataFrame({"record": PRED.index, "candidate": np.roll(PRED.index, 1), "why": "looser"})
    plain = folder_of(tmp_path / "f", candidates=why)
    blind = folder_of(tmp_path / "g", candidates=why, blind=True)
    assert "why" in read_sheet(plain.path / "sheet-A.csv")
    assert "looser" not in (blind.path / "sheet-A.csv").read_text("utf-8")


@pytest.mark.parametrize("blind", [False, True])
@pytest.mark.parametrize("plan", [sampling.Records(), sampling.PredictedClusters()])
def test_controls_are_strangers_that_only_the_key_tells(tmp_path, plan, blind):
    folder = folder_of(tmp_path / "f", plan, n=20, controls=0.25, blind=blind)
    key = controls_of(folder)
    drawn = folder.tasks[folder.tasks["role"] == "drawn"].set_index("task")["record"]
    share = drawn.map(PRED).nunique() if isinstance(plan, sampling.PredictedClusters) else len(drawn)
    assert len(key) == round(0.25 * share) and key["task"].is_unique
    assert (PRED[key["record"]].to_numpy() != PRED[drawn[key["task"]]].to_numpy()).all()
    assert not folder.tasks.duplicated(["task", "record"]).any()
    assert set(folder.drawn.members["record"]) == set(PRED.index[PRED.isin(PRED[drawn])])
    for file in folder.path.iterdir():
        if file.name not in {"tasks.csv", "drawn.json"} and file.suffix in {".csv", ".html"}:
            assert "control" not in file.read_text("utf-8").split("<style>")[0], file.name
    data = (folder.path / "label-A.html").read_text("utf-8").split('id="data">')[1].split("</script>")[0]
    assert "control" not in data


@pytest.mark.slow
def test_controls_stand_anywhere_in_the_cluster_and_are_of_any_cluster():
    """Over many seeds: the place is uniform, and so is the cluster that supplies the stranger, not the record."""
    records = [f"{c}{i}" for c, n in (("a", 4), ("b", 9), ("c", 1)) for i in range(n)]
    members = pd.DataFrame({"record": records})
    members["cluster"] = members["record"].str[0]
    drawn = SimpleNamespace(table=members.iloc[[0]], members=members, of_clusters=False)
    places, clusters = [], []
    for seed in range(100):
        drawn.seed = seed
        table = sampling.tasks(drawn, controls=0.01)
        at = int((table["role"] == "control").to_numpy().argmax())
        places.append(at)
        clusters.append(table["record"].iloc[at][0])
    counts = pd.Series(places).value_counts()
    # 3.5 standard errors on both sides of 25 and of 50; by record, "c" would come 10 times
    assert sorted(counts.index) == [1, 2, 3, 4] and counts.between(10, 40).all()
    assert set(clusters) == {"b", "c"} and 33 < clusters.count("c") < 67


def test_a_candidate_of_the_task_is_no_stranger():
    members = pd.DataFrame({"record": ["a", "b", "c"], "cluster": ["a", "b", "c"]})
    drawn = SimpleNamespace(table=members.iloc[[0]], members=members, of_clusters=False, seed=1)
    near = pd.DataFrame({"record": ["a", "a"], "candidate": ["b", "c"]})
    assert sampling.tasks(drawn, None, near[:1], controls=0.5)["record"].tolist() == ["a", "c", "b"]
    with pytest.raises(DataError, match=r"task 1 can have no control: .* leave out the controls"):
        sampling.tasks(drawn, None, near, controls=0.5)


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5, float("nan"), "x", [0.1]])
def test_other_shares_of_controls_are_refused(share):
    drawn = sampling.draw(PRED, sampling.Records(), n=5, seed=1)
    raises(DataError, "controls", sampling.tasks, drawn, controls=share)


def test_an_accepted_control_joins_nothing_and_is_told(tmp_path):
    plain = folder_of(tmp_path / "f")
    tested = folder_of(tmp_path / "g", controls=0.4, annotators=2, overlap=1)
    fill(plain, TRUE, change=lazy)
    fill(tested, TRUE, change=lambda name, sheet: lazy(name, sheet) if name == "A" else sheet)
    for file in tested.path.glob("sheet-B.*"):
        file.unlink()
    one, other = read_labels(plain), read_labels(tested)
    pd.testing.assert_series_equal(one.labels, other.labels)
    table = other.annotators().set_index("annotator")
    key = controls_of(tested)
    assert len(key) == round(0.4 * tested.tasks["task"].nunique())
    assert table.loc["A", "controls missed"] == table.loc["A", "controls"] == len(key)
    assert table.loc["B", "controls"] == 0
    never, missed = other.cautions()
    assert f"A answered {tested.tasks['task'].nunique()} tasks and never changed a default" in never
    assert f"A accepted {len(key)} of {len(key)} controls" in missed
    assert f"in tasks {key['task'].iloc[0]}, " in missed


def test_annotators_who_differ_on_a_control_dispute_nothing(tmp_path):
    folder = folder_of(tmp_path / "f", controls=0.4, annotators=2, overlap=1)
    key = {(str(t), r) for t, r in controls_of(folder)[["task", "record"]].itertuples(index=False, name=None)}

    def accepts(annotator, sheet):
        at = [pair in key for pair in zip(sheet["task"], sheet["record"], strict=True)]
        return sheet.assign(same=sheet["same"].mask(np.array(at), "y")) if annotator == "B" else sheet

    fill(folder, TRUE, change=accepts)
    labels = read_labels(folder)
    assert not len(labels.problems) and labels.agreement()["estimate"].tolist() == pytest.approx([1] * 4)
    table = labels.annotators().set_index("annotator")
    assert table["controls missed"].to_dict() == {"A": 0, "B": len(key)}
    assert [c[:10] for c in labels.cautions()] == ["B accepted"]


def test_the_sheet_of_decisions_has_no_controls_and_may_add_one(tmp_path):
    """A control that does belong to the entity is added by the person who decides, and then counts."""
    folder = folder_of(tmp_path / "f", controls=0.5, annotators=2, overlap=1)
    key = controls_of(folder)
    others = folder.tasks[(folder.tasks["role"] == "candidate") & folder.tasks["task"].isin(key["task"])]
    task, disputed = others.iloc[0][["task", "record"]]
    (stranger,) = key["record"][key["task"] == task]

    def differ(annotator, sheet):
        at = (sheet["task"] == str(task)) & (sheet["record"] == disputed)
        return sheet.assign(same=sheet["same"].mask(at, "n")) if annotator == "B" else sheet

    fill(folder, TRUE, change=differ)
    path = read_labels(folder).write_disputed()
    sheet = read_sheet(path)
    assert stranger not in set(sheet["record"]) and "control" not in set(sheet["role"])
    decided = answered(sheet[sheet["role"] != "added"], TRUE)
    write_sheet(decided, path)
    labels = read_labels(folder)
    assert not len(labels.problems) and stranger not in set(labels.labels.index[labels.labels == task])
    drawn = folder.tasks["record"][(folder.tasks["task"] == task) & (folder.tasks["role"] == "drawn")].iloc[0]
    together = pd.DataFrame([{"task": str(task), "record": stranger, "same": "y"}])
    write_sheet(pd.concat([decided, together]).fillna(""), path)
    with_it = read_labels(folder)
    assert stranger in set(with_it.stars.answers["record"][with_it.stars.answers["entity"] == drawn])
    write_sheet(pd.concat([decided, together.assign(same="")]).fillna(""), path)
    assert not len(read_labels(folder).problems)


def test_annotators_by_hand(tmp_path):
    """Tasks in which records are refused, accepted and added, controls are seen and missed, and one is only begun."""
    folder = folder_of(tmp_path / "f", controls=0.9)
    given = folder.tasks[["task", "record", "role"]].copy()
    given["same"] = np.where(given["role"] == "candidate", "n", "y")
    first = {role: given.index[given["role"] == role] for role in ("cluster", "candidate", "control")}
    given.loc[[*first["cluster"][:3], *first["control"][:4]], "same"] = "n"
    given.loc[first["candidate"][:2], "same"] = "y"
    begun = given[given["task"] == given["task"].iloc[-4]].iloc[:-1].assign(same="y")
    given = given[~given["task"].isin(given["task"].iloc[-4:])]
    more = pd.DataFrame({"task": given["task"].iloc[-1], "record": ["new1", "new2"], "role": "", "same": "y"})
    table = pd.concat([given, more, begun]).assign(cannot_tell="")
    write_sheet(table, folder.path / "sheet-A.csv")
    row = read_labels(folder).annotators().iloc[0]
    assert row["tasks"] == given["task"].nunique()
    assert row[["records refused", "candidates accepted", "ids added"]].tolist() == [3, 2, 2]
    assert row["controls"] == (given["role"] == "control").sum()
    assert row["controls missed"] == row["controls"] - 4 and np.isnan(row["median seconds"])


@pytest.mark.parametrize("change, told", [
    (lambda s: s, True),
    (lambda s: s.assign(same=s["same"].where(s.index != s.index[s["role"] == "cluster"][0], "n")), False),
    (lambda s: s.assign(same=s["same"].where(s.index != s.index[s["role"] == "candidate"][0], "y")), False),
    (lambda s: pd.concat([s, pd.DataFrame([{"task": "1", "record": "new", "same": "y"}])]).fillna(""), False),
    (lambda s: s.assign(cannot_tell=["x", *[""] * (len(s) - 1)], same=s["same"].where(s["task"] != "1", "")), False),
], ids=["nothing", "refused", "accepted", "added", "cannot tell"])  # fmt: skip
def test_a_default_that_was_never_changed_is_told(tmp_path, change, told):
    folder = folder_of(tmp_path / "f")
    fill(folder, TRUE, change=lambda name, sheet: change(lazy(name, sheet)))
    labels = read_labels(folder)
    assert [("never changed a default" in c) for c in labels.cautions()] == [True] * told
    assert ("caution: A answered" in repr(labels)) is told
    assert ("caution: A answered" in labels._repr_html_()) is told


def test_whoever_refuses_the_controls_has_changed_a_default(tmp_path):
    folder = folder_of(tmp_path / "f", controls=0.05)
    key = set(controls_of(folder)["record"])

    def change(name, sheet):
        sheet = lazy(name, sheet)
        return sheet.assign(same=sheet["same"].mask(sheet["record"].isin(key), "n"))

    fill(folder, TRUE, change=change)
    assert read_labels(folder).cautions() == []


def test_times_come_from_pages_and_their_median_is_told(tmp_path):
    folder = folder_of(tmp_path / "f", annotators=2, overlap=1)
    saved(folder, "A", answered(read_sheet(folder.path / "sheet-A.csv"), TRUE))
    fill(folder, TRUE)
    path = folder.path / "answers-A.json"
    content = json.loads(path.read_text("utf-8"))
    for number, one in enumerate(content["answers"]):
        one["seconds"] = [4.0, 9, 3600.0][number % 3]
    content["answers"][0].pop("seconds")
    path.write_text(json.dumps(content), "utf-8")
    labels = read_labels(folder)
    assert not len(labels.problems), "the sheet and the page of A say the same"
    seconds = labels.states.set_index(["annotator", "task"])["seconds"].astype(float)
    assert np.isnan(seconds["A", 1]) and (seconds["A", 2], seconds["A", 3]) == (9, 3600)
    assert seconds["B"].isna().all()
    median = labels.annotators().set_index("annotator")["median seconds"]
    assert median["A"] == 9 and np.isnan(median["B"])
    assert not [caution for caution in labels.cautions() if "within" in caution]
    hasty = [one | {"seconds": 1.9 - (number % 2)} for number, one in enumerate(content["answers"])]
    path.write_text(json.dumps(content | {"answers": hasty}), "utf-8")
    (caution,) = (caution for caution in read_labels(folder).cautions() if "within" in caution)
    assert caution.startswith("A answered half of the tasks within 1.9 seconds each")
    again = [one | {"seconds": one.get("seconds", 0) + 100} for one in content["answers"]]
    (folder.path / "answers-later.json").write_text(json.dumps(content | {"answers": again}), "utf-8")
    assert read_labels(folder).annotators()["median seconds"].iloc[0] == 109, "the later file counts on"


def test_a_column_of_seconds_in_a_sheet_is_no_time(tmp_path):
    folder = folder_of(tmp_path / "f")
    fill(folder, TRUE, change=lambda name, sheet: sheet.assign(seconds="-7"))
    assert np.isnan(read_labels(folder).annotators()["median seconds"].iloc[0])


def test_blank_rows_of_a_blind_sheet_are_named(tmp_path):
    folder = folder_of(tmp_path / "f", blind=True)
    sheet = answered(read_sheet(folder.path / "sheet-A.csv"), TRUE)
    sheet.index = range(2, len(sheet) + 2)
    row = sheet.index[sheet["role"] == "shown"][3]
    sheet.loc[row, "same"] = ""
    write_sheet(sheet, folder.path / "sheet-A.csv")
    problems = read_labels(folder).problems
    (problem,) = problems[problems["fault"] == Fault.BLANK].to_dict("records")
    assert problem["where"] == f"sheet-A.csv, row {row}"
    assert str(problem["task"]) == sheet.loc[row, "task"] and problem["record"] == sheet.loc[row, "record"]
    assert read_labels(folder).unresolved["state"].tolist() == [State.INCOMPLETE]
    (folder.path / "sheet-A.csv").unlink()
    saved(folder, "A", sheet)
    problems = read_labels(folder).problems
    (problem,) = problems[problems["fault"] == Fault.UNREAD].to_dict("records")
    assert f"such as task {sheet.loc[row, 'task']} about {sheet.loc[row, 'record']!r}" in problem["where"]


def test_answers_that_were_not_blind_are_refused_in_a_blind_folder(tmp_path):
    plain, blind = folder_of(tmp_path / "f"), folder_of(tmp_path / "g", blind=True)
    assert plain.fingerprint != blind.fingerprint
    filled = answered(read_sheet(blind.path / "sheet-A.csv"), TRUE)
    fill(plain, TRUE, ".json")
    fill(plain, TRUE)
    for file in ("sheet-A.csv", "answers-A.json"):
        (blind.path / file).write_bytes((plain.path / file).read_bytes())
    labels = read_labels(blind)
    where = labels.problems["where"][labels.problems["fault"] == Fault.UNREAD].tolist()
    assert len(where) == 2 and "answers-A.json: the answers belong to another draw" in where[0]
    assert "sheet-A.csv: row " in where[1] and "'cluster', which a blind sheet hides" in where[1]
    with pytest.raises(DataError, match="the file is not read"):
        _ = labels.labels
    (blind.path / "answers-A.json").unlink()
    write_sheet(filled, blind.path / "sheet-A.csv")
    assert not len(read_labels(blind).problems)
    (plain.path / "answers-A.json").unlink()
    (plain.path / "sheet-A.csv").write_bytes((blind.path / "sheet-A.csv").read_bytes())
    assert not len(read_labels(plain).problems), "blind answers serve everywhere"


def test_drawn_clusters_are_labelled_blind_as_well(tmp_path):
    found = []
    for blind, controls in ((False, None), (True, 0.5)):
        folder = folder_of(tmp_path / f"f{blind}", sampling.PredictedClusters(), 8, controls, blind=blind)
        fill(folder, TRUE)
        labels = read_labels(folder)
        assert not len(labels.problems)
        found.append(labels.units(PRED).table())
        page = (folder.path / "label-A.html").read_text("utf-8")
        data = json.loads(page.split('id="data">')[1].split("</script>")[0])
        assert len(data["settling"]) == len(data["tasks"]) and len(set(data["settling"])) == 8
    pd.testing.assert_frame_equal(*found)


@pytest.mark.slow
def test_the_shell_draws_blind_with_controls_and_tells_who_was_lazy(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    PRED.rename_axis("record").rename("cluster").to_csv("p.csv")
    draw = ("draw", "p.csv", "--design", "uniform-records", "--n", 40, "--seed", 3, "--controls", 0.1)
    done(*draw, "--output", "f")
    done(*draw, "--blind", "--output", "g")
    assert read_folder("g").blind and not read_folder("f").blind
    pd.testing.assert_frame_equal(read_folder("f").tasks, read_folder("g").tasks)
    fill(read_folder("f"), TRUE, change=lazy)
    fill(read_folder("g"), TRUE)
    assert "controls missed" in run("labels", "f").stdout
    for command in (
        ("labels", "f"),
        ("estimate", "p.csv", "f"),
        ("check", "p.csv", "f", "--min-recall", 0.5),
    ):
        shown = run(*command).stderr
        assert "caution: A answered" in shown and "never changed a default" in shown
        assert "caution: A accepted 4 of 4 controls" in shown
        assert "caution" not in run(*[word if word != "f" else "g" for word in command]).stderr
    assert "controls must lie between 0 and 1" in refused(*draw[:-1], "nan", "--output", "h")
