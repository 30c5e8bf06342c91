"""Coverage and length of intervals by population, as the picture that docs/heavy-tails.md opens with.

    python benchmarks/heavy_tails_picture.py [--run] [--samples 40]

95 % intervals of pairwise precision and recall from 100 draws of records and of entities: on the twelve
populations on which the average was judged (`SET_ASIDE` of averages.py), and on the eight whose predicted
sizes have a heap (`HEAPS` of heaps.py, before any look at a cluster). All were written down before any fit.
Intervals are those of the closed form, of `engine="size model"` and of the posterior alone, by
one fit per sample. --run writes heavy-tails-picture.csv anew, from which the picture is drawn.
"""

import argparse
import warnings
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import populations as sim
from averages import people
from common import PLANS, PR, decimals
from heaps import HEAPS
from heaps import SEED as OF_HEAPS

from erbayes.bayes import compiled, fast
from erbayes.engine.closed_form import ClosedForm
from erbayes.study import draw_samples

FILE = Path(__file__).with_name("heavy-tails-picture.csv")
PICTURE = Path(__file__).parents[1] / "docs" / "images" / "coverage-by-population.png"
SEED = 6100


def populations() -> Iterator[tuple[str, str, sim.Population]]:
    """Yield group, name and population."""
    for name, world in people(set_aside=True).items():
        yield "set aside", name, world
    for name, of_seed in HEAPS.items():
        yield "heap", name, of_seed(OF_HEAPS)


def run(samples: int) -> pd.DataFrame:
    """Return mean coverage, width and interval score, one row per population, design, metric and kind."""
    rows = []
    for (group, name, world), (plan, drawing) in product(populations(), PLANS.items()):
        rng = np.random.default_rng([SEED, *map(ord, f"{name}{plan}")])
        for i, sample in enumerate(draw_samples(drawing, world.units, 100, samples, rng).separate):
            with warnings.catch_warnings(), compiled():
                warnings.simplefilter("ignore")
                fit = fast(sample, draws=1000, rng=i)
                results = {
                    "closed form": ClosedForm()(sample, PR),
                    "size model": fit.estimate(PR),
                    "posterior": replace(fit, capped=None).apply(PR),
                }
            for kind, result in results.items():
                for metric, (lower, upper) in zip(PR, result.interval(), strict=True):
                    miss = max(lower - world.value(metric), world.value(metric) - upper, 0.0)
                    row = (group, name, plan, metric.name, world.value(metric), kind)
                    rows.append((*row, float(miss == 0), upper - lower, upper - lower + 40 * miss))
        print(name, plan, flush=True)
    keys = ["group", "population", "plan", "metric", "truth", "kind"]
    runs = pd.DataFrame(rows, columns=[*keys, "coverage", "width", "score"])
    return runs.groupby(keys, sort=False).mean().assign(samples=samples).reset_index()


KINDS = {"closed form": "default", "size model": "size model", "posterior": "posterior"}
"""Intervals that are drawn, with their names on the page."""


def draw(table: pd.DataFrame) -> Any:
    """Draw coverage above and mean length below, a dot for each population, by design, metric and kind."""
    from matplotlib import pyplot
    from matplotlib.lines import Line2D

    figure = pyplot.figure(figsize=(9.6, 5.0), layout="constrained")
    halves: Any = figure.subfigures(2, 1, height_ratios=[1.18, 1])
    labels = {
        "coverage": "share of the 95 % intervals that cover the truth",
        "width": "mean length of these intervals",
    }
    for half, (column, label) in zip(halves, labels.items(), strict=True):
        panels = half.subplots(1, len(PLANS) * len(PR), sharex=True, sharey=True)
        for panel, (plan, metric) in zip(panels, product(PLANS, PR), strict=True):
            here = table[(table["plan"] == plan) & (table["metric"] == metric.name)]
            for row, kind in enumerate(KINDS):
                draw_row(panel, row, here[here["kind"] == kind], column)
            panel.set_yticks(range(len(KINDS)), list(KINDS.values()))
            panel.set(xlim=(-0.03, 1.03), ylim=(len(KINDS) - 0.5, -0.5))
            panel.set_xticks([0, 0.5, 1], ["0", ".5", "1"])
            if column == "coverage":
                panel.set_title(f"{NAMES[plan]},\n{metric.name.removeprefix('pairwise-')}", fontsize=10)
                panel.axvline(0.95, color="black", linestyle="--", linewidth=1, zorder=0)
        half.supxlabel(label, fontsize=10)
    dots = [Line2D([], [], color="black", linestyle="", **style) for style in DOTS.values()]
    halves[0].legend(dots, list(DOTS), loc="outside upper center", ncols=2, frameon=False, fontsize=9)
    return figure


NAMES = {"uniform records": "100 records", "uniform clusters": "100 entities"}
DOTS: dict[str, dict[str, Any]] = {
    "a population": {"marker": "o", "markersize": 4, "alpha": 0.6},
    "one whose predicted sizes have a heap": {"marker": "o", "markersize": 5, "markerfacecolor": "white"},
}


def draw_row(panel: Any, row: int, table: pd.DataFrame, column: str) -> None:
    """Draw a dot for each population, and the mean and the least of those without a heap."""
    y = row + 0.08 + 0.5 * (np.arange(len(table)) / max(len(table) - 1, 1) - 0.5)
    heap, x = (table["group"] == "heap").to_numpy(), table[column].to_numpy()
    for of, style in zip((~heap, heap), DOTS.values(), strict=True):
        panel.plot(x[of], y[of], color="black", linestyle="", **style)
    panel.plot([x[~heap].mean()], [row + 0.08], "|", color="black", markersize=20, markeredgewidth=2)
    extreme = f"least {decimals(x[~heap].min(), 2)}" if column == "coverage" else ""
    said = f"mean {decimals(x[~heap].mean(), 2)}{', ' if extreme else ''}{extreme}"
    panel.text(0, row - 0.36, said, fontsize=7, va="center")


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description="Coverage and length of intervals by population.")
    asked.add_argument("--run", action="store_true", help="simulate anew, and write the file of figures")
    asked.add_argument("--samples", type=int, default=40, help="samples per population and design")
    args = asked.parse_args()
    if args.run:
        run(args.samples).to_csv(FILE, index=False, float_format="%.4f")
    draw(pd.read_csv(FILE)).savefig(PICTURE, dpi=110)
