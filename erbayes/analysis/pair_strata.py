"""Labelled pairs in strata: how answers are read, and intervals of precision and recall.

Let M_s be the pairs of stratum s, of which n_s are labelled and y_s of these right, with the share
μ_s = y_s/n_s, and let [l_s, u_s] be the exact interval of μ_s under draws without replacement: the values
K/M_s for all numbers K of right pairs that hypergeometric tests do not reject. With A = Σ M_s μ_s above
the threshold and B the same below it,

    precision = A / Σ_above M_s        recall = A / (A + B)

The limits of a sum are A - √Σ M_s²(μ_s - l_s)² and A + √Σ M_s²(u_s - μ_s)², and those of a ratio solve
A - r B ± √(...) = 0, which is quadratic (method of variance estimates recovery). A stratum without an error
keeps its uncertainty, which one effective sample size of all strata loses (see benchmarks/pairs.md).

References
----------
Zou and Donner (2008), Statistics in Medicine 27, 1693-1702 (sums). Donner and Zou (2012),
Statistical Methods in Medical Research 21, 347-359 (ratios). Buonaccorsi (1987),
The American Statistician 41, 215-218 (exact limits in a finite population). Cochran (1977), Sampling
Techniques, chapter 6 (linearised standard errors).
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import betaln

from .._internal.arrays import NO, UNSURE, YES, BoolArray, FloatArray, IntArray, need_table, refuse_names
from .._internal.errors import DataError, head
from ..units.edges import Edges
from ..units.ids import ids, look_up

FEWEST = 2
"""Labelled pairs of a band from which its share has a standard error."""
FEWEST_RIGHT = 5
"""Right answers from which recall has an estimate, since it divides by their number. If fewer stand for more
than half of all right pairs, an alarm says so. With 300 pairs of RLdata10000 and a clerk who errs in 5 %,
they did in 97 of 100 samples with bands down to the least score (a single answer in 17), and in none of 50
with bands down to -3."""


class Estimate(NamedTuple):
    """An estimate with its standard error and interval."""

    value: float
    se: float
    lower: float
    upper: float


NONE = Estimate(np.nan, np.nan, np.nan, np.nan)
"""No estimate."""


@dataclass(frozen=True, slots=True, eq=False)
class PairStrata:
    """Numbers of all, labelled and right pairs of each stratum, (S,), and which are above the threshold.

    `undecided`: pairs that nobody could decide, which are not among the labelled.
    """

    pairs: FloatArray
    labelled: FloatArray
    right: FloatArray
    above: BoolArray
    undecided: FloatArray | float = 0.0

    def decide(self, above: FloatArray | float, below: FloatArray | float) -> PairStrata:
        """Return strata whose undecided pairs are decided, of which shares above and below are right."""
        right = self.right + self.undecided * np.where(self.above, above, below)
        return PairStrata(self.pairs, self.labelled + self.undecided, right, self.above)

    @property
    def share(self) -> FloatArray:
        """Return the share of right pairs in each stratum, (S,)."""
        unknown = np.full_like(self.right, np.nan)
        return np.divide(self.right, self.labelled, out=unknown, where=self.labelled > 0)

    @property
    def unseen(self) -> FloatArray:
        """Return the share of each stratum that nobody has labelled, (S,)."""
        return 1 - self.labelled / self.pairs

    def limits(self, level: float) -> FloatArray:
        """Return exact intervals of the shares of right pairs, (2, S)."""
        tail = (1 - level) / 2
        counts = np.stack([self.pairs, self.labelled, self.right], axis=1).astype(np.int64).tolist()
        ends = [(find_fewest(M, n, y, tail), M - find_fewest(M, n, n - y, tail)) for M, n, y in counts]
        lower, upper = np.array(ends).T / self.pairs
        # the share may be between two numbers of pairs, which intervals of a low level would leave out
        return np.stack([np.minimum(lower, self.share), np.maximum(upper, self.share)])

    def variance(self) -> FloatArray:
        """Return the variance of the share of each stratum, (S,)."""
        return self.unseen * self.share * (1 - self.share) / np.maximum(self.labelled - 1, 1)


@cache
def find_fewest(M: int, n: int, y: int, tail: float) -> int:
    """Return the least number K of right pairs among M for which y or more of n are right by P > `tail`."""

    def chance(K: int) -> float:
        right = np.arange(y, min(n, K) + 1)
        return float(np.exp(_log_ways(K, right) + _log_ways(M - K, n - right) - _log_ways(M, n)).sum())

    return bisect_right(range(M), tail, y, M - n + y, key=chance)


def _log_ways(N: int, k: IntArray | int) -> FloatArray:
    """Return the logarithm of the number of ways to choose k of N pairs."""
    # scipy's hypergeometric tail takes seconds among 10¹² pairs
    return np.asarray(-np.log(N + 1) - betaln(N - k + 1, k + 1))


def _measure_reach(strata: PairStrata, level: float) -> FloatArray:
    """Return the distances down and up of A, then those of B, (2, 2)."""
    steps = (strata.pairs * (strata.limits(level) - strata.share)) ** 2
    return np.sqrt([[step @ side for step in steps] for side in (strata.above, ~strata.above)])


def estimate_precision(strata: PairStrata, level: float) -> Estimate:
    """Return the share of right pairs among those above the threshold."""
    of = strata.above
    strata = PairStrata(strata.pairs[of], strata.labelled[of], strata.right[of], of[of])
    total, right = strata.pairs.sum(), strata.pairs @ strata.share
    (down, up), _ = _measure_reach(strata, level)
    se = np.sqrt(strata.pairs**2 @ strata.variance())
    return Estimate(*(float(x / total) for x in (right, se, right - down, right + up)))


def estimate_recall(strata: PairStrata, level: float) -> Estimate:
    """Return the share of the right pairs that are above the threshold, if any pair is right."""
    right = strata.pairs * strata.share
    A, B = float(right @ strata.above), float(right @ ~strata.above)
    R = A / (A + B)
    (a_down, a_up), (b_down, b_up) = _measure_reach(strata, level)
    slope = np.where(strata.above, 1 - R, -R) * strata.pairs / (A + B)
    se = float(np.sqrt(slope**2 @ strata.variance()))
    # odds A/B = top/bottom become the share top/(top + bottom), which is finite where B is 0
    top, bottom = A**2 - a_down**2, A * B + _root(A, B, a_down, b_up)
    lower = top / (top + bottom) if top > 0 else 0.0
    top, bottom = A * B + _root(A, B, a_up, b_down), B**2 - b_down**2
    return Estimate(R, se, float(lower), float(top / (top + bottom) if bottom > 0 else 1.0))


def _root(A: float, B: float, a: float, b: float) -> float:
    return float(np.sqrt(max((A * B) ** 2 - (A**2 - a**2) * (B**2 - b**2), 0.0)))


def explain_strata(strata: PairStrata, recall: bool) -> str:
    """Return why strata identify no precision above the threshold, or no recall, or ""."""
    few = (strata.labelled < np.minimum(FEWEST, strata.pairs))[strata.above | recall]
    if not strata.above.any():
        return "no pair is joined there"
    if few.any():
        return (
            f"{few.sum()} of {len(few)} bands and parts of bands have fewer than {FEWEST} labelled pairs: "
            "choose a threshold at which a band ends, or draw pairs for this one"
        )
    right = int(strata.right.sum())
    if not recall or right >= FEWEST_RIGHT or (right > 0 and not strata.unseen.any()):
        return ""
    return f"{right} right answers are fewer than {FEWEST_RIGHT}"


SPLINK = {"unique_id_l": "left", "unique_id_r": "right", "clerical_match_score": "same"}
"""Columns of Splink's tables of labels, by our names."""
NO_BANDS = (
    "answers have no column 'band': pairs chosen by hand or by active learning are not representative, and "
    "no weight makes them so; draw pairs by erbayes.pairs.draw_pairs or, if these were drawn uniformly in "
    "bands, name for each the threshold at which its band ends"
)


