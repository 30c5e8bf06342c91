"""What every metric must have, and which are estimated if none are named."""

from copy import copy
from inspect import signature
from itertools import groupby

import numpy as np
import pytest

import erbayes as eb
from erbayes import metrics as m
from erbayes.engine import bootstrap, side_by_side
from erbayes.report import report

pytestmark = [pytest.mark.kernel, pytest.mark.lowest]
EVERY = [*m.ALL, *m.definitions.OTHERS, m.P_clust, m.P_rec]
WITH_A_PARAMETER = [make(x) for make in m.definitions.FAMILIES.values() for x in (0, 0.5, 1, 2)]


@pytest.mark.parametrize("metric", [*EVERY, *WITH_A_PARAMETER], ids=lambda metric: metric.name)
def test_a_metric_has_a_meaning_of_one_short_sentence_and_a_group(metric):
    assert metric.meaning.endswith(".") and metric.meaning[0].isupper() and len(metric.meaning.split()) <= 25
    assert metric.group is not m.definitions.Group.OTHER
    assert metric.meaning in repr(metric) and metric.source in repr(metric)


def test_every_row_of_words_is_of_a_metric():
    assert set(m.definitions.WORDS) <= {metric.name for metric in EVERY}


def test_meanings_differ():
    meanings = [metric.meaning for metric in EVERY]
    assert len(set(meanings)) == len(meanings)


def test_groups_are_contiguous():
    headings = [group for group, _ in groupby(m.ALL, key=lambda metric: metric.group)]
    said = "put it below the others of its group in metrics/definitions.py"
    assert len(headings) == len(set(headings)) == len(m.definitions.Group) - 1, said


def test_an_own_metric_needs_neither():
    own = m.Metric("own", (), lambda: 1.0, (), m.UNIT, "1")
    assert own.group is m.definitions.Group.OTHER and repr(own) == "<own: 1>"
    two = (eb.columns.COMMON_LINKS, eb.columns.TRUE_LINKS)
    nowhere = m.Metric("own", two, lambda a, b: np.sqrt(a - b), ((two[1], 1.0),), m.UNIT, "")
    assert not nowhere.is_share  # and it warns of nothing


def test_the_usual_metrics_are_six_of_all():
    wanted = "pairwise-precision pairwise-recall pairwise-f1 b3-precision b3-recall cluster-recall".split()
    assert [metric.name for metric in eb.metrics.DEFAULT_METRICS] == wanted
    different = set(eb.metrics.ALL)
    assert set(eb.metrics.DEFAULT_METRICS) < different and len(different) == len(eb.metrics.ALL)


def test_every_metric_of_the_room_has_a_name_that_functions_take():
    made = {value for value in vars(m).values() if isinstance(value, m.Metric)}
    assert made == {m.resolve_metrics(name)[0] for name in m.definitions.NAMED}


@pytest.mark.parametrize(
    "function",
    [
        eb.estimate, eb.compare, eb.engine.taylor, eb.engine.jackknife, eb.engine.naive, eb.alarms,
        bootstrap, side_by_side, report,
    ],
    ids=lambda function: function.__name__,
)  # fmt: skip
def test_signatures_fit_into_a_tooltip(function):
    assert signature(function).parameters["metrics"].default is eb.metrics.DEFAULT_METRICS
    assert "= DEFAULT_METRICS" in str(signature(function)) and len(str(signature(function))) <= 330
    defaults = (p.default for p in signature(function).parameters.values() if p.default is not p.empty)
    assert max(len(repr(default)) for default in defaults) <= 40


def test_several_metrics_are_copied_with_their_name():
    assert copy(eb.metrics.ALL) == eb.metrics.ALL and repr(copy(eb.metrics.ALL)) == "ALL"
    assert repr(m.definitions.Metrics([m.rand])) == f"({m.rand!r},)"
