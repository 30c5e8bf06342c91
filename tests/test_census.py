"""A full sample equals the population value, with standard error 0, under every design."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import oracle
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score, homogeneity_score, rand_score, v_measure_score

import erbayes as eb
from erbayes import metrics as m

pytestmark = [pytest.mark.kernel, pytest.mark.lowest]
ENTITY = (*m.ALL, m.P_clust)
PREDICTED = eb.measure_predicted({1: "a", 2: "a"}, {1: "x", 2: "y"}, ["a"])
DUAL = [
    metric
    for metric in (*m.ALL, *m.definitions.OTHERS)
    if all(isinstance(c, eb.columns.Known) or c.identified(PREDICTED) for c in metric.columns)
]


def population(seed: int, N: int = 60) -> tuple[pd.Series, pd.Series]:
    rng = np.random.default_rng(seed)
    true = rng.zipf(1.6, N) % 17
    pred = np.where(rng.random(N) < 0.3, rng.integers(0, 25, N), true)
    # one exact entity of two records, so that cluster metrics and logit scales are not degenerate
    true[:2], pred[:2] = 90, 91
    index = pd.Index([f"r{i}" for i in range(N)])
    return pd.Series(pred, index), pd.Series(true, index)


def designs(true: pd.Series) -> dict[str, eb.design.contract.Design]:
    sizes = true.value_counts()
    names = sizes.index
    strata = pd.Series(np.arange(len(names)) % 3, names)
    return {
        "clusters": eb.UniformClusters(population=len(names)),
        "records": eb.UniformRecords(draws=list(true), population=len(true)),
        "weights": eb.KnownWeights(pd.Series(3.7, names), population=len(names)),
        "strata": eb.Stratified(strata, strata.value_counts().to_dict()),
        "distinct": eb.DistinctEntities(draws=10**6),
    }


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("name", ["clusters", "records", "weights", "strata", "distinct", "blocks"])
def test_census_of_entities(seed, name):
    pred, true = population(seed)
    expected = oracle.truth(list(true), list(pred))
    blocks = true % 4 if name == "blocks" else None
    design = designs(true)[name] if blocks is None else eb.UniformClusters(population=blocks.nunique())
    found = eb.estimate(pred, true, design, ENTITY, blocks=blocks)
    assert len(found.names) == len(ENTITY)
    np.testing.assert_allclose(found.mean, [expected[n] for n in found.names], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.sd, 0, atol=1e-12)


def test_a_sample_with_some_units_for_certain_is_no_census():
    units = eb.measure({i: i // 2 for i in range(8)}, {i: i // 2 for i in range(4)})
    for chance, census in ((0.5, False), (1.0, True)):
        assert eb.Sample(units, eb.design.KnownInclusion({0: 1.0, 1: chance})).expansion.census == census


@pytest.mark.parametrize("seed", range(8))
def test_census_of_predicted_clusters(seed):
    pred, true = population(seed)
    expected = oracle.truth(list(true), list(pred))
    units = eb.measure_predicted(pred, true, pred.unique())
    found = eb.engine.taylor(eb.Sample(units, eb.UniformClusters(population=pred.nunique())), DUAL)
    values = found.apply(DUAL)
    np.testing.assert_allclose(values.mean, [expected[n] for n in values.names], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(values.sd, 0, atol=1e-12)


MIRRORED = {
    "pairwise-precision": "pairwise-recall",
    "pairwise-f1": "pairwise-f1",
    "b3-precision": "b3-recall",
    "muc-precision": "muc-recall",
    "purity": "inverse-purity",
    "cluster-precision": "cluster-recall",
    "cluster-recall": "cluster-precision",
    "cluster-f1": "cluster-f1",
    "closest-cluster-precision": "closest-cluster-recall",
}


def test_sampled_predicted_clusters_are_entities_of_a_prediction_that_is_the_truth():
    pred, true = population(4)
    chosen = pred.unique()[:9]
    clusters = eb.measure_predicted(pred, true, chosen)
    entities = replace(eb.measure(true, pred[pred.isin(chosen)]), known=clusters.known)
    for design in (eb.UniformClusters(), eb.UniformRecords(repeats=True)):
        found, wanted = (
            eb.engine.taylor(eb.Sample(units, design), metrics).apply(metrics)
            for units, metrics in ((clusters, [*MIRRORED]), (entities, [*MIRRORED.values()]))
        )
        for one, other in ((found, wanted), (found.unseen, wanted.unseen)):
            for name in ("mean", "cov", "df") if one is found else ("effective", "reach", "third"):
                np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-9, err_msg=name)


def test_absolute_P_rec_under_records():
    pred, true = population(1)
    found = eb.estimate(pred, true, eb.UniformRecords(list(true), repeats=True), [m.P_rec])
    assert found.mean[0] == pytest.approx(oracle.truth(list(true), list(pred))["P_rec"], rel=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_scikit_learn_agrees(seed):
    pred, true = population(seed)
    chosen = [m.rand, m.adjusted_rand, m.homogeneity, m.v_measure1]
    found = eb.estimate(pred, true, eb.UniformClusters(population=true.nunique()), chosen)
    peers = (rand_score, adjusted_rand_score, homogeneity_score, v_measure_score)
    np.testing.assert_allclose(found.mean, [f(true, pred) for f in peers], rtol=1e-12)


def test_unidentified_metrics_refuse():
    pred, true = population(0)
    design = eb.UniformClusters()
    for metric in (m.purity, m.closest_cluster_precision, m.van_dongen):
        with pytest.raises(eb.NotIdentified, match="only if whole predicted clusters"):
            eb.estimate(pred, true, design, [metric])
    with pytest.raises(eb.NotIdentified, match="'best_matching' is not identified: the best one-to-one"):
        eb.estimate(pred, true, design, [m.ceaf])
    with pytest.raises(eb.NotIdentified, match="absolute weights"):
        eb.estimate(pred, true, design, [m.P_rec])
    inside = true[pred == pred.iloc[5]]
    units = eb.measure_predicted(pred, inside, [pred.iloc[5]], whole_entities=False)
    with pytest.raises(eb.NotIdentified, match="full size of every true entity"):
        eb.engine.taylor(eb.Sample(units, design), [m.pairwise_recall])


def test_the_page_on_metrics_names_those_that_a_sample_does_not_identify():
    page = Path(__file__).parents[1] / "docs" / "guide" / "metrics.md"
    rows = re.findall(r"^\| ([a-z ]+), each with .* \| (.*) \|$", page.read_text(encoding="utf-8"), re.M)
    for (sampled, named), known in zip(rows, (m.ALL, DUAL), strict=True):
        lacking = {x.name for x in (*m.ALL, *m.definitions.OTHERS)} - {x.name for x in known}
        said = f"{sampled} do not identify {', '.join(sorted(lacking))}: say so in docs/guide/metrics.md"
        assert {*re.findall(r"`(.*?)`", named)} == lacking, said


@pytest.mark.parametrize("large", [lambda N: N > 1, lambda N: N == 2, lambda N: N > 50])
def test_a_column_that_compares_an_unknown_size_refuses(large):
    """A comparison with NaN is False, which is no size."""
    pred, true = population(0)
    chosen = pred.unique()[:9]
    inside = true[pred.isin(chosen)]
    column = eb.columns.PieceSum("of_large", lambda n, N, m: np.where(large(N), n, 0.0))
    units = eb.measure_predicted(pred, inside, chosen, whole_entities=False)
    assert not column.identified(units) and eb.columns.B3_PRECISION.identified(units)
    with pytest.raises(eb.NotIdentified, match="'of_large' needs the full size of every true entity"):
        column.count(units)
    whole = eb.measure_predicted(pred, true, chosen)
    assert column.identified(whole) and column.count(whole).sum() == large(whole.N) @ whole.n
