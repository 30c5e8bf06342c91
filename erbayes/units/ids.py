"""Ids of records and clusters: which values can be one, looks at many of them, and look-ups among others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .._internal import remedies
from .._internal.arrays import EXACT, BoolArray, IntArray, is_whole_decimal
from .._internal.errors import DataError, Remedy, refuse_cases
from .._internal.names import find_known

CAST = (-(2**63), -(2**31))
"""What NumPy makes of a missing value that is cast to an integer."""
NULL_NUMBERS = (-1, -2, -3, *CAST)
"""Integers of no cluster, such as noise of scikit-learn's DBSCAN and HDBSCAN, and pandas' code of
a missing value (-1); records with infinite (-2) and with missing attributes (-3) in scikit-learn's HDBSCAN.
No library writes 0 for it, since k-means, connected components and pandas' codes number clusters from 0."""
NULL_TEXTS = (
    # those that pandas.read_csv takes for missing by default, which are what Python (None, nan), pandas
    # (<NA>), R (NA), SQL (NULL), JSON (null), Excel (#N/A) and C of Windows (1.#IND, 1.#QNAN) print
    *("", "none", "nan", "-nan", "<na>", "na", "n/a", "#na", "#n/a", "#n/a n/a", "null"),
    *("1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan"),
    # missing times of pandas, nil of Go and Ruby, NULL of C and of Oracle's tools and in dumps of PostgreSQL
    # and MySQL, and the nil UUID
    *("nat", "nil", "(null)", "\\n", "00000000-0000-0000-0000-000000000000"),
    # what SAS (.), Weka (?) and tables for people (a blank, dashes) show for a missing value
    *(".", "?", "-", "--"),
    # `NULL_NUMBERS` as text, also of a column that was made of floats
    *(f"{n}{end}" for n in (-1, -2, -3) for end in ("", ".0")),
    *map(str, CAST),
    "0",  # what old databases write for a key to no row; among numbers it is ordinary, see `DIGITS`
)
"""Texts of no cluster, in lower case."""
ROUNDED = r"(?i)^-?\d([.,]\d+)?E\+\d+$"
"""How a spreadsheet shows long numbers, so that different ids become equal; no hash of letters has a plus."""
DIGITS = tuple("123456789")
"""Ids next to which "0" is an ordinary number of a cluster."""


def as_index(values: Any) -> pd.Index:
    """Make an Index of `values`, of objects if pandas has no other Index of their text or floats."""
    index: pd.Index
    try:
        # tuples are ids of no kind, and no levels of an index
        index = pd.Index(values, tupleize_cols=False)
    except (UnicodeEncodeError, NotImplementedError):
        # text with half of a surrogate pair, and floats of 16 bits, have no Index of their own
        index = pd.Index(values, dtype=object)
    return index


def as_texts(index: pd.Index) -> Any:
    """Return texts as Arrow has them, many times quicker; None of other ids, and of half a surrogate pair."""
    if len(index) and isinstance(index[0], str):
        with suppress(UnicodeEncodeError):
            return pa.array(index).cast(pa.large_string())
    return None


def ids(values: Any, what: str, *, any_id: bool = False) -> pd.Index:
    """Make an Index of ids, which messages call `what`, and refuse all but strings or integers."""
    if isinstance(values, str | int):
        raise DataError(f"{what} must be several ids, not {values!r} alone")
    if hasattr(values, "columns") or not isinstance(values, Iterable):
        raise DataError(f"{what} must be a list or a column of ids, not {type(values).__name__}")
    index = as_index(values)
    if isinstance(index.dtype, pd.ArrowDtype) and pa.types.is_dictionary(index.dtype.pyarrow_dtype):
        index = index.astype(pd.ArrowDtype(index.dtype.pyarrow_dtype.value_type))
    if missing := int(np.count_nonzero(index.isna())):
        said = f"{what}: {missing:,} of {len(index):,} are missing, the first in row"
        first = int(np.argmax(index.isna())) + 1
        raise DataError(f"{said} {first:,} of the data: fill them in, or leave these rows out")
    if isinstance(index, pd.CategoricalIndex):
        index = pd.Index(index.categories[index.codes])
    if is_whole_decimal(index):
        index = pd.Index([int(number) for number in index])
    # floats are no ids, even integral ones, since 2**53 and 2**53 + 1 are the same float
    if len(index) and kind(index) not in {"string", "integer"}:
        raise DataError(f"{what} must be all strings or all integers, not {_describe_other_kind(index)}")
    texts = None if any_id else as_texts(index)
    # a look for one sign first, since a pattern takes ten times as long
    if texts is not None and pc.any(pc.match_substring(texts, "+")).as_py():
        rounded = index[np.asarray(pc.match_substring_regex(texts, ROUNDED))]
        said = f"{what}: {{n}} of {len(index):,} are numbers that a spreadsheet rounded, such as"
        refuse_cases(rounded, said, ": export them as text", remedies.ANY_ID)
    return index


