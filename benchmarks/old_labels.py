"""Labels of an old release of PatentsView, judged on newer ones: with a frame, and without one.

The release of 2022-06-30 stands for the truth.
"""

import numpy as np
import pandas as pd
from figures import stamp

import erbayes as eb
from erbayes.datasets import patentsview_releases

TRUTH, SAMPLES = "20220630", 500
PAIRS = (("20170808", "20201229"), ("20190820", "20211230"), ("20201229", "20211230"))
P, DESIGN = [eb.metrics.pairwise_precision], eb.UniformRecords(repeats=True)


def precision(releases: pd.DataFrame, old: str, new: str, draws: int, rng: np.random.Generator) -> None:
    """Estimates of precision inside the old release, and how many intervals cover it."""
    table = releases.dropna(subset=new)
    labels = table[TRUTH][table[old].notna()]
    census = eb.measure(table[new], labels, frame=labels.index)
    truth = census.column(eb.columns.COMMON_LINKS).sum() / census.column(eb.columns.PREDICTED_LINKS).sum()
    drawn = rng.integers(len(labels), size=(SAMPLES, draws))
    for name, units in (("no frame", eb.measure(table[new], labels)), ("frame", census)):
        at = units.ids.get_indexer(labels)[drawn]
        found = eb.engine.taylor(eb.Sample.many(units, DESIGN, at), P).apply(P)
        lower, upper = found.interval()[:, 0].T
        covered = np.mean((lower <= truth) & (truth <= upper))
        print(f"{old} -> {new}, P {truth:.3f}, {name:>8}: {found.mean.mean():.3f}, covers {covered:.2f}")
    print(f"{'links inside':>42}: {census.frame.links_inside:.3f}")


if __name__ == "__main__":
    every = patentsview_releases().dropna(subset=TRUTH)
    generator = np.random.default_rng(1)
    for pair in PAIRS:
        precision(every, *pair, 400, generator)
    stamp("README", "seed 1")
