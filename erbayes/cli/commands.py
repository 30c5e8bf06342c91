"""The commands of the shell."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import file_digest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

import erbayes

from .._internal.errors import DataError
from .._internal.policies import Missing
from .asked import Asked, KindName, Minima
from .assist import Assist, in_words_of
from .designs import DesignName
from .domains import Domains
from .drawing import PlanName, Planned, Shown, refuse_strange_candidates
from .engine_names import SEED, Engines
from .impact import Numbers, impact_command
from .inputs import One, Several, note_frame, note_unresolved
from .lazily import (
    answer_faults,
    by_groups,
    calibration,
    clusterings,
    columns_of,
    comparing,
    definitions,
    designing,
    diagnostics,
    disk,
    engine_contract,
    engines,
    folders,
    intervals,
    labelling,
    nonresponse,
    pd,
    planning,
    plans,
    reporting,
    returned_answers,
    sheets,
    stopping,
)
from .options import (
    REQUIRED,
    app,
    argument,
    command,
    files_of,
    flag,
    message,
    option,
    refuse_output_over,
    say,
    within,
)
from .pairs import check_pairs, draw_pairs, has_pairs, pairs_command
from .phases import Cheap, split
from .predictions import Predicted
from .printing import Format, Formatted, Printing, show_cautions, show_labels, tabulate_labels
from .remembered import CALL, remembered
from .thresholds import thresholds_command
from .top_up import flag_new
from .topics import explain

if TYPE_CHECKING:
    from ..analysis.comparison import Comparison
    from ..analysis.domains.estimates import ByDomain
    from ..design.sample import Sample
    from ..labels import Drawn
    from ..metrics.definitions import Metric

__all__ = ["app", "impact_command", "pairs_command", "thresholds_command"]


MISSING = {
    Missing.SINGLETON: "each is a predicted cluster of its own",
    Missing.TOGETHER: "those of an entity are one predicted cluster",
    Missing.OMIT: "left out",
}
"""Effect of each policy on labelled records that are missing in the prediction."""


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"erbayes {erbayes.__version__}")
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
    replace_answers: bool = flag("Replace a folder that holds answers, which are lost.", "--replace"),
    output: Path = option("Folder to write.", "-o", default=REQUIRED),
    formatted: Formatted,
) -> None:
    """Draw records of PREDICTION to be labelled, and write a folder for annotators.

    \b
    --design says what to draw:
      uniform-records     records, each alike: all metrics, the first choice
      predicted-links     ends of predicted links: precision, and no recall
      mixture             uniform records (--share), otherwise predicted links
      root-size           records by the root of the size of their cluster
      poisson             each record by a random number that releases share
      pps                 without repeats, by default by the root of size
      stratified          in classes of size (--starts) or strata (--values)
      given-chances       with chances of your own (--values)
      predicted-clusters  predicted clusters without repeats
      pairs               pairs of records, by bands of their score (--edges)

    Example: erbayes draw clusters.csv -d mixture -n 200 --seed 7 --attributes customers.csv -o to-label
    """
    if planned.design is PlanName.PAIRS:
        draw_pairs(inputs, planned, shown, replace_answers, output)
        return
    plan = planned.plan()
    folders.refuse_folder(output, replace_answers)
    values = planned.values_of_records()
    with inputs.reading.opened(inputs.part) as (prediction, read):
        message(f"read {read}")
        if planned.top_up is not None:
            values = flag_new(planned.top_up, prediction)
        drawn = labelling.draw(prediction, plan, planned.n, planned.seed, values=values)
        if planned.top_up is not None:
            drawn = replace(drawn, values=None)  # which records are new is not for the tasks
        table = shown.tasks(drawn, inputs.reading.record, inputs.reading.any_id)
        refuse_strange_candidates(table, prediction)
    options = (inputs, shown, planned)
    facts: dict[str, Any] = {name: str(path) for one in options for name, path in files_of(one)}
    facts |= {
        "read": read,
        CALL: remembered(
            vars(inputs)
            | vars(inputs.reading)
            | vars(inputs.reading.links)
            | vars(shown)
            | {"top_up": planned.top_up},
            output,
        ),
    }
    folder = labelling.write_folder(
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
    dealt = [
        (who, len(numbers), " or ".join(sorted(file.name for file in output.glob(f"*-{who}.*"))))
        for who, numbers in folder.dealt.items()
    ]
    formatted.show_sentences(
        [f"wrote {output}: {counts}", *(f"{who}: {tasks:,} tasks in {files}" for who, tasks, files in dealt)],
        pd.DataFrame(dealt, columns=["annotator", "tasks", "files"]).assign(
            folder=str(output), draws=len(drawn.table), records=len(table)
        ),
    )
    if not (table["role"] == "candidate").any():
        message(
            "note: no task shows a candidate. A record that an annotator does not find counts as not there, "
            "and recall comes out too high: --search, --looser or --candidates show some"
        )
    _print_large(drawn)
    longest = (table["role"] == "candidate").groupby(table["task"]).sum().max()
    if longest > MANY:
        message(f"note: a task shows up to {longest:,} candidates, each to be answered; --limit shows fewer")
    if not sheets.HAS_XLSX:
        message("note: no XLSX sheets, which need: pip install 'erbayes[sheets]'")


def _print_large(drawn: Drawn) -> None:
    """Say before anything is labelled that the draws leave out large clusters with many links, if they do."""
    largest = drawn.table["size"].max()
    if (beyond := drawn.known.share_above(columns_of.PREDICTED_LINKS, largest)) > calibration.NOTABLE:
        message(
            f"note: the largest predicted cluster of these draws has {largest:,} records, and {beyond:.0%} "
            "of the predicted links are in larger ones. Labels will not show whether those are right, nor "
            "what entities of such sizes miss: draw more, or with --design mixture"
        )


@command("labels")
def labels_command(
    *,
    folder: Path = argument("Folder of erbayes draw.", file_okay=False),
    decide: bool = flag("Write sheet-decided into FOLDER, with the tasks to decide."),
    problems: Path | None = option("CSV file to write, with every fault in the answers."),
    output: Path | None = option("CSV file to write, with record and entity of every label."),
    formatted: Formatted,
) -> None:
    """Read the answers in FOLDER: what came back, faults, agreement.

    Faults that leave an entity in doubt must be decided before anything is estimated: in the sheets, or all
    together in sheet-decided, which --decide writes. Its answers replace those of the annotators. A task
    without a complete answer leaves its draws unresolved, and other tasks stand for it.

    \b
    Example:
      erbayes labels to-label --problems problems.csv
    """
    for path in (problems, output):
        if path is not None:
            disk.refuse_output(path, [folder])
    labels = labelling.read_labels(folder)
    plain = formatted.format is Format.TABLE
    if plain:
        show_labels(labels)
    else:
        show_cautions(labels)
        formatted.show(tabulate_labels(labels))
    wrong = int((~labels.problems["fault"].isin(answer_faults.HARMLESS)).sum())
    if wrong and not decide:
        message(
            f"note: before an estimate, decide what the faults leave open ({wrong:,} in all): in the "
            "sheets, or together in the sheet that --decide writes"
        )
    if problems is not None:
        faults = labels.problems.assign(fault=[fault.value for fault in labels.problems["fault"]])
        with disk.replacing(problems) as new:
            sheets.write_sheet(faults, new, ())
        typer.echo(f"wrote {problems}", err=not plain)
    if decide:
        typer.echo(f"wrote {labels.write_disputed()}", err=not plain)
    if output is not None:
        table = labels.labels.rename_axis("record").rename("entity").reset_index()
        with disk.replacing(output) as new:
            table.to_csv(new, index=False)
        typer.echo(f"wrote {output}", err=not plain)


@command("estimate")
def estimate_command(
    *,
    inputs: One,
    asked: Asked,
    domains: Domains,
    helped: Assist,
    cheap: Cheap,
    by_engine: Engines,
    worst: bool = flag(
        "Bounds of metrics, whatever the draws of a folder are that nobody resolved.",
        "--worst-cases",
        rare=True,
        panel="Design",
    ),
    printing: Printing,
) -> None:
    """Estimate metrics of PREDICTION from a labelled sample, with intervals.

    LABELS holds every record of each sampled entity, or is a folder of erbayes draw. Of two columns the
    first is the record. Names of matchers' columns are known, and others are named by options.

    \b
    --design says how the labelled entities were drawn:
      uniform-records    by records: an entity drawn twice counts twice (--drawn)
      distinct-entities  by records, but each entity is listed once (--draws)
      uniform-clusters   entities, uniformly
      known-weights      entities, with known probabilities
      stratified         entities, within strata

    Examples: erbayes estimate to-label, erbayes estimate clusters.csv labels.csv -d uniform-records
    """
    refuse_output_over(printing.output, inputs)
    refuse_output_over(printing.output, helped)
    refuse_output_over(printing.output, cheap)
    domains.refuse_idle()
    metrics = domains.chosen_metrics(asked)
    helped.refuse(inputs, domains.column)
    if cheap.cheap is not None and (domains.column is not None or helped.given):
        raise DataError("--cheap goes with neither --by nor --assist nor --across: leave out one of them")
    cheap.refuse(inputs)
    if by_engine.given and (worst or domains.column is not None or helped.given or cheap.cheap is not None):
        raise DataError(
            "--engine and --side-by-side go without --by, --across, --assist, --cheap and --worst-cases: "
            "leave out one"
        )
    if worst:
        _refuse_worst_cases(
            inputs, asked, domains.column is not None or helped.given or cheap.cheap is not None
        )
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
        analysis = _bound_unresolved(inputs, asked, sample, metrics)
    elif domains.column is not None:
        analysis = _analyse_groups(inputs, asked, domains, sample, metrics)
    elif engine is not None:
        helped_by = engine(sample, metrics)
        warned = engine.of_prediction(sample) + helped_by.alarms(sample, metrics)
        analysis = Analysis(helped_by.table(inputs.level, asked.kind), "assisted", warned)
    elif cheap.cheap is not None:
        phased = cheap.estimates(inputs, sample, metrics)
        warned = phased.alarms(sample, metrics)
        analysis = Analysis(phased.table(inputs.level, asked.kind), "two phases", warned)
    else:
        analysis = _run_engines(inputs, asked, by_engine, sample, metrics)
    for alarm in analysis.alarms:
        say(alarm)
    table = analysis.table if domains.column else analysis.table.reset_index()
    printing.show_estimates(table, inputs.level, analysis.method)


def _refuse_worst_cases(inputs: One, asked: Asked, others: bool) -> None:
    """Refuse options that go without worst cases, before anything is read."""
    if inputs.returned is None:
        raise DataError(
            "--worst-cases needs a folder of erbayes draw as LABELS, which says what draws are unresolved"
        )
    if others:
        raise DataError(
            "--worst-cases takes neither --by nor --assist nor --cheap nor --across: leave out one of them"
        )
    if asked.interval not in (KindName.BETA_GAMMA, KindName.ANYTIME):
        raise DataError(
            f"--worst-cases has exact intervals: leave out --interval {asked.interval.value}, or choose "
            "anytime"
        )


class Analysis(NamedTuple):
    """What `estimate` prints: a table by a method, after alarms."""

    table: pd.DataFrame
    method: str
    alarms: Sequence[str]


def _run_engines(
    inputs: One, asked: Asked, named: Engines, sample: Sample, metrics: Sequence[Metric]
) -> Analysis:
    """Estimate metrics by the engine that --engine names, or by several side by side."""
    made = named.engines
    named.announce(sample, metrics)
    found = {name: engine(sample, metrics, SEED) for name, engine in made.items()}
    warned: list[str] = list(diagnostics.alarms(sample, metrics))
    for engine in made.values():
        if isinstance(engine, engine_contract.Doubting):
            warned += engine.alarms(sample, metrics, SEED)
    if named.side_by_side:
        table = engines.side_by_side(found, metrics, level=inputs.level).table()
        return Analysis(table.set_index("metric"), "", warned)
    ((name, result),) = found.items()
    # an engine that draws has an interval of its own, unless one is asked for
    kind = None if named.given and asked.interval is KindName.BETA_GAMMA else asked.kind
    return Analysis(result.table(inputs.level, kind), name if named.given else "closed-form", warned)


def _analyse_groups(
    inputs: One, asked: Asked, domains: Domains, sample: Sample, metrics: Sequence[Metric]
) -> Analysis:
    """Estimate metrics of each group."""
    by = _estimate_by_domain(inputs, domains, sample, metrics)
    warned = [*by.alarms(), *diagnostics.alarms(sample, metrics)]
    return Analysis(by.table(inputs.level, asked.kind), "closed-form", warned)


def _bound_unresolved(inputs: One, asked: Asked, sample: Sample, metrics: Sequence[Metric]) -> Analysis:
    """Return bounds of metrics, whatever the unresolved draws are."""
    if not isinstance(sample.design, nonresponse.Responding):
        assert inputs.returned is not None
        raise DataError(
            f"{inputs.labels} has no unresolved draws: each draw has a complete answer, or nobody has begun "
            "its task; leave out --worst-cases"
        )
    # the exact interval of a fixed number of draws stands for the default of --interval
    kind = engines.AnytimeBetting() if asked.interval is KindName.ANYTIME else engines.Betting()
    bounds = labelling.worst_cases(sample, metrics, inputs.level, kind)
    return Analysis(bounds, "worst cases", diagnostics.alarms(sample, metrics))


def _estimate_by_domain(inputs: One, domains: Domains, sample: Sample, metrics: Sequence[Metric]) -> ByDomain:
    """Return the metrics of each group that --by names, or across those of --across."""
    groups = domains.groups(inputs, [inputs.part], [sample.units])
    known = domains.known(inputs, {"": inputs.part}, groups)
    return by_groups.by_domain(sample, groups, metrics, prediction=known.get(""), **domains.settings)


@command("compare")
def compare_command(
    *,
    inputs: Several,
    asked: Asked,
    domains: Domains,
    helped: Assist,
    in_order: bool = flag("Each release minus the one before it; intervals hold for all at once."),
    printing: Printing,
) -> None:
    """Compare predictions by the same labelled sample.

    Below the estimates of each metric stand the differences, each prediction minus one before it in the list,
    with a paired standard error. Predictions are files, tables or columns, two or more, and are called by
    their names. If one is scanned, all are.

    \b
    Examples:
      erbayes compare old.csv new.csv labels.csv -d uniform-records -m f1
      erbayes compare both.csv labels.csv -d uniform-records --record id \\
          --cluster old --cluster new
    """
    refuse_output_over(printing.output, inputs)
    refuse_output_over(printing.output, helped)
    domains.refuse_idle()
    metrics = domains.chosen_metrics(asked)
    if inputs.of_clusters:
        raise DataError(f"{inputs.labels}: {returned_answers.OWN}")
    helped.refuse(inputs, domains.column)
    if in_order and domains.column is not None:
        raise DataError("--in-order goes with neither --by nor --across: leave out one of them")
    design = inputs.design()
    parts = inputs.parts().values()
    predictions, shared = inputs.predictions(
        **domains.of_scan(inputs, parts), **helped.of_scan(inputs, parts)
    )
    note_unresolved(inputs.returned)
    design = inputs.fitted(design, shared)
    engine = helped.engine_of_several(inputs, predictions, shared) if helped.given else None
    with within(inputs.drawing.in_words):
        comparison = comparing.estimate_jointly(
            predictions,
            design=design,
            metrics=metrics,
            engine=engine,
            **shared,
        )
    for name, sample in zip(predictions, comparison.samples, strict=True):
        if isinstance(predictions[name], clusterings.Clustering):
            inputs.notice_another(name, sample.units, predictions[name])
        note_frame(sample.units, f"{name}: ")
        alone = None if engine is None else engine(sample, metrics)
        if alone is not None:
            weights = zip(alone.names, alone.weights.sum(axis=1), strict=True)
            message(f"{name}: lambda {', '.join(f'{weight:.2f} for {metric}' for metric, weight in weights)}")
        for alarm in diagnostics.alarms(sample, metrics) if alone is None else alone.alarms(sample, metrics):
            say(alarm, f"{name}: ")
    if comparison.left_out:
        message(
            f"caution: {comparison.left_out} labelled records, which not all predictions have, are left out"
        )
    table = (comparison.steps if in_order else comparison.table)(inputs.level, asked.kind)
    _print_alike(comparison, metrics)
    if domains.column is not None:
        groups = domains.groups(inputs, parts, [s.units for s in comparison.samples])
        known = domains.known(inputs, inputs.parts(), groups)
        by = by_groups.compare_by_domain(comparison, groups, metrics, predictions=known, **domains.settings)
        table = by.table(inputs.level, asked.kind)
    printing.show_estimates(table, inputs.level, "closed-form" if engine is None else "assisted")


def _print_alike(comparison: Comparison, metrics: Sequence[Metric]) -> None:
    """Say in which metrics no draw shows a difference, so that its interval has no length."""
    table = comparison.differences()
    about = {metric.name for metric in metrics if metric.group is not definitions.Group.TRUTH}
    if alike := list(dict.fromkeys(table.loc[(table["se"] == 0) & table["metric"].isin(about), "metric"])):
        message(
            f"caution: no draw shows a difference of {', '.join(alike)}, and an interval of no length is no "
            "evidence that predictions are alike: label more units"
        )


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
    numbers: Numbers,
    title: str = option("Title of the page.", default="How good is this entity resolution?"),
    output: Path = option(
        "Page to write; an old one is replaced once it is complete.", "-o", default=Path("report.html")
    ),
    formatted: Formatted,
) -> None:
    """Write a page about PREDICTION: sentences to quote, estimates, pictures.

    The page needs no network and runs nothing. It names the files with their SHA-256, the versions and this
    call. Files and designs are those of erbayes estimate. With --statistic, a section says what errors do to
    numbers of your own, as erbayes impact does. Needs the extra plots: pip install 'erbayes[plots]'

    \b
    Examples:
      erbayes report clusters.csv labels.csv -d uniform-records --assist new.csv
      erbayes report to-label --feature sales=amount:sum --statistic 'mean(sales)'
    """
    for options in (inputs, helped, domains):
        refuse_output_over(output, options)
    own = numbers.statistic is not None or numbers.feature is not None
    if not own:
        domains.refuse_idle()
    elif domains.of_entities:
        raise DataError("--statistic needs --attributes of records: leave out --of-entities")
    metrics = domains.chosen_metrics(asked)
    helped.refuse(inputs, domains.column)
    sample, read = inputs.sample(
        **domains.of_scan(inputs, [inputs.part]), **helped.of_scan(inputs, [inputs.part])
    )
    engine = helped.engine(inputs, sample.units) if helped.given else None
    names = {"prediction": "PREDICTION", "labels": "LABELS"}
    files = [
        *files_of(inputs),
        *((f"--{name}", path) for one in (helped, domains) for name, path in files_of(one)),
    ]
    about: dict[str, Any] = {names.get(name, name): _describe_file(path) for name, path in files}
    about["read"] = read
    if own:
        about["Your own numbers"] = numbers.estimate(inputs, sample, domains.attributes)
    if sample.units.unmatched:
        about["--missing"] = f"{inputs.missing.value}: {MISSING[inputs.missing]}"
    if engine is not None:
        about |= in_words_of(engine, sample, metrics)
    if (returned := inputs.returned) is not None:
        people = returned.annotators()
        about["drawn on"] = returned.folder.facts["date"]
        about["cautions"] = returned.cautions()
        about["labelled by"] = " and ".join(people["annotator"][people["tasks"] > 0])
    others: dict[str, engines.Engine] = {"closed form": engines.Taylor(), "jackknife": engines.Jackknife()}
    by = None if domains.column is None else _estimate_by_domain(inputs, domains, sample, metrics)
    page = reporting.report(
        sample if by is None else by,
        metrics,
        level=inputs.level,
        engines=None if engine is None else {"assisted": engine} | others,
        kinds=(asked.kind, intervals.EqualTailed()),
        title=title,
        about=about,
        records=None if returned is None else returned.records(),
        call=shlex.join(["erbayes", *sys.argv[1:]]),
    )
    with disk.replacing(output) as new:
        new.write_text(page, encoding="utf-8")
    quoted = by or (engine or engines.Taylor())(sample, metrics)
    formatted.show_sentences(
        [f"wrote {output}"], quoted.table(inputs.level, asked.kind).reset_index(drop=by is not None)
    )


@command("plan")
def plan_command(
    *,
    inputs: One,
    asked: Asked,
    cheap: Cheap,
    half_width: float | None = option("Half the width that the interval should have: 0.03."),
    per_unit: float = option("Cost of labelling a unit, whatever its size.", default=0.0),
    per_record: float = option("Cost of each record of a unit, beside that.", default=1.0),
    per_cheap: float | None = option("With --cheap, the cost of a cheap draw."),
    budget: float | None = option("With --cheap, the cost of all labels, instead of --half-width."),
    printing: Printing,
) -> None:
    """Plan how many units to label, from a pilot.

    LABELS is the pilot, drawn by --design. The plan is for uniform draws of records and of units, with
    replacement. If LABELS is a folder whose records were drawn by predicted size (predicted-links,
    root-size, mixture), the plan has rows for its own design too. n is a number of draws that is enough
    with probability .8, since a pilot leaves it uncertain; n_low and n_high bound the likely number. The
    cost is the expected one. A unit that is drawn twice is labelled once.

    With --cheap, the pilot has cheap labels too, and --budget is split: into careful draws and draws with
    cheap labels, of which the careful ones are a part. A careful draw costs what those of the pilot cost on
    average. width is that of the interval, over that of careful labels alone for the same budget.

    \b
    Examples: a unit takes four minutes, each of its records half a minute more
      erbayes plan clusters.csv pilot.csv -d uniform-records --half-width 0.03 \\
          --per-unit 4 --per-record 0.5
      erbayes plan clusters.csv pilot.csv -d uniform-records \\
          --drawn pilot-draws.csv --cheap machine.csv \\
          --cheap-drawn machine-draws.csv --budget 2400 --per-cheap 0.1 \\
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
    planned: dict[str, designing.UniformRecords | designing.UniformClusters | designing.ByPredictedSize] = {
        DesignName.UNIFORM_RECORDS.value: designing.UniformRecords(),
        DesignName.UNIFORM_CLUSTERS.value: designing.UniformClusters(),
    }
    if inputs.returned is not None:
        own = pilot.design.design if isinstance(pilot.design, nonresponse.Responding) else pilot.design
        name = str(plans.to_plain(inputs.returned.folder.drawn.plan)["name"])
        if isinstance(own, designing.ByPredictedSize):
            planned[name] = own
        elif not isinstance(own, designing.UniformRecords | designing.UniformClusters):
            message(f"note: the plan is for uniform draws, and not for those of {inputs.labels}, {name}")
    for alarm in diagnostics.alarms(pilot, metrics):
        say(alarm)
    plan = planning.forecast(
        pilot, metrics, planned, kind=asked.kind, cost=lambda size: per_unit + per_record * size
    )
    table = plan.needed(half_width, inputs.level)
    _print_unreached(pilot, planned, table)
    if not per_unit and per_record == 1:
        message("note: cost counts records to label; --per-unit and --per-record say what they cost")
    printing.show(table.astype(object).where(table.notna(), None))


