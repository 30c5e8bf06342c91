"""One HTML file about a sample: data, design, estimates, pictures, warnings, and how to make it again.

Everything is inside: no script, no font, no link to another place. Pictures are SVG in data URIs. Text
from the user's data is escaped, and a policy in the page lets no script run in any case.
"""

from __future__ import annotations

import sys
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from html import escape
from importlib.metadata import PackageNotFoundError, version
from io import BytesIO
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, filterwarnings

import numpy as np
import pandas as pd

from . import plots
from .arrays import Seed, generator
from .diagnostics import alarms, balance, influence
from .engine import Engine, Jackknife, Resampled, Taylor
from .errors import DataError, NotIdentified
from .intervals import EqualTailed, Kind, check_level, suitable
from .metrics import UNIT, USUAL, Metric, Wanted, chosen
from .sample import Sample
from .uncertain import Draws, Normal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 12
"""Units whose influence is shown."""
LONGEST = 40
"""Characters of an id that are shown."""
PACKAGES = ("erbayes", "numpy", "scipy", "pandas", "matplotlib")

STYLE = """
:root { color-scheme: light; --ink: #1a1a1a; --soft: #5c5c5c; --line: #d9d9d9; --tint: #f5f5f4; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1.25rem 4rem; max-width: 62rem; color: var(--ink); background: #fff;
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .25rem; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .5rem; padding-top: .75rem; border-top: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.5rem 0 .25rem; }
p { max-width: 44rem; margin: .5rem 0; }
.soft { color: var(--soft); font-size: .9rem; }
.alarms { margin: 1rem 0; padding: .75rem 1rem .75rem 2rem; border: 2px solid var(--ink);
  background: var(--tint); }
.alarms li { margin: .25rem 0; }
.pair { display: grid; grid-template-columns: minmax(0, 1fr); gap: 1rem 2rem; align-items: start; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; width: 100%; }
th, td { padding: .3rem .4rem; border-bottom: 1px solid var(--line); text-align: right; vertical-align: top;
  white-space: pre; }
tbody th, .facts td { white-space: pre-line; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
tbody th { font-weight: 500; overflow-wrap: anywhere; min-width: 10rem; }
thead th { white-space: normal; overflow-wrap: normal; border-bottom: 2px solid var(--ink); }
.facts th { width: 40%; font-weight: 400; color: var(--soft); text-align: left; }
.facts td { text-align: left; overflow-wrap: anywhere; }
figure { margin: 1rem 0; }
img { display: block; max-width: 100%; height: auto; }
pre { padding: .75rem 1rem; background: var(--tint); white-space: pre-wrap; font-size: .85rem; }
@media (min-width: 60rem) { .pair { grid-template-columns: minmax(0, 3fr) minmax(0, 2fr); }
  .pair figure { margin-top: 0; } }
@media (max-width: 30rem) { body { padding: 1rem .9rem 3rem; } table { font-size: .75rem; }
  th, td { padding: .3rem .15rem; }
  tbody th { min-width: 4.5rem; } }
@media print { @page { margin: 16mm; } body { max-width: none; padding: 0; font-size: 10pt; }
  table { font-size: 8pt; } h2 { margin-top: 1.25rem; } tbody th { min-width: 5rem; }
  .pair { grid-template-columns: minmax(0, 3fr) minmax(0, 2fr); } .pair figure { margin-top: 0; }
  h2, h3 { break-after: avoid; } tr, figure, .alarms { break-inside: avoid; }
  thead { display: table-header-group; }
  .wide { overflow: visible; } .alarms, pre { background: none; } pre { border: 1px solid var(--line); } }
"""


