"""What a folder remembers of the call that drew it, so that later commands need the folder alone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._internal.errors import DataError, head
from .lazily import folders, outside_json, pd
from .tables import File, name_columns, read_attributes

if TYPE_CHECKING:
    from ..units.facts import Named

NAMES = "record cluster edges left right score threshold".split()
"""Options of draw that say what columns of the prediction mean."""
READING = [*NAMES, "stored", "records", "any_id"]
"""Options of draw that say how the prediction is read."""
SHOWN = "attributes candidates looser search limit controls values".split()
"""Options of draw that say what tasks show, for more draws of the same kind."""
KEPT = ["prediction", *READING, *SHOWN, "top_up"]
"""Options of draw that say what was drawn from, how it is read, and what was shown."""
FILES = {"prediction", "records", "attributes", "candidates", "looser", "values", "top_up"}
"""Those that name files."""
COLUMNS = " columns"
"""The end of the name under which a folder keeps what was said of the columns of a file."""
LONGEST = 4000
"""Characters of the longest value of an option, as no path is longer."""
CALL = "call"
"""Where they stand in the facts of a folder."""
TABLE, PAIRS_CALL = "pairs.csv", "call.json"
"""The table of a folder of pairs, and what it remembers of the call that drew it."""


def remembered(values: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return what a folder keeps of the options that drew it; paths are seen from where the folder lies."""
    here = folder.resolve().parent
    kept = {name: values[name] for name in KEPT if values.get(name) not in (None, False)}
    # what was written behind the file, as one text
    said = [(name, value.in_words()) for name, value in kept.items() if isinstance(value, File)]
    kept |= {f"{name}{COLUMNS}": words for name, words in said if words}
    return {k: os.path.relpath(v.resolve(), here) if isinstance(v, Path) else v for k, v in kept.items()}


def take_call(folder: folders.Folder) -> dict[str, Any]:
    """Return what a folder keeps of the options that drew it; nothing if Python wrote it."""
    call = folder.facts.get(CALL)
    return _need_plain(call if isinstance(call, dict) else {}, folder.path / folders.FACTS)


