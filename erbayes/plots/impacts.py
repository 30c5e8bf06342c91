"""A picture of what errors do to a user's own numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..analysis.impact import Impact
from .axes import axes_of, height_of, name_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_errors(result: Impact, *, level: float = 0.95, ax: Axes | None = None) -> Axes:
    """Draw how far each number of the predicted clusters is from the truth, in percent of the estimate."""
    table = result.table(level)
    percent = 100 / table["estimate"].abs()
    ax = axes_of(ax, height_of(len(table)))
    rows = range(len(table))
    ax.axvline(0, color="0.7", linewidth=1)
    ax.hlines(rows, table["least"] * percent, table["most"] * percent, color="0.0")
    ax.plot(table["difference"] * percent, rows, "o", color="0.0", markersize=5)
    names = table.index if "domain" not in table else table.index + " of " + table["domain"]
    name_rows(ax, list(names))
    ax.set_xlabel(f"error of the clusters, % of the truth, with {100 * level:g} % interval")
    return ax
