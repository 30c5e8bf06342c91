"""The prior predictive distribution of metrics, and priors from answers in plain numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import logit, ndtri

from .._internal.arrays import FloatArray, Seed, generator
from .._internal.errors import DataError, NotIdentified
from ..metrics.columns import ClusterSum, Column, Known
from ..metrics.definitions import MetricLike, pairwise_f1, pairwise_precision, pairwise_recall
from ..metrics.estimates import Estimates
from ..units.clustering import Clustering
from ..units.units import histogram
from .data import data_of_prediction
from .error_models import Mates, Retention
from .importance import need_draws
from .model import SizeModel, need_model
from .population import join_and_complete
from .priors import NormalPrior
from .programs import draw_from_prior
from .sizes import PredictionInformed
from .totals import COMPLETED, applied


def prior(
    prediction: Any,
    model: SizeModel | None = None,
    metrics: MetricLike = (pairwise_precision, pairwise_recall, pairwise_f1),
    *,
    draws: int = 4000,
    rng: Seed = None,
) -> Estimates:
    """Draw metrics from the prior predictive distribution, given the sizes of predicted clusters.

    Precision is that of mates from the prior in the known clusters, and sizes and retention are drawn to
    agree with it. If the interval excludes what you think possible, or includes what you know to be wrong,
    change the priors.

    Parameters
    ----------
    prediction : memberships
        The cluster of every record, as in `erbayes.measure`.
    model : SizeModel, optional
        By default `SizeModel()`.
    metrics : Metric or str, or several
        Metrics of true, common and predicted links, or B-cubed precision. Others raise NotIdentified.
    draws : int
        50 or more, else DataError. Some of them are copies.

    Returns
    -------
    Draws, (1, draws, k)
        Without those of populations that have no true link, where recall is 0/0.

    See Also
    --------
    elicited : a model with priors of your own.
    erbayes.plots.forest : draws the intervals of prior and posterior.

    Examples
    --------
    >>> from erbayes import bayes, datasets
    >>> bayes.prior(datasets.people().prediction, rng=1).names
    ('pairwise-precision', 'pairwise-recall', 'pairwise-f1')
    """
    model, rng = need_model(model), generator(rng)
    number, known = need_draws(draws), histogram(Clustering.of(prediction, "prediction").sizes)
    data = data_of_prediction(known)
    parts = {place: draw_from_prior(part, data, number, rng) for place, part in model.tied.items()}
    joint, population = join_and_complete(parts, data, rng)
    linked = population.true[0] > 0

    def total(column: Column | Known) -> FloatArray:
        known_column = column.column if isinstance(column, Known) else column
        if isinstance(known_column, ClusterSum):
            return np.full((1, linked.sum()), known.total(known_column))
        if known_column not in COMPLETED:
            raise NotIdentified(
                f"the prior of '{column.name}' is not drawn, but those of links and of B-cubed precision"
            )
        return COMPLETED[known_column](joint, population)[:, linked]

    return applied(metrics, total)


Range = tuple[float, float]
"""The lower and the upper end of a 90 % interval of a share."""
WITHIN = 0.9
"""Probability of an answer. People give 90 % intervals more willingly than 95 % ones."""


def elicited(
    intact: Range | None = None, right: Range | None = None, in_larger: Range | None = None
) -> SizeModel:
    """Return the default model with priors from three 90 % intervals of shares.

    State each interval so that you would bet nine to one that the truth lies in it. Then look at their prior
    predictive distribution, by ``bayes.prior(prediction, model).table()``. A share that you do not state has
    the default prior.

    Parameters
    ----------
    intact : (low, high), optional
        Of the entities of usual size with several records, the share in one predicted cluster.
    right : (low, high), optional
        Of two records of a predicted cluster of usual size, the chance that they are of one entity.
    in_larger : (low, high), optional
        Of the records, the share in entities far larger than the predicted clusters.

    Raises
    ------
    DataError
        An answer that is not two shares with 0 < low < high < 1.

    Notes
    -----
    The level of log(-log(`intact`)) in `Retention`, that of logit `right` in `Mates`, and the logit of
    `in_larger` are normal, with 5 % of their mass outside either end.

    Examples
    --------
    >>> from erbayes import bayes
    >>> model = bayes.elicited(intact=(0.6, 0.95), right=(0.8, 0.99))
    >>> model.retention.break_level
    NormalPrior(mean=-1.82, sd=0.7)
    """
    sizes, retention, mates = PredictionInformed(), Retention(), Mates()
    if intact is not None:
        retention = replace(
            retention, break_level=_match_quantiles("intact", intact, lambda p: np.log(-np.log(p)))
        )
    if right is not None:
        mates = replace(mates, level=_match_quantiles("right", right, logit))
    if in_larger is not None:
        sizes = replace(sizes, larger_share=_match_quantiles("in_larger", in_larger, logit))
    return SizeModel(sizes, retention, mates)


def _match_quantiles(question: str, answer: Range, scale: Callable[[FloatArray], FloatArray]) -> NormalPrior:
    """Return the normal prior with `WITHIN` between the ends of an answer, on this scale."""
    shares = np.asarray(answer, float)
    if shares.shape != (2,) or not 0 < shares[0] < shares[1] < 1:
        raise DataError(f"{question} must be two shares, 0 < low < high < 1, not {answer!r}")
    ends, length = scale(shares), 2 * float(ndtri((1 + WITHIN) / 2))
    return NormalPrior(round(float(ends.mean()), 2), round(float(np.ptp(ends)) / length, 2))
