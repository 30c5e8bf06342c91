"""What no draw has shown: gains less losses, what is out of reach, certain ends, and results by component.
`limits` and what it calls are the rule in plain Python, which shares no code with the package."""

import itertools
import math
import operator
from collections import Counter, defaultdict
from dataclasses import fields, is_dataclass, replace

import numpy as np
import pandas as pd
import pytest
from oracle import partitions
from scipy import stats

import erbayes as eb
from erbayes import metrics as m
from erbayes.auxiliary.assistance import AssistedEstimates
from erbayes.engine import Resampled
from erbayes.metrics import estimates, unseen
from erbayes.metrics.estimates import Bets, Cases, Combination, Estimates, Replication
from erbayes.metrics.unseen import Moves, Unseen, widen
from erbayes.units.clustering import Clustering
from erbayes.units.settled import Overlap

pytestmark = pytest.mark.kernel
P, R, F1, CP = m.pairwise_precision, m.pairwise_recall, m.pairwise_f1, m.cluster_precision
METRICS = [P, R, F1, CP, m.b3_precision, m.b3_recall]


# The rule, in plain Python
def moving(x):
    """How many of draws move a sum, as Kish counts weights, and how far they do; 0 and 0 if none does."""
    first, second = sum(map(abs, x)), sum(v * v for v in x)
    return (first**2 / second, second / first) if second else (0.0, 0.0)


def gamma(mean, variance, df, p):
    """A quantile of the Gamma distribution, with a variance that is widened as Student's t is over z."""
    v = variance * (stats.t.ppf(p, df) / stats.norm.ppf(p)) ** 2
    return stats.gamma.ppf(p, mean**2 / v, scale=v / mean) if v else mean


def limits(D, d, a, draws, reach, df, covary, theta=1.0, level=0.95, variance=None):
    """The ends of gains less losses d, of which D is an estimate; `covary` of two totals is that of the
    design. Variances are scaled to the `variance` of D, by default that of d."""
    k, typical = moving(d)
    step, parts, rests = theta * (k * typical + 2 * reach / draws) / (k + 2), [], []
    sides = [max(x, 0) for x in d], [max(-x, 0) for x in d]
    about = [[x - share * sum(part) for x, share in zip(part, a, strict=True)] for part in sides]
    both = [x - y for x, y in zip(*about, strict=True)]
    scale = variance / covary(both, both) if variance else 1.0
    for part, rest in zip(sides, about, strict=True):
        total, rest = sum(part), [math.sqrt(scale) * x for x in rest]
        V, mean = covary(rest, rest) + step**2 / 2, total + step / 2
        low, high = (
            gamma(mean, V, min(df, moving(part)[0] + 5), p) for p in ((1 - level) / 2, (1 + level) / 2)
        )
        parts.append((max(total - low, 0), max(high - total, 0), V))
        rests.append(rest)
    (g_down, g_up, g_V), (l_down, l_up, l_V) = parts
    r = covary(*rests) / math.sqrt(g_V * l_V)
    down = math.sqrt(g_down**2 + l_up**2 - 2 * r * g_down * l_up)
    up = math.sqrt(g_up**2 + l_down**2 - 2 * r * g_up * l_down)
    return D - down, D + up


def covary_once(u, v):
    """The covariance of two totals of draws with replacement."""
    n = len(u)
    products = math.fsum(x * y for x, y in zip(u, v, strict=True))
    return n / (n - 1) * (products - math.fsum(u) * math.fsum(v) / n)


# Gains less losses
def difference(d, reach=1.0, draws=None, level=0.95):
    """The interval of the package for draws of equal shares that move a difference by d."""
    n = len(d)
    d, a, draws = np.array(d)[:, None], np.full((n, 1), 1 / n), n if draws is None else draws
    D = d.sum(axis=0)
    variance = np.array([covary_once((d - a * D)[:, 0], (d - a * D)[:, 0])])
    df, line = np.array([n - 1.0]), ((-np.inf, np.inf),)
    given = {"variance": variance, "reach": np.full((1, 2), reach), "effective": np.array([float(draws)])}
    covary = lambda both: np.array([[covary_once(x, y) for x in both.T] for y in both.T])  # noqa: E731
    moves = Moves.of(d, a, covary, fpc=1.0, df=df, **given)
    fit = Estimates(names=("x",), mean=D, cov=variance[None], df=df, support=line, moves=moves)
    assert fit.name_kind(0) == "gains and losses"
    return fit.interval(level)[0]


VALUES = {
    (0, 0, 1): (-0.0321, 0.0321), (1, 0, 1): (-0.0235, 0.0563), (1, 1, 1): (-0.0473, 0.0473),
    (3, 0, 1): (-0.0101, 0.0889), (5, 2, 1): (-0.0341, 0.0997), (20, 10, 1): (-0.0151, 0.2164),
    (0, 0, 2): (-0.0642, 0.0642),
}  # fmt: skip
"""Draws of a hundred that gain and that lose a hundredth, and the reach of an unseen one: the interval."""


@pytest.mark.parametrize(("given", "ends"), VALUES.items())
def test_the_values_of_gains_and_losses(given, ends):
    gains, losses, reach = given
    d = [0.01] * gains + [-0.01] * losses + [0.0] * (100 - gains - losses)
    np.testing.assert_allclose(difference(d, reach), ends, atol=5e-5)
    np.testing.assert_allclose(difference([-x for x in d], reach), [-ends[1], -ends[0]], atol=5e-5)


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("draws", [8.3, 40.0])
@pytest.mark.parametrize("reach", [1.0, 2.0])
def test_gains_and_losses_are_those_of_plain_python(level, draws, reach):
    rng = np.random.default_rng(4)
    for moved in (0, 1, 2, 7, 40):
        d = np.where(rng.permutation(40) < moved, rng.normal(0.3, 1, 40), 0) / 40
        wanted = limits(d.sum(), d, [1 / 40] * 40, draws, reach, 39, covary_once, level=level)
        np.testing.assert_allclose(difference(d, reach, draws, level), wanted, rtol=1e-9)


