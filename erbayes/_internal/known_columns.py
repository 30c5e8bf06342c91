"""Names that well-known matchers give to the columns of their tables."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .errors import DataError, Remedy, head

if TYPE_CHECKING:
    import pandas as pd

NAMES = {
    # Splink, Senzing, AWS Entity Resolution, FEBRL, Zingg; dedupe has no name for it
    "record": "uniqueid recordid recid zzid record id".split(),
    # Splink and dedupe's CSV, dedupe, Zingg, Senzing, AWS
    "cluster": "clusterid canonicalid zcluster resolvedentityid matchid cluster entityid".split(),
    "source": "sourcedataset datasource zsource zzsource inputsourcearn source dataset".split(),
    # Splink, recordlinkage, dedupe, Zingg
    "score": "matchweight matchprobability score weight probability prob proba similarity confidence "
    "confidencescore zscore".split(),
    # py_entitymatching and tables of answers
    "answer": "predicted prediction match ismatch samepair zismatch zprediction".split(),
    "entity": "entity entityid person personid truth".split(),
}
"""Names of matchers for columns of each meaning, as `plain` writes them; the first is preferred."""
PLAIN = (
    frozenset("1 true t yes y same l m".split()),
    frozenset("0 false f no n different distinct u p possible".split()),
)
"""Words for yes and no in columns of answers of a known name, as `plain` writes them."""
JUDGED = (
    frozenset(
        "match matched duplicate link linked positive confirmed accepted accept approved merged".split()
    ),
    frozenset(
        "nonmatch nomatch notmatch possiblematch nonlink nolink notlink unlinked possiblelink negative "
        "unsure undecided rejected reject declined distinct different".split()
    ),
)
"""Words of judgement about pairs, which say what a column is whatever its name."""
RIVAL = re.compile(r"(match|dedup|cluster|entity|golden|canonical)(group|id|set|cluster)?")
"""Names, as `plain` writes them, that clusters may have next to a column of clusters by a known name."""
DISTANCE = re.compile(r".*(dist|distance|dissimilarity|levenshtein)")
"""Names, as `plain` writes them, of measures that are smaller for likelier matches."""
ENDING = re.compile(
    r"(?P<beginning>.*?)(?P<minus>(?<![^\W_])-|minus_)?(?P<number>\d+([._]\d+)?(e-?\d+)?|inf)", re.IGNORECASE
)
"""A name that ends in a number, as cluster_p_0_95 and cluster_mw_-2_5 of Splink do; "t-2" has no minus."""
JOIN = "-__-"
"""What joins source and id of records whose ids are unique in their source alone, as in Splink."""
IN_SOURCE = " in its source"
"""The end of the name of a column of such ids, next to the joined ones."""


def plain(name: Any) -> str:
    """Return a name in small letters and digits alone."""
    return re.sub(r"[^a-z0-9]", "", str(name).lower())


def find_known(columns: Iterable[Any], meaning: str) -> list[Any]:
    """Return the columns whose names matchers give to a meaning, the preferred first."""
    known = NAMES[meaning]
    return sorted((c for c in columns if plain(c) in known), key=lambda c: known.index(plain(c)))


def join_ids(source: pd.Series, ids: pd.Series) -> pd.Series:
    """Return source and id of each record as one text, (rows,), and refuse sources in which `JOIN` occurs."""
    if (inside := source.str.contains(JOIN, regex=False)).any():
        raise DataError(
            f"{int(inside.sum()):,} sources hold {JOIN!r}, which joins source and id: call them otherwise"
        )
    joined: pd.Series = source + JOIN + ids
    return joined


def find_thresholds(columns: Iterable[Any]) -> dict[float, Any]:
    """Return columns of clusters by the thresholds that end their names, none if there are not two or more.

    The same is before all of them: nothing, or a word for clusters. It is asked about other words, and about
    whole numbers, which may be of releases, unless the word says thresholds or weights.
    """
    found: dict[str, list[tuple[float, Any]]] = {}
    for column in columns:
        if match := ENDING.fullmatch(str(column)):
            number = float(match["number"].replace("_", ".")) * (-1 if match["minus"] else 1)
            # Splink writes cluster_p_0_5, but cluster_0_0 and cluster_1_0
            found.setdefault(plain(match["beginning"]).removesuffix("p"), []).append((number, column))
    found = {word: some for word, some in found.items() if len(some) > 1}
    of_clusters = [w for w in found if not w or w.startswith((*NAMES["cluster"], "threshold"))]
    fractions = {w for w, some in found.items() if any(number % 1 for number, _ in some)}
    clear = [w for w in of_clusters if w in fractions or w.endswith(("threshold", "mw", "weight"))]
    if len(of_clusters) == len(clear) == 1 and len(by_number := dict(found[clear[0]])) == len(
        found[clear[0]]
    ):
        return by_number
    if asked := of_clusters or sorted(fractions):
        shown = head([column for word in asked for _, column in found[word]], 6)
        raise DataError(
            f"it is not clear at which thresholds {shown} have clusters",
            Remedy(
                "name the column of each", "at={0.9: 'column', 0.5: 'another'}", "--at 0.9=COLUMN,0.5=ANOTHER"
            ),
        )
    return {}
