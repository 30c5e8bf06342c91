"""What becomes of an entity in the prediction, given its size: links kept, foreign records met."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from .grid import RANK
from .priors import Level, Slope, counts, events, normalised, smooth

Tensors = Mapping[str, Any]


def curve(name: str, data: Tensors, level: Level, slope: Slope, amplitude: float) -> Any:
    """A function of log2 size, (J,): a level, a slope and a smooth part, centred at the sample's mean."""
    linear = level(f"{name}_level") + slope(f"{name}_slope") * (data["x"] - data["centre"])
    return linear + smooth(f"{name}_tilt", data["basis"], RANK, amplitude)


@dataclass(frozen=True, slots=True)
class Retention:
    """Share of an entity's links that the prediction keeps, y = f/C2(s).

    An entity is intact, y = 1, with probability exp(-e^(i(s))): were records lost independently, i would
    be linear in log s with slope 1. A broken one keeps at most C2(s - 1) links; the share w of these
    has a beta distribution of mean 1/(1 + e^(-m(s))) and precision e^(d(s)). i and m are linear in
    log2 s plus one smooth function each, d is linear.

    Priors of slopes are centred between "size does not matter" (0) and "every record errs on its
    own" (log 2, .69 a doubling).

    Parameters
    ----------
    break_level, share_level, precision_level : Level
        i, m and d at the mean log size of the sampled entities.
    break_slope, share_slope, precision_slope : Slope
        Their changes per doubling of size.
    break_amplitude, share_amplitude : float
        Scales of the smooth parts of i and m.
    """

    break_level: Level = Level(-0.5, 1.5)
    share_level: Level = Level(1.0, 1.0)
    precision_level: Level = Level(1.5, 1.0)
    break_slope: Slope = Slope(0.35, 0.15)
    share_slope: Slope = Slope(0.3, 0.1)
    precision_slope: Slope = Slope(0.0, 0.25)
    break_amplitude: float = 0.2
    share_amplitude: float = 0.3

    def given_size(self, data: Tensors) -> dict[str, Any]:
        """Moments of y by size, (J,) each, inside a PyMC model: intact, kept, kept_square."""
        x, s = data["x"] - data["centre"], data["size"]
        i = curve("break", data, self.break_level, self.break_slope, self.break_amplitude)
        m = curve("share", data, self.share_level, self.share_slope, self.share_amplitude)
        d = self.precision_level("precision_level") + self.precision_slope("precision_slope") * x
        events("broken_entities", data["several"], i, data["several"] - data["intact"], dims="entity_size")
        intact = pt.exp(-pt.exp(i))
        mean, precision = pm.math.sigmoid(m), pt.exp(d)
        steps = pt.maximum(s - 2, 0.0)
        halved = (mean * steps + 0.5) / (steps + 1)
        beta_shares("kept_shares", data["broken"], halved, precision, data["shares"])
        most = pt.switch(s > 2, (s - 2) / s, 0.0)
        square = mean**2 + mean * (1 - mean) / (precision + 1)
        kept = pt.switch(s > 1, intact + (1 - intact) * most * mean, 1.0)
        kept_square = pt.switch(s > 1, intact + (1 - intact) * most**2 * square, 1.0)
        whole = pt.switch(s > 1, intact, 1.0)
        return {"intact": whole, "kept": kept, "kept_square": kept_square, "share_mean": halved,
                "share_precision": precision}


