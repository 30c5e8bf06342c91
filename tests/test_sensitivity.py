"""Errors of labels in every answer, grids and tipping points. What errors do is simulated here without the library."""

from dataclasses import replace
from functools import cache, partial
from inspect import signature

import numpy as np
import pandas as pd
import pytest

import erbayes as eb
from erbayes import metrics as m
from erbayes.analysis.sensitivity import grid, tipping, with_errors
from erbayes.analysis.sensitivity.imputation import find_estimates, pool
from erbayes.datasets import people as sheet
from erbayes.labels import Annotator, Beta, Gamma, mislabel
from erbayes.metrics.estimates import Estimates
from erbayes.study import populations as sim

pytestmark = pytest.mark.slow

P, R = m.pairwise_precision, m.pairwise_recall
PR = [P, R]
SHEET = sheet()
OLD = SHEET.prediction
NEW = OLD.where(
    np.random.default_rng(1).random(len(OLD)) < 0.9, SHEET.truth.reindex(OLD.index).astype(str) + "t"
)
DESIGN = eb.UniformRecords(SHEET.drawn)
SOME = Annotator(Beta(3, 17), Beta(2, 18), Gamma(2, 100))


def rng(seed=1):
    return np.random.default_rng(seed)


def pairs(x):
    return x * (x - 1) / 2


# An oracle: entities as lists of (records in the piece, records of its predicted cluster)


def towns(seed=1, entities=1500):
    """Split entities and merged ones, at random: two pieces, each alone; or whole, beside others."""
    source = np.random.default_rng(seed)
    found = []
    for _ in range(entities):
        size = int(source.integers(2, 30))
        if source.random() < 0.15:
            part = int(source.integers(1, size))
            found.append([(part, part), (size - part, size - part)])
        elif source.random() < 0.1:
            found.append([(size, size + int(source.integers(1, 30)))])
        else:
            found.append([(size, size)])
    return found


def metrics_of(answers, weights):
    """P and R of weighted answers, each a list of (n, m)."""
    common = true = predicted = 0.0
    for pieces, w in zip(answers, weights, strict=True):
        N = sum(n for n, _ in pieces)
        common += w * sum(pairs(n) for n, _ in pieces)
        true += w * pairs(N)
        predicted += w * sum(n * (k - 1) / 2 for n, k in pieces)
    return np.array([common / predicted, common / true])


def answers_of_everyone(found, u, v, source, weigh):
    """Every record is a sampled mention; its annotator starts at home. Weight 1/N as labelled, or 1/N as true."""
    answers, weights = [], []
    for pieces in found:
        N = sum(n for n, _ in pieces)
        for at, (size, _) in enumerate(pieces):
            for _ in range(size):
                mine = [(n, k) for j, (n, k) in enumerate(pieces) if j == at or source.random() >= u]
                home = mine.index(pieces[at])
                n, k = mine[home]
                mine[home] = (n + source.binomial(k - n, v), k)
                answers.append(mine)
                weights.append(1 / weigh(N, sum(n for n, _ in mine)))
    return metrics_of(answers, weights)


@pytest.mark.parametrize(("u", "v"), [(0.3, 0.0), (0.0, 0.3), (0.2, 0.2)])
def test_laws_under_uniform_records(u, v):
    found = towns()
    plain = answers_of_everyone(found, 0, 0, rng(), lambda true, seen: seen)
    seen = answers_of_everyone(found, u, v, rng(), lambda true, seen: seen)
    truth_P, truth_R = plain
    assert seen[0] - truth_P == pytest.approx(v * (1 - truth_P), abs=0.004)
    assert seen[1] - truth_R == pytest.approx(u * (1 - truth_R), rel=0.15, abs=0.003)
    if v == 0:
        assert seen[1] == pytest.approx(truth_R / (1 - u * (1 - truth_R)), abs=0.001)
        assert seen[0] == pytest.approx(truth_P, abs=0.001)


def test_under_fixed_weights_kept_records_barely_help_precision():
    """What a predicted cluster of two like entities gains in common links it gains in predicted ones."""
    found = towns()
    truth = answers_of_everyone(found, 0, 0, rng(), lambda true, seen: true)
    seen = answers_of_everyone(found, 0.0, 0.2, rng(), lambda true, seen: true)
    assert abs(seen[0] - truth[0]) < 0.5 * 0.2 * (1 - truth[0])


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
    if isinstance(answer, eb.labels.drawing.stopping.Check):
        return answer.interval
    if "compare" in repr(type(answer)).lower() or hasattr(answer, "differences"):
        return answer.table()[["lower", "upper"]].to_numpy()
    return np.concatenate([part.interval() for part in find_estimates(answer).values()])


