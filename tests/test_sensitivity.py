"""Errors of labels in every answer, grids and tipping points."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from erring import err

import erbayes as eb
from erbayes import metrics as m
from erbayes.analysis.pooling import find_estimates, pool
from erbayes.analysis.sensitivity import grid, tipping, with_errors
from erbayes.datasets import people as sheet
from erbayes.labels import Annotator, Beta, Gamma
from erbayes.labels.decisions import Decisions, impute
from erbayes.metrics.estimates import Estimates
from erbayes.study import populations as sim

pytestmark = pytest.mark.slow

P, R = m.pairwise_precision, m.pairwise_recall
PR = [P, R]
SHEET = sheet()
OLD = SHEET.prediction
RIGHT = SHEET.truth.reindex(OLD.index).astype(str) + "t"
NEW = OLD.where(np.random.default_rng(1).random(len(OLD)) < 0.9, RIGHT)
DESIGN = eb.UniformRecords(SHEET.drawn)
SOME = Annotator(Beta(2, 38), Beta(3, 17), Beta(2, 18), Gamma(2, 100))


def rng(seed=1):
    return np.random.default_rng(seed)


# Every answer
GROUP = pd.Series(np.where(np.arange(len(OLD)) % 2, "even", "odd"), OLD.index, name="group")
BOTH = {"old": OLD, "new": NEW}


def taylor(prediction, metrics=PR, **settings):
    """The closed form as a function of labels and design."""
    engine = eb.engine.Taylor(**settings)
    return lambda labels, design: engine(eb.Sample(eb.measure(prediction, labels), design), metrics)


def of_sample(ask):
    return lambda labels, design: ask(eb.Sample(eb.measure(OLD, labels), design))


ANSWERS = {
    "estimate": (OLD, partial(eb.estimate, OLD, metrics=PR)),
    "jackknife": (OLD, partial(eb.estimate, OLD, metrics=PR, engine="jackknife")),
    "compare": (BOTH, partial(eb.compare, BOTH, metrics=PR)),
    "subtract": (BOTH, lambda *given: eb.compare(BOTH, *given, metrics=PR).subtract("old", "new")),
    "impact": (OLD, partial(eb.impact, OLD, statistics=["count", "mean(size)"])),
    "by_domain": (OLD, of_sample(lambda sample: eb.by_domain(sample, GROUP, PR))),
    "thresholds": (BOTH, partial(eb.thresholds, {0.9: OLD, 0.5: NEW}, metrics=PR)),
    "check": (OLD, of_sample(lambda sample: eb.labels.check(sample, {P: 0.7, "b3-recall": 0.9}))),
}


def intervals(answer):
    if isinstance(answer, eb.labels.stopping.Check):
        return answer.interval
    if "compare" in repr(type(answer)).lower() or hasattr(answer, "differences"):
        return answer.table()[["lower", "upper"]].to_numpy()
    return np.concatenate([part.interval() for part in find_estimates(answer).values()])


def estimates(answer):
    if isinstance(answer, eb.labels.stopping.Check):
        return answer.estimate
    return np.concatenate([part.estimate for part in find_estimates(answer).values()])


@pytest.mark.parametrize("name", ANSWERS)
def test_every_answer_keeps_its_type_and_is_longer_with_errors(name):
    shown, answer = ANSWERS[name]
    found = with_errors(answer, SHEET.labels, DESIGN, shown, SOME, imputations=4, rng=1)
    assert type(found.both) is type(found.random)
    assert set(found.table()["error"]) == {"random", "systematic", "both"}
    assert "miss " in found.sentence() and "judgement" in found.sentence()
    mean = np.mean([estimates(one) for one in found.run(found.rates)], axis=0)
    for part in (found.systematic, found.both):
        np.testing.assert_allclose(estimates(part), mean, rtol=1e-12)
    none = with_errors(answer, SHEET.labels, DESIGN, shown, Annotator(), imputations=2, rng=1)
    np.testing.assert_allclose(intervals(none.both), intervals(none.random), atol=1e-9)
    parts = found.systematic, found.random, found.both
    lengths = [np.ptp(intervals(part), axis=1).mean() for part in parts]
    assert lengths[0] > 0 and lengths[2] > lengths[1]
    assert "strike out nothing, miss nothing, keep nothing foreign and add nothing" in none.sentence()


def test_draws_of_engines_are_joined():
    answer = partial(eb.estimate, OLD, metrics=PR, engine="bootstrap", rng=1)
    found = with_errors(answer, SHEET.labels, DESIGN, OLD, SOME, imputations=4, rng=1)
    assert found.both.values is not None and len(found.both.flat) == 4 * len(found.random.flat)
    assert found.systematic.flat.shape == (4, 2)
    of_each = [one.estimate for one in found.run(found.rates)]
    np.testing.assert_array_equal(found.systematic.flat, of_each)
    for part in (found.systematic, found.both):
        np.testing.assert_allclose(part.estimate, np.mean(of_each, axis=0), rtol=1e-12)


def test_a_design_with_every_kind_of_draws_is_answered():
    truth = {i: i // 4 for i in range(160)}
    prediction = {i: i // 3 for i in range(400)}
    ids = list(range(40))
    unresolved = [True] * 35 + [False] * 5
    designs = [
        eb.UniformRecords(), eb.UniformRecords(ids + ids[:5]), eb.UniformClusters(population=100),
        eb.DistinctEntities(45), eb.KnownWeights(pd.Series(np.linspace(1, 2, 40), ids)),
        eb.Stratified({i: i % 2 for i in ids}, {0: 50, 1: 50}),
        eb.design.Responding(eb.UniformRecords(ids[:35]), unresolved),
    ]  # fmt: skip
    for design in designs:
        decided = 35 if isinstance(design, eb.design.Responding) else 40
        labels = {i: e for i, e in truth.items() if e < decided}
        ask = partial(with_errors, taylor(prediction), labels, design)
        found = ask(prediction, Annotator(0.05, 0.2, 0.1, 0.05), imputations=10, rng=1)
        none = ask(prediction, Annotator(), imputations=2, rng=1)
        np.testing.assert_allclose(none.both.interval(), none.random.interval(), atol=1e-9)
        assert (found.both.sd >= found.random.sd - 1e-12).all()
        shorter = np.ptp(found.random.interval(), axis=1) - np.ptp(found.both.interval(), axis=1)
        assert (shorter < 0.01).all()


@pytest.mark.parametrize(
    "sizes", [sim.LogNormal(1.2, 0.8), sim.Zeta(2.3, largest=200), sim.LogNormal(0.7, 0.6)], ids=repr
)
def test_no_interval_is_shorter_than_the_plain_one(sizes):
    world = sim.simulate(sizes, sim.Chain([sim.Splits(0.15), sim.Merges(0.05)]), 10_000, 5)
    prediction, entities = eb.Clustering.of(world.pred), world.true.unique()
    for seed in range(4):
        for uniform in (True, False):
            drawn = world.true[rng(seed).choice(world.true.index, 150)].to_numpy()
            drawn = drawn if uniform else rng(seed).choice(entities, 150, replace=False)
            design = eb.UniformRecords(drawn) if uniform else eb.UniformClusters()
            labels = world.true[world.true.isin(drawn)]
            answer = taylor(prediction)
            found = with_errors(answer, labels, design, prediction, SOME, imputations=10, rng=seed)
            assert (found.both.sd >= found.random.sd - 1e-12).all()
            shorter = np.ptp(found.random.interval(), axis=1) - np.ptp(found.both.interval(), axis=1)
            assert (shorter < 0.02).all()


# Pooling
def normal(mean, var, df=50.0, **more):
    k = len(mean)
    given = dict(names=tuple("ab")[:k], support=((0.0, 1.0),) * k, df=np.full(k, df))
    return Estimates(mean=np.array(mean), cov=np.diag(var), **given, **more)


def test_rubins_rules_by_hand():
    fits = [normal([0.5], [0.01]), normal([0.7], [0.03])]
    systematic, both = pool(fits, normal([0.5], [0.005]))
    between = 1.5 * np.var([0.5, 0.7], ddof=1)
    assert both.mean == pytest.approx(0.6) and both.cov[0, 0] == pytest.approx(0.02 + between)
    assert systematic.cov[0, 0] == pytest.approx(between) and systematic.df == pytest.approx(1)
    share = between / (0.02 + between)
    observed = 51 / 53 * 50 * (1 - share)
    assert both.df[0] == pytest.approx(1 / (share**2 + 1 / observed))


def test_the_variance_within_is_never_below_the_plain_one():
    fits = [normal([0.5, 0.9], [0.0, 0.01]), normal([0.6, 0.9], [0.0, 0.01])]
    both = pool(fits, normal([0.5, 0.9], [0.02, 0.04]))[1]
    assert np.diagonal(both.cov) == pytest.approx([0.02 + 1.5 * np.var([0.5, 0.6], ddof=1), 0.04])
    joint = normal([0.5, 0.9], [0.01, 0.01])
    joint = replace(joint, cov=np.array([[0.01, 0.008], [0.008, 0.01]]))
    both = pool([joint, joint], normal([0.5, 0.9], [0.04, 0.04]))[1]
    assert both.cov == pytest.approx(np.array([[0.04, 0.032], [0.032, 0.04]]))  # as correlated as before


def test_a_census_has_the_error_of_labels_alone():
    """Rubin's degrees of freedom are M - 1 where no variance is within, and both intervals are one."""
    fits = [normal([x], [0.0]) for x in (0.1, 0.2, 0.4, 0.5)]
    systematic, both = pool(fits, normal([0.3], [0.0]))
    assert both.df[0] == systematic.df[0] == 3 and both.cov == pytest.approx(systematic.cov)


