"""Differences of predictions by the size model, with true links in common."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import erbayes as eb
from erbayes import bayes
from erbayes import metrics as m
from erbayes.analysis.comparison import estimate_jointly
from erbayes.metrics.columns import ENTITIES, TRUE_LINKS
from erbayes.study import populations as sim

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::erbayes.bayes.NotConverged")]
P, R = m.pairwise_precision, m.pairwise_recall
TRUE = sim.population(sim.LogNormal(0.8, 1.0), 8000, np.random.default_rng(3))
DRAWN = TRUE.sample(80, random_state=4)
LABELS = TRUE[TRUE.isin(DRAWN)]


def predicted(errors, seed):
    codes = errors.apply(TRUE.to_numpy(), np.random.default_rng(seed))
    return TRUE * 0 + codes


GOOD, POOR = predicted(sim.Splits(0.1), 1), predicted(sim.Splits(0.4), 2)


@pytest.fixture(scope="module")
def found():
    predictions = {"good": GOOD, "again": GOOD, "poor": POOR}
    engine = bayes.Modelled(draws=600)
    return eb.compare(predictions, LABELS, eb.UniformRecords(DRAWN), [P, R], engine=engine, rng=1)


@pytest.fixture(scope="module", params=["records", "entities"])
def design(request):
    """Two designs, with labels."""
    ids = DRAWN if request.param == "records" else TRUE.drop_duplicates().sample(70, random_state=2)
    drawn = eb.UniformRecords(ids) if request.param == "records" else eb.UniformClusters()
    return TRUE[TRUE.isin(ids)], drawn


def test_each_prediction_has_the_row_of_the_front_door(design):
    """One sample has one answer: estimate, interval, kind, and Monte Carlo errors, of links and of the rest.

    Of what depends on the truth alone it is the more exact of both.
    """
    labels, drawn = design
    metrics, engine = [R, m.cluster_recall, P, m.entities], bayes.Modelled(draws=400)
    given = {"metrics": metrics, "engine": engine, "rng": 7}
    with warnings.catch_warnings(record=True, action="always", category=eb.Alarm) as raised:
        joint = eb.compare({"good": GOOD, "poor": POOR}, labels, drawn, **given)
    assert joint.joint.notes and not {*joint.joint.notes} & {str(w.message) for w in raised}
    np.testing.assert_allclose(joint.joint.cov, np.cov(joint.joint.flat.T), rtol=1e-9, atol=1e-15)
    both = {
        name: eb.estimate(prediction, labels, drawn, **given)
        for name, prediction in (("good", GOOD), ("poor", POOR))
    }
    best = min(both.values(), key=lambda one: one["entities"].sd / one["entities"].estimate)
    for name, alone in both.items():
        for level in (0.5, 0.95):
            wanted = alone.table(level).drop(columns="reason", errors="ignore")
            wanted.loc["entities"] = best.table(level).loc["entities"]
            rows = joint.levels(level).set_index("prediction").loc[name]
            rows = rows.set_index("metric")[wanted.columns]
            pd.testing.assert_frame_equal(rows, wanted, rtol=1e-9)
        assert set(alone.notes) <= set(joint.joint.alarms)


def joined_by_hand(first, second, metrics):
    """Draws of the second less the first fit, each in the order of its true links, (draws, k)."""
    flat = [
        fit.apply(metrics).flat[np.argsort(fit.total(TRUE_LINKS).ravel(), kind="stable")]
        for fit in (first, second)
    ]
    return flat[1] - flat[0]


def test_a_difference_averages_the_draws_with_gains_and_losses(design):
    """Each end, estimate and standard deviation is the weighted mean of both, cut once."""
    labels, drawn = design
    predictions, engine = {"good": GOOD, "poor": POOR}, bayes.Modelled(draws=400)
    found = eb.compare(predictions, labels, drawn, [P, R], engine=engine, rng=1)
    cut = eb.compare(predictions, labels, drawn, [P, R]).subtract("good", "poor")
    closed = replace(cut, unseen=replace(cut.unseen, certain=np.tile([-np.inf, np.inf], (2, 1))))
    fits = [engine.fitted(sample, int(np.random.default_rng(1).integers(2**32))) for sample in found.samples]
    by_draws = joined_by_hand(*fits, [P, R])
    moved, certain = found.subtract("good", "poor"), cut.unseen.certain
    centre = 0.8 * by_draws.mean(axis=0) + 0.2 * closed.estimate
    np.testing.assert_allclose(moved.uncut, centre, rtol=1e-9)
    np.testing.assert_allclose(moved.estimate, np.clip(centre, *certain.T), rtol=1e-9)
    for level in (0.5, 0.95):
        own = np.quantile(by_draws, [(1 - level) / 2, (1 + level) / 2], axis=0).T
        wanted = 0.8 * own + 0.2 * closed.interval(level)
        wanted += (np.clip(centre, *certain.T) - centre)[:, None]
        np.testing.assert_allclose(moved.interval(level), np.clip(wanted, *certain.T[..., None]), rtol=1e-9)
    wanted = np.minimum(0.8 * by_draws.std(axis=0, ddof=1) + 0.2 * closed.sd, np.ptp(certain, axis=1) / 2)
    np.testing.assert_allclose(moved.sd, wanted, rtol=1e-9)
    assert found.differences().kind.to_list() == ["80 % equal-tailed, 20 % gains and losses"] * 2


def test_what_does_not_depend_on_predictions_does_not_differ(found):
    given = dict(engine=bayes.Modelled(draws=100), rng=1)
    both = eb.compare({"good": GOOD, "poor": POOR}, LABELS, eb.UniformRecords(DRAWN), m.entities, **given)
    assert (both.differences()[["estimate", "lower", "upper"]] == 0).all(axis=None)


def test_without_a_closed_form_differences_are_those_of_the_draws():
    """Single records have no links, so that nothing but the model has a precision."""
    sizes = TRUE.map(TRUE.value_counts())
    labels = TRUE[sizes == 1].head(40)
    given = dict(engine=bayes.Modelled(draws=100), rng=1)
    given |= {"metrics": [P]}
    found = estimate_jointly({"good": GOOD, "poor": POOR}, labels, eb.UniformClusters(), **given)
    assert found.differences().kind.to_list() == ["equal-tailed"] and found.joint.other is None


def test_the_advised_engine_is_one_for_all_predictions(monkeypatch):
    """Under entities the size model suits a prediction in whose sample a few hold most links, so both have it."""
    monkeypatch.setattr("erbayes.bayes.engine.DRAWS", 400)
    tail = sim.population(sim.Zeta(2.1, 800), 12_000, 3)
    ids = np.random.default_rng(12).choice(tail.unique(), 80, replace=False)
    alone = tail * 0 + np.arange(len(tail))
    whole = {"alone": alone, "cut": tail * 100 + tail.groupby(tail).cumcount() // 40}
    found = eb.compare(whole, tail[tail.isin(ids)], eb.UniformClusters(), [R], engine="advised", rng=1)
    assert found.joint.alarms[0].startswith("The size model was taken")
    model = eb.compare(whole, tail[tail.isin(ids)], eb.UniformClusters(), [R], engine="size model", rng=1)
    pd.testing.assert_frame_equal(found.table(), model.table())
    predictions = {"good": GOOD, "poor": POOR}
    plain = eb.compare(predictions, LABELS, eb.UniformRecords(DRAWN), [R], engine="advised")
    assert plain.joint.alarms[0].startswith("The closed form was taken")
    closed = eb.compare({"good": GOOD, "poor": POOR}, LABELS, eb.UniformRecords(DRAWN), [R])
    pd.testing.assert_frame_equal(plain.table(), closed.table())


def test_recall_out_of_reach_of_one_prediction_is_that_of_the_closed_form_in_differences_too():
    """The largest clusters of one are touched, and the other joins all that nobody has labelled."""
    labelled = TRUE.isin({*DRAWN, *TRUE[GOOD.isin(GOOD.value_counts().index[:3])]})
    both = {"good": GOOD, "joined": GOOD.where(labelled, 10**6)}
    given = {"metrics": [P, R], "rng": 1}
    design, engine = eb.UniformClusters(), bayes.Modelled(draws=100, cautious=True)
    cautious = estimate_jointly(both, TRUE[labelled], design, engine=engine, **given)
    assert cautious.joint.weight.tolist() == [0.8, 0.8, 0.8, 0.0]
    closed = estimate_jointly(both, TRUE[labelled], design, **given)
    found, wanted = (x.differences().iloc[1][["lower", "upper"]] for x in (cautious, closed))
    np.testing.assert_allclose(found.astype(float), wanted.astype(float), rtol=1e-9)


def test_a_prediction_does_not_differ_from_itself(found):
    same = found.subtract("good", "again")
    np.testing.assert_array_equal(same.values, 0.0)


def test_joint_draws_agree_on_the_true_links(found):
    """Ranks of the true links of both fits are the same, so that recall moves together."""
    samples = found.samples
    links = m.Metric("links", (TRUE_LINKS,), lambda t: t, ((ENTITIES, 1.0),), (0, np.inf), "Σ")
    joint = bayes.Modelled(draws=600).paired([samples[0], samples[2]], [links], 1).flat
    ordered = joint[np.lexsort(joint.T[::-1])]
    assert (np.diff(ordered, axis=0) >= 0).all() and np.ptp(ordered, axis=0).min() > 0
    assert abs(np.corrcoef(np.arange(len(joint)), joint[:, 0])[0, 1]) < 0.15, "in random order"


def test_the_difference_covers_the_truth_and_is_shorter_than_of_independent_fits(found):
    truth = [sim.Population(x, TRUE).value(R) for x in (GOOD, POOR)]
    difference = found.subtract("good", "poor")
    row = difference[R]
    assert row.lower < truth[1] - truth[0] < row.upper < 0
    first, second = found.joint.flat[:, 1], found.joint.flat[:, 5]
    assert row.sd < np.sqrt(first.var() + second.var())


def test_a_standard_error_is_no_longer_than_what_is_possible():
    """One record of many, left alone: both engines know to a hair what that can change."""
    again = GOOD.copy()
    again.iloc[np.flatnonzero(~TRUE.isin(DRAWN))[0]] = -5.0 + GOOD.max() + 99
    two, design = {"good": GOOD, "again": again}, eb.UniformRecords(DRAWN)
    both = eb.compare(two, LABELS, design, [P], engine=bayes.Modelled(draws=400))
    row = both.differences().iloc[0]
    assert 0 < row.sd <= (row.upper - row.lower) / 2 + 1e-12 and row.upper - row.lower < 0.01
