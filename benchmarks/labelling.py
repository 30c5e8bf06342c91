"""Bias of precision and recall by labels with errors, before and after correction.

    python benchmarks/labelling.py

The table of benchmarks/labelling-error.md: 80 samples of 2,000 draws each, from three populations of
20,000 records. It takes a minute on one core.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import populations as sim

from erbayes import Sample
from erbayes._internal.arrays import Seed, generator
from erbayes.analysis.sensitivity.grids import Restored
from erbayes.engine import Engine, Taylor
from erbayes.labels import Annotator, KeptRecords, MissedPieces, Records
from erbayes.labels.annotators.error_models import mislabel
from erbayes.metrics import Draws, Metric, Normal, pairwise_precision, pairwise_recall
from erbayes.study import UniformEntities, study

METRICS = (pairwise_precision, pairwise_recall)
PLANS: dict[str, Records | UniformEntities] = {"records": Records(), "clusters": UniformEntities()}
RATES = ((0.3, 0.0), (0.0, 0.3), (0.2, 0.2))
SIZES = sim.LogNormal(1.98, 0.8)
ERRORS: dict[str, sim.Mechanism] = {
    "splits .3, merges .1": sim.Chain((sim.Splits(0.3), sim.Merges(0.1))),
    "misattribution .1": sim.Misattribution(0.1),
    "splits .3, misattribution .1": sim.Chain((sim.Splits(0.3), sim.Misattribution(0.1))),
}
SAMPLES, DRAWS = 80, 2000


@dataclass(frozen=True)
class Mislabelled:
    """An engine that estimates from a sample with simulated errors of an annotator."""

    model: Annotator
    engine: Engine

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> Normal | Draws:
        rng = generator(rng)
        return self.engine(Sample(mislabel(sample.units, self.model, rng), sample.design), metrics, rng)


def main() -> None:
    plain = Taylor(order=1)
    for name, errors in ERRORS.items():
        people = sim.simulate(SIZES, errors, 20_000, np.random.default_rng(1))
        print(f"\n{name}: P = {people.value(METRICS[0]):.3f}, R = {people.value(METRICS[1]):.3f}\n")
        print("| draws | u, v | P | R | restored: P | R | standard error |")
        print("|" + " --- |" * 7)
        for plan, drawing in PLANS.items():
            for u, v in RATES:
                model = Annotator(MissedPieces(u), KeptRecords(v))
                table = study(
                    {"people": people},
                    {plan: drawing},
                    [DRAWS],
                    {
                        "plain": Mislabelled(model, plain),
                        "restored": Mislabelled(model, Restored(u, v, plain, draws=2)),
                    },
                    METRICS,
                    repetitions=SAMPLES,
                    seed=1,
                ).table()
                bias: Any = table.pivot(index="estimator", columns="metric", values="bias")
                cells = [f"{bias.loc[e, m.name]:+.3f}" for e in ("plain", "restored") for m in METRICS]
                error = np.sqrt((table.rmse**2 - table.bias**2).max() / SAMPLES)
                print(f"| {plan} | {u:g}, {v:g} | {' | '.join(cells)} | {error:.4f} |", flush=True)


if __name__ == "__main__":
    main()
