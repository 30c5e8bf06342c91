"""Pictures of results. Each function takes a result and returns Axes; nothing is estimated here.

Pictures need matplotlib (the extra `plots`), which is loaded when the first one is drawn. Everything is
black, white and grey, and series differ in shape as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from .arrays import FloatArray
from .causes import Split, Tree
from .compare import Comparison
from .domains import ByDomain
from .errors import DataError
from .intervals import Kind, suitable
from .metrics import NAMED, Support, Wanted, chosen
from .uncertain import Draws, Normal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import DataArray, DataTree

    from .bayes import Fit
    from .engine import SideBySide
    from .sensitivity import Grid
    from .study import Study

MARKERS = "osD^vP*X"
Result = Normal | Draws
HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "++++")


def _axes(ax: Axes | None, height: float = 4.0) -> Axes:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ModuleNotFoundError as error:
        raise DataError("plots need matplotlib: pip install 'erbayes[plots]'") from error
    return pyplot.subplots(figsize=(7, height), layout="constrained")[1]


def _style(i: int, series: int, label: str) -> dict[str, Any]:
    """Style of points of series i: a marker and a grey of its own, from black to light."""
    grey = f"{np.linspace(0, 0.65, series)[i]:.2f}"
    marker = MARKERS[i % len(MARKERS)]
    return {"marker": marker, "linestyle": "", "color": grey, "markersize": 5, "label": label}


def _legend(ax: Axes, series: int) -> None:
    """Draw the legend above the axes, where it hides nothing."""
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=min(series, 3), frameon=False)


def _rows(ax: Axes, names: Sequence[Any]) -> None:
    """Name the rows of axes, the first at the top."""
    ax.set_yticks(range(len(names)), [str(n) for n in names])
    ax.set_ylim(len(names) - 0.5, -0.5)


def _height(rows: int, series: int = 1) -> float:
    """Height of a figure in inches, for rows with this many series each."""
    return 1.2 + 0.25 * rows * max(1.0, 0.6 * series)


def _offsets(series: int) -> FloatArray:
    """Height of each series above the middle of its row, (series,), as a share of the row."""
    return np.asarray((np.arange(series) - (series - 1) / 2) * 0.8 / series)


def _cells(table: pd.DataFrame) -> pd.Series:
    """Name of the cell of each row, made of the columns in which cells differ."""
    parts = [table["population"], table["plan"], "n = " + table["n"].astype(str), table["metric"]]
    first, *others = [part for part in parts if part.nunique() > 1] or [parts[2]]
    return first.str.cat(pd.concat(others, axis=1), sep=", ") if others else first


def _bounded(support: Support, lower: float, upper: float) -> bool:
    """Whether a metric goes on the axis of shares.

    Its support decides. A difference has no bounds, and its interval decides.
    """
    if np.isneginf(support[0]):
        return bool(lower >= -1 and upper <= 1)
    return bool(np.isfinite(support).all())


def _panels(ax: Axes | None, blocks: Sequence[Sequence[str]], series: int = 1) -> list[Axes]:
    """Axes for blocks of named rows, one below the other, in place of `ax`."""
    rows = [len(block) for block in blocks]
    ax = _axes(ax, _height(sum(rows), series) + 0.5 * (len(rows) - 1))
    panels = [ax]
    if len(rows) > 1:
        whole, figure = ax.get_subplotspec(), ax.figure
        if whole is None:
            (left, bottom), (right, top) = ax.get_position().get_points()
            whole = figure.add_gridspec(1, 1, left=left, bottom=bottom, right=right, top=top)[0]
        grid = whole.subgridspec(len(rows), 1, height_ratios=[n + 0.4 for n in rows])
        ax.set_subplotspec(grid[0])
        panels += [figure.add_subplot(grid[i]) for i in range(1, len(rows))]
    for panel, block in zip(panels, blocks, strict=True):
        _rows(panel, block)
    return panels


def _ticks(panel: Axes) -> None:
    """Draw few and round ticks, with commas between thousands."""
    panel.locator_params(axis="x", nbins=6)
    panel.xaxis.set_major_formatter(lambda x, _: f"{x:,.10g}")


def _by_name(results: Result | Comparison | Mapping[str, Result]) -> dict[str, Result]:
    """Results by name. A comparison has one result per prediction."""
    if isinstance(results, Comparison):
        k = len(results.metrics)
        return {
            name: results.joint.part(range(i * k, (i + 1) * k)) for i, name in enumerate(results.predictions)
        }
    return dict(results) if isinstance(results, Mapping) else {"": results}


def forest(
    result: Result | Comparison | Mapping[str, Result],
    *,
    level: float = 0.95,
    kinds: Sequence[Kind] = (),
    ax: Axes | None = None,
) -> Axes:
    """Draw estimates and intervals, one row per metric.

    Shares have one axis. Each count, and each other metric without an upper end, has its own axis below.

    Parameters
    ----------
    result : Normal, Draws or Comparison, or mapping of name -> Normal or Draws
        Several results, or the predictions of a comparison, have a marker each. They may differ in metrics.
    level : float in (0, 1)
        Level of the intervals.
    kinds : sequence of Kind
        Each result has intervals of the first kind that suits it, and of its own kind if none does.
    ax : Axes, optional
        Axes to draw on, instead of a new figure. Labels have room if its figure has `layout="constrained"`.

    Returns
    -------
    Axes
        The first axis, that of shares. Those below follow it in the figure.

    Raises
    ------
    DataError
        No result, or matplotlib is not installed.

    Examples
    --------
    >>> import erbayes as eb
    >>> labels = {1: "x", 2: "x", 3: "y", 4: "z"}
    >>> result = eb.estimate({1: "a", 2: "a", 3: "a", 4: "b"}, labels, eb.UniformClusters(),
    ...                      [eb.metrics.b3_precision, eb.metrics.b3_recall, eb.metrics.entities])
    >>> from matplotlib.figure import Figure
    >>> ax = forest(result, ax=Figure().subplots())
    >>> [[t.get_text() for t in panel.get_yticklabels()] for panel in ax.figure.axes]
    [['b3-precision', 'b3-recall'], ['entities']]
    """
    results = _by_name(result)
    if not results:
        raise DataError("a forest plot needs at least one result")
    tables = [r.table(level, suitable(kinds, r)[0]) for r in results.values()]
    supports = dict(pair for r in results.values() for pair in zip(r.names, r.support, strict=True))
    ends = pd.concat(tables).groupby(level=0, sort=False).agg({"lower": "min", "upper": "max"})
    shares = [name for name, low, high in ends.itertuples() if _bounded(supports[name], low, high)]
    blocks = [shares] * bool(shares) + [[name] for name in ends.index if name not in shares]
    panels = _panels(ax, blocks, len(results))
    for i, (label, table) in enumerate(zip(results, tables, strict=True)):
        style, offset = _style(i, len(results), label), _offsets(len(results))[i]
        for panel, block in zip(panels, blocks, strict=True):
            own = table[table.index.isin(block)]
            y = np.array([block.index(name) for name in own.index]) + offset
            panel.hlines(y, own["lower"], own["upper"], color=style["color"])
            panel.plot(own["estimate"], y, **style)
    for panel in panels:
        _ticks(panel)
    panels[-1].set_xlabel(f"estimate and {100 * level:g} % interval")
    if len(results) > 1 or list(results) != [""]:
        _legend(panels[0], len(results))
    return panels[0]


def side_by_side(result: SideBySide, metrics: Wanted | None = None, *, ax: Axes | None = None) -> Axes:
    """Draw estimates and intervals of several engines, one row per engine under the name of each metric.

    A cross is an estimate without an interval. Axes are those of `forest`.

    Parameters
    ----------
    result : SideBySide
        From `erbayes.engine.side_by_side`.
    metrics : Metric or str, or several, optional
        The metrics to show; all by default.
    ax : Axes, optional
        As in `forest`.

    Raises
    ------
    DataError
        A metric that the table does not have.

    Examples
    --------
    >>> import erbayes as eb
    >>> from erbayes import engine
    >>> from matplotlib.figure import Figure
    >>> units = eb.measure({1: "a", 2: "a", 3: "a", 4: "b"}, {1: "x", 2: "x", 3: "y", 4: "z"})
    >>> sample, b3 = eb.Sample(units, eb.UniformClusters()), [eb.metrics.b3_precision]
    >>> engines = {"naive": eb.naive(units, b3), "Taylor": eb.taylor(sample, b3)}
    >>> ax = side_by_side(engine.side_by_side(engines, b3), ax=Figure().subplots())
    >>> [t.get_text() for t in ax.get_yticklabels()]
    ['b3-precision', 'naive', 'Taylor']
    """
    table = result.table()
    available = list(table["metric"].unique())
    names = available if metrics is None else [m.name for m in chosen(metrics)]
    lacking = [name for name in names if name not in available]
    if lacking:
        raise DataError(f"no engine here estimates {', '.join(lacking)}; there are {', '.join(available)}")
    twice = table.duplicated(["method", "metric"], keep=False)
    return _blocks(
        table.assign(label=table["method"].mask(twice, table["method"] + ", " + table["kind"])), names, ax
    )


def by_domain(
    result: ByDomain,
    metrics: Wanted | None = None,
    *,
    level: float = 0.95,
    kind: Kind | None = None,
    simultaneous: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw estimates and intervals of domains, one row per domain under the name of each metric.

    A cross is an estimate without an interval, since it rests on few draws. Axes are those of `forest`.

    Parameters
    ----------
    result : ByDomain
        From `erbayes.by_domain`.
    metrics : Metric or str, or several, optional
        The metrics to show; all by default.
    level, kind, simultaneous
        As in `ByDomain.table`.
    ax : Axes, optional
        As in `forest`.

    Raises
    ------
    DataError
        A metric that the result does not have.

    Examples
    --------
    >>> import erbayes as eb
    >>> from matplotlib.figure import Figure
    >>> sample = eb.Sample(eb.measure({i: i // 4 for i in range(96)}, {i: i // 3 for i in range(96)}),
    ...                    eb.UniformClusters())
    >>> result = eb.by_domain(sample, {i: "FR" if i < 48 else "US" for i in range(96)}, "b3-recall")
    >>> ax = by_domain(result, ax=Figure().subplots())
    >>> [t.get_text() for t in ax.get_yticklabels()]
    ['b3-recall', 'FR', 'US']
    """
    table = result.table(level, kind, simultaneous=simultaneous)
    available = [m.name for m in result.metrics]
    names = available if metrics is None else [m.name for m in chosen(metrics)]
    if lacking := [name for name in names if name not in available]:
        raise DataError(f"these domains have no {', '.join(lacking)}; they have {', '.join(available)}")
    shown = table[table["estimate"].notna()]
    return _blocks(
        shown.assign(label=shown["domain"]), [n for n in names if (shown["metric"] == n).any()], ax
    )


