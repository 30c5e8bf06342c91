"""Estimates with the help of a second clustering: the full count, the weight, the guards, and who takes them."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import oracle
import pandas as pd
import pytest
from checks import raises
from matplotlib.figure import Figure
from repeats import each_draw
from scipy.stats import beta, binom, norm
from test_census import population

import erbayes as eb
from erbayes import columns as u
from erbayes import engine, plots
from erbayes import metrics as m
from erbayes.auxiliary.assistance import Linearised
from erbayes.auxiliary.second import ChangedShare, Reference, find_reached
from erbayes.design.draws import count_each, count_independent
from erbayes.engine.closed_form import ClosedForm
from erbayes.engine.control_variate import ControlVariate, Effects
from erbayes.engine.fitted import fit_sample
from erbayes.labels import Records
from erbayes.report import report
from erbayes.study import UniformEntities, study
from erbayes.study import populations as sim

SUMS = tuple(x for x in m.ALL if all(not isinstance(c, u.GroupMax) for c in x.columns))
PR = (m.pairwise_precision, m.pairwise_recall)
RNG = np.random.default_rng(5)
TRUTH = sim.population(sim.LogNormal(0.5, 1.0), 4000, RNG)
PREDICTION = pd.Series(sim.Misattribution(0.2).apply(TRUTH.to_numpy(), RNG), TRUTH.index)
GOOD = pd.Series(sim.Misattribution(0.01).apply(TRUTH.to_numpy(), RNG), TRUTH.index)
USELESS = pd.Series(RNG.permutation(TRUTH.to_numpy()), TRUTH.index)
DRAWS = TRUTH.iloc[RNG.integers(len(TRUTH), size=150)].tolist()
LABELS = TRUTH[TRUTH.isin(DRAWS)]
DESIGN = eb.UniformRecords(DRAWS)
SAMPLE = eb.Sample(eb.measure(PREDICTION, LABELS), DESIGN)


def second(by=GOOD, prediction=PREDICTION, labels=LABELS, **options):
    return eb.auxiliary.Second.of(prediction, labels, by, **options)


def helped(by=GOOD, metrics=PR, sample=SAMPLE, **options):
    return eb.auxiliary.Assisted(second(by), **options)(sample, metrics)


@pytest.mark.parametrize("seed", range(4))
def test_the_full_count_is_a_census_with_the_second_clustering_as_the_truth(seed):
    pred, true = population(seed)
    other = population(seed + 50)[1]
    expected = oracle.truth(list(other), list(pred))
    found = second(other, pred, true)
    for metric in SUMS:
        np.testing.assert_allclose(found.value(metric), expected[metric.name], rtol=1e-12, atol=1e-12)


def small():
    """Eight records: truth, prediction, second clustering, which none nests in another."""
    records = list("abcdefgh")
    return (pd.Series(list(x), records) for x in ("xxxyyzzw", "11223344", "pppqqqrs"))


@pytest.mark.parametrize("design", [eb.UniformRecords, eb.UniformClusters])
def test_every_total_of_the_second_clustering_is_unbiased(design):
    """By enumeration of all samples of two draws. A correction with any fixed λ has mean 0 to first order."""
    truth, prediction, by = small()
    columns = [c for c in u.COLUMNS if not isinstance(c, u.GroupMax)]
    whole = np.array([c.count(second(by, prediction, truth).whole).sum() for c in columns])
    if design is eb.UniformRecords:
        samples = list(product(truth, repeat=2))
    else:
        samples = list(product(truth.unique(), repeat=2))
    found = np.zeros(len(columns))
    for draws in samples:
        labels = truth[truth.isin(draws)]
        units = second(by, prediction, labels).units
        scale = 1 if design is eb.UniformRecords else truth.nunique()
        found += scale * eb.Sample(units, design(draws=list(draws))).contributions(columns).sum(axis=0)
    np.testing.assert_allclose(found / len(samples), whole, rtol=1e-12)


def test_records_of_a_unit_are_counted_by_brute_force():
    truth, prediction, by = small()
    units = second(by, prediction, truth[truth == "y"]).units  # d, e: both q; predicted 2, 3
    assert units.counted.tolist() == [1, 1] and units.n.tolist() == [1, 2] and units.N.tolist() == [3, 3]
    assert units.size.tolist() == [2]
    np.testing.assert_allclose(units.column(u.COMMON_LINKS), [1 * (0 + 1) / 2])


def test_blocks_are_those_of_measure():
    blocks = TRUTH % 7
    kept = blocks.isin([2, 5])
    units = second(labels=TRUTH[kept], blocks=blocks[kept]).units
    other = eb.measure(PREDICTION, TRUTH[kept], blocks=blocks[kept])
    assert units.ids.equals(other.ids)
    np.testing.assert_allclose(units.size, other.size)


def giants(*sizes, others=100):
    """Entities of some sizes, numbered in order, and others of three records."""
    return pd.Series(np.repeat(np.arange(len(sizes) + others), [*sizes] + [3] * others))


def reference_of(metric, by, prediction, labels):
    counted = second(by, prediction, labels)
    return counted.reference(metric, counted.position(eb.measure(prediction, labels)))


def joined(codes):
    """Two of the largest clusters as one."""
    first, other = codes.value_counts().index[:2]
    return codes.replace(other, first)


def versions(metric, by, prediction, labelled, units):
    """Both values of a metric by brute force, from whole clusters of records."""
    size, m_size = (codes.map(codes.value_counts()) for codes in (by, prediction))
    entity = units[labelled]

    def reached(codes):
        """Clusters with which a unit shares most records of one of both."""
        return [
            c
            for c, unit in set(zip(codes[labelled], entity, strict=True))
            for shared in [((codes[labelled] == c) & (entity == unit)).sum()]
            if 2 * shared >= (codes == c).sum() or 2 * shared >= (entity == unit).sum()
        ]

    touched = by.isin(reached(by))
    seen = m_size[labelled][prediction[labelled].isin(reached(prediction))]
    limit = max([*size[touched], *seen], default=0)
    untouched = (m_size > limit) & ~prediction.isin(reached(prediction))
    most = {c for c in by.unique() if untouched[by == c].mean() > 0.5}
    parts = by.isin(most) & ~touched
    beyond = (size > limit) & ~touched | parts
    plain = sim.Population.of(prediction, by)

    def value(codes):
        return sim.Population.of(prediction, codes).value(metric)

    replaced = ("as predicted " + prediction.astype(str)).where(beyond, by.astype(str))
    return plain.value(metric), value(replaced), beyond, parts & (size <= limit)


@pytest.mark.parametrize("metric", [m.pairwise_recall, m.b3_recall, m.pairwise_precision])
def test_the_reference_by_brute_force(metric):
    parts = 0
    for seed in (3, 4, 5):
        pred, true = population(seed, 90)
        by = population(seed + 6, 90)[1]
        by.index = pred.index = true.index
        away = ~true.isin(true[by.isin(by.value_counts().index[:3])])
        labelled = true[away]
        assert len(labelled)
        counted = second(by, pred, labelled)
        position = counted.position(eb.measure(pred, labelled))
        found = counted.reference(metric, position).values
        *wanted, beyond, part = versions(metric, by, pred, labelled.index, true)
        assert beyond.any()
        parts += part.sum()
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    assert parts


@pytest.mark.parametrize("parts, pieces, records, reached", [
    (2, 1, 1, False), (30, 1, 1, False), (2, 30, 1, True), (2, 1, 2, True),
], ids=["two parts", "many parts", "no predicted giant", "most of a unit is in the giant"])  # fmt: skip
def test_a_giant_in_parts_is_out_of_reach(parts, pieces, records, reached):
    """Its parts are no larger than touched clusters, but the prediction has it as one that no unit touches."""
    truth = giants(90, 60, 60, 60)
    labels = truth[truth.isin([1, 2, 3, 9])]
    by = truth.where(truth != 0, 10_000 + truth.index % parts)
    prediction = truth.where(truth != 0, 10_000 + truth.index % pieces)
    prediction[truth.index[truth == 9][:records]] = 10_000  # of a sampled entity, in the predicted giant
    reference = reference_of(m.b3_precision, by, prediction, labels)
    if not reached:
        assert 90 <= reference.unreached_share * len(truth) < 94
        value = second(by, prediction, labels).value(m.b3_precision)
        assert reference.range[0] == value < 0.95 < reference.range[1]
    else:
        assert reference.unreached_share < 46 / len(truth)


def test_single_records_are_no_parts_of_entities_that_predicted_clusters_show():
    """Draws reach predicted clusters of every size, so that nothing of the single records is out of reach."""
    metrics = [m.b3_precision, m.b3_recall, m.cluster_precision]
    counted = second(pd.Series(np.arange(len(TRUTH)), TRUTH.index))
    sizes = PREDICTION.map(PREDICTION.value_counts())
    assert sizes[LABELS.index].max() == sizes.max()
    position = counted.position(SAMPLE.units)
    # the most influential predicted cluster counts as unreached all the same
    shares = [counted.reference(metric, position).unreached_share for metric in metrics]
    assert max(shares) < 2 * sizes.max() / len(TRUTH)


@pytest.mark.parametrize(("records", "reached"), [(1, False), (2, True)])
def test_a_stray_record_does_not_reach_a_giant(records, reached):
    """Two giants that the second clustering joins, with a few records of a sampled entity."""
    truth = giants(90, 80, 30, 30, 30)
    prediction = truth.where(truth.index % 5 != 0, 10_000 + truth.index)
    labels = truth[truth.isin([2, 3, 4, 9])]
    by = truth.replace(1, 0)
    by[truth.index[truth == 9][:records]] = 0
    reference = reference_of(m.pairwise_recall, by, prediction, labels)
    right = sim.Population.of(prediction, truth).value(m.pairwise_recall)
    inside = reference.range[0] < right < reference.range[1]
    assert (reference.unreached_share > 0.5) == inside == (not reached)


def test_a_stray_record_in_a_giant_puts_no_other_giant_in_reach():
    truth = giants(90, 80, 70, 30, 30)
    prediction = truth.where(truth.index % 5 != 0, 10_000 + truth.index)
    labels, by = truth[truth.isin([3, 4, 9])], truth.copy()
    by[truth.index[truth == 9][0]] = 0
    least = (91 + 80 + 70) / len(truth)
    unreached = reference_of(m.b3_recall, by, prediction, labels).unreached_share
    assert least <= unreached <= least + 3 / len(truth)


def test_a_unit_reaches_clusters_with_which_it_shares_most_records_of_one_of_both():
    truth = pd.Series([0] * 10 + [1] * 34 + [2] * 5)
    by = pd.Series(["most of the unit"] * 6 + ["most of it"] * 4 + ["most of the unit"] * 34 + ["stray"] * 5)
    by[44] = "most of it"
    by[3] = "stray"
    counted = second(by, truth, truth[truth == 0])
    units = counted.units
    reached = find_reached(units, np.isin(units.unit, [0]), units.group, units.N)
    assert sorted(counted.whole.size[reached]) == [5, 39] and sorted(counted.whole.size) == [5, 5, 39]


def test_the_likely_value_is_as_far_as_the_second_clustering_is_right():
    reference = Reference(np.array([0.9, 0.4]), 0.1)
    assert [reference.likely(right) for right in (0.0, 0.3, 1.0)] == pytest.approx([0.4, 0.55, 0.9])
    assert Reference(np.array([0.9, np.nan]), 0.1).likely(1.0) == 0.9


def test_a_reached_cluster_must_be_as_large():
    truth = giants(90, 80, 70, 60, 50, 40)
    prediction = truth.where(truth > 5, -truth.index)  # giants in single records
    for drawn, beyond in (([0, 4, 9], []), ([2, 4, 9], [0, 1]), ([9, 10], [0, 1, 2, 3, 4, 5])):
        found = reference_of(m.b3_recall, truth, prediction, truth[truth.isin(drawn)])
        apart = truth.where(~truth.isin(beyond), -truth.index)
        expected = [sim.Population.of(prediction, x).value(m.b3_recall) for x in (truth, apart)]
        np.testing.assert_allclose(found.values, expected, rtol=1e-12)
        assert found.unreached_share == truth.isin(beyond).mean()


def allow(found, **allowances):
    """Estimates with other allowances."""
    return replace(found, unseen=replace(found.unseen, **allowances))


def test_the_interval_reaches_from_the_least_estimate_to_the_largest():
    found = allow(helped(TRUTH, [m.pairwise_recall, m.b3_recall]), skew=np.zeros((2, 2)))
    assert (found.unseen.between.sum(axis=1) > 0).all() and (np.ptp(found.unseen.between, axis=1) > 0).all()
    assert found.unseen.between.sum(axis=1).max() > 0.01
    found = allow(found, between=found.unseen.between.sum(axis=1)[:, None] * [0.3, 0.7])  # both ways
    for kind in (eb.intervals.WALD, eb.intervals.BetaGamma(), eb.intervals.Symmetric()):
        for level in (0.3, 0.95):
            bounds = found.interval(level, kind)
            for j, (down, up) in enumerate(found.unseen.between):
                straight = replace(
                    allow(found.part([j]), between=np.zeros((1, 2))),
                    cov=found.cov[j : j + 1, j : j + 1] - (down + up) ** 2 / 12,
                )
                ends = [
                    replace(straight, mean=straight.mean + shift).interval(level, kind)[0]
                    for shift in (-down, up)
                ]
                np.testing.assert_allclose(bounds[j], [ends[0][0], ends[1][1]], rtol=1e-9)
    np.testing.assert_array_equal(found.part([1]).interval(), found.interval()[1:])


@pytest.mark.parametrize("between", [True, False])
def test_an_end_is_further_away_on_the_side_of_the_skew(between):
    """By Johnson's modified t statistic: (x̄ - μ + g/6 + g (x̄ - μ)²/(3 s²))/s, with g the skew, is ±z."""
    found = allow(helped(TRUTH), skew=np.zeros((2, 2)))
    if not between:
        found = allow(found, between=np.zeros((2, 2)))
    for level in (0.5, 0.95):
        straight = found.interval(level, eb.intervals.WALD)
        for g in ([0.001, 0.0], [0.0, 0.001], [0.002, 0.001]):
            skewed = allow(found, skew=np.array([g, [0.0, 0.0]])).interval(level, eb.intervals.WALD)
            z = norm.ppf((1 + level) / 2)
            down, up = (x / 6 + x * z**2 / 3 for x in g)  # at a distance of z standard errors
            np.testing.assert_allclose((skewed - straight)[0], [-down, up], atol=1e-12)
            np.testing.assert_array_equal(skewed[1], straight[1])


