"""Remedies are followed: argument and option give the right number, a further question, or the number of what they say."""

import ast
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
import typer
from source import parse_package
from typer.testing import CliRunner

import erbayes as eb
from erbayes import large
from erbayes._internal import errors, remedies
from erbayes.cli import app
from erbayes.cli.predictions import LinkOptions, PredictionFile, ReadingOptions
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
            listed = {"records": list(IDS)} if self.listed else {}
            said = {"threshold": self.threshold} | listed | more | any_id
            prediction = eb.Clustering.from_pairs(prediction, **said)
        elif isinstance(prediction, pd.DataFrame):
            # the door of two tables, which the shell has too
            near = None if self.alone else find_keys(self.labels)
            prediction = eb.Clustering.read(read_prediction(prediction, Named(), near), **any_id)
        return numbers_of(prediction, self.labels, **missing)

    def follow(self, remedy):
        """The number in Python by the argument of a remedy."""
        text = remedy.argument
        scope = {"Clustering": eb.Clustering, "table": self.table, "memberships": self.table}
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


def judge(work, question, right=RIGHT_NUMBERS):
    """What following a remedy gave."""
    try:
        found = work()
    except eb.DataError as error:
        further = str(error).split("; ")[0] != question
        return "further" if further else "the same question"
    return "right" if found == right else "other"


