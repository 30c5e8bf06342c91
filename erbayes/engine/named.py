"""Engines by name, and the one that takes what suits a sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from .._internal.arrays import Seed
from .._internal.errors import DataError, Grade, Sentence, import_extra
from ..design.records import draws_records
from ..design.sample import Sample
from ..metrics.definitions import Metric
from ..metrics.estimates import Estimates
from ..metrics.unseen import NOTABLE
from .contract import Engine, adapt_to_study, need_engine, need_paired
from .diagnostics import warn_heavy_tail
from .fitted import fit_sample
from .known_clusters import ClosedForm
from .leave_one_out import Jackknife
from .replicates import Resampled
from .undecided import with_cases


def _import_bayes() -> Any:
    # imported here, since models lie above engines, and PyMC is an extra that takes seconds to import
    return import_extra("erbayes.bayes", "the size model needs PyMC", "bayes")


def make_size_model() -> Any:
    """Return the size model as an engine, `erbayes.bayes.Modelled`."""
    return _import_bayes().Modelled()


def make_posterior() -> Any:
    """Return the posterior of the size model alone as an engine, `erbayes.bayes.Modelled(weight=1)`."""
    return _import_bayes().Modelled(weight=1.0)


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
        """As `Paired.paired`, by one engine for all predictions: the closed form only if it suits each."""
        choices = [choose_engine(sample, metrics) for sample in samples]
        engine, why = next((one for one in choices if not isinstance(one[0], ClosedForm)), choices[0])
        found = need_paired(engine).paired(samples, metrics, rng)
        return replace(found, remarks=(why, *found.remarks))


def choose_engine(sample: Sample, metrics: Sequence[Metric]) -> tuple[Engine, Sentence]:
    """Return the engine that suits a sample and metrics, and a sentence that says which and why."""
    if draws_records(sample.design, sample.units):
        reason = "under draws of records its intervals cover and it assumes no model"
        return ClosedForm(), _say_taken("closed form", reason)
    if sample.heap is None and not _has_heavy_tail(sample, metrics):
        reason = "no few units carry the estimates, and it assumes no model"
        return ClosedForm(), _say_taken("closed form", reason)
    model = make_size_model() if sample.units.by_entity else None
    if model is not None and model.takes(sample) and any(map(model.identifies, metrics)):
        # the closed form misses large entities that were not drawn, and the posterior alone is too sure of
        # them; the size model, which averages both, misses less often (benchmarks/bayes-pool.md)
        reason = "entities were drawn and a few hold most links"
        if sample.heap is not None:
            reason = "a matcher that caps may have left the heap in the predicted sizes"
        return model, _say_taken("size model", reason)
    reason = "a few units carry the estimates, and no size model has such metrics or draws"
    return Jackknife(), _say_taken("jackknife", reason)


def _say_taken(engine: str, reason: str) -> Sentence:
    return Sentence(f"The {engine} was taken, since {reason}.", Grade.NOTE)


def _has_heavy_tail(sample: Sample, metrics: Sequence[Metric]) -> bool:
    """Return whether a few units carry the metrics, or the sample misses the large predicted clusters."""
    if sample.unreached_links > NOTABLE:
        return True
    return bool(warn_heavy_tail(fit_sample(sample, metrics)))


NAMES: dict[str, Callable[[], Engine]] = {
    "closed form": ClosedForm,
    "jackknife": Jackknife,
    "bootstrap": Resampled,
    "size model": make_size_model,
    "posterior": make_posterior,
    "advised": Advised,
}
"""Engines by the names that the doors take, each made when it is asked for."""
EngineName = Literal["closed form", "jackknife", "bootstrap", "size model", "posterior", "advised"]
"""These names, which type checkers read; hyphens and capitals are understood too."""


def find_engine(engine: Engine | str | None) -> Engine:
    """Return an engine by its name, or an engine as it is; the closed form by default."""
    if engine is None:
        return ClosedForm()
    if isinstance(engine, str):
        plain = engine.lower().replace("-", " ").replace("_", " ")
        if plain not in NAMES:
            raise DataError(f"no engine {engine!r}; there are {', '.join(map(repr, NAMES))}")
        return NAMES[plain]()
    need_engine(engine)
    return engine


def run_engine(
    engine: Engine | str | None, sample: Sample, metrics: Sequence[Metric], rng: Seed = None
) -> Estimates:
    """Return metrics by an engine or its name, with both cases of draws that nobody could resolve."""
    return with_cases(find_engine(engine)(sample, metrics, rng), sample, metrics)
