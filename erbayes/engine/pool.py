"""Pools of quantiles: the distributions that several engines give to the same metrics, averaged.

Sources: Vincent (1912), Behavior Monographs 1 (5) (averages of quantiles). Lichtendahl, Grushka-Cockayne and
Winkler (2013), Management Science 59, 1594-1611 (they are sharper than averages of probabilities). Xie and
Singh (2013), International Statistical Review 81, 3-39 (confidence distributions).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np

from .._internal.arrays import BoolArray, FloatArray, Seed
from .._internal.errors import DataError, Grade, Sentence
from ..metrics.intervals import DEFAULT, EqualTailed, Kind
from ..metrics.uncertain import Draws, Normal
from ..metrics.unseen import UNSETTLED, Unseen, by_component

POOLED, MIXED, QUOTED = "pooled", "mixed", "closed-form"
"""How kinds of intervals begin.

They are of a pool, of draws of both readings of a heap in the predicted sizes, that entities end there or are
cut, or of the closed form, for a metric that a model does not have.
"""
MODEL = 0.65
"""Weight of a size model in its pool with the closed form, chosen on populations of their own.

Under records .6 to .7 cover equally often, and with less weight precision under clusters has an interval
score above .6 of the closed form's (benchmarks/bayes-pool.md).
"""
NOTE = (
    f"pool a size model, with a weight of {MODEL:g}, and the closed form, or span both: they depend on a "
    "prior for the sizes and errors of the entities that were not drawn."
)
"""What intervals of a pool say of themselves."""


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class PooledDraws(Draws):
    """Draws of a model, or with the quantiles of a pool (see `pool_quantiles`), next to a closed form.

    `origin`, (k,), says what each component is: `POOLED`, `MIXED`, `QUOTED`, or "" for draws of the model
    alone. `model`, (chain, draw, k), has these for all components, which pools give the `weight`. `spans`,
    (k,): whether the model is not trusted to know its own error, so that pools span both. `closed`: the
    closed form of all components, from which those that are quoted have estimates and intervals; None if
    none is needed.
    """

    origin: tuple[str, ...] = by_component(0)
    model: FloatArray = by_component(-1)
    spans: BoolArray = by_component(-1)
    closed: Normal | None = by_component(-1, default=None)
    weight: float = MODEL

    @property
    def posterior(self) -> Draws:
        """Return the draws of the model alone."""
        return Draws(self.names, self.model, self.support, self.estimate)

    def contrast(self, weights: FloatArray, names: Sequence[str]) -> Draws:
        """As `Draws.contrast`, of the draws of the model, as combinations of shifted draws are too short."""
        return self.posterior.contrast(weights, names)

    def _replace_quoted(self, values: Any, of_closed: Callable[[Normal], Any]) -> Any:
        """Return values, (k, ...), with those of the closed form in the components that are quoted."""
        at = self.comes_from(QUOTED)
        if self.closed is not None and at.any():
            values = np.array(values)
            values[at] = np.asarray(of_closed(self.closed))[at]
        return values

    @property
    def uncut(self) -> FloatArray:
        return np.asarray(self._replace_quoted(super(PooledDraws, self).uncut, lambda closed: closed.uncut))

    @property
    def uncut_sd(self) -> FloatArray:
        sd = super(PooledDraws, self).uncut_sd
        return np.asarray(self._replace_quoted(sd, lambda closed: closed.uncut_sd))

    @property
    def cov(self) -> FloatArray:
        """Return the covariances over draws, (k, k), and those of the closed form between what is quoted."""
        cov, quoted = super(PooledDraws, self).cov, self.comes_from(QUOTED)
        both = np.outer(quoted, quoted)
        return cov if self.closed is None else np.where(both, self.closed.cov, cov)

    @property
    def reasons(self) -> tuple[str, ...]:
        reasons = np.array(super(PooledDraws, self).reasons, dtype=object)
        return tuple(self._replace_quoted(reasons, lambda c: np.array(c.reasons, dtype=object)).tolist())

    def _bound(self, level: float, kind: Kind | None) -> FloatArray:
        bounds = super(PooledDraws, self)._bound(level, kind)
        return np.asarray(self._replace_quoted(bounds, lambda closed: closed._bound(level, None)))

    def comes_from(self, origin: str) -> BoolArray:
        """Return which components have this origin, (k,)."""
        return np.array([one == origin for one in self.origin], dtype=bool)

    @property
    def _varying(self) -> FloatArray:
        pooled = self.comes_from(POOLED) & ~self.spans
        share = np.select([self.comes_from(QUOTED), pooled], [0.0, self.weight], 1.0)
        return np.asarray(self.model * share)

    def name_kind(self, j: int, kind: Kind | None = None) -> str:
        if self.closed is not None and self.origin[j] == QUOTED:
            return f"{QUOTED} {self.closed.name_kind(j)}"
        tails = isinstance(kind or self.kind, EqualTailed)
        if self.origin[j] and tails:
            return f"{self.origin[j]} quantiles"
        name = Draws.name_kind(self, j, kind)
        return f"{MIXED} {name}" if self.origin[j] == MIXED else name

    @property
    def note(self) -> tuple[Sentence, ...]:
        """Return the notes of metrics that are pooled, and of those that the model has not."""
        pooled, quoted = self._list_from(POOLED), self._list_from(QUOTED)
        notes = [f"Intervals{pooled} {NOTE}"] * any(self.comes_from(POOLED))
        notes += [f"Intervals{quoted} are those of the closed form."] * any(self.comes_from(QUOTED))
        return tuple(Sentence(note, Grade.NOTE) for note in notes)

    def _list_from(self, origin: str) -> str:
        """Return " of" and the metrics of this origin; nothing if all are."""
        some = self.comes_from(origin)
        names = dict.fromkeys(name for name, one in zip(self.names, some, strict=True) if one)
        return "" if some.all() else f" of {', '.join(names)}"

    @property
    def alarms(self) -> tuple[str, ...]:
        """Return remarks, and the note of what is pooled or quoted."""
        return (*self.remarks, *self.note)

    def sentence(self, level: float = 0.95, kind: Kind | None = None) -> str:
        """Return what `Estimates.sentence` returns, and the note of what is pooled or quoted."""
        return " ".join([Draws.sentence(self, level, kind), *self.note])


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class PooledDifferences(PooledDraws):
    """Differences whose intervals average those of draws of a model and of a closed form, or span both.

    They are cut to what both predictions leave possible, and covered .90 or more in all of 32 cells, where
    draws of the model alone covered .25 in the worst, and the closed form .73
    (benchmarks/model-differences.md).
    """

    closed: Normal = by_component(-1)

    @classmethod
    def of(cls, drawn: Draws, closed: Normal, joint: PooledDraws, parts: BoolArray) -> Self:
        """Return differences by draws of a model and by the closed form, of `parts`, (j, k), of a result."""
        quoted, spans = parts @ joint.comes_from(QUOTED), parts @ joint.spans
        pooled = ~quoted & np.array([not why for why in closed.reasons])
        certain = np.where((pooled | quoted)[:, None], closed.unseen.certain, UNSETTLED)
        return cls(
            drawn.names,
            drawn.values,
            drawn.support,
            drawn.uncut,
            Unseen(certain=certain),
            origin=tuple(np.select([quoted, pooled], [QUOTED, POOLED], "").tolist()),
            model=drawn.values,
            spans=spans,
            closed=closed,
            weight=joint.weight,
        )

    @property
    def uncut_sd(self) -> FloatArray:
        own, closed = super(PooledDifferences, self).uncut_sd, self.closed.uncut_sd
        return self._pool(own, closed, np.maximum(own, closed))

    def _bound(self, level: float, kind: Kind | None) -> FloatArray:
        own, closed = super(PooledDifferences, self)._bound(level, kind), self.closed._bound(level, None)
        widest = np.stack([np.minimum(own, closed)[:, 0], np.maximum(own, closed)[:, 1]], axis=-1)
        low, high = self._pool(own, closed, widest).T
        return np.stack([np.fmin(low, self.uncut), np.fmax(high, self.uncut)], axis=-1)

    def _pool(self, own: FloatArray, closed: FloatArray, widest: FloatArray) -> FloatArray:
        """Return values of both members, (k, ...), averaged where they are pooled, or the widest ones."""
        pooled = self.comes_from(POOLED)
        average = np.where(pooled, (self.weight * own + (1 - self.weight) * closed).T, own.T)
        return np.asarray(np.where(pooled & self.spans, widest.T, average).T)


def pool_quantiles(
    results: Sequence[Normal | Draws],
    weights: Sequence[float] | None = None,
    *,
    spans: Sequence[bool] | BoolArray | None = None,
    rng: Seed = None,
) -> PooledDraws:
    """Return the pool of results for the same metrics, whose quantiles are Q(p) = Σ w_i Q_i(p), Σ w_i = 1.

    Where results disagree, the pool is about as long as they are on average, and a mixture of them longer
    than both (Lichtendahl et al. 2013). Each draw of the first result becomes the quantile of the pool at its
    rank, which keeps chains and the dependence of metrics. Quantiles of a `Normal` are the ends of its
    default intervals, and its unreached share is that of the pool. Of metrics that `spans`, (k,), marks, no
    result is trusted to know its own error: their intervals span those of all results.

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
    spanning = np.zeros(len(first.names), dtype=bool) if spans is None else np.array(spans)
    pooled = np.where(spanning, widest, pooled)
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
        model=first.values,
        spans=spanning,
        weight=float(shares[0]),
    )


def as_quoted(closed: Normal, shape: tuple[int, int], rng: Seed = None) -> PooledDraws:
    """Return a closed form with draws of it, (chain, draw, k), to stand beside those of a model."""
    draws, k = closed.as_draws(shape[0] * shape[1], rng), len(closed.names)
    values = draws.values.reshape(*shape, k)
    named = (draws.names, values, draws.support, closed.mean, draws.unseen)
    spans = np.zeros(k, dtype=bool)
    return PooledDraws(*named, origin=(QUOTED,) * k, model=values, spans=spans, closed=closed)


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