def test_a_share_near_its_end_has_no_more_variance_than_there_is_room():
    """Without it, an interval about .004 with the variance of .914 ended at .004."""
    fits = [normal([x], [1e-6]) for x in (0.0035, 0.004, 0.0045)]
    both = pool(fits, normal([0.914], [2.25e-4]))[1]
    between = 4 / 3 * 0.0005**2
    assert both.cov[0, 0] == pytest.approx(2 * 2.25e-4 * (0.004 * 0.996) / (0.914 * 0.086) + between)
    low, high = both.interval()[0]
    assert low < 0.001 and 0.008 < high < 0.05


def test_ids_of_another_type_are_refused_by_name():
    numbers = SHEET.labels.set_axis(range(len(SHEET.labels)))
    others = {"old": OLD, "new": NEW.set_axis(range(len(NEW)))}
    for labels, shown, what in ((numbers, OLD, "labels"), (SHEET.labels, others, "other prediction")):
        with pytest.raises(eb.DataError, match=f"of type string, those of the {what} of"):
            Decisions(labels, shown)


def test_rates_near_one_find_a_place_for_each_record_at_most():
    """A found record implies a thousand missed ones at .999, and there are two clusters without a label."""
    labels, prediction = {1: "x", 2: "x"}, {1: "a", 2: "b", 3: "c", 4: "d"}
    nearly = Annotator(removed=1 - 1e-9, missed=1 - 1e-9)
    given = Decisions(labels, prediction, [1])
    true = impute(given, nearly.draw(1).iloc[0], rng())
    assert true.loc[[1, 2]].eq("x").all() and len(true) <= 4


