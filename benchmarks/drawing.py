"""Savings by designs on predicted size: labels for the same interval score, and variances of one draw.

    python benchmarks/drawing.py [FILE]

Predictions are four releases of PatentsView, and the release of 2022-06-30 stands for the truth. First the
variance of one draw over that of a uniform record, from the whole population, and what a mixture costs for
other metrics. Then the default 95 % interval of pairwise precision from 400 uniform records, against that
from ends of predicted links: the number of ends with the same mean interval score. Labels are counted in two
ways, as draws and as records of the distinct entities that are drawn. Last, coverage and score of precision
and recall for 400 draws of each design. FILE keeps finished work of the study.

Exits 1 if ends of links need more than half the draws in two releases or more.

With 2 cores it takes about 5 minutes.
"""

import sys

import numpy as np
import pandas as pd
from common import PR, RELEASES
from common import table as markdown
from populations import Chain, LogNormal, Merges, Splits, pair, simulate

import erbayes as eb
from erbayes.analysis.planning import forecast
from erbayes.engine import Taylor
from erbayes.labels import LinkEnds, Mixture, Records, RootSize
from erbayes.study import study

N, ENDS = 400, [50, 75, 100, 150, 200, 300]
PLANS = {"uniform records": Records(), "root of size": RootSize(), "mixture, α = .2": Mixture(0.2)}


def scores(populations, plans, sizes, metrics, repetitions, folder):
    """Return the table of a study."""
    estimators = {"default": Taylor()}
    return study(
        populations, plans, sizes, estimators, metrics, repetitions=repetitions, seed=1, folder=folder
    ).table()


def needed(curve: pd.DataFrame, score: float) -> float:
    """Return the number of draws with this score, between the sizes of the curve on the log scale."""
    order = curve.sort_values("interval_score")
    return float(np.exp(np.interp(np.log(score), np.log(order.interval_score), np.log(order.n))))


def half_the_labels(populations, folder) -> int:
    """Print the draws of ends of links that are worth N uniform records; return how often over half."""
    uniform = scores(populations, {"uniform": Records()}, [N], PR[:1], 4000, folder)
    ends = scores(populations, {"links": LinkEnds()}, ENDS, PR[:1], 4000, folder)
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
    print(f"\n## Ends of links for the score of {N} uniform records\n\n{markdown(header, rows)}")
    return missed


def each_design(populations, folder) -> None:
    """Print coverage and score of N draws by each design."""
    table = scores(populations, PLANS, [N], PR, 4000, folder)
    base = table[table.plan == "uniform records"].set_index(["population", "metric"]).interval_score
    rows = []
    for (plan, metric), cells in table.groupby(["plan", "metric"], sort=False):
        ratio = cells.interval_score.to_numpy() / base.loc[[(p, metric) for p in cells.population]].to_numpy()
        shown = [f"{c:.3f} ({r:.2f})" for c, r in zip(cells.coverage, ratio, strict=True)]
        rows.append([plan, metric, *shown])
    print(f"\n## {N} draws: coverage (score over that of uniform records)\n")
    print(markdown(["design", "metric", *RELEASES], rows))


def variances(populations) -> None:
    """Print the variance of one draw over that of a uniform record."""
    rows = {}
    for people in populations.values():
        known = people.units.known
        designs = {plan: eb.design.ByPredictedSize(of.column(known)) for plan, of in PLANS.items()}
        links = {"ends of links": eb.design.ByPredictedSize(eb.columns.PREDICTED_LINKS)}
        found = forecast(people, PR, designs).designs | forecast(people, PR[:1], links).designs
        base = found["uniform records"].variance
        for name, outlook in found.items():
            for metric, variance, other in zip(outlook.metrics, outlook.variance, base, strict=False):
                rows.setdefault((name, metric.name), []).append(f"{variance / other:.2f}")
    print("\n## Variance of one draw, over that of a uniform record\n")
    print(markdown(["design", "metric", *RELEASES], ([*k, *v] for k, v in rows.items())))


def price(populations) -> None:
    """Print half widths of 300 draws of a mixture over those of uniform records, and records to label."""
    metrics = ["pairwise-precision", "pairwise-recall", "pairwise-f1", "b3-precision", "b3-recall"]
    metrics += ["cluster-precision", "cluster-recall", "entities"]
    columns = {}
    for name, people in populations.items():
        chances = {plan: of.column(people.units.known) for plan, of in PLANS.items()}
        designs = {plan: eb.design.ByPredictedSize(column) for plan, column in chances.items()}
        found = forecast(people, metrics, designs).designs
        records, mixture = found["uniform records"], found["mixture, α = .2"]
        ratios = mixture.half_widths(300, 0.95) / records.half_widths(300, 0.95)
        columns[name] = [mixture.cost(300) / records.cost(300), *ratios]
    rows = zip(["records to label", *metrics], *columns.values(), strict=True)
    print("\n## Price of a mixture, α = .2: 300 draws, over that of uniform records\n")
    print(markdown(["", *columns], ([what, *(f"{x:.2f}" for x in rest)] for what, *rest in rows)))


if __name__ == "__main__":
    releases = {date: pair(date) for date in RELEASES}
    path = sys.argv[1] if len(sys.argv) > 1 else None
    variances(releases)
    errors = Chain([Splits(0.25), Merges(0.02)])
    price(releases | {"simulated": simulate(LogNormal(0.7, 0.9), errors, 20_000, 1)})
    missed = half_the_labels(releases, path)
    each_design(releases, path)
    sys.exit(int(missed > 1))
