"""Metrics by domain: coverage, false flags among equal groups, filtered labels, and speed. Writes domains.md.

Truth is the release of 2022-06-30 of PatentsView, or a simulated population. Groups hold 1, 5, 20 and 50 % of
the records, and the rest. They are drawn record by record, entity by entity, or follow the patents' numbers.
"""

import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import populations as simulate
from common import RELEASES as BEDS
from common import table
from figures import stamp

import erbayes as eb
from erbayes.analysis.domains import by_domain, in_domain
from erbayes.analysis.rows import degrees, effective_draws
from erbayes.datasets import patentsview_benchmark, patentsview_release, patentsview_releases
from erbayes.units.grouping import Of

TRUTH, SAMPLES, FLAGGED, EQUAL = "20220630", 400, 300, 10
SHARES = {"1 %": 0.01, "5 %": 0.05, "20 %": 0.2, "50 %": 0.5, "rest": 0.24}
METRICS = (*eb.metrics.DEFAULT_METRICS, eb.metrics.entities, eb.metrics.mean_cluster_size)
DESIGN = eb.UniformRecords()
ENOUGH, FEW = 30, 10
MARK = "<!-- results -->"


def populations() -> dict[str, tuple[pd.Series, pd.Series]]:
    """Prediction and truth of each population."""
    releases = patentsview_releases()
    pairs = {}
    for bed in BEDS:
        both = releases[[bed, TRUTH]].dropna()
        pairs[bed] = (both[bed], both[TRUTH])
    errors = simulate.Chain((simulate.Splits(0.15), simulate.Misattribution(0.05)))
    laws = {"negative binomial": simulate.NegativeBinomial(3, 1), "zeta": simulate.Zeta(2.5)}
    for name, law in laws.items():
        rng = np.random.default_rng(1)
        truth = simulate.population(law, 100_000, rng)
        pairs[name] = (pd.Series(errors.apply(truth.to_numpy(), rng), truth.index), truth)
    return pairs


def groups(truth: pd.Series, of: str, rng: np.random.Generator) -> pd.Series:
    """Return a group of every record, by record, by entity, or by order of ids."""
    ends, names = np.cumsum(list(SHARES.values())), np.array(list(SHARES))
    if of == "records":
        place = rng.random(len(truth))
    elif of == "entities":
        codes, entities = pd.factorize(truth)
        place = rng.random(len(entities))[codes]
    else:
        place = np.empty(len(truth))
        place[np.argsort(truth.index.astype(str))] = np.linspace(0, 1, len(truth))
    codes = np.minimum(np.searchsorted(ends, np.asarray(place)), len(names) - 1)
    return pd.Series(names[codes], truth.index, name="group")


