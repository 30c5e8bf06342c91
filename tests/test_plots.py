import subprocess
import sys
from argparse import Namespace
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from numpy.testing import assert_allclose, assert_array_equal
from test_census import population

import erbayes as eb
from erbayes import metrics as m
from erbayes import plots
from erbayes.study import Study

pytestmark = pytest.mark.lowest
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
    found = eb.engine.taylor(SAMPLE, CHOSEN).apply(CHOSEN)
    assert plots.draw_forest(found, level=0.8, kind=eb.intervals.Symmetric(), ax=ax) is ax
    (points,), (intervals,) = ax.lines, ax.collections
    assert rows(ax) == [x.name for x in CHOSEN]
    assert_array_equal(points.get_xdata(), found.mean)
    assert_array_equal(points.get_ydata(), [0, 1, 2])
    assert_array_equal(spans(intervals)[:, :, 0], found.interval(0.8, eb.intervals.Symmetric()))
    assert_array_equal(spans(intervals)[:, :, 1], [[0, 0], [1, 1], [2, 2]])
    assert ax.get_ylim()[0] > ax.get_ylim()[1], "the first metric stands at the top"
    assert ax.get_xlabel() == "estimate and 80 % interval" and ax.get_legend() is None


def test_forest_of_several_results(ax):
    one, two = eb.engine.taylor(SAMPLE, CHOSEN[:2]).apply(CHOSEN[:2]), eb.engine.jackknife(SAMPLE, CHOSEN[1:])
    draws = eb.metrics.Estimates.of_draws(("other",), np.arange(101.0).reshape(1, 101, 1) / 100, ((0, 1),))
    plots.draw_forest({"Taylor": one, "jackknife": two, "draws": draws}, ax=ax)
    assert rows(ax) == ["pairwise-precision", "pairwise-recall", "b3-recall", "other"]
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["Taylor", "jackknife", "draws"]
    for points, intervals, result, at in zip(
        ax.lines, ax.collections, (one, two, draws), ([0, 1], [1, 2], [3]), strict=True
    ):
        assert_array_equal(points.get_xdata(), result.mean)
        assert_allclose(points.get_ydata(), at, atol=0.4)
        assert_array_equal(spans(intervals)[:, :, 0], result.interval())
        assert_array_equal(spans(intervals)[:, 0, 1], points.get_ydata())
    assert len({line.get_marker() for line in ax.lines}) == 3
    assert len({line.get_color() for line in ax.lines}) == 3
    assert all(is_grey(line.get_color()) for line in ax.lines)
    heights = np.concatenate([line.get_ydata() for line in ax.lines])
    assert len(set(heights)) == len(heights), "results do not lie on one another"


def of_all():
    return eb.engine.taylor(SAMPLE, eb.metrics.ALL).apply(eb.metrics.ALL)


UNBOUNDED = [x.name for x in eb.metrics.ALL if not np.isfinite(x.support).all()]
UNIT_ROWS = [x.name for x in eb.metrics.ALL if x.name not in UNBOUNDED]


def test_forest_has_shares_on_one_axis_and_each_count_on_its_own(ax):
    found = of_all()
    assert plots.draw_forest(found, ax=ax) is ax
    assert [rows(panel) for panel in ax.figure.axes] == [UNIT_ROWS, *([name] for name in UNBOUNDED)]
    bounds = found.table()[["lower", "upper"]]
    for panel in ax.figure.axes:
        (points,), (intervals,) = panel.lines, panel.collections
        assert_array_equal(points.get_xdata(), found.table().estimate[rows(panel)])
        assert_array_equal(spans(intervals)[:, :, 0], bounds.loc[rows(panel)])
    assert [panel.get_xlabel() != "" for panel in ax.figure.axes] == [False] * len(UNBOUNDED) + [True]


