"""The size model: sizes of entities, and their errors given size, tied by the known number of links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pymc as pm
import pytensor.tensor as pt

from .contract import LOG_FLAWLESS, Part, PlacedPart, as_pymc, coords, dimensions, tensor, title
from .evidence import Evidence
from .laws import OneOf, laws
from .outcomes import Bounded, Exactness, Leakage, Retention
from .parts import COMPILER
from .population import Links, unsampled
from .priors import Level, Slope, counts, normalised
from .sizes import PredictionInformed, SizeFamily


@dataclass(frozen=True, slots=True)
class Sizes:
    """The part for sizes: how many entities have each size, and the sizes of the draws.

    Parameters
    ----------
    family : SizeFamily
    """

    family: SizeFamily

    @property
    def title(self) -> str:
        """Name of the family in messages."""
        return title(self.family)

    def given_size(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Create the part in a PyMC model, and return the expected number of entities by size, (J,)."""
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
            precision_level=Level(1.0, 0.8),
            precision_slope=Slope(0.0, 0.15),
            break_slope=Slope(0.1, 0.2),
            share_slope=Slope(0.0, 0.3),
            break_amplitude=0.4,
            share_amplitude=0.6,
        ),
        "bounded": Retention(
            precision_level=Level(1.2, 0.8),
            precision_slope=Slope(0.0, 0.1),
            break_slope=Slope(0.5, 0.25),
            share_slope=Slope(-0.6, 0.2),
            break_amplitude=0.8,
        ),
    },
    {"usual": 0.88, "uneven": 0.1, "bounded": 0.02},
)
"""Default laws of retention.

- usual: small entities show the links that large ones keep
- uneven: large entities keep more or less than small ones show, and differ among each other
- bounded: pieces are not larger in larger entities, so that giants keep next to nothing
"""


@dataclass(frozen=True, slots=True)
class SizeModel:
    """A model of how many entities have each size, and of their errors given size.

    Parameters
    ----------
    sizes : SizeFamily
        How many entities have each size. It and each of the next three can be one of several laws
        (`OneOf`), as sizes and retention are by default.
    retention, leakage, exactness : Part
        Links that an entity keeps, foreign records that it meets, and whether it is exactly predicted. They
        are `Retention`, `Leakage` and `Exactness`, or parts of your own with the same quantities
        (`contract.RETURNED`).
    bounded : Part
        Columns that lie between bounds if an entity errs: pieces, B³ precision and others of
        `outcomes.BETWEEN`.

    Examples
    --------
    >>> from erbayes.bayes import Leakage, SizeModel, Zeta
    >>> model = SizeModel(sizes=Zeta(), leakage=Leakage(unmet=0.2))
    >>> list(model.tied), list(model.untied)
    (['sizes', 'retention', 'leakage'], ['exactness', 'bounded'])
    """

    sizes: SizeFamily | OneOf = field(default_factory=lambda: SIZES)
    retention: Part = field(default_factory=lambda: RETENTION)
    leakage: Part = field(default_factory=Leakage)
    exactness: Part = field(default_factory=Exactness)
    bounded: Part = field(default_factory=Bounded)

    @property
    def tied(self) -> dict[str, Part]:
        """Return the parts that the known number of predicted links ties. Without it they are independent."""
        return {
            place: self._placed(place, getattr(self, place)) for place in ("sizes", "retention", "leakage")
        }

    @staticmethod
    def _placed(place: str, part: Any) -> Part:
        """Return a part in its place. If it follows one of several laws, each is in that place."""
        family = place == "sizes"
        placed = {k: PlacedPart(place, Sizes(v) if family else v) for k, v in laws(part).laws.items()}
        return OneOf(placed, part.weights) if isinstance(part, OneOf) else placed[""]

    @property
    def untied(self) -> dict[str, Part]:
        """Return the parts that the known number of predicted links does not tie."""
        return {place: PlacedPart(place, getattr(self, place)) for place in ("exactness", "bounded")}

    def build(self, evidence: Evidence) -> pm.Model:
        """Build one PyMC model of the tied parts."""
        with COMPILER, pm.Model(coords=coords(evidence.data), model=None) as model:
            data = as_pymc(evidence.data)
            by_size = {k: v for part in self.tied.values() for k, v in part.given_size(data).items()}
            links = Links.of(unsampled(by_size["entities"], data), by_size, data)
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
