"""Length and coverage of intervals that a second clustering assists.

    python benchmarks/assisted.py [FILE] [--others | --later | --newest | --last | --adverse]
    python benchmarks/assisted.py --doubts

Estimates with and without the help of a second clustering, from the same samples of PatentsView's releases
and of simulated populations. The second clusterings are good, similar, worse, of no use, the prediction
itself, or have faults that no sample shows. 95 % intervals of five metrics under uniform records and uniform
clusters, 100 and 400 draws. FILE keeps finished work, so that a stopped study goes on.

Guards were weighed again in `guards.py`, whose figures benchmarks/assisted.md has. They were chosen on the
first group of populations, `--others`, `--later`, `--newest` and `--adverse`. In the last of these, giants of
a second clustering are split at random, or joined.
`--last` takes cases that were written down before the last change, and run once after it.

Exits 1 if a bar is missed: mean coverage of .93; coverage of .90 in each cell in which the default has it, to
two Monte Carlo standard errors; mean interval scores over the default's of .40 where the second clustering is
good, and of 1.03 where it is of no use.

With one core it takes two to five minutes for each group.

With `--doubts` it counts alarms of second clusterings that seem to know the labels, in all cases: of sound
ones and of copies of the labels. It exits 1 if a sound one is doubted.
"""

import sys
from collections.abc import Callable
from itertools import product

import numpy as np
import pandas as pd
import populations as sim
from common import PLANS
from common import table as markdown
from figures import stamp

from erbayes import Sample, UniformClusters, UniformRecords, measure
from erbayes import metrics as m
from erbayes.auxiliary import Assisted, Second
from erbayes.auxiliary.assistance import BY_CHANCE
from erbayes.datasets import patentsview_releases
from erbayes.engine import Taylor
from erbayes.study import study

METRICS = (m.pairwise_precision, m.pairwise_recall, m.b3_precision, m.b3_recall, m.cluster_recall)
SIZES = [100, 400]
REPETITIONS = 100
SAMPLES = 25
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


def split(case: Case, above: int, parts: int = 2) -> Case:
    """Split each cluster of the second clustering with more than some records at random."""
    _, truth, prediction, second = case
    large = np.bincount(second)[second] > above
    part = np.random.default_rng(5).integers(parts, size=len(second))
    return "split giants", truth, prediction, parts * second + large * part


def paired(case: Case, first: int, last: int) -> Case:
    """Join clusters of the second clustering in pairs, from one rank of size to another."""
    _, truth, prediction, second = case
    largest, joined = np.argsort(-np.bincount(second)), second.copy()
    for one, other in zip(largest[first:last:2], largest[first + 1 : last : 2], strict=True):
        joined[joined == other] = one
    return "hidden merge", truth, prediction, joined


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


def simulated(
    kind: str, law: sim.EntitySizes, errors: sim.Mechanism, second: sim.Mechanism, seed: int
) -> Case:
    """Return a simulated prediction, and a second clustering with errors of its own."""
    rng = np.random.default_rng(seed)
    truth, prediction = sim.of_codes(law, errors, 50_000, rng)
    return kind, truth, prediction, second.apply(truth, rng)


def looser(kind: str, law: sim.EntitySizes, errors: sim.Mechanism, further: sim.Mechanism, seed: int) -> Case:
    """Return a simulated prediction, and a looser clustering: with all its errors and more."""
    rng = np.random.default_rng(seed)
    truth, prediction = sim.of_codes(law, errors, 50_000, rng)
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


def later_aside() -> dict[str, Case]:
    """Cases that were written down when the intervals were final, before any of them was run."""
    first = releases("good", "20180528", "20201229")
    second = releases("good", "20200331", "20211230")
    noisy_one = simulated(
        "good", sim.PitmanYor(600.0, 0.5), sim.Misattribution(0.15), sim.Misattribution(0.02), 51
    )
    return {
        "2018-05-28 by 2020-12-29": first,
        "2020-03-31 by 2021-12-30": second,
        "2019-03-12 by 2022-06-30 of 2021-12-30": releases("good", "20190312", "20220630", "20211230"),
        "2019-10-08 by 2020-09-29 of 2020-12-29": releases("good", "20191008", "20200929", "20201229"),
        "Pitman-Yor, misattribution .15 by .02": noisy_one,
        "negative binomial, splits .2 by misattribution .01": simulated(
            "good", sim.NegativeBinomial(4, 1.5), sim.Splits(0.2), sim.Misattribution(0.01), 52
        ),
        "2018-05-28 by 2020-12-29, second and fifth giants joined": joined(first, (1, 4)),
        "Pitman-Yor, giants joined": joined(noisy_one),
        "2020-03-31 by 2021-12-30, over 100 records split": split(second, 100),
        "2020-09-29 of 2017-10-03 by 2018-05-28": releases("similar", "20171003", "20180528", "20200929"),
        "2020-03-31 by 2019-12-31": releases("similar", "20200331", "20191231"),
        "2021-12-30 by 2018-11-27": releases("worse", "20211230", "20181127"),
        "log-normal, merges .1 by looser": looser(
            "worse", sim.LogNormal(0.4, 1.0), sim.Merges(0.1), sim.Misattribution(0.1), 53
        ),
        "2020-03-31 by random clusters": shuffled(second),
        "2018-05-28 by itself": itself(first),
    }


