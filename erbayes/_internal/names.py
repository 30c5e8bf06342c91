"""Names: those that stubs list, those nearest to a wrong one, and those that matchers give to columns."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
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


def read_stub(module: str) -> dict[str, str]:
    """Return the path of each name that the stub next to a module's file imports.

    `from .design import Stratified as Stratified` gives the name Stratified the path ".design.Stratified".
    """
    import ast  # not above, so that `import erbayes` does not wait for it

    stub, paths = Path(module).with_suffix(".pyi"), dict[str, str]()
    for node in ast.parse(stub.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            home = "" if isinstance(node, ast.Import) else f"{'.' * node.level}{node.module or ''}"
            dot = "." if home.strip(".") else ""
            paths |= {alias.asname or alias.name: f"{home}{dot}{alias.name}" for alias in node.names}
    return paths


class LazyModule:
    """A module that is loaded when an attribute of it is first used."""

    def __init__(self, path: str, package: str) -> None:
        self._path, self._package = path, package

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._path, self._package), name)


PASSED_ON = frozenset(["columns", "head", "iloc", "loc", "tail"])
"""What a result takes from its table, next to columns and all of `to_csv`, `to_latex` and so on."""


def suggest_name(name: str, names: Iterable[str]) -> str:
    """Return the end of an error about a name that is missing: the nearest one, if any is near."""
    from difflib import get_close_matches  # not above, so that `import erbayes` does not wait for it

    # `talbe` is .8 like `table`, and words of other packages are .6 like some of ours
    near = get_close_matches(name, [*names], 1, 0.75)
    return f"; did you mean {near[0]!r}?" if near else ""


class Nearest:
    """A result that has columns and conversions of its table, such as `to_csv`, as attributes.

    It names the nearest attribute where it has none, since notebooks do not print Python's own suggestions.
    """

    __slots__ = ()

    if not TYPE_CHECKING:  # so that type checkers still refuse names that are wrong

        def __getattr__(self, name: str) -> Any:
            """Return what the table has under this name, or refuse it with the nearest one."""
            kind = type(self)
            # a name of the class comes here if it is not set yet, or if a property has failed
            if (
                name.startswith("_")
                or hasattr(kind, name)
                or name in getattr(kind, "__dataclass_fields__", ())
            ):
                return object.__getattribute__(self, name)
            with suppress(ValueError):  # as a DataError is
                if hasattr(kind, "table"):
                    table = self.table()
                    if name in table:
                        return table[name]
                    if name in PASSED_ON or (name.startswith("to_") and hasattr(table, name)):
                        return getattr(table, name)
            said = suggest_name(name, (known for known in dir(self) if not known.startswith("_")))
            # without the object, in which the interpreter would look for a second suggestion
            raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}{said}", name=name)
