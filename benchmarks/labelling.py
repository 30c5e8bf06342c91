"""Intervals where annotators err at four rates, which are undone by right, vague and too low priors.

    python benchmarks/labelling.py [removed|all|moved|two|compare|ends|order] ...

The tables of benchmarks/labelling-error.md; 15 minutes on one core for all. Errors are put in by `erring.py`,
whose loops share nothing with what undoes them. Nothing was chosen on these populations.
"""

import sys
import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
import populations as sim
from erring import err
from figures import stamp

import erbayes as eb
from erbayes.analysis.sensitivity import tipping
from erbayes.labels import Annotator, AnnotatorPair, Beta, Gamma, answers

METRICS = ["pairwise-precision", "pairwise-recall", "b3-recall", "cluster-recall"]
SHORT = ["P", "R", "B3R", "cR"]
POPULATIONS = {
    "log-normal 1.1, splits .2, merges .07": (
        sim.LogNormal(1.1, 0.9),
        (sim.Splits(0.2), sim.Merges(0.07)),
        91,
    ),
    "zeta 2.4, splits .15, merges .1": (sim.Zeta(2.4, 80), (sim.Splits(0.15), sim.Merges(0.1)), 92),
}
MOVED = "log-normal 0.7, splits .2, moved .04"
OTHERS = {MOVED: (sim.LogNormal(0.7, 0.6), (sim.Splits(0.2), sim.Misattribution(0.04)), 93)}
ALL = {"removed": 0.05, "missed": 0.2, "kept": 0.1, "added": 0.02}
VAGUE = Annotator(Beta(1, 9), Beta(1.5, 3.5), Beta(1, 4), Gamma(1, 20))
RECORDS, DRAWS, SAMPLES = 12_000, 200, 24


def make(name: str) -> sim.Population:
    sizes, errors, seed = (POPULATIONS | OTHERS)[name]
    return sim.simulate(sizes, sim.Chain(errors), RECORDS, seed)


def right(rates: dict[str, float]) -> Annotator:
    """Sharp priors, which weigh as much as 60 cases, with these means."""
    shares = {k: Beta(60 * x, 60 * (1 - x)) for k, x in rates.items() if k != "added"}
    return Annotator(**shares, **({"added": Gamma(20, 20 / rates["added"])} if "added" in rates else {}))


def draw(people: sim.Population, by_records: bool, rng: np.random.Generator):
    """True labels of drawn entities, the record from which each is labelled, and the design."""
    if by_records:
        drawn = rng.choice(people.true.index, DRAWS)
        entities = people.true[drawn].to_numpy()
        start = pd.Series(drawn, entities)
        design = eb.UniformRecords(entities)
    else:
        labelled = people.true[people.true.isin(rng.permutation(people.true.unique())[:DRAWS])]
        mixed = labelled.iloc[rng.permutation(len(labelled))]
        start, design = pd.Series(mixed.index, mixed.to_numpy()), eb.UniformClusters()
    start = start[~start.index.duplicated()]
    return people.true[people.true.isin(start.index)], start, design


def mistake(true: pd.Series, people: sim.Population, start: pd.Series, rng, **rates) -> pd.Series:
    return pd.Series(err(true.to_dict(), people.pred.to_dict(), start.to_dict(), rng, **rates))


def measure(name: str, way: str, fit: eb.Estimates, truth: np.ndarray, plain: eb.Estimates) -> list[tuple]:
    ends, width = fit.interval(), np.ptp(plain.interval(), axis=1)
    own = np.ptp(ends, axis=1)
    columns = (
        SHORT,
        fit.estimate - truth,
        (ends[:, 0] <= truth) & (truth <= ends[:, 1]),
        own,
        own < width - 0.01,
    )
    return [(name, way, *row) for row in zip(*columns, strict=False)]


def show(rows: list[tuple]) -> None:
    table = pd.DataFrame(rows, columns=["case", "way", "metric", "off", "covers", "width", "shorter"])
    table["metric"] = pd.Categorical(table["metric"], SHORT)
    means = table.groupby(["case", "way", "metric"], sort=False, observed=True).mean(numeric_only=False)
    wide = means.unstack("metric")
    for (case, way), row in wide.iterrows():
        told = [
            " ".join(f"{x:{form}}" for x in row[column].dropna())
            for column, form in (("covers", ".2f"), ("off", "+.3f"), ("width", ".2f"))
        ]
        print(f"| {case} | {way} | {' | '.join(told)} |")
    cover = means["covers"].astype(float).groupby("way", sort=False).agg(["mean", "min"]).round(3)
    print(
        cover.to_string(),
        "\nshorter:",
        means["shorter"].astype(float).groupby("way").mean().round(4).to_dict(),
        flush=True,
    )


