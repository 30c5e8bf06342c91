"""Parts of a model: independent but for the known number of predicted links, and compiled once each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pytensor.compile.mode import get_mode
from pytensor.graph.replace import clone_replace, graph_replace, vectorize_graph

from ..arrays import FloatArray, IntArray
from .grid import RANK

LOG_FLAWLESS = "log_flawless"
"""Name of the log joint density of the data and of a population without any error of a part's kind."""


class Part(Protocol):
    """What a model says of one thing: a frozen dataclass whose numbers are parameters of priors."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def given_size(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Quantities by size, (J,), inside a PyMC model."""
        ...


def structure(part: Any) -> tuple[Any, ...]:
    """What a compiled part depends on: all but data and the parameters of priors."""
    held = (getattr(part, f.name) for f in fields(part))
    return (
        type(part),
        *(structure(v) if is_dataclass(v) else v for v in held if is_dataclass(v) or isinstance(v, int)),
    )


OF_SIZE = (
    "size",
    "width",
    "x",
    "selection",
    "drawn",
    "several",
    "intact",
    "broken",
    "intact_all",
    "clean",
    "entities",
    "met",
    "log_predicted",
    "in_doubling",
    "bounded_count",
    "bounded_steps",
)
OF_INTRUSION = ("intrusion_value", "log_exposure", "log_intrusion")
DIMS: dict[str, Any] = {
    **dict.fromkeys(OF_SIZE, "entity_size"),
    **dict.fromkeys(OF_INTRUSION, "intrusion"),
    **dict.fromkeys(("shares", "bounded_shares"), ("entity_size", "log_share")),
    "doubling_x": "doubling",
    "met_by_doubling": "doubling",
    "intrusions": ("doubling", "intrusion"),
}
SMOOTHS = (
    "size_tilt",
    "break_tilt",
    "share_tilt",
    "meet_tilt",
    "intrusion_tilt",
    "stain_tilt",
    "bounded_tilt",
)


BY_SIZE = (*OF_SIZE, "basis", "shares", "bounded_shares")
"""Data with one row a bin of size."""


def sampled_bins(data: Mapping[str, Any]) -> dict[str, Any]:
    """The data of the bins of size that hold sampled entities: all that likelihoods given size see."""
    return {k: v[data["sampled"]] if k in BY_SIZE else v for k, v in data.items()}


def coords(data: Mapping[str, Any]) -> dict[str, Any]:
    """Coordinates of a model's dimensions."""
    return {
        "entity_size": data["size"],
        "sampled_size": data["size"][data["sampled"]],
        "doubling": 2 ** np.arange(len(data["doubling_x"])),
        "sampled_doubling": 2 ** data["sampled_doublings"],
        "intrusion": np.exp2(data["log_intrusion"] + 3),
        "log_share": ["kept", "lost"],
        **{f"{name}_basis": np.arange(RANK) for name in SMOOTHS},
    }


def as_pymc(data: Mapping[str, Any]) -> dict[str, Any]:
    """The data inside a PyMC model."""
    return {k: pm.Data(k, np.asarray(v), dims=DIMS.get(k)) for k, v in data.items()}


def alone(part: Part, data: Mapping[str, Any]) -> tuple[pm.Model, dict[str, Any]]:
    """A part as a PyMC model of its own, and its quantities by size."""
    with pm.Model(coords=coords(data), model=None) as model:
        return model, part.given_size(as_pymc(data))


