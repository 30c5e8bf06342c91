"""What a fit refuses, and when its draws are called bad: both sides of each bar, by chains made for it."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

pytest.importorskip("pymc", reason="pymc is not installed")

import erbayes as eb
from erbayes import bayes
from erbayes.bayes.data import Evidence
from erbayes.bayes.fit import Fit
from erbayes.bayes.importance import Adapted, Proposal, approximated, moments
from erbayes.bayes.model_average import draw_parts
from erbayes.bayes.population import ExpectedLinks, _draw_mean_share, _mark_steady_sizes

pytestmark = pytest.mark.slow

SAMPLE = eb.Sample(eb.measure({1: "a", 2: "a", 3: "b"}, {1: "x", 2: "x"}), eb.UniformClusters())


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


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: bayes.fast(None), "a Sample is needed, such as .*, not None"),
        (lambda: bayes.fast(SAMPLE.units), "a Sample is needed, such as .*, not Units"),
        (lambda: bayes.fast(SAMPLE, "zeta"), r"a model is an object such as SizeModel\(\), not 'zeta'"),
        (lambda: bayes.fast(SAMPLE, bayes.SizeModel), "SizeModel is a class"),
        (lambda: bayes.fast(SAMPLE, rng="x"), "rng must be a Generator, .*, not 'x'"),
    ],
)
def test_a_fit_needs_a_sample_a_model_and_a_seed(call, message):
    with pytest.raises(eb.DataError, match=message):
        call()


@pytest.mark.parametrize(("share", "matters"), [(0.01, True), (0.0099, False)])
def test_weights_of_a_negligible_law_need_not_be_reliable(share, matters, monkeypatch):
    adapted = SimpleNamespace(effective=600.0, smoothed=(None, 0.71))
    assert Adapted.unfinished(adapted, 500, share) is matters
    posterior = SimpleNamespace(
        khat=0.71,
        share=share,
        thetas=np.zeros((50, 2)),
        log_evidence=0.0,
        adapted=SimpleNamespace(by_chain=np.zeros(1)),
    )
    law = SimpleNamespace(log_flawless=-np.inf, drawn=lambda thetas, log_evidence, rng, **about: about)
    part = SimpleNamespace(models={"a": law}, probability={"a": 1.0})
    monkeypatch.setattr("erbayes.bayes.model_average.approximated", lambda *_: [posterior])
    about = draw_parts({"sizes": part}, 50, 1, np.random.default_rng(1))["sizes"]["a"]
    assert bool(about["problems"]) is matters


class Scripted:
    """A law of the proposals of which a share is effective, and which tells what it is asked for."""

    def __init__(self, law, first, *_):
        self.part, self.log_evidence, self.points, self.rounds = law, law.log_evidence, range(first), [first]

    @property
    def effective(self):
        return self.part.good * len(self.points)

    def unfinished(self, wanted, share):
        self.wanted = wanted
        return self.effective < wanted

    def round(self, number, of_tail):
        assert not of_tail
        self.rounds.append(number)
        self.points = range(len(self.points) + number)

    def approximation(self, draws, share):
        return self


def scripted(draws, goods, evidence, monkeypatch):
    monkeypatch.setattr("erbayes.bayes.importance.Adapted", Scripted)
    laws = [
        SimpleNamespace(good=good, log_evidence=e, program=None)
        for good, e in zip(goods, evidence, strict=True)
    ]
    return approximated(laws, draws, np.random.default_rng(1), np.full(len(laws), 1 / len(laws)))


@pytest.mark.parametrize(("draws", "first"), [(600, 150), (400, 150), (604, 151), (2000, 500)])
def test_a_first_round_is_a_quarter_of_the_draws_and_150_at_least(draws, first, monkeypatch):
    (law,) = scripted(draws, [2000.0], [0.0], monkeypatch)
    assert law.rounds == [first]


def test_effective_points_are_a_quarter_more_than_draws_and_a_fifth_of_an_unlikely_law(monkeypatch):
    laws = scripted(1000, [99.0] * 3, np.log([0.9, 0.09, 0.01]), monkeypatch)
    np.testing.assert_allclose([law.wanted for law in laws], 1250 * np.sqrt([0.9, 0.09, 0.04]), rtol=1e-12)


def test_a_later_round_has_four_fifths_of_the_missing_points_and_at_most_doubles_them(monkeypatch):
    (law,) = scripted(1000, [0.5], [0.0], monkeypatch)
    assert law.rounds[:4] == [250, 250, 500, 1000], "each as many as all before"
    assert law.rounds[4] == int(0.8 * (1250 / 1000 - 1) * 2000)


def test_covariances_shrink_towards_the_one_before_by_three_draws_per_coordinate():
    points, before = np.array([[1.0, 2.0], [3.0, -1.0], [0.0, 0.5], [2.0, 4.0]]), np.diag([2.0, 0.5])
    centre, cov = moments(np.full(4, 0.25), points, before)
    np.testing.assert_allclose(centre, points.mean(axis=0))
    np.testing.assert_allclose(cov, (4 * np.cov(points.T, bias=True) + 3 * 2 * before) / (4 + 3 * 2))


@pytest.mark.parametrize(("predicted", "steady"), [(47.0, False), (47.3, True)])
def test_sizes_that_move_links_by_three_hundredths_are_not_steady(predicted, steady):
    """One expected pair that is kept moves the number of links by √2 at most: √2/.03 is 47.14."""
    by_size = {"kept_square": np.ones((1, 1)), "foreign_square": np.zeros((1, 1))}
    data = {"size": np.array([2.0]), "predicted_links": predicted}
    assert _mark_steady_sizes(np.ones((1, 1)), by_size, data).tolist() == [steady]


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


def test_proposals_have_twenty_degrees_of_freedom():
    root = np.array([[1.0, 0.0], [0.5, 2.0]])
    wanted = stats.multivariate_t([1.0, 2.0], root @ root.T, df=20)
    points = np.random.default_rng(1).normal(0, 9, (50, 2))
    found = Proposal(np.array([1.0, 2.0]), root).log_density(points)
    np.testing.assert_allclose(found, wanted.logpdf(points), rtol=1e-9)


def test_the_known_number_of_links_has_a_spread_from_a_hundredth_to_a_half():
    links = SimpleNamespace(variance=np.array([0.0, 0.1, 0.24, 0.26, 9.0]), predicted=1.0)
    found = ExpectedLinks.relative_variance.fget(links)
    np.testing.assert_allclose(found, np.array([0.0, 0.1, 0.24, 0.25, 0.25]) + 0.01**2, rtol=1e-12)
