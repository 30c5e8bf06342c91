"""What each part of the size model is worth: the same samples without it.

    python benchmarks/bayes_ablation.py FILE [--samples 10]

95 % intervals of pairwise precision and recall by the model and by what its table shows first: two pairs of
PatentsView, two populations of `bayes_pool.CHOSEN` and those of `heaps.NONE`, 100 uniform records and 100
uniform clusters. Coverage, on average and the least of a population, and the interval score over that of the
whole model, a geometric mean over populations. FILE keeps the ends of all intervals as CSV, and work that it
has is not done again.
"""

import argparse
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from bayes_pool import SEED, people
from common import PLANS, PR, as_markdown
from figures import stamp
from heaps import NONE
from heaps import SEED as NONE_SEED

from erbayes.bayes import (
    LogNormalSizes,
    ModelAverage,
    NormalPrior,
    PredictionInformed,
    Retention,
    SizeModel,
    StudentTPrior,
    compiled,
    fast,
)
from erbayes.bayes import population as completing
from erbayes.bayes.data import Evidence
from erbayes.bayes.model import RETENTION
from erbayes.bayes.population import draw_populations
from erbayes.study import draw_samples

FIRST = 4
"""Populations of the pool's study that are taken: two pairs of PatentsView, and two of `CHOSEN`."""


def without_tie(links: Any, log_total: Any) -> Any:
    """Return a log density of the known number of predicted links that is the same for all draws."""
    return np.zeros_like(links.predicted)


@contextmanager
def with_fixed_centre() -> Iterator[None]:
    """Centre functions of size at the mean log size of random records' predicted clusters."""
    of = Evidence.of

    def moved(*args: Any, **settings: Any) -> Evidence:
        evidence = of(*args, **settings)
        known = evidence.units.known
        assert known is not None
        centre = np.average(np.log2(known.size), weights=known.size * known.count)
        return replace(evidence, data=evidence.data | {"centre": centre})

    with patch.object(Evidence, "of", moved):
        yield


LAWS = RETENTION.models
WITHOUT_THRESHOLD = ModelAverage(
    {name: LAWS[name] for name in ("usual", "uneven")}, {"usual": 0.67, "uneven": 0.3}
)

VARIANTS: dict[str, tuple[SizeModel, Callable[[], Any]]] = {
    "whole": (SizeModel(), nullcontext),
    "tie": (SizeModel(), lambda: patch.object(completing, "log_density_of_total", without_tie)),
    "completion": (
        SizeModel(),
        lambda: patch.object(completing, "draw_populations", partial(draw_populations, tries=1)),
    ),
    "step at single records": (
        SizeModel(PredictionInformed(single=StudentTPrior(0.0, 1e-4))),
        nullcontext,
    ),
    "larger share, second law of sizes": (
        SizeModel(PredictionInformed(larger_share=NormalPrior(-12.0, 0.1))),
        nullcontext,
    ),
    "second law of sizes": (
        SizeModel(PredictionInformed()),
        nullcontext,
    ),
    "histogram (log-normal sizes)": (
        SizeModel(LogNormalSizes()),
        nullcontext,
    ),
    "laws of retention": (
        SizeModel(retention=Retention()),
        nullcontext,
    ),
    "threshold of retention": (SizeModel(retention=WITHOUT_THRESHOLD), nullcontext),
    "centre of the sample": (SizeModel(), with_fixed_centre),
}
"""The model without each part, and what is patched meanwhile."""


def ends(file: Path, samples: int) -> pd.DataFrame:
    """Return the ends of all intervals, one row per sample, variant, kind and metric."""
    rows = pd.read_csv(file).to_dict("records") if file.exists() else []
    done = {(row["population"], row["plan"]) for row in rows}
    worlds = dict(list(people(False).items())[:FIRST]) | {
        name: make(NONE_SEED) for name, make in NONE.items()
    }
    cells = product(worlds.items(), PLANS.items())
    for (name, population), (plan, drawing) in cells:
        if (name, plan) in done:
            continue
        truth = [population.value(metric) for metric in PR]
        rng = np.random.default_rng([SEED + 1, *map(ord, f"{name}{plan}")])
        drawn = draw_samples(drawing, population.units, 100, samples, rng).separate
        for (i, sample), (variant, (model, patched)) in product(enumerate(drawn), VARIANTS.items()):
            with warnings.catch_warnings(), compiled(), patched():
                warnings.simplefilter("ignore")
                fit = fast(sample, model, draws=400, rng=i)
                found = {"model": fit.apply(PR).interval(), "first": fit.estimate(PR).interval()}
            for kind, bounds in found.items():
                for metric, true, (lower, upper) in zip(PR, truth, bounds, strict=True):
                    cell = {"population": name, "plan": plan, "repetition": i, "without": variant}
                    cell |= {"kind": kind, "metric": metric.name, "truth": true}
                    rows.append(cell | {"lower": lower, "upper": upper})
        pd.DataFrame(rows).to_csv(file, index=False)
    return pd.DataFrame(rows)


def judge(runs: pd.DataFrame) -> pd.DataFrame:
    """Return mean coverage, and mean score over that of the whole model, one row per variant."""
    miss = (runs.lower - runs.truth).clip(lower=0) + (runs.truth - runs.upper).clip(lower=0)
    runs = runs.assign(covered=(miss == 0).astype(float), score=runs.upper - runs.lower + 40 * miss)
    by = ["without", "kind", "plan", "metric"]
    cells = runs.groupby([*by, "population"], sort=False)[["covered", "score"]].mean()
    whole = cells["score"].xs("whole").rename("whole")
    both = cells.join(whole)
    ratio = (both["score"] / both["whole"]).map(np.log).groupby(by, sort=False).mean()
    covered = cells["covered"].groupby(by, sort=False).agg(["mean", "min"])
    text = covered["mean"].map("{:.2f}".format) + " " + covered["min"].map("{:.2f}".format)
    text = (text + " / " + np.exp(ratio).map("{:.2f}".format)).unstack(["kind", "plan", "metric"])
    text.columns = [f"{kind}, {plan.split()[1]}, {metric[9]}" for kind, plan, metric in text.columns]
    table: pd.DataFrame = text.reset_index()
    return table


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description="The size model without each of its parts.")
    asked.add_argument("file", type=Path, help="CSV file that keeps finished work")
    asked.add_argument("--samples", type=int, default=10, help="samples per cell")
    args = asked.parse_args()
    print(as_markdown(judge(ends(args.file, args.samples))))
    stamp("bayes-ablation", f"seeds {SEED + 1} and {NONE_SEED}")
