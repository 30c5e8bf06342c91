"""Error models against their expectations, two annotators by hand and in simulation."""

from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import pytest
from erring import err
from scipy import stats

import erbayes as eb
from erbayes.engine import Taylor
from erbayes.labels import Annotator, AnnotatorPair, Beta, Gamma, answers, decisions, mislabel
from erbayes.labels.decisions import Decisions, impute

pytestmark = pytest.mark.slow

P, R = eb.metrics.pairwise_precision, eb.metrics.pairwise_recall


def rng(seed=1):
    return np.random.default_rng(seed)


# Rates
def test_quantiles_of_priors_are_those_of_scipy():
    q = np.linspace(0.01, 0.99, 7)
    np.testing.assert_allclose(Beta(3, 17).ppf(q), stats.beta(3, 17).ppf(q), rtol=1e-9)
    np.testing.assert_allclose(Gamma(2, 100).ppf(q), stats.gamma(2, scale=0.01).ppf(q), rtol=1e-9)
    own, scipy = (Annotator(missed=prior).draw(50, 1) for prior in (Beta(3, 17), stats.beta(3, 17)))
    np.testing.assert_allclose(own, scipy, rtol=1e-9)


def test_each_part_of_a_prior_has_a_draw():
    """Of 40 equally likely parts; and different rates do not go together."""
    rates = Annotator(Beta(2, 38), Beta(3, 17), 0.25, Gamma(2, 100)).draw(40, 1)
    for name, prior in (("removed", stats.beta(2, 38)), ("missed", stats.beta(3, 17))):
        assert sorted((prior.cdf(rates[name]) * 40).astype(int)) == list(range(40))
    assert (rates["kept"] == 0.25).all() and abs(np.corrcoef(rates["removed"], rates["missed"])[0, 1]) < 0.4


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


def test_the_first_cluster_of_another_prediction_joins_like_any():
    apart, together = {0: "p", 1: "q", 2: "r"}, dict.fromkeys(range(3), "x")
    assert Decisions({0: "e", 1: "e", 2: "f"}, {"shown": apart, "other": together}).linked.all()


def test_missed_pieces_are_whole_and_kept_records_are_of_opened_clusters():
    prediction, labels, starts = world()
    seen = mislabel(labels, prediction, Annotator(missed=0.4, kept=0.3), starts=starts, rng=1)
    lost = labels[~labels.index.isin(seen.index)]
    pieces = prediction[labels.index].value_counts()
    gone = prediction[lost.index].value_counts()
    assert len(gone) > 200 and (gone == pieces[gone.index]).all()
    extra = seen[~seen.index.isin(labels.index)]
    homes = dict(zip(labels[starts], prediction[starts], strict=True))
    assert len(extra) > 200 and (prediction[extra.index] == extra.map(homes)).all()


def test_errors_are_those_of_plain_loops():
    """Of 40 annotators: the records that are labelled, those that are right, and foreign ones."""
    prediction, labels, starts = world(entities=150, foreign=2, spare=600)
    rates = {"removed": 0.1, "missed": 0.2, "kept": 0.15, "added": 0.1}
    of, model = dict(zip(labels[starts], starts, strict=True)), Annotator(**rates)
    own = [mislabel(labels, prediction, model, starts=starts, rng=seed) for seed in range(40)]
    assert all(x.index.is_unique and (x[starts] == labels[starts]).all() for x in own), "starts stay"
    loops = [pd.Series(err(labels, prediction, of, rng(seed), **rates)) for seed in range(40)]

    def count(x):
        return len(x), (x.reindex(labels.index) == labels).sum(), (~x.index.isin(labels.index)).sum()

    counts = np.array([[count(x) for x in seen] for seen in (own, loops)])
    error = np.sqrt(counts.var(axis=1, ddof=1).sum(axis=0) / 40)
    assert (np.abs(np.subtract(*counts.mean(axis=1))) < 3 * error).all()


def test_the_order_of_tables_changes_nothing():
    prediction, labels, starts = world(entities=60, spare=300)
    rates = {"removed": 0.1, "missed": 0.2, "kept": 0.1, "added": 0.05}
    for name in (int, "record {}".format):
        p, given, begun = prediction.rename(name), labels.rename(name), [name(x) for x in starts]
        seen = mislabel(given, p, Annotator(**rates), starts=begun, rng=1)
        first = impute(Decisions(seen, p, begun, rng()), rates, rng())
        assert len(first) != len(seen)
        for seed in range(3):
            mix = [x.iloc[rng(seed).permutation(len(x))] for x in (seen, p)]
            again = impute(Decisions(*mix, rng(seed).permutation(begun), rng()), rates, rng())
            pd.testing.assert_series_equal(first, again)
    assert impute(Decisions(seen, p, begun), {}, rng()).sort_index().equals(seen.sort_index())


