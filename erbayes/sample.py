"""Sample: units together with the design that drew them, the one input of every engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from html import escape
from typing import Any

import numpy as np

from .arrays import FloatArray
from .columns import Column, Known
from .design import Design, Expansion
from .errors import NotIdentified, need, need_object
from .units import Units, need_units


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Sample:
    """Units and their design.

    Attributes
    ----------
    units : Units
    design : Design
    expansion : Expansion
        Draws, weights and variance: what the design makes of the units.
    """

    units: Units
    design: Design
    expansion: Expansion

    def __init__(self, units: Units, design: Design, expansion: Expansion | None = None) -> None:
        need_units(units)
        need_object(design, "expand", "a design is an object such as UniformRecords()")
        object.__setattr__(self, "units", units)
        object.__setattr__(self, "design", design)
        object.__setattr__(self, "expansion", expansion or design.expand(units))

    def __repr__(self) -> str:
        draws = " x ".join(map(str, self.expansion.unit.shape))
        return f"Sample({draws} draws of {self.units!r} by {type(self.design).__name__})"

    def facts(self) -> dict[str, str]:
        """What there is to know of the data and the design before any estimate, in words.

        Examples
        --------
        >>> from erbayes import UniformClusters, measure
        >>> units = measure({1: "a", 2: "a", 3: "b"}, {1: "x", 2: "x"})
        >>> sample = Sample(units, UniformClusters(population=2))
        >>> sample.facts()["the prediction"], sample.facts()["design"]
        ('3 records in 2 clusters', 'UniformClusters(population=2, correction=sampling_fraction)')
        """
        units = self.units
        kind = "entities or blocks" if units.by_entity else "predicted clusters"
        found = {
            "design": _told(self.design),
            "draws": " x ".join(f"{n:,}" for n in self.expansion.unit.shape),
            "labelled units": f"{len(units):,} {kind}",
            "labelled records": f"{int(units.n.sum()):,}",
            "the largest unit": f"{int(units.size.max()):,} records",
            "overlaps with predicted clusters": f"{len(units.n):,}",
        }
        if units.unmatched:
            found["labelled records that the prediction lacks"] = f"{units.unmatched:,}"
        if len(units.omitted):
            found["labelled units that the prediction lacks, left out with their draws"] = (
                f"{len(units.omitted):,}"
            )
        if units.frame is not None:
            found |= units.frame.in_words()
        if units.known is not None:
            records, clusters = (units.known.size * units.known.count).sum(), units.known.count.sum()
            found["the prediction"] = f"{records:,.0f} records in {clusters:,.0f} clusters"
        return found

    def _repr_html_(self) -> str:
        rows = (f"<tr><td>{escape(k)}</td><td>{escape(v)}</td></tr>" for k, v in self.facts().items())
        return f"Sample<table>{''.join(rows)}</table>"

    def contributions(self, columns: Sequence[Column]) -> FloatArray:
        """weight × y of each draw, (..., n draws, k columns): their sum estimates the totals."""
        counted = np.stack([self.units.column(c)[self.expansion.unit] for c in columns], axis=-1)
        return np.asarray(counted * self.expansion.weight[..., None])

    def known(self, total: Known) -> float:
        """A total that the prediction fixes.

        Raises
        ------
        NotIdentified
            Where it is not known.
        """
        if self.units.known is None:
            raise NotIdentified(
                f"the total of '{total.column.name}' is not known: labelled records that the "
                "prediction lacks were kept; Missing.OMIT restricts the population instead"
            )
        return self.units.known.total(total.column)


def need_sample(value: Any) -> None:
    """Refuse anything but a `Sample`.

    Raises
    ------
    DataError
        Units without their design, a table, a class, or anything else.
    """
    need(value, Sample, "a Sample is needed, such as Sample(measure(prediction, labels), design)")


def _told(design: Any) -> str:
    """A design and its parameters, long ones by their number."""

    def shown(value: Any) -> str:
        if callable(value):
            return str(getattr(value, "__name__", type(value).__name__))
        return f"{len(value):,} values" if hasattr(value, "__len__") else str(value)

    given = {f.name: getattr(design, f.name) for f in fields(design)} if is_dataclass(design) else {}
    parameters = ", ".join(f"{name}={shown(value)}" for name, value in given.items() if value is not None)
    return f"{type(design).__name__}({parameters})"