def cover(case: str, rates: dict[str, float], names: tuple[str, ...]) -> None:
    """Coverage with errors of these rates ignored, and undone by several priors."""
    rows = []
    for name in names:
        people = make(name)
        truth = np.array([people.value(metric) for metric in METRICS])
        answer = partial(eb.estimate, eb.Clustering.of(people.pred), metrics=METRICS)
        half = right({k: x / 2 for k, x in rates.items()})
        ways = {"right": right(rates)} | ({"vague": VAGUE, "half": half} if len(rates) > 1 else {})
        for by_records in (True, False):
            for seed in range(SAMPLES):
                rng = np.random.default_rng([seed, 5])
                true, start, design = draw(people, by_records, rng)
                drawn = right(rates).draw(1, rng).iloc[0].drop("unsure").to_dict()
                seen = mistake(true, people, start, rng, **drawn)
                plain = answer(seen, design)
                cell = f"{name}, {'records' if by_records else 'entities'}"
                rows += measure(cell, "perfect", answer(true, design), truth, plain)
                rows += measure(cell, "ignored", plain, truth, plain)
                for way, annotator in ways.items():
                    found = eb.with_errors(
                        answer,
                        seen,
                        design,
                        people.pred,
                        annotator,
                        starts=start.to_numpy(),
                        imputations=20,
                        rng=seed,
                    )
                    rows += measure(cell, way, found.both, truth, plain)
    print(f"\n{case}\n| population | priors | covers P R B3R cR | off | width |", flush=True)
    show(rows)


