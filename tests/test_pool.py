"""Pools of quantiles against quantiles by SciPy, and the pool of a size model with the closed form."""

from dataclasses import fields, replace

import numpy as np
import pandas as pd
import pytest
from closed import closed
from scipy import stats
from test_reach import plain, widened

import erbayes as eb
from erbayes import metrics as m
from erbayes.engine import Resampled, Taylor
from erbayes.engine.differences import subtract
from erbayes.engine.known_clusters import ClosedForm
from erbayes.engine.pool import POOLED, QUOTED, PooledDifferences, PooledDraws, as_quoted, pool_quantiles
from erbayes.metrics.intervals import HighestDensity
from erbayes.metrics.unseen import Unseen
from erbayes.study.populations import LogNormal, Merges, Splits, simulate
from erbayes.units.shared import Overlaps

LINE = ((-np.inf, np.inf),)
P, R = m.pairwise_precision, m.pairwise_recall


def normal(mean, sd=1.0):
    return closed(mean, sd**2, support=LINE[0])


def gamma_draws(number=5000):
    values = stats.gamma(3).ppf((np.arange(number) + 0.5) / number)
    return eb.metrics.Draws(("x",), np.random.default_rng(1).permutation(values)[None, :, None], LINE)


@pytest.mark.parametrize("weights", [(0.5, 0.5), (0.2, 0.8), (2.0, 1.0)])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_averaged_normals_are_normal(weights, level):
    """An average of quantiles of N(0, 1) and N(3, 2²) is normal with the averages of means and of sds."""
    pool = pool_quantiles([normal(0.0), normal(3.0, 2.0)], weights, rng=1)
    w, v = np.array(weights) / sum(weights)
    ends = stats.norm(3 * v, w + 2 * v).interval(level)
    assert pool.interval(level)[0] == pytest.approx(ends, abs=1e-4)
    assert pool.estimate == pytest.approx([3 * v], abs=1e-12)
    assert pool.sd == pytest.approx([w + 2 * v], rel=2e-3)


@pytest.mark.parametrize("order", [1, -1])
def test_draws_and_a_normal_are_averaged_at_each_level(order):
    pool = pool_quantiles([gamma_draws(), normal(0.0)][::order], [0.65, 0.35][::order], rng=1)
    for level in (0.5, 0.8, 0.95):
        ends = 0.65 * np.array(stats.gamma(3).interval(level)) + 0.35 * np.array(stats.norm.interval(level))
        assert pool.interval(level)[0] == pytest.approx(ends, abs=5e-3)


def test_outer_quantiles_span_all_results():
    pool = pool_quantiles([gamma_draws(), normal(1.0, 2.0)], [0.9, 0.1], spans=[True], rng=1)
    for level in (0.5, 0.95):
        both = [stats.gamma(3).interval(level), stats.norm(1, 2).interval(level)]
        ends = min(low for low, _ in both), max(high for _, high in both)
        assert pool.interval(level)[0] == pytest.approx(ends, abs=8e-3)
    assert pool.estimate == pytest.approx([0.9 * 3 + 0.1], abs=2e-3), "estimates are averaged all the same"
    # another metric is averaged
    other = pool_quantiles([gamma_draws(), normal(1.0, 2.0)], spans=[False], rng=1)
    assert other.interval()[0, 1] < pool.interval()[0, 1] - 0.1


def test_a_distribution_pooled_with_itself_is_itself():
    closed = Taylor()(SAMPLE, [P, R])
    assert pool_quantiles([closed, closed], rng=1).interval() == pytest.approx(closed.interval(), abs=2e-4)
    draws = Resampled(replicates=400)(SAMPLE, [P, R], 1)
    pool = pool_quantiles([draws, draws])
    # the pool has the draws of the first result, in their places
    np.testing.assert_allclose(pool.values, draws.values, rtol=1e-12)


def test_a_weight_of_one_gives_that_part():
    closed, draws = Taylor()(SAMPLE, [P, R]), Resampled(replicates=400)(SAMPLE, [P, R], 1)
    alone = pool_quantiles([closed, draws], [1, 0], rng=1)
    assert alone.interval() == pytest.approx(closed.interval(), abs=2e-4)
    alone = pool_quantiles([draws, closed], [2, 0])
    np.testing.assert_allclose(alone.values, draws.values, rtol=1e-12)


