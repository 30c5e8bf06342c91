"""Numba computes what NumPy computes, where a block says so: in studies, and in curves of many thresholds."""

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from checks import raises
from pytensor.link.numba.linker import NumbaLinker
from test_bayes_draws import SIMPLE, sample

import erbayes as eb
from erbayes import bayes
from erbayes import metrics as m
from erbayes.bayes import engine, programs
from erbayes.bayes.data import Evidence
from erbayes.bayes.model import Sizes
from erbayes.bayes.programs import CompiledPart, ParameterDraws
from erbayes.engine.named import Advised
from erbayes.labels import Records
from erbayes.metrics.intervals import EqualTailed
from erbayes.study import study
from erbayes.study.populations import Misattribution, Zeta, simulate

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::erbayes.bayes.NotConverged")]
P, R = m.pairwise_precision, m.pairwise_recall
MEAN, SHAPE = bayes.NormalPrior(1.5, 1.0), bayes.NormalPrior(0.0, 1.5)


def by_numba():
    return programs._BY_NUMBA.get()


@pytest.mark.parametrize("part", [Sizes(bayes.LogNormalSizes()), bayes.Retention(), bayes.Mates()])
def test_numba_has_the_densities_and_quantities_of_numpy(part):
    compiled = CompiledPart.of(part, Evidence.of(sample("clusters")).data)
    theta = compiled.start + 0.3 * np.random.default_rng(1).standard_normal((50, len(compiled.start)))
    drawn = ParameterDraws(theta[None], np.zeros((1, 50), dtype=np.int64))
    plain, quantities = compiled.log_densities(theta), compiled.evaluated(drawn)
    with bayes.compiled():
        assert compiled.log_densities(theta) == pytest.approx(plain, rel=1e-9)
        for name, values in compiled.evaluated(drawn).by_size.items():
            assert np.allclose(values, quantities.by_size[name], rtol=1e-9, atol=1e-12), name
    both = {(name, numba) for name in ("many", "log_densities") for numba in (False, True)}
    assert both == set(compiled.program._functions), "one function of each kind"
    linkers = {type(f.maker.linker) for (_, numba), f in compiled.program._functions.items() if numba}
    assert linkers == {NumbaLinker}


def test_a_block_ends_and_threads_have_their_own():
    with ThreadPoolExecutor(1) as thread, bayes.compiled():
        assert by_numba() and not thread.submit(by_numba).result()
        with bayes.compiled():
            assert by_numba()
        assert by_numba()
    assert not by_numba()
    with pytest.raises(ZeroDivisionError), bayes.compiled():
        1 / 0  # noqa: B018
    assert not by_numba()


@pytest.fixture
def asked(monkeypatch):
    """The draws that a fit is asked for, and whether Numba computes it; there is no fit."""
    calls = []

    def fast(sample, model, *, draws, rng):
        calls.append((draws, by_numba()))
        raise eb.DataError("no fit")

    monkeypatch.setattr(engine, "fast", fast)
    return calls


@pytest.mark.parametrize("estimator, draws", [
    (bayes.Modelled(), 250),
    (bayes.Modelled(draws=700), 700),
    (bayes.Modelled(weight=1), 250),
    (eb.engine.Estimator(bayes.Modelled(), EqualTailed()), 250),
    ("size model", 250),
    ("posterior", 250),
])  # fmt: skip
def test_a_study_compiles_and_asks_for_few_draws(estimator, draws, asked):
    people = simulate(Zeta(2.5, 30), Misattribution(0.1), 500, 1)
    runs = study({"a": people}, {"b": Records()}, [20], {"c": estimator}, [R], repetitions=2, seed=1)
    assert asked == 2 * [(draws, True)] and runs.table()["failures"].tolist() == [2]


def test_the_advised_engine_of_a_study_has_few_draws_too(asked, monkeypatch):
    chosen = bayes.Modelled(), "because"
    monkeypatch.setattr("erbayes.engine.named.choose_engine", lambda sample, metrics: chosen)
    for advised in (Advised(), Advised().for_study()):
        raises(eb.DataError, "no fit", advised, sample("clusters"), [R], 1)
    assert asked == [(10_000, False), (250, True)]


@pytest.mark.parametrize("number, wanted", [(1, (10_000, False)), (50, (10_000, False)), (51, (1000, True))])
def test_many_predictions_are_compiled(number, wanted, asked):
    raises(eb.DataError, "no fit", bayes.Modelled().paired, [sample("clusters")] * number, [R], 1)
    assert asked == [wanted]


@pytest.mark.parametrize("distribution, priors", [
    (pm.NegativeBinomial, {"mu": (MEAN, pt.exp), "alpha": (SHAPE, pt.exp)}),
    (pm.Geometric, {"p": (bayes.NormalPrior(-1, 1), pt.sigmoid)}),
])  # fmt: skip
def test_a_distribution_of_pymc_is_a_size_family(distribution, priors):
    people = simulate(Zeta(2.5, 30), Misattribution(0.1), 2000, 1)
    model = bayes.SizeModel(sizes=bayes.size_family(distribution, **priors))
    fit = bayes.fast(sample("records"), model, draws=400, rng=1)
    other = bayes.fast(sample("records"), SIMPLE, draws=400, rng=1)
    assert fit.apply([P, R]).mean == pytest.approx(other.apply([P, R]).mean, abs=0.05)
    lower, upper = bayes.prior(people.pred, model, "recall", draws=400, rng=1).interval()[0]
    assert lower < 0.4 and upper > 0.9


def test_the_weights_are_those_of_the_distribution():
    family = bayes.size_family(pm.Geometric, p=(bayes.NormalPrior(0, 1), pt.sigmoid))
    with pm.Model() as model:
        weights = family.log_weights(
            {"size": pt.constant([1.0, 2.0, 9.5]), "width": pt.constant([1.0, 1.0, 3.0])}
        )
        found = model.compile_fn(weights, inputs=model.free_RVs, mode="FAST_COMPILE")(
            {"size_p": np.log(0.25 / 0.75)}
        )
    wanted = [0.25, 0.25 * 0.75, 3 * 0.25 * 0.75**8]
    assert np.exp(found) == pytest.approx(np.array(wanted))


def test_other_distributions_are_refused():
    pair = (SHAPE, pt.exp)
    for wrong in (pm.Normal, pm.Geometric.dist(0.5), "Geometric"):
        raises(eb.DataError, "size_family takes a discrete distribution", bayes.size_family, wrong, p=pair)
    with pytest.raises(eb.DataError, match="'p' of a size family must be a prior and a function"):
        bayes.size_family(pm.Geometric, p=SHAPE)
    for said, wrong in (("mean", {"mean": pair}), ("nothing", {}), ("p", {"p": (SHAPE, math.exp)})):
        with pytest.raises(eb.DataError, match=f"Geometric cannot be made of {said}: "):
            bayes.size_family(pm.Geometric, **wrong)
    short = bayes.size_family(pm.Bernoulli, p=(SHAPE, pt.sigmoid))
    with pytest.raises(eb.DataError, match="the log density of Bernoulli is nan where its sampler starts"):
        bayes.fast(sample("clusters"), bayes.SizeModel(sizes=short), draws=1000, rng=1)
