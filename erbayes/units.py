"""Units and their pieces, on which columns are counted, made in one pass over the records.

A *piece* is the overlap of a true entity c and a predicted cluster k. It has n = \\|c ∩ k\\| > 0 records, of
an entity of N_c = \\|c\\| records and a predicted cluster of m = \\|k\\| records. A unit (an entity, a block,
or a predicted cluster) is a set of pieces, and every column is a sum over its pieces. Hence the same metrics
serve every design, and sampled predicted clusters need no second set of formulas.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .arrays import BoolArray, FloatArray, IntArray
from .clustering import CHUNK, Clustering, ids, kind
from .columns import COLUMNS, RECORDS, ClusterSum, Column, Domain, InDomain, Links
from .errors import DataError, NotIdentified, head, member, need
from .frame import Cut, Dated, FrameFacts, are_listed, dated_inside, dates_of, frame_ids
from .grouping import Grouping, Of, Predicted, Variable, piece_values
from .mistaken import first_entities, missing_records, position_in_labels, refuse_edges, strangers


class Missing(Enum):
    """Policies for labelled records that the prediction lacks.

    Examples
    --------
    >>> prediction, labels = {1: "a", 2: "a"}, {1: "x", 2: "x", 3: "x"}
    >>> units = measure(prediction, labels, missing=Missing.OMIT)
    >>> units.size, units.unmatched
    (array([2.]), 1)
    """

    ERROR = "error"
    """Refuse (the default)."""
    SINGLETON = "singleton"
    """Each is a predicted cluster of its own. \\|P\\| stays known; N and \\|Ĉ\\| do not."""
    TOGETHER = "together"
    """Those of one entity are one predicted cluster. No total stays known."""
    OMIT = "omit"
    """Leave them out. The population is then the records that the prediction has, and all totals are known.
    Entities shrink. An entity of which the prediction has no record leaves the sample."""


@dataclass(frozen=True, slots=True, eq=False)
class KnownTotals:
    """Histogram of predicted cluster sizes, which fixes totals without labels.

    A column that depends on a record's predicted cluster by its size m alone has a known total. For any
    function φ of the size it is Σ_c Σ_k n φ(m) = Σ_k m φ(m).

    Attributes
    ----------
    size, count : float arrays, (h,)
        Distinct sizes of predicted clusters, in records, and how many clusters have each. If the records of a
        domain are counted alone, a cluster counts by the share of its records that the domain has.
    singletons : bool
        False if the number of predicted singletons is not known.
    """

    size: FloatArray
    count: FloatArray
    singletons: bool = True

    def total(self, column: ClusterSum) -> float:
        """Return the known total of a column, Σ_k m φ(m).

        Raises
        ------
        NotIdentified
            Predicted singletons count, and their number is not known.
        """
        if not self.singletons and column.phi(np.ones(1))[0] != 0:
            raise NotIdentified(
                f"the total of '{column.name}' is not known: labelled records that the prediction "
                "lacks were kept as singletons; Missing.OMIT restricts the population instead"
            )
        return float(self.count @ (self.size * column.phi(self.size)))


@dataclass(frozen=True, eq=False)
class Units:
    """Sampled units as pieces, sorted by unit and by group. `measure` makes them.

    Attributes
    ----------
    ids : Index, (u,)
        Id of each unit.
    unit, group : int arrays, (p,)
        Unit of each piece, and the whole cluster that the piece belongs to: an entity, or a predicted cluster
        if those were sampled.
    n, N, m : float arrays, (p,)
        Records in the piece, in its entity (NaN if not known), in its predicted cluster.
    cluster : int array, (p,)
        Code of the predicted cluster of each piece, in order of first appearance in the labels.
    known : KnownTotals or None
        Sizes of all predicted clusters, which fix totals; None if they are not known.
    by_entity : bool
        True if units are made of whole entities, False if of whole predicted clusters.
    unmatched : int
        Labelled records that the prediction lacks.
    frame : FrameFacts or None
        What the frame leaves of the prediction; None without a frame.
    counted : float array, (p,), or None
        Records of each piece that are counted; None if all n are. Others only make pieces, entities and
        clusters larger.
    omitted : Index
        Ids of units that left the sample, because the prediction has none of their records (`Missing.OMIT`).
    piece_of : Series or None
        Piece of each labelled record, whose id is in the index. None if records have no ids.
    groupings : tuple of Grouping
        How variables of records split the pieces (see `grouped`).
    imagined : bool
        True for units that stand for no records (see `stock`): they are in every domain as a whole.
    """

    ids: pd.Index
    unit: IntArray
    group: IntArray
    n: FloatArray
    N: FloatArray
    m: FloatArray
    cluster: IntArray
    known: KnownTotals | None
    by_entity: bool = True
    unmatched: int = 0
    frame: FrameFacts | None = None
    counted: FloatArray | None = None
    omitted: pd.Index = field(default_factory=lambda: pd.Index([]))
    piece_of: pd.Series | None = None
    groupings: tuple[Grouping, ...] = ()
    imagined: bool = False

    def __len__(self) -> int:
        return len(self.ids)

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields, without the columns that are counted already."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @cached_property
    def size(self) -> FloatArray:
        """Records of each unit, (u,)."""
        records = self.n if self.counted is None else self.counted
        return np.bincount(self.unit, weights=records, minlength=len(self))

    @cached_property
    def records_before(self) -> IntArray:
        """Records in the units before each one, (u + 1,)."""
        return np.concatenate([[0], np.cumsum(self.size.astype(np.int64))])

    @cached_property
    def _first(self) -> IntArray:
        """First piece of each unit, (u + 1,)."""
        return np.searchsorted(self.unit, np.arange(len(self) + 1))

    @cached_property
    def _values(self) -> dict[Column, FloatArray]:
        return {}

    def column(self, column: Column) -> FloatArray:
        """Values of a column on each unit, (u,). They are counted once.

        Raises
        ------
        NotIdentified
            These units do not identify the column.
        """
        if column not in self._values:
            self._values[column] = column.count(self)
        return self._values[column]

    def take(self, chosen: IntArray) -> Units:
        """Take the units at distinct positions, with the columns that are counted already."""
        first, pieces = self._first[chosen], np.diff(self._first)[chosen]
        stop = np.cumsum(pieces)
        piece = np.arange(stop[-1] if len(stop) else 0) + np.repeat(first - stop + pieces, pieces)
        group = np.zeros(len(piece), dtype=np.int64)
        np.cumsum(np.diff(self.group[piece]) != 0, out=group[1:])
        taken = Units(
            ids=self.ids[chosen],
            unit=np.repeat(np.arange(len(chosen)), pieces),
            group=group,
            n=self.n[piece],
            N=self.N[piece],
            m=self.m[piece],
            cluster=self.cluster[piece],
            known=self.known,
            by_entity=self.by_entity,
            unmatched=self.unmatched,
            counted=None if self.counted is None else self.counted[piece],
            omitted=self.omitted,
            piece_of=None if self.piece_of is None else _moved(self.piece_of, piece, len(self.n)),
            groupings=tuple(g.take(piece) for g in self.groupings),
        )
        taken._values.update({c: y[chosen] for c, y in self._values.items()})
        return taken

    def grouped(
        self, groups: Any, *, of: Of = Of.RECORDS, prediction: Any = None, name: str | None = None
    ) -> Units:
        """Split the pieces by a variable of records or of entities, for columns of domains.

        Parameters
        ----------
        groups : Series, mapping, or table of two columns
            The value of each labelled record, or of all records. Values are text, whole numbers, bools or
            categories.
        of : Of
            `Of.ENTITIES` if the first column has the ids of entities. They must be the units.
        prediction : memberships, optional
            The prediction of these units. Totals of groups are then known, and links within groups are
            identified. The variable must have a value for each record of the prediction.
        name : str, optional
            The name of the variable. By default that of the Series or of the second column, or "group".

        Returns
        -------
        Units
            These units with one grouping more. A grouping of the same name is replaced.

        Raises
        ------
        DataError
            If labelled records or entities have no value, if an id has several values, or if `prediction` is
            not that of these units.

        Examples
        --------
        >>> units = measure({1: "a", 2: "a", 3: "b"}, {1: "x", 2: "x", 3: "y"})
        >>> units.grouped({1: "FR", 2: "US", 3: "US"}, name="country").groupings[0].table(units)
                records  pieces  units
        country
        FR          1.0       1      1
        US          2.0       2      2
        """
        member(of, Of, "of")
        variable = Variable.of(groups, name, of)
        counted = piece_values(variable, of, self)
        predicted = None
        if prediction is not None:
            if of is Of.ENTITIES:
                raise DataError(
                    "totals of groups of entities are not known, since the entities of most records are not: "
                    "leave out the prediction"
                )
            predicted = self._predicted(variable, prediction)
        return self.with_grouping(Grouping(variable.name, variable.values, counted, predicted))

    def with_grouping(self, grouping: Grouping) -> Units:
        """Return these units with one grouping more. A grouping of the same name is replaced."""
        others = tuple(g for g in self.groupings if g.variable != grouping.variable)
        return replace(self, groupings=(*others, grouping))

    def _predicted(self, variable: Variable, prediction: Any) -> Predicted:
        """Return the records of each group in each predicted cluster."""
        clustering = self.whole_prediction(
            prediction,
            f"totals by {variable.name} need the same records; leave out the prediction, or restrict it to "
            "those",
        )
        codes = variable.codes_of(
            clustering.records, f"{len(clustering.records):,} records of the prediction"
        )
        place = np.zeros(len(self.n), dtype=np.int64)
        assert self.piece_of is not None  # piece_values needs it
        position = _look_up(clustering.records, self.piece_of.index)
        place[self.piece_of] = clustering.codes[position]
        if (position < 0).any() or (clustering.sizes[place] != self.m).any():
            raise DataError("this prediction is not the one that the sample was counted on")
        return Predicted.of(clustering.codes, codes, len(variable.values), place)

    def whole_prediction(self, prediction: Any, why: str) -> Clustering:
        """Return a prediction as a clustering, refusing one of another number of records.

        Parameters
        ----------
        prediction : memberships
        why : str
            What needs the records of the population, for the message.

        Raises
        ------
        DataError
            If the prediction has more or fewer records than the population, or if this number is not known.
        """
        clustering = Clustering.of(prediction, "prediction")
        if self.population is None or self.population != len(clustering.records):
            known = "not known" if self.population is None else f"{self.population:,.0f} records"
            raise DataError(
                f"this prediction has {len(clustering.records):,} records, but the population of the sample "
                f"is {known}: {why}"
            )
        return clustering

    @cached_property
    def _parts(self) -> dict[tuple[Domain, Links], Units]:
        return {}

    def part(self, domain: Domain, links: Links = Links.SHARED) -> Units:
        """Return the same units, of which the records of a domain count alone.

        Raises
        ------
        DataError
            If these units have no such variable or value (see `grouped`).
        NotIdentified
            If links inside a domain need the variable for records that have none.
        """
        if self.imagined:
            return self
        if (domain, links) not in self._parts:
            grouping = self.grouping(domain.variable)
            counted = grouping.records_of(domain)
            if links is Links.SHARED:
                part = replace(self, counted=counted, groupings=())
            else:
                part = self._inside(counted, grouping.cluster_sizes(domain, self))
            self._parts[domain, links] = part
        return self._parts[domain, links]

    def _inside(self, n: FloatArray, m: FloatArray) -> Units:
        """Return units whose pieces have n records, of predicted clusters of m records."""
        some = n > 0
        N = np.bincount(self.group, n)[self.group] if self.by_entity else np.full(len(n), np.nan)
        return replace(
            self,
            unit=self.unit[some],
            group=self.group[some],
            n=n[some],
            N=N[some],
            m=m[some],
            cluster=self.cluster[some],
            piece_of=None,
            groupings=(),
        )

    def grouping(self, variable: str) -> Grouping:
        """Return the grouping by a variable.

        Raises
        ------
        DataError
            If there is none.
        """
        for grouping in self.groupings:
            if grouping.variable == variable:
                return grouping
        raise DataError(
            f"these units are not grouped by {variable!r}: units.grouped(groups, name={variable!r})"
        )

    def total(self, column: ClusterSum | InDomain) -> float:
        """Return a total that the prediction fixes.

        Raises
        ------
        NotIdentified
            If the prediction, or the variable of a domain, is not known for all records.
        """
        inner = column.column if isinstance(column, InDomain) else column
        if self.known is None:
            raise NotIdentified(
                f"the total of '{column.name}' is not known: labelled records that the "
                "prediction lacks were kept; Missing.OMIT restricts the population instead"
            )
        if not isinstance(column, InDomain):
            return self.known.total(column)
        if not isinstance(inner, ClusterSum):
            raise NotIdentified(f"the prediction does not fix the total of '{column.name}'")
        m, records = self.grouping(column.domain.variable).known(column.domain, column.links)
        return float(records @ inner.phi(m))

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
        >>> units = measure({1: "a", 2: "a", 3: "a"}, {1: "x", 2: "x"})
        >>> float(units.m[0]), float(units.isolated().m[0])
        (3.0, 2.0)
        """
        m = np.bincount(self.cluster, weights=self.n)
        known = histogram(m[m > 0].astype(np.int64))
        groupings = tuple(g.isolated(self.cluster) for g in self.groupings)
        return replace(self, m=m[self.cluster], known=known, unmatched=0, frame=None, groupings=groupings)

    def stock(self, size: int | None = None) -> Units:
        """Make four imagined units, which stand for errors that no draw has shown.

        Two are all right: an entity of s records and a singleton, both exactly predicted. Two are all wrong:
        an entity whose s records are in s predicted clusters of s records, and a singleton in a predicted
        cluster of s records. If predicted clusters are the units, true and predicted are exchanged.

        Parameters
        ----------
        size : int, optional
            s. By default the mean size of predicted clusters over records, between 2 and 1,000.
        """
        if size is None:
            return self._usual_stock
        pieces = [1, size, 1, 1]
        own = np.repeat([size, size, 1.0, 1.0], pieces)
        other = np.repeat([size, size, 1.0, size], pieces)
        unit = np.repeat(np.arange(4), pieces)
        return Units(
            ids=pd.Index(["right", "wrong", "singleton", "lost singleton"]),
            unit=unit,
            group=unit,
            n=np.repeat([size, 1.0, 1.0, 1.0], pieces),
            N=own if self.by_entity else other,
            m=other if self.by_entity else own,
            cluster=np.arange(size + 3),
            known=None,
            by_entity=self.by_entity,
            imagined=True,
        )

    @cached_property
    def _usual_stock(self) -> Units:
        """Return the stock of the default size, made once, as every estimate counts columns on it."""
        m = self.m if self.known is None else self.known.size
        records = self.n if self.known is None else m * self.known.count
        return self.stock(int(np.clip(round(float(np.average(m, weights=records))), 2, 1000)))

    def table(self) -> pd.DataFrame:
        """Table of the columns that these units identify, one row per unit.

        Examples
        --------
        >>> units = measure({1: "a", 2: "a", 3: "b"}, {1: "x", 2: "x", 3: "x"})
        >>> units.table()[["records", "true_links", "common_links"]]
           records  true_links  common_links
        x      3.0         3.0           1.0
        """
        counts = {c.name: self.column(c) for c in COLUMNS if c.identified(self)}
        return pd.DataFrame(counts, index=self.ids)

    def __repr__(self) -> str:
        return f"Units({len(self)} units, {int(self.n.sum())} records, {len(self.n)} pieces)"


