"""Look-ups of record ids among others, which must be of the same type."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .._internal.arrays import IntArray
from .._internal.errors import DataError
from .ids import are_listed, kind

CHUNK = 2**15
"""Number of ids that are looked at together, as many as fit in the processor's cache."""


def same_kind(
    first: str, other: str, what: str = "labels", ids: str = "record ids of the prediction"
) -> None:
    """Refuse ids of different types, those of the prediction, or other `ids`, and those of `what`."""
    if first != other:
        raise DataError(
            f"{ids} are of type {first}, those of the {what} of type {other}: none could match; make text "
            "of both, ids.astype(str)"
        )


def unite_ids(first: pd.Index, second: pd.Index) -> pd.Index:
    """Return two Indexes of one type of ids as one Index."""
    if not pd.api.types.is_object_dtype(first):
        return first.append(second.astype(first.dtype))
    # `append` would make text of objects, which half of a surrogate pair is not
    both: pd.Index = pd.Index(np.concatenate([first.to_numpy(), second.to_numpy()]), dtype=object)
    return both


def look_up(records: pd.Index, ids: pd.Index, of: str = "prediction") -> IntArray:
    """Return the position of each id in `records`, -1 if it is not there."""
    if len(records) and len(ids):
        same_kind(kind(records), kind(ids), ids=f"record ids of the {of}")
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
    if len(listed) and isinstance(listed[0], str) and kind(records) == "string":
        with suppress(UnicodeEncodeError):  # half of a surrogate pair
            texts, among = (pa.array(i).cast(pa.large_string()) for i in (records, listed))
            return np.asarray(pc.index_in(texts, among).fill_null(-1), dtype=np.int64)
    if len(listed) and len(records):
        same_kind(kind(records), kind(listed), "attributes")
    return np.asarray(listed.get_indexer(records))
