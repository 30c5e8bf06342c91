"""What a folder remembers of the call that drew it, so that later commands need the folder alone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .._internal.errors import DataError, head
from .lazily import folders, outside_json, pd, plans
from .tables import File, name_columns, read_attributes

if TYPE_CHECKING:
    from ..units.facts import Named

NAMES = "record cluster edges left right score threshold".split()
"""Options of draw that say what columns of the prediction mean."""
READING = [*NAMES, "stored", "records", "any_id"]
"""Options of draw that say how the prediction is read."""
SHOWN = "attributes candidates looser search limit controls values".split()
"""Options of draw that say what tasks show, for more draws of the same kind."""
STORED = ["prediction", *READING, *SHOWN, "top_up"]
"""Options of draw that say what was drawn from, how it is read, and what was shown."""
FILES = {"prediction", "records", "attributes", "candidates", "looser", "values", "top_up"}
"""Those that name files."""
COLUMNS = " columns"
"""The end of the name under which a folder stores what was said of the columns of a file."""
LONGEST = 4000
"""Characters of the longest value of an option, as no path is longer."""
CALL = "call"
"""Their name in the facts of a folder."""
TABLE, PAIRS_CALL = "pairs.csv", "call.json"
"""The table of a folder of pairs, and what it remembers of the call that drew it."""


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

    def take(self, name: str) -> Any:
        """Return the value of an option, a file if it names one."""
        return self.file(name) if name in FILES else self.options[name]

    def file(self, name: str) -> File:
        """Return the file of an option, as seen from where the shell is, with what is said of its columns."""
        path = self.folder.resolve().parent / str(self.options[name])
        return File.of(os.path.relpath(path), str(self.options.get(f"{name}{COLUMNS}") or ""))


def take_call(folder: folders.Folder) -> Call:
    """Return the call that drew a folder."""
    call = folder.facts.get(CALL)
    return _need_plain(folder.path, call if isinstance(call, dict) else {}, folders.FACTS)


def _take_pairs_call(folder: Path) -> Call:
    """Return the call that drew a folder of pairs."""
    path = folder / PAIRS_CALL
    options = outside_json.read_object(path, str(path)) if path.is_file() else {}
    return _need_plain(folder, options, PAIRS_CALL)


def _need_plain(folder: Path, options: Mapping[str, Any], file: str) -> Call:
    """Return the options of a call that a file of a folder has, and refuse values that draw never writes."""
    if options and "prediction" not in options:
        raise DataError(f"{folder / file}: {CALL!r} does not name the prediction")
    for name, value in options.items():
        if not isinstance(value, str | float | int) or len(text := str(value)) > LONGEST or "\0" in text:
            raise DataError(f"{folder / file}: {CALL!r} has a {name!r} that draw never writes")
    return Call(folder, options)


def _are_one(first: Path, second: Path) -> bool:
    """Return whether two paths lead to one file."""
    return first.exists() and second.exists() and first.samefile(second)


def recall(values: dict[str, Any]) -> dict[str, Any]:
    """Fill in what a folder remembers: the prediction if none is named, and how that is read."""
    if values.get("more") is not None:
        return _recall_draw(values)
    if "answers" in values:
        return _recall_pairs(values)
    if isinstance(values.get("edges"), Path) and "labels" in values:
        return _recall_records(values, values["labels"])
    return _recall_prediction(values) if {"prediction", "labels"} <= set(values) else values


def _recall_prediction(values: dict[str, Any]) -> dict[str, Any]:
    """Fill in the prediction, or one of several, from which a folder was drawn, and how it is read."""
    several = not isinstance(values["prediction"], Path)
    given, labels = _find_labels(values)
    values = values | {"labels": labels, "prediction": given if several else next(iter(given), labels)}
    call = _read_call(labels, bool(given))
    if call is None or labels is None:
        return values
    drawn_from, options = call.file("prediction"), call.options
    columns = any(len(values[name] or []) > 1 for name in ("cluster", "stored"))
    named = len(given) > 1 or columns if several else bool(given)
    hints = name_columns(drawn_from, record=options.get("record"), cluster=options.get("cluster"))
    hinted = [_hint(path, hints) for path in given]
    for path in (drawn_from, *given):
        # words behind the file replace what was said of its columns before
        if isinstance(path, File) and _are_one(path, drawn_from):
            anew = path.in_words() and path is not drawn_from
            path.options = {} if anew else {name: options[name] for name in NAMES if name in options}
    if named and not any(_are_one(path, drawn_from) for path in given):
        return values | {"prediction": hinted if several else hinted[0]} | _recall_origin(values, call)
    if not drawn_from.exists():
        raise DataError(
            f"{drawn_from}, from which {labels} was drawn, is not there: name PREDICTION before {labels}"
        )
    recalled = values | _recall_attributes(values, call)
    if not named:
        recalled["prediction"] = [drawn_from, *hinted] if several else drawn_from
    for name in READING:
        # names of columns travel with the file, but that of records serves other files too
        if name in NAMES and name != "record" and not (labels / TABLE).is_file():
            continue
        if name in options and recalled.get(name) in (None, False, []):
            recalled[name] = [call.take(name)] if several and name == "stored" else call.take(name)
    return recalled


def _recall_origin(values: Mapping[str, Any], call: Call) -> dict[str, Any]:
    """Fill in what was drawn from, if chances depend on it and others are judged, and how links are read."""
    names = [n for n in ("records", "any_id") if n in call.options and values.get(n) in (None, False)]
    recalled, drawn_from = {name: call.take(name) for name in names}, call.file("prediction")
    if values.get("drawn_from") is None and "stored" not in call.options and drawn_from.exists():
        plan = folders.read_folder(call.folder).drawn.plan
        if not isinstance(plan, (*plans.FREE, plans.PredictedClusters)):
            drawn_from.options = {name: call.options[name] for name in NAMES if name in call.options}
            recalled["drawn_from"] = drawn_from
    return recalled


def _find_labels(values: Mapping[str, Any]) -> tuple[list[Path], Path | None]:
    """Return the predictions that are named, and LABELS: a folder wherever it is in the list, or the last."""
    named = values["prediction"]
    paths = [*([named] if isinstance(named, Path) else named or []), values["labels"]]
    paths = [path for path in paths if path is not None]
    folders_of_answers = [p for p in paths if any((p / name).is_file() for name in (folders.FACTS, TABLE))]
    if len(folders_of_answers) == 1:
        return [path for path in paths if path is not folders_of_answers[0]], folders_of_answers[0]
    # what is named alone is LABELS, which say what is missing
    return paths[:-1], paths[-1] if paths else None


def _read_call(labels: Path | None, given: bool) -> Call | None:
    """Read the call that drew a folder, None if LABELS has none and the predictions are `given`."""
    missing = (
        f"LABELS are missing: name them after {labels}, or name a folder of erbayes draw; to begin, label a "
        f"pilot of about 50 draws: erbayes draw {labels} --design uniform-records -n 50 --seed 1 "
        "--output to-label"
    )
    if labels is not None and labels.is_dir():
        pairs = (labels / TABLE).is_file()
        call = _take_pairs_call(labels) if pairs else take_call(folders.read_folder(labels))
        if call.options:
            return Call(labels, {**call.options, "edges": True}) if pairs else call
        if not pairs:
            missing = f"{labels} does not say what was drawn from: name PREDICTION before it"
    if given:
        return None
    raise DataError(missing)


def _hint(path: Path, columns: Named) -> Path:
    """Return the path of another prediction, with the names of columns of the one drawn from."""
    if isinstance(path, File):
        path.hints = {"record": columns.record, "cluster": columns.cluster}
    return path


def _recall_attributes(values: Mapping[str, Any], call: Call) -> dict[str, Path]:
    """Return the attributes that the folder shows, if an option names one of their columns."""
    features = [text.partition("=")[2] for text in values.get("feature") or []]
    columns = [name for name in (values.get("by"), values.get("across"), *features) if name]
    if "attributes" not in call.options or values.get("attributes") or not columns:
        return {}
    path, known = call.file("attributes"), list[str]()
    if path.exists():  # of a Parquet file no row is read for this
        known = [*read_attributes(path, call.options.get("record"), pd.Index([], dtype=str))]
    return {"attributes": path} if any(name.partition(":")[0] in known for name in columns) else {}


def _recall_records(values: dict[str, Any], labels: Path) -> dict[str, Any]:
    """Fill in the file of all records of scored edges: that from which a folder was drawn."""
    if values["records"] is not None or not labels.is_dir():
        return values
    call = take_call(folders.read_folder(labels))
    name = "records" if "records" in call.options else "prediction"
    if name not in call.options or ("edges" in call.options and name == "prediction"):
        return values
    path = call.file(name)
    record = values["record"] or call.options.get("record")
    return values | {"records": path, "record": record} if path.is_file() else values


def _recall_pairs(values: dict[str, Any]) -> dict[str, Any]:
    """Fill in what a folder of pairs remembers of the edges that it was drawn from."""
    edges, answers = values["edges"], values["answers"]
    folder = edges if answers is None else answers
    if not (folder / TABLE).is_file():
        if answers is None:
            raise DataError(
                f"ANSWERS are missing: name them after {edges}, or a folder of erbayes draw -d pairs"
            )
        return values
    call = _take_pairs_call(folder)
    if call.options:
        drawn_from = call.file("prediction")
        edges = drawn_from if answers is None else edges
        of_edges = ["record", "stored", "left", "right", "score"] if _are_one(edges, drawn_from) else []
        names = [n for n in ("records", *of_edges) if values.get(n) is None and n in call.options]
        values = values | {name: call.take(name) for name in names}
    elif answers is None:
        raise DataError(f"{folder} does not say what was drawn from: name EDGES before it")
    return values | {"edges": edges, "answers": folder}


def _recall_draw(values: dict[str, Any]) -> dict[str, Any]:
    """Fill in what a folder that is to get more draws remembers of the options that drew it."""
    folder, usual = values["prediction"], {"annotators": 1, "overlap": 0.2}
    given = {k: v for k, v in values.items() if v is not None and v is not False}
    if given.keys() - {"prediction", "more", "format", *usual} or not usual.items() <= given.items():
        raise DataError(f"--more takes {folder} and no option but --format: it remembers how it was drawn")
    if (folder / TABLE).is_file():
        raise DataError(f"--more: {folder} has pairs of bands, of which more draws are another sample")
    call = take_call(folders.read_folder(folder))
    if not call.options:
        raise DataError(f"{folder} does not say what was drawn from: draw the larger number anew")
    recalled = {name: call.take(name) for name in call.options if not name.endswith(COLUMNS)}
    if gone := [str(path) for path in recalled.values() if isinstance(path, Path) and not path.exists()]:
        raise DataError(f"{head(gone)}, from which {folder} was drawn, is not there: put it back")
    return values | recalled | {"folder": folder}
