"""Pictures to explore: the rows of a table with their values under the pointer, in HTML.

A picture is a Figure of plotly (the extra `explore`), which notebooks show. What it loads comes with plotly,
so that `write_html` makes a file that needs no network. Texts are escaped, since plotly reads tags.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.special import logit

from .._internal import digits
from .._internal.arrays import refuse_names
from .._internal.errors import DataError, import_extra
from .axes import spread_probabilities
from .results import arrange_rows

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

INK = "#1a1a1a"
"""Colour of the report's letters."""
SYMBOLS = ("circle", "square", "diamond", "triangle-down", "triangle-up", "pentagon", "x", "star")
"""Markers of plotly, which distinguish series in print and for all eyes."""
SHORT = 20
"""Letters of a name next to an axis, which leave half of a phone to the picture; the pointer shows more."""
ROW = 26
"""Pixels from one row to the next, enough for a finger to meet one of them."""
AXIS = dict(automargin=True, fixedrange=True, gridcolor="#eee", linecolor=INK, separatethousands=True)
AXIS |= dict(showline=True, ticks="outside", title=dict(standoff=8, font_size=13), zeroline=False)
STYLE = dict(
    font=dict(family="system-ui, sans-serif", size=13, color=INK),
    hoverlabel=dict(align="left", bgcolor="#fff", bordercolor=INK, font_color=INK, namelength=-1),
    legend=dict(orientation="h", x=0, y=1, yanchor="bottom"),
    margin=dict(l=8, r=12, t=12, b=8, pad=2),
    # the camera stays; the cloud would send the data elsewhere
    modebar_remove="sendChartToCloud lasso select zoom pan zoomIn zoomOut autoScale resetScale".split(),
    plot_bgcolor="#fff",
    xaxis=dict(nticks=6, **AXIS),
    yaxis=AXIS,
)


def explore(table: pd.DataFrame) -> Figure:
    """Show a table of estimates, each row with its values under the pointer.

    Rows are named by the texts before the column `estimate`, under the name of their metric. Shares have one
    axis, and each other number has its own. Over several thresholds, rows are lines with bands.

    Parameters
    ----------
    table : DataFrame
        With columns estimate, lower and upper, such as `table()` or `differences()` of a result, or a part.

    Raises
    ------
    DataError
        If one of these columns, names of rows, all estimates, or plotly are missing.

    Examples
    --------
    >>> import erbayes as eb
    >>> sample = eb.Sample(eb.measure({i: i // 4 for i in range(120)}, {i: i // 3 for i in range(120)}),
    ...                    eb.UniformClusters())
    >>> found = eb.by_domain(sample, {i: "FR" if i < 60 else "US" for i in range(120)}, "pairwise-recall")
    >>> print(explore(found.table()).data[1].text[0].replace("<br>", "; "))
    FR; pairwise-recall: 0.667 [0.502, 0.811]; 20 effective draws
    """
    refuse_names(["estimate", "lower", "upper"], list(table.columns), "a table to explore")
    table = table if isinstance(table.index, pd.RangeIndex) else table.reset_index()
    before = [*table.columns[: table.columns.get_loc("estimate")]]
    texts = [name for name in before if not pd.api.types.is_numeric_dtype(table[name])]
    if not texts:
        raise DataError("rows to explore are named by the index, or by texts before the column 'estimate'")
    if table["estimate"].isna().all():
        raise DataError("no row to explore has an estimate")
    metric = "metric" if "metric" in texts else texts[0]
    table = table.assign(metric=table[metric], label=table[metric], said=_describe(table))
    if "threshold" in before:
        return _draw_curves(table)
    table["text"] = table["metric"].map(_write) + ": " + table["said"]
    if others := [name for name in texts if name != metric]:
        table["label"] = table[others].astype(str).agg(", ".join, axis=1)
        table["text"] = table["label"].map(_write) + "<br>" + table["text"]
    table = table[table["estimate"].notna()]
    rows = arrange_rows(table, [*table["metric"].unique()])
    if not others:
        rows = [panel[~panel["head"]].reset_index(drop=True) for panel in rows]
    what = "difference" if "difference" in texts else "estimate"
    level = f"{100 * table['level'].iloc[0]:g} % " if "level" in table else ""
    return _draw_rows(rows, f"{what} and {level}interval", what == "difference")


