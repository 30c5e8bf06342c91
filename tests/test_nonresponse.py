"""Draws that nobody could resolve: weighting classes, worst cases, the alarm."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import erbayes as eb
from erbayes import metrics as m
from erbayes.analysis.impact import impact_of
from erbayes.engine import bootstrap, jackknife
from erbayes.engine.closed_form import ClosedForm, with_cases
from erbayes.engine.diagnostics import _estimate_records
from erbayes.engine.fitted import fit_sample
from erbayes.labels import ONCE, LinkEnds, check, draw
from erbayes.study import populations as sim

pytestmark = pytest.mark.kernel
P, R = m.pairwise_precision, m.pairwise_recall
ERRORS = sim.Chain([sim.Splits(0.3), sim.Merges(0.05)])
PEOPLE = sim.simulate(sim.Zeta(2.3, 30), ERRORS, 4000, np.random.default_rng(1))
CENSUS, SIZE = PEOPLE.units, PEOPLE.pred.map(PEOPLE.pred.value_counts()).to_numpy()
UNIT = CENSUS.ids.get_indexer(PEOPLE.true)
METRICS = [P, R, m.b3_recall]
TRUTH = eb.engine.taylor(eb.Sample(CENSUS, eb.UniformClusters(len(CENSUS))), METRICS).apply(METRICS, 1).mean


def sampled(rng, n=300, chance=lambda record: np.where(SIZE[record] >= 6, 0.4, 0.9), repeats=False):
    """Draws of records, which of them are resolved, the sample of these, and its adjusted form."""
    record = rng.integers(len(UNIT), size=n)
    resolved = rng.random(n) < chance(record)
    at = UNIT[record][resolved]
    units, design = CENSUS.take(np.unique(at)), eb.UniformRecords(CENSUS.ids[at], repeats=repeats)
    adjusted = eb.design.Responding(design, resolved, eb.design.size_classes(SIZE[record], resolved))
    return record, resolved, eb.Sample(units, design), eb.Sample(units, adjusted)


def at_odds(sample, odds):
    return eb.Sample(sample.units, replace(sample.design, odds=odds))


def test_weights_are_those_of_classes_by_hand():
    units = eb.measure({i: i // 2 for i in range(40)}, {i: i // 4 for i in range(12)})
    draws, resolved = [0, 1, 1, 2], [True, False, True, True, False, True, False]
    each = eb.UniformRecords(draws, repeats=True)
    design = eb.design.Responding(each, resolved, list("aaabbbb"))
    # class a: 3 draws, 2 resolved; class b: 4 draws, 2 resolved; N/(n N_c) = 40/(7 x 4)
    np.testing.assert_allclose(design.expand(units).weight, 40 / 28 * np.array([3 / 2, 3 / 2, 2, 2]))
    # once: a draw of class a selects entity 0, all of whose draws are of it, with chance .1/(3/7), and entity
    # 1, half of whose draws are, with half of that
    design = eb.design.Responding(eb.UniformRecords(draws), resolved, list("aaabbbb"))
    a, b = 0.1 / (3 / 7), 0.1 / (4 / 7)
    missed = [(1 - a) ** 2, (1 - a / 2) ** 2 * (1 - b / 2) ** 2, (1 - b) ** 2]
    np.testing.assert_allclose(design.expand(units).weight, 1 / (1 - np.array(missed)))
    # a class of each of two parts, under which units have other chances
    other = np.array([0.02, 0.3, 0.05])
    parts = [eb.UniformRecords([0, 1]), eb.design.KnownSelection(dict(enumerate(other)), [1, 2])]
    pooled = eb.design.Responding(eb.design.Pooled(parts), resolved, list("aaabbbb"))
    np.testing.assert_allclose(pooled.expand(units).weight, 1 / (1 - 0.9**2 * (1 - other) ** 2))


@pytest.mark.parametrize("classes", [None, list("aaabbbb"), list("abcabca")])
def test_each_class_costs_a_degree_of_freedom(classes):
    units = eb.measure({i: i // 2 for i in range(40)}, {i: i // 4 for i in range(20)})
    draws, resolved = [0, 1, 2, 3, 4], [True, True, True, True, False, True, False]
    design = eb.design.Responding(eb.UniformRecords(draws, repeats=True), resolved, classes)
    totals = eb.engine.taylor(eb.Sample(units, design), [m.b3_recall])
    degrees = len(draws) - len(set(classes or "a"))
    assert totals.df_per_draw == pytest.approx(degrees / len(draws))


def test_draws_that_nobody_began_are_not_unresolved():
    """Six draws, of which four were begun and three resolved."""
    design = eb.UniformRecords([0, 1, 2])
    resolved, begun = [True, True, False, True, False, False], [True, True, True, True, False, False]
    assert eb.design.Responding(design, resolved, begun=begun).unresolved == 1 / 4
    assert eb.design.Responding(design, resolved).unresolved == 3 / 6


def test_without_unresolved_draws_nothing_changes():
    _, _, plain, _ = sampled(np.random.default_rng(2), chance=lambda record: np.ones(len(record)))
    n = len(plain)
    for design in (plain.design, replace(plain.design, repeats=True)):
        classes = np.arange(n) % 3 if design.repeats else None
        wanted = eb.Sample(plain.units, design)
        same = eb.Sample(plain.units, eb.design.Responding(design, np.ones(n, bool), classes))
        found, known = (eb.engine.taylor(one, METRICS).apply(METRICS).sd for one in (same, wanted))
        assert found == pytest.approx(known)
        assert same.expansion.weight == pytest.approx(wanted.expansion.weight)


def test_the_jackknife_and_the_bootstrap_agree_with_the_closed_form():
    _, _, plain, adjusted = sampled(np.random.default_rng(4), n=500)
    closed = eb.engine.taylor(adjusted, METRICS).apply(METRICS)
    one_class = eb.Sample(adjusted.units, replace(adjusted.design, classes=None))
    known = eb.engine.taylor(one_class, METRICS).apply(METRICS).sd
    assert jackknife(one_class, METRICS).sd == pytest.approx(known, rel=0.12)
    boot = bootstrap(adjusted, METRICS, replicates=1500, rng=1)
    assert boot.sd == pytest.approx(closed.sd, rel=0.15)
    assert boot.estimate == pytest.approx(closed.mean, rel=0.02)
    assert np.isfinite(eb.influence(adjusted, P)["influence"]).all()
    assert eb.engine.taylor(plain, METRICS).apply(METRICS).sd != pytest.approx(closed.sd, rel=0.01)


BROKEN = CENSUS.table()["exact"].to_numpy() < 1


def rows_with_odds(Z, code, resolved, wrong, odds, begun):
    """Rows of all draws, (n, k), whose sum and spread are the totals and their variance: loops over draws.
    z_s + (U/Σδ) δ_s (z_s - m) of resolved draws, and m of the others, with the mean m by odds of the class.
    Draws that were not begun have the mean of these rows, which are moved away from it by as much."""
    rows = np.zeros((len(code), Z.shape[1]))
    for g in set(code):
        of, there = code == g, (code == g) & begun
        rows[there] = rows_with_odds_of_begun(Z[there], code[there], resolved[there], wrong[there], odds)
        mean, factor = rows[there].mean(axis=0), of.sum() / there.sum()
        rows[of & ~begun] = mean
        rows[there] = mean + factor * (rows[there] - mean)
    return rows


def rows_with_odds_of_begun(Z, code, resolved, wrong, odds):
    rows = np.zeros((len(code), Z.shape[1]))
    for s, g in enumerate(code):
        here = [t for t in range(len(code)) if code[t] == g and resolved[t]]
        weight = [(odds if wrong[t] else 1.0) if np.isfinite(odds) else float(wrong[t]) for t in here]
        mean = sum(w * Z[t] for w, t in zip(weight, here, strict=True)) / sum(weight)
        lost = sum(code[t] == g and not resolved[t] for t in range(len(code)))
        rows[s] = mean
        if resolved[s]:
            rows[s] = Z[s] + lost / sum(weight) * weight[here.index(s)] * (Z[s] - mean)
    return rows


@pytest.mark.parametrize("odds, all_begun", [(0.0, 1), (0.5, 0), (1.0, 1), (1.0, 0), (3.0, 0), (np.inf, 1)])
def test_totals_and_variance_with_odds_are_those_of_rows_by_hand(odds, all_begun):
    record, resolved, _, adjusted = sampled(np.random.default_rng(3), repeats=True)
    names = "COMMON_LINKS", "TRUE_LINKS", "ENTITIES", "PREDICTED_CLUSTERS"
    columns = [getattr(eb.columns, name) for name in names]
    begun = resolved | (np.arange(len(resolved)) % 3 > 0) | bool(all_begun)
    design = replace(adjusted.design, classes=SIZE[record] >= 4, odds=odds, begun=begun)
    sample = eb.Sample(adjusted.units, design)
    Z = np.stack([CENSUS.column(c)[UNIT[record]] for c in columns], axis=1)
    Z *= (len(UNIT) / CENSUS.size[UNIT[record]] / len(record))[:, None]
    rows = rows_with_odds(Z, SIZE[record] >= 4, resolved, BROKEN[UNIT[record]], odds, begun)
    about, n = rows - rows.mean(axis=0), len(record)
    found, contributions = sample.expansion, sample.contributions(columns)
    np.testing.assert_allclose(contributions.sum(axis=0), rows.sum(axis=0), rtol=1e-12)
    cov = found.covariance(found.residuals(contributions))
    np.testing.assert_allclose(cov, n / (n - 1) * about.T @ about, rtol=1e-10)
    more = (
        rows[:, 2] - rows[:, 3]
    )  # there are as many entities as predicted clusters, and what draws have more
    counted = ClosedForm()(sample, [m.entities])
    assert counted.mean[0] == pytest.approx(PEOPLE.pred.nunique() + more.sum())
    assert counted.cov[0, 0] == pytest.approx(n * more.var(ddof=1))


@pytest.mark.parametrize("parts", [False, True])
def test_resolved_draws_of_entities_that_the_prediction_lacks_are_left_out(parts):
    """As if nobody had drawn them; one of a cluster with an error is undecided, and has a worst case."""
    labels = {i: i // 4 for i in range(16)}
    units = eb.measure({i: i // 3 for i in range(4, 40)}, labels, missing="omit")
    resolved, classes = [True, False, True, True, False, True, True, False], [*"aaaabbbb"]

    def judged(first, left_out):
        pieces = [eb.UniformRecords([*first, 1, 1]), eb.UniformRecords([2, 3])]
        design = eb.design.Pooled(pieces) if parts else eb.UniformRecords([*first, 1, 1, 2, 3])
        told = (x[left_out:] for x in (resolved, classes, [True] * 8, [*range(8)], [*"xyzxyzxy"]))
        return eb.Sample(units, eb.design.Responding(design, *told))

    found, wanted = judged([0], 0), judged([], 1)
    for engine in ("closed form", "bootstrap"):
        one, other = (eb.estimate(x, metrics=METRICS, engine=engine, rng=1).table() for x in (found, wanted))
        pd.testing.assert_frame_equal(one, other)
    assert list(map(str, eb.alarms(found))) == list(map(str, eb.alarms(wanted)))


def test_undecided_draws_and_entities_that_another_prediction_lacks_go_together():
    """Of one class, as much of each share is undecided as of the draws, whoever is gone."""
    labels, old = {i: i // 4 for i in range(16)}, {i: i // 3 for i in range(40)}
    drawn = eb.design.ByPredictedSize(eb.columns.RECORDS, [0, 1, 1, 2, 3])
    resolved = [True, False, True, True, False, True, True, False]
    design = eb.design.FrozenWeights(eb.design.Responding(drawn, resolved), eb.measure(old, labels))
    units = eb.measure({i: i // 2 for i in range(4, 40)}, labels, missing="omit")
    found = eb.estimate(eb.Sample(units, design), metrics=METRICS)
    worst, best = found.cases.wrong.mean, found.cases.right.mean
    np.testing.assert_allclose(worst, found.mean * 5 / 8, rtol=1e-12)
    np.testing.assert_allclose(best, found.mean * 5 / 8 + 3 / 8, rtol=1e-12)
    assert "3 of 8 draws are undecided" in str(eb.alarms(eb.Sample(units, design)))


def test_odds_of_units_that_count_once_are_those_of_their_draws():
    """Weights are multiplied by what the draws of a unit represent over what they would at random."""
    record, resolved, _, adjusted = sampled(np.random.default_rng(5))
    code = np.asarray(adjusted.design.classes)
    plain = adjusted.expansion.weight
    tilted = at_odds(adjusted, 3.0).expansion.weight
    ids = adjusted.units.ids
    for c, (before, after) in enumerate(zip(plain, tilted, strict=True)):
        represent = {1.0: 0.0, 3.0: 0.0}
        for s in np.flatnonzero(resolved & (CENSUS.ids[UNIT[record]] == ids[c])):
            same = code == code[s]
            wrong = BROKEN[UNIT[record[same & resolved]]]
            for odds in represent:
                lent = np.where(wrong, odds, 1.0).sum()
                own = odds if BROKEN[UNIT[record[s]]] else 1.0
                represent[odds] += 1 + (same & ~resolved).sum() * own / lent
        assert after / before == pytest.approx(represent[3.0] / represent[1.0])


@pytest.mark.parametrize("repeats", [False, True])
def test_no_odds_lead_outside_of_those_of_0_and_infinity(repeats):
    _, _, _, adjusted = sampled(np.random.default_rng(8), repeats=repeats)
    at = {}
    for odds in (0, 0.3, 1, 3, 20, np.inf):
        at[odds] = eb.engine.taylor(at_odds(adjusted, odds), METRICS).apply(METRICS, 1).mean
    assert (np.diff(np.stack(list(at.values())), axis=0) < 0).all()


def test_the_jackknife_and_the_bootstrap_agree_with_the_closed_form_of_odds():
    _, _, _, adjusted = sampled(np.random.default_rng(5), n=500)
    for odds in (3.0, np.inf):
        sample = at_odds(adjusted, odds)
        closed = eb.engine.taylor(sample, METRICS).apply(METRICS)
        assert bootstrap(sample, METRICS, replicates=800, rng=1).sd == pytest.approx(closed.sd, rel=0.1)
        assert jackknife(sample, METRICS).sd == pytest.approx(closed.sd, rel=0.15)


def test_a_class_without_an_error_has_the_worst_case_of_the_next_one():
    """Classes 1, 2, 3, of which the errors of 3 are nearest to 2, and those of part b are not of part a."""
    labels = {0: "a", 1: "a", 2: "b", 3: "b", 4: "c", 6: "d", 7: "d"}
    units = eb.measure({i: i // 2 for i in range(40)}, labels)
    draws, resolved = list("abcd"), [True, True, True, True, False, False]
    each = eb.UniformRecords(draws, repeats=True)
    even = 40 / 6 / np.array([2, 2, 1, 2])
    for classes, represent in (([1, 2, 3, 1, 2, 2], [1, 1, 3, 1]), ([1, 2, 1, 1, 1, 1], [1, 1, 3, 1])):
        design = eb.design.Responding(each, resolved, classes, odds=np.inf)
        np.testing.assert_allclose(design.expand(units).weight, even * represent)
    some = eb.measure({i: i // 2 for i in range(40)}, {r: e for r, e in labels.items() if e != "b"})
    design = eb.UniformRecords([*"cacd"], repeats=True)
    nearest = eb.design.Responding(design, resolved, [1, 2, 3, 4, 4, 4], odds=np.inf).expand(some).weight
    np.testing.assert_allclose(nearest, 40 / 6 / np.array([1, 2, 1, 2]) * [1, 1, 3, 1])
    parts = eb.design.Pooled([eb.UniformRecords([*"ac"]), eb.UniformRecords(["e"])], repeats=True)
    some = eb.measure({i: i // 2 for i in range(40)}, {0: "a", 1: "a", 4: "c", 8: "e"})
    apart = eb.design.Responding(parts, [True, True, False, True], [1, 3, 1, 2], odds=np.inf)
    np.testing.assert_allclose(apart.expand(some).weight, 40 / np.array([8, 4, 4]) * [1, 2, 1])
    exact = eb.measure({i: i // 2 for i in range(40)}, {i: i // 2 for i in range(8)})
    design = eb.design.Responding(eb.UniformRecords([0, 1, 2, 3], repeats=True), resolved, odds=np.inf)
    np.testing.assert_allclose(design.expand(exact).weight, 40 / 6 / 2 * 1.5)


@pytest.mark.slow
def test_estimates_are_right_if_response_depends_on_classes():
    rng = np.random.default_rng(6)
    errors, covered = {"plain": [], "adjusted": []}, []
    for _ in range(300):
        _, _, *samples = sampled(rng)
        for name, sample in zip(errors, samples, strict=True):
            fit = eb.engine.taylor(sample, METRICS).apply(METRICS)
            errors[name].append(fit.mean - TRUTH)
        low, high = fit.interval().T
        covered.append((low <= TRUTH) & (TRUTH <= high))
    plain, adjusted = (np.mean(e, axis=0) for e in errors.values())
    noise = np.std(errors["adjusted"], axis=0) / np.sqrt(300)
    assert (np.abs(adjusted) < 4 * noise + 0.004).all()
    assert plain[1] < -0.012 and abs(adjusted[1]) < 0.3 * abs(plain[1])
    assert (np.mean(covered, axis=0) > 0.93 - 2 * np.sqrt(0.93 * 0.07 / 300)).all()


def test_strict_cases_hold_the_estimate_of_full_response_and_the_truth():
    """Whatever the response: here the larger and the broken entities are resolved less often."""
    rng = np.random.default_rng(7)
    broken = (PEOPLE.pred.groupby(PEOPLE.true).transform("nunique") > 1).to_numpy()
    held = []
    for _ in range(20):
        record, resolved, _, adjusted = sampled(rng, 200, lambda r: np.where(broken[r], 0.3, 0.9))
        found = with_cases(ClosedForm()(adjusted, [m.b3_recall]), adjusted, [m.b3_recall])
        everyone = (CENSUS.column(eb.columns.B3_RECALL) / CENSUS.size)[UNIT[record]].mean()
        wrong, right = (case.mean[0] for case in (found.cases.wrong, found.cases.right))
        assert right - wrong == pytest.approx(1 - resolved.mean(), abs=0.015)
        worst, best = found.table()[["worst", "best"]].iloc[0]
        assert worst < wrong < everyone < right < best
        held.append(worst <= TRUTH[2] <= best)
    assert np.mean(held) >= 0.95


def test_the_worst_case_of_a_count_has_the_odds_of_infinity_and_the_best_of_0():
    _, _, _, adjusted = sampled(np.random.default_rng(8), n=500)
    found = eb.estimate(adjusted, metrics=[m.splits]).table(0.9)
    for name, odds, end in (("worst", np.inf, 1), ("best", 0.0, 0)):
        closed, case = (ClosedForm()(one, [m.splits]) for one in (adjusted, at_odds(adjusted, odds)))
        assert found[name].iloc[0] == pytest.approx(case.interval(0.9)[0, end])
        # of another engine, cases differ as its estimates do
        other = with_cases(
            replace(closed, mean=closed.mean + 3, cov=4 * closed.cov), adjusted, [m.splits]
        ).cases
        moved = other.wrong if name == "worst" else other.right
        assert [moved.mean[0], moved.sd[0]] == pytest.approx([case.mean[0] + 3, 2 * case.sd[0]])


def test_cases_of_a_ratio_are_those_of_rows_by_hand():
    """Each undecided draw has the mean denominator of its class, and no numerator, or as much."""
    record, resolved, _, adjusted = sampled(np.random.default_rng(8), n=500, repeats=True)
    code, unit = np.asarray(adjusted.design.classes), UNIT[record]
    part, whole = (CENSUS.column(c) / CENSUS.size for c in (eb.columns.COMMON_LINKS, eb.columns.TRUE_LINKS))
    found = ClosedForm()(adjusted, [R])
    cases = with_cases(found, adjusted, [R]).cases
    for ratio, case in enumerate((cases.wrong, cases.right)):
        means = [whole[unit[resolved & (code == g)]].mean() for g in code]
        rows = [
            (part[u], whole[u]) if known else (ratio * of, of)
            for u, known, of in zip(unit, resolved, means, strict=True)
        ]
        top, bottom = np.sum(rows, axis=0)
        bias = found.uncut[0] - fit_sample(adjusted, [R]).plain.mean[0]
        assert case.mean[0] - bias == pytest.approx(top / bottom, abs=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("repeats", [True, False])
def test_numbers_of_draws_in_classes_vary(repeats):
    """Entities are wrong in one class alone, so that a sample differs from others by the numbers in classes."""
    pred = {i: i // 4 if i < 4000 else i // 2 for i in range(8000)}
    census = eb.measure(pred, {i: i // 2 for i in range(8000)})
    estimates, errors = [], []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        at = rng.integers(4000, size=300)
        resolved = rng.random(300) > np.where(at < 2000, 0.2, 0.05)
        design = eb.UniformRecords(census.ids[at[resolved]], repeats=repeats)
        units = census.take(np.unique(at[resolved]))
        sample = eb.Sample(units, eb.design.Responding(design, resolved, at < 2000))
        found = ClosedForm()(sample, [m.b3_precision])
        estimates.append(found.mean[0])
        errors.append(found.sd[0])
    assert np.mean(errors) == pytest.approx(np.std(estimates), rel=0.15)


def test_shares_of_classes_vary_as_over_all_samples_of_six_records():
    units = eb.measure(dict(enumerate("abcdef")), {0: "u", 1: "v", 4: "w"})
    design = eb.UniformRecords(["u", "v", "w"], population=6)
    found = eb.design.Responding(design, [True] * 3, [0, 0, 1]).expand(units)
    np.testing.assert_allclose(
        found.weight, 6 / 3, rtol=1e-12
    )  # also within each class, of 4 and of 2 records
    _, G = found.by_share
    drawn = [np.bincount(np.array(s) // 4, minlength=2) / 3 for s in combinations(range(6), 3)]
    shares = np.diag([2 / 3, 1 / 3])
    np.testing.assert_allclose(shares @ G @ shares, np.cov(np.transpose(drawn), bias=True), atol=1e-15)


def test_records_that_no_two_draws_have_are_answered_draw_by_draw():
    labels = {r: r // 3 for r in range(30)}
    units, resolved = eb.measure({r: r // 2 for r in range(40)}, labels), [True] * 30 + [False] * 6
    base = eb.UniformRecords(list(labels.values()), population=40)
    plain, answers = (
        eb.design.Responding(base, resolved, records=records).expand(units) for records in (None, range(36))
    )
    np.testing.assert_array_equal(answers.weight, plain.weight)
    np.testing.assert_array_equal(answers.d, plain.d)


def test_cases_are_those_of_a_design_that_holds_draws():
    _, _, _, adjusted = sampled(np.random.default_rng(10), n=600)
    frozen = eb.Sample(adjusted.units, eb.design.FrozenWeights(adjusted.design, adjusted.units))
    plain, held = (eb.estimate(one, metrics=[P]).table() for one in (adjusted, frozen))
    pd.testing.assert_frame_equal(plain, held)
    for sample in (frozen, adjusted.count_each()):
        assert eb.estimate(sample, metrics=[P, R]).part([1]).table()["worst"].notna().all()


@pytest.mark.parametrize("ratio", [0, 1])
def test_strict_cases_are_the_mean_of_draws_the_undecided_ones_of_which_are_0_or_1(ratio):
    """Whatever their order: also where all draws of one half are undecided, as of one annotator, or not begun."""
    value, at = (CENSUS.column(eb.columns.B3_RECALL) / CENSUS.size)[UNIT], np.arange(400)
    for seed, (resolved, begun) in enumerate(
        [(at < 200, at < 400), (at >= 8, at < 400), (at % 9 > 0, at % 5 > 0)]
    ):
        record = np.random.default_rng(seed).integers(len(UNIT), size=400)
        resolved = resolved & begun
        unit = UNIT[record[resolved]]
        design = eb.UniformRecords(CENSUS.ids[unit], repeats=True)
        design = eb.design.Responding(design, resolved, begun=begun)
        sample = eb.Sample(CENSUS.take(np.unique(unit)), design)
        found = with_cases(ClosedForm()(sample, [m.b3_recall]), sample, [m.b3_recall])
        case = (found.cases.wrong, found.cases.right)[ratio]
        of_each = np.where(resolved, value[record], ratio)[begun]
        assert case.mean[0] == pytest.approx(of_each.mean(), rel=1e-12)
        assert case.sd[0] == pytest.approx(of_each.std() / np.sqrt(begun.sum()), rel=0.01)
        assert found.table()[["worst", "best"]].notna().all(axis=None)


def test_strict_cases_of_precision_under_ends_of_links():
    drawn = draw(PEOPLE.pred, LinkEnds(), n=200, seed=1)
    records = drawn.table["record"]
    unresolved = list(records.unique()[::7])
    labels = PEOPLE.true[PEOPLE.true.isin(PEOPLE.true[records[~records.isin(unresolved)]])]
    sample = eb.Sample(eb.measure(PEOPLE.pred, labels), drawn.design(labels, unresolved=unresolved))
    with pytest.warns(eb.Alarm, match="draws are undecided"):
        found = eb.estimate(sample, metrics=[P])
    wrong, right = (case.mean[0] for case in (found.cases.wrong, found.cases.right))
    assert found["pairwise-precision"].worst < wrong < TRUTH[0] < right < found["pairwise-precision"].best


@pytest.mark.parametrize("wrong", [4, 5])
def test_one_draw_that_nobody_can_decide_leaves_a_verdict_open_only_where_it_can_change_it(wrong):
    """Forty draws of pairs, of which some are predicted as two single records, so that such draws are 0."""
    prediction = {i: i if i < 2 * wrong else 1000 + i // 2 for i in range(400)}
    labels = {i: i // 2 for i in range(80)}
    design = eb.design.Responding(eb.UniformRecords(range(40)), [True] * 40 + [False])
    sample = eb.Sample(eb.measure(prediction, labels), design)
    found = eb.estimate(sample, metrics=[R, m.splits])
    case, q = found.cases.wrong, 1 / 41
    variance = (found.sd[0] * 40 / 41) ** 2 + q * (1 - q) * (1 - wrong / 40) ** 2 / 41
    assert case.mean[0] == pytest.approx((1 - wrong / 40) * 40 / 41, abs=2e-3)
    assert case.sd[0] == pytest.approx(np.sqrt(variance), rel=1e-3)
    # the worst of a count are like wrong ones if there are five of these
    assert found.table()["worst"].notna().tolist() == [True, wrong == 5]
    twice = eb.design.Responding(eb.UniformRecords([0, *range(40)]), [True] * 41 + [False])
    again = eb.estimate(eb.Sample(sample.units, twice), metrics=[m.splits])
    assert again.table()["worst"].notna().all()  # a repeat is a draw
    answer = check(sample, {R: 0.5, m.b3_recall: 0.5}, ONCE)
    assert [v.value for v in answer.verdicts] == ["holds", "holds"]
    end = found.table()["worst"].iloc[0]
    for least, wanted in ((end - 1e-3, "holds"), (end + 1e-3, "open")):
        answer = check(sample, {R: least}, ONCE)
        assert answer.verdicts[0].value == wanted
        assert wanted == "holds" or "undecided draws, 2.4% of all, decide" in answer.reasons[0]


def test_groups_and_own_numbers_have_both_cases_and_the_fault():
    _, _, _, adjusted = sampled(np.random.default_rng(8), n=500)
    metrics = [P, m.b3_recall, m.entities]
    wanted = eb.estimate(adjusted, metrics=metrics).table()[["worst", "best"]]
    everyone = pd.Series("all", PEOPLE.true.index)
    of_all = eb.by_domain(adjusted, everyone, metrics, prediction=PEOPLE.pred)
    np.testing.assert_array_equal(of_all.table()[["worst", "best"]], wanted)
    halves = eb.by_domain(adjusted, {i: "ab"[i % 2] for i in PEOPLE.true.index}, metrics)
    shown = halves.table()
    assert (shown["worst"] < shown["lower"])[shown["metric"] != "entities"].all()
    assert (shown["best"] > shown["upper"])[shown["metric"] != "entities"].all()
    # intervals of all groups together are longer, and so are their cases
    together, known = halves.table(simultaneous=True), shown["worst"].notna()
    assert (together["worst"] < shown["worst"])[known].all() and (together["best"] > shown["best"])[
        known
    ].all()
    few = eb.by_domain(adjusted, {i: i == 5 for i in PEOPLE.true.index}, metrics, fewest=1000).table()
    assert few[["lower", "worst", "best"]].isna().all(axis=None)
    (said,) = (a for a in halves.alarms() if "draws are undecided" in a)
    assert said.grade.value == "fault"

    own = impact_of(adjusted, PEOPLE.pred, PEOPLE.true, ["mean(size)", "count"])
    ends = {}
    for odds in (np.inf, 0.0):
        fit = impact_of(at_odds(adjusted, odds), PEOPLE.pred, PEOPLE.true, ["mean(size)", "count"]).fit
        ends[odds] = fit.interval()
    every = np.stack([*ends.values(), own.fit.interval()])
    table = own.table()
    outer = np.stack([every[..., 0].min(axis=0), every[..., 1].max(axis=0)], axis=-1)
    np.testing.assert_allclose(np.sort(table[["worst", "best"]]), outer, rtol=1e-12)
    assert f"({eb._internal.digits.format_number(outer[1, 0])} to" in own.sentences()[1]
    assert said in own.sentences()
    # a case of too few effective draws has no end, and then nothing bounds the truth
    open_ended = replace(own.fit.cases, wrong=replace(own.fit.cases.wrong, mean=np.full(2, np.nan)))
    sentences = replace(own, fit=replace(own.fit, cases=open_ended)).sentences()
    assert sentences[0].endswith("no estimate of the truth: nothing bounds what the undecided draws are.")


def test_one_undecided_draw_of_a_flawless_matcher_leaves_no_metric_open():
    draws, prediction = np.random.default_rng(3).integers(2000, size=400), {i: i // 2 for i in range(4000)}
    labels = {i: i // 2 for i in range(4000) if i // 2 in draws}
    design = eb.design.Responding(eb.UniformRecords(draws), np.arange(401) != 7)
    sample = eb.Sample(eb.measure(prediction, labels), design)
    assert check(sample, dict.fromkeys([P, R, m.b3_recall], 0.97)).verdict.value == "holds"
    least = eb.estimate(sample, metrics=[P]).table()
    assert 0.98 < least["worst"].iloc[0] < least["lower"].iloc[0] - 1 / 401


def test_a_check_holds_or_fails_only_if_it_does_so_in_both_cases():
    _, _, _, adjusted = sampled(np.random.default_rng(8), n=600)
    row = with_cases(ClosedForm()(adjusted, [P, R]), adjusted, [P, R]).table(1 - 0.05 / 2).loc[R.name]
    assert row.worst < row.lower < row.upper < row.best
    for least, wanted in (
        (row.worst - 0.002, "open"),  # it would hold, but for the fault of so many undecided draws
        (row.worst + 0.002, "open"),
        (row.lower - 0.002, "open"),
        (row.upper + 0.002, "open"),
        (row.best - 0.002, "open"),
        (row.best + 0.002, "fails"),
    ):
        answer = check(adjusted, {R: least, P: 0.01}, ONCE)
        assert answer.verdicts[0].value == wanted
        assert answer.interval[0] == pytest.approx([row.worst, row.best])
        assert ("the sample has a fault" in answer.reasons[0]) == (least < row.worst)
        assert ("undecided draws, 23.0%" in answer.reasons[0]) == (row.worst < least < row.best)


def test_the_alarm_of_undecided_draws_on_both_sides_of_its_threshold():
    for lost, grade in ((19, "note"), (20, "fault")):
        resolved = np.ones(200, bool)
        resolved[:lost] = False
        at = UNIT[np.arange(0, 4000, 20)[resolved]]
        units, design = CENSUS.take(np.unique(at)), eb.UniformRecords(CENSUS.ids[at])
        said = eb.alarms(eb.Sample(units, eb.design.Responding(design, resolved)), METRICS)
        (alarm,) = (s for s in said if f"{lost} of 200 draws are undecided" in s)
        assert alarm.grade.value == grade and ("from worst to best" in alarm) is (grade == "fault")
        # stated odds take the place of the range, which then has no columns
        stated = eb.Sample(units, eb.design.Responding(design, resolved, odds=3))
        (alarm,) = (s for s in eb.alarms(stated, METRICS) if f"{lost} of 200 draws are undecided" in s)
        assert alarm.grade.value == "caution" and "3 times the odds of an error" in alarm


def test_the_number_of_records_knows_of_undecided_draws():
    """Without the variance of the numbers of draws in classes, z varied twice as much with large entities."""
    people = sim.simulate(sim.Zeta(2.2, 200), sim.Splits(0.1), 2000, np.random.default_rng(7))
    census, size = people.units, people.pred.map(people.pred.value_counts()).to_numpy()
    unit, z = census.ids.get_indexer(people.true), []
    for seed in range(150):
        rng = np.random.default_rng([seed, 100])
        record, resolved = rng.integers(len(unit), size=100), rng.random(100) > 0.1
        at, classes = unit[record][resolved], eb.design.size_classes(size[record], resolved)
        design = eb.design.Responding(eb.UniformRecords(census.ids[at]), resolved, classes)
        number, error, N = _estimate_records(eb.Sample(census.take(np.unique(at)), design))
        z.append((number - N) / error)
    assert 0.85 < np.std(z) < 1.25 and (np.abs(z) > 3).mean() < 0.02


def lost_of(tried, resolved, **more):
    """Draws of clusters a, b, ... as many as `tried`, of which the first `resolved` of each are resolved."""
    known = np.concatenate([np.arange(k) < r for k, r in zip(tried, resolved, strict=True)])
    at = UNIT[np.arange(len(known)) * 20]
    clusters = np.repeat([chr(97 + i) for i in range(len(tried))], tried)
    design = eb.design.Responding(eb.UniformRecords(CENSUS.ids[at[known]]), known, clusters=clusters, **more)
    return eb.Sample(CENSUS.take(np.unique(at[known])), design)


@pytest.mark.parametrize("lost, alarmed", [(4, True), (3, False)])
def test_the_alarm_of_a_cluster_none_of_whose_draws_is_resolved(lost, alarmed):
    """Of 100 draws others fail once in each ten, so that q^k of k = 3, 4 is .001, .0002, in ten clusters."""
    tried, resolved = [10] * 9 + [lost], [9] * 9 + [0]
    sample = lost_of(tried, resolved)
    q, above = 1 - sum(resolved) / sum(tried), 10
    assert sample.design.expect_lost().to_dict() == {"j": pytest.approx(above * q**lost)}
    said = [a for a in eb.alarms(sample, METRICS) if "No draw of 1 large predicted cluster is resolved" in a]
    assert bool(said) == alarmed == (above * q**lost < 0.01)
    both = eb.alarms(lost_of([10] * 18 + [4, 6], [9] * 18 + [0, 0]), METRICS)
    assert any("No draw of 2 large predicted clusters is resolved, such as 't'" in a for a in both)
    frozen = eb.Sample(sample.units, eb.design.FrozenWeights(sample.design, sample.units))
    assert any("No draw of 1 large" in a for a in eb.alarms(frozen, METRICS)) == alarmed


def test_records_are_answered_or_not_by_hand():
    """A record of chance 1/40 is met by one of seven draws, and answered as two of three met ones are."""
    units = eb.measure({i: i // 2 for i in range(40)}, {0: "x", 1: "y", 2: "y"})
    resolved = [True, True, True, False, False, True, False]
    base, records = eb.UniformRecords(["x", "x", "y", "y"]), [0, 0, 1, 3, 3, 1, 3]
    q = (1 - (1 - 1 / 40) ** 7) * 2 / 3
    as_draws = np.log(1 - q) / np.log(1 - 1 / 40)
    missed = [(1 - 1 / 40) ** as_draws, (1 - 2 / 40) ** as_draws]
    design = eb.design.Responding(base, resolved, records=records)
    np.testing.assert_allclose(design.expand(units).weight, 1 / (1 - np.array(missed)), rtol=1e-12)
    np.testing.assert_allclose(1 / design.expand(units).weight[0], q, rtol=1e-12)
    whole = eb.design.Responding(base, [True] * 4, records=[0, 0, 1, 1])
    np.testing.assert_allclose(whole.expand(units).weight, base.expand(units).weight, rtol=1e-12)


def test_draws_of_one_record_fail_together_and_are_one_trial():
    records = [*range(90), *[90] * 4]
    alone = lost_of([10] * 9 + [4], [9] * 9 + [0], records=records).design
    assert alone.expect_lost()["j"] == pytest.approx(10 * 10 / 91)  # ten of 91 records are not resolved
    with pytest.raises(eb.DataError, match="1 records have resolved draws and others"):
        lost_of([10] * 9 + [4], [9] * 9 + [1], records=records)


def test_drawn_records_may_stay_unresolved():
    drawn = draw(PEOPLE.pred, n=150, seed=1)
    records = drawn.table["record"]
    unresolved = list(records.iloc[[3, 50]])
    gone = records.isin(unresolved)
    labels = PEOPLE.true[PEOPLE.true.isin(PEOPLE.true[records[~gone]])]
    with pytest.raises(eb.DataError, match="drawn records have no label"):
        drawn.design(labels[~labels.index.isin(unresolved)])
    design = drawn.design(labels, unresolved=unresolved)
    np.testing.assert_array_equal(design.resolved, ~gone)
    np.testing.assert_array_equal(design.classes, eb.design.size_classes(drawn.table["size"], ~gone))
    assert np.isfinite(eb.estimate(PEOPLE.pred, labels, design, METRICS).interval()).all()
    odd = {record: int(record) % 2 for record in records}
    assert set(drawn.design(labels, unresolved=unresolved, classes=odd).classes) == {0, 1}
    assert not isinstance(drawn.design(PEOPLE.true), eb.design.Responding)
    with pytest.raises(eb.DataError, match="1 unresolved records were not drawn, such as 'stranger'"):
        drawn.design(labels, unresolved=["stranger"])
    with pytest.raises(eb.DataError, match="all 150 draws are unresolved"):
        drawn.design(labels, unresolved=list(records))
    with pytest.raises(eb.DataError, match="draws have no class"):
        drawn.design(labels, unresolved=unresolved, classes={records[0]: 1})


def test_classes_by_size_have_resolved_draws():
    rng = np.random.default_rng(9)
    for _ in range(50):
        size, resolved = rng.zipf(1.6, 80).clip(max=500), rng.random(80) < rng.random()
        resolved[0] = True
        classes = eb.design.size_classes(size, resolved, 5)
        counts = pd.Series(resolved).groupby(classes).sum()
        assert len(counts) == 1 or (counts >= 5).all()
        assert (classes <= size).all()
        for least in counts.index[1:]:
            assert np.log2(least) % 1 == 0 and ((size >= least) == (classes >= least)).all()


@pytest.mark.parametrize("resolved, classes, problem", [
    ([True, False], None, "1 of 2 draws are resolved, but the design has 3 draws"),
    ([True, True, True, False], list("aaab"), "1 classes hold no resolved draw, such as 'b': merge"),
    ([True, True, True, False], list("aaa"), "3 classes for 4 draws"),
    ([True, True, True, False], ["a", None, "a", "a"], "1 of 4 draws have no class"),
    ([1, 1, 1, 0], None, "resolved holds True or False"),
    ([False], None, "True for one or more"),
])  # fmt: skip
def test_other_responses_are_refused(resolved, classes, problem):
    units = eb.measure({1: 1, 2: 1, 3: 2, 4: 2}, {1: 5, 2: 5, 3: 6})
    with pytest.raises(eb.DataError, match=problem):
        eb.design.Responding(eb.UniformRecords([5, 5, 6]), resolved, classes).expand(units)


def test_designs_whose_draws_are_not_alike_are_refused():
    strata = eb.Stratified({i: i % 2 for i in CENSUS.ids}, dict(enumerate(np.bincount(CENSUS.ids % 2))))
    for design in (strata, eb.DistinctEntities(9000)):
        with pytest.raises(eb.DataError, match=f"{type(design).__name__} takes no unresolved draws"):
            eb.design.Responding(design, [True] * len(CENSUS) + [False]).expand(CENSUS)
