"""Two phases: cheap labels of many draws, careful ones of some: all samples, hand formulas, coverage, refusals."""

from contextlib import nullcontext
from dataclasses import replace
from itertools import combinations_with_replacement, product

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from repeats import each_draw
from test_assisted import wholly_wrong

import erbayes as eb
from erbayes import columns as u
from erbayes import engine, plots
from erbayes import metrics as m
from erbayes.auxiliary import two_phases
from erbayes.auxiliary.two_phases import find_common_records, pair_draws, share_draws, subsample
from erbayes.engine.control_variate import Effects
from erbayes.engine.fitted import fit_sample
from erbayes.report import report
from erbayes.study import populations as sim

PR = (m.pairwise_precision, m.pairwise_recall)
RNG = np.random.default_rng(5)
TRUTH = sim.population(sim.LogNormal(0.5, 1.0), 4000, RNG)
PREDICTION = pd.Series(sim.Misattribution(0.2).apply(TRUTH.to_numpy(), RNG), TRUTH.index)
CHEAP = pd.Series(sim.Misattribution(0.03).apply(TRUTH.to_numpy(), RNG), TRUTH.index)
USELESS = pd.Series(RNG.permutation(TRUTH.to_numpy()), TRUTH.index)
RECORDS = RNG.integers(len(TRUTH), size=600)


def labelled(clusters, records):
    """The entities of drawn records by some labels, and the design of the draws."""
    draws = clusters.iloc[records].tolist()
    return clusters[clusters.isin(draws)], eb.UniformRecords(draws)


def sample_of(clusters, records, prediction=PREDICTION):
    """Each draw counts as often as it was made, as in two phases."""
    return each_draw(as_drawn(clusters, records, prediction))


def as_drawn(clusters, records, prediction=PREDICTION):
    labels, design = labelled(clusters, records)
    return eb.Sample(eb.measure(prediction, labels), design)


SAMPLE = as_drawn(TRUTH, RECORDS[:150])


# All samples
@pytest.mark.slow
def test_a_fixed_weight_is_unbiased_and_its_variance_too():
    """B-cubed recall under uniform records is a mean over draws: nothing is a matter of first order."""
    truth, prediction, cheap = (pd.Series(list(x), list("abcd")) for x in ("xxxy", "1122", "pqqq"))
    position, metric, weights = np.array([3, 1]), [m.b3_recall], np.array([0.0, 0.6, 1.0])
    found, variances = [], []
    for records in product(range(4), repeat=4):
        records = np.array(records)
        every = sample_of(cheap, records, prediction)
        samples = (sample_of(truth, records[position], prediction), subsample(every, position), every)
        own, second, first = (x.contributions(m.b3_recall.columns).sum(axis=0) for x in samples)
        found.append(own[0] / own[1] + weights * (first[0] / first[1] - second[0] / second[1]))
        phases, effects = pair_draws(position, 4), (fit_sample(x, metric).effects for x in samples)
        careful, part, whole = (x.residual for x in phases.spread(*(Effects(x, x) for x in effects)))
        variances.append(np.diag(phases.variance.covariance(careful - weights * (part - whole))))
    share, other = (_recalls(clusters, prediction) for clusters in (truth, cheap))
    np.testing.assert_allclose(np.mean(found, axis=0), share.mean(), rtol=1e-12)
    left = [share - weight * other for weight in weights]
    neyman = [np.var(share) / 4 + (1 / 2 - 1 / 4) * np.var(x) for x in left]
    np.testing.assert_allclose(np.var(found, axis=0), neyman, rtol=1e-12)
    np.testing.assert_allclose(np.mean(variances, axis=0), neyman, rtol=1e-12)


