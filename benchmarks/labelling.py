"""Bias of precision and recall by labels with errors, before and after they are undone.

    python benchmarks/labelling.py

The table of benchmarks/labelling-error.md: 20 samples of 500 draws each, from three populations of
20,000 records. It takes two minutes on one core.
"""

import numpy as np
import pandas as pd
import populations as sim
from figures import stamp

import erbayes as eb
from erbayes.engine import Taylor
from erbayes.labels import Annotator, mislabel
from erbayes.metrics import pairwise_precision, pairwise_recall

METRICS = (pairwise_precision, pairwise_recall)
RATES = ((0.3, 0.0, 0.0), (0.0, 0.3, 0.0), (0.0, 0.0, 0.05), (0.2, 0.2, 0.05))
SIZES = sim.LogNormal(1.98, 0.8)
ERRORS: dict[str, sim.Mechanism] = {
    "splits .3, merges .1": sim.Chain((sim.Splits(0.3), sim.Merges(0.1))),
    "misattribution .1": sim.Misattribution(0.1),
    "splits .3, misattribution .1": sim.Chain((sim.Splits(0.3), sim.Misattribution(0.1))),
}
SAMPLES, DRAWS = 20, 500


def measure_bias(people: sim.Population, rates: tuple[float, float, float], by_records: bool) -> np.ndarray:
    """Return estimates with errors, and with errors undone, less those of perfect labels, (samples, 2, 2)."""
    prediction, annotator, off = eb.Clustering.of(people.pred), Annotator(*rates), []
    for seed in range(SAMPLES):
        rng = np.random.default_rng(seed)
        entities = rng.permutation(people.true.unique())[:DRAWS]
        start = people.true.index[rng.choice(len(people.true), DRAWS)]
        drawn = people.true[start].to_numpy() if by_records else entities
        design = eb.UniformRecords(drawn) if by_records else eb.UniformClusters()
        true = people.true[people.true.isin(drawn)]

        def answer(labels: pd.Series, design: eb.design.contract.Design) -> eb.Estimates:
            return Taylor(order=1)(eb.Sample(eb.measure(prediction, labels), design), METRICS)

        starts = start if by_records else None
        seen = mislabel(true, prediction, annotator, starts=starts, rng=rng)
        found = eb.with_errors(
            answer, seen, design, prediction, annotator, starts=starts, imputations=4, rng=rng
        )
        perfect = answer(true, design).estimate
        off.append([found.random.estimate - perfect, found.both.estimate - perfect])
    return np.array(off)


def main() -> None:
    for name, errors in ERRORS.items():
        people = sim.simulate(SIZES, errors, 20_000, np.random.default_rng(1))
        print(f"\n{name}: P = {people.value(METRICS[0]):.3f}, R = {people.value(METRICS[1]):.3f}\n")
        print("| draws | missed, kept, added | P | R | undone: P | R | standard error |")
        print("|" + " --- |" * 7)
        for draws in ("records", "clusters"):
            for rates in RATES:
                off = measure_bias(people, rates, draws == "records")
                cells = " | ".join(f"{x:+.3f}" for x in off.mean(axis=0).ravel())
                error = (off.std(axis=0, ddof=1) / np.sqrt(SAMPLES)).max()
                told = ", ".join(f"{x:g}" for x in rates)
                print(f"| {draws} | {told} | {cells} | {error:.4f} |", flush=True)
    stamp("labelling-error", f"seeds 0 to {SAMPLES - 1}")


if __name__ == "__main__":
    main()
