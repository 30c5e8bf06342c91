"""Files as the shell names them, with what is said of their columns, and calls that folders remember."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from .._internal.errors import DataError, head
from .lazily import arrays, column_roles, files, folders, pd, plans, readings

if TYPE_CHECKING:
    from ..units.reading import Named

SAID = re.compile(r"(:(?P<columns>.+?))?(@(?P<threshold>[-+\d.eE]+))?", re.DOTALL)
"""What stands behind a file (columns, and the least score of a link)."""


class File(Path):
    """A path with what is said of the columns of its table.

    `said`: names of columns in the order that its kind of table has; `threshold`: the least score of a link;
    `hints`: names of columns of another table of the same matcher; `options`: those of a folder's draw.
    """

    said: tuple[str, ...] = ()
    threshold: float | None = None
    hints: dict[str, Any] = {}  # noqa: RUF012  it is replaced, and never changed
    options: dict[str, Any] = {}  # noqa: RUF012

    @classmethod
    def of(cls, path: str, words: str) -> File:
        """Return a path with what words say of its columns, such as :left,right,score@14.7."""
        file, match = cls(path), SAID.fullmatch(words)
        if match is None:
            raise DataError(f"{words!r} behind {path!r} is not :COLUMNS, @THRESHOLD or both")
        try:
            file.said = tuple(next(csv.reader([match["columns"]]))) if match["columns"] else ()
            file.threshold = float(match["threshold"]) if match["threshold"] else None
        except (ValueError, csv.Error) as error:
            raise DataError(f"{words!r} behind {path!r} is not read: {error}") from error
        return file

    @classmethod
    def parse(cls, text: str) -> File:
        """Return a file or folder that exists, with what the text says of its columns."""
        if (file := cls(text)).exists():
            return file
        for start in (i for i, letter in enumerate(text) if letter in ":@"):
            if start and cls(text[:start]).exists() and SAID.fullmatch(text[start:]):
                try:
                    return cls.of(text[:start], text[start:])
                except DataError as error:
                    raise typer.BadParameter(error.what) from error
        raise typer.BadParameter(f"Path {text!r} does not exist.")

    def in_words(self) -> str:
        """Return what is said of the columns, as `of` reads it."""
        line = StringIO()
        csv.writer(line, lineterminator="").writerow(self.said)
        columns = f":{line.getvalue()}" if self.said else ""
        return columns if self.threshold is None else f"{columns}@{self.threshold!r}"

    @classmethod
    def parse_file(cls, text: str) -> File:
        """Return a file, as `parse` does, and refuse a folder."""
        file = cls.parse(text)
        if file.is_dir():
            raise typer.BadParameter(f"File {text!r} is a directory.")
        return file

    @classmethod
    def read(cls, path: Path) -> File:
        """Return a path of any class as one of this."""
        return path if isinstance(path, cls) else cls(path)


def said_of(path: Path, most: int) -> tuple[str, ...]:
    """Return the columns that are named behind a file, and refuse more of them, or a threshold."""
    file = File.read(path)
    if len(file.said) > most or file.threshold is not None:
        needed = f"{most} column{'s' if most > 1 else ''}" if most else "nothing"
        raise DataError(f"{path} takes {needed} behind its name, not {file.in_words()}")
    return file.said


def read_attributes(
    path: Path, record: str | None, records: pd.Index | None = None, known: pd.Index | None = None
) -> pd.DataFrame:
    """Read the rows of these records, or of all; a column may be named behind the file.

    `known`: records of another file, by which their column is found; by default `records`.
    """
    said = said_of(path, 1)
    known = records if known is None else known

    def choose(frame: pd.DataFrame) -> Any:
        arrays.refuse_names(said, list(frame.columns), str(path))
        named = said[0] if said else record if record in frame.columns else None
        near = None if known is None or not len(known) else readings.Near({known.name: known.astype("str")})
        return column_roles.find_record(frame, near, f"attributes {path}", named)

    return files.read_rows(path, choose, records)


def name_columns(
    path: Path, *, record: Any = None, cluster: Any = None, links: Mapping[str, Any] | None = None
) -> Named:
    """Return what a path, options, and `links` of --edges say of the columns of a prediction."""
    file = File.read(path)
    given = file.options | {
        name: value for name, value in (links or {}).items() if value not in (None, False)
    }
    record, cluster, said = record or given.get("record"), cluster or given.get("cluster"), file.said
    if len(said) > 3:
        raise DataError(f"{path} takes three columns behind its name at most, not {head(said, 20)}")
    named = {"threshold": given.get("threshold"), "cluster": cluster, "score": given.get("score")}
    behind = {"threshold": file.threshold, "cluster": said or None, "score": said[2:] or None}
    if both := [name for name in named if None not in (named[name], behind[name])]:
        raise DataError(f"{path}: --{both[0]} and what stands behind the file both name it: leave out one")
    threshold = given.get("threshold") if file.threshold is None else file.threshold
    ids = [name.rpartition("+") for name in said]
    sources, columns = tuple(source for source, _, _ in ids if source), [column for _, _, column in ids]
    if not (given.get("edges") or len(said) == 3 or file.threshold is not None):
        if columns:
            record, cluster = (columns[0], columns[1]) if len(columns) == 2 else (record, columns[0])
        known = {"record": record, "cluster": cluster, "score": given.get("score")}
        return readings.Named(sources=sources, threshold=threshold, **known)
    if cluster is not None:
        raise DataError(f"{path} has links, which have no --cluster: leave it out")
    if len(columns) == 1:
        raise DataError(f"{path}: a link has two records: name the columns of both, as in {path}:LEFT,RIGHT")
    score, _, word = columns[2].partition("=") if len(columns) == 3 else (given.get("score"), "", "")
    known = {"word": word} if word else {"threshold": threshold}
    return readings.Named(ends=tuple(columns[:2]), sources=sources, score=score, links=True, **known)


NAMES = "record cluster edges score threshold".split()
"""Options of draw that say what columns of the prediction mean."""
READING = [*NAMES, "stored", "records", "alone", "strip", "any_id"]
"""Options of draw that say how the prediction is read."""
SHOWN = "attributes show candidates looser search limit controls values".split()
"""Options of draw that say what tasks show, for more draws of the same kind."""
STORED = ["prediction", *READING, *SHOWN, "top_up"]
"""Options of draw that say what was drawn from, how it is read, and what was shown."""
FILES = {"prediction", "records", "attributes", "candidates", "looser", "values", "top_up"}
"""Those that name files."""
COLUMNS = " columns"
"""The end of the name under which a folder stores what was said of the columns of a file."""
LONGEST = 4000
"""Characters of the longest value of an option, as no path is longer."""
CALL, TABLE, PAIRS_CALL = "call", "pairs.csv", "call.json"
"""The call that drew a folder among its facts; the table of a folder of pairs, and the file of its call."""
ARGUMENTS = (("prediction", "labels"), ("edges", "answers"), ("edges", "labels"))
"""The arguments of commands that read a folder, which may be named alone."""


def remembered(values: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return what a folder stores of the options that drew it; paths are relative to its parent."""
    here = folder.resolve().parent
    stored = {name: values[name] for name in STORED if values.get(name) not in (None, False)}
    # what was written behind the file, as one text
    said = [(name, value.in_words()) for name, value in stored.items() if isinstance(value, File)]
    stored |= {f"{name}{COLUMNS}": words for name, words in said if words}
    return {k: os.path.relpath(v.resolve(), here) if isinstance(v, Path) else v for k, v in stored.items()}


