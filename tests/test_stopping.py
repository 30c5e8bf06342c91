"""Confidence sequences, and checks of minima: when to stop labelling."""

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from closed import closed
from numpy.testing import assert_allclose, assert_array_equal
from repeats import each_draw
from scipy.optimize import minimize_scalar
from scipy.stats import binom
from test_cli import folder, refused, run  # noqa: F401

import erbayes as eb
from erbayes import metrics as m
from erbayes._internal.errors import Grade, Sentence
from erbayes.engine import Betting, BoundedMeans, betting
from erbayes.engine.bounded_means import draws_of, with_draws
from erbayes.labels import ONCE, REPEATED, LinkEnds, Rule, check, draw, stopping
from erbayes.labels.stopping import Verdict
from erbayes.labels.stopping import _judge_bounds as judge_bounds
from erbayes.metrics.columns import PREDICTED_LINKS, RECORDS, ClusterSum
from erbayes.report import report
from erbayes.study import populations as sim

P, R = m.pairwise_precision, m.pairwise_recall
PACES = {False: lambda n, s: n, True: lambda n, s: s * math.log(1 + s)}


# Bets
def wealth(x, u, p, pace, alpha):
    """The largest wealth of a gambler for p too low, one draw at a time."""
    n, money, most = len(x), 1.0, 1.0
    right, total, squares = 0.5, 1.0, 0.25
    for s, (xs, us) in enumerate(zip(x, u, strict=True), start=1):
        bet = min(math.sqrt(2 * math.log(2 / alpha) / (squares / s * PACES[pace](n, s))), 0.75 / p)
        money *= 1 + bet * us * (xs - p)
        most = max(most, money)
        right, total = right + us * xs, total + us
        squares += (us * (xs - right / total)) ** 2
    return most


def brute(x, u, pace, alpha):
    """The values on a fine grid that neither gambler refutes."""
    grid = np.arange(1, 400) / 400
    kept = [
        p
        for p in grid
        if wealth(x, u, p, pace, alpha) < 2 / alpha and wealth(1 - x, u, 1 - p, pace, alpha) < 2 / alpha
    ]
    return min(kept), max(kept)


@pytest.mark.parametrize("pace", PACES)
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_bets_are_those_of_a_plain_loop(pace, level):
    rng = np.random.default_rng(3)
    for x in (rng.random(40), (rng.random(30) < 0.9) * 1.0, rng.beta(5, 1, 60)):
        for u in (np.ones(len(x)), rng.random(len(x))):
            low, high = betting(x, level, pace, u)
            least, most = brute(x, u, pace, 1 - level)
            assert least - 1 / 400 <= low <= least and most <= high <= most + 1 / 400


INDEX = np.arange(60)
EXAMPLES = {
    "right": np.where(INDEX % 12 == 5, 0.0, 1.0),
    "shares": ((7 * INDEX) % 11) / 10,
    "late": np.where(INDEX < 40, 1.0, 0.25),
}


@pytest.mark.parametrize("name, once, anytime", [
    ("right", (0.78225, 0.99025), (0.77550, 0.99325)),
    ("shares", (0.39200, 0.60625), (0.37100, 0.62000)),
    ("late", (0.88550, 0.91500), (0.88600, 0.95725)),
])  # fmt: skip
def test_intervals_are_those_of_the_authors(name, once, anytime):
    """confseq 0.0.11 of Waudby-Smith, on a grid of 1/4000, with c = 3/4 and the running intersection."""
    x = EXAMPLES[name]
    assert_allclose(betting(x), once, atol=3 / 8000)
    assert_allclose(betting(x, anytime=True), anytime, atol=3 / 8000)


@pytest.mark.every(3)
@pytest.mark.parametrize("pace", PACES)
@pytest.mark.parametrize("p", [0.03, 0.3, 0.5, 0.8, 0.97])
def test_every_sequence_of_right_and_wrong_is_covered_with_its_probability(pace, p):
    """Exact, by enumeration: 2^13 sequences of 13 draws, each with its probability."""
    x = np.array(list(itertools.product([0.0, 1.0], repeat=13)))
    ends = betting(x, 0.8, pace)
    chance = np.prod(np.where(x == 1, p, 1 - p), axis=1)
    assert chance.sum() == pytest.approx(1)
    low, high = chance @ (ends[:, 0] > p), chance @ (ends[:, 1] < p)
    assert low <= 0.1 and high <= 0.1
    assert chance @ ((ends[:, 0] <= p) & (p <= ends[:, 1])) >= 0.8, "crossed ends cover nothing"