def boxes_on_paper(figure):
    """The pictures' parts in pixels, once layout has placed them."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    draw = canvas.get_renderer()
    return draw, [(panel, panel.get_window_extent(draw)) for panel in figure.axes]


@pytest.mark.slow
@pytest.mark.parametrize(
    "names", [[x.name for x in eb.metrics.DEFAULT_METRICS], [x.name for x in eb.metrics.ALL], UNBOUNDED]
)
def test_no_label_of_a_forest_is_cut_and_no_legend_lies_on_data(names):
    results = {f"method {i}": eb.engine.taylor(SAMPLE, names).apply(names) for i in range(4)}
    figure = plots.draw_forest(results).figure
    renderer, panels = boxes_on_paper(figure)
    for panel, box in panels:
        for label in [*panel.get_yticklabels(), panel.xaxis.label]:
            place = label.get_window_extent(renderer)
            assert place.x0 >= 0 and place.y0 >= 0 and place.x1 <= figure.bbox.x1
        assert box.height >= 12 * len(rows(panel)), "a row has the height of its letters"
    legend = panels[0][0].get_legend().get_window_extent(renderer)
    assert legend.y1 <= figure.bbox.y1 and not any(legend.overlaps(box) for _, box in panels)
    places = [box for _, box in panels]
    assert all(above.y0 > below.y1 for above, below in pairwise(places))


def test_a_forest_stays_in_the_place_of_its_axes():
    figure = Figure((12, 12), layout="constrained")
    left, right = figure.subplots(1, 2)
    plots.draw_forest(of_all(), ax=left)
    bare = Figure()
    alone = bare.add_axes((0.3, 0.1, 0.6, 0.8))
    plots.draw_forest(of_all(), ax=alone)
    _, panels = boxes_on_paper(figure)
    edge = right.get_window_extent().x0
    assert all(box.x1 < edge for panel, box in panels if panel is not right)
    corners = np.array([panel.get_position().get_points() for panel in bare.axes])
    assert_allclose([corners.min(axis=(0, 1)), corners.max(axis=(0, 1))], [[0.3, 0.1], [0.9, 0.9]])


@pytest.mark.slow
def test_legends_of_long_names_leave_room_for_axes():
    """As those of thresholds of one file, in both halves of a comparison."""
    labels = TRUE[TRUE.isin(sorted(TRUE.unique())[:8])]
    names = [f"predictions.csv@{x:.2f}" for x in (0.99, 0.9, 0.5)]
    predictions = dict(zip(names, (PRED, TRUE, PRED), strict=True))
    figure = eb.compare(predictions, labels, eb.UniformClusters(), CHOSEN).plot().figure
    FigureCanvasAgg(figure).draw()
    left, right = figure.axes
    assert [half.get_legend()._ncols for half in (left, right)] == [2, 2]
    assert [t.get_text() for t in right.get_legend().get_texts()] == names[1:]
    assert "difference from predictions.csv@0.99" in right.get_xlabel()
    assert min(half.get_position().width for half in (left, right)) > 0.25
    few = eb.compare({"old": PRED, "new": TRUE, "next": PRED}, labels, eb.UniformClusters(), CHOSEN)
    assert few.plot().get_legend()._ncols == 3


def test_forest_of_a_comparison_a_bootstrap_and_differences(ax):
    labels, metrics = TRUE[TRUE.isin(sorted(TRUE.unique())[:8])], [*CHOSEN, m.entities]
    found = eb.compare({"old": PRED, "new": TRUE}, labels, eb.UniformClusters(), metrics)
    plots.draw_forest(found, ax=ax)
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["old", "new"]
    shares, counts = ax.figure.axes
    assert rows(counts) == ["entities"]
    wanted = found.table().set_index(["prediction", "metric"]).estimate
    for panel in (shares, counts):
        for name, points in zip(("old", "new"), panel.lines, strict=True):
            assert_array_equal(points.get_xdata(), wanted[name][rows(panel)])

    wald = eb.intervals.WALD
    right = found.plot(CHOSEN, level=0.8, kind=wald).figure.axes[-1]
    ends = found.differences(0.8, wald)[["lower", "upper"]].iloc[: len(CHOSEN)]
    assert_array_equal(spans(right.collections[0])[:, :, 0], ends)

    boot = eb.engine.bootstrap(SAMPLE, CHOSEN, replicates=200, rng=1)
    drawn = plots.draw_forest(boot, ax=Figure().subplots())
    assert_array_equal(spans(drawn.collections[0])[:, :, 0], boot.interval())

    names = [metric.name for metric in CHOSEN]
    apart = found.joint.part([0, 1, 2, 4, 5, 6]).contrast(np.hstack([-np.eye(3), np.eye(3)]), names)
    assert len(plots.draw_forest(apart, ax=Figure().subplots()).figure.axes) == 1
    fewer = apart.contrast(100 * np.eye(3), names)
    assert len(plots.draw_forest(fewer, ax=Figure().subplots()).figure.axes) > 1


def test_forest_of_nothing(ax):
    with pytest.raises(eb.DataError, match="at least one result"):
        plots.draw_forest({}, ax=ax)


def test_influence(ax):
    table = eb.influence(SAMPLE, m.pairwise_f())
    plots.draw_influence(SAMPLE, m.pairwise_f(), most=3, ax=ax)
    assert_array_equal([bar.get_width() for bar in ax.patches], table.influence[:3])
    assert rows(ax) == [str(i) for i in table.index[:3]]
    assert ax.get_ylim()[0] > ax.get_ylim()[1], "the most influential stands at the top"
    signs = {np.sign(bar.get_width()): bar.get_facecolor() for bar in ax.patches}
    assert len(signs) == 2 and len(set(signs.values())) == 2
    assert signs[1.0] < signs[-1.0], "dark raises"
    plots.draw_influence(SAMPLE, m.pairwise_f(), ax=(everything := Figure().subplots()))
    assert len(everything.patches) == len(table)


def test_balance(ax):
    table = eb.balance(SAMPLE)
    plots.draw_balance(SAMPLE, ax=ax)
    one, points, *_ = ax.lines
    assert list(one.get_xdata()) == [1, 1]
    assert_array_equal(points.get_xdata(), table["ratio"])
    (bars,) = ax.collections
    half = 2 * table["se"] / table["known"]
    wanted = np.transpose([table["ratio"] - half, table["ratio"] + half])
    assert_allclose(spans(bars)[:, :, 0], wanted, rtol=1e-12)
    assert rows(ax) == [name.replace("_", " ") for name in table.index]


def runs_of(repetitions=200):
    """Two populations at two sizes, three estimators, of which one fails at times."""
    rng, found = np.random.default_rng(1), []
    for people, truth in (("easy", 0.9), ("hard", 0.5)):
        for n in (100, 400):
            for estimator in ("closed", "naive", "fails"):
                x = truth + rng.normal(0, 1 / n**0.5, repetitions)
                if estimator == "fails":
                    x[::3] = np.nan
                half = np.full(repetitions, np.nan if estimator == "naive" else 2 / n**0.5)
                row = {"population": people, "plan": "records", "n": n, "estimator": estimator, "metric": "P"}
                row |= {"truth": truth, "repetition": range(repetitions), "estimate": x}
                row |= {"lower": x - half, "upper": x + half, "se": half / 2, "seconds": 1.0, "warned": 0.0}
                row |= {"reason": np.where(np.isnan(x), "bad luck", ""), "kind": "Wald"}
                found.append(pd.DataFrame(row))
    return Study(pd.concat(found, ignore_index=True), 0.95)


CELLS = [("easy", 100), ("easy", 400), ("hard", 100), ("hard", 400)]


def same_height(y):
    """Each series has its own height within rows 0, 1, 2 ..."""
    assert_allclose(np.asarray(y) - y[0], np.arange(len(y)), atol=1e-12)
    assert abs(y[0]) < 0.4
    return y[0]


def test_estimates(ax):
    study = runs_of()
    assert plots.draw_estimates(study, "P", ax=ax) is ax
    assert rows(ax) == ["easy, n = 100", "easy, n = 400", "hard, n = 100", "hard, n = 400"]
    *pairs, truth = ax.collections
    for i, estimator in enumerate(("closed", "naive", "fails")):
        of = study.runs[study.runs.estimator == estimator].groupby(["population", "n"]).estimate
        medians, wide, half = ax.lines[i], pairs[2 * i], pairs[2 * i + 1]
        assert_allclose(medians.get_xdata(), of.median()[CELLS])
        assert_allclose(spans(wide)[:, :, 0], of.quantile([0.025, 0.975]).unstack().loc[CELLS])
        assert_allclose(spans(half)[:, :, 0], of.quantile([0.25, 0.75]).unstack().loc[CELLS])
        assert half.get_linewidth() > wide.get_linewidth()
        assert_array_equal(spans(half)[:, 0, 1], medians.get_ydata())
    assert len({same_height(line.get_ydata()) for line in ax.lines}) == 3
    assert_array_equal(spans(truth)[:, :, 0], [[0.9] * 2] * 2 + [[0.5] * 2] * 2)
    assert_allclose(spans(truth)[:, :, 1].mean(axis=1), range(4))
    assert len({line.get_marker() for line in ax.lines}) == len({line.get_color() for line in ax.lines}) == 3
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["closed", "naive", "fails", "truth"]


def test_estimates_of_one_cell_or_without_any(ax):
    runs = runs_of().runs
    one = runs[(runs.population == "hard") & (runs.n == 400)]
    one.loc[one.estimator == "fails", "estimate"] = np.nan
    plots.draw_estimates(Study(one, 0.95), "P", ax)
    assert rows(ax) == ["n = 400"] and np.isnan(ax.lines[2].get_xdata()).all()
    with pytest.raises(eb.DataError, match=r"no metric 'R'; it has \['P'\]"):
        plots.draw_estimates(runs_of(2), "R", ax)


def dots(panel):
    """The coverages drawn in each row of a panel, by the name of the row."""
    names = rows(panel)
    points = [line for line in panel.lines if line.get_marker() == "o"]
    return {names[round(np.mean(line.get_ydata()))]: list(line.get_xdata()) for line in points}


def test_coverage(ax):
    study = runs_of()
    table = study.table()
    assert plots.draw_coverage(study, ax=ax) is ax
    assert rows(ax) == ["closed", "fails"], "naive has no interval"
    assert list(ax.lines[0].get_xdata()) == [study.level] * 2
    drawn = dots(ax)
    for estimator in ("closed", "fails"):
        own = table[table.estimator == estimator]
        assert drawn[estimator] == list(own.coverage)
        limits = ax.collections[["closed", "fails"].index(estimator)]
        assert_allclose(spans(limits)[:, :, 0], own[["coverage_lower", "coverage_upper"]])
    means = [line.get_xdata()[0] for line in ax.lines if line.get_marker() == "|"]
    expected = table[table.coverage.notna()].groupby("estimator").coverage.agg(["mean", "min"])
    assert means == pytest.approx(expected["mean"].tolist())
    assert [t.get_text() for t in ax.texts] == [f"{m:.2f}, {least:.2f}" for m, least in expected.to_numpy()]
    assert ax.get_xlabel().startswith("coverage of 95 % intervals")


def test_coverage_has_a_panel_for_each_metric_and_plan():
    from matplotlib import pyplot

    pyplot.switch_backend("agg")
    table = runs_of().table()
    several = pd.concat([table, table.assign(metric="R"), table.assign(plan="clusters")])
    first = plots.draw_coverage(several, level=0.9)
    panels = first.figure.axes
    assert [p.get_title() for p in panels] == ["P, records", "R, records", "P, clusters", "R, clusters"]
    assert list(first.lines[0].get_xdata()) == [0.9, 0.9]
    shown = [[list(line.get_xdata()) for line in p.lines if line.get_marker() == "o"] for p in panels]
    assert shown[0] == shown[1] == shown[2] and len(shown[0]) == 2 and not shown[3]


def test_new_axes_when_none_are_given(monkeypatch):
    from matplotlib import pyplot

    pyplot.switch_backend("agg")
    forest = plots.draw_forest(eb.engine.taylor(SAMPLE, CHOSEN).apply(CHOSEN))
    assert rows(forest) == [x.name for x in CHOSEN]
    assert len(plots.draw_influence(SAMPLE, m.b3_recall).patches) == 8 and plots.draw_balance(SAMPLE).lines
    assert plots.draw_estimates(runs_of(5), "P").lines and plots.draw_coverage(runs_of(5).table()).lines
    assert len(pyplot.get_fignums()) == 5
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(eb.DataError, match=r"plots need matplotlib: pip install 'erbayes\[plots\]'"):
        plots.draw_balance(SAMPLE)


@pytest.mark.slow
def test_matplotlib_is_not_loaded_before_it_is_needed():
    code = "import sys, erbayes, erbayes.cli, erbayes.plots; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


class Widest:
    """A kind of interval of one's own."""

    def label(self, result, j):
        return "widest"

    def suits(self, result):
        return result.values is not None

    def bounds(self, result, level):
        return np.stack([result.flat.min(axis=0), result.flat.max(axis=0)], axis=-1)


