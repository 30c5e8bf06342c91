"""Sections of a page: tables, the pictures next to them, and alarms, as the template takes them."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, filterwarnings

import numpy as np
import pandas as pd
from markupsafe import Markup

from .. import plots
from .._internal import digits
from .._internal.errors import DataError, Grade, NotIdentified, Sentence, import_extra
from ..analysis.causes import Stages
from ..analysis.domains import ByDomain
from ..analysis.impact import Impact
from ..analysis.sensitivity import WithErrors
from ..design.sample import Sample
from ..engine.fitted import balance, influence
from ..metrics.definitions import Metric
from ..metrics.estimates import Estimates
from ..metrics.intervals import Kind, suitable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from plotly.graph_objects import Figure

MOST = 12
"""Number of units whose influence is shown, as many as a reader takes in at a glance."""
ROUNDING = 1e-9
"""Influence of a unit below which it is rounding error."""
LONG = 8
"""Number of metrics from which the table has headings."""
GRADES = {
    Grade.FAULT: "Mend these first: numbers are wrong if one of these sentences is right",
    Grade.CAUTION: "Quote these with the numbers: an interval may be too short",
    Grade.NOTE: "How to read the numbers",
}
"""What alarms of a grade ask of a reader, the gravest first."""
COLUMNS = ["record", "entity", "cluster"]
"""Columns of a table of records. All others are attributes."""
ATTRIBUTES = 6
"""Number of attributes of a record that are shown, as many short texts as fit on a line."""


def group_alarms(sentences: Sequence[Sentence]) -> list[dict[str, Any]]:
    """Return the alarms of each grade, the gravest first, with what they ask of a reader."""
    return [
        {"grade": grade.value, "title": title, "sentences": said}
        for grade, title in GRADES.items()
        if (said := [s for s in sentences if s.grade is grade])
    ]


def _make_picture(
    draw: Callable[[Axes], Axes], height: float, description: str, explored: Figure | None = None
) -> dict[str, str]:
    """Return a picture that `draw` makes, as Base64, with its description, and one to explore, as JSON."""
    matplotlib = import_extra("matplotlib", "the pictures of a report need matplotlib", "plots")
    from matplotlib.figure import Figure

    # ids are not formulas, and the browser has letters that are none of matplotlib's
    with (
        matplotlib.rc_context({"text.parse_math": False, "svg.fonttype": "none", "svg.hashsalt": "erbayes"}),
        catch_warnings(),
    ):
        filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        figure, file = Figure(figsize=(5, height), layout="constrained"), BytesIO()
        draw(figure.subplots())
        # without a date, so that the same sample makes the same page
        figure.savefig(file, format="svg", bbox_inches="tight", metadata={"Date": None})
    json = "" if explored is None else explored.to_json(engine="json").replace("<", r"\u003c")
    return {"description": description, "data": b64encode(file.getvalue()).decode(), "explored": Markup(json)}


def tabulate_estimates(
    results: Mapping[str, Estimates],
    metrics: Sequence[Metric],
    level: float,
    kinds: Sequence[Kind],
    explore: bool = False,
) -> dict[str, Any] | None:
    """Return a row per metric with its meaning, a column per engine, and the picture of both."""
    if not results:
        return None
    whole = {name: r.table(level, suitable(kinds, r)[0]) for name, r in results.items()}
    tables = [digits.shown(table) for table in whole.values()]
    rows, group = list[dict[str, Any]](), None
    for j, m in enumerate(metrics):
        heading = m.group.value if len(metrics) >= LONG and m.group is not group else ""
        group = m.group
        cells = [f"{x.estimate}\n{x.lower}–{x.upper}" for x in (table.iloc[j] for table in tables)]
        rows.append({"heading": heading, "name": m.name, "meaning": m.meaning or m.source, "cells": cells})
    named = pd.concat(whole, names=["engine"])
    explored = plots.explore(named if len(whole) > 1 else named.droplevel(0)) if explore else None
    supports = dict(pair for r in results.values() for pair in zip(r.names, r.support, strict=True))
    unbounded = sum(not np.isfinite(support).all() for support in supports.values())
    picture = _make_picture(
        lambda ax: plots.draw_forest(results, level=level, kind=kinds, ax=ax),
        1.2 + 0.2 * len(supports) * len(results) + 0.5 * unbounded,
        f"Estimates and intervals of {', '.join(supports)}",
        explored,
    )
    return {"engines": list(results), "rows": rows, "picture": picture}


def explain_engine(name: str, fit: Any, level: float) -> dict[str, Any]:
    """Return in words what the answers of an engine depend on, and the picture of retained links by size."""
    shown = "Share of links kept by size, with the sampled sizes marked"
    picture = _make_picture(lambda ax: plots.draw_retention(fit, ax=ax), 4, shown)
    return {"engine": name, "paragraphs": fit.explain(level).split("\n\n"), "picture": picture}


def _list_rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [{"name": str(name), "cells": [*map(str, cells)]} for name, *cells in table.itertuples()]


def tabulate_stages(stages: Stages, level: float) -> dict[str, Any]:
    """Return where links are lost and made: a sentence, a table, and a picture."""
    shown = ["stage", "estimate", "lower", "upper"]
    rows = _list_rows(digits.shown(stages.table(level)[shown]).set_index("stage"))
    picture = _make_picture(lambda ax: plots.draw_stages(stages, ax=ax), 1.3, "A bar of true links by stage")
    return {"sentence": str(stages), "columns": shown[1:], "rows": rows, "picture": picture}


def tabulate_part(part: Impact | WithErrors, level: float, kinds: Sequence[Kind]) -> dict[str, Any]:
    """Return a user's own numbers, or estimates with errors of labels: sentences about them, and a table."""
    of = part.fit if isinstance(part, Impact) else part.both
    kind = suitable(kinds, of)[0] if isinstance(of, Estimates) else None
    shown = digits.shown(part.table(level, kind).drop(columns=["reason", "df", "level"], errors="ignore"))
    sentences = part.sentences(level, kind) if isinstance(part, Impact) else [part.sentence(level, kind)]
    shown = shown.set_index("error") if "error" in shown else shown
    return {"sentences": sentences, "columns": list(shown), "rows": _list_rows(shown)}


