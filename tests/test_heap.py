"""A heap in the predicted sizes: found by plain loops too, not where there is none, and told before any label."""

import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from checks import raises
from repeats import each_draw
from shell import done, refused, run
from test_report import undrawn  # noqa: F401

import erbayes as eb
from erbayes import metrics as m
from erbayes._internal import remedies
from erbayes._internal.errors import Grade
from erbayes.design.records import draws_records
from erbayes.engine.diagnostics import MIXED
from erbayes.engine.fitted import fit_sample
from erbayes.study import populations as sim
from erbayes.units.settled import Looks, chance_capped, find_heap
from erbayes.units.units import KnownTotals

R, P = m.pairwise_recall, m.pairwise_precision


def known(sizes):
    size, count = np.unique(np.asarray(sizes), return_counts=True)
    return KnownTotals(size.astype(float), count.astype(float))


def by_loops(known):
    """The rule as it is written, size by size."""
    clusters = {int(s): k for s, k in zip(known.size, known.count, strict=True)}
    best = None
    for c, k in clusters.items():
        if c < 8 or k < 5:
            continue
        b, w, a = [], [], []
        for s in range(1, 2 * c):
            n = clusters.get(s, 0)
            if 6 * c <= 10 * s < 9 * c:
                b.append(n)
            if 9 * c <= 10 * s <= 11 * c:
                w.append((s > c, n))
            if 11 * c < 10 * s <= 15 * c:
                a.append(n)
        shown = sum(n for s, n in clusters.items() if c / 4 <= s < 0.9 * c)
        per, over = sum(b) / len(b), sum(a) / len(a)
        errors = (k - per) / (per + 1) ** 0.5
        heap = k > 2 * per and over < per / 4 + 0.02 and errors > 5 and shown >= 20
        if heap and (best is None or errors > best[0]):
            around = (sum(b) + sum(a)) / (len(b) + len(a))
            best = (errors, c, k, around, sum(n - (over if larger else per) for larger, n in w))
    return best and best[1:]


def pieces(sizes, most):
    """Sizes cut at `most`."""
    full, rest = np.divmod(sizes, most)
    return np.concatenate([np.full(int(full.sum()), most), rest[rest > 0]])


def test_heaps_are_those_of_plain_loops():
    found = 0
    for seed in range(60):
        g = np.random.default_rng(seed)
        sizes = np.floor(g.pareto(g.choice([1.2, 1.5, 2.0]), 3000) + 1).astype(int)
        one = known(pieces(sizes, g.choice([8, 10, 12, 20, 30, 50, 77, 100])) if seed % 4 else sizes)
        heap, looped = find_heap(one), by_loops(one)
        assert (heap is None) == (looped is None), seed
        if heap is not None:
            assert (heap.size, heap.clusters, heap.around, heap.excess) == pytest.approx(looped, abs=0.06)
            found += 1
    assert 20 < found < 50 and find_heap(KnownTotals(one.size[::-1], one.count[::-1])) == find_heap(one)


def of(clusters):
    """A prediction by its number of clusters of each size."""
    size = sorted(clusters)
    return KnownTotals(np.array(size, dtype=float), np.array([clusters[s] for s in size], dtype=float))


EVEN = dict.fromkeys(range(1, 56), 4) | {50: 120}
"""A heap of 120 clusters of 50 records, between four of each other size up to 55."""


def test_a_heap_has_its_size_and_its_excess():
    heap = find_heap(of(EVEN))
    # ten sizes around 50 have four clusters each. Six from 45 to 50 were to be expected so, and none above
    assert (heap.size, heap.clusters, heap.excess) == (50, 120, 120 + 10 * 4 - 6 * 4)
    said = "120 of the predicted clusters have 50 records, and each size around that has about 2: either entities"
    assert str(heap).startswith(said)
    # of two, the one that is clearer and not the one of more clusters
    two = dict.fromkeys(range(1, 20), 100) | {20: 300} | dict.fromkeys(range(21, 60), 4) | {60: 120}
    assert (find_heap(of(two)).size, find_heap(of({s: n for s, n in two.items() if s < 60})).size) == (60, 20)


