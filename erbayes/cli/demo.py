"""Two cases whose truth is known: the example of the README, and engines side by side on a heavy tail."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

import erbayes as eb

from .._internal.errors import import_extra
from ..engine.named import make_size_model
from ..study.populations import Chain, Merges, Population, Splits, Zeta, simulate
from .lazily import files

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

REPETITIONS = 1000
LINKS = eb.metrics.DEFAULT_METRICS[:2]
"""Pairwise precision and recall, in which a tail shows."""
ENGINES = ("closed form", "bootstrap", "size model", "pool")
SEED = 1


def demo(picture: Path) -> None:
    """Print both cases, and write a picture of the engines on the second to a file."""
    _show_people()
    figure = _make_figure(picture)
    make_size_model()  # says what is missing before anything is simulated
    world, sample = _make_heavy_tail()
    engines = _show_heavy_tail(world, sample)
    axes = eb.plots.draw_side_by_side(engines, ax=figure.subplots())
    _mark_truth(axes, engines, {metric.name: world.value(metric) for metric in LINKS})
    with files.replacing(picture) as new:
        figure.savefig(new, dpi=120)
    print(f"\nwrote {picture}")


def _show_people() -> None:
    """Print the case of the README with its truth, and how many other samples cover it."""
    example, metrics = eb.datasets.people(), eb.metrics.DEFAULT_METRICS
    population = Population(example.prediction, example.truth)
    units = eb.measure(example.prediction, example.labels)
    print(
        f"1. The example of the README\n\n"
        f"{len(example.prediction):,} records in {example.prediction.nunique():,} predicted clusters. "
        f"{len(example.drawn)} records were drawn uniformly, and all\n"
        f"{len(example.labels)} records of their {len(units)} persons are labelled.\n"
    )
    sample = eb.Sample(units, eb.UniformRecords(example.drawn))
    truth = {metric.name: population.value(metric) for metric in metrics}
    table = eb.engine.taylor(sample, metrics).apply(metrics).table()[["estimate", "se", "lower", "upper"]]
    table = table.assign(truth=pd.Series(truth))
    print(table.round(3).to_string())
    covered = int(table["truth"].between(table["lower"], table["upper"]).sum())
    runs = eb.study.study(
        {"people": population},
        {"records": eb.labels.Records()},
        [len(example.drawn)],
        {"closed form": eb.engine.Taylor()},
        metrics[:1],
        repetitions=REPETITIONS,
        seed=1,
    )
    covering = round(REPETITIONS * runs.table()["coverage"].iloc[0])
    alone = eb.engine.P_naive(units)
    print(
        f"\nThe 95 % interval covers the truth for {covered} of {len(metrics)} metrics. "
        "The sample was chosen to show this: in\n"
        f"{REPETITIONS:,} others, drawn in the same way, the interval of {metrics[0].name} covers it "
        f"{covering} times.\n"
        f"Precision on the labelled records alone would be {alone:.3f}, because it misses false "
        "links to all other\nrecords."
    )


def _make_heavy_tail() -> tuple[Population, eb.Sample]:
    """Simulate the population and the sample of the page on heavy tails."""
    errors = Chain([Splits(0.3), Merges(0.03)])
    world = simulate(Zeta(2.3, largest=400), errors, 50_000, 1)
    persons = world.true.drop_duplicates().sample(100, random_state=3)
    labels = world.true[world.true.isin(persons)]
    return world, eb.Sample(eb.measure(world.pred, labels), eb.UniformClusters())


def _show_heavy_tail(world: Population, sample: eb.Sample) -> Any:
    """Print the engines side by side with ArviZ's summary of the model, and return the engines."""
    sizes, drawn = world.true.value_counts(), sample.units.table()["records"]
    links = (sizes * (sizes - 1) / 2).cumsum()
    half = int((links < links.iloc[-1] / 2).sum()) + 1
    print(
        f"\n2. Engines side by side, where a few entities hold most links\n\n"
        f"{len(sizes):,} simulated entities have {len(world.true):,} records, and the {half} largest hold "
        f"half of the true links.\n{len(sample.units)} entities were drawn uniformly. The largest of them "
        f"has {drawn.max():.0f} records, and the largest of all {sizes.iloc[0]}.\n"
    )
    engines = eb.side_by_side(sample, LINKS, engines=ENGINES, rng=SEED)
    for alarm in eb.alarms(sample, LINKS, engines.table()):
        print(f"{alarm.grade.value}: {alarm}\n")
    table = engines.table()[["method", "metric", "estimate", "sd", "lower", "upper", "kind"]]
    truth = table["metric"].map({metric.name: world.value(metric) for metric in LINKS})
    print(f'>>> eb.side_by_side(sample, ["precision", "recall"], engines={[*ENGINES]}, rng={SEED})')
    print(table.assign(truth=truth).round(3).to_string(index=False))
    missed = table[(truth < table["lower"]) | (truth > table["upper"])]
    print(
        f"\n{len(table) - len(missed)} of {len(table)} intervals cover the truth"
        + "".join(f"; that of {row.metric} by the {row.method} misses it" for row in missed.itertuples())
        + ".\nAn sd is the error that these draws show. They meet no large cluster, so that next to nothing "
        "varies.\nIntervals also allow for what no draw has shown, which may be nearly anything. The size "
        "model fills the\ngap by its priors, and the pool, which is to be quoted, lies in between.\n"
    )
    _show_records(world)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", eb.Alarm)  # printed above
        model = eb.estimate(sample, metrics=LINKS, engine="size model", rng=SEED)
    assert isinstance(model, eb.metrics.uncertain.Draws)
    summary = import_module("arviz").summary(model.tree, ci_prob=0.95)
    print(
        f'>>> found = eb.estimate(sample, metrics=["precision", "recall"], engine="size model", rng={SEED})\n'
        f">>> az.summary(found.tree, ci_prob=0.95)\n{summary}"
    )
    return engines


def _show_records(world: Population) -> None:
    """Print what the closed form says of other samples, of entities and of as many records."""
    runs = eb.study.study(
        {"heavy tail": world},
        {"100 entities": eb.study.UniformEntities(), "100 records": eb.labels.Records()},
        [100],
        {"closed form": "closed form"},
        LINKS,
        repetitions=REPETITIONS,
        seed=SEED,
    )
    table = runs.table()[["plan", "metric", "coverage", "width", "interval_score"]]
    print(
        f"What helps is another draw. {REPETITIONS:,} samples of each kind, and the closed form alone:\n"
        f"{table.round(3).to_string(index=False)}\n"
        "\nRecords meet large entities as often as these have records. docs/heavy-tails.md has coverage and "
        "score\nof all engines over many populations.\n"
    )


def _mark_truth(axes: Axes, engines: Any, truth: Mapping[str, float]) -> None:
    """Draw the truth of each metric through the rows of its engines."""
    methods = engines.table().groupby("metric", sort=False).size()
    heads = dict(zip(methods.index, (methods + 1).cumsum() - methods - 1, strict=True))
    for name, value in truth.items():
        lines = axes.vlines(
            value, heads[name] + 0.5, heads[name] + methods[name] + 0.5, color="0.5", zorder=0
        )
    lines.set_label("truth")
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), frameon=False)


def _make_figure(picture: Path) -> Figure:
    """Make an empty figure that can be saved under this name, or raise DataError."""
    module = import_extra("matplotlib.figure", "the picture needs matplotlib", "bayes,plots")
    figure: Figure = module.Figure(figsize=(7, 3.2), layout="constrained")
    return figure
