"""Joint draws of the tied parts: draws of one with partners among the others, weighted by the known total."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from .._internal.arrays import FloatArray, IntArray
from .._internal.errors import DataError
from .importance import resampled, truncated
from .parts import PartDraws
from .population import Completed, Links, completed, log_density_of_total, unsampled

PARTNERS = 4
"""Number of partners of each draw of the first part, of which one is chosen."""
CANDIDATES = 2000
"""Number of combinations of draws, of which one is chosen for each number of common links."""
TIED = ("entities", "kept", "kept_square", "foreign", "foreign_square")
"""Quantities by size on which the number of predicted links depends."""


@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    """Joint posterior draws of several parts, (chain, draw, ...), of which `agreeing` combinations are
    effective.
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
    """Join draws of independent parts, the first that of sizes, resampled by the known predicted links."""
    partners, links = _combine_parts(parts, data, rng)
    log_w = log_density_of_total(links, np.log, np.log(data["predicted_links"]))
    w = truncated(log_w.ravel())  # weights are bounded, since the density of the total is
    C, K = log_w.shape[:2]
    pairs = np.stack([resampled(of_chain / of_chain.sum(), K, rng) for of_chain in w.reshape(C, -1)])
    log_evidence = float(np.logaddexp.reduce(log_w, axis=None) - np.log(log_w.size))
    return _choose_combinations(parts, partners, pairs, w, log_evidence)


def given(
    parts: Mapping[str, PartDraws], total: FloatArray, data: Mapping[str, Any], rng: np.random.Generator
) -> Joined:
    """Join draws of independent parts, given a number of predicted links for each draw, (chain, draw).

    These parts have no influence on the numbers: a cut (Plummer 2015, Statistics and Computing 25, 37-43).
    """
    partners, links = _combine_parts(parts, data, rng, shuffled=True)
    C, every = len(total), links.predicted[0].size
    # half a link stands for none, which has no logarithm
    log_total = np.log(np.maximum(total, 0.5))

    def log_density(candidates: IntArray, chain: int, log_total: FloatArray) -> FloatArray:
        mean, spread = (
            v[chain].ravel()[candidates] for v in (np.log(links.predicted), links.relative_variance)
        )
        return np.asarray(-0.5 * (log_total[:, None] - mean) ** 2 / spread - 0.5 * np.log(spread))

    pairs = np.empty(total.shape, dtype=np.int64)
    for chain in range(C):
        candidates = rng.choice(every, min(CANDIDATES, every), replace=False)
        log_w = log_density(candidates, chain, log_total[chain])
        # The largest of log weights plus Gumbel noise is a draw with these weights.
        pairs[chain] = candidates[np.argmax(log_w + rng.gumbel(size=log_w.shape), axis=1)]
    median = np.median(log_total, keepdims=True).ravel()
    log_w = np.concatenate([log_density(np.arange(every), chain, median)[0] for chain in range(C)])
    log_evidence = float(np.logaddexp.reduce(log_w) - np.log(len(log_w)))
    return _choose_combinations(parts, partners, pairs, truncated(log_w), log_evidence)


def _combine_parts(
    parts: Mapping[str, PartDraws],
    data: Mapping[str, Any],
    rng: np.random.Generator,
    shuffled: bool = False,
) -> tuple[IntArray, Links]:
    """Return partners of the first part's draws, (partner, other part, chain, draw), and their links."""
    _refuse_common_names(parts)
    first, *others = parts.values()
    C, K = next(iter(first.by_size.values())).shape[:2]
    chain, draw = np.arange(C)[:, None], np.broadcast_to(np.arange(K), (C, K))
    rest = unsampled(first.by_size, data)
    tied = {k: (i, v) for i, p in enumerate(others) for k, v in p.by_size.items() if k in TIED}
    # Copies of a point stand side by side in each part. A part is shifted as a whole, the partners of a draw
    # are neighbours, and the shifts of the second and third part run against each other. So copies stay side
    # by side among the joint draws, where autocorrelation shows them: random partners hid them from ArviZ.
    first_partner = rng.integers(K, size=(len(others), C, 1))
    direction = (-1) ** np.arange(len(others)).reshape(-1, 1, 1)
    steps = np.arange(PARTNERS).reshape(-1, 1, 1, 1)
    partners = (draw + first_partner + direction * steps) % K
    if shuffled:  # draws are then chosen in no order
        partners = rng.permuted(partners, axis=-1)
    links = []
    for partner in partners:
        partners_by_size = {k: v[chain, partner[i]] for k, (i, v) in tied.items()}
        links.append(Links.of(rest, first.by_size | partners_by_size, data))
    stacked = (np.stack([getattr(of, f.name) for of in links], axis=-1) for f in fields(Links))
    return partners, Links(*stacked)


def _choose_combinations(
    parts: Mapping[str, PartDraws], partners: IntArray, pairs: IntArray, w: FloatArray, log_evidence: float
) -> Joined:
    """Return the combinations at positions `pairs`, (chain, draw). `w` are the weights of all."""
    of_first, choice = np.divmod(pairs, len(partners))
    chain, first = np.arange(len(pairs))[:, None], next(iter(parts.values()))
    draws = [of_first, *(partners[choice, i, chain, of_first] for i in range(len(parts) - 1))]
    chosen = list(zip(parts.items(), draws, strict=True))

    def joint(field: str) -> dict[str, FloatArray]:
        return {k: v[chain, i] for (_, p), i in chosen for k, v in getattr(p, field).items()}

    problems = [f"{name}: {problem}" for name, p in parts.items() for problem in p.problems]
    return Joined(
        joint("by_size"),
        joint("parameters"),
        {name: p.log_prior[chain, i] for (name, p), i in chosen},
        {name: v[chain, of_first] for name, v in first.statistics.items()},
        {name: p.khat for name, p in parts.items()},
        float(1 / (w**2).sum()),
        [name for name, p in parts.items() if p.refitted],
        problems,
        sum(p.log_evidence for p in parts.values()) + log_evidence,
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


def populations(
    parts: Mapping[str, PartDraws],
    data: Mapping[str, Any],
    rng: np.random.Generator,
    common: FloatArray | None,
) -> tuple[Joined, Completed]:
    """Join draws of parts, and complete a population for each joint draw."""
    if common is None:
        draws = joined(parts, data, rng)
    else:
        draws = given(parts, common, data, rng)
        data = {**data, "predicted_links": np.maximum(common, 0.5)}
    return draws, completed(draws.by_size, data, rng)