@pytest.mark.slow
def test_each_unit_counts_once_in_each_phase():
    """Totals, whose variance is no matter of first order, over all samples."""
    truth, prediction, cheap = (pd.Series(list(x), list("abcdef")) for x in ("xxxyyz", "112233", "ppqqqr"))
    position, weights = np.array([3, 1]), np.array([0.0, 0.6, 1.0])
    columns = [u.COMMON_LINKS, u.EXACT, u.RECORDS]
    found, variances, times = [], [], []
    # the order of two draws of one phase says nothing: each pair of different records comes in two
    for pairs in product(combinations_with_replacement(range(6), 2), repeat=2):
        (a, b), (c, d) = pairs
        records, times = np.array([a, c, b, d]), [*times, len({a, b}) * len({c, d})]
        every = as_drawn(cheap, records, prediction)
        samples = as_drawn(truth, records[position], prediction), subsample(every, position), every
        phases = share_draws(samples[0], every, position, find_common_records(samples[0], every))
        own, second, first = (x.contributions(columns) for x in samples)
        found.append([own.sum(axis=0) + w * (first.sum(axis=0) - second.sum(axis=0)) for w in weights])
        careful, part, whole = (
            x.residual for x in phases.spread(*(Effects(z, z) for z in (own, second, first)))
        )
        left = (careful - w * (part - whole) for w in weights)
        variances.append([np.diag(phases.variance.covariance(z)) for z in left])
    wanted = eb.Sample(eb.measure(prediction, truth), eb.UniformClusters(population=3))
    total = wanted.contributions(columns).sum(axis=0)
    assert sum(times) == 6**4
    mean, variance = (np.average(x, axis=0, weights=times) for x in (found, variances))
    np.testing.assert_allclose(mean, np.tile(total, (3, 1)), rtol=1e-12, atol=1e-14)
    spread = np.average((np.array(found) - mean) ** 2, axis=0, weights=times)
    np.testing.assert_allclose(variance, spread, rtol=1e-12)


def _recalls(clusters, prediction, records=None):
    """What each record is worth as a draw: the mean, over its cluster, of the shares in predicted clusters."""
    inside = [prediction[clusters == clusters[r]] for r in (clusters.index if records is None else records)]
    return np.array([np.mean([np.mean(piece == own) for own in piece]) for piece in inside])


@pytest.mark.parametrize(("careful", "cheap", "paired"), [
    ({}, {}, True), ({"records": 5000}, {"records": 5000}, True), ({"records": 5000}, {}, False),
    ({}, {"records": 5000}, False), ({"repeats": True}, {}, False), ({}, {"repeats": True}, False),
])  # fmt: skip
def test_only_draws_of_as_many_records_count_once_by_both_labels(careful, cheap, paired):
    drawn = ((SAMPLE, careful), (as_drawn(CHEAP, RECORDS), cheap))
    samples = [eb.Sample(x.units, replace(x.design, **how)) for x, how in drawn]
    found, each = (two_phases.TwoPhase(b)(a, PR) for a, b in (samples, map(each_draw, samples)))
    assert np.allclose(found.cov, each.cov, rtol=1e-9, atol=0) is not paired


# The estimate
def test_the_truth_as_cheap_labels_is_the_sample_of_all_draws():
    sample, every = sample_of(TRUTH, RECORDS[:150]), sample_of(TRUTH, RECORDS)
    found, plain = two_phases.TwoPhase(every)(sample, PR), engine.Taylor()(sample, PR)
    whole = engine.Taylor()(every, PR)
    assert (found.weights > 0.9).all()
    np.testing.assert_allclose(found.mean, plain.mean + found.weights * (whole.mean - plain.mean), rtol=1e-12)
    both = zip(plain.unseen.reach, fit_sample(sample, PR).effects.T, strict=True)
    pseudo = [wholly_wrong(extremes, effect) for extremes, effect in both]
    np.testing.assert_allclose(found.sd**2 - pseudo, whole.sd**2, rtol=0.1)
    assert (found.equivalent_labels > 0).all() and (found.equivalent_labels < 450).all()


