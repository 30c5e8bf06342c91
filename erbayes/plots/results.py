"""Pictures of estimates, over thresholds and stages too, of plans, and of what they depend on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pandas as pd

from .._internal import digits
from .._internal.errors import DataError, need_object
from ..analysis.causes import FOUND, Stages
from ..analysis.comparison import Comparison
from ..analysis.domains import ByDomain, ComparedByDomain
from ..analysis.impact import Impact
from ..analysis.pairs import LabelledPairs, ScoredEdges
from ..analysis.planning import Forecast
from ..analysis.thresholds import Curve
from ..design.sample import Sample
from ..engine import fitted
from ..labels.stopping import Check
from ..metrics.definitions import NAMED, Metric, MetricLike, Support, pairwise_precision, resolve_metrics
from ..metrics.estimates import Estimates
from ..metrics.intervals import Kind, suitable
from . import axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..engine.named import SideBySide


class OfEstimates(Protocol):
    """A result that has estimates of metrics, such as those of each prediction of a comparison."""

    def estimates_by_name(self) -> Mapping[str, Estimates]:
        """Return the estimates by name."""


def draw_forest(
    result: OfEstimates | Mapping[str, OfEstimates],
    metrics: MetricLike | None = None,
    *,
    level: float = 0.95,
    kind: Kind | Sequence[Kind] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw estimates and intervals, one row per metric.

    Shares have one axis. Each count, and each other metric without an upper end, has its own axis below.

    Parameters
    ----------
    result : Estimates, Comparison, WithErrors or Fit, or mapping of name -> one of these
        Several results, or the predictions of a comparison, have a marker each. They may differ in metrics.
    metrics : Metric or str, or several, optional
        The metrics to show; all by default.
    level : float in (0, 1)
    kind : Kind, or sequence of Kind, optional
        Of several, each result has the first that suits it, and its own kind if none does.
    ax : Axes, optional
        Axes to draw on, instead of a new figure. Labels have room if its figure has `layout="constrained"`.

    Returns
    -------
    Axes, that of shares; those below follow it in the figure
    """
    results = dict[str, Estimates]()
    for outer, one in (result if isinstance(result, Mapping) else {"": result}).items():
        need_object(one, "estimates_by_name", "a forest is of estimates")
        results |= {", ".join(filter(None, (outer, x))): y for x, y in one.estimates_by_name().items()}
    if not results:
        raise DataError("a forest plot needs at least one result")
    tables = _tabulate(results, level, kind)
    return _draw_forest(tables, _find_blocks(results, tables, metrics), level, ax)[0]


def _tabulate(results: Mapping[str, Estimates], level: float, kind: Any) -> dict[str, pd.DataFrame]:
    listed = isinstance(kind, Sequence)
    return {k: r.table(level, suitable(kind, r)[0] if listed else kind) for k, r in results.items()}


def _find_blocks(
    results: Mapping[str, Estimates], tables: Mapping[str, pd.DataFrame], metrics: MetricLike | None
) -> list[list[str]]:
    """Return the metrics that share an axis: all shares, and each other metric alone."""
    supports = dict(pair for r in results.values() for pair in zip(r.names, r.support, strict=True))
    ends = pd.concat(tables.values()).groupby(level=0, sort=False).agg({"lower": "min", "upper": "max"})
    ends = ends.loc[axes.choose_names(metrics, list(ends.index))]
    shares = [name for name, low, high in ends.itertuples() if _bounded(supports[name], low, high)]
    return [shares] * bool(shares) + [[name] for name in ends.index if name not in shares]


