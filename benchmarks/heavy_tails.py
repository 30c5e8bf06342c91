"""Coverage of intervals of the size model where sizes have heavy tails.

    python benchmarks/heavy_tails.py [--others | --fresh | --choice | --judged | --judged-again]

95 % intervals of pairwise precision (P) and recall (R) under uniform records and uniform clusters, 100
and 400 draws: fits of the model, closed forms and bootstraps on the same 200 samples per cell. The
truth is PatentsView's release of 2022-06-30, the predictions are four earlier ones and the paper's noise
at rate .10; with --others further pairs and simulated populations, among which the
model's priors were chosen, 100 samples per cell; with --fresh those that were set down when the model was
final and had no part in it. In five or more populations each of --choice and --judged, predictions split the
largest entities. These populations were set down before the laws of error were worked on: laws are chosen on
--choice alone, and --judged is used once they are final. After that --judged served to choose further laws,
and --judged-again, set down before those, to judge them.

Exits 1 if a bar is missed by more than two Monte Carlo standard errors, for P or for R: coverage of
.90 in every cell and of .93 on average over the cells of a design; the mean interval score of the
percentile bootstrap under uniform clusters, and 1.05 times that of the best other interval that refuses
no sample under uniform records. Of the others it lists the cells that cover less than .90, and exits 0.

On 1 core it takes half an hour, with --others an hour, with --fresh half of one.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import populations as sim
from common import PLANS, PR, RELEASES, as_markdown, decimals
from common import table as markdown
from engines import on_distinct
from figures import stamp

from erbayes import metrics as m
from erbayes.bayes import compiled, fast
from erbayes.datasets import rldata10000_example1
from erbayes.engine import (
    Estimator,
    Jackknife,
    Resampled,
    Taylor,
)
from erbayes.metrics.intervals import EqualTailed
from erbayes.study import Study, study

METRICS = PR
MODEL, PERCENTILE = "size model", "percentile"


def posterior(sample: Any, metrics: Sequence[m.Metric], rng: Any = None) -> Any:
    """Return the size model's own draws, without the closed form."""
    with compiled():
        return fast(sample, draws=1000, rng=rng).apply(metrics)


ESTIMATORS = {
    MODEL: posterior,
    PERCENTILE: Estimator(Resampled(replicates=1000), EqualTailed()),
    "default": Taylor(),
    "jackknife": Jackknife(),
    "distinct": on_distinct,
}
DESIGNED_FOR_RECORDS = ("distinct",)
RECORDS = 100_000
Simulated = dict[str, tuple[Any, ...]]
"""Name -> law of sizes and mechanisms of error, one after another."""
SIMULATED = {
    "Zeta 2.2, misattribution .05": (sim.Zeta(2.2, 2000), sim.Misattribution(0.05)),
    "Zeta 2.5, splits .3": (sim.Zeta(2.5, 5000), sim.Splits(0.3)),
    "Zeta 2.5, 200 rare errors": (sim.Zeta(2.5, 2000), sim.RareErrors(200)),
    "LogNormal 1.2, merges .05": (sim.LogNormal(1.0, 1.2), sim.Merges(0.05)),
    "LogNormal 1.5, larger drop more": (sim.LogNormal(0.5, 1.5), sim.SizeDependent(-4.0, 0.4)),
    "LogNormal 1.2, homonyms 5 x 200": (sim.LogNormal(1.0, 1.2), sim.Homonyms(5, 200, 0.4)),
    "NegBinomial .5, homonyms 20 x 50": (sim.NegativeBinomial(4.0, 0.5), sim.Homonyms(20, 50)),
    "Pitman-Yor .5, misattribution .10": (sim.PitmanYor(500.0, 0.5), sim.Misattribution(0.1)),
    "Ewens, splits and merges .10": (sim.PitmanYor(3000.0), sim.Splits(0.1), sim.Merges(0.1)),
    "Ewens, 100 rare errors": (sim.PitmanYor(3000.0), sim.RareErrors(100)),
    "Zeta 2.3, misattribution .02": (sim.Zeta(2.3, 3000), sim.Misattribution(0.02)),
    "Zeta 2.4, homonyms 10 x 100": (sim.Zeta(2.4, 1000), sim.Homonyms(10, 100, 0.5)),
    "LogNormal 1.3, splits and misattribution": (
        sim.LogNormal(1.0, 1.3),
        sim.Splits(0.15),
        sim.Misattribution(0.03),
    ),
    "LogNormal 1.4, larger drop a little more": (sim.LogNormal(0.5, 1.4), sim.SizeDependent(-3.0, 0.2)),
    "NegBinomial 1, merges and misattribution": (
        sim.NegativeBinomial(6.0, 1.0),
        sim.Merges(0.1),
        sim.Misattribution(0.08),
    ),
    "Pitman-Yor .6, splits .2": (sim.PitmanYor(300.0, 0.6), sim.Splits(0.2)),
    "Ewens, misattribution .15": (sim.PitmanYor(5000.0), sim.Misattribution(0.15)),
}
FRESH = {
    "Zeta 2.6, merges .1": (sim.Zeta(2.6, 4000), sim.Merges(0.1)),
    "Zeta 2.3, splits .1 and misattribution": (
        sim.Zeta(2.3, 1500),
        sim.Splits(0.1),
        sim.Misattribution(0.02),
    ),
    "LogNormal 1.1, misattribution .2": (sim.LogNormal(1.2, 1.1), sim.Misattribution(0.2)),
    "LogNormal 1.4, splits .05": (sim.LogNormal(0.8, 1.4), sim.Splits(0.05)),
    "NegBinomial .3, larger drop more": (sim.NegativeBinomial(8.0, 0.3), sim.SizeDependent(-3.5, 0.3)),
    "Pitman-Yor .4, homonyms 8 x 80": (sim.PitmanYor(800.0, 0.4), sim.Homonyms(8, 80, 0.6)),
    "Pitman-Yor .7, misattribution .04": (sim.PitmanYor(100.0, 0.7), sim.Misattribution(0.04)),
}


