"""Pools of quantiles: the distributions that several engines give to the same metrics, averaged.

Sources: Vincent (1912), Behavior Monographs 1 (5) (averages of quantiles). Lichtendahl, Grushka-Cockayne and
Winkler (2013), Management Science 59, 1594-1611 (they are sharper than averages of probabilities). Xie and
Singh (2013), International Statistical Review 81, 3-39 (confidence distributions).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np

from .._internal.arrays import BoolArray, FloatArray, IntArray, Seed
from .._internal.errors import DataError
from ..metrics.intervals import DEFAULT, EqualTailed, Kind
from ..metrics.uncertain import Draws, Normal
from ..metrics.unseen import Unseen, by_component

POOLED, MIXED, QUOTED = "pooled", "mixed", "closed-form"
"""How kinds of intervals begin.

They are of a pool, of draws of both readings of a heap in the predicted sizes, that entities end there or are
cut, or of the closed form, for a metric that a model does not have.
"""


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class PooledDraws(Draws):
    """Draws of a model, or with the quantiles of a pool (see `pool_quantiles`), next to a closed form.

    `origin`, (k,), is `POOLED`, `MIXED` or `QUOTED`, and "" for draws of the model alone. `drawn`, (chain,
    draw, k), has what the first result adds to draws, which alone varies from seed to seed. Components that
    are quoted have estimates and intervals of `closed`, at the positions `place`, (k,), -1 for others.
    """

    origin: tuple[str, ...] = by_component(0)
    drawn: FloatArray = by_component(-1)
    place: IntArray = by_component(-1, default=None)
    closed: Normal | None = None

    def __post_init__(self) -> None:
        Draws.__post_init__(self)
        if self.place is None:
            object.__setattr__(self, "place", np.full(len(self.names), -1))

    def quote(self, closed: Normal, at: Sequence[int]) -> Self:
        """Return the same with the components of a closed form at the positions `at`."""
        centre, place, drawn = self.uncut.copy(), np.full(len(self.names), -1), self.drawn.copy()
        place[at], centre[at], drawn[..., at] = np.arange(len(at)), closed.mean, 0.0
        origin = tuple(QUOTED if i in at else one for i, one in enumerate(self.origin))
        return replace(self, centre=centre, origin=origin, drawn=drawn, place=place, closed=closed)

    def _replace_quoted(self, values: Any, of_closed: Callable[[Normal], Any]) -> Any:
        """Return values, (k, ...), with those of the closed form in the components that are quoted."""
        at = np.flatnonzero(self.place >= 0)
        if self.closed is not None and len(at):
            values = np.array(values)
            values[at] = np.asarray(of_closed(self.closed))[self.place[at]]
        return values

    @property
    def sd(self) -> FloatArray:
        return np.asarray(self._replace_quoted(super(PooledDraws, self).sd, lambda closed: closed.sd))

    @property
    def reasons(self) -> tuple[str, ...]:
        reasons = np.array(super(PooledDraws, self).reasons, dtype=object)
        return tuple(self._replace_quoted(reasons, lambda c: np.array(c.reasons, dtype=object)).tolist())

    def _bound(self, level: float, kind: Kind | None) -> FloatArray:
        bounds = super(PooledDraws, self)._bound(level, kind)
        return np.asarray(self._replace_quoted(bounds, lambda closed: closed.interval(level)))

    def comes_from(self, origin: str) -> BoolArray:
        """Return which components have this origin, (k,)."""
        return np.array([one == origin for one in self.origin], dtype=bool)

    @property
    def _varying(self) -> FloatArray:
        return self.drawn

    def name_kind(self, j: int, kind: Kind | None = None) -> str:
        if self.closed is not None and self.place[j] >= 0:
            return f"{QUOTED} {self.closed.name_kind(int(self.place[j]))}"
        tails = isinstance(kind or self.kind, EqualTailed)
        if self.origin[j] and tails:
            return f"{self.origin[j]} quantiles"
        name = Draws.name_kind(self, j, kind)
        return f"{MIXED} {name}" if self.origin[j] == MIXED else name


def pool_quantiles(
    results: Sequence[Normal | Draws],
    weights: Sequence[float] | None = None,
    *,
    outer: Sequence[str] = (),
    rng: Seed = None,
) -> PooledDraws:
    """Return the pool of results for the same metrics, whose quantiles are Q(p) = Σ w_i Q_i(p), Σ w_i = 1.

    Where results disagree, the pool is about as long as they are on average, and a mixture of them longer
    than both (Lichtendahl et al. 2013). Each draw of the first result becomes the quantile of the pool at its
    rank, which keeps chains and the dependence of metrics. Quantiles of a `Normal` are the ends of its
    default intervals, and its unreached share is that of the pool. For metrics in `outer` no result is
    trusted to know its own error: their intervals span those of all results.

    See Also
    --------
    erbayes.bayes.PooledModel : the pool of size model and closed form.

    References
    ----------
    Vincent (1912), Behavior Monographs 1 (5).

    Lichtendahl, Grushka-Cockayne and Winkler (2013), Management Science 59, 1594-1611.
    """
    results = list(results)
    if len(results) < 2:
        raise DataError(f"a pool needs two results or more, not {len(results)}")
    for one, other in pairwise(results):
        if (one.names, one.support) != (other.names, other.support):
            raise DataError(
                f"a pool averages results for the same metrics, not for {', '.join(one.names)} and for "
                f"{', '.join(other.names)}"
            )
    shares, first = _normalize_weights(weights, len(results)), results[0].as_draws(rng=rng)
    # where equal-tailed intervals look for the quantiles of draws, so that ends are averages of ends
    p = np.linspace(0, 1, len(first.flat))[:, None]
    quantiles = np.stack([_take_quantiles(one, p) for one in results])
    pooled = np.tensordot(shares, quantiles, 1)
    widest = np.where(p < 0.5, quantiles.min(axis=0), quantiles.max(axis=0))
    spans = np.isin(first.names, list(outer))
    pooled = np.where(spans, widest, pooled)
    ranks = first.flat.argsort(axis=0).argsort(axis=0)
    values = np.take_along_axis(pooled, ranks, axis=0).reshape(first.values.shape)
    centre = shares @ np.stack([one.uncut for one in results])
    unreached_share = np.stack([one.unseen.unreached_share for one in results]).max(axis=0)
    certain = np.stack([one.unseen.certain for one in results])
    settled = np.stack([certain[..., 0].max(axis=0), certain[..., 1].min(axis=0)], axis=-1)
    return PooledDraws(
        first.names,
        values,
        first.support,
        centre,
        Unseen(unreached_share=unreached_share, certain=settled),
        origin=(POOLED,) * len(centre),
        drawn=first.values * np.where(spans, 1.0, shares[0]),
    )


def as_quoted(closed: Normal, shape: tuple[int, int], rng: Seed = None) -> PooledDraws:
    """Return a closed form with draws of it, (chain, draw, k), to stand beside those of a model."""
    draws, k = closed.as_draws(shape[0] * shape[1], rng), len(closed.names)
    values = draws.values.reshape(*shape, k)
    named = (draws.names, values, draws.support, closed.mean, draws.unseen)
    return PooledDraws(*named, origin=("",) * k, drawn=values).quote(closed, range(k))


def _normalize_weights(weights: Sequence[float] | None, results: int) -> FloatArray:
    """Return weights that add to 1."""
    w = np.ones(results) if weights is None else np.asarray(weights, dtype=float)
    if w.shape != (results,) or not (np.isfinite(w) & (w >= 0)).all() or not w.sum() > 0:
        raise DataError(f"weights of a pool are {results} numbers of 0 or more, not all 0: not {weights}")
    return np.asarray(w / w.sum())


def _take_quantiles(result: Normal | Draws, p: FloatArray) -> FloatArray:
    """Return the quantiles of each metric at probabilities p, (n, 1), as (n, k)."""
    if isinstance(result, Draws):
        return np.asarray(np.quantile(result.flat, p[:, 0], axis=0))
    p = np.clip(p, 0.5 / len(p), 1 - 0.5 / len(p))  # quantiles at 0 and 1 are infinite without a support
    quantiles = DEFAULT.quantile(result, p)
    held = np.where(p < 0.5, np.minimum(quantiles, result.mean), np.maximum(quantiles, result.mean))
    return np.asarray(np.clip(held, *np.transpose(result.support)))
