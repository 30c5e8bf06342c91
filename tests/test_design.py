"""Designs: enumeration of all samples, and bad input."""

import tracemalloc
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import combinations, combinations_with_replacement, product
from math import factorial, prod

import numpy as np
import oracle
import pandas as pd
import pytest
from checks import raises

import erbayes as eb
from erbayes import labels as sampling
from erbayes import metrics as m
from erbayes.design import BySize
from erbayes.design.contract import SelectedBySize
from erbayes.design.draws import Round, count_independent, count_once
from erbayes.design.records import draws_records
from erbayes.study import UniformEntities

pytestmark = pytest.mark.kernel
PRED = {1: "a", 2: "a", 3: "b", 4: "b", 5: "b", 6: "c", 7: "d", 8: "d", 9: "e"}
TRUE = {1: "x", 2: "x", 3: "x", 4: "y", 5: "y", 6: "z", 7: "u", 8: "v", 9: "v"}
P = m.pairwise_precision


def labels(entities):
    return {r: e for r, e in TRUE.items() if e in entities}


@cache
def units_of(entities):
    return eb.measure(PRED, labels(entities))


def totals(entities, design):
    t = eb.engine.taylor(eb.Sample(units_of(frozenset(entities)), design), [P, m.entities])
    j = t.names.index("predicted_links")
    return t.mean[j], t.cov[j, j]


SIZE = {e: list(TRUE.values()).count(e) for e in "xyzuv"}
UNEQUAL = dict(zip("xyzuv", [0.4, 0.1, 0.1, 0.1, 0.3], strict=True))
HEAVY = {record: record / 45 for record in TRUE}


def squares(size):
    return size**2 + 1


def in_any_order(choices, n):
    """Each n draws with replacement without their order, which no design looks at, and the number of their orders."""
    for drawn in combinations_with_replacement(choices, n):
        yield factorial(n) // prod(map(factorial, Counter(drawn).values())), drawn


def of_records(repeats=False):
    for orders, drawn in in_any_order(TRUE, 3):
        owners = [TRUE[r] for r in drawn]
        yield orders / 9**3, owners, eb.UniformRecords(owners, repeats=repeats)


def of_distinct_entities():
    for chance, owners, _ in of_records():
        yield chance, owners, eb.DistinctEntities(3)


def of_clusters():
    return ((1 / 10, drawn, eb.UniformClusters(population=5)) for drawn in combinations("xyzuv", 3))


def of_strata():
    strata = dict(zip("xyzuv", [0, 0, 0, 1, 1], strict=True))
    for drawn in combinations("xyz", 2):
        yield 1 / 3, (*drawn, "u", "v"), eb.Stratified(strata, {0: 3, 1: 2})


def of_weighted_records():
    for orders, drawn in in_any_order(TRUE, 2):
        p = [HEAVY[r] for r in drawn]
        owners = [TRUE[r] for r in drawn]
        yield orders * np.prod(p), owners, eb.WeightedRecords(owners, p, absolute=True)


def of_known_weights():
    weights = {e: 1 / (3 * p) for e, p in UNEQUAL.items()}
    for orders, drawn in in_any_order(UNEQUAL, 3):
        design = eb.KnownWeights(weights, drawn, absolute=True)
        yield orders * np.prod([UNEQUAL[e] for e in drawn]), drawn, design


def of_units_by_size():
    """Weights are the inverse of a chance up to a factor; here the chance itself is known."""
    chance = {e: squares(n) / sum(map(squares, SIZE.values())) for e, n in SIZE.items()}
    factor = 3 / sum(map(squares, SIZE.values()))
    for orders, drawn in in_any_order("xyzuv", 3):
        design = BySize(lambda size: factor * squares(size), draws=drawn)
        yield orders * np.prod([chance[e] for e in drawn]), drawn, design


OF_CLUSTER = {k: list(PRED.values()).count(k) for k in PRED.values()}
ROOTS = eb.columns.ClusterSum("roots", np.sqrt)
ROOT = {r: OF_CLUSTER[k] ** 0.5 for r, k in PRED.items()}
ROOT = {r: root / sum(ROOT.values()) for r, root in ROOT.items()}
LINK = {r: (OF_CLUSTER[k] - 1) / 10 for r, k in PRED.items()}


def of_predicted_size():
    for orders, drawn in in_any_order(TRUE, 3):
        owners = [TRUE[r] for r in drawn]
        yield orders * np.prod([ROOT[r] for r in drawn]), owners, eb.design.ByPredictedSize(ROOTS, owners)