def test_a_hidden_merge_of_two_giants_stays_inside_the_interval():
    truth = pd.Series(np.repeat(np.arange(602), [300, 200] + [4] * 600))
    prediction = truth.where(truth.index % 5 != 0, -truth.index)
    drawn = list(range(50, 150))
    labels, design = truth[truth.isin(drawn)], eb.UniformClusters()
    sample = eb.Sample(eb.measure(prediction, labels), design)
    true = sim.Population(prediction, truth).value(m.pairwise_recall)
    engine = eb.auxiliary.Assisted(second(joined(truth), prediction, labels))
    found = engine(sample, [m.pairwise_recall])
    assert found.weights[0] > 0.9 and found.unreached_share[0] > 0.9
    low, high = found.interval()[0]
    assert low < true < high
    *_, alarm = found.find_alarms(sample, [m.pairwise_recall])
    assert alarm.startswith("Up to 97% of the second clustering is unreached for pairwise-recall")
    assert alarm in found.alarms
    assert f"assisted: {alarm}" in report(sample, [m.pairwise_recall], engines={"assisted": engine})
    with pytest.warns(eb.Alarm, match="unreached"):
        eb.assisted(prediction, labels, design, [m.pairwise_recall], by=joined(truth))


def copied(labels=LABELS):
    """The prediction, in which labelled records have their entity: right where the sample looks."""
    known = pd.Series("p" + PREDICTION.astype(str), PREDICTION.index)
    known.loc[labels.index] = "e" + labels.astype(str)
    return known


