"""The commands that decide by a sample: how many units to label, is it good enough, how wrong is a number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import typer

import erbayes as eb

from .._internal.errors import DataError
from .analyses import OWN, AnnotatorErrors, IntervalOption, MetricOptions, Minima, Numbers
from .inputs import One
from .lazily import pd, plans, stopping, unseen
from .options import command, file_option, flag, message, option, say, saying_alarms
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
    printing.show(Answer(table=blank_missing(table), alarms=alarms, read=count_read(pilot, text=read)))


def _list_designs(inputs: One, pilot: eb.Sample) -> dict[str, Planned]:
    """Return the designs to plan for, by name: the default of draw, uniform ones, and that of a folder."""
    designs: dict[str, Planned] = {}
    known = pilot.units.known
    if not (every := pilot.expansion.reaches(eb.columns.RECORDS)):
        message("note: the plan is for further draws of the same kind, since these never reach some records")
    if every and known is not None and known.singletons and pilot.units.by_entity:
        designs["multipurpose"] = eb.design.ByPredictedSize(plans.Multipurpose().column(known))
    if every:
        designs["uniform-records"] = eb.design.UniformRecords()
        designs["uniform-clusters"] = eb.design.UniformClusters()
    if inputs.returned is not None:
        design = pilot.design.design if isinstance(pilot.design, eb.design.Responding) else pilot.design
        name = str(plans.to_plain(inputs.returned.folder.drawn.plan)["name"])
        if isinstance(design, eb.design.ByPredictedSize):
            designs[name] = design
        elif every and not isinstance(design, eb.design.UniformRecords | eb.design.UniformClusters):
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
        # no number of draws reaches the half width of any metric
        numbers = table.loc[table["design"] == name, "n"].dropna()
        if numbers.empty:
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


@command("check")
def check_command(
    *,
    inputs: One,
    minima: Minima,
    once: bool = flag("The labels are looked at only once, and their number was fixed before."),
    errors: AnnotatorErrors,
    printing: Printing,
) -> None:
    """Check whether metrics of PREDICTION reach their minimum.

    A metric holds if its interval is at or above the minimum, fails if it is below, and is open otherwise,
    with the approximate number of further draws that would decide. The intervals of all metrics cover jointly
    at LEVEL: each of k metrics has the level 1 - (1 - LEVEL)/k. A metric that counts links is open while over
    a tenth of all predicted links are in clusters larger than any that a draw touches, as are all that do not
    fail while an alarm is a fault. The reason is printed.

    You may check after every new label and stop at any time, unless --once is there. Exact bets need draws in
    --drawn, in the order of drawing. Files and designs are those of erbayes estimate.

    Exit status: 0 if every metric holds, 1 if one fails, 3 if none fails and one is open, 2 if the input
    cannot be used.

    \b
    Examples:
      erbayes check to-label --min-precision 0.95 --min-recall 0.8
      erbayes check to-label --once --min b3-recall=0.9
    """
    minimum = minima.read()
    sample, read = inputs.sample()
    rule = replace(eb.labels.ONCE if once else eb.labels.REPEATED, level=inputs.level)
    check = eb.labels.check(sample, minimum, rule)
    if errors.annotator_errors is not None:
        found = errors.run_one(inputs, sample, lambda one, _: eb.labels.check(one, minimum, rule))
        message(f"note: verdicts allow for errors of labels: annotators {found.describe_rates()}")
        check = found.both
    alarms, about = [*inputs.cautions, *map(say, check.alarms)], count_read(sample, text=read)
    table = check.table().reset_index()
    printing.show_sentences(Answer(table=table, sentences=check.sentences(), alarms=alarms, read=about))
    raise typer.Exit(stopping.STATUS[check.verdict])


@command("impact")
def impact_command(
    *,
    inputs: One,
    numbers: Numbers,
    attributes: Path | None = file_option(
        "Table of all records: ids in the column of --record, or the first.", panel=OWN
    ),
    by: str | None = option("Column of --attributes: results are by its values.", panel=OWN),
    errors: AnnotatorErrors,
    asked: IntervalOption,
    printing: Printing,
) -> None:
    """Say how wrong a number of yours is that was computed from the clusters of PREDICTION.

    How many customers are there really? How many with ten orders or more, what is the Gini, what are the
    top 100 worth? Each --statistic is computed from the clusters, and estimated for the true entities from
    LABELS. The prediction itself helps, since its number is known. Files and designs are those of erbayes
    estimate.

    \b
    predicted         the number as computed from the clusters
    estimate          the number of the true entities: lower to upper
    difference        how far the clusters are off: least to most
    equivalent_labels further labels that would shorten the interval as much

    Names in a top ten, maxima and statistics of ties between entities are refused, as are attributes that the
    matcher wrote itself and numbers that depend on fewer than ten effective draws.

    \b
    Examples:
      erbayes impact clusters.csv labels.csv -d uniform-records --drawn drawn.csv
      erbayes impact to-label --attributes orders.csv \\
          --feature span=year:range --feature sales=amount:sum \\
          --statistic 'mean(span)' --statistic 'top(100, sales)'
      erbayes impact clusters.csv to-label --attributes orders.csv --by country
    """
    sample, read = inputs.sample()
    alarms = [*inputs.cautions, *map(say, eb.alarms(sample, [eb.metrics.entities]))]
    estimated = numbers.estimate(inputs, sample, attributes, by, errors)
    at = (inputs.level, asked.kind)
    if errors.annotator_errors is None:
        plain, table, sentences = estimated, estimated.table(*at).reset_index(), estimated.sentences(*at)
    else:
        plain, table, sentences = estimated.random, estimated.table(*at), [estimated.sentence(*at)]
    alarms += [say(note) for note in plain.notes if note not in alarms]
    sentences = [sentence for sentence in sentences if sentence not in alarms]
    printing.show(Answer(table=table, sentences=sentences, alarms=alarms, read=count_read(sample, text=read)))
