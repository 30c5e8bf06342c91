"""Synthetic populations: a law of sizes makes the entities, and a mechanism of error makes the prediction.

A *size law* draws sizes of entities that add to a number of records. A *mechanism* turns true cluster codes
into predicted ones. Both are protocols: any object with a method `draw` or `apply` will do.

The docstrings use these symbols. s is the size of an entity, and s̄ the mean size. K is the number of
entities, and N the number of records. C2(s) = s(s - 1)/2 is the number of links of an entity, and
|T| = Σ C2(s) the number of true links.
P is pairwise precision, R pairwise recall, and E R the mean of R over random errors.

[B22] is Binette et al. (2022), arXiv 2210.01230.
"""

from .customer_records import customers
from .errors import Chain, Merges, Misattribution, RareErrors, Splits
from .simulated import Population, population, simulate
from .sizes import Empirical, LogNormal, Zeta

__all__ = [
    "Chain",
    "Empirical",
    "LogNormal",
    "Merges",
    "Misattribution",
    "Population",
    "RareErrors",
    "Splits",
    "Zeta",
    "customers",
    "population",
    "simulate",
]
