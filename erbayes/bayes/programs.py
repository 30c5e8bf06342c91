"""Functions of a model's parts, built once for all data, which NumPy computes, or Numba in `compiled`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, is_dataclass
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
from scipy.special import expit

from .._internal.arrays import FloatArray, IntArray
from .._internal.errors import PACKAGE, DataError, head
from .contract import DATA, LOG_FLAWLESS, Data, ModelPart, check_values, coords, tensor, title
from .importance import approximated

COMPILER = RLock()
"""Lock around PyTensor, which cannot build, compile or call functions in two threads at once."""
NUMPY = Mode("py", "merge")
"""Mode of PyTensor in which NumPy computes each operation, and equal ones once."""
MANY = 50
"""Fits above which compiling pays. It takes 45 s, or 4 s in a later process, and saves .2 to .8 s a fit."""
_BY_NUMBA = ContextVar("by_numba", default=False)


@contextmanager
def compiled() -> Iterator[None]:
    """Compute size models by Numba in a block of many fits, each of which is then two to five times as fast.

    Numba compiles each part of a model once, for 45 seconds in all, or 4 in a later process, which finds it
    in PyTensor's cache. That pays from about 50 fits on. Studies, and curves and groups of that many fits, do
    it on their own. NumPy computes the same densities elsewhere, up to rounding, which can change the draws
    of a seed. Threads and processes that you start in the block have to enter one of their own.

    Examples
    --------
    >>> import erbayes as eb
    >>> from erbayes import bayes, datasets
    >>> case = datasets.people()
    >>> sample = eb.Sample(eb.measure(case.prediction, case.labels), eb.UniformRecords(case.drawn))
    >>> model = bayes.SizeModel(bayes.ZetaSizes())
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
        named = {k: pm.Data(k, np.asarray(v), dims=DATA[k].dims or None) for k, v in data.items()}
        return model, part.given_size(Data(named))


@dataclass(frozen=True, slots=True, eq=False)
class PartDraws:
    """Posterior draws of the quantities and parameters of one part, (chain, draw, ...)."""

    by_size: dict[str, FloatArray]
    parameters: dict[str, FloatArray]
    log_prior: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class ParameterDraws:
    """Draws of the unconstrained parameters of one part, (chain, draw, d); `states` is 1 without errors."""

    thetas: FloatArray
    states: IntArray
    khat: float = -np.inf