def of_poisson_records(expected):
    """Each record independently; some are certain if `expected` is large."""
    p = {r: min(1, expected * root) for r, root in ROOT.items()}
    inclusion = {e: 1 - np.prod([1 - p[r] for r in TRUE if TRUE[r] == e]) for e in "xyzuv"}
    for taken in product([False, True], repeat=len(TRUE)):
        chance = np.prod([p[r] if t else 1 - p[r] for r, t in zip(TRUE, taken, strict=True)])
        drawn = {TRUE[r] for r, t in zip(TRUE, taken, strict=True) if t}
        if chance > 0 and drawn:
            yield chance, drawn, eb.design.KnownInclusion(inclusion, fixed_size=False)


def of_known_chances():
    for orders, drawn in in_any_order(UNEQUAL, 3):
        yield orders * np.prod([UNEQUAL[e] for e in drawn]), drawn, eb.design.KnownSelection(UNEQUAL, drawn)


def of_known_inclusion():
    """Equal probabilities in random order: simple random samples of units without replacement."""
    for drawn in combinations("xyzuv", 3):
        yield 1 / 10, drawn, eb.design.KnownInclusion(dict.fromkeys("xyzuv", 3 / 5))


def of_certain_units():
    """One unit that is always drawn, and simple random samples of two of the other four."""
    inclusion = dict.fromkeys("xyzuv", 1 / 2) | {"y": 1.0}
    for drawn in combinations("xzuv", 2):
        yield 1 / 6, ("y", *drawn), eb.design.KnownInclusion(inclusion)


def of_independent_units():
    for taken in product([False, True], repeat=5):
        p = [UNEQUAL[e] if t else 1 - UNEQUAL[e] for e, t in zip("xyzuv", taken, strict=True)]
        drawn = [e for e, t in zip("xyzuv", taken, strict=True) if t]
        if drawn:
            yield np.prod(p), drawn, eb.design.KnownInclusion(UNEQUAL, fixed_size=False)


def of_pooled():
    """Two uniform records, and two ends of predicted links."""
    linked, chances = [r for r in TRUE if LINK[r]], Counter()
    for (orders, records), (more, ends) in product([*in_any_order(TRUE, 2)], [*in_any_order(linked, 2)]):
        owners = (*sorted(TRUE[r] for r in records), *sorted(TRUE[r] for r in ends))
        chances[owners] += orders * more * np.prod([LINK[r] for r in ends]) / 9**2
    for owners, chance in chances.items():
        links = eb.design.ByPredictedSize(eb.columns.PREDICTED_LINKS, owners[2:])
        yield chance, owners, eb.design.Pooled([eb.UniformRecords(owners[:2]), links])


def of_pooled_strata():
    """Two records of odd number and two of even number: entities may have records in both strata."""
    strata = [[r for r in TRUE if r % 2 == odd] for odd in (1, 0)]
    share = [{e: sum(TRUE[r] == e for r in stratum) / len(stratum) for e in "xyzuv"} for stratum in strata]
    for (orders, odd), (more, even) in product(*([*in_any_order(stratum, 2)] for stratum in strata)):
        owners = [[TRUE[r] for r in drawn] for drawn in (odd, even)]
        parts = [eb.design.KnownSelection(p, drawn) for p, drawn in zip(share, owners, strict=True)]
        yield orders * more / 25 / 16, owners[0] + owners[1], eb.design.Pooled(parts)


OLDER = {1: "a", 2: "b", 3: "b", 4: "b", 5: "b", 6: "b", 7: "c", 8: "d", 9: "d"}


def of_another_prediction():
    """Chances by the predicted sizes of an older prediction, and totals of the new one."""
    size = {r: list(OLDER.values()).count(k) for r, k in OLDER.items()}
    p = {r: m**0.5 / sum(m**0.5 for m in size.values()) for r, m in size.items()}
    for orders, drawn in in_any_order(TRUE, 3):
        owners = [TRUE[r] for r in drawn]
        older = eb.measure(OLDER, labels(set(owners)))
        design = eb.design.FrozenWeights(eb.design.ByPredictedSize(ROOTS, owners), older)
        yield orders * np.prod([p[r] for r in drawn]), owners, design


@dataclass(frozen=True)
class Row:
    """What tests know of a class of designs.

    `samples` yields every sample that it can draw of the five entities, with its chance and its design; None
    if it adjusts other designs, whose samples it has. `make` makes a design of some labels, record -> entity,
    and of their units. `drawn` and `studied`: plans of `erbayes.labels` and of studies that draw it, or why
    none does. `not_in_shell`: why it is no value of --design. `says_nothing`: weights change with labels in
    no way that an analysis of labelling errors knows.
    """

    samples: Callable | None
    make: Callable
    drawn: object
    studied: object
    not_in_shell: str = ""
    says_nothing: bool = False


