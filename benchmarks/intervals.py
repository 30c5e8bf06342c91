"""Coverage of all kinds of interval, on real pairs of disambiguations and simulated populations.

    python benchmarks/intervals.py [SAMPLES]

Two groups of populations: those on which the default was chosen, and those that were written down before and
looked at after. Real ones are pairs of PatentsView's releases (one as prediction, one as truth), and
RLdata10000. 95 % intervals of six metrics under uniform records and uniform clusters, 50, 100 and 400 draws.
Printed: mean and lowest coverage over populations, and the geometric mean of interval scores over Wald's;
then every cell of the default. With SAMPLES, kinds in closed form alone, by so many samples of each cell.

Exits 1 if the default under uniform records misses a bar by more than two Monte Carlo standard errors:
coverage of precision and recall of .93 with 400 draws and .90 with 100, and of .90 for every other metric
with 100 draws or more.

With 2 cores it takes about 30 minutes, and some with 500 SAMPLES on one.
"""

import sys

import joblib
import numpy as np
import pandas as pd
import populations as sim
from common import PLANS, RELEASES
from common import table as markdown
from engines import on_distinct
from figures import stamp
from populations import noisy, pair

from erbayes import datasets
from erbayes import metrics as m
from erbayes.engine import (
    BCa,
    Estimator,
    Jackknife,
    Resampled,
    Taylor,
)
from erbayes.metrics.intervals import WALD, BetaGamma, EqualTailed
from erbayes.study import study

METRICS = (
    m.pairwise_precision,
    m.pairwise_recall,
    m.pairwise_f(),
    m.b3_precision,
    m.b3_recall,
    m.cluster_recall,
)
SIZES = [50, 100, 400]
DEFAULT = "default: Beta"
FAST = {
    "Wald": Estimator(Taylor(), WALD),
    "Beta, no pseudo-draws": Estimator(Taylor(), BetaGamma(0.0)),
    DEFAULT: Taylor(),
}
SLOWER = {
    "default, jackknife": Jackknife(),
    "default, distinct entities": on_distinct,
}
BOOTSTRAPS = {
    "percentile": Estimator(Resampled(replicates=1000), EqualTailed()),
    "BCa": Estimator(Resampled(replicates=1000), BCa()),
}


def simulated(laws: dict[str, tuple[sim.EntitySizes, sim.Mechanism]], seed: int) -> dict[str, sim.Population]:
    rng = np.random.default_rng(seed)
    return {name: sim.simulate(law, errors, 50_000, rng) for name, (law, errors) in laws.items()}


def chosen_on() -> dict[str, sim.Population]:
    real = {f"{date} of 20220630": pair(date) for date in RELEASES} | {"noise .10": noisy()}
    for a, b in (("20180528", "20200630"), ("20171226", "20190312"), ("20201229", "20190820")):
        real[f"{a} of {b}"] = pair(a, b)
    persons = datasets.rldata10000_example1()
    real["RLdata10000"] = sim.Population.of(persons.pred, persons.true)
    return real | simulated(
        {
            "Zeta, splits .05": (sim.Zeta(2.5), sim.Splits(0.05)),
            "negative binomial, .002": (sim.NegativeBinomial(4, 2), sim.Misattribution(0.002)),
            "negative binomial, .05": (sim.NegativeBinomial(4, 2), sim.Misattribution(0.05)),
            "negative binomial, merges": (sim.NegativeBinomial(3, 1), sim.Merges(0.03)),
            "Pitman-Yor, .1": (sim.PitmanYor(500, 0.6), sim.Misattribution(0.1)),
            "log-normal, .4": (sim.LogNormal(0.5, 0.8), sim.Misattribution(0.4)),
            "Zeta, homonyms": (sim.Zeta(2.2, 300), sim.Homonyms(20, 60, 0.5)),
            "log-normal, .005": (sim.LogNormal(1.0, 1.0), sim.Misattribution(0.005)),
            "log-normal, by size": (sim.LogNormal(0.5, 1.2), sim.SizeDependent(-3.0, 0.3)),
        },
        5,
    )


