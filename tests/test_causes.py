"""Causes of error: against brute force and domains."""

import sys
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import erbayes as eb
from erbayes import plots
from erbayes.analysis import causes
from erbayes.analysis.domains import by_domain
from erbayes.units.grouping import Of

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


def links_by_entity(true, pred):
    """True and common links of each entity, by pairs."""
    found = {int(c): [0, 0] for c in true}
    for c in found:
        for i, j in combinations(np.flatnonzero(true == c), 2):
            found[c][0] += 1
            found[c][1] += int(pred[i] == pred[j])
    return pd.DataFrame.from_dict(found, orient="index", columns=["true", "common"])


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (lambda t: t.drop(index=t.index[:2]), "no row for 2 of"),
        (lambda t: t.set_index(t.index.astype(str)), "make text of both"),
        (lambda t: pd.concat([t, t.head(1)]), "several rows for 1 labelled units"),
        (lambda t: t.assign(x=np.nan), "'x' has no value for"),
        (lambda t: t.assign(x=np.inf), "not finite"),
        (lambda t: t[[]], "a column or more"),
        (lambda t: t["records"], "features are a DataFrame"),
    ],
)
def test_bad_features_are_refused(table, words):
    true, pred, _ = population(10)
    sample = census(true, pred)
    with pytest.raises(eb.DataError, match=words):
        causes.tree(sample, "b3-recall", table(causes.features(sample)[["records"]]))


def test_features_and_attributes_by_brute_force():
    true, pred, _ = population(11, 60)
    sample = census(true, pred)
    size, made = np.bincount(pred), causes.features(sample)
    names = pd.DataFrame({"name": [f"n{i % 7}" for i in range(len(true))], "year": np.arange(len(true)) % 13})
    found = causes.aggregated(
        sample, names.sample(frac=1, random_state=1), {"name": pd.Series.nunique, "year": "max"}
    )
    mean = causes.aggregated(sample, names[["year"]])
    for c in sample.units.ids:
        mine = np.flatnonzero(true == c)
        clusters = set(pred[mine].tolist())
        assert made.loc[c].tolist() == [len(mine), len(clusters), max(size[k] for k in clusters)]
        assert found.loc[c].tolist() == [len({i % 7 for i in mine}), max(i % 13 for i in mine)]
        assert mean.loc[c, "year"] == pytest.approx(np.mean([i % 13 for i in mine]))
    with pytest.raises(eb.DataError, match="choose rule="):
        causes.aggregated(sample, names)
    with pytest.raises(eb.DataError, match="no column 'age'"):
        causes.aggregated(sample, names, {"age": np.max})


def test_leaves_of_a_census_equal_the_metric_of_their_entities():
    true, pred, old = population(12)
    sample = census(true, pred)
    links = links_by_entity(true, pred)
    table = pd.DataFrame({"records": np.bincount(true), "source": np.where(old, "old", "new")})
    found = causes.tree(sample, "pairwise-recall", table, most=3, rng=1)
    shown = found.table()
    assert found.chose.all() and len(shown) == 3
    assert (shown["se"] == 0).all()
    for number, estimate in zip(shown["leaf"], shown["estimate"], strict=True):
        mine = links[(found.leaf == int(number)).to_numpy()]
        assert estimate == pytest.approx(mine["common"].sum() / mine["true"].sum(), rel=1e-12)
    assert isinstance(found.root, causes.honest_tree.Split) and found.root.feature.startswith("source")


def followed(node, row):
    """The leaf of a row of features, from the splits."""
    while isinstance(node, causes.honest_tree.Split):
        node = node.below if row[node.feature] <= node.at else node.above
    return node


def test_a_tree_is_honest():
    """Leaves come from one half of the units and estimates from the other; both follow the splits."""
    true, pred, old = population(13, 2000)
    sample = sampled(true, pred, 400, np.random.default_rng(14))
    table = pd.DataFrame({"records": np.bincount(true), "old": old.astype(float)})
    found = causes.tree(sample, "pairwise-recall", table, rng=2)
    rows = table.loc[sample.units.ids]
    assert found.leaf.tolist() == [followed(found.root, row) for _, row in rows.iterrows()]
    assert found.chose.sum() == len(sample.units) // 2
    kept = pd.Series(np.where(found.chose, "no", found.leaf.astype(str)), index=sample.units.ids)
    direct = (
        by_domain(sample, kept.rename("leaf"), "pairwise-recall", of=Of.ENTITIES)
        .table()
        .query("domain != 'no'")
    )
    shown = found.table()
    for column in ("estimate", "se", "df", "n_eff", "lower", "upper"):
        np.testing.assert_allclose(shown[column], direct[column], rtol=1e-12)
    again = causes.tree(sample, "pairwise-recall", table, rng=2)
    assert again.rules == found.rules and again.table().equals(shown)
    moved = pred.copy()
    theirs = np.isin(true, sample.units.ids[~found.chose])
    moved[theirs] = 10**6 + np.flatnonzero(theirs)
    units = eb.measure(
        dict(enumerate(moved.tolist())), {int(i): int(true[i]) for i in sample.units.piece_of.index}
    )
    other = causes.tree(eb.Sample(units, sample.design), "pairwise-recall", table, rng=2)
    assert other.root == found.root
    assert (other.table()["estimate"].dropna() == 0).all() and (shown["estimate"] > 0.4).all()


