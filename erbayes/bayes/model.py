"""The size model: sizes of entities, and their errors given size, tied by the known number of links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.tensor.special import log_softmax

from .._internal.errors import need_object
from .contract import Data, ModelPart, PlacedPart, coords, dimensions, tensor, title
from .data import Evidence
from .error_models import Leakage, Retention, Threshold
from .joint import add_mixture
from .model_average import ModelAverage, as_average, compile_part
from .population import TIED, ExpectedLinks, expect_unsampled
from .priors import NormalPrior, StudentTPrior, counts
from .programs import building
from .sizes import PredictionInformed, SizeFamily


@dataclass(frozen=True, slots=True)
class Sizes:
    """The part for sizes: how many entities have each size, and the sizes of the draws."""

    family: SizeFamily

    @property
    def title(self) -> str:
        return title(self.family)

    def given_size(self, data: Mapping[str, Any]) -> dict[str, Any]:
        weights = tensor(self.family.log_weights(data), "log_weights", self.title)
        log_p = log_softmax(weights + pt.log(data["selection"]), axis=-1)
        counts("drawn_sizes", data["draws"], log_p, data["drawn"], dims="entity_size")
        of_records = log_softmax(weights + pt.log(data["size"]), axis=-1)
        return {"entities": data["records"] * pt.exp(of_records) / data["size"]}


SIZES = ModelAverage(
    {
        "predicted": PredictionInformed(),
        "larger": PredictionInformed(
            larger_share=NormalPrior(-0.5, 1.5), larger_factor=NormalPrior(3.0, 1.0)
        ),
    },
    {"predicted": 0.95, "larger": 0.05},
)
"""Default models of sizes, as predicted or with many records in entities far larger than predicted."""
RETENTION = ModelAverage(
    {
        "usual": Retention(),
        "uneven": Retention(
            precision_level=NormalPrior(1.0, 1.0),
            precision_slope=StudentTPrior(0.0, 0.3),
            break_slope=StudentTPrior(0.1, 0.4),
            share_slope=StudentTPrior(0.0, 0.5),
            break_amplitude=1.0,
            share_amplitude=1.0,
        ),
        "threshold": Threshold(),
    },
    {"usual": 0.67, "uneven": 0.3, "threshold": 0.03},
)
"""Default models of retention.

- usual: small entities show the links that large ones keep
- uneven: large entities keep more or less than small ones show, and differ among each other
- threshold: entities above some size are cut, whatever happens below it
"""


@dataclass(frozen=True, slots=True)
class SizeModel:
    """A model of how many entities have each size, and of their errors given size.

    Parameters
    ----------
    sizes : SizeFamily or ModelAverage
        How many entities have each size.
    retention : ModelPart or ModelAverage
        Links that an entity keeps: `Retention`, or a part of your own (`contract.RETURNED`).
    leakage : ModelPart or ModelAverage, optional
        Foreign records that an entity meets. Without it, no unsampled entity meets one.

    Raises
    ------
    DataError
        A part that is a class, or has no method of its place.

    Examples
    --------
    >>> from erbayes.bayes import Leakage, SizeModel, ZetaSizes
    >>> list(SizeModel(sizes=ZetaSizes(), leakage=Leakage(unmet=0.2)).tied)
    ['sizes', 'retention', 'leakage']
    """

    sizes: SizeFamily | ModelAverage = field(default_factory=lambda: SIZES)
    retention: ModelPart = field(default_factory=lambda: RETENTION)
    leakage: ModelPart | None = field(default_factory=Leakage)

    def __post_init__(self) -> None:
        for place in self._places:
            method = "log_weights" if place == "sizes" else "given_size"
            for part in as_average(getattr(self, place)).models.values():
                need_object(part, method, f"{place} of a SizeModel must have a method {method}")

    @property
    def _places(self) -> list[str]:
        return ["sizes", "retention"] if self.leakage is None else ["sizes", "retention", "leakage"]

    @property
    def tied(self) -> dict[str, ModelPart]:
        """Return the parts that are independent except for the known number of predicted links."""
        tied: dict[str, ModelPart] = {}
        for place in self._places:
            part = getattr(self, place)
            placed = {
                name: PlacedPart(place, Sizes(one) if place == "sizes" else one)
                for name, one in as_average(part).models.items()
            }
            tied[place] = ModelAverage(placed, part.weights) if isinstance(part, ModelAverage) else placed[""]
        return tied

    def compile(self, data: Mapping[str, Any]) -> dict[str, ModelAverage]:
        """Return the candidate models of each tied part, compiled and with these data."""
        return {place: compile_part(part, data) for place, part in self.tied.items()}

    def build(self, evidence: Evidence) -> pm.Model:
        """Build one PyMC model of the tied parts with all their candidate models."""
        numbers = evidence.data
        data = Data({name: pt.as_tensor(np.asarray(v)) for name, v in numbers.items()})
        with building(), pm.Model(coords=coords(numbers), model=None) as model:
            by_size: dict[str, Any] = {}
            for place, part in self.tied.items():
                by_size |= add_mixture(place, as_average(part), data)
            for name in ("intact", *TIED):
                if name in by_size:
                    by_size[name] = pm.Deterministic(f"{name}_by_size", by_size[name], dims=dimensions(name))
            links = ExpectedLinks.of(expect_unsampled(by_size, data), by_size, data)
            pm.Normal(
                "log_predicted_links",
                pt.log(links.predicted),
                pt.sqrt(links.relative_variance),
                observed=np.log(numbers["predicted_links"]),
            )
            pm.Deterministic("expected_precision", links.common / links.predicted)
            pm.Deterministic("expected_recall", links.common / links.true)
        return model


def need_model(model: SizeModel | None) -> SizeModel:
    """Return a model, by default `SizeModel()`, and refuse what is none."""
    model = SizeModel() if model is None else model
    need_object(model, "tied", "a model is an object such as SizeModel()")
    return model
