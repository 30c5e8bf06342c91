"""Clustering: which record belongs to which cluster, validated once and integer-coded; and the frame.

The frame is the records that existed when the labels were made. A prediction may have newer records. If some
belong to a labelled entity, the labels have none of them, and their links count as false. With a frame,
everything is counted inside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pandas as pd

from .._internal import remedies
from .._internal.arrays import BoolArray, IntArray, is_table, label_components, need_table, to_frame
from .._internal.errors import DataError, Remedy, number, refuse_cases
from . import ids as rules
from .columns import find_record, read_prediction, read_records
from .reading import Named, Near, Reading, explain_repeats, to_links_table


def refuse_nulls(what: str, sizes: Mapping[Any, int], records: int, remedy: Remedy) -> None:
    """Refuse clusters that `find_nulls` returned, of ids that messages call `what`."""
    if sizes:
        shown = ", ".join(f"{size:,} of {records:,} records have {id!r}" for id, size in sizes.items())
        links = sum(size * (size - 1) // 2 for size in sizes.values())
        said = f"{what}: {shown}, which stands for no cluster, and would be counted as one, with {links:,}"
        said += f" link{'s' * (links > 1)}: give each of these records the id of its cluster, or an id of its"
        raise DataError(f"{said} own if it is in none", remedy)


def _refuse_unclustered(clustering: Clustering, what: str) -> None:
    """Refuse records that share a null id as cluster, unless it is the id of one of them."""
    records, clusters = clustering.records, clustering.clusters
    known = rules.kind(clusters) if len(clusters) else ""
    null_ids = rules.list_null_ids(known)
    if isinstance(clusters.dtype, np.dtype) and clusters.dtype.kind == "u":
        null_ids = pd.Index([2 ** (8 * clusters.dtype.itemsize) - 1])  # what becomes of -1
    at = np.flatnonzero(rules.are_listed(clusters, null_ids))
    if not len(at):
        return
    sizes = clustering.sizes
    nulls = rules.find_nulls(dict(zip(clusters[at].tolist(), sizes[at].tolist(), strict=True)))
    if "0" in nulls and what.endswith("labels"):
        # a sample may have none of `DIGITS`, although the population has them
        others = clusters != "0"
        numbers = others.any() and clusters[others].str.isdecimal().all()
        if numbers and sizes[~others].max() <= sizes[others].max():
            del nulls["0"]
    if nulls and rules.kind(records) == known:
        named = np.flatnonzero(records.isin(list(nulls)))
        cluster = clusters[clustering.codes[named]]
        nulls = {id: size for id, size in nulls.items() if id not in cluster[cluster == records[named]]}
    refuse_nulls(f"cluster ids of the {what}", nulls, len(records), remedies.ANY_ID)


def read_ends(
    one: pd.Series, other: pd.Series, what: str, any_id: bool = False
) -> tuple[IntArray, IntArray, pd.Index]:
    """Return the two records of each pair, (pairs,), as positions among the distinct ones."""
    left, right = (
        rules.ids(end, f"column {end.name!r} of the {what}", any_id=any_id) for end in (one, other)
    )
    rules.same_kind(left, right, f"column {other.name!r}", f"ids in column {one.name!r} of the {what}")
    codes, distinct = pd.factorize(left.append(right))
    for refuse in () if any_id else (rules.refuse_no_records, rules.refuse_lost_digits, rules.refuse_blanks):
        refuse(distinct, f"column {one.name!r} or {other.name!r} of the {what}")
    return codes[: len(one)], codes[len(one) :], distinct


def list_all_records(records: Any, in_pairs: pd.Index, what: str) -> tuple[pd.Index, IntArray]:
    """Return all records, and the position among them of each record of the pairs."""
    listed = rules.ids(records, f"all records of the {what}")
    if not listed.is_unique:
        refuse_cases(listed[listed.duplicated()], f"all records of the {what}: {{n}} duplicates, such as")
    rules.same_kind(in_pairs, listed, "list of all records", f"record ids of the {what}")
    position = listed.get_indexer(in_pairs)
    said = f"{{n}} of {len(in_pairs):,} records in the {what} are not among all records, such as"
    refuse_cases(in_pairs[position < 0], said)
    return listed, position


@dataclass(frozen=True, eq=False)
class Clustering:
    """A partition of records into clusters.

    Attributes
    ----------
    records : Index, (N,)
        Unique record ids, strings or integers.
    codes : int array, (N,)
        Cluster of each record, 0 to K - 1, in order of first appearance.
    clusters : Index, (K,)
    complete : bool
        False if the clustering was made of pairs alone, which name no record that is linked to none.

    Examples
    --------
    >>> Clustering.of({"r1": "a", "r2": "a", "r3": "b"}).sizes
    array([2, 1])
    """

    records: pd.Index
    codes: IntArray
    clusters: pd.Index
    complete: bool = True

    @classmethod
    def of(
        cls, memberships: Any, what: str = "clustering", *, any_id: bool = False, near: Near | None = None
    ) -> Clustering:
        """Make a clustering from memberships.

        Parameters
        ----------
        memberships : Clustering, Series, mapping, DataFrame or Arrow table
            A Series (index = records), a mapping record -> cluster, or a table as a matcher writes it, also
            an object with an Arrow C stream (polars, pyarrow). Its columns are found by names of matchers,
            such as unique_id and cluster_id. Of two columns with other names, records are those that occur
            once, in the first column if both do. If ids are unique inside their source alone (source_dataset
            and the like), records are called like "a-__-5".
        what : str
            How messages name this input.
        any_id : bool
            True takes every id for that of a real cluster, also null ids.
        near : Near, optional
            What another table says of records, by which their column is found in this one.

        Raises
        ------
        DataError
            A table in which it is not clear which columns are meant, repeated record ids (equal rows too),
            missing values, ids that are neither strings nor integers or that a spreadsheet rounded, or two or
            more records whose cluster is a null id that is not the id of one of them: -1, "", "nan", "NULL",
            "NA" and the like, in any case, and the text "0" unless one of "1" to "9" is a cluster too, or,
            among "labels", another number with as many records.

        Examples
        --------
        >>> Clustering.of(pd.DataFrame({"record": [1, 2, 3], "cluster": ["a", "a", "b"]}))
        Clustering(3 records, 2 clusters)
        """
        if isinstance(memberships, Clustering):
            return memberships
        if isinstance(memberships, pd.Series):
            record, cluster = memberships.index, memberships.array
        elif isinstance(memberships, Mapping):
            record, cluster = list(memberships), list(memberships.values())  # type: ignore[assignment]
        else:
            said = f"{what}: expected a Series, a mapping, a DataFrame or an Arrow table (of pairs, "
            said += "Clustering.from_pairs makes clusters)"
            groups = "entity" if what == "labels" else "cluster"
            frame = need_table(memberships, said)
            reading = read_prediction(frame, Named(links=False), near, groups=groups, what=what)
            if reading.repeats:
                raise explain_repeats(frame[reading.ids[0]], frame[reading.other], what)
            return cls.read(reading, any_id=any_id)
        if not rules.are_unique(records := rules.ids(record, f"record ids of the {what}", any_id=any_id)):
            raise explain_repeats(pd.Series(records), pd.Series(cluster), what)
        return cls._code(records, cluster, what, any_id)

    @classmethod
    def read(cls, reading: Reading, listed: pd.Index | None = None, *, any_id: bool = False) -> Clustering:
        """Make a clustering from what the columns of a table mean; `listed` are all records, for links."""
        what = reading.what
        if not reading.of_links:
            records = rules.ids(reading.key(), f"record ids of the {what}", any_id=any_id)
            return cls._code(records, reading.table[reading.other], what, any_id)
        left, right, records = read_ends(reading.key(0), reading.key(1), what, any_id)
        if listed is not None:
            records, position = list_all_records(listed, records, what)
            left, right = position[left], position[right]
        linked = reading.links()
        return cls.joined(records, left[linked], right[linked], complete=listed is not None)

    @classmethod
    def joined(cls, records: pd.Index, left: Any, right: Any, complete: bool = True) -> Clustering:
        """Make the clustering of unique records that links join, whose ends are positions among them.

        >>> Clustering.joined(pd.Index(["a", "b", "c"]), [0], [2]).clusters[[0, 1]].tolist()
        ['a', 'b']
        """
        codes, _ = pd.factorize(label_components(left, right, len(records)))
        heads = np.unique(codes, return_index=True)[1]
        return cls(records, codes.astype(np.int64), records[heads], complete)

    @classmethod
    def _code(cls, records: pd.Index, cluster: Any, what: str, any_id: bool) -> Clustering:
        """Make a clustering of unique records and the cluster of each."""
        blank, said = pd.isna(cluster), f"cluster ids of the {what}"
        if missing := int(np.count_nonzero(blank)):
            told, first = f"{said}: {missing:,} of {len(records):,} are missing", int(np.argmax(blank)) + 1
            option = "erbayes clusters FILE --blank own -o NEW, or --blank omit"
            own = 'clusters.map(str, na_action="ignore").fillna("alone " + records.map(str))'
            remedy = Remedy("fill them in, or leave these rows out", own, option)
            if what.endswith("labels"):  # nobody knows whether the entity of one is its own
                remedy = Remedy("label these records, or leave out their entities whole")
            raise DataError(f"{told}, the first in row {first:,} of the data", remedy)
        index = rules.as_index(cluster)
        if isinstance(index, pd.CategoricalIndex):
            codes, used = pd.factorize(index.codes)
            distinct = index.categories[used]
        else:
            codes, distinct = pd.factorize(rules.ids(index, said, any_id=True))
        clusters = rules.ids(pd.Index(distinct), said, any_id=any_id)
        clustering = cls(records, codes.astype(np.int64), clusters)
        if not any_id:
            _refuse_unclustered(clustering, what)
            rules.refuse_lost_digits(records, f"record ids of the {what}")
            rules.refuse_lost_digits(clusters, said)
            rules.refuse_blanks(clusters, said, records)
            rules.refuse_word_for_none(clusters, clustering.sizes, records, said)
        return clustering

    @classmethod
    def from_pairs(
        cls,
        pairs: Any,
        *,
        score: str | None = None,
        threshold: float | None = None,
        records: Any = None,
        what: str = "pairs",
        any_id: bool = False,
    ) -> Clustering:
        """Make a clustering of connected components of links, each with the id of its first record.

        Parameters
        ----------
        pairs : DataFrame or Arrow table, MultiIndex of recordlinkage, array of dedupe
            One row per pair, with two columns of record ids, such as unique_id_l and unique_id_r, as matchers
            write them. The two records may be the same. If ids are unique per source, ids become "a-__-5".
        score : str, optional
            The column of scores. By default it is found, and without one every pair is a link.
        threshold : float, optional
            Pairs with a score of `threshold` or more are links. A score needs a threshold, and two scores
            whose links make other clusters need `score`.
        records : sequence of ids or table, optional
            All records, in a table with their source if ids need it. Those without a link become clusters of
            one record, all of them if there is no pair. By default the records are those of all pairs, also
            below the threshold. Labelled records in no pair then cannot be left out (`Missing.OMIT`), since
            every missed link of theirs would be left out with them.
        what, any_id
            As in `of`.

        Examples
        --------
        >>> pairs = pd.DataFrame({"l": ["a", "b", "d"], "r": ["b", "c", "e"], "p": [0.9, 0.8, 0.1]})
        >>> clustering = Clustering.from_pairs(pairs, score="p", threshold=0.5, records=list("abcdef"))
        >>> clustering.sizes, list(clustering.clusters)
        (array([3, 1, 1, 1]), ['a', 'd', 'e', 'f'])
        """
        if threshold is not None:
            number(threshold, f"{what}: threshold", lambda x: not np.isnan(x), "be a number")
        frame = to_links_table(pairs, f"{what}: expected a DataFrame or an Arrow table")
        listed = None if records is None else read_records(records, what)
        if listed is not None and not len(frame):
            return cls.joined(list_all_records(listed, listed[:0], what)[0], [], [])
        named = Named(links=True, score=score, threshold=threshold, one_list=True)
        reading = read_prediction(frame, named, Near.all_of(listed), what=what)
        return cls.read(reading, listed, any_id=any_id)

    @cached_property
    def sizes(self) -> IntArray:
        """Records of each cluster, (K,), counted once, since a pass over all records takes long."""
        sizes = np.bincount(self.codes, minlength=len(self.clusters))
        sizes.flags.writeable = False
        return sizes

    def __repr__(self) -> str:
        return f"Clustering({len(self.records)} records, {len(self.clusters)} clusters)"


class ArrowTable(Protocol):
    """A table of any library with an Arrow C stream, such as polars or pyarrow."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


