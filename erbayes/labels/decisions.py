"""Decisions behind labels, each right or wrong: `mislabel` puts errors in, and `impute` draws true labels.

An annotator *opens* predicted clusters: *home*, that of the record from which an entity is labelled, those
others with records of the entity that are not *missed*, and namesakes that are *added*. In an opened cluster
each record is decided: true ones are *removed* by mistake (never the start), and foreign ones *kept*.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import gammaln, softmax

from .._internal.arrays import BoolArray, FloatArray, IntArray, Seed, generator, locate
from .._internal.errors import DataError, need
from ..units.clustering import Clustering
from ..units.ids import ids, same_kind
from .annotators import RATES, Annotator

WHOLE = 1 / 3
"""Probability that kept records are imputed cluster by cluster. Nobody knows whether annotators overlook
single records or a namesake with all of them, and intervals that undo the one are too short for the other."""
FEW = 0.25
"""Exponent ε of the prior of how many pieces are true, by which few of them may be as well as many."""
STEPS = 30
"""Steps of the EM algorithm. 300 change no estimate by .006."""
FEWEST = 40
"""Cells of a class of size, so that each class shows how many foreign records clusters have."""
BINS = 128
"""Bins of a class, more than any number of records has powers of 2, twice."""


class Members:
    """The cluster of each record as `codes`, (N,), -1 if it has none, and the records of each cluster."""

    def __init__(self, prediction: Clustering, records: pd.Index) -> None:
        # clusters are numbered as records come, so that their own order changes nothing
        self.codes = pd.factorize(pd.Series(prediction.codes, prediction.records).reindex(records))[0]
        self.order = np.argsort(self.codes, kind="stable")
        self.first = np.searchsorted(self.codes[self.order], np.arange(self.codes.max(initial=-1) + 2))
        self.sizes = np.diff(self.first)

    def list(self, cluster: int) -> IntArray:
        """Return the positions of the records of a cluster."""
        return self.order[self.first[cluster] : self.first[cluster + 1]] if cluster >= 0 else self.order[:0]


class Decisions:
    """Every decision that labels show: a row per entity and record of a cluster that was opened for it.

    `records` (N,), `shown`: the shown prediction; `others`: other predictions of its records; `entities`
    (E,), `who` (N,): entity of each record or -1; `start` (E,): a record from which each entity was labelled;
    `entity`, `cluster`, `m`, `n`, `home`, `linked` (O,): what was opened, its records and those accepted, and
    whether another prediction joins some of these to the start; `row` (D,): records, of opened clusters
    `opened` (D,); `yes`, `fixed` (D,): whether each is accepted, and is a start; `cell` (D,), `family` (C,):
    opened clusters cut by what another prediction joins to the start, and their kind, 2 home + joined;
    `elsewhere`: labels of records that are not in the prediction.
    """

    def __init__(self, labels: Any, shown: Any, starts: Any = None, rng: Seed = None) -> None:
        labels = Clustering.of(labels, "labels")
        predictions = _read_shown(shown, labels)
        # positions are by the hash of ids, so that the order of a table changes nothing
        ids_shown = predictions[0].records
        self.records = ids_shown.take(np.argsort(pd.util.hash_array(ids_shown.to_numpy()), kind="stable"))
        self.shown, *self.others = (Members(one, self.records) for one in predictions)
        position = self.records.get_indexer(labels.records)
        there = position >= 0
        if not there.any():
            raise DataError("no labelled record is in the prediction: give all records that annotators saw")
        unknown = pd.Series(labels.clusters[labels.codes[~there]], labels.records[~there], name="entity")
        self.elsewhere = unknown.sort_index()
        who = np.full(len(self.records), -1)
        who[position[there]] = labels.codes[there]
        labelled = np.flatnonzero(who >= 0)
        who[labelled], present = pd.factorize(who[labelled])
        self.who, self.entities = who, labels.clusters[present]
        # an entity is met by any of its records, if records were drawn uniformly
        mixed, given = generator(rng).permutation(labelled), labelled[:0]
        if starts is not None:
            named = ids(starts, "starts")
            locate(ids_shown, named, "starts are not in the prediction", of=len(named))
            locate(labels.records, named, "starts have no label", of=len(named))
            given = np.sort(self.records.get_indexer(named))
        self.start = np.full(len(present), -1)
        for some in (mixed, given):
            self.start[who[some]] = some
        self.entity, self.cluster = np.unique(np.column_stack([who, self.shown.codes])[labelled], axis=0).T
        self.m = m = self.shown.sizes[self.cluster]
        opened = np.repeat(np.arange(len(m)), m)
        within = np.arange(len(opened)) - np.repeat(np.cumsum(m) - m, m)
        row = self.shown.order[self.shown.first[self.cluster][opened] + within]
        # a record with a label of another entity is decided there, and shows nothing of rates here
        here = (who[row] == self.entity[opened]) | (who[row] < 0)
        self.row, self.opened = row[here], opened[here]
        self.yes = who[self.row] >= 0
        self.fixed = np.isin(self.row, np.concatenate([self.start, given]))
        self.n, self.home = self.count(self.yes), self.count(self.fixed) > 0
        joined, start = np.zeros(len(self.row), dtype=bool), self.start[self.entity[self.opened]]
        for other in self.others:
            joined |= (other.codes[self.row] == other.codes[start]) & (other.codes[start] >= 0)
        self.linked = self.count(self.yes & joined) > 0
        cells, self.cell = np.unique(2 * self.opened + joined, return_inverse=True)
        self.family = 2 * self.home[cells // 2] + cells % 2

    def count(self, rows: BoolArray) -> IntArray:
        """Count the chosen rows of each opened cluster, (O,)."""
        return np.bincount(self.opened[rows], minlength=len(self.cluster))

    def list_joined(self, taken: BoolArray) -> list[tuple[int, IntArray]]:
        """Return pieces elsewhere, with their entities, that are joined and have no label, `taken` (N,)."""
        pieces, codes = [], self.shown.codes
        for other in self.others:
            for who, start in enumerate(self.start):
                near = other.list(other.codes[start])
                near = near[(codes[near] != codes[start]) & ~taken[near]]
                pieces += [(who, near[codes[near] == code]) for code in np.unique(codes[near])]
        return pieces

    def write(self, record: IntArray, entity: IntArray) -> pd.Series:
        """Return labels, record -> entity, from positions of both; a record goes to the first of several."""
        labels = pd.Series(self.entities.take(entity), self.records.take(record), name="entity")
        return pd.concat([labels[~labels.index.duplicated()], self.elsewhere])


def _read_shown(shown: Any, labels: Clustering) -> list[Clustering]:
    """Return the shown prediction and the others, if there are several, whose ids are of one type."""
    values = list(shown.values()) if isinstance(shown, Mapping) and len(shown) else []
    several = values if values and not pd.api.types.is_scalar(values[0]) else [shown]
    predictions = [Clustering.of(one, "shown prediction") for one in several]
    for what, other in (("labels", labels), *(("other prediction", x) for x in predictions[1:])):
        same_kind(predictions[0].records, other.records, what, "record ids of the shown prediction")
    return predictions


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
    >>> mislabel(labels, prediction, careless, starts=[2], rng=1).sort_index().to_dict()
    {1: 'x', 2: 'x', 4: 'x'}
    """
    need(annotator, Annotator, "a model of errors is an Annotator, such as Annotator(missed=0.1)")
    rng = generator(rng)
    given = Decisions(labels, shown, starts, rng)
    r, u, v, w = annotator.draw(1, rng)[RATES].to_numpy()[0]
    found = (given.home | (rng.random(len(given.home)) >= u))[given.opened]
    chance = rng.random(len(given.row))
    accepted = found & np.where(given.yes, given.fixed | (chance >= r), chance < v)
    record, entity = [given.row[accepted]], [given.entity[given.opened[accepted]]]
    for cluster in rng.integers(len(given.shown.sizes), size=rng.poisson(w * len(given.entities))):
        foreign = given.shown.list(int(cluster))
        record.append(foreign[given.who[foreign] < 0])
        entity.append(np.full(len(record[-1]), rng.integers(len(given.entities))))
    return given.write(np.concatenate(record), np.concatenate(entity))


