"""One HTML file about a sample: the answer first, then pictures, data, design, and how to make it again.

The file needs nothing else: it has no font, no link to another place and, without pictures to explore, no
script. Pictures are SVG in data URIs. Its template is `page.html`, in which Jinja2 escapes all text. A policy
lets no script run but plotly's and `explore.js`, by their digests, and no text of the data is in either.
"""

from __future__ import annotations

import sys
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from warnings import catch_warnings, simplefilter, warn_explicit

import pandas as pd
from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from .._internal.arrays import generator, refuse_names
from .._internal.errors import Alarm, DataError, Grade, Sentence, grade_of, import_extra, need
from ..analysis.causes import Stages
from ..analysis.domains import ByDomain
from ..analysis.impact import Impact
from ..analysis.sensitivity import WithErrors
from ..design import ByPredictedSize, UniformClusters, UniformRecords, WeightedRecords
from ..design.sample import Sample
from ..engine import Engine
from ..engine.diagnostics import alarms, say_what_would_show
from ..engine.named import find_engine, run_engine
from ..metrics.definitions import DEFAULT_METRICS, Metric, MetricLike, resolve_metrics
from ..metrics.estimates import Estimates
from ..metrics.intervals import EqualTailed, Kind, check_level, suitable
from ..metrics.tables import choose_quoted, describe_faults
from . import sections

ROLES = {
    "assisted": "It has the help of a second clustering, and the other columns do without.",
    "closed form": "It needs no random numbers, and simulations have checked its default intervals.",
    "jackknife": "If its intervals are far wider, a few large units decide the result.",
    "bootstrap": "If its intervals differ much, the approximation behind the closed form is poor.",
}
"""The use of each default engine, in a sentence."""
PACKAGES = ("erbayes", "numpy", "scipy", "pandas", "matplotlib")
"""Packages on whose versions numbers and pictures depend."""
DRAWN = {
    UniformRecords: "records were drawn at random, each with the same chance",
    WeightedRecords: "records were drawn at random, with chances of their own",
    ByPredictedSize: "records were drawn at random, with chances by the size of their predicted cluster",
    UniformClusters: "{units} were drawn at random, each with the same chance",
}
"""How draws were made, by design. Others are named as they are."""


@dataclass(slots=True)
class _Made:
    """What engines made of a sample: results by name, refusals, alarms, and explanations of fits."""

    results: dict[str, Estimates] = field(default_factory=dict)
    refusals: list[str] = field(default_factory=list)
    alarms: list[Sentence] = field(default_factory=list)
    explained: list[dict[str, Any]] = field(default_factory=list)


