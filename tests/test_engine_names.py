"""The engine that a name of the shell stands for."""

import io
from typing import get_args

import numpy as np
import pandas as pd
import pytest
from shell import done, refused, run
from test_cli import F1, LABELS, PRED, folder  # noqa: F401

import erbayes as eb
from erbayes import engine as engines
from erbayes.cli.analyses import SEED
from erbayes.engine.named import NAMES, EngineName
from erbayes.metrics.intervals import WALD, Symmetric

SAMPLE = eb.Sample(eb.measure(PRED, LABELS), eb.UniformRecords())
CALL = ("estimate", "p.csv", "l.parquet", "--design", "uniform-records", "-m", "f1")


@pytest.mark.parametrize("name, engine", [
    ("closed-form", engines.Taylor()),
    ("bootstrap", engines.Resampled()),
    ("jackknife", engines.Jackknife()),
])  # fmt: skip
def test_a_name_stands_for_its_engine(folder, name, engine):  # noqa: F811
    shown = done(*CALL, "--engine", name, "--format", "csv")
    found = pd.read_csv(io.StringIO(shown.stdout)).iloc[0]
    assert found["method"] == name
    wanted = eb.estimate(SAMPLE, metrics=F1, engine=engine, rng=SEED).table(0.95).iloc[0]
    for column in ("estimate", "lower", "upper"):
        np.testing.assert_allclose(found[column], wanted[column], rtol=1e-12)
    assert found["kind"] == wanted["kind"]
    assert run(*CALL, "--engine", name, "--format", "csv").stdout == shown.stdout


@pytest.mark.parametrize("name", ["closed-form", "jackknife", "bootstrap", "advised"])
def test_a_comparison_takes_an_engine(folder, name):  # noqa: F811
    call = ("compare", "p.csv", "q.csv", "l.parquet", "--design", "uniform-records", "-m", "f1")
    shown = done(*call, "--engine", name, "--format", "csv")
    found, metric = pd.read_csv(io.StringIO(shown.stdout)), ["pairwise-f1"]
    both = {"p": PRED, "q": PRED.where(np.arange(len(PRED)) % 7 != 0, 3)}
    wanted = eb.compare(both, LABELS, eb.UniformRecords(), metric, engine=name, rng=SEED).table()
    np.testing.assert_allclose(found[["lower", "upper"]], wanted[["lower", "upper"]], rtol=1e-9)
    assert found["kind"].tolist() == wanted["kind"].tolist() and set(found["method"]) == {name}
    assert ("was taken, since" in shown.stderr) is (name == "advised")
    errors = ("--annotator-errors", "missed=.1")
    assert "--annotator-errors and --engine do not go" in refused(*call, "--engine", name, *errors)


@pytest.mark.parametrize("names", ["ab", "ba"])
def test_the_advised_engine_of_a_comparison_suits_each_prediction(names, monkeypatch):
    monkeypatch.setattr("erbayes.engine.named.make_size_model", lambda **_: None)
    pairs = pd.Series(np.arange(400) // 2)
    both = {"a": pairs, "b": pairs.where(pairs < 150, 150)}  # of which one has a large cluster without a draw
    given = {name: both[name] for name in names}, pairs[pairs < 60], eb.UniformClusters()
    advised, wanted = (eb.compare(*given, engine=engine).joint for engine in ("advised", "jackknife"))
    assert len(advised.remarks) == 1 and "jackknife was taken" in advised.remarks[0]
    np.testing.assert_array_equal(advised.cov, wanted.cov)


@pytest.mark.parametrize("name", ["closed-form", "jackknife", "bootstrap", "advised"])
def test_groups_take_an_engine(folder, name):  # noqa: F811
    half = pd.Series(np.where(np.arange(len(PRED)) % 2, "odd", "even"), PRED.index, name="half")
    half.rename_axis("record").to_csv(folder / "a.csv")
    call = (*CALL, "--by", "half", "--attributes", "a.csv", "--engine", name)
    shown = done(*call, "--format", "csv")
    found = pd.read_csv(io.StringIO(shown.stdout))
    wanted = eb.by_domain(SAMPLE, half, ["pairwise-f1"], prediction=PRED, engine=name, rng=SEED).table()
    columns = ["estimate", "n_eff", "lower", "upper"]
    np.testing.assert_allclose(found[columns].astype(float), wanted[columns], rtol=1e-9)
    assert found["kind"].tolist() == wanted["kind"].tolist() and set(found["method"]) == {name}
    assert ("was taken, since" in shown.stderr) is (name == "advised")
    said = refused(*call, "--annotator-errors", "missed=1/20")
    assert "--annotator-errors and --engine do not go together" in said


@pytest.mark.parametrize("command", [("estimate",), ("compare", "q.csv")])
@pytest.mark.parametrize("name", ["size-model", "posterior"])
def test_groups_by_a_size_model_are_refused_before_anything_is_read(folder, command, name, monkeypatch):  # noqa: F811
    monkeypatch.setattr(eb, "measure", None)
    said = refused(*command, *CALL[1:], "--by", "half", "--attributes", "p.csv", "--engine", name)
    assert f"--engine {name} has no groups, since an entity may lie in several: leave out --by, or" in said
    assert "read" not in said


def test_a_missing_room_of_models_is_named(folder, monkeypatch):  # noqa: F811
    def absent(name):
        raise ModuleNotFoundError(name)

    monkeypatch.setattr("erbayes._internal.errors.import_module", absent)
    told = refused(*CALL, "--engine", "size-model")
    assert "the size model needs PyMC: pip install 'erbayes[bayes]'" in told


@pytest.mark.parametrize("kind", ["wald", "symmetric"])
def test_an_interval_that_is_asked_for_is_given_beside_an_engine(folder, kind):  # noqa: F811
    shown = done(*CALL, "--engine", "jackknife", "--interval", kind, "--format", "csv")
    found, fit = pd.read_csv(io.StringIO(shown.stdout)).iloc[0], engines.Jackknife()(SAMPLE, F1)
    bounds = fit.interval(0.95, {"wald": WALD, "symmetric": Symmetric()}[kind])[0]
    np.testing.assert_allclose(found[["lower", "upper"]].astype(float), bounds, rtol=1e-12)
    assert found["kind"] != fit.table()["kind"].iloc[0]


def test_type_checkers_know_the_names_of_engines():
    assert get_args(EngineName) == tuple(NAMES), "write the name into EngineName of erbayes/engine/named.py"
