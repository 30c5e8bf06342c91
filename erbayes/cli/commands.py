"""The commands of the shell."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import file_digest
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from .._internal.errors import DataError
from .._internal.files import refuse_output, replacing
from ..analysis.comparison import compare
from ..analysis.domains import ByDomain, by_domain, compare_by_domain
from ..analysis.estimation import estimate_sample
from ..analysis.planning import forecast
from ..design import ByPredictedSize, UniformClusters, UniformRecords
from ..design.calibration import NOTABLE, links_expected_beyond
from ..design.nonresponse import Responding
from ..design.sample import Sample
from ..engine import Engine, Jackknife, Taylor
from ..engine.bounded_means import AnytimeBetting, Betting
from ..engine.diagnostics import alarms
from ..labels import read_labels
from ..labels.drawing import ONCE, REPEATED, Drawn, Verdict, check, draw, worst_cases, write_folder
from ..labels.drawing.folder import refuse_folder
from ..labels.drawing.plans import to_plain
from ..labels.drawing.sheets import HAS_XLSX, write_sheet
from ..labels.reading.faults import HARMLESS
from ..labels.reading.returned import OWN
from ..metrics.columns import PREDICTED_CLUSTERS, PREDICTED_LINKS, RECORDS
from ..metrics.definitions import ALL, Metric
from ..metrics.intervals import EqualTailed, Kind
from ..report.page import report
from ..units.clustering import Clustering
from ..units.measuring import Missing
from .asked import Asked, KindName, Minima
from .assist import Assist, in_words_of
from .demo import demo
from .designs import DesignName
from .domains import Domains
from .drawing import Planned, Shown, refuse_strange_candidates
from .inputs import One, Several, note_frame, note_unresolved
from .options import app, command, files_of, message, refuse_output_over, say, within
from .phases import Cheap, split
from .predictions import Predicted
from .printing import Printing, show_labels

__all__ = ["app"]


MISSING = {
    Missing.SINGLETON: "each is a predicted cluster of its own",
    Missing.TOGETHER: "those of an entity are one predicted cluster",
    Missing.OMIT: "left out",
}
"""Effect of each policy on labelled records that the prediction lacks."""
WORST: dict[KindName, Kind] = {KindName.BETA_GAMMA: Betting(), KindName.ANYTIME: AnytimeBetting()}
"""Kinds of interval of worst cases. The first stands for the default of --interval."""
OF_REPORT: dict[str, Engine] = {"closed form": Taylor(), "jackknife": Jackknife()}
"""Engines of a report beside that of a second clustering."""


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"erbayes {version('erbayes')}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Estimate the quality of entity resolution in a whole database from a labelled sample."""


