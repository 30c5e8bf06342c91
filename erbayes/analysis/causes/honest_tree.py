"""A metric by the leaves of an honest tree: some units choose the splits, the others estimate.

A metric is close to an average over units. Each unit counts by its part of the total that the metric averages
over, such as its predicted links for pairwise precision. Its value is then its effect on the metric, over
that part. The tree explains these values by features.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from ..._internal.arrays import BoolArray, FloatArray, IntArray, Seed, generator
from ..._internal.errors import DataError, NotIdentified, import_extra, number, whole
from ...design.sample import Sample, need_sample
from ...engine.fitted import fit_sample
from ...metrics.columns import Domain, Known
from ...metrics.definitions import Metric, coefficients_of_size, resolve_metric
from ...metrics.intervals import Kind
from ...metrics.uncertain import EMPTY, Pictured
from ...units.grouping import Grouping
from ..domains import by_domain, in_domain
from ..domains.effective import FEWEST
from ..domains.estimates import ByDomain
from .unit_features import matrix


@dataclass(frozen=True, slots=True)
class Split:
    """A split of units: `below` follows for those whose feature is at most `at`, `above` for the others."""

    feature: str
    at: float
    below: Split | int
    above: Split | int
    indicator: bool = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tree(Pictured):
    """A metric by the leaves of an honest tree.

    `rules` (l,): the features of units of each leaf, in words; `leaf` (u,): leaf of each unit, 1 to l;
    `chose` (u,): units that chose the splits; `leaves`: the metric by leaf, from the others.
    """

    picture: ClassVar[str] = "tree"
    root: Split | int
    rules: tuple[str, ...]
    leaf: pd.Series
    chose: BoolArray
    leaves: ByDomain

    def table(
        self, level: float = 0.95, kind: Kind | None = None, *, simultaneous: bool = False
    ) -> pd.DataFrame:
        """Return estimates and intervals, one row per leaf, for the parameters of `ByDomain.table`."""
        shown = self.leaves.table(level, kind, simultaneous=simultaneous).drop(columns="metric")
        shown = shown.rename(columns={"domain": "leaf"})
        shown.insert(1, "rule", list(self.rules))
        return shown

    def differences(
        self, level: float = 0.95, kind: Kind | None = None, *, simultaneous: bool = True
    ) -> pd.DataFrame:
        """Return the difference of every two leaves, as `ByDomain.differences`."""
        return self.leaves.differences(level, kind, simultaneous=simultaneous)


def tree(
    sample: Sample,
    metric: Metric | str,
    features: pd.DataFrame,
    *,
    most: int = 4,
    least: int = 20,
    fewest: float = FEWEST,
    rng: Seed = None,
) -> Tree:
    """Find groups of units with different values of a metric, and estimate the metric in each.

    Half of the labelled units, by chance, choose the splits. The other half estimates the metric in each
    leaf by the design, as a domain. So intervals cover although the leaves were searched for. In a census,
    all units do both, since nothing is left to chance.

    The leaves are domains of a random half of all entities. Their intervals do not include how this half
    differs from all units, which matters only if most entities are labelled.

    Parameters
    ----------
    metric : Metric or str
        A share or a mean of units, which needs no known totals.
    features : DataFrame
        One row per unit, whose id is in the index. Text is made indicators of its values.
    most : int
        Largest number of leaves, 2 or more.
    least : int
        Smallest number of draws of a leaf in the half that chooses.
    fewest : float
        As in `by_domain`.
    rng : Generator, int or None

    Raises
    ------
    DataError, NotIdentified
        If scikit-learn or features are missing, if there are fewer than 4 `least` draws, if the metric needs
        known totals, or if it is 0/0 in the sample.

    See Also
    --------
    features : the table in which it searches.
    erbayes.by_domain : groups that you know before.

    References
    ----------
    Athey and Imbens (2016), PNAS 113, 7353-7360.

    Examples
    --------
    >>> import erbayes as eb
    >>> from erbayes.analysis.causes import features
    >>> labels = {i: i // 4 if i < 400 else i // 2 for i in range(800)}
    >>> sample = eb.Sample(eb.measure({i: i // 2 for i in range(800)}, labels), eb.UniformClusters())
    >>> found = tree(sample, "pairwise-recall", features(sample)[["records"]], rng=1)
    >>> found.table()[["leaf", "rule", "estimate"]].round(3)
      leaf         rule  estimate
    0    1  records ≤ 3     1.000
    1    2  records > 3     0.333
    """
    need_sample(sample)
    metric = resolve_metric(metric)
    most, least = whole(most, "most leaves", 2), whole(least, "least draws of a leaf")
    number(fewest, "fewest effective draws", lambda x: x >= 0, "be 0 or more")
    if metric.absolute or any(isinstance(c, Known) for c in metric.columns):
        raise NotIdentified(f"{metric.name} counts something of all records, and has no value in a leaf")
    units, unit = sample.units, sample.expansion.unit
    table = matrix(units, features)
    census = sample.expansion.variance.census
    if len(unit) < (2 if census else 4) * least:
        raise DataError(
            f"{len(unit):,} draws are too few for leaves of {least} draws in each half: label more units, or "
            "choose a smaller least="
        )
    chose = np.ones(len(units), dtype=bool)
    if not census:
        chose[generator(rng).permutation(len(units))[len(units) // 2 :]] = False
    # splits look better on the draws that chose them, so that the other half estimates
    parted = _group_units(sample, "half", ["estimates", "chooses"], chose.astype(np.int64))
    effect, part = _evaluate_draws(parted, in_domain(metric, Domain("half", ("chooses",))))
    some = part > 0  # other draws have no part in what the metric averages over
    root, rules, leaf = _grow_tree(table, unit[some], effect[some] / part[some], part[some], most, least)
    names = list(range(len(rules) + 1))
    kept = _group_units(sample, "leaf", names, leaf if census else np.where(chose, 0, leaf))
    found = by_domain(kept, "leaf", metric, fewest=fewest)
    leaves = replace(
        found, domains=found.domains[1:], joint=found.joint.part(names[1:]), effective=found.effective[1:]
    )
    return Tree(root, rules, pd.Series(leaf, index=units.ids, name="leaf"), chose, leaves)


def _evaluate_draws(sample: Sample, metric: Metric) -> tuple[FloatArray, FloatArray]:
    """Return the linearised effect J z of each draw, and its part of the total averaged over, (n draws,)."""
    fit = fit_sample(sample, metric)
    if np.isnan(fit.slopes).any():
        raise NotIdentified(f"no unit has an effect on {metric.name}: {EMPTY}")
    size = coefficients_of_size([metric], [c.name for c in fit.counted])[0]
    return fit.changes[:, 0], fit.contributions @ size


def _grow_tree(
    table: pd.DataFrame, unit: IntArray, value: FloatArray, weight: FloatArray, most: int, least: int
) -> tuple[Split | int, tuple[str, ...], IntArray]:
    """Return the root of a tree of the values of draws, the rule of each leaf, and the leaf of each unit."""
    sklearn = import_extra("sklearn.tree", "a tree needs scikit-learn", "trees")
    X = table.to_numpy()
    grown = sklearn.DecisionTreeRegressor(max_leaf_nodes=most, min_samples_leaf=least, random_state=0)
    # rules name an indicator instead of a threshold of a half
    binary = np.isin(X, (0, 1)).all(axis=0)
    grown.fit(X[unit], value, sample_weight=weight)
    nodes, rules, leaf = grown.tree_, list[str](), np.zeros(len(table), dtype=np.int64)

    def follow(
        node: int, inside: BoolArray, bounds: dict[tuple[str, bool], tuple[float, float]]
    ) -> Split | int:
        if nodes.children_left[node] < 0:
            rules.append(" and ".join(_describe_bounds(*b) for b in bounds.items()) or "all units")
            leaf[inside] = len(rules)
            return len(rules)
        j, at = int(nodes.feature[node]), float(nodes.threshold[node])
        column, low = (str(table.columns[j]), bool(binary[j])), X[:, j] <= at
        down, up = bounds.get(column, (-np.inf, np.inf))
        below = follow(nodes.children_left[node], inside & low, bounds | {column: (down, at)})
        above = follow(nodes.children_right[node], inside & ~low, bounds | {column: (at, up)})
        return Split(column[0], at, below, above, column[1])

    root = follow(0, np.ones(len(table), dtype=bool), {})
    return root, tuple(rules), leaf


def _describe_bounds(column: tuple[str, bool], bounds: tuple[float, float]) -> str:
    """Return the bounds of a feature, low < feature ≤ high, as text. An indicator is there or not."""
    (feature, indicator), (low, high) = column, bounds
    if indicator:
        return feature if np.isinf(high) else f"not {feature}"
    if np.isinf(low):
        return f"{feature} ≤ {high:.4g}"
    return f"{feature} > {low:.4g}" if np.isinf(high) else f"{low:.4g} < {feature} ≤ {high:.4g}"


def _group_units(sample: Sample, variable: str, values: list[Any], codes: IntArray) -> Sample:
    """Return the sample with units grouped by a variable of units, given as positions in `values`."""
    counted = (np.arange(len(values))[:, None] == codes[sample.units.unit]) * sample.units.n
    return sample.with_units(sample.units.with_grouping(Grouping(variable, pd.Index(values), counted)))