def test_side_by_side(ax):
    values = np.random.default_rng(1).beta(8, 2, (1, 400, 1))
    draws = eb.metrics.Estimates.of_draws(("b3-recall",), values, ((0, 1),))
    results = {"naive": eb.engine.naive(SAMPLE.units, CHOSEN), "Taylor": eb.engine.taylor(SAMPLE, CHOSEN)}
    kinds = (eb.intervals.EqualTailed(), Widest())
    found = eb.side_by_side(results | {"draws": draws}, CHOSEN, level=0.8, kinds=kinds)
    shown = [m.b3_recall, m.pairwise_recall]
    assert plots.draw_side_by_side(found, shown, ax=ax) is ax
    first = ["b3-recall", "naive", "Taylor", "draws, equal-tailed", "draws, widest"]
    assert rows(ax) == [*first, "pairwise-recall", "naive", "Taylor"]
    weights = [t.get_fontweight() for t in ax.get_yticklabels()]
    assert weights == [("normal", "bold")[row in ("b3-recall", "pairwise-recall")] for row in rows(ax)]
    table = found.table().set_index(["metric", "method", "kind"])
    intervals, (points, crosses, *_) = ax.collections[0], ax.lines
    drawn = [("b3-recall", "draws", "equal-tailed"), ("b3-recall", "draws", "widest")]
    drawn = [("b3-recall", "Taylor", "Beta"), *drawn, ("pairwise-recall", "Taylor", "Beta")]
    assert_array_equal(points.get_xdata(), table.loc[drawn, "estimate"])
    assert_array_equal(points.get_ydata(), [2, 3, 4, 7])
    assert_array_equal(crosses.get_xdata(), [table.loc[(x.name, "naive", "none"), "estimate"] for x in shown])
    assert_array_equal(crosses.get_ydata(), [1, 6])
    ends = spans(intervals)[:, :, 0]
    assert_array_equal(ends[~np.isnan(ends[:, 0])], table.loc[drawn, ["lower", "upper"]])
    assert ax.get_xlabel() == "estimate and 80 % interval"
    assert ax.get_ylim()[0] > ax.get_ylim()[1], "the first metric stands at the top"
    plots.draw_side_by_side(found, ax=(everything := Figure().subplots()))
    assert len(rows(everything)) == len(found.table()) + 3
    with pytest.raises(eb.DataError, match=r"the result has no 'pairwise-f1'; it has pairwise-precision, "):
        plots.draw_side_by_side(found, [m.pairwise_f()], ax=ax)


