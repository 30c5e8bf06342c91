"""Engines: their protocol, their names, the one that suits a sample, and several side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
import pandas as pd

from .._internal.arrays import Seed, draw_seed
from .._internal.errors import DataError, Grade, NotIdentified, Sentence, import_extra, need, need_object
from ..design.records import draws_records
from ..design.sample import Sample
from ..metrics.definitions import DEFAULT_METRICS, Group, Metric, MetricLike, resolve_metrics
from ..metrics.estimates import EMPTY, Estimates
from ..metrics.intervals import Kind, array_stats, check_level, suitable
from ..metrics.tables import Pictured
from ..metrics.unseen import NOTABLE
from .closed_form import ClosedForm, Jackknife, with_cases
from .diagnostics import warn_heavy_tail
from .fitted import fit_sample
from .replicates import Resampled


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


def need_engine(engine: object) -> None:
    """Refuse an object that is no engine, such as a class, or one that cannot be called."""
    need_object(engine, "__call__", "engine is an object such as Taylor() or Resampled()")


def need_paired(engine: Engine) -> Paired:
    """Return the engine if it can judge several predictions by the same draws, and refuse it otherwise."""
    need_engine(engine)
    if not isinstance(engine, Paired):
        what = "cannot judge several predictions by the same draws: it has no method `paired`, as Taylor has"
        raise DataError(f"{type(engine).__name__} {what}")
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


def make_size_model(**settings: Any) -> Any:
    """Return the size model as an engine, `erbayes.bayes.Modelled`, with its settings."""
    # imported here, since models lie above engines, and PyMC is an extra that takes seconds to import
    return import_extra("erbayes.bayes", "the size model needs PyMC", "bayes").Modelled(**settings)


@dataclass(frozen=True, slots=True)
class Advised:
    """Engine that takes the engine which `choose_engine` names for a sample, and remarks which and why."""

    in_study: bool = False

    def for_study(self) -> Engine:
        return Advised(in_study=True)

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> Estimates:
        engine, why = choose_engine(sample, metrics)
        engine = adapt_to_study(engine) if self.in_study else engine
        found = engine(sample, metrics, rng)
        return replace(found, remarks=(why, *found.remarks))

    def paired(self, samples: Sequence[Sample], metrics: Sequence[Metric], rng: Seed = None) -> Estimates:
        # one engine for all predictions: the closed form only if it suits each
        choices = [choose_engine(sample, metrics) for sample in samples]
        engine, why = next((one for one in choices if not isinstance(one[0], ClosedForm)), choices[0])
        found = need_paired(engine).paired(samples, metrics, rng)
        return replace(found, remarks=(why, *found.remarks))


def choose_engine(sample: Sample, metrics: Sequence[Metric]) -> tuple[Engine, Sentence]:
    """Return the engine that suits a sample and metrics, and a sentence that says which and why."""
    if draws_records(sample.design, sample.units):
        reason = "under draws of records its intervals cover and it assumes no model"
        return ClosedForm(), _say_taken("closed form", reason)
    # a few units carry the metrics, or the sample misses the large predicted clusters
    heavy = sample.unreached_links > NOTABLE or bool(warn_heavy_tail(fit_sample(sample, metrics)))
    if sample.heap is None and not heavy:
        reason = "no few units carry the estimates, and it assumes no model"
        return ClosedForm(), _say_taken("closed form", reason)
    model = make_size_model(cautious=True) if sample.units.by_entity else None
    if model is not None and model.takes(sample) and any(map(model.identifies, metrics)):
        if not any(model.trusts(sample, metric) for metric in metrics):
            reason = "no draw touches the largest clusters, and it allows for any sizes of entities there"
            return ClosedForm(), _say_taken("closed form", reason)
        reason = "entities were drawn and a few hold most links"
        if sample.heap is not None:
            reason = "a matcher that caps may have left the heap in the predicted sizes"
        return model, _say_taken("size model", reason)
    reason = "a few units carry the estimates, and no size model has such metrics or draws"
    return Jackknife(), _say_taken("jackknife", reason)


def _say_taken(engine: str, reason: str) -> Sentence:
    return Sentence(f"The {engine} was taken, since {reason}.", Grade.NOTE)


NAMES: dict[str, Callable[[], Engine]] = {
    "closed form": ClosedForm,
    "jackknife": Jackknife,
    "bootstrap": Resampled,
    "size model": make_size_model,
    "posterior": partial(make_size_model, weight=1.0),
    "advised": Advised,
}
"""Engines by the names that the doors take, each made when it is asked for."""
EngineName = Literal["closed form", "jackknife", "bootstrap", "size model", "posterior", "advised"]
"""These names, which type checkers read; hyphens and capitals are understood too."""
EngineLike = Engine | EngineName
"""What doors take for an engine."""


def find_engine(engine: Engine | str | None) -> Engine:
    """Return an engine by its name, or an engine as it is; the closed form by default."""
    if engine is not None and not isinstance(engine, str):
        need_engine(engine)
        return engine
    plain = (engine or "closed form").lower().replace("-", " ").replace("_", " ")
    if plain not in NAMES:
        raise DataError(f"no engine {engine!r}; there are {', '.join(map(repr, NAMES))}")
    return NAMES[plain]()


def run_engine(
    engine: Engine | str | None, sample: Sample, metrics: Sequence[Metric], rng: Seed = None
) -> Estimates:
    """Return metrics by an engine or its name, with both cases of draws that nobody could resolve."""
    return with_cases(find_engine(engine)(sample, metrics, rng), sample, metrics)


ENGINES = ("closed form", "bootstrap", "size model")
"""Engines that are set side by side if none are named, without a model, by resampling and with a model."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SideBySide(Pictured):
    """Results of several engines for the same metrics: one row per method, metric and kind of interval.

    `lacking` (method, metric): the reasons why a method has no estimate of a metric.
    """

    picture: ClassVar[str] = "side_by_side"
    rows: pd.DataFrame
    lacking: dict[tuple[str, str], str]

    def table(self) -> pd.DataFrame:
        """Return the rows, metric by metric."""
        return self.rows

    def describe_lacking(self) -> list[str]:
        """Return a sentence for each method without an estimate of some metrics, and why."""
        metrics: dict[tuple[str, str], list[str]] = {}
        for (method, metric), why in self.lacking.items():
            metrics.setdefault((method, why), []).append(metric)
        told = ((method, ", ".join(names), why) for (method, why), names in metrics.items())
        return [f"{method} has no estimate of {names}: {why}." for method, names, why in told]

    def __repr__(self) -> str:
        return "\n".join([Pictured.__repr__(self), *self.describe_lacking()])

    def _repr_html_(self) -> str:
        return Pictured._repr_html_(self) + "".join(f"<p>{escape(x)}</p>" for x in self.describe_lacking())


