"""One HTML file about a sample: the answer first, then pictures, data, design, and how to make it again.

The file needs nothing else: it has no script, no font, and no link to another place. Pictures are SVG in data
URIs. Text from the user's data is escaped, and a policy in the page lets no script run in any case.
"""

from __future__ import annotations

import sys
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from html import escape
from importlib.metadata import PackageNotFoundError, version
from io import BytesIO
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, filterwarnings, simplefilter, warn_explicit

import numpy as np
import pandas as pd

from .. import plots
from .._internal import digits
from .._internal.arrays import FloatArray, Seed, generator
from .._internal.errors import Alarm, DataError, Grade, NotIdentified, Sentence, grade_of
from ..analysis.domains import ByDomain
from ..design.sample import Sample
from ..engine import Doubting, Engine, Explaining, Jackknife, Resampled, Taylor
from ..engine.diagnostics import alarms, at_an_end, balance, influence
from ..metrics.definitions import UNIT, USUAL, Metric, Wanted, chosen, pairwise_precision, pairwise_recall
from ..metrics.intervals import EqualTailed, Kind, check_level, suitable
from ..metrics.uncertain import Draws, Normal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 12
"""Number of units whose influence is shown."""
ROUNDING = 1e-9
"""Influence of a unit below which it holds rounding only."""
LONGEST = 40
"""Number of characters of an id that are shown."""
LONG = 8
"""Number of metrics from which the table has headings."""
IN_WORDS = {
    pairwise_precision.name: "Of the links that the matcher made, {} are right",
    pairwise_recall.name: "Of the links that are truly there, the matcher found {}",
}
"""Sentences to quote, by metric."""
NONE_SHOWN = {
    (pairwise_precision.name, True): (
        "showed a false link",
        "{} of the links that the matcher made are right",
    ),
    (pairwise_precision.name, False): (
        "showed a right link",
        "{} of the links that the matcher made are right",
    ),
    (pairwise_recall.name, True): ("showed a missed link", "{} of the true links are found"),
    (pairwise_recall.name, False): ("showed a link that was found", "{} of the true links are found"),
}
"""What no draw showed and what an interval says of it, by metric and whether it is at its upper end."""
OTHER_SHOWN = {True: ("lowers {name}", "{name} is {}"), False: ("raises {name}", "{name} is {}")}
"""The same for any other metric."""
POOLED = "{}, recall pooled"
"""Name of the column before that of an engine whose alarm disowns its interval of recall."""
ROLES = {
    "assisted": "It has the help of a second clustering, and the other columns do without.",
    "closed form": "It needs no random numbers, and simulations have checked its default intervals.",
    "jackknife": "If its intervals are far wider, a few large units decide the result.",
    "bootstrap": "If its intervals differ much, the approximation behind the closed form is poor.",
}
"""The use of each default engine, in a sentence."""
PACKAGES = ("erbayes", "numpy", "scipy", "pandas", "matplotlib")

