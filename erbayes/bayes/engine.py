"""The fast fit as an engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._internal.arrays import Seed, generator
from ..design.sample import Sample
from ..engine import Engine, PooledDraws
from ..engine.known_clusters import ClosedForm
from ..engine.pool import MIXED, as_quoted
from ..metrics.columns import TRUE_LINKS
from ..metrics.definitions import Metric
from ..metrics.unseen import stack_components
from .fit import DRAWS, Fit, fast
from .model import SizeModel
from .programs import MANY, compiled, compiled_for
from .totals import identifies, split_identified

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


class _SizeModelEngine:
    """The metrics that every engine with a size model takes."""

    __slots__ = ()

    def identifies(self, metric: Metric) -> bool:
        """Return True if the model produces all totals of a metric."""
        return identifies(metric)


@dataclass(frozen=True, slots=True)
class Modelled(_SizeModelEngine):
    """Engine that fits a size model by importance sampling (see `fast`).

    Parameters
    ----------
    model : SizeModel
    draws : int, optional
        Posterior draws of each sample. By default 10,000, and 250 in a study, where coverage and interval
        scores were those of 1,000. Each of more than 50 predictions, as in a curve of thresholds, has 1,000.

    Examples
    --------
    >>> from erbayes.bayes import Modelled, SizeModel, ZetaSizes
    >>> Modelled(SizeModel(ZetaSizes()), draws=500).draws
    500
    """

    model: SizeModel = field(default_factory=SizeModel)
    draws: int | None = None

    def for_study(self) -> Compiled:
        """Return the engine that a study asks, with fewer draws unless their number is given."""
        return Compiled(self._by_default(IN_STUDY))

    def _by_default(self, draws: int) -> Modelled:
        return replace(self, draws=draws) if self.draws is None else self

    def fitted(self, sample: Sample, rng: Seed = None) -> Fit:
        return fast(sample, self.model, draws=DRAWS if self.draws is None else self.draws, rng=rng)

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> PooledDraws:
        """Return the recommended draws of metrics, (chain, draw, k): see `Fit.recommended`."""
        return self.fitted(sample, rng).recommended(metrics)

    def paired(self, samples: Sequence[Sample], metrics: Sequence[Metric], rng: Seed = None) -> PooledDraws:
        """As `Paired.paired`: each prediction has a fit, and joint draws agree on the true links.

        The posterior draws of each fit are put in the order of their numbers of true links. Given these,
        errors of the predictions are taken for independent, so that intervals of differences are rather too
        wide. Shifted draws of a pool would make them too short. Metrics that the model does not have are
        those of the closed form.
        """
        rng, engine = generator(rng), self._by_default(OF_CURVE) if len(samples) > MANY else self
        modelled, others = split_identified(metrics)
        shape, shuffled = (1, DRAWS), np.arange(DRAWS)
        seed, parts = int(rng.integers(2**32)), dict[tuple[int, Metric], PooledDraws]()
        with compiled_for(len(samples)):
            for i, sample in enumerate(samples if modelled else ()):
                fit = engine.fitted(sample, seed)
                draws, by_links = fit.apply(modelled), fit.total(TRUE_LINKS).ravel().argsort(kind="stable")
                if not parts:
                    shape, shuffled = (1, len(by_links)), rng.permutation(len(by_links))
                origin = tuple(MIXED if mixed else "" for mixed in fit.allows_cap(modelled))
                values = draws.flat[None, by_links[shuffled]]
                named = (draws.names, values, draws.support, draws.uncut)
                joint = PooledDraws(*named, origin=origin, drawn=values)
                parts |= {(i, metric): joint.part([j]) for j, metric in enumerate(modelled)}
        closed = ClosedForm().paired(samples, others) if others else None
        if closed is not None:
            quoted = as_quoted(closed, shape, rng)
            at = [(i, metric) for i in range(len(samples)) for metric in others]
            parts |= {key: quoted.part([j]) for j, key in enumerate(at)}
        joint = stack_components(*(parts[i, metric] for i in range(len(samples)) for metric in metrics))
        return replace(joint, closed=closed)


@dataclass(frozen=True, slots=True)
class PooledModel(_SizeModelEngine):
    """Engine that pools the quantiles of a size model and of the closed form (see `Fit.pooled`).

    Examples
    --------
    >>> from erbayes.bayes import Modelled, PooledModel
    >>> PooledModel(Modelled(draws=500)).modelled.draws
    500
    """

    modelled: Modelled = field(default_factory=Modelled)

    def for_study(self) -> Compiled:
        """Return the engine that a study asks, with fewer draws unless their number is given."""
        return Compiled(PooledModel(self.modelled._by_default(IN_STUDY)))

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> PooledDraws:
        """Return pooled draws of metrics, (chain, draw, k)."""
        return self.modelled.fitted(sample, rng).pooled(metrics)