def set_aside() -> dict[str, sim.Population]:
    pairs = [
        ("20171003", "20200929"),
        ("20181127", "20191231"),
        ("20190820", "20211230"),
        ("20200630", "20220630"),
        ("20211230", "20181127"),
        ("20180528", "20171003"),
    ]
    real = {f"{a} of {b}": pair(a, b) for a, b in pairs}
    return real | simulated(
        {
            "log-normal, splits .02": (sim.LogNormal(1.2, 0.6), sim.Splits(0.02)),
            "Zeta, merges .1": (sim.Zeta(2.8), sim.Merges(0.1)),
            "Pitman-Yor, splits .3": (sim.PitmanYor(300, 0.5), sim.Splits(0.3)),
            "negative binomial, .02": (sim.NegativeBinomial(2, 0.8), sim.Misattribution(0.02)),
            "log-normal, homonyms": (sim.LogNormal(0.2, 1.4), sim.Homonyms(10, 100, 0.3)),
            "negative binomial, 30 errors": (sim.NegativeBinomial(10, 5), sim.RareErrors(30)),
            "Zeta, .15": (sim.Zeta(2.3, 100), sim.Misattribution(0.15)),
        },
        2026,
    )


GROUPS = {"chosen on": chosen_on, "set aside": set_aside}


def run(samples: int | None) -> pd.DataFrame:
    parts = []
    groups = {group: populations() for group, populations in GROUPS.items()}
    plans = ((FAST, samples),) if samples else ((FAST, 4000), (SLOWER, 500), (BOOTSTRAPS, 250))
    for estimators, repetitions in plans:
        for group, populations in groups.items():
            found = study(
                populations,
                PLANS,
                SIZES,
                estimators,
                METRICS,
                repetitions=repetitions,
                seed=1,
            )
            parts.append(found.table().assign(group=group))
    return pd.concat(parts, ignore_index=True)


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Over populations: mean and lowest coverage, scores over Wald's."""
    cell = ["group", "population", "plan", "n", "metric"]
    wald = table[table.estimator == "Wald"].set_index(cell).interval_score
    base = wald.reindex(pd.MultiIndex.from_frame(table[cell])).to_numpy()
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(table.interval_score / base)
    return (
        table.assign(ratio=ratio.where(np.isfinite(ratio)))
        .groupby(["group", "plan", "n", "metric", "estimator"], sort=False)
        .agg(coverage=("coverage", "mean"), lowest=("coverage", "min"), log_score=("ratio", "mean"))
        .assign(score=lambda t: np.exp(t.pop("log_score")))
        .reset_index()
    )


def shown(rows: pd.DataFrame) -> str:
    """Coverage (lowest) and score as Markdown, one row per estimator and one column per metric and n."""
    cells = [
        f"{a:.3f} ({b:.3f}) {c:.2f}".replace("0.", ".")
        for a, b, c in zip(rows.coverage, rows.lowest, rows.score, strict=True)
    ]
    named = rows.assign(cell=cells, column=rows.metric + " " + rows.n.astype(str))
    wide = named.pivot(index="estimator", columns="column", values="cell")
    wide = wide.loc[
        [x for x in FAST | SLOWER | BOOTSTRAPS if x in wide.index], list(dict.fromkeys(named.column))
    ]
    return markdown(["", *wide.columns], ([str(name), *row] for name, row in wide.iterrows()))


if __name__ == "__main__":
    samples = int(sys.argv[1]) if len(sys.argv) > 1 else None
    with joblib.parallel_config(n_jobs=1 if samples else 2):
        table = run(samples)
    over = summary(table)
    for group in GROUPS:
        for plan in PLANS:
            rows = over[(over.group == group) & (over.plan == plan)]
            print(
                f"\n## {plan}, populations {group}: coverage (lowest) score/Wald's\n\n{shown(rows)}",
                flush=True,
            )
    default = table[table.estimator == DEFAULT]
    cells = default.assign(column=default.metric + " " + default.n.astype(str))
    for plan in PLANS:
        of = cells[cells.plan == plan].pivot(
            index=["group", "population"], columns="column", values="coverage"
        )
        print(f"\n## {plan}: coverage of the default in every cell\n\n{of.round(3).to_string()}")
    records = default[(default.plan == "uniform records") & (default.n >= 100)]
    links = records.metric.isin(["pairwise-precision", "pairwise-recall"]) & (records.n == 400)
    short = records[records.coverage + 2 * records.coverage_mcse < np.where(links, 0.93, 0.90)]
    print(f"\n{len(short)} of {len(records)} cells miss a bar")
    print(short[["group", "population", "metric", "n", "coverage", "interval_score"]].to_string())
    stamp("intervals", "seed 1")
    sys.exit(int(len(short) > 0))
