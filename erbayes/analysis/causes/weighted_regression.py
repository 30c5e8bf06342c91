"""A metric as a linear function of features, with the covariance of the design.

Source: Binder (1983), International Statistical Review 51, 279-292.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..._internal.errors import DataError
from ...design.sample import Sample, need_sample
from ...design.variance import kish
from ...metrics.definitions import Metric, chosen_one
from ...metrics.intervals import Kind
from ...metrics.uncertain import Normal, Tabled
from ...metrics.unseen import Unseen
from .unit_features import matrix
from .unit_values import Linear


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Regression(Tabled):
    """A metric as a linear function of features of units, with `joint`: the intercept and the coefficients.

    A coefficient is a difference of the metric, to first order, between units that differ by 1 in the feature
    alone. It is an association: it does not say what would be if the feature were changed.
    """

    metric: Metric
    joint: Normal

    def table(self, level: float = 0.95, kind: Kind | None = None) -> pd.DataFrame:
        """Return coefficients with standard errors and intervals, one row per feature."""
        return self.joint.table(level, kind).rename_axis("feature")


def regression(sample: Sample, metric: Metric | str, features: pd.DataFrame) -> Regression:
    """Regress a metric on features of units, with the covariance of the design.

    Draw s has the features x_s, with 1 for the intercept, and the effect d_s. Its weight is its part q_s of
    the total that the metric averages over. The coefficients are those of weighted least squares of d_s/q_s:

        B = (Σ q x x')⁻¹ Σ x d

    Both are relative to Σ q, and the metric is added to the intercept. The covariance is that of the design
    for the linearised B, which includes the errors of the derivatives in d. If features are indicators of
    groups, coefficients are differences between groups, as in `domains.by_domain`.

    Parameters
    ----------
    features : DataFrame
        One row per unit, whose id is in the index. Text is made indicators of its values, without the first.

    Raises
    ------
    DataError, NotIdentified
        If features are missing, depend on each other or are too many, or if the metric is 0/0 in the sample.

    Examples
    --------
    Entities of 4 records were split in two, the others were not:

    >>> import erbayes as eb
    >>> from erbayes.analysis.causes import features
    >>> labels = {i: i // 4 if i < 80 else i // 2 for i in range(160)}
    >>> sample = eb.Sample(eb.measure({i: i // 2 for i in range(160)}, labels), eb.UniformClusters())
    >>> size = features(sample)[["records"]]
    >>> regression(sample, "pairwise-recall", size).table()["estimate"].round(3)
    feature
    intercept    1.667
    records     -0.333
    Name: estimate, dtype: float64
    """
    need_sample(sample)
    metric = chosen_one(metric)
    table = matrix(sample.units, features, every=False)
    X = np.column_stack([np.ones(len(table)), table.to_numpy()])[sample.expansion.unit]
    line = Linear.of(sample, metric)
    q, d, total = line.part, line.effect, line.part.sum()
    # or features with large values would look dependent
    scale = np.abs(X).max(axis=0)
    counted = np.unique(sample.expansion.unit[q != 0])
    if len(counted) <= X.shape[1] or (scale == 0).any():
        rank = 0
    else:
        rank = np.linalg.matrix_rank(np.sqrt(np.abs(q))[:, None] * X / scale)
    if rank < X.shape[1]:
        raise DataError(
            f"{X.shape[1] - 1} features of {len(counted):,} units that count for {metric.name} do not give a "
            "regression: one is constant or a linear function of others, or there are too few units; leave "
            "out features"
        )
    inverse = np.linalg.inv((X / scale).T @ (q[:, None] * X / scale)) / np.outer(scale, scale)
    B = total * inverse @ (X.T @ d)
    residual = d - (X @ B) * q / total
    # the effects of draws depend on the totals too
    moved = line.Z @ line.H
    score = total * (X * residual[:, None] + moved @ (line.Z.T @ X)) @ inverse + np.outer(q / total, B)
    score[:, 0] -= moved @ line.Z.sum(axis=0)
    B[0] += line.value - d.sum()
    variance = sample.expansion.variance
    cov = variance.covariance(variance.residuals(score))
    effective = kish(q[:, None] * (X @ inverse) ** 2)
    df = np.maximum(effective * line.free - (X.shape[1] - 1), 1.0)
    names = ("intercept", *table.columns)
    with np.errstate(divide="ignore"):
        draws = effective / np.float64(line.theta)
    support, unseen = ((-np.inf, np.inf),) * len(names), Unseen(effective=draws)
    return Regression(metric, Normal(names=names, mean=B, cov=cov, df=df, support=support, unseen=unseen))
