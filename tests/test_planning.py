"""Forecasts against the pilot's own intervals, repeated samples and enumerated costs. Seeds are fixed."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from populations import NegativeBinomial
from repeats import each_draw
from scipy import stats
from test_study import Distinct

import erbayes as eb
from erbayes import metrics as m
from erbayes.analysis.planning import UNREACHED, forecast
from erbayes.engine import Taylor
from erbayes.labels import LinkEnds, Multipurpose, Records
from erbayes.metrics.intervals import DEFAULT
from erbayes.metrics.unseen import Unseen
from erbayes.study import UniformEntities, draw_samples, study
from erbayes.study import populations as sim

METRICS = (m.pairwise_precision, m.pairwise_recall, m.b3_recall, m.cluster_f(), m.splits)
ERRORS = sim.Chain([sim.Misattribution(0.1), sim.Splits(0.2)])
PEOPLE = sim.simulate(NegativeBinomial(4.0, 2.0), ERRORS, 6000, np.random.default_rng(1))
K = len(PEOPLE.units)
N = len(PEOPLE.true)
PLANS = {
    "records": (eb.UniformRecords(), Records()),
    "clusters": (eb.UniformClusters(), UniformEntities()),
    "distinct clusters": (eb.UniformClusters(population=K), Distinct()),
}
DESIGNS = {name: design for name, (design, _) in PLANS.items()}
ROOT = eb.design.BySize(np.sqrt)


def pilots(plan, n, count, seed=3):
    return draw_samples(PLANS[plan][1], PEOPLE.units, n, count, np.random.default_rng(seed)).separate


def doubt(outlook):
    """The relative standard error of S²: NaN if the pilot shows no variation."""
    varies = (outlook.variance > 0) | np.isinf(outlook.pilot_effective)
    return np.where(varies, np.sqrt(outlook.covariance[:, 1, 1]), np.nan)


def of_what_is_in_reach(pilot):
    """A forecast is of more draws, which reach more than those of the pilot."""
    fit = eb.engine.taylor(pilot, METRICS).apply(METRICS)
    return replace(fit, unseen=replace(fit.unseen, unreached_share=np.zeros(len(METRICS))))


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_the_forecast_for_the_pilots_own_design_is_its_interval(plan, level):
    (pilot,) = pilots(plan, 150, 1)
    found = forecast(pilot, METRICS, DESIGNS).designs[plan].half_widths(150, level)
    wanted = np.diff(of_what_is_in_reach(pilot).interval(level))[:, 0] / 2
    # the variance of units that count once leaves out their pairs in a forecast
    assert found == pytest.approx(wanted, rel=0.02 if plan == "records" else 1e-9)


def drawn_by_root(n, samples, seed=3):
    """Units drawn by the square root of their size, (samples, n)."""
    chance = np.sqrt(PEOPLE.units.size)
    return np.random.default_rng(seed).choice(K, (samples, n), p=chance / chance.sum())


def by_root(unit):
    chosen, draws = np.unique(unit, return_inverse=True)
    taken = PEOPLE.units.take(chosen)
    return eb.Sample(taken, eb.design.BySize(np.sqrt, taken.ids[draws]))


def test_a_design_that_selects_by_size():
    """The pilot's own interval; S² and cost as sampled."""
    pilot = by_root(drawn_by_root(150, 1)[0])
    found = forecast(pilot, METRICS, {"root": ROOT}).designs["root"].half_widths(150, 0.9)
    wanted = np.diff(of_what_is_in_reach(pilot).interval(0.9))[:, 0] / 2
    assert found == pytest.approx(wanted, rel=1e-9)
    drawn = drawn_by_root(600, 150)
    means = [eb.engine.taylor(by_root(unit), METRICS).apply(METRICS).mean for unit in drawn]
    spread = np.std(means, axis=0, ddof=1)
    for source in (PEOPLE, by_root(drawn_by_root(3000, 1)[0]), pilots("records", 3000, 1)[0]):
        outlook = forecast(source, METRICS, {"root": ROOT}).designs["root"]
        assert np.sqrt(outlook.variance / 600) == pytest.approx(spread, rel=0.2)
        paid = [PEOPLE.units.size[np.unique(unit)].sum() for unit in drawn]
        assert outlook.cost(600) == pytest.approx(np.mean(paid), rel=0.03)


