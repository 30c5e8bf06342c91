"""Pictures of results. Each function takes a result and returns Axes; nothing is estimated here.

Needs matplotlib (the extra `plots`), which is loaded when the first picture is drawn. Everything is
black, white and grey, and series differ in shape as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from .clustering import DataError
from .uncertain import Draws, Normal, Scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKERS = "osD^vP*X"
HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "++++")


def _axes(ax: Axes | None, height: float = 4.0) -> Axes:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ModuleNotFoundError as error:
        raise DataError("plots need matplotlib: pip install 'erbayes[plots]'") from error
    return pyplot.subplots(figsize=(7, height), layout="constrained")[1]


def _greys(series: int) -> list[str]:
    """A grey for each series, from black to light."""
    return [f"{grey:.2f}" for grey in np.linspace(0, 0.65, series)]


def _legend(ax: Axes, series: int) -> None:
    """Above the axes, where it hides nothing."""
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=min(series, 3), frameon=False)


def _rows(ax: Axes, names: Sequence[Any]) -> None:
    """Named rows, the first at the top."""
    ax.set_yticks(range(len(names)), [str(n) for n in names])
    ax.set_ylim(len(names) - 0.5, -0.5)


def forest(
    result: Normal | Draws | Mapping[str, Normal | Draws], *, level: float = 0.95,
    scale: Scale | None = None, ax: Axes | None = None,
) -> Axes:  # fmt: skip
    """Estimates and intervals, one row a metric.

    Parameters
    ----------
    result : Normal or Draws, or mapping of name -> Normal or Draws
        Several results stand side by side, each with its own marker; they may differ in metrics.
    level, scale
        As in `Normal.interval`; Draws have no scale.
    ax : Axes, optional

    Examples
    --------
    >>> import erbayes as eb
    >>> labels = {1: "x", 2: "x", 3: "y", 4: "z"}
    >>> found = eb.estimate({1: "a", 2: "a", 3: "a", 4: "b"}, labels, eb.UniformClusters(),
    ...                     [eb.metrics.b3_precision, eb.metrics.b3_recall])
    >>> from matplotlib.figure import Figure
    >>> [t.get_text() for t in forest(found, ax=Figure().subplots()).get_yticklabels()]
    ['b3-precision', 'b3-recall']
    """
    results = dict(result) if isinstance(result, Mapping) else {"": result}
    if not results:
        raise DataError("a forest plot needs at least one result")
    names = list(dict.fromkeys(name for r in results.values() for name in r.names))
    ax = _axes(ax, 1.2 + 0.25 * len(names) * max(1.0, 0.6 * len(results)))
    offsets = (np.arange(len(results)) - (len(results) - 1) / 2) * 0.8 / len(results)
    for i, (label, one) in enumerate(results.items()):
        y = np.array([names.index(n) for n in one.names]) + offsets[i]
        bounds = one.interval(level, scale) if isinstance(one, Normal) else one.interval(level)
        grey = _greys(len(results))[i]
        ax.hlines(y, bounds[:, 0], bounds[:, 1], color=grey)
        ax.plot(one.mean, y, MARKERS[i % len(MARKERS)], color=grey, markersize=5, label=label)
    _rows(ax, names)
    ax.set_xlabel(f"estimate and {100 * level:g} % interval")
    if isinstance(result, Mapping):
        _legend(ax, len(results))
    return ax


def sampling_distribution(
    estimates: Mapping[str, ArrayLike], truth: float, *, ax: Axes | None = None
) -> Axes:
    """Histograms of what several estimators gave in repeated samples, and the truth as a line.

    Parameters
    ----------
    estimates : mapping, name of the estimator -> estimates
    truth : float
    ax : Axes, optional

    Raises
    ------
    DataError
        No estimates, or some that are not finite.

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
        odd = int(np.count_nonzero(~np.isfinite(v)))
        if odd:
            raise DataError(f"estimates of {name!r}: {odd} of {len(v)} are not finite")
        if not len(v):
            raise DataError(f"estimates of {name!r}: there are none")
    ax = _axes(ax)
    edges = np.histogram_bin_edges(np.concatenate(list(values.values())), bins=50)
    fill = np.linspace(0.35, 0.95, len(values))
    for i, (name, v) in enumerate(values.items()):
        ax.hist(v, edges.tolist(), histtype="stepfilled", facecolor=f"{fill[i]:.2f}", edgecolor="black",
                alpha=0.8, hatch=HATCHES[i % len(HATCHES)], label=f"{name}, {len(v):,} samples")  # fmt: skip
    ax.axvline(truth, color="black", linestyle="--", label=f"truth, {truth:.4g}")
    ax.set_xlabel("estimate")
    ax.set_ylabel("samples")
    _legend(ax, len(values) + 1)
    return ax


def influence(table: pd.DataFrame, most: int = 20, ax: Axes | None = None) -> Axes:
    """The `most` influential units, as bars: dark where they raise the estimate, light where they lower it.

    Parameters
    ----------
    table : DataFrame
        From `erbayes.influence`, the most influential unit first.
    most : int
    ax : Axes, optional

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> table = pd.DataFrame({"influence": [-0.2, 0.1]}, index=["x", "y"])
    >>> [float(bar.get_width()) for bar in influence(table, ax=Figure().subplots()).patches]
    [-0.2, 0.1]
    """
    shown = table["influence"].head(most)
    ax = _axes(ax, 1.2 + 0.25 * len(shown))
    ax.barh(range(len(shown)), shown, color=np.where(shown > 0, "0.3", "0.8").tolist(), edgecolor="black")
    ax.axvline(0, color="black", linewidth=1)
    _rows(ax, list(shown.index))
    ax.locator_params(axis="x", nbins=5)
    ax.set_xlabel("influence on the estimate")
    return ax


def balance(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Estimated over known totals, with 2 standard errors either side, around a line at 1.

    Parameters
    ----------
    table : DataFrame
        From `erbayes.balance`.
    ax : Axes, optional

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> table = pd.DataFrame({"se": [1.0], "known": [10.0], "ratio": [0.9]}, index=["records"])
    >>> balance(table, ax=Figure().subplots()).lines[1].get_xdata().tolist()
    [0.9]
    """
    ax = _axes(ax, 1.2 + 0.4 * len(table))
    ax.axvline(1, color="black", linestyle="--", linewidth=1)
    ax.errorbar(table["ratio"], range(len(table)), xerr=2 * table["se"] / table["known"], fmt="o",
                color="black", capsize=3)  # fmt: skip
    _rows(ax, list(table.index))
    ax.set_xlabel("estimated / known, and 2 standard errors either side")
    return ax
