"""Times of fits of the size model.

    python benchmarks/bayes.py [--cold]

Wall seconds of the first fit, then fits to other samples of the same design. 400 uniform clusters of
PatentsView's release of 2019-08-20, truth that of 2022-06-30. --cold compiles into an empty folder, so that
nothing compiled by an earlier process is found. Exits 1 if the bar is missed: 60 fits a second of 250 draws
in a study on both cores, once its processes have compiled. 250 draws are as good in a study as 1,000 (see
heavy-tails.md). Processor time shows what two free cores would do if others use them. The rate of
the fastest tenth of the fits, and the time of a loop of additions in plain Python before and after, show
how much the pace of the machine varies at this hour.
"""

import os
import subprocess
import sys
import tempfile
import time
import timeit
import warnings
from typing import Any

from figures import stamp

N, SEED, WORKERS = 400, 5, 2


def population():
    from populations import pair

    return pair("20190820")


def loop() -> str:
    """Milliseconds of a loop of a million additions in plain Python, the fastest and the slowest of nine."""
    times = timeit.repeat("for i in range(1_000_000): total += i", "total = 0", number=1, repeat=9)
    return f"{1e3 * min(times):.0f} to {1e3 * max(times):.0f} ms"


def samples(count: int) -> list[Any]:
    import numpy as np

    from erbayes.study import UniformEntities, draw_samples

    return draw_samples(UniformEntities(), population().units, N, count, np.random.default_rng(SEED)).separate


def measure_fits() -> bool:
    import numpy as np

    drawn, start = samples(31), time.perf_counter()
    from erbayes.bayes import NotConverged, fast

    imported = time.perf_counter() - start
    warnings.simplefilter("ignore", NotConverged)
    rng, first = np.random.default_rng(SEED), time.perf_counter()
    fast(drawn[0], rng=rng)
    print(f"import of PyMC                  {imported:8.1f} s")
    print(f"first fit                       {time.perf_counter() - first:8.1f} s")
    for draws in (1000, 250):
        start, spent = time.perf_counter(), time.process_time()
        for sample in drawn[1:]:
            fast(sample, draws=draws, rng=rng)
        rate, of_core = (30 / s for s in (time.perf_counter() - start, time.process_time() - spent))
        print(
            f"{draws:5,} draws                     {rate:8.1f} a second, {of_core:.1f} a second of one core"
        )
    rate, _ = studied_fits(40, 1000)
    print(f"1,000 draws, in a study         {rate:8.1f} a second on 2 cores", flush=True)
    before, (rate, fastest) = loop(), studied_fits(250, 250)
    print(f"  250 draws, in a study         {rate:8.1f} a second on 2 cores (bar 60), {fastest:.1f} at best")
    print(f"a loop of a million additions: {before} before, {loop()} after")
    return rate >= 60


def studied_fits(repetitions: int, draws: int) -> tuple[float, float]:
    """Fits a second of a study of two cells in two processes, after a first study of one fit each.

    The second figure is the rate of the fastest tenth of the fits, if all were as fast as the slowest of
    these.
    """
    import joblib

    from erbayes.bayes import Modelled
    from erbayes.metrics import pairwise_precision, pairwise_recall
    from erbayes.study import UniformEntities, study

    people, metrics, start = {"people": population()}, [pairwise_precision, pairwise_recall], 0.0
    plans = {"one": UniformEntities(), "another": UniformEntities()}
    for each in (1, repetitions):
        start = time.perf_counter()
        with joblib.parallel_config(n_jobs=WORKERS):
            engines = {"model": Modelled(draws=draws)}
            found = study(people, plans, [N], engines, metrics, repetitions=each, seed=SEED)
        assert not found.runs.estimate.isna().any()
    passed = time.perf_counter() - start
    return len(plans) * repetitions / passed, WORKERS / found.runs.seconds.quantile(0.1)


if __name__ == "__main__":
    if "--cold" in sys.argv:
        with tempfile.TemporaryDirectory() as folder:
            env = os.environ | {"PYTENSOR_FLAGS": f"base_compiledir={folder}", "NUMBA_CACHE_DIR": folder}
            sys.exit(subprocess.run([sys.executable, __file__], env=env).returncode)
    slow = not measure_fits()
    stamp("README", f"seed {SEED}")
    sys.exit(slow)
