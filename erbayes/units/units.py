"""Units and their pieces, on which columns are counted.

A *piece* is the overlap of a true entity c and a predicted cluster k. It has n = \\|c ∩ k\\| > 0 records, of
an entity of N_c = \\|c\\| records and a predicted cluster of m = \\|k\\| records. A unit (an entity, a block,
or a predicted cluster) is a set of pieces, and a column a sum over them, so that metrics serve all designs.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from .._internal import remedies
from .._internal.arrays import FloatArray, IntArray
from .._internal.errors import DataError, Grade, NotIdentified, Sentence, member, need
from .._internal.names import Nearest
from ..metrics.columns import COLUMNS, RECORDS, ClusterSum, Column, Domain, InDomain, Links, Pieces
from .clustering import Clustering, FrameFacts
from .grouping import GroupedClusters, Grouping, Of, Variable, piece_values
from .ids import look_up

FEW = 20
"""Clusters from which the share of one in the links says something."""
MOST = 0.5
"""Share of the links above which one cluster has most of them. It has so in none of 900 populations of small
clusters, and in .06 to .14 of those with a tail of index 2."""


@dataclass(frozen=True, slots=True, eq=False)
class KnownTotals:
    """Histogram of predicted cluster sizes, (h,), which fixes totals without labels, Σ_k m φ(m).

    `singletons` is false if the number of predicted singletons is not known; `cased`: clusters whose ids
    differ from those of others in case only.
    """

    size: FloatArray
    count: FloatArray
    singletons: bool = True
    cased: int = 0

    def __str__(self) -> str:
        return f"{self.size @ self.count:,.0f} records in {self.count.sum():,.0f} clusters"

    def equals(self, other: KnownTotals | None) -> bool:
        """Return whether another prediction has as many clusters of each size."""
        if other is None:
            return False
        return np.array_equal(self.size, other.size) and np.array_equal(self.count, other.count)

    def look(self) -> list[Sentence]:
        """Return notes about clusters that are rarely meant: one with most links, and ids in two cases."""
        links, notes = self.size * (self.size - 1) * self.count, list[Sentence]()
        top = int(links.argmax())
        if self.count.sum() >= FEW and self.count[top] == 1 and links[top] > MOST * links.sum():
            said = f"One predicted cluster, of {self.size[top]:,.0f} records, has"
            said += f" {links[top] / links.sum():.0%} of the predicted links"
            notes.append(Sentence(f"{said}: is it one of records without a match?", Grade.NOTE))
        if self.cased:
            said = f"{self.cased:,} predicted clusters have ids that differ from others in case only"
            notes.append(Sentence(f"{said}: are these the same clusters?", Grade.NOTE))
        return notes

    def total(self, column: ClusterSum) -> float:
        """Return the known total of a column, Σ_k m φ(m); NotIdentified if it counts unknown singletons."""
        if not self.singletons and column.phi(np.ones(1))[0] != 0:
            raise _report_unknown(column, "were kept as singletons")
        return float(self.count @ (self.size * column.phi(self.size)))

    def share_above(self, column: ClusterSum, size: FloatArray | float) -> FloatArray:
        """Return the share of a total in clusters of more than `size` records, (...); 0 if the total is 0."""
        part = self.count * self.size * column.phi(self.size)
        above = (self.size > np.asarray(size)[..., None]) @ part
        return np.asarray(above / (part.sum() or 1.0))


def _report_unknown(column: Column, treated: str) -> NotIdentified:
    """Return the error for a total that is not known, since the population has records outside."""
    said = f"the total of '{column.name}' is not known: labelled records that are missing in the prediction"
    return NotIdentified(f"{said} {treated}", remedies.LEAVE_OUT)


@dataclass(frozen=True, eq=False)
class Units(Nearest, Pieces):
    """Sampled units as pieces, with the ids of units and records. `measure` makes them.

    Attributes
    ----------
    ids : Index, (u,)
        Id of each unit.
    cluster : int array, (p,)
        Code of the predicted cluster of each piece, in order of first appearance in the labels.
    known : KnownTotals or None
        Sizes of all predicted clusters, which fix totals; None if they are not known.
    unmatched : int
        Labelled records that are missing in the prediction.
    frame : FrameFacts or None
        What the frame leaves of the prediction; None without a frame.
    omitted : Index
        Ids of units that left the sample, because the prediction has none of their records (`Missing.OMIT`).
    piece_of : Series or None
        Piece of each labelled record, whose id is in the index. None if records have no ids.
    groupings : tuple of Grouping
        How variables of records split the pieces (see `grouped`).
    entities : Units or None
        All labels of sampled predicted clusters, as units. None if some of their records may be missing.

    See Also
    --------
    erbayes.metrics.columns.Pieces : the other attributes, on which columns are counted.
    """

    ids: pd.Index
    cluster: IntArray
    known: KnownTotals | None
    unmatched: int = 0
    frame: FrameFacts | None = None
    omitted: pd.Index = field(default_factory=lambda: pd.Index([]))
    piece_of: pd.Series | None = None
    groupings: tuple[Grouping, ...] = ()
    entities: Units | None = None

    @cached_property
    def largest_touched(self) -> FloatArray:
        """Records of the largest predicted cluster that each unit shares a record with, (u,)."""
        largest = np.zeros(len(self))
        np.maximum.at(largest, self.unit, self.m)
        return largest

    @cached_property
    def first_pieces(self) -> IntArray:
        """First piece of each unit, (u + 1,)."""
        return np.searchsorted(self.unit, np.arange(len(self) + 1))

    def take(self, chosen: IntArray) -> Units:
        """Take the units at distinct positions, (taken,), with the columns that are counted already."""
        first, pieces = self.first_pieces[chosen], np.diff(self.first_pieces)[chosen]
        stop = np.cumsum(pieces)
        piece = np.arange(stop[-1] if len(stop) else 0) + np.repeat(first - stop + pieces, pieces)
        group = np.zeros(len(piece), dtype=np.int64)
        np.cumsum(np.diff(self.group[piece]) != 0, out=group[1:])
        piece_of = self.piece_of
        if piece_of is not None:
            new = np.full(len(self.n), -1)
            new[piece] = np.arange(len(piece))
            piece_of = pd.Series(new[piece_of], piece_of.index)
            piece_of = piece_of[piece_of >= 0]
        taken = replace(
            self,
            ids=self.ids[chosen],
            unit=np.repeat(np.arange(len(chosen)), pieces),
            group=group,
            n=self.n[piece],
            N=self.N[piece],
            m=self.m[piece],
            cluster=self.cluster[piece],
            counted=None if self.counted is None else self.counted[piece],
            piece_of=piece_of,
            groupings=tuple(g.take(piece) for g in self.groupings),
        )
        taken._values.update({c: y[chosen] for c, y in self._values.items()})
        return taken

    def grouped(
        self, groups: Any, *, of: Of | str = Of.RECORDS, prediction: Any = None, name: str | None = None
    ) -> Units:
        """Split the pieces by a variable of records or of entities, for columns of domains.

        Parameters
        ----------
        groups : Series, mapping, or table of two columns
            The value of each labelled record, or of all records: text, integers, bools or categories.
        of : Of
            `Of.ENTITIES` if its ids are those of entities. They must be the units.
        prediction : memberships, optional
            The prediction of these units, each record of which has a value. Totals of groups are then known,
            and links within groups are identified.
        name : str, optional
            The name of the variable. By default that of the Series or of the second column, or "group".

        Raises
        ------
        DataError
            If an id has no value or several, or if `prediction` is not that of these units.

        Examples
        --------
        >>> import erbayes as eb
        >>> units = eb.measure({1: "a", 2: "a", 3: "b"}, {1: "x", 2: "x", 3: "y"})
        >>> units.grouped({1: "FR", 2: "US", 3: "US"}, name="country").groupings[0].table(units)
                records  pieces  units
        country
        FR          1.0       1      1
        US          2.0       2      2
        """
        of = member(of, Of, "of")
        listed = self.ids if of is Of.ENTITIES else None if self.piece_of is None else self.piece_of.index
        variable = Variable.of(groups, name, of, listed)
        counted = piece_values(variable, of, self, self.piece_of)
        if prediction is not None and of is Of.ENTITIES:
            said = "totals of groups of entities are not known, since the entities of most records are not"
            raise DataError(f"{said}: leave out the prediction")
        predicted = None if prediction is None else _count_predicted(self, variable, prediction)
        grouping = Grouping(variable.name, variable.values, counted, predicted)
        others = tuple(g for g in self.groupings if g.variable != variable.name)
        return replace(self, groupings=(*others, grouping))

    def need_prediction(self, prediction: Any, why: str) -> Clustering:
        """Return a prediction as a clustering; DataError, which says `why`, unless it has all records."""
        clustering = Clustering.of(prediction, "prediction")
        if self.population is None or self.population != len(clustering.records):
            known = "not known" if self.population is None else f"{self.population:,.0f} records"
            said = f"this prediction has {len(clustering.records):,} records, but the population of the"
            raise DataError(f"{said} sample is {known}: {why}")
        return clustering

    @cached_property
    def _parts(self) -> dict[tuple[Domain, Links], Pieces]:
        return {}

    def part(self, domain: Domain, links: Links = Links.SHARED) -> Pieces:
        """Return the same units with the records of a domain alone, cut at its border if links are INSIDE."""
        if (domain, links) in self._parts:
            return self._parts[domain, links]
        grouping = self.grouping(domain.variable)
        n, by_entity = grouping.records_of(domain), self.by_entity
        if links is Links.SHARED:
            pieces = self.unit, self.group, self.n, self.N, self.m
            part = Pieces(self.ids, *pieces, by_entity=by_entity, counted=n)
        else:
            m, inside = grouping.cluster_sizes(domain, self), n > 0
            unit, group = self.unit[inside], self.group[inside]
            N = np.bincount(self.group, n)[group] if by_entity else np.full(len(unit), np.nan)
            part = Pieces(self.ids, unit, group, n[inside], N, m[inside], by_entity=by_entity)
        self._parts[domain, links] = part
        return part

    def grouping(self, variable: str) -> Grouping:
        """Return the grouping by a variable. If there is none, the DataError says how to make it."""
        for grouping in self.groupings:
            if grouping.variable == variable:
                return grouping
        way = f"units.grouped(groups, name={variable!r})"
        raise DataError(f"these units are not grouped by {variable!r}: {way}")

    def total(self, column: ClusterSum | InDomain) -> float:
        """Return a total that the prediction fixes; NotIdentified if it, or a variable, has gaps."""
        if self.known is None:
            raise _report_unknown(column, "were kept")
        if not isinstance(column, InDomain):
            return self.known.total(column)
        if not isinstance(column.column, ClusterSum):
            raise NotIdentified(f"the prediction does not fix the total of '{column.name}'")
        m, records = self.grouping(column.domain.variable).known(column.domain, column.links)
        return float(records @ column.column.phi(m))

    @property
    def population(self) -> float | None:
        """Records in the population, N; None if the prediction does not fix it."""
        if self.known is None or not self.known.singletons:
            return None
        return self.known.total(RECORDS)

    def isolated(self) -> Units:
        """These units with every other record removed from the prediction, for naive metrics.

        Examples
        --------
        >>> import erbayes as eb
        >>> units = eb.measure({1: "a", 2: "a", 3: "a"}, {1: "x", 2: "x"})
        >>> float(units.m[0]), float(units.isolated().m[0])
        (3.0, 2.0)
        """
        m = np.bincount(self.cluster, weights=self.n)
        known = histogram(m[m > 0].astype(np.int64))
        groupings = tuple(g.isolated(self.cluster) for g in self.groupings)
        before = replace(self, unmatched=0, frame=None, entities=None)
        return replace(before, m=m[self.cluster], known=known, groupings=groupings)

    @cached_property
    def pseudo_units(self) -> Pieces:
        """Return four pseudo-units, which represent errors that no draw has shown.

        Two are all right: an exactly predicted entity of s records, and a singleton. Two are all wrong: an
        entity whose s records are in s predicted clusters of s, and a singleton in one of s, where s is the
        mean size of predicted clusters over records, between 2 and 1,000.
        """
        m = self.m if self.known is None else self.known.size
        records = self.n if self.known is None else m * self.known.count
        size = int(np.clip(round(float(np.average(m, weights=records))), 2, 1000))
        pieces = [1, size, 1, 1]
        unit, n = np.repeat(np.arange(4), pieces), np.repeat([size, 1.0, 1.0, 1.0], pieces)
        N, m = np.repeat([size, size, 1.0, 1.0], pieces), np.repeat([size, size, 1.0, size], pieces)
        N, m = (N, m) if self.by_entity else (m, N)
        return Pieces(None, unit, unit, n, N, m, by_entity=self.by_entity)

    def table(self) -> pd.DataFrame:
        """Table of the columns that these units identify, one row per unit.

        >>> import erbayes as eb
        >>> units = eb.measure({1: "a", 2: "a", 3: "b"}, {1: "x", 2: "x", 3: "x"})
        >>> units.table()[["records", "true_links", "common_links"]]
           records  true_links  common_links
        x      3.0         3.0           1.0
        """
        counts = {c.name: self.column(c) for c in COLUMNS if c.identified(self)}
        return pd.DataFrame(counts, index=self.ids)

    def __repr__(self) -> str:
        return f"Units({len(self)} units, {int(self.n.sum())} records, {len(self.n)} pieces)"


def _count_predicted(units: Units, variable: Variable, prediction: Any) -> GroupedClusters:
    why = f"totals by {variable.name} need the same records; leave out the prediction, or restrict it to"
    clustering = units.need_prediction(prediction, f"{why} those")
    codes = variable.codes_of(clustering.records, f"{len(clustering.records):,} records of the prediction")
    place = np.zeros(len(units.n), dtype=np.int64)
    assert units.piece_of is not None  # piece_values needs it
    position = look_up(clustering.records, units.piece_of.index)
    place[units.piece_of] = clustering.codes[position]
    if (position < 0).any() or (clustering.sizes[place] != units.m).any():
        raise DataError("this prediction is not the one that the sample was counted on")
    return GroupedClusters.of(clustering.codes, codes, len(variable.values), place)


def need_units(value: Any) -> None:
    """Refuse anything but `Units`."""
    need(value, Units, "Units are needed, as measure(prediction, labels) makes them or sample.units")


def histogram(sizes: IntArray, cased: int = 0) -> KnownTotals:
    """Return how many clusters have each size, from the size of each cluster, (clusters,)."""
    counts = np.bincount(sizes)
    size = np.flatnonzero(counts)
    return KnownTotals(size.astype(float), counts[size].astype(float), cased=cased)
