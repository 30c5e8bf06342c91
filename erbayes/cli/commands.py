"""The commands of the shell that read and judge predictions, and those that explain."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum
from hashlib import file_digest
from pathlib import Path
from typing import Annotated, Any

import typer

import erbayes as eb

from .._internal.errors import DataError, Grade, Remedy, Sentence, head
from .._internal.remedies import Missing
from .analyses import (
    SEED,
    AnnotatorErrors,
    Domains,
    EngineOption,
    Engines,
    MetricOptions,
    Minima,
    Result,
)
from .impact import Numbers
from .inputs import One, Several, note_frame, note_unresolved
from .lazily import files, named_engines, pd, plans, returned_answers, sections, stopping
from .options import (
    app,
    argument,
    command,
    explain,
    files_of,
    flag,
    message,
    option,
    picture_option,
    say,
    within,
)
from .predictions import PredictionOptions
from .printing import Answer, Judging, Picture, Printing, count_read
from .thresholds import check_pairs, has_pairs

MISSING = {
    Missing.SINGLETON: "each is a predicted cluster of its own",
    Missing.TOGETHER: "those of an entity are one predicted cluster",
    Missing.OMIT: "left out",
}
"""Effect of each policy on labelled records that are missing in the prediction."""


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"erbayes {eb.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Estimate the quality of entity resolution in a database from a labelled sample."""


class Blank(Enum):
    """What records without a cluster are."""

    OWN = "own"
    OMIT = "omit"


@command("clusters")
def clusters_command(
    *,
    inputs: PredictionOptions,
    blank: Blank | None = option(
        "Records without a cluster: own (each is a cluster of its own, as dedupe means) or omit.",
        metavar="POLICY",
    ),
    printing: Printing,
) -> None:
    """Write what a matcher wrote as a table of record and cluster.

    PREDICTION is a file of any matcher: clusters, or links with their scores. Clusters of links are their
    connected components. Columns are found by their names and values, and a line says which were taken.

    \b
    Examples:
      erbayes clusters edges.csv@0.95 --records customers.csv -o clusters.csv
      erbayes clusters dedupe.csv --blank own -o clusters.csv
      erbayes clusters pairs.csv:id_a,id_b,score@14.7 -o clusters.csv
    """
    if inputs.part.table is not None:
        raise DataError("erbayes clusters reads files: name a file, and leave out --table")
    alone = None if blank is None else blank is Blank.OWN
    clustering, read = inputs.reading.read(inputs.part, "prediction", alone=alone)
    inputs.reading.refuse_unbound()
    message(f"read {read}")
    for note in eb.units.units.histogram(clustering.sizes).look():
        message(f"note: {note}")
    table = pd.DataFrame(
        {"record": clustering.records, "cluster": clustering.clusters.take(clustering.codes)}
    )
    printing.show(Answer(table=table, ids=True))


@command("estimate")
def estimate_command(
    *,
    inputs: One,
    asked: MetricOptions,
    domains: Domains,
    by_engine: Engines,
    errors: AnnotatorErrors,
    picture: Picture,
    printing: Judging,
) -> None:
    """Estimate metrics of PREDICTION from a labelled sample, with intervals.

    LABELS has every record of each sampled entity, or is a folder of erbayes draw. Columns are found by
    names and values, and printed; erbayes help files says how to name them.

    \b
    --design says how the labelled entities were drawn:
      uniform-records    by records, with the entity of every draw (--drawn)
      distinct-entities  by records, but each entity is listed once (--draws)
      uniform-clusters   entities, uniformly
      known-weights      entities, with known probabilities
      stratified         entities, within strata

    \b
    Examples:
      erbayes estimate to-label
      erbayes estimate clusters.csv labels.csv -d uniform-records \\
          --drawn drawn.csv
    """
    metrics = domains.chosen_metrics(asked)
    domains.refuse_models(by_engine)
    sample, read = inputs.sample(**domains.of_scan(inputs))
    if (unmatched := _describe_unmatched(inputs, sample)) is not None:
        message(
            f"note: {sample.units.unmatched} labelled records are not in PREDICTION; --missing {unmatched}"
        )
    if domains.column is not None:
        result = domains.run(inputs, asked, by_engine, sample, metrics)
    else:
        result = by_engine.run(inputs, asked, sample, metrics)
    if errors.option is not None:
        groups: Any = None if domains.column is None else domains.groups(inputs, [sample.units])
        known = {} if groups is None else domains.known(inputs, groups)

        def answer(one: eb.Sample, labels: Any) -> Any:
            if groups is None:
                return named_engines.find_engine(None)(one, metrics)
            return eb.by_domain(one, groups, metrics, prediction=known.get(""), links=domains.links)

        found = errors.run_one(inputs, sample, answer)
        table, said = found.table(level=inputs.level, kind=asked.kind), found.sentence(inputs.level)
        result = Result(table, result.method, result.alarms, said, found.both)
    picture.save(result.drawn, inputs.level)
    alarms = [*inputs.cautions, *map(say, result.alarms)]
    _show_estimates(printing, result, alarms, count_read(sample, text=read))