Memberships = Clustering | Mapping[Any, Any] | pd.Series | pd.DataFrame | ArrowTable
"""The cluster or the entity of each record, in any form that `Clustering.of` reads."""


@dataclass(frozen=True, slots=True)
class FrameFacts:
    """Counts of what a frame F leaves of a prediction.

    Of its records, some are `inside` F and others `outside`, and `absent` records of F are missing in it.
    `links_inside` is Σ_k f_k (f_k - 1) / Σ_k f_k (m_k - 1), the share of predicted links of records in F that
    stay in F, or 1 if there are none. Without the frame, pairwise precision is too low by this factor.
    """

    inside: int
    outside: int
    links_inside: float
    absent: int

    @classmethod
    def counted(cls, f: float, m: float, inside: float, links: float, listed: int) -> FrameFacts:
        """Make one from sums over clusters, of f, m, f (f - 1) and f (m - 1), and the records of F."""
        share = float(inside / links) if links else 1.0
        return cls(int(f), int(m) - int(f), share, listed - int(f))

    def in_words(self) -> dict[str, str]:
        """Text of each value, by its name in words."""
        return {
            "records outside the frame": f"{self.outside:,} of {self.inside + self.outside:,}",
            "precision without the frame": f"{self.links_inside:.3f} of that inside",
            "records of the frame missing in the prediction": f"{self.absent:,}",
        }


