"""Remedies are followed: argument and option give the right number, a further question, or the number of what they say."""

import ast
import json
import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer
from typer.testing import CliRunner

import erbayes as eb
from erbayes._internal import errors, remedies
from erbayes.cli import app
from erbayes.units.columns import find_keys, read_prediction
from erbayes.units.reading import Named

RNG = np.random.default_rng(8)
N = 90
TRUTH = np.repeat(np.arange(30), 3)
CLUSTER = np.where(np.arange(N) % 10, TRUTH, 100 + np.arange(N))
IDS = np.array([f"r{i}" for i in range(N)])
LABELLED = TRUTH % 2 == 0
PAIRS = [(i, j) for i in range(N) for j in range(i + 1, N) if CLUSTER[i] == CLUSTER[j]]
WRONG = [(i, (i + 37) % N) for i in range(0, N, 6)]
ENDS = np.array([*PAIRS, *WRONG])
GOOD = np.arange(len(ENDS)) < len(PAIRS)
LEFT, RIGHT = IDS[ENDS[:, 0]], IDS[ENDS[:, 1]]
LABELS = pd.DataFrame({"record": IDS[LABELLED], "entity": [f"e{e}" for e in TRUTH[LABELLED]]})
METRICS = ["pairwise-precision", "pairwise-recall"]
WORDS = [f"c{c}" for c in CLUSTER]
SMALL = pd.Series(CLUSTER).map(pd.Series(CLUSTER).value_counts()).to_numpy() == 1


def numbers_of(prediction, labels, **options):
    found = eb.estimate(
        prediction, labels.set_index("record")["entity"], eb.UniformClusters(), METRICS, **options
    )
    return [round(x, 9) for x in found.estimate.tolist()]


RIGHT_NUMBERS = numbers_of(pd.Series(CLUSTER, IDS), LABELS)


def table(**columns):
    return pd.DataFrame(columns)


@dataclass
class Row:
    """A refused table: what is said of it, its labels, and what each remedy gives, right, other or further."""

    table: pd.DataFrame
    gives: list[str]
    links: bool = False
    listed: bool = True
    threshold: float | None = None
    labels: pd.DataFrame = field(default_factory=lambda: LABELS)
    filled: float = 3.0
    cluster: str = "cluster"
    cli: bool = True
    python: bool = True
    alone: bool = False

    def call(self, prediction=None, **more):
        """The number in Python."""
        prediction = self.table if prediction is None else prediction
        missing = {"missing": more.pop("missing")} if "missing" in more else {}
        any_id = {"any_id": True} if more.pop("any_id", False) else {}
        if self.links and isinstance(prediction, pd.DataFrame):
            said = (
                {"threshold": self.threshold}
                | ({"records": list(IDS)} if self.listed else {})
                | more
                | any_id
            )
            prediction = eb.Clustering.from_pairs(prediction, **said)
        elif isinstance(prediction, pd.DataFrame):
            # the door of two tables, which the shell has too
            near = None if self.alone else find_keys(self.labels)
            prediction = eb.Clustering.read(read_prediction(prediction, Named(), near), **any_id)
        return numbers_of(prediction, self.labels, **missing)

    def follow(self, remedy):
        """The number in Python by the argument of a remedy."""
        text, scope = (
            remedy.argument,
            {"Clustering": eb.Clustering, "table": self.table, "memberships": self.table},
        )
        try:
            call = ast.parse(f"f({text})", mode="eval").body
            keywords = {k.arg: ast.unparse(k.value) for k in call.keywords}
            named = bool(keywords) and not call.args
        except SyntaxError:
            named = False
        if named:
            filled = {"x": self.filled, "ids": list(IDS)}
            return self.call(
                **{k: filled[v] if v in filled else ast.literal_eval(v) for k, v in keywords.items()}
            )
        if self.cluster in self.table:
            scope |= {"clusters": self.table[self.cluster], "ids": self.table[self.cluster]}
            scope |= {"records": self.table.iloc[:, 0]}
        made = eval(text, scope)
        if isinstance(made, pd.Series):
            made = self.table.assign(**{self.cluster: made})
        return self.call(made)

    def shell(self, remedy=None):
        """The number, or the error, of the shell, which asks without a remedy."""
        self.table.to_csv("p.csv", index=False)
        self.labels.to_csv("l.csv", index=False)
        pd.DataFrame({"id": IDS}).to_csv("ids.csv", index=False)
        option = "" if remedy is None else remedy.option.replace("@X", f"@{self.filled:g}")
        words = re.split(r" (?=--)", option)
        file, at = "p.csv", "" if self.threshold is None else f"@{self.threshold:g}"
        if words[0].startswith("FILE"):
            file += words.pop(0).removeprefix("FILE")
        file += (
            at if self.links and "@" not in file and "score" in file.lower() + at and "=" not in file else ""
        )
        if remedy is None or not option.startswith("FILE"):
            file = f"p.csv{at}"
        given = [x for word in words if word for x in word.split(" ", 1)]
        file = file.partition("@")[0] if "--threshold" in given else file  # which takes its place
        given = ["ids.csv" if x == "FILE" else f"{self.filled:g}" if x == "X" else x for x in given]
        given += ["--records", "ids.csv"] if self.listed and self.links and "--records" not in given else []
        given += ["--edges"] if self.links and "--edges" not in given and remedy is None else []
        args = ["estimate", file, "l.csv", "--design", "uniform-clusters", "--metrics", ",".join(METRICS)]
        shown = CliRunner().invoke(app, [*args, "--format", "json", *given])
        if shown.exit_code == 2:
            raise eb.DataError(shown.stderr.removeprefix("erbayes: "))
        assert shown.exit_code == 0, shown.output
        return [round(row["estimate"], 9) for row in json.loads(shown.stdout)["estimates"]]


