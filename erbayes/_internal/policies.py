"""Policies that a user chooses. The shell lists them, so that they come without any other module.

Functions take a policy or its word, such as "omit" for `Missing.OMIT`.
"""

from enum import Enum


class Missing(Enum):
    """Policies for labelled records that are missing in the prediction, or in one of several.

    Examples
    --------
    >>> from erbayes import measure
    >>> prediction, labels = {1: "a", 2: "a"}, {1: "x", 2: "x", 3: "x"}
    >>> units = measure(prediction, labels, missing="omit")
    >>> units.size, units.unmatched
    (array([2.]), 1)
    """

    ERROR = "error"
    """Refuse (the default)."""
    SINGLETON = "singleton"
    """Each is a predicted cluster of its own. \\|P\\| stays known; N and \\|Ĉ\\| do not."""
    TOGETHER = "together"
    """Those of one entity are one predicted cluster. No total stays known."""
    OMIT = "omit"
    """Leave them out. The population is then the records that the prediction has, and all totals are known.
    Entities shrink. An entity of which the prediction has no record leaves the sample. Predictions made of
    pairs alone (`Clustering.from_pairs` without `records`) refuse this policy."""
    COMMON = "common"
    """Judge several predictions that cover different records on those that every one covers, and leave out
    other labelled records. If the predictions cover the same records, it refuses as `ERROR` does."""


class SingleUnit(Enum):
    """Rules for the variance of a stratum with one draw."""

    ERROR = "error"
    """Refuse (the default)."""
    CERTAINTY = "certainty"
    """It adds nothing, since the unit was certain to be drawn."""
    ADJUST = "adjust"
    """It adds the squared distance of its draw from the mean of all draws, which is conservative."""