CHOICE_PAIRS = (("20220630", "20190820"), ("20191008", "20220630"))
CHOICE = {
    "Zeta 2.1, capped at 60": (sim.Zeta(2.1, 4000), sim.Capped(60)),
    "LogNormal 1.6, shattered .5": (
        sim.LogNormal(0.3, 1.6),
        sim.Shattered(0.5, 0.1),
        sim.Misattribution(0.01),
    ),
    "Pitman-Yor .6, giants in three": (
        sim.PitmanYor(300.0, 0.6),
        sim.Even(3, 100),
        sim.Splits(0.05),
        sim.Merges(0.02),
    ),
    "Zeta 2.3, eras .01": (sim.Zeta(2.3, 3000), sim.Eras(0.01), sim.Merges(0.03)),
    "Zeta 2.4, misattribution .05, splits .1": (
        sim.Zeta(2.4, 2500),
        sim.Misattribution(0.05),
        sim.Splits(0.1),
    ),
    "LogNormal 1.2, splits .02": (sim.LogNormal(0.8, 1.2), sim.Splits(0.02), sim.Merges(0.01)),
}
"""Populations to choose laws on."""
JUDGED_PAIRS = (("20211230", "20171226"), ("20200929", "20171003"), ("20200331", "20220630"))
JUDGED = {
    "Zeta 2.2, capped at 100": (sim.Zeta(2.2, 5000), sim.Misattribution(0.03), sim.Capped(100)),
    "Pitman-Yor .5, shattered 1": (sim.PitmanYor(200.0, 0.5), sim.Shattered(1.0), sim.Merges(0.02)),
    "LogNormal 1.5, giants shattered": (
        sim.LogNormal(0.5, 1.5),
        sim.Shattered(2.0, 0.4, 150),
        sim.Splits(0.05),
        sim.Misattribution(0.01),
    ),
    "Ewens, giants in ten": (sim.PitmanYor(1500.0), sim.Even(10, 200), sim.Splits(0.1)),
    "Zeta 2.5, eras .003": (sim.Zeta(2.5, 4000), sim.Eras(0.003), sim.Misattribution(0.02)),
    "Ewens, one record in 100 lost": (sim.PitmanYor(2500.0), sim.SizeDependent(-4.6, 0.0)),
    "Zeta 2.4, splits .03": (sim.Zeta(2.4, 2000), sim.Splits(0.03), sim.Merges(0.01)),
    "LogNormal 1.3, homonyms 6 x 60": (
        sim.LogNormal(1.0, 1.3),
        sim.Homonyms(6, 60, 0.7),
        sim.Misattribution(0.02),
    ),
    "NegBinomial .4, merges and splits": (sim.NegativeBinomial(5.0, 0.4), sim.Merges(0.05), sim.Splits(0.1)),
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
    "Zeta 2.2, random pairs 1.2": (sim.Zeta(2.2, 6000), sim.Percolated(1.2), sim.Misattribution(0.02)),
    "LogNormal 1.6, fragments above 80": (
        sim.LogNormal(0.4, 1.6),
        sim.Fragmented(80, 0.97),
        sim.Splits(0.03),
        sim.Merges(0.03),
    ),
    "Pitman-Yor .55, fragments above 8": (
        sim.PitmanYor(150.0, 0.55),
        sim.Fragmented(8, 0.4),
        sim.Misattribution(0.01),
    ),
    "Ewens, random pairs 3": (sim.PitmanYor(1000.0), sim.Percolated(3.0)),
    "Zeta 2.6, splits .01": (sim.Zeta(2.6, 3000), sim.Splits(0.01), sim.RareErrors(60)),
    "LogNormal 1.1, splits .01": (sim.LogNormal(1.0, 1.1), sim.Splits(0.01)),
    "NegBinomial .6, larger drop more": (sim.NegativeBinomial(10.0, 0.6), sim.SizeDependent(-6.0, 0.5)),
    "Pitman-Yor .3, homonyms 12 x 40": (
        sim.PitmanYor(1200.0, 0.3),
        sim.Homonyms(12, 40, 0.8),
        sim.Splits(0.05),
    ),
}
"""Populations to judge laws on that were chosen with the help of those above."""

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
    return {f"{d[:4]}-{d[4:6]}-{d[6:]}": sim.pair(d) for d in RELEASES} | {"noise .10": sim.noisy()}


