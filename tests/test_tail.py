"""The tail index of predicted sizes, by brute force, on Pareto tails, and in alarms."""

import numpy as np
import pytest
from scipy import optimize, stats

import erbayes as eb
from erbayes.study import populations as sim
from erbayes.units.tail import tail_index
from erbayes.units.units import KnownTotals


def known(sizes):
    size, count = np.unique(sizes, return_counts=True)
    return KnownTotals(size.astype(float), count.astype(float))


def test_the_shape_is_that_of_greatest_likelihood():
    """Of a Pareto density from start - 1/2 on."""
    sizes = sim.Zeta(2.4).draw(20_000, np.random.default_rng(1))
    found = tail_index(known(sizes))
    tail = sizes[sizes >= found.start]
    assert len(tail) == found.clusters

    def minus(a):
        return -stats.pareto.logpdf(tail, a, scale=found.start - 0.5).sum()

    best = optimize.minimize_scalar(minus, bounds=(0.1, 9), method="bounded", options={"xatol": 1e-9})
    assert found.shape == pytest.approx(best.x, rel=1e-5)
    assert found.lower < found.shape < found.upper
    k = found.clusters
    bounds = found.shape * stats.chi2.ppf([0.025, 0.975], 2 * k) / (2 * k)
    assert [found.lower, found.upper] == pytest.approx(bounds)
    assert np.log(found.upper / found.lower) == pytest.approx(4 * found.clusters**-0.5, rel=0.1)


@pytest.mark.parametrize("exponent", [2.2, 2.7])
def test_the_interval_covers_the_shape_of_pareto_tails(exponent):
    covered = []
    for seed in range(100):
        found = tail_index(known(sim.Zeta(exponent).draw(20_000, np.random.default_rng(seed))))
        covered.append(found.lower <= exponent - 1 <= found.upper)
    assert np.mean(covered) > 0.95 - 3 * (0.95 * 0.05 / 100) ** 0.5


def test_a_body_that_is_no_tail_is_left_out():
    body = np.repeat(np.arange(6, 15), 400)
    tail = np.floor(15 * np.random.default_rng(1).random(2000) ** (-1 / 1.5))
    found = tail_index(known(np.concatenate([body, tail])))
    assert found.start >= 13 and found.shape == pytest.approx(1.5, abs=0.15)


def test_few_clusters_have_no_tail():
    with pytest.raises(eb.NotIdentified, match="20 clusters of 6 records or more"):
        tail_index(known(np.array([1] * 100 + [7] * 19)))


def test_populations_and_alarms_say_it():
    people = sim.simulate(sim.Zeta(2.0, 300), sim.Merges(0.05), 20_000, 1)
    assert people.tail == tail_index(people.units.known)
    rng = np.random.default_rng(2)
    for _ in range(20):
        drawn = np.unique(rng.integers(len(people.units), size=60))
        found = eb.alarms(eb.Sample(people.units.take(drawn), eb.UniformClusters()), "pairwise-precision")
        heavy = [alarm for alarm in found if alarm.startswith("Heavy tail: ")]
        if heavy:
            assert f"; predicted {people.tail}" in heavy[0]
            return
    raise AssertionError("no sample had a heavy tail")