def _moved(piece_of: pd.Series, taken: IntArray, pieces: int) -> pd.Series:
    """Return the pieces of records after those at the positions `taken` are taken, of `pieces` pieces."""
    new = np.full(pieces, -1)
    new[taken] = np.arange(len(taken))
    moved = new[piece_of]
    return pd.Series(moved, index=piece_of.index)[moved >= 0]


def need_units(value: Any) -> None:
    """Refuse anything but `Units`.

    Raises
    ------
    DataError
        A sample in the place of its units, a table, a class, or anything else.
    """
    need(value, Units, "Units are needed, as measure(prediction, labels) makes them or sample.units")


def sampled_labels(labels: Any) -> Clustering:
    """Labels as a clustering with one record or more.

    Raises
    ------
    DataError
        As `Clustering.of`, or there is no record.
    """
    clustering = Clustering.of(labels, "labels")
    if not len(clustering.records):
        raise DataError("the labels hold no record: an empty sample estimates nothing")
    return clustering


def same_kind(prediction: str, other: str, what: str = "labels", of: str = "prediction") -> None:
    """Refuse record ids of different types."""
    if prediction != other:
        raise DataError(
            f"record ids of the {of} are of type {prediction}, those of the {what} of type "
            f"{other}: none could match; convert one of them"
        )