def beta_shares(name: str, n: Any, mean: Any, precision: Any, observed: Any) -> Any:
    """(Σ log w, Σ log(1 - w)) over n beta distributed shares in each bin: all that they tell."""

    def logp(value: Any, n: Any, mean: Any, precision: Any, pair: Any) -> Any:
        a, b = mean * precision, (1 - mean) * precision
        log_beta = pt.gammaln(a) + pt.gammaln(b) - pt.gammaln(precision)
        return (a - 1) * value[..., 0] + (b - 1) * value[..., 1] - n * log_beta

    def random(
        n: Any, mean: Any, precision: Any, pair: Any, rng: Any = None, size: Any = None
    ) -> Any:
        shape = np.broadcast_shapes(np.shape(n), np.shape(mean))
        n, mean, precision = (np.broadcast_to(v, shape) for v in (n, mean, precision))
        at = np.repeat(np.arange(n.size), n.ravel())
        a = (mean * precision).ravel()[at]
        w = rng.beta(np.maximum(a, 1e-9), np.maximum(precision.ravel()[at] - a, 1e-9))
        w = np.clip(w, 1e-12, 1 - 1e-12)
        sums = [np.bincount(at, v, n.size).reshape(shape) for v in (np.log(w), np.log1p(-w))]
        return np.stack(sums, axis=-1)

    return pm.CustomDist(name, n, mean, precision, np.zeros(2), logp=logp, random=random,
                         signature="(),(),(),(k)->(k)", observed=observed,
                         dims=("entity_size", "log_share"))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Leakage:
    """Foreign records that the records of an entity meet in their predicted clusters, o/s.

    None with probability exp(-e^(h(s))). Else the mean number v per record has weights
    E(v) v^(a + c d) e^(g(v)), d the doubling of s and E the records of the prediction by the size of their
    cluster: a stray
    piece that joins a cluster in proportion to its records has a = c = g = 0.

    Parameters
    ----------
    meet_level : Level
        h at the mean log size of the sampled entities.
    meet_slope : Slope
        Its change per doubling of size.
    meet_amplitude : float
        Scale of its smooth part.
    tilt, tilt_by_size : Slope
        a and c, natural logs of weight per doubling of v.
    tilt_amplitude : float
        Scale of g.
    """

    meet_level: Level = Level(-1.0, 2.0)
    meet_slope: Slope = Slope(0.35, 0.15)
    meet_amplitude: float = 0.2
    tilt: Slope = Slope(-0.5, 0.3)
    tilt_by_size: Slope = Slope(-0.03, 0.06)
    tilt_amplitude: float = 0.7

    def given_size(self, data: Tensors) -> dict[str, Any]:
        """Moments of o/s by size, (J,) each, inside a PyMC model: met, foreign, foreign_square."""
        v = data["log_intrusion"]
        h = curve("meet", data, self.meet_level, self.meet_slope, self.meet_amplitude)
        met = -pt.expm1(-pt.exp(h))
        events("met_entities", data["entities"], h, data["met"], dims="entity_size")
        common = data["log_exposure"] + self.tilt("intrusion_slope") * v
        common = common + smooth("intrusion_tilt", data["intrusion_basis"], RANK, self.tilt_amplitude)
        by_size = self.tilt_by_size("intrusion_by_size") * (data["doubling_x"] - data["centre"])
        log_p = normalised(common + by_size[:, None] * v)
        counts("intrusion_counts", data["met_by_doubling"], log_p, data["intrusions"],
               dims=("doubling", "intrusion"))
        p, value, at = pt.exp(log_p), data["intrusion_value"], data["in_doubling"]
        return {"met": met, "foreign": met * pt.dot(p, value)[at],
                "foreign_square": met * pt.dot(p, value**2)[at]}


@dataclass(frozen=True, slots=True)
class Exactness:
    """Intact entities that meet no foreign record: predicted exactly.

    An intact entity of s records is exact with probability exp(-e^(t(s))), t linear in log2 s plus a
    smooth function.

    Parameters
    ----------
    level : Level
        t at the mean log size of the sampled entities.
    slope : Slope
        Its change per doubling of size.
    amplitude : float
        Scale of its smooth part.
    """

    level: Level = Level(-1.0, 2.0)
    slope: Slope = Slope(0.35, 0.2)
    amplitude: float = 0.2

    def given_size(self, data: Tensors) -> dict[str, Any]:
        """Chance that an intact entity is exact by size, (J,), inside a PyMC model: clean."""
        t = curve("stain", data, self.level, self.slope, self.amplitude)
        stained = data["intact_all"] - data["clean"]
        events("stained_entities", data["intact_all"], t, stained, dims="entity_size")
        return {"clean": pt.exp(-pt.exp(t))}