def side_by_side(
    results: Sample | Mapping[str, Any],
    metrics: MetricLike = DEFAULT_METRICS,
    *,
    engines: Iterable[str] | None = None,
    level: float = 0.95,
    kinds: Sequence[Kind] = (),
    rng: Seed = None,
) -> SideBySide:
    """Set several engines next to each other, in one table.

    Parameters
    ----------
    results : Sample, or mapping, name of the method -> result
        A sample, which each of `engines` estimates. Or results as engines return them, `Totals` or a Bayesian
        fit, to which the metrics are applied, or a Series of estimates without standard errors, such as
        `naive` returns, or the NotIdentified that an engine raised. A Bayesian fit has the intervals of
        `fit.estimate`. An engine that cannot use a sample has no row, and its reason is printed.
    metrics : Metric or str, or several
    engines : names, optional
        Engines of `erbayes.estimate`. By default the closed form, the bootstrap and the size model, which
        needs the extra `bayes`.
    level : float in (0, 1)
    kinds : sequence of Kind
        Each result has one row for every kind that suits it, or one of its own kind if none does.
    rng : Generator, int or None
        With a seed, each row is what `erbayes.estimate` returns with this seed.

    See Also
    --------
    erbayes.estimate : one engine, with its alarms.
    erbayes.plots.draw_side_by_side : the picture.

    Examples
    --------
    >>> import erbayes as eb
    >>> labels = {1: "x", 2: "x", 3: "y", 4: "z"}
    >>> units = eb.measure({1: "a", 2: "a", 3: "a", 4: "b"} | dict.fromkeys(range(5, 9), "c"), labels)
    >>> sample, b3 = eb.Sample(units, eb.UniformClusters()), [eb.metrics.b3_precision]
    >>> results = {"naive": eb.engine.naive(units, b3), "Taylor": eb.engine.taylor(sample, b3),
    ...            "jackknife": eb.engine.jackknife(sample, b3)}
    >>> side_by_side(results, b3).table()[["method", "estimate", "sd", "kind"]].round(3)
          method  estimate     sd  kind
    0      naive     0.667    NaN  none
    1     Taylor     0.667  0.144  Beta
    2  jackknife     0.667  0.128  Beta
    """
    check_level(level)
    metrics = resolve_metrics(metrics)
    if isinstance(results, Sample):
        # one seed for all, as at the front door, so that a row is what `estimate` returns for this engine
        results = _run_engines(results, metrics, engines or ENGINES, draw_seed(rng))
    need(results, Mapping, "give a Sample, or a mapping from names to results, as {'Taylor': taylor(sample)}")
    if not results:
        raise DataError("nothing to put side by side: pass at least one result")
    names = [m.name for m in metrics]
    rows, lacking = list[pd.DataFrame](), dict[tuple[str, str], str]()
    for method, result in results.items():
        parts, reasons = _split_result(result, metrics)
        lacking |= {(method, name): why for name, why in reasons.items()}
        for part in parts:
            table = _list_rows(part, level, kinds).assign(method=method)
            rows.append(table[[m not in reasons and m in names for m in table.index]])
    present = {name for part in rows for name in part.index}
    if absent := [name for name in names if name not in present]:
        why = dict.fromkeys(why for (_, metric), why in lacking.items() if metric in absent)
        raise NotIdentified(f"no result has {', '.join(absent)}: {'; '.join(why)}")
    table = pd.concat(rows).reset_index()
    table = table.sort_values("metric", key=lambda m: m.map(names.index), kind="stable", ignore_index=True)
    columns = ["method", "metric", "estimate", "sd", "lower", "upper", "level", "kind", "ess_bulk", "r_hat"]
    return SideBySide(table[columns], lacking)


