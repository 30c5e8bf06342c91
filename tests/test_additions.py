"""What is added works everywhere or is refused everywhere: a step that is forgotten fails here.

docs/where-new-code-goes.md lists the steps. Each group below has a table of examples, and a class of the package
that has none fails the first test of its group.
"""

import inspect
import re
from contextlib import nullcontext
from dataclasses import is_dataclass
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import numpy as np
import pandas as pd
import pytest
from closed import closed
from matplotlib.figure import Figure
from test_design import DESIGNS

import erbayes as eb
from erbayes import design, engine, plots
from erbayes import labels as sampling
from erbayes import metrics as m
from erbayes.analysis.planning import forecast
from erbayes.auxiliary import two_phases
from erbayes.cli import TAKES
from erbayes.cli.analyses import KindName, MetricOptions
from erbayes.design import changes, records, units
from erbayes.labels import Annotator, Records
from erbayes.metrics import intervals
from erbayes.report import report
from erbayes.study import draw_samples, study
from erbayes.study import populations as sim

bootstrap_room = import_module("erbayes.engine.replicates")
betting_room = import_module("erbayes.engine.bounded_means")
DOCS = Path(__file__).parents[1] / "docs"
PR = (m.pairwise_precision, m.pairwise_recall)
PEOPLE = sim.simulate(sim.Zeta(2.5, 20), sim.Misattribution(0.2), 1500, np.random.default_rng(1))
TRUTH = PEOPLE.true
PREDICTION = PEOPLE.pred
LABELLED = sorted(TRUTH.unique())[:80]
LABELS = TRUTH[TRUTH.isin(LABELLED)]
UNITS = eb.measure(PREDICTION, LABELS)
SAMPLE = eb.Sample(UNITS, eb.UniformRecords(UNITS.ids))


def page(path):
    return (DOCS / path).read_text(encoding="utf-8")


def classes(room, *methods):
    """Dataclasses that a room defines, with these methods."""
    return {
        value
        for value in vars(room).values()
        if inspect.isclass(value)
        and value.__module__ == room.__name__
        and is_dataclass(value)
        and all(hasattr(value, name) for name in methods)
    }


def each_has_a_row(found, table, add):
    """Fail with what to add for a class without a row, and with the row of a class that is gone."""
    new, gone = (sorted(x.__name__ for x in a - b) for a, b in ((found, {*table}), ({*table}, found)))
    assert not new, f"{', '.join(new)}: {add}"
    assert not gone, f"{', '.join(gone)}: no such class, delete its row where you would {add}"


def make_design(cls):
    return DESIGNS[cls].make(LABELS, UNITS)


def sampled(cls):
    if cls is eb.WeightedRecords:
        drawn = LABELS.index[::3]
        return eb.Sample(eb.measure(PREDICTION, LABELS[LABELS.isin(LABELS[drawn])]), make_design(cls))
    return eb.Sample(UNITS, make_design(cls))


def test_every_design_has_an_example():
    found = set().union(*(classes(room, "expand") for room in (changes, records, units)))
    each_has_a_row(found, DESIGNS, "add its row to DESIGNS in tests/test_design.py")