@command("draw")
def draw_command(
    *,
    inputs: Predicted,
    planned: Planned,
    shown: Shown,
    replace_answers: Annotated[
        bool, typer.Option("--replace", help="Replace a folder that holds answers, which are lost.")
    ] = False,
    output: Annotated[Path, typer.Option(help="Folder to write, which appears once it is complete.")],
) -> None:
    """Draw records of PREDICTION to be labelled, and write a folder for annotators.

    \b
    What to draw? (--design)
      uniform-records     Records, each with the same chance: all metrics. The first choice.
      predicted-links     Ends of predicted links: precision from fewer labels. No recall.
      mixture             Both: a share of uniform records (--share), otherwise predicted links.
      root-size           Records by the root of the size of their predicted cluster: precision
                          and recall alike.
      poisson             Each record by a permanent random number, so that the next release draws
                          the same records again.
      pps                 Without repeats, by default by the root of size.
      stratified          In classes of predicted size (--starts 1,2,5) or in strata (--values FILE).
      given-chances       With chances of your own (--values FILE).
      predicted-clusters  Predicted clusters without repeats, each with the same chance, or by their
                          records (--of uniform-records) or links (--of predicted-links).

    The folder holds a task per drawn record: the record, its predicted cluster, and candidates for
    records that the cluster misses (--candidates). Each annotator gets sheet-NAME.csv, sheet-NAME.xlsx (with
    erbayes[sheets]) and label-NAME.html, all three with the same tasks, of which one is to be filled.

    \b
    In a sheet, every row needs an answer in the column "same":
      y  The record is the same person or thing as the drawn record. In the row of the drawn
         record itself: the task is done, all of its records are found.
      n  It is another one.
    A record that is missing gets a new row with the number of the task, its id, and y. A task that
    nobody can answer gets an x in "cannot_tell". The page asks the same and saves a file of answers, which
    belongs into the folder. If predicted clusters are drawn, each of their records is a task. The task
    stays blank if an earlier task of its cluster has y for the record. Then: erbayes labels FOLDER, and
    erbayes estimate PREDICTION FOLDER.

    \b
    Examples:
      erbayes draw clusters.csv --design uniform-records --n 200 --seed 7 \\
          --attributes customers.csv --output to-label
      erbayes draw clusters.csv --design mixture --n 200 --seed 7 --attributes customers.csv \\
          --candidates pairs.csv --annotators 2 --overlap 0.2 --output to-label
    """
    plan = planned.plan()
    refuse_folder(output, replace_answers)
    values = planned.values_of_records()
    with inputs.reading.opened(inputs.part) as (prediction, read):
        message(f"read {read}")
        drawn = draw(prediction, plan, planned.n, planned.seed, values=values)
        table = shown.tasks(drawn, inputs.reading.record, inputs.reading.any_id)
        refuse_strange_candidates(table, prediction)
    facts = {name: str(path) for name, path in files_of(inputs)} | {"read": read}
    facts |= {name: str(path) for name, path in files_of(shown)} | {
        name: str(path) for name, path in files_of(planned)
    }
    folder = write_folder(
        output,
        drawn,
        table,
        annotators=shown.annotators,
        overlap=shown.overlap,
        blind=shown.blind,
        replace=replace_answers,
        facts=facts,
    )
    counts = f"{len(drawn.table):,} draws, {table['task'].max():,} tasks, {len(table):,} records shown"
    typer.echo(f"wrote {output}: {counts}")
    for annotator, numbers in folder.dealt.items():
        files = sorted(file.name for file in output.glob(f"*-{annotator}.*"))
        typer.echo(f"{annotator}: {len(numbers):,} tasks in {' or '.join(files)}")
    if not (table["role"] == "candidate").any():
        message(
            "note: no task shows a candidate. A record that an annotator does not find counts as not there, "
            "and recall comes out too high: --search, --looser or --candidates show some"
        )
    _print_large(drawn)
    longest = (table["role"] == "candidate").groupby(table["task"]).sum().max()
    if longest > MANY:
        message(f"note: a task shows up to {longest:,} candidates, each to be answered; --limit shows fewer")
    if not HAS_XLSX:
        message("note: no XLSX sheets, which need: pip install 'erbayes[sheets]'")


def _print_large(drawn: Drawn) -> None:
    """Say before anything is labelled that the draws leave out large clusters with many links, if they do."""
    largest = drawn.table["size"].max()
    if (beyond := drawn.known.share_above(PREDICTED_LINKS, largest)) > NOTABLE:
        message(
            f"note: the largest predicted cluster of these draws has {largest:,} records, and {beyond:.0%} "
            "of the predicted links are in larger ones. Labels will not show whether those are right, nor "
            "what entities of such sizes miss: draw more, or with --design mixture"
        )


@command("labels")
def labels_command(
    *,
    folder: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", exists=True, file_okay=False, help="Folder of erbayes draw."),
    ],
    decide: Annotated[
        bool,
        typer.Option("--decide", help="Write sheet-decided into FOLDER, with the tasks to decide."),
    ] = False,
    problems: Annotated[
        Path | None, typer.Option(help="CSV file to write, with every fault in the answers.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="CSV file to write, with record and entity of every label.")
    ] = None,
) -> None:
    """Read the answers in FOLDER: what came back, every fault, and how far annotators agree.

    Faults that leave an entity in doubt must be decided before anything is estimated: in the sheets, or all
    together in sheet-decided, which --decide writes. Its answers replace those of the annotators. A task
    without a complete answer leaves its draws unresolved, and other tasks stand for it.

    \b
    Example:
      erbayes labels to-label --problems problems.csv
    """
    for path in (problems, output):
        if path is not None:
            refuse_output(path, [folder])
    labels = read_labels(folder)
    show_labels(labels)
    wrong = int((~labels.problems["fault"].isin(HARMLESS)).sum())
    if wrong and not decide:
        message(
            f"note: before an estimate, decide what the faults leave open ({wrong:,} in all): in the "
            "sheets, or together in the sheet that --decide writes"
        )
    if problems is not None:
        faults = labels.problems.assign(fault=[fault.value for fault in labels.problems["fault"]])
        with replacing(problems) as new:
            write_sheet(faults, new, ())
        typer.echo(f"wrote {problems}")
    if decide:
        typer.echo(f"wrote {labels.write_disputed()}")
    if output is not None:
        table = labels.labels.rename_axis("record").rename("entity").reset_index()
        with replacing(output) as new:
            table.to_csv(new, index=False)
        typer.echo(f"wrote {output}")


