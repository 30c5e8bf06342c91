"""Probabilistic bias analysis: errors of labelling and the noise of sampling together, in closed form."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, Protocol

import numpy as np
import pandas as pd
from scipy.special import ndtr

from ..arrays import FloatArray, Seed, generator
from ..bootstrap import PseudoDraws, Scheme, bootstrap
from ..errors import Alarm, DataError, NotIdentified
from ..intervals import DEFAULT, Kind
from ..labelling import Rate, drawn
from ..metrics import Metric, Wanted, chosen
from ..sample import Sample, need_sample
from ..taylor import taylor
from ..uncertain import Draws, Tabled, Totals
from .laws import PRF, Law, breaks_down, corrected, law_of, odds


class Engine(Protocol):
    """Draws of corrected metrics, (1, B, k): the uncertainty of sampling around B pairs of rates."""

    def __call__(
        self,
        sample: Sample,
        metrics: Sequence[Metric],
        u: FloatArray,
        v: FloatArray,
        law: Law,
        rng: np.random.Generator,
    ) -> Draws: ...


@dataclass(frozen=True, slots=True)
class Resampling:
    """A bootstrap of the totals.

    Parameters
    ----------
    scheme : Scheme
        The default wants one stratum drawn with replacement; `RaoWu()` takes others.
    """

    scheme: Scheme = field(default_factory=PseudoDraws)

    def __call__(
        self,
        sample: Sample,
        metrics: Sequence[Metric],
        u: FloatArray,
        v: FloatArray,
        law: Law,
        rng: np.random.Generator,
    ) -> Draws:
        plain = [corrected(m, 0.0, 0.0, law) for m in metrics]
        boot = bootstrap(sample, plain, self.scheme, replicates=len(u), rng=rng, progress=False)
        return boot.totals.apply([corrected(m, u, v, law) for m in metrics])


@dataclass(frozen=True, slots=True)
class Analytic:
    """Draws from the distributions that closed-form intervals come from.

    Each metric has the distribution of its kind of interval. A normal copula with the correlations of the
    closed form joins them.

    Parameters
    ----------
    kind : Kind
        Of interval.
    """

    kind: Kind = DEFAULT

    def __call__(
        self,
        sample: Sample,
        metrics: Sequence[Metric],
        u: FloatArray,
        v: FloatArray,
        law: Law,
        rng: np.random.Generator,
    ) -> Draws:
        totals = taylor(sample, [corrected(m, 0.0, 0.0, law) for m in metrics])
        parts = [
            self._draw(_repeated(totals, len(x)), [corrected(m, x, y, law) for m in metrics], rng)
            for x, y in ((u[i : i + CHUNK], v[i : i + CHUNK]) for i in range(0, len(u), CHUNK))
        ]
        values = np.concatenate(parts)[None]
        return Draws(tuple(m.name for m in metrics), values, tuple(m.support for m in metrics))

    def _draw(self, totals: Totals, metrics: Sequence[Metric], rng: np.random.Generator) -> FloatArray:
        found = totals.apply(metrics)
        empty = [n for n, x in zip(found.names, found.mean.T, strict=True) if np.isnan(x).any()]
        if empty:
            raise NotIdentified(f"{', '.join(empty)} is 0/0 under some of the rates: no link is left")
        sure = found.sd == 0
        sd = np.where(sure, 1.0, found.sd)
        correlation = found.cov / (sd[..., None] * sd[..., None, :]) + sure[..., None] * np.eye(len(metrics))
        value, vector = np.linalg.eigh(correlation)
        z = rng.standard_normal(found.mean.shape) * np.sqrt(np.maximum(value, 0))
        least, most = np.array(found.support).T
        return np.clip(self.kind.quantile(found, ndtr(np.einsum("bij,bj->bi", vector, z))), least, most)


CHUNK = 500
"""Draws of which derivatives are held in memory at a time."""


def _repeated(totals: Totals, times: int) -> Totals:
    """The same totals along a leading axis."""
    mean, cov, moment = (
        np.broadcast_to(x, (times, *x.shape)) for x in (totals.mean, totals.cov, totals.moment)
    )
    return replace(totals, mean=mean, cov=cov, moment=moment)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BiasAnalysis(Tabled):
    """A bias-adjusted result beside the plain one.

    Attributes
    ----------
    plain, adjusted : Draws
        Metrics where labels are taken as perfect, and where they are not.
    rates : Draws
        Shares missed and kept that go with each draw.
    """

    plain: Draws
    adjusted: Draws
    rates: Draws

    def table(self, level: float = 0.95) -> pd.DataFrame:
        """One row a metric, plain and adjusted."""
        tables = {"plain": self.plain.table(level), "adjusted": self.adjusted.table(level)}
        return pd.concat(tables, names=["labels"]).reset_index()

    def to_datatree(self) -> Any:
        """An xarray.DataTree: groups plain, posterior (adjusted) and rates, dimensions chain and draw.

        Raises
        ------
        DataError
            Where xarray is not installed.
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
    draws: int = 4000,
    rng: Seed = None,
) -> BiasAnalysis:
    """Uncertainty of sampling and of labelling together, in closed form.

    Each draw has rates of its own, and the same noise of sampling in the plain and the adjusted result.

    Parameters
    ----------
    sample : Sample
    missed, kept : float or Rate
        Shares u and v: known, a `Beta` prior, or `Recaptured` from two annotators (whose strictest labels
        the sample then must hold: `Pair.units()`).
    metrics : Metric or str, or several
        Of common, true and predicted links.
    engine : Engine, optional
        `Analytic()` by default.
    law : Law, optional
        By default that of the design.
    draws : int
    rng : Generator, int or None

    Raises
    ------
    DataError
        Metrics or designs without a closed form (see `restored_analysis`); known shares outside [0, 1).

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
    >>> found = bias_analysis(sample, Beta(20, 80), 0.0, rng=np.random.default_rng(1))
    >>> found.plain.mean.round(2), found.adjusted.mean.round(2)
    (array([0.67, 0.44, 0.53]), array([0.67, 0.39, 0.49]))
    """
    need_sample(sample)
    metrics, rng = chosen(metrics), generator(rng)
    law, engine = law or law_of(sample.design), engine or Analytic()
    for rate, what in ((missed, "missed"), (kept, "kept")):
        if not isinstance(rate, Rate):
            odds(rate, what)
    u, v = (np.minimum(drawn(r, rng, (draws,)), 1 - 1e-9) for r in (missed, kept))
    broken = breaks_down(sample, u, v, law).mean()
    if broken:
        warnings.warn(
            f"for {broken:.1%} of the rates the closed form undoes more than labels hold, and is "
            "cut there: use restored_analysis",
            Alarm,
            stacklevel=2,
        )
    none = np.zeros(draws)
    plain = engine(sample, metrics, none, none, law, deepcopy(rng))
    adjusted = engine(sample, metrics, u, v, law, rng)
    return BiasAnalysis(plain, adjusted, drawn_rates(np.stack([u, v], axis=-1)))


def drawn_rates(values: FloatArray) -> Draws:
    """Shares missed and kept, (B, 2), as draws."""
    return Draws(("missed", "kept"), values[None], ((0.0, 1.0), (0.0, 1.0)))
