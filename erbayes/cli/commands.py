"""The commands of the shell."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from hashlib import file_digest
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from ..compare import compare
from ..demo import demo
from ..design import UniformClusters, UniformRecords
from ..diagnostics import alarms
from ..domains import ByDomain, by_domain, compare_by_domain
from ..engine.closed_form import taylor
from ..files import refuse_output, replacing
from ..intervals import EqualTailed
from ..metrics import ALL, Metric
from ..planning import forecast
from ..report import report
from ..sample import Sample
from ..units import Missing
from .inputs import DesignName, Domains, One, Several, note_frame
from .options import app, command, files_of, message, refuse_output_over
from .printing import Printing

__all__ = ["app"]


MISSING = {
    Missing.SINGLETON: "each is a predicted cluster of its own",
    Missing.TOGETHER: "those of an entity are one predicted cluster",
    Missing.OMIT: "left out",
}
"""Effect of each policy on labelled records that the prediction lacks."""


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


@command("estimate")
def estimate_command(
    *,
    inputs: One,
    domains: Domains,
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

    Warnings on stderr name what makes the estimates doubtful. Exit status: 0, or 2 if the input
    cannot be used.
    """
    refuse_output_over(printing.output, inputs)
    metrics = inputs.chosen_metrics()
    sample, _ = inputs.sample()
    if sample.units.unmatched:
        message(
            f"note: {sample.units.unmatched} labelled records are not in PREDICTION; --missing "
            f"{inputs.missing.value}: {MISSING[inputs.missing]}"
        )
    if domains.by is not None:
        by = _by_domain(inputs, domains, sample, metrics)
        table = by.table(inputs.level, inputs.kind)
        for alarm in by.alarms():
            message(f"warning: {alarm}")
    else:
        table = taylor(sample, metrics).apply(metrics).table(inputs.level, inputs.kind).reset_index()
    for alarm in alarms(sample, metrics):
        message(f"warning: {alarm}")
    printing.show_estimates(table, inputs.level)


def _by_domain(inputs: One, domains: Domains, sample: Sample, metrics: Sequence[Metric]) -> ByDomain:
    """The metrics of each group that --by names."""
    groups = domains.groups(inputs, [inputs.part])
    known = domains.known(inputs, {"": inputs.part}, groups)
    return by_domain(sample, groups, metrics, prediction=known.get(""), **domains.settings)


@command("compare")
def compare_command(*, inputs: Several, domains: Domains, printing: Printing) -> None:
    """Compare predictions by the same labelled sample.

    Each row is a prediction minus one before it in the list, with a paired standard error. Predictions are
    files, tables or columns, two or more, and are called by their names. Files and designs are those of
    erbayes estimate. If one prediction is scanned, all are.

    \b
    Examples:
      erbayes compare old.csv new.csv labels.csv --design uniform-records --metrics pairwise-f1
      erbayes compare both.parquet labels.csv --design uniform-records --record id \\
          --cluster old --cluster new
    """
    refuse_output_over(printing.output, inputs)
    metrics = inputs.chosen_metrics()
    design = inputs.drawing.read()
    predictions, shared = inputs.predictions()
    comparison = compare(
        predictions, design=design, metrics=metrics, differing=inputs.framed.differing, **shared
    )
    for name, sample in zip(predictions, comparison.samples, strict=True):
        note_frame(sample.units, f"{name}: ")
        for alarm in alarms(sample, metrics):
            message(f"warning: {name}: {alarm}")
    if comparison.left_out:
        message(f"warning: {comparison.left_out} labelled records, which a prediction lacks, are left out")
    table = comparison.differences(inputs.level, inputs.kind)
    if domains.by is not None:
        groups = domains.groups(inputs, inputs.parts().values())
        known = domains.known(inputs, inputs.parts(), groups)
        by = compare_by_domain(comparison, groups, metrics, predictions=known, **domains.settings)
        table = by.table(inputs.level, inputs.kind)
    printing.show_estimates(table, inputs.level)


def _identity(path: Path) -> str:
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
    domains: Domains,
    title: Annotated[str, typer.Option(help="Title of the page.")] = "How good is this entity resolution?",
    output: Annotated[
        Path, typer.Option(help="File to write. An old one is replaced once the page is complete.")
    ] = Path("report.html"),
) -> None:
    """Write one HTML page about PREDICTION: two sentences to quote, estimates, pictures, warnings.

    The page needs no network and runs nothing. It names the files with their SHA-256, the versions and
    this call. Files and designs are those of erbayes estimate. Needs the extra plots:
    pip install 'erbayes[plots]'

    \b
    Example:
      erbayes report clusters.csv labels.csv --design uniform-records \\
          --metrics pairwise-precision,pairwise-recall --output report.html
    """
    refuse_output_over(output, inputs)
    metrics = inputs.chosen_metrics()
    sample, read = inputs.sample()
    names = {"prediction": "PREDICTION", "labels": "LABELS"}
    about = {names.get(name, name): _identity(path) for name, path in files_of(inputs)} | {"read": read}
    if sample.units.unmatched:
        about["--missing"] = f"{inputs.missing.value}: {MISSING[inputs.missing]}"
    page = report(
        sample if domains.by is None else _by_domain(inputs, domains, sample, metrics),
        metrics,
        level=inputs.level,
        kinds=(inputs.kind, EqualTailed()),
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
    half_width: Annotated[float, typer.Option(help="Half the width that the interval should have: 0.03.")],
    per_unit: Annotated[float, typer.Option(help="Cost of labelling a unit, whatever its size.")] = 0.0,
    per_record: Annotated[float, typer.Option(help="Cost of each record of a unit, beside that.")] = 1.0,
    printing: Printing,
) -> None:
    """Plan how many units to label for intervals of a certain width, from a pilot.

    LABELS is the pilot, drawn by --design. The plan is for uniform draws of records and of units, with
    replacement. n is the number of draws, which a small pilot leaves uncertain; n_low and n_high are its
    bounds. The cost is the expected one. A unit that is drawn twice is labelled once.

    \b
    Example: a unit takes four minutes, and each of its records half a minute more
      erbayes plan clusters.csv pilot.csv --design uniform-records --half-width 0.03 \\
          --per-unit 4 --per-record 0.5
    """
    refuse_output_over(printing.output, inputs)
    metrics = inputs.chosen_metrics()
    pilot, _ = inputs.sample()
    planned: dict[str, UniformRecords | UniformClusters] = {
        DesignName.UNIFORM_RECORDS.value: UniformRecords(),
        DesignName.UNIFORM_CLUSTERS.value: UniformClusters(),
    }
    for alarm in alarms(pilot, metrics):
        message(f"warning: {alarm}")
    plan = forecast(pilot, metrics, planned, kind=inputs.kind, cost=lambda size: per_unit + per_record * size)
    table = plan.needed(half_width, inputs.level)
    printing.show(table.astype(object).where(table.notna(), None))


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
