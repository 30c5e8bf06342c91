"""Engines of the studies that change the design of a sample, and then take the closed form."""

from collections.abc import Sequence

from erbayes import DistinctEntities, Sample
from erbayes._internal.arrays import Seed
from erbayes.engine import Taylor
from erbayes.metrics import Estimates, Metric


def on_distinct(sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> Estimates:
    """Estimate from the distinct entities among uniform records drawn with replacement."""
    design = DistinctEntities(len(sample))
    return Taylor()(Sample(sample.units, design), metrics, rng)