def are_unique(values: pd.Series | pd.Index) -> bool:
    """Return whether each value occurs once, and none is missing."""
    if isinstance(values.dtype, np.dtype) and values.dtype.kind in "iu":
        numbers = np.sort(values.to_numpy())  # which is quicker than a table of hashes
        return bool((numbers[1:] != numbers[:-1]).all())
    # pandas 2 takes objects "a" and "a\0" for one, but for those of an index
    once = pd.Index(values).is_unique if values.dtype == object else len(pd.unique(values)) == len(values)
    return once and bool(values.notna().all())


def _describe_other_kind(index: pd.Index) -> str:
    """Return what ids are that are neither strings nor integers, with the remedy if there is one."""
    if (known := kind(index)) == "floating":
        if large := int((np.abs(index.to_numpy(dtype=float)) >= EXACT).sum()):
            return f"floating: {large:,} of them have lost digits; {WRITE_AGAIN}"
        return "floating: make integers or text of them (with pandas, ids.astype('Int64'))"
    types = {type(id).__name__ for id in index} if known == "mixed" else set()
    if types == {"tuple"}:
        return "tuple objects: of pairs of records, Clustering.from_pairs makes clusters"
    if types <= {"list", "set", "frozenset", "ndarray"} and types:
        return f"{types.pop()} objects: give the cluster of each record, not the records of each cluster"
    return f"{types.pop()} objects: make text of each, str(id)" if len(types) == 1 else known


def kind(index: pd.Index) -> str:
    """Type of ids: "string", "integer", or another."""
    return pd.api.types.infer_dtype(index, skipna=False)


def are_listed(records: pd.Index, listed: pd.Index) -> BoolArray:
    """Return whether each record is listed, (N,)."""
    if (texts := as_texts(records)) is None or (among := as_texts(listed)) is None:
        return records.isin(listed)
    return np.asarray(pc.is_in(texts, among))


@cache
def list_null_ids(kind: str) -> pd.Index:
    """Return the null ids of a type, texts in all mixtures of cases and with blanks, and `DIGITS`.

    Some files have a blank behind each comma.
    """
    if kind == "integer":
        return pd.Index(NULL_NUMBERS)
    # all mixtures of cases are a short list, which a database can look up among hashes of clusters
    cased = (product(*({c, c.upper()} for c in text)) for text in NULL_TEXTS if text != "0")
    texts = {"".join(letters) for text in cased for letters in text}
    blanks = {f"{before}{text}{after}" for text in texts for before in ("", " ") for after in ("", " ")}
    return pd.Index([*sorted(blanks), "0", *DIGITS])


def refuse_no_records(distinct: pd.Index, what: str) -> None:
    """Refuse null ids among distinct ids of records of links, where any number from 0 on may be one."""
    if len(distinct):
        none = list_null_ids(kind(distinct)).difference([*DIGITS, "0"], sort=False)
        said = f"{what}: {{n}} of {len(distinct):,} ids stand for no record, and would join all that have it:"
        real = Remedy("or, if one is a real record", "Clustering.from_pairs(table, any_id=True)", "--any-id")
        refuse_cases(distinct[are_listed(distinct, none)], said, "", real)


