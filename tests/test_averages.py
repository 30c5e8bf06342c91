"""Averages of two answers: a size model, or a bootstrap, next to the closed form, against their definition."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from checks import raises
from closed import closed
from scipy import stats

import erbayes as eb
from erbayes import metrics as m
from erbayes.engine import Resampled, Taylor
from erbayes.engine.closed_form import ClosedForm
from erbayes.engine.differences import subtract
from erbayes.metrics import Estimates
from erbayes.study.populations import LogNormal, Merges, Splits, simulate
from erbayes.units.settled import Overlaps

LINE = ((-np.inf, np.inf),)
P, R = m.pairwise_precision, m.pairwise_recall
LEVELS = (0.5, 0.8, 0.95)


def gamma_draws(other, weight, **given):
    """Draws of a Gamma variable, at its quantiles, next to another answer."""
    values = stats.gamma(3).ppf((np.arange(5000) + 0.5) / 5000)[None, :, None]
    return Estimates.of_draws(("x",), values, LINE, other=other, weight=np.array([weight]), **given)


@pytest.mark.parametrize("weight", [0.0, 0.3, 0.8, 1.0])
def test_each_end_is_the_average_of_both(weight):
    """Of Gamma(3) and N(1, 2²): ends, estimates and standard deviations, by SciPy."""
    found = gamma_draws(closed(1.0, 4.0, support=LINE[0]), weight)
    for level in LEVELS:
        ends = np.array(stats.gamma(3).interval(level)), np.array(stats.norm(1, 2).interval(level))
        np.testing.assert_allclose(
            found.interval(level)[0], weight * ends[0] + (1 - weight) * ends[1], atol=5e-3
        )
    assert found.estimate == pytest.approx([3 * weight + (1 - weight)], abs=2e-3)
    assert found.sd == pytest.approx([np.sqrt(3) * weight + 2 * (1 - weight)], rel=5e-3)
    names = {
        0.0: "t",
        0.3: "30 % equal-tailed, 70 % t",
        0.8: "80 % equal-tailed, 20 % t",
        1.0: "equal-tailed",
    }
    assert found.table()["kind"].item() == names[weight]
    assert found.table(errors=True)["lower_mcse"].item() == pytest.approx(
        weight * gamma_draws(None, 1.0).table(errors=True)["lower_mcse"].item()
    )


def test_a_member_without_a_weight_says_nothing():
    """NaN of a member with weight 0, and its reason, are not seen."""
    nothing = replace(closed(np.nan, np.nan, support=LINE[0]), undefined=("no",))
    own = gamma_draws(None, 1.0)
    found = gamma_draws(nothing, 1.0)
    np.testing.assert_array_equal(found.interval(), own.interval())
    assert found.estimate == own.estimate and found.reasons == ("",)
    lost = replace(own, values=np.full((1, 5000, 1), np.nan), mean=np.array([np.nan]), undefined=("lost",))
    other = closed(1.0, 4.0, support=LINE[0])
    found = replace(lost, other=other, weight=np.zeros(1))
    np.testing.assert_array_equal(found.interval(), other.interval())
    assert found.reasons == ("",) and found.estimate == 1


def test_what_is_certain_is_cut_once():
    """Labels leave .93 or less, below both estimates; the average moves there once."""
    of_all = closed(0.95, 1e-4, certain=np.array([[0.7, 0.93]]))
    values = np.linspace(0.94, 0.98, 1001)[None, :, None]
    draws = Estimates.of_draws(
        ("x",), values, of_all.support, unseen=of_all.unseen, other=of_all, weight=np.array([0.8])
    )
    alone = replace(of_all, unseen=replace(of_all.unseen, certain=np.array([[-np.inf, np.inf]])))
    low = 0.8 * 0.941 + 0.2 * alone.interval()[0, 0]
    centre = 0.8 * 0.96 + 0.2 * 0.95
    np.testing.assert_allclose(draws.interval(), [[low + 0.93 - centre, 0.93]], atol=1e-12)
    assert draws.estimate == 0.93
    cut = draws.unseen.cut
    twice = cut(*cut(draws.uncut, draws.uncut_interval()))
    np.testing.assert_array_equal(twice[1], draws.interval())


def test_a_quoted_metric_is_that_of_the_closed_form_to_the_digit():
    of_all = closed(0.95, 1e-4, certain=np.array([[0.7, 0.93]]))
    quoted = replace(of_all.as_draws(50, rng=1), other=of_all, weight=np.zeros(1))
    np.testing.assert_array_equal(quoted.interval(), of_all.interval())
    np.testing.assert_array_equal(quoted.estimate, of_all.estimate)
    assert quoted.sd == of_all.sd and quoted.table()["kind"].item() == of_all.table()["kind"].item()


def test_combinations_average_those_of_both():
    """Differences have the smallest weight of their parts, and the covariance of each member."""
    rng = np.random.default_rng(3)
    values = rng.multivariate_normal([0.2, 0.5, 0.1], np.eye(3) / 400, (1, 2000))
    cov = np.array([[4.0, 1, 0], [1, 4, 0], [0, 0, 9]]) / 1000
    other = closed([0.3, 0.4, 0.2], cov, support=LINE[0], names="abc")
    draws = Estimates.of_draws(
        ("a", "b", "c"), values, LINE * 3, other=other, weight=np.array([0.8, 0.8, 0.0])
    )
    C, names = np.array([[-1.0, 1, 0], [0, -1, 1]]), ["b - a", "c - b"]
    found, of_other = draws.contrast(C, names), other.contrast(C, names)
    np.testing.assert_array_equal(found.weight, [0.8, 0.0])
    for level in LEVELS:
        own = np.quantile(values[0] @ C.T, [(1 - level) / 2, (1 + level) / 2], axis=0).T
        wanted = 0.8 * own[0] + 0.2 * of_other.interval(level)[0]
        np.testing.assert_allclose(found.interval(level), [wanted, of_other.interval(level)[1]], atol=1e-12)
    centre = 0.8 * (values[0] @ C.T).mean(axis=0) + 0.2 * of_other.estimate
    np.testing.assert_allclose(found.estimate, [centre[0], of_other.estimate[1]], atol=1e-12)


def test_replicates_that_nothing_moves_have_the_interval_of_the_closed_form():
    whole = eb.measure({i: i // 2 for i in range(400)}, {i: i // 2 for i in range(100)})
    sample = eb.Sample(whole, eb.UniformRecords())
    found, alone = Resampled(replicates=50)(sample, [P], 1), Taylor()(sample, [P])
    assert found.weight == 0 and found.interval()[0, 1] == 1
    np.testing.assert_array_equal(found.interval(), alone.interval())


WORLD = simulate(LogNormal(0.8, 1.0), Splits(0.3), 8000, 3)
DRAWN = WORLD.true.sample(60, random_state=4)
SAMPLE = eb.Sample(eb.measure(WORLD.pred, WORLD.true[WORLD.true.isin(DRAWN)]), eb.UniformRecords(draws=DRAWN))


@pytest.fixture(scope="module")
def fit():
    pytest.importorskip("pymc", reason="pymc is not installed")
    from erbayes import bayes

    return bayes.fast(SAMPLE, draws=500, rng=1)


@pytest.mark.slow
def test_each_end_of_a_fit_is_the_average_of_posterior_and_closed_form(fit):
    """At every level and weight, with what is out of reach in the closed form alone."""
    posterior, closed = fit.apply([P, R]), ClosedForm()(SAMPLE, [P, R])
    shares = closed.unseen.unreached_share
    assert shares[0] > 0 == shares[1]
    for weight in (0.8, 0.3):
        found = fit.estimate([P, R], weight)
        for level in LEVELS:
            ends = weight * posterior.interval(level) + (1 - weight) * closed.interval(level)
            np.testing.assert_allclose(found.interval(level), ends, atol=1e-9)
        wanted = weight * posterior.estimate + (1 - weight) * closed.estimate
        np.testing.assert_allclose(found.estimate, wanted, atol=1e-12)
    assert fit.estimate(R).sentence().endswith("and those of the closed form (20%).")
    np.testing.assert_array_equal(found.chains, posterior.chains)


@pytest.mark.slow
def test_a_fit_shows_both_members_in_its_table(fit):
    table = fit.table(0.9)
    assert len(table) == 6
    own = [metric in fit.metrics for metric in m.resolve_metrics(list(table.index))]
    ends = [table[[f"{name}lower", f"{name}upper"]].to_numpy() for name in ("", "posterior_", "closed_")]
    np.testing.assert_allclose(ends[0][own], 0.8 * ends[1][own] + 0.2 * ends[2][own], atol=1e-9)
    np.testing.assert_array_equal(ends[0][~np.array(own)], ends[2][~np.array(own)])


@pytest.mark.slow
def test_the_engines_are_the_answer_and_the_posterior_of_the_fit_and_say_so(fit):
    from erbayes import bayes

    found, bare = (bayes.Modelled(draws=500, **of)(SAMPLE, [P, R], 1) for of in ({}, {"weight": 1}))
    # the engine fits anew with another stream of random numbers than `fast` has, but the same seed
    np.testing.assert_allclose(found.interval(), fit.estimate([P, R]).interval(), rtol=1e-12)
    np.testing.assert_allclose(bare.interval(), fit.apply([P, R]).interval(), rtol=1e-12)
    for one, said in ((found, "(80%)"), (bare, "are those of a size model")):
        (note,) = one.alarms
        assert said in note and "depends on a prior" in note and note.grade.name == "NOTE"
    with pytest.raises(eb.NotIdentified, match=r"has no cluster-recall, .* ask for pairwise-precision$"):
        bayes.Modelled(draws=500, weight=1)(SAMPLE, [P, m.cluster_recall], 1)
    raises(eb.DataError, "weight of the posterior", bayes.Modelled, weight=1.2)


@pytest.mark.slow
def test_metrics_that_the_model_has_not_are_those_of_the_closed_form(fit):
    """In each place of the table, with their certain ends, and in any order."""
    others = [m.cluster_recall, m.b3_precision_entities, m.muc_recall]
    metrics, closed = [others[0], R, *others[1:], P], ClosedForm()(SAMPLE, others)
    assert not set(others) & set(fit.metrics)
    found = fit.estimate(metrics)
    assert found.names == tuple(metric.name for metric in metrics)
    np.testing.assert_array_equal(found.weight, [0, 0.8, 0, 0, 0.8])
    quoted = found.part([0, 2, 3])
    np.testing.assert_allclose(quoted.interval(), closed.interval(), rtol=1e-12)
    np.testing.assert_allclose(quoted.estimate, closed.estimate, rtol=1e-12)
    np.testing.assert_allclose(found.part([1, 4]).interval(), fit.estimate([R, P]).interval(), rtol=1e-12)
    assert (
        "Intervals of cluster-recall, b3-precision-entities, muc-recall are those of the" in found.sentence()
    )
    assert found.table()["kind"].to_list()[:2] == ["Beta", "80 % equal-tailed, 20 % Beta"]
    assert found.sd[0] == pytest.approx(closed.sd[0], rel=1e-12)
    between = np.corrcoef(quoted.flat.T)[0, 2]
    assert between == pytest.approx(closed.cov[0, 2] / np.sqrt(closed.cov[0, 0] * closed.cov[2, 2]), abs=0.1)
    beside = eb.side_by_side({"model": quoted}, others).table()
    assert beside[["ess_bulk", "r_hat"]].isna().all(axis=None), "chains say nothing of a closed form"
    raises(eb.NotIdentified, "closed form", fit.apply, others)


@pytest.mark.slow
def test_differences_of_metrics_that_the_model_has_not_are_those_of_the_closed_form():
    from erbayes import bayes

    example, metrics = eb.datasets.people(), [m.cluster_recall, R, m.b3_precision_entities]
    design = eb.UniformRecords(example.drawn)
    apart = np.arange(len(example.prediction)) % 7 == 0
    other = example.prediction.astype(str).mask(apart, [f"alone {i}" for i in range(len(apart))])
    both = {"old": example.prediction, "new": other}
    model, closed = (
        eb.compare(both, example.labels, design, metrics, engine=engine, rng=1)
        for engine in (bayes.Modelled(draws=500), None)
    )
    for level in (0.5, 0.95):
        found, wanted = (x.differences(level).set_index("metric") for x in (model, closed))
        quoted = [m.cluster_recall.name, m.b3_precision_entities.name]
        ends = ["difference", "estimate", "lower", "upper"][1:]
        pd.testing.assert_frame_equal(found.loc[quoted, ends], wanted.loc[quoted, ends], rtol=1e-9)
        assert (found.loc[quoted, "kind"] == "gains and losses").all()
        assert found.loc[R.name, "kind"] == "80 % equal-tailed, 20 % gains and losses"
    same = eb.compare({"a": other, "b": other + "!"}, example.labels, design, metrics, engine="size model")
    assert (same.differences()[["lower", "upper"]].iloc[[0, 2]] == 0).all(axis=None)


@pytest.mark.slow
def test_a_prediction_without_links_has_no_recall_and_a_sample_without_links_the_other_metrics():
    people = simulate(LogNormal(0.5, 0.8), Merges(0.1), 3000, 1)
    labels = people.true[people.true.isin(people.true.drop_duplicates().sample(60, random_state=1))]
    alone = pd.Series(range(3000), people.true.index)
    found = eb.estimate(alone, labels, eb.UniformClusters(), [R, m.b3_recall], engine="size model", rng=1)
    assert (found[R].lower, found[R].upper) == (0, 0) and 0 < found[m.b3_recall].lower < 1
    found = eb.estimate(alone, labels, eb.UniformClusters(), [P, R], engine="size model", rng=1)
    assert "denominator is 0" in found.reasons[0]
    single = people.true[people.true.map(people.true.value_counts()) == 1].head(30)
    found = eb.estimate(people.pred, single, eb.UniformClusters(), [P], engine="size model", rng=1)
    assert 0 < found[P].lower < found[P].upper <= 1


def test_differences_average_the_draws_of_the_model_with_gains_and_losses():
    """Of each metric as it is quoted, cut to what both predictions leave possible, with draws by hand."""
    metrics, rng = [P, R, m.b3_recall, m.cluster_recall, m.entities], np.random.default_rng(5)
    other = WORLD.pred.astype(str) + np.where(np.arange(len(WORLD.pred)) % 4 == 0, "-", "")
    units = [eb.measure(one, WORLD.true[WORLD.true.isin(DRAWN)]) for one in (WORLD.pred.astype(str), other)]
    samples = [eb.Sample(one, SAMPLE.design) for one in units]
    closed, k = ClosedForm().paired(samples, metrics), len(metrics)
    model = closed.mean + rng.normal(size=(1, 800, 2 * k)) * np.tile([0.03, 0.01, 0.02, 0.05, 40], 2)
    weight = np.array([0.8, 0.8, 1, 0, 0.8])
    joint = Estimates.of_draws(closed.names, model, closed.support, other=closed, weight=np.tile(weight, 2))
    names = [metric.name for metric in metrics]
    both = [eb.Clustering.of(one.astype(str), "p") for one in (WORLD.pred, other)]
    overlaps = Overlaps.of(both, units[0].piece_of.index)
    moved, alone = (subtract(x, samples, metrics, [(0, 1)], names, overlaps) for x in (joint, closed))
    drawn = model[0, :, k:] - model[0, :, :k]
    w = weight[:, None]
    for level in (0.5, 0.95):
        own = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=0).T
        wanted = w * own + (1 - w) * alone.interval(level)
        wanted[4] = 0.0  # no prediction changes the number of entities
        np.testing.assert_allclose(moved.interval(level), wanted, rtol=1e-9)
    centre = weight * drawn.mean(axis=0) + (1 - weight) * alone.estimate
    np.testing.assert_allclose(moved.estimate, [*centre[:4], 0.0], rtol=1e-9)
    wanted = weight * drawn.std(axis=0, ddof=1) + (1 - weight) * alone.sd
    np.testing.assert_allclose(moved.sd, [*wanted[:4], 0.0], rtol=1e-9)
    kinds = ["80 % equal-tailed, 20 % gains and losses"] * 2
    assert moved.table().kind.to_list() == [*kinds, "equal-tailed", "gains and losses", kinds[0]]
