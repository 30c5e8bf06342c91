"""Ways to undo errors of labelling: correct the metrics, or restore the true entities."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..._internal.errors import NotIdentified
from ...design.sample import Sample
from ...labels import Annotator, KeptRecords, MissedPieces, restore
from ...metrics.definitions import Metric
from .laws import Law, breaks_down, corrected, law_of


class Adjustment(Protocol):
    """A way to undo errors of annotators who missed a share u of records and kept a share v."""

    def __call__(
        self, sample: Sample, metrics: Sequence[Metric], u: float, v: float, rng: np.random.Generator
    ) -> Iterator[tuple[Sample, Sequence[Metric]]]:
        """Yield samples, each with the metrics to estimate from it. `Adjusted` averages the results.

        Raises
        ------
        NotIdentified
            Errors of these shares cannot be undone.
        """
        ...


@dataclass(frozen=True, slots=True)
class Corrected:
    """The adjustment in closed form: the sample as it is, with corrected metrics (see `corrected`).

    A call raises `NotIdentified` if shares are so large that the closed form breaks down (see `breaks_down`).

    Parameters
    ----------
    law : Law, optional
        By default that of the design (see `law_of`).

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b"}, {1: "x", 2: "x", 3: "x"})
    >>> sample, rng = eb.Sample(units, eb.UniformRecords()), np.random.default_rng(1)
    >>> [(same is sample, metrics) for same, metrics in Corrected()(sample, [], 0.1, 0.0, rng)]
    [(True, [])]
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
    """Return an annotator who misses a share u of whole pieces and keeps v of single foreign records.

    Parameters
    ----------
    u, v : float in [0, 1]

    Examples
    --------
    >>> by_pieces(0.1, 0.2).kept
    KeptRecords(rate=0.2, elsewhere=0.0)
    """
    return Annotator(MissedPieces(u), KeptRecords(v))


@dataclass(frozen=True, slots=True)
class Restored:
    """The adjustment by restoration: true entities drawn behind the labels, with any metrics.

    Parameters
    ----------
    model : callable (u, v) -> Annotator
        How annotators of these shares err. By default they miss whole pieces (see `by_pieces`).
    draws : int
        The number of restored samples to average over. See `erbayes.labels.restore`.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b"}, {1: "x", 2: "x", 3: "x"})
    >>> sample, rng = eb.Sample(units, eb.UniformRecords()), np.random.default_rng(1)
    >>> len(list(Restored(draws=5)(sample, [eb.metrics.b3_recall], 0.1, 0.0, rng)))
    5
    """

    model: Callable[[float, float], Annotator] = by_pieces
    draws: int = 20

    def __call__(
        self, sample: Sample, metrics: Sequence[Metric], u: float, v: float, rng: np.random.Generator
    ) -> Iterator[tuple[Sample, Sequence[Metric]]]:
        model = self.model(u, v)
        for _ in range(self.draws):
            yield Sample(restore(sample.units, model, rng), sample.design), metrics
