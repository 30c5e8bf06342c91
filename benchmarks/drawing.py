"""The default of `draw` against uniform records, and ends of links for precision.

    python benchmarks/drawing.py [REPETITIONS] [FILE]

Twelve populations that had no part in choosing the rule. Draws are so many that the expected records to
label are those of 150 or 300 uniform records. First half widths of default 95 % intervals over those of
uniform records, forecast from whole populations, then coverage and interval scores of samples. Last, on four
releases of PatentsView, the number of ends of predicted links with the mean interval score of precision of
400 uniform records. FILE keeps finished work of the studies.

Exits 1 if a score of the default is over 1.3 times that of uniform records, if it covers a cell less than .9
by over two standard errors, or if ends of links need more than half the draws in two releases or more.

It takes 4 minutes with 1,000 samples a cell, and ends of links as many.
"""

import sys

import numpy as np
import pandas as pd
import populations as sim
from common import PR, RELEASES
from common import table as markdown
from figures import stamp

import erbayes as eb
from erbayes.analysis.planning import Outlook, forecast
from erbayes.engine import Taylor
from erbayes.labels import LinkEnds, Multipurpose, Records
from erbayes.study import study

N, ENDS = 400, [50, 75, 100, 150, 200, 300]
COSTS = (150, 300)
"""Uniform records whose labels the default may cost."""
METRICS = ["pairwise-precision", "pairwise-recall", "pairwise-f1", "b3-precision", "b3-recall"]
METRICS += ["cluster-precision", "cluster-recall"]
SHORT = ["P", "R", "F1", "B³ P", "B³ R", "cluster P", "cluster R"]
PLANS = {"uniform": Records(), "default": Multipurpose()}


def lists(seed: int, entities: int, number: int, share: float, found: float, false: float) -> sim.Population:
    """Entities have a record in each list with probability `share`, linked to the first with `found`.

    `false`: share of the entities of one record that are linked with another such one.
    """
    rng = np.random.default_rng(seed)
    true = np.nonzero(rng.random((entities, number)) < share)[0]
    first = np.r_[True, true[1:] != true[:-1]]
    pred = np.where(first | (rng.random(len(true)) < found), true, entities + np.arange(len(true)))
    lonely = rng.permutation(np.flatnonzero(np.bincount(true, minlength=entities) == 1))
    k = int(false * len(lonely) / 2)
    joined = np.arange(pred.max() + 1)
    joined[lonely[:k]] = lonely[k : 2 * k]
    index = pd.RangeIndex(len(true))
    return sim.Population(pd.Series(pd.factorize(joined[pred])[0], index), pd.Series(true, index))


def made(law: sim.EntitySizes, records: int, seed: int, *errors: sim.Mechanism) -> sim.Population:
    return sim.simulate(law, sim.Chain(list(errors)), records, seed)


POPULATIONS = {
    "two lists, half in both": lambda: lists(31, 10_000, 2, 0.6, 0.93, 0.04),
    "two lists, many missed": lambda: lists(32, 12_000, 2, 0.8, 0.6, 0.02),
    "four lists": lambda: lists(33, 5_000, 4, 0.45, 0.92, 0.08),
    "customers by two rules": lambda: sim.matched(
        sim.Zeta(2.3, 25), 15_000, 34, ("given", "family", "born"), ("email",)
    ),
    "Pitman-Yor .5, noise": lambda: made(
        sim.PitmanYor(500.0, 0.5), 25_000, 35, sim.Splits(0.15), sim.Misattribution(0.01)
    ),
    "log-normal 1": lambda: made(sim.LogNormal(1.0, 0.8), 20_000, 36, sim.Splits(0.05), sim.Merges(0.06)),
    "Zeta 2.1 to 2,000, splits": lambda: made(
        sim.Zeta(2.1, 2000), 30_000, 37, sim.Splits(0.12), sim.Misattribution(0.01)
    ),
    "negative binomial 2": lambda: made(
        sim.NegativeBinomial(2.0, 1.5), 15_000, 38, sim.Splits(0.2), sim.Merges(0.03)
    ),
    "cap of 25": lambda: made(sim.Zeta(2.2, 1500), 30_000, 39, sim.Misattribution(0.02), sim.Capped(25)),
    "2,000 records": lambda: made(sim.LogNormal(0.5, 1.0), 2_000, 40, sim.Splits(0.2), sim.Merges(0.05)),
    "namesakes": lambda: made(sim.Zeta(2.5, 500), 30_000, 41, sim.Homonyms(30, 8, 0.8)),
    "eras of .03": lambda: made(sim.LogNormal(0.8, 1.2), 25_000, 42, sim.Eras(0.03), sim.Merges(0.01)),
}


def cost_as(outlook: Outlook, cost: float) -> int:
    """Return the number of draws whose expected records to label are at least `cost`."""
    low, high = 2, 10**6
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if outlook.cost(middle) >= cost else (middle + 1, high)
    return low


def summarise(title: str, table: pd.DataFrame) -> None:
    """Print geometric means (largest) by metric of ratios to uniform records, (populations, metrics)."""
    cells = [f"{np.exp(np.log(table[m]).mean()):.2f} ({table[m].max():.2f})" for m in METRICS]
    print(markdown([title, *SHORT], [["mean (largest)", *cells]]) + "\n", flush=True)


