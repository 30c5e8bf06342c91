"""What each guard of assisted estimates earns: every guard on, and each one off, on the same samples.

    python benchmarks/guards.py OUTPUT [--confirm] [--samples N]

Populations, metrics, score and rule were written down before any result was seen; no guard was chosen on
these populations or on their seeds. OUTPUT keeps the cells of each population as a file of its own, so that a
stopped study goes on. A guard is turned off by a patch of the package. `--confirm` runs the package as it is
on populations that have no part in the choice.

A cell is a population, a design, a number of draws and a metric. Cells in which fewer than 5 % of the samples
have help are left out: there both estimates are the default. For each guard

- coverage is that of 95 % intervals, counted up to .95 in each cell, since more is no merit;
- the score is the mean 95 % interval score over that of the default estimate on the same samples.

Rule. A guard goes if without it neither mean coverage is .01 lower nor the mean score .05 higher, over all
cells and over those of each kind of second clustering: good, poor, with giants joined or split, and with rare
errors. A kind counts on its own because a guard is made for one fault, which a mean over all hides.
"""

import argparse
import pickle
import sys
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import populations as sim
from assisted import Case, joined, looser, paired, releases, shuffled, simulated, split
from common import PLANS, as_markdown
from figures import stamp

import erbayes as eb
from erbayes import metrics as m
from erbayes.auxiliary.assistance import AssistedEstimates
from erbayes.auxiliary.second import find_reached
from erbayes.engine import control_variate
from erbayes.study import draw_samples

METRICS = (m.pairwise_precision, m.pairwise_recall, m.b3_precision, m.b3_recall, m.cluster_recall)
SIZES = (100, 400)
SAMPLES = 80
LEVEL = 0.95
HELPED = 0.05
"""Share of samples with help, below which a cell says nothing of guards."""
COVERAGE, SCORE = 0.01, 0.05


def find_larger(second: eb.auxiliary.Second, position: np.ndarray) -> np.ndarray:
    """Return unreached clusters larger than all reached ones, and no parts of predicted giants."""
    units, size = second.units, second.whole.size
    mine, reached = np.isin(units.unit, position), np.zeros(len(size), dtype=bool)
    reached[find_reached(units, mine, units.group, units.N)] = True
    seen = mine & np.isin(units.cluster, find_reached(units, mine, units.cluster, units.m))
    return (size > max(size[reached].max(initial=0), units.m[seen].max(initial=0))) & ~reached


GUARDS: dict[str, list[tuple[Any, str, Callable[..., Any]]]] = {
    "pseudo-draws move no further than a draw without help": [
        (control_variate, "_limit_pseudo_draws", lambda moves, d, n: moves)
    ],
    "an end further away, by third moments": [
        (control_variate, "_compute_skew", lambda left, pseudo: np.zeros_like(pseudo))
    ],
    "parts of a predicted giant are out of reach": [(eb.auxiliary.Second, "_find_unreached", find_larger)],
}
"""What each guard is replaced by."""
VARIANTS = {"none": list[str](), **{name: [name] for name in GUARDS}, "all": list(GUARDS)}


def without_large(case: Case, above: int) -> Case:
    """Leave large entities as the prediction has them: the second clustering mends small ones alone."""
    _, truth, prediction, second = case
    large = np.bincount(truth)[truth] > above
    return "rare errors", truth, prediction, np.where(large, second.max() + 1 + prediction, second)


