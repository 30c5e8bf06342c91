"""Populations: a prediction and the truth on the same records, simulated or real; a table of customers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..._internal.arrays import BoolArray, IntArray, Seed, generator
from ..._internal.errors import NotIdentified, need_object
from ...design.sample import Sample
from ...labels import RecordDraws
from ...metrics.columns import Column, Known
from ...metrics.definitions import Metric, resolve_metric
from ...units.clustering import Clustering
from ...units.measuring import measure, measure_predicted
from ...units.units import Units
from .synthetic import EntitySizes, Mechanism, require


def population(sizes: EntitySizes, records: int, rng: Seed = None) -> pd.Series:
    """Draw the entity of each record of a synthetic population, (N,), in which those of one are neighbours.

    Parameters
    ----------
    sizes : EntitySizes
    records : int
        Number of records N, 1 or more.
    rng : Generator, int or None

    Examples
    --------
    >>> from erbayes.study.populations import Empirical
    >>> population(Empirical([2]), 3, np.random.default_rng(1)).tolist()
    [0, 0, 1]
    """
    need_object(sizes, "draw", "a distribution of sizes is an object such as Zeta(2.5, 60)")
    drawn = sizes.draw(records, generator(rng))
    index = pd.RangeIndex(records, name="record")
    return pd.Series(np.repeat(np.arange(len(drawn)), drawn), index, name="entity")


def _restrict(clustering: Clustering, records: pd.Index) -> pd.Series:
    """Return the memberships of some of the records of a clustering."""
    position = clustering.records.get_indexer(records)
    return pd.Series(clustering.clusters.take(clustering.codes[position]), index=records)


@dataclass(frozen=True, slots=True, eq=False)
class Population:
    """A prediction and the truth of the same records, from which every metric has a known value.

    Attributes
    ----------
    pred, true : Series, (N,)
        Predicted cluster and true entity, both indexed by record.
    dropped : int
        Number of records that only the prediction or only the truth had.
    units : Units
        All entities, counted from the prediction and the truth.

    Examples
    --------
    >>> from erbayes import metrics
    >>> everyone = Population.of({1: "a", 2: "a", 3: "a"}, {1: "x", 2: "x", 3: "y", 4: "y"})
    >>> everyone
    Population(3 records, 2 entities, 1 predicted clusters, 1 records dropped)
    >>> round(everyone.value(metrics.pairwise_precision), 3)
    0.333
    """

    pred: pd.Series
    true: pd.Series
    dropped: int = 0
    units: Units = field(init=False)

    def __post_init__(self) -> None:
        require(
            self.pred.index.equals(self.true.index),
            f"the {len(self.pred)} records of the prediction are not the {len(self.true)} of the truth "
            "in the same order; Population.of restricts both to what they share",
        )
        object.__setattr__(self, "units", measure(self.pred, self.true))

    @classmethod
    def of(cls, prediction: Any, truth: Any) -> Population:
        """Make a population from two clusterings of real records. It has the records that both cover."""
        pred, true = Clustering.of(prediction, "prediction"), Clustering.of(truth, "truth")
        common = pred.records.intersection(true.records, sort=False)
        require(
            len(common) > 0,
            f"the prediction ({len(pred.records)} records of type {pred.records.dtype}) and the truth "
            f"({len(true.records)} of type {true.records.dtype}) share no record",
        )
        dropped = len(pred.records) + len(true.records) - 2 * len(common)
        return cls(_restrict(pred, common), _restrict(true, common), dropped)

    def total(self, column: Column | Known) -> float:
        """Return the total of a column over entities, or else over predicted clusters."""
        if isinstance(column, Known):
            column = column.column
        units = self.units
        # entities as units do not have it, but predicted clusters may
        if not column.identified(units):
            units = measure_predicted(self.pred, self.true, self.pred.unique())
        return float(column.count(units).sum())

    def value(self, metric: Metric | str) -> float:
        """Return the true value of a metric: its formula at the population totals."""
        metric = resolve_metric(metric)
        totals = np.array([self.total(c) for c in metric.columns])
        with np.errstate(divide="ignore", invalid="ignore"):
            value = float(metric.formula(*totals))
        if np.isnan(value):
            raise NotIdentified(f"{metric.name} is 0/0 in this population of {len(self.true)} records")
        return value

    def label(self, drawn: RecordDraws, unresolved: Sequence[Any] = ()) -> Sample:
        """Return drawn records with their true labels, as a sample; `unresolved` ones have no label."""
        table, design = drawn.table, drawn.design(self.true, unresolved=unresolved)
        if drawn.of_clusters:
            return Sample(measure_predicted(self.pred, self.true, table["cluster"]), design)
        entities = self.true.loc[table["record"][~table["record"].isin(unresolved)]]
        return Sample(self.units.take(np.unique(self.units.ids.get_indexer(pd.Index(entities)))), design)

    def __repr__(self) -> str:
        return (
            f"Population({len(self.true)} records, {len(self.units)} entities, "
            f"{self.pred.nunique()} predicted clusters, {self.dropped} records dropped)"
        )


def simulate(sizes: EntitySizes, errors: Mechanism, records: int, rng: Seed = None) -> Population:
    """Make a synthetic population: entities with `sizes`, and a prediction with `errors`.

    Parameters
    ----------
    sizes : EntitySizes
        Draws the sizes of the entities.
    errors : Mechanism
        Makes the predicted clusters from the entities.
    records : int
        Number of records N, 1 or more.
    rng : Generator, int or None

    Raises
    ------
    DataError
        Fewer than 1 record, or fewer entities than the errors need.

    Examples
    --------
    >>> from erbayes import metrics
    >>> from erbayes.study.populations import RareErrors, Zeta
    >>> everyone = simulate(Zeta(2.5), RareErrors(10), 2000, np.random.default_rng(1))
    >>> everyone.value(metrics.pairwise_recall), everyone.value(metrics.splits)
    (1.0, 5.0)
    """
    rng = generator(rng)
    true = population(sizes, records, rng)
    need_object(errors, "apply", "errors are made by an object such as Misattribution(0.1)")
    pred = pd.Series(errors.apply(true.to_numpy(), rng), true.index, name="cluster")
    return Population(pred, true)


Words = NDArray[np.str_]

GIVEN = np.array(
    """Maria Anna Peter Thomas Michael Elizabeth Katherine Robert William Alexander Susan Margaret Andrew
    Daniel Julia Nicholas Christine Samuel Martha Edward Laura Simon Helen Victor Emma Frederick Irene
    Gregory Lucy Oliver Paula Raymond Sarah Theodore Ursula Walter Yvonne Benjamin Clara Dominic""".split()
)
NICKNAMES = np.array(
    """Mia Annie Pete Tom Mike Liz Kate Bob Bill Alex Sue Maggie Andy Dan Jules Nick Chris Sam Mattie Ed
    Laurie Si Nell Vic Em Fred Rena Greg Lou Ollie Polly Ray Sally Theo Ulla Walt Yve Ben Claire
    Dom""".split()
)
FAMILY = np.array(
    """Smith Jones Brown Taylor Wilson Davies Evans Thomas Johnson Roberts Walker Wright Robinson
    Thompson White Hughes Edwards Green Hall Wood Harris Lewis Martin Jackson Clarke Turner Hill
    Cooper Ward Moore Baker King Watson Harrison Morgan Allen James Scott Phillips Young Parker
    Bennett Price Griffiths Mitchell Kelly Cook Carter Richardson Bailey Collins Bell Shaw Murphy
    Miller Cox Khan Marshall Simpson Anderson Ellis Adams Wilkinson Foster Chapman Mason Gray Webb
    Rogers Powell Palmer Holmes Mills Hunt Lloyd Knight Barker Stone Fletcher Dixon Berry Lane Fuller
    Sutton Hawkins Curtis Barnett Nash Hodgson Winter Savage Moss Keller Frost""".split()
)
CITIES = np.array(
    """Leeds Bristol Cardiff Derby Exeter Glasgow Hull Ipswich Kendal London Luton Norwich Oxford Poole
    Reading Sheffield Truro Wells York Bath""".split()
)
LETTERS = np.array(list("aeinorstl"))


def customers(sizes: EntitySizes, records: int, rng: Seed = None) -> pd.DataFrame:
    """Make a table of customers whose truth is known, to try out drawing, labelling and estimation.

    Names are Zipf distributed, so that some persons share a name. A record may have a nickname, an initial, a
    slip of the pen, an older city, another year of birth, or no e-mail address, telephone number or year.

    Parameters
    ----------
    sizes : EntitySizes
        The number of records of a person.
    records : int
        Number of records, 1 or more.
    rng : Generator, int or None

    Returns
    -------
    DataFrame, (records,)
        Indexed by record. Columns given, family, born, city, email, phone, and person, which is the truth.
        Missing values are missing strings.

    Examples
    --------
    >>> from erbayes.study.populations import Zeta
    >>> table = customers(Zeta(2.5, 60), 1000, rng=1)
    >>> list(table.columns)
    ['given', 'family', 'born', 'city', 'email', 'phone', 'person']
    >>> len(table), bool((table["person"].value_counts() > 1).any())
    (1000, True)
    """
    need_object(sizes, "draw", "a distribution of sizes is an object such as Zeta(2.5, 60)")
    rng = generator(rng)
    person = population(sizes, records, rng).to_numpy()
    persons = int(person[-1]) + 1

    given, family = _draw_by_rank(len(GIVEN), persons, rng), _draw_by_rank(len(FAMILY), persons, rng)
    born, city = rng.integers(1935, 2007, persons), rng.integers(len(CITIES), size=persons)
    phone = rng.integers(10**8, 10**9, (persons, 2))
    names = np.char.lower(GIVEN[given] + "." + FAMILY[family])
    address = np.char.add(names, (born % 100).astype(np.str_))

    def by_chance(share: float) -> BoolArray:
        return rng.random(records) < share

    first = GIVEN[given[person]]
    first = np.where(by_chance(0.15), NICKNAMES[given[person]], first)
    first = np.where(by_chance(0.05), np.char.add(first.astype("U1"), "."), first)
    last = _replace_letters(FAMILY[family[person]], by_chance(0.08), rng)
    year = born[person] + np.where(by_chance(0.03), rng.choice([-10, -1, 1, 10], records), 0)
    place = np.where(by_chance(0.12), rng.integers(len(CITIES), size=records), city[person])
    hosts = np.where(by_chance(0.2), "@post.example", "@mail.example")
    numbers = np.char.add("0", phone[person, by_chance(0.15) + 0].astype(np.str_))
    texts = {
        "given": first,
        "family": last,
        "born": year.astype(np.str_),
        "city": CITIES[place],
        "email": np.char.add(address[person], hosts),
        "phone": numbers,
    }
    columns = {name: pd.array(column, dtype="str") for name, column in texts.items()}
    table = pd.DataFrame({**columns, "person": person})
    for column, share in {"born": 0.2, "email": 0.35, "phone": 0.3}.items():
        table.loc[by_chance(share), column] = pd.NA
    table = table.sample(frac=1, random_state=rng, ignore_index=True)
    width = len(str(records - 1))
    table.index = pd.Index([f"r{i:0{width}}" for i in range(records)], dtype="str", name="record")
    return table


def _draw_by_rank(values: int, size: int, rng: np.random.Generator) -> IntArray:
    """Draw ranks with Zipf's distribution, which names have roughly."""
    weight = 1 / np.arange(1, values + 1)
    return rng.choice(values, size, p=weight / weight.sum())


def _replace_letters(words: Words, slips: BoolArray, rng: np.random.Generator) -> Words:
    """Replace one letter of some words, or leave it out."""
    written = words.astype(object)
    for i in np.flatnonzero(slips):
        word, place = str(words[i]), int(rng.integers(1, len(words[i])))
        written[i] = (
            word[:place] + (str(rng.choice(LETTERS)) if rng.random() < 0.5 else "") + word[place + 1 :]
        )
    return written.astype(np.str_)
