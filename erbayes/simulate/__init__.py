"""Synthetic populations: entities by a law of their sizes, predictions by a mechanism of error.

A *size law* draws cluster sizes that fill a number of records, a *mechanism* turns true cluster codes
into predicted ones. Both are protocols: any object with `draw` or `apply` will do. Below, s is the
size of an entity, s̄ its mean, K the number of entities, N that of records, |T| = Σ C2(s). References are
[B22] Binette et al. (2022), arXiv 2210.01230, and [P06] Pitman (2006), Combinatorial Stochastic Processes.
"""

from .errors import (
    Chain,
    Homonyms,
    Mechanism,
    Merges,
    Misattribution,
    RareErrors,
    SizeDependent,
    Splits,
)
from .populations import Population, population, simulate
from .sizes import Empirical, LogNormal, NegativeBinomial, PitmanYor, SizeLaw, Zeta

__all__ = [
    "Chain",
    "Empirical",
    "Homonyms",
    "LogNormal",
    "Mechanism",
    "Merges",
    "Misattribution",
    "NegativeBinomial",
    "PitmanYor",
    "Population",
    "RareErrors",
    "SizeDependent",
    "SizeLaw",
    "Splits",
    "Zeta",
    "population",
    "simulate",
]
