"""Sampling: what to draw, what to give annotators, when to stop."""

from .stopping import ONCE, REPEATED, Check, Rule, Verdict, check
from .unresolved import worst_cases

__all__ = ["ONCE", "REPEATED", "Check", "Rule", "Verdict", "check", "worst_cases"]
