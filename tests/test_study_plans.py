"""Every design and every plan in a study, annotators, and populations that are redrawn, against plain loops."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from closed import closed

import erbayes as eb
from erbayes import design as d
from erbayes import metrics as m
from erbayes.design.draws import count_each
from erbayes.engine import Estimator, Resampled, Taylor, records_of
from erbayes.labels import (
    Annotator,
    GivenProbabilities,
    LinkEnds,
    Multipurpose,
    PredictedClusters,
    Records,
    Strata,
    draw,
    mislabel,
)
from erbayes.labels.plans import PLANS as plans_of_labels
from erbayes.study import Samples, UniformEntities, study
from erbayes.study import populations as sim

pytestmark = pytest.mark.slow
PR = (m.pairwise_precision, m.pairwise_recall)
PEOPLE = sim.simulate(sim.Zeta(2.3, 30), sim.Misattribution(0.1), 800, 1)
GROUP = pd.Series(np.arange(800) % 3, PEOPLE.true.index)


@dataclass(frozen=True)
class Expanding:
    """A design of one's own that has `expand` alone: entities with chances by the root of their size."""

    draws: object = None

    def expand(self, units):
        unit = units.ids.get_indexer(self.draws)
        return count_each(unit, 1 / np.sqrt(units.size[unit]), absolute=False)


def by_chance(chance, make):
    """A plan of one's own: entities with replacement by a chance, and the design of their ids."""

    def plan(people, n, rng):
        p = chance(people.units.size.astype(float))
        unit = rng.choice(len(p), n, p=p / p.sum())
        return eb.Sample(
            people.units.take(np.unique(unit)), make(people, people.units.ids[unit], p / p.sum())
        )

    return plan


def drawn_by(plan, values=None, unresolved=0):
    def one(people, n, rng):
        drawn = draw(people.pred, plan, n=n, seed=int(rng.integers(2**31)), values=values)
        return people.label(drawn, drawn.table["record"].drop_duplicates().tolist()[:unresolved])

    return one


def distinct(make):
    """A plan without replacement."""

    def plan(people, n, rng):
        unit = np.sort(rng.choice(len(people.units), n, replace=False))
        return eb.Sample(people.units.take(unit), make(people, people.units.ids[unit]))

    return plan


def halves(people, ids):
    return d.Stratified({i: int(people.units.size[people.units.ids.get_loc(i)] > 1) for i in ids})