def hyperparameters(part: Part, data: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of a part's priors by name."""
    return {v.name: v.get_value() for v in alone(part, data)[0].data_vars if v.name not in data}


@dataclass(frozen=True, slots=True, eq=False)
class PartDraws:
    """Posterior draws of one part.

    Attributes
    ----------
    by_size, parameters : dicts of float arrays, (chain, draw, ...)
    khat : float
        Pareto shape of the weights of importance sampling.
    problems : list of str
        Why not to rely on them, with remedies.
    refitted : bool
        Whether NUTS took over from importance sampling.
    diverging, steps : arrays, (chain, draw), or None
        Of NUTS, where it was asked for: of all parts that it drew together.
    """

    by_size: dict[str, FloatArray]
    parameters: dict[str, FloatArray]
    khat: float
    problems: list[str]
    refitted: bool = False
    diverging: Any = None
    steps: Any = None


class CompiledPart:
    """One part compiled once: used again for new data, and under new priors.

    Parameters on their unconstrained scale are one vector θ, (d,). Where the part knows a population
    without any error of its kind, `flawless` is 1 for that and 0 else.
    """

    kept: ClassVar[dict[Any, CompiledPart]] = {}

    def __init__(self, part: Part, data: Mapping[str, Any]) -> None:
        self.model, by_size = alone(part, data)
        self.hyperparameters: dict[Part, dict[str, Any]] = {}
        at_zero = by_size.pop(LOG_FLAWLESS, pt.constant(-np.inf))
        self._log_flawless = pytensor.function([], at_zero, mode="FAST_COMPILE")
        point, values = self.model.initial_point(), self.model.continuous_value_vars
        sizes = [int(np.prod(np.shape(point[v.name]))) for v in values]
        d = sum(sizes)
        theta = pt.tensor("theta", dtype="float64", shape=(d,))
        flawless = pt.scalar("flawless", dtype="int64")
        given = {
            v: theta[end - k : end].reshape(np.shape(point[v.name]))
            for v, end, k in zip(values, np.cumsum(sizes), sizes, strict=True)
        }
        given |= dict.fromkeys(self.model.discrete_value_vars, flawless)
        free = self.model.free_RVs
        self._by_size, self._parameters = list(by_size), [v.name for v in free]
        outputs = self.model.replace_rvs_by_values([*by_size.values(), *free])
        density, *outputs = clone_replace([self.model.logp(), *outputs], given)
        self.coordinates = [v.name for v, k in zip(values, sizes, strict=True) for _ in range(k)]
        self.start = np.concatenate([np.ravel(point[v.name]) for v in values]).astype(float)
        self._theta, self._density = theta, clone_replace(density, {flawless: pt.constant(0, dtype="int64")})
        thetas = pt.tensor("thetas", dtype="float64", shape=(None, d))
        states = pt.vector("states", dtype="int64")
        batch = vectorize_graph(outputs, {theta: thetas, flawless: states})
        self._many = _function([thetas, states], batch)
        self.log_densities = _function([thetas], vectorize_graph(self._density, {theta: thetas}))
        """Log densities at each θ, (K, d), where there are errors."""

    @classmethod
    def of(cls, part: Part, data: Mapping[str, Any]) -> CompiledPart:
        """The part at these data; compiled now, or before."""
        key = structure(part)
        if key not in cls.kept:
            cls.kept[key] = cls(part, data)
        compiled = cls.kept[key]
        if part not in compiled.hyperparameters:
            compiled.hyperparameters[part] = hyperparameters(part, data)
        for name, value in (dict(data) | compiled.hyperparameters[part]).items():
            if name in compiled.model.named_vars:
                held = compiled.model[name]
                held.set_value(np.asarray(value, dtype=held.dtype))
        return compiled

    @property
    def smooths(self) -> list[tuple[IntArray, float]]:
        """Coordinates of the weights of each smooth function, and the scale of their prior."""
        of = np.array(self.coordinates)
        return [
            (np.flatnonzero(of == f"{name}_weights"), float(self.model[f"{name}_scale"].get_value()))
            for name in SMOOTHS
            if f"{name}_weights" in self.coordinates
        ]

    def log_density(self, theta: Any) -> Any:
        """Log density at a symbolic θ, where there are errors."""
        return graph_replace(self._density, {self._theta: theta})

    def flawless(self, log_evidence: float) -> float:
        """Posterior probability of no error at all; log evidence is that of errors."""
        odds = float(self._log_flawless()) - log_evidence
        return float(1 / (1 + np.exp(-np.clip(odds, -700, 700))))

    def draws(self, thetas: FloatArray, flawless: float, rng: np.random.Generator, **told: Any) -> PartDraws:
        """Quantities and parameters at each θ, (chain, draw, d); a share of them without any error."""
        shape, states = thetas.shape[:2], np.zeros(thetas.shape[:2], dtype=np.int64)
        if flawless > 0:
            states[...] = rng.random(shape) < flawless
        outputs = self._many(thetas.reshape(-1, thetas.shape[-1]), states.ravel())
        found = [np.reshape(v, (*shape, *np.shape(v)[1:])) for v in outputs]
        n = len(self._by_size)
        return PartDraws(
            dict(zip(self._by_size, found[:n], strict=True)),
            dict(zip(self._parameters, found[n:], strict=True)),
            **told,
        )


def _function(inputs: list[Any], outputs: list[Any]) -> Any:
    mode = get_mode("NUMBA").including("local_remove_check_parameter")
    return pytensor.function(inputs, outputs, mode=mode, trust_input=True, on_unused_input="ignore")
