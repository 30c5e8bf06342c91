"""Synthetic populations: a distribution of sizes makes the entities, a mechanism of error the prediction.

A *size distribution* draws sizes of entities that add to a number of records, and a *mechanism* turns true
cluster codes into predicted ones. Both are protocols: any object with a method `draw` or `apply` will do.

Symbols of the docstrings are the size s of an entity and the mean size s̄, K entities, N records, the number
C2(s) = s(s - 1)/2 of links of an entity, |T| = Σ C2(s) true links, pairwise precision P and recall R, and
E R, the mean of R over random errors.

[B22] is Binette et al. (2022), arXiv 2210.01230.
"""

from ...datasets import customers
from .simulated import Population, population, simulate
from .synthetic import Chain, Empirical, LogNormal, Merges, Misattribution, Splits, Zeta

__all__ = [
    "Chain",
    "Empirical",
    "LogNormal",
    "Merges",
    "Misattribution",
    "Population",
    "Splits",
    "Zeta",
    "customers",
    "population",
    "simulate",
]
