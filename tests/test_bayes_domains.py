"""Size models of domains: against fits of the domain as a population of its own, and against plain sums."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from populations import NegativeBinomial

import erbayes as eb
from erbayes import bayes
from erbayes import metrics as m
from erbayes.analysis.domains import by_domain, by_pair, in_domain
from erbayes.bayes.evidence import Evidence
from erbayes.engine.contract import Counting
from erbayes.metrics.columns import COMMON_LINKS, TRUE_LINKS, Domain, Links
from erbayes.study.populations import Chain, Misattribution, Splits, population
from erbayes.units.grouping import Of

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::erbayes.bayes.NotConverged")]
MODEL = bayes.SizeModel(bayes.PredictionInformed(), bayes.Retention())
ENGINE = bayes.Modelled(MODEL, draws=200)
A, B = Domain("kind", ("A",)), Domain("kind", ("B",))
MODELLED = [
    *(x for x in eb.metrics.USUAL if x.name != "cluster-precision"),
    m.entities,
    m.mean_cluster_size,
    m.singleton_share,
]


@cache
def world(crossing=True):
    """Predicted clusters, true entities and kinds of records. Entities of kind B are split far more often."""
    rng = np.random.default_rng(5)
    true = population(NegativeBinomial(3, 1), 6000, rng)
    codes, entities = pd.factorize(true)
    kind = pd.Series(np.where(rng.random(len(entities)) < 0.6, "A", "B")[codes], true.index, name="kind")
    few, many = (Chain((Splits(s), Misattribution(0.05))).apply(codes, rng) for s in (0.05, 0.6))
    if crossing:
        few = many = np.where(rng.random(len(codes)) < 0.04, rng.permutation(few), few)
        many = np.where(rng.random(len(codes)) < 0.4, codes + 10**6, few)
    own = {"A": few, "B": many if crossing else many + 10**7}
    predicted = pd.Series(np.where(kind == "A", own["A"], own["B"]), true.index)
    return predicted, true, kind


def drawn(design="records", n=120, seed=1, crossing=True):
    """A sample, and a function from a kind to the same draws of a population of that kind alone."""
    predicted, true, kind = world(crossing)
    rng = np.random.default_rng(seed)
    if design == "clusters":
        picked = pd.Index(rng.choice(true.unique(), n, replace=False))
    else:
        picked = pd.Index(true.to_numpy()[rng.integers(0, len(true), n)])
    labels = true[true.isin(picked)]

    def designed(picked, records=None):
        if design == "clusters":
            return eb.UniformClusters()
        if design == "distinct":
            return eb.DistinctEntities(n, records=records)
        return eb.UniformRecords(picked)

    sample = eb.Sample(eb.measure(predicted, labels), designed(picked))
    of_entity = kind.groupby(true).first()

    def of(value):
        inside = kind == value
        own = eb.measure(predicted[inside], labels[inside[labels.index]])
        return eb.Sample(own, designed(picked[of_entity[picked].to_numpy() == value], len(true)))

    return sample, of


def grouped(sample, crossing=True):
    predicted, _, kind = world(crossing)
    units = sample.units.grouped(kind, prediction=predicted)
    return eb.Sample(units, sample.design, sample.expansion)


@pytest.mark.parametrize("links", [Links.SHARED, Links.INSIDE])
@pytest.mark.parametrize("design", ["records", "clusters", "distinct"])
def test_one_group_equals_all_records(design, links):
    sample, _ = drawn(design)
    predicted, true, _ = world()
    one = by_domain(
        sample, pd.Series("x", true.index), MODELLED, prediction=predicted, links=links, engine=ENGINE, rng=3
    )
    plain = ENGINE(sample, MODELLED, 3)
    np.testing.assert_array_equal(one.joint.values, plain.values)


@pytest.mark.parametrize("design", ["records", "clusters", "distinct"])
def test_links_inside_equal_a_population_of_the_group_alone(design):
    sample, of = drawn(design)
    alone = bayes.fast(of("B"), MODEL, draws=200, rng=3).apply(MODELLED)
    fit = bayes.fast(grouped(sample), MODEL, domain=B, links=Links.INSIDE, draws=200, rng=3)
    np.testing.assert_allclose(fit.apply(MODELLED).values, alone.values, rtol=1e-9)


def test_shared_links_equal_a_population_of_the_group_alone_if_no_cluster_crosses():
    sample, of = drawn(crossing=False)
    for kind, domain in (("A", A), ("B", B)):
        alone = bayes.fast(of(kind), MODEL, draws=200, rng=3).apply(MODELLED)
        fit = bayes.fast(grouped(sample, crossing=False), MODEL, domain=domain, draws=200, rng=3)
        np.testing.assert_allclose(fit.apply(MODELLED).values, alone.values, rtol=1e-9)


def test_shared_evidence_by_sums_over_records():
    sample, _ = drawn()
    predicted, true, kind = world()
    m_of = predicted.map(predicted.value_counts())
    evidence = {d: Evidence.of(grouped(sample), d) for d in (A, B)}
    whole = Evidence.of(sample)
    for d, e in evidence.items():
        inside = kind == str(d)
        assert e.records == inside.sum()
        assert e.predicted_links == pytest.approx(((m_of[inside] - 1) / 2).sum(), rel=1e-12)
        own = true.isin(e.units.ids)
        assert (kind[own] == str(d)).all()
        half = (m_of[own] - 1) / 2
        assert (e.entities.links + e.entities.foreign / 2).sum() == pytest.approx(half.sum(), rel=1e-12)
        pairs = true[own].value_counts().to_numpy()
        assert e.data["sampled_true_links"] == (pairs * (pairs - 1) / 2).sum()
    assert sum(e.predicted_links for e in evidence.values()) == pytest.approx(
        whole.predicted_links, rel=1e-12
    )
    for name in ("drawn", "entities", "broken", "intact"):
        parts = sum(np.pad(e.data[name], (0, 200))[:60] for e in evidence.values())
        np.testing.assert_array_equal(parts, np.pad(whole.data[name], (0, 200))[:60])


def test_groups_of_different_recall_hold_the_truth():
    predicted, true, kind = world()
    sample, _ = drawn(n=300, seed=4)
    found = by_domain(
        sample,
        kind,
        ["pairwise-precision", "pairwise-recall", "b3-recall"],
        prediction=predicted,
        engine=bayes.Modelled(MODEL, draws=1000),
        rng=1,
    )
    units = eb.measure(predicted, true)
    census = by_domain(
        eb.Sample(units, eb.UniformClusters(population=len(units))), kind, found.metrics, prediction=predicted
    )
    exact, table = census.table().estimate, found.table(0.99)
    assert ((table.lower < exact) & (exact < table.upper)).all()
    recall = table[table.metric == "pairwise-recall"]
    assert recall.upper.iloc[1] < recall.lower.iloc[0]
    difference = found.differences().set_index("metric").loc["pairwise-recall"]
    assert difference.lower < exact[4] - exact[1] < difference.upper < 0
    correlation = np.corrcoef(found.joint.flat.T)[:3, 3:]
    assert np.abs(correlation).max() < 0.12  # 1,000 independent draws


def test_draws_are_counted_and_few_give_no_interval():
    predicted, true, kind = world()
    sample, _ = drawn(n=40)
    rare = kind.where(~true.isin(sample.units.ids[:4]), "rare")
    rare = rare.where(true.isin(sample.units.ids) | (kind == "A"), "unseen")
    found = by_domain(sample, rare, ["b3-recall"], prediction=predicted, engine=ENGINE, rng=1)
    table = found.table().set_index("domain")
    assert isinstance(ENGINE, Counting)
    drawn_kinds = rare.groupby(true).first()[sample.design.draws].value_counts()
    for value in ("A", "B", "rare"):
        assert table.loc[value, "n_eff"] == drawn_kinds[value]
    assert table.loc["rare", "kind"] == "none" and "fewer than 10" in table.loc["rare", "reason"]
    assert np.isnan(table.loc["rare", "estimate"])
    assert "rare" in found.differences().query("reason != ''")["difference"].str.cat()
    low = by_domain(sample, rare, ["b3-recall"], prediction=predicted, engine=ENGINE, rng=1, fewest=2).table()
    assert low.set_index("domain").loc["rare", ["lower", "upper"]].notna().all()
    with pytest.raises(eb.DataError, match="no domain of 'kind' has 100 draws, which Modelled needs"):
        by_domain(sample, kind, ["b3-recall"], prediction=predicted, engine=ENGINE, fewest=100)
    assert "no labelled record" in table.loc["unseen", "reason"]
    assert table.loc["A", ["lower", "upper"]].notna().all()


def test_the_rest_is_a_group_too():
    predicted, _, kind = world()
    sample, _ = drawn()
    found = by_domain(sample, kind, ["pairwise-recall"], prediction=predicted, engine=ENGINE, rng=1)
    table = found.against_rest()
    rest = bayes.fast(found.sample, MODEL, domain=Domain("kind", ("A",), rest=True), draws=200, rng=2)
    alone = bayes.fast(found.sample, MODEL, domain=B, draws=200, rng=2)
    np.testing.assert_array_equal(rest.total(COMMON_LINKS), alone.total(COMMON_LINKS))
    assert table["estimate"].iloc[0] == pytest.approx(-table["estimate"].iloc[1], abs=0.06)


def refused(what, match):
    with pytest.raises(eb.NotIdentified, match=match):
        what()


def test_what_a_size_model_of_domains_refuses():
    predicted, true, kind = world()
    sample, _ = drawn()
    mixed = pd.Series(np.arange(len(true)) % 2, true.index, name="half").map("h{}".format)
    usual = {"metrics": ["pairwise-recall"], "engine": ENGINE}
    refused(
        lambda: by_domain(sample, mixed, prediction=predicted, **usual),
        r"size model of half h0 needs whole entities, but \d+ of \d+ .* closed form",
    )
    refused(lambda: by_domain(sample, kind, **usual), "kind A needs the group of each record .*prediction=")
    one, entity = kind.copy(), sample.units.ids[np.argmax(sample.units.size)]
    one[true.index[true == entity][0]] = "B" if one[true.index[true == entity][0]] == "A" else "A"
    refused(
        lambda: by_domain(sample, one, prediction=predicted, **usual),
        f"1 of {len(sample.units)} labelled ones have records inside and outside, such as {entity}",
    )
    of_entities = kind.groupby(true).first()
    refused(lambda: by_domain(sample, of_entities, of=Of.ENTITIES, **usual), "needs the group of each record")
    refused(
        lambda: by_pair(sample, kind, prediction=predicted, engine=ENGINE),
        "no part of the size model returns 'common_links of kind A with A', links between groups: use the closed form or the bootstrap",
    )
    refused(
        lambda: by_domain(sample, kind, ["basic-merge-distance"], prediction=predicted, engine=ENGINE),
        "no part of the size model returns ",
    )
    nobody = kind.where(true.isin(sample.units.ids), "C")
    units = sample.units.grouped(nobody, prediction=predicted)
    refused(
        lambda: bayes.fast(eb.Sample(units, sample.design), domain=Domain("kind", ("C",))), "needs a draw"
    )
    with pytest.raises(eb.DataError, match="not grouped by 'kind'"):
        bayes.fast(sample, domain=A)
    labels = true[true.isin(sample.units.ids)]
    blocks = eb.measure(predicted, labels, blocks=labels // 2)
    refused(
        lambda: by_domain(eb.Sample(blocks, eb.UniformClusters()), kind, prediction=predicted, **usual),
        "needs sampled true entities",
    )


def test_what_a_fit_of_a_domain_shows():
    sample = grouped(drawn()[0])
    fit = bayes.fast(sample, MODEL, domain=B, draws=100, rng=1)
    assert fit.tree["observed_data"].sizes["entity"] == len(fit.evidence.units)
    assert set(fit.tree["observed_data"]["entity"].values) == set(fit.evidence.units.ids.astype(str))
    assert f"{fit.evidence.records:,.0f} records" in fit.explain()
    assert (fit.total(TRUE_LINKS) >= fit.total(COMMON_LINKS)).all()


def test_warnings_name_the_domain():
    predicted, true, kind = world()
    size = true[kind == "A"].value_counts()
    picked = [*size.index[:60], *true[kind == "B"].unique()[:60]]
    labels = true[true.isin(picked)]
    sample = grouped(eb.Sample(eb.measure(predicted, labels), eb.UniformClusters()))
    with pytest.warns(eb.Alarm, match="predicted links of A .* A size model relies"):
        bayes.fast(sample, MODEL, domain=A, draws=100, rng=1)


def test_the_alarm_of_recall_names_the_domain():
    sample = grouped(drawn("clusters", n=300)[0])
    small = sample.units.take(np.flatnonzero(sample.units.size < 7))
    recall, precision = (
        in_domain(metric, B, known=True) for metric in (m.pairwise_recall, m.pairwise_precision)
    )
    few = eb.Sample(small, eb.UniformClusters())
    (alarm,) = ENGINE.alarms(few, [recall, precision], 1)
    assert alarm.startswith("kind B: pairwise-recall rests on entities that the sample lacks")
    assert ENGINE.alarms(few, [precision], 1) == []


def test_the_pool_of_a_domain_has_the_closed_form_of_that_domain():
    """Its mean is halfway between the posterior's and the closed form's of kind B, which is split often."""
    sample = grouped(drawn()[0])
    closed = in_domain(m.pairwise_recall, B, known=True)
    apart = eb.engine.taylor(sample, closed).apply(closed).estimate[0]
    whole = eb.engine.taylor(sample, m.pairwise_recall).apply(m.pairwise_recall).estimate[0]
    fit = bayes.fast(sample, MODEL, domain=B, draws=200, rng=3)
    pooled, posterior = fit.pooled(m.pairwise_recall), fit.apply(m.pairwise_recall).estimate[0]
    assert abs(whole - apart) > 0.1 and pooled.names == ("pairwise-recall",)
    assert pooled.estimate[0] == pytest.approx((posterior + apart) / 2, abs=0.02)
    assert np.isfinite(fit.table()[["pooled_lower", "pooled_upper"]]).all(axis=None)
