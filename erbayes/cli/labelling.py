"""The commands around labels: `erbayes draw` writes a folder for annotators, `erbayes labels` reads it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import typer

import erbayes as eb

from .._internal.errors import head
from .drawing import PlanName, Planned, Shown, refuse_strange_candidates
from .lazily import answer_faults, files, folders, heaps, pd, plans, sheets, sources, unseen
from .options import REQUIRED, argument, command, files_of, flag, message, option, saying_alarms
from .predictions import PredictionOptions, flag_new
from .printing import Answer, Format, Formatted, render_csv, show_cautions, show_labels, tabulate_labels
from .remembered import CALL, remembered
from .thresholds import write_pairs

LOOKED_AT = 5
"""Clusters of a heap that are named for a look, of which all or none go on in nearly all heaps."""
MANY = 100
"""Candidates of a task that are many for an annotator, who answers about each of them."""


@command("draw")
def draw_command(
    *,
    inputs: PredictionOptions,
    planned: Planned,
    shown: Shown,
    replace_answers: bool = flag("Replace a folder that holds answers, which are lost.", "--replace"),
    folder: Path = option("Folder to write.", "--output", "-o", default=REQUIRED),
    formatted: Formatted,
) -> None:
    """Draw records of PREDICTION to be labelled, and write a folder for annotators.

    \b
    --design says what to draw:
      multipurpose        records, single ones and those of large clusters a
                          little more often: all metrics, the default
      uniform-records     records, uniformly: size models and top-ups too
      predicted-links     ends of predicted links: precision, and no recall
      stratified          records in strata (--values)
      given-chances       with chances of your own (--values)
      predicted-clusters  predicted clusters without repeats
      pairs               pairs of records, by bands of their score (--edges)

    \b
    Examples:
      erbayes draw clusters.csv -n 200 --seed 7 \\
          --attributes customers.csv -o to-label
      erbayes draw --more 100 to-label
    """
    if planned.design is PlanName.PAIRS:
        write_pairs(inputs, planned, shown, replace_answers, folder)
        return
    older = None if planned.more is None else folders.read_folder(folder)
    if older is None:
        plan = planned.plan()
        folders.refuse_folder(folder, replace_answers)
    else:
        folders.refuse_dependent(older)
        plan, number = older.drawn.plan, older.drawn.n + (planned.more or 0)
        design = PlanName(plans.to_plain(plan)["name"])
        planned = replace(planned, design=design, n=number, seed=older.drawn.seed)
    drawn, table, read = _draw_tasks(inputs, planned, shown, plan, older)
    # a folder keeps the files that it was made of, and the call that drew it
    groups = (inputs, inputs.reading, inputs.reading.links, shown, planned)
    paths = {name: str(path) for options in (inputs, shown, planned) for name, path in files_of(options)}
    call = {name: value for options in groups for name, value in vars(options).items()}
    facts = {"read": read, **paths, CALL: remembered(call, folder)}
    if older is not None:
        written = folders.add_draws(older, drawn, table, facts)
    else:
        written = eb.labels.write_folder(
            folder,
            drawn,
            table,
            annotators=shown.annotators,
            overlap=shown.overlap,
            blind=shown.blind,
            replace=replace_answers,
            facts=facts,
        )
    if isinstance(plan, plans.PlanBySize):
        message(f"expected draws: {plans.say_expected(plan, drawn.known, planned.n)}")
    _show_folder(written, formatted)
    if shown.attributes is None:
        records = inputs.reading.links.records
        more = records is not None and files.read_table(records).shape[1] > 1
        message(f"note: annotators see ids alone; --attributes {records if more else 'FILE'} shows more")
    _note_candidates(table)
    _note_large(drawn)
    if not sheets.HAS_XLSX:
        message("note: no XLSX sheets, which need: pip install 'erbayes[sheets]'")


def _draw_tasks(
    inputs: PredictionOptions,
    planned: Planned,
    shown: Shown,
    plan: plans.Plan,
    older: folders.Folder | None,
) -> tuple[eb.labels.RecordDraws, pd.DataFrame, str]:
    """Return the draws of a plan, in all with those of an older folder, their tasks, and what was read."""
    values = planned.values_of_records()
    with inputs.reading.opened(inputs.part) as (prediction, read):
        message(f"read {read}")
        if older is not None:
            older.drawn.refuse_another(prediction)
        if planned.top_up is not None:
            values = flag_new(planned.top_up, prediction)
        with saying_alarms() as said:
            drawn = eb.labels.draw(prediction, plan, n=planned.n, seed=planned.seed, values=values)
        heap = heaps.find_heap(drawn.known)
        if said and heap is not None:
            number = min(LOOKED_AT, heap.clusters)
            with sources.open_source(prediction) as source:
                first = sources.first_in_order(source.of_clusters(), {heap.size: number}, drawn.seed)
            names = head(first["cluster"].head(number), number)
            message(f"note: such as {names}, which are drawn at random")
        if planned.top_up is not None:
            drawn = replace(drawn, values=None)  # which records are new is not for the tasks
        in_memory = prediction if isinstance(prediction, eb.Clustering) else None
        table = shown.tasks(drawn, inputs.reading.record, inputs.reading.any_id, in_memory)
        refuse_strange_candidates(table, prediction)
        if isinstance(prediction, eb.Clustering):
            inputs.reading.refuse_unbound(shown.attributes)
    return drawn, table, read


def _show_folder(folder: folders.Folder, formatted: Formatted) -> None:
    """Print what was written, and which files are for whom."""
    hands = [
        (who, len(numbers), " or ".join(sorted(file.name for file in folder.path.glob(f"*-{who}.*"))))
        for who, numbers in folder.dealt.items()
    ]
    draws, tasks, records = len(folder.drawn.table), folder.tasks["task"].max(), len(folder.tasks)
    sentences = [
        f"wrote {folder.path}: {draws:,} draws, {tasks:,} tasks, {records:,} records shown",
        *(f"{who}: {number:,} tasks in {names}" for who, number, names in hands),
    ]
    table = pd.DataFrame(hands, columns=["annotator", "tasks", "files"])
    table = table.assign(folder=str(folder.path), draws=draws, records=records)
    formatted.show_sentences(Answer(table=table, sentences=sentences))


def _note_candidates(table: pd.DataFrame) -> None:
    """Say that tasks show no candidates, or too many of them."""
    candidates = (table["role"] == "candidate").groupby(table["task"]).sum()
    if not candidates.any():
        message(
            "note: no task shows a candidate. A record that an annotator does not find counts as not there, "
            "and recall comes out too high: --search, --looser or --candidates show some"
        )
    if (longest := candidates.max()) > MANY:
        message(f"note: a task shows up to {longest:,} candidates, each to be answered; --limit shows fewer")


def _note_large(drawn: eb.labels.RecordDraws) -> None:
    """Say before anything is labelled that the draws leave out large clusters with many links, if they do."""
    largest = drawn.table["size"].max()
    if (share := drawn.known.share_above(eb.columns.PREDICTED_LINKS, largest)) > unseen.NOTABLE:
        message(
            f"note: the largest predicted cluster of these draws has {largest:,} records, and {share:.0%} "
            "of the predicted links are in larger ones. Labels will not show whether those are right, nor "
            "what entities of such sizes miss: draw more"
        )


@command("labels")
def labels_command(
    *,
    folder: Path = argument("Folder of erbayes draw."),
    decide: bool = flag("Write sheet-decided into FOLDER, with the tasks to decide."),
    problems: Path | None = option(
        "CSV file to write, with every fault in the answers.", ends=("csv", "xlsx")
    ),
    output: Path | None = option("CSV file to write: record and entity of each label.", "-o", ends=("csv",)),
    formatted: Formatted,
) -> None:
    """Read the answers in FOLDER: what came back, faults, agreement.

    Faults that leave an entity open must be decided before anything is estimated: in the sheets, or all
    together in sheet-decided, which --decide writes. Its answers replace those of the annotators. A task
    without a complete answer leaves its draws unresolved, which count as missing at random (not under
    predicted-clusters --of, which needs each). Faults are no failure of this command, which ends with 0, as
    sheets have them while people label; commands that estimate refuse them.

    \b
    Example:
      erbayes labels to-label --problems problems.csv
    """
    labels = eb.labels.read_labels(folder)
    plain = formatted.chosen is Format.TABLE
    if plain:
        show_labels(labels)
    else:
        show_cautions(labels)
        formatted.show(Answer(table=tabulate_labels(labels)))
    wrong = int((~labels.problems["fault"].isin(answer_faults.HARMLESS)).sum())
    if wrong and not decide:
        message(
            f"note: before an estimate, decide what the faults leave open ({wrong:,} in all): in the "
            "sheets, or together in the sheet that --decide writes"
        )
    written: list[Path] = []
    if problems is not None:
        faults = labels.problems.assign(fault=[fault.value for fault in labels.problems["fault"]])
        with files.replacing(problems) as new:
            sheets.write_sheet(faults, new, ())
        written.append(problems)
    if decide:
        written.append(labels.write_disputed())
    if output is not None:
        table = labels.labels.rename_axis("record").rename("entity").reset_index()
        files.write_text(output, render_csv(table, ids=True))
        written.append(output)
    for path in written:
        typer.echo(f"wrote {path}", err=not plain)
