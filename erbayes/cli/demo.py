"""Two cases whose truth is known: the example of the README, and engines side by side on a heavy tail."""

from __future__ import annotations

from pathlib import Path

import erbayes as eb

from .._internal.errors import import_extra
from ..engine.named import make_size_model
from ..study.populations import Chain, Merges, Population, Splits, Zeta, simulate
from .lazily import files

REPETITIONS = 1000
LINKS = eb.metrics.DEFAULT_METRICS[:2]
"""Pairwise precision and recall, in which a tail shows."""
ENGINES = ("closed form", "bootstrap", "size model")


def demo(picture: Path) -> None:
    """Print both cases, and write a picture of the engines on the second to a file."""
    _show_people()
    module = import_extra("matplotlib.figure", "the picture needs matplotlib", "bayes,plots")
    make_size_model()  # says what is missing before anything is simulated
    world, sample = _make_heavy_tail()
    engines = eb.side_by_side(sample, LINKS, engines=ENGINES, rng=1)
    truth = {metric.name: world.value(metric) for metric in LINKS}
    table = engines.table()[["method", "metric", "estimate", "sd", "lower", "upper", "kind"]]
    table = table.assign(truth=table["metric"].map(truth))
    entities = world.true.nunique()
    print(f"\n2. Engines side by side, where a few of {entities:,} simulated entities hold most links\n")
    for alarm in eb.alarms(sample, LINKS, table):
        print(f"{alarm.grade.value}: {alarm}\n")
    print(table.round(3).to_string(index=False))
    covered = table["truth"].between(table["lower"], table["upper"]).sum()
    print(f"\n{covered} of {len(table)} intervals cover the truth. docs/heavy-tails.md goes on.")
    figure = module.Figure((7, 3.2), layout="constrained")
    axes = eb.plots.draw_side_by_side(engines, ax=figure.subplots())
    heads = [place * (len(ENGINES) + 1) for place in range(len(LINKS))]
    ends = ([head + 0.5 for head in heads], [head + len(ENGINES) + 0.5 for head in heads])
    axes.vlines([*truth.values()], *ends, color="0.5", zorder=0, label="truth")
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), frameon=False)
    with files.replacing(picture) as new:
        figure.savefig(new, dpi=120)
    print(f"\nwrote {picture}")


def _show_people() -> None:
    """Print the case of the README with its truth, and how many other samples cover it."""
    example, metrics = eb.datasets.people(), eb.metrics.DEFAULT_METRICS
    population = Population(example.prediction, example.truth)
    sample = eb.Sample(eb.measure(example.prediction, example.labels), eb.UniformRecords(example.drawn))
    table = eb.estimate(sample).table()[["estimate", "se", "lower", "upper"]]
    table = table.assign(truth=[population.value(metric) for metric in metrics])
    covered = table["truth"].between(table["lower"], table["upper"]).sum()
    runs = eb.study.study(
        {"people": population},
        {"records": eb.labels.Records()},
        [len(example.drawn)],
        {"closed form": "closed form"},
        LINKS[:1],
        repetitions=REPETITIONS,
        seed=1,
    )
    covering = round(REPETITIONS * runs.table()["coverage"].iloc[0])
    alone = eb.engine.P_naive(sample.units)
    print(
        f"1. The example of the README\n\n{table.round(3).to_string()}\n\n"
        f"The 95 % interval covers the truth for {covered} of {len(metrics)} metrics. The sample was chosen\n"
        f"to show this: in {REPETITIONS:,} others, that of {LINKS[0].name} covers it {covering} times.\n"
        f"On the labelled records alone, precision would be {alone:.3f}, as it misses false links\n"
        "to all other records."
    )


def _make_heavy_tail() -> tuple[Population, eb.Sample]:
    """Simulate the population and the sample of the page on heavy tails."""
    world = simulate(Zeta(2.3, largest=400), Chain([Splits(0.3), Merges(0.03)]), 50_000, 1)
    persons = world.true.drop_duplicates().sample(100, random_state=3)
    labels = world.true[world.true.isin(persons)]
    return world, eb.Sample(eb.measure(world.pred, labels), eb.UniformClusters())
