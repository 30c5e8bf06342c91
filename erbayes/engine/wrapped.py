"""Engines that change the sample, and then call another engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .._internal.arrays import Seed
from .._internal.errors import DataError
from ..design import DistinctEntities, UniformRecords
from ..design.calibration import Calibrated
from ..design.sample import Sample, need_sample
from ..metrics.definitions import Metric
from ..metrics.uncertain import Draws, Normal
from .contract import Engine


@dataclass(frozen=True, slots=True)
class OnDistinct:
    """Another engine on the distinct entities among uniform records drawn with replacement.

    Parameters
    ----------
    engine : Engine

    Raises
    ------
    DataError
        When it is called, if the design is not `UniformRecords`.

    Examples
    --------
    >>> import erbayes as eb
    >>> from erbayes.engine import Taylor
    >>> units = eb.measure({i: i // 2 for i in range(60)}, {i: i // 2 for i in range(40)})
    >>> OnDistinct(Taylor())(eb.Sample(units, eb.UniformRecords()), [eb.metrics.entities]).estimate.round(2)
    array([30.])
    """

    engine: Engine

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> Normal | Draws:
        need_sample(sample)
        if not isinstance(sample.design, UniformRecords):
            raise DataError(
                f"distinct entities have a known chance under UniformRecords, not under "
                f"{type(sample.design).__name__}"
            )
        design = DistinctEntities(len(sample.expansion.unit))
        return self.engine(Sample(sample.units, design), metrics, rng)


@dataclass(frozen=True, slots=True)
class OnCalibrated:
    """Another engine on the sample with calibrated weights (see `erbayes.Calibrated`).

    Parameters
    ----------
    engine : Engine

    Examples
    --------
    >>> import erbayes as eb
    >>> from erbayes.engine import Taylor
    >>> units = eb.measure({i: i // 2 for i in range(60)}, {i: i // 2 for i in range(40)})
    >>> OnCalibrated(Taylor())(eb.Sample(units, eb.UniformRecords()), [eb.metrics.entities]).estimate.round(2)
    array([30.])
    """

    engine: Engine

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> Normal | Draws:
        need_sample(sample)
        return self.engine(Sample(sample.units, Calibrated(sample.design)), metrics, rng)
