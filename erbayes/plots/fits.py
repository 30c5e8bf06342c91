"""Pictures of fits of the size model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._internal.arrays import FloatArray
from .._internal.errors import need_object
from .axes import axes_of, draw_legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import DataTree

OF_FITS = "this is a picture of a fit, as erbayes.bayes.fast(sample) returns"


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
    shown = drawn > 0
    ax.plot(grid.size[shown], drawn[shown], "o", label="sample, weighted by its design", **circles)
    ax.set_yscale("log")
    # the posterior reaches down to sizes so rare that they would squeeze all others
    least = min(v[v > 0].min() for v in (drawn, predicted))
    ax.set_ylim(least / 30, 10 * max(drawn.max(), predicted.max()))
    ax.set_ylabel("entities of each size")
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
    _draw_entities(ax, size, entities.links[entities.several] / (size * (size - 1) / 2))
    ax.set_ylabel("share of links kept")
    return ax


def draw_mates(fit: Any, *, ax: Axes | None = None) -> Axes:
    """Draw how often a mate in a predicted cluster is of the same entity: by a `bayes.Fit`, and sampled.

    Circles are the shares of right mates of the sampled records, in bins of sizes of predicted clusters. At
    sizes without a circle the band follows from the smoothness that the prior expects.
    """
    need_object(fit, "evidence", OF_FITS)
    data, drawn = fit.evidence.data, fit.by_size["mates_right"][..., 1:]
    size, asked = fit.evidence.grid.size[1 : 1 + drawn.shape[-1]], data["asked"][1:]
    ax = _draw_band(axes_of(ax), size, drawn)
    shown = asked > 0
    circles: dict[str, Any] = {"color": "black", "fillstyle": "none", "markersize": 5}
    ax.plot(size[shown], data["right"][1:][shown] / asked[shown], "o", label="sampled records", **circles)
    ax.set_xlabel("records of the predicted cluster")
    ax.set_ylabel("share of mates that are right")
    draw_legend(ax, 3)
    return ax


def draw_predicted_sizes(tree: DataTree, *, ax: Axes | None = None) -> Axes:
    """Draw the number of sampled entities of each size or more: by the prior, the posterior, and the sample.

    Predictions are for the sample's own design. If the line of the sample leaves the band of the posterior,
    the family of sizes does not fit. If it leaves the band of the prior, the prior excludes the sample.

    Parameters
    ----------
    tree : DataTree
        From `erbayes.bayes.Fit.predictive`.
    """
    ax, grid = axes_of(ax), tree["by_size"]["entity_size"].to_numpy()
    for group, shade, line in (("prior", "0.92", ":"), ("posterior", "0.78", "-")):
        larger = _count_or_larger(tree[f"{group}_predictive"]["size"].to_numpy(), grid)
        low, middle, high = np.quantile(larger, [0.025, 0.5, 0.975], axis=(0, 1))
        ax.fill_between(grid, low, high, color=shade, label=f"{group}, 95 %")
        ax.plot(grid, middle, color="black", linestyle=line, linewidth=1)
    sampled = _count_or_larger(tree["observed_data"]["size"].to_numpy(), grid)
    ax.step(grid, np.where(sampled > 0, sampled, np.nan), where="mid", color="black", label="sample")
    ax.set_xscale("log")
    ax.set_yscale("symlog", linthresh=1)
    ax.set_ylim(bottom=0)
    ax.yaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.set_xlabel("records of the entity")
    ax.set_ylabel("sampled entities of that size or more")
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
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.set_xlabel("records of the entity")
    return ax


def _draw_entities(ax: Axes, size: FloatArray, value: FloatArray) -> None:
    circles: dict[str, Any] = {"color": "black", "markersize": 4, "alpha": 0.35, "markeredgewidth": 0}
    ax.plot(size, value, "o", label="sampled entities", **circles)
    draw_legend(ax, 3)
