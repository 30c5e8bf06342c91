"""Cheap labels of many draws and careful ones of some: how many of each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._internal.errors import DataError, number
from .correction import FEWEST_DRAWS


@dataclass(frozen=True, slots=True)
class Phases:
    """Numbers of `careful` and `cheap` draws within a budget, and `width` over that without cheap ones."""

    careful: int
    cheap: int
    width: float


def phases(budget: float, correlation: float, *, careful: float, cheap: float) -> Phases:
    """Return the numbers of draws in two phases that make the shortest intervals within a budget.

    The variance of `erbayes.two_phase` is V ((1-ρ²)/n + ρ²/n'), with ρ the correlation of the effects of a
    draw by careful and by cheap labels. The cost is n c + n' c'. The best ratio is

        n'/n = √(c/c' · ρ²/(1-ρ²))

    Cheap labels are not worth their cost unless the variance is less than with careful labels alone.

    Parameters
    ----------
    budget : float
        The cost of all labels.
    correlation : float in [-1, 1]
        ρ, as the table of `erbayes.two_phase` or of a pilot shows it. Below 0 there is no help.
    careful, cheap : float
        Costs c and c' of one draw.

    Notes
    -----
    Source: Neyman (1938); Cochran (1977), section 12.3. Pseudo-draws and degrees of freedom are not counted.

    Examples
    --------
    >>> phases(1000, 0.9, careful=5, cheap=0.1)
    Phases(careful=155, cheap=2250, width=0.563)
    >>> phases(1000, 0.3, careful=5, cheap=2)
    Phases(careful=200, cheap=0, width=1.0)
    """
    for value, name in ((budget, "the budget"), (careful, "the careful cost"), (cheap, "the cheap cost")):
        number(value, name, lambda x: 0 < x < np.inf, "be above 0 and finite")
    number(correlation, "the correlation", lambda x: -1 <= x <= 1, "lie in [-1, 1]")
    alone = int(budget // careful)
    if alone < 2:
        raise DataError(f"a budget of {budget:g} does not pay 2 careful draws of {careful:g} each: raise it")
    square = max(correlation, 0.0) ** 2
    part = np.sqrt(careful * (1 - square)) + np.sqrt(cheap * square)
    n = max(round(budget * np.sqrt((1 - square) / careful) / part), FEWEST_DRAWS)
    every = int((budget - n * careful) / cheap + 1e-9)
    if every <= n:
        return Phases(alone, 0, 1.0)
    width = float(np.sqrt(alone * ((1 - square) / n + square / every)))
    return Phases(n, every, round(width, 3)) if width < 1 else Phases(alone, 0, 1.0)
