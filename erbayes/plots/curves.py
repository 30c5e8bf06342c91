"""Pictures of metrics over thresholds, of stages, plans, and bands of scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..analysis.pairs import LabelledPairs, ScoredEdges
from ..analysis.planning import Forecast
from ..analysis.stages import FOUND, Stages
from ..analysis.thresholds import Curve
from ..metrics.definitions import MetricLike, resolve_metrics
from .axes import HATCHES, MARKERS, axes_of, choose_names, draw_legend, spread_probabilities, style_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DASHES = ("-", "--", ":", "-.")
"""Lines of designs."""
SHOWN = 3
"""Metrics of a curve that are drawn by default, since bands of more hide each other."""


def draw_curve(
    result: Curve, metrics: MetricLike | None = None, *, level: float = 0.95, ax: Axes | None = None
) -> Axes:
    """Draw metrics over thresholds, each with a simultaneous confidence band.

    If more than half of the thresholds are probabilities above .9, their axis has equal steps of log odds.

    Parameters
    ----------
    result : Curve
        From `erbayes.thresholds`.
    metrics : Metric or str, or several, optional
        Those of the curve to draw. By default its first three.
    level : float in (0, 1)
    """
    x, ticks = spread_probabilities(result.thresholds)
    drawn = result.metrics[:SHOWN] if metrics is None else resolve_metrics(metrics)
    ax = axes_of(ax)
    for i, metric in enumerate(drawn):
        table = result.table(metric, level)
        grey, marker = f"{np.linspace(0, 0.65, len(drawn))[i]:.2f}", MARKERS[i % len(MARKERS)]
        ax.fill_between(x, table["lower"], table["upper"], color=grey, alpha=0.2, linewidth=0)
        ax.plot(x, table["estimate"], marker=marker, markersize=3, color=grey, label=metric.name)
    ax.set_ylabel(f"estimate and {100 * level:g} % band")
    draw_legend(ax, len(drawn))
    if ticks:
        ax.set_xscale("logit")
        ax.set_xticks([*ticks], [*ticks.values()])
        ax.set_xticks([], minor=True)
    ax.set_xlabel("threshold")
    return ax


def draw_stages(result: Stages, *, ax: Axes | None = None) -> Axes:
    """Draw one bar of all true links, by what becomes of them (see `erbayes.stages`)."""
    ax, start = axes_of(ax, 1.3), 0.0
    for i, (name, share) in enumerate(zip(FOUND, result.joint.estimate.tolist(), strict=False)):
        grey, label = f"{0.4 + 0.2 * i:.1f}", f"{name} {share:.1%}"
        ax.barh(0, share, left=start, label=label, facecolor=grey, edgecolor="black", hatch=HATCHES[i])
        start += share
    ax.set_yticks([])
    ax.set_xlabel("share of true links")
    draw_legend(ax, 2)
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

    Parameters
    ----------
    result : Forecast
        From `erbayes.analysis.planning.forecast`.
    metrics : Metric or str, or several, optional
        Those to draw. By default the first three of the forecast.
    sizes : sequence of int
        Numbers of draws. A design without replacement takes no more than there are units.
    level : float in (0, 1)
    """
    names = [metric.name for metric in result.metrics]
    chosen, ax = names[:SHOWN] if metrics is None else choose_names(metrics, names), axes_of(ax)
    for i, (design, outlook) in enumerate(result.designs.items()):
        half_widths = np.array([outlook.half_widths(n, level) for n in sizes])
        for j, name in enumerate(chosen):
            style = style_of(j, len(chosen), ", ".join([design] * (len(result.designs) > 1) + [name]))
            style |= {"linestyle": DASHES[i % len(DASHES)]}
            ax.plot(sizes, half_widths[:, names.index(name)], **style)
    ax.set(xscale="log", xlabel="draws", ylabel=f"half width of {100 * level:g} % intervals")
    ax.set_ylim(bottom=0)
    ax.set_xticks(list(sizes), [f"{n:,}" for n in sizes])
    ax.set_xticks([], minor=True)
    draw_legend(ax, 2)  # labels of three columns are wider than the picture
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
    table, ax = result.bands(level)[::-1], axes_of(ax)
    place, score = np.arange(len(table)), result.edges.score
    if score.min() >= 0 and score.max() <= 1:
        ends = [*table["band"][1:], score.max()]
        ax.vlines(place, table["band"], ends, color="0.8", linewidth=12)
    share, lower, upper = table[["share", "lower", "upper"]].to_numpy().T
    ax.errorbar(place, share, [share - lower, upper - share], fmt="o", color="black", capsize=3)
    ax.set_xticks(place, [f"{band:.4g}" for band in table["band"]])
    ax.set(xlabel="score from which the band begins", ylabel="share of right pairs", ylim=(-0.03, 1.03))
    return ax
