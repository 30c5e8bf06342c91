"""Coverage of intervals of the size model where sizes have heavy tails.

    python benchmarks/heavy_tails.py [FILE] [--alarms | --pool]
        [--others | --fresh | --choice | --judged | --judged-again | --pooled]

95 % intervals of pairwise precision (P) and recall (R) under uniform records and uniform clusters, 100
and 400 draws: the model's fast fit, closed forms and bootstraps on the same 200 samples per cell. The
truth is PatentsView's release of 2022-06-30, the predictions are four earlier ones and the paper's noise
at rate .10; with --others further pairs and simulated populations, among which the
model's priors were chosen, 100 samples per cell; with --fresh those that were set down when the model was
final and had no part in it. In five or more populations each of --choice and --judged, predictions split the
largest entities. These populations were set down before the laws of error were worked on: laws are chosen on
--choice alone, and --judged is used once they are final. After that --judged served to choose further laws,
and --judged-again, set down before those, to judge them. The linear pool of size model and
closed form was chosen on these (--judged-again --pool), and --pooled judged it (--pooled --pool). FILE keeps
finished work, so that the study goes on there when stopped.

Exits 1 if a bar is missed by more than two Monte Carlo standard errors, for P or for R: coverage of
.90 in every cell and of .93 on average over the cells of a design; the mean interval score of the
percentile bootstrap under uniform clusters, and 1.05 times that of the best other interval that refuses
no sample under uniform records. Of the others it lists the cells that cover less than .90, and exits 0.

On 1 core it takes half an hour, with --others an hour, with --fresh half of one.
"""

import argparse
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import markdown
import numpy as np
import pandas as pd
from engines import on_calibrated, on_distinct
from patentsview import noisy, pair
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from erbayes import identity
from erbayes import metrics as m
from erbayes._internal.arrays import IntArray
from erbayes.bayes import Modelled, fast
from erbayes.datasets import patentsview_mentions, patentsview_release, rldata10000_example1
from erbayes.engine import (
    Estimator,
    Jackknife,
    Resampled,
    Studentised,
    Taylor,
    taylor,
)
from erbayes.labels import Records
from erbayes.metrics.intervals import EqualTailed
from erbayes.study import Entities, Study, draw_samples, study
from erbayes.study import populations as sim