STYLE = """
:root { color-scheme: light; --ink: #1a1a1a; --soft: #5c5c5c; --line: #d9d9d9; --tint: #f5f5f4; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1.25rem 4rem; max-width: 62rem; color: var(--ink); background: #fff;
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .25rem; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .5rem; padding-top: .75rem; border-top: 1px solid var(--line); }
.headline { font-size: 1.3rem; line-height: 1.4; margin: .75rem 0; max-width: none; }
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
.estimates td { white-space: pre-line; } .estimates tbody th { width: 45%; }
.estimates tbody th:not([colspan]) { text-align: left; }
.estimates td { min-width: 7.25rem; }
.estimates small { display: block; font-size: .8rem; font-weight: 400; color: var(--soft); }
.estimates th[colspan] { padding-top: 1rem; font-size: .8rem; color: var(--soft); text-align: left; }
.facts th { width: 40%; font-weight: 400; color: var(--soft); text-align: left; }
.facts td { text-align: left; overflow-wrap: anywhere; }
figure { margin: 1rem 0; }
img { display: block; max-width: 100%; height: auto; }
pre { padding: .75rem 1rem; background: var(--tint); white-space: pre-wrap; font-size: .85rem; }
@media (min-width: 60rem) { .pair { grid-template-columns: minmax(0, 3fr) minmax(0, 2fr); }
  .pair figure { margin-top: 0; } }
@media (max-width: 30rem) { body { padding: 1rem .9rem 3rem; } table { font-size: .75rem; }
  th, td { padding: .3rem .15rem; }
  tbody th { min-width: 4.5rem; }
  .estimates tr { display: grid; grid-template-columns: repeat(var(--engines), 1fr); }
  .estimates thead th:first-child { display: none; }
  .estimates tbody th { grid-column: 1 / -1; width: auto; border-bottom: 0; padding-left: 0; }
  .estimates thead th, .estimates td { min-width: 0; text-align: left; padding-left: 0; } }
@media print { @page { margin: 16mm; } body { max-width: none; padding: 0; font-size: 10pt; }
  table { font-size: 8pt; } h2 { margin-top: 1.25rem; } tbody th { min-width: 5rem; }
  .pair { grid-template-columns: minmax(0, 3fr) minmax(0, 2fr); } .pair figure { margin-top: 0; }
  h2, h3 { break-after: avoid; } tr, figure, .alarms { break-inside: avoid; }
  thead { display: table-header-group; }
  .estimates { font-size: 9pt; } .estimates td { min-width: 5.5rem; }
  .headline { font-size: 13pt; } .pair.first { grid-template-columns: minmax(0, 1fr); }
  .estimates small { font-size: 8pt; } img { max-height: 235mm; }
  .wide { overflow: visible; } .alarms, pre { background: none; } pre { border: 1px solid var(--line); } }
"""