def test_the_estimate_and_its_error_by_hand():
    """The textbook's right side, V(d)/n' + (1/n - 1/n') V(d - λe), from the careful draws alone."""
    sample, every = sample_of(TRUTH, RECORDS[:200]), sample_of(CHEAP, RECORDS)
    metric = [m.b3_recall]
    found, plain = two_phases.TwoPhase(every)(sample, metric), engine.Taylor()(sample, metric)
    part = sample_of(CHEAP, RECORDS[:200])
    second, first = (engine.Taylor()(x, metric).mean for x in (part, every))
    weight = found.weights[0]
    assert 0.5 < weight <= 1
    np.testing.assert_allclose(found.mean, plain.mean + weight * (first - second), rtol=1e-12)
    d, e = 200 * fit_sample(sample, metric).effects[:, 0], 200 * fit_sample(part, metric).effects[:, 0]
    neyman = d.var(ddof=1) / 600 + (1 / 200 - 1 / 600) * (d - weight * e).var(ddof=1)
    pseudo = wholly_wrong(plain.unseen.reach[0], fit_sample(sample, metric).effects[:, 0], weight)
    np.testing.assert_allclose(found.cov[0, 0] - pseudo, neyman, rtol=0.1)
    assert found.cov[0, 0] < plain.cov[0, 0]


def test_the_weight_by_hand():
    """Covariance of the estimate and its correction over the variance of the latter, draws with careful labels apart."""
    n, draws = 200, len(RECORDS)
    found = two_phases.TwoPhase(sample_of(CHEAP, RECORDS))(sample_of(TRUTH, RECORDS[:n]), [m.b3_recall])
    d, e = (_recalls(clusters, PREDICTION, TRUTH.index[RECORDS]) for clusters in (TRUTH, CHEAP))
    apart = 1 / n - 1 / draws
    both = np.cov(d[:n], e[:n])[0, 1] * apart
    spread = np.var(e[:n], ddof=1) * n * apart**2 + np.var(e[n:], ddof=1) * (draws - n) / draws**2
    np.testing.assert_allclose(found.weights, both / spread, rtol=1e-9)


def test_effects_on_the_difference_of_both_phases_are_its_derivatives():
    """By the weight of each draw, of the mean of the careful draws less that of all; signs count for skew."""
    x, careful = np.random.default_rng(3).exponential(size=7), np.array([4, 1, 6])

    def difference(weight):
        return np.average(x[careful], weights=weight[careful]) - np.average(x, weights=weight)

    steps = 1e-6 * np.eye(7)
    expected = [(difference(1 + step) - difference(1 - step)) / 2e-6 for step in steps]
    part, every = (((v - v.mean()) / len(v))[:, None] for v in (x[careful], x))
    effects = (Effects(one, -one) for one in (0 * part, part, every))
    _, of_part, of_all = pair_draws(careful, 7).spread(*effects)
    order = np.append(careful, [0, 2, 3, 5])
    found = (of_part.residual - of_all.residual)[:, 0]
    np.testing.assert_allclose(found, np.array(expected)[order], atol=1e-9)
    np.testing.assert_allclose((of_part.change - of_all.change)[:, 0], -np.array(expected)[order], atol=1e-9)


def test_careful_draws_may_be_anywhere_among_the_cheap_ones():
    order = np.random.default_rng(1).permutation(600)
    first = two_phases.TwoPhase(sample_of(CHEAP, RECORDS))(sample_of(TRUTH, RECORDS[:150]), PR)
    place = np.argsort(order)[:150]
    again = two_phases.TwoPhase(sample_of(CHEAP, RECORDS[order]), place)(sample_of(TRUTH, RECORDS[:150]), PR)
    np.testing.assert_allclose(again.mean, first.mean, rtol=1e-12)
    np.testing.assert_allclose(again.cov, first.cov, rtol=1e-9)