class Call(NamedTuple):
    """The options of the call that drew a folder; none if Python wrote the folder."""

    folder: Path
    options: Mapping[str, Any]

    @classmethod
    def of(cls, folder: Path) -> Call:
        """Return the call that drew a folder, and refuse values that draw never writes."""
        if (folder / TABLE).is_file():
            path = folder / PAIRS_CALL
            options = files.read_json(path, str(path)) if path.is_file() else {}
        else:
            path, stored = folder / folders.FACTS, folders.read_facts(folder).get(CALL)
            options = stored if isinstance(stored, dict) else {}
        if options and "prediction" not in options:
            raise DataError(f"{path}: {CALL!r} does not name the prediction")
        for name, value in options.items():
            if not isinstance(value, str | float | int) or len(text := str(value)) > LONGEST or "\0" in text:
                raise DataError(f"{path}: {CALL!r} has a {name!r} that draw never writes")
        return cls(folder, options)

    def take(self, name: str) -> Any:
        """Return the value of an option: if it names one, a file as seen from where the shell is."""
        if name not in FILES:
            return self.options[name]
        path = self.folder.resolve().parent / str(self.options[name])
        return File.of(os.path.relpath(path), str(self.options.get(f"{name}{COLUMNS}") or ""))


def recall(values: dict[str, Any]) -> dict[str, Any]:
    """Fill in what a folder stores of the call that drew it, where options do not say otherwise.

    A prediction that is not named is the one drawn from. Options that say what its columns mean go with its
    file, so that they do not hold for others.
    """
    if values.get("more") is not None:
        return _recall_draw(values)
    first, last = next((both for both in ARGUMENTS if {*both} <= values.keys()), ("", ""))
    if not first:
        return values
    several = not isinstance(values[first], Path)
    listed = (values[first] or []) if several else [values[first]]
    paths: list[Any] = [path for path in (*listed, values[last]) if path is not None]
    # only folders need the room of labels, whose modules take a third of the time of a short command
    drawn = [x for x in paths if x.is_dir() and any((x / name).is_file() for name in (folders.FACTS, TABLE))]
    # LABELS are a folder wherever it is in the list, or the last; what is named alone says what is missing
    labels = drawn[0] if len(drawn) == 1 else next(iter(paths[-1:]), None)
    given = [path for path in paths if path is not labels]
    values = values | {last: labels, first: given if several else next(iter(given), labels)}
    call = None if labels is None or not labels.is_dir() else Call.of(labels)
    if call is not None and call.options:
        return values | _recall_labelled(values, first, given, call)
    if given:
        return values
    if call is not None:
        raise DataError(f"{labels} does not say what was drawn from: name {first.upper()} before it")
    raise DataError(
        f"{last.upper()} are missing: name them after {labels}, or name a folder of erbayes draw; to begin, "
        f"label a pilot of about 50 draws: erbayes draw {labels} -n 50 --seed 1 --output to-label"
    )


