"""What becomes of an entity in the prediction, given its size: links kept, foreign records met."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from ..arrays import FloatArray
from ..columns import B3_PRECISION, B3_PRECISION_MEAN, CLOSEST, LARGEST_PIECE, N_LOG_N, PIECES, Column
from .contract import LOG_FLAWLESS, sampled_bins
from .evidence import Entities
from .grid import RANK
from .priors import NEVER, Level, Prior, Slope, counts, events, flawless, normalised, smooth, variable

Tensors = Mapping[str, Any]


ByBin = Callable[[Tensors], Any]
"""A quantity of the bins of size that data are of."""


def line(name: str, level: Prior, slope: Any) -> ByBin:
    """A linear function of log2 size, centred at the sample's mean."""
    at_centre = variable(level, f"{name}_level")
    return lambda data: at_centre + slope * (data["x"] - data["centre"])


def curve(name: str, level: Prior, slope: Any, amplitude: float) -> ByBin:
    """A line and a smooth function of log2 size."""
    straight, tilt = line(name, level, slope), smooth(f"{name}_tilt", RANK, amplitude)
    return lambda data: straight(data) + tilt(data["basis"])


MOST_PRECISE = 12.0
"""Largest log precision; far above it log beta functions lose all their digits."""


def precision(name: str, level: Prior, slope: Any) -> ByBin:
    """Precision of beta distributed shares: log-linear in log2 s."""
    log_precision = line(name, level, slope)
    return lambda data: pt.exp(pt.clip(log_precision(data), -MOST_PRECISE, MOST_PRECISE))


def halved(mean: Any, steps: Any) -> Any:
    """Mean of shares in (0, 1) that stand for k of some steps, as (k + ½)/(steps + 1)."""
    return (mean * steps + 0.5) / (steps + 1)


SMALL_PIECES = 0.4
"""Slope of the chance to break from which on pieces are taken to be small whatever the entity's size."""


def log_pieces(i: Any) -> Any:
    """Log mean of a Poisson number of mean e^i that is not 0."""
    i = pt.clip(i, -20.0, 20.0)
    return i - pt.log(-pt.expm1(-pt.exp(i)))


