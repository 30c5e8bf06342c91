"""Axes of pictures: their rows, panels, ticks, legends, and the styles of series."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, logit

from .._internal.arrays import FloatArray
from .._internal.errors import DataError, head, import_extra
from ..metrics.definitions import MetricLike, resolve_metrics

if TYPE_CHECKING:
    from matplotlib.axes import Axes


MARKERS = "osD^vP*X"
HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "++++")
"""Markers of points and hatches of areas, which distinguish series in print and for all eyes."""
CROWDED = 0.9
"""Probability above which half of all thresholds are squeezed on an even axis."""
TICKS = 7
"""Ticks of an axis of log odds, whose labels are long."""


def choose_names(metrics: MetricLike | None, available: Sequence[str]) -> list[str]:
    """Return the names of the metrics to draw, all by default, refusing those that a result does not have."""
    names = list(available) if metrics is None else [metric.name for metric in resolve_metrics(metrics)]
    if missing := [name for name in names if name not in available]:
        raise DataError(f"the result has no {head(missing)}; it has {', '.join(available)}")
    return names


def axes_of(ax: Axes | None, height: float = 4.0, width: float = 7.0) -> Axes:
    """Return `ax`, or the axes of a new figure, whose height and width are in inches."""
    if ax is not None:
        return ax
    import_extra("matplotlib", "plots need matplotlib", "plots")
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(width, height), layout="constrained")[1]


def style_of(i: int, series: int, label: str) -> dict[str, Any]:
    """Return the style of points of series i: a marker and a grey of its own, from black to light."""
    grey = f"{np.linspace(0, 0.65, series)[i]:.2f}"
    marker = MARKERS[i % len(MARKERS)]
    return {"marker": marker, "linestyle": "", "color": grey, "markersize": 5, "label": label}


def draw_legend(ax: Axes, series: int, letters: float = np.inf) -> None:
    """Draw the legend above the axes, where it hides nothing, with as many letters in a row or fewer."""
    longest = max((len(name) for name in ax.get_legend_handles_labels()[1]), default=0)
    columns = int(min(series, 3, max(1, letters / max(longest, 1))))
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=columns, frameon=False)


def name_rows(ax: Axes, names: Sequence[Any]) -> None:
    """Name the rows of axes, the first at the top."""
    ax.set_yticks(range(len(names)), [str(n) for n in names])
    # downwards, as a table is read
    ax.set_ylim(len(names) - 0.5, -0.5)


def height_of(rows: int, series: int = 1) -> float:
    """Return the height of a figure in inches, for rows with this many series each."""
    return 1.2 + 0.25 * rows * max(1.0, 0.6 * series)


def offsets_of(series: int) -> FloatArray:
    """Return the height of each series above the middle of its row, (series,), as a share of the row."""
    return np.asarray((np.arange(series) - (series - 1) / 2) * 0.8 / series)


def panels_of(ax: Axes | None, blocks: Sequence[Sequence[str]], series: int = 1) -> list[Axes]:
    """Return axes for blocks of named rows, one below the other, in place of `ax`."""
    rows = [len(block) for block in blocks]
    ax = axes_of(ax, height_of(sum(rows), series) + 0.5 * (len(rows) - 1))
    panels = [ax]
    if len(rows) > 1:
        # panels share the place of the axes, so that the caller's figure stays as it is
        place, figure = ax.get_subplotspec(), ax.figure
        if place is None:
            (left, bottom), (right, top) = ax.get_position().get_points()
            place = figure.add_gridspec(1, 1, left=left, bottom=bottom, right=right, top=top)[0]
        grid = place.subgridspec(len(rows), 1, height_ratios=[n + 0.4 for n in rows])
        ax.set_subplotspec(grid[0])
        panels += [figure.add_subplot(grid[i]) for i in range(1, len(rows))]
    for panel, block in zip(panels, blocks, strict=True):
        name_rows(panel, block)
    return panels


def spread_probabilities(x: FloatArray) -> tuple[FloatArray, dict[float, str]]:
    """Return where to draw thresholds, and the ticks of an axis of log odds; none if an even one suits them.

    Ends of 0 and 1, whose log odds are infinite, are drawn where odds are ten times those of a neighbour.
    """
    inside = x[(x > 0) & (x < 1)]
    if x.min() < 0 or x.max() > 1 or not len(inside) or np.mean(x > CROWDED) <= 0.5:
        return x, {}
    tails, least, most = 10.0 ** -np.arange(1, 16), inside.min(), inside.max()
    ticks = np.concatenate([tails[::-1], [0.5], 1 - tails])
    ticks = ticks[(ticks >= least) & (ticks <= most)]
    some = ticks[:: 1 + len(ticks) // TICKS]
    labels = {p: f"1−{1 - p:.0e}" if p > 0.99995 else f"{p:g}" for p in some.tolist()}
    if len(some) < 2:
        return x, {}
    apart = np.log(10) * np.array([-1, 1])
    zero, one = np.clip(expit(logit([least, most]) + apart), np.nextafter(0, 1), np.nextafter(1, 0)).tolist()
    if x.min() == 0:
        labels = {zero: "0"} | labels
    if x.max() == 1:
        labels[one] = "1"
    return np.where(x == 0, zero, np.where(x == 1, one, x)), labels


def round_ticks(panel: Axes) -> None:
    """Draw few and round ticks, with commas between thousands."""
    panel.locator_params(axis="x", nbins=6)
    panel.xaxis.set_major_formatter(lambda x, _: f"{x:,.10g}")
