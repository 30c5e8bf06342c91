"""The bootstrap of all metrics against scipy.stats.bootstrap, and the closed form in a study, on one core."""

import os
import sys
from collections.abc import Callable
from functools import partial
from statistics import median
from time import process_time

from figures import stamp

os.environ["OMP_NUM_THREADS"] = "1"  # before NumPy loads: threads that wait take processor time too

import numpy as np
from populations import pair
from scipy import stats

from erbayes import metrics
from erbayes.engine import Taylor, bootstrap
from erbayes.labels import Records
from erbayes.study import draw_samples, study

DRAWS, REPLICATES, REPETITIONS, ROUNDS = 400, 10_000, 1_000, 7
TIMES_FASTER, PER_SECOND = 100, 2000
Array = np.ndarray
PRF = (metrics.pairwise_precision, metrics.pairwise_recall, metrics.pairwise_f())


def seconds(work: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Median processor time of each, taken in turns, so that all see the same load."""
    times: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(ROUNDS):
        for name, one in work.items():
            start = process_time()
            one()
            times[name].append(process_time() - start)
    return {name: median(taken) for name, taken in times.items()}


def of_means(top: Array, bottom: Array) -> Array:
    return np.mean(top) / np.mean(bottom)


def of_sums(top: Array, bottom: Array) -> Array:
    return top.sum() / bottom.sum()


def along(top: Array, bottom: Array, axis: int) -> Array:
    return np.mean(top, axis=axis) / np.mean(bottom, axis=axis)


def main() -> None:
    people = pair("20211230")
    sample = draw_samples(Records(), people.units, DRAWS, 1, np.random.default_rng(1)).separate[0]
    precision = metrics.pairwise_precision
    top_and_bottom = tuple(sample.contributions(precision.columns).T.copy())

    def ours(*of):
        return bootstrap(sample, of, replicates=REPLICATES, rng=np.random.default_rng(1)).interval()

    def theirs(statistic):
        return stats.bootstrap(
            top_and_bottom, statistic, paired=True, n_resamples=REPLICATES, rng=np.random.default_rng(1)
        ).confidence_interval

    number = len(metrics.ALL)
    took = seconds(
        {
            "all": lambda: ours(*metrics.ALL),
            "one": lambda: ours(precision),
            "plain": lambda: theirs(of_means),
            "plain, .sum()": lambda: theirs(of_sums),
            "vectorised": lambda: theirs(along),
        }
    )
    print(f"{sample}\n{REPLICATES:,} replicates and BCa intervals, median of {ROUNDS}, processor time\n")
    print(f"erbayes: {number} metrics {took['all']:.3f} s, one ratio {took['one']:.3f} s")
    for name in ("plain", "plain, .sum()", "vectorised"):
        every = number * took[name]
        print(
            f"SciPy, {name}: one ratio {took[name]:.3f} s, {took[name] / took['one']:.2f} times ours; "
            f"{number} times that {every:.2f} s, {every / took['all']:.0f} times ours"
        )
    print(f"bar: {TIMES_FASTER} times for {number} plain ratios")
    same = ours(precision)[0].round(4), np.round(theirs(along), 4)
    print("95 % interval of precision: erbayes {}, SciPy {}".format(*same))

    def closed(draws: int, repetitions: int):
        plans, engines, seed = {"records": Records()}, {"closed": Taylor()}, 1
        study({"people": people}, plans, [draws], engines, PRF, repetitions=repetitions, seed=seed)

    print("\nclosed form of P, R and F in a study, repetitions a second")
    for draws, repetitions in ((100, REPETITIONS), (4000, REPETITIONS // 4), (DRAWS, REPETITIONS)):
        speed = repetitions / seconds({"closed": partial(closed, draws, repetitions)})["closed"]
        print(f"{draws:,} draws: {speed:,.0f}")
    print(f"bar: {PER_SECOND:,} of {DRAWS}")
    stamp("README", "seed 1")
    if number * took["plain"] < TIMES_FASTER * took["all"] or speed < PER_SECOND:
        sys.exit("failed: too slow")


if __name__ == "__main__":
    main()