def test_drawing_by_size_with_equal_or_proportional_chances_is_drawing_units_or_records():
    designs = {"all": eb.design.BySize(np.ones_like), "links": eb.design.BySize(lambda size: 3 * size)}
    found, known = forecast(PEOPLE, METRICS, designs).designs, forecast(PEOPLE, METRICS, DESIGNS).designs
    for name, same, off in (("all", "clusters", 1e-7), ("links", "records", 0.06)):
        # records count each unit once
        np.testing.assert_allclose(found[name].half_widths(99, 0.95), known[same].half_widths(99, 0.95), off)
        assert found[name].cost(500) == pytest.approx(known[same].cost(500))


@pytest.mark.slow
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("n", [300, 600])
def test_promised_half_widths_are_attained_on_average(plan, n):
    """Within Monte Carlo error, and 12/n for standard errors that are too small on average at finite n."""
    given = ({"p": PEOPLE}, {plan: PLANS[plan][1]}, [n], {"closed": Taylor()}, METRICS)
    runs = study(*given, repetitions=500, seed=1).runs
    half = ((runs.upper - runs.lower) / 2).groupby(runs.metric, sort=False)
    promised = forecast(PEOPLE, METRICS, DESIGNS).designs[plan].half_widths(n, 0.95)
    error = 4 * half.std() / np.sqrt(500) + 12 / n * promised
    assert (np.abs(half.mean() - promised) < error).all(), half.mean() / promised


@pytest.mark.slow
@pytest.mark.parametrize("plan", ["records", "clusters"])
def test_pilots_of_one_design_forecast_every_other(plan):
    """Over many pilots S² is right on average for each design, and as uncertain as it says."""
    census = forecast(PEOPLE, METRICS, DESIGNS)
    found = [forecast(p, METRICS, DESIGNS) for p in pilots(plan, 500, 150)]
    for name in DESIGNS:
        S2 = np.array([f.designs[name].variance for f in found])
        off = S2.mean(axis=0) / census.designs[name].variance - 1
        assert np.abs(off).max() < 0.06, (name, off)
        said = np.array([doubt(f.designs[name]) for f in found]).mean(axis=0)
        assert np.log(S2).std(axis=0) == pytest.approx(said, rel=0.25), name
    assert all((doubt(outlook) == 0).all() for outlook in census.designs.values())


@pytest.mark.parametrize(
    "design",
    [eb.DistinctEntities(600), eb.Stratified({}, {}), eb.KnownWeights({})],
    ids=lambda d: type(d).__name__,
)
def test_a_pilot_of_any_design(design):
    rng = np.random.default_rng(5)
    size = PEOPLE.units.size
    if isinstance(design, eb.DistinctEntities):
        chosen = np.unique(rng.choice(K, 600, p=size / N))
    elif isinstance(design, eb.KnownWeights):
        chosen = np.unique(rng.choice(K, 600, p=np.sqrt(size) / np.sqrt(size).sum()))
        design = eb.KnownWeights(pd.Series(1 / np.sqrt(size), PEOPLE.units.ids))
    else:
        large = size > 6
        chosen = np.concatenate([rng.choice(np.flatnonzero(s), 250, replace=False) for s in (large, ~large)])
        strata = pd.Series(np.where(large, "large", "small"), PEOPLE.units.ids)
        design = eb.Stratified(strata, strata.value_counts().to_dict())
    found = forecast(eb.Sample(PEOPLE.units.take(chosen), design), METRICS, DESIGNS)
    census = forecast(PEOPLE, METRICS, DESIGNS)
    for name in DESIGNS:
        f = found.designs[name]
        assert (np.abs(np.log(f.variance / census.designs[name].variance)) < 4 * doubt(f)).all()
        assert ((0.01 < doubt(f)) & (doubt(f) < 0.5)).all()


