"""Labels of an old release of PatentsView, judged on newer ones: with a frame, without one, and the alarm.

The release of 2022-06-30 stands for the truth. Records are ordered by the release in which they appear first,
and by their patent's number. Their dates are 200 equal parts of this order.
"""

import numpy as np
import pandas as pd

import erbayes as eb
from erbayes.datasets import patentsview_releases
from erbayes.engine.diagnostics import look_older
from erbayes.units.frame import Cut

TRUTH, DAYS, SAMPLES = "20220630", 200, 500
PAIRS = (("20170808", "20201229"), ("20190820", "20211230"), ("20201229", "20211230"))
P, DESIGN = [eb.metrics.pairwise_precision], eb.UniformRecords()


def precision(releases: pd.DataFrame, old: str, new: str, draws: int, rng: np.random.Generator) -> None:
    """Estimates of precision inside the old release, and how many intervals cover it."""
    table = releases.dropna(subset=new)
    labels = table[TRUTH][table[old].notna()]
    census = eb.measure(table[new], labels, frame=labels.index)
    truth = census.column(eb.columns.COMMON_LINKS).sum() / census.column(eb.columns.PREDICTED_LINKS).sum()
    drawn = rng.integers(len(labels), size=(SAMPLES, draws))
    for name, units in (("no frame", eb.measure(table[new], labels)), ("frame", census)):
        at = units.ids.get_indexer(labels)[drawn]
        found = eb.engine.taylor(eb.Sample(units, DESIGN, DESIGN.expand_draws(units, at)), P).apply(P)
        lower, upper = found.interval()[:, 0].T
        covered = np.mean((lower <= truth) & (truth <= upper))
        print(f"{old} -> {new}, P {truth:.3f}, {name:>8}: {found.mean.mean():.3f}, covers {covered:.2f}")
    print(f"{'links inside':>42}: {census.frame.cut.links_inside:.3f}")


def days(releases: pd.DataFrame) -> np.ndarray:
    first = releases.notna().to_numpy().argmax(axis=1)
    number = releases.index.str.extract(r"(\d+)-\d+$")[0].astype(int)
    order = np.lexsort((number, first))
    day = np.empty(len(order), dtype=int)
    day[order] = np.arange(len(order)) * DAYS // len(order)
    return day


def alarm(releases: pd.DataFrame, design: str, draws: int, rng: np.random.Generator) -> None:
    """Rates of the alarm where labels are up to date, and where precision is off by over 1 %."""
    day, entity = days(releases), pd.factorize(releases[TRUTH])[0]
    fresh, stale = [], []
    for new in releases:
        known = releases[new].notna().to_numpy()
        clusters = pd.factorize(releases[new][known])[0]
        cuts = [Cut.of(clusters, day[known] <= d) for d in range(DAYS)]
        alarms = np.array([look_older(cut, draws) for cut in cuts])
        for old in releases.loc[:, :new]:
            told = releases[old].notna().to_numpy()
            newest = pd.Series(day[told]).groupby(entity[told]).max()
            units = entity[told] if design == "records" else newest.index.to_numpy()
            drawn = units[rng.integers(len(units), size=(SAMPLES, draws))]
            rate = alarms[
                newest.reindex(range(entity.max() + 1)).to_numpy()[drawn].max(axis=1).astype(int)
            ].mean()
            if old == new:
                fresh.append(rate)
            elif Cut.of(clusters, told[known]).links_inside < 0.99:
                stale.append(rate)
    found = np.mean(np.array(stale) >= 0.99)
    print(f"{draws} draws of {design}: alarm in {np.mean(fresh):.4f} of samples that are up to date;")
    print(f"  in {np.mean(stale):.3f} of others, and in 99 % of samples of {found:.2f} of {len(stale)} pairs")


if __name__ == "__main__":
    every = patentsview_releases().dropna(subset=TRUTH)
    generator = np.random.default_rng(1)
    for pair in PAIRS:
        precision(every, *pair, 400, generator)
    for draws in (100, 400):
        for design in ("records", "entities"):
            alarm(every, design, draws, generator)
