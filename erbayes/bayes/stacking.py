"""Weights of several models of one sample, by how well they predict its entities."""

from __future__ import annotations

from collections.abc import Mapping

import arviz as az
import pandas as pd

from .._internal.errors import DataError
from .fit import Fit
from .totals import FEWEST_AGREEING


def stack(fits: Mapping[str, Fit]) -> pd.DataFrame:
    """Weigh fits of the same sample under several models by stacking (Yao et al. 2018).

    The weights maximise the log predictive density of the mixture, by leave-one-out. It is the density of
    each sampled entity: of its size, its links kept and the foreign records that it meets (see
    `Fit.log_likelihood`). `erbayes.engine.linear_pool` mixes the draws of the fits by these weights.

    Parameters
    ----------
    fits : mapping, name -> Fit
        Two or more, such as one for each size family, or one for each prior of leakage.

    Returns
    -------
    DataFrame, one row per fit, the best first
        Columns of `arviz.compare`: expected log predictive density by leave-one-out, and weight.

    Raises
    ------
    DataError
        Fewer than two fits, fits of different samples, or a fit of which few draws agree with the known
        number of predicted links. Such a fit has no leave-one-out density.

    Warns
    -----
    UserWarning
        A warning of ArviZ: leave-one-out is unreliable for some entities.

    Examples
    --------
    Leave-one-out needs many draws:

    >>> import erbayes as eb
    >>> from erbayes import bayes, datasets
    >>> from erbayes.engine import linear_pool
    >>> case = datasets.people()
    >>> sample = eb.Sample(eb.measure(case.prediction, case.labels), eb.UniformRecords(case.drawn))
    >>> models = {"default": bayes.SizeModel(), "lognormal": bayes.SizeModel(bayes.LogNormal())}
    >>> fits = {name: bayes.fast(sample, m, draws=4000, rng=1) for name, m in models.items()}
    >>> weight = bayes.stack(fits)["weight"]
    >>> linear_pool([fits[name].apply("pairwise-recall") for name in weight.index], weight, rng=1).names
    ('pairwise-recall',)
    """
    if len(fits) < 2:
        raise DataError(f"stacking needs two fits or more, not {len(fits)}")
    first, *others = fits.values()
    if any((fit.sample, fit.evidence.domain) != (first.sample, first.evidence.domain) for fit in others):
        raise DataError(
            "stacking compares models of one sample, or of one domain: these fits have several. Fit all "
            "models to one Sample object, such as the `sample` of the first fit"
        )
    contradicted = [name for name, fit in fits.items() if fit.agreeing < FEWEST_AGREEING]
    if contradicted:
        raise DataError(
            f"few draws of {', '.join(contradicted)} agree with the known number of predicted "
            "links: leave these fits out"
        )
    compared: pd.DataFrame = az.compare({name: fit.tree for name, fit in fits.items()}, round_to="none")
    # the optimiser may leave a weight of 0 a rounding error below it
    return compared.assign(weight=compared["weight"].clip(lower=0.0))
