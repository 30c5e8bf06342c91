"""Options of the way in which the labelled units were drawn."""

from __future__ import annotations

from dataclasses import fields
from enum import Enum
from pathlib import Path
from typing import Any

import erbayes as eb

from .._internal.errors import DataError, head
from .lazily import ids, pd
from .options import file_option, name_options, option, panel
from .tables import read_named


class DesignName(Enum):
    UNIFORM_RECORDS = "uniform-records"
    DISTINCT_ENTITIES = "distinct-entities"
    UNIFORM_CLUSTERS = "uniform-clusters"
    KNOWN_WEIGHTS = "known-weights"
    STRATIFIED = "stratified"


TAKES = {
    DesignName.UNIFORM_RECORDS: ["drawn", "population"],
    DesignName.DISTINCT_ENTITIES: ["draws", "population"],
    DesignName.UNIFORM_CLUSTERS: ["drawn", "population"],
    DesignName.KNOWN_WEIGHTS: ["drawn", "population", "weights"],
    DesignName.STRATIFIED: ["strata", "populations"],
}
"""Options of each design."""
NEEDED = {"draws", "weights", "strata", "populations"}
"""Options that a design needs if it takes them."""


@panel("Design")
class Drawing:
    """Options of the way in which the labelled units were drawn."""

    design: DesignName | None = option(
        "How the labelled units were drawn. Not for a folder: it knows.", "-d", metavar="DESIGN"
    )
    drawn: Path | None = file_option("File of one column: the unit of each draw.")
    draws: int | None = option("Number of records that were drawn.", min=1, metavar="NUMBER")
    population: int | None = option("Number of records or units to draw from.", min=1, metavar="NUMBER")
    weights: Path | None = file_option("File of units and their weights.", rare=True)
    strata: Path | None = file_option("File of units and their strata.", rare=True)
    populations: Path | None = file_option("File of strata and their numbers of units.", rare=True)

    @property
    def given(self) -> list[str]:
        """Names of the options that have a value, without --design."""
        return [f.name for f in fields(self) if f.name != "design" and getattr(self, f.name) is not None]

    @property
    def in_words(self) -> str:
        """Return the options that have a value, with their values; "" if there is none."""
        design = [] if self.design is None else [f"--design {self.design.value}"]
        return " ".join([*design, *(f"--{name} {getattr(self, name)}" for name in self.given)])

    def read(self) -> eb.design.contract.Design:
        """Make the design, and read the files that it needs."""
        if self.design is None:
            raise DataError(
                f"--design is needed, one of {', '.join(name.value for name in DesignName)}: how were the "
                "labelled units drawn? Only a folder of erbayes draw needs no design"
            )
        options = TAKES[self.design]
        if foreign := [option for option in self.given if option not in options]:
            wrong, right = name_options(foreign), name_options(options)
            raise DataError(f"--design {self.design.value} does not take {wrong}; it takes {right}")
        needed = [option for option in options if option in NEEDED]
        if not set(needed) <= set(self.given):
            raise DataError(f"--design {self.design.value} needs {name_options(needed, ' and ')}")
        files: Any = self
        units = None if self.drawn is None else list(read_named(self.drawn, 1).iloc[:, 0])
        match self.design:
            case DesignName.UNIFORM_RECORDS:
                return eb.design.UniformRecords(units, self.population)
            case DesignName.UNIFORM_CLUSTERS:
                return eb.design.UniformClusters(self.population, units)
            case DesignName.DISTINCT_ENTITIES:
                return eb.design.DistinctEntities(files.draws, self.population)
            case DesignName.KNOWN_WEIGHTS:
                return eb.design.KnownWeights(
                    numbers(files.weights, "unit", "weight"), units, self.population
                )
            case DesignName.STRATIFIED:
                of_strata = numbers(files.populations, "stratum", "number", whole=True)
                sizes = {str(h): int(n) for h, n in of_strata.items()}
                return eb.design.Stratified(keyed(files.strata, "unit", "stratum"), sizes)


def keyed(path: Path, key: str, value: str) -> pd.Series:
    """Read a file of two columns as a Series of the second, indexed by the unique ids of the first."""
    frame = read_named(path, 2)
    key, value = frame.columns
    keys = ids.ids(frame[key], f"{path}, column {key!r}")
    if not keys.is_unique:
        twice = keys[keys.duplicated()]
        raise DataError(f"{path}: {len(twice)} ids are listed twice, such as {head(twice)}")
    return pd.Series(ids.ids(frame[value], f"{path}, column {value!r}"), index=keys, name=value)


def numbers(path: Path, key: str, value: str, whole: bool = False) -> pd.Series:
    """Read a file as `keyed` does, with numbers in the second column."""
    text = keyed(path, key, value)
    if pd.notna(pd.to_numeric(str(text.name), errors="coerce")):
        raise DataError(
            f"{path}: {text.name!r} is the name of its second column: is the first line a row of data? It "
            f"must name the columns, such as {key},{value}"
        )
    parsed = pd.to_numeric(text, errors="coerce")
    wrong = parsed.isna() | (whole & (parsed % 1 != 0))
    if wrong.any():
        kind, where = "whole numbers" if whole else "numbers", f"{path}, column {text.name!r}"
        example = f"{text[wrong].iloc[0]!r} of {text.index[wrong][0]!r}"
        raise DataError(f"{where}: {wrong.sum()} of {len(wrong)} are not {kind}, such as {example}")
    return parsed.astype("int64") if whole else parsed