@command("estimate")
def estimate_command(
    *,
    inputs: One,
    asked: Asked,
    domains: Domains,
    helped: Assist,
    cheap: Cheap,
    worst: Annotated[
        bool,
        typer.Option(
            "--worst-cases",
            help="Bounds of metrics, whatever the draws of a folder are that nobody resolved.",
        ),
    ] = False,
    printing: Printing,
) -> None:
    """Estimate metrics of PREDICTION from a labelled sample.

    LABELS holds every record of each entity in the sample. Files are CSV, TSV (both may be compressed)
    or Parquet. Of two columns the first is the record. If there are more, name those to read: --record,
    --cluster, --entity. The names of the columns are printed on stderr. Ids are text: integers in a
    Parquet file become text, and 7 is not 007. PREDICTION may also be a folder of such files or, with
    --table, a table of a DuckDB database. Folders, databases and large files are scanned where they lie,
    which needs erbayes[scale].

    Six metrics are estimated unless --metrics names others or --all asks for every one. "erbayes metrics"
    lists them with their meaning.

    \b
    How were the labelled entities drawn? (--design)
      uniform-records    Records were drawn uniformly and their entities labelled. An entity drawn
                         twice counts twice: --drawn. Without replacement: --population RECORDS.
      distinct-entities  Records were drawn uniformly with replacement, and the labels list each
                         entity once although some were drawn twice: --draws RECORDS. The
                         population is that of PREDICTION, or --population RECORDS.
      uniform-clusters   Entities were drawn uniformly. Without replacement: --population ENTITIES.
      known-weights      Entities were drawn with known probabilities p: --weights FILE, with 1/p
                         or a multiple of it.
      stratified         Entities were drawn uniformly, without replacement, within strata of
                         entities: --strata FILE and --populations FILE.
    With --blocks, read "block" for "entity": whole blocks were drawn and labelled.

    Were the labels made for an older PREDICTION? New records of labelled entities would then count as false
    links. Count only the records that existed when the labels were made: --frame FILE (their ids, or the
    older prediction), or --frame-column NAME --frame-until DAY of PREDICTION. With --frame-column alone,
    a warning is printed if the labels look older.

    For whom is it good? --by COLUMN estimates every metric for each group of records, such as a country. The
    column is one of PREDICTION, or of --attributes TABLE, whose first column has the ids of records. A link
    counts half for each of its records, so that groups add up to all.

    Is there a second clustering of the same records: the next release, a slower matcher, a looser threshold?
    --assist FILE shortens intervals if it is good. If it is not, estimates are those without it. It must be
    made without LABELS. If it is a column of PREDICTION, name that by --assist-cluster alone.

    Has a machine, or an earlier vendor, labelled many more draws? --cheap FILE --cheap-drawn FILE take its
    labels. LABELS has careful ones of the first of these draws. Its errors do not bend the estimates.

    Has a folder draws without a complete answer? Estimates assume that they are like the others.
    --worst-cases shows bounds that need no such assumption: if all of them were wrong, or right.

    \b
    Examples:
      erbayes estimate clusters.csv labels.csv --design uniform-records
      erbayes estimate clusters.parquet labels.csv --design distinct-entities --draws 400 \\
          --metrics pairwise-precision,pairwise-recall --format json
      erbayes estimate clusters.csv labels.csv --design stratified --strata strata.csv \\
          --populations sizes.csv --missing omit --output found.csv --format csv
      erbayes estimate new.csv labels.csv --design uniform-records --frame old.csv
      erbayes estimate clusters.csv labels.csv --design uniform-records --by country \\
          --attributes customers.csv
      erbayes estimate new.csv labels.csv --design uniform-records \\
          --frame-column created --frame-until 2021-06-30
      erbayes estimate old.csv labels.csv --design uniform-records --assist new.csv
      erbayes estimate clusters.csv careful.csv --design uniform-records --drawn careful-draws.csv \\
          --cheap machine.csv --cheap-drawn machine-draws.csv

    Warnings on stderr name what makes the estimates doubtful. Exit status: 0, or 2 if the input
    cannot be used.
    """
    refuse_output_over(printing.output, inputs)
    refuse_output_over(printing.output, helped)
    refuse_output_over(printing.output, cheap)
    metrics = asked.chosen_metrics()
    helped.refuse(inputs, domains.by)
    if cheap.cheap is not None and (domains.by is not None or helped.given):
        raise DataError("--cheap goes with neither --by nor --assist: leave out one of them")
    cheap.refuse(inputs)
    if worst:
        _refuse_worst_cases(inputs, asked, domains.by is not None or helped.given or cheap.cheap is not None)
    sample, _ = inputs.sample(
        **domains.of_scan(inputs, [inputs.part]), **helped.of_scan(inputs, [inputs.part])
    )
    engine = helped.engine(inputs, sample.units) if helped.given else None
    if sample.units.unmatched:
        message(
            f"note: {sample.units.unmatched} labelled records are not in PREDICTION; --missing "
            f"{inputs.missing.value}: {MISSING[inputs.missing]}"
        )
    if worst:
        table, method = _bound_unresolved(inputs, asked, sample, metrics), "worst cases"
        warned = alarms(sample, metrics)
    elif domains.by is not None:
        by, method = _estimate_by_domain(inputs, domains, sample, metrics), "taylor"
        table, warned = by.table(inputs.level, asked.kind), [*by.alarms(), *alarms(sample, metrics)]
    elif engine is not None or cheap.cheap is not None:
        method = "two phases" if engine is None else "assisted"
        helping = cheap.estimates(inputs, sample, metrics) if engine is None else engine(sample, metrics)
        table, warned = helping.table(inputs.level, asked.kind), helping.alarms(sample, metrics)
        warned = warned if engine is None else engine.of_prediction(sample) + warned
    else:
        found, method = estimate_sample(sample, metrics), "taylor"
        table, warned = found.table(inputs.level, asked.kind), alarms(sample, metrics)
    for alarm in warned:
        say(alarm)
    printing.show_estimates(table if domains.by else table.reset_index(), inputs.level, method)


