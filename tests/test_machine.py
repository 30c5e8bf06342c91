"""Answers of a machine: its rules by brute force, its help in two phases, and refusals."""

import numpy as np
import pandas as pd
import pytest

import erbayes as eb
from erbayes import metrics as m
from erbayes.labels import machine_labels
from erbayes.study import populations as sim

PR = (m.pairwise_precision, m.pairwise_recall)
RNG = np.random.default_rng(8)
TRUTH = sim.population(sim.LogNormal(0.7, 0.8), 6000, RNG)
PREDICTION = pd.Series(sim.Misattribution(0.15).apply(TRUTH.to_numpy(), RNG), TRUTH.index)


def answered(drawn, rng, missed=0.1, kept=0.1, unsure=0.05, silent=0.05, strangers=2, lost=None):
    """A machine that is shown the entity, the predicted cluster and strangers of each drawn record."""
    rows = []
    for record in dict.fromkeys(drawn):
        if rng.random() < silent:
            rows.append((record, None, None))
            continue
        own = TRUTH.index[TRUTH == TRUTH[record]]
        home = PREDICTION.index[PREDICTION == PREDICTION[record]]
        shown = own.union(home).union(rng.choice(TRUTH.index, strangers)).difference([record])
        rows.append((record, record, 1.0))
        for other in shown:
            near = other in home or TRUTH[other] == TRUTH[record]
            lose = missed if lost is None or other not in home else lost
            wrong = rng.random() < (lose if TRUTH[other] == TRUTH[record] else kept if near else kept / 10)
            right = TRUTH[other] == TRUTH[record]
            p = rng.uniform(0.5, 1) if right != wrong else rng.uniform(0, 0.49)
            rows.append((record, other, None if rng.random() < unsure else p))
    return pd.DataFrame(rows, columns=["drawn", "record", "probability"])


DRAWN = RNG.choice(TRUTH.index, 500).tolist()
ANSWERS = answered(DRAWN, RNG, missed=0.05, kept=0.05)


def by_hand(table, drawn, prediction, threshold):
    """The rules one by one, in plain Python."""
    members = {c: set(rows.index) for c, rows in prediction.groupby(prediction)}
    home = {r: members[prediction[r]] for r in set(drawn)}
    claims = {r: {r: 1.0} for r in drawn}
    for record in set(drawn):
        rows = table[table["drawn"] == record]
        if rows["probability"].isna().all():
            claims[record] |= dict.fromkeys(home[record], threshold) | {record: 1.0}
            continue
        for other, p in zip(rows["record"], rows["probability"], strict=True):
            if other == record:
                continue
            p = (threshold if other in home[record] else 0.0) if pd.isna(p) else p
            if p >= threshold:
                claims[record][other] = p
    group, given = {r: {r} for r in drawn}, {r: {} for r in drawn}
    for record, other, p in table.itertuples(index=False):
        if other is not None and other == other:
            given[record][other] = (threshold if other in home[record] else 0.0) if pd.isna(p) else p
    for record in set(drawn):
        if table["probability"][table["drawn"] == record].isna().all():
            given[record] = dict.fromkeys(home[record], threshold)
    for record in set(drawn):
        for other in set(drawn) - {record}:
            both = [given[a][b] for a, b in ((record, other), (other, record)) if b in given[a]]
            if both and sum(both) / len(both) >= threshold and group[record] is not group[other]:
                group[record] |= group[other]
                for x in group[other]:
                    group[x] = group[record]
    labels = {r: min(group[r]) for r in drawn}
    best = {}
    for record in set(drawn):
        for other, p in claims[record].items():
            if other not in labels:
                best[other] = min(best.get(other, (0, 0)), (-p, labels[record]))
    return labels | {other: entity for other, (_, entity) in best.items()}


@pytest.mark.parametrize("threshold", [0.5, 0.8, 1.0])
def test_the_rules_by_brute_force(threshold):
    drawn, prediction = DRAWN[:120], PREDICTION
    table = ANSWERS[ANSWERS["drawn"].isin(drawn)]
    found = machine_labels(table, drawn, prediction, threshold=threshold)
    assert found.labels.to_dict() == by_hand(table, drawn, prediction, threshold)
    assert found.draws.tolist() == [found.labels[r] for r in drawn]
    silent = table.groupby("drawn")["probability"].count()
    assert sorted(found.unsure) == sorted(silent.index[silent == 0])


