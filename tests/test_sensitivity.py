"""First-order laws, grids, tipping points, bias analysis. The laws are simulated here without the library."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import erbayes as eb
from erbayes import metrics as m
from erbayes import simulate as sim
from erbayes.bootstrap import RaoWu
from erbayes.labelling import Annotator, Beta, KeptRecords, MissedPieces
from erbayes.sensitivity import (
    FIXED,
    PRF,
    PROPORTIONAL,
    BiasAdjusted,
    ClosedForm,
    Mislabelled,
    Resampling,
    Restored,
    RestoredAdjusted,
    bias_analysis,
    by_pieces,
    corrected,
    grid,
    law_of,
    restored_analysis,
    tipping,
)
from erbayes.study import DrawClusters, DrawRecords, Taylor, study
from erbayes.units import COMMON_LINKS

P, R, F = PRF


def rng(seed=1):
    return np.random.default_rng(seed)


def pairs(x):
    return x * (x - 1) / 2


# An oracle: entities as lists of (records in the piece, records of its predicted cluster)


def towns(seed=1, entities=1500):
    """Split entities and merged ones, at random: two pieces, each alone; or whole, beside others."""
    source = np.random.default_rng(seed)
    found = []
    for _ in range(entities):
        size = int(source.integers(2, 30))
        if source.random() < 0.15:
            part = int(source.integers(1, size))
            found.append([(part, part), (size - part, size - part)])
        elif source.random() < 0.1:
            found.append([(size, size + int(source.integers(1, 30)))])
        else:
            found.append([(size, size)])
    return found


def metrics_of(answers, weights):
    """P and R of weighted answers, each a list of (n, m)."""
    common = true = predicted = 0.0
    for pieces, w in zip(answers, weights, strict=True):
        N = sum(n for n, _ in pieces)
        common += w * sum(pairs(n) for n, _ in pieces)
        true += w * pairs(N)
        predicted += w * sum(n * (k - 1) / 2 for n, k in pieces)
    return np.array([common / predicted, common / true])


def answers_of_everyone(found, u, v, source, weigh):
    """Every record is a sampled mention; its annotator starts at home. Weight 1/N as labelled, or 1/N as true."""
    answers, weights = [], []
    for pieces in found:
        N = sum(n for n, _ in pieces)
        for at, (size, _) in enumerate(pieces):
            for _ in range(size):
                mine = [(n, k) for j, (n, k) in enumerate(pieces) if j == at or source.random() >= u]
                home = mine.index(pieces[at])
                n, k = mine[home]
                mine[home] = (n + source.binomial(k - n, v), k)
                answers.append(mine)
                weights.append(1 / weigh(N, sum(n for n, _ in mine)))
    return metrics_of(answers, weights)


def units_of(found):
    """The same entities as a prediction and labels; foreign records are of nobody."""
    prediction, labels, record, cluster = {}, {}, 0, 0
    for entity, pieces in enumerate(found):
        for n, k in pieces:
            for j in range(k):
                prediction[record] = cluster
                if j < n:
                    labels[record] = entity
                record += 1
            cluster += 1
    return eb.measure(prediction, labels)


@pytest.mark.parametrize(("u", "v"), [(0.3, 0.0), (0.0, 0.3), (0.2, 0.2)])
def test_laws_under_uniform_records(u, v):
    found = towns()
    plain = answers_of_everyone(found, 0, 0, rng(), lambda true, seen: seen)
    seen = answers_of_everyone(found, u, v, rng(), lambda true, seen: seen)
    truth_P, truth_R = plain
    assert seen[0] - truth_P == pytest.approx(v * (1 - truth_P), abs=0.004)
    assert seen[1] - truth_R == pytest.approx(u * (1 - truth_R), rel=0.15, abs=0.003)
    if v == 0:
        assert seen[1] == pytest.approx(truth_R / (1 - u * (1 - truth_R)), abs=0.001)
        assert seen[0] == pytest.approx(truth_P, abs=0.001)


@pytest.mark.parametrize(("u", "v"), [(0.05, 0.0), (0.0, 0.05)])
def test_slopes_of_both_laws(u, v):
    """The library's corrections undo what the oracle's annotators did."""
    found = towns()
    units = units_of(found)
    for law, weigh, design in (
        (PROPORTIONAL, lambda true, seen: seen, eb.UniformRecords()),
        (FIXED, lambda true, seen: true, eb.UniformClusters()),
    ):
        truth = answers_of_everyone(found, 0, 0, rng(), weigh)
        seen = answers_of_everyone(found, u, v, rng(), weigh)
        census = eb.Sample(units, eb.UniformClusters(population=len(units)))
        backwards = [corrected(x, u, v, law) for x in (P, R)]
        moved = truth - eb.taylor(census, backwards).apply(backwards, order=1).mean
        assert moved == pytest.approx(seen - truth, abs=0.0015)
        assert law_of(design) is law


def test_many_kept_records_under_fixed_weights():
    """10 records in a cluster of 40, each of the 30 others kept with probability .4: C2(10) in expectation."""
    prediction = {(40 * k + i): k for k in range(31) for i in range(40)}
    labels = {(40 * k + i): k for k in range(31) for i in range(10 + k)}
    weights = pd.Series(binom(30, 0.4).pmf(range(31)), index=range(31))
    sample = eb.Sample(eb.measure(prediction, labels), eb.KnownWeights(weights, absolute=True))
    common = m.Metric("common", (COMMON_LINKS,), lambda x: x, ((COMMON_LINKS, 1.0),), m.POSITIVE, "TP")
    backwards = [corrected(common, 0.0, 0.4, FIXED)]
    assert eb.taylor(sample, backwards).apply(backwards, order=1).mean[0] == pytest.approx(45)


def test_under_fixed_weights_kept_records_barely_help_precision():
    """What a predicted cluster of two like entities gains in common links it gains in predicted ones."""
    found = towns()
    truth = answers_of_everyone(found, 0, 0, rng(), lambda true, seen: true)
    seen = answers_of_everyone(found, 0.0, 0.2, rng(), lambda true, seen: true)
    assert abs(seen[0] - truth[0]) < 0.5 * 0.2 * (1 - truth[0])


def people(records=20_000, seed=1):
    mechanism = sim.Chain((sim.Splits(0.15), sim.Merges(0.05)))
    return sim.simulate(sim.LogNormal(1.5, 0.7), mechanism, records, rng(seed))


@pytest.mark.parametrize("plan", [DrawRecords(), DrawClusters()])
def test_errors_are_undone(plan):
    """Missed and kept by the model, then corrected in closed form or by restoring."""
    u, v = 0.3, 0.1

    def on(adjust):
        return Mislabelled(by_pieces(u, v), lambda s, ms, level, r: adjust(s, ms, u, v, level, r))

    plain = Taylor(order=1)
    found = study(
        {"people": people()}, {"plan": plan}, [2000],
        {"plain": Mislabelled(by_pieces(u, v), plain), "closed": on(ClosedForm(plain)),
         "restored": on(Restored(plain, draws=2))},
        [R], repetitions=20, seed=1, progress=False,
    ).table().set_index("estimator")  # fmt: skip
    assert found.failures.sum() == 0
    assert found.bias["plain"] > 0.01
    assert abs(found.bias["closed"]) < 0.003
    assert abs(found.bias["restored"]) < 0.004


def some_sample(design=None, n=300):
    units = people().units
    chosen = np.sort(rng().choice(len(units), n, replace=False, p=units.size / units.size.sum()))
    return eb.Sample(units.take(chosen), design or eb.UniformRecords())


def test_grid_and_tipping_point_in_closed_form():
    sample = some_sample()
    plain = eb.taylor(sample, PRF).apply(PRF, order=1).mean
    closed = ClosedForm(Taylor(order=1))
    found = grid(sample, [0, 0.2], [0, 0.1, 0.3], adjust=closed, rng=rng())
    assert found.estimate.shape == (2, 3, 3) and len(found.table()) == 18
    assert found.estimate[0, 0] == pytest.approx(plain)
    assert found.estimate[:, 1, 0] == pytest.approx((plain[0] - 0.1) / 0.9)
    assert found.estimate[1, 0, 1] == pytest.approx(plain[1] * 0.8 / (1 - 0.2 * plain[1]))
    assert (found.lower <= found.estimate).all() and (found.estimate <= found.upper).all()
    assert (np.diff(found.estimate[..., 2], axis=0) < 0).all() and (np.diff(found.estimate[..., 2], axis=1) < 0).all()

    tip = tipping(sample, P, plain[0] - 0.05, adjust=closed, rng=rng())
    assert tip.v == pytest.approx(0.05 / (1 - plain[0] + 0.05), abs=1e-4)
    assert np.isnan(tip.u) and tip.both == pytest.approx(tip.v, abs=1e-4)
    tip = tipping(sample, R, plain[1] - 0.05, adjust=closed, rng=rng())
    assert corrected(R, tip.u, 0).name == "pairwise-recall"
    assert plain[1] * (1 - tip.u) / (1 - tip.u * plain[1]) == pytest.approx(plain[1] - 0.05, abs=1e-4)
    both = tipping(sample, F, plain[2] - 0.05, adjust=closed, rng=rng())
    assert both.both < min(both.u, both.v)
    assert tipping(sample, P, 0.999, rng=rng()).u == 0


def test_exact_perturbation_tips_where_the_closed_form_does():
    sample = some_sample()
    under = eb.taylor(sample, [R]).apply([R]).mean[0] - 0.02
    closed = tipping(sample, R, under, rng=rng())
    exact = tipping(sample, R, under, adjust=Restored(draws=10), rng=rng())
    assert exact.u == pytest.approx(closed.u, rel=0.25)
    b3 = grid(sample, [0, 0.3], [0], [m.b3_recall, m.cluster_recall], adjust=Restored(draws=5), rng=rng())
    assert (b3.estimate[1] < b3.estimate[0]).all()


def test_restoring_nothing_changes_nothing():
    sample = some_sample()
    plain = Taylor()(sample, PRF, 0.95, rng())
    found = Restored(draws=1)(sample, PRF, 0.0, 0.0, 0.95, rng())
    np.testing.assert_allclose(found.lower, plain.lower)
    np.testing.assert_allclose(ClosedForm()(sample, PRF, 0, 0, 0.95, rng()).upper, plain.upper)


def test_bias_analysis():
    sample = some_sample()
    none = bias_analysis(sample, 0.0, 0.0, rng=rng())
    np.testing.assert_allclose(none.plain.values, none.adjusted.values)
    sure = bias_analysis(sample, 0.2, 0.0, rng=rng())
    vague = bias_analysis(sample, Beta(2, 8), 0.0, rng=rng())
    assert sure.plain.mean[1] - sure.adjusted.mean[1] == pytest.approx(0.2 * (1 - sure.adjusted.mean[1]), rel=0.1)
    assert vague.adjusted.sd[1] > sure.adjusted.sd[1]
    assert set(sure.table()["labels"]) == {"plain", "adjusted"}
    exact = restored_analysis(sample, by_pieces(0.2, 0.0), draws=200, rng=rng())
    np.testing.assert_allclose(exact.adjusted.mean, sure.adjusted.mean, atol=0.01)
    np.testing.assert_allclose(exact.adjusted.sd, sure.adjusted.sd, rtol=0.3)
    with_scheme = bias_analysis(sample, 0.2, 0.0, engine=Resampling(RaoWu()), rng=rng())
    assert with_scheme.adjusted.mean[1] == pytest.approx(sure.adjusted.mean[1], abs=0.01)


def test_draws_of_the_closed_form_have_its_intervals():
    sample = some_sample()
    expected = eb.taylor(sample, PRF).apply(PRF)
    found = bias_analysis(sample, 0.0, 0.0, draws=10_000, rng=rng()).plain
    np.testing.assert_allclose(found.interval(0.9), expected.interval(0.9), atol=0.004)
    np.testing.assert_allclose(np.corrcoef(found.flat[:, 0], found.flat[:, 1])[0, 1],
                               (expected.cov / np.outer(expected.sd, expected.sd))[0, 1], atol=0.03)  # fmt: skip


def test_a_sample_without_error_is_not_sure():
    whole = eb.Sample(eb.measure({i: i // 3 for i in range(60)}, {i: i // 3 for i in range(60)}), eb.UniformRecords())
    found = bias_analysis(whole, Beta(2, 8), Beta(2, 8), rng=rng())
    expected = eb.taylor(whole, PRF).apply(PRF).interval()
    np.testing.assert_allclose(found.plain.interval()[:, 0], expected[:, 0], atol=0.05)
    assert np.isfinite(found.adjusted.values).all()


def test_datatree():
    pytest.importorskip("xarray")
    tree = bias_analysis(some_sample(), Beta(2, 8), 0.0, draws=10, rng=rng()).to_datatree()
    assert tree["posterior"]["pairwise-recall"].shape == (1, 10)
    assert set(tree["rates"].data_vars) == {"missed", "kept"}


def test_bad_input():
    with pytest.raises(eb.DataError, match="only metrics of common, true and predicted links"):
        corrected(m.b3_recall, 0.1, 0.1)
    with pytest.raises(eb.DataError, match=r"the share missed must lie in \[0, 1\); 1 of 2 do not"):
        corrected(R, [0.1, 1.0], 0.1)
    with pytest.raises(eb.DataError, match="no first-order law goes with KnownWeights"):
        law_of(eb.KnownWeights(pd.Series({"x": 1.0})))
    with pytest.raises(eb.DataError, match="a grid needs a sequence of shares"):
        grid(some_sample(), 0.1, [0.1], rng=rng())


RATE = Beta(30, 70)


def coverage(repetitions, restored=0):
    """n = 400 records; each sample has an annotator of its own, whose rates the prior describes."""
    model = Annotator(MissedPieces(RATE), KeptRecords(RATE))
    estimators = {
        "plain": Mislabelled(model, Taylor()),
        "adjusted": Mislabelled(model, BiasAdjusted(RATE, RATE)),
        "adjusted bootstrap": Mislabelled(model, BiasAdjusted(RATE, RATE, Resampling())),
        "no errors": Taylor(),
    }
    if restored:
        estimators["restored"] = Mislabelled(model, RestoredAdjusted(model, draws=restored))
    return study({"people": people(40_000)}, {"records": DrawRecords()}, [400], estimators, [P, R],
                 repetitions=repetitions, seed=1, progress=False, workers=1).table()  # fmt: skip


@pytest.mark.study
def test_the_bias_adjusted_interval_covers_where_the_plain_one_does_not():
    table = coverage(600, restored=100)
    print(table.to_string())
    rows = table.set_index(["estimator", "metric"]).coverage
    for metric in (P.name, R.name):
        assert rows["plain", metric] < 0.85
        assert abs(rows["adjusted", metric] - 0.95) < 0.03
        assert rows["restored", metric] > 0.9
