"""Importance sampling of densities whose moments and evidence are known, and of one that it must not trust."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

pytest.importorskip("arviz_stats", reason="arviz-stats is not installed")

from erbayes.bayes.importance import (
    KHAT,
    Adapted,
    LightTails,
    Proposal,
    approximated,
    moments,
    resampled,
    smoothed,
    truncated,
)

pytestmark = pytest.mark.slow  # the room imports PyMC, although this module does not


@dataclass
class Density:
    """A target by a function of θ, (K, d)."""

    log_density: Any
    d: int
    heavy_tails: list = field(default_factory=list)

    @property
    def start(self):
        return np.zeros(self.d)

    def log_densities(self, thetas):
        return np.atleast_1d(self.log_density(thetas))


def rng(seed=1):
    return np.random.default_rng(seed)


MEAN, COV = np.array([1.0, -2.0, 0.5]), np.array([[1.0, 0.8, 0.0], [0.8, 2.0, -0.3], [0.0, -0.3, 0.5]])


def normal(log_evidence=0.0):
    exact = stats.multivariate_normal(MEAN, COV)
    return Density(lambda x: exact.logpdf(x) + log_evidence, 3)


def test_a_normal_density_and_its_evidence():
    found = approximated(normal(-7.0), 4000, rng(), chains=4)
    assert found.log_evidence == pytest.approx(-7.0, abs=0.02) and found.khat < 0.5
    thetas = found.draw(1000)
    assert thetas.shape == (4, 1000, 3)
    np.testing.assert_allclose(thetas.mean((0, 1)), MEAN, atol=0.08)
    np.testing.assert_allclose(np.cov(thetas.reshape(-1, 3).T), COV, atol=0.15)


def test_a_skewed_density_by_quadrature():
    """exp(-e^x) e^(2x), a gamma in log scale, times a normal one about a curve of it."""

    def log_density(x):
        return 2 * x[:, 0] - np.exp(x[:, 0]) - 2 * (x[:, 1] - 0.5 * x[:, 0] ** 2) ** 2

    wanted = np.log(integrate.quad(lambda x: np.exp(2 * x - np.exp(x)), -30, 5)[0] * np.sqrt(np.pi / 2))
    found = approximated(Density(log_density, 2), 8000, rng(2))
    thetas = found.draw(8000)
    assert found.log_evidence == pytest.approx(wanted, abs=0.03)
    # log of a gamma(2) variable: mean digamma(2) = 1 - γ, variance π²/6 - 1
    assert thetas[..., 0].mean() == pytest.approx(1 - np.euler_gamma, abs=0.03)
    assert thetas[..., 0].var() == pytest.approx(np.pi**2 / 6 - 1, abs=0.05)
    second = 0.5 * (np.pi**2 / 6 - 1 + (1 - np.euler_gamma) ** 2)
    assert thetas[..., 1].mean() == pytest.approx(second, abs=0.05)


def test_a_block_with_a_heavy_tail():
    """A multivariate t prior that no data cut: its quantiles and evidence, which normal proposals miss."""
    exact = stats.multivariate_t([0.0, 0.0], 4 * np.eye(2), df=3)
    tails = [(np.array([0, 1]), 0.0, 2.0)]
    found = approximated(Density(lambda x: exact.logpdf(x) + 1.5, 2, tails), 8000, rng(3))
    assert found.log_evidence == pytest.approx(1.5, abs=0.03) and found.khat < 0.7
    # |x|²/(4 d) has an F distribution with d = 2 and 3 degrees of freedom
    square = (found.draw(8000)[0] ** 2).sum(-1) / 8
    for p in (0.5, 0.9, 0.99):
        assert np.mean(square > stats.f(2, 3).isf(1 - p)) == pytest.approx(1 - p, abs=0.02)


def test_tails_that_proposals_do_not_have_need_more_rounds_or_are_told(monkeypatch):
    """Cauchy tails: rounds follow until the Pareto shape is reliable, or it says that the points ran out."""
    cauchy = Density(lambda x: stats.cauchy.logpdf(x).sum(-1), 4)
    found, easy = approximated(cauchy, 500, rng(4)), approximated(normal(), 500, rng(4))
    assert len(found.points) > 2 * len(easy.points) and found.khat <= KHAT
    monkeypatch.setattr("erbayes.bayes.importance.MOST", 1)
    assert approximated(cauchy, 500, rng(4)).khat > KHAT


def test_rounds_are_drawn_where_weights_are_large():
    """A twentieth of the mass lies to the side of the rest and is wider, so that first weights are unreliable."""

    def log_density(x):
        main, side = stats.norm.logpdf(x).sum(-1), stats.norm.logpdf(x, 2, np.sqrt(2)).sum(-1)
        return np.logaddexp(main + np.log(0.95), side + np.log(0.05))

    found = approximated(Density(log_density, 6), 10_000, rng(2))
    assert -np.inf in found.counted, "such a round counts nothing for the evidence"
    assert found.khat <= KHAT and found.log_evidence == pytest.approx(0, abs=0.05)
    x = found.draw(10_000)[0]
    assert x.mean() == pytest.approx(0.05 * 2, abs=0.02)
    assert x.var() == pytest.approx(0.95 + 0.05 * (2 + 2**2) - 0.1**2, abs=0.05)
    far = 0.95 * stats.norm.sf(4) + 0.05 * stats.norm.sf(4, 2, np.sqrt(2))
    assert np.mean(x > 4) == pytest.approx(far, rel=0.15)


def test_a_tail_has_three_times_the_root_of_the_points():
    adapted = approximated(Density(lambda x: stats.t(3).logpdf(x).sum(-1), 3), 2000, rng(9))
    w, number = np.exp(adapted.log_w), int(3 * np.sqrt(len(adapted.points)))
    top = np.argsort(w)[-number:]
    excess = w[top] - w[top].min()
    wanted = np.average(adapted.points[top], axis=0, weights=excess)
    assert adapted._locate_tail()[0] == pytest.approx(wanted, rel=1e-9)


def test_chains_share_no_point():
    thetas = approximated(normal(2.0), 2000, rng(7), chains=4).draw(500)
    rows = [{tuple(theta) for theta in chain} for chain in thetas]
    assert all(not rows[i] & rows[j] for i in range(4) for j in range(i))


def test_an_answer_does_not_depend_on_the_seed_beyond_its_error():
    """Means over 20 seeds scatter like those of as many independent draws as are asked for, or less."""
    means = [approximated(normal(), 500, rng(seed)).draw(500).mean((0, 1)) for seed in range(20)]
    assert (np.std(means, axis=0) < 1.6 * np.sqrt(np.diag(COV) / 500)).all()
    again = approximated(normal(), 500, rng(3)).draw(500)
    np.testing.assert_array_equal(again, approximated(normal(), 500, rng(3)).draw(500))


def test_one_weight_that_holds_all_is_truncated():
    log_w = np.zeros(100)
    log_w[0] = 50.0
    cut = truncated(log_w)
    # one weight holds all: the mean is 1/100 of it, which is cut at √100 times the mean
    assert cut.sum() == pytest.approx(1) and cut[0] == pytest.approx(1, abs=1e-12)


def test_truncated_weights_are_at_most_the_root_of_their_number_times_their_mean():
    """One of 16 weights is 1,000 times each other, so that it is cut at √16 times the mean of all."""
    log_w = np.log([1000.0, *np.ones(15)])
    cut = 4 * 1015 / 16
    np.testing.assert_allclose(truncated(log_w), np.array([cut, *np.ones(15)]) / (cut + 15), rtol=1e-12)


def test_points_of_a_law_are_limited(monkeypatch):
    """Weights that never become reliable."""
    monkeypatch.setattr(Adapted, "smoothed", property(lambda self: (np.exp(self.log_w), 0.9)))
    assert len(approximated(normal(), 50, rng(1)).points) == 40 * 50


def test_systematic_resampling_keeps_frequencies():
    w = np.array([0.5, 0.05, 0.2, 0.25])
    weights = np.repeat(w / 25, 25)
    at = resampled(weights, 400, rng())
    np.testing.assert_allclose(np.bincount(at // 25, minlength=4), 400 * w, atol=1)
    assert (np.diff(at) >= 0).all()


def test_smoothed_weights():
    g = rng()
    x = g.standard_t(7, 20_000) * 1.2
    w, khat = smoothed(stats.norm(0.3, 1).logpdf(x) - stats.t(7, 0, 1.2).logpdf(x))
    assert w.sum() == pytest.approx(1) and khat < 0.5
    assert [w @ x, w @ x**2] == pytest.approx([0.3, 1.09], abs=0.04)
    even, khat = smoothed(np.zeros(500))
    np.testing.assert_allclose(even, 1 / 500)
    assert khat == -np.inf


def test_tails_without_a_shape_are_not_smoothed():
    log_w = np.repeat([0.0, -1.0, -2.0], [1, 60, 40])
    w, khat = smoothed(log_w)
    assert khat == np.inf
    np.testing.assert_allclose(w, np.exp(log_w) / np.exp(log_w).sum(), rtol=1e-12)


def test_proposals_are_t_distributions():
    centre, root = np.array([1.0, -2.0, 0.5]), np.linalg.cholesky(np.cov(rng().standard_normal((3, 20))))
    proposal = Proposal(centre, root)
    x = proposal.draws(20_000, rng())
    wanted = stats.multivariate_t(centre, root @ root.T, df=20).logpdf(x[:50])
    np.testing.assert_allclose(proposal.log_density(x[:50]), wanted, rtol=1e-9)
    for along in ((x - centre) @ np.linalg.inv(root).T).T:
        assert stats.kstest(along, stats.t(20).cdf).pvalue > 1e-3


def test_coordinates_in_which_heavy_tails_are_light():
    """There and back; the Jacobian by differences; t draws become nearly normal ones, by the formula with κ = 6."""
    tails = LightTails(5, [(np.array([0, 2, 4]), 0.0, 0.3), (np.array([1]), 2.0, 0.05)])
    u = 2 * rng().standard_normal((20, 5))
    theta, log_jacobian = tails.theta(u)
    np.testing.assert_allclose(tails.u(theta), u, rtol=1e-9)
    np.testing.assert_array_equal(theta[:, 3], u[:, 3])
    for at, theta_at, logs in zip(u, theta, log_jacobian, strict=True):
        slope = (tails.theta(at + 1e-6 * np.eye(5))[0] - tails.theta(at - 1e-6 * np.eye(5))[0]) / 2e-6
        assert np.linalg.slogdet(slope)[1] == pytest.approx(logs, abs=1e-5)
        np.testing.assert_allclose(theta_at[[0, 2, 4]] / at[[0, 2, 4]], theta_at[0] / at[0])
    at_centre, log_jacobian = tails.theta(np.zeros((1, 5)))
    np.testing.assert_allclose(at_centre[0], [0, 2, 0, 0, 0])
    assert log_jacobian[0] == pytest.approx(np.log(0.3**3 * 0.05), abs=1e-9)
    t = np.zeros((40_000, 5))
    t[:, 1] = stats.t(3, 2.0, 0.05).rvs(40_000, random_state=1)
    light = tails.u(t)[:, 1]
    second, fourth = (stats.t(3).expect(lambda v, k=k: (6 * np.log1p(v**2 / 6)) ** k) for k in (1, 2))
    assert fourth / second**2 - 3 == pytest.approx(0.63, abs=0.01)
    assert stats.kurtosis(light) == pytest.approx(fourth / second**2 - 3, abs=0.1)
    assert 3 < stats.kurtosis(t[:, 1])
    far = np.quantile(np.abs(t[:, 1] - 2) / 0.05, 0.9999)
    assert np.quantile(np.abs(light), 0.9999) == pytest.approx(np.sqrt(6 * np.log1p(far**2 / 6)), rel=0.01)


def test_blocks_in_the_tails_of_their_prior_are_centred_there():
    first, second = (np.array([0, 1]), 0.0, 1.0), (np.array([2]), 5.0, 0.1)
    tails = LightTails(3, [first, second])
    assert tails.about(np.array([0.5, 0.5, 5.0])).blocks == [first, second]
    assert tails.about(np.array([2.4, 0.4, 5.24])).blocks == [first, second]
    far = tails.about(np.array([3.0, 4.0, 5.5]))
    np.testing.assert_allclose(far.location, [3, 4, 5.5])
    np.testing.assert_allclose(far.scale, np.array([5, 5, 0.1 * 5]) / np.sqrt(6))
    assert tails.about(np.array([9.0, 0.0, 5.0])).blocks[1] == second
    theta, log_jacobian = LightTails(3, []).theta(np.ones((2, 3)))
    assert (theta == 1).all() and (log_jacobian == 0).all()


class Scripted:
    """Points of a target of which a share is effective, and which says what it is asked for."""

    khats = (0.5,)

    def __init__(self, target, first, *_):
        self.target, self.points, self.rounds, self.tails = target, range(first), [first], []

    @property
    def effective(self):
        return self.target * len(self.points)

    @property
    def khat(self):
        return self.khats[min(len(self.rounds), len(self.khats)) - 1]

    def round(self, number, of_tail):
        self.rounds.append(number)
        self.tails.append(of_tail)
        self.points = range(len(self.points) + number)


def scripted(draws, good, monkeypatch, khats=(0.5,)):
    monkeypatch.setattr("erbayes.bayes.importance.Adapted", Scripted)
    monkeypatch.setattr(Scripted, "khats", khats)
    return approximated(good, draws, np.random.default_rng(1))


@pytest.mark.parametrize(("draws", "first"), [(600, 150), (400, 150), (604, 151), (2000, 500)])
def test_a_first_round_is_a_quarter_of_the_draws_and_150_at_least(draws, first, monkeypatch):
    assert scripted(draws, 2000.0, monkeypatch).rounds == [first]


@pytest.mark.parametrize(("good", "more"), [(5.0, False), (4.99, True)])
def test_effective_points_are_a_quarter_more_than_draws(good, more, monkeypatch):
    assert (len(scripted(1000, good, monkeypatch).rounds) > 1) is more  # 250 points, 1,250 effective


def test_a_later_round_has_four_fifths_of_the_missing_points_and_at_most_doubles_them(monkeypatch):
    found = scripted(1000, 0.5, monkeypatch)
    assert found.rounds[:4] == [250, 250, 500, 1000], "each as many as all before"
    assert found.rounds[4] == int(0.8 * (1250 / 1000 - 1) * 2000) and not any(found.tails)


@pytest.mark.parametrize(("khat", "rounds"), [(0.7, [250]), (0.71, [250, 62, 78])])
def test_unreliable_weights_have_rounds_in_their_tail(khat, rounds, monkeypatch):
    found = scripted(1000, 99.0, monkeypatch, (khat, khat, 0.5))
    assert found.rounds == rounds and all(found.tails)


def test_covariances_shrink_towards_the_one_before_by_three_draws_per_coordinate():
    points, before = np.array([[1.0, 2.0], [3.0, -1.0], [0.0, 0.5], [2.0, 4.0]]), np.diag([2.0, 0.5])
    centre, cov = moments(np.full(4, 0.25), points, before)
    np.testing.assert_allclose(centre, points.mean(axis=0))
    np.testing.assert_allclose(cov, (4 * np.cov(points.T, bias=True) + 3 * 2 * before) / (4 + 3 * 2))
