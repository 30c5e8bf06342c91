"""A look at ids: digits that were lost, blanks at ends, one word for all records without a match."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from .._internal import remedies
from .._internal.arrays import EXACT, IntArray
from .._internal.errors import DataError, Remedy, refuse_cases
from .._internal.known_columns import find_known

CHANCE_BITS = 12
"""Bits of numbers that are 0 by chance once in 4,096 files."""
EXAMINED = 64
"""Numbers that are looked at for lost digits."""


def columns_that_tell(attributes: pd.DataFrame, clusters: IntArray | None = None) -> list[Any]:
    """Return the columns of attributes that tell a prediction to annotators.

    These are clusters and scores by their names and, if the `clusters` of all rows are known, (rows,), what
    is equal exactly where these are, and their sizes. A function of the cluster, such as a block, is needed.
    """
    told = [*find_known(attributes.columns, "cluster"), *find_known(attributes.columns, "score")]
    if clusters is None or not len(clusters):
        return told
    codes = pd.factorize(clusters)[0]
    size = np.bincount(codes)[codes]
    for column in attributes.columns.difference(told, sort=False):
        other = pd.factorize(attributes[column])[0]
        same = len(np.unique(other)) == len(np.unique(codes)) < len(codes) and not (other < 0).any()
        numbers = pd.to_numeric(attributes[column], errors="coerce").to_numpy()
        pairs = pd.DataFrame({"one": codes, "other": other})
        if (same and len(pairs.drop_duplicates()) == len(np.unique(codes))) or (
            size.max() > 1 and np.array_equal(numbers, size)
        ):
            told.append(column)
    return [c for c in attributes.columns if c in told]


def count_cased(clusters: pd.Index) -> int:
    """Return how many ids of clusters differ from those of others in case only."""
    if not len(clusters) or not isinstance(clusters[0], str):
        return 0
    with suppress(UnicodeEncodeError):
        texts = pa.array(clusters).cast(pa.large_string())
        if not (lower := pc.utf8_lower(texts)).equals(texts):
            return len(clusters) - int(pc.count_distinct(lower).as_py())
    return 0


def refuse_lost_digits(distinct: pd.Index, what: str) -> None:
    """Refuse integers from 2**53 on that all are floats, as numbers are that once were."""
    if not pd.api.types.is_integer_dtype(distinct):
        return
    numbers = distinct.to_numpy()
    large = numbers[np.abs(numbers.astype(float)) >= EXACT]
    some = [int(x) for x in large[:EXAMINED]]
    spare = sum(x.bit_length() - EXACT.bit_length() + 1 for x in some)
    if some and spare >= CHANCE_BITS and all(int(float(x)) == x for x in some):
        said = (
            f"{what}: {{n}} of {len(numbers):,} numbers have lost digits, as floats do from 2**53 on, such as"
        )
        refuse_cases(
            pd.Index(large), said, ": write them again as text where they come from", remedies.ANY_ID
        )


def refuse_blanks(distinct: pd.Index, what: str, records: pd.Index | None = None) -> None:
    """Refuse ids that are there with and without blanks at their ends; clusters may be called as records."""
    if not len(distinct) or not isinstance(distinct[0], str):
        return
    with suppress(UnicodeEncodeError):  # half of a surrogate pair
        texts = pa.array(distinct).cast(pa.large_string())
        bare = pc.utf8_trim_whitespace(texts)
        trimmed = np.asarray(pc.not_equal(texts, bare))
        if trimmed.any():
            stripped = pd.Index(bare.to_pandas())
            twice = distinct[stripped.duplicated(keep=False) & trimmed]
            twice = twice if records is None else twice[~twice.isin(records)]
            remove = Remedy("remove them", "ids.str.strip()", "--strip")
            said = (
                f"{what}: {{n}} of {len(distinct):,} are there without the blanks at their ends too, such as"
            )
            refuse_cases(twice, said, "", remove, remedies.ANY_ID)


def refuse_word_for_none(clusters: pd.Index, sizes: IntArray, records: pd.Index, what: str) -> None:
    """Refuse a largest cluster whose id alone has no digit: it may be a word for records without a match."""
    if len(clusters) < 3 or not isinstance(clusters[0], str):
        return
    largest = int(np.argmax(sizes))
    if np.count_nonzero(sizes == sizes[largest]) > 1:
        return
    word = str(clusters[largest])
    with suppress(UnicodeEncodeError):
        texts = pa.array(clusters).cast(pa.large_string())
        digits = np.asarray(pc.match_substring_regex(texts, r"\d"))
        if not digits[largest] and digits.sum() == len(digits) - 1 and word not in records:
            raise DataError(
                f"{what}: {word!r} has {int(sizes[largest]):,} records, and is the only one without a "
                "number: is it a word for records without a match?",
                Remedy(
                    "give each of these records a cluster of its own",
                    f"clusters.mask(clusters == {word!r}, records)",
                    f"--alone {word}",
                ),
                remedies.ANY_ID,
            )
