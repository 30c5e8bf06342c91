"""Draws by enumeration: over all samples of tiny populations, totals and their variances are unbiased."""

from dataclasses import replace
from itertools import combinations, combinations_with_replacement, product
from math import factorial, prod

import numpy as np
import pytest
from scipy.sparse import csr_array

from erbayes.design import draws as d
from erbayes.design.draws import Round

SIZES = [np.array([3, 2, 1, 1]), np.array([4, 2, 2, 1, 1])]


class World:
    """Entities of known sizes with three columns, and records of two classes."""

    def __init__(self, sizes, seed=3):
        rng = np.random.default_rng(seed)
        self.sizes, self.K, self.N = sizes, len(sizes), int(sizes.sum())
        self.truth = np.repeat(np.arange(self.K), sizes)
        self.y = np.column_stack([sizes, rng.random(self.K), rng.random(self.K) * sizes])
        self.p = sizes / self.N
        self.code = np.append([0, 1], rng.integers(0, 2, self.N - 2))
        q = np.bincount(self.truth, self.code + 0.3)
        self.q = q / q.sum()

    def of_class(self, g):
        """Chances of entities at a draw among the records of a class."""
        return np.bincount(self.truth[self.code == g], minlength=self.K) / (self.code == g).sum()


@pytest.fixture(params=SIZES, ids=lambda s: f"{len(s)} entities")
def world(request):
    return World(request.param)


def sequences(*parts):
    """All n draws with chances p of each part, whose order says nothing, with their probabilities."""
    for drawn in product(*(combinations_with_replacement(np.flatnonzero(p), n) for n, p in parts)):
        chance = prod(count_orders(s) * np.prod(p[list(s)]) for s, (_, p) in zip(drawn, parts, strict=True))
        yield chance, np.concatenate(drawn)


def count_orders(drawn):
    return factorial(len(drawn)) // prod(factorial(drawn.count(x)) for x in set(drawn))


def contribute(draws, y):
    return draws.weight[:, None] * y[draws.unit]


def judge(y, samples):
    """Assert that mean totals are those of all entities, and the mean variance that of totals, given a key."""
    found = {}
    for chance, draws, given in samples:
        Z = contribute(draws, y)
        t = Z.sum(axis=0)
        parts = 1.0, t, np.outer(t, t), draws.covariance(Z)
        sums = found.setdefault(given, [0.0] * len(parts))
        found[given] = [a + chance * b for a, b in zip(sums, parts, strict=True)]
    for given, (mass, t, square, V) in found.items():
        t, square, V = t / mass, square / mass, V / mass
        np.testing.assert_allclose(t, y.sum(axis=0), rtol=1e-12, err_msg=str(given))
        variance = square - np.outer(t, t)
        if np.min(given) != 1:  # a class of one resolved draw has no unbiased variance
            np.testing.assert_allclose(V, variance, atol=1e-11 * np.abs(variance).max(), err_msg=str(given))


def once(units, *rounds):
    return d.count_once(np.asarray(units), [Round(*one) for one in rounds])


def test_rounds(world):
    """Link ends after records, a round without replacement after one with, and strata of records."""
    p, q, N = world.p, world.q, world.N
    judge(world.y, ((c, once(s, (2, p), (2, q)), 0) for c, s in sequences((2, p), (2, q))))
    others = [list(s) for s in combinations(range(N), 2)]
    both = ((c / len(others), np.append(s, world.truth[o])) for c, s in sequences((2, p)) for o in others)
    judge(world.y, ((c, once(s, (2, p), (2, p, N)), 0) for c, s in both))
    f, a = world.of_class(0), world.of_class(1)
    judge(world.y, ((c, once(s, (2, f), (2, a)), 0) for c, s in sequences((2, f), (2, a))))


def test_draws_of_an_entity_that_is_gone_count_nothing(world):
    """Totals are those of the entities that are left, whose chances and number of draws stay as they were."""
    p, gone = world.p, 1
    position = np.insert(np.arange(world.K - 1), gone, -1)

    def samples(draw):
        for chance, s in sequences((3, p)):
            found = draw(s).at(position)
            assert found.order.tolist() == position[s][s != gone].tolist()
            yield chance, found, 0

    for draw in (lambda s: once(s, (3, p)), lambda s: d.count_each(s, 1 / (3 * p[s]))):
        judge(np.delete(world.y, gone, axis=0), samples(draw))


