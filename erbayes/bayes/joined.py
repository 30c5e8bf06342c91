"""Joint draws of the tied parts: draws of one with partners among the others, weighted by the known total."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp

from ..arrays import FloatArray
from ..errors import DataError
from .importance import resampled, smoothed
from .parts import PartDraws
from .population import Links, log_density_of_total, unsampled

PARTNERS = 4
"""Number of random partners of each draw of the first part, of which one is chosen."""
TIED = ("entities", "kept", "kept_square", "foreign", "foreign_square")
"""Quantities by size on which the number of predicted links depends."""


@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    """Joint posterior draws of several parts.

    Attributes
    ----------
    by_size : dict, name -> float array, (chain, draw, ...)
        Quantities by size.
    parameters : dict, name -> float array, (chain, draw, ...)
    log_prior : dict, part -> float array, (chain, draw)
        Log prior density of the part's parameters.
    statistics : dict, name -> array, (chain, draw)
        Statistics of NUTS, of the transitions that drew the first part; empty without NUTS.
    khat : dict, name -> float
        Pareto shapes of the importance weights of each part.
    agreeing : float
        Effective number of combinations of draws, weighted by the known total: 1/Σ w², with weights w that
        add to 1.
    refitted : list of str
        Parts that were drawn by NUTS because their importance weights were unreliable.
    problems : list of str
        Reasons not to rely on the draws, with remedies.
    log_evidence : float
        Log marginal likelihood of all parts and of the known total, without terms that depend on the data
        alone.
    """

    by_size: dict[str, FloatArray]
    parameters: dict[str, FloatArray]
    log_prior: dict[str, FloatArray]
    statistics: dict[str, Any]
    khat: dict[str, float]
    agreeing: float
    refitted: list[str]
    problems: list[str]
    log_evidence: float = 0.0


def joined(parts: Mapping[str, PartDraws], data: Mapping[str, Any], rng: np.random.Generator) -> Joined:
    """Join the draws of independent parts by the known number of predicted links.

    The joint posterior is the product of the parts' posteriors times the density of the known number. Each
    draw of the first part is combined with random partners from the same chain of the other parts. The
    combinations are then resampled with that density as weight. They are in the order of the first part's
    draws.

    Parameters
    ----------
    parts : mapping, name -> PartDraws
        Draws of the parts, with the same chains and draws. The first part is that of sizes.
    data : mapping, name -> array
        Entries are those of `contract.DATA`.
    rng : Generator

    Returns
    -------
    Joined

    Raises
    ------
    DataError
        Two parts with a quantity or a parameter of the same name.
    """
    _refuse_common_names(parts)
    first, *others = parts.values()
    C, K = next(iter(first.by_size.values())).shape[:2]
    chain, draw = np.arange(C)[:, None], np.broadcast_to(np.arange(K), (C, K))
    rest = unsampled(first.by_size["entities"], data, first.by_size.get("stands"))
    tied = {k: (i, v) for i, p in enumerate(others) for k, v in p.by_size.items() if k in TIED}
    partners = rng.permuted(np.broadcast_to(draw, (PARTNERS, len(others), C, K)), axis=-1)
    log_w = np.empty((C, K, PARTNERS))
    for j, partner in enumerate(partners):
        partners_by_size = {k: v[chain, partner[i]] for k, (i, v) in tied.items()}
        links = Links.of(rest, first.by_size | partners_by_size, data)
        log_w[..., j] = log_density_of_total(links, np.log, np.log(data["predicted_links"]))
    w, _ = smoothed(log_w.ravel())
    pairs = np.stack([resampled(of_chain / of_chain.sum(), K, rng) for of_chain in w.reshape(C, -1)])
    of_first, choice = np.divmod(pairs, PARTNERS)
    draws = [of_first, *(partners[choice, i, chain, of_first] for i in range(len(others)))]
    chosen = list(zip(parts.items(), draws, strict=True))

    def joint(field: str) -> dict[str, FloatArray]:
        return {k: v[chain, i] for (_, p), i in chosen for k, v in getattr(p, field).items()}

    problems = [f"{name}: {problem}" for name, p in parts.items() for problem in p.problems]
    if n := int(np.sum(first.statistics.get("diverging", 0))):
        problems.insert(0, f"{n} divergent transitions: raise target_accept, look at the priors")
    return Joined(
        joint("by_size"),
        joint("parameters"),
        {name: p.log_prior[chain, i] for (name, p), i in chosen},
        {name: v[chain, of_first] for name, v in first.statistics.items()},
        {name: p.khat for name, p in parts.items()},
        float(1 / (w**2).sum()),
        [name for name, p in parts.items() if p.refitted],
        problems,
        sum(p.log_evidence for p in parts.values()) + float(logsumexp(log_w) - np.log(log_w.size)),
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
