"""Candidate models of a part as one PyMC model, in which a categorical variable says which of them holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.custom import CustomDistRV
from pytensor import shared
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import equal_computations
from pytensor.graph.replace import graph_replace
from pytensor.graph.traversal import graph_inputs
from pytensor.tensor.random.type import RandomType

from .contract import LOG_FLAWLESS
from .model_average import ModelAverage
from .programs import NUMPY


def add_mixture(place: str, part: ModelAverage, data: Mapping[str, Any]) -> dict[str, Any]:
    """Add a part to the current PyMC model, and return its quantities by size.

    Candidate models share the variables that have one name, of which each states its own prior. A variable
    that some of them do not have follows its prior under these, where nothing depends on it.
    """
    model, candidates = pm.modelcontext(None), []
    for candidate in part.models.values():
        with pm.Model(coords=model.coords, model=None) as own:
            candidates.append((own, candidate.given_size(data)))
    which = None
    if len(candidates) > 1:
        which = pm.Categorical(f"{place}_model", [*part.probability.values()])
    graphs = [_Graph(own) for own, _ in candidates]
    for graph, (own, by_size) in zip(graphs, candidates, strict=True):
        if LOG_FLAWLESS in by_size and np.isneginf(by_size[LOG_FLAWLESS].eval(mode=NUMPY)):
            # a sampled entity has an error, so that the prediction is not without errors
            graph.joint |= {v: pt.constant(0, dtype=v.dtype) for v in own.free_RVs if v.dtype == "int64"}
    for name in dict.fromkeys(v.name for own, _ in candidates for v in own.free_RVs):
        _add_variable(name, graphs, which, [*part.models])
    for name in dict.fromkeys(v.name for own, _ in candidates for v in own.observed_RVs):
        _add_observed(name, graphs, which)
    for name in dict.fromkeys(v.name for own, _ in candidates for v in own.potentials):
        potentials = [pt.sum(g(g.own[name])) if name in g.own.named_vars else 0.0 for g in graphs]
        pm.Potential(name, _mix(potentials, which))
    first, *others = [by_size for _, by_size in candidates]
    common = [k for k in first if k != LOG_FLAWLESS and all(k in by_size for by_size in others)]
    return {
        k: _mix([g(by_size[k]) for g, by_size in zip(graphs, [first, *others], strict=True)], which)
        for k in common
    }


class _Graph:
    """Graphs of one candidate's `own` model, with the variables of the joint model in place of its own."""

    def __init__(self, own: pm.Model) -> None:
        self.own, self.joint = own, dict[Any, Any]()

    def __call__(self, value: Any) -> Any:
        joint = graph_replace(pt.as_tensor(value), self.joint, strict=False)
        # parameters of priors and lengths of dimensions
        constants = {
            v: pt.constant(v.get_value())
            for v in graph_inputs([joint])
            if isinstance(v, SharedVariable) and not isinstance(v.type, RandomType)
        }
        return graph_replace(joint, constants, strict=False)


def _mix(values: Sequence[Any], which: Any) -> Any:
    """Return the value of the candidate that holds."""
    first, *others = (pt.as_tensor(v) for v in values)
    if which is None or all(equal_computations([first], [v]) for v in others):
        return first
    return pt.stack(pt.broadcast_arrays(first, *others))[which]


def _add_variable(name: str, graphs: Sequence[_Graph], which: Any, models: list[str]) -> None:
    """Add a free variable of some candidates, or one for each of them if their distributions differ."""
    model, free = pm.modelcontext(None), [name in g.own.named_vars for g in graphs]
    having = [i for i, g in enumerate(graphs) if free[i] and g.own[name] not in g.joint]
    if not having:
        return
    together = _are_same(name, [graphs[i] for i in having])
    for group in [having] if together else [[i] for i in having]:
        own = graphs[group[0]].own
        dims = own.named_vars_to_dims.get(name)
        for dim in dims or ():
            model.add_coord(dim, own.coords[dim])
        # under a candidate without the variable, its prior is that of the first candidate with it
        places = [group.index(i) if i in group else 0 for i in range(len(models))]
        place = None if which is None else pt.constant(places)[which]
        about = {"transform": own.rvs_to_transforms[own[name]], "default_transform": None}
        title = name if together else f"{models[group[0]]}_{name}"
        joint = _make_mixture(name, [graphs[i] for i in group], place)
        joint = model.register_rv(joint, title, dims=dims, **about)
        for i in group:
            graphs[i].joint[graphs[i].own[name]] = joint


def _add_observed(name: str, graphs: Sequence[_Graph], which: Any) -> None:
    """Add what all candidates observe."""
    own = graphs[0].own
    observed = own.rvs_to_values[own[name]]
    if _are_same(name, graphs):
        dims, variable = own.named_vars_to_dims.get(name), _make_mixture(name, graphs, which)
        pm.modelcontext(None).register_rv(variable, name, observed=observed, dims=dims)
    else:
        logps = [pt.sum(graph(pm.logp(graph.own[name], observed))) for graph in graphs]
        pm.Potential(name, _mix(logps, which))


def _make_mixture(name: str, graphs: Sequence[_Graph], which: Any) -> Any:
    """Return a random variable of candidates' one family, with the parameters of the one that holds."""
    variable = graphs[0].own[name]
    node = variable.owner
    numbers = [[g(v) for v in g.own[name].owner.inputs if hasattr(v.type, "dtype")] for g in graphs]
    mixed = iter([_mix(v, which) for v in zip(*numbers, strict=True)])
    streams = {v: shared(np.random.default_rng()) for v in node.inputs if isinstance(v.type, RandomType)}
    inputs = [next(mixed) if hasattr(v.type, "dtype") else streams.get(v, v) for v in node.inputs]
    return node.op.make_node(*inputs).outputs[node.outputs.index(variable)]


def _are_same(name: str, graphs: Sequence[_Graph]) -> bool:
    """Return True if candidates draw a variable from one family."""
    kinds = list[Any]()  # each `pm.CustomDist` makes a class of its own
    for op in (graph.own[name].owner.op for graph in graphs):
        random = type(op).__dict__["_random_fn"] if isinstance(op, CustomDistRV) else None
        cells = [cell.cell_contents for cell in getattr(random, "__closure__", None) or ()]
        kinds.append(op if random is None else (random.__code__, cells))
    return all(kind == kinds[0] for kind in kinds)
