"""Fits that teach each other: partial pooling over groups, and priors from earlier fits."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from .._internal.arrays import FloatArray, Seed, generator
from .._internal.errors import DataError, need
from ..design.sample import Sample
from ..metrics.definitions import Wanted
from ..metrics.uncertain import Draws, Tabled
from .evidence import Evidence
from .fit import CHAINS, Fit, draw_and_join
from .laws import OneOf
from .model import SizeModel, need_model
from .samplers import Importance, NotConverged, need_draws
from .sharing import SPREADS, Shared, Site, find_sites, in_common, tell, weigh, weigh_spreads

EVERY = "every part"
"""Name of the spread that parts have in common, beside what each says alone."""


def after(*fits: Fit, rng: Seed = None) -> SizeModel:
    """Return the model of earlier fits with priors that they have taught, for the fit of a further sample.

    Each parameter of the new sample differs from that of the earlier ones by a spread, and it is not known
    which: a tenth, a fifth or two fifths of a standard deviation of its prior, or so much that the earlier
    fits tell nothing. Each is as likely as another before the data. The earlier fits, if there are several,
    weigh the spreads by the evidence of all parts together, so that they teach nothing if they differ among
    themselves in sizes, retention or leakage. The new sample then weighs them part by part, and is a
    stranger to all earlier ones with probability .5.

    Parameters
    ----------
    *fits : Fit
        Fits of one model to samples that were drawn independently, such as those of earlier releases. A fit
        that was itself taught brings the samples that taught it. None may share draws with the sample that
        the model is for, since these would count twice, which nothing refuses.
    rng : Generator, int or None

    Returns
    -------
    SizeModel
        For `fast`, `Modelled` and `prior`.

    Raises
    ------
    DataError
        No fit, fits of different models, samples with the same entities, or
        priors that are no `Level`, `Slope` or smooth function.

    Notes
    -----
    This is a robust meta-analytic-predictive prior (Schmidli et al. 2014, Biometrics 70, 1023-1032). The
    likelihood of the earlier samples is approximated by a normal one, that of the new sample is exact. The
    known numbers of predicted links of the earlier releases, which tie their parts, are not used. Releases of
    another source that agree with each other still mislead a sample of entities (recall scores 2.3 times that
    alone, in the geometric mean over sources), which does not show the giants about which they are wrong.

    Examples
    --------
    >>> import erbayes as eb
    >>> from erbayes import bayes, datasets
    >>> case = datasets.people()
    >>> sample = eb.Sample(eb.measure(case.prediction, case.labels), eb.UniformRecords(case.drawn))
    >>> model = bayes.after(bayes.fast(sample, rng=1), rng=1)
    >>> bayes.prior(case.prediction, model, "pairwise-recall", rng=1).interval().round(1)
    array([[0.3, 1. ]])
    """
    if not fits:
        raise DataError("after needs an earlier fit, as fast(sample) returns it")
    for fit in fits:
        need(fit, Fit, "after takes earlier fits, as fast(sample) returns and pickle keeps them")
    model = _find_common_model([fit.model for fit in fits])
    brought = [e for fit in fits for e in (*_list_earlier(fit), fit.evidence)]
    every = [*{id(e.units): e for e in brought}.values()]
    draws = max(fit.population.true.shape[1] for fit in fits)
    return Learnt.of(model, every, draws, generator(rng)).teach()


def _list_earlier(fit: Fit) -> tuple[Evidence, ...]:
    return () if fit.model.shared is None else fit.model.shared.earlier


def _find_common_model(models: Sequence[SizeModel]) -> SizeModel:
    """Return the only model of several, without what taught it."""
    first, *others = (replace(model, shared=None) for model in models)
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
class Learnt:
    """What samples of several groups say of a model under its prior alone, each with the `common` data.

    `tied`: compiled parts; `sites`: part -> sites of each group.
    """

    model: SizeModel
    common: Mapping[str, Any]
    evidence: Sequence[Evidence]
    tied: Mapping[str, OneOf]
    sites: Mapping[str, Sequence[Mapping[str, Site]]]

    @classmethod
    def of(
        cls, model: SizeModel, evidence: Sequence[Evidence], draws: int, rng: np.random.Generator
    ) -> Learnt:
        """Fit each group alone, with this number of draws in each chain."""
        common, evidence = in_common(evidence)
        sites = dict[str, list[dict[str, Site]]]()
        for e in evidence:
            tied = model.compiled(e.data)
            drawn = Importance(draws, CHAINS)([*tied.values()], rng)
            for (place, part), of_laws in zip(tied.items(), drawn, strict=True):
                sites.setdefault(place, []).append(find_sites(part, of_laws))
        return cls(model, common, evidence, tied, sites)

    def teach(self, without: int | None = None) -> SizeModel:
        """Return the model that all groups have taught, or all but one."""
        which = [i for i in range(len(self.evidence)) if i != without]
        weights, told = tell(self.tied, {p: [sites[i] for i in which] for p, sites in self.sites.items()})
        earlier = tuple(self.evidence[i] for i in which)
        return replace(self.model, shared=Shared(self.common, weights, told, earlier))

    @property
    def spread(self) -> dict[str, FloatArray]:
        """Posterior probabilities of `SPREADS`, by what each part says and by `EVERY` part."""
        log_joints = {place: weigh(part, self.sites[place])[0] for place, part in self.tied.items()}
        each = {place: weigh_spreads([log_joint]) for place, log_joint in log_joints.items()}
        return each | {EVERY: weigh_spreads(log_joints.values())}


def together(
    samples: Mapping[str, Sample | Fit],
    model: SizeModel | None = None,
    *,
    draws: int = 1000,
    rng: Seed = None,
) -> Together:
    """Fit a size model to several samples that teach each other, such as those of five releases.

    The parameters of each group differ from those of all by a spread, which is learnt from sizes, retention
    and leakage together. If the groups are alike, each is told what all samples show. If they have nothing
    in common, each is fitted as alone (see `after`).

    Parameters
    ----------
    samples : mapping, name -> Sample or Fit
        Two groups or more with draws of their own, such as releases, sources or groups of records. Of a
        fit, the sample is taken, and a fit that was told of others brings none of them.
    model : SizeModel, optional
        By default that of the fits, or `SizeModel()`.
    draws : int
        Posterior draws of each group, as in `fast`.
    rng : Generator, int or None

    Returns
    -------
    Together

    Raises
    ------
    DataError
        Fewer than two groups, groups with the same entities, fits of different models, or priors that are no
        `Level`, `Slope` or smooth function.
    NotIdentified
        Units, a design or a prediction that a size model cannot use (see `Evidence.of`).

    Warns
    -----
    NotConverged
        As `fast`, with the name of the group.

    Examples
    --------
    >>> import erbayes as eb
    >>> from erbayes import bayes
    >>> from erbayes.study import Entities, draw_samples, populations as sim
    >>> releases = [sim.simulate(sim.Zeta(2.5, 30), sim.Splits(0.2), 2000, rng=i) for i in range(2)]
    >>> rng = np.random.default_rng(1)
    >>> samples = {
    ...     name: draw_samples(Entities(), release.units, 50, 1, rng).separate[0]
    ...     for name, release in zip(["spring", "autumn"], releases)
    ... }
    >>> found = bayes.together(samples, draws=200, rng=1)
    >>> found.table(metrics="pairwise-recall")["group"].tolist()
    ['spring', 'autumn']
    """
    number, rng = -(-need_draws(draws) // CHAINS), generator(rng)
    if len(samples) < 2:
        raise DataError(f"{len(samples)} groups: together needs two samples or more")
    own = [one.model for one in samples.values() if isinstance(one, Fit)]
    models = own if model is None and own else [need_model(model)]
    evidence = [one.evidence if isinstance(one, Fit) else Evidence.of(one) for one in samples.values()]
    _refuse_common_entities([*samples], evidence)
    learnt = Learnt.of(_find_common_model(models), evidence, number, rng)
    fits = {}
    for i, (name, one) in enumerate(samples.items()):
        sample = one.sample if isinstance(one, Fit) else one
        sampler = Importance(number, CHAINS)
        fits[name] = draw_and_join(sample, learnt.teach(i), learnt.evidence[i], sampler, rng)
        if problems := fits[name].problems():
            warnings.warn(f"{name}: {'; '.join(problems)}", NotConverged, stacklevel=2)
    return Together(fits, learnt.spread)


@dataclass(frozen=True, eq=False, repr=False)
class Together(Tabled):
    """Fits of several groups that have taught each other.

    `fits`: name -> Fit, each with `apply`, `table` and the rest; `weights`: posterior probabilities of the
    spreads, by row of `spread`.
    """

    fits: Mapping[str, Fit]
    weights: Mapping[str, FloatArray]

    def table(self, level: float = 0.95, metrics: Wanted | None = None) -> pd.DataFrame:
        """Return the table of each fit (see `Fit.table`), with its group in a first column."""
        tables = {name: fit.table(level, metrics) for name, fit in self.fits.items()}
        return pd.concat(tables, names=["group"]).reset_index(level="group")

    def apply(self, metrics: Wanted) -> Draws:
        """Return posterior draws of metrics in all groups, (chain, draw, group x metric).

        Draws of groups are independent, although what they share makes them a little alike. Intervals of
        differences are thus rather too wide.
        """
        draws = [fit.apply(metrics) for fit in self.fits.values()]
        return Draws(
            tuple(f"{group}: {name}" for group, d in zip(self.fits, draws, strict=True) for name in d.names),
            np.concatenate([d.values for d in draws], axis=-1),
            tuple(one for d in draws for one in d.support),
        )

    @property
    def spread(self) -> pd.DataFrame:
        """Posterior probabilities of the spreads between groups, by row, and their mean.

        The row of every part is that of the fits. The others are what each part says alone, and show where
        groups differ. A spread is in standard deviations of the prior. At 1 groups share nothing. Before the
        data all have the same probability.
        """
        table = pd.DataFrame(self.weights, index=pd.Index(SPREADS, name="spread")).T.rename_axis("part")
        return table.assign(mean=table.to_numpy() @ SPREADS)
