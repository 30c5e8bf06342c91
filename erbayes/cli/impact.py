"""The command on a user's own numbers: what the errors of a matcher do to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import erbayes as eb

from .._internal.errors import DataError
from .analyses import AnnotatorErrors
from .inputs import One
from .lazily import features, files, frames, impacts, large_files, large_sums, pd
from .options import command, file_option, message, option, panel, say
from .printing import Answer, Printing, count_read
from .remembered import read_attributes

OWN = "Your own numbers"
"""The panel of the options of this command."""


@panel(OWN)
class Numbers:
    """Options of the numbers to estimate."""

    statistic: list[str] | None = option(
        "count, share(size>=5), total(x), mean(x), ratio(x, y), quantile_share(0.5, x), top(100), "
        "top(0.01) or gini(x). Several are allowed. By default: count."
    )
    feature: list[str] | None = option(
        "A feature of entities, such as span=year:range. HOW is sum, mean, min, max, range or distinct, or "
        "known-sum and so on if values are missing. Several are allowed.",
        metavar="NAME=COLUMN:HOW",
    )

    @property
    def given(self) -> bool:
        """True if the options ask for a number."""
        return self.statistic is not None or self.feature is not None

    def estimate(
        self,
        inputs: One,
        sample: eb.Sample,
        attributes: Path | None,
        by: str | None = None,
        errors: AnnotatorErrors | None = None,
    ) -> Any:
        """Estimate the numbers from the sample of the input, with errors of labels if `errors` are given."""
        statistics = eb.statistics.statistics_of(self.statistic or ["count"])
        parsed = [features.Feature.parse(text) for text in self.feature or []]
        reading = inputs.reading
        if inputs.scanned:
            if inputs.of_clusters or inputs.frame is not None:
                raise DataError("a prediction that is scanned takes neither a frame nor drawn clusters here")
            units: Any = sample.units
            fitted, values, featured = large_sums.scan_features(
                reading.source(inputs.part),
                units,
                inputs.labelled()[0]["labels"],
                statistics,
                attributes=None if attributes is None else large_files.Files(attributes, text=True),
                features=parsed,
                by=by,
                database=reading.database,
            )
            return impacts.estimate_impact(sample, impacts.FittedStatistics(fitted, values), featured)
        table: Any = None
        if attributes is not None:
            known = inputs.memory[0].records
            table = files.key_by_source(read_attributes(attributes, reading.record, known=known), known)
            message(f"read {len(table):,} rows of {attributes}, with records in {table.columns[0]}")
        prediction, shared, _ = inputs.memory
        prediction, _ = frames.framed(prediction, shared["labels"], shared["frame"])
        named = {feature.name: (feature.column, feature.how) for feature in parsed}

        def answer(one: eb.Sample, labels: Any) -> impacts.Impact:
            return impacts.impact_of(
                one, prediction, labels, statistics, attributes=table, features=named, by=by
            )

        if errors is None or errors.option is None:
            return answer(sample, shared["labels"])
        return errors.run_one(inputs, sample, answer)


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
    table: pd.DataFrame = estimated.table(level=inputs.level)
    plain = estimated.random if errors.option is not None else estimated
    about = count_read(sample, text=read)
    alarms = [*dict.fromkeys([*alarms, *map(say, plain.notes)])]
    sentences = plain.sentences(inputs.level)
    if errors.option is None:
        table = table.reset_index()
    else:
        sentences = [estimated.sentence(inputs.level)]
    printing.show(Answer(table=table, sentences=sentences, alarms=alarms, read=about))
