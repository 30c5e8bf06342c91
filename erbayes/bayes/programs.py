"""Functions of a model's parts, built once for all data, which NumPy computes, or Numba in `compiled`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from functools import cached_property
from threading import RLock
from typing import Any, ClassVar

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pymc.distributions.shape_utils import change_dist_size
from pymc.logprob.utils import CheckParameterValue
from pytensor.compile.mode import Mode
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import equal_computations
from pytensor.graph.replace import clone_replace, graph_replace, vectorize_graph
from pytensor.graph.traversal import ancestors, graph_inputs, toposort
from pytensor.tensor.random.type import RandomType

from .._internal.arrays import FloatArray, IntArray
from .._internal.errors import DataError, head
from .contract import LOG_FLAWLESS, ModelPart, PlacedPart, as_pymc, check_values, coords, tensor, title
from .priors import InformedPrior

COMPILER = RLock()
"""Lock around PyTensor, which cannot build, compile or call functions in two threads at once."""
NUMPY = Mode("py", "merge")
"""Mode of PyTensor in which NumPy computes each operation, and equal ones once."""
MANY = 50
"""Fits above which compiling pays: it takes 45 s, or 4 s in a later process, and saves .2 to .8 s a fit."""
_BY_NUMBA = ContextVar("by_numba", default=False)


@contextmanager
def compiled() -> Iterator[None]:
    """Compute size models by Numba in a block of many fits, each of which is then two to five times as fast.

    Numba compiles each part of a model once, for 45 seconds in all, or 4 in a later process, which finds it
    in PyTensor's cache. That pays from about 50 fits on. Studies, and curves and groups of that many fits, do
    it on their own. Densities are those of NumPy up to rounding, and draws up to Monte Carlo error.

    Threads and processes that you start in the block have to enter one of their own.

    Examples
    --------
    >>> import erbayes as eb
    >>> from erbayes import bayes, datasets
    >>> case = datasets.people()
    >>> sample = eb.Sample(eb.measure(case.prediction, case.labels), eb.UniformRecords(case.drawn))
    >>> model = bayes.SizeModel(bayes.ZetaSizes(), bayes.Retention(), leakage=None)
    >>> with bayes.compiled():
    ...     fits = [bayes.fast(sample, model, draws=250, rng=seed) for seed in range(3)]
    >>> len(fits)
    3
    """
    token = _BY_NUMBA.set(True)
    try:
        yield
    finally:
        _BY_NUMBA.reset(token)


def compiled_for(fits: int) -> AbstractContextManager[None]:
    """Return the context of so many fits: `compiled` if compiling pays."""
    return compiled() if fits > MANY else nullcontext()


@contextmanager
def building() -> Iterator[None]:
    """Hold the lock while PyTensor builds graphs and functions, in half of the time that it takes by default.

    It runs no C compiler, for a second for each of some operations, and does not note where each was made.
    """
    with COMPILER, pytensor.config.change_flags(cxx="", traceback__limit=0):
        yield


def own_model(part: ModelPart, data: Mapping[str, Any]) -> tuple[pm.Model, dict[str, Any]]:
    """Build a PyMC model of one part, and return it with the part's quantities by size."""
    with pm.Model(coords=coords(data), model=None) as model:
        return model, part.given_size(as_pymc(data))


