"""Stacking: a mixture of models, weighted by how well each predicts an entity that is left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import arviz as az
import numpy as np
import pandas as pd

from .._internal.arrays import FloatArray, IntArray
from .._internal.errors import DataError
from ..metrics.definitions import Wanted, chosen
from ..metrics.uncertain import Draws, Tabled
from .fit import Fit
from .samplers import one_seed
from .totals import FEWEST_AGREEING


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Stack(Tabled):
    """A mixture of fits to one sample, by stacking weights.

    Attributes
    ----------
    fits : dict, name -> Fit
    comparison : DataFrame
        Result of `arviz.compare`: expected log predictive density by leave-one-out, and the weights.
    chosen : int array, (draw,)
        Position in `fits` of the fit of each draw.
    """

    fits: dict[str, Fit]
    comparison: pd.DataFrame
    chosen: IntArray

    def table(self) -> pd.DataFrame:
        """Return the comparison, one row per fit, the best first."""
        return self.comparison

    def apply(self, metrics: Wanted) -> Draws:
        """Return draws of metrics from the mixture: each comes from a fit that was chosen with its weight.

        Parameters
        ----------
        metrics : Metric or str, or several

        Returns
        -------
        Draws, (1, draw, k)

        Raises
        ------
        NotIdentified
            A metric that a model does not produce.
        """
        metrics = chosen(metrics)
        draws = [fit.apply(metrics) for fit in self.fits.values()]
        flat: list[FloatArray] = [of_fit.flat for of_fit in draws]
        mixed = np.stack([flat[fit][k % len(flat[fit])] for k, fit in enumerate(self.chosen)])
        return Draws(draws[0].names, mixed[None], draws[0].support)


def stack(
    fits: Mapping[str, Fit],
    *,
    rng: np.random.Generator | int | None = None,
    random_seed: np.random.Generator | int | None = None,
) -> Stack:
    """Mix fits of the same sample under several models by stacking (Yao et al. 2018).

    The weights maximise the log predictive density of the mixture, by leave-one-out. It is the density of
    each sampled entity: of its size, its links kept and the foreign records that it meets (see
    `Fit.log_likelihood`).

    Parameters
    ----------
    fits : mapping, name -> Fit
        Two or more, such as one for each size family, or one for each prior of leakage.
    rng, random_seed : Generator, int or None
        A generator or its seed, under the name of this package or of PyMC. None is a new seed at each call.

    Returns
    -------
    Stack

    Raises
    ------
    DataError
        Fewer than two fits, fits of different samples, or a fit of which few draws agree with the known
        number of predicted links. Such a fit has no leave-one-out density. Both rng and random_seed.

    Warns
    -----
    UserWarning
        A warning of ArviZ: leave-one-out is unreliable for some entities.

    Examples
    --------
    Leave-one-out needs many draws:

    >>> import erbayes as eb
    >>> from erbayes import bayes, datasets
    >>> case = datasets.people()
    >>> sample = eb.Sample(eb.measure(case.prediction, case.labels), eb.UniformRecords(case.drawn))
    >>> models = {"default": bayes.SizeModel(), "lognormal": bayes.SizeModel(bayes.LogNormal())}
    >>> fits = {name: bayes.fast(sample, m, draws=4000, rng=1) for name, m in models.items()}
    >>> mixture = bayes.stack(fits, rng=1)
    >>> sorted(mixture.table().index)
    ['default', 'lognormal']
    """
    generator = one_seed(rng, random_seed)
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
    compared = az.compare({name: fit.tree for name, fit in fits.items()}, round_to="none")
    weights = compared["weight"].reindex(list(fits)).to_numpy(dtype=float).clip(0)
    draws = first.population.true.size
    chosen = generator.choice(len(fits), draws, p=weights / weights.sum())
    return Stack(dict(fits), compared, chosen)
