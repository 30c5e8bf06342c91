"""Undecided draws, which nobody could resolve: estimates if all of them are wrong, and if all are right.

Undecided draws count as much as the decided ones of their class on average. In a share the ratio of each is
0, or 1. In any other metric a draw can count without limit, so that undecided draws are as bad, or as good,
as the decided draws of their class can be, by `Responding` with odds of ∞ and 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ..design.changes import find_responding, set_odds
from ..design.sample import Sample
from ..metrics.columns import EXACT
from ..metrics.definitions import Metric
from ..metrics.estimates import Cases, Estimates
from .closed_form import ClosedForm
from .fitted import fit_sample

FEWEST_WRONG = 5
"""Decided draws with an error from which the worst undecided ones can be like them, if no share."""


def with_cases[Found: Estimates](found: Found, sample: Sample, metrics: Sequence[Metric]) -> Found:
    """Return estimates with both cases of undecided draws, if the sample has some.

    Cases are those of the closed form, moved and scaled as `found` differs from it.
    """
    design = find_responding(sample.design)
    if design is None or design.odds != 1:
        return found
    units, drawn, fitted = sample.units, sample.expansion, fit_sample(sample, metrics)
    lost = design.unresolved_alike
    # a unit may have draws of several classes, which weigh what they represent
    weight = np.ones(len(lost)) if drawn.repeats is None else drawn.repeats
    lost, of_all = (np.bincount(drawn.order, w, len(units))[drawn.unit] for w in (lost * weight, weight))
    lost = lost / of_all
    few = (units.column(EXACT)[drawn.order] == 0).sum() < FEWEST_WRONG
    # with shares a_s of draws, and their ratios v_s: Σ ρ_s a_s and Σ ρ_s a_s (v_s - mean)
    share, gone = lost @ fitted.shares, lost @ fitted.changes
    plain, mean, variance = ClosedForm()(sample, metrics), found.uncut, found.uncut_sd**2
    scale = np.divide(variance, plain.uncut_sd**2, out=np.ones_like(mean), where=plain.uncut_sd > 0)
    is_share, draws, cases = np.array([m.is_share for m in metrics]), design.tried.sum(), []
    by_odds = estimate_by_odds(sample, lambda one: ClosedForm()(one, metrics))
    for case, ratio in zip(by_odds, (0.0, 1.0), strict=True):
        moved = np.nan if few and ratio == 0 else case.mean + mean - plain.uncut
        mixed = np.clip(mean - gone + share * (ratio - mean), 0.0, 1.0)
        spread = (1 - share) ** 2 * variance + share * (1 - share) * (mean - ratio) ** 2 / draws
        mean_of_case = np.where(is_share, mixed, moved)
        cov = np.diag(np.where(is_share, spread, case.uncut_sd**2 * scale))
        cases.append(replace(case, mean=mean_of_case, cov=cov))
    return replace(found, cases=Cases.of(cases[0], cases[1], design.unresolved))


def estimate_by_odds(sample: Sample, answer: Callable[[Sample], Estimates]) -> list[Estimates]:
    """Return an answer if undecided draws are as bad, and as good, as the decided ones of their class."""
    designs = (set_odds(sample.design, odds) for odds in (np.inf, 0.0))
    return [answer(Sample(sample.units, design, looks=sample.looks)) for design in designs]