def _refuse_worst_cases(inputs: One, asked: Asked, others: bool) -> None:
    """Refuse options that go without worst cases, before anything is read."""
    if inputs.returned is None:
        raise DataError(
            "--worst-cases needs a folder of erbayes draw as LABELS, which says what draws are unresolved"
        )
    if others:
        raise DataError("--worst-cases takes neither --by nor --assist nor --cheap: leave out one of them")
    if asked.interval not in WORST:
        raise DataError(
            f"--worst-cases has exact intervals: leave out --interval {asked.interval.value}, or choose "
            "anytime"
        )


def _bound_unresolved(inputs: One, asked: Asked, sample: Sample, metrics: Sequence[Metric]) -> pd.DataFrame:
    """Return bounds of metrics, whatever the unresolved draws are."""
    if not isinstance(sample.design, Responding):
        assert inputs.returned is not None
        raise DataError(
            f"{inputs.labels} has no unresolved draws: each draw has a complete answer, or nobody has begun "
            "its task; leave out --worst-cases"
        )
    return worst_cases(sample, metrics, inputs.level, WORST[asked.interval])


def _estimate_by_domain(inputs: One, domains: Domains, sample: Sample, metrics: Sequence[Metric]) -> ByDomain:
    """Return the metrics of each group that --by names."""
    groups = domains.groups(inputs, [inputs.part], [sample.units])
    known = domains.known(inputs, {"": inputs.part}, groups)
    return by_domain(sample, groups, metrics, prediction=known.get(""), **domains.settings)


