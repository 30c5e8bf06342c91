"""Options of metrics, groups, errors of labels and own numbers, and the analyses that they ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import erbayes as eb

from .._internal.errors import DataError, refuse_cases
from .inputs import Inputs, One
from .lazily import (
    arrays,
    features,
    files,
    frames,
    impacts,
    large_files,
    named_engines,
    pd,
    sensitivity,
)
from .options import file_option, message, option, panel, within
from .predictions import PredictionFile, in_words
from .remembered import read_attributes

type Metrics = Sequence[eb.metrics.Metric]


KindName = Literal["beta-gamma", "symmetric", "wald", "anytime"]
EngineName = Literal["closed-form", "bootstrap", "jackknife", "size-model", "posterior", "advised"]
SEED = 1
"""Seed of engines that draw, so that the same call prints the same numbers."""


@panel("Metrics")
class IntervalOption:
    interval: KindName = option(
        "Kind of interval. symmetric: the estimate ± t standard errors. anytime: valid if labels are looked "
        "at again and again.",
        rare=True,
        default="beta-gamma",
    )

    @property
    def kind(self) -> eb.intervals.Kind:
        kinds: dict[KindName, eb.intervals.Kind] = {
            "beta-gamma": eb.intervals.DEFAULT,
            "symmetric": eb.intervals.Symmetric(),
            "wald": eb.intervals.WALD,
            "anytime": eb.intervals.Anytime(),
        }
        return kinds[self.interval]


@panel("Metrics")
class MetricOptions(IntervalOption):
    metrics: str | None = option(
        "Names with commas, such as precision,recall, or all: see erbayes metrics.", "-m"
    )

    def chosen_metrics(self) -> Metrics:
        if self.metrics is None:
            return eb.metrics.DEFAULT_METRICS
        return eb.metrics.resolve_metrics(name.strip() for name in self.metrics.split(","))


@panel("Minima")
class Minima:
    min_precision: float | None = option("Least pairwise precision, such as 0.95.")
    min_recall: float | None = option("Least pairwise recall, such as 0.8.")
    minimum: list[str] | None = option(
        "Least value of any metric. Several are allowed.", "--min", metavar="METRIC=VALUE"
    )

    def read(self) -> dict[eb.metrics.Metric | str, float]:
        pairwise = {
            eb.metrics.pairwise_precision.name: self.min_precision,
            eb.metrics.pairwise_recall.name: self.min_recall,
        }
        named = [(name, least) for name, least in pairwise.items() if least is not None]
        for text in self.minimum or []:
            name, _, value = (part.strip() for part in text.partition("="))
            try:
                named.append((name, float(value)))
            except ValueError as error:
                raise DataError(f"--min {text}: write one METRIC=VALUE, such as b3-recall=0.9") from error
        if not named:
            raise DataError("nothing to check: give --min-precision, --min-recall or --min METRIC=VALUE")
        names = [name for name, _ in named]
        twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        refuse_cases(twice, "metrics have two minima", ": leave out one")
        return dict(named)


class Result(NamedTuple):
    """What `erbayes estimate` prints: a table, its method, alarms, a sentence, and what is `drawn`."""

    table: pd.DataFrame
    method: str
    alarms: Sequence[str]
    sentence: str = ""
    drawn: Any = None


@panel("Metrics")
class EngineOption:
    engine: EngineName | None = option(
        "closed-form (default), bootstrap, jackknife, size-model, posterior or advised, with why.",
        metavar="ENGINE",
    )

    @property
    def name(self) -> EngineName:
        return self.engine or "closed-form"

    def choose_kind(self, asked: MetricOptions) -> eb.intervals.Kind | None:
        """Return the kind of interval: an engine that draws has its own, unless --interval names one."""
        return None if self.name != "closed-form" and asked.interval == "beta-gamma" else asked.kind

    def run(
        self, inputs: One, asked: MetricOptions, sample: eb.Sample, metrics: Metrics, of_groups: Any = None
    ) -> Result:
        """Estimate metrics by the engine, of all records or by what estimates those `of_groups`."""
        kind = self.choose_kind(asked)
        if of_groups is not None:
            by = of_groups(sample, metrics=metrics, engine=self.name, rng=SEED)
            table = by.table(inputs.level, kind)
            alarms = [*by.alarms(), *eb.alarms(sample, metrics, table), *by.joint.alarms]
            return Result(table, self.name, [*dict.fromkeys(alarms)], drawn=by)
        result: Any = named_engines.run_engine(self.name, sample, metrics, arrays.draw_seed(SEED))
        table = result.table(inputs.level, kind).reset_index()
        alarms = [*eb.alarms(sample, metrics, table), *result.alarms]
        return Result(table, self.name, alarms, result.sentence(inputs.level, kind), result)


FOLDER = "folder"
"""The word for rates that the folder of a draw shows."""
RATES = "removed=2/40,missed=3/20,kept=.1,added=2/100"


@panel("Design")
class AnnotatorErrors:
    annotator_errors: str | None = option(
        f"Allow for errors of labels: their rates, such as {RATES}, where 3/20 is 3 of 20 cases seen and .1 "
        f"is known; unsure=3 is the odds of errors of undecided draws. Or {FOLDER}: as settled disagreements "
        "or controls show them.",
        metavar="RATES",
        rare=True,
    )

    def run_one(
        self, inputs: One, sample: eb.Sample, answer: Callable[[eb.Sample, Any], Any]
    ) -> sensitivity.WithErrors:
        """Answer a question about one sample and its labels with errors of these."""
        self.refuse_scan(inputs)
        if inputs.of_clusters:
            raise DataError(
                "--annotator-errors is about labelled entities, and predicted clusters were drawn"
            )
        prediction, shared, _ = inputs.memory

        def of_labels(labels: Any, design: Any) -> Any:
            return answer(eb.Sample(eb.measure(prediction, **shared | {"labels": labels}), design), labels)

        return self.run_any(inputs, of_labels, shared["labels"], sample.design, prediction)

    def run_any(
        self, inputs: Any, answer: Callable[[Any, Any], Any], labels: Any, design: Any, shown: Any
    ) -> sensitivity.WithErrors:
        """Answer a question about labels and design with errors of the labels."""
        annotator = _parse_rates(str(self.annotator_errors), inputs.returned)
        starts: Any = None
        if inputs.returned is not None:
            records = inputs.returned.folder.drawn.table["record"]
            starts = records[records.isin(eb.Clustering.of(labels).records)].to_numpy()
        return eb.with_errors(answer, labels, design, shown, annotator, starts=starts, rng=SEED)

    def refuse_scan(self, inputs: Inputs) -> None:
        """Refuse predictions that are scanned, since true labels are drawn among records in memory."""
        if inputs.scanned:
            raise DataError(
                "--annotator-errors draws true labels among the records of a prediction, which does not fit "
                "in memory: give the records of the clusters that labels touch, and some of all others"
            )


def _parse_rates(text: str, returned: eb.labels.Labels | None) -> eb.labels.Annotator:
    if text == FOLDER:
        if returned is None:
            raise DataError(f"--annotator-errors {FOLDER} needs a folder of erbayes draw as LABELS")
        return returned.annotator_errors()
    rates: dict[str, Any] = {}
    for part in text.split(","):
        name, _, value = (text.strip() for text in part.partition("="))
        errors, slash, cases = value.partition("/")
        if name in rates or name not in eb.labels.annotators.NONE:
            raise DataError(
                f"--annotator-errors {text}: {name!r} is no rate ({', '.join(eb.labels.annotators.NONE)}), "
                f"or stands there twice: write each rate once, as {RATES}, or {FOLDER}"
            )
        try:
            if not slash or name == "unsure":
                rates[name] = float(value)
            elif name == "added":
                rates[name] = eb.labels.Gamma(0.5 + float(errors), float(cases))
            else:  # the prior of so many errors among so many cases with Jeffreys' half
                rates[name] = eb.labels.Beta(0.5 + float(errors), 0.5 + float(cases) - float(errors))
        except ValueError as error:
            raise DataError(
                f"--annotator-errors {text}: write rates as {RATES}, or {FOLDER}; {part.strip()!r} is no "
                "number, and no errors/cases"
            ) from error
    return eb.labels.Annotator(**rates)


@panel("Groups")
class Domains:
    by: str | None = option("Column with groups of records: one result per group.", metavar="COLUMN")
    across: str | None = option(
        "Column with the source of records: only links between sources count.", metavar="COLUMN"
    )
    attributes: Path | None = file_option("Table with such a column, if PREDICTION has none.")

    def refuse_models(self, by_engine: EngineOption) -> None:
        """Refuse groups by an engine with a size model, before it fits."""
        if self.column is not None and by_engine.name in ("size-model", "posterior"):
            raise DataError(
                f"--engine {by_engine.name} has no groups, since an entity may lie in several: leave out "
                f"{'--by' if self.across is None else '--across'}, or choose --engine closed-form, jackknife "
                "or bootstrap"
            )

    @property
    def column(self) -> str | None:
        return self.by or self.across

    def chosen_metrics(self, asked: MetricOptions) -> Metrics:
        """Return the metrics that the options name; with --across, those of links if they name none."""
        if self.across is not None and asked.metrics is None:
            return eb.metrics.resolve_metrics(["precision", "recall", "f1"])
        return asked.chosen_metrics()

    @property
    def links(self) -> eb.columns.Links:
        return eb.columns.Links.SHARED if self.across is None else eb.columns.Links.ACROSS

    def of_scan(self, inputs: Inputs) -> dict[str, Any]:
        """Return arguments of a scan that counts by group; none if groups are read into memory."""
        if self.column is None or not inputs.scanned:
            return {}
        if self.attributes is None:
            return {"groups": self.column}
        source = inputs.reading.source(PredictionFile(self.attributes))
        return {"groups": eb.large.GroupSource(source, self.column)}

    def read(self, inputs: One, units: eb.units.Units) -> Callable[..., eb.analysis.domains.ByDomain]:
        """Read the groups, and return what estimates metrics of each from a sample of such units."""
        groups = self.groups(inputs, [units])
        known = self.known(inputs, groups).get("")
        return partial(eb.by_domain, groups=groups, prediction=known, links=self.links)

    def compare(
        self,
        inputs: Inputs,
        comparison: eb.analysis.comparison.Comparison,
        metrics: Metrics,
        chosen: Mapping[str, Any],
    ) -> eb.analysis.domains.ComparedByDomain:
        """Compare predictions by group, with an engine that is chosen."""
        groups = self.groups(inputs, [sample.units for sample in comparison.samples])
        return eb.analysis.domains.compare_by_domain(
            comparison, groups, metrics, predictions=self.known(inputs, groups), links=self.links, **chosen
        )

    def groups(self, inputs: Inputs, units: Sequence[eb.units.Units]) -> pd.Series | str:
        """Read the group of each record; the name of the variable if a scan has read it."""
        path = self.attributes or next(iter(inputs.parts().values())).path
        for known in (grouping for own in units for grouping in own.groupings):
            message(f"{len(known.values):,} groups of {self.column} scanned ({self.column} of {path})")
            self._note_without_group(known.unknown)
        if units[0].groupings:
            return units[0].groupings[0].variable
        with within("" if self.attributes else "--attributes TABLE, if another table has it"):
            records, column = self._read(path, inputs, str(self.column))
        message(
            f"read {column.notna().sum():,} values of {self.column} ({column.nunique():,} groups; "
            f"{in_words([records.name, self.column], path)})"
        )
        return column.set_axis(pd.Index(records)).rename(self.column)

    def _read(self, path: Path, inputs: Inputs, column: str) -> tuple[pd.Series, pd.Series]:
        reading = inputs.reading
        if self.attributes is None:  # the prediction itself, whose records are read as it is
            taken = reading.take(next(iter(inputs.parts().values())), "prediction", inputs.near)
            if taken.of_links:
                raise DataError(f"{column} is a column of --attributes if PREDICTION is links")
            arrays.refuse_names([column], list(taken.table.columns), str(path))
            return taken.key(), taken.table[column]
        known = inputs.labelled()[0]["labels"].records
        table = read_attributes(path, reading.record, known=known)
        arrays.refuse_names([column], list(table.columns), str(path))
        if table.columns[0] == column:
            raise DataError(f"{path}: {column!r} is its column of ids: name another one")
        table = files.key_by_source(table, known)
        return table.iloc[:, 0], table[column]

    def known(self, inputs: Inputs, groups: pd.Series | str) -> dict[str, eb.Clustering]:
        """Read the predictions again if totals by group are known: if every record of theirs has a group."""
        if isinstance(groups, str) or inputs.frame is not None or inputs.scanned:
            return {}
        grouped, read = groups.index[groups.notna()], inputs.reading.read
        predictions = {name: read(part, f"prediction {name!r}")[0] for name, part in inputs.parts().items()}
        without = max(int((~prediction.records.isin(grouped)).sum()) for prediction in predictions.values())
        self._note_without_group(without)
        first, *others = (prediction.records for prediction in predictions.values())
        # a comparison is of common records, whose totals whole files do not tell
        return {} if without or any(len(first.symmetric_difference(one)) for one in others) else predictions

    def _note_without_group(self, records: int) -> None:
        """Print how many records of a prediction have no group, if there are any."""
        if records:
            message(
                f"note: {records:,} records of PREDICTION have no {self.column}, so that its totals are "
                "estimated"
            )


OWN = "Your own numbers"
"""The panel of the options of this command."""


@panel(OWN)
class Numbers:
    statistic: list[str] | None = option(
        "count, share(size>=5), total(x), mean(x), ratio(x, y), quantile_share(0.5, x), top(100), "
        "top(0.01) or gini(x). Several are allowed. By default: count."
    )
    feature: list[str] | None = option(
        "A feature of entities, such as span=year:range. HOW is sum, mean, min, max, range or distinct, or "
        "known-sum and so on if values are missing. Several are allowed.",
        metavar="NAME=COLUMN:HOW",
    )

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
        given: dict[str, Any] = {"features": {one.name: (one.column, one.how) for one in parsed}, "by": by}
        reading = inputs.reading
        if inputs.scanned:
            if inputs.of_clusters or inputs.frame is not None or by is not None:
                raise DataError("a prediction that is scanned takes no frame, --by nor drawn clusters here")
            prediction, labels = reading.source(inputs.part), inputs.labelled()[0]["labels"]
            given["attributes"] = None if attributes is None else large_files.Files(attributes, text=True)
            given["database"] = reading.database
        else:
            prediction, shared, _ = inputs.memory
            if attributes is not None:
                known = prediction.records
                table = files.key_by_source(read_attributes(attributes, reading.record, known=known), known)
                message(f"read {len(table):,} rows of {attributes}, with records in {table.columns[0]}")
                given["attributes"] = table
            labels = shared["labels"]
            prediction, _ = frames.framed(prediction, labels, shared["frame"])

        def answer(one: eb.Sample, labels: Any) -> impacts.Impact:
            return impacts.impact_of(one, prediction, labels, statistics, **given)

        if errors is None or errors.annotator_errors is None:
            return answer(sample, labels)
        return errors.run_one(inputs, sample, answer)