def chosen_on() -> dict[str, Case]:
    ewens = simulated("good", sim.PitmanYor(2500.0), sim.Misattribution(0.06), sim.Misattribution(0.01), 1101)
    zeta = simulated("good", sim.Zeta(2.3, 500), sim.Merges(0.12), sim.Splits(0.02), 1102)
    crowd = simulated("good", sim.LogNormal(0.5, 1.2), sim.Splits(0.15), sim.Misattribution(0.02), 1103)
    late = releases("good", "20191008", "20211230")
    rare = sim.Chain((sim.RareErrors(50), sim.Splits(0.01)))
    return {
        "Ewens, .06 noise by .01 noise": ewens,
        "log-normal, splits .15 by .02 noise": crowd,
        "2019-10-08 by 2021-12-30": late,
        "negative binomial, .1 noise by .1 noise": simulated(
            "poor", sim.NegativeBinomial(3, 1), sim.Misattribution(0.1), sim.Misattribution(0.1), 1104
        ),
        "Pitman-Yor, .05 noise by looser": looser(
            "poor", sim.PitmanYor(700.0, 0.4), sim.Misattribution(0.05), sim.Merges(0.1), 1105
        ),
        "2020-03-31 by 2018-11-27": releases("poor", "20200331", "20181127"),
        "log-normal by random clusters": ("poor", *shuffled(crowd)[1:]),
        "Zeta, second and fourth giants joined": ("giants", *joined(zeta, (1, 3))[1:]),
        "Ewens, over 60 records split": ("giants", *split(ewens, 60)[1:]),
        "Zeta, ranks 9 to 40 joined in pairs": ("giants", *paired(zeta, 8, 40)[1:]),
        "2019-10-08 by 2021-12-30, over 120 records split in three": ("giants", *split(late, 120, 3)[1:]),
        "log-normal, .2 noise by rare errors": simulated(
            "rare errors", sim.LogNormal(0.4, 1.0), sim.Misattribution(0.2), rare, 1106
        ),
        "Zeta, splits .25 by rare errors": simulated(
            "rare errors", sim.Zeta(2.6, 200), sim.Splits(0.25), rare, 1107
        ),
        "log-normal, splits .15 by mended small entities": without_large(crowd, 20),
    }


def set_aside() -> dict[str, Case]:
    """Populations on which the guards that stay are judged once."""
    ewens = simulated("good", sim.PitmanYor(1500.0), sim.Misattribution(0.12), sim.Misattribution(0.02), 951)
    zeta = simulated("good", sim.Zeta(2.4, 500), sim.Splits(0.2), sim.Splits(0.02), 952)
    return {
        "Ewens, .12 noise by .02 noise": ewens,
        "Ewens, .12 noise by mended small entities": without_large(ewens, 25),
        "Zeta, splits .2, first two giants joined": joined(zeta),
        "Zeta, splits .2, over 60 records split in three": split(zeta, 60, 3),
        "negative binomial, merges .1 by rare errors": simulated(
            "rare errors", sim.NegativeBinomial(3, 1.2), sim.Merges(0.1), sim.RareErrors(80), 953
        ),
        "log-normal, merges .05 by looser": looser(
            "poor", sim.LogNormal(0.7, 1.0), sim.Merges(0.05), sim.Misattribution(0.2), 954
        ),
        "Pitman-Yor, .1 noise by .3 noise": simulated(
            "poor", sim.PitmanYor(900.0, 0.3), sim.Misattribution(0.1), sim.Misattribution(0.3), 955
        ),
        "2018-05-28 by 2020-03-31 of 2020-12-29": releases("good", "20180528", "20200331", "20201229"),
    }


def run(case: Case, variants: dict[str, list[str]], samples: int, seed: int) -> pd.DataFrame:
    """Return coverage, score and help of each metric, one row per design, n, variant and metric."""
    truth, prediction, second = (pd.Series(codes) for codes in case[1:])
    units = eb.measure(prediction, truth)
    counted = eb.auxiliary.Second.of(prediction, truth, second)
    people = sim.Population(prediction, truth)
    true = np.array([people.value(metric) for metric in METRICS])
    rows = []
    for (plan_name, plan), n in ((p, n) for p in PLANS.items() for n in SIZES):
        drawn = draw_samples(plan, units, n, samples, np.random.default_rng([seed, n])).separate
        default = [eb.engine.taylor(sample, METRICS).apply(METRICS).interval(LEVEL) for sample in drawn]
        held, base = judge(np.array(default), true)
        cell = {"plan": plan_name, "n": n, "metric": [metric.name for metric in METRICS]}
        rows.append(pd.DataFrame({**cell, "off": "default", "held": held, "score": 1.0, "helped": 1.0}))
        for name, off in variants.items():
            found = estimate_without(off, counted, drawn)
            ends = np.array([estimates.interval(LEVEL) for estimates in found])
            held, score = judge(ends, true)
            helped = np.mean([estimates.weights > 0 for estimates in found], axis=0)
            figures = {"held": held, "score": score / base, "helped": helped}
            rows.append(pd.DataFrame({**cell, "off": name, **figures}))
    return pd.concat(rows, ignore_index=True)