def test_units_that_share_records():
    """Entities by careful labels of two of four draws, and others by cheap labels of these two and of all."""
    world = World(SIZES[0])
    N, K = world.N, world.K
    cheap = np.array([0, 0, 1, 1, 1, 2, 2])
    q = np.bincount(cheap) / N
    J = len(q)
    of_cheap = np.random.default_rng(8).random((J, 3))
    y = np.vstack([world.y, -0.7 * of_cheap, 0.7 * of_cheap])  # what a correction of weight .7 leaves
    rounds = (2, np.concatenate([world.p, q, q])), (2, np.concatenate([0 * world.p, 0 * q, q]))
    overlap = np.zeros((len(y), len(y)))
    for c, e in zip(world.truth, cheap, strict=True):
        for one, other in ((c, K + e), (c, K + J + e), (K + e, K + J + e)):
            overlap[[one, other], [other, one]] += 1 / N

    def samples():
        for few, rest in product(combinations_with_replacement(range(N), 2), repeat=2):
            s, few, chance = [*few, *rest], list(few), count_orders(few) * count_orders(rest) / N**4
            drawn = np.concatenate([world.truth[few], K + cheap[few], K + J + cheap[s]])
            yield chance, d.count_once(drawn, [Round(*x) for x in rounds], overlap=csr_array(overlap)), 0

    judge(y, samples())


@pytest.mark.parametrize("classes", [1, 2])
def test_resolved_draws_of_a_class_are_a_round(classes):
    """Given how many draws of each class are resolved, with chances to be so that depend on the class."""
    world = World(SIZES[0])
    code = world.code * (classes - 1)
    chance = np.array([0.8, 0.5])[code]
    p = [world.p] if classes == 1 else [world.of_class(0), world.of_class(1)]

    def samples():
        for drawn in combinations_with_replacement(product(range(world.N), [True, False]), 3):
            s, r = map(np.array, zip(*drawn, strict=True))
            number = np.bincount(code[s][r], minlength=classes)
            if number.min() > 0:
                mass = count_orders(drawn) * np.prod(np.where(r, chance[s], 1 - chance[s])) / world.N**3
                rounds = zip(number.tolist(), p, strict=True)
                yield mass, once(world.truth[s][r], *rounds), tuple(number)

    judge(world.y, samples())


def test_independent_units(world):
    """Means, variances, and third moments of totals, with 0 for the empty sample."""
    pi, wanted = np.minimum(world.p * 2.2, 0.9), world.y.sum(axis=0)
    found = np.zeros((3, 3))
    third = np.prod(1 - pi) * -(wanted**3)
    for k in range(1, world.K + 1):
        for c in map(list, combinations(range(world.K), k)):
            chance = np.prod(np.where(np.isin(np.arange(world.K), c), pi, 1 - pi))
            draws = d.count_independent(np.array(c), pi[c])
            Z = contribute(draws, world.y)
            t, V = Z.sum(axis=0), np.diag(draws.covariance(Z))
            found += chance * np.array([t, V, draws.third @ Z**3])
            third += chance * (t - wanted) ** 3
    np.testing.assert_allclose(found, [wanted, (1 - pi) / pi @ world.y**2, third], rtol=1e-10)


def test_multipliers_have_the_third_moments_of_their_rows():
    draws = d.count_independent(np.arange(4), np.array([0.3, 0.4, 0.6, 0.8]))
    off = draws.multipliers(400_000, np.random.default_rng(2)) - 1
    se = (off**3).std(axis=0) / np.sqrt(len(off))
    assert (np.abs((off**3).mean(axis=0) - draws.third) < 4 * se).all()


def test_fixed_size_is_the_mean_over_pairs():
    """Hartley and Rao, pair by pair."""
    rng = np.random.default_rng(5)
    pi, Z = np.append(rng.random(5) * 0.9, 1.0), rng.normal(size=(6, 2))
    n, Q = 5, pi[:5] @ pi[:5]
    wanted = sum(
        (1 - pi[s] - pi[t] + Q / n) * np.outer(Z[s] - Z[t], Z[s] - Z[t]) for s, t in combinations(range(5), 2)
    )
    found = d.count_fixed(np.arange(6), pi, Q + 1).covariance(Z)
    np.testing.assert_allclose(found, wanted / (n - 1), rtol=1e-12)


def test_weights_by_hand():
    """Sizes 2 and 1 of 4 records, and draws x, x, y: two rows."""
    draws = once([0, 0, 1], (3, np.array([0.5, 0.25])))
    assert draws.unit.tolist() == [0, 1] and draws.order.tolist() == [0, 0, 1]
    np.testing.assert_allclose(draws.weight, [1 / (1 - 0.5**3), 1 / (1 - 0.75**3)], rtol=1e-14)


