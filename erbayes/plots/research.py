"""Pictures of fits of the size model, of studies and of grids of labelling error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from .._internal.arrays import FloatArray
from .._internal.digits import format_number
from .._internal.errors import DataError, import_extra, need_object
from .axes import axes_of, draw_legend, height_of, name_rows, offsets_of, style_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import DataTree

    from ..analysis.sensitivity import WithErrors
    from ..study import Study


OF_FITS = "this is a picture of a fit, as erbayes.bayes.fast(sample) returns"
FEW = 8
"""Number of dots in a row whose limits can be told apart."""


def draw_size_distribution(fit: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the number of true entities by size: by a `bayes.Fit`, the weighted sample, and the prediction.

    Heights are numbers of entities of one size. Circles estimate them from the sample alone: the draws of a
    bin are divided by the chance of its size, and scaled so that their records add up to N.
    """
    need_object(fit, "evidence", OF_FITS)
    evidence, known = fit.evidence, fit.evidence.units.known
    grid, entities = evidence.grid, evidence.entities
    weighted = np.bincount(entities.bin, entities.draws, len(grid.size)) / evidence.data["selection"]
    drawn = weighted * evidence.data["records"] / (weighted @ grid.size) / grid.width
    predicted = np.bincount(grid.bin(known.size), known.count, len(grid.size)) / grid.width
    ax = _draw_band(axes_of(ax), grid.size, fit.by_size["entities"] / grid.width)
    shown_predicted = np.where(predicted > 0, predicted, np.nan)  # a log axis has no 0
    ax.step(grid.size, shown_predicted, "--", where="mid", color="0.45", label="predicted clusters")
    circles: dict[str, Any] = {"color": "black", "fillstyle": "none", "markersize": 5}
    ax.plot(grid.size[drawn > 0], drawn[drawn > 0], "o", label="sample, weighted by its design", **circles)
    ax.set(yscale="log", ylabel="entities of each size")
    # the posterior reaches down to sizes so rare that they would squeeze all others
    least = min(v[v > 0].min() for v in (drawn, predicted))
    ax.set_ylim(least / 30, 10 * max(drawn.max(), predicted.max()))
    draw_legend(ax, 2)
    return ax


