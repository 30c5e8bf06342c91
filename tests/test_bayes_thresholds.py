"""What a fit refuses, and when its draws are called bad: both sides of each bar, by chains made for it."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import brentq

pytest.importorskip("pymc", reason="pymc is not installed")

from arviz_stats.base import array_stats

import erbayes as eb
from erbayes import bayes
from erbayes.bayes.fit import Fit
from erbayes.bayes.importance import Adapted
from erbayes.bayes.samplers import Chains, Importance, problems_of_chains

pytestmark = pytest.mark.slow

SAMPLE = eb.Sample(eb.measure({1: "a", 2: "a", 3: "b"}, {1: "x", 2: "x"}), eb.UniformClusters())
NOISE = np.random.default_rng(1).standard_normal((4, 500))


def chains(apart, correlation):
    """Four chains of autocorrelated draws, the first of them `apart` from the others."""
    found = NOISE.copy()
    for i in range(1, found.shape[1]):
        found[:, i] += correlation * found[:, i - 1]
    found[0] += apart
    return found


def problems(drawn, probability=1.0):
    return problems_of_chains(drawn[..., None], ["x"], probability)


@pytest.mark.parametrize(
    ("probability", "r_hat", "bad"),
    [(1.0, 1.0099, False), (1.0, 1.0101, True), (0.05, 1.184, False), (0.05, 1.185, True)],
)
def test_r_hat(probability, r_hat, bad):
    """√(1 + (1.01² - 1)/.05) is 1.1841."""
    apart = brentq(lambda d: array_stats.rhat(chains(d, 0), chain_axis=0, draw_axis=1) - r_hat, 0.1, 3)
    assert any("R-hat" in p for p in problems(chains(apart, 0), probability)) is bad


@pytest.mark.parametrize(
    ("diverging", "probability", "bad"),
    [(2, 1, False), (3, 1, True), (39, 0.05, False), (41, 0.05, True), (2000, 1e-4, False)],
)
def test_one_divergent_transition_in_a_thousand(diverging, probability, bad):
    """Of 2,000 draws of a law, its probability is the share that a fit takes."""
    told = {"diverging": (np.arange(2000) < diverging).reshape(4, 500)}
    part = SimpleNamespace(coordinates=["x"])
    found = Chains(NOISE[..., None], told).problems(part, probability)
    wanted = [f"{diverging} divergent transitions: raise target_accept, look at the priors"]
    assert found == (wanted if bad else [])


def test_a_law_that_hardly_matters_need_not_mix():
    stuck = chains(50.0, 0.0)
    assert problems(stuck) and problems(stuck, 0.3) and problems(stuck, 0.05)
    assert not problems(stuck, 1e-6)
    slow = np.cumsum(NOISE, axis=1)
    assert any("fewer than 200" in p for p in problems(slow, 0.5))


@pytest.mark.parametrize(("draws", "few"), [(402, False), (398, True)])
def test_a_hundred_effective_draws_per_chain(draws, few):
    def off(correlation):
        found = array_stats.ess(chains(0, correlation), chain_axis=0, draw_axis=1, method="bulk")
        return float(found) - draws

    told = problems(chains(0, brentq(off, 0, 0.95, xtol=1e-5)))
    assert any(p.startswith("398 effective draws of x, fewer than 400") for p in told) is few


@pytest.mark.parametrize(("agreeing", "bad"), [(100, False), (99.9, True)])
def test_draws_that_agree_with_the_known_links(agreeing, bad):
    fit = SimpleNamespace(
        draws=SimpleNamespace(problems=("divergences",), agreeing=agreeing),
        evidence=SimpleNamespace(predicted_links=1234.0),
        truth=None,
        population=SimpleNamespace(true=np.ones((1, 5))),
    )
    assert Fit.problems(fit)[0] == "divergences"
    assert any("agree with the known 1,234 predicted links" in p for p in Fit.problems(fit)) is bad


@pytest.mark.parametrize("fitted", [bayes.fast, bayes.nuts])
@pytest.mark.parametrize(
    "call, message",
    [
        (lambda fitted: fitted(None), "a Sample is needed, such as .*, not None"),
        (lambda fitted: fitted(SAMPLE.units), "a Sample is needed, such as .*, not Units"),
        (lambda fitted: fitted(SAMPLE, "zeta"), r"a model is an object such as SizeModel\(\), not 'zeta'"),
        (lambda fitted: fitted(SAMPLE, bayes.SizeModel), "SizeModel is a class"),
        (lambda fitted: fitted(SAMPLE, rng="x"), "rng must be a Generator, .*, not 'x'"),
    ],
)
def test_a_fit_needs_a_sample_a_model_and_a_seed(fitted, call, message):
    with pytest.raises(eb.DataError, match=message):
        call(fitted)


@pytest.mark.parametrize(("share", "matters"), [(0.01, True), (0.0099, False)])
def test_weights_of_a_negligible_law_need_not_be_reliable(share, matters, monkeypatch):
    adapted = SimpleNamespace(effective=600.0, smoothed=(None, 0.9))
    assert Adapted.unfinished(adapted, 500, share) is matters
    posterior = SimpleNamespace(
        khat=0.9, share=share, thetas=np.zeros((50, 2)), centre=np.zeros(2), log_evidence=0.0, start=None
    )
    law = SimpleNamespace(drawn=lambda thetas, log_evidence, rng, **about: about)
    part = SimpleNamespace(laws={"a": law}, probability={"a": 1.0})
    monkeypatch.setattr("erbayes.bayes.samplers.approximated", lambda *_: [posterior])
    monkeypatch.setattr("erbayes.bayes.samplers.find_spec", lambda _: None)
    ((about,),) = (of_part.values() for of_part in Importance(50)([part], np.random.default_rng(1)))
    assert bool(about["problems"]) is matters and not about["refitted"]