def test_a_second_clustering_that_was_made_with_the_labels_is_doubted():
    found = helped(copied())
    (alarm,) = [a for a in found.find_alarms(SAMPLE, PR) if "leave it out" in a]
    changed = found.changed
    shares = f"{changed.drawn:.0%} of the draws, and in {changed.population:.1%} of all"
    assert f"from the prediction in {shares}" in alarm
    assert alarm in found.part([1]).of_second()
    honest = helped(GOOD)
    assert honest.changed.chance > 0.01 and "leave it out" not in " ".join(honest.of_second())
    unused = replace(found, weights=np.zeros_like(found.weights))
    assert not unused.of_second(), "nothing rests on it"


@pytest.mark.parametrize(("chance", "doubted"), [(1e-4, False), (9.9e-5, True)])
def test_draws_that_differ_once_in_ten_thousand_samples(chance, doubted):
    found = replace(helped(), changed=ChangedShare(0.3, 0.1, chance))
    assert ("seems to know the labels" in " ".join(found.of_second())) == doubted


def sets(clusters):
    return [frozenset(r) for _, r in clusters.groupby(clusters).groups.items()]


def strewn():
    """The good clustering, of which every eighth record is alone: more clusters than there are entities."""
    return pd.Series(np.where(np.arange(len(GOOD)) % 8, GOOD, -1 - np.arange(len(GOOD))), GOOD.index)


