"""One way in: `estimate` of memberships or of a sample, engines by name, results in words and pictures."""

import warnings

import numpy as np
import pandas as pd
import pytest
from checks import raises
from matplotlib.figure import Figure

import erbayes as eb
from erbayes import engine as engines
from erbayes import metrics as m
from erbayes.datasets import people
from erbayes.engine import Jackknife, Resampled, Taylor
from erbayes.engine.closed_form import ClosedForm
from erbayes.engine.named import Advised, choose_engine, find_engine

EXAMPLE = people()
DESIGN = eb.UniformRecords(EXAMPLE.drawn)
SAMPLE = eb.Sample(eb.measure(EXAMPLE.prediction, EXAMPLE.labels), DESIGN)
FOUND = eb.estimate(SAMPLE)
P, R = m.pairwise_precision, m.pairwise_recall


def giant(sizes=(200, *[2] * 40), broken=True):
    """Entities drawn one by one, of which a giant holds nearly all links."""
    entity = np.repeat(np.arange(len(sizes)), sizes)
    cluster = entity.copy()
    cluster[np.flatnonzero(entity == 0)[::2]] = len(sizes) if broken else 0
    return eb.Sample(eb.measure(dict(enumerate(cluster)), dict(enumerate(entity))), eb.UniformClusters())


@pytest.mark.parametrize("arguments, message", [
    ((SAMPLE, EXAMPLE.labels), "a Sample has its labels and its design"),
    ((SAMPLE, None, DESIGN), "a Sample has its labels and its design"),
    ((EXAMPLE.prediction,), "labels and design are missing: give estimate"),
    ((EXAMPLE.prediction, EXAMPLE.labels), "^design is missing: give estimate"),
])  # fmt: skip
def test_what_is_missing_or_there_twice(arguments, message):
    raises(eb.DataError, message, eb.estimate, *arguments)


@pytest.mark.parametrize(
    "name, engine",
    [(None, ClosedForm()), ("closed form", ClosedForm()), ("closed-form", ClosedForm()), ("Jackknife", Jackknife()),
     ("bootstrap", Resampled()), ("advised", Advised()), (Resampled(replicates=7), Resampled(replicates=7))],
)  # fmt: skip
def test_engines_by_name(name, engine):
    assert find_engine(name) == engine


@pytest.mark.parametrize("engine", ["boot", Taylor, 3])
def test_what_is_no_engine(engine):
    said = r"no engine 'boot'; there are 'closed form'|pass an object of it|engine is an object"
    with pytest.raises(eb.DataError, match=said):
        eb.estimate(SAMPLE, engine=engine)


def test_one_metric_of_a_result():
    row = FOUND["pairwise-recall"]
    wanted = FOUND.table().loc["pairwise-recall", ["estimate", "lower", "upper"]]
    assert (row.estimate, row.lower, row.upper) == tuple(wanted)
    assert FOUND[R].estimate == row.estimate
    told = {"rand": "rand is not among these metrics: pairwise-prec", "x": "no metric 'x'"}
    for absent, message in told.items():
        with pytest.raises(eb.DataError, match=message):
            FOUND[absent]


def test_a_result_prints_five_columns_and_few_digits():
    heading, columns, *_ = repr(FOUND).splitlines()
    assert heading == "Estimates with 95 % intervals"
    assert columns.split() == ["estimate", "se", "lower", "upper", "kind"]
    assert eb.estimate(SAMPLE, engine="bootstrap", rng=1)._repr_html_().count("<th>") == 5 + 2 + 5 + 6


def test_the_sentence_has_the_numbers_of_the_table():
    assert FOUND.sentence() == (
        "Of the links that the matcher made, 82 % are right (95 % interval 76 % to 87 %). "
        "Of the links that are truly there, the matcher found 91 % (88 % to 94 %)."
    )
    assert "(90 % interval 77 %" in FOUND.sentence(0.9)
    counts = eb.estimate(SAMPLE, metrics=["entities", "b3-recall", "rand"]).sentence()
    assert counts.startswith("The estimate of entities is 3,001 (95 % interval ") and "rand" not in counts