def frame_ids(frame: Any, near: Near | None = None) -> pd.Index:
    """Record ids of a frame: keys, column, index of a Series, or values if its index counts from 0."""
    if isinstance(frame, Clustering):
        values: Any = frame.records
    elif isinstance(frame, pd.Series):
        plain = isinstance(frame.index, pd.RangeIndex) and frame.index.equals(pd.RangeIndex(len(frame)))
        values = frame.array if plain and frame.is_unique else frame.index
    elif is_table(frame) and hasattr(frame, "columns"):
        table = to_frame(frame)
        values = table[find_record(table, near, "frame")]
    elif isinstance(frame, str | bytes) or not isinstance(frame, Iterable):
        said = f"frame: expected record ids or an older prediction, not {type(frame).__name__}"
        raise DataError(f"{said}; files go with a prediction in files")
    else:
        values = frame if isinstance(frame, pd.Index | np.ndarray) else list(frame)
    listed = rules.ids(values, "record ids of the frame")
    if not len(listed):
        raise DataError("the frame holds no record")
    return listed


def framed(
    clustering: Clustering, labels: Clustering, frame: Any, what: str = "prediction"
) -> tuple[Clustering, FrameFacts | None]:
    """Restrict a prediction to the frame, and count what is left of it."""
    if frame is None:
        return clustering, None
    listed = frame_ids(frame, Near({labels.records.name: labels.records}))
    for other, name in ((listed, "frame"), (labels.records, "labels")):
        rules.same_kind(clustering.records, other, name)
    labelled = listed[rules.are_listed(listed, labels.records)]
    refuse_outside(labels.records, ~labels.records.isin(labelled))
    inside = rules.are_listed(clustering.records, listed)
    if not inside.any():
        raise DataError(f"no record of the {what} is in the frame")
    shared, m = int(inside.sum()), clustering.sizes.astype(float)
    count = shared if shared == len(listed) else listed.nunique()
    f = np.bincount(clustering.codes[inside], minlength=len(m)).astype(float)
    facts = FrameFacts.counted(f.sum(), m.sum(), f @ (f - 1), f @ (m - 1), count)
    codes, at = pd.factorize(clustering.codes[inside])
    records, clusters = clustering.records[inside], clustering.clusters[at]
    return Clustering(records, codes.astype(np.int64), clusters, clustering.complete), facts


def refuse_outside(records: pd.Index, outside: BoolArray) -> None:
    """Refuse labelled records that are not in the frame."""
    said = f"{{n}} of {len(records)} labelled records are outside the frame, such as"
    must = "hold every record that existed when the labels were made, with ids written as in the labels"
    refuse_cases(records[outside], said, f": it must {must}")
