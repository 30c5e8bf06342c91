"""Eleven thousand numbers of all doors, stored, so that a change which should move none moves none.

`python tests/test_stored.py` stores those of today. Whoever does says in the commit which moved and why, with a line
in `MOVED` of `benchmarks/figures.py` if they are estimates, intervals or alarms.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import test_design

import erbayes as eb
from erbayes import engine, labels, pairs
from erbayes.analysis.causes import features
from erbayes.analysis.planning import forecast
from erbayes.design import Responding
from erbayes.metrics.definitions import ALL, DEFAULT_METRICS

pytestmark = [pytest.mark.kernel]
STORED = Path(__file__).parent / "golden" / "stored.csv"


def _move(clusters, share, rng):
    """A share of records goes to the cluster of another record."""
    moved = clusters.to_numpy(copy=True)
    at = rng.random(len(moved)) < share
    moved[at] = rng.choice(moved, at.sum())
    return pd.Series(moved, clusters.index)


class World:
    """A population of plain NumPy, so that nothing of the package draws it, and labels of it."""

    def __init__(self):
        rng = np.random.default_rng(20261201)
        sizes = np.minimum(rng.zipf(2.3, 900), 60)
        self.truth = pd.Series(
            np.repeat(np.arange(len(sizes)), sizes), [f"r{i}" for i in range(sizes.sum())]
        ).sample(frac=1, random_state=1)
        self.prediction = _move(self.truth, 0.12, rng)
        self.second = _move(self.truth, 0.03, rng)
        self.drawn = rng.choice(self.truth.index, 150)
        self.entities = self.truth[self.drawn].tolist()
        self.labels = self.truth[self.truth.isin(self.entities)]
        self.records = eb.UniformRecords(draws=self.entities)
        self.region = pd.Series(
            np.where(self.truth.to_numpy() % 3, "north", "south"), self.truth.index, name="region"
        )
        joined = pd.DataFrame({"left": self.truth.index[:-1], "right": self.truth.index[1:]})
        inside = self.truth.sort_values(kind="stable")
        same = pd.DataFrame({"left": inside.index[:-1], "right": inside.index[1:]})
        same = same[inside.to_numpy()[:-1] == inside.to_numpy()[1:]]
        self.edges = pd.concat([same, joined.sample(200, random_state=2)], ignore_index=True)
        good = self.truth[self.edges["left"]].to_numpy() == self.truth[self.edges["right"]].to_numpy()
        self.edges["score"] = np.round(0.3 * good + 0.7 * rng.random(len(good)), 3)

    def sample(self, design=None):
        return eb.Sample(eb.measure(self.prediction, self.labels), design or self.records)

    def some(self, entities):
        return self.truth[self.truth.isin(entities)]


WORLD = World()
A_FEW = ["pairwise-precision", "pairwise-recall", "b3-recall"]
STATISTICS = ["count", "mean(size)", "share(size >= 3)", "gini(size)"]


def _draw_distinct():
    entities = pd.Series(WORLD.truth.unique()).sample(120, random_state=3)
    some = WORLD.some(entities)
    sizes = WORLD.prediction[some.index].groupby(some).size()
    strata = (sizes > 2).map({True: "large", False: "small"})
    return some, strata


def _estimate(design, metrics=DEFAULT_METRICS, some=None, **options):
    return eb.estimate(
        WORLD.prediction, WORLD.labels if some is None else some, design, metrics, **options
    ).table()


def _designs():
    some, strata = _draw_distinct()
    entities = list(strata.index)
    resolved = np.arange(150) % 9 > 0
    yield "records", _estimate(WORLD.records, ALL)
    yield "records, repeats", _estimate(eb.UniformRecords(draws=WORLD.entities, repeats=True), ALL)
    yield "distinct entities", _estimate(eb.DistinctEntities(draws=150))
    yield "entities", _estimate(eb.UniformClusters(population=900), ALL, some)
    yield "entities of unknown number", _estimate(eb.UniformClusters(), some=some)
    weighted = eb.KnownWeights(pd.Series(np.linspace(1, 3, len(entities)), entities), draws=entities)
    yield "entities with weights", _estimate(weighted, some=some)
    yield "strata", _estimate(eb.Stratified(strata, {"large": 300, "small": 600}), ALL, some)
    told = np.array(WORLD.entities)[resolved].tolist()
    responding = Responding(eb.UniformRecords(draws=told), resolved, records=list(WORLD.drawn))
    yield "unresolved", _estimate(responding, some=WORLD.some(told))
    old, new = WORLD.truth.index[:1_200], WORLD.truth.index[1_200:]
    both = [WORLD.truth[[r for r in WORLD.drawn if r in part]].tolist() for part in (old, new)]
    yield "two rounds", _estimate(eb.top_up(WORLD.labels, (old, both[0]), (new, both[1])))


def _engines():
    yield "bootstrap", engine.bootstrap(WORLD.sample(), replicates=500, rng=1, progress=False).table()
    yield "jackknife", engine.jackknife(WORLD.sample()).table()
    yield "naive", engine.naive(WORLD.sample().units).to_frame("value")
    yield "side by side", eb.side_by_side(WORLD.sample(), engines=["closed form", "bootstrap"], rng=2).table()
    yield "influence", eb.influence(WORLD.sample()).head(12)
    yield "balance", eb.balance(WORLD.sample())


def _questions():
    two = {"one": WORLD.prediction, "other": WORLD.second}
    yield "compare", eb.compare(two, WORLD.labels, WORLD.records).table()
    given, everyone = (WORLD.edges, WORLD.labels, WORLD.records), WORLD.truth.index
    yield "thresholds", eb.thresholds(*given, A_FEW, records=everyone, at=6).table()
    yield "stages", eb.stages(*given, 0.5, records=everyone).table()
    yield "groups", eb.by_domain(WORLD.sample(), WORLD.region, A_FEW, prediction=WORLD.prediction).table()
    yield "impact", eb.impact(WORLD.prediction, WORLD.labels, WORLD.records, STATISTICS).table()
    yield "assisted", eb.assisted(WORLD.prediction, WORLD.labels, WORLD.records, by=WORLD.second).table()
    careful, cheap = WORLD.entities[:60], WORLD.second[WORLD.drawn].tolist()
    second = {"cheap": WORLD.second[WORLD.second.isin(cheap)], "cheap_design": eb.UniformRecords(cheap)}
    found = eb.two_phase(WORLD.prediction, WORLD.some(careful), eb.UniformRecords(careful), **second)
    yield "two phases", found.table()
    yield "check", labels.check(WORLD.sample(), {"pairwise-precision": 0.7, "pairwise-recall": 0.6}).table()
    yield "plan", forecast(WORLD.sample(), A_FEW, {"records": eb.UniformRecords()}).table()
    yield "features", features(WORLD.sample()).head(12)
    asked = pairs.draw_pairs(WORLD.edges, 120, records=everyone, seed=5)
    right = WORLD.truth[asked["left"]].to_numpy() == WORLD.truth[asked["right"]].to_numpy()
    answered = asked.assign(same=np.where(right, "yes", "no"))
    yield "pairs", pairs.estimate(WORLD.edges, answered, records=everyone).table()


def _ask(some, design):
    """Yield questions to draws of one design."""
    sample = eb.Sample(eb.measure(WORLD.prediction, some), design)
    two = {"a": WORLD.prediction, "b": WORLD.second}
    cuts = {"records": WORLD.truth.index, "at": [0.4, 0.6]}
    yield "estimate", lambda: _estimate(design, some=some)
    yield "bootstrap", lambda: engine.bootstrap(sample, replicates=100, rng=1, progress=False).table()
    yield "jackknife", lambda: engine.jackknife(sample).table()
    yield "balance", lambda: eb.balance(sample)
    yield "influence", lambda: eb.influence(sample).sort_index().head(5)  # equals have no order
    yield "check", lambda: labels.check(sample, {"pairwise-precision": 0.7, "b3-recall": 0.6}).table()
    yield "groups", lambda: eb.by_domain(sample, WORLD.region, A_FEW, prediction=WORLD.prediction).table()
    yield "differences", lambda: eb.compare(two, some, design, DEFAULT_METRICS).differences()
    yield "assisted", lambda: eb.assisted(WORLD.prediction, some, design, by=WORLD.second).table()
    yield "impact", lambda: eb.impact(WORLD.prediction, some, design, STATISTICS).table()
    yield "thresholds", lambda: eb.thresholds(WORLD.edges, some, design, A_FEW, **cuts).table()


def _crossed():
    """Ask each question of each design and of many and few draws; chances of one prediction are of no other."""
    entities = pd.Series(WORLD.truth.unique())
    for some in (WORLD.some(entities.sample(n, random_state=4)) for n in (60, 8)):
        units = eb.measure(WORLD.prediction, some)
        made = {cls.__name__: row.make for cls, row in test_design.DESIGNS.items()}
        made["WeightedRecords"] = lambda _, units: eb.WeightedRecords(
            units.ids, np.linspace(1, 3, len(units))
        )
        for name, make in made.items():
            for question, ask in _ask(some, make(some, units)):
                try:
                    yield f"{name} {len(units)} {question}", ask()
                except eb.DataError as refused:
                    assert "chances of" in str(refused), refused


PARTS = (_designs, _engines, _questions, _crossed)


def list_numbers(part):
    """Return each number of each table of a part with its place: door, row, column."""
    listed = []
    for door, table in part():
        numbers = table.select_dtypes([np.number, bool])
        names = [c for c in ("metric", "prediction", "method", "stage", "threshold", "domain") if c in table]
        rows = table[names].astype(str).agg(" ".join, axis=1) if names else table.index.astype(str)
        for row, values in zip(rows, numbers.to_numpy(float, na_value=np.nan), strict=True):
            listed += [(door, row, c, v) for c, v in zip(numbers.columns, values, strict=True)]
    return pd.DataFrame(listed, columns=["door", "row", "column", "value"])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", PARTS)
def test_no_number_moves_that_should_not(part):
    """Within 1e-9, on another processor as well (`make kernel`)."""
    stored, found = pd.read_csv(STORED, dtype={"row": str}), list_numbers(part)
    stored = stored[stored["part"] == part.__name__].drop(columns="part").reset_index(drop=True)
    place = ["door", "row", "column"]
    assert len(stored) > 200 and (stored[place].to_numpy() == found[place].to_numpy()).all()
    off = ~np.isclose(found["value"], stored["value"], rtol=1e-9, atol=1e-12, equal_nan=True)
    assert not off.any(), stored[off].assign(found=found["value"][off]).to_string(max_rows=30)


if __name__ == "__main__":
    listed = pd.concat({part.__name__: list_numbers(part) for part in PARTS}, names=["part"])
    listed.droplevel(1).to_csv(STORED, float_format="%.12g")
