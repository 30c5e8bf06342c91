"""Metrics by brute force over pairs of records and set operations; imports nothing of erbayes."""

from collections.abc import Iterable, Sequence
from itertools import combinations
from math import log

import numpy as np


class Truth(dict[str, float]):
    def __missing__(self, name: str) -> float:
        raise LookupError(f"{name} has no value by brute force: add it to truth in tests/oracle.py")


def partitions(n: int) -> list[tuple[int, ...]]:
    """All ways to divide n records into entities, as codes in order of first appearance."""
    found: list[tuple[int, ...]] = [()]
    for _ in range(n):
        found = [(*p, code) for p in found for code in range(len(set(p)) + 1)]
    return found


def truth(true: Sequence[int], pred: Sequence[int], domain: Iterable[int] | None = None) -> dict[str, float]:
    """Metrics by name of the records at the positions `domain`, or of all; NaN for 0/0.

    A domain has of every quantity the shares of its records: half a link, 1/n of an entity of n records.
    """
    members, N = range(len(true)), len(true)
    G = [*members] if domain is None else [*domain]
    entities = {c: {i for i in members if true[i] == c} for c in {*true}}
    clusters = {k: {i for i in members if pred[i] == k} for k in {*pred}}
    C, K = [entities[c] for c in true], [clusters[k] for k in pred]
    both = t_links = p_links = np.float64(0)
    half = np.isin(members, G) / 2
    for i, j in combinations(members, 2):
        share, same_t, same_p = half[i] + half[j], true[i] == true[j], pred[i] == pred[j]
        both += share * (same_t and same_p)
        t_links += share * same_t
        p_links += share * same_p

    def total(value) -> np.float64:
        """Sum a value of each record of the domain."""
        return np.float64(sum(value(i) for i in G))

    def jaccard(one, other):
        return len(one & other) / len(one | other)

    n = [len(c & k) for c, k in zip(C, K, strict=True)]
    r, all_pairs = np.float64(len(G)), len(G) * (N - 1) / 2
    of_entities, of_clusters = total(lambda i: 1 / len(C[i])), total(lambda i: 1 / len(K[i]))
    pieces, exact = total(lambda i: 1 / n[i]), total(lambda i: (C[i] == K[i]) / len(C[i]))
    ones = total(lambda i: len(C[i]) == 1)
    hc, hk = total(lambda i: log(N / len(C[i]))) / r, total(lambda i: log(N / len(K[i]))) / r
    joint = total(lambda i: log(N / n[i])) / r
    largest = total(lambda i: max(len(C[i] & k) for k in clusters.values()) / len(C[i]))
    commonest = total(lambda i: max(len(K[i] & c) for c in entities.values()) / len(K[i]))
    with np.errstate(invalid="ignore", divide="ignore"):
        chance = t_links * p_links / all_pairs
        h, c = 1 - (joint - hk) / hc, 1 - (joint - hc) / hk
        values = {
            "pairwise-precision": both / p_links,
            "pairwise-recall": both / t_links,
            "pairwise-f1": 2 * both / (t_links + p_links),
            "pairwise-f2": 5 * both / (4 * t_links + p_links),
            "fowlkes-mallows": both / np.sqrt(t_links * p_links),
            "jaccard": both / (t_links + p_links - both),
            "rand": 1 - (t_links + p_links - 2 * both) / all_pairs,
            "adjusted-rand": (both - chance) / ((t_links + p_links) / 2 - chance),
            "link-ratio": p_links / t_links,
            "cluster-precision": exact / of_clusters,
            "cluster-recall": exact / of_entities,
            "cluster-f1": 2 * exact / (of_entities + of_clusters),
            "closest-cluster-recall": total(
                lambda i: max(jaccard(C[i], k) for k in clusters.values()) / len(C[i])
            )
            / of_entities,
            "closest-cluster-precision": total(
                lambda i: max(jaccard(c, K[i]) for c in entities.values()) / len(K[i])
            )
            / of_clusters,
            "b3-precision": total(lambda i: n[i] / len(K[i])) / r,
            "b3-recall": total(lambda i: n[i] / len(C[i])) / r,
            "b3-precision-entities": total(lambda i: n[i] / len(K[i]) / len(C[i])) / of_entities,
            "b3-recall-entities": total(lambda i: n[i] / len(C[i]) ** 2) / of_entities,
            "inverse-purity": largest / r,
            "purity": commonest / r,
            "split-rate": 1 - largest / r,
            "homogeneity": h,
            "completeness": c,
            "v-measure1": 2 * h * c / (h + c),
            "mutual-information": hc + hk - joint,
            "variation-of-information": 2 * joint - hc - hk,
            "splits": pieces - of_clusters,
            "merges": pieces - of_entities,
            "basic-merge-distance": 2 * pieces - of_clusters - of_entities,
            "muc-precision": (r - pieces) / (r - of_clusters),
            "muc-recall": (r - pieces) / (r - of_entities),
            "talburt-wang": np.sqrt(of_entities * of_clusters) / pieces,
            "entities": of_entities,
            "mean-cluster-size": r / of_entities,
            "singleton-share": ones / of_entities,
            "matching-rate": 1 - ones / r,
            "hill1": r * np.exp(-total(lambda i: log(len(C[i]))) / r),
            "hill2": r * r / total(lambda i: len(C[i])),
            "P_clust": both / p_links,
            "P_rec": both / p_links,
        }
    return Truth(values)
