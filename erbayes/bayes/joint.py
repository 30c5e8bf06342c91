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
        having = [
            (g, i) for i, g in enumerate(graphs) if name in g.own.named_vars and g.own[name] not in g.joint
        ]
        if having:
            _add_variable(name, having, which, [*part.models])
    for name in dict.fromkeys(v.name for own, _ in candidates for v in own.observed_RVs):
        _add_observed(name, graphs, which)
    for name in dict.fromkeys(v.name for own, _ in candidates for v in own.potentials):
        potentials = [pt.sum(g(g.own[name])) if name in g.own.named_vars else 0.0 for g in graphs]
        pm.Potential(name, _mix(potentials, which))
    common = [k for k in candidates[0][1] if all(k in by_size for _, by_size in candidates)]
    return {
        name: _mix(
            [graph(by_size[name]) for graph, (_, by_size) in zip(graphs, candidates, strict=True)], which
        )
        for name in common
        if name != LOG_FLAWLESS
    }


class _Graph:
    """Graphs of one candidate's `own` model, with the variables of the joint model in place of its own."""

    def __init__(self, own: pm.Model) -> None:
        self.own, self.joint = own, dict[Any, Any]()

    def __call__(self, value: Any) -> Any:
        (joint,) = graph_replace([pt.as_tensor(value)], self.joint, strict=False)
        # parameters of priors and lengths of dimensions
        constants = {
            v: pt.constant(v.get_value())
            for v in graph_inputs([joint])
            if isinstance(v, SharedVariable) and not isinstance(v.type, RandomType)
        }
        return graph_replace([joint], constants, strict=False)[0]


def _mix(values: Sequence[Any], which: Any) -> Any:
    """Return the value of the candidate that holds."""
    first, *others = (pt.as_tensor(v) for v in values)
    if which is None or all(equal_computations([first], [v]) for v in others):
        return first
    return pt.stack(pt.broadcast_arrays(first, *others))[which]


def _add_variable(name: str, having: list[tuple[_Graph, int]], which: Any, models: list[str]) -> None:
    """Add a free variable that these candidates have, or one for each if their distributions differ."""
    model, first = pm.modelcontext(None), having[0][0].own[name]
    dims = having[0][0].own.named_vars_to_dims.get(name)
    for dim in dims or ():
        model.add_coord(dim, having[0][0].own.coords[dim])
    together = all(_is_same(first.owner.op, graph.own[name].owner.op) for graph, _ in having)
    groups = [having] if together else [[one] for one in having]
    for group in groups:
        own = group[0][0].own
        at = {i: k for k, (_, i) in enumerate(group)}
        # under a candidate without the variable, its prior is that of the first candidate with it
        place = None if which is None else pt.constant([at.get(i, 0) for i in range(len(models))])[which]
        values = [[graph(v) for v in _parameters(graph.own[name])] for graph, _ in group]
        variable = _rebuilt(own[name], [_mix(v, place) for v in zip(*values, strict=True)])
        title = name if together else f"{models[group[0][1]]}_{name}"
        about = {"transform": own.rvs_to_transforms[own[name]], "default_transform": None}
        joint = model.register_rv(variable, title, dims=dims, **about)
        for graph, _ in group:
            graph.joint[graph.own[name]] = joint


def _add_observed(name: str, graphs: list[_Graph], which: Any) -> None:
    """Add what all candidates observe."""
    own, first = graphs[0].own, graphs[0].own[name]
    observed = own.rvs_to_values[first]
    if all(_is_same(first.owner.op, graph.own[name].owner.op) for graph in graphs):
        values = [[graph(v) for v in _parameters(graph.own[name])] for graph in graphs]
        variable = _rebuilt(first, [_mix(v, which) for v in zip(*values, strict=True)])
        dims = own.named_vars_to_dims.get(name)
        pm.modelcontext(None).register_rv(variable, name, observed=observed, dims=dims)
    else:
        logps = [pt.sum(graph(pm.logp(graph.own[name], observed))) for graph in graphs]
        pm.Potential(name, _mix(logps, which))


def _parameters(variable: Any) -> list[Any]:
    """Return the inputs of a random variable that are numbers: neither its random stream nor no size."""
    return [v for v in variable.owner.inputs if hasattr(v.type, "dtype")]


def _rebuilt(variable: Any, parameters: Sequence[Any]) -> Any:
    """Return a random variable with other parameters, and a random stream of its own."""
    node, left = variable.owner, iter(parameters)
    inputs = [
        next(left)
        if hasattr(v.type, "dtype")
        else shared(np.random.default_rng())
        if isinstance(v.type, RandomType)
        else v
        for v in node.inputs
    ]
    return node.op.make_node(*inputs).outputs[node.outputs.index(variable)]


def _is_same(one: Any, other: Any) -> bool:
    """Return True if two operations draw from one family. Each `pm.CustomDist` makes a class of its own."""
    if isinstance(one, CustomDistRV) and isinstance(other, CustomDistRV):
        functions = [type(op).__dict__["_random_fn"] for op in (one, other)]
        codes, cells = zip(*((f.__code__, f.__closure__ or ()) for f in functions), strict=True)
        return codes[0] is codes[1] and [c.cell_contents for c in cells[0]] == [
            c.cell_contents for c in cells[1]
        ]
    return bool(one == other)
