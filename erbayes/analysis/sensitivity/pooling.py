"""Answers from several imputations of the labels, pooled into one answer of the same type.

Sources: Rubin (1987), Multiple Imputation for Nonresponse in Surveys. Barnard and Rubin (1999), Biometrika
86, 948-955 (degrees of freedom).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..._internal.arrays import FloatArray
from ..._internal.errors import DataError
from ...labels.drawing.stopping import ALLOWED, CERTAIN, Check
from ...metrics.moves import Moves
from ...metrics.quantiles import compute_t_quantiles
from ...metrics.uncertain import Draws, Estimates, Normal
from ...metrics.unseen import UNSETTLED, Unseen, map_components


class ByError(NamedTuple):
    """An answer with the error of labels alone, and with it and the error of drawing."""

    systematic: Any
    both: Any


def find_estimates(answer: Any) -> dict[str, Estimates]:
    """Return the estimates in an answer, by the name of their field; "" if the answer is estimates itself."""
    if isinstance(answer, Estimates):
        return {"": answer}
    parts = {f.name: getattr(answer, f.name) for f in fields(answer)} if is_dataclass(answer) else {}
    return {name: part for name, part in parts.items() if isinstance(part, Estimates)}


def pool(answers: Sequence[Any], plain: Any) -> ByError:
    """Pool the answers from imputed labels, (M,), into the type of the `plain` answer."""
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
    return ByError(*(replace(plain, **{name: two[i] for name, two in pooled.items()}) for i in (0, 1)))


def _align(result: Any, names: Sequence[str]) -> Any:
    """Return the components with these names, refusing results without one of them."""
    if result.names == tuple(names):
        return result
    if lost := [name for name in names if name not in result.names]:
        raise DataError(
            f"there is no {lost[0]!r} once errors of labels are undone: give the groups of all records"
        )
    return result.part([result.names.index(name) for name in names])


def _pool_estimates(results: Sequence[Any], plain: Estimates) -> ByError:
    """Pool estimates of one engine: moments by Rubin's rules, or all draws."""
    if isinstance(plain, Normal):
        return _pool_moments(results, plain)
    x = np.array([result.estimate for result in results])
    draws = np.concatenate([result.flat for result in results])
    centre, unseen = x.mean(axis=0), _keep_agreed(results[0].unseen, [r.unseen for r in results])
    return ByError(
        Draws(plain.names, x[None], plain.support, centre),
        Draws(plain.names, draws[None], plain.support, centre, unseen),
    )


def _pool_moments(fits: Sequence[Normal], plain: Normal) -> ByError:
    """Pool by Rubin's rules, with no variance within below that of the labels as they are.

    With x_j and W_j of M imputations the mean is x̄, and the covariance D W̄ D + (1 + 1/M) B, for the
    covariance B of the x_j and D = diag √max(1, W_plain/W̄).
    """

    def average(axes: Sequence[int], *of_each: Any) -> Any:
        return of_each[0] if isinstance(of_each[0], tuple) else np.mean(of_each, axis=0)

    M, x = len(fits), np.array([fit.mean for fit in fits])
    lost = np.isnan(x).sum(axis=0).tolist()
    undefined = tuple(
        why or (f"it has no estimate in {n} of {M} imputations of the labels" if n else "")
        for why, n in zip(plain.undefined, lost, strict=True)
    )
    mean = map_components(average, *fits, undefined=undefined)
    unseen = _keep_agreed(mean.unseen, [fit.unseen for fit in fits])
    between = (1 + 1 / M) * np.atleast_2d(np.cov(x, rowvar=False))
    own, of_plain, of_labels = (np.diagonal(cov) for cov in (mean.cov, plain.cov, between))
    floor = np.sqrt(np.maximum(np.divide(of_plain, own, out=np.ones_like(own), where=own > 0), 1.0))
    cov = mean.cov * np.outer(floor, floor) + between
    # where imputations have no variance within, although labels have
    np.fill_diagonal(cov, np.fmax(np.diagonal(cov), of_plain + of_labels))
    total = np.diagonal(cov)
    df = _find_df(mean.df, of_labels, total, M)
    both = replace(mean, cov=cov, df=df, unseen=unseen, moves=mean.moves.inflated(total, own))
    systematic = replace(
        mean.plain(),
        cov=between,
        df=np.full(len(total), M - 1.0),
        unseen=Unseen(),
        moves=Moves.none(len(total)),
    )
    return ByError(systematic, both)


def _keep_agreed(unseen: Unseen, of_each: Sequence[Unseen]) -> Unseen:
    """Return what is unseen of components, certain only where all imputations of the labels agree.

    An end that is certain if some labels are right is none if these labels may be wrong.
    """
    ends = np.array([one.certain for one in of_each])
    return replace(unseen, certain=np.where((ends != ends[0]).any(axis=0), UNSETTLED, ends[0]))


def _find_df(df: FloatArray, between: FloatArray, total: FloatArray, M: int) -> FloatArray:
    """Return degrees of freedom, (k,), from those of the complete data (Barnard and Rubin 1999)."""
    share = np.divide(between, total, out=np.zeros_like(total), where=total > 0)
    with np.errstate(divide="ignore"):
        of_imputations = (M - 1) / share**2
    observed = np.maximum((df + 1) / (df + 3) * df * (1 - share), 1.0)
    # without errors of labels all imputations are equal but for rounding
    return np.asarray(np.where(share > 1e-12, 1 / (1 / of_imputations + 1 / observed), df))


def _pool_checks(checks: Sequence[Check], plain: Check) -> ByError:
    """Pool the intervals of checks, of whatever kind, arm by arm.

    The arms δ of an interval and that of errors of labels, t √((1 + 1/M) B), which is independent, make the
    arms √(δ² + t² (1 + 1/M) B) (Zou and Donner 2008).
    """
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
    return ByError(*(plain.allow(centre, centre[:, None] + arm * sides) for arm in of_each))