def find_nulls(sizes: Mapping[Any, int]) -> dict[Any, int]:
    """Return those of several clusters that are null ids of records without a cluster, with their sizes."""
    numbered = not sizes.keys().isdisjoint(DIGITS)
    ordinary = {*DIGITS, "0"} if numbered else set(DIGITS)
    # a single record is a cluster of its own, whatever its cluster is called
    return {id: size for id, size in sizes.items() if size > 1 and id not in ordinary}


WRITE_AGAIN = "write them again as text where they come from"
CHANCE_BITS = 12
"""Bits of numbers that are 0 by chance once in 4,096 files."""
EXAMINED = 64
"""Numbers that are looked at for lost digits."""


def columns_that_tell(attributes: pd.DataFrame, clusters: IntArray | None = None) -> list[Any]:
    """Return the columns of attributes that tell a prediction to annotators.

    These are clusters and scores by their names and, if the `clusters` of all rows are known, (rows,), what
    is equal exactly where these are, a blank being alone, and their sizes. A block of clusters is needed.
    """
    told = [*find_known(attributes.columns, "cluster"), *find_known(attributes.columns, "score")]
    if clusters is None or not len(clusters):
        return told
    codes = pd.factorize(clusters)[0]
    K, size = int(codes.max()) + 1, np.bincount(codes)[codes]
    for column in attributes.columns.difference(told, sort=False):
        other = pd.factorize(attributes[column])[0]
        pairs = pd.DataFrame({"one": codes, "other": np.where(other < 0, ~np.arange(len(other)), other)})
        numbers = pd.to_numeric(attributes[column], errors="coerce").to_numpy()
        is_size = size.max() > 1 and np.array_equal(numbers, size)
        if is_size or (pairs["other"].nunique() == K < len(codes) and len(pairs.drop_duplicates()) == K):
            told.append(column)
    return [c for c in attributes.columns if c in told]


def count_cased(clusters: pd.Index) -> int:
    """Return how many ids of clusters differ from those of others in case only."""
    if (texts := as_texts(clusters)) is None or (lower := pc.utf8_lower(texts)).equals(texts):
        return 0
    return len(clusters) - int(pc.count_distinct(lower).as_py())


def refuse_lost_digits(distinct: pd.Index, what: str) -> None:
    """Refuse integers from 2**53 on that all are floats, as numbers are that once were."""
    if not pd.api.types.is_integer_dtype(distinct):
        return
    numbers = distinct.to_numpy()
    large = numbers[np.abs(numbers.astype(float)) >= EXACT]
    some = [int(x) for x in large[:EXAMINED]]
    spare = sum(x.bit_length() - EXACT.bit_length() + 1 for x in some)
    if some and spare >= CHANCE_BITS and all(int(float(x)) == x for x in some):
        said = f"{what}: {{n}} of {len(numbers):,} numbers have lost digits, as floats do from 2**53 on"
        refuse_cases(large, f"{said}, such as", f": {WRITE_AGAIN}", remedies.ANY_ID)


def refuse_blanks(distinct: pd.Index, what: str, records: pd.Index | None = None) -> None:
    """Refuse ids that are there with and without blanks at their ends; clusters may be called as records."""
    if (texts := as_texts(distinct)) is None:
        return
    bare = pc.utf8_trim_whitespace(texts)
    trimmed = np.asarray(pc.not_equal(texts, bare))
    if trimmed.any():
        twice = distinct[pd.Index(bare.to_pandas()).duplicated(keep=False) & trimmed]
        twice = twice if records is None else twice[~twice.isin(records)]
        strip = Remedy("remove them", "ids.str.strip()", "--strip")
        said = f"{what}: {{n}} of {len(distinct):,} are there without the blanks at their ends too, such as"
        refuse_cases(twice, said, "", strip, remedies.ANY_ID)


