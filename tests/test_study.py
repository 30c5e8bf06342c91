"""The study harness: its figures, its reproducibility, its survival of being killed."""

import pickle
from dataclasses import replace
from itertools import count

import joblib
import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal, assert_series_equal

import erbayes as eb
from erbayes import metrics as m
from erbayes.engine import Estimator, Naive, Resampled, Taylor
from erbayes.engine.closed_form import ClosedForm
from erbayes.labels import LinkEnds, Multipurpose, PredictedClusters, Records
from erbayes.metrics.columns import COLUMNS, PieceSum
from erbayes.metrics.intervals import EqualTailed
from erbayes.study import Samples, Study, UniformEntities, draw_samples, study
from erbayes.study import populations as sim

pytestmark = pytest.mark.slow

PR = (m.pairwise_precision, m.pairwise_recall)


class Distinct:
    """A user's own plan: entities without replacement."""

    def draw_samples(self, units, n, samples, rng):
        unit = np.array([rng.choice(len(units), n, replace=False) for _ in range(samples)])
        return Samples(units, eb.UniformClusters(population=len(units)), unit)


PLANS = {"records": Records(), "clusters": UniformEntities(), "distinct": Distinct()}


def people(records=3000, seed=1):
    return sim.simulate(sim.Zeta(2.2, 40), sim.Misattribution(0.1), records, np.random.default_rng(seed))


def run(estimators, repetitions=30, sizes=(50,), plans=PLANS, metrics=PR, **more):
    return study(
        {"zeta": people()}, plans, sizes, estimators, metrics, repetitions=repetitions, seed=3, **more
    )


def one_by_one(sample, metrics, rng):
    """A user's own engine: the closed form, and a random number that its stream must fix."""
    found = ClosedForm()(sample, metrics)
    return replace(found, cov=found.cov * (1 + 1e-9 * rng.random()))


def refuses(sample, metrics, rng):
    raise eb.DataError("this sample is not to my taste")


def test_table_by_hand():
    runs = {"population": "p", "plan": "records", "n": 9, "estimator": "e", "metric": "P", "truth": 0.5}
    runs |= {"repetition": range(4), "estimate": [0.4, 0.6, 0.7, np.nan]}
    runs |= {"lower": [0.3, 0.55, 0.5, np.nan], "upper": [0.45, 0.8, 0.9, np.nan]}
    runs |= {"se": [0.1, 0.2, 0.3, np.nan]}
    runs |= {"reason": ["", "", "", "bad luck"], "seconds": [1.0, 1, 1, 5], "warned": [0.0, 1, 0, 1]}
    runs |= {"kind": ["Beta", "t", "Beta", ""]}
    row = Study(pd.DataFrame(runs), 0.9).table().iloc[0]
    assert row.repetitions == 4 and row.failures == 1 and row.seconds == 1 and row.warnings == 2
    assert row.kind == "Beta; t" and row.bias == pytest.approx((-0.1 + 0.1 + 0.2) / 3)
    assert row.rmse == pytest.approx(np.sqrt((0.01 + 0.01 + 0.04) / 3))
    assert row.coverage == pytest.approx(1 / 3)
    # Wilson's limits of 1 of 3, from the roots of (p - 1/3)² = z² p (1 - p)/3
    limits = np.roots([1 + 1.96**2 / 3, -2 / 3 - 1.96**2 / 3, 1 / 9])
    assert row[["coverage_upper", "coverage_lower"]].tolist() == pytest.approx(limits.tolist())
    assert row.missed_below == pytest.approx(1 / 3) and row.missed_above == pytest.approx(1 / 3)
    assert row.se_ratio == pytest.approx(0.2 / np.std([-0.1, 0.1, 0.2], ddof=1))
    assert row.width == pytest.approx((0.15 + 0.25 + 0.4) / 3)
    assert row.interval_score == pytest.approx((0.15 + 20 * 0.05 + 0.25 + 20 * 0.05 + 0.4) / 3)


def test_failures_are_counted_and_own_estimators_work():
    table = run({"own": one_by_one, "refuses": refuses, "naive": Naive()}).table()
    rows = table.set_index(["plan", "estimator", "metric"])
    for plan in PLANS:
        for metric in PR:
            assert rows.failures[plan, "refuses", metric.name] == 30
            assert np.isnan(rows.coverage[plan, "refuses", metric.name])
            assert rows.failures[plan, "own", metric.name] == 0
            assert rows.coverage[plan, "own", metric.name] > 0.5
        assert rows.bias[plan, "naive", "pairwise-precision"] > 0.1
        assert np.isnan(rows.coverage[plan, "naive", "pairwise-precision"])

    def broken(sample, metrics, rng):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run({"broken": broken})


@pytest.mark.parametrize("plan", PLANS)
def test_many_samples_at_once_are_the_same_samples(plan, monkeypatch):
    monkeypatch.setattr("erbayes.study.harness.MOST_DRAWS", 350)  # in parts of seven samples
    counted = {"plans": {plan: PLANS[plan]}, "metrics": (*PR, m.entities, m.mean_cluster_size)}
    found = run({"together": ClosedForm(), "single": one_by_one}, **counted).runs
    together, single = (found[found.estimator == e].reset_index() for e in ("together", "single"))
    assert together.seconds.nunique() < 30, "in parts"
    columns = ["estimate", "lower", "upper"]
    np.testing.assert_allclose(together[columns], single[columns], rtol=2e-9)