@pytest.fixture(scope="module")
def fit():
    """A fit whose draws are made by hand: draw d of a chain has (d + 1) times the first."""
    pytest.importorskip("arviz", reason="ArviZ is not installed")
    from erbayes.bayes import Fit, SizeModel
    from erbayes.bayes.data import Evidence
    from erbayes.bayes.model import JoinedDraws

    evidence = Evidence.of(SAMPLE)
    sizes, draws = evidence.grid.size, np.arange(1.0, 202).reshape(1, 201, 1)
    by_size = {"entities": draws / sizes, "kept": draws / 201 / sizes}
    by_size["mates_right"] = draws / 201 / sizes[: len(evidence.data["asked"])]
    joined = JoinedDraws(by_size, {}, {}, draws[..., 0], draws[..., 0], 1.0)
    return Fit(SAMPLE, SizeModel(), evidence, joined, None, 1)


def band(ax):
    """Lower and upper end of a shaded band by x."""
    ends = pd.DataFrame(spans(ax.collections[0])[0]).drop_duplicates().groupby(0)[1]
    return ends.min(), ends.max()


def test_side_by_side_has_counts_apart(ax):
    metrics = [m.splits, *CHOSEN]
    results = {"naive": eb.engine.naive(SAMPLE.units, metrics), "Taylor": eb.engine.taylor(SAMPLE, metrics)}
    plots.draw_side_by_side(eb.side_by_side(results, metrics), ax=ax)
    heads = [["pairwise-precision", "pairwise-recall", "b3-recall"], ["splits"]]
    wanted = [[text for name in part for text in (name, "naive", "Taylor")] for part in heads]
    assert [rows(panel) for panel in ax.figure.axes] == wanted


