"""Labelled pairs: coverage of their intervals, the speed of drawing, and what entities add to them.

    python benchmarks/pairs.py cover|both|speed

benchmarks/pairs.md has the figures and what they decide. Most take a minute.
"""

import argparse
import time
from collections.abc import Iterator

import numpy as np
import pandas as pd
from common import as_markdown
from edges import POPULATIONS, STRICT, make_large
from figures import stamp
from scipy.stats import beta, norm

import erbayes as eb
from erbayes.analysis.pair_strata import FEWEST_RIGHT, PairStrata, estimate_precision, estimate_recall
from erbayes.analysis.pairs import _allocate
from erbayes.metrics.columns import PREDICTED_LINKS
from erbayes.units.edges import Edges, sweep

Z = norm.ppf(0.975)


def list_cells() -> Iterator[tuple[str, list[float], list[float]]]:
    """Yield populations: pairs of each band, and the share of right ones. Half of the bands are above."""
    yield "like RLdata10000", [300, 300, 500, 800, 2e3, 2e4, 2e5, 1e6], [1, 1, 0.97, 0.8, 0.1, 0.01, 0.001, 0]
    yield (
        "like PatentsView",
        [1e4, 1e4, 2e4, 1e5, 1e5, 1e6, 5e6, 2.3e7],
        [0.99, 0.97, 0.9, 0.6, 0.4, 0.1, 0.03, 0.004],
    )
    yield "all right", [1e2, 1e3, 1e4, 1e5, 1e2, 1e3, 1e4, 1e5], [1] * 8
    yield "perfect", [1e3, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e8], [1, 1, 1, 1, 0, 0, 0, 0]
    yield (
        "rare in giants",
        [1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e8],
        [1, 0.99, 0.95, 0.9, 0.1, 0.01, 1e-3, 1e-4],
    )
    yield (
        "most in giants",
        [1e3, 1e3, 1e4, 1e5, 1e5, 1e6, 1e7, 1e8],
        [1, 0.99, 0.95, 0.9, 0.3, 0.05, 0.02, 0.01],
    )
    yield "halves", [1e4] * 8, [0.5] * 8
    yield "few errors", [1e4] * 8, [0.999, 0.998, 0.997, 0.99, 0.01, 0.003, 0.002, 0.001]
    yield "none right", [1e4] * 8, [0, 0, 0, 0.01, 0.01, 0, 0, 0]
    yield "giant above", [1e2, 1e3, 1e5, 1e8, 1e2, 1e3, 1e4, 1e5], [1, 1, 0.9, 0.05, 0.01, 0.1, 0.01, 0]
    yield (
        "small bands",
        [60, 100, 100, 150, 100, 120, 150, 200],
        [1, 0.97, 0.9, 0.8, 0.3, 0.1, 0.02, 0],
    )
    yield (
        "scores that rise",
        [1e5, 1e4, 1e3, 1e2, 1e2, 1e3, 1e4, 1e5],
        [0.5, 0.6, 0.7, 0.8, 0.8, 0.7, 0.6, 0.5],
    )
    yield "two bands", [1e3, 1e6], [0.95, 0.01]
    yield "two bands, rare", [1e3, 1e6], [0.95, 0.001]
    rng = np.random.default_rng(5)
    for i in range(8):
        yield f"random {i + 1}", list(10 ** rng.uniform(2, 8, 8)), list(np.sort(rng.beta(0.3, 0.3, 8))[::-1])


def interval_of_one_size(strata: PairStrata, recall: bool) -> tuple[float, float]:
    """Return the interval of Korn and Graubard from one effective sample size of all strata."""
    n = strata.labelled.sum()
    found = (estimate_recall if recall else estimate_precision)(strata, 0.95)
    x, V = found.value, found.se**2
    size = min(n, x * (1 - x) / V) if V > 0 else n
    lower, upper = beta.ppf([0.025, 0.975], x * size + 0.5, (1 - x) * size + 0.5)
    return float(lower), float(upper)


