"""Two annotators of the same mentions: agreement, disagreements, bounds, and the share that both missed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..._internal.arrays import BoolArray, FloatArray, IntArray
from ..._internal.errors import need, refuse_cases
from ..._internal.tables import locate, refuse_names
from ...design import KnownWeights
from ...design.sample import Sample
from ...engine.fitted import fit_sample
from ...metrics.columns import OfUnits
from ...metrics.definitions import UNIT, Metric
from ...metrics.uncertain import Normal
from ...units.clustering import Clustering
from ...units.ids import ids
from ...units.measuring import measure
from ...units.units import Units
from .rates import Recaptured

PER_LINK = np.reciprocal
"""Weight 1/size of an entity, if draws are proportional to size."""


def answers(labels: Any, mentions: Any) -> pd.DataFrame:
    """Table of one annotator's answers, for `AnnotatorPair.of`: mention, and each record of its entity.

    Parameters
    ----------
    labels : memberships
        Entity of each labelled record, by this annotator.
    mentions : sequence of record ids
        The sampled mentions, each once.

    Examples
    --------
    >>> answers({1: "x", 2: "x", 3: "y"}, [2]).to_numpy().tolist()
    [[2, 1], [2, 2]]
    """
    labels, mentions = Clustering.of(labels, "labels"), ids(mentions, "mentions")
    position = locate(labels.records, mentions, "mentions have no label", of=len(mentions))
    refuse_cases(mentions[mentions.duplicated()], "mentions are listed twice")
    members = pd.DataFrame({"entity": labels.codes, "record": labels.records})
    entities = pd.DataFrame({"mention": mentions, "entity": labels.codes[position]})
    return entities.merge(members, on="entity")[["mention", "record"]]


@dataclass(frozen=True, slots=True, eq=False)
class AnnotatorPair:
    """Two annotators' answers about the same sampled mentions. `AnnotatorPair.of` makes one.

    Attributes
    ----------
    mentions : Index, (n,)
    table : DataFrame
        One row per mention and record, for the records of home and of either answer. Columns: mention (its
        position), record, cluster (its code), m (the cluster's size), home (whether the cluster is home),
        first and second (whether the record is in this annotator's answer).
    prediction : Clustering

    Examples
    --------
    >>> prediction = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c"}
    >>> first, second = answers({1: "x", 2: "x", 3: "x"}, [1]), answers({1: "x", 3: "x"}, [1])
    >>> pair = AnnotatorPair.of(first, second, prediction)
    >>> pair.disagreements()[["kind", "records", "examples"]].to_numpy().tolist()
    [['kept by the first only', 1, '2']]
    >>> pair.units(kept=np.logical_or).size, pair.units(kept=np.logical_and).size
    (array([3.]), array([2.]))
    """

    mentions: pd.Index
    table: pd.DataFrame
    prediction: Clustering

    @classmethod
    def of(cls, first: pd.DataFrame, second: pd.DataFrame, prediction: Any) -> AnnotatorPair:
        """Make a pair from two tables of `answers`, and from the prediction that both started from."""
        prediction = Clustering.of(prediction, "prediction")
        mentions = _list_mentions(first, second)
        home = prediction.codes[locate(prediction.records, mentions, "mentions are not in the prediction")]
        rows = _join_answers(first, second, mentions, home, prediction)
        are = "records of the answers are not in the prediction"
        cluster = prediction.codes[locate(prediction.records, pd.Index(rows["record"]), are)]
        mention = mentions.get_indexer(pd.Index(rows["mention"]))
        table = pd.DataFrame(
            {
                "mention": mention,
                "record": rows["record"].array,
                "cluster": cluster,
                "m": prediction.sizes[cluster],
                "home": cluster == home[mention],
                "first": rows["first"].eq(True).to_numpy(),
                "second": rows["second"].eq(True).to_numpy(),
            }
        )
        return cls(mentions, table, prediction)

    def _count_chosen(self, chosen: BoolArray) -> FloatArray:
        """Return the number of chosen rows of each mention, (n,)."""
        return np.bincount(self.table["mention"], weights=chosen, minlength=len(self.mentions))

    def agreement(self, weight: Callable[[FloatArray], FloatArray] = PER_LINK) -> Normal:
        """Estimate how far the annotators agree in the population.

        There are four shares. Let a, b and c be the records of an entity in the first answer, in the second
        and in both. Let N = (a + b)/2 be its size, and w = w(N) its weight.

        - *identical-entities*, the share of entities with the same answer: Σ w 1[a = b = c] / Σ w.
        - *identical-records*, the share of records in such entities: Σ w N 1[a = b = c] / Σ w N.
        - *jaccard*, the share of records in both answers: Σ w N c/(a + b - c) / Σ w N.
        - *links*, Dice's coefficient of links: 2 Σ w C2(c) / Σ w (C2(a) + C2(b)).

        Parameters
        ----------
        weight : callable
            Weight of an entity of N records, as an array function. It is 1/N if mentions were drawn
            uniformly, and `numpy.ones_like` if entities were.
        """
        first, second = self.table["first"].to_numpy(), self.table["second"].to_numpy()
        a, b, c = self._count_chosen(first), self._count_chosen(second), self._count_chosen(first & second)
        N = (a + b) / 2
        same = ((a == c) & (b == c)).astype(float)
        shares = {
            "identical-entities": (same, np.ones_like(N)),
            "identical-records": (same * N, N),
            "jaccard": (c / (a + b - c) * N, N),
            "links": (c * (c - 1), (a * (a - 1) + b * (b - 1)) / 2),
        }
        metrics = [
            _make_share(name, *(pd.Series(x, self.mentions) for x in parts)) for name, parts in shares.items()
        ]
        position = np.arange(len(N))  # units of one piece each, whose columns are the values above
        units = Units(self.mentions, position, position, N, N, N, position, None)
        design = KnownWeights(pd.Series(weight(N), index=self.mentions))
        return fit_sample(Sample(units, design), metrics).estimates

    def units(
        self,
        found: Callable[[BoolArray, BoolArray], BoolArray] = np.logical_or,
        kept: Callable[[BoolArray, BoolArray], BoolArray] = np.logical_and,
    ) -> Units:
        """Make units from both answers, one per mention.

        The default is strictest on the prediction: it counts every error that either annotator saw. With
        `found=np.logical_and` and `kept=np.logical_or` it is most lenient.

        Parameters
        ----------
        found, kept : callables
            Rules by which records belong to the entity: outside home, and in home. Each takes whether records
            are in the first answer and in the second, two bool arrays.
        """
        t = self.table
        first, second, home = (t[c].to_numpy() for c in ("first", "second", "home"))
        chosen = np.where(home, kept(first, second), found(first, second))
        chosen |= t["record"].to_numpy() == self.mentions[t["mention"]].to_numpy()
        pieces = t[chosen].groupby(["mention", "cluster"]).agg(n=("record", "size"), m=("m", "first"))
        unit, cluster = (pieces.index.get_level_values(i).to_numpy(np.int64) for i in (0, 1))
        n = pieces["n"].to_numpy(float)
        known = measure(self.prediction, {self.mentions[0]: "x"}).known
        N, m = np.bincount(unit, weights=n)[unit], pieces["m"].to_numpy(float)
        return Units(self.mentions, unit, unit, n, N, m, cluster, known)

    def disagreements(self) -> pd.DataFrame:
        """Table of disagreements by mention, cluster and kind, those with most links first."""
        t = self.table
        common = self._count_chosen((t["first"] & t["second"]).to_numpy())
        differing = t[t["first"] != t["second"]]
        who = differing["first"].map({True: " by the first only", False: " by the second only"})
        kind = differing["home"].map({True: "kept", False: "found"}) + who
        by_kind = differing.assign(kind=kind).groupby(["mention", "cluster", "kind"], as_index=False)
        groups = by_kind.agg(records=("record", "size"), examples=("record", _list_examples))
        groups["links"] = groups["records"] * (common[groups["mention"]] + (groups["records"] - 1) / 2)
        groups["mention"] = self.mentions[groups["mention"]]
        groups["cluster"] = self.prediction.clusters[groups["cluster"]]
        groups = groups.sort_values("links", ascending=False, kind="stable", ignore_index=True)
        return groups[["mention", "cluster", "kind", "records", "links", "examples"]]

    def counts(self) -> pd.DataFrame:
        """Count the records found outside home, and those removed from home: by both, and by one alone.

        Records of one mention and cluster were judged together. They count as (Σ records)²/Σ records²
        `cases`.
        """
        t = self.table
        found, removed = t[~t["home"]], t[t["home"]]
        removed = removed.assign(first=~removed["first"], second=~removed["second"])
        return pd.DataFrame([_count_crossed(found), _count_crossed(removed)], ["found", "removed"])

    def recaptured(self, odds_ratio: float = 1.0) -> tuple[Recaptured, Recaptured]:
        """Return the shares missed outside home and accepted in home by both, with the weight of `cases`."""
        table = self.counts()
        records = table[["both", "first", "second"]].to_numpy(dtype=float)
        scaled = records * (table["cases"].to_numpy() / np.maximum(records.sum(axis=1), 1))[:, None]
        missed, kept = (Recaptured(both, first, second, odds_ratio) for both, first, second in scaled)
        return missed, kept


def _list_mentions(first: pd.DataFrame, second: pd.DataFrame) -> pd.Index:
    """Return the mentions that both annotators answered, refusing those of one alone."""
    for frame in (first, second):
        need(frame, pd.DataFrame, "answers are a DataFrame, as answers() gives it")
        refuse_names(["mention", "record"], list(frame.columns), "a table of answers")
    mentions: pd.Index = pd.Index(first["mention"].unique())
    single = mentions.symmetric_difference(pd.Index(second["mention"].unique()))
    refuse_cases(single, "mentions were answered by one annotator only")
    return mentions


def _join_answers(
    first: pd.DataFrame, second: pd.DataFrame, mentions: pd.Index, home: IntArray, prediction: Clustering
) -> pd.DataFrame:
    """Return each mention's records of home and of either answer, with True for the answers that have it."""
    members = pd.DataFrame({"cluster": prediction.codes, "record": prediction.records})
    shown = pd.DataFrame({"mention": mentions, "cluster": home}).merge(members, on="cluster")
    rows = shown[["mention", "record"]]
    for name, answer in (("first", first), ("second", second)):
        answer = answer[["mention", "record"]].drop_duplicates().assign(**{name: True})
        rows = rows.merge(answer, on=["mention", "record"], how="outer")
    return rows


def _count_crossed(rows: pd.DataFrame) -> dict[str, float]:
    """Counts of records, blocks and cases, by the annotators who found or removed them."""
    rows = rows[rows["first"] | rows["second"]]
    blocks = rows.groupby(["mention", "cluster", "first", "second"], as_index=False).agg(n=("record", "size"))
    first, second, n = (blocks[c].to_numpy() for c in ("first", "second", "n"))
    kinds = {"both": first & second, "first": first & ~second, "second": ~first & second}
    return {
        **{kind: int(n[rows].sum()) for kind, rows in kinds.items()},
        **{f"blocks_{kind}": int(rows.sum()) for kind, rows in kinds.items()},
        "cases": float(n.sum() ** 2 / max((n**2).sum(), 1)),
    }


def _list_examples(records: pd.Series) -> str:
    """Text of the first few ids, without quotes."""
    return ", ".join(map(str, records.tolist()[:3])) + (", …" if len(records) > 3 else "")


def _make_share(name: str, top: pd.Series, bottom: pd.Series) -> Metric:
    """Return the metric of a weighted sum of values over another one, which are Series by mention, (n,)."""
    above, below = OfUnits(f"{name}, above", top), OfUnits(f"{name}, below", bottom)
    return Metric(
        name, (above, below), lambda x, y: x / y, ((below, 1.0),), UNIT, "see AnnotatorPair.agreement"
    )
