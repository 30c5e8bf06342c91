"""Bootstrap: R's replicate weights, moments of the design, SciPy's intervals."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from test_census import population
from test_golden import GOLDEN, METRICS, R, pps, sample

import erbayes as eb
from erbayes import metrics as m
from erbayes.design.draws import DrawnUnits
from erbayes.engine import BCa, bootstrap
from erbayes.engine.fitted import fit_sample
from erbayes.engine.replicates import replicate_totals
from erbayes.metrics.intervals import EqualTailed

pytestmark = [pytest.mark.kernel, pytest.mark.lowest]
PR = (m.pairwise_precision, m.pairwise_recall, m.cluster_recall)


def drawn(seed=0, n=60, size=400):
    """A population and the entities of n records drawn uniformly, repeats kept."""
    pred, true = population(seed, size)
    draws = list(true.iloc[np.random.default_rng(seed).integers(0, size, n)])
    return pred, true, true[true.isin(draws)], draws


def given(monkeypatch, values):
    """Multipliers that are given."""
    values = np.asarray(values, dtype=float)
    monkeypatch.setattr(DrawnUnits, "multipliers", lambda self, replicates, rng: values)
    return {"replicates": len(values), "rng": rng()}


def rng(seed=1):
    return np.random.default_rng(seed)


def resample_totals(sample, metrics, number):
    return replicate_totals(fit_sample(sample, metrics), number, rng(), progress=False)[1]


@pytest.mark.parametrize("kind", ["bootstrap", "subbootstrap"])
def test_fixed_replicates_of_R(kind, monkeypatch):
    weights = pd.read_csv(GOLDEN / f"rep_{kind}_200.csv").to_numpy(dtype=float)
    weights = weights if weights.shape == (200, 60) else weights.T
    chosen = tuple(METRICS.values())
    found = bootstrap(pps(), chosen, **given(monkeypatch, weights))
    off = found.flat - found.replicated.plain
    case, compared = f"pps_wr_{kind}_200fixed_mse", 0
    for j, name in enumerate(METRICS):
        if (case, name, "se") in R.index:
            assert np.sqrt((off[:, j] ** 2).sum() / 199) == pytest.approx(R[case, name, "se"], rel=1e-10)
            compared += 1
    assert compared >= 6


DESIGNS = {
    "records": lambda draws: eb.UniformRecords(draws),
    "each draw": lambda draws: eb.UniformRecords(draws, repeats=True),
    "distinct": lambda draws: eb.DistinctEntities(len(draws)),
    "rounds": lambda draws: eb.design.Pooled([eb.UniformRecords(draws[:80]), eb.UniformRecords(draws[80:])]),
    "unresolved": lambda draws: eb.design.Responding(
        eb.UniformRecords(draws), [True] * len(draws) + [False] * 20
    ),
}


@pytest.mark.parametrize("name", DESIGNS)
def test_every_design_has_the_estimates_and_the_covariance_of_the_closed_form(name):
    pred, _, labels, draws = drawn(0, n=150)
    s = eb.Sample(eb.measure(pred, labels), DESIGNS[name](draws))
    chosen = [m.P_rec, m.pairwise_recall, m.rand]
    found = bootstrap(s, chosen, replicates=8000, rng=rng())
    np.testing.assert_array_equal(found.estimate, eb.engine.Taylor()(s, chosen).estimate)
    np.testing.assert_allclose(found.sd, found.other.sd, rtol=0.25)
    cov, values = eb.engine.taylor(s, chosen).cov, resample_totals(s, chosen, 8000)
    size = np.sqrt(np.maximum(np.outer(np.diag(cov), np.diag(cov)), 0))
    assert (np.abs(np.cov(values.T) - cov)[: len(cov)] <= 0.1 * size + 1e-9).all()


def test_BCa_of_a_skewed_estimate_is_another_interval():
    s = sample("s_srswor.csv", lambda d: eb.UniformClusters())[0]
    found = bootstrap(s, [m.pairwise_precision], replicates=4000, rng=rng())
    # the kinds themselves, since so few draws move it that the closed form takes their place in tables
    bca, plain = (kind.bounds(found, 0.9)[0] for kind in (BCa(), EqualTailed()))
    assert found.replicated.acceleration[0] != 0 and np.abs(bca - plain).max() > 0.005


def replicated(shares, monkeypatch):
    """Recall of 32 entities, half of them right; replicate b gives those right ones weight shares[b]."""
    truth = pd.Series(np.arange(64) // 2)
    s = eb.Sample(eb.measure(truth.where(truth < 16, 100 + np.arange(64)), truth), eb.UniformClusters())
    weights = np.outer(shares, np.arange(32) < 16) + np.outer(1 - np.asarray(shares), np.arange(32) >= 16)
    return bootstrap(s, [m.pairwise_recall], **given(monkeypatch, 2 * weights))


def test_BCa_counts_replicates_that_equal_the_estimate_by_half(monkeypatch):
    found = replicated([0.3, 0.5, 0.5, 0.5, 0.6, 0.7], monkeypatch)
    assert found.replicated.plain[0] == 0.5 and found.replicated.acceleration[0] == pytest.approx(
        0, abs=1e-12
    )
    z0 = stats.norm.ppf((1 + 3 / 2) / 6)
    at = stats.norm.cdf(2 * z0 + stats.norm.ppf([0.1, 0.9]))
    wanted = np.quantile([0.3, 0.5, 0.5, 0.5, 0.6, 0.7], at)
    np.testing.assert_allclose(found.uncut_interval(0.8, BCa())[0], wanted, rtol=1e-9)


@pytest.mark.parametrize(("shares", "side"), [([0.6, 0.7, 0.8], "lower"), ([0.1, 0.2, 0.3], "upper")])
def test_BCa_where_all_replicates_lie_on_one_side(shares, side, monkeypatch):
    low, high = replicated(shares, monkeypatch).uncut_interval(0.9, BCa())[0]
    assert shares[0] <= low <= high <= shares[-1]
    assert low == pytest.approx(0.6, abs=0.01) if side == "lower" else high == pytest.approx(0.3, abs=0.01)


def test_same_seed_same_replicates():
    one, two_ = (bootstrap(pps(), PR, replicates=50, rng=rng(7)).values for _ in range(2))
    assert (one == two_).all()
    assert (bootstrap(pps(), PR, replicates=50, rng=rng(8)).values != one).any()


def test_refusals():
    pred, _, labels, draws = drawn()
    units = eb.measure(pred, labels)
    one = eb.Sample(eb.measure({1: 1, 2: 1}, {1: 1, 2: 1}), eb.UniformClusters())
    with pytest.raises(eb.NotIdentified, match="a single draw has no bootstrap"):
        bootstrap(one, PR, rng=rng())
    assert len(bootstrap(eb.Sample(units, eb.UniformRecords(draws)), PR, replicates=2, rng=rng()).flat) == 2
