"""Clustering: which record belongs to which cluster, validated once and integer-coded."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .._internal.arrays import BoolArray, IntArray, label_components
from .._internal.errors import DataError, Remedy, head, number, refuse_cases
from .._internal.known_columns import fill_known
from .._internal.tables import is_whole_decimal, need_table, refuse_columns, refuse_names

LONGEST = 64
"""Bytes of the longest strings that have digests; pandas is as quick with longer ones."""
CHUNK = 2**15
"""Number of strings whose digests are computed at once, as many as fit in the processor's cache."""
NO_CLUSTER = (-1, -2, -3)
"""Integers that stand for no cluster, such as noise of scikit-learn's DBSCAN and HDBSCAN, and pandas' code of
a missing value (-1); records with infinite (-2) and with missing attributes (-3) in scikit-learn's HDBSCAN.
No library writes 0 for it, since k-means, connected components and pandas' codes number clusters from 0."""
NO_CLUSTER_TEXTS = (
    # those that pandas.read_csv takes for missing by default, which are what Python (None, nan), pandas
    # (<NA>), R (NA), SQL (NULL), JSON (null), Excel (#N/A) and C of Windows (1.#IND, 1.#QNAN) print
    *("", "none", "nan", "-nan", "<na>", "na", "n/a", "#na", "#n/a", "#n/a n/a", "null"),
    *("1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan"),
    # missing times of pandas, nil of Go and Ruby, NULL of C and of Oracle's tools and in dumps of PostgreSQL
    # and MySQL, and the nil UUID
    *("nat", "nil", "(null)", "\\n", "00000000-0000-0000-0000-000000000000"),
    # what SAS (.), Weka (?) and tables for people (a blank, dashes) show for a missing value
    *(" ", ".", "?", "-", "--"),
    # `NO_CLUSTER` as text, also of a column that was made of floats
    *(f"{n}{end}" for n in NO_CLUSTER for end in ("", ".0")),
    "0",  # what old databases write for a key to no row; among numbers it is ordinary, see `DIGITS`
)
"""Texts that stand for no cluster, in lower case."""
DIGITS = tuple("123456789")
"""Ids beside which "0" is an ordinary number of a cluster."""
SPLINK_DATASETS = ("source_dataset_l", "source_dataset_r")
"""Splink's columns of the dataset of each end, in which alone its id is unique."""
WEIGHT = "match_weight"
"""Splink's column of weights."""


def as_index(values: Any) -> pd.Index:
    """Make an Index of `values`, of objects if pandas cannot hold their text or floats otherwise."""
    index: pd.Index
    try:
        index = pd.Index(values)
    except (UnicodeEncodeError, NotImplementedError):
        # text with half of a surrogate pair, and floats of 16 bits, have no Index of their own
        index = pd.Index(values, dtype=object)
    return index


def ids(values: Any, what: str) -> pd.Index:
    """Make an Index of ids, which messages call `what`, and refuse all but strings or integers."""
    if isinstance(values, str | int):
        raise DataError(f"{what} must be several ids, not {values!r} alone")
    if hasattr(values, "columns") or not isinstance(values, Iterable):
        raise DataError(f"{what} must be a list or a column of ids, not {type(values).__name__}")
    index = as_index(values)
    if isinstance(index.dtype, pd.ArrowDtype) and pa.types.is_dictionary(index.dtype.pyarrow_dtype):
        index = index.astype(pd.ArrowDtype(index.dtype.pyarrow_dtype.value_type))
    if missing := int(np.count_nonzero(index.isna())):
        first = int(np.argmax(index.isna())) + 1
        raise DataError(
            f"{what}: {missing:,} of {len(index):,} are missing, the first in row {first:,} of the data: "
            "fill them in, or leave these rows out"
        )
    if isinstance(index, pd.CategoricalIndex):
        index = pd.Index(index.categories[index.codes])
    if is_whole_decimal(index):
        index = pd.Index([int(number) for number in index])
    # floats are no ids, even whole ones, since 2**53 and 2**53 + 1 are the same float
    if len(index) and kind(index) not in {"string", "integer"}:
        raise DataError(f"{what} must be all strings or all integers, not {_describe_other_kind(index)}")
    return index