def newest() -> dict[str, Case]:
    """Cases that were written down before the last change of guards, and before any of them was run."""
    ewens = simulated("good", sim.PitmanYor(2000.0), sim.Misattribution(0.1), sim.Misattribution(0.02), 61)
    zeta = simulated("good", sim.Zeta(2.6, 200), sim.Merges(0.15), sim.Splits(0.03), 62)
    late = releases("good", "20180528", "20211230")
    return {
        "2018-05-28 by 2021-12-30": late,
        "2019-12-31 by 2022-06-30 of 2021-12-30": releases("good", "20191231", "20220630", "20211230"),
        "Ewens, misattribution .1 by .02": ewens,
        "Zeta, merges .15 by splits .03": zeta,
        "negative binomial, splits .1 and misattribution .1 by misattribution .02": simulated(
            "good",
            sim.NegativeBinomial(2, 0.8),
            sim.Chain((sim.Splits(0.1), sim.Misattribution(0.1))),
            sim.Misattribution(0.02),
            63,
        ),
        "log-normal, homonyms by misattribution .03": simulated(
            "good", sim.LogNormal(1.0, 1.0), sim.Homonyms(30, 60, 0.5), sim.Misattribution(0.03), 64
        ),
        "Ewens, giants joined": joined(ewens),
        "2018-05-28 by 2021-12-30, third and sixth giants joined": joined(late, (2, 5)),
        "2018-05-28 by 2021-12-30, over 150 records split": split(late, 150),
        "Ewens, over 60 records split": split(ewens, 60),
        "2018-11-27 by 2019-08-20 of 2020-09-29": releases("similar", "20181127", "20190820", "20200929"),
        "Zeta by random clusters": shuffled(zeta),
    }


def last() -> dict[str, Case]:
    """Cases that were written down before the weight of pseudo-draws and the witnesses were chosen again."""
    first = releases("good", "20181127", "20201229")
    third = releases("good", "20200630", "20211230")
    zeta = simulated("good", sim.Zeta(2.2, 1000), sim.Misattribution(0.1), sim.Misattribution(0.01), 71)
    pitman = simulated(
        "good",
        sim.PitmanYor(1000.0, 0.3),
        sim.Chain((sim.Splits(0.1), sim.Merges(0.1))),
        sim.Splits(0.01),
        72,
    )
    log_normal = simulated("good", sim.LogNormal(0.2, 1.3), sim.Merges(0.2), sim.Merges(0.02), 73)
    return {
        "2018-11-27 by 2020-12-29": first,
        "2019-03-12 by 2021-12-30": releases("good", "20190312", "20211230"),
        "2020-06-30 by 2021-12-30": third,
        "Zeta, misattribution .1 by .01": zeta,
        "Pitman-Yor, splits .1 and merges .1 by splits .01": pitman,
        "log-normal, merges .2 by .02": log_normal,
        "negative binomial, misattribution .2 by .02": simulated(
            "good", sim.NegativeBinomial(3, 1), sim.Misattribution(0.2), sim.Misattribution(0.02), 74
        ),
        "2018-11-27 by 2020-12-29, fourth and fifth giants joined": joined(first, (3, 4)),
        "Zeta, second and third giants joined": joined(zeta, (1, 2)),
        "log-normal, giants joined": joined(log_normal),
        "2020-06-30 by 2021-12-30, over 100 records split in three": split(third, 100, 3),
        "Zeta, over 100 records split": split(zeta, 100),
        "Pitman-Yor, over 40 records split in three": split(pitman, 40, 3),
        "2019-10-08 by 2020-12-29 of 2022-06-30": releases("similar", "20191008", "20201229"),
        "log-normal by random clusters": shuffled(log_normal),
        "Pitman-Yor by itself": itself(pitman),
    }


