"""The doors of size models: a fit as an engine, and what a model says before any label."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._internal.arrays import FloatArray, Seed, draw_seed, generator
from .._internal.errors import NotIdentified, number
from ..design.sample import Sample
from ..engine import Engine
from ..engine.closed_form import ClosedForm
from ..metrics.columns import TRUE_LINKS, ClusterSum, Column, Known
from ..metrics.definitions import Metric, MetricLike, pairwise_f1, pairwise_precision, pairwise_recall
from ..metrics.estimates import Estimates
from ..metrics.unseen import NOTABLE, stack_components
from ..units.clustering import Clustering
from ..units.units import histogram
from .data import data_of_prediction, need_design
from .fit import DRAWS, MODEL, Fit, describe_weights, fast
from .importance import need_draws
from .model import SizeModel, join_and_complete, need_model
from .programs import MANY, compiled, draw_from_prior
from .totals import COMPLETED, applied, identifies, split_identified

OF_CURVE = 1000
"""Draws of each of more than `MANY` predictions."""
IN_STUDY = 250
"""Draws of each sample of a study. Coverage and interval score were those of 1,000, in half of the time."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """Engine that answers as another one, which Numba computes (see `compiled`), in any process."""

    engine: Engine

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> Any:
        with compiled():
            return self.engine(sample, metrics, rng)


@dataclass(frozen=True, slots=True)
class Modelled:
    """Engine that fits a size model by importance sampling (see `fast`), and answers as `Fit.estimate`.

    Parameters
    ----------
    model : SizeModel
    draws : int, optional
        Posterior draws of each sample. By default 10,000, and 250 in a study, where coverage and interval
        scores were those of 1,000. Each of more than 50 predictions, as in a curve of thresholds, has 1,000.
    weight : float
        Of the posterior in each end of an interval, from 0 to 1. With 1 the answer is the posterior alone,
        and metrics that the model does not have are refused.
    cautious : bool
        Whether what depends on true sizes, such as recall, is the closed form's where over a tenth of the
        predicted links is in clusters larger than any that draws touch, as `engine="advised"` has it.

    Examples
    --------
    >>> from erbayes.bayes import Modelled, SizeModel, ZetaSizes
    >>> Modelled(SizeModel(ZetaSizes()), draws=500).draws
    500
    """

    model: SizeModel = field(default_factory=SizeModel)
    draws: int | None = None
    weight: float = MODEL
    cautious: bool = False

    def __post_init__(self) -> None:
        number(self.weight, "weight of the posterior", lambda x: 0 <= x <= 1, "be from 0 to 1")

    def for_study(self) -> Compiled:
        """Return the engine that a study asks, with fewer draws unless their number is given."""
        return Compiled(self._by_default(IN_STUDY))

    def _by_default(self, draws: int) -> Modelled:
        return replace(self, draws=draws) if self.draws is None else self

    def fitted(self, sample: Sample, rng: Seed = None) -> Fit:
        """Return the fit of a sample."""
        return fast(sample, self.model, draws=DRAWS if self.draws is None else self.draws, rng=rng)

    def answer(self, fit: Fit, metrics: Sequence[Metric]) -> Estimates:
        """Return metrics of a fit, jointly."""
        if self.weight < 1:
            trusted = [self.trusts(fit.sample, metric) for metric in metrics]
            return fit.estimate(metrics, np.where(trusted, self.weight, 0.0))
        found = fit.apply(metrics)
        return replace(found, notes=describe_weights(found.names, np.ones(len(found))), fitted=fit)

    def takes(self, sample: Sample) -> bool:
        """Return True if a size model can be fitted to a sample by its design."""
        try:
            need_design(sample)
        except NotIdentified:
            return False
        return True

    def identifies(self, metric: Metric) -> bool:
        """Return True if the model produces all totals of a metric."""
        return identifies(metric)

    def trusts(self, sample: Sample, metric: Metric) -> bool:
        """Return True if the answer for a metric has a share of the posterior."""
        far = sample.heap is None and bool(sample.unreached_links > NOTABLE)
        return identifies(metric) and not (self.cautious and far and metric.depends_on_true_size)

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> Estimates:
        """Return `answer` of the fit of a sample."""
        self._need_metrics(metrics)
        return self.answer(self.fitted(sample, rng), metrics)

    def _need_metrics(self, metrics: Sequence[Metric]) -> None:
        """Refuse metrics of groups, and those that a posterior alone does not have, before a fit."""
        modelled, others = ([m.name for m in of] for of in split_identified(metrics))
        if self.weight == 1 and others:
            raise NotIdentified(
                f"the posterior has no {', '.join(others)}, which engine='size model' quotes from the closed "
                f"form: take that engine, or ask for {', '.join(modelled) or 'metrics of links'}"
            )

    def paired(self, samples: Sequence[Sample], metrics: Sequence[Metric], rng: Seed = None) -> Estimates:
        """As `Paired.paired`: each prediction has the answer of its own fit, next to the joint closed form.

        Draws of each fit are put in the order of their numbers of true links, on which they agree. Given
        these, errors of the predictions are taken for independent, so that differences are averages of
        those of the draws and of the closed form, at the same weight.
        """
        self._need_metrics(metrics)
        rng, many = generator(rng), len(samples) > MANY
        engine = self._by_default(OF_CURVE) if many else self
        # the seed of the front door, so that each prediction has the answer that it has there
        seed, answers, remarks, shuffled = draw_seed(rng), list[Estimates](), list[str](), None
        with compiled() if many else nullcontext():
            for place, sample in enumerate(samples, 1):
                fit = engine.fitted(sample, seed)
                by_links = fit.total(TRUE_LINKS).ravel().argsort(kind="stable")
                shuffled = rng.permutation(len(by_links)) if shuffled is None else shuffled
                answer = self.answer(fit, metrics)
                answers.append(replace(answer, values=answer.flat[None, by_links[shuffled]]))
                if pairwise_recall in metrics and not many:
                    remarks += [alarm.about(f"prediction {place}: ") for alarm in fit.remarks]
        flat, closed = np.hstack([answer.flat for answer in answers]), None
        with suppress(NotIdentified):  # without a closed form, differences are those of the model alone
            closed = ClosedForm().paired(samples, metrics) if self.weight < 1 else None
        cov = np.cov(flat, rowvar=False).reshape(2 * flat.shape[1:])
        return stack_components(*answers, cov=cov, other=closed, remarks=tuple(remarks), fitted=None)


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
    agree with it. Change the priors if the interval excludes what is possible or includes what is wrong.

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
