"""Undecided draws, which nobody could resolve: estimates if all of them are wrong, and if all are right.

A metric that is a mean of bounded numbers has strict bounds: the ratios of undecided draws are 0, or 1, with
the intervals of bets. A draw can count without limit in any other metric. Undecided draws are then as bad, or
as good, as the decided draws of their class can be, by `Responding` with odds of ∞ and 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .._internal.errors import NotIdentified
from ..design.changes import Responding
from ..design.sample import Sample
from ..metrics.columns import EXACT
from ..metrics.definitions import Metric
from ..metrics.estimates import Cases, Estimates
from .bounded_means import REFUTED, draws_of, with_draws
from .closed_form import ClosedForm

FEWEST_WRONG = 5
"""Decided draws with an error from which the worst undecided ones can be like them. Fewer of them show an
error of a tenth of draws to within its half only, and bound nothing."""


def find_responding(design: Any) -> Responding | None:
    """Return the design of draws some of which are undecided, which another one may hold, or None."""
    while not isinstance(design, Responding) and hasattr(design, "design"):
        design = design.design
    return design if isinstance(design, Responding) and design.unresolved > 0 else None


def set_odds(design: Any, odds: float) -> Any:
    """Return a design that holds `Responding`, or is one, with other odds."""
    if isinstance(design, Responding):
        return replace(design, odds=odds)
    return replace(design, design=set_odds(design.design, odds))


def with_cases[Found: Estimates](found: Found, sample: Sample, metrics: Sequence[Metric]) -> Found:
    """Return estimates with both cases of undecided draws, if the sample has some."""
    design = find_responding(sample.design)
    if design is None or design.odds != 1:
        return found
    exact = sample.units.column(EXACT)[sample.expansion.order]
    ends = [Sample(sample.units, set_odds(sample.design, odds), looks=sample.looks) for odds in (np.inf, 0.0)]
    cases = []
    for metric in metrics:
        try:
            case = _bound(sample, metric)
        except NotIdentified:
            case = [ClosedForm()(one, [metric]) for one in ends]
            if (exact < 1).sum() < FEWEST_WRONG:
                case[0] = replace(case[0], mean=np.full(1, np.nan))
        cases.append(case)
    wrong, right = zip(*cases, strict=True)
    return replace(found, cases=Cases(wrong=wrong, right=right, share=design.unresolved))


def _bound(sample: Sample, metric: Metric) -> list[Estimates]:
    """Return a metric that is a mean of bounded numbers if undecided draws are all wrong, and all right."""
    design = sample.design
    if not isinstance(design, Responding):
        raise NotIdentified(f"weights of {type(design).__name__} are no chances")
    values, shares = draws_of(Sample(sample.units, design.design), metric)
    decided, cases = np.asarray(design.resolved)[design.tried], []
    fit = ClosedForm()(sample, [metric])
    of_all = np.ones((len(decided), 1))
    of_all[decided, 0] = shares
    for ratio in (0.0, 1.0):
        x = np.full(of_all.shape, ratio)
        x[decided, 0] = values
        mean = (of_all * x).sum(axis=0) / of_all.sum()
        cases.append(with_draws(replace(fit, mean=mean), x, of_all))
        if np.isnan(cases[-1].interval()).any():
            raise NotIdentified(f"{metric.name} has no strict bounds: {REFUTED}")
    return cases
