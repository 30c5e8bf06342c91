"""A prior of the size model from three answers in plain numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.special import logit, ndtri

from .._internal.errors import DataError
from .laws import OneOf
from .model import RETENTION, SIZES, SizeModel
from .outcomes import Leakage
from .priors import Level

Range = tuple[float, float]
"""The lower and the upper end of a 90 % interval of a share."""
WITHIN = 0.9
"""Probability of an answer. People give 90 % intervals more willingly than 95 % ones."""


def elicited(
    whole: Range | None = None, clean: Range | None = None, in_giants: Range | None = None
) -> SizeModel:
    """Return the default model with a prior that answers to three questions set.

    Think of entities of usual size, and answer each question with two shares, so that you would bet nine to
    one that the truth lies between them. Then look at what your answers say of precision and recall, by
    ``bayes.prior(prediction, model).table()``, and change those that say what you do not believe.

    Parameters
    ----------
    whole : (low, high), optional
        Of the entities with several records, which share has all of them in one predicted cluster?
    clean : (low, high), optional
        Of the entities, which share meets no foreign record in its predicted clusters?
    in_giants : (low, high), optional
        Which share of the records belongs to entities far larger than the predicted clusters?

    Returns
    -------
    SizeModel
        A question that is left out keeps the default prior.

    Raises
    ------
    DataError
        An answer that is not two shares with 0 < low < high < 1.

    Notes
    -----
    i = log(-log(`whole`)) of `Retention`, h = log(-log(`clean`)) of `Leakage` and logit(`in_giants`) are
    normal, with 5 % of their mass beyond either end. The law of retention with a threshold has the answer
    below it, and the law of sizes with many giants is as it was.

    Examples
    --------
    >>> from erbayes import bayes
    >>> model = bayes.elicited(whole=(0.6, 0.95), clean=(0.8, 0.99))
    >>> model.retention.usual.break_level
    Level(mean=-1.82, sd=0.7)
    """
    retention, leakage, sizes = RETENTION, Leakage(), SIZES
    if whole is not None:
        level = _find_level("whole", whole, _log_hazard)
        usual, uneven, threshold = (retention.laws[name] for name in ("usual", "uneven", "threshold"))
        below = replace(threshold.below, break_level=level)
        changed = {
            "usual": replace(usual, break_level=level),
            "uneven": replace(uneven, break_level=level),
            "threshold": replace(threshold, below=below),
        }
        retention = OneOf(changed, retention.weights)
    if clean is not None:
        leakage = replace(leakage, meet_level=_find_level("clean", clean, _log_hazard))
    if in_giants is not None:
        share = _find_level("in_giants", in_giants, logit)
        sizes = OneOf({**sizes.laws, "predicted": replace(sizes.usual, larger_share=share)}, sizes.weights)
    return SizeModel(sizes, retention, leakage)


def _log_hazard(share: float) -> float:
    """Return the log hazard h of an error that a share exp(-e^h) of the entities does not have."""
    return float(np.log(-np.log(share)))


def _find_level(question: str, answer: Range, scale: Callable[[float], float]) -> Level:
    """Return the normal prior with `WITHIN` between the ends of an answer, on the scale of the model."""
    shares = np.asarray(answer, float)
    if shares.shape != (2,) or not 0 < shares[0] < shares[1] < 1:
        raise DataError(f"{question} must be two shares, 0 < low < high < 1, not {answer!r}")
    low, high = sorted(scale(share) for share in shares.tolist())
    sd = (high - low) / (2 * float(ndtri((1 + WITHIN) / 2)))
    return Level(round((low + high) / 2, 2), round(sd, 2))
