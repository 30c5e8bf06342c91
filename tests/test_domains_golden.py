"""R's survey by domain and post-stratified: tests/golden/domains.R made domains.csv."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import erbayes as eb
from erbayes import metrics as m
from erbayes.analysis.domains import by_domain
from erbayes.metrics.columns import ENTITIES, RECORDS
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
