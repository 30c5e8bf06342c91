"""What labels settle: bounds against all partitions of the unlabelled records, and where they are cut."""

from dataclasses import replace

import numpy as np
import oracle
import pytest

import erbayes as eb
from erbayes.metrics import Estimates
from erbayes.metrics import definitions as d
from erbayes.metrics.unseen import Unseen, round_outward

TRUTH, PREDICTION = [0, 0, 0, 1, 1, 2, 2, 2], [0, 0, 1, 1, 1, 2, 2, 3]


def sample_of(truth, prediction, labelled):
    labels = {i: truth[i] for i in range(len(truth)) if truth[i] in labelled}
    return eb.Sample(eb.measure(dict(enumerate(prediction)), labels), eb.UniformClusters())


def clusters_of(truth, prediction, drawn, labelled, whole=True):
    labels, prediction = {i: truth[i] for i in labelled}, dict(enumerate(prediction))
    units = eb.measure_predicted(prediction, labels, drawn, whole_entities=whole)
    return eb.Sample(units, eb.UniformClusters())


METRICS = (*d.ALL, d.pairwise_f(2))
SETTLED = [m for m in METRICS if np.isfinite(sample_of(TRUTH, PREDICTION, {0, 1}).certain([m])).all()]
JOINED = {eb.columns.COMMON_LINKS, eb.columns.TRUE_LINKS}
"""Totals of which no partition has the worst of both: the least value of a metric of both is not attained."""


def certain(sample):
    """The ends by the package, as {metric: (least, most)}."""
    return dict(zip([m.name for m in SETTLED], sample.certain(SETTLED).tolist(), strict=True))


def enumerate_ends(truth, prediction, inside, whole=True):
    """The values of each metric over all partitions that agree with labels `inside`, of `whole` entities or not."""
    values, outside = [], {*range(len(truth))} - {*inside}
    for full in oracle.partitions(len(truth)):
        right = all((full[i] == full[j]) == (truth[i] == truth[j]) for i in inside for j in inside)
        if right and not (whole and {full[i] for i in inside} & {full[j] for j in outside}):
            values.append(oracle.truth(full, prediction))
    return {metric.name: [v[metric.name] for v in values] for metric in SETTLED}


def draw_population(rng, records):
    truth = rng.integers(rng.integers(1, records + 1), size=records)
    moved = rng.random(records) < rng.random()
    prediction = np.where(moved, rng.integers(records, size=records), truth)
    labelled = [c for c in set(truth.tolist()) if rng.random() < 0.5] or [int(truth[0])]
    return truth.tolist(), prediction.tolist(), labelled


@pytest.mark.parametrize("kind", ["entities", "clusters", "border"])
@pytest.mark.parametrize("seed", range(60))
def test_no_partition_leaves_the_certain_ends(seed, kind):
    """Of drawn entities; of predicted clusters with the whole entities that they touch; or with their records alone."""
    rng = np.random.default_rng(seed)
    truth, prediction, labelled = draw_population(rng, 4 + seed % 4)
    drawn = [k for k in {*prediction} if rng.random() < 0.5] or prediction[:1]
    inside = [i for i, k in enumerate(prediction) if k in drawn]
    if kind == "border":  # labels of other records, whose entities need not be whole, say nothing
        sample = clusters_of(truth, prediction, drawn, range(len(truth)), whole=False)
    elif kind == "clusters":
        inside = [i for i, c in enumerate(truth) if c in {truth[i] for i in inside}]
        sample = clusters_of(truth, prediction, drawn, inside)
    else:
        inside = [i for i, c in enumerate(truth) if c in labelled]
        sample = sample_of(truth, prediction, labelled)
    ends, values = certain(sample), enumerate_ends(truth, prediction, inside, whole=kind != "border")
    for metric in SETTLED:
        of_each, (least, most) = values[metric.name], ends[metric.name]
        if kind == "border" and metric not in (d.pairwise_precision, d.b3_precision):
            assert (least, most) == (-np.inf, np.inf)
            continue
        if np.isnan(of_each).any():  # 0/0 of some partitions
            continue
        wrong = f"labels bound {metric.name} otherwise: mend `settle` in erbayes/units/settled.py"
        assert least - 1e-12 <= min(of_each) and max(of_each) <= most + 1e-12, wrong
        assert max(of_each) == pytest.approx(most, abs=1e-12), wrong
        if len(of_each) == 1 or not {*metric.columns} >= JOINED:
            assert min(of_each) == pytest.approx(least, abs=1e-12), wrong