def report(
    sample: Sample,
    metrics: Wanted = USUAL,
    *,
    level: float = 0.95,
    title: str = "How good is this entity resolution?",
    engines: Mapping[str, Engine] | None = None,
    kinds: Sequence[Kind] = (EqualTailed(),),
    rng: Seed = 1,
    about: Mapping[str, Any] | None = None,
    call: str = "",
) -> str:
    """A self-contained HTML page about a sample.

    Parameters
    ----------
    sample : Sample
    metrics : Metric or str, or several
        The first two get pictures of the units that drive them.
    level : float in (0, 1)
    title : str
    engines : mapping, name -> Engine, optional
        By default the closed form, the jackknife and the bootstrap. One that refuses the sample is quoted.
    kinds : sequence of Kind
        Each result has intervals of the first kind that suits it, and of its own kind if none does.
    rng : Generator, int or None
        For engines that need chance; each starts from the same state. The default gives the same page
        again.
    about : mapping, optional
        More lines about the data, such as names of files.
    call : str
        What makes this page again.

    Returns
    -------
    str

    Raises
    ------
    DataError
        No metric, or matplotlib is not installed.
    NotIdentified
        A metric that the sample does not identify.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b", 4: "b"}, {1: "<x>", 2: "<x>", 3: "y"})
    >>> page = report(eb.Sample(units, eb.UniformClusters()), [eb.metrics.b3_recall])
    >>> "&lt;x&gt;" in page, "<x>" in page, "<script" in page
    (True, False, False)
    """
    check_level(level)
    metrics, seed = chosen(metrics), generator(rng)
    if engines is None:
        engines = {"closed form": Taylor(), "jackknife": Jackknife(), "bootstrap": Resampled(replicates=2000)}
    results: dict[str, Normal | Draws] = {}
    refused = []
    for name, engine in engines.items():
        try:
            found = engine(sample, metrics, deepcopy(seed))
        except DataError as error:
            refused.append(f"No {name}: {error}.")
            continue
        refused += [
            f"{metric}, {name}: {why}." for metric, why in zip(found.names, found.reasons, strict=True) if why
        ]
        if not all(found.reasons):
            results[name] = found
    wrong = alarms(sample, metrics)
    body = [
        f"<h1>{escape(title)}</h1>",
        _text(
            f"Estimates for all records from {len(sample.expansion.unit):,} draws of {len(sample.units):,} "
            f"labelled units. Intervals hold at a level of {100 * level:g} %.",
            "soft",
        ),
        _alarms(wrong) if wrong else _text("No alarm: nothing that is looked for speaks against them."),
        "<h2>Estimates</h2>",
        *(_text(note, "soft") for note in refused),
        _beside(_estimates(results, level, kinds), _forest(results, metrics, level, kinds)),
        "<h2>Balance</h2>",
        _text("Totals of the prediction are known without any label. The sample should estimate them well."),
        _balance(sample),
        "<h2>Influence</h2>",
        _text(
            "The labelled units that move an estimate most: look at their labels again. Leaving a unit out "
            "moves the estimate by about minus its influence."
        ),
        *(_influence(sample, metric) for metric in metrics[:2]),
        "<h2>Data and design</h2>",
        _facts({**(about or {}), **sample.facts()}),
        "<h2>To make it again</h2>",
        f"<pre>{escape(call)}</pre>" if call else "",
        _facts({"Python": sys.version.split()[0], **{name: _version(name) for name in PACKAGES}}),
    ]
    return _page(title, body)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed, run from its source"


def _page(title: str, body: Iterable[str]) -> str:
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>",
            *body,
            "</body>\n</html>\n",
        ]
    )


def _text(text: str, kind: str = "") -> str:
    return f'<p class="{kind}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>"


def _alarms(sentences: Sequence[str]) -> str:
    return '<ul class="alarms">' + "".join(f"<li>{escape(s)}</li>" for s in sentences) + "</ul>"


def _beside(*parts: str) -> str:
    return '<div class="pair">' + "".join(f"<div>{part}</div>" for part in parts if part) + "</div>"