def test_useless_cheap_labels_leave_the_default():
    sample = sample_of(TRUTH, RECORDS[:150])
    plain, found = engine.Taylor()(sample, PR), two_phases.TwoPhase(sample_of(USELESS, RECORDS))(sample, PR)
    assert set(found.unassisted) == {"the gain is not clear"} and not found.weights.any()
    np.testing.assert_array_equal(found.cov, plain.cov)
    np.testing.assert_allclose(found.interval(), plain.interval())
    own = pd.Series(np.arange(len(TRUTH)), TRUTH.index)  # cheap labels without any link: recall is 0/0
    notes = two_phases.TwoPhase(sample_of(own, RECORDS))(sample, [m.pairwise_recall]).unassisted
    assert notes == ("it is 0/0 with 'cheap' as the truth",)


def test_a_machine_that_learned_the_careful_labels_is_doubted():
    """Its other answers are the prediction. The oracle is a permutation of all draws."""
    careful = RECORDS[:150]
    learned = "p" + PREDICTION.astype(str)
    own = labelled(TRUTH, careful)[0]
    learned[own.index] = "e" + own.astype(str)
    for cheap, doubted in ((learned, True), (CHEAP, False)):
        both = sample_of(cheap, RECORDS)
        found = two_phases.TwoPhase(both)(sample_of(TRUTH, careful), PR)
        changed = both.units.column(u.EXACT)[both.expansion.unit] == 0
        parts = [np.random.default_rng(i).permutation(changed)[:150].sum() for i in range(4000)]
        as_many = np.mean(np.array(parts) >= changed[:150].sum())
        assert abs(found.changed.chance - as_many) < 0.03
        shares = changed[:150].mean(), changed.mean()
        assert (found.changed.drawn, found.changed.population) == pytest.approx(shares)
        assert ("seems to know the labels" in " ".join(found.of_second())) == doubted


def coverage(records, n, draws, repetitions, cheap, seed):
    """Coverage, mean width over the default's, and coverage of the default, by metric."""
    metrics, rng = (*PR, m.b3_recall, m.cluster_recall), np.random.default_rng(seed)
    truth = np.array([sim.Population(PREDICTION, TRUTH).value(x) for x in metrics])
    units = TRUTH.unique()
    held, width = np.zeros((2, len(metrics))), []
    for _ in range(repetitions):
        if records:
            drawn = rng.integers(len(TRUTH), size=draws)
            sample, every = sample_of(TRUTH, drawn[:n]), sample_of(cheap, drawn)
        else:  # entities: the machine labels the first record of each
            drawn = rng.choice(units, size=draws)
            labels = TRUTH[TRUTH.isin(drawn[:n])]
            sample = eb.Sample(eb.measure(PREDICTION, labels), eb.UniformClusters(draws=list(drawn[:n])))
            answers = cheap[~TRUTH.duplicated()].set_axis(units)[drawn].tolist()
            measured = eb.measure(PREDICTION, cheap[cheap.isin(answers)])
            every = eb.Sample(measured, eb.UniformClusters(draws=answers))
        both = [of(sample, metrics).interval() for of in (engine.Taylor(), two_phases.TwoPhase(every))]
        held += [(x[:, 0] <= truth) & (truth <= x[:, 1]) for x in both]
        width.append(np.diff(both[1])[:, 0] / np.diff(both[0])[:, 0])
    return held[1] / repetitions, np.mean(width, axis=0), held[0] / repetitions


@pytest.mark.slow
@pytest.mark.parametrize("records", [True, False])
def test_intervals_are_shorter_and_keep_their_promise(records):
    held, width, _ = coverage(records, 80, 400, 60, CHEAP, 1)
    assert held.mean() >= 0.93 and held.min() >= 0.9 and (width < 0.9).all()


@pytest.mark.study
@pytest.mark.parametrize("records", [True, False])
@pytest.mark.parametrize("n, draws", [(100, 200), (100, 1000), (300, 900)])
@pytest.mark.parametrize("cheap", [CHEAP, USELESS], ids=["good", "useless"])
def test_coverage_of_two_phases(records, n, draws, cheap):
    held, width, default = coverage(records, n, draws, 300, cheap, 2)
    assert held.mean() >= min(0.93, default.mean()) and (held >= np.minimum(0.92, default - 0.02)).all()
    # pseudo-draws stay where labels are useless, and cost up to 3 %
    assert (width <= 1.04).all()


