"""Differences of predictions by the size model, with true links in common."""

import numpy as np
import pytest

pytest.importorskip("pymc", reason="pymc is not installed")

import erbayes as eb
from erbayes import bayes
from erbayes import metrics as m
from erbayes.metrics.columns import ENTITIES, TRUE_LINKS
from erbayes.study import populations as sim

pytestmark = pytest.mark.slow
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


def test_each_prediction_has_the_posterior_of_its_own_fit(found):
    """The fits share a seed, and each has its draws in another order."""
    seed = int(np.random.default_rng(1).integers(2**32))
    for i, prediction in enumerate([GOOD, GOOD, POOR]):
        sample = eb.Sample(eb.measure(prediction, LABELS), eb.UniformRecords(DRAWN))
        own = bayes.fast(sample, draws=600, rng=seed).apply([P, R])
        joint = found.joint.flat[:, 2 * i : 2 * i + 2]
        np.testing.assert_allclose(np.sort(joint, axis=0), np.sort(own.flat, axis=0), rtol=1e-12)


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
    assert row.sd == pytest.approx(np.std(second - first, ddof=1))