def _describe_other_kind(index: pd.Index) -> str:
    """Return what ids are that are neither strings nor integers, with the remedy if there is one."""
    if (known := kind(index)) == "floating":
        return "floating: make integers or text of them (with pandas, ids.astype('Int64'))"
    types = {type(id).__name__ for id in index} if known == "mixed" else set()
    if types == {"tuple"}:
        return "tuple objects: of pairs of records, Clustering.from_pairs makes clusters"
    return f"{types.pop()} objects: make text of each, str(id)" if len(types) == 1 else known


def kind(index: pd.Index) -> str:
    """Type of ids: "string", "integer", or another."""
    return pd.api.types.infer_dtype(index, skipna=False)


def need_one_kind(*indexes: pd.Index) -> None:
    """Refuse record ids of different types, none of which could match."""
    kinds = sorted({kind(index) for index in indexes if len(index)})
    if len(kinds) > 1:
        raise DataError(f"record ids are of types {' and '.join(kinds)}: convert them to one")


def _hash_strings(strings: pa.Array | pa.ChunkedArray) -> NDArray[np.uint64] | None:
    """Numbers that are equal for equal strings, and differ for nearly all others; None for long strings."""
    chunks = [chunk.cast(pa.large_string()) for chunk in getattr(strings, "chunks", [strings])]
    padded = pa.concat_arrays([*chunks, pa.array(["\0" * LONGEST], pa.large_string())])
    _, offsets, data = padded.buffers()
    ends = np.frombuffer(offsets, np.int64)[: len(padded)]
    start, size = ends[:-1], np.diff(ends)
    longest = int(size.max())
    if longest > LONGEST:
        return None
    # word[i] is the eight bytes from byte i on; the padding above keeps the last words inside the buffer
    word = np.ndarray(len(data) - 7, "<u8", data, strides=1)
    digests = size.astype(np.uint64)
    for first in range(0, len(size), CHUNK):
        chunk = slice(first, first + CHUNK)
        digest, position, bits = digests[chunk], start[chunk], 8 * size[chunk]
        for byte in range(0, longest, 8):
            # the shift drops the bytes beyond the end of a string
            digest ^= word[position + byte] << np.maximum(64 + 8 * byte - bits, 0).astype(np.uint64)
            digest *= np.uint64(0x9E3779B97F4A7C15)
            digest ^= digest >> np.uint64(32)
    return digests


def is_unique(index: pd.Index) -> bool:
    """True if each id occurs once. Digests are sorted, which is many times quicker than hashing ids."""
    numbers = None
    if isinstance(index.dtype, np.dtype) and index.dtype.kind in "iu":
        numbers = index.to_numpy(copy=True)
    elif len(index) and isinstance(index[0], str):
        with suppress(UnicodeEncodeError):  # half of a surrogate pair
            numbers = _hash_strings(pa.array(index))
    if numbers is None:
        return index.is_unique
    numbers.sort()
    return bool((numbers[1:] != numbers[:-1]).all()) or index.is_unique


def _encode_ids(values: Any, what: str) -> tuple[IntArray, pd.Index]:
    """Code of each id, in order of first appearance, and the distinct ids."""
    index = as_index(values)
    if isinstance(index, pd.CategoricalIndex) and not index.hasnans:
        codes, used = pd.factorize(index.codes)
        return codes.astype(np.int64), ids(index.categories[used], what)
    codes, distinct = pd.factorize(ids(index, what))
    return codes.astype(np.int64), pd.Index(distinct)


def are_listed(records: pd.Index, listed: pd.Index) -> BoolArray:
    """Return whether each record is listed, (N,)."""
    if all(len(i) and isinstance(i[0], str) for i in (records, listed)):
        with suppress(UnicodeEncodeError):  # half of a surrogate pair
            # Arrow looks up strings many times faster than pandas
            strings, wanted = (pa.array(i).cast(pa.large_string()) for i in (records, listed))
            return np.asarray(pc.is_in(strings, wanted))
    return records.isin(listed)


@cache
def no_cluster_ids(kind: str) -> pd.Index:
    """Return the ids of a type that stand for no cluster, texts in every mixture of cases, and `DIGITS`."""
    if kind == "integer":
        return pd.Index(NO_CLUSTER)
    # every mixture of cases is a short list, which a database can look up among hashes of clusters
    cased = (product(*({c, c.upper()} for c in text)) for text in NO_CLUSTER_TEXTS)
    return pd.Index([*sorted("".join(letters) for text in cased for letters in text), *DIGITS])


