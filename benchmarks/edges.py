"""Thresholds of a matcher: seconds, and coverage of bands, sets of the best, certificates and stages.

    python benchmarks/edges.py speed            # 2 minutes and 1 GB
    python benchmarks/edges.py splink           # needs splink==5.0.0
    python benchmarks/edges.py cover rl 400 200 # population, draws, samples
    python benchmarks/edges.py stages rl 300 200
    python benchmarks/edges.py topup 100

Results are in benchmarks/edges.md. `speed` exits with an error where it misses its bar.
"""

import argparse
import resource
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from figures import stamp

import erbayes as eb
from erbayes import datasets
from erbayes.units.edges import Edges, sweep

NAMES = [metric.name for metric in eb.metrics.DEFAULT_METRICS]


@dataclass
class Population:
    """Records with their truth, and scored edges between positions of records."""

    truth: np.ndarray
    left: np.ndarray
    right: np.ndarray
    score: np.ndarray
    at: Any = 25

    def __post_init__(self) -> None:
        self.truth = pd.factorize(self.truth)[0]
        self.edges = Edges(pd.RangeIndex(len(self.truth)), self.left, self.right, self.score)
        self.levels = self.edges.thresholds(self.at)
        self.order = np.argsort(self.truth, kind="stable")
        self.sizes = np.bincount(self.truth)
        self.first = np.concatenate([[0], np.cumsum(self.sizes)])

    def true_values(self) -> np.ndarray:
        """The six metrics at each threshold, counted over all records, (K, 6)."""
        N, own = len(self.truth), self.sizes
        rows = []
        for level in sweep(self.edges, self.levels, np.arange(N)):
            m = level.sizes
            key, n = np.unique(level.cluster * len(own) + self.truth, return_counts=True)
            k, c = key // len(own), key % len(own)
            common, true, predicted = ((x * (x - 1.0)).sum() for x in (n, own, m))
            exact = ((n == m[k]) & (n == own[c])).sum()
            rows.append(
                [
                    common / predicted if predicted else np.nan,
                    common / true,
                    2 * common / (true + predicted),
                    (n**2 / m[k]).sum() / N,
                    (n**2 / own[c]).sum() / N,
                    exact / len(own),
                ]
            )
        return np.array(rows)

    def draw(self, n: int, rng: np.random.Generator) -> tuple[pd.Series, eb.UniformRecords]:
        drawn = pd.Index(self.truth[rng.integers(0, len(self.truth), n)])
        records = np.concatenate([self.order[self.first[c] : self.first[c + 1]] for c in np.unique(drawn)])
        return pd.Series(self.truth[records], records), eb.UniformRecords(drawn)


def make_rl(at: Any = 200) -> Population:
    """RLdata10000 with the match weights of Splink."""
    edges, truth = datasets.rldata10000_edges(), datasets.rldata10000().identity
    left, right = (truth.index.get_indexer(pd.Index(edges[c])) for c in ("unique_id_l", "unique_id_r"))
    return Population(truth.to_numpy(), left, right, edges.match_weight.to_numpy(), at)


def make_patents() -> Population:
    """PatentsView of 2022-06-30 as truth; scores are the share of releases that join a pair, and names."""
    releases = datasets.patentsview_releases()
    mentions = datasets.patentsview_mentions().reindex(releases.index)
    truth = releases.pop("20220630").to_numpy()
    codes = np.stack([pd.factorize(column)[0] for _, column in releases.items()])
    year, place = mentions.year.fillna(0).to_numpy(), np.arange(len(truth))
    pairs = []
    for code in codes:
        order = np.lexsort((place, year, code))
        order = order[code[order] >= 0]
        same = code[order[1:]] == code[order[:-1]]
        pairs.append(np.sort([order[:-1][same], order[1:][same]], axis=0))
    i, j = np.unique(np.concatenate(pairs, axis=1), axis=1)
    both = (codes[:, i] >= 0) & (codes[:, j] >= 0)
    share = (((codes[:, i] == codes[:, j]) & both).sum(axis=0) + 0.5) / (both.sum(axis=0) + 1)
    names = [mentions[c].astype(str).str.lower().to_numpy() for c in ("first", "last")]
    score = np.log2(share / (1 - share)) + sum(0.5 * (x[i] == x[j]) for x in names)
    score += 0.05 * np.random.default_rng(0).standard_normal(len(i)) - 0.2 * (np.abs(year[i] - year[j]) > 5)
    at = np.unique(np.quantile(score[(score > -2) & (score < 5.3)], np.linspace(0, 1, 25)))
    return Population(truth, i, j, score, at)


