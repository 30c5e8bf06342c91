"""Undecided draws, which nobody could resolve: estimates if all of them are wrong, and if all are right.

A metric that is a mean of bounded numbers has strict cases: the ratios of undecided draws are 0, or 1. In any
other metric a draw can count without limit, so that undecided draws are as bad, or as good, as the decided
draws of their class can be, by `Responding` with odds of ∞ and 0. If too few of these have an error, a share
has the first cases, with undecided draws that count as much as the others of their class on average.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from .._internal.errors import NotIdentified
from ..design.changes import Responding, find_responding, set_odds
from ..design.sample import Sample
from ..metrics.columns import EXACT
from ..metrics.definitions import Metric
from ..metrics.estimates import Cases, Estimates
from .bounded_means import draws_of
from .closed_form import ClosedForm
from .fitted import fit_sample

FEWEST_WRONG = 5
"""Decided draws with an error from which the worst undecided ones can be like them. Fewer of them show an
error of a tenth of draws to within its half only, and bound nothing."""


def with_cases[Found: Estimates](found: Found, sample: Sample, metrics: Sequence[Metric]) -> Found:
    """Return estimates with both cases of undecided draws, if the sample has some.

    Cases are those of the closed form, moved and scaled as `found` differs from it.
    """
    design = find_responding(sample.design)
    if design is None or design.odds != 1:
        return found
    units, drawn, shares = sample.units, sample.expansion, fit_sample(sample, metrics).shares
    times = np.bincount(drawn.order, minlength=len(units))
    counted = np.zeros((len(units), len(metrics)), dtype=bool)
    counted[drawn.unit] = shares > 0
    wrong = (times * (units.column(EXACT) == 0)) @ counted
    code, _, begun = design.count_classes()
    lost = (1 - np.bincount(code) / begun)[code]
    of_unit = np.bincount(drawn.order, lost, len(units)) / np.maximum(times, 1)
    plain, share, draws = ClosedForm()(sample, metrics), of_unit[drawn.unit] @ shares, design.tried.sum()
    by_odds = estimate_by_odds(sample, lambda one: ClosedForm()(one, metrics))
    mean, variance = found.uncut, found.uncut_sd**2
    by_ratio = [
        m.is_share and (few or _is_mean(sample, m))
        for m, few in zip(metrics, wrong < FEWEST_WRONG, strict=True)
    ]
    cases = []
    for case, ratio in zip(by_odds, (0.0, 1.0), strict=True):
        scale = np.divide(variance, plain.uncut_sd**2, out=np.ones_like(mean), where=plain.uncut_sd > 0)
        bounded = (wrong >= FEWEST_WRONG) | (ratio == 1)
        moved = np.where(bounded, case.mean + mean - plain.uncut, np.nan)
        mixed = (1 - share) * mean + share * ratio
        spread = (1 - share) ** 2 * variance + share * (1 - share) * (mean - ratio) ** 2 / draws
        case = replace(
            case,
            mean=np.where(by_ratio, mixed, moved),
            cov=np.diag(np.where(by_ratio, spread, case.uncut_sd**2 * scale)),
        )
        cases.append(case)
    return replace(found, cases=Cases.of(cases[0], cases[1], design.unresolved))


def estimate_by_odds(sample: Sample, answer: Callable[[Sample], Estimates]) -> list[Estimates]:
    """Return an answer if undecided draws are as bad, and as good, as the decided ones of their class."""
    designs = (set_odds(sample.design, odds) for odds in (np.inf, 0.0))
    return [answer(Sample(sample.units, design, looks=sample.looks)) for design in designs]


def _is_mean(sample: Sample, metric: Metric) -> bool:
    """Return whether a metric is a mean of numbers in [0, 1] of draws that hold about the same."""
    if not isinstance(sample.design, Responding):
        return False  # weights are no chances
    try:
        draws_of(Sample(sample.units, sample.design.design), metric)
    except NotIdentified:
        return False
    return True
