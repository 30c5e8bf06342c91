"""Ids of records and clusters: which values can be one, and quick looks at many of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from .._internal import remedies
from .._internal.arrays import EXACT, BoolArray
from .._internal.errors import DataError, refuse_cases
from .._internal.tables import is_whole_decimal

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
        first = int(np.argmax(index.isna())) + 1
        raise DataError(
            f"{what}: {missing:,} of {len(index):,} are missing, the first in row {first:,} of the data: "
            "fill them in, or leave these rows out"
        )
    if isinstance(index, pd.CategoricalIndex):
        index = pd.Index(index.categories[index.codes])
    if is_whole_decimal(index):
        index = pd.Index([int(number) for number in index])
    # floats are no ids, even integral ones, since 2**53 and 2**53 + 1 are the same float
    if len(index) and kind(index) not in {"string", "integer"}:
        raise DataError(f"{what} must be all strings or all integers, not {_describe_other_kind(index)}")
    if not any_id and len(index) and isinstance(index[0], str):
        _refuse_rounded(index, what)
    return index


def _refuse_rounded(index: pd.Index, what: str) -> None:
    """Refuse texts such as 1.00001E+11."""
    with suppress(UnicodeEncodeError):  # half of a surrogate pair, which no spreadsheet writes
        texts = pa.array(index).cast(pa.large_string())
        # a look for plain text first, since a pattern takes ten times as long
        if pc.any(pc.match_substring(texts, "E+", ignore_case=True)).as_py():
            rounded = index[np.asarray(pc.match_substring_regex(texts, ROUNDED))]
            said = f"{what}: {{n}} of {len(index):,} are numbers that a spreadsheet rounded, such as"
            refuse_cases(rounded, said, ": export them as text", remedies.ANY_ID)


def _describe_other_kind(index: pd.Index) -> str:
    """Return what ids are that are neither strings nor integers, with the remedy if there is one."""
    if (known := kind(index)) == "floating":
        if large := int((np.abs(index.to_numpy(dtype=float)) >= EXACT).sum()):
            return (
                f"floating: {large:,} of them have lost digits; write them again as text where they come from"
            )
        return "floating: make integers or text of them (with pandas, ids.astype('Int64'))"
    types = {type(id).__name__ for id in index} if known == "mixed" else set()
    if types == {"tuple"}:
        return "tuple objects: of pairs of records, Clustering.from_pairs makes clusters"
    if types <= {"list", "set", "frozenset", "ndarray"} and types:
        return f"{types.pop()} objects: of groups of records, Clustering.from_groups makes clusters"
    return f"{types.pop()} objects: make text of each, str(id)" if len(types) == 1 else known


def kind(index: pd.Index) -> str:
    """Type of ids: "string", "integer", or another."""
    return pd.api.types.infer_dtype(index, skipna=False)


def need_one_kind(*indexes: pd.Index) -> None:
    """Refuse record ids of different types, none of which could match."""
    kinds = sorted({kind(index) for index in indexes if len(index)})
    if len(kinds) > 1:
        raise DataError(f"record ids are of types {' and '.join(kinds)}: convert them to one")


def are_listed(records: pd.Index, listed: pd.Index) -> BoolArray:
    """Return whether each record is listed, (N,)."""
    if all(len(i) and isinstance(i[0], str) for i in (records, listed)):
        with suppress(UnicodeEncodeError):  # half of a surrogate pair
            # Arrow looks up strings many times faster than pandas
            texts, among = (pa.array(i).cast(pa.large_string()) for i in (records, listed))
            return np.asarray(pc.is_in(texts, among))
    return records.isin(listed)


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
        refuse_cases(distinct[are_listed(distinct, none)], said, "", remedies.ANY_ID)


def find_nulls(sizes: Mapping[Any, int]) -> dict[Any, int]:
    """Return those of several clusters that are null ids of records without a cluster, with their sizes."""
    numbered = not sizes.keys().isdisjoint(DIGITS)
    ordinary = {*DIGITS, "0"} if numbered else set(DIGITS)
    # a single record is a cluster of its own, whatever its cluster is called
    return {id: size for id, size in sizes.items() if size > 1 and id not in ordinary}
