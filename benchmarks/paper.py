"""The simulation study of Binette et al. (2022), sections 2.4 and 3.1, and their example 1.

    python benchmarks/paper.py

Prints Tables 1 and 2 with the paper's figures beside ours, as Markdown, and draws Figures 3 and 4 into
docs/images. docs/paper.md says what they show. It takes about 4 minutes on one core.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import populations as sim
from common import table as markdown
from figures import stamp

from erbayes import Sample, datasets, plots
from erbayes import metrics as m
from erbayes._internal.arrays import Seed
from erbayes.engine import Naive, taylor
from erbayes.labels import Records
from erbayes.metrics import Estimates
from erbayes.study import Study, study

IMAGES = Path(__file__).parents[1] / "docs" / "images"
RATES, SIZES = (0.05, 0.10, 0.20), (100, 200, 400)
FEW, MANY, COPIES = 100, 5000, 20


@dataclass(frozen=True, slots=True)
class Printed:
    """The paper's formulas, in which each draw counts and no estimate is cut to what labels settle.

    `precision`: takes the place of P_block.
    """

    batched: ClassVar[bool] = True
    precision: m.Metric = m.P_block

    def __call__(self, sample: Sample, metrics: Sequence[m.Metric], rng: Seed = None) -> Estimates:
        theirs = [self.precision if metric is m.P_block else metric for metric in metrics]
        return taylor(_count_each(sample), theirs).apply(theirs)


def _count_each(sample: Sample) -> Sample:
    """Return the same sample, each draw of which counts, as in the paper."""
    return Sample(sample.units, sample.design, sample.expansion.count_each())


ESTIMATORS = {"cluster_block": Printed(), "naive": Naive(), "record": Printed(m.P_rec)}
METRICS = {"P": m.P_block, "R": m.R_block}
PRINTED = {
    "P": {
        "bias": {
            "cluster_block": (-0.004, -0.002, -0.001, -0.002, -0.001, 0.001, -0.004, -0.001, -0.000),
            "naive": (0.099, 0.099, 0.099, 0.195, 0.195, 0.195, 0.366, 0.366, 0.365),
            "record": (-0.002, 0.013, 0.009, -0.001, 0.011, 0.008, -0.001, 0.009, 0.006),
        },
        "rmse": {
            "cluster_block": (0.045, 0.033, 0.021, 0.041, 0.038, 0.026, 0.063, 0.052, 0.034),
            "naive": (0.099, 0.099, 0.099, 0.195, 0.195, 0.195, 0.366, 0.366, 0.365),
            "record": (0.294, 0.232, 0.169, 0.260, 0.205, 0.150, 0.207, 0.162, 0.117),
        },
    },
    "R": {
        "bias": {
            "record": (0.0002, -0.0001, -0.0002, 0.0011, -0.0002, -0.0004, 0.0005, 0.0001, -0.0002),
            "naive": (0.0007, 0.0001, 0.0004, 0.0009, -0.0015, -0.0024, -0.0008, -0.0010, -0.0017),
        },
        "rmse": {
            "record": (0.0060, 0.0037, 0.0028, 0.0089, 0.0056, 0.0039, 0.0099, 0.0071, 0.0050),
            "naive": (0.0089, 0.0056, 0.0043, 0.0123, 0.0089, 0.0075, 0.0132, 0.0109, 0.0091),
        },
    },
}
"""Tables 1 and 2 of the paper: rates 5, 10 and 20 %, and for each 100, 200 and 400 draws."""


def noisy(copies: int) -> dict[str, sim.Population]:
    """Noise of each rate in entities of the sizes of PatentsView's release, each size `copies` times."""
    sizes = np.tile(datasets.patentsview_release("20211230").value_counts(), copies)
    truth = pd.Series(np.repeat(np.arange(len(sizes)), sizes))
    rng = np.random.default_rng(1)
    return {
        f"{100 * rate:g} %": sim.Population(
            pd.Series(sim.Misattribution(rate).apply(truth.to_numpy(), rng), truth.index), truth
        )
        for rate in RATES
    }


def run(populations: dict[str, sim.Population], sizes: Sequence[int]) -> Study:
    return study(
        populations,
        {"uniform records": Records()},
        sizes,
        ESTIMATORS,
        tuple(METRICS.values()),
        repetitions=MANY,
        seed=1,
    )


def shown(letter: str, figure: str, tables: dict[str, pd.DataFrame]) -> str:
    """Return one figure of each estimator in every cell, the paper's and ours, as Markdown."""
    cells = [f"{100 * rate:g} %, {n}" if n == SIZES[0] else str(n) for rate in RATES for n in SIZES]
    lines = []
    for estimator, printed in PRINTED[letter][figure].items():
        rows = {"paper": printed}
        for name, table in tables.items():
            own = (table.estimator == estimator) & (table.metric == METRICS[letter].name)
            rows[name] = tuple(table[figure][own])
        for i, (name, values) in enumerate(rows.items()):
            figures = [f"{x:.{3 if letter == 'P' else 4}f}".replace("0.", ".", 1) for x in values]
            lines.append(["" if i else f"{letter}_{estimator}", name, *figures])
    return markdown([figure, "", *cells], lines)


def draw(found: Study, file: str, metric: m.Metric, estimators: Sequence[str]) -> None:
    """Return a panel for each rate, as in the paper."""
    from matplotlib import pyplot

    runs = found.runs[found.runs.estimator.isin(estimators)]
    figure, panels = pyplot.subplots(1, len(RATES), figsize=(10, 3), sharey=True, layout="constrained")
    for panel, (name, own) in zip(panels, runs.groupby("population", sort=False), strict=True):
        plots.draw_estimates(Study(own, found.level), metric.name, panel)
        figure.supxlabel(panel.get_xlabel(), fontsize="medium")
        panel.set_xlabel(f"rate {name}")
        if panel is not panels[1]:
            panel.get_legend().remove()
    figure.savefig(IMAGES / file, dpi=80)


def example_1() -> str:
    data = datasets.rldata10000_example1()
    runs = run({"example 1": sim.Population(data.pred, data.true)}, [200]).runs
    of = runs[runs.metric == m.P_block.name].pivot(index="repetition", columns="estimator", values="estimate")
    figures = pd.DataFrame(
        {
            "mean": of.mean(),
            "bias": of.mean() - 833 / 1600,
            "rmse": np.sqrt(((of - 833 / 1600) ** 2).mean()),
            "least": of.min(),
            "exactly 1": (of == 1).mean(),
        }
    )
    return figures.to_string(float_format="{:.4f}".format)


def main() -> None:
    print(f"Example 1, {MANY:,} samples\n\n{example_1()}\n")
    release, larger = noisy(1), noisy(COPIES)
    for populations in (release, larger):
        for rate, people in populations.items():
            print(f"{rate}: {people}, P = {people.value(m.P_block):.4f}, R = {people.value(m.R_block):.4f}")
    found = run(release, SIZES)
    tables = {
        f"{FEW} times": Study(found.runs[found.runs.repetition < FEW], found.level).table(),
        f"{MANY:,} times": found.table(),
        f"{MANY:,} times, {COPIES} copies": run(larger, SIZES).table(),
    }
    for letter in METRICS:
        for figure in ("bias", "rmse"):
            print(f"\n{shown(letter, figure, tables)}")
    draw(found, "paper-precision.png", m.P_block, ("cluster_block", "naive", "record"))
    draw(found, "paper-recall.png", m.R_block, ("naive", "record"))
    stamp("paper", "seed 1")


if __name__ == "__main__":
    main()