def flawless(design):
    """Estimates of a prediction that is the truth, on 30 entities of two records."""
    truth = {i: i // 2 for i in range(120)}
    labels = truth if design.population else {i: i // 2 for i in range(60)}
    return eb.estimate(truth, labels, design)


def test_one_block_has_an_estimate_and_no_interval():
    """It said "95 % interval nan % to nan %"."""
    true, pred = ({i: i // size for i in range(40)} for size in (2, 3))
    labels, block = {i: true[i] for i in range(20)}, dict.fromkeys(range(20), 0)
    found = eb.estimate(pred, labels, eb.UniformClusters(), [P], blocks=block)
    assert found.sentence() == (
        "Of the links that the matcher made, 35.0 % are right (no interval, since a single draw has no variance)."
    )


def test_sentences_without_an_error_in_the_sample_and_of_a_census():
    found = flawless(eb.UniformClusters())
    low = found["pairwise-precision"].lower
    assert f"No draw showed a false link; with 95 % confidence at least {100 * low:.1f} %" in found.sentence()
    said = found.sentence(kind=eb.intervals.WALD)
    assert "Do not quote pairwise-precision: its interval has no length" in said
    census = flawless(eb.UniformClusters(population=60))
    assert "100 % are right (no sampling error, since every unit is labelled)" in census.sentence()
    nowhere = eb.estimate({1: 1, 2: 2, 3: 3}, {1: 1, 2: 1, 3: 2}, eb.UniformClusters(), [P, R])
    assert nowhere.sentence().startswith("There is no estimate of pairwise-precision: its denominator is 0")


def test_draws_are_a_tree_for_arviz():
    az = pytest.importorskip("arviz")
    boot = eb.estimate(SAMPLE, engine=Resampled(replicates=200), rng=1)
    tree = boot.tree
    np.testing.assert_array_equal(tree["posterior"]["metrics"].sel(metric="b3-recall"), boot.values[..., 4])
    means = az.summary(tree, kind="stats", round_to="none")["mean"].astype(float)
    np.testing.assert_allclose(means, boot.flat.mean(axis=0), rtol=1e-6)
    with pytest.raises(eb.DataError, match="no draws"):
        _ = FOUND.tree


@pytest.mark.slow
def test_advice_by_design_and_tail():
    records, why = choose_engine(SAMPLE, [P, R])
    assert records == ClosedForm() and "draws of records" in why and why.grade.name == "NOTE"
    light = eb.Sample(eb.measure(EXAMPLE.prediction, EXAMPLE.labels), eb.UniformClusters())
    assert choose_engine(light, [R])[0] == ClosedForm() and "no few units" in choose_engine(light, [R])[1]
    heavy, why = choose_engine(giant(), [P, R])
    assert type(heavy).__name__ == "Modelled" and "entities were drawn and a few hold most links" in why
    # the size model does not have the cost of splits and merges, which the closed form adds to others
    assert choose_engine(giant(), [m.basic_merge_distance])[0] == Jackknife()
    assert choose_engine(giant(), [m.basic_merge_distance, R])[0] == heavy


@pytest.mark.slow
def test_advice_where_the_largest_clusters_are_out_of_reach():
    pred = {i: i // 2 for i in range(100)} | {i: -7 for i in range(100, 120)}
    sample = eb.Sample(eb.measure(pred, {i: i // 2 for i in range(60)}), eb.UniformClusters())
    assert type(choose_engine(sample, [P])[0]).__name__ == "Modelled"
    recall, why = choose_engine(sample, [R, m.entities])
    assert recall == ClosedForm() and "no draw touches the largest clusters" in why
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, model = (
            eb.estimate(sample, metrics=[P, R], engine=e, rng=1) for e in ("advised", "size model")
        )
    assert found.weight.tolist() == [0.8, 0] and model.weight.tolist() == [0.8, 0.8]
    np.testing.assert_array_equal(found.interval()[0], model.interval()[0])
    closed = ClosedForm()(sample, [P, R])
    np.testing.assert_allclose(found.interval()[1], closed.interval()[1], rtol=1e-12)
    assert found.flat[:, 1].mean() == pytest.approx(closed.estimate[1], abs=0.1), "draws of it too"
    said = [alarm for alarm in found.alarms if "size model" in alarm]
    assert "Intervals of pairwise-recall are those of the closed form." in found.alarms and len(said) == 2


@pytest.mark.slow
def test_advice_under_draws_that_no_size_model_takes():
    """Chances of one's own, strata and blocks are not those of sizes, also where a few units carry all."""
    pred = {i: i // 2 for i in range(100)} | {i: -7 for i in range(100, 120)}
    units = eb.measure(pred, labels := {i: i // 2 for i in range(60)})
    strata = {i: "a" if i < 10 else "b" for i in range(30)}
    designs = [eb.KnownWeights(dict.fromkeys(range(30), 2.0)), eb.Stratified(strata, {"a": 20, "b": 40})]
    samples = [eb.Sample(units, design) for design in designs]
    blocks = {i: i // 20 for i in range(120)}
    samples.append(eb.Sample(eb.measure(pred, labels, blocks=blocks), eb.UniformClusters()))
    for sample in samples:
        engine, why = choose_engine(sample, [P, R])
        assert engine == Jackknife() and "no size model has such metrics or draws" in why
        found = eb.estimate(sample, metrics=[P], engine="advised")
        assert np.isfinite(found.estimate).all()
        assert any("The jackknife was taken" in note for note in found.alarms)


def test_the_advised_engine_gives_what_it_names_and_says_so():
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        found = eb.estimate(SAMPLE, engine="advised", rng=1)
    np.testing.assert_array_equal(found.estimate, FOUND.estimate)
    (note,) = found.alarms
    assert note.startswith("The closed form was taken, since under draws of records")
    assert not raised, "a note is no warning"


def test_engines_of_a_sample_side_by_side():
    found = eb.side_by_side(SAMPLE, [P, R], engines=["closed form", "bootstrap", "jackknife"], rng=1)
    table = found.table().set_index(["method", "metric"])
    assert table.index.unique("method").tolist() == ["closed form", "bootstrap", "jackknife"]
    assert table.loc[("closed form", R.name), "lower"] == pytest.approx(FOUND[R].lower, rel=1e-14)
    again = eb.side_by_side(SAMPLE, [P, R], engines=["closed form", "bootstrap", "jackknife"], rng=1).table()
    pd.testing.assert_frame_equal(found.table(), again)
    assert found.plot(ax=Figure().subplots()).figure.axes
    assert engines.named.ENGINES == ("closed form", "bootstrap", "size model")
    raises(eb.DataError, "give a Sample, or a mapping from names to results", eb.side_by_side, 3)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*importance weights are unreliable")  # of a giant that draws miss
def test_the_size_model_side_by_side_and_by_name():
    found = eb.side_by_side(SAMPLE, [P, R], rng=1).table().set_index(["method", "metric"])
    assert set(found.index.unique("method")) == {"closed form", "bootstrap", "size model"}
    assert found.loc[("size model", R.name), "ess_bulk"] > 100
    model = eb.estimate(SAMPLE, metrics=[P, R], engine="size model", rng=1)
    assert model.values is not None and model.values.shape[0] == 4
    np.testing.assert_allclose(model.estimate, found.loc["size model", "estimate"], atol=0.02)
    beside = eb.side_by_side(SAMPLE, [R], engines=["size model", "posterior"], rng=1).table()
    assert beside["kind"].tolist() == ["80 % equal-tailed, 20 % Beta", "equal-tailed"]
    bare = eb.estimate(SAMPLE, metrics=[R], engine="posterior", rng=1)
    np.testing.assert_array_equal(bare.chains, model.part([1]).chains)
    heavy = giant()
    assert eb.estimate(heavy, metrics=[P, R], engine="advised", rng=1).weight[1] == 0.8


def compared():
    """A release that lost every tenth record, beside the one before."""
    new = EXAMPLE.prediction.copy()
    new.iloc[::10] = [f"alone{i}" for i in range(len(new.iloc[::10]))]
    both = {"old": EXAMPLE.prediction, "new": new}
    return eb.compare(both, EXAMPLE.labels, DESIGN, [R, m.entities])


def test_a_comparison_has_levels_and_differences_in_one_table():
    found = compared()
    table = found.table()
    assert table["prediction"].tolist() == ["old", "new", "new - old"] * 2
    assert table["metric"].tolist() == [R.name] * 3 + ["entities"] * 3
    level, difference = found.levels(), found.differences()
    np.testing.assert_array_equal(table["upper"].iloc[[0, 3]], level["upper"].iloc[:2])
    np.testing.assert_array_equal(table["lower"].iloc[[2, 5]], difference["lower"])
    joint = found.table(simultaneous=True), found.differences(simultaneous=True)
    np.testing.assert_array_equal(joint[0]["lower"].iloc[[2, 5]], joint[1]["lower"])
    paired = found.subtract("old", "new")
    assert paired.values is None and paired[R].upper == difference["upper"][0] < 0
    assert found.subtract("new", "old")[R].estimate == -paired[R].estimate
    raises(eb.DataError, "no prediction 'x'; there are old, new", found.subtract, "old", "x")


def test_the_picture_of_a_comparison():
    axes = compared().plot(ax=Figure(layout="constrained").subplots()).figure.axes
    assert len(axes) == 4, "shares and counts, each with its differences"
    labels = {ax.get_xlabel() for ax in axes}
    assert labels == {"", "estimate and 95 % interval", "difference from old and 95 % interval"}
    levels, differences = (ax for ax in axes if ax.get_legend())
    assert [t.get_text() for t in levels.get_legend().get_texts()] == ["old", "new"]
    assert [t.get_text() for t in differences.get_legend().get_texts()] == ["new"]
    # the line of the new release keeps its style
    assert levels.lines[1].get_color() == differences.lines[0].get_color()


def test_a_name_of_several_metrics_is_refused_where_one_is_needed():
    truth, prediction = {i: i // 3 for i in range(60)}, {i: i // 4 for i in range(60)}
    sample = eb.Sample(eb.measure(prediction, truth), eb.UniformClusters())
    doors = [
        lambda: eb.estimate(sample, metrics=["b3"])["b3"],
        lambda: eb.study.populations.Population(pd.Series(prediction), pd.Series(truth)).value("b3"),
    ]
    for door in doors:
        raises(eb.DataError, "'b3' stands for 2: name b3-precision or b3-recall", door)