FOLDER, SAMPLE = "what was drawn; it is read from the folder of the draws", "it belongs to a sample"
ENTITIES, NO_PLAN = "draws of entities, which a prediction does not hold", "no plan yet: your own draws it"
DESIGNS = {
    eb.UniformRecords: Row(of_records, lambda labels, units: eb.UniformRecords(),
        sampling.Records(), sampling.Records()),
    eb.UniformClusters: Row(of_clusters, lambda labels, units: eb.UniformClusters(),
        sampling.PredictedClusters(), UniformEntities()),
    eb.DistinctEntities: Row(of_distinct_entities, lambda labels, units: eb.DistinctEntities(90),
        "a form of labels, not of draws", "a function as an engine has it, on Records"),
    eb.KnownWeights: Row(of_known_weights, lambda labels, units: eb.KnownWeights(pd.Series(1.0, units.ids)),
        "draws made elsewhere", SAMPLE, says_nothing=True),
    eb.Stratified: Row(of_strata,
        lambda labels, units: eb.Stratified({i: i % 2 for i in units.ids}, {0: 400, 1: 400}),
        ENTITIES, "strata belong to a population"),
    eb.WeightedRecords: Row(of_weighted_records, lambda labels, units: eb.WeightedRecords.of(
            labels, list(labels.index[::3]), pd.Series(1.0, labels.index)),
        "draws made elsewhere", SAMPLE, "probabilities of records; use known-weights"),
    eb.design.BySize: Row(of_units_by_size, lambda labels, units: BySize(np.sqrt),
        ENTITIES, NO_PLAN, "a function of sizes", says_nothing=True),
    eb.design.ByPredictedSize: Row(of_predicted_size, lambda labels, units: eb.design.ByPredictedSize(ROOTS),
        sampling.Multipurpose(), sampling.Multipurpose(), FOLDER, says_nothing=True),
    eb.design.FrozenWeights: Row(of_another_prediction,
        lambda labels, units: eb.design.FrozenWeights(eb.design.ByPredictedSize(ROOTS), units),
        "another design", SAMPLE, "another design; --drawn-from makes it", says_nothing=True),
    eb.design.Responding: Row(None,
        lambda labels, units: eb.design.Responding(eb.UniformRecords(), [True] * len(units) + [False]),
        "another design, by RecordDraws.design(labels, unresolved=...)", SAMPLE,
        "another design; a folder of draws has its unresolved ones"),
    eb.design.KnownSelection: Row(of_known_chances,
        lambda labels, units: eb.design.KnownSelection(dict.fromkeys(units.ids, 0.002)),
        sampling.GivenProbabilities(), SAMPLE, "chances of units; use known-weights", says_nothing=True),
    eb.design.KnownInclusion: Row(of_known_inclusion,
        lambda labels, units: eb.design.KnownInclusion(dict.fromkeys(units.ids, 0.2)),
        sampling.PredictedClusters(sampling.Records()), SAMPLE, FOLDER, says_nothing=True),
    eb.design.Pooled: Row(of_pooled, lambda labels, units: eb.design.Pooled(
            [eb.UniformRecords(units.ids[:40]), eb.design.ByPredictedSize(ROOTS, units.ids[40:])]),
        sampling.Strata(), NO_PLAN, FOLDER, says_nothing=True),
}  # fmt: skip
ALL_SAMPLES = {cls: row.samples for cls, row in DESIGNS.items() if row.samples is not None}
MORE_SAMPLES = [
    *ALL_SAMPLES.items(),
    (eb.design.KnownInclusion, lambda: of_poisson_records(2.5)),
    (eb.design.KnownInclusion, lambda: of_poisson_records(8)),
    (eb.design.KnownInclusion, of_certain_units),
    (eb.design.KnownInclusion, of_independent_units),
    (eb.design.Pooled, of_pooled_strata),
    (eb.UniformRecords, lambda: of_records(repeats=True)),
]
"""Every sample of the five entities by design, with further cases of some."""


@pytest.mark.parametrize("cls, samples", MORE_SAMPLES, ids=lambda value: getattr(value, "__name__", ""))
def test_unbiased_over_all_samples(cls, samples):
    chance, drawn, designs = zip(*samples(), strict=True)
    found = np.array([totals(set(s), design) for s, design in zip(drawn, designs, strict=True)])
    assert {type(design) for design in designs} == {cls}
    assert chance @ found[:, 0] == pytest.approx(5, rel=1e-12)
    empty = 1 - sum(chance)  # an empty sample, which is refused, has total 0 and variance 0
    variance = chance @ (found[:, 0] - 5) ** 2 + empty * 5**2
    assert chance @ found[:, 1] == pytest.approx(variance, rel=1e-12)


@pytest.mark.parametrize("cls", ALL_SAMPLES)
def test_weights_follow_labels_as_a_design_says(cls):
    """One entity gets a record more: whether its weight changes, relative to those of the others."""
    _, drawn, design = max(ALL_SAMPLES[cls](), key=lambda sample: len(set(sample[1])))
    more = labels(drawn)
    grown = next(r for r, e in more.items() if SIZE[e] > 1)
    fewer = {r: e for r, e in more.items() if r != grown}
    before, after = (design.expand(eb.measure(PRED, some)).weight for some in (fewer, more))
    changes = not np.allclose(before / before.sum(), after / after.sum())
    said = f"say depends_on_labels in {cls.__name__}, or says_nothing in its row of DESIGNS"
    assert hasattr(design, "depends_on_labels") != DESIGNS[cls].says_nothing, said
    if not DESIGNS[cls].says_nothing:
        assert design.depends_on_labels == changes


