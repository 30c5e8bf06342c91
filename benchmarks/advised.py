"""Coverage of `engine="advised"`, benchmarks/advised.md.

    python benchmarks/advised.py FILE [--samples 200]

Three populations that no engine was chosen on, 100 draws of records, of entities and of the mixture, and 95 %
intervals of the advised engine, of the closed form and of the jackknife on the same samples. FILE keeps what
is finished. `taken` counts the samples in which each engine was advised.
"""

import argparse
import warnings
from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import populations as sim
from averages import RECORDS, SET_ASIDE
from common import PLANS, PR, Mixture, as_markdown
from figures import stamp

from erbayes.engine import Jackknife
from erbayes.engine.closed_form import ClosedForm
from erbayes.engine.named import Advised, choose_engine
from erbayes.study import draw_samples, study

NAMES = ("Zeta 2.25, capped at 50", "LogNormal 1.15, splits .15", "NegBinomial .5, misattribution .08")
"""A heavy tail, a moderate one and a light one, of those that the average was judged on."""
SEED = 3535


def people() -> dict[str, sim.Population]:
    """Return the populations, by name."""
    found = {}
    for seed, name in enumerate(NAMES, SEED):
        law, *errors = SET_ASIDE[name]
        found[name] = sim.simulate(law, sim.Chain(errors), RECORDS, np.random.default_rng(seed))
    return found


def count_taken(population: sim.Population, plan: Any) -> str:
    """Return in words how often each engine is advised, in 100 samples of 100 draws."""
    samples = draw_samples(plan, population.units, 100, 100, np.random.default_rng(SEED)).separate
    taken = Counter(type(choose_engine(sample, PR)[0]).__name__ for sample in samples)
    return ", ".join(f"{name} {count / 100:.2f}" for name, count in sorted(taken.items()))


def judge(runs: pd.DataFrame) -> pd.DataFrame:
    """Return coverage and interval score over that of the closed form, one row per cell and metric."""
    cells = ["population", "plan", "metric"]
    wide = runs.pivot(index=cells, columns="estimator", values=["coverage", "width", "interval_score"])
    shown = {f"coverage: {name}": wide["coverage", name] for name in ENGINES}
    score = wide["interval_score"]
    shown |= {
        f"score: {name}": score[name] / score["closed form"] for name in ENGINES if name != "closed form"
    }
    return pd.DataFrame(shown).reset_index()


ENGINES = {"advised": Advised(), "closed form": ClosedForm(), "jackknife": Jackknife()}


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description="Coverage of the advised engine.")
    asked.add_argument("--samples", type=int, default=200, help="samples per cell")
    args = asked.parse_args()
    warnings.simplefilter("ignore")
    plans: dict[str, Any] = {**PLANS, "mixture": Mixture()}
    found = people()
    for (name, population), (plan, drawing) in product(found.items(), plans.items()):
        print(f"{name}, {plan}: {count_taken(population, drawing)}")
    runs = study(found, plans, [100], ENGINES, PR, repetitions=args.samples, seed=SEED)
    print(as_markdown(judge(runs.table())))
    stamp("advised", f"seed {SEED}")
