"""Rates of names: entities with several names, and names with several entities."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from ..._internal.arrays import BoolArray, FloatArray, IntArray
from ..._internal.errors import DataError, NotIdentified
from ...design.sample import Sample, need_sample
from ...metrics.columns import ENTITIES, Column, Domain, Links, Pieces
from ...metrics.definitions import UNIT, Metric, Value
from ...units.grouping import Grouping, Of, Variable


@dataclass(frozen=True, slots=True)
class EntitiesOf:
    """Entities of a domain, as a column. Unlike `InDomain`, it has no value for imagined units."""

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


def _compute_share(part: Value, all_of: Value) -> Value:
    return part / all_of


def _make_rate(
    sample: Sample,
    name: str,
    variable: str,
    values: tuple[str, str],
    members: BoolArray,
    words: tuple[str, str],
) -> tuple[Sample, Metric]:
    """Return a sample that knows which entities are `members`, and the metric of their share of all."""
    inside = members[sample.units.group]
    grouping = Grouping(variable, pd.Index(list(values)), np.stack([~inside, inside]) * sample.units.n)
    columns: tuple[Column, ...] = (EntitiesOf(Domain(variable, values[1:])), ENTITIES)
    source, meaning = words
    metric = Metric(name, columns, _compute_share, ((ENTITIES, 1.0),), UNIT, source, meaning=meaning)
    return sample.with_units(sample.units.with_grouping(grouping)), metric


def name_variation(sample: Sample, names: Any) -> tuple[Sample, Metric]:
    """Return the metric "name-variation-rate", the share of entities that have several names.

    Names that differ in a single character are several. To ignore case or order, change the names first.

    Parameters
    ----------
    sample, names
        As in `homonymy`, but names are needed for labelled records only. Any variable will do, such as an
        address.

    Examples
    --------
    >>> import erbayes as eb
    >>> labels = {i: i // 2 for i in range(80)}
    >>> sample = eb.Sample(eb.measure(labels, labels), eb.UniformClusters())
    >>> named, rate = name_variation(sample, {i: "Ann" if i % 8 else "Anne" for i in range(80)})
    >>> eb.engine.taylor(named, rate).apply(rate).estimate
    array([0.25])
    """
    variable, codes, entity = _code_names(sample, names)
    pair = pd.DataFrame({"entity": entity, "name": codes}).drop_duplicates()
    several = np.bincount(pair["entity"], minlength=int(entity.max()) + 1) > 1
    return _make_rate(
        sample,
        "name-variation-rate",
        f"number of values of {variable.name}",
        ("one", "several"),
        several,
        (
            f"|entities with several values of {variable.name}|/|C|",
            "Of the entities, the share whose records have several names.",
        ),
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
    Sample, Metric
        Engines need this sample, which knows which entities share a name, in place of the other.

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
    >>> eb.engine.taylor(named, rate).apply(rate).estimate
    array([0.5])
    """
    variable, codes, entity = _code_names(sample, names)
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
    return _make_rate(
        sample,
        "homonymy-rate",
        f"{variable.name} of other entities",
        ("own", "shared"),
        shares,
        (
            f"|entities that share a value of {variable.name}|/|C|",
            "Of the entities, the share that have a name which another entity has too.",
        ),
    )


def _code_names(sample: Sample, names: Any) -> tuple[Variable, IntArray, IntArray]:
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