def test_single_unit_strata():
    strata = {"x": 0, "z": 0, "u": 1}

    def design(rule):
        return eb.Stratified(strata, {0: 3, 1: 2}, rule)

    raises(eb.DataError, "1 strata hold a single draw", totals, "xzu", design(eb.design.SingleUnit.ERROR))
    alone = totals("xz", eb.Stratified({"x": 0, "z": 0}, {0: 3}))[1]
    assert totals("xzu", design(eb.design.SingleUnit.CERTAINTY))[1] == pytest.approx(alone) and alone > 0


def test_strata_that_do_not_fit_the_labels():
    cases = [
        ({"x": 0, "z": 0}, {0: 3, 1: 500}, "1 strata of 500 units hold no labelled unit, such as 1"),
        (pd.Series([0, 0, 0], ["x", "z", "z"]), {0: 3}, "strata: 1 units are listed twice, such as 'z'"),
        ({"x": 0, "z": None}, {0: 3}, "1 units have no stratum, such as 'z'"),
        ({"x": 0, "z": 5}, {0: 3}, "1 strata have no population size: 5"),
        ({"x": 0, "z": 0}, {0: 1}, "more units drawn than there are in strata 0"),
    ]
    for strata, population, message in cases:
        raises(eb.DataError, message, totals, "xz", eb.Stratified(strata, population))


def test_a_stratum_without_units_needs_no_label():
    stratum = {"x": 0, "z": 0}
    found = eb.Stratified(stratum, {0: 3, 1: 0}).expand(eb.measure(PRED, labels("xz")))
    assert found.weight.tolist() == [1.5, 1.5]


def test_a_census_of_one_unit_has_no_variance():
    everything = {r: "x" for r in TRUE}
    found = eb.estimate(PRED, everything, eb.UniformClusters(population=1), [m.pairwise_recall])
    assert found.sd[0] == 0


def test_weights_known_up_to_a_factor_give_no_totals():
    units = eb.measure(PRED, labels("xy"))
    for design in (
        eb.WeightedRecords(["x", "y"], [0.1, 0.1]),
        eb.KnownWeights({"x": 1, "y": 1}),
        eb.UniformClusters(),
        eb.design.BySize(np.sqrt),
    ):
        assert not design.expand(units).absolute
    for design in (
        eb.WeightedRecords(["x", "y"], [0.1, 0.1], absolute=True),
        eb.KnownWeights({"x": 1, "y": 1}, absolute=True),
        eb.UniformClusters(population=6),
        eb.UniformRecords(),
        eb.DistinctEntities(5),
    ):
        assert design.expand(units).absolute
    unknown = eb.measure(PRED, labels("xy") | {99: "y"}, missing=eb.Missing.SINGLETON)
    assert not eb.UniformRecords().expand(unknown).absolute


def test_single_block_gives_estimate_and_no_variance():
    blocks = {r: "block" for r in labels("xy")}
    found = eb.estimate(PRED, labels("xy"), eb.UniformClusters(), [P], blocks=blocks)
    assert found.mean[0] == 2 / 4 and np.isnan(found.sd[0])
    assert np.isnan(found.interval()[0]).all()
    sample = eb.Sample(eb.measure(PRED, labels("x")), eb.UniformClusters())
    raises(eb.DataError, "single draw has no jackknife", eb.engine.jackknife, sample, [P])


def test_missing_records():
    some = {**labels("xy"), 100: "x", 101: "x"}
    raises(eb.DataError, "2 of 7 labelled records are not in the prediction", eb.measure, PRED, some)
    recall = {}
    for policy in (eb.Missing.SINGLETON, eb.Missing.TOGETHER, eb.Missing.OMIT):
        units = eb.measure(PRED, some, missing=policy)
        assert units.unmatched == 2
        found = eb.engine.taylor(eb.Sample(units, eb.UniformClusters()), [m.pairwise_recall])
        recall[policy] = found.apply([m.pairwise_recall], order=1).mean[0]
    assert recall == {eb.Missing.SINGLETON: 2 / 11, eb.Missing.TOGETHER: 3 / 11, eb.Missing.OMIT: 2 / 4}
    for policy in (eb.Missing.SINGLETON, eb.Missing.TOGETHER):
        assert eb.measure(PRED, labels("xy"), missing=policy).population == len(PRED)  # if none is missing
        with pytest.raises(eb.NotIdentified, match="total of 'records' is not known"):
            eb.estimate(PRED, some, eb.UniformClusters(), [m.rand], missing=policy)