def _show_estimates(
    printing: Judging, result: Result, alarms: Sequence[Sentence], read: dict[str, Any]
) -> None:
    """Print estimates that a method made, after the sentence that may be quoted."""
    shown = table = result.table
    if "method" not in table:  # which a table of several engines has
        table = table.copy()
        table.insert(list(table.columns).index("metric") + 1, "method", result.method)
    said = [result.sentence] if result.sentence else []
    # what is quoted allows for undecided draws, which are a fault themselves
    ranged = getattr(getattr(result.drawn, "joint", result.drawn), "cases", None)
    if faults := sum(alarm.grade is Grade.FAULT for alarm in alarms) - (ranged is not None and ranged.decide):
        said = [eb.metrics.tables.describe_faults(faults, "these numbers")]
    printing.show(Answer(table=table, sentences=said, alarms=alarms, read=read, shown=shown))


def _describe_unmatched(inputs: One, sample: eb.Sample) -> str | None:
    """Return what a policy does with labelled records missing in the prediction, None if none are."""
    return f"{inputs.missing.value}: {MISSING[inputs.missing]}" if sample.units.unmatched else None


@command("compare")
def compare_command(
    *,
    inputs: Several,
    asked: MetricOptions,
    domains: Domains,
    errors: AnnotatorErrors,
    by_engine: EngineOption,
    all_pairs: bool = flag("Differences of each two predictions, also if there are more than four."),
    picture: Picture,
    printing: Judging,
) -> None:
    """Compare predictions by the same labelled sample.

    Differences follow the estimates of each metric, each prediction minus one before it in the list, or, of
    more than four, minus the first, with a paired standard error. Predictions are files, tables or columns,
    two or more, and are called by their names. If one is scanned, all are.

    \b
    Examples:
      erbayes compare old.csv clusters.csv labels.csv -d uniform-records \\
          --drawn drawn.csv -m f1
      erbayes compare both.csv labels.csv -d uniform-records --record id \\
          --cluster old --cluster new
    """
    metrics = domains.chosen_metrics(asked)
    domains.refuse_models(by_engine)
    if inputs.of_clusters:
        raise DataError(f"{inputs.labels}: {returned_answers.JUDGES_ITS_OWN}")
    design = inputs.design()
    predictions, shared, read = inputs.predictions(**domains.of_scan(inputs))
    note_unresolved(inputs.returned)
    design = inputs.fitted(design, shared)
    # finished scans have blocks and frame already
    given = shared | {"blocks": None, "frame": None} if inputs.scanned else shared

    def answer(labels: Any, design: Any, **chosen: Any) -> Any:
        arguments: dict[str, Any] = given | {"labels": labels, "design": design, "metrics": metrics}
        return eb.analysis.comparison.estimate_jointly(predictions, **arguments | chosen)

    chosen: dict[str, Any] = {"engine": by_engine.name.value, "rng": SEED}
    kind, pairs = by_engine.choose_kind(asked), "all" if all_pairs else None
    with within(inputs.drawing.in_words):
        comparison = drawn = answer(shared["labels"], design, **chosen)
    alarms = [*inputs.cautions, *_say_of_comparison(inputs, predictions, comparison, kind)]
    table, said = comparison.table(inputs.level, kind, pairs=pairs), comparison.sentence(inputs.level, kind)
    if domains.column is not None:
        by_group = domains.compare(inputs, comparison, metrics, chosen)
        table, said = by_group.table(inputs.level, kind), ""
    if errors.option is not None:
        errors.refuse_scan(inputs)
        found = errors.run_any(inputs, answer, shared["labels"], design, errors.order(inputs, predictions))
        table, said = found.table(level=inputs.level, kind=asked.kind), found.sentence(inputs.level)
        drawn = found.both
    picture.save(drawn, inputs.level)
    samples = zip(comparison.predictions, comparison.samples, strict=True)
    about = {"labels": read.pop("")} | {name: count_read(one, text=read[name]) for name, one in samples}
    _show_estimates(printing, Result(table, by_engine.name.value, alarms, said), alarms, about)