def estimate_without(
    off: list[str], counted: eb.auxiliary.Second, samples: list[eb.Sample]
) -> list[AssistedEstimates]:
    """Return assisted estimates of samples without some guards."""
    engine = eb.auxiliary.Assisted(counted)
    with ExitStack() as stack:
        for guard in off:
            for place, name, other in GUARDS[guard]:
                stack.enter_context(patch.object(place, name, other))
        return [engine(sample, METRICS) for sample in samples]


def judge(ends: np.ndarray, true: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return coverage and mean interval score of metrics, (k,) each, of their intervals, (samples, k, 2)."""
    below, above = np.maximum(ends[..., 0] - true, 0), np.maximum(true - ends[..., 1], 0)
    held = (below <= 1e-12) & (above <= 1e-12)
    score = np.ptp(ends, axis=-1) + 2 / (1 - LEVEL) * (below + above)
    return held.mean(axis=0), score.mean(axis=0)


def summarise(cells: pd.DataFrame) -> pd.DataFrame:
    """Return a row per guard and kind: what turning it off changes, and whether it earns its place there."""
    cells = cells[np.isfinite(cells.score)].assign(counted=np.minimum(cells.held, LEVEL))
    place = ["population", "plan", "n", "metric"]
    on = cells[cells.off == "none"].set_index(place)
    on = on[on.helped >= HELPED]
    rows = []
    for name in VARIANTS:
        off = cells[cells.off == name].set_index(place).loc[on.index]
        for kind in ["all", *dict.fromkeys(on.kind)]:
            at = (on.kind == kind) | (kind == "all")
            change = (off.counted - on.counted)[at]
            where = change.idxmin()
            row = {"off": name, "kind": kind, "cells": str(at.sum()), "coverage": off.counted[at].mean()}
            row |= {"lost": -change.mean(), "score": off.score[at].mean()}
            row["worse"] = row["score"] - on.score[at].mean()
            row["worst cell"] = f"{on.held[where]:.2f} to {off.held[where]:.2f}: {', '.join(map(str, where))}"
            rows.append(row)
    table = pd.DataFrame(rows)
    earns = (table.lost >= COVERAGE) | (table.worse >= SCORE)
    return table.assign(earns=np.where(table.off == "none", "", np.where(earns, "yes", "no")))


def load(output: Path, cases: dict[str, Case], variants: dict[str, list[str]], samples: int) -> pd.DataFrame:
    """Run what OUTPUT has not, and return all cells."""
    parts = []
    for seed, (name, case) in enumerate(cases.items(), 3000):
        file = output / f"{name}.pickle"
        if not file.exists():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", eb.Alarm)
                found = run(case, variants, samples, seed)
            file.write_bytes(pickle.dumps(found.assign(population=name, kind=case[0])))
            print(name, file=sys.stderr, flush=True)
        parts.append(pd.read_pickle(file))
    return pd.concat(parts, ignore_index=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("output", type=Path)
    parser.add_argument("--confirm", action="store_true")
    parser.add_argument("--samples", type=int, default=SAMPLES)
    asked = parser.parse_args()
    asked.output.mkdir(exist_ok=True)
    if asked.confirm:
        cells = load(asked.output, set_aside(), {"none": []}, asked.samples)
        wide = cells.groupby(["population", "plan", "off"])[["held", "score"]].mean().unstack("off")
        wide.columns = [f"{of}, {name}" for of, name in wide.columns]
        print(as_markdown(wide.reset_index()))
    else:
        print(as_markdown(summarise(load(asked.output, chosen_on(), VARIANTS, asked.samples))))
    stamp("assisted", "seed 3000")


if __name__ == "__main__":
    main()
