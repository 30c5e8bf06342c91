"""Digits follow the uncertainty where people read, and nowhere else."""

import re

import numpy as np
import pandas as pd
import pytest

import erbayes as eb
from erbayes._internal import digits

PREDICTION = {i: i // 3 for i in range(6000)}
LABELS = {i: i // 4 for i in range(0, 400)}
FOUND = eb.estimate(PREDICTION, LABELS, eb.UniformClusters(), eb.metrics.ALL)


@pytest.mark.parametrize(("estimate", "se", "wanted", "wanted_se"), [
    (0.91317, 0.0186, "0.913", "0.019"),
    (0.91317, 0.186, "0.91", "0.19"),
    (0.91317, 0.00186, "0.9132", "0.0019"),
    (0.91317, 0.000001, "0.9132", "1e-06"),
    (0.91317, 0.0, "0.9132", "0"),
    (0.91317, np.nan, "0.9132", "–"),
    (1.0, 0.004, "1.000", "0.004"),
    (0.0, 0.0, "0.0000", "0"),
    (-0.00001, 0.02, "0.000", "0.020"),
    (12345.6, 78.9, "12,346", "79"),
    (12345.6, 0.2, "12,346", "0.2"),
    (123.456, 12.3, "123", "12"),
    (2.4567, 0.19, "2.46", "0.19"),
    (np.nan, np.nan, "–", "–"),
    (np.inf, 1.0, "∞", "1.0"),
])  # fmt: skip
def test_a_row_has_the_digits_of_its_standard_error(estimate, se, wanted, wanted_se):
    shown = digits.shown(pd.DataFrame({"estimate": [estimate], "se": [se]}))
    assert shown.loc[0].tolist() == [wanted, wanted_se]


def test_half_the_interval_counts_if_there_is_no_standard_error():
    table = pd.DataFrame({"estimate": [0.51234], "sd": [np.nan], "lower": [0.4], "upper": [0.7]})
    assert digits.shown(table).loc[0].tolist() == ["0.51", "–", "0.40", "0.70"]


def test_rounding_is_small_beside_the_uncertainty():
    """A twentieth of the standard error, a twentieth of a percent of the number, or half the fourth decimal."""
    table = FOUND.table()
    shown = digits.shown(table)  # a copy
    uncertainty = table.se.where(table.se > 0, (table.upper - table.lower) / 2)
    for column in ("estimate", "lower", "upper"):
        read = shown[column].str.replace(",", "").astype(float)
        ends = uncertainty / 20, table[column].abs() / 2000, np.full(len(table), 5.001e-5)
        bound = np.maximum.reduce(ends)
        assert ((read - table[column]).abs() <= bound).all()
        assert shown[column].str.partition(".")[2].str.len().max() <= 4


def test_counts_words_and_lone_numbers():
    table = pd.DataFrame(
        {"n": [1234, 5], "df": [399.7, 12.2], "u": [0.1, 0.25], "word": ["a", None], "flag": [True, False]}
    )
    shown = digits.shown(table)
    assert shown.n.tolist() == ["1,234", "5"] and shown.df.tolist() == ["400", "12"]
    assert shown.u.tolist() == ["0.1", "0.25"]
    assert shown.word.tolist() == ["a", "–"] and shown["flag"].tolist() == ["True", "False"]


def test_results_print_few_digits_and_give_all():
    table = FOUND.table()
    assert table.estimate["pairwise-precision"] == FOUND.mean[0]
    for text in (repr(FOUND), FOUND._repr_html_()):
        assert not re.search(r"\.\d{5}", text) and digits.shown(table).estimate["pairwise-precision"] in text
    assert repr(FOUND).startswith("Estimates with 95 % intervals\n") and "pairwise-precision" in repr(FOUND)


def test_thresholds_are_short_and_can_be_typed_again():
    values = [0.8731, 1 - 1.05e-8, 1.0, np.nan, 100001.0]
    texts = ["0.8731", "0.9999999895", "1", "–", "100001"]
    assert digits.shown(pd.DataFrame({"threshold": values}))["threshold"].tolist() == texts
    rng = np.random.default_rng(1)
    for kind in (np.float64, np.float32):
        near = np.sort(np.append(rng.random(300), [0.1, np.nextafter(0.1, 1)]).astype(kind))
        for scores in (near, near * kind(9.0) - kind(5.0), np.sort(1 - near * kind(1e-5))):
            scores = np.unique(scores)
            at = [digits.shorten_down(x, y) for x, y in zip(scores[1:], scores[:-1], strict=True)]
            typed = np.array([float(x) for x in digits.write_exactly(at)], dtype=kind)
            assert (scores[:-1] < typed).all() and (typed <= scores[1:]).all()
            assert np.median([len(x) for x in digits.write_exactly(at)]) <= 11