@pytest.mark.parametrize("cls", DESIGNS, ids=lambda cls: cls.__name__)
class TestDesign:
    def test_is_explained(self, cls):
        in_shell = () if DESIGNS[cls].not_in_shell else ("../README.md",)
        pages = ("guide/which-estimator.md", "guide/theory.md", "guide/api.md", *in_shell)
        named = f"`{cls.__name__}", f".{cls.__name__}\n"
        absent = [where for where in pages if not any(name in page(where) for name in named)]
        assert not absent, f"say what {cls.__name__} is in {', '.join(absent)} of docs"
        assert hasattr(eb.design, cls.__name__), f"import {cls.__name__} in erbayes/design/__init__.py"

    def test_has_an_option_or_a_reason(self, cls):
        option = re.sub(r"(?<!^)(?=[A-Z])", "-", cls.__name__).lower()
        said = f"add {option} to DESIGNS in erbayes/cli/predictions.py, or not_in_shell to its row of DESIGNS"
        assert (option in TAKES) != bool(DESIGNS[cls].not_in_shell), said

    def test_is_planned_or_refused(self, cls):
        by_size = hasattr(cls, "selection") and cls.fixed_size
        if by_size or cls is eb.design.ByPredictedSize:
            assert forecast(PEOPLE, PR, {"d": make_design(cls)}).table(0.1)["n"][0] > 1
        else:
            with pytest.raises(
                eb.DataError,
                match=f"d: {cls.__name__} cannot be planned; UniformRecords, .* ByPredictedSize can",
            ):
                forecast(PEOPLE, PR, {"d": make_design(cls)})

    def test_is_studied_or_has_a_reason(self, cls):
        plan = DESIGNS[cls].studied
        if not isinstance(plan, str):
            (drawn,) = draw_samples(plan, UNITS, 60, 1, np.random.default_rng(1)).separate
            assert type(drawn.design) is cls
            engines = {"t": engine.Taylor(), "j": engine.Jackknife()}
            table = study({"p": PEOPLE}, {"d": plan}, [150], engines, PR, repetitions=40, seed=1).table()
            assert (table.failures == 0).all() and (table.bias.abs() < 4.5 * table.rmse / 40**0.5).all()
            assert (table.coverage > 0.8).all()

    def test_is_drawn_or_has_a_reason(self, cls):
        plan = DESIGNS[cls].drawn
        if isinstance(plan, str):
            return
        by_value = cls in (eb.design.KnownSelection, eb.design.Pooled)
        values = pd.Series(1.0, TRUTH.index) if by_value else None
        drawn = sampling.draw(PREDICTION, plan, n=60, seed=1, values=values)
        labels = TRUTH[TRUTH.isin(TRUTH[drawn.members["record"]])]
        found = drawn.design(labels)
        assert type(found) is cls
        units = (
            eb.measure_predicted(PREDICTION, labels, drawn.table["cluster"])
            if isinstance(plan, sampling.PredictedClusters)
            else eb.measure(PREDICTION, TRUTH[TRUTH.isin(TRUTH[drawn.table["record"]])])
        )
        assert np.isfinite(eb.engine.taylor(eb.Sample(units, found), PR[:1]).apply(PR[:1]).interval()).all()

    @pytest.mark.slow
    def test_has_a_size_model_or_is_refused(self, cls):
        evidence = pytest.importorskip("erbayes.bayes.data").Evidence
        if hasattr(cls, "selection"):
            assert evidence.of(sampled(cls)).entities.size.sum() > 0
        else:
            with pytest.raises(eb.NotIdentified, match="the chance of an entity is no known function"):
                evidence.of(sampled(cls))


OTHER = pd.Series(sim.Misattribution(0.05).apply(TRUTH.to_numpy(), np.random.default_rng(2)), TRUTH.index)
ENGINES = {
    engine.named.Advised: engine.named.Advised(),
    engine.closed_form.ClosedForm: engine.closed_form.ClosedForm(),
    eb.auxiliary.Assisted: eb.auxiliary.Assisted(
        [eb.auxiliary.Second.of(each, TRUTH, by=OTHER) for each in (PREDICTION, TRUTH)]
    ),
    engine.Taylor: engine.Taylor(),
    engine.Jackknife: engine.Jackknife(),
    engine.Resampled: engine.Resampled(replicates=40),
    engine.Naive: engine.Naive(),
    engine.BoundedMeans: engine.BoundedMeans(),
}

BOUNDED = (m.b3_precision, m.b3_recall)


def asked_of(one):
    """Metrics that an engine has."""
    return BOUNDED if isinstance(one, engine.BoundedMeans) else PR


def own(sample, metrics, rng):
    """An engine of a user: a function."""
    return eb.engine.taylor(sample, metrics).apply(metrics, order=1)


def test_every_engine_has_an_example():
    rooms = (eb.auxiliary, two_phases, engine, engine.closed_form, engine.named, design)
    found = {
        value
        for room in rooms
        for name, value in vars(room).items()
        if name[0] != "_" and inspect.isclass(value) and is_dataclass(value) and "__call__" in vars(value)
    }
    # cheap labels of one sample, which no study draws again; a metric refuses a call
    other = {two_phases.TwoPhase, eb.metrics.Metric}
    each_has_a_row(found - other, ENGINES, "add an engine of this kind to ENGINES in tests/test_additions.py")


def test_restored_labels_have_no_second_clustering():
    with pytest.raises(eb.DataError, match="labels that are restored are others: use another engine"):
        allow_for_errors(ENGINES[eb.auxiliary.Assisted])


def allow_for_errors(one):
    """An engine under errors of labels."""

    def answer(labels, design):
        return one(eb.Sample(eb.measure(PREDICTION, labels), design), PR, 1)

    return eb.with_errors(
        answer, LABELS, SAMPLE.design, PREDICTION, Annotator(missed=0.2), imputations=2, rng=1
    )