def test_components_that_draws_move_and_others_are_each_alone():
    """With variance where no draw moves one, as errors of labels have, in gains as much as in losses."""
    d = np.zeros((40, 3))
    d[:3, 1], d[:, 2] = [0.1, -0.2, 0.3], np.random.default_rng(4).normal(size=40)
    given = {"fpc": np.array([1.0, 0.9, 0.8]), "df": np.array([39.0, 30.0, 5.0])}
    given |= {"variance": np.array([0.04, 0.1, 2])}
    given |= {"effective": np.array([40.0, 30, 20]), "reach": np.array([[1, 1], [2, 1], [1, 3.0]])}
    a, covary = np.full((40, 3), 1 / 40), lambda both: np.cov(both.T) * 40
    together = Moves.of(d, a, covary, **given)
    for j in range(3):
        alone = Moves.of(d[:, [j]], a[:, [j]], covary, **{name: x[[j]] for name, x in given.items()})
        for f in fields(Moves):
            np.testing.assert_allclose(getattr(together, f.name)[j], getattr(alone, f.name)[0], rtol=1e-12)
    assert together.variance[0].tolist() == [0.02, 0.02] and together.covariance[0] == 0


def test_moves_of_rounding_are_none():
    d = [1e-15, -1e-15] * 50
    np.testing.assert_allclose(difference(d), difference([0.0] * 100), rtol=1e-12)


# What is out of reach
@pytest.mark.parametrize(("x", "arms", "share", "wanted"), [
    (1.0, (0.0126, 0.0), 0.024, (0.0270, 0.0)),
    (0.9, (0.05, 0.04), 0.05, (0.0654, 0.0383)),
    (0.825, (0.03, 0.03), 0.348, (0.3067, 0.0805)),
    (0.5, (0.1, 0.1), 0.1, (0.1030, 0.1030)),
    (0.5, (0.1, 0.1), 0.1001, (0.1400, 0.1400)),
    (0.5, (0.1, 0.1), 0.0, (0.1, 0.1)),
])  # fmt: skip
def test_arms_with_a_share_out_of_reach(x, arms, share, wanted):
    bounds, parts = np.array([[x - arms[0], x + arms[1]]]), share * np.array([[[x], [1 - x]]])
    low, high = widen(np.array([x]), bounds, np.array([share]), parts)[0]
    np.testing.assert_allclose([x - low, high - x], wanted, atol=5e-5)


def test_a_share_of_0_leaves_an_interval_without_ends():
    bounds, parts = np.array([[-np.inf, np.inf]]), np.full((1, 2, 1), np.nan)
    np.testing.assert_array_equal(widen(np.zeros(1), bounds, np.zeros(1), parts), bounds)


@pytest.mark.parametrize("share", [0.03, 0.1, 0.3])
@pytest.mark.parametrize("at", [0, 1])
def test_an_interval_that_reaches_an_end_of_the_support_still_does(share, at):
    """Draws of which most are at the end, 0 or 2, cover it, and a share out of reach moves the other end."""
    values = np.where(np.arange(1000) < 900, 2.0 * at, 1.0)[None, :, None]
    out = Unseen(unreached_share=np.array([share]))
    found = Estimates.of_draws(("share",), values, ((0.0, 2.0),), unseen=out)
    (plain,), (ends,) = replace(found, unseen=Unseen()).interval(), found.interval()
    assert plain[at] == ends[at] == 2 * at and plain[1 - at] != ends[1 - at]


