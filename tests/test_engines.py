import html
import sys
from dataclasses import fields, replace

import numpy as np
import pandas as pd
import pytest
from checks import raises
from test_census import population

import erbayes as eb
from erbayes import engine as engines
from erbayes import metrics as m
from erbayes.engine import bootstrap
from erbayes.engine.closed_form import ClosedForm
from erbayes.engine.fitted import fit_sample
from erbayes.metrics.estimates import Estimates

pytestmark = pytest.mark.kernel
PRED, TRUE = population(4)
SAMPLE = eb.Sample(eb.measure(PRED, TRUE[TRUE.isin(sorted(TRUE.unique())[:8])]), eb.UniformClusters())
DRAWN = np.array([[0, 1, 2, 3], [4, 4, 5, 6], [7, 7, 7, 7]])
MANY = eb.Sample.many(SAMPLE.units, SAMPLE.design, DRAWN)
CHOSEN = (m.pairwise_precision, m.b3_recall, m.mean_cluster_size)
NAMES = [x.name for x in CHOSEN]


def chains(shape=(4, 300), seed=1):
    values = np.random.default_rng(seed).beta(8, 2, (*shape, 2))
    return Estimates.of_draws(("pairwise-precision", "b3-recall"), values, ((0.0, 1.0),) * 2)


def rows(found, method):
    table = found.table()
    return table[table["method"] == method].set_index("metric")


def test_each_engine_says_what_it_says_alone():
    rng = np.random.default_rng(1)
    totals, jack = eb.engine.taylor(SAMPLE, CHOSEN), eb.engine.jackknife(SAMPLE, CHOSEN)
    boot, again = (bootstrap(SAMPLE, CHOSEN, replicates=200, rng=rng) for _ in range(2))
    bayesian = Estimates.of_draws(again.names, again.values, again.support)
    naive = eb.engine.naive(SAMPLE.units, CHOSEN)
    results = {"naive": naive, "Taylor": totals, "jackknife": jack, "bootstrap": boot}
    found = engines.side_by_side(results | {"replicates": bayesian}, CHOSEN, level=0.8)
    wanted = "method metric estimate sd lower upper level kind ess_bulk r_hat"
    assert list(found.table().columns) == wanted.split()
    by_metric = [name for name in NAMES for _ in range(5)]  # engines within metrics
    assert list(found.table()["metric"]) == by_metric
    assert list(found.table()["method"][:5]) == "naive Taylor jackknife bootstrap replicates".split()
    assert (found.table()["level"] == 0.8).all()
    normal = totals.apply(CHOSEN)  # of totals alone, which know no certain ends
    for method, mean, sd, bounds, kinds in [
        ("Taylor", normal.mean, normal.sd, normal.interval(0.8), ["Beta", "Beta", "Gamma"]),
        ("jackknife", jack.estimate, jack.sd, jack.interval(0.8), ["Beta", "Beta", "Gamma"]),
        ("bootstrap", boot.estimate, boot.sd, boot.interval(0.8), ["Beta", "Beta", "gains and losses"]),
        ("replicates", bayesian.mean, bayesian.sd, bayesian.interval(0.8), ["equal-tailed"] * 3),
    ]:
        own = rows(found, method)
        wanted = np.column_stack([mean, sd, bounds])
        np.testing.assert_allclose(own[["estimate", "sd", "lower", "upper"]], wanted, rtol=1e-12)
        assert list(own["kind"]) == kinds
    bare = rows(found, "naive")
    np.testing.assert_array_equal(bare["estimate"], naive)
    assert bare[["sd", "lower", "upper"]].isna().all(axis=None) and (bare["kind"] == "none").all()
    assert found.table()[["ess_bulk", "r_hat"]].isna().all(axis=None), "none of these has chains"
    assert not found.lacking


def test_labels_settle_how_many_entities_there_are_at_least_and_at_most():
    """Those drawn, and at most one for each other record."""
    for settled, drawn in zip(ClosedForm()(MANY, [m.entities]).unseen.certain, map(set, DRAWN), strict=True):
        others = len(PRED) - SAMPLE.units.size[[*drawn]].sum()
        np.testing.assert_allclose(settled[0], [len(drawn), len(drawn) + others], rtol=1e-12)