@pytest.mark.parametrize("plan", PLANS)
def test_the_answer_is_the_smallest(plan):
    found = forecast(PEOPLE, METRICS[:4], DESIGNS)
    table = found.table(0.04, 0.9).set_index("design").loc[plan]
    for j, n in enumerate(table["n"]):
        half = [found.designs[plan].half_widths(int(x), 0.9)[j] for x in (n - 1, n)]
        assert half[1] <= 0.04 < half[0]
    assert (table["n_low"] == table["n"]).all() and (table["n_high"] == table["n"]).all()


def test_half_widths_fall_with_draws_and_costs_rise():
    (pilot,) = pilots("records", 200, 1)
    found = forecast(pilot, METRICS, DESIGNS)
    sizes = [2, 5, 20, 100, 400, K]
    for outlook in found.designs.values():
        width = np.array([outlook.half_widths(n, 0.95) for n in sizes])
        assert ((np.diff(width, axis=0) < 0) | (width[1:] == 0.5)).all(), "until they leave the whole scale"
        assert (np.diff([outlook.cost(n) for n in sizes]) > 0).all()
    assert (np.abs(found.designs["distinct clusters"].half_widths(K, 0.95)) < 1e-9).all()
    assert found.table([0.1, 0.05, 0.1, 0.1, 99.0])["half_width"].tolist() == [0.1, 0.05, 0.1, 0.1, 99.0] * 3


@pytest.mark.parametrize("plan", ["records", "clusters"])
def test_the_covariance_is_that_of_pilots_with_a_draw_left_out(plan):
    """Of the estimate, log S² and log effective. The jackknife linearises nothing. Each draw of the pilot
    counts 20 times, so that leaving one out is a small step."""
    drawn, design = np.tile(pilots(plan, 50, 1)[0].expansion.order, 20), PLANS[plan][0]

    def pilot(unit):
        chosen, draws = np.unique(unit, return_inverse=True)
        taken = PEOPLE.units.take(chosen)
        return each_draw(eb.Sample(taken, replace(design, draws=taken.ids[draws])))

    left = [forecast(pilot(np.delete(drawn, i)), METRICS, DESIGNS) for i in range(50)]
    for name, outlook in forecast(pilot(drawn), METRICS, DESIGNS).designs.items():
        each = [f.designs[name] for f in left]
        values = np.array([[o.estimate, np.log(o.variance), np.log(o.effective)] for o in each])
        for j in range(len(METRICS)):
            wanted = np.cov(values[:, :, j], rowvar=False) * 49 * 20
            sd = np.sqrt(np.where(np.diag(wanted) > 1e-20, np.diag(wanted), 1.0))  # all may be effective
            gap = (outlook.covariance[j] - wanted) / np.outer(sd, sd)
            assert np.abs(gap).max() < 0.06


def test_bounds_lie_on_both_sides_of_the_answer_for_every_metric():
    wanted = [x for x in m.ALL if x.support == m.UNIT]
    for plan in ("records", "clusters"):
        table = forecast(*pilots(plan, 120, 1), wanted, DESIGNS).table(0.05, assurance=0.5)
        assert (table["n_low"] <= table["n"]).all() and (table["n"] <= table["n_high"].fillna(10**9)).all()


def test_the_doubt_of_a_pilot_widens_the_answer():
    (pilot,) = pilots("records", 100, 1)
    table = forecast(pilot, METRICS[:2], DESIGNS).table(0.03, assurance=0.5)
    assert (table["n_low"] < table["n"]).all() and (table["n"] < table["n_high"]).all()
    assert (table["n_high"][:2] > 1.25 * table["n"][:2]).all()


