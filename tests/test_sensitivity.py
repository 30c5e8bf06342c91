"""First-order laws, grids, tipping points, bias analysis. The laws are simulated here without the library."""

import warnings
from inspect import signature

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import erbayes as eb
from erbayes import metrics as m
from erbayes.analysis.sensitivity import (
    FIXED,
    PRF,
    PROPORTIONAL,
    Adjusted,
    BiasAdjusted,
    Corrected,
    Law,
    Mislabelled,
    Restored,
    RestoredAdjusted,
    bias_analysis,
    breaks_down,
    by_pieces,
    corrected,
    grid,
    law_of,
    restored_analysis,
    tipping,
)
from erbayes.engine import BCa, Jackknife, PseudoDraws, RaoWu, Resampled, Taylor
from erbayes.labels import Annotator, Beta, KeptRecords, MissedPieces, Records, mislabel
from erbayes.metrics.columns import COMMON_LINKS
from erbayes.metrics.intervals import EqualTailed
from erbayes.metrics.uncertain import Draws
from erbayes.study import Entities, draw_samples, study
from erbayes.study import populations as sim

pytestmark = pytest.mark.slow

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


def tangled(seed=2, entities=700):
    """Split entities whose pieces lie beside others: two pieces in clusters of 1 to 20 foreign records."""
    source = np.random.default_rng(seed)
    found = []
    for _ in range(entities):
        first, second = source.integers(1, 12, 2)
        found.append([(int(n), int(n + source.integers(1, 20))) for n in (first, second)])
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


@pytest.mark.parametrize("population", [towns, tangled])
@pytest.mark.parametrize(("u", "v"), [(0.05, 0.0), (0.0, 0.05)])
def test_slopes_of_both_laws(u, v, population):
    """The library's corrections undo what the oracle's annotators did."""
    found = population()
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


SPLITS, MERGES = sim.Splits(0.15), sim.Merges(0.05)
BOTH = sim.Chain((SPLITS, MERGES))


def people(records=20_000, seed=1, mechanism=BOTH):
    return sim.simulate(sim.LogNormal(1.5, 0.7), mechanism, records, rng(seed))


@pytest.mark.parametrize("plan", [Records(), Entities()])
def test_errors_are_undone(plan):
    """Missed and kept by the model, then corrected in closed form or by restoring.

    All estimators see the same samples, so what errors of labelling do is their difference from perfect
    labels: its Monte Carlo error is a fifth of the bars or less.
    """
    u, v, plain = 0.3, 0.1, Taylor(order=1)

    def on(adjust):
        return Mislabelled(by_pieces(u, v), Adjusted(adjust, u, v, plain))

    runs = study(
        {"people": people()},
        {"plan": plan},
        [2000],
        {
            "perfect": plain,
            "plain": Mislabelled(by_pieces(u, v), plain),
            "closed": on(Corrected()),
            "restored": on(Restored(draws=2)),
        },
        [R],
        repetitions=100,
        seed=1,
    ).runs
    assert not runs.failed.any()
    estimates = runs.pivot(index="repetition", columns="estimator", values="estimate")
    off = estimates.drop(columns="perfect").sub(estimates["perfect"], axis=0)
    assert (off.std() / np.sqrt(len(off)) < 0.0006).all()
    assert off["plain"].mean() > 0.01
    assert abs(off["closed"].mean()) < 0.003
    assert abs(off["restored"].mean()) < 0.004


def some_sample(design=None, n=300, **more):
    units = people(**more).units
    chosen = np.sort(rng().choice(len(units), n, replace=False, p=units.size / units.size.sum()))
    return eb.Sample(units.take(chosen), design or eb.UniformRecords())