def test_what_no_careful_draw_reaches_is_allowed_for():
    """Entities of two records, of which some are in clusters of four; cheap draws alone reach a cluster of six."""
    truth = pd.Series(np.arange(800) // 2)
    prediction = truth.where(truth % 3 > 0, truth // 6 * 6)
    prediction[truth < 3], prediction[truth >= 350] = -6, -100
    careful, every = np.arange(10, 50), np.append(np.arange(10, 110), [0, 1])
    small, large = (
        eb.Sample(eb.measure(prediction, truth[truth.isin(x)]), eb.UniformClusters(draws=list(x)))
        for x in (careful, every)
    )
    links = prediction.value_counts().map(lambda n: n * (n - 1) / 2)
    found = two_phases.TwoPhase(large)(small, PR)
    assert found.weights[0] > 0
    assert found.unseen.unreached_share[0] == pytest.approx((links[-6] + links[-100]) / links.sum())


# Who takes them, and refusals
def test_the_door_reports_and_pictures_take_them():
    (labels, design), (cheap, cheap_design) = labelled(TRUTH, RECORDS[:150]), labelled(CHEAP, RECORDS)
    found = eb.two_phase(PREDICTION, labels, design, PR, cheap=cheap, cheap_design=cheap_design)
    one = two_phases.TwoPhase(as_drawn(CHEAP, RECORDS))
    sample = as_drawn(TRUTH, RECORDS[:150])
    pd.testing.assert_frame_equal(found.table(), one(sample, PR).table())
    assert {"lambda", "equivalent_labels"} <= set(found.table())
    assert "<th>two phases</th>" in report(sample, PR, engines={"two phases": one})
    plots.draw_forest(found, ax=Figure().subplots())


@pytest.mark.parametrize("change, message", [
    ({"careful": [0, 1]}, "2 positions for 150 draws: it needs a different one for each"),
    ({"careful": [0.5] * 150}, "whole numbers from 0, among the 600 draws"),
    ({"careful": [0] * 150}, "a different one for each"),
    ({"careful": range(500, 650)}, "among the 600 draws"),
    ({"careful": range(-1, 149)}, "whole numbers from 0"),
    ({"cheap_design": eb.UniformRecords()}, "the cheap design UniformRecords does not say in which order"),
    ({"design": eb.UniformRecords()}, "the careful design UniformRecords does not say in which order"),
    ({"cheap_design": eb.DistinctEntities(600)}, "independent draws of one stratum"),
    ({"cheap": TRUTH, "cheap_design": "census"}, "leave out population= of the cheap design"),
    ({"cheap": "the same"}, "0 draws have cheap labels only"),
])  # fmt: skip
def test_refusals(change, message):
    (labels, design), (cheap, cheap_design) = labelled(TRUTH, RECORDS[:150]), labelled(CHEAP, RECORDS)
    arguments = {"labels": labels, "design": design, "cheap": cheap, "cheap_design": cheap_design} | change
    if arguments["cheap_design"] == "census":
        arguments["cheap_design"] = eb.UniformRecords(TRUTH.tolist(), population=len(TRUTH))
    if isinstance(arguments["cheap"], str):
        arguments |= {"cheap": labels, "cheap_design": design}
    with pytest.raises(eb.DataError, match=message):
        eb.two_phase(PREDICTION, metrics=PR, **arguments)


@pytest.mark.parametrize("lost", [10, 30])
def test_careful_labels_that_were_given_up_leave_a_trace(lost):
    """The first `lost` draws of entities that are predicted wrong, of 150: estimates are those without them."""
    exact = eb.measure(PREDICTION, TRUTH).table()["exact"]
    wrong = exact[TRUTH.iloc[RECORDS[:150]]].to_numpy() < 1
    undecided = np.flatnonzero(wrong)[:lost]
    kept = np.setdiff1d(np.arange(150), undecided)
    labels, design = labelled(TRUTH, RECORDS[kept])
    cheap, cheap_design = labelled(CHEAP, RECORDS)
    given = {"cheap": cheap, "cheap_design": cheap_design, "careful": kept}
    plain = eb.two_phase(PREDICTION, labels, design, PR, **given)
    with pytest.warns(eb.Alarm, match=f"{lost} of 150 draws are undecided") if lost > 15 else nullcontext():
        found = eb.two_phase(PREDICTION, labels, design, PR, **given, undecided=undecided)
    table = found.table()
    pd.testing.assert_frame_equal(table.drop(columns=["worst", "best"]), plain.table())
    # cheap labels move the worst case as they do the estimate: undecided draws have links, of which none is common
    q, case = lost / 150, found.cases.wrong
    assert case.mean == pytest.approx((1 - q) * plain.mean)
    assert case.sd == pytest.approx(np.sqrt((1 - q) ** 2 * plain.sd**2 + q * (1 - q) * plain.mean**2 / 150))
    assert (table["worst"] < table["lower"]).any()
    if lost <= 15:
        by_default = given | {"careful": None}
        others = eb.two_phase(PREDICTION, labels, design, PR, **by_default, undecided=undecided)
        pd.testing.assert_frame_equal(others.table(), table)
        for strange in (-1, 150, 2.5):
            with pytest.raises(eb.DataError, match=f"positions of the first 150 draws, not {strange}"):
                eb.two_phase(
                    PREDICTION, labels, design, PR, **by_default, undecided=[strange, *undecided[1:]]
                )
    with pytest.raises(eb.DataError, match="1 draws are careful and undecided, such as 3"):
        eb.two_phase(
            PREDICTION, labels, design, PR, **(given | {"careful": np.arange(len(kept))}), undecided=[3]
        )


def test_another_prediction_is_refused():
    with pytest.raises(eb.DataError, match="counted with other predictions"):
        two_phases.TwoPhase(sample_of(CHEAP, RECORDS, TRUTH))(sample_of(TRUTH, RECORDS[:150]), PR)
    with pytest.raises(eb.DataError, match="a Sample is needed"):
        two_phases.TwoPhase(CHEAP)


def test_draws_in_another_order_are_refused():
    (labels, design), (cheap, cheap_design) = labelled(TRUTH, RECORDS[:150]), labelled(CHEAP, RECORDS[::-1])
    with pytest.raises(
        eb.DataError, match=r"in 1\d\d of 150 draws they share none, such as .* of draw 1: bring"
    ):
        eb.two_phase(PREDICTION, labels, design, PR, cheap=cheap, cheap_design=cheap_design)
    position = np.arange(600)[::-1][:150]
    given = {"cheap": cheap, "cheap_design": cheap_design, "careful": position}
    found = eb.two_phase(PREDICTION, labels, design, PR, **given)
    np.testing.assert_allclose(found.mean, two_phases.TwoPhase(as_drawn(CHEAP, RECORDS))(SAMPLE, PR).mean)


def test_files_are_taken_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"record": PREDICTION.index, "cluster": PREDICTION}).to_csv("p.csv", index=False)
    (labels, design), (cheap, cheap_design) = labelled(TRUTH, RECORDS[:150]), labelled(CHEAP, RECORDS)
    labels, cheap = (x.set_axis(x.index.astype(str)) for x in (labels, cheap))
    found = eb.two_phase("p.csv", labels, design, PR, cheap=cheap, cheap_design=cheap_design)
    wanted = two_phases.TwoPhase(as_drawn(CHEAP, RECORDS))(SAMPLE, PR).table()
    pd.testing.assert_frame_equal(found.table(), wanted)
