"""The protocol of engines, and checks of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pandas as pd

from .._internal.arrays import Seed
from .._internal.errors import DataError, need_object
from ..design.sample import Sample
from ..metrics.definitions import Group, Metric
from ..metrics.estimates import Estimates
from ..metrics.intervals import Kind


class Engine(Protocol):
    """A way from a sample to uncertain metrics.

    Studies, reports, sensitivity analyses and comparisons take any engine, also a function of a user. With an
    attribute `batched = True` it takes many samples of a study in one call, along a leading axis of the
    expansion. Each method raises `DataError` if the engine does not suit the sample. An engine reports alarms
    about its result in `remarks`, as in `replace(result, remarks=("...",))`.

    Examples
    --------
    Under uniform records, on the distinct entities among the draws. The function suits a study too:

    >>> import erbayes as eb
    >>> def on_distinct(sample, metrics, rng=None):
    ...     design = eb.DistinctEntities(len(sample))
    ...     return eb.engine.taylor(eb.Sample(sample.units, design), metrics).apply(metrics)
    >>> units = eb.measure({i: i // 2 for i in range(60)}, {i: i // 2 for i in range(40)})
    >>> on_distinct(eb.Sample(units, eb.UniformRecords()), [eb.metrics.entities]).estimate.round(2)
    array([30.])
    """

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None, /) -> Estimates:
        """Return the metrics, jointly, or raise NotIdentified if this sample cannot estimate one."""


@runtime_checkable
class Paired(Engine, Protocol):
    """An engine that can judge several predictions by the same draws."""

    def paired(self, samples: Sequence[Sample], metrics: Sequence[Metric], rng: Seed = None) -> Estimates:
        """Return all metrics of the first sample, then of the second, and so on, jointly."""


@runtime_checkable
class Fitting(Engine, Protocol):
    """An engine with a fit, which its results have too, and whose method `estimate` returns these.

    Reports explain the fit of a result by its method `explain(level)` and `erbayes.plots.draw_retention`.
    """

    def fitted(self, sample: Sample, rng: Seed = None) -> Any:
        """Return the fit of a sample."""

    def answer(self, fit: Any, metrics: Sequence[Metric]) -> Estimates:
        """Return metrics of a fit, jointly."""


@runtime_checkable
class Repeatable(Engine, Protocol):
    """An engine that gives each of many samples a quicker answer than a single one."""

    def for_study(self) -> Engine:
        """Return the engine that a study asks in its place."""


def adapt_to_study(engine: Engine) -> Engine:
    """Return the engine that a study asks in place of an engine."""
    return engine.for_study() if isinstance(engine, Repeatable) else engine


@dataclass(frozen=True, slots=True)
class Estimator:
    """An engine with a kind of interval.

    Parameters
    ----------
    engine : Engine
        If it raises `DataError` in a study, or returns NaN, this counts as a failure. Any other exception
        stops the study.
    kind : Kind, optional
        By default that of the engine's results.

    Examples
    --------
    >>> from erbayes.metrics.intervals import WALD
    >>> from erbayes.engine import Taylor
    >>> Estimator(Taylor(order=1), WALD).engine
    Taylor(order=1)
    """

    engine: Engine
    kind: Kind | None = None

    def __post_init__(self) -> None:
        need_engine(self.engine)

    @classmethod
    def of(cls, engine: Engine | Estimator) -> Estimator:
        """Return an engine with the kind of interval of its results, or an estimator as it is."""
        return engine if isinstance(engine, Estimator) else cls(engine)


def need_engine(engine: object, argument: str = "engine") -> None:
    """Refuse an object that is no engine, such as a class, or one that cannot be called."""
    need_object(engine, "__call__", f"{argument} is an object such as Taylor() or Resampled()")


def need_paired(engine: Engine) -> Paired:
    """Return the engine if it can judge several predictions by the same draws, and refuse it otherwise."""
    need_engine(engine)
    if not isinstance(engine, Paired):
        raise DataError(
            f"{type(engine).__name__} cannot judge several predictions by the same draws: it has no method "
            "`paired`. Those that have a name have one, as Taylor has"
        )
    return engine


def estimate_paired(
    engine: Paired, samples: Sequence[Sample], metrics: Sequence[Metric], rng: Seed = None
) -> Estimates:
    """Return all metrics of the first sample, then of the second, and so on, jointly, by one engine.

    A metric of the truth alone is one number, whatever is predicted. All predictions have it from the one
    that estimates it with the least relative standard error, the same one for a count of entities and for
    their mean size, so that levels agree, and remain those of one prediction alone.
    """
    weight = samples[0].expansion.weight
    if not all(np.allclose(one.expansion.weight, weight, rtol=1e-9, atol=0) for one in samples[1:]):
        raise DataError(
            f"chances of {type(samples[0].design).__name__} are those of one prediction, and draws were made "
            "from one: hold the design in FrozenWeights(design, drawn_from=measure(that one, labels))"
        )
    joint, k = engine.paired(samples, metrics, rng), len(metrics)
    truth = [j for j, metric in enumerate(metrics) if metric.group is Group.TRUTH]
    if not truth:
        return joint
    take = np.arange(len(samples) * k).reshape(-1, k)
    of_truth = joint.part(take[:, truth].ravel().tolist())
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = (of_truth.uncut_sd / of_truth.estimate) ** 2
    best = np.nan_to_num(relative, nan=np.inf).reshape(-1, len(truth)).argmin(axis=0)
    take[:, truth] = best * k + truth
    return joint.part(take.ravel().tolist())


def records_of(sample: Sample) -> tuple[pd.Series, pd.Series]:
    """Return a prediction and labels, record -> cluster, that have the counts of a sample.

    They are for engines of other packages, which take records. The labelled records are the first. The
    prediction has the clusters that labels touch, with all their records, and no other cluster.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b"}, {1: "x"})
    >>> prediction, labels = records_of(eb.Sample(units, eb.UniformRecords()))
    >>> prediction.tolist(), labels.tolist()
    ([0, 0], ['x'])
    """
    units = sample.units
    codes, cluster = np.unique(units.cluster, return_inverse=True)
    m = np.zeros(len(codes), dtype=np.int64)
    m[cluster] = units.m
    labelled = np.repeat(cluster, units.n.astype(np.int64))
    others = np.repeat(np.arange(len(m)), m - np.bincount(labelled, minlength=len(m)))
    labels = pd.Series(np.repeat(units.ids[units.unit].to_numpy(), units.n.astype(np.int64)))
    return pd.Series(np.append(labelled, others)), labels
