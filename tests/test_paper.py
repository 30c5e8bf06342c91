"""Each numbered formula of Binette et al. (2022) by plain loops over sets, against the call that docs/paper.md names."""

from itertools import combinations
from math import comb, sqrt

import numpy as np
import pytest

import erbayes as eb
from erbayes import metrics as m
from erbayes.engine import naive, taylor
from erbayes.metrics.columns import COMMON_LINKS, PREDICTED_LINKS, RECORDS, TRUE_LINKS, Known

pytestmark = pytest.mark.kernel
RNG = np.random.default_rng(5)
N, n = 240, 40
TRUE = {i: f"e{x}" for i, x in enumerate(RNG.integers(0, 70, N))}
PRED = {i: f"k{x}" for i, x in enumerate(np.where(RNG.random(N) < 0.2, RNG.integers(0, 70, N), 0))}
PRED = {i: x if x != "k0" else TRUE[i].replace("e", "k") for i, x in PRED.items()}


def group(of):
    found = {}
    for record, name in of.items():
        found.setdefault(name, set()).add(record)
    return found


C, K = group(TRUE), group(PRED)
LINKS = sum(comb(len(k), 2) for k in K.values())


def f(c):
    """Common links of an entity, and g, which divides them by the predicted links."""
    return sum(comb(len(C[c] & k), 2) for k in K.values())


def leaving(b):
    """Predicted links with a single record in a set of records."""
    return sum(len(b & k) * (len(k) - len(b & k)) for k in K.values())


def ratio(A, B, theta=1.0):
    """Formulas (8) and (9): the estimator with its correction for bias, and its standard deviation."""
    k, a, b = len(A), sum(A) / len(A), sum(B) / len(B)
    correction = theta / (k * (k - 1)) * sum(x / a * (y / b - x / a) for x, y in zip(A, B, strict=True))
    spread = theta / (k * (k - 1)) * sum((x / a - y / b) ** 2 for x, y in zip(A, B, strict=True))
    return b / a * (1 + correction), b / a * sqrt(spread)


def mean(x, theta=1.0):
    """Formulas (10) and (11)."""
    k, centre = len(x), sum(x) / len(x)
    return centre, sqrt(theta / (k * (k - 1)) * sum(v**2 - centre**2 for v in x))


def labels_of(names, of=TRUE):
    return {record: name for record, name in of.items() if name in set(names)}


def found(design, drawn, *metrics):
    """Estimates and standard errors of the formulas as they are, before certain ends."""
    fit = taylor(eb.Sample(eb.measure(PRED, labels_of(drawn)), design), metrics).apply(metrics)
    return list(zip(fit.mean, fit.uncut_sd, strict=True))


def same(package, paper):
    np.testing.assert_allclose(package, paper, rtol=1e-10, atol=1e-12)


def test_figure_2_and_formula_1():
    true = {1: "A", 2: "A", 3: "A", 4: "B", 5: "B", 6: "C", 7: "C", 8: "D"}
    pred = {1: "a", 4: "a", 2: "b", 3: "b", 6: "c", 7: "c", 8: "c", 5: "d"}
    both = true, dict(sorted(pred.items()))
    T, P = ({(i, j) for i, j in combinations(of, 2) if of[i] == of[j]} for of in both)
    census = eb.estimate(pred, true, eb.UniformClusters(population=4), ["precision", "recall", "link-ratio"])
    same(census.estimate, [len(T & P) / len(P), len(T & P) / len(T), len(P) / len(T)])
    assert census.estimate.tolist() == [0.4, 0.4, 1.0]


def test_record_sampling_formulas_10_to_12():
    p = RNG.random(N) + 0.2
    p /= p.sum()
    i = RNG.choice(N, n, p=p)
    drawn, size = [TRUE[x] for x in i.tolist()], [len(C[TRUE[x]]) for x in i.tolist()]
    design = eb.WeightedRecords(drawn, p[i].tolist(), absolute=True)
    precision = mean([f(c) / LINKS / (s * q) for c, s, q in zip(drawn, size, p[i], strict=True)])
    A = [(s - 1) / q for s, q in zip(size, p[i], strict=True)]
    B = [2 * f(c) / (s * q) for c, s, q in zip(drawn, size, p[i], strict=True)]
    same(found(design, drawn, m.P_rec, m.R_rec), [precision, ratio(A, B)])