def two() -> None:
    """Two annotators of all tasks, of which a quarter is settled; the rates go to the labels of the first."""
    rows = []
    for name in POPULATIONS:
        people = make(name)
        truth = np.array([people.value(metric) for metric in METRICS])
        answer = partial(eb.estimate, eb.Clustering.of(people.pred), metrics=METRICS)
        for seed in range(SAMPLES):
            rng = np.random.default_rng([seed, 6])
            true, start, design = draw(people, True, rng)
            one, other = (mistake(true, people, start, rng, **ALL) for _ in range(2))
            quarter = rng.permutation(start.index)[: len(start) // 4]
            settled = {}
            for task in quarter:
                own, theirs, right_ones = ({*x.index[x == task]} for x in (one, other, true))
                for record in (own & theirs) | ((own ^ theirs) & right_ones):
                    settled.setdefault(record, task)
            tasks = start[quarter].to_numpy()
            first, second, known = (answers(x, tasks) for x in (one, other, true))
            pair = AnnotatorPair.of(first, second, people.pred)
            plain = answer(one, design)
            found = eb.with_errors(
                answer,
                one,
                design,
                people.pred,
                pair.rates(settled),
                starts=start.to_numpy(),
                imputations=20,
                rng=seed,
            )
            judged = AnnotatorPair.of(first, known, people.pred)
            controls = judged.rates(true[true.isin(quarter)], of_first=True)
            by_controls = eb.with_errors(
                answer, one, design, people.pred, controls, starts=start.to_numpy(), imputations=20, rng=seed
            )
            for way, fit in (
                ("perfect", answer(true, design)),
                ("ignored", plain),
                ("a quarter settled", found.both),
                ("a quarter with known truth", by_controls.both),
            ):
                rows += measure(name, way, fit, truth, plain)
    print("\ntwo annotators\n| population | rates | covers P R B3R cR | off | width |")
    show(rows)


def compare() -> None:
    """A new release mends two thirds of the entities; annotators saw the old one, and erred."""
    metrics, rows = METRICS[:3], []
    annotator = Annotator(Beta(10, 190), Beta(30, 70), Beta(20, 80), Gamma(20, 400))
    for name in POPULATIONS:
        people = make(name)
        rng = np.random.default_rng(4)
        mended = pd.Series(rng.random(people.true.nunique()) < 0.66, people.true.unique())
        fixed = people.true.map(mended).to_numpy()
        new = people.pred.astype(str).where(~fixed, "t" + people.true.astype(str))
        both = {"old": people.pred, "new": new}

        def answer(labels, design, both=both):
            return eb.compare(both, labels, design, metrics=metrics).subtract("old", "new")

        values = [[sim.Population.of(p, people.true).value(m) for m in metrics] for p in both.values()]
        truth = np.array(values[1]) - np.array(values[0])
        truth *= np.sign(truth @ answer(people.true, eb.UniformClusters()).estimate)
        for by_records in (True, False):
            for seed in range(SAMPLES // 2):
                rng = np.random.default_rng([seed, 7])
                true, start, design = draw(people, by_records, rng)
                seen = mistake(
                    true, people, start, rng, **annotator.draw(1, rng).iloc[0].drop("unsure").to_dict()
                )
                plain = answer(seen, design)
                undo = partial(
                    eb.with_errors,
                    answer,
                    seen,
                    design,
                    annotator=annotator,
                    starts=start.to_numpy(),
                    imputations=20,
                    rng=seed,
                )
                cell = f"{name}, {'records' if by_records else 'entities'}"
                for way, fit in (
                    ("perfect", answer(true, design)),
                    ("ignored", plain),
                    ("by the old alone", undo(shown=people.pred).both),
                    ("by both", undo(shown=both).both),
                ):
                    rows += measure(cell, way, fit, truth, plain)
    print("\ndifference of two releases\n| population | undone | covers P R B3R | off | width |")
    show(rows)


def one_sample():
    people = make(next(iter(POPULATIONS)))
    rng = np.random.default_rng(3)
    true, start, design = draw(people, True, rng)
    seen = mistake(true, people, start, rng, **ALL)
    answer = partial(eb.estimate, eb.Clustering.of(people.pred), metrics=METRICS)
    wide = Annotator(Beta(2, 38), Beta(3, 17), Beta(2, 18), Gamma(2, 100))
    return people, start, seen, partial(eb.with_errors, answer, design=design, annotator=wide)


def ends() -> None:
    """Spread of ends over seeds, and tipping points of recall over four of them."""
    people, start, seen, ask = one_sample()
    found = [ask(seen, shown=people.pred, starts=start.to_numpy(), rng=seed) for seed in range(12)]
    interval = np.array([one.both.interval() for one in found])
    width = np.ptp(interval, axis=2).mean(axis=0)
    told = np.array([one.table().query("error == 'both'")["mcse"] for one in found]).mean(axis=0) / width
    print("\nimputations", [len(one.rates) for one in found])
    print(
        "sd of ends in widths, P R B3R cR:",
        (interval.std(axis=0, ddof=1).mean(axis=1) / width).round(3),
        "told",
        told.round(3),
    )
    under = round(float(np.mean([one.both.estimate[1] for one in found])) - 0.01, 3)
    for one in found[:4]:
        table = tipping(one, "recall", under, progress=False)
        at, error = table.to_numpy()[-1]
        there = one.times(at).both.estimate[1] if at > 0 else np.nan
        print(f"recall under {under}: {at:.2f} ± {error:.2f}, the answer there {there:.4f}", flush=True)


def order() -> None:
    """Tables in another order, and answers at a multiple of rates that is 1."""
    people, start, seen, ask = one_sample()
    found = ask(seen, shown=people.pred, starts=start.to_numpy(), imputations=20, rng=1)
    width, worst = np.ptp(found.both.interval(), axis=1), 0.0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        mixed = [x.iloc[rng.permutation(len(x))] for x in (seen, people.pred)]
        again = ask(mixed[0], shown=mixed[1], starts=rng.permutation(start.to_numpy()), imputations=20, rng=1)
        worst = max(worst, (np.abs(again.both.interval() - found.both.interval()).max(axis=1) / width).max())
    again = np.abs(found.times(1).both.interval() - found.both.interval()).max()
    print(f"\ntables in another order: ends differ by {worst:.1e} of the width; times(1): by {again:.1e}")


if __name__ == "__main__":
    warnings.simplefilter("ignore", eb.Alarm)
    both = tuple(POPULATIONS)
    parts: dict[str, Callable[[], None]] = {
        "removed": partial(cover, "removed .05", {"removed": ALL["removed"]}, both),
        "all": partial(cover, "all four", ALL, both),
        "moved": partial(cover, "all four, records moved", ALL, (MOVED,)),
        "two": two,
        "compare": compare,
        "ends": ends,
        "order": order,
    }
    for part in sys.argv[1:] or parts:
        parts[part]()
    if not sys.argv[1:]:
        stamp("labelling-error", f"seeds 0 to {SAMPLES - 1}")