def _need_plain(call: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return the options of a call, and refuse values that draw never writes."""
    if call and "prediction" not in call:
        raise DataError(f"{path}: {CALL!r} does not name the prediction")
    for name, value in call.items():
        if not isinstance(value, str | float | int) or len(text := str(value)) > LONGEST or "\0" in text:
            raise DataError(f"{path}: {CALL!r} has a {name!r} that draw never writes")
    return call


def locate(folder: Path, path: Any, said: Any = "") -> File:
    """Return a path that a folder keeps, as seen from where the shell is, and what is said of its columns."""
    return File.of(os.path.relpath(folder.resolve().parent / str(path)), str(said or ""))


def _are_one(first: Path, second: Path) -> bool:
    """Return whether two paths lead to one file."""
    return first.exists() and second.exists() and first.samefile(second)


def _recall_attributes(values: Mapping[str, Any], call: Mapping[str, Any], folder: Path) -> dict[str, Path]:
    """Return the attributes that the folder shows, if an option names one of their columns."""
    wanted = [
        values.get("by") or "",
        values.get("across") or "",
        *(text.partition("=")[2] for text in values.get("feature") or []),
    ]
    if "attributes" not in call or values.get("attributes") or not any(wanted):
        return {}
    path = locate(folder, call["attributes"], call.get(f"attributes{COLUMNS}"))
    # of a Parquet file no row is read for this
    columns: Any = read_attributes(path, call.get("record"), pd.Index([], dtype=str)) if path.exists() else []
    return {"attributes": path} if any(name.partition(":")[0] in columns for name in wanted) else {}


def _recall_records(values: dict[str, Any], labels: Path) -> dict[str, Any]:
    """Fill in the file of all records of scored edges: that from which a folder was drawn."""
    call = take_call(folders.read_folder(labels)) if labels.is_dir() else {}
    if values["records"] is not None or not call:
        return values
    name = "records" if "records" in call else "prediction"
    own = locate(labels, call[name], call.get(f"{name}{COLUMNS}"))
    if not own.is_file() or ("edges" in call and "records" not in call):
        return values
    return values | {"records": own, "record": values["record"] or call.get("record")}


def recall(values: dict[str, Any]) -> dict[str, Any]:
    """Fill in what a folder remembers: the prediction if none is named, and how that is read."""
    if values.get("more") is not None:
        return _recall_draw(values)
    if "answers" in values:
        return _recall_pairs(values)
    if isinstance(values.get("edges"), Path) and "labels" in values:
        return _recall_records(values, values["labels"])
    if not {"prediction", "labels"} <= set(values):
        return values
    several = not isinstance(values["prediction"], Path)
    given, labels = _find_labels(values)
    values = values | {"labels": labels, "prediction": given if several else next(iter(given), labels)}
    call = _read_call(labels, bool(given))
    if call is None or labels is None:
        return values
    own = locate(labels, call["prediction"], call.get(f"prediction{COLUMNS}"))
    columns = any(len(values[name] or []) > 1 for name in ("cluster", "stored"))
    named = len(given) > 1 or columns if several else bool(given)
    hinted = [
        _hint(path, name_columns(own, record=call.get("record"), cluster=call.get("cluster")))
        for path in given
    ]
    options = {name: call[name] for name in NAMES if name in call}
    for path in (own, *given):
        # who says anew what stands in the file is not told what was said before
        if isinstance(path, File) and _are_one(path, own):
            path.options = {} if path.in_words() and path is not own else options
    if named and not any(_are_one(path, own) for path in given):
        return values | {"prediction": hinted if several else hinted[0]} if given else values
    if not own.exists():
        raise DataError(
            f"{own}, from which {labels} was drawn, is not there: name PREDICTION before {labels}"
        )
    found = values | {"labels": labels} | _recall_attributes(values, call, labels)
    if not named:
        found["prediction"] = [own, *hinted] if several else own
    for name in READING:
        # names of columns travel with the file, but that of records serves other files too
        if name in NAMES and name != "record" and not (labels / TABLE).is_file():
            continue
        if name in call and found.get(name) in (None, False, []):
            value = call[name]
            if name == "records":
                value = locate(labels, value, call.get(f"records{COLUMNS}"))
            found[name] = [value] if several and name == "stored" else value
    return found


def _find_labels(values: Mapping[str, Any]) -> tuple[list[Path], Path | None]:
    """Return the predictions that are named, and LABELS: a folder wherever it stands, or the last."""
    named = values["prediction"]
    paths = [*([named] if isinstance(named, Path) else named or []), values["labels"]]
    paths = [path for path in paths if path is not None]
    folders_of_answers = [p for p in paths if any((p / name).is_file() for name in (folders.FACTS, TABLE))]
    if len(folders_of_answers) == 1:
        return [path for path in paths if path is not folders_of_answers[0]], folders_of_answers[0]
    # what is named alone is LABELS, which say what is missing
    return paths[:-1], paths[-1] if paths else None


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
    if answers is None and not call:
        raise DataError(f"{folder} does not say what was drawn from: name EDGES before it")
    if call:
        own = locate(folder, call["prediction"], call.get(f"prediction{COLUMNS}"))
        edges = own if answers is None else edges
        names = ["records"]
        if _are_one(edges, own):
            names += ["record", "stored", "left", "right", "score"]
        for name in names:
            if values.get(name) is None and name in call:
                value = call[name]
                said = call.get(f"records{COLUMNS}")
                values = values | {name: locate(folder, value, said) if name == "records" else value}
    return values | {"edges": edges, "answers": folder}


def _take_pairs_call(folder: Path) -> dict[str, Any]:
    """Return what a folder of pairs keeps of the options that drew it; nothing if it keeps none."""
    path = folder / PAIRS_CALL
    return _need_plain(outside_json.read_object(path, str(path)), path) if path.is_file() else {}


def _hint(path: Path, own: Named) -> Path:
    """Return the path of another prediction, with the names of columns of the one drawn from."""
    if isinstance(path, File):
        path.hints = {"record": own.record, "cluster": own.cluster}
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
    found = {
        name: locate(folder, value, call.get(f"{name}{COLUMNS}")) if name in FILES else value
        for name, value in call.items()
        if not name.endswith(COLUMNS)
    }
    if gone := [str(path) for path in found.values() if isinstance(path, Path) and not path.exists()]:
        raise DataError(f"{head(gone)}, from which {folder} was drawn, is not there: put it back")
    return values | found | {"folder": folder}


def _read_call(labels: Path | None, given: bool) -> dict[str, Any] | None:
    """Read the call that drew a folder, None if LABELS has none and the predictions are `given`."""
    missing = (
        f"LABELS are missing: name them after {labels}, or name a folder of erbayes draw; to begin, label a "
        f"pilot of about 50 draws: erbayes draw {labels} --design uniform-records -n 50 --seed 1 "
        "--output to-label"
    )
    if labels is not None and (labels / TABLE).is_file():
        if call := _take_pairs_call(labels):
            return call | {"edges": True}
    elif labels is not None and labels.is_dir():
        if call := take_call(folders.read_folder(labels)):
            return call
        missing = f"{labels} does not say what was drawn from: name PREDICTION before it"
    if given:
        return None
    raise DataError(missing)
