"""Annotators: rates of their errors, two of them about the same mentions, and machines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import truediv
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import betaincinv, gammaincinv

from .._internal.arrays import BoolArray, FloatArray, Seed, generator, locate, refuse_names
from .._internal.errors import DataError, head, need, number, refuse_cases, whole
from ..design import KnownWeights
from ..design.sample import Sample
from ..engine.fitted import fit_sample
from ..metrics import UNIT, Estimates, Metric
from ..metrics.columns import OfUnits
from ..units.clustering import Clustering
from ..units.ids import ids
from ..units.units import Units


@dataclass(frozen=True, slots=True)
class Beta:
    """A Beta prior of a rate. Its mean is a/(a + b), and it weighs as much as a + b observed cases.

    Parameters
    ----------
    a, b : float, above 0
        Imagined cases with and without the error.

    Examples
    --------
    >>> Beta(3, 17).ppf([0.025, 0.5, 0.975]).round(2).tolist()
    [0.03, 0.14, 0.33]
    """

    a: float
    b: float

    def __post_init__(self) -> None:
        for value in (self.a, self.b):
            number(value, "a and b of Beta", lambda x: 0 < x < np.inf, "be above 0 and finite")

    def ppf(self, q: Any) -> FloatArray:
        """Return the quantiles of probabilities `q`, from 0 to 1."""
        return np.asarray(betaincinv(self.a, self.b, q))


@dataclass(frozen=True, slots=True)
class Gamma:
    """A Gamma prior of a number per entity: `cases` were seen in so many `entities`.

    Its mean is cases/entities, and its standard deviation √cases/entities.

    Examples
    --------
    >>> Gamma(2, 100).ppf([0.025, 0.5, 0.975]).round(3).tolist()
    [0.002, 0.017, 0.056]
    """

    cases: float
    entities: float

    def __post_init__(self) -> None:
        for value in (self.cases, self.entities):
            number(value, "cases and entities of Gamma", lambda x: 0 < x < np.inf, "be above 0 and finite")

    def ppf(self, q: Any) -> FloatArray:
        """Return the quantiles of probabilities `q`, 0 or more."""
        return np.asarray(gammaincinv(self.cases, q)) / self.entities


RATES = ["removed", "missed", "kept", "added"]
SHARES = RATES[:3]
"""Rates that are probabilities."""
NONE = dict.fromkeys(RATES, 0.0) | {"unsure": 1.0}
"""An annotator who does nothing wrong."""


@dataclass(frozen=True, slots=True)
class Annotator:
    """What annotators may have done wrong, in numbers or priors of them. By default nothing.

    A prior is an object with quantiles `ppf`, such as `Beta(3, 17)` or `scipy.stats.uniform(0, 0.2)`.

    Parameters
    ----------
    removed, missed, kept : float or prior
        Probabilities, below 1, that a true record of a cluster that was opened is struck out or overlooked,
        that another cluster with records of the entity is not opened, and that a foreign record of a cluster
        that was opened is accepted.
    added : float or prior
        Number of foreign predicted clusters that are added to an entity, on average.
    unsure : float or prior
        Odds of an error of draws that nobody could decide, over those of decided ones (see `Responding`).
    source : str
        Where the rates come from, for those who quote the result.

    Examples
    --------
    >>> annotator = Annotator(removed=Beta(2, 38), missed=Beta(3, 17), kept=0.1, added=Gamma(2, 100))
    >>> annotator.draw(2000, rng=1).mean().round(2).to_dict()
    {'removed': 0.05, 'missed': 0.15, 'kept': 0.1, 'added': 0.02, 'unsure': 1.0}
    """

    removed: Any = 0.0
    missed: Any = 0.0
    kept: Any = 0.0
    added: Any = 0.0
    unsure: Any = 1.0
    source: str = "judgement"

    def __post_init__(self) -> None:
        for name in NONE:
            rate = getattr(self, name)
            if isinstance(rate, type) or not hasattr(rate, "ppf"):
                number(rate, name, lambda x: 0 <= x < np.inf, "be 0 or more, or a prior such as Beta(3, 17)")

    def draw(self, number: int, rng: Seed = None) -> pd.DataFrame:
        """Draw the rates of as many annotators, a row each and a column for each rate.

        Each prior is cut into as many equally likely parts, of which each has one draw (a Latin hypercube;
        McKay, Beckman and Conover 1979, Technometrics 21, 239-245).
        """
        rng, number = generator(rng), whole(number, "number of draws")
        table = {}
        for name in NONE:
            rate, q = getattr(self, name), (rng.permutation(number) + rng.random(number)) / number
            table[name] = np.asarray(rate.ppf(q)) if hasattr(rate, "ppf") else np.full(number, float(rate))
        return check_rates(pd.DataFrame(table))


def check_rates(rates: pd.DataFrame) -> pd.DataFrame:
    """Return a table of rates with a column for each, refusing values that none can have."""
    if unknown := sorted(map(str, set(rates.columns) - {*NONE})):
        raise DataError(f"no rate is called {head(unknown)}: columns are {', '.join(NONE)}")
    rates = pd.DataFrame({name: rates.get(name, value) for name, value in NONE.items()}, index=rates.index)
    rates = rates.apply(pd.to_numeric, errors="coerce")
    if rates.empty or not ((rates >= 0).all(axis=None) and (rates["added"] < np.inf).all()):
        raise DataError("rates of errors are numbers of 0 or more, in one row at least")
    if (rates[SHARES] >= 1).any(axis=None):
        raise DataError(f"true labels cannot be imputed if all is {' or '.join(SHARES)}: rates are below 1")
    return rates


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

    `table` has one row per mention and record, for the records of home and of clusters with records of either
    answer: mention (its position), record, cluster (its code), home (whether the cluster is home), first and
    second (whether the record is in this annotator's answer).

    Examples
    --------
    >>> prediction = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c"}
    >>> first, second = answers({1: "x", 2: "x", 3: "x"}, [1]), answers({1: "x", 3: "x"}, [1])
    >>> pair = AnnotatorPair.of(first, second, prediction)
    >>> pair.disagreements()[["kind", "records", "examples"]].to_numpy().tolist()
    [['kept by the first only', 1, '2']]
    >>> pair.rates({1: "x", 2: "x", 3: "x"}).removed
    Beta(a=1.5, b=0.5)
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
        codes, N = prediction.codes, len(prediction.records)
        are = "records of the answers are not in the prediction"
        # each answer as numbers of mention x record
        one, other = (
            mentions.get_indexer(pd.Index(x["mention"])) * N
            + locate(prediction.records, pd.Index(x["record"]), are)
            for x in (first, second)
        )
        found, members = np.concatenate([one, other]), pd.DataFrame({"cluster": codes, "at": np.arange(N)})
        opened = pd.DataFrame({"mention": np.arange(len(mentions)), "cluster": home})
        opened = pd.concat([opened, pd.DataFrame({"mention": found // N, "cluster": codes[found % N]})])
        rows = opened.drop_duplicates().merge(members, on="cluster")
        key = rows["mention"].to_numpy() * N + rows["at"].to_numpy()
        rows["record"] = prediction.records.take(rows.pop("at"))
        rows["home"] = rows["cluster"].to_numpy() == home[rows["mention"]]
        return cls(mentions, rows.assign(first=np.isin(key, one), second=np.isin(key, other)), prediction)

    def _count_chosen(self, chosen: BoolArray) -> FloatArray:
        return np.bincount(self.table["mention"], weights=chosen, minlength=len(self.mentions))

    def agreement(self, weight: Callable[[FloatArray], FloatArray] = np.reciprocal) -> Estimates:
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
        N, same, metrics = (a + b) / 2, ((a == c) & (b == c)).astype(float), []
        for name, parts in {
            "identical-entities": (same, np.ones_like(N)),
            "identical-records": (same * N, N),
            "jaccard": (c / (a + b - c) * N, N),
            "links": (c * (c - 1), (a * (a - 1) + b * (b - 1)) / 2),
        }.items():
            above, below = (
                OfUnits(f"{name}, {where}", pd.Series(x, self.mentions))
                for where, x in zip(("above", "below"), parts, strict=True)
            )
            source = "see AnnotatorPair.agreement"
            metrics.append(Metric(name, (above, below), truediv, ((below, 1.0),), UNIT, source))
        position = np.arange(len(N))  # units of one piece each, whose columns are the values above
        units = Units(self.mentions, position, position, N, N, N, position, None)
        design = KnownWeights(pd.Series(weight(N), index=self.mentions))
        return fit_sample(Sample(units, design), metrics).estimates

    def judge(self, settled: Any, *, swapped: bool = False) -> pd.Series:
        """Count what decisions of the second annotator that were right show of the first, (8,), or `swapped`.

        They are right by the `settled` labels, so that nothing depends on what both overlooked. Of true
        records of home that the second accepts, the first has `removed` some and `accepted` some; of pieces
        elsewhere that the second has found, `missed` some, less those that opened and struck out, and `found`
        some; of foreign records that the second refuses, in home and where both found the piece, `kept` some
        and `refused` some; and has `added` clusters without a true record, in so many settled `tasks`.
        """
        settled = Clustering.of(settled, "settled labels")
        entity = pd.Series(settled.codes, settled.records)
        of = entity.reindex(self.mentions).to_numpy()[self.table["mention"]]
        t, of = self.table[~np.isnan(of)], of[~np.isnan(of)]
        true = of == entity.reindex(t["record"]).to_numpy()
        own, other, home = (
            t[x].to_numpy() for x in (("second", "first") if swapped else ("first", "second")) + ("home",)
        )
        start = t["record"].to_numpy() == self.mentions[t["mention"]].to_numpy()
        piece = t.groupby(["mention", "cluster"]).ngroup().to_numpy()
        t_true = np.bincount(piece, true)[piece]
        caught, shown, opened = ((np.bincount(piece, x) > 0)[piece] for x in (own & true, other & true, own))
        decided, foreign = home & true & ~start & other, ~true & ~other & (home | caught & shown)
        once = ~home & ~t.duplicated(["mention", "cluster"]).to_numpy()
        found, lost = once & shown & caught, once & shown & ~caught
        removed, accepted = (decided & ~own).sum(), (decided & own).sum()
        # all records of a piece of t are struck out r^t/(1 - r^t) times as often as one of them is left
        gone = (removed / max(removed + accepted, 1)) ** t_true[found]
        counts = {
            "removed": removed,
            "accepted": accepted,
            "missed": round(max(lost.sum() - (gone / np.maximum(1 - gone, 0.01)).sum(), 0.0), 1),
            "found": found.sum(),
            "kept": (foreign & own).sum(),
            "refused": (foreign & ~own).sum(),
            "added": (once & (t_true == 0) & opened).sum(),
            "tasks": t["mention"].nunique(),
        }
        return pd.Series(counts, dtype=float)

    def rates(self, settled: Any, *, of_first: bool = False) -> Annotator:
        """Return priors of the rates of one annotator, from `settled` labels, by which each judges the other.

        With the counts of `judge`: removed ~ Beta(½ + removed, ½ + accepted), missed ~ Beta(½ + missed,
        ½ + found), kept ~ Beta(½ + kept, ½ + refused), added ~ Gamma(½ + added)/tasks. With `of_first` the
        second alone judges: known answers to control tasks, or a second round of the same person, in which
        errors that were made twice are not seen, so that the rates are too low.
        """
        counts, who = self.judge(settled), "tasks in which the second answer judges the first"
        if not of_first:
            counts, who = counts + self.judge(settled, swapped=True), "settled tasks of two annotators"
        return annotator_of(counts, f"{counts['tasks'] / (1 if of_first else 2):.0f} {who}")

    def disagreements(self) -> pd.DataFrame:
        """Table of disagreements by mention, cluster and kind, those with most links first."""
        t = self.table
        common = self._count_chosen((t["first"] & t["second"]).to_numpy())
        differing = t[t["first"] != t["second"]]
        who = differing["first"].map({True: " by the first only", False: " by the second only"})
        kind = differing["home"].map({True: "kept", False: "found"}) + who
        by_kind = differing.assign(kind=kind).groupby(["mention", "cluster", "kind"], as_index=False)
        groups = by_kind.agg(records=("record", "size"), examples=("record", list))
        named = (", ".join(map(str, some[:3])) + ", …" * (len(some) > 3) for some in groups["examples"])
        groups["examples"] = list(named)
        groups["links"] = groups["records"] * (common[groups["mention"]] + (groups["records"] - 1) / 2)
        groups["mention"] = self.mentions[groups["mention"]]
        groups["cluster"] = self.prediction.clusters[groups["cluster"]]
        groups = groups.sort_values("links", ascending=False, kind="stable", ignore_index=True)
        return groups[["mention", "cluster", "kind", "records", "links", "examples"]]


def annotator_of(counts: pd.Series, source: str) -> Annotator:
    """Return priors of the rates of one annotator, from what `AnnotatorPair.judge` counts."""
    c = {name: float(count) for name, count in counts.items()}
    if not c["tasks"]:
        raise DataError("no task of the annotators has settled labels: the rates of errors are not known")
    pairs = {"removed": "accepted", "missed": "found", "kept": "refused"}
    shares = {name: Beta(0.5 + c[name], 0.5 + c[other]) for name, other in pairs.items()}
    return Annotator(**shares, added=Gamma(0.5 + c["added"], c["tasks"]), source=source)