@pytest.mark.parametrize("other", [GOOD, copied(), PREDICTION, strewn()])
@pytest.mark.parametrize("design", ["records", "once", "clusters"])
def test_changes_by_sets_of_records(design, other):
    """Draws are binomial: that of a record, that of an entity, or as many as weights are worth."""
    truth, rng = TRUTH, np.random.default_rng(4)
    drawn = truth.unique()[:80] if design == "clusters" else truth.sample(60, replace=True, random_state=rng)
    labels = truth[truth.isin(drawn)]
    plan = eb.UniformClusters() if design == "clusters" else eb.UniformRecords(draws=list(drawn))
    if design == "records":
        plan = replace(plan, repeats=True)
    sample = eb.Sample(eb.measure(PREDICTION, labels), plan)
    predicted, clusters = set(sets(PREDICTION)), sets(other)
    changed = [c for c in clusters if c not in predicted]
    entities = {e: frozenset(r) for e, r in labels.groupby(labels).groups.items()}
    hit = {e: any(2 * len(r & c) > len(r | c) for c in changed) for e, r in entities.items()}
    found = second(other, PREDICTION, labels).changes(sample)
    n = len(drawn)
    if design == "clusters":
        x, mean = sum(hit.values()), np.mean([len(r) for r in entities.values()])
        share = len(changed) / min(len(clusters), len(truth) / mean)
    else:
        x, share = sum(hit[e] for e in drawn), sum(map(len, changed)) / len(truth)
    if design == "once":
        size = np.array([len(r) for r in entities.values()])
        weight = size / (1 - (1 - size / len(truth)) ** n)
        n = weight.sum() ** 2 / np.sum(weight**2)
        x = n * np.average([hit[e] for e in entities], weights=weight)
    assert found.drawn == pytest.approx(x / n) and found.population == pytest.approx(share)
    # P(X ≥ x) of a binomial variable, of a whole number of draws or not
    chance = beta.cdf(share, x, n - x + 1) if design == "once" else binom.sf(x - 1, n, share)
    assert found.chance == pytest.approx(chance if x else 1.0)


def test_nothing_is_out_of_reach_once_the_largest_cluster_is_touched_and_nothing_is_cut():
    truth = pd.Series(np.repeat(np.arange(60), [9] + [3] * 59))
    prediction = truth.where(truth != 0, -truth.index)
    labels = truth[truth < 20]
    reference = reference_of(m.pairwise_recall, truth, prediction, labels)
    assert np.ptp(reference.range) == 0.0 and reference.unreached_share == 0.0
    assert reference.likely(0.6) == second(truth, prediction, labels).value(m.pairwise_recall)


def variate(change, control, reach=((-1.0, 1.0),)):
    """The control variate of one estimate, from changes without each draw, (n,)."""
    one, other = (Effects(x[:, None], x[:, None]) for x in (change, control))
    variance = count_each(np.arange(len(change)), np.ones(len(change)))
    return ControlVariate.of(one, other, np.array(reach), np.array([True]), variance)


def test_weights_are_in_the_unit_interval():
    effect = np.random.default_rng(1).normal(size=200)
    for slope, expected in ((0.5, 0.5), (3.0, 1.0), (-1.0, 0.0)):
        np.testing.assert_allclose(variate(slope * effect, effect).weight, [expected], rtol=1e-12)
    assert not variate(effect, np.zeros(200)).weight.any()


def test_the_order_of_labels_and_of_draws_does_not_matter():
    by = pd.Series(sim.Misattribution(0.1).apply(TRUTH.to_numpy(), np.random.default_rng(3)), TRUTH.index)
    metrics = (*PR, m.b3_recall, m.cluster_recall)
    weights = []
    for seed in range(3):
        labels = LABELS.sample(frac=1, random_state=seed)
        draws = list(np.random.default_rng(seed).permutation(DRAWS))
        sample = eb.Sample(eb.measure(PREDICTION, labels), eb.UniformRecords(draws))
        weights.append(eb.auxiliary.Assisted(second(by, labels=labels))(sample, metrics).weights)
    assert (weights[0] > 0).all() and (weights[0] < 1).any()
    np.testing.assert_allclose(weights[1:], [weights[0]] * 2, rtol=1e-9)


def test_an_estimate_with_weight_one_is_the_full_count_plus_the_difference():
    found = helped(TRUTH)
    np.testing.assert_allclose(found.weights, 1, rtol=1e-12)
    counted = second(TRUTH)
    references = [counted.reference(x, counted.position(SAMPLE.units)) for x in PR]
    np.testing.assert_allclose(found.mean, [r.likely(1.0) for r in references], rtol=1e-12)


def wholly_wrong(extremes, effect, weight=1.0, power=2, share=None):
    """Moments of two pseudo-draws by hand: what is left if both clusterings are at opposite ends.

    It is no more than the typical difference of the effects of two draws, (n,), over all pairs.
    """
    return 0.5 * np.sum(pseudo_ends(extremes, effect, weight, share) ** power)


