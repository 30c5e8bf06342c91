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
from .remembered import Call


def read_drawn_from(folder: folders.Folder) -> eb.Clustering:
    """Read the prediction that a folder was drawn from, as the folder remembers it."""
    call = Call.of(folder.path)
    if not call.options or "stored" in call.options:
        raise DataError(f"{folder.path} remembers no file that it was drawn from: draw it from a file")
    path = call.take("prediction")
    if not path.is_file():
        raise DataError(f"{path}, from which {folder.path} was drawn, is not there: put it back")
    links = {one.name: call.take(one.name) for one in fields(LinkOptions) if one.name in call.options}
    options = call.options
    reading = ReadingOptions(
        record=options.get("record"),
        links=LinkOptions(**links),
        **{name: options[name] for name in ("alone", "strip", "any_id") if name in options},
    )
    part = PredictionFile(path, cluster=options.get("cluster"))
    prediction: eb.Clustering = reading.read(part, f"prediction {path}")[0]
    if not folder.drawn.is_from(prediction):
        raise DataError(f"{path} has changed since {folder.path} was drawn from it: put the old file back")
    return prediction


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
    call = Call.of(labels.folder.path)
    if "top_up" not in call.options:
        return None
    older = eb.labels.read_labels(call.take("top_up"))
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
    return united, eb.top_up(united, (before.records, draws[0]), (now.records, draws[1]))


def unite(old: pd.Series, new: pd.Series, before: pd.Index, now: pd.Index, what: str) -> pd.Series:
    """Return record -> entity of both. An entity of both has the same records in both, apart from some.

    The older folder may leave out records that came since, and the other one those that are no longer there.
    """
    shared = old.index.intersection(new.index)
    pairs = pd.DataFrame({"old": old[shared].to_numpy(), "new": new[shared].to_numpy()}).drop_duplicates()
    mine, theirs = old[old.isin(pairs["old"])], new[new.isin(pairs["new"])]
    both = pd.concat([mine, theirs], axis=1, keys=["old", "new"])
    wrong = both["new"].isna() & both.index.isin(now) | both["old"].isna() & both.index.isin(before)
    for side in ("old", "new"):
        wrong |= both[side].isin(pairs.loc[pairs.duplicated(side), side])
    if wrong.any():
        raise DataError(
            f"{what} contradict each other about the entities of {wrong.sum():,} records, such as "
            f"{head(both.index[wrong])}: an entity of both has the same records in both, apart from new ones "
            "that the older folder leaves out; correct the answers in either"
        )
    # an entity is named by one of its records, so that no two entities have one name
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
