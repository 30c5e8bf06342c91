"""Pairs in the shell: `erbayes draw --design pairs`, and the command `erbayes pairs`."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import fields
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import erbayes as eb

from .._internal.errors import DataError, Sentence
from .answers import Answer, render_csv
from .drawing import Planned, Shown
from .lazily import cells, files, ids, pages, pd, stopping
from .options import (
    argument,
    command,
    flag,
    level_option,
    message,
    name_options,
    option,
    panel,
    picture_option,
    say,
)
from .predictions import PredictionOptions
from .printing import Printing, save_picture
from .remembered import PAIRS_CALL, TABLE, remembered
from .tables import read_attributes
from .thresholds import EdgeTable, count_edges, read_thresholds

if TYPE_CHECKING:
    from .inputs import One


PAGE, ANNOTATOR = "label-A.html", "A"
type Alarms = list[Sentence]
QUESTION = "Are these two records the same person or thing?"


def write_pairs(
    inputs: PredictionOptions, planned: Planned, shown: Shown, replace: bool, output: Path
) -> None:
    """Draw pairs of PREDICTION, which has edges, and write a table and a page for the annotator."""
    links, reading = inputs.reading.links, inputs.reading
    named = [o.name for one in (shown, planned) for o in fields(one) if getattr(one, o.name) != o.default]
    named += ["cluster"] if inputs.cluster else []
    if others := [name for name in named if name not in ("attributes", "design", "n", "seed")]:
        raise DataError(f"--design pairs does not take {name_options(others)}")
    given, table = _read_edges(inputs), output / TABLE
    if output.exists() and any(file.name not in (TABLE, PAGE, PAIRS_CALL) for file in output.glob("*")):
        raise DataError(f"cannot write {output}: it holds other files: name a new folder")
    if table.exists() and not replace:
        raise DataError(f"cannot write {output}: it may hold answers; name a new folder, or --replace them")
    drawn = eb.pairs.draw_pairs(**given, n=planned.n, seed=planned.seed, threshold=links.threshold)
    tasks = _make_tasks(drawn)
    if shown.attributes is not None:
        rows = read_attributes(shown.attributes, reading.record, ids.as_index(tasks["record"].unique()))
        tasks = tasks.merge(rows.rename(columns={rows.columns[0]: "record"}), on="record", how="left")
    output.mkdir(parents=True, exist_ok=True)
    files.write_text(table, render_csv(drawn))
    page = pages.labelling_page(
        tasks, ANNOTATOR, _name_draw(drawn), title="Pairs to label", question=QUESTION, pairs=True
    )
    files.write_text(output / PAGE, page)
    call = remembered({k: v for one in (inputs, reading, links, shown) for k, v in vars(one).items()}, output)
    files.write_text(output / PAIRS_CALL, json.dumps(call, indent=1))
    counts = f"{len(drawn):,} pairs of {drawn['band'].nunique():,} bands"
    typer.echo(f"wrote {output}: {counts}, to answer in {PAGE} or in the column same of {TABLE}")


def _read_edges(inputs: PredictionOptions) -> dict[str, Any]:
    """Read PREDICTION as edges, as arguments of `erbayes.pairs.draw_pairs` and others."""
    links = inputs.reading.links
    if not links.edges:
        raise DataError("pairs belong to edges: name these by --edges, and all records by --records")
    named = {name: getattr(links, name) for name in ("records", "score", "left", "right")}
    named |= {"edges": inputs.prediction, "record": inputs.reading.record, "stored": inputs.stored}
    return EdgeTable(**named).given()


def has_pairs(inputs: One) -> bool:
    """Return whether LABELS has answers about pairs, and not the entities of records."""
    path = inputs.labels
    if path.is_dir():
        return (path / TABLE).is_file()
    return inputs.reading.links.edges and {"band", "same"} <= set(files.read_table(path).columns)


def check_pairs(inputs: One, minimum: Mapping[Any, float]) -> tuple[stopping.Check, Alarms, dict[str, Any]]:
    """Check the precision of links at a threshold by labelled pairs, with alarms and counts."""
    named = [*inputs.drawing.given, *(["design"] if inputs.drawing.design else [])]
    named += [o for o in ("cluster", "drawn_from", "entity") if getattr(inputs, o)]
    if named:
        raise DataError(f"{inputs.labels} has pairs, which take no {name_options(named[:1])}: leave it out")
    at = inputs.reading.links.threshold
    if at is None or list(minimum) != [eb.metrics.pairwise_precision.name]:
        raise DataError("pairs tell precision of links at a threshold: give --min-precision and --threshold")
    given = _read_edges(inputs)
    judged, alarms = _judge(eb.pairs.estimate, inputs.labels, given)
    (least,) = minimum.values()
    return judged.check(at, least, inputs.level), alarms, count_edges(given) | {"pairs": len(judged.same)}


def _judge(work: Any, answers: Path, given: dict[str, Any]) -> tuple[Any, Alarms]:
    """Return the result of a function of `erbayes.pairs`, and its alarms, which are printed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", eb.Alarm)  # which says the same in the words of Python
        judged = work(answers=_read_answers(answers), **given)
    return judged, [say(alarm) for alarm in judged.alarms()]


