"""The way in the shell: erbayes draw, answers, erbayes labels, and commands that take the folder as LABELS."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from shell import done, listed, refused, run
from test_folder import answered, fill, in_doubt, rewritten, saved, world
from test_report import undrawn  # noqa: F401

import erbayes as eb
from erbayes import labels as sampling
from erbayes._internal import digits, remedies
from erbayes.labels import read_labels
from erbayes.labels.folder import read_folder
from erbayes.labels.labelling_tasks import read_sheet, write_sheet
from erbayes.labels.plans import PLANS
from erbayes.labels.verdicts import Fault, State

PRED, TRUE, ATTRIBUTES = world()
DRAW = ("draw", "p.csv", "--n", 40, "--seed", 3)


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    """A prediction, another one, attributes, and pairs of records."""
    folder = tmp_path_factory.mktemp("files")
    PRED.rename_axis("record").rename("cluster").to_csv(folder / "p.csv")
    other = PRED.copy()
    other.iloc[::4] = "c1"
    other.rename_axis("record").rename("cluster").to_csv(folder / "q.csv")
    ATTRIBUTES.to_csv(folder / "a.csv", index=False)
    ATTRIBUTES.to_parquet(folder / "a.parquet")
    pairs = [
        (r, s) for p in TRUE.unique() for r in TRUE.index[TRUE == p] for s in TRUE.index[TRUE == p] if r < s
    ]
    pd.DataFrame(pairs, columns=["left", "right"]).to_csv(folder / "pairs.csv", index=False)
    return folder


@pytest.fixture
def files(originals, tmp_path, monkeypatch):
    """The files in a current folder of their own."""
    shutil.copytree(originals, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    for name in ("FIRST", "LAST"):  # imputations
        monkeypatch.setattr(f"erbayes.analysis.sensitivity.{name}", 5)
    return tmp_path


def drawn(*options, to="f", design="uniform-records"):
    draw = ("draw", "p.csv", "--seed", 3) if "--n" in options else DRAW
    return done(*draw, "--design", design, "--candidates", "pairs.csv", "--output", to, *options)


ANSWERED = {}
"""The files of folders with all answers, by the options of their draws: each is made once."""


def labelled(*options, design="uniform-records"):
    """Write the folder f with all answers."""
    folder, made = Path("f"), (*options, design)
    if made not in ANSWERED:
        drawn(*options, design=design)
        fill(read_folder(folder), TRUE)
        ANSWERED[made] = {path.name: path.read_bytes() for path in folder.iterdir()}
        return
    folder.mkdir()
    for name, content in ANSWERED[made].items():
        (folder / name).write_bytes(content)


def rows(*args):
    return pd.DataFrame(listed(*args))


@pytest.mark.parametrize("design", ["multipurpose", "uniform-records", "predicted-links"])
def test_an_estimate_from_the_folder_needs_no_option(files, design):
    labelled(design=design)
    found = rows("estimate", "p.csv", "f", "--metrics", "pairwise-precision").iloc[0]
    draws = sampling.draw(PRED, PLANS[design](), n=40, seed=3)
    typed = TRUE[TRUE.isin(TRUE[draws.table["record"]])]
    wanted = eb.estimate(PRED, typed, draws.design(typed), "pairwise-precision").table().iloc[0]
    for column in ("estimate", "se", "lower", "upper"):
        assert found[column] == pytest.approx(wanted[column], rel=1e-9)
    assert not len(read_labels("f").problems)
    if design == "predicted-links":  # the remedy, followed at three doors
        for call in ("estimate p.csv f", "plan f --half-width 0.2", "check f --min recall=0.5", "impact f"):
            assert "or ask for pairwise-precision, which such draws tell" in refused(*call.split())
        assert run("check", "f", "--min", "pairwise-precision=0.1", "--once").exit_code in (0, 1, 3)
    planned = listed("plan", "f", "--half-width", 0.2, "-m", "pairwise-precision")
    own = {design} if design == "predicted-links" else {design, "uniform-records", "uniform-clusters"}
    assert {row["design"] for row in planned} >= own and (len(own) > 1 or len(planned) == 1)


@pytest.mark.every(2)
@pytest.mark.parametrize("design", ["given-chances", "stratified"])
def test_records_that_annotators_have_added_have_values_too(tmp_path, monkeypatch, design):
    """They are in the file of values, which the folder remembers."""
    monkeypatch.chdir(tmp_path)
    true = pd.Series(np.arange(120) // 3, [f"r{i}" for i in range(120)])
    pred = true.where(np.arange(120) % 5 > 0, 1000 + np.arange(120))
    pred.rename_axis("record").rename("cluster").to_csv("p.csv")
    values = pd.Series([[1, 2], ["a", "b"]][design == "stratified"] * 60, true.index)
    values.rename_axis("record").rename("value").to_csv("v.csv")
    done(*DRAW, "--design", design, "--values", "v.csv", "--output", "f")  # without candidates
    fill(read_folder("f"), true)
    (sheet,) = Path("f").glob("sheet-*.csv")
    shown, added = read_folder("f").tasks, []
    for task, records in shown.groupby("task"):
        of_entity = true.index[true == true[records["record"].iloc[0]]]
        rest = [r for r in of_entity if r not in set(records["record"])]
        added += [{"task": str(task), "record": r, "same": "y"} for r in rest]
    write_sheet(pd.concat([read_sheet(sheet), pd.DataFrame(added)]).fillna(""), sheet)
    labels = read_labels("f")
    assert not set(labels.labels.index) <= set(shown["record"])
    found = rows("estimate", "f", "--metrics", "pairwise-recall").iloc[0]
    wanted = eb.estimate(pred, labels.labels, labels.design(values=values), "pairwise-recall")
    assert found["estimate"] == pytest.approx(wanted.estimate[0], rel=1e-9)


def test_the_folder_says_how_it_was_made(files):
    shown = drawn("--attributes", "a.csv", "--annotators", 2, "--overlap", 0.5)
    assert "read 200 records in " in shown.stderr
    assert "wrote f: 40 draws, " in shown.stdout and "A: " in shown.stdout and "label-B.html" in shown.stdout
    dealt = json.loads(drawn("--replace", "--annotators", 2, "--attributes", "a.csv", "-f", "json").stdout)
    assert [row["annotator"] for row in dealt] == ["A", "B"] and {row["draws"] for row in dealt} == {40}
    drawn("--replace", "--attributes", "a.csv", "--annotators", 2, "--overlap", 0.5)
    about = json.loads((files / "f" / "drawn.json").read_text(encoding="utf-8"))
    assert about["prediction"] == "p.csv" and about["attributes"] == "a.csv" and about["overlap"] == 0.5
    assert about["read"].endswith("(record, cluster of p.csv)")


@pytest.mark.parametrize("attributes", ["a.csv", "a.parquet"])
def test_annotators_see_the_attributes_and_the_same_tasks_without(files, attributes):
    drawn("--attributes", attributes, "--controls", 0.2)
    tasks = read_folder("f").tasks
    assert {"control", "candidate"} < set(tasks["role"])
    if attributes == "a.csv":
        drawn("--controls", 0.2, to="g")
        pd.testing.assert_frame_equal(tasks.drop(columns="name"), read_folder("g").tasks)
    names = ATTRIBUTES.set_index("record")["name"]
    shown = tasks["name"].str.replace("\\u202e", "\u202e")
    assert (shown.to_numpy() == names[tasks["record"]].to_numpy()).all()


def test_candidates_of_a_looser_clustering_and_of_a_search(files):
    done(*DRAW, "--design", "uniform-records", "--looser", "q.csv", "--output", "g")
    assert set(read_folder("g").tasks["why"]) == {"", "looser clustering"}
    done(*DRAW, "--design", "uniform-records", "--attributes", "a.csv", "--search", 2, "--output", "h")
    assert (read_folder("h").tasks["role"] == "candidate").sum() > 10


@pytest.mark.slow
def test_a_prediction_that_is_scanned_gives_the_same_folder(files):
    for design in ("uniform-records", "multipurpose"):
        drawn(to="f", design=design)
        drawn("--memory-limit", "1GB", to="g", design=design)
        assert (files / "f" / "drawn.csv").read_bytes() == (files / "g" / "drawn.csv").read_bytes()
        assert read_folder("f").drawn.fingerprint == read_folder("g").drawn.fingerprint
    fill(read_folder("f"), TRUE)
    ways = [rows("estimate", "p.csv", "f", *more) for more in ((), ("--memory-limit", "1GB"))]
    assert ways[0]["estimate"].to_numpy() == pytest.approx(ways[1]["estimate"].to_numpy(), rel=1e-12)
    assert "this is not the prediction that was drawn from: its fingerprint is " in refused(
        "estimate", "p.csv", "f", "--memory-limit", "1GB", "--drawn-from", "q.csv"
    )
    asked = ("estimate", "q.csv", "f", "--drawn-from", "p.csv")
    ways = [rows(*asked, *more) for more in ((), ("--memory-limit", "1GB"))]
    assert ways[0]["estimate"].to_numpy() == pytest.approx(ways[1]["estimate"].to_numpy())


@pytest.mark.slow
def test_another_prediction_needs_the_one_that_was_drawn_from(files):
    labelled(design="multipurpose")
    labels = read_labels("f")
    found = rows("estimate", "q.csv", "f", "--drawn-from", "p.csv", "--metrics", "b3-recall")
    pd.testing.assert_frame_equal(found, rows("estimate", "q.csv", "f", "--metrics", "b3-recall"))
    other = pd.read_csv("q.csv", dtype=str, keep_default_na=False).set_index("record")["cluster"]
    wanted = eb.estimate(other, labels.labels, labels.design(drawn_from=PRED), "b3-recall")
    assert found["estimate"][0] == pytest.approx(wanted.estimate[0], rel=1e-12)
    assert "this is not the prediction that was drawn from: its fingerprint is " in refused(
        "estimate", "p.csv", "f", "--drawn-from", "q.csv"
    )
    shutil.copy("q.csv", "r.csv")
    two = rows("compare", "q.csv", "r.csv", "f", "--metrics", "b3-recall")["estimate"]
    assert two.tolist() == pytest.approx([wanted.estimate[0]] * 2 + [0], rel=1e-12)
    compared = rows("compare", "p.csv", "q.csv", "f", "--drawn-from", "p.csv", "--metrics", "b3-recall")
    own = eb.estimate(PRED, labels.labels, labels.design(), "b3-recall")
    assert compared["estimate"].iloc[-1] == pytest.approx(wanted.estimate[0] - own.estimate[0], rel=1e-9)
    (files / "p.csv").unlink()
    for command in ("estimate", "q.csv", "f"), ("compare", "q.csv", "r.csv", "f"):
        assert remedies.DRAWN_FROM.value in refused(*command)


@pytest.mark.every(2)
@pytest.mark.parametrize("design", ["multipurpose", "uniform-records"])
def test_a_prediction_with_the_same_sizes_is_noticed(files, design):
    labelled(design=design)
    one, other = read_folder("f").drawn.members.drop_duplicates("cluster")["record"].iloc[:2]
    swapped = PRED.copy()
    swapped[[one, other]] = PRED[[other, one]].to_numpy()
    for name in ("s.csv", "t.csv"):
        swapped.rename_axis("record").rename("cluster").to_csv(name)
    if design == "uniform-records":
        said = "note: s.csv is not the prediction that was drawn from: its clusters hold other records"
        assert said in done("estimate", "s.csv", "f").stderr
        return
    swapped.rename_axis("record").rename("cluster").to_csv("p.csv")
    for command in (("estimate", "s.csv"), ("compare", "s.csv", "t.csv")):
        assert "this is not the prediction that was drawn from" in refused(*command, "f")


def test_uniform_records_judge_another_prediction_with_a_note(files):
    labelled()
    said = "note: q.csv is not the prediction that was drawn from: it has 200 records in"
    assert said in done("estimate", "q.csv", "f").stderr
    assert "note" not in done("estimate", "p.csv", "f").stderr
    Path("more.csv").write_bytes(Path("p.csv").read_bytes() + b"new,c1\n")
    assert "records = 200, but the prediction holds 201" in refused("estimate", "more.csv", "f")
    assert rows("estimate", "more.csv", "f", "--frame", "p.csv").equals(rows("estimate", "p.csv", "f"))


@pytest.mark.slow
def test_the_uniform_records_of_a_folder_are_taken_by_their_design(files):
    labelled(design="multipurpose")
    asked = ("estimate", "p.csv", "f", "--design", "uniform-records", "-m", "b3-recall")
    part = read_folder("f").drawn.uniform()
    assert part.n < 40
    assert f"note: {part.n} of 40 draws are a sample of uniform records" in done(*asked).stderr
    labels = TRUE[TRUE.isin(TRUE[part.table["record"]])]
    wanted = eb.estimate(PRED, labels, eb.UniformRecords(TRUE[part.table["record"]].tolist()), "b3-recall")
    (found,) = listed(*asked)
    assert found["estimate"] == pytest.approx(wanted.estimate[0], rel=1e-12)
    returned = read_labels("f").uniform()
    assert set(returned.labels.index) == set(labels.index) and type(returned.design()) is eb.UniformRecords
    left = read_folder("f").drawn.table["record"].drop_duplicates()
    (out,) = left[~left.isin(part.table["record"])].head(1)
    lost = pd.DataFrame({"task": [1], "record": [out], "state": [State.CANNOT_TELL]})
    returned = replace(read_labels("f"), unresolved=lost)
    assert len(returned.lost) and type(returned.uniform().design()) is eb.UniformRecords
    # another prediction needs no chances of the one that was drawn from
    done("estimate", "q.csv", "f", "--design", "uniform-records", "-m", "b3-recall")
    done(*DRAW, "--design", "predicted-links", "--output", "links")
    fill(read_folder("links"), TRUE)
    said = "draws by LinkEnds leave no sample of uniform records"
    assert said in refused("estimate", "p.csv", "links", "--design", "uniform-records")


@pytest.mark.parametrize("options", ["--design uniform-clusters", "--drawn p.csv", "--entity e", "--draws 3"])
def test_a_folder_has_its_design(files, options):
    labelled()
    assert f"the folder f says how its records were drawn: leave out {options.split()[0]}" in refused(
        "estimate", "p.csv", "f", *options.split()
    )


def test_labels_in_a_file_need_a_design(files):
    (files / "l.csv").write_bytes((files / "p.csv").read_bytes())
    assert "--design is needed, one of uniform-records, " in refused("estimate", "p.csv", "l.csv")
    assert "--drawn-from needs a folder" in refused(
        "estimate", "p.csv", "l.csv", "--design", "uniform-records", "--drawn-from", "q.csv"
    )
    (files / "empty").mkdir()
    assert "empty is no folder that erbayes draw has written" in refused("estimate", "p.csv", "empty")


@pytest.mark.slow
def test_labels_shows_what_came_back_and_writes_it(files):
    drawn("--annotators", 2, "--overlap", 0.5)
    folder = read_folder("f")

    def wrong(annotator, sheet):
        at = sheet.index[(sheet["role"] == "cluster")]
        if annotator == "B":
            sheet.loc[at, "same"] = np.where(sheet.loc[at, "same"] == "y", "n", "y")
        return sheet

    fill(folder, TRUE, change=wrong)
    shown = done("labels", "f", "--problems", "problems.csv", "--decide").stdout
    assert "wrote problems.csv" in shown and "wrote f/sheet-decided" in shown
    listed = read_sheet(files / "problems.csv")
    assert list(listed) == ["where", "annotator", "task", "record", "fault"]
    assert len(listed) == len(read_labels("f").problems)
    message = refused("estimate", "p.csv", "f")
    assert (
        "times:" in message and "all at once by Labels.disputed() (erbayes labels FOLDER --decide)" in message
    )
    assert run("labels", "f", "--output", "l.csv").exit_code == 2 and not (files / "l.csv").exists()
    assert "it is there already" in run("labels", "f", "--decide").stderr
    for path in (files / "f").glob("sheet-decided*"):
        path.unlink()
    fill(folder, TRUE)
    done("labels", "f", "--output", "l.csv")
    labels = pd.read_csv("l.csv", dtype=str, keep_default_na=False).set_index("record")["entity"]
    assert labels.to_dict() == read_labels("f").labels.to_dict()
    assert "cannot write f/l.csv: it is read as f" in refused("labels", "f", "--output", "f/l.csv")


@pytest.mark.slow
def test_answers_with_errors_of_labels_are_those_of_python(files):
    labelled()
    returned = read_labels("f")

    def answer(labels, design):
        return eb.engine.Taylor()(eb.Sample(eb.measure(PRED, labels), design), eb.metrics.DEFAULT_METRICS)

    annotator = eb.labels.Annotator(
        eb.labels.Beta(2.5, 38.5), eb.labels.Beta(3.5, 17.5), 0.1, eb.labels.Gamma(2.5, 100)
    )
    starts = returned.folder.drawn.table["record"]
    wanted = eb.with_errors(answer, returned.labels, returned.design(), PRED, annotator, starts=starts, rng=1)
    rates = ("--annotator-errors", "removed=2/40,missed=3/20,kept=.1,added=2/100")
    wald = (*rates, "--interval", "wald", "--level", 0.8)
    checked = run("check", "p.csv", "f", "--min-precision", "0.5", "--once", "--level", "0.8", *rates)
    assert "allow for errors of labels: annotators strike" in checked.stderr and "(80 %, " in checked.stdout
    done("report", "p.csv", "f", *wald, "-o", "errors.html")
    page = Path("errors.html").read_text(encoding="utf-8")
    assert "<h2>Errors of labels</h2>" in page and wanted.sentence(0.8, eb.intervals.WALD) in page
    assert "<td>Wald</td>" in page and "<td>Beta</td>" not in page
    first = digits.shown(wanted.random.table(0.8, eb.intervals.WALD)).iloc[0]
    assert f"{first.estimate}\n{first.lower}–{first.upper}" in page


REFUSALS = {
    "p.csv f --annotator-errors much": "write each rate once, as removed=2/40,missed=3/20",
    "p.csv f --annotator-errors missed=x": "'missed=x' is no number, and no errors/cases",
    "p.csv f --annotator-errors miss=.1": "write each rate once, as",
    "p.csv f --annotator-errors source=3": "write each rate once, as removed=2/40",
    "p.csv f --annotator-errors missed=.1,missed=.2": "write each rate once, as removed=2/40",
    "p.csv f --annotator-errors folder": "neither tasks that two annotators answered nor controls",
    "p.csv q.csv -d uniform-records --annotator-errors folder": "needs a folder of erbayes draw as LABELS",
    "p.csv f --annotator-errors missed=.1 --engine jackknife": "--annotator-errors and --engine do not go together, as errors of labels are for the closed form",
}


@pytest.mark.slow
def test_refusals_of_errors_of_labels(files):
    labelled()
    for line, said in REFUSALS.items():
        assert said in refused("estimate", *line.split())


def test_undecided_draws_need_a_design_that_allows_for_them(files):
    drawn("--of", "uniform-records", design="predicted-clusters")
    fill(read_folder("f"), TRUE, change=in_doubt(1))
    shown = run("estimate", "p.csv", "f", "--format", "json")
    said = "KnownInclusion takes no unresolved draws: resolve each draw"
    assert shown.exit_code == 2 and said in shown.stderr


@pytest.mark.parametrize("design", ["multipurpose", pytest.param("given-chances", marks=pytest.mark.slow)])
def test_a_plan_takes_the_design_of_a_folder(files, design):
    pd.DataFrame({"record": PRED.index, "value": 1 + np.arange(200) / 200}).to_csv("v.csv", index=False)
    labelled(*(["--values", "v.csv"] if design == "given-chances" else []), design=design)
    asked = ("plan", "p.csv", "f", "--half-width", "0.1", "--metrics", "b3-recall")
    found = rows(*asked)
    assert found["design"].tolist() == ["multipurpose", "uniform-records", "uniform-clusters"]
    note = f"note: the plan is for uniform draws, and not for those of f, {design}"
    assert (note in done(*asked).stderr) == (design == "given-chances")
    if design == "multipurpose":
        returned = read_labels("f")
        pilot = eb.Sample(eb.measure(PRED, returned.labels), returned.design())
        plan = eb.analysis.planning.forecast(pilot, "b3-recall", {design: returned.design()})
        wanted = plan.table(0.1)
        assert found.iloc[0]["n"] == wanted.iloc[0]["n"]


REFUSED = {
    "--of predicted-links": "--design multipurpose does not take --of",
    "--design predicted-links --values p.csv": "--design predicted-links does not take --values",
    "--design stratified": "--design stratified needs --values",
    "--design given-chances": "--design given-chances needs --values",
    "--design given-chances --values p.csv": "p.csv, column 'cluster': 200 of 200 are not numbers",
    "--design uniform-records --search 3": "--search needs --attributes",
    "--design uniform-records --candidates four.csv": (
        "four.csv has 4 columns, 'a', 'b', 'c', 'd': --candidates are two columns of records and, optionally, "
        "one of scores: write these alone into a file"
    ),
    "--design uniform-records --attributes short.csv": "shown records have no attributes",
    "--design uniform-records --attributes p.csv --record id": "no file that was read has a column 'id'",
    "--design uniform-records --output p.csv": "cannot write p.csv: it is a file, not a folder",
    "--design uniform-records --output .": "cannot write .: it holds other files",
}


@pytest.mark.parametrize("options", REFUSED)
def test_draws_that_cannot_be_made_are_refused(files, options):
    (files / "four.csv").write_text("a,b,c,d\n1,2,3,4\n", encoding="utf-8")
    (files / "short.csv").write_text("record,name\nr1,Ann\n", encoding="utf-8")
    before = sorted(path.name for path in files.iterdir())
    more = options.split()
    assert REFUSED[options] in refused(*DRAW, *more, *([] if "--output" in more else ["--output", "f"]))
    assert sorted(path.name for path in files.iterdir()) == before


@pytest.mark.parametrize("of", ["", pytest.param("predicted-links", marks=pytest.mark.slow)])
def test_drawn_clusters_go_the_same_way(files, of):
    options = ["--n", 15, *(["--of", of] if of else [])]
    labelled(*options, design="predicted-clusters")
    metric = ("--metrics", "pairwise-precision")
    found = rows("estimate", "p.csv", "f", *metric).iloc[0]
    plan = sampling.PredictedClusters(PLANS[of]() if of else None)
    draws = sampling.draw(PRED, plan, n=15, seed=3)
    typed = TRUE[TRUE.isin(TRUE[draws.members["record"]])]
    units = eb.measure_predicted(PRED, typed, draws.table["cluster"])
    metrics = eb.metrics.resolve_metrics("pairwise-precision")
    wanted = eb.engine.Taylor()(eb.Sample(units, draws.design(typed)), metrics).table().iloc[0]
    for name in ("estimate", "se", "lower", "upper"):
        assert found[name] == pytest.approx(wanted[name], rel=1e-9)
    where = rows("estimate", "p.csv", "f", *metric, "--memory-limit", "1GB").iloc[0]
    assert where["estimate"] == pytest.approx(found["estimate"], rel=1e-12)
    assert where["se"] == pytest.approx(found["se"], rel=1e-9)


@pytest.mark.slow
def test_what_commands_make_of_drawn_clusters(files):
    labelled("--n", 15, "--annotators", 2, design="predicted-clusters")
    assert "15 of 15 draws" in done("labels", "f").stdout
    assert "settled" in done("labels", "f").stdout
    assert run("check", "p.csv", "f", "--min-precision", 0.2).exit_code in {0, 1, 3}
    done("report", "p.csv", "f", "--metrics", "pairwise-precision,b3-recall")
    ATTRIBUTES.assign(country="x").to_csv("by.csv", index=False)
    assert (
        rows("estimate", "p.csv", "f", "--by", "country", "--attributes", "by.csv")["estimate"].notna().any()
    )
    assert "not the prediction that was drawn from" in refused("estimate", "q.csv", "f")
    own = "judge only the prediction that they were drawn from"
    assert own in refused("compare", "p.csv", "q.csv", "f")
    assert own in refused("estimate", "q.csv", "f", "--drawn-from", "p.csv")
    assert "f takes no --frame" in refused("estimate", "p.csv", "f", "--frame", "p.csv")


def test_answers_are_not_lost_by_a_new_draw(files):
    labelled()
    assert "or replace them, and they are lost: replace=True (--replace)" in refused(
        *DRAW, "--design", "uniform-records", "--output", "f"
    )
    drawn("--replace")
    assert len(read_labels("f").unresolved)


@pytest.mark.slow
def test_one_of_the_compared_predictions_may_be_the_one_drawn_from(files):
    """Then --drawn-from adds nothing, whichever comes first, in memory and in a scan."""
    labelled(design="multipurpose")
    more = ("--metrics", "pairwise-recall,b3-recall")
    for order, ways in ((("p.csv", "q.csv"), ((), ("--memory-limit", "1GB"))), (("q.csv", "p.csv"), ((),))):
        wanted = rows("compare", *order, "f", "--drawn-from", "p.csv", *more)
        for way in ways:
            found = rows("compare", *order, "f", *more, *way)
            assert found["estimate"].to_numpy() == pytest.approx(wanted["estimate"].to_numpy(), rel=1e-12)
            assert found["se"].to_numpy() == pytest.approx(wanted["se"].to_numpy(), rel=1e-9)


def test_draws_without_candidates_or_with_clusters_for_them_say_so(files):
    pd.DataFrame({"record": PRED.index, "cluster": "k" + PRED.astype(str)}).to_csv("wide.csv", index=False)
    given = (*DRAW, "--design", "uniform-records", "--output", "g")
    found = refused(*given, "--candidates", "wide.csv")
    assert "candidates are not in PREDICTION, such as 'k" in found and "--looser" in found
    assert not (files / "g").exists()
    assert "recall comes out too high" in done(*given).stderr


@pytest.mark.slow
def test_candidates_of_a_task_have_a_limit(files):
    PRED.rename("cluster").rename_axis("record").to_frame().assign(cluster=1).to_csv("all.csv")
    more = ("--design", "uniform-records", "--looser", "all.csv")
    long = done(*DRAW, *more, "--output", "g")
    assert "note: a task shows up to 19" in long.stderr and "--limit shows fewer" in long.stderr
    short = done(*DRAW, *more, "--candidates", "pairs.csv", "--limit", 7, "--output", "h")
    tasks = read_folder("h").tasks
    assert "note: a task shows" not in short.stderr
    assert "note: --limit 7 leaves out " in short.stderr and "those that chance names" in short.stderr
    assert "leaves out" not in long.stderr
    assert set((tasks["role"] == "candidate").groupby(tasks["task"]).sum()) == {7}
    assert set(tasks["why"]) == {"", "scored pair", "looser clustering"}
    assert "--limit needs --search or --candidates or --looser" in refused(
        *DRAW, "--design", "uniform-records", "--limit", 7, "--output", "i"
    )


@pytest.mark.parametrize("omit", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_an_added_record_that_the_prediction_lacks_is_named_or_left_out(files, omit):
    labelled(design="multipurpose")
    sheet = read_sheet(files / "f" / "sheet-A.csv")
    typed = sheet.iloc[[0]].assign(record="typo", role="", same="y")
    write_sheet(pd.concat([sheet, typed]), files / "f" / "sheet-A.csv")
    if omit:
        asked = ("estimate", "q.csv", "f", "--missing", "omit", "-m", "b3-recall")
        returned = read_labels("f")
        design = returned.design(PRED, missing="omit")
        other = pd.read_csv("q.csv", dtype=str, keep_default_na=False).set_index("record")["cluster"]
        wanted = eb.estimate(other, returned.labels, design, "b3-recall", missing="omit")
        assert rows(*asked)["estimate"][0] == pytest.approx(wanted.estimate[0], rel=1e-12)
        return
    message = refused("estimate", "p.csv", "f")
    where = f"sheet-A.csv, row {len(sheet) + 2}, task {sheet['task'].iloc[0]}: the record, which an annotator"
    assert where in message and "'typo'" in message and "other order" not in message


def test_faults_to_decide_have_a_next_step(files):
    labelled()
    assert "--decide" not in done("labels", "f").stderr
    sheet = read_sheet(files / "f" / "sheet-A.csv")
    sheet.loc[sheet.index[1], "same"] = "maybe"
    write_sheet(sheet, files / "f" / "sheet-A.csv")
    shown = done("labels", "f")
    assert "note: before an estimate, decide what the faults leave open (1 in all)" in shown.stderr
    assert shown.stdout.count("not for this record") == 0


def test_a_prediction_without_links_draws_uniform_records(files):
    pd.DataFrame({"record": ["a", "b"], "cluster": ["a", "b"]}).to_csv("s.csv", index=False)
    message = refused("draw", "s.csv", "--n", 2, "--seed", 1, "-d", "predicted-links", "--output", "g")
    assert "no record has a chance to be drawn" in message and "draw uniform records" in message
    shown = done("draw", "s.csv", "--n", 2, "--seed", 1, "--output", "g")
    assert "expected draws: 2 single records (uniform records: 2)" in shown.stderr
    np.testing.assert_allclose(read_folder("g").drawn.table["probability"], 0.5, rtol=1e-15)


def begun(folder, tasks=12):
    """Answer the first tasks of A in the sheet, with a record that nobody showed, and those of others in pages."""
    folder = read_folder(folder)
    for annotator in folder.dealt:
        path = folder.path / f"sheet-{annotator}.csv"
        sheet = answered(read_sheet(path), TRUE)
        sheet = sheet[sheet["task"].astype(int) <= tasks]
        if annotator != "A":
            saved(folder, annotator, sheet)
            continue
        rest = read_sheet(path)
        rest = rest[rest["task"].astype(int) > tasks]
        noted = sheet.iloc[:1].assign(record="", role="", same="y", note="where is its id?")
        write_sheet(pd.concat([sheet, noted, rest]).fillna(""), path, ())
    return read_labels(folder)


@pytest.mark.every(2)
@pytest.mark.parametrize("design, options", [
    ("uniform-records", "--controls 0.2"),
    ("predicted-links", "--annotators 2"),
    ("multipurpose", "--annotators 3 --blind --controls 0.2 --attributes a.csv"),
])  # fmt: skip
def test_more_draws_keep_every_answer(files, design, options):
    drawn(*options.split(), design=design)
    before = begun("f")
    pages = {path.name: path.read_bytes() for path in Path("f").glob("answers-*.json")}
    done("draw", "--more", 20, "f")
    after = read_labels("f")
    old, new = before.folder, after.folder
    assert (len(new.drawn.table), new.drawn.n, new.blind) == (60, 60, old.blind)
    pd.testing.assert_frame_equal(new.drawn.table.head(40), old.drawn.table)
    pd.testing.assert_frame_equal(new.tasks.head(len(old.tasks)), old.tasks)
    pd.testing.assert_frame_equal(after.answers, before.answers)
    pd.testing.assert_frame_equal(after.stars.answers, before.stars.answers)
    told = [one.problems[one.problems["fault"] != Fault.UNANSWERED] for one in (before, after)]
    pd.testing.assert_frame_equal(*(table.reset_index(drop=True) for table in told))
    assert {path.name: path.read_bytes() for path in Path("f").glob("answers-*.json")} == pages
    last = old.tasks["task"].max()
    assert {who: [t for t in numbers if t <= last] for who, numbers in new.dealt.items()} == old.dealt
    assert {t for numbers in new.dealt.values() for t in numbers} == set(new.tasks["task"])


@pytest.mark.every(2)
@pytest.mark.parametrize(
    "options", ["multipurpose --blind --attributes a.csv", "given-chances --values v.csv"]
)
def test_more_draws_make_the_folder_of_the_larger_number(files, options):
    """With one annotator and no controls, which are dealt among the tasks that are there."""
    pd.Series(np.arange(1, 201) / 7, PRED.index, name="value").rename_axis("record").to_csv("v.csv")
    options = ["--design", *options.split()]
    done(*DRAW, *options, "--output", "f")
    done("draw", "--more", 7, "f")
    done("draw", "--more", 13, "f")
    done("draw", "p.csv", "--n", 60, "--seed", 3, *options, "--output", "g")
    names = {path.name for path in Path("g").iterdir()}
    assert {path.name for path in Path("f").iterdir()} == names
    for name in names:
        assert (files / "f" / name).read_bytes() == (files / "g" / name).read_bytes(), name


@pytest.mark.slow
def test_answers_of_a_page_are_read_wherever_their_tasks_are(files):
    drawn()
    short = read_folder("f")
    saved(short, "A", answered(read_sheet(files / "f/sheet-A.csv"), TRUE))
    done(*"draw p.csv -d uniform-records --candidates pairs.csv --n".split(), 60, "--seed", 3, "-o", "h")
    shutil.copy("f/answers-A.json", "h")
    assert len(read_labels("h").answers) == len(short.tasks)
    content = json.loads(Path("f/answers-A.json").read_text(encoding="utf-8"))
    for answer in content["answers"][:2]:
        answer["record"] = "another"
    Path("h/answers-A.json").write_text(json.dumps(content), encoding="utf-8")
    (where,) = read_labels("h").problems["where"].pipe(lambda w: w[w.str.contains("answers-A.json")])
    said = f"2 of {short.tasks['task'].max()} answers are of another draw: task 1 of record 'another'"
    assert said in where
    shutil.copy("q.csv", "p.csv")
    done("draw", "p.csv", "-d", "uniform-records", "--n", 60, "--seed", 3, "-o", "i")
    shutil.copy("f/answers-A.json", "i")
    where = read_labels("i").problems["where"]
    assert where.str.contains("belong to another draw or another prediction").any()


OF_MORE = {
    "stratified --values two.csv": "under stratified a larger number is another sample, or has its tasks in another",
    "predicted-clusters": "under predicted-clusters a larger number",
}


@pytest.mark.parametrize("design", OF_MORE)
def test_designs_without_more_draws_say_so(files, design):
    pd.Series(np.arange(200) % 2, PRED.index, name="half").rename_axis("record").to_csv("two.csv")
    name, *options = design.split()
    drawn(*options, design=name)
    before = {path.name: path.read_bytes() for path in Path("f").iterdir()}
    assert f"f: {OF_MORE[design]}" in refused("draw", "--more", 20, "f")
    assert {path.name: path.read_bytes() for path in Path("f").iterdir()} == before


@pytest.mark.slow
def test_folders_that_get_no_more_draws(files):
    drawn("--attributes", "a.csv")
    begun("f")
    before = {path.name: path.read_bytes() for path in Path("f").iterdir()}
    more = ("draw", "--more", 20)
    assert "p.csv is no folder that erbayes draw has written" in refused(*more, "p.csv")
    assert "--more takes f and no option but --format" in refused(*more, "f", "--seed", 0)
    assert "--more takes f and no option but --format" in refused(*more, "f", "--annotators", 2)
    assert "Missing: PREDICTION." in refused(*more)
    assert "Missing: --n, --seed, --output" in refused("draw", "p.csv")
    table, prediction = Path("a.csv").read_bytes(), Path("p.csv").read_bytes()
    ATTRIBUTES.rename(columns={"name": "other"}).to_csv("a.csv", index=False)
    assert "its tasks have the columns 'task', 'record'" in refused(*more, "f")
    Path("a.csv").unlink()
    assert "'a.csv', from which f was drawn, is not there: put it back" in refused(*more, "f")
    Path("a.csv").write_bytes(table)
    shutil.copy("q.csv", "p.csv")
    assert "this is not the prediction that was drawn from" in refused(*more, "f")
    Path("p.csv").write_bytes(prediction)
    (files / "f" / "notes.txt").write_text("mine", encoding="utf-8")
    assert "it holds other files, such as 'notes.txt'" in refused(*more, "f")
    (files / "f" / "notes.txt").unlink()
    sheet = read_sheet(files / "f/sheet-A.csv")
    write_sheet(sheet.rename(columns={"role": "part"}), files / "f/sheet-A.csv", ())
    assert "was written with 'task', 'record', 'role'" in refused(*more, "f")
    (files / "f/sheet-A.csv").write_bytes(before["sheet-A.csv"])
    assert {path.name: path.read_bytes() for path in Path("f").iterdir()} == before
    drawn(to="g")
    rewritten(files / "g", lambda about: about.pop("call"), fits=True)
    assert "g does not say what was drawn from: draw the larger number anew" in refused(*more, "g")


def test_other_values_are_not_added_to(files):
    values = pd.Series(np.arange(1, 201) / 7, PRED.index, name="value").rename_axis("record")
    values.to_csv("v.csv")
    done(*DRAW, "-d", "given-chances", "--values", "v.csv", "-o", "f")
    values.set_axis(values.index[::-1]).to_csv("v.csv")
    assert "f: the values of its records have changed since" in refused("draw", "--more", 5, "f")


@pytest.mark.slow
def test_a_size_model_needs_the_uniform_draws_of_a_folder(files):
    labelled(design="multipurpose")
    alone = refused("estimate", "f", "--engine", "size-model")
    assert "Labels.uniform() (--design uniform-records)" in alone
    (row,) = listed("estimate", "f", "-d", "uniform-records", "--engine", "size-model", "-m", "f1")
    assert row["method"] == "size-model"


@pytest.mark.slow
def test_a_report_shows_records_only_if_asked_and_repeats_its_bytes(files):
    labelled("--attributes", "a.csv", design="multipurpose")
    page = files / "report.html"
    done("report", "f", "--replace")
    bare = page.read_bytes()
    done("report", "f", "--replace")
    assert page.read_bytes() == bare
    told = refused("report", "f", "--with-records", "name")
    assert "report.html is there; name another page (-o), or replace it (--replace)" in told
    assert page.read_bytes() == bare
    text = bare.decode()
    assert "lambda" not in text and "records were drawn at random, with chances by" in text.lower()
    assert "erbayes draw --design multipurpose</td>" in text and "a record of it" not in text
    done("report", "f", "--with-records", "name", "--replace")
    assert "a record of it" in page.read_text(encoding="utf-8")
    page.unlink()
    told = refused("report", "f", "--with-records", "secret")
    assert "f has no column 'secret' for --with-records; it has 'name'" in told
    TRUE.rename_axis("record").rename("entity").to_csv("l.csv")
    call = ("report", "p.csv", "l.csv", "-d", "uniform-records", "--with-records", "all")
    assert "needs a folder" in refused(*call)
