"""Probabilistic bias analysis: the uncertainty of error rates and of sampling in one result."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..._internal.arrays import FloatArray, Seed, generator
from ..._internal.errors import DataError, NotIdentified, whole
from ..._internal.progress import show_progress
from ...design.sample import Sample, need_sample
from ...engine.contract import Engine, need_engine
from ...engine.replicates import Resampled
from ...engine.schemes import PseudoDraws
from ...labels import Annotator
from ...labels.annotators.error_models import need_annotator, restore
from ...labels.annotators.rates import drawn
from ...metrics.definitions import (
    MetricLike,
    Metrics,
    pairwise_f,
    pairwise_precision,
    pairwise_recall,
    resolve_metrics,
)
from ...metrics.intervals import Kind
from ...metrics.uncertain import Draws, Normal, Tabled

PRF = Metrics((pairwise_precision, pairwise_recall, pairwise_f()), "PRF")
"""Pairwise precision, recall and F1."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BiasAnalysis(Tabled):
    """Results `plain` and `adjusted` for errors of labelling, and the `rates` of each adjusted draw."""

    plain: Draws
    adjusted: Draws
    rates: Draws

    def table(self, level: float = 0.95, kind: Kind | None = None) -> pd.DataFrame:
        """Table of plain and of adjusted estimates, one row per metric in each part."""
        tables = {"plain": self.plain.table(level, kind), "adjusted": self.adjusted.table(level, kind)}
        return pd.concat(tables, names=["labels"]).reset_index()


def restored_analysis(
    sample: Sample,
    model: Annotator,
    metrics: MetricLike = PRF,
    *,
    engine: Engine | None = None,
    imputations: int = 500,
    draws: int = 10,
    rng: Seed = None,
    progress: bool = True,
) -> BiasAnalysis:
    """Adjust metrics for errors of labelling by multiple imputation of the true entities.

    Rates are drawn from their priors, and true entities behind the labels under these rates (see
    `erbayes.labels.restore`). The engine estimates metrics from each restored sample. One result has the
    uncertainty of rates, of restored labels and of the engine. The rates keep their priors.

    Parameters
    ----------
    model : Annotator
        How annotators err, with priors on the rates.
    metrics : Metric or str, or several
    engine : Engine, optional
        `Resampled(PseudoDraws(), 100)` by default, which needs one stratum drawn with replacement.
        `Resampled(replicates=100)` takes other designs. `bayes.Modelled()` needs fewer imputations.
    imputations : int
        The number of restored samples, each with its own rates; 1 or more.
    draws : int
        The number of draws for each sample, 1 or more. They are chosen at random if the engine has more.
    rng : Generator, int or None

    Returns
    -------
    BiasAnalysis
        With `imputations * draws` draws. `.adjusted.tree()` is for ArviZ.

    Raises
    ------
    DataError, NotIdentified
        An engine with too few draws or for other designs, or a metric that is 0/0 in some restored samples.

    Examples
    --------
    >>> import erbayes as eb
    >>> from erbayes.labels import Beta, MissedPieces
    >>> units = eb.measure({i: i // 3 for i in range(240)}, {i: i // 4 for i in range(120)})
    >>> sample, model = eb.Sample(units, eb.UniformRecords()), Annotator(MissedPieces(Beta(20, 80)))
    >>> analysis = restored_analysis(sample, model, "pairwise-recall", imputations=50, rng=1)
    >>> analysis.plain.estimate.round(2), analysis.adjusted.estimate.round(2)
    (array([0.44]), array([0.38]))
    """
    need_sample(sample)
    need_annotator(model)
    imputations, draws = whole(imputations, "imputations"), whole(draws, "draws of an imputation")
    metrics, rng = resolve_metrics(metrics), generator(rng)
    engine = engine or Resampled(PseudoDraws(), 100)
    need_engine(engine)
    plain = engine(sample, metrics, rng)
    noise = deepcopy(rng)  # the same noise of sampling in both results, if the engine is not random
    rates: list[tuple[float, float]] = []
    estimates: list[FloatArray] = []
    values: list[FloatArray] = []
    messages: list[dict[type[Warning], str]] = []
    for _ in show_progress(range(imputations), imputations, "restoring", progress):
        of_sample, restored = _restore_sample(sample, model, rng)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = engine(restored, metrics, rng)
        messages.append({w.category: str(w.message) for w in caught})
        undefined = [name for name, x in zip(result.names, result.estimate, strict=True) if np.isnan(x)]
        if undefined:
            raise NotIdentified(f"{', '.join(undefined)} is 0/0 under some of the rates: no link is left")
        rates.append(of_sample)
        estimates.append(result.estimate)
        values.append(_sample_draws(result, draws, rng))
    _warn_once(messages)
    adjusted = Draws(plain.names, np.concatenate(values)[None], plain.support, np.mean(estimates, axis=0))
    shares = Draws(("missed", "kept"), np.repeat(rates, draws, axis=0)[None], ((0.0, 1.0),) * 2)
    return BiasAnalysis(plain.as_draws(imputations * draws, noise), adjusted, shares)


def _restore_sample(
    sample: Sample, model: Annotator, rng: np.random.Generator
) -> tuple[tuple[float, float], Sample]:
    """Draw rates (missed, kept) from their priors, and true entities behind the labels under them."""
    known = model.fixed(rng)
    rates = float(drawn(known.missed.rate, rng)), float(drawn(known.kept.rate, rng))
    return rates, Sample(restore(sample.units, known, rng), sample.design)


def _warn_once(messages: Sequence[Mapping[type[Warning], str]]) -> None:
    """Show one warning of each category for all restored samples, whose messages these are."""
    for category in dict.fromkeys(c for of_sample in messages for c in of_sample):
        texts = [of_sample[category] for of_sample in messages if category in of_sample]
        message = f"in {len(texts)} of {len(messages)} restored samples, the first time: {texts[0]}"
        warnings.warn(message, category, stacklevel=3)


def _sample_draws(result: Normal | Draws, draws: int, rng: np.random.Generator) -> FloatArray:
    """As many draws of a result, (draws, k), chosen at random if it has more."""
    flat = result.as_draws(draws, rng).flat
    if len(flat) < draws:
        raise DataError(
            f"the engine has {len(flat)} draws of a sample, not {draws}: choose draws={len(flat)}"
        )
    return flat if len(flat) == draws else np.asarray(flat[rng.choice(len(flat), draws, replace=False)])
