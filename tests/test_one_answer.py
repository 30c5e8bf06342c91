"""One sample has one answer: the same columns at every door, on five populations, to the digit."""

import warnings
from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from shell import done, listed
from test_folder import fill, in_doubt
from test_report import undrawn  # noqa: F401

import erbayes as eb
from erbayes import metrics as m
from erbayes._internal.errors import Grade
from erbayes.analysis import domains
from erbayes.labels import Annotator, read_labels
from erbayes.labels.folder import read_folder
from erbayes.study import populations as sim

P, R = m.pairwise_precision, m.pairwise_recall
METRICS = [P, R, m.pairwise_f1, m.b3_precision, m.b3_recall, m.cluster_precision, m.cluster_recall]
METRICS += [m.entities, m.mean_cluster_size, m.muc_recall]
COLUMNS = ["estimate", "lower", "upper"]
WORLDS = {
    "giants": (sim.Zeta(2.2, 300), [sim.Splits(0.2), sim.Merges(0.03)], 2000),
    "good matcher": (sim.LogNormal(0.4, 0.5), [sim.Splits(0.02)], 1500),
    "small, mostly labelled": (sim.LogNormal(0.5, 0.6), [sim.Splits(0.1), sim.Merges(0.05)], 200),
    "heavy tail": (sim.Zeta(2.3, 300), [sim.Splits(0.2)], 2000),
    "capped": (sim.Zeta(2.1, 300), [], 2000),
}
OF_ENTITIES = "heavy tail"
"""The population of which entities are drawn, so that more than a tenth of the links is out of reach."""


