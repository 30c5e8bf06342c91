"""Calibration: what it must meet, keep and refuse. Its R golden values are in test_golden."""

import numpy as np
import oracle
import pandas as pd
import pytest
from scipy.optimize import linprog
from test_census import ENTITY, population

import erbayes as eb
from erbayes import metrics as m
from erbayes.design.calibration import _compute_factors
from erbayes.metrics.columns import PREDICTED_LINKS, RECORDS, TRUE_LINKS

pytestmark = pytest.mark.kernel


def drawn(seed=0, n=60, size=400):
    """A population and the entities of n records drawn uniformly, repeats kept."""
    pred, true = population(seed, size)
    draws = list(true.iloc[np.random.default_rng(seed).integers(0, size, n)])
    return pred, true, true[true.isin(draws)], draws


def two(*_):
    return RECORDS, PREDICTED_LINKS


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("totals", [two, eb.design.calibration.links_by_size])
def test_known_totals_are_met_within_bounds_whatever_the_scale_of_the_weights(seed, totals):
    pred, _, labels, draws = drawn(seed, n=150)
    units = eb.measure(pred, labels)
    found = []
    for factor in (1.0, 1e4):
        weights = pd.Series(factor / units.size, units.ids)
        design = eb.design.Calibrated(eb.KnownWeights(weights, draws), totals, (0.1, 10), fewest=0)
        sample = eb.Sample(units, design)
        met = sample.contributions(two()).sum(axis=0)
        np.testing.assert_allclose(met, [units.known.total(c) for c in two()], rtol=1e-11)
        plain = eb.KnownWeights(weights, draws).expand(units)
        scale = units.known.total(RECORDS) / (plain.weight @ units.size[plain.unit])
        g = sample.expansion.weight / plain.weight / scale
        assert 0.1 * (1 - 1e-12) <= g.min() < 1 < g.max() <= 10 * (1 + 1e-12)
        totals_ = eb.engine.taylor(sample, [m.P_rec, m.rand])
        at = [totals_.names.index(c.name) for c in two()]
        np.testing.assert_allclose(totals_.cov[at], 0, atol=1e-9 * totals_.mean.max() ** 2)
        found.append(eb.engine.taylor(sample, m.ALL).apply(m.ALL))
    np.testing.assert_allclose(found[0].mean, found[1].mean, rtol=1e-9)
    np.testing.assert_allclose(found[0].cov, found[1].cov, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_census(seed):
    pred, true = population(seed)
    design = eb.design.Calibrated(eb.UniformClusters(population=true.nunique()), two, fewest=0)
    expected = oracle.truth(list(true), list(pred))
    found = eb.estimate(pred, true, design, ENTITY)
    np.testing.assert_allclose(found.mean, [expected[n] for n in found.names], rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(found.sd, 0, atol=1e-12)


def test_calibration_to_records_alone_is_the_ratio_estimator():
    pred, _, labels, _ = drawn()
    units = eb.measure(pred, labels)
    plain = eb.engine.taylor(eb.Sample(units, eb.UniformClusters()), m.ALL).apply(m.ALL, order=1)
    design = eb.design.Calibrated(eb.UniformClusters(), lambda *_: (RECORDS,), fewest=0)
    ratio = eb.engine.taylor(eb.Sample(units, design), m.ALL).apply(m.ALL, order=1)
    np.testing.assert_allclose(ratio.mean, plain.mean, rtol=1e-10)
    np.testing.assert_allclose(ratio.cov, plain.cov, rtol=1e-8, atol=1e-13)


def test_two_predictions_are_calibrated_each_to_its_own_totals():
    pred, true, labels, draws = drawn(1)
    other = true.where(np.arange(len(true)) % 5 > 0, true + 1000)
    design = eb.design.Calibrated(eb.UniformRecords(draws), two, fewest=0)
    both = eb.compare({"a": pred, "b": other}, labels, design, [m.pairwise_precision, m.pairwise_recall])
    for i, prediction in enumerate((pred, other)):
        alone = eb.estimate(prediction, labels, design, [m.pairwise_precision, m.pairwise_recall])
        np.testing.assert_allclose(
            both.joint.cov[2 * i : 2 * i + 2, 2 * i : 2 * i + 2], alone.cov, rtol=1e-9, atol=1e-12
        )


def test_scaling_to_N_is_part_of_the_variance():
    # weights up to a factor, calibrated to links alone: the estimate of records must still vary
    pred, _, labels, draws = drawn(2, 300, 3000)
    units = eb.measure(pred, labels)
    design = eb.KnownWeights(pd.Series(1.0, units.ids), draws)
    s = eb.Sample(units, eb.design.Calibrated(design, lambda *_: (PREDICTED_LINKS,), fewest=0))
    columns = [RECORDS, TRUE_LINKS, eb.columns.ENTITIES]
    Z = s.contributions(columns)
    variance = s.expansion
    change, scale = variance.jackknife(Z)
    taylor_sd = np.sqrt(np.diag(variance.covariance(variance.residuals(Z))))
    np.testing.assert_allclose(taylor_sd, np.sqrt(scale @ change**2), rtol=0.15)


def test_each_total_costs_a_degree_of_freedom():
    pred, _, labels, draws = drawn(0, n=150)
    units = eb.measure(pred, labels)
    s = eb.Sample(units, eb.design.Calibrated(eb.UniformRecords(draws), two, fewest=0))
    z = s.contributions([RECORDS])[:, 0]
    found = eb.engine.taylor(s, [m.b3_recall]).apply([m.b3_recall])
    assert found.df[0] == pytest.approx(z.sum() ** 2 / (z @ z) * (1 - 2 / len(z)), rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_classes_cover_all_sizes_and_rest_on_enough_draws(seed):
    pred, _, labels, draws = drawn(seed, 150, 2000)
    units = eb.measure(pred, labels)
    expansion = eb.design.WithRepeats(eb.UniformRecords(draws)).expand(units)
    records, *classes = eb.design.calibration.links_by_size(units, expansion)
    assert records == RECORDS
    assert sum(units.known.total(c) for c in classes) == pytest.approx(units.known.total(PREDICTED_LINKS))
    z = np.column_stack([units.column(c)[expansion.unit] * expansion.weight for c in classes])
    assert (z.sum(axis=0) ** 2 / (z**2).sum(axis=0) >= 15).all()
    assert len(classes) > 1


def test_refuses_exactly_where_linear_programming_finds_no_factors():
    answers = []
    for seed in range(30):
        pred, _, labels, draws = drawn(seed, 40)
        units = eb.measure(pred, labels)
        rule = eb.UniformRecords(draws, repeats=True)
        base = rule.expand(units)
        columns = eb.design.calibration.links_by_size(units, base)
        x = np.column_stack([units.column(c)[base.unit] for c in columns])
        X = np.array([units.known.total(c) for c in columns])
        found = (
            linprog(
                np.zeros(len(x)),
                A_eq=(base.weight[:, None] * x / X).T,
                b_eq=np.ones(len(X)),
                bounds=[(0.2, 5.0)] * len(x),
            ).status
            == 0
        )
        try:
            eb.Sample(units, eb.design.Calibrated(rule, fewest=0))
        except eb.DataError:
            assert not found
            answers.append(False)
        else:
            assert found
            answers.append(True)
    assert {True, False} == set(answers)


def test_factors_are_found_where_whole_steps_of_newton_miss_them():
    """Totals that factors between .2 and 5 meet: 4.5 and .25 do."""
    x = np.array([[1, 16, 4], [1, 4, 128], [1, 256, 8], [1, 1, 32], [1, 32, 256]], dtype=float)
    w, some = np.array([10.0, 1000, 1, 100, 10]), np.array([1, 0.25, 4.5, 4.5, 0.25])
    totals = (w * some) @ x
    g = _compute_factors(w, x / totals, np.ones(5), (0.2, 5.0))
    np.testing.assert_allclose((w * g) @ x, totals, rtol=1e-11)
    assert 0.2 <= g.min() and g.max() <= 5


def test_refusals():
    giant = {i: max(0, i - 60) for i in range(100)}
    labels = {i: 0 for i in range(61, 71)} | {i: i for i in range(71, 90)}
    with pytest.raises(eb.DataError, match="100% of all predicted links lie in clusters larger"):
        eb.estimate(giant, labels, eb.design.Calibrated(eb.UniformClusters()))
    pred, _, labels, draws = drawn()
    with pytest.raises(eb.DataError, match=r"no factors between 0\.99 and 1\.01 meet the 2 known totals"):
        eb.estimate(pred, labels, eb.design.Calibrated(eb.UniformRecords(draws), two, (0.99, 1.01), fewest=0))
    with pytest.raises(eb.DataError, match="bounds must hold 0 < L < 1 < U"):
        eb.design.Calibrated(eb.UniformRecords(), bounds=(0, 2))
    with pytest.raises(eb.DataError, match=r"depends on 2\.0 effective draws, fewer than 15"):
        estimate_three = {i: i // 2 for i in range(6)}, {i: i // 2 for i in range(6)}
        eb.estimate(*estimate_three, eb.design.Calibrated(eb.KnownWeights({0: 1, 1: 1, 2: 10**-9})))
    with pytest.raises(eb.DataError, match="2 draws cannot be calibrated to 2 totals"):
        eb.estimate(
            {1: 1, 2: 1, 3: 2, 4: 2}, {1: 1, 2: 1, 3: 2, 4: 2}, eb.design.Calibrated(eb.UniformClusters())
        )
    with pytest.raises(eb.NotIdentified, match="totals of the prediction, which are not known"):
        eb.estimate(
            pred,
            pd.concat([labels, pd.Series({"new": labels.iloc[0]})]),
            eb.design.Calibrated(eb.UniformClusters()),
            missing=eb.Missing.TOGETHER,
        )


def test_calibration_cannot_reach_units_that_are_never_drawn():
    links = eb.design.ByPredictedSize(PREDICTED_LINKS)
    prediction = {i: i // 2 if i < 40 else i for i in range(80)}
    units = eb.measure(prediction, {i: i // 4 for i in range(40)})
    with pytest.raises(
        eb.NotIdentified, match="'records' is not identified: records of predicted singletons"
    ):
        eb.Sample(units, eb.design.Calibrated(links, two, fewest=3))
    sample = eb.Sample(units, eb.design.Calibrated(links, lambda *_: [PREDICTED_LINKS], fewest=3))
    assert eb.engine.taylor(sample, [m.pairwise_precision]).apply([m.pairwise_precision]).mean[0] == 1
    with pytest.raises(eb.NotIdentified, match="'true_links' is not identified"):
        eb.engine.taylor(sample, [m.pairwise_recall])


class TestKnownNumberOfClusters:
    """Numbers of entities follow the known number of predicted clusters, in the front door."""

    @staticmethod
    def world(seed=0, n=300, entities=1500):
        r = np.random.default_rng(seed)
        size = np.minimum(r.zipf(2.2, entities), 40)
        truth = pd.Series(np.repeat(np.arange(entities), size))
        split = r.random(len(truth)) < 0.15
        prediction = pd.Series(pd.factorize(np.where(split, truth + 10_000, truth))[0])
        drawn = truth.iloc[r.integers(0, len(truth), n)].tolist()
        return truth, prediction, truth[truth.isin(drawn)], drawn

    def test_covariances_between_both_kinds_are_those_of_repeated_samples(self):
        truth, prediction, _, _ = self.world()
        metrics, rng, means, said = ["pairwise-recall", "entities"], np.random.default_rng(1), [], []
        for _ in range(300):
            drawn = truth.iloc[rng.integers(0, len(truth), 300)].tolist()
            found = eb.estimate(prediction, truth[truth.isin(drawn)], eb.UniformRecords(drawn), metrics)
            means.append(found.mean)
            said.append(found.cov / np.outer(found.sd, found.sd))
        assert np.mean(said, axis=0)[0, 1] == pytest.approx(np.corrcoef(np.transpose(means))[0, 1], abs=0.15)

    def test_a_census_stays_as_it_is(self):
        truth, prediction, _, _ = self.world(entities=60)
        whole = eb.UniformClusters(truth.nunique())
        assert eb.estimate(prediction, truth, whole, "entities").sd[0] == 0

    def test_weights_up_to_a_factor_and_unresolved_draws(self):
        _, prediction, labels, drawn = self.world()
        for design in (
            eb.KnownWeights(dict(zip(drawn, 1 / labels.value_counts().loc[drawn], strict=True)), drawn),
            eb.design.Responding(eb.UniformRecords(drawn), [True] * len(drawn) + [False] * 9),
        ):
            found = eb.estimate(prediction, labels, design, ["entities", "pairwise-recall"])
            plain = eb.engine.taylor(eb.Sample(eb.measure(prediction, labels), design), "entities").apply(
                "entities"
            )
            assert found.sd[0] < 0.6 * plain.sd[0]
            assert abs(found.mean[0] - plain.mean[0]) < 4 * plain.sd[0]

    def test_the_guard_looks_at_the_totals_that_are_asked_for(self):
        # one cluster of 40 holds most links, and few records
        prediction = pd.Series([*np.repeat(np.arange(400), 2), *[1000] * 40])
        labels = prediction[prediction < 200]
        units, clusters = eb.measure(prediction, labels), [eb.columns.PREDICTED_CLUSTERS]
        with pytest.raises(eb.DataError, match="of all predicted links lie in clusters larger"):
            eb.design.Calibrated(eb.UniformRecords()).expand(units)
        assert eb.design.Calibrated(eb.UniformRecords(), lambda *_: clusters).expand(units).absolute
        # a cluster of most records is refused for totals of records as well
        large = pd.Series([*np.repeat(np.arange(400), 2), *[1000] * 900])
        with pytest.raises(eb.DataError, match="of all predicted links lie in clusters larger"):
            eb.design.Calibrated(eb.UniformRecords(), lambda *_: [eb.columns.RECORDS]).expand(
                eb.measure(large, large[large < 200])
            )


def test_draws_of_a_giant_are_many_although_it_counts_once():
    """Of 200 draws of 1,000 records about 60 are of one entity, which carries nearly all predicted links."""
    true = {i: 0 if i < 300 else i // 2 for i in range(1000)}
    pred = {i: k if i % 50 else 1000 + i for i, k in true.items()}
    drawn = [true[int(i)] for i in np.random.default_rng(1).integers(1000, size=200)]
    units = eb.measure(pred, {i: k for i, k in true.items() if k in set(drawn)})
    design = eb.UniformRecords(drawn)
    once = design.expand(units)
    z = once.weight * units.column(eb.columns.PREDICTED_LINKS)[once.unit]
    assert z.sum() ** 2 / (z @ z) < 1.1
    both = eb.Sample(units, eb.design.Calibrated(design))
    found = both.contributions([eb.columns.PREDICTED_LINKS, eb.columns.RECORDS]).sum(axis=0)
    assert found == pytest.approx([units.total(eb.columns.PREDICTED_LINKS), 1000], rel=1e-9)
    recall = [
        eb.engine.taylor(s, [m.pairwise_recall]).apply([m.pairwise_recall]).mean[0]
        for s in (both, eb.Sample(units, design))
    ]
    assert recall[0] == pytest.approx(recall[1], abs=0.002)