DENSE, LOW = dict.fromkeys(range(1, 56), 40), {15: 20}
BARS = {
    "twice those to be expected": (DENSE | {50: 81}, DENSE | {50: 80}),
    "few above": (EVEN | dict.fromkeys(range(56, 76), 1), EVEN | dict.fromkeys(range(56, 76), 1.1)),
    "twenty clusters below": (LOW | {50: 120}, {15: 19, 50: 120}),
    "five standard errors": (LOW | {50: 6}, LOW | {50: 5}),
    "eight records": ({2: 20, 3: 20, 8: 60}, {2: 20, 3: 20, 7: 60}),
}
"""A heap, and what is none, on both sides of each bar."""


@pytest.mark.parametrize("bar", BARS)
def test_the_bars_of_a_heap(bar):
    heap, none = BARS[bar]
    assert find_heap(of(heap)) is not None and find_heap(of(none)) is None
    assert by_loops(of(heap)) is not None and by_loops(of(none)) is None


def made_without_a_cap():
    sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
    import populations as more

    return (
        (more.Zeta(2.3, 3000), [more.Splits(0.1), more.Merges(0.03)]),
        (more.LogNormal(0.7, 1.3), [more.Splits(0.1)]),
        (more.NegativeBinomial(7.0, 0.7), [more.Splits(0.04)]),
        (more.NegativeBinomial(20.0, 5.0), [more.Splits(0.04)]),
        (more.LogNormal(2.5, 0.4), [more.Merges(0.03)]),
        (more.LogNormal(3, 0.15), [more.Merges(0.03)]),
        (more.PitmanYor(600.0, 0.45), [more.Misattribution(0.03)]),
        (more.LogNormal(0.7, 1.4), [more.Even(2, 80)]),
        (more.PitmanYor(600.0, 0.45), [more.Homonyms(10, 50, 0.7)]),
    )


@pytest.mark.slow
@pytest.mark.parametrize("law", range(9))
def test_no_population_without_a_cap_has_a_heap(law):
    sizes, errors = made_without_a_cap()[law]
    for seed in range(700, 708):
        people = sim.simulate(sizes, sim.Chain(errors), 20_000, seed)
        assert find_heap(people.units.known) is None, seed


def test_equal_sizes_few_clusters_and_a_narrow_hump_are_no_heap():
    assert find_heap(of({10: 1000})) is None and find_heap(of({1: 300, 2: 90, 12: 4})) is None
    narrow = np.round(np.exp(np.random.default_rng(1).normal(np.log(20), 0.15, 2000)))
    assert find_heap(known(narrow)) is None


