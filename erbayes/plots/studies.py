"""Pictures of studies and of grids of labelling error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from .._internal.digits import format_number
from .._internal.errors import DataError, import_extra
from .axes import axes_of, draw_legend, height_of, name_rows, offsets_of, style_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..analysis.sensitivity import WithErrors
    from ..study import Against, Study

FEW = 8
"""Number of dots in a row whose limits can be told apart."""


def _name_cells(table: pd.DataFrame) -> pd.Series:
    parts = [table["population"], table["plan"], "n = " + table["n"].astype(str), table["metric"]]
    first, *others = [part for part in parts if part.nunique() > 1] or [parts[2]]
    return first.str.cat(pd.concat(others, axis=1), sep=", ") if others else first


def draw_estimates(study: Study, metric: str, ax: Axes | None = None) -> Axes:
    """Draw the estimates of each estimator in every cell of a study, and the truth of the cell.

    Thin lines cover the middle 95 % of the estimates, thick ones the middle half; markers are medians.
    Failures are left out.

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


def draw_coverage(study: Study | pd.DataFrame, level: float = 0.95, ax: Axes | None = None) -> Axes:
    """Draw the coverage of each estimator's intervals, a dot for each population and number of draws.

    There is a panel for each metric and plan. Bars are means over the dots, and lines through a dot are its
    95 % limits by Monte Carlo error, if there are few. Estimators without an interval are left out.

    Parameters
    ----------
    study : Study, or DataFrame from `Study.table`
    level : float in (0, 1)
        The nominal level of a table, drawn as a line. A study has its own.
    ax : Axes, optional
        All dots are drawn in it, whatever their metric and plan. By default there is a new figure, whose
        first axes are returned.
    """
    table, level = (study, level) if isinstance(study, pd.DataFrame) else (study.table(), study.level)
    table = table[table["coverage"].notna()]
    names = list(table["estimator"].unique())
    down = [c for c in ("plan", "annotator") if c in table]
    rows, columns = list(table.groupby(down, sort=False)), list(table["metric"].unique())
    label = f"coverage of {100 * level:g} % intervals, with the mean and the least"
    if ax is not None:
        panels, rows, columns = np.array([[ax]]), [((), table)], ["every metric"]
    else:
        import_extra("matplotlib", "plots need matplotlib", "plots")
        from matplotlib import pyplot

        size = (1.6 + 2.6 * len(columns), 0.5 + (0.5 + 0.35 * len(names)) * len(rows))
        figure, shape = pyplot.figure(figsize=size, layout="constrained"), (len(rows), len(columns))
        panels = figure.subplots(*shape, sharex=True, sharey=True, squeeze=False)
        figure.supxlabel(label, fontsize="medium")
    for of_row, (key, here) in zip(panels, rows, strict=True):
        for panel, metric in zip(of_row, columns, strict=True):
            own = here if ax is not None else here[here["metric"] == metric]
            panel.axvline(level, color="black", linestyle="--", linewidth=1)
            for i, name in enumerate(names):
                _draw_dots(panel, i, own[own["estimator"] == name])
            name_rows(panel, names)
            panel.set_xlim(-0.02, 1.02)
            if ax is None:
                panel.set_title(", ".join([metric, *map(str, key if len(rows) > 1 else ())]), fontsize=9)
            else:
                panel.set_xlabel(label)
    first: Axes = panels[0, 0]
    return first


