"""What the size model quotes: one interval at every door, of one fit, with its kind and its alarms."""

import io
import re
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import erbayes as eb
from erbayes import bayes
from erbayes import metrics as m
from erbayes._internal.arrays import draw_seed
from erbayes._internal.errors import Grade
from erbayes.bayes import engine
from erbayes.bayes import fit as fits
from erbayes.cli import app
from erbayes.cli.analyses import SEED
from erbayes.engine import Taylor
from erbayes.report import report
from erbayes.study.populations import LogNormal, Population, Splits, Zeta, population, simulate

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::erbayes.bayes.NotConverged")]
P, R = m.pairwise_precision, m.pairwise_recall
AVERAGE = "80 % equal-tailed, 20 % Beta"
KINDS = {"clusters": [AVERAGE, AVERAGE], "records": [AVERAGE, AVERAGE]}


@cache
def people(design):
    """A population whose prediction has entities of more than 40 records in halves, or a usual one."""
    if design == "records":
        return simulate(LogNormal(0.8, 1.0), Splits(0.3), 8000, 3)
    true = population(Zeta(2.1, 800), 12_000, 3)
    of_entity = true.groupby(true)
    rank = of_entity.cumcount() % 2 * (of_entity.transform("size") > 40)
    return Population(true.astype(str) + "-" + rank.astype(str), true)


@cache
def drawn(design):
    """The entity of each of 80 draws, chosen so that the alarm does not depend on the seed of a fit."""
    true, g = people(design).true.astype(str), np.random.default_rng(12)
    if design == "clusters":
        return g.choice(true.unique(), 80, replace=False).tolist()
    return true.iloc[g.integers(len(true), size=80)].tolist()


@pytest.fixture(scope="module", params=KINDS)
def case(request):
    """The name of a design, the prediction, labels and a sample, with ids as text as files have them."""
    pred, true = (
        x.astype(str).rename(index=str) for x in (people(request.param).pred, people(request.param).true)
    )
    ids = drawn(request.param)
    labels = true[true.isin(ids)]
    design = eb.UniformClusters() if request.param == "clusters" else eb.UniformRecords(ids)
    return request.param, pred, labels, eb.Sample(eb.measure(pred, labels), design)


@pytest.fixture(autouse=True)
def few_draws(monkeypatch):
    """Each engine asks for 400 draws."""
    monkeypatch.setattr(engine, "DRAWS", 400)


@pytest.fixture
def counted(monkeypatch):
    """What each fit that is made draws."""
    made, join = [], fits.join_and_complete
    monkeypatch.setattr(fits, "join_and_complete", lambda *given: made.append(given) or join(*given))
    return made


def rows(table):
    return table[["estimate", "lower", "upper"]].to_numpy(dtype=float)


def wanted(sample, seed, name):
    """What `fit.table()` quotes of the fit of this seed, whose kinds are known."""
    table = bayes.fast(sample, draws=400, rng=seed).table(metrics=[P, R])
    assert table.kind.tolist() == KINDS[name]
    return rows(table)


def test_every_door_of_python_quotes_the_table_of_one_fit(case, counted):
    name, *_, sample = case
    table = wanted(sample, int(np.random.default_rng(7).integers(2**32)), name)
    counted.clear()
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always", eb.Alarm)
        found = eb.estimate(sample, metrics=[P, R], engine="size model", rng=7)
    assert len(counted) == 1
    np.testing.assert_allclose(rows(found.table()), table, rtol=1e-12)
    assert found.table().kind.tolist() == KINDS[name]
    said = [str(warning.message) for warning in raised]
    notes = {x for x in found.alarms if x.grade is Grade.NOTE}
    assert [x for x in notes if "those of a size model" in x] and not notes & set(said)
    assert {*found.alarms} - notes <= set(said)
    assert any("The interval of the model" in x for x in said) is (name == "clusters")
    percent = re.findall(r"([0-9.]+) % to ([0-9.]+) %", found.sentence())
    np.testing.assert_allclose(np.array(percent, dtype=float), 100 * table[:, 1:], atol=0.51)
    beside = eb.side_by_side(sample, [P, R], rng=7).table()
    assert len(counted) == 2
    beside = beside[beside.method == "size model"]
    np.testing.assert_allclose(rows(beside), table, rtol=1e-12)
    assert beside.kind.tolist() == KINDS[name]
    given = eb.side_by_side({"fit": found.fitted, "result": found}, [P, R]).table()
    np.testing.assert_allclose(rows(given), np.repeat(table, 2, axis=0), rtol=1e-12)
    assert len(counted) == 2, "a result has its fit"


def test_a_report_makes_one_fit_and_shows_what_it_quotes(case, counted):
    name, *_, sample = case
    page = report(sample, [P, R], engines={"model": bayes.Modelled(), "default": Taylor()})
    assert len(counted) == 1
    table = wanted(sample, 1, name)
    shown = re.findall(
        r"<tr><th>pairwise-[a-z]+<small>.*?</small></th><td>(.*?)\n(.*?)–(.*?)</td>", page, re.S
    )
    np.testing.assert_allclose(np.array(shown[:2], dtype=float), table, atol=6e-3)
    assert "model: Intervals" in page


def test_the_shell_makes_one_fit_and_prints_what_it_quotes(case, counted, tmp_path):
    name, prediction, labels, sample = case
    for file, column in (("p", prediction), ("l", labels)):
        column.rename_axis("record").rename("cluster").to_csv(tmp_path / f"{file}.csv")
    call = [str(tmp_path / "p.csv"), str(tmp_path / "l.csv"), "--design", f"uniform-{name}"]
    if name == "records":
        pd.Series(drawn(name), name="drawn").to_csv(tmp_path / "d.csv", index=False)
        call += ["--drawn", str(tmp_path / "d.csv")]
    call += "--engine size-model -m precision,recall --format csv".split()
    done = CliRunner().invoke(app, ["estimate", *call])
    assert done.exit_code == 0, done.output
    assert len(counted) == 1
    found = pd.read_csv(io.StringIO(done.stdout))
    np.testing.assert_allclose(rows(found), wanted(sample, draw_seed(SEED), name), rtol=1e-9)
    assert found.kind.tolist() == KINDS[name]
    assert "those of a size model" in done.stderr
    assert ("The interval of the model" in done.stderr) is (name == "clusters")


@pytest.mark.parametrize("engine", ["posterior", "advised"])
def test_other_engines_with_a_model_make_one_fit(case, counted, engine):
    name, *_, sample = case
    found = eb.estimate(sample, metrics=[P, R], engine=engine, rng=1)
    modelled = engine == "posterior" or name == "clusters"
    assert len(counted) == modelled
    assert any("was taken, since" in x for x in found.alarms) is (engine == "advised")
    assert any("those of a size model" in x for x in found.alarms) is modelled
