"""The commands of the shell that read and judge predictions, and those that explain."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import file_digest
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

import erbayes as eb

from .._internal.errors import DataError, Grade, Remedy, Sentence, head, import_extra
from .._internal.remedies import Missing
from .analyses import SEED, AnnotatorErrors, Domains, EngineOption, MetricOptions, Numbers, Result
from .inputs import One, Several, note_frame
from .lazily import files, named_engines, pd, plans, sections
from .options import (
    app,
    argument,
    command,
    explain,
    files_of,
    flag,
    message,
    option,
    panel,
    picture_option,
    say,
    within,
)
from .predictions import PredictionOptions
from .printing import Answer, Judging, Picture, Printing, count_read

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


@command("clusters")
def clusters_command(
    *,
    inputs: PredictionOptions,
    blank: Literal["own", "omit"] | None = option(
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
    alone = None if blank is None else blank == "own"
    clustering, read = inputs.reading.read(inputs.part, "prediction", alone=alone)
    inputs.reading.refuse_unbound()
    message(f"read {read}")
    for note in eb.units.units.histogram(clustering.sizes).look():
        message(f"note: {note}")
    cluster = clustering.clusters.take(clustering.codes)
    printing.show(Answer(table=pd.DataFrame({"record": clustering.records, "cluster": cluster}), ids=True))


@command("estimate")
def estimate_command(
    *,
    inputs: One,
    asked: MetricOptions,
    domains: Domains,
    by_engine: EngineOption,
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
    of_groups = None if domains.column is None else domains.read(inputs, sample.units)
    result = by_engine.run(inputs, asked, sample, metrics, of_groups)
    if errors.annotator_errors is not None:
        answer: Any = of_groups or named_engines.find_engine(None)
        found = errors.run_one(inputs, sample, lambda one, _: answer(one, metrics=metrics))
        table, said = found.table(inputs.level, asked.kind), found.sentence(inputs.level, asked.kind)
        result = Result(table, result.method, result.alarms, said, found.both)
    picture.save(result.drawn, inputs.level, by_engine.choose_kind(asked))
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
    predictions, given, read = inputs.predictions(**domains.of_scan(inputs))
    labels, design = given.pop("labels"), given.pop("design")
    answer: Any = partial(eb.analysis.comparison.estimate_jointly, predictions, metrics=metrics, **given)
    chosen: dict[str, Any] = {"engine": by_engine.name, "rng": SEED}
    kind, pairs = by_engine.choose_kind(asked), "all" if all_pairs else None
    with within(inputs.drawing.in_words):
        comparison = drawn = answer(labels, design, **chosen)
    alarms = [*inputs.cautions, *_say_of_comparison(inputs, predictions, comparison, kind)]
    table, said = comparison.table(inputs.level, kind, pairs=pairs), comparison.sentence(inputs.level, kind)
    if domains.column is not None:
        table, said = domains.compare(inputs, comparison, metrics, chosen).table(inputs.level, kind), ""
    if errors.annotator_errors is not None:
        errors.refuse_scan(inputs)
        found = errors.run_any(inputs, answer, labels, design, inputs.sort_shown(predictions))
        table, said = found.table(inputs.level, asked.kind), found.sentence(inputs.level, asked.kind)
        drawn = found.both
    picture.save(drawn, inputs.level, kind)
    samples = zip(comparison.predictions, comparison.samples, strict=True)
    about = {"labels": read.pop("")} | {name: count_read(one, text=read[name]) for name, one in samples}
    _show_estimates(printing, Result(table, by_engine.name, alarms, said), alarms, about)


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
        alarms += [
            say(alarm.about(f"{name}: "))
            for alarm in eb.alarms(sample, comparison.metrics, levels[levels["prediction"] == name])
        ]
    alarms += map(say, comparison.joint.alarms)
    if left_out := comparison.left_out:
        message(f"caution: {left_out} labelled records, which not all predictions have, are left out")
    return alarms


@panel()
class Page:
    title: str = option("Title of the page.", default="How good is this entity resolution?")
    with_records: str | None = option(
        "Columns of records to show, or all; none by default.", metavar="COLUMNS"
    )
    explore: bool = flag(
        "Values under the pointer in pictures of estimates and groups. The page needs no network all the "
        "same, since 5 MB of plotly are in it; needs the extra explore."
    )
    output: Path = option("Page to write.", "-o", default=Path("report.html"), ends=("html", "htm", ""))
    replace_page: bool = flag("Replace the page if it is there, once the new one is complete.", "--replace")

    def __post_init__(self) -> None:
        if self.output.exists() and not self.replace_page:
            raise DataError(
                f"{self.output} is there", Remedy("name another page (-o), or replace it", "", "--replace")
            )

    def records(self, inputs: One) -> pd.DataFrame | None:
        """Return the records of a folder with the columns that are named, None if none is."""
        if self.with_records is None:
            return None
        if inputs.returned is None:
            raise DataError("--with-records needs a folder of erbayes draw as LABELS, which has the records")
        records = inputs.returned.records()
        others = records.columns.drop(sections.COLUMNS)
        names = [*others] if self.with_records == "all" else self.with_records.split(",")
        if missing := [name for name in names if name not in others]:
            raise DataError(
                f"{inputs.labels} has no column {head(missing)} for --with-records; it has {head(others, 20)}"
            )
        return records[[*sections.COLUMNS, *names]]


@command("report")
def report_command(
    *,
    inputs: One,
    asked: MetricOptions,
    domains: Domains,
    numbers: Numbers,
    errors: AnnotatorErrors,
    page: Page,
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
    metrics = domains.chosen_metrics(asked)
    sample, read = inputs.sample(**domains.of_scan(inputs))
    call = shlex.join(["erbayes", *sys.argv[1:]])
    about: dict[str, Any] = _describe_files(inputs, domains) | {"read": read, "call": call}
    if numbers != Numbers():
        about["Your own numbers"] = numbers.estimate(inputs, sample, domains.attributes)
    if (unmatched := _describe_unmatched(inputs, sample)) is not None:
        about["--missing"] = unmatched
    if (returned := inputs.returned) is not None:
        people = returned.annotators()
        about |= {
            "drawn on": returned.folder.facts["date"],
            "drawn by": f"erbayes draw --design {plans.to_plain(returned.folder.drawn.plan)['name']}",
            "cautions": inputs.cautions,
            "labelled by": " and ".join(people["annotator"][people["tasks"] > 0]),
        }
    if errors.annotator_errors is not None:
        closed_form = named_engines.find_engine(None)
        about["Errors of labels"] = errors.run_one(inputs, sample, lambda one, _: closed_form(one, metrics))
    html = eb.report.report(
        sample if domains.column is None else domains.read(inputs, sample.units)(sample, metrics=metrics),
        metrics,
        level=inputs.level,
        kinds=(asked.kind, eb.intervals.EqualTailed()),
        title=page.title,
        about=about,
        records=page.records(inputs),
        explore=page.explore,
    )
    files.write_text(page.output, html)
    typer.echo(f"wrote {page.output}")


def _describe_files(inputs: One, *others: Any) -> dict[str, str]:
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
    _show_people()
    module = import_extra("matplotlib.figure", "the picture needs matplotlib", "bayes,plots")
    named_engines.make_size_model()  # says what is missing before anything is simulated
    links, engines = eb.metrics.DEFAULT_METRICS[:2], ("closed form", "bootstrap", "size model")
    world, sample = _make_heavy_tail()
    found = eb.side_by_side(sample, links, engines=engines, rng=SEED)
    truth = {metric.name: world.value(metric) for metric in links}
    table = found.table()[["method", "metric", "estimate", "sd", "lower", "upper", "kind"]]
    table = table.assign(truth=table["metric"].map(truth))
    entities = world.true.nunique()
    print(f"\n2. Engines side by side, where a few of {entities:,} simulated entities hold most links\n")
    for alarm in eb.alarms(sample, links, table):
        print(f"{alarm.grade.value}: {alarm}\n")
    covered = table["truth"].between(table["lower"], table["upper"]).sum()
    print(f"{table.round(3).to_string(index=False)}\n")
    print(f"{covered} of {len(table)} intervals cover the truth. docs/heavy-tails.md goes on.")
    figure = module.Figure((7, 3.2), layout="constrained")
    axes = eb.plots.draw_side_by_side(found, ax=figure.subplots())
    starts = [0.5, len(engines) + 1.5]
    ends = [start + len(engines) for start in starts]
    axes.vlines([*truth.values()], starts, ends, color="0.5", zorder=0, label="truth")
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), frameon=False)
    with files.replacing(picture) as new:
        figure.savefig(new, dpi=120)
    print(f"\nwrote {picture}")


def _show_people() -> None:
    """Print the case of the README with its truth, and how many other samples cover it."""
    example, metrics, repetitions = eb.datasets.people(), eb.metrics.DEFAULT_METRICS, 1000
    population = eb.study.populations.Population(example.prediction, example.truth)
    sample = eb.Sample(eb.measure(example.prediction, example.labels), eb.UniformRecords(example.drawn))
    table = eb.estimate(sample).table()[["estimate", "se", "lower", "upper"]]
    table = table.assign(truth=[population.value(metric) for metric in metrics])
    covered = table["truth"].between(table["lower"], table["upper"]).sum()
    drawing, engines, draws = {"records": eb.labels.Records()}, {"closed form": "closed form"}, [len(sample)]
    runs = eb.study.study(
        {"people": population}, drawing, draws, engines, metrics[:1], repetitions=repetitions, seed=SEED
    )
    covering = round(repetitions * runs.table()["coverage"].iloc[0])
    print(
        f"1. The example of the README\n\n{table.round(3).to_string()}\n\n"
        f"The 95 % interval covers the truth for {covered} of {len(metrics)} metrics. The sample was chosen\n"
        f"to show this: in {repetitions:,} others, that of {metrics[0].name} covers it {covering} times.\n"
        f"On the labelled records alone, precision would be {eb.engine.P_naive(sample.units):.3f}, as it "
        "misses false links\nto all other records."
    )


def _make_heavy_tail() -> tuple[Any, eb.Sample]:
    simulate = eb.study.populations
    errors = simulate.Chain([simulate.Splits(0.3), simulate.Merges(0.03)])
    world = simulate.simulate(simulate.Zeta(2.3, largest=400), errors, 50_000, 1)
    persons = world.true.drop_duplicates().sample(100, random_state=3)
    units = eb.measure(world.pred, world.true[world.true.isin(persons)])
    return world, eb.Sample(units, eb.UniformClusters())