def _joined(first: pd.Index, second: pd.Index) -> pd.Index:
    """Return two Indexes of one type of ids as one Index.

    `append` alone would make text of objects, which half of a surrogate pair is not.
    """
    if not pd.api.types.is_object_dtype(first):
        return first.append(second.astype(first.dtype))
    joined: pd.Index = pd.Index(np.concatenate([first.to_numpy(), second.to_numpy()]), dtype=object)
    return joined


def _look_up(records: pd.Index, wanted: pd.Index, of: str = "prediction") -> IntArray:
    """Position of each wanted record in `records`, -1 if it is not there."""
    if len(records) and len(wanted):
        same_kind(kind(records), kind(wanted), of=of)
    integer = pd.api.types.is_integer_dtype
    records, wanted = (pd.Index(i.to_numpy()) if integer(i.dtype) else i for i in (records, wanted))
    try:
        near = _near(records, wanted)  # so that few records are hashed
    except UnicodeEncodeError:  # a wanted id has half of a surrogate pair, which only objects can hold
        return _look_up(records.astype(object), wanted, of)
    return np.append(near, -1)[records[near].get_indexer(wanted)]


def _near(records: pd.Index, wanted: pd.Index) -> IntArray:
    """Positions of all wanted records, and of few others.

    Integers are marked by the slot of a hash, which a few others share. The lookup that follows then hashes
    few records.
    """
    if not all(pd.api.types.is_integer_dtype(i.dtype) for i in (records, wanted)):
        return np.flatnonzero(records.isin(wanted))
    bits = min(max(16, len(wanted).bit_length() + 4), 24)

    def slot(numbers: NDArray[Any]) -> NDArray[np.uint64]:
        """Slot of each number by Fibonacci hashing: the first bits of a product that overflows."""
        product = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        product >>= np.uint64(64 - bits)
        return product

    marked = np.zeros(2**bits, dtype=np.bool_)
    marked[slot(wanted.to_numpy())] = True
    numbers = records.to_numpy()
    parts = [a + np.flatnonzero(marked[slot(numbers[a : a + CHUNK])]) for a in range(0, len(numbers), CHUNK)]
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts])