def _make_tasks(drawn: pd.DataFrame) -> pd.DataFrame:
    """Return a task of two rows for each pair."""
    ends = [
        pd.DataFrame({"task": range(1, len(drawn) + 1), "record": drawn[side].to_numpy(), "role": role})
        for side, role in (("left", pages.DRAWN), ("right", pages.SHOWN))
    ]
    return pd.concat(ends).sort_values("task", kind="stable", ignore_index=True)


def _name_draw(drawn: pd.DataFrame) -> str:
    """Return a text that names the drawn pairs, whatever their answers."""
    text = drawn[["left", "right"]].astype(str).to_csv(index=False)
    return sha256(text.encode()).hexdigest()[:16]


def _read_answers(path: Path) -> pd.DataFrame:
    """Return a table of answers; that of a folder with the answers that its page saved."""
    table = files.read_table(path / TABLE if path.is_dir() else path)
    # which were guarded when they were written
    table = table.assign(**table.filter(["left", "right"]).map(cells.unguard))
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
        message(f"note: {open_.sum():,} of {len(table):,} pairs have no answer yet, and are left out")
    return table[~open_]


@panel("Pairs")
class PairOptions:
    """Options of estimates from labelled pairs."""

    threshold: str | None = option("Thresholds with commas between them; by default ends of bands.")
    of_edges: bool = flag("Edges were drawn by bands of their score: estimate right edges, not links.")
    level: float = level_option()
    picture: Path | None = picture_option("File of a picture of right pairs by band to write.")


@command("pairs")
def pairs_command(
    *,
    table: EdgeTable,
    answers: Path = argument(
        "Folder of erbayes draw --design pairs, which knows its edges, or its table with answers.",
        default=None,
    ),
    asked: PairOptions,
    printing: Printing,
) -> None:
    """Judge a matcher by pairs that somebody labelled.

    ANSWERS has columns left, right, band and same: y, n, or ? if undecided. Pairs give the precision of links
    and the recall of candidate pairs at every threshold. They never show what blocking left out. As a gate
    for precision, erbayes check takes them too.

    \b
    Examples:
      erbayes draw edges.csv --edges --design pairs -n 300 --seed 1 \\
          --records ids.csv --threshold 1.5 -o pairs
      erbayes pairs pairs --threshold 1.5
    """
    at = None if asked.threshold is None else read_thresholds(asked.threshold, "--threshold")
    work = eb.pairs.scored_edges if asked.of_edges else eb.pairs.estimate
    given = table.given()
    judged, alarms = _judge(work, answers, given)
    if asked.picture is not None:
        save_picture(judged, asked.picture, asked.level)
    read = count_edges(given) | {"pairs": len(judged.same)}
    printing.show(Answer(table=judged.table(at, asked.level), alarms=alarms, read=read))