class Program:
    """A part as functions of its data and of its unconstrained parameters; parts with equal graphs share one.

    Parameters are one vector θ, (d,), whose coordinates have the `names` of their variables, and `flawless`
    is 1 without errors. `heavy_tails` names location and scale of t priors. `outputs` are the log densities
    of the data and of no error, the log prior, then quantities `by_size` and `parameters`.
    """

    cache: ClassVar[list[Program]] = []

    def __init__(
        self, model: pm.Model, by_size: Mapping[str, Any], point: Mapping[str, FloatArray], name: str
    ) -> None:
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
        data = {v: v.type(name=v.name) for v in model.data_vars}
        ends = np.cumsum([0, *(point[v.name].size for v in values)])
        self.theta = pt.tensor("theta", dtype="float64", shape=(int(ends[-1]),))
        self.flawless = pt.scalar("flawless", dtype="int64")
        places = {
            v: self.theta[a:b].reshape(point[v.name].shape)
            for v, a, b in zip(values, ends[:-1], ends[1:], strict=True)
        }
        symbols = data | places | dict.fromkeys(states, self.flawless)
        outputs = clone_replace([model.logp(), at_zero, *outputs], symbols)
        # where a parameter is impossible, a density is 0 or no number: a check would raise an error instead
        checks = [node for node in toposort(outputs) if isinstance(node.op, CheckParameterValue)]
        unchecked = {node.outputs[0]: node.inputs[0] for node in checks}
        self.outputs = graph_replace(outputs, unchecked, strict=False)
        inputs = set(graph_inputs(self.outputs))
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
        self.data = {v.name: v for v in data.values() if v in inputs}
        self.names = [v.name for v in values for _ in range(point[v.name].size)]
        self.heavy_tails = {v.name: v.tag.heavy_tails for v in free if hasattr(v.tag, "heavy_tails")}
        self.by_size, self.parameters = [*quantities], [v.name for v in free]
        self._functions: dict[tuple[str, bool], Any] = {}

    def equals(self, other: Program) -> bool:
        """Return True if both compute the same from the same data and parameters."""
        ours, theirs = ([p.names, [*p.data], p.heavy_tails, p.by_size, p.parameters] for p in (self, other))
        inputs = ([*p.data.values(), p.theta, p.flawless] for p in (self, other))
        return ours == theirs and equal_computations(self.outputs, other.outputs, *inputs)

    def values_of(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of the program's data, by name, in its types."""
        return {
            k: np.asarray(data[k]).astype(v.dtype, order="C", casting="same_kind")
            for k, v in self.data.items()
        }

    def compute(self, name: str, by_numba: bool, *values: Any) -> Any:
        """Return the outputs of one of two functions of K points, each made when it is first called.

        `log_densities` of points and data are log densities given errors, (K,). `many` of points, states and
        data are log prior, quantities and parameters.
        """
        if (name, by_numba) not in self._functions:
            self._functions[name, by_numba] = self._compile(name, "NUMBA" if by_numba else NUMPY)
        with np.errstate(all="ignore"):  # as compiled functions do, in tails far from any draw
            return self._functions[name, by_numba](*values)

    def _compile(self, name: str, mode: Any) -> Any:
        thetas = pt.tensor("thetas", dtype="float64", shape=(None, *self.theta.type.shape))
        states, data = pt.vector("states", dtype="int64"), [*self.data.values()]
        if name == "log_densities":
            with_errors = {self.flawless: pt.constant(0, dtype="int64")}
            density = graph_replace(self.outputs[0], with_errors, strict=False)
            inputs, outputs = [thetas], vectorize_graph(density, {self.theta: thetas})
        else:
            inputs, of_point = [thetas, states], self.outputs[2:]
            batch = vectorize_graph(of_point, {self.theta: thetas, self.flawless: states})
            # what depends on no parameter has no axis of points yet
            outputs = [
                b if b.ndim > v.ndim else pt.repeat(b[None], thetas.shape[0], axis=0)
                for v, b in zip(of_point, batch, strict=True)
            ]
        with building(), warnings.catch_warnings():
            # without a C compiler, PyTensor warns of a limit that Numba's compiler does not have
            warnings.filterwarnings("ignore", "Loop fusion failed")
            options = {"mode": mode, "trust_input": True, "on_unused_input": "ignore"}
            return pytensor.function([*inputs, *data], outputs, **options)

    def check(self, start: FloatArray, data: Sequence[Any], lengths: Mapping[str, int], name: str) -> None:
        """Compute the functions where samplers start, and refuse a part that breaks its contract."""
        try:
            (density,) = self.compute("log_densities", False, start[None], *data)
            _, *outputs = self.compute("many", False, start[None], np.zeros(1, dtype=np.int64), *data)
        except (TypeError, ValueError, IndexError) as error:
            first = str(error).splitlines()[0]
            raise DataError(f"{name} cannot be computed where its sampler starts: {first}") from error
        check_values({k: v[0] for k, v in zip(self.by_size, outputs, strict=False)}, lengths, name)
        if not np.isfinite(density):
            raise DataError(f"the log density of {name} is {density} where its sampler starts")


@dataclass(frozen=True, eq=False)
class CompiledPart:
    """A program, the data of a part, parameters of priors among them, and the `start` of a search, (d,)."""

    cache: ClassVar[dict[Any, CompiledPart]] = {}

    program: Program
    data: dict[str, Any]
    start: FloatArray

    @classmethod
    def of(cls, part: ModelPart, data: Mapping[str, Any]) -> CompiledPart:
        """Return a part with data, which is compiled unless an equal part or an equal graph was before."""
        with COMPILER:
            key = content(part)
            found = cls.cache.get(key)
            if found is None:
                found, for_all_data = cls._build(part, data)
                if key is not None and for_all_data:
                    cls.cache[key] = found
            values = found.program.values_of({**data, **found.data})
            return cls(found.program, values, found.start)

    @classmethod
    def _build(cls, part: ModelPart, data: Mapping[str, Any]) -> tuple[CompiledPart, bool]:
        """Return a part whose data are parameters of priors alone, and whether it serves all data."""
        with building():
            model, by_size = own_model(part, data)
            point, name = model.initial_point(), title(part)
            program, own = Program(model, by_size, point, name), {v.name: v for v in model.data_vars}
            priors = {k: v.get_value() for k, v in own.items() if k not in data}
            start = np.concatenate([np.ravel(point[v.name]) for v in model.continuous_value_vars])
            equal = next((one for one in Program.cache if one.equals(program)), None)
            if equal is None:
                lengths = {dim: len(values) for dim, values in coords(data).items()}
                program.check(start, [*program.values_of({**data, **priors}).values()], lengths, name)
                Program.cache.append(program)
            for_all_data = all(None not in v.type.shape for v in model.free_RVs)
            return cls(equal or program, priors, start.astype(float)), for_all_data

    @property
    def heavy_tails(self) -> list[tuple[IntArray, float, float]]:
        """Coordinates of each parameter with a t prior, and its location and scale."""
        names = np.array(self.program.names)
        return [
            (np.flatnonzero(names == name), float(self.data[at]) if at else 0.0, float(self.data[scale]))
            for name, (at, scale) in self.program.heavy_tails.items()
        ]

    def _compute(self, name: str, *values: Any) -> Any:
        with COMPILER:
            return self.program.compute(name, _BY_NUMBA.get(), *values, *self.data.values())

    def log_densities(self, thetas: FloatArray) -> FloatArray:
        """Return log densities at each θ, (K, d), given that there are errors."""
        return np.asarray(self._compute("log_densities", thetas))

    @cached_property
    def log_flawless(self) -> float:
        """Log joint density of the data and of the state without any error."""
        values = {symbol: self.data[name] for name, symbol in self.program.data.items()}
        with building():
            return float(self.program.outputs[1].eval(values, mode=NUMPY, on_unused_input="ignore"))

    def sampled(self, draws: int, chains: int, rng: np.random.Generator) -> ParameterDraws:
        """Return `draws` posterior draws in each chain, some of them without any error."""
        found = approximated(self, draws * chains, rng, chains)
        thetas = found.draw(draws)
        flawless = expit(self.log_flawless - found.log_evidence)
        states = (rng.random(thetas.shape[:2]) < flawless).astype(np.int64)
        return ParameterDraws(thetas, states, found.khat)

    def evaluated(self, drawn: ParameterDraws) -> PartDraws:
        """Return draws with their quantities and parameters."""
        thetas, states = drawn.thetas, drawn.states
        shape, flat = states.shape, np.column_stack([thetas.reshape(states.size, -1), states.ravel()])
        # Resampled draws repeat one after the other. Each is computed once.
        new = np.concatenate([[True], (flat[1:] != flat[:-1]).any(axis=1)])[: len(flat)]
        at = np.cumsum(new) - 1
        outputs = self._compute("many", flat[new, :-1], states.ravel()[new])
        log_prior, *values = [np.reshape(v[at], (*shape, *np.shape(v)[1:])) for v in outputs]
        n = len(self.program.by_size)
        by_size = dict(zip(self.program.by_size, values[:n], strict=True))
        return PartDraws(by_size, dict(zip(self.program.parameters, values[n:], strict=True)), log_prior)


def draw_from_prior(
    part: ModelPart, data: Mapping[str, Any], draws: int, rng: np.random.Generator
) -> PartDraws:
    """Draw quantities and parameters from the prior, (1, draws, ...), and warn of potentials."""
    with building():
        model, _ = own_model(part, data)
        free, transform = model.free_RVs, model.rvs_to_transforms
        values = [v if (t := transform[v]) is None else t.forward(v, *v.owner.inputs) for v in free]
        if set(free).isdisjoint(ancestors([v for one in free for v in one.owner.inputs])):
            # all draws at once: PyMC's loop takes 4 s for 4,000 draws of the default model
            repeated = {v: change_dist_size(v, (draws,), expand=True) for v in free}
            drawn = pm.draw(vectorize_graph(values, repeated), random_seed=rng, mode=NUMPY)
        else:  # PyTensor 3.3 refuses to repeat vectors that depend on other variables
            drawn = pm.draw(values, draws, random_seed=rng, mode=NUMPY)
    if model.potentials:
        warnings.warn(
            f"draws of the prior of {title(part)} ignore its potentials", skip_file_prefixes=PACKAGE
        )
    thetas, states = [], np.zeros((1, draws), dtype=np.int64)
    for variable, value in zip(free, drawn, strict=True):
        if variable.dtype.startswith("int"):
            states[0] = value
        else:
            thetas.append(value.reshape(1, draws, -1))
    theta = np.concatenate(thetas, axis=-1).astype(float)
    return CompiledPart.of(part, data).evaluated(ParameterDraws(theta, states))


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