def tabulate_domains(domains: ByDomain, level: float, kinds: Sequence[Kind], explore: bool) -> dict[str, Any]:
    """Return estimates of the first metrics by domain: a table, their picture, alarms and refusals."""
    names = [m.name for m in domains.metrics[:2]]
    kind = suitable(kinds, domains.joint)[0]
    table = domains.table(level, kind)
    table = table[table["metric"].isin(names)].reset_index(drop=True)
    text = digits.shown(table.drop(columns=["level", "kind", "reason"], errors="ignore"))
    interval = (text["lower"] + "–" + text["upper"]).where(table["lower"].notna(), "no interval")
    cells = (text["estimate"] + "\n" + interval).where(table["estimate"].notna(), "no estimate")
    wide = table.assign(cells=cells, n_eff=text["n_eff"]).groupby("domain", sort=False, dropna=False)
    refused = table[table["reason"] != ""] if "reason" in table else table[:0]
    picture = _make_picture(
        lambda ax: plots.draw_by_domain(domains, names, level=level, kind=kind, ax=ax),
        1.4 + 0.22 * int(table["estimate"].notna().sum()),
        f"Estimates and intervals of {', '.join(names)} by {domains.settings.variable}",
        plots.explore(table) if explore else None,
    )
    return {
        "variable": domains.settings.variable,
        "refusals": [f"{row.domain}, {row.metric}: {row.reason}." for row in refused.itertuples()],
        "alarms": group_alarms(domains.alarms()),
        "columns": [*names, "effective draws"],
        "rows": [
            {"name": digits.shorten_id(domain), "cells": [*rows["cells"], rows["n_eff"].iloc[0]]}
            for domain, rows in wide
        ],
        "picture": picture,
    }


def tabulate_balance(sample: Sample) -> dict[str, Any]:
    """Return estimated and known totals with their picture, or the reason why there are none."""
    try:
        table = balance(sample)
    except DataError as error:
        return {"reason": f"No balance: {error}."}
    table = table.rename(index=lambda name: name.replace("_", " "))
    picture = _make_picture(
        lambda ax: plots.draw_balance(sample, ax=ax), 1.2 + 0.4 * len(table), "Estimated over known totals"
    )
    shown = digits.shown(table)
    return {"reason": "", "columns": list(shown.columns), "rows": _list_rows(shown), "picture": picture}


def tabulate_influence(sample: Sample, metric: Metric, records: pd.DataFrame | None) -> dict[str, Any]:
    """Return the units that move a metric most, with some of their records, or why there are none."""
    try:
        table = influence(sample, metric).head(MOST)
    except NotIdentified as error:
        return {"metric": metric.name, "reason": f"{error}."}
    if not (table["influence"].abs() > ROUNDING).any():
        return {"metric": metric.name, "reason": "All draws have the same effect: no unit stands out."}
    described = [_describe_unit(unit, records, sample.units.by_entity) for unit in table.index]
    table.index = pd.Index([digits.shorten_id(x) for x in table.index])
    shown = table[["records", "missing", "wrong", "draws"]].map(lambda x: f"{x:,.0f}")
    shown.insert(0, "influence", table["influence"].map(lambda x: f"{x:+.2g}"))
    picture = _make_picture(
        lambda ax: plots.draw_influence(sample, metric, MOST, ax),
        1.2 + 0.25 * len(table),
        f"Influence of single units on {metric.name}",
    )
    rows = [row | {"records": found} for row, found in zip(_list_rows(shown), described, strict=True)]
    about = {"metric": metric.name, "reason": "", "columns": list(shown.columns)}
    return about | {"rows": rows, "picture": picture}


def _describe_unit(unit: Any, records: pd.DataFrame | None, by_entity: bool) -> list[tuple[str, list[Any]]]:
    """Return records of a unit: one of it, one split off, one joined wrongly, with roles and what differs."""
    inside, across = ("entity", "cluster") if by_entity else ("cluster", "entity")
    if records is None or (of_unit := records[records[inside] == unit]).empty:
        return []
    # the largest piece represents the unit; records without a cluster are where nobody has looked
    piece = of_unit[across].mode().iloc[0] if of_unit[across].notna().any() else None
    inner = of_unit if piece is None else of_unit[of_unit[across] == piece]
    apart = of_unit.drop(inner.index)
    strangers = records[(records[across] == piece) & (records[inside] != unit)]
    split, joined = (apart, strangers) if by_entity else (strangers, apart)
    roles = {
        "a record of it": inner,
        "the same, in another cluster": split,
        "another, in the same cluster": joined,
    }
    attributes = [c for c in records.columns if c not in COLUMNS][:ATTRIBUTES]
    first = inner.iloc[0]
    described = []
    for role, rows in roles.items():
        for row in rows.head(1).to_dict("records"):
            texts = [(c, str(row[c]).strip()) for c in attributes if not pd.isna(row[c])]
            shown = [(digits.shorten_id(text), row[c] != first[c]) for c, text in texts if text]
            described.append((role, [(digits.shorten_id(row["record"]), False), *shown]))
    return described