def test_engines_on_shared_axes():
    found = eb.side_by_side({"naive": eb.engine.naive(SAMPLE.units)}, [m.pairwise_recall])
    left, right = Figure().subplots(1, 2, sharey=True)
    for ax in (left, right):
        plots.draw_side_by_side(found, ax=ax)
    assert [t.get_fontweight() for t in left.get_yticklabels()] == ["bold", "normal"]


@pytest.mark.slow
def test_size_distribution(ax, fit):
    plots.draw_size_distribution(fit, ax=ax)
    grid, units = fit.evidence.grid, SAMPLE.units
    median, predicted, sampled = ax.lines
    assert_allclose(median.get_xdata(), grid.size)
    assert_allclose(median.get_ydata(), 101 / grid.size / grid.width)
    low, high = band(ax)
    assert_allclose(low, 6 / grid.size / grid.width)
    assert_allclose(high, 196 / grid.size / grid.width)
    counts = PRED.value_counts().value_counts().sort_index()
    there = ~np.isnan(predicted.get_ydata())
    at = grid.bin(counts.index.to_numpy(float))
    assert len(set(at)) == len(counts), "each of these sizes has a bin of its own"
    assert_array_equal(predicted.get_xdata()[there], grid.size[at])
    assert_allclose(predicted.get_ydata()[there], counts / grid.width[at])
    bins, entities = np.unique(grid.bin(units.size), return_counts=True)
    assert_array_equal(sampled.get_xdata(), grid.size[bins])
    records = sampled.get_ydata() * grid.width[bins] * grid.size[bins]
    assert_allclose(records.sum(), len(PRED))
    assert_allclose(records / records[0], entities * grid.size[bins] / (entities * grid.size[bins])[0])
    assert ax.get_xscale() == ax.get_yscale() == "log"
    shown = np.concatenate([predicted.get_ydata()[there], sampled.get_ydata()])
    assert ax.get_ylim()[0] < shown.min() and shown.max() < ax.get_ylim()[1]
    labels = {t.get_text() for t in ax.get_legend().get_texts()}
    of_model = {"95 % of the posterior", "posterior median"}
    assert labels == of_model | {"predicted clusters", "sample, weighted by its design"}
    assert len({line.get_linestyle() for line in ax.lines}) == 3


