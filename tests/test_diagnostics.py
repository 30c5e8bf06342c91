import numpy as np
import pandas as pd
import pytest
from checks import raises
from repeats import each_draw
from test_census import population

import erbayes as eb
from erbayes import metrics as m
from erbayes._internal import remedies
from erbayes._internal.errors import Grade
from erbayes.engine.fitted import fit_sample


def test_balance_of_a_census_is_exact():
    pred, true = population(2)
    found = eb.balance(eb.Sample(eb.measure(pred, true), eb.UniformClusters(population=true.nunique())))
    sizes = pred.value_counts()
    np.testing.assert_allclose(found.known, [60, (sizes * (sizes - 1) / 2).sum(), len(sizes)], rtol=1e-12)
    np.testing.assert_allclose(found.ratio, 1, rtol=1e-12)
    np.testing.assert_allclose(found.se, 0, atol=1e-10)


def test_influence_finds_the_worst_entity():
    pred = pd.Series({**{i: i // 2 for i in range(40)}, 100: 99, 101: 99, 102: 99, 103: 98})
    true = pd.Series({**{i: i // 2 for i in range(40)}, 100: 77, 101: 77, 103: 77})
    sample = eb.Sample(eb.measure(pred, true), eb.UniformClusters())
    table = eb.influence(sample, m.pairwise_recall)
    worst = table.iloc[0]
    assert table.index.tolist() == [77, *range(20)], "units with one influence stay in their order"
    assert worst[["records", "pieces", "missing", "wrong", "foreign_links"]].tolist() == [3, 2, 1, 1, 2]
    assert table.influence.sum() == pytest.approx(0, abs=1e-15)
    full = eb.engine.taylor(sample, [m.pairwise_recall]).apply([m.pairwise_recall], order=1).mean[0]
    assert full == pytest.approx(21 / 23, rel=1e-12)
    # linearised at the full totals: (1 - R·3)/23 of its own, the rest of every other entity
    assert worst.influence == pytest.approx((1 - 3 * full) / 23, rel=1e-12)


def test_influences_on_a_total_sum_to_0_too():
    """A total is not homogeneous of degree 0: effects of draws sum to itself before they are centred."""
    pred, true = population(2)
    labels = true[true < true.median()]
    sample = eb.Sample(eb.measure(pred, labels), eb.UniformClusters(population=true.nunique()))
    of = (eb.columns.TRUE_LINKS,)
    total = m.Metric("links", of, lambda x: x, m.PER_RECORD, m.definitions.POSITIVE, "Σ", True)
    table = eb.influence(sample, total)
    links = eb.measure(pred, labels).table()["true_links"]
    wanted = (links - links.mean()) * true.nunique() / len(links)
    np.testing.assert_allclose(table.influence[links.index], wanted, rtol=1e-12, atol=1e-12)


def test_the_variance_share_of_a_unit_is_that_of_all_of_its_draws():
    units = eb.measure({i: i * i // 20 for i in range(12)}, {i: i // 3 for i in range(12)})
    once = eb.influence(eb.Sample(units, eb.UniformClusters()), m.pairwise_recall)
    np.testing.assert_allclose(once.variance_share, once.influence**2 / (once.influence**2).sum(), rtol=1e-12)
    sample = eb.Sample(units, eb.UniformRecords([0, 0, 1, 2, 3]))
    effect = fit_sample(sample, m.pairwise_recall).effects[:, 0]
    squares = pd.Series((effect - effect.mean()) ** 2, sample.expansion.unit).groupby(level=0).sum()
    found = eb.influence(sample, m.pairwise_recall)
    np.testing.assert_allclose(found.variance_share.sort_index(), squares / squares.sum(), rtol=1e-12)


def test_units_that_no_draw_has_met_have_no_influence():
    """As in a study, whose units are all of the population."""
    units = eb.measure({i: i * i // 20 for i in range(15)}, {i: i // 3 for i in range(15)})
    at = np.array([0, 0, 1, 2, 3])
    every = eb.Sample(units, eb.UniformRecords(), eb.UniformRecords().expand_draws(units, at))
    alone = eb.influence(eb.Sample(units.take(np.arange(4)), eb.UniformRecords(units.ids[at])), "b3-recall")
    table = eb.influence(every, "b3-recall")
    pd.testing.assert_frame_equal(table.drop(4), alone)
    assert table.loc[4, ["draws", "influence", "variance_share"]].tolist() == [0, 0, 0]


def test_alarms_speak_only_when_something_is_wrong():
    pred, true = population(2)
    census = eb.Sample(eb.measure(pred, true), eb.UniformClusters(population=true.nunique()))
    assert eb.alarms(census) == []
    calm = pd.Series({i: i // 4 for i in range(4000)})
    wrong = calm.copy()
    wrong.iloc[::10] += 1000
    labels = calm[calm < 100]
    assert eb.alarms(eb.Sample(eb.measure(wrong, labels), eb.UniformClusters()), [m.pairwise_recall]) == []
    perfect = eb.Sample(eb.measure(calm, labels), eb.UniformClusters())
    assert eb.alarms(perfect, [m.b3_recall]) == [
        "The sample shows no variation of b3-recall: a standard error of 0 is no evidence of perfection, and "
        "intervals allow for errors that no draw has shown."
    ]


def test_no_variation_is_a_note_at_an_end_of_the_range_and_a_caution_inside_it():
    """Pairs that are found, beside triples of which one record is always missing: recall is 1/3 in each."""
    labels = {i: i // 3 for i in range(57)}
    prediction = {i: (i // 3, i % 3 == 0) for i in range(600)}
    sample = eb.Sample(eb.measure({i: str(c) for i, c in prediction.items()}, labels), eb.UniformClusters())
    inside, end = (eb.alarms(sample, [x])[0] for x in (m.pairwise_recall, m.pairwise_precision))
    assert (inside.grade.value, end.grade.value) == ("caution", "note")
    assert "all draws are alike" in inside and "label more" in inside
    assert "no evidence of perfection" in end and "label more" not in end
    both = eb.alarms(sample, [m.pairwise_precision, m.pairwise_recall])
    assert [a.grade.value for a in both] == ["note", "caution"]


@pytest.mark.parametrize(("known", "off"), [(1971, False), (1969, True)])
def test_draws_that_are_all_alike_know_a_total_up_to_what_one_more_would_move(known, off):
    """Of 4,000 records 200 pairs are drawn and estimate 2,000 links; each draw stands for ten of them."""
    pairs = {r: r // 2 if r < 2 * known else r + 10**4 for r in range(4000)}
    units = eb.measure(pairs, {r: r // 2 for r in range(400)})
    sample = each_draw(eb.Sample(units, eb.UniformRecords()))
    links = eb.balance(sample).loc["predicted_links"]
    assert links.tolist() == pytest.approx([2000, 10, known, 2000 / known])
    assert any(a.startswith("Out of balance") for a in eb.alarms(sample, [m.pairwise_recall])) is off
    by = eb.by_domain(sample, dict.fromkeys(pairs, "all"), [m.pairwise_recall], prediction=pairs)
    assert by.balance().se["all"] == pytest.approx(10) and bool(by.alarms()) is off


def test_a_total_that_the_design_fixes_has_no_error():
    units = eb.measure({r: r // 2 for r in range(80)}, {r: r // 2 for r in range(8)})
    sample = each_draw(eb.Sample(units, eb.UniformRecords()))
    assert eb.balance(sample).loc["records"].tolist() == [80, 0, 80, 1]


def test_balance_of_a_prediction_without_links():
    units = eb.measure({1: "a", 2: "b", 3: "c"}, {1: "x", 2: "x", 3: "y"})
    ratio = eb.balance(eb.Sample(units, eb.UniformClusters())).ratio
    assert np.isnan(ratio["predicted_links"]) and ratio["predicted_clusters"] == 1


def test_labels_of_drawn_records_alone_raise_an_alarm():
    prediction = {i: i // 2 for i in range(40)}
    metrics = [eb.metrics.pairwise_precision]

    def told(labels):
        found = eb.alarms(eb.Sample(eb.measure(prediction, labels), eb.UniformRecords()), metrics)
        return [a for a in found if "must list every record of each sampled entity" in a]

    (alarm,) = told({i: f"e{i}" for i in range(0, 10, 2)})
    assert "Each of the 5 labelled entities has a single record" in alarm and "joins 5 of these" in alarm
    assert not told({i: f"e{i}" for i in range(0, 8, 2)}) and not told({i: f"e{i // 2}" for i in range(11)})


def test_labels_of_errors_alone_raise_an_alarm():
    entities = {i: i // 3 for i in range(90)}
    prediction = {i: (i + 1) // 3 for i in range(90)}  # the first entity's cluster has two records of it

    def told(n, right=False):
        labels = {i: e for i, e in entities.items() if e < n}
        units = eb.measure(entities if right else prediction, labels)
        found = eb.alarms(eb.Sample(units, eb.UniformClusters()))
        return [a for a in found if "is predicted exactly" in a]

    (alarm,) = told(20)
    assert alarm.startswith("None of the 20 labelled entities") and alarm.grade.value == "fault"
    assert not told(19) and not told(20, right=True)


@pytest.mark.parametrize("design, remedy", [
    (eb.UniformClusters(), (remedies.MORE, remedies.RECORDS)),
    (eb.UniformRecords(), (remedies.MORE,)),
    (eb.design.ByPredictedSize(eb.columns.RECORDS), (remedies.MORE,)),
    (eb.design.KnownInclusion({i: 0.1 for i in range(20)}), (remedies.MORE,)),
])  # fmt: skip
def test_the_remedy_for_large_clusters_depends_on_the_design(design, remedy):
    prediction = {i: i // 2 if i < 800 else 5000 for i in range(1000)}
    prediction = {i: str(k) for i, k in prediction.items()}
    labels = {i: i // 2 for i in range(40)}
    alarms = eb.alarms(eb.Sample(eb.measure(prediction, labels), design))
    assert [a for a in alarms if "that the sample touches" in a and a.remedies == remedy]


def test_ends_of_links_are_not_balanced_against_what_they_never_reach():
    prediction = {i: i // 2 if i < 40 else i for i in range(80)}
    units = eb.measure(prediction, {i: i // 3 for i in range(36)})
    sample = eb.Sample(units, eb.design.ByPredictedSize(eb.columns.PREDICTED_LINKS))
    assert not [a for a in eb.alarms(sample, "pairwise-precision") if "balance" in a]
    raises(eb.NotIdentified, "'predicted_clusters' is not identified", eb.balance, sample)


FROM = "By the units that draws have found, they are from"


def told(design, labels, prediction):
    return [a for a in eb.alarms(eb.Sample(eb.measure(prediction, labels), design)) if a.startswith(FROM)]


def test_dropped_repeats_are_told_under_any_draws_with_known_chances():
    """Forty pairs, each found once by 40 draws: Σ N_c/π_c is 80/(1 - (39/40)^40), and its variance that of 40 pairs."""
    prediction = labels = {i: i // 2 for i in range(80)}
    for design, remedy in (
        (eb.UniformRecords(), "the design is DistinctEntities"),
        (eb.design.ByPredictedSize(eb.columns.PREDICTED_LINKS), "list the unit of every draw in draws="),
    ):
        (alarm,) = told(design, labels, prediction)
        # the variance of the number that 40 draws miss, of 40 pairs
        miss, two = (39 / 40) ** 40, (38 / 40) ** 40
        pi, V = 1 - miss, (40 * miss + 40 * 39 * two - (40 * miss) ** 2) * (2 / (1 - miss)) ** 2
        assert f"{80 / pi:.0f} records (se {V**0.5:.0f}), not from the 80" in alarm and remedy in str(alarm)
        assert alarm.grade is Grade.FAULT and "repeats were dropped" in alarm


@pytest.mark.parametrize("drawn, declared, said", [(75, False, True), (40, False, False), (75, True, False)])
def test_draws_without_replacement_that_nobody_declared(drawn, declared, said):
    singles = pd.Series(np.arange(150))
    order = np.random.default_rng(1).permutation(150)[:drawn]
    design = eb.UniformRecords(order.tolist(), population=150 if declared else None)
    assert bool(told(design, singles[np.sort(order)], singles)) is said


def test_draws_from_more_records_than_those_of_the_prediction():
    """120 draws of as many of 150 records, as if from far more; told, unless their number is passed."""
    own = labels = pd.Series(np.arange(150))
    distinct = np.arange(120)  # of which about 33 had been drawn before, if they were from 150
    (alarm,) = told(eb.UniformRecords(distinct.tolist()), labels[:120], own)
    assert "records=, or count each draw: repeats=True" in str(alarm)
    assert not told(eb.UniformRecords(distinct.tolist(), records=15_000), labels[:120], own)
    assert not told(eb.UniformRecords(distinct.tolist(), repeats=True), labels[:120], own)


def test_too_few_units_are_told():
    singles = pd.Series(np.arange(150))
    (alarm,) = told(eb.DistinctEntities(600), singles[:60], singles)
    assert "too few different units" in alarm


def test_draws_with_replacement_raise_no_alarm_of_their_repeats():
    singles = pd.Series(np.arange(150))
    order = np.random.default_rng(1).integers(150, size=150)
    assert not told(eb.UniformRecords(order.tolist()), singles[np.unique(order)], singles)


@pytest.mark.parametrize(
    "design", [eb.UniformRecords(), eb.UniformClusters(), eb.UniformClusters(300), eb.DistinctEntities(90)]
)
def test_the_balance_of_links_is_that_of_the_table(design):
    """The alarm and intervals take it from the sample, which has many samples at once, and the table from metrics."""
    truth = pd.Series(np.repeat(np.arange(300), np.arange(300) % 5 + 1))
    prediction = truth.where(np.random.default_rng(0).random(len(truth)) > 0.1, -1 - np.arange(len(truth)))
    sample = eb.Sample(eb.measure(prediction, truth[truth < 60]), design)
    row = eb.balance(sample).loc["predicted_links"]
    np.testing.assert_allclose(sample.balance_links, [row.estimate, row.se, row.known], rtol=1e-12)


def test_an_estimate_inside_its_range_is_not_said_to_be_flawless():
    """Entities of one size have a standard error of 0, and no end of a range."""
    truth = pd.Series(np.repeat(np.arange(200), 2))
    found = eb.estimate(truth, truth[truth < 40], eb.UniformRecords(), "entities")
    assert found.sd[0] == 0 and found.sentence().startswith("The estimate of entities is 200.0 (95 % ")
