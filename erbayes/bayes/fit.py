"""A fit of a size model: tables, pools with the closed form, alarms and words."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from .._internal.errors import NotIdentified, Sentence
from ..engine import PooledDraws, taylor
from ..engine.pool import PooledQuantiles, pool_quantiles
from ..metrics.columns import TRUE_LINKS
from ..metrics.definitions import Metric, Wanted, chosen, pairwise_precision, pairwise_recall
from ..metrics.uncertain import Draws
from .by_law import FittedLaws
from .doubts import alarms, is_disowned, is_unseen
from .explained import explained
from .tree import FittedTree

MODEL = 0.65
"""Weight of a size model in its pool with the closed form, chosen on populations of their own.

Under records .6 to .7 have the same coverage, and with less weight precision under clusters has an interval
score above .6 of the closed form's (benchmarks/bayes-pool.md).
"""
NOTE = (
    f"The interval is a pool of a size model, with a weight of {MODEL:g}, and of the closed form: it depends "
    "on a prior for the sizes and errors of the entities that were not drawn."
)
"""What every pool says of itself."""


@dataclass(frozen=True, eq=False, repr=False)
class Fit(FittedLaws, FittedTree):
    """A fit of a size model: posterior draws of completed populations and of their metrics.

    Functions `fast` and `nuts` make it. `table` returns estimates and intervals, `apply` draws of metrics.

    Attributes
    ----------
    sample : Sample
    model : SizeModel
    evidence : Evidence
        The data of the model.
    draws : Joined
        Posterior draws of the tied parts: sizes, retention and leakage.
    population : Completed
        Completed populations, one per draw.
    seed : int
        Seed of the untied parts, which are fitted when a metric first needs them.
    parts : dict, part -> dict, law -> Drawn
        Draws of each law of the tied parts, before they are tied.
    untied : dict, stream -> dict
        Quantities by size of the untied parts that were fitted so far.
    matched : Matched or None
        The second clustering beside the sampled entities.
    truth : Fit or None
        The fit of true entities by a second clustering, given the common links of this fit.

    Examples
    --------
    >>> import erbayes as eb
    >>> from erbayes import bayes, datasets
    >>> case = datasets.people()
    >>> sample = eb.Sample(eb.measure(case.prediction, case.labels), eb.UniformRecords(case.drawn))
    >>> fit = bayes.fast(sample, rng=1)
    >>> fit.pooled("pairwise-recall").interval().round(2)
    array([[0.88, 0.94]])
    >>> fit.explain()[:14]
    'The sample has'
    """

    def _tabulate(self, level: float, metrics: Sequence[Metric]) -> pd.DataFrame:
        """Return all columns of `table`."""
        table = super()._tabulate(level, metrics)
        bounds = np.full((len(table), 2), np.nan)
        for i, metric in enumerate(metrics):
            with suppress(NotIdentified):
                bounds[i] = self.pooled(metric).interval(level)[0]
        table = table.assign(posterior_lower=table["lower"], posterior_upper=table["upper"])
        table = table.assign(pooled_lower=bounds[:, 0], pooled_upper=bounds[:, 1])
        led = table.index.isin([m.name for m in self.disowned(metrics)]) & table["pooled_lower"].notna()
        table.loc[led, ["lower", "upper"]] = table.loc[led, ["pooled_lower", "pooled_upper"]].to_numpy()
        table.loc[led, "kind"] = PooledQuantiles().label((0.0, 1.0))
        if self.matched is not None:
            table = table.assign(by_second=self.by_second.sum(-1).mean())
        if not self.by_law:
            return table
        under = self.laws(metrics, level).query("not rejected").groupby("metric")
        return table.assign(law_lower=under.lower.min(), law_upper=under.upper.max())

    def pooled(self, metrics: Wanted) -> PooledDraws:
        """Return metrics by a pool of this fit and the closed form, (chain, draw, k).

        Each end of an interval is .65 times that of the posterior, which depends on priors for entities
        outside the sample, plus .35 times that of the closed form, which depends on the design alone. If
        over a quarter of the true links are expected in entities larger than any sampled one, intervals of
        metrics that count true links span both. This is no posterior, although each draw is a posterior
        draw that was moved.

        Raises
        ------
        NotIdentified
            A metric that has no draws, or that the sample cannot estimate by the closed form.
        """
        metrics = chosen(metrics)
        posterior, closed = self.apply(metrics), taylor(self.sample, metrics).apply(metrics)
        closed = replace(closed, names=posterior.names)
        unseen = [m.name for m in metrics if TRUE_LINKS in m.columns and is_unseen(self)]
        pooled = pool_quantiles([posterior, closed], [MODEL, 1 - MODEL], outer=unseen)
        return replace(pooled, note=NOTE)

    def disowned(self, metrics: Wanted) -> tuple[Metric, ...]:
        """Return the metrics whose posterior intervals the alarm of recall disowns: those of true links.

        There are none without the alarm (see `alarms`). `table`, `erbayes.side_by_side` and reports show the
        pool of these metrics first.
        """
        if not self.is_disowned:
            return ()
        return tuple(metric for metric in chosen(metrics) if TRUE_LINKS in metric.columns)

    def quoted(self, metrics: Wanted) -> Draws:
        """Return draws of metrics to quote, (chain, draw, k): of the pool for those that are disowned."""
        draws, metrics = self.apply(metrics), chosen(metrics)
        values = draws.values.copy()
        for metric in self.disowned(metrics):
            values[..., metrics.index(metric)] = self.pooled(metric).values[..., 0]
        return replace(draws, values=values)

    @cached_property
    def is_disowned(self) -> bool:
        """Whether the interval of recall is far shorter than the share of links that no draw has seen."""
        return is_disowned(self)

    @cached_property
    def alarms(self) -> list[Sentence]:
        """Sentences about metrics that rest on entities which the sample lacks, each with grade and remedy.

        There is one for recall if more than a quarter of the true links are expected in entities larger than
        any sampled one, and the interval of recall is shorter than half of that share. There is one if a
        quarter or more are in clusters of the second clustering that are larger than any that a sampled
        entity matches, and a note if nothing is taken from the second clustering.
        """
        return alarms(self)

    def explain(self, level: float = 0.95) -> str:
        """Return in words what pairwise precision and recall rest on, with intervals of this level.

        Paragraphs are about the sample, the prediction, the second clustering and the priors.
        """
        disowned = self.disowned([pairwise_precision, pairwise_recall])
        pooled = {metric.name: self.pooled(metric).interval(level)[0] for metric in disowned}
        return explained(self, level, pooled)