EVERYONE = eb.measure(PRED, TRUE)
ROWS = np.array([[4, 10, 0, 0, 2, 7], [12, 3, 10, 13, 3, 12], [7, 7, 7, 7, 7, 7], [0, 1, 0, 1, 1, 0]])
"""Draws of the largest cluster, of entities of one size, of a single entity, and of some without an error."""
RATIOS = {
    eb.UniformRecords(): (m.b3_precision, m.inverse_purity),
    eb.UniformRecords(repeats=True): (m.b3_recall, m.matching_rate),
    eb.UniformRecords(population=len(PRED)): (),
    eb.UniformClusters(): (m.cluster_recall, m.singleton_share),
    eb.UniformClusters(population=len(EVERYONE)): (),
    eb.design.ByPredictedSize(eb.columns.PREDICTED_LINKS): (m.pairwise_precision,),
    eb.design.ByPredictedSize(eb.columns.ClusterSum("roots", np.sqrt)): (),
    eb.design.KnownSelection(pd.Series(EVERYONE.size / len(PRED), EVERYONE.ids)): (m.b3_recall, m.split_rate),
}
"""Designs that take many samples, with metrics whose draws are bets on them."""
COST = eb.columns.OfUnits("cost", pd.Series(np.arange(1.0, 15) ** 2, EVERYONE.ids))  # no unseen unit has one
MEAN_COST = m.Metric(
    "mean cost", (COST, eb.columns.RECORDS), lambda c, n: c / n, m.PER_RECORD, (0, np.inf), ""
)
SEVERAL = (
    *(m.pairwise_precision, m.pairwise_f1, m.b3_recall, m.cluster_recall, m.link_ratio, m.entities),
    *(m.rand, m.mean_cluster_size, MEAN_COST),
)


def list_numbers(sample, found):
    """Each array of estimates, their parts and their intervals, and what alarms read of their sample."""
    parts = [x for x in (found, found.unseen, found.moves, found.bets) if x is not None]
    return [
        *(x for part in parts for f in fields(part) if isinstance(x := getattr(part, f.name), np.ndarray)),
        *(found.interval(0.9), found.interval(0.9, eb.intervals.Anytime()), found.estimate, found.sd),
        *(sample.expansion.number, sample.out_of_reach, sample.unreached_links),
        *(sample.balance_links or ())[:2],
    ]