def refuse_word_for_none(clusters: pd.Index, sizes: IntArray, records: pd.Index, what: str) -> None:
    """Refuse a largest cluster whose id alone has no digit: it may be a word for records without a match."""
    largest = int(np.argmax(sizes)) if len(clusters) > 2 else -1
    if largest < 0 or np.count_nonzero(sizes == sizes[largest]) > 1:
        return
    word = str(clusters[largest])
    if re.search("[0-9]", word) or (texts := as_texts(clusters)) is None:
        return
    digits = np.asarray(pc.match_substring_regex(texts, "[0-9]"))
    if digits.sum() == len(digits) - 1 and word not in records:
        mask = f"clusters.mask(clusters == {word!r}, records)"
        alone = Remedy("give each of these records a cluster of its own", mask, f"--alone {word}")
        said = f"{what}: {word!r} has {int(sizes[largest]):,} records, and is the only one without a number"
        raise DataError(f"{said}: is it a word for records without a match?", alone, remedies.ANY_ID)


CHUNK = 2**15
"""Number of ids that are looked at together, as many as fit in the processor's cache."""


def same_kind(
    first: pd.Index | str | None,
    other: pd.Index | str | None,
    what: str = "labels",
    ids: str = "record ids of the prediction",
) -> None:
    """Refuse ids of different types, none of which could match: ids, or their type, None if unknown."""
    one, two = (kind(x) if isinstance(x, pd.Index) and len(x) else x for x in (first, other))
    if isinstance(one, str) and isinstance(two, str) and one != two:
        said = f"{ids} are of type {one}, those of the {what} of type {two}: none could match"
        raise DataError(f"{said}; make text of both, ids.astype(str)")


def unite_ids(first: pd.Index, second: pd.Index) -> pd.Index:
    """Return two Indexes of one type of ids as one Index."""
    if not pd.api.types.is_object_dtype(first):
        return first.append(second.astype(first.dtype))
    # `append` would make text of objects, which half of a surrogate pair is not
    both: pd.Index = pd.Index(np.concatenate([first.to_numpy(), second.to_numpy()]), dtype=object)
    return both


def look_up(records: pd.Index, ids: pd.Index, of: str = "prediction") -> IntArray:
    """Return the position of each id in `records`, -1 if it is not there."""
    same_kind(records, ids, ids=f"record ids of the {of}")
    integer = pd.api.types.is_integer_dtype
    records, ids = (pd.Index(i.to_numpy(), copy=False) if integer(i.dtype) else i for i in (records, ids))
    try:
        near = _find_nearby(records, ids)  # so that few records are hashed
    except UnicodeEncodeError:  # an id has half of a surrogate pair, which only objects can have
        return look_up(records.astype(object), ids, of)
    return np.append(near, -1)[records[near].get_indexer(ids)]


def _find_nearby(records: pd.Index, ids: pd.Index) -> IntArray:
    """Return the positions of all ids among records, and a few others, so that the lookup hashes few."""
    if not all(pd.api.types.is_integer_dtype(i.dtype) for i in (records, ids)):
        return np.flatnonzero(are_listed(records, ids))
    # a table that fits in the cache of a processor, with 32 slots or more for each id as long as it does
    bits = min(max(18, len(ids).bit_length() + 5), 24)

    def slot(numbers: NDArray[Any]) -> NDArray[np.uint64]:
        """Slot of each number by Fibonacci hashing: the first bits of a product that overflows."""
        # 2⁶⁴ over the golden ratio spreads neighbouring numbers over all slots
        product = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        product >>= np.uint64(64 - bits)
        return product

    marked = np.zeros(2**bits, dtype=np.bool_)
    marked[slot(ids.to_numpy())] = True
    numbers = records.to_numpy()
    parts = [a + np.flatnonzero(marked[slot(numbers[a : a + CHUNK])]) for a in range(0, len(numbers), CHUNK)]
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts])


def locate_all(listed: pd.Index, records: pd.Index) -> IntArray:
    """Return the position in `listed` of each of many records, (N,), -1 if it is not there."""
    same_kind(records, listed, "attributes")
    if (texts := as_texts(records)) is None or (among := as_texts(listed)) is None:
        return np.asarray(listed.get_indexer(records))
    return np.asarray(pc.index_in(texts, among).fill_null(-1), dtype=np.int64)
