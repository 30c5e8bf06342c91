"""Populations of PatentsView's inventors, on which the benchmarks measure."""

import numpy as np
import pandas as pd

from erbayes.datasets import patentsview_release
from erbayes.study.populations import Misattribution, Population

TRUTH = "20220630"
"""The release that stands for the truth."""


def pair(prediction: str, truth: str = TRUTH) -> Population:
    """Return one release as the prediction of another."""
    return Population.of(patentsview_release(prediction), patentsview_release(truth))


def noisy() -> Population:
    """Return the true release with the paper's noise at rate .10 as its prediction."""
    truth = patentsview_release(TRUTH)
    noise = Misattribution(0.1).apply(pd.factorize(truth)[0], np.random.default_rng(3))
    return Population(pd.Series(noise, truth.index), truth)
