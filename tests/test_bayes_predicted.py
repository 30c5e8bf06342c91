"""Predicted clusters that a fit expects, against entities that are broken and merged one by one."""

from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure

import erbayes as eb
from erbayes import bayes, plots
from erbayes.bayes.grid import SizeGrid
from erbayes.bayes.predicted import expect_predicted_clusters
from erbayes.study import populations

pytestmark = pytest.mark.slow
GRID = SizeGrid.up_to(60)
J = len(GRID.size)
FOREIGN = np.array([0.25, 1.0, 2.0, 5.0])
DATA = {"intrusion_value": FOREIGN}


def quantities(**changed):
    """One draw with 1000/s entities of each size up to 7, half of them broken, a quarter with foreign records."""
    of_size = {
        "entities": np.where(GRID.size <= 7, 1000 / GRID.size, 0.0),
        "intact": np.where(GRID.size > 1, 0.5, 1.0),
        "share_mean": np.full(J, 0.6),
        "share_precision": np.full(J, 2.0),
        "met": np.full(J, 0.25),
        "intrusion_chance": np.array([[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4], *[[0.25] * 4] * 5]),
    }
    return {name: np.asarray(changed.get(name, v), float)[None] for name, v in of_size.items()}


def pairs_of(n):
    return n * (n - 1) / 2


def pieces_of(s, links):
    """Equal pieces, as large as these links allow, and a rest, of an entity that loses one record or more."""
    made = [[n] * (s // n) + [s % n] for n in range(1, s)]
    return next(p for p in reversed(made) if sum(map(pairs_of, p)) <= links + 1e-9)


def test_against_entities_one_by_one():
    rng, number = np.random.default_rng(1), 4000
    records = np.zeros(40)
    for s in range(1, 8):
        chance = quantities()["intrusion_chance"][0][int(np.log2(s))]
        for _ in range(number):
            pieces, weight = [s], 1000 / s / number
            if s > 1 and rng.random() < 0.5:
                w = rng.beta(1.2, 0.8)
                most = pairs_of(s - 1) * w * (s - 1) / (s - 2) if s > 2 else 0
                pieces = pieces_of(s, most)
            v = rng.choice(FOREIGN, p=chance) if rng.random() < 0.25 else 0
            for n in pieces:
                if 0 < v < 1:
                    records[n] += weight * n * (1 - v)
                    records[n + 1] += weight * n * v
                else:
                    records[n + int(v)] += weight * n
    wanted = np.bincount(GRID.bin(np.arange(1.0, 40)), records[1:], J) / GRID.size
    (found,) = expect_predicted_clusters(quantities(), GRID, DATA)
    np.testing.assert_allclose(found[:10], wanted[:10], rtol=0.05)


def test_records_are_kept():
    (found,) = expect_predicted_clusters(quantities(entities=100 / GRID.size**2), GRID, DATA)
    assert found @ GRID.size == pytest.approx((100 / GRID.size).sum(), rel=1e-12)


def test_without_errors_clusters_are_entities():
    perfect = quantities(intact=np.ones(J), met=np.zeros(J))
    np.testing.assert_allclose(expect_predicted_clusters(perfect, GRID, DATA), perfect["entities"])
    without = {k: v for k, v in perfect.items() if k not in ("met", "intrusion_chance")}
    np.testing.assert_allclose(expect_predicted_clusters(without, GRID, DATA), perfect["entities"])


def test_the_picture_marks_what_is_outside():
    known = SimpleNamespace(size=np.array([1.0, 2.0, 9.0]), count=np.array([50, 5, 4]))
    drawn = np.zeros((1, 100, J), dtype=int)
    drawn[..., 0], drawn[..., 1], drawn[..., 3] = 50, np.arange(20, 120), 7
    evidence = SimpleNamespace(grid=GRID, units=SimpleNamespace(known=known))
    fit = SimpleNamespace(evidence=evidence, predicted_clusters=drawn)
    ax = plots.draw_predicted_clusters(fit, ax=Figure().subplots())
    _, inside, outside = ax.lines
    assert outside.get_xdata().tolist() == [2, 4, 8.5] and outside.get_ydata().tolist() == [5, 0, 4]
    assert inside.get_ydata().tolist() == [50, 0, 0, 0, 0], "sizes that nobody has or expects are left out"


def test_a_heap_shows():
    """A matcher cuts clusters of more than 50 records, which no label of 100 records says."""
    world = populations.simulate(populations.Zeta(2.25), populations.Splits(0.1), 40_000, 1)
    capped = world.pred.astype(str) + "-" + (world.pred.groupby(world.pred).cumcount() // 50).astype(str)
    model = bayes.SizeModel(bayes.PredictionInformed(), bayes.Retention())
    outside = []
    for prediction in (world.pred, capped):
        drawn = world.true.iloc[np.random.default_rng(1).choice(len(world.true), 100)].to_numpy()
        units = eb.measure(prediction, world.true[world.true.isin(drawn)])
        fit = bayes.fast(eb.Sample(units, eb.UniformRecords(drawn)), model, draws=400, rng=1)
        ax = plots.draw_predicted_clusters(fit, ax=Figure().subplots())
        outside.append(dict(zip(*ax.lines[-1].get_data(), strict=True)))
    natural, heap = outside
    assert len(natural) <= 2 and heap[45.0] > 100 and heap[57.0] == 0