@pytest.mark.filterwarnings("ignore::erbayes.Alarm")
@pytest.mark.parametrize("name", ANSWERS)
def test_every_answer_keeps_its_type_and_is_longer_with_errors(name):
    shown, answer = ANSWERS[name]
    found = with_errors(answer, SHEET.labels, DESIGN, shown, SOME, imputations=8, rng=1)
    assert type(found.both) is type(found.random)
    assert set(found.table()["error"]) == {"random", "systematic", "both"}
    assert "miss " in found.sentence() and "judgement" in found.sentence()
    none = with_errors(answer, SHEET.labels, DESIGN, shown, Annotator(), imputations=2, rng=1)
    np.testing.assert_allclose(intervals(none.both), intervals(none.random), atol=1e-9)
    lengths = [
        np.ptp(intervals(part), axis=1).mean() for part in (found.systematic, found.random, found.both)
    ]
    assert lengths[0] > 0 and lengths[2] > lengths[1]
    assert "err in nothing" in none.sentence()


@pytest.mark.filterwarnings("ignore::erbayes.Alarm")
@pytest.mark.parametrize("engine", ["bootstrap"])
def test_draws_of_engines_are_joined(engine):
    answer = partial(eb.estimate, OLD, metrics=PR, engine=engine, rng=1)
    found = with_errors(answer, SHEET.labels, DESIGN, OLD, SOME, imputations=4, rng=1)
    assert found.both.values is not None and len(found.both.flat) == 4 * len(found.random.flat)
    assert found.systematic.flat.shape == (4, 2)


