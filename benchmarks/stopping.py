"""Coverage of confidence sequences at all looks together, and their width.

    python benchmarks/stopping.py

Labels are looked at after each of 400 draws by betting, and after 50, 60, ..., 400 draws in large-sample
sequences. A sample is covered if the intervals of all looks hold the truth. A false pass is a sample in which
one look passes a minimum that is just above the truth. Populations are four of PatentsView's releases, with
that of 2022-06-30 as the truth, and four simulated ones.

A second table is about non-response: 300 uniform records, of which those in larger clusters are resolved less
often. In the case "by errors", records of broken entities are resolved less often as well, which
no adjustment can mend.

Exits 1 if betting covers less than .95 in a cell, if a sequence covers less than .93, or if a false pass is
more frequent than .05. For non-response, if the adjusted interval covers less than .93 in the first case, or
the worst cases less than .95 in either. A bar counts as missed by more than two Monte Carlo standard errors.

It takes about 15 minutes on one core.
"""

import sys
from typing import Any

import numpy as np
import populations as sim
from common import RELEASES, Mixture
from common import table as markdown
from figures import stamp
from populations import pair

import erbayes as eb
from erbayes import metrics as m
from erbayes.engine import Betting, BoundedMeans, Taylor
from erbayes.engine.closed_form import ClosedForm, with_cases
from erbayes.labels import LinkEnds

SAMPLES, BATCH, LAST = 2000, 250, 400
NONRESPONSE = 1000
LOOKS = range(50, LAST + 1, 10)
P, R, B3 = m.pairwise_precision, m.pairwise_recall, m.b3_recall
DESIGNS = {
    "link ends": lambda known: eb.design.ByPredictedSize(LinkEnds().column(known)),
    "mixture .2": lambda known: eb.design.ByPredictedSize(Mixture(0.2).column(known)),
    "uniform records": lambda known: eb.UniformRecords(),
}
EXACT = {"link ends": [P], "mixture .2": [P], "uniform records": [B3]}
LARGE = {"link ends": [P], "mixture .2": [P, R], "uniform records": [P, R, m.pairwise_f1, B3]}


def populations() -> dict[str, sim.Population]:
    rng = np.random.default_rng(1)
    law = sim.Zeta(2.2, largest=80)
    laws = {
        "many errors": (law, sim.Misattribution(0.1)),
        "rare errors": (law, sim.RareErrors(30)),
        "splits, merges": (sim.LogNormal(0.7, 0.9), sim.Chain([sim.Splits(0.25), sim.Merges(0.02)])),
        "no wrong link": (law, sim.Splits(0.1)),
    }
    releases = {f"{d[:4]}-{d[4:6]}-{d[6:]}": pair(d) for d in RELEASES}
    return releases | {name: sim.simulate(s, e, 20_000, rng) for name, (s, e) in laws.items()}


def sample(units: eb.units.Units, design, at: np.ndarray) -> eb.Sample:
    return eb.Sample.many(units, design, at)