CLUSTERS = RNG.choice(sorted(C), n, replace=False).tolist()


@pytest.mark.parametrize(
    ("theta", "design"),
    [(1.0, eb.UniformClusters()), (1 - n / len(C), eb.UniformClusters(population=len(C)))],
)
def test_cluster_sampling_formulas_13_and_14(theta, design):
    A, B = [len(C[c]) for c in CLUSTERS], [N * f(c) / LINKS for c in CLUSTERS]
    recall = ratio([comb(len(C[c]), 2) for c in CLUSTERS], [f(c) for c in CLUSTERS], theta)
    same(found(design, CLUSTERS, m.P_clust, m.R_clust), [ratio(A, B, theta), recall])


def test_cluster_blocks_of_drawn_records_are_the_estimators_of_table_3():
    drawn = [TRUE[x] for x in RNG.integers(0, N, n).tolist()]
    A = [(f(c) + leaving(C[c]) / 2) / len(C[c]) for c in drawn]
    B = [f(c) / len(C[c]) for c in drawn]
    T = [comb(len(C[c]), 2) / len(C[c]) for c in drawn]
    design, metrics = eb.UniformRecords(drawn, repeats=True), ["precision", "recall", "link-ratio"]
    answer = eb.estimate(PRED, labels_of(drawn), design, metrics)
    same(np.stack([answer.uncut, answer.uncut_sd], -1), [ratio(A, B), ratio(T, B), ratio(T, A)])


BLOCK = {i: f"b{int(TRUE[i][1:]) // 5}" for i in TRUE}


def in_block(b):
    """A and B of formulas (15) and (16): of precision, of recall, and their common B."""
    inside = {i for i in BLOCK if BLOCK[i] == b}
    true, pred = (group({i: of[i] for i in inside}) for of in (TRUE, PRED))
    within = sum(comb(len(k), 2) for k in pred.values())
    common = sum(comb(len(c & k), 2) for c in true.values() for k in pred.values())
    return within + leaving(inside) / 2, sum(comb(len(c), 2) for c in true.values()), common


def estimate_blocks(blocks, design):
    labels = {i: TRUE[i] for i in TRUE if BLOCK[i] in blocks}
    return eb.estimate(PRED, labels, design, ["precision", "recall"], blocks={i: BLOCK[i] for i in labels})


def test_block_sampling_formulas_15_and_16():
    blocks = ["b2", "b5", "b7", "b11"]
    P, T, common = zip(*map(in_block, blocks), strict=True)
    answer = estimate_blocks(blocks, eb.UniformClusters())
    same(np.stack([answer.uncut, answer.uncut_sd], -1), [ratio(P, common), ratio(T, common)])


def test_remark_2_predicted_clusters():
    drawn = RNG.choice(sorted(K), 30, replace=False).tolist()
    sample = eb.Sample(eb.measure_predicted(PRED, TRUE, drawn), eb.UniformClusters())
    common = [sum(comb(len(K[k] & c), 2) for c in C.values()) for k in drawn]
    fit = taylor(sample, [m.pairwise_precision]).apply([m.pairwise_precision])
    same([fit.mean[0], fit.uncut_sd[0]], ratio([comb(len(K[k]), 2) for k in drawn], common))


def test_naive_precision_of_the_simulation():
    units = eb.measure(PRED, labels_of(CLUSTERS))
    of_labelled = group({i: PRED[i] for i in labels_of(CLUSTERS)})
    expected = sum(map(f, CLUSTERS)) / sum(comb(len(k), 2) for k in of_labelled.values())
    same(naive(units, [m.pairwise_precision])["pairwise-precision"], expected)


def test_remark_1_a_merge_distance_whose_costs_are_links():
    columns = (COMMON_LINKS, TRUE_LINKS, PREDICTED_LINKS, RECORDS, Known(RECORDS))
    value = lambda tp, t, p, r, N: N * (t + p - 2 * tp) / r  # noqa: E731
    edits = m.Metric("link-edits", columns, value, ((RECORDS, 1.0),), (0.0, np.inf), "own")
    cut = sum(len(a) * len(b) for k in K.values() for a, b in combinations([k & c for c in C.values()], 2))
    made = sum(len(a) * len(b) for c in C.values() for a, b in combinations([c & k for k in K.values()], 2))
    census = eb.estimate(PRED, TRUE, eb.UniformClusters(population=len(C)), edits)
    same(census.estimate, [cut + made])
