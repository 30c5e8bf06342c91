"""Tables have the columns that are listed here: who adds, removes or renames one says so in this file."""

import importlib
import pkgutil
from collections.abc import Callable
from inspect import isabstract
from typing import Any

import numpy as np
import pandas as pd
import pytest

import erbayes as eb
from erbayes import engine
from erbayes import metrics as m
from erbayes.analysis import areas, causes, domains, planning, sensitivity
from erbayes.labels import Annotator, MissedPieces, Records, check
from erbayes.metrics.uncertain import Draws, Tabled
from erbayes.study import populations, study

P, N = "pairwise-recall", 240
PREDICTION = {i: i // 4 if i % 7 else N + i for i in range(N)}
LABELS = {i: i // 3 for i in range(N)}
GROUP = {i: i // 3 % 8 for i in range(N)}
PEOPLE = populations.simulate(populations.Zeta(2.5, 30), populations.Misattribution(0.1), 500, 1)


def sample(design: Any = None) -> eb.Sample:
    return eb.Sample(eb.measure(PREDICTION, LABELS), design or eb.UniformRecords())


def make_pair() -> Any:
    new = {i: i // 3 for i in range(N)}
    return eb.compare({"old": PREDICTION, "new": new}, LABELS, eb.UniformClusters(), P)


def make_edges() -> pd.DataFrame:
    return pd.DataFrame({"l": ["a", "b", "d"], "r": ["b", "c", "e"], "weight": [9.0, 2.0, 4.0]})


def make_stages() -> Tabled:
    labels = {"a": "x", "b": "x", "c": "x", "d": "y", "e": "y", "f": "z", "g": "z"}
    return eb.stages(
        make_edges(), labels, eb.UniformClusters(population=3), threshold=3, records=list("abcdefg")
    )


def make_curve() -> Tabled:
    labels = {"a": "x", "b": "x", "c": "y", "d": "z", "e": "z"}
    return eb.thresholds(make_edges(), labels, eb.UniformClusters(population=3), records=list("abcdef"))


def make_pairs(kind: Callable[..., Tabled]) -> Tabled:
    rows = [("a", "b", 4, "y"), ("d", "e", 4, "y"), ("b", "c", 2, "n")]
    answers = pd.DataFrame(rows, columns=["left", "right", "band", "same"])
    return kind(make_edges(), answers, records=list("abcdefg"))


def make_impact() -> Tabled:
    labels = {1: "x", 2: "x", 3: "x", 4: "y", 5: "z", 6: "z"}
    return eb.impact({**labels, 3: "b"}, labels, eb.UniformClusters(population=3), ["count", "mean(size)"])


def by_size(kind: Callable[..., Tabled]) -> Tabled:
    labels = {i: i // 4 if i < 400 else i // 2 for i in range(800)}
    at = eb.Sample(eb.measure({i: i // 2 for i in range(800)}, labels), eb.UniformClusters())
    return kind(at, P, causes.features(at)[["records"]])


EXAMPLES: dict[str, Callable[[], Tabled]] = {
    "AssistedEstimates": lambda: eb.assisted(PREDICTION, LABELS, eb.UniformClusters(), P, by=LABELS),
    "BiasAnalysis": lambda: sensitivity.restored_analysis(
        sample(), Annotator(MissedPieces(0.2)), P, imputations=20, rng=1
    ),
    "Bootstrap": lambda: engine.bootstrap(sample(), [m.pairwise_recall], rng=1),
    "ByDomain": lambda: domains.by_domain(sample(), GROUP, P),
    "Check": lambda: check(sample(), {P: 0.95}),
    "ComparedByDomain": lambda: domains.compare_by_domain(make_pair(), GROUP, P),
    "Comparison": make_pair,
    "Curve": make_curve,
    "Draws": lambda: Draws(("a",), np.array([[[1.0], [2.0]]]), ((0.0, np.inf),)),
    "PooledDraws": lambda: eb.engine.PooledDraws(("a",), np.array([[[1.0], [2.0]]]), ((0.0, np.inf),)),
    "Forecast": lambda: planning.forecast(PEOPLE, [m.pairwise_recall], {"records": eb.UniformRecords()}),
    "Grid": lambda: sensitivity.grid(sample(), [0, 0.2], [0], [m.pairwise_recall], rng=1),
    "Impact": make_impact,
    "LabelledPairs": lambda: make_pairs(eb.pairs.estimate),
    "Means": lambda: engine.BoundedMeans()(sample(), [m.b3_precision]),
    "Normal": lambda: engine.Taylor()(sample(), [m.pairwise_recall]),
    "Regression": lambda: by_size(causes.regression),
    "ScoredEdges": lambda: make_pairs(eb.pairs.scored_edges),
    "SideBySide": lambda: eb.side_by_side(
        {"closed": engine.Taylor()(sample(), [m.b3_recall])}, [m.b3_recall]
    ),
    "SmallAreas": lambda: areas.small_areas(domains.by_domain(sample(), GROUP, "b3-recall"), "b3-recall"),
    "Stages": make_stages,
    "Study": lambda: study(
        {"people": PEOPLE},
        {"records": Records()},
        [100],
        {"closed": engine.Taylor()},
        [m.pairwise_recall],
        repetitions=3,
        seed=1,
    ),
    "Tree": lambda: by_size(lambda *of: causes.tree(*of, rng=1)),
}
COLUMNS = {
    "AssistedEstimates": "estimate se_bound df lower upper level kind lambda correlation worth out_of_reach",
    "BiasAnalysis": "labels metric estimate sd lower upper level kind",
    "Bootstrap": "estimate sd lower upper level kind",
    "ByDomain": "domain metric estimate se df n_eff lower upper level kind",
    "Check": "minimum estimate lower upper level kind verdict further",
    "ComparedByDomain": "difference domain metric estimate se df n_eff lower upper level kind reason",
    "Comparison": "metric prediction estimate se df lower upper level kind",
    "Curve": "metric threshold estimate se df lower upper n_eff level kind",
    "Draws": "estimate sd lower upper level kind",
    "PooledDraws": "estimate sd lower upper level kind",
    "Forecast": "design metric estimate variance relative_se",
    "Grid": "u v metric estimate lower upper",
    "Impact": "predicted estimate se lower upper difference least most worth",
    "LabelledPairs": "metric threshold pairs estimate se lower upper level reason",
    "Means": "estimate se df lower upper level kind",
    "Normal": "estimate se df lower upper level kind",
    "Regression": "estimate se df lower upper level kind",
    "ScoredEdges": "metric threshold pairs estimate se lower upper level",
    "SideBySide": "method metric estimate sd lower upper level kind ess_bulk r_hat",
    "SmallAreas": "domain metric n_eff direct direct_se estimate lower upper level kind",
    "Stages": "stage estimate se df lower upper n_eff level kind reason",
    "Study": "population plan n estimator metric truth repetitions failures bias rmse coverage coverage_se "
    "width interval_score seconds warnings",
    "Tree": "leaf rule estimate se df n_eff lower upper level kind",
}


def find_tables() -> set[str]:
    """Names of the classes outside the size model that print as a table of their own."""
    for module in pkgutil.walk_packages(eb.__path__, "erbayes."):
        if not module.name.startswith(("erbayes.bayes", "erbayes.cli")):
            importlib.import_module(module.name)
    found, waiting = set(), [Tabled]
    while waiting:
        waiting += (children := waiting.pop().__subclasses__())
        found |= {x.__name__ for x in children if x.__module__.startswith("erbayes.") and not isabstract(x)}
        found -= {x.__name__ for x in children if x.__module__.startswith("erbayes.bayes")}
    return found


def test_every_table_is_listed():
    assert find_tables() == set(COLUMNS) == set(EXAMPLES), "a new table has an example and its columns above"


@pytest.mark.filterwarnings("ignore::erbayes.Alarm")
@pytest.mark.parametrize("name", COLUMNS)
def test_a_table_has_the_columns_that_are_listed(name):
    found = EXAMPLES[name]()
    assert type(found).__name__ == name
    assert " ".join(map(str, found.table().columns)) == COLUMNS[name]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::erbayes.bayes.NotConverged")
def test_columns_of_the_size_model():
    pytest.importorskip("pymc")
    from erbayes import bayes

    fit = bayes.fast(sample(), draws=200, rng=1)
    more = "prior_shift prior_shift_error posterior_lower posterior_upper pooled_lower pooled_upper law_lower law_upper"
    assert " ".join(map(str, fit.table().columns)) == f"{COLUMNS['Draws']} {more}"
