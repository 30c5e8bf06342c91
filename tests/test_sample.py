"""A sample shows itself, and what it shows of the user's data is text."""

import re
from html import unescape

import pandas as pd
import pytest

import erbayes as eb

PREDICTION, TRUTH = {1: "a", 2: "a", 3: "b", 4: "b"}, {1: "<b>x</b>", 2: "<b>x</b>", 3: "y"}


def shown(sample):
    """The rows of its table in a notebook."""
    rows = re.findall(r"<tr><td>(.*?)</td><td>(.*?)</td></tr>", sample._repr_html_())
    return {unescape(k): unescape(v) for k, v in rows}


def test_what_a_sample_is_made_of():
    sample = eb.Sample(eb.measure(PREDICTION, TRUTH), eb.UniformRecords(draws=["<b>x</b>", "y", "y"]))
    assert repr(sample) == "Sample(3 draws of Units(2 units, 3 records, 2 pieces) by UniformRecords)"
    facts = {"design": "UniformRecords(draws=3 values)", "draws": "3"}
    facts |= {"labelled units": "2 entities or blocks", "labelled records": "3"}
    facts |= {"the largest unit": "2 records", "overlaps with predicted clusters": "2"}
    facts |= {"the prediction": "4 records in 2 clusters"}
    assert shown(sample) == sample.facts() == facts


def test_a_name_from_the_data_is_no_markup():
    units = eb.measure(PREDICTION, TRUTH)

    def weight(size):
        return size

    weight.__name__ = "<script>"
    html = eb.Sample(units, eb.design.BySize(weight))._repr_html_()
    assert "<script>" not in html and "&lt;script&gt;" in html


@pytest.mark.parametrize(
    "missing, known", [(eb.Missing.TOGETHER, None), (eb.Missing.OMIT, "4 records in 2 clusters")]
)
def test_what_the_prediction_lacks_is_shown(missing, known):
    units = eb.measure(PREDICTION, TRUTH | {9: "y"}, missing=missing)
    found = shown(eb.Sample(units, eb.UniformClusters()))
    assert found["labelled records missing in the prediction"] == "1" and found.get("the prediction") == known


def test_every_kind_of_sample_shows_itself():
    predicted = eb.measure_predicted(PREDICTION, TRUTH | {4: "y"}, ["a"])
    assert shown(eb.Sample(predicted, eb.UniformClusters()))["labelled units"] == "1 predicted clusters"
    weights = pd.Series(1.0, eb.measure(PREDICTION, TRUTH).ids)
    weighted = eb.Sample(eb.measure(PREDICTION, TRUTH), eb.KnownWeights(weights))
    assert "weights=2 values" in shown(weighted)["design"]

    class Own:
        def expand(self, units):
            return eb.UniformClusters().expand(units)

    assert shown(eb.Sample(eb.measure(PREDICTION, TRUTH), Own()))["design"] == "Own()"


@pytest.mark.parametrize("blocks", [None, {1: "m", 2: "m", 3: "n", 4: "o"}])
def test_draws_of_units_that_the_prediction_lacks_leave_the_sample_with_them(blocks):
    labels = {1: "x", 2: "x", 3: "y", 4: "z"}
    units = eb.measure({1: "a", 2: "a", 4: "b"}, labels, blocks=blocks, missing=eb.Missing.OMIT)
    x, y, z = ("x", "y", "z") if blocks is None else ("m", "n", "o")
    assert list(units.omitted) == [y] and list(units.ids) == [x, z]
    drawn = eb.Sample(units, eb.UniformRecords([x, y, z, x, y]))
    assert units.ids[drawn.expansion.order].tolist() == [x, z, x]
    assert drawn.facts()["labelled units missing in the prediction, left out with their draws"] == "1"
    assert list(units.take([1]).omitted) == [y]
    with pytest.raises(eb.DataError, match="1 draws name units without labels: 'w'"):
        eb.Sample(units, eb.UniformRecords([x, z, "w"]))
    whole = eb.measure({1: "a", 2: "a", 3: "a", 4: "b"}, labels, blocks=blocks)
    facts = eb.Sample(whole, eb.UniformClusters()).facts()
    assert not len(whole.omitted) and not any("left out" in fact for fact in facts)