def histogram(sizes: IntArray) -> KnownTotals:
    counts = np.bincount(sizes)
    size = np.flatnonzero(counts)
    return KnownTotals(size.astype(float), counts[size].astype(float))


def _pieces(rows: IntArray, columns: IntArray) -> tuple[IntArray, IntArray, FloatArray, IntArray]:
    """Distinct pairs of row and column, sorted, the number of times that each occurs, and where each is."""
    width = int(columns.max()) + 1
    key, place, n = np.unique(rows * width + columns, return_inverse=True, return_counts=True)
    return key // width, key % width, n.astype(float), place


def refuse_outside(records: pd.Index, outside: BoolArray) -> None:
    """Refuse labelled records that are not in the frame."""
    if outside.any():
        raise DataError(
            f"{int(outside.sum())} of {len(records)} labelled records are outside the frame, such as "
            f"{head(records[outside])}: it must hold every record that existed when the labels were made, "
            "with ids written as in the labels"
        )


def framed(
    prediction: Any, labels: Clustering, frame: Any, what: str = "prediction"
) -> tuple[Clustering, FrameFacts | None]:
    """Restrict a prediction to the frame, and count what is left of it.

    Raises
    ------
    DataError
        Labelled records outside the frame, no record of the prediction inside it, or an unusable frame.
    """
    if frame is None:
        return Clustering.of(prediction, what), None
    if isinstance(frame, Dated):
        return _dated(prediction, labels, frame, what)
    whole, listed = Clustering.of(prediction, what), frame_ids(frame)
    for other, name in ((listed, "frame"), (labels.records, "labels")):
        if len(whole.records) and len(other):
            same_kind(kind(whole.records), kind(other), name)
    near = listed[are_listed(listed, labels.records)]
    refuse_outside(labels.records, ~labels.records.isin(near))
    inside = are_listed(whole.records, listed)
    remaining = _restricted(whole, inside, what)
    shared = len(remaining.records)
    absent = 0 if shared == len(listed) else listed.nunique() - shared
    return remaining, FrameFacts(Cut.of(whole.codes, inside), absent=absent)


