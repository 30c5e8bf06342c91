"""R's survey by domain and post-stratified: tests/golden/domains.R made domains.csv."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import erbayes as eb
from erbayes import metrics as m
from erbayes.analysis.domains import by_domain
from erbayes.metrics.columns import ENTITIES, RECORDS, Domain, InDomain
from erbayes.units.grouping import Of

pytestmark = pytest.mark.kernel
GOLDEN = Path(__file__).parent / "golden"
R = pd.read_csv(GOLDEN / "domains.csv", skipinitialspace=True, keep_default_na=False)
R = R.set_index(["case", "domain", "quantity"])
METRICS = {"TP/PAIR": m.pairwise_precision, "TP/T2": m.pairwise_recall}
RECORDS_OF = pd.read_csv(GOLDEN / "records.csv").set_index("record")
DRAWN = pd.read_csv(GOLDEN / "s_ppswr.csv")


def design():
    weights = DRAWN.drop_duplicates("cluster").set_index("cluster").w
    return eb.KnownWeights(weights, list(DRAWN.cluster), absolute=True)


def units():
    true = RECORDS_OF.true[RECORDS_OF.true.isin(DRAWN.cluster)]
    return eb.measure(RECORDS_OF.pred, true)


@pytest.mark.parametrize("quantity", [*METRICS, "ENT/one"])
def test_svyby(quantity):
    entities_per_record = m.Metric(
        "entities per record", (ENTITIES, RECORDS), lambda c, r: c / r, ((RECORDS, 1.0),), m.UNIT, ""
    )
    metric = METRICS.get(quantity, entities_per_record)
    source = pd.Series(list("ABC"))[RECORDS_OF.index % 3].set_axis(RECORDS_OF.index)
    found = by_domain(eb.Sample(units(), design()), pd.Series(source, name="source"), [metric], fewest=0)
    first = eb.engine.taylor(found.sample, found.settings.of_places(found.sample, found.domains))
    plain = first.apply(found.settings.of_places(found.sample, found.domains), 1)
    for j, g in enumerate("ABC"):
        expected = R.loc["svyby_records", g, quantity]
        assert plain.mean[j] == pytest.approx(expected.est, rel=1e-12)
        assert plain.sd[j] == pytest.approx(expected.se, rel=1e-10)
    contrast = plain.contrast(np.array([[-1, 1, 0], [-1, 0, 1]]), ["B - A", "C - A"])
    for j, name in enumerate(contrast.names):
        expected = R.loc["svycontrast_records", name, quantity]
        assert contrast.mean[j] == pytest.approx(expected.est, rel=1e-10)
        assert contrast.sd[j] == pytest.approx(expected.se, rel=1e-10)


def test_svyby_of_entities():
    kind = {int(c): "xyz"[c % 3] for c in DRAWN.cluster}
    sample = eb.Sample(units(), design())
    found = by_domain(sample, pd.Series(kind, name="kind"), [m.pairwise_precision], of=Of.ENTITIES, fewest=0)
    plain = found.settings.of_places(found.sample, found.domains)
    plain = eb.engine.taylor(found.sample, plain).apply(plain, 1)
    for j, g in enumerate("xyz"):
        expected = R.loc["svyby_entities", g, "TP/PAIR"]
        assert (plain.mean[j], plain.sd[j]) == pytest.approx((expected.est, expected.se), rel=1e-10)


def by_group(variable, *columns):
    """Totals to calibrate to: these columns in each group of a variable."""
    return lambda units, _: [InDomain(c, g) for c in columns for g in units.grouping(variable).domains()]


def test_post_stratified():
    kind = RECORDS_OF.true.map(lambda c: "xyz"[c % 3])
    grouped = units().grouped(kind, name="kind", prediction=RECORDS_OF.pred)
    totals = by_group("kind", RECORDS)
    sample = eb.Sample(grouped, eb.design.Calibrated(design(), totals, bounds=(0.01, 100.0), fewest=0))
    count = m.Metric("c", (ENTITIES,), lambda c: c, ((ENTITIES, 1.0),), m.definitions.POSITIVE, "")
    share = m.Metric("s", (ENTITIES, RECORDS), lambda c, r: c / r, ((RECORDS, 1.0),), m.UNIT, "")
    chosen = {**METRICS, "ENT/one": share, "ENT": count}
    fit = eb.engine.taylor(sample, list(chosen.values())).apply(list(chosen.values()), 1)
    for j, quantity in enumerate(chosen):
        expected = R.loc["postStratify", "", quantity]
        assert fit.mean[j] == pytest.approx(expected.est, rel=1e-9)
        assert fit.sd[j] == pytest.approx(expected.se, rel=1e-8)
    records = [InDomain(RECORDS, Domain("kind", (k,))) for k in "xyz"]
    np.testing.assert_allclose(
        sample.contributions(records).sum(0), kind.value_counts().sort_index(), rtol=1e-9
    )


def test_calibration_to_links_by_group_and_its_replicates():
    source = pd.Series(list("ABC"))[RECORDS_OF.index % 3].set_axis(RECORDS_OF.index)
    grouped = units().grouped(source, name="source", prediction=RECORDS_OF.pred)
    plain = eb.Sample(grouped, design())
    totals = by_group("source", RECORDS, eb.columns.PREDICTED_LINKS)
    sample = eb.Sample(grouped, eb.design.Calibrated(design(), totals, fewest=0))
    for j, g in enumerate("ABC"):
        for column in (RECORDS, eb.columns.PREDICTED_LINKS):
            here = InDomain(column, Domain("source", (g,)))
            assert sample.contributions([here]).sum() == pytest.approx(grouped.total(here), rel=1e-9), j
    taylor, jack = (
        eb.engine.taylor(sample, eb.metrics.DEFAULT_METRICS).apply(eb.metrics.DEFAULT_METRICS),
        eb.engine.jackknife(sample, eb.metrics.DEFAULT_METRICS),
    )
    np.testing.assert_allclose(jack.sd, taylor.sd, rtol=0.6)
    metrics = eb.metrics.DEFAULT_METRICS
    assert np.median(taylor.sd / eb.engine.taylor(plain, metrics).apply(metrics).sd) < 1.1


def test_bad_totals_by_group():
    with pytest.raises(eb.DataError, match="not grouped by 'source'"):
        eb.Sample(units(), eb.design.Calibrated(design(), by_group("source", RECORDS)))
    source = pd.Series("A", RECORDS_OF.index)
    unlabelled = RECORDS_OF.index[~RECORDS_OF.true.isin(DRAWN.cluster)][:1]
    source[unlabelled] = "B"
    grouped = units().grouped(source, name="source", prediction=RECORDS_OF.pred)
    with pytest.raises(eb.DataError, match="no draw adds to 1 of the totals"):
        eb.Sample(grouped, eb.design.Calibrated(design(), by_group("source", RECORDS)))