def test_shared_records_go_where_they_are_likeliest_whatever_the_order():
    rows = [(1, 9, 0.6), (2, 9, 0.8), (3, 8, 0.7), (1, 8, 0.7), (4, 4, 1.0), (4, 5, 0.9), (5, 5, 1.0)]
    table = pd.DataFrame(rows, columns=["drawn", "record", "probability"])
    drawn = [5, 3, 2, 1, 4, 1]
    found = machine_labels(table, drawn)
    assert found.labels.to_dict() == {1: 1, 2: 2, 3: 3, 4: 4, 5: 4, 8: 1, 9: 2}
    assert found.draws.tolist() == [4, 3, 2, 1, 4, 1] and found.shared == 2
    again = machine_labels(table[::-1], drawn[::-1])
    assert again.labels.to_dict() == found.labels.to_dict()
    text = machine_labels(table.astype({"drawn": str, "record": str}), [str(r) for r in drawn])
    assert text.labels.to_dict() == {str(r): str(e) for r, e in found.labels.items()}


def test_a_machine_helps_careful_labels_of_a_part():
    truth = [sim.Population(PREDICTION, TRUTH).value(x) for x in PR]
    machine = machine_labels(ANSWERS, DRAWN, PREDICTION)
    assert 10 < len(machine.unsure) < 50 and machine.shared
    entities = TRUTH[DRAWN[:120]].tolist()
    labels, design = TRUTH[TRUTH.isin(entities)], eb.UniformRecords(entities)
    default = eb.estimate(PREDICTION, labels, design, PR)
    found = eb.two_phase(PREDICTION, labels, design, PR, cheap=machine.labels, cheap_design=machine.design)
    assert (found.weights > 0.3).all() and (found.sd < 0.85 * default.sd).all()
    low, high = found.interval().T
    assert (low < truth).all() and (truth < high).all()


# Refusals
def table_of(*rows):
    return pd.DataFrame(list(rows), columns=["drawn", "record", "probability"])


ONE = table_of(("a", "b", 0.9))


@pytest.mark.parametrize("arguments, message", [
    ((ONE.drop(columns="record"), ["a"]), "the table of answers has no column 'record'; it has 'drawn'"),
    ((table_of(("a", "b", 1.2), ("a", "c", "yes")), ["a"]), "2 of 2 answers 'probability' are not from 0 to 1"),
    ((table_of(("a", None, 0.4)), ["a"]), "1 of 1 answers have a probability and no 'record'"),
    ((ONE, ["a", "b"]), "1 of 2 drawn records have no answer, such as 'b': give each a row or more"),
    ((ONE, ["b"]), "1 of 1 drawn records have no answer"),
    ((table_of(("a", "b", 0.9), ("z", "b", 1)), ["a"]), "1 records of column 'drawn' were not drawn, such"),
    ((table_of(("a", "b", 0.9), ("a", "b", 0.8)), ["a"]), "1 pairs have several answers, such as .'a', "),
    ((table_of(("a", "b", None)), ["a"]), "cannot tell in 1 of 1 answers: pass prediction="),
    ((table_of(("a", "b", None)), ["a"], {"a": 1}), "1 records of the answers are not in the prediction"),
    ((table_of((1, "b", 1)), [1]), "are of type integer, those of the column .* of type string|all strings or all integers"),
    ((ONE, [1]), "are of type integer, those of the column .* of type string"),
])  # fmt: skip
def test_what_is_wrong_is_said(arguments, message):
    with pytest.raises(eb.DataError, match=message):
        machine_labels(*arguments)


@pytest.mark.parametrize("threshold", [0, 1.1, np.nan, "half"])
def test_thresholds_are_shares(threshold):
    with pytest.raises(eb.DataError, match="threshold must"):
        machine_labels(ONE, ["a"], threshold=threshold)