@pytest.mark.parametrize("call, message", [
    (lambda: eb.measure(pd.Series(["a", "b"], [1, 1]), {1: "x"}), "1 duplicates, such as 1"),
    (lambda: eb.measure({1: "a", 2: None}, {1: "x"}), "cluster ids of the prediction: 1 of 2 are missing"),
    (lambda: eb.measure({1.5: "a"}, {1: "x"}), "must be all strings or all integers, not floating"),
    (lambda: eb.measure(PRED, {}), "empty sample"),
    (lambda: eb.measure(PRED, {"1": "x"}), "none could match; make text of both"),
    (lambda: eb.measure(PRED, labels("x"), blocks={1: 1, 2: 2, 3: 2}), "1 true entities cross blocks"),
    (lambda: eb.measure(PRED, labels("x"), blocks={1: 1}), "2 labelled records have no block"),
    (lambda: totals("xy", eb.KnownWeights({"x": 1.0})), "weights are missing for 1 of 2 units, such as 'y'"),
    (lambda: totals("xy", eb.KnownWeights({"x": 1, "y": 0})), "positive and finite; 1 are not"),
    (lambda: totals("xy", eb.KnownWeights({"x": 1, "y": -1})), "positive and finite; 1 are not"),
    (lambda: totals("xy", eb.KnownWeights({"x": 1, "y": np.inf})), "positive and finite; 1 are not"),
    (lambda: totals("xy", eb.UniformClusters(5, ["x", "x", "y"])), "1 units are listed twice"),
    (lambda: totals("xy", eb.UniformClusters(draws=["x"])), "1 labelled units were never drawn"),
    (lambda: totals("x", eb.UniformClusters(draws=["x", "q"])), "1 draws name units without labels"),
    (lambda: totals("x", eb.UniformClusters(draws=[1])), "which are labelled records; list the entity"),
    (lambda: totals("xyz", eb.UniformClusters(population=2)), "3 draws without replacement"),
    (lambda: totals("xyz", eb.DistinctEntities(2)), "cannot have found 3 distinct"),
    (lambda: eb.estimate(PRED, labels("z"), eb.UniformClusters(), [P]),
        "its denominator is 0 in this sample"),
    (lambda: eb.measure_predicted(PRED, labels("x"), ["b"]), "2 records of sampled clusters have no label"),
    (lambda: eb.measure_predicted(PRED, TRUE, ["a", "q"]), "1 sampled clusters are not predicted: 'q'"),
    (lambda: eb.measure_predicted(PRED, TRUE, ["a", "b", "a"]), "1 sampled clusters are listed twice"),
    (lambda: totals("xy", eb.WeightedRecords(["x", "y"], [0.1], absolute=True)), "1 probabilities for 2"),
    *(
        (lambda p=p: totals("xy", eb.WeightedRecords(["x", "y"], [0.1, p], True)), "1 do not")
        for p in (0, np.nan, 1.5)
    ),
])  # fmt: skip
def test_bad_input(call, message):
    raises(eb.DataError, message, call)


def test_take_is_the_same_as_measuring_anew():
    for blocks in (None, {r: e in "xu" for r, e in TRUE.items()}):
        numbers = None if blocks is None else {r: int(b) for r, b in blocks.items()}
        everything = eb.measure(PRED, TRUE, blocks=numbers)
        for counted_before in (False, True):
            if counted_before:
                everything.table()
            chosen = np.array([2, 0]) if blocks is None else np.array([1])
            taken = everything.take(chosen)
            pd.testing.assert_frame_equal(taken.table(), everything.table().iloc[chosen])
    alone = eb.measure(PRED, labels("zx"))
    again = eb.measure(PRED, TRUE).take(np.array([2, 0]))
    pd.testing.assert_frame_equal(again.table().sort_index(), alone.table().sort_index())


def test_units_alone_hold_what_the_labels_hold():
    taken = eb.measure(PRED, TRUE).take(np.array([4, 3]))  # the clusters of the others hold no record now
    alone = taken.isolated()
    assert alone.known.size.min() == 1 and alone.known.size @ alone.known.count == taken.size.sum()
    assert alone.known.total(eb.columns.PREDICTED_CLUSTERS) == len(np.unique(taken.cluster))
    units = eb.measure(PRED, labels("x") | {99: "x"}, missing=eb.Missing.SINGLETON)
    assert (units.unmatched, units.isolated().unmatched) == (1, 0)


def test_records_that_the_prediction_lacks_are_together_within_an_entity_only():
    some = {1: "x", 91: "x", 92: "x", 4: "y", 93: "y"}
    units = eb.measure(PRED, some, missing=eb.Missing.TOGETHER)
    assert sorted(zip(units.unit.tolist(), units.n.tolist(), units.m.tolist(), strict=True)) == [
        (0, 1, 2), (0, 2, 2), (1, 1, 1), (1, 1, 3)
    ]  # fmt: skip
    assert len(set(units.cluster)) == 4