def _recall_labelled(values: dict[str, Any], first: str, given: list[File], call: Call) -> dict[str, Any]:
    """Return what a folder of labels fills in of options, of which `first` names predictions or edges."""
    several = isinstance(values[first], list)
    origin, options = call.take("prediction"), call.options
    own = [path for path in given if path.exists() and origin.exists() and path.samefile(origin)]
    hints = name_columns(origin, record=options.get("record"), cluster=options.get("cluster"))
    for path in given:
        path.hints = {"record": hints.record, "cluster": hints.cluster}
    for path in (origin, *own):
        # words behind the file replace what was said of its columns before
        anew = path.in_words() and path is not origin
        path.options = {} if anew else {name: options[name] for name in NAMES if name in options}
    columns = several and any(len(values[name] or []) > 1 for name in ("cluster", "stored"))
    named = len(given) > 1 or columns if several else bool(given)
    names, recalled = {"records", "alone", "strip", "any_id"}, dict[str, Any]()
    if first == "edges":
        names |= {"record"} if not own and given else {*READING} - {"threshold"}
        if not {"records", "edges"} & options.keys() and values["records"] is None and origin.is_file():
            recalled["records"] = origin
    elif named and not own:
        # chances may depend on what was drawn from, if others are judged
        if values["drawn_from"] is None and "stored" not in options and origin.exists():
            plan = folders.read_folder(call.folder).drawn.plan
            free = isinstance(plan, (*plans.FREE, plans.PredictedClusters))
            recalled |= {} if free else {"drawn_from": origin}
    else:
        names |= {"record", "stored"}
        recalled |= _recall_attributes(values, call)
    if not named and not origin.exists():
        raise DataError(
            f"{origin}, from which {call.folder} was drawn, is not there: "
            f"name {first.upper()} before {call.folder}"
        )
    if not named:
        recalled[first] = [origin, *given] if several else origin
    for name in names & options.keys() & values.keys():
        if values[name] in (None, False, []):
            recalled[name] = [call.take(name)] if several and name == "stored" else call.take(name)
    return recalled


def _recall_attributes(values: Mapping[str, Any], call: Call) -> dict[str, Path]:
    """Return the attributes that the folder shows, if an option names one of their columns."""
    features = [text.partition("=")[2] for text in values.get("feature") or []]
    columns = [name for name in (values.get("by"), values.get("across"), *features) if name]
    if "attributes" not in call.options or values.get("attributes") or not columns:
        return {}
    path, known = call.take("attributes"), list[str]()
    if path.exists():  # of a Parquet file no row is read for this
        known = [*read_attributes(path, call.options.get("record"), pd.Index([], dtype=str))]
    return {"attributes": path} if any(name.partition(":")[0] in known for name in columns) else {}


def _recall_draw(values: dict[str, Any]) -> dict[str, Any]:
    """Fill in what a folder that is to get more draws remembers of the options that drew it."""
    folder, usual = values["prediction"], {"annotators": 1, "overlap": 0.2}
    given = {k: v for k, v in values.items() if v is not None and v is not False}
    if given.keys() - {"prediction", "more", "format", *usual} or not usual.items() <= given.items():
        raise DataError(f"--more takes {folder} and no option but --format: it remembers how it was drawn")
    if (folder / TABLE).is_file():
        raise DataError(f"--more: {folder} has pairs of bands, of which more draws are another sample")
    call = Call.of(folder)
    if not call.options:
        raise DataError(f"{folder} does not say what was drawn from: draw the larger number anew")
    recalled = {name: call.take(name) for name in call.options if not name.endswith(COLUMNS)}
    if gone := [str(path) for path in recalled.values() if isinstance(path, Path) and not path.exists()]:
        raise DataError(f"{head(gone)}, from which {folder} was drawn, is not there: put it back")
    return values | recalled | {"folder": folder}
