"""The PyMC model: sizes, retention and leakage given size, tied by the known number of predicted links."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, field
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from .evidence import Evidence
from .grid import RANK
from .outcomes import Exactness, Leakage, Retention
from .population import Links, unsampled
from .priors import counts, normalised
from .sizes import PredictionInformed, SizeFamily

LOG_PRIOR = "log_prior"
"""Name of the log prior density of the size family, by which its weight on the answer is judged."""

Part = Callable[[Mapping[str, Any]], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class SizeModel:
    """Everything given size: how many entities have each size, and what becomes of them.

    Parameters
    ----------
    sizes : SizeFamily
    retention : Retention
    leakage : Leakage
    exactness : Exactness
    """

    sizes: SizeFamily = field(default_factory=PredictionInformed)
    retention: Retention = field(default_factory=Retention)
    leakage: Leakage = field(default_factory=Leakage)
    exactness: Exactness = field(default_factory=Exactness)

    def entities(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Expected entities of each size, (J,), whose records add to N; the draws among them."""
        weights = self.sizes.log_weights(data)
        log_p = normalised(weights + pt.log(data["selection"]))
        counts("drawn_sizes", data["draws"], log_p, data["drawn"], dims="entity_size")
        of_records = normalised(weights + pt.log(data["size"]))
        free = [v for v in pm.modelcontext(None).free_RVs if v.name.startswith("size_")]
        log_prior = pt.sum(pt.stack([pt.sum(pm.logp(v, v)) for v in free]))
        return {"entities": data["records"] * pt.exp(of_records) / data["size"], LOG_PRIOR: log_prior}

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts, which are independent but for the known number of predicted links."""
        return self.entities, self.retention.given_size, self.leakage.given_size, self.exactness.given_size

    @property
    def structure(self) -> tuple[Any, ...]:
        """What each compiled part depends on: all but data and the parameters of priors."""
        whole = tuple(v for v in astuple(self.sizes) if isinstance(v, int))
        return (type(self.sizes), *whole), type(self.retention), type(self.leakage), type(self.exactness)

    def priors(self, evidence: Evidence) -> dict[str, Any]:
        """Parameters of the priors by name."""
        every = {v.name: v.get_value() for p in self.parts for v in self.part(p, evidence)[0].data_vars}
        return {name: value for name, value in every.items() if name not in evidence.data}

    def part(self, part: Part, evidence: Evidence) -> tuple[pm.Model, dict[str, Any]]:
        """One part as a model of its own, and its quantities by size."""
        with pm.Model(coords=coords(evidence)) as model:
            return model, part(_data(evidence))

    def build(self, evidence: Evidence) -> pm.Model:
        """The whole PyMC model."""
        with pm.Model(coords=coords(evidence)) as model:
            data = _data(evidence)
            by_size = {k: v for part in self.parts for k, v in part(data).items()}
            links = Links.of(unsampled(by_size["entities"], data), by_size, data)
            pm.Normal("log_predicted_links", pt.log(links.predicted), pt.sqrt(links.relative_variance),
                      observed=pt.log(data["predicted_links"]))  # fmt: skip
            pm.Deterministic(LOG_PRIOR, by_size.pop(LOG_PRIOR))
            for name, value in by_size.items():
                pm.Deterministic(f"{name}_by_size", value, dims="entity_size")
        return model


def coords(evidence: Evidence) -> dict[str, Any]:
    """Coordinates of the model's dimensions."""
    data = evidence.data
    smooths = ("size_tilt", "break_tilt", "share_tilt", "meet_tilt", "intrusion_tilt", "stain_tilt")
    return {
        "entity_size": data["size"], "doubling": 2 ** np.arange(len(data["doubling_x"])),
        "intrusion": np.exp2(data["log_intrusion"] + 3), "log_share": ["kept", "lost"],
        **{f"{name}_basis": np.arange(RANK) for name in smooths},
    }  # fmt: skip


OF_SIZE = ("size", "width", "x", "selection", "drawn", "several", "intact", "broken", "intact_all", "clean",
           "entities", "met", "log_predicted", "in_doubling")  # fmt: skip
OF_INTRUSION = ("intrusion_value", "log_exposure", "log_intrusion")
DIMS: dict[str, Any] = {
    **dict.fromkeys(OF_SIZE, "entity_size"), **dict.fromkeys(OF_INTRUSION, "intrusion"),
    "shares": ("entity_size", "log_share"), "doubling_x": "doubling", "met_by_doubling": "doubling",
    "intrusions": ("doubling", "intrusion"),
}  # fmt: skip


def _data(evidence: Evidence) -> dict[str, Any]:
    return {k: pm.Data(k, np.asarray(v), dims=DIMS.get(k)) for k, v in evidence.data.items()}
