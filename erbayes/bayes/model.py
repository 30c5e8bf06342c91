"""The PyMC model: sizes, retention and leakage given size, tied by the known number of predicted links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pymc as pm
import pytensor.tensor as pt

from .contract import LOG_FLAWLESS, Part, Placed, as_pymc, coords, dimensions, tensor, title
from .evidence import Evidence
from .outcomes import Bounded, Exactness, Leakage, Retention
from .parts import COMPILER
from .population import Links, unsampled
from .priors import counts, normalised
from .sizes import PredictionInformed, SizeFamily


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many entities have each size, and how the design finds them.

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
        """Expected entities of each size, (J,), whose records add to N; the draws among them."""
        weights = tensor(self.family.log_weights(data), "log_weights", self.title)
        log_p = normalised(weights + pt.log(data["selection"]))
        counts("drawn_sizes", data["draws"], log_p, data["drawn"], dims="entity_size")
        of_records = normalised(weights + pt.log(data["size"]))
        return {"entities": data["records"] * pt.exp(of_records) / data["size"]}


@dataclass(frozen=True, slots=True)
class SizeModel:
    """Everything given size: how many entities have each size, and what becomes of them.

    Parameters
    ----------
    sizes : SizeFamily
    retention, leakage, exactness : Part
        `Retention`, `Leakage`, `Exactness`, or parts of your own that return the same quantities
        (`contract.RETURNED`).
    bounded : Part
        The prior of every column that lies between bounds where an entity errs: pieces, B³ precision and
        others of `outcomes.BETWEEN`.
    """

    sizes: SizeFamily = field(default_factory=PredictionInformed)
    retention: Part = field(default_factory=Retention)
    leakage: Part = field(default_factory=Leakage)
    exactness: Part = field(default_factory=Exactness)
    bounded: Part = field(default_factory=Bounded)

    @property
    def tied(self) -> dict[str, Part]:
        """The parts that the known number of predicted links ties; they are independent but for that."""
        parts = {"sizes": Sizes(self.sizes), "retention": self.retention, "leakage": self.leakage}
        return {place: Placed(place, part) for place, part in parts.items()}

    @property
    def untied(self) -> dict[str, Part]:
        """The parts that the known number of predicted links does not tie."""
        return {place: Placed(place, getattr(self, place)) for place in ("exactness", "bounded")}

    def build(self, evidence: Evidence) -> pm.Model:
        """The tied parts as one PyMC model."""
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