def adverse() -> dict[str, Case]:
    """Second clusterings with faults in giants alone: many are split at random, or joined."""
    late = releases("good", "20190820", "20211230")
    old = releases("good", "20171226", "20211230")
    near = releases("good", "20201229", TRUTH)
    zeta = simulated("good", sim.Zeta(2.3, 800), sim.Misattribution(0.1), sim.Misattribution(0.01), 81)
    return {
        "2019-08-20 by 2021-12-30, over 50 records split": split(late, 50),
        "2019-08-20 by 2021-12-30, over 100 records split": split(late, 100),
        "2019-08-20 by 2021-12-30, over 200 records split": split(late, 200),
        "2017-12-26 by 2021-12-30, over 100 records split": split(old, 100),
        "2020-12-29 by the truth, over 100 records split": split(near, 100),
        "2019-08-20 by 2021-12-30, over 200 records split in five": split(late, 200, 5),
        "2017-12-26 by 2021-12-30, over 100 records split in four": split(old, 100, 4),
        "2020-12-29 by the truth, over 100 records split in three": split(near, 100, 3),
        "Zeta, over 50 records split in three": split(zeta, 50, 3),
        "Zeta, ranks 5 to 20 joined in pairs": paired(zeta, 4, 20),
        "Zeta, ranks 11 to 60 joined in pairs": paired(zeta, 10, 60),
    }


def run(cases: dict[str, Case]) -> pd.DataFrame:
    parts = []
    for name, (kind, *clusterings) in cases.items():
        truth, prediction, second = (pd.Series(c) for c in clusterings)
        population = sim.Population(prediction, truth)
        engine = Assisted(Second.of(prediction, truth, second))
        estimators = {"default": Taylor(), "assisted": engine}
        found = study(
            {name: population},
            PLANS,
            SIZES,
            estimators,
            METRICS,
            repetitions=REPETITIONS,
            seed=1,
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
    return markdown(["second clustering", "prediction by second", "draws", *names], lines)


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


def doubts() -> int:
    """Print how often a second clustering seems to know the labels, and return 1 if a sound one does.

    A copy is the prediction in which labelled records have their true entity.
    """
    cases = {**chosen_on(), **set_aside(), **later_aside(), **newest(), **last(), **adverse()}
    rows = []
    for (name, (kind, *clusterings)), n, by_records, seed in product(
        cases.items(), SIZES, (True, False), range(5)
    ):
        truth, prediction, second = (pd.Series(c) for c in clusterings)
        rng = np.random.default_rng([seed, n])
        drawn = rng.integers(len(truth), size=n) if by_records else rng.choice(truth.nunique(), n, False)
        ids = truth[drawn] if by_records else pd.Series(truth.unique()[drawn])
        labels = truth[truth.isin(ids)]
        design = UniformRecords(draws=list(ids)) if by_records else UniformClusters()
        sample, copy = Sample(measure(prediction, labels), design), prediction.copy()
        copy[labels.index] = labels + prediction.max() + 1
        for of, by in (("sound", second), ("copy", copy)):
            changes = Second.of(prediction, labels, by).changes(sample)
            rows.append((of, kind, name, n, type(design).__name__, changes.chance < BY_CHANCE))
    table = pd.DataFrame(rows, columns=["of", "kind", "case", "draws", "design", "doubted"])
    found = table.groupby(["of", "design", "draws"]).doubted.agg(["size", "sum"])
    print(found.to_string())
    return int(table[table.of == "sound"].doubted.any())


if __name__ == "__main__":
    if "--doubts" in sys.argv:
        failed = doubts()
        stamp("assisted", "seed 1")
        sys.exit(failed)
    kinds: dict[str, Callable[[], dict[str, Case]]] = {
        "--others": set_aside,
        "--later": later_aside,
        "--newest": newest,
        "--last": last,
        "--adverse": adverse,
    }
    cases = next((group for option, group in kinds.items() if option in sys.argv), chosen_on)
    cells = beside(run(cases()))
    for plan in PLANS:
        print(f"\n## {plan}: coverage, score over the default's\n\n{shown(cells, plan)}")
    summary = cells.groupby(["kind", "plan"])[["coverage", "default", "score", "rmse"]].mean().round(3)
    print(f"\n{summary.to_string()}\n")
    for estimator, coverage in (("assisted", cells.coverage), ("default", cells.default)):
        print(f"{estimator}: mean coverage {coverage.mean():.3f}, lowest {coverage.min():.3f}")
    sentences = missed(cells)
    print("\n".join(["", f"{len(sentences)} bars missed", *sentences]))
    stamp("assisted", "seed 1")
    sys.exit(int(len(sentences) > 0))
