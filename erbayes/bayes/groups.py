"""Fits of several samples with partial pooling, and priors from earlier fits."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from .._internal.arrays import FloatArray, Seed, generator
from .._internal.errors import PACKAGE, DataError, need
from ..design.sample import Sample
from ..metrics.definitions import MetricLike
from ..metrics.uncertain import Draws, Estimates, Pictured
from .data import Evidence
from .fit import CHAINS, Fit, draw_and_join
from .model import SizeModel, need_model
from .model_average import ModelAverage
from .programs import compiled_for
from .samplers import Importance, NotConverged, need_draws
from .sharing import (
    SPREADS,
    BorrowedPriors,
    NormalLikelihood,
    align_grids,
    approximate_likelihoods,
    borrow,
    weigh,
    weigh_spreads,
)

ALL_PARTS = "every part"
"""Name of the spread that parts have in common, in a table with that of each part alone."""


def with_history(*fits: Fit, rng: Seed = None) -> SizeModel:
    """Return the model of earlier fits with priors from these fits, for the fit of a further sample.

    Each parameter of the new sample differs from that of the earlier ones by an unknown spread: a tenth, a
    fifth or two fifths of a standard deviation of its prior, or so much that the earlier fits do not count,
    each as likely as another before the data. Earlier fits that differ among themselves in sizes, retention
    or leakage count little, and the new sample is unrelated to all of them with prior probability .5.

    Parameters
    ----------
    *fits : Fit
        Fits of one model to samples that were drawn independently, such as those of earlier releases. A fit
        with history brings the samples of its history. None may share draws with the sample that the model
        is for, since these would count twice, which nothing refuses.

    Returns
    -------
    SizeModel
        For `fast`, `Modelled` and `prior`.

    Raises
    ------
    DataError
        No fit, fits of different models, or priors that are no `NormalPrior`, `StudentTPrior` or smooth
        function.

    Notes
    -----
    The likelihood of the earlier samples is approximated by a normal one, that of the new sample is exact.
    The known numbers of predicted links of the earlier releases are not used. Releases of another source that
    agree with each other still mislead a sample of entities, which does not show the very large entities
    about which they are wrong (recall scores 2.3 times that alone, in the geometric mean over sources).

    References
    ----------
    Schmidli et al. (2014), Biometrics 70, 1023-1032.

    Examples
    --------
    >>> import erbayes as eb
    >>> from erbayes import bayes, datasets
    >>> case = datasets.people()
    >>> sample = eb.Sample(eb.measure(case.prediction, case.labels), eb.UniformRecords(case.drawn))
    >>> model = bayes.with_history(bayes.fast(sample, rng=1), rng=1)
    >>> bayes.prior(case.prediction, model, "pairwise-recall", rng=1).interval().round(1)
    array([[0.3, 1. ]])
    """
    if not fits:
        raise DataError("with_history needs an earlier fit, as fast(sample) returns it")
    for fit in fits:
        need(fit, Fit, "with_history takes earlier fits, as fast(sample) returns and pickle stores them")
    model = _find_common_model([fit.model for fit in fits])
    evidence = list[Evidence]()
    for fit in fits:
        evidence += [*(fit.model.borrowed.earlier if fit.model.borrowed else ()), fit.evidence]
    distinct = [*{id(e.units): e for e in evidence}.values()]
    draws = max(fit.population.true.shape[1] for fit in fits)
    with compiled_for(len(distinct)):
        return SeparateFits.of(model, distinct, draws, generator(rng)).inform()


def _find_common_model(models: Sequence[SizeModel]) -> SizeModel:
    """Return the only model of several, without its history."""
    first, *others = (replace(model, borrowed=None) for model in models)
    if any(other != first for other in others):
        raise DataError("fits of different models cannot share: fit each with the same SizeModel")
    return first


def _refuse_common_entities(names: Sequence[Any], evidence: Sequence[Evidence]) -> None:
    """Refuse groups that judge one prediction of the same entities, since these would count twice."""
    ids = [set(e.units.ids) for e in evidence]
    for (one, mine), (other, theirs) in combinations(zip(names, ids, strict=True), 2):
        if 2 * len(mine & theirs) > min(len(mine), len(theirs)):
            raise DataError(
                f"{len(mine & theirs):,} sampled entities are in both {one!r} and {other!r}, so that they "
                "would count twice: groups need draws of their own; eb.compare and eb.thresholds judge "
                "several predictions by one sample"
            )


@dataclass(frozen=True, eq=False)
class SeparateFits:
    """Groups that are each fitted under the prior alone: compiled parts, and likelihoods by part."""

    model: SizeModel
    common: Mapping[str, Any]
    evidence: Sequence[Evidence]
    tied: Mapping[str, ModelAverage]
    likelihoods: Mapping[str, Sequence[Mapping[str, NormalLikelihood]]]

    @classmethod
    def of(
        cls, model: SizeModel, evidence: Sequence[Evidence], draws: int, rng: np.random.Generator
    ) -> SeparateFits:
        """Fit each group, with this number of draws in each chain."""
        common, evidence = align_grids(evidence)
        likelihoods = dict[str, list[dict[str, NormalLikelihood]]]()
        for e in evidence:
            tied = model.compile(e.data)
            drawn = Importance(draws, CHAINS)([*tied.values()], rng)
            for (place, part), of_part in zip(tied.items(), drawn, strict=True):
                likelihoods.setdefault(place, []).append(approximate_likelihoods(part, of_part))
        return cls(model, common, evidence, tied, likelihoods)

    def inform(self, without: int | None = None) -> SizeModel:
        """Return the model with priors from all groups, or from all but one."""
        which = [i for i in range(len(self.evidence)) if i != without]
        groups = {place: [of_part[i] for i in which] for place, of_part in self.likelihoods.items()}
        earlier = tuple(self.evidence[i] for i in which)
        return replace(self.model, borrowed=BorrowedPriors(self.common, *borrow(self.tied, groups), earlier))

    @property
    def spread(self) -> dict[str, FloatArray]:
        """Posterior probabilities of `SPREADS`, of each part alone and of `ALL_PARTS`."""
        log_joints = {place: weigh(part, self.likelihoods[place])[0] for place, part in self.tied.items()}
        each = {place: weigh_spreads([log_joint]) for place, log_joint in log_joints.items()}
        return each | {ALL_PARTS: weigh_spreads(log_joints.values())}


def fit_hierarchical(
    samples: Mapping[str, Sample | Fit],
    model: SizeModel | None = None,
    *,
    draws: int = 1000,
    rng: Seed = None,
) -> HierarchicalFit:
    """Fit a size model to several samples with partial pooling, such as those of five releases.

    The parameters of each group differ from those of all by a spread, whose posterior depends on sizes,
    retention and leakage together. The prior of each group comes from the others, and is that of the group
    alone if groups are unrelated (see `with_history`).

    Parameters
    ----------
    samples : mapping, name -> Sample or Fit
        Two groups or more with draws of their own, such as releases, sources or groups of records. Of a
        fit, the sample is taken, and no history.
    model : SizeModel, optional
        By default that of the fits, or `SizeModel()`.
    draws : int
        Posterior draws of each group, as in `fast`.

    Raises
    ------
    DataError
        As `with_history`, fewer than two groups, or groups with the same entities.
    NotIdentified
        As `fast`.

    Warns
    -----
    NotConverged
        As `fast`, with the name of the group.

    Examples
    --------
    >>> import erbayes as eb
    >>> from erbayes import bayes
    >>> from erbayes.study import UniformEntities, draw_samples, populations as sim
    >>> releases = [sim.simulate(sim.Zeta(2.5, 30), sim.Splits(0.2), 2000, rng=i) for i in range(2)]
    >>> rng = np.random.default_rng(1)
    >>> drawn = [draw_samples(UniformEntities(), r.units, 50, 1, rng).separate[0] for r in releases]
    >>> fits = bayes.fit_hierarchical(dict(zip(["spring", "autumn"], drawn)), draws=200, rng=1)
    >>> fits.table(metrics="pairwise-recall")["group"].tolist()
    ['spring', 'autumn']
    """
    number, rng = -(-need_draws(draws) // CHAINS), generator(rng)
    if len(samples) < 2:
        raise DataError(f"{len(samples)} groups: fit_hierarchical needs two samples or more")
    of_fits = [one.model for one in samples.values() if isinstance(one, Fit)]
    models = of_fits if model is None and of_fits else [need_model(model)]
    drawn = {name: one.sample if isinstance(one, Fit) else one for name, one in samples.items()}
    evidence = [Evidence.of(sample) for sample in drawn.values()]
    _refuse_common_entities([*drawn], evidence)
    fits, model = {}, _find_common_model(models)
    with compiled_for(2 * len(drawn)):
        separate = SeparateFits.of(model, evidence, number, rng)
        for i, (name, sample) in enumerate(drawn.items()):
            sampler = Importance(number, CHAINS)
            fits[name] = draw_and_join(sample, separate.inform(i), separate.evidence[i], sampler, rng)
            if problems := fits[name].problems():
                warnings.warn(f"{name}: {'; '.join(problems)}", NotConverged, skip_file_prefixes=PACKAGE)
    return HierarchicalFit(fits, separate.spread)


@dataclass(frozen=True, eq=False, repr=False)
class HierarchicalFit(Pictured):
    """Fits of several groups with partial pooling, by name, and `weights` of the spreads, by part."""

    picture: ClassVar[str] = "forest"
    fits: Mapping[str, Fit]
    weights: Mapping[str, FloatArray]

    def estimates_by_name(self) -> Mapping[str, Estimates]:
        """Return the recommended draws of each group, of the metrics of `table`."""
        return {name: fit.estimates_by_name()[""] for name, fit in self.fits.items()}

    def table(self, level: float = 0.95, metrics: MetricLike | None = None) -> pd.DataFrame:
        """Return the table of each fit (see `Fit.table`), with its group in a first column."""
        tables = {name: fit.table(level, metrics) for name, fit in self.fits.items()}
        return pd.concat(tables, names=["group"]).reset_index(level="group")

    def apply(self, metrics: MetricLike) -> Draws:
        """Return posterior draws of metrics in all groups, (chain, draw, group x metric).

        Draws of groups are taken for independent, so that intervals of differences are rather too wide.
        """
        draws = [fit.apply(metrics) for fit in self.fits.values()]
        return Draws(
            tuple(f"{group}: {name}" for group, d in zip(self.fits, draws, strict=True) for name in d.names),
            np.concatenate([d.values for d in draws], axis=-1),
            tuple(one for d in draws for one in d.support),
        )

    @property
    def spread(self) -> pd.DataFrame:
        """Posterior probabilities of the spreads, in standard deviations of the prior, and their mean, by
        part.

        The row of every part is that of the fits, and rows of single parts show where groups differ. At 1
        groups share nothing.
        """
        table = pd.DataFrame(self.weights, index=pd.Index(SPREADS, name="spread")).T.rename_axis("part")
        return table.assign(mean=table.to_numpy() @ SPREADS)