def further(
    pairs: tuple[tuple[str, str], ...], simulated: Simulated, first_seed: int = 0
) -> dict[str, sim.Population]:
    """Releases as predictions of other ones, and simulated populations."""
    people = {f"{pred} of {truth}": sim.pair(pred, truth) for pred, truth in pairs}
    for seed, (name, (law, *errors)) in enumerate(simulated.items(), first_seed):
        people[name] = sim.simulate(law, sim.Chain(errors), RECORDS, np.random.default_rng(seed))
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
        "customers, strict": sim.matched(
            sim.Zeta(2.3, 3000), RECORDS, 1100, ("phone", "born"), ("email", "city")
        ),
        "customers, loose": sim.matched(
            sim.LogNormal(0.8, 1.3),
            RECORDS,
            1101,
            ("phone",),
            ("email", "born"),
            ("given", "family", "born", "city"),
        ),
    }


GROUPS: dict[str, tuple[Callable[[], dict[str, sim.Population]], str]] = {
    "others": (others, "further populations that had a part in development"),
    "fresh": (fresh, "populations that had none"),
    "choice": (choice, "populations to choose laws on"),
    "judged": (judged, "populations to judge laws on"),
    "judged-again": (judged_again, "populations to judge laws on that were chosen with the help of --judged"),
}


def scored(found: Study) -> pd.DataFrame:
    """Return each run with its interval score and the direction in which the interval misses the truth."""
    runs = found.runs
    below, above = np.maximum(runs.lower - runs.truth, 0), np.maximum(runs.truth - runs.upper, 0)
    score = runs.upper - runs.lower + 2 / (1 - found.level) * (below + above)
    covered = (below + above == 0).where(score.notna())
    return runs.assign(score=score, covered=covered, too_high=below > 0, too_low=above > 0)


def shown(runs: pd.DataFrame, plan: str, metric: str) -> str:
    """Coverage and interval score as Markdown, one row per cell and one column per estimator."""
    cells = runs[(runs.plan == plan) & (runs.metric == metric)]
    asked = dict.fromkeys(cells.estimator)
    names = [e for e in asked if plan == "uniform records" or e not in DESIGNED_FOR_RECORDS]
    by = cells.groupby(["population", "n", "estimator"], sort=False)
    mean = by[["covered", "score"]].mean().astype(float)
    failed = by["estimate"].agg(lambda estimates: estimates.isna().sum())
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
    return markdown(["", "truth", *names], [*rows, average])


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


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description="Intervals of the size model under heavy tails.")
    which = asked.add_mutually_exclusive_group()
    for name, (make, told) in GROUPS.items():
        which.add_argument(
            f"--{name}", action="store_const", dest="people", const=make, default=populations, help=told
        )
    asked.add_argument("--samples", type=int, help="samples per cell; 200, or 100 of others and fresh ones")
    asked.add_argument("--sizes", type=int, nargs="+", default=[100, 400], help="numbers of draws")
    args = asked.parse_args()
    named = args.people is populations
    samples = args.samples or (200 if named else 100)
    found = study(args.people(), PLANS, args.sizes, ESTIMATORS, METRICS, repetitions=samples, seed=4)
    runs = scored(found)
    for plan in PLANS:
        for metric in METRICS:
            print(f"\n{plan}, {metric.name}: coverage / interval score\n")
            print(shown(runs, plan, metric.name), flush=True)
    print(f"\nCells under .90\n\n{as_markdown(low(runs))}")
    of_bars = bars(runs)
    print(f"\nBars\n\n{as_markdown(of_bars)}")
    model = found.runs[found.runs.estimator == MODEL].drop_duplicates(
        ["population", "plan", "n", "repetition"]
    )
    print(f"\n{model.warned.sum():.0f} of {len(model)} fits of the size model did not converge")
    stamp("heavy-tails", "seed 4")
    sys.exit(int(named and of_bars.missed.any()))