def pseudo_ends(extremes, effect, weight=1.0, share=None):
    """Return how far both pseudo-draws move a metric, down and up, (2,)."""
    (down, up), n = extremes, len(effect)
    assert down <= 0 <= up
    pairs = np.subtract.outer(effect, effect) * np.sqrt(n / (n - 1))
    most = np.sqrt(np.sum(pairs**4) / np.sum(pairs**2))
    moves = np.abs([down - weight * up, up - weight * down]) * (share or 1 / n)
    return np.minimum(moves, most)


def test_the_truth_as_second_clustering_leaves_pseudo_draws_and_what_is_out_of_reach():
    sample, counted = each_draw(SAMPLE), second(TRUTH)
    plain, found = engine.Taylor()(sample, PR), helped(TRUTH, PR, sample)
    effect, weight = fit_sample(sample, PR).effects, sample.expansion.weight
    links = sample.contributions([u.PREDICTED_LINKS, u.TRUE_LINKS]).T
    for j, (metric, a) in enumerate(zip(PR, links, strict=True)):
        values = counted.reference(metric, counted.position(sample.units)).values
        pseudo = wholly_wrong(plain.unseen.reach[j], effect[:, j], share=average_share(a, weight))
        np.testing.assert_allclose(found.cov[j, j], pseudo + np.ptp(values) ** 2 / 12, rtol=1e-9)
    assert found.cov[0, 1] == pytest.approx(0, abs=1e-15)


def test_the_variance_and_the_skew_by_hand():
    """From the effects of draws on ratios of totals."""
    by = pd.Series(sim.Splits(0.3).apply(TRUTH.to_numpy(), np.random.default_rng(8)), TRUTH.index)
    below = far = 0
    for start in range(0, 300, 30):
        drawn = list(range(start, start + 30))
        labels = TRUTH[TRUTH.isin(drawn)]
        sample = eb.Sample(eb.measure(PREDICTION, labels), eb.UniformClusters())
        counted = second(by, PREDICTION, labels)
        found = eb.auxiliary.Assisted(counted)(sample, [m.pairwise_recall])
        weight = found.weights[0]
        z = [
            eb.Sample(x, sample.design).contributions(m.pairwise_recall.columns)
            for x in (sample.units, counted.units)
        ]
        d, e = ((y[:, 0] - y[:, 0].sum() / y[:, 1].sum() * y[:, 1]) / y[:, 1].sum() for y in z)
        assert weight == pytest.approx(np.clip(d @ e / (e @ e), 0, 1))
        left, fit = d - weight * e, engine.Taylor()(sample, [m.pairwise_recall])
        share = average_share(z[0][:, 1], np.ones(30))
        pseudo, third = (wholly_wrong(fit.unseen.reach[0], d, weight, power, share) for power in (2, 3))
        plain = 30 / 29 * np.sum(left**2)
        rest = pseudo + found.unseen.between[0].sum() ** 2 / 12
        np.testing.assert_allclose(found.cov[0, 0], plain + rest, rtol=1e-6)
        ends = pseudo_ends(fit.unseen.reach[0], d, weight, share)
        np.testing.assert_allclose(np.sum(ends**3) / 2, third)
        moments = np.sqrt(30 / 29) ** 3 * np.sum(left**3) * np.array([-1, 1]) + ends**3 / 2
        np.testing.assert_allclose(found.unseen.skew[0], np.maximum(moments, 0) / (plain + pseudo), rtol=1e-6)
        np.testing.assert_array_equal(found.df, fit.df)
        remaining = np.sqrt(left @ left / (d @ d))
        np.testing.assert_allclose(found.unseen.reach[0], fit.unseen.reach[0] * remaining, rtol=1e-9)
        reference = counted.reference(m.pairwise_recall, counted.position(sample.units))
        (low, high), likely = reference.range, reference.likely(weight)
        own = engine.Taylor()(eb.Sample(counted.units, sample.design), [m.pairwise_recall]).mean[0]
        sd = np.sqrt(30 / 29 * e @ e)
        far += not low - 2 * sd < own < high + 2 * sd
        low, high = min(low, own + 2 * sd), max(high, own - 2 * sd)
        wanted = [weight * (likely - low), weight * (high - likely)]
        np.testing.assert_allclose(found.unseen.between[0], wanted)
        below += weight < 1
    assert below and far


def average_share(a, weight):
    """Share of an average entity in a total, by contributions to it, (n,), among entities that it counts."""
    inside = a > 0
    return max(weight[inside] @ a[inside] / (weight[inside].sum() * a.sum()), 1 / inside.sum())


