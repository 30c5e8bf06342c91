"""The folder of a study: a file a cell, with the `repr` of its settings; what it has is not computed again."""

import json

import numpy as np
import pandas as pd
import pytest
from pyarrow import parquet

import erbayes as eb
from erbayes import DataError
from erbayes import metrics as m
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
    return lambda sample, metrics, rng: eb.metrics.Estimates.of_draws(
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


def test_a_file_of_a_cell_is_readable_and_has_its_settings(tmp_path):
    run(Taylor(), tmp_path / "runs", 2)
    (file,) = (tmp_path / "runs").iterdir()
    assert file.name == "zeta, plan, 20.parquet"
    settings = json.loads(parquet.read_schema(file).metadata[b"study"])
    assert settings["plan"] == "Records()" and settings["seed"] == "1"
    assert settings["population"].startswith("(Population(500 records")
    assert settings["estimator own"].startswith("Estimator(engine=Taylor(")
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


class TestErrors:
    def test_another_study(self, tmp_path):
        run(Taylor(), tmp_path / "runs")
        for other, what in (
            ({"seed": 2}, "seed 1, not 2"),
            ({"level": 0.9}, "levels"),
            ({"plan": eb.labels.Multipurpose()}, "plan"),
            ({"estimators": Taylor(order=1)}, "estimator own"),
        ):
            with pytest.raises(DataError, match=f"is of another study, with {what}.*name a new folder"):
                run(**{"estimators": Taylor(), "folder": tmp_path / "runs"} | other)

    def test_no_folder_above(self, tmp_path):
        with pytest.raises(DataError, match=r"cannot write .*none/runs: No such file .*: name a new folder"):
            run(never, tmp_path / "none" / "runs")

    def test_a_file(self, tmp_path):
        (tmp_path / "runs").write_text("", encoding="utf-8")
        with pytest.raises(DataError, match=r"cannot write .*runs: File exists: name a new folder"):
            run(never, tmp_path / "runs")

    @pytest.mark.parametrize("kept", [0, 20, 150])
    def test_a_truncated_file(self, tmp_path, kept):
        folder = tmp_path / "runs"
        run(constant(1.0), folder)
        (file,) = folder.iterdir()
        file.write_bytes(file.read_bytes()[:kept])
        with pytest.raises(DataError, match="parquet is damaged: remove it, and its cell is computed again"):
            run(constant(1.0), folder)
        file.unlink()
        assert (run(constant(1.0), folder).estimate == 1).all()

    def test_read_only(self, tmp_path, monkeypatch):
        """What is stored is read; a cell that cannot be stored is refused before the work."""
        folder = tmp_path / "runs"
        run(constant(1.0), folder)
        monkeypatch.setattr("os.access", lambda path, mode: False)
        assert (run(constant(1.0), folder).estimate == 1).all()
        with pytest.raises(DataError, match=r"cannot write .*: its folder may only be read"):
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
