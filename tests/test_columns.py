"""Tables have the columns that are listed here: who adds, removes or renames one says so in this file."""

import importlib
import inspect
import json
import pkgutil
import re
from collections.abc import Callable, Iterator
from functools import cache
from inspect import isabstract
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import pytest
from test_docs import LISTED, named

import erbayes as eb
from erbayes import engine, labels
from erbayes import metrics as m
from erbayes.analysis import causes, domains, planning, sensitivity
from erbayes.labels import Annotator, Records, check
from erbayes.metrics.columns import COLUMNS as COUNTED
from erbayes.metrics.tables import Tabled
from erbayes.study import Study, populations, study

P, N = "pairwise-recall", 240
PREDICTION = {i: i // 4 if i % 7 else N + i for i in range(N)}
LABELS = {i: i // 3 for i in range(N)}
GROUP = {i: i // 3 % 8 for i in range(N)}
PEOPLE = populations.simulate(populations.Zeta(2.5, 30), populations.Misattribution(0.1), 500, 1)


def sample(design: Any = None) -> eb.Sample:
    return eb.Sample(eb.measure(PREDICTION, LABELS), design or eb.UniformRecords())


def make_pair(**how: Any) -> Any:
    new = {i: i // 3 for i in range(N)}
    return eb.compare({"old": PREDICTION, "new": new}, LABELS, eb.UniformClusters(), P, **how)


def make_edges() -> pd.DataFrame:
    return pd.DataFrame({"l": ["a", "b", "d"], "r": ["b", "c", "e"], "weight": [9.0, 2.0, 4.0]})


def make_stages() -> Tabled:
    labels = {"a": "x", "b": "x", "c": "x", "d": "y", "e": "y", "f": "z", "g": "z"}
    return eb.stages(
        make_edges(), labels, eb.UniformClusters(population=3), threshold=3, records=list("abcdefg")
    )


def make_curve(**how: Any) -> Any:
    labels = {"a": "x", "b": "x", "c": "y", "d": "z", "e": "z"}
    return eb.thresholds(
        make_edges(), labels, eb.UniformClusters(population=3), records=list("abcdef"), **how
    )


def make_pairs(kind: Callable[..., Tabled]) -> Tabled:
    rows = [("a", "b", 4, "y"), ("d", "e", 4, "y"), ("b", "c", 2, "n")]
    answers = pd.DataFrame(rows, columns=["left", "right", "band", "same"])
    return kind(make_edges(), answers, records=list("abcdefg"))


@cache
def make_drawn() -> labels.RecordDraws:
    return labels.draw(PREDICTION, Records(), n=4, seed=1)


NAMES = pd.DataFrame({"record": list(PREDICTION), "name": "Ann"})


@cache
def make_labels() -> labels.Labels:
    """Answers of two annotators who do not agree."""
    with TemporaryDirectory() as temporary:
        folder = labels.write_folder(Path(temporary) / "f", make_drawn(), labels.tasks(make_drawn(), NAMES))
        n = len(folder.tasks)
        for annotator, same in {"A": ["y"] * n, "B": ["y"] + ["n"] * (n - 1)}.items():
            folder.tasks.assign(same=same).to_csv(folder.path / f"sheet-{annotator}.csv", index=False)
        return labels.read_labels(folder)


def make_neighbours() -> pd.DataFrame:
    return pd.DataFrame({"left": range(N - 1), "right": range(1, N), "score": 1.0})


def make_two() -> labels.AnnotatorPair:
    answers = (labels.answers(of, [2]) for of in ({1: "x", 2: "x", 3: "y"}, {1: "x", 2: "y", 3: "y"}))
    return labels.AnnotatorPair.of(*answers, {1: "a", 2: "a", 3: "b"})


def make_errors() -> sensitivity.WithErrors:
    def answer(given: Any, design: Any) -> Any:
        return engine.Taylor()(eb.Sample(eb.measure(PREDICTION, given), design), P)

    annotator = Annotator(missed=0.1)
    return eb.with_errors(answer, LABELS, eb.UniformRecords(), PREDICTION, annotator, imputations=2, rng=1)


def read_page() -> pd.DataFrame:
    tasks = pd.DataFrame({"task": [1], "record": [11], "role": ["drawn"]})
    answer = {"task": 1, "record": "11", "same": [], "different": [], "added": []}
    answer |= {"cannot_tell": False, "note": "", "done": True}
    said = {"version": 1, "fingerprint": "f", "annotator": "Bo", "answers": [answer]}
    return labels.read_answers(json.dumps(said), tasks, "f")


def make_groups() -> pd.DataFrame:
    units = sample().units.grouped(GROUP, name="group")
    return units.groupings[0].table(units)


EXAMPLES: dict[str, Callable[[], Any]] = {
    "Against": lambda: two_estimators().against("default"),
    "AssistedEstimates": lambda: eb.assisted(PREDICTION, LABELS, eb.UniformClusters(), P, by=LABELS),
    "ByDomain": lambda: domains.by_domain(sample(), GROUP, P),
    "Check": lambda: check(sample(), {P: 0.95}),
    "ComparedByDomain": lambda: domains.compare_by_domain(make_pair(), GROUP, P),
    "Comparison": make_pair,
    "Curve": make_curve,
    "Estimates": lambda: engine.Taylor()(sample(), [m.pairwise_recall]),
    "Forecast": lambda: planning.forecast(PEOPLE, [m.pairwise_recall], {"records": eb.UniformRecords()}),
    "Impact": lambda: eb.impact(
        PREDICTION, dict([*LABELS.items()][:150]), eb.UniformRecords(), ["count", "mean(size)"]
    ),
    "LabelledPairs": lambda: make_pairs(eb.pairs.estimate),
    "ScoredEdges": lambda: make_pairs(eb.pairs.scored_edges),
    "Sample": lambda: sample(),
    "SideBySide": lambda: eb.side_by_side(
        {"closed": engine.Taylor()(sample(), [m.b3_recall])}, [m.b3_recall]
    ),
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
    "WithErrors": lambda: make_errors(),
}
COLUMNS = {
    "Against": "population plan n estimator metric failures pairs bias bias_mcse rmse rmse_mcse se_ratio se_ratio_mcse "
    "coverage coverage_mcse missed_below missed_below_mcse missed_above missed_above_mcse width width_mcse "
    "interval_score interval_score_mcse",
    "AssistedEstimates": "estimate se_bound df lower upper level kind lambda equivalent_labels unreached_share",
    "ByDomain": "domain metric estimate se df n_eff lower upper level kind",
    "Check": "minimum estimate lower upper level kind verdict further",
    "ComparedByDomain": "difference domain metric estimate se df n_eff lower upper level kind",
    "Comparison": "metric prediction estimate se df lower upper level kind",
    "Curve": "metric threshold estimate se df lower upper n_eff level kind",
    "Estimates": "estimate se df lower upper level kind",
    "Forecast": "design metric half_width n n_low n_high cost",
    "WithErrors": "error metric estimate se df lower upper level kind mcse",
    "Impact": "predicted estimate se lower upper difference least most equivalent_labels",
    "LabelledPairs": "metric threshold pairs estimate se lower upper level reason",
    "ScoredEdges": "metric threshold pairs estimate se lower upper level reason",
    "Sample": "value",
    "SideBySide": "method metric estimate sd lower upper level kind ess_bulk r_hat",
    "Stages": "stage estimate se df lower upper n_eff level kind reason",
    "Study": "population plan n estimator metric truth repetitions failures bias bias_mcse rmse rmse_mcse se_ratio "
    "se_ratio_mcse coverage coverage_mcse missed_below missed_below_mcse missed_above missed_above_mcse width "
    "width_mcse interval_score interval_score_mcse coverage_lower coverage_upper seconds warnings kind",
}


def two_estimators() -> Study:
    both = {"default": engine.Taylor(), "plain": engine.Taylor(order=1)}
    settings = {"repetitions": 2, "seed": 1}
    return study({"p": PEOPLE}, {"r": Records()}, [100], both, [m.pairwise_recall], **settings)


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


@pytest.mark.slow
def test_every_table_is_listed():
    assert find_tables() == set(COLUMNS) == set(EXAMPLES), "a new table has an example and its columns above"


@pytest.mark.parametrize("name", COLUMNS)
def test_a_table_has_the_columns_that_are_listed(name):
    found = EXAMPLES[name]()
    assert type(found).__name__ == name
    assert " ".join(map(str, found.table().columns)) == COLUMNS[name]
    honours_settings(found)


def honours_settings(found: Any) -> None:
    """Each setting of a table changes it."""
    settings = {"level": 0.5, "kind": eb.intervals.Symmetric(), "settled": True, "errors": True}
    for method in ("table", "levels", "differences", "against_rest", "best"):
        work = getattr(found, method, None)
        taken = inspect.signature(work).parameters if inspect.ismethod(work) else {}
        for name in settings if "settings" in taken else settings.keys() & {*taken}:
            assert not work(**{name: settings[name]}).equals(work()), f"{type(found)}.{method}({name}=)"


OTHERS: dict[str, tuple[Callable[[], pd.DataFrame], str]] = {
    "Against.better": (
        lambda: two_estimators().against("default").better(),
        "estimator metric measure cells better surely_better surely_worse change change_mcse errors",
    ),
    "Against.rounded": (
        lambda: two_estimators().against("default").rounded(),
        "population plan n estimator metric failures bias rmse coverage width",
    ),
    "Study.alike": (lambda: two_estimators().alike(), "population plan n metric estimators"),
    "Study.failures": (lambda: two_estimators().failures(), "population plan n estimator metric reason runs"),
    "Study.rounded": (lambda: two_estimators().rounded(), "population plan n estimator metric failures bias rmse coverage width"),
    "ByDomain.against_rest": (lambda: domains.by_domain(sample(), GROUP, P).against_rest(),
        "difference metric estimate se df lower upper level kind"),
    "ByDomain.balance": (lambda: domains.by_domain(sample(), GROUP, P, prediction=PREDICTION).balance(), "estimate se df known ratio"),
    "ByDomain.differences": (lambda: domains.by_domain(sample(), GROUP, P).differences(),
        "difference metric estimate se df lower upper level kind"),
    "Comparison.differences": (lambda: make_pair().differences(), "difference metric estimate se df lower upper level kind"),
    "Comparison.levels": (lambda: make_pair().levels(), "prediction metric estimate se df lower upper level kind"),
    "Curve.best": (lambda: make_curve().best(P), "metric threshold estimate se df lower upper n_eff level kind"),
    "Grouping.table": (make_groups, "records pieces units"),
    "LabelledPairs.bands": (lambda: make_pairs(eb.pairs.estimate).bands(), "band pairs labelled right cannot_tell share lower upper"),
    "Labels.agreement": (lambda: make_labels().agreement(), "annotators tasks share estimate lower upper"),
    "Labels.annotators": (lambda: make_labels().annotators(),
        "annotator, tasks, records refused, candidates accepted, ids added, controls, controls missed, median seconds"),
    "Labels.disputed": (lambda: make_labels().disputed(), "task, record, role, name, answer of A, answer of B, same, cannot_tell"),
    "Labels.records": (lambda: make_labels().records(), "record entity cluster name"),
    "Labels.summary": (lambda: make_labels().summary(), "annotator, tasks, answered, cannot tell, incomplete, unanswered"),
    "Annotator.draw": (lambda: Annotator().draw(2, 1), "removed missed kept added unsure"),
    "AnnotatorPair.disagreements": (lambda: make_two().disagreements(), "mention cluster kind records links examples"),
    "ScoredEdges.bands": (lambda: make_pairs(eb.pairs.scored_edges).bands(), "band pairs labelled right cannot_tell share lower upper"),
    "Units.table": (lambda: sample().units.table(), " ".join(column.name for column in COUNTED if column.identified(sample().units))),
    "answers": (lambda: labels.answers({1: "x", 2: "x", 3: "y"}, [2]), "mention record"),
    "grid": (lambda: sensitivity.grid(make_errors(), pd.DataFrame({"missed": [0.1, 0.2]}), imputations=2),
        "removed missed kept added unsure metric estimate lower upper mcse"),
    "tipping": (lambda: sensitivity.tipping(make_errors(), P, 0.5), "tipping_point mcse"),
    "balance": (lambda: eb.balance(sample()), "estimate se known ratio"),
    "by_text": (lambda: labels.by_text(make_drawn(), NAMES), "record candidate score why"),
    "draw_pairs": (lambda: eb.pairs.draw_pairs(make_edges(), 4, records=list("abcdefg"), seed=1, bands=2), "left right band pairs same"),
    "features": (lambda: causes.features(sample()), "records pieces largest_cluster"),
    "from_clustering": (lambda: labels.from_clustering(make_drawn(), LABELS), "record candidate score why"),
    "from_pairs": (lambda: labels.from_pairs(make_drawn(), make_neighbours(), "score"), "record candidate score why"),
    "influence": (lambda: eb.influence(sample(), P), "records pieces missing wrong foreign_links draws influence variance_share"),
    "interleaved": (lambda: labels.interleaved(*[labels.from_clustering(make_drawn(), LABELS)] * 2), "record candidate score why"),
    "read_answers": (read_page, "task record role same cannot_tell note annotator seconds"),
    "review": (lambda: causes.review(sample(), P, pd.DataFrame({"name": LABELS})), "unit influence record piece cluster_size name"),
    "tasks": (lambda: labels.tasks(make_drawn(), NAMES), "task record role name same cannot_tell"),
}  # fmt: skip
"""Every other table: its example, and its columns with spaces, or with commas if a column has two words."""
PASSED_ON = re.compile(r"erbayes\.(large|datasets|labels\.plans)\b")
"""Rooms whose tables are listed below, or are rows of other people's files, or go from a room to the next."""


def find_results(names: list[str]) -> Iterator[tuple[str, Any]]:
    """Functions and methods by name: those of the reference, and of what they return, and so on."""
    waiting, seen = [named(path) for path in names], set()
    while waiting:
        one = waiting.pop()
        if id(one) in seen or not getattr(one, "__module__", "").startswith("erbayes."):
            continue
        seen.add(id(one))
        if inspect.isclass(one):
            found = {f"{one.__name__}.{name}": getattr(one, name) for name in dir(one) if name[0] != "_"}
        else:
            found = {getattr(one, "__name__", ""): one}
        for name, work in found.items():
            work = getattr(work, "fget", None) or getattr(work, "func", None) or work
            if not inspect.isfunction(inspect.unwrap(work)) or PASSED_ON.match(work.__module__):
                continue
            yield name, work
            known = vars(importlib.import_module(work.__module__))
            words = re.findall(r"\w+", str(work.__annotations__.get("return", "")))
            waiting += [known[word] for word in words if word in known]


def find_other_tables(names: list[str]) -> set[str]:
    """Names of those that are annotated to return a table, without `table` of the classes above."""
    found = {
        name
        for name, work in find_results(names)
        if work.__annotations__.get("return") == "pd.DataFrame"
        and work not in (Tabled.to_frame, Tabled.summary)  # which return `table`
    }
    return found - {f"{name}.table" for name in (*COLUMNS, "Estimates")}


def list_columns(table: pd.DataFrame, listed: str) -> str:
    return (", " if "," in listed else " ").join(map(str, table.columns))


def test_every_other_table_is_listed():
    outside = [path for path in LISTED if not path.startswith(("erbayes.bayes.", "erbayes.plots."))]
    assert find_other_tables(outside) == set(OTHERS), "a new table has an example and its columns in OTHERS"


@pytest.mark.parametrize("name", OTHERS)
def test_another_table_has_the_columns_that_are_listed(name):
    make, listed = OTHERS[name]
    assert list_columns(make(), listed) == listed


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::erbayes.bayes.NotConverged")
def test_columns_of_the_size_model():
    from erbayes import bayes

    fit = bayes.fast(sample(), draws=200, rng=1)
    honours_settings(fit)
    draws = fit.apply(m.pairwise_recall)
    more = "closed_lower closed_upper prior_shift prior_shift_error posterior_lower posterior_upper"
    tables = {
        "Fit.convergence": (fit.convergence(), "khat r_hat worst effective"),
        "Fit.prior_shift": (fit.prior_shift(draws), "sizes retention mates"),
        "Fit.prior_shift_error": (fit.prior_shift_error(draws), "sizes retention mates"),
        "Fit.table": (fit.table(), f"{'estimate sd lower upper level kind'} {more}"),
    }
    assert {name: list_columns(*found) for name, found in tables.items()} == {
        name: listed for name, (_, listed) in tables.items()
    }
    inside = [path for path in LISTED if path.startswith("erbayes.bayes.")]
    assert find_other_tables(inside) == set(tables)