def same(a, b):
    assert_frame_equal(a.runs.drop(columns="seconds"), b.runs.drop(columns="seconds"), check_exact=True)


def test_the_same_on_any_number_of_workers_and_beside_other_estimators(monkeypatch):
    monkeypatch.setattr("erbayes.study.harness.BLOCK", 8)
    boot = {"boot": Estimator(Resampled(replicates=20), EqualTailed())}
    alone = run(boot, 20)
    with joblib.parallel_config(n_jobs=2):
        same(alone, run(boot, 20))
    beside = run({"own": one_by_one} | boot, 20).runs
    assert_series_equal(beside[beside.estimator == "boot"].reset_index().estimate, alone.runs.estimate)
    other = study({"zeta": people()}, PLANS, (50,), boot, PR, repetitions=20, seed=4)
    assert (other.runs.estimate != alone.runs.estimate).mean() > 0.9


def test_columns_are_the_same_in_another_process():
    for column in COLUMNS:
        assert pickle.loads(pickle.dumps(column)) is column
    own = PieceSum("own", np.minimum)
    assert pickle.loads(pickle.dumps(own)) == own


def test_every_cell_has_random_numbers_of_its_own(monkeypatch):
    """The same population, plan and size under two names each: no two cells share a sample."""
    monkeypatch.setattr("erbayes.study.harness.BLOCK", 10)
    twins = {"a": people(), "b": people()}
    plans = {"c": Records(), "d": Records()}
    runs = study(twins, plans, (50, 51), {"t": Taylor()}, PR[1:], repetitions=20, seed=3).runs
    assert len(runs) == 2 * 2 * 2 * 20 and runs.estimate.nunique() > 0.95 * len(runs)


def test_seconds_are_those_of_one_sample(monkeypatch):
    """By a clock that moves on by a second whenever it is read, twice for each."""
    clock = count()
    monkeypatch.setattr("erbayes.study.harness.time.perf_counter", lambda: next(clock))
    seconds = run({"many": Taylor(), "one": one_by_one}, 8).runs.groupby("estimator").seconds.unique()
    assert seconds["many"].tolist() == [2 / 8] and seconds["one"].tolist() == [2]


def test_plans_draw_what_they_say():
    units = people().units
    rng = np.random.default_rng(1)
    records = draw_samples(Records(), units, 200, 2000, rng).unit
    share = np.bincount(records.ravel(), minlength=len(units)) / records.size
    expected = units.size / units.size.sum()
    assert np.abs(share - expected).max() < 5 * np.sqrt(expected.max() / records.size)


def test_bad_input():
    with pytest.raises(eb.DataError, match="repetitions of a study must be"):
        run({"t": Taylor()}, 0)
    with pytest.raises(eb.DataError, match="level must lie strictly"):
        run({"t": Taylor()}, level=95)


def test_plans_by_predicted_size_select_entities_with_their_chances():
    people = sim.simulate(sim.Zeta(2.5, 20), sim.Misattribution(0.2), 600, np.random.default_rng(1))
    size = people.pred.map(people.pred.value_counts()).astype(float)
    links, clusters = ((size - 1) ** 2).mean(), (size**-2).mean()
    chance = np.sqrt(1 + ((size - 1) ** 2 / links + size**-2 / clusters) / 2)
    of_record = pd.DataFrame({"entity": people.true, "p": chance / chance.sum()})
    p = of_record.groupby("entity")["p"].sum().reindex(people.units.ids).to_numpy()
    drawn = draw_samples(Multipurpose(), people.units, 100, 300, np.random.default_rng(2)).unit
    found = np.bincount(drawn.ravel(), minlength=len(p))
    assert abs(((found - 30_000 * p) ** 2 / (30_000 * p)).sum() / len(p) - 1) < 5 * (2 / len(p)) ** 0.5


def test_plans_by_predicted_size_refuse_what_draws_nothing():
    people = sim.simulate(sim.Zeta(2.5, 20), sim.Misattribution(0.2), 60, np.random.default_rng(1))
    alone = sim.Population.of(pd.Series(range(60), people.true.index), people.true)
    rng = np.random.default_rng(1)
    with pytest.raises(
        eb.DataError, match="no record has a chance to be drawn: the total of 'predicted_links'"
    ):
        draw_samples(LinkEnds(), alone.units, 5, 1, rng)
    with pytest.raises(eb.DataError, match=r"PredictedClusters.* draws one sample at a time"):
        draw_samples(PredictedClusters(), people.units, 5, 1, rng)
    for plan in (Records, "records", 7):
        with pytest.raises(eb.DataError, match=r"a study draws by a plan of erbayes.labels, such as Records"):
            study({"p": people}, {"plan": plan}, [5], {"t": Taylor()}, "b3-recall", repetitions=1, seed=1)
