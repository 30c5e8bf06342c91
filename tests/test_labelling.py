"""Error models against their expectations, two annotators by hand and in simulation."""

import numpy as np
import pandas as pd
import pytest

import erbayes as eb
from erbayes.engine import Taylor
from erbayes.labels import Annotator, AnnotatorPair, Beta, Gamma, answers, mislabel
from erbayes.labels.annotators.error_models import drawn, impute
from erbayes.labels.annotators.pieces import Labelling

pytestmark = pytest.mark.slow

P, R = eb.metrics.pairwise_precision, eb.metrics.pairwise_recall


def rng(seed=1):
    return np.random.default_rng(seed)


# Rates


def test_rates():
    assert drawn(0.3, rng(), (2,)).tolist() == [0.3, 0.3]
    assert drawn(np.float32(0.25), rng(), (2,)).tolist() == [0.25, 0.25]  # scalars of arrays are rates, too
    assert Gamma(2, 100).draw(rng(), (20_000,)).mean() == pytest.approx(0.02, abs=0.001)
    assert Beta(30, 70).draw(rng(), (20_000,)).mean() == pytest.approx(0.3, abs=0.005)
    for value, message in (
        (lambda: Beta(0, 1), "a and b of Beta"),
        (lambda: Gamma(0, 1), "cases and entities of Gamma"),
        (lambda: Annotator(kept=-0.1), "kept must be 0 or more"),
    ):
        with pytest.raises(eb.DataError, match=message):
            value()


# Errors, there and back


def world(entities=400, home=4, foreign=3, away=(1, 2), spare=3000):
    """Entities with a home, which has foreign records, and pieces elsewhere; and unlabelled clusters of 3 and of 1."""
    prediction, truth, starts, record = {}, {}, [], 0
    for e in range(entities):
        starts.append(record)
        for j, n in enumerate((home, *away)):
            for i in range(n + (foreign if j == 0 else 0)):
                prediction[record] = f"{e}-{j}"
                truth[record] = f"e{e}" if i < n else f"other {e}"
                record += 1
    for k in range(spare):
        for _ in range(1 + k % 3):
            prediction[record] = f"spare {k}"
            truth[record] = f"spare {k}"
            record += 1
    labels = pd.Series(truth)
    return pd.Series(prediction), labels[labels.str.startswith("e")], starts


@pytest.mark.parametrize(
    ("annotator", "expected"),
    [
        (Annotator(), 7),
        (Annotator(missed=0.25), 4 + 0.75 * 3),
        (Annotator(kept=0.5), 7 + 1.5),
        (Annotator(added=0.5), 7 + 0.5 * 1.65),
        (Annotator(0.999999, 0.999999), 4 + 3),
    ],
    ids=repr,
)
def test_sizes_of_mislabelled_entities(annotator, expected):
    prediction, labels, starts = world()
    seen = mislabel(labels, prediction, annotator, starts=starts, rng=3)
    assert seen.index.is_unique and seen.nunique() == 400
    assert seen.value_counts().mean() == pytest.approx(expected, abs=0.2)
    assert seen[starts].tolist() == labels[starts].tolist()  # starts stay


def test_missed_pieces_are_whole_and_kept_records_are_of_home():
    prediction, labels, starts = world()
    seen = mislabel(labels, prediction, Annotator(0.4, 0.3), starts=starts, rng=1)
    lost = labels[~labels.index.isin(seen.index)]
    pieces = prediction[labels.index].value_counts()
    gone = prediction[lost.index].value_counts()
    assert len(gone) > 200 and (gone == pieces[gone.index]).all()
    extra = seen[~seen.index.isin(labels.index)]
    homes = dict(zip(labels[starts], prediction[starts], strict=True))
    assert len(extra) > 200 and (prediction[extra.index] == extra.map(homes)).all()


@pytest.mark.parametrize(
    "rates", [(0.4, 0, 0), (0, 0.3, 0), (0, 0, 0.4), (0.3, 0.2, 0.2)], ids=["missed", "kept", "added", "all"]
)
def test_imputed_entities_are_as_large_as_true_ones(rates):
    """With errors put in by `mislabel`, into some entities that are predicted exactly and others that are not."""
    prediction, labels, starts = world(foreign=2)
    exact, right, first = world(away=(), foreign=0, spare=0)
    prediction = pd.concat([prediction, exact.add_prefix("x ").set_axis(exact.index + 10**6)])
    labels = pd.concat([labels, ("x" + right).set_axis(right.index + 10**6)])
    starts = [*starts, *(np.array(first) + 10**6)]
    prediction = prediction.where(prediction.index < 10**6, "x" + prediction)
    truth, annotator = labels.value_counts().mean(), Annotator(*map(float, rates))
    off = []
    for seed in range(6):
        seen = mislabel(labels, prediction, annotator, starts=starts, rng=seed)
        given = Labelling.of(seen, prediction, starts, rng(seed))
        again = [impute(given, annotator.draw(1).iloc[0], rng(i)) for i in range(4)]
        off.append(
            [seen.value_counts().mean() - truth, np.mean([x.value_counts().mean() for x in again]) - truth]
        )
        assert all(x.index.is_unique and x[starts].tolist() == labels[starts].tolist() for x in again)
    before, after = np.mean(off, axis=0)
    assert abs(after) < max(0.35 * abs(before), 0.12)