@command("compare")
def compare_command(
    *, inputs: Several, asked: Asked, domains: Domains, helped: Assist, printing: Printing
) -> None:
    """Compare predictions by the same labelled sample.

    Each row is a prediction minus one before it in the list, with a paired standard error. Predictions are
    files, tables or columns, two or more, and are called by their names. Files and designs are those of
    erbayes estimate. If one prediction is scanned, all are.

    A second clustering of the same records, --assist FILE, helps to judge each prediction. One of the
    predictions may be it: then it helps to judge the others.

    \b
    Examples:
      erbayes compare old.csv new.csv labels.csv --design uniform-records --metrics pairwise-f1
      erbayes compare both.parquet labels.csv --design uniform-records --record id \\
          --cluster old --cluster new
      erbayes compare old.csv new.csv labels.csv --design uniform-records --assist slow.csv
    """
    refuse_output_over(printing.output, inputs)
    refuse_output_over(printing.output, helped)
    metrics = asked.chosen_metrics()
    if inputs.of_clusters:
        raise DataError(f"{inputs.labels}: {OWN}")
    helped.refuse(inputs, domains.by)
    design = inputs.design()
    parts = inputs.parts().values()
    predictions, shared = inputs.predictions(
        **domains.of_scan(inputs, parts), **helped.of_scan(inputs, parts)
    )
    note_unresolved(inputs.returned)
    design = inputs.fitted(design, shared)
    engine = helped.engine_of_several(inputs, predictions, shared) if helped.given else None
    with within(inputs.drawing.in_words):
        comparison = compare(
            predictions,
            design=design,
            metrics=metrics,
            differing=inputs.framed.differing,
            engine=engine,
            **shared,
        )
    for name, sample in zip(predictions, comparison.samples, strict=True):
        if isinstance(predictions[name], Clustering):
            inputs.notice_another(name, sample.units, predictions[name])
        note_frame(sample.units, f"{name}: ")
        alone = None if engine is None else engine(sample, metrics)
        if alone is not None:
            weights = zip(alone.names, alone.weights.sum(axis=1), strict=True)
            message(f"{name}: lambda {', '.join(f'{weight:.2f} for {metric}' for metric, weight in weights)}")
        for alarm in alarms(sample, metrics) if alone is None else alone.alarms(sample, metrics):
            say(alarm, f"{name}: ")
    if comparison.left_out:
        message(f"caution: {comparison.left_out} labelled records, which a prediction lacks, are left out")
    table = comparison.differences(inputs.level, asked.kind)
    if domains.by is not None:
        groups = domains.groups(inputs, parts, [s.units for s in comparison.samples])
        known = domains.known(inputs, inputs.parts(), groups)
        by = compare_by_domain(comparison, groups, metrics, predictions=known, **domains.settings)
        table = by.table(inputs.level, asked.kind)
    printing.show_estimates(table, inputs.level, "taylor" if engine is None else "assisted")


def _describe_file(path: Path) -> str:
    """Text that identifies a file: its name as the user wrote it, its size and its SHA-256."""
    if not path.is_file():
        return str(path)
    with path.open("rb") as file:
        digest = file_digest(file, "sha256").hexdigest()
    return f"{path}, {path.stat().st_size:,} bytes, SHA-256 {digest}"


@command("report")
def report_command(
    *,
    inputs: One,
    asked: Asked,
    domains: Domains,
    helped: Assist,
    title: Annotated[str, typer.Option(help="Title of the page.")] = "How good is this entity resolution?",
    output: Annotated[
        Path, typer.Option(help="File to write. An old one is replaced once the page is complete.")
    ] = Path("report.html"),
) -> None:
    """Write one HTML page about PREDICTION: two sentences to quote, estimates, pictures, warnings.

    The page needs no network and runs nothing. It names the files with their SHA-256, the versions and
    this call. Files and designs are those of erbayes estimate. Needs the extra plots:
    pip install 'erbayes[plots]'

    With a second clustering, --assist FILE, its estimates come first, and those without it beside them.

    \b
    Examples:
      erbayes report clusters.csv labels.csv --design uniform-records \\
          --metrics pairwise-precision,pairwise-recall --output report.html
      erbayes report old.csv labels.csv --design uniform-records --assist new.csv
    """
    refuse_output_over(output, inputs)
    refuse_output_over(output, helped)
    metrics = asked.chosen_metrics()
    helped.refuse(inputs, domains.by)
    sample, read = inputs.sample(
        **domains.of_scan(inputs, [inputs.part]), **helped.of_scan(inputs, [inputs.part])
    )
    engine = helped.engine(inputs, sample.units) if helped.given else None
    names = {"prediction": "PREDICTION", "labels": "LABELS"}
    files = [*files_of(inputs), *((f"--{name}", path) for name, path in files_of(helped))]
    about = {names.get(name, name): _describe_file(path) for name, path in files} | {"read": read}
    if sample.units.unmatched:
        about["--missing"] = f"{inputs.missing.value}: {MISSING[inputs.missing]}"
    if engine is not None:
        about |= in_words_of(engine, sample, metrics)
    page = report(
        sample if domains.by is None else _estimate_by_domain(inputs, domains, sample, metrics),
        metrics,
        level=inputs.level,
        engines=None if engine is None else {"assisted": engine} | OF_REPORT,
        kinds=(asked.kind, EqualTailed()),
        title=title,
        about=about,
        call=shlex.join(["erbayes", *sys.argv[1:]]),
    )
    with replacing(output) as new:
        new.write_text(page, encoding="utf-8")
    typer.echo(f"wrote {output}")