def _dated(prediction: Any, labels: Clustering, frame: Dated, what: str) -> tuple[Clustering, FrameFacts]:
    table, dates = dates_of(prediction, frame)
    whole, inside = Clustering.of(table, what), dated_inside(dates, frame)
    remaining = _restricted(whole, inside, what)
    position = _look_up(whole.records, labels.records)
    refuse_outside(labels.records, (position >= 0) & ~inside[position])
    newest = frame.newest(dates.iloc[position[position >= 0]])
    labelled = None if newest is None else Cut.of(remaining.codes, dated_inside(dates[inside], newest))
    return remaining, FrameFacts(Cut.of(whole.codes, inside), newest=newest, labelled=labelled)


def _restricted(whole: Clustering, inside: BoolArray, what: str) -> Clustering:
    if not inside.any():
        raise DataError(f"no record of the {what} is in the frame")
    return whole.where(inside)


def links_inside(prediction: Any, frame: Any) -> float:
    """Share of the predicted links of the frame's records that stay in the frame.

    If `measure` lacks the frame, estimates of pairwise precision are too low by this factor. The share needs
    no label. It is Σ_k f_k (f_k - 1) / Σ_k f_k (m_k - 1), for f_k of the m_k records of predicted cluster k
    in the frame.

    Parameters
    ----------
    prediction : memberships
    frame : record ids, an older prediction, or Dated
        As in `measure`.

    Raises
    ------
    DataError
        No record of the prediction in the frame, or an unusable frame.

    Examples
    --------
    >>> links_inside({1: "a", 2: "a", 3: "a"}, frame=[1, 2])
    0.5
    """
    _, facts = framed(prediction, Clustering.of({}), frame)
    return 1.0 if facts is None else facts.cut.links_inside