def test_an_unseen_giant_may_make_a_difference():
    """The new prediction joins 150 records of 50 entities, a third of its links, and no draw touches them."""
    rng = np.random.default_rng(1)
    n = 20_000
    truth = pd.Series(np.arange(n) // 3)
    giant, new = truth.index[:150], truth.copy()
    wrong = rng.random(n) < 0.05
    new[wrong] = rng.integers(n // 3, size=wrong.sum())
    old, new = new, new.copy()
    few = rng.random(n) < 0.01
    new[few] = rng.integers(n // 3, size=few.sum())
    new[giant] = 10**6
    drawn = truth.drop(giant).sample(300, replace=True, random_state=2)
    design = eb.UniformRecords(list(drawn))
    found = eb.compare({"old": old, "new": new}, truth[truth.isin(drawn)], design, P).differences().iloc[0]
    assert [found.estimate, found.lower, found.upper] == pytest.approx([-0.025, -0.319, 0.044], abs=1e-3)
    assert found.lower < value(P, new, truth) - value(P, old, truth) < -0.3 < found.upper


# Certain ends
def value(metric, prediction, truth):
    """A metric of all records, by counting pairs and sets."""
    p, t = np.asarray(prediction).tolist(), np.asarray(truth).tolist()
    if metric in (P, R, F1):
        true, links, both = map(count_links, (t, p, list(zip(t, p, strict=True))))
        top, bottom = {P: (both, links), R: (both, true), F1: (2 * both, true + links)}[metric]
        return top / bottom if bottom else math.nan
    clusters, entities = group(p), group(t)
    if metric is CP:
        return len(set(clusters.values()) & set(entities.values())) / len(set(clusters.values()))
    of = clusters if metric is m.b3_precision else entities
    return sum(len(clusters[i] & entities[i]) / len(of[i]) for i in of) / len(of)


def count_links(codes):
    return sum(math.comb(size, 2) for size in Counter(codes).values())


def group(codes):
    """The records of the cluster of each record."""
    records = defaultdict(set)
    for i, code in enumerate(codes):
        records[code].add(i)
    return {i: frozenset(records[code]) for i, code in enumerate(codes)}


def subtract(predictions, truth, metrics, design=None):
    joint = eb.compare(predictions, truth, design or eb.UniformClusters(), metrics)
    return joint.subtract(*predictions)


def test_what_both_predictions_share_bounds_a_difference_in_precision():
    """4,449 and 4,968 pairs, of which 4,400 are the same: P of the second is .1143 above or below at most."""
    pairs = np.arange(2 * (4400 + 49 + 568)) // 2
    records = np.arange(len(pairs))
    old = np.where(pairs < 4449, pairs, 10**5 + records)
    new = np.where((pairs < 4400) | (pairs >= 4449), pairs, 10**5 + records)
    labels = pd.Series(pairs)[pairs < 8]
    found = subtract({"old": pd.Series(old), "new": pd.Series(new)}, labels, P)
    np.testing.assert_allclose(found.unseen.certain, [[-0.1143, 0.1143]], atol=2e-4)  # and four pairs
    np.testing.assert_array_equal(found.interval(), found.unseen.certain)  # eight draws know less


@pytest.mark.slow
def test_no_labelling_makes_a_difference_beyond_its_certain_ends():
    """All 203 labellings of six records, for predictions that share some clusters, or none, or all."""
    rng, attained = np.random.default_rng(7), set()
    truths = [np.array(way) for way in partitions(6)]
    assert len(truths) == 203
    for _ in range(25):
        pair = [rng.integers(0, rng.integers(2, 6), 6) for _ in "ab"]
        kept = rng.integers(0, 2, 6) * (rng.random() < 0.7)
        pair[1] = np.where(np.isin(pair[0], np.flatnonzero(kept)), pair[0], pair[1] + 10)
        metrics = [
            metric for metric in METRICS if metric is not P or min(count_links(p.tolist()) for p in pair)
        ]
        predictions = {name: pd.Series(p) for name, p in zip("ab", pair, strict=True)}
        ends = subtract(predictions, pd.Series(0, range(1)), metrics).unseen.certain
        alone = [t for t in truths if (t == t[0]).sum() == 1]  # the first record has a label, and no other
        for metric, (least, most) in zip(metrics, ends, strict=True):
            moved = [value(metric, pair[1], t) - value(metric, pair[0], t) for t in alone]
            assert least - 1e-12 <= np.nanmin(moved) and np.nanmax(moved) <= most + 1e-12, metric.name
            if abs(least) < 1 and abs(np.nanmin(moved) - least) < 1e-12:
                attained.add(metric.name)
    assert {P.name, CP.name} <= attained, "ends that are no longer than need be"


def test_predictions_do_not_differ_in_what_depends_on_the_truth_alone():
    predictions, truth = make_predictions()
    metrics = [m.singleton_share, m.matching_rate]
    found = subtract(predictions, truth[truth < 30], metrics)
    np.testing.assert_array_equal(found.interval(), np.zeros((2, 2)))


@pytest.mark.parametrize("seed", range(5))
def test_what_is_shared_by_brute_force(seed):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 12, 40)
    b = np.where(a < 5, a, rng.integers(5, 14, 40))
    labelled = rng.choice(40, 9, replace=False)
    found = Overlap.of(*(Clustering.of(pd.Series(of), "p") for of in (a, b)), labelled)
    clusters = [set(group(codes).values()) for codes in (a, b)]
    same, links = set.intersection(*clusters), [list_links(of) for of in clusters]
    assert found.links == len(links[0] & links[1])
    assert (found.clusters, found.records) == (len(same), sum(map(len, same)))
    for of, own, other, alone in zip(clusters, links, links[::-1], found.alone, strict=True):
        sizes = Counter()
        for cluster in of:
            sizes[len(cluster)] += len(list_links([cluster]) & own - other)
        assert dict(zip(*alone, strict=True)) == {size: n for size, n in sizes.items() if n}
    assert found.open_links == sum(not set(link) & {*labelled} for link in links[0] & links[1])
    different = set(range(40)) - {record for cluster in same for record in cluster}
    assert found.open_records == len(different - {*labelled.tolist()})


# Differences of two predictions
def make_predictions(seed=3, records=400):
    """Entities of 1 to 4 records, and two predictions: with a large cluster that both nearly share, and one of its own."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(records), rng.integers(1, 5, records))[:records]
    old = np.where(rng.random(records) < 0.1, 1000 + np.arange(records), truth)
    new = np.where(rng.random(records) < 0.03, rng.integers(0, truth.max(), records), truth)
    late = rng.choice(np.flatnonzero(truth > 60), 17, replace=False)
    old[late[:8]] = new[late[:9]] = 6000
    new[late[9:]] = 5000
    return {"old": pd.Series(old), "new": pd.Series(new)}, pd.Series(truth)


def count_entity(metric, prediction, truth, entity):
    """What an entity adds to the numerator and to the denominator of a metric, record by record."""
    own = truth.index[truth == entity]
    clusters = {i: set(prediction.index[prediction == prediction[i]]) for i in own}
    common = sum(prediction[i] == prediction[j] for i, j in itertools.combinations(own, 2))
    true, predicted = len(own) * (len(own) - 1) / 2, sum((len(c) - 1) / 2 for c in clusters.values())
    if metric in (P, R, F1):
        return {P: (common, predicted), R: (common, true), F1: (2 * common, true + predicted)}[metric]
    if metric is CP:
        return float(clusters[own[0]] == set(own)), sum(1 / len(c) for c in clusters.values())
    below = [len(clusters[i]) if metric is m.b3_precision else len(own) for i in own]
    return sum(len(clusters[i] & set(own)) / b for i, b in zip(own, below, strict=True)), len(own)


def list_links(clusters):
    return {link for cluster in clusters for link in itertools.combinations(sorted(cluster), 2)}


def split_links(prediction, other, drawn, truth):
    """Links in clusters larger than any touched: the share in this prediction alone, and those also in the other."""
    touched = max(sum(prediction == prediction[i]) for i in truth.index[truth.isin(drawn)])
    clusters, others = (set(group(x.to_numpy()).values()) for x in (prediction, other))
    beyond = list_links(c for c in clusters if len(c) > touched)
    alone = beyond - list_links(others)
    return len(alone) / len(list_links(clusters)), len(beyond - alone), len(list_links(clusters))


def split_records(prediction, other, drawn, truth):
    """Records in clusters larger than any touched: their share, and that of those with other partners."""
    touched = max(sum(prediction == prediction[i]) for i in truth.index[truth.isin(drawn)])
    clusters, others = (set(group(x.to_numpy()).values()) for x in (prediction, other))
    beyond, elsewhere = [c for c in clusters if len(c) > touched], list_links(others)
    alone = [2 * len(list_links([c]) - elsewhere) / (len(c) - 1) for c in beyond]
    return sum(map(len, beyond)) / len(truth), sum(alone) / len(truth)


def find_ends(metric, old, new):
    clusters, others = (set(group(x.to_numpy()).values()) for x in (old, new))
    if metric in (m.b3_precision, m.b3_recall):
        moved = sum(map(len, clusters - others)) / len(old)
        return -moved, moved
    if metric is P:
        pairs = [list_links(clusters), list_links(others)]
    elif metric is CP:
        pairs = [clusters, others]
    else:
        return -1.0, 1.0
    a, b, c = len(pairs[0]), len(pairs[1]), len(pairs[0] & pairs[1])
    q = c / b - c / a
    return -(a - c) / a + min(q, 0), (b - c) / b + max(q, 0)


def subtract_plainly(
    metric, predictions, truth, drawn, of_entities, weight, covary, theta, lost, ends, single
):
    """Estimate and interval of a difference, from the entities of draws, their weights and the design.
    `of_entities`: whether entities are drawn; `ends`, `single`: certain ends of the difference and of both
    predictions (see test_settled)."""
    (old, new), n, sides, unseen = predictions.values(), len(drawn), [], []
    for prediction, settled in zip((old, new), single, strict=True):
        y, x = zip(*(count_entity(metric, prediction, truth, e) for e in drawn), strict=True)
        y, x = ([w * v for w, v in zip(weight, of, strict=True)] for of in (y, x))
        top, bottom = sum(y), sum(x)
        corrected = top / bottom + covary(x, y) / bottom**2 - top * covary(x, x) / bottom**3
        corrected = min(max(corrected, settled[0]), settled[1])
        left = [share * u for share, u in zip(theta, x, strict=True)]
        unseen.append((sum(left) / bottom, sum(left) * bottom / sum(u**2 for u in left)))
        effect = [(v - top / bottom * u) / bottom for v, u in zip(y, x, strict=True)]
        sides.append((corrected, effect, [u / bottom for u in x], moving(x)[0], list(zip(y, x, strict=True))))
    (x_old, e_old, a_old, n_old, of_old), (x_new, e_new, a_new, n_new, of_new) = sides
    least, most = ends
    D, draws = min(max(x_new - x_old, least), most), min(n_old, n_new)
    a = [(u + v) / 2 for u, v in zip(a_old, a_new, strict=True)]
    d = [v - u + share * D for u, v, share in zip(e_old, e_new, a, strict=True)]
    # a draw that counts alike for both moves nothing
    d = [0.0 if np.allclose(u, v) else move for u, v, move in zip(of_old, of_new, d, strict=True)]
    df = max(draws * (n - lost) / n, 1)
    moved = [v - u for u, v in zip(e_old, e_new, strict=True)]
    reach, variance = 2 if metric is CP else 1, covary(moved, moved)
    share, against = max(share for share, _ in unseen), min(against for _, against in unseen)
    low, high = limits(D, d, a, share * against, reach, df, covary, share, variance=variance)
    (share_old, both, links_old), (share_new, also, links_new) = (
        split_links(one, other, drawn, truth) for one, other in ((old, new), (new, old))
    )
    change, mean = max(both, also) * (1 / links_new - 1 / links_old), (x_old + x_new) / 2
    down, up = D - low, high - D
    if metric not in (P, F1):
        of_links = share_old + both / links_old, share_new + also / links_new
        alone, shares = (share_old, share_new), of_links
        if metric is m.b3_recall:
            counted = (split_records(one, other, drawn, truth) for one, other in ((old, new), (new, old)))
            shares, alone = zip(*counted, strict=True)
        phi = max(share if links > 0.1 else 0 for share, links in zip(shares, of_links, strict=True))
        if metric in (R, m.b3_recall) and of_entities and phi:
            join = (lambda *arms: sum(arms)) if phi > 0.1 else math.hypot
            down = max(down, join((1 - phi) * down, alone[0], phi * max(D, 0)))
            up = max(up, join((1 - phi) * up, alone[1], phi * max(-D, 0)))
        return D, max(D - down, least), min(D + up, most), 0
    phi = max(share_old, share_new, abs(change))
    common = (change * mean, change * (1 - mean)) if change > 0 else (-change * (1 - mean), -change * mean)
    fall = share_new * x_new, share_old * (1 - x_old), common[0]
    rise = share_new * (1 - x_new), share_old * x_old, common[1]
    if phi > 0.1:
        down, up = ((1 - phi) * arm + sum(parts) for arm, parts in ((down, fall), (up, rise)))
    elif phi:
        down, up = (math.hypot((1 - phi) * arm, *parts) for arm, parts in ((down, fall), (up, rise)))
    return D, max(D - down, least), min(D + up, most), phi


PREDICTIONS, TRUTH = make_predictions()
SIZES = TRUTH.value_counts().sort_index()


def covary_in_strata(strata, thetas):
    """The covariance of two totals of draws without replacement in strata, with the part that is not drawn."""

    def covary(u, v):
        found = 0.0
        for stratum, theta in thetas.items():
            at = [i for i, of in enumerate(strata) if of == stratum]
            found += theta * covary_once([u[i] for i in at], [v[i] for i in at])
        return found

    return covary


def draw_records():
    drawn = TRUTH[TRUTH <= 60].sample(40, replace=True, random_state=1).tolist()
    design = eb.UniformRecords(drawn, repeats=True)
    return design, drawn, [1 / SIZES[e] for e in drawn], covary_once, [1.0] * len(drawn), 1


def draw_entities():
    drawn, number = list(range(0, 60, 3)), len(SIZES)
    theta, weight = 1 - len(drawn) / number, [number / len(drawn)] * len(drawn)
    thetas = [theta] * len(drawn)
    return eb.UniformClusters(number), drawn, weight, lambda u, v: theta * covary_once(u, v), thetas, 1


def draw_strata():
    """Small and large entities; of the large ones half are drawn."""
    number = {"small": int((SIZES <= 2).sum()), "large": int((SIZES > 2).sum())}
    small, large = ([e for e in range(61) if (SIZES[e] <= 2) == of] for of in (True, False))
    drawn = small[::2] + large[::3]
    strata = ["small"] * len(small[::2]) + ["large"] * len(large[::3])
    n = pd.Series(strata).value_counts()
    thetas = {h: 1 - n[h] / number[h] for h in number}
    weight = [number[h] / n[h] for h in strata]
    design = eb.Stratified(dict(zip(drawn, strata, strict=True)), number)
    return design, drawn, weight, covary_in_strata(strata, thetas), [thetas[h] for h in strata], 2


DESIGNS = {"records": draw_records, "entities": draw_entities, "strata": draw_strata}


@pytest.mark.parametrize("design", DESIGNS)
def test_a_difference_is_that_of_plain_python(design):
    rule, drawn, weight, covary, theta, lost = DESIGNS[design]()
    comparison = eb.compare(PREDICTIONS, TRUTH[TRUTH.isin(drawn)], rule, METRICS)
    table = comparison.differences().set_index("metric")
    certain = comparison.subtract("old", "new").unseen.certain
    singles = np.moveaxis(comparison.joint.unseen.certain.reshape(2, -1, 2), 0, 1)
    for metric, ends, single in zip(METRICS, certain, singles, strict=True):
        given = weight, covary, theta, lost, ends, single
        *wanted, phi = subtract_plainly(metric, PREDICTIONS, TRUTH, drawn, design != "records", *given)
        row = table.loc[metric.name]
        np.testing.assert_allclose(
            [row.estimate, row.lower, row.upper], wanted, rtol=1e-7, err_msg=metric.name
        )
        assert row.kind == "gains and losses" and (phi > 0) == (metric in (P, F1))
        least, most = find_ends(metric, *PREDICTIONS.values())
        assert least - 1e-12 <= ends[0] <= ends[1] <= most + 1e-12  # labels settle more than predictions


@pytest.mark.parametrize("design", DESIGNS)
def test_swapped_predictions_have_minus_the_limits(design):
    rule, drawn, *_ = DESIGNS[design]()
    labels = TRUTH[TRUTH.isin(drawn)]
    orders = PREDICTIONS.items(), reversed(PREDICTIONS.items())
    there, back = (subtract(dict(order), labels, METRICS, rule) for order in orders)
    np.testing.assert_allclose(there.interval(), -back.interval()[:, ::-1], rtol=1e-12)
    np.testing.assert_allclose(there.mean, -back.mean, rtol=1e-12)


def test_links_of_both_that_one_prediction_reaches_count_in_both_directions():
    """Draws touch a cluster of 5 records in one prediction alone; the 4 records that both join are in neither."""
    one = pd.Series([*[0] * 5, *[1] * 4, *range(2, 14)])
    other = pd.Series([*[0] * 3, *[20] * 2, *[1] * 4, *range(2, 14)])
    labels = pd.Series([*[0] * 3], range(3))
    there, back = (
        subtract(dict(order), labels, [P])
        for order in ([("a", one), ("b", other)], [("b", other), ("a", one)])
    )
    assert there.moves.parts[0, :, 2].max() > 0
    np.testing.assert_allclose(there.moves.parts[0, :, 2], back.moves.parts[0, ::-1, 2], rtol=1e-12)


class Uncounted:
    """An engine of a user, which says nothing of draws."""

    def paired(self, samples, metrics, rng=None):
        found = eb.engine.Taylor().paired(samples, metrics)
        values = {name: getattr(found, name) for name in ("names", "mean", "cov", "df", "support")}
        return eb.metrics.Estimates(**values)

    __call__ = eb.engine.Taylor.__call__


def test_an_engine_that_counts_no_draws_has_differences_that_no_draw_shows():
    good = {name: p.where((TRUTH >= 15) & (p >= 15), TRUTH) for name, p in PREDICTIONS.items()}
    for rule in (eb.UniformRecords(), eb.UniformClusters()):
        found = eb.compare(good, TRUTH[TRUTH < 15], rule, METRICS, engine=Uncounted()).differences()
        np.testing.assert_array_equal(found.estimate, 0)
        assert (found.lower < 0).all() and (found.upper > 0).all()
        both = [
            eb.compare(PREDICTIONS, TRUTH[TRUTH < 15], rule, METRICS, engine=one).subtract("old", "new")
            for one in (Uncounted(), eb.engine.Taylor())
        ]
        np.testing.assert_allclose(*(np.ptp(one.interval(), axis=1) for one in both), rtol=0.12)


def test_gains_less_losses_of_a_total_are_its_difference():
    """Draws' contributions to a total add up to it, and those to a share to 0."""
    size = (eb.columns.COMMON_LINKS, 1.0)
    metric = eb.Metric("pairs found", size[:1], operator.pos, (size,), (0.0, math.inf), "", absolute=True)
    found = subtract(PREDICTIONS, TRUTH[TRUTH < 15], [metric, P], eb.UniformClusters(len(SIZES)))
    sums = found.moves.sums
    np.testing.assert_allclose((sums[:, 0] - sums[:, 1])[0], found.mean[0], rtol=1e-12)


def test_a_prediction_does_not_differ_from_itself():
    one = PREDICTIONS["new"]
    for rule in (eb.UniformRecords(), eb.UniformClusters()):
        found = subtract({"a": one, "b": one + 7}, TRUTH[TRUTH < 20], METRICS, rule)
        np.testing.assert_array_equal(found.interval(), np.zeros((6, 2)))


def test_a_census_leaves_nothing_unseen():
    found = subtract(PREDICTIONS, TRUTH, METRICS, eb.UniformClusters(len(SIZES)))
    np.testing.assert_array_equal(found.interval(), found.mean[:, None].repeat(2, axis=1))
    old, new = PREDICTIONS.values()
    wanted = [value(metric, new, TRUTH) - value(metric, old, TRUTH) for metric in METRICS]
    np.testing.assert_allclose(found.mean, wanted, atol=1e-12)


def test_no_other_interval_is_without_length():
    """Two predictions without an error in the sample, which differ elsewhere."""
    for rule in (eb.UniformRecords(), eb.UniformClusters(), eb.UniformClusters(len(SIZES))):
        good = {name: p.where((TRUTH >= 15) & (p >= 15), TRUTH) for name, p in PREDICTIONS.items()}
        found = subtract(good, TRUTH[TRUTH < 15], METRICS, rule)
        np.testing.assert_array_equal(found.mean, 0)
        assert (found.interval()[:, 0] < 0).all() and (found.interval()[:, 1] > 0).all()


@pytest.mark.slow
def test_a_difference_lies_in_its_interval_and_at_certain_ends_at_most():
    """A few draws may show a larger difference than any that there can be."""
    beyond = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        truth = pd.Series(np.sort(rng.integers(0, 80, 200)))
        old = truth.mask(rng.random(200) < 0.1, rng.integers(0, 80))
        few = rng.random(200) < 0.05
        new = old.mask(few, pd.Series(1000 + few.cumsum() // 2))
        drawn = truth.sample(12, random_state=seed, replace=True)
        labels, design = truth[truth.isin(drawn)], eb.UniformRecords(list(drawn))
        comparison = eb.compare({"old": old, "new": new}, labels, design, METRICS)
        found = comparison.subtract("old", "new")
        plain = np.diff(comparison.joint.mean.reshape(2, -1), axis=0)[0]
        (low, high), (least, most) = found.interval().T, found.unseen.certain.T
        assert (low <= found.mean).all() and (found.mean <= high).all() and (low < high).all()
        beyond += ((plain < least) | (plain > most)).sum()
    assert beyond > 5


def test_the_order_of_draws_changes_nothing():
    _, drawn, *_ = draw_records()
    labels, mixed = TRUTH[TRUTH.isin(drawn)], np.random.default_rng(0).permutation(drawn).tolist()
    rules = eb.UniformRecords(drawn), eb.UniformRecords(mixed)
    one, other = (subtract(PREDICTIONS, labels, METRICS, rule) for rule in rules)
    np.testing.assert_allclose(one.interval(), other.interval(), rtol=1e-12)


def test_a_difference_of_rounding_is_0():
    """Both predictions have as many errors of each kind, in other entities, which are added up in another order."""
    truth = np.repeat(np.arange(300), np.arange(300) % 7 + 1)
    rng = np.random.default_rng(0)

    def join_entities():
        chosen = np.concatenate([rng.choice(np.arange(size, 140, 7), 4, replace=False) for size in range(7)])
        return pd.Series(np.where(np.isin(truth - 140, chosen), truth - 140, truth))

    predictions, labels = {"a": join_entities(), "b": join_entities()}, pd.Series(truth)[truth < 140]
    comparison = eb.compare(predictions, labels, eb.UniformRecords(), METRICS)
    assert np.diff(comparison.joint.mean.reshape(2, -1), axis=0).any()
    np.testing.assert_array_equal(comparison.subtract("a", "b").mean, 0)


def test_a_share_that_is_an_end_up_to_rounding_is_the_end():
    """Estimates of 1 + 1e-14 stood above their own upper limit."""
    rng = np.random.default_rng(0)
    truth = pd.Series(np.repeat(np.arange(300), rng.integers(1, 8, 300)))
    for draws in (7, 30, 90):
        found = eb.estimate(truth, truth[truth < draws], eb.UniformRecords(), METRICS)
        np.testing.assert_array_equal(found.mean, 1)


# The bootstrap
@pytest.mark.parametrize(("moved", "kind"), [(2, "Beta"), (4, "Beta"), (5, "BCa"), (9, "BCa")])
def test_a_bootstrap_has_the_interval_of_the_closed_form_where_few_draws_move_a_metric(moved, kind):
    """Of 40 pairs, `moved` are apart in the prediction, which every draw shows alike."""
    truth = pd.Series(np.arange(400) // 2)
    prediction = truth.where(truth >= moved, 1000 + truth.index)
    sample = eb.Sample(eb.measure(prediction, truth[truth < 40]), eb.UniformClusters())
    found = eb.engine.bootstrap(sample, [R], replicates=100, rng=1)
    assert found.table().kind.tolist() == [kind] and found.weight[0] == (kind == "BCa")
    closed = eb.engine.Taylor()(sample, [R]).interval()
    assert np.array_equal(found.interval(), closed) == (kind == "Beta")
    other = truth.where(truth >= 20, truth + 500)  # the same clusters by other names
    two, how = {"a": other, "b": prediction}, {"engine": Resampled(), "rng": 1}
    row = eb.compare(two, truth[truth < 40], eb.UniformClusters(), [R], **how).differences().iloc[0]
    assert row.kind == ("gains and losses" if kind == "Beta" else "equal-tailed") and row.upper > row.lower


def test_a_bootstrapped_difference_counts_each_entity_once():
    drawn = [*range(20), *range(20)]
    labels, rule = TRUTH[TRUTH < 20], eb.UniformRecords(drawn)
    good = {name: p.where((TRUTH >= 9) & (p >= 9), TRUTH) for name, p in PREDICTIONS.items()}
    resampled = eb.compare(good, labels, rule, [R], engine=Resampled(), rng=1).subtract("old", "new")
    counted = eb.compare(good, labels, rule, [R]).subtract("old", "new")
    assert resampled.weight[0] == 0 and 0 < resampled.other.moves.moving[0] < 5
    np.testing.assert_allclose(resampled.other.moves.step, counted.moves.step, rtol=1e-3)  # first order


# Results by component
def numbers(*shape):
    return np.random.default_rng(len(shape)).uniform(0.1, 0.9, shape)


def make_unseen(k):
    two = {name: numbers(k, 2) for name in ("certain", "skew", "between")}
    reach, share = numbers(k, 2) * [-1, 1], numbers(k) / 20
    third = numbers(k) / 1000
    return Unseen(effective=numbers(k) * 50, reach=reach, unreached_share=share, third=third, **two)


def make_moves(k):
    two = {"sums", "variance", "step", "df", "certain"}
    shapes = {f.name: (k, 2) if f.name in two else (k,) for f in fields(Moves)} | {"parts": (k, 2, 2)}
    return Moves(**{name: numbers(*shape) for name, shape in shapes.items()})


def normal(k=3, *batch):
    return {
        "names": tuple("abcdefg"[:k]),
        "mean": numbers(*batch, k),
        "cov": numbers(*batch, k, k),
        "df": numbers(*batch, k) * 9,
        "support": tuple((-float(j), 1.0 + j) for j in range(k)),
        "undefined": tuple("tuvwxyz"[:k]),
        "unseen": make_unseen(k),
        "moves": make_moves(k),
    }


def alone():
    """Three components without a covariance."""
    return Estimates(**normal() | {"cov": np.diag(numbers(3))})


def make_results():
    """One result of each kind with three components, and no other axis of length three."""
    weights = np.array([[1.0, -1, 0, 0], [0, 2, 0.5, 0], [0, 0, 1, 1]])
    assisted = {name: numbers(3) for name in ("weights", "equivalent_labels", "unreached_share")}
    assisted |= {"second": "s", "changed": None, "unassisted": tuple("ijk")}
    average = normal() | {"values": numbers(2, 7, 3), "other": Estimates(**normal()), "weight": numbers(3)}
    average |= {"replicated": Replication(plain=numbers(3), acceleration=numbers(3)), "origin": tuple("xyz")}
    return {
        "AssistedEstimates": AssistedEstimates(**normal(), **assisted),
        "average": Estimates(**average),
        "cases": Estimates(**normal(), cases=Cases(wrong=alone(), right=alone(), share=0.2)),
        "bets": Estimates(**normal(), bets=Bets(values=numbers(2, 7, 3), shares=numbers(2, 7, 3))),
        "combination": Estimates(
            **normal(), combined=Combination(parts=Estimates(**normal(4)), weights=weights)
        ),
        "Moves": make_moves(3),
        "Unseen": make_unseen(3),
    }


def test_every_field_by_component_has_an_example():
    """No field is None in all examples, so that the tests below see each of them."""
    results = make_results()
    for kind in (Estimates, AssistedEstimates):
        for f in fields(kind):
            of = [getattr(one, f.name, None) for one in results.values()]
            assert not f.metadata or any(x is not None for x in of), f.name


def walk(whole, part, path=""):
    """Yield the values of two results, field by field, and of the results inside them."""
    for f in fields(whole):
        one, other, name = getattr(whole, f.name), getattr(part, f.name), f"{path}{f.name}"
        if is_dataclass(one) and f.metadata.get("components"):
            yield from walk(one, other, f"{name}.")
        else:
            yield name, one, other


def take(x, at):
    """The components `at` of what has three, by brute force."""
    if isinstance(x, tuple) and len(x) == 3:
        return tuple(x[i] for i in at)
    if isinstance(x, np.ndarray):
        for axis in (axis for axis, length in enumerate(x.shape) if length == 3):
            x = np.stack([np.moveaxis(x, axis, 0)[i] for i in at], axis=axis)
    return x


def map_part(whole, at):
    """The components `at` of a result, or of `Unseen` or `Moves`, which results take with their own."""
    if hasattr(whole, "part"):
        return whole.part(at)
    return unseen.map_components(lambda axes, x: estimates._take_components(axes, x, at), whole)


def assert_same(wanted, found, name):
    if isinstance(wanted, np.ndarray):
        np.testing.assert_array_equal(found, wanted, err_msg=name)
    else:
        assert found == wanted if isinstance(wanted, tuple) else found is wanted, name


@pytest.mark.parametrize("kind", make_results())
@pytest.mark.parametrize("at", [[2, 0], [1], [0, 1, 2]])
def test_no_field_is_forgotten_when_components_are_taken(kind, at):
    whole = make_results()[kind]
    part = map_part(whole, at)
    assert type(part) is type(whole)
    for name, one, other in walk(whole, part):
        assert_same(take(one, at), other, name)


@pytest.mark.parametrize("kind", sorted({*make_results()} - {"average"}))
def test_no_field_is_forgotten_when_results_are_stacked(kind):
    """The first two components and the last one, each taken before, are the result again. A closed form
    beside draws is not stacked, as its covariances would not be known."""
    whole = make_results()[kind]
    parts = map_part(whole, [0, 1]), map_part(whole, [2])
    fixed = {"cov": whole.cov} if isinstance(whole, Estimates) else {}
    again = unseen.stack_components(*parts, **fixed)
    for name, one, other in walk(whole, again):
        assert_same(one, other, name)


# Linear combinations
def make_parts(unreached_share, correlation=0.0):
    """Three precisions, of which shares are out of reach."""
    sd = np.array([0.03, 0.05, 0.02])
    r = np.where(np.eye(3), 1.0, correlation)
    return Estimates(
        names=("a", "b", "c"),
        mean=np.array([0.9, 0.7, 0.97]),
        cov=np.outer(sd, sd) * r,
        df=np.array([20.0, 40.0, 30.0]),
        support=(m.UNIT,) * 3,
        unseen=Unseen(effective=np.array([25.0, 60.0, 40.0]), unreached_share=np.array(unreached_share)),
    )


WEIGHTS = np.array([[1.0, -1, 0], [-1, 0, 1], [0.5, 0.5, -1], [0, -2, 0]])


def find_arms(weights, parts, bounds):
    """Signed arms of each part down and up, on the sides to which its weight turns them."""
    for w, x, (low, high) in zip(weights, parts.mean, bounds, strict=True):
        yield (w * (x - low), w * (high - x)) if w > 0 else (w * (high - x), w * (x - low))


@pytest.mark.parametrize("correlation", [-0.3, 0.0, 0.8])
def test_arms_of_combinations_are_those_of_zou_and_donner(correlation):
    parts = make_parts([0.3, 0.04, 0.0], correlation)
    found = parts.contrast(WEIGHTS, list("uvwx"))
    # half a draw at each end of the scale, less in its middle, goes with nothing
    reach, n = parts.unseen.reach, parts.unseen.effective
    unseen = (reach.sum(axis=1) / np.abs(reach).sum(axis=1) / n) ** 2 * (reach**2).sum(axis=1) / 2
    seen = parts.sd / np.sqrt(parts.sd**2 + unseen)
    assert [found.name_kind(j) for j in range(4)] == ["Beta, of the parts"] * 4
    np.testing.assert_allclose(found.mean, WEIGHTS @ parts.mean)
    for kind, row in itertools.product([None, eb.intervals.Anytime()], range(4)):
        weights, x, ends = WEIGHTS[row], found.mean[row], found.interval(0.9, kind)[row]
        for side, end in enumerate(ends):
            arms = [both[side] for both in find_arms(weights, parts, parts.interval(0.9, kind))]
            pairs = itertools.product(range(3), repeat=2)
            r = correlation * np.outer(seen, seen)
            square = sum(arms[i] * arms[j] * (1 if i == j else r[i, j]) for i, j in pairs)
            assert abs(end - x) == pytest.approx(math.sqrt(square)) and (end > x) == side


def test_a_combination_loses_nothing_for_which_its_parts_allow():
    """Arms of independent parts are no longer than that of their sum, and a share out of reach makes it longer."""
    parts, seen = make_parts([0.3, 0.04, 0.0]), make_parts([0.0, 0.0, 0.0])
    found, shorter = (of.contrast(WEIGHTS, list("uvwx")) for of in (parts, seen))
    arms, short = (np.abs(of.interval() - of.mean[:, None]) for of in (found, shorter))
    for weights, both in zip(WEIGHTS, arms, strict=True):
        for one in find_arms(weights, parts, parts.interval()):
            assert (np.abs(one) <= both + 1e-12).all()
    assert (arms[:3] > short[:3] + 1e-3).any(axis=1).all()
    taken = found.part([2, 0])
    np.testing.assert_allclose(taken.interval(), found.interval()[[2, 0]])
    assert taken.name_kind(1) == "Beta, of the parts"


@pytest.mark.parametrize("rounding", [0.0, -1e-15, 1e-15])
def test_a_part_whose_errors_are_rounding_has_arms_without_correlation(rounding):
    cov = np.array([[1e-4, rounding], [rounding, 1e-26]])
    parts = replace(make_parts([0.0, 0.0, 0.0]).part([0, 1]), cov=cov)
    assert parts.sd.tolist() == [0.01, 0.0]
    (a_down, a_up), (b_down, b_up) = np.abs(parts.interval() - parts.mean[:, None])
    assert min(b_down, b_up) > 0
    found = parts.contrast([[1, -1], [1, 1]], ["u", "v"])
    wanted = [
        [-math.hypot(a_down, b_up), math.hypot(a_up, b_down)],
        [-math.hypot(a_down, b_down), math.hypot(a_up, b_up)],
    ]
    np.testing.assert_allclose(found.interval() - found.mean[:, None], wanted)


def test_differences_of_domains_allow_for_what_is_out_of_reach():
    rule, drawn, *_ = draw_records()
    sample = eb.Sample(eb.measure(PREDICTIONS["old"], TRUTH[TRUTH.isin(drawn)]), rule)  # 6000 is out of reach
    found = eb.by_domain(sample, dict(enumerate(np.where(TRUTH % 2, "odd", "even"))), F1)
    (even, odd), (row,) = (table.to_dict("records") for table in (found.table(), found.differences()))
    assert (found.joint.unseen.unreached_share > 0).all()
    assert (row["difference"], row["kind"]) == ("odd - even", "Beta, of the parts")
    assert row["estimate"] == pytest.approx(odd["estimate"] - even["estimate"])
    r = found.joint.cov[0, 1] / np.sqrt(found.joint.cov[0, 0] * found.joint.cov[1, 1])
    for end, (up, down) in (
        ("upper", (odd["upper"] - odd["estimate"], even["estimate"] - even["lower"])),
        ("lower", (odd["estimate"] - odd["lower"], even["upper"] - even["estimate"])),
    ):
        wanted = math.sqrt(up**2 + down**2 - 2 * r * up * down)
        assert abs(row[end] - row["estimate"]) == pytest.approx(wanted, rel=1e-9)
