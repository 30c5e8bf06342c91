"""Which interval keeps its promise? All of them, on real pairs of disambiguations.

    python benchmarks/intervals.py [FILE]

The truth is PatentsView's release of 2022-06-30; predictions are four earlier releases and the paper's
noise at rate .10. 95 % intervals of pairwise precision (P) and recall (R) under uniform records and under
uniform clusters, 100 and 400 draws: coverage and interval score. FILE keeps finished work, so that the
study goes on there when stopped. Exits 1 where the default interval under uniform records misses a bar by
more than two Monte Carlo standard errors: coverage of .93 for 400 draws and .90 for 100; Wald's interval
score (that of the ratio of scores is .001).

With 2 cores it takes about 40 minutes.
"""

import sys

import numpy as np
import pandas as pd

from erbayes import datasets, identity, logit
from erbayes import metrics as m
from erbayes import simulate as sim
from erbayes.bootstrap import BCa, Dirichlet, Percentile, PseudoDraws, Studentised
from erbayes.study import (
    DrawClusters,
    DrawRecords,
    Jackknife,
    OnCalibrated,
    OnDistinct,
    Resampled,
    Taylor,
    study,
)

RELEASES = {
    "2017-08-08": "20170808",
    "2017-12-26": "20171226",
    "2019-08-20": "20190820",
    "2020-12-29": "20201229",
}
PLANS = {"uniform records": DrawRecords(), "uniform clusters": DrawClusters()}
METRICS = (m.pairwise_precision, m.pairwise_recall)
DEFAULT = "default: logit-t, pseudo-draws"
FAST = {
    "Wald": Taylor(identity, np.inf, 0),
    "logit, normal": Taylor(logit, np.inf, 0),
    "logit-t": Taylor(logit, None, 0),
    DEFAULT: Taylor(),
}
SLOWER = {
    "default, jackknife": Jackknife(),
    "default, distinct entities": OnDistinct(Taylor()),
    "default, calibrated": OnCalibrated(Taylor()),
}
BOOTSTRAPS = {
    "percentile": Resampled(Percentile()),
    "BCa": Resampled(BCa()),
    "bootstrap-t": Resampled(Studentised(identity)),
    "bootstrap-t, logit": Resampled(Studentised()),
    "Bayesian bootstrap": Resampled(Percentile(), Dirichlet()),
    "Bayesian, pseudo-draws": Resampled(Percentile(), PseudoDraws()),
}


def populations() -> dict[str, sim.Population]:
    """Earlier releases, and noise, against the release of 2022-06-30."""
    truth = datasets.patentsview_release("20220630")
    of = sim.Population.of
    found = {name: of(datasets.patentsview_release(date), truth) for name, date in RELEASES.items()}
    noise = sim.Misattribution(0.1).apply(pd.factorize(truth)[0], np.random.default_rng(3))
    return found | {"noise .10": sim.Population(pd.Series(noise, truth.index), truth)}


def run(file: str | None) -> pd.DataFrame:
    parts = []
    for estimators, repetitions in ((FAST, 20_000), (SLOWER, 2000), (BOOTSTRAPS, 500)):
        parts.append(
            study(
                populations(),
                PLANS,
                [100, 400],
                estimators,
                METRICS,
                repetitions=repetitions,
                seed=1,
                workers=2,
                file=file,
            )
        )
    return pd.concat([part.table() for part in parts])


def shown(table: pd.DataFrame, plan: str, figure: str) -> str:
    """One row an estimator, one column a cell, as Markdown."""
    rows = table[table.plan == plan]
    cell = rows.population + " " + rows.metric.str[9].str.upper() + rows.n.astype(str)
    wide = rows.assign(cell=cell).pivot(index="estimator", columns="cell", values=figure)
    wide = wide.loc[list(FAST | SLOWER | BOOTSTRAPS), list(dict.fromkeys(cell))]
    lines = ["| " + " | ".join(["", *wide.columns]) + " |", "|" + " --- |" * (wide.shape[1] + 1)]
    digits = 0 if figure == "failures" else 3 if figure == "coverage" else 4
    for name, row in wide.iterrows():
        figures = [f"{x:.{digits}f}".replace("0.", ".", 1) if digits else f"{x:.0f}" for x in row]
        lines.append("| " + " | ".join([str(name), *figures]) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    table = run(sys.argv[1] if len(sys.argv) > 1 else None)
    for plan in PLANS:
        for figure in ("coverage", "interval_score", "rmse", "failures"):
            print(f"\n{plan}: {figure}\n\n{shown(table, plan, figure)}", flush=True)
    records = table[table.plan == "uniform records"]
    cells, wald = (records[records.estimator == e].reset_index() for e in (DEFAULT, "Wald"))
    covers = cells.coverage + 2 * cells.coverage_se >= np.where(cells.n == 400, 0.93, 0.90)
    short = cells[~covers | (cells.interval_score > 1.002 * wald.interval_score)]
    print(f"\n{len(short)} cells where the default misses a bar")
    print(short[["population", "metric", "n", "coverage", "interval_score"]].to_string())
    sys.exit(int(len(short) > 0))
