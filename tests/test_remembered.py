"""The folder of a draw remembers what was drawn from, so that later commands need nothing else."""

import shutil
from pathlib import Path

import pandas as pd
import pytest
from checks import raises
from shell import done, refused, run
from test_folder import fill, rewritten
from test_report import undrawn  # noqa: F401

from erbayes import DataError
from erbayes.cli.predictions import read_drawn_from
from erbayes.labels.folder import read_folder

TRUTH = {f"r{i}": i // 3 for i in range(240)}
COMMANDS = {
    "estimate": (),
    "check": ("--min", "recall=0.5"),
    "plan": ("--half-width", "0.1", "-m", "f1"),
    "report": ("-o", "x.html", "--replace"),
}
OWN = ("--record", "customer", "--cluster", "found")
"""The columns of the prediction."""


def draw_and_answer(prediction, folder, *options, design="uniform-records"):
    """Draw a folder, and fill in its sheet by the truth."""
    done("draw", prediction, "-d", design, "-n", 30, "--seed", 3, "-o", folder, *options)
    fill(read_folder(folder), pd.Series(TRUTH))


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A folder that was drawn from three columns with names of its own, and answered."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("original"))
        i = pd.Series(range(240))
        table = pd.DataFrame({"person": i % 5, "customer": list(TRUTH), "found": i // 2})
        table.to_csv("own.csv", index=False)
        table.assign(found=i // 4).to_csv("new.csv", index=False)
        draw_and_answer("own.csv", "to-label", *OWN)
        Path("about").mkdir()
        about = pd.DataFrame({"age": i, "customer": list(TRUTH), "country": ["FR", "US"] * 120})
        about.to_csv("about/them.csv", index=False)
        draw_and_answer("own.csv", "shown", *OWN, "--attributes", "about/them.csv")
        yield Path.cwd()


@pytest.fixture
def folder(original, tmp_path, monkeypatch):
    """A copy of it, as the current folder."""
    shutil.copytree(original, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.every(2)
@pytest.mark.parametrize("command", [*COMMANDS, pytest.param("estimate --table t", marks=pytest.mark.slow)])
def test_commands_need_the_folder_alone(folder, command):
    command, *table = command.split()
    if table:
        with pytest.importorskip("duckdb").connect("own.duckdb") as database:
            database.execute("CREATE TABLE t AS SELECT * FROM 'own.csv'; CREATE TABLE u AS SELECT * FROM t")
        (folder / "own.csv").unlink()
        draw_and_answer("own.duckdb", "tables", *OWN, *table)
    prediction, drawn = ("own.duckdb", "tables") if table else ("own.csv", "to-label")
    wanted = run(command, prediction, drawn, *OWN, *COMMANDS[command], *table)
    found = run(command, drawn, *COMMANDS[command])
    assert found.exit_code == wanted.exit_code != 2, found.stderr
    assert (found.stdout, found.stderr) == (wanted.stdout, wanted.stderr)
    assert run(command, prediction, drawn, *COMMANDS[command]).stdout == wanted.stdout


CALLS = {
    "estimate": ("estimate", "--by", "country", "-m", "recall", "--format", "csv"),
    "compare": ("compare", "new.csv", "--by", "country", "-m", "recall", "--format", "csv"),
    "report": ("report", "--by", "country", "-m", "recall", "-o", "x.html", "--replace"),
    "impact": ("impact", "--feature", "years=age:max", "--statistic", "mean(years)", "--format", "csv"),
}


@pytest.mark.every(2)
@pytest.mark.parametrize("command", CALLS)
def test_the_folder_knows_the_attributes_that_it_shows(folder, command):
    name, *rest = CALLS[command]
    files = rest[:1] if command == "compare" else []
    rest = rest[len(files) :]
    wanted = done(name, *files, "shown", *rest, "--attributes", "about/them.csv")
    found = done(name, *files, "shown", *rest)
    assert (found.stdout, found.stderr) == (wanted.stdout, wanted.stderr)
    assert "of about/them.csv" in found.stderr


def test_attributes_of_the_folder_stand_back(folder):
    """A column that they do not have is one of the prediction, and other attributes are named."""
    pd.DataFrame({"customer": list(TRUTH), "country": "FR"}).to_csv("other.csv", index=False)
    assert "person of own.csv" in run("estimate", "shown", "--by", "person").stderr
    said = run("estimate", "shown", "--by", "country", "--attributes", "other.csv").stderr
    assert "country of other.csv" in said and "them.csv" not in run("estimate", "shown").stderr
    (folder / "about" / "them.csv").unlink()
    assert "own.csv has no column 'country'" in refused("estimate", "shown", "--by", "country")


def test_a_comparison_is_with_what_was_drawn_from(folder):
    wanted = run("compare", "own.csv", "new.csv", "to-label", *OWN, "-m", "recall")
    found = done("compare", "new.csv", "to-label", "-m", "recall")
    assert found.stdout == wanted.stdout and "new - own" in found.stdout
    assert "two predictions or more, not 1" in refused("compare", "to-label")


def test_the_folder_may_be_named_from_elsewhere_and_move_with_its_prediction(folder, monkeypatch):
    wanted = run("estimate", "to-label")
    (folder / "below").mkdir()
    monkeypatch.chdir(folder / "below")
    assert run("estimate", "../to-label").stdout == wanted.stdout
    (folder / "own.csv").rename("own.csv")
    said = "own.csv, from which ../to-label was drawn, is not there: name PREDICTION before ../to-label"
    assert said in refused("estimate", "../to-label")
    (folder / "to-label").rename("to-label")
    assert run("estimate", "to-label").stdout == wanted.stdout


def test_a_changed_prediction_is_noticed(folder):
    pd.read_csv("own.csv").assign(found=[i // 6 for i in range(240)]).to_csv("own.csv", index=False)
    said = run("estimate", "to-label").stderr
    assert "note: own.csv is not the prediction that was drawn from: " in said


@pytest.mark.slow
@pytest.mark.parametrize("design", [pytest.param("uniform-records", marks=pytest.mark.slow), "multipurpose"])
def test_edges_their_records_and_the_origin_of_other_predictions_are_remembered(folder, design):
    pd.DataFrame({"a": ["r0", "r3"], "b": ["r1", "r4"]}).to_csv("links.csv", index=False)
    pd.DataFrame({"a": ["r0", "r6"], "b": ["r1", "r8"]}).to_csv("more.csv", index=False)
    pd.DataFrame({"id": list(TRUTH)}).to_csv("all.csv", index=False)
    edges = ("--edges", "--records", "all.csv")
    draw_and_answer("links.csv", "linked", *edges, design=design)
    assert run("estimate", "linked").stdout == done("estimate", "links.csv", "linked", *edges).stdout
    own = pd.DataFrame({"record": TRUTH.keys(), "cluster": TRUTH.values()})
    own.to_csv("one.csv", index=False)
    for others in (("compare", "more.csv", "one.csv"), ("estimate", "more.csv"), ("compare", "more.csv")):
        named = ("--drawn-from", "links.csv") if design == "multipurpose" and len(others) != 2 else ()
        found = done(*others, "linked", "-m", "b3-recall")
        wanted = done(*others, "linked", "-m", "b3-recall", "--records", "all.csv", *named)
        assert (found.stdout, found.stderr) == (wanted.stdout, wanted.stderr)


@pytest.mark.parametrize("scores", [("match_weight", "match_probability"), ()])
def test_candidates_of_a_matcher_are_read_as_its_links_are(tmp_path, monkeypatch, scores):
    monkeypatch.chdir(tmp_path)
    keys = [(source, i) for source in "ab" for i in range(20)]
    table = pd.DataFrame(keys, columns=["source_dataset", "unique_id"])
    table.assign(cluster_id=[f"{source}{i // 2}" for source, i in keys]).to_csv("p.csv", index=False)
    rows = [("a", i, "b", j, i - j, 0.5) for i in range(20) for j in (i, (i + 7) % 20)]
    ends = [f"{name}_{side}" for side in "lr" for name in ("source_dataset", "unique_id")]
    pairs = pd.DataFrame(rows, columns=[*ends, "match_weight", "match_probability"])
    pairs[[*ends, *scores]].to_csv("pairs.csv", index=False)
    done("draw", "p.csv", *"-d uniform-records -n 12 --seed 3 --candidates pairs.csv -o f".split())
    tasks = pd.read_csv("f/tasks.csv")
    home = tasks[tasks["role"] == "drawn"].set_index("task")["record"]
    shown = tasks[tasks["role"] == "candidate"]
    found = set(zip(shown["task"].map(home), shown["record"], strict=True))
    weight = {(f"a-__-{i}", f"b-__-{j}"): w for _, i, _, j, w, _ in rows}
    weight |= {pair[::-1]: w for pair, w in weight.items()}
    assert found == {pair for pair in weight if pair[0] in set(home)}
    if scores:  # the likeliest come first
        given = [weight[pair] for pair in zip(shown["task"].map(home), shown["record"], strict=True)]
        assert (-pd.Series(given)).groupby(shown["task"].to_numpy()).is_monotonic_increasing.all()


def test_the_word_for_no_match_says_nothing_of_files_without_it(folder):
    table = pd.read_csv("own.csv", dtype=str)
    table.assign(found=table["found"].mask(table.index < 40, "x")).to_csv("words.csv", index=False)
    draw_and_answer("words.csv", "worded", *OWN, "--alone", "x")
    done("estimate", "new.csv", "worded", *OWN)
    assert (read_drawn_from(read_folder("worded")).sizes == 1).sum() >= 40


def test_what_cannot_be_recalled(folder):
    told = refused("plan", "own.csv", "--half-width", "0.03")
    assert "LABELS are missing: name them after own.csv, or name a folder" in told
    begin = told.strip().rpartition(": erbayes ")[2].replace("to-label", "pilot").split()
    done(*begin, *OWN)
    assert "is no folder that erbayes draw has written" in refused("estimate", ".")
    # what is said is not recalled
    assert "has a column 'nope', which --record" in refused("estimate", "to-label", "--record", "nope")
    rewritten(folder / "to-label", lambda about: about.pop("call"), fits=True)
    told = "to-label remembers no file that it was drawn from"
    raises(DataError, told, read_drawn_from, read_folder("to-label"))
    said = "to-label does not say what was drawn from: name PREDICTION before it"
    assert said in refused("estimate", "to-label")
    done("estimate", "own.csv", "to-label", *OWN)


def test_an_edited_call_is_a_fault(folder):
    """Another column would give another number, which no note excuses."""
    for key, value in {"cluster": "person", "prediction": "new.csv", "attributes": "own.csv"}.items():
        original = (folder / "to-label" / "drawn.json").read_text(encoding="utf-8")
        rewritten(folder / "to-label", lambda about, k=key, v=value: about["call"].update({k: v}))
        assert "drawn.json has changed since the draw" in refused("estimate", "to-label")
        (folder / "to-label" / "drawn.json").write_text(original, encoding="utf-8")


@pytest.mark.parametrize("value", [{"a": 1}, None, "x" * 5000, "a\0b", 5, pytest.param("nope", marks=pytest.mark.slow)], ids=lambda v: repr(v)[:9])  # fmt: skip
def test_no_value_of_a_call_ends_in_another_error(folder, value):
    """Also if somebody has made its fingerprint fit."""
    original = (folder / "to-label" / "drawn.json").read_text(encoding="utf-8")
    keys = "prediction record cluster records attributes top_up threshold edges stored left any_id".split()
    keys = keys if value in (5, "nope") else ["prediction", "any_id"]  # others are refused whatever they say
    for key in keys:
        rewritten(folder / "to-label", lambda about, k=key: about["call"].update({k: value}), fits=True)
        more = [("draw", "--more", "5", "to-label")] * (key in {"prediction", "top_up", "threshold"})
        for command in [("estimate", "to-label", "-m", "recall"), *more]:
            found = run(*command)
            assert found.exit_code in (0, 2), key
            assert found.stderr.count("erbayes: ") == (found.exit_code == 2), key
            if isinstance(value, dict | list | None) or len(str(value)) > 9 or "\0" in str(value):
                assert f"'call' has a '{key}' that draw never writes" in found.stderr
        (folder / "to-label" / "drawn.json").write_text(original, encoding="utf-8")