def _print_unreached(
    pilot: Sample,
    designs: Mapping[str, designing.UniformRecords | designing.UniformClusters | designing.ByPredictedSize],
    table: pd.DataFrame,
) -> None:
    """Say which planned designs are expected to leave out large clusters with many links."""
    known = pilot.units.known
    if known is None or not known.singletons:
        return
    # the chance of a predicted cluster at one draw of a uniform design, up to a factor
    chances = {
        designing.UniformRecords: columns_of.RECORDS,
        designing.UniformClusters: columns_of.PREDICTED_CLUSTERS,
    }
    for name, design in designs.items():
        if not (n := table.loc[table["design"] == name, "n"].max()) > 0:
            continue
        chance = design.chance if isinstance(design, designing.ByPredictedSize) else chances[type(design)]
        if (beyond := calibration.links_expected_beyond(known, chance, n)) > calibration.NOTABLE:
            message(
                f"note: {name}: {n:,} draws are expected to leave {beyond:.0%} of the predicted links in "
                "clusters larger than any that they reach, so that they do not tell recall of large entities"
            )


MANY = 100
"""Candidates of a task that are many for an annotator."""


@command("check")
def check_command(
    *,
    inputs: One,
    minima: Minima,
    once: bool = flag("The labels are looked at only once, and their number was fixed before."),
    printing: Printing,
) -> None:
    """Check whether metrics of PREDICTION reach their minimum.

    A metric holds if its whole interval is at or above the minimum, and fails if the whole interval is below.
    Otherwise it is open, and the number of further draws that would decide is printed, approximately. The
    level is that of all intervals together: each of k metrics has the level 1 - (1 - LEVEL)/k. A metric that
    counts links is open while over a tenth of all predicted links lie in clusters larger than any that a
    draw touches, and the reason is printed.

    You may check after every new label and stop at any time, unless --once is there. Draws then count in the
    order of --drawn, which must be that of drawing. Files and designs are those of erbayes estimate. With
    --edges, LABELS may be the folder or the answers of erbayes draw --design pairs: --min-precision is then
    checked --once, at --threshold, by exact bets.

    Exit status: 0 if every metric holds, 1 if one fails, 3 if none fails and one is open, 2 if the input
    cannot be used.

    \b
    Examples:
      erbayes check to-label --min-precision 0.95 --min-recall 0.8
      erbayes check to-label --once --min b3-recall=0.9
      erbayes check edges.csv answers.csv --edges --records ids.csv \\
          --threshold 1.5 --once --min-precision 0.9
    """
    refuse_output_over(printing.output, inputs)
    minimum = minima.read()
    if has_pairs(inputs):
        if not once:
            raise DataError("pairs are looked at only once, after all that were drawn: say so by --once")
        found = check_pairs(inputs, minimum)
    else:
        sample, _ = inputs.sample()
        rule = replace(labelling.ONCE if once else labelling.REPEATED, level=inputs.level)
        found = labelling.check(sample, minimum, rule)
        for alarm in diagnostics.alarms(sample, found.metrics):
            say(alarm)
    printing.show_sentences(found.sentences(), found.table().reset_index())
    raise typer.Exit(stopping.STATUS[found.verdict])


@command("help")
def help_command(
    topic: str | None = argument("A topic or a command.", default=None),
) -> None:
    """Explain a topic with all of its options, or a command."""
    typer.echo(explain(topic, typer.main.get_command(app)), nl=False)


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
        disk.refuse_output(printing.output)
    rows = [(m.group.value, m.name, m.meaning, m.source) for m in definitions.ALL]
    printing.show(pd.DataFrame(rows, columns=["about", "metric", "meaning", "formula"]))


@command("demo")
def demo_command(
    picture: Path = option("File of the picture to write.", default=Path("demo.png")),
) -> None:
    """Show engines side by side on cases whose truth is known.

    The first case is the example of the README. In the second a few entities hold most links: closed form,
    bootstrap and size model stand next to the truth. It needs two extras: pip install 'erbayes[bayes,plots]'
    """
    disk.refuse_output(picture)
    from .demo import demo  # it loads more than commands need

    demo(picture)
