"""Commands on scored edges: `erbayes thresholds`, `erbayes pairs`, and the drawing of pairs."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import typer

import erbayes as eb

from .._internal.errors import DataError
from . import options, predictions
from .analyses import SEED, AnnotatorErrors, EngineOption, MetricOptions, Minima
from .inputs import Returned
from .lazily import (
    column_roles,
    curves,
    digits,
    files,
    ids,
    np,
    pages,
    pd,
    plans,
    readings,
    scored_edges,
)
from .printing import Answer, Judging, Picture, Printing, count_read, render_csv
from .remembered import PAIRS_CALL, TABLE, File, name_columns, read_attributes

SHOWN = 20
"""Thresholds of a table that a person reads, at most."""


@options.panel()
class EdgeTable:
    edges: Path = options.argument("Two records and a score per row.")
    records: Path | None = options.file_option(
        "All records, some of which may be in no edge: ids, or a prediction."
    )
    score: str | None = options.option("Column of scores.")
    record: str | None = options.record_option()
    stored: str | None = options.stored_option()

    @cached_property
    def source(self) -> Any:
        """Return a table that is read, or one to scan, if it lies in a database or a folder, or is large."""
        part = predictions.PredictionFile(self.edges, self.stored)
        reading = predictions.ReadingOptions(record=self.record, links=predictions.LinkOptions())
        return reading.source(part) if reading.scanned([part]) else files.read_table(self.edges)

    def clusters(self, at: Any) -> dict[str, Any]:
        """Return arguments of `erbayes.thresholds` for a table of clusters; none for edges."""
        source, columns = self.source, curves.choose_columns(self.source, at)
        if not columns:
            return {}
        if self.records is not None:
            raise DataError(f"{self.edges} has a row for each record: leave out --records")
        if isinstance(source, pd.DataFrame):
            files.refuse_repeated_header(source.filter([*columns.values()]), self.edges)
        shown = ", ".join(f"{threshold:g} ({columns[threshold]})" for threshold in sorted(columns))
        options.message(f"read clusters at {len(columns):,} thresholds of {self.edges}: {shown}")
        return {"edges": source, "records": self.record, "at": columns}

    def given(self) -> dict[str, Any]:
        """Read what the options name, as arguments of `erbayes.thresholds` and others."""
        if self.edges.is_dir():
            raise DataError(f"{self.edges} is a folder: name a file of edges")
        if File.read(self.edges).threshold is not None:
            raise DataError(f"{self.edges} is taken at all thresholds: leave out the one behind its name")
        table = curves.load_edges(self.source, self.score)
        records = None if self.records is None else predictions.read_ids(self.records, self.record)
        links = {"edges": True, "score": self.score, "threshold": readings.SWEEP}
        named, near = name_columns(self.edges, links=links), readings.Near.all_of(records)
        taken = column_roles.read_prediction(table, named, near, what=f"edges {self.edges}")
        if records is None:  # which is asked for once it is sure that these are edges
            raise DataError("a record without a match is in no edge: list all records by --records FILE")
        options.message(
            f"read {len(table):,} edges of {len(records):,} records ({taken.in_words()} of {self.edges})"
        )
        edges = scored_edges.Edges.read(taken, records, named.score is None)
        return {"edges": edges, "records": records, "score": taken.other}


@options.panel()
class Scored(Returned):
    table: EdgeTable
    labels: Path = options.argument(
        "Record and entity, for every record of each labelled entity; or a folder of erbayes draw, which "
        "knows all records."
    )
    at: str = options.option(
        "Number of thresholds, or thresholds with commas: 0,1.5 (one alone ends in a comma); or columns of "
        "clusters: 0.9=strict,0.5=loose.",
        default="200",
    )
    drawing: predictions.Drawing
    entity: str | None = options.entity_option()
    level: float = options.level_option()

    def __post_init__(self) -> None:
        options.refuse_same_file(("EDGES", self.table.edges), ("LABELS", self.labels))

    def sample(self) -> tuple[pd.Series, eb.design.contract.Design]:
        """Read the labels, with the design by which they were drawn."""
        self.refuse_clusters()
        if (returned := self.returned) is not None:
            if self.both is not None:
                return self.both
            free = isinstance(returned.folder.drawn.plan, plans.FREE)
            origin = None if free else predictions.read_drawn_from(returned.folder)
            return returned.labels, predictions.design_of(returned, origin)
        reading = predictions.ReadingOptions(record=self.table.record, links=predictions.LinkOptions())
        labels, _ = reading.read_labels(self.labels, self.entity)
        design = self.drawing.read(lambda: labels.clusters)
        return pd.Series(labels.clusters.take(labels.codes), labels.records), design

    def thresholds(self) -> Any:
        """Return the number of thresholds, the thresholds, or the column of clusters at each."""
        if "=" in self.at:
            pairs = [part.partition("=") for part in self.at.strip(",").split(",")]
            levels = read_thresholds(",".join(threshold for threshold, *_ in pairs), "--at")
            return {level: column for level, (*_, column) in zip(levels, pairs, strict=True)}
        return int(self.at) if self.at.isdecimal() else read_thresholds(self.at, "--at")


def read_thresholds(text: str, name: str) -> list[float]:
    try:
        return [float(x) for x in text.strip(",").split(",")]
    except ValueError as error:
        raise DataError(f"{name} {text}: write a number of thresholds, or thresholds 0,1,2") from error


@options.command("thresholds")
def thresholds_command(
    *,
    scored: Scored,
    asked: MetricOptions,
    minima: Minima,
    errors: AnnotatorErrors,
    by_engine: EngineOption,
    picture: Picture,
    printing: Judging,
) -> None:
    """Judge a matcher at many thresholds with one labelled sample.

    EDGES has a pair of records and a score in each row, as Splink, dedupe and Zingg write them; or a record
    in each row and a column of clusters for each threshold, such as cluster_p_0_95. Bands are simultaneous:
    they cover a metric at all thresholds at once. The first sentences name a confidence set of the threshold
    with the best F1 and, for each metric with a minimum, the loosest threshold at which it is certain.

    \b
    Examples:
      erbayes thresholds edges.csv to-label
      erbayes thresholds edges.parquet labels.csv -d uniform-records \\
          --records ids.csv --score match_weight --at 50 --min-precision 0.95 \\
          --picture curve.svg
    """
    at, kind = scored.thresholds(), by_engine.choose_kind(asked)
    given = scored.table.clusters(at) or scored.table.given() | {"at": at}
    labels, design = scored.sample()
    least = {} if minima == Minima() else minima.read()
    given |= {"metrics": list(dict.fromkeys(eb.metrics.resolve_metrics([*asked.chosen_metrics(), *least])))}

    def judge(labels: Any, design: Any, **chosen: Any) -> curves.Curve:
        return eb.thresholds(labels=labels, design=design, **given | chosen)

    with options.within(scored.drawing.in_words), options.saying_alarms() as said:
        curve = judge(labels, design, engine=by_engine.name, rng=SEED)
        if errors.annotator_errors is not None:  # thresholds of the edges are the same for all labels
            if scored.returned is None:
                raise DataError(
                    "--annotator-errors needs a folder of erbayes draw as LABELS, "
                    "which knows what annotators saw"
                )
            found = errors.run_any(
                scored, judge, labels, design, predictions.read_drawn_from(scored.returned.folder)
            )
            options.message(
                f"note: estimates allow for errors of labels: annotators {found.describe_rates()}"
            )
            curve = found.both
    alarms = [*scored.cautions, *said]
    table = curve.table(level=scored.level, kind=kind)
    sentences, named = _name_thresholds(curve, least, scored.level)
    shown = _spread_out(table, curve, named)
    if printing.chosen == "table" and len(shown) < len(curve.thresholds):
        options.message(
            f"note: {len(shown)} of {len(curve.thresholds)} thresholds are shown; --format csv has all"
        )
    sentences.append(f"Bands of {100 * scored.level:g} % cover a metric at all thresholds at once.")
    about = count_read(curve.samples[0], **count_edges(given))
    spare = [*shown][:1:-1]  # a narrow terminal has room for the first metrics
    answer = Answer(table=table, sentences=sentences, alarms=alarms, read=about, shown=shown, spare=spare)
    printing.show(answer)
    picture.save(curve, scored.level, kind)


def _name_thresholds(
    curve: curves.Curve, least: Mapping[Any, float], level: float
) -> tuple[list[str], list[float]]:
    """Return sentences about the best threshold and those that are certified, and these thresholds."""
    certified = [curve.certified(metric, value, level) for metric, value in least.items()]
    sentences, named = [*map(str, certified)], [x for one in certified if (x := one.threshold) is not None]
    if "pairwise-f1" in [metric.name for metric in curve.metrics]:
        best, number = curve.best("pairwise-f1", level)["threshold"], len(curve.thresholds)
        first, low, high = digits.write_exactly([best[0], best.min(), best.max()])
        others = f"the other {number - 1} thresholds are worse"
        if len(best) > 1:
            others = f"{len(best)} of {number} thresholds, from {low} to {high}, cannot be told from the best"
        sentences.insert(0, f"A threshold of {first} has the best estimate of pairwise-f1; {others}.")
        named.append(float(best[0]))
    return sentences, named


def _spread_out(table: pd.DataFrame, curve: curves.Curve, named: Sequence[float]) -> pd.DataFrame:
    """Return a row per threshold, some of many, the `named` among them, and a column per metric."""
    number, wide = len(curve.thresholds), {"threshold": digits.write_exactly(curve.thresholds.tolist())}
    for metric in curve.metrics:
        rows = table[table["metric"] == metric.name]
        numbers = rows[["estimate", "lower", "upper"]]
        shares = numbers.map("{:.3f}".format).mask(numbers.isna(), "–")
        text = shares if metric.support == (0, 1) else digits.shown(rows)
        band = " [" + text["lower"] + ", " + text["upper"] + "]"
        wide[metric.name] = (text["estimate"] + band.where(rows["lower"].notna(), "")).tolist()
    some = np.linspace(0, number - 1, min(number, SHOWN)).round().astype(int)
    return pd.DataFrame(wide).iloc[np.union1d(some, np.flatnonzero(np.isin(curve.thresholds, named)))]


def count_edges(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers of edges and records that were read, with the column of scores."""
    if "score" not in given:
        return {}
    return {"edges": len(given["edges"].score), "records": len(given["records"]), "score": given["score"]}