def test_pseudo_draws_are_of_an_entity_like_any_other():
    """By weights from sizes alone. Metrics over entities rest on fewer draws than those over records."""
    metrics = (m.cluster_recall, m.b3_recall, m.pairwise_recall)
    size = TRUTH.value_counts()[DRAWS].to_numpy()
    weight, links = 1 / size, (size - 1) / 2
    shares = [average_share(a, weight) for a in (weight, np.ones(len(DRAWS)), links)]
    assert shares[0] > 1.3 / len(DRAWS) and shares[2] > 1 / len(DRAWS) + 1e-4
    sample = each_draw(SAMPLE)
    plain, found = engine.Taylor()(sample, metrics), helped(TRUTH, metrics, sample)
    for j, share in enumerate(shares):
        effect = fit_sample(sample, metrics).effects[:, j]
        pseudo = wholly_wrong(plain.unseen.reach[j], effect, share=share)
        wanted = pseudo + found.unseen.between[j].sum() ** 2 / 12
        np.testing.assert_allclose(found.cov[j, j], wanted, rtol=1e-9)
    # an entity that counts once has weight 1/π, and pseudo-draws are of the share of entities not yet seen
    missed = (1 - TRUTH.value_counts()[SAMPLE.units.ids].to_numpy() / len(TRUTH)) ** len(DRAWS)
    weight = 1 / (1 - missed)
    share = average_share(weight, weight) * np.sqrt(np.sum(missed * weight) / weight.sum())
    plain, found = engine.Taylor()(SAMPLE, metrics[:1]), helped(TRUTH, metrics[:1])
    pseudo = wholly_wrong(plain.unseen.reach[0], fit_sample(SAMPLE, metrics[:1]).effects[:, 0], share=share)
    np.testing.assert_allclose(found.cov[0, 0], pseudo + found.unseen.between[0].sum() ** 2 / 12, rtol=1e-9)
    clusters = eb.Sample(SAMPLE.units, eb.UniformClusters(draws=DRAWS))
    plain, found = engine.Taylor()(clusters, metrics), helped(TRUTH, metrics, clusters)
    for j, a in enumerate((np.ones(len(DRAWS)), size, size * links)):
        effect, share = fit_sample(clusters, metrics).effects[:, j], average_share(a, np.ones(len(DRAWS)))
        pseudo = wholly_wrong(plain.unseen.reach[j], effect, share=share)
        wanted = pseudo + found.unseen.between[j].sum() ** 2 / 12
        np.testing.assert_allclose(found.cov[j, j], wanted, rtol=1e-9)


@pytest.mark.slow
def test_few_draws_with_links_bear_few_errors_of_the_second_clustering():
    """Most entities are single records, so that links of a few draws make pairwise precision."""
    rng = np.random.default_rng([401, 6])
    truth = np.repeat(np.arange(2000), 1 + rng.poisson(0.15, 2000))
    moved, apart = (rng.random(len(truth)) < share for share in (0.03, 0.015))
    prediction, second_one = truth.copy(), truth.copy()
    prediction[moved] = rng.choice(2000, moved.sum())
    second_one[apart] = 2000 + np.arange(apart.sum())
    truth, prediction, second_one = map(pd.Series, (truth, prediction, second_one))
    value = sim.Population(prediction, truth).value(m.pairwise_precision)
    inside = 0
    for _ in range(60):
        drawn = rng.choice(truth.unique(), 100, replace=False).tolist()
        labels = truth[truth.isin(drawn)]
        design = eb.UniformClusters(population=truth.nunique())
        low, high = eb.assisted(prediction, labels, design, m.pairwise_precision, by=second_one).interval()[0]
        inside += low <= value <= high
    assert inside >= 55


def test_pseudo_draws_move_the_control_by_its_weight():
    clusters = eb.Sample(SAMPLE.units, eb.UniformClusters(draws=DRAWS))
    target = Linearised.of(clusters, (m.cluster_recall,))
    ((down, up),), n = engine.Taylor()(clusters, [m.cluster_recall]).unseen.reach, len(DRAWS)
    np.testing.assert_allclose(target.reach(), [[down / n, up / n]], rtol=1e-9)
    d = target.effects.change[:, 0]
    for weight in (0.3, 0.4, 1.0):
        found = variate(d, d / weight, target.reach())
        moves = np.array([down - weight * up, up - weight * down]) / n
        pairs = np.subtract.outer(d, d)
        moves = np.clip(moves, *np.sqrt(np.sum(pairs**4) / np.sum(pairs**2)) * np.array([-1, 1]))
        np.testing.assert_allclose(found.weight, weight)
        np.testing.assert_allclose(found.cov[0, 0], np.sum(moves**2) / 2, rtol=1e-6)


def test_repeats_that_do_not_count_are_no_draws_of_the_control():
    """The change by a pseudo-draw is at most √(Σd⁴/Σd² + 3 Σd²/n), for the n draws that count."""
    d, e = np.array([1.0, -1.0, 0.5, 0.0, 0.0]), np.array([0.9, -1.1, 0.4, 0.0, 0.0])
    variance = count_each(np.arange(5), np.ones(5))
    reach, moved = np.array([[-9.0, 9.0]]), {}
    for varying in (None, 5, 3):
        effects = Effects(d[:, None], d[:, None], varying), Effects(e[:, None], e[:, None])
        found = ControlVariate.of(*effects, reach, np.array([True]), variance)
        moved[varying] = (found.cov - variance.covariance(found.residual))[0, 0]
    for n in (5, 3):
        square = np.sum(d**2)
        np.testing.assert_allclose(moved[n], np.sum(d**4) / square + 3 * square / n)
    assert moved[None] == moved[5]
    certain = count_independent(np.arange(12), np.array([1.0, 1.0, *[0.5] * 10]))
    assert Effects.of(np.ones((12, 1)), certain).varying == 10


def test_links_beyond_the_draws_are_as_without_help():
    """The interval allows for predicted links that no draw touches, whatever another clustering says about them."""
    draws = DRAWS[:20]
    labels = TRUTH[TRUTH.isin(draws)]
    sample = eb.Sample(eb.measure(PREDICTION, labels), eb.UniformRecords(draws))
    found = eb.auxiliary.Assisted((second(labels=labels),))(sample, [m.pairwise_precision])
    default = engine.Taylor()(sample, [m.pairwise_precision])
    assert found.weights[0] > 0 and found.unseen.unreached_share == default.unseen.unreached_share > 0


def test_pseudo_draws_of_the_default_fade_with_what_is_left():
    plain, found = engine.Taylor()(SAMPLE, PR), helped(TRUTH)
    assert (np.abs(plain.unseen.reach).sum(axis=1) > 0.1).all()
    np.testing.assert_allclose(found.unseen.reach, 0, atol=1e-6)


