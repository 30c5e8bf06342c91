"""Weights of the size model's draws by the known sizes of predicted clusters, benchmarks/histogram.md.

    python benchmarks/histogram_weights.py [--samples 8]

100 uniform records and 100 uniform clusters of the populations of `heaps`. A posterior draw of `bayes.fast`
expects a number of predicted clusters in each doubling of sizes, and its weight is the chance of the known
numbers, negative binomial with a relative standard deviation. 95 % intervals of pairwise precision and recall
by these weights and without them: interval score over that without, a geometric mean over populations,
coverage, its least, and how many draws the weights are worth.
"""

import argparse
import warnings
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from common import PLANS, PR, as_markdown
from figures import stamp
from heaps import HEAPS, NONE, SEED
from scipy.stats import nbinom

from erbayes.bayes import Fit, compiled, fast
from erbayes.bayes.predicted import expect_predicted_clusters
from erbayes.study import draw_samples

DRAWS = 800
DISCREPANCIES = (0.15, 0.3, 0.6)
"""Relative standard deviations of the numbers in a doubling."""
QUANTILES = (0.025, 0.975)


def weigh(fit: Fit) -> dict[float, np.ndarray]:
    """Return weights of the draws of a fit, (draw,), which add to 1, for each discrepancy."""
    grid, known = fit.evidence.grid, fit.sample.units.known
    assert known is not None
    of_doubling = np.eye(grid.doubling[-1] + 1)[grid.doubling]
    by_size = {name: v.reshape(-1, *v.shape[2:]) for name, v in fit.by_size.items()}
    expected = expect_predicted_clusters(by_size, grid, fit.evidence.data) @ of_doubling
    count = np.bincount(grid.bin(known.size), known.count, len(grid.size)) @ of_doubling
    found = {}
    for discrepancy in DISCREPANCIES:
        shape = discrepancy**-2
        log_w = np.asarray(nbinom.logpmf(count, shape, shape / (shape + expected + 1e-3))).sum(axis=1)
        w = np.exp(log_w - log_w.max())
        found[discrepancy] = w / w.sum()
    return found


def quantiles(values: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return the ends of weighted draws, (draw,)."""
    order = np.argsort(values)
    return np.asarray(np.interp(QUANTILES, np.cumsum(w[order]), values[order]))


def judge(samples: int) -> Iterator[dict[str, Any]]:
    """Return the interval of each sample, discrepancy and metric."""
    worlds = {name: (make(SEED), name in HEAPS) for name, make in (NONE | HEAPS).items()}
    for (name, (world, heap)), (plan, drawing) in product(worlds.items(), PLANS.items()):
        truth = [world.value(metric) for metric in PR]
        rng = np.random.default_rng([SEED, *map(ord, f"{name}{plan}")])
        for i, sample in enumerate(draw_samples(drawing, world.units, 100, samples, rng).separate):
            with compiled(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fit = fast(sample, draws=DRAWS, rng=i)
            values = fit.apply(PR).flat
            weights = {0.0: np.full(len(values), 1 / len(values))} | weigh(fit)
            for (discrepancy, w), j in product(weights.items(), range(2)):
                lower, upper = quantiles(values[:, j], w)
                miss = max(lower - truth[j], 0) + max(truth[j] - upper, 0)
                yield {
                    "heap": "yes" if heap else "no",
                    "plan": plan,
                    "metric": PR[j].name,
                    "discrepancy": discrepancy or np.inf,
                    "population": name,
                    "covered": miss < 1e-9,
                    "score": upper - lower + 40 * miss,
                    "worth": 1 / (w**2).sum() / len(w),
                }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=8)
    by = ["heap", "plan", "metric", "discrepancy"]
    runs = pd.DataFrame(judge(parser.parse_args().samples))
    cells = runs.groupby([*by, "population"])[["covered", "score", "worth"]].mean()
    ratio = (cells["score"] / cells["score"].xs(np.inf, level="discrepancy")).map(np.log)
    of_cells = cells.groupby(by)
    table = pd.DataFrame(
        {
            "score": np.exp(ratio.groupby(by).mean()),
            "better in": (ratio < 0).groupby(by).mean(),
            "coverage": of_cells["covered"].mean(),
            "least": of_cells["covered"].min(),
            "draws": of_cells["worth"].mean(),
        }
    )
    print(as_markdown(table.round(2).reset_index()))
    stamp("histogram", f"seed {SEED}")


if __name__ == "__main__":
    main()