@pytest.mark.slow
def test_sampled_sizes_are_weighted_by_the_design(fit):
    seen = fit.evidence
    by_record = replace(fit, evidence=replace(seen, data=seen.data | {"selection": seen.grid.size}))
    one, other = (plots.draw_size_distribution(x, ax=Figure().subplots()).lines[2] for x in (by_record, fit))
    ratio, size = one.get_ydata() / other.get_ydata(), one.get_xdata()
    assert_allclose(ratio * size, ratio[0] * size[0], err_msg="a large entity was drawn the more easily")


@pytest.mark.slow
def test_retention(ax, fit):
    plots.draw_retention(fit, ax=ax)
    grid, units = fit.evidence.grid, SAMPLE.units.table()
    median, ticks, largest, sampled = ax.lines
    assert_array_equal(ticks.get_xdata(), sorted({s for s in units["records"] if s > 1}))
    assert set(largest.get_xdata()) == {units["records"].max()}
    assert_array_equal(median.get_xdata(), grid.size[1:])
    assert_allclose(median.get_ydata(), 101 / 201 / grid.size[1:])
    low, high = band(ax)
    assert_allclose(low, 6 / 201 / grid.size[1:])
    assert_allclose(high, 196 / 201 / grid.size[1:])
    several = units[units["records"] > 1]
    assert_array_equal(sampled.get_xdata(), several["records"])
    assert_allclose(sampled.get_ydata(), several["common_links"] / several["true_links"])
    assert ax.get_xscale() == "log" and ax.get_ylabel() == "share of links kept"


