"""What a model says of metrics before any label, from the prediction alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from .._internal.arrays import FloatArray, Seed, generator
from .._internal.errors import NotIdentified
from ..metrics.columns import ClusterSum, Column, Known
from ..metrics.definitions import Wanted, pairwise_f1, pairwise_precision, pairwise_recall
from ..metrics.uncertain import Draws
from ..units.clustering import Clustering
from ..units.units import histogram
from .evidence import data_of_prediction
from .joined import populations
from .laws import laws
from .model import SizeModel, need_model
from .parts import PartDraws, drawn_from_prior
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
        By default `SizeModel()`, without a second clustering.
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
    tied = model.alone.tied
    parts = {place: _draw_part(part, data, number, rng) for place, part in tied.items()}
    _, population = populations(parts, data, rng, None)
    there = population.true[0] > 0

    def total(column: Column | Known) -> FloatArray:
        whole = column.column if isinstance(column, Known) else column
        if isinstance(whole, ClusterSum):
            return np.full((1, there.sum()), known.total(whole))
        if whole not in COMPLETED:
            raise NotIdentified(f"the prior of '{column.name}' is not drawn, but those of links alone")
        return count_completed_links(whole, population, data["predicted_links"], None)[:, there]

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