RELEASES = {
    "2017-08-08": "20170808",
    "2017-12-26": "20171226",
    "2019-08-20": "20190820",
    "2020-12-29": "20201229",
}
PLANS = {"uniform records": Records(), "uniform clusters": Entities()}
METRICS = (m.pairwise_precision, m.pairwise_recall)
MODEL, PERCENTILE, POOL = "size model", "percentile", "linear pool"
ESTIMATORS = {
    MODEL: Modelled(),
    PERCENTILE: Estimator(Resampled(replicates=1000), EqualTailed()),
    "default": Taylor(),
    "bootstrap-t": Estimator(Resampled(replicates=1000), Studentised(identity)),
    "jackknife": Jackknife(),
    "calibrated": on_calibrated,
    "distinct": on_distinct,
}
DESIGNED_FOR_RECORDS = ("calibrated", "distinct")
RECORDS = 100_000
SIMULATED = {
    "Zeta 2.2, misattribution .05": (sim.Zeta(2.2, 2000), sim.Misattribution(0.05)),
    "Zeta 2.5, splits .3": (sim.Zeta(2.5, 5000), sim.Splits(0.3)),
    "Zeta 2.5, 200 rare errors": (sim.Zeta(2.5, 2000), sim.RareErrors(200)),
    "LogNormal 1.2, merges .05": (sim.LogNormal(1.0, 1.2), sim.Merges(0.05)),
    "LogNormal 1.5, larger drop more": (sim.LogNormal(0.5, 1.5), sim.SizeDependent(-4.0, 0.4)),
    "LogNormal 1.2, homonyms 5 x 200": (sim.LogNormal(1.0, 1.2), sim.Homonyms(5, 200, 0.4)),
    "NegBinomial .5, homonyms 20 x 50": (sim.NegativeBinomial(4.0, 0.5), sim.Homonyms(20, 50)),
    "Pitman-Yor .5, misattribution .10": (sim.PitmanYor(500.0, 0.5), sim.Misattribution(0.1)),
    "Ewens, splits and merges .10": (sim.PitmanYor(3000.0), sim.Chain((sim.Splits(0.1), sim.Merges(0.1)))),
    "Ewens, 100 rare errors": (sim.PitmanYor(3000.0), sim.RareErrors(100)),
    "Zeta 2.3, misattribution .02": (sim.Zeta(2.3, 3000), sim.Misattribution(0.02)),
    "Zeta 2.4, homonyms 10 x 100": (sim.Zeta(2.4, 1000), sim.Homonyms(10, 100, 0.5)),
    "LogNormal 1.3, splits and misattribution": (
        sim.LogNormal(1.0, 1.3),
        sim.Chain((sim.Splits(0.15), sim.Misattribution(0.03))),
    ),
    "LogNormal 1.4, larger drop a little more": (sim.LogNormal(0.5, 1.4), sim.SizeDependent(-3.0, 0.2)),
    "NegBinomial 1, merges and misattribution": (
        sim.NegativeBinomial(6.0, 1.0),
        sim.Chain((sim.Merges(0.1), sim.Misattribution(0.08))),
    ),
    "Pitman-Yor .6, splits .2": (sim.PitmanYor(300.0, 0.6), sim.Splits(0.2)),
    "Ewens, misattribution .15": (sim.PitmanYor(5000.0), sim.Misattribution(0.15)),
}
FRESH = {
    "Zeta 2.6, merges .1": (sim.Zeta(2.6, 4000), sim.Merges(0.1)),
    "Zeta 2.3, splits .1 and misattribution": (
        sim.Zeta(2.3, 1500),
        sim.Chain((sim.Splits(0.1), sim.Misattribution(0.02))),
    ),
    "LogNormal 1.1, misattribution .2": (sim.LogNormal(1.2, 1.1), sim.Misattribution(0.2)),
    "LogNormal 1.4, splits .05": (sim.LogNormal(0.8, 1.4), sim.Splits(0.05)),
    "NegBinomial .3, larger drop more": (sim.NegativeBinomial(8.0, 0.3), sim.SizeDependent(-3.5, 0.3)),
    "Pitman-Yor .4, homonyms 8 x 80": (sim.PitmanYor(800.0, 0.4), sim.Homonyms(8, 80, 0.6)),
    "Pitman-Yor .7, misattribution .04": (sim.PitmanYor(100.0, 0.7), sim.Misattribution(0.04)),
}


