"""Options of results by groups of records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import erbayes as eb

from .._internal.errors import DataError
from .analyses import SEED, EngineName, EngineOption, MetricOptions, Metrics, Result
from .inputs import Inputs, One
from .lazily import files, pd, tables
from .options import file_option, message, option, panel, within
from .predictions import PredictionFile, in_words
from .tables import read_attributes


@panel("Groups")
class Domains:
    """Options of results by groups of records."""

    by: str | None = option("Column with groups of records: one result per group.", metavar="COLUMN")
    across: str | None = option(
        "Column with the source of records: only links between sources count.", metavar="COLUMN"
    )
    attributes: Path | None = file_option("Table with such a column, if PREDICTION has none.")

    def __post_init__(self) -> None:
        if self.by is not None and self.across is not None:
            raise DataError("--by and --across ask for two results: leave out one of them")

    def refuse_idle(self) -> None:
        """Refuse a table of attributes of which no option names a column."""
        if self.column is None and self.attributes is not None:
            raise DataError("--attributes needs --by or --across, which name its column")

    def refuse_models(self, by_engine: EngineOption) -> None:
        """Refuse groups by an engine with a size model, before it fits."""
        name = by_engine.name
        if self.column is not None and name in (EngineName.SIZE_MODEL, EngineName.POOL):
            raise DataError(
                f"--engine {name.value} has no groups, since an entity may lie in several: leave out "
                f"{self.option}, or choose --engine closed-form, jackknife or bootstrap"
            )

    @property
    def option(self) -> str | None:
        return None if self.column is None else "--by" if self.across is None else "--across"

    @property
    def column(self) -> str | None:
        return self.by or self.across

    def chosen_metrics(self, asked: MetricOptions) -> Metrics:
        """Return the metrics that the options name; with --across, those of links if they name none."""
        if self.across is not None and asked.metrics is None:
            return eb.metrics.resolve_metrics(["precision", "recall", "f1"])
        return asked.chosen_metrics()

    @property
    def links(self) -> eb.columns.Links:
        return eb.columns.Links.SHARED if self.across is None else eb.columns.Links.ACROSS

    def of_scan(self, inputs: Inputs) -> dict[str, Any]:
        """Return arguments of a scan that counts by group; none if groups are read into memory."""
        if self.column is None or not inputs.scanned:
            return {}
        if self.attributes is None:
            return {"groups": self.column}
        source = inputs.reading.source(PredictionFile(self.attributes))
        return {"groups": eb.large.GroupSource(source, self.column)}

    def estimate(
        self, inputs: One, sample: eb.Sample, metrics: Metrics, **chosen: Any
    ) -> eb.analysis.domains.estimates.ByDomain:
        groups = self.groups(inputs, [sample.units])
        known = self.known(inputs, groups)
        return eb.by_domain(sample, groups, metrics, prediction=known.get(""), links=self.links, **chosen)

    def run(
        self, inputs: One, asked: MetricOptions, by_engine: EngineOption, sample: eb.Sample, metrics: Metrics
    ) -> Result:
        """Estimate metrics of each group by an engine."""
        name = by_engine.name.value
        by = self.estimate(inputs, sample, metrics, engine=name, rng=SEED)
        table = by.table(inputs.level, by_engine.choose_kind(asked))
        alarms = [*by.alarms(), *eb.alarms(sample, metrics, table), *by.joint.alarms]
        return Result(table, name, alarms, drawn=by)

    def groups(self, inputs: Inputs, units: Sequence[eb.units.Units]) -> pd.Series | str:
        """Read the group of each record; the name of the variable if a scan has read it."""
        path = self.attributes or next(iter(inputs.parts().values())).path
        for known in (grouping for own in units for grouping in own.groupings):
            message(f"{len(known.values):,} groups of {self.column} scanned ({self.column} of {path})")
            self._note_without_group(known.unknown)
        if units[0].groupings:
            return units[0].groupings[0].variable
        with within("" if self.attributes else "--attributes TABLE, if another table has it"):
            records, column = self._read(path, inputs, str(self.column))
        message(
            f"read {column.notna().sum():,} values of {self.column} ({column.nunique():,} groups; "
            f"{in_words([records.name, self.column], path)})"
        )
        return column.set_axis(pd.Index(records)).rename(self.column)

    def _read(self, path: Path, inputs: Inputs, column: str) -> tuple[pd.Series, pd.Series]:
        """Return the records and the groups of a file."""
        reading = inputs.reading
        if self.attributes is None:  # the prediction itself, whose records are read as it is
            part = next(iter(inputs.parts().values()))
            taken = reading.take(part, "prediction", inputs.near)
            if taken.of_links:
                raise DataError(f"{column} is a column of --attributes if PREDICTION is links")
            tables.refuse_names([column], list(taken.table.columns), str(path))
            return taken.key(), taken.table[column]
        known = inputs.labelled()[0]["labels"].records
        table = read_attributes(path, reading.record, known=known)
        tables.refuse_names([column], list(table.columns), str(path))
        if table.columns[0] == column:
            raise DataError(f"{path}: {column!r} is its column of ids: name another one")
        table = files.key_by_source(table, known)
        return table.iloc[:, 0], table[column]

    def known(self, inputs: Inputs, groups: pd.Series | str) -> dict[str, eb.Clustering]:
        """Read the predictions again if totals by group are known: if every record of theirs has a group."""
        if isinstance(groups, str) or inputs.frame is not None or inputs.scanned:
            return {}
        predictions = {
            name: inputs.reading.read(part, f"prediction {name!r}")[0]
            for name, part in inputs.parts().items()
        }
        grouped = groups.index[groups.notna()]
        without = max(int((~prediction.records.isin(grouped)).sum()) for prediction in predictions.values())
        self._note_without_group(without)
        return {} if without else predictions

    def _note_without_group(self, records: int) -> None:
        """Print how many records of a prediction have no group, if there are any."""
        if records:
            message(
                f"note: {records:,} records of PREDICTION have no {self.column}, so that its totals are "
                "estimated"
            )