PLANS = {
    "Records": Records(),
    "LinkEnds": LinkEnds(),
    "Multipurpose": Multipurpose(),
    "GivenProbabilities": drawn_by(GivenProbabilities(), GROUP + 1.0),
    "Strata": drawn_by(Strata(), GROUP),
    "PredictedClusters": PredictedClusters(),
    "PredictedClusters by size": PredictedClusters(Records()),
    "unresolved": drawn_by(Records(), unresolved=6),
    "UniformEntities": UniformEntities(),
    "expand": by_chance(np.sqrt, lambda people, ids, p: Expanding(ids)),
    "BySize": by_chance(np.sqrt, lambda people, ids, p: d.BySize(np.sqrt, ids)),
    "KnownWeights": by_chance(np.sqrt, lambda people, ids, p: eb.KnownWeights(pd.Series(1 / p, people.units.ids)[ids.unique()], ids) ),
    "KnownSelection": by_chance(np.sqrt, lambda people, ids, p: d.KnownSelection(pd.Series(p, people.units.ids)[ids.unique()], ids) ),
    "WeightedRecords": by_chance(np.asarray, lambda people, ids, p: eb.WeightedRecords(ids, np.full(len(ids), 1 / 800), absolute=True) ),
    "DistinctEntities": by_chance(np.asarray, lambda people, ids, p: eb.DistinctEntities(len(ids))),
    "UniformClusters": distinct(lambda people, ids: eb.UniformClusters(len(people.units), ids)),
    "Pooled": by_chance(
        np.asarray,
        lambda people, ids, p: d.Pooled([eb.UniformRecords(ids[: len(ids) // 2]), eb.UniformRecords(ids[len(ids) // 2 :])]),
    ),
}  # fmt: skip


def trial_of(estimators, metrics=PR, people=None, plans=None, sizes=(60,), repetitions=3, **more):
    """A study of uniform records of PEOPLE, unless others are given."""
    people, plans = people or {"p": PEOPLE}, plans or {"r": Records()}
    return study(people, plans, sizes, estimators, metrics, repetitions=repetitions, seed=1, **more)


class Spy:
    """An engine that keeps the samples that it is given."""

    def __init__(self):
        self.samples = []

    def __call__(self, sample, metrics, rng=None):
        if not self.samples or self.samples[-1] is not sample:
            self.samples.append(sample)
        return Taylor()(sample, metrics, rng)


def estimate_from_records(sample, metrics):
    """What `eb.estimate` says of the records of a sample, by its design."""
    labels = PEOPLE.true[PEOPLE.true.isin(sample.units.ids)]
    if sample.units.by_entity:
        return eb.estimate(PEOPLE.pred, labels, sample.design, metrics)
    units = eb.measure_predicted(PEOPLE.pred, PEOPLE.true, sample.units.ids)
    return Taylor()(eb.Sample(units, sample.design), metrics)


@pytest.mark.parametrize("plan", PLANS)
def test_a_study_is_a_plain_loop_over_estimate(plan):
    spy = Spy()
    runs = trial_of({"spy": spy, "closed": Taylor()}, plans={plan: PLANS[plan]}).runs
    assert len(spy.samples) == 3 and len(runs) == 12
    for estimator in ("spy", "closed"):
        of = runs[runs.estimator == estimator].set_index(["metric", "repetition"])
        for i, sample in enumerate(spy.samples):
            for metric in PR:
                row = of.loc[metric.name, i]
                if row.reason:
                    with pytest.raises(eb.NotIdentified):
                        estimate_from_records(sample, metric)
                    continue
                found = estimate_from_records(sample, metric).table()
                expected = found[["estimate", "se", "lower", "upper"]].iloc[0].to_numpy(dtype=float)
                ours = row[["estimate", "se", "lower", "upper"]].to_numpy(dtype=float)
                np.testing.assert_allclose(ours, expected, rtol=1e-9, atol=1e-12)
    expected = ["pairwise-precision"] if plan == "LinkEnds" else ["pairwise-precision", "pairwise-recall"]
    assert sorted(runs[runs.reason == ""].metric.unique()) == expected


def test_every_design_and_every_plan_is_among_them():
    assert {cls.__name__ for cls in plans_of_labels.values()} <= {name.split()[0] for name in PLANS}
    spy = Spy()
    trial_of({"spy": spy}, plans=PLANS, repetitions=1)
    studied = {type(s.design).__name__ for s in spy.samples}
    designs = {n for n in d.__all__ if isinstance(getattr(d, n), type) and hasattr(getattr(d, n), "expand")}
    assert designs - studied == {"Stratified", "FrozenWeights"}


def test_designs_without_a_batch_are_drawn_many_at_once_and_expanded_apart():
    units, rng = PEOPLE.units, np.random.default_rng(1)
    unit = rng.integers(len(units), size=(2, 40))
    for design in (Expanding(), d.BySize(np.sqrt), eb.DistinctEntities(40)):
        samples = Samples(units, design, unit)
        assert not samples.batches
        for row, sample in zip(unit, samples.separate, strict=True):
            assert set(sample.units.ids) == set(units.ids[row])
            if not isinstance(design, eb.DistinctEntities):
                assert list(sample.design.draws) == list(units.ids[row])


def test_annotators_label_the_same_samples():
    model = Annotator(missed=0.5, kept=0.3)
    given = []

    def by_hand(labels, prediction, rng):
        given.append((labels, rng))
        return mislabel(labels, prediction, model, rng=7)

    annotators = {
        "true": None, "same": lambda labels, prediction, rng: labels, "hand": by_hand, "model": model, "again": model,
    }  # fmt: skip
    spy = Spy()
    runs = trial_of({"spy": spy}, sizes=[50], repetitions=2, annotators=annotators).runs
    by = {
        name: of.drop(columns=["annotator", "seconds"]).reset_index(drop=True)
        for name, of in runs.groupby("annotator")
    }
    pd.testing.assert_frame_equal(by["true"], by["same"])
    assert by["hand"].estimate.tolist() != by["true"].estimate.tolist() != by["model"].estimate.tolist()
    assert by["model"].estimate.tolist() != by["again"].estimate.tolist(), "each errs in its own way"
    for i, (labels, _) in enumerate(given):
        assert set(labels) == set(spy.samples[i].units.ids)
        relabelled = mislabel(labels, PEOPLE.pred, model, rng=7)
        expected = eb.estimate(PEOPLE.pred, relabelled, spy.samples[i].design, PR).estimate
        ours = by["hand"][by["hand"].repetition == i].estimate
        assert ours.to_numpy() == pytest.approx(expected, rel=1e-12)
    assert (by["model"].truth == by["true"].truth).all(), "the truth is that of true labels"


def test_annotators_label_entities():
    given = {"plans": {"c": PredictedClusters()}, "sizes": [20], "annotators": {"a": Annotator()}}
    runs = trial_of({"t": Taylor()}, metrics="pairwise-precision", repetitions=2, **given).runs
    assert runs.reason.eq("annotators label entities; this plan draws predicted clusters").all()


def test_populations_are_redrawn_in_each_repetition():
    def redrawn(rng):
        return sim.simulate(sim.Zeta(2.5, 20), sim.Splits(rng.uniform(0.1, 0.6)), 400, rng)

    ways = {"closed": Taylor(), "bootstrap": Resampled(replicates=20)}
    plans = {"r": Records(), "s": PredictedClusters()}
    trial = trial_of(ways, people={"new": redrawn}, plans=plans, sizes=[40], repetitions=4)
    truths = trial.runs.groupby(["plan", "metric", "repetition"]).truth.agg(["nunique", "first"])
    assert (truths["nunique"] == 1).all() and truths.loc["r", "pairwise-recall"]["first"].nunique() == 4
    assert (truths["first"].loc[:, "pairwise-precision"] == 1).all()
    more = trial_of(ways, people={"new": redrawn}, sizes=[40], repetitions=6).runs
    assert more[more.repetition < 4].estimate.tolist() == trial.runs[trial.runs.plan == "r"].estimate.tolist()


def test_a_truth_that_is_not_there_is_a_failure_with_its_reason():
    def redrawn(rng):
        return sim.simulate(sim.Empirical([1]), sim.Chain(()), 100, rng)

    trial = trial_of(
        {"t": Taylor()}, metrics="pairwise-recall", people={"new": redrawn}, sizes=[10], repetitions=2
    )
    assert trial.failures()[["reason", "runs"]].to_numpy().tolist() == [["it is 0/0 in this population", 2]]


class ByChance:
    """Plan of one's own: each entity independently, with the same probability, so that a sample may be empty."""

    def draw_samples(self, units, n, samples, rng):
        p = n / len(units)
        taken = rng.random((samples, len(units))) < p
        design = d.KnownInclusion(pd.Series(p, units.ids), fixed_size=False)
        return Samples(units, design, [np.flatnonzero(row) for row in taken])


def test_a_sample_that_holds_nothing_fails_alone():
    trial = trial_of(
        {"t": Taylor()}, metrics="cluster-recall", plans={"r": ByChance()}, sizes=[2], repetitions=40
    )
    empty = trial.runs.reason == "the sample holds no unit"
    assert 0 < empty.sum() < 20 and trial.runs.estimate[~empty].notna().any()
    assert trial.failures().query("reason == 'the sample holds no unit'").runs.tolist() == [empty.sum()]


def test_more_repetitions_leave_the_first_ones_as_they_are():
    plans = {
        name: PLANS[name] for name in ("Records", "Multipurpose", "UniformEntities", "PredictedClusters")
    }
    ways = {"t": Taylor(), "b": Resampled(replicates=20)}
    few, many = (trial_of(ways, plans=plans, sizes=[30], repetitions=r).runs for r in (2, 5))
    kept = many[many.repetition < 2].reset_index(drop=True)
    np.testing.assert_allclose(kept.estimate, few.estimate, rtol=1e-12)


def test_equal_engines_share_a_fit():
    calls = []

    @dataclass(frozen=True)
    class Counting:
        order: int = 1

        def __call__(self, sample, metrics, rng=None):
            calls.append(self.order)
            return Taylor(order=self.order)(sample, metrics, rng)

    kinds = {"default": Counting(), "Wald": Estimator(Counting(), eb.intervals.WALD), "other": Counting(2)}
    runs = trial_of(kinds, sizes=[30], level=(0.9, 0.5)).runs
    assert sorted(calls) == [1] * 3 + [2] * 3
    of = {name: rows.reset_index() for name, rows in runs.groupby("estimator")}
    assert (of["default"].estimate == of["Wald"].estimate).all()
    assert (of["default"].lower != of["Wald"].lower).all()
    wald = Taylor(order=1)(sample_of(30), PR).interval(0.5, eb.intervals.WALD)
    first = of["Wald"].query("repetition == 0")
    np.testing.assert_allclose(first[["lower_0.5", "upper_0.5"]], wald, rtol=1e-12)
    assert runs.columns.tolist()[9:13] == ["lower", "upper", "lower_0.5", "upper_0.5"]


def sample_of(n):
    spy = Spy()
    trial_of({"s": spy}, sizes=[n], repetitions=1)
    return spy.samples[0]


def test_records_of_a_sample_have_its_counts():
    sample = sample_of(80)
    prediction, labels = records_of(sample)
    again = eb.measure(prediction, labels)
    for attribute in ("n", "N", "m"):
        assert sorted(getattr(again, attribute)) == sorted(getattr(sample.units, attribute))
    assert sorted(labels.value_counts()) == sorted(sample.units.size)


@pytest.mark.filterwarnings("ignore")
def test_a_package_of_records_is_an_engine():
    er_evaluation = pytest.importorskip("er_evaluation")

    def competitor(sample, metrics, rng=None):
        prediction, labels = records_of(sample)
        weights = 1 / labels.value_counts()
        x, sd = er_evaluation.pairwise_precision_estimator(prediction, labels, weights)
        return closed(x, sd**2, names=["pairwise-precision"])

    spy = Spy()
    runs = trial_of({"theirs": competitor, "spy": spy}, metrics="pairwise-precision").runs
    for i, sample in enumerate(spy.samples):
        labels = PEOPLE.true[PEOPLE.true.isin(sample.units.ids)]
        expected = er_evaluation.pairwise_precision_estimator(PEOPLE.pred, labels, 1 / labels.value_counts())
        ours = runs[(runs.estimator == "theirs") & (runs.repetition == i)]
        assert ours[["estimate", "se"]].to_numpy()[0] == pytest.approx(expected, rel=1e-9)
