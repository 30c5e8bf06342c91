import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from test_census import population

import erbayes as eb
from erbayes import metrics as m
from erbayes import plots

PRED, TRUE = population(4)
SAMPLE = eb.Sample(eb.measure(PRED, TRUE[TRUE.isin(sorted(TRUE.unique())[:8])]), eb.UniformClusters())
CHOSEN = (m.pairwise_precision, m.pairwise_recall, m.b3_recall)


@pytest.fixture
def ax():
    return Figure().subplots()


def rows(ax):
    return [t.get_text() for t in ax.get_yticklabels()]


def spans(collection):
    return np.array([path.vertices for path in collection.get_paths()])


def is_grey(colour):
    return len(set(to_rgb(colour))) == 1


def test_forest_of_one_result(ax):
    found = eb.taylor(SAMPLE, CHOSEN).apply(CHOSEN)
    assert plots.forest(found, level=0.8, scale=eb.identity, ax=ax) is ax
    (points,), (intervals,) = ax.lines, ax.collections
    assert rows(ax) == [x.name for x in CHOSEN]
    np.testing.assert_array_equal(points.get_xdata(), found.mean)
    np.testing.assert_array_equal(points.get_ydata(), [0, 1, 2])
    np.testing.assert_array_equal(spans(intervals)[:, :, 0], found.interval(0.8, eb.identity))
    np.testing.assert_array_equal(spans(intervals)[:, :, 1], [[0, 0], [1, 1], [2, 2]])
    assert ax.get_ylim()[0] > ax.get_ylim()[1], "the first metric stands at the top"
    assert ax.get_xlabel() == "estimate and 80 % interval"
    assert ax.get_legend() is None


def test_forest_of_several_results(ax):
    one, two = eb.taylor(SAMPLE, CHOSEN[:2]).apply(CHOSEN[:2]), eb.jackknife(SAMPLE, CHOSEN[1:])
    draws = eb.uncertain.Draws(("other",), np.arange(101.0).reshape(1, 101, 1) / 100, ((0, 1),))
    plots.forest({"Taylor": one, "jackknife": two, "draws": draws}, ax=ax)
    assert rows(ax) == ["pairwise-precision", "pairwise-recall", "b3-recall", "other"]
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["Taylor", "jackknife", "draws"]
    for points, intervals, result, at in zip(ax.lines, ax.collections, (one, two, draws), ([0, 1], [1, 2], [3]), strict=True):
        np.testing.assert_array_equal(points.get_xdata(), result.mean)
        np.testing.assert_allclose(points.get_ydata(), at, atol=0.4)
        np.testing.assert_array_equal(spans(intervals)[:, :, 0], result.interval())
        np.testing.assert_array_equal(spans(intervals)[:, 0, 1], points.get_ydata())
    assert len({line.get_marker() for line in ax.lines}) == 3
    assert len({line.get_color() for line in ax.lines}) == 3
    assert all(is_grey(line.get_color()) for line in ax.lines)
    heights = np.concatenate([line.get_ydata() for line in ax.lines])
    assert len(set(heights)) == len(heights), "results do not lie on one another"


def test_forest_of_nothing(ax):
    with pytest.raises(eb.DataError, match="at least one result"):
        plots.forest({}, ax=ax)


def test_sampling_distribution(ax):
    rng = np.random.default_rng(1)
    estimates = {"naive": rng.normal(1, 0.01, 700), "estimated": rng.normal(0.5, 0.1, 500)}
    plots.sampling_distribution(estimates, 0.52, ax=ax)
    (truth,) = ax.lines
    assert list(truth.get_xdata()) == [0.52, 0.52]
    labels = [t.get_text() for t in ax.get_legend().get_texts()]
    assert sorted(labels) == ["estimated, 500 samples", "naive, 700 samples", "truth, 0.52"]
    assert len({p.get_hatch() or "" for p in ax.patches}) == 2
    assert len({p.get_facecolor() for p in ax.patches}) == 2
    assert all(is_grey(p.get_facecolor()[:3]) for p in ax.patches)
    for patch, values in zip(ax.patches, estimates.values(), strict=True):
        corners = patch.get_xy()
        assert corners[:, 0].min() <= values.min() and corners[:, 0].max() >= values.max()
    edges = np.unique(ax.patches[0].get_xy()[:, 0])
    np.testing.assert_array_equal(edges, np.unique(ax.patches[1].get_xy()[:, 0]))
    for patch, values in zip(ax.patches, estimates.values(), strict=True):
        counts, _ = np.histogram(values, edges)
        assert patch.get_xy()[:, 1].max() == counts.max()


@pytest.mark.parametrize("estimates, message", [
    ({}, "at least one estimator"),
    ({"a": [1.0], "b": [1.0, np.nan, np.inf]}, "estimates of 'b': 2 of 3 are not finite"),
    ({"a": []}, "estimates of 'a': there are none"),
])  # fmt: skip
def test_sampling_distributions_that_cannot_be_drawn(ax, estimates, message):
    with pytest.raises(eb.DataError, match=message):
        plots.sampling_distribution(estimates, 0.5, ax=ax)


def test_influence(ax):
    table = eb.influence(SAMPLE, m.pairwise_f())
    plots.influence(table, most=3, ax=ax)
    np.testing.assert_array_equal([bar.get_width() for bar in ax.patches], table.influence[:3])
    assert rows(ax) == [str(i) for i in table.index[:3]]
    assert ax.get_ylim()[0] > ax.get_ylim()[1], "the most influential stands at the top"
    signs = {np.sign(bar.get_width()): bar.get_facecolor() for bar in ax.patches}
    assert len(signs) == 2 and len(set(signs.values())) == 2
    assert signs[1.0] < signs[-1.0], "dark raises"
    plots.influence(table, ax=(everything := Figure().subplots()))
    assert len(everything.patches) == len(table)


def test_balance(ax):
    table = pd.DataFrame({"estimate": [90.0, 30], "se": [10.0, 3], "known": [100.0, 20], "ratio": [0.9, 1.5]},
                         index=["records", "links"])  # fmt: skip
    plots.balance(table, ax=ax)
    one, points, *_ = ax.lines
    assert list(one.get_xdata()) == [1, 1]
    np.testing.assert_array_equal(points.get_xdata(), [0.9, 1.5])
    (bars,) = ax.collections
    np.testing.assert_allclose(spans(bars)[:, :, 0], [[0.7, 1.1], [1.2, 1.8]], rtol=1e-12)
    assert rows(ax) == ["records", "links"]
    plots.balance(eb.balance(SAMPLE), ax=Figure().subplots())


def test_new_axes_when_none_are_given(monkeypatch):
    from matplotlib import pyplot

    pyplot.switch_backend("agg")
    try:
        assert rows(plots.forest(eb.taylor(SAMPLE, CHOSEN).apply(CHOSEN))) == [x.name for x in CHOSEN]
        assert len(plots.influence(eb.influence(SAMPLE, m.b3_recall)).patches) == 8
        assert plots.balance(eb.balance(SAMPLE)).lines
        assert plots.sampling_distribution({"a": np.ones(3)}, 1.0).patches
        assert len(pyplot.get_fignums()) == 4
    finally:
        pyplot.close("all")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(eb.DataError, match=r"plots need matplotlib: pip install 'erbayes\[plots\]'"):
        plots.sampling_distribution({"a": np.ones(3)}, 1.0)


def test_matplotlib_is_not_loaded_before_it_is_needed():
    code = "import sys, erbayes, erbayes.cli, erbayes.plots; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