@dataclass(frozen=True, slots=True)
class Retention:
    """Share of an entity's links that the prediction keeps, y = f/C2(s).

    An entity is intact, y = 1, with probability exp(-e^(i(s))): were records lost independently, i would
    be linear in log s with slope 1. A broken one keeps at most C2(s - 1) links; the share w of these
    has a beta distribution of mean 1/(1 + e^(-m(s))) and precision e^(d(s)). i and m are linear in
    log2 s plus one smooth function each, d is linear. From m is taken log(e^i/(1 - exp(-e^i))), and
    κ/(s - 1) is added to it.

    This is what happens to an entity that loses a Poisson number of pieces, e^i on average. A broken one
    has lost e^i/(1 - exp(-e^i)), and so as many times the links that one piece costs. Few records cannot
    lose a small share: κ. The slopes of i, d and m, per doubling of size, go together. Where the chance to
    break does not grow with size, β = 0, entities are split as a whole and pieces grow with them: m stays.
    Where it does, records or small pieces go astray, the share that one costs halves with each doubling, and
    m rises by log 2. Where every record errs on its own, i and d rise by log 2 as well. So what small
    entities show tells of the links that large ones keep.

    Parameters
    ----------
    break_level, share_level, precision_level : Prior
        i, m and d at the mean log size of the sampled entities, m for one piece and without κ.
    share_grain : Prior
        κ.
    precision_slope : Prior
        δ, of d.
    break_slope : Prior
        β - δ, with β the slope of i.
    share_slope : Prior
        What the slope of m is above log 2 tanh(β/.4).
    break_amplitude, share_amplitude : float
        Scales of the smooth parts of i and m.
    unbroken : float
        Prior probability that the prediction breaks no entity at all.
    """

    break_level: Prior = Level(-0.5, 1.5)
    share_level: Prior = Level(1.0, 1.0)
    precision_level: Prior = Level(1.5, 1.0)
    share_grain: Prior = Level(2.0, 1.5)
    precision_slope: Prior = Slope(0.25, 0.25)
    break_slope: Prior = Slope(0.05, 0.15)
    share_slope: Prior = Slope(0.0, 0.12)
    break_amplitude: float = 0.2
    share_amplitude: float = 0.3
    unbroken: float = 0.01

    def given_size(self, data: Tensors) -> dict[str, Any]:
        """Moments of y by size, (J,) each, inside a PyMC model: intact, kept, kept_square."""
        delta = variable(self.precision_slope, "precision_slope")
        beta = variable(self.break_slope, "break_slope") + delta
        mu = np.log(2) * pt.tanh(beta / SMALL_PIECES) + variable(self.share_slope, "share_slope")
        i = curve("break", self.break_level, beta, self.break_amplitude)
        of_one_piece = curve("share", self.share_level, mu, self.share_amplitude)
        grain = variable(self.share_grain, "share_grain")
        certain = precision("precision", self.precision_level, delta)

        def share(data: Tensors) -> Any:
            m = of_one_piece(data) - log_pieces(i(data)) + grain / pt.maximum(data["size"] - 1, 1.0)
            return pm.math.sigmoid(m)

        def share_of_steps(data: Tensors) -> Any:
            return halved(share(data), pt.maximum(data["size"] - 2, 0.0))

        seen = sampled_bins(data)
        broken = seen["several"] - seen["intact"]
        unbroken, log_unbroken = flawless("unbroken", self.unbroken, broken)
        events("broken_entities", seen["several"], pt.switch(unbroken, NEVER, i(seen)), broken)
        beta_shares("kept_shares", seen["broken"], share_of_steps(seen), certain(seen), seen["shares"])
        s, mean = data["size"], share(data)
        intact = pt.exp(-pt.exp(pt.switch(unbroken, NEVER, i(data))))
        most = pt.switch(s > 2, (s - 2) / s, 0.0)
        square = mean**2 + mean * (1 - mean) / (certain(data) + 1)
        kept = pt.switch(s > 1, intact + (1 - intact) * most * mean, 1.0)
        kept_square = pt.switch(s > 1, intact + (1 - intact) * most**2 * square, 1.0)
        whole = pt.switch(s > 1, intact, 1.0)
        return {
            "intact": whole,
            "kept": kept,
            "kept_square": kept_square,
            "share_mean": share_of_steps(data),
            "share_precision": certain(data),
            LOG_FLAWLESS: log_unbroken,
        }


def beta_shares(name: str, n: Any, mean: Any, precision: Any, observed: Any) -> Any:
    """(Σ log w, Σ log(1 - w)) over n beta distributed shares in each sampled bin: all that they tell."""

    def logp(value: Any, n: Any, mean: Any, precision: Any, pair: Any) -> Any:
        a, b = mean * precision, (1 - mean) * precision
        log_beta = pt.gammaln(a) + pt.gammaln(b) - pt.gammaln(precision)
        return (a - 1) * value[..., 0] + (b - 1) * value[..., 1] - n * log_beta

    def random(n: Any, mean: Any, precision: Any, pair: Any, rng: Any = None, size: Any = None) -> Any:
        shape = np.broadcast_shapes(np.shape(n), np.shape(mean))
        n, mean, precision = (np.broadcast_to(v, shape) for v in (n, mean, precision))
        at = np.repeat(np.arange(n.size), n.ravel())
        a = (mean * precision).ravel()[at]
        w = rng.beta(np.maximum(a, 1e-9), np.maximum(precision.ravel()[at] - a, 1e-9))
        w = np.clip(w, 1e-12, 1 - 1e-12)
        sums = [np.bincount(at, v, n.size).reshape(shape) for v in (np.log(w), np.log1p(-w))]
        return np.stack(sums, axis=-1)

    return pm.CustomDist(
        name,
        n,
        mean,
        precision,
        np.zeros(2),
        logp=logp,
        random=random,
        signature="(),(),(),(k)->(k)",
        observed=observed,
        dims=("sampled_size", "log_share"),
    )


