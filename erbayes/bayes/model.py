"""The size model: sizes of entities, links that they keep, and mates that are right, tied by common links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.tensor.special import log_softmax

from .._internal.arrays import FloatArray
from .._internal.errors import need_object
from .contract import RETURNED, Data, ModelPart, PlacedPart, coords, dimensions, tensor, title
from .data import Evidence
from .error_models import Mates, Retention
from .population import ExpectedLinks, expect_unsampled
from .priors import counts
from .programs import CompiledPart, building
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


@dataclass(frozen=True, slots=True)
class SizeModel:
    """A model of how many entities have each size, of the links that they keep, and of mates that are right.

    Parameters
    ----------
    sizes : SizeFamily
        How many entities have each size.
    retention : ModelPart
        Links that an entity keeps: `Retention`, or a part of your own (`contract.RETURNED`).
    mates : ModelPart
        Mates in predicted clusters that are of one entity: `Mates`, or a part of your own. Precision depends
        on this part alone.

    Raises
    ------
    DataError
        A part that is a class, or has no method of its place.

    Examples
    --------
    >>> from erbayes.bayes import Mates, SizeModel, ZetaSizes
    >>> list(SizeModel(sizes=ZetaSizes(), mates=Mates(all_right=0.2)).tied)
    ['sizes', 'retention', 'mates']
    """

    sizes: SizeFamily = field(default_factory=PredictionInformed)
    retention: ModelPart = field(default_factory=Retention)
    mates: ModelPart = field(default_factory=Mates)

    def __post_init__(self) -> None:
        for place in RETURNED:
            method = "log_weights" if place == "sizes" else "given_size"
            need_object(getattr(self, place), method, f"{place} of a SizeModel must have a method {method}")

    @property
    def tied(self) -> dict[str, PlacedPart]:
        """Return the parts, which are independent but for the number of common links."""
        parts = {"sizes": Sizes(self.sizes), "retention": self.retention, "mates": self.mates}
        return {place: PlacedPart(place, part) for place, part in parts.items()}

    def compile(self, data: Mapping[str, Any]) -> dict[str, CompiledPart]:
        """Return the parts, compiled and with these data."""
        return {place: CompiledPart.of(part, data) for place, part in self.tied.items()}

    def build(self, evidence: Evidence, log_common: FloatArray) -> pm.Model:
        """Build one PyMC model of the parts, given posterior draws of the log number of common links.

        Sizes and retention observe the mean and variance of these, so that nothing of them moves precision.
        """
        numbers = evidence.data
        data = Data({name: pt.as_tensor(np.asarray(v)) for name, v in numbers.items()})
        with building(), pm.Model(coords=coords(numbers), model=None) as model:
            by_size: dict[str, Any] = {}
            for part in self.tied.values():
                by_size |= part.given_size(data)
            for name in ("entities", "intact", "kept", "kept_square", "mates_right"):
                by_size[name] = pm.Deterministic(f"{name}_by_size", by_size[name], dims=dimensions(name))
            links = ExpectedLinks.of(expect_unsampled(by_size, data), by_size, data)
            pm.Normal(
                "log_common_links",
                pt.log(links.common),
                pt.sqrt(links.relative_variance + np.var(log_common)),
                observed=np.mean(log_common),
            )
            right = numbers["sampled_common_links"] + numbers["unlabelled_links"] @ by_size["mates_right"]
            pm.Deterministic("expected_precision", right / max(evidence.predicted_links, 0.5))
            pm.Deterministic("expected_recall", links.common / links.true)
        return model


def need_model(model: SizeModel | None) -> SizeModel:
    """Return a model, by default `SizeModel()`, and refuse what is none."""
    model = SizeModel() if model is None else model
    need_object(model, "tied", "a model is an object such as SizeModel()")
    return model
