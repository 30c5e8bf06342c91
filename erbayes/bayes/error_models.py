"""Parts of a size model for the errors of entities given their size: links kept, foreign records met."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.tensor.special import log_softmax, softmax

from .contract import LOG_FLAWLESS, sampled_bins
from .grid import RANK
from .priors import (
    NEVER,
    NormalPrior,
    Prior,
    StudentTPrior,
    counts,
    events,
    flawless,
    smooth,
    variable,
)

Tensors = Mapping[str, Any]

ByBin = Callable[[Tensors], Any]
"""A function of the data that returns one value per bin of size."""


def line(name: str, level: Prior, slope: Any) -> ByBin:
    """Create a linear function of log2 size, centred at the mean of the sampled entities.

    Parameters
    ----------
    level : Prior
        Prior of the value at the centre, the variable "<name>_level".
    slope : tensor
        Change per doubling of size, such as ``variable(StudentTPrior(0.0, 0.2), "my_slope")``.

    Returns
    -------
    callable
        Function of the data of a part that returns one value per bin of size, (J,).
    """
    at_centre = variable(level, f"{name}_level")
    return lambda data: at_centre + slope * (data["x"] - data["centre"])


def smooth_curve(name: str, level: Prior, slope: Any, amplitude: float) -> ByBin:
    """Create a `line` plus a smooth function of log2 size.

    Parameters
    ----------
    level, slope
        As in `line`. The weights of the smooth function are the variable "<name>_tilt_weights".
    amplitude : float
        Prior scale of the smooth function, above 0.
    """
    straight, tilt = line(name, level, slope), smooth(f"{name}_tilt", RANK, amplitude)
    return lambda data: straight(data) + tilt(data["basis"])


MOST_PRECISE = 12.0
"""Largest log precision. Far above it, differences of log gamma functions have no correct digit."""
SMALL_PIECES = 0.4
"""Slope of i per doubling above which lost pieces are small for entities of any size."""


def log_pieces(i: Any) -> Any:
    """Return the log mean of a Poisson number with mean e^i, given that it is not 0."""
    i = pt.clip(i, NEVER, 20.0)
    return i - pt.log(-pt.expm1(-pt.exp(i)))


@dataclass(frozen=True, slots=True)
class Retention:
    """Part for retention: the share of an entity's true links that are predicted.

    An entity of s records is intact with a probability that depends on its size:

        P(intact) = exp(-e^(i(s)))

    A broken entity keeps at most C2(s - 1) of its C2(s) links, because at least one record is lost. The
    share w of these that it keeps has a beta distribution:

        w ~ Beta(mean 1/(1 + e^(-M(s))), precision e^(d(s)))
        M(s) = m(s) - log(e^i/(1 - exp(-e^i))) + κ/(s - 1)

    i and m are a line in log2 s plus a smooth function, and d is a line. m is the logit of the share that
    is kept if one piece is lost, the next term corrects it for further pieces, and κ for small entities.

    Parameters
    ----------
    break_level, share_level, precision_level : Prior
        Values of i, m and d at the mean log2 size of the sampled entities.
    share_grain : Prior
        κ.
    precision_slope : Prior
        δ, the slope of d per doubling of size.
    break_slope : Prior
        β - δ, with β the slope of i per doubling.
    share_slope : Prior
        Slope of m per doubling, less log 2 tanh(β/.4).
    break_amplitude, share_amplitude : float
        Prior scales of the smooth parts of i and m. Above 0.
    unbroken : float in [0, 1]
        Prior probability that the prediction breaks no entity of the population.

    Notes
    -----
    An entity loses a Poisson number of pieces, with mean e^i. Slopes depend on each other, so that small
    entities inform about large ones. If the probability to break does not grow with size (β = 0), entities of
    all sizes split in the same proportions, and m is constant. If it grows, small pieces are lost, whose
    share halves with each doubling, and m rises by log 2. If every record is lost independently, i and d rise
    by log 2 too.

    Examples
    --------
    >>> from erbayes.bayes import NormalPrior, Retention
    >>> Retention(break_level=NormalPrior(-1.0, 0.5)).break_level
    NormalPrior(mean=-1.0, sd=0.5)
    """

    break_level: Prior = NormalPrior(-0.5, 1.5)
    share_level: Prior = NormalPrior(1.0, 1.0)
    precision_level: Prior = NormalPrior(1.5, 1.0)
    share_grain: Prior = NormalPrior(2.0, 1.5)
    precision_slope: Prior = StudentTPrior(0.25, 0.25)
    break_slope: Prior = StudentTPrior(0.05, 0.15)
    share_slope: Prior = StudentTPrior(0.0, 0.12)
    break_amplitude: float = 0.2
    share_amplitude: float = 0.3
    unbroken: float = 0.01

    def given_size(self, data: Tensors) -> dict[str, Any]:
        return retained(data, self.curves(), self.unbroken)

    def curves(self) -> ErrorCurves:
        """Create the priors in a PyMC model, and return the functions of size that they make."""
        delta = variable(self.precision_slope, "precision_slope")
        beta = variable(self.break_slope, "break_slope") + delta
        mu = np.log(2) * pt.tanh(beta / SMALL_PIECES) + variable(self.share_slope, "share_slope")
        i = smooth_curve("break", self.break_level, beta, self.break_amplitude)
        of_one_piece = smooth_curve("share", self.share_level, mu, self.share_amplitude)
        grain = variable(self.share_grain, "share_grain")
        return ErrorCurves(
            i,
            lambda data: of_one_piece(data) - log_pieces(i(data)) + grain / pt.maximum(data["size"] - 1, 1.0),
            line("precision", self.precision_level, delta),
        )


@dataclass(frozen=True, slots=True)
class Threshold:
    """Part for retention if the prediction cuts entities above some size, as a matcher that caps its blocks.

    Below the threshold τ, entities follow a `Retention`, and above it, within about a doubling of size:

        log(-log P(intact)) = i
        w ~ Beta(mean 1/(1 + e^(-m - μ (log2 s - τ))), precision e^d)

    Parameters
    ----------
    below : Retention
        Model of entities below the threshold. Its `unbroken` is that of all entities.
    threshold : Prior
        τ, less log2 of the mean size of a random record's predicted cluster.
    break_level, share_level, precision_level : Prior
        i, m and d. That of d has heavy tails, since all entities may be cut into equal numbers of pieces.
    share_slope : Prior
        μ. If pieces have the same size in all entities, it is -log 2.

    Examples
    --------
    >>> from erbayes.bayes import Retention, Threshold
    >>> Threshold(below=Retention(unbroken=0.0)).share_level
    NormalPrior(mean=-0.5, sd=1.2)
    """

    below: Retention = Retention()
    threshold: Prior = NormalPrior(1.0, 1.5)
    break_level: Prior = NormalPrior(1.0, 1.0)
    share_level: Prior = NormalPrior(-0.5, 1.2)
    share_slope: Prior = StudentTPrior(-0.3, 0.3)
    precision_level: Prior = StudentTPrior(1.5, 1.0)

    def given_size(self, data: Tensors) -> dict[str, Any]:
        below = self.below.curves()
        place = data["log_biased_mean"] / np.log(2) + variable(self.threshold, "threshold")
        i = variable(self.break_level, "above_break")
        m = variable(self.share_level, "above_share")
        d = variable(self.precision_level, "above_precision")
        mu = variable(self.share_slope, "above_share_slope")

        def switched(low: ByBin, high: ByBin) -> ByBin:
            def by_bin(data: Tensors) -> Any:
                above = pm.math.sigmoid((data["x"] - place) / CHANGE)
                return (1 - above) * low(data) + above * high(data)

            return by_bin

        curves = ErrorCurves(
            switched(below.broken, lambda _: i),
            switched(below.share, lambda data: m + mu * (data["x"] - place)),
            switched(below.precision, lambda _: d),
        )
        return retained(data, curves, self.below.unbroken)


CHANGE = 0.25
"""Scale of the change at a threshold, in doublings."""


@dataclass(frozen=True, slots=True)
class ErrorCurves:
    """Log hazard to break, logit of the mean share kept and its log precision, by size, (J,)."""

    broken: ByBin
    share: ByBin
    precision: ByBin


def retained(data: Tensors, curves: ErrorCurves, unbroken: float) -> dict[str, Any]:
    """Add broken entities and their kept links to the likelihood, and return the quantities by size."""

    def share(data: Tensors) -> Any:
        return pm.math.sigmoid(curves.share(data))

    def share_of_steps(data: Tensors) -> Any:
        """Return the mean of shares (k + ½)/(steps + 1), which are in (0, 1), from that of k/steps."""
        steps = pt.maximum(data["size"] - 2, 0.0)
        return (share(data) * steps + 0.5) / (steps + 1)

    def spread(data: Tensors) -> Any:
        return pt.exp(pt.clip(curves.precision(data), -MOST_PRECISE, MOST_PRECISE))

    sampled = sampled_bins(data)
    broken = sampled["several"] - sampled["intact"]
    unbroken_state, log_unbroken = flawless("unbroken", unbroken, broken)
    log_hazard = pt.switch(unbroken_state, NEVER, curves.broken(sampled))
    events("broken_entities", sampled["several"], log_hazard, broken)
    mean, precisions = share_of_steps(sampled), spread(sampled)
    beta_shares("kept_shares", sampled["broken"], mean, precisions, sampled["shares"])
    s, mean = data["size"], share(data)
    intact = pt.exp(-pt.exp(pt.switch(unbroken_state, NEVER, curves.broken(data))))
    most = pt.switch(s > 2, (s - 2) / s, 0.0)
    square = mean**2 + mean * (1 - mean) / (spread(data) + 1)
    return {
        "intact": pt.switch(s > 1, intact, 1.0),
        "kept": pt.switch(s > 1, intact + (1 - intact) * most * mean, 1.0),
        "kept_square": pt.switch(s > 1, intact + (1 - intact) * most**2 * square, 1.0),
        "share_mean": share_of_steps(data),
        "share_precision": spread(data),
        LOG_FLAWLESS: log_unbroken,
    }


def beta_shares(name: str, n: Any, mean: Any, precision: Any, observed: Any) -> Any:
    """Add n beta distributed shares w of each of b sampled bins to the likelihood.

    Parameters
    ----------
    n, mean, precision : tensors, (b,)
    observed : tensor, (b, 2)
        Σ log w and Σ log(1 - w), which are sufficient.
    """

    def logp(value: Any, n: Any, mean: Any, precision: Any, pair: Any) -> Any:
        a, b = mean * precision, (1 - mean) * precision
        log_beta = pt.gammaln(a) + pt.gammaln(b) - pt.gammaln(precision)
        return (a - 1) * value[..., 0] + (b - 1) * value[..., 1] - n * log_beta

    def random(n: Any, mean: Any, precision: Any, pair: Any, rng: Any = None, size: Any = None) -> Any:
        shape = np.broadcast_shapes(np.shape(n), np.shape(mean))
        n, mean, precision = (np.broadcast_to(v, shape) for v in (n, mean, precision))
        cell = np.repeat(np.arange(n.size), n.ravel())
        a = (mean * precision).ravel()[cell]
        w = rng.beta(np.maximum(a, 1e-9), np.maximum(precision.ravel()[cell] - a, 1e-9))
        w = np.clip(w, 1e-12, 1 - 1e-12)
        sums = [np.bincount(cell, v, n.size).reshape(shape) for v in (np.log(w), np.log1p(-w))]
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
    """Part for leakage: the foreign records in the predicted clusters of an entity's records.

    An entity of s records meets no foreign record with a probability that depends on its size:

        P(none) = exp(-e^(h(s)))

    If it meets some, v is their number per record of the entity. The probability of v is in proportion to

        E(v) exp((a + c x) log2 v + g(v))

    E(v) is the number of records with v other records in their predicted cluster, x is log2 of the size,
    less its mean among the sampled entities, and g is a smooth function of log2 v. If lost pieces join
    clusters in proportion to the clusters' records, then a = c = g = 0.

    Parameters
    ----------
    meet_level, meet_slope : Prior
        h at the mean log2 size of the sampled entities, and its slope per doubling of size.
    tilt, tilt_by_size : Prior
        a and c, in natural logs of weight per doubling of v.
    meet_amplitude, tilt_amplitude : float
        Prior scales of the smooth part of h and of g. Above 0.
    unmet : float in [0, 1]
        Prior probability that no entity of the population meets a foreign record.

    Examples
    --------
    >>> from erbayes.bayes import Leakage
    >>> Leakage(unmet=0.2).unmet
    0.2
    """

    meet_level: Prior = NormalPrior(-1.0, 2.0)
    meet_slope: Prior = StudentTPrior(0.35, 0.15)
    meet_amplitude: float = 0.2
    tilt: Prior = StudentTPrior(-0.5, 0.3)
    tilt_by_size: Prior = StudentTPrior(-0.03, 0.06)
    tilt_amplitude: float = 0.7
    unmet: float = 0.01

    def given_size(self, data: Tensors) -> dict[str, Any]:
        v, sampled = data["log_intrusion"], sampled_bins(data)
        h = smooth_curve(
            "meet", self.meet_level, variable(self.meet_slope, "meet_slope"), self.meet_amplitude
        )
        unmet, log_unmet = flawless("unmet", self.unmet, sampled["met"])
        events("met_entities", sampled["entities"], pt.switch(unmet, NEVER, h(sampled)), sampled["met"])
        met = pt.switch(unmet, 0.0, -pt.expm1(-pt.exp(h(data))))
        common = data["log_exposure"] + variable(self.tilt, "intrusion_slope") * v
        common = common + smooth("intrusion_tilt", RANK, self.tilt_amplitude)(data["intrusion_basis"])
        by_size = variable(self.tilt_by_size, "intrusion_by_size")

        def log_weights(x: Any) -> Any:
            return common + by_size * (x - data["centre"])[:, None] * v

        doublings = data["sampled_doublings"]
        counts(
            "intrusion_counts",
            data["met_by_doubling"][doublings],
            log_softmax(log_weights(data["doubling_x"][doublings]), axis=-1),
            data["intrusions"][doublings],
            dims=("sampled_doubling", "intrusion"),
        )
        p, value = softmax(log_weights(data["doubling_x"]), axis=-1), data["intrusion_value"]
        doubling = data["in_doubling"]
        return {
            "met": met,
            "foreign": met * (p * value).sum(axis=-1)[doubling],
            "foreign_square": met * (p * value**2).sum(axis=-1)[doubling],
            "intrusion_chance": p,
            LOG_FLAWLESS: log_unmet,
        }
