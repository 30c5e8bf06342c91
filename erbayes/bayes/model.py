"""The size model: sizes of entities, and their errors given size, tied by the known number of links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from .._internal.errors import DataError, need, need_object
from ..auxiliary.second import Second
from .contract import LOG_FLAWLESS, Part, PlacedPart, as_pymc, coords, dimensions, tensor, title
from .evidence import Evidence
from .laws import OneOf, compiled, laws
from .outcomes import Leakage, Retention, Threshold, curve
from .parts import COMPILER
from .population import Links, unsampled
from .priors import Level, Prior, Slope, Told, counts, normalised, variable
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


@dataclass(frozen=True, slots=True)
class WithSecond:
    """The part for sizes if there is a second clustering: its clusters that stand for entities, and the rest.

    A cluster of s records stands for an entity with probability 1/(1 + exp(h(s))), h being a curve in log2 s,
    and `single` for single records. Clusters larger than all that are matched stand less often, by a share
    whose logit is the `doubt`. A cluster that stands for none is a `crowd` of many entities, or a few large
    ones. Guests are Poisson with mean r s in a crowd and r φ s elsewhere, for r sampled entities per record
    and the share φ of foreign records, whose logit differs by `foreign` from that among matched pairs.

    Of the other records, a share ε of all, 1 - ε have the sizes of predicted clusters and the rest those of
    the `family`, which so holds alone if no cluster stands. True links and kept shares of an entity and its
    cluster have log ratios of mean `difference`, which may `change` per doubling as much as pairs differ in
    records.
    """

    family: SizeFamily
    single: Prior = Level(-1.5, 2.0)
    level: Prior = Level(-1.5, 2.0)
    slope: Prior = Slope(-0.2, 0.2)
    amplitude: float = 0.5
    doubt: Prior = Level(-2.0, 3.0)
    difference: Prior = Slope(0.0, 0.1)
    change: Prior = Slope(0.0, 0.3)
    foreign: Prior = Level(0.0, 1.0)
    crowd: Prior = Level(-2.0, 2.0)

    @property
    def title(self) -> str:
        """Name of the family in messages."""
        return title(self.family)

    def given_size(self, data: Mapping[str, Any]) -> dict[str, Any]:
        h = curve("fails", self.level, variable(self.slope, "fails_slope"), self.amplitude)
        single = variable(self.single, "fails_single")
        log_odds = pt.switch(data["size"] > 1, h(data), single)
        doubt = pm.math.sigmoid(variable(self.doubt, "fails_out_of_reach"))
        stands = pm.math.sigmoid(-log_odds) * (1 - doubt * data["out_of_reach"])
        size, standing = data["size"], data["second"] * stands
        as_predicted = pt.exp(normalised(data["log_predicted"] + pt.log(size)))
        others = 1 - (data["second_records"] * stands).sum() / data["records"]
        weights = tensor(self.family.log_weights(data), "log_weights", self.title)
        of_family = pt.exp(normalised(weights + pt.log(size)))
        rest = data["records"] * others * (others * of_family + (1 - others) * as_predicted) / size
        entities = rest + standing
        log_p = normalised(pt.log(entities) + pt.log(data["selection"]))
        counts("drawn_sizes", data["draws"], log_p, data["drawn"], dims="entity_size")
        chance = (standing / entities).clip(1e-12, 1 - 1e-12)
        pm.Binomial("matched_entities", data["sampled_entities"], chance, observed=data["matched"])
        names = ("true", "kept")
        at_pairs = [variable(self.difference, f"pair_{name}") for name in names]
        mean, error = pt.stack(at_pairs), data["pair_error"]
        pm.Normal("pair_differences", mean, error, observed=data["pair_difference"])
        doublings = data["pair_change"] * (data["x"] - data["pair_centre"])
        true, kept = (
            level + variable(self.change, f"pair_{name}_slope") * doublings
            for name, level in zip(names, at_pairs, strict=True)
        )
        return {
            "entities": entities,
            "stands": stands,
            "stands_left": self._weigh_left_clusters(data, stands),
            "stands_true": pt.tile(pt.exp(true), 2),
            "stands_kept": pt.tile(pt.exp(kept), 2),
        }

    def _weigh_left_clusters(self, data: Mapping[str, Any], stands: Any) -> Any:
        """Add guests to the likelihood, and return the chance that each cluster left stands, (2 J,)."""
        share = data["foreign_share"]
        odds = variable(self.foreign, "foreign_log_odds") + pt.log(share) - pt.log1p(-share)
        crowd = variable(self.crowd, "crowd_log_odds")
        log_chance = pt.log(pt.tile(stands, 2).clip(1e-9, 1 - 1e-9))
        expected = data["guest_rate"] * pt.tile(data["size"], 2)

        def log_densities(
            guests: Any, left: Any, log_chance: Any, expected: Any, odds: Any, crowd: Any
        ) -> Any:
            """Return log densities of guests, of a cluster that stands and of one that does not."""
            guests = guests / pt.clip(left, 1, np.inf)
            if_stands = -guests * pt.softplus(-odds) - expected * pm.math.sigmoid(odds)
            if_not = pt.logaddexp(if_stands - pt.softplus(crowd), -expected - pt.softplus(-crowd))
            return log_chance + if_stands, pt.log1p(-pt.exp(log_chance)) + if_not

        def logp(guests: Any, left: Any, *of_model: Any) -> Any:
            return left * pt.logaddexp(*log_densities(guests, left, *of_model))

        of_model = (data["left"], log_chance, expected, odds, crowd)
        pm.CustomDist("sampled_guests", *of_model, logp=logp, observed=data["guests"], dims="cluster_left")
        stand, fail = log_densities(data["guests"], *of_model)
        return pt.exp(stand - pt.logaddexp(stand, fail))


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
    second : Second, optional
        A second clustering of the same records, counted by `Second.of` with the prediction and the labels of
        the sample. It teaches how many true links there are per common link. All else is as without it.
    shared : Shared, optional
        What other fits tell of the priors. `after` and `together` fill it.

    Raises
    ------
    DataError
        If a part is a class, or lacks its method. If `second` is not counted.

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
    second: Second | None = None
    shared: Shared | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for place in self._places:
            method = "log_weights" if place == "sizes" else "given_size"
            for part in laws(getattr(self, place)).laws.values():
                need_object(part, method, f"{place} of a SizeModel must have a method {method}")
        if self.second is not None:
            need(self.second, Second, "a second clustering is counted by Second.of(prediction, labels, by)")
            if self.shared is not None:
                raise DataError("a model that other fits have told of its priors takes no second clustering")

    @property
    def _places(self) -> list[str]:
        return ["sizes", "retention"] if self.leakage is None else ["sizes", "retention", "leakage"]

    @property
    def tied(self) -> dict[str, Part]:
        """Return the parts that the known number of predicted links ties. Without it they are independent."""
        return {place: self._place_part(place, getattr(self, place)) for place in self._places}

    @property
    def alone(self) -> SizeModel:
        """Return the model without the second clustering."""
        return replace(self, second=None)

    @property
    def of_truth(self) -> SizeModel:
        """Return the model of the true links per common link, from clusters that may stand for an entity.

        Its sizes and retention are those of the sampled entities that match no cluster. The common links of
        all add up to those of `alone`, on which this model has no influence.
        """
        return replace(self, leakage=None)

    def _place_part(self, place: str, part: Any) -> Part:
        """Return a part in its place. If it follows one of several laws, each is in that place."""
        placed_laws = laws(part).laws
        if place == "sizes":
            sizes = Sizes if self.second is None else WithSecond
            placed_laws = {name: sizes(family) for name, family in placed_laws.items()}
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