def test_leaves_cover_the_truth_although_they_were_searched_for():
    true, pred, _ = population(15, 3000, bad=0.05)
    rng, held, best = np.random.default_rng(16), [], []
    noise = pd.DataFrame(rng.random((3000, 6)), columns=list("abcdef"))
    links = links_by_entity(true, pred)
    for _ in range(60):
        found = causes.tree(sampled(true, pred, 200, rng), "pairwise-recall", noise, rng=rng)
        leaf = np.array([followed(found.root, row) for row in noise.to_dict("records")])
        for number, row in found.table().set_index("leaf").iterrows():
            if not np.isnan(row.lower):
                mine = links[leaf == int(number)]
                value = mine["common"].sum() / mine["true"].sum()
                held.append(row.lower <= value <= row.upper)
                best.append(row.estimate - value)
    assert len(held) > 150
    assert np.mean(held) > 0.91
    assert abs(np.mean(best)) < 0.01


def test_designs_with_a_variance_of_their_own_take_causes():
    true, pred, old = population(34, 1000)
    rng = np.random.default_rng(35)
    drawn = true[rng.integers(len(true), size=300)]
    labels = {int(i): int(true[i]) for i in np.flatnonzero(np.isin(true, drawn))}
    units = eb.measure(dict(enumerate(pred.tolist())), labels)
    table = pd.DataFrame({"old": old}, index=np.arange(len(old)))
    for design in (eb.DistinctEntities(300), eb.design.Calibrated(eb.UniformRecords(drawn.tolist()))):
        assert len(causes.tree(eb.Sample(units, design), "b3-recall", table, rng=1).table()) == 2


def test_trees_that_cannot_be_grown_are_refused(monkeypatch):
    true, pred, _ = population(17)
    sample = sampled(true, pred, 70, np.random.default_rng(18))
    table = causes.features(sample)
    with pytest.raises(eb.DataError, match="70 draws are too few"):
        causes.tree(sample, "b3-recall", table)
    with pytest.raises(eb.NotIdentified, match="entities counts something"):
        causes.tree(sample, "entities", table, least=5)
    alone = sampled(true, np.arange(len(true)), 70, np.random.default_rng(18))
    with pytest.raises(eb.NotIdentified, match="no unit has an effect on pairwise-precision"):
        causes.tree(alone, "pairwise-precision", table, least=5)
    with pytest.raises(eb.DataError, match=r"one metric is needed, and .* stands for 2"):
        causes.tree(sample, ["b3-recall", "b3-precision"], table)
    monkeypatch.setitem(sys.modules, "sklearn.tree", None)
    with pytest.raises(eb.DataError, match=r"pip install 'erbayes\[trees\]'"):
        causes.tree(sample, "b3-recall", table, least=5)


def test_a_tree_without_a_split_is_one_leaf():
    true, pred, _ = population(19)
    sample = sampled(true, pred, 100, np.random.default_rng(20))
    found = causes.tree(sample, "b3-recall", pd.DataFrame({"x": 1}, index=sample.units.ids), rng=1)
    assert (found.root, found.rules) == (1, ("all units",))
    assert [t.get_text()[:2] for t in plots.draw_tree(found, ax=Figure().subplots()).texts] == ["1:"]


def test_the_picture_of_a_tree_shows_its_table():
    true, pred, old = population(13, 2000)
    sample = sampled(true, pred, 400, np.random.default_rng(14))
    table = pd.DataFrame({"records": np.bincount(true), "old": old.astype(float)})
    found = causes.tree(sample, "pairwise-recall", table, rng=2)
    ax = plots.draw_tree(found, level=0.8, ax=Figure().subplots())
    texts = [t.get_text() for t in ax.texts]
    for row in found.table(0.8).itertuples():
        bounds = "" if np.isnan(row.lower) else f" [{row.lower:.3f}, {row.upper:.3f}]"
        assert f"{row.leaf}: {row.estimate:.3f}{bounds}" in texts
    assert sum(t == "yes" for t in texts) == sum(t == "no" for t in texts) == len(found.rules) - 1
    assert (
        texts[:2] == ["old?", "no"]
        and found.rules[-1].startswith("old")
        and found.rules[0].startswith("not old")
    )
    assert ax.get_title() == "pairwise-recall, estimate and 80 % interval"


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