def test_a_design_with_every_kind_of_draws_is_answered():
    truth = {i: i // 4 for i in range(160)}
    prediction = {i: i // 3 for i in range(400)}
    ids = list(range(40))
    unresolved = [True] * 35 + [False] * 5
    designs = [
        eb.UniformRecords(),
        eb.UniformRecords(ids + ids[:5]),
        eb.UniformClusters(population=100),
        eb.DistinctEntities(45),
        eb.KnownWeights(pd.Series(np.linspace(1, 2, 40), ids)),
        eb.Stratified({i: i % 2 for i in ids}, {0: 50, 1: 50}),
        eb.design.Responding(eb.UniformRecords(ids[:35]), unresolved),
    ]
    for design in designs:
        labels = (
            truth
            if not isinstance(design, eb.design.Responding)
            else {i: e for i, e in truth.items() if e < 35}
        )
        answer = taylor(prediction)
        found = with_errors(
            answer, labels, design, prediction, Annotator(0.2, 0.1, 0.05), imputations=10, rng=1
        )
        none = with_errors(answer, labels, design, prediction, Annotator(), imputations=2, rng=1)
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
    fits = [normal([0.5, 0.9], [0.0, 0.01]), normal([0.5, 0.9], [0.0, 0.01])]
    both = pool(fits, normal([0.5, 0.9], [0.02, 0.04])).both
    assert np.diagonal(both.cov) == pytest.approx([0.02, 0.04])
    joint = normal([0.5, 0.9], [0.01, 0.01])
    joint = replace(joint, cov=np.array([[0.01, 0.008], [0.008, 0.01]]))
    both = pool([joint, joint], normal([0.5, 0.9], [0.04, 0.04])).both
    assert both.cov == pytest.approx(np.array([[0.04, 0.032], [0.032, 0.04]]))  # as correlated as before


def test_a_component_that_imputations_lack_says_so():
    fits = [normal([0.5, np.nan], [0.01, 0.01]), normal([0.5, 0.9], [0.01, 0.01])]
    both = pool(fits, normal([0.5, 0.9], [0.02, 0.04])).both
    assert np.isnan(both.mean[1])
    assert both.reasons == (
        "",
        "it has no estimate in 1 of 2 imputations of the labels",
    )
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


@pytest.mark.filterwarnings("ignore::erbayes.Alarm")
def test_nothing_is_certain_where_labels_may_be_wrong():
    """36 of 40 records are labelled, which settles .9 to 1 of precision and .6 to .714 of recall if they are right."""
    pairs = {i: i // 2 for i in range(40)}
    labels = {i: i // 2 if i < 28 else i // 4 + 100 for i in range(36)}
    design, errors = eb.UniformRecords(), Annotator(0.2, 0.2, 0)

    def check(labels, design):
        sample = eb.Sample(eb.measure(pairs, labels), design)
        return eb.labels.check(sample, {P: 0.9, R: 0.6})

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
    fits = [
        replace(plain, unseen=replace(plain.unseen, certain=end)) for end in (ends, ends * [[1], [2]], ends)
    ]
    assert pool(fits, plain).both.unseen.certain.tolist() == [[-0.1, 0.2], [-np.inf, np.inf]]


# Rates


def test_rates_may_be_a_table_of_joint_draws():
    table = pd.DataFrame({"kept": [0.1, 0.2, 0.3], "missed": [0.3, 0.2, 0.1]})
    answer = taylor(OLD)
    found = with_errors(answer, SHEET.labels, DESIGN, OLD, table, rng=1)
    assert list(found.rates) == ["missed", "kept", "added"]
    assert found.rates["kept"].tolist() == [
        0.1,
        0.2,
        0.3,
    ]
    twice = found.times(2)
    assert twice.rates["missed"].tolist() == [0.6, 0.4, 0.2]
    assert twice.both.mean[1] < found.both.mean[1] and "2 times the rates" in twice.sentence()
    assert found.times(9).rates[["missed", "kept"]].max().max() == 0.99


def test_rates_that_cannot_be():
    ask = partial(with_errors, ANSWERS["estimate"][1], SHEET.labels, DESIGN)
    for bad, message in (
        (Annotator(missed=1.0), "rates must be below 1"),
        (Annotator(kept=1.0), "rates must be below 1"),
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


# Grids and tipping points


def test_grid_and_tipping_point():
    """Recall of entities whose one split is missed by halves: R/(1 - u) of links, by hand."""
    answer = taylor(OLD)
    found = with_errors(answer, SHEET.labels, DESIGN, OLD, SOME, imputations=4, rng=1)
    points = pd.DataFrame({"missed": [0.0, 0.3, 0.6], "kept": 0.1})
    rows = grid(found, points, imputations=4, progress=False)
    recall = rows[rows["metric"] == R.name]
    assert (np.diff(recall["estimate"]) < 0).all() and (recall["lower"] < recall["estimate"]).all()
    tip = tipping(found, "recall", 0.85, imputations=2, progress=False)
    assert 0.2 < tip.loc["missed", "tipping_point"] < 0.7
    assert np.isnan(tip.loc["added", "tipping_point"])  # without additions recall is higher
    assert (tipping(found, "recall", 0.99, imputations=2, progress=False)["tipping_point"] == 0).all()
    with pytest.raises(eb.DataError, match="f1 is not among"):
        tipping(found, "f1", 0.5, imputations=2, progress=False)
    with pytest.raises(eb.DataError, match="a grid is of estimates"):
        grid(replace(found, random=None), points)
    with pytest.raises(eb.DataError, match="rates must be below 1"):
        grid(found, pd.DataFrame({"missed": [1.0]}))


# Unresolved draws


def unresolved_draws():
    """Of 60 draws of one class 20 are unresolved; of the resolved ones a quarter is predicted wrongly."""
    prediction = {
        i: f"c{i // 2}" if i >= 20 else f"alone {i}" for i in range(400)
    }  # the first 20 entities are split
    labels = {i: i // 2 for i in range(160)}
    entities = list(range(10)) + list(range(20, 50))
    labels = {i: f"e{e}" for i, e in labels.items() if e in entities}
    drawn = eb.UniformRecords([f"e{e}" for e in entities])
    design = eb.design.Responding(drawn, [True] * 40 + [False] * 20)
    return prediction, labels, design


@pytest.mark.parametrize(
    ("delta", "share"), [(0.0, 10 / 60), (1.0, 0.25), (3.0, (10 + 10) / 60), (np.inf, 0.5)]
)
def test_unresolved_draws_err_as_often_as_their_odds_say(delta, share):
    prediction, labels, design = unresolved_draws()
    answer = taylor(prediction, ["cluster-recall"], order=1)
    found = with_errors(answer, labels, design, prediction, Annotator(), delta=delta, imputations=60, rng=1)
    assert 1 - found.both.mean[0] == pytest.approx(share, abs=0.02)
    assert delta in (0.0, np.inf) or "times as often as the others" in found.sentence()


def test_delta_needs_a_design_that_lists_draws():
    prediction, labels, _ = unresolved_draws()
    answer = partial(eb.estimate, prediction, metrics=PR)
    with pytest.raises(eb.DataError, match="it needs the design Responding of another one that lists draws"):
        with_errors(answer, labels, eb.UniformRecords(), prediction, Annotator(), delta=1.0, rng=1)


# Coverage


@cache
def world():
    mechanism = sim.Chain([sim.Splits(0.2), sim.Merges(0.1)])
    return sim.simulate(sim.LogNormal(0.9, 0.8), mechanism, 20_000, 51)


@pytest.mark.study
def test_intervals_cover_with_the_right_priors_and_not_without():
    """A new annotator in each sample, with errors of all three kinds."""
    annotator, prediction = (
        Annotator(Beta(30, 70), Beta(20, 80), Gamma(20, 400)),
        eb.Clustering.of(world().pred),
    )
    answer = taylor(prediction)
    truth = np.array([world().value(metric) for metric in PR])
    covered = []
    for seed in range(200):
        source = rng(seed)
        start = world().true.index[source.choice(len(world().true), 200)]
        drawn = world().true[start].to_numpy()
        labels = mislabel(
            world().true[world().true.isin(drawn)], prediction, annotator, starts=start, rng=source
        )
        found = with_errors(
            answer, labels, eb.UniformRecords(drawn), prediction, annotator, starts=start, rng=source
        )
        bounds = np.array([part.interval() for part in (found.random, found.both)])
        covered.append((bounds[..., 0] <= truth) & (truth <= bounds[..., 1]))
    plain, both = np.mean(covered, axis=0)
    print(plain, both)
    assert (both >= 0.92).all() and plain.mean() < both.mean() - 0.03


@pytest.mark.parametrize("function", [with_errors, grid, tipping], ids=lambda f: f.__name__)
def test_signatures_fit_into_a_tooltip(function):
    assert len(str(signature(function))) <= 320
    defaults = (p.default for p in signature(function).parameters.values() if p.default is not p.empty)
    assert max(len(repr(default)) for default in defaults) <= 40