@pytest.mark.slow
def test_mates(ax, fit):
    plots.draw_mates(fit, ax=ax)
    grid, units = fit.evidence.grid, SAMPLE.units
    median, sampled = ax.lines
    size = grid.size[1 : len(fit.evidence.data["asked"])]
    assert_array_equal(median.get_xdata(), size)
    assert_allclose(median.get_ydata(), 101 / 201 / size)
    asked, right = np.zeros((2, len(grid.size)))
    labelled = np.bincount(units.cluster, units.n)
    for n, m_, cluster in zip(units.n, units.m, units.cluster, strict=True):
        if (records := m_ - labelled[cluster] + n) > 1:  # all entities have the same chance
            (at,) = grid.bin(np.array([records]))
            asked[at] += n / records
            right[at] += n / records * (n - 1) / (records - 1)
    shown = np.flatnonzero(asked)
    assert_allclose(sampled.get_xdata(), grid.size[shown])
    assert_allclose(sampled.get_ydata(), right[shown] / asked[shown])
    assert ax.get_ylabel() == "share of mates that are right"
    FigureCanvasAgg(ax.figure).draw()
    written = {t.get_text(): t.get_window_extent() for t in ax.get_xticklabels(which="both")}
    at = [written[text] for text in sorted(filter(None, written), key=int)]
    assert len(at) > 2 and all(one.x1 < other.x0 for one, other in pairwise(at)), "they do not meet"


# Contours over labelling errors
SHARES = np.linspace(0, 0.9, 10)


def falling(broken=1.0, kept=SHARES):
    """1 - (u + v)/2, without values where v is above `broken`."""
    u, v = (x.ravel() for x in np.meshgrid(SHARES, kept))
    estimate = np.where(v > broken, np.nan, 1 - (u + v) / 2)
    rates = pd.DataFrame({"missed": [0.1, 0.3], "kept": [0.2, 0.1]})
    grid = pd.DataFrame({"missed": u, "kept": v, "metric": "x", "estimate": estimate})
    return grid, Namespace(rates=rates)


@pytest.mark.parametrize("broken", [1.0, 0.45])
def test_tipping_line(ax, broken):
    plots.draw_tipping(*falling(broken), "x", 0.8, ax=ax)
    thin, bold = ax.collections
    assert min(bold.get_linewidth()) > 2 * max(thin.get_linewidth())
    u, v = np.vstack([p.vertices for p in bold.get_paths()]).T
    assert_allclose(u + v, 0.4)
    assert (v <= broken).all()
    labels = [t.get_text() for t in ax.texts]
    assert "0.8" in labels and "0.80" not in labels, "one label for the line"
    assert "missed" in ax.get_xlabel() and "kept" in ax.get_ylabel()
    priors, estimate = (line.get_xydata().tolist() for line in ax.lines)
    assert priors == [[0.1, 0.2], [0.3, 0.1]] and estimate == [[0, 0]]


def test_grids_without_a_tipping_line(ax):
    assert len(plots.draw_tipping(*falling(), "x", 0.05, ax=ax).collections) == 1
    with pytest.raises(eb.DataError, match="the grid has no metric 'y'; it has x"):
        plots.draw_tipping(*falling(), "y", 0.5, ax=ax)
    with pytest.raises(eb.DataError, match="two rates or more each way, not 10 and 1"):
        plots.draw_tipping(*falling(kept=SHARES[:1]), "x", 0.5, ax=ax)
