"""Fits of a size model to a sample, by importance sampling (`fast`) or by NUTS (`nuts`)."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from .._internal.arrays import FloatArray, Seed, generator
from .._internal.errors import Alarm, DataError, Grade, Sentence
from ..design.calibration import links_out_of_reach
from ..design.sample import Sample
from ..engine.diagnostics import out_of_balance
from ..metrics.columns import COMMON_LINKS
from .evidence import Evidence
from .fit import Fit
from .joined import populations
from .laws import compiled, weighed
from .model import SizeModel, need_model
from .samplers import NUTS, Importance, NotConverged, need_draws

CHAINS = 4
"""Chains of a fast fit. ArviZ's R-hat and effective number need two or more, and PyMC draws four."""
REFUSED = 0.5
"""Doubt about clusters out of reach above which nothing is taken from a second clustering."""


def fast(
    sample: Sample,
    model: SizeModel | None = None,
    *,
    draws: int = 1000,
    rng: Seed = None,
) -> Fit:
    """Fit a size model by importance sampling.

    The first fit compiles the model, which takes some seconds. Further fits take tenths of a second. If the
    importance weights of a part are unreliable, with a Pareto shape above .7, the part is drawn by NUTS,
    which needs one more compilation.

    Parameters
    ----------
    sample : Sample
        Sampled entities, under a design by which the chance of an entity depends only on its size.
    model : SizeModel, optional
        By default `SizeModel()`.
    draws : int
        Posterior draws, 50 or more, in four chains that share the proposals but no point. Some are copies:
        of 1,000 draws, 500 to 800 are effective, as `arviz.ess` shows.
    rng : Generator, int or None
        A generator or its seed. None is a new seed at each call.

    Returns
    -------
    Fit

    Raises
    ------
    DataError
        Too few draws, or a part that breaks its contract.
    NotIdentified
        Units, a design or a prediction that a size model cannot use.

    Warns
    -----
    Alarm
        The sample contradicts the known totals of the prediction.
    NotConverged
        Importance weights are unreliable, of a part or of the known number of predicted links.

    Examples
    --------
    >>> import erbayes as eb
    >>> from erbayes import bayes, datasets
    >>> case = datasets.people()
    >>> sample = eb.Sample(eb.measure(case.prediction, case.labels), eb.UniformRecords(case.drawn))
    >>> fit = bayes.fast(sample, rng=1)
    >>> fit.table().loc["pairwise-precision", "estimate"].round(2)
    np.float64(0.82)
    """
    sampler = Importance(-(-need_draws(draws) // CHAINS), CHAINS)
    return _fit_and_warn(sample, model, sampler, generator(rng))


def nuts(
    sample: Sample,
    model: SizeModel | None = None,
    *,
    draws: int = 1000,
    rng: Seed = None,
    **settings: Any,
) -> Fit:
    """Fit a size model by NUTS, in coordinates in which its posterior is nearly standard normal.

    Use it to check a fast fit. NUTS draws each law of the tied parts, and the draws are resampled with the
    density of the known number of predicted links as weight. Untied parts are drawn by importance sampling.

    Parameters
    ----------
    sample, model, rng
        As for `fast`.
    draws : int
        Posterior draws of each chain, 50 or more.
    **settings
        As for `pymc.sample`: tune (1000 by default), chains (4), cores, target_accept (.9) and progressbar.
        nutpie draws. It compiles a model once for all data and parameters of priors.

    Returns
    -------
    Fit

    Raises
    ------
    DataError
        As `fast`, or a model `after` other fits.
    NotIdentified
        As `fast`.

    Warns
    -----
    Alarm
        As `fast`.
    NotConverged
        Few draws agree with the known number of predicted links; more than 1 in 1,000 transitions diverge; an
        R-hat is above 1.01, or fewer than 100 draws per chain are effective, of a parameter or of pairwise
        precision or recall. A law counts in proportion to its posterior probability (`Fit.convergence`).
    """
    sampler = NUTS(need_draws(draws), **settings)
    if isinstance(model, SizeModel) and model.shared is not None:
        raise DataError("a model after other fits has priors that NUTS cannot draw: use fast()")
    return _fit_and_warn(sample, model, sampler, generator(rng))


def _fit_and_warn(
    sample: Sample, model: SizeModel | None, sampler: Importance | NUTS, rng: np.random.Generator
) -> Fit:
    """Fit a model by a sampler, and warn of problems."""
    model = need_model(model)
    evidence = Evidence.of(sample)
    if model.shared is not None:
        evidence = replace(evidence, data=model.shared.fill(evidence.data))
    beside = None if model.second is None else Evidence.of(sample, model.second)
    fit = draw_and_join(sample, model.alone, evidence, sampler, rng)
    if beside is not None and beside.matched is not None:
        fit = replace(fit, matched=beside.matched)
        if beside.matched.used:
            truth = draw_and_join(sample, model.of_truth, beside, sampler, rng, fit.total(COMMON_LINKS))
            fit = replace(fit, truth=truth if truth.doubt < REFUSED else None)
    if links_out_of_reach(evidence.units) < 0.1:
        for alarm in out_of_balance(sample):
            known = f"{alarm} A size model relies on the known total."
            warnings.warn(Sentence(known, Grade.FAULT), Alarm, stacklevel=3)
    if problems := fit.problems():
        warnings.warn("; ".join(problems), NotConverged, stacklevel=3)
    return fit


def draw_and_join(
    sample: Sample,
    model: SizeModel,
    evidence: Evidence,
    sampler: Importance | NUTS,
    rng: np.random.Generator,
    common: FloatArray | None = None,
) -> Fit:
    """Draw the parts of a model, and join them by the predicted links, or by draws of the common ones."""
    if common is not None:
        data = evidence.data | {"predicted_links": max(float(np.median(common)), 0.5)}
        evidence = replace(evidence, data=data, predicted_links=data["predicted_links"])
    tied = {place: compiled(part, evidence.data) for place, part in model.tied.items()}
    parts = dict(zip(tied, sampler([*tied.values()], rng), strict=True))
    mixed = {place: weighed(place, tied[place], of_laws, rng) for place, of_laws in parts.items()}
    draws, population = populations(mixed, evidence.data, rng, common)
    return Fit(sample, model, evidence, draws, population, int(rng.integers(2**31)), parts)
