"""Metrics by domain: of the records that have one value of a variable, jointly for all values.

    by_domain(sample, country).table()

Estimates of a domain keep the whole sample, in which other records count 0. The number of draws that fall
into the domain is random, and part of the variance. Weights of draws and sizes of units stay those of whole
units.

Source: Särndal, Swensson and Wretman (1992), Model Assisted Survey Sampling, chapter 10.
"""

from .effective import degrees, effective_draws
from .estimates import ByDomain, by_domain, by_pair
from .known_links import balance
from .metric import in_domain
from .paired import ComparedByDomain, compare_by_domain

__all__ = [
    "ByDomain",
    "ComparedByDomain",
    "balance",
    "by_domain",
    "by_pair",
    "compare_by_domain",
    "degrees",
    "effective_draws",
    "in_domain",
]
