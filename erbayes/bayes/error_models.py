"""Parts of a size model for errors: links that entities keep, and mates that are right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy.special import expit

from .contract import LOG_FLAWLESS, RANK, sampled_bins
from .priors import NEVER, NormalPrior, Prior, StudentTPrior, Tensors, events, flawless, smooth, variable

ByBin = Callable[[Tensors], Any]
"""A function of the data that returns one value per bin of size."""


def line(name: str, level: Prior, slope: Any, amplitude: float | None = None) -> ByBin:
    """Create a linear function of log2 size, centred at the mean of the sampled entities.

    Parameters
    ----------
    level : Prior
        Prior of the value at the centre, the variable "<name>_level".
    slope : tensor
        Change per doubling of size, such as ``variable(StudentTPrior(0.0, 0.2), "my_slope")``.
    amplitude : float, optional
        Prior scale of a smooth function that is added, above 0, with weights "<name>_tilt_weights".

    Returns
    -------
    callable
        Function of the data of a part that returns one value per bin of size, (J,).
    """
    at_centre = variable(level, f"{name}_level")
    tilt = None if amplitude is None else smooth(f"{name}_tilt", RANK, amplitude)

    def by_bin(data: Tensors) -> Any:
        straight = at_centre + slope * (data["x"] - data["centre"])
        return straight if tilt is None else straight + tilt(data["basis"])

    return by_bin


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
    break_level, share_level, precision_level, share_grain : Prior
        Values of i, m and d at the mean log2 size of the sampled entities, and κ.
    precision_slope, break_slope, share_slope : Prior
        δ, the slope of d per doubling of size; β - δ, with β that of i; that of m, less log 2 tanh(β/.4).
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
    precision_slope: Prior = StudentTPrior(0.15, 0.3)
    break_slope: Prior = StudentTPrior(0.07, 0.25)
    share_slope: Prior = StudentTPrior(0.0, 0.25)
    break_amplitude: float = 0.5
    share_amplitude: float = 0.5
    unbroken: float = 0.01

    def given_size(self, data: Tensors) -> dict[str, Any]:
        delta = variable(self.precision_slope, "precision_slope")
        beta = variable(self.break_slope, "break_slope") + delta
        mu = np.log(2) * pt.tanh(beta / SMALL_PIECES) + variable(self.share_slope, "share_slope")
        log_hazard = line("break", self.break_level, beta, self.break_amplitude)
        of_one_piece = line("share", self.share_level, mu, self.share_amplitude)
        grain = variable(self.share_grain, "share_grain")
        log_precision = line("precision", self.precision_level, delta)

        def share(data: Tensors) -> Any:
            of_small = grain / pt.maximum(data["size"] - 1, 1.0)
            return pm.math.sigmoid(of_one_piece(data) - log_pieces(log_hazard(data)) + of_small)

        def share_of_steps(data: Tensors) -> Any:
            """Return the mean of shares (k + ½)/(steps + 1), which are in (0, 1), from that of k/steps."""
            steps = pt.maximum(data["size"] - 2, 0.0)
            return (share(data) * steps + 0.5) / (steps + 1)

        def spread(data: Tensors) -> Any:
            return pt.exp(pt.clip(log_precision(data), -MOST_PRECISE, MOST_PRECISE))

        sampled = sampled_bins(data)
        broken = sampled["several"] - sampled["intact"]
        unbroken, log_unbroken = flawless("unbroken", self.unbroken, broken)
        events("broken_entities", sampled["several"], pt.switch(unbroken, NEVER, log_hazard(sampled)), broken)
        mean, precisions = share_of_steps(sampled), spread(sampled)
        beta_shares("kept_shares", sampled["broken"], mean, precisions, sampled["shares"])
        s, mean = data["size"], share(data)
        intact = pt.exp(-pt.exp(pt.switch(unbroken, NEVER, log_hazard(data))))
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

    made: dict[str, Any] = {"signature": "(),(),(),(k)->(k)", "dims": ("sampled_size", "log_share")}
    parameters = n, mean, precision, np.zeros(2)
    return pm.CustomDist(name, *parameters, logp=logp, random=random, observed=observed, **made)


@dataclass(frozen=True, slots=True)
class Mates:
    """Part for precision: whether another record of a record's predicted cluster is of the same entity.

    Of m records without a label in a predicted cluster it is right with a probability that depends on m, a
    line in log2 m plus a smooth function:

        logit q(m) = a + b log2 m + g(log2 m)

    A sampled piece of n records is asked for one mate of a record, as if no draw had found its entity, which
    is right with probability (n - 1)/(m - 1) (see `data.AskedMates`). Then

        pairwise precision = (K + Σ_m U_m q(m)) / L

    with K links that labels show to be right, the known number U_m of links between m records without a
    label, poststratified, and L of all; B-cubed precision likewise.

    Parameters
    ----------
    level : Prior
        a at the mean of log2 m over the mates that are asked.
    slope : Prior
        b per doubling of m.
    amplitude : float
        Prior scale of g. Above 0.
    all_right : float in [0, 1]
        Prior probability that the prediction joins no records of different entities.

    References
    ----------
    Gelman and Little (1997), Survey Methodology 23, 127; McCullagh (1983), Annals of Statistics 11, 59.

    Examples
    --------
    >>> from erbayes.bayes import Mates
    >>> Mates(all_right=0.2).slope
    StudentTPrior(mean=0.0, scale=0.6)
    """

    level: Prior = NormalPrior(2.0, 2.0)
    slope: Prior = StudentTPrior(0.0, 0.6)
    amplitude: float = 0.5
    all_right: float = 0.01

    def given_size(self, data: Tensors) -> dict[str, Any]:
        at_centre = variable(self.level, "mates_level")
        slope = variable(self.slope, "mates_slope")
        tilt = smooth("mates_tilt", RANK, self.amplitude)(data["cluster_basis"])
        wrong = data["asked"] - data["right"]
        state, log_all_right = flawless("all_right", self.all_right, wrong)
        logit = pt.clip(at_centre + slope * (data["cluster_x"] - data["cluster_centre"]) + tilt, -15, 15)
        logit = pt.switch(state, -NEVER, logit)
        asked_mates("right_mates", data["asked"], logit, data["right"])
        return {"mates_right": pt.switch(state, 1.0, pm.math.sigmoid(logit)), LOG_FLAWLESS: log_all_right}


def asked_mates(name: str, asked: Any, logit: Any, observed: Any) -> Any:
    """Add the weight of right mates among those that are asked, by bin, to the likelihood.

    It is binomial, without a term of the weights alone, which need not be whole numbers. Draws are beta
    distributed with the same mean and about the same variance.
    """

    def logp(value: Any, asked: Any, logit: Any) -> Any:
        return -value * pt.softplus(-logit) - (asked - value) * pt.softplus(logit)

    def random(asked: Any, logit: Any, rng: Any = None, size: Any = None) -> Any:
        a, b = asked * expit(logit), asked * expit(-logit)
        return asked * rng.beta(np.maximum(a, 1e-9), np.maximum(b, 1e-9))

    made: dict[str, Any] = {"signature": "(),()->()", "dims": "cluster_size"}
    return pm.CustomDist(name, asked, logit, logp=logp, random=random, observed=observed, **made)