def cover(samples: int) -> None:
    """Print the share of intervals that cover, their width, and the share of samples with an estimate."""
    rng, rows = np.random.default_rng(1), []
    for name, sizes, shares in list_cells():
        M = np.round(sizes).astype(np.int64)
        true = np.round(M * np.array(shares)).astype(np.int64)
        above = np.arange(len(M)) < len(M) // 2
        P, R = true[above].sum() / M[above].sum(), true[above].sum() / max(true.sum(), 1)
        for pairs in (100, 200, 400):
            n = _allocate(M, pairs)
            found: dict[str, list[float]] = {
                k: [] for k in ("P", "P width", "P one size", "R", "R width", "R one size")
            }
            told = 0
            for y in np.stack(
                [rng.hypergeometric(a, m - a, k, samples) for a, m, k in zip(true, M, n, strict=True)], 1
            ):
                strata = PairStrata(M.astype(float), n.astype(float), y.astype(float), above)
                kinds = [("P", P, estimate_precision)]
                if y.sum() >= FEWEST_RIGHT:
                    told += 1
                    kinds.append(("R", R, estimate_recall))
                for k, truth, estimate in kinds:
                    _, _, lower, upper = estimate(strata, 0.95)
                    found[k].append(lower - 1e-9 <= truth <= upper + 1e-9)
                    found[f"{k} width"].append(upper - lower)
                    lower, upper = interval_of_one_size(strata, k == "R")
                    found[f"{k} one size"].append(lower <= truth <= upper)
            mean = {k: float(np.mean(x)) if len(x) >= 50 else np.nan for k, x in found.items()}
            rows.append(
                {
                    "population": name,
                    "pairs": pairs,
                    "true P": P,
                    "true R": R,
                    **mean,
                    "R told": told / samples,
                }
            )
    table = pd.DataFrame(rows)
    print(as_markdown(table))
    for column in ("P", "R", "P one size", "R one size"):
        x = table[column].dropna()
        few = (x < 0.9).sum()
        print(f"{column}: mean {x.mean():.3f}, least {x.min():.3f}, under .90 in {few} of {len(x)} cells")


def combine(name: str, records: int, pairs: int, samples: int) -> pd.DataFrame:
    """Return root mean squared errors of precision by entities, by pairs, and by their weighted mean."""
    population, rng = POPULATIONS[name](), np.random.default_rng(1)
    edges, at = population.edges, STRICT[name]
    everything = pd.Series(population.truth)
    census = eb.UniformClusters(population=len(population.sizes))
    metric = "pairwise-precision"
    true = eb.thresholds(edges, everything, census, metric, at=[at]).joint.estimate[0]
    rows = []
    for seed in range(samples):
        labels, design = population.draw(records, rng)
        found = eb.thresholds(edges, labels, design, metric, at=[at]).joint
        drawn = eb.pairs.draw_pairs(edges, pairs, threshold=at, seed=seed)
        same = population.truth[drawn.left] == population.truth[drawn.right]
        by_pairs = eb.pairs.estimate(edges, drawn.assign(same=same)).table([at]).iloc[0]
        V = np.maximum([found.sd[0], by_pairs.se], 0.5 / max(records, pairs)) ** 2
        x = np.array([found.estimate[0], by_pairs.estimate])
        rows.append([*x, x @ (1 / V) / (1 / V).sum()])
    errors = np.sqrt(np.nanmean((np.array(rows) - true) ** 2, axis=0))
    return pd.DataFrame(
        [[name, float(true), *errors.tolist()]], columns=["population", "P", "entities", "pairs", "both"]
    )


def measure_speed() -> None:
    """Print processor seconds of drawing 1,000 pairs from 10⁹, over those of the sweep of all records."""
    large, rng = make_large(), np.random.default_rng(1)
    N = len(large.truth)
    block = np.arange(N) // 1000
    inside = block[large.left] == block[large.right]
    chain = np.flatnonzero(block[1:] == block[:-1])
    left, right = (
        np.concatenate([end[inside], chain + step]).astype(np.int32)
        for end, step in ((large.left, 0), (large.right, 1))
    )
    score = np.concatenate([large.score[inside] + 1, rng.random(len(chain))])
    edges = Edges(pd.RangeIndex(N), left, right, score)
    floors = edges.thresholds([1.9, 1.8, 1.7, 1.6, 1.4, 1.2, 0.9, score.min()])
    ratios = []
    for seed in range(5):
        before = time.process_time()
        *_, last = sweep(edges, floors, np.arange(N))
        middle = time.process_time()
        drawn = eb.pairs.draw_pairs(edges, 1000, bands=floors, seed=seed)
        swept, whole = middle - before, time.process_time() - middle
        ratios.append((whole - swept) / swept)
        pairs = last.known.total(PREDICTED_LINKS)
        print(f"{pairs:.2g} pairs, {len(drawn)} drawn: sweep {swept:.2f} s, draw {whole:.2f} s")
    print(f"beyond the sweep: {np.median(ratios):.2f} of its time (median of 5), bar .10")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["cover", "both", "speed"])
    parser.add_argument("samples", nargs="?", type=int, default=1000)
    asked = parser.parse_args()
    if asked.what == "cover":
        cover(asked.samples)
    elif asked.what == "speed":
        measure_speed()
    else:
        print(as_markdown(pd.concat([combine(name, 200, 200, asked.samples) for name in STRICT])))
    stamp("pairs", "seeds 1 and 5")


if __name__ == "__main__":
    main()
