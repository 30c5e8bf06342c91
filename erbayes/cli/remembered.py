"""What a folder remembers of the call that drew it, so that later commands need the folder alone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from .._internal.errors import DataError, head
from .lazily import folders, outside_json, pd, plans
from .tables import File, name_columns, read_attributes

NAMES = "record cluster edges left right score threshold".split()
"""Options of draw that say what columns of the prediction mean."""
READING = [*NAMES, "stored", "records", "alone", "strip", "any_id"]
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
            options = outside_json.read_object(path, str(path)) if path.is_file() else {}
        else:
            path, stored = folder / folders.FACTS, folders.read_folder(folder).facts.get(CALL)
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


def _are_one(first: Path, second: Path) -> bool:
    """Return whether two paths lead to one file."""
    return first.exists() and second.exists() and first.samefile(second)


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
    given, labels = _find_labels([*listed, values[last]])
    values = values | {last: labels, first: given if several else next(iter(given), labels)}
    call = None if labels is None or not labels.is_dir() else Call.of(labels)
    if call is None or not call.options:
        if given:
            return values
        if call is not None:
            raise DataError(f"{labels} does not say what was drawn from: name {first.upper()} before it")
        raise DataError(
            f"{last.upper()} are missing: name them after {labels}, or name a folder of erbayes draw; to "
            f"begin, label a pilot of about 50 draws: erbayes draw {labels} --design uniform-records -n 50 "
            "--seed 1 --output to-label"
        )
    origin, options = call.take("prediction"), call.options
    own = [path for path in given if _are_one(path, origin)]
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
        recalled |= _recall_origin(values, call, origin)
    else:
        names |= {*READING} if (call.folder / TABLE).is_file() else {"record", "stored"}
        recalled |= _recall_attributes(values, call)
    if not named:
        if not origin.exists():
            raise DataError(
                f"{origin}, from which {labels} was drawn, is not there: name {first.upper()} before {labels}"
            )
        recalled[first] = [origin, *given] if several else origin
    for name in names & options.keys() & values.keys():
        if values[name] in (None, False, []):
            recalled[name] = [call.take(name)] if several and name == "stored" else call.take(name)
    return values | recalled


def _find_labels(paths: list[Any]) -> tuple[list[File], Path | None]:
    """Return the predictions that are named, and LABELS: a folder wherever it is in the list, or the last."""
    paths = [path for path in paths if path is not None]
    # only folders need the room of labels, whose modules take a third of the time of a short command
    inside = [p for p in paths if p.is_dir()]
    drawn = [p for p in inside if any((p / name).is_file() for name in (folders.FACTS, TABLE))]
    # what is named alone is LABELS, which say what is missing
    labels = drawn[0] if len(drawn) == 1 else next(iter(paths[-1:]), None)
    return [path for path in paths if path is not labels], labels


def _recall_origin(values: Mapping[str, Any], call: Call, origin: Path) -> dict[str, Any]:
    """Fill in what was drawn from, if chances depend on it and others are judged."""
    if values["drawn_from"] is not None or "stored" in call.options or not origin.exists():
        return {}
    plan = folders.read_folder(call.folder).drawn.plan
    return {} if isinstance(plan, (*plans.FREE, plans.PredictedClusters)) else {"drawn_from": origin}


def _recall_attributes(values: Mapping[str, Any], call: Call) -> dict[str, Path]:
    """Return the attributes that the folder shows, if an option names one of their columns."""
    features = [text.partition("=")[2] for text in values.get("feature") or []]
    columns = [name for name in (values.get("by"), values.get("across"), *features) if name]
    if "attributes" not in call.options or values.get("attributes") or not columns:
        return {}
    path = call.take("attributes")
    if not path.exists():
        return {}
    # of a Parquet file no row is read for this
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