def make_simulated(
    seed: int = 0,
    entities: int = 15_000,
    tail: float = 2.2,
    largest: int = 400,
    noise: float = 1.0,
    scores: Callable[[np.ndarray], np.ndarray] = lambda s: s,
    low: float = -4.0,
    at: Any = None,
) -> Population:
    """Zipf's sizes; edges along and across entities with high scores, and to neighbours with low ones."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(entities), np.minimum(rng.zipf(tail, entities), largest))
    N, place = len(truth), np.arange(len(truth))
    first = np.searchsorted(truth, truth)
    size = np.bincount(truth)[truth]
    along = place[:-1][truth[1:] == truth[:-1]]
    across = rng.integers(0, N, 2 * N)
    other = first[across] + (rng.random(2 * N) * size[across]).astype(int)
    near = rng.integers(0, N, int(noise * N / 2))
    wrong = np.clip(near + rng.integers(-60, 61, len(near)), 0, N - 1)
    keep, apart = across != other, truth[near] != truth[wrong]
    left = np.concatenate([along, across[keep], near[apart]])
    right = np.concatenate([along + 1, other[keep], wrong[apart]])
    score = np.concatenate(
        [rng.normal(4, 3, len(along)), rng.normal(3, 3, keep.sum()), rng.normal(low, 3, apart.sum())]
    )
    score = scores(score)
    if at is None:
        strict, loose = np.quantile(score, [0.98, 0.1])
        at = np.linspace(loose, strict, 25)
    return Population(truth, left, right, score, at)


def make_chains(seed: int = 21) -> Population:
    """Versions of things, each with an edge to the next alone, and false bridges between two things."""
    rng = np.random.default_rng(seed)
    size = 1 + rng.geometric(0.18, 5000) * (rng.random(5000) < 0.7)
    truth = np.repeat(np.arange(len(size)), size)
    along = np.flatnonzero(truth[1:] == truth[:-1])
    weak = rng.random(len(along)) < 0.04
    right = np.where(weak, rng.normal(0, 1.5, len(along)), rng.normal(6, 1.5, len(along)))
    ends = np.array([rng.integers(0, len(truth), 900) for _ in range(2)])
    one, other = ends[:, truth[ends[0]] != truth[ends[1]]]
    score = np.r_[right, rng.normal(2.5, 2, len(one))]
    return Population(truth, np.r_[along, one], np.r_[along + 1, other], score, 25)


def make_rules(seed: int = 22) -> Population:
    """Rules with five scores, of which the loosest make giants; a third of the records has no edge."""
    rng = np.random.default_rng(seed)
    size = np.minimum(rng.zipf(2.6, 9000), 80)
    truth = np.repeat(np.arange(len(size)), size)
    N, scores = len(truth), np.arange(1.0, 6.0)
    block, alone = rng.integers(0, 400, N), rng.random(N) < 0.35
    left = np.repeat(np.arange(N), 3)
    right = np.searchsorted(truth, truth)[left] + (rng.random(len(left)) * size[truth][left]).astype(int)
    there = (left != right) & ~alone[left] & ~alone[right]
    left, right = left[there], right[there]
    score = rng.choice(scores, len(left), p=[0.05, 0.1, 0.2, 0.3, 0.35])
    order = np.argsort(block, kind="stable")
    order = order[~alone[order]]
    near = (rng.random(len(order) - 1) < 0.6) & (block[order[1:]] == block[order[:-1]])
    one, other = order[:-1][near], order[1:][near]
    apart = truth[one] != truth[other]
    wrong = rng.choice(scores, apart.sum(), p=[0.8, 0.14, 0.045, 0.012, 0.003])
    return Population(truth, np.r_[left, one[apart]], np.r_[right, other[apart]], np.r_[score, wrong], 5)


def make_firms(seed: int = 23) -> Population:
    """A tail without a mean, cut at 2,000; some firms are hard as a whole, and chance joins large ones."""
    rng = np.random.default_rng(seed)
    size = np.minimum(np.floor((1 - rng.random(6000)) ** (-1 / 0.75)), 2000).astype(int)
    truth = np.repeat(np.arange(len(size)), size)
    N, hard = len(truth), rng.normal(0, 2.5, len(size))
    left = np.repeat(np.arange(N), 2)
    right = np.searchsorted(truth, truth)[left] + (rng.random(len(left)) * size[truth][left]).astype(int)
    there = left != right
    left, right = left[there], right[there]
    score = 4 + hard[truth[left]] + rng.normal(0, 2, len(left))
    one, other = (rng.integers(0, N, N // 3) for _ in range(2))
    apart = truth[one] != truth[other]
    score = np.r_[score, rng.normal(-5, 3.0, apart.sum())]
    at = np.linspace(-8, 8, 25)
    return Population(truth, np.r_[left, one[apart]], np.r_[right, other[apart]], score, at)


def make_giant(seed: int = 24) -> Population:
    """Entities of one to five records; half of the thresholds join most records into one cluster."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(3000), rng.integers(1, 6, 3000))
    N, size = len(truth), np.bincount(truth)
    left = np.repeat(np.arange(N), 2)
    right = np.searchsorted(truth, truth)[left] + (rng.random(len(left)) * size[truth][left]).astype(int)
    there = left != right
    left, right = left[there], right[there]
    one, other = (rng.integers(0, N, 2 * N) for _ in range(2))
    apart = truth[one] != truth[other]
    score = np.r_[rng.beta(5, 2, len(left)), rng.beta(2, 5, apart.sum())]
    return Population(truth, np.r_[left, one[apart]], np.r_[right, other[apart]], score, 25)


