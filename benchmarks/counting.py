"""Counting on 10 million records: `erbayes.measure` against one pass that merely counts cluster sizes."""

import sys
from collections.abc import Callable
from statistics import median
from time import process_time

import numpy as np
import pandas as pd

import erbayes as eb

RECORDS, SAMPLED, ROUNDS = 10_000_000, 500, 7
BAR = 3


def seconds(work: Callable[[], object]) -> float:
    times = []
    for _ in range(ROUNDS):
        start = process_time()
        work()
        times.append(process_time() - start)
    return median(times)


def main() -> None:
    rng = np.random.default_rng(1)
    entity = rng.integers(RECORDS // 4, size=RECORDS)
    predicted = np.where(rng.random(RECORDS) < 0.9, entity, rng.integers(RECORDS // 4, size=RECORDS))
    records = pd.Index(rng.permutation(RECORDS))
    drawn = np.isin(entity, entity[rng.integers(RECORDS, size=SAMPLED)])
    start = process_time()
    prediction = eb.Clustering.of(pd.Series(predicted, records))
    labels = eb.Clustering.of(pd.Series(entity[drawn], records[drawn]))
    factorised = process_time() - start

    bincount = seconds(lambda: np.bincount(prediction.codes))
    ours = seconds(lambda: eb.measure(prediction, labels))
    print(f"{prediction}; {len(labels.clusters)} labelled entities")
    print(f"factorising ids, once, apart:  {factorised:.3f} s")
    print(f"numpy.bincount, median of {ROUNDS}:   {bincount:.3f} s")
    print(f"erbayes.measure, median of {ROUNDS}:  {ours:.3f} s")
    print(f"ratio: {ours / bincount:.2f} (bar: at most {BAR})")
    if ours > BAR * bincount:
        sys.exit("failed: too slow")


if __name__ == "__main__":
    main()
