"""What a folder remembers of the call that drew it, so that later commands need the folder alone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .._internal.errors import DataError, head
from .lazily import disk, folders, pd
from .tables import File

READING = "record cluster stored edges left right score threshold records any_id".split()
"""Options of draw that say how the prediction is read."""
SHOWN = "attributes candidates looser search limit controls values".split()
"""Options of draw that say what tasks show, for more draws of the same kind."""
KEPT = ["prediction", *READING, *SHOWN, "top_up"]
"""Options of draw that say what was drawn from, how it is read, and what was shown."""
FILES = {"prediction", "records", "attributes", "candidates", "looser", "values", "top_up"}
"""Those that name files."""
LONGEST = 4000
"""Characters of the longest value of an option, as no path is longer."""
CALL = "call"
"""Where they stand in the facts of a folder."""
TABLE = "pairs.csv"
"""The table of a folder of pairs, which has no other facts."""


def remembered(values: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return what a folder keeps of the options that drew it; paths are seen from where the folder lies."""
    here = folder.resolve().parent
    kept = {name: values[name] for name in KEPT if values.get(name) not in (None, False)}
    return {k: os.path.relpath(v.resolve(), here) if isinstance(v, Path) else v for k, v in kept.items()}


def take_call(folder: folders.Folder) -> dict[str, Any]:
    """Return what a folder keeps of the options that drew it; nothing if Python wrote it."""
    call = folder.facts.get(CALL)
    call = call if isinstance(call, dict) else {}
    for name, value in call.items():
        if not isinstance(value, str | float | int) or len(text := str(value)) > LONGEST or "\0" in text:
            raise DataError(f"{folder.path / folders.FACTS}: {CALL!r} has a {name!r} that draw never writes")
    return call


def locate(folder: Path, path: Any) -> Path:
    """Return a path that a folder keeps, as seen from where the shell is."""
    return Path(os.path.relpath(folder.resolve().parent / str(path)))


def _recall_attributes(values: Mapping[str, Any], call: Mapping[str, Any], folder: Path) -> dict[str, Path]:
    """Return the attributes that the folder shows, if an option names one of their columns."""
    wanted = [
        values.get("by") or "",
        values.get("across") or "",
        *(text.partition("=")[2] for text in values.get("feature") or []),
    ]
    if "attributes" not in call or values.get("attributes") or not any(wanted):
        return {}
    path = locate(folder, call["attributes"])
    # of a Parquet file no row is read for this
    columns: Any = disk.read_rows(path, call.get("record"), pd.Index([], dtype=str)) if path.exists() else []
    return {"attributes": path} if any(name.partition(":")[0] in columns for name in wanted) else {}


def _recall_records(values: dict[str, Any], labels: Path) -> dict[str, Any]:
    """Fill in the file of all records of scored edges: that from which a folder was drawn."""
    call = take_call(folders.read_folder(labels)) if labels.is_dir() else {}
    if values["records"] is not None or not call:
        return values
    own = locate(labels, call.get("records", call["prediction"]))
    if not own.is_file() or ("edges" in call and "records" not in call):
        return values
    return values | {"records": own, "record": values["record"] or call.get("record")}


def recall(values: dict[str, Any]) -> dict[str, Any]:
    """Fill in what a folder remembers: the prediction if none is named, and how that is read."""
    if values.get("more") is not None:
        return _recall_draw(values)
    if isinstance(values.get("edges"), Path) and "labels" in values:
        return _recall_records(values, values["labels"])
    if not {"prediction", "labels"} <= set(values):
        return values
    # commands on one prediction have a path, which is the folder if nothing else is named
    several = not isinstance(values["prediction"], Path)
    given, labels = list(values["prediction"] or []) if several else [values["prediction"]], values["labels"]
    if not several and labels is None:
        given, labels = [], values["prediction"]
    call = _read_call(labels, bool(given))
    if call is None:
        return values
    own = locate(labels, call["prediction"])
    columns = any(len(values[name] or []) > 1 for name in ("cluster", "stored"))
    named = len(given) > 1 or columns if several else bool(given)
    hinted = [_hint(path, call) for path in given]
    if named and not any(path.exists() and own.exists() and path.samefile(own) for path in given):
        return values | {"prediction": hinted if several else hinted[0]} if given else values
    if not own.exists():
        raise DataError(
            f"{own}, from which {labels} was drawn, is not there: name PREDICTION before {labels}"
        )
    found = values | {"labels": labels} | _recall_attributes(values, call, labels)
    if not named:
        found["prediction"] = [own, *hinted] if several else own
    for name in READING:
        if name in call and found.get(name) in (None, False, []):
            value = locate(labels, call[name]) if name == "records" else call[name]
            found[name] = [value] if several and name in ("cluster", "stored") else value
    return found


def _hint(path: Path, call: Mapping[str, Any]) -> Path:
    """Return the path of another prediction, with the names of columns that the folder remembers."""
    if isinstance(path, File):
        path.hints = {name: call[name] for name in ("record", "cluster") if name in call}
    return path


def _recall_draw(values: dict[str, Any]) -> dict[str, Any]:
    """Fill in what a folder that is to get more draws remembers of the options that drew it."""
    folder, usual = values["prediction"], {"annotators": 1, "overlap": 0.2}
    given = {k: v for k, v in values.items() if v is not None and v is not False}
    if given.keys() - {"prediction", "more", "format", *usual} or not usual.items() <= given.items():
        raise DataError(f"--more takes {folder} and no option but --format: it remembers how it was drawn")
    if (folder / TABLE).is_file():
        raise DataError(f"--more: {folder} has pairs of bands, of which more draws are another sample")
    if not (call := take_call(folders.read_folder(folder))):
        raise DataError(f"{folder} does not say what was drawn from: draw the larger number anew")
    found = {name: locate(folder, value) if name in FILES else value for name, value in call.items()}
    if gone := [str(path) for path in found.values() if isinstance(path, Path) and not path.exists()]:
        raise DataError(f"{head(gone)}, from which {folder} was drawn, is not there: put it back")
    return values | found | {"folder": folder}


def _read_call(labels: Path, given: bool) -> dict[str, Any] | None:
    """Read the call that drew a folder, None if LABELS has none and the predictions are `given`."""
    missing = (
        f"LABELS are missing: name them after {labels}, or name a folder of erbayes draw; to begin, label a "
        f"pilot of about 50 draws: erbayes draw {labels} --design uniform-records -n 50 --seed 1 "
        "--output to-label"
    )
    if labels.is_dir() and not (labels / TABLE).is_file():
        if call := take_call(folders.read_folder(labels)):
            return call
        missing = f"{labels} does not say what was drawn from: name PREDICTION before it"
    if given:
        return None
    raise DataError(missing)
