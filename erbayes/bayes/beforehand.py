"""Before any label: what a model says of metrics, and a prior from three answers in plain numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import logit, ndtri

from .._internal.arrays import FloatArray, Seed, generator
from .._internal.errors import DataError, NotIdentified
from ..metrics.columns import ClusterSum, Column, Known
from ..metrics.definitions import Wanted, pairwise_f1, pairwise_precision, pairwise_recall
from ..metrics.uncertain import Draws
from ..units.clustering import Clustering
from ..units.units import histogram
from .evidence import data_of_prediction
from .laws import OneOf, laws
from .model import RETENTION, SIZES, SizeModel, need_model
from .outcomes import Leakage
from .parts import PartDraws, drawn_from_prior
from .population import populations
from .priors import Level
from .samplers import need_draws
from .totals import COMPLETED, applied, count_completed_links


def prior(
    prediction: Any,
    model: SizeModel | None = None,
    metrics: Wanted = (pairwise_precision, pairwise_recall, pairwise_f1),
    *,
    draws: int = 4000,
    rng: Seed = None,
) -> Draws:
    """Return what a size model says of metrics before any label, given the sizes of predicted clusters.

    Sizes and errors are drawn from the prior, and weighted by the known number of predicted links. If the
    interval leaves out what you think possible, or has what you know to be wrong, change the priors of the
    model. `erbayes.plots.forest({"prior": before})` draws it, also next to the posterior.

    Parameters
    ----------
    prediction : memberships
        The cluster of every record, as in `erbayes.measure`.
    model : SizeModel, optional
        By default `SizeModel()`.
    metrics : Metric or str, or several
        Metrics of true, common and predicted links, such as pairwise precision, recall and F1.
    draws : int
        50 or more. Some of them are copies.
    rng : Generator, int or None

    Returns
    -------
    Draws, (1, draws, k)
        Without those of populations that have no true link, where recall is 0/0.

    Raises
    ------
    DataError
        Too few draws, or what is no model.
    NotIdentified
        A metric that needs other totals.

    Examples
    --------
    >>> from erbayes import bayes, datasets
    >>> before = bayes.prior(datasets.people().prediction, rng=1)
    >>> before.names
    ('pairwise-precision', 'pairwise-recall', 'pairwise-f1')
    """
    model, rng = need_model(model), generator(rng)
    number, known = need_draws(draws), histogram(Clustering.of(prediction, "prediction").sizes)
    data = data_of_prediction(known)
    if model.shared is not None:
        data = model.shared.fill(data)
    parts = {place: _draw_part(part, data, number, rng) for place, part in model.tied.items()}
    _, population = populations(parts, data, rng)
    there = population.true[0] > 0

    def total(column: Column | Known) -> FloatArray:
        whole = column.column if isinstance(column, Known) else column
        if isinstance(whole, ClusterSum):
            return np.full((1, there.sum()), known.total(whole))
        if whole not in COMPLETED:
            raise NotIdentified(f"the prior of '{column.name}' is not drawn, but those of links alone")
        return count_completed_links(whole, population, data["predicted_links"])[:, there]

    return applied(metrics, total)


def _draw_part(part: Any, data: Mapping[str, Any], draws: int, rng: np.random.Generator) -> PartDraws:
    """Return draws of a part from the prior, (1, draws, ...), with the laws in random order."""
    of_part = laws(part)
    counts = rng.multinomial(draws, [*of_part.probability.values()])
    drawn = [
        drawn_from_prior(law, data, int(number), rng)
        for law, number in zip(of_part.laws.values(), counts, strict=True)
        if number
    ]
    order, first = rng.permutation(draws), drawn[0]

    def joint(values: list[FloatArray]) -> FloatArray:
        return np.concatenate(values, axis=1)[:, order]

    return replace(
        first,
        by_size={k: joint([d.by_size[k] for d in drawn]) for k in first.by_size},
        parameters={},
        log_prior=joint([d.log_prior for d in drawn]),
    )


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
