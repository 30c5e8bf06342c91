"""Pictures of results. Each function takes a result, and `ax` in place of a new figure, and returns Axes.

Pictures need matplotlib (the extra `plots`), which is loaded when the first one is drawn. Everything is
black, white and grey, and series differ in shape as well. The gallery of the guide has each, with its code.
"""

from .explored import explore
from .research import (
    draw_coverage,
    draw_estimates,
    draw_mates,
    draw_predicted_sizes,
    draw_retention,
    draw_size_distribution,
    draw_tipping,
)
from .results import (
    draw_balance,
    draw_by_domain,
    draw_calibration,
    draw_check,
    draw_comparison,
    draw_curve,
    draw_errors,
    draw_forecast,
    draw_forest,
    draw_influence,
    draw_side_by_side,
    draw_stages,
)

__all__ = [
    "draw_balance",
    "draw_by_domain",
    "draw_calibration",
    "draw_check",
    "draw_comparison",
    "draw_coverage",
    "draw_curve",
    "draw_errors",
    "draw_estimates",
    "draw_forecast",
    "draw_forest",
    "draw_influence",
    "draw_mates",
    "draw_predicted_sizes",
    "draw_retention",
    "draw_side_by_side",
    "draw_size_distribution",
    "draw_stages",
    "draw_tipping",
    "explore",
]