def test_a_component_that_imputations_lack_says_so():
    fits = [normal([0.5, np.nan], [0.01, 0.01]), normal([0.5, 0.9], [0.01, 0.01])]
    both = pool(fits, normal([0.5, 0.9], [0.02, 0.04]))[1]
    assert np.isnan(both.mean[1])
    assert both.reasons == ("", "it has no estimate in 1 of 2 imputations of the labels")
    with pytest.raises(eb.DataError, match="there is no 'b' once errors of labels are undone"):
        pool([normal([0.5], [0.01])] * 2, normal([0.5, 0.9], [0.02, 0.04]))
    with pytest.raises(eb.DataError, match=r"answer returns what estimate, .* not float"):
        pool([0.5, 0.5], 0.5)


def test_a_difference_that_no_draw_shows_has_the_error_of_labels():
    _, answer = ANSWERS["subtract"]
    plain = answer(SHEET.labels, DESIGN)
    still = replace(plain.moves, variance=0 * plain.moves.variance, covariance=0 * plain.moves.covariance)
    inflated = still.inflated(np.full(2, 0.04), np.zeros(2))
    assert inflated.variance == pytest.approx(0.02)
    doubled = plain.moves.inflated(2 * np.diagonal(plain.cov), np.diagonal(plain.cov))
    assert doubled.variance == pytest.approx(2 * plain.moves.variance)
    assert doubled.covariance == pytest.approx(2 * plain.moves.covariance)


