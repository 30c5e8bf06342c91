"""Causes of error: a metric by features of units, as a regression and as an honest tree; names; review.

A metric is close to an average over units. Each unit counts by its part of the total that the metric averages
over, such as its predicted links for pairwise precision. Its value is then its effect on the metric, over
that part. Regression and tree explain these values by features.

Sources: Binder (1983), International Statistical Review 51, 279-292 (regression with the covariance of the
design). Athey and Imbens (2016), PNAS 113, 7353-7360 (honest trees).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from .arrays import BoolArray, FloatArray, IntArray, Seed, generator
from .clustering import kind
from .columns import ENTITIES, PIECES, Column, Domain, Known, Links, Pieces
from .diagnostics import influence
from .domains import FEWEST, ByDomain, by_domain, in_domain
from .engine.closed_form import columns_of, taylor
from .errors import DataError, NotIdentified, head, need, number, whole
from .grouping import Grouping, Of, Variable
from .intervals import Kind
from .metrics import UNIT, Metric, Value, chosen
from .sample import Sample, need_sample
from .uncertain import EMPTY, Normal, Tabled, derivatives
from .units import Units
from .variance import kish

Rule = Callable[[pd.Series], Any]
"""A function of the values that the records of one unit have."""


def features(sample: Sample) -> pd.DataFrame:
    """Return features that every sample has, one row per unit.

    Pieces and the largest predicted cluster describe the prediction too. They say where errors are rather
    than why.

    Parameters
    ----------
    sample : Sample

    Returns
    -------
    DataFrame
        Columns: records; pieces, the number of pieces; and largest_cluster, the records of the largest
        predicted cluster that has records of the unit.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b"}, {1: "x", 2: "x", 3: "x"})
    >>> features(eb.Sample(units, eb.UniformClusters()))
       records  pieces  largest_cluster
    x      3.0     2.0              2.0
    """
    need_sample(sample)
    units = sample.units
    largest = np.zeros(len(units))
    np.maximum.at(largest, units.unit, units.m)
    columns = {"records": units.size, "pieces": units.column(PIECES), "largest_cluster": largest}
    return pd.DataFrame(columns, index=units.ids)


def aggregated(
    sample: Sample, attributes: pd.DataFrame, rule: Rule | Mapping[str, Rule] | None = None
) -> pd.DataFrame:
    """Make features of units from attributes of records.

    Parameters
    ----------
    sample : Sample
    attributes : DataFrame
        One row per record, whose id is in the index. It may have further records.
    rule : callable Series -> value, or mapping column -> callable, optional
        How the values of the records of a unit become one, such as `pd.Series.nunique`. By default the mean.

    Returns
    -------
    DataFrame
        One row per unit, one column per attribute. A mapping chooses its columns.

    Raises
    ------
    DataError
        If labelled records have no row or several, if they lack a value, or if a text has no rule.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b"}, {1: "x", 2: "x", 3: "y"})
    >>> names = pd.DataFrame({"name": ["Ann", "Anne", "Bob"]}, index=[1, 2, 3])
    >>> aggregated(eb.Sample(units, eb.UniformClusters()), names, pd.Series.nunique)
       name
    x     2
    y     1
    """
    need_sample(sample)
    units = sample.units
    records = _of_records(units, attributes)
    rules = dict(rule) if isinstance(rule, Mapping) else dict.fromkeys(records.columns, rule)
    if unknown := [c for c in rules if c not in records]:
        raise DataError(f"attributes have no column {head(unknown)}; they have {head(records.columns, 10)}")
    found = {}
    for column, how in rules.items():
        values = records[column]
        if values.isna().any():
            lacking = records.index[values.isna()]
            raise DataError(
                f"{column!r} has no value for {len(lacking):,} of {len(records):,} labelled records, such as "
                f"{head(lacking)}: give them one of their own"
            )
        if how is None and not pd.api.types.is_numeric_dtype(values):
            raise DataError(f"{column!r} has no mean: choose rule=, such as pd.Series.nunique")
        groups = values.groupby(_unit_of(units).to_numpy())
        found[column] = (groups.mean() if how is None else groups.agg(how)).to_numpy()
    return pd.DataFrame(found, index=units.ids)


def _unit_of(units: Units) -> pd.Series:
    """Return the position of the unit of each labelled record."""
    if units.piece_of is None:
        raise DataError("these units have no ids of records: give features of units")
    return pd.Series(units.unit[units.piece_of], index=units.piece_of.index)


def _of_records(units: Units, attributes: Any) -> pd.DataFrame:
    """Return the attributes of labelled records, in the order of `piece_of`."""
    need(attributes, pd.DataFrame, "attributes are a DataFrame, one row per record with its id in the index")
    return _rows(attributes, _unit_of(units).index, "labelled records", "attributes")


def _rows(table: pd.DataFrame, ids: pd.Index, among: str, what: str) -> pd.DataFrame:
    """Return the row of each id, refusing ids without a row or with several."""
    if len(table) and kind(table.index) != kind(ids):
        raise DataError(
            f"the index of {what} is of type {kind(table.index)}, ids of {among} are of type {kind(ids)}: "
            "none could match; convert one of them"
        )
    table = table[table.index.isin(ids)]
    again = table.index.duplicated()
    if again.any():
        twice = table.index[again].unique()
        raise DataError(f"{what} have several rows for {len(twice):,} {among}, such as {head(twice)}")
    position = table.index.get_indexer(ids)
    if (position < 0).any():
        lacking = ids[position < 0]
        raise DataError(
            f"{what} have no row for {len(lacking):,} of {len(ids):,} {among}, such as {head(lacking)}"
        )
    return table.iloc[position]


def _matrix(units: Units, table: Any, every: bool) -> pd.DataFrame:
    """Return features as numbers. Text becomes indicators of its values: of every one, or of all but one."""
    need(table, pd.DataFrame, "features are a DataFrame, one row per unit with its id in the index")
    table = _rows(table, units.ids, "labelled units", "features")
    columns: dict[str, FloatArray] = {}
    for name in table.columns:
        values = table[name]
        if values.isna().any():
            lacking = table.index[values.isna()]
            raise DataError(
                f"the feature {name!r} has no value for {len(lacking):,} of {len(units):,} units, such as "
                f"{head(lacking)}"
            )
        if pd.api.types.is_numeric_dtype(values) or pd.api.types.is_bool_dtype(values):
            made = {str(name): values.to_numpy(dtype=float)}
        else:
            distinct = sorted(values.astype(str).unique())
            text = values.astype(str).to_numpy()
            made = {f"{name} {v}": (text == v).astype(float) for v in distinct[0 if every else 1 :]}
        if clash := [c for c in made if c in columns]:
            raise DataError(f"two features are called {head(clash)}: rename one")
        columns |= made
    if not columns:
        raise DataError("features need a column or more")
    if infinite := [c for c, x in columns.items() if not np.isfinite(x).all()]:
        raise DataError(f"features {head(infinite)} have values that are not finite")
    return pd.DataFrame(columns, index=units.ids)


@dataclass(frozen=True, slots=True, eq=False)
class _Linear:
    """A metric to first and second order in the totals of draws.

    Attributes
    ----------
    Z : float array, (n draws, k)
        Contributions to totals.
    J, H : float arrays, (k,), (k, k)
        First and second derivatives of the metric.
    value : float
    part : float array, (n draws,)
        Contribution to the total that the metric averages over.
    free, theta : float
        As in `Totals`.
    """

    Z: FloatArray
    J: FloatArray
    H: FloatArray
    value: float
    part: FloatArray
    free: float
    theta: float

    @classmethod
    def of(cls, sample: Sample, metric: Metric) -> _Linear:
        """Linearise a metric.

        Raises
        ------
        NotIdentified
            If the sample cannot estimate it, or if it is 0/0 in the sample.
        """
        totals = taylor(sample, [metric])
        counted, _ = columns_of([metric])
        x = totals.mean[totals.positions(metric)]
        with np.errstate(divide="ignore", invalid="ignore"):
            first, second = derivatives(metric.formula, x)
            value = float(metric.formula(*x))
        if not (np.isfinite(first).all() and np.isfinite(value)):
            raise NotIdentified(f"no unit has an effect on {metric.name}: {EMPTY}")
        takes = np.array([[c == column for column in counted] for c in metric.columns], dtype=float)
        sized = dict[str, float]()
        for column, coefficient in metric.size:
            sized[column.name] = sized.get(column.name, 0.0) + coefficient
        Z = sample.contributions(counted)
        part = Z @ np.array([sized.get(c.name, 0.0) for c in counted])
        H = takes.T @ np.nan_to_num(second) @ takes
        return cls(Z, first @ takes, H, value, part, totals.free, totals.theta)

    @property
    def effect(self) -> FloatArray:
        """Return the linearised effect of each draw, J z, (n draws,)."""
        return np.asarray(self.Z @ self.J)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Regression(Tabled):
    """A metric as a linear function of features of units.

    A coefficient is a difference of the metric, to first order. It compares units that differ by 1 in the
    feature and agree in all others. The intercept is the metric of units whose features are all 0. It is an
    association: it does not say what the metric would be if the feature were changed.

    Attributes
    ----------
    metric : Metric
    joint : Normal
        The intercept and the coefficients, jointly.
    """

    metric: Metric
    joint: Normal

    def table(self, level: float = 0.95, kind: Kind | None = None) -> pd.DataFrame:
        """Return coefficients with standard errors and intervals, one row per feature.

        Parameters
        ----------
        level : float in (0, 1)
        kind : Kind, optional
            By default symmetric intervals by Student's t.
        """
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
    sample : Sample
    metric : Metric or str
    features : DataFrame
        One row per unit, whose id is in the index. Text is made indicators of its values, without the first.

    Returns
    -------
    Regression

    Raises
    ------
    DataError
        If units have no features, or if features are linear functions of each other or as many as units.
    NotIdentified
        If the metric is 0/0 in the sample.

    Examples
    --------
    Entities of 4 records were split in two, the others were not:

    >>> import erbayes as eb
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
    metric = _one(metric)
    table = _matrix(sample.units, features, every=False)
    X = np.column_stack([np.ones(len(table)), table.to_numpy()])[sample.expansion.unit]
    line = _Linear.of(sample, metric)
    q, d, total = line.part, line.effect, line.part.sum()
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
    return Regression(metric, Normal(names, B, cov, df, ((-np.inf, np.inf),) * len(names), draws))


def _one(metric: Metric | str) -> Metric:
    metrics = chosen(metric)
    if len(metrics) > 1:
        raise DataError(f"causes are those of one metric, not of {len(metrics)}")
    return metrics[0]


@dataclass(frozen=True, slots=True)
class Split:
    """A split of units by a feature.

    Attributes
    ----------
    feature : str
    at : float
    below, above : Split or int
        What follows for units whose feature is at most `at`, and for the others. An int is a leaf.
    indicator : bool
        True if the feature is 0 or 1.
    """

    feature: str
    at: float
    below: Split | int
    above: Split | int
    indicator: bool = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tree(Tabled):
    """A metric by the leaves of an honest tree.

    Attributes
    ----------
    root : Split or int
        The first split. It is leaf 1 if nothing was worth a split.
    rules : tuple of str, (l,)
        The features of units of each leaf, in words.
    leaf : Series
        Leaf of each unit, 1 to l, also of those that chose the splits.
    chose : bool array, (u,)
        Units that chose the splits. In a census all units both choose and estimate.
    leaves : ByDomain
        The metric by leaf, from the units that did not choose.
    """

    root: Split | int
    rules: tuple[str, ...]
    leaf: pd.Series
    chose: BoolArray
    leaves: ByDomain

    def table(
        self, level: float = 0.95, kind: Kind | None = None, *, simultaneous: bool = False
    ) -> pd.DataFrame:
        """Return estimates and intervals, one row per leaf.

        Parameters are those of `ByDomain.table`.
        """
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
    leaf by the design, as a domain. So intervals hold although the leaves were searched for. In a census,
    all units do both, since nothing is left to chance.

    The leaves are domains of a random half of all entities. Their intervals do not include how this half
    differs from the whole, which matters only if most entities are labelled.

    Parameters
    ----------
    sample : Sample
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
        The source of chance of the halves.

    Returns
    -------
    Tree

    Raises
    ------
    DataError
        If scikit-learn is missing, if there are fewer than 4 `least` draws, or as in `regression`.
    NotIdentified
        If the metric needs known totals, or is 0/0 in the sample.

    Examples
    --------
    >>> import erbayes as eb
    >>> labels = {i: i // 4 if i < 400 else i // 2 for i in range(800)}
    >>> sample = eb.Sample(eb.measure({i: i // 2 for i in range(800)}, labels), eb.UniformClusters())
    >>> found = tree(sample, "pairwise-recall", features(sample)[["records"]], rng=1)
    >>> found.table()[["leaf", "rule", "estimate"]].round(3)
      leaf         rule  estimate
    0    1  records ≤ 3     1.000
    1    2  records > 3     0.333
    """
    need_sample(sample)
    metric = _one(metric)
    most, least = whole(most, "most leaves", 2), whole(least, "least draws of a leaf")
    number(fewest, "fewest effective draws", lambda x: x >= 0, "be 0 or more")
    if metric.absolute or any(isinstance(c, Known) for c in metric.columns):
        raise NotIdentified(f"{metric.name} counts something of all records, and has no value in a leaf")
    units, unit = sample.units, sample.expansion.unit
    table = _matrix(units, features, every=True)
    census = sample.expansion.variance.census
    if len(unit) < (2 if census else 4) * least:
        raise DataError(
            f"{len(unit):,} draws are too few for leaves of {least} draws in each half: label more units, or "
            "choose a smaller least="
        )
    chose = np.ones(len(units), dtype=bool)
    if not census:
        chose[generator(rng).permutation(len(units))[len(units) // 2 :]] = False
    parted = _with_grouping(sample, "half", ["estimates", "chooses"], chose.astype(np.int64))
    line = _Linear.of(parted, in_domain(metric, Domain("half", ("chooses",))))
    root, rules, leaf = _grown(table, line, unit, most, least)
    names = list(range(len(rules) + 1))
    kept = _with_grouping(sample, "leaf", names, leaf if census else np.where(chose, 0, leaf))
    found = by_domain(kept, "leaf", metric, fewest=fewest)
    some = names[1:]
    leaves = replace(
        found,
        domains=found.domains[1:],
        joint=found.joint.part(some),
        effective=found.effective[1:],
    )
    return Tree(root, rules, pd.Series(leaf, index=units.ids, name="leaf"), chose, leaves)


def _grown(
    table: pd.DataFrame, line: _Linear, unit: IntArray, most: int, least: int
) -> tuple[Split | int, tuple[str, ...], IntArray]:
    """Return the root of a tree of the values of draws, the rule of each leaf, and the leaf of each unit."""
    try:
        from sklearn.tree import DecisionTreeRegressor
    except ModuleNotFoundError as error:
        raise DataError("a tree needs scikit-learn: pip install 'erbayes[trees]'") from error
    X = table.to_numpy()
    some = line.part > 0  # other draws have no part in what the metric averages over
    grown = DecisionTreeRegressor(max_leaf_nodes=most, min_samples_leaf=least, random_state=0)
    binary = np.isin(X, (0, 1)).all(axis=0)
    grown.fit(X[unit[some]], (line.effect[some] / line.part[some]), sample_weight=line.part[some])
    nodes, rules, leaf = grown.tree_, list[str](), np.zeros(len(table), dtype=np.int64)

    def follow(
        node: int, inside: BoolArray, bounds: dict[tuple[str, bool], tuple[float, float]]
    ) -> Split | int:
        if nodes.children_left[node] < 0:
            rules.append(" and ".join(_in_words(*b) for b in bounds.items()) or "all units")
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


def _in_words(column: tuple[str, bool], bounds: tuple[float, float]) -> str:
    """Return the bounds of a feature, low < feature ≤ high, as text. An indicator is there or not."""
    (feature, indicator), (low, high) = column, bounds
    if indicator:
        return feature if np.isinf(high) else f"not {feature}"
    if np.isinf(low):
        return f"{feature} ≤ {high:.4g}"
    return f"{feature} > {low:.4g}" if np.isinf(high) else f"{low:.4g} < {feature} ≤ {high:.4g}"


def _with_grouping(sample: Sample, variable: str, values: list[Any], codes: IntArray) -> Sample:
    """Return the sample with units grouped by a variable of units, given as positions in `values`."""
    counted = (np.arange(len(values))[:, None] == codes[sample.units.unit]) * sample.units.n
    return _regrouped(sample, Grouping(variable, pd.Index(values), counted))


def _regrouped(sample: Sample, grouping: Grouping) -> Sample:
    """Return the sample with a grouping more. A grouping of the same name is replaced."""
    others = tuple(g for g in sample.units.groupings if g.variable != grouping.variable)
    units = replace(sample.units, groupings=(*others, grouping))
    return Sample(units, sample.design, sample.expansion)


@dataclass(frozen=True, slots=True)
class EntitiesOf:
    """The number of entities of a domain, as a column. Unlike `InDomain`, it has no value for imagined units.

    Parameters
    ----------
    domain : Domain

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b"}, {1: "x", 2: "x", 3: "y"})
    >>> kind = {"x": "firm", "y": "person"}
    >>> EntitiesOf(Domain("kind", ("firm",))).count(units.grouped(kind, of=Of.ENTITIES, name="kind"))
    array([1., 0.])
    """

    domain: Domain
    name: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", f"entities of {self.domain.variable} {self.domain}")

    def identified(self, units: Pieces) -> bool:
        part = units.part(self.domain, Links.SHARED)
        return part is not units and ENTITIES.identified(part)

    def count(self, units: Pieces) -> FloatArray:
        part = units.part(self.domain, Links.SHARED)
        if part is units:  # intervals would take imagined units for units of the domain
            raise NotIdentified(f"imagined units have no {self.domain.variable}")
        return ENTITIES.count(part)


def _share(part: Value, all_of: Value) -> Value:
    return part / all_of


def _rate(name: str, variable: str, value: str, source: str, meaning: str) -> Metric:
    """Return the share of entities that have a value of a variable."""
    columns: tuple[Column, ...] = (EntitiesOf(Domain(variable, (value,))), ENTITIES)
    return Metric(name, columns, _share, ((ENTITIES, 1.0),), UNIT, source, meaning=meaning)


def name_variation(sample: Sample, names: Any) -> tuple[Sample, Metric]:
    """Return the metric "name-variation-rate", the share of entities that have several names.

    Names that differ in a single character are several. To ignore case or order, change the names first.

    Parameters
    ----------
    sample : Sample
        Of whole entities.
    names : Series, mapping or table of two columns
        The name of each labelled record, or of all records. Any variable will do, such as an address.

    Returns
    -------
    Sample
        The sample that knows which entities have several names. Engines need it in place of `sample`.
    Metric

    Raises
    ------
    DataError
        If labelled records have no name, or several.
    NotIdentified
        If units are predicted clusters.

    Examples
    --------
    >>> import erbayes as eb
    >>> labels = {i: i // 2 for i in range(80)}
    >>> sample = eb.Sample(eb.measure(labels, labels), eb.UniformClusters())
    >>> named, rate = name_variation(sample, {i: "Ann" if i % 8 else "Anne" for i in range(80)})
    >>> eb.taylor(named, rate).apply(rate).estimate
    array([0.25])
    """
    variable, codes, entity = _names(sample, names)
    pair = pd.DataFrame({"entity": entity, "name": codes}).drop_duplicates()
    several = np.bincount(pair["entity"], minlength=int(entity.max()) + 1) > 1
    called = f"number of values of {variable.name}"
    return _of_entities(sample, called, ["one", "several"], several), _rate(
        "name-variation-rate",
        called,
        "several",
        f"|entities with several values of {variable.name}|/|C|",
        "Of the entities, the share whose records have several names.",
    )


def homonymy(sample: Sample, names: Any, prediction: Any) -> tuple[Sample, Metric]:
    """Return the metric "homonymy-rate", the share of entities that share a name with another entity.

    An entity shares a name if more records have it than the entity's own. Names must therefore be known for
    all records, while labels are needed for the sample alone.

    Parameters
    ----------
    sample : Sample
        Of whole entities.
    names : Series, mapping or table of two columns
        The name of each record of the prediction.
    prediction : memberships
        The prediction of the sample, which says which records there are.

    Returns
    -------
    Sample
        The sample that knows which entities share a name. Engines need it in place of `sample`.
    Metric

    Raises
    ------
    DataError
        If records have no name, or several, or if this is not the prediction of the sample.
    NotIdentified
        If units are predicted clusters.

    Examples
    --------
    >>> import erbayes as eb
    >>> labels = {i: i // 2 for i in range(80)}
    >>> sample = eb.Sample(eb.measure(labels, labels), eb.UniformClusters())
    >>> named, rate = homonymy(sample, {i: f"Ann {i // 2 % 30}" for i in range(80)}, labels)
    >>> eb.taylor(named, rate).apply(rate).estimate
    array([0.5])
    """
    variable, codes, entity = _names(sample, names)
    records = sample.units.whole_prediction(
        prediction, "whether a name is shared needs the same records"
    ).records
    everywhere = np.bincount(
        variable.codes_of(records, f"{len(records):,} records of the prediction"),
        minlength=len(variable.values),
    )
    own = pd.DataFrame({"entity": entity, "name": codes}).value_counts().reset_index(name="records")
    beyond = own["records"].to_numpy() < everywhere[own["name"]]
    shares = np.bincount(own["entity"], beyond, int(entity.max()) + 1) > 0
    called = f"{variable.name} of other entities"
    return _of_entities(sample, called, ["own", "shared"], shares), _rate(
        "homonymy-rate",
        called,
        "shared",
        f"|entities that share a value of {variable.name}|/|C|",
        "Of the entities, the share that have a name which another entity has too.",
    )


def _names(sample: Sample, names: Any) -> tuple[Variable, IntArray, IntArray]:
    """Return a variable of records, with the value and the entity of each labelled record."""
    need_sample(sample)
    units = sample.units
    if not units.by_entity:
        raise NotIdentified("names of entities are identified only if whole entities are sampled")
    if units.piece_of is None:
        raise DataError("these units have no ids of records, which names need")
    variable = Variable.of(names, None if hasattr(names, "columns") else _name_of(names), Of.RECORDS)
    records = units.piece_of.index
    codes = variable.codes_of(records, f"{len(records):,} labelled records")
    return variable, codes, units.group[units.piece_of]


def _name_of(names: Any) -> str:
    return str(getattr(names, "name", None) or "name")


def _of_entities(sample: Sample, variable: str, values: list[str], member: BoolArray) -> Sample:
    """Return the sample grouped by a variable of entities, which has the second value for members."""
    units = sample.units
    inside = member[units.group]
    return _regrouped(sample, Grouping(variable, pd.Index(values), np.stack([~inside, inside]) * units.n))


def review(sample: Sample, metric: Metric | str, attributes: pd.DataFrame, *, most: int = 20) -> pd.DataFrame:
    """List the records of the most influential units with their attributes, for a person who reviews them.

    `.to_csv(path, index=False)` exports the list.

    Parameters
    ----------
    sample : Sample
    metric : Metric or str
    attributes : DataFrame
        One row per record, whose id is in the index. It may have further records.
    most : int
        The number of units.

    Returns
    -------
    DataFrame
        One row per record; the most influential unit first, and in it the largest piece. Columns: unit;
        influence, as in `erbayes.influence`; record; piece, numbered within the unit; cluster_size, the
        records of its predicted cluster; then the attributes.

    Raises
    ------
    DataError
        If labelled records have no row or several, or if an attribute has the name of another column.
    NotIdentified
        If the metric is 0/0 in the sample.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b", 4: "c"}, {1: "x", 2: "x", 3: "x", 4: "y"})
    >>> names = pd.DataFrame({"name": ["Ann", "Ann", "Anne", "Bob"]}, index=[1, 2, 3, 4])
    >>> found = review(eb.Sample(units, eb.UniformClusters()), "b3-recall", names, most=1)
    >>> found.drop(columns="influence")
      unit  record  piece  cluster_size  name
    0    x       1      1             2   Ann
    1    x       2      1             2   Ann
    2    x       3      2             1  Anne
    """
    need_sample(sample)
    most, units = whole(most, "most units"), sample.units
    shown = _of_records(units, attributes)
    moved = influence(sample, metric)["influence"].head(most)
    order = np.lexsort((-units.n, units.unit))  # pieces of each unit, the largest first
    place = np.empty(len(order), dtype=np.int64)
    first = np.searchsorted(units.unit[order], np.arange(len(units)))
    place[order] = np.arange(len(order)) - first[units.unit[order]] + 1
    assert units.piece_of is not None  # _of_records needs it
    piece = units.piece_of.to_numpy()
    columns = {
        "unit": units.ids[units.unit[piece]],
        "influence": moved.reindex(units.ids).to_numpy()[units.unit[piece]],
        "record": shown.index,
        "piece": place[piece],
        "cluster_size": units.m[piece].astype(np.int64),
    }
    if clash := [c for c in shown.columns if c in columns]:
        raise DataError(f"attributes have columns {head(clash)}, as the list itself: rename them")
    table = pd.concat([pd.DataFrame(columns), shown.reset_index(drop=True)], axis=1)
    rank = pd.Series(np.arange(len(moved)), index=moved.index).reindex(table["unit"]).to_numpy()
    table = table.assign(_rank=rank)[~np.isnan(rank)]
    return table.sort_values(["_rank", "piece"], kind="stable").drop(columns="_rank").reset_index(drop=True)
