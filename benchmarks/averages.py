"""Averages of the size model and of an engine without a model: members and weights.

    python benchmarks/averages.py FILE [--set-aside] [--samples 40] [--sizes 100]

The ends of 95 % intervals of pairwise precision (P) and recall (R) by the posterior of the size model, by the
mixture of posterior and closed form (one half each), by `Fit.estimate`, by the closed form, by that of
distinct entities and by the jackknife, on the same samples. An average of quantiles at level p is the
weighted mean of the quantiles at p (Vincent 1912), so that all averages follow from these ends. `unseen` is 1
if over a quarter of the true links are expected beyond the sampled sizes. FILE keeps all of them as CSV, and
work that it has is not done again. Members and weights were chosen on the populations of `CHOSEN`, and judged
on those of `SET_ASIDE`. Both were written down before any fit to them.
"""

import argparse
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import populations as sim
from common import PLANS, PR, as_markdown
from engines import on_distinct
from figures import stamp

from erbayes.bayes import compiled, fast
from erbayes.bayes.fit import UNREACHED
from erbayes.engine import Jackknife, taylor
from erbayes.metrics import Estimates
from erbayes.study import draw_samples

RECORDS = 100_000
SEED = 3900
Simulated = dict[str, tuple[Any, ...]]
"""Name -> law of sizes and mechanisms of error, one after another."""
CHOSEN_PAIRS = (("20220630", "20200331"), ("20180528", "20211230"))
CHOSEN: Simulated = {
    "Zeta 2.15, capped at 80": (sim.Zeta(2.15, 4000), sim.Capped(80), sim.Misattribution(0.02)),
    "Zeta 2.45, splits .08 and merges .04": (sim.Zeta(2.45, 3000), sim.Splits(0.08), sim.Merges(0.04)),
    "LogNormal 1.4, giants in two": (sim.LogNormal(0.7, 1.4), sim.Even(2, 80), sim.Merges(0.02)),
    "LogNormal .9, misattribution .06": (sim.LogNormal(1.3, 0.9), sim.Misattribution(0.06)),
    "NegBinomial .7, splits .04": (sim.NegativeBinomial(7.0, 0.7), sim.Splits(0.04), sim.RareErrors(80)),
    "Pitman-Yor .45, homonyms 10 x 50": (
        sim.PitmanYor(600.0, 0.45),
        sim.Homonyms(10, 50, 0.7),
        sim.Splits(0.03),
    ),
    "Pitman-Yor .5, random pairs 2": (sim.PitmanYor(250.0, 0.5), sim.Percolated(2.0)),
    "Ewens, larger drop more": (sim.PitmanYor(2000.0), sim.SizeDependent(-4.5, 0.35)),
    "Zeta 2.3, eras .008": (sim.Zeta(2.3, 2500), sim.Eras(0.008), sim.Misattribution(0.03)),
    "LogNormal 1.5, shattered .8": (sim.LogNormal(0.4, 1.5), sim.Shattered(0.8, 0.05), sim.Merges(0.01)),
}
"""Populations to choose members and weights on."""
SET_ASIDE_PAIRS = (("20201229", "20191231"), ("20190312", "20211230"))
SET_ASIDE: Simulated = {
    "Zeta 2.25, capped at 50": (sim.Zeta(2.25, 5000), sim.Capped(50), sim.Merges(0.02)),
    "Zeta 2.5, misattribution .04": (sim.Zeta(2.5, 2000), sim.Misattribution(0.04)),
    "Zeta 2.2, fragments above 40": (sim.Zeta(2.2, 3500), sim.Fragmented(40, 0.6), sim.Splits(0.04)),
    "LogNormal 1.35, giants in four": (sim.LogNormal(0.6, 1.35), sim.Even(4, 60), sim.Misattribution(0.02)),
    "LogNormal 1.15, splits .15": (sim.LogNormal(1.1, 1.15), sim.Splits(0.15), sim.Merges(0.05)),
    "NegBinomial .5, misattribution .08": (sim.NegativeBinomial(9.0, 0.5), sim.Misattribution(0.08)),
    "NegBinomial .35, homonyms 18 x 40": (
        sim.NegativeBinomial(6.0, 0.35),
        sim.Homonyms(18, 40, 0.6),
        sim.Splits(0.06),
    ),
    "Pitman-Yor .55, eras .004": (sim.PitmanYor(350.0, 0.55), sim.Eras(0.004), sim.Merges(0.03)),
    "Pitman-Yor .35, larger drop more": (sim.PitmanYor(900.0, 0.35), sim.SizeDependent(-5.0, 0.45)),
    "Ewens, shattered 1.5": (sim.PitmanYor(1200.0), sim.Shattered(1.5, 0.1, 20), sim.Splits(0.02)),
}
"""Populations to judge them on."""
MODEL, ANSWER, MIXTURE = "posterior", "size model", "mixture"


