"""Answers from imputed labels, pooled: by Rubin's rules, or as draws.

Sources: Rubin (1987), Multiple Imputation for Nonresponse in Surveys. Barnard and Rubin (1999), Biometrika
86, 948-955 (degrees of freedom).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from .._internal.errors import DataError
from ..labels.stopping import ALLOWED, CERTAIN, Check
from ..metrics.estimates import Estimates, measure_distances
from ..metrics.unseen import UNSETTLED, Moves, Unseen, compute_t_quantiles, map_components


def find_estimates(answer: Any) -> dict[str, Estimates]:
    """Return the estimates in an answer, by the name of their field; "" if the answer is estimates itself."""
    if isinstance(answer, Estimates):
        return {"": answer}
    parts = {f.name: getattr(answer, f.name) for f in fields(answer)} if is_dataclass(answer) else {}
    return {name: part for name, part in parts.items() if isinstance(part, Estimates)}


def pool(answers: Sequence[Any], plain: Any) -> tuple[Any, Any]:
    """Pool answers from imputed labels, (M,): with the error of labels alone, and with that of draws too."""
    if isinstance(plain, Check):
        return _pool_checks(answers, plain)
    found = [find_estimates(answer) for answer in answers]
    pooled = {
        name: _pool_estimates([_align(one[name], part.names) for one in found], part)
        for name, part in find_estimates(plain).items()
    }
    if not pooled:
        raise DataError(
            "answer returns what estimate, compare, by_domain, impact, thresholds or check return, not "
            f"{type(plain).__name__}"
        )
    if "" in pooled:
        return pooled[""]
    systematic, both = (replace(plain, **{name: two[i] for name, two in pooled.items()}) for i in (0, 1))
    return systematic, both


def _align(result: Any, names: Sequence[str]) -> Any:
    """Return the components with these names, refusing results without one of them."""
    if result.names == tuple(names):
        return result
    if lost := [name for name in names if name not in result.names]:
        raise DataError(
            f"there is no {lost[0]!r} once errors of labels are undone: give the groups of all records"
        )
    return result.part([result.names.index(name) for name in names])


def _pool_estimates(results: Sequence[Any], plain: Estimates) -> tuple[Any, Any]:
    """Pool estimates of one engine: moments by Rubin's rules, or all draws."""
    if plain.values is None:
        return _pool_moments(results, plain)
    x = np.array([result.estimate for result in results])
    draws = np.concatenate([result.flat for result in results])
    centre, unseen = x.mean(axis=0), _keep_agreed(results[0].unseen, [r.unseen for r in results])
    return (
        Estimates.of_draws(plain.names, x[None], plain.support),
        Estimates.of_draws(plain.names, draws[None], plain.support, mean=centre, unseen=unseen),
    )


def _pool_moments(fits: Sequence[Estimates], plain: Estimates) -> tuple[Any, Any]:
    """Pool by Rubin's rules; variances within are at least those of the labels, if there is room for them."""

    def average(axes: Sequence[int], *of_each: Any) -> Any:
        return of_each[0] if isinstance(of_each[0], tuple) else np.mean(of_each, axis=0)

    M, x = len(fits), np.array([fit.mean for fit in fits])
    undefined = tuple(
        why or (f"it has no estimate in {n} of {M} imputations of the labels" if n else "")
        for why, n in zip(plain.undefined, np.isnan(x).sum(axis=0).tolist(), strict=True)
    )
    mean = map_components(average, *fits, undefined=undefined)
    unseen = _keep_agreed(mean.unseen, [fit.unseen for fit in fits])
    between = (1 + 1 / M) * np.atleast_2d(np.cov(x, rowvar=False))
    own, of_plain, of_labels = (np.diagonal(cov) for cov in (mean.cov, plain.cov, between))
    room, before = (-measure_distances(at, plain.support).prod(axis=-1) for at in (mean.mean, plain.mean))
    nearer = np.divide(room, before, out=np.ones_like(room), where=before > 0)
    # a share with less than half of the room to the ends of its range cannot vary as much
    of_plain = of_plain * np.minimum(2 * nearer, 1)
    # D W̄ D + (1 + 1/M) B, for the covariance B of the means and D = diag √max(1, W_plain/W̄)
    floor = np.sqrt(np.maximum(np.divide(of_plain, own, out=np.ones_like(own), where=own > 0), 1.0))
    cov = mean.cov * np.outer(floor, floor) + between
    # where imputations have no variance within, although labels have
    np.fill_diagonal(cov, np.fmax(np.diagonal(cov), of_plain + of_labels))
    total = np.diagonal(cov)
    share = np.divide(of_labels, total, out=np.zeros_like(total), where=total > 0)
    with np.errstate(divide="ignore"):
        of_imputations = (M - 1) / share**2
    observed = np.maximum((mean.df + 1) / (mean.df + 3) * mean.df * (1 - share), 1.0)
    # Barnard and Rubin (1999), in a census too; without errors of labels imputations differ by rounding
    df = np.asarray(np.where(share > 1e-12, 1 / (1 / of_imputations + (share < 1) / observed), mean.df))
    both = replace(mean, cov=cov, df=df, unseen=unseen, moves=mean.moves.inflated(total, own))
    df, moves = np.full(len(total), M - 1.0), Moves.none(len(total))
    return replace(mean, cov=between, df=df, unseen=Unseen(), moves=moves), both


def _keep_agreed(unseen: Unseen, of_each: Sequence[Unseen]) -> Unseen:
    """Return what is unseen of components, with ends that are certain only where all imputations agree."""
    ends = np.array([one.certain for one in of_each])
    return replace(unseen, certain=np.where((ends != ends[0]).any(axis=0), UNSETTLED, ends[0]))


def _pool_checks(checks: Sequence[Check], plain: Check) -> tuple[Any, Any]:
    """Pool intervals of checks by arms: √(δ² + t² (1 + 1/M) B), δ that of draws (Zou and Donner 2008)."""
    M, x = len(checks), np.array([check.estimate for check in checks])
    arms = np.mean([np.abs(check.interval - check.estimate[:, None]) for check in checks], axis=0)
    arms = np.fmax(arms, np.abs(plain.interval - plain.estimate[:, None]))
    t = compute_t_quantiles(np.array([M - 1.0]), np.array([(1 + plain.level) / 2]))
    of_labels = (t * np.sqrt((1 + 1 / M) * x.var(axis=0, ddof=1)))[:, None]
    centre, sides = x.mean(axis=0), np.array([-1.0, 1.0])
    of_each = (of_labels, np.sqrt(arms**2 + of_labels**2))
    same = np.all([np.isclose(check.interval, plain.interval).all(axis=1) for check in checks], axis=0)
    kinds = tuple(
        kind if agreed or kind != CERTAIN else ALLOWED
        for kind, agreed in zip(plain.kinds, same.tolist(), strict=True)
    )
    plain = replace(plain, kinds=kinds)
    systematic, both = (plain.allow(centre, centre[:, None] + arm * sides) for arm in of_each)
    return systematic, both
