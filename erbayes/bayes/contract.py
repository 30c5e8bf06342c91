"""The contract of a part: the data that it receives, and the quantities that it must return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from .._internal.errors import DataError
from .grid import RANK
from .told import Told

LOG_FLAWLESS = "log_flawless"
"""Name of the log joint density of the data and of a population without any error of the part's kind."""


@dataclass(frozen=True, slots=True)
class Datum:
    """One entry of the data that a part receives; `dims` is empty for a single number."""

    meaning: str
    dims: tuple[str, ...] = ()


BIN, DOUBLING, INTRUSION, LEFT = "entity_size", "doubling", "intrusion", "cluster_left"
"""Names of the dimensions for bins of entity sizes, doublings of size, and foreign records per record.

The last is for clusters of a second clustering that can match an unsampled entity: bins of those without
guests, and bins of those with guests.
"""

DATA: dict[str, Datum] = {
    "size": Datum("mean size of an entity in the bin, in records", (BIN,)),
    "width": Datum("number of whole sizes in the bin", (BIN,)),
    "x": Datum("log2 of `size`, in doublings", (BIN,)),
    "basis": Datum("functions of `x` for `smooth`, of unit variance", (BIN, "function")),
    "in_doubling": Datum("position of the bin's doubling: 0 for size 1, 1 for sizes 2 and 3", (BIN,)),
    "sampled": Datum("positions of the bins with a sampled entity", ("sampled_size",)),
    "centre": Datum("mean log2 size of the sampled entities, in doublings"),
    "selection": Datum("chance that one draw selects an entity of this size, up to a factor", (BIN,)),
    "repeats": Datum("1 if an entity can be drawn twice, 0 if not"),
    "fixed_size": Datum("1 if the number of draws was fixed beforehand, 0 if not"),
    "records": Datum("records of the whole prediction, N"),
    "predicted_links": Datum("pairs of records in one predicted cluster, whole prediction; at least 1/2"),
    "log_predicted": Datum("log of the smoothed number of predicted clusters in the bin", (BIN,)),
    "log_biased_mean": Datum("log of the mean size of a random record's predicted cluster, in records"),
    "draws": Datum("number of draws"),
    "drawn": Datum("draws in the bin, repeats counted", (BIN,)),
    "entities": Datum("distinct sampled entities in the bin", (BIN,)),
    "several": Datum("sampled entities of two records or more", (BIN,)),
    "intact": Datum("those of `several` with all records in one predicted cluster", (BIN,)),
    "broken": Datum("sampled entities of three records or more that are not intact", (BIN,)),
    "shares": Datum(
        "sums over `broken` of log w and log(1 - w), w the share of links kept of the most possible",
        (BIN, "log_share"),
    ),
    "intact_all": Datum("sampled entities with all records in one predicted cluster", (BIN,)),
    "clean": Datum("those of `intact_all` that meet no foreign record", (BIN,)),
    "met": Datum("sampled entities that share a predicted cluster with a foreign record", (BIN,)),
    "intrusions": Datum("entities of `met` by foreign records per record", (DOUBLING, INTRUSION)),
    "met_by_doubling": Datum("entities of `met`", (DOUBLING,)),
    "doubling_x": Datum("middle of the doubling, as log2 of records", (DOUBLING,)),
    "sampled_doublings": Datum("positions of the doublings with a sampled entity", ("sampled_doubling",)),
    "intrusion_value": Datum("mean number of foreign records that a record meets, in the bin", (INTRUSION,)),
    "log_intrusion": Datum("log2 of the bin's foreign records per record, minus 3", (INTRUSION,)),
    "log_exposure": Datum(
        "log of the smoothed number of records with so many other records in their predicted cluster",
        (INTRUSION,),
    ),
    "intrusion_basis": Datum(
        "functions of `log_intrusion` for `smooth`, of unit variance", (INTRUSION, "function")
    ),
    "sampled_records": Datum("records of the sampled entities"),
    "sampled_true_links": Datum("pairs of records of one sampled entity"),
    "sampled_common_links": Datum("those of `sampled_true_links` in one predicted cluster"),
    "sampled_foreign": Datum(
        "pairs of a sampled entity's record with a foreign one in its predicted cluster"
    ),
}
"""The data that every part receives, by name."""

