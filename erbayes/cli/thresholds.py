"""The command `erbayes thresholds`: one matcher at many thresholds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import erbayes as eb

from .._internal.errors import DataError, Remedy
from .asked import Asked, Minima
from .designs import Drawing
from .lazily import curves, disk, np, pd, plans, returned_answers
from .lazily import reading as readings
from .options import (
    argument,
    command,
    file_option,
    message,
    option,
    panel,
    refuse_same_file,
    within,
)
from .predictions import Links, Reading, read_ids
from .printing import Format, Printing, show_cautions
from .tables import name_columns
from .top_up import read_both, read_drawn_from

SHOWN = 20
"""Thresholds of a table that a person reads, at most."""


@panel()
class EdgeTable:
    """Options of scored edges."""

    edges: Path = argument("Two records and a score per row.")
    records: Path | None = file_option("All records, some of which may be in no edge: ids, or a prediction.")
    score: str | None = option("Column of scores.")
    left: str | None = option("Column of one record.")
    right: str | None = option("Column of the other record.")
    record: str | None = option("Record column, in each file that has records.")
    stored: str | None = option("Table of a DuckDB database.", "--table", rare=True, panel="Scans")

    def given(self) -> dict[str, Any]:
        """Read what the options name, as arguments of `erbayes.thresholds` and others."""
        if self.records is None:
            raise DataError("a record without a match is in no edge: list all records by --records FILE")
        if self.edges.is_dir():
            raise DataError(f"{self.edges} is a folder: name a file of edges")
        stored = self.stored or disk.is_database(self.edges)
        table = self._read_stored() if stored else disk.read_table(self.edges)
        records = read_ids(self.records, self.record)
        links = {"edges": True, "left": self.left, "right": self.right, "score": self.score}
        named = name_columns(self.edges, links=links | {"threshold": readings.SWEEP})
        taken = readings.read_prediction(table, named, listed=records, what=f"edges {self.edges}")
        message(f"read {len(table):,} edges of {len(records):,} records ({taken.in_words()} of {self.edges})")
        edges = pd.DataFrame({"left": taken.key(0), "right": taken.key(1), "score": taken.scores()})
        return {"edges": edges, "records": records, "score": "score"}

    def _read_stored(self) -> pd.DataFrame:
        """Read a table of a database, with ids as text."""
        if self.stored is None:
            raise DataError(f"{self.edges} is a DuckDB database", Remedy.DATABASE)
        table = eb.large.DatabaseTable(self.edges, self.stored, text=True)
        found: pd.DataFrame = curves.load_edges(table, self.score)
        return found


@panel()
class Scored:
    """Options of scored edges, and of the labels that judge them."""

    table: EdgeTable
    labels: Path = argument(
        "Record and entity, for every record of each labelled entity; or a folder of erbayes draw, which "
        "knows all records."
    )
    at: str = option(
        "Number of thresholds, or thresholds with commas: 0,1.5 (one alone ends in a comma).", default="200"
    )
    drawing: Drawing
    entity: str | None = option("Entity column of LABELS.")
    level: float = option("Level of bands and sets, between 0 and 1.", default=0.95)

    def __post_init__(self) -> None:
        refuse_same_file(("EDGES", self.table.edges), ("LABELS", self.labels))

    def sample(self) -> tuple[pd.Series, eb.design.contract.Design]:
        """Read the labels, with the design by which they were drawn."""
        if self.labels.is_dir():
            returned = eb.labels.read_labels(self.labels)
            show_cautions(returned)
            if returned.of_clusters:
                raise DataError(f"{self.labels}: {returned_answers.OWN}")
            if (both := read_both(returned)) is not None:
                return both
            free = isinstance(returned.folder.drawn.plan, plans.FREE)
            origin = None if free else read_drawn_from(returned.folder)
            return returned.labels, returned.design(drawn_from=origin)
        reading = Reading(record=self.table.record, links=Links())
        labels, _ = reading.read_labels(self.labels, self.entity)
        return pd.Series(labels.clusters.take(labels.codes), labels.records), self.drawing.read()

    def thresholds(self) -> Any:
        """Return the number of thresholds, or a list of them."""
        return int(self.at) if self.at.isdecimal() else read_thresholds(self.at, "--at")


def read_thresholds(text: str, name: str) -> list[float]:
    """Return thresholds with commas between them."""
    try:
        return [float(x) for x in text.strip(",").split(",")]
    except ValueError as error:
        raise DataError(f"{name} {text}: write a number of thresholds, or thresholds 0,1,2") from error


@command("thresholds")
def thresholds_command(
    *,
    scored: Scored,
    asked: Asked,
    minima: Minima,
    picture: Path | None = option("File of a picture of the curve to write."),
    printing: Printing,
) -> None:
    """Judge a matcher at many thresholds with one labelled sample.

    EDGES has a pair of records and a score in each row, as Splink, dedupe and Zingg write them. Bands cover a
    metric at all thresholds at once. Notes name the thresholds that cannot be told from the best F1 and, for
    each metric with a minimum, the loosest threshold at which it is certain.

    \b
    Examples:
      erbayes thresholds edges.csv to-label
      erbayes thresholds edges.parquet labels.csv -d uniform-records \\
          --records ids.csv --score match_weight --at 50 --min-precision 0.95 \\
          --picture curve.svg
    """
    given, (labels, design) = scored.table.given(), scored.sample()
    least = {} if minima == Minima() else minima.read()
    metrics = list(dict.fromkeys(eb.metrics.chosen([*asked.chosen_metrics(), *least])))
    given |= {"labels": labels, "design": design}
    with within(scored.drawing.in_words):
        curve = eb.thresholds(metrics=metrics, at=scored.thresholds(), **given)
    table = curve.table(level=scored.level, kind=asked.kind)
    if printing.format is Format.TABLE and printing.output is None:
        table = _thin_out(table, curve)
    printing.show(table)
    if "pairwise-f1" in [metric.name for metric in metrics]:
        _note_best(curve, scored.level)
    for metric, value in least.items():
        message(f"note: {curve.certified(metric, value)}")
    if picture is not None:
        save_picture(curve.plot(level=scored.level), picture)


def _thin_out(table: pd.DataFrame, curve: curves.Curve) -> pd.DataFrame:
    """Return the rows of some thresholds, if there are more than a person reads."""
    number = len(curve.thresholds)
    if number <= SHOWN:
        return table
    message(f"note: {SHOWN} of {number} thresholds are shown; --format csv has all")
    some = np.linspace(0, number - 1, SHOWN).round().astype(int)
    return table[table["threshold"].isin(curve.thresholds[some])]


def _note_best(curve: curves.Curve, level: float) -> None:
    """Say which threshold has the best F1, and which others cannot be told from it."""
    best, number = curve.best("pairwise-f1", level)["threshold"], len(curve.thresholds)
    others = f"the other {number - 1} thresholds are worse"
    if len(best) > 1:
        others = (
            f"{len(best)} of {number} thresholds, from {best.min():g} to {best.max():g}, cannot be told from "
            "the best"
        )
    message(f"note: {best[0]:g} has the best estimate of pairwise-f1; {others}")


def save_picture(axes: Any, path: Path) -> None:
    """Write the figure of some axes to a file."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.savefig(path)
