"""Candidates: records outside the predicted cluster of a drawn record that may belong to its entity.

An annotator answers about candidates, and adds what is missing. A match that is no candidate, and that nobody
finds by other means, counts as not there. Estimates of recall are then too high.

Candidates of equal score are in a random order, which the seed of the draws fixes. A limit thus leaves out
those of low score and, among equals, those that chance names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from .._internal.arrays import FloatArray, IntArray, as_text, locate, refuse_names, to_frame
from .._internal.errors import DataError, head, import_extra, need, refuse_cases, whole
from .._internal.names import IN_SOURCE, find_known
from ..units.clustering import Clustering
from ..units.ids import as_index, ids, same_kind
from ..units.reading import Reading
from .drawn import RecordDraws
from .labelling_tasks import drawn_records, locate_attributes

COLUMNS = ["record", "candidate", "score", "why"]
"""Columns of every table of candidates."""
CELLS = 4_000_000
"""Pairs of a drawn record and a row of the table that are scored at once."""
STOCK = 200_000
"""Rows of a sample of the table, at most, by which rarity of values is estimated."""
CHANCE = 2**32 - 2
"""Stream of random numbers for the order of candidates of equal score, which no stratum's number reaches."""
POWER = 3
"""Exponent of the similarity of two texts. It makes one equal value count more than two half-equal ones."""


def from_clustering(drawn: RecordDraws, looser: Any) -> pd.DataFrame:
    """Return the other records of the cluster that a looser clustering puts each drawn record in.

    Parameters
    ----------
    drawn : RecordDraws
    looser : memberships
        A clustering with larger clusters than the prediction, such as one at a lower threshold.

    Returns
    -------
    DataFrame
        Columns record (the drawn one), candidate, score (here 1) and why, as of all candidates. Records of
        the predicted cluster are left out.

    Examples
    --------
    >>> from erbayes.labels import Records, draw
    >>> drawn = draw({"r1": "a", "r2": "a", "r3": "b"}, Records(), n=1, seed=5)
    >>> from_clustering(drawn, {"r1": 0, "r2": 0, "r3": 0}).values.tolist()
    [['r2', 'r3', 1.0, 'looser clustering']]
    """
    clustering = Clustering.of(looser, "looser clustering")
    queries = _queries(drawn)
    same_kind(queries, clustering.records, "looser clustering", "ids of drawn records")
    are = "drawn records are missing in the looser clustering"
    home = clustering.codes[locate(clustering.records, queries, are, of=len(queries))]
    near = np.isin(clustering.codes, home)
    others = pd.DataFrame({"candidate": clustering.records[near], "home": clustering.codes[near]})
    table = pd.DataFrame({"record": queries, "home": home, "score": 1.0}).merge(others, on="home")
    return _rank_candidates(drawn, table, "looser clustering")


def from_pairs(drawn: RecordDraws, pairs: Any, score: str, limit: int | None = None) -> pd.DataFrame:
    """Return the records that scored pairs join with each drawn record, the best first.

    Parameters
    ----------
    drawn : RecordDraws
    pairs : DataFrame or Arrow table
        Two columns of record ids and the column of scores, one row per pair. The drawn record is on either
        side. Of a pair that occurs again the best score counts.
    score : str
        The column of scores. A higher score is a likelier match.
    limit : int, optional
        The number of candidates per drawn record, at most: the best, and by chance among equals.

    Examples
    --------
    >>> from erbayes.labels import Records, draw
    >>> drawn = draw({"r1": "a", "r2": "a", "r3": "b"}, Records(), n=1, seed=5)
    >>> pairs = pd.DataFrame({"l": ["r1", "r3"], "r": ["r2", "r2"], "weight": [9.5, 1.5]})
    >>> from_pairs(drawn, pairs, "weight").values.tolist()
    [['r2', 'r3', 1.5, 'scored pair']]
    """
    frame = to_frame(pairs)
    refuse_names([score], list(frame.columns), "the table of pairs")
    ends = frame.drop(columns=score)
    if ends.shape[1] != 2:
        raise DataError(
            f"the pairs need two columns of records next to {score!r}; they have {head(ends.columns, 20)}"
        )
    scores = Reading(table=frame, ids=tuple(ends), other=score, what="pairs").scores().astype(float)
    queries = _queries(drawn)
    sides = [ids(ends.iloc[:, i], f"column {ends.columns[i]!r} of the pairs") for i in (0, 1)]
    for side in sides:
        same_kind(queries, side, "records of the pairs", "ids of drawn records")
    both = [
        pd.DataFrame({"record": one, "candidate": other, "score": scores})[one.isin(queries)]
        for one, other in (sides, sides[::-1])
    ]
    return _rank_candidates(drawn, pd.concat(both, ignore_index=True), "scored pair", limit)


