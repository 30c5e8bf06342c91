"""The folder of a study: a Parquet file of runs for each cell, with its settings in words."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from .._internal.errors import PACKAGE, DataError
from .._internal.files import refuse_output, replacing

Words = Mapping[str, dict[str, str]]
"""Settings in words, those of the `cell`, of each of its `estimators`, and of each of its `metrics`."""


class CellRuns:
    """The runs of a cell: those that its file has, and new ones. Without a folder nothing is stored."""

    def __init__(self, folder: Path | None, name: str, words: Words) -> None:
        self.words, self.file, self.stored = words, None, pd.DataFrame()
        self.new: list[pd.DataFrame] = []
        if folder is not None:
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
        runs = table.to_pandas()
        for column, names in (("estimator", "estimators"), ("metric", "metrics")):
            asked, kept = self.words[names], old[names]
            if changed := [n for n in asked if kept.get(n, asked[n]) != asked[n]]:
                said = f"{column} {', '.join(changed)} has other settings now, and is computed again"
                warnings.warn(f"{file}: {said}", skip_file_prefixes=PACKAGE)
                runs = runs[~runs[column].isin(changed)]
            asked |= {name: said for name, said in kept.items() if name not in asked}
        self.stored = runs

    def list_done(self) -> dict[Any, set[int]]:
        """Return the stored repetitions of each estimator and metric."""
        if self.stored.empty:
            return {}
        return self.stored.groupby(["estimator", "metric"])["repetition"].agg(set).to_dict()

    def keep(self, runs: pd.DataFrame) -> None:
        """Add runs, and write the file, completely or not at all."""
        self.new.append(runs)
        if self.file is not None:
            table = pa.Table.from_pandas(self._join(), preserve_index=False)
            metadata = {b"study": json.dumps(self.words, indent=1, ensure_ascii=False).encode()}
            with replacing(self.file) as new:
                parquet.write_table(table.replace_schema_metadata(metadata), new)

    def _join(self) -> pd.DataFrame:
        """Return all runs as a table, each once."""
        if self.stored.empty:
            return pd.concat(self.new)
        return pd.concat([self.stored, *self.new]).drop_duplicates(["estimator", "metric", "repetition"])

    def arrange(self, estimators: Sequence[str], metrics: Sequence[str], repetitions: int) -> pd.DataFrame:
        """Return the runs that are asked for, in order."""
        runs, at = self._join(), []
        for column, names in (("metric", metrics), ("estimator", estimators)):
            at.append(pd.Index(names).get_indexer(pd.Index(runs[column])))
        asked = (at[0] >= 0) & (at[1] >= 0) & (runs["repetition"] < repetitions).to_numpy()
        order = np.lexsort((at[0], runs["repetition"], at[1]))
        return runs.iloc[order[asked[order]]]
