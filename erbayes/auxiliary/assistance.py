"""Estimates assisted by a second clustering of the same records.

    eb.assisted(prediction, labels, design, by=second).table()

A second clustering S, such as the next release or a slower matcher, takes the place of the truth. The value
θ^S of a metric with S as the truth is known, since S covers all records. The labelled units estimate the same
value. The error of that estimate, θ^S - θ̂^S, is then known too, and corrects the estimate of the true value
(see `erbayes.engine.control_variate`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np

from .._internal.arrays import FloatArray, IntArray, Seed
from .._internal.errors import DataError, Grade, NotIdentified, Sentence, head, member, need, warn_of
from .._internal.remedies import Missing
from ..analysis.comparison import need_names, on_shared_records
from ..design.contract import Design
from ..design.sample import Sample, need_sample
from ..engine.closed_form import ClosedForm
from ..engine.fitted import columns_of
from ..metrics.definitions import DEFAULT_METRICS, Metric, MetricLike, resolve_metrics
from ..metrics.estimates import Estimates
from ..metrics.unseen import stack_components
from ..units.measuring import measure, read_framed
from .correction import AssistedEstimates, ControlMetrics, Linearised, correct
from .second import Second, refuse_elsewhere


@dataclass(frozen=True, slots=True)
class Assisted:
    """Estimates assisted by a second clustering: an engine.

    Parameters
    ----------
    seconds : Second, or several
        The second clustering, counted with the prediction that is judged (see `Second.of`). For a comparison,
        that of each prediction (see `Assisted.of`).

    Notes
    -----
    Clusters of the second clustering that no draw reaches (`Second.reference`) may be right as they are, or
    as the prediction has them. The interval covers both cases, and the estimate takes the second clustering
    to be right about a share λ of them. All else is as in `erbayes.engine.control_variate.ControlVariate`.

    See Also
    --------
    erbayes.assisted : one prediction, in one call.
    erbayes.two_phase : if the second opinion covers some records only.

    References
    ----------
    Cassel, Särndal and Wretman (1976), Biometrika 63, 615-620: difference and regression estimators.
    Mozer (2026), arXiv 2603.19160: prediction-powered inference as survey estimation.

    Examples
    --------
    >>> import erbayes as eb
    >>> truth = {i: i // 4 for i in range(800)}
    >>> prediction = {i: i // 4 if i < 400 else -i for i in range(800)}
    >>> labels = {i: c for i, c in truth.items() if c % 5 == 0}
    >>> sample = eb.Sample(eb.measure(prediction, labels), eb.UniformClusters())
    >>> engine = Assisted(Second.of(prediction, labels, by=truth))
    >>> engine(sample, [eb.metrics.pairwise_recall]).weights
    array([1.])
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
        """Return the second clusterings, one for each prediction."""
        return (self.seconds,) if isinstance(self.seconds, Second) else self.seconds

    @classmethod
    def of(
        cls,
        predictions: Mapping[str, Any],
        labels: Any,
        by: Any,
        *,
        name: str = "second",
        blocks: Any = None,
        missing: Missing | str = Missing.ERROR,
        frame: Any = None,
    ) -> Assisted:
        """Make the engine of a comparison, in which one second clustering assists each prediction.

        Parameters
        ----------
        predictions : mapping, name -> memberships
            The predictions that `erbayes.compare` judges.
        labels, name, blocks, frame
            As in `Second.of`.
        missing : Missing
            As in `erbayes.compare`.
        by : memberships
            The second clustering, which may be one of the predictions.

        Examples
        --------
        >>> import erbayes as eb
        >>> truth = {i: i // 4 for i in range(400)}
        >>> new = {i: i // 4 if i < 300 else -i for i in range(400)}
        >>> old = {i: i // 4 if i < 200 else -i for i in range(400)}
        >>> labels = {i: c for i, c in truth.items() if c % 2}
        >>> engine = Assisted.of({"old": old, "new": new}, labels, by=truth)
        >>> comparison = eb.compare({"old": old, "new": new}, labels, eb.UniformClusters(),
        ...                         "pairwise-recall", engine=engine)
        >>> comparison.differences()[["difference", "estimate"]].round(3)
          difference  estimate
        0  new - old      0.25
        """
        need_names(predictions)
        refuse_elsewhere(*predictions.values())
        missing = member(missing, Missing, "missing")
        labels, read = read_framed(predictions, labels, frame)
        within = {name: clustering for name, (clustering, _) in read.items()}
        shared = on_shared_records(within, missing is Missing.COMMON)
        if missing is Missing.COMMON:
            missing = Missing.ERROR
        if any(len(shared[each].records) < len(within[each].records) for each in shared):
            missing = Missing.OMIT
        options = {"name": name, "blocks": blocks, "missing": missing}
        return cls(tuple(Second.of(each, labels, by, **options) for each in shared.values()))

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> AssistedEstimates:
        estimates = self._correct(sample, metrics)[0]
        return replace(estimates, remarks=(*self.of_prediction(sample), *estimates.of_second()))

    def paired(self, samples: Sequence[Sample], metrics: Sequence[Metric], rng: Seed = None) -> Estimates:
        """As `Paired.paired`: the second clustering counted with its prediction assists each sample."""
        fits, residuals = zip(*(self._correct(sample, metrics) for sample in samples), strict=True)
        cov = samples[0].expansion.covariance(np.hstack(residuals))
        # pseudo-draws and unreached clusters are those of each sample alone
        np.fill_diagonal(cov, np.concatenate([np.diagonal(fit.cov) for fit in fits]))
        names = [f.name for f in fields(Estimates)]
        plain = [Estimates(**{name: getattr(fit, name) for name in names}) for fit in fits]
        return stack_components(*plain, cov=cov)

    def of_prediction(self, sample: Sample) -> list[Sentence]:
        """Return the alarm of a second clustering that is the prediction of a sample itself."""
        same = [s.name for s in self.counted if s.is_prediction and s.position(sample.units) is not None]
        what = (
            f"The second clustering {head(same[:1])} is the prediction itself, and shows none of its errors: "
            "give another one, or none."
        )
        return [Sentence(what, Grade.NOTE)] if same else []

    def _correct(self, sample: Sample, metrics: Sequence[Metric]) -> tuple[AssistedEstimates, FloatArray]:
        """Return the estimates of one sample, and what is left of the effects of draws."""
        need_sample(sample)
        linearised = Linearised.of(sample, resolve_metrics(metrics))
        for second in self.counted:
            if (position := second.position(sample.units)) is not None:
                control = _make_control(linearised, second, position)
                default = ClosedForm()(sample, linearised.metrics)
                return correct(linearised, control, sample.expansion, default)
        raise DataError(
            "no second clustering was counted with the prediction and the labels of this sample: make "
            "both from the same, with Second.of(prediction, labels, by) and measure(prediction, labels). "
            "In a sensitivity analysis, labels that are restored are others: use another engine"
        )


def _make_control(linearised: Linearised, second: Second, position: IntArray) -> ControlMetrics:
    """Return metrics with a second clustering as the truth, whose units at `position` are of the sample."""
    units = second.units.take(position)
    itself = f"{second.name!r} is the prediction itself" if second.is_prediction else ""
    reasons = []
    for metric in linearised.metrics:
        no_sums = [c.name for c in columns_of([metric])[0] if not c.identified(units)]
        reasons.append(itself or (f"{head(no_sums)} is no sum over records" if no_sums else ""))
    able = tuple(metric for metric, why in zip(linearised.metrics, reasons, strict=True) if not why)
    control = None
    # every metric is 0/0 with the second clustering as the truth
    with suppress(NotIdentified):
        control = Linearised.of(linearised.sample.with_units(units), able) if able else None
    known = partial(second.reference, position=position)
    changes = second.changes(linearised.sample)
    return ControlMetrics.of(linearised, second.name, reasons, control, known, changes)


def assisted(
    prediction: Any,
    labels: Any,
    design: Design,
    metrics: MetricLike = DEFAULT_METRICS,
    *,
    by: Any,
    blocks: Any = None,
    missing: Missing | str = Missing.ERROR,
    frame: Any = None,
) -> AssistedEstimates:
    """Estimate metrics of a prediction from a labelled sample, assisted by a second clustering.

    Parameters
    ----------
    prediction, labels, design, metrics, blocks, frame
        As in `erbayes.estimate`, in memory.
    by : memberships
        The second clustering of the same records, such as the next release. It need not be good. Of several,
        give the best one.
    missing : Missing
        `Missing.ERROR` or `Missing.OMIT`.

    Returns
    -------
    AssistedEstimates
        `.table()` shows the weight λ next to each metric. A metric that cannot be assisted has the default
        estimate and a note.

    Warns
    -----
    Alarm
        For each sentence of `erbayes.alarms` about the metrics that are not assisted, and if draws leave a
        large share of the second clustering unreached.

    Raises
    ------
    DataError, NotIdentified
        If the second clustering does not have all records of the prediction, if either is in files or tables,
        and as `erbayes.estimate`.

    See Also
    --------
    erbayes.compare : judges several predictions by the same sample.
    erbayes.auxiliary.Assisted : the engine, for reports and comparisons.

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
    pairwise-recall       0.5      0.05     1.0
    """
    metrics = resolve_metrics(metrics)
    options = {"blocks": blocks, "missing": missing, "frame": frame}
    engine = Assisted(Second.of(prediction, labels, by, **options))
    sample = Sample(measure(prediction, labels, **options), design)
    estimates = engine(sample, metrics)
    warn_of(engine.of_prediction(sample) + estimates.find_alarms(sample, metrics))
    return estimates
