"""Small databases: intervals that know what labels settle and count each entity once, over those that do not.

    python benchmarks/settled.py [--samples 300] [--shares .05 .1 .25 .5 .75] [--design records clusters ...]

Eight populations of 500 to 5,000 records, good matchers and giants among them. So many draws are made that
they reach a share of all records; `without` draws records without replacement, `links` half of them as ends
of predicted links, and `clusters` labels the predicted clusters of drawn records. The first table has
interval scores (Gneiting and Raftery 2007) over those of the same draws with their repeats and without
certain ends, geometric means over populations; the second, coverages.
"""

import argparse
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from common import as_markdown
from figures import stamp
from good_matchers import entities_of, spoil

import erbayes as eb
from erbayes._internal.arrays import FloatArray, IntArray
from erbayes.metrics.columns import ClusterSum
from erbayes.metrics.definitions import DEFAULT_METRICS, resolve_metrics
from erbayes.metrics.estimates import Estimates
from erbayes.units import Units

METRICS = resolve_metrics([*DEFAULT_METRICS, "cluster-precision"])
BLOCK, MISS = 50, 40.0
DESIGNS: dict[str, Callable[[int, float], Any]] = {
    "records": lambda N, P: eb.UniformRecords(),
    "clusters": lambda N, P: eb.UniformRecords(),
    "without": lambda N, P: eb.UniformRecords(population=N),
    "links": lambda N, P: eb.design.ByPredictedSize(
        ClusterSum("half_links", lambda m: 0.5 / N + 0.5 * (m - 1) / (2 * P))
    ),
}


def make_populations() -> Iterator[tuple[str, IntArray, IntArray]]:
    """Yield names, truths and predictions, (N,) each."""
    rng = np.random.default_rng(54)
    sizes = {
        "customers": rng.geometric(0.4, 600),
        "patients": np.exp(rng.normal(0.9, 1.0, 500)).astype(int).clip(1, 80),
        "two files": rng.integers(1, 3, 400),
        "registry": (1 + rng.poisson(2.0, 1200)),
        "heavy tail": rng.zipf(2.2, 700).clip(1, 60),
        "giants": np.append(rng.zipf(2.4, 800).clip(1, 30), [400, 300]),
        "good": (1 + rng.binomial(6, 0.3, 700)),
        "census": rng.geometric(0.3, 400),
    }
    rates = {
        "registry": (0.01, 0.002),
        "good": (0.005, 0.002),
        "giants": (0.05, 0.02),
        "two files": (0.05, 0.05),
    }
    for name, of_entity in sizes.items():
        truth, (splits, merges) = entities_of(of_entity), rates.get(name, (0.1, 0.04))
        K = len(of_entity)
        prediction = spoil(truth, min(splits * K, (of_entity > 1).sum() / 2), merges * K, 7)
        if name == "giants":  # one of both in halves
            last = np.flatnonzero(truth == truth.max())
            prediction[last[::2]] = prediction.max() + 1
        yield name, truth, prediction


def count_draws(design: Any, units: Units, share: float) -> int:
    """Return the number of draws that reach a share of the records, about."""
    N = units.size.sum()
    if getattr(design, "population", None) is not None:
        return max(int(share * N * 0.9), 4)
    chance, tried = (
        design.make_round(units, 1).p,
        np.unique(np.geomspace(4, 100 * N, 3000).astype(int)),
    )
    reached = -np.expm1(np.log1p(-chance) * tried[:, None]) @ units.size
    return int(tried[np.searchsorted(reached, share * N)])


def draw_units(design: Any, units: Units, shape: tuple[int, int], rng: np.random.Generator) -> IntArray:
    """Return the units of drawn records, (samples, n)."""
    if getattr(design, "population", None) is None:
        return rng.choice(len(units), shape, p=design.make_round(units, 1).p)
    owner = np.repeat(np.arange(len(units)), units.size.astype(int))
    return np.stack([owner[rng.permutation(len(owner))[: shape[1]]] for _ in range(shape[0])])


def judge(fit: Estimates, truth: FloatArray) -> FloatArray:
    """Return interval scores and whether intervals cover, (2, samples, metrics)."""
    low, high = np.moveaxis(fit.interval(), -1, 0)
    missed = np.maximum(low - truth, 0) + np.maximum(truth - high, 0)
    return np.stack([high - low + MISS * missed, missed <= 1e-12])


def study(
    name: str, truth: IntArray, prediction: IntArray, args: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    """Yield rows of a population: mean score and coverage by share, metric and estimate."""
    both = dict(enumerate(prediction.tolist())), dict(enumerate(truth.tolist()))
    units = eb.measure(*both)
    taylor = eb.engine.Taylor()
    right = taylor(eb.Sample(units, eb.UniformClusters(population=len(units))), METRICS).mean
    if args.design == "clusters":
        units = eb.measure_predicted(*both, np.unique(prediction))
    design = DESIGNS[args.design](len(truth), units.column(eb.columns.PREDICTED_LINKS).sum())
    for share in args.shares:
        n = count_draws(design, units, share)
        rng, judged = (
            np.random.default_rng(zlib.crc32(f"{name} {share}".encode())),
            dict[str, list[FloatArray]](),
        )
        for _ in range(args.samples // BLOCK):
            unit = draw_units(design, units, (BLOCK, n), rng)
            once = taylor(eb.Sample.many(units, design, unit), METRICS)
            each = taylor(eb.Sample.many(units, replace(design, repeats=True), unit), METRICS)
            plain = replace(each, unseen=replace(each.unseen, certain=np.array([-np.inf, np.inf])))
            for how, fit in (("before", plain), ("cut", each), ("once, cut", once)):
                judged.setdefault(how, []).append(judge(fit, right))
        for how, blocks in judged.items():
            score, covers = np.concatenate(blocks, axis=1).mean(axis=1)
            for j, metric in enumerate(METRICS):
                about = {"population": name, "share": share, "how": how, "metric": metric.name}
                yield about | {"score": score[j], "covers": covers[j]}


def main() -> None:
    """Print ratios of scores and coverages by share."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--samples", type=int, default=300)
    asked.add_argument("--shares", type=float, nargs="+", default=[0.05, 0.1, 0.25, 0.5, 0.75])
    asked.add_argument("--design", choices=DESIGNS, default="records")
    args = asked.parse_args()
    rows = pd.DataFrame(row for world in make_populations() for row in study(*world, args))
    cells = rows.pivot_table(index=["population", "share", "metric"], columns="how")
    ratio = np.log(cells["score"].drop(columns="before").div(cells["score"]["before"], axis=0))
    for how in ("cut", "once, cut"):
        log = ratio[how]
        print(f"\n{how}: all {np.exp(log.mean()):.3f}, highest of a cell {np.exp(log.max()):.3f}\n")
    print(as_markdown(np.exp(ratio["once, cut"].unstack("metric").groupby("share").mean()).reset_index()))
    print(as_markdown(cells["covers"].groupby("share").agg(["mean", "min"]).reset_index()))
    stamp("settled", "seeds 54 and by names of cells")


if __name__ == "__main__":
    main()