def test_every_sequence_of_unequal_shares_is_covered_with_its_probability():
    """Draws of three kinds: ratio and share (1, .25), (.5, 1), (0, .5), with E[u (x - p)] = 0."""
    kinds, chances = np.array([[1, 0.25], [0.5, 1], [0, 0.5]]), np.array([0.5, 0.3, 0.2])
    at = np.array(list(itertools.product(range(3), repeat=8)))
    p = chances @ kinds.prod(axis=1) / (chances @ kinds[:, 1])
    ends = betting(kinds[at, 0], 0.8, True, kinds[at, 1])
    chance = chances[at].prod(axis=1)
    assert chance @ (ends[:, 0] > p) <= 0.1 and chance @ (ends[:, 1] < p) <= 0.1
    assert chance @ ((ends[:, 0] <= p) & (p <= ends[:, 1])) >= 0.8
    assert chance @ ((ends[:, 0] > 0.2) | (ends[:, 1] < 0.9)) > 0.5, "intervals are not trivial"


@pytest.mark.parametrize("pace", PACES)
def test_draws_that_no_mean_explains_have_no_interval(pace):
    x = np.r_[np.ones(300), np.zeros(300)]
    grid = np.arange(1, 40) / 40
    ones = np.ones_like(x)
    refuted = [max(wealth(x, ones, p, pace, 0.05), wealth(1 - x, ones, 1 - p, pace, 0.05)) for p in grid]
    assert min(refuted) >= 40, "one of two gamblers gets rich at every value"
    mixed = np.random.default_rng(1).permutation(x)
    ends = betting(np.stack([x, mixed]), anytime=pace)
    assert ends[0, 0] > ends[0, 1] and ends[1, 0] < 0.5 < ends[1, 1]
    means = with_draws(fit(0.5, 0.02, 600.0), x[:, None], np.ones((600, 1)))
    assert np.isnan(means.interval(0.95, Betting(pace))).all()


@pytest.mark.parametrize("kind", [Betting(), Betting(anytime=True)])
def test_no_interval_leaves_out_the_mean_of_its_draws_or_the_estimate(kind):
    """Early draws refute the mean of all, .75, which lies below the values that they leave."""
    x = EXAMPLES["late"][:, None]
    low, high = betting(x[:, 0], anytime=kind.anytime)
    assert 0.75 < low < high
    for values, mean in [(x, 0.75), (1 - x, 0.25), (x, low), (x, high)]:
        found = with_draws(fit(mean, 0.05, 60.0), values, np.ones((60, 1)))
        assert np.isnan(found.interval(0.95, kind)).all()
    mixed = np.random.default_rng(1).permutation(x)
    low, high = betting(mixed[:, 0], anytime=kind.anytime)
    assert low < 0.75 < high
    beyond = (low - 0.01, [low - 0.01, high]), (high + 0.01, [low, high + 0.01])
    for mean, ends in [(0.75, [low, high]), *beyond]:
        found = with_draws(fit(mean, 0.05, 60.0), mixed, np.ones((60, 1)))
        assert_array_equal(found.interval(0.95, kind)[0], ends)
    assert found.table(0.95, kind)["kind"].tolist() == [kind.label(found, 0)]


@pytest.mark.parametrize("values, given, problem", [
    ([0.5, 1.2], {}, r"values must lie in \[0, 1\]; 1 of 2 do not"),
    ([0.5, np.nan], {}, r"values must lie in \[0, 1\]; 1 of 2"),
    ([], {}, "one draw or more"),
    (["a"], {}, "values"),
    ([0.5], {"shares": [2.0]}, r"shares must lie in \[0, 1\]"),
    ([0.5], {"level": 1.0}, "level must lie"),
])  # fmt: skip
def test_bets_refuse_other_values_shares_and_levels(values, given, problem):
    with pytest.raises(eb.DataError, match=problem):
        betting(values, **given)


# Metrics that are means of bounded numbers
PEOPLE = sim.simulate(sim.Zeta(2.3, 30), sim.Misattribution(0.15), 3000, np.random.default_rng(1))
CENSUS = PEOPLE.units


class Mixed(LinkEnds):
    """A plan of one's own: a share of uniform records, otherwise ends of links."""

    def __init__(self, share):
        object.__setattr__(self, "share", share)

    def column(self, known):
        ends, records = known.total(PREDICTED_LINKS), known.total(RECORDS)
        uniform, rest = self.share / records, (1 - self.share) / ends
        return ClusterSum("mixed", lambda m: uniform + rest * PREDICTED_LINKS.phi(m))


