"""A fitted sample: each number once, whoever reads it."""

import pickle
from collections import Counter

import numpy as np
import pytest

import erbayes as eb
from erbayes.datasets import people
from erbayes.design.sample import Sample
from erbayes.engine import Taylor, fitted
from erbayes.engine.fitted import fit_sample
from erbayes.metrics import ALL, DEFAULT_METRICS
from erbayes.metrics.totals import Totals


@pytest.fixture
def sample():
    example = people()
    units = eb.measure(example.prediction, example.labels)
    return eb.Sample(units, eb.UniformRecords(example.drawn))


def test_one_estimate_with_its_alarms_computes_each_number_once(sample, monkeypatch):
    calls = Counter()
    counted = [
        (Sample, "contributions"),
        (Sample, "unreached_share"),
        (Totals, "__init__"),
        (Totals, "apply"),
    ]

    def counting(method, name):
        def count(*given, **named):
            calls[name] += 1
            return method(*given, **named)

        return count

    for owner, name in counted:
        monkeypatch.setattr(owner, name, counting(getattr(owner, name), name))
    with pytest.warns(eb.Alarm):  # a fault, so that every alarm is looked for
        eb.estimate(eb.Sample(sample.units, eb.UniformClusters()))
    # of the metrics, and of the links that are known
    assert calls == {"contributions": 2, "unreached_share": 3, "__init__": 1, "apply": 2}


def test_a_sample_remembers_its_fit_and_forgets_it_when_it_is_sent_elsewhere(sample):
    fit = fit_sample(sample, DEFAULT_METRICS)
    assert fit_sample(sample, tuple(DEFAULT_METRICS)) is fit and fit_sample(sample, "f1") is not fit
    fit.jackknifed  # noqa: B018
    sent = pickle.loads(pickle.dumps(sample))
    assert not sent.fits
    np.testing.assert_array_equal(fit_sample(sent, DEFAULT_METRICS).estimates.mean, fit.estimates.mean)


@pytest.mark.parametrize(("metrics", "remembered"), [(1, True), (2, True), (3, False)])
def test_a_fit_of_many_metrics_is_not_remembered(sample, monkeypatch, metrics, remembered):
    monkeypatch.setattr(fitted, "REMEMBERED", 2)
    fit = fit_sample(sample, ALL[:metrics])
    assert (fit_sample(sample, ALL[:metrics]) is fit) == remembered


def test_effects_and_shares_add_up_as_their_definitions_say(sample):
    fit = fit_sample(sample, "pairwise-precision")
    # a ratio is homogeneous of degree 0 in its totals, so that linearised contributions add up to 0
    np.testing.assert_allclose(fit.effects.sum(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(fit.shares.sum(axis=0), 1)
    effect, common = fit.effects[:, 0], sample.contributions([eb.columns.COMMON_LINKS])[:, 0]
    links = sample.contributions([eb.columns.PREDICTED_LINKS])[:, 0]
    P = common.sum() / links.sum()
    np.testing.assert_allclose(effect, (common - P * links) / links.sum(), atol=1e-12)


def test_draws_share_alike_in_a_metric_that_averages_over_nothing():
    """The number of links in error averages over no total, and shares of draws add up to 1 all the same."""
    units = eb.measure({i: i // 2 for i in range(12)}, {i: i // 3 for i in range(12)})
    links = eb.columns.PREDICTED_LINKS, eb.columns.COMMON_LINKS
    false = eb.metrics.Metric("false-links", links, lambda p, c: p - c, (), (0.0, np.inf), "|P \\ T|")
    fit = fit_sample(eb.Sample(units, eb.UniformClusters()), (false, eb.metrics.b3_precision))
    np.testing.assert_allclose(fit.shares, np.full((4, 2), 1 / 4), rtol=1e-12)


def test_a_metric_that_is_infinite_without_a_draw_has_no_jackknife():
    """Predicted links per true one: a single unit has all true links, and no other draw is as good as it."""
    labels = {i: i for i in range(0, 40, 2)} | {1: 0}
    units = eb.measure({i: i // 2 if i < 10 else 100 + i for i in range(40)}, labels)
    links = eb.columns.PREDICTED_LINKS, eb.columns.TRUE_LINKS
    size, support = ((eb.columns.TRUE_LINKS, 1.0),), (0.0, np.inf)
    per_link = eb.metrics.Metric("per-link", links, lambda p, t: p / t, size, support, "|P|/|T|")
    found = eb.engine.jackknife(eb.Sample(units, eb.UniformClusters()), (per_link, eb.metrics.b3_precision))
    assert found.reasons == ("its jackknife is 0/0 if one draw is left out", "")
    np.testing.assert_array_equal(np.isnan(found.sd), [True, False])


def test_a_sample_remembers_its_latest_fits(sample, monkeypatch):
    monkeypatch.setattr(fitted, "LATEST", 2)
    first, second = fit_sample(sample, "f1"), fit_sample(sample, "b3")
    assert fit_sample(sample, "f1") is first  # the latest one now
    fit_sample(sample, "rand")
    assert fit_sample(sample, "f1") is first and fit_sample(sample, "b3") is not second


@pytest.mark.parametrize("engine", [None, Taylor(), Taylor(order=1)])
def test_a_result_cannot_be_written_over_what_the_sample_remembers(sample, engine):
    found = eb.estimate(sample, engine=engine)
    before = found.mean.copy()
    for array in (found.mean, found.cov, found.df, found.unseen.reach):
        with pytest.raises(ValueError, match="read-only"):
            array *= 100
    np.testing.assert_array_equal(eb.estimate(sample, engine=engine).mean, before)


@pytest.mark.parametrize("order", [1, 2])
def test_predictions_have_in_a_pair_the_estimates_that_they_have_alone(sample, order):
    metrics = (eb.metrics.pairwise_recall, eb.metrics.b3_precision)
    one = Taylor(order)
    np.testing.assert_array_equal(
        one.paired([sample, sample], metrics).mean, np.tile(one(sample, metrics).mean, 2)
    )
