"""What a fit refuses, and when its draws are called bad: both sides of each bar, by chains made for it."""

from types import SimpleNamespace

import numpy as np
import pytest

import erbayes as eb
from erbayes import bayes
from erbayes._internal.errors import Grade, Sentence
from erbayes.bayes.data import Evidence
from erbayes.bayes.fit import Fit
from erbayes.bayes.model import _draw_mean_share, expect_links

pytestmark = pytest.mark.slow

SAMPLE = eb.Sample(eb.measure({1: "a", 2: "a", 3: "b"}, {1: "x", 2: "x"}), eb.UniformClusters())


@pytest.mark.parametrize(("agreeing", "bad"), [(0.02, False), (0.01999, True)])
def test_draws_that_agree_with_the_known_links(agreeing, bad):
    parts = {"mates": SimpleNamespace(khat=0.71), "sizes": SimpleNamespace(khat=0.7)}
    fit = SimpleNamespace(parts=parts, draws=SimpleNamespace(agreeing=agreeing))
    first, *others = Fit.problems(fit)
    assert first.startswith("mates: importance weights are unreliable (Pareto k 0.71, above 0.7)")
    assert not any("importance" in p for p in others)
    assert any("agree with the number of predicted links" in p for p in Fit.problems(fit)) is bad


@pytest.mark.parametrize("call, message", [
    (lambda: bayes.fast(None), "a Sample is needed, such as .*, not None"),
    (lambda: bayes.fast(SAMPLE.units), "a Sample is needed, such as .*, not Units"),
    (lambda: bayes.fast(SAMPLE, "zeta"), r"a model is an object such as SizeModel\(\), not 'zeta'"),
    (lambda: bayes.fast(SAMPLE, bayes.SizeModel), "SizeModel is a class"),
    (lambda: bayes.fast(SAMPLE, rng="x"), "rng must be a Generator, .*, not 'x'"),
])  # fmt: skip
def test_a_fit_needs_a_sample_a_model_and_a_seed(call, message):
    with pytest.raises(eb.DataError, match=message):
        call()


@pytest.mark.parametrize(("broken", "normal"), [(30, False), (31, True)])
def test_the_mean_share_of_more_than_thirty_broken_entities_is_normal(broken, normal):
    """A normal share with a mean near 0 is cut at 0, where a beta distribution has no mass."""
    number = np.full((5000, 1), broken)
    share = _draw_mean_share(number, np.array([0.2]), np.array([0.8]), np.random.default_rng(1))
    assert bool((share == 0).any()) is normal


def test_sizes_reach_sixteen_times_the_largest_cluster():
    prediction = {r: r // 10 for r in range(4000)}
    sample = eb.Sample(eb.measure(prediction, {r: r // 10 for r in range(100)}), eb.UniformClusters())
    largest = Evidence.of(sample).data["size"].max()
    assert 160 <= largest < 160 * 2 ** (1 / 3)


def test_common_links_have_a_spread_from_a_hundredth_to_a_half():
    kept = np.array([0.0, 0.1, 0.24, 0.26, 9.0])[:, None]
    data = {"size": np.array([2.0]), "sampled_common_links": 1.0, "sampled_true_links": 0.0}
    *_, variance = expect_links(np.ones((5, 1)), {"kept": 0 * kept, "kept_square": kept}, data)
    wanted = np.array([0.0, 0.1, 0.24, 0.25, 0.25]) + 0.01**2
    np.testing.assert_allclose(variance, wanted, rtol=1e-12)


def test_a_note_about_balance_is_no_warning(monkeypatch):
    said = [Sentence("A note.", Grade.NOTE), Sentence("A caution.", Grade.CAUTION)]
    monkeypatch.setattr("erbayes.bayes.fit.out_of_balance", lambda sample: said)
    with pytest.warns() as raised:
        bayes.fast(SAMPLE, draws=50, rng=1)
    alarms = [str(w.message) for w in raised if w.category is eb.Alarm]
    assert alarms == ["A caution. A size model relies on the known total."]
