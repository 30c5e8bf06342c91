"""Several predictions compared by domain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from ..._internal.arrays import FloatArray, Seed
from ..._internal.errors import need
from ...design.sample import Sample
from ...engine.contract import estimate_paired, need_paired
from ...engine.differences import subtract
from ...engine.named import EngineLike, find_engine
from ...metrics.columns import Links
from ...metrics.definitions import DEFAULT_METRICS, Metric, MetricLike, resolve_metrics
from ...metrics.estimates import Estimates
from ...metrics.intervals import Kind
from ...metrics.tables import Pictured
from ...units.clustering import Memberships
from ...units.grouping import Of
from ..comparison import Comparison
from .estimates import Settings, grouped
from .rows import FEWEST, Place, degrees, effective_draws, few_draws, intervals_table, name_place, tidy


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ComparedByDomain(Pictured):
    """Differences of several predictions by domain.

    `comparison`: of all records; `domains` (d,), `metrics` (k,); `by_metric` (d x k): each metric of the
    first domain, then of the second, and so on; `joint`: these of the first prediction, then of the second,
    and so on; `samples`: with groups, of each prediction; `effective` (p, d, k): draws of each estimate.
    """

    picture: ClassVar[str] = "by_domain"
    comparison: Comparison
    domains: tuple[Place, ...]
    metrics: tuple[Metric, ...]
    by_metric: tuple[Metric, ...]
    joint: Estimates
    samples: tuple[Sample, ...]
    effective: FloatArray
    fewest: float = FEWEST

    def table(
        self, level: float = 0.95, kind: Kind | None = None, *, simultaneous: bool = False
    ) -> pd.DataFrame:
        """Return each prediction minus each earlier one by domain, for parameters of `ByDomain.table`."""
        k, tables = len(self.metrics), []
        census = self.samples[0].expansion.census
        for (i, first), (j, second) in combinations(enumerate(self.comparison.predictions), 2):
            names = [name_place(domain) for domain in self.domains for _ in self.metrics]
            moved = subtract(
                self.joint, self.samples, self.by_metric, [(i, j)], names, self.comparison.overlaps
            )
            for at, metric in enumerate(self.metrics):
                fewer = np.minimum(self.effective[i, :, at], self.effective[j, :, at])
                few = ["" if census else few_draws(n, self.fewest) for n in fewer.tolist()]
                fit = moved.part(range(at, len(names), k))
                shown = intervals_table(fit, level, kind, few, [range(len(few))] * simultaneous)
                shown = shown.rename_axis("domain").reset_index()
                shown.insert(0, "difference", f"{second} - {first}")
                shown.insert(2, "metric", metric.name)
                shown.insert(list(shown.columns).index("lower"), "n_eff", fewer)
                tables.append(shown)
        return tidy(pd.concat(tables))


def compare_by_domain(
    comparison: Comparison,
    groups: Memberships | str,
    metrics: MetricLike = DEFAULT_METRICS,
    *,
    of: Of | str = Of.RECORDS,
    predictions: Mapping[str, Any] | None = None,
    links: Links = Links.SHARED,
    fewest: float = FEWEST,
    engine: EngineLike | None = None,
    rng: Seed = None,
) -> ComparedByDomain:
    """Compare predictions by domain, with paired standard errors.

    Parameters
    ----------
    comparison : Comparison
        As `erbayes.compare` returns it.
    groups, metrics, of, links, fewest, rng
        As in `by_domain`.
    predictions : mapping, name -> memberships, optional
        The predictions, if the variable is known for all their records.
    engine : Engine or str, optional
        As in `by_domain`, with a method `paired`.

    Raises
    ------
    DataError
        As `by_domain`, or if the engine has no method `paired`.

    Examples
    --------
    >>> import erbayes as eb
    >>> labels = {i: i // 4 for i in range(120)}
    >>> predictions = {"old": {i: i // 2 for i in range(120)}, "new": {i: i // 3 for i in range(120)}}
    >>> comparison = eb.compare(predictions, labels, eb.UniformClusters(), "pairwise-recall")
    >>> half = {i: "first" if i < 60 else "second" for i in range(120)}
    >>> compare_by_domain(comparison, half, "pairwise-recall").table()[["domain", "estimate"]].round(2)
       domain  estimate
    0   first      0.11
    1  second      0.11
    """
    need(comparison, Comparison, "a Comparison is needed, as compare(predictions, labels, design) makes it")
    given = predictions or {}
    samples, grouping = [], None
    for which, sample in zip(comparison.predictions, comparison.samples, strict=True):
        by_group, grouping = grouped(sample, groups, of, given.get(which))
        samples.append(by_group)
    assert grouping is not None  # a comparison has two samples or more
    paired = need_paired(find_engine(engine))
    given_settings = resolve_metrics(metrics), grouping.variable, links, fewest, paired, rng
    settings = Settings(*given_settings, everyone=grouping.everyone)
    counted = samples[0].units.grouping(grouping.variable).counted.sum(axis=1)
    places = settings.list_places([d for d, n in zip(grouping.domains(), counted, strict=True) if n])
    by_metric = settings.of_places(samples[0], places)
    joint = estimate_paired(paired, samples, by_metric, rng)
    if joint.values is None and not settings.everyone:
        joint = replace(joint, df=np.fmin(joint.df, np.concatenate([degrees(s, by_metric) for s in samples])))
    shape = (len(places), len(settings.metrics))
    # each place has labelled records, so that a metric without draws is 0/0
    effective = np.array([np.nan_to_num(effective_draws(s, by_metric)).reshape(shape) for s in samples])
    found = joint, tuple(samples), effective, settings.fewest
    return ComparedByDomain(comparison, places, settings.metrics, tuple(by_metric), *found)