def coverage(
    prediction: pd.Series, truth: pd.Series, of: str, draws: int, rng: np.random.Generator
) -> pd.DataFrame:
    """Return whether each interval holds the truth, with its effective draws, by sample, group and metric."""
    units = eb.measure(prediction, truth).grouped(groups(truth, of, rng), name="group", prediction=prediction)
    domains = units.groupings[0].domains()
    metrics = [*(in_domain(m, d, known=True) for d in domains for m in METRICS), *METRICS]
    exact = (
        eb.engine.taylor(eb.Sample(units, eb.UniformClusters(population=len(units))), metrics)
        .apply(metrics, 1)
        .mean
    )
    at = units.ids.get_indexer(truth)
    rows = []
    for _ in range(SAMPLES // 20):
        drawn = at[rng.integers(len(at), size=(20, draws))]
        sample = eb.Sample.many(units, DESIGN, drawn)
        fit = eb.engine.taylor(sample, metrics).apply(metrics)
        singles = [eb.Sample(units, DESIGN, DESIGN.expand_draws(units, d)) for d in drawn]
        grouped = metrics[: -len(METRICS)]
        df = np.stack([np.append(degrees(one, grouped), np.full(len(METRICS), np.inf)) for one in singles])
        lower, upper = np.moveaxis(replace(fit, df=np.fmin(fit.df, df)).interval(), -1, 0)
        held = (lower <= exact * (1 + 1e-12)) & (exact <= upper * (1 + 1e-12))
        effective = [effective_draws(one, metrics) for one in singles]
        rows += [pd.DataFrame({"n_eff": n, "held": h}) for n, h in zip(effective, held, strict=True)]
    names = pd.MultiIndex.from_product(
        [range(SAMPLES // 20 * 20), [*map(str, domains), "all records"], [m.name for m in METRICS]]
    )
    return pd.concat(rows).set_index(names.set_names(["sample", "group", "metric"]))


def flags(
    prediction: pd.Series, truth: pd.Series, draws: int, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Shares of samples in which one of ten equal groups differs from the rest, or from another one.

    The groups are ten copies of one population, so that their metrics are equal exactly.
    """
    predicted, true = pd.factorize(prediction)[0], pd.factorize(truth)[0]
    copy = np.repeat(np.arange(EQUAL), len(true))
    many = np.tile(true, EQUAL) + copy * (true.max() + 1)
    units = eb.measure(pd.Series(np.tile(predicted, EQUAL) + copy * (predicted.max() + 1)), pd.Series(many))
    at, group = units.ids.get_indexer(many), pd.Series(copy, name="group")
    metrics = ["pairwise-precision", "b3-recall"]
    found = {m: np.zeros(2) for m in metrics}
    for _ in range(FLAGGED):
        drawn = at[rng.integers(len(at), size=draws)]
        used, place = np.unique(drawn, return_inverse=True)
        part = units.take(used)
        sample = eb.Sample(part, DESIGN, DESIGN.expand_draws(part, place))
        assert part.piece_of is not None
        result = by_domain(sample, group[part.piece_of.index], metrics)
        for i, shown in enumerate((result.against_rest(), result.differences())):
            for m in metrics:
                own = shown[shown.metric == m]
                found[m][i] += ((own.lower > 0) | (own.upper < 0)).any()
    return {m: x / FLAGGED for m, x in found.items()}


def filtered(rng: np.random.Generator) -> list[list[str]]:
    """Return the number of old entities by filtered labels and as a domain, and how often balance alarms."""
    releases = patentsview_releases()[["20190820", TRUTH]].dropna()
    prediction, truth = releases["20190820"], releases[TRUTH]
    era = releases.index.str.extract(r"US(\d+)")[0].astype(float).to_numpy() < 7_000_000
    old = pd.Series(era, releases.index).groupby(truth).mean() > 0.5
    units = eb.measure(prediction, truth)
    sizes = truth.map(truth.value_counts())
    exact = (1 / sizes)[truth.map(old).to_numpy()].sum()
    at = units.ids.get_indexer(truth)
    estimates, alarms = {"filtered labels": [], "domain": []}, {"filtered labels": 0, "domain": 0}
    kept = old.reindex(units.ids).to_numpy()
    held = 0
    for _ in range(SAMPLES // 2):
        drawn = at[rng.integers(len(at), size=400)]
        for name, chosen in (("filtered labels", drawn[kept[drawn]]), ("domain", drawn)):
            used, place = np.unique(chosen, return_inverse=True)
            part = units.take(used)
            sample = eb.Sample(part, DESIGN, DESIGN.expand_draws(part, place))
            alarms[name] += any("balance" in a for a in eb.alarms(sample, "entities"))
            if name == "domain":
                result = by_domain(
                    sample,
                    pd.Series(old.map({True: "old", False: "new"}), name="era"),
                    ["entities"],
                    of=Of.ENTITIES,
                )
                row = result.table().set_index("domain").loc["old"]
                estimates[name].append(row.estimate)
                held += row.lower <= exact <= row.upper
            else:
                estimates[name].append(eb.engine.taylor(sample, "entities").apply("entities").mean[0])
    n = len(estimates["domain"])
    return [
        [
            name,
            f"{exact:,.0f}",
            f"{np.mean(x):,.0f}",
            f"{alarms[name] / n:.2f}",
            f"{held / n:.2f}" if name == "domain" else "",
        ]
        for name, x in estimates.items()
    ]


def speed() -> list[str]:
    """Seconds of the ungrouped estimate, of all metrics by 50 groups, and their ratio; medians of 7."""
    prediction, labels = patentsview_release("20211230"), patentsview_benchmark()
    labels = labels[labels.index.isin(prediction.index)]
    group = pd.Series(np.random.default_rng(1).integers(0, 50, len(labels)), labels.index, name="group")
    warnings.simplefilter("ignore")

    def seconds(work) -> float:
        times = []
        for _ in range(7):
            start = time.process_time()
            work()
            times.append(time.process_time() - start)
        return float(np.median(times))

    plain = seconds(lambda: eb.estimate(prediction, labels, DESIGN, eb.metrics.ALL).table())
    sample = eb.Sample(eb.measure(prediction, labels), DESIGN)
    grouped = seconds(lambda: by_domain(sample, group, eb.metrics.ALL).table())
    return [f"{plain:.3f}", f"{grouped:.3f}", f"{grouped / plain:.2f}"]


def main() -> None:
    """Print all parts, and write them to domains.md."""
    rng, parts = np.random.default_rng(2), populations()
    cells, text = (
        [],
        [(Path(__file__).parent / "domains.md").read_text(encoding="utf-8").split(MARK)[0] + MARK],
    )
    for name, (prediction, truth) in parts.items():
        for of in ("records", "entities", "order of ids"):
            for draws in (200, 1000, 4000):
                found = coverage(prediction, truth, of, draws, rng).assign(
                    population=name, of=of, draws=draws
                )
                cells.append(found.reset_index())
                print(name, of, draws, found[found.n_eff >= ENOUGH].held.mean(), flush=True)
    held = pd.concat(cells)
    held["draws that count"] = pd.cut(
        held.n_eff,
        [0, FEW, ENOUGH, 100, np.inf],
        labels=["below 10", "10 to 30", "30 to 100", "100 or more"],
        right=False,
    )
    plain = held.group == "all records"
    everyone, held = held[plain], held[~plain]
    enough = held[held.n_eff >= ENOUGH]

    def shown(rows: pd.DataFrame, by: list[str]) -> str:
        found = rows.groupby(by, observed=True, sort=False).held.agg(["mean", "size"])
        index = [i if isinstance(i, tuple) else (i,) for i in found.index]
        lines = [
            [*map(str, i), f"{x:.3f}", f"{n:,.0f}"] for i, (x, n) in zip(index, found.to_numpy(), strict=True)
        ]
        return table([*by, "coverage", "intervals"], lines)

    def part(title: str, *blocks: str) -> None:
        text.append("\n\n".join([f"## {title}", *blocks]))
        print(text[-1], flush=True)

    part("Coverage by effective draws", shown(held.sort_values("n_eff"), ["draws that count"]))
    part("The same for all records", shown(everyone.sort_values("n_eff"), ["draws that count"]))
    part(
        "Coverage with 30 effective draws or more",
        *(shown(enough, [by]) for by in ("population", "of", "group", "metric")),
    )
    cell = enough.groupby(["population", "of", "draws", "group", "metric"], observed=True).held.agg(
        ["mean", "size"]
    )
    worst = cell[cell["size"] >= SAMPLES // 4].sort_values("mean").head(12)
    lines = [
        [*map(str, i), f"{x:.3f}", f"{n:,.0f}"]
        for i, (x, n) in zip(worst.index, worst.to_numpy(), strict=True)
    ]
    large = cell[cell["size"] >= SAMPLES // 4]["mean"]
    part(
        "The worst cells",
        f"{(large >= 0.93).mean():.0%} of {len(large):,} cells cover .93 or more; "
        f"the median is {large.median():.3f}.",
        table([*cell.index.names, "coverage", "intervals"], lines),
    )
    rng, lines = np.random.default_rng(2), []
    for name in ("20190820", "zeta"):
        for draws in (400, 1500):
            for metric, (rest, pair) in flags(*parts[name], draws, rng).items():
                lines.append([name, f"{draws:,}", metric, f"{rest:.3f}", f"{pair:.3f}"])
    part(
        "False flags among ten equal groups",
        table(["population", "draws", "metric", "against the rest", "pairs"], lines),
    )
    part(
        "Filtered labels and domains",
        table(
            ["way", "truth", "mean estimate", "share with the alarm", "coverage"],
            filtered(np.random.default_rng(2)),
        ),
    )
    part("Speed", table(["all records", "50 groups", "ratio"], [speed()]))
    (Path(__file__).parent / "domains.md").write_text("\n\n".join(text) + "\n", encoding="utf-8")
    stamp("domains", "seed 2")


if __name__ == "__main__":
    main()