def test_chains_and_ranks_of_the_first_result_stay():
    rng = np.random.default_rng(3)
    values = rng.multivariate_normal([0, 0], [[1, 0.9], [0.9, 1]], (4, 250))
    draws = eb.metrics.Draws(("a", "b"), values, LINE * 2)
    wide = closed([5.0, 5.0], 9 * np.eye(2), support=LINE[0], names="ab")
    pool = pool_quantiles([draws, wide], [0.65, 0.35])
    assert pool.values.shape == (4, 250, 2) and pool.tree["posterior"].sizes["chain"] == 4
    np.testing.assert_array_equal(pool.flat.argsort(axis=0), draws.flat.argsort(axis=0))
    assert stats.spearmanr(pool.flat).statistic == pytest.approx(stats.spearmanr(draws.flat).statistic)


def test_a_pool_has_the_certain_ends_of_all_and_the_largest_unreached_share():
    """Ends that are certain by one result are so in the pool: .7 to .9 where one has these, and one .6 to 1."""
    one, other = (
        closed(0.8, 0.04, certain=ends, unreached_share=share)
        for ends, share in (([[0.7, 0.9]], 0.3), ([[0.6, 1.0]], 0.0))
    )
    for results in ((one, other), (other, one)):
        pool = pool_quantiles(results, rng=1)
        np.testing.assert_allclose(pool.interval(), [[0.7, 0.9]])
        np.testing.assert_allclose(pool.unseen.unreached_share, 0.3)
        np.testing.assert_allclose(pool.sd, 0.1)


def test_what_is_quoted_is_cut_once():
    """Labels leave .93 or less, below the estimate of the closed form; the interval moves there once."""
    of_all = closed(0.95, 1e-4, certain=np.array([[0.7, 0.93]]))
    quoted = as_quoted(of_all, (1, 50), rng=1)
    np.testing.assert_array_equal(quoted.interval(), of_all.interval())
    np.testing.assert_array_equal(quoted.estimate, of_all.estimate)
    assert quoted.interval()[0, 0] < quoted.estimate[0] == 0.93
    pooled = replace(quoted, origin=(POOLED,), values=quoted.values - 0.01)
    of_both = np.ones((1, 1), dtype=bool)
    found = PooledDifferences.of(replace(pooled.posterior, centre=of_all.mean), of_all, pooled, of_both)
    own, alone = np.quantile(quoted.flat, 0.025), replace(of_all, unseen=Unseen()).interval()[0, 0]
    np.testing.assert_allclose(found.interval(), [[0.65 * own + 0.35 * alone - 0.02, 0.93]])


def test_a_pooled_difference_is_in_its_interval():
    """The estimate of the model's draws is 1, beyond the ends of both members."""
    closed = normal(0.0, 0.1)
    drawn = replace(gamma_draws(), values=gamma_draws().values * 0.01, centre=np.array([1.0]))
    joint = PooledDraws(*list_fields(drawn), origin=(POOLED,), model=drawn.values, spans=np.array([False]))
    found = PooledDifferences.of(drawn, closed, joint, np.ones((1, 1), dtype=bool))
    assert found.interval()[0, 1] == found.estimate[0] == 1


def list_fields(draws):
    return draws.names, draws.values, draws.support, draws.centre