def logistic(score: np.ndarray) -> np.ndarray:
    return 1 / (1 + 2.0**-score)


POPULATIONS: dict[str, Callable[[], Population]] = {
    "rl": make_rl,
    "patents": make_patents,
    "zipf": make_simulated,
    "small entities, coarse scores": lambda: make_simulated(
        3, 6000, 3.5, 12, scores=lambda s: np.clip(np.round(s), -6, 8), at=200
    ),
    "heavy tail": lambda: make_simulated(4, 8000, 1.9, 1500),
    "nearly perfect, probabilities": lambda: make_simulated(
        5, 8000, 2.6, 40, low=-15.0, scores=logistic, at=list(np.linspace(0.001, 0.99, 25))
    ),
    "few links": lambda: make_simulated(6, 20_000, 4.5, 5, noise=2.0, at=40),
    "dirty, many thresholds": lambda: make_simulated(7, 5000, 2.5, 60, noise=3.0, low=-1.0, at=150),
    "chains": make_chains,
    "rules": make_rules,
    "firms": make_firms,
    "giant": make_giant,
}


def cover(name: str, n: int, samples: int) -> pd.DataFrame:
    """Return shares of samples: bands that cover, sets that hold the best, certificates that are false."""
    population, rng = POPULATIONS[name](), np.random.default_rng(11)
    truth, rows = population.true_values(), []
    for _ in range(samples):
        labels, design = population.draw(n, rng)
        curve = eb.thresholds(population.edges, labels, design, at=population.levels)
        row: dict[str, Any] = {}
        for m, metric in enumerate(NAMES):
            table, true = curve.table(metric), truth[:, m]
            lower, upper = table.lower.fillna(0).to_numpy(), table.upper.fillna(1).to_numpy()
            row[f"{metric}: band"] = ((lower <= true + 1e-9) & (true <= upper + 1e-9) | np.isnan(true)).all()
            shown = table.lower.notna().to_numpy()
            row[f"{metric}: shown"] = shown.mean()
            row[f"{metric}: width"] = (upper - lower)[shown].mean() if shown.any() else np.nan
        for metric in ("pairwise-f1", "b3-recall", "cluster-recall"):
            true = truth[:, NAMES.index(metric)]
            best = curve.best(metric)
            held = true[np.isin(curve.thresholds, best.threshold)]
            row[f"{metric}: set holds the best"] = held.max() >= np.nanmax(true) - 1e-12
            row[f"{metric}: set"] = len(best) / len(true)
        # the hardest share is one that the metric just misses somewhere
        hard = truth[:, 0][(truth[:, 0] > 0.5) & (truth[:, 0] < 1 - 1e-9)] + 1e-9
        shares = {f"{p}": p for p in (0.8, 0.9, 0.95)}
        shares |= {"hard": float(hard[len(hard) // 2])} if len(hard) else {}
        for what, least in shares.items():
            found = curve.certified("pairwise-precision", least)
            at = found.threshold
            wrong = at is not None and truth[curve.thresholds.tolist().index(at), 0] < least
            row[f"false certificate {what}"], row[f"certified {what}"] = wrong, at is not None
            if at is not None:
                row[f"recall at certificate {what}"] = truth[curve.thresholds.tolist().index(at), 1]
        rows.append(row)
    means = pd.DataFrame(rows).astype(float).mean()
    for what, least in shares.items():
        passing = truth[truth[:, 0] >= least, 1]
        means[f"recall possible {what}"] = passing.max() if len(passing) else np.nan
    return means.to_frame("share")


STRICT = {
    **{"rl": 1.1, "zipf": 2.46, "patents": 2.31, "few links": 1.0, "dirty, many thresholds": 2.0},
    **{"chains": 3.0, "rules": 3.0, "firms": 4.66, "giant": 0.7},
}
"""Thresholds near the best F1, at which stages are judged."""


def cover_stages(name: str, n: int, samples: int) -> pd.DataFrame:
    """Return the truth of each stage, its mean estimate, and coverage where an interval is given."""
    population, rng = POPULATIONS[name](), np.random.default_rng(2)
    everything = pd.Series(population.truth)
    census = eb.UniformClusters(population=len(population.sizes))
    true = eb.stages(population.edges, everything, census, STRICT[name]).joint.mean
    rows = []
    for _ in range(samples):
        labels, design = population.draw(n, rng)
        table = eb.stages(population.edges, labels, design, STRICT[name]).table()
        shown = table.lower.notna()
        covered = (table.lower <= true + 1e-9) & (true <= table.upper + 1e-9)
        found = {"estimate": table.estimate, "covers": covered.where(shown).astype(float)}
        found |= {"width": table.upper - table.lower, "shown": shown.astype(float)}
        rows.append(pd.DataFrame(found).set_axis(table.stage))
    # a stage that no sample gives an interval has none here either
    mean = pd.concat(rows).groupby(level=0, sort=False).mean()
    mean.insert(0, "true", true)
    return mean


def cover_topped_up(samples: int) -> pd.DataFrame:
    """Return coverage and width of old labels with 50 new draws, and of 200 fresh ones, in PatentsView."""
    releases, rows = datasets.patentsview_releases(), []
    metrics = ["pairwise-precision", "pairwise-recall", "b3-recall"]
    for first, last in (("20170808", "20201229"), ("20190820", "20211230")):
        there = releases[last].notna() & releases["20220630"].notna()
        truth, prediction = releases["20220630"][there], releases[last][there]
        census = eb.UniformClusters(population=truth.nunique())
        true = eb.estimate(prediction, truth, census, metrics).estimate
        before = releases.index[there & releases[first].notna()]
        inside = eb.estimate(
            prediction[before], truth[before], eb.UniformClusters(truth[before].nunique()), metrics
        )
        print(first, last, "of all", true.round(3), "of old records", inside.estimate.round(3))
        after, rng = truth.index.difference(before), np.random.default_rng(1)
        for _ in range(samples):
            draws = [pd.Index(truth[rng.choice(part, n)]) for part, n in ((before, 200), (after, 50))]
            fresh = pd.Index(truth[rng.choice(truth.index, 200)])
            labels = truth[truth.isin(np.concatenate(draws))]
            parts = eb.top_up(labels, (before, draws[0]), (truth.index, draws[1]))
            some = truth[truth.isin(fresh)]
            for what, shown, design in (
                ("200 + 50", labels, parts),
                ("200 fresh", some, eb.UniformRecords(fresh)),
            ):
                lower, upper = eb.estimate(prediction, shown, design, metrics).interval().T
                covers = (lower <= true) & (true <= upper)
                rows += [
                    (f"{first} > {last}", what, *x) for x in zip(metrics, covers, upper - lower, strict=True)
                ]
    table = pd.DataFrame(rows, columns=["releases", "labels", "metric", "covers", "width"])
    return table.groupby(["releases", "metric", "labels"], sort=False).mean()


def make_large(edges: int = 5_000_000, records: int = 3_000_000) -> Population:
    """Edges of beta scores, high inside entities of Zipf's sizes and low elsewhere."""
    rng = np.random.default_rng(0)
    size = np.minimum(rng.zipf(3.0, records), 2000)
    size = size[: np.searchsorted(np.cumsum(size), records)]
    truth = np.repeat(np.arange(len(size)), size)
    first, left = np.concatenate([[0], np.cumsum(size)[:-1]]), rng.integers(0, len(truth), edges)
    near = first[truth[left]] + (rng.random(edges) * size[truth[left]]).astype(int)
    far = np.minimum(left + rng.integers(1, 30, edges), len(truth) - 1)
    right = np.where(rng.random(edges) < 0.8, near, far)
    score = np.where(truth[left] == truth[right], rng.beta(6, 1.5, edges), rng.beta(1.2, 6, edges))
    at = np.quantile(score, np.linspace(0.1, 0.999, 200))
    return Population(truth, left.astype(np.int32), right.astype(np.int32), score, at)


def measure_speed() -> None:
    """Print processor seconds of the sweep and of six metrics over one stable sort of the scores."""
    population = make_large()
    labels, design = population.draw(200, np.random.default_rng(1))
    watched = population.edges.watch(eb.Clustering.of(labels))

    def seconds(work: Callable[[], Any]) -> float:
        before = time.process_time()
        work()
        return time.process_time() - before

    ratios = []
    for _ in range(3):
        sort = seconds(lambda: np.argsort(population.score, kind="stable"))
        swept = seconds(lambda: list(map(type, sweep(population.edges, population.levels, watched))))
        whole = seconds(lambda: eb.thresholds(population.edges, labels, design, at=population.levels))
        ratios.append((swept / sort, (whole - swept) / sort))
        print(f"argsort {sort:.2f} s, sweep {swept:.2f} s, with six metrics {whole:.2f} s")
    print("over a sort: sweep {:.2f}, metrics {:.2f}; bar 2.5 each".format(*np.median(ratios, axis=0)))
    print(f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB, bar 1 for the sweep")
    if np.median(ratios, axis=0).max() > 2.5:
        raise SystemExit("slower than its bar")


def measure_splink() -> None:
    """Print processor seconds of Splink's function and of the sweep, for 240,000 edges and 40 thresholds."""
    from splink import DuckDBAPI
    from splink.internals.clustering import cluster_pairwise_predictions_at_multiple_thresholds as cluster

    population = make_large(240_000, 140_000)
    levels, edges = population.levels[::5], population.edges
    columns = {"unique_id_l": edges.left, "unique_id_r": edges.right, "match_probability": edges.score}
    database = DuckDBAPI()
    nodes = database.register(pd.DataFrame({"unique_id": edges.records}))
    table = database.register(pd.DataFrame(columns))
    before = time.process_time()
    at = sorted(levels.tolist())
    cluster(nodes, table, database, "unique_id", match_probability_thresholds=at).as_pandas_dataframe()
    middle = time.process_time()
    for _ in sweep(edges, levels, np.arange(len(edges.records))):
        pass
    sweeping = time.process_time() - middle
    ratio = (middle - before) / sweeping
    print(f"Splink {middle - before:.1f} s, sweep {sweeping:.2f} s: {ratio:.0f} times as quick, bar 50")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["speed", "splink", "cover", "stages", "topup"])
    parser.add_argument("rest", nargs="*")
    asked = parser.parse_args()
    warnings.simplefilter("ignore", eb.Alarm)
    before = time.process_time()
    if asked.what == "speed":
        measure_speed()
    elif asked.what == "splink":
        measure_splink()
    elif asked.what == "topup":
        print(cover_topped_up(int(asked.rest[0])).round(3).to_string())
    else:
        study = cover if asked.what == "cover" else cover_stages
        print(*asked.rest)
        print(study(asked.rest[0], *map(int, asked.rest[1:])).round(3).to_string())
    print(f"{time.process_time() - before:.0f} processor seconds", flush=True)
    stamp("edges", "seeds 0, 1, 2 and 11")


if __name__ == "__main__":
    main()