def test_grid_and_tipping_point_in_closed_form():
    sample = some_sample()
    plain = eb.taylor(sample, PRF).apply(PRF, order=1).mean
    plug_in = Taylor(order=1)
    found = grid(sample, [0, 0.2], [0, 0.1, 0.3], engine=plug_in, rng=rng())
    assert found.estimate.shape == (2, 3, 3) and len(found.table()) == 18
    assert found.estimate[0, 0] == pytest.approx(plain)
    assert found.estimate[1, 0, 1] == pytest.approx(plain[1] * 0.8 / (1 - 0.2 * plain[1]))
    assert (found.lower <= found.estimate).all() and (found.estimate <= found.upper).all()
    assert (np.diff(found.estimate[..., 2], axis=0) < 0).all() and (
        np.diff(found.estimate[..., 2], axis=1) < 0
    ).all()

    merged = some_sample(mechanism=MERGES)
    whole = eb.taylor(merged, [P]).apply([P], order=1).mean[0]
    at_home = grid(merged, [0, 0.2], [0, 0.1], [P], engine=plug_in, rng=rng())
    assert at_home.estimate[:, 1, 0] == pytest.approx((whole - 0.1) / 0.9)
    tip = tipping(merged, P, whole - 0.05, engine=plug_in, rng=rng())
    assert tip.v == pytest.approx(0.05 / (1 - whole + 0.05), abs=1e-4)
    assert np.isnan(tip.u) and tip.both == pytest.approx(tip.v, abs=1e-4)
    tip = tipping(sample, R, plain[1] - 0.05, engine=plug_in, rng=rng())
    assert corrected(R, tip.u, 0).name == "pairwise-recall"
    assert plain[1] * (1 - tip.u) / (1 - tip.u * plain[1]) == pytest.approx(plain[1] - 0.05, abs=1e-4)
    both = tipping(sample, F, plain[2] - 0.05, engine=plug_in, rng=rng())
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


def test_other_engines_in_grid_and_tipping_point():
    sample = some_sample()
    plain = tipping(sample, F, 0.92, rng=rng())
    for engine, kind in (
        (Resampled(RaoWu(), 200), BCa()),
        (Resampled(PseudoDraws(), 200), EqualTailed()),
        (Jackknife(), None),
    ):
        for adjust in (Corrected(), Restored(draws=1), Restored(draws=3)):
            if isinstance(adjust, Restored) and adjust.draws > 1 and isinstance(kind, BCa):
                continue  # an average of bootstraps is no bootstrap
            found = grid(sample, [0, 0.3], [0, 0.2], adjust=adjust, engine=engine, kind=kind, rng=rng())
            assert (found.lower < found.estimate).all() and (found.estimate < found.upper).all()
            assert (found.estimate[1, 1] < found.estimate[0, 0] - 0.005).all()
        assert tipping(sample, F, 0.92, engine=engine, rng=rng()).both == pytest.approx(plain.both, rel=0.05)


def test_the_closed_form_says_where_it_breaks_down():
    """Under fixed weights undoing many kept records takes more than labels hold, and would tell of P = 1."""
    sample = some_sample(eb.UniformClusters())
    shares = np.linspace(0, 0.9, 10)
    broken = breaks_down(sample, shares, shares, FIXED)
    assert not broken[:5].any() and broken[-3:].all()
    assert not breaks_down(sample, shares, shares, PROPORTIONAL).any()
    assert not breaks_down(sample, shares, 0.0, FIXED).any()
    found = grid(sample, [0], shares, [P], rng=rng())
    only_kept = breaks_down(sample, 0.0, shares, FIXED)
    np.testing.assert_array_equal(np.isnan(found.estimate[0, :, 0]), only_kept)
    with pytest.raises(
        eb.NotIdentified, match=r"at u = 0, v = 0.9 the closed form undoes more than labels hold"
    ):
        grid(sample, [0], [0.9], [P], rng=rng())
    assert np.isnan(tipping(sample, F, 0.9, rng=rng()).both)
    with pytest.warns(eb.Alarm, match=r"for \d\d\.\d% of the rates the closed form undoes more"):
        bias_analysis(sample, 0.0, Beta(6, 4), imputations=200, rng=rng())
    exact = Restored(model=lambda u, v: Annotator(kept=KeptRecords(v)), draws=5)
    assert np.isfinite(grid(sample, [0], [0.9], [P], adjust=exact, rng=rng()).estimate).all()