def judge(work, question):
    """What following a remedy gave."""
    try:
        found = work()
    except eb.DataError as error:
        further = str(error).split("; ")[0] != question
        return "further" if further else "the same question"
    return "right" if found == RIGHT_NUMBERS else "other"


NEAR = table(nr=RNG.permutation(N), customer=RNG.permutation(N), cluster=WORDS)
OF_CUSTOMERS = table(record=NEAR.customer[LABELLED], entity=[f"e{e}" for e in TRUTH[LABELLED]])
SHOPS = table(
    shop=np.where(np.arange(N) % 2, "ssa", "wtwo"), nr=[str(i // 2) for i in range(N)], cluster_id=WORDS
)
OF_SHOPS = LABELS.assign(record=(SHOPS.shop + "-__-" + SHOPS.nr)[LABELLED].to_numpy())
WEIGHTS = np.where(GOOD, RNG.uniform(7, 9, len(ENDS)), RNG.uniform(0.95, 2, len(ENDS))).round(3)
ROWS = {
    "columns._ask_of_records": Row(NEAR, ["other", "right"], labels=OF_CUSTOMERS),
    "columns.ask_of_answers": Row(
        table(record=IDS, cluster=WORDS, match=["yes", "no"] * (N // 2)), ["right"]
    ),
    "columns.explain_columns": Row(SHOPS, ["right"], labels=OF_SHOPS, alone=True, cli=False),
    "reading.remedy": Row(
        table(id_l=LEFT, id_r=RIGHT, match_weight=WEIGHTS, match_probability=np.where(GOOD, 0.99, 0.6)),
        ["right", "further"],
        links=True,
        threshold=0.9,
    ),
    "links.decide": Row(
        table(id1=LEFT, id2=RIGHT, urteil=np.where(GOOD, "gleich", "anders")), ["right", "other"], links=True
    ),
    "links._name": Row(
        table(id_l=LEFT, id_r=RIGHT, match=np.where(GOOD, "surely", "hardly")), ["right"], links=True
    ),
    "links._cut": Row(
        table(id_l=LEFT, id_r=RIGHT, score=(WEIGHTS * 10).round(1)),
        ["right"],
        links=True,
        threshold=0.9,
        filled=50,
    ),
    "links._ask_for_scores": Row(
        table(id_l=LEFT, id_r=RIGHT, s=WEIGHTS, t=RNG.random(len(ENDS)).round(3)),
        ["right", "other"],
        links=True,
        threshold=3,
        cli=False,
    ),
    "links.read": Row(
        table(ltable_id=LEFT[GOOD], rtable_id=RIGHT[GOOD]), ["right"], links=True, listed=False, python=False
    ),
    "clustering._refuse_unclustered": Row(
        table(record=IDS, cluster=np.where(SMALL, "NULL", WORDS)), ["other"]
    ),
    "clustering.": Row(table(record=IDS, cluster=pd.Series(WORDS).mask(SMALL)), ["right"], cli=False),
    "ids._refuse_rounded": Row(
        table(record=IDS, cluster=[f"{1 + c / 1000}E+11" for c in CLUSTER]), ["right"]
    ),
    "ids.refuse_blanks": Row(
        table(record=IDS, cluster=[f"{w}{' ' * (i % 3 == 0)}" for i, w in enumerate(WORDS)]),
        ["right", "other"],
    ),
    "ids.refuse_word_for_none": Row(
        table(record=IDS, cluster=np.where(SMALL, "x", WORDS)), ["right", "other"]
    ),
    "ids.refuse_lost_digits": Row(table(record=IDS, cluster=(CLUSTER + 1) * 2**54), ["right"], cli=False),
    "ids.refuse_no_records": Row(
        table(id_l=[*LEFT[GOOD], "NULL", "NULL"], id_r=[*RIGHT[GOOD], IDS[1], IDS[50]]),
        ["further"],
        links=True,
    ),
    "checks.describe_missing": Row(table(record=IDS[4:], cluster=WORDS[4:]), ["other"]),
}
"""Refused tables by the place that refuses."""
ADVICE = "advice on drawing and labelling, which no call follows"
ELSEWHERE = "a source, folder or file of its own: its tests follow it"
NAMES = "names that only the user knows"
WITHOUT = {
    "changes.expand": ELSEWHERE,
    "checks._refuse_labels": NAMES,
    "checks.explain_missing": NAMES,
    "checks.refuse_edges": "tests/test_mistaken.py",
    "columns.read_prediction": NAMES,
    "definitions._find_metric": NAMES,
    "commands.report_command": "tests/test_cli_folder.py",
    "comparison.on_shared_records": "tests/test_compare.py",
    "counted.": "tests/test_doors.py",
    "data.need_design": ADVICE,
    "diagnostics._warn_heap": ADVICE,
    "diagnostics._warn_left_out": ADVICE,
    "diagnostics._warn_records": ADVICE,
    "diagnostics.reach_large": ADVICE,
    "diagnostics.show_heap": ADVICE,
    "diagnostics.warn_heavy_tail": ADVICE,
    "diagnostics.warn_undecided": ADVICE,
    "drawn.draw": ADVICE,
    "drawn.refuse_another": ELSEWHERE,
    "duckdb._run": ELSEWHERE,
    "edges.refuse_unsure": NAMES,
    "features.of": NAMES,
    "folder.refuse_folder": ELSEWHERE,
    "grouping.of": NAMES,
    "judged._warn_few": ADVICE,
    "known_columns.find_thresholds": NAMES,
    "planning._list_heap_alarms": ADVICE,
    "predictions.scanned": ELSEWHERE,
    "reading._choose_columns": NAMES,
    "reading.explain_repeats": NAMES,
    "reading.make_pairs_remedy": NAMES,
    "records._find_known": ELSEWHERE,
    "returned.labels": ELSEWHERE,
    "returned.units": ELSEWHERE,
    "scanning._count": "tests/test_compare.py",
    "scanning.refuse_different_records": "tests/test_compare.py",
    "second._number_clusters": NAMES,
    "second.refuse_added": "tests/test_assisted.py",
    "statistics.refuse_without": NAMES,
    "summary.find_alarms": ADVICE,
}
"""Places whose remedies are not followed here, with the reason."""


@pytest.mark.parametrize("place", ROWS)
def test_remedies_are_followed(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    row = ROWS[place]
    with pytest.raises(eb.DataError) as error:
        row.call() if row.python else read_prediction(row.table, Named(links=True))
    found, question = error.value.remedies, str(error.value).split("; ")[0]
    executable = [remedy for remedy in found if remedy.argument]
    assert (
        not row.python
        or [judge(lambda r=remedy: row.follow(r), question) for remedy in executable] == row.gives
    ), str(error.value)
    if row.cli:
        with pytest.raises(eb.DataError) as error:
            row.shell()
        question = str(error.value).split("; ")[0]
        assert [judge(lambda r=remedy: row.shell(r), question) for remedy in executable] == row.gives, str(
            error.value
        )


def find_places():
    """Places in the source that name a remedy, as module.function."""
    root = Path(eb.__file__).parent
    for path in sorted(root.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        around = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        for node in ast.walk(tree):
            of = getattr(node, "func", None) or getattr(node, "value", None)
            made = isinstance(node, ast.Call) and getattr(of, "id", "") == "Remedy"
            named = (
                isinstance(node, ast.Attribute)
                and getattr(of, "id", "") == "remedies"
                and node.attr.isupper()
            )
            if (made or named) and path.stem not in ("errors", "remedies"):
                up = node
                while not isinstance(up, ast.FunctionDef | ast.Module):
                    up = around[up]
                yield f"{path.stem}.{getattr(up, 'name', '')}"


def test_every_place_that_names_a_remedy_has_a_row_or_a_reason():
    assert {*find_places()} == ROWS.keys() | WITHOUT.keys()
    assert not ROWS.keys() & WITHOUT.keys()


def test_remedies_name_options_that_commands_have():
    """And what is in brackets is for a shell alone."""
    taken = {o for c in typer.main.get_command(app).commands.values() for p in c.params for o in p.opts}
    shared = [value for value in vars(remedies).values() if isinstance(value, errors.Remedy)]
    assert len(shared) > 10
    for remedy in shared:
        assert set(re.findall(r"--[a-z-]+", remedy.value)) <= taken, remedy
        assert not re.search("--", re.sub(r"\([^()]*\)", "", remedy.value)), remedy
