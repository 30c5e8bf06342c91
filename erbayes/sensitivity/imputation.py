"""Bias analysis by multiple imputation: true entities drawn behind the labels, by any model of errors."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from ..arrays import FloatArray, Seed, generator
from ..bootstrap import PseudoDraws, Scheme, bootstrap
from ..errors import DataError
from ..labelling import Annotator, drawn, restore
from ..metrics import Metric, Wanted, chosen
from ..progress import track
from ..sample import Sample, need_sample
from ..uncertain import Draws
from .bias import BiasAnalysis, drawn_rates
from .laws import PRF


class PlainEngine(Protocol):
    """Draws of metrics, as many as asked or more, around a sample whose labels are taken as perfect."""

    def __call__(
        self, sample: Sample, metrics: Sequence[Metric], draws: int, rng: np.random.Generator
    ) -> Draws: ...


@dataclass(frozen=True, slots=True)
class Bootstrapped:
    """Replicates of a bootstrap.

    Parameters
    ----------
    scheme : Scheme
        The default wants one stratum drawn with replacement; `RaoWu()` takes others.
    """

    scheme: Scheme = field(default_factory=PseudoDraws)

    def __call__(
        self, sample: Sample, metrics: Sequence[Metric], draws: int, rng: np.random.Generator
    ) -> Draws:
        replicates = max(draws, 2)
        return bootstrap(sample, metrics, self.scheme, replicates=replicates, rng=rng, progress=False).draws


class Posterior(Protocol):
    """A fitted model, such as `erbayes.bayes.Fit`."""

    def apply(self, metrics: Sequence[Metric], /) -> Draws: ...


@dataclass(frozen=True, slots=True)
class Fitted:
    """The posterior of a model that is fitted to each sample.

    Parameters
    ----------
    fit : callable (sample, rng=rng) -> Posterior
        Such as `erbayes.bayes.fast`, or a `functools.partial` of it with a model and a number of draws.
    """

    fit: Callable[..., Posterior]

    def __call__(
        self, sample: Sample, metrics: Sequence[Metric], draws: int, rng: np.random.Generator
    ) -> Draws:
        return self.fit(sample, rng=rng).apply(metrics)


def restored_analysis(
    sample: Sample,
    model: Annotator,
    metrics: Wanted = PRF,
    *,
    engine: PlainEngine | None = None,
    imputations: int = 500,
    draws: int = 10,
    rng: Seed = None,
    progress: bool = True,
) -> BiasAnalysis:
    """`bias_analysis` by multiple imputation: an engine's draws, over true entities behind the labels.

    Rates are drawn from their priors, true entities given the rates (`labelling.restore`), metrics given
    these by the engine: rates, restored labels and the engine's own uncertainty are in one posterior.
    Nothing flows back from the engine to the rates.

    Parameters
    ----------
    sample : Sample
    model : Annotator
        How annotators err, with priors on the rates.
    metrics : Metric or str, or several
        Any that the engine identifies.
    engine : PlainEngine, optional
        `Bootstrapped()` by default; `Fitted(bayes.fast)` for the size model, with fewer imputations.
    imputations : int
        Rates drawn, and samples restored.
    draws : int
        Taken from the engine for each, at random where it gives more.
    rng : Generator, int or None
    progress : bool

    Raises
    ------
    DataError
        Fewer than one imputation or draw, or an engine that gives fewer draws than asked.

    Warns
    -----
    Warning
        What the engine warned of in restored samples: once for each category, with the number of samples.

    Examples
    --------
    >>> import erbayes as eb
    >>> from erbayes.labelling import Annotator, MissedPieces
    >>> units = eb.measure({i: i // 3 for i in range(240)}, {i: i // 4 for i in range(120)})
    >>> model, rng = Annotator(MissedPieces(0.2)), np.random.default_rng(1)
    >>> found = restored_analysis(eb.Sample(units, eb.UniformRecords()), model, imputations=50, rng=rng)
    >>> bool(found.adjusted.mean[1] < found.plain.mean[1])
    True
    """
    if min(imputations, draws) < 1:
        raise DataError(f"imputations and draws must be 1 or more, not {imputations} and {draws}")
    need_sample(sample)
    metrics, rng, engine = chosen(metrics), generator(rng), engine or Bootstrapped()
    plain = engine(sample, metrics, imputations * draws, rng)
    values: list[FloatArray] = []
    told: list[dict[type[Warning], str]] = []
    rates = np.empty((imputations, 2))
    for i in track(range(imputations), imputations, "restoring", progress):
        known = model.fixed(rng)
        rates[i] = drawn(known.missed.rate, rng), drawn(known.kept.rate, rng)
        truth = Sample(restore(sample.units, known, rng), sample.design)
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            found = engine(truth, metrics, draws, rng).flat
        told.append({w.category: str(w.message) for w in heard})
        if len(found) < draws:
            raise DataError(f"the engine gives {len(found)} draws of a sample where {draws} are asked for")
        values.append(found[rng.choice(len(found), draws, replace=False)])
    for category in dict.fromkeys(c for one in told for c in one):
        messages = [one[category] for one in told if category in one]
        warnings.warn(
            f"in {len(messages)} of {imputations} restored samples, the first time: {messages[0]}",
            category,
            stacklevel=2,
        )
    adjusted = Draws(plain.names, np.concatenate(values)[None], plain.support)
    return BiasAnalysis(plain, adjusted, drawn_rates(np.repeat(rates, draws, axis=0)))