def test_restored_samples_of_strata_want_a_scheme_that_takes_them():
    whole = some_sample(eb.UniformClusters())
    strata = eb.Sample(whole.units, eb.Stratified({i: i % 2 for i in whole.units.ids}, {0: 1500, 1: 1500}))
    found = restored_analysis(
        strata, by_pieces(0.3, 0.1), engine=Resampled(RaoWu(), 100), imputations=100, rng=rng()
    )
    assert found.adjusted.mean[1] < found.plain.mean[1]
    with pytest.raises(eb.NotIdentified, match="one stratum drawn with replacement"):
        restored_analysis(strata, by_pieces(0.3, 0.1), rng=rng())


def test_restoring_nothing_changes_nothing():
    sample = some_sample()
    plain = Taylor()(sample, PRF).interval()
    for adjust in (Restored(draws=1), Restored(draws=3), Corrected()):
        found = Adjusted(adjust, 0.0, 0.0)(sample, PRF, rng())
        np.testing.assert_allclose(found.interval(), plain)


def test_bias_analysis():
    sample = some_sample()
    none = bias_analysis(sample, 0.0, 0.0, rng=rng())
    np.testing.assert_allclose(none.plain.values, none.adjusted.values)
    sure = bias_analysis(sample, 0.2, 0.0, rng=rng())
    vague = bias_analysis(sample, Beta(2, 8), 0.0, rng=rng())
    assert sure.plain.mean[1] - sure.adjusted.mean[1] == pytest.approx(
        0.2 * (1 - sure.adjusted.mean[1]), rel=0.1
    )
    assert vague.adjusted.sd[1] > sure.adjusted.sd[1]
    assert set(sure.table()["labels"]) == {"plain", "adjusted"}
    exact = restored_analysis(sample, by_pieces(0.2, 0.0), imputations=200, rng=rng())
    np.testing.assert_allclose(exact.adjusted.mean, sure.adjusted.mean, atol=0.01)
    np.testing.assert_allclose(exact.adjusted.sd, sure.adjusted.sd, rtol=0.3)
    with_scheme = bias_analysis(sample, 0.2, 0.0, engine=Resampled(RaoWu(), 100), rng=rng())
    assert with_scheme.adjusted.mean[1] == pytest.approx(sure.adjusted.mean[1], abs=0.01)


def test_draws_of_the_closed_form_have_its_intervals():
    sample = some_sample()
    expected = eb.taylor(sample, PRF).apply(PRF)
    found = bias_analysis(sample, 0.0, 0.0, imputations=1000, rng=rng()).plain
    np.testing.assert_allclose(found.interval(0.9), expected.interval(0.9), atol=0.004)
    np.testing.assert_allclose(
        np.corrcoef(found.flat[:, 0], found.flat[:, 1])[0, 1],
        (expected.cov / np.outer(expected.sd, expected.sd))[0, 1],
        atol=0.03,
    )


