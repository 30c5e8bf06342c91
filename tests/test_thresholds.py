"""Every alarm and refusal with a bar, at both sides of it, by samples made for the purpose. The bars are
conventions. A test here says which, so that none moves unseen."""

import re
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from closed import closed
from repeats import each_draw
from scipy.optimize import brentq

import erbayes as eb
from erbayes import labels
from erbayes import metrics as m
from erbayes._internal import remedies
from erbayes.analysis.domains import Settings, by_domain
from erbayes.analysis.planning import forecast
from erbayes.auxiliary.assistance import AssistedEstimates
from erbayes.engine import bootstrap
from erbayes.engine.bounded_means import draws_of
from erbayes.engine.fitted import fit_sample
from erbayes.labels import Annotator, Beta
from erbayes.labels.stopping import _extrapolate_fit as continued
from erbayes.metrics.columns import ClusterSum, PieceSum
from erbayes.study import populations as sim

R = m.pairwise_recall


def speaks(sample, start, metrics=(R,)):
    return any(alarm.startswith(start) for alarm in eb.alarms(sample, metrics))


def refused_unless(sound, said):
    return nullcontext() if sound else pytest.raises(eb.DataError, match=said)


# Alarms
@pytest.mark.parametrize(("draws", "alone"), [(1, True), (2, False)])
def test_a_single_draw(draws, alone):
    labels = {i: i // 2 for i in range(2 * draws)}
    sample = eb.Sample(eb.measure({i: i for i in range(9)}, labels), eb.UniformClusters())
    assert speaks(sample, "A single draw") is alone


def recall_errors(w, a, b):
    """Standard errors of Σwb/Σwa: by linearisation, and by leaving out one draw after the other."""
    n, A, B = len(w), w @ a, w @ b
    linear = np.sqrt(n / (n - 1) * np.sum((w * (b - B / A * a)) ** 2)) / A
    left = (B - w * b) / (A - w * a)
    return linear, np.sqrt((n - 1) / n * np.sum((left - B / A) ** 2))


@pytest.mark.parametrize(("ratio", "heavy"), [(1.49, False), (1.51, True)])
def test_heavy_tail(ratio, heavy):
    """One intact pair among pairs that are intact by halves; its weight decides."""
    a, b = np.ones(20), np.arange(20) % 2.0
    prediction = {r: r // 2 if b[r // 2] else r + 100 for r in range(40)}

    def weights(w):
        return np.where(np.arange(20) == 1, w, 1.0)

    def off(w):
        linear, left = recall_errors(weights(w), a, b)
        return left / linear - ratio

    heaviest = weights(brentq(off, 2.0, 100.0))
    units = eb.measure(prediction, {r: r // 2 for r in range(40)})
    assert speaks(eb.Sample(units, eb.KnownWeights(dict(enumerate(heaviest)))), "Heavy tail") is heavy


@pytest.mark.parametrize(("known", "off"), [(267, True), (268, False), (772, False), (773, True)])
def test_out_of_balance(known, off):
    """Half of 40 sampled pairs are predicted: 520 links estimated of 2,080 records, standard error 83.27. One
    more draw of average size would move 13."""
    per_record = np.repeat([0.5, 0.0], 20)
    estimate, se = 2080 * per_record.mean(), 2080 * per_record.std(ddof=1) / np.sqrt(40)
    se = np.sqrt(se**2 + (estimate / 40) ** 2)
    assert bool(abs(known - estimate) > 3 * se) is off and abs(abs(known - estimate) / se - 3) < 0.02
    sampled = {r: r // 2 if r < 40 else 1000 + r for r in range(80)}
    others = {80 + r: 10**4 + (r // 2 if r < 2 * (known - 20) else r + 10**4) for r in range(2000)}
    labels = {r: r // 2 for r in range(80)}
    sample = each_draw(eb.Sample(eb.measure(sampled | others, labels), eb.UniformRecords()))
    assert speaks(sample, "Out of balance") is off


def unreached_share(pairs):
    """A giant of 5 records (10 links) that the labels do not touch, beside as many links as pairs."""
    prediction = {r: r // 2 for r in range(2 * pairs)} | {10**6 + i: 10**6 for i in range(5)}
    return eb.measure(prediction, {r: r // 4 for r in range(4 * 20)})


@pytest.mark.parametrize(("pairs", "beyond"), [(90, False), (89, True)])
def test_links_out_of_reach(pairs, beyond):
    assert speaks(eb.Sample(unreached_share(pairs), eb.UniformClusters()), "1", [R]) is beyond


@pytest.mark.parametrize(("lacking", "speaking"), [(5, False), (6, True)])
@pytest.mark.parametrize("design", [eb.UniformClusters(), eb.UniformClusters(50)])
def test_a_twentieth_of_the_labels_left_out(lacking, speaking, design):
    """Of 100 labelled records, in a sample and in a census; other policies leave out none."""
    labels = {r: r // 2 for r in range(100)}
    prediction = {r: r for r in range(lacking, 100)}
    for policy, left_out in ((eb.Missing.OMIT, speaking), (eb.Missing.SINGLETON, False)):
        sample = eb.Sample(eb.measure(prediction, labels, missing=policy), design)
        assert speaks(sample, f"{lacking} of 100 labelled records ({lacking}%) are left out") is left_out


@pytest.mark.parametrize(("wrong", "sure"), [(0, True), (1, False)])
def test_no_variation(wrong, sure):
    prediction = {r: r // 2 if r >= 2 * wrong else r + 100 for r in range(60)}
    sample = eb.Sample(eb.measure(prediction, {r: r // 2 for r in range(40)}), eb.UniformClusters())
    assert speaks(sample, "The sample shows no variation of pairwise-recall") is sure


def test_little_variation_is_not_none():
    """One pair of 20 is wrong, and weighs next to nothing."""
    units = eb.measure({r: r // 2 if r > 1 else r + 100 for r in range(40)}, {r: r // 2 for r in range(40)})
    sample = eb.Sample(units, eb.KnownWeights({0: 1e-6} | dict.fromkeys(range(1, 20), 1.0)))
    assert 0 < eb.engine.taylor(sample, [R]).apply([R]).sd[0] < 1e-6
    assert not speaks(sample, "The sample shows no variation")


def test_a_unit_without_which_an_estimate_is_undefined():
    """One entity has a link, the others are single records."""
    units = eb.measure({r: r for r in range(9)}, {0: "a", 1: "a", 2: "b", 3: "c"})
    assert speaks(eb.Sample(units, eb.UniformClusters()), "A single unit carries an estimate")
    units = eb.measure({r: r for r in range(9)}, {0: "a", 1: "a", 2: "b", 3: "b", 4: "c"})
    assert not speaks(eb.Sample(units, eb.UniformClusters()), "A single unit carries an estimate")


def test_balance_is_left_out_where_the_population_is_not_known():
    prediction, labels = ({r: r // 2 for r in range(n)} for n in (40, 41))
    units = eb.measure(prediction, labels, missing=eb.Missing.SINGLETON)
    sample = eb.Sample(units, eb.UniformRecords())
    assert not speaks(sample, "Out of balance") and not sample.expansion.absolute


# Degrees of freedom, variances, intervals
@pytest.mark.parametrize("weight", [1.0, 1e3, 1e9])
def test_degrees_of_freedom_are_1_at_least(weight):
    """One unit carries nearly all: effective draws fall to 1."""
    weights = dict.fromkeys(range(10), 1.0) | {0: weight}
    units = eb.measure({r: r // 3 for r in range(60)}, {r: r // 2 for r in range(20)})
    found = eb.engine.taylor(eb.Sample(units, eb.KnownWeights(weights)), [m.b3_recall]).apply([m.b3_recall])
    assert found.df[0] >= 1 if weight == 1 else found.df[0] == pytest.approx(1, abs=0.05)
    assert not found.df[0] < 1


def normal(variance, mean=1.0):
    return closed(mean, variance, 9 * mean, (-np.inf, np.inf), effective=10.0)


def test_a_variance_below_0_is_rounding_or_refused():
    assert normal(-0.9e-24).sd[0] == normal(0.9e-24).sd[0] == 0 and normal(1.1e-24).sd[0] > 0
    assert normal(-0.9e-20, 100.0).sd[0] == 0
    with pytest.raises(eb.DataError, match="x: its variance estimate is below 0"):
        assert normal(-1.1e-24).sd


@pytest.mark.parametrize(("left", "rounding"), [(3.9e-12, True), (4.1e-12, False)])
def test_what_cancels_in_a_difference_is_rounding(left, rounding):
    """Two estimates of variance 1, whose difference has variance `left`: a trillionth of what was added up."""
    cov = np.array([[1, 1 - left / 2], [1 - left / 2, 1]])
    two = closed([0.0, 0.0], cov, 9.0, (-np.inf, np.inf), effective=10.0)
    assert bool(two.contrast(np.array([1.0, -1.0]), ["x - y"]).sd[0] == 0) is rounding


# Planning
CUBES = PieceSum("cubes", lambda n, N, m: n * N**2)
PAIRS = eb.measure({r: r // 2 if r % 3 else r + 100 for r in range(80)}, {r: r // 2 for r in range(40)})


@pytest.mark.parametrize("population", [None, 30])
def test_a_plan_has_two_draws_or_more_and_no_more_than_there_are(population):
    design = eb.UniformClusters(population=population)
    found = forecast(eb.Sample(PAIRS, eb.UniformClusters()), [R], {"d": design}).designs["d"]
    with pytest.raises(eb.DataError, match="1 draws: 2 or more are needed"):
        found.half_widths(1, 0.95)
    assert (found.half_widths(2, 0.95) > found.half_widths(30, 0.95)).all()
    with refused_unless(population is None, "31 draws: 2 or more are needed, 30 at most"):
        assert len(found.half_widths(31, 0.95)) == 1


def test_a_pilot_of_two_draws_gives_a_variance_and_one_does_not():
    def pilot(draws):
        labels = {r: r // 2 for r in range(2 * draws)}
        return eb.Sample(eb.measure({r: r // 2 if r > 1 else r + 100 for r in range(80)}, labels),
                         eb.UniformClusters())  # fmt: skip

    assert forecast(pilot(2), [R], {"d": eb.UniformClusters()}).designs["d"].df == 1
    with pytest.raises(eb.DataError, match="a pilot of 1 draws gives no variance"):
        forecast(pilot(1), [R], {"d": eb.UniformClusters()})


def test_a_chance_to_be_found_is_1_at_most():
    """A giant drawn once beside 49 draws of a pair: by the pilot, 2.4 times the chance of one draw."""
    units = eb.measure({r: 0 for r in range(6)}, {0: "small", 1: "small"} | {r: "giant" for r in range(2, 6)})
    pilot = eb.Sample(units, eb.UniformClusters(draws=["giant"] + 49 * ["small"]))
    cubes = forecast(pilot, [m.b3_precision], {"cubes": eb.design.BySize(lambda s: s**3)})
    assert cubes.designs["cubes"].reach.max() == 1 and np.isfinite(cubes.designs["cubes"].cost(5))


def test_no_variation_of_one_draw_is_told_from_little():
    """Recall is the same of every entity: S² is rounding."""
    labels = {r: r // 3 for r in range(30)}
    alike = {r: r // 3 if r % 3 else r + 100 for r in range(60)}
    sample = eb.Sample(eb.measure(alike, labels), eb.UniformClusters())
    pilot = forecast(sample, [R], {"d": eb.UniformClusters()})
    assert pilot.designs["d"].variance[0] == 0


def test_what_cancels_leaves_no_variance():
    """Draws with chances proportional to what is counted tell it without error, to rounding."""
    labels = {r: int(np.sqrt(r)) for r in range(100)}  # entities of 1, 3, 5, ..., 19 records
    pilot = eb.Sample(eb.measure({r: r for r in range(300)}, labels), eb.UniformClusters(population=37))
    total = m.Metric("cubes", (CUBES,), lambda x: x, m.PER_RECORD, m.definitions.POSITIVE, "Σ N³", True)
    found = forecast(pilot, [total], {"d": eb.design.BySize(lambda s: 0.1 * s**3)}).designs["d"]
    assert found.variance[0] == 0


# Labels with errors
@pytest.mark.parametrize(("share", "sound"), [(0, True), (0.99, True), (1, False), (-1e-12, False)])
def test_known_shares_of_error_lie_from_0_to_below_1(share, sound):
    for name in ("removed", "missed", "kept"):
        with refused_unless(sound, r"rates are below 1|must be 0 or more"):
            assert Annotator(**{name: share}).draw(2, 1)[name].tolist() == [share, share]


# Numbers
DOMAINS = {
    r"\b0 or more": ([0.0], [-1e-9]), r"above 0|positive|in \(0, ": ([1e-9], [0.0, np.nan]), "above 1": ([1 + 1e-9], [1.0]),
    r"finite|inf\)": ([1e9], [np.inf, np.nan]), r"from 0 to 1|in \[0, 1\]": ([0.0, 1.0], [-1e-9, 1 + 1e-9, np.nan]), "whole number, 2": ([2], [1]),
    "between 0 and 1": ([1e-9, 1 - 1e-9], [0.0, 1.0, np.nan]), r"at most 1|0, 1\]": ([1.0], [1 + 1e-9]), "whole number, 1": ([1], [0, 1.5]),
}  # fmt: skip
"""What refusals say of numbers: some just inside, and some just outside."""
OF_THREE, THREES = {0: 0.2, 1: 0.3, 2: 0.4}, {r: r // 3 for r in range(9)}
THREE = eb.Sample(eb.measure(THREES, {r: r // 2 for r in range(6)}), eb.UniformClusters())
NUMBERED = {
    "mass": eb.intervals.BetaGamma, "df": eb.intervals.Symmetric, "draws": eb.intervals.Anytime, "level": lambda x: normal(1.0).interval(x),
    "pairwise beta": m.pairwise_f, "cluster beta": m.cluster_f, "p": eb.statistics.quantile_share, "rate": sim.Misattribution,
    "sigma": lambda x: sim.LogNormal(0.0, x), "exponent": sim.Zeta, "exponent to 9": lambda x: sim.Zeta(x, 9), "missed": lambda x: Annotator(missed=x),
    "a": lambda x: Beta(x, 1.0), "b": lambda x: Beta(1.0, x), "cases": lambda x: labels.Gamma(x, 1.0), "entities": lambda x: labels.Gamma(1.0, x),
    "n": lambda x: labels.draw(THREES, n=x, seed=1), "seed": lambda x: labels.draw(THREES, n=1, seed=x), "fewest": lambda x: by_domain(THREE, THREES, R, fewest=x),
    "controls": lambda x: labels.tasks(labels.draw(THREES, n=4, seed=1), controls=x), "replicates": lambda x: bootstrap(THREE, [R], replicates=x, rng=1),
    **{name: lambda x, of=of: of.value(pd.DataFrame({"size": [1.0, 2.0], "x": [x, 2.0]}), np.ones(2)) for name, of in {"gini": eb.statistics.gini("x"), "top": eb.statistics.top(1, "x"), "quantile": eb.statistics.quantile_share(0.5, "x")}.items()},
    "by size": lambda x: eb.design.BySize(lambda s: np.full(len(s), x)).expand(PAIRS), "inclusion": lambda x: eb.design.KnownInclusion(OF_THREE | {0: x}).expand(THREE.units),
    "squares": lambda x: eb.design.KnownInclusion(OF_THREE, squares=x).expand(THREE.units), "up to a factor": lambda x: eb.WeightedRecords([0, 1, 2], [x, 0.2, 0.3]).expand(THREE.units),
    "chances": lambda x: eb.WeightedRecords([0, 1, 2], [x, 0.2, 0.3], absolute=True).expand(THREE.units), "odds": lambda x: eb.design.Responding(eb.UniformRecords([0, 1]), [True, False], odds=x),
    "costs": lambda x: forecast(THREE, [R], {"d": eb.UniformClusters()}, cost=lambda s: np.full(len(s), x)),
    "threshold": lambda x: labels.machine_labels(pd.DataFrame({"drawn": [1], "record": [2], "probability": [1.0]}), [1], threshold=x),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::erbayes.Alarm")
@pytest.mark.parametrize("what", NUMBERED)
def test_numbers_at_the_edge_of_what_a_refusal_states(what):
    with pytest.raises(eb.DataError) as refused:
        NUMBERED[what](-1.0)
    said = [ends for words, ends in DOMAINS.items() if re.search(words, str(refused.value))]
    assert said, str(refused.value)
    for sound, x in [(not side, x) for ends in said for side in (0, 1) for x in ends[side]]:
        with refused_unless(sound, r"\w"):
            NUMBERED[what](x)


# Drawing
def test_no_more_draws_than_there_are():
    assert eb.Sample(PAIRS, eb.UniformClusters(population=20)).expansion.census
    with pytest.raises(eb.DataError, match="20 draws without replacement from a population of 19"):
        eb.Sample(PAIRS, eb.UniformClusters(population=19))


@pytest.mark.parametrize("design", [
    lambda most: eb.UniformClusters(population=most),
    lambda most: eb.KnownWeights(dict.fromkeys(range(20), 1.0), population=most),
    lambda most: eb.Stratified(dict.fromkeys(range(20), "a"), {"a": most}),
])  # fmt: skip
def test_every_unit_has_a_record(design):
    """20 sampled pairs leave 40 of 80 records: room for 40 units more."""
    assert eb.Sample(PAIRS, design(60)).expansion.unit.shape == (20,)
    with pytest.raises(
        eb.DataError, match=r"population = 61 units, but .* 80 records, .* room for 60 at most"
    ):
        eb.Sample(PAIRS, design(61))


def test_units_outside_the_prediction_may_be_in_a_population():
    """Where labelled records are missing, entities may lie beyond the prediction."""
    labels = {r: r // 2 for r in range(40)} | {1000: 0}
    units = eb.measure({r: r // 3 for r in range(80)}, labels, missing=eb.Missing.OMIT)
    assert eb.Sample(units, eb.UniformClusters(population=61)).expansion.unit.shape == (20,)


def test_a_frame_holds_the_prediction():
    assert not eb.Sample(PAIRS, eb.UniformRecords(population=80)).expansion.census
    for population in (79, 81):
        with pytest.raises(eb.DataError, match=f"population = {population}, but the prediction holds 80"):
            eb.Sample(PAIRS, eb.UniformRecords(population=population))


def test_draws_that_found_the_distinct_entities():
    assert len(eb.DistinctEntities(20).expand(PAIRS).unit) == 20
    with pytest.raises(eb.DataError, match="19 draws cannot have found 20 distinct units"):
        eb.DistinctEntities(19).expand(PAIRS)
    assert eb.DistinctEntities(20, records=80).expand(PAIRS).absolute
    with pytest.raises(eb.DataError, match="records = 79, but the prediction holds 80 records"):
        eb.DistinctEntities(20, records=79).expand(PAIRS)
    with pytest.raises(eb.DataError, match="a unit of 2 records in a population of 2"):
        eb.DistinctEntities(1).expand(eb.measure({1: "a", 2: "b"}, {1: "x", 2: "x"}))


@pytest.mark.parametrize(
    ("sizes", "message"), [({"a": 2, "b": 19}, "hold a single draw"), ({"a": 1, "b": 18}, "more units drawn")]
)
def test_strata(sizes, message):
    """One unit in stratum a, 19 in stratum b."""
    stratum = {0: "a"} | dict.fromkeys(range(1, 20), "b")
    assert eb.Stratified(stratum, {"a": 1, "b": 19}).expand(PAIRS).census
    with pytest.raises(eb.DataError, match=message):
        eb.Stratified(stratum, sizes).expand(PAIRS)


def test_the_unseen_share_of_what_a_metric_averages_over():
    """Chances to be missed by hand, weighted by entities or by their links; pseudo-draws take their mass from it."""
    labels = {r: r // 2 if r < 20 else 10 + r // 5 for r in range(40)}
    sample = eb.Sample(eb.measure({r: r for r in range(80)}, labels), eb.DistinctEntities(30))
    misses = np.array([(1 - 2 / 80) ** 30] * 10 + [(1 - 5 / 80) ** 30] * 4)
    links = np.array([1.0] * 10 + [10.0] * 4)
    wanted = [np.average(misses, weights=a / (1 - misses)) for a in (np.ones(14), links)]
    found = fit_sample(sample, [m.cluster_recall, R]).unseen_shares
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


# Bootstrap
def test_the_single_draw_of_a_stratum_of_one_unit_does_not_vary():
    stratum = {0: "a"} | dict.fromkeys(range(1, 20), "b")
    certain = eb.Sample(PAIRS, eb.Stratified(stratum, {"a": 1, "b": 40}))
    found = bootstrap(certain, [R], replicates=5, rng=np.random.default_rng(1), progress=False)
    m = certain.expansion.multipliers(5, np.random.default_rng(1))
    assert len(found.flat) == 5 and np.ptp(m[:, 0]) == 0 < np.ptp(m[:, 1])


# Constants of domains, bets, corrections and stopping
@pytest.mark.parametrize(("greatest", "exact"), [(1.99, True), (2.01, False)])
def test_single_draws_hold_at_most_twice_the_mean_share(greatest, exact):
    """The heaviest cluster of a mixture has the share (n-1)/Σn(n-1) over w/N + (1-w)(n-1)/Σn(n-1)."""
    people = sim.simulate(sim.Zeta(2.3, 30), sim.Misattribution(0.15), 3000, np.random.default_rng(1))
    n = people.pred.value_counts()
    N, ends, most = n.sum(), np.sum(n * (n - 1)), n.max() - 1
    w = brentq(lambda w: most / ends / (w / N + (1 - w) * most / ends) - greatest, 0.01, 0.99)
    column = ClusterSum("mixed", lambda m: w / N + (1 - w) * (m - 1) / ends)
    chance = column.phi(n[people.pred].astype(float))
    records = np.random.default_rng(1).choice(N, 100, p=chance / chance.sum())
    drawn = people.true[records].tolist()
    labels = people.true[people.true.isin(drawn)]
    sample = eb.Sample(eb.measure(people.pred, labels), eb.design.ByPredictedSize(column, drawn))
    if exact:
        values, shares = draws_of(sample, m.pairwise_precision)
        assert len(values) == 100 and (shares <= 1).all()
    else:
        with pytest.raises(eb.NotIdentified, match="single draws may hold over 2 times the mean share"):
            draws_of(sample, m.pairwise_precision)


@pytest.mark.parametrize(("draws", "shown"), [(9, False), (10, True)])
def test_a_domain_has_an_interval_from_ten_effective_draws(draws, shown):
    """Singletons drawn once each, so that each draw is an effective one."""
    true = {i: i for i in range(60)}
    group = pd.Series(["rare"] * draws + ["common"] * (60 - draws), name="g")
    sample = eb.Sample(eb.measure(true, true), eb.UniformRecords(list(range(60))))
    found = by_domain(sample, group, [m.b3_recall]).table().set_index("domain")
    assert found.n_eff["rare"] == pytest.approx(draws)
    assert np.isfinite(found.lower["rare"]) == shown and np.isfinite(found.lower["common"])


def test_degrees_of_freedom_grow_with_the_draws():
    longer = continued(closed(0.5, 0.04, 7.0), 20, 60)
    assert longer.df[0] == pytest.approx(21) and longer.cov[0, 0] == pytest.approx(0.04 / 3)


@pytest.mark.parametrize(("resolved", "classes"), [(10, 2), (9, 1)])
def test_a_class_of_size_has_ten_resolved_draws(resolved, classes):
    sizes = [1] * 20 + [2] * 12
    answered = [True] * (20 + resolved) + [False] * (12 - resolved)
    assert len(np.unique(eb.design.size_classes(sizes, answered))) == classes


@pytest.mark.parametrize(("lacking", "offered"), [(89, True), (90, False)])
def test_no_policy_is_offered_if_nine_tenths_are_missing(lacking, offered):
    known = {r: r for r in range(lacking, 200)}
    with pytest.raises(eb.DataError) as error:
        eb.measure(known, {r: r for r in range(100)})
    assert (remedies.MISSING in error.value.remedies) is offered


@pytest.mark.parametrize(("share", "said"), [(0.1, False), (0.101, True), (0.19, True)])
def test_a_tenth_of_a_second_clustering_out_of_reach_is_said(share, said):
    known = {"weights": np.array([0.5]), "unreached_share": np.array([share]), "names": ("recall",)}
    found = SimpleNamespace(**known, changed=SimpleNamespace(chance=1.0))
    assert bool(AssistedEstimates.of_second(found)) is said


def test_more_than_four_thousand_estimates_by_domain_are_refused():
    settings = SimpleNamespace(metrics=range(40), everyone=False)
    with pytest.raises(eb.DataError, match="101 domains x 40 metrics are more than 4,000 estimates"):
        Settings.of_places(settings, None, range(101))