def test_a_sample_without_errors_counts_its_end():
    whole = eb.measure({i: i // 2 for i in range(400)}, {i: i // 2 for i in range(100)})
    closed = Taylor()(eb.Sample(whole, eb.UniformRecords()), [P])
    assert closed.interval()[0, 1] == 1
    low = eb.metrics.Draws(closed.names, np.linspace(0.5, 0.9, 500)[None, :, None], closed.support)
    (ends,) = pool_quantiles([low, closed], rng=1).interval()
    assert ends == pytest.approx((low.interval()[0] + closed.interval()[0]) / 2, abs=1e-3)


@pytest.mark.parametrize(
    "results, arguments, words",
    [
        ([normal(0.0)], {}, "two results or more, not 1"),
        ([normal(0.0), Taylor], {}, "the same metrics, not for x and for"),
        ([normal(0.0), normal(1.0)], {"weights": [1.0]}, "are 2 numbers of 0 or more"),
        ([normal(0.0), normal(1.0)], {"weights": [-1.0, 2.0]}, "are 2 numbers of 0 or more"),
        ([normal(0.0), normal(1.0)], {"weights": [0.0, 0.0]}, "not all 0"),
        ([normal(0.0), normal(1.0)], {"weights": [np.nan, 1.0]}, "are 2 numbers of 0 or more"),
    ],
)
def test_what_cannot_be_pooled_is_refused(results, arguments, words):
    results = [one()(SAMPLE, [P]) if one is Taylor else one for one in results]
    with pytest.raises(eb.DataError, match=words):
        pool_quantiles(results, **arguments)


WORLD = simulate(LogNormal(0.8, 1.0), Splits(0.3), 8000, 3)
DRAWN = WORLD.true.sample(60, random_state=4)
SAMPLE = eb.Sample(eb.measure(WORLD.pred, WORLD.true[WORLD.true.isin(DRAWN)]), eb.UniformRecords(draws=DRAWN))


@pytest.fixture(scope="module")
def fit():
    pytest.importorskip("pymc", reason="pymc is not installed")
    from erbayes import bayes

    return bayes.fast(SAMPLE, draws=500, rng=1)


@pytest.mark.slow
def test_a_fit_pools_with_the_closed_form(fit):
    """Its ends are weighted means of those of both, at every level, and then it allows for what is out of reach."""
    posterior, closed = fit.apply([P, R]), Taylor()(SAMPLE, [P, R])
    found, shares = fit.pooled([P, R]), closed.unseen.unreached_share
    assert shares[0] > 0 == shares[1]
    assert found.names == ("pairwise-precision", "pairwise-recall") and fit.unreached_share.mean() < 0.25
    for level in (0.5, 0.95):
        ends = 0.65 * posterior.interval(level) + 0.35 * plain(SAMPLE, [P, R], level)
        wanted = list(map(widened, found.estimate, ends, shares))
        np.testing.assert_allclose(found.interval(level), np.minimum(wanted, 1), atol=2e-4)
    assert found.table().kind.tolist() == ["pooled quantiles"] * 2
    assert found.part([1]).sentence().endswith("the entities that were not drawn.")


@pytest.mark.slow
def test_a_fit_shows_the_pool_in_its_table(fit):
    table = fit.table(0.9)
    assert len(table) == 6
    metrics = m.resolve_metrics(list(table.index))
    table = table[[fit.identifies(metric) for metric in metrics]]
    pooled = fit.pooled(list(table.index)).interval(0.9)
    np.testing.assert_allclose(table[["pooled_lower", "pooled_upper"]], pooled, rtol=1e-12)
    assert ((table.pooled_lower < table.estimate) & (table.estimate < table.pooled_upper)).all()


@pytest.mark.slow
def test_the_engine_is_the_pool_of_the_fit_and_says_so(fit):
    from erbayes import bayes

    engine = bayes.PooledModel(bayes.Modelled(draws=500))
    found = engine(SAMPLE, [P, R], 1)
    # the engine fits anew with another stream of random numbers than `fast` has, but the same seed
    np.testing.assert_allclose(found.values, fit.pooled([P, R]).values, rtol=1e-12)
    (note,) = found.alarms
    assert "a weight of 0.65" in note and "depend on a prior" in note and note.grade.name == "NOTE"
    assert engine.identifies(R) and not engine.identifies(m.basic_merge_distance)


@pytest.mark.slow
def test_metrics_that_the_model_has_not_are_those_of_the_closed_form(fit):
    """In each place of the table, with their certain ends, and in any order."""

    others = [m.cluster_recall, m.b3_precision, m.muc_recall]
    metrics, closed = [others[0], R, *others[1:], P], ClosedForm()(SAMPLE, others)
    assert not any(map(fit.identifies, others))
    for ask in (fit.recommended, fit.pooled):
        found = ask(metrics)
        assert found.names == tuple(metric.name for metric in metrics)
        assert [one == QUOTED for one in found.origin] == [True, False, True, True, False]
        np.testing.assert_allclose(found.part([0, 2, 3]).interval(), closed.interval(), rtol=1e-12)
        np.testing.assert_allclose(found.part([0, 2, 3]).estimate, closed.estimate, rtol=1e-12)
        np.testing.assert_allclose(found.part([1, 4]).values, ask([R, P]).values)
        assert "Intervals of cluster-recall, b3-precision, muc-recall are those of the" in found.sentence()
    kinds = found.table(kind=HighestDensity())["kind"].to_list()
    assert kinds[0] == "closed-form Beta" and kinds[1] == "HDI"
    assert found.sd[0] == pytest.approx(closed.sd[0], rel=1e-12)
    with pytest.raises(eb.NotIdentified, match="closed form"):
        fit.apply(others)


@pytest.mark.slow
def test_differences_of_metrics_that_the_model_has_not_are_those_of_the_closed_form():
    from erbayes import bayes

    example, metrics = eb.datasets.people(), [m.cluster_recall, R, m.b3_precision]
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
        quoted = [m.cluster_recall.name, m.b3_precision.name]
        ends = ["difference", "estimate", "lower", "upper"][1:]
        pd.testing.assert_frame_equal(found.loc[quoted, ends], wanted.loc[quoted, ends], rtol=1e-9)
        assert (found.loc[quoted, "kind"] == "closed-form gains and losses").all()
        assert found.loc[R.name, "kind"] == "pooled quantiles"
    same = eb.compare({"a": other, "b": other + "!"}, example.labels, design, metrics, engine="size model")
    assert (same.differences()[["lower", "upper"]].iloc[[0, 2]] == 0).all(axis=None)


@pytest.mark.slow
def test_a_prediction_without_links_has_no_recall_and_a_sample_without_links_the_other_metrics():
    people = simulate(LogNormal(0.5, 0.8), Merges(0.1), 3000, 1)
    labels = people.true[people.true.isin(people.true.drop_duplicates().sample(60, random_state=1))]
    alone = pd.Series(range(3000), people.true.index)
    found = eb.estimate(alone, labels, eb.UniformClusters(), [R, m.b3_recall], engine="size model", rng=1)
    assert (found[R].lower, found[R].upper) == (0, 0) and 0 < found[m.b3_recall].lower < 1
    assert "0/0" in eb.estimate(alone, labels, eb.UniformClusters(), [P, R], engine="pool", rng=1).reasons[0]
    single = people.true[people.true.map(people.true.value_counts()) == 1].head(30)
    found = eb.estimate(people.pred, single, eb.UniformClusters(), [P], engine="size model", rng=1)
    assert 0 < found[P].lower < found[P].upper <= 1


def test_a_closed_form_with_draws():
    closed = ClosedForm()(SAMPLE, [R, m.b3_recall])
    quoted = as_quoted(closed, (4, 2500), 1)
    assert quoted.values.shape == (4, 2500, 2) and quoted.origin == (QUOTED, QUOTED)
    for level in (0.5, 0.95):
        np.testing.assert_allclose(quoted.interval(level), closed.interval(level), rtol=1e-12)
    assert quoted.table().kind.unique().tolist() == ["closed-form Beta"]
    assert (quoted.table(errors=True)[["lower_mcse", "upper_mcse"]] == 0).all(axis=None)
    between = np.corrcoef(quoted.flat.T)[0, 1]
    assert between == pytest.approx(closed.cov[0, 1] / np.sqrt(np.prod(np.diag(closed.cov))), abs=0.06)
    beside = eb.side_by_side({"model": quoted}, [R, m.b3_recall]).table()
    assert beside[["ess_bulk", "r_hat"]].isna().all(axis=None), "chains say nothing of a closed form"
    last = quoted.part([1])
    np.testing.assert_array_equal(last.interval(), quoted.interval()[[1]])
    assert last.reasons == ("",) and last.sd == closed.sd[1]


def test_differences_pool_the_draws_of_the_model_with_gains_and_losses():
    """Of each metric as it is quoted, cut to what both predictions leave possible, with draws by hand."""
    metrics, rng = [P, R, m.b3_recall, m.cluster_recall, m.entities], np.random.default_rng(5)
    other = WORLD.pred.astype(str) + np.where(np.arange(len(WORLD.pred)) % 4 == 0, "-", "")
    units = [eb.measure(one, WORLD.true[WORLD.true.isin(DRAWN)]) for one in (WORLD.pred.astype(str), other)]
    samples = [eb.Sample(one, SAMPLE.design) for one in units]
    closed, k = ClosedForm().paired(samples, metrics), len(metrics)
    model = closed.mean + rng.normal(size=(1, 800, 2 * k)) * np.tile([0.03, 0.01, 0.02, 0.05, 40], 2)
    spans, shift = np.array([False, True, False, False, False] * 2), np.array([0.02, 0.02, 0.2, 0.0, 0.0])
    joint = PooledDraws(
        closed.names,
        0.5 * model,
        closed.support,
        closed.mean + np.concatenate([np.zeros(k), shift]),
        origin=(POOLED, POOLED, "", QUOTED, POOLED) * 2,
        model=model,
        spans=spans,
        closed=closed,
    )
    names = [metric.name for metric in metrics]
    both = [eb.Clustering.of(one.astype(str), "p") for one in (WORLD.pred, other)]
    overlaps = Overlaps.of(both, units[0].piece_of.index)
    moved, alone = (subtract(x, samples, metrics, [(0, 1)], names, overlaps) for x in (joint, closed))
    drawn = model[0, :, k:] - model[0, :, :k]
    centre = closed.mean[k:] - closed.mean[:k] + shift
    for level in (0.5, 0.95):
        own = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=0).T
        wanted = 0.65 * own + 0.35 * alone.interval(level)
        wanted[1] = min(own[1, 0], alone.interval(level)[1, 0]), max(own[1, 1], alone.interval(level)[1, 1])
        wanted[3], wanted[4] = alone.interval(level)[3], 0.0
        wanted[:3] = np.stack(
            [np.fmin(wanted[:3, 0], centre[:3]), np.fmax(wanted[:3, 1], centre[:3])], axis=1
        )
        np.testing.assert_allclose(moved.interval(level), wanted, rtol=1e-9)
    np.testing.assert_allclose(moved.estimate, [*centre[:3], alone.estimate[3], 0.0], rtol=1e-9)
    sd = drawn.std(axis=0, ddof=1)
    wanted = 0.65 * sd + 0.35 * alone.sd
    wanted[1], wanted[3] = max(sd[1], alone.sd[1]), alone.sd[3]
    wanted[4] = 0.0  # no prediction changes the number of entities
    np.testing.assert_allclose(moved.sd, wanted, rtol=1e-9)
    pooled = ["pooled quantiles"] * 3
    assert moved.table().kind.to_list() == [*pooled, "closed-form gains and losses", *pooled[:1]]
    quoted = np.ix_([3, k + 3], [3, k + 3])
    np.testing.assert_allclose(joint.cov[quoted], closed.cov[quoted], rtol=1e-12)
    np.testing.assert_allclose(joint.cov[0, 0], (0.5 * model[0, :, 0]).var(ddof=1))


@pytest.mark.slow
def test_where_giants_are_unseen_the_interval_of_recall_spans_both(monkeypatch):
    from erbayes import bayes

    giants = simulate(LogNormal(0.5, 1.5), Splits(0.3), 20_000, 5)
    drawn = giants.true.drop_duplicates().sample(60, random_state=2)
    sample = eb.Sample(eb.measure(giants.pred, giants.true[giants.true.isin(drawn)]), eb.UniformClusters())
    alarmed = bayes.fast(sample, draws=500, rng=1)
    own, closed = alarmed.apply([P, R]).interval(), plain(sample, [P, R])
    wanted = [0.65 * own[0] + 0.35 * closed[0], [min(own[1, 0], closed[1, 0]), max(own[1, 1], closed[1, 1])]]
    share = sample.unreached_share(eb.columns.PREDICTED_LINKS)
    assert share > 0.5, "of predicted links, which precision averages over"
    wanted[0] = widened(alarmed.pooled([P]).estimate[0], wanted[0], share)
    np.testing.assert_allclose(alarmed.pooled([P, R]).interval(), np.minimum(wanted, 1), atol=5e-4)
    by_engine = bayes.PooledModel(bayes.Modelled(draws=500))(sample, [P, R], 1)
    np.testing.assert_allclose(by_engine.interval(), alarmed.pooled([P, R]).interval(), rtol=1e-12)
    row = alarmed.table().loc[R.name]
    assert row.kind == "pooled quantiles" and [row.lower, row.upper] == pytest.approx(wanted[1], abs=5e-4)
    quoted = alarmed.recommended([P, R])
    assert quoted.origin == ("", POOLED) and quoted.part([1]).table().kind.item() == row.kind
    assert "Intervals of pairwise-recall pool a size model" in quoted.sentence()
    assert "pool" not in quoted.part([0]).sentence() and not quoted.part([0]).alarms
    np.testing.assert_allclose(quoted.values[..., 0], alarmed.apply([P]).values[..., 0])
    np.testing.assert_allclose(quoted.values[..., 1], alarmed.pooled([R]).values[..., 0])
    centre = 0.65 * alarmed.apply([R]).mean + 0.35 * Taylor()(sample, [R]).mean
    np.testing.assert_allclose(quoted.estimate, [alarmed.apply([P]).mean[0], centre[0]], rtol=1e-12)
    # the bar of a quarter, on both sides, without the alarm
    monkeypatch.setattr("erbayes.bayes.summary.SURE", 0.0)
    for share, ends in ((0.2501, wanted[1]), (0.25, 0.65 * own[1] + 0.35 * closed[1])):
        fixed = type("Fixed", (bayes.Fit,), {"unreached_share": np.full((4, 125), share)})
        moved = fixed(**{f.name: getattr(alarmed, f.name) for f in fields(alarmed)})
        assert moved.recommended([R]).origin == ("",)
        np.testing.assert_allclose(moved.pooled([R]).interval()[0], ends, atol=5e-4)