def of_links(seed=1, n=200, plan=None):
    drawn = draw(PEOPLE.pred, plan or LinkEnds(), n=n, seed=seed)
    entities = PEOPLE.true[drawn.table["record"]]
    labels = PEOPLE.true[PEOPLE.true.isin(entities)]
    return eb.Sample(eb.measure(PEOPLE.pred, labels), drawn.design(labels)), entities


def brute_ratio(entity):
    """Share of the predicted links with an end in the entity, half for each end, that are right."""
    here = PEOPLE.pred[PEOPLE.true == entity]
    sizes = PEOPLE.pred.value_counts()[here].to_numpy()
    right = sum(k * (k - 1) / 2 for k in here.value_counts())
    return right / ((sizes - 1) / 2).sum()


def test_precision_is_the_plain_mean_over_ends_of_predicted_links():
    sample, entities = of_links()
    values, shares = draws_of(sample, P)
    assert_allclose(values, [brute_ratio(e) for e in entities])
    assert_allclose(shares, 1)
    found, known = BoundedMeans()(sample, [P]), eb.engine.taylor(sample, P).apply(P)
    assert found.mean[0] == known.mean[0] and found.sd[0] == known.sd[0]
    assert_allclose(found.interval()[0], betting(values))
    assert_allclose(found.interval(0.9, Betting(anytime=True))[0], betting(values, 0.9, anytime=True))


def test_a_mixture_has_bounded_shares_of_mean_one():
    sample, entities = of_links(plan=Mixed(0.4), n=2000)
    values, shares = draws_of(sample, P)
    sizes = PEOPLE.pred.map(PEOPLE.pred.value_counts())
    links = (sizes - 1).groupby(PEOPLE.true).sum() / (sizes - 1).sum()
    chance = 0.4 * PEOPLE.true.value_counts() / len(sizes) + 0.6 * links
    of_record = (sizes - 1) / (sizes - 1).sum()
    most = (of_record / (0.4 / len(sizes) + 0.6 * of_record)).max()
    assert_allclose(shares, (links / chance)[entities] / most, atol=1e-12)
    assert most < 1 / 0.6
    each = eb.Sample(sample.units, replace(sample.design, repeats=True))
    assert (shares @ values) / shares.sum() == pytest.approx(eb.engine.taylor(each, P).apply(P, 1).mean[0])


@pytest.mark.parametrize("design, metric, problem", [
    (eb.UniformRecords(), P, "may hold over 2 times the mean share of predicted_links"),
    (eb.UniformRecords(), m.entities, "no ratio of totals"),
    (eb.UniformRecords(), m.fowlkes_mallows, "no ratio of totals"),
    (eb.UniformRecords(), m.rand, "no ratio of totals"),
    (eb.UniformRecords(), R, "mean share of true_links"),
    (eb.UniformRecords(population=3000), m.b3_recall, "independent draws with replacement"),
    (eb.DistinctEntities(9000), m.b3_recall, "independent draws with replacement"),
    (eb.UniformClusters(), m.b3_recall, "mean share of records"),
])  # fmt: skip
def test_other_metrics_and_designs_have_no_exact_interval(design, metric, problem):
    with pytest.raises(eb.NotIdentified, match=problem):
        draws_of(eb.Sample(CENSUS, design), metric)


def test_bets_need_the_scale_of_weights_or_equal_shares():
    chances = eb.design.KnownSelection(pd.Series(CENSUS.size / 3000, CENSUS.ids), CENSUS.ids)
    of_size = eb.design.ByPredictedSize(eb.columns.RECORDS, CENSUS.ids)
    records = eb.UniformRecords(CENSUS.ids)
    some, none = replace(CENSUS, known=replace(CENSUS.known, singletons=False)), replace(CENSUS, known=None)
    wanted = draws_of(eb.Sample(CENSUS, records), m.b3_recall)
    to_a_factor = eb.design.BySize(lambda size: 2 * size, CENSUS.ids)
    for units, design in ((CENSUS, to_a_factor), (CENSUS, chances), (CENSUS, of_size), (none, records)):
        assert_allclose(draws_of(eb.Sample(units, design), m.b3_recall), wanted, rtol=1e-12)
    for units, design in ((none, chances), (some, chances)):
        with pytest.raises(eb.NotIdentified, match="over 2 times the mean share of records"):
            draws_of(eb.Sample(units, design), m.b3_recall)


