"""Parts joined: draws of each with partners among the others, weighted by the one known total."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import FloatArray
from ..errors import DataError
from .importance import resampled, smoothed
from .parts import PartDraws
from .population import Links, log_density_of_total, unsampled

PARTNERS = 4
"""Random partners that each draw of the first part is tried with."""
TIED = ("entities", "kept", "kept_square", "foreign", "foreign_square")


@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    """Draws of several parts together.

    Attributes
    ----------
    by_size, parameters : dicts of float arrays, (chain, draw, ...)
    log_prior : dict of float arrays, (chain, draw)
        Log prior density of each part's parameters.
    statistics : dict of arrays, (chain, draw)
        Of NUTS, of the transitions that drew the first part; empty without.
    khat : dict
        Pareto shapes of the weights of each part's importance sampling, and of the known total.
    refitted : list of str
        Parts that NUTS took over.
    problems : list of str
        Why not to rely on the draws, with remedies.
    """

    by_size: dict[str, FloatArray]
    parameters: dict[str, FloatArray]
    log_prior: dict[str, FloatArray]
    statistics: dict[str, Any]
    khat: dict[str, float]
    refitted: list[str]
    problems: list[str]


def joined(parts: Mapping[str, PartDraws], data: Mapping[str, Any], rng: np.random.Generator) -> Joined:
    """Draws of the parts together, (chain, draw), in the order of the first part's.

    Given the total, the parts' posterior is the product of theirs times the density of the known number
    of predicted links: so each draw of the first part is tried with partners from the same chain of the
    others, and the pairs are resampled by that density.

    Raises
    ------
    DataError
        Two parts with a quantity or a parameter of the same name.
    """
    _refuse_common_names(parts)
    first, *others = parts.values()
    C, K = next(iter(first.by_size.values())).shape[:2]
    chain, own = np.arange(C)[:, None], np.broadcast_to(np.arange(K), (C, K))
    left = unsampled(first.by_size["entities"], data)
    tied = {k: (i, v) for i, p in enumerate(others) for k, v in p.by_size.items() if k in TIED}
    partners = rng.permuted(np.broadcast_to(own, (PARTNERS, len(others), C, K)), axis=-1)
    log_w = np.empty((C, K, PARTNERS))
    for j, at in enumerate(partners):
        links = Links.of(left, {k: v[chain, at[i]] for k, (i, v) in tied.items()}, data)
        log_w[..., j] = log_density_of_total(links, np.log, np.log(data["predicted_links"]))
    w, khat = smoothed(log_w.ravel())
    chosen = np.stack([resampled(of / of.sum(), K, rng) for of in w.reshape(C, -1)])
    mine, partner = chosen // PARTNERS, chosen % PARTNERS
    at = [mine, *(partners[partner, i, chain, mine] for i in range(len(others)))]
    log_prior = {k: p.log_prior[chain, i] for (k, p), i in zip(parts.items(), at, strict=True)}

    def together(what: str) -> dict[str, FloatArray]:
        return {
            k: v[chain, i]
            for p, i in zip(parts.values(), at, strict=True)
            for k, v in getattr(p, what).items()
        }

    problems = [f"{name}: {told}" for name, p in parts.items() for told in p.problems]
    if n := int(np.sum(first.statistics.get("diverging", 0))):
        problems.insert(0, f"{n} divergent transitions: raise target_accept, look at the priors")
    return Joined(
        together("by_size"),
        together("parameters"),
        log_prior,
        {name: v[chain, mine] for name, v in first.statistics.items()},
        {**{name: p.khat for name, p in parts.items()}, "total": khat},
        [name for name, p in parts.items() if p.refitted],
        problems,
    )


def _refuse_common_names(parts: Mapping[str, PartDraws]) -> None:
    """Raise DataError if two parts have a quantity or a parameter of the same name."""
    for kind in ("by_size", "parameters"):
        owner: dict[str, str] = {}
        for part, drawn in parts.items():
            for name in getattr(drawn, kind):
                if name in owner:
                    raise DataError(f"both {owner[name]} and {part} have a '{name}': rename one of them")
                owner[name] = part