NEAR = table(nr=RNG.permutation(N), customer=RNG.permutation(N), cluster=WORDS)
OF_CUSTOMERS = table(record=NEAR.customer[LABELLED], entity=[f"e{e}" for e in TRUTH[LABELLED]])
SHOPS = table(
    shop=np.where(np.arange(N) % 2, "ssa", "wtwo"), nr=[str(i // 2) for i in range(N)], cluster_id=WORDS
)
OF_SHOPS = LABELS.assign(record=(SHOPS.shop + "-__-" + SHOPS.nr)[LABELLED].to_numpy())
WEIGHTS = np.where(GOOD, RNG.uniform(7, 9, len(ENDS)), RNG.uniform(0.95, 2, len(ENDS))).round(3)
ROWS = {
    "columns._ask_of_records": Row(NEAR, ["other", "right"], labels=OF_CUSTOMERS),
    "columns.ask_of_answers": Row(table(record=IDS, cluster=WORDS, match=["yes", "no"] * (N // 2)),
        ["right"]),
    "columns.explain_columns": Row(SHOPS, ["right"], labels=OF_SHOPS, alone=True, cli=False),
    "reading.remedy": Row(
        table(id_l=LEFT, id_r=RIGHT, match_weight=WEIGHTS, match_probability=np.where(GOOD, 0.99, 0.6)),
        ["right", "further"],
        links=True,
        threshold=0.9,
    ),
    "links.decide": Row(table(id1=LEFT, id2=RIGHT, urteil=np.where(GOOD, "gleich", "anders")),
        ["right", "other"], links=True),
    "links._name": Row(table(id_l=LEFT, id_r=RIGHT, match=np.where(GOOD, "surely", "hardly")), ["right"],
        links=True),
    "links._cut": Row(table(id_l=LEFT, id_r=RIGHT, score=(WEIGHTS * 10).round(1)), ["right"], links=True,
        threshold=0.9, filled=50),
    "links._ask_for_scores": Row(table(id_l=LEFT, id_r=RIGHT, s=WEIGHTS, t=RNG.random(len(ENDS)).round(3)),
        ["right", "other"], links=True, threshold=3, cli=False),
    "links.read": Row(table(ltable_id=LEFT[GOOD], rtable_id=RIGHT[GOOD]), ["right"], links=True, listed=False,
        python=False),
    "clustering._refuse_unclustered": Row(table(record=IDS, cluster=np.where(SMALL, "NULL", WORDS)),
        ["other"]),
    "clustering._code": Row(table(record=IDS, cluster=pd.Series(WORDS).mask(SMALL)), ["right"], cli=False),
    "ids.ids": Row(table(record=IDS, cluster=[f"{1 + c / 1000}E+11" for c in CLUSTER]), ["right"]),
    "ids.refuse_blanks": Row(
        table(record=IDS, cluster=[f"{w}{' ' * (i % 3 == 0)}" for i, w in enumerate(WORDS)]),
        ["right", "other"],
    ),
    "ids.refuse_word_for_none": Row(table(record=IDS, cluster=np.where(SMALL, "x", WORDS)),
        ["right", "other"]),
    "ids.refuse_lost_digits": Row(table(record=IDS, cluster=(CLUSTER + 1) * 2**54), ["right"], cli=False),
    "ids.refuse_no_records": Row(
        table(id_l=[*LEFT[GOOD], "NULL", "NULL"], id_r=[*RIGHT[GOOD], IDS[1], IDS[50]]),
        ["further"],
        links=True,
    ),
    "measuring.explain_missing": Row(table(record=IDS[4:], cluster=WORDS[4:]), ["other"]),
}  # fmt: skip
"""Refused tables by the place that refuses."""


def rounded(found):
    return sorted(round(x, 9) for x in found.estimate.tolist())


def unalarmed(prediction, missing, part):
    """The estimates of a sample, or the alarm that has these words as an error."""
    for sentence in eb.alarms(eb.Sample(eb.measure(prediction, L, missing=missing), D)):
        if part in sentence:
            raise eb.DataError(sentence.what, *sentence.remedies)
    return estimate(prediction, missing=missing)


def label(plan, path=Path("f")):
    """The labels of a folder that was drawn from P and answered as the truth says."""
    if not path.exists():
        drawn, true = eb.labels.draw("p.csv", plan, n=30, seed=1), pd.Series(TRUTH, IDS)
        sheet = eb.labels.write_folder(path, drawn, eb.labels.tasks(drawn)).tasks
        of_task = sheet.groupby("task")["record"].transform("first")
        same = np.where(sheet["record"].map(true) == of_task.map(true), "y", "n")
        sheet.assign(same=same).to_csv(path / "sheet-A.csv", index=False)
    return eb.labels.read_labels(path)


@dataclass
class Door:
    """Another call that is refused, its right numbers, a command that is refused too, and what texts mean."""

    call: Callable[..., Any]
    right: Callable[[], Any]
    gives: list[str]
    shell: str = ""
    filled: dict[str, str] = field(default_factory=dict)
    scope: dict[str, Any] = field(default_factory=dict)

    def fill(self, text):
        for word, meaning in self.filled.items():
            text = text.replace(word, meaning)
        return re.sub(r"(\w+)=\.\.\.", r"\1=\1", text)

    def follow(self, remedy):
        """The numbers in Python by the argument of a remedy: keywords, or an object."""
        scope = vars(large) | {"erbayes": eb, "Clustering": eb.Clustering, "ids": list(IDS)} | self.scope
        given = ast.parse(f"f({self.fill(remedy.argument)})", mode="eval").body
        values = [eval(ast.unparse(x), scope) for x in given.args]
        return rounded(
            self.call(*values, **{k.arg: eval(ast.unparse(k.value), scope) for k in given.keywords})
        )

    def run(self, remedy=None):
        """The numbers of the shell by the option of a remedy."""
        command, name, *words = self.shell.split()
        option = "" if remedy is None else self.fill(remedy.option)
        if option.startswith("FILE"):
            file, *given = option.split(" ")
            name, words = file.replace("FILE", name.partition(":")[0]), [*words, *given]
        elif option:
            flag = option.split(" ")[0]
            if flag in words:
                del words[words.index(flag) : words.index(flag) + 2]
            words += option.split(" ")
        shown = CliRunner().invoke(app, [command, name, *words, "--format", "json"])
        if shown.exit_code == 2:
            raise eb.DataError(shown.stderr.removeprefix("erbayes: "))
        assert shown.exit_code == 0, shown.output
        return sorted(round(row["estimate"], 9) for row in json.loads(shown.stdout)["estimates"])


P = pd.Series(WORDS, IDS, name="cluster").rename_axis("record")
L, D = LABELS.set_index("record")["entity"], eb.UniformClusters()
FEWER, ELSE = P.iloc[:-3], P.rename({IDS[-1]: "s"})
TEXT, LEVELS = table(record=IDS, cluster=WORDS), table(record=IDS, p95=WORDS, p50=[f"t{c}" for c in TRUTH])
WIDE, LATER = table(record=IDS, other=WORDS, more=WORDS, rest=WORDS), P.drop(L.index[:3])
YEARS = table(record=IDS, year=RNG.integers(1990, 2020, N))
STARS = table(record=IDS, cluster=P.groupby(P.to_numpy()).transform(lambda x: x.index[0]).to_numpy())
STARS = STARS[STARS.record != STARS.cluster]
TURNED = table(own=[f"d{i}" for i in range(N)], key=IDS)
HALVES = pd.Series(np.where(np.arange(N) % 2, "odd", "even"), IDS, name="half").rename_axis("record")
DRAWN = [*LABELS["record"][::3], *LABELS["record"][:2]]
ONE = "--design uniform-clusters --metrics pairwise-precision,pairwise-recall"
NAMED = {"RECORD": "record", "CLUSTER": "cluster", "NAME": "t", "'left'": "'id_l'", "'right'": "'id_r'"}


STAR, TURN = STARS.set_index("record")["cluster"], TURNED.set_index("own")["key"]
ENTITIES, ALL, VIEW = L.tolist(), large.Columns(), large.DatabaseTable("p.duckdb", "v")
REPEATS = pd.Series(IDS, WORDS)
SPAN = {"span": ("year", "range")}
BY_RECORDS, BY_DRAWS = eb.design.ByPredictedSize(eb.columns.RECORDS), eb.UniformRecords(L.tolist())
LINKED = table(id_l=LEFT[GOOD], id_r=RIGHT[GOOD])
FROM = {"Labels": SimpleNamespace(design=lambda drawn_from: design_from(drawn_from)), "drawn_from": P}
STORED = ReadingOptions(links=LinkOptions())


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """The files that commands of doors name."""
    folder = tmp_path_factory.mktemp("inputs")
    tables = {"p": TEXT, "t": LEVELS, "stars": STARS, "a": YEARS, "w": WIDE}
    tables |= {"q": FEWER.reset_index(), "o": ELSE.reset_index()}
    for name, one in tables.items():
        one.to_csv(folder / f"{name}.csv", index=False)
        one.to_parquet(folder / f"{name}.parquet")
    LABELS.to_csv(folder / "l.csv", index=False)
    table(entity=L[DRAWN]).to_csv(folder / "drawn.csv", index=False)
    ROWS["clustering._refuse_unclustered"].table.to_parquet(folder / "null.parquet")
    with duckdb.connect(folder / "p.duckdb") as connection:
        connection.execute(f"CREATE TABLE t AS FROM '{folder}/p.csv'")
        connection.execute(f"CREATE VIEW v AS FROM '{folder}/p.csv'")
    return folder


def estimate(prediction, design=D, **said):
    return eb.estimate(prediction, L, design, METRICS, **said)


def scan(*source, **said):
    return estimate(large.scan(source[0], L, **said))


def compare(q, **said):
    return eb.compare({"p": P, "q": q}, L, D, METRICS, **said)


def compare_scans(names, missing="error"):
    files = {name: f"{name}.parquet" for name in names}
    apart = missing == "error"
    scans = (
        {n: large.scan(f, L) for n, f in files.items()} if apart else large.scan(files, L, missing=missing)
    )
    return eb.compare(scans, L, D, METRICS)


def judge_another(design=None, look=False):
    """The estimates of another prediction than the one that was drawn from."""
    labels, other = label(eb.labels.Multipurpose()), LEVELS.set_index("record")["p50"]
    if look and design is None:
        labels.folder.drawn.refuse_another(eb.Clustering.of(other))
    return eb.estimate(other, labels.labels, labels.design() if design is None else design, METRICS)


def design_from(drawn_from):
    return label(eb.labels.Multipurpose()).design(drawn_from=drawn_from)


def write_again(**said):
    drawn = label(eb.labels.Multipurpose()).folder.drawn
    eb.labels.write_folder(Path("f"), drawn, eb.labels.tasks(drawn), **said)
    return estimate(P)


right = lambda: estimate(P)  # noqa: E731
DOORS = {
    "names.find_thresholds": Door(lambda **said: eb.thresholds(LEVELS, L, D, METRICS, **said),
        lambda: rounded(right()) + rounded(estimate(LEVELS.set_index("record")["p50"])), ["right"],
        f"thresholds t.csv l.csv {ONE}",
        {"'column'": "'p95'", "'another'": "'p50'", "COLUMN": "p95", "ANOTHER": "p50"}),
    "comparison.on_shared_records": Door(lambda **said: compare(FEWER, **said),
        lambda: [*2 * rounded(estimate(FEWER)), 0, 0], ["right"], f"compare p.csv q.csv l.csv {ONE}"),
    "comparison.on_shared_records of pairs": Door(
        lambda records=None: compare(
            eb.Clustering.from_pairs(table(left=LEFT[GOOD], right=RIGHT[GOOD]), records=records)
        ),
        lambda: [*2 * rounded(right()), 0, 0],
        ["right"],
    ),
    "sums.refuse_different_records": Door(lambda **said: compare_scans("pq", **said),
        lambda: [*2 * rounded(estimate(FEWER)), 0, 0], ["right"],
        f"compare p.parquet q.parquet l.csv --memory-limit 1GB {ONE}"),
    "sums._count_each": Door(lambda **said: compare_scans("po", **said),
        lambda: [*2 * rounded(estimate(FEWER)), 0, 0], ["right"],
        f"compare p.parquet o.parquet l.csv --memory-limit 1GB {ONE}"),
    "records._find_known": Door(judge_another, lambda: judge_another(design_from(P)), ["right"], scope=FROM),
    "drawn.refuse_another": Door(lambda design=None: judge_another(design, look=True),
        lambda: judge_another(design_from(P)), ["right"],
        "estimate t.csv:record,p50 f --metrics pairwise-precision,pairwise-recall",
        {"--drawn-from": "--drawn-from p.csv"}, FROM),
    "folder.refuse_folder": Door(write_again, right, ["right"]),
    "reading.make_pairs_remedy": Door(
        lambda prediction=None: estimate(LINKED if prediction is None else prediction),
        right,
        ["further", "further"],
        filled={"'record'": "'id_l'", "'cluster'": "'id_r'"},
        scope={"table": LINKED},
    ),
    "second.of": Door(lambda missing="singleton": eb.assisted(P, L, D, METRICS, by=P, missing=missing),
        lambda: eb.assisted(P, L, D, METRICS, by=P), ["right"]),
    "second._number_clusters": Door(lambda **said: eb.assisted(P, L, D, METRICS, by=FEWER, **said),
        lambda: eb.assisted(FEWER, L, D, METRICS, by=FEWER), ["right"], scope={"second": FEWER}),
    "predictions.scanned": Door(
        lambda source=None: scan(source) if source else STORED.scanned([PredictionFile(Path("p.duckdb"))]),
        right,
        ["right"],
        f"estimate p.duckdb l.csv {ONE}",
        NAMED,
        {"path": "p.duckdb", "table": "t"},
    ),
    "changes.expand": Door(
        lambda **said: estimate(P, eb.design.FrozenWeights(D, eb.measure(FEWER, L)), **said),
        lambda: estimate(FEWER),
        ["right"],
        scope={"drawn_from": FEWER},
    ),
    "units._report_unknown": Door(
        lambda missing="singleton": eb.estimate(LATER, L, D, "entities", missing=missing),
        lambda: eb.estimate(LATER, L, D, "entities", missing="omit"),
        ["right"],
    ),
    "records._find_known of missing records": Door(
        lambda missing="singleton": estimate(LATER, BY_RECORDS, missing=missing),
        lambda: estimate(LATER, BY_RECORDS, missing="omit"),
        ["right"],
    ),
    "records.make_round": Door(
        lambda missing="singleton": estimate(LATER, eb.design.Pooled([BY_DRAWS, BY_DRAWS]), missing=missing),
        lambda: estimate(LATER, eb.design.Pooled([BY_DRAWS, BY_DRAWS]), missing="omit"),
        ["right"],
    ),
    "contract.unit_of_draws": Door(
        lambda draws=ENTITIES: estimate(P, eb.UniformRecords(draws=draws)),
        lambda: estimate(P, eb.UniformRecords(draws=L[DRAWN].tolist())),
        ["right"],
        "estimate p.csv l.csv --design uniform-records --drawn l.csv:entity --metrics pairwise-precision,pairwise-recall",
        {"FILE": "drawn.csv"},
        {"labels": L, "drawn": DRAWN},
    ),
    "counted.": Door(lambda columns=ALL: scan("null.parquet", columns=columns), right, ["other"],
        f"estimate null.parquet l.csv --memory-limit 1GB {ONE}"),
    "duckdb.": Door(lambda source=VIEW: scan(source), right, ["right"],
        scope={"path": "p.duckdb", "table": "v"}),
    "prediction._choose_columns": Door(lambda columns=ALL: scan("w.parquet", columns=columns), right, ["right"],
        f"estimate w.parquet l.csv --memory-limit 1GB {ONE}", NAMED | {"CLUSTER": "other"},
        {"record": "record", "cluster": "other"}),
    "statistics.refuse_without": Door(
        lambda **said: eb.impact(P, L, D, ["mean(span)"], attributes=YEARS, **said),
        lambda: eb.impact(P, L, D, ["mean(span)"], attributes=YEARS, features=SPAN),
        ["right"],
        "impact p.csv l.csv --design uniform-clusters --statistic mean(span) --attributes a.csv",
    ),
    "features.of": Door(lambda **said: eb.impact(P, L, D, ["mean(span)"], features=SPAN, **said),
        lambda: eb.impact(P, L, D, ["mean(span)"], attributes=YEARS, features=SPAN), ["right"],
        "impact p.csv l.csv --design uniform-clusters --statistic mean(span) --feature span=year:range",
        {"TABLE": "a.csv"}, {"table": YEARS}),
    "measuring.refuse_edges": Door(lambda prediction=STAR: estimate(prediction), right, ["further"],
        f"estimate stars.csv l.csv {ONE}", scope={"table": STARS}),
    "measuring.explain_missing": Door(lambda prediction=TURN: eb.estimate(prediction, L, D, METRICS[1:]),
        lambda: [0.0], ["right"], filled={"'record'": "'key'", "'cluster'": "'own'"},
        scope={"table": TURNED}),
    "reading.explain_repeats": Door(lambda prediction=REPEATS: estimate(prediction), right,
        ["right", "other"], scope={"table": TEXT}),
    "columns.read_prediction": Door(
        lambda prediction=None: estimate(
            eb.Clustering.read(read_prediction(TEXT, Named(record="nr", cluster="cluster")))
            if prediction is None
            else prediction
        ),
        right,
        ["right"],
        f"estimate p.csv:nr,cluster l.csv {ONE}",
        NAMED,
        {"table": TEXT},
    ),
    "edges.thresholds": Door(
        lambda **said: eb.thresholds(
            ROWS["reading.remedy"].table, L, D, METRICS, records=list(IDS), at=[0.95], **said
        ),
        right,
        ["right", "further"],
    ),
    "grouping.of": Door(lambda groups=WIDE: eb.by_domain(eb.Sample(eb.measure(P, L), D), groups, METRICS),
        lambda: eb.by_domain(eb.Sample(eb.measure(P, L), D), HALVES, METRICS), ["right"],
        filled={"'cluster'": "'half'"}, scope={"table": WIDE.assign(half=HALVES.to_numpy())}),
    "diagnostics._warn_left_out": Door(
        lambda missing="omit": unalarmed(P.drop(L.index[:12]), missing, "are left out"),
        lambda: estimate(P.drop(L.index[:12]), missing="singleton"),
        ["right"],
    ),
}  # fmt: skip
"""Calls of other doors by the place that refuses, of which one may have several."""
ADVICE = "advice on drawing and labelling, which no call follows"
WITHOUT = {
    "definitions._find_metric": ADVICE,
    "commands.__post_init__": "tests/test_cli_folder.py",
    "data.need_design": "tests/test_cli_folder.py",
    "diagnostics._warn_heap": ADVICE,
    "drawn.draw": ADVICE,
    "pairs._warn_few": ADVICE,
    "planning._list_heap_alarms": ADVICE,
    "fit.remarks": ADVICE,
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


@pytest.mark.every(3)
@pytest.mark.parametrize("place", DOORS)
def test_remedies_of_other_doors_are_followed(place, inputs, tmp_path, monkeypatch):
    monkeypatch.chdir(shutil.copytree(inputs, tmp_path, dirs_exist_ok=True))
    door = DOORS[place]
    right = door.right()
    right = sorted(right if isinstance(right, list) else rounded(right))
    with pytest.raises(eb.DataError) as error:
        door.call()
    found = [remedy for remedy in error.value.remedies if remedy.argument]
    question = str(error.value).split("; ")[0]
    assert [judge(lambda r=r: door.follow(r), question, right) for r in found] == door.gives, str(error.value)
    if door.shell:
        with pytest.raises(eb.DataError) as error:
            door.run()
        question = str(error.value).split("; ")[0]
        assert [judge(lambda r=r: door.run(r), question, right) for r in found if r.option] == door.gives, (
            str(error.value)
        )


def find_places():
    """Places in the source that name a remedy which a call can follow, as module.function."""
    root = Path(eb.__file__).parent
    for path, tree in parse_package(root).items():
        if "emed" not in path.read_text(encoding="utf-8"):
            continue
        around = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        for node in ast.walk(tree):
            of = getattr(node, "func", None) or getattr(node, "value", None)
            made = isinstance(node, ast.Call) and getattr(of, "id", "") == "Remedy" and len(node.args) > 1
            named = (
                isinstance(node, ast.Attribute)
                and getattr(of, "id", "") == "remedies"
                and getattr(getattr(remedies, node.attr), "argument", "")
            )
            if (made or named) and path.stem not in ("errors", "remedies"):
                up = node
                while not isinstance(up, ast.FunctionDef | ast.Module):
                    up = around[up]
                yield f"{path.stem}.{getattr(up, 'name', '')}"


def test_every_place_that_names_a_remedy_has_a_row_or_a_reason():
    executed = ROWS.keys() | {place.split(" ")[0] for place in DOORS}
    places, listed = {*find_places()}, executed | WITHOUT.keys()
    new, gone = sorted(places - listed), sorted(listed - places)
    assert not new, f"{new}: add a call that is refused there to ROWS or DOORS, or to WITHOUT why not"
    assert not gone, f"{gone}: no remedy that a call can follow is named there"
    assert not executed & WITHOUT.keys()


def test_remedies_name_options_that_commands_have():
    """And what is in brackets is for a shell alone."""
    taken = {o for c in typer.main.get_command(app).commands.values() for p in c.params for o in p.opts}
    shared = [value for value in vars(remedies).values() if isinstance(value, errors.Remedy)]
    assert len(shared) > 10
    for remedy in shared:
        assert set(re.findall(r"--[a-z-]+", remedy.value)) <= taken, remedy
        assert not re.search("--", re.sub(r"\([^()]*\)", "", remedy.value)), remedy
