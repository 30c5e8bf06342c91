"""Coverage of bands, sets, certificates and stages in populations whose truth is known (benchmarks/edges.py)."""

import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.study
sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
SAMPLES = 200
CELLS = [
    ("rl", 400),
    ("zipf", 200),
    ("heavy tail", 200),
    ("few links", 100),
    ("small entities, coarse scores", 100),
]


def error(share):
    """Two Monte Carlo standard errors."""
    return 2 * np.sqrt(share * (1 - share) / SAMPLES)


@pytest.mark.parametrize(("name", "draws"), CELLS)
def test_bands_cover_sets_hold_the_best_and_certificates_are_true(name, draws):
    from edges import cover

    found = cover(name, draws, SAMPLES)["share"]
    bands = found[found.index.str.endswith(": band")]
    assert bands.min() > 0.9 - error(0.9) and bands.mean() > 0.93 - error(0.93) / 2
    assert found[found.index.str.endswith("holds the best")].min() > 0.95 - error(0.95)
    assert found[found.index.str.startswith("false certificate")].max() < 0.05 + error(0.05)


@pytest.mark.parametrize("name", ["rl", "zipf", "few links"])
def test_shares_of_stages_are_covered(name):
    from edges import cover_stages

    covers = cover_stages(name, 300, SAMPLES).query("shown > .2").covers
    assert covers.min() > 0.9 - error(0.9) and covers.mean() > 0.93 - error(0.93) / 2


def test_old_labels_with_fifty_new_draws_are_as_good_as_two_hundred_fresh_ones():
    from edges import cover_topped_up

    table = cover_topped_up(100).unstack("labels")
    assert table["covers"]["200 + 50"].mean() > 0.93 - error(0.93)
    assert (table["width"]["200 + 50"] < 1.1 * table["width"]["200 fresh"]).all()
