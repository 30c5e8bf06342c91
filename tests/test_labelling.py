"""Error models against their expectations, two annotators by hand and in simulation."""

import numpy as np
import pandas as pd
import pytest

import erbayes as eb
from erbayes.analysis.sensitivity import restored_analysis
from erbayes.engine import Taylor
from erbayes.labels import Annotator, AnnotatorPair, Beta, KeptRecords, MissedPieces, answers, perturb
from erbayes.labels.annotators.error_models import mislabel, restore, sampled_mention
from erbayes.labels.annotators.rates import Recaptured, drawn
from erbayes.study import populations as sim
from erbayes.units.clustering import Clustering

pytestmark = pytest.mark.slow

P, R = eb.metrics.pairwise_precision, eb.metrics.pairwise_recall


def rng(seed=1):
    return np.random.default_rng(seed)


# Rates


def test_rates():
    assert drawn(0.3, rng(), (2,)).tolist() == [0.3, 0.3]
    assert drawn(np.float32(0.25), rng(), (2,)).tolist() == [0.25, 0.25]  # scalars of arrays are rates, too
    assert MissedPieces(np.int64(1)).fixed(rng()).rate == 1.0
    assert Beta(30, 70).draw(rng(), (20_000,)).mean() == pytest.approx(0.3, abs=0.005)
    for value, message in (
        (lambda: Beta(0, 1), "a and b of Beta"),
        (lambda: MissedPieces(1.2), "rate of MissedPieces"),
        (lambda: MissedPieces(0.1, -1), "slope of MissedPieces"),
        (lambda: KeptRecords(-0.1), "KeptRecords"),
        (lambda: Recaptured(1, -1, 1), "counts must be"),
        (lambda: Recaptured(1, 1, 1, 0), "odds ratio"),
        (lambda: Recaptured(1, 1, 1, prior=(0, 1, 1)), "prior masses"),
    ):
        with pytest.raises(eb.DataError, match=message):
            value()


def test_recapture():
    share = Recaptured(6000, 1500, 2000).draw(rng(), (4000,))
    assert share.mean() == pytest.approx(500 / 10_000, rel=0.05)
    dependent = Recaptured(6000, 1500, 2000, odds_ratio=3).draw(rng(), (4000,))
    assert dependent.mean() == pytest.approx(1500 / 11_000, rel=0.05)
    none = Recaptured(0, 0, 0).draw(rng(), (4000,))
    assert ((0 <= none) & (none <= 1)).all() and none.std() > 0.1
    missed = 1 / (1 / Recaptured(5, 3, 4).draw(rng(), (400_000,)) - 1)  # q00 over the rest
    g = rng(2).gamma([7.0, 3.5, 4.5], size=(400_000, 3))
    assert np.median(missed) == pytest.approx(
        np.median(g[:, 1] * g[:, 2] / g[:, 0] / g.sum(axis=1)), rel=0.02
    )


# Error models


def entity(home=4, foreign=6, away=(1, 2, 5), times=3000):
    """Many entities of the same pieces: home first."""
    prediction, labels, record = {}, {}, 0
    for c in range(times):
        for j, n in enumerate((home, *away)):
            for i in range(n + (foreign if j == 0 else 1)):
                prediction[record] = f"{c}-{j}"
                if i < n:
                    labels[record] = c
                record += 1
    units = eb.measure(prediction, labels)
    at_home = np.zeros(len(units.n), dtype=bool)
    at_home[:: 1 + len(away)] = True
    return units, at_home


def records(units, n=None):
    return units.size.mean()


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (Annotator(), 12),
        (Annotator(MissedPieces(0.25)), 4 + 0.75 * 8),
        (Annotator(MissedPieces(0.5, 1.0)), 4 + sum(n * (1 - 1 / (1 + n)) for n in (1, 2, 5))),
        (Annotator(kept=KeptRecords(0.5)), 12 + 3),
        (Annotator(MissedPieces(1.0), KeptRecords(1.0)), 4 + 6),
    ],
    ids=repr,
)
def test_mislabelled_sizes(model, expected):
    units, home = entity()
    assert home.sum() == len(units)
    seen = mislabel(units, model, rng(), home)
    assert seen.size.mean() == pytest.approx(expected, abs=0.15)
    assert (seen.n <= seen.m).all() and (seen.n > 0).all()
    np.testing.assert_array_equal(seen.N, seen.size[seen.unit])
    assert len(seen) == len(units) and (np.diff(seen.unit) >= 0).all()