def impute(given: Decisions, rates: Mapping[Any, float], rng: np.random.Generator) -> pd.Series:
    """Draw true labels, record -> entity, that may be behind labels with errors of these rates.

    Each step has random numbers of its own, so that imputations at other rates differ by these alone.
    """
    r, u, v, w = (float(rates.get(name, 0.0)) for name in RATES)
    added, of_kind, strikes, keeps, missed = rng.spawn(5)
    # additions first, so that no false find begets others
    live, none = ~_draw_added(given, w, added)[given.opened], np.zeros(len(given.row), dtype=bool)
    struck = _draw_hidden(given, r, live, none, strikes)
    kept = _draw_hidden(given, v, live, struck, keeps, keeps=True, whole=of_kind.random() < WHOLE)
    true = (given.yes & ~kept | struck) & live
    record, entity = _draw_missed(given, true, u, r, missed)
    return given.write(
        np.concatenate([given.row[true], *record]),
        np.concatenate([given.entity[given.opened[true]], *entity]),
    )


def class_additions(given: Decisions) -> tuple[IntArray, FloatArray]:
    """Return the class of each opened cluster that may have been added, (O,), else 0, and expected additions.

    The second, (classes,), is for one addition per entity. An added cluster is added as it is shown, and no
    other prediction joins it to the start. A search shows predicted clusters of each size as often as there
    are such. Classes are of ⌊log₂ size⌋, and of entities by whether home has foreign records, as starts that
    strayed have their true pieces elsewhere.
    """
    home, sizes, whole = given.home, np.frexp(given.shown.sizes.astype(float))[1], given.n == given.m
    impure = np.zeros(len(given.entities), dtype=np.int64)
    impure[given.entity[home]] = ~whole[home]
    classes = sizes[given.cluster] + 64 * impure[given.entity]
    of_search = np.bincount(sizes, minlength=64) / len(sizes)
    may = ~home & whole & ~given.linked
    return np.where(may, classes, 0), np.outer(np.bincount(impure, minlength=2), of_search).ravel()