def test_many_samples_of_clusters_settle_what_each_does_alone():
    units = clusters_of(TRUTH, PREDICTION, [0, 1, 2, 3], range(8)).units
    unit = np.array([[0, 1], [2, 2], [3, 0]])
    together = eb.Sample.many(units, eb.UniformClusters(), unit).certain(SETTLED)
    alone = [eb.Sample(units.take(np.unique(at)), eb.UniformClusters()).certain(SETTLED) for at in unit]
    np.testing.assert_array_equal(together, alone)
    assert np.ptp(together, axis=0).any()


def test_least_values_that_no_partition_attains_by_hand():
    known = {(0,): (0.2, 1 / 11, 0.125), (0, 1): (0.4, 1 / 3, 4 / 11)}
    for labelled, least in known.items():
        ends = sample_of(TRUTH, PREDICTION, labelled).certain(d.DEFAULT_METRICS[:3])
        np.testing.assert_allclose(ends, [(x, 0.6) for x in least])


def test_nothing_is_settled_without_whole_entities_or_all_records():
    labels = {i: t for i, t in enumerate(TRUTH) if t < 2}
    kept = eb.measure(dict(enumerate(PREDICTION[1:], 1)), labels, missing="singleton")
    sampled = eb.measure_predicted(dict(enumerate(PREDICTION[1:], 1)), dict(enumerate(TRUTH)), [0, 1])
    isolated = clusters_of(TRUTH, PREDICTION, [0, 1], range(8)).units.isolated()
    # of a second clustering, pieces count the records that it shares with the prediction, which are no labels
    second = eb.measure(dict(enumerate(PREDICTION)), labels)
    second = replace(second, counted=np.ones(len(second.n)))
    for units in (kept, sampled, isolated, second):
        assert np.isinf(eb.Sample(units, eb.UniformClusters()).certain(SETTLED)).all()
    columns = eb.columns.COMMON_LINKS, eb.columns.TRUE_LINKS
    own = eb.metrics.Metric("own", columns, lambda a, b: a * b / b**2, (), (0, 1), "")
    units = eb.measure(dict(enumerate(PREDICTION)), labels)
    sample = eb.Sample(units, eb.UniformClusters())
    assert np.isinf(sample.certain([own, d.purity, d.entities])).all()
    table = eb.engine.Taylor()(sample, [d.inverse_purity, d.entities]).table(settled=True)
    assert table[["least", "most"]].to_numpy().tolist() == [[0, 1], [0, np.inf]]


def test_intervals_move_with_their_estimate_and_are_cut():
    seen = Unseen(certain=np.array([[0.7, 0.92], [0.3, 0.7], [0.7, 0.92], [0.7, 0.92]]))
    x, bounds = np.array([0.93, 0.5, 0.99, 1.05]), np.array([[0.9, 0.96], [0.4, 0.6], [0.95, 1], [0.95, 1]])
    np.testing.assert_allclose(seen.nearest(x), [0.92, 0.5, 0.92, 0.92])
    # the third would have no length if it were cut alone, and the last moves from the end of the support
    nearest, cut = seen.cut(x, bounds)
    np.testing.assert_array_equal(nearest, seen.nearest(x))
    np.testing.assert_allclose(cut, [[0.89, 0.92], [0.4, 0.6], [0.88, 0.92], [0.87, 0.92]])


def test_what_is_cut_twice_is_cut_once():
    rng = np.random.default_rng(0)
    for _ in range(200):
        x, bounds, certain = (rng.uniform(size=shape) for shape in (4, (4, 2), (4, 2)))
        seen = Unseen(certain=np.sort(certain, axis=1))
        once = seen.cut(x, np.sort(bounds, axis=1))
        for one, other in zip(seen.cut(*once), once, strict=True):
            np.testing.assert_array_equal(one, other)