def measure(
    prediction: Any, labels: Any, *, blocks: Any = None, missing: Missing = Missing.ERROR, frame: Any = None
) -> Units:
    """Make units of the labelled entities, or of the blocks that they fill, to estimate from.

    Parameters
    ----------
    prediction : memberships
        Predicted cluster of every record of the population (see `Clustering.of`).
    labels : memberships
        True entity of every record of each sampled entity.
    blocks : memberships, optional
        Block of every labelled record, or of every record; blocks then are the units. `labels` must list
        every record of each sampled block. This is checked for the records that `blocks` lists.
    missing : Missing
        What to do with labelled records that the prediction lacks.
    frame : record ids, an older prediction, or Dated, optional
        The records that existed when the labels were made, if the prediction has newer ones. Everything is
        counted inside the frame, which is then the population. A frame is ids (Index, list, set, array,
        Series), memberships of its records, or a cut-off date (`erbayes.Dated`).

    Returns
    -------
    Units

    Raises
    ------
    DataError
        No labels, labelled records that the prediction lacks (with `Missing.ERROR`, or all of them), ids of
        different types, a block that a true entity crosses or that has a record without a label,
        labelled records outside the frame, or pairs of records instead of memberships.

    Examples
    --------
    >>> units = measure({1: "a", 2: "a", 3: "b", 4: "b"}, {1: "x", 2: "x", 3: "x"})
    >>> units.table()[["records", "true_links", "common_links", "predicted_links"]]
       records  true_links  common_links  predicted_links
    x      3.0         3.0           1.0              1.5
    """
    labels = sampled_labels(labels)
    prediction, facts = framed(prediction, labels, frame)
    shown, rows = first_entities(labels)
    entities = shown.clusters if kind(shown.clusters) == kind(shown.records) else shown.records[:0]
    position = _look_up(prediction.records, _joined(labels.records, entities))
    sizes = prediction.sizes
    codes = np.where(position < 0, -1, prediction.codes[position]) if len(prediction.records) else position
    cluster, entity_cluster = codes[: len(labels.records)], np.full(len(shown.clusters), -1)
    entity_cluster[: len(entities)] = codes[len(labels.records) :]
    lacking = cluster < 0
    touched = np.unique(cluster[rows][~lacking[rows]])
    namesake = np.full(len(prediction.clusters) + 1, -1)  # the last one stands for no cluster
    namesake[touched] = position_in_labels(shown, prediction.clusters[touched])
    refuse_edges(
        shown, cluster[rows], namesake[cluster[rows]], entity_cluster, sizes, len(prediction.records)
    )
    if lacking.all() or (lacking.any() and missing is Missing.ERROR):
        raise missing_records(prediction, labels, lacking)
    units = assemble(labels, cluster, sizes, histogram(sizes), blocks=blocks, missing=missing)
    return replace(units, frame=facts)