@cache
def population(name):
    """The truth and a prediction."""
    law, errors, records = WORLDS[name]
    world = sim.simulate(law, sim.Chain(errors), records, 7)
    true, pred = (codes.astype(str).rename(index=str) for codes in (world.true, world.pred))
    if name == "capped":  # at 20 records
        pred += "-" + (true.groupby(true).cumcount() // 20).astype(str)
    return true, pred


@cache
def case(name):
    """A prediction, another one, labels of the drawn entities, the draws, and the design."""
    (true, pred), rng = population(name), np.random.default_rng(3)
    if name == OF_ENTITIES:
        drawn, design = rng.choice(true.unique(), 100, replace=False).tolist(), eb.UniformClusters()
    else:
        drawn = true.iloc[rng.integers(len(true), size=120)].tolist()
        design = eb.UniformRecords(drawn)
    apart = rng.random(len(pred)) < 0.05
    other = pred.mask(apart, [f"alone {i}" for i in range(len(pred))])
    return pred, other, true[true.isin(drawn)], drawn, design


def sample_of(name):
    pred, _, labels, _, design = case(name)
    return eb.Sample(eb.measure(pred, labels), design)


@cache
def wanted(name, engine="closed form"):
    pred, _, labels, _, design = case(name)
    return eb.estimate(pred, labels, design, METRICS, engine=engine, rng=1).table()


def compare(name, **settings):
    pred, other, labels, _, design = case(name)
    return eb.compare({"a": pred, "b": other}, labels, design, METRICS, **settings)


def take_level(comparison):
    table = comparison.levels()
    return table[table["prediction"] == "a"].set_index("metric")


def write(name, folder):
    """Write prediction, labels and draws as files, and return the arguments of a command."""
    pred, _, labels, drawn, _ = case(name)
    pred.rename_axis("record").rename("cluster").to_csv(folder / "p.csv")
    labels.rename_axis("record").rename("entity").to_csv(folder / "l.csv")
    pd.Series(drawn, name="drawn").to_csv(folder / "d.csv", index=False)
    design = ["uniform-records", "--drawn", folder / "d.csv"]
    design = ["uniform-clusters"] if name == OF_ENTITIES else design
    return [folder / "p.csv", folder / "l.csv", "--design", *design]


def ask(*call):
    rows = listed("estimate", *call, "-m", ",".join(metric.name for metric in METRICS))
    return pd.DataFrame(rows).set_index("metric")


def ask_shell(name, folder, *more):
    return ask(*write(name, folder), *more)


def read_file(name, folder):
    path = write(name, folder)[0]
    _, _, labels, _, design = case(name)
    return eb.estimate(path, labels, design, METRICS).table()


def undo_no_errors(name, folder):
    pred, _, labels, _, design = case(name)

    def answer(labels, design):
        return eb.estimate(pred, labels, design, METRICS)

    annotator = Annotator(missed=0.0)
    found = eb.with_errors(answer, labels, design, pred, annotator, imputations=2, rng=1)
    return found.both.table()


def draw_in_rounds(name, folder):
    pred, _, labels, drawn, design = case(name)
    if name != OF_ENTITIES:
        design = eb.design.Pooled([eb.UniformRecords(drawn[:50]), eb.UniformRecords(drawn[50:])])
    return eb.estimate(pred, labels, design, METRICS).table()


def shuffle(name, folder):
    pred, _, labels, drawn, design = case(name)
    design = design if name == OF_ENTITIES else eb.UniformRecords(drawn[::-1])
    return eb.estimate(pred.sample(frac=1, random_state=1), labels[::-1], design, METRICS).table()


SHARED = {
    "a sample": lambda at: eb.estimate(at.sample, metrics=METRICS).table(),
    "one group of all": lambda at: (
        domains.by_domain(at.sample, pd.Series("all", at.pred.index, name="g"), METRICS, prediction=at.pred)
        .table()
        .set_index("metric")
    ),
    "a level of a comparison": lambda at: take_level(
        eb.compare({"a": at.pred, "b": at.other}, at.typed, at.design, METRICS)
    ),
    "side by side": lambda at: (
        eb.side_by_side(at.sample, METRICS, engines=["closed form"]).table().set_index("metric")
    ),
}
"""Doors to which a prediction, labels and a design are all."""
DOORS = {
    "a file": read_file,
    "the shell": ask_shell,
    "a scan": lambda name, folder: ask_shell(name, folder, "--memory-limit", "100MB"),
    "annotators without errors": undo_no_errors,
    "two rounds": draw_in_rounds,
    "another order": shuffle,
}


@pytest.mark.every(3)
@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("door", [*DOORS, *SHARED])
def test_every_door_has_the_estimates_and_intervals_of_the_front_door(name, door, tmp_path):
    pred, other, labels, _, design = case(name)
    at = SimpleNamespace(pred=pred, other=other, typed=labels, design=design, sample=sample_of(name))
    found, table = SHARED[door](at) if door in SHARED else DOORS[door](name, tmp_path), wanted(name)
    columns = [column for column in (*COLUMNS, "kind") if column in found]
    assert columns[:3] == COLUMNS
    pd.testing.assert_frame_equal(
        found.loc[table.index, columns], table[columns], rtol=1e-11, check_dtype=False, check_names=False
    )


@pytest.mark.parametrize("name", WORLDS)
def test_a_bootstrap_has_one_answer_too(name):
    """Estimates are those of the closed form, and a level of a comparison is what `estimate` returns."""
    alone, closed = wanted(name, "bootstrap"), wanted(name)
    np.testing.assert_array_equal(alone["estimate"], closed["estimate"])
    level = take_level(compare(name, engine="bootstrap", rng=1))
    truth = ["entities", "mean-cluster-size"]  # from the prediction that knows them best
    pd.testing.assert_frame_equal(
        level[COLUMNS].drop(truth), alone[COLUMNS].drop(truth), rtol=1e-11, check_names=False
    )


@pytest.mark.parametrize("name", WORLDS)
def test_a_group_of_all_has_the_differences_of_all(name):
    found = compare(name)
    both = dict(zip(("a", "b"), case(name)[:2], strict=True))
    everyone = pd.Series("all", case(name)[0].index, name="group")
    by = domains.compare_by_domain(found, everyone, METRICS, predictions=both).table().set_index("metric")
    of_all = found.differences().set_index("metric")
    pd.testing.assert_frame_equal(by[COLUMNS], of_all[COLUMNS], rtol=1e-11, check_names=False)


def catch_alarms(call, *given):
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always", eb.Alarm)
        call(*given)
    return {str(warning.message) for warning in raised}


@pytest.mark.parametrize("name", WORLDS)
def test_doors_raise_the_alarms_of_the_front_door(name):
    """Also of a comparison with pairs that are right, each prediction by its own intervals."""
    (true, _), (pred, _, labels, _, design) = population(name), case(name)
    right = true + "-" + (true.groupby(true).cumcount() // 2).astype(str)
    sample, other = sample_of(name), eb.Sample(eb.measure(right, labels), design)
    alarms = {*eb.alarms(sample, METRICS, wanted(name))}
    told, of_other = (
        {a for a in eb.alarms(x, METRICS) if a.grade is not Grade.NOTE} for x in (sample, other)
    )
    assert catch_alarms(lambda: eb.estimate(sample, metrics=METRICS)) == {*map(str, told)}
    assert alarms == {*eb.alarms(sample, METRICS)}
    named = {f"a: {alarm}" for alarm in told} | {f"b: {alarm}" for alarm in of_other}
    assert catch_alarms(eb.compare, {"a": pred, "b": right}, labels, design, METRICS) == named


@pytest.mark.parametrize("name", WORLDS)
def test_a_number_of_entities_that_a_second_clustering_does_not_help_is_that_of_all(name):
    """The known number of predicted clusters is a control of its own, and here the better one."""
    pred, other, labels, _, design = case(name)
    found = eb.assisted(pred, labels, design, METRICS, by=other)
    truth = ["entities", "mean-cluster-size"]
    assert (found.table().loc[truth, "lambda"] == 0).all()
    pd.testing.assert_frame_equal(
        found.table().loc[truth, COLUMNS], wanted(name).loc[truth, COLUMNS], rtol=1e-9
    )


@pytest.fixture(scope="module", params=["giants", "capped"])
def unresolved(request, tmp_path_factory):
    """A folder of draws, one of which nobody can tell, with its labels, its design, and the numbers of these."""
    (true, pred), path = population(request.param), tmp_path_factory.mktemp("drawn")
    pred.rename_axis("record").rename("cluster").to_csv(path / "p.csv")
    done(
        "draw", path / "p.csv", "--design", "uniform-records", "--n", 60, "--seed", 3, "--output", path / "f"
    )

    fill(read_folder(path / "f"), true, change=in_doubt(2))
    labels = read_labels(path / "f")
    assert len(labels.unresolved) == 1
    typed, design = labels.labels, labels.design()
    assert isinstance(design, eb.design.Responding) and design.unresolved > 0
    sample = eb.Sample(eb.measure(pred, typed), design)
    table = eb.estimate(pred, typed, design, METRICS).table()
    given = {"path": path, "pred": pred, "typed": typed, "design": design, "sample": sample, "table": table}
    other = pred.mask(np.arange(len(pred)) % 20 == 0, [f"alone {i}" for i in range(len(pred))])
    return SimpleNamespace(**given, other=other)


def ask_folder(at, *more):
    return ask(at.path / "p.csv", at.path / "f", *more)


OF_UNRESOLVED = SHARED | {
    "the folder in the shell": ask_folder,
    "the folder, scanned": lambda at: ask_folder(at, "--memory-limit", "100MB"),
    "a file": lambda at: eb.estimate(at.path / "p.csv", at.typed, at.design, METRICS).table(),
    "another order": lambda at: eb.estimate(
        at.pred.sample(frac=1, random_state=1), at.typed[::-1], at.design, METRICS
    ).table(),
}


@pytest.mark.parametrize("door", OF_UNRESOLVED)
def test_one_unresolved_draw_has_one_answer_at_every_door(unresolved, door):
    found, table = OF_UNRESOLVED[door](unresolved), unresolved.table
    pd.testing.assert_frame_equal(
        found.loc[table.index, COLUMNS], table[COLUMNS], rtol=1e-11, check_dtype=False, check_names=False
    )


def test_one_unresolved_draw_leaves_bootstraps_their_estimates(unresolved):
    boot = eb.estimate(unresolved.sample, metrics=METRICS, engine="bootstrap", rng=1).table()
    np.testing.assert_array_equal(boot["estimate"], unresolved.table["estimate"])
