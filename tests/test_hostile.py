"""What people may pass by mistake: the right answer, or an error that says what, where and what to do."""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import erbayes as eb
from erbayes import labelling, planning
from erbayes import metrics as m
from erbayes.columns import TRUE_LINKS
from erbayes.engine import FixedReplicates, RaoWu, bootstrap
from erbayes.intervals import EqualTailed

PREDICTION = {"r1": "a", "r2": "a", "r3": "b", "r4": "b", "r5": "b", "r6": "c", "r7": "d", "r8": "d"}
LABELS = {"r1": "x", "r2": "x", "r3": "x", "r4": "y", "r5": "y", "r6": "z", "r7": "z"}
P, L = pd.Series(PREDICTION), pd.Series(LABELS)
PR = [m.pairwise_precision, m.pairwise_recall]
WEIGHTS = pd.Series({"x": 1.0, "y": 2.0, "z": 3.0})
STRATA = {"x": 0, "y": 0, "z": 1}
HALVES = {"\ud800" + record: "\udfff" + entity for record, entity in LABELS.items()}
"""Labels whose ids begin with half of a surrogate pair, which no UTF-8 text holds."""
SAMPLE = eb.Sample(eb.measure(P, L), eb.UniformClusters())
FOUND = eb.taylor(SAMPLE, PR).apply(PR)
EDGE = pd.DataFrame({"l": ["r1"], "r": ["r2"]})


def halved(values, half="\ud800"):
    return {half + key: value for key, value in values.items()}


def by(design, **more):
    return eb.estimate(P, L, design, PR, **more)


def plan(design=None, **more):
    return planning.forecast(SAMPLE, PR, {"r": eb.UniformRecords() if design is None else design}, **more)