@pytest.mark.parametrize(
    "model",
    [
        Annotator(MissedPieces(0.3)),
        Annotator(MissedPieces(0.5, 0.7)),
        Annotator(kept=KeptRecords(0.3)),
        Annotator(MissedPieces(0.2), KeptRecords(0.2)),
    ],
    ids=repr,
)
def test_restored_sizes(model):
    units, home = entity(home=20)
    seen = mislabel(units, model, rng(), home)
    again = seen.m == 26
    truth = restore(seen, model, rng(), again)
    assert truth.size.mean() == pytest.approx(units.size.mean(), rel=0.02)
    assert (truth.n > 0).all() and (np.diff(truth.unit) >= 0).all() and (np.diff(truth.group) >= 0).all()


def test_home_is_that_of_a_uniform_record():
    units, _ = entity(times=20_000)
    home = sampled_mention(units, rng())
    assert np.bincount(units.group[home]).tolist() == [1] * 20_000
    share = home.reshape(-1, 4).mean(axis=0)
    assert share == pytest.approx(np.array([4, 1, 2, 5]) / 12, abs=0.015)


def test_priors_are_drawn_once_a_sample():
    units, home = entity(times=400)
    sizes = [
        mislabel(units, Annotator(MissedPieces(Beta(1, 1))), rng(i), home).size.mean() for i in range(20)
    ]
    assert np.std(sizes) > 1


def test_perturb_agrees_with_mislabel():
    people = sim.simulate(sim.LogNormal(1.5, 0.7), sim.Chain((sim.Splits(0.3), sim.Merges(0.2))), 4000, rng())
    labels = people.true[people.true < 300]
    mentions = labels[~labels.duplicated()].index
    careful = perturb(labels, people.pred, Annotator(), rng(), mentions)
    pd.testing.assert_series_equal(careful, labels, check_names=False, check_index_type=False)

    model = Annotator(MissedPieces(0.4), KeptRecords(0.3))
    seen = perturb(labels, people.pred, model, rng(), mentions)
    assert seen.index.is_unique and set(seen) == set(labels)
    assert seen.reindex(mentions).tolist() == labels[mentions].tolist()
    home = people.pred[mentions].to_numpy()
    kept = seen[~seen.index.isin(labels.index)]
    assert len(kept) > 10
    assert all(people.pred[r] == home[labels[mentions].tolist().index(e)] for r, e in kept.items())
    lost = labels[~labels.index.isin(seen.index)]
    pieces = labels.groupby([labels, people.pred[labels.index]]).size()
    gone = lost.groupby([lost, people.pred[lost.index]]).size()
    assert (gone == pieces[gone.index]).all()  # whole pieces, never home
    everything = perturb(labels, people.pred, Annotator(MissedPieces(1.0)), rng(), mentions)
    assert (
        people.pred[everything.index].to_numpy()
        == people.pred[mentions][
            everything.map(dict(zip(labels[mentions], mentions, strict=True)))
        ].to_numpy()
    ).all()