def standing_for_none(sizes: Mapping[Any, int]) -> dict[Any, int]:
    """Return those of several clusters that hold records without a cluster, with their sizes."""
    numbered = not sizes.keys().isdisjoint(DIGITS)
    ordinary = {*DIGITS, "0"} if numbered else set(DIGITS)
    # a single record is a cluster of its own, whatever its cluster is called
    return {id: size for id, size in sizes.items() if size > 1 and id not in ordinary}


def refuse_none(what: str, sizes: Mapping[Any, int], records: int, remedy: Remedy) -> None:
    """Refuse clusters that `standing_for_none` returned, of ids that messages call `what`."""
    if sizes:
        shown = ", ".join(f"{size:,} of {records:,} records have {id!r}" for id, size in sizes.items())
        links = sum(size * (size - 1) // 2 for size in sizes.values())
        raise DataError(
            f"{what}: {shown}, which stands for no cluster, and would be counted as one, with "
            f"{links:,} link{'s' * (links > 1)}: "
            "give each of these records the id of its cluster, or an id of its own if it is in none",
            remedy,
        )


def _refuse_unclustered(records: pd.Index, codes: IntArray, clusters: pd.Index, what: str) -> None:
    """Refuse records that share an id which stands for no cluster, unless it is the id of one of them."""
    known = kind(clusters) if len(clusters) else ""
    at = np.flatnonzero(are_listed(clusters, no_cluster_ids(known)))
    if not len(at):
        return
    sizes = np.bincount(codes, minlength=len(clusters))
    found = standing_for_none(dict(zip(clusters[at].tolist(), sizes[at].tolist(), strict=True)))
    if "0" in found and what.endswith("labels") and _is_number_among_others(clusters, sizes):
        del found["0"]
    if found and kind(records) == known:
        named = np.flatnonzero(records.isin(list(found)))
        own = clusters[codes[named]][clusters[codes[named]] == records[named]]
        found = {id: size for id, size in found.items() if id not in own}
    refuse_none(f"cluster ids of the {what}", found, len(records), Remedy.ANY_ID)


def _is_number_among_others(clusters: pd.Index, sizes: IntArray) -> bool:
    """Return whether "0" is one of several numbers of entities, and no larger than the largest other one."""
    # a sample may have none of `DIGITS`, although the population has them
    others = clusters != "0"
    numbers = others.any() and clusters[others].str.isdecimal().all()
    return bool(numbers and sizes[~others].max() <= sizes[others].max())


def _explain_repeats(records: pd.Index, codes: IntArray, clusters: pd.Index, what: str) -> DataError:
    """Error for repeated records, with a likely cause: equal rows, pairs, or columns in the other order."""
    again = records.duplicated()
    twice = records[again]
    rows = pd.DataFrame({"record": records, "code": codes})
    same = int(rows.duplicated().sum())
    said = f"record ids of the {what}: {len(twice):,} duplicates, such as {head(twice)}"
    if same == len(twice):
        return DataError(f"{said}; each repeats an earlier row with the same cluster, and can be dropped")
    named = int(clusters.isin(records).sum()) if kind(clusters) == kind(records) else 0
    if 2 * named >= len(clusters):
        said += f"; {named:,} of {len(clusters):,} cluster ids are ids of records"
        return DataError(f"{said}, as in pairs of records", _make_pairs_remedy(what))
    if len(clusters) == len(codes):
        said += "; no cluster id is, as if the columns were in the other order"
        return DataError(said, Remedy.ORDER, _make_pairs_remedy(what))
    rows = rows.drop_duplicates()
    one = rows["record"][rows["record"].duplicated()].iloc[:1]
    both = clusters[rows["code"][rows["record"].isin(one)]]
    said += f"; {same:,} of them repeat an earlier row" * (same > 0)
    said += f"; {head(one)} is in {head(both, 2)}: keep one row of each record, or give both clusters one id"
    return DataError(said)


def _make_pairs_remedy(what: str) -> Remedy:
    """Remedy for pairs of records instead of memberships."""
    return Remedy.ANSWERS if what == "labels" else Remedy.LINKS


def find_score(columns: Sequence[Any]) -> Any:
    """Return the column of scores that a matcher is known for, or None."""
    # weights come first, since probabilities crowd at 1
    return WEIGHT if WEIGHT in columns else fill_known({"score": None}, columns)["score"]


def choose_names(columns: Sequence[Any], score: str | None, what: str = "edges") -> list[Any]:
    """Return the columns of both ends and of scores, then those of Splink that name their datasets."""
    table, columns, datasets = f"the table of the {what}", list(columns), list[Any]()
    found = fill_known({"left": None, "right": None, "score": score}, columns)
    if found["left"] is not None and found["right"] is not None:
        score = find_score(columns) if score is None else score
        datasets = [name for name in SPLINK_DATASETS if name in columns]
        columns = [name for name in columns if name in {found["left"], found["right"], score}]
        columns.sort(key=[found["left"], found["right"], score].index)
    if score is None and len(columns) != 3:
        said = "it is not clear which has the scores"
        raise DataError(f"{table} has {head(columns, 20)}: {said}", Remedy.SCORED)
    score = columns[2] if score is None else score
    refuse_names([score], columns, table)
    two = [name for name in columns if name != score]
    refuse_columns(pd.DataFrame(columns=two), f"{table}, apart from scores,", Remedy.SCORED)
    return [*two, score, *datasets]


def refuse_datasets(frame: pd.DataFrame, datasets: Sequence[Any], what: str) -> None:
    """Refuse pairs of several datasets of Splink, by the columns that name these."""
    if pd.unique(frame[list(datasets)].to_numpy().ravel()).size > 1:
        raise DataError(
            f"the table of the {what} has records of several datasets, and ids of Splink are unique inside "
            "each alone: join dataset and id to one id, here and in all records"
        )


def _mark_links(frame: pd.DataFrame, score: str | None, threshold: float | None, what: str) -> BoolArray:
    """Return True for each pair that is a link, (pairs,)."""
    if score is None and threshold is not None:
        raise DataError(f"{what}: a threshold of {threshold} needs the column of scores", Remedy.SCORE)
    if score is None:
        return np.ones(len(frame), dtype=bool)
    if not isinstance(score, Hashable) or score not in frame.columns:
        raise DataError(f"the table of the {what} has no column {score!r}; it has {head(frame.columns, 20)}")
    if threshold is not None:
        number(threshold, f"{what}: threshold", lambda x: True, "be a number")
    if threshold is None or np.isnan(threshold):
        raise DataError(
            f"{what}: without a threshold, scores {score!r} of any size would be links", Remedy.THRESHOLD
        )
    scores = frame[score]
    if not pd.api.types.is_numeric_dtype(scores):
        raise DataError(f"{what}: scores {score!r} must be numbers, not such as {head(scores.dropna())}")
    if missing := int(scores.isna().sum()):
        raise DataError(f"{what}: {missing:,} of {len(scores):,} scores {score!r} are missing")
    return np.asarray(scores >= threshold, dtype=bool)


def read_ends(ends: pd.DataFrame, what: str) -> tuple[IntArray, IntArray, pd.Index]:
    """Return the two records of each pair, (pairs,), as positions among the distinct ones."""
    left, right = (ids(ends.iloc[:, i], f"column {ends.columns[i]!r} of the {what}") for i in (0, 1))
    if len(ends) and kind(left) != kind(right):
        raise DataError(
            f"ids of the {what} are of type {kind(left)} in one column, {kind(right)} in the other"
        )
    codes, distinct = pd.factorize(left.append(right))
    return codes[: len(ends)], codes[len(ends) :], pd.Index(distinct)


def list_all_records(records: Any, in_pairs: pd.Index, what: str) -> tuple[pd.Index, IntArray]:
    """Return all records, and the position among them of each record of the pairs."""
    listed = ids(records, f"all records of the {what}")
    if not is_unique(listed):
        refuse_cases(listed[listed.duplicated()], f"all records of the {what}: {{n}} duplicates, such as")
    if len(listed) and len(in_pairs) and kind(listed) != kind(in_pairs):
        raise DataError(
            f"record ids of the {what} are of type {kind(in_pairs)}, and of type {kind(listed)} among all "
            "records: none could match; convert one of them (ids of CSV files are strings)"
        )
    position = listed.get_indexer(in_pairs)
    said = f"{{n}} of {len(in_pairs):,} records in the {what} are not among all records, such as"
    refuse_cases(in_pairs[position < 0], said)
    return listed, position


@dataclass(frozen=True, slots=True, eq=False)
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
    def of(cls, memberships: Any, what: str = "clustering", *, any_id: bool = False) -> Clustering:
        """Make a clustering from memberships.

        Memberships are a Series (index = records), a mapping record -> cluster, or a table of two columns,
        record and cluster. A table is a DataFrame or any object with an Arrow C stream (polars, pyarrow).

        Parameters
        ----------
        memberships : Clustering, Series, mapping, DataFrame or Arrow table
        what : str
            How messages name this input.
        any_id : bool
            True takes every id for that of a real cluster, also ids that usually stand for none.

        Raises
        ------
        DataError
            A table of other than two columns, repeated record ids (equal rows too), missing values, ids
            that are neither strings nor integers, or two or more records that share an id which stands for no
            cluster: -1, "", "nan", "NULL", "NA" and the like, in any case, and the text "0" unless one of "1"
            to "9" is a cluster too. Among "labels" it may also be one of other numbers, the largest of which
            has as many records. A cluster may have the id of one of its records.

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
            frame = need_table(memberships, said)
            refuse_columns(frame, f"the table of the {what}", Remedy.COLUMNS, pairs=_make_pairs_remedy(what))
            record, cluster = frame.iloc[:, 0], frame.iloc[:, 1]  # type: ignore[assignment]
        records = ids(record, f"record ids of the {what}")
        codes, clusters = _encode_ids(cluster, f"cluster ids of the {what}")
        if not is_unique(records):
            raise _explain_repeats(records, codes, clusters, what)
        if not any_id:
            _refuse_unclustered(records, codes, clusters, what)
        return cls(records, codes, clusters)

    @classmethod
    def from_pairs(
        cls,
        pairs: Any,
        *,
        score: str | None = None,
        threshold: float | None = None,
        records: Any = None,
        what: str = "pairs",
    ) -> Clustering:
        """Make a clustering of connected components of links, each with the id of its first record.

        Parameters
        ----------
        pairs : DataFrame or Arrow table
            Two columns of record ids, one row per pair. The two records may be the same. Of tables with
            columns unique_id_l and unique_id_r, as Splink writes them, others than scores are ignored.
        score : str, optional
            A third column, of numbers. Without it every pair is a link.
        threshold : float, optional
            Pairs with a score of `threshold` or more are links. A score needs a threshold.
        records : sequence of ids, optional
            All records. Those without a link become clusters of one record. By default the records are those
            of all pairs, also below the threshold. Labelled records in no pair then cannot be left out
            (`Missing.OMIT`), since every missed link of theirs would be left out with them.
        what : str
            How messages name this input.

        Examples
        --------
        >>> pairs = pd.DataFrame({"l": ["a", "b", "d"], "r": ["b", "c", "e"], "p": [0.9, 0.8, 0.1]})
        >>> clustering = Clustering.from_pairs(pairs, score="p", threshold=0.5, records=list("abcdef"))
        >>> clustering.sizes, list(clustering.clusters)
        (array([3, 1, 1, 1]), ['a', 'd', 'e', 'f'])
        """
        frame = need_table(pairs, f"{what}: expected a DataFrame or an Arrow table")
        linked = _mark_links(frame, score, threshold, what)
        if score is None:
            refuse_columns(frame, f"the table of the {what}", Remedy.SCORE)
            ends = frame
        else:
            one, other, _, *datasets = choose_names(list(frame.columns), score, what)
            refuse_datasets(frame, datasets, what)
            ends = frame[[one, other]]
        left, right, every = read_ends(ends, what)
        if records is not None:
            every, position = list_all_records(records, every, what)
            left, right = position[left], position[right]
        components, _ = pd.factorize(label_components(left[linked], right[linked], len(every)))
        heads = np.unique(components, return_index=True)[1]
        return cls(every, components.astype(np.int64), every[heads], complete=records is not None)

    @property
    def sizes(self) -> IntArray:
        """Return the number of records of each cluster, (K,)."""
        return np.bincount(self.codes, minlength=len(self.clusters))

    def restrict(self, records: pd.Index) -> Clustering:
        """This partition of those of its records that are among `records`."""
        return self.where(are_listed(self.records, records))

    def where(self, kept: BoolArray) -> Clustering:
        """This partition of those of its records for which `kept`, (N,), is True."""
        codes, clusters = pd.factorize(self.codes[kept])
        return Clustering(self.records[kept], codes.astype(np.int64), self.clusters[clusters], self.complete)

    def __repr__(self) -> str:
        return f"Clustering({len(self.records)} records, {len(self.clusters)} clusters)"