def test_a_metric_without_help_is_the_default():
    plain, found = engine.Taylor()(SAMPLE, (*PR, m.inverse_purity)), helped(USELESS, (*PR, m.inverse_purity))
    assert not found.weights.any() and not found.equivalent_labels.any()
    assert found.unassisted[:2] == ("the gain is not clear",) * 2
    assert found.unassisted[2] == "'largest_piece' is no sum over records"
    np.testing.assert_allclose(found.mean, plain.mean)
    np.testing.assert_array_equal(found.cov, plain.cov)
    np.testing.assert_allclose(found.interval(), plain.interval())
    table = found.table()
    assert table["note"].tolist() == list(found.unassisted)


def test_the_prediction_itself_is_named():
    renamed = PREDICTION.map(lambda c: 10**6 - c)
    assert second(renamed).is_prediction and not second(GOOD).is_prediction
    assert not second(PREDICTION.where(PREDICTION.index > 0, 10**6)).is_prediction, "one record is elsewhere"
    first, other = PREDICTION.unique()[:2]
    assert not second(PREDICTION.replace(other, first)).is_prediction, "two clusters are one"
    metrics = *PR, m.inverse_purity, m.entities
    found, default = helped(renamed, metrics), ClosedForm()(SAMPLE, metrics)
    columns = ["estimate", "lower", "upper"]
    pd.testing.assert_frame_equal(found.table()[columns], default.table()[columns])
    np.testing.assert_array_equal(found.cov, default.cov)
    assert set(found.unassisted) == {"'second' is the prediction itself"} and not found.weights.any()
    alarm = "The second clustering 'second' is the prediction itself, and shows none of its errors"
    (said,) = eb.auxiliary.Assisted(second(renamed))(SAMPLE, PR).alarms
    assert said.startswith(alarm) and eb.auxiliary.Assisted(second()).of_prediction(SAMPLE) == []
    (noted,) = eb.assisted(PREDICTION, LABELS, DESIGN, PR, by=renamed).alarms
    assert noted == said, "a note stands with the result, and does not warn"
    other = eb.Sample(eb.measure(USELESS, LABELS), DESIGN)
    assert eb.auxiliary.Assisted(second(renamed)).of_prediction(other) == [], "counted with another one"


def test_few_draws_and_a_census_are_the_default():
    labels = TRUTH[TRUTH < 6]
    sample = eb.Sample(eb.measure(PREDICTION, labels), eb.UniformClusters())
    found = eb.auxiliary.Assisted(second(labels=labels))(sample, [m.b3_recall])
    assert found.unassisted == ("6 draws are fewer than 10",)
    everyone = eb.UniformClusters(population=TRUTH.nunique())
    found = eb.assisted(PREDICTION, TRUTH, everyone, PR, by=GOOD)
    assert set(found.unassisted) == {"the sample holds every unit"} and (found.sd == 0).all()


def test_the_table_tells_the_gain():
    plain, found = engine.Taylor()(SAMPLE, PR), helped()
    table = found.table()
    heads = "estimate se_bound df lower upper level kind lambda equivalent_labels unreached_share"
    assert list(table.columns) == heads.split()
    np.testing.assert_allclose(table["equivalent_labels"], np.round(150 * ((plain.sd / found.sd) ** 2 - 1)))
    assert (table["equivalent_labels"] > [300, 100]).all()
    one = found.part([1])
    assert one.names == ("pairwise-recall",) and one.table().equals(table.iloc[[1]])


@pytest.mark.slow
@pytest.mark.parametrize("plan", [Records(), UniformEntities()])
def test_a_good_second_clustering_shortens_intervals_that_keep_their_promise(plan):
    truth = pd.Series(TRUTH.to_numpy())
    people = sim.Population(pd.Series(PREDICTION.to_numpy()), truth)
    good = eb.auxiliary.Assisted(eb.auxiliary.Second.of(people.pred, truth, pd.Series(GOOD.to_numpy())))
    both, metrics = {"default": engine.Taylor(), "assisted": good}, (*PR, m.b3_recall, m.cluster_recall)
    runs = study({"p": people}, {"plan": plan}, [100], both, metrics, repetitions=80, seed=1)
    table = runs.table().pivot(
        index="metric", columns="estimator", values=["coverage", "interval_score", "rmse"]
    )
    assert (table["coverage", "assisted"] >= 0.93).all()
    share = table["interval_score", "assisted"] / table["interval_score", "default"]
    assert (share.drop("pairwise-recall") < 0.55).all() and share["pairwise-recall"] < 0.7
    error = table["rmse", "assisted"] / table["rmse", "default"]
    assert (error < 0.45).all()


def test_comparisons_take_them():
    other = sim.Misattribution(0.1).apply(TRUTH.to_numpy(), np.random.default_rng(6))
    both = {"a": PREDICTION, "b": pd.Series(other, TRUTH.index)}
    plain = eb.compare(both, LABELS, DESIGN, PR)
    of_each = eb.auxiliary.Assisted([second(GOOD, each) for each in both.values()])
    third = eb.compare(both, LABELS, DESIGN, PR, engine=of_each)
    assert (third.joint.sd < [0.4, 0.9, 0.4, 0.9] * plain.joint.sd).all()
    difference = third.differences()
    assert (difference["se"] < 0.9 * plain.differences()["se"]).all()
    worth = {name: sim.Population(each, TRUTH) for name, each in both.items()}
    truth = [worth["b"].value(x) - worth["a"].value(x) for x in PR]
    assert ((difference["lower"] < truth) & (truth < difference["upper"])).all()
    sample = eb.Sample(eb.measure(both["b"], LABELS), DESIGN)
    alone = eb.auxiliary.Assisted(second(GOOD, both["b"]))(sample, PR)
    np.testing.assert_allclose(third.joint.mean[2:], alone.mean)
    np.testing.assert_allclose(third.joint.cov[2:, 2:], alone.cov)
    other = eb.auxiliary.Assisted([second(both["b"], each) for each in both.values()])
    assert [s.is_prediction for s in other.counted] == [False, True]
    assert eb.compare(both, LABELS, DESIGN, PR, engine=other).table()["estimate"].notna().all()


