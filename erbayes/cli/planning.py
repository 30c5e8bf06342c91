"""The command `erbayes plan`: how many units to label, from a pilot."""

from __future__ import annotations

from collections.abc import Mapping

import erbayes as eb

from .._internal.errors import DataError
from .analyses import MetricOptions
from .drawing import DesignName, PlanName
from .inputs import One
from .lazily import pd, plans, unseen
from .options import command, message, option, say, saying_alarms
from .printing import Answer, Printing, blank_missing, count_read

type Planned = eb.design.UniformRecords | eb.design.UniformClusters | eb.design.ByPredictedSize


@command("plan")
def plan_command(
    *,
    inputs: One,
    asked: MetricOptions,
    half_width: float | None = option("Half the width that the interval should have: 0.03."),
    per_unit: float = option("Cost of labelling a unit, whatever its size.", default=0.0),
    per_record: float = option("Cost of each record of a unit, beside that.", default=1.0),
    printing: Printing,
) -> None:
    """Plan how many units to label, from a pilot.

    LABELS is the pilot, drawn by --design. The plan is for records by the default of erbayes draw, and for
    uniform draws of records and of units, all with replacement; of a folder of predicted-links, for its own
    design too. n is a number of draws that is enough with probability .8, since a pilot leaves it uncertain;
    n_low and n_high bound the likely number. The cost is the expected one. A unit that is drawn twice is
    labelled once.

    \b
    Examples: a unit takes four minutes, each of its records half a minute more
      erbayes plan clusters.csv pilot.csv -d uniform-records --half-width 0.03 \\
          --per-unit 4 --per-record 0.5
    """
    metrics = asked.chosen_metrics()
    if half_width is None:
        raise DataError("a plan needs --half-width, half the width that the interval should have")
    pilot, read = inputs.sample()
    designs = _list_designs(inputs, pilot)
    alarms = [*inputs.cautions, *map(say, eb.alarms(pilot, metrics))]
    with saying_alarms() as said:
        plan = eb.analysis.planning.forecast(
            pilot, metrics, designs, kind=asked.kind, cost=lambda size: per_unit + per_record * size
        )
    alarms += said
    table = plan.table(half_width, inputs.level)
    _note_unreached(pilot, designs, table)
    if not per_unit and per_record == 1:
        message("note: cost counts records to label; --per-unit and --per-record say what they cost")
    about = count_read(pilot, text=read)
    printing.show(Answer(table=blank_missing(table), alarms=alarms, read=about))


def _list_designs(inputs: One, pilot: eb.Sample) -> dict[str, Planned]:
    """Return the designs to plan for, by name: the default of draw, uniform ones, and that of a folder."""
    designs: dict[str, Planned] = {}
    known = pilot.units.known
    if known is not None and known.singletons and pilot.units.by_entity:
        column = plans.Multipurpose().column(known)
        designs[PlanName.MULTIPURPOSE.value] = eb.design.ByPredictedSize(column)
    designs[DesignName.UNIFORM_RECORDS.value] = eb.design.UniformRecords()
    designs[DesignName.UNIFORM_CLUSTERS.value] = eb.design.UniformClusters()
    if inputs.returned is not None:
        design = pilot.design.design if isinstance(pilot.design, eb.design.Responding) else pilot.design
        name = str(plans.to_plain(inputs.returned.folder.drawn.plan)["name"])
        if isinstance(design, eb.design.ByPredictedSize):
            designs[name] = design
        elif not isinstance(design, eb.design.UniformRecords | eb.design.UniformClusters):
            message(f"note: the plan is for uniform draws, and not for those of {inputs.labels}, {name}")
    return designs


def _note_unreached(pilot: eb.Sample, designs: Mapping[str, Planned], table: pd.DataFrame) -> None:
    """Say which planned designs are expected to leave out large clusters with many links."""
    known = pilot.units.known
    if known is None or not known.singletons:
        return
    # the chance of a predicted cluster at one draw of a uniform design, up to a factor
    chances = {
        eb.design.UniformRecords: eb.columns.RECORDS,
        eb.design.UniformClusters: eb.columns.PREDICTED_CLUSTERS,
    }
    for name, design in designs.items():
        numbers = table.loc[table["design"] == name, "n"].dropna()
        if numbers.empty:  # no number of draws reaches the half width of any metric
            continue
        n = int(numbers.max())
        chance = (
            design.probability if isinstance(design, eb.design.ByPredictedSize) else chances[type(design)]
        )
        if (share := eb.design.records.expect_unreached_links(known, chance, n)) > unseen.NOTABLE:
            message(
                f"note: {name}: {n:,} draws are expected to leave {share:.0%} of the predicted links in "
                "clusters larger than any that they reach, so that they do not tell recall of large entities"
            )
