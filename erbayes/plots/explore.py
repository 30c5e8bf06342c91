"""Pictures to explore: values under the pointer, in HTML, of the tables that static pictures draw.

Each function returns a Figure of plotly (the extra `explore`), which notebooks show. What it loads comes with
plotly, so that `write_html` makes a file that needs no network. Texts of the data are escaped, since plotly
reads tags in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from html import escape
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.special import logit

from .._internal import digits
from .._internal.errors import NotIdentified, import_extra
from ..analysis.causes.records_to_review import review
from ..analysis.comparison import Comparison
from ..analysis.domains.estimates import ByDomain
from ..analysis.thresholds import Curve
from ..design.sample import Sample
from ..engine import diagnostics
from ..metrics.columns import PREDICTED_LINKS, Known
from ..metrics.definitions import Metric, MetricLike, pairwise_precision, resolve_metric
from ..metrics.intervals import Kind
from ..metrics.uncertain import Estimates
from .axes import choose_names, spread_probabilities
from .curves import list_bands
from .results import arrange_rows, find_blocks, list_domains, name_interval

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
RECORDS = 6
"""Records of a unit that are shown, two of each piece, which fit on a phone."""
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


def explore_thresholds(result: Curve, metrics: MetricLike | None = None, *, level: float = 0.95) -> Figure:
    """Show metrics over thresholds: at each, its links, estimates and bands. A drag enlarges a part.

    Parameters are those of `draw_curve`.

    Examples
    --------
    >>> import erbayes as eb
    >>> edges = pd.DataFrame({"l": ["a", "b", "d"], "r": ["b", "c", "e"], "weight": [9.0, 2.0, 4.0]})
    >>> labels = {"a": "x", "b": "x", "c": "y", "d": "z", "e": "z"}
    >>> curve = eb.thresholds(edges, labels, eb.UniformClusters(population=3), records=list("abcdef"))
    >>> figure = explore_thresholds(curve, "pairwise-recall")
    >>> figure.data[0].text[1], figure.data[-1].text[1]
    ('threshold 4, 2 links', '1.000 [1.000, 1.000]')
    """
    (x, ticks), tables = spread_probabilities(result.thresholds), list_bands(result, metrics, level)
    figure = _start(420, hovermode="x unified")
    if ticks:
        x = logit(x)
        figure.update_xaxes(tickvals=logit([*ticks]).tolist(), ticktext=[*ticks.values()])
    first = next(iter(tables.values()))["estimate"].fillna(0)
    heads = [
        f"threshold {at:.{result.digits}g}, {_count_links(sample)}"
        for at, sample in zip(result.thresholds.tolist(), result.samples, strict=True)
    ]
    # a line that nobody sees, whose text is the first that the pointer shows
    _add(figure, x, first, heads, mode="lines", line_width=0, showlegend=False, hoverinfo="text")
    for i, (name, table) in enumerate(tables.items()):
        grey = round(255 * np.linspace(0, 0.65, len(tables))[i])
        about = {"legendgroup": name, "line_color": f"rgb({grey},{grey},{grey})"}
        lower, upper = table[["lower", "upper"]].to_numpy().T
        for run in np.ma.clump_unmasked(np.ma.masked_invalid(lower)):
            along, around = np.append(x[run], x[run][::-1]), np.append(upper[run], lower[run][::-1])
            fill = {"fill": "toself", "fillcolor": f"rgba({grey},{grey},{grey},0.15)"} | about
            _add(figure, along, around, mode="lines", line_width=0, showlegend=False, **fill)
        mark = {"marker_symbol": SYMBOLS[i % len(SYMBOLS)], "mode": "lines+markers"} | about
        _add(figure, x, table["estimate"], _describe(table.drop(columns="n_eff")), name=_write(name), **mark)
    figure.update_xaxes(title_text="threshold", fixedrange=False)
    figure.update_yaxes(title_text=f"estimate and {100 * level:g} % band")
    return figure


def explore_estimates(
    result: Estimates, metrics: MetricLike | None = None, *, level: float = 0.95, kind: Kind | None = None
) -> Figure:
    """Show estimates, each with its interval under the pointer, and why it has none.

    Parameters
    ----------
    metrics : Metric or str, or several, optional
        The metrics to show; all by default.
    level, kind
        As in `Estimates.table`.

    Examples
    --------
    >>> import erbayes as eb
    >>> prediction, labels = {i: i // 3 for i in range(1200)}, {i: i // 4 for i in range(120)}
    >>> found = eb.estimate(prediction, labels, eb.UniformClusters(), "b3-recall")
    >>> explore_estimates(found).data[1].text
    ('b3-recall: 0.583 [0.560, 0.606]',)
    """
    table = result.table(level, kind)
    table = table.assign(label=table.index, head=False, text=_describe(table))
    table["text"] = [f"{_write(name)}: {said}" for name, said in table["text"].items()]
    blocks = find_blocks({"": result}, metrics, level, () if kind is None else (kind,))
    rows = [table.loc[block].reset_index(drop=True) for block in blocks]
    return _draw_rows(rows, name_interval(rows))


def explore_differences(
    result: Comparison, metrics: MetricLike | None = None, *, level: float = 0.95, kind: Kind | None = None
) -> Figure:
    """Show the differences of predictions from the first, with the estimates of both under the pointer.

    Parameters
    ----------
    metrics : Metric or str, or several, optional
        The metrics to show; all by default.
    level, kind
        As in `Comparison.table`.

    Examples
    --------
    >>> import erbayes as eb
    >>> labels = {i: i // 4 for i in range(120)}
    >>> old, new = ({i: i // size for i in range(1200)} for size in (2, 3))
    >>> both = eb.compare({"old": old, "new": new}, labels, eb.UniformClusters(), "b3-recall")
    >>> print(explore_differences(both).data[1].text[0].replace("<br>", "; "))
    b3-recall; new - old: 0.083 [0.054, 0.113]; old: 0.500 [0.485, 0.531]; new: 0.583 [0.560, 0.606]
    """
    names, first = [metric.name for metric in result.metrics], result.predictions[0]
    levels = result.levels(level, kind).assign(said=lambda table: _describe(table))
    said = levels.set_index(["prediction", "metric"])["said"]
    # differences from the first prediction come first, those of one after the other
    table = result.differences(level, kind).head((len(result.predictions) - 1) * len(names))
    new = np.repeat(result.predictions[1:], len(names))
    texts = [
        f"{_write(metric)}<br>{_write(f'{name} - {first}')}: {difference}"
        f"<br>{_write(first)}: {said[first, metric]}<br>{_write(name)}: {said[name, metric]}"
        for name, metric, difference in zip(new, table["metric"], _describe(table), strict=True)
    ]
    rows = arrange_rows(table.assign(label=new, text=texts), choose_names(metrics, names))
    title = f"difference from {_shorten(first)}<br>and {100 * level:g} % interval"
    return _draw_rows(rows, title, zero=True)


def explore_domains(
    result: ByDomain,
    metrics: MetricLike | None = None,
    *,
    level: float = 0.95,
    kind: Kind | None = None,
    simultaneous: bool = False,
) -> Figure:
    """Show estimates of domains: each with its name, interval and effective draws under the pointer.

    Parameters are those of `draw_by_domain`.

    Examples
    --------
    >>> import erbayes as eb
    >>> sample = eb.Sample(eb.measure({i: i // 4 for i in range(120)}, {i: i // 3 for i in range(120)}),
    ...                    eb.UniformClusters())
    >>> found = eb.by_domain(sample, {i: "FR" if i < 60 else "US" for i in range(120)}, "pairwise-recall")
    >>> print(explore_domains(found).data[1].text[0].replace("<br>", "; "))
    FR; pairwise-recall: 0.667 [0.502, 0.811]; 20 effective draws
    """
    rows = list_domains(result, metrics, level, kind, simultaneous)
    for panel in rows:
        panel["text"] = [
            f"{_write(name)}<br>{_write(metric)}: {said}"
            for name, metric, said in zip(panel["label"], panel["metric"], _describe(panel), strict=True)
        ]
    return _draw_rows(rows, name_interval(rows))


def explore_influence(
    sample: Sample,
    metric: Metric | str = pairwise_precision,
    most: int = 20,
    *,
    attributes: pd.DataFrame | None = None,
) -> Figure:
    """Show the most influential units, each with its row of `erbayes.influence` under the pointer.

    Parameters
    ----------
    metric, most
        As in `draw_influence`.
    attributes : DataFrame, optional
        As in `erbayes.analysis.causes.review`: records of each unit are then shown with them, two per piece.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b"}, {1: "x", 2: "x", 3: "y"})
    >>> figure = explore_influence(eb.Sample(units, eb.UniformClusters()), "mean-cluster-size")
    >>> print(figure.data[0].text[0].replace("<br>", "; "))
    x; influence +0.25, 50 % of the variance; records 2, pieces 1, missing 0, wrong 0, draws 1
    """
    metric = resolve_metric(metric)
    table = diagnostics.influence(sample, metric).head(most)
    texts = [_describe_unit(unit, row) for unit, row in table.iterrows()]
    if attributes is not None:
        found = review(sample, metric, attributes, most=most)
        some = found.groupby(["unit", "piece"], sort=False).head(2).groupby("unit").head(RECORDS)
        values = some.drop(columns=["unit", "influence", "piece", "cluster_size"])
        lines = [_fold(" · ".join(map(str, row.dropna()))) for _, row in values.iterrows()]
        listed = pd.Series(lines).groupby(some["unit"].to_numpy()).agg("<br>".join)
        texts = [f"{text}<br>{listed[unit]}" for text, unit in zip(texts, table.index, strict=True)]
    figure, places = _start(ROW * len(table) + 70, hovermode="y"), [*range(len(table))]
    colours = np.where(table["influence"] > 0, "#4d4d4d", "#ccc").tolist()
    figure.add_bar(x=table["influence"].tolist(), y=places, orientation="h", marker_color=colours)
    figure.update_traces(
        text=texts, textposition="none", hoverinfo="text", marker_line={"color": INK, "width": 1}
    )
    figure.update_xaxes(title_text=f"influence on {_write(metric.name)}", zeroline=True, zerolinecolor=INK)
    figure.update_yaxes(_name_rows([_shorten(unit) for unit in table.index]))
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
        names = [
            f"<b>{_shorten(label)}</b>" if head else _shorten(label)
            for label, head in panel[["label", "head"]].itertuples(index=False)
        ]
        figure.update_yaxes(_name_rows(names), **at)
        figure.update_xaxes(zeroline=zero, zerolinecolor=INK, **at)
    figure.update_xaxes(title_text=title, row=len(rows), col=1)
    return figure


def _name_rows(names: Sequence[str]) -> dict[str, Any]:
    """Return the axis of named rows, the first at the top."""
    ticks = {"tickvals": [*range(len(names))], "ticktext": list(names), "ticks": "", "showgrid": False}
    return {"range": [len(names) - 0.5, -0.5]} | ticks


def _write(text: Any) -> str:
    """Return a text that plotly shows as it is, neither as tags nor, between dollars, as a formula."""
    return escape(digits.shorten_id(text), quote=False).replace("$", "&#36;")


def _fold(text: str) -> str:
    """Return a long text in lines that fit on a phone."""
    return "<br>".join(map(_write, wrap(text, digits.LONGEST)))


def _shorten(name: Any) -> str:
    """Return a name for an axis."""
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
        said += table["reason"].map(lambda why: f"<br>{_fold(why)}" if isinstance(why, str) and why else "")
    return said.tolist()


def _count_links(sample: Sample) -> str:
    """Return the number of predicted links, which not every sample knows, as text."""
    with suppress(NotIdentified):
        links = sample.known(Known(PREDICTED_LINKS))
        return f"{links:,.0f} link{'s' * (links != 1)}"
    return "links unknown"


def _describe_unit(unit: Any, row: pd.Series) -> str:
    """Return a unit and its row of `influence` in lines of text."""
    numbers = [f"{name} {row[name]:,.0f}" for name in ("records", "pieces", "missing", "wrong", "draws")]
    share = f"{100 * row['variance_share']:.2g} % of the variance"
    return f"{_write(unit)}<br>influence {row['influence']:+.2g}, {share}<br>{', '.join(numbers)}"
