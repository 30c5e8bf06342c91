"""Calls that come to mind before the documentation is read: they work, or the error names what does."""

import copy
import pickle
from dataclasses import replace
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.contour import ContourSet
from test_columns import EXAMPLES

import erbayes as eb
from erbayes import plots
from erbayes._internal.names import Nearest
from erbayes.analysis import planning, sensitivity
from erbayes.analysis.domains import compare_by_domain
from erbayes.engine import Taylor
from erbayes.labels import Annotator, Beta, Records
from erbayes.metrics.tables import Pictured
from erbayes.study import populations

matplotlib.use("Agg")
NAMES = tuple("pairwise-precision pairwise-recall pairwise-f1 b3-precision b3-recall cluster-recall".split())


@cache
def names() -> dict[str, Any]:
    """What a notebook has after its first cells."""
    people = eb.datasets.people()
    pred, lab, design = people.prediction, people.labels, eb.UniformRecords(people.drawn)
    sample = eb.Sample(eb.measure(pred, lab), design)
    answer = partial(eb.estimate, pred, metrics=["precision", "recall"])
    errors = eb.with_errors(answer, lab, design, pred, Annotator(Beta(2, 8)), imputations=2, rng=1)
    points = pd.DataFrame([(u, v) for u in (0, 0.2) for v in (0, 0.2)], columns=["missed", "kept"])
    world = populations.simulate(populations.Zeta(2.5, 30), populations.Splits(0.2), 2000, 1)
    halves = pd.Series(np.where(np.arange(len(pred)) % 2, "a", "b"), pred.index)
    below, total = pd.DataFrame({"record": pred.index, "x": -1.0}), {"x": ("x", "sum")}
    both = eb.compare({"old": pred, "new": halves}, lab, design, "recall")
    return {
        **{"eb": eb, "pd": pd, "plots": plots, "pred": pred, "lab": lab, "design": design},
        "sample": sample,
        "found": eb.estimate(pred, lab, design),
        "both": both,
        "errors": errors,
        "grid": sensitivity.grid(errors, points, imputations=2, progress=False),
        "halves": halves,
        "numbers": eb.impact(pred, lab, design, ["count", "mean(x)"], attributes=below, features=total),
        "by": eb.by_domain(sample, halves, "recall"),
        "curve": eb.thresholds({0.9: halves, 0.5: pred}, lab, design, ["precision", "recall"]),
        "checked": eb.labels.check(sample, {"recall": 0.95, "entities": 10}),
        "plan": planning.forecast(sample, "recall", {"records": eb.UniformRecords()}),
        "moved": compare_by_domain(both, halves, "recall"),
        "trial": eb.study.study(
            {"w": world}, {"r": Records()}, [50], {"t": Taylor()}, "recall", repetitions=5, seed=1
        ),
    }


def call(text: str) -> Any:
    return eval(text, names())


@pytest.mark.parametrize(
    ("said", "same"),
    {
        "found.to_frame()": "found.table()",
        "found.summary(level=0.9)": "found.table(0.9)",
        "found.to_csv()": "found.table().to_csv()",
        "found.to_latex()": "found.table().to_latex()",
        "found.to_dict()": "found.table().to_dict()",
        "found.head(2)": "found.table().head(2)",
        "found.loc['b3-recall']": "found.table().loc['b3-recall']",
        "pd.DataFrame(found)": "found.table().rename_axis(None)",
        "list(found)[1]": "found['recall']",
        "len(found)": "6",
        "found.se": "found.table()['se']",
        "trial.coverage": "trial.table()['coverage']",
        "by['estimate']": "by.table()['estimate']",
        "'b3-recall' in found, 'recall' in found, 'rand' in found, 1 in found": "True, True, False, False",
        "eb.metrics.b3_recall in found, eb.metrics.rand in found": "True, False",
        "'new' in both, 'recall' in both, 'estimate' in by, 'a' in by, 'recall' in by": "True, False, True, False, True",
        "both.summary()": "both.table()",
        "both['new'].table()": "both.joint.part([1]).table()",
        "trial.summary()": "trial.table()",
        "errors.summary(level=0.5)": "errors.table(level=0.5)",
        "by.to_frame(0.8)": "by.table(0.8)",
        "len(sample)": "200",
        "sample.summary()['value'].to_dict()": "sample.facts()",
        "sample.units.to_csv()": "sample.units.table().to_csv()",
        "curve['recall']": "curve.table('recall')",
        "curve[eb.metrics.pairwise_recall]": "curve.table('recall')",
        "by['recall']['domain']": "by.table()['domain']",
        "checked['recall']": "checked.table().loc['pairwise-recall']",
        "checked[['recall', 'entities']]": "checked.table()",
        "curve['n_eff']": "curve.table()['n_eff']",
        "dict(found)['b3-recall']": "found['b3-recall']",
    }.items(),
)
def test_a_call_returns(said, same):
    found, wanted = call(said), call(same)
    if isinstance(wanted, pd.DataFrame):
        pd.testing.assert_frame_equal(found, wanted)
    elif isinstance(wanted, pd.Series):
        pd.testing.assert_series_equal(found, wanted)
    else:
        np.testing.assert_equal(found, wanted)