def test_a_verdict_that_errors_of_labels_could_change_is_open():
    labels = {i: i // 4 for i in range(2000)}
    prediction = {i: i // 4 for i in range(2000)}

    def answer(labels, design):
        sample = eb.Sample(eb.measure(prediction, labels), design)
        return eb.labels.check(sample, {P: 0.9, R: 0.5}, eb.labels.ONCE)

    found = with_errors(answer, labels, eb.UniformClusters(), prediction, Annotator(), imputations=2, rng=1)
    assert [v.value for v in found.both.verdicts] == ["holds", "holds"]
    wider = found.random.allow(np.array([0.9, 0.9]), np.array([[0.7, 1.2], [0.6, 1.0]]))
    assert [v.value for v in wider.verdicts] == ["open", "holds"]
    assert wider.reasons == ("it holds only if labels have no errors", "")
    assert wider.further == (None, 0) and wider.interval.max() == 1


def test_nothing_is_certain_where_labels_may_be_wrong():
    """36 of 40 records are labelled, which settles .9 to 1 of precision and .6 to .714 of recall if they are right."""
    pairs = {i: i // 2 for i in range(40)}
    labels = {i: i // 2 if i < 28 else i // 4 + 100 for i in range(36)}
    design, errors = eb.UniformRecords(), Annotator(missed=0.4, kept=0.2)

    def check(labels, design):
        return eb.labels.check(eb.Sample(eb.measure(pairs, labels), design), {P: 0.9, R: 0.6})

    for answer in (taylor(pairs), partial(eb.estimate, pairs, metrics=PR, engine="bootstrap", rng=1)):
        found = with_errors(answer, labels, design, pairs, errors, imputations=8, rng=1)
        settled = np.array([[0.9, 1], [0.6, 5 / 7]])
        assert found.random.unseen.certain == pytest.approx(settled)
        assert found.both.unseen.certain == pytest.approx(np.array([[-np.inf, 1], [-np.inf, np.inf]]))
        assert found.both.interval()[1, 0] < 0.6 and found.both.interval()[1, 1] > 5 / 7
        assert "If the labels are right" in found.random.sentence()
        assert "If the labels are right" not in found.both.sentence()
        sure = with_errors(answer, labels, design, pairs, Annotator(), imputations=2, rng=1)
        assert sure.both.unseen.certain == pytest.approx(settled)
    found = with_errors(check, labels, design, pairs, errors, imputations=8, rng=1)
    assert set(found.random.kinds) == {"certain if the labels are right"}
    assert set(found.both.kinds) == {"errors of labels"}
    sure = with_errors(check, labels, design, pairs, Annotator(), imputations=2, rng=1)
    assert sure.both.kinds == sure.random.kinds


def test_an_end_of_a_difference_is_certain_where_imputations_agree():
    _, answer = ANSWERS["subtract"]
    plain = answer(SHEET.labels, DESIGN)
    ends = np.array([[-0.1, 0.2], [-0.3, 0.4]])
    certain = ends, ends * [[1], [2]], ends
    fits = [replace(plain, unseen=replace(plain.unseen, certain=end)) for end in certain]
    assert pool(fits, plain)[1].unseen.certain.tolist() == [[-0.1, 0.2], [-np.inf, np.inf]]


# Rates
def test_rates_may_be_a_table_of_joint_draws():
    table = pd.DataFrame({"kept": [0.1, 0.2, 0.3], "missed": [0.3, 0.2, 0.1]})
    answer = taylor(OLD)
    found = with_errors(answer, SHEET.labels, DESIGN, OLD, table, rng=1)
    assert list(found.rates) == ["removed", "missed", "kept", "added", "unsure"]
    assert found.rates["kept"].tolist() == [0.1, 0.2, 0.3]
    twice = found.times(2)
    assert twice.rates["missed"].tolist() == [0.6, 0.4, 0.2]
    assert twice.both.mean[1] < found.both.mean[1] and "2 times the rates" in twice.sentence()
    assert found.times(9).rates[["missed", "kept"]].max().max() == 0.99


def test_rates_that_cannot_be():
    ask = partial(with_errors, ANSWERS["estimate"][1], SHEET.labels, DESIGN)
    for bad, message in (
        (Annotator(missed=1.0), "rates are below 1"),
        (Annotator(kept=1.0), "rates are below 1"),
        (Annotator(removed=1.0), "rates are below 1"),
        (pd.DataFrame({"overlooked": [0.1]}), "no rate is called 'overlooked': columns are removed, missed,"),
        (pd.DataFrame({"missed": [0.1, -0.1]}), "numbers of 0 or more"),
        (pd.DataFrame({"missed": [0.1, np.nan]}), "numbers of 0 or more"),
        (None, "annotator is an Annotator"),
    ):
        with pytest.raises(eb.DataError, match=message):
            ask(OLD, bad, rng=1)
    with pytest.raises(eb.DataError, match="records in memory"):
        ask("prediction.parquet", SOME, rng=1)
    with pytest.raises(eb.DataError, match="imputations must be a whole number, 2 or more, not 1"):
        ask(OLD, SOME, imputations=1, rng=1)


def test_more_additions_than_labels_can_hold_raise_an_alarm():
    """Of 90 stated additions labels have 45, which is between a fifth and two fifths more than chance."""
    prediction = {i: i // 3 if i < 900 else i for i in range(1800)}
    labels = {i: f"e{i // 3 if i < 300 else i - 900}" for i in [*range(300), *range(900, 945)]}
    given = {"starts": range(0, 300, 3), "imputations": 2, "rng": 1}
    ask = partial(with_errors, taylor(prediction), labels, eb.UniformRecords(), prediction, **given)
    with pytest.warns(eb.Alarm, match="the rate added is too high"):
        ask(Annotator(added=0.9))
    ask(Annotator(added=0.01))  # without an alarm


# Monte Carlo error
def test_the_monte_carlo_error_of_an_end_by_hand():
    found = with_errors(taylor(OLD), SHEET.labels, DESIGN, OLD, SOME, imputations=10, rng=1)
    x = np.array([one.estimate for one in found.run(found.rates)])
    B, T = x.var(axis=0, ddof=1), found.both.sd**2
    expected = np.sqrt(B / 10 + 4 * B**2 / (2 * 9 * T))
    table = found.table()
    assert table.loc[table["error"] == "both", "mcse"].to_numpy() == pytest.approx(expected)
    assert (table.loc[table["error"] == "random", "mcse"] == 0).all()
    largest = f"{expected.max():.1g}"
    assert f"10 imputations leave an error of {largest} in these ends" in found.sentence()
    # without errors of labels there is none, and the sentence does not name it
    none = with_errors(taylor(OLD), SHEET.labels, DESIGN, OLD, Annotator(), imputations=2, rng=1)
    assert none.table()["mcse"].max() < 1e-9 and "imputations" not in none.sentence()


def test_imputations_go_on_until_they_leave_little_error():
    ask = partial(with_errors, taylor(OLD), SHEET.labels, DESIGN, OLD, rng=1)
    few, more = ask(Annotator(missed=Beta(3, 17))), ask(SOME)
    for found in (few, more):
        table = found.table().query("error == 'both'")
        share = (table["mcse"] / (table["upper"] - table["lower"])).max()
        assert share <= 1 / 40 and len(found.rates) % 20 == 0
        table = ask(found.rates.head(len(found.rates) - 20)).table().query("error == 'both'")
        share = (table["mcse"] / (table["upper"] - table["lower"])).max()
        assert len(found.rates) == 40 or share > 1 / 40
    assert 40 <= len(few.rates) < len(more.rates) <= 200
    # the first 40 are those of 40, and rates that are known need no more
    assert more.rates.head(40).equals(ask(SOME, imputations=40).rates)
    assert len(ask(Annotator(0.001)).rates) == 40


def test_two_hundred_imputations_are_the_most():
    """Where labels alone make the error it stays above √(1/200 + 2/199)/4 of the width."""
    labels = {i: i // 4 for i in range(80)}
    prediction = {i: i // 2 if i < 80 else i for i in range(200)}
    census = eb.UniformClusters(population=20)
    found = with_errors(taylor(prediction), labels, census, prediction, Annotator(kept=Beta(1, 1)), rng=1)
    assert len(found.rates) == 200 and not found.settled


# Grids and tipping points
def test_grid_and_tipping_point():
    found = with_errors(taylor(OLD), SHEET.labels, DESIGN, OLD, SOME, imputations=20, rng=1)
    points = pd.DataFrame({"missed": [0.0, 0.3, 0.6], "kept": 0.1})
    rows = grid(found, points, imputations=4, progress=False)
    assert list(rows) == [*found.rates, "metric", "estimate", "lower", "upper", "mcse"]
    recall = rows[rows["metric"] == R.name]
    assert (np.diff(recall["estimate"]) < 0).all() and (recall["lower"] < recall["estimate"]).all()
    assert (recall["mcse"] > 0).all()
    value = float(found.both.estimate[1]) - 0.02
    tip = tipping(found, "recall", value, progress=False)
    assert tip.index.tolist() == ["removed", "missed", "kept", "added", "all"]
    assert np.isnan(tip.loc["added"]).all()  # without additions recall is higher
    at, error = tip.loc["all"]
    assert 1 < at < 3 and 1 < tip.loc["missed", "tipping_point"] < 3
    again = found.times(at)
    x = np.array([one.estimate[1] for one in again.run(again.rates)])
    limit = x.std(ddof=1) / np.sqrt(20) / 10
    assert x.mean() == pytest.approx(value, abs=limit)
    assert again.both.estimate[1] == pytest.approx(value, abs=limit)
    # its error, by the slope over the multiples next to it
    low, high = (found.times(at + x).both.estimate[1] for x in (-0.2, 0.2))
    assert error == pytest.approx(10 * limit * 0.4 / (low - high), rel=0.4)
    assert (tipping(found, "recall", 0.99, progress=False)["tipping_point"] == 0).all()
    # a value that is reached between three and six times the rates
    beyond = np.mean([found.times(x).both.estimate[1] for x in (3, 6)])
    assert np.isnan(tipping(found, "recall", beyond, progress=False).loc["all"]).all()
    with pytest.raises(eb.DataError, match="f1 is not among"):
        tipping(found, "f1", 0.5, progress=False)
    with pytest.raises(eb.DataError, match="a grid is of estimates"):
        grid(replace(found, random=None), points)
    with pytest.raises(eb.DataError, match="rates are below 1"):
        grid(found, pd.DataFrame({"missed": [1.0]}))


def test_a_grid_refuses_odds_of_draws_that_nobody_left_undecided():
    found = with_errors(ANSWERS["estimate"][1], SHEET.labels, DESIGN, OLD, SOME, imputations=2, rng=1)
    with pytest.raises(eb.DataError, match="unsure is about undecided draws"):
        grid(found, pd.DataFrame({"unsure": [3.0]}), imputations=2, progress=False)


def test_rates_that_are_zero_have_no_tipping_point():
    found = with_errors(taylor(OLD), SHEET.labels, DESIGN, OLD, Annotator(missed=0.2), imputations=4, rng=1)
    tip = tipping(found, R, float(found.both.estimate[1]) - 0.01, progress=False)
    assert tip["tipping_point"].notna().tolist() == [False, True, False, False, True]
    assert tip.loc["missed"].tolist() == tip.loc["all"].tolist()


def test_the_order_of_tables_changes_no_answer():
    mixed = [x.iloc[rng(2).permutation(len(x))] for x in (SHEET.labels, OLD)]
    ask = partial(with_errors, annotator=SOME, imputations=4, rng=1)
    one = ask(taylor(OLD), SHEET.labels, DESIGN, OLD)
    other = ask(taylor(mixed[1]), mixed[0], DESIGN, mixed[1])
    assert one.both.mean == pytest.approx(other.both.mean, abs=1e-12)
    assert one.both.cov == pytest.approx(other.both.cov, abs=1e-12)


# Undecided draws
def test_undecided_draws_err_as_often_as_their_odds_say():
    """Of 60 draws of one class 20 are undecided; of the decided ones a quarter is predicted wrongly."""
    prediction = {i: f"c{i // 2}" if i >= 20 else f"alone {i}" for i in range(400)}
    entities = [*range(10), *range(20, 50)]
    labels = {i: f"e{i // 2}" for i in range(160) if i // 2 in entities}
    drawn = eb.UniformRecords([f"e{e}" for e in entities])
    design = eb.design.Responding(drawn, [True] * 40 + [False] * 20)
    answer = taylor(prediction, ["cluster-recall"])
    ask = partial(with_errors, answer, labels, design, prediction, imputations=2, rng=1)
    for odds, share in ((0.0, 10 / 60), (1.0, 0.25), (3.0, (10 + 10) / 60)):
        found = ask(Annotator(unsure=odds))
        exact = answer(labels, replace(design, odds=odds))
        assert found.both.mean == pytest.approx(exact.mean)
        assert found.both.sd == pytest.approx(np.maximum(exact.sd, found.random.sd))
        assert 1 - found.both.mean[0] == pytest.approx(share, abs=0.02)
        assert ("leave draws undecided that err" in found.sentence()) == (odds != 1)
    assert ask(Annotator(unsure=Gamma(3, 1))).systematic.sd[0] > 0
    assert found.times(2).rates["unsure"].tolist() == [3.0, 3.0]
    with pytest.raises(eb.DataError, match="unsure is about undecided draws, and the design"):
        with_errors(answer, labels, drawn, prediction, Annotator(unsure=3.0), rng=1)


# Coverage
@pytest.mark.parametrize(
    "rates",
    [{"removed": 0.05}, {"removed": 0.05, "missed": 0.2, "kept": 0.1, "added": 0.02}],
    ids=["removed", "all"],
)
def test_intervals_cover_where_records_are_struck_out(rates):
    """Two populations, 15 samples of each, with errors put in by loops; and not if they are ignored."""
    covered, shorter = [], []
    for people in (sim.LogNormal(1.0, 0.7), sim.Zeta(2.7, 50)):
        made = sim.simulate(people, sim.Chain([sim.Splits(0.2), sim.Merges(0.06)]), 10_000, 21)
        true, prediction, of = made.true, eb.Clustering.of(made.pred), made.pred.to_dict()
        truth = np.array([made.value(metric) for metric in ("pairwise-precision", "cluster-recall")])
        annotator = Annotator(
            **{k: Beta(60 * x, 60 * (1 - x)) if k != "added" else Gamma(20, 20 / x) for k, x in rates.items()}
        )
        for seed in range(15):
            source = rng(seed)
            start = pd.Series(true.index, true.to_numpy()).iloc[source.choice(len(true), 200)]
            design = eb.UniformRecords(start.index.to_numpy())
            start = start[~start.index.duplicated()]
            drawn = annotator.draw(1, source).iloc[0].drop("unsure").to_dict()
            labelled = true[true.isin(start.index)].to_dict()
            seen = pd.Series(err(labelled, of, start.to_dict(), source, **drawn))
            answer = taylor(prediction, ["pairwise-precision", "cluster-recall"])
            given = {"starts": start.to_numpy(), "imputations": 10, "rng": seed}
            found = with_errors(answer, seen, design, prediction, annotator, **given)
            ends = np.array([part.interval() for part in (found.random, found.both)])
            covered.append((ends[..., 0] <= truth) & (truth <= ends[..., 1]))
            shorter.append(np.ptp(ends[0], axis=-1) - np.ptp(ends[1], axis=-1) > 0.01)
    plain, both = np.mean(covered, axis=0)
    assert (both >= 0.88).all() and plain.min() < 0.7, (plain, both)
    assert np.mean(shorter) <= 0.02