def report(
    sample: Sample | ByDomain | Stages,
    metrics: MetricLike = DEFAULT_METRICS,
    *,
    level: float = 0.95,
    title: str = "",
    engines: Mapping[str, Engine] | None = None,
    kinds: Sequence[Kind] = (EqualTailed(),),
    about: Mapping[str, Any] | None = None,
    records: pd.DataFrame | None = None,
    explore: bool = False,
) -> str:
    """Make an HTML page about a sample, for those who decide and for those who check.

    Two sentences to quote come first, about pairwise precision and recall if these are among the metrics. If
    no draw shows an error, the sentence says what the interval still allows for. If an alarm is a fault (see
    `erbayes._internal.errors.Grade`), or if an interval has no length, a sentence about it takes their place.

    Parameters
    ----------
    sample : Sample, ByDomain or Stages
        Estimates by domain, and stages of loss, have a section of their own, on a page about their sample.
    metrics : Metric or str, or several
        The first two have tables and pictures of the units that move them most.
    level : float in (0, 1)
    engines : mapping, name -> Engine, optional
        The first makes the numbers to quote. By default they are the closed form, the jackknife and the
        bootstrap, which start from the same random state. If an engine raises DataError, the page shows its
        message. Alarms and warnings of engines are shown with those of the sample; warnings without a grade
        count as faults. If a result explains itself, as the size model's does, that is a section.
    kinds : sequence of Kind
        Each result has intervals of the first kind that suits it, and of its own kind if none does.
    about : mapping, name -> value, optional
        More lines about the data, such as names of files. The sentence that says what was done has those
        named "drawn on" and "labelled by", "cautions" are shown with the alarms, and "call" makes this page
        again. What `erbayes.impact` or `erbayes.with_errors` returns has a section under its name.
    records : DataFrame, optional
        Columns record, entity (by the labels), cluster (predicted), and attributes such as a name, as
        `erbayes.labels.Labels.records` makes it. The records of units with much influence are then shown,
        with all attributes of the table. By default no record is shown.
    explore : bool
        Whether pictures of estimates and domains have values under the pointer, which needs the extra
        `explore` and adds 5 MB to the page. Paper, and readers that run no scripts, have the static ones.

    Returns
    -------
    str
        HTML that needs no other file.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "c", 3: "b", 4: "b"}, {1: "<x>", 2: "<x>", 3: "y"})
    >>> page = report(eb.Sample(units, eb.UniformClusters()), [eb.metrics.b3_recall])
    >>> "&lt;x&gt;" in page, "<x>" in page, "<script" in page
    (True, False, False)
    """
    check_level(level)
    asked, sample = sample, sample.sample if isinstance(sample, ByDomain | Stages) else sample
    metrics, facts = resolve_metrics(metrics), dict(about or {})
    impacts = {name: facts.pop(name) for name in [*facts] if isinstance(facts[name], Impact | WithErrors)}
    cautions = [Sentence(text, Grade.CAUTION) for text in facts.pop("cautions", ())]
    if records is not None:
        need(records, pd.DataFrame, "records are a DataFrame, one row per record")
        refuse_names(sections.COLUMNS, list(records.columns), "the table of records")
    made, data, how = _run_engines(engines, sample, metrics, level), sample.facts(), _describe_draws(sample)
    results = made.results
    design = {"design": f"{how[0].upper()}{how[1:]}.", "design in Python": data.pop("design")}
    # the intervals that are quoted, which are those of the first engine
    printed = next((r.table(level, suitable(kinds, r)[0]) for r in results.values()), None)
    warnings = [*alarms(sample, metrics, printed), *made.alarms, *cautions]
    warnings += [note for part in impacts.values() if isinstance(part, Impact) for note in part.notes]
    shown = metrics, level, kinds, explore
    contents = {
        "title": title or "How good is this entity resolution?",
        "headline": _write_headline(sample, metrics, results, level, kinds, made.alarms, printed),
        "covering": f"{100 * level:g}",
        "done": _tell_what_was_done(sample, facts),
        "alarms_raised": sections.group_alarms(warnings),
        "would_show": say_what_would_show(sample),
        "refusals": made.refusals,
        "main": sections.tabulate_estimates(dict([*results.items()][:1]), *shown),
        "erring": next((name for name, part in impacts.items() if isinstance(part, WithErrors)), None),
        "others": sections.tabulate_estimates(results if len(results) > 1 else {}, *shown),
        "domains": isinstance(asked, ByDomain) and sections.tabulate_domains(asked, *shown[1:]),
        "stages": isinstance(asked, Stages) and sections.tabulate_stages(asked, level),
        "impacts": [{"name": name} | sections.tabulate_part(x, level, kinds) for name, x in impacts.items()],
        "influences": [sections.tabulate_influence(sample, metric, records) for metric in metrics[:2]],
        "described": records is not None,
        "explained": made.explained,
        "balance": sections.tabulate_balance(sample),
        "call": facts.pop("call", ""),
        "data": facts | design | data,
    }
    return _render(contents, explore)


def _render(contents: Mapping[str, Any], explore: bool) -> str:
    """Return the page, with plotly's script first if there are pictures to explore."""
    library = "plotly.offline", "pictures to explore need plotly", "explore"
    texts = [import_extra(*library).get_plotlyjs(), read_part("explore.js")] if explore else []
    digests = [b64encode(sha256(text.encode()).digest()).decode() for text in texts]  # which let them run
    scripts = [{"text": Markup(t), "digest": f"sha256-{d}"} for t, d in zip(texts, digests, strict=True)]
    versions = {"Python": sys.version.split()[0]} | {name: _find_version(name) for name in PACKAGES}
    fixed = {"scripts": scripts, "style": Markup(read_part("style.css")), "roles": ROLES}
    return f"{_load_template().render(contents, versions=versions, **fixed)}\n"


@cache
def _load_template() -> Template:
    page = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return page.from_string(read_part("page.html"))


