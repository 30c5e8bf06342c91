"""Which draws count if labelling stops early, and which plans take unresolved draws."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

import erbayes as eb
from erbayes import labels as sa
from erbayes.labels.source import InMemory
from erbayes.study import populations as sim

PRED = pd.Series({i: i // 10 for i in range(40)})
TRUE = pd.Series({i: i // 5 for i in range(40)})
GIANTS = pd.Series(np.repeat(["a", "b", *(f"k{i}" for i in range(30))], [120, 80, *[2] * 30]))
SPLIT = GIANTS + pd.Series(np.where(GIANTS.index % 5 == 0, "!", ""))
"""A fifth of the records of each predicted cluster are of another entity."""
COLUMNS = [eb.columns.COMMON_LINKS, eb.columns.TRUE_LINKS, eb.columns.PREDICTED_CLUSTERS]


def labelled(true, records):
    return true[true.isin(true[records])]


def test_draws_after_the_look_do_not_count_although_they_repeat_a_labelled_record():
    drawn = sa.draw(PRED, sa.LinkEnds(), n=200, seed=1)
    begun = drawn.table["record"][:10]
    left = drawn.table["record"][~drawn.table["record"].isin(begun)]
    repeats = drawn.table["record"].isin(begun).sum()
    design = drawn.design(labelled(TRUE, begun), unlabelled=list(left))
    assert repeats == 57 and list(design.draws) == TRUE[begun].tolist()


@pytest.mark.slow
def test_every_sequence_of_draws_counts_up_to_the_first_record_that_is_not_begun():
    """All 3^5 sequences of five draws of three records, after each number of tasks."""
    drawn = sa.draw({1: "a", 2: "a", 3: "a"}, sa.Records(), n=5, seed=1)
    table, true = drawn.table, pd.Series({1: 10, 2: 20, 3: 30})
    for sequence in product((1, 2, 3), repeat=5):
        drawn = sa.RecordDraws(
            table.assign(record=sequence), drawn.plan, 5, 1, drawn.known, "", drawn.members
        )
        met = list(dict.fromkeys(sequence))
        for tasks in range(1, len(met) + 1):
            seen = []
            for record in sequence:
                if record not in met[:tasks]:
                    break
                seen.append(true[record])
            design = drawn.design(labelled(true, met[:tasks]), unlabelled=met[tasks:])
            assert list(design.draws) == seen


def test_a_record_is_not_both_unresolved_and_not_begun():
    drawn = sa.draw(PRED, sa.Records(), n=10, seed=1)
    record = drawn.table["record"][9]
    with pytest.raises(eb.DataError, match=f"1 records are both unresolved and unlabelled, such as {record}"):
        drawn.design(TRUE, unresolved=[record], unlabelled=[record])


@pytest.mark.parametrize("argument", ["unresolved", "unlabelled"])
@pytest.mark.parametrize("ids", [None, "r1", 3])
def test_only_lists_of_records_are_left_out(argument, ids):
    drawn = sa.draw(PRED, sa.Records(), n=10, seed=1)
    with pytest.raises(eb.DataError, match=f"{argument} must be a list of record ids, not"):
        drawn.design(TRUE, **{argument: ids})


def test_draws_that_chance_left_out_are_dropped_if_no_record_repeats():
    large = pd.Series({i: i // 3 for i in range(30_000)})
    drawn = sa.draw(large, sa.Records(), n=40, seed=1)
    records = drawn.table["record"]
    assert records.is_unique
    design = drawn.design(labelled(large, records[::2]), unlabelled=list(records[1::2]))
    assert list(design.draws) == large[records[::2]].tolist()
    assert isinstance(design, eb.UniformRecords)


def test_the_share_of_an_annotator_keeps_the_repeats_of_its_records():
    drawn = sa.draw(GIANTS, sa.LinkEnds(), n=400, seed=1)
    order = drawn.table["record"].drop_duplicates()
    begun, left = order[:100:2], pd.concat([order[1:100:2], order[100:]])
    labels = labelled(SPLIT, begun)
    design = drawn.design(labels, unlabelled=list(left))
    seen = drawn.table["record"][: drawn.table["record"].isin(order[99:]).to_numpy().argmax()]
    assert isinstance(design, eb.design.Responding) and design.unresolved == 0
    assert list(design.resolved) == list(design.begun) == seen.isin(begun).tolist()
    classes = pd.Series(design.classes)
    assert classes.groupby(seen.tolist()).nunique().max() == 1
    said = eb.alarms(eb.Sample(eb.measure(GIANTS, labels), design), ["pairwise-precision"])
    assert not any("unresolved" in alarm for alarm in said)


@pytest.mark.parametrize("later", [0.0, 0.5], ids=["one annotator only", "the second stopped earlier"])
@pytest.mark.slow
def test_estimates_if_an_annotator_did_less_than_the_other(later):
    """Half of the tasks are dealt to either. The second labels none, or stops where half of them are done."""
    found, source = [], InMemory.of(GIANTS)
    for seed in range(150):
        drawn = sa.draw(source, sa.LinkEnds(), n=600, seed=seed)
        order = drawn.table["record"].drop_duplicates().to_numpy()[:140]
        second = np.random.default_rng(seed).random(140) < 0.5
        gone = order[second & (np.arange(140) >= 140 * later)]
        begun = order[~np.isin(order, gone)]
        labels = labelled(SPLIT, begun)
        left = np.setdiff1d(drawn.table["record"], begun)
        sample = eb.Sample(eb.measure(GIANTS, labels), drawn.design(labels, unlabelled=list(left)))
        metric = ["pairwise-precision"]
        fit = eb.engine.taylor(sample, metric).apply(metric)
        Z = sample.contributions([eb.columns.PREDICTED_CLUSTERS])
        found.append((fit.mean[0], *fit.interval()[0], Z.sum(), *sample.expansion.covariance(Z).ravel()))
    estimate, lower, upper, clusters, variance = np.array(found).T
    census = eb.Sample(eb.measure(GIANTS, SPLIT), eb.UniformClusters(SPLIT.nunique()))
    wanted = eb.engine.taylor(census, metric).apply(metric, 1).mean[0]
    assert abs(estimate.mean() - wanted) < 3 * estimate.std() / np.sqrt(150)
    # each draw would have .029 and .021, since each giant has a hundred of them
    assert estimate.std() < 0.006
    assert abs(clusters.mean() - GIANTS.nunique()) < 3 * clusters.std() / np.sqrt(150)
    assert 0.65 < variance.mean() / clusters.var() < 1.5
    assert ((lower <= wanted) & (wanted <= upper)).mean() > 0.95


REGION = pd.Series(np.where(TRUE.isin([0, 3]), "import", "web"), TRUE.index)


def test_strata_of_values_without_a_begun_or_a_resolved_draw_are_refused_by_name():
    drawn = sa.draw(PRED, sa.Strata(), n=15, seed=3, values=REGION)
    records, rare = drawn.table["record"], drawn.table["stratum"] == "import"
    first = int(np.flatnonzero(rare)[0])
    assert first >= 1
    labels, left = (
        labelled(TRUE, records[:first]),
        list(records[first:][~records[first:].isin(records[:first])]),
    )
    with pytest.raises(
        eb.DataError, match="1 of 2 strata have no draw whose task is begun, such as 'import'"
    ):
        drawn.design(labels, unlabelled=left)
    lost = list(records[rare].unique())
    labels = labelled(TRUE, records[~records.isin(lost)])
    with pytest.raises(eb.DataError, match="1 of 2 strata have no draw that is resolved, such as 'import'"):
        drawn.design(labels, unresolved=lost)
    assert len(drawn.design(TRUE).parts) == 2


PEOPLE = sim.simulate(
    sim.Zeta(2.3, 12), sim.Chain([sim.Splits(0.3), sim.Merges(0.05)]), 700, np.random.default_rng(1)
)
SIZE = PEOPLE.pred.map(PEOPLE.pred.value_counts())
HARD = pd.Series(np.where(SIZE > 1, 0.4, 0.1), PEOPLE.pred.index)
"""The chance that nobody can resolve a record depends on its class of predicted size."""
FIELD = pd.Series(np.where(np.arange(len(PEOPLE.true)) % 3 == 0, "f", "g"), PEOPLE.pred.index)
PLANS = {"strata": (sa.Strata(), FIELD), "clusters": (sa.PredictedClusters(), None)}


def with_unresolved(plan, values, seed, n=150):
    drawn = sa.draw(PEOPLE.pred, plan, n=n, seed=seed, values=values)
    records = drawn.table["record"]
    lost = np.random.default_rng(seed).random(len(PEOPLE.pred)) < HARD
    lost = records[lost[records].to_numpy()]
    rest = records[~records.isin(lost)]
    if isinstance(plan, sa.PredictedClusters):
        clusters = PEOPLE.pred[rest].unique()
        labels = labelled(PEOPLE.true, PEOPLE.pred.index[PEOPLE.pred.isin(clusters)])
        units = eb.measure_predicted(PEOPLE.pred, labels, list(clusters))
    else:
        labels = labelled(PEOPLE.true, rest)
        units = eb.measure(PEOPLE.pred, labels)
    return drawn, eb.Sample(units, drawn.design(labels, unresolved=list(lost)))


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.slow
def test_totals_with_unresolved_draws_are_unbiased_under_other_plans(name):
    plan, values = PLANS[name]
    columns = [eb.columns.COMMON_LINKS, eb.columns.B3_PRECISION, eb.columns.B3_RECALL]
    wanted = np.array([PEOPLE.total(column) for column in columns])
    found = []
    for seed in range(80):
        _, sample = with_unresolved(plan, values, seed)
        assert isinstance(sample.design, eb.design.Responding) and sample.design.unresolved > 0.05
        Z = sample.contributions(columns)
        variance = sample.expansion
        found.append((Z.sum(axis=0), np.diag(variance.covariance(Z))))
    totals, variances = (np.array(part) for part in zip(*found, strict=True))
    noise = totals.std(axis=0, ddof=1) / np.sqrt(80)
    assert (np.abs(totals.mean(axis=0) - wanted) < 3 * noise).all()
    ratio = variances.mean(axis=0) / totals.var(axis=0, ddof=1)
    assert (ratio > 0.65).all() and (ratio < 1.9).all()  # 80 samples: a relative error of .16 of Var


def test_weights_of_unresolved_draws_by_hand():
    pred = pd.Series({i: i // 2 if i < 16 else i for i in range(24)})
    true = pd.Series({i: i // 4 for i in range(24)})
    strata = pd.Series({i: "f" if i % 3 else "g" for i in range(24)})

    def by_hand(record, expected):
        """One over the expected draws of the entity, times the draws over the resolved ones of its class."""
        return 1 / sum(expected[r] for r in true.index[true == true[record]])

    cases = {
        "records": (sa.Records(), None, dict.fromkeys(pred.index, 9 / 24)),
        "strata": (sa.Strata(), strata, strata.map({"f": 6 / 16, "g": 3 / 8}).to_dict()),
    }
    for name, (plan, values, expected) in cases.items():
        drawn = sa.draw(pred, plan, n=9, seed=2, values=values)
        records = drawn.table["record"]
        lost = [records[len(records) - 1]]
        rest = records[~records.isin(lost)]
        labels = labelled(true, rest)
        design = drawn.design(labels, unresolved=lost)
        found = eb.Sample(eb.measure(pred, labels), design).expansion
        stratum = strata[records] if name == "strata" else pd.Series(0, records)
        of_all, of_rest = stratum.value_counts(), stratum[~records.isin(lost).to_numpy()].value_counts()
        factor = of_all / of_rest.reindex(of_all.index)
        wanted = [by_hand(r, expected) * factor[stratum[[r]].iloc[0]] for r in rest]
        np.testing.assert_allclose(np.sort(found.repeats), np.sort(wanted), rtol=1e-12)


def test_unresolved_draws_that_cannot_be_adjusted_are_refused():
    units = eb.measure(PRED, TRUE)
    parts = eb.design.Pooled([eb.UniformRecords([0, 1]), eb.UniformRecords([2, 3])])
    some = eb.measure(PRED, TRUE[TRUE < 4])
    with pytest.raises(eb.DataError, match="2 draws share a class with draws of another part"):
        eb.design.Responding(parts, [True, True, False, True, True]).expand(some)
    listed = eb.design.Responding(parts, [True, True, False, True, True], list("aaabb"))
    assert len(listed.expand(some).weight) == 4
    with pytest.raises(eb.DataError, match="3 classes for 5 draws"):
        eb.design.Responding(parts, [True, True, False, True, True], [1, 2, 3])
    with pytest.raises(eb.DataError, match="1 draws are resolved, but not begun"):
        eb.design.Responding(parts, [True, True], begun=[True, False])
    with pytest.raises(eb.DataError, match="1 units are listed twice"):
        eb.design.KnownInclusion(dict.fromkeys(units.ids, 0.5), draws=[*units.ids, 0]).expand(units)


def test_clusters_by_size_take_no_unresolved_draws():
    with pytest.raises(eb.DataError, match="takes no unresolved draws: resolve each draw, list"):
        with_unresolved(sa.PredictedClusters(sa.Records()), None, 1)


def test_classes_of_unresolved_draws_are_by_record():
    drawn = sa.draw(PRED, sa.Records(), n=9, seed=1)
    first, *rest = drawn.table["record"].unique()
    with pytest.raises(eb.DataError, match="classes must be a Series or a mapping by id, not int"):
        drawn.design(labelled(TRUE, [first]), unresolved=rest, classes=3)


@pytest.mark.parametrize("units", [3, 7, 10, 49])
def test_chances_that_sum_to_one_up_to_rounding_are_taken_and_larger_ones_refused(units):
    prediction, labels = {i: i for i in range(units)}, {i: i for i in range(units)}
    chance = dict.fromkeys(range(units), 1 / units)
    measured = eb.measure(prediction, labels)
    once = 1 / (1 - (1 - 1 / units) ** units)
    assert eb.design.KnownSelection(chance).expand(measured).weight == pytest.approx(once)
    chance[0] += 1e-9
    with pytest.raises(eb.DataError, match=f"chances of {units} units sum to 1, although"):
        eb.design.KnownSelection(chance).expand(measured)
    with pytest.raises(eb.DataError, match=f"chances of {units} units sum to {units / 2:g}, although"):
        eb.design.KnownSelection(dict.fromkeys(range(units), 0.5)).expand(measured)


def test_more_draws_than_anybody_needs_are_refused(monkeypatch):
    monkeypatch.setattr("erbayes.labels.drawn.MOST", 100)
    assert len(sa.draw(PRED, sa.Records(), n=400, seed=1).table) == 400
    with pytest.raises(eb.DataError, match="401 draws from 40 records are more than 400"):
        sa.draw(PRED, sa.Records(), n=401, seed=1)
    monkeypatch.undo()
    with pytest.raises(eb.DataError, match="99,999,999,999 draws from 40 records are more than 1,000,000"):
        sa.draw(PRED, sa.LinkEnds(), n=99_999_999_999, seed=1)