@pytest.mark.parametrize("plan", PLANS)
def test_a_unit_that_is_drawn_twice_is_paid_once(plan):
    def cost(size):
        return 3 + size**1.5

    n, units = 700, PEOPLE.units
    drawn = draw_samples(PLANS[plan][1], units, n, 400, np.random.default_rng(2)).unit
    paid = [cost(units.size[np.unique(s)]).sum() for s in drawn]
    said = forecast(PEOPLE, METRICS, DESIGNS, cost=cost).designs[plan].cost(n)
    assert said == pytest.approx(np.mean(paid), abs=4 * np.std(paid) / 20)
    plans = [forecast(p, METRICS[:1], DESIGNS, cost=cost) for p in pilots("records", 200, 40)]
    from_pilots = [found.designs[plan].cost(n) for found in plans]
    assert np.mean(from_pilots) == pytest.approx(said, rel=0.03)


def test_records_without_replacement_cost_what_all_units_cost_in_the_end():
    found = forecast(PEOPLE, METRICS[:1], {"r": eb.UniformRecords(population=N)}).designs["r"]
    assert found.cost(N) == pytest.approx(N) and found.half_widths(N, 0.95) == pytest.approx([0])


def test_costs_of_entities_that_records_favour():
    """A record leads to an entity of mean size Σs²/Σs; that is the price of few draws."""
    size = PEOPLE.units.size
    found = forecast(PEOPLE, METRICS[:1], DESIGNS).designs
    assert found["records"].cost(2) == pytest.approx(2 * (size**2).sum() / size.sum(), rel=0.01)
    assert found["distinct clusters"].cost(2) == pytest.approx(2 * size.mean())


def test_where_the_population_is_not_known_repeats_are_paid():
    labels = {1: "x", 2: "x", 3: "x", 4: "y", 9: "y"}
    units = eb.measure({1: "a", 2: "a", 3: "b", 4: "b"}, labels, missing=eb.Missing.TOGETHER)
    found = forecast(eb.Sample(units, eb.UniformRecords()), [m.pairwise_recall], DESIGNS)
    assert found.designs["records"].cost(10) == pytest.approx(25)


