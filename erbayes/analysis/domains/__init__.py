"""Metrics by domain: of the records that have one value of a variable, jointly for all values.

    by_domain(sample, country).table()

Estimates of a domain use the complete sample, in which other records count 0. The number of draws that fall
into the domain is random, and part of the variance. Weights of draws and sizes of units stay those of
complete units.

Source: Särndal, Swensson and Wretman (1992), Model Assisted Survey Sampling, chapter 10.
"""

from .estimates import by_domain, by_pair
from .paired import compare_by_domain
from .rows import in_domain

__all__ = ["by_domain", "by_pair", "compare_by_domain", "in_domain"]
