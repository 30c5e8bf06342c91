"""Two annotators of the same mentions: agreement, disagreements, bounds, what both missed.

`anchoring` compares labels of the same entities made from the predicted cluster and from scratch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..arrays import BoolArray, FloatArray
from ..clustering import Clustering, ids
from ..columns import Pieces
from ..design import Design, KnownWeights
from ..engine.closed_form import paired_taylor, taylor
from ..errors import DataError, NotIdentified, need, some
from ..metrics import UNIT, USUAL, Metric, Wanted, chosen
from ..sample import Sample
from ..uncertain import Normal
from ..units import Missing, Units, measure
from .rates import Recaptured

PER_LINK = np.reciprocal
"""Weight 1/size of an entity, where draws are proportional to size."""


@dataclass(frozen=True, slots=True, eq=False)
class _Given:
    """A column whose values are at hand."""

    name: str
    values: FloatArray

    def identified(self, units: Pieces) -> bool:
        return True

    def count(self, units: Pieces) -> FloatArray:
        if len(units) != len(self.values):
            raise NotIdentified(f"'{self.name}' is known of the sampled units alone")
        return self.values


def answers(labels: Any, mentions: Any) -> pd.DataFrame:
    """Labels as an answer for each sampled mention: all records of its entity.

    Parameters
    ----------
    labels : memberships
    mentions : sequence of record ids
        Each once.

    Returns
    -------
    DataFrame
        Columns mention, record: one row a record of the mention's entity.

    Raises
    ------
    DataError
        Mentions without a label, or listed twice.

    Examples
    --------
    >>> answers({1: "x", 2: "x", 3: "y"}, [2]).to_numpy().tolist()
    [[2, 1], [2, 2]]
    """
    labels, mentions = Clustering.of(labels, "labels"), ids(mentions, "mentions")
    at = labels.records.get_indexer(mentions)
    if (at < 0).any():
        raise DataError(
            f"{int((at < 0).sum())} of {len(at)} mentions have no label: {some(mentions[at < 0])}"
        )
    _need_once(mentions)
    members = pd.DataFrame({"entity": labels.codes, "record": labels.records})
    asked = pd.DataFrame({"mention": mentions, "entity": labels.codes[at]})
    return asked.merge(members, on="entity")[["mention", "record"]]


def _need_once(mentions: pd.Index) -> None:
    if not mentions.is_unique:
        twice = mentions[mentions.duplicated()]
        raise DataError(f"{len(twice)} mentions are listed twice: {some(twice)}")


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Two annotators' answers about the same sampled mentions.

    Attributes
    ----------
    mentions : Index, (n,)
    table : DataFrame
        One row a mention and record of its predicted cluster or of either answer. mention (position
        among the mentions), record, cluster (code), m (its size), home (the cluster of the mention), first,
        second (whether the record is in the answer).
    prediction : Clustering
    unmatched : int
        Rows left out since the prediction lacks their record.

    Examples
    --------
    >>> prediction = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c"}
    >>> pair = Pair.of(answers({1: "x", 2: "x", 3: "x"}, [1]), answers({1: "x", 3: "x"}, [1]), prediction)
    >>> pair.disagreements()[["kind", "records", "examples"]].to_numpy().tolist()
    [['kept by the first only', 1, '2']]
    >>> pair.units(kept=np.logical_or).size, pair.units(kept=np.logical_and).size
    (array([3.]), array([2.]))
    """

    mentions: pd.Index
    table: pd.DataFrame
    prediction: Clustering
    unmatched: int = 0

    @classmethod
    def of(
        cls, first: pd.DataFrame, second: pd.DataFrame, prediction: Any, missing: Missing = Missing.ERROR
    ) -> Pair:
        """From two frames of `answers`.

        Raises
        ------
        DataError
            Different mentions; mentions that the prediction lacks; with `Missing.ERROR` any such record;
            other policies than ERROR and OMIT.
        """
        if missing not in {Missing.ERROR, Missing.OMIT}:
            raise DataError(f"two annotators are compared with Missing.ERROR or OMIT, not {missing}")
        prediction = Clustering.of(prediction, "prediction")
        for frame in (first, second):
            need(frame, pd.DataFrame, "answers are a DataFrame, as answers() gives it")
            if lacking := [c for c in ("mention", "record") if c not in frame]:
                raise DataError(
                    f"answers need columns mention and record, as answers() gives; {lacking} are lacking"
                )
        mentions = pd.Index(first["mention"].unique())
        odd = mentions.symmetric_difference(pd.Index(second["mention"].unique()))
        if len(odd):
            raise DataError(f"{len(odd)} mentions were answered by one annotator only: {some(odd)}")
        at = prediction.records.get_indexer(mentions)
        if (at < 0).any():
            raise DataError(
                f"{int((at < 0).sum())} mentions are not in the prediction: {some(mentions[at < 0])}"
            )
        home = prediction.codes[at]
        members = pd.DataFrame({"cluster": prediction.codes, "record": prediction.records})
        shown = pd.DataFrame({"mention": mentions, "cluster": home}).merge(members, on="cluster")
        rows = shown[["mention", "record"]]
        for name, given in (("first", first), ("second", second)):
            given = given[["mention", "record"]].drop_duplicates().assign(**{name: True})
            rows = rows.merge(given, on=["mention", "record"], how="outer")
        where = prediction.records.get_indexer(pd.Index(rows["record"]))
        lacking = where < 0
        unmatched = int(lacking.sum())
        if unmatched and missing is Missing.ERROR:
            raise DataError(
                f"{unmatched} records of the answers are not in the prediction, such as "
                f"{some(rows['record'][lacking].tolist())}; Missing.OMIT leaves them out"
            )
        rows, where = rows[~lacking], where[~lacking]
        mention = mentions.get_indexer(pd.Index(rows["mention"]))
        cluster = prediction.codes[where]
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
        return cls(mentions, table, prediction, unmatched)

    def _sizes(self, chosen: BoolArray) -> FloatArray:
        return np.bincount(self.table["mention"], weights=chosen, minlength=len(self.mentions))

    def agreement(self, weight: Callable[[FloatArray], FloatArray] = PER_LINK) -> Normal:
        """How far the annotators agree, in the population.

        With a, b and c records in the first answer, the second and both, N = (a + b)/2 and weights w(N):
        *identical-entities* Σ w 1[a = b = c]/Σ w; *identical-records* the same with w N; *jaccard*
        Σ w N c/(a + b - c)/Σ w N; *links* 2 Σ w C2(c)/Σ w (C2(a) + C2(b)), Dice's coefficient of links.

        Parameters
        ----------
        weight : callable
            Weight of an entity of N records: 1/N where mentions were drawn uniformly,
            `numpy.ones_like` where entities were.
        """
        first, second = self.table["first"].to_numpy(), self.table["second"].to_numpy()
        a, b, c = self._sizes(first), self._sizes(second), self._sizes(first & second)
        N = (a + b) / 2
        same = ((a == c) & (b == c)).astype(float)
        one, size = _Given("one", np.ones_like(N)), _Given("size", N)
        both = _Given("both", c * (c - 1))
        either = _Given("either", (a * (a - 1) + b * (b - 1)) / 2)

        def share(name: str, top: _Given, bottom: _Given) -> Metric:
            return Metric(
                name, (top, bottom), lambda x, y: x / y, ((bottom, 1.0),), UNIT, "see Pair.agreement"
            )

        metrics = [
            share("identical-entities", _Given("same", same), one),
            share("identical-records", _Given("same_size", same * N), size),
            share("jaccard", _Given("jaccard_size", c / (a + b - c) * N), size),
            share("links", both, either),
        ]
        every = np.arange(len(N))
        units = Units(self.mentions, every, every, N, N, N, every, None)
        design = KnownWeights(pd.Series(weight(N), index=self.mentions))
        return taylor(Sample(units, design), metrics).apply(metrics)

    def units(
        self,
        found: Callable[[BoolArray, BoolArray], BoolArray] = np.logical_or,
        kept: Callable[[BoolArray, BoolArray], BoolArray] = np.logical_and,
        decisions: pd.Series | None = None,
    ) -> Units:
        """One unit a mention: the entity that follows from both answers.

        Parameters
        ----------
        found, kept : callables
            What counts outside home and in it, of (in the first, in the second). The default is the
            strictest on the prediction, all errors that either annotator saw; found by `logical_and` and
            kept by `logical_or` is the most lenient.
        decisions : Series of bool, optional
            Adjudicated, indexed by (mention, record): whether the record belongs. Overrides both.

        Raises
        ------
        DataError
            Decisions on what is not in the table.
        """
        t = self.table
        first, second, home = (t[c].to_numpy() for c in ("first", "second", "home"))
        chosen = np.where(home, kept(first, second), found(first, second))
        if decisions is not None:
            index = pd.MultiIndex.from_arrays([self.mentions[t["mention"]], t["record"]])
            at = index.get_indexer(decisions.index)
            if (at < 0).any():
                raise DataError(
                    f"{int((at < 0).sum())} decisions are on mentions and records that neither "
                    f"annotator saw: {some(decisions.index[at < 0])}"
                )
            chosen[at] = decisions.to_numpy(dtype=bool)
        chosen[t["record"].to_numpy() == self.mentions[t["mention"]].to_numpy()] = True
        pieces = t[chosen].groupby(["mention", "cluster"]).agg(n=("record", "size"), m=("m", "first"))
        unit, cluster = (pieces.index.get_level_values(i).to_numpy(np.int64) for i in (0, 1))
        n = pieces["n"].to_numpy(float)
        known = measure(self.prediction, {self.mentions[0]: "x"}).known
        return Units(
            self.mentions,
            unit,
            unit,
            n,
            np.bincount(unit, weights=n)[unit],
            pieces["m"].to_numpy(float),
            cluster,
            known,
            unmatched=self.unmatched,
        )

    def disagreements(self) -> pd.DataFrame:
        """What to adjudicate, most links first.

        Returns
        -------
        DataFrame
            mention, cluster, kind, records (on which they differ), links (between these, and to what both
            put in), examples.
        """
        t = self.table
        common = self._sizes((t["first"] & t["second"]).to_numpy())
        odd = t[t["first"] != t["second"]]
        kind = (
            odd["home"].map({True: "kept", False: "found"})
            + " by the "
            + odd["first"].map({True: "first", False: "second"})
            + " only"
        )
        found = (
            odd.assign(kind=kind)
            .groupby(["mention", "cluster", "kind"], as_index=False)
            .agg(records=("record", "size"), examples=("record", lambda r: some_ids(r.tolist())))
        )
        found["links"] = found["records"] * (common[found["mention"]] + (found["records"] - 1) / 2)
        found["mention"] = self.mentions[found["mention"]]
        found["cluster"] = self.prediction.clusters[found["cluster"]]
        found = found.sort_values("links", ascending=False, kind="stable", ignore_index=True)
        return found[["mention", "cluster", "kind", "records", "links", "examples"]]

    def counts(self) -> pd.DataFrame:
        """Cross-classification of what was found outside home and of what was removed from it.

        Records of one mention, one predicted cluster and one kind (of both, of only the first, of only the
        second) are a block: they were judged together, so that the records count as
        (Σ records)²/Σ records² cases (Kish) over blocks.

        Returns
        -------
        DataFrame
            Rows found, removed. Columns both, first, second (records); blocks_both, blocks_first,
            blocks_second; cases.
        """
        t = self.table
        found, removed = t[~t["home"]], t[t["home"]]
        removed = removed.assign(first=~removed["first"], second=~removed["second"])
        return pd.DataFrame([_crossed(found), _crossed(removed)], ["found", "removed"])

    def recaptured(self, odds_ratio: float = 1.0) -> tuple[Recaptured, Recaptured]:
        """Shares that both missed of what is to be found, and both left of what is to be removed.

        Shares are of records, which under draws proportional to size are shares of links; they are as sure
        as the number of `cases` in `counts`.
        """
        table = self.counts()
        records = table[["both", "first", "second"]].to_numpy(dtype=float)
        scaled = records * (table["cases"].to_numpy() / np.maximum(records.sum(axis=1), 1))[:, None]
        missed, kept = (Recaptured(both, first, second, odds_ratio) for both, first, second in scaled)
        return missed, kept