def _draw_curves(table: pd.DataFrame) -> Figure:
    """Draw the estimates and bands of each metric over thresholds. A drag enlarges a part."""
    at = table["threshold"].unique()
    x, ticks = spread_probabilities(at)
    figure = _start(420, hovermode="x unified")
    if ticks:
        x = logit(x)
        figure.update_xaxes(tickvals=logit([*ticks]).tolist(), ticktext=[*ticks.values()])
    # a line that nobody sees, whose text is the first that the pointer shows
    heads = [f"threshold {text}" for text in digits.write_exactly(at.tolist())]
    first = table["estimate"].iloc[: len(at)].fillna(0)
    _add(figure, x, first, heads, mode="lines", line_width=0, showlegend=False, hoverinfo="text")
    metrics = table.groupby("metric", sort=False)
    for i, (name, rows) in enumerate(metrics):
        grey = round(255 * np.linspace(0, 0.65, len(metrics))[i])
        about: dict[str, Any] = {"legendgroup": name, "line_color": f"rgb({grey},{grey},{grey})"}
        lower, upper = rows[["lower", "upper"]].to_numpy().T
        for run in np.ma.clump_unmasked(np.ma.masked_invalid(lower)):
            along, around = np.append(x[run], x[run][::-1]), np.append(upper[run], lower[run][::-1])
            fill = {"fill": "toself", "fillcolor": f"rgba({grey},{grey},{grey},0.15)"} | about
            _add(figure, along, around, mode="lines", line_width=0, showlegend=False, **fill)
        mark = {"marker_symbol": SYMBOLS[i % len(SYMBOLS)], "mode": "lines+markers"} | about
        _add(figure, x, rows["estimate"], rows["said"].tolist(), name=_write(name), **mark)
    figure.update_xaxes(title_text="threshold", fixedrange=False)
    figure.update_yaxes(title_text=f"estimate and {100 * table['level'].iloc[0]:g} % band")
    return figure


def _start(height: float, **layout: Any) -> Figure:
    """Return an empty figure of this height in pixels, as wide as there is room."""
    objects = import_extra("plotly.graph_objects", "pictures to explore need plotly", "explore")
    # a style of its own, since plotly's is larger, and users may choose another for all of their figures
    figure: Figure = objects.Figure(layout={"template": {"layout": STYLE}, "height": height, **layout})
    return figure


def _add(figure: Figure, x: Any, y: Any, text: Sequence[str] | None = None, **look: Any) -> None:
    """Add a line or points, of which the pointer shows the texts, or nothing."""
    shown = {"text": text, "hoverinfo": "text+name"} if text else {"hoverinfo": "skip"}
    figure.add_scatter(x=np.asarray(x).tolist(), y=np.asarray(y).tolist(), **shown | look)


def _draw_rows(rows: Sequence[pd.DataFrame], title: str, zero: bool = False) -> Figure:
    """Draw the rows of each panel (see `arrange_rows`), with their texts under the pointer."""
    height = ROW * sum(len(panel) + 1 for panel in rows) + 50
    figure = _start(height, hovermode="y", showlegend=False)
    heights = [len(panel) for panel in rows]
    figure.set_subplots(len(rows), 1, row_heights=heights, vertical_spacing=1.5 * ROW / height)
    for i, panel in enumerate(rows, 1):
        shown, at = panel[~panel["head"]], dict[str, Any](row=i, col=1)
        # a cross says that there is no interval, where a dot would look certain
        symbols = np.where(shown["lower"].isna(), "x-thin", "circle").tolist()
        ends = shown[["lower", "upper"]].assign(gap=np.nan).to_numpy().ravel()
        caps = at | {"mode": "lines+markers", "line_color": INK, "marker_symbol": "line-ns-open"}
        _add(figure, ends, np.repeat(shown.index, 3), marker_size=6, **caps)
        marker = {"symbol": symbols, "size": 8, "color": INK, "line_width": 1.5, "line_color": INK}
        points = at | {"mode": "markers", "marker": marker, "hoverinfo": "text"}
        _add(figure, shown["estimate"], shown.index, shown["text"].tolist(), **points)
        short = [_shorten(label) for label in panel["label"]]
        names = [f"<b>{name}</b>" if head else name for name, head in zip(short, panel["head"], strict=True)]
        # the first at the top
        ticks = {"tickvals": [*range(len(names))], "ticktext": names, "range": [len(names) - 0.5, -0.5]}
        figure.update_yaxes(ticks | {"ticks": "", "showgrid": False}, **at)
        figure.update_xaxes(zeroline=zero, zerolinecolor=INK, **at)
    figure.update_xaxes(title_text=title, row=len(rows), col=1)
    return figure


def _write(text: Any) -> str:
    """Return a text that plotly shows as it is, neither as tags nor, between dollars, as a formula."""
    return escape(digits.shorten_id(text), quote=False).replace("$", "&#36;")


def _shorten(name: Any) -> str:
    text = digits.shorten_id(name)
    return _write(text if len(text) <= SHORT else f"{text[: SHORT - 1]}…")


def _describe(table: pd.DataFrame) -> list[str]:
    """Return what is known of each row: estimate, interval or why there is none, and effective draws."""
    text = digits.shown(table)
    said = text["estimate"].where(table["estimate"].notna(), "no estimate")
    interval = " [" + text["lower"] + ", " + text["upper"] + "]"
    said += interval.where(table["lower"].notna(), ", no interval")
    if "n_eff" in text:
        said += "<br>" + text["n_eff"] + " effective draws"
    if "reason" in text:
        # in lines that fit on a phone
        folded = text["reason"].map(lambda why: "<br>".join(map(_write, wrap(why, digits.LONGEST))))
        said += ("<br>" + folded).where(table["reason"] != "", "")
    return said.tolist()
