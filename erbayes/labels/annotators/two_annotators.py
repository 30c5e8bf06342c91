"""Two annotators of the same mentions: agreement, disagreements, bounds, and rates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import truediv
from typing import Any

import numpy as np
import pandas as pd

from ..._internal.arrays import BoolArray, FloatArray, IntArray, label_components
from ..._internal.errors import DataError, need, refuse_cases
from ..._internal.tables import locate, refuse_names
from ...design import KnownWeights
from ...design.sample import Sample
from ...engine.fitted import fit_sample
from ...metrics.columns import OfUnits
from ...metrics.definitions import UNIT, Metric
from ...metrics.estimates import Estimates
from ...units.clustering import Clustering
from ...units.ids import ids
from ...units.units import Units
from .error_models import Annotator, Beta, Gamma

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
    >>> pair.reading(strict=False).to_dict(), pair.reading(strict=True).to_dict()
    ({1: 1, 2: 1, 3: 1}, {1: 1, 3: 1})
    """

    mentions: pd.Index
    table: pd.DataFrame
    prediction: Clustering

    @classmethod
    def of(cls, first: pd.DataFrame, second: pd.DataFrame, prediction: Any) -> AnnotatorPair:
        """Make a pair from two tables of `answers`, and from the prediction that both started from."""
        prediction = Clustering.of(prediction, "prediction")
        for frame in (first, second):
            need(frame, pd.DataFrame, "answers are a DataFrame, as answers() gives it")
            refuse_names(["mention", "record"], list(frame.columns), "a table of answers")
        mentions: pd.Index = pd.Index(first["mention"].unique())
        single = mentions.symmetric_difference(pd.Index(second["mention"].unique()))
        refuse_cases(single, "mentions were answered by one annotator only")
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
        return np.bincount(self.table["mention"], weights=chosen, minlength=len(self.mentions))

    def agreement(self, weight: Callable[[FloatArray], FloatArray] = PER_LINK) -> Estimates:
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
        metrics = []
        for name, parts in shares.items():
            above, below = (
                OfUnits(f"{name}, {where}", pd.Series(x, self.mentions))
                for where, x in zip(("above", "below"), parts, strict=True)
            )
            size, source = ((below, 1.0),), "see AnnotatorPair.agreement"
            metrics.append(Metric(name, (above, below), truediv, size, UNIT, source))
        position = np.arange(len(N))  # units of one piece each, whose columns are the values above
        units = Units(self.mentions, position, position, N, N, N, position, None)
        design = KnownWeights(pd.Series(weight(N), index=self.mentions))
        return fit_sample(Sample(units, design), metrics).estimates

    def reading(self, strict: bool) -> pd.Series:
        """Return labels, record -> entity, from both answers; an entity has the id of its first mention.

        The strict reading counts every error of the prediction that either annotator saw, so that records
        found by one belong to the entity, and those removed by one do not. The lenient one counts those that
        both saw. The truth may lie outside of both, if both missed or added the same.
        """
        t = self.table
        first, second, home = (t[c].to_numpy() for c in ("first", "second", "home"))
        chosen = (first & second) if strict else (first | second)
        chosen = np.where(home, chosen, (first | second) if strict else (first & second))
        chosen |= t["record"].to_numpy() == self.mentions[t["mention"]].to_numpy()
        rows = t[chosen]
        # mentions of one entity, of which one has the other in its answer
        other = self.mentions.get_indexer(pd.Index(rows["record"]))
        mention = rows["mention"].to_numpy(np.int64)
        joined = label_components(mention[other >= 0], other[other >= 0], len(self.mentions))
        start = np.unique(joined, return_index=True)[1]
        labels = pd.Series(
            self.mentions[start[joined[mention]]], index=pd.Index(rows["record"]), name="entity"
        )
        return labels[~labels.index.duplicated()]

    def span(self, answer: Callable[[Any, Any], Any], design: Callable[[pd.Series], Any]) -> pd.DataFrame:
        """Return the table of an answer from its least to its largest end by the lenient and strict readings.

        This needs no rates, and covers what one annotator missed, kept or added, and the other did not.

        Parameters
        ----------
        answer : callable
            As in `erbayes.with_errors`, such as `partial(eb.estimate, prediction)`.
        design : callable
            The design for labels, such as `lambda labels: eb.UniformRecords(labels[drawn])` for the ids of
            drawn records.
        """
        readings = (self.reading(strict) for strict in (False, True))
        lenient, strict = (answer(labels, design(labels)).table().reset_index() for labels in readings)
        table: pd.DataFrame = lenient.loc[:, :"estimate"].iloc[:, :-1]
        return table.assign(
            lenient=lenient["estimate"],
            strict=strict["estimate"],
            lower=np.fmin(lenient["lower"], strict["lower"]),
            upper=np.fmax(lenient["upper"], strict["upper"]),
        )

    def errors(self, settled: Any) -> pd.Series:
        """Count what settled labels, made after somebody decided disagreements, show of both annotators.

        Pieces found outside home, and foreign records removed from it, by both, or by the first or second
        alone; pieces that either added wrongly; and the tasks that are settled.
        """
        settled = Clustering.of(settled, "settled labels")
        entity = pd.Series(settled.codes, index=settled.records)
        t = self.table.assign(of=entity.reindex(self.mentions).to_numpy()[self.table["mention"]])
        t = t[t["of"].notna()]
        t["true"] = t["of"].to_numpy() == entity.reindex(t["record"]).to_numpy()
        pieces = t[~t["home"]].groupby(["mention", "cluster"])[["first", "second", "true"]].any()
        foreign = ~t.loc[t["home"] & ~t["true"], ["first", "second"]]
        counts = {"added": pieces.loc[~pieces["true"], ["first", "second"]].sum().sum()}
        for name, rows in (("found", pieces[pieces["true"]]), ("removed", foreign)):
            one, other = rows["first"], rows["second"]
            counts |= {f"{name} by both": (one & other).sum(), f"{name} by the first": (one & ~other).sum()}
            counts[f"{name} by the second"] = (other & ~one).sum()
        return pd.Series({**counts, "tasks": t["mention"].nunique()}, dtype=float)

    def rates(self, settled: Any) -> Annotator:
        """Return priors of the rates of one annotator, from settled labels: see `annotator_of`."""
        return annotator_of(self.errors(settled), "settled disagreements of two annotators")

    def disagreements(self) -> pd.DataFrame:
        """Table of disagreements by mention, cluster and kind, those with most links first."""
        t = self.table
        common = self._count_chosen((t["first"] & t["second"]).to_numpy())
        differing = t[t["first"] != t["second"]]
        who = differing["first"].map({True: " by the first only", False: " by the second only"})
        kind = differing["home"].map({True: "kept", False: "found"}) + who
        by_kind = differing.assign(kind=kind).groupby(["mention", "cluster", "kind"], as_index=False)
        groups = by_kind.agg(records=("record", "size"), examples=("record", list))
        groups["examples"] = [
            ", ".join(map(str, some[:3])) + ", …" * (len(some) > 3) for some in groups["examples"]
        ]
        groups["links"] = groups["records"] * (common[groups["mention"]] + (groups["records"] - 1) / 2)
        groups["mention"] = self.mentions[groups["mention"]]
        groups["cluster"] = self.prediction.clusters[groups["cluster"]]
        groups = groups.sort_values("links", ascending=False, kind="stable", ignore_index=True)
        return groups[["mention", "cluster", "kind", "records", "links", "examples"]]


def annotator_of(errors: pd.Series, source: str) -> Annotator:
    """Return priors of the rates of one annotator, from what `AnnotatorPair.errors` counts.

    Of true pieces, B found by both and L by one alone: missed ~ Beta(½ + L, ½ + 2B). Likewise kept, of
    foreign records. With F pieces added in E tasks: added ~ Gamma(½ + F)/(2E).
    """
    c = {name: float(count) for name, count in errors.items()}
    if not c["tasks"]:
        raise DataError("no task of the annotators has settled labels: the rates of errors are not known")
    missed, kept = (
        Beta(0.5 + c[f"{name} by the first"] + c[f"{name} by the second"], 0.5 + 2 * c[f"{name} by both"])
        for name in ("found", "removed")
    )
    return Annotator(
        missed, kept, Gamma(0.5 + c["added"], 2 * c["tasks"]), f"{source} in {c['tasks']:.0f} tasks"
    )


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