@pytest.mark.parametrize("cap", [20, 50, 100])
@pytest.mark.parametrize("seed", [500, 501])
def test_caps_are_found_where_the_tail_is_heavy(cap, seed):
    true = sim.Zeta(2.25, 5000).draw(20_000, np.random.default_rng(seed))
    noise = sim.Misattribution(0.02)  # by .03 a heap of eight clusters of 100 records may be lost
    people = np.repeat(np.arange(len(true)), true)
    rank = np.concatenate([np.arange(s) for s in true])
    cut = pd.factorize(people * 10_000 + rank // cap)[0]
    for codes in (cut, noise.apply(cut, np.random.default_rng(seed))):
        heap = find_heap(known(np.bincount(codes)[np.bincount(codes) > 0]))
        assert abs(heap.size - cap) <= 0.11 * cap


@pytest.mark.parametrize(("cap", "populations"), [(10, 18), (15, 18), (25, 12)])
def test_caps_are_found_where_many_clusters_are_about_as_large(cap, populations):
    """In a dense tail a heap at one size drowns among its neighbours, if these are counted with it."""
    cut, found = 0, 0
    for law in (sim.Zeta(2.1, 2000), sim.LogNormal(1.5, 1.0), sim.LogNormal(2.5, 0.4)):
        for seed in range(6):
            true = law.draw(8000, np.random.default_rng(seed))
            if (true > 1.2 * cap).sum() < 10:
                continue
            cut += 1
            found += (heap := find_heap(known(pieces(true, cap)))) is not None and heap.size == cap
    assert cut == found == populations


@pytest.mark.parametrize(("looks", "chance"), [
    (None, 0.75),
    (Looks(1, 1), 0.75 * 0.8 / (0.75 * 0.8 + 0.25 * 0.05)),
    (Looks(0, 1), 0.75 * 0.2 / (0.75 * 0.2 + 0.25 * 0.95)),
    (Looks(500, 1000), 1.0),  # 16^500 outweighs (.2/.95)^500
    (Looks(100, 1000), 0.0),
    (Looks(5000, 5000), 1.0),
    (Looks(2, 5), 0.75 * 0.8**2 * 0.2**3 / (0.75 * 0.8**2 * 0.2**3 + 0.25 * 0.05**2 * 0.95**3)),
])  # fmt: skip
def test_looks_weigh_a_cap(looks, chance):
    assert chance_capped(looks) == pytest.approx(chance, rel=1e-12)


CLUSTERS = pd.Series(np.repeat(np.arange(sum(EVEN.values())), np.repeat(list(EVEN), list(EVEN.values()))))
"""The prediction with a heap, whose clusters are entities of their own here."""


def sample(design=None, looks=None, sampled=range(0, 220, 4)):
    design = eb.UniformClusters() if design is None else design
    return eb.Sample(eb.measure(CLUSTERS, CLUSTERS[CLUSTERS.isin(list(sampled))]), design, looks=looks)


def raised(one, metrics=(P, R), printed=None):
    return [a for a in eb.alarms(one, metrics, printed) if "either entities end there" in a]


def test_a_heap_is_a_fault_of_recall_where_entities_were_drawn():
    (alarm,) = raised(sample())
    assert alarm.grade is Grade.FAULT and alarm.remedies == (remedies.LOOK, remedies.RECORDS)
    assert "intervals of pairwise-recall do" in alarm and not raised(sample(), [P, m.b3_precision])
    (alarm,) = raised(sample(), [P, m.b3_recall, m.cluster_recall])
    assert "intervals of b3-recall, cluster-recall do not" in alarm
    assert "pairwise-f1" in raised(sample(), [m.pairwise_f1])[0]
    table = fit_sample(sample(), [P, R]).estimates.table()
    mixed = table.assign(kind=f"{MIXED} equal-tailed")
    assert raised(sample(), printed=table) and not raised(sample(), printed=mixed)


def test_draws_of_records_show_what_a_heap_is_if_they_meet_a_larger_entity():
    larger = range(sum(EVEN.values()) - 3, sum(EVEN.values()))  # entities of 55 records
    assert raised(sample(eb.UniformRecords()))
    assert not raised(sample(eb.UniformRecords(), sampled=[*range(0, 220, 4), *larger]))
    assert raised(sample(sampled=[*range(0, 220, 4), *larger]))
    # ends of links never draw single records
    by_links = eb.design.ByPredictedSize(eb.columns.PREDICTED_LINKS)
    assert not draws_records(by_links, sample().units) and draws_records(eb.UniformRecords(), sample().units)


def test_looks_silence_the_alarm_or_name_what_allows_for_a_cap():
    assert not raised(sample(looks=Looks(0, of=5))) and not raised(sample(looks=Looks(0, of=4)))
    (alarm,) = raised(sample(looks=Looks(0, of=3)))
    assert "Entities of 0 of the 3 that were looked at go on" in alarm
    (alarm,) = raised(sample(looks=Looks(5, of=5)))
    assert alarm.grade is Grade.FAULT and alarm.remedies[0].option == "--engine size-model"
    one = sample(looks=Looks(5, of=5))
    assert one.with_units(one.units).looks == each_draw(one).looks == Looks(5, of=5)


def test_bad_looks_are_refused():
    raises(eb.DataError, "6 of 5 looks found more", Looks, 6, of=5)
    wrong = (1.5, 5, "looks that found more"), (0, 0, "that were looked at"), (-1, 2, "looks")
    for found, number, said in wrong:
        raises(eb.DataError, f"{said}.*must be a whole number", Looks, found, number)
    with pytest.raises(eb.DataError, match="these have none"):
        eb.Sample(eb.measure({1: "a", 2: "a"}, {1: "x", 2: "x"}), eb.UniformClusters(), looks=Looks(0, of=5))
    raises(eb.DataError, r"looks are Looks\(found, of=number\)", sample, looks=(0, 5))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The prediction with a heap as a file, with labels of entities and of records."""
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"record": CLUSTERS.index, "cluster": CLUSTERS}).to_csv("p.csv", index=False)
    labels = CLUSTERS[CLUSTERS.isin(list(range(0, 220, 4)))]
    pd.DataFrame({"record": labels.index, "entity": labels}).to_csv("l.csv", index=False)


def test_draw_and_plan_tell_it_before_any_label(folder):
    shown = done("draw", "p.csv", "-d", "uniform-records", "-n", 5, "--seed", 1, "-o", "out")
    assert "note: 120 of the predicted clusters have 50 records" in shown.stderr and "--looks" in shown.stderr
    (names,) = [line for line in shown.stderr.splitlines() if "drawn at random" in line]
    named = [int(x) for x in re.findall(r"\d+", names)]
    assert len(set(named)) == 5 and all((CLUSTERS == one).sum() == 50 for one in named)
    with pytest.warns(eb.Alarm, match="120 of the predicted clusters"):
        eb.labels.draw(CLUSTERS, eb.labels.Records(), n=5, seed=1)
    plan = "plan", "p.csv", "l.csv", "-d", "uniform-records", "-m", "recall", "--half-width", 0.1
    shown = run(*plan)
    assert "caution: uniform-clusters: 120 of the predicted" in shown.stderr, shown.output
    assert "uniform-records: 120" not in shown.stderr
    assert "120 of the predicted" not in done(*plan, "--looks", "0/5").stderr


def test_the_shell_takes_looks(folder, tmp_path):
    args = ("p.csv", "l.csv", "-d", "uniform-clusters", "-m", "recall")
    shown = run("estimate", *args)
    assert "fault: 120 of the predicted clusters" in shown.stderr
    assert "(--looks FOUND/5); or draw" in shown.stderr
    shown = run("estimate", *args, "--looks", "5/5")
    assert "fault: 120 of the predicted clusters" in shown.stderr and "(--engine size-model)" in shown.stderr
    assert "120 of the predicted clusters" not in run("estimate", *args, "--looks", "0/5").stderr
    words = "--looks 5: write two whole numbers, such as 3/5"
    for looks, said in (("5", words), ("6/5", "6 of 5 looks found more")):
        assert said in refused("estimate", *args, "--looks", looks)
    pd.DataFrame({"record": range(84), "cluster": np.arange(84) // 2}).to_csv("q.csv", index=False)
    pd.DataFrame({"record": range(20), "entity": np.arange(20) // 2}).to_csv("k.csv", index=False)
    said = refused("estimate", "q.csv", "k.csv", "-d", "uniform-clusters", "--looks", "0/5")
    assert "these have none (--looks)" in said
    done("report", *args, "-o", "report.html")
    assert "120 of the predicted clusters" in Path("report.html").read_text(encoding="utf-8")
    done("report", *args, "--looks", "0/5", "-o", "report.html", "--replace")
    assert "120 of the predicted clusters" not in Path("report.html").read_text(encoding="utf-8")


def test_metrics_depend_on_true_size_where_the_same_pieces_make_other_entities():
    """A census of two truths: each piece is an entity, or two or three pieces of different clusters are one."""
    rng = np.random.default_rng(4)
    sizes = rng.integers(2, 8, 60)
    record_cluster = np.repeat(np.arange(60), sizes)
    part = np.concatenate([np.arange(s) < rng.integers(1, s + 1) for s in sizes])
    alone = pd.Series(record_cluster * 2 + part)
    joined = rng.integers(25, size=60)[record_cluster] * 2 + part  # at most one piece of a cluster and part
    values = []
    for truth in (alone, pd.Series(joined)):
        units = eb.measure(pd.Series(record_cluster), truth)
        everybody = eb.Sample(units, eb.UniformClusters(population=truth.nunique()))
        values.append(eb.estimate(everybody, metrics=m.ALL).estimate)
    differ = ~np.isclose(*values, rtol=1e-9)
    assert [metric.depends_on_true_size for metric in m.ALL] == differ.tolist()
    alike = {metric for metric, other in zip(m.ALL, differ, strict=True) if not other}
    assert alike >= {m.pairwise_precision, m.b3_precision, m.splits, m.muc_precision}