@dataclass(frozen=True, slots=True, eq=False)
class PartDraws:
    """Posterior draws of one part, (chain, draw, ...), with diagnostics."""

    by_size: dict[str, FloatArray]
    parameters: dict[str, FloatArray]
    log_prior: FloatArray
    khat: float
    problems: list[str]
    refitted: bool = False
    statistics: dict[str, Any] = field(default_factory=dict)
    log_evidence: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class ParameterDraws:
    """Posterior draws of the unconstrained parameters of one part, (chain, draw, d).

    `states` is 1 without errors, (chain, draw), and `by_chain` the log evidence by chain, (chain,).
    """

    thetas: FloatArray
    states: IntArray
    khat: float
    problems: list[str] = field(default_factory=list)
    refitted: bool = False
    statistics: dict[str, Any] = field(default_factory=dict)
    log_evidence: float = 0.0
    by_chain: FloatArray | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """A part as symbolic `outputs` of its `data` and of its unconstrained parameters, `values` and `states`.

    `states` is 1 without errors, and `heavy_tails` names location and scale of t priors. Outputs are the log
    densities of the data and of no error, the log prior, then quantities `by_size` and `parameters`.
    """

    data: dict[str, Any]
    values: list[Any]
    states: list[Any]
    shapes: list[tuple[int, ...]]
    heavy_tails: dict[str, tuple[str | None, str]]
    by_size: list[str]
    parameters: list[str]
    outputs: list[Any]

    @classmethod
    def of(
        cls, model: pm.Model, by_size: Mapping[str, Any], point: Mapping[str, FloatArray], name: str
    ) -> Graph:
        """Make the graph of a part's model, in which symbols replace data."""
        values, states, free = model.continuous_value_vars, model.discrete_value_vars, model.free_RVs
        log_flawless = by_size.get(LOG_FLAWLESS)
        if not values:
            raise DataError(f"{name} has no continuous parameter: it must create a random variable")
        if len(states) != (log_flawless is not None):
            if not states:
                raise DataError(f"{name} returns '{LOG_FLAWLESS}' alone: return it as `flawless` makes it")
            allowed = "only that of `flawless`" if log_flawless is not None else "none"
            raise DataError(
                f"{name} has {len(states)} discrete random variables, {head([v.name for v in states], 10)}, "
                f"and may have {allowed}: give others continuous priors, such as pm.Normal.dist(0, 1)"
            )
        quantities = {k: tensor(v, k, name) for k, v in by_size.items() if k != LOG_FLAWLESS}
        prior = [pt.sum(pm.logp(v, v)) for v in free] + [pt.sum(v) for v in model.potentials]
        outputs = model.replace_rvs_by_values([pt.sum(pt.stack(prior)), *quantities.values(), *free])
        at_zero = pt.constant(-np.inf) if log_flawless is None else log_flawless
        symbols = {v: v.type(name=v.name) for v in model.data_vars}
        outputs = clone_replace([model.logp(), at_zero, *outputs], symbols)
        # where a parameter is impossible, a density is 0 or no number: a check would raise an error instead
        checks = [node for node in toposort(outputs) if isinstance(node.op, CheckParameterValue)]
        outputs = graph_replace(outputs, {node.outputs[0]: node.inputs[0] for node in checks}, strict=False)
        inputs = set(graph_inputs(outputs))
        if any(isinstance(v.type, RandomType) for v in inputs):
            raise DataError(
                f"{name} depends on a random variable outside its model: make it with a name, as "
                "pm.Normal(name, 0, 1), not as pm.Normal.dist(0, 1)"
            )
        if shared := sorted(str(v) for v in inputs if isinstance(v, SharedVariable)):
            raise DataError(
                f"{name} depends on the shared variables {', '.join(shared)}: make them pm.Data, or use "
                "data['size'].shape for the number of bins"
            )
        return cls(
            {v.name: v for v in symbols.values() if v in inputs},
            values,
            states,
            [np.shape(point[v.name]) for v in values],
            {v.name: v.tag.heavy_tails for v in free if hasattr(v.tag, "heavy_tails")},
            [*quantities],
            [v.name for v in free],
            outputs,
        )

    @property
    def sizes(self) -> list[int]:
        return [int(np.prod(shape)) for shape in self.shapes]

    @property
    def inputs(self) -> list[Any]:
        return [*self.data.values(), *self.values, *self.states]

    def values_of(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of the graph's data, by name, in its types."""
        return {
            k: np.asarray(data[k]).astype(v.dtype, order="C", casting="same_kind")
            for k, v in self.data.items()
        }

    def same(self, other: Graph) -> bool:
        """Return True if both graphs compute the same from the same data and parameters."""
        ours, theirs = (
            [[v.name for v in g.inputs], g.shapes, g.heavy_tails, g.by_size, g.parameters]
            for g in (self, other)
        )
        return ours == theirs and equal_computations(self.outputs, other.outputs, self.inputs, other.inputs)


class Program:
    """Functions of a part, whose last arguments are data, so that equal models share one program.

    Parameters are one vector θ, (d,). `many` returns log prior, quantities and parameters at K points and
    states, `log_densities` the log densities given errors, (K,), and `log_flawless` that without errors. The
    first two are made when they are first called, once for NumPy and once for Numba.
    """

    cache: ClassVar[list[Program]] = []

    def __init__(self, graph: Graph) -> None:
        self.graph, data, d = graph, [*graph.data.values()], sum(graph.sizes)
        self._theta = theta = pt.tensor("theta", dtype="float64", shape=(d,))
        flawless = pt.scalar("flawless", dtype="int64")
        places = zip(graph.values, graph.shapes, np.cumsum(graph.sizes), graph.sizes, strict=True)
        replacements = {v: theta[end - k : end].reshape(shape) for v, shape, end, k in places}
        replacements |= dict.fromkeys(graph.states, flawless)
        density, log_flawless, *outputs = graph.outputs
        density, *outputs = clone_replace([density, *outputs], replacements)
        self._density = clone_replace(density, {flawless: pt.constant(0, dtype="int64")})
        thetas, states = (
            pt.tensor("thetas", dtype="float64", shape=(None, d)),
            pt.vector("states", dtype="int64"),
        )
        batch = zip(outputs, vectorize_graph(outputs, {theta: thetas, flawless: states}), strict=True)
        # what depends on no parameter has no axis of points yet
        many = [b if b.ndim > v.ndim else pt.repeat(b[None], thetas.shape[0], axis=0) for v, b in batch]
        self._symbolic = {
            "many": ([thetas, states, *data], many),
            "log_densities": ([thetas, *data], vectorize_graph(self._density, {theta: thetas})),
        }
        self.log_flawless = _make_function(data, log_flawless, NUMPY)
        self._functions: dict[tuple[str, bool], Any] = {}

    def compute(self, name: str, by_numba: bool, *values: Any) -> Any:
        """Return the outputs of `many` or of `log_densities`."""
        if (name, by_numba) not in self._functions:
            made = _make_function(*self._symbolic[name], "NUMBA" if by_numba else NUMPY)
            self._functions[name, by_numba] = made
        with np.errstate(all="ignore"):  # as compiled functions do, in tails far from any draw
            return self._functions[name, by_numba](*values)

    def check(self, start: FloatArray, data: Sequence[Any], lengths: Mapping[str, int], name: str) -> None:
        """Compute the functions where samplers start, and refuse a part that breaks its contract."""
        try:
            (density,) = self.compute("log_densities", False, start[None], *data)
            _, *outputs = self.compute("many", False, start[None], np.zeros(1, dtype=np.int64), *data)
        except (TypeError, ValueError, IndexError) as error:
            first = str(error).splitlines()[0]
            raise DataError(f"{name} cannot be computed where its sampler starts: {first}") from error
        check_values({k: v[0] for k, v in zip(self.graph.by_size, outputs, strict=False)}, lengths, name)
        if not np.isfinite(density):
            raise DataError(f"the log density of {name} is {density} where its sampler starts")

    def log_density(self, theta: Any, data: Sequence[Any]) -> Any:
        """Return the log density at a symbolic θ and symbolic data, given that there are errors."""
        replacements = dict(zip(self.graph.data.values(), data, strict=True))
        return graph_replace(self._density, {self._theta: theta, **replacements}, strict=False)


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A part without data: a program, parameters of priors, and the `start` of samplers, (d,)."""

    program: Program
    hyperparameters: dict[str, Any]
    start: FloatArray
    for_all_data: bool

    @classmethod
    def of(cls, part: ModelPart, data: Mapping[str, Any]) -> Prepared:
        """Build the graph of a part, and its program unless an equal graph has one."""
        model, by_size = own_model(part, data)
        point = model.initial_point()
        graph = Graph.of(model, by_size, point, title(part))
        hyperparameters = {v.name: v.get_value() for v in model.data_vars if v.name not in data}
        start = np.concatenate([np.ravel(point[v.name]) for v in graph.values]).astype(float)
        program = next((program for program in Program.cache if program.graph.same(graph)), None)
        if program is None:
            program, lengths = Program(graph), {dim: len(values) for dim, values in coords(data).items()}
            program.check(
                start, [*graph.values_of({**data, **hyperparameters}).values()], lengths, title(part)
            )
            Program.cache.append(program)
        return cls(program, hyperparameters, start, all(None not in v.type.shape for v in model.free_RVs))


@dataclass(frozen=True, eq=False)
class CompiledPart:
    """A compiled part with its data, in which `informed` replaces its prior if given."""

    cache: ClassVar[dict[Any, Prepared]] = {}

    prepared: Prepared
    data: dict[str, Any]
    informed: InformedPrior | None = None

    @classmethod
    def of(cls, part: ModelPart, data: Mapping[str, Any]) -> CompiledPart:
        """Return a part with data, which is compiled unless an equal part or an equal graph was before."""
        with COMPILER:
            informed = None
            if isinstance(part, PlacedPart):  # one program serves all informed priors
                part, informed = PlacedPart(part.place, part.part), part.informed
            key = content(part)
            prepared = cls.cache.get(key)
            if prepared is None:
                with building():
                    prepared = Prepared.of(part, data)
                if key is not None and prepared.for_all_data:
                    cls.cache[key] = prepared
            values = prepared.program.graph.values_of({**data, **prepared.hyperparameters})
            return cls(prepared, values, informed)

    @property
    def program(self) -> Program:
        return self.prepared.program

    @property
    def start(self) -> FloatArray:
        """θ from which samplers start, (d,)."""
        return self.prepared.start if self.informed is None else self.informed.centre

    @property
    def coordinates(self) -> list[str]:
        """Names of the parameters of the coordinates of θ."""
        graph = self.program.graph
        return [v.name for v, k in zip(graph.values, graph.sizes, strict=True) for _ in range(k)]

    @property
    def heavy_tails(self) -> list[tuple[IntArray, float, float]]:
        """Coordinates of each parameter with a t prior, and its location and scale."""
        names, priors = np.array(self.coordinates), self.program.graph.heavy_tails
        return [
            (np.flatnonzero(names == name), float(self.data[at]) if at else 0.0, float(self.data[scale]))
            for name, (at, scale) in priors.items()
        ]

    def _compute(self, name: str, *values: Any) -> Any:
        with COMPILER:
            return self.program.compute(name, _BY_NUMBA.get(), *values, *self.data.values())

    def log_densities(self, thetas: FloatArray) -> FloatArray:
        """Return log densities at each θ, (K, d), given that there are errors."""
        densities = np.asarray(self._compute("log_densities", thetas))
        return densities if self.informed is None else densities + self.informed.log_ratio(thetas)

    @cached_property
    def log_flawless(self) -> float:
        """Log joint density of the data and of the state without any error."""
        if not self.program.graph.states:
            return -np.inf
        with COMPILER:
            return float(self.program.log_flawless(*self.data.values()))

    def flawless(self, log_evidence: float) -> float:
        """Return the posterior probability of no error, from the log evidence given that there are errors."""
        odds = self.log_flawless - log_evidence
        return float(1 / (1 + np.exp(-np.clip(odds, -700, 700))))

    def drawn(
        self, thetas: FloatArray, log_evidence: float, rng: np.random.Generator, **about: Any
    ) -> ParameterDraws:
        """Return draws at each θ, (chain, draw, d), some of them without any error."""
        flawless, evidence = self.flawless(log_evidence), float(np.logaddexp(log_evidence, self.log_flawless))
        states = np.zeros(thetas.shape[:2], dtype=np.int64)
        if flawless > 0:
            states[...] = rng.random(states.shape) < flawless
        return ParameterDraws(thetas, states, log_evidence=evidence, **about)

    def evaluated(self, drawn: ParameterDraws, index: Any = slice(None)) -> PartDraws:
        """Return draws at an index of both axes, with their quantities and parameters."""
        thetas, states, program = drawn.thetas[index], drawn.states[index], self.program
        shape, flat = states.shape, np.column_stack([thetas.reshape(states.size, -1), states.ravel()])
        # Resampled draws repeat one after the other. Each is computed once.
        new = np.concatenate([[True], (flat[1:] != flat[:-1]).any(axis=1)])[: len(flat)]
        at = np.cumsum(new) - 1
        outputs = self._compute("many", flat[new, :-1], states.ravel()[new])
        log_prior, *values = [np.reshape(v[at], (*shape, *np.shape(v)[1:])) for v in outputs]
        if self.informed is not None:
            log_prior = log_prior + self.informed.log_ratio(thetas)
        n, graph = len(program.graph.by_size), program.graph
        return PartDraws(
            dict(zip(graph.by_size, values[:n], strict=True)),
            dict(zip(graph.parameters, values[n:], strict=True)),
            log_prior,
            drawn.khat,
            drawn.problems,
            drawn.refitted,
            {k: v[index] for k, v in drawn.statistics.items()},
            drawn.log_evidence,
        )


def draw_from_prior(
    part: ModelPart, data: Mapping[str, Any], draws: int, rng: np.random.Generator
) -> PartDraws:
    """Draw quantities and parameters from the prior, (1, draws, ...), and warn of potentials."""
    with building():
        model, _ = own_model(part, data)
        free, transform = model.free_RVs, model.rvs_to_transforms
        values = [v if (t := transform[v]) is None else t.forward(v, *v.owner.inputs) for v in free]
        drawn = _draw_values(values, free, draws, rng)
    if model.potentials:
        warnings.warn(f"draws of the prior of {title(part)} ignore its potentials", stacklevel=3)
    thetas, states = [], np.zeros((1, draws), dtype=np.int64)
    for variable, value in zip(free, drawn, strict=True):
        if variable.dtype.startswith("int"):
            states[0] = value
        else:
            thetas.append(value.reshape(1, draws, -1))
    theta, compiled = np.concatenate(thetas, axis=-1).astype(float), CompiledPart.of(part, data)
    if compiled.informed is not None:
        theta = compiled.informed.draws(draws, rng)[None]
    return compiled.evaluated(ParameterDraws(theta, states, -np.inf))


def _draw_values(
    values: list[Any], variables: Sequence[Any], draws: int, rng: np.random.Generator
) -> list[FloatArray]:
    """Return independent draws of `values`, (draws, ...), which are functions of random `variables`."""
    drawn: list[FloatArray]
    if set(variables).isdisjoint(ancestors([v for one in variables for v in one.owner.inputs])):
        # all draws at once: PyMC's loop takes 4 s for 4,000 draws of the default model
        repeated = {v: change_dist_size(v, (draws,), expand=True) for v in variables}
        drawn = pm.draw(vectorize_graph(values, repeated), random_seed=rng, mode=NUMPY)
    else:  # PyTensor 3.3 refuses to repeat vectors that depend on other variables
        drawn = pm.draw(values, draws, random_seed=rng, mode=NUMPY)
    return drawn


PLAIN = (int, float, str, bytes, type(None), Enum, np.number)
"""Types of plain values. Tuples and dataclasses of them are plain too."""


def content(value: Any) -> Any:
    """Return a key that is equal for equal plain values; None for other values."""
    if is_dataclass(value) and not isinstance(value, type):
        names = [f.name for f in fields(value)]
        if set(getattr(value, "__dict__", ())) - set(names):
            return None
        keys = [content(getattr(value, name)) for name in names]
    elif isinstance(value, tuple):
        keys = [content(v) for v in value]
    else:
        return (type(value), value) if isinstance(value, PLAIN) else None
    return None if None in keys else (type(value), *keys)


def _make_function(inputs: list[Any], outputs: Any, mode: Any) -> Any:
    with building(), warnings.catch_warnings():
        # without a C compiler, PyTensor warns of a limit that Numba's compiler does not have
        warnings.filterwarnings("ignore", "Loop fusion failed")
        return pytensor.function(inputs, outputs, mode=mode, trust_input=True, on_unused_input="ignore")