def test_perturb_keeps_as_many_as_it_should():
    prediction = {i: i // 3 for i in range(3000)}
    labels = {i: i for i in range(0, 3000, 3)}
    seen = perturb(labels, prediction, Annotator(kept=KeptRecords(0.5)), rng())
    assert np.bincount(seen, minlength=3000)[::3].mean() == pytest.approx(2, abs=0.1)


def test_perturb_leaves_what_the_prediction_lacks_and_contradicts_nobody():
    labels = {1: "x", 2: "x", 9: "x", 3: "y"}
    seen = perturb(
        labels,
        {1: "a", 2: "b", 3: "a", 4: "a"},
        Annotator(MissedPieces(1.0), KeptRecords(1.0)),
        rng(),
        [1, 3],
    )
    assert seen.drop(4).to_dict() == {1: "x", 9: "x", 3: "y"}
    with pytest.raises(eb.DataError, match="1 labelled entities have no mention, such as 'y'"):
        perturb(labels, {1: "a", 2: "b", 3: "a"}, Annotator(), rng(), [1])
    with pytest.raises(eb.DataError, match="1 of 2 mentions are not both labelled and predicted, such as 9"):
        perturb(labels, {1: "a", 2: "b", 3: "a"}, Annotator(), rng(), [1, 9])
    predicted = eb.measure_predicted({1: "a", 2: "a"}, {1: "x", 2: "x"}, ["a"])
    with pytest.raises(eb.DataError, match="annotators label entities"):
        mislabel(predicted, Annotator(), rng())
    with pytest.raises(eb.DataError, match="rates must be below 1"):
        restore(eb.measure({1: "a", 2: "b"}, {1: "x", 2: "x"}), Annotator(MissedPieces(1.0)), rng())


# Two annotators

PREDICTION = {1: "a", 2: "a", 3: "a", 4: "b", 5: "b", 6: "c", 7: "d", 8: "d"}


def by_hand(**more):
    """Mention 1, home a = {1, 2, 3}: the first removes 3 and finds 4; the second removes 2, 3 and finds 4, 5, 6."""
    first = answers({1: "x", 2: "x", 4: "x", 7: "y", 8: "y"}, [1, 7])
    second = answers({1: "u", 4: "u", 5: "u", 6: "u", 7: "v", 8: "v"}, [1, 7])
    return AnnotatorPair.of(first, second, PREDICTION, **more)


def test_two_annotators_by_hand():
    pair = by_hand()
    counts = pair.counts()
    assert counts.to_numpy()[:, :6].tolist() == [[1, 0, 2, 1, 0, 2], [1, 0, 1, 1, 0, 1]]
    assert counts["cases"].tolist() == pytest.approx([3, 2])
    uneven = AnnotatorPair.of(
        answers({1: "x", 4: "x", 5: "x", 6: "x"}, [1]), answers({1: "x"}, [1]), PREDICTION
    )
    assert uneven.counts()["cases"].tolist() == pytest.approx([9 / 5, 1])
    found = uneven.recaptured(2.0)[0]
    assert (found.both, found.first, found.second, found.odds_ratio) == pytest.approx((0, 9 / 5, 0, 2))
    found = pair.agreement()
    N, J, dice = np.array([3.5, 2]), np.array([2 / 5, 1]), (np.array([1, 1]), np.array([(3 + 6) / 2, 1]))
    expected = [1 / 2 / (1 / 3.5 + 1 / 2), 1 / 2, J.mean(), (dice[0] / N).sum() / (dice[1] / N).sum()]
    assert eb.metrics.Normal is type(found) and found.mean == pytest.approx(
        expected, abs=0.15
    )  # less the ratios' bias
    table = pair.disagreements()
    assert table.to_dict("list")["records"] == [1, 1, 1]
    assert set(table["kind"]) == {"kept by the first only", "found by the second only"}
    OR, AND = np.logical_or, np.logical_and
    assert pair.units().size.tolist() == [4, 2]
    assert pair.units(OR, OR).size.tolist() == [5, 2]
    assert pair.units(AND, AND).size.tolist() == [2, 2]


def test_agreement_of_the_same_is_perfect():
    same = answers({r: k for r, k in PREDICTION.items()}, [1, 4, 7])
    assert AnnotatorPair.of(same, same, PREDICTION).agreement().mean == pytest.approx(1)


def test_agreement_knows_its_tasks_by_their_ids():
    """Four tasks are no stock of four imagined units, also if they have its ids."""

    def find_lower(mentions):
        prediction = {f"{m}{k}": m for m in mentions for k in "12"}
        same = answers(prediction, [f"{m}1" for m in mentions])
        table = AnnotatorPair.of(same, same, prediction).agreement().table()
        assert (table["upper"] == 1).all() and np.ptp(table["lower"]) < 1e-12
        return table["lower"].iloc[0]

    three, four, five = (find_lower("abcde"[:n]) for n in (3, 4, 5))
    assert 0 < three < four < five < 1
    labelled = {"right": "a", "wrong": "b", "singleton": "c", "lost singleton": "d"}
    same = answers(labelled, list(labelled))
    pair = AnnotatorPair.of(same, same, {**labelled, "r": "a", "w": "b"})
    assert pair.agreement().table().loc["identical-entities", "lower"] == pytest.approx(four)


def test_pairs_that_do_not_fit():
    one = answers({1: "x", 99: "x"}, [1])
    with pytest.raises(eb.DataError, match="1 records of the answers are not in the prediction, such as 99"):
        AnnotatorPair.of(one, one, PREDICTION)
    with pytest.raises(eb.DataError, match="1 mentions were answered by one annotator only, such as 7"):
        AnnotatorPair.of(one, answers({1: "x", 7: "y"}, [1, 7]), PREDICTION)
    with pytest.raises(eb.DataError, match="1 of 1 mentions have no label, such as 5"):
        answers({1: "x"}, [5])
    with pytest.raises(eb.DataError, match="listed twice, such as 1"):
        answers({1: "x"}, [1, 1])


def two_annotators(repetitions, model, n=300, odds_ratio=1.0, imputations=200):
    """Mean error against perfect labels of the same sample: one annotator, both together, recaptured; (3, P and R)."""
    people = sim.simulate(
        sim.LogNormal(1.5, 0.7), sim.Chain((sim.Splits(0.25), sim.Merges(0.05))), 20_000, rng()
    )
    pred, true = Clustering.of(people.pred), people.true.to_numpy()
    members = people.true.groupby(true).indices
    source, found = rng(2), []
    for _ in range(repetitions):
        drawn_records = source.choice(len(true), n, replace=False)
        entities, at = np.unique(true[drawn_records], return_index=True)
        mentions = drawn_records[at]
        labels = people.true.iloc[np.concatenate([members[c] for c in entities])]
        truth = eb.Sample(eb.measure(pred, labels), eb.UniformRecords())
        perfect = eb.engine.taylor(truth, [P, R]).apply([P, R]).mean
        seen = [answers(perturb(labels, pred, model, source, mentions), mentions) for _ in range(2)]
        pair = AnnotatorPair.of(*seen, pred)
        one, union = (
            eb.Sample(pair.units(*how), eb.UniformRecords())
            for how in ([lambda a, b: a] * 2, [np.logical_or, np.logical_and])
        )
        fits = [eb.engine.taylor(s, [P, R]).apply([P, R]).mean for s in (one, union)]
        missed, kept = pair.recaptured(odds_ratio)
        both = Annotator(MissedPieces(missed), KeptRecords(kept))
        adjusted = restored_analysis(
            union, both, [P, R], engine=Taylor(), imputations=imputations, draws=400, rng=source
        )
        shift = np.median(adjusted.adjusted.flat, axis=0) - np.median(adjusted.plain.flat, axis=0)
        found.append([fits[0] - perfect, fits[1] - perfect, fits[1] + shift - perfect])
    return np.mean(found, axis=0)


def test_two_annotators_leave_a_third_of_the_bias_of_one_at_most():
    model = Annotator(MissedPieces(0.4), KeptRecords(0.0))
    one, union, recaptured = two_annotators(8, model, imputations=20)[:, 1]
    assert one > 0.015
    assert abs(recaptured) < one / 3
    assert abs(recaptured) < union


@pytest.mark.study
def test_capture_recapture_in_many_samples():
    """Where small pieces are harder for both, finds depend on each other: ω = 1 leaves more than a third."""
    uneven = Annotator(MissedPieces(0.7, 0.7))
    for model, odds_ratio, left in (
        (Annotator(MissedPieces(0.4), KeptRecords(0.3)), 1, 1 / 3),
        (uneven, 1, 1 / 2),
        (uneven, 2, 1 / 3),
    ):
        errors = two_annotators(100, model, odds_ratio=odds_ratio)
        print(f"\n{model}, odds ratio {odds_ratio}")
        print(pd.DataFrame(errors, ["one", "union", "recaptured"], ["P", "R"]).round(4).to_string())
        assert abs(errors[2, 1]) < left * errors[0, 1]


def test_labels_made_in_two_ways_are_compared_by_paired_samples():
    """As docs/labelling-error.md does, for labels made from predicted clusters and from scratch."""
    prediction = {i: i // 2 for i in range(40)}
    truth = {i: i // 4 for i in range(40)}
    # every other entity lost its second piece
    anchored = {i: c for i, c in truth.items() if i % 4 < 2 or c % 2}
    shuffled = dict(sorted(truth.items(), key=lambda x: -x[0]))
    for scratch in (truth, shuffled):
        draws = eb.UniformRecords(sorted(set(truth.values())))
        samples = [eb.Sample(eb.measure(prediction, labels), draws) for labels in (anchored, scratch)]
        both = Taylor().paired(samples, [P, R])
        found = both.contrast(np.hstack([-np.eye(2), np.eye(2)]), both.names[:2])
        assert found.mean[0] == pytest.approx(0) and found.mean[1] < -0.1
        assert found.sd[1] > 0