@pytest.mark.parametrize(
    ("said", "x"),
    {
        "found.plot()": "found.estimate",
        "found.plot(['recall', 'b3-recall'], level=0.5)": "found.estimate[[1, 4]]",
        "both.plot()": "both['old'].estimate",
        "both.plot().figure.axes[1]": "both.differences()['estimate']",
        "errors.plot()": "errors.random.estimate",
        "plots.draw_forest(errors, 'recall')": "errors.random.estimate[1:]",
        "plots.draw_forest({'plain': found, 'two': both}, 'recall')": "both['old'].estimate",
        "numbers.plot()": "numbers.table().eval('100 * difference / abs(estimate)')",
        "by.plot()": "by.table()['estimate']",
        "sample.plot()": "eb.balance(sample)['ratio']",
        "checked.plot()": "checked.minimum[:1]",
        "plan.plot(sizes=[100, 300])": "[100, 300]",
        "moved.plot()": "moved['estimate']",
    }.items(),
)
def test_a_picture_shows(said, x):
    lines = [np.asarray(line.get_xdata(), dtype=float) for line in call(said).get_lines()]
    wanted = np.asarray(call(x), dtype=float)
    assert any(line.shape == wanted.shape and np.allclose(line, wanted, equal_nan=True) for line in lines)


def test_a_grid_draws_its_first_metric_without_a_bold_line():
    ax, bold = (call(f"plots.draw_tipping(grid, errors{more})") for more in ("", ", 'pairwise-recall', 0.9"))
    assert ax.get_title() == "pairwise-precision" and "bold" in bold.get_title()
    widths = [[c.get_linewidths()[0] for c in picture.figure.findobj(ContourSet)] for picture in (ax, bold)]
    assert widths == [[1.0], [1.0, 2.5]]


@pytest.mark.parametrize(
    ("said", "remedy"),
    {
        "found.std": "did you mean 'sd'?",
        "found['lowest']": "no metric 'lowest'",
        "found['lower']": "'lower' is a column, not a metric: table()['lower']",
        "found.estimates": "did you mean 'estimate'?",
        "found.to_dataframe()": "did you mean 'to_frame'?",
        "found.talbe()": "did you mean 'table'?",
        "eb.compare({'old': pred, 'new': pred}, lab)": "design is missing: give compare(predictions, labels, ",
        "eb.compare({'old': pred})": "labels and design are missing",
        "eb.thresholds({0.5: pred}, lab)": "design is missing: give thresholds(edges, labels, design)",
        "eb.impact(pred, lab)": "design is missing: give impact(prediction, labels, design)",
        "curve['rand']": "no column 'rand'; the table has metric, threshold, ",
        "bool(checked)": "ask for found.verdict.value == 'holds'",
        "both['new'] - both['old']": "compare(predictions, labels, design).subtract('old', 'new')",
        "by['a']": "no column 'a'; the table has domain, metric, ",
        "list(by)": "no column 0; the table has ",
        "numbers.sentence()": "did you mean 'sentences'?",
        "eb.estimates": "did you mean 'estimate'?",
        "eb.metrics.b3_recall(pred, lab)": "call erbayes.estimate(prediction, labels, design, metrics='b3-recall')",
        "both.plot(kind=3)": "a kind of interval is an object such as WALD or EqualTailed(), not 3",
        "plots.draw_forest(numbers)": "a forest is of estimates",
        "plots.draw_mates(sample)": "this is a picture of a fit, as erbayes.bayes.fast(sample) returns",
        "plots.draw_size_distribution(found)": "this is a picture of a fit",
    }.items(),
)
def test_a_call_is_refused_with_what_works_instead(said, remedy):
    with pytest.raises((AttributeError, TypeError, eb.DataError)) as refused:
        call(said)
    assert remedy in str(refused.value)


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_result_converts_and_draws_itself(name):
    result = EXAMPLES[name]()
    table = result.table()
    pd.testing.assert_frame_equal(result.to_frame(), table)
    pd.testing.assert_frame_equal(result.summary(), table)
    assert result.to_csv() == table.to_csv()
    if isinstance(result, Pictured):
        assert isinstance(result.plot(), Axes)
        matplotlib.pyplot.close("all")


@pytest.mark.parametrize("name", ["found", "both", "errors", "by", "trial", "sample"])
def test_a_result_is_copied_pickled_and_probed_as_before(name):
    result = names()[name]
    for again in (copy.deepcopy(result), pickle.loads(pickle.dumps(result))):
        pd.testing.assert_frame_equal(again.table(), result.table())
    probed = ("_repr_svg_", "_ipython_display_", "__array__", "__arrow_c_stream__", "apply", "recommended")
    assert not any(hasattr(result, probe) for probe in probed)
    assert not hasattr(type(result).__new__(type(result)), "names")


def test_a_metric_with_a_name_is_itself_in_another_process():
    for metric in (eb.metrics.pairwise_f1, eb.metrics.rand, eb.metrics.b3_recall):
        assert pickle.loads(pickle.dumps(metric)) is metric and copy.deepcopy(metric) is metric
    own = replace(eb.metrics.b3_recall, name="own")
    assert pickle.loads(pickle.dumps(own)).name == "own"


def test_an_error_inside_a_property_keeps_its_own_words():
    class Broken(Nearest):
        @property
        def estimate(self) -> Any:
            return SimpleNamespace().nothing

    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = Broken().estimate