@command("plan")
def plan_command(
    *,
    inputs: One,
    asked: Asked,
    cheap: Cheap,
    half_width: Annotated[
        float | None, typer.Option(help="Half the width that the interval should have: 0.03.")
    ] = None,
    per_unit: Annotated[float, typer.Option(help="Cost of labelling a unit, whatever its size.")] = 0.0,
    per_record: Annotated[float, typer.Option(help="Cost of each record of a unit, beside that.")] = 1.0,
    per_cheap: Annotated[float | None, typer.Option(help="With --cheap, the cost of a cheap draw.")] = None,
    budget: Annotated[
        float | None, typer.Option(help="With --cheap, the cost of all labels, instead of --half-width.")
    ] = None,
    printing: Printing,
) -> None:
    """Plan how many units to label for intervals of a certain width, from a pilot.

    LABELS is the pilot, drawn by --design. The plan is for uniform draws of records and of units, with
    replacement. If LABELS is a folder whose records were drawn by predicted size (predicted-links,
    root-size, mixture), the plan has rows for its own design too. n is a number of draws that is enough
    with probability .8, since a pilot leaves it uncertain; n_low and n_high bound the likely number. The
    cost is the expected one. A unit that is drawn twice is labelled once.

    With --cheap, the pilot has cheap labels too, and --budget is split: into careful draws and draws with
    cheap labels, of which the careful ones are a part. A careful draw costs what those of the pilot cost on
    average. width is that of the interval, over that of careful labels alone for the same budget.

    \b
    Examples: a unit takes four minutes, and each of its records half a minute more
      erbayes plan clusters.csv pilot.csv --design uniform-records --half-width 0.03 \\
          --per-unit 4 --per-record 0.5
      erbayes plan clusters.csv pilot.csv --design uniform-records --drawn pilot-draws.csv \\
          --cheap machine.csv --cheap-drawn machine-draws.csv --budget 2400 --per-cheap 0.1 \\
          --per-unit 4 --per-record 0.5
    """
    refuse_output_over(printing.output, inputs)
    refuse_output_over(printing.output, cheap)
    metrics = asked.chosen_metrics()
    if (half_width is None) == (budget is None):
        raise DataError("a plan needs either --half-width, or --budget with --cheap")
    if len({cheap.cheap is None, budget is None, per_cheap is None}) > 1:
        raise DataError("--cheap, --budget and --per-cheap go together: a budget is split by the two costs")
    cheap.refuse(inputs)
    pilot, _ = inputs.sample()
    if budget is not None and per_cheap is not None:
        found = cheap.estimates(inputs, pilot, metrics)
        for alarm in found.alarms(pilot, metrics):
            say(alarm)
        table = split(found, pilot, budget, per_unit, per_record, per_cheap)
        printing.show(table.astype(object).where(table.notna(), None))
        return
    assert half_width is not None
    planned: dict[str, UniformRecords | UniformClusters | ByPredictedSize] = {
        DesignName.UNIFORM_RECORDS.value: UniformRecords(),
        DesignName.UNIFORM_CLUSTERS.value: UniformClusters(),
    }
    if inputs.returned is not None:
        own = pilot.design.design if isinstance(pilot.design, Responding) else pilot.design
        name = str(to_plain(inputs.returned.folder.drawn.plan)["name"])
        if isinstance(own, ByPredictedSize):
            planned[name] = own
        elif not isinstance(own, UniformRecords | UniformClusters):
            message(f"note: the plan is for uniform draws, and not for those of {inputs.labels}, {name}")
    for alarm in alarms(pilot, metrics):
        say(alarm)
    plan = forecast(pilot, metrics, planned, kind=asked.kind, cost=lambda size: per_unit + per_record * size)
    table = plan.needed(half_width, inputs.level)
    _print_unreached(pilot, planned, table)
    printing.show(table.astype(object).where(table.notna(), None))