@pytest.mark.parametrize("one", [*ENGINES.values(), own], ids=lambda one: type(one).__name__)
class TestEngine:
    def test_returns_the_metrics_and_has_intervals(self, one):
        found = one(SAMPLE, asked_of(one), 1)
        assert isinstance(found, eb.Estimates)
        assert found.names == tuple(metric.name for metric in asked_of(one))
        assert found.estimate.shape == (2,) and found.interval().shape == (2, 2)
        table = found.table()
        assert (table["kind"] == "none").tolist() == table["lower"].isna().tolist()

    def test_a_seed_gives_the_same_again(self, one):
        for again in (1, np.random.default_rng(1)):
            np.testing.assert_array_equal(
                one(SAMPLE, asked_of(one), again).estimate, one(SAMPLE, asked_of(one), 1).estimate
            )

    def test_is_taken_by_studies_reports_and_errors_of_labels(self, one):
        plan = {"records": Records()}
        runs = study({"p": PEOPLE}, plan, [200], {"e": one}, asked_of(one), repetitions=2, seed=1).runs
        assert runs["estimate"].notna().all()
        assert "<th>e</th>" in report(SAMPLE, asked_of(one), engines={"e": one})
        if (
            asked_of(one) is PR and type(one) is not eb.auxiliary.Assisted
        ):  # it has counted the labels as they are
            assert np.isfinite(allow_for_errors(one).both.estimate).all()
        table = engine.side_by_side({"e": one(SAMPLE, asked_of(one), 1)}, asked_of(one)).table()
        assert table["metric"].tolist() == [metric.name for metric in asked_of(one)]

    @pytest.mark.parametrize("entities", ["xxx", "xxxyy"])
    def test_a_census_of_one_unit_or_two_has_no_error(self, one, entities):
        true, pred = (dict(enumerate(of)) for of in (entities, "aabbc"[: len(entities)]))
        if isinstance(one, eb.auxiliary.Assisted):
            one = eb.auxiliary.Assisted(eb.auxiliary.Second.of(pred, true, by=true))
        sample = eb.Sample(eb.measure(pred, true), eb.UniformClusters(len({*entities})))
        with nullcontext() if asked_of(one) is PR else pytest.raises(eb.NotIdentified, match="replacement"):
            found, wanted = one(sample, asked_of(one), 1), [1.0, 1 / 3] if len(true) == 3 else [0.5, 0.25]
            np.testing.assert_allclose(found.estimate, wanted)
            assert np.ptp(found.interval(), axis=1).max() < 1e-12 or isinstance(one, engine.Naive)

    def test_compares_or_is_refused(self, one):
        both = {"a": PREDICTION, "b": TRUTH}
        if hasattr(one, "paired"):
            # records, under which the advised engine loads no model
            found = eb.compare(both, LABELS, eb.UniformRecords(), PR, engine=one, rng=1).differences()
            assert (found["upper"] > found["lower"]).all()
        else:
            with pytest.raises(eb.DataError, match="cannot judge several predictions by the same draws"):
                eb.compare(both, LABELS, eb.UniformClusters(), PR, engine=one)


@pytest.mark.slow
def test_the_size_model_is_an_engine_too():
    bayes = pytest.importorskip("erbayes.bayes")
    parameters = inspect.signature(bayes.Modelled.__call__).parameters
    assert list(parameters) == list(inspect.signature(engine.Taylor.__call__).parameters)


KINDS = {
    eb.intervals.BetaGamma: eb.intervals.BetaGamma(),
    eb.intervals.Anytime: eb.intervals.Anytime(),
    engine.Betting: engine.Betting(),
    eb.intervals.Symmetric: eb.intervals.Symmetric(),
    eb.intervals.EqualTailed: eb.intervals.EqualTailed(),
    engine.BCa: engine.BCa(),
}
RESULTS = {
    "Normal": engine.Taylor()(SAMPLE, PR),
    "Draws": engine.Resampled(replicates=60)(SAMPLE, PR, 1).as_draws(),
    "Bootstrap": engine.Resampled(replicates=60)(SAMPLE, PR, 1),
    "Means": engine.BoundedMeans()(SAMPLE, BOUNDED),
}


SUPPORTS = (m.UNIT, (-1.0, 1.0), m.definitions.POSITIVE, (1.0, np.inf), (-np.inf, np.inf))


def normal(x, sd, support):
    """A closed-form estimate of one metric."""
    return closed(x, sd**2, 9.0, support, effective=20.0)