def refuse_pairs(table: pd.DataFrame, wrong: BoolArray, said: str) -> None:
    """Refuse labelled pairs with what is said of them."""
    if wrong.any():
        first = table.loc[wrong, ["left", "right"]].iloc[0].tolist()
        raise DataError(f"{wrong.sum():,} of {len(wrong):,} labelled pairs, such as {head(first)}, {said}")


def read_pairs(
    answers: Any, edges: Edges
) -> tuple[pd.DataFrame, IntArray, IntArray, FloatArray, FloatArray, FloatArray]:
    """Return labelled pairs of a table with columns left, right, band and same, or raise DataError.

    These are the table and, all (n,), positions of both records; the threshold at which the band of each
    ends; how many pairs the band has, 0 if the table does not say; and `same`, 1, 0, or NaN.
    """
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
    twice = pd.Series(make_keys(left, right, len(edges.records))).duplicated()
    strange = ~words.isin(YES | NO | UNSURE)
    for wrong, said in (
        ((left < 0) | (right < 0), "have a record that is not among all records"),
        (left == right, "are of a record with itself"),
        (twice, "are there twice, perhaps reversed"),
        (words == "", "have no answer in 'same' (write ? if nobody can tell, and leave out others)"),
        (strange, f"have answers in 'same' such as {head(given[strange].tolist())} and not y, n or ?"),
    ):
        refuse_pairs(table, np.asarray(wrong), said)
    return table, left, right, band, pairs, same


def make_keys(left: IntArray, right: IntArray, N: int) -> IntArray:
    """Return a number for each unordered pair of positions, (n,)."""
    low, high = np.minimum(left, right).astype(np.int64), np.maximum(left, right)
    return np.asarray(low * N + high)