def draw_against(found: Against, measure: str = "rmse", ax: Axes | None = None) -> Axes:
    """Draw how a measure differs from that of a reference in every cell, with two Monte Carlo errors.

    Parameters
    ----------
    found : Against
        From `Study.against`.
    measure : str
        A measure of `Study.table`.
    """
    table = found.table()
    if f"{measure}_mcse" not in table:
        raise DataError(f"a study has no measure {measure!r}; Study.table has all")
    cell, estimators = _name_cells(table), list(table["estimator"].unique())
    names = list(cell.unique())
    ax = axes_of(ax, height_of(len(names), len(estimators)))
    ax.axvline(0, color="black", linestyle="--", linewidth=1)
    for i, estimator in enumerate(estimators):
        rows = table.set_index(cell)[table["estimator"].to_numpy() == estimator].reindex(names)
        x, error = rows[measure], 2 * rows[f"{measure}_mcse"]
        y = np.arange(len(names)) + offsets_of(len(estimators))[i]
        style = style_of(i, len(estimators), estimator)
        ax.hlines(y, x - error, x + error, color=style["color"], linewidth=1)
        ax.plot(x, y, **style, markerfacecolor="white")
    name_rows(ax, names)
    ax.set_xlabel(f"{measure} less that of {found.reference}, with two Monte Carlo errors")
    draw_legend(ax, len(estimators))
    return ax


def _draw_dots(panel: Axes, row: int, table: pd.DataFrame) -> None:
    """Draw the coverage of an estimator in several cells as dots in a row, and say the mean and the least."""
    x = table["coverage"].to_numpy()
    if not len(x):
        return
    # dots in order of the table, so that a population has its height in every row and panel
    y = row + (np.arange(len(x)) - (len(x) - 1) / 2) * 0.5 / len(x)
    if len(x) <= FEW:
        panel.hlines(y, table["coverage_lower"], table["coverage_upper"], color="0.6", linewidth=1)
    panel.plot(x, y, "o", color="black", alpha=0.6, markersize=4)
    panel.plot([x.mean()], [row], "|", color="black", markersize=18, markeredgewidth=2)
    said = f"{x.mean():.2f}, {x.min():.2f}" if len(x) > 1 else f"{x[0]:.2f}"
    panel.text(-0.01, row - 0.3, said, fontsize=7, va="center")


def draw_tipping(
    grid: pd.DataFrame,
    found: WithErrors,
    metric: str | None = None,
    under: float | None = None,
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw contours of a metric over rates of missed pieces and kept records, and where the priors are.

    The bold line is the one at `under`, the diamond the estimate for the labels as they are, and dots are the
    rates drawn from the priors, with which intervals are made.

    Parameters
    ----------
    grid : DataFrame
        From `erbayes.analysis.sensitivity.grid`, at two rates or more of either kind, each with each.
    found : WithErrors
        Of which the grid is.
    metric : str, optional
        Name of a metric of the grid, by default its first.
    under : float, optional
        The value, in the unit of the metric. By default no contour is bold.
    """
    names = grid["metric"].unique()
    metric = names[0] if metric is None else metric
    rows = grid[grid["metric"] == metric]
    if rows.empty:
        raise DataError(f"the grid has no metric {metric!r}; it has {', '.join(names)}")
    values = rows.pivot_table("estimate", "kept", "missed", dropna=False)
    if min(values.shape) < 2:
        kept, missed = values.shape
        raise DataError(f"contours need two rates or more each way, not {missed} and {kept}")
    u, v, x = values.columns.to_numpy(), values.index.to_numpy(), values.to_numpy()
    ax = axes_of(ax)
    thin = ax.contour(u, v, x, colors="0.6", linewidths=1)
    levels = np.asarray(thin.levels)
    shown = levels[~np.isclose(levels[:, None], [] if under is None else [under]).any(axis=1)]
    ax.clabel(thin, shown, fmt="%.2f" if np.allclose(levels, levels.round(2)) else "%.3f")
    if under is not None and np.nanmin(x) < under < np.nanmax(x):
        line = ax.contour(u, v, x, levels=[under], colors="black", linewidths=2.5)
        ax.clabel(line, fmt=format_number(under))
    rates = found.rates
    ax.plot(rates["missed"], rates["kept"], ".", color="0.4", label="rates drawn from the priors")
    ax.plot(0, 0, "D", color="black", clip_on=False, label="labels as they are")
    ax.set_xlabel("share of the pieces elsewhere that annotators missed")
    ax.set_ylabel("share of the foreign records that they kept")
    said = "" if under is None else f"; bold: under {format_number(under)}"
    ax.set_title(f"{metric}{said}", pad=24)  # above the legend
    draw_legend(ax, 2)
    return ax
