"""The option of errors that annotators may have made, for answers of every command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import erbayes as eb

from .._internal.errors import DataError
from .analyses import SEED
from .inputs import Inputs, One
from .lazily import sensitivity
from .options import option, panel

FOLDER = "folder"
"""The word for rates that the folder of a draw shows."""
RATES = "missed=3/20,kept=.1,added=2/100"


@panel("Design")
class AnnotatorErrors:
    """The option of errors that annotators may have made."""

    annotator_errors: str | None = option(
        f"Allow for errors of labels: their rates, such as {RATES}, where 3/20 is 3 of 20 cases seen and .1 "
        f"is known; delta=3 is the odds of errors of unresolved draws. Or {FOLDER}: as settled disagreements "
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
        annotator, delta = parse_rates(str(self.annotator_errors), inputs.returned)
        starts: Any = None
        if inputs.returned is not None:
            records = inputs.returned.folder.drawn.table["record"]
            starts = records[records.isin(eb.Clustering.of(labels).records)].to_numpy()
        return eb.with_errors(answer, labels, design, shown, annotator, starts=starts, delta=delta, rng=SEED)

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


def parse_rates(text: str, returned: eb.labels.Labels | None) -> tuple[eb.labels.Annotator, float | None]:
    """Return the annotator that the option describes, and the odds of errors of unresolved draws."""
    if text == FOLDER:
        if returned is None:
            raise DataError(f"--annotator-errors {FOLDER} needs a folder of erbayes draw as LABELS")
        return returned.annotator_errors(), None
    rates: dict[str, Any] = {}
    for part in text.split(","):
        name, _, value = part.strip().partition("=")
        if name not in ("missed", "kept", "added", "delta"):
            raise DataError(f"--annotator-errors {text}: write rates as {RATES}, or {FOLDER}")
        rates[name] = _parse_rate(name, value, text)
    return eb.labels.Annotator(**{k: v for k, v in rates.items() if k != "delta"}), rates.get("delta")


def _parse_rate(name: str, value: str, text: str) -> Any:
    """Return a number, or the prior of so many errors among so many cases with Jeffreys' half."""
    errors, slash, cases = value.partition("/")
    try:
        if not slash or name == "delta":
            return float(value)
        if name == "added":
            return eb.labels.Gamma(0.5 + float(errors), float(cases))
        return eb.labels.Beta(0.5 + float(errors), 0.5 + float(cases) - float(errors))
    except ValueError as error:
        raise DataError(
            f"--annotator-errors {text}: {name} is a number, or errors/cases such as 3/20, not {value!r}"
        ) from error
