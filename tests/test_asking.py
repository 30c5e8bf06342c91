"""Metrics by name, one or several; seeds in the place of generators."""

import numpy as np
import pandas as pd
import pytest
from checks import raises
from matplotlib.figure import Figure

import erbayes as eb
from erbayes import engine as engines
from erbayes import labels as labelling
from erbayes import metrics as m
from erbayes import plots, report, study
from erbayes.analysis import planning, sensitivity
from erbayes.engine import bootstrap
from erbayes.metrics import resolve_metrics
from erbayes.study import populations as simulate

PREDICTION = {i: i // 3 for i in range(60)}
LABELS = {i: i // 4 for i in range(48)}
SAMPLE = eb.Sample(eb.measure(PREDICTION, LABELS), eb.UniformRecords())
PEOPLE = simulate.simulate(simulate.Zeta(2.5, 9), simulate.Misattribution(0.1), 300, 1)


def test_names_objects_one_or_several():
    P, R = m.pairwise_precision, m.pairwise_recall
    for asked in ("pairwise-recall", R, ["pairwise-recall"], (R,), iter([R]), pd.Series(["pairwise-recall"])):
        assert resolve_metrics(asked) == (R,)
    assert resolve_metrics([R, "P_block", "pairwise-precision"]) == (R, P, P)
    assert resolve_metrics(m.ALL) == resolve_metrics("all") == m.ALL
    assert resolve_metrics(["Pairwise-Recall", "PRECISION", "p_block"]) == (R, P, P)
    assert resolve_metrics("Pairwise-F0.5")[0].name == "pairwise-f0.5"


@pytest.mark.parametrize("metric", [*m.ALL, *m.definitions.OTHERS], ids=lambda metric: metric.name)
def test_every_name_that_tables_print_is_one_of_the_module_too(metric):
    assert getattr(m, metric.name.replace("-", "_")) is metric and resolve_metrics(metric.name) == (metric,)


@pytest.mark.parametrize("name, same", [("pairwise-f2", m.pairwise_f(2)), ("cluster-f0.5", m.cluster_f(0.5))])
def test_names_with_a_parameter(name, same):
    (found,) = resolve_metrics(name)
    assert found.name == name == same.name
    both = eb.engine.taylor(SAMPLE, [name, same]).apply([name, same]).mean
    assert both[0] == both[1]


@pytest.mark.parametrize(
    "short, full",
    [("precision", ["pairwise-precision"]), ("recall", ["pairwise-recall"]), ("f1", ["pairwise-f1"]),
     ("b3", ["b3-precision", "b3-recall"])],
)  # fmt: skip
def test_short_names_are_what_people_mean(short, full):
    assert [metric.name for metric in resolve_metrics(short)] == full
    assert [metric.name for metric in resolve_metrics([short, "rand"])] == [*full, "rand"]
    assert eb.estimate(PREDICTION, LABELS, DESIGN, short).names == tuple(full)
    sample = eb.Sample(eb.measure(PREDICTION, LABELS), DESIGN)
    found = labelling.check(sample, {short: 0.5})
    assert [metric.name for metric in found.metrics] == full and list(found.minimum) == [0.5] * len(full)
    with pytest.raises(eb.DataError, match=f"1 metrics have two minima, such as '{full[-1]}'"):
        labelling.check(sample, {short: 0.5, full[-1]: 0.6})


@pytest.mark.parametrize("asked, message", [
    ([], "no metric is asked for"),
    ("recal", "no metric 'recal': did you mean 'recall'"),
    ("f", "no metric 'f': did you mean 'f1'"),
    ("clusterrecall", "did you mean 'cluster-recall' or"),
    ("distance", "did you mean 'basic-merge-distance'"),
    ("pairwise_precision", "no metric 'pairwise_precision': did you mean 'pairwise-precision'"),
    ("Pairwise-Recal", "did you mean 'pairwise-recall'"),
    ("P-block", "did you mean 'P_block' or"),
    (["rand", "xyz"], r"no metric 'xyz'; see all: erbayes.metrics.ALL \(erbayes metrics\)"),
    ("count", "no metric 'count': did you mean 'entities'"),
    ("f2", "no metric 'f2': did you mean 'pairwise-f2' or 'cluster-f2'"),
    ("f-measure", "did you mean 'f1' or"),
    ("hill-1", "no metric 'hill-1': did you mean 'hill1'"),
    (m.pairwise_f, "pairwise_f makes a metric and is none itself: call it"),
    (m.Metric, "Metric makes a metric and is none itself"),
    (None, "an object of erbayes.metrics or its name, not None"),
    ([3], "an object of erbayes.metrics or its name, not 3"),
])  # fmt: skip
def test_what_is_no_metric(asked, message):
    raises(eb.DataError, message, eb.estimate, PREDICTION, LABELS, eb.UniformClusters(), asked)


DESIGN = eb.UniformRecords()
PAIR = {"a": PREDICTION, "b": {i: i // 2 for i in range(60)}}


def with_errors(rng):
    """An analysis of errors of labels."""

    def answer(labels, design):
        return engines.Taylor()(eb.Sample(eb.measure(PREDICTION, labels), design), [m.pairwise_recall])

    annotator = labelling.Annotator(missed=labelling.Beta(3, 7))
    return eb.with_errors(answer, LABELS, DESIGN, PREDICTION, annotator, imputations=2, rng=rng)


DOORS = {
    "estimate": lambda x: eb.estimate(PREDICTION, LABELS, DESIGN, x).mean,
    "compare": lambda x: eb.compare(PAIR, LABELS, DESIGN, x).differences().to_csv(),
    "totals": lambda x: eb.engine.taylor(SAMPLE, x).apply(x).mean,
    "jackknife": lambda x: eb.engine.jackknife(SAMPLE, x).cov,
    "bootstrap": lambda x: bootstrap(SAMPLE, x, replicates=20, rng=1).values,
    "alarms": lambda x: eb.alarms(SAMPLE, x),
    "influence": lambda x: eb.influence(SAMPLE, x).to_csv(),
    "naive": lambda x: eb.engine.naive(SAMPLE.units, x).to_csv(),
    "study": lambda x: study.study({"p": PEOPLE}, {"r": labelling.Records()}, [40], {"t": engines.Taylor()}, x,
                                   repetitions=3, seed=1).runs["estimate"].tolist(),
    "forecast": lambda x: planning.forecast(SAMPLE, x, {"r": DESIGN}).table(0.1).to_csv(),
    "report": lambda x: report.report(SAMPLE, x, engines={"closed form": engines.Taylor()}),
    "side by side": lambda x: engines.side_by_side({"Taylor": eb.engine.taylor(SAMPLE, x)}, x).table().to_csv(),
    "plot side by side": lambda x: [t.get_text() for t in plots.draw_side_by_side(
        engines.side_by_side({"Taylor": eb.engine.taylor(SAMPLE)}), x, ax=Figure().subplots()).get_yticklabels()],
    "tipping": lambda x: sensitivity.tipping(with_errors(1), x, 0.4).to_csv(),
    "value of a population": lambda x: PEOPLE.value(x),
}  # fmt: skip


@pytest.mark.every(3)
@pytest.mark.parametrize("door", DOORS)
def test_names_at_every_door(door):
    ask = DOORS[door]
    np.testing.assert_array_equal(ask("pairwise-recall"), ask(m.pairwise_recall))
    raises(eb.DataError, "did you mean 'pairwise-recall'", ask, "pairwise_recall")


RANDOM = {
    "bootstrap": lambda rng: bootstrap(SAMPLE, "rand", replicates=20, rng=rng).values,
    "paired bootstrap": lambda rng: eb.compare(
        PAIR, LABELS, DESIGN, "rand", engine=engines.Resampled(replicates=20), rng=rng).joint.values,
    "with_errors": lambda rng: with_errors(rng).table().to_csv(),
    "grid": lambda rng: sensitivity.grid(
        with_errors(rng), pd.DataFrame({"missed": [0.3]}), imputations=2, progress=False).to_csv(),
    "simulate": lambda rng: simulate.simulate(
        simulate.Zeta(2.5, 9), simulate.Misattribution(0.1), 300, rng).pred.to_csv(),
    "population": lambda rng: simulate.population(simulate.Zeta(2.5, 9), 300, rng).to_csv(),
    "mislabel": lambda rng: labelling.mislabel(
        LABELS, PREDICTION, labelling.Annotator(missed=0.5), rng=rng).to_csv(),
}  # fmt: skip


@pytest.mark.parametrize("door", RANDOM)
def test_a_seed_is_its_generator_and_none_is_another_each_time(door):
    draw = RANDOM[door]
    seeded = draw(7)
    np.testing.assert_array_equal(seeded, draw(np.random.default_rng(7)))
    assert any(np.any(np.asarray(draw(None)) != np.asarray(seeded)) for _ in range(9))