def same(found, wanted):
    for x, y in zip(found, wanted, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("design", RATIOS, ids=lambda one: f"{type(one).__name__} {one}")
def test_many_samples_at_once_are_each_alone(design):
    links = design == list(RATIOS)[5]  # which say nothing of singletons
    asked = {ClosedForm(): SEVERAL[: 1 if links else None], engines.BoundedMeans(): RATIOS[design]}
    for one, metrics in ((one, metrics) for one, metrics in asked.items() if metrics):
        many = eb.Sample.many(EVERYONE, design, ROWS)
        at_once = list_numbers(many, one(many, metrics))
        for i, row in enumerate(ROWS):
            listed = replace(design, draws=EVERYONE.ids[row])
            sample = eb.Sample(EVERYONE, listed, design.expand_draws(EVERYONE, row))
            alone = list_numbers(sample, one(sample, metrics))
            same([x[i] if np.ndim(x) > np.ndim(y) else x for x, y in zip(at_once, alone, strict=True)], alone)


@pytest.mark.parametrize("one", [ClosedForm(), engines.Jackknife()], ids=str)
def test_metrics_asked_together_are_each_alone(one):
    sample, metrics = eb.Sample(EVERYONE, eb.UniformRecords()), SEVERAL
    together, fitted = one(sample, metrics), fit_sample(sample, metrics)
    for j, metric in enumerate(metrics):
        same(list_numbers(sample, together.part([j])), list_numbers(sample, one(sample, [metric])))
        same(fitted.shares[:, [j]], fit_sample(sample, metric).shares)


def test_a_chosen_scale():
    totals = eb.engine.taylor(SAMPLE, CHOSEN)
    own = rows(engines.side_by_side({"Wald": totals}, CHOSEN, kinds=[eb.intervals.WALD]), "Wald")
    np.testing.assert_allclose(own[["lower", "upper"]], totals.apply(CHOSEN).interval(kind=eb.intervals.WALD))
    assert (own["kind"] == "Wald").all()


def test_chains_have_diagnostics():
    import arviz as az  # two seconds, which the quick tests of other files save

    draws, metrics = chains(), CHOSEN[:2]
    own = engines.side_by_side({"Bayes": draws}, metrics, level=0.9).table()
    told = az.summary(az.from_dict({"posterior": {"x": draws.values}}), round_to="none")
    np.testing.assert_allclose(own[["lower", "upper"]], draws.interval(0.9))
    np.testing.assert_allclose(own[["ess_bulk", "r_hat"]], told[["ess_bulk", "r_hat"]])
    assert list(own["kind"]) == ["equal-tailed"] * 2
    quoted = replace(draws, other=ClosedForm()(SAMPLE, metrics), weight=np.array([0.0, 1.0]))
    beside = engines.side_by_side({"Bayes": quoted}, metrics).table()[["ess_bulk", "r_hat"]]
    assert beside.isna().all(axis=1).tolist() == [True, False], "chains say nothing of what is quoted"
    asked = replace(draws, kind=engines.BCa()).table(kind=draws.kind, errors=True)
    assert (asked[["lower_mcse", "upper_mcse"]] > 0).all(axis=None)  # of the kind that is asked for
    alone = engines.side_by_side({"Bayes": chains((1, 300))}, metrics).table()
    assert alone[["ess_bulk", "r_hat"]].isna().all(axis=None)


class OnlyPrecision:
    """An engine that knows one metric."""

    def apply(self, metrics):
        if any(x.name != "pairwise-precision" for x in metrics):
            raise eb.NotIdentified("nothing <but> precision")
        return Estimates.of_draws(("pairwise-precision",), chains().values[..., :1], ((0.0, 1.0),))


def test_what_an_engine_lacks_is_listed():
    boot = bootstrap(SAMPLE, CHOSEN[:2], replicates=20, rng=np.random.default_rng(1))
    given = {"a < b": OnlyPrecision(), "bootstrap": boot, "Taylor": eb.engine.taylor(SAMPLE, CHOSEN)}
    found = engines.side_by_side(given, CHOSEN)
    assert list(rows(found, "a < b").index) == ["pairwise-precision"]
    assert found.lacking == {
        ("a < b", "b3-recall"): "nothing <but> precision",
        ("a < b", "mean-cluster-size"): "nothing <but> precision",
        ("bootstrap", "mean-cluster-size"): "not among its metrics",
    }
    for line in (
        "a < b has no estimate of b3-recall, mean-cluster-size: nothing <but> precision.",
        "bootstrap has no estimate of mean-cluster-size: not among its metrics.",
    ):
        assert line in repr(found) and f"<p>{html.escape(line)}</p>" in found._repr_html_()
    assert "<table" in found._repr_html_()
    with pytest.raises(eb.NotIdentified, match="no result has b3-recall"):
        engines.side_by_side({"Bayes": OnlyPrecision()}, CHOSEN[:2])


@pytest.mark.parametrize("results, level, message", [
    ({}, 0.95, "at least one result"),
    ({"Taylor": eb.engine.taylor(SAMPLE, CHOSEN)}, 95, "level must lie strictly between 0 and 1, not 95"),
    ({"Taylor": eb.engine.taylor(MANY, CHOSEN)}, 0.95, "of one sample, and not of 3: give that of each alone"),
])  # fmt: skip
def test_refuses(results, level, message):
    raises(eb.DataError, message, engines.side_by_side, results, CHOSEN, level=level)


def test_other_errors_are_not_swallowed():
    class Broken:
        def apply(self, metrics):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        engines.side_by_side({"broken": Broken()}, CHOSEN)


def test_without_arviz(monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz_stats.base", None)
    engines.side_by_side({"one chain": chains((1, 300))}, CHOSEN[:2])
    with pytest.raises(eb.DataError, match=r"need arviz-stats: pip install 'erbayes\[bayes\]'"):
        engines.side_by_side({"chains": chains()}, CHOSEN[:2])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_fitted_model_stands_beside_the_closed_form():
    from erbayes.bayes import fast

    rng = np.random.default_rng(3)
    true = pd.Series(np.repeat(np.arange(800), rng.integers(1, 8, 800)))
    pred = true.where(rng.random(len(true)) > 0.1, rng.integers(0, 800, len(true)))
    labels = true[true.isin(rng.choice(800, 150, replace=False))]
    sample = eb.Sample(eb.measure(pred, labels), eb.UniformClusters())
    fit = fast(sample, draws=1000, rng=rng)
    closed = eb.engine.taylor(sample, (*CHOSEN, m.basic_merge_distance))
    found = engines.side_by_side({"Bayes": fit, "Taylor": closed}, (*CHOSEN, m.basic_merge_distance))
    draws = fit.apply(CHOSEN)
    own = rows(found, "Bayes")
    of_closed = ClosedForm()(sample, CHOSEN)
    np.testing.assert_allclose(own["estimate"][:3], 0.8 * draws.mean + 0.2 * of_closed.mean)
    ends = 0.8 * draws.interval() + 0.2 * of_closed.interval()
    np.testing.assert_allclose(own[["lower", "upper"]][:3], ends)
    # the model has no costs of splits and merges
    wanted = closed.apply(m.basic_merge_distance).interval()[0]
    np.testing.assert_allclose(own[["lower", "upper"]].iloc[3], wanted)
    assert not found.lacking