@dataclass(frozen=True)
class Capped:
    """Entities cut into clusters of at most `most` records, as by a matcher that caps its blocks."""

    most: int

    def apply(self, codes: IntArray, rng: np.random.Generator) -> IntArray:
        return parted(codes, rng, lambda s: np.arange(s) // self.most)


@dataclass(frozen=True)
class Shattered:
    """Entities of more than `above` records, each divided by a Pitman-Yor process of its own."""

    strength: float
    discount: float = 0.0
    above: int = 1

    def apply(self, codes: IntArray, rng: np.random.Generator) -> IntArray:
        law = sim.PitmanYor(self.strength, self.discount)

        def pieces(s: int) -> IntArray:
            of_piece = law.draw(s, rng) if s > self.above else np.array([s])
            return np.repeat(np.arange(len(of_piece)), of_piece)

        return parted(codes, rng, pieces)


@dataclass(frozen=True)
class Even:
    """Entities of more than `above` records, each divided at random among `pieces` clusters."""

    pieces: int
    above: int

    def apply(self, codes: IntArray, rng: np.random.Generator) -> IntArray:
        return parted(codes, rng, lambda s: rng.integers(self.pieces if s > self.above else 1, size=s))


@dataclass(frozen=True)
class Eras:
    """Entities cut where a gap in time follows a record, which has probability `rate` at each record."""

    rate: float

    def apply(self, codes: IntArray, rng: np.random.Generator) -> IntArray:
        return parted(codes, rng, lambda s: np.cumsum(rng.random(s) < self.rate))


@dataclass(frozen=True)
class Percolated:
    """Entities whose records are joined by random pairs and transitivity, `degree` partners on average."""

    degree: float

    def apply(self, codes: IntArray, rng: np.random.Generator) -> IntArray:
        def pieces(s: int) -> IntArray:
            pairs = rng.integers(s, size=(2, rng.poisson(self.degree * s / 2)))
            return components(s, *pairs)

        return parted(codes, rng, pieces)


@dataclass(frozen=True)
class Fragmented:
    """Entities broken at random places: each piece of more than `above` records, with probability `rate`."""

    above: int
    rate: float

    def apply(self, codes: IntArray, rng: np.random.Generator) -> IntArray:
        def pieces(s: int) -> IntArray:
            whole, done = [s], []
            while whole:
                n = whole.pop()
                if n > self.above and rng.random() < self.rate:
                    k = int(rng.integers(1, n))
                    whole += [k, n - k]
                else:
                    done.append(n)
            return np.repeat(np.arange(len(done)), done)

        return parted(codes, rng, pieces)


def components(records: int, first: IntArray, second: IntArray) -> IntArray:
    """Return the connected component of each record, in the graph of some pairs."""
    graph = coo_array((np.ones(len(first)), (first, second)), shape=(records, records))
    return connected_components(graph, directed=False)[1]


def matched(law: sim.SizeLaw, seed: int, *rules: tuple[str, ...]) -> sim.Population:
    """Customers, linked if they agree on all columns of one rule, where none of them is missing."""
    table = sim.customers(law, RECORDS, seed)
    first, second = [], []
    for rule in rules:
        whole = table.reset_index(drop=True).dropna(subset=list(rule))
        leader = whole.groupby(list(rule)).person.transform(lambda of_key: of_key.index[0])
        first.append(whole.index.to_numpy())
        second.append(leader.to_numpy())
    found = components(RECORDS, np.concatenate(first), np.concatenate(second))
    return sim.Population(pd.Series(found, table.index), table.person)


def parted(codes: IntArray, rng: np.random.Generator, pieces: Callable[[int], IntArray]) -> IntArray:
    """Divide clusters: `pieces` returns the piece of each record of a cluster of s records."""
    order = np.argsort(codes, kind="stable")
    of_piece = np.concatenate([pieces(s) for s in np.bincount(codes)])
    key = pd.MultiIndex.from_arrays([codes[order], of_piece])
    predicted = np.empty_like(codes)
    predicted[order] = pd.factorize(key)[0]
    return predicted


CHOICE_PAIRS = (("20220630", "20190820"), ("20191008", "20220630"))
CHOICE = {
    "Zeta 2.1, capped at 60": (sim.Zeta(2.1, 4000), Capped(60)),
    "LogNormal 1.6, shattered .5": (
        sim.LogNormal(0.3, 1.6),
        sim.Chain((Shattered(0.5, 0.1), sim.Misattribution(0.01))),
    ),
    "Pitman-Yor .6, giants in three": (
        sim.PitmanYor(300.0, 0.6),
        sim.Chain((Even(3, 100), sim.Splits(0.05), sim.Merges(0.02))),
    ),
    "Zeta 2.3, eras .01": (sim.Zeta(2.3, 3000), sim.Chain((Eras(0.01), sim.Merges(0.03)))),
    "Zeta 2.4, misattribution .05, splits .1": (
        sim.Zeta(2.4, 2500),
        sim.Chain((sim.Misattribution(0.05), sim.Splits(0.1))),
    ),
    "LogNormal 1.2, splits .02": (sim.LogNormal(0.8, 1.2), sim.Chain((sim.Splits(0.02), sim.Merges(0.01)))),
}
"""Populations to choose laws on."""
JUDGED_PAIRS = (("20211230", "20171226"), ("20200929", "20171003"), ("20200331", "20220630"))
JUDGED = {
    "Zeta 2.2, capped at 100": (
        sim.Zeta(2.2, 5000),
        sim.Chain((sim.Misattribution(0.03), Capped(100))),
    ),
    "Pitman-Yor .5, shattered 1": (
        sim.PitmanYor(200.0, 0.5),
        sim.Chain((Shattered(1.0), sim.Merges(0.02))),
    ),
    "LogNormal 1.5, giants shattered": (
        sim.LogNormal(0.5, 1.5),
        sim.Chain((Shattered(2.0, 0.4, 150), sim.Splits(0.05), sim.Misattribution(0.01))),
    ),
    "Ewens, giants in ten": (
        sim.PitmanYor(1500.0),
        sim.Chain((Even(10, 200), sim.Splits(0.1))),
    ),
    "Zeta 2.5, eras .003": (sim.Zeta(2.5, 4000), sim.Chain((Eras(0.003), sim.Misattribution(0.02)))),
    "Ewens, one record in 100 lost": (sim.PitmanYor(2500.0), sim.SizeDependent(-4.6, 0.0)),
    "Zeta 2.4, splits .03": (sim.Zeta(2.4, 2000), sim.Chain((sim.Splits(0.03), sim.Merges(0.01)))),
    "LogNormal 1.3, homonyms 6 x 60": (
        sim.LogNormal(1.0, 1.3),
        sim.Chain((sim.Homonyms(6, 60, 0.7), sim.Misattribution(0.02))),
    ),
    "NegBinomial .4, merges and splits": (
        sim.NegativeBinomial(5.0, 0.4),
        sim.Chain((sim.Merges(0.05), sim.Splits(0.1))),
    ),
}
"""Populations to judge laws on, once they are final."""

AGAIN_PAIRS = (
    ("20201229", "20180528"),
    ("20190312", "20170808"),
    ("20211230", "20190312"),
    ("20181127", "20211230"),
    ("20200331", "20180528"),
)
AGAIN = {
    "Zeta 2.2, random pairs 1.2": (
        sim.Zeta(2.2, 6000),
        sim.Chain((Percolated(1.2), sim.Misattribution(0.02))),
    ),
    "LogNormal 1.6, fragments above 80": (
        sim.LogNormal(0.4, 1.6),
        sim.Chain((Fragmented(80, 0.97), sim.Splits(0.03), sim.Merges(0.03))),
    ),
    "Pitman-Yor .55, fragments above 8": (
        sim.PitmanYor(150.0, 0.55),
        sim.Chain((Fragmented(8, 0.4), sim.Misattribution(0.01))),
    ),
    "Ewens, random pairs 3": (sim.PitmanYor(1000.0), Percolated(3.0)),
    "Zeta 2.6, splits .01": (sim.Zeta(2.6, 3000), sim.Chain((sim.Splits(0.01), sim.RareErrors(60)))),
    "LogNormal 1.1, splits .01": (sim.LogNormal(1.0, 1.1), sim.Splits(0.01)),
    "NegBinomial .6, larger drop more": (sim.NegativeBinomial(10.0, 0.6), sim.SizeDependent(-6.0, 0.5)),
    "Pitman-Yor .3, homonyms 12 x 40": (
        sim.PitmanYor(1200.0, 0.3),
        sim.Chain((sim.Homonyms(12, 40, 0.8), sim.Splits(0.05))),
    ),
}
"""Populations to judge laws on that were chosen with the help of those above."""

POOLED_PAIRS = (("20220630", "20171226"), ("20200630", "20190820"))
POOLED = {
    "Zeta 2.1, capped at 40": (
        sim.Zeta(2.1, 3000),
        sim.Chain((sim.Misattribution(0.03), Capped(40))),
    ),
    "LogNormal 1.5, giants in five": (
        sim.LogNormal(0.6, 1.5),
        sim.Chain((Even(5, 120), sim.Merges(0.03))),
    ),
    "NegBinomial .3, giants shattered": (
        sim.NegativeBinomial(12.0, 0.3),
        sim.Chain((Shattered(3.0, 0.2, 60), sim.Splits(0.05))),
    ),
    "Ewens, eras .02": (sim.PitmanYor(800.0), sim.Chain((Eras(0.02), sim.Misattribution(0.01)))),
    "Pitman-Yor .65, random pairs 4": (sim.PitmanYor(150.0, 0.65), Percolated(4.0)),
    "Zeta 2.35, half of the giants in fragments": (
        sim.Zeta(2.35, 5000),
        sim.Chain((Fragmented(150, 0.5), sim.Splits(0.1))),
    ),
    "Zeta 2.7, splits and merges .02": (
        sim.Zeta(2.7, 1000),
        sim.Chain((sim.Splits(0.02), sim.Merges(0.02))),
    ),
    "LogNormal 1, misattribution .1": (sim.LogNormal(1.0, 1.0), sim.Misattribution(0.1)),
    "NegBinomial 2, homonyms 15 x 30": (
        sim.NegativeBinomial(5.0, 2.0),
        sim.Chain((sim.Homonyms(15, 30, 0.5), sim.Splits(0.03))),
    ),
    "Ewens, 300 rare errors and splits .005": (
        sim.PitmanYor(4000.0),
        sim.Chain((sim.RareErrors(300), sim.Splits(0.005))),
    ),
}
"""Populations to judge the linear pool on, set down before any fit to them."""


OTHER_PAIRS = (
    ("20180528", "20220630"),
    ("20200630", "20220630"),
    ("20211230", "20220630"),
    ("20181127", "20200331"),
    ("20171003", "20191231"),
    ("20190312", "20220630"),
    ("20191008", "20200929"),
    ("20200929", "20220630"),
)
FRESH_PAIRS = (
    ("20171003", "20220630"),
    ("20180528", "20200630"),
    ("20191231", "20220630"),
    ("20200331", "20211230"),
)


def populations() -> dict[str, sim.Population]:
    """Earlier releases, and noise, against the release of 2022-06-30."""
    return {name: pair(date) for name, date in RELEASES.items()} | {"noise .10": noisy()}


def further(
    pairs: tuple[tuple[str, str], ...], simulated: dict, first_seed: int = 0
) -> dict[str, sim.Population]:
    """Releases as predictions of other ones, and simulated populations."""
    people = {f"{pred} of {truth}": pair(pred, truth) for pred, truth in pairs}
    for seed, (name, (law, errors)) in enumerate(simulated.items(), first_seed):
        people[name] = sim.simulate(law, errors, RECORDS, np.random.default_rng(seed))
    return people


def others() -> dict[str, sim.Population]:
    """Populations among which priors were chosen, besides the named pairs."""
    return further(OTHER_PAIRS, SIMULATED)


def fresh() -> dict[str, sim.Population]:
    """Populations that had no part in the model."""
    return further(FRESH_PAIRS, FRESH)


def choice() -> dict[str, sim.Population]:
    """Populations on which laws were chosen."""
    example = rldata10000_example1()
    return further(CHOICE_PAIRS, CHOICE) | {"RLdata10000": sim.Population(example.pred, example.true)}


def judged() -> dict[str, sim.Population]:
    """Populations on which laws were judged."""
    return further(JUDGED_PAIRS, JUDGED)


def judged_again() -> dict[str, sim.Population]:
    """Populations on which later laws were judged."""
    return further(AGAIN_PAIRS, AGAIN, 1000) | {
        "customers, strict": matched(sim.Zeta(2.3, 3000), 1100, ("phone", "born"), ("email", "city")),
        "customers, loose": matched(
            sim.LogNormal(0.8, 1.3), 1101, ("phone",), ("email", "born"), ("given", "family", "born", "city")
        ),
    }


def by_name(truth: str, years: int | None = None) -> sim.Population:
    """Mentions of equal names, and of the same block of years if any, as the prediction of a release."""
    mentions = patentsview_mentions()
    key = mentions["last"].str.lower() + ", " + mentions["first"].str.lower()
    if years:
        key = key + " " + (mentions["year"] // years).astype(str)
    return sim.Population.of(key.dropna(), patentsview_release(truth))


def pooled() -> dict[str, sim.Population]:
    """Populations on which the linear pool was judged."""
    return further(POOLED_PAIRS, POOLED, 2000) | {
        "names of 20211230": by_name("20211230"),
        "names and five years of 20200929": by_name("20200929", 5),
        "customers, three rules": matched(
            sim.PitmanYor(2000.0, 0.3), 2100, ("phone", "city"), ("email",), ("given", "family", "born")
        ),
    }


def scored(found: Study) -> pd.DataFrame:
    """Return each run with its interval score and the direction in which the interval misses the truth."""
    runs = found.runs
    below, above = np.maximum(runs.lower - runs.truth, 0), np.maximum(runs.truth - runs.upper, 0)
    score = runs.upper - runs.lower + 2 / (1 - found.level) * (below + above)
    covered = (below + above == 0).where(score.notna())
    return runs.assign(score=score, covered=covered, too_high=below > 0, too_low=above > 0)


def decimals(x: float, digits: int) -> str:
    return re.sub(r"(?<!\d)0\.", ".", f"{x:.{digits}f}") if np.isfinite(x) else "-"


def shown(runs: pd.DataFrame, plan: str, metric: str) -> str:
    """Coverage and interval score as Markdown, one row per cell and one column per estimator."""
    cells = runs[(runs.plan == plan) & (runs.metric == metric)]
    asked = dict.fromkeys(cells.estimator)
    names = [e for e in asked if plan == "uniform records" or e not in DESIGNED_FOR_RECORDS]
    by = cells.groupby(["population", "n", "estimator"], sort=False)
    mean = by[["covered", "score"]].mean().astype(float)
    failed = by.failed.sum()
    keys = list(dict.fromkeys(zip(cells.population, cells.n, strict=True)))
    rows = []
    for population, n in keys:
        row = [f"{population}, {n}", decimals(cells.truth[cells.population == population].iloc[0], 3)]
        for e in names:
            figures = mean.loc[population, n, e]
            refused = failed.loc[population, n, e] > 0
            row.append(
                "refuses" if refused else f"{decimals(figures.covered, 3)} / {decimals(figures.score, 4)}"
            )
        rows.append(row)
    average = ["**mean**", ""]
    for e in names:
        figures = mean.xs(e, level="estimator").mean()
        refused = failed.xs(e, level="estimator").sum() > 0
        average.append(
            "" if refused else f"**{decimals(figures.covered, 3)} / {decimals(figures.score, 4)}**"
        )
    return markdown.table(["", "truth", *names], [*rows, average])


def bars(runs: pd.DataFrame) -> pd.DataFrame:
    """Return each bar: the figure, its Monte Carlo error, and whether it is missed by more than two."""
    found = []
    for (plan, metric), cells in runs.groupby(["plan", "metric"], sort=False):
        model = cells[cells.estimator == MODEL]
        by = model.astype({"covered": float}).groupby(["population", "n"], sort=False).covered
        cover, count = by.mean(), by.size()
        se = np.sqrt(cover * (1 - cover) / count)
        lowest = (cover + 2 * se).idxmin()
        se_mean = np.sqrt((se**2).sum()) / len(se)
        wide = cells.pivot(index=["population", "n", "repetition"], columns="estimator", values="score")
        scores = wide.groupby(["population", "n"]).mean().mean()
        whole = wide.columns[wide.notna().all()].drop(MODEL)
        if plan == "uniform clusters":
            rival, bar = PERCENTILE, 1.0
        else:
            rival, bar = scores[whole].idxmin(), 1.05
        ratio = scores[MODEL] / scores[rival]
        off = wide[MODEL] - ratio * wide[rival]
        spread = off.groupby(["population", "n"]).agg(lambda d: d.var() / len(d))
        se_ratio = np.sqrt(spread.sum()) / len(spread) / scores[rival]
        told = {
            f"lowest coverage: {lowest[0]}, {lowest[1]}": (cover[lowest], se[lowest], 0.90, 1),
            "mean coverage": (cover.mean(), se_mean, 0.93, 1),
            f"mean score over that of: {rival}": (ratio, se_ratio, bar, -1),
        }
        found += [(plan, metric, name, *figures) for name, figures in told.items()]
    table = pd.DataFrame(found, columns=["plan", "metric", "figure", "found", "se", "bar", "sign"])
    missed = table.sign * (table.found - table.bar) < -2 * table.se
    return table.drop(columns="sign").assign(missed=missed)


def low(runs: pd.DataFrame) -> pd.DataFrame:
    """Cells where the model covers less than .90, and the direction in which it misses."""
    model = runs[runs.estimator == MODEL]
    model = model.assign(bias=model.estimate - model.truth, width=model.upper - model.lower)
    figures = ["truth", "covered", "bias", "width", "too_high", "too_low"]
    cell = ["plan", "metric", "population", "n"]
    table = model.astype(dict.fromkeys(figures, float)).groupby(cell, sort=False)[figures].mean()
    return table[table.covered < 0.90].reset_index()


def alarmed(people: dict[str, sim.Population], sizes: Sequence[int], samples: int) -> pd.DataFrame:
    """Return how often a fit raises its alarm for recall, and how often the range over laws holds truth."""
    rows = []
    for (name, population), (plan, drawing), n in product(people.items(), PLANS.items(), sizes):
        truth = population.value(m.pairwise_recall)
        drawn = draw_samples(drawing, population.units, n, samples, np.random.default_rng(4)).separate
        for i, sample in enumerate(drawn):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fit = fast(sample, rng=i)
                row = fit.table(metrics=m.pairwise_recall).iloc[0]
            rows.append(
                {
                    "plan": plan,
                    "population": name,
                    "n": n,
                    "recall": truth,
                    "covered": float(row.posterior_lower <= truth <= row.posterior_upper),
                    "alarm": float(bool(fit.alarms)),
                    "range holds": float(row.law_lower <= truth <= row.law_upper),
                    "range from": row.law_lower,
                    "range to": row.law_upper,
                }
            )
    return pd.DataFrame(rows).groupby(["plan", "population", "n"], sort=False).mean().reset_index()


def beside(people: dict[str, sim.Population], sizes: Sequence[int], samples: int) -> Study:
    """Return intervals of one fit per sample, of the closed form, and of their linear pool."""
    rows = []
    for (name, population), (plan, drawing), n in product(people.items(), PLANS.items(), sizes):
        truth = [population.value(metric) for metric in METRICS]
        rng = np.random.default_rng([77, *map(ord, f"{name}{plan}{n}")])
        for i, sample in enumerate(draw_samples(drawing, population.units, n, samples, rng).separate):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                fit = fast(sample, rng=i)
            cell = {"population": name, "plan": plan, "n": n, "repetition": i, "warned": bool(caught)}
            cell |= {"alarm": bool(fit.alarms), "failed": 0.0}
            results = {
                MODEL: fit.apply(METRICS),
                "default": taylor(sample, METRICS).apply(METRICS),
                POOL: fit.pooled(METRICS),
            }
            for estimator, result in results.items():
                figures = zip(METRICS, truth, result.estimate, result.interval(), strict=True)
                rows += [
                    cell
                    | {"estimator": estimator, "metric": metric.name, "truth": true}
                    | {"estimate": estimate, "lower": lower, "upper": upper}
                    for metric, true, estimate, (lower, upper) in figures
                ]
    return Study(pd.DataFrame(rows), 0.95)


def as_markdown(table: pd.DataFrame) -> str:
    rows = [
        [decimals(x, 3) if isinstance(x, float) else str(x) for x in row]
        for row in table.itertuples(index=False)
    ]
    return markdown.table(list(map(str, table.columns)), rows)


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description="Intervals of the size model under heavy tails.")
    asked.add_argument("file", nargs="?", help="SQLite file that keeps finished work")
    which = asked.add_mutually_exclusive_group()
    which.add_argument(
        "--others",
        action="store_const",
        dest="people",
        const=others,
        default=populations,
        help="further populations that had a part in development",
    )
    which.add_argument(
        "--fresh", action="store_const", dest="people", const=fresh, help="populations that had none"
    )
    which.add_argument(
        "--choice", action="store_const", dest="people", const=choice, help="populations to choose laws on"
    )
    which.add_argument(
        "--judged", action="store_const", dest="people", const=judged, help="populations to judge laws on"
    )
    which.add_argument(
        "--judged-again",
        action="store_const",
        dest="people",
        const=judged_again,
        help="populations to judge laws on that were chosen with the help of --judged",
    )
    which.add_argument(
        "--pooled", action="store_const", dest="people", const=pooled, help="populations to judge the pool on"
    )
    asked.add_argument("--alarms", action="store_true", help="alarms and ranges over laws, and nothing else")
    asked.add_argument("--pool", action="store_true", help="size model, default and their linear pool alone")
    asked.add_argument("--samples", type=int, help="samples per cell; 200, or 100 of others and fresh ones")
    asked.add_argument("--sizes", type=int, nargs="+", default=[100, 400], help="numbers of draws")
    args = asked.parse_args()
    if args.pool:
        runs = scored(beside(args.people(), args.sizes, args.samples or 40))
        for plan, metric in product(PLANS, METRICS):
            print(f"\n{plan}, {metric.name}: coverage / interval score\n\n{shown(runs, plan, metric.name)}")
        sys.exit()
    named = args.people is populations
    samples = args.samples or (200 if named else 100)
    if args.alarms:
        print(as_markdown(alarmed(args.people(), args.sizes, samples)))
        sys.exit()
    found = study(
        args.people(), PLANS, args.sizes, ESTIMATORS, METRICS, repetitions=samples, seed=4, file=args.file
    )
    runs = scored(found)
    for plan in PLANS:
        for metric in METRICS:
            print(f"\n{plan}, {metric.name}: coverage / interval score\n")
            print(shown(runs, plan, metric.name), flush=True)
    print(f"\nCells under .90\n\n{as_markdown(low(runs))}")
    told = bars(runs)
    print(f"\nBars\n\n{as_markdown(told)}")
    model = found.runs[found.runs.estimator == MODEL].drop_duplicates(
        ["population", "plan", "n", "repetition"]
    )
    print(f"\n{model.warned.sum():.0f} of {len(model)} fits of the size model did not converge")
    sys.exit(int(named and told.missed.any()))