def test_columns_of_one_name_must_be_one():
    costs = [m.columns.PieceSum("cost", lambda n, N, m, cost=cost: cost(n)) for cost in (np.sqrt, np.log1p)]
    twice = [m.Metric("cost", (cost,), lambda y: y, m.PER_RECORD, m.UNIT, "Σ cost") for cost in costs]
    with pytest.raises(eb.DataError, match="two different columns are called 'cost'"):
        eb.estimate(PRED, TRUE, eb.UniformClusters(), twice)


def test_naive_is_the_truth_of_the_restricted_prediction():
    rng = np.random.default_rng(0)
    for _ in range(10):
        true, pred = rng.integers(0, 9, 50), rng.integers(0, 9, 50)
        kept = np.isin(true, [0, 1, 2, 3])
        expected = oracle.truth(list(true[kept]), list(pred[kept]))
        found = eb.engine.naive(eb.measure(pd.Series(pred), pd.Series(true)[kept]), eb.metrics.ALL)
        np.testing.assert_allclose(found, [expected[n] for n in found.index], rtol=1e-12, atol=1e-12)
    assert eb.engine.P_naive(eb.measure(PRED, labels("xu"))) == 1  # no false link to other records is seen
    with pytest.raises(eb.NotIdentified, match="not of predicted clusters"):
        eb.engine.naive(eb.measure_predicted(PRED, TRUE, ["a", "b"]))


