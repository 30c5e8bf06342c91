"""Options of results by groups of records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from .._internal.errors import DataError
from .asked import Asked
from .inputs import Inputs
from .lazily import clusterings, columns_of, definitions, disk, grouping, large, pd
from .options import file_option, flag, message, option
from .predictions import Part, in_words

if TYPE_CHECKING:
    from ..metrics.definitions import Metric
    from ..units.units import Units

SPARE = 10_000
"""Number of other columns that a table of groups may have."""


@dataclass(frozen=True, kw_only=True)
class Domains:
    """Options of results by groups of records."""

    panel: ClassVar = "Groups"

    by: str | None = option("Column with groups of records: one result per group.", metavar="COLUMN")
    across: str | None = option(
        "Column with the source of records: only links between sources count.", metavar="COLUMN"
    )
    attributes: Path | None = file_option("Table with such a column, if PREDICTION has none.")
    of_entities: bool = flag("--attributes has entities, not records, in its first column.", rare=True)
    links_inside: bool = flag(
        "Count links with both records in the group; else each counts half for each.", rare=True
    )

    def __post_init__(self) -> None:
        if self.by is not None and self.across is not None:
            raise DataError("--by and --across ask for two results: leave out one of them")
        if self.by is None and (self.of_entities or self.links_inside):
            raise DataError("--of-entities and --links-inside need --by")
        if self.of_entities and (self.attributes is None or self.links_inside):
            raise DataError("--of-entities needs --attributes, and does not go with --links-inside")

    def refuse_idle(self) -> None:
        """Refuse a table of attributes of which no column is asked for."""
        if self.column is None and self.attributes is not None:
            raise DataError("--attributes needs --by or --across, which name its column")

    @property
    def column(self) -> str | None:
        """Return the column of --by or --across."""
        return self.by or self.across

    def chosen_metrics(self, asked: Asked) -> Sequence[Metric]:
        """Return the metrics that the options name; with --across, those of links if they name none."""
        if self.across is not None and asked.metrics is None and not asked.every:
            return definitions.chosen(["precision", "recall", "f1"])
        return asked.chosen_metrics()

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments of functions by domain that the options name."""
        return {
            "of": grouping.Of.ENTITIES if self.of_entities else grouping.Of.RECORDS,
            "links": columns_of.Links.ACROSS
            if self.across is not None
            else columns_of.Links.INSIDE
            if self.links_inside
            else columns_of.Links.SHARED,
        }

    def of_scan(self, inputs: Inputs, parts: Iterable[Part]) -> dict[str, Any]:
        """Return arguments of a scan that counts by group; none if groups are read into memory."""
        reading = inputs.reading
        scanned = self.column is not None and reading.scanned(parts, inputs.framed.frame)
        if not scanned or self.of_entities:
            return {}
        if self.column is None or self.attributes is None:
            return {"groups": self.column}
        columns = {"record": reading.record, "group": self.column}
        source = reading.source_of(self.attributes, columns, spare=SPARE)
        return {"groups": large.GroupSource(source, self.column)}

    def groups(self, inputs: Inputs, parts: Iterable[Part], units: Sequence[Units]) -> pd.Series | str:
        """Read the group of each record or entity; the name of the variable if a scan has read it."""
        parts = list(parts)
        path = self.attributes or parts[0].path
        reading = inputs.reading
        for own in units:
            for known in own.groupings:
                message(f"{len(known.values):,} groups of {self.column} scanned ({self.column} of {path})")
                self._print_left_out(known.unknown)
        if units[0].groupings:
            return units[0].groupings[0].variable
        if self.attributes is None and reading.links.edges:
            raise DataError(f"{self.column} is a column of --attributes if PREDICTION is links")
        key = {"entity": inputs.entity} if self.of_entities else {"record": reading.record}
        table = disk.read_columns(path, key | {"group": self.column}, spare=SPARE)
        column = table.iloc[:, 1]
        message(
            f"read {column.notna().sum():,} values of {self.column} ({column.nunique():,} groups; "
            f"{in_words(table.columns, path)})"
        )
        return column.set_axis(pd.Index(table.iloc[:, 0])).rename(self.column)

    def _print_left_out(self, lacking: int) -> None:
        """Print how many records of a prediction have no group, if there are any."""
        if lacking:
            message(
                f"note: {lacking:,} records of PREDICTION have no {self.column}, so that its totals are "
                "estimated"
            )

    def known(
        self, inputs: Inputs, parts: Mapping[str, Part], groups: pd.Series | str
    ) -> dict[str, clusterings.Clustering]:
        """Read the predictions again if totals by group are known: if every record of theirs has a group."""
        framed = inputs.framed.frame is not None or inputs.framed.dates is not None
        scanned = inputs.reading.scanned(parts.values())
        if isinstance(groups, str) or self.of_entities or framed or scanned:
            return {}
        predictions = {
            n: clusterings.Clustering.of(inputs.reading.read(p, n)[0], f"prediction {n!r}")
            for n, p in parts.items()
        }
        there = groups.index[groups.notna()]
        lacking = max(int((~p.records.isin(there)).sum()) for p in predictions.values())
        self._print_left_out(lacking)
        return {} if lacking else predictions