def test_many_records_count_each_draw_and_an_order_changes_nothing():
    few = once([0, 1, 2], (3, np.array([3e-7, 2e-7, 1e-7])))
    each = d.count_each(np.arange(3), few.weight)
    Z = np.random.default_rng(1).normal(size=(3, 2))
    np.testing.assert_allclose(few.covariance(Z), each.covariance(Z), rtol=1e-5)
    p = np.array([0.5, 0.25, 0.2])
    one, other = once([0, 2, 1, 2], (4, p)), once([2, 1, 0, 0], (4, p))
    np.testing.assert_array_equal(one.weight, other.weight)
    np.testing.assert_array_equal(one.covariance(Z), other.covariance(Z))


def test_many_chances_share_classes(monkeypatch):
    rng = np.random.default_rng(2)
    p = rng.random(700) ** 2 / 300 + 1e-6
    later = rng.random(700) < 0.5  # whose chances are in a second round alone
    rounds = (40, np.where(later, 0, p)), (60, np.where(later, p, 0))
    few = once(np.arange(700), *rounds)
    assert few.A.shape[1] <= 2 * (d.MOST_CLASSES + 1)
    Z = np.column_stack([rng.random(700), later]) * few.weight[:, None]
    monkeypatch.setattr(d, "MOST_CLASSES", 1000)
    np.testing.assert_allclose(few.covariance(Z), once(np.arange(700), *rounds).covariance(Z), rtol=1e-3)


def some_draws():
    """Draws of each kind, of about twelve rows."""
    rng = np.random.default_rng(7)
    p = rng.dirichlet(np.ones(14))
    s = rng.choice(14, 20, p=p)
    h = np.arange(12) // 4
    yield "once", once(s, (20, p))
    yield "rounds", once(s, (12, p), (8, np.full(14, 1 / 14)))
    yield "without replacement", once(s, (20, np.arange(1, 15) / 105, 105))
    yield "each", d.count_each(s, 1 / (20 * p[s]))
    yield "strata", d.count_each(np.arange(12), np.full(12, 3.0), h, np.array([1.0, 0.5, 0.0]))
    yield "independent", d.count_independent(np.arange(12), rng.random(12))
    pi = np.append(rng.random(11) * 0.9, 1.0)
    yield "fixed", d.count_fixed(np.arange(12), pi, pi @ pi)


@pytest.mark.parametrize(
    "kind, draws", list(some_draws()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_multipliers_have_the_mean_and_the_covariance_of_the_design(kind, draws):
    m = draws.multipliers(40_000, np.random.default_rng(1))
    wanted = draws.covariance(np.eye(len(draws.unit)))
    se = np.sqrt(np.maximum(np.diag(wanted), 0) / len(m))
    assert (np.abs(m.mean(axis=0) - 1) <= 4 * se + 1e-12).all()
    found = np.cov(m.T)
    # the variance of a product of standard variables is 1 + ρ² and more, if they have heavy tails
    spread = np.sqrt(np.outer(np.diag(wanted), np.diag(wanted)) * 8 / len(m)) + 1e-12
    if kind != "fixed":  # Hartley and Rao's form may have a negative eigenvalue, which no variable has
        assert (np.abs(found - wanted) <= 5 * spread).all()


def test_the_jackknife_of_equal_draws_is_their_variance():
    rng = np.random.default_rng(4)
    Z, strata = rng.normal(size=(20, 2)), np.append(np.arange(19) % 3, 3)  # one draw alone
    for draws in (
        d.count_each(np.arange(20), np.ones(20)),
        d.count_each(np.arange(20), np.ones(20), strata, np.array([1.0, 0.5, 0.2, 0.7])),
        d.count_independent(np.arange(20), rng.random(20)),
    ):
        change, scale = draws.jackknife(Z)
        np.testing.assert_allclose((change * scale[:, None]).T @ change, draws.covariance(Z), rtol=1e-12)


def test_draws_that_count_as_often_as_they_were_made():
    p = np.array([0.5, 0.25])
    draws = d.count_once(np.array([0, 0, 1]), [Round(3, p)], repeats=1 / (3 * p[[0, 0, 1]]))
    each = draws.count_each()
    np.testing.assert_allclose(each.weight, [2 / 3, 2 / 3, 4 / 3])
    assert each.unit.tolist() == [0, 0, 1] and (each.unseen == 1).all()
    assert replace(draws, repeats=None).count_each().weight.shape == (2,)
