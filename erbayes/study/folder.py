"""The folder of a study: a Parquet file of runs for each cell, with its settings as `repr` writes them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from .._internal.errors import DataError
from .._internal.files import refuse_output, replacing

RUN = ["estimator", "metric", "repetition"]
"""Columns that identify a run of a cell."""


class CellRuns:
    """The runs of a cell: those that its file has, and new ones. Without a folder nothing is stored."""

    def __init__(self, folder: Path | None, name: str, settings: Mapping[str, object]) -> None:
        # addresses differ from run to run
        self.settings = {what: re.sub(r" at 0x[0-9a-f]+", "", repr(x)) for what, x in settings.items()}
        self.runs, self.file = pd.DataFrame(columns=RUN), None
        if folder is None:
            return
        self.file = folder / f"{re.sub(r'[^\w ,.+=()%-]', '_', name)}.parquet"
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise DataError(f"cannot write {folder}: {error.strerror}: name a new folder") from error
        if not self.file.is_file():
            refuse_output(self.file)  # before the work instead of after it
            return
        try:
            table = parquet.read_table(self.file)
            old = json.loads(table.schema.metadata[b"study"])
        except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"{self.file} is damaged: remove it, and its cell is computed again") from error
        for what, said in self.settings.items():
            if (before := old.get(what, said)) != said:
                raise DataError(
                    f"{self.file} is of another study, with {what} {before}, not {said}: name a new folder, "
                    "or remove the file"
                )
        self.settings, self.runs = old | self.settings, table.to_pandas()

    def list_done(self) -> dict[Any, set[int]]:
        """Return the stored repetitions of each estimator and metric."""
        return self.runs.groupby(RUN[:2])["repetition"].agg(set).to_dict()

    def keep(self, new: pd.DataFrame) -> None:
        """Add runs, and write the file, completely or not at all."""
        self.runs = pd.concat([self.runs, new]).drop_duplicates(RUN) if len(self.runs) else new
        if self.file is not None:
            table = pa.Table.from_pandas(self.runs, preserve_index=False)
            metadata = {b"study": json.dumps(self.settings, indent=1, ensure_ascii=False).encode()}
            with replacing(self.file) as file:
                parquet.write_table(table.replace_schema_metadata(metadata), file)

    def arrange(self, estimators: Sequence[str], metrics: Sequence[str], repetitions: int) -> pd.DataFrame:
        """Return the runs that are asked for, in order."""
        of_estimator, of_metric = (
            pd.Index(names).get_indexer(pd.Index(self.runs[column]))
            for column, names in (("estimator", estimators), ("metric", metrics))
        )
        asked = (of_estimator >= 0) & (of_metric >= 0) & (self.runs["repetition"] < repetitions).to_numpy()
        order = np.lexsort((of_metric, self.runs["repetition"], of_estimator))
        return self.runs.iloc[order[asked[order]]]
