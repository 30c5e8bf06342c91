"""The folder of a study: a file a cell, whose settings stand in words; what it has is not computed again."""

import json
import textwrap
from functools import partial

import numpy as np
import pandas as pd
import pytest
from pyarrow import parquet

import erbayes as eb
from erbayes import metrics as m
from erbayes._internal.words import describe
from erbayes.engine import Taylor
from erbayes.labels import Records
from erbayes.study import populations as sim
from erbayes.study import study

PEOPLE = sim.simulate(sim.Zeta(2.2, 40), sim.Misattribution(0.1), 500, np.random.default_rng(1))


def run(estimators, folder, repetitions=3, metrics=(m.pairwise_recall,), plan=None, **more):
    if not isinstance(estimators, dict):
        estimators = {"own": estimators}
    plans = {"plan": plan or Records()}
    settings = {"repetitions": repetitions, "seed": 1, "folder": folder} | more
    return study({"zeta": PEOPLE}, plans, [20], estimators, metrics, **settings).runs


def constant(x):
    return lambda sample, metrics, rng: eb.metrics.Draws(
        tuple(m.name for m in metrics), np.full((1, 2, len(metrics)), x), tuple(m.support for m in metrics)
    )


class Calls:
    """An engine that keeps the metrics of each call."""

    def __init__(self):
        self.asked = []

    def __repr__(self):
        return "Calls()"

    def __call__(self, sample, metrics, rng):
        self.asked.append([metric.name for metric in metrics])
        return Taylor()(sample, metrics, rng)


def never(sample, metrics, rng):
    raise AssertionError(
        "what a folder has is not computed again, and one that cannot be written is refused first"
    )


VERSIONS = {
    "constant in the code": ("def f(s): return s + 1", "def f(s): return s + 2"),
    "helper": ("def g(): return 1\ndef f(s): return g()", "def g(): return 2\ndef f(s): return g()"),
    "global value": ("a = .1\nf = lambda s: a", "a = .2\nf = lambda s: a"),
    "array": (
        "import numpy as np\na = np.zeros(2)\nf = lambda s: a",
        "import numpy as np\na = np.ones(2)\nf = lambda s: a",
    ),
    "default": ("def f(s, a=1): return a", "def f(s, a=2): return a"),
    "closure": (
        "def make(u): return lambda s: u\nf = make(.1)",
        "def make(u): return lambda s: u\nf = make(.2)",
    ),
    "field": (
        "from dataclasses import dataclass\n@dataclass\nclass A:\n    k: int\nf = A(1)",
        "from dataclasses import dataclass\n@dataclass\nclass A:\n    k: int\nf = A(2)",
    ),
    "function in a field": (
        "from dataclasses import dataclass\n@dataclass\nclass A:\n    k: object\nf = A(lambda s: 1)",
        "from dataclasses import dataclass\n@dataclass\nclass A:\n    k: object\nf = A(lambda s: 2)",
    ),
    "method": (
        "class A:\n    def __call__(self): return 1\nf = A()",
        "class A:\n    def __call__(self): return 2\nf = A()",
    ),
    "class attribute": ("class A:\n    k = 1\nf = A()", "class A:\n    k = 2\nf = A()"),
    "base class": (
        "class B:\n    def __call__(self): return 1\nclass A(B): pass\nf = A()",
        "class B:\n    def __call__(self): return 2\nclass A(B): pass\nf = A()",
    ),
    "partial": (
        "from functools import partial\ndef g(s, a): return a\nf = partial(g, a=1)",
        "from functools import partial\ndef g(s, a): return a\nf = partial(g, a=2)",
    ),
    "bound method": (
        "class A:\n    def __init__(self, k): self.k = k\n    def g(self): return self.k\nf = A(1).g",
        "class A:\n    def __init__(self, k): self.k = k\n    def g(self): return self.k\nf = A(2).g",
    ),
}


@pytest.mark.parametrize("change", VERSIONS)
def test_changed_code_of_the_user_is_noticed(change, tmp_path, monkeypatch):
    """Two modules of one name, as of a script that was edited between two runs."""
    monkeypatch.syspath_prepend(tmp_path)
    words = []
    for i, text in enumerate(VERSIONS[change]):
        (tmp_path / f"mine_{i}.py").write_text(textwrap.dedent(text))
        words.append(describe(__import__(f"mine_{i}").f).replace(f"mine_{i}", "mine"))
    assert words[0] != words[1]


def test_words_are_readable_and_the_same_again():
    def double(sample, metrics, rng):
        return sample * 2

    assert "return sample * 2" in describe(double) and describe(double) == describe(double)
    assert describe(Taylor(order=1)) == "Taylor(order=1)"
    assert " at 0x" not in describe(partial(never, constant))