@pytest.mark.parametrize("design", [eb.UniformRecords(), eb.UniformClusters()])
def test_a_pilot_without_error_has_bounds_by_its_pseudo_draws(design):
    """Three errors in 20 draws are not ruled out: recall .85 asks for 1.96² .85 .15 / .05² draws, or 196."""
    labels = {i: i // 3 for i in range(60)}
    pilot = eb.Sample(eb.measure(labels, labels), design)
    found = forecast(pilot, [m.pairwise_recall], {"d": design})
    assert found.designs["d"].variance[0] == 0 and np.isnan(doubt(found.designs["d"])[0])
    row = found.table(0.05, assurance=0.5).iloc[0]
    assert 10 < row.n < 40  # by the pseudo-draws alone
    assert row.n_low <= row.n and 196 < row.n_high < 2000 and row.n < found.table(0.05).n[0] < row.n_high


def test_assurance_moves_the_width_by_its_quantile():
    """n by hand: the width at n, moved by t standard errors of the forecast and of a fresh sample, is as wished."""
    (pilot,) = pilots("records", 100, 1)
    plan = forecast(pilot, METRICS[:2], {"records": eb.UniformRecords()})
    outlook, level = plan.designs["records"], 0.95
    moved = outlook._add_pseudo_draws()
    weigh = Unseen(effective=outlook.pilot_effective, reach=outlook.extremes).weigh_pseudo_draws(DEFAULT.mass)
    for j, share in enumerate(weigh):  # a pseudo-draw at each end, with its share of the weight
        added = sum(share * end**2 / outlook.effective[j] for end in outlook.extremes[j])
        assert moved.variance[j] == pytest.approx((outlook.variance[j] + added) / (1 + 2 * share) ** 2)
    n = plan.table(0.03, level, 0.9).n.to_numpy()
    t = stats.t.ppf(0.9, outlook.df)
    for j in range(2):
        at = {}
        for draws in (int(n[j]), int(n[j]) - 1):
            widths = moved.half_widths(draws, level)
            # one standard error of the forecast
            wider = moved._shift_widths(np.full(2, draws), level, np.ones(2), 0)
            at[draws] = widths[j] * (wider[j] / widths[j]) ** (t[j] * np.sqrt(1 + 100 / draws))
        assert at[int(n[j])] <= 0.03 < at[int(n[j]) - 1]


def test_assurance_leaves_the_n_of_a_known_population_and_grows_otherwise():
    known = forecast(PEOPLE, METRICS[:2], DESIGNS)
    assert known.table(0.03, assurance=0.05).equals(known.table(0.03, assurance=0.99))
    (pilot,) = pilots("records", 100, 1)
    plan = forecast(pilot, METRICS[:2], DESIGNS)
    n = np.array([plan.table(0.03, assurance=a).n for a in (0.05, 0.5, 0.95)])
    assert (np.diff(n, axis=0) > 0).all()
    with pytest.raises(eb.DataError, match="assurance must lie strictly between 0 and 1"):
        plan.table(0.03, assurance=1)


def test_a_pilot_whose_entities_are_all_alike_has_no_bounds():
    """Half of the links of each: no draw differs, and pseudo-draws in the middle of the scale weigh nothing."""
    labels = {i: i // 4 for i in range(80)}
    half = {i: (i // 4, i % 4 == 3) for i in range(80)}
    pilot = eb.Sample(eb.measure({i: hash(c) for i, c in half.items()}, labels), eb.UniformRecords())
    assert forecast(pilot, [m.pairwise_recall], DESIGNS).table(0.02)["n"].eq(2).all()


def test_a_population_of_one_entity():
    """A census of one unit has no degree of freedom to lose: nothing is in doubt."""
    units = eb.measure({1: "a", 2: "a", 3: "b"}, {1: "x", 2: "x", 3: "x"})
    one = eb.Sample(units, eb.UniformClusters(population=1))
    found = forecast(one, [m.pairwise_recall], {"clusters": eb.UniformClusters()})
    assert doubt(found.designs["clusters"])[0] == 0
    row = found.table(0.05).iloc[0]
    assert row.n_low == row.n == row.n_high


def test_a_metric_that_does_not_reach_its_width_takes_no_other_with_it():
    with_repeats = {"sizes": eb.design.BySize(np.sqrt), "clusters": eb.UniformClusters()}
    plan = forecast(PILOT, METRICS[:2], with_repeats)
    table = plan.table([1e-7, 0.1])
    alone = forecast(PILOT, METRICS[1:2], with_repeats).table(0.1)
    assert table["n"].isna().tolist() == [True, False, True, False]
    assert table["n"].dropna().tolist() == alone["n"].tolist()
    assert table["reason"].tolist() == [UNREACHED, "", UNREACHED, ""]
    assert table["cost"].isna().tolist() == [True, False, True, False]


PILOT = pilots("records", 50, 1)[0]


@pytest.mark.parametrize("make, message", [
    (lambda: forecast(PILOT, [], DESIGNS), "no metric is asked for"),
    (lambda: forecast(PILOT, METRICS, {}), "5 metrics under 0 designs"),
    (lambda: forecast(PILOT, METRICS, DESIGNS, cost=lambda s: -s), "costs must be 0 or more and finite; 49 of 49"),
    (lambda: forecast(pilots("records", 1, 1)[0], METRICS, DESIGNS), "a pilot of 1 draws gives no variance"),
    (lambda: forecast(PILOT, METRICS, DESIGNS).table(0), "half widths must be above 0 and finite, not 0"),
    (lambda: forecast(PILOT, METRICS, DESIGNS).table([0.1, np.nan, 1, 1, 1]), "must be above 0 and finite"),
    (lambda: forecast(PILOT, METRICS, DESIGNS).table([0.1, 0.1, 0.5, 0.1, 99.0]),
        "b3-recall lies between 0 and 1, so that a half width of 0.5 says nothing: write 0.02 for 2"),
    (lambda: forecast(PILOT, METRICS, DESIGNS).table([0.1, 0.1]), "2 half widths for 5 metrics"),
    (lambda: forecast(PILOT, METRICS, DESIGNS).table(0.1, 1.5), "level must lie strictly between 0 and 1"),
    (lambda: forecast(PILOT, METRICS, DESIGNS).designs["records"].half_widths(1, 0.9), "1 draws: 2 or more are needed"),
    (lambda: forecast(PILOT, METRICS, DESIGNS).designs["distinct clusters"].half_widths(K + 1, 0.9),
        f"{K + 1} draws: 2 or more are needed, {K} at most"),
    (lambda: forecast(PILOT, [m.purity], DESIGNS), "whole predicted clusters"),
])  # fmt: skip
def test_errors(make, message):
    with pytest.raises(eb.DataError, match=message):
        make()


# Designs by predicted size
LINKS = eb.design.ByPredictedSize(eb.columns.PREDICTED_LINKS)
ROOTS = eb.design.ByPredictedSize(eb.columns.ClusterSum("roots", np.sqrt))


def test_the_variance_of_one_draw_by_predicted_size_is_that_of_brute_force():
    units, of = PEOPLE.units, eb.columns
    T, P, TP = (units.column(c) for c in (of.TRUE_LINKS, of.PREDICTED_LINKS, of.COMMON_LINKS))
    parts = {m.pairwise_precision: (TP, P), m.pairwise_recall: (TP, T)}
    cases = ((ROOTS, np.sqrt, parts), (LINKS, lambda s: (s - 1) / 2, [m.pairwise_precision]))
    for design, phi, metrics in cases:
        of_record = PEOPLE.pred.map(PEOPLE.pred.value_counts()).to_numpy(dtype=float)
        p = pd.Series(phi(of_record)).groupby(PEOPLE.true.to_numpy()).sum().reindex(units.ids).to_numpy()
        p = p / p.sum()
        plan = forecast(PEOPLE, list(metrics), {"d": design})
        for metric, variance in zip(metrics, plan.designs["d"].variance, strict=True):
            a, b = parts[metric]
            d = (a - a.sum() / b.sum() * b) / b.sum()
            assert variance == pytest.approx((d[p > 0] ** 2 / p[p > 0]).sum(), rel=1e-9)


@pytest.mark.slow
def test_a_pilot_by_predicted_size_forecasts_other_designs():
    mean = []
    for sample in draw_samples(Multipurpose(), PEOPLE.units, 400, 60, np.random.default_rng(2)).separate:
        found = forecast(sample, METRICS[:2], DESIGNS | {"roots": ROOTS}).designs
        mean.append([outlook.variance for outlook in found.values()])
    census = forecast(PEOPLE, METRICS[:2], DESIGNS | {"roots": ROOTS}).designs
    wanted = [outlook.variance for outlook in census.values()]
    np.testing.assert_allclose(np.mean(mean, axis=0), wanted, rtol=0.15)


def test_plans_by_predicted_links_refuse_what_these_do_not_identify():
    said = "is not identified: records of predicted singletons"
    with pytest.raises(eb.NotIdentified, match=f"'true_links' {said}"):
        forecast(PEOPLE, METRICS[:2], {"d": LINKS})
    (pilot,) = draw_samples(LinkEnds(), PEOPLE.units, 100, 1, np.random.default_rng(2)).separate
    assert forecast(pilot, METRICS[:1], {"d": LINKS}).table(0.1)["n"][0] > 1
    for design in (eb.UniformRecords(), ROOTS):
        with pytest.raises(eb.NotIdentified, match=said):
            forecast(pilot, METRICS[:1], {"d": design})