@dataclass(frozen=True, slots=True)
class Leakage:
    """Foreign records that the records of an entity meet in their predicted clusters, o/s.

    None with probability exp(-e^(h(s))). Else the mean number v per record has weights
    E(v) v^(a + c d) e^(g(v)), d the doubling of s and E the records of the prediction by the size of their
    cluster: a stray
    piece that joins a cluster in proportion to its records has a = c = g = 0.

    Parameters
    ----------
    meet_level : Prior
        h at the mean log size of the sampled entities.
    meet_slope : Prior
        Its change per doubling of size.
    meet_amplitude : float
        Scale of its smooth part.
    tilt, tilt_by_size : Prior
        a and c, natural logs of weight per doubling of v.
    tilt_amplitude : float
        Scale of g.
    unmet : float
        Prior probability that no entity at all meets a foreign record.
    """

    meet_level: Prior = Level(-1.0, 2.0)
    meet_slope: Prior = Slope(0.35, 0.15)
    meet_amplitude: float = 0.2
    tilt: Prior = Slope(-0.5, 0.3)
    tilt_by_size: Prior = Slope(-0.03, 0.06)
    tilt_amplitude: float = 0.7
    unmet: float = 0.01

    def given_size(self, data: Tensors) -> dict[str, Any]:
        """Moments of o/s by size, (J,) each, inside a PyMC model: met, foreign, foreign_square.

        And intrusion_chance, that of each v by doubling of size.
        """
        v, seen = data["log_intrusion"], sampled_bins(data)
        h = curve("meet", self.meet_level, variable(self.meet_slope, "meet_slope"), self.meet_amplitude)
        unmet, log_unmet = flawless("unmet", self.unmet, seen["met"])
        events("met_entities", seen["entities"], pt.switch(unmet, NEVER, h(seen)), seen["met"])
        met = pt.switch(unmet, 0.0, -pt.expm1(-pt.exp(h(data))))
        common = data["log_exposure"] + variable(self.tilt, "intrusion_slope") * v
        common = common + smooth("intrusion_tilt", RANK, self.tilt_amplitude)(data["intrusion_basis"])
        by_size = variable(self.tilt_by_size, "intrusion_by_size")

        def log_p(x: Any) -> Any:
            return normalised(common + by_size * (x - data["centre"])[:, None] * v)

        sampled = data["sampled_doublings"]
        counts(
            "intrusion_counts",
            data["met_by_doubling"][sampled],
            log_p(data["doubling_x"][sampled]),
            data["intrusions"][sampled],
            dims=("sampled_doubling", "intrusion"),
        )
        p, value, at = pt.exp(log_p(data["doubling_x"])), data["intrusion_value"], data["in_doubling"]
        return {
            "met": met,
            "foreign": met * (p * value).sum(axis=-1)[at],
            "foreign_square": met * (p * value**2).sum(axis=-1)[at],
            "intrusion_chance": p,
            LOG_FLAWLESS: log_unmet,
        }


@dataclass(frozen=True, slots=True)
class Exactness:
    """Intact entities that meet no foreign record: predicted exactly.

    An intact entity of s records is exact with probability exp(-e^(t(s))), t linear in log2 s plus a
    smooth function.

    Parameters
    ----------
    level : Prior
        t at the mean log size of the sampled entities.
    slope : Prior
        Its change per doubling of size.
    amplitude : float
        Scale of its smooth part.
    """

    level: Prior = Level(-1.0, 2.0)
    slope: Prior = Slope(0.35, 0.2)
    amplitude: float = 0.2

    def given_size(self, data: Tensors) -> dict[str, Any]:
        """Chance that an intact entity is exact by size, (J,), inside a PyMC model: clean."""
        t, seen = (
            curve("stain", self.level, variable(self.slope, "stain_slope"), self.amplitude),
            sampled_bins(data),
        )
        events("stained_entities", seen["intact_all"], t(seen), seen["intact_all"] - seen["clean"])
        return {"clean": pt.exp(-pt.exp(t(data)))}