def assemble(
    labels: Clustering,
    cluster: IntArray,
    sizes: IntArray,
    known: KnownTotals,
    *,
    blocks: Any = None,
    missing: Missing = Missing.ERROR,
) -> Units:
    """Make units from the predicted clusters of the labelled records, wherever these were looked up.

    Parameters
    ----------
    labels : Clustering
        True entity of every record of each sampled entity.
    cluster : int array, (labelled records,)
        Position of the predicted cluster in `sizes`; -1 if the prediction lacks the record.
    sizes : int array, (t,)
        Records of each predicted cluster that `cluster` names, and possibly of others.
    known : KnownTotals
        Sizes of all predicted clusters.
    blocks, missing
        As in `measure`.

    Raises
    ------
    DataError
        Labelled records that the prediction lacks (with `Missing.ERROR`), or a block that a true entity
        crosses.
    """
    member(missing, Missing, "missing")
    lacking = cluster < 0
    unmatched = int(lacking.sum())
    if unmatched and missing is Missing.ERROR:
        raise strangers(labels, lacking)
    kept = ~lacking | (missing is not Missing.OMIT)
    if not kept.any():
        raise DataError("none of the labelled records is in the prediction")
    cluster = cluster.copy()
    cluster[~lacking], touched = pd.factorize(cluster[~lacking])
    sizes = sizes[touched]
    if missing in {Missing.SINGLETON, Missing.TOGETHER}:
        own = np.arange(unmatched) if missing is Missing.SINGLETON else labels.codes[lacking]
        cluster[lacking] = len(sizes) + own
        sizes = np.concatenate([sizes, np.bincount(own)])
    if unmatched and missing is Missing.SINGLETON:
        known = replace(known, singletons=False)
    entity, piece_cluster, n, place = _pieces(labels.codes[kept], cluster[kept])
    N = np.bincount(entity, weights=n, minlength=len(labels.clusters))
    present = np.flatnonzero(N)
    code, unit_ids = units_of(labels, blocks)
    used, unit_of_present = np.unique(code[present], return_inverse=True)
    unit_of = np.full(len(code), -1)
    unit_of[present] = unit_of_present
    order = np.argsort(unit_of[entity], kind="stable")
    entity, piece_cluster, n = entity[order], piece_cluster[order], n[order]
    return Units(
        ids=unit_ids[used],
        unit=unit_of[entity],
        group=np.searchsorted(present, entity),
        n=n,
        N=N[entity],
        m=sizes[piece_cluster].astype(float),
        cluster=piece_cluster,
        known=None if unmatched and missing is Missing.TOGETHER else known,
        unmatched=unmatched,
        omitted=unit_ids[np.setdiff1d(code, used)],
        piece_of=pd.Series(np.argsort(order)[place], index=labels.records[kept]),
    )