def test_a_sample_without_error_is_not_sure():
    whole = eb.Sample(
        eb.measure({i: i // 3 for i in range(60)}, {i: i // 3 for i in range(60)}), eb.UniformRecords()
    )
    found = bias_analysis(whole, Beta(2, 8), Beta(2, 8), rng=rng())
    expected = eb.taylor(whole, PRF).apply(PRF).interval()
    np.testing.assert_allclose(found.plain.interval()[:, 0], expected[:, 0], atol=0.05)
    assert np.isfinite(found.adjusted.values).all()


def test_datatree():
    pytest.importorskip("xarray")
    tree = bias_analysis(some_sample(), Beta(2, 8), 0.0, imputations=5, draws=2, rng=rng()).to_datatree()
    assert tree["posterior"]["pairwise-recall"].shape == (1, 10)
    assert set(tree["rates"].data_vars) == {"missed", "kept"}


# Restored labels under any engine


class Told(UserWarning):
    """Of an engine in these tests."""


def test_rates_and_restored_samples_go_together_with_draws_of_the_engine():
    """An engine that answers each sample with its mean size, how often it was asked, and 20 numbered draws."""
    sample, asked = some_sample(), []

    def engine(truth, metrics, source):
        asked.append(1)
        same = np.tile([truth.units.size.mean(), len(asked)], (20, 1))
        values = np.column_stack([same, np.arange(20)]).reshape(2, 10, 3)
        return Draws(("size", "asked", "number"), values, ((0, np.inf),) * 3)

    model = Annotator(MissedPieces(Beta(2, 8)), KeptRecords(0.0))
    found = restored_analysis(sample, model, [P, R], engine=engine, imputations=30, draws=4, rng=rng())
    assert len(asked) == 31
    assert found.plain.values.shape == (2, 10, 3) and found.adjusted.values.shape == (1, 120, 3)
    assert found.adjusted.flat[:, 1].tolist() == np.repeat(np.arange(2, 32), 4).tolist()
    chosen = found.adjusted.flat[:, 2].reshape(30, 4)
    assert all(len(set(row)) == 4 for row in chosen) and set(chosen.ravel()) == set(range(20))
    missed = found.rates.flat[:, 0]
    assert len(np.unique(missed)) == 30 and (found.rates.flat[:, 1] == 0).all()
    assert (np.diff(missed.reshape(30, 4)) == 0).all()
    assert np.corrcoef(missed, found.adjusted.flat[:, 0])[0, 1] > 0.8  # more missed, more restored
    assert (found.adjusted.flat[:, 0] >= found.plain.mean[0]).all()


def test_warnings_of_restored_samples_are_told_once():
    def engine(truth, metrics, source):
        if truth.units is not sample.units:
            warnings.warn("here", Told, stacklevel=1)
            if source.random() < 0.5:
                warnings.warn("there", RuntimeWarning, stacklevel=1)
        return Draws(("x",), source.random((1, 40, 1)), ((0, 1),))

    sample = some_sample()
    with pytest.warns() as told:
        restored_analysis(sample, by_pieces(0.1, 0.1), engine=engine, imputations=20, draws=2, rng=rng())
    assert [str(w.message) for w in told if w.category is Told] == [
        "in 20 of 20 restored samples, the first time: here"
    ]
    other = [str(w.message) for w in told if w.category is RuntimeWarning]
    assert len(other) == len(told) - 1 == 1 and 2 < int(other[0].split()[1]) < 18
    assert told[0].filename == __file__


def test_the_size_model_is_an_engine_like_any_other():
    """Compiled once with the tests of the Bayesian engine, whose model it is."""
    bayes = pytest.importorskip("erbayes.bayes")
    pop = people(4000)
    whole = draw_samples(Records(), pop.units, 150, 1, rng(5)).separate[0]
    seen = eb.Sample(mislabel(whole.units, by_pieces(0.6, 0.4), rng(6)), whole.design)
    engine, prior = bayes.Modelled(draws=400), Beta(600, 400)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bayes.NotConverged)
        model = Annotator(MissedPieces(prior), KeptRecords(0.4))
        found = restored_analysis(seen, model, [P, R], engine=engine, imputations=40, draws=20, rng=rng())
        honest = restored_analysis(
            seen, Annotator(), [P, R], engine=engine, imputations=2, draws=200, rng=rng()
        )
    np.testing.assert_allclose(honest.adjusted.mean, honest.plain.mean, atol=0.01)
    assert (found.adjusted.mean < found.plain.mean - 0.01).all()
    expected = restored_analysis(seen, model, [P, R], imputations=100, rng=rng())
    assert (np.abs(found.adjusted.mean - expected.adjusted.mean) < 0.6 * expected.adjusted.sd).all()
    gridded = grid(seen, [0, 0.6], [0.4], [P, R], adjust=Restored(draws=3), engine=engine, rng=rng()).estimate
    np.testing.assert_allclose(gridded[1, 0], found.adjusted.mean, atol=0.015)
    tree = found.to_datatree()
    assert tree["posterior"][P.name].shape == tree["rates"]["missed"].shape == (1, 800)
    assert tree["plain"][P.name].shape == (4, 100)


def test_bad_input():
    with pytest.raises(eb.DataError, match="only metrics of common, true and predicted links"):
        corrected(m.b3_recall, 0.1, 0.1)
    with pytest.raises(eb.DataError, match=r"the share missed must lie in \[0, 1\); 1 of 2 do not"):
        corrected(R, [0.1, 1.0], 0.1)
    with pytest.raises(eb.DataError, match="no first-order law goes with KnownWeights"):
        law_of(eb.KnownWeights(pd.Series({"x": 1.0})))
    with pytest.raises(eb.DataError, match="a grid needs a sequence of shares"):
        grid(some_sample(), 0.1, [0.1], rng=rng())
    for share in (1.0, -0.1, 1.2):
        with pytest.raises(eb.DataError, match=r"the share kept must lie in \[0, 1\)"):
            bias_analysis(some_sample(), 0.1, share, rng=rng())
    with pytest.raises(eb.DataError, match="imputations must be a whole number, 1 or more, not 0"):
        restored_analysis(some_sample(), Annotator(), imputations=0, rng=rng())

    def three(sample, metrics, source):
        return Draws(("x",), np.zeros((1, 3, 1)), ((0, 1),))

    with pytest.raises(eb.DataError, match="the engine has 3 draws of a sample, not 10: choose draws=3"):
        restored_analysis(some_sample(), Annotator(), engine=three, rng=rng())


# Coverage

RATE = Beta(30, 70)
MODEL = Annotator(MissedPieces(RATE), KeptRecords(RATE))
"""Each sample has an annotator of its own, whose rates the prior describes."""


def coverage(estimators, repetitions, records=40_000, n=400):
    """Samples and a population on which nothing was chosen."""
    found = study(
        {"people": people(records, seed=2)},
        {"records": Records()},
        [n],
        estimators,
        [P, R],
        repetitions=repetitions,
        seed=2,
    ).table()
    print(found.to_string())
    assert (found.failures == 0).all()
    return found.set_index(["estimator", "metric"]).coverage


@pytest.mark.study
def test_the_bias_adjusted_interval_covers_where_the_plain_one_does_not():
    rates = coverage(
        {
            "plain": Mislabelled(MODEL, Taylor()),
            "adjusted": Mislabelled(MODEL, BiasAdjusted(RATE, RATE)),
            "adjusted bootstrap": Mislabelled(MODEL, BiasAdjusted(RATE, RATE, Resampled(PseudoDraws(), 100))),
            "adjusted, known rates": Mislabelled(by_pieces(0.3, 0.3), BiasAdjusted(0.3, 0.3)),
            "restored": Mislabelled(MODEL, RestoredAdjusted(MODEL)),
            "no errors": Taylor(),
        },
        repetitions=600,
    )
    for metric in (P.name, R.name):
        assert rates["plain", metric] < 0.7
        for name in ("adjusted", "adjusted, known rates", "restored"):
            assert abs(rates[name, metric] - 0.95) < 0.027, name  # three Monte Carlo standard errors
        assert rates["adjusted bootstrap", metric] > 0.9  # not the default: .918 for P here


@pytest.mark.study
@pytest.mark.filterwarnings("ignore::erbayes.bayes.NotConverged")
def test_the_size_model_covers_when_its_labels_are_restored():
    bayes = pytest.importorskip("erbayes.bayes")
    engine = bayes.Modelled(draws=500)
    rates = coverage(
        {
            "plain": Mislabelled(MODEL, engine),
            "restored": Mislabelled(MODEL, RestoredAdjusted(MODEL, engine, imputations=30, draws=30)),
            "no errors": engine,
        },
        repetitions=100,
        records=20_000,
        n=200,
    )
    for metric in (P.name, R.name):
        assert rates["plain", metric] < rates["restored", metric] - 0.05
        assert rates["restored", metric] >= 0.88  # P(fewer than 88 of 100) is 2e-3 at a coverage of .95


@pytest.mark.parametrize(
    "function", [corrected, bias_analysis, restored_analysis, grid, tipping], ids=lambda f: f.__name__
)
def test_signatures_fit_into_a_tooltip(function):
    assert len(str(signature(function))) <= 320
    defaults = (p.default for p in signature(function).parameters.values() if p.default is not p.empty)
    assert max(len(repr(default)) for default in defaults) <= 40


def test_laws_have_short_names():
    assert [repr(law) for law in (PROPORTIONAL, FIXED)] == ["PROPORTIONAL", "FIXED"]
    own = Law(PROPORTIONAL.missed, PROPORTIONAL.kept)
    assert (
        repr(own) == "Law(nothing, missing_links, false_common_links, false_links, false_predicted_links)"
        and own == PROPORTIONAL
    )