def _crossed(rows: pd.DataFrame) -> dict[str, float]:
    """Records, blocks and cases by who saw them."""
    rows = rows[rows["first"] | rows["second"]]
    blocks = rows.groupby(["mention", "cluster", "first", "second"], as_index=False).agg(n=("record", "size"))
    first, second, n = (blocks[c].to_numpy() for c in ("first", "second", "n"))
    kinds = {"both": first & second, "first": first & ~second, "second": ~first & second}
    return {
        **{kind: int(n[at].sum()) for kind, at in kinds.items()},
        **{f"blocks_{kind}": int(at.sum()) for kind, at in kinds.items()},
        "cases": float(n.sum() ** 2 / max((n**2).sum(), 1)),
    }


def some_ids(records: Sequence[Any]) -> str:
    """The first few ids, without quotes."""
    return ", ".join(map(str, records[:3])) + (", …" if len(records) > 3 else "")


def anchoring(
    prediction: Any,
    anchored: Any,
    scratch: Any,
    design: Design,
    metrics: Wanted = USUAL,
    *,
    missing: Missing = Missing.ERROR,
) -> Normal:
    """Does starting from the predicted cluster flatter it? Labels from scratch minus those from there.

    Parameters
    ----------
    prediction : memberships
    anchored, scratch : memberships
        The same entities, by the same ids, labelled from the predicted cluster and from scratch.
    design : Design
        How they were drawn.
    metrics, missing
        As in `erbayes.estimate`.

    Returns
    -------
    Normal
        Differences, with the standard errors of a paired comparison.

    Raises
    ------
    DataError
        Entities in one of both only.

    Examples
    --------
    >>> import erbayes as eb
    >>> prediction = {1: "a", 2: "a", 3: "b", 4: "c", 5: "c"}
    >>> anchored, scratch = {1: "x", 2: "x", 4: "y", 5: "y"}, {1: "x", 2: "x", 3: "x", 4: "y", 5: "y"}
    >>> found = anchoring(prediction, anchored, scratch, eb.UniformClusters(), [eb.metrics.b3_recall])
    >>> found.mean.round(2), found.sd.round(2)
    (array([-0.31]), array([0.21]))
    """
    metrics = chosen(metrics)
    before, after = (measure(prediction, labels, missing=missing) for labels in (anchored, scratch))
    odd = before.ids.symmetric_difference(after.ids)
    if len(odd):
        raise DataError(
            f"{len(odd)} entities are labelled in one way only, such as {some(odd)}: "
            "both label sets must hold the same entities, by the same ids"
        )
    samples = [Sample(u, design) for u in (before, after.take(after.ids.get_indexer(before.ids)))]
    one = np.eye(len(metrics))
    return paired_taylor(samples, metrics).contrast(np.hstack([-one, one]), [m.name for m in metrics])
