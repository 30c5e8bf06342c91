"""Metrics by domain: against brute force over records and pairs, which shares no code with the library."""

from dataclasses import replace
from itertools import combinations, combinations_with_replacement

import numpy as np
import pandas as pd
import pytest
from checks import raises
from closed import closed
from oracle import truth
from repeats import each_draw
from scipy import stats
from test_unseen import covary_once, limits

import erbayes as eb
from erbayes import datasets
from erbayes import labels as sampling
from erbayes import metrics as m
from erbayes.analysis.domains import by_domain, by_pair, compare_by_domain, in_domain
from erbayes.analysis.rows import degrees, simultaneous_level
from erbayes.engine import Jackknife, Resampled
from erbayes.engine.fitted import fit_sample
from erbayes.metrics.columns import (
    COLUMNS,
    COMMON_LINKS,
    ENTITIES,
    PREDICTED_LINKS,
    RECORDS,
    TRUE_LINKS,
    Between,
    Domain,
    InDomain,
    Known,
    Links,
    OfUnits,
)
from erbayes.units.grouping import Of

VALUES = ["a", "b", "c"]
LINK_METRICS = ["pairwise-precision", "pairwise-recall", "pairwise-f1"]


def population(seed, records=70):
    """True entities, predicted clusters and groups of records 0, 1, ..."""
    rng = np.random.default_rng(seed)
    true = rng.integers(0, records // 3, records)
    pred = np.where(rng.random(records) < 0.8, true, rng.integers(0, records // 3, records))
    return true.tolist(), pred.tolist(), [VALUES[g] for g in rng.choice(3, records, p=[0.5, 0.4, 0.1])]


def census(true, pred):
    units = eb.measure(dict(enumerate(pred)), dict(enumerate(true)))
    return eb.Sample(units, eb.UniformClusters(population=len(units)))


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("known", [False, True])
def test_a_census_equals_brute_force(seed, known):
    true, pred, group = population(seed)
    groups, prediction = pd.Series(dict(enumerate(group)), name="g"), dict(enumerate(pred)) if known else None
    found = by_domain(census(true, pred), groups, eb.metrics.ALL, prediction=prediction)
    table = found.table().set_index(["domain", "metric"]).estimate
    for g in VALUES:
        expected = truth(true, pred, [i for i, own in enumerate(group) if own == g])
        for metric in eb.metrics.ALL:
            assert table[g, metric.name] == pytest.approx(expected[metric.name], rel=1e-11, abs=1e-12), metric


@pytest.mark.parametrize("seed", [1, 2])
def test_links_inside_equal_the_clusterings_restricted_to_the_group(seed):
    true, pred, group = population(seed, 90)
    groups, given = pd.Series(dict(enumerate(group)), name="g"), dict(enumerate(pred))
    found = by_domain(census(true, pred), groups, eb.metrics.ALL, prediction=given, links=Links.INSIDE)
    table = found.table().set_index(["domain", "metric"]).estimate
    for g in VALUES[:2]:
        some = [i for i in range(len(true)) if group[i] == g]
        expected = truth([true[i] for i in some], [pred[i] for i in some])
        for metric in eb.metrics.ALL:
            assert table[g, metric.name] == pytest.approx(expected[metric.name], rel=1e-10, abs=1e-12), metric


def test_columns_add_up_over_groups():
    true, pred, group = population(3)
    given = {"name": "g", "prediction": dict(enumerate(pred))}
    units = census(true, pred).units.grouped(dict(enumerate(group)), **given)
    domains = units.groupings[0].domains()
    for column in COLUMNS:
        if column.identified(units):
            whole = sum(InDomain(column, d).count(units) for d in domains)
            np.testing.assert_allclose(whole, column.count(units), rtol=1e-12, atol=1e-12)
            rest = InDomain(column, Domain("g", ("a",), rest=True)).count(units)
            both = rest + InDomain(column, domains[0]).count(units)
            np.testing.assert_allclose(both, whole, rtol=1e-12, atol=1e-12)
    for column in (RECORDS, PREDICTED_LINKS):
        parts = [InDomain(column, d) for d in domains]
        totals = [units.total(part) for part in parts]
        assert sum(totals) == pytest.approx(units.total(column), rel=1e-12)
        assert totals == pytest.approx([part.count(units).sum() for part in parts], rel=1e-12)
    for column in (COMMON_LINKS, TRUE_LINKS, PREDICTED_LINKS):
        pairs = combinations_with_replacement(domains, 2)
        found = sum(Between(column, pair).count(units).sum() for pair in pairs)
        assert found == pytest.approx(column.count(units).sum(), rel=1e-12)


def test_links_between_groups_by_brute_force():
    true, pred, group = population(4)
    groups = pd.Series(dict(enumerate(group)), name="g")
    found = by_pair(census(true, pred), groups, prediction=dict(enumerate(pred)))
    table = found.table().set_index(["domain", "metric"]).estimate
    for a, b in [("a", "a"), ("a", "b"), ("b", "b")]:
        pairs = [(i, j) for i, j in combinations(range(len(true)), 2) if {group[i], group[j]} == {a, b}]
        tp = sum(true[i] == true[j] and pred[i] == pred[j] for i, j in pairs)
        p, t = (sum(by[i] == by[j] for i, j in pairs) for by in (pred, true))
        assert table[f"{a} with {b}", "pairwise-precision"] == pytest.approx(tp / p)
        assert table[f"{a} with {b}", "pairwise-recall"] == pytest.approx(tp / t)


@pytest.mark.parametrize("sources", [2, 3])
def test_links_across_sources_by_brute_force(sources):
    """Every pair of records is looked at: it counts if the two records have different sources."""
    true, pred, _ = population(11)
    source = [VALUES[i * 7 % 11 % sources] for i in range(len(true))]
    groups = pd.Series(dict(enumerate(source)), name="source")
    given = {"prediction": dict(enumerate(pred)), "links": Links.ACROSS}
    found = by_domain(census(true, pred), groups, LINK_METRICS, **given)
    pairs = [(i, j) for i, j in combinations(range(len(true)), 2) if source[i] != source[j]]
    tp = sum(true[i] == true[j] and pred[i] == pred[j] for i, j in pairs)
    t, p = (sum(by[i] == by[j] for i, j in pairs) for by in (true, pred))
    np.testing.assert_allclose(found.table().estimate, [tp / p, tp / t, 2 * tp / (p + t)], rtol=1e-12)
    assert set(found.table().domain) == {"a with b" if sources == 2 else "across source"}
    assert found.alarms() == []


def test_links_across_sources_of_a_sample_are_those_of_a_column_by_hand():
    """Standard errors agree with those of columns that count pairs of records, one by one, of each entity."""
    sample, group, pred, true = drawn()
    found = by_domain(sample, group, LINK_METRICS[:2], prediction=pred, links=Links.ACROSS)
    size = pd.crosstab(pred, group).add_prefix("n_")
    rows = {"common": [], "true": [], "predicted": []}
    for entity in sample.units.ids:
        members = true.index[true == entity]
        apart = [(i, j) for i, j in combinations(members, 2) if group[i] != group[j]]
        rows["true"].append(len(apart))
        rows["common"].append(sum(pred[i] == pred[j] for i, j in apart))
        others = [size.loc[pred[i]].sum() - size.loc[pred[i], f"n_{group[i]}"] for i in members]
        rows["predicted"].append(sum(others) / 2)
    columns = {k: OfUnits(k, pd.Series(v, sample.units.ids)) for k, v in rows.items()}
    own = [
        m.Metric(of, (columns["common"], columns[of]), lambda a, b: a / b, ((columns[of], 1.0),), (0, 1), "")
        for of in ("predicted", "true")
    ]
    wanted = eb.engine.taylor(sample, own).apply(own)
    np.testing.assert_allclose(found.table().estimate, wanted.mean, rtol=1e-9)
    np.testing.assert_allclose(found.table().se, wanted.sd, rtol=1e-9)


def test_links_across_one_source_or_of_other_metrics_are_refused():
    sample, group, pred, _ = drawn()
    across = {"prediction": pred, "links": Links.ACROSS}
    with pytest.raises(
        eb.NotIdentified, match=r"'exact' counts no links between groups.* pairwise-recall have"
    ):
        by_domain(sample, group, [m.cluster_recall], **across)
    one = pd.Series("crm", group.index, name="source")
    with pytest.raises(eb.DataError, match="no links are across 'source': it has one value, crm"):
        by_domain(sample, one, LINK_METRICS, **across)
    with pytest.raises(eb.DataError, match="links across g are those of all its domains, not of one"):
        in_domain(m.pairwise_recall, Domain("g", ("g0",)), Links.ACROSS)


def test_across_in_a_comparison_is_the_paired_difference():
    sample, group, pred, true = drawn()
    worse = pred.where(pred.index % 5 > 0, pred.index + 10_000)
    labels, design = true[true.isin(sample.units.ids)], sample.design
    both = {"old": worse, "new": pred}
    compared = eb.compare(both, labels, design, LINK_METRICS)
    table = compare_by_domain(compared, group, LINK_METRICS, predictions=both, links=Links.ACROSS).table()
    alone = [
        by_domain(s, group, LINK_METRICS, prediction=p, links=Links.ACROSS).table().estimate
        for s, p in zip(compared.samples, both.values(), strict=True)
    ]
    np.testing.assert_allclose(table.estimate, alone[1] - alone[0], rtol=1e-9)
    assert set(table.domain) == {"across g"}


def test_a_variable_of_entities_equals_one_of_their_records():
    true, pred, _ = population(5)
    kind = {c: VALUES[c % 3] for c in set(true)}
    of_records = pd.Series({i: kind[c] for i, c in enumerate(true)}, name="kind")
    records = by_domain(census(true, pred), of_records, eb.metrics.ALL)
    entities = by_domain(census(true, pred), pd.Series(kind, name="kind"), eb.metrics.ALL, of=Of.ENTITIES)
    pd.testing.assert_frame_equal(records.table(), entities.table())


def drawn(seed=0, draws=150, groups=3):
    """A sample of uniform records of a larger population, its variable and its memberships."""
    rng = np.random.default_rng(seed)
    true = rng.integers(0, 500, 2000)
    pred = np.where(rng.random(2000) < 0.85, true, rng.integers(0, 500, 2000))
    group = pd.Series(rng.integers(0, groups, 2000), name="g").map("g{}".format)
    picked = true[rng.integers(0, 2000, draws)]
    labels = pd.Series(true)[np.isin(true, picked)]
    units = eb.measure(pd.Series(pred), labels)
    return eb.Sample(units, eb.UniformRecords(list(picked))), group, pd.Series(pred), pd.Series(true)


def test_all_records_as_one_domain_give_the_plain_estimates():
    sample, group, pred, _ = drawn()
    plain = eb.engine.taylor(sample, eb.metrics.ALL).apply(eb.metrics.ALL)
    third = eb.engine.Taylor()(sample, eb.metrics.ALL).unseen.third
    plain = replace(plain, unseen=replace(plain.unseen, third=third))
    for known in (None, pred):
        one = by_domain(sample, group.map(lambda _: "x"), eb.metrics.ALL, prediction=known)
        if known is None:
            np.testing.assert_allclose(one.joint.mean, plain.mean, rtol=1e-9)
        else:
            answer = eb.estimate(sample, metrics=eb.metrics.ALL)
            np.testing.assert_array_equal(one.joint.mean, answer.mean)
            np.testing.assert_array_equal(one.joint.interval(), answer.interval())


def test_degrees_of_counts_by_plain_sums():
    sample, group, pred, true = drawn(groups=4)
    sample = each_draw(sample)
    size, records = true.value_counts(), pd.Series(true.index, true.index).groupby(true)
    inside = {c: sum(group[i] == "g1" for i in rows) for c, rows in records.groups.items()}
    picked = list(sample.design.draws)
    r = [inside[c] / size[c] for c in picked]
    y = [inside[c] / size[c] ** 2 for c in picked]
    ratio, known = sum(y) / sum(r), (group == "g1").sum()
    e = [known * (b - ratio * a) / sum(r) for a, b in zip(r, y, strict=True)]
    assert abs(sum(e)) < 1e-9
    expected = 2 / (sum(x**4 for x in e) / sum(x**2 for x in e) ** 2 - 1 / len(e))
    found = by_domain(sample, group, ["entities", "b3-recall"], prediction=pred, fewest=0)
    metric = in_domain(m.entities, Domain("g", ("g1",)), known=True)
    before = eb.engine.taylor(found.sample, metric).apply(metric)
    assert found.result("entities").df[1] == pytest.approx(expected, rel=1e-9) and expected < before.df[0]
    table = found.table().set_index(["domain", "metric"]).loc[("g1", "entities")]
    assert table.lower < before.interval()[0, 0] and table.upper > before.interval()[0, 1]


def test_degrees_of_counts_are_of_effects_less_their_mean():
    """Without a known number of records of the domain, effects on its count of entities have a mean."""
    sample, group, *_ = drawn(groups=4)
    clusters = eb.Sample(sample.units, eb.UniformClusters(population=500))
    metric = in_domain(m.entities, Domain("g", ("g1",)), known=False)
    within = by_domain(clusters, group, ["entities"], fewest=0).sample
    e = fit_sample(within, [metric]).effects[:, 0].tolist()
    mean = sum(e) / len(e)
    assert mean > 0.3 * np.std(e), "or the mean would not matter"
    second, fourth = (sum((x - mean) ** k for x in e) for k in (2, 4))
    expected = 2 / (fourth / second**2 - 1 / len(e))
    assert degrees(within, [metric])[0] == pytest.approx(expected, rel=1e-9)


def test_weights_and_sizes_stay_those_of_whole_units():
    sample, group, _, _ = drawn()
    found = by_domain(sample, group, [m.b3_recall])
    assert found.sample.expansion is sample.expansion
    np.testing.assert_array_equal(found.sample.units.size, sample.units.size)


def test_engines_have_names_in_groups():
    true, pred, group = population(3)
    sample, group = census(true, pred), dict(enumerate(group))
    sample = eb.Sample(sample.units, eb.UniformClusters())
    for door in (by_domain, by_pair):
        given = {"prediction": dict(enumerate(pred))} if door is by_pair else {}
        named, made = (
            door(sample, group, LINK_METRICS, engine=e, **given) for e in ("jackknife", Jackknife())
        )
        pd.testing.assert_frame_equal(named.table(), made.table())
        with pytest.raises(eb.DataError, match="no engine 'model'; there are 'closed form'"):
            door(sample, group, LINK_METRICS, engine="model", **given)
    predictions = {"old": dict(enumerate(pred)), "new": dict(enumerate(true))}
    both = eb.compare(predictions, dict(enumerate(true)), eb.UniformClusters(), LINK_METRICS)
    named, made = (compare_by_domain(both, group, LINK_METRICS, engine=e) for e in ("jackknife", Jackknife()))
    pd.testing.assert_frame_equal(named.table(), made.table())


@pytest.mark.slow
def test_a_size_model_is_refused_before_it_is_fitted(monkeypatch):
    true, pred, group = population(3)
    sample, group = eb.Sample(census(true, pred).units, eb.UniformClusters()), dict(enumerate(group))
    predictions = {"old": dict(enumerate(pred)), "new": dict(enumerate(true))}
    both = eb.compare(predictions, dict(enumerate(true)), eb.UniformClusters(), LINK_METRICS)
    bayes = pytest.importorskip("erbayes.bayes")
    monkeypatch.setattr(bayes.Modelled, "fitted", None)
    for engine in ("size model", "posterior"):
        said = "a size model has no metrics of groups of records, since an entity may lie in several: fit"
        raises(eb.NotIdentified, said, by_domain, sample, group, LINK_METRICS, engine=engine)
        raises(eb.NotIdentified, said, compare_by_domain, both, group, LINK_METRICS, engine=engine)


@pytest.mark.parametrize("engine", [Jackknife(), Resampled(replicates=200)])
def test_other_engines(engine):
    sample, group, _, _ = drawn()
    if isinstance(engine, Resampled):  # which counts each draw
        sample = each_draw(sample)
    taylor, other = (by_domain(sample, group, engine=e, rng=1).table() for e in (None, engine))
    np.testing.assert_allclose(other.estimate, taylor.estimate, atol=0.02)
    np.testing.assert_allclose((other.upper - other.lower) / (taylor.upper - taylor.lower), 1, atol=0.4)
    differences = by_domain(sample, group, engine=engine, rng=1).differences()
    assert len(differences) == 3 * len(eb.metrics.DEFAULT_METRICS)


def test_differences_are_paired():
    sample, group, _, _ = drawn()
    found = by_domain(sample, group, [m.pairwise_recall])
    cov = found.joint.cov
    table = found.differences(simultaneous=False).set_index("difference")
    assert table.estimate["g1 - g0"] == pytest.approx(found.joint.mean[1] - found.joint.mean[0])
    assert table.se["g1 - g0"] == pytest.approx(np.sqrt(cov[0, 0] + cov[1, 1] - 2 * cov[0, 1]))


def test_the_rest_is_all_other_records():
    sample, group, _, _ = drawn()
    found = by_domain(sample, group, [m.pairwise_recall, m.b3_precision])
    inside = (group == "g1").map({True: "in", False: "not in"})
    two = by_domain(sample, inside, [m.pairwise_recall, m.b3_precision])
    rest = found.against_rest(simultaneous=False).set_index(["difference", "metric"])
    both = two.differences(simultaneous=False).set_index("metric")
    for metric in ("pairwise-recall", "b3-precision"):
        assert rest.estimate["g1 - rest", metric] == pytest.approx(-both.estimate[metric])
        assert rest.se["g1 - rest", metric] == pytest.approx(both.se[metric])


def test_intervals_of_differences():
    """From Wald's intervals of both follows Wald's of the difference, estimate ± z se. By hand for others."""
    sample, group, *_ = drawn()
    found = by_domain(sample, group, ["b3-recall", "entities"])
    plain = {"kind": eb.intervals.WALD, "simultaneous": False}
    for table in (found.differences(**plain), found.against_rest(**plain)):
        np.testing.assert_allclose(table.lower, table.estimate - 1.959963984540054 * table.se, rtol=1e-9)
        np.testing.assert_allclose(table.upper, table.estimate + 1.959963984540054 * table.se, rtol=1e-9)
    single = found.table().query("metric == 'b3-recall'").set_index("domain")
    by = ["difference", "metric"]
    row = found.differences(simultaneous=False).set_index(by).loc[("g1 - g0", "b3-recall")]
    a, b = single.loc["g1"], single.loc["g0"]
    # one pseudo-draw at each end of the scale, which go with nothing of the other group
    at = [found.names.index(name) * 2 for name in ("g1", "g0")]
    seen, reach = found.joint.unseen.effective[at], found.joint.unseen.reach[at]
    unseen = ((reach.sum(axis=1) / np.abs(reach).sum(axis=1)) / seen) ** 2 * (reach**2).sum(axis=1) / 2
    total = np.sqrt(np.array([a.se, b.se]) ** 2 + unseen).prod()
    r = (a.se**2 + b.se**2 - row.se**2) / (2 * total)
    down, up = a.estimate - a.lower, b.upper - b.estimate
    assert row.lower == pytest.approx(row.estimate - np.sqrt(down**2 + up**2 - 2 * r * down * up))
    wide = found.differences().set_index(by).loc[("g1 - g0", "b3-recall")]
    assert wide.lower < row.lower and wide.upper > row.upper


def test_one_error_in_two_groups_does_not_cancel_what_no_draw_shows_of_each():
    """The only error is of a draw in both groups, so that estimates of both have the correlation 1."""
    truth = pd.Series(np.arange(2400) // 4)
    prediction = truth.where(truth.index != 0, 9999)
    labels = truth[truth < 120]
    sample = eb.Sample(eb.measure(prediction, labels), eb.UniformClusters())
    groups = pd.Series(np.where(truth.index % 4 < 2, "a", "b"))
    found = by_domain(sample, groups, ["pairwise-recall"])
    a, b = found.joint.interval() - found.joint.estimate[:, None]
    r = found.joint.cov[0, 1] / found.joint.sd.prod()
    assert r > 0.99
    row, least = found.differences(simultaneous=False).iloc[0], 0.8 * min(-a[0], -b[0])
    assert row.lower < row.estimate - least and row.upper > row.estimate + least


@pytest.mark.parametrize(("cov", "level", "off"), [
    (np.eye(8), 0.95 ** (1 / 8), 0.0015),  # k independent ones have the level of Sidak, 0.95^(1/k)
    (np.ones((2, 2)), 0.95, 0.006),
    (np.diag([1.0, 1e-17**2]), 0.95, 0.0),  # a standard error of rounding widens no interval
    (np.diag([1.0, 0.9e-12**2]), 0.95, 0.0),
    (np.diag([1.0, 1.1e-12**2]), 0.95**0.5, 0.006),
])  # fmt: skip
def test_simultaneous_intervals(cov, level, off):
    fit = closed(np.ones(len(cov)), cov, 50.0, (0.0, np.inf))
    assert simultaneous_level(fit, 0.95) == pytest.approx(level, abs=off)


def test_few_draws_have_no_interval():
    sample, group, *_ = drawn()
    rare = group.where(group.index >= 15, "rare")
    by = by_domain(sample, rare, [m.b3_recall])
    found, between = by.table().set_index("domain"), by.differences()
    assert found.n_eff["rare"] < 10 and "effective draws" in found.reason["rare"]
    assert found.estimate["rare"] > 0 and found.lower.isna().tolist() == [False, False, False, True]
    assert between.lower.isna().tolist() == between.difference.str.contains("rare").tolist()
    everything = by_domain(sample, rare, [m.b3_recall], fewest=0).table()
    assert everything.lower.notna().all()
    pairs = by_pair(sample, rare, prediction=drawn()[2], fewest=1e9)
    assert pairs.table().lower.isna().all()
    raises(eb.DataError, "the rest needs two domains or more, of single groups", pairs.against_rest)


def test_a_group_without_draws_is_named():
    sample, group, pred, _ = drawn()
    unseen = group.where(~group.index.isin(pred.index.difference(sample.units.piece_of.index)[:5]), "unseen")
    by = by_domain(sample, unseen, [m.b3_recall, m.entities])
    found = by.table().set_index("domain")
    assert found.estimate["unseen"].isna().all()
    assert set(found.reason["unseen"]) == {"no labelled record is in this domain"}
    assert by.differences()["reason"].str.contains("no labelled").any()


@pytest.mark.parametrize("known", [True, False])
def test_the_rand_index_of_groups_without_a_link_inside_is_that_of_all_their_pairs(known):
    """Every link of the first variable joins two groups; the second has groups with and without links."""
    truth = {i: i // 3 for i in range(90)}
    pred = {i: (i // 3 if i % 5 else 1000 + i) for i in range(90)}
    apart = {i: "ABC"[i % 3] for i in range(90)}
    mixed = {i: "A" if i < 45 else "BC"[i % 3 == 0] for i in range(90)}
    design = eb.UniformClusters(population=30) if known else eb.UniformClusters()
    sample = eb.Sample(eb.measure(pred, truth), design)
    for group in (apart, mixed):
        found = by_domain(
            sample, pd.Series(group, name="g"), ["rand"], prediction=pred, links=eb.columns.Links.INSIDE
        ).table()
        for row in found.itertuples():
            inside = [i for i in range(90) if group[i] == row.domain]
            pairs = list(combinations(inside, 2))
            right = np.mean([(truth[i] == truth[j]) == (pred[i] == pred[j]) for i, j in pairs])
            assert row.estimate == pytest.approx(right, rel=1e-12) and row.lower <= right <= row.upper
            if right == 1:
                assert row.n_eff == pytest.approx(30 if group is apart else 15) and row.se == 0
                # one pseudo-draw that is wrong about every pair, of half a draw; none in a census
                wanted = 1.0 if known else stats.beta.ppf(0.025, *beta_without_errors(row.n_eff))
                assert row.lower == pytest.approx(wanted, abs=2e-3) and row.upper == 1


def test_groups_without_a_link_inside_have_the_effective_draws_of_their_repeats():
    truth = {i: i // 3 for i in range(90)}
    drawn_entities = [5, 5, *range(25)]
    labels = {i: e for i, e in truth.items() if e < 25}
    sample = eb.Sample(eb.measure(truth, labels), eb.UniformRecords(drawn_entities))
    assert sample.expansion.unseen.mean() < 0.9  # an entity that was drawn three times counts once
    apart = pd.Series({i: "ABC"[i % 3] for i in range(90)}, name="g")
    found = by_domain(sample, apart, ["rand"], prediction=truth, links=eb.columns.Links.INSIDE)
    np.testing.assert_allclose(found.effective, 27)
    np.testing.assert_allclose(found.joint.unseen.effective, 25 * sample.expansion.repeated[0])


def beta_without_errors(n):
    """The Beta distribution of the default interval at 1, with t quantiles for n - 1 degrees of freedom."""
    e = 0.5 / n
    x, v = 1 - e / (1 + 2 * e), e / n / (1 + 2 * e) ** 2
    v *= (stats.t.ppf(0.025, n - 1) / stats.norm.ppf(0.025)) ** 2
    size = x * (1 - x) / v
    return size * x, size * (1 - x)


class TestBadInput:
    SAMPLE, GROUP, PRED, TRUE = drawn()
    FIRST = SAMPLE.units.piece_of.index[:3]
    OUTSIDE = PRED.index.difference(SAMPLE.units.piece_of.index)[:1]
    KIND = pd.DataFrame({"entity": TRUE, "kind": ["old", "new"] * 1000})

    @pytest.mark.parametrize(
        ("group", "given", "said"),
        [
            (GROUP.drop(FIRST), {}, f"'g' has no value for 3 of .* labelled records, such as {FIRST[0]}.*unknown"),
            (GROUP.mask(GROUP.index.isin(FIRST)), {}, "'g' has no value for 3"),
            (KIND, {"of": Of.ENTITIES}, "entities have several values of 'kind'"),
            (pd.Series(np.linspace(0, 1, 2000), name="score"), {}, r"not whole.*pandas\.cut"),
            (GROUP, {"prediction": TRUE}, "not the one that the sample was counted on"),
            (GROUP, {"prediction": PRED[10:]}, "1,990 records, but the population of the sample is 2,000"),
            (GROUP.drop(OUTSIDE), {"prediction": PRED}, "'g' has no value for 1 of 2,000 records of the prediction"),
            (GROUP, {"links": Links.INSIDE}, "pass prediction"),
            (GROUP.rename(str), {}, "of type string"),
            ("country", {}, "not grouped by 'country'"),
        ],
    )  # fmt: skip
    def test_groups_that_do_not_fit_the_sample(self, group, given, said):
        raises(eb.DataError, said, by_domain, self.SAMPLE, group, **given)

    def test_many_values(self):
        with pytest.raises(eb.DataError, match=r"has .* values among the labelled records, more than 200"):
            by_domain(self.SAMPLE, pd.Series(self.GROUP.index, self.GROUP.index, name="id"))

    def test_blocks_have_no_entities(self):
        true, pred, _ = population(6)
        blocks = {i: c % 4 for i, c in enumerate(true)}
        units = eb.measure(dict(enumerate(pred)), dict(enumerate(true)), blocks=blocks)
        with pytest.raises(eb.DataError, match="units are blocks"):
            by_domain(eb.Sample(units, eb.UniformClusters()), {c: "x" for c in true}, of=Of.ENTITIES)

    def test_metrics_that_are_no_metrics_of_links(self):
        with pytest.raises(eb.NotIdentified, match="'exact' counts no links"):
            by_pair(self.SAMPLE, self.GROUP, [m.cluster_recall], prediction=self.PRED)


def test_blocks_and_predicted_clusters():
    true, pred, group = population(7)
    groups = pd.Series(dict(enumerate(group)), name="g")
    blocks = {i: c % 9 for i, c in enumerate(true)}
    units = eb.measure(dict(enumerate(pred)), dict(enumerate(true)), blocks=blocks)
    sample = eb.Sample(units, eb.UniformClusters(population=9))
    for links in (Links.INSIDE, Links.SHARED):
        by_blocks, by_entities = (
            by_domain(one, groups, eb.metrics.ALL, prediction=dict(enumerate(pred)), links=links).table()
            for one in (sample, census(true, pred))
        )
        np.testing.assert_allclose(by_blocks.estimate, by_entities.estimate, rtol=1e-9)
    counted = units.grouped(groups).groupings[0].table(units)["units"]
    assert counted.to_dict() == {g: len({b for i, b in blocks.items() if group[i] == g}) for g in set(group)}
    units = eb.measure_predicted(dict(enumerate(pred)), dict(enumerate(true)), sorted(set(pred)))
    predicted = eb.Sample(units, eb.UniformClusters(population=len(units)))
    names = ["pairwise-precision", "pairwise-recall", "b3-recall", "closest-cluster-precision"]
    by_clusters = by_domain(predicted, groups, names).table().set_index(["domain", "metric"]).estimate
    of_entities = by_entities.set_index(["domain", "metric"]).estimate
    for g in VALUES:
        for name in names[:3]:
            assert by_clusters[g, name] == pytest.approx(of_entities[g, name])


def test_the_balance_of_domains():
    sample, group, pred, true = drawn(draws=400)
    found = by_domain(sample, group, ["b3-recall"], prediction=pred)
    table = found.balance()
    sizes = pred.map(pred.value_counts())
    np.testing.assert_allclose(table.known, ((sizes - 1) / 2).groupby(group).sum())
    np.testing.assert_allclose(table.ratio, 1, atol=0.3)
    inside = by_domain(sample, group, ["b3-recall"], prediction=pred, links=Links.INSIDE).balance()
    n = pred.groupby([pred, group]).size()
    np.testing.assert_allclose(inside.known, (n * (n - 1) / 2).groupby(level=1).sum())
    assert found.alarms() == [] == by_domain(sample, group, ["b3-recall"]).alarms()
    raises(eb.NotIdentified, "pass prediction", by_domain(sample, group, ["b3-recall"]).balance)
    merged = pred.copy()
    hidden = pred.index.difference(sample.units.piece_of.index)
    merged[hidden[pred[hidden].map(~pred.isin(pred[sample.units.piece_of.index]))]] = 10**6
    units = eb.measure(merged, true[true.isin(sample.units.ids)])
    other = group.where(merged != 10**6, "g2")
    unreached = by_domain(eb.Sample(units, sample.design), other, ["b3-recall"], prediction=merged)
    (alarm,) = unreached.alarms()
    assert "predicted links of g2" in alarm and "do not trust" in alarm


@pytest.mark.parametrize(("domains", "raised"), [(1, 1), (30, 0)])
def test_a_balance_that_is_off_in_one_domain_of_many_may_be_chance(domains, raised, monkeypatch):
    """By 3.5 standard errors, and by as many more as few draws need."""
    sample, group, pred, _ = drawn(draws=400)
    found = by_domain(sample, group, ["b3-recall"], prediction=pred)
    off = pd.DataFrame({"estimate": 100.0, "se": 1.0, "df": 1000.0, "known": 100.0}, index=range(domains))
    for df, more in ((1000.0, 3.5), (9.0, stats.t.isf(stats.norm.sf(3.5), 9))):
        table = off.assign(df=df, estimate=off["estimate"] + more * (off.index == 0))
        monkeypatch.setattr(type(found), "balance", lambda _, table=table: table)
        assert len(found.alarms()) == raised


def test_taking_units_takes_their_groups():
    true, pred, group = population(8)
    given = {"name": "g", "prediction": dict(enumerate(pred))}
    units = census(true, pred).units.grouped(dict(enumerate(group)), **given)
    units = units.grouped(dict.fromkeys(range(len(true)), "all"), name="h")  # a second variable
    chosen = np.array([5, 2, 9])
    column = InDomain(COMMON_LINKS, Domain("g", ("a",)), Links.INSIDE)
    np.testing.assert_array_equal(units.take(chosen).column(column), column.count(units)[chosen])
    np.testing.assert_array_equal(column.count(units.take(chosen)), column.count(units)[chosen])
    of_chosen = [i for i in units.piece_of.index if true[i] in set(units.ids[chosen])]
    assert list(units.take(chosen).piece_of.index) == of_chosen


def test_a_comparison_by_domain():
    sample, group, pred, true = drawn()
    labels = true[true.isin(sample.units.ids)]
    other = pred.where(pred.index % 7 > 0, -pred.index)
    comparison = eb.compare({"a": pred, "b": other}, labels, sample.design)
    found = compare_by_domain(comparison, group).table()
    whole = compare_by_domain(comparison, group.map(lambda _: "all")).table().set_index("metric")
    plain = comparison.differences().set_index("metric")
    np.testing.assert_allclose(whole.estimate, plain.estimate, rtol=1e-9)
    np.testing.assert_allclose(whole.se, plain.se, rtol=1e-7)
    assert list(found["domain"].unique()) == ["g0", "g1", "g2"]
    single = by_domain(comparison.samples[0], group, [m.b3_recall]).joint.mean
    second = by_domain(comparison.samples[1], group, [m.b3_recall]).joint.mean
    np.testing.assert_allclose(found[found.metric == "b3-recall"].estimate, second - single, rtol=1e-9)
    counts = compare_by_domain(comparison, group, "mean-cluster-size").joint
    for i, own in enumerate(comparison.samples):
        alone = by_domain(own, group, "mean-cluster-size").joint
        np.testing.assert_allclose(counts.df[3 * i : 3 * i + 3], alone.df, rtol=1e-9)


def test_estimated_and_known_numbers_of_records():
    sample, group, pred, true = drawn(draws=400)
    entities = {}
    for known in (None, pred):
        fit = by_domain(sample, group, ["entities"], prediction=known)
        entities[known is not None] = fit.joint
    sizes = true.map(true.value_counts())
    exact = (1 / sizes).groupby(group).sum()
    for fit in entities.values():
        np.testing.assert_allclose(fit.mean, exact, rtol=0.15)
    assert (entities[True].sd < entities[False].sd).all()
    metric = in_domain(m.entities, Domain("g", ("g0",)), known=True)
    assert metric.columns[2] == Known(InDomain(RECORDS, Domain("g", ("g0",))))
    assert metric.columns[0] == InDomain(ENTITIES, Domain("g", ("g0",)))


def test_domains_of_draws_that_never_reach_some_records():
    """Ends of links identify precision by domain, and refuse recall by domain as they refuse it overall."""
    example = datasets.people()
    drawn = sampling.draw(example.prediction, sampling.LinkEnds(), n=200, seed=1)
    labels = example.truth[example.truth.isin(example.truth[drawn.table["record"]])]
    sample = eb.Sample(eb.measure(example.prediction, labels), drawn.design(labels))
    groups = example.truth.index.str[-1].isin(list("012"))
    groups = pd.Series(np.where(groups, "a", "b"), example.truth.index)
    found = eb.by_domain(sample, groups, ["pairwise-precision"], prediction=example.prediction)
    assert found.table()["estimate"].between(0.7, 0.99).all() and found.alarms() == []
    raises(eb.NotIdentified, "have chance 0", eb.by_domain, sample, groups, ["pairwise-recall"])


@pytest.mark.parametrize("split", [0, 1, 2, 10])
def test_differences_that_few_draws_show_or_none_have_the_interval_of_all_records(split):
    """40 drawn pairs of records, of which the second prediction splits some; one group has all of them.

    Rows that fewer than five draws moved were refused, since t intervals covered .62 there; gains less losses
    cover .98 and more.
    """
    truth = {i: i // 2 for i in range(800)}
    old = {i: str(c) for i, c in truth.items()}
    new = {i: f"{c} {i}" if c < split or c == 100 else str(c) for i, c in truth.items()}
    labels, metrics = {i: c for i, c in truth.items() if c < 40}, ["pairwise-recall", "pairwise-precision"]
    comparison = eb.compare({"old": old, "new": new}, labels, eb.UniformClusters(population=400), metrics)
    table = compare_by_domain(comparison, dict.fromkeys(truth, "x"), metrics).table()
    assert "reason" not in table and table["kind"].eq("gains and losses").all()
    recall, precision = table[["estimate", "lower", "upper"]].to_numpy()

    def wanted(D, lost, draws):
        d, df = [-1 / 40] * lost + [0.0] * (40 - lost), draws * 39 / 40
        ends = limits(D, d, [1 / 40] * 40, draws, 1, df, lambda u, v: 0.9 * covary_once(u, v), 0.9)
        return [D, *ends]

    np.testing.assert_allclose(recall, wanted(-split / 40, split, 40), atol=1e-12)
    # neither prediction has a false link
    np.testing.assert_allclose(precision, wanted(0, 0, 40 - split), atol=1e-12)
    # of all records labels settle ends, and of a group of them they settle none
    overall = comparison.differences().set_index("metric")[["estimate", "lower", "upper"]]
    certain = comparison.subtract("old", "new").unseen.certain[0]
    np.testing.assert_allclose(np.clip(recall, *certain), overall.loc["pairwise-recall"], rtol=1e-12)
