"""Several models in one answer, weighted by how well each predicts an entity that it has not seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import arviz as az
import numpy as np
import pandas as pd

from ..arrays import FloatArray, IntArray, generator
from ..errors import DataError
from ..metrics import Wanted, chosen
from ..uncertain import Draws, Tabled
from .fit import Fit
from .importance import KHAT


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Stack(Tabled):
    """Fits of one sample, mixed by stacking weights.

    Attributes
    ----------
    fits : dict, name -> Fit
    comparison : DataFrame
        From `arviz.compare`: expected log predictive density by leave-one-out, and the weights.
    chosen : int array, (draw,)
        Position of the fit that each draw comes from.
    """

    fits: dict[str, Fit]
    comparison: pd.DataFrame
    chosen: IntArray

    def table(self) -> pd.DataFrame:
        """The fits, the best first."""
        return self.comparison

    def apply(self, metrics: Wanted) -> Draws:
        """Draws of metrics, (1, draw, k), each from a fit chosen with its weight.

        Raises
        ------
        NotIdentified
            A metric that the model does not produce.
        """
        metrics = chosen(metrics)
        every = [fit.apply(metrics) for fit in self.fits.values()]
        flat: list[FloatArray] = [found.flat for found in every]
        mixed = np.stack([flat[which][k % len(flat[which])] for k, which in enumerate(self.chosen)])
        return Draws(every[0].names, mixed[None], every[0].support)


def stack(fits: Mapping[str, Fit], *, rng: np.random.Generator | int | None = None) -> Stack:
    """Mix fits of the same sample under several models by stacking (Yao et al. 2018).

    Weights maximise the leave-one-out log predictive density of the mixture: of each sampled entity's size,
    of its links kept and of the foreign records that it meets (see `Fit.log_likelihood`).

    Parameters
    ----------
    fits : mapping, name -> Fit
        Two or more, such as one for each size family, or one for each prior of leakage.
    rng : Generator, int or None
        A generator, or its seed; None is another seed at each call.

    Raises
    ------
    DataError
        Fewer than two fits, fits of different samples, or fits of which few draws agree with the known
        number of predicted links: they have no leave-one-out density.

    Warns
    -----
    UserWarning
        From ArviZ, where leave-one-out is unreliable for some entities.
    """
    if len(fits) < 2:
        raise DataError(f"stacking wants two fits or more, not {len(fits)}")
    first, *others = fits.values()
    if any(fit.sample is not first.sample for fit in others):
        raise DataError("stacking compares models of one sample: these fits have several")
    contradicted = [name for name, fit in fits.items() if fit.khat["total"] > KHAT]
    if contradicted:
        raise DataError(
            f"few draws of {', '.join(contradicted)} agree with the known number of predicted "
            "links: leave these fits out"
        )
    compared = az.compare({name: fit.tree for name, fit in fits.items()}, round_to="none")
    weights = compared["weight"].reindex(list(fits)).to_numpy(dtype=float).clip(0)
    draws = first.population.true.size
    chosen = generator(rng).choice(len(fits), draws, p=weights / weights.sum())
    return Stack(dict(fits), compared, chosen)
