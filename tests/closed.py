"""Estimates in closed form of given numbers, for tests of what is made of estimates."""

import numpy as np

import erbayes as eb
from erbayes.metrics.unseen import Unseen


def closed(mean, cov, df=np.inf, support=(0.0, 1.0), names="xyzuvwst", **unseen):
    """Return estimates of one range, of which a single one has a variance in place of a covariance."""
    mean = np.atleast_1d(np.array(mean, dtype=float))
    k = len(mean)
    return eb.metrics.Estimates(
        names=tuple(names[:k]),
        mean=mean,
        cov=np.reshape(cov, (k, k)),
        df=np.full(k, df, dtype=float),
        support=(support,) * k,
        unseen=Unseen(**unseen),
    )