def tree(
    result: Tree,
    *,
    level: float = 0.95,
    kind: Kind | None = None,
    simultaneous: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw an honest tree from left to right. Leaves have their estimates and intervals.

    A split is a question. Units whose feature is at most the number, or which lack it, are above.

    Parameters
    ----------
    result : Tree
        From `erbayes.causes.tree`.
    level, kind, simultaneous
        As in `Tree.table`.
    ax : Axes, optional
        Axes to draw on, instead of a new figure.

    Examples
    --------
    >>> import erbayes as eb
    >>> from erbayes import causes
    >>> from matplotlib.figure import Figure
    >>> labels = {i: i // 4 if i < 400 else i // 2 for i in range(800)}
    >>> sample = eb.Sample(eb.measure({i: i // 2 for i in range(800)}, labels), eb.UniformClusters())
    >>> found = causes.tree(sample, "pairwise-recall", causes.features(sample)[["records"]], rng=1)
    >>> [text.get_text() for text in tree(found, ax=Figure().subplots()).texts]
    ['records ≤ 3?', 'yes', '1: 1.000 [0.976, 1.000]', 'no', '2: 0.333 [0.326, 0.341]']
    """
    table = result.table(level, kind, simultaneous=simultaneous)
    ax = _axes(ax, _height(2 * len(table)))
    shown = [
        f"{leaf}: {estimate:.3f}" + ("" if np.isnan(lower) else f" [{lower:.3f}, {upper:.3f}]")
        for leaf, estimate, lower, upper in table[["leaf", "estimate", "lower", "upper"]].to_numpy()
    ]

    def height(node: Split | int) -> float:
        return float(node) if isinstance(node, int) else (height(node.below) + height(node.above)) / 2

    def draw(node: Split | int, depth: int) -> None:
        at = height(node)
        if isinstance(node, int):
            ax.text(depth, at, shown[node - 1], va="center", bbox={"facecolor": "0.92"})
            return
        question = node.feature if node.indicator else f"{node.feature} ≤ {node.at:.4g}"
        ax.text(depth, at, f"{question}?", va="center", bbox={"facecolor": "white"})
        answers = ("no", "yes") if node.indicator else ("yes", "no")
        for answer, child in zip(answers, (node.below, node.above), strict=True):
            end = height(child)
            ax.plot([depth + 0.1, depth + 1], [at, end], color="0.5", linewidth=1, zorder=0)
            ax.text(depth + 0.8, at + 0.7 * (end - at) / 0.9, answer, ha="center", fontsize="small")
            draw(child, depth + 1)

    draw(result.root, 0)
    metric = result.leaves.metrics[0].name
    ax.set_title(f"{metric}, estimate and {100 * level:g} % interval")
    ax.set_ylim(len(table) + 0.6, 0.4)
    ax.set_xlim(-0.1, _depth(result.root) + 1)
    ax.set_axis_off()
    return ax


def _depth(node: Split | int) -> int:
    """Return the number of splits on the longest way to a leaf."""
    return 0 if isinstance(node, int) else 1 + max(_depth(node.below), _depth(node.above))


def _blocks(table: pd.DataFrame, names: Sequence[str], ax: Axes | None) -> Axes:
    """Draw the rows of a table, which its column `label` names, under the name of each metric."""
    groups = {name: table[table["metric"] == name] for name in names}
    shares = [name for name in names if _is_share(name, groups[name])]
    parts = [shares] * bool(shares) + [[name] for name in names if name not in shares]
    blocks = [[text for name in part for text in (name, *groups[name]["label"])] for part in parts]
    panels = _panels(ax, blocks)
    for panel, part, labels in zip(panels, parts, blocks, strict=True):
        heads = np.cumsum([0, *(1 + len(groups[name]) for name in part[:-1])])
        shown = pd.concat([groups[name] for name in part])
        y = np.setdiff1d(np.arange(len(labels)), heads)
        bare = shown["lower"].isna().to_numpy()
        panel.hlines(y, shown["lower"], shown["upper"], color="black")
        panel.plot(shown["estimate"][~bare], y[~bare], "o", color="black", markersize=5)
        panel.plot(shown["estimate"][bare], y[bare], "x", color="black", markersize=6)
        for label in panel.get_yticklabels():
            label.set_fontweight("bold" if label.get_text() in names else "normal")
        for head in heads:
            panel.axhline(head, color="0.85", linewidth=1, zorder=0)
        _ticks(panel)
    panels[-1].set_xlabel(f"estimate and {100 * table['level'].iloc[0]:g} % interval")
    return panels[0]


def _is_share(name: str, rows: pd.DataFrame) -> bool:
    """Whether a metric of a table goes on the axis of shares. The rows of an own metric decide."""
    support = NAMED[name].support if name in NAMED else (-np.inf, np.inf)
    ends = rows[["estimate", "lower", "upper"]].to_numpy(dtype=float)
    return _bounded(support, float(np.nanmin(ends)), float(np.nanmax(ends)))


def sampling_distribution(
    estimates: Mapping[str, ArrayLike], truth: float, *, ax: Axes | None = None
) -> Axes:
    """Draw histograms of the estimates from repeated samples, one per estimator, and the truth as a line.

    Parameters
    ----------
    estimates : mapping, name of the estimator -> estimates
        One estimate per sample.
    truth : float
    ax : Axes, optional
        Axes to draw on, instead of a new figure.

    Raises
    ------
    DataError
        No estimates, or estimates that are not finite.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> ax = sampling_distribution({"naive": [0.9, 1, 1]}, 0.52, ax=Figure().subplots())
    >>> [t.get_text() for t in ax.get_legend().get_texts()]
    ['naive, 3 samples', 'truth, 0.52']
    """
    if not estimates:
        raise DataError("a sampling distribution needs at least one estimator")
    values = {name: np.asarray(v, dtype=float) for name, v in estimates.items()}
    for name, v in values.items():
        undefined = int(np.count_nonzero(~np.isfinite(v)))
        if undefined:
            raise DataError(f"estimates of {name!r}: {undefined} of {len(v)} are not finite")
        if not len(v):
            raise DataError(f"estimates of {name!r}: there are none")
    ax = _axes(ax)
    edges = np.histogram_bin_edges(np.concatenate(list(values.values())), bins=50)
    fill = np.linspace(0.35, 0.95, len(values))
    for i, (name, v) in enumerate(values.items()):
        ax.hist(
            v,
            edges.tolist(),
            histtype="stepfilled",
            facecolor=f"{fill[i]:.2f}",
            edgecolor="black",
            alpha=0.8,
            hatch=HATCHES[i % len(HATCHES)],
            label=f"{name}, {len(v):,} samples",
        )
    ax.axvline(truth, color="black", linestyle="--", label=f"truth, {truth:.4g}")
    ax.set_xlabel("estimate")
    ax.set_ylabel("samples")
    _legend(ax, len(values) + 1)
    return ax


def influence(table: pd.DataFrame, most: int = 20, ax: Axes | None = None) -> Axes:
    """Draw the most influential units as bars: dark if they raise the estimate, light if they lower it.

    Parameters
    ----------
    table : DataFrame
        From `erbayes.influence`, the most influential unit first.
    most : int
        The number of units to show.
    ax : Axes, optional
        Axes to draw on, instead of a new figure.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> table = pd.DataFrame({"influence": [-0.2, 0.1]}, index=["x", "y"])
    >>> [float(bar.get_width()) for bar in influence(table, ax=Figure().subplots()).patches]
    [-0.2, 0.1]
    """
    shown = table["influence"].head(most)
    ax = _axes(ax, _height(len(shown)))
    ax.barh(range(len(shown)), shown, color=np.where(shown > 0, "0.3", "0.8").tolist(), edgecolor="black")
    ax.axvline(0, color="black", linewidth=1)
    _rows(ax, list(shown.index))
    ax.locator_params(axis="x", nbins=5)
    ax.set_xlabel("influence on the estimate")
    return ax


def balance(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw ratios of estimated to known totals, with 2 standard errors on either side, and a line at 1.

    Parameters
    ----------
    table : DataFrame
        From `erbayes.balance`.
    ax : Axes, optional
        Axes to draw on, instead of a new figure.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> table = pd.DataFrame({"se": [1.0], "known": [10.0], "ratio": [0.9]}, index=["records"])
    >>> balance(table, ax=Figure().subplots()).lines[1].get_xdata().tolist()
    [0.9]
    """
    ax = _axes(ax, 1.2 + 0.4 * len(table))
    ax.axvline(1, color="black", linestyle="--", linewidth=1)
    ax.errorbar(
        table["ratio"],
        range(len(table)),
        xerr=2 * table["se"] / table["known"],
        fmt="o",
        color="black",
        capsize=3,
    )
    _rows(ax, list(table.index))
    ax.set_xlabel("estimated / known, and 2 standard errors either side")
    return ax


def estimates(study: Study, metric: str, ax: Axes | None = None) -> Axes:
    """Draw the estimates of each estimator in every cell of a study, and the truth of the cell.

    Thin lines hold the middle 95 % of the estimates, thick ones the middle half; markers are medians.
    For a single cell `sampling_distribution` shows more. Failures are left out.

    Parameters
    ----------
    study : Study
        From `erbayes.study.study`.
    metric : str
        Name of a metric of the study.
    ax : Axes, optional
        Axes to draw on, instead of a new figure.

    Raises
    ------
    DataError
        A metric that the study does not have.

    Examples
    --------
    >>> import erbayes as eb
    >>> from erbayes.study import Study
    >>> runs = pd.DataFrame({"population": "p", "plan": "records", "n": [100, 100, 200, 200], "metric": "P",
    ...                      "estimator": "e", "truth": 0.5, "estimate": [0.3, 0.7, 0.4, 0.6]})
    >>> from matplotlib.figure import Figure
    >>> ax = estimates(Study(runs, 0.95), "P", Figure().subplots())
    >>> [t.get_text() for t in ax.get_yticklabels()]
    ['n = 100', 'n = 200']
    """
    runs = study.runs[study.runs["metric"] == metric]
    if runs.empty:
        raise DataError(f"the study has no metric {metric!r}; it has {list(study.runs['metric'].unique())}")
    cell, truths = _cells(runs), runs.groupby(_cells(runs), sort=False)["truth"].first()
    names, estimators = list(truths.index), list(runs["estimator"].unique())
    ax = _axes(ax, _height(len(names), len(estimators)))
    for i, estimator in enumerate(estimators):
        values = runs[runs["estimator"] == estimator].groupby(cell, sort=False)["estimate"]
        q = values.quantile([0.025, 0.25, 0.5, 0.75, 0.975]).unstack().reindex(names).to_numpy()
        y, style = np.arange(len(names)) + _offsets(len(estimators))[i], _style(i, len(estimators), estimator)
        ax.hlines(y, q[:, 0], q[:, 4], color=style["color"], linewidth=1)
        ax.hlines(y, q[:, 1], q[:, 3], color=style["color"], linewidth=4)
        ax.plot(q[:, 2], y, **style, markerfacecolor="white")
    rows = np.arange(len(names))
    ax.vlines(truths, rows - 0.45, rows + 0.45, color="black", linestyle="--", linewidth=1, label="truth")
    _rows(ax, names)
    ax.set_xlabel("median, middle half and middle 95 % of the estimates")
    _legend(ax, len(estimators) + 1)
    return ax


def coverage(table: pd.DataFrame, level: float = 0.95, ax: Axes | None = None) -> Axes:
    """Draw the coverage of each estimator's intervals in every cell, with 2 Monte Carlo standard errors.

    Estimators without an interval are left out.

    Parameters
    ----------
    table : DataFrame
        From `Study.table`, or several such tables below one another.
    level : float in (0, 1)
        The nominal level, drawn as a line.
    ax : Axes, optional
        Axes to draw on, instead of a new figure.

    Examples
    --------
    >>> table = pd.DataFrame({"population": "p", "plan": "records", "n": [100, 200], "estimator": "e",
    ...                       "metric": "P", "coverage": [0.93, 0.94], "coverage_se": 0.01})
    >>> from matplotlib.figure import Figure
    >>> coverage(table, ax=Figure().subplots()).lines[1].get_xdata().tolist()
    [0.93, 0.94]
    """
    table = table[table["coverage"].notna()].reset_index(drop=True)
    cell = _cells(table)
    names, estimators = list(cell.unique()), list(table["estimator"].unique())
    ax = _axes(ax, _height(len(names), len(estimators)))
    ax.axvline(level, color="black", linestyle="--", linewidth=1)
    for i, estimator in enumerate(estimators):
        own = table[table["estimator"] == estimator]
        y = pd.Index(names).get_indexer(cell[own.index]) + _offsets(len(estimators))[i]
        ax.errorbar(own["coverage"], y, xerr=2 * own["coverage_se"], **_style(i, len(estimators), estimator))
    _rows(ax, names)
    ax.set_xlabel(f"coverage of {100 * level:g} % intervals, and 2 standard errors either side")
    _legend(ax, len(estimators))
    return ax


def interval_scores(table: pd.DataFrame, reference: str, ax: Axes | None = None) -> Axes:
    """Draw interval scores of estimators, divided by those of a reference: one point per cell.

    A point left of the line at 1 is better than the reference. Estimators without an interval are left out.

    Parameters
    ----------
    table : DataFrame
        From `Study.table`, or several such tables below one another.
    reference : str
        Name of the estimator that the line at 1 stands for.
    ax : Axes, optional
        Axes to draw on, instead of a new figure.

    Raises
    ------
    DataError
        A reference that the table does not have.

    Examples
    --------
    >>> table = pd.DataFrame({"population": "p", "plan": "records", "n": 100, "estimator": ["Wald", "logit"],
    ...                       "metric": "P", "interval_score": [0.3, 0.2]})
    >>> from matplotlib.figure import Figure
    >>> interval_scores(table, "logit", Figure().subplots()).lines[1].get_xdata().round(2).tolist()
    [1.5]
    """
    shown = table[table["interval_score"].notna()]
    names = [e for e in shown["estimator"].unique() if e != reference]
    scores = shown.pivot(
        index=["n", "population", "plan", "metric"], columns="estimator", values="interval_score"
    )
    if reference not in scores:
        raise DataError(f"no intervals of {reference!r}; there are those of {names}")
    ratios = scores[names].div(scores[reference], axis=0)
    sizes = ratios.index.unique("n")
    ax = _axes(ax, _height(len(names), len(sizes)))
    ax.axvline(1, color="black", linestyle="--", linewidth=1)
    for i, n in enumerate(sizes):
        own = ratios.xs(n, level="n")
        y = np.tile(np.arange(len(names)) + _offsets(len(sizes))[i], len(own))
        ax.plot(own.to_numpy().ravel(), y, **_style(i, len(sizes), f"n = {n}"), fillstyle="none")
    from matplotlib.ticker import LogLocator

    ax.set_xscale("log")
    ax.xaxis.set_minor_locator(LogLocator(subs=(1.25, 1.5, 2, 3, 4, 6, 8)))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter("{x:g}")
    _rows(ax, names)
    ax.set_xlabel(f"interval score / that of {reference}")
    _legend(ax, len(sizes))
    return ax


def tipping(grid: Grid, metric: str, under: float, *, ax: Axes | None = None) -> Axes:
    """Draw a metric over shares missed and kept, as contours. It is under a value beyond the bold line.

    Parameters
    ----------
    grid : Grid
        From `erbayes.sensitivity.grid`, with two shares missed and two shares kept or more.
    metric : str
        Name of a metric of the grid.
    under : float
        The value, in the unit of the metric.
    ax : Axes, optional
        Axes to draw on, instead of a new figure.

    Raises
    ------
    DataError
        A metric that the grid lacks, or a grid with a single share missed or kept.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from erbayes.sensitivity import Grid
    >>> u = v = np.array([0.0, 0.5])
    >>> values = np.array([[[0.9], [0.8]], [[0.8], [0.6]]])
    >>> result = Grid(("pairwise-f1",), u, v, values, values, values, 0.95)
    >>> [t.get_text() for t in tipping(result, "pairwise-f1", 0.75, ax=Figure().subplots()).texts]
    ['0.64', '0.68', '0.72', '0.76', '0.80', '0.84', '0.88', '0.75']
    """
    if metric not in grid.names:
        raise DataError(f"the grid has no metric {metric!r}; it has {', '.join(grid.names)}")
    if min(len(grid.u), len(grid.v)) < 2:
        raise DataError(f"contours need two shares or more each way, not {len(grid.u)} and {len(grid.v)}")
    values = grid.estimate[..., grid.names.index(metric)].T
    ax = _axes(ax)
    thin = ax.contour(grid.u, grid.v, values, colors="0.6", linewidths=1)
    ax.clabel(thin, [level for level in np.asarray(thin.levels) if not np.isclose(level, under)], fmt="%.2f")
    if np.nanmin(values) < under < np.nanmax(values):
        line = ax.contour(grid.u, grid.v, values, levels=[under], colors="black", linewidths=2.5)
        ax.clabel(line, fmt=f"{under:g}")
    ax.set_xlabel("share of the records elsewhere that annotators missed")
    ax.set_ylabel("share of the foreign records that they kept")
    ax.set_title(f"{metric}; bold: under {under:g}")
    return ax


def size_distribution(fit: Fit, *, ax: Axes | None = None) -> Axes:
    """Draw the number of true entities by size: in a model, in the weighted sample, and in the prediction.

    Parameters
    ----------
    fit : erbayes.bayes.Fit
    ax : Axes, optional
        Axes to draw on, instead of a new figure.

    Notes
    -----
    Heights are numbers of entities of one size. Circles estimate them from the sample alone: the draws of a
    bin are divided by the chance of its size, and scaled so that their records add up to N.
    """
    evidence, known = fit.evidence, fit.sample.units.known
    assert known is not None  # a fit needs the sizes of predicted clusters
    grid, entities = evidence.grid, evidence.entities
    weighted = np.bincount(entities.bin, entities.draws, len(grid.size)) / evidence.data["selection"]
    drawn = weighted * evidence.records / (weighted @ grid.size) / grid.width
    predicted = np.bincount(grid.bin(known.size), known.count, len(grid.size)) / grid.width
    ax = _band(_axes(ax), grid.size, fit.by_size["entities"] / grid.width)
    ax.step(
        grid.size,
        np.where(predicted > 0, predicted, np.nan),
        where="mid",
        color="0.45",
        linestyle="--",
        label="predicted clusters",
    )
    shown = drawn > 0
    ax.plot(
        grid.size[shown],
        drawn[shown],
        "o",
        color="black",
        fillstyle="none",
        markersize=5,
        label="sample, weighted by its design",
    )
    ax.set_yscale("log")
    least = min(v[v > 0].min() for v in (drawn, predicted))
    ax.set_ylim(least / 30, 10 * max(drawn.max(), predicted.max()))
    ax.set_ylabel("entities of each size")
    _legend(ax, 2)
    return ax


def retention(fit: Fit, *, ax: Axes | None = None) -> Axes:
    """Draw the share of an entity's links that the prediction has: its mean by size, and sampled entities.

    Ticks at the bottom mark the sizes that the sample shows, and a dotted line its largest entity. At other
    sizes the band follows from the smoothness that priors expect, and from the known number of predicted
    links. `erbayes.bayes.Fit.explain` has the share of the true links at such sizes. With a second
    clustering, the band and the circles are of entities that match none of its clusters.

    Parameters
    ----------
    fit : erbayes.bayes.Fit
    ax : Axes, optional
        Axes to draw on, instead of a new figure.
    """
    grid, entities = fit.evidence.grid, fit.evidence.entities
    several = entities.several & ~entities.matched
    ax = _band(_axes(ax), grid.size[1:], fit.by_size["kept"][..., 1:])
    size = np.unique(entities.size[entities.several])
    bottom: dict[str, Any] = {"transform": ax.get_xaxis_transform(), "label": "sampled sizes"}
    ax.plot(size, np.full(len(size), 0.03), "|", color="black", markersize=7, **bottom)
    ax.axvline(entities.size.max(), color="0.45", linestyle=":", label="largest sampled entity")
    size = entities.size[several]
    _entities(ax, size, entities.links[several] / (size * (size - 1) / 2))
    ax.set_ylabel("share of links kept")
    return ax


def leakage(fit: Fit, *, ax: Axes | None = None) -> Axes:
    """Draw the foreign records in the predicted cluster of a record: mean by size, and sampled entities.

    Parameters
    ----------
    fit : erbayes.bayes.Fit
    ax : Axes, optional
        Axes to draw on, instead of a new figure.
    """
    grid, entities = fit.evidence.grid, fit.evidence.entities
    ax = _band(_axes(ax), grid.size, fit.by_size["foreign"])
    _entities(ax, entities.size[~entities.matched], entities.rate[~entities.matched])
    ax.set_yscale("symlog", linthresh=0.1)
    ax.set_ylim(bottom=-0.02)
    ax.set_ylabel("foreign records met by each record")
    return ax


def predicted_sizes(tree: DataTree, *, ax: Axes | None = None) -> Axes:
    """Draw the number of sampled entities of each size or more: by the prior, the posterior, and the sample.

    Predictions are for the sample's own design. If the line of the sample leaves the band of the posterior,
    the family of sizes does not fit. If it leaves the band of the prior, the prior excludes the sample.

    Parameters
    ----------
    tree : DataTree
        From `erbayes.bayes.Fit.predictive`.
    ax : Axes, optional
        Axes to draw on, instead of a new figure.
    """
    ax, grid = _axes(ax), tree["by_size"]["entity_size"].to_numpy()
    for group, shade, line in (("prior", "0.92", ":"), ("posterior", "0.78", "-")):
        larger = _or_larger(tree[f"{group}_predictive"]["size"].to_numpy(), grid)
        low, middle, high = np.quantile(larger, [0.025, 0.5, 0.975], axis=(0, 1))
        ax.fill_between(grid, low, high, color=shade, label=f"{group}, 95 %")
        ax.plot(grid, middle, color="black", linestyle=line, linewidth=1)
    sampled = _or_larger(tree["observed_data"]["size"].to_numpy(), grid)
    ax.step(grid, np.where(sampled > 0, sampled, np.nan), where="mid", color="black", label="sample")
    ax.set_xscale("log")
    ax.set_yscale("symlog", linthresh=1)
    ax.set_ylim(bottom=0)
    ax.yaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.set_xlabel("records of the entity")
    ax.set_ylabel("sampled entities of that size or more")
    _legend(ax, 3)
    return ax


def predicted_retention(tree: DataTree, *, ax: Axes | None = None) -> Axes:
    """Draw the share of broken entities by size: by the prior, the posterior, and the sample.

    Parameters
    ----------
    tree : DataTree
        From `erbayes.bayes.Fit.predictive`.
    ax : Axes, optional
        Axes to draw on, instead of a new figure.
    """
    ax, observed = _axes(ax), tree["observed_data"].to_dataset()
    sizes = observed["size"].sel(entity=observed["entity_of_several"].to_numpy()).to_numpy()
    doubling = np.floor(np.log2(sizes)).astype(int)
    shown = np.unique(doubling)

    def share(broken: DataArray) -> FloatArray:
        values = broken.to_numpy()
        return np.stack([values[..., doubling == d].mean(axis=-1) for d in shown], axis=-1)

    for group, offset, colour in (("prior", -0.1, "0.7"), ("posterior", 0.1, "black")):
        shares = share(tree[f"{group}_predictive"].to_dataset()["broken"])
        low, middle, high = np.quantile(shares, [0.025, 0.5, 0.975], axis=(0, 1))
        ax.errorbar(
            shown + offset,
            middle,
            [middle - low, high - middle],
            fmt="_",
            color=colour,
            capsize=3,
            label=f"{group}, 95 %",
        )
    ax.plot(shown, share(observed["broken"]), "o", color="black", fillstyle="none", label="sample")
    ax.set_xticks(shown, [f"{2**d:g}-{2 ** (d + 1) - 1:g}" for d in shown])
    ax.set_xlabel("records of the entity")
    ax.set_ylabel("share of entities broken")
    _legend(ax, 3)
    return ax


def _or_larger(size: FloatArray, grid: FloatArray) -> FloatArray:
    """Number of sizes, of an array (..., k), in each bin of a grid or above it, (..., J)."""
    return np.stack([(size >= middle).sum(axis=-1) for middle in np.floor(grid)], axis=-1).astype(float)


def _band(ax: Axes, size: FloatArray, draws: FloatArray) -> Axes:
    """Draw the median and the middle 95 % of posterior draws, (chain, draw, J), over sizes, (J,)."""
    low, middle, high = np.quantile(draws, [0.025, 0.5, 0.975], axis=(0, 1))
    ax.fill_between(size, low, high, color="0.85", label="95 % of the posterior")
    ax.plot(size, middle, color="black", label="posterior median")
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.set_xlabel("records of the entity")
    return ax


def _entities(ax: Axes, size: FloatArray, value: FloatArray) -> None:
    """Draw sampled entities as circles, darker where many lie on one another."""
    ax.plot(
        size, value, "o", color="black", markersize=4, alpha=0.35, markeredgewidth=0, label="sampled entities"
    )
    _legend(ax, 3)
