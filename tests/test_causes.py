"""Causes of error: against brute force."""

import numpy as np
import pandas as pd
import pytest

import erbayes as eb
from erbayes.analysis import causes

pytestmark = [pytest.mark.slow, pytest.mark.lowest]


def population(seed, entities=300, bad=0.4):
    """True entities of 1 to 8 records; those of a source "old" are split more often, and some are merged."""
    rng = np.random.default_rng(seed)
    size = rng.integers(1, 9, entities)
    true = np.repeat(np.arange(entities), size)
    old = rng.random(entities) < 0.5
    half = (rng.random(entities) < np.where(old, bad, 0.05))[true] & (rng.random(len(true)) < 0.5)
    into = np.where(rng.random(entities) < 0.1, rng.integers(0, entities, entities), np.arange(entities))
    pred = into[true] + entities * half
    return true, pred, old


def census(true, pred):
    units = eb.measure(dict(enumerate(pred.tolist())), dict(enumerate(true.tolist())))
    return eb.Sample(units, eb.UniformClusters(population=len(units)))


def sampled(true, pred, draws, rng):
    """Records drawn with replacement, and all records of their entities."""
    drawn = true[rng.integers(len(true), size=draws)]
    some = np.isin(true, drawn)
    labels = {int(i): int(true[i]) for i in np.flatnonzero(some)}
    units = eb.measure(dict(enumerate(pred.tolist())), labels)
    return eb.Sample(units, eb.UniformRecords(drawn.tolist()))


def test_features_by_brute_force():
    true, pred, _ = population(11, 60)
    sample = census(true, pred)
    size, made = np.bincount(pred), causes.features(sample)
    for c in sample.units.ids:
        mine = np.flatnonzero(true == c)
        clusters = set(pred[mine].tolist())
        assert made.loc[c].tolist() == [len(mine), len(clusters), max(size[k] for k in clusters)]


def named(true, seed):
    rng = np.random.default_rng(seed)
    usual = rng.integers(0, 200, true.max() + 1)[true]
    return pd.Series(np.where(rng.random(len(true)) < 0.1, usual + 1000, usual).astype(str), name="name")


def test_review_lists_the_records_of_the_most_influential_entities(tmp_path):
    true, pred, _ = population(31, 120)
    sample = sampled(true, pred, 50, np.random.default_rng(32))
    attributes = pd.DataFrame({"name": named(true, 33), "year": np.arange(len(true))})
    found = causes.review(sample, "b3-recall", attributes, most=5)
    worst = eb.influence(sample, "b3-recall").head(5)
    assert list(dict.fromkeys(found["unit"])) == worst.index.tolist()
    size = np.bincount(pred)
    for c, rows in found.groupby("unit"):
        mine = np.flatnonzero(true == c)
        assert sorted(rows["record"]) == mine.tolist()
        assert (rows["influence"] == worst["influence"][c]).all()
        assert rows["piece"].is_monotonic_increasing and rows["piece"].max() == len(set(pred[mine]))
        assert rows["piece"].value_counts().sort_index().is_monotonic_decreasing
        for row in rows.itertuples():
            assert row.cluster_size == size[pred[row.record]]
            assert (row.name, row.year) == tuple(attributes.loc[row.record])
            assert len({pred[i] for i in rows.loc[rows["piece"] == row.piece, "record"]}) == 1
    found.to_csv(tmp_path / "review.csv", index=False)
    assert len(pd.read_csv(tmp_path / "review.csv")) == len(found)
    with pytest.raises(eb.DataError, match="attributes have columns 'piece'"):
        causes.review(sample, "b3-recall", attributes.rename(columns={"year": "piece"}))
    with pytest.raises(eb.DataError, match="no row for"):
        causes.review(sample, "b3-recall", attributes.iloc[:3])
