"""Old labels and a few draws among new records, as one design."""

import numpy as np
import pytest

import erbayes as eb

LABELS = {1: "x", 2: "x", 3: "y", 4: "y", 7: "z"}
OLD, NEW = [1, 2, 3, 5, 6], [4, 7, 8]


@pytest.mark.parametrize("new", [NEW, [*OLD, *NEW]])  # all records of today may stand for the new ones
def test_weights_are_those_of_expected_draws(new):
    design = eb.top_up(LABELS, (OLD, ["x", "y", "x"]), (new, ["y", "z"]))
    units = eb.measure({r: r for r in range(1, 9)}, LABELS)
    expansion = eb.Sample(units, design).expansion
    # by hand: 3 old draws with chance f/5, and 2 new ones with a/3
    found = {"x": 1 - (3 / 5) ** 3, "y": 1 - (4 / 5) ** 3 * (2 / 3) ** 2, "z": 1 - (2 / 3) ** 2}
    np.testing.assert_allclose(expansion.weight, [1 / found[units.ids[u]] for u in expansion.unit])
    each = {"x": 1 / (3 * 2 / 5), "y": 1 / (3 / 5 + 2 / 3), "z": 1 / (2 / 3)}
    np.testing.assert_allclose(expansion.repeats, [each[units.ids[u]] for u in expansion.order])
    assert units.ids[expansion.order].tolist() == ["x", "y", "x", "y", "z"]


@pytest.mark.parametrize(("old", "new", "said"), [
    ((OLD, ["x", "y"]), (OLD, ["y", "z"]), "all 5 records of the new part are old ones"),
    ((OLD, ["x", "y"]), ([4, 8], ["y", "y"]), "1 of 5 labelled records are neither old nor new, such as 7"),
    ((OLD, ["x", "z"]), (NEW, ["y", "z"]), "1 of 2 old draws are of entities that have no old record .*'z'"),
    ((OLD, ["x", "y"]), (NEW, ["x", "z"]), "1 of 2 new draws are of entities that have no new record .*'x'"),
    (([*OLD, 1], ["x", "y"]), (NEW, ["y", "z"]), "all records of the old part: 1 duplicates"),
])  # fmt: skip
def test_bad_parts_are_refused_with_a_sentence(old, new, said):
    with pytest.raises(eb.DataError, match=said):
        eb.top_up(LABELS, old, new)