def _say_of_comparison(
    inputs: Several,
    predictions: Mapping[str, Any],
    comparison: eb.analysis.comparison.Comparison,
    kind: eb.intervals.Kind | None,
) -> list[Sentence]:
    """Print notes and alarms of a comparison, and return the alarms."""
    levels, alarms = comparison.levels(inputs.level, kind), list[Sentence]()
    for name, sample in zip(predictions, comparison.samples, strict=True):
        if isinstance(predictions[name], eb.Clustering):
            inputs.notice_another(name, sample.units, predictions[name])
        note_frame(sample.units, f"{name}: ")
        raised = eb.alarms(sample, comparison.metrics, levels[levels["prediction"] == name])
        alarms += [say(alarm.about(f"{name}: ")) for alarm in raised]
    alarms += map(say, comparison.joint.alarms)
    if comparison.left_out:
        message(
            f"caution: {comparison.left_out} labelled records, which not all predictions have, are left out"
        )
    return alarms


@command("report")
def report_command(
    *,
    inputs: One,
    asked: MetricOptions,
    domains: Domains,
    numbers: Numbers,
    errors: AnnotatorErrors,
    title: str = option("Title of the page.", default="How good is this entity resolution?"),
    with_records: str | None = option(
        "Columns of records to show, or all; none by default.", metavar="COLUMNS"
    ),
    explore: bool = flag(
        "Values under the pointer in pictures of estimates and groups. The page needs no network all the "
        "same, since 5 MB of plotly are in it; needs the extra explore."
    ),
    output: Path = option("Page to write.", "-o", default=Path("report.html"), ends=("html", "htm", "")),
    replace_page: bool = flag("Replace the page if it is there, once the new one is complete.", "--replace"),
) -> None:
    """Write a page about PREDICTION: sentences to quote, estimates, pictures.

    The page needs no network, and shows records only --with-records. It names the files with their SHA-256,
    the versions and this call. Files and designs are those of erbayes estimate. --statistic adds what errors
    do to numbers of your own, as erbayes impact does. Needs the extra plots: pip install 'erbayes[plots]'

    \b
    Examples:
      erbayes report clusters.csv labels.csv -d uniform-records --drawn drawn.csv
      erbayes report to-label --feature sales=amount:sum --statistic 'mean(sales)'
    """
    if output.exists() and not replace_page:
        raise DataError(
            f"{output} is there", Remedy("name another page (-o), or replace it", "", "--replace")
        )
    metrics = domains.chosen_metrics(asked)
    sample, read = inputs.sample(**domains.of_scan(inputs))
    about: dict[str, Any] = _describe_files(inputs, domains) | {"read": read}
    about["call"] = shlex.join(["erbayes", *sys.argv[1:]])
    if numbers.given:
        about["Your own numbers"] = numbers.estimate(inputs, sample, domains.attributes)
    if (unmatched := _describe_unmatched(inputs, sample)) is not None:
        about["--missing"] = unmatched
    about |= _describe_labelling(inputs)
    if errors.option is not None:
        closed_form = named_engines.find_engine(None)
        about["Errors of labels"] = errors.run_one(inputs, sample, lambda one, _: closed_form(one, metrics))
    by = None if domains.column is None else domains.estimate(inputs, sample, metrics)
    page = eb.report.report(
        sample if by is None else by,
        metrics,
        level=inputs.level,
        kinds=(asked.kind, eb.intervals.EqualTailed()),
        title=title,
        about=about,
        records=_choose_records(inputs, with_records),
        explore=explore,
    )
    files.write_text(output, page)
    typer.echo(f"wrote {output}")


def _choose_records(inputs: One, columns: str | None) -> pd.DataFrame | None:
    """Return the records of a folder with these columns, None if there are no columns."""
    if columns is None:
        return None
    if inputs.returned is None:
        raise DataError("--with-records needs a folder of erbayes draw as LABELS, which has the records")
    records = inputs.returned.records()
    others = records.columns.drop(sections.COLUMNS)
    names = [*others] if columns == "all" else columns.split(",")
    if missing := [name for name in names if name not in others]:
        raise DataError(
            f"{inputs.labels} has no column {head(missing)} for --with-records; it has {head(others, 20)}"
        )
    return records[[*sections.COLUMNS, *names]]


def _describe_files(inputs: One, *others: Any) -> dict[str, str]:
    """Name, size and SHA-256 of each file of the options, by its argument or option."""
    arguments = {"prediction": "PREDICTION", "labels": "LABELS"}
    paths = [(arguments.get(name, name), path) for name, path in files_of(inputs)]
    paths += [(f"--{name}", path) for options in others for name, path in files_of(options)]
    described = {name: str(path) for name, path in paths}
    for name, path in paths:
        if path.is_file():
            with path.open("rb") as file:
                digest = file_digest(file, "sha256").hexdigest()
            described[name] = f"{path}, {path.stat().st_size:,} bytes, SHA-256 {digest}"
    return described