def _print_unreached(
    pilot: Sample,
    designs: Mapping[str, UniformRecords | UniformClusters | ByPredictedSize],
    table: pd.DataFrame,
) -> None:
    """Say which planned designs are expected to leave out large clusters with many links."""
    known = pilot.units.known
    if known is None or not known.singletons:
        return
    for name, design in designs.items():
        if not (n := table.loc[table["design"] == name, "n"].max()) > 0:
            continue
        chance = design.chance if isinstance(design, ByPredictedSize) else CHANCES[type(design)]
        if (beyond := links_expected_beyond(known, chance, n)) > NOTABLE:
            message(
                f"note: {name}: {n:,} draws are expected to leave {beyond:.0%} of the predicted links in "
                "clusters larger than any that they reach, so that they do not tell recall of large entities"
            )


CHANCES = {UniformRecords: RECORDS, UniformClusters: PREDICTED_CLUSTERS}
"""Chance of a predicted cluster at one draw of a uniform design, up to a factor."""
MANY = 100
"""Candidates of a task that are many for an annotator."""
STATUS = {Verdict.HOLDS: 0, Verdict.FAILS: 1, Verdict.OPEN: 3}
"""Exit status of each verdict."""


@command("check")
def check_command(
    *,
    inputs: One,
    minima: Minima,
    once: Annotated[
        bool,
        typer.Option("--once", help="The labels are looked at only once, and their number was fixed before."),
    ] = False,
    printing: Printing,
) -> None:
    """Check whether metrics of PREDICTION reach their minimum, as far as the labels tell.

    A metric holds if its whole interval is at or above the minimum, and fails if the whole interval is below.
    Otherwise it is open, and the number of further draws that would decide is printed, approximately. The
    level is that of all intervals together: each of k metrics has the level 1 - (1 - LEVEL)/k. A metric that
    counts links is open while over a tenth of all predicted links lie in clusters larger than any that a
    draw touches, and the reason is printed.

    You may check after every new label and stop at any time, unless --once is there. Draws then count in the
    order of --drawn, which must be that of drawing. Files and designs are those of erbayes estimate.

    Exit status: 0 if every metric holds, 1 if one fails, 3 if none fails and one is open, 2 if the input
    cannot be used.

    \b
    Examples:
      erbayes check clusters.csv labels.csv --design uniform-records --drawn drawn.csv \\
          --min-precision 0.95 --min-recall 0.8
      erbayes check clusters.csv labels.csv --design uniform-records --once --min b3-recall=0.9
    """
    refuse_output_over(printing.output, inputs)
    minimum = minima.read()
    sample, _ = inputs.sample()
    found = check(sample, minimum, replace(ONCE if once else REPEATED, level=inputs.level))
    for alarm in alarms(sample, found.metrics):
        say(alarm)
    printing.show_sentences(found.sentences(), found.table().reset_index())
    raise typer.Exit(STATUS[found.verdict])


@command("metrics")
def metrics_command(printing: Printing) -> None:
    """List every metric with its meaning, formula and source.

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
    if printing.output is not None:
        refuse_output(printing.output)
    rows = [(m.group.value, m.name, m.meaning, m.source) for m in ALL]
    printing.show(pd.DataFrame(rows, columns=["about", "metric", "meaning", "formula"]))


@command("demo")
def demo_command(
    picture: Annotated[Path, typer.Option(help="File of the picture to write.")] = Path("demo.png"),
) -> None:
    """Estimate metrics of a synthetic and of a real case, as tables and a picture.

    The truth of the synthetic case is known. The real case is PatentsView's disambiguation of inventors, with
    401 labelled inventors. It needs the extra datasets: pip install 'erbayes[datasets]'
    """
    refuse_output(picture)
    demo(picture)
