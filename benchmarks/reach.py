"""Links that no draw can show: intervals and checks with giants that the draws may miss.

    python benchmarks/reach.py

The first table has coverage and scores of default intervals of 60 and 200 draws, without the share of links
out of reach and with it, for the metrics of the default table. Seven populations served to choose what the
default allows for. Eight others were set aside and written down before.

The second table has false passes. A minimum lies just above the truth, and intervals for any time look at it
after 10, 15, 20, ..., 400 draws. "Alone" are the intervals as they are, "allowed" those of a check, and
"check" leaves metrics of links open as well while a notable share is out of reach or out of balance.

Exits 1 if a check has more false passes than .025 by over two Monte Carlo standard errors. It takes about
2 minutes on one core.
"""

import sys
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import populations as sim
from common import Mixture
from common import table as markdown
from figures import stamp

import erbayes as eb
from erbayes import metrics as m
from erbayes.design.sample import ERRORS
from erbayes.metrics.columns import PREDICTED_LINKS, RECORDS
from erbayes.metrics.definitions import N
from erbayes.metrics.unseen import NOTABLE

SAMPLES, BATCH = 600, 150
LOOKS = (10, 15, 20, 30, 45, 65, 100, 150, 200, 300, 400)
METRICS = list(m.DEFAULT_METRICS)
OF_LINKS = np.array(["pairwise" in metric.name for metric in METRICS])
OF_RECORDS = np.array([metric.name.startswith("b3") for metric in METRICS])
DESIGNS: dict[
    str, Callable[[eb.units.Units], eb.UniformRecords | eb.UniformClusters | eb.design.ByPredictedSize]
] = {
    "uniform records": lambda units: eb.UniformRecords(),
    "uniform entities": lambda units: eb.UniformClusters(),
    "mixture .2": lambda units: eb.design.ByPredictedSize(Mixture(0.2).column(units.known)),
}
LINKS = m.Metric(
    "predicted-links",
    (PREDICTED_LINKS, RECORDS, N),
    lambda y, r, N: N * y / r,
    m.PER_RECORD,
    m.definitions.POSITIVE,
    "N Σw|P|_c / Σw N_c",
)
"""The number of predicted links as a sample estimates it, which tells a check of balance."""
STRANGERS = 10**7
"""Predicted cluster of strangers, which is no other id."""
Labels = tuple[np.ndarray, np.ndarray]