def mix(posterior: Estimates, closed: Estimates) -> Estimates:
    """Return the mixture of two distributions, one half each."""
    n = len(posterior.flat)
    levels = np.abs(1 - 2 * (np.arange(n) + 0.5) / n)
    ends = np.stack([closed.interval(level)[:, int(i >= n / 2)] for i, level in enumerate(levels)])
    values = np.concatenate([posterior.flat, ends])[None]
    return Estimates.of_draws(posterior.names, values, posterior.support)


def people(set_aside: bool) -> dict[str, sim.Population]:
    """Return the populations of one group, by name."""
    pairs, simulated = (SET_ASIDE_PAIRS, SET_ASIDE) if set_aside else (CHOSEN_PAIRS, CHOSEN)
    found = {f"{pred} of {truth}": sim.pair(pred, truth) for pred, truth in pairs}
    for seed, (name, (law, *errors)) in enumerate(simulated.items(), SEED + 50 * set_aside):
        found[name] = sim.simulate(law, sim.Chain(errors), RECORDS, np.random.default_rng(seed))
    return found


def ends(file: Path, set_aside: bool, samples: int, sizes: list[int]) -> pd.DataFrame:
    """Return the ends of all intervals, one row per sample, engine and metric."""
    known = pd.read_csv(file) if file.exists() else pd.DataFrame(columns=["population", "plan", "n"])
    done = set(zip(known.population, known.plan, known.n, strict=True))
    for (name, population), (plan, drawing), n in product(people(set_aside).items(), PLANS.items(), sizes):
        if (name, plan, n) in done:
            continue
        truth = [population.value(metric) for metric in PR]
        rng, rows = np.random.default_rng([SEED, *map(ord, f"{name}{plan}{n}")]), []
        for i, sample in enumerate(draw_samples(drawing, population.units, n, samples, rng).separate):
            with warnings.catch_warnings(), compiled():
                warnings.simplefilter("ignore")
                fit = fast(sample, draws=1000, rng=i)
                closed = taylor(sample, PR).apply(PR)
                results = {
                    MODEL: fit.apply(PR),
                    ANSWER: fit.estimate(PR),
                    MIXTURE: mix(fit.apply(PR), closed),
                    "default": closed,
                    "jackknife": Jackknife()(sample, PR),
                }
                if plan == "uniform records":
                    results["distinct"] = on_distinct(sample, PR)
            for engine, result in results.items():
                for metric, true, (lower, upper) in zip(PR, truth, result.interval(), strict=True):
                    cell = {"population": name, "plan": plan, "n": n, "repetition": i, "engine": engine}
                    cell |= {
                        "metric": metric.name,
                        "truth": true,
                        "unseen": (float(fit.unreached_share.mean()) > UNREACHED),
                    }
                    rows.append(cell | {"lower": lower, "upper": upper})
        known = pd.concat([known, pd.DataFrame(rows)], ignore_index=True)
        known.to_csv(file, index=False)
    return known


def judge(runs: pd.DataFrame) -> pd.DataFrame:
    """Return mean and lowest coverage over cells, and mean score over that of the default, by engine."""
    wide = runs.pivot(
        index=["plan", "metric", "population", "n", "repetition", "truth"],
        columns="engine",
        values=["lower", "upper"],
    )
    lower, upper = wide["lower"].copy(), wide["upper"].copy()
    for other, weight in product(("default", "distinct", "jackknife"), (0.5, 0.65, 0.8, 0.9)):
        for table in (lower, upper):
            table[f"{weight:g} model, {other}"] = weight * table[MODEL] + (1 - weight) * table[other]
    truth = wide.index.get_level_values("truth").to_numpy()[:, None]
    below, above = (lower - truth).clip(lower=0), (truth - upper).clip(lower=0)
    score = upper - lower + 40 * (below + above)
    covered = ((below + above) == 0).where(lower.notna())
    cells = ["plan", "metric", "population", "n"]
    by = covered.astype(float).groupby(cells).mean().groupby(["plan", "metric"])
    scores = score.groupby(cells).mean().groupby(["plan", "metric"]).mean()
    table = pd.concat(
        {"coverage": by.mean(), "lowest": by.min(), "score": scores.div(scores["default"], axis=0)}, axis=1
    )
    long: pd.DataFrame = table.stack(future_stack=True).dropna().reset_index()
    return long


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description="Averages of quantiles: members and weights.")
    asked.add_argument("file", type=Path, help="CSV file that keeps finished work")
    asked.add_argument("--set-aside", action="store_true", help="populations to judge on")
    asked.add_argument("--samples", type=int, default=40, help="samples per cell")
    asked.add_argument("--sizes", type=int, nargs="+", default=[100], help="numbers of draws")
    args = asked.parse_args()
    print(as_markdown(judge(ends(args.file, args.set_aside, args.samples, args.sizes))))
    stamp("averages", f"seed {SEED}")
