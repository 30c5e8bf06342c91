"""Length and coverage of intervals that a second clustering assists.

    python benchmarks/assisted.py [FILE] [--others]

Estimates with and without the help of a second clustering, from the same samples of PatentsView's releases
and of simulated populations. The second clusterings are good, similar, worse, of no use, the prediction
itself, or have faults that no sample shows. 95 % intervals of five metrics under uniform records and uniform
clusters, 100 and 400 draws. FILE keeps finished work, so that a stopped study goes on.

The bounds of `erbayes.assisted` were chosen on the first group of populations. `--others` takes a second
group, which had no part in that.

Exits 1 if a bar is missed: mean coverage of .93; coverage of .90 in each cell in which the default has it, to
two Monte Carlo standard errors; mean interval scores over the default's of .40 where the second clustering is
good, and of 1.03 where it is of no use.

With one core it takes a quarter of an hour for each group.
"""

import sys
from collections.abc import Callable

import markdown
import numpy as np
import pandas as pd

from erbayes import Assisted, Second
from erbayes import metrics as m
from erbayes import simulate as sim
from erbayes.datasets import patentsview_releases
from erbayes.engine import Taylor
from erbayes.study import DrawClusters, DrawRecords, study

PLANS = {"uniform records": DrawRecords(), "uniform clusters": DrawClusters()}
METRICS = (m.pairwise_precision, m.pairwise_recall, m.b3_precision, m.b3_recall, m.cluster_recall)
SIZES = [100, 400]
REPETITIONS = 250
TRUTH = "20220630"
Codes = np.ndarray
Case = tuple[str, Codes, Codes, Codes]
"""The kind of the second clustering, then the truth, the prediction and the second clustering."""


def codes(*dates: str) -> list[Codes]:
    """Clusters of the records that all of some releases have."""
    shared = patentsview_releases()[list(dict.fromkeys(dates))].dropna()
    return [pd.factorize(shared[date])[0] for date in dates]


def releases(kind: str, prediction: str, second: str, truth: str = TRUTH) -> Case:
    return (kind, *codes(truth, prediction, second))


def joined(case: Case, ranks: tuple[int, int] = (0, 1)) -> Case:
    """Join two of the largest clusters of the second clustering."""
    _, truth, prediction, second = case
    largest = np.argsort(-np.bincount(second))
    return "hidden merge", truth, prediction, np.where(second == largest[ranks[1]], largest[ranks[0]], second)


def itself(case: Case) -> Case:
    return "the prediction", case[1], case[2], case[2]


def noisy(case: Case, rate: float) -> Case:
    """Return the truth with misattributed records: errors that the prediction does not share."""
    _, truth, prediction, _ = case
    return "similar", truth, prediction, sim.Misattribution(rate).apply(truth, np.random.default_rng(4))


def shuffled(case: Case) -> Case:
    """Clusters of the true sizes with records at random."""
    _, truth, prediction, _ = case
    return "no use", truth, prediction, np.random.default_rng(4).permutation(truth)


def simulated(kind: str, law: sim.SizeLaw, errors: sim.Mechanism, second: sim.Mechanism, seed: int) -> Case:
    """Return a simulated prediction, and a second clustering with errors of its own."""
    rng = np.random.default_rng(seed)
    truth = sim.population(law, 50_000, rng).to_numpy()
    return kind, truth, errors.apply(truth, rng), second.apply(truth, rng)


def looser(kind: str, law: sim.SizeLaw, errors: sim.Mechanism, further: sim.Mechanism, seed: int) -> Case:
    """Return a simulated prediction, and a looser clustering: with all its errors and more."""
    rng = np.random.default_rng(seed)
    truth = sim.population(law, 50_000, rng).to_numpy()
    prediction = errors.apply(truth, rng)
    return kind, truth, prediction, further.apply(prediction, rng)


def chosen_on() -> dict[str, Case]:
    late = releases("good", "20190820", "20211230")
    old = releases("good", "20171226", "20211230")
    return {
        "2019-08-20 by 2021-12-30": late,
        "2017-12-26 by 2021-12-30": old,
        "2017-08-08 by 2020-12-29": releases("good", "20170808", "20201229"),
        "2019-08-20 by 2021-12-30, two giants joined": joined(late),
        "2017-12-26 by 2021-12-30, two giants joined": joined(old),
        "2020-12-29 by the truth, two giants joined": joined(releases("good", "20201229", TRUTH)),
        "2017-08-08 by 2017-12-26": releases("similar", "20170808", "20171226"),
        "2018-05-28 by 2020-06-30": releases("similar", "20180528", "20200630"),
        "2021-12-30 by 2019-08-20": releases("worse", "20211230", "20190820"),
        "2019-08-20 by 2017-12-26": releases("worse", "20190820", "20171226"),
        "2019-08-20 by itself": itself(late),
        "2017-12-26 by the truth with .30 noise": noisy(old, 0.3),
        "2017-12-26 by random clusters": shuffled(old),
    }


