"""Options of metrics, groups and errors of labels, and the analyses of `erbayes estimate`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import erbayes as eb

from .._internal.errors import DataError, Grade, NotIdentified, Sentence, head
from .inputs import Inputs, One
from .lazily import arrays, files, named_engines, pd, sensitivity
from .options import file_option, flag, message, option, panel, within
from .predictions import PredictionFile, in_words
from .remembered import read_attributes

type Metrics = Sequence[eb.metrics.Metric]


class KindName(Enum):
    BETA_GAMMA = "beta-gamma"
    SYMMETRIC = "symmetric"
    WALD = "wald"
    ANYTIME = "anytime"


@panel("Metrics")
class MetricOptions:
    """Options of the metrics and their kind of interval."""

    metrics: str | None = option(
        "Names with commas, such as precision,recall, or all: see erbayes metrics.", "-m"
    )
    interval: KindName = option(
        "Kind of interval. symmetric: the estimate ± t standard errors. anytime: valid if labels are looked "
        "at again and again.",
        rare=True,
        default=KindName.BETA_GAMMA,
    )

    @property
    def kind(self) -> eb.intervals.Kind:
        kinds: dict[KindName, eb.intervals.Kind] = {
            KindName.BETA_GAMMA: eb.intervals.DEFAULT,
            KindName.SYMMETRIC: eb.intervals.Symmetric(),
            KindName.WALD: eb.intervals.WALD,
            KindName.ANYTIME: eb.intervals.Anytime(),
        }
        return kinds[self.interval]

    def chosen_metrics(self) -> Metrics:
        if self.metrics is None:
            return eb.metrics.DEFAULT_METRICS
        return eb.metrics.resolve_metrics(name.strip() for name in self.metrics.split(","))


@panel("Minima")
class Minima:
    """Options of the least values that metrics must reach."""

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
                raise DataError(f"--min {text}: write METRIC=VALUE, such as b3-recall=0.9") from error
        if not named:
            raise DataError("nothing to check: give --min-precision, --min-recall or --min METRIC=VALUE")
        names = [name for name, _ in named]
        if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
            raise DataError(f"{len(twice)} metrics have two minima, such as {head(twice)}: leave out one")
        return dict(named)


SEED = 1
"""Seed of engines that draw, so that the same call prints the same numbers."""


class Result(NamedTuple):
    """What `erbayes estimate` prints: a table, its method, alarms, a sentence, and what is `drawn`."""

    table: pd.DataFrame
    method: str
    alarms: Sequence[str]
    sentence: str = ""
    drawn: Any = None


class EngineName(Enum):
    CLOSED_FORM = "closed-form"
    BOOTSTRAP = "bootstrap"
    JACKKNIFE = "jackknife"
    SIZE_MODEL = "size-model"
    POSTERIOR = "posterior"
    ADVISED = "advised"


@panel("Metrics")
class EngineOption:
    engine: EngineName | None = option(
        "closed-form (default), bootstrap, jackknife, size-model, posterior or advised, with why.",
        metavar="ENGINE",
    )

    @property
    def name(self) -> EngineName:
        return self.engine or EngineName.CLOSED_FORM

    def choose_kind(self, asked: MetricOptions) -> eb.intervals.Kind | None:
        """Return the kind of interval: an engine that draws has its own, unless --interval names one."""
        of_engine = self.name is not EngineName.CLOSED_FORM and asked.interval is KindName.BETA_GAMMA
        return None if of_engine else asked.kind


@panel("Metrics")
class Engines(EngineOption):
    side_by_side: bool = flag("Closed form, bootstrap and size model in one table.")

    def run(self, inputs: One, asked: MetricOptions, sample: eb.Sample, metrics: Metrics) -> Result:
        """Estimate metrics by the engine, or by several."""
        if self.side_by_side:
            return _set_side_by_side(sample, metrics, inputs.level)
        kind, seed = self.choose_kind(asked), arrays.draw_seed(SEED)
        result: Any = named_engines.run_engine(self.name.value, sample, metrics, seed)
        table = result.table(inputs.level, kind).reset_index()
        alarms = [*eb.alarms(sample, metrics, table), *result.alarms]
        return Result(table, self.name.value, alarms, result.sentence(inputs.level, kind), result)


def _set_side_by_side(sample: eb.Sample, metrics: Metrics, level: float) -> Result:
    """Return the results of three engines in one table, with a sentence for an engine without a result."""
    outcomes, seed = dict[str, Any](), arrays.draw_seed(SEED)
    for name in (EngineName.CLOSED_FORM, EngineName.BOOTSTRAP, EngineName.SIZE_MODEL):
        try:
            outcomes[name.value] = named_engines.run_engine(name.value, sample, metrics, seed)
        except NotIdentified as why:
            outcomes[name.value] = why
    engines = eb.side_by_side(outcomes, metrics, level=level)
    table, results = engines.table(), [one for one in outcomes.values() if not isinstance(one, NotIdentified)]
    alarms = [*eb.alarms(sample, metrics, table), *(alarm for one in results for alarm in one.alarms)]
    notes = [Sentence(said, Grade.NOTE) for said in engines.describe_lacking()]
    return Result(table, "", [*alarms, *notes], results[0].sentence(level))


FOLDER = "folder"
"""The word for rates that the folder of a draw shows."""
RATES = "removed=2/40,missed=3/20,kept=.1,added=2/100"


@panel("Design")
class AnnotatorErrors:
    """The option of errors that annotators may have made."""

    annotator_errors: str | None = option(
        f"Allow for errors of labels: their rates, such as {RATES}, where 3/20 is 3 of 20 cases seen and .1 "
        f"is known; unsure=3 is the odds of errors of undecided draws. Or {FOLDER}: as settled disagreements "
        "or controls show them.",
        metavar="RATES",
        rare=True,
    )

    @property
    def option(self) -> str | None:
        return None if self.annotator_errors is None else "--annotator-errors"

    def run_one(
        self, inputs: One, sample: eb.Sample, answer: Callable[[eb.Sample, Any], Any]
    ) -> sensitivity.WithErrors:
        """Answer a question about one sample and its labels with errors of these."""
        self.refuse_scan(inputs)
        if inputs.of_clusters:
            raise DataError(f"{self.option} is about labelled entities, and predicted clusters were drawn")
        prediction, shared, _ = inputs.memory

        def of_labels(labels: Any, design: Any) -> Any:
            return answer(eb.Sample(eb.measure(prediction, **shared | {"labels": labels}), design), labels)

        return self.run_any(inputs, of_labels, shared["labels"], sample.design, prediction)

    def run_any(
        self, inputs: Any, answer: Callable[[Any, Any], Any], labels: Any, design: Any, shown: Any
    ) -> sensitivity.WithErrors:
        """Answer a question about labels and design with errors of the labels."""
        annotator = parse_rates(str(self.annotator_errors), inputs.returned)
        starts: Any = None
        if inputs.returned is not None:
            records = inputs.returned.folder.drawn.table["record"]
            starts = records[records.isin(eb.Clustering.of(labels).records)].to_numpy()
        return eb.with_errors(answer, labels, design, shown, annotator, starts=starts, rng=SEED)

    def refuse_scan(self, inputs: Inputs) -> None:
        """Refuse predictions that are scanned, since true labels are drawn among records in memory."""
        if inputs.scanned:
            raise DataError(
                f"{self.option} draws true labels among the records of a prediction, which does not fit in "
                "memory: give the records of the clusters that labels touch, and some of all others"
            )

    def order(self, inputs: Inputs, predictions: Mapping[str, Any]) -> dict[str, Any]:
        """Return predictions with the one that was drawn from, which annotators saw, as the first."""
        if inputs.returned is None:
            return dict(predictions)
        drawn = inputs.returned.folder.drawn
        return dict(sorted(predictions.items(), key=lambda item: not drawn.is_from(item[1])))


def parse_rates(text: str, returned: eb.labels.Labels | None) -> eb.labels.Annotator:
    """Return the annotator that the option describes."""
    if text == FOLDER:
        if returned is None:
            raise DataError(f"--annotator-errors {FOLDER} needs a folder of erbayes draw as LABELS")
        return returned.annotator_errors()
    rates: dict[str, Any] = {}
    for part in text.split(","):
        name, _, value = (text.strip() for text in part.partition("="))
        errors, slash, cases = value.partition("/")
        if name in {*rates, "source"}:
            raise DataError(f"--annotator-errors {text}: write each rate once, as {RATES}, or {FOLDER}")
        try:
            if not slash or name == "unsure":
                rates[name] = float(value)
            elif name == "added":
                rates[name] = eb.labels.Gamma(0.5 + float(errors), float(cases))
            else:  # the prior of so many errors among so many cases with Jeffreys' half
                rates[name] = eb.labels.Beta(0.5 + float(errors), 0.5 + float(cases) - float(errors))
        except ValueError as error:
            said = f"--annotator-errors {text}: write rates as {RATES}, or {FOLDER}"
            raise DataError(f"{said}; {part.strip()!r} is no number, and no errors/cases") from error
    return eb.labels.Annotator(**rates)


@panel("Groups")
class Domains:
    """Options of results by groups of records."""

    by: str | None = option("Column with groups of records: one result per group.", metavar="COLUMN")
    across: str | None = option(
        "Column with the source of records: only links between sources count.", metavar="COLUMN"
    )
    attributes: Path | None = file_option("Table with such a column, if PREDICTION has none.")

    def refuse_models(self, by_engine: EngineOption) -> None:
        """Refuse groups by an engine with a size model, before it fits."""
        name = by_engine.name
        if self.column is not None and name in (EngineName.SIZE_MODEL, EngineName.POSTERIOR):
            raise DataError(
                f"--engine {name.value} has no groups, since an entity may lie in several: leave out "
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

    def estimate(
        self, inputs: One, sample: eb.Sample, metrics: Metrics, **chosen: Any
    ) -> eb.analysis.domains.ByDomain:
        groups = self.groups(inputs, [sample.units])
        known = self.known(inputs, groups)
        return eb.by_domain(sample, groups, metrics, prediction=known.get(""), links=self.links, **chosen)

    def compare(
        self,
        inputs: Inputs,
        comparison: eb.analysis.comparison.Comparison,
        metrics: Metrics,
        chosen: Mapping[str, Any],
    ) -> eb.analysis.domains.ComparedByDomain:
        """Compare predictions by group, with an engine that is chosen."""
        groups = self.groups(inputs, [sample.units for sample in comparison.samples])
        known = self.known(inputs, groups)
        return eb.analysis.domains.compare_by_domain(
            comparison, groups, metrics, predictions=known, links=self.links, **chosen
        )

    def run(
        self, inputs: One, asked: MetricOptions, by_engine: EngineOption, sample: eb.Sample, metrics: Metrics
    ) -> Result:
        """Estimate metrics of each group by an engine."""
        name = by_engine.name.value
        by = self.estimate(inputs, sample, metrics, engine=name, rng=SEED)
        table = by.table(inputs.level, by_engine.choose_kind(asked))
        alarms = [*by.alarms(), *eb.alarms(sample, metrics, table), *by.joint.alarms]
        return Result(table, name, [*dict.fromkeys(alarms)], drawn=by)

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
        """Return the records and the groups of a file."""
        reading = inputs.reading
        if self.attributes is None:  # the prediction itself, whose records are read as it is
            part = next(iter(inputs.parts().values()))
            taken = reading.take(part, "prediction", inputs.near)
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
        predictions = {
            name: inputs.reading.read(part, f"prediction {name!r}")[0]
            for name, part in inputs.parts().items()
        }
        grouped = groups.index[groups.notna()]
        without = max(int((~prediction.records.isin(grouped)).sum()) for prediction in predictions.values())
        self._note_without_group(without)
        return {} if without else predictions

    def _note_without_group(self, records: int) -> None:
        """Print how many records of a prediction have no group, if there are any."""
        if records:
            message(
                f"note: {records:,} records of PREDICTION have no {self.column}, so that its totals are "
                "estimated"
            )