def _draw_added(given: Decisions, w: float, rng: np.random.Generator) -> BoolArray:
    """Draw which opened clusters were added wrongly, (O,), for w of them per entity.

    Of T clusters of a class, A were added and T - A are true. With A ~ Poisson(λ), and a prior σ^(ε - 1) of
    the mean σ of the others, P(A = a) ∝ λ^a / a! Γ(T - a + ε) / (T - a)!.
    """
    (classes, expected), foreign = class_additions(given), np.zeros(len(given.cluster), dtype=bool)
    number, rank = rng.random(len(expected)), rng.random(len(foreign))
    for code in np.unique(classes[classes > 0]) if w > 0 else ():
        here = np.flatnonzero(classes == code)
        a = np.arange(len(here) + 1)
        rest = len(here) - a
        logs = a * np.log(w * expected[code]) - gammaln(a + 1) + gammaln(rest + FEW) - gammaln(rest + 1)
        drawn = np.searchsorted(softmax(logs).cumsum()[:-1], number[code])
        foreign[here[np.argsort(rank[here])[:drawn]]] = True
    return foreign


def _draw_hidden(
    given: Decisions,
    rate: float,
    live: BoolArray,
    struck: BoolArray,
    rng: np.random.Generator,
    *,
    keeps: bool = False,
    whole: bool = False,
) -> BoolArray:
    """Draw which rows hide an error, (D,): true ones among the refused, or foreign ones among the accepted.

    In a cell with s decisions of such records that were right, h were wrong with P(h) ∝ C(s + h, h) rate^h
    p(f), or in a `whole` cell all or none; f is the number of foreign records then. p is even within bins
    (`_bin`), whose shares are found by EM from all cells, with random weights as in a Bayesian bootstrap
    (Rubin 1981, Annals of Statistics 9, 130-134), so that they are not taken as known.
    """
    cell, C, may = given.cell, len(given.family), given.yes & ~given.fixed if keeps else ~given.yes
    weight, of_cell, of_row = rng.exponential(size=C), rng.random(C), rng.random(len(cell))
    out = np.zeros(len(cell), dtype=bool)
    if rate <= 0:
        return out
    of = slice(None), given.fixed, struck, given.yes & ~given.fixed
    size, start, removed, yes = (np.bincount(cell[rows], minlength=C) for rows in of)
    no = size - start - yes - removed
    # home leaves its start, and a cluster elsewhere a record
    most = np.where((start > 0) | (given.family == 2), yes, np.maximum(yes - 1, 0)) if keeps else no
    cells = np.unique(cell[live])
    count = most[cells] + 1
    first, c = np.cumsum(count) - count, np.repeat(cells, count)
    h = np.arange(len(c)) - np.repeat(first, count)
    s = (no if keeps else yes)[c]
    logs = gammaln(s + h + 1) - gammaln(s + 1) - gammaln(h + 1) + h * np.log(rate)
    if whole:
        logs = np.where(h == 0, 0.0, np.where(s == 0, np.log(rate), -np.inf))
    bins, each = _bin(s + h if keeps else no[c] - h, size[c])
    of_bin, at = np.unique(_class_cells(given.family, size, cells)[c] * BINS + bins, return_inverse=True)
    kernel = np.exp(logs - np.repeat(np.maximum.reduceat(logs, first), count)) / each
    theta = np.ones(len(of_bin))
    for _ in range(STEPS):
        chance = kernel * theta[at]
        chance /= np.repeat(np.maximum(np.add.reduceat(chance, first), 1e-300), count)
        theta = np.bincount(at, chance * weight[c])
        theta /= np.bincount(of_bin // BINS, theta)[of_bin // BINS]
    below = np.cumsum(chance)
    below -= np.repeat((below - chance)[first], count)
    hidden = np.minimum(np.bincount(c, below < of_cell[c] * (1 - 1e-12), C).astype(np.int64), most)
    # those with the smallest random numbers, so that errors at a rate are among those at a higher one
    order = np.lexsort([np.where(may, of_row, 2.0), cell])
    out[order] = np.arange(len(order)) - np.repeat(np.cumsum(size) - size, size) < np.repeat(hidden, size)
    return out


def _bin(f: IntArray, m: IntArray) -> tuple[IntArray, IntArray]:
    """Return the bin of f foreign records of m, and how many values of f it has.

    Bins are none, all, and by the power of 2 of the fewer of f and m - f, for f the fewer and for m - f.
    """
    true = m - f
    power = np.frexp(np.maximum(np.minimum(f, true), 1).astype(float))[1]
    least = 2 ** (power.astype(np.int64) - 1)
    each = np.minimum(2 * least - 1, np.where(true < f, (m - 1) // 2, m // 2)) - least + 1
    bins = np.where(f == 0, 0, np.where(true == 0, 1, 2 + 2 * power + (true < f)))
    return bins, np.where((f == 0) | (true == 0), 1, each)


def _class_cells(family: IntArray, size: IntArray, cells: IntArray) -> IntArray:
    """Return the class of each cell, (C,): its family, and a power of 2 of its size.

    Of the largest sizes so many are one class of a family that it has `FEWEST` of the `cells`, if it can.
    """
    power = np.frexp(size.astype(float))[1]
    counts = np.zeros((4, 64), dtype=np.int64)
    np.add.at(counts, (family[cells], power[cells]), 1)
    top = np.maximum((counts[:, ::-1].cumsum(axis=1)[:, ::-1] >= FEWEST).sum(axis=1) - 1, 0)
    return np.asarray(64 * family + np.minimum(power, top[family]))


def _draw_missed(
    given: Decisions, true: BoolArray, u: float, r: float, rng: np.random.Generator
) -> tuple[list[IntArray], list[IntArray]]:
    """Draw the records of clusters that were not opened, or in which all true records were struck out.

    A found piece of t records implies NB(1, 1 - u_t) such ones, 1 - u_t = (1 - u)(1 - r^t). They go to
    entities with a home like its own and with as many found pieces as there are beside it, to each once as
    long as there are others; or, if another prediction joins the piece to its start, to where that
    prediction joins unlabelled ones.
    """
    t, home, shown = given.count(true), given.home, given.shown
    chance, waiting = 1 - rng.random(len(t)), rng.permutation(len(given.entities))
    jitter, pick = rng.random(len(shown.sizes)), rng.random(4 * len(t))
    found = np.flatnonzero(~home & (t > 0))
    rate = np.clip(1 - (1 - u) * (1 - r ** t[found]), 1e-300, 1 - 1e-12)
    number = np.floor(np.log(chance[found]) / np.log(rate)).astype(np.int64)
    record, entity = list[IntArray](), list[IntArray]()
    if not number.any():
        return record, entity
    taken = given.who >= 0
    taken[given.row[true]] = True
    near = given.list_joined(taken)
    # a home by its size, and by that of its cluster, as strays start from clusters that are not theirs
    of_home = np.zeros((len(given.entities), 2))
    of_home[given.entity[home]] = np.log(np.maximum(np.column_stack([t, given.m])[home], 1))
    beside = np.bincount(given.entity[found], minlength=len(given.entities))
    free = np.flatnonzero(np.bincount(shown.codes, ~taken) == shown.sizes)
    free = free[np.lexsort([jitter[free], shown.sizes[free]])]
    sizes, used = shown.sizes[free], np.zeros(len(free), dtype=bool)
    # more find no place
    for k, piece in enumerate(np.repeat(found, np.minimum(number, max(len(free), len(near))))):
        who, m = given.entity[piece], given.m[piece]
        if given.linked[piece]:
            if not near:
                continue
            gap = [abs(np.log(len(one) / t[piece])) for _, one in near]
            who, chosen = near.pop(int(np.argmin(gap)))
            chosen = chosen[~taken[chosen]]
        else:
            like = waiting[beside[waiting] == beside[who] - 1]
            if len(like):
                who = like[np.abs(of_home[like] - of_home[who]).sum(axis=1).argmin()]
                waiting = waiting[waiting != who]
            # a random cluster of the size, or the next larger one
            low, high = np.searchsorted(sizes, m), np.searchsorted(sizes, m, "right")
            at = int(min(low, len(sizes) - 1) + pick[k % len(pick)] * (high - low))
            rest = np.flatnonzero(~used[at:]) if len(sizes) else used
            if not len(rest):
                continue
            used[at := at + rest[0]] = True
            chosen = shown.list(int(free[at]))
            chosen = chosen[~taken[chosen]][: t[piece]]
        taken[chosen] = True
        record.append(chosen)
        entity.append(np.full(len(chosen), who))
    return record, entity
