"""A tenth of the predicted links out of reach decides in several places: each of them, on both sides of it.
All samples have thirty of fifty right pairs, and one cluster that no draw touches holds less or more than a
tenth of all links."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import erbayes as eb
from erbayes.cli import drawing, planning
from erbayes.engine.named import ClosedForm, choose_engine
from erbayes.metrics.unseen import widen

PAIRS = {i: i // 2 for i in range(100)}
LABELS = {i: i // 2 for i in range(60)}
SIDES = pytest.mark.parametrize(("giant", "notable"), [(3, False), (4, True)])
"""Sizes of the cluster that is not touched: 3 of 53 links are in it, or 6 of 56."""


def make_sample(giant: int) -> eb.Sample:
    prediction = PAIRS | dict.fromkeys(range(100, 100 + giant), -7)
    return eb.Sample(eb.measure(prediction, LABELS), eb.UniformClusters())


@pytest.mark.slow
@SIDES
def test_the_advised_engine(giant, notable):
    engine, _ = choose_engine(make_sample(giant), [eb.metrics.pairwise_precision])
    assert isinstance(engine, ClosedForm) is not notable


@SIDES
def test_the_alarm(giant, notable):
    said = [alarm for alarm in eb.alarms(make_sample(giant)) if "lie in clusters larger than any" in alarm]
    assert bool(said) is notable


@SIDES
def test_a_verdict_on_recall(giant, notable):
    verdict = eb.labels.check(make_sample(giant), {"pairwise-recall": 0.5}).table().iloc[0]
    assert verdict["verdict"] == ("open" if notable else "holds")
    assert ("lie in predicted clusters larger" in verdict.get("reason", "")) is notable


def test_intervals():
    x, bounds = np.array([0.8, 0.8]), np.array([[0.7, 0.9]] * 2)
    share, parts = np.array([0.1, 0.1 + 1e-9]), np.full((2, 2, 1), 0.08)
    length = np.diff(widen(x, bounds, share, parts))[:, 0] / 2
    # a root of squares up to a tenth, and a sum above it
    np.testing.assert_allclose(length, [np.hypot(0.09, 0.08), 0.17], rtol=1e-6)


@SIDES
def test_the_note_on_drawn_records(giant, notable, monkeypatch):
    notes = []
    monkeypatch.setattr(drawing, "message", notes.append)
    drawn = SimpleNamespace(table=pd.DataFrame({"size": [2]}), known=make_sample(giant).units.known)
    drawing._note_large(drawn)
    assert bool(notes) is notable


@SIDES
def test_the_note_on_a_plan(giant, notable, monkeypatch):
    notes = []
    monkeypatch.setattr(planning, "message", notes.append)
    # one draw of an entity misses the cluster with chance 50/51
    table = pd.DataFrame({"design": ["entities"], "n": [1]})
    planning._note_unreached(make_sample(giant), {"entities": eb.UniformClusters()}, table)
    assert bool(notes) is notable