PAGE, ANNOTATOR = "label-A.html", "A"
QUESTION = "Are these two records the same person or thing?"


def write_pairs(
    inputs: predictions.PredictionOptions,
    n: int,
    seed: int,
    attributes: Path | None,
    call: dict[str, Any],
    replace: bool,
    output: Path,
) -> None:
    """Draw pairs of PREDICTION, which has edges, and write a table and a page for the annotator."""
    links, reading, table = inputs.reading.links, inputs.reading, output / TABLE
    if not links.edges:
        raise DataError("pairs belong to edges: name these by --edges, and all records by --records")
    named: dict[str, Any] = {"edges": inputs.prediction, "record": reading.record, "stored": inputs.stored}
    given = EdgeTable(records=links.records, score=links.score, **named).given()
    if output.exists() and any(file.name not in (TABLE, PAGE, PAIRS_CALL) for file in output.glob("*")):
        raise DataError(f"cannot write {output}: it holds other files: name a new folder")
    if table.exists() and not replace:
        raise DataError(f"cannot write {output}: it may hold answers; name a new folder, or --replace them")
    drawn = eb.pairs.draw_pairs(**given, n=n, seed=seed, threshold=links.threshold)
    tasks = _make_tasks(drawn)
    if attributes is not None:
        rows = read_attributes(attributes, reading.record, ids.as_index(tasks["record"].unique()))
        tasks = tasks.merge(rows.rename(columns={rows.columns[0]: "record"}), on="record", how="left")
    output.mkdir(parents=True, exist_ok=True)
    files.write_text(table, render_csv(drawn))
    page = pages.labelling_page(
        tasks, ANNOTATOR, _name_draw(drawn), title="Pairs to label", question=QUESTION, pairs=True
    )
    files.write_text(output / PAGE, page)
    files.write_text(output / PAIRS_CALL, json.dumps(call, indent=1))
    typer.echo(
        f"wrote {output}: {len(drawn):,} pairs of {drawn['band'].nunique():,} bands, to answer in {PAGE} or "
        f"in the column same of {TABLE}"
    )


