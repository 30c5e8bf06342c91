"""Pairs in the shell: what is drawn, read and printed is what `erbayes.pairs` returns."""

import json
import shutil
from io import StringIO

import pandas as pd
import pytest
from shell import done, refused
from test_pairs import random_edges

import erbayes as eb

EDGES, RECORDS = random_edges(3, N=400, E=600, values=500)
IDS = pd.Series(map(str, RECORDS))
TEXT = EDGES.astype({"l": str, "r": str})
DRAWN = eb.pairs.draw_pairs(TEXT, 40, records=IDS, seed=7, threshold=300.0)


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    EDGES.to_csv("edges.csv", index=False)
    table = IDS.to_frame("record").assign(name=[f"name {i % 50}" for i in RECORDS])
    table[["record"]].to_csv("ids.csv", index=False)
    table.to_csv("people.csv", index=False)
    DRAWN.assign(same=["yn?"[i % 3] for i in DRAWN.index]).to_csv("answers.csv", index=False)


def printed_table(result):
    table = pd.read_csv(StringIO(result.stdout))
    return table.assign(reason=table["reason"].fillna("")) if "reason" in table else table


EDGED = ("--edges", "--records", "ids.csv", "--threshold", "300", "--score", "score")
DRAW = ("draw", "edges.csv", "--design", "pairs", "-n", "40", "--seed", "7", "-o", "to-label")
ALL = ("--records", "ids.csv")


def answers():
    return pd.read_csv("answers.csv", dtype={"left": str, "right": str})


def data_of(page):
    text = page.split('<script type="application/json" id="data">')[1].split("</script>")[0]
    return json.loads(text)


def test_a_folder_has_the_pairs_and_a_page_of_two_records_each():
    assert "wrote to-label: 40 pairs of" in done(*DRAW, *EDGED, "--attributes", "people.csv").stdout
    table = pd.read_csv("to-label/pairs.csv", dtype={"left": str, "right": str}, keep_default_na=False)
    pd.testing.assert_frame_equal(table, DRAWN, check_dtype=False)
    with open("to-label/label-A.html", encoding="utf-8") as file:
        data = data_of(file.read())
    assert data["pairs"] and data["blind"] and data["attributes"] == ["name"]
    shown = [(data["rows"][a][0], [data["rows"][b][0] for b in rest]) for _, a, rest, others in data["tasks"]]
    assert shown == [(left, [right]) for left, right in zip(DRAWN.left, DRAWN.right, strict=True)]
    done(*DRAW[:-1], "a/new/folder", *EDGED)
    assert "--replace" in refused(*DRAW, *EDGED)
    done(*DRAW, *EDGED, "--replace")
    shutil.copy("ids.csv", "to-label")
    assert "it holds other files" in refused(*DRAW, *EDGED, "--replace")


def test_answers_of_the_page_and_of_the_table():
    done(*DRAW, *EDGED)
    with open("to-label/label-A.html", encoding="utf-8") as file:
        fingerprint = data_of(file.read())["fingerprint"]
    answers, same = [], []
    for i, (left, right) in enumerate(zip(DRAWN.left, DRAWN.right, strict=True)):
        same.append("y" if i % 2 else "?" if i % 4 else "n")
        parts = {"same": [right] * (i % 2), "different": [right] * (i % 4 == 0)}
        told = {"cannot_tell": i % 4 == 2, "done": i % 4 != 2, "added": [], "note": ""}
        if i < 38:
            answers.append({"task": i + 1, "record": left} | parts | told)
    assert "to-label has no answer" in refused("pairs", "edges.csv", "to-label", *ALL)
    table = pd.read_csv("to-label/pairs.csv").assign(
        same=[""] * 37 + [*same[37:39], ""]
    )  # not all by the page
    table.to_csv("to-label/pairs.csv", index=False)
    saved = {"version": 1, "fingerprint": fingerprint, "annotator": "A", "answers": answers}
    with open("to-label/answers-A.json", "w", encoding="utf-8") as file:
        json.dump(saved, file)
    result = done("pairs", "edges.csv", "to-label", *ALL, "--threshold", "300", "-f", "csv")
    assert "note: 1 of 40 pairs have no answer yet, and are left out" in result.stderr
    assert "answers are undecided" in result.stderr
    found = eb.pairs.estimate(TEXT, DRAWN.assign(same=same)[:39], records=IDS)
    pd.testing.assert_frame_equal(printed_table(result), found.table([300.0]), check_dtype=False)


def test_doubts_are_said_once_in_the_words_of_the_shell():
    same = DRAWN["band"].ge(300) | (DRAWN["band"].eq(0) & DRAWN["band"].eq(0).cumsum().eq(1))
    lowest = DRAWN["band"].eq(0)
    same = same.map({True: "y", False: "n"}).mask(lowest & ~same & (DRAWN.index > 12), "?")
    DRAWN.assign(same=same).to_csv("answers.csv", index=False)
    said = done("pairs", "edges.csv", "answers.csv", *ALL).stderr
    assert said.count("one wrong answer there decides recall") == 1
    decided = same[lowest].ne("?").sum()
    assert 1 < decided < 5 and f"stand for {DRAWN['pairs'][2] / decided:,.0f} pairs each" in said
    assert "caution: Most pairs" in said and "(or of a file without the lowest scores)." in said


def test_other_commands_say_who_reads_pairs():
    done(*DRAW, *EDGED)
    said = refused("estimate", "edges.csv", "to-label", *EDGED)
    assert "to-label has pairs, which erbayes pairs" in said


def test_edges_by_bands_of_their_score_are_named_so():
    best = TEXT[TEXT.l != TEXT.r].groupby(lambda i: tuple(sorted(TEXT.loc[i, ["l", "r"]])))["score"].max()
    rows = [(a, b, 300.0 if s >= 300 else 0.0, "yn"[i % 2]) for i, ((a, b), s) in enumerate(best.items())]
    pd.DataFrame(rows, columns=["left", "right", "band", "same"]).to_csv("labelled.csv", index=False)
    asked = ("pairs", "edges.csv", "labelled.csv", *ALL)
    shown = done(*asked, "--of-edges").stdout
    assert "right scored edges" in shown and "links" not in shown
    assert "bands of something else than the height" in refused(*asked)


PAIRS = "pairs edges.csv answers.csv --records ids.csv"
REFUSED = {
    f"{PAIRS} --threshold low": "--threshold low: write",
    f"{PAIRS} --of-edges": "are no candidates, since no band reaches them",
    f"{' '.join(DRAW)} --edges": "--records FILE)",
    f"{' '.join(DRAW)}": "name these by --edges",
    f"{' '.join(DRAW)} --of predicted-links": "--design pairs does not take --of",
    f"{' '.join(DRAW)} --edges --records ids.csv --blind": "--design pairs does not take --blind",
}


@pytest.mark.parametrize("call", REFUSED)
def test_refusals(call):
    assert REFUSED[call] in refused(*call.split())