def by_text(
    drawn: RecordDraws, table: Any, columns: Sequence[str] | None = None, limit: int = 20
) -> pd.DataFrame:
    """Search a table for the records whose text is most like that of each drawn record.

    The score of a candidate is the sum of s³ log(1/q) over columns. s is the similarity of the two values: 1
    minus their insertions and deletions per character (rapidfuzz's `Indel`). q is the share of records whose
    value is as similar to the drawn one, or more. So a rare value that both have counts much, and a common
    one little. A missing value of either record counts nothing. Case and punctuation do not matter. Records
    that have nothing in common with the drawn one are left out, and the best come first.

    Parameters
    ----------
    drawn : RecordDraws
    table : DataFrame, or object with an Arrow C stream
        Attributes of all records of the prediction, with a column of their ids.
    columns : sequence of str, optional
        The columns to compare; by default all but that of records and those that are called ids or
        sources, as in tables of matchers.
    limit : int
        The number of candidates per drawn record, at most: the best, and by chance among equals.

    Raises
    ------
    DataError
        rapidfuzz is not installed, or drawn records are not there once.

    Examples
    --------
    >>> from erbayes.labels import Records, draw
    >>> drawn = draw({"r1": "a", "r2": "a", "r3": "b", "r4": "c"}, Records(), n=1, seed=5)
    >>> names = pd.DataFrame({"record": ["r1", "r2", "r3", "r4"], "name": ["Lee", "Li", "Leee", "Oz"]})
    >>> by_text(drawn, names)[["record", "candidate"]].values.tolist()
    [['r2', 'r3']]
    """
    limit = whole(limit, "limit")
    queries = _queries(drawn)
    frame, records, at = locate_attributes(table, queries, "drawn")
    names = list(frame.columns)
    # ids that are alike say nothing of the persons
    known = {name for meaning in ("record", "cluster", "source") for name in find_known(names, meaning)}
    telling = [name for name in names if name not in known and not str(name).endswith(IN_SOURCE)]
    named = telling or names if columns is None else list(columns)
    refuse_names(named, names, "the table of attributes")
    texts = [_Texts(frame[column], at) for column in named]
    home_of_row, home_of_query = (_number_homes(drawn, index) for index in (records, queries))
    chance = np.random.default_rng([drawn.seed, CHANCE]).random(len(records))
    best = []
    step = max(CELLS // len(records), 1)
    for start in range(0, len(queries), step):
        some = slice(start, start + step)
        scores = np.sum([text.scores(some) for text in texts], axis=0)
        # tasks show the records of the same predicted cluster anyway
        scores[home_of_query[some, None] == home_of_row] = 0
        query, row = _find_best(scores, chance, limit)
        best.append((start + query, row, scores[query, row]))
    query, row, score = (np.concatenate(arrays) for arrays in zip(*best, strict=True))
    table = pd.DataFrame({"record": queries[query], "candidate": records[row], "score": score})
    return _rank_candidates(drawn, table, "text", limit)


def interleaved(*candidates: pd.DataFrame, limit: int | None = None) -> pd.DataFrame:
    """Merge tables of candidates of the same draws: the best of each table, then the second best, and so on.

    A candidate stands once per drawn record, with the score and the reason where it ranks highest.

    Parameters
    ----------
    *candidates : DataFrame
        As the other functions return them. Scores of different tables need not be comparable.
    limit : int, optional
        The number of candidates per drawn record, at most.

    Examples
    --------
    >>> text = pd.DataFrame({"record": "r1", "candidate": ["a", "b"], "score": [9.0, 8.0], "why": "text"})
    >>> loose = pd.DataFrame({"record": "r1", "candidate": ["b", "c"], "score": 1.0, "why": "looser"})
    >>> interleaved(text, loose)["candidate"].tolist()
    ['a', 'b', 'c']
    """
    if not candidates:
        raise DataError("there are no candidates to merge")
    for table in candidates:
        need(table, pd.DataFrame, "candidates are a DataFrame")
        refuse_names(COLUMNS, list(table.columns), "a table of candidates")
    place = [table.groupby("record", sort=False).cumcount() for table in candidates]
    merged = pd.concat(candidates).assign(place=np.concatenate(place))
    merged["order"] = pd.factorize(merged["record"])[0]
    return _take_best(merged.sort_values(["order", "place"], kind="stable"), limit)


def _queries(drawn: RecordDraws) -> pd.Index:
    need(drawn, RecordDraws, "candidates need draws, as `draw` returns them")
    return as_index(drawn_records(drawn)["record"])


def _number_homes(drawn: RecordDraws, records: pd.Index) -> IntArray:
    """Return the number of each record's predicted cluster, (n,): -1 for one without a drawn record."""
    members, queries = as_index(drawn.members["record"]), _queries(drawn)
    remedy = ": draws that are read from files need the table of their members"
    refuse_cases(queries[~queries.isin(members)], "drawn records have no members", remedy, of=len(queries))
    codes = np.append(pd.factorize(drawn.members["cluster"])[0], -1)  # the position -1 leads to a -1
    return np.asarray(codes[members.get_indexer(records)])


def _rank_candidates(
    drawn: RecordDraws, table: pd.DataFrame, why: str, limit: int | None = None
) -> pd.DataFrame:
    """Return the candidates outside the predicted cluster, each once, by drawn record and falling score."""
    home, other_home = (_number_homes(drawn, as_index(table[side])) for side in ("record", "candidate"))
    table = table[home != other_home]
    # among equal scores chance decides, because the order of a table may favour some records
    table = table.assign(
        why=why,
        order=_queries(drawn).get_indexer(as_index(table["record"])),
        falling=-table["score"],
        chance=np.random.default_rng([drawn.seed, CHANCE]).random(len(table)),
    )
    return _take_best(table.sort_values(["order", "falling", "chance"]), limit)


def _take_best(table: pd.DataFrame, limit: int | None) -> pd.DataFrame:
    """Return the first rows of each drawn record, each candidate once."""
    table = table.drop_duplicates(["record", "candidate"])
    if limit is not None:
        table = table.groupby("record", sort=False).head(whole(limit, "limit"))
    return table[COLUMNS].reset_index(drop=True)


class _Texts:
    """A column of the table, and what it adds to the scores of the drawn records, which are the rows `at`."""

    def __init__(self, column: pd.Series, at: IntArray) -> None:
        try:
            codes, values = pd.factorize(column)
        except TypeError:  # lists cannot be hashed
            codes, values = pd.factorize(column.map(as_text))
        self._fuzz = import_extra("rapidfuzz", "a search by text needs rapidfuzz", "search")
        texts = [self._fuzz.utils.default_process(as_text(value) or "") or None for value in values]
        # codes of distinct texts, -1 for a missing one
        of_value, distinct = pd.factorize(np.array(texts, dtype=object))
        self._codes, self._texts = np.append(of_value, -1)[codes], list(distinct)
        self._of_query = self._codes[at]
        stock = self._codes[:: 1 + (len(column) - 1) // STOCK]
        self._sampled, self._stock = len(stock), np.bincount(stock[stock >= 0], minlength=len(distinct))

    def scores(self, some: slice) -> FloatArray:
        """Return what the column adds to the scores of some of the drawn records, (records, rows)."""
        codes, place = np.unique(self._of_query[some], return_inverse=True)
        values = np.zeros((len(codes), len(self._texts) + 1))  # the code -1 of a missing value leads to a 0
        drawn = [self._texts[code] for code in codes if code >= 0]
        scorer, alike = self._fuzz.distance.Indel.normalized_similarity, self._fuzz.process.cdist
        percents = alike(drawn, self._texts, scorer=scorer, score_multiplier=100, dtype=np.uint8, workers=-1)
        # a missing value has the first code
        for k, percent in enumerate(percents, len(codes) - len(drawn)):
            # as in inverse document frequency: a similarity that many sampled values reach has little weight
            as_similar = np.bincount(percent, self._stock, minlength=101)[::-1].cumsum()[::-1]
            rarity = np.log(self._sampled / np.maximum(as_similar, 1))
            values[k, :-1] = ((np.arange(101) / 100) ** POWER * rarity)[percent]
        return np.asarray(values[place][:, self._codes])


def _find_best(scores: FloatArray, chance: FloatArray, limit: int) -> tuple[IntArray, IntArray]:
    """Return query and row of the `limit` best scores above 0 of each query, by chance if they are equal."""
    least = np.full(len(scores), np.finfo(float).tiny)
    if scores.shape[1] > limit:  # without it all rows would be sorted
        least = np.maximum(least, -np.partition(-scores, limit - 1)[:, limit - 1])
    query, row = np.nonzero(scores >= least[:, None])
    order = np.lexsort((chance[row], -scores[query, row], query))
    query, row = query[order], row[order]
    first = pd.Series(query).groupby(query).cumcount().to_numpy() < limit
    return query[first], row[first]
