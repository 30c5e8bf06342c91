"""How costs grow: exponents of processor time at two sizes, never seconds, which depend on the machine."""

import subprocess
import sys
import time
from functools import partial

import numpy as np
import pandas as pd
import pytest

import erbayes as eb

pytestmark = pytest.mark.slow

TIMES = 4
"""How much larger the larger size is."""
MOST = 1.2
"""The largest exponent of what is linear. A square is 2, and a fixed cost lowers it."""


def split(entity, seed):
    rng = np.random.default_rng(seed)
    return np.where(rng.random(len(entity)) < 0.05, 10**7 + np.arange(len(entity)), entity)


def sampled(records, draws):
    """Records in entities of three, and labels of some of these."""
    entity = np.arange(records) // 3
    labelled = np.flatnonzero(entity % (records // 3 // draws) == 0)
    return entity, pd.Series(entity[labelled], labelled), eb.UniformClusters(population=records // 3)


def compare(predictions, records, draws=300):
    entity, labels, design = sampled(records, draws)
    frames = {
        f"m{i}": pd.DataFrame({"record": np.arange(records), "cluster": split(entity, i)})
        for i in range(predictions)
    }
    return lambda: eb.compare(frames, labels, design).table()


def estimate(draws):
    entity, labels, design = sampled(300_000, draws)
    prediction = pd.Series(split(entity, 0))
    return lambda: eb.estimate(prediction, labels, design, eb.metrics.ALL).table()


def groups(number):
    entity, labels, design = sampled(60_000, 2000)
    prediction, group = pd.Series(split(entity, 0)), pd.Series(np.arange(len(entity)) // 3 % number, name="g")
    sample = eb.Sample(eb.measure(prediction, labels), design)
    return lambda: eb.by_domain(sample, group, prediction=prediction, fewest=0).table()


def cuts(number):
    entity, labels, design = sampled(60_000, 500)
    left = np.arange(len(entity) - 1)
    rng = np.random.default_rng(0)
    inside, outside = rng.normal(3, 2, len(left)), rng.normal(-3, 2, len(left))
    score = np.where(entity[left] == entity[left + 1], inside, outside)
    edges = pd.DataFrame({"left": left, "right": left + 1, "score": score})
    return lambda: eb.thresholds(edges, labels, design, at=number, records=np.arange(len(entity))).table()


def work_of(name, size):
    makers = {
        "records": partial(compare, 2, 150_000 * size),
        "predictions": partial(compare, 4 * size, 100_000),
        "draws": partial(estimate, 5000 * size),
        "groups": partial(groups, 10 * size),
        "cuts": partial(cuts, 40 * size),
    }
    return makers[name]()


def measure_seconds(work):
    """Processor seconds, the least of three runs."""
    seconds = []
    for _ in range(3):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return min(seconds)


@pytest.mark.parametrize("name", ["records", "predictions", "draws", "groups", "cuts"])
def test_costs_are_linear(name):
    small, large = (measure_seconds(work_of(name, size)) for size in (1, TIMES))
    assert np.log(large / small) / np.log(TIMES) <= MOST


@pytest.mark.parametrize("command, unneeded", [
    ("estimate", ["erbayes.labels", "erbayes.large", "erbayes.report", "scipy.stats", "ssl"]),
    ("report", ["scipy.stats", "erbayes.bayes", "joblib"]),
])  # fmt: skip
def test_a_short_command_loads_what_it_needs(command, unneeded, tmp_path):
    """Loading modules is most of its time."""
    for file, column, records in (("p.csv", "cluster", range(30)), ("l.csv", "entity", range(9))):
        table = pd.DataFrame({"record": records, column: [i // 3 for i in records]})
        table.to_csv(tmp_path / file, index=False)
    words = [command, "p.csv", "l.csv", "-d", "uniform-clusters", *(["-o", "r.html"] * (command == "report"))]
    code = f"""
import atexit, sys
atexit.register(lambda: print("loaded", [name for name in {unneeded} if name in sys.modules]))
from erbayes.cli import app
app({words})
"""
    options = {"capture_output": True, "text": True, "encoding": "utf-8", "check": True}
    found = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, **options)
    assert found.stdout.splitlines()[-1] == "loaded []"