def _make_tasks(drawn: pd.DataFrame) -> pd.DataFrame:
    ends = [
        pd.DataFrame({"task": range(1, len(drawn) + 1), "record": drawn[side].to_numpy(), "role": role})
        for side, role in (("left", pages.DRAWN), ("right", pages.SHOWN))
    ]
    return pd.concat(ends).sort_values("task", kind="stable", ignore_index=True)


def _name_draw(drawn: pd.DataFrame) -> str:
    """Return a text that names the drawn pairs, whatever their answers."""
    return sha256(drawn[["left", "right"]].astype(str).to_csv(index=False).encode()).hexdigest()[:16]


def _read_answers(path: Path) -> pd.DataFrame:
    """Return a table of answers; that of a folder with the answers that its page saved."""
    table = files.read_table(path / TABLE if path.is_dir() else path)
    # which were guarded when they were written
    table = table.assign(**table.filter(["left", "right"]).map(digits.unguard))
    if not path.is_dir():
        return table
    for file in sorted(file for file in path.glob("*.json") if file.name != PAIRS_CALL):
        read = pages.read_answers(file, _make_tasks(table), _name_draw(table))
        read = read[read["role"] != pages.ADDED]
        right, unknown = read["same"][1::2].to_numpy(), read["cannot_tell"][::2].to_numpy() == "x"
        saved = pd.Series(right).mask(unknown, "?")
        table["same"] = saved.where(saved != "", table["same"].fillna(""))
    open_ = table["same"].fillna("") == ""
    if open_.all():
        raise DataError(f"{path} has no answer: save those of {PAGE} there, or write them into {TABLE}")
    if open_.any():
        options.message(f"note: {open_.sum():,} of {len(table):,} pairs have no answer yet, and are left out")
    return table[~open_]