LINKS = eb.columns.PREDICTED_LINKS
LINKED = CENSUS.take(np.flatnonzero(CENSUS.column(LINKS) > 0))


@pytest.mark.parametrize(
    "make, metric",
    [
        (lambda ids: eb.UniformRecords(ids), m.b3_recall),
        (lambda ids: eb.UniformClusters(draws=ids), m.cluster_recall),
        (lambda ids: eb.design.ByPredictedSize(LINKS, ids), P),
        (lambda ids: eb.design.FrozenWeights(eb.design.ByPredictedSize(LINKS, ids), LINKED), P),
    ],
    ids=["records", "entities", "link ends", "kept weights"],
)
def test_bets_need_draws_in_their_order(make, metric):
    some = LINKED if metric is P else CENSUS
    at = np.random.default_rng(3).permutation(len(some))
    design = make(None)
    with pytest.raises(eb.NotIdentified, match="depends on the order of draws: list the unit of each draw"):
        draws_of(eb.Sample(some, design), metric)
    listed = eb.Sample(some, make(some.ids[at]))
    assert_array_equal(listed.expansion.order, at)
    values, _ = draws_of(listed, metric)
    assert_allclose(values[np.argsort(at)], draws_of(eb.Sample(some, make(some.ids)), metric)[0], rtol=1e-12)


def test_weighted_records_are_draws_in_their_order():
    labels = PEOPLE.true[PEOPLE.true.isin(PEOPLE.true.unique()[:50])]
    sizes = PEOPLE.pred.map(PEOPLE.pred.value_counts()) - 1
    drawn = [r for r in labels.index[::3] if sizes[r]]
    labels = labels[labels.isin(labels[drawn])]
    design = eb.WeightedRecords.of(labels, drawn, sizes / sizes.sum(), absolute=True)
    values, _ = draws_of(eb.Sample(eb.measure(PEOPLE.pred, labels), design), P)
    assert_allclose(values, [brute_ratio(e) for e in PEOPLE.true[drawn]])


