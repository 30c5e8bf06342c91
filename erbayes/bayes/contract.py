"""What a part of a size model receives and must return: grids of sizes, the data, and its quantities."""

from __future__ import annotations

from collections.abc import Mapping
from csv import DictReader
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pytensor.tensor as pt

from .._internal.arrays import FloatArray, IntArray
from .._internal.errors import DataError

SINGLE = 8
"""Each size below this has a bin of its own."""
PER_DOUBLING = 3
"""Bins per doubling of larger sizes, narrower than the kernel of histograms. Six move ends as a seed does."""
LENGTH = 2.5
"""Length scale of smooth functions, in doublings."""
RANK = 5
"""Number of basis functions of a smooth function."""


@dataclass(frozen=True, slots=True, eq=False)
class SizeGrid:
    """Bins of entity sizes: the least size, the mean size in records, and the number of sizes, (J,) each."""

    lower: FloatArray
    size: FloatArray
    width: FloatArray

    @classmethod
    def up_to(cls, top: float) -> SizeGrid:
        """Make bins for all sizes from 1 to `top`, and possibly some above."""
        return _make_grid(int(np.ceil(PER_DOUBLING * np.log2((max(top, SINGLE) + 1) / SINGLE))) + 1)

    def bin(self, size: FloatArray) -> IntArray:
        """Return the bin of each size."""
        return np.searchsorted(self.lower, size, side="right") - 1

    @property
    def x(self) -> FloatArray:
        return np.asarray(np.log2(self.size))


@lru_cache
def _make_grid(coarse: int) -> SizeGrid:
    """Return a grid with this number of bins of more than one size."""
    upwards = np.round(SINGLE * 2 ** (np.arange(coarse + 1) / PER_DOUBLING))
    edges = np.concatenate([np.arange(1.0, SINGLE), upwards])
    lower, upper = edges[:-1], edges[1:]
    grid = SizeGrid(lower, (lower + upper - 1) / 2, upper - lower)
    for values in (grid.lower, grid.size, grid.width):
        values.setflags(write=False)
    return grid


def basis(x: FloatArray, rank: int = RANK) -> FloatArray:
    """Return smooth functions on a grid x, in doublings, (J, rank), of unit variance when added.

    They are the leading eigenfunctions of a squared-exponential Gaussian process, times √eigenvalue.
    """
    return _make_basis(tuple(x), rank)


@lru_cache
def _make_basis(points: tuple[float, ...], rank: int) -> FloatArray:
    x = np.array(points)
    values, vectors = np.linalg.eigh(np.exp(-0.5 * ((x[:, None] - x) / LENGTH) ** 2))
    leading = vectors[:, -rank:] * np.sqrt(values[-rank:])
    # on long grids, too few functions would have a variance below 1
    functions = np.asarray(leading / np.sqrt((leading**2).sum(axis=1, keepdims=True)))
    functions.setflags(write=False)
    return functions


LOG_FLAWLESS = "log_flawless"
"""Name of the log joint density of the data and of a population without any error of the part's kind."""


@dataclass(frozen=True, slots=True)
class Datum:
    """An entry of the data of a part, or of what it returns, which is then from 0 to `most`."""

    meaning: str
    dims: tuple[str, ...]
    most: float


def read_entries(group: str) -> dict[str, Datum]:
    """Return the entries of a group of contract.csv, by name."""
    text = Path(__file__).with_name("contract.csv").read_text(encoding="utf-8")
    rows = [row for row in DictReader(text.splitlines()) if row["group"] == group]
    return {
        row["name"]: Datum(row["meaning"], tuple(row["dimensions"].split()), float(row["most"] or np.inf))
        for row in rows
    }


DATA = read_entries("data")
"""The data of every part, by name."""
RETURNED = {place: read_entries(place) for place in ("sizes", "retention", "mates")}
"""The quantities that a part must return, by its place in the model."""
QUANTITIES = {name: quantity for group in RETURNED.values() for name, quantity in group.items()}


class ModelPart(Protocol):
    """One component of a size model: random variables, a likelihood, and quantities by size."""

    def given_size(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Create random variables and a likelihood in a PyMC model, and return quantities by size."""
        ...


@dataclass(frozen=True, slots=True)
class PlacedPart:
    """A part in its place in the model, a key of `RETURNED`."""

    place: str
    part: ModelPart

    @property
    def title(self) -> str:
        return title(self.part)

    def given_size(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Return the quantities of the part, and refuse a part that leaves one out."""
        returned, needed = self.part.given_size(data), RETURNED[self.place]
        missing = [name for name in needed if name not in returned]
        if missing:
            raise DataError(
                f"{self.title}.given_size returns no {', '.join(map(repr, missing))}: as {self.place} of a "
                f"SizeModel it must return {', '.join(needed)}, one value per bin of size each"
            )
        return returned


def title(part: Any) -> str:
    """Return the name of a part in messages."""
    return str(getattr(part, "title", type(part).__name__))


class Data(dict[str, Any]):
    """The data inside a PyMC model."""

    def __missing__(self, name: str) -> Any:
        raise DataError(f"no data are called {name!r}; a part receives {', '.join(self)}")


def coords(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the coordinates of a model's dimensions."""
    return {
        "entity_size": data["size"],
        "sampled_size": data["size"][data["sampled"]],
        "cluster_size": data["size"][: len(data["asked"])],
        "log_share": ["kept", "lost"],
        "function": np.arange(RANK),
    }


def sampled_bins(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of the bins with sampled entities, which are enough for a likelihood given size."""
    by_size = {name for name, datum in DATA.items() if datum.dims[:1] == ("entity_size",)}
    return {k: v[data["sampled"]] if k in by_size else v for k, v in data.items()}


def dimensions(name: str) -> tuple[str, ...]:
    """Return the dimensions of a quantity. If no place needs it, it has one value per bin of size."""
    return QUANTITIES[name].dims if name in QUANTITIES else ("entity_size",)


def tensor(value: Any, name: str, part: str) -> Any:
    """Convert the quantity `name` of a part to a tensor, and check its number of dimensions."""
    quantity, dims = pt.as_tensor(value), dimensions(name)
    # a length of 1 would be broadcast over all bins without a word
    if quantity.ndim != len(dims) or 1 in quantity.type.shape:
        raise DataError(f"'{name}' of {part} has shape {quantity.type.shape}: its dimensions must be {dims}")
    return quantity


ROUNDING = 1e-9
"""Probabilities may exceed 1 by this much."""


def check_values(values: Mapping[str, Any], lengths: Mapping[str, int], part: str) -> None:
    """Refuse values of a part, at its start, with a wrong shape, outside their limits or not finite."""
    for name, value in values.items():
        dims, most = dimensions(name), QUANTITIES[name].most if name in QUANTITIES else None
        shape, bad = tuple(lengths[dim] for dim in dims), ~np.isfinite(value)
        if value.shape != shape:
            wrong = f"has shape {value.shape}, not {shape}: its dimensions must be {dims}"
        elif bad.any():
            wrong = f"is not finite in {bad.sum()} of {value.size} places"
        elif most is not None and not ((value >= 0) & (value <= most + ROUNDING)).all():
            limits = f"it must lie between 0 and {most:g}"
            wrong = f"runs from {value.min():.4g} to {value.max():.4g}: {limits}"
        else:
            continue
        raise DataError(f"'{name}' of {part} {wrong}")