def test_a_sample_without_error_is_no_proof_of_perfection():
    truth = {r: r // 2 for r in range(40)}
    half = {r: e for r, e in truth.items() if e < 10}
    for population, exact in ((None, False), (20, False), (10, True)):
        if exact:
            found = eb.estimate(half, half, eb.UniformClusters(population), [P])
        else:
            found = eb.estimate(truth, half, eb.UniformClusters(population), [P])
        low, high = found.interval()[0]
        assert found.mean[0] == 1 and found.sd[0] == 0
        assert (low == high == 1) if exact else (0.3 < low < 0.999 and high == 1)


@pytest.mark.parametrize("probability, bad", [
    (lambda s: s - 2, 1),
    (lambda s: np.where(s > 2, np.nan, s), 1),
    (lambda s: s / 0.0, 2),
    (lambda s: -1.0, 2),
])  # fmt: skip
def test_bad_chances_by_size(probability, bad):
    with (
        np.errstate(divide="ignore"),
        pytest.raises(eb.DataError, match=f"positive and finite for every size; {bad} are not"),
    ):
        totals("xy", BySize(probability))


@pytest.mark.parametrize("absolute", [True, False])
def test_weighted_draws_of_an_entity_that_is_gone_count_nothing(absolute):
    """The others keep their weights, as of four draws."""
    labels, drawn = {1: "x", 2: "x", 3: "y", 4: "z"}, ["x", "z", "y", "x"]
    design = eb.WeightedRecords(drawn, [0.2, 0.1, 0.4, 0.3], absolute)
    units = eb.measure({1: "a", 2: "a", 3: "b"}, labels, missing="omit")
    found = design.expand(units)
    assert found.order.tolist() == [0, 1, 0]
    np.testing.assert_allclose(found.weight, [1 / 1.6, 0, 1 / 1.6, 1 / 2.4], rtol=1e-12)
    assert found.covariance(found.weight[:, None])[0, 0] == pytest.approx(4 * np.var(found.weight, ddof=1))


def test_designs_under_which_size_alone_matters():
    units, size = eb.measure(PRED, TRUE), np.array([1.0, 2.0, 3.0])
    of_size = {n: [e for e in "xyzuv" if list(TRUE.values()).count(e) == n] for n in (1, 2, 3)}
    found = {e: 0 for e in "xyzuv"}
    for drawn in product(TRUE.values(), repeat=3):
        for e in set(drawn):
            found[e] += 1 / 9**3
    inclusion = [found[of_size[n][0]] for n in (1, 2, 3)]
    cases = [
        (eb.UniformRecords(), size, False),
        (eb.UniformClusters(), [1, 1, 1], False),
        (BySize(np.sqrt), np.sqrt(size), False),
        (eb.UniformClusters(population=5), [1, 1, 1], True),
        (eb.DistinctEntities(3), inclusion, True),
    ]
    for design, chance, without_repeats in cases:
        assert isinstance(design, SelectedBySize)
        np.testing.assert_allclose(design.selection(size, units), chance, rtol=1e-12)
        assert design.without_repeats == without_repeats
        assert design.fixed_size == (not isinstance(design, eb.DistinctEntities))
    others = (eb.KnownWeights({}), eb.Stratified({}, {}), eb.WeightedRecords([], []))
    assert not any(isinstance(design, SelectedBySize) for design in others)


def once(p, n):
    """Units that n draws with chances p have found."""
    return count_once(np.arange(len(p)), [Round(n, p)])


def exact_horvitz_thompson(size, records, draws, z):
    """ΣΣ (π_cd - π_c π_d)/π_cd z_c z_d in rational numbers."""
    p = [Fraction(int(n), records) for n in size]
    total = Fraction(0)
    for c, d in product(range(len(p)), repeat=2):
        a, b = (1 - p[c]) ** draws, (1 - p[d]) ** draws
        neither = (1 - p[c] - p[d]) ** draws
        factor = a if c == d else (neither - a * b) / (1 - a - b + neither)
        total += factor * Fraction(float(z[c])) * Fraction(float(z[d]))
    return float(total)


@pytest.mark.parametrize("records", [60, 10**4, 10**9])
def test_variance_of_distinct_entities_does_not_cancel_in_large_populations(records):
    rng = np.random.default_rng(1)
    size = rng.integers(1, 6, 12)
    variance = once(size / records, 20)
    z = rng.random(12) * variance.weight
    found = variance.covariance(z[:, None])[0, 0]
    assert found == pytest.approx(exact_horvitz_thompson(size, records, 20, z), rel=1e-13)


def test_two_entities_that_hold_all_records():
    found = once(np.array([0.25, 0.75]), 3).covariance(np.ones((2, 1)))[0, 0]
    assert found == pytest.approx(exact_horvitz_thompson([1, 3], 4, 3, [1, 1]), rel=1e-14)


def test_a_single_draw_of_a_distinct_entity():
    for p in (0.1, 0.5):
        np.testing.assert_allclose(once(np.array([p]), 1).covariance(np.ones((1, 1))), 1 - p)


def test_memory_of_distinct_entities_goes_with_sizes():
    rng = np.random.default_rng(1)
    tracemalloc.start()
    try:
        once(rng.integers(1, 60, 6000) / 1e6, 9000).covariance(rng.random((6000, 3)))
        assert tracemalloc.get_traced_memory()[1] < 10 * 2**20  # 6,000² numbers are 275 MiB
    finally:
        tracemalloc.stop()


# Records of known probabilities: the weight 1/(n p_c) from all records of an entity

CHANCES = {record: chance / 45 for record, chance in zip(TRUE, [1, 9, 2, 8, 3, 7, 4, 6, 5], strict=True)}


def test_summed_probabilities_are_known_weights():
    drawn = [2, 3, 4, 8, 2]
    units = eb.measure(PRED, labels("xyv"))
    total = {"x": 12 / 45, "y": 11 / 45, "v": 11 / 45}
    draws = [TRUE[r] for r in drawn]
    weights = eb.KnownWeights({e: 1 / (5 * p) for e, p in total.items()}, draws, absolute=True)
    for prob in (CHANCES, pd.Series(CHANCES)[::-1]):
        design = eb.WeightedRecords.of(labels("xyv"), drawn, prob, absolute=True)
        design = replace(design, repeats=True)
        a, b = (eb.engine.taylor(eb.Sample(units, d), [P, m.P_rec]) for d in (design, weights))
        np.testing.assert_allclose(a.mean, b.mean, rtol=1e-12)
        np.testing.assert_allclose(a.cov, b.cov, rtol=1e-12)


def test_summed_probabilities_of_blocks():
    drawn, block = [1, 6], {r: "s" if e in "xu" else "t" for r, e in TRUE.items()}
    design = eb.WeightedRecords.of(block, drawn, CHANCES, absolute=True)
    units = eb.measure(PRED, TRUE, blocks=block)
    s, t = (sum(CHANCES[r] for r in TRUE if block[r] == b) for b in "st")
    weight = eb.Sample(units, design).expansion.weight
    np.testing.assert_allclose(weight, [1 / (1 - (1 - s) ** 2), 1 / (1 - (1 - t) ** 2)], rtol=1e-12)


def test_records_that_cannot_be_drawn_add_nothing():
    design = eb.WeightedRecords.of(labels("xy"), [2, 4], CHANCES | {1: 0.0, 3: 0, 5: 0})
    np.testing.assert_allclose(design.probability, [9 / 45, 8 / 45])


@pytest.mark.parametrize("drawn, chances, message", [
    ([1, 6], CHANCES, "1 drawn records have no label, such as 6"),
    ([1, 4], {1: 0.1}, "probabilities are missing for 4 of 5 labelled records, such as 2, 3, 4"),
    ([1, 4], CHANCES | {2: -0.1}, "must be 0 or more and finite; 1 are not, such as that of 2"),
    ([1, 4], CHANCES | {2: np.nan}, "must be 0 or more and finite; 1 are not, such as that of 2"),
    ([1, 4], [0.1, 0.2], "probabilities must be a Series or a mapping by id, not list"),
    ([1, 4], dict.fromkeys(TRUE, 0.4), r"chances must lie in \[0, 1\]; 1 do not"),
    ([1, 4], dict.fromkeys(TRUE, 0.0), "2 drawn units have chance 0 under the design"),
])  # fmt: skip
def test_probabilities_of_records_that_do_not_fit(drawn, chances, message):
    with pytest.raises(eb.DataError, match=message):
        totals("xy", eb.WeightedRecords.of(labels("xy"), drawn, chances, absolute=True))


def link_ends(**more):
    return eb.design.ByPredictedSize(eb.columns.PREDICTED_LINKS, ["y", "x", "y"], **more)


HOLDING = [
    lambda _: link_ends(),
    lambda _: link_ends(repeats=True),
    lambda _: eb.design.Pooled([link_ends(), link_ends()]),
    lambda _: eb.design.Responding(link_ends(), [True, False, True, True]),
    lambda _: eb.design.Responding(link_ends(repeats=True), [True, False, True, True], odds=3),
    lambda units: eb.design.FrozenWeights(link_ends(), units),
    lambda _: eb.design.KnownInclusion({"x": 0.5, "y": 0.5}, never=[1], draws=["y", "x"]),
]


@pytest.mark.parametrize("make", HOLDING)
def test_what_is_never_drawn_is_remembered_by_whatever_holds_the_draws(make):
    """Also where ids of the units, and not only their order, are those of another reading."""
    prediction, truth = {1: "a", 2: "a", 3: "b", 4: "c", 5: "c"}, {1: "x", 2: "x", 4: "y", 5: "y"}
    units = eb.measure(prediction, dict(reversed(truth.items())))
    sample = eb.Sample(eb.measure(prediction, truth), make(units))
    for one in (sample, sample.count_each()):
        with pytest.raises(eb.NotIdentified, match=r"'records' is not identified: .* predicted singletons"):
            one.contributions([eb.columns.RECORDS])
        assert (one.contributions([eb.columns.PREDICTED_LINKS]) > 0).all()
        assert one.units.ids[one.expansion.order].tolist()[:2] == ["y", "x"]


@pytest.mark.parametrize("checked", [True, False])
def test_draws_from_an_older_prediction_never_reach_what_was_a_singleton_there(checked):
    """By frozen weights, whether or not the design knows the sizes of the clusters that were drawn from."""
    truth = dict.fromkeys(range(4), "x")
    old, new = (
        eb.measure({0: 0, 1: 0, 2: 1, 3: last}, truth) for last in (2, 1)
    )  # only `old` has singletons
    for first, second in ((old, new), (new, old)):
        links = eb.design.ByPredictedSize(eb.columns.PREDICTED_LINKS, ["x"], first.known if checked else None)
        assert draws_records(eb.design.FrozenWeights(links, first), second) is (first is new)


class TestUnseenShare:
    """The share of what a metric averages over that the sample lacks, by the chance of each unit to be in it."""

    def test_the_unseen_part_is_unbiased(self):
        """Over all Poisson samples of five units, Σ (1-π)/π has the mean of what samples miss."""
        chance = np.array([0.1, 0.3, 0.5, 0.9, 1.0])
        missed = 0.0
        for here in product([False, True], repeat=5):
            taken = np.array(here)
            weight = np.where(taken, chance, 1 - chance).prod()
            if weight > 0 and taken.any():
                missed += (
                    weight
                    * (count_independent(np.flatnonzero(taken), chance[taken]).unseen / chance[taken]).sum()
                )
        assert missed == pytest.approx((1 - chance).sum())

    def test_a_set_of_units_is_missed_with_the_chance_of_its_draws(self):
        """Units of 1 and 2 of 10 records: e^-Σrπ is (1-.1)³(1-.2)³ for three draws, and nearly what enumeration has."""
        variance = once(np.array([0.1, 0.2]), 3)
        assert np.exp(-(variance.repeated * (1 - variance.unseen)).sum()) == pytest.approx(0.9**3 * 0.8**3)


def test_records_that_no_link_end_reached_may_be_in_any_cluster_of_another_prediction():
    """The labelled records are single in the new prediction, and other records, never drawn, have its links."""
    old = {1: "a", 2: "a", 3: "b", 4: "c"}
    new = {1: "a", 2: "b", 3: "c", 4: "c"}
    labels = {1: "x", 2: "y"}
    drawn = eb.design.ByPredictedSize(eb.columns.PREDICTED_LINKS, ["x", "y"])
    design = eb.design.FrozenWeights(drawn, eb.measure(old, labels))
    units, looks = eb.measure(new, labels), eb.Looks(1, of=3)
    sample = eb.Sample(units, design, design.expand(units), looks)
    for one in (sample, sample.count_each()):
        with pytest.raises(eb.NotIdentified, match=r"'predicted_links' is not identified.*1, 2 records"):
            one.contributions([eb.columns.PREDICTED_LINKS])
        assert one.looks is looks
