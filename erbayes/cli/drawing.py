"""Drawing what is labelled: `erbayes draw` writes a folder for annotators, and `erbayes labels` reads it."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Literal

import typer

import erbayes as eb

from .._internal.errors import DataError, head, refuse_cases
from .._internal.names import find_known
from .lazily import (
    answer_faults,
    arrays,
    column_roles,
    files,
    folders,
    heaps,
    ids,
    pages,
    pd,
    plans,
    readings,
    sheets,
    sources,
    unseen,
)
from .options import (
    REQUIRED,
    argument,
    command,
    file_option,
    files_of,
    flag,
    message,
    name_options,
    option,
    panel,
    saying_alarms,
    within,
)
from .predictions import (
    LinkOptions,
    PredictionFile,
    PredictionOptions,
    ReadingOptions,
    keyed,
    numbers,
    read_drawn_from,
    refuse_for_design,
)
from .printing import Answer, Formatted, render_csv, show_cautions, show_labels, tabulate_labels
from .remembered import CALL, name_columns, read_attributes, remembered, said_of
from .thresholds import write_pairs

LOOKED_AT = 5
"""Clusters of a heap that are named for a look, of which all or none go on in nearly all heaps."""
MANY = 100
"""Candidates of a task that are many for an annotator, who answers about each of them."""
PlanName = Literal[
    "multipurpose",
    "uniform-records",
    "predicted-links",
    "given-chances",
    "stratified",
    "predicted-clusters",
    "pairs",
]
PLAN_TAKES: dict[PlanName | None, list[str]] = {
    None: ["top_up"],
    "uniform-records": ["top_up"],
    "predicted-clusters": ["of"],
    "stratified": ["values"],
    "given-chances": ["values"],
}
"""Options of each plan."""


@panel("What to draw")
class Planned:
    design: PlanName | None = option("What to draw: see above.", "-d", metavar="DESIGN")
    n: int = option("Number of draws.", "-n", default=REQUIRED, min=1)
    seed: int = option("The same seed draws the same records again.", default=REQUIRED, min=0)
    of: Literal["uniform-records", "predicted-links", "multipurpose"] | None = option(
        "predicted-clusters: their chances, by uniform-records, predicted-links or multipurpose of theirs.",
        rare=True,
    )
    values: Path | None = file_option(
        "Record and value, for all records: the chance (given-chances) or stratum (stratified).", rare=True
    )
    top_up: Path | None = option(
        "Older folder of uniform-records: draw only records that are new since.",
        rare=True,
        exists=True,
        file_okay=False,
    )
    more: int | None = option(
        "Further draws for the folder that is named as PREDICTION, which keeps its answers.", min=1
    )

    def plan(self) -> plans.Plan:
        name = self.design or "multipurpose"
        given = [o for o in ("top_up", "of", "values") if getattr(self, o) is not None]
        takes = PLAN_TAKES.get(self.design, [])
        refuse_for_design(name, given, takes, {*takes} & {"values"})
        cls: Any = plans.PLANS[name] if self.top_up is None else plans.NewRecords
        plan: plans.Plan = cls() if self.of is None else cls(plans.PLANS[self.of]())
        return plan


@panel("What annotators see")
class Shown:
    attributes: Path | None = file_option(
        "Record and all columns that annotators are to see, for all records."
    )
    show: str | None = option(
        "Columns of --attributes with commas that annotators see, although they tell the prediction.",
        rare=True,
        metavar="COLUMNS",
    )
    candidates: Path | None = file_option(
        "Pairs of records that may match, with their score if there is a third column; or a matcher's table."
    )
    looser: Path | None = file_option(
        "Record and cluster of a looser clustering, whose clusters have candidates.", rare=True
    )
    search: int | None = option("Candidates per drawn record, by a search through --attributes.", min=1)
    limit: int | None = option(
        "At most this many candidates per drawn record: the best of each kind in turn, by chance if "
        "scores are equal.",
        rare=True,
        min=1,
    )
    blind: bool = flag("Show the cluster and candidates in one shuffled list, without any answer given.")
    controls: float | None = option(
        "Share of tasks with a record of another cluster, which tests the annotator.", rare=True
    )
    annotators: int = option("Number of annotators.", default=1, min=1, max=26)
    overlap: float = option(
        "Share of tasks that two annotators get, if there are two.", default=0.2, min=0, max=1
    )

    def tasks(
        self, drawn: eb.labels.RecordDraws, reading: ReadingOptions, prediction: eb.Clustering | None
    ) -> pd.DataFrame:
        """Return the table of tasks, with candidates, and with attributes of the records that it shows.

        `prediction`, if it is in memory, tells which attributes tell it, of which none is shown unasked.
        """
        tables = []
        if self.search is not None and self.attributes is not None:
            known = pd.Index(drawn.table["record"].unique())
            rows = files.key_by_source(read_attributes(self.attributes, reading.record, known=known), known)
            rows = rows.rename(columns={rows.columns[0]: "record"})
            tables.append(eb.labels.by_text(drawn, rows, limit=self.search))
        if self.candidates is not None:
            tables.append(_read_candidate_pairs(drawn, self.candidates))
        if self.looser is not None:
            own = ReadingOptions(record=reading.record, links=LinkOptions(), any_id=reading.any_id)
            looser, _ = own.read(PredictionFile(self.looser), "looser clustering")
            tables.append(eb.labels.from_clustering(drawn, looser))
        candidates = eb.labels.interleaved(*tables) if tables else None
        if candidates is not None and self.limit is not None:
            number, candidates = len(candidates), eb.labels.interleaved(candidates, limit=self.limit)
            if left_out := number - len(candidates):
                message(
                    f"note: --limit {self.limit} leaves out {left_out:,} of {number:,} candidates: those of "
                    "lowest score and, if scores are equal, those that chance names"
                )
        # tasks are made twice, so that only attributes of the records that they show are read
        shown = eb.labels.tasks(drawn, None, candidates, controls=self.controls)
        if self.attributes is None:
            return shown
        known = ids.as_index(shown["record"].unique())
        attributes = self._read_attributes(self.attributes, reading.record, known, prediction)
        if attributes is None:
            return shown
        return eb.labels.tasks(drawn, attributes, candidates, controls=self.controls)

    def _read_attributes(
        self, path: Path, record: str | None, shown: pd.Index, prediction: eb.Clustering | None
    ) -> pd.DataFrame | None:
        """Return attributes of shown records, but those that tell the prediction; None if none is left."""
        whole = prediction is not None and path.stat().st_size < files.LARGE
        rows, clusters = read_attributes(path, record, None if whole else shown, shown), None
        if whole and prediction is not None:
            rows, records = files.key_by_source(rows, shown), prediction.records.astype("str")
            rows = rows[ids.as_index(rows.iloc[:, 0]).isin(records)]
            clusters = prediction.codes[records.get_indexer(ids.as_index(rows.iloc[:, 0]))]
        kept = [] if self.show is None else self.show.split(",")
        arrays.refuse_names(kept, list(rows.columns), str(path))
        if told := [str(c) for c in ids.columns_that_tell(rows.iloc[:, 1:], clusters) if c not in kept]:
            message(
                f"note: {', '.join(told)} of {path} left out, which would tell the prediction to annotators: "
                f"--show {','.join(told)} keeps it"
            )
        rows = rows.drop(columns=told)
        if told and rows.shape[1] == 1:
            return None
        # a name by which nobody guesses which column has records
        rows = rows.rename(columns={rows.columns[0]: "record"})
        return rows[rows["record"].isin(shown.astype("str"))].reset_index(drop=True)


def _read_candidate_pairs(drawn: eb.labels.RecordDraws, path: Path) -> pd.DataFrame:
    said_of(path, 0)
    pairs = files.read_table(path)
    if not 2 <= pairs.shape[1] <= 3:
        swept = {"threshold": readings.SWEEP} if find_known(pairs.columns, "score") else {}
        named = name_columns(path, links={"edges": True, **swept})
        try:  # a table of a matcher, whose ids may be unique in their source alone
            near = readings.Near({None: pd.Index(drawn.table["record"])})
            taken = column_roles.read_prediction(pairs, named, near)
        except DataError as error:
            raise DataError(
                f"{path} has {pairs.shape[1]} columns, {head(pairs.columns, 20)}: --candidates are two "
                "columns of records and, optionally, one of scores: write these alone into a file"
            ) from error
        pairs = pd.DataFrame({"left": taken.key(0), "right": taken.key(1)})
        pairs = pairs.assign(score=taken.scores()) if swept else pairs
    scored = pairs if pairs.shape[1] == 3 else pairs.assign(score=1.0)
    return eb.labels.from_pairs(drawn, scored, scored.columns[2])


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
    groups = (inputs, inputs.reading, inputs.reading.links, shown, planned)
    call = remembered({name: value for one in groups for name, value in vars(one).items()}, folder)
    if planned.design == "pairs":
        named = [o.name for one in (shown, planned) for o in fields(one) if getattr(one, o.name) != o.default]
        named += ["cluster"] if inputs.cluster else []
        if others := [name for name in named if name not in ("attributes", "design", "n", "seed")]:
            raise DataError(f"--design pairs does not take {name_options(others)}")
        write_pairs(inputs, planned.n, planned.seed, shown.attributes, call, replace_answers, folder)
        return
    older = None if planned.more is None else folders.read_folder(folder)
    if older is None:
        plan = planned.plan()
        folders.refuse_folder(folder, replace_answers)
    else:
        folders.refuse_dependent(older)
        plan, number = older.drawn.plan, older.drawn.n + (planned.more or 0)
        planned = replace(planned, design=plans.to_plain(plan)["name"], n=number, seed=older.drawn.seed)
    drawn, table, read = _draw_tasks(inputs, planned, shown, plan, older)
    # a folder keeps the files that it was made of, and the call that drew it
    paths = {name: str(path) for one in (inputs, shown, planned) for name, path in files_of(one)}
    facts = {"read": read, **paths, CALL: call}
    if older is not None:
        written = folders.add_draws(older, drawn, table, facts)
    else:
        settings = {name: getattr(shown, name) for name in ("annotators", "overlap", "blind")}
        settings |= {"replace": replace_answers, "facts": facts}
        written = eb.labels.write_folder(folder, drawn, table, **settings)
    if isinstance(plan, plans.PlanBySize):
        message(f"expected draws: {eb.labels.drawn.say_expected(plan, drawn.known, planned.n)}")
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
    inputs: PredictionOptions, planned: Planned, shown: Shown, plan: plans.Plan, older: folders.Folder | None
) -> tuple[eb.labels.RecordDraws, pd.DataFrame, str]:
    """Return the draws of a plan, in all with those of an older folder, their tasks, and what was read."""
    values = None
    if planned.values is not None:
        read_values = numbers if planned.design == "given-chances" else keyed
        values = read_values(planned.values, "record", "value")
    with inputs.reading.opened(inputs.part) as (prediction, read):
        message(f"read {read}")
        if older is not None:
            older.drawn.refuse_another(prediction, to_judge=False)
        if planned.top_up is not None:
            values = _flag_new(planned.top_up, prediction)
        with saying_alarms() as said:
            drawn = eb.labels.draw(prediction, plan, n=planned.n, seed=planned.seed, values=values)
        if said and (heap := heaps.find_heap(drawn.known)) is not None:
            number = min(LOOKED_AT, heap.clusters)
            with sources.open_source(prediction) as source:
                first = sources.first_in_order(source.of_clusters(), {heap.size: number}, drawn.seed)
            message(f"note: look at {head(first['cluster'].head(number), number)}, which are drawn at random")
        if planned.top_up is not None:
            drawn = replace(drawn, values=None)  # which records are new is not for the tasks
        in_memory = prediction if isinstance(prediction, eb.Clustering) else None
        table = shown.tasks(drawn, inputs.reading, in_memory)
        _refuse_strange_candidates(table, prediction)
        if in_memory is not None:
            inputs.reading.refuse_unbound(shown.attributes)
    return drawn, table, read


def _flag_new(older: Path, prediction: Any) -> pd.Series:
    """Return 1 for each record of a prediction that is new since an older folder was drawn, 0 for others."""
    folder = folders.read_folder(older)
    with within(f"--top-up {older}"):
        folder.drawn.uniform()
    if not isinstance(prediction, eb.Clustering):
        raise DataError("--top-up reads PREDICTION into memory: leave out --memory-limit and --table")
    new = ~prediction.records.isin(read_drawn_from(folder).records)
    if not new.any():
        raise DataError(
            f"--top-up {older}: all {len(new):,} records of PREDICTION are old: none can be drawn"
        )
    message(
        f"note: {new.sum():,} of {len(new):,} records are new since {older} was drawn. Add rows to its "
        "sheets for those that belong to its entities, as an estimate from both counts whole entities"
    )
    return pd.Series(new.astype(float), prediction.records)


def _refuse_strange_candidates(table: pd.DataFrame, prediction: Any) -> None:
    """Refuse candidates that are not in the prediction, such as clusters that were taken for records."""
    candidates = pd.Index(table.loc[table["role"] == pages.CANDIDATE, "record"].unique())
    if not len(candidates):
        return
    with sources.open_source(prediction) as source:
        strange = candidates[~candidates.isin(source.look_up(candidates)["record"])]
    then = ": --candidates are pairs of its records, and --looser a record and its cluster"
    refuse_cases(strange, "candidates are not in PREDICTION", then, of=len(candidates))


def _show_folder(folder: folders.Folder, formatted: Formatted) -> None:
    hands = [
        (who, len(numbers), " or ".join(sorted(file.name for file in folder.path.glob(f"*-{who}.*"))))
        for who, numbers in folder.dealt.items()
    ]
    draws, tasks, records = len(folder.drawn.table), folder.tasks["task"].nunique(), len(folder.tasks)
    sentences = [
        f"wrote {folder.path}: {draws:,} draws, {tasks:,} task{'s' * (tasks > 1)}, {records:,} records shown",
        *(f"{who}: {number:,} task{'s' * (number > 1)} in {names}" for who, number, names in hands),
    ]
    table = pd.DataFrame(hands, columns=["annotator", "tasks", "files"])
    table = table.assign(folder=str(folder.path), draws=draws, records=records)
    formatted.show_sentences(Answer(table=table, sentences=sentences))


def _note_candidates(table: pd.DataFrame) -> None:
    candidates = (table["role"] == pages.CANDIDATE).groupby(table["task"]).sum()
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
    plain = formatted.chosen == "table"
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
    if problems is not None:
        faults = labels.problems.assign(fault=[fault.value for fault in labels.problems["fault"]])
        with files.replacing(problems) as new:
            sheets.write_sheet(faults, new, ())
        typer.echo(f"wrote {problems}", err=not plain)
    if decide:
        typer.echo(f"wrote {labels.write_disputed()}", err=not plain)
    if output is not None:
        files.write_text(
            output, render_csv(labels.labels.rename_axis("record").rename("entity").reset_index(), ids=True)
        )
        typer.echo(f"wrote {output}", err=not plain)
