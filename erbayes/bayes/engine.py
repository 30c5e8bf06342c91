"""A fit as an engine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, fields, replace
from typing import Any

from .._internal.arrays import IntArray, Seed, draw_seed, generator
from .._internal.errors import NotIdentified
from ..design.sample import Sample
from ..engine import Engine, PooledDraws
from ..engine.known_clusters import ClosedForm
from ..metrics.columns import TRUE_LINKS
from ..metrics.definitions import Metric, pairwise_recall
from ..metrics.unseen import stack_components
from .data import need_design
from .fit import DRAWS, Fit, fast
from .model import SizeModel
from .programs import MANY, compiled
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


class _SizeModelEngine(ABC):
    """What engines with a size model have in common; `answer` is what they make of a fit."""

    __slots__ = ()

    @property
    @abstractmethod
    def modelled(self) -> Modelled:
        """Return the engine that fits."""

    @abstractmethod
    def answer(self, fit: Fit, metrics: Sequence[Metric]) -> PooledDraws:
        """Return draws of metrics, (chain, draw, k)."""

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

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> PooledDraws:
        """Return `answer` of the fit of a sample."""
        split_identified(metrics)  # refuses metrics of groups before it fits
        return self.answer(self.modelled.fitted(sample, rng), metrics)

    def paired(self, samples: Sequence[Sample], metrics: Sequence[Metric], rng: Seed = None) -> PooledDraws:
        """As `Paired.paired`: each prediction has the answer of its own fit, next to the joint closed form.

        Draws of each fit are put in the order of their numbers of true links, on which they agree. Given
        these, errors of the predictions are taken for independent, so that differences pool these draws with
        the closed form (see `PooledDifferences`).
        """
        split_identified(metrics)
        rng, many = generator(rng), len(samples) > MANY
        engine = self.modelled._by_default(OF_CURVE) if many else self.modelled
        # the seed of the front door, so that each prediction has the answer that it has there
        seed, answers, remarks, shuffled = draw_seed(rng), list[PooledDraws](), list[str](), None
        with compiled() if many else nullcontext():
            for number, sample in enumerate(samples, 1):
                fit = engine.fitted(sample, seed)
                by_links = fit.total(TRUE_LINKS).ravel().argsort(kind="stable")
                shuffled = rng.permutation(len(by_links)) if shuffled is None else shuffled
                answers.append(_reorder(self.answer(fit, metrics), by_links[shuffled]))
                if pairwise_recall in metrics and not many:
                    remarks += [alarm.about(f"prediction {number}: ") for alarm in fit.alarms]
        joint = replace(stack_components(*answers), remarks=tuple(remarks))
        with suppress(NotIdentified):  # without a closed form, differences are those of the model alone
            joint = replace(joint, closed=ClosedForm().paired(samples, metrics))
        return joint


def _reorder(answer: PooledDraws, order: IntArray) -> PooledDraws:
    """Return an answer without its fit, with its draws in one chain and this order, (1, draws, k)."""
    given = {f.name: getattr(answer, f.name) for f in fields(PooledDraws)}
    one = {name: given[name].reshape(1, len(order), -1)[:, order] for name in ("values", "model")}
    return PooledDraws(**given | one | {"closed": None})


@dataclass(frozen=True, slots=True)
class Modelled(_SizeModelEngine):
    """Engine that fits a size model by importance sampling (see `fast`), and answers as `Fit.recommended`.

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

    @property
    def modelled(self) -> Modelled:
        return self

    def fitted(self, sample: Sample, rng: Seed = None) -> Fit:
        return fast(sample, self.model, draws=DRAWS if self.draws is None else self.draws, rng=rng)

    def answer(self, fit: Fit, metrics: Sequence[Metric]) -> PooledDraws:
        return fit.recommended(metrics)


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

    def answer(self, fit: Fit, metrics: Sequence[Metric]) -> PooledDraws:
        return fit.pooled(metrics)