@options.panel("Pairs")
class PairOptions:
    threshold: str | None = options.option("Thresholds with commas between them; by default ends of bands.")
    of_edges: bool = options.flag(
        "Edges were drawn by bands of their score: estimate right edges, not links."
    )
    level: float = options.level_option()
    picture: Path | None = options.picture_option("File of a picture of right pairs by band to write.")


@options.command("pairs")
def pairs_command(
    *,
    table: EdgeTable,
    answers: Path = options.argument(
        "Folder of erbayes draw --design pairs, which knows its edges, or its table with answers.",
        default=None,
    ),
    asked: PairOptions,
    printing: Printing,
) -> None:
    """Judge a matcher by pairs that somebody labelled.

    ANSWERS has columns left, right, band and same: y, n, or ? if undecided. Pairs give the precision of links
    and the recall of candidate pairs at every threshold. They never show what blocking left out.

    \b
    Examples:
      erbayes draw edges.csv --edges --design pairs -n 300 --seed 1 \\
          --records ids.csv --threshold 1.5 -o pairs
      erbayes pairs pairs --threshold 1.5
    """
    at = None if asked.threshold is None else read_thresholds(asked.threshold, "--threshold")
    work = eb.pairs.scored_edges if asked.of_edges else eb.pairs.estimate
    given = table.given()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", eb.Alarm)  # which says the same in the words of Python
        judged = work(answers=_read_answers(answers), **given)
    alarms = [options.say(alarm) for alarm in judged.alarms()]
    Picture(picture=asked.picture).save(judged, asked.level)
    read = count_edges(given) | {"pairs": len(judged.same)}
    printing.show(Answer(table=judged.table(at, asked.level), alarms=alarms, read=read))
