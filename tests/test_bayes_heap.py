"""The reading of a heap as a cap, in fits of a size model: which draws have it, and what they are without it."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import erbayes as eb
from erbayes import bayes
from erbayes import metrics as m
from erbayes._internal import remedies
from erbayes._internal.errors import Grade
from erbayes.bayes import fit as fits
from erbayes.bayes.totals import _draw_shape
from erbayes.engine.diagnostics import MIXED
from erbayes.engine.named import choose_engine
from erbayes.study import populations as sim
from erbayes.units.settled import Heap
from erbayes.units.units import KnownTotals

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::erbayes.bayes.NotConverged")]
P, R, F = m.pairwise_precision, m.pairwise_recall, m.pairwise_f1
KINDS = ["80 % equal-tailed, 20 % Beta", f"{MIXED} equal-tailed"]
CAP = 40


@pytest.fixture(scope="module")
def units():
    """A hundred entities of a population with a heavy tail, cut into clusters of at most 40 records."""
    true = sim.population(sim.Zeta(2.1, 800), 12_000, 3)
    pred = true.astype(str) + "-" + (true.groupby(true).cumcount() // CAP).astype(str)
    ids = np.random.default_rng(12).choice(true.unique(), 80, replace=False)
    return eb.measure(pred, true[true.isin(ids)])


@pytest.fixture(scope="module")
def fitted(units):
    """Fits of one seed by looks."""
    looks = {None: None, 0: eb.Looks(0, of=5), 3: eb.Looks(3, of=5), 5: eb.Looks(5, of=5)}
    return {
        found: bayes.fast(eb.Sample(units, eb.UniformClusters(), looks=seen), draws=400, rng=1)
        for found, seen in looks.items()
    }


def test_the_shape_of_sizes_below_a_cap_by_plain_loops():
    # odd sizes are twice as frequent, so that counts vary more than multinomial ones
    count = {s: round(3000 * s**-2.0 * (1 + s % 2)) for s in range(1, 34)}
    known = KnownTotals(np.array([*count, 40.0]), np.array([*count.values(), 120.0]))
    a, b = np.concatenate(
        [_draw_shape(Heap(40, 120, 0.0, 120.0), known, np.random.default_rng(i)) for i in range(16)], axis=1
    )
    sizes, weights = [s for s in count if 4 <= s < 34], {}
    best, largest = None, -np.inf
    for i in np.linspace(-1, 5, 121):
        for j in np.geomspace(0.003, 0.6, 40):
            p = np.array([s**-i * 2 ** (-j / 2 * np.log2(s) ** 2 / np.log(2)) for s in sizes])
            p /= p.sum()
            likelihood = sum(count[s] * np.log(x) for s, x in zip(sizes, p, strict=True))
            weights[i, j] = likelihood
            if likelihood > largest:
                best, largest = p, likelihood
    expected = sum(count[s] for s in sizes) * best
    squares = sum((count[s] - e) ** 2 / (e + 0.5) for s, e in zip(sizes, expected, strict=True))
    dispersion = max(squares / (len(sizes) - 2), 1.0)
    prior = stats.lognorm(0.8, scale=0.12)
    grid = np.array([*weights])
    log_w = (
        np.array([w / dispersion for w in weights.values()]) + prior.logpdf(grid[:, 1]) + np.log(grid[:, 1])
    )
    w = np.exp(log_w - log_w.max()) / np.exp(log_w - log_w.max()).sum()
    for drawn, values, added in ((a, grid[:, 0], 0.5), (np.log(b), np.log(grid[:, 1]), 0.0)):
        mean = w @ values
        sd = np.hypot(np.sqrt(w @ (values - mean) ** 2), added)
        assert drawn.mean() == pytest.approx(mean, abs=5 * sd / 16_000**0.5)
        assert drawn.std() == pytest.approx(sd, rel=0.03)
    exact = np.round(3e7 * known.size**-2.0)
    sharp = KnownTotals(known.size, np.where(known.size == 40, 10**6, exact))
    a, _ = _draw_shape(Heap(40, 120, 0.0, 120.0), sharp, np.random.default_rng(1))
    assert a.std() == pytest.approx(0.5, rel=0.1)


def test_draws_are_those_without_the_reading_in_all_but_its_share(fitted, units, monkeypatch):
    monkeypatch.setattr(fits, "read_as_capped", lambda *_: None)
    plain = bayes.fast(eb.Sample(units, eb.UniformClusters()), draws=400, rng=1)
    monkeypatch.undo()
    one = fitted[None]
    assert plain.capped is None and one.capped.chance == 0.75
    # every chain has as many, and precision none
    assert (one.capped.cut.sum(axis=1) == 75).all()
    mixed, before = one.apply([P, R, F]).values, plain.apply([P, R, F]).values
    assert np.array_equal(mixed[..., 0], before[..., 0])
    assert np.array_equal(mixed[~one.capped.cut], before[~one.capped.cut])
    assert (mixed[one.capped.cut][:, 1] != before[one.capped.cut][:, 1]).mean() > 0.99
    assert np.array_equal(one.estimate([P]).interval(), plain.estimate([P]).interval())
    found = one.estimate([P, R, F])
    assert found.origin == ("", MIXED, MIXED)
    # what a cap changes, the closed form has no share in
    np.testing.assert_allclose(found.weight, [0.8, 1, 1])
    assert np.array_equal(found.interval()[1:], one.apply([R, F]).interval())
    assert np.array_equal(one.estimate([R], 0.0).interval(), found.interval()[1:2])


def test_a_comparison_says_that_its_intervals_allow_for_a_cap(fitted, units):
    one = eb.Sample(units, eb.UniformClusters())
    joint = bayes.Modelled(draws=400).paired([one, one], [P, R], 1)
    assert joint.origin == ("", MIXED) * 2
    table = joint.part([2, 3]).table()
    assert table.kind.to_list() == KINDS
    assert not any("either entities" in a for a in eb.alarms(one, [P, R], table))
    low, high = table.loc[R.name, ["lower", "upper"]]
    before = fitted[0].apply(R).interval()[0]
    assert low < before[0] and high <= 1


def test_the_explanation_has_the_interval_of_the_table(fitted):
    for fit in fitted.values():
        assert f"of the closed form it is {fit[R].lower:.3f} to {fit[R].upper:.3f}" in fit.explain()


def test_looks_choose_between_today_and_the_cap(fitted):
    none, five = fitted[0], fitted[5]
    today = replace(none, capped=None)
    for ask in ("estimate", "apply"):
        at, before = (getattr(fit, ask)([P, R]).interval() for fit in (none, today))
        assert np.array_equal(at, before)
    assert MIXED not in none.estimate([R]).origin and "In 0 % of the posterior draws" in none.explain()
    assert five.capped.cut.all() and five.estimate([R]).weight == 1
    assert np.array_equal(five.estimate([R]).interval(), five.apply([R]).interval())
    low, high = five.apply([R]).interval()[0]
    assert high < today.apply([R]).interval()[0, 1] and low > 0


def test_common_links_stay_and_recall_is_coherent(fitted):
    for fit in fitted.values():
        common, true = fit.total(m.columns.COMMON_LINKS), fit.total(m.columns.TRUE_LINKS)
        assert np.array_equal(common, replace(fit, capped=None).total(m.columns.COMMON_LINKS))
        assert (common <= true * (1 + 1e-12)).all()
        assert fit.apply([R]).values[..., 0] == pytest.approx(common / true)


def test_totals_under_a_cap_by_plain_loops(fitted):
    fit = fitted[5]
    capped, units, data = fit.capped, fit.evidence.units, fit.evidence.data
    terms = {
        m.columns.ENTITIES: lambda n, s: n / s,
        m.columns.TRUE_LINKS: lambda n, s: n * (s - 1) / 2,
        m.columns.B3_RECALL: lambda n, s: n * n / s,
        m.columns.TRUE_SINGLETONS: lambda n, s: float(s == 1),
    }
    kept = fit.by_size["kept"]
    for draw in [(0, 0), (1, 7), (3, 99)]:
        entities = [(s, k) for s, k in zip(capped.size, capped.number[capped.chosen[draw]], strict=True) if k]
        assert entities and min(s for s, _ in entities) > CAP
        cut = [(k, [CAP] * int(s // CAP) + [s % CAP] * bool(s % CAP), s) for s, k in entities]
        assert all(sum(pieces) == s for _, pieces, s in cut)
        small = [(s, k, r) for s, k, r in zip(fit.size, fit.population.number[draw], kept[draw], strict=True)]
        small = [each for each in small if each[0] < 0.9 * CAP]
        near = units.size >= 0.9 * CAP
        above = max(sum(s * k for s, k in entities), units.size[near].sum())
        rest = data["records"] - above - units.size[~near].sum()
        assert rest > 0
        rest /= sum(s * k for s, k, _ in small)
        for column, term in terms.items():
            found = sum(k * sum(term(n, s) for n in pieces) for k, pieces, s in cut)
            below = 0.0
            for s, k, r in small:
                # of the records of an entity, B-cubed recall is that of the links of each, and of itself
                of_one = 1 + (s - 1) * r if column == m.columns.B3_RECALL else term(s, s)
                below += rest * k * of_one
            value = units.column(column)
            total = max(found, value[near].sum()) + below + value[~near].sum()
            assert fit.total(column)[draw] == pytest.approx(total, rel=1e-9)
    again = replace(fit)
    again._totals[m.columns.COMMON_LINKS] = np.full(capped.cut.shape, 1e9)
    assert (again.total(m.columns.TRUE_LINKS)[capped.cut] == 1e9).all(), "links that are found are true ones"


def test_what_depends_on_no_true_size_is_as_before_and_the_rest_has_both_readings(fitted):
    for fit in (fitted[None], fitted[5]):
        before, cut = replace(fit, capped=None), fit.capped.cut
        for metric in fit.metrics:
            same = fit.apply([metric]).values[..., 0] == before.apply([metric]).values[..., 0]
            assert same[~cut].all()
            assert same[cut].mean() < 0.1 if metric.depends_on_true_size else same.all()
            assert (fit.estimate([metric]).origin == (MIXED,)) == metric.depends_on_true_size
        shares = fit.apply([m.b3_recall, m.singleton_share, R]).values
        assert shares.min() >= 0 and shares.max() <= 1
    assert fitted[5].estimate([m.cluster_recall]).origin == ("",)


def test_the_fit_says_which_reading_its_draws_have(fitted):
    (said,) = fitted[None].remarks
    assert said.grade is Grade.CAUTION and said.remedies == (remedies.LOOK, remedies.RECORDS)
    assert "In 75 % of the posterior" in said
    (said,) = fitted[5].remarks
    assert said.grade is Grade.NOTE and "Entities of 5 of the 5 that were looked at" in said
    assert not any("cuts" in alarm for alarm in fitted[0].alarms)
    assert "In 75 % of the posterior draws of recall" in fitted[None].explain()
    table = fitted[None].table(metrics=[P, R])
    assert table.kind.to_list() == KINDS
    assert not any("either entities" in a for a in eb.alarms(fitted[None].sample, [P, R], table))


def test_the_advised_engine_allows_for_a_cap(units):
    sample = eb.Sample(units, eb.UniformClusters())
    engine, why = choose_engine(sample, [P, R])
    assert type(engine).__name__ == "Modelled" and "heap" in why
    assert engine(sample, [P, R], 1).origin == ("", MIXED)


def test_a_population_without_a_heap_has_one_reading():
    people = sim.simulate(sim.LogNormal(0.8, 1.0), sim.Splits(0.3), 8000, 3)
    ids = np.random.default_rng(1).choice(people.true.unique(), 80, replace=False)
    sample = eb.Sample(eb.measure(people.pred, people.true[people.true.isin(ids)]), eb.UniformClusters())
    fit = bayes.fast(sample, draws=400, rng=1)
    assert fit.capped is None
