"""Coverage of `engine="advised"` where entities were drawn, benchmarks/advised.md.

    python benchmarks/advised.py FILE [--samples 20] [--draws 100 400]

Twenty-five populations that no engine was chosen on. In eleven of them the largest entities are cut, which no
heap in the predicted sizes shows. 95 % intervals of the closed form, of the size model and of the advised
engine, of one fit per sample. FILE has their ends as CSV.
"""

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import populations as sim
from common import as_markdown
from figures import stamp

from erbayes import metrics as m
from erbayes.bayes import Modelled, compiled
from erbayes.engine.closed_form import ClosedForm
from erbayes.engine.named import choose_engine
from erbayes.study import UniformEntities, draw_samples

METRICS = [m.pairwise_precision, m.pairwise_recall, m.pairwise_f1, m.b3_precision, m.b3_recall]
RECORDS = 50_000
SEED = 3700
CUT: dict[str, tuple[Any, ...]] = {
    "Zeta 2.2, giants in two": (sim.Zeta(2.2, 4000), sim.Even(2, 40), sim.Merges(0.03)),
    "LogNormal 1.4, giants in three": (sim.LogNormal(0.5, 1.4), sim.Even(3, 50), sim.Misattribution(0.03)),
    "Pitman-Yor .5, shattered 1": (sim.PitmanYor(500.0, 0.5), sim.Shattered(1.0, 0.1, 30)),
    "Zeta 2.35, fragments above 60": (sim.Zeta(2.35, 3000), sim.Fragmented(60, 0.5), sim.Merges(0.02)),
    "NegBinomial .4, giants in five": (sim.NegativeBinomial(8.0, 0.4), sim.Even(5, 60), sim.Splits(0.03)),
    "Zeta 2.15, eras .006": (sim.Zeta(2.15, 3000), sim.Eras(0.006), sim.Merges(0.01)),
    "Zeta 2.25, giants in three": (sim.Zeta(2.25, 4000), sim.Even(3, 60), sim.Misattribution(0.02)),
    "LogNormal 1.3, fragments above 50": (sim.LogNormal(0.7, 1.3), sim.Fragmented(50, 0.7), sim.Splits(0.02)),
    "Pitman-Yor .45, giants in two": (sim.PitmanYor(500.0, 0.45), sim.Even(2, 60), sim.Merges(0.02)),
    "NegBinomial .3, shattered 1.5": (
        sim.NegativeBinomial(9.0, 0.3),
        sim.Shattered(1.5, 0.1, 40),
        sim.Merges(0.01),
    ),
    "Zeta 2.4, eras .01": (sim.Zeta(2.4, 3000), sim.Eras(0.01), sim.Misattribution(0.02)),
}
"""Populations whose largest entities are cut."""
OTHER: dict[str, tuple[Any, ...]] = {
    "Zeta 2.3, merges .04": (sim.Zeta(2.3, 2500), sim.Merges(0.04)),
    "LogNormal 1.2, misattribution .05": (sim.LogNormal(0.8, 1.2), sim.Misattribution(0.05)),
    "Pitman-Yor .4, splits .1": (sim.PitmanYor(400.0, 0.4), sim.Splits(0.1), sim.Merges(0.02)),
    "Zeta 2.25, misattribution .03": (sim.Zeta(2.25, 3500), sim.Misattribution(0.03)),
    "Ewens, larger drop more": (sim.PitmanYor(1500.0), sim.SizeDependent(-4.0, 0.3)),
    "LogNormal 1.5, homonyms 12 x 60": (sim.LogNormal(0.6, 1.5), sim.Homonyms(12, 60, 0.5), sim.Splits(0.04)),
    "NegBinomial .6, splits .1": (sim.NegativeBinomial(6.0, 0.6), sim.Splits(0.1)),
    "Zeta 2.6, splits .05": (sim.Zeta(2.6, 2000), sim.Splits(0.05)),
    "Zeta 2.35, splits .2": (sim.Zeta(2.35, 3000), sim.Splits(0.2)),
    "LogNormal 1.1, merges .05": (sim.LogNormal(0.9, 1.1), sim.Merges(0.05)),
    "Pitman-Yor .5, random pairs 1.5": (sim.PitmanYor(250.0, 0.5), sim.Percolated(1.5)),
    "Zeta 2.2, misattribution .05": (sim.Zeta(2.2, 2500), sim.Misattribution(0.05)),
    "NegBinomial .8, homonyms 15 x 50": (
        sim.NegativeBinomial(6.0, 0.8),
        sim.Homonyms(15, 50, 0.5),
        sim.Splits(0.03),
    ),
    "LogNormal 1.4, larger drop more": (sim.LogNormal(0.6, 1.4), sim.SizeDependent(-5.0, 0.4)),
}
"""Populations in which no size is cut."""


def find_ends(samples: int, numbers: list[int]) -> pd.DataFrame:
    """Return the ends of all intervals, one row per sample, engine and metric."""
    rows, model = [], Modelled(draws=500)
    for seed, (name, (law, *errors)) in enumerate((CUT | OTHER).items(), SEED):
        people = sim.simulate(law, sim.Chain(errors), RECORDS, np.random.default_rng(seed))
        truth = [people.value(metric) for metric in METRICS]
        for n in numbers:
            rng = np.random.default_rng([seed, n])
            drawn = draw_samples(UniformEntities(), people.units, n, samples, rng).separate
            for i, sample in enumerate(drawn):
                fit, (advised, _) = model.fitted(sample, i), choose_engine(sample, METRICS)
                closed = ClosedForm()(sample, METRICS)
                taken = advised.answer(fit, METRICS) if isinstance(advised, Modelled) else closed
                results = {"closed form": closed, "size model": model.answer(fit, METRICS), "advised": taken}
                cell = {"population": name, "cut": name in CUT, "draws": n, "sample": i}
                for engine, found in results.items():
                    for metric, true, (lower, upper) in zip(METRICS, truth, found.interval(), strict=True):
                        ends = {"truth": true, "lower": lower, "upper": upper}
                        rows.append(cell | {"engine": engine, "metric": metric.name} | ends)
    return pd.DataFrame(rows)


def judge(ends: pd.DataFrame) -> pd.DataFrame:
    """Return mean and lowest coverage of a population, and scores over those of the closed form."""
    missed = (ends.lower - ends.truth).clip(lower=0) + (ends.truth - ends.upper).clip(lower=0)
    found = ends.assign(covered=(missed == 0).astype(float), score=ends.upper - ends.lower + 40 * missed)
    groups = ["draws", "metric", "cut", "engine"]
    cells = found.groupby([*groups, "population"])[["covered", "score"]].mean()
    table = cells.groupby(groups).agg(
        covered=("covered", "mean"), lowest=("covered", "min"), score=("score", "mean")
    )
    closed = table.score.xs("closed form", level="engine")
    table["score"] /= closed.reindex(table.index.droplevel("engine")).to_numpy()
    return table.reset_index()


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description="Coverage of the advised engine where entities were drawn.")
    asked.add_argument("file", type=Path, help="CSV file of the ends")
    asked.add_argument("--samples", type=int, default=20, help="samples per cell")
    asked.add_argument("--draws", type=int, nargs="+", default=[100, 400], help="entities that are drawn")
    args = asked.parse_args()
    warnings.simplefilter("ignore")
    with compiled():
        found = find_ends(args.samples, args.draws)
    found.to_csv(args.file, index=False)
    print(as_markdown(judge(found)))
    stamp("advised", f"seed {SEED}")