REFUSED = {
    # metrics
    "F of beta -1": (lambda: m.pairwise_f(-1), "beta of pairwise_f must be 0 or more and finite, not -1"),
    "F of beta nan": (lambda: m.pairwise_f(np.nan), "beta of pairwise_f must be 0 or more and finite, not nan"),
    "cluster F of beta -1": (lambda: m.cluster_f(-1), "beta of cluster_f must be 0 or more"),
    "V of beta -1": (lambda: m.v_measure(-1), "beta of v_measure must be 0 or more"),
    "Hill number of order inf": (lambda: m.hill_number(np.inf), "order q of hill_number must be 0 or more and finite"),
    "Hill number of order -1": (lambda: m.hill_number(-1), "order q of hill_number must be 0 or more and finite"),
    # design
    "a class": (lambda: by(eb.UniformClusters), r"UniformClusters is a class: pass an object of it, UniformClusters\(\.\.\.\)"),
    "None": (lambda: by(None), r"a design is an object such as UniformRecords\(\), not None"),
    "a name": (lambda: by("uniform-records"), r"a design is an object such as UniformRecords\(\), not 'uniform-records'"),
    "labels for units": (lambda: eb.Sample(L, eb.UniformClusters()), "made of Units, as measure.. gives them, not of Series"),
    "missing as a name": (lambda: by(eb.UniformClusters(), missing="omit"), "missing must be one of Missing.ERROR, .*Missing.OMIT, not 'omit'"),
    # weights
    "weights in a list": (lambda: by(eb.KnownWeights([1, 2, 3])), "weights must be a Series or a mapping by id, not list"),
    "weights in an array": (lambda: by(eb.KnownWeights(np.ones(3))), "weights must be a Series or a mapping by id, not ndarray"),
    "weights in a frame": (lambda: by(eb.KnownWeights(WEIGHTS.to_frame())), "weights must be a Series or a mapping by id, not DataFrame"),
    "weights in words": (lambda: by(eb.KnownWeights(WEIGHTS.astype(object).replace(2.0, "heavy"))), "weights must be numbers: .*heavy"),
    "complex weights": (lambda: by(eb.KnownWeights(WEIGHTS.astype(complex))), "weights must be one real number each, not complex128"),
    "weights whose squares overflow": (lambda: by(eb.KnownWeights({"x": 1e300, "y": 1e-300, "z": 1})), "weights must lie between 1e-100 and 1e.100.* 2 are not, such as that of 'x', 'y'"),
    "repeats in a finite population": (lambda: by(eb.KnownWeights(WEIGHTS, [*"xxyz"], population=10)), "1 units are listed twice, but the design has no repeats"),
    # draws and populations
    "a generator of draws": (lambda: by(eb.UniformRecords(x for x in "xxyz")), "draws must be a list of unit ids, not <generator"),
    "draws in a string": (lambda: by(eb.UniformRecords("xxyz")), "draws must be a list of unit ids, not 'xxyz'"),
    "more records than there are": (lambda: by(eb.UniformRecords(population=1000)), "population = 1000, but the prediction holds 8 records: pass the prediction of all"),
    "fewer records than there are": (lambda: by(eb.UniformRecords(population=7)), "population = 7, but the prediction holds 8 records: restrict it"),
    "half a record": (lambda: by(eb.UniformRecords(population=8.5)), "population must be a whole number, 1 or more, not 8.5"),
    "half a unit": (lambda: by(eb.UniformClusters(3.5)), "population must be a whole number, 1 or more, not 3.5"),
    "nan units": (lambda: by(eb.UniformClusters(np.nan)), "population must be a whole number, 1 or more, not nan"),
    "a population in words": (lambda: by(eb.UniformClusters("100")), "population must be a whole number, 1 or more, not '100'"),
    "a true population": (lambda: by(eb.UniformClusters(True)), "population must be a whole number, 1 or more, not True"),
    "a negative population": (lambda: by(eb.UniformClusters(-5)), "population must be a whole number, 1 or more, not -5"),
    "half a weighted unit": (lambda: by(eb.KnownWeights(WEIGHTS, population=3.5)), "population must be a whole number"),
    "a correction of -1": (lambda: by(eb.UniformClusters(4, correction=lambda n, T: -1.0)), r"correction\(3, 4\) must lie in \[0, 1\], not -1"),
    "a correction of nan": (lambda: by(eb.UniformClusters(4, correction=lambda n, T: np.nan)), r"correction\(3, 4\) must lie in \[0, 1\], not nan"),
    "a correction of 2": (lambda: by(eb.UniformClusters(4, correction=lambda n, T: 2)), r"correction\(3, 4\) must lie in \[0, 1\], not 2"),
    "a correction in strata": (lambda: by(eb.Stratified(STRATA, {0: 3, 1: 1}, correction=lambda n, T: np.nan)), r"correction\(2, 3\) must lie in"),
    "more units than records": (lambda: by(eb.UniformClusters(100)), "population = 100 units, but the prediction holds 8 records, which leaves room for 4 at most"),
    "half a draw": (lambda: by(eb.DistinctEntities(3.5)), "draws must be a whole number, 0 or more, not 3.5"),
    "nan draws": (lambda: by(eb.DistinctEntities(np.nan)), "draws must be a whole number, 0 or more, not nan"),
    "distinct entities of fewer records": (lambda: by(eb.DistinctEntities(5, records=6)), "records = 6, but the prediction holds 8"),
    "distinct entities of half a record": (lambda: by(eb.DistinctEntities(5, records=8.5)), "records must be a whole number, 1 or more, not 8.5"),
    # chances
    "chances of another shape": (lambda: by(eb.BySize(lambda s: np.ones(7))), "probability returned 7 chances for 3 sizes"),
    "a chance in words": (lambda: by(eb.BySize("size")), "probability is a function of sizes, such as numpy.sqrt, not 'size'"),
    "chances of another index": (lambda: by(eb.WeightedRecords([*"xyz"], pd.Series([0.1, 0.2, 0.3], [*"zyx"]))), "the index of the probabilities is not that of units"),
    "chances of half of the index": (lambda: by(eb.WeightedRecords(pd.Series([*"xyz"]), pd.Series([0.1, 0.2, 0.3], [1, 2, 3]))), "the index of the probabilities is not that of units"),
    "nested chances": (lambda: by(eb.WeightedRecords([*"xyz"], [[0.1], [0.2], [0.3]])), r"probabilities must be one real number each, not float64 of shape \(3, 1\)"),
    "chances whose weights overflow": (lambda: by(eb.WeightedRecords([*"xyz"], [1e-300, 0.2, 0.3])), "1 do not: 1e-300"),
    # strata
    "a stratum of nan units": (lambda: by(eb.Stratified(STRATA, {0: np.nan, 1: 1})), "population of stratum 0 must be a whole number, 0 or more, not nan"),
    "a stratum of half a unit": (lambda: by(eb.Stratified(STRATA, {0: 5.5, 1: 1})), "population of stratum 0 must be a whole number, 0 or more, not 5.5"),
    "a stratum of negative size": (lambda: by(eb.Stratified(STRATA, {0: -5, 1: 1})), "population of stratum 0 must be a whole number, 0 or more, not -5"),
    "sizes of strata in a list": (lambda: by(eb.Stratified(STRATA, [5, 1])), r"population must map strata to numbers of units, not be \[5, 1\]"),
    "strata in a list": (lambda: by(eb.Stratified([0, 0, 1], {0: 3, 1: 1})), "strata must be a Series or a mapping by id, not list"),
    "a rule as a name": (lambda: by(eb.Stratified(STRATA, {0: 5, 1: 5}, "adjust")), "single_unit must be one of SingleUnit.ERROR, .* not 'adjust'"),
    # calibration
    "no total": (lambda: by(eb.Calibrated(eb.UniformClusters(), totals=lambda *_: ())), "totals must return one ClusterSum or more, .* not none"),
    "a total that is not known": (lambda: by(eb.Calibrated(eb.UniformClusters(), totals=lambda *_: (TRUE_LINKS,), fewest=0)), "totals must return one ClusterSum or more, .* not 'true_links'"),
    "calibration of a class": (lambda: by(eb.Calibrated(eb.UniformClusters)), "UniformClusters is a class"),
    # blocks and predicted clusters
    "blocks of other ids": (lambda: by(eb.UniformClusters(), blocks=dict(enumerate("aaaaaaa"))), "record ids of the blocks are of type integer, those of the labels of type string"),
    "a block with a record unlabelled": (lambda: eb.estimate(P, L.drop("r3"), eb.UniformClusters(), PR, blocks=pd.Series("b", L.index)), "1 records of sampled blocks have no label, such as 'r3': label every record"),
    "one predicted cluster": (lambda: eb.measure_predicted(P, L, "a"), "sampled clusters must be several ids, not 'a' alone"),
    # inputs
    "a Series of polars": (lambda: eb.measure(pl.Series("cluster", list("aab")), L), "expected a table of two columns, not one column: Series"),
    "halves of surrogate pairs on one side": (lambda: eb.measure(PREDICTION, HALVES), r"7 of 7 labelled records are not in the prediction, such as '\\ud800r1'"),
    # comparisons
    "records by number and by name": (lambda: eb.compare({"a": P, "b": dict(enumerate(PREDICTION.values()))}, L, eb.UniformClusters(), PR), "record ids of the predictions differ in type: those of 'a' of type string, those of 'b' of type integer"),
    "predictions in a list": (lambda: eb.compare([P, P], L, eb.UniformClusters(), PR), "predictions must map names to memberships, .* not be a list"),
    "coverage as a name": (lambda: eb.compare({"a": P, "b": P}, L, eb.UniformClusters(), PR, coverage="common"), "coverage must be one of Coverage.ERROR, Coverage.COMMON, not 'common'"),
    # bootstrap
    "half a replicate": (lambda: bootstrap(SAMPLE, PR, replicates=2.5), "replicates must be a whole number, 1 or more, not 2.5"),
    "a class of schemes": (lambda: bootstrap(SAMPLE, PR, RaoWu), r"RaoWu is a class: pass an object of it, RaoWu\(\.\.\.\)"),
    "multipliers of nan": (lambda: bootstrap(SAMPLE, PR, FixedReplicates(np.full((10, 3), np.nan)), replicates=10), "multipliers must be finite; 30 of 30 are not"),
    "a class of intervals": (lambda: bootstrap(SAMPLE, PR, replicates=5).interval(0.9, EqualTailed), r"EqualTailed is a class"),
    # intervals and combinations
    "a class of kinds": (lambda: FOUND.interval(0.9, eb.Symmetric), r"Symmetric is a class"),
    "a kind's name": (lambda: FOUND.table(0.9, "wald"), "a kind of interval is an object such as WALD or EqualTailed.., not 'wald'"),
    "a scale for a kind": (lambda: FOUND.interval(0.9, eb.logit), "a kind of interval is an object .*, not <logit scale>"),
    "a scale's name": (lambda: eb.Symmetric("logit"), "a scale is one of identity, logit and log, not 'logit'"),
    "a kind for a level": (lambda: FOUND.interval(eb.WALD), "level must lie strictly between 0 and 1, not Symmetric"),
    "weights too few": (lambda: FOUND.contrast([[1.0]], ["P"]), r"one row per name, 1, and one column per component, 2, not shape \(1, 1\)"),
    "weights without a name": (lambda: FOUND.contrast(np.eye(2), ["P"]), r"one row per name, 1, .* not shape \(2, 2\)"),
    "weights of draws": (lambda: bootstrap(SAMPLE, PR, replicates=5).contrast([1.0], ["P"]), "one column per component, 2"),
    "weights of 0": (lambda: FOUND.contrast([[0, 0]], ["nothing"]), "weights of a combination are all 0"),
    # ids
    "a column for a table": (lambda: eb.Clustering.of(pa.chunked_array([[1, 2]])), "expected a table of two columns, not one column: ChunkedArray"),
    "a table for ids": (lambda: eb.Clustering.from_pairs(EDGE, records=EDGE), "all records of the pairs must be a list or a column of ids, not DataFrame"),
    "a clustering for ids": (lambda: eb.Clustering.from_pairs(EDGE, records=eb.Clustering.of(P)), "must be a list or a column of ids, not Clustering"),
    # labelling
    "a count of nan": (lambda: labelling.Recaptured(np.nan, 2, 3), "counts must be 0 or more and finite"),
    "a prior of nan": (lambda: labelling.Recaptured(1, 2, 3, prior=(1, np.nan, 1)), "prior masses must be above 0 and finite"),
    "answers of other columns": (lambda: labelling.Pair.of(L.to_frame("e"), L.to_frame("e"), P), r"answers need columns mention and record, .*\['mention', 'record'\] are lacking"),
    # planning
    "a width in words": (lambda: plan().needed("a"), "half widths must be numbers, not 'a'"),
    "a forecast of half a draw": (lambda: plan().half_widths([2.5]), "the number of draws must be a whole number, 0 or more, not 2.5"),
    "a forecast of nan draws": (lambda: plan().half_widths([np.nan]), "the number of draws must be a whole number"),
    "a forecast from units": (lambda: planning.forecast(SAMPLE.units, PR, {"r": eb.UniformRecords()}), "a forecast starts from a Sample or a Population, not from Units"),
    "planned strata": (lambda: plan(eb.Stratified({}, {})), "r: Stratified cannot be planned; UniformRecords, UniformClusters and BySize can"),
    "planned weights": (lambda: plan(eb.KnownWeights(WEIGHTS)), "KnownWeights cannot be planned"),
    "planned chances": (lambda: plan(eb.WeightedRecords([*"xyz"], [0.1, 0.2, 0.3])), "WeightedRecords cannot be planned"),
    "planned calibration": (lambda: plan(eb.Calibrated(eb.UniformRecords())), "Calibrated cannot be planned"),
    "planned distinct entities": (lambda: plan(eb.DistinctEntities(50)), "DistinctEntities cannot be planned"),
    "a planned class": (lambda: plan(eb.UniformRecords), "UniformRecords is a class"),
    "a planned half record": (lambda: plan(eb.UniformRecords(population=8.5)).half_widths([3]), "population must be a whole number"),
}  # fmt: skip


