"""The number of units to label, and the design that draws them, for intervals of a required width.

    forecast(pilot, metrics, {"records": UniformRecords(), "entities": UniformClusters()}).smallest(0.05)

The width of an interval follows from the estimate, from the variance of one draw, and from the effective
number of draws (see `outlook`).
"""

from .pilot import forecast

__all__ = ["forecast"]