def draw_retention(fit: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the share of an entity's links that the prediction has: its mean by a `bayes.Fit`, and entities.

    Ticks at the bottom mark the sizes that the sample shows, and a dotted line its largest entity. At other
    sizes the band follows from the smoothness that priors expect, and from the known number of predicted
    links. `erbayes.bayes.Fit.explain` has the share of the true links at such sizes.
    """
    grid, entities = fit.evidence.grid, fit.evidence.entities
    ax = _draw_band(axes_of(ax), grid.size[1:], fit.by_size["kept"][..., 1:])
    size = np.unique(entities.size[entities.several])
    bottom: dict[str, Any] = {"transform": ax.get_xaxis_transform(), "label": "sampled sizes"}
    ax.plot(size, np.full(len(size), 0.03), "|", color="black", markersize=7, **bottom)
    ax.axvline(entities.size.max(), color="0.45", linestyle=":", label="largest sampled entity")
    size = entities.size[entities.several]
    circles: dict[str, Any] = {"color": "black", "markersize": 4, "alpha": 0.35, "markeredgewidth": 0}
    kept = entities.links[entities.several] / (size * (size - 1) / 2)
    ax.plot(size, kept, "o", label="sampled entities", **circles)
    draw_legend(ax, 3)
    ax.set_ylabel("share of links kept")
    return ax


def draw_mates(fit: Any, *, ax: Axes | None = None) -> Axes:
    """Draw how often a mate in a predicted cluster is of the same entity: by a `bayes.Fit`, and sampled.

    Circles are the shares of right mates of the sampled records, by the number of them and of the others in
    their cluster that have no label. Without a circle the band follows from the prior's smoothness.
    """
    need_object(fit, "evidence", OF_FITS)
    data, drawn = fit.evidence.data, fit.by_size["mates_right"][..., 1:]
    size, asked = fit.evidence.grid.size[1 : 1 + drawn.shape[-1]], data["asked"][1:]
    ax = _draw_band(axes_of(ax), size, drawn)
    shown = asked > 0
    circles: dict[str, Any] = {"color": "black", "fillstyle": "none", "markersize": 5}
    ax.plot(size[shown], data["right"][1:][shown] / asked[shown], "o", label="sampled records", **circles)
    ax.set(xlabel="records of the predicted cluster without a label", ylabel="share of mates that are right")
    draw_legend(ax, 3)
    return ax


def draw_predicted_sizes(tree: DataTree, *, ax: Axes | None = None) -> Axes:
    """Draw the number of sampled entities of each size or more: by the prior, the posterior, and the sample.

    Predictions, the `tree` of `erbayes.bayes.Fit.predictive`, are for the sample's own design. If the line of
    the sample leaves the band of the posterior, the family of sizes does not fit. If it leaves the band of
    the prior, the prior excludes the sample.
    """
    ax, grid = axes_of(ax), tree["by_size"]["entity_size"].to_numpy()
    for group, shade, line in (("prior", "0.92", ":"), ("posterior", "0.78", "-")):
        larger = _count_or_larger(tree[f"{group}_predictive"]["size"].to_numpy(), grid)
        low, middle, high = np.quantile(larger, [0.025, 0.5, 0.975], axis=(0, 1))
        ax.fill_between(grid, low, high, color=shade, label=f"{group}, 95 %")
        ax.plot(grid, middle, color="black", linestyle=line, linewidth=1)
    sampled = _count_or_larger(tree["observed_data"]["size"].to_numpy(), grid)
    ax.step(grid, np.where(sampled > 0, sampled, np.nan), where="mid", color="black", label="sample")
    _spread_sizes(ax, grid)
    ax.set_yscale("symlog", linthresh=1)
    ax.yaxis.set_major_formatter("{x:g}")
    ax.set(ylim=(0, None), ylabel="sampled entities of that size or more")
    draw_legend(ax, 3)
    return ax


def _count_or_larger(size: FloatArray, grid: FloatArray) -> FloatArray:
    """Return the number of sizes, of an array (..., k), in each bin of a grid or above it, (..., J)."""
    return np.stack([(size >= middle).sum(axis=-1) for middle in np.floor(grid)], axis=-1).astype(float)


def _draw_band(ax: Axes, size: FloatArray, draws: FloatArray) -> Axes:
    """Draw the median and the middle 95 % of posterior draws, (chain, draw, J), over sizes, (J,)."""
    low, middle, high = np.quantile(draws, [0.025, 0.5, 0.975], axis=(0, 1))
    ax.fill_between(size, low, high, color="0.85", label="95 % of the posterior")
    ax.plot(size, middle, color="black", label="posterior median")
    _spread_sizes(ax, size)
    return ax


def _spread_sizes(ax: Axes, size: FloatArray) -> None:
    """Make the axis of sizes logarithmic, whose numbers do not meet: all within a power of 10, or 2 and 5."""
    ax.set_xscale("log", subs=range(2, 10) if size[-1] <= 10 * size[0] else (2, 5))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter("{x:g}" if size[-1] < 100 * size[0] else "")
    ax.set_xlabel("records of the entity")


def draw_estimates(study: Study, metric: str, ax: Axes | None = None) -> Axes:
    """Draw the estimates of each estimator in every cell of a study, and the truth of the cell.

    Thin lines cover the middle 95 % of estimates without failures, thick ones half; markers are medians.
    """
    runs = study.runs[study.runs["metric"] == metric]
    if runs.empty:
        raise DataError(f"the study has no metric {metric!r}; it has {list(study.runs['metric'].unique())}")
    parts = [runs["population"], runs["plan"], "n = " + runs["n"].astype(str)]
    cell, *others = [part for part in parts if part.nunique() > 1] or parts[2:]
    for part in others:
        cell = cell + ", " + part
    truths = runs.groupby(cell, sort=False)["truth"].first()
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

    A study has its nominal level, drawn as a line, and the table of one has `level`. In `ax` all dots are
    drawn, whatever their metric and plan. Otherwise there is a new figure, whose first Axes are returned.
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
        From `erbayes.analysis.sensitivity.grid` of `found`, at two rates or more of either kind, each with
        each. By default its first `metric` is drawn, and no contour is bold.
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
    ax.set(xlabel="share of the pieces elsewhere that annotators missed")
    ax.set(ylabel="share of the foreign records that they kept")
    said = "" if under is None else f"; bold: under {format_number(under)}"
    ax.set_title(f"{metric}{said}", pad=24)  # above the legend
    draw_legend(ax, 2)
    return ax
