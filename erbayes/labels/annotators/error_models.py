"""Annotators' errors, there and back: `mislabel` puts them into labels, and `impute` draws true labels.

An annotator sees *home*, the predicted cluster of the record from which an entity is labelled, and searches
for more. Pieces of the entity elsewhere are *missed* as a whole, foreign records of home are *kept*, and
predicted clusters of namesakes are *added*.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pandas as pd
from scipy.special import gammaln, softmax

from ..._internal.arrays import BoolArray, FloatArray, IntArray, Seed, generator
from ..._internal.errors import DataError, head, need, number, whole
from ...units.ids import ids
from .pieces import Labelling, Members


@runtime_checkable
class Rate(Protocol):
    """An unknown rate with a distribution."""

    def draw(self, rng: np.random.Generator, size: tuple[int, ...]) -> FloatArray:
        """Draw values of 0 or more, an array of shape `size`."""


@dataclass(frozen=True, slots=True)
class Beta:
    """A Beta prior of a rate. Its mean is a/(a + b), and it weighs as much as a + b observed cases.

    Parameters
    ----------
    a, b : float, above 0
        Imagined cases with and without the error.

    Examples
    --------
    >>> round(float(Beta(20, 80).draw(np.random.default_rng(1), (10_000,)).mean()), 2)
    0.2
    """

    a: float
    b: float

    def __post_init__(self) -> None:
        for value in (self.a, self.b):
            number(value, "a and b of Beta", lambda x: 0 < x < np.inf, "be above 0 and finite")

    def draw(self, rng: np.random.Generator, size: tuple[int, ...]) -> FloatArray:
        """Draw values in [0, 1], an array of shape `size`."""
        return rng.beta(self.a, self.b, size)


@dataclass(frozen=True, slots=True)
class Gamma:
    """A Gamma prior of a number per entity: `cases` were seen in so many `entities`.

    Its mean is cases/entities, and its standard deviation √cases/entities.

    Examples
    --------
    >>> round(float(Gamma(2, 100).draw(np.random.default_rng(1), (10_000,)).mean()), 2)
    0.02
    """

    cases: float
    entities: float

    def __post_init__(self) -> None:
        for value in (self.cases, self.entities):
            number(value, "cases and entities of Gamma", lambda x: 0 < x < np.inf, "be above 0 and finite")

    def draw(self, rng: np.random.Generator, size: tuple[int, ...]) -> FloatArray:
        """Draw values of 0 or more, an array of shape `size`."""
        return rng.gamma(self.cases, 1 / self.entities, size)


def drawn(rate: float | Rate, rng: np.random.Generator, size: tuple[int, ...] = ()) -> FloatArray:
    """Draws of a rate, or copies of a known rate, an array of shape `size`."""
    return np.asarray(rate.draw(rng, size)) if isinstance(rate, Rate) else np.full(size, rate, dtype=float)


RATES = ["missed", "kept", "added"]
WHOLE = 1 / 3
"""Probability that foreign records are imputed home by home. Nobody knows whether annotators overlook single
records or a namesake with all of them, and intervals that undo the one are too short for the other."""
FEW = 0.25
"""Exponent ε of the prior of how many pieces are true, by which few of them may be as well as many."""
TRIES = 20
"""Clusters that are looked at for an unlabelled one of a size, each time among more sizes."""


@dataclass(frozen=True, slots=True)
class Annotator:
    """What annotators may have done wrong: three rates, each a number or a prior. By default nothing.

    Parameters
    ----------
    missed : float or Rate
        Probability, below 1, that a piece of an entity outside home is missed.
    kept : float or Rate
        Probability, below 1, that a foreign record of home is kept.
    added : float or Rate
        Number of foreign predicted clusters that are added to an entity, on average.
    source : str
        Where the rates come from, for those who quote the result.

    Examples
    --------
    >>> from erbayes.labels import Beta, Gamma
    >>> annotator = Annotator(missed=Beta(3, 17), kept=0.1, added=Gamma(2, 100))
    >>> annotator.draw(2000, rng=1).mean().round(2).to_dict()
    {'missed': 0.15, 'kept': 0.1, 'added': 0.02}
    """

    missed: float | Rate = 0.0
    kept: float | Rate = 0.0
    added: float | Rate = 0.0
    source: str = "judgement"

    def __post_init__(self) -> None:
        for name in RATES:
            if not isinstance(rate := getattr(self, name), Rate):
                number(rate, name, lambda x: 0 <= x < np.inf, "be 0 or more, or a prior such as Beta(3, 17)")

    def draw(self, number: int, rng: Seed = None) -> pd.DataFrame:
        """Draw the rates of as many annotators, a row each and a column for each rate."""
        rng, size = generator(rng), (whole(number, "number of draws"),)
        return check_rates(pd.DataFrame({name: drawn(getattr(self, name), rng, size) for name in RATES}))


def check_rates(rates: pd.DataFrame) -> pd.DataFrame:
    """Return a table of rates with a column for each of the three, refusing values that none can have."""
    if unknown := sorted(map(str, set(rates.columns) - {*RATES, "delta"})):
        raise DataError(f"no rate is called {head(unknown)}: columns are {', '.join(RATES)} and delta")
    rates = rates.reindex(columns=[*RATES, *rates.columns.difference(RATES)], fill_value=0.0)
    if not (rates >= 0).all(axis=None):
        raise DataError("rates of errors are numbers of 0 or more")
    if (rates[["missed", "kept"]] >= 1).any(axis=None):
        raise DataError("true labels cannot be imputed if all is missed or kept: rates must be below 1")
    return rates


def mislabel(
    labels: Any, shown: Any, annotator: Annotator, *, starts: Any = None, rng: Seed = None
) -> pd.Series:
    """Put simulated errors of an annotator into true labels.

    Parameters
    ----------
    labels, shown, starts
        As in `erbayes.with_errors`. Records that are missing in the prediction stay as they are.
    annotator : Annotator
        Rates with priors are drawn once, since they belong to the annotator.
    rng : Generator, int or None

    Returns
    -------
    Series, record -> entity
        A record that is labelled is never accepted for a second entity.

    Examples
    --------
    >>> labels, prediction = {1: "x", 2: "x", 3: "x"}, {1: "a", 2: "a", 3: "b", 4: "a"}
    >>> careless = Annotator(missed=0.999, kept=0.999)
    >>> mislabel(labels, prediction, careless, starts=[2], rng=1).to_dict()
    {1: 'x', 2: 'x', 4: 'x'}
    """
    need(annotator, Annotator, "a model of errors is an Annotator, such as Annotator(missed=0.1)")
    rng = generator(rng)
    given = Labelling.of(labels, shown, starts, rng)
    u, v, w = annotator.draw(1, rng).to_numpy()[0]
    # who starts from a record has found its piece
    position = given.start if starts is None else given.records.get_indexer(ids(starts, "starts"))
    started = np.logical_or.reduceat(np.isin(given.record, position), given.first[:-1])
    found = given.home | started | (rng.random(len(given.who)) >= u)
    found = found[given.piece]
    record, entity = [given.record[found]], [given.who[given.piece[found]]]
    labelled = np.zeros(len(given.records), dtype=bool)
    labelled[given.record] = True
    namesakes = rng.integers(len(given.shown.sizes), size=rng.poisson(w * len(given.entities)))
    added = rng.integers(len(given.entities), size=len(namesakes))
    homes, everyone = given.shown.codes[given.start], np.arange(len(given.entities))
    for who, cluster, rate in (
        *zip(everyone, homes, np.full(len(homes), v), strict=True),
        *zip(added, namesakes, np.ones(len(added)), strict=True),
    ):
        foreign = given.shown.list(int(cluster))
        foreign = foreign[~labelled[foreign]]
        record.append(foreign[rng.random(len(foreign)) < rate])
        entity.append(np.full(len(record[-1]), who))
    return given.write(np.concatenate(record), np.concatenate(entity))


def impute(given: Labelling, rates: Mapping[Any, float], rng: np.random.Generator) -> pd.Series:
    """Draw true labels, record -> entity, that may be behind labels with errors of these rates."""
    u, v, w = (float(rates[name]) for name in RATES)
    # additions first, so that no false find begets imputed ones
    stays = ~_draw_added(given, w, rng)
    record, entity = _draw_missed(given, stays, u, rng)
    left = stays[given.piece] & ~_draw_kept(given, v, rng)
    return given.write(
        np.concatenate([given.record[left], *record]),
        np.concatenate([given.who[given.piece[left]], np.array(entity, dtype=np.int64)]),
    )


def _draw_overlooked(caught: Any, rate: float, rng: np.random.Generator) -> IntArray:
    """Draw the number of cases overlooked, given those caught, if each is overlooked with a rate below 1."""
    # what is overlooked until `caught` are caught is negative binomial, a gamma mixture of Poisson numbers,
    # which allows counts of 0 where NumPy's negative binomial does not
    return np.asarray(rng.poisson(rng.gamma(np.asarray(caught, dtype=float)) * (rate / (1 - rate))))


def class_additions(given: Labelling) -> tuple[IntArray, FloatArray]:
    """Return the class of each piece that may have been added, (p,), 0 for others, and expected additions.

    The second, (classes,), is for one addition per entity. An added cluster is added as it is shown, and no
    other prediction joins it to the start. A search shows predicted clusters of each size as often as there
    are such. Classes are of ⌊log₂ size⌋, and of entities by whether home has foreign records, as starts that
    strayed have their true pieces elsewhere.
    """
    home, sizes = given.home, np.frexp(given.shown.sizes.astype(float))[1]
    joined = np.logical_or.reduceat(
        given.are_joined(given.start[given.who[given.piece]], given.record), given.first[:-1]
    )
    impure = np.zeros(len(given.entities), dtype=np.int64)
    impure[given.who[home]] = (given.n < given.m)[home]
    classes = sizes[given.cluster] + 64 * impure[given.who]
    of_search = np.bincount(sizes, minlength=64) / len(sizes)
    may = ~home & (given.n == given.m) & ~joined
    return np.where(may, classes, 0), np.outer(np.bincount(impure, minlength=2), of_search).ravel()


def _draw_added(given: Labelling, w: float, rng: np.random.Generator) -> BoolArray:
    """Draw which pieces were added wrongly, (p,), for w of them per entity.

    Of T pieces of a class, A were added and T - A are true. With A ~ Poisson(λ), and a prior σ^(ε - 1) of the
    mean σ of the others, P(A = a) ∝ λ^a / a! Γ(T - a + ε) / (T - a)!.
    """
    classes, expected = class_additions(given)
    foreign = np.zeros(len(classes), dtype=bool)
    for code in np.unique(classes[classes > 0]) if w > 0 else ():
        here = np.flatnonzero(classes == code)
        a = np.arange(len(here) + 1)
        rest = len(here) - a
        logs = a * np.log(w * expected[code]) - gammaln(a + 1) + gammaln(rest + FEW) - gammaln(rest + 1)
        number = rng.choice(a, p=softmax(logs))
        foreign[rng.choice(here, number, replace=False)] = True
    return foreign


def _draw_missed(
    given: Labelling, stays: BoolArray, u: float, rng: np.random.Generator
) -> tuple[list[IntArray], list[int]]:
    """Draw the records of missed pieces, and the entity of each record.

    A found piece implies NB(1, 1 - u) missed ones of its size. They go to entities with a home like its own
    and with as many found pieces as there are beside it, to each once as long as there are others; or, if
    another prediction joins the piece to its start, to where that prediction joins unlabelled ones.
    """
    n, m, home = given.n, given.m, given.home
    found = np.flatnonzero(~home & stays)
    taken = np.zeros(len(given.records), dtype=bool)
    taken[given.record] = True
    near = given.list_joined(taken)
    # a home by its size, and by that of its cluster, as strays start from clusters that are not theirs
    of_home = np.zeros((len(given.entities), 2))
    of_home[given.who[home]] = np.log(np.column_stack([n, m])[home])
    beside = np.bincount(given.who[found], minlength=len(given.entities))
    waiting = rng.permutation(len(given.entities))
    by_size = np.argsort(given.shown.sizes, kind="stable")
    record, entity = list[IntArray](), list[int]()
    for piece in np.repeat(found, _draw_overlooked(np.ones(len(found)), u, rng)):
        who, own = given.who[piece], given.record[given.first[piece] : given.first[piece + 1]]
        if given.are_joined(given.start[who], own).any():
            if not near:
                continue
            gap = [abs(np.log(len(one) / n[piece])) + rng.random() * 1e-3 for _, one in near]
            who, chosen = near.pop(int(np.argmin(gap)))
        else:
            like = waiting[beside[waiting] == beside[who] - 1]
            if len(like):
                who = like[np.abs(of_home[like] - of_home[who]).sum(axis=1).argmin()]
                waiting = waiting[waiting != who]
            chosen = _find_unlabelled(given.shown, by_size, m[piece], taken, rng)
            chosen = rng.permutation(chosen)[: n[piece]]
        chosen = chosen[~taken[chosen]]
        taken[chosen] = True
        record.append(chosen)
        entity += [int(who)] * len(chosen)
    return record, entity


def _find_unlabelled(
    shown: Members, by_size: IntArray, size: int, taken: BoolArray, rng: np.random.Generator
) -> IntArray:
    """Return the records of a random unlabelled cluster of about a size; none if there is no such cluster."""
    sizes = shown.sizes
    first, last = (int(np.searchsorted(sizes, size, side, sorter=by_size)) for side in ("left", "right"))
    for _ in range(TRIES):
        records = shown.list(int(by_size[rng.integers(first, last)]))
        if not taken[records].any():
            return records
        first, last = max(first - 5, 0), min(last + 5, len(by_size))
    return by_size[:0]


def _draw_kept(given: Labelling, v: float, rng: np.random.Generator) -> BoolArray:
    """Draw which labelled records of homes are foreign, (L,); starts never are."""
    own = given.home[given.piece] & (given.record != given.start[given.who[given.piece]])
    if not given.others and rng.random() < WHOLE:
        return _draw_whole_homes(given, own, v, rng)
    apart, removed, together = 0, np.where(given.home, given.m - given.n, 0), own
    if given.others:  # records that these split off are imputed in any home, others in their own
        joined = given.are_joined(given.start[given.who[given.piece]], given.record)
        labelled = np.bincount(given.piece, joined, minlength=len(given.who))
        for piece in np.flatnonzero(removed):
            start = given.start[given.who[piece]]
            near = given.are_joined(start, given.shown.list(given.cluster[piece])).sum()
            near -= int(labelled[piece])
            apart, removed[piece] = apart + removed[piece] - near, near
        together = own & joined
    kept = _draw_overlooked(removed, v, rng)
    foreign = np.zeros(len(own), dtype=bool)
    for piece in np.flatnonzero(kept):
        here = np.arange(given.first[piece], given.first[piece + 1])
        here = here[together[here]]
        foreign[rng.choice(here, min(kept[piece], len(here)), replace=False)] = True
    anywhere = np.flatnonzero(own & ~together)
    number = min(int(_draw_overlooked(apart, v, rng)), len(anywhere))
    foreign[rng.choice(anywhere, number, replace=False)] = True
    return foreign


def _draw_whole_homes(given: Labelling, own: BoolArray, v: float, rng: np.random.Generator) -> BoolArray:
    """Draw foreign records, (L,): a home with removed ones implies NB(1, 1 - v) whole ones with as many."""
    n, m, home = given.n, given.m, given.home
    impure = np.flatnonzero(home & (n < m))
    pure = rng.permutation(np.flatnonzero(home & (n == m) & (m > 1)))
    foreign = np.zeros(len(given.record), dtype=bool)
    for piece in np.repeat(impure, _draw_overlooked(np.ones(len(impure)), v, rng)):
        if not len(pure):
            break
        at = int(np.abs(np.log(m[pure] / m[piece])).argmin())
        here = np.arange(given.first[pure[at]], given.first[pure[at] + 1])
        pure, here = np.delete(pure, at), here[own[here]]
        foreign[rng.choice(here, min(int(m[piece] - n[piece]), len(here)), replace=False)] = True
    return foreign
