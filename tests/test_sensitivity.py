"""Grids, tipping points, bias analysis. What errors of labelling do is simulated here without the library."""

import sys
import warnings
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from inspect import signature
from pathlib import Path

import numpy as np
import pytest

import erbayes as eb
from erbayes import metrics as m
from erbayes.analysis.sensitivity import PRF, grid, restored_analysis, tipping
from erbayes.analysis.sensitivity.grids import Restored
from erbayes.engine import BCa, Estimator, Jackknife, PseudoDraws, RaoWu, Resampled, Taylor
from erbayes.labels import Annotator, Beta, KeptRecords, MissedPieces, Records
from erbayes.labels.annotators.error_models import mislabel
from erbayes.metrics.intervals import EqualTailed
from erbayes.metrics.uncertain import Draws
from erbayes.study import UniformEntities, draw_samples, study
from erbayes.study import populations as sim

pytestmark = pytest.mark.slow
sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
Mislabelled = import_module("labelling").Mislabelled

P, R, F = PRF


def by_pieces(u, v):
    return Annotator(MissedPieces(u), KeptRecords(v))


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


def test_under_fixed_weights_kept_records_barely_help_precision():
    """What a predicted cluster of two like entities gains in common links it gains in predicted ones."""
    found = towns()
    truth = answers_of_everyone(found, 0, 0, rng(), lambda true, seen: true)
    seen = answers_of_everyone(found, 0.0, 0.2, rng(), lambda true, seen: true)
    assert abs(seen[0] - truth[0]) < 0.5 * 0.2 * (1 - truth[0])


SPLITS, MERGES = sim.Splits(0.15), sim.Merges(0.05)
BOTH = sim.Chain((SPLITS, MERGES))


@cache
def people(records=20_000, seed=1, mechanism=BOTH):
    return sim.simulate(sim.LogNormal(1.5, 0.7), mechanism, records, rng(seed))


@pytest.mark.parametrize("plan", [Records(), UniformEntities()])
def test_errors_are_undone(plan):
    """Missed and kept by the model, then restored.

    All estimators see the same samples, so what errors of labelling do is their difference from perfect
    labels: its Monte Carlo error is a fifth of the bars or less.
    """
    u, v, plain = 0.3, 0.1, Taylor(order=1)
    model = by_pieces(u, v)

    runs = study(
        {"people": people()},
        {"plan": plan},
        [2000],
        {
            "perfect": plain,
            "plain": Mislabelled(model, plain),
            "restored": Mislabelled(model, Restored(u, v, plain, draws=2)),
        },
        [R],
        repetitions=120,
        seed=1,
    ).runs
    assert not runs.estimate.isna().any()
    estimates = runs.pivot(index="repetition", columns="estimator", values="estimate")
    off = estimates.drop(columns="perfect").sub(estimates["perfect"], axis=0)
    assert (off.std() / np.sqrt(len(off)) < 0.0006).all()
    assert off["plain"].mean() > 0.01
    assert abs(off["restored"].mean()) < 0.004


def some_sample(design=None, n=300, **more):
    units = people(**more).units
    chosen = np.sort(rng().choice(len(units), n, replace=False, p=units.size / units.size.sum()))
    return eb.Sample(units.take(chosen), design or eb.UniformRecords())