def test_two_values_that_imputation_has_by_hand():
    """Half of the single records elsewhere were missed: recall .500 behind .667. Singletons were added: 1 behind .909."""

    def recall(prediction, labels):
        sample = eb.Sample(eb.measure(prediction, labels), eb.UniformClusters())
        return Taylor(order=1)(sample, [R]).mean[0]

    record = np.arange(4000)
    codes = pd.factorize(2 * (record // 4) + (record % 4 == 3))[0]
    prediction = pd.Series(np.r_[codes, 2000 + np.arange(5000)])
    truth = pd.Series(record // 4).map("e{}".format)
    labels = truth[(record % 4 < 3) | (record // 4 % 2 == 0)]
    given = Labelling.of(labels, prediction, np.arange(1000) * 4)
    found = [
        recall(prediction, impute(given, {"missed": 0.5, "kept": 0, "added": 0}, rng(i))) for i in range(10)
    ]
    assert recall(prediction, labels) == pytest.approx(2 / 3, abs=0.001)
    assert np.mean(found) == pytest.approx(0.5, abs=0.01)
    prediction = pd.Series(np.r_[np.repeat(np.arange(1000), 3), 1000 + np.arange(5000)])
    labels = pd.Series(np.r_[np.repeat(np.arange(1000), 3), np.arange(100)]).map("e{}".format)
    given = Labelling.of(labels, prediction, np.arange(1000) * 3)
    assert recall(prediction, labels) == pytest.approx(1 / 1.1)
    assert recall(prediction, impute(given, {"missed": 0, "kept": 0, "added": 0.12}, rng())) > 0.99


def test_joined_pieces_are_taken_for_true_and_imputed_where_they_lie():
    """Another prediction joins each home to a single record, of which half were missed: all come back there."""
    record = np.arange(800)
    shown = pd.Series(np.where(record % 4 < 3, record // 4, 1000 + record))
    other = pd.Series(record // 4)
    truth = pd.Series(record // 4).map("e{}".format)
    labels = truth[(record % 4 < 3) | (record // 4 % 2 == 0)]
    given = Labelling.of(labels, {"shown": shown, "other": other}, np.arange(200) * 4)
    again = impute(given, {"missed": 0.5, "kept": 0, "added": 0.5}, rng())
    assert len(again) > 740 and (again == truth[again.index]).all()
    kept = Labelling.of(truth[record % 4 < 3], {"shown": other, "other": shown}, np.arange(200) * 4)
    assert (
        len(impute(kept, {"missed": 0, "kept": 0.3, "added": 0}, rng())) == 600
    )  # none is of a home of its own


def test_priors_are_drawn_once_for_all_entities():
    prediction, labels, starts = world(entities=100)
    annotator = Annotator(missed=Beta(1, 1))
    sizes = [len(mislabel(labels, prediction, annotator, starts=starts, rng=i)) for i in range(20)]
    assert np.std(sizes) > 50


def test_starts_are_those_given_or_drawn_uniformly():
    prediction, labels, starts = world(entities=2000, away=(2,), spare=0)
    given = Labelling.of(labels, prediction, starts[:10], rng())
    assert given.start[given.entities.get_indexer(labels[starts[:10]])].tolist() == starts[:10]
    home = prediction.to_numpy()[given.start]
    assert np.mean([name.endswith("-0") for name in home]) == pytest.approx(4 / 6, abs=0.03)
    for starts, message in (([10**9], "starts are not in the prediction"), ([6], "starts have no label")):
        with pytest.raises(eb.DataError, match=message):
            Labelling.of(labels, prediction, starts)
    elsewhere = mislabel({1: "x", 9: "x"}, {1: "a", 2: "a"}, Annotator(kept=0.999), rng=1)
    assert elsewhere.to_dict() == {1: "x", 2: "x", 9: "x"}
    with pytest.raises(eb.DataError, match="none of the labelled records is in the prediction"):
        mislabel({7: "x"}, {1: "a"}, Annotator())


def test_labels_without_room_for_imputed_errors_are_no_error():
    labels = {1: "x", 2: "x", 3: "y"}
    given = Labelling.of(labels, {1: "a", 2: "b", 3: "c"}, [1, 3])
    for seed in range(5):
        again = impute(given, {"missed": 0.9, "kept": 0.9, "added": 0.9}, rng(seed))
        assert set(again.index) <= {1, 2, 3} and again[1] == "x" and again[3] == "y"


# Two annotators

PREDICTION = {1: "a", 2: "a", 3: "a", 4: "b", 5: "b", 6: "c", 7: "d", 8: "d"}


def by_hand(**more):
    """Mention 1, home a = {1, 2, 3}: the first removes 3 and finds 4; the second removes 2, 3 and finds 4, 5, 6."""
    first = answers({1: "x", 2: "x", 4: "x", 7: "y", 8: "y"}, [1, 7])
    second = answers({1: "u", 4: "u", 5: "u", 6: "u", 7: "v", 8: "v"}, [1, 7])
    return AnnotatorPair.of(first, second, PREDICTION, **more)


def test_two_annotators_by_hand():
    pair = by_hand()
    settled = {1: "x", 4: "x", 5: "x", 3: "z", 2: "z", 7: "y", 8: "y"}
    errors = pair.errors(settled)  # one piece, b, found by both; 6 was added by the second
    assert errors[["found by both", "found by the first", "found by the second"]].tolist() == [1, 0, 0]
    assert errors[["removed by both", "removed by the first", "removed by the second"]].tolist() == [1, 0, 1]
    assert errors["added"] == 1 and errors["tasks"] == 2
    rates = pair.rates(settled)
    assert (rates.missed, rates.kept, rates.added) == (Beta(0.5, 2.5), Beta(1.5, 2.5), Gamma(1.5, 4))
    assert "2 tasks" in rates.source
    with pytest.raises(eb.DataError, match="no task of the annotators has settled labels"):
        pair.rates({2: "x"})
    found = pair.agreement()
    N, J, dice = np.array([3.5, 2]), np.array([2 / 5, 1]), (np.array([1, 1]), np.array([(3 + 6) / 2, 1]))
    expected = [1 / 2 / (1 / 3.5 + 1 / 2), 1 / 2, J.mean(), (dice[0] / N).sum() / (dice[1] / N).sum()]
    assert found.mean == pytest.approx(expected, abs=0.15)  # less the ratios' bias
    table = pair.disagreements()
    assert table.to_dict("list")["records"] == [1, 1, 1]
    assert set(table["kind"]) == {"kept by the first only", "found by the second only"}
    assert pair.reading(strict=True).to_dict() == {1: 1, 4: 1, 5: 1, 6: 1, 7: 7, 8: 7}
    assert pair.reading(strict=False).to_dict() == {1: 1, 2: 1, 4: 1, 7: 7, 8: 7}
    span = pair.span(
        lambda labels, design: Taylor(order=1)(eb.Sample(eb.measure(PREDICTION, labels), design), [R]),
        lambda labels: eb.UniformRecords(labels[[1, 7]]),
    )
    assert span["strict"][0] < span["lenient"][0]
    assert span["lower"][0] <= span["strict"][0] and span["lenient"][0] <= span["upper"][0]
    assert span["upper"][0] == pytest.approx(0.5)  # as labels settle


def test_mentions_that_one_annotator_joins_are_one_entity_in_the_strict_reading():
    first = answers({1: "x", 2: "x", 4: "x", 5: "x"}, [1, 4])
    second = answers({1: "x", 2: "x", 4: "y", 5: "y"}, [1, 4])
    pair = AnnotatorPair.of(first, second, PREDICTION)
    assert set(pair.reading(strict=True)) == {1} and set(pair.reading(strict=False)) == {1, 4}


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


def test_rates_of_two_annotators_are_those_of_their_errors():
    """Of 800 entities, both annotators err alike; disagreements are settled by the truth."""
    prediction, labels, starts = world(entities=800, foreign=2)
    annotator = Annotator(0.3, 0.2, 0.1)
    seen = [mislabel(labels, prediction, annotator, starts=starts, rng=i) for i in (1, 2)]
    pair = AnnotatorPair.of(*(answers(one, starts) for one in seen), prediction)
    rates = pair.rates(labels).draw(500, 1)
    assert rates.mean().tolist() == pytest.approx([0.3, 0.2, 0.1], abs=0.03)


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