def _run_engines(
    sample: Sample, metrics: Sequence[Metric], engines: Iterable[str], rng: int
) -> dict[str, Any]:
    """Return the result of each engine for a sample: its fit if it has one, or why it has no result."""
    results: dict[str, Any] = {}
    for name, engine in [(name, find_engine(name)) for name in engines]:
        try:
            # a fit answers metric by metric, if it lacks one of them
            if isinstance(engine, Fitting):
                results[name] = partial(engine.answer, engine.fitted(sample, rng))
            else:
                results[name] = engine(sample, metrics, rng)
        except NotIdentified as why:
            results[name] = why
    return results


def _split_result(result: Any, metrics: Sequence[Metric]) -> tuple[list[Estimates], dict[str, str]]:
    """Return results with the metrics that a result has, and the reasons why others are missing, by name."""
    if isinstance(result, NotIdentified):
        return [], {m.name: str(result) for m in metrics}
    if isinstance(result, pd.Series):
        k, values, names = len(result), result.to_numpy(dtype=float), tuple(result.index)
        cov, support = np.full((k, k), np.nan), ((-np.inf, np.inf),) * k
        undefined, df = tuple(EMPTY if np.isnan(x) else "" for x in values), np.full(k, np.inf)
        result = Estimates(names=names, mean=values, cov=cov, df=df, support=support, undefined=undefined)
    if isinstance(result, Estimates):
        reasons = dict(zip(result.names, result.reasons, strict=True))
        lacking = {m.name: reasons.get(m.name, "not among its metrics") for m in metrics}
        return [] if all(reasons.values()) else [result], {name: why for name, why in lacking.items() if why}
    ask = result if callable(result) else getattr(result, "estimate", None) or getattr(result, "apply", None)
    if ask is None:
        raise DataError(f"{type(result).__name__} is no result of an engine")
    parts, lacking = [], {}
    for metric in metrics:
        try:
            # one by one, so that a metric without an answer does not take the others with it
            part = ask([metric])
            lacking[metric.name] = part.reasons[0]
            parts += [] if part.reasons[0] else [part]
        except NotIdentified as why:
            lacking[metric.name] = str(why)
    return parts, {name: why for name, why in lacking.items() if why}


def _list_rows(part: Estimates, level: float, kinds: Sequence[Kind]) -> pd.DataFrame:
    if part.mean.ndim > 1:
        raise DataError(f"rows are of one sample, and not of {len(part.mean):,}: give that of each alone")
    chains: dict[str, Any] = {"ess_bulk": np.nan, "r_hat": np.nan}
    if part.values is not None and len(part.values) > 1:
        chains["ess_bulk"] = array_stats().ess(part.values, chain_axis=0, draw_axis=1, method="bulk")
        chains["r_hat"] = array_stats().rhat(part.values, chain_axis=0, draw_axis=1)
        if part.other is not None:  # chains say nothing of what is quoted from the closed form
            chains = {name: np.where(part.weight == 0, np.nan, x) for name, x in chains.items()}
    tables = [part.table(level, kind).assign(**chains) for kind in suitable(kinds, part)]
    return pd.concat(tables).rename(columns={"se": "sd", "se_bound": "sd"})
