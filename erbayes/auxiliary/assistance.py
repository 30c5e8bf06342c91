"""Estimates with the help of a second clustering of the same records.

    eb.assisted(prediction, labels, design, by=second).table()

A second clustering S, such as the next release or a slower matcher, stands in for the truth. The value θ^S of
a metric with S as the truth is known, since S covers all records. The labelled units estimate the same value.
The error of that estimate, θ^S - θ̂^S, is then known too, and corrects the estimate of the true value:

    θ̂ + λ (θ^S - θ̂^S)

The correction is a control variate: it has mean 0 to first order, whatever S is. A poor S can lengthen
intervals, not bend them.

Sources: Cassel, Särndal and Wretman (1976), Biometrika 63, 615-620 (difference and regression estimators).
Angelopoulos, Duchi and Zrnic (2023), arXiv 2311.01453 (PPI++, the weight λ). Mozer (2026), arXiv 2603.19160
(prediction-powered inference as survey estimation).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from .._internal.arrays import FloatArray, IntArray, Seed
from .._internal.errors import Alarm, DataError, Grade, NotIdentified, Sentence, head, member, need
from .._internal.policies import Missing
from .._internal.tables import is_table
from ..analysis.comparison import need_names, on_shared_records
from ..design.contract import Design
from ..design.sample import Sample, need_sample
from ..engine.fitted import columns_of
from ..large.sources import lies_elsewhere
from ..metrics.definitions import USUAL, Metric, Wanted, chosen
from ..metrics.uncertain import Normal, stacked
from ..units.clustering import Clustering
from ..units.frame import framed
from ..units.measuring import measure, sampled_labels
from ..units.units import Units
from .correction import ControlVariate, Linearised, correct
from .estimates import AssistedEstimates
from .second import Second, refuse_elsewhere


@dataclass(frozen=True, slots=True)
class Assisted:
    """Estimates with the help of second clusterings: an engine.

    Parameters
    ----------
    seconds : Second, or several
        Second clusterings, counted with the prediction that is judged (see `Second.of`). For a comparison,
        those of each prediction (see `Assisted.of`).

    Notes
    -----
    For each metric let d_s be the effect of draw s on the estimate, and e_s that on the estimate with the
    second clustering as the truth.

    - λ is Σde/Σe², cut to [0, 1]. With several second clusterings the best one is first, and others take over
      a part of its weight.
    - The variance is that of the design for d - λe.
    - Two pseudo-draws stand for errors of the second clustering that no draw has shown. Each is of an entity
      like any other, about which it is wholly wrong (see `erbayes.auxiliary.correction.Linearised.pseudo`).
    - The second clustering or the prediction may be right about clusters out of reach (`Second.reference`).
      The interval reaches over both answers, and the estimate takes the second to be right at the rate λ.

    Examples
    --------
    >>> import erbayes as eb
    >>> truth = {i: i // 4 for i in range(800)}
    >>> prediction = {i: i // 4 if i < 400 else -i for i in range(800)}
    >>> labels = {i: c for i, c in truth.items() if c % 5 == 0}
    >>> sample = eb.Sample(eb.measure(prediction, labels), eb.UniformClusters())
    >>> engine = Assisted(Second.of(prediction, labels, by=truth))
    >>> engine(sample, [eb.metrics.pairwise_recall]).weights
    array([[1.]])
    """

    seconds: Second | tuple[Second, ...]

    def __post_init__(self) -> None:
        seconds = (self.seconds,) if isinstance(self.seconds, Second) else tuple(self.seconds)
        if not seconds:
            raise DataError("no second clustering: pass one, such as Second.of(prediction, labels, by)")
        for second in seconds:
            need(second, Second, "a second clustering is counted by Second.of(prediction, labels, by)")
        object.__setattr__(self, "seconds", seconds)

    def __repr__(self) -> str:
        counted = ", ".join(map(repr, self.counted))
        return f"Assisted({counted})"

    @property
    def counted(self) -> tuple[Second, ...]:
        """Return the second clusterings."""
        return (self.seconds,) if isinstance(self.seconds, Second) else self.seconds

    @classmethod
    def of(
        cls,
        predictions: Mapping[str, Any],
        labels: Any,
        by: Mapping[str, Any] | None = None,
        *,
        blocks: Any = None,
        missing: Missing | str = Missing.ERROR,
        frame: Any = None,
    ) -> Assisted:
        """Make the engine of a comparison: each prediction is helped by others.

        Parameters
        ----------
        predictions : mapping, name -> memberships
            The predictions that `erbayes.compare` judges.
        labels, blocks, frame
            As in `Second.of`.
        missing : Missing
            As in `erbayes.compare`.
        by : mapping, name -> memberships, optional
            Second clusterings. By default each prediction is helped by all others.

        Examples
        --------
        >>> import erbayes as eb
        >>> truth = {i: i // 4 for i in range(400)}
        >>> new = {i: i // 4 if i < 300 else -i for i in range(400)}
        >>> old = {i: i // 4 if i < 200 else -i for i in range(400)}
        >>> labels = {i: c for i, c in truth.items() if c % 2}
        >>> engine = Assisted.of({"old": old, "new": new}, labels, by={"slow": truth})
        >>> comparison = eb.compare({"old": old, "new": new}, labels, eb.UniformClusters(),
        ...                         "pairwise-recall", engine=engine)
        >>> comparison.differences()[["difference", "estimate"]].round(3)
          difference  estimate
        0  new - old     0.251
        """
        need_names(predictions)
        if by is not None and not _is_named(by):
            raise DataError(
                f"by must map names to second clusterings, as in by={{'slow': slow}}, {_describe_other(by)}"
            )
        helpers = dict(predictions) if by is None else by
        refuse_elsewhere(*predictions.values(), *helpers.values())
        labels, missing = sampled_labels(labels), member(missing, Missing, "missing")
        within = {n: framed(p, labels, frame, f"prediction {n!r}")[0] for n, p in predictions.items()}
        shared = on_shared_records(within, missing is Missing.COMMON)
        if missing is Missing.COMMON:
            missing = Missing.ERROR
        if any(shared[name] is not within[name] for name in shared):
            missing = Missing.OMIT
        seconds = tuple(
            Second.of(prediction, labels, helper, name=other, blocks=blocks, missing=missing)
            for name, prediction in shared.items()
            for other, helper in helpers.items()
            if by is not None or other != name
        )
        return cls(seconds)

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> AssistedEstimates:
        found = self._correct(sample, metrics)[0]
        return replace(found, remarks=(*self.of_prediction(sample), *found.of_seconds()))

    def paired(self, samples: Sequence[Sample], metrics: Sequence[Metric], rng: Seed = None) -> Normal:
        """As `Paired.paired`: each sample is helped by the second clusterings counted with its prediction."""
        fits, residuals = zip(*(self._correct(sample, metrics) for sample in samples), strict=True)
        cov = samples[0].expansion.variance.covariance(np.hstack(residuals))
        # errors that no draw shows, and clusters out of reach, are those of each sample alone
        np.fill_diagonal(cov, np.concatenate([np.diagonal(fit.cov) for fit in fits]))
        return stacked([fit.plain() for fit in fits], cov)

    def of_prediction(self, sample: Sample) -> list[Sentence]:
        """Return the alarm of second clusterings that are the prediction of a sample itself."""
        own = [s.name for s in self.counted if s.is_prediction and s.position(sample.units) is not None]
        if not own:
            return []
        what = (
            f"The second clustering {head(own)} is the prediction itself, and shows none of its errors: give "
            "another one, or none."
        )
        return [Sentence(what, Grade.NOTE)]

    def _correct(self, sample: Sample, metrics: Sequence[Metric]) -> tuple[AssistedEstimates, FloatArray]:
        """Return the estimates of one sample, and what is left of the effects of draws."""
        need_sample(sample)
        own = Linearised.of(sample, chosen(metrics))
        found = [(second, second.position(sample.units)) for second in self.counted]
        variates = [_make_variate(own, second, at) for second, at in found if at is not None]
        if not variates:
            raise DataError(
                "no second clustering was counted with the prediction and the labels of this sample: make "
                "both from the same, with Second.of(prediction, labels, by) and measure(prediction, labels). "
                "In a sensitivity analysis, labels that are restored are others: use another engine"
            )
        return correct(own, variates, sample.expansion.variance)


def _make_variate(own: Linearised, second: Second, position: IntArray) -> ControlVariate:
    """Return a second clustering as a control variate, whose units at `position` are those of the sample."""
    units = second.units.take(position)
    itself = f"{second.name!r} is the prediction itself" if second.is_prediction else ""
    reasons = [itself or _explain_no_sum(metric, units) for metric in own.metrics]
    able = tuple(metric for metric, why in zip(own.metrics, reasons, strict=True) if not why)
    effects = None
    # every metric is 0/0 with the second clustering as the truth
    with suppress(NotIdentified):
        effects = Linearised.of(own.sample.with_units(units), able) if able else None
    known = partial(second.reference, position=position)
    return ControlVariate.of(own, second.name, reasons, effects, known, second.changes(own.sample))


def _explain_no_sum(metric: Metric, units: Units) -> str:
    """Return why a metric is no function of sums over records; "" if it is one."""
    counted, _ = columns_of([metric])
    lacking = [c.name for c in counted if not c.identified(units)]
    return f"{head(lacking)} is no sum over records" if lacking else ""


def assisted(
    prediction: Any,
    labels: Any,
    design: Design,
    metrics: Wanted = USUAL,
    *,
    by: Any,
    blocks: Any = None,
    missing: Missing | str = Missing.ERROR,
    frame: Any = None,
) -> AssistedEstimates:
    """Estimate metrics of a prediction from a labelled sample, with the help of a second clustering.

    Parameters
    ----------
    prediction, labels, design, metrics, blocks, frame
        As in `erbayes.estimate`.
    by : memberships, or mapping of name -> memberships
        One or several second clusterings of the same records, such as the next release. None of them needs
        to be good. Files and tables are read into memory first.
    missing : Missing
        `Missing.ERROR` or `Missing.OMIT`.

    Returns
    -------
    AssistedEstimates
        `.table()` shows the weight λ beside each metric. One without help has the default estimate and a
        note.

    Warns
    -----
    Alarm
        For each sentence of `erbayes.alarms` about the metrics without help, if a second clustering is the
        prediction itself, and if a large share of it is out of reach.

    Raises
    ------
    DataError, NotIdentified
        If the second clustering does not have all records of the prediction, and as `erbayes.estimate`.

    Examples
    --------
    >>> import erbayes as eb
    >>> truth = {i: i // 4 for i in range(400)}
    >>> prediction = {i: i // 4 if i < 200 else -i for i in range(400)}
    >>> labels = {i: c for i, c in truth.items() if c % 5 == 0}
    >>> estimates = eb.assisted(prediction, labels, eb.UniformClusters(), "pairwise-recall", by=truth)
    >>> estimates.table()[["estimate", "se_bound", "lambda"]].round(3)
                     estimate  se_bound  lambda
    metric
    pairwise-recall     0.503      0.05     1.0
    """
    metrics = chosen(metrics)
    options = {"blocks": blocks, "missing": missing, "frame": frame}
    helpers = {str(name): c for name, c in (by if _is_named(by) else {"second": by}).items()}
    refuse_elsewhere(prediction, *helpers.values())
    seconds = tuple(Second.of(prediction, labels, c, name=n, **options) for n, c in helpers.items())
    units = measure(prediction, labels, **options)
    sample = Sample(units, design)
    engine = Assisted(seconds)
    estimates = engine(sample, metrics)
    for alarm in engine.of_prediction(sample) + estimates.alarms(sample, metrics):
        warnings.warn(alarm, Alarm, stacklevel=2)
    return estimates


def _is_named(by: Any) -> bool:
    """Return whether second clusterings are a mapping of names, not the memberships of one."""
    return (
        isinstance(by, Mapping)
        and len(by) > 0
        and all(
            isinstance(c, Mapping | pd.Series | Clustering)
            or is_table(c)
            or (lies_elsewhere(c) and not isinstance(c, str))
            for c in by.values()
        )
    )


def _describe_other(by: Any) -> str:
    """Return what stands in the place of a mapping of second clusterings, in words."""
    if isinstance(by, Mapping):
        values = {type(value).__name__ for value in by.values()}
        return f"not to {head(sorted(values))}" if values else "and it is empty"
    return f"not be a {type(by).__name__}"