def judge_default(repetitions: int) -> bool:
    """Print widths, scores and coverage of the default; return whether a cell is out of bounds."""
    draws, widths = {}, {n: list[dict[str, float]]() for n in COSTS}
    everybody = {name: make() for name, make in POPULATIONS.items()}
    for name, people in everybody.items():
        assert people.units.known is not None
        known = people.units.known
        designs = {plan: eb.design.ByPredictedSize(of.column(known)) for plan, of in PLANS.items()}
        found = forecast(people, METRICS, designs).designs
        for n in COSTS:
            draws[name, n] = m = cost_as(found["default"], found["uniform"].cost(n))
            ratio = found["default"].half_widths(m, 0.95) / found["uniform"].half_widths(n, 0.95)
            widths[n].append(dict(zip(METRICS, ratio, strict=True)) | {"population": name, "draws": m})
    print("## Half widths over those of uniform records, at equal records to label: forecasts\n")
    for n in COSTS:
        table = pd.DataFrame(widths[n])
        rows = [
            [row["population"], str(row["draws"]), *(f"{row[m]:.2f}" for m in METRICS)]
            for row in table.to_dict("records")
        ]
        print(markdown([f"the labels of {n} records", "draws", *SHORT], rows) + "\n", flush=True)
        summarise(f"{n}", table)
    bad = False
    print(f"## Scores over those of uniform records, and coverage: {repetitions:,} samples a cell\n")
    for n in COSTS:
        rows, scores = [], list[dict[str, float]]()
        covers = {plan: list[float]() for plan in PLANS}
        for name, people in everybody.items():
            of_plan = {
                plan: study(
                    {name: people},
                    {plan: of},
                    [n if plan == "uniform" else draws[name, n]],
                    {"default": Taylor()},
                    METRICS,
                    repetitions=repetitions,
                    seed=2,
                )
                .table()
                .set_index("metric")
                for plan, of in PLANS.items()
            }
            mine, uniform = of_plan["default"], of_plan["uniform"]
            relative = (mine.interval_score / uniform.interval_score).reindex(METRICS)
            scores.append(relative.to_dict())
            for plan, found_by in of_plan.items():
                covers[plan] += found_by.coverage.reindex(METRICS).tolist()
            cells = zip(
                relative, mine.coverage.reindex(METRICS), uniform.coverage.reindex(METRICS), strict=True
            )
            rows.append([name, *(f"{r:.2f}, {c:.3f} ({u:.3f})" for r, c, u in cells)])
            error = (mine.coverage * (1 - mine.coverage) / repetitions) ** 0.5
            bad |= bool((relative > 1.3).any() or (mine.coverage + 2 * error < 0.9).any())
        print(markdown([f"the labels of {n} records", *SHORT], rows) + "\n", flush=True)
        summarise(f"score, {n}", pd.DataFrame(scores))
        for plan, shares in covers.items():
            print(f"{plan} covers {np.mean(shares):.3f}, at least {np.min(shares):.3f}\n", flush=True)
    return bad


def needed(curve: pd.DataFrame, score: float) -> float:
    """Return the number of draws with this score, between the sizes of the curve on the log scale."""
    order = curve.sort_values("interval_score")
    return float(np.exp(np.interp(np.log(score), np.log(order.interval_score), np.log(order.n))))


def half_the_labels(repetitions: int) -> int:
    """Print the draws of ends of links that are worth N uniform records; return how often over half."""
    populations = {date: sim.pair(date) for date in RELEASES}

    def scores(plans: dict[str, Records | LinkEnds], sizes: list[int]) -> pd.DataFrame:
        estimators = {"default": Taylor()}
        return study(populations, plans, sizes, estimators, PR[:1], repetitions=repetitions, seed=1).table()

    uniform, ends = scores({"uniform": Records()}, [N]), scores({"links": LinkEnds()}, ENDS)
    rows, missed = [], 0
    for name, people in populations.items():
        base, curve = uniform[uniform.population == name].iloc[0], ends[ends.population == name]
        n = needed(curve, base.interval_score)
        designs = {"u": eb.UniformRecords(), "l": eb.design.ByPredictedSize(eb.columns.PREDICTED_LINKS)}
        plan = forecast(people, PR[:1], designs).designs
        records = plan["l"].cost(round(n)) / plan["u"].cost(N)
        nearest = curve.iloc[(curve.n - n).abs().argmin()]
        missed += n > N / 2
        shown = "at most " if n <= min(ENDS) else "at least " if n >= max(ENDS) else ""
        rows.append(
            [
                name,
                f"{base.interval_score:.3f}",
                f"{base.coverage:.3f}",
                f"{shown}{n:.0f}",
                f"{n / N:.2f}",
                f"{records:.2f}",
                f"{nearest.coverage:.3f} ({nearest.n:.0f})",
            ]
        )
    header = ["release", f"score, {N} records", "covers", "ends of links"]
    header += ["ratio of draws", "ratio of records", "covers (draws)"]
    print(f"## Ends of links for the score of {N} uniform records\n\n{markdown(header, rows)}")
    return missed


if __name__ == "__main__":
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    bad = judge_default(number)
    bad = half_the_labels(4000) > 1 or bad
    stamp("drawing", "seeds 1 and 2")
    sys.exit(int(bad))