class Own:
    """A design by size."""

    def __init__(self, without_repeats, fixed_size):
        self.without_repeats, self.fixed_size = without_repeats, fixed_size

    def expand(self, units):
        return eb.UniformRecords().expand(units)

    def selection(self, size, units):
        return size


def test_own_designs_by_size_are_planned_where_the_formula_is_theirs():
    found, wanted = plan(Own(False, True)).needed(0.2), plan(eb.UniformRecords()).needed(0.2)
    pd.testing.assert_frame_equal(found, wanted)
    for other in (Own(True, True), Own(False, False)):
        with pytest.raises(eb.DataError, match="r: Own cannot be planned"):
            plan(other)


@pytest.mark.parametrize("correction", [eb.sampling_fraction, eb.paper_theta])
def test_a_census_needs_no_correction(correction):
    for labels, population in ((L, 3), (L[L == "x"], 1)):
        found = eb.estimate(P, labels, eb.UniformClusters(population, correction=correction), PR)
        assert found.sd.tolist() == [0, 0]


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what):
    call, message = REFUSED[what]
    with pytest.raises(eb.DataError, match=message):
        call()


dictionary = pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))
AS_IF = {
    "encoded clusters": (lambda: eb.estimate(P.astype(dictionary), L, eb.UniformClusters(), PR), by(eb.UniformClusters())),
    "encoded records": (lambda: eb.estimate(P.set_axis(P.index.astype(dictionary)), L, eb.UniformClusters(), PR), by(eb.UniformClusters())),
    "a whole float": (lambda: by(eb.UniformClusters(4.0)), by(eb.UniformClusters(4))),
    "a NumPy integer": (lambda: by(eb.UniformClusters(np.int32(4))), by(eb.UniformClusters(4))),
    "halves of surrogate pairs": (lambda: eb.estimate(halved(PREDICTION), HALVES, eb.UniformClusters(), PR), by(eb.UniformClusters())),
    "halves in draws and weights": (
        lambda: eb.estimate(halved(PREDICTION), HALVES, eb.KnownWeights(halved(WEIGHTS, "\udfff"), halved(WEIGHTS, "\udfff").keys()), PR),
        by(eb.KnownWeights(WEIGHTS)),
    ),
    "halves in strata": (
        lambda: eb.estimate(halved(PREDICTION), HALVES, eb.Stratified(halved(STRATA, "\udfff"), {0: 3, 1: 1}), PR),
        by(eb.Stratified(STRATA, {0: 3, 1: 1})),
    ),
    "strata of a Series": (lambda: by(eb.Stratified(STRATA, pd.Series({0: 3, 1: 1}))), by(eb.Stratified(STRATA, {0: 3, 1: 1}))),
    "weights in another order": (lambda: by(eb.KnownWeights(WEIGHTS[::-1])), by(eb.KnownWeights(WEIGHTS))),
    "weights as text": (lambda: by(eb.KnownWeights(WEIGHTS.astype(str))), by(eb.KnownWeights(WEIGHTS))),
    "chances in another order": (
        lambda: by(eb.WeightedRecords(pd.Series([*"xyz"]), pd.Series([0.3, 0.2, 0.1], [2, 1, 0]))),
        by(eb.WeightedRecords([*"xyz"], [0.1, 0.2, 0.3])),
    ),
    "chances of one index with repeats": (
        lambda: by(eb.WeightedRecords(pd.Series([*"xxyz"], [7, 7, 8, 9]), pd.Series([0.1, 0.1, 0.2, 0.3], [7, 7, 8, 9]))),
        by(eb.WeightedRecords([*"xxyz"], [0.1, 0.1, 0.2, 0.3])),
    ),
    "multipliers in a list": (
        lambda: bootstrap(SAMPLE, PR, FixedReplicates([[1, 1, 1], [0, 1, 2]]), replicates=2).fit,
        bootstrap(SAMPLE, PR, FixedReplicates(np.array([[1, 1, 1], [0.0, 1, 2]])), replicates=2).fit,
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", AS_IF)
def test_taken_as(what):
    call, wanted = AS_IF[what]
    np.testing.assert_allclose(call().mean, wanted.mean, rtol=1e-12)


def test_a_frame_of_records_that_the_prediction_lacks_is_one():
    some = P.drop("r1")
    found = eb.estimate(some, L, eb.UniformRecords(population=8), PR, missing=eb.Missing.OMIT)
    whole = eb.estimate(some, L, eb.UniformRecords(), PR, missing=eb.Missing.OMIT)
    np.testing.assert_allclose(found.sd, whole.sd * np.sqrt(1 - 3 / 8), rtol=1e-12)


def test_blocks_may_name_records_of_other_blocks():
    labels = L[["r4", "r5"]]
    units = eb.measure(P, labels, blocks=pd.Series("s", P.index).where(P.index.isin(labels.index), "t"))
    assert units.size.tolist() == [2.0]


# 0/0 by definition is 0/0 in every design, whatever the rounding

ONE = pd.Series("a", range(9))
APART = pd.Series(range(9))
DESIGNS = [
    eb.UniformClusters(),
    eb.UniformRecords(),
    eb.BySize(lambda size: size**0.37),
]


@pytest.mark.parametrize("weight", [1.0, 1 / 3, 0.1, 1e-7, 7e6])
@pytest.mark.parametrize(
    "pred, true, undefined, value",
    [
        (APART, ONE, ["homogeneity"], {"completeness": 0.0, "v-measure1": 0.0}),
        (ONE, APART, ["completeness"], {"homogeneity": 0.0, "v-measure1": 0.0}),
        (ONE, ONE, ["homogeneity", "completeness", "v-measure1", "adjusted-rand"], {"rand": 1.0}),
    ],
)
def test_no_entropy_to_explain(pred, true, undefined, value, weight):
    names = [*undefined, *value, "b3-recall"]
    units = eb.measure(pred, true)
    for design in [*DESIGNS, eb.KnownWeights(pd.Series(weight, units.ids))]:
        found = eb.taylor(eb.Sample(units, design), names).apply(names, order=1)
        assert np.isnan(found.mean).tolist() == [name in undefined for name in names], design
        for name, x in value.items():
            assert found.mean[names.index(name)] == pytest.approx(x, abs=1e-12)


def test_v_measure_of_independent_clusterings_is_0():
    pred, true = pd.Series([0, 1] * 8), pd.Series([0, 0, 1, 1] * 4)
    found = eb.estimate(pred, true, eb.UniformClusters(2), ["v-measure1", "v-measure2", "homogeneity"])
    np.testing.assert_allclose(found.mean, 0, atol=1e-12)


def test_an_adjusted_rand_of_0_has_a_standard_error():
    """TP equal to its expectation is no reason to lose the derivative."""
    units = eb.measure(pd.Series([0, 0, 1, 1, 2, 3]), pd.Series([0, 0, 1, 2, 3, 3]))
    totals = eb.taylor(eb.Sample(units, eb.UniformClusters()), "adjusted-rand")
    at = [totals.names.index(c.name) for c in m.adjusted_rand.columns]
    mean = totals.mean.copy()
    mean[at] = [1.0, 3.0, 5.0, 6.0, 6.0]  # 2 · 3 · 5/(6 · 5) = 1 = TP
    slope = replace(totals, mean=mean)
    step = 1e-6
    higher = m.adjusted_rand.formula(*(mean[at] + step * np.eye(5)[0]))
    assert slope.slopes([m.adjusted_rand])[0, at[0]] == pytest.approx(higher / step, rel=1e-5)