def test_certain_ends_allow_for_rounding_and_0_is_exact():
    rounded = round_outward(np.array([[0.1 + 0.2, 0.3], [0.0, 0.0], [-np.inf, 2000.0], [np.inf, np.inf]]))
    assert rounded[0, 0] < 0.3 < rounded[0, 1] < 0.1 + 0.2 + 1e-14
    np.testing.assert_array_equal(rounded[1], [0, 0])
    np.testing.assert_array_equal([rounded[2, 0], *rounded[3]], [-np.inf, np.inf, np.inf])
    np.testing.assert_allclose(rounded[2, 1], 2000)
    assert rounded[2, 1] > 2000


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_check_at_an_end_that_is_certain_is_not_decided_by_rounding(sign):
    """Precision lies between .9 and 1, so that it is not below .9, nor above 1 less what rounding takes."""
    pairs = {i: i // 2 for i in range(20)}
    sample = eb.Sample(eb.measure(pairs, {i: i // 2 for i in range(18)}), eb.UniformClusters(10))
    found = eb.labels.check(sample, {"pairwise-precision": np.nextafter(0.9, sign)})
    assert found.verdicts[0].value == "holds"


def test_a_standard_error_is_at_most_half_of_what_is_certain():
    certain = Unseen(certain=np.array([[0.7, 0.8], [0.8, 0.8], [-np.inf, np.inf]]))
    given = dict(names=("a", "b", "c"), support=((0.0, 1.0),) * 3, unseen=certain)
    normal = Estimates(mean=np.full(3, 0.75), cov=0.04 * np.eye(3), df=np.full(3, 9.0), **given)
    values = np.tile([[0.55], [0.95]], (1, 300, 3)).reshape(1, -1, 3)
    for found in (normal, Estimates.of_draws(values=values, **given)):
        np.testing.assert_allclose(found.sd, [0.05, 0, 0.2], rtol=1e-3)
        np.testing.assert_allclose(found.uncut_sd, 0.2, rtol=1e-3)


def differences(truth, first, second, labelled):
    """The certain ends of second less first, by the package."""
    labels = {i: truth[i] for i in range(len(truth)) if truth[i] in labelled}
    predictions = {"first": dict(enumerate(first)), "second": dict(enumerate(second))}
    compared = eb.compare(predictions, labels, eb.UniformRecords(), COMPARED)
    ends = compared.subtract("first", "second").unseen.certain
    return dict(zip([m.name for m in COMPARED], ends.tolist(), strict=True))


COMPARED = d.resolve_metrics(["precision", "recall", "b3", "cluster-precision", "cluster-recall"])


@pytest.mark.every(4)
@pytest.mark.parametrize("seed", range(40))
def test_no_partition_leaves_the_certain_ends_of_a_difference(seed):
    rng = np.random.default_rng(seed)
    truth, first, labelled = draw_population(rng, 5 + seed % 3)
    second = np.where(rng.random(len(first)) < 0.4, rng.integers(8, size=len(first)), first).tolist()
    ends = differences(truth, first, second, labelled)
    inside = [i for i, c in enumerate(truth) if c in labelled]
    one, other = (enumerate_ends(truth, p, inside) for p in (first, second))
    for name, (least, most) in ends.items():
        change = np.subtract(other[name], one[name])
        x, y = (certain(sample_of(truth, p, labelled))[name] for p in (first, second))
        # no wider than what each prediction alone leaves possible
        assert least >= np.maximum(y[0], 0) - np.minimum(x[1], 1) - 1e-12
        assert most <= np.minimum(y[1], 1) - np.maximum(x[0], 0) + 1e-12
        if not np.isnan(change).any():
            assert least - 1e-12 <= change.min() and change.max() <= most + 1e-12


def test_certain_ends_of_a_difference_by_hand():
    second = [0, 0, 0, 1, 1, 2, 2, 2]
    expected = {(0,): ((4 / 35, 18 / 35), (2 / 13, 0.8)), (0, 1): ((4 / 35, 16 / 35), (0.4, 2 / 3))}
    for labelled, (precision, recall) in expected.items():
        ends = differences(TRUTH, PREDICTION, second, labelled)
        assert ends["pairwise-precision"] == pytest.approx(precision, abs=1e-4)
        assert ends["pairwise-recall"] == pytest.approx(recall, abs=1e-4)
        turned = differences(TRUTH, second, PREDICTION, labelled)
        assert turned["pairwise-recall"] == pytest.approx([-x for x in recall[::-1]], abs=1e-4)


def test_a_check_is_decided_by_what_labels_settle():
    """Of ten pairs nine are labelled and right: precision is .9 at least, though draws alone would leave it open."""
    pairs = {i: i // 2 for i in range(20)}
    sample = eb.Sample(eb.measure(pairs, {i: i // 2 for i in range(18)}), eb.UniformClusters(10))
    found = eb.labels.check(sample, {"pairwise-precision": 0.9, "cluster-recall": 0.99})
    assert found.verdicts[0].value == "holds" and found.further[0] == 0
    assert found.interval[0] == pytest.approx((0.9, 1))
    assert "lies between 0.9 and 1 (certain if the labels are right)" in found.sentences()[0]
    assert found.verdicts[1].value == "open"
