"""Metrics by brute force over pairs of records and set operations; imports nothing of erbayes."""

from collections import Counter
from itertools import combinations
from math import comb, log, sqrt


class Truth(dict[str, float]):
    """Values of metrics by name, in a function that says so of a metric whose value is missing."""

    def __init__(self, where: str, values: dict[str, float]) -> None:
        super().__init__(values)
        self.where = where

    def __missing__(self, name: str) -> float:
        raise LookupError(f"{name} has no value by brute force: add it to {self.where}")


def truth(true: list[int], pred: list[int]) -> dict[str, float]:
    N = len(true)
    both = t_links = p_links = 0
    for i, j in combinations(range(N), 2):
        same_t, same_p = true[i] == true[j], pred[i] == pred[j]
        both += same_t and same_p
        t_links += same_t
        p_links += same_p
    C = {c: frozenset(i for i in range(N) if true[i] == c) for c in set(true)}
    K = {k: frozenset(i for i in range(N) if pred[i] == k) for k in set(pred)}
    exact = len(set(C.values()) & set(K.values()))
    meet = Counter(zip(true, pred, strict=True))
    B = len(meet)
    b3p = [len(C[true[i]] & K[pred[i]]) / len(K[pred[i]]) for i in range(N)]
    b3r = [len(C[true[i]] & K[pred[i]]) / len(C[true[i]]) for i in range(N)]
    hc = -sum(len(c) / N * log(len(c) / N) for c in C.values())
    hk = -sum(len(k) / N * log(len(k) / N) for k in K.values())
    joint = -sum(n / N * log(n / N) for n in meet.values())
    expected = t_links * p_links / comb(N, 2)
    h, c = 1 - (joint - hk) / hc, 1 - (joint - hc) / hk
    sizes = [len(c) for c in C.values()]
    ones = sizes.count(1)
    inv = sum(max(len(c & k) for k in K.values()) for c in C.values()) / N
    pur = sum(max(len(c & k) for c in C.values()) for k in K.values()) / N
    values = {
        "pairwise-precision": both / p_links,
        "pairwise-recall": both / t_links,
        "pairwise-f1": 2 * both / (t_links + p_links),
        "fowlkes-mallows": both / sqrt(t_links * p_links),
        "jaccard": both / (t_links + p_links - both),
        "rand": 1 - (t_links + p_links - 2 * both) / comb(N, 2),
        "adjusted-rand": (both - expected) / ((t_links + p_links) / 2 - expected),
        "link-ratio": p_links / t_links,
        "cluster-precision": exact / len(K),
        "cluster-recall": exact / len(C),
        "cluster-f1": 2 * exact / (len(C) + len(K)),
        "b3-precision": sum(b3p) / N,
        "b3-recall": sum(b3r) / N,
        "b3-precision-entities": sum(x / len(C[t]) for x, t in zip(b3p, true, strict=True)) / len(C),
        "b3-recall-entities": sum(x / len(C[t]) for x, t in zip(b3r, true, strict=True)) / len(C),
        "homogeneity": h,
        "completeness": c,
        "v-measure1": 2 * h * c / (h + c),
        "mutual-information": hc + hk - joint,
        "variation-of-information": 2 * joint - hc - hk,
        "splits": B - len(K),
        "merges": B - len(C),
        "basic-merge-distance": 2 * B - len(K) - len(C),
        "muc-precision": (N - B) / (N - len(K)),
        "muc-recall": (N - B) / (N - len(C)),
        "talburt-wang": sqrt(len(C) * len(K)) / B,
        "inverse-purity": inv,
        "split-rate": 1 - inv,
        "closest-cluster-recall": sum(max(len(c & k) / len(c | k) for k in K.values()) for c in C.values())
        / len(C),
        "entities": len(C),
        "mean-cluster-size": N / len(C),
        "singleton-share": ones / len(C),
        "matching-rate": 1 - ones / N,
        "hill1": 2.718281828459045**hc,
        "hill2": 1 / sum((s / N) ** 2 for s in sizes),
        "P_clust": both / p_links,
        "P_rec": both / p_links,
        "purity": pur,
        "closest-cluster-precision": sum(max(len(c & k) / len(c | k) for c in C.values()) for k in K.values())
        / len(K),
    }
    return Truth("truth in tests/oracle.py", values)