def set_aside() -> dict[str, Case]:
    third = releases("good", "20181127", "20211230")
    return {
        "2018-11-27 by 2021-12-30": third,
        "2017-10-03 by 2022-06-30 of 2021-12-30": releases("good", "20171003", "20220630", "20211230"),
        "2019-12-31 by 2020-12-29": releases("good", "20191231", "20201229"),
        "2018-11-27 by 2021-12-30, third and fourth giants joined": joined(third, (2, 3)),
        "2018-11-27 by 2021-12-30, first and tenth giants joined": joined(third, (0, 9)),
        "2017-10-03 by 2018-05-28": releases("similar", "20171003", "20180528"),
        "2020-09-29 by 2019-03-12": releases("worse", "20200929", "20190312"),
        "2018-11-27 by itself": itself(third),
        "2018-11-27 by random clusters": shuffled(third),
        "2018-11-27 by the truth with .05 noise": noisy(third, 0.05),
        "log-normal, misattribution .2 by .01": simulated(
            "good", sim.LogNormal(0.5, 1.2), sim.Misattribution(0.2), sim.Misattribution(0.01), 11
        ),
        "Zeta, splits .3 by splits .02": simulated(
            "good", sim.Zeta(2.4, 300), sim.Splits(0.3), sim.Splits(0.02), 12
        ),
        "negative binomial, merges .1 by .1": simulated(
            "similar", sim.NegativeBinomial(3, 1), sim.Merges(0.1), sim.Merges(0.1), 13
        ),
        "Pitman-Yor, misattribution .1 by looser": looser(
            "worse", sim.PitmanYor(500, 0.6), sim.Misattribution(0.1), sim.Merges(0.1), 14
        ),
        "Zeta, homonyms by looser": looser(
            "worse", sim.Zeta(2.2, 300), sim.Homonyms(20, 60, 0.5), sim.Merges(0.05), 15
        ),
    }


def run(cases: dict[str, Case], file: str | None) -> pd.DataFrame:
    parts = []
    for name, (kind, *clusterings) in cases.items():
        truth, prediction, second = (pd.Series(c) for c in clusterings)
        population = sim.Population(prediction, truth)
        engine = Assisted(Second.of(prediction, truth, second))
        estimators = {"default": Taylor(), "assisted": engine}
        found = study(
            {name: population}, PLANS, SIZES, estimators, METRICS, repetitions=REPETITIONS, seed=1, file=file
        )
        parts.append(found.table().assign(kind=kind))
        print(name, file=sys.stderr, flush=True)
    return pd.concat(parts, ignore_index=True)


def beside(table: pd.DataFrame) -> pd.DataFrame:
    """Return one row per cell, with the default beside the assisted estimate."""
    cell = ["kind", "population", "plan", "n", "metric"]
    wide = table.pivot(
        index=cell, columns="estimator", values=["coverage", "interval_score", "rmse", "failures"]
    )
    return pd.DataFrame(
        {
            "coverage": wide["coverage", "assisted"],
            "default": wide["coverage", "default"],
            "score": wide["interval_score", "assisted"] / wide["interval_score", "default"],
            "rmse": wide["rmse", "assisted"] / wide["rmse", "default"],
            "failures": wide["failures", "assisted"],
        }
    ).reset_index()


def short(x: float) -> str:
    return f"{x:.2f}".replace("0.", ".")


def shown(cells: pd.DataFrame, plan: str) -> str:
    """Coverage, and the score over the default's, as Markdown: one row per population and n."""
    rows = cells[cells.plan == plan]
    texts = rows.assign(
        cell=[f"{short(c)} {short(s)}" for c, s in zip(rows.coverage, rows.score, strict=True)]
    )
    wide = texts.pivot(index=["kind", "population", "n"], columns="metric", values="cell")
    names = [metric.name for metric in METRICS]
    lines = (
        [kind, population, str(n), *row]
        for (kind, population, n), row in zip(wide.index, wide[names].to_numpy(), strict=True)
    )
    return markdown.table(["second clustering", "prediction by second", "draws", *names], lines)


def missed(cells: pd.DataFrame) -> list[str]:
    """Sentences about the bars that are missed."""
    error = np.sqrt(0.9 * 0.1 / REPETITIONS)
    sentences = []
    low = cells[(cells.coverage + 2 * error < 0.9) & (cells.default + 2 * error >= 0.9)]
    sentences += [
        f"coverage {c.coverage:.3f} (default {c.default:.3f}): {c.population}, {c.plan}, {c.n}, {c.metric}"
        for c in low.itertuples()
    ]
    if cells.coverage.mean() < 0.93:
        sentences.append(f"mean coverage {cells.coverage.mean():.3f}")
    for kind, bar in (("good", 0.4), ("no use", 1.03), ("the prediction", 1.03)):
        for plan, score in cells[cells.kind == kind].groupby("plan").score:
            if score.mean() > bar:
                sentences.append(
                    f"mean score {score.mean():.3f} under {plan} where the second clustering is {kind}"
                )
    return sentences


if __name__ == "__main__":
    paths = [a for a in sys.argv[1:] if not a.startswith("--")]
    cases: Callable[[], dict[str, Case]] = set_aside if "--others" in sys.argv else chosen_on
    cells = beside(run(cases(), paths[0] if paths else None))
    for plan in PLANS:
        print(f"\n## {plan}: coverage, score over the default's\n\n{shown(cells, plan)}")
    summary = cells.groupby(["kind", "plan"])[["coverage", "default", "score", "rmse"]].mean().round(3)
    print(f"\n{summary.to_string()}\n")
    for estimator, coverage in (("assisted", cells.coverage), ("default", cells.default)):
        print(f"{estimator}: mean coverage {coverage.mean():.3f}, lowest {coverage.min():.3f}")
    sentences = missed(cells)
    print("\n".join(["", f"{len(sentences)} bars missed", *sentences]))
    sys.exit(int(len(sentences) > 0))
