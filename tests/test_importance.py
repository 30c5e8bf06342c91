"""Importance sampling of densities whose moments and evidence are known, and of one that it must not trust."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

pytest.importorskip("arviz_stats", reason="arviz-stats is not installed")

from erbayes.bayes.importance import KHAT, Adapted, LightTails, approximated, resampled, smoothed, truncated

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


def test_coordinates_of_heavy_tails_bend_at_six():
    """|u|² = κ log(1 + |v|²/κ) with κ = 6, so that |v|² = 6 is |u|² = 6 log 2; others stay."""
    tails = LightTails(3, [(np.array([0, 1]), 1.0, 2.0)])
    theta = np.array([[1 + 2 * np.sqrt(6) * 0.6, 1 - 2 * np.sqrt(6) * 0.8, 7.0]])
    u = tails.u(theta)
    np.testing.assert_allclose(u[0], [0.6 * np.sqrt(6 * np.log(2)), -0.8 * np.sqrt(6 * np.log(2)), 7.0])
    np.testing.assert_allclose(tails.theta(u)[0], theta)


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


def test_weights_and_resampling():
    w = resampled(np.array([0.5, 0.0, 0.5]), 1000, rng())
    assert np.bincount(w, minlength=3).tolist() == [500, 0, 500]
    even, khat = smoothed(np.zeros(50))
    assert khat == -np.inf and even == pytest.approx(np.full(50, 0.02))
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
