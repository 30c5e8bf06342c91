"""Two cases: a synthetic one whose truth is known, and PatentsView's disambiguation of inventors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from .. import plots
from .._internal.errors import DataError
from .._internal.files import replacing
from .._internal.policies import Missing
from ..datasets import REMEDY, patentsview_benchmark, patentsview_release, people
from ..design import UniformRecords
from ..design.sample import Sample
from ..engine import P_naive, Taylor, taylor
from ..engine.diagnostics import alarms
from ..labels.drawing.plans import Records
from ..metrics.definitions import USUAL
from ..metrics.uncertain import Normal
from ..study.harness import study
from ..study.populations import Population
from ..units.measuring import measure
from ..units.units import Units

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

REPETITIONS = 1000


def demo(picture: Path) -> None:
    """Print estimates of both cases with their alarms, and write a picture of them to a file."""
    synthetic, naive, truth = _show_synthetic()
    figure = _make_figure(picture)
    patents, naive_patents = _show_patentsview()
    left, right = figure.subplots(1, 2, sharey=True)
    _draw(left, "Synthetic persons", synthetic, naive, truth)
    _draw(right, "PatentsView inventors", patents, naive_patents)
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    with replacing(picture) as new:
        figure.savefig(new, dpi=120)
    print(f"\nwrote {picture}")


def _show_synthetic() -> tuple[Normal, float, Mapping[str, float]]:
    """Print the synthetic case, and return estimates, naive precision and the truth."""
    example = people()
    population = Population(example.prediction, example.truth)
    units = measure(example.prediction, example.labels)
    print(
        f"1. A synthetic case: the design is known, and so is the truth\n\n"
        f"{len(example.prediction):,} records in {example.prediction.nunique():,} predicted clusters. "
        f"{len(example.drawn)} records were drawn uniformly, and all\n"
        f"{len(example.labels)} records of their {len(units)} persons are labelled.\n"
    )
    sample = Sample(units, UniformRecords(example.drawn))
    estimates = taylor(sample, USUAL).apply(USUAL)
    truth = {metric.name: population.value(metric) for metric in USUAL}
    table = estimates.table()[["estimate", "se", "lower", "upper"]].assign(truth=pd.Series(truth))
    print(table.round(3).to_string())
    covered = int(table["truth"].between(table["lower"], table["upper"]).sum())
    print(f"\nThe 95 % interval holds the truth for {covered} of {len(USUAL)} metrics.")
    runs = study(
        {"people": population},
        {"records": Records()},
        [len(example.drawn)],
        {"closed form": Taylor()},
        USUAL[:1],
        repetitions=REPETITIONS,
        seed=1,
    )
    covered_samples = round(REPETITIONS * runs.table()["coverage"].iloc[0])
    print(
        "The sample was chosen to show this.\n"
        f"In {REPETITIONS:,} others, drawn in the same way, the interval of {USUAL[0].name} holds the truth "
        f"{covered_samples} times."
    )
    _print_alarms(sample)
    return estimates, _print_naive(units), truth


def _show_patentsview() -> tuple[Normal, float]:
    """Print the case of PatentsView, and return estimates and naive precision."""
    prediction, labels = patentsview_release("20211230"), patentsview_benchmark()
    units = measure(prediction, labels, missing=Missing.OMIT)
    print(
        "\n2. A real case: PatentsView, release 2021-12-30, against the labelled inventors benchmark\n\n"
        f"{len(prediction):,} mentions in {prediction.nunique():,} predicted inventors. {len(units)} "
        "labelled inventors were drawn with\nprobability proportional to size. "
        f"{units.unmatched} of {len(labels):,} labelled mentions are not in the release and left out.\n"
    )
    sample = Sample(units, UniformRecords())
    estimates = taylor(sample, USUAL).apply(USUAL)
    print(estimates.table()[["estimate", "se", "lower", "upper"]].round(3).to_string())
    _print_alarms(sample)
    print(
        "Both alarms are right: the file holds only the mentions around the labelled inventors, not the "
        "population that\nthey were drawn from. The metrics above do not use the totals of the file."
    )
    return estimates, _print_naive(units)


def _print_alarms(sample: Sample) -> None:
    """Print each alarm, or a line that there is none."""
    lines = [f"{alarm.grade.value}: {alarm}" for alarm in alarms(sample, USUAL)]
    print("\n" + "\n".join(lines) if lines else "No alarm.")


def _print_naive(units: Units) -> float:
    """Print and return the naive precision."""
    naive = P_naive(units)
    print(
        f"Precision on the labelled records alone would be {naive:.3f}: it misses false links to other "
        "records."
    )
    return naive


def _make_figure(picture: Path) -> Figure:
    """Make an empty figure that can be saved under this name, or raise DataError."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise DataError(f"the picture needs matplotlib: {REMEDY}") from error
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    kinds = figure.canvas.get_supported_filetypes()
    if picture.suffix[1:].lower() not in kinds:
        raise DataError(f"cannot write {picture}: the name of a picture ends in .{', .'.join(kinds)}")
    return figure


def _draw(
    axes: Axes, title: str, estimates: Normal, naive: float, truth: Mapping[str, float] | None = None
) -> None:
    """Draw estimates with intervals, naive precision, and the truth if it is known."""
    plots.forest(estimates, ax=axes)
    axes.lines[0].set_label("estimate and 95 % interval")
    if truth is not None:
        axes.plot(
            list(truth.values()), range(len(truth)), "D", color="black", fillstyle="none", label="truth"
        )
    axes.plot([naive], [0], "x", color="black", label="naive precision, on labelled records alone")
    axes.set_xlim(0.5, 1.02)
    axes.set_title(title, loc="left")
