"""Options of cheap labels of many draws, with careful labels of some."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import erbayes as eb

from .._internal.errors import DataError, Remedy, speaking
from .analyses import Analysis, Result
from .designs import DesignName
from .inputs import One
from .lazily import counted, files, two_phases
from .metric_options import MetricOptions, Metrics
from .options import file_option, message, option, panel, refuse_same_file, within
from .predictions import LABELLED, in_words
from .tables import read_named, said_of

ANSWERS = ("drawn", "record", "probability")
"""Columns of a machine's answers. A file without these names has them in this order, and no others."""
THRESHOLD = (
    "if rows are answers about pairs of records, give the least probability of a match: --cheap-threshold"
)
REMEDIES = {
    Remedy.COLUMNS: "name them: --record, --entity",
    Remedy.ORDER: "if columns are in the other order, name them: --record, --entity",
    Remedy.LINKS: THRESHOLD,
    Remedy.ANSWERS: THRESHOLD,
}
"""Remedies of errors in files of cheap labels."""
OTHERS = 2
"""Least number of draws that have cheap labels only, since one has no variance."""
DESIGNS = (DesignName.UNIFORM_RECORDS, DesignName.UNIFORM_CLUSTERS)
"""Designs that two phases can have in the shell."""


@panel("Cheap labels")
class Cheap(Analysis):
    """Options of cheap labels of many draws. LABELS then has careful ones of some of these draws."""

    cheap: Path | None = file_option(
        "Cheap labels of all draws, such as a machine's: record and entity, with columns as LABELS; or "
        "answers, with --cheap-threshold. They may be wrong. LABELS has careful ones of the first draws.",
        rare=True,
    )
    cheap_drawn: Path | None = file_option(
        "With --cheap, file of one column: the unit of each draw by these labels, in the order of "
        "drawing. Its first draws are those of --drawn.",
        rare=True,
    )
    cheap_threshold: float | None = option(
        "--cheap has answers: drawn record, record, probability, which may be empty. A record of "
        "this probability or more belongs. --cheap-drawn then has the drawn records.",
        rare=True,
    )

    def __post_init__(self) -> None:
        if (self.cheap is None) != (self.cheap_drawn is None):
            raise DataError("--cheap and --cheap-drawn go together: the labels, and the unit of each draw")
        if self.cheap is None and self.cheap_threshold is not None:
            raise DataError("--cheap-threshold needs --cheap")

    @property
    def option(self) -> str | None:
        return None if self.cheap is None else "--cheap"

    def refuse(self, inputs: One, asked: MetricOptions) -> None:
        """Refuse inputs without independent draws in their order, which LABELS has careful labels of."""
        if self.cheap is None:
            return
        if inputs.labels.is_dir():
            raise DataError(
                "--cheap needs LABELS as a file: write the labels of the folder by erbayes labels --output"
            )
        drawing = inputs.drawing
        if drawing.design not in DESIGNS:
            names = " or ".join(design.value for design in DESIGNS)
            raise DataError(f"--cheap needs independent draws in their order: --design {names}")
        if drawing.drawn is None:
            raise DataError("--cheap needs --drawn, the unit of each draw with careful labels, in its order")
        if drawing.population is not None:
            raise DataError(
                "--cheap needs draws with replacement: leave out --population; intervals are then a little "
                "longer"
            )
        if self.cheap_threshold is not None and drawing.design is not DesignName.UNIFORM_RECORDS:
            raise DataError("--cheap-threshold needs drawn records: --design uniform-records")
        eb.auxiliary.second.refuse_added(inputs.missing)
        refuse_same_file(("--cheap", self.cheap), ("LABELS", inputs.labels))

    def run(self, inputs: One, asked: MetricOptions, sample: eb.Sample, metrics: Metrics) -> Result:
        """Estimate metrics from both kinds of labels."""
        estimates = self.estimates(inputs, sample, metrics)
        table = estimates.table(inputs.level, asked.kind).reset_index()
        sentence = estimates.sentence(inputs.level, asked.kind)
        return Result(table, "two phases", estimates.find_alarms(sample, metrics), sentence, estimates)

    def _read_cheap_answers(
        self, prediction: eb.Clustering | None
    ) -> tuple[eb.Clustering, eb.design.contract.Design, str]:
        """Read answers of a machine as cheap labels, with their design and a sentence about what was read."""
        assert self.cheap is not None and self.cheap_drawn is not None and self.cheap_threshold is not None
        said = said_of(self.cheap, len(ANSWERS))
        named = ANSWERS if not said and set(ANSWERS) <= set(files.read_table(self.cheap).columns) else said
        table = files.read_columns(self.cheap, len(ANSWERS), named)
        drawn = read_named(self.cheap_drawn, 1).iloc[:, 0]
        unsure = table.iloc[:, 2].isna()
        if prediction is None and unsure.any():
            raise DataError(
                f"{self.cheap}: the machine cannot tell in {int(unsure.sum()):,} of {len(table):,} answers, "
                "and PREDICTION, which then decides, is scanned where it lies: fill in these answers, or "
                "leave out --table and --memory-limit"
            )
        answers = table.set_axis(list(ANSWERS), axis=1)
        machine = eb.labels.machine_labels(answers, drawn, prediction, threshold=self.cheap_threshold)
        labels = eb.Clustering.of(machine.labels, "cheap labels")
        read = (
            f"{len(table):,} answers ({in_words(table.columns, self.cheap)}); with a probability of "
            f"{self.cheap_threshold:g} or more {LABELLED.format(len(labels.records), len(labels.clusters))}; "
            f"{len(machine.unsure):,} drawn records without any are labelled as predicted"
        )
        return labels, machine.design, read

    def estimates(
        self, inputs: One, sample: eb.Sample, metrics: Metrics
    ) -> eb.auxiliary.estimates.AssistedEstimates:
        """Read the cheap labels, and return the metrics of careful labels with their help."""
        assert self.cheap is not None
        scanned = isinstance(sample.units, counted.Scanned)
        if self.cheap_threshold is not None:
            labels, design, read = self._read_cheap_answers(None if scanned else inputs.memory[0])
        else:
            records = None if scanned else inputs.memory[0].records
            with speaking(REMEDIES):
                labels, read = inputs.reading.read_labels(self.cheap, inputs.entity, records, "cheap labels")
            design = replace(inputs.drawing, drawn=self.cheap_drawn).read()
        if scanned:
            units = inputs.reading.scan(inputs.part, inputs.labelled()[0] | {"labels": labels})
        else:
            prediction, shared, _ = inputs.memory
            units = eb.measure(prediction, **shared | {"labels": labels})
        with within(f"--cheap {self.cheap} --cheap-drawn {self.cheap_drawn}"):
            cheap = eb.Sample(units, design)
        careful, draws = (len(one.expansion.unit) for one in (sample, cheap))
        message(
            f"cheap: read {read}; {draws:,} draws ({self.cheap_drawn}), the first {min(careful, draws):,} of "
            "them with careful labels"
        )
        files = f"--drawn {inputs.drawing.drawn} --cheap-drawn {self.cheap_drawn}"
        if draws < careful + OTHERS:
            raise DataError(
                f"--cheap-drawn needs the draws with careful labels and {OTHERS} or more others: it has "
                f"{draws:,} draws, and --drawn has {careful:,} ({files})"
            )
        with within(files):
            return two_phases.TwoPhase(cheap)(sample, metrics)
