"""Pictures of studies and of grids of labelling error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from .._internal.errors import DataError
from .axes import axes_of, draw_legend, height_of, name_rows, offsets_of, style_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..analysis.sensitivity.grids import Grid
    from ..study.harness import Study


def _name_cells(table: pd.DataFrame) -> pd.Series:
    """Name of the cell of each row, made of the columns in which cells differ."""
    parts = [table["population"], table["plan"], "n = " + table["n"].astype(str), table["metric"]]
    first, *others = [part for part in parts if part.nunique() > 1] or [parts[2]]
    return first.str.cat(pd.concat(others, axis=1), sep=", ") if others else first


def draw_estimates(study: Study, metric: str, ax: Axes | None = None) -> Axes:
    """Draw the estimates of each estimator in every cell of a study, and the truth of the cell.

    Thin lines cover the middle 95 % of the estimates, thick ones the middle half; markers are medians.
    For a single cell `draw_sampling_distribution` shows more. Failures are left out.

    Parameters
    ----------
    study : Study
        From `erbayes.study.study`.
    metric : str
        Name of a metric of the study.
    """
    runs = study.runs[study.runs["metric"] == metric]
    if runs.empty:
        raise DataError(f"the study has no metric {metric!r}; it has {list(study.runs['metric'].unique())}")
    cell, truths = _name_cells(runs), runs.groupby(_name_cells(runs), sort=False)["truth"].first()
    names, estimators = list(truths.index), list(runs["estimator"].unique())
    ax = axes_of(ax, height_of(len(names), len(estimators)))
    for i, estimator in enumerate(estimators):
        values = runs[runs["estimator"] == estimator].groupby(cell, sort=False)["estimate"]
        q = values.quantile([0.025, 0.25, 0.5, 0.75, 0.975]).unstack().reindex(names).to_numpy()
        y = np.arange(len(names)) + offsets_of(len(estimators))[i]
        style = style_of(i, len(estimators), estimator)
        ax.hlines(y, q[:, 0], q[:, 4], color=style["color"], linewidth=1)
        ax.hlines(y, q[:, 1], q[:, 3], color=style["color"], linewidth=4)
        ax.plot(q[:, 2], y, **style, markerfacecolor="white")
    rows = np.arange(len(names))
    ax.vlines(truths, rows - 0.45, rows + 0.45, color="black", linestyle="--", linewidth=1, label="truth")
    name_rows(ax, names)
    ax.set_xlabel("median, middle half and middle 95 % of the estimates")
    draw_legend(ax, len(estimators) + 1)
    return ax


def draw_coverage(table: pd.DataFrame, level: float = 0.95, ax: Axes | None = None) -> Axes:
    """Draw the coverage of each estimator's intervals in every cell, with 2 Monte Carlo standard errors.

    Estimators without an interval are left out.

    Parameters
    ----------
    table : DataFrame
        From `Study.table`, or several such tables below one another.
    level : float in (0, 1)
        The nominal level, drawn as a line.
    """
    table = table[table["coverage"].notna()].reset_index(drop=True)
    cell = _name_cells(table)
    names, estimators = list(cell.unique()), list(table["estimator"].unique())
    ax = axes_of(ax, height_of(len(names), len(estimators)))
    ax.axvline(level, color="black", linestyle="--", linewidth=1)
    for i, estimator in enumerate(estimators):
        rows = table[table["estimator"] == estimator]
        y = pd.Index(names).get_indexer(cell[rows.index]) + offsets_of(len(estimators))[i]
        ax.errorbar(
            rows["coverage"], y, xerr=2 * rows["coverage_se"], **style_of(i, len(estimators), estimator)
        )
    name_rows(ax, names)
    ax.set_xlabel(f"coverage of {100 * level:g} % intervals, and 2 standard errors either side")
    draw_legend(ax, len(estimators))
    return ax


def draw_tipping(grid: Grid, metric: str, under: float, *, ax: Axes | None = None) -> Axes:
    """Draw contours of a metric over rates of missed pieces and kept records, and where the priors are.

    The bold line is the contour at `under`. The diamond is the estimate for the labels as they are, and dots
    are the rates drawn from the priors, with which intervals are made.

    Parameters
    ----------
    grid : Grid
        From `erbayes.analysis.sensitivity.grid`, at two rates or more of either kind, each with each.
    metric : str
        Name of a metric of the grid.
    under : float
        The value, in the unit of the metric.
    """
    rows, names = grid.rows[grid.rows["metric"] == metric], grid.rows["metric"].unique()
    if rows.empty:
        raise DataError(f"the grid has no metric {metric!r}; it has {', '.join(names)}")
    values = rows.pivot_table("estimate", "kept", "missed", dropna=False)
    if min(values.shape) < 2:
        kept, missed = values.shape
        raise DataError(f"contours need two rates or more each way, not {missed} and {kept}")
    u, v, x = values.columns.to_numpy(), values.index.to_numpy(), values.to_numpy()
    ax = axes_of(ax)
    thin = ax.contour(u, v, x, colors="0.6", linewidths=1)
    ax.clabel(thin, [level for level in np.asarray(thin.levels) if not np.isclose(level, under)], fmt="%.2f")
    if np.nanmin(x) < under < np.nanmax(x):
        line = ax.contour(u, v, x, levels=[under], colors="black", linewidths=2.5)
        ax.clabel(line, fmt=f"{under:g}")
    rates = grid.found.rates
    ax.plot(rates["missed"], rates["kept"], ".", color="0.4", label="rates drawn from the priors")
    ax.plot(0, 0, "D", color="black", clip_on=False, label="labels as they are")
    ax.set_xlabel("share of the pieces elsewhere that annotators missed")
    ax.set_ylabel("share of the foreign records that they kept")
    ax.set_title(f"{metric}; bold: under {under:g}", pad=24)  # above the legend
    draw_legend(ax, 2)
    return ax
