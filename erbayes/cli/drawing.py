"""Options of designs: how labelled units were drawn, and what to draw, as annotators see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from enum import Enum
from pathlib import Path
from typing import Any

import erbayes as eb

from .._internal.errors import DataError, head
from .._internal.names import find_known
from .lazily import arrays, column_roles, files, ids, pages, pd, plans, readings, sources
from .options import REQUIRED, file_option, flag, message, name_options, option, panel
from .predictions import LinkOptions, PredictionFile, ReadingOptions
from .remembered import Call, name_columns, read_attributes, said_of


class DesignName(Enum):
    UNIFORM_RECORDS = "uniform-records"
    DISTINCT_ENTITIES = "distinct-entities"
    UNIFORM_CLUSTERS = "uniform-clusters"
    KNOWN_WEIGHTS = "known-weights"
    STRATIFIED = "stratified"


TAKES = {
    DesignName.UNIFORM_RECORDS: ["drawn", "population"],
    DesignName.DISTINCT_ENTITIES: ["draws", "population"],
    DesignName.UNIFORM_CLUSTERS: ["drawn", "population"],
    DesignName.KNOWN_WEIGHTS: ["drawn", "population", "weights"],
    DesignName.STRATIFIED: ["strata", "populations"],
}
"""Options of each design."""
NEEDED = {"draws", "weights", "strata", "populations"}
"""Options that a design needs if it takes them."""


@panel("Design")
class Drawing:
    """Options of the way in which the labelled units were drawn."""

    design: DesignName | None = option(
        "How units were drawn. Of a folder, uniform-records takes such draws alone.", "-d", metavar="DESIGN"
    )
    drawn: Path | None = file_option("File of one column: the unit of each draw.")
    draws: int | None = option("Number of records that were drawn.", min=1, metavar="NUMBER")
    population: int | None = option("Number of records or units to draw from.", min=1, metavar="NUMBER")
    weights: Path | None = file_option("File of units and their weights.", rare=True)
    strata: Path | None = file_option("File of units and their strata.", rare=True)
    populations: Path | None = file_option("File of strata and their numbers of units.", rare=True)

    @property
    def given(self) -> list[str]:
        """Names of the options that have a value, without --design."""
        return [f.name for f in fields(self) if f.name != "design" and getattr(self, f.name) is not None]

    @property
    def in_words(self) -> str:
        """Return the options that have a value, with their values; "" if there is none."""
        design = [] if self.design is None else [f"--design {self.design.value}"]
        return " ".join([*design, *(f"--{name} {getattr(self, name)}" for name in self.given)])

    def read(self, entities: Callable[[], pd.Index]) -> eb.design.contract.Design:
        """Make the design, and read the files that it needs; `entities`: those of the labels, if needed."""
        if self.design is None:
            raise DataError(
                f"--design is needed, one of {', '.join(name.value for name in DesignName)}: how were the "
                "labelled units drawn? Only a folder of erbayes draw needs no design"
            )
        options = TAKES[self.design]
        if foreign := [option for option in self.given if option not in options]:
            wrong, right = name_options(foreign), name_options(options)
            raise DataError(f"--design {self.design.value} does not take {wrong}; it takes {right}")
        needed = [option for option in options if option in NEEDED]
        if not set(needed) <= set(self.given):
            raise DataError(f"--design {self.design.value} needs {name_options(needed, ' and ')}")
        files: Any = self
        units = None if self.drawn is None else _read_drawn(self.drawn, entities)
        match self.design:
            case DesignName.UNIFORM_RECORDS:
                return eb.design.UniformRecords(units, self.population)
            case DesignName.UNIFORM_CLUSTERS:
                return eb.design.UniformClusters(self.population, units)
            case DesignName.DISTINCT_ENTITIES:
                return eb.design.DistinctEntities(files.draws, self.population)
            case DesignName.KNOWN_WEIGHTS:
                weights = numbers(files.weights, "unit", "weight")
                return eb.design.KnownWeights(weights, units, self.population)
            case DesignName.STRATIFIED:
                of_strata = numbers(files.populations, "stratum", "number", whole=True)
                sizes = {str(h): int(n) for h, n in of_strata.items()}
                return eb.design.Stratified(keyed(files.strata, "unit", "stratum"), sizes)


def _read_drawn(path: Path, entities: Callable[[], pd.Index]) -> list[Any]:
    """Return the unit of each draw; of several columns, that which has entities of the labels."""
    table, said = files.read_table(path), said_of(path, 1)
    arrays.refuse_names(said, list(table.columns), str(path))
    near = readings.Near({None: entities()}) if table.shape[1] > 1 and not said else None
    column = column_roles.find_record(table, near, f"the draws {path}", next(iter(said), None))
    files.refuse_repeated_header(table[[column]], path)
    return list(table[column])


def keyed(path: Path, key: str, value: str) -> pd.Series:
    """Read a file of two columns as a Series of the second, indexed by the unique ids of the first."""
    frame = files.read_columns(path, 2, said_of(path, 2))
    key, value = frame.columns
    keys = ids.ids(frame[key], f"{path}, column {key!r}")
    if not keys.is_unique:
        twice = keys[keys.duplicated()]
        raise DataError(f"{path}: {len(twice)} ids are listed twice, such as {head(twice)}")
    return pd.Series(ids.ids(frame[value], f"{path}, column {value!r}"), index=keys, name=value)


def numbers(path: Path, key: str, value: str, whole: bool = False) -> pd.Series:
    """Read a file as `keyed` does, with numbers in the second column."""
    text = keyed(path, key, value)
    if pd.notna(pd.to_numeric(str(text.name), errors="coerce")):
        raise DataError(
            f"{path}: {text.name!r} is the name of its second column: is the first line a row of data? It "
            f"must name the columns, such as {key},{value}"
        )
    parsed = pd.to_numeric(text, errors="coerce")
    wrong = parsed.isna() | (whole & (parsed % 1 != 0))
    if wrong.any():
        kind, where = "whole numbers" if whole else "numbers", f"{path}, column {text.name!r}"
        example = f"{text[wrong].iloc[0]!r} of {text.index[wrong][0]!r}"
        raise DataError(f"{where}: {wrong.sum()} of {len(wrong)} are not {kind}, such as {example}")
    return parsed.astype("int64") if whole else parsed


def design_of(labels: eb.labels.Labels, drawn_from: Any = None) -> eb.design.contract.Design:
    """Return the design of a folder, with the values of records that annotators have added, if it has any."""
    call, known, values = Call.of(labels.folder.path), labels.folder.drawn.values, None
    if known is not None and "values" in call.options and (path := call.take("values")).is_file():
        read = numbers if pd.api.types.is_numeric_dtype(known) else keyed
        values = read(path, "record", "value")
    return labels.design(drawn_from, values=values)


class PlanName(Enum):
    MULTIPURPOSE = "multipurpose"
    UNIFORM_RECORDS = "uniform-records"
    PREDICTED_LINKS = "predicted-links"
    GIVEN_CHANCES = "given-chances"
    STRATIFIED = "stratified"
    PREDICTED_CLUSTERS = "predicted-clusters"
    PAIRS = "pairs"


PLAN_TAKES = {
    None: ["top_up"],
    PlanName.UNIFORM_RECORDS: ["top_up"],
    PlanName.PREDICTED_CLUSTERS: ["of"],
    PlanName.STRATIFIED: ["values"],
    PlanName.GIVEN_CHANCES: ["values"],
}
"""Options of each plan. Those with values need them."""


@panel("What to draw")
class Planned:
    """Options of what to draw."""

    design: PlanName | None = option("What to draw: see above.", "-d", metavar="DESIGN")
    n: int = option("Number of draws.", "-n", default=REQUIRED, min=1)
    seed: int = option("The same seed draws the same records again.", default=REQUIRED, min=0)
    of: PlanName | None = option(
        "predicted-clusters: their chances, by uniform-records or predicted-links of theirs.", rare=True
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
        design = self.design or PlanName.MULTIPURPOSE
        name, takes = design.value, PLAN_TAKES.get(self.design, [])
        given = [o for o in ("top_up", "of", "values") if getattr(self, o) is not None]
        foreign = [option for option in given if option not in takes]
        foreign += ["of pairs"] if self.of is PlanName.PAIRS else []
        if foreign:
            raise DataError(f"--design {name} does not take {name_options(foreign)}")
        if "values" in takes and self.values is None:
            raise DataError(f"--design {name} needs --values")
        if self.top_up is not None:
            return plans.NewRecords()
        cls: Any = plans.PLANS[name]
        plan: plans.Plan = cls() if self.of is None else cls(plans.PLANS[self.of.value]())
        return plan

    def values_of_records(self) -> pd.Series | None:
        """Return the value of every record, if the plan needs one."""
        if self.values is None:
            return None
        read = numbers if self.design is PlanName.GIVEN_CHANCES else keyed
        return read(self.values, "record", "value")


@panel("What annotators see")
class Shown:
    """Options of what annotators see, and of who they are."""

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
        self,
        drawn: eb.labels.RecordDraws,
        record: str | None,
        any_id: bool = False,
        prediction: eb.Clustering | None = None,
    ) -> pd.DataFrame:
        """Return the table of tasks, with candidates, and with attributes of the records that it shows.

        `prediction`, if it is in memory, tells which attributes tell it, of which none is shown unasked.
        """
        tables = []
        if self.search is not None and self.attributes is not None:
            known = pd.Index(drawn.table["record"].unique())
            rows = files.key_by_source(read_attributes(self.attributes, record, known=known), known)
            rows = rows.rename(columns={rows.columns[0]: "record"})
            tables.append(eb.labels.by_text(drawn, rows, limit=self.search))
        if self.candidates is not None:
            tables.append(_read_candidate_pairs(drawn, self.candidates))
        if self.looser is not None:
            reading = ReadingOptions(record=record, links=LinkOptions(), any_id=any_id)
            looser, _ = reading.read(PredictionFile(self.looser), "looser clustering")
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
        known = ids.as_index(shown["record"].unique())
        attributes = None if self.attributes is None else self._read_attributes(record, known, prediction)
        if attributes is None:
            return shown
        return eb.labels.tasks(drawn, attributes, candidates, controls=self.controls)

    def _read_attributes(
        self, record: str | None, shown: pd.Index, prediction: eb.Clustering | None
    ) -> pd.DataFrame | None:
        """Return attributes of shown records, but those that tell the prediction; None if none is left."""
        assert self.attributes is not None
        whole = prediction is not None and self.attributes.stat().st_size < files.LARGE
        rows = read_attributes(self.attributes, record, None if whole else shown, shown)
        clusters = None
        if whole and prediction is not None:
            rows = files.key_by_source(rows, shown)
            at = ids.as_index(rows.iloc[:, 0])
            rows = rows[at.isin(prediction.records.astype("str"))]
            position = prediction.records.astype("str").get_indexer(ids.as_index(rows.iloc[:, 0]))
            clusters = prediction.codes[position]
        kept = [] if self.show is None else self.show.split(",")
        arrays.refuse_names(kept, list(rows.columns), str(self.attributes))
        told = [c for c in ids.columns_that_tell(rows.iloc[:, 1:], clusters) if c not in kept]
        if told:
            message(
                f"note: {', '.join(map(str, told))} of {self.attributes} left out, which would tell the "
                f"prediction to annotators: --show {','.join(map(str, told))} keeps it"
            )
        rows = rows.drop(columns=told)
        if told and rows.shape[1] == 1:
            return None
        # a name by which nobody guesses which column has records
        rows = rows.rename(columns={rows.columns[0]: "record"})
        return rows[rows["record"].isin(shown.astype("str"))].reset_index(drop=True)


def refuse_strange_candidates(table: pd.DataFrame, prediction: Any) -> None:
    """Refuse candidates that are not in the prediction, such as clusters that were taken for records."""
    candidates = pd.Index(table.loc[table["role"] == pages.CANDIDATE, "record"].unique())
    if not len(candidates):
        return
    with sources.open_source(prediction) as source:
        predicted = source.look_up(candidates)["record"]
    strange = candidates[~candidates.isin(predicted)]
    if len(strange):
        raise DataError(
            f"{len(strange):,} of {len(candidates):,} candidates are not in PREDICTION, such as "
            f"{head(strange)}: --candidates are pairs of its records, and --looser a record and its cluster"
        )


def _read_candidate_pairs(drawn: eb.labels.RecordDraws, path: Path) -> pd.DataFrame:
    """Candidates from a file of pairs of records, with a score or without."""
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
    score = scored.columns[2]
    numbers = pd.to_numeric(scored[score], errors="coerce")
    return eb.labels.from_pairs(drawn, scored.assign(**{score: numbers}), score)
