"""The size model: sizes of entities, and their errors given size, tied by the known number of links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pymc as pm
import pytensor.tensor as pt

from .._internal.errors import need_object
from .contract import LOG_FLAWLESS, Part, PlacedPart, as_pymc, coords, dimensions, tensor, title
from .evidence import Evidence
from .laws import OneOf, compiled, laws
from .outcomes import Leakage, Retention, Threshold
from .parts import COMPILER
from .population import Links, unsampled
from .priors import Level, Slope, Told, counts, normalised
from .sharing import Shared
from .sizes import PredictionInformed, SizeFamily


@dataclass(frozen=True, slots=True)
class Sizes:
    """The part for sizes: how many entities have each size, and the sizes of the draws."""

    family: SizeFamily

    @property
    def title(self) -> str:
        """Name of the family in messages."""
        return title(self.family)

    def given_size(self, data: Mapping[str, Any]) -> dict[str, Any]:
        weights = tensor(self.family.log_weights(data), "log_weights", self.title)
        log_p = normalised(weights + pt.log(data["selection"]))
        counts("drawn_sizes", data["draws"], log_p, data["drawn"], dims="entity_size")
        of_records = normalised(weights + pt.log(data["size"]))
        return {"entities": data["records"] * pt.exp(of_records) / data["size"]}


SIZES = OneOf(
    {
        "predicted": PredictionInformed(),
        "giants": PredictionInformed(larger_share=Level(-0.5, 1.5), larger_factor=Level(3.0, 1.0)),
    },
    {"predicted": 0.95, "giants": 0.05},
)
"""Default laws of sizes, as predicted or with many records in far larger entities."""
RETENTION = OneOf(
    {
        "usual": Retention(),
        "uneven": Retention(
            precision_level=Level(1.0, 1.0),
            precision_slope=Slope(0.0, 0.3),
            break_slope=Slope(0.1, 0.4),
            share_slope=Slope(0.0, 0.5),
            break_amplitude=1.0,
            share_amplitude=1.0,
        ),
        "threshold": Threshold(),
    },
    {"usual": 0.67, "uneven": 0.3, "threshold": 0.03},
)
"""Default laws of retention.

- usual: small entities show the links that large ones keep
- uneven: large entities keep more or less than small ones show, and differ among each other
- threshold: entities above some size are cut, whatever happens below it
"""


@dataclass(frozen=True, slots=True)
class SizeModel:
    """A model of how many entities have each size, and of their errors given size.

    Parameters
    ----------
    sizes : SizeFamily
        How many entities have each size. It and each of the next two can be one of several laws
        (`OneOf`), as sizes and retention are by default.
    retention, leakage : Part
        Links that an entity keeps, and foreign records that it meets: `Retention` and `Leakage`, or parts of
        your own with the same quantities (`contract.RETURNED`). If leakage is None, no unsampled entity meets
        a foreign record.
    shared : Shared, optional
        What other fits tell of the priors. `after` and `together` fill it.

    Raises
    ------
    DataError
        If a part is a class, or lacks its method.

    Examples
    --------
    >>> from erbayes.bayes import Leakage, SizeModel, Zeta
    >>> model = SizeModel(sizes=Zeta(), leakage=Leakage(unmet=0.2))
    >>> list(model.tied)
    ['sizes', 'retention', 'leakage']
    """

    sizes: SizeFamily | OneOf = field(default_factory=lambda: SIZES)
    retention: Part = field(default_factory=lambda: RETENTION)
    leakage: Part | None = field(default_factory=Leakage)
    shared: Shared | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for place in self._places:
            method = "log_weights" if place == "sizes" else "given_size"
            for part in laws(getattr(self, place)).laws.values():
                need_object(part, method, f"{place} of a SizeModel must have a method {method}")

    @property
    def _places(self) -> list[str]:
        return ["sizes", "retention"] if self.leakage is None else ["sizes", "retention", "leakage"]

    @property
    def tied(self) -> dict[str, Part]:
        """Return the parts that the known number of predicted links ties. Without it they are independent."""
        return {place: self._place_part(place, getattr(self, place)) for place in self._places}

    def _place_part(self, place: str, part: Any) -> Part:
        """Return a part in its place. If it follows one of several laws, each is in that place."""
        placed_laws = laws(part).laws
        if place == "sizes":
            placed_laws = {name: Sizes(family) for name, family in placed_laws.items()}
        told: Mapping[str, Told] = {}
        weights = part.weights if isinstance(part, OneOf) else {}
        if self.shared is not None:
            told, weights = self.shared.told[place], self.shared.weights[place]
        placed = {name: PlacedPart(place, law, told.get(name)) for name, law in placed_laws.items()}
        return OneOf(placed, weights) if isinstance(part, OneOf) else placed[""]

    def compiled(self, data: Mapping[str, Any]) -> dict[str, OneOf]:
        """Return the laws of each tied part, compiled and with these data."""
        return {place: compiled(part, data) for place, part in self.tied.items()}

    def build(self, evidence: Evidence) -> pm.Model:
        """Build one PyMC model of the tied parts."""
        with COMPILER, pm.Model(coords=coords(evidence.data), model=None) as model:
            data = as_pymc(evidence.data)
            by_size = {k: v for part in self.tied.values() for k, v in part.given_size(data).items()}
            rest = unsampled(by_size, data)
            links = Links.of(rest, by_size, data)
            pm.Normal(
                "log_predicted_links",
                pt.log(links.predicted),
                pt.sqrt(links.relative_variance),
                observed=pt.log(data["predicted_links"]),
            )
            for name, value in by_size.items():
                if name != LOG_FLAWLESS:
                    pm.Deterministic(f"{name}_by_size", value, dims=dimensions(name))
        return model


def need_model(model: SizeModel | None) -> SizeModel:
    """Return a model, by default `SizeModel()`, and refuse what is none."""
    model = SizeModel() if model is None else model
    need_object(model, "tied", "a model is an object such as SizeModel()")
    return model
