"""Probabilistic bias analysis: rates of error drawn from priors, and the noise of sampling, together."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd

from ..arrays import FloatArray, Seed, generator
from ..engine.bootstrap import Resampled
from ..engine.closed_form import Taylor
from ..engine.contract import Engine, need_engine
from ..engine.schemes import PseudoDraws
from ..errors import Alarm, DataError, NotIdentified, whole
from ..intervals import Kind
from ..labelling import Annotator, Rate, drawn, restore
from ..labelling.errors import need_annotator
from ..metrics import Metric, Wanted, chosen
from ..progress import track
from ..sample import Sample, need_sample
from ..uncertain import Draws, Normal, Tabled
from .laws import PRF, Law, breaks_down, corrected, law_of, odds


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BiasAnalysis(Tabled):
    """A bias-adjusted result beside the plain one.

    Attributes
    ----------
    plain, adjusted : Draws
        Metrics if labels are perfect, and if they are not. Estimates are the means over rates of the
        engine's estimates.
    rates : Draws
        Shares missed and kept that go with each draw.
    """

    plain: Draws
    adjusted: Draws
    rates: Draws

    def table(self, level: float = 0.95, kind: Kind | None = None) -> pd.DataFrame:
        """One row per metric, plain and adjusted."""
        tables = {"plain": self.plain.table(level, kind), "adjusted": self.adjusted.table(level, kind)}
        return pd.concat(tables, names=["labels"]).reset_index()

    def to_datatree(self) -> Any:
        """An xarray.DataTree: groups plain, posterior (adjusted) and rates, dimensions chain and draw.

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
    """Uncertainty of sampling and of labelling together, by metrics corrected in closed form.

    Rates are drawn from their priors. For each pair of them the engine is asked for the corrected metrics,
    and draws are taken from its answer.

    Parameters
    ----------
    sample : Sample
    missed, kept : float or Rate
        Shares u and v: known, a `Beta` prior, or `Recaptured` from two annotators (whose strictest labels
        the sample then must hold: `Pair.units()`).
    metrics : Metric or str, or several
        Of common, true and predicted links.
    engine : Engine, optional
        `Taylor()` by default.
    law : Law, optional
        By default that of the design.
    imputations : int
        Pairs of rates.
    draws : int
        Taken for each, at random if the engine has more.
    rng : Generator, int or None
    progress : bool

    Raises
    ------
    DataError
        Metrics or designs without a closed form (see `restored_analysis`); known shares outside [0, 1);
        fewer than one imputation or draw; an engine with fewer draws than asked for.

    Warns
    -----
    Alarm
        Rates so large that the closed form breaks down (see `breaks_down`).

    Examples
    --------
    >>> import erbayes as eb
    >>> from erbayes.labelling import Beta
    >>> units = eb.measure({i: i // 3 for i in range(240)}, {i: i // 4 for i in range(120)})
    >>> sample = eb.Sample(units, eb.UniformRecords())
    >>> found = bias_analysis(sample, Beta(20, 80), 0.0, rng=1)
    >>> found.plain.estimate.round(2), found.adjusted.estimate.round(2)
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
    rates = np.minimum(rates, 1 - 1e-9)
    broken = breaks_down(sample, rates[:, 0], rates[:, 1], law).mean()
    if broken:
        warnings.warn(
            f"for {broken:.1%} of the rates the closed form undoes more than labels hold, and is "
            "cut there: use restored_analysis",
            Alarm,
            stacklevel=2,
        )
    asked = (Asked((u, v), sample, [corrected(m, u, v, law) for m in metrics]) for u, v in rates.tolist())
    shown = track(asked, imputations, "imputations", progress)
    return _analysed(sample, metrics, shown, engine or Taylor(), draws, rng)


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
    """`bias_analysis` by multiple imputation: true entities are drawn behind the labels.

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
    engine : Engine, optional
        `Resampled(PseudoDraws(), 100)` by default, which needs one stratum drawn with replacement;
        `Resampled(replicates=100)` takes others. `bayes.Modelled()` needs fewer imputations.
    imputations : int
        Rates drawn, and samples restored.
    draws : int
        Taken for each, at random if the engine has more.
    rng : Generator, int or None
    progress : bool

    Raises
    ------
    DataError
        Fewer than one imputation or draw; an engine with fewer draws than asked for.

    Warns
    -----
    Warning
        Warnings of the engine for restored samples: once for each category, with the number of samples.

    Examples
    --------
    >>> import erbayes as eb
    >>> from erbayes.labelling import Annotator, MissedPieces
    >>> units = eb.measure({i: i // 3 for i in range(240)}, {i: i // 4 for i in range(120)})
    >>> model = Annotator(MissedPieces(0.2))
    >>> found = restored_analysis(eb.Sample(units, eb.UniformRecords()), model, imputations=50, rng=1)
    >>> bool(found.adjusted.estimate[1] < found.plain.estimate[1])
    True
    """
    need_sample(sample)
    need_annotator(model)
    imputations, draws = whole(imputations, "imputations"), whole(draws, "draws of an imputation")
    metrics, rng = chosen(metrics), generator(rng)
    engine = engine or Resampled(PseudoDraws(), 100)
    asked = (_restored(sample, model, metrics, rng) for _ in range(imputations))
    shown = track(asked, imputations, "restoring", progress)
    return _analysed(sample, metrics, shown, engine, draws, rng)


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """What an engine is asked for, to undo errors of known rates.

    Attributes
    ----------
    rates : (float, float)
        Shares missed and kept.
    sample : Sample
    metrics : sequence of Metric
    """

    rates: tuple[float, float]
    sample: Sample
    metrics: Sequence[Metric]


def _restored(sample: Sample, model: Annotator, metrics: Sequence[Metric], rng: np.random.Generator) -> Asked:
    """True entities drawn behind the labels, under rates drawn from their priors."""
    known = model.fixed(rng)
    rates = float(drawn(known.missed.rate, rng)), float(drawn(known.kept.rate, rng))
    return Asked(rates, Sample(restore(sample.units, known, rng), sample.design), metrics)


def _analysed(
    sample: Sample,
    metrics: Sequence[Metric],
    asked: Iterable[Asked],
    engine: Engine,
    draws: int,
    rng: np.random.Generator,
) -> BiasAnalysis:
    """Draws of the engine for the sample as it is, and for those without errors of each pair of rates."""
    need_engine(engine)
    plain = engine(sample, metrics, rng)
    noise = deepcopy(rng)  # the same noise of sampling in both results, if the engine needs no chance
    rates: list[tuple[float, float]] = []
    estimates: list[FloatArray] = []
    values: list[FloatArray] = []
    messages: list[dict[type[Warning], str]] = []
    for one in asked:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = engine(one.sample, one.metrics, rng)
        messages.append({w.category: str(w.message) for w in caught})
        undefined = [name for name, x in zip(found.names, found.estimate, strict=True) if np.isnan(x)]
        if undefined:
            raise NotIdentified(f"{', '.join(undefined)} is 0/0 under some of the rates: no link is left")
        rates.append(one.rates)
        estimates.append(found.estimate)
        values.append(_taken(found, draws, rng))
    for category in dict.fromkeys(c for raised in messages for c in raised):
        same = [raised[category] for raised in messages if category in raised]
        text = f"in {len(same)} of {len(rates)} restored samples, the first time: {same[0]}"
        warnings.warn(text, category, stacklevel=3)
    adjusted = Draws(plain.names, np.concatenate(values)[None], plain.support, np.mean(estimates, axis=0))
    shares = Draws(("missed", "kept"), np.repeat(rates, draws, axis=0)[None], ((0.0, 1.0),) * 2)
    return BiasAnalysis(plain.as_draws(len(rates) * draws, noise), adjusted, shares)


def _taken(found: Normal | Draws, draws: int, rng: np.random.Generator) -> FloatArray:
    """Draws of a result, at random if there are more, (draws, k)."""
    flat = found.as_draws(draws, rng).flat
    if len(flat) < draws:
        raise DataError(f"the engine gives {len(flat)} draws of a sample where {draws} are asked for")
    return flat if len(flat) == draws else np.asarray(flat[rng.choice(len(flat), draws, replace=False)])