def _describe_labelling(inputs: One) -> dict[str, Any]:
    """Return when and by whom a folder was labelled, with its cautions; nothing if LABELS is a file."""
    if (returned := inputs.returned) is None:
        return {}
    people = returned.annotators()
    return {
        "drawn on": returned.folder.facts["date"],
        "drawn by": f"erbayes draw --design {plans.to_plain(returned.folder.drawn.plan)['name']}",
        "cautions": returned.cautions(),
        "labelled by": " and ".join(people["annotator"][people["tasks"] > 0]),
    }


@command("check")
def check_command(
    *,
    inputs: One,
    minima: Minima,
    once: bool = flag("The labels are looked at only once, and their number was fixed before."),
    errors: AnnotatorErrors,
    printing: Printing,
) -> None:
    """Check whether metrics of PREDICTION reach their minimum.

    A metric holds if its interval is at or above the minimum, fails if it is below, and is open otherwise,
    with the approximate number of further draws that would decide. The intervals of all metrics cover jointly
    at LEVEL: each of k metrics has the level 1 - (1 - LEVEL)/k. A metric that counts links is open while over
    a tenth of all predicted links are in clusters larger than any that a draw touches, as are all that do not
    fail while an alarm is a fault. The reason is printed.

    You may check after every new label and stop at any time, unless --once is there. Exact bets need draws in
    --drawn, in the order of drawing. Files and designs are those of erbayes estimate. With --edges, LABELS
    may be the folder or the answers of erbayes draw --design pairs: --min-precision is then checked --once,
    at --threshold, by exact bets.

    Exit status: 0 if every metric holds, 1 if one fails, 3 if none fails and one is open, 2 if the input
    cannot be used.

    \b
    Examples:
      erbayes check to-label --min-precision 0.95 --min-recall 0.8
      erbayes check to-label --once --min b3-recall=0.9
      erbayes check edges.csv answers.csv --edges --records ids.csv \\
          --threshold 1.5 --once --min-precision 0.9
    """
    minimum = minima.read()
    if has_pairs(inputs):
        if errors.option is not None:
            raise DataError(f"{errors.option} is about labelled entities, and {inputs.labels} has pairs")
        if not once:
            raise DataError("pairs are looked at only once, after all that were drawn: say so by --once")
        check, alarms, about = check_pairs(inputs, minimum)
    else:
        sample, read = inputs.sample()
        rule = replace(eb.labels.ONCE if once else eb.labels.REPEATED, level=inputs.level)
        check = eb.labels.check(sample, minimum, rule)
        if errors.option is not None:
            found = errors.run_one(inputs, sample, lambda one, _: eb.labels.check(one, minimum, rule))
            message(f"note: verdicts allow for errors of labels: annotators {found.describe_rates()}")
            check = found.both
        alarms, about = [*inputs.cautions, *map(say, check.alarms)], count_read(sample, text=read)
    table = check.table().reset_index()
    printing.show_sentences(Answer(table=table, sentences=check.sentences(), alarms=alarms, read=about))
    raise typer.Exit(stopping.STATUS[check.verdict])


@command("help")
def help_command(topic: str | None = argument("A topic or a command.", default=None, parser=str)) -> None:
    """Explain a topic with all of its options, or a command."""
    typer.echo(explain(topic, typer.main.get_command(app)), nl=False)


@command("metrics")
def metrics_command(
    metrics: str | None = argument("Names with commas, such as precision,f1.", default=None, parser=str),
    *,
    printing: Printing,
) -> None:
    """List METRICS, or all of them, with meaning, formula and source.

    \b
    n           records that an entity and a predicted cluster share
    N_c, m      records of this entity and of this predicted cluster
    N           all records
    B           number of overlaps of entities and predicted clusters
    TP, |T|, |P|  common, true and predicted links
    |C|, |Ĉ|    number of entities and of predicted clusters
    S           number of entities that are predicted exactly

    [B22] Binette et al. (2022), [M10] Menestrina et al. (2010), [R07] Rosenberg and Hirschberg (2007),
    [T07] Talburt et al. (2007).
    """
    asked = eb.metrics.ALL if metrics is None else MetricOptions(metrics=metrics).chosen_metrics()
    rows = [(m.group.value, m.name, m.meaning, m.source) for m in asked]
    printing.show(Answer(table=pd.DataFrame(rows, columns=["about", "metric", "meaning", "formula"])))


@command("demo")
def demo_command(picture: Path = picture_option("The picture to write.", default=Path("demo.png"))) -> None:
    """Show engines side by side on cases whose truth is known.

    The first case is the example of the README. In the second a few entities have most links: the truth is
    shown next to closed form, bootstrap and size model. It needs two extras: pip install
    'erbayes[bayes,plots]'
    """
    from .demo import demo  # it loads more than commands need

    demo(picture)
