"""Draw the pictures of "What an interval allows for": `python docs/allowances.py`.

Each picture is one sample of a population whose truth is known, with the interval as it is, and without one
allowance. The page quotes the numbers in the text of each picture, and `tests/test_pages.py` compares them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import erbayes as eb
from erbayes.labels import Annotator
from erbayes.study import populations as simulate

HERE = Path(__file__).parent
Rows = dict[str, tuple[float, float, float]]
"""Of each row its estimate and both ends, by its name; "truth" has three equal numbers."""


def row(found: Any, kind: Any = None) -> tuple[float, float, float]:
    """The first estimate of a result with its interval."""
    low, high = found.interval(0.95, kind)[0]
    return float(found.estimate[0]), float(low), float(high)


def without(found: Any, **zero: Any) -> Any:
    """The same estimates with other values of what no draw has shown."""
    return replace(found, unseen=replace(found.unseen, **zero))


def point(truth: float) -> tuple[float, float, float]:
    return truth, truth, truth


def drawn(world: Any, n: int, seed: int, metric: str = "pairwise-precision") -> Any:
    """Estimates of a metric from n uniform records."""
    entities = world.true.sample(n, replace=True, random_state=seed)
    labels = world.true[world.true.isin(entities)]
    return eb.estimate(world.pred, labels, eb.UniformRecords(entities), metric)


def true_value(world: Any, metric: str = "pairwise-precision") -> float:
    census = eb.UniformClusters(population=world.true.nunique())
    return float(eb.estimate(world.pred, world.true, census, metric).estimate[0])


def world_of(errors: Any, sizes: Any = None, records: int = 20_000, seed: int = 1) -> Any:
    return simulate.simulate(sizes or simulate.LogNormal(0.7, 0.9), errors, records, seed)


def sampling() -> Rows:
    world = world_of(simulate.Misattribution(0.1))
    return {f"{n} draws": row(drawn(world, n, 5)) for n in (50, 200, 800)} | {
        "truth": point(true_value(world))
    }


def unseen() -> Rows:
    world = world_of(simulate.Merges(0.003))
    found = drawn(world, 100, 2)
    return {
        "without": row(found, eb.intervals.WALD),
        "with": row(found),
        "truth": point(true_value(world)),
    }


def skewness() -> Rows:
    world = world_of(simulate.Misattribution(0.1), simulate.Zeta(2.1, largest=1000))
    found = drawn(world, 50, 1)
    return {
        "without": row(without(found, third=np.zeros_like(found.unseen.third))),
        "with": row(found),
        "truth": point(true_value(world)),
    }


def reach() -> Rows:
    world = world_of(simulate.Misattribution(0.1), simulate.Zeta(2.4, largest=800), 50_000, 4)
    persons = world.true.drop_duplicates().sample(400, random_state=4)
    units = eb.measure(world.pred, world.true[world.true.isin(persons)])
    found = eb.estimate(eb.Sample(units, eb.UniformClusters()), metrics="pairwise-precision")
    return {
        "without": row(without(found, unreached_share=np.zeros_like(found.unseen.unreached_share))),
        "with": row(found),
        "truth": point(true_value(world)),
    }


def settled() -> Rows:
    world = world_of(simulate.Misattribution(0.1), records=1000)
    found = drawn(world, 600, 2)
    nothing = np.broadcast_to([-np.inf, np.inf], found.unseen.certain.shape)
    return {
        "without": row(without(found, certain=nothing)),
        "with": row(found),
        "truth": point(true_value(world)),
    }


def moves() -> Rows:
    old = world_of(simulate.Misattribution(0.02))
    new = pd.Series(
        simulate.Splits(0.005).apply(old.pred.to_numpy(), np.random.default_rng(1)), old.pred.index
    )
    entities = old.true.sample(100, replace=True, random_state=1)
    labels = old.true[old.true.isin(entities)]
    both = {"old": old.pred, "new": new}
    recall = "pairwise-recall"
    compared = eb.compare(both, labels, eb.UniformRecords(entities), recall)
    difference = compared.subtract("old", "new")
    census = eb.UniformClusters(population=old.true.nunique())
    truth = [float(eb.estimate(x, old.true, census, recall).estimate[0]) for x in both.values()]
    return {
        "without": row(difference, eb.intervals.WALD),
        "with": row(difference),
        "truth": point(truth[1] - truth[0]),
    }


def undecided() -> Rows:
    world = world_of(simulate.Misattribution(0.1))
    draws = eb.labels.draw(world.pred, eb.labels.Records(), n=200, seed=1)
    records = draws.table["record"]
    unresolved = list(records[::10].unique())
    known = world.true[world.true.isin(world.true[records[~records.isin(unresolved)]])]
    found = eb.estimate(world.pred, known, draws.design(known, unresolved=unresolved), "pairwise-precision")
    middle, worst, best = (float(found.table()[name].iloc[0]) for name in ("estimate", "worst", "best"))
    return {
        "without": row(found),
        "with": (middle, worst, best),
        "truth": point(true_value(world)),
    }


def labels() -> Rows:
    world = world_of(simulate.Splits(0.5))
    persons = world.true.sample(200, replace=True, random_state=1)
    right, design = world.true[world.true.isin(persons)], eb.UniformRecords(persons)
    given = eb.labels.mislabel(right, world.pred, Annotator(missed=0.3), rng=1)
    answer = partial(eb.estimate, world.pred, metrics="pairwise-recall")
    annotator = Annotator(missed=eb.labels.Beta(9, 21))
    return {
        "without": row(answer(given, design)),
        "with": row(eb.with_errors(answer, given, design, world.pred, annotator, rng=1).both),
        "truth": point(true_value(world, "pairwise-recall")),
    }


PICTURES: dict[str, Callable[[], Rows]] = {
    "sampling": sampling,
    "unseen": unseen,
    "skewness": skewness,
    "reach": reach,
    "settled": settled,
    "moves": moves,
    "undecided": undecided,
    "labels": labels,
}


def draw(rows: Rows, path: Path) -> None:
    """Write a picture of intervals, a row each, with a line at the truth."""
    from matplotlib import pyplot
    from PIL import Image

    figure, ax = pyplot.subplots(figsize=(4.8, 0.75 + 0.28 * (len(rows) - 1)), layout="constrained")
    shown = {name: ends for name, ends in rows.items() if name != "truth"}
    for at, (x, low, high) in enumerate(shown.values()):
        ax.errorbar(x, at, xerr=[[x - low], [high - x]], fmt="o", color="black", capsize=4)
    truth = rows["truth"][0]
    ax.axvline(truth, color="0.6", linewidth=1)
    ax.annotate("truth", (truth, 1), xycoords=("data", "axes fraction"), ha="center", va="bottom")
    ax.set_yticks(range(len(shown)), list(shown))
    ax.set_ylim(len(shown) - 0.5, -0.5)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
    Image.open(path).convert("L").quantize(16).save(path, optimize=True)


if __name__ == "__main__":
    import warnings

    import matplotlib

    matplotlib.use("Agg")
    warnings.simplefilter("ignore", eb.Alarm)
    for name, make in PICTURES.items():
        rows = make()
        draw(rows, HERE / "images" / f"allows-{name}.png")
        print(name, {k: tuple(round(v, 3) for v in x) for k, x in rows.items()})
