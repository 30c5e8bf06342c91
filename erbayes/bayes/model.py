"""The size model: sizes of entities, and their errors given size, tied by the known number of links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pymc as pm
import pytensor.tensor as pt

from .contract import LOG_FLAWLESS, Part, PlacedPart, as_pymc, coords, dimensions, tensor, title
from .evidence import Evidence
from .outcomes import Bounded, Exactness, Leakage, Retention
from .parts import COMPILER
from .population import Links, unsampled
from .priors import counts, normalised
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


@dataclass(frozen=True, slots=True)
class SizeModel:
    """A model of how many entities have each size, and of their errors given size.

    Parameters
    ----------
    sizes : SizeFamily
        How many entities have each size.
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

    sizes: SizeFamily = field(default_factory=PredictionInformed)
    retention: Part = field(default_factory=Retention)
    leakage: Part = field(default_factory=Leakage)
    exactness: Part = field(default_factory=Exactness)
    bounded: Part = field(default_factory=Bounded)

    @property
    def tied(self) -> dict[str, Part]:
        """The parts that the known number of predicted links ties. Without it they are independent."""
        parts = {"sizes": Sizes(self.sizes), "retention": self.retention, "leakage": self.leakage}
        return {place: PlacedPart(place, part) for place, part in parts.items()}

    @property
    def untied(self) -> dict[str, Part]:
        """The parts that the known number of predicted links does not tie."""
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