def test_units_that_are_alike_by_chance_are_no_proof():
    """All sampled entities are exact and of two records, but the population has others."""
    prediction = {i: i // 2 for i in range(60)} | {i: 99 for i in range(60, 90)}
    labels = {i: i // 2 for i in range(40)}
    units = eb.measure(prediction, labels)
    weighted = eb.WeightedRecords(list(range(20)), np.full(20, 2 / 90), absolute=True)
    for design in (eb.UniformRecords(), weighted):
        with pytest.raises(eb.NotIdentified, match="over 2 times the mean share"):
            draws_of(eb.Sample(units, design), P)


# Large-sample sequences
def robbins(n, alpha, tuned):
    """The boundary of Waudby-Smith et al. (2024), proposition 5.3 in the number of standard errors."""

    def half(log_rho2, n):
        x = n * math.exp(log_rho2)
        return math.sqrt(2 * (x + 1) / (n * x) * math.log(math.sqrt(x + 1) / alpha))

    best = minimize_scalar(half, (-8, 0), args=(tuned,), tol=1e-14).x
    return math.sqrt(n) * half(best, n)


@pytest.mark.parametrize("alpha", [0.3, 0.05, 0.001])
@pytest.mark.parametrize("n", [10.0, 150.0, 4000.0])
def test_the_boundary_is_that_of_robbins(alpha, n):
    found = eb.intervals.Anytime(150).quantile(np.array(n), alpha)
    assert found == pytest.approx(robbins(n, alpha, 150), rel=1e-6)


def fit(x, sd, effective, support=m.UNIT):
    return closed(x, sd**2, support=support, effective=effective)


def test_a_sequence_is_a_longer_interval_of_the_kind_at_each_look():
    wald = fit(0.5, 0.01, 100.0).interval(0.95, eb.intervals.Anytime(100, eb.intervals.WALD))[0]
    assert_allclose(wald, 0.5 + 0.01 * robbins(100, 0.05, 100) * np.array([-1, 1]), rtol=1e-6)
    for kind in (eb.intervals.BetaGamma(), eb.intervals.Symmetric()):
        inner, outer = (
            fit(0.9, 0.02, 80.0).interval(0.95, k)[0] for k in (kind, eb.intervals.Anytime(kind=kind))
        )
        assert outer[0] < inner[0] < inner[1] < outer[1]


def test_what_a_sequence_needs():
    with pytest.raises(eb.DataError, match="effective number of draws, which these estimates have not"):
        fit(0.5, 0.01, np.inf).interval(0.95, eb.intervals.Anytime())
    assert_array_equal(fit(0.5, 0.0, np.inf).interval(0.95, eb.intervals.Anytime()), [[0.5, 0.5]])
    with pytest.raises(eb.DataError, match="kind is one of the intervals in closed form"):
        eb.intervals.Anytime(kind=eb.intervals.EqualTailed())


@pytest.mark.parametrize("effective", [0.5, 1.0, 2.0, 3.0, 5.0])
@pytest.mark.parametrize("support", [m.UNIT, m.definitions.POSITIVE, (-np.inf, np.inf)])
def test_a_sequence_of_very_few_draws_is_the_whole_range(effective, support):
    """The tail is then so small that 1 - tail is 1, whose quantile is no number."""
    for sd in (0.0, 0.3):
        low, high = fit(0.9, sd, effective, support).interval(0.95, eb.intervals.Anytime())[0]
        assert low <= 0.9 <= high and ((low, high) == support) == (effective < 3)


def test_differences_have_sequences_too():
    found = eb.compare({"a": PEOPLE.pred, "b": PEOPLE.true}, PEOPLE.true[:600], eb.UniformClusters(), [R])
    table = found.differences(0.95, eb.intervals.Anytime())
    assert (table["upper"] > table["lower"]).all()
    assert table["kind"].tolist() == ["gains and losses at any time"]


# Checks
def test_verdicts_follow_from_intervals():
    sample, _ = of_links(n=150)
    exact = BoundedMeans()(sample, [P]).interval(0.95, Betting(anytime=True))[0]
    for minimum, verdict in (
        (exact[0] - 1e-6, Verdict.HOLDS),
        (exact[0] + 1e-6, Verdict.OPEN),
        (exact[1] - 1e-6, Verdict.OPEN),
        (exact[1] + 1e-6, Verdict.FAILS),
    ):
        found = check(sample, {P: minimum})
        assert found.verdict is verdict
        assert_allclose(found.interval[0], exact)
    once = check(sample, {P: 0.5}, ONCE)
    assert_allclose(once.interval[0], BoundedMeans()(sample, [P]).interval(0.95, Betting())[0])


def test_several_metrics_share_the_level():
    sample, _ = of_links(plan=Mixed(0.4))
    found = check(sample, {P: 0.5, "pairwise-recall": 0.5}, Rule(0.9))
    assert found.level == check(sample, {"b3": 0.5}, Rule(0.9)).level == pytest.approx(0.95)
    wanted = eb.engine.taylor(sample, R).apply(R).interval(0.95, eb.intervals.Anytime())[0]
    assert_allclose(found.interval[1], wanted)
    assert found.kinds == ("betting at any time", "Beta at any time")
    assert found.table()["level"].tolist() == pytest.approx([0.95, 0.95])


@pytest.mark.parametrize(
    "verdicts, whole", [("HHH", "HOLDS"), ("HOH", "OPEN"), ("HOF", "FAILS"), ("FHH", "FAILS")]
)
def test_one_verdict_for_all(verdicts, whole):
    sample, _ = of_links(plan=Mixed(0.4))
    least = {"H": 0.01, "O": None, "F": 0.9999}
    names = ["pairwise-precision", "pairwise-recall", "b3-recall"]
    estimates = eb.engine.taylor(sample, names).apply(names).mean
    minimum = {
        name: least[v] or estimate for name, v, estimate in zip(names, verdicts, estimates, strict=True)
    }
    found = check(sample, minimum)
    assert [v.name[0] for v in found.verdicts] == list(verdicts) and found.verdict is Verdict[whole]


def repeated(sample, total):
    """A sample whose draws are those of another, again and again, up to a number."""
    ids = sample.units.ids[np.resize(sample.expansion.order, total)]
    return eb.Sample(sample.units, eb.design.ByPredictedSize(sample.design.probability, ids))


@pytest.mark.every(3)
@pytest.mark.parametrize("plan", [LinkEnds(), Mixed(0.5)])
@pytest.mark.parametrize("off", [-0.05, 0.05])
@pytest.mark.parametrize("rule", [REPEATED, ONCE])
def test_further_draws_are_those_that_decide_if_draws_repeat(plan, off, rule):
    sample, _ = of_links(3, 60, plan)
    minimum = BoundedMeans()(sample, [P]).mean[0] + off
    (more,) = check(sample, {P: minimum}, rule).further
    assert more > 0
    # by their bounds alone, since draws again and again are a sample out of balance
    after, before = (check(repeated(sample, n + more), {P: minimum}, rule).interval[0] for n in (60, 59))
    assert judge_bounds(after, minimum) is not Verdict.OPEN and judge_bounds(before, minimum) is Verdict.OPEN


@pytest.mark.parametrize("rule", [REPEATED, ONCE])
def test_further_draws_of_the_closed_form_are_about_right(rule):
    sample, _ = of_links(3, 150, Mixed(0.5))
    minimum = check(each_draw(repeated(sample, 450)), {R: 0.6}, rule).interval[0, 0]
    (more,) = check(each_draw(sample), {R: minimum}, rule).further
    assert more == pytest.approx(300, rel=0.05)


def test_further_draws_are_0_if_decided_and_unknown_at_the_estimate():
    sample = each_draw(of_links()[0])
    estimate = float(eb.engine.taylor(sample, P).apply(P, 1).mean[0])
    assert check(sample, {P: 0.01}).further == (0,)
    found = check(sample, {P: estimate})
    assert found.further == (None,) and "100,000 draws would not decide" in found.sentences()[0]


HALVES = {r: r // 2 if r < 4000 else r for r in range(8000)}
"""Entities of two records, r // 2: the first thousand are found, the second thousand are split."""


def of_halves(drawn, listed=True):
    labels = {r: r // 2 for entity in drawn for r in (2 * entity, 2 * entity + 1)}
    return eb.Sample(eb.measure(HALVES, labels), eb.UniformClusters(draws=list(drawn) if listed else None))


DRAWN_HALVES = np.random.default_rng(4).choice(4000, 400, replace=False)


@pytest.mark.parametrize("rule", [REPEATED, ONCE])
def test_a_check_bets_on_listed_draws_alone(rule):
    bets, plain = (
        check(of_halves(DRAWN_HALVES, listed), {m.cluster_recall: 0.6}, rule) for listed in (True, False)
    )
    at_any_time = " at any time" * (rule is REPEATED)
    assert bets.kinds == (f"betting{at_any_time}",) and plain.kinds == (f"Beta{at_any_time}",)
    wanted = eb.engine.taylor(of_halves(DRAWN_HALVES), m.cluster_recall).apply(m.cluster_recall)
    assert_allclose(plain.interval, wanted.interval(0.95, rule.kind))
    assert_array_equal(bets.interval[0], betting(1.0 * (DRAWN_HALVES < 2000), anytime=rule is REPEATED))


@pytest.mark.parametrize("rule", [REPEATED, ONCE])
def test_draws_in_a_wrong_order_have_no_interval_and_decide_nothing(rule):
    found = check(of_halves(np.sort(DRAWN_HALVES)), {m.cluster_recall: 0.4}, rule)
    assert found.verdict is Verdict.OPEN and np.isnan(found.interval).all() and found.further == (None,)
    (said,) = found.sentences()
    assert said.startswith("cluster-recall is open: it has no interval (95 %, betting")
    assert said.endswith(
        "0.4 is required, but its draws contradict each other, as those do that are not independent, not listed in "
        "the order of drawing, or not drawn from this prediction."
    )
    assert found.table()["reason"].tolist() == list(found.reasons) and "nan" not in said


def of_dropped_repeats():
    """All 50 entities of eight records, of which some were drawn twice; all but one are predicted as pairs."""
    labels = {r: r // 8 for r in range(400)}
    prediction = {r: 0 if r < 8 else r // 2 for r in range(400)}
    return eb.Sample(eb.measure(prediction, labels), eb.UniformRecords())


def test_no_metric_holds_beside_a_fault(monkeypatch):
    sample, calls = of_dropped_repeats(), []
    monkeypatch.setattr(stopping, "alarms", lambda *asked: calls.append(asked) or eb.alarms(*asked))
    minimum = {P: 0.3, m.b3_precision: 0.3, R: 0.9}
    found = check(sample, minimum)
    assert len(calls) == 1 and list(found.alarms) == eb.alarms(sample, list(minimum))
    (fault,) = [alarm for alarm in found.alarms if alarm.grade is Grade.FAULT]
    assert found.interval[0, 0] > 0.3 and found.interval[2, 1] < 0.9
    assert [v.name for v in found.verdicts] == ["OPEN", "OPEN", "FAILS"] and found.further == (None, None, 0)
    reason = f"the sample has a fault: {fault.what}"
    assert found.reasons == (reason, reason, "")
    assert found.sentences()[0].endswith(f"0.3 is required, but {reason}.")
    monkeypatch.setattr(stopping, "alarms", lambda *_: [Sentence("Doubtful.", Grade.CAUTION)])
    assert [v.name for v in check(sample, minimum).verdicts] == ["HOLDS", "HOLDS", "FAILS"]


def test_a_report_and_a_check_agree_about_faults():
    faulty, sound = of_dropped_repeats(), of_links(plan=Mixed(0.4))[0]
    for sample, forbidden in ((faulty, True), (sound, False)):
        page = report(sample, [P], engines={"closed form": eb.engine.Taylor()})
        assert ("Mend these first" in page) is forbidden
        assert (check(sample, {P: 0.1}).verdict is Verdict.OPEN) is forbidden


@pytest.mark.parametrize("minimum, problem", [
    ({}, "nothing to check"),
    ({"pairwise-precision": 1.0}, "minimum of pairwise-precision must lie between 0 and 1"),
    ({"pairwise-precision": "0.9"}, "must lie between 0 and 1"),
    ({"pairwise": 0.9}, "no metric 'pairwise'"),
    ([("pairwise-precision", 0.9)], "minimum maps metrics to numbers"),
])  # fmt: skip
def test_a_check_refuses_other_minima(minimum, problem):
    with pytest.raises(eb.DataError, match=problem):
        check(of_links()[0], minimum)


def test_a_check_refuses_other_rules_and_lone_draws():
    with pytest.raises(eb.DataError, match="a rule is an object such as REPEATED"):
        check(of_links()[0], {P: 0.5}, "once")
    with pytest.raises(eb.DataError, match="level"):
        Rule(95)
    with pytest.raises(eb.DataError, match="Anytime is a class"):
        Rule(kind=eb.intervals.Anytime)
    lone = eb.Sample(eb.measure({1: "a", 2: "a"}, {1: "x", 2: "x"}), eb.UniformClusters())
    with pytest.raises(eb.DataError, match="no standard error in this sample: label more"):
        check(lone, {P: 0.5})


@pytest.mark.slow
def test_false_passes_are_rare_at_every_look():
    """The minimum is just above the truth: no more than 5 % of samples pass at any of 20 looks."""
    design = eb.design.ByPredictedSize(eb.columns.PREDICTED_LINKS)
    truth = float(eb.engine.taylor(eb.Sample(CENSUS, eb.UniformClusters(len(CENSUS))), P).apply(P, 1).mean[0])
    rng = np.random.default_rng(8)
    at = rng.choice(len(CENSUS), p=design.make_round(CENSUS, 1).p, size=(400, 200))
    passed, once = np.zeros(400, bool), np.zeros(400, bool)
    for look in range(10, 201, 10):
        found = BoundedMeans()(eb.Sample.many(CENSUS, design, at[:, :look]), [P])
        passed |= found.interval(0.95, Betting(anytime=True))[:, 0, 0] > truth
        once |= found.interval(0.95, eb.intervals.WALD)[:, 0, 0] > truth
    assert passed.mean() <= binom.ppf(0.999, 400, 0.025) / 400
    assert once.mean() > 0.1, "an interval for one look passes far too often"


# The command line
CHECK = ("check", "p.csv", "l.parquet", "--design", "uniform-records", "--drawn", "drawn.csv")
LARGE = ("check", "pred.csv", "true.csv", "--design", "uniform-clusters")


@pytest.mark.parametrize("options, status", [
    (["--min-precision", "0.3"], 0),
    (["--min-recall", "0.99"], 1),
    (["--min-precision", "0.3", "--min-recall", "0.7"], 1),  # all is labelled, and recall .6985
    (["--min-precision", "0.68", "--min-recall", "0.99"], 1),
    (["--min", "b3-recall=0.3", "--once"], 0),
])  # fmt: skip
def test_the_exit_status_is_the_verdict(tmp_path, monkeypatch, options, status):
    monkeypatch.chdir(tmp_path)
    PEOPLE.pred.rename_axis("record").rename("cluster").to_csv("pred.csv")
    PEOPLE.true.rename_axis("record").rename("entity").to_csv("true.csv")
    shown = run(*LARGE, *options)
    assert shown.exit_code == status, shown.output
    assert shown.stdout.count("\n") == len([o for o in options if o.startswith("--min")])


def test_a_fault_or_a_wrong_order_leaves_the_shell_undecided(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.Series({r: r // 2 for r in range(400)}, name="cluster").rename_axis("record").to_csv("p.csv")
    pd.Series({r: r // 8 for r in range(400)}, name="entity").rename_axis("record").to_csv("l.csv")
    words = ("check", "p.csv", "l.csv", "--design", "uniform-records")
    shown = run(*words, "--min-precision", "0.3")
    assert shown.exit_code == 3 and "fault: By the units" in shown.stderr
    assert "0.3 is required, but the sample has a fault: By the units" in shown.stdout
    assert run(*words, "--min-precision", "0.3", "--min-recall", "0.9").exit_code == 1
    pd.Series(HALVES, name="cluster").rename_axis("record").to_csv("p.csv")
    drawn = np.sort(DRAWN_HALVES)
    labels = pd.Series({r: r // 2 for r in HALVES if r // 2 in drawn}, name="entity")
    labels.rename_axis("record").to_csv("l.csv")
    pd.Series(drawn, name="entity").to_csv("drawn.csv", index=False)
    words = ("check", "p.csv", "l.csv", "--design", "uniform-clusters", "--drawn", "drawn.csv")
    shown = run(*words, "--min", "cluster-recall=0.4")
    assert shown.exit_code == 3 and "its draws contradict each other" in shown.stdout
    (row,) = json.loads(run(*words, "--min", "cluster-recall=0.4", "--format", "json").stdout)["estimates"]
    assert row["lower"] is None and row["upper"] is None and row["verdict"] == "open"


def test_the_shell_checks_what_python_checks(folder):  # noqa: F811
    from test_cli import DRAWN, LABELS, PRED

    sample = eb.Sample(eb.measure(PRED, LABELS), eb.UniformRecords(DRAWN))
    minimum = {P: 0.5, R: 0.6, m.b3_recall: 0.7}
    words = ("--min-precision", 0.5, "--min-recall", 0.6, "--min", "b3-recall = 0.7", "--level", 0.9)
    for once, rule in (
        ((), Rule(0.9, REPEATED.kind, REPEATED.exact)),
        (("--once",), Rule(0.9, ONCE.kind, ONCE.exact)),
    ):
        wanted = check(sample, minimum, rule)
        assert run(*CHECK, *words, *once).stdout.splitlines() == wanted.sentences()
        rows = json.loads(run(*CHECK, *words, *once, "--format", "json").stdout)["estimates"]
        table = wanted.table().reset_index()
        assert [row["verdict"] for row in rows] == table["verdict"].tolist()
        assert [row["lower"] for row in rows] == pytest.approx(table["lower"].tolist())
        assert [row["further"] for row in rows] == [None if pd.isna(x) else x for x in table["further"]]


@pytest.mark.parametrize("options, problem", [
    ([], "nothing to check: give --min-precision, --min-recall or --min METRIC=VALUE"),
    (["--min", "b3-recall"], "--min b3-recall: write one METRIC=VALUE"),
    (["--min", "b3-recall=0.9,b3-precision=0.8"], "--min b3-recall=0.9,b3-precision=0.8: write one METRIC=VALUE"),
    (["--min", "b4=0.5"], "no metric 'b4'"),
    (["--min-recall", "1.5"], "the minimum of pairwise-recall must lie between 0 and 1, both excluded, not 1.5"),
    (["--min-recall", ".5", "--min", "pairwise-recall=0.6"], "1 metrics have two minima, such as 'pairwise-recall'"),
])  # fmt: skip
def test_the_shell_refuses_other_minima(folder, options, problem):  # noqa: F811
    assert problem in refused(*CHECK, *options)


@pytest.mark.parametrize(("lower", "upper", "verdict"), [
    (0.9, 1.0, Verdict.HOLDS),
    (0.8, 0.9, Verdict.OPEN),
    (0.8, 0.899, Verdict.FAILS),
    (0.899, 1.0, Verdict.OPEN),
])  # fmt: skip
def test_a_metric_at_its_minimum_is_good_enough(lower, upper, verdict):
    assert judge_bounds(np.array([lower, upper]), 0.9) is verdict


def test_links_per_true_link_have_no_minimum():
    sample = eb.Sample(eb.measure({1: "a", 2: "a"}, {1: "x", 2: "x"}), eb.UniformRecords(["x"]))
    with pytest.raises(eb.DataError, match="link-ratio is best at 1"):
        check(sample, {"link-ratio": 0.9})