def test_every_kind_has_an_example():
    rooms = (intervals, bootstrap_room, betting_room)
    found = set().union(*(classes(room, "suits", "bounds") for room in rooms))
    each_has_a_row(found, KINDS, "add an interval of this kind to KINDS in tests/test_additions.py")


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: type(kind).__name__)
class TestKind:
    def test_is_an_interval_of_some_results_and_refused_by_the_others(self, kind):
        suited = [name for name, found in RESULTS.items() if kind.suits(found)]
        assert suited
        for name, found in RESULTS.items():
            if name in suited:
                bounds = found.interval(0.8, kind)
                assert (bounds[:, 0] <= bounds[:, 1]).all() and (bounds >= 0).all() and (bounds <= 1).all()
                narrow = found.interval(0.5, kind)
                assert (np.diff(narrow) < np.diff(bounds)).all()
            else:
                wrong = f"{type(kind).__name__} is no interval of these estimates"
                with pytest.raises(eb.DataError, match=wrong) as refused:
                    found.interval(0.8, kind)
                assert not [cls for cls in KINDS if cls.__name__ not in str(refused.value)]

    @pytest.mark.parametrize("support", SUPPORTS)
    def test_holds_the_estimate_on_every_support_or_is_refused(self, kind, support):
        least, most = support
        inside = 0.7 if np.isfinite(most) else 2.3
        for x in (inside, *(end + step for end in support if np.isfinite(end) for step in (0, 0.02, -0.02))):
            found = normal(x, 0.05, support)
            if not kind.suits(found):
                continue
            low, high = found.interval(0.9, kind)[0]
            assert least <= low <= np.clip(x, least, most) <= high <= most
            assert low < high or not least < x < most
            assert np.isfinite(normal(x, 0.0, support).interval(0.9, kind)).all()
        if kind.suits(found) and support == m.definitions.POSITIVE:
            one, ten = (normal(k * 2.3, k * 0.5, support).interval(0.9, kind) for k in (1, 10))
            np.testing.assert_allclose(ten, 10 * one)

    def test_every_table_names_it(self, kind):
        suited = {name: found for name, found in RESULTS.items() if kind.suits(found)}
        labels = {kind.label(found, j) for found in suited.values() for j in range(len(found.names))}
        assert len(labels) == 1
        (label,) = labels
        for found in suited.values():
            assert (found.table(0.8, kind)["kind"] == label).all()
        metrics = PR if len(suited) > 1 else [getattr(m, n.replace("-", "_")) for n in found.names]
        suited = {name: f for name, f in suited.items() if f.names == tuple(x.name for x in metrics)}
        assert (engine.side_by_side(suited, metrics, kinds=[kind]).table()["kind"] == label).all()

    def test_is_taken_by_pictures_reports_and_studies(self, kind):
        found = next(found for found in RESULTS.values() if kind.suits(found))
        ax = plots.draw_forest(found, kind=kind, ax=Figure().subplots())
        drawn = np.array([path.vertices[:, 0] for path in ax.collections[0].get_paths()])
        np.testing.assert_allclose(drawn, found.interval(0.95, kind))
        ones = {"Normal": engine.Taylor(), "Bootstrap": engine.Resampled(replicates=60)}
        suited = [name for name in ones if kind.suits(RESULTS[name])]
        one = ones[suited[0]] if suited else engine.BoundedMeans()
        assert "<table" in report(SAMPLE, asked_of(one), engines={"e": one}, kinds=[kind])
        asked = {"e": engine.Estimator(one, kind)}
        plan = {"records": Records()}
        runs = study({"p": PEOPLE}, plan, [40], asked, asked_of(one), repetitions=2, seed=1).runs
        assert runs["lower"].notna().all()
        assert (runs["kind"] == kind.label(found, 0)).all() or not suited

    def test_is_explained(self, kind):
        name = type(kind).__name__
        for where in ("intervals.md", "guide/api.md"):
            assert name in page(where), f"say what {name} is in docs/{where}"

    def test_has_a_value_of_the_option_or_needs_draws(self, kind):
        in_shell = type(kind) in {
            type(MetricOptions.kind.fget(SimpleNamespace(interval=name))) for name in get_args(KindName)
        }
        assert in_shell == kind.suits(RESULTS["Normal"]), "add it to KindName in erbayes/cli/analyses.py"


def test_a_kind_that_suits_no_result_stops_a_study():
    asked = {"e": engine.Estimator(engine.Taylor(), engine.BCa())}
    with pytest.raises(eb.DataError, match="BCa is no interval of these estimates"):
        study({"p": PEOPLE}, {"r": Records()}, [40], asked, PR, repetitions=2, seed=1)


def test_every_value_is_on_the_page_of_the_command_line():
    # help breaks lines at hyphens
    text = re.sub(r"-\n *", "-", page("guide/command-line.md"))
    values = {*TAKES, *get_args(KindName)}
    assert not sorted(v for v in values if not re.search(rf"(?<![\w-]){v}(?![\w-])", text))