def report(
    sample: Sample | ByDomain,
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
    """Make an HTML page about a sample, for those who decide and for those who check.

    Two sentences to quote come first, about pairwise precision and recall if these are among the metrics. If
    no draw shows an error, the sentence says what the interval still allows for. If an alarm is a fault (see
    `erbayes._internal.errors.Grade`), or if an interval has no length, a sentence about it takes their place.

    Parameters
    ----------
    sample : Sample or ByDomain
        Estimates by domain have a section of their own, on a page about their sample.
    metrics : Metric or str, or several
        The first two have tables and pictures of the units that move them most.
    level : float in (0, 1)
        The level of the intervals.
    title : str
        The title of the page.
    engines : mapping, name -> Engine, optional
        The first makes the column to quote. By default they are the closed form, the jackknife and the
        bootstrap. If an engine raises DataError, the page shows its message. Alarms and warnings of engines,
        such as those of the size model, are shown with those of the sample; warnings without a grade count as
        faults. If an engine can explain its fit, as the size model can, the explanation is a section. If the
        model's own alarm disowns its interval of recall, a column with the linear pool comes before its own.
    kinds : sequence of Kind
        Each result has intervals of the first kind that suits it, and of its own kind if none does.
    rng : Generator, int or None
        Each engine starts from the same state of it. The default makes the same page again.
    about : mapping, name -> value, optional
        More lines about the data, such as names of files.
    call : str
        The command that makes this page again.

    Returns
    -------
    str
        HTML that needs no other file.

    Raises
    ------
    DataError
        No metric, or matplotlib is not installed.
    NotIdentified
        A metric that the sample does not identify.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "c", 3: "b", 4: "b"}, {1: "<x>", 2: "<x>", 3: "y"})
    >>> page = report(eb.Sample(units, eb.UniformClusters()), [eb.metrics.b3_recall])
    >>> "&lt;x&gt;" in page, "<x>" in page, "<script" in page
    (True, False, False)
    """
    check_level(level)
    domains = sample if isinstance(sample, ByDomain) else None
    sample = sample.sample if isinstance(sample, ByDomain) else sample
    metrics, seed = chosen(metrics), generator(rng)
    if engines is None:
        engines = {"closed form": Taylor(), "jackknife": Jackknife(), "bootstrap": Resampled(replicates=2000)}
    results: dict[str, Normal | Draws] = {}
    refusals, doubts, explained = [], list[Sentence](), list[str]()
    for name, engine in engines.items():
        with _record_warnings(name, doubts):
            try:
                # the same seed for each, so that a further engine leaves the other columns as they are
                result = engine(sample, metrics, deepcopy(seed))
            except DataError as error:
                refusals.append(f"No {name}: {error}.")
                continue
            refusals += [
                f"{metric}, {name}: {reason}."
                for metric, reason in zip(result.names, result.reasons, strict=True)
                if reason
            ]
            if not all(result.reasons):
                results[name] = result
            if isinstance(engine, Doubting):
                doubts += [
                    _name_engine(name, alarm) for alarm in engine.alarms(sample, metrics, deepcopy(seed))
                ]
            if isinstance(engine, Explaining):
                fit = engine.fitted(sample, deepcopy(seed))
                results = _put_pooled_first(name, fit, metrics, results)
                explained += _explain_engine(name, fit, level)
    warnings = [*alarms(sample, metrics), *doubts]
    body = [
        f"<h1>{escape(title)}</h1>",
        *(
            _render_text(sentence, "headline")
            for sentence in _write_headline(sample, metrics, results, level, kinds, doubts)
        ),
        _render_text(
            f"Estimates for all records from {len(sample.expansion.unit):,} draws of {len(sample.units):,} "
            f"labelled units. Intervals hold at a level of {100 * level:g} %.",
            "soft",
        ),
        _render_alarms(warnings)
        if warnings
        else _render_text("No alarm: every check of the sample has passed."),
        "<h2>Estimates</h2>",
        *(_render_text(refusal, "soft") for refusal in refusals),
        _explain_quoting(list(results), any(map(_is_fault, warnings))),
        _render_columns(
            _render_estimates(results, metrics, level, kinds),
            _render_forest(results, level, kinds),
            kind="first",
        ),
        *([] if domains is None else _render_domains(domains, level, kinds)),
        *explained,
        "<h2>Balance</h2>",
        _render_text(
            "Some totals of the prediction are known without labels. The sample should estimate them well."
        ),
        _render_balance(sample),
        "<h2>Influence</h2>",
        _render_text(
            "These labelled units move an estimate most. Look at their labels again. Without a unit, the "
            "estimate would change by about minus its influence."
        ),
        *(_render_influence(sample, metric) for metric in metrics[:2]),
        "<h2>Data and design</h2>",
        _render_facts({**(about or {}), **sample.facts()}),
        "<h2>To make it again</h2>",
        f"<pre>{escape(call)}</pre>" if call else "",
        _render_facts({"Python": sys.version.split()[0], **{name: _find_version(name) for name in PACKAGES}}),
    ]
    return _render_page(title, body)


@contextmanager
def _record_warnings(name: str, doubts: list[Sentence]) -> Iterator[None]:
    """Add the warnings of an engine, such as NotConverged, to `doubts`, and pass them on."""
    with catch_warnings(record=True) as raised:
        simplefilter("always", UserWarning)
        yield
    # an engine may repeat a warning for each metric
    warned = {str(one.message): one for one in raised}
    for text, one in warned.items():
        if isinstance(one.message, UserWarning):
            # nobody has graded a warning that is no alarm, so that nothing vouches for the numbers behind it
            grade = one.message.grade if isinstance(one.message, Alarm) else Grade.FAULT
            doubts.append(Sentence(f"{name}: {text}", grade))
    for one in warned.values():
        warn_explicit(one.message, one.category, one.filename, one.lineno)


def _find_version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed, run from its source"


def _render_page(title: str, body: Iterable[str]) -> str:
    """Return the whole HTML page."""
    # nothing runs or is loaded, whatever text the ids hold
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


def _render_text(text: str, kind: str = "") -> str:
    return f'<p class="{kind}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>"


def _name_engine(name: str, alarm: str) -> Sentence:
    """Return the alarm of an engine, with its name in front."""
    return Sentence(f"{name}: {alarm}", grade_of(alarm))


def _is_fault(alarm: Sentence) -> bool:
    return alarm.grade is Grade.FAULT


def _put_pooled_first(
    name: str, fit: Any, metrics: Sequence[Metric], results: Mapping[str, Normal | Draws]
) -> dict[str, Normal | Draws]:
    """Return results with the pool before those of a model whose own alarm disowns some of its intervals."""
    if name not in results or not hasattr(fit, "disowned") or not fit.disowned(metrics):
        return dict(results)
    pooled = {POOLED.format(name): fit.quoted(metrics)}
    return {k: v for n, x in results.items() for k, v in ({**pooled, n: x} if n == name else {n: x}).items()}


def _render_alarms(sentences: Sequence[Sentence]) -> str:
    """HTML of a list of alarms, faults first, each with its grade."""
    worst = sorted(sentences, key=lambda s: -list(Grade).index(s.grade))
    rows = "".join(f"<li><b>{s.grade.value}</b>: {escape(s)}</li>" for s in worst)
    return f'<ul class="alarms">{rows}</ul>'


def _render_columns(*parts: str, kind: str = "") -> str:
    """HTML of parts side by side, or below one another on narrow screens."""
    return (
        f'<div class="{f"pair {kind}".strip()}">'
        + "".join(f"<div>{part}</div>" for part in parts if part)
        + "</div>"
    )


def _render_table(table: pd.DataFrame) -> str:
    """HTML of a table. Its text is escaped, and ends of lines are kept."""
    head = "".join(f"<th>{escape(str(c))}</th>" for c in ("", *table.columns))
    rows = "".join(
        f"<tr><th>{escape(str(name))}</th>{''.join(f'<td>{escape(str(x))}</td>' for x in cells)}</tr>\n"
        for name, *cells in table.itertuples()
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead>\n<tbody>{rows}</tbody></table></div>'


def _render_facts(facts: Mapping[str, Any]) -> str:
    """HTML of a table of names and values."""
    rows = (f"<tr><th>{escape(str(k))}</th><td>{escape(str(v))}</td></tr>" for k, v in facts.items())
    return f'<div class="wide"><table class="facts">{"".join(rows)}</table></div>'


def _shorten_id(x: Any) -> str:
    """Text of an id on one short line, without characters that cannot be seen."""
    text = "".join(c if c.isprintable() else "\ufffd" for c in str(x)[: LONGEST + 1])
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _render_picture(draw: Callable[[Axes], Axes], height: float, description: str) -> str:
    """HTML of a picture that `draw` makes; `description` is for those who cannot see it."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise DataError("the pictures of a report need matplotlib: pip install 'erbayes[plots]'") from error
    # ids are not formulas, and the browser has letters that matplotlib lacks
    with (
        matplotlib.rc_context({"text.parse_math": False, "svg.fonttype": "none", "svg.hashsalt": "erbayes"}),
        catch_warnings(),
    ):
        filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        figure, file = Figure(figsize=(5, height), layout="constrained"), BytesIO()
        draw(figure.subplots())
        # without a date, so that the same sample makes the same page
        figure.savefig(file, format="svg", bbox_inches="tight", metadata={"Date": None})
    data = b64encode(file.getvalue()).decode()
    return f'<figure><img alt="{escape(description)}" src="data:image/svg+xml;base64,{data}"></figure>'


def _write_headline(
    sample: Sample,
    metrics: Sequence[Metric],
    results: Mapping[str, Normal | Draws],
    level: float,
    kinds: Sequence[Kind],
    doubts: Sequence[Sentence],
) -> list[str]:
    """Return two sentences to quote, or the reason why there is nothing to quote."""
    quoted = [m for m in metrics if m.name in IN_WORDS] or list(metrics[:2])
    if not results:
        return ["This sample has no estimate. The notes below give the reasons."]
    first = next(iter(results.values()))
    census = sample.expansion.variance.census
    bounds = first.interval(level, suitable(kinds, first)[0])
    reasons = dict(zip(first.names, first.reasons, strict=True))
    # faults of metrics that are not quoted do not count
    defined = [m for m in quoted if not reasons[m.name]]
    if defined and (faults := [*filter(_is_fault, [*alarms(sample, defined), *doubts])]):
        name = "a fault" if len(faults) == 1 else f"{len(faults)} faults"
        return [f"Do not quote a number of this page yet: {name} must be mended first."]
    sentences = []
    for m in quoted:
        if reasons[m.name]:
            sentences.append(f"This sample has no estimate of {m.name}: {reasons[m.name]}.")
            continue
        j = first.names.index(m.name)
        # percentiles of a bootstrap and Wald's interval have no length if no draw shows an error
        if not census and not np.ptp(bounds[j]) > ROUNDING:
            sentences.append(
                f"Do not quote {m.name} from this column: its interval has no length, although not every "
                "unit is labelled."
            )
            continue
        if not census and first.sd[j] == 0 and at_an_end(first, j):
            sentences.append(_describe_flawless(m, first, j, bounds[j], len(sample.expansion.unit), level))
            continue
        written = _choose_format(m, float(first.estimate[j]), float(first.sd[j]))
        low, high = map(written, bounds[j])
        precision = "no sampling error, since every unit is labelled" if census else f"{low} to {high}"
        if not census and not any("% interval" in sentence for sentence in sentences):
            precision = f"{100 * level:g}\u00a0% interval {precision}"
        sentence = IN_WORDS.get(m.name, f"The estimate of {m.name} is {{}}")
        sentences.append(f"{sentence.format(written(float(first.estimate[j])))} ({precision}).")
    return sentences


def _describe_flawless(
    metric: Metric, result: Normal | Draws, j: int, bounds: FloatArray, draws: int, level: float
) -> str:
    """Return the sentence about a metric at an end of its range, since no draw shows an error."""
    best = bool(np.isclose(result.estimate[j], result.support[j][1], rtol=0, atol=ROUNDING))
    end = float(bounds[0] if best else bounds[1])
    written = _format_number(metric, end, float(np.ptp(bounds)) / 2, best)
    shown, bound = NONE_SHOWN.get((metric.name, best), OTHER_SHOWN[best])
    what = bound.format(f"{'at least' if best else 'at most'} {written}", name=metric.name)
    nothing = f"Of {draws:,} draws none {shown.format(name=metric.name)}"
    return f"{nothing}; with {100 * level:g}\u00a0% confidence {what}."


def _format_number(metric: Metric, end: float, error: float, best: bool) -> str:
    """Return an end of an interval with the digits of the table, a share as a percentage."""
    if metric.support != UNIT:
        return digits.text(end, digits.decimals(end, error))
    places = max(digits.decimals(1.0, error) - 2, 0)
    # a lower end of 99.96 % must not read as 100 %
    while places < digits.MOST and round(100 * end, places) == (100 if best else 0):
        places += 1
    return f"{100 * end:.{places}f}\u00a0%"


def _choose_format(metric: Metric, value: float, error: float) -> Callable[[float], str]:
    """Return a function that writes numbers of a metric in a sentence, shares as percentages."""
    if metric.support != UNIT:
        return lambda x: digits.text(x, digits.decimals(value, error))
    places = max(digits.decimals(100 * value, 100 * error) - 1, 0)
    while places < 2 and 0 < value < 1 and round(100 * value, places) in (0, 100):
        places += 1
    return lambda x: f"{100 * x:.{places}f}\u00a0%"


def _render_estimates(
    results: Mapping[str, Normal | Draws], metrics: Sequence[Metric], level: float, kinds: Sequence[Kind]
) -> str:
    """HTML of the table of estimates: one row per metric with its meaning, one column per engine."""
    if not results:
        return ""
    tables = {
        name: digits.shown(result.table(level, suitable(kinds, result)[0]))
        for name, result in results.items()
    }
    rows, group = [], None
    for j, m in enumerate(metrics):
        if len(metrics) >= LONG and m.group is not group:
            group = m.group
            rows.append(f'<tr><th colspan="{len(tables) + 1}">{escape(group.value)}</th></tr>')
        cells = (table.iloc[j] for table in tables.values())
        numbers = "".join(f"<td>{x.estimate}\n{x.lower}–{x.upper}</td>" for x in cells)
        meaning = escape(m.meaning or m.source)
        rows.append(f"<tr><th>{escape(m.name)}<small>{meaning}</small></th>{numbers}</tr>")
    head = "".join(f"<th>{escape(name)}</th>" for name in ("", *tables))
    body = "\n".join(rows)
    return (
        f'<div class="wide"><table class="estimates" style="--engines: {len(tables)}">'
        f"<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>"
    )


def _explain_quoting(engines: Sequence[str], faulty: bool) -> str:
    """Return a paragraph that names the column to quote and the use of the others."""
    if not engines:
        return ""
    first, *others = engines
    quote = "Once no fault is left, quote" if faulty else "Quote"
    sentences = [f"{quote} the column “{first}”.", ROLES.get(first, "")]
    if others:
        sentences.append("The other columns check it: they make the interval in another way.")
        sentences += [
            f"{name.capitalize()}: {ROLES[name][0].lower()}{ROLES[name][1:]}"
            for name in others
            if name in ROLES
        ]
    return _render_text(" ".join(filter(None, sentences)))


def _explain_engine(name: str, fit: Any, level: float) -> list[str]:
    """Return in words what the answers of an engine rest on, and the picture of links kept by size."""
    words = "".join(_render_text(paragraph) for paragraph in fit.explain(level).split("\n\n"))
    picture = _render_picture(
        lambda ax: plots.retention(fit, ax=ax),
        4,
        "Share of links kept by size, with the sampled sizes marked",
    )
    return [f"<h2>What the {escape(name)} rests on</h2>", _render_columns(words, picture)]


def _render_forest(results: Mapping[str, Normal | Draws], level: float, kinds: Sequence[Kind]) -> str:
    if not results:
        return ""
    supports = dict(pair for r in results.values() for pair in zip(r.names, r.support, strict=True))
    own = sum(not np.isfinite(support).all() for support in supports.values())
    height = 1.2 + 0.2 * len(supports) * max(1, len(results)) + 0.5 * own
    return _render_picture(
        lambda ax: plots.forest(results, level=level, kinds=kinds, ax=ax),
        height,
        f"Estimates and intervals of {', '.join(supports)}",
    )


def _render_domains(domains: ByDomain, level: float, kinds: Sequence[Kind]) -> list[str]:
    """HTML of estimates by domain: a table of the first metrics, and their picture."""
    names = [m.name for m in domains.metrics[:2]]
    kind = suitable(kinds, domains.joint)[0]
    table = domains.table(level, kind)
    reasons = table["reason"] if "reason" in table else pd.Series("", table.index)
    digits_shown = digits.shown(table.drop(columns=["level", "kind", "reason"], errors="ignore"))
    digits_shown = digits_shown.set_axis([_shorten_id(x) for x in table["domain"]]).drop(columns="domain")
    shown = digits_shown[(table["metric"].isin(names)).to_numpy()]
    refused = [
        f"{d}, {m}: {why}."
        for d, m, why in zip(table["domain"], table["metric"], reasons, strict=True)
        if why and m in names
    ]
    rows = table["estimate"].notna() & table["metric"].isin(names)
    picture = _render_picture(
        lambda ax: plots.by_domain(domains, names, level=level, kind=kind, ax=ax),
        1.4 + 0.22 * int(rows.sum()),
        f"Estimates and intervals of {', '.join(names)} by {domains.variable}",
    )
    return [
        f"<h2>By {escape(domains.variable)}</h2>",
        _render_text(
            "Each row is about the records of one group. The column n_eff is the effective number of draws "
            "behind it. Intervals are for each group alone."
        ),
        *(_render_text(why, "soft") for why in refused),
        *([_render_alarms(warnings)] if (warnings := domains.alarms()) else []),
        _render_table(shown),
        picture,
    ]


def _render_balance(sample: Sample) -> str:
    try:
        table = balance(sample)
    except DataError as error:
        return _render_text(f"No balance: {error}.", "soft")
    table = table.rename(index=lambda name: name.replace("_", " "))
    picture = _render_picture(
        lambda ax: plots.balance(sample, ax=ax), 1.2 + 0.4 * len(table), "Estimated over known totals"
    )
    return _render_columns(_render_table(digits.shown(table)), picture)


def _render_influence(sample: Sample, metric: Metric) -> str:
    title = f"<h3>{escape(metric.name)}</h3>"
    try:
        table = influence(sample, metric).head(MOST)
    except NotIdentified as error:
        return title + _render_text(f"{error}.", "soft")
    if not (table["influence"].abs() > ROUNDING).any():
        return title + _render_text("All draws have the same effect: no unit stands out.", "soft")
    table.index = pd.Index([_shorten_id(x) for x in table.index])
    shown = table[["records", "missing", "wrong", "draws"]].map(lambda x: f"{x:,.0f}")
    shown.insert(0, "influence", table["influence"].map(lambda x: f"{x:+.2g}"))
    picture = _render_picture(
        lambda ax: plots.influence(sample, metric, MOST, ax),
        1.2 + 0.25 * len(table),
        f"Influence of single units on {metric.name}",
    )
    return title + _render_columns(_render_table(shown), picture)
