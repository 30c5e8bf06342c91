"""Tables of answers about pairs, and what is wrong with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..._internal.arrays import BoolArray, FloatArray, IntArray
from ..._internal.errors import DataError, head
from ..._internal.tables import NO, UNSURE, YES, need_table, refuse_names
from ...units.edges import Edges
from ...units.ids import ids
from ...units.lookup import look_up

FEWEST = 2
"""Labelled pairs of a band from which its share has a standard error."""
SPLINK = {"unique_id_l": "left", "unique_id_r": "right", "clerical_match_score": "same"}
"""Columns of Splink's tables of labels, by our names."""
NO_BANDS = (
    "answers have no column 'band': pairs chosen by hand or by active learning are not representative, and "
    "no weight makes them so; draw pairs by erbayes.pairs.draw_pairs or, if these were drawn uniformly in "
    "bands, name for each the threshold at which its band ends"
)


@dataclass(frozen=True, slots=True, eq=False)
class PairAnswers:
    """Labelled pairs: `left`, `right`, positions of both records; `band`, the threshold at which the band of
    each ends; `pairs`, how many its band has, 0 if the table does not say; `same`, 1, 0, or NaN. All (n,)."""

    table: pd.DataFrame
    left: IntArray
    right: IntArray
    band: FloatArray
    pairs: FloatArray
    same: FloatArray

    def refuse(self, wrong: BoolArray, said: str) -> None:
        """Refuse pairs with what is said of them."""
        if wrong.any():
            first = self.table.loc[wrong, ["left", "right"]].iloc[0].tolist()
            raise DataError(
                f"{wrong.sum():,} of {len(wrong):,} labelled pairs, such as {head(first)}, {said}"
            )


def read_pairs(answers: Any, edges: Edges) -> PairAnswers:
    """Return the pairs of a table with columns left, right, band and same, or raise DataError."""
    table = need_table(answers, "answers: expected a DataFrame or an Arrow table").reset_index(drop=True)
    table = table.rename(columns={theirs: own for theirs, own in SPLINK.items() if own not in table})
    if "band" not in table:
        raise DataError(NO_BANDS)
    refuse_names(["left", "right", "same"], list(table.columns), "the table of answers")
    if not len(table):
        raise DataError("the table of answers has no row")
    sides = [ids(table[side], f"column {side!r} of the answers") for side in ("left", "right")]
    left, right = (look_up(edges.records, side, of="edges") for side in sides)
    try:
        # Python reads a number to the last digit, so that it equals the one that was written
        band = np.array([float(x) for x in table["band"]], dtype=edges.score.dtype)
    except (TypeError, ValueError) as error:
        raise DataError(f"bands are thresholds, not such as {head(table['band'])}") from error
    counts = table.get("pairs", pd.Series(0.0, table.index))
    pairs = pd.to_numeric(counts, errors="coerce").fillna(-1).to_numpy(dtype=float)
    given = table["same"].astype(object).where(table["same"].notna(), "")
    words = given.map(lambda x: str(x).strip().lower().removesuffix(".0"))
    same = np.select([words.isin(YES), words.isin(NO)], [1.0, 0.0], np.nan)
    read = PairAnswers(table, left, right, band, pairs, same)
    read.refuse((left < 0) | (right < 0), "have a record that is not among all records")
    read.refuse(left == right, "are of a record with itself")
    twice = pd.Series(make_keys(left, right, len(edges.records))).duplicated().to_numpy()
    read.refuse(twice, "are there twice, perhaps reversed")
    said = "have no answer (write ? if nobody can tell, and leave out the last rows if nobody got to them)"
    read.refuse((words == "").to_numpy(), said)
    strange = ~words.isin(YES | NO | UNSURE).to_numpy()
    read.refuse(strange, f"have answers such as {head(given[strange].tolist())} and not y, n or ?")
    return read


def make_keys(left: IntArray, right: IntArray, N: int) -> IntArray:
    """Return a number for each unordered pair of positions, (n,)."""
    low, high = np.minimum(left, right).astype(np.int64), np.maximum(left, right)
    return np.asarray(low * N + high)
