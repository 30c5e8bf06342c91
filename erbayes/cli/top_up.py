"""Folders that top up an older one by draws among new records, so that both are one sample."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import erbayes as eb

from .._internal.errors import DataError, head
from .lazily import folders, pd, plans
from .options import message
from .predictions import LinkOptions, PredictionFile, ReadingOptions
from .remembered import COLUMNS, locate, take_call


def read_drawn_from(folder: folders.Folder) -> eb.Clustering:
    """Read the prediction that a folder was drawn from, as the folder remembers it."""
    call = take_call(folder)
    if not call or "stored" in call:
        raise DataError(f"{folder.path} remembers no file that it was drawn from: draw it from a file")
    path = locate(folder.path, call["prediction"], call.get(f"prediction{COLUMNS}"))
    if not path.is_file():
        raise DataError(f"{path}, from which {folder.path} was drawn, is not there: put it back")
    kept = {one.name: call[one.name] for one in fields(LinkOptions) if one.name in call}
    if "records" in kept:
        kept["records"] = locate(folder.path, kept["records"], call.get(f"records{COLUMNS}"))
    reading = ReadingOptions(
        record=call.get("record"), links=LinkOptions(**kept), any_id=call.get("any_id", False)
    )
    prediction, _ = reading.read(PredictionFile(path, None, call.get("cluster")), f"prediction {path}")
    if not folder.drawn.is_from(prediction):
        raise DataError(f"{path} has changed since {folder.path} was drawn from it: put the old file back")
    found: eb.Clustering = prediction
    return found


def flag_new(older: Path, prediction: Any) -> pd.Series:
    """Return 1 for each record of a prediction that is new since an older folder was drawn, 0 for others."""
    folder = folders.read_folder(older)
    if type(folder.drawn.plan) is not plans.Records:
        name = plans.to_plain(folder.drawn.plan)["name"]
        raise DataError(f"--top-up {older}: its design is {name}, and only uniform-records can be topped up")
    if not isinstance(prediction, eb.Clustering):
        raise DataError("--top-up reads PREDICTION into memory: leave out --memory-limit and --table")
    new = ~prediction.records.isin(read_drawn_from(folder).records)
    if not new.any():
        raise DataError(
            f"--top-up {older}: all {len(new):,} records of PREDICTION are old: none can be drawn"
        )
    message(
        f"note: {new.sum():,} of {len(new):,} records are new since {older} was drawn. Add rows to its "
        "sheets for those that belong to its entities, as an estimate from both counts whole entities"
    )
    return pd.Series(new.astype(float), prediction.records)


def read_both(labels: eb.labels.Labels) -> tuple[pd.Series, eb.design.contract.Design] | None:
    """Return labels and design of a folder with the one that it tops up, None if it tops up none."""
    if "top_up" not in (call := take_call(labels.folder)):
        return None
    older = eb.labels.read_labels(locate(labels.folder.path, call["top_up"]))
    for one in (older, labels):
        if len(one.unresolved):
            raise DataError(
                f"{one.folder.path}: {len(one.unresolved):,} tasks have no complete answer, but a folder and "
                "the one that it tops up are read together once all have: answer them"
            )
    before, now = (read_drawn_from(one.folder) for one in (older, labels))
    what = f"{older.folder.path} and {labels.folder.path}"
    united = unite(older.labels, labels.labels, before.records, now.records, what)
    _warn_incomplete(united, older, before, now)
    draws = [united[one.folder.drawn.table["record"]].tolist() for one in (older, labels)]
    return united, eb.topped_up(united, (before.records, draws[0]), (now.records, draws[1]))


def unite(old: pd.Series, new: pd.Series, before: pd.Index, now: pd.Index, what: str) -> pd.Series:
    """Return record -> entity of both. An entity of both has the same records in both, apart from some.

    The older folder may leave out records that came since, and the other one those that are no longer there.
    """
    shared = old.index.intersection(new.index)
    pairs = pd.DataFrame({"old": old[shared].to_numpy(), "new": new[shared].to_numpy()}).drop_duplicates()
    mine, theirs = old[old.isin(pairs["old"])], new[new.isin(pairs["new"])]
    told = pd.concat([mine, theirs], axis=1, keys=["old", "new"])
    wrong = told["new"].isna() & told.index.isin(now) | told["old"].isna() & told.index.isin(before)
    for side in ("old", "new"):
        wrong |= told[side].isin(pairs.loc[pairs.duplicated(side), side])
    if wrong.any():
        raise DataError(
            f"{what} contradict each other about the entities of {wrong.sum():,} records, such as "
            f"{head(told.index[wrong])}: an entity of both has the same records in both, apart from new ones "
            "that the older folder leaves out; correct the answers in either"
        )
    # an entity is named by a record of its own, so that no name stands for two entities
    known = old[~old.index.isin(new.index)]
    united: pd.Series = pd.concat([new, known.replace(dict(zip(pairs["old"], pairs["new"], strict=True)))])
    return united


def _warn_incomplete(
    united: pd.Series, older: eb.labels.Labels, before: eb.Clustering, now: eb.Clustering
) -> None:
    """Say how many entities of the older folder may have new records that no answer names."""
    cluster = pd.Series(now.codes, now.records)
    unnamed = ~cluster.index.isin(before.records) & ~cluster.index.isin(united.index)
    mine = united[older.labels.index]
    near = cluster.reindex(mine.index).isin(cluster[unnamed]).to_numpy()
    if near.any():
        message(
            f"caution: {mine[near].nunique():,} of {mine.nunique():,} entities of {older.folder.path} share "
            "a predicted cluster with new records that no answer names. If some are theirs, add rows "
            f"for them to the sheets of {older.folder.path}, since estimates count whole entities"
        )
