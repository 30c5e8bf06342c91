"""What a sample would be, had its annotators erred by stated shares."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..errors import NotIdentified
from ..labelling import Annotator, KeptRecords, MissedPieces, restore
from ..metrics import Metric
from ..sample import Sample
from .laws import Law, breaks_down, corrected, law_of


class Adjustment(Protocol):
    """Undoes errors of labelling: annotators who missed a share u and kept a share v."""

    def __call__(
        self, sample: Sample, metrics: Sequence[Metric], u: float, v: float, rng: np.random.Generator
    ) -> Iterator[tuple[Sample, Sequence[Metric]]]:
        """Yield samples and metrics to ask an engine for; its answers are averaged."""
        ...


@dataclass(frozen=True, slots=True)
class Corrected:
    """The sample as it is, with corrected metrics (`corrected`).

    Parameters
    ----------
    law : Law, optional
        By default that of the design.

    Raises
    ------
    NotIdentified
        Shares so large that the closed form breaks down (see `breaks_down`).
    """

    law: Law | None = None

    def __call__(
        self, sample: Sample, metrics: Sequence[Metric], u: float, v: float, rng: np.random.Generator
    ) -> Iterator[tuple[Sample, Sequence[Metric]]]:
        law = self.law or law_of(sample.design)
        if breaks_down(sample, u, v, law).any():
            raise NotIdentified(
                f"at u = {u:g}, v = {v:g} the closed form undoes more than labels hold: use Restored"
            )
        yield sample, [corrected(m, u, v, law) for m in metrics]


def by_pieces(u: float, v: float) -> Annotator:
    """Whole pieces missed, single records kept."""
    return Annotator(MissedPieces(u), KeptRecords(v))


@dataclass(frozen=True, slots=True)
class Restored:
    """True entities drawn behind the labels (`labelling.restore`), with any metrics.

    Parameters
    ----------
    model : callable (u, v) -> Annotator
    draws : int
        Restorations to average over.
    """

    model: Callable[[float, float], Annotator] = by_pieces
    draws: int = 20

    def __call__(
        self, sample: Sample, metrics: Sequence[Metric], u: float, v: float, rng: np.random.Generator
    ) -> Iterator[tuple[Sample, Sequence[Metric]]]:
        model = self.model(u, v)
        for _ in range(self.draws):
            yield Sample(restore(sample.units, model, rng), sample.design), metrics
