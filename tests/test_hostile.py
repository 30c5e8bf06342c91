"""What people may pass by mistake: the right answer, or an error that says what, where and what to do."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from populations import Homonyms, NegativeBinomial, PitmanYor, RareErrors, SizeDependent

import erbayes as eb
from erbayes import labels as labelling
from erbayes import metrics as m
from erbayes.analysis import planning, sensitivity
from erbayes.engine import Jackknife, Naive, Resampled, Taylor, bootstrap, side_by_side
from erbayes.metrics.intervals import EqualTailed
from erbayes.study import populations as simulate

PREDICTION = {"r1": "a", "r2": "a", "r3": "b", "r4": "b", "r5": "b", "r6": "c", "r7": "d", "r8": "d"}
LABELS = {"r1": "x", "r2": "x", "r3": "x", "r4": "y", "r5": "y", "r6": "z", "r7": "z"}
P, L = pd.Series(PREDICTION), pd.Series(LABELS)
PR = [m.pairwise_precision, m.pairwise_recall]
WEIGHTS = pd.Series({"x": 1.0, "y": 2.0, "z": 3.0})
STRATA = {"x": 0, "y": 0, "z": 1}
HALVES = {"\ud800" + record: "\udfff" + entity for record, entity in LABELS.items()}
"""Labels whose ids begin with half of a surrogate pair, which no UTF-8 text holds."""
SAMPLE = eb.Sample(eb.measure(P, L), eb.UniformClusters())
MANY = eb.Sample.many(SAMPLE.units, eb.UniformRecords(), np.zeros((2, 5), dtype=int))
ESTIMATE = partial(eb.estimate, P)
FOUND = eb.engine.taylor(SAMPLE, PR).apply(PR)
EDGE = pd.DataFrame({"l": ["r1"], "r": ["r2"]})


def halved(values, half="\ud800"):
    return {half + key: value for key, value in values.items()}


def by(design, **more):
    return eb.estimate(P, L, design, PR, **more)


def truth(rng):
    return simulate.Population.of(P, L)


def plan(design=None, **more):
    return planning.forecast(SAMPLE, PR, {"r": eb.UniformRecords() if design is None else design}, **more)


REFUSED = {
    # metrics
    # design
    "a class": (lambda: by(eb.UniformClusters), r"UniformClusters is a class: pass an object of it, UniformClusters\(\.\.\.\)"),
    "None": (lambda: by(None), r"design is missing: give estimate\(prediction, labels, design\)"),
    "a name": (lambda: by("uniform-records"), r"a design is an object such as UniformRecords\(\), not 'uniform-records'"),
    "labels for units": (lambda: eb.Sample(L, eb.UniformClusters()), r"Units are needed, as measure\(prediction, labels\) makes them or sample.units, not Series"),
    # samples and units
    **{
        f"{name} of {given}": (partial(door, value), f"a Sample is needed, such as .*, not {given}$")
        for name, door in {
            "taylor": eb.engine.taylor, "jackknife": eb.engine.jackknife, "bootstrap": bootstrap, "alarms": eb.alarms, "balance": eb.balance,
            "influence": partial(eb.influence, metric="pairwise-recall"),
            **{
                type(engine).__name__: partial(engine, metrics=PR)
                for engine in (
                    Taylor(), Jackknife(), Resampled(), Naive(),
                )
            },
        }.items()
        for given, value in {"Units": SAMPLE.units, "DataFrame": L.to_frame(), "None": None, "the class Sample": eb.Sample}.items()
    },
    **{
        f"{name} of many samples": (partial(door, MANY), r"one sample is needed here, and not 2 at once: ask for each alone, or ask Taylor\(\)")
        for name, door in {
            "jackknife": eb.engine.jackknife, "bootstrap": bootstrap, "alarms": eb.alarms, "balance": eb.balance,
            "influence": eb.influence,
        }.items()
    },
    **{
        f"{name} of {given}": (partial(door, value), f"Units are needed, as .* makes them or sample.units, not {given}$")
        for name, door in {
            "naive": eb.engine.naive, "P_naive": eb.engine.P_naive,
        }.items()
        for given, value in {"Sample": SAMPLE, "DataFrame": L.to_frame(), "None": None}.items()
    },
    # seeds
    **{
        f"{seed!r} as the seed of {name}": (partial(door, rng=seed), f"rng must be a Generator, a whole number of 0 or more as seed, or None, not {seed!r}")
        for name, door in {
            "bootstrap": partial(bootstrap, SAMPLE),
            "compare": lambda rng: eb.compare({"a": P, "b": P}, L, eb.UniformClusters(), PR, engine=Resampled(), rng=rng),
            "simulate": partial(simulate.simulate, simulate.Zeta(2.5, 9), simulate.Splits(0.1), 50),
            "mislabel": partial(labelling.mislabel, L, P, labelling.Annotator(missed=0.1)),
            "with_errors": partial(eb.with_errors, ESTIMATE, L, eb.UniformClusters(), P, labelling.Annotator()),
            "draws": FOUND.as_draws,
        }.items()
        for seed in ("x", -1, 1.5)
    },
    "another policy": (lambda: by(eb.UniformClusters(), missing="drop"), "missing must be one of 'error', 'singleton', .*, not 'drop'"),
    # ids of other types
    "draws in text": (lambda: eb.estimate(P, L.map({"x": 1, "y": 2, "z": 3}), eb.UniformRecords(["1", "2"]), PR), "of type string, labelled units of type integer: make text of both"),
    "draws in floats": (lambda: by(eb.UniformRecords([1.0, 2.0])), r"of type floating, labelled units of type string: .*Int64'\)\.astype\(str\)"),
    "records in floats": (lambda: eb.measure(P, {1.0: "x"}), r"not floating: make integers or text of them .*astype\('Int64'\)"),
    "pairs as an index": (lambda: eb.measure(P, pd.Series(1, pd.MultiIndex.from_tuples([("a", "b")]))), "tuple objects: of pairs of records, Clustering.from_pairs"),
    "pairs in a list": (lambda: eb.measure(P, [("a", "b")]), "of pairs, Clustering.from_pairs makes clusters.*not list"),
    # weights
    "weights in a list": (lambda: by(eb.KnownWeights([1, 2, 3])), "weights must be a Series or a mapping by id, not list"),
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
    "nan units": (lambda: by(eb.UniformClusters(np.nan)), "population must be a whole number, 1 or more, not nan"),
    "a population in words": (lambda: by(eb.UniformClusters("100")), "population must be a whole number, 1 or more, not '100'"),
    "a true population": (lambda: by(eb.UniformClusters(True)), "population must be a whole number, 1 or more, not True"),
    "more units than records": (lambda: by(eb.UniformClusters(100)), "population = 100 units, but the prediction holds 8 records, which leaves room for 4 at most"),
    "half a draw": (lambda: by(eb.DistinctEntities(3.5)), "draws must be a whole number, 0 or more, not 3.5"),
    "distinct entities of fewer records": (lambda: by(eb.DistinctEntities(5, records=6)), "records = 6, but the prediction holds 8"),
    "distinct entities of half a record": (lambda: by(eb.DistinctEntities(5, records=8.5)), "records must be a whole number, 1 or more, not 8.5"),
    # chances
    "chances of another shape": (lambda: by(eb.design.BySize(lambda s: np.ones(7))), "probability returned 7 chances for 3 sizes"),
    "a chance in words": (lambda: by(eb.design.BySize("size")), "probability is a function of sizes, such as numpy.sqrt, not 'size'"),
    "chances of another index": (lambda: by(eb.WeightedRecords([*"xyz"], pd.Series([0.1, 0.2, 0.3], [*"zyx"]))), "the index of the probabilities is not that of units"),
    "nested chances": (lambda: by(eb.WeightedRecords([*"xyz"], [[0.1], [0.2], [0.3]])), r"probabilities must be one real number each, not float64 of shape \(3, 1\)"),
    "chances whose weights overflow": (lambda: by(eb.WeightedRecords([*"xyz"], [1e-300, 0.2, 0.3])), "1 do not: 1e-300"),
    # strata
    "a stratum of nan units": (lambda: by(eb.Stratified(STRATA, {0: np.nan, 1: 1})), "population of stratum 0 must be a whole number, 0 or more, not nan"),
    "sizes of strata in a list": (lambda: by(eb.Stratified(STRATA, [5, 1])), r"population must map strata to numbers of units, not be \[5, 1\]"),
    "strata in a list": (lambda: by(eb.Stratified([0, 0, 1], {0: 3, 1: 1})), "strata must be a Series or a mapping by id, not list"),
    "a rule as a name": (lambda: by(eb.Stratified(STRATA, {0: 5, 1: 5}, "adjusted")), "single_unit must be one of 'error', .* not 'adjusted'"),
    # blocks and predicted clusters
    "blocks of other ids": (lambda: by(eb.UniformClusters(), blocks=dict(enumerate("aaaaaaa"))), "record ids of the blocks are of type integer, those of the labels of type string"),
    "a block with a record unlabelled": (lambda: eb.estimate(P, L.drop("r3"), eb.UniformClusters(), PR, blocks=pd.Series("b", L.index)), "1 records of sampled blocks have no label, such as 'r3': label every record"),
    "one predicted cluster": (lambda: eb.measure_predicted(P, L, "a"), "sampled clusters must be several ids, not 'a' alone"),
    # inputs
    "a Series of polars": (lambda: eb.measure(pl.Series("cluster", list("aab")), L), "expected a table of two columns, not one column: Series"),
    "halves of surrogate pairs on one side": (lambda: eb.measure(PREDICTION, HALVES), r"7 of 7 labelled records are not in the prediction, such as '\\ud800r1'"),
    # comparisons
    "records by number and by name": (lambda: eb.compare({"a": P, "b": dict(enumerate(PREDICTION.values()))}, L, eb.UniformClusters(), PR), "record ids of the predictions differ in type: those of 'a' of type string, those of 'b' of type integer"),
    "predictions in a list": (lambda: eb.compare([P, P], L, eb.UniformClusters(), PR), "predictions must map names to memberships, .* not list"),
    "coverage as a name": (lambda: eb.compare({"a": P, "b": P}, L, eb.UniformClusters(), PR, missing="shared"), "missing must be one of .*'common', not 'shared'"),
    # bootstrap
    "half a replicate": (lambda: bootstrap(SAMPLE, PR, replicates=2.5), "replicates of a bootstrap must be a whole number, 2 or more, not 2.5"),
    "a class of intervals": (lambda: bootstrap(SAMPLE, PR, replicates=5).interval(0.9, EqualTailed), r"EqualTailed is a class"),
    # intervals and combinations
    "a class of kinds": (lambda: FOUND.interval(0.9, eb.intervals.Symmetric), r"Symmetric is a class"),
    "a kind's name": (lambda: FOUND.table(0.9, "wald"), "a kind of interval is an object such as WALD or EqualTailed.., not 'wald'"),
    **{
        f"{kind.__name__} of {value!r}": (partial(kind, *first, value), f"{what}, not {value!r}")
        for kind, first, what, more in (
            (eb.intervals.BetaGamma, (), "mass of the pseudo-draws must be 0 or more and finite", np.inf),
            (eb.intervals.Symmetric, (), "degrees of freedom must be above 0", 0),
        )
        for value in ("x", -1, np.nan, None if kind is eb.intervals.BetaGamma else 1j, True, more)
    },
    "a level in words": (lambda: FOUND.interval("x"), "level must lie strictly between 0 and 1, not 'x'"),
    **{
        f"a part {at!r}": (partial(FOUND.part, at), f"components are taken by position, 0 to 1, not {said}; they are 0 pairwise-precision, 1 pairwise-recall")
        for at, said in (([0, 2], "2"), ([-3], "-3"), (["pairwise-recall"], "'pairwise-recall'"), ("pairwise-recall", "'pairwise-recall'"), ([0.5], "0.5"), ([True, False], "True, False"), ([], "none"))
    },
    "a kind for a level": (lambda: FOUND.interval(eb.intervals.WALD), "level must lie strictly between 0 and 1, not Symmetric"),
    "weights too few": (lambda: FOUND.contrast([[1.0]], ["P"]), r"one row per name, 1, and one column per component, 2, not shape \(1, 1\)"),
    "weights of draws": (lambda: bootstrap(SAMPLE, PR, replicates=5).contrast([1.0], ["P"]), "one column per component, 2"),
    "a prediction less itself": (lambda: eb.compare({"a": P, "b": P}, L, SAMPLE.design, PR).subtract("a", "a"), "needs two different predictions, not 'a' twice"),
    "weights of 0": (lambda: FOUND.contrast([[0, 0]], ["nothing"]), "weights of a combination are all 0"),
    # ids
    "a column for a table": (lambda: eb.Clustering.of(pa.chunked_array([[1, 2]])), "expected a table of two columns, not one column: ChunkedArray"),
    "a clustering for ids": (lambda: eb.Clustering.from_pairs(EDGE, records=eb.Clustering.of(P)), "must be a list or a column of ids, not Clustering"),
    "a threshold in words": (lambda: eb.Clustering.from_pairs(EDGE.assign(s=1), score="s", threshold="x"), "pairs: threshold must be a number, not 'x'"),
    "several scores": (lambda: eb.Clustering.from_pairs(EDGE.assign(s=1), score=["s"], threshold=1), r"a column is named by its name, not by \['s'\]"),
    # tables
    **{
        f"three columns of {kind}, two of one name": (partial(eb.measure, table, L), "several columns are called 'x'")
        for kind, table in (
            ("pandas", pd.DataFrame([["r1", "a", "b"]], columns=["record", "x", "x"])),
            ("Arrow", pa.table([["r1"], ["a"], ["b"]], names=["record", "x", "x"])),
        )
    },
    "records in the index": (lambda: eb.measure(P, L.to_frame("entity")), "a table of 'entity' has the index 'r1', 'r2', 'r3', …: reset_index.. makes a column of it"),
    "no column": (lambda: eb.measure(pl.DataFrame(), L), "the table of the prediction needs 2 columns; it has none"),
    # more of designs
    "weights of days": (lambda: by(eb.KnownWeights(pd.Series(pd.Timestamp("2020"), WEIGHTS.index))), "weights must be one real number each, not datetime64"),
    "chances in words": (lambda: by(eb.design.BySize(lambda s: "x")), "probability must return one number per size: could not convert"),
    "chances of two arguments": (lambda: by(eb.design.BySize(lambda s, t: s)), "probability must return one number per size: .* missing 1 required"),
    # more of combinations
    "weights in a word": (lambda: FOUND.contrast("x", ["a"]), "weights of a combination must be numbers, one row per name: could not"),
    "ragged weights": (lambda: FOUND.contrast([[1], [1, 2]], ["a", "b"]), "weights of a combination must be numbers, one row per name"),
    "weights of nan": (lambda: FOUND.contrast([[np.nan, 1]], ["a"]), "weights of a combination must be finite"),
    "names in a word": (lambda: FOUND.contrast([[1, -1], [1, 1]], "ab"), "names of combinations must be a list of str, not 'ab'"),
    "influence on two metrics": (lambda: eb.influence(SAMPLE, PR), "one metric is needed, and .* stands for 2"),
    "an engine in words": (lambda: eb.compare({"a": P, "b": P}, L, eb.UniformClusters(), PR, engine="boots"), "no engine 'boots'; there are 'closed form', "),
    "designs in a list": (lambda: planning.forecast(SAMPLE, PR, [eb.UniformRecords()]), "designs must map names to designs, such as .*, not .UniformRecords"),
    "a cost that is a number": (lambda: plan(cost=3), "cost is a function of sizes, not 3"),
    "a grid of Units": (lambda: sensitivity.grid(SAMPLE.units, pd.DataFrame()), "a grid is of what with_errors returns, not Units$"),
    "a tipping point of Units": (lambda: sensitivity.tipping(SAMPLE.units, "f1", 0.5), "a tipping point is of what with_errors returns, not Units$"),
    # parameters in words
    **{
        f"{what} of 'x'": (call, f"{message}, not 'x'")
        for what, call, message in (
            ("beta", lambda: m.pairwise_f("x"), "beta of pairwise_f must be 0 or more and finite"),
            ("cases", lambda: labelling.Gamma("x", 1), "cases and entities of Gamma must be above 0 and finite"),
            ("Beta", lambda: labelling.Beta("x", 1), "a and b of Beta must be above 0 and finite"),
            ("share of splits", lambda: simulate.Splits("x"), r"Splits must lie in \[0, 1\]"),
            ("records", lambda: simulate.population(simulate.Zeta(2.5, 9), "x"), "records of a population must be a whole number, 1 or more"),
            ("law", lambda: simulate.population("x", 9), "a distribution of sizes is an object such as Zeta.2.5, 60."),
            ("errors", lambda: simulate.simulate(simulate.Zeta(2.5, 9), "x", 9), "errors are made by an object such as Misattribution.0.1."),
            ("removed", lambda: labelling.Annotator("x"), "removed must be 0 or more, or a prior such as Beta.3, 17."),
        )
    },
    "half a record of a population": (lambda: simulate.population(simulate.Zeta(2.5, 9), 9.5), "records of a population must be a whole number, 1 or more, not 9.5"),
    # labelling
    "a class as a prior": (lambda: labelling.Annotator(kept=labelling.Beta), "kept must be 0 or more, or a prior .* not <class"),
    "no annotator": (lambda: labelling.mislabel(L, P, None), "a model of errors is an Annotator, such as .*, not None"),
    "answers on one mention": (lambda: labelling.answers(L, "r1"), "mentions must be several ids, not 'r1' alone"),
    "no answers": (lambda: labelling.AnnotatorPair.of(None, None, P), "answers are a DataFrame, as answers.. gives it, not None"),
    "answers of other columns": (lambda: labelling.AnnotatorPair.of(L.to_frame("e"), L.to_frame("e"), P), "a table of answers has no column .mention., .record."),
    # results side by side
    **{
        f"results in {what}": (partial(side_by_side, results), f"give a Sample, or a mapping from names to results, .*, not {kind}$")
        for what, kind, results in (("a list", "list", [FOUND]), ("text", "str", "taylor"), ("a Series", "Series", pd.Series([1.0])), ("None", "None", None))
    },
    # rates in words
    "a tipping point in words": (lambda: sensitivity.tipping(None, "pairwise-recall", "x"), "under must be a finite number, not 'x'"),
    "errors of None": (partial(eb.with_errors, ESTIMATE, L, eb.UniformClusters(), P, None), "annotator is an Annotator, such as .*, not None"),
    "errors of the class Annotator": (partial(eb.with_errors, ESTIMATE, L, eb.UniformClusters(), P, labelling.Annotator), "Annotator is a class: pass an object of it"),
    "errors of a prediction in a file": (partial(eb.with_errors, ESTIMATE, L, eb.UniformClusters(), Path("x.parquet"), labelling.Annotator()), "true labels are drawn among records in memory: give shown as memberships"),
    "an answer in words": (partial(eb.with_errors, "x", L, eb.UniformClusters(), P, labelling.Annotator()), "answer is a function of labels and design, .*, not 'x'"),
    "imputations in words": (partial(eb.with_errors, ESTIMATE, L, eb.UniformClusters(), P, labelling.Annotator(), imputations="x"), "imputations must be a whole number, 2 or more, not 'x'"),
    # populations in words
    **{
        f"{law.__name__}{parameters!r}": (partial(law, *parameters), f"{what} must be .*, not 'x'")
        for law, parameters, what in (
            (simulate.Zeta, ("x",), "exponent of Zeta"), (simulate.Zeta, ("x", 9), "exponent of Zeta"), (simulate.Zeta, (2, "x"), "largest of Zeta"),
            (simulate.LogNormal, ("x", 1), "mu of LogNormal"), (simulate.LogNormal, (1, "x"), "sigma of LogNormal"),
            (NegativeBinomial, ("x", 1), "mean of NegativeBinomial"), (PitmanYor, ("x",), "strength of PitmanYor"),
            (Homonyms, ("x", 2), "lumps of Homonyms"), (Homonyms, (1, "x"), "size of Homonyms"),
            (SizeDependent, ("x", 1), "base of SizeDependent"), (SizeDependent, (1, "x"), "slope of SizeDependent"),
            (RareErrors, ("x",), "entities of RareErrors"),
        )
    },
    "a discount in words": (lambda: PitmanYor(1, "x"), r"discount of PitmanYor must lie in \[0, 1\), not 'x'"),
    # planning
    "a width in words": (lambda: plan().table("a"), "half widths must be numbers, not 'a'"),
    "a forecast of half a draw": (lambda: plan().designs["r"].half_widths(2.5, 0.95), "the number of draws must be a whole number, 0 or more, not 2.5"),
    "a forecast from units": (lambda: planning.forecast(SAMPLE.units, PR, {"r": eb.UniformRecords()}), "a forecast starts from a Sample or a Population, not from Units"),
    "planned strata": (lambda: plan(eb.Stratified({}, {})), "r: Stratified cannot be planned; UniformRecords, UniformClusters, BySize and ByPredictedSize can"),
    "planned weights": (lambda: plan(eb.KnownWeights(WEIGHTS)), "KnownWeights cannot be planned"),
    "planned chances": (lambda: plan(eb.WeightedRecords([*"xyz"], [0.1, 0.2, 0.3])), "WeightedRecords cannot be planned"),
    "planned distinct entities": (lambda: plan(eb.DistinctEntities(50)), "DistinctEntities cannot be planned"),
    "a planned class": (lambda: plan(eb.UniformRecords), "UniformRecords is a class"),
    "a planned half record": (lambda: plan(eb.UniformRecords(population=8.5)).designs["r"].half_widths(3, 0.95), "population must be a whole number"),
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
    # each draw of a design by size counts, whatever the design
    found, wanted = plan(Own(False, True)).table(0.2), plan(eb.design.BySize(lambda size: size)).table(0.2)
    pd.testing.assert_frame_equal(found, wanted)
    for other in (Own(True, True), Own(False, False)):
        with pytest.raises(eb.DataError, match="r: Own cannot be planned"):
            plan(other)


@pytest.mark.parametrize("missing", eb.Missing)
def test_a_policy_is_taken_by_its_word(missing):
    """One labelled record is in no prediction, so that policies differ."""
    more = pd.concat([L, pd.Series({"absent": L.iloc[0]})])
    calls = {
        "estimate": lambda policy: eb.estimate(P, more, eb.UniformClusters(), PR, missing=policy).table(),
        "scan": lambda policy: eb.large.scan(P.reset_index(), more, missing=policy).table(),
        "compare": lambda policy: eb.compare(
            {"a": P, "b": P}, more, eb.UniformClusters(), PR, missing=policy
        ).table(),
    }
    for name, call in calls.items():
        told = []
        for policy in (missing, missing.value):
            try:
                told.append(call(policy).to_string())
            except eb.DataError as error:
                told.append(str(error))
        assert told[0] == told[1], name
    assert ("must be one of" in told[0]) is False


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
    "chances in another order": (lambda: by(eb.WeightedRecords(pd.Series([*"xyz"]), pd.Series([0.3, 0.2, 0.1], [2, 1, 0]))),
        by(eb.WeightedRecords([*"xyz"], [0.1, 0.2, 0.3]))),
    "chances of one index with repeats": (
        lambda: by(eb.WeightedRecords(pd.Series([*"xxyz"], [7, 7, 8, 9]), pd.Series([0.1, 0.1, 0.2, 0.3], [7, 7, 8, 9]))),
        by(eb.WeightedRecords([*"xxyz"], [0.1, 0.1, 0.2, 0.3])),
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", AS_IF)
def test_taken_as(what):
    call, wanted = AS_IF[what]
    np.testing.assert_allclose(call().mean, wanted.mean, rtol=1e-12)


def test_a_frame_of_records_that_the_prediction_lacks_is_one():
    some = P.drop("r1")
    frame, uniform = (eb.UniformRecords(population=n, repeats=True) for n in (8, None))
    found = eb.estimate(some, L, frame, PR, missing=eb.Missing.OMIT)
    whole = eb.estimate(some, L, uniform, PR, missing=eb.Missing.OMIT)
    np.testing.assert_allclose(found.uncut_sd, whole.uncut_sd * np.sqrt(1 - 3 / 8), rtol=1e-12)


def test_blocks_may_name_records_of_other_blocks():
    labels = L[["r4", "r5"]]
    units = eb.measure(P, labels, blocks=pd.Series("s", P.index).where(P.index.isin(labels.index), "t"))
    assert units.size.tolist() == [2.0]


# 0/0 by definition is 0/0 in every design, whatever the rounding

ONE = pd.Series("a", range(9))
APART = pd.Series(range(9))
DESIGNS = [eb.UniformClusters(), eb.UniformRecords(), eb.design.BySize(lambda size: size**0.37)]


@pytest.mark.parametrize("weight", [1.0, 1 / 3, 0.1, 1e-7, 7e6])
@pytest.mark.parametrize("pred, true, undefined, value", [
    (APART, ONE, ["homogeneity"], {"completeness": 0.0, "v-measure1": 0.0}),
    (ONE, APART, ["completeness"], {"homogeneity": 0.0, "v-measure1": 0.0}),
    (ONE, ONE, ["homogeneity", "completeness", "v-measure1", "adjusted-rand"], {"rand": 1.0}),
])  # fmt: skip
def test_no_entropy_to_explain(pred, true, undefined, value, weight):
    names = [*undefined, *value, "b3-recall"]
    units = eb.measure(pred, true)
    for design in [*DESIGNS, eb.KnownWeights(pd.Series(weight, units.ids))]:
        found = eb.engine.taylor(eb.Sample(units, design), names).apply(names, order=1)
        assert np.isnan(found.mean).tolist() == [name in undefined for name in names], design
        for name, x in value.items():
            assert found.mean[names.index(name)] == pytest.approx(x, abs=1e-12)


def test_v_measure_of_independent_clusterings_is_0():
    pred, true = pd.Series([0, 1] * 8), pd.Series([0, 0, 1, 1] * 4)
    found = eb.estimate(pred, true, eb.UniformClusters(2), ["v-measure1", "homogeneity"])
    np.testing.assert_allclose(found.mean, 0, atol=1e-12)


def test_an_adjusted_rand_of_0_has_a_standard_error():
    """TP equal to its expectation is no reason to lose the derivative."""
    units = eb.measure(pd.Series([0, 0, 1, 1, 2, 3]), pd.Series([0, 0, 1, 2, 3, 3]))
    totals = eb.engine.taylor(eb.Sample(units, eb.UniformClusters()), "adjusted-rand")
    at = [totals.names.index(c.name) for c in m.adjusted_rand.columns]
    mean = totals.mean.copy()
    mean[at] = [1.0, 3.0, 5.0, 6.0, 6.0]  # 2 · 3 · 5/(6 · 5) = 1 = TP
    slope = replace(totals, mean=mean)
    step = 1e-6
    higher = m.adjusted_rand.formula(*(mean[at] + step * np.eye(5)[0]))
    assert slope.slopes([m.adjusted_rand])[0, at[0]] == pytest.approx(higher / step, rel=1e-5)