BOUNDED_DATA: dict[str, Datum] = {
    "bounded_count": Datum("sampled entities that err and can vary in the column", (BIN,)),
    "bounded_shares": Datum(
        "sums over them of log w and log(1 - w), w the share of the way from the lower bound to the upper",
        (BIN, "log_share"),
    ),
    "bounded_steps": Datum("steps between the bounds: k of them are w = (k + 1/2)/(steps + 1)", (BIN,)),
}
"""The additional data of a part in the place `bounded`, of one column that lies between bounds."""

SECOND_DATA: dict[str, Datum] = {
    "second": Datum("clusters of the second clustering in the bin", (BIN,)),
    "second_records": Datum("their records", (BIN,)),
    "sampled_entities": Datum("distinct sampled entities", (BIN,)),
    "matched": Datum("distinct sampled entities that match one of these clusters", (BIN,)),
    "out_of_reach": Datum("1 if no sampled entity of this size or larger matches a cluster, else 0", (BIN,)),
    "left": Datum("clusters that can match an unsampled entity", (LEFT,)),
    "left_records": Datum("records of the clusters left", (LEFT,)),
    "left_true": Datum("pairs of records in one cluster left", (LEFT,)),
    "left_common": Datum("those of `left_true` in one predicted cluster", (LEFT,)),
    "guests": Datum(
        "sampled entities without a match that have most of their records in one of them", (LEFT,)
    ),
    "guest_rate": Datum("distinct sampled entities per record"),
    "foreign_share": Datum("share of the records of matched clusters that are not of the entity"),
    "pair_difference": Datum(
        "logs of the ratios of matched entities to their clusters: of true links and of kept shares",
        ("pair",),
    ),
    "pair_error": Datum("standard errors of `pair_difference`", ("pair",)),
    "pair_change": Datum("share of the records of matched entities by which these and their clusters differ"),
    "pair_centre": Datum("mean log2 size of the entity of a true link of matched entities, in doublings"),
}
"""The additional data of every part if the model has a second clustering."""

ALL_DATA = DATA | BOUNDED_DATA | SECOND_DATA


@dataclass(frozen=True, slots=True)
class Quantity:
    """A quantity that a part must return, between 0 and `most`."""

    meaning: str
    most: float = np.inf
    dims: tuple[str, ...] = (BIN,)


RETURNED: dict[str, dict[str, Quantity]] = {
    "sizes": {"entities": Quantity("expected entities in the bin, whose records add to N")},
    "retention": {
        "intact": Quantity("chance that all records are in one predicted cluster; 1 for size 1", 1.0),
        "kept": Quantity("mean share of an entity's links that the prediction keeps; 1 for size 1", 1.0),
        "kept_square": Quantity("mean square of that share", 1.0),
        "share_mean": Quantity("mean of w, the share in `shares` of a broken entity, beta distributed", 1.0),
        "share_precision": Quantity("precision of w: the sum of the parameters of its beta distribution"),
    },
    "leakage": {
        "met": Quantity("chance to share a predicted cluster with a foreign record", 1.0),
        "foreign": Quantity(
            "mean number of foreign records per record, 0 for entities that meet none included"
        ),
        "foreign_square": Quantity("mean square of that number"),
        "intrusion_chance": Quantity(
            "chance of each number of foreign records per record, given that there are some",
            1.0,
            (DOUBLING, INTRUSION),
        ),
    },
    "exactness": {"clean": Quantity("chance that an intact entity meets no foreign record", 1.0)},
    "bounded": {"bounded_mean": Quantity("mean of w, as in `bounded_shares`", 1.0)},
}
"""The quantities that a part must return, by its place in the model."""

