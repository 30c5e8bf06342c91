"""Linear pools: mixtures of the distributions that several engines give to the same metrics.

Sources: Stone (1961), The Annals of Mathematical Statistics 32, 1339-1342 (linear opinion pool). McConway
(1981), JASA 76, 410-414 (the margins of a pool are the pools of the margins). Xie and Singh (2013),
International Statistical Review 81, 3-39 (confidence distributions).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from .._internal.arrays import FloatArray, Seed, generator
from .._internal.errors import DataError
from ..design.sample import Sample
from ..metrics.definitions import Metric
from ..metrics.intervals import DEFAULT
from ..metrics.uncertain import Draws, Normal
from .contract import Doubting, Engine, need_engine


def linear_pool(
    results: Sequence[Normal | Draws],
    weights: Sequence[float] | None = None,
    *,
    draws: int = 4000,
    rng: Seed = None,
) -> Draws:
    """Mix the distributions of several results for the same metrics.

    The distribution function F of a metric in the pool is the weighted mean of those of the results:

        F(x) = Σ w_i F_i(x),   Σ w_i = 1

    An equal-tailed interval of the pool lies between the quantiles of F. If two results agree, the pool
    agrees with them. If one of them is far too sure, the pool has the tails of the other.

    Draws have the distribution of their values. A `Normal` has that of its default intervals: the ends of the
    interval of level 1 - 2p are its quantiles at p and 1 - p. Its metrics are joined by a normal copula.

    Parameters
    ----------
    results : sequence of Normal or Draws
        Two or more, with the same components.
    weights : sequence of float, optional
        One per result, 0 or more, such as those of `erbayes.bayes.stack`. By default all are equal.
    draws : int
        Number of draws of the pool. Each result has its share of them.
    rng : Generator, int or None
        A generator or its seed. None is a new seed at each call. Quantiles do not depend on it: values of
        draws and probabilities of quantiles are equally spaced.

    Returns
    -------
    Draws, (1, draws, k)
        In random order.

    Examples
    --------
    >>> support = ((-np.inf, np.inf),)
    >>> near, far = (
    ...     Normal(("x",), np.array([mean]), np.array([[1.0]]), np.array([np.inf]), support)
    ...     for mean in (0.0, 8.0)
    ... )
    >>> linear_pool([near, far], draws=2000, rng=1).interval(0.9).round(1)
    array([[-1.3,  9.3]])
    """
    results, rng = list(results), generator(rng)
    if len(results) < 2:
        raise DataError(f"a linear pool needs two results or more, not {len(results)}")
    for one, other in pairwise(results):
        if (one.names, one.support) != (other.names, other.support):
            raise DataError(
                f"a linear pool mixes results for the same metrics, not for {', '.join(one.names)} and for "
                f"{', '.join(other.names)}"
            )
    shares = _normalize_weights(weights, len(results))
    if draws < len(results):
        raise DataError(f"a linear pool of {len(results)} results needs as many draws or more, not {draws}")
    # cumulated shares are rounded, so that the numbers add to `draws`
    ends = np.round(np.cumsum(shares) * draws).astype(np.int64)
    numbers = np.diff(ends, prepend=0)
    values = np.concatenate([_take_values(one, n, rng) for one, n in zip(results, numbers, strict=True)])
    return Draws(results[0].names, rng.permutation(values)[None], results[0].support)


def _normalize_weights(weights: Sequence[float] | None, results: int) -> FloatArray:
    """Return weights that add to 1."""
    w = np.ones(results) if weights is None else np.asarray(weights, dtype=float)
    if w.shape != (results,) or not (np.isfinite(w) & (w >= 0)).all() or not w.sum() > 0:
        raise DataError(
            f"weights of a linear pool are {results} numbers of 0 or more, not all 0: not {weights}"
        )
    return np.asarray(w / w.sum())


def _take_values(result: Normal | Draws, number: int, rng: np.random.Generator) -> FloatArray:
    """Return equally spaced draws, or values at equally spaced probabilities, (number, k)."""
    if isinstance(result, Draws):
        return result.flat[np.arange(number) * len(result.flat) // max(number, 1)]
    joint = result.as_draws(number, rng).flat
    # ranks of joint draws keep the dependence of the metrics, for any distribution of each
    p = (joint.argsort(axis=0).argsort(axis=0) + 0.5) / max(number, 1)
    quantiles = DEFAULT.quantile(result, p)
    held = np.where(p < 0.5, np.minimum(quantiles, result.mean), np.maximum(quantiles, result.mean))
    ends = DEFAULT.widened(result, np.stack([held, held], axis=-1))
    return np.asarray(np.clip(np.where(p < 0.5, ends[..., 0], ends[..., 1]), *np.transpose(result.support)))


@dataclass(frozen=True, slots=True)
class LinearPool:
    """Engine that mixes the distributions of other engines with fixed weights (see `linear_pool`).

    A pool of a model and the closed form, which needs no law, covers more than the model, at a width between
    those of the two. Its weights come before the data, since the closed form has no likelihood.

    Parameters
    ----------
    engines : tuple of Engine
        Two or more, such as `(Modelled(), Taylor())`.
    weights : tuple of float, optional
        One per engine, 0 or more. By default all are equal.
    draws : int
        Number of draws of the pool.

    Examples
    --------
    >>> import erbayes as eb
    >>> from erbayes.engine import LinearPool, Resampled, Taylor
    >>> units = eb.measure({i: i // 2 for i in range(60)}, {i: i // 2 for i in range(40)})
    >>> pool = LinearPool((Taylor(), Resampled(replicates=200)), draws=1000)
    >>> pool(eb.Sample(units, eb.UniformRecords()), [eb.metrics.entities], 1).estimate.round(1)
    array([30.3])
    """

    engines: tuple[Engine, ...]
    weights: tuple[float, ...] | None = None
    draws: int = 4000

    def __post_init__(self) -> None:
        for engine in self.engines:
            need_engine(engine, "each of engines")

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> Draws:
        rng = generator(rng)
        results = [engine(sample, metrics, rng) for engine in self.engines]
        return linear_pool(results, self.weights, draws=self.draws, rng=rng)

    def alarms(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> Sequence[str]:
        """Return the alarms of the engines that have some (see `Doubting`)."""
        doubting = [engine for engine in self.engines if isinstance(engine, Doubting)]
        return [alarm for engine in doubting for alarm in engine.alarms(sample, metrics, rng)]