@dataclass(frozen=True, slots=True)
class Bounded:
    """Where a column lies between its bounds, for entities that err: the share w of the way up.

    w has a beta distribution of mean 1/(1 + e^(-m(s))) and precision e^(d(s)), m linear in log2 s plus a
    smooth function, d linear.

    Parameters
    ----------
    level, precision_level : Prior
        m and d at the mean log size of the sampled entities.
    slope, precision_slope : Prior
        Their changes per doubling of size.
    amplitude : float
        Scale of the smooth part of m.
    """

    level: Prior = Level(0.0, 1.5)
    precision_level: Prior = Level(1.5, 1.0)
    slope: Prior = Slope(0.0, 0.3)
    precision_slope: Prior = Slope(0.0, 0.25)
    amplitude: float = 0.3

    def given_size(self, data: Tensors) -> dict[str, Any]:
        """Mean of w by size, (J,), inside a PyMC model: bounded_mean."""
        m = curve("bounded", self.level, variable(self.slope, "bounded_slope"), self.amplitude)
        delta = variable(self.precision_slope, "bounded_precision_slope")
        certain = precision("bounded_precision", self.precision_level, delta)
        seen = sampled_bins(data)
        mean = halved(pm.math.sigmoid(m(seen)), seen["bounded_steps"])
        beta_shares("bounded_sums", seen["bounded_count"], mean, certain(seen), seen["bounded_shares"])
        return {"bounded_mean": pm.math.sigmoid(m(data))}


OfSize = Callable[[FloatArray], FloatArray]


class Chances(Protocol):
    """Chances by size, (..., J), as a fit has them."""

    @property
    def by_size(self) -> dict[str, FloatArray]: ...
    @property
    def exact(self) -> FloatArray: ...


@dataclass(frozen=True, slots=True)
class Between:
    """A column of an entity that is fixed by its size unless it errs, and then lies between two bounds.

    Attributes
    ----------
    errs : callable, Entities -> bool array, (u,)
        Which sampled entities err.
    chance : callable, Chances -> float array, (..., J)
        That an entity errs.
    steps : callable of size
        Steps between the bounds: k of them are counted as the share (k + ½)/(steps + 1).
    fixed, low, high : callables of size
        The column where the entity does not err; its bounds where it does.
    """

    errs: Callable[[Entities], Any]
    chance: Callable[[Chances], FloatArray]
    steps: OfSize
    fixed: OfSize
    low: OfSize
    high: OfSize

    def expected(self, size: FloatArray, chances: Chances, mean: FloatArray) -> FloatArray:
        """Mean of the column by size, (..., J)."""
        fixed, low = self.fixed(size), self.low(size)
        return fixed + self.chance(chances) * (low + (self.high(size) - low) * mean - fixed)

    def evidence(self, entities: Entities, values: FloatArray, size: FloatArray) -> dict[str, Any]:
        """What the sampled entities, values of the column (u,), say on a grid of sizes (J,)."""
        J, steps = len(size), self.steps(entities.size)
        some = self.errs(entities) & (steps > 0)
        s = entities.size[some]
        share = (values[some] - self.low(s)) / (self.high(s) - self.low(s))
        share = (np.clip(share, 0, 1) * steps[some] + 0.5) / (steps[some] + 1)
        at = entities.bin[some]
        sums = [np.bincount(at, v, J) for v in (np.log(share), np.log1p(-share))]
        return {
            "bounded_count": np.bincount(at, minlength=J),
            "bounded_shares": np.column_stack(sums),
            "bounded_steps": np.maximum(self.steps(size), 0.0),
        }


def _n_log_n(s: FloatArray) -> FloatArray:
    return s * np.log(np.maximum(s, 1.0))


_broken = partial(Between, lambda e: e.broken, lambda of: 1 - of.by_size["intact"], lambda s: s - 2)
_met = partial(Between, lambda e: e.foreign > 0, lambda of: of.by_size["met"], lambda s: s)
BETWEEN: dict[Column, Between] = {
    PIECES: _broken(np.ones_like, lambda s: 2 + 0 * s, lambda s: s),
    LARGEST_PIECE: _broken(lambda s: s, np.ones_like, lambda s: s - 1),
    N_LOG_N: _broken(_n_log_n, np.zeros_like, lambda s: _n_log_n(s - 1)),
    B3_PRECISION: _met(lambda s: s, np.zeros_like, lambda s: s),
    B3_PRECISION_MEAN: _met(np.ones_like, np.zeros_like, np.ones_like),
    CLOSEST: Between(
        lambda e: e.broken | (e.foreign > 0),
        lambda of: 1 - of.exact,
        lambda s: s,
        np.ones_like,
        np.zeros_like,
        np.ones_like,
    ),
}
"""Columns that `Bounded` models, one by one."""