def test_errors_at_a_rate_are_among_those_at_a_higher_one():
    """Random numbers are drawn before rates are read, so that labels at other rates differ by the rates alone."""
    prediction, labels, starts = world(entities=200, spare=600)
    model = Annotator(removed=0.1, missed=0.2, kept=0.1, added=0.1)
    given = Decisions(mislabel(labels, prediction, model, starts=starts, rng=1), prediction, starts, 1)
    seen = set(impute(given, {}, rng()).index)
    for name, others in (("removed", {}), ("kept", {"removed": 0.1}), ("added", {})):
        few, more = (set(impute(given, {name: x, **others}, rng()).index) for x in (0.05, 0.1))
        if name == "removed":
            # nearly so: shares of bins depend on the rate; clusters that nobody opened are left out
            opened = set(prediction[list(seen)])
            few, more = ({x for x in one - seen if prediction[x] in opened} for one in (few, more))
            assert 10 < len(few) < len(more) and len(few - more) < 0.05 * len(few)
        else:
            assert len(more) < len(few) and more <= few
    # the same additions are undone, whatever else is
    gone = [seen - set(impute(given, {"added": 0.1, "missed": x}, rng()).index) for x in (0, 0.3)]
    assert gone[0] == gone[1] and gone[0]


def hide(accepted, refused, rates, monkeypatch, homes=3000):
    """Records that change, by home of as many accepted ones next to the start, if all bins are equally likely."""
    monkeypatch.setattr(decisions, "STEPS", 1)
    monkeypatch.setattr(decisions, "WHOLE", 0.0)
    m = 1 + accepted + refused
    record = np.arange(homes * m)
    prediction = pd.Series(record // m)
    labels = prediction[record % m <= accepted].map("e{}".format)
    again = impute(Decisions(labels, prediction, np.arange(homes) * m), rates, rng())
    return np.bincount(np.abs(again.value_counts() - 1 - accepted), minlength=m) / homes


@pytest.mark.parametrize(("accepted", "refused"), [(2, 3), (0, 5), (3, 2), (4, 1), (5, 0)])
def test_numbers_of_hidden_errors_are_those_of_all_outcomes(accepted, refused, monkeypatch):
    """Of a home of 6, its start and 5 others, with 0 to 5 foreign ones: every answer to each is enumerated."""
    # bins of f: none; 1; 2 and 3, next to which 2 true ones (f = 4) and 1 (f = 5) have bins of their own
    prior, r, v = {0: 1, 1: 1, 2: 1 / 2, 3: 1 / 2, 4: 1, 5: 1}, 0.1, 0.2
    strikes, keeps = np.zeros(6), np.zeros(6)
    for f, says in product(range(6), product((0, 1), repeat=5)):  # the first f are foreign; 1: accepted
        if sum(says) != accepted:
            continue
        foreign, true = says[:f], says[f:]
        if not any(foreign):
            strikes[len(true) - sum(true)] += prior[f] * np.prod([1 - r if x else r for x in true])
        if all(true):
            keeps[sum(foreign)] += prior[f] * np.prod([v if x else 1 - v for x in foreign])
    for name, rate, exact in (("removed", r, strikes), ("kept", v, keeps)):
        found, exact = hide(accepted, refused, {name: rate}, monkeypatch), exact / exact.sum()
        assert (np.abs(found[:6] - exact) <= 4 * np.sqrt(exact * (1 - exact) / 3000) + 1e-9).all(), name


def test_a_record_that_was_struck_out_is_no_right_refusal(monkeypatch):
    """Of 3 refused records of a home of 6 one was, so that 2 were right, and 0 to 2 accepted ones are foreign."""
    monkeypatch.setattr(decisions, "STEPS", 1)
    record = np.arange(18_000)
    prediction = pd.Series(record // 6)
    given = Decisions(prediction[record % 6 < 3].map("e{}".format), prediction, record[::6])
    struck = given.records[given.row].to_numpy() % 6 == 3
    hidden = decisions._draw_hidden(given, 0.2, struck | True, struck, rng(), keeps=True)
    exact = np.array([1 / 2, 1 / 2 * 3 * 0.2, 6 * 0.2**2])  # by bins of 2 and 3 foreign records, and of 4
    exact /= exact.sum()
    found = np.bincount(given.count(hidden)) / 3000
    assert (np.abs(found - exact) <= 4 * np.sqrt(exact * (1 - exact) / 3000)).all()


def test_cells_of_a_class_show_how_many_records_are_foreign(monkeypatch):
    """All of 400 homes are right, so that with the shares of the bins found each refused record is a strike."""
    found = hide(4, 1, {"removed": 0.1}, monkeypatch, homes=400)
    assert 0.05 < found[1] < 0.6  # by bins that are equally likely
    monkeypatch.undo()
    record = np.arange(2400)
    prediction = pd.Series(record // 6)
    seen = prediction[(record % 6 == 0) | (rng().random(2400) > 0.1)].map("e{}".format)
    given = Decisions(seen, prediction, np.arange(400) * 6)
    again = [impute(given, {"removed": 0.1}, rng(i)) for i in range(5)]
    assert np.mean([len(x) for x in again]) > 2400 - 0.15 * (2400 - len(seen))


def large(kind, source):
    """6,000 entities of 2 to 8 records and their clusters, merged in pairs, split, or both; 2,000 are labelled."""
    sizes = source.integers(2, 9, 6000)
    true, to = np.repeat(np.arange(6000), sizes), np.arange(6000)
    if kind in ("merged", "all"):
        to = np.where(source.random(6000) < 0.2, np.roll(to, 3000), to)
    pred = to[true]
    if kind in ("split", "all"):
        pred = np.where(source.random(len(pred)) < 0.1, 10_000 + np.arange(len(pred)), pred)
    return pd.Series(true), pd.Series(pred)


@pytest.mark.parametrize(
    ("kind", "rates"),
    [
        ("right", {"removed": 0.1}),
        ("merged", {"removed": 0.1}),
        ("merged", {"kept": 0.3}),
        ("split", {"missed": 0.3}),
        ("split", {"removed": 0.1}),
        ("merged", {"removed": 0.1, "kept": 0.3}),
        ("split", {"added": 0.1}),
        ("all", {"removed": 0.1, "missed": 0.3, "kept": 0.2, "added": 0.05}),
    ],
    ids=str,
)
def test_imputed_labels_say_what_perfect_ones_do(kind, rates):
    source = rng(8)
    true, pred = large(kind, source)
    labels = true[true < 2000]
    start = labels.sample(frac=1, random_state=8).drop_duplicates()
    of = dict(zip(start, start.index, strict=True))
    seen = pd.Series(err(labels.to_dict(), pred.to_dict(), of, source, **rates))
    answer = partial(eb.estimate, eb.Clustering.of(pred), design=eb.UniformClusters(), metrics=[P, R])
    perfect, ignored = (answer(labels=x).estimate for x in (labels, seen))
    given = Decisions(seen, pred, start.index, rng())
    found = np.mean([answer(labels=impute(given, rates, rng(i))).estimate for i in range(5)], axis=0)
    assert np.abs(found - perfect).max() < 0.02 and np.abs(ignored - perfect).max() > 0.01


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
    given = Decisions(labels, prediction, np.arange(1000) * 4)
    rates = {"missed": 0.5, "kept": 0, "added": 0}
    found = [recall(prediction, impute(given, rates, rng(i))) for i in range(10)]
    assert recall(prediction, labels) == pytest.approx(2 / 3, abs=0.001)
    assert np.mean(found) == pytest.approx(0.5, abs=0.01)
    prediction = pd.Series(np.r_[np.repeat(np.arange(1000), 3), 1000 + np.arange(5000)])
    labels = pd.Series(np.r_[np.repeat(np.arange(1000), 3), np.arange(100)]).map("e{}".format)
    given = Decisions(labels, prediction, np.arange(1000) * 3)
    assert recall(prediction, labels) == pytest.approx(1 / 1.1)
    assert recall(prediction, impute(given, {"missed": 0, "kept": 0, "added": 0.12}, rng())) > 0.99


def test_joined_pieces_are_taken_for_true_and_imputed_where_they_lie():
    """Another prediction joins each home to a single record, of which half were missed: all come back there."""
    record = np.arange(800)
    shown = pd.Series(np.where(record % 4 < 3, record // 4, 1000 + record))
    other = pd.Series(record // 4)
    truth = pd.Series(record // 4).map("e{}".format)
    labels = truth[(record % 4 < 3) | (record // 4 % 2 == 0)]
    given = Decisions(labels, {"shown": shown, "other": other}, np.arange(200) * 4)
    again = impute(given, {"missed": 0.5, "kept": 0, "added": 0.5}, rng())
    assert len(again) > 740 and (again == truth[again.index]).all()
    kept = Decisions(truth[record % 4 < 3], {"shown": other, "other": shown}, np.arange(200) * 4)
    # none is of a home of its own
    assert len(impute(kept, {"missed": 0, "kept": 0.3, "added": 0}, rng())) == 600


def test_priors_are_drawn_once_for_all_entities():
    prediction, labels, starts = world(entities=100)
    annotator = Annotator(missed=Beta(1, 1))
    sizes = [len(mislabel(labels, prediction, annotator, starts=starts, rng=i)) for i in range(20)]
    assert np.std(sizes) > 50


def test_starts_are_those_given_or_drawn_uniformly():
    prediction, labels, starts = world(entities=2000, away=(2,), spare=0)
    given = Decisions(labels, prediction, starts[:10], rng())
    assert given.records[given.start[given.entities.get_indexer(labels[starts[:10]])]].tolist() == starts[:10]
    home = prediction[given.records[given.start]]
    assert np.mean([name.endswith("-0") for name in home]) == pytest.approx(4 / 6, abs=0.03)
    for starts, message in (([10**9], "starts are not in the prediction"), ([6], "starts have no label")):
        with pytest.raises(eb.DataError, match=message):
            Decisions(labels, prediction, starts)
    elsewhere = mislabel({1: "x", 9: "x"}, {1: "a", 2: "a"}, Annotator(kept=0.999), rng=1)
    assert elsewhere.to_dict() == {1: "x", 2: "x", 9: "x"}
    for prediction in ({1: "a"}, {}):
        with pytest.raises(eb.DataError, match="no labelled record is in the prediction: give all"):
            mislabel({7: "x"}, prediction, Annotator())


def test_labels_without_room_for_imputed_errors_are_no_error():
    labels = {1: "x", 2: "x", 3: "y"}
    given = Decisions(labels, {1: "a", 2: "b", 3: "c"}, [1, 3])
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
    # both accept 8 and find 4; the first keeps 2, and the second adds 6
    counts = ["removed", "accepted", "missed", "found", "kept", "refused", "added", "tasks"]
    assert pair.judge(settled)[counts].tolist() == [0, 1, 0, 1, 1, 1, 0, 2]
    assert pair.judge(settled, swapped=True)[counts].tolist() == [0, 1, 0, 1, 0, 1, 1, 2]
    rates = pair.rates(settled)
    assert (rates.removed, rates.missed) == (Beta(0.5, 2.5), Beta(0.5, 2.5))
    assert (rates.kept, rates.added) == (Beta(1.5, 2.5), Gamma(1.5, 4)) and "2 settled tasks" in rates.source
    assert pair.rates(settled, of_first=True).kept == Beta(1.5, 1.5)
    with pytest.raises(eb.DataError, match="no task of the annotators has settled labels"):
        pair.rates({2: "x"})
    found = pair.agreement()
    N, J, dice = np.array([3.5, 2]), np.array([2 / 5, 1]), (np.array([1, 1]), np.array([(3 + 6) / 2, 1]))
    expected = [1 / 2 / (1 / 3.5 + 1 / 2), 1 / 2, J.mean(), (dice[0] / N).sum() / (dice[1] / N).sum()]
    assert found.mean == pytest.approx(expected, abs=0.15)  # less the ratios' bias
    table = pair.disagreements()
    assert table.to_dict("list")["records"] == [1, 1, 1]
    assert set(table["kind"]) == {"kept by the first only", "found by the second only"}


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


def test_whoever_was_right_judges_the_other():
    """Of 1,200 tasks: two annotators settled, one person twice, and one by controls; within three errors."""
    prediction, labels, starts = world(entities=1200, foreign=2, spare=50_000)
    rates = {"removed": 0.08, "missed": 0.3, "kept": 0.2, "added": 0.1}
    of = dict(zip(labels[starts], starts, strict=True))
    one, two = (pd.Series(err(labels, prediction, of, rng(seed), **rates)) for seed in (1, 2))
    for other, first in ((two, False), (two, True), (labels, True)):
        pair = AnnotatorPair.of(answers(one, starts), answers(other, starts), prediction)
        found = pair.rates(labels, of_first=first)
        assert ("judges the first" in found.source) is first and "1200" in found.source
        for name, rate in rates.items():
            draws = getattr(found, name).ppf(np.linspace(0.0005, 0.9995, 1000))
            assert abs(draws.mean() - rate) < 3 * draws.std(), name
            assert draws.std() < 0.12 * rate
    pair = AnnotatorPair.of(answers(labels, starts), answers(one, starts), prediction)
    right = pair.rates(labels, of_first=True)
    assert right.removed.a == right.missed.a == right.kept.a == right.added.cases == 0.5
