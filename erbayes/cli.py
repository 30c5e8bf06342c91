"""The command line: `erbayes estimate PREDICTION LABELS --design uniform-records`."""

from __future__ import annotations

import json
from enum import Enum
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from .clustering import DataError, some
from .design import Design, UniformClusters, UniformRecords
from .diagnostics import alarms
from .metrics import METRICS
from .sample import Sample
from .taylor import taylor
from .units import Missing, measure

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


class DesignName(Enum):
    """Designs that need no further input."""

    UNIFORM_RECORDS = "uniform-records"
    UNIFORM_CLUSTERS = "uniform-clusters"


class Format(Enum):
    """How the estimates are printed."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    HTML = "html"


DESIGNS: dict[DesignName, Design] = {
    DesignName.UNIFORM_RECORDS: UniformRecords(),
    DesignName.UNIFORM_CLUSTERS: UniformClusters(),
}


def _read(path: Path, columns: tuple[str | None, str | None]) -> pd.DataFrame:
    """Record and cluster column of a CSV (ids as text) or Parquet file; by default the first two."""
    if path.suffix.lower() in {".parquet", ".pq"}:
        frame = pd.read_parquet(path)
    else:
        frame = pd.read_csv(path, dtype=str, keep_default_na=False, na_values=[""])
    if frame.shape[1] < 2:
        raise DataError(f"{path}: a table needs a record and a cluster column")
    names = [own or frame.columns[i] for i, own in enumerate(columns)]
    lacking = [n for n in names if n not in frame.columns]
    if lacking:
        raise DataError(f"{path} has no column {some(lacking)}; it has {some(frame.columns, 20)}")
    return frame[names]


@app.callback()
def main() -> None:
    """How good is my entity resolution? Estimates for the whole database from a labelled sample."""


@app.command("estimate")
def estimate_command(
    prediction: Annotated[Path, typer.Argument(exists=True, help="CSV or Parquet: record, cluster")],
    labels: Annotated[Path, typer.Argument(exists=True, help="CSV or Parquet: record, entity")],
    design: Annotated[DesignName, typer.Option(help="How the labelled entities were found")],
    record: Annotated[str | None, typer.Option(help="Record column of both files")] = None,
    cluster: Annotated[str | None, typer.Option(help="Cluster column of PREDICTION")] = None,
    entity: Annotated[str | None, typer.Option(help="Entity column of LABELS")] = None,
    missing: Annotated[Missing, typer.Option(help="Labelled records that PREDICTION lacks")] = Missing.ERROR,
    metrics: Annotated[str | None, typer.Option(help="Comma-separated; by default all")] = None,
    level: Annotated[float, typer.Option(help="Level of the intervals")] = 0.95,
    format: Annotated[Format, typer.Option(help="Output")] = Format.TABLE,
) -> None:
    """Estimate metrics of PREDICTION from LABELS, the complete entities of a sample.

    Example: erbayes estimate clusters.csv labels.csv --design uniform-records
    --metrics pairwise-precision,pairwise-recall
    """
    try:
        known = {m.name: m for m in METRICS}
        wanted = metrics.split(",") if metrics else list(known)
        unknown = [w for w in wanted if w not in known]
        if unknown:
            raise DataError(f"no metric {some(unknown)}; there are {', '.join(known)}")
        chosen = [known[w] for w in wanted]
        predicted, labelled = _read(prediction, (record, cluster)), _read(labels, (record, entity))
        sample = Sample(measure(predicted, labelled, missing=missing), DESIGNS[design])
        table = taylor(sample, chosen).apply(chosen).table(level).reset_index()
        for alarm in alarms(sample, chosen):
            typer.echo(f"warning: {alarm}", err=True)
    except DataError as error:
        typer.echo(f"erbayes: {error}", err=True)
        raise typer.Exit(2) from error
    table.insert(1, "method", "taylor")
    if format is Format.JSON:
        rows = table.astype(object).where(table.notna(), None).to_dict("records")
        typer.echo(json.dumps(rows, indent=1))
    elif format is Format.CSV:
        typer.echo(table.to_csv(index=False), nl=False)
    elif format is Format.HTML:
        typer.echo(table.to_html(index=False))
    else:
        shown = table.drop(columns=["method", "level"])
        typer.echo(shown.to_string(index=False, float_format="{:.4f}".format))