def test_grid_and_tipping_point():
    """Restored estimates are those of formulas for entities in one piece, and of two pieces."""
    sample, plug_in = some_sample(mechanism=SPLITS), Taylor(order=1)
    plain = plug_in(sample, PRF).estimate
    found = grid(sample, [0, 0.2], [0, 0.1, 0.3], engine=plug_in, rng=rng())
    assert found.estimate.shape == (2, 3, 3) and len(found.table()) == 18
    assert found.estimate[0, 0] == pytest.approx(plain)
    assert found.estimate[1, 0, 1] == pytest.approx(plain[1] * 0.8 / (1 - 0.2 * plain[1]), abs=0.006)
    assert (found.lower <= found.estimate).all() and (found.estimate <= found.upper).all()
    assert (np.diff(found.estimate[..., 2], axis=0) < 0).all()

    # 12 records of each entity in a predicted cluster of 15: P_obs = 11/14
    record = np.arange(200 * 15)
    units = eb.measure(dict(enumerate(record // 15)), {int(i): int(i) // 15 for i in record if i % 15 < 12})
    merged, whole = eb.Sample(units, eb.UniformRecords()), 11 / 14
    at_home = grid(merged, [0, 0.2], [0, 0.1, 0.2], [P], engine=plug_in, rng=rng())
    expected = [(whole - v) / (1 - v) for v in (0, 0.1, 0.2)]
    assert at_home.estimate[1, :, 0] == pytest.approx(np.array(expected), abs=0.004)
    tip = tipping(merged, P, expected[1], engine=plug_in, rng=rng())
    assert tip.v == pytest.approx(0.1, abs=0.01)
    assert np.isnan(tip.u) and tip.both == pytest.approx(tip.v, abs=0.01)
    tip = tipping(sample, R, plain[1] - 0.02, engine=plug_in, rng=rng())
    assert plain[1] * (1 - tip.u) / (1 - tip.u * plain[1]) == pytest.approx(plain[1] - 0.02, abs=0.004)
    assert tipping(sample, R, 0.999, rng=rng()).u == 0
    b3 = grid(sample, [0, 0.3], [0], [m.b3_recall, m.cluster_recall], draws=5, rng=rng())
    assert (b3.estimate[1] < b3.estimate[0]).all()
    assert np.isfinite(grid(merged, [0], [0.9], [P], draws=5, rng=rng()).estimate).all()


def test_other_engines_in_grid_and_tipping_point():
    sample = some_sample()
    plain = tipping(sample, F, 0.92, draws=5, rng=rng())
    # ends of intervals need fewer replicates here than the value at a tipping point
    for engine, few, kind in (
        (Resampled(RaoWu(), 200), Resampled(RaoWu(), 60), BCa()),
        (Resampled(PseudoDraws(), 200), Resampled(PseudoDraws(), 60), EqualTailed()),
        (Jackknife(), Jackknife(), None),
    ):
        for draws in (1, 3):
            if draws > 1 and isinstance(kind, BCa):
                continue  # an average of bootstraps is no bootstrap
            one = Estimator(few, kind)
            found = grid(sample, [0, 0.3], [0, 0.2], draws=draws, engine=one, rng=rng())
            assert (found.lower < found.estimate).all() and (found.estimate < found.upper).all()
            assert (found.estimate[1, 1] < found.estimate[0, 0] - 0.005).all()
        tip = tipping(sample, F, 0.92, draws=5, engine=engine, rng=rng())
        assert tip.both == pytest.approx(plain.both, rel=0.05)
        assert kind is None or tip.both != plain.both, "replicates have noise of their own"


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
    for draws in (1, 3):
        found = Restored(0.0, 0.0, draws=draws)(sample, PRF, rng())
        np.testing.assert_allclose(found.interval(), plain)


def analysed(sample, u, v=0.0, engine=None, imputations=200):
    model = Annotator(MissedPieces(u), KeptRecords(v))
    return restored_analysis(sample, model, engine=engine or Taylor(), imputations=imputations, rng=rng())


def test_restored_analysis():
    sample = some_sample()
    none = analysed(sample, 0.0)
    np.testing.assert_allclose(none.plain.estimate, none.adjusted.estimate)
    sure, vague = analysed(sample, 0.2), analysed(sample, Beta(2, 8))
    assert sure.plain.mean[1] - sure.adjusted.mean[1] == pytest.approx(
        0.2 * (1 - sure.adjusted.mean[1]), rel=0.1
    )
    assert vague.adjusted.sd[1] > sure.adjusted.sd[1]
    assert set(sure.table()["labels"]) == {"plain", "adjusted"}
    default = restored_analysis(sample, by_pieces(0.2, 0.0), imputations=200, rng=rng())
    np.testing.assert_allclose(default.adjusted.mean, sure.adjusted.mean, atol=0.01)
    np.testing.assert_allclose(default.adjusted.sd, sure.adjusted.sd, rtol=0.3)
    with_scheme = analysed(sample, 0.2, engine=Resampled(RaoWu(), 100))
    assert with_scheme.adjusted.mean[1] == pytest.approx(sure.adjusted.mean[1], abs=0.01)


def test_draws_of_the_closed_form_have_its_intervals():
    sample = some_sample()
    expected = eb.engine.taylor(sample, PRF).apply(PRF)
    found = analysed(sample, 0.0, imputations=1000).plain
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
    found = analysed(whole, Beta(2, 8), Beta(2, 8))
    expected = eb.engine.taylor(whole, PRF).apply(PRF).interval()
    np.testing.assert_allclose(found.plain.interval()[:, 0], expected[:, 0], atol=0.05)
    assert np.isfinite(found.adjusted.values).all()


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
        found = restored_analysis(seen, model, [P, R], engine=engine, imputations=15, draws=20, rng=rng())
        honest = restored_analysis(
            seen, Annotator(), [P, R], engine=engine, imputations=2, draws=200, rng=rng()
        )
    np.testing.assert_allclose(honest.adjusted.mean, honest.plain.mean, atol=0.01)
    assert (found.adjusted.mean < found.plain.mean - 0.01).all()
    expected = restored_analysis(seen, model, [P, R], imputations=100, rng=rng())
    assert (np.abs(found.adjusted.mean - expected.adjusted.mean) < 0.6 * expected.adjusted.sd).all()
    gridded = grid(seen, [0, 0.6], [0.4], [P, R], draws=3, engine=engine, rng=rng()).estimate
    np.testing.assert_allclose(gridded[1, 0], found.adjusted.mean, atol=0.015)
    assert found.adjusted.values.shape == found.rates.values.shape == (1, 300, 2)
    assert found.plain.values.shape == (4, 100, 2) and found.rates.names == ("missed", "kept")


def test_bad_input():
    with pytest.raises(eb.DataError, match="a grid needs a sequence of shares"):
        grid(some_sample(), 0.1, [0.1], rng=rng())
    for shares in ([1.2], [-0.1], [0.1, 1.0]):
        with pytest.raises(eb.DataError, match=r"shares v must lie in \[0, 1\), not "):
            grid(some_sample(), [0.1], shares, rng=rng())
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


@dataclass(frozen=True)
class RestoredAdjusted:
    """`restored_analysis` as an engine."""

    model: Annotator
    engine: object = field(default_factory=lambda: Resampled(PseudoDraws(), 100))
    imputations: int = 200
    draws: int = 10

    def __call__(self, sample, metrics, rng=None):
        own = {"engine": self.engine, "imputations": self.imputations, "draws": self.draws}
        return restored_analysis(sample, self.model, metrics, **own, rng=rng, progress=False).adjusted


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
def test_the_restored_interval_covers_where_the_plain_one_does_not():
    rates = coverage(
        {
            "plain": Mislabelled(MODEL, Taylor()),
            "restored": Mislabelled(MODEL, RestoredAdjusted(MODEL)),
            "no errors": Taylor(),
        },
        repetitions=600,
    )
    for metric in (P.name, R.name):
        assert rates["plain", metric] < 0.7
        assert abs(rates["restored", metric] - 0.95) < 0.027  # three Monte Carlo standard errors


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


@pytest.mark.parametrize("function", [restored_analysis, grid, tipping], ids=lambda f: f.__name__)
def test_signatures_fit_into_a_tooltip(function):
    assert len(str(signature(function))) <= 320
    defaults = (p.default for p in signature(function).parameters.values() if p.default is not p.empty)
    assert max(len(repr(default)) for default in defaults) <= 40