def _table(table: pd.DataFrame) -> str:
    """Cells of text, escaped; their line ends are kept."""
    head = "".join(f"<th>{escape(str(c))}</th>" for c in ("", *table.columns))
    rows = "".join(
        f"<tr><th>{escape(str(name))}</th>{''.join(f'<td>{escape(str(x))}</td>' for x in cells)}</tr>\n"
        for name, *cells in table.itertuples()
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead>\n<tbody>{rows}</tbody></table></div>'


def _facts(facts: Mapping[str, Any]) -> str:
    rows = (f"<tr><th>{escape(str(k))}</th><td>{escape(str(v))}</td></tr>" for k, v in facts.items())
    return f'<div class="wide"><table class="facts">{"".join(rows)}</table></div>'


def _number(x: float) -> str:
    if not np.isfinite(x):
        return "–"
    return f"{x:.3f}" if abs(x) < 10 else f"{x:,.1f}" if abs(x) < 1000 else f"{x:,.0f}"


def _id(x: Any) -> str:
    """An id on one short line, without characters that cannot be seen."""
    text = "".join(c if c.isprintable() else "\ufffd" for c in str(x)[: LONGEST + 1])
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _picture(draw: Callable[[Axes], Axes], height: float, says: str) -> str:
    """What `draw` draws, as an image."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise DataError("the pictures of a report need matplotlib: pip install 'erbayes[plots]'") from error
    # ids are no formulas; the browser has more letters than matplotlib
    with (
        matplotlib.rc_context({"text.parse_math": False, "svg.fonttype": "none", "svg.hashsalt": "erbayes"}),
        catch_warnings(),
    ):
        filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        figure, file = Figure(figsize=(5, height), layout="constrained"), BytesIO()
        draw(figure.subplots())
        figure.savefig(file, format="svg", bbox_inches="tight", metadata={"Date": None})
    data = b64encode(file.getvalue()).decode()
    return f'<figure><img alt="{escape(says)}" src="data:image/svg+xml;base64,{data}"></figure>'


def _estimates(results: Mapping[str, Normal | Draws], level: float, kinds: Sequence[Kind]) -> str:
    columns = {
        name: pd.Series(
            [
                f"{_number(x)}\n{_number(a)}–{_number(b)}"
                for x, (a, b) in zip(
                    found.estimate, found.interval(level, suitable(kinds, found)[0]), strict=True
                )
            ],
            found.names,
        )
        for name, found in results.items()
    }
    return _table(pd.DataFrame(columns)) if columns else ""


def _forest(
    results: Mapping[str, Normal | Draws], metrics: Sequence[Metric], level: float, kinds: Sequence[Kind]
) -> str:
    """Those metrics that share the scale from 0 to 1."""
    shares = [j for j, m in enumerate(metrics) if m.support == UNIT]
    if not shares or not results:
        return ""
    names = [metrics[j].name for j in shares]
    shown = {name: found.part(shares) for name, found in results.items()}
    height = 1.2 + 0.2 * len(names) * max(1, len(results))
    return _picture(
        lambda ax: plots.forest(shown, level=level, kinds=kinds, ax=ax),
        height,
        f"Estimates and intervals of {', '.join(names)}",
    )


def _balance(sample: Sample) -> str:
    try:
        table = balance(sample)
    except DataError as error:
        return _text(f"No balance: {error}.", "soft")
    table = table.rename(index=lambda name: name.replace("_", " "))
    picture = _picture(
        lambda ax: plots.balance(table, ax=ax), 1.2 + 0.4 * len(table), "Estimated over known totals"
    )
    return _beside(_table(table.map(_number)), picture)


def _influence(sample: Sample, metric: Metric) -> str:
    title = f"<h3>{escape(metric.name)}</h3>"
    try:
        table = influence(sample, metric).head(MOST)
    except NotIdentified as error:
        return title + _text(f"{error}.", "soft")
    table.index = pd.Index([_id(x) for x in table.index])
    shown = table[["records", "missing", "wrong", "draws"]].map(lambda x: f"{x:,.0f}")
    shown.insert(0, "influence", table["influence"].map(lambda x: f"{x:+.2g}"))
    picture = _picture(
        lambda ax: plots.influence(table, MOST, ax),
        1.2 + 0.25 * len(table),
        f"Influence of single units on {metric.name}",
    )
    return title + _beside(_table(shown), picture)