def _draw_forest(
    tables: Mapping[str, pd.DataFrame],
    blocks: list[list[str]],
    level: float,
    ax: Axes | None,
    skipped: int = 0,
    letters: float = np.inf,
) -> list[Axes]:
    """Draw tables, a panel per block, in styles after the first `skipped`, and legends by `letters`."""
    panels, offsets = axes.panels_of(ax, blocks, len(tables)), axes.offsets_of(len(tables))
    for i, (label, table) in enumerate(tables.items()):
        style, offset = axes.style_of(i + skipped, len(tables) + skipped, label), offsets[i]
        for panel, block in zip(panels, blocks, strict=True):
            rows = table[table.index.isin(block)]
            y = np.array([block.index(name) for name in rows.index]) + offset
            panel.hlines(y, rows["lower"], rows["upper"], color=style["color"])
            panel.plot(rows["estimate"], y, **style)
    for panel in panels:
        axes.round_ticks(panel)
    panels[-1].set_xlabel(f"estimate and {100 * level:g} % interval")
    if list(tables) != [""]:
        axes.draw_legend(panels[0], len(tables), letters)
    return panels


LETTERS = 45
"""Letters in a row of the legends of the halves of a comparison. More of them leave no room for axes."""


def draw_comparison(
    result: Comparison,
    metrics: MetricLike | None = None,
    *,
    level: float = 0.95,
    kind: Kind | Sequence[Kind] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the estimates of each prediction on the left, and on the right their differences from the first.

    `metrics`, `level` and `kind` are as in `draw_forest`. Both halves share the place of `ax`. The Axes of
    the estimates are returned, and those of the differences follow in the figure.
    """
    first, *others = result.predictions
    results = result.estimates_by_name()
    tables = _tabulate(results, level, kind)
    blocks = _find_blocks(results, tables, metrics)
    # two halves need more than the width of one picture
    height = axes.height_of(sum(map(len, blocks)), len(results)) + 0.5 * (len(blocks) - 1)
    ax = axes.axes_of(ax, height, width=9.0)
    place = ax.get_subplotspec()
    halves = (place.subgridspec if place else ax.figure.add_gridspec)(1, 2, width_ratios=[1.2, 1])
    ax.set_subplotspec(halves[0])
    right = ax.figure.add_subplot(halves[1])
    _draw_forest(tables, blocks, level, ax, letters=LETTERS)
    # each difference has the style of its prediction; a legend on both halves keeps their rows level
    differences = _tabulate({name: result.subtract(first, name) for name in others}, level, kind)
    panels = _draw_forest(differences, blocks, level, right, skipped=1, letters=LETTERS)
    for panel in panels:
        panel.axvline(0, color="0.6", linewidth=0.8, zorder=0)
        panel.set_yticklabels([])
        panel.locator_params(axis="x", nbins=4)
    panels[-1].set_xlabel(f"difference from {first} and {100 * level:g} % interval")
    return ax


def draw_side_by_side(
    result: SideBySide, metrics: MetricLike | None = None, *, ax: Axes | None = None
) -> Axes:
    """Draw estimates and intervals of several engines, one row per engine under the name of each metric.

    A cross is an estimate without an interval. Axes are those of `draw_forest`, and so are `metrics`.
    """
    table = result.table()
    names = axes.choose_names(metrics, list(table["metric"].unique()))
    twice = table.duplicated(["method", "metric"], keep=False)
    labels = table["method"].mask(twice, table["method"] + ", " + table["kind"])
    return _draw_rows(arrange_rows(table.assign(label=labels), names), ax)


def draw_by_domain(
    result: ByDomain | ComparedByDomain,
    metrics: MetricLike | None = None,
    *,
    level: float = 0.95,
    kind: Kind | None = None,
    simultaneous: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw estimates, or differences of predictions, one row per domain under the name of each metric.

    A cross is an estimate without an interval, since it depends on few draws. Axes are those of
    `draw_forest`, and so are `metrics`; `level`, `kind` and `simultaneous` are as in `ByDomain.table`.
    """
    table = result.table(level, kind, simultaneous=simultaneous)
    names = axes.choose_names(metrics, [m.name for m in result.settings.metrics])
    shown = table[table["estimate"].notna()]
    label = shown["domain"]
    if "difference" in shown and shown["difference"].nunique() > 1:
        label = label + ", " + shown["difference"]
    return _draw_rows(arrange_rows(shown.assign(label=label), names), ax)


def draw_check(result: Check, *, ax: Axes | None = None) -> Axes:
    """Draw the interval of each metric, the minimum that it must reach, and the verdict."""
    table = result.table()
    shares = [bool(np.isfinite(metric.support).all()) for metric in result.metrics]
    parts = [table[shares]] * any(shares) + [table.iloc[[j]] for j, share in enumerate(shares) if not share]
    panels = axes.panels_of(
        ax, [[f"{name}: {verdict}" for name, verdict in part["verdict"].items()] for part in parts]
    )
    for panel, part in zip(panels, parts, strict=True):
        y = np.arange(len(part))
        panel.hlines(y, part["lower"], part["upper"], color="black")
        panel.plot(part["estimate"], y, "o", color="black", markersize=5, label="estimate")
        panel.plot(part["minimum"], y, "|", color="0.5", markersize=16, markeredgewidth=2, label="minimum")
        axes.round_ticks(panel)
    axes.draw_legend(panels[0], 2)
    panels[-1].set_xlabel(f"estimate and {100 * result.level:.4g} % interval")
    return panels[0]


def arrange_rows(table: pd.DataFrame, names: Sequence[str]) -> list[pd.DataFrame]:
    """Return the rows of a table, which its column `label` names, in panels of one axis each.

    Shares have one panel, and every other metric its own. In a panel, numbered from 0 downwards, a row whose
    column `head` is true has the name of the metric whose rows follow it.
    """
    groups = {name: rows for name in names if len(rows := table[table["metric"] == name])}
    shares = []
    for name, rows in groups.items():
        # the rows of a metric of a user's own decide
        support = NAMED[name].support if name in NAMED else (-np.inf, np.inf)
        ends = rows[["estimate", "lower", "upper"]].to_numpy(dtype=float)
        if _bounded(support, float(np.nanmin(ends)), float(np.nanmax(ends))):
            shares.append(name)
    parts = [shares] * bool(shares) + [[name] for name in groups if name not in shares]
    blocks = {
        name: [pd.DataFrame({"label": [name], "head": True}), rows.assign(head=False)]
        for name, rows in groups.items()
    }
    return [pd.concat([x for name in part for x in blocks[name]], ignore_index=True) for part in parts]


def _draw_rows(rows: Sequence[pd.DataFrame], ax: Axes | None) -> Axes:
    panels, differ = axes.panels_of(ax, [list(panel["label"]) for panel in rows]), "difference" in rows[0]
    for panel, block in zip(panels, rows, strict=True):
        shown = block[~block["head"]]
        # a cross says that there is no interval, where a dot would look certain
        bare = shown["lower"].isna()
        panel.hlines(shown.index, shown["lower"], shown["upper"], color="black")
        panel.plot(shown["estimate"][~bare], shown.index[~bare], "o", color="black", markersize=5)
        panel.plot(shown["estimate"][bare], shown.index[bare], "x", color="black", markersize=6)
        heads = block["label"][block["head"]]
        for label in panel.get_yticklabels():
            label.set_fontweight("bold" if label.get_text() in heads.tolist() else "normal")
        for at in heads.index:
            panel.axhline(at, color="0.85", linewidth=1, zorder=0)
        axes.round_ticks(panel)
        if differ:
            panel.axvline(0, color="0.6", linewidth=0.8, zorder=0)
    level = f"{100 * rows[-1]['level'].iloc[-1]:g} % interval"
    panels[-1].set_xlabel(f"{'difference' if differ else 'estimate'} and {level}")
    return panels[0]


def _bounded(support: Support, lower: float, upper: float) -> bool:
    """Return whether a metric goes on the axis of shares, by its support or, for a difference, its bounds."""
    # a difference has no bounds, so that its interval decides
    return bool(lower >= -1 and upper <= 1 if np.isneginf(support[0]) else np.isfinite(support).all())


def draw_errors(result: Impact, *, level: float = 0.95, ax: Axes | None = None) -> Axes:
    """Draw how far each number of the predicted clusters is from the truth, in percent of the estimate."""
    table = result.table(level)
    percent, rows = 100 / table["estimate"].abs(), range(len(table))
    ax = axes.axes_of(ax, axes.height_of(len(table)))
    ax.axvline(0, color="0.7", linewidth=1)
    ax.hlines(rows, table["least"] * percent, table["most"] * percent, color="0.0")
    ax.plot(table["difference"] * percent, rows, "o", color="0.0", markersize=5)
    names = table.index if "domain" not in table else table.index + " of " + table["domain"]
    axes.name_rows(ax, list(names))
    ax.set_xlabel(f"error of the clusters, % of the truth, with {100 * level:g} % interval")
    return ax


def draw_influence(
    sample: Sample, metric: Metric | str = pairwise_precision, most: int = 20, ax: Axes | None = None
) -> Axes:
    """Draw the most influential units as bars: dark if they raise the estimate, light if they lower it.

    `most` units are shown of those that `erbayes.influence` lists.
    """
    shown = fitted.influence(sample, metric)["influence"].head(most)
    ax = axes.axes_of(ax, axes.height_of(len(shown)))
    ax.barh(range(len(shown)), shown, color=np.where(shown > 0, "0.3", "0.8").tolist(), edgecolor="black")
    ax.axvline(0, color="black", linewidth=1)
    axes.name_rows(ax, [digits.shorten_id(x) for x in shown.index])
    ax.locator_params(axis="x", nbins=5)
    ax.set_xlabel("influence on the estimate")
    return ax


def draw_balance(sample: Sample, ax: Axes | None = None) -> Axes:
    """Draw ratios of estimated to known totals, with 2 standard errors on either side, and a line at 1."""
    table = fitted.balance(sample)
    ax = axes.axes_of(ax, 1.2 + 0.4 * len(table))
    ax.axvline(1, color="black", linestyle="--", linewidth=1)
    error = 2 * table["se"] / table["known"]
    ax.errorbar(table["ratio"], range(len(table)), xerr=error, fmt="o", color="black", capsize=3)
    axes.name_rows(ax, [name.replace("_", " ") for name in table.index])
    ax.set_xlabel("estimated / known, and 2 standard errors either side")
    return ax


DASHES = ("-", "--", ":", "-.")
"""Lines of designs."""
SHOWN = 3
"""Metrics of a curve that are drawn by default, since bands of more hide each other."""


def draw_curve(
    result: Curve,
    metrics: MetricLike | None = None,
    *,
    level: float = 0.95,
    kind: Kind | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw metrics over thresholds, each with a simultaneous confidence band.

    By default the first three metrics are drawn. If more than half of the thresholds are probabilities above
    .9, their axis has equal steps of log odds.
    """
    x, ticks = axes.spread_probabilities(result.thresholds)
    drawn = result.metrics[:SHOWN] if metrics is None else resolve_metrics(metrics)
    ax = axes.axes_of(ax)
    for i, metric in enumerate(drawn):
        table = result.table(metric, level, kind)
        style = axes.style_of(i, len(drawn), metric.name) | {"linestyle": "-", "markersize": 3}
        ax.fill_between(x, table["lower"], table["upper"], color=style["color"], alpha=0.2, linewidth=0)
        ax.plot(x, table["estimate"], **style)
    ax.set_ylabel(f"estimate and {100 * level:g} % band")
    axes.draw_legend(ax, len(drawn))
    if ticks:
        ax.set_xscale("logit")
        ax.set_xticks([*ticks], [*ticks.values()])
        ax.set_xticks([], minor=True)
    ax.set_xlabel("threshold")
    return ax


def draw_stages(result: Stages, *, ax: Axes | None = None) -> Axes:
    """Draw one bar of all true links, by what becomes of them (see `erbayes.stages`)."""
    ax, start = axes.axes_of(ax, 1.3), 0.0
    for i, (name, share) in enumerate(zip(FOUND, result.joint.estimate.tolist(), strict=False)):
        grey, label = f"{0.4 + 0.2 * i:.1f}", f"{name} {share:.1%}"
        ax.barh(0, share, left=start, label=label, facecolor=grey, edgecolor="black", hatch=axes.HATCHES[i])
        start += share
    ax.set_yticks([])
    ax.set_xlabel("share of true links")
    axes.draw_legend(ax, 2)
    return ax


def draw_forecast(
    result: Forecast,
    metrics: MetricLike | None = None,
    *,
    sizes: Sequence[int] = (50, 100, 200, 400, 800, 1600),
    level: float = 0.95,
    ax: Axes | None = None,
) -> Axes:
    """Draw the forecast half widths of intervals over numbers of draws, by design and metric.

    By default the first three metrics are drawn. `sizes` are numbers of draws, of which a design without
    replacement takes no more than there are units.
    """
    names = [metric.name for metric in result.metrics]
    chosen, ax = names[:SHOWN] if metrics is None else axes.choose_names(metrics, names), axes.axes_of(ax)
    for i, (design, outlook) in enumerate(result.designs.items()):
        half_widths = np.array([outlook.half_widths(n, level) for n in sizes])
        for j, name in enumerate(chosen):
            style = axes.style_of(j, len(chosen), ", ".join([design] * (len(result.designs) > 1) + [name]))
            style |= {"linestyle": DASHES[i % len(DASHES)]}
            ax.plot(sizes, half_widths[:, names.index(name)], **style)
    ax.set(xscale="log", xlabel="draws", ylabel=f"half width of {100 * level:g} % intervals")
    ax.set_ylim(bottom=0)
    ax.set_xticks(list(sizes), [f"{n:,}" for n in sizes])
    ax.set_xticks([], minor=True)
    axes.draw_legend(ax, 2)  # labels of three columns are wider than the picture
    return ax


def draw_calibration(
    result: LabelledPairs | ScoredEdges, *, level: float = 0.95, ax: Axes | None = None
) -> Axes:
    """Draw the share of right pairs in each band, the loosest first (see `erbayes.pairs`).

    Grey bars are the scores of each band if all are between 0 and 1, as probabilities are. A point outside
    its bar is the share of a band whose scores are too high or too low.

    Examples
    --------
    >>> import erbayes as eb
    >>> import pandas as pd
    >>> from matplotlib.figure import Figure
    >>> edges = pd.DataFrame({"l": ["a", "b", "d"], "r": ["b", "c", "e"], "weight": [9.0, 2.0, 4.0]})
    >>> answers = eb.pairs.draw_pairs(edges, 4, records=list("abcdef"), seed=1, bands=[9, 2])
    >>> found = eb.pairs.estimate(edges, answers.assign(same=answers.band > 2), records=list("abcdef"))
    >>> draw_calibration(found, ax=Figure().subplots()).get_lines()[0].get_ydata()
    array([0., 1.])
    """
    table, ax = result.bands(level)[::-1], axes.axes_of(ax)
    place, score = np.arange(len(table)), result.edges.score
    if score.min() >= 0 and score.max() <= 1:
        ends = [*table["band"][1:], score.max()]
        ax.vlines(place, table["band"], ends, color="0.8", linewidth=12)
    share, lower, upper = table[["share", "lower", "upper"]].to_numpy().T
    ax.errorbar(place, share, [share - lower, upper - share], fmt="o", color="black", capsize=3)
    ax.set_xticks(place, [f"{band:.4g}" for band in table["band"]])
    ax.set(xlabel="score from which the band begins", ylabel="share of right pairs", ylim=(-0.03, 1.03))
    return ax