def cell(units: eb.units.Units, name: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Rows of one population under one design."""
    design = DESIGNS[name](units.known)
    exact, large = EXACT[name], LARGE[name]
    true, of_large = sim.truths(units, exact), sim.truths(units, large)
    n = SAMPLES // BATCH
    within, passes, widths = [], [], []
    ever, naive, passed, width, default = [], [], [], [], []
    for _ in range(n):
        at = sim.positions(units, design, (BATCH, LAST), rng)
        ends = BoundedMeans()(sample(units, design, at), exact).interval(0.95, Betting(anytime=True))
        within.append((ends[..., 0] <= true) & (true <= ends[..., 1]))
        passes.append(ends[..., 0] > true)
        hundred = BoundedMeans()(sample(units, design, at[:, :100]), exact)
        widths.append(
            np.stack([np.diff(hundred.interval(0.95, k))[..., 0] for k in (Betting(), Betting(anytime=True))])
        )
        held, held_naive, false = (np.ones((BATCH, len(large)), bool) for _ in range(3))
        false[:] = False
        for look in LOOKS:
            fit = Taylor()(sample(units, design, at[:, :look]), large)
            low, high = np.moveaxis(fit.interval(0.95, eb.intervals.Anytime()), -1, 0)
            held &= (low <= of_large) & (of_large <= high)
            false |= low > of_large
            once = fit.interval()
            held_naive &= (once[..., 0] <= of_large) & (of_large <= once[..., 1])
            if look == 100:
                width.append(high - low)
                default.append(np.diff(once)[..., 0])
        ever.append(held)
        naive.append(held_naive)
        passed.append(false)
    rows = []
    for j, metric in enumerate(exact):
        # a sample whose early draws refute its mean has no interval
        fixed, anytime = np.nanmean(np.concatenate(widths, axis=1)[:, :, j], axis=1)
        rows.append(
            {
                "design": name,
                "metric": metric.name,
                "truth": true[j],
                "sequence": "betting",
                "covered": np.concatenate(within)[:, j].mean(),
                "passed": np.concatenate(passes)[:, j].mean(),
                "width": anytime,
                "once": fixed,
                "naive": np.nan,
            }
        )
    for j, metric in enumerate(large):
        rows.append(
            {
                "design": name,
                "metric": metric.name,
                "truth": of_large[j],
                "sequence": "large samples",
                "covered": np.concatenate(ever)[:, j].mean(),
                "passed": np.concatenate(passed)[:, j].mean(),
                "width": np.concatenate(width)[:, j].mean(),
                "once": np.concatenate(default)[:, j].mean(),
                "naive": np.concatenate(naive)[:, j].mean(),
            }
        )
    return rows


def resolved(people: sim.Population, by_errors: bool) -> np.ndarray:
    """Chance of each record to be resolved."""
    size = people.pred.map(people.pred.value_counts()).to_numpy()
    chance = np.where(size >= 8, 0.35, np.where(size >= 3, 0.7, 0.95))
    whole = (people.pred.groupby(people.true).transform("nunique") == 1).to_numpy()
    return chance * np.where(whole | (not by_errors), 1.0, 0.6)


def nonresponse(people: sim.Population, by_errors: bool, rng: np.random.Generator) -> list[list[str]]:
    """Rows of metrics without adjustment, with it, and in the worst cases."""
    metrics, units = [m.b3_recall, m.b3_precision, R], people.units
    true = sim.truths(units, metrics)
    size = people.pred.map(people.pred.value_counts()).to_numpy()
    chance, unit = resolved(people, by_errors), units.ids.get_indexer(people.true)
    found = {"not adjusted": [], "adjusted": []}
    worst = []
    for _ in range(NONRESPONSE):
        record = rng.integers(len(unit), size=300)
        answered = rng.random(300) < chance[record]
        at = unit[record][answered]
        some, design = units.take(np.unique(at)), eb.UniformRecords(units.ids[at])
        adjusted = eb.design.Responding(design, answered, eb.design.size_classes(size[record], answered))
        for name, one in (("not adjusted", design), ("adjusted", adjusted)):
            fit = eb.engine.taylor(eb.Sample(some, one), metrics).apply(metrics)
            low, high = fit.interval().T
            found[name].append((fit.mean - true, (low <= true) & (true <= high)))
        answered = eb.Sample(some, adjusted)
        cases = with_cases(ClosedForm()(answered, metrics), answered, metrics).table()
        worst.append((cases["worst"] <= true) & (true <= cases["best"]))
    rows = []
    for j, metric in enumerate(metrics):
        row = ["by errors" if by_errors else "by size", metric.name, f"{true[j]:.3f}"]
        for results in found.values():
            bias, covered = (np.mean([r[k][j] for r in results]) for k in (0, 1))
            row += [f"{bias:+.4f}", f"{covered:.3f}"]
        bounded = np.isfinite(cases["lower"].iloc[j])
        rows.append([*row, f"{np.mean([w.iloc[j] for w in worst]):.3f}" if bounded else ""])
    return rows


def missed(row: dict[str, Any]) -> list[str]:
    """Bars that a row misses by more than two Monte Carlo standard errors."""
    bar = 0.95 if row["sequence"] == "betting" else 0.93
    faults = []
    if row["covered"] < bar - 2 * np.sqrt(bar * (1 - bar) / SAMPLES):
        faults.append(f"covers {row['covered']:.3f}")
    if row["passed"] > 0.05 + 2 * np.sqrt(0.05 * 0.95 / SAMPLES):
        faults.append(f"false passes {row['passed']:.3f}")
    return faults


if __name__ == "__main__":
    rng, rows = np.random.default_rng(18), []
    for population, people in populations().items():
        for design in DESIGNS:
            rows += [{"population": population} | row for row in cell(people.units, design, rng)]
    header = [
        "population",
        "design",
        "metric",
        "truth",
        "sequence",
        "all looks",
        "false pass",
        "width",
        "once",
        "naive",
    ]
    numbers = ("truth", "covered", "passed", "width", "once", "naive")
    cells = [
        [
            str(row["population"]),
            str(row["design"]),
            str(row["metric"]),
            f"{row['truth']:.3f}",
            str(row["sequence"]),
            *(f"{row[k]:.3f}" if np.isfinite(row[k]) else "" for k in numbers[1:]),
        ]
        for row in rows
    ]
    print(markdown(header, cells))
    faults = [
        f"{r['population']}, {r['design']}, {r['metric']}, {r['sequence']}: {f}"
        for r in rows
        for f in missed(r)
    ]
    law, errors = sim.Zeta(2.3, 40), sim.Chain([sim.Splits(0.3), sim.Merges(0.05)])
    people = sim.simulate(law, errors, 8000, 1)
    cases = [row for by_errors in (False, True) for row in nonresponse(people, by_errors, rng)]
    print()
    header = [
        "resolved",
        "metric",
        "truth",
        "bias",
        "covers",
        "bias, adjusted",
        "covers, adjusted",
        "worst cases cover",
    ]
    print(markdown(header, cases))
    for case, metric, *_, adjusted, worst in cases:
        if case == "by size" and float(adjusted) < 0.93 - 2 * np.sqrt(0.93 * 0.07 / NONRESPONSE):
            faults.append(f"non-response, {metric}: adjusted covers {adjusted}")
        if worst and float(worst) < 0.95 - 2 * np.sqrt(0.95 * 0.05 / NONRESPONSE):
            faults.append(f"non-response {case}, {metric}: worst cases cover {worst}")
    print(*["", *faults], sep="\n")
    stamp("stopping", "seed 18")
    sys.exit(bool(faults))
