"""The fast fit as an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from .._internal.arrays import FloatArray, Seed, generator
from .._internal.errors import Grade, NotIdentified, Sentence
from ..design.sample import Sample
from ..engine import PooledDraws, taylor
from ..metrics.columns import RECORDS, TRUE_LINKS, Between, Column, Domain, InDomain, Known, Links
from ..metrics.definitions import Metric, pairwise_recall
from ..metrics.uncertain import Draws
from .fit import NOTE, Fit, pool
from .fitting import fast
from .model import SizeModel
from .totals import applied, identifies

Place = tuple[Domain | None, Links]
"""A domain with a meaning of its links, or all records, which have a fit of their own."""
WHOLE: Place = (None, Links.SHARED)


@dataclass(frozen=True, slots=True)
class Modelled:
    """Engine that fits a size model by importance sampling (see `fast`), each domain by itself.

    Parameters
    ----------
    model : SizeModel
    draws : int
        Posterior draws, 50 or more, in four chains. In a study of many samples 250 are enough: coverage
        and interval score were those of 1,000, in half of the time.

    Examples
    --------
    >>> from erbayes.bayes import Modelled, SizeModel, Zeta
    >>> Modelled(SizeModel(Zeta()), draws=500).draws
    500
    """

    model: SizeModel = field(default_factory=SizeModel)
    draws: int = 1000

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> Draws:
        """Return posterior draws of metrics, (chain, draw, k)."""
        return self._apply(self._fit_places(sample, metrics, generator(rng)), sample, metrics)

    def paired(self, samples: Sequence[Sample], metrics: Sequence[Metric], rng: Seed = None) -> Draws:
        """As `Paired.paired`: each prediction has a fit, and joint draws agree on the true links.

        The draws of each fit are put in the order of their numbers of true links. Given these, errors of
        the predictions are taken for independent, so that intervals of differences are rather too wide.
        """
        rng = generator(rng)
        seed, joint = int(rng.integers(2**32)), list[Draws]()
        for sample in samples:
            fits = self._fit_places(sample, metrics, generator(seed))
            draws = self._apply(fits, sample, metrics)
            if fits:
                order = next(iter(fits.values())).total(TRUE_LINKS).ravel().argsort(kind="stable")
                draws = replace(draws, values=draws.flat[None, order])
            joint.append(draws)
        values = np.concatenate([draws.values for draws in joint], axis=-1)
        return Draws(
            tuple(name for draws in joint for name in draws.names),
            rng.permutation(values, axis=1),
            tuple(one for draws in joint for one in draws.support),
        )

    def _apply(self, fits: Mapping[Place, Fit], sample: Sample, metrics: Sequence[Metric]) -> Draws:
        """Return posterior draws of metrics from the fits of their places, (chain, draw, k)."""
        shapes = (fit.population.true.shape for fit in fits.values())
        shape = next(shapes, (1, self.draws))

        def total(column: Column | Known) -> FloatArray:
            if isinstance(column, Known):
                return np.full(shape, sample.known(column))
            return fits[_place(column)].total(_find_whole_column(column))

        return applied(metrics, total)

    def _fit(self, sample: Sample, place: Place, rng: Seed) -> Fit:
        """Return the fit of a domain, or of all records."""
        domain, links = place
        return fast(sample, self.model, domain=domain, links=links, draws=self.draws, rng=rng)

    def _fit_places(
        self, sample: Sample, metrics: Sequence[Metric], rng: np.random.Generator
    ) -> dict[Place, Fit]:
        """Return the fits that metrics need."""
        return {place: self._fit(sample, place, rng) for place in dict.fromkeys(_list_places(metrics))}

    def identifies(self, metric: Metric) -> bool:
        """Return True if the model produces all totals of a metric."""
        return identifies(metric)

    def fitted(self, sample: Sample, rng: Seed = None) -> Fit:
        """Return the fit of a sample."""
        return self._fit(sample, WHOLE, rng)

    def effective_draws(self, sample: Sample, metrics: Sequence[Metric]) -> FloatArray:
        """Return the number of draws in the domain of each metric, (k,); NaN if there is none."""
        domains = [next(iter(_list_places([m])), WHOLE)[0] for m in metrics]
        records = [RECORDS if domain is None else InDomain(RECORDS, domain) for domain in domains]
        draws = np.count_nonzero(sample.contributions(records), axis=0)
        return np.where(draws > 0, draws, np.nan)

    def alarms(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> list[Sentence]:
        """Return the alarms of the fits of these draws (see `Fit.alarms`), if a metric is recall."""
        rng, sentences = generator(rng), list[Sentence]()
        places = _list_places(
            [m for m in metrics if tuple(map(_find_whole_column, m.columns)) == pairwise_recall.columns]
        )
        for place in dict.fromkeys(places):
            fit = self._fit(sample, place, rng)
            sentences += [alarm.about(fit.evidence.where) for alarm in fit.alarms]
        return sentences


@dataclass(frozen=True, slots=True)
class Pooled:
    """Engine that pools the quantiles of a size model and of the closed form (see `Fit.pooled`).

    Parameters
    ----------
    modelled : Modelled

    Examples
    --------
    >>> from erbayes.bayes import Modelled, Pooled
    >>> Pooled(Modelled(draws=500)).modelled.draws
    500
    """

    modelled: Modelled = field(default_factory=Modelled)

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> PooledDraws:
        """Return pooled draws of metrics, (chain, draw, k)."""
        fits = self.modelled._fit_places(sample, metrics, generator(rng))
        unseen = [
            metric.name
            for metric in metrics
            if TRUE_LINKS in map(_find_whole_column, metric.columns)
            and any(fits[place].is_unseen for place in _list_places([metric]))
        ]
        posterior = self.modelled._apply(fits, sample, metrics)
        return pool(posterior, taylor(sample, metrics).apply(metrics), unseen)

    def identifies(self, metric: Metric) -> bool:
        """Return True if the model produces all totals of a metric."""
        return self.modelled.identifies(metric)

    def alarms(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> list[Sentence]:
        """Return a note that the intervals depend on a prior, and the alarms of the model."""
        return [Sentence(NOTE, Grade.NOTE), *self.modelled.alarms(sample, metrics, rng)]


def _list_places(metrics: Sequence[Metric]) -> list[Place]:
    """Return the population of each total that metrics need and that is not known."""
    return [
        _place(column) for metric in metrics for column in metric.columns if not isinstance(column, Known)
    ]


def _place(column: Column) -> Place:
    """Return the population of a total."""
    if isinstance(column, Between):
        raise NotIdentified(
            f"no part of the size model returns '{column.name}', links between groups: use the closed "
            "form or the bootstrap"
        )
    return (column.domain, column.links) if isinstance(column, InDomain) else WHOLE


def _find_whole_column(column: Column | Known) -> Column | Known:
    """Return the column that a domain counts."""
    return column.column if isinstance(column, InDomain) else column