def test_a_file_of_a_cell_is_readable_and_has_its_settings(tmp_path):
    run(Taylor(), tmp_path / "runs", 2)
    (file,) = (tmp_path / "runs").iterdir()
    assert file.name == "zeta, plan, 20.parquet"
    words = json.loads(parquet.read_schema(file).metadata[b"study"])
    assert words["cell"]["plan"] == "Records()" and words["cell"]["seed"] == "1"
    assert words["cell"]["population"].startswith("Population(500 records")
    assert words["estimators"]["own"].startswith("Estimator(engine=Taylor(")
    assert pd.read_parquet(file)["estimate"].notna().all()


def test_one_more_metric_computes_that_metric_alone(tmp_path):
    calls = Calls()
    run(calls, tmp_path / "runs")
    assert calls.asked == [["pairwise-recall"]] * 3
    both = run(calls, tmp_path / "runs", metrics=(m.pairwise_recall, m.b3_recall))
    assert calls.asked[3:] == [["b3-recall"]] * 3
    fresh = run(Calls(), tmp_path / "others", metrics=(m.pairwise_recall, m.b3_recall))
    pd.testing.assert_frame_equal(both.drop(columns="seconds"), fresh.drop(columns="seconds"))


def test_an_estimator_less_or_more_leaves_the_others(tmp_path):
    folder, calls = tmp_path / "runs", Calls()
    first = run({"calls": calls}, folder)
    run({"taylor": Taylor()}, folder)
    assert run({"calls": calls}, folder, 2).equals(first[first.repetition < 2]) and len(calls.asked) == 3


def test_runs_of_changed_settings_are_told_and_computed_again(tmp_path):
    folder = tmp_path / "runs"
    assert (run(constant(0.25), folder).estimate == 0.25).all()
    with pytest.warns(UserWarning, match="estimator own has other settings now, and is computed again"):
        assert (run(constant(0.5), folder).estimate == 0.5).all()
    formula = m.pairwise_recall.formula
    own = [
        m.Metric(
            "own",
            m.pairwise_recall.columns,
            lambda b, a, p=p: formula(b, a) ** p,
            m.pairwise_recall.size,
            m.UNIT,
            "own",
        )
        for p in (1, 2)
    ]
    once = run(Taylor(order=1), tmp_path / "metric", metrics=[own[0]])
    with pytest.warns(UserWarning, match="metric own has other settings now"):
        twice = run(Taylor(order=1), tmp_path / "metric", metrics=[own[1]])
    assert twice.estimate.to_numpy() == pytest.approx(once.estimate.to_numpy() ** 2)


class TestErrors:
    def test_another_study(self, tmp_path):
        run(Taylor(), tmp_path / "runs")
        for other, what in (
            ({"seed": 2}, "seed 1, not 2"),
            ({"level": 0.9}, "levels"),
            ({"plan": eb.labels.RootSize()}, "plan"),
        ):
            with pytest.raises(eb.DataError, match=f"is of another study, with {what}.*name a new folder"):
                run(never, tmp_path / "runs", **other)

    def test_no_folder_above(self, tmp_path):
        with pytest.raises(
            eb.DataError, match=r"cannot write .*none/runs: No such file .*: name a new folder"
        ):
            run(never, tmp_path / "none" / "runs")

    def test_a_file(self, tmp_path):
        (tmp_path / "runs").write_text("")
        with pytest.raises(eb.DataError, match=r"cannot write .*runs: File exists: name a new folder"):
            run(never, tmp_path / "runs")

    @pytest.mark.parametrize("kept", [0, 20, 150])
    def test_a_truncated_file(self, tmp_path, kept):
        folder = tmp_path / "runs"
        run(constant(1.0), folder)
        (file,) = folder.iterdir()
        file.write_bytes(file.read_bytes()[:kept])
        with pytest.raises(
            eb.DataError, match="parquet is damaged: remove it, and its cell is computed again"
        ):
            run(constant(1.0), folder)
        file.unlink()
        assert (run(constant(1.0), folder).estimate == 1).all()

    def test_read_only(self, tmp_path, monkeypatch):
        """What is stored is read; a cell that cannot be stored is refused before the work."""
        folder = tmp_path / "runs"
        run(constant(1.0), folder)
        monkeypatch.setattr("os.access", lambda path, mode: False)
        assert (run(constant(1.0), folder).estimate == 1).all()
        with pytest.raises(eb.DataError, match=r"cannot write .*: its folder may only be read"):
            study(
                {"zeta": PEOPLE},
                {"plan": Records()},
                [21],
                {"own": never},
                "b3-recall",
                repetitions=3,
                seed=1,
                folder=folder,
            )
