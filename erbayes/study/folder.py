"""The folder of a study: a Parquet file of runs for each cell, with its settings in words."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet

from .._internal.arrays import FloatArray
from .._internal.errors import DataError
from .._internal.files import refuse_output, replacing

Words = Mapping[str, dict[str, str]]
"""Settings in words: those of the `cell`, of each of its `estimators`, and of each of its `metrics`."""


class Rows(NamedTuple):
    """Runs of an estimator; `truth`, `reason` (repetitions, metrics), `figures` (..., columns)."""

    estimator: str
    metrics: Sequence[str]
    repetitions: Sequence[int]
    truth: FloatArray
    figures: FloatArray
    reason: NDArray[np.object_]


class CellRuns:
    """The runs of a cell: those that its file has with the same settings, and new ones.

    Without a folder nothing is stored. `key` has the names of the cell, and `columns` those of figures.
    """

    def __init__(self, folder: Path | None, key: Mapping[str, Any], words: Words, columns: Sequence[str]):
        self.key, self.words, self.columns, self.file = key, words, columns, None
        self.stored = pd.DataFrame(columns=["estimator", "metric", "repetition"])
        self.new: list[Rows] = []
        if folder is not None:
            name = ", ".join(filter(None, map(str, key.values())))
            self.file = folder / f"{re.sub(r'[^\w ,.+=()%-]', '_', name)}.parquet"
            try:
                folder.mkdir(exist_ok=True)
            except OSError as error:
                raise DataError(f"cannot write {folder}: {error.strerror}: name a new folder") from error
            if self.file.is_file():
                self._load(self.file)
            else:
                refuse_output(self.file)  # before the work instead of after it

    def _load(self, file: Path) -> None:
        """Read the file, refusing one of another cell and leaving out what has other settings now."""
        try:
            table = parquet.read_table(file)
            old: Words = json.loads(table.schema.metadata[b"study"])
        except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"{file} is damaged: remove it, and its cell is computed again") from error
        for what, said in self.words["cell"].items():
            if (before := old["cell"].get(what)) != said:
                then = "name a new folder, or remove the file"
                raise DataError(f"{file} is of another study, with {what} {before}, not {said}: {then}")
        self.stored = table.to_pandas()
        for column, names in (("estimator", "estimators"), ("metric", "metrics")):
            asked, kept = self.words[names], old[names]
            if changed := [n for n in asked if kept.get(n, asked[n]) != asked[n]]:
                said = f"{column} {', '.join(changed)} has other settings now, and is computed again"
                warnings.warn(f"{file}: {said}", stacklevel=5)
                self.stored = self.stored[~self.stored[column].isin(changed)]
            asked |= {name: said for name, said in kept.items() if name not in asked}

    def done(self) -> dict[tuple[str, str], set[int]]:
        """Return the stored repetitions of each estimator and metric."""
        return self.stored.groupby(["estimator", "metric"])["repetition"].agg(set).to_dict()

    def keep(self, rows: Sequence[Rows]) -> None:
        """Add runs, and write the file, completely or not at all."""
        self.new += rows
        if self.file is not None:
            table = pa.Table.from_pandas(self.frame(), preserve_index=False)
            metadata = {b"study": json.dumps(self.words, indent=1, ensure_ascii=False).encode()}
            with replacing(self.file) as new:
                parquet.write_table(table.replace_schema_metadata(metadata), new)

    def frame(self) -> pd.DataFrame:
        """Return all runs as a table."""
        if not self.new:
            return self.stored
        lengths = [rows.truth.size for rows in self.new]
        parts = [
            (
                np.tile(r.metrics, len(r.repetitions)),
                np.repeat(r.repetitions, len(r.metrics)),
                r.truth.ravel(),
            )
            for r in self.new
        ]
        metric, repetition, truth = (np.concatenate(x) for x in zip(*parts, strict=True))
        figures = np.concatenate([rows.figures.reshape(-1, len(self.columns)) for rows in self.new])
        reason = np.concatenate([rows.reason.ravel() for rows in self.new])
        columns = {
            "estimator": np.repeat([rows.estimator for rows in self.new], lengths),
            "metric": metric,
            "repetition": repetition,
            "truth": truth,
            **dict(zip(self.columns, figures.T, strict=True)),
            "reason": np.where(np.isnan(truth), "it is 0/0 in this population", reason),
        }
        new = pd.DataFrame(columns)
        if not len(self.stored):
            return new
        return pd.concat([self.stored, new]).drop_duplicates(["estimator", "metric", "repetition"])

    def arranged(self, estimators: Sequence[str], metrics: Sequence[str], repetitions: int) -> pd.DataFrame:
        """Return the runs that are asked for, in order, with the names of the cell."""
        runs = self.frame()
        estimator, metric = pd.Index(estimators), pd.Index(metrics)
        at = estimator.get_indexer(runs["estimator"]), metric.get_indexer(runs["metric"])
        asked = (at[0] >= 0) & (at[1] >= 0) & (runs["repetition"] < repetitions).to_numpy()
        order = np.lexsort((at[1], runs["repetition"], at[0]))
        return pd.DataFrame({**self.key, **runs.iloc[order[asked[order]]]})