def units_of(labels: Clustering, blocks: Any) -> tuple[IntArray, pd.Index]:
    """Code of the unit of each entity, and the ids of units by their codes."""
    if blocks is None:
        return np.arange(len(labels.clusters)), labels.clusters
    unit = np.zeros(len(labels.clusters), dtype=np.int64)
    blocks = Clustering.of(blocks, "blocks")
    position = _look_up(blocks.records, labels.records, "blocks")
    if (position < 0).any():
        raise DataError(f"{int((position < 0).sum())} labelled records have no block")
    block = blocks.codes[position]
    unlabelled = np.isin(blocks.codes, block)
    unlabelled[position] = False
    if unlabelled.any():
        raise DataError(
            f"{int(unlabelled.sum())} records of sampled blocks have no label, such as "
            f"{head(blocks.records[unlabelled])}: label every record of a sampled block"
        )
    unit[labels.codes] = block
    crossing = np.unique(labels.codes[unit[labels.codes] != block])
    if len(crossing):
        raise DataError(
            f"{len(crossing)} true entities cross blocks, such as {head(labels.clusters[crossing])}"
            ": blocks must be unions of true entities"
        )
    return unit, blocks.clusters


def measure_predicted(
    prediction: Any, labels: Any, sampled: Any, *, whole_entities: bool = True, frame: Any = None
) -> Units:
    """Make units of sampled *predicted* clusters, to estimate from.

    Parameters
    ----------
    prediction : memberships
        Predicted cluster of every record of the population.
    labels : memberships
        True entity of every record of the sampled clusters and, if `whole_entities`, of every
        other record of the entities that they touch.
    sampled : sequence of cluster ids
        The sampled predicted clusters, each once.
    whole_entities : bool
        False if labels end at the border of the sampled clusters. Precision is then identified, and recall is
        not.
    frame : record ids, an older prediction, or Dated, optional
        As in `measure`, if clusters have grown since they were sampled. A predicted cluster is then its
        records inside the frame.

    Returns
    -------
    Units

    Raises
    ------
    DataError
        Unknown or repeated cluster ids, records of a sampled cluster without a label, or labelled records
        outside the frame.

    Examples
    --------
    >>> prediction, labels = {1: "a", 2: "a", 3: "b"}, {1: "x", 2: "y", 3: "x"}
    >>> units = measure_predicted(prediction, labels, ["a"])
    >>> units.table()[["records", "predicted_links", "common_links"]]
       records  predicted_links  common_links
    a      2.0              1.0           0.0
    """
    labels = Clustering.of(labels, "labels")
    prediction, facts = framed(prediction, labels, frame)
    wanted = ids(sampled, "sampled clusters")
    if not len(wanted):
        raise DataError("no cluster is sampled: an empty sample estimates nothing")
    if not wanted.is_unique:
        raise DataError(f"{int(wanted.duplicated().sum())} sampled clusters are listed twice")
    unit_of_cluster = wanted.get_indexer(prediction.clusters)
    unknown = wanted.difference(prediction.clusters)
    if len(unknown):
        place = "not predicted" if frame is None else "not predicted in the frame"
        raise DataError(f"{len(unknown)} sampled clusters are {place}: {head(unknown)}")
    unit_of_record = unit_of_cluster[prediction.codes]
    inside = np.flatnonzero(unit_of_record >= 0)
    position = _look_up(labels.records, prediction.records[inside])
    if (position < 0).any():
        raise DataError(f"{int((position < 0).sum())} records of sampled clusters have no label")
    unit, entity, n, piece = _pieces(unit_of_record[inside].astype(np.int64), labels.codes[position])
    m = np.bincount(unit, weights=n)
    N = labels.sizes[entity].astype(float) if whole_entities else np.full(len(n), np.nan)
    cluster = prediction.clusters.get_indexer(wanted)
    return Units(
        ids=wanted,
        unit=unit,
        group=unit,
        n=n,
        N=N,
        m=m[unit],
        cluster=cluster[unit],
        known=histogram(prediction.sizes),
        by_entity=False,
        frame=facts,
        piece_of=pd.Series(piece, index=prediction.records[inside]),
    )