def small(records: int, rng: np.random.Generator) -> np.ndarray:
    """Sizes of entities of 1 to 4 records."""
    return rng.integers(1, 5, records // 2)


def strangers(giant: int, records: int, seed: int) -> Labels:
    """Small entities, right but for one predicted cluster of strangers."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(records // 2), small(records, rng))[:records]
    prediction = truth.copy()
    prediction[rng.choice(records, giant, replace=False)] = STRANGERS
    return prediction, truth


def in_parts(giants: int, sizes: tuple[int, int], parts: int, records: int, seed: int) -> Labels:
    """Small entities that are right, and giants that are cut into equal parts."""
    rng = np.random.default_rng(seed)
    few = small(records, rng)
    size = np.concatenate([few, rng.integers(*sizes, giants)])
    truth = np.repeat(np.arange(len(size)), size)
    cut = 10**6 + parts * truth + np.arange(len(truth)) % parts
    return np.where(truth >= len(few), cut, truth), truth


def right_giants(giants: int, size: int, records: int, seed: int) -> Labels:
    """Giants that are right, and small entities of which some records are apart."""
    rng = np.random.default_rng(seed)
    sizes = np.concatenate([small(records, rng), np.full(giants, size)])
    truth = np.repeat(np.arange(len(sizes)), sizes)
    apart = (truth < records // 2) & (rng.random(len(truth)) < 0.05)
    return np.where(apart, 10**6 + np.arange(len(truth)), truth), truth


def rare_splits(records: int) -> Labels:
    """Pairs, of which one in a hundred is split."""
    truth = np.arange(records) // 2
    apart = (truth % 100 == 0) & (np.arange(records) % 2 == 0)
    return np.where(apart, 10**6 + np.arange(records), truth), truth


def mixed(seed: int, entities: int, giants: tuple[int, ...] = ()) -> Labels:
    """Zipf sizes to 40; a quarter of entities split, some clusters merged, 2 % of the records astray."""
    rng = np.random.default_rng(seed)
    size = np.minimum(rng.zipf(1.9, entities), 40)
    size[: len(giants)] = giants
    truth = np.repeat(np.arange(entities), size)
    starts = np.cumsum(size) - size
    prediction = truth.copy()
    for c in np.flatnonzero((size > 1) & (rng.random(entities) < 0.25)):
        where = starts[c] + rng.choice(size[c], rng.integers(1, size[c]), replace=False)
        prediction[where] = 10**6 + c
    for _ in range(entities // 12):
        a, b = rng.choice(np.unique(prediction), 2, replace=False)
        prediction[prediction == a] = b
    stray = rng.random(len(truth)) < 0.02
    prediction[stray] = rng.choice(prediction, stray.sum())
    return prediction, truth


def chosen_on() -> dict[str, eb.units.Units]:
    """Populations that served to choose."""
    rng, law = np.random.default_rng(3), sim.Zeta(2.2, largest=300)
    wrong, truth = strangers(150, 20_000, 0)
    both = sim.Chain([sim.Splits(0.25), sim.Merges(0.02)])
    return {
        "150 strangers": of(wrong, truth),
        "a right giant of 150": of(wrong, np.where(wrong == STRANGERS, STRANGERS, truth)),
        "mixed, Zipf to 40": of(*mixed(11, 6000)),
        "Zeta to 300, merges": sim.simulate(law, sim.Merges(0.02), 20_000, rng).units,
        "Zeta to 300, misattribution": sim.simulate(law, sim.Misattribution(0.1), 20_000, rng).units,
        "Zeta to 300, splits": sim.simulate(law, sim.Splits(0.2), 20_000, rng).units,
        "log-normal, splits, merges": sim.simulate(sim.LogNormal(0.7, 0.9), both, 20_000, rng).units,
    }


def set_aside() -> dict[str, eb.units.Units]:
    """Populations that were written down before anything was chosen."""
    rng = np.random.default_rng(4)
    wide, heavy = sim.LogNormal(1.0, 1.2), sim.Zeta(2.0, largest=500)
    return {
        "60 strangers": of(*strangers(60, 5000, 3)),
        "5 giants in four": of(*in_parts(5, (40, 121), 4, 10_000, 0)),
        "3 right giants": of(*right_giants(3, 100, 8000, 0)),
        "15 giants in two": of(*in_parts(15, (60, 200), 2, 20_000, 0)),
        "1 % of pairs split": of(*rare_splits(20_000)),
        "mixed, giants of 120 and 80": of(*mixed(7, 3000, (120, 80))),
        "Zeta to 500, misattribution": sim.simulate(heavy, sim.Misattribution(0.05), 10_000, rng).units,
        "log-normal 1.2, merges": sim.simulate(wide, sim.Merges(0.05), 10_000, rng).units,
    }


def of(prediction: np.ndarray, truth: np.ndarray) -> eb.units.Units:
    return eb.measure(pd.Series(prediction), pd.Series(truth))


def sample(units: eb.units.Units, name: str, at: np.ndarray) -> eb.Sample:
    design = DESIGNS[name](units)
    return eb.Sample.many(units, design, at)


def score(ends: np.ndarray, true: np.ndarray) -> np.ndarray:
    low, high = ends[..., 0], ends[..., 1]
    return high - low + 40 * (np.maximum(low - true, 0) + np.maximum(true - high, 0))


def shares(some: eb.Sample) -> np.ndarray:
    """Shares out of reach for which a check allows, (BATCH, metrics)."""
    links, records = (some.unreached_share(c)[:, None] for c in (PREDICTED_LINKS, RECORDS))
    return links * OF_LINKS + records * OF_RECORDS


def allow(fit: m.Estimates, share: np.ndarray | float) -> m.Estimates:
    """Return estimates that allow for other shares out of reach."""
    return replace(fit, unseen=replace(fit.unseen, unreached_share=share))


def intervals(population: str, units: eb.units.Units, rng: np.random.Generator) -> list[dict[str, object]]:
    """Coverage and scores of the default interval as it is, with what it allows for, and with all shares."""
    true, rows = sim.truths(units, METRICS), []
    for name in ("uniform records", "uniform entities"):
        for draws in (60, 200):
            found: dict[str, list[np.ndarray]] = {"alone": [], "default": [], "every share": []}
            for _ in range(SAMPLES // BATCH):
                some = sample(units, name, sim.positions(units, DESIGNS[name](units), (BATCH, draws), rng))
                fit = eb.engine.taylor(some, METRICS).apply(METRICS)
                found["alone"].append(allow(fit, 0.0).interval())
                found["default"].append(fit.interval())
                found["every share"].append(allow(fit, shares(some)).interval())
            for kind, batches in found.items():
                ends = np.nan_to_num(np.concatenate(batches), nan=0.0)
                ends[np.isnan(np.concatenate(batches)).any(axis=-1)] = 0.0, 1.0  # 0/0: nothing is known
                cover = ((ends[..., 0] <= true) & (true <= ends[..., 1])).mean(axis=0)
                of_kind = score(ends, true).mean(axis=0)
                rows += [
                    {"population": population, "design": name, "draws": draws, "metric": x.name}
                    | {"kind": kind, "cover": cover[j], "score": of_kind[j]}
                    for j, x in enumerate(METRICS)
                ]
    return rows


def summary(rows: pd.DataFrame) -> list[list[str]]:
    """One row per set of populations, design, metric and kind."""
    keys, lines = ["population", "design", "draws", "metric"], []
    alone = rows[rows.kind == "alone"].set_index(keys).score
    for (which, design, metric, kind), part in rows.groupby(["set", "design", "metric", "kind"], sort=False):
        ratio = np.exp(pd.Series(np.log(part.set_index(keys).score / alone)).dropna().mean())
        cells = (part.cover.mean(), part.cover.min(), part.score.mean(), ratio)
        lines.append([which, design, metric, kind, *(f"{x:.3f}" for x in cells)])
    return lines


def passes(units: eb.units.Units, name: str, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Shares of samples in which one look passes a minimum just above the truth, (metrics) each."""
    true, known = sim.truths(units, METRICS), units.total(PREDICTED_LINKS)
    ever: dict[str, list[np.ndarray]] = {"alone": [], "allowed": [], "check": []}
    for _ in range(SAMPLES // BATCH):
        at = sim.positions(units, DESIGNS[name](units), (BATCH, LOOKS[-1]), rng)
        passed = {kind: np.zeros((BATCH, len(METRICS)), bool) for kind in ever}
        for look in LOOKS:
            some = sample(units, name, at[:, :look])
            fit, share = eb.engine.taylor(some, METRICS).apply(METRICS), shares(some)
            alone, allowed = (
                allow(fit, x).interval(0.95, eb.intervals.Anytime())[..., 0] > true for x in (0.0, share)
            )
            estimated = eb.engine.taylor(some, LINKS).apply(LINKS, order=1)
            off = np.abs(estimated.mean - known) > np.maximum(ERRORS * estimated.sd, NOTABLE * known)
            passed["alone"] |= alone
            passed["allowed"] |= allowed
            passed["check"] |= allowed & ~(((share > NOTABLE) | off) & OF_LINKS)
        for kind, batches in ever.items():
            batches.append(passed[kind])
    return {kind: np.concatenate(batches).mean(axis=0) for kind, batches in ever.items()}


if __name__ == "__main__":
    rng, parts = np.random.default_rng(33), []
    sets = {"chosen on": chosen_on(), "set aside": set_aside()}
    for which, populations in sets.items():
        for population, units in populations.items():
            parts.append(pd.DataFrame(intervals(population, units, rng)).assign(set=which))
    header = ["populations", "design", "metric", "interval", "covers", "lowest", "score", "ratio"]
    print(markdown(header, summary(pd.concat(parts))), end="\n\n")
    lines, faults = [], []
    hard = ("150 strangers", "60 strangers", "15 giants in two", "5 giants in four", "1 % of pairs split")
    for population, units in {k: u for s in sets.values() for k, u in s.items() if k in hard}.items():
        true = sim.truths(units, METRICS)
        for name in DESIGNS:
            found = passes(units, name, rng)
            for j, metric in enumerate(METRICS):
                cells = [found[kind][j] for kind in ("alone", "allowed", "check")]
                if true[j] < 1 - 1e-9 and (name != "mixture .2" or OF_LINKS[j]):
                    lines.append(
                        [population, name, metric.name, f"{true[j]:.3f}", *(f"{x:.3f}" for x in cells)]
                    )
                    if cells[-1] > 0.025 + 2 * np.sqrt(0.025 * 0.975 / SAMPLES):
                        faults.append(f"{population}, {name}, {metric.name}: false passes {cells[-1]:.3f}")
    print(markdown(["population", "design", "metric", "truth", "alone", "allowed", "check"], lines))
    print(*["", *faults], sep="\n")
    stamp("stopping", "seed 33")
    sys.exit(bool(faults))