def test_pictures_reports_and_tables_take_them():
    one, found = eb.auxiliary.Assisted(second()), helped()
    table = engine.side_by_side({"default": eb.engine.taylor(SAMPLE, PR), "assisted": found}, PR).table()
    np.testing.assert_allclose(table[table["method"] == "assisted"]["sd"], found.sd)
    assert "<th>assisted</th>" in report(SAMPLE, PR, engines={"assisted": one})
    plots.draw_forest(found, ax=Figure().subplots())
    assert (found.interval(kind=eb.intervals.WALD) != found.interval()).all()


@pytest.mark.parametrize("design", [
    eb.DistinctEntities(200),
    eb.KnownWeights(1 / LABELS.value_counts()),
    eb.Stratified({i: i % 2 for i in LABELS.unique()}, {0: 1500, 1: 1500}),
])  # fmt: skip
def test_other_designs(design):
    sample = eb.Sample(eb.measure(PREDICTION, LABELS), design)
    metrics = (m.pairwise_precision, m.b3_precision, m.b3_recall)
    found, plain = helped(TRUTH, metrics, sample), engine.Taylor()(sample, metrics)
    assert (found.weights > 0.95).all() and (found.sd < 0.6 * plain.sd).all()


def test_refusals():
    raises(eb.DataError, "'second' is missing 3,990 of 4,000 records of the prediction", second, GOOD[:10])
    raises(eb.DataError, "of type string", second, {str(i): c for i, c in GOOD.items()})
    raises(eb.DataError, "are its ids written in another way", second, GOOD[:10])
    raises(eb.DataError, r"leave them out: frame=second", second, GOOD[10:])
    padded = GOOD.set_axis([f"{i:05}" for i in GOOD.index])
    plain = {"prediction": PREDICTION.rename(index=str), "labels": LABELS.rename(index=str)}
    raises(eb.DataError, "of them are there with other leading zeros", second, padded, **plain)
    raises(eb.DataError, 'leave them out: missing="omit"', second, missing=eb.Missing.SINGLETON)
    raises(eb.DataError, "labelled records", second, prediction=PREDICTION.drop(LABELS.index[:5]))
    raises(eb.DataError, "no second clustering: pass one", eb.auxiliary.Assisted, ())
    raises(eb.DataError, r"counted by Second\.of", eb.auxiliary.Assisted, (GOOD,))
    large = LABELS.index[LABELS == LABELS.value_counts().index[0]]
    for other in (
        second(prediction=GOOD),
        second(labels=LABELS[LABELS != DRAWS[0]]),
        second(labels=LABELS.drop(large[:1])),
    ):
        with pytest.raises(
            eb.DataError, match="no second clustering was counted with the prediction and the labels"
        ):
            eb.auxiliary.Assisted(other)(SAMPLE, PR)


def test_one_second_clustering_is_taken():
    several = {"good": GOOD, "useless": USELESS}
    said = "by= takes one second clustering, not a mapping of names such as 'good'.*erbayes.compare"
    raises(eb.DataError, said, eb.assisted, PREDICTION, LABELS, DESIGN, PR, by=several)
    for by in (several, {"good": Path("good.csv")}):
        raises(eb.DataError, said, second, by)


def test_files_are_read_before_they_are_compared(tmp_path):
    """The remedy that the refusal names gives the estimates of the clusterings in memory."""
    places = {}
    for name, codes in (("old", PREDICTION), ("new", GOOD)):
        places[name] = tmp_path / f"{name}.parquet"
        pd.DataFrame({"record": codes.index, "cluster": codes.to_numpy()}).to_parquet(places[name])
    said = (
        r"read the two columns of each, as in pandas.read_parquet\(path\).set_index\('record'\)\['cluster'\]"
    )
    for prediction, by in ((places["old"], GOOD), (PREDICTION, str(places["new"])), (*places.values(),)):
        raises(eb.DataError, said, eb.assisted, prediction, LABELS, DESIGN, PR, by=by)
    old, new = (pd.read_parquet(path).set_index("record")["cluster"] for path in places.values())
    found = eb.assisted(old, LABELS, DESIGN, PR, by=new)
    pd.testing.assert_frame_equal(found.table(), helped().table())


def test_records_beyond_the_prediction_are_counted():
    more = pd.concat([GOOD, pd.Series(0, [-1, -2, -3])])
    found = second(more)
    assert found.left_out == 3 and repr(found).endswith("units, 3 records left out)")
    assert second().left_out == 0 and repr(second()).endswith("labelled units)")
    frame = LABELS.index.union(TRUTH.index[:2500])
    assert second(more, frame=frame).left_out == len(more) - len(frame)


def test_a_frame_leaves_newer_records_out():
    frame = LABELS.index.union(TRUTH.index[:2500])
    found = eb.assisted(PREDICTION, LABELS, DESIGN, PR, by=GOOD, frame=frame)
    again = eb.assisted(PREDICTION[frame], LABELS, DESIGN, PR, by=GOOD)
    assert (found.weights > 0.8).all()
    np.testing.assert_allclose(found.mean, again.mean)
    np.testing.assert_allclose(found.cov, again.cov)


def test_omitted_records_leave_both():
    prediction = PREDICTION.drop(LABELS.index[:5])
    found = eb.assisted(prediction, LABELS, DESIGN, PR, by=GOOD, missing=eb.Missing.OMIT)
    assert (found.weights > 0.8).all()