def read_part(name: str) -> str:
    """Return a file of pages: the template, the style sheet or the script of pictures to explore."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _run_engines(
    engines: Mapping[str, Engine] | None, sample: Sample, metrics: Sequence[Metric], level: float
) -> _Made:
    made, seed = _Made(), generator(1)
    if engines is None:
        engines = {name: find_engine(name) for name in ("closed form", "jackknife", "bootstrap")}
    for name, engine in engines.items():
        with _record_warnings(name, made.alarms):
            try:
                # the same seed for each, so that a further engine leaves the other columns as they are
                result = run_engine(engine, sample, metrics, deepcopy(seed))
            except DataError as error:
                made.refusals.append(f"No {name}: {error}.")
                continue
            reasons = zip(result.names, result.reasons, strict=True)
            made.refusals += [f"{metric}, {name}: {reason}." for metric, reason in reasons if reason]
            made.alarms += [Sentence(f"{name}: {alarm}", grade_of(alarm)) for alarm in result.alarms]
            if (fit := getattr(result, "fitted", None)) is not None:
                made.explained.append(sections.explain_engine(name, fit, level))
            if not all(result.reasons):
                made.results[name] = result
    return made


@contextmanager
def _record_warnings(name: str, raised: list[Sentence]) -> Iterator[None]:
    """Add the warnings of an engine, such as NotConverged, to those `raised`, and pass them on."""
    with catch_warnings(record=True) as recorded:
        simplefilter("always", UserWarning)
        yield
    # an engine may repeat a warning for each metric
    warned = {str(one.message): one for one in recorded}
    for text, one in warned.items():
        if isinstance(one.message, UserWarning):
            # nobody has graded a warning that is no alarm, so that nothing vouches for the numbers behind it
            grade = one.message.grade if isinstance(one.message, Alarm) else Grade.FAULT
            raised.append(Sentence(f"{name}: {text}", grade))
        warn_explicit(one.message, one.category, one.filename, one.lineno)


@cache
def _find_version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed, run from its source"


def _describe_draws(sample: Sample) -> str:
    """Return how draws were made, as the end of a sentence."""
    design: Any = sample.design
    # wrappers, such as Responding, contain the design by which draws were made
    while type(design) not in DRAWN and hasattr(design, "design"):
        design = design.design
    how = DRAWN.get(type(design), f"draws were made at random by the design {type(design).__name__}")
    return how.format(units="entities" if sample.units.by_entity else "predicted clusters")


def _tell_what_was_done(sample: Sample, about: Mapping[str, Any]) -> str:
    """Return a sentence about draws and labels, as far as they are known, and one about the prediction."""
    units = sample.units
    what = f"{len(units):,} {'entities' if units.by_entity else 'predicted clusters'}"
    drawn = f"{len(sample):,} {_describe_draws(sample)}"
    if sample.expansion.census:
        drawn = f"all {what} were taken"
    if "drawn on" in about:
        drawn = drawn.replace("at random", f"at random on {about['drawn on']}")
    people = f" by {about['labelled by']}" if "labelled by" in about else ""
    done = f"What was done: {drawn}, and labelled{people}: {int(units.n.sum()):,} records of {what}."
    prediction = sample.facts().get("the prediction")
    return f"{done} The prediction has {prediction}." if prediction else done


def _write_headline(
    sample: Sample,
    metrics: Sequence[Metric],
    results: Mapping[str, Estimates],
    level: float,
    kinds: Sequence[Kind],
    raised: Sequence[Sentence],
    printed: pd.DataFrame | None,
) -> list[str]:
    """Return two sentences to quote, or the reason why there is nothing to quote."""
    if not results:
        return ["This sample has no estimate. The notes below give the reasons."]
    first = next(iter(results.values()))
    # faults of metrics that are not quoted do not count, and a range allows for undecided draws
    named = {name for name in choose_quoted(first.names) if not first.reasons[first.names.index(name)]}
    defined = [m for m in metrics if m.name in named]
    warned = [*alarms(sample, defined, printed), *raised] if defined else []
    ranged = first.cases is not None and first.cases.decide
    if faults := sum(warning.grade is Grade.FAULT for warning in warned) - ranged:
        return [describe_faults(faults, "a number of this page")]
    said = first.sentences(level, suitable(kinds, first)[0], draws=f"Of {len(sample):,} draws none")
    # a page breaks no line before a percent sign
    return [sentence.replace(" %", "\u00a0%") for sentence in said]
