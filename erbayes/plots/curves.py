"""Pictures of metrics over thresholds and releases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..analysis.thresholds import Curve
from ..metrics.definitions import Wanted, chosen
from .axes import MARKERS, axes_of, draw_legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN = 3
"""Metrics of a curve that are drawn by default, since bands of more hide each other."""


def curve(
    result: Curve, metrics: Wanted | None = None, *, level: float = 0.95, ax: Axes | None = None
) -> Axes:
    """Draw metrics over thresholds, each with the band that covers all its thresholds at once.

    Parameters
    ----------
    result : Curve
        From `erbayes.thresholds`.
    metrics : Metric or str, or several, optional
        Those of the curve to draw. By default its first three.
    level : float in (0, 1)
    ax : Axes, optional
        As in `forest`.

    Raises
    ------
    DataError
        A metric that the curve does not have.

    Examples
    --------
    >>> import erbayes as eb
    >>> import pandas as pd
    >>> from matplotlib.figure import Figure
    >>> edges = pd.DataFrame({"l": ["a", "b", "d"], "r": ["b", "c", "e"], "weight": [9.0, 2.0, 4.0]})
    >>> labels = {"a": "x", "b": "x", "c": "y", "d": "z", "e": "z"}
    >>> found = eb.thresholds(edges, labels, eb.UniformClusters(population=3), records=list("abcdef"))
    >>> ax = curve(found, "pairwise-recall", ax=Figure().subplots())
    >>> ax.get_lines()[0].get_ydata()
    array([0.5, 1. , 1. ])
    """
    wanted = result.metrics[:SHOWN] if metrics is None else chosen(metrics)
    tables = [result.table(metric, level) for metric in wanted]
    ax = axes_of(ax)
    for i, (metric, table) in enumerate(zip(wanted, tables, strict=True)):
        grey = f"{np.linspace(0, 0.65, len(wanted))[i]:.2f}"
        ends = table["lower"], table["upper"]
        ax.fill_between(table["threshold"], *ends, color=grey, alpha=0.2, linewidth=0)
        ax.plot(
            table["threshold"],
            table["estimate"],
            marker=MARKERS[i],
            markersize=3,
            color=grey,
            label=metric.name,
        )
    ax.set_xlabel("threshold")
    ax.set_ylabel(f"estimate and {100 * level:g} % band")
    draw_legend(ax, len(wanted))
    return ax