BY_SECOND: dict[str, Quantity] = {
    "stands_left": Quantity("chance that a cluster left stands for an entity", 1.0, (LEFT,)),
    "stands_true": Quantity("true links of this entity per link of the cluster", dims=(LEFT,)),
    "stands_kept": Quantity("kept share of this entity per kept share of the cluster", dims=(LEFT,)),
}
"""Further quantities of sizes if there is a second clustering."""


class Part(Protocol):
    """One component of a size model: random variables, a likelihood, and quantities by size."""

    def given_size(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Create random variables and a likelihood in a PyMC model, and return quantities by size."""
        ...


@dataclass(frozen=True, slots=True)
class PlacedPart:
    """A part in its place in the model, a key of `RETURNED`; it checks that no quantity is missing.

    `told` takes the place of its prior, if other fits tell of it.
    """

    place: str
    part: Part
    told: Told | None = None

    @property
    def title(self) -> str:
        """Name of the part in messages."""
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
    """The data inside a PyMC model. An unknown name raises DataError."""

    def __missing__(self, name: str) -> Any:
        raise DataError(f"no data are called {name!r}; a part receives {', '.join(self)}")


def as_pymc(data: Mapping[str, Any]) -> Data:
    """Add the data to the current PyMC model, and return them as tensors by name."""
    return Data({k: pm.Data(k, np.asarray(v), dims=ALL_DATA[k].dims or None) for k, v in data.items()})


def coords(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the coordinates of a model's dimensions."""
    return {
        BIN: data["size"],
        LEFT: np.arange(2 * len(data["size"])),
        "sampled_size": data["size"][data["sampled"]],
        DOUBLING: 2 ** np.arange(len(data["doubling_x"])),
        "sampled_doubling": 2 ** data["sampled_doublings"],
        INTRUSION: np.exp2(data["log_intrusion"] + 3),
        "log_share": ["kept", "lost"],
        "pair": ["true", "kept"],
        "function": np.arange(RANK),
    }


def sampled_bins(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of the bins with sampled entities, which are enough for a likelihood given size."""
    by_size = {name for name, datum in ALL_DATA.items() if datum.dims[:1] == (BIN,)}
    return {k: v[data["sampled"]] if k in by_size else v for k, v in data.items()}


def tensor(value: Any, name: str, part: str) -> Any:
    """Convert the quantity `name` of a part to a tensor, and check its number of dimensions."""
    quantity, dims = pt.as_tensor(value), dimensions(name)
    # a length of 1 would be broadcast over all bins without a word
    if quantity.ndim != len(dims) or 1 in quantity.type.shape:
        raise DataError(f"'{name}' of {part} has shape {quantity.type.shape}: its dimensions must be {dims}")
    return quantity


def dimensions(name: str) -> tuple[str, ...]:
    """Return the dimensions of a quantity. If no place needs it, it has one value per bin of size."""
    places = (*RETURNED.values(), BY_SECOND)
    return next((place[name].dims for place in places if name in place), (BIN,))


ROUNDING = 1e-9
"""Chances may exceed 1 by this much."""


def check(values: Mapping[str, Any], lengths: Mapping[str, int], part: str) -> None:
    """Refuse values of a part, at its start, with a wrong shape, out of their limits or not finite."""
    most = {name: quantity.most for place in RETURNED.values() for name, quantity in place.items()}
    for name, value in values.items():
        shape = tuple(lengths[dim] for dim in dimensions(name))
        if value.shape != shape:
            raise DataError(
                f"'{name}' of {part} has shape {value.shape}, not {shape}: its dimensions must be "
                f"{dimensions(name)}"
            )
        if not np.isfinite(value).all():
            raise DataError(
                f"'{name}' of {part} is not finite in {(~np.isfinite(value)).sum()} of {value.size} places"
            )
        if name in most and not ((value >= 0) & (value <= most[name] + ROUNDING)).all():
            raise DataError(
                f"'{name}' of {part} runs from {value.min():.4g} to {value.max():.4g}: "
                f"it must lie between 0 and {most[name]:g}"
            )
