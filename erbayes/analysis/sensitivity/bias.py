"""Probabilistic bias analysis: the uncertainty of error rates and of sampling in one result."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd

from ..._internal.arrays import FloatArray, Seed, generator
from ..._internal.errors import Alarm, DataError, NotIdentified, whole
from ..._internal.progress import track
from ...design.sample import Sample, need_sample
from ...engine.closed_form import Taylor
from ...engine.contract import Engine, need_engine
from ...engine.replicates import Resampled
from ...engine.schemes import PseudoDraws
from ...labels import Annotator, Rate, drawn, restore
from ...labels.annotators.error_models import need_annotator
from ...metrics.definitions import Metric, Wanted, chosen
from ...metrics.intervals import Kind
from ...metrics.uncertain import Draws, Normal, Tabled
from .laws import PRF, Law, breaks_down, corrected, law_of, odds


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BiasAnalysis(Tabled):
    """A result adjusted for errors of labelling, beside the plain one.

    Attributes
    ----------
    plain : Draws
        Metrics if labels are perfect.
    adjusted : Draws
        Metrics if annotators err. Estimates are means over rates of the engine's estimates.
    rates : Draws
        Shares missed and kept of each adjusted draw.
    """

    plain: Draws
    adjusted: Draws
    rates: Draws

    def table(self, level: float = 0.95, kind: Kind | None = None) -> pd.DataFrame:
        """Table of plain and of adjusted estimates, one row per metric in each part.

        Parameters
        ----------
        level : float in (0, 1)
        kind : Kind, optional
            Kind of interval of draws.
        """
        tables = {"plain": self.plain.table(level, kind), "adjusted": self.adjusted.table(level, kind)}
        return pd.concat(tables, names=["labels"]).reset_index()

    def to_datatree(self) -> Any:
        """Return an xarray.DataTree for ArviZ: groups plain, posterior (adjusted) and rates.

        The dimensions are chain and draw.

        Raises
        ------
        DataError
            xarray is not installed.
        """
        try:
            xr = import_module("xarray")
        except ModuleNotFoundError as error:
            raise DataError("a DataTree needs xarray: pip install xarray") from error
        groups = {"plain": self.plain, "posterior": self.adjusted, "rates": self.rates}
        return xr.DataTree.from_dict(
            {
                group: xr.Dataset({n: (("chain", "draw"), d.values[..., j]) for j, n in enumerate(d.names)})
                for group, d in groups.items()
            }
        )


def bias_analysis(
    sample: Sample,
    missed: float | Rate,
    kept: float | Rate,
    metrics: Wanted = PRF,
    *,
    engine: Engine | None = None,
    law: Law | None = None,
    imputations: int = 400,
    draws: int = 10,
    rng: Seed = None,
    progress: bool = True,
) -> BiasAnalysis:
    """Adjust metrics for errors of labelling, with the uncertainty of sampling and of the error rates.

    Rates are drawn from their priors. For each pair of rates, the engine estimates the metrics corrected in
    closed form (see `corrected`), and draws are taken from its result.

    Parameters
    ----------
    sample : Sample
        With a `Recaptured` rate it must hold the strictest labels of both annotators: `Pair.units()`.
    missed, kept : float in [0, 1) or Rate
        Shares u and v. Either is a number, a `Beta` prior, or `Recaptured` from two annotators.
    metrics : Metric or str, or several
        Metrics of common, true and predicted links.
    engine : Engine, optional
        `Taylor()` by default.
    law : Law, optional
        By default that of the design (see `law_of`).
    imputations : int
        The number of pairs of rates, 1 or more.
    draws : int
        The number of draws for each pair, 1 or more. They are chosen at random if the engine has more.
    rng : Generator, int or None
    progress : bool
        Show a bar on standard error.

    Returns
    -------
    BiasAnalysis
        With `imputations * draws` draws.

    Raises
    ------
    DataError
        Metrics or designs without a closed form (see `restored_analysis`), known shares outside [0, 1),
        fewer than one imputation or draw, or an engine with too few draws.
    NotIdentified
        A metric is 0/0 under some of the rates.

    Warns
    -----
    Alarm
        The closed form breaks down at some of the rates (see `breaks_down`).

    Examples
    --------
    >>> import erbayes as eb
    >>> from erbayes.labels import Beta
    >>> units = eb.measure({i: i // 3 for i in range(240)}, {i: i // 4 for i in range(120)})
    >>> sample = eb.Sample(units, eb.UniformRecords())
    >>> analysis = bias_analysis(sample, Beta(20, 80), 0.0, rng=1)
    >>> analysis.plain.estimate.round(2), analysis.adjusted.estimate.round(2)
    (array([0.67, 0.44, 0.53]), array([0.67, 0.39, 0.49]))
    """
    need_sample(sample)
    imputations, draws = whole(imputations, "imputations"), whole(draws, "draws of an imputation")
    metrics, rng = chosen(metrics), generator(rng)
    law = law or law_of(sample.design)
    for rate, what in ((missed, "missed"), (kept, "kept")):
        if not isinstance(rate, Rate):
            odds(rate, what)
    rates = np.stack([drawn(r, rng, (imputations,)) for r in (missed, kept)], axis=-1)
    # the odds of a rate of 1 are infinite
    rates = np.minimum(rates, 1 - 1e-9)
    broken = breaks_down(sample, rates[:, 0], rates[:, 1], law).mean()
    if broken:
        warnings.warn(
            f"for {broken:.1%} of the rates the closed form undoes more than labels hold, and is "
            "cut to possible totals: use restored_analysis",
            Alarm,
            stacklevel=2,
        )
    imputed = (
        Imputation((u, v), sample, [corrected(m, u, v, law) for m in metrics]) for u, v in rates.tolist()
    )
    shown = track(imputed, imputations, "imputations", progress)
    return _run_analysis(sample, metrics, shown, engine or Taylor(), draws, rng)


def restored_analysis(
    sample: Sample,
    model: Annotator,
    metrics: Wanted = PRF,
    *,
    engine: Engine | None = None,
    imputations: int = 500,
    draws: int = 10,
    rng: Seed = None,
    progress: bool = True,
) -> BiasAnalysis:
    """Adjust metrics for errors of labelling by multiple imputation of the true entities.

    Rates are drawn from their priors, and true entities behind the labels under these rates (see
    `erbayes.labels.restore`). The engine estimates metrics from each restored sample. One result holds the
    uncertainty of rates, of restored labels and of the engine. The rates keep their priors.

    Parameters
    ----------
    sample : Sample
    model : Annotator
        How annotators err, with priors on the rates.
    metrics : Metric or str, or several
        Metrics that the engine identifies.
    engine : Engine, optional
        `Resampled(PseudoDraws(), 100)` by default, which needs one stratum drawn with replacement.
        `Resampled(replicates=100)` takes other designs. `bayes.Modelled()` needs fewer imputations.
    imputations : int
        The number of restored samples, each with its own rates; 1 or more.
    draws : int
        The number of draws for each sample, 1 or more. They are chosen at random if the engine has more.
    rng : Generator, int or None
    progress : bool
        Show a bar on standard error.

    Returns
    -------
    BiasAnalysis
        With `imputations * draws` draws.

    Raises
    ------
    DataError
        Fewer than one imputation or draw, or an engine with too few draws.
    NotIdentified
        A metric is 0/0 in some of the restored samples, or the engine cannot take the design.

    Warns
    -----
    Warning
        The engine warned of restored samples. Each category is shown once, with the number of samples.

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
    metrics, rng = chosen(metrics), generator(rng)
    engine = engine or Resampled(PseudoDraws(), 100)
    imputed = (_impute_entities(sample, model, metrics, rng) for _ in range(imputations))
    shown = track(imputed, imputations, "restoring", progress)
    return _run_analysis(sample, metrics, shown, engine, draws, rng)


@dataclass(frozen=True, slots=True, eq=False)
class Imputation:
    """A sample, restored or not, and metrics, corrected or not, without errors of rates (missed, kept)."""

    rates: tuple[float, float]
    sample: Sample
    metrics: Sequence[Metric]


def _impute_entities(
    sample: Sample, model: Annotator, metrics: Sequence[Metric], rng: np.random.Generator
) -> Imputation:
    """Return an imputation of true entities behind the labels, under rates drawn from their priors."""
    known = model.fixed(rng)
    rates = float(drawn(known.missed.rate, rng)), float(drawn(known.kept.rate, rng))
    return Imputation(rates, Sample(restore(sample.units, known, rng), sample.design), metrics)


def _run_analysis(
    sample: Sample,
    metrics: Sequence[Metric],
    imputed: Iterable[Imputation],
    engine: Engine,
    draws: int,
    rng: np.random.Generator,
) -> BiasAnalysis:
    """Return the analysis: draws of the engine for the sample as it is, and for each imputation."""
    need_engine(engine)
    plain = engine(sample, metrics, rng)
    noise = deepcopy(rng)  # the same noise of sampling in both results, if the engine is not random
    rates: list[tuple[float, float]] = []
    estimates: list[FloatArray] = []
    values: list[FloatArray] = []
    messages: list[dict[type[Warning], str]] = []
    for imputation in imputed:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = engine(imputation.sample, imputation.metrics, rng)
        messages.append({w.category: str(w.message) for w in caught})
        undefined = [name for name, x in zip(result.names, result.estimate, strict=True) if np.isnan(x)]
        if undefined:
            raise NotIdentified(f"{', '.join(undefined)} is 0/0 under some of the rates: no link is left")
        rates.append(imputation.rates)
        estimates.append(result.estimate)
        values.append(_sample_draws(result, draws, rng))
    # one warning for all imputations instead of one each
    for category in dict.fromkeys(c for of_sample in messages for c in of_sample):
        texts = [of_sample[category] for of_sample in messages if category in of_sample]
        message = f"in {len(texts)} of {len(rates)} restored samples, the first time: {texts[0]}"
        warnings.warn(message, category, stacklevel=3)
    adjusted = Draws(plain.names, np.concatenate(values)[None], plain.support, np.mean(estimates, axis=0))
    shares = Draws(("missed", "kept"), np.repeat(rates, draws, axis=0)[None], ((0.0, 1.0),) * 2)
    return BiasAnalysis(plain.as_draws(len(rates) * draws, noise), adjusted, shares)


def _sample_draws(result: Normal | Draws, draws: int, rng: np.random.Generator) -> FloatArray:
    """As many draws of a result, (draws, k), chosen at random if it has more."""
    flat = result.as_draws(draws, rng).flat
    if len(flat) < draws:
        raise DataError(
            f"the engine has {len(flat)} draws of a sample, not {draws}: choose draws={len(flat)}"
        )
    return flat if len(flat) == draws else np.asarray(flat[rng.choice(len(flat), draws, replace=False)])
