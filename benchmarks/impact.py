"""Coverage and score of a user's own statistics (`erbayes.impact`), with the prediction and without.

    python benchmarks/impact.py [DRAWS] [unrelated | known] > impact.csv

Four pairs of releases of PatentsView, on which the method was designed, and six populations that had no
part in it: shops with few orders each, a registry with wrong merges, and accounts of households; then, made
last, patients with few duplicates, a catalogue of many offers, and donors with common names. Each is drawn
200 times or more. With `unrelated`, the prediction has nothing to do with the truth. `known` compares
metrics of the truth alone with and without the known number of predicted clusters, under draws of records and
of entities.
"""

import sys
import warnings
from itertools import product

import numpy as np
import pandas as pd
from figures import stamp

import erbayes as eb
from erbayes import datasets
from erbayes.analysis.impact import FittedStatistics, estimate_impact
from erbayes.engine.closed_form import ClosedForm
from erbayes.engine.fitted import taylor
from erbayes.metrics import resolve_metrics
from erbayes.metrics.statistics import Statistic, count, gini, mean, share, top
from erbayes.units.clustering import Clustering
from erbayes.units.features import Attributes, Featured, features_of

PAIRS = (
    ("20220630", "20211230"),
    ("20220630", "20201229"),
    ("20220630", "20190820"),
    ("20201229", "20171226"),
)
FEATURES = {"span": ("x", "range"), "first": ("x", "min"), "sales": ("y", "sum")}


def releases():
    """Pairs of releases: records, truth, prediction and attributes of records."""
    found = datasets.patentsview_releases()
    year = datasets.patentsview_mentions().reindex(found.index).year.astype(float).fillna(2000).to_numpy()
    for truth, prediction in PAIRS:
        both = (found[truth].notna() & found[prediction].notna()).to_numpy()
        t, p = (pd.factorize(found[c][both])[0] for c in (truth, prediction))
        yield f"{prediction} for {truth}", t, p, (year[both] - 2000) / 10, np.ones(both.sum())


def shops(rng):
    """Customers with lognormal sales, a third of which the matcher splits in two."""
    size = 1 + rng.negative_binomial(0.6, 0.12, 9000)
    t = np.repeat(np.arange(len(size)), size)
    split = rng.random(len(size)) < 0.33
    p = pd.factorize(2 * t + (split[t] & (rng.random(len(t)) < 0.4)))[0]
    taste = rng.normal(0, 0.8, len(size))[t]
    return t, p, rng.gamma(2, 1.5, len(t)) + 0.5 * taste, np.exp(3 + taste + rng.normal(0, 0.7, len(t)))


def registry(rng):
    """Firms of a heavy tail, of which the matcher merges a fifth with another, large ones more often."""
    size = np.minimum(rng.zipf(2.3, 12000), 150)
    t = np.repeat(np.arange(len(size)), size)
    merged = rng.random(len(size)) < 0.12 + 0.2 * (size > 5)
    to = np.where(merged, rng.integers(0, len(size), len(size)), np.arange(len(size)))
    age = rng.uniform(0, 4, len(size))[t]
    return t, pd.factorize(to[t])[0], age + rng.exponential(0.5, len(t)), rng.gamma(1 + age, 2.0)


def households(rng):
    """Persons of one to six records, a tenth of which have been given to another of the same household."""
    size = rng.choice([1, 2, 3, 4, 6], 15000, p=[0.45, 0.25, 0.15, 0.1, 0.05])
    t = np.repeat(np.arange(len(size)), size)
    p = pd.factorize(np.where(rng.random(len(t)) < 0.1, t - t % 3 + rng.integers(0, 3, len(t)), t))[0]
    income = rng.lognormal(3, 0.5, len(size))[t]
    return t, p, rng.normal(0, 1, len(t)) + np.log(income), income


def patients(rng):
    """Mostly one record each; the matcher misses a third of the few duplicates, and joins strangers."""
    size = rng.choice([1, 2, 3, 5, 9], 16000, p=[0.8, 0.12, 0.05, 0.02, 0.01])
    t = np.repeat(np.arange(len(size)), size)
    N = len(t)
    p = np.where(rng.random(N) < 0.33 * (size[t] > 1), 10**7 + np.arange(N), t)
    stranger = rng.random(N) < 0.02
    p = pd.factorize(np.where(stranger, t[rng.integers(0, N, N)], p))[0]
    sick = rng.gamma(0.7, 1, len(size))[t]
    return t, p, rng.normal(0, 1, N) + sick, rng.gamma(0.8, 30, N) * (1 + sick)


def catalogue(rng):
    """Products with fourteen offers on average, half of which the matcher cuts into those of four shops."""
    size = rng.geometric(1 / 14, 2500)
    t = np.repeat(np.arange(len(size)), size)
    shop = rng.integers(0, 4, len(t))
    p = pd.factorize(np.where(rng.random(len(size))[t] < 0.5, 4 * t + shop, 4 * t))[0]
    price = rng.lognormal(2, 1, len(size))[t]
    return t, p, rng.uniform(0, 5, len(t)), price * rng.uniform(0.8, 1.2, len(t))


def donors(rng):
    """Gifts with a heavy tail; donors with common names are joined, in groups of several."""
    size = 1 + np.minimum(rng.zipf(2.0, 9000) - 1, 100)
    t = np.repeat(np.arange(len(size)), size)
    name, common = rng.zipf(1.6, len(size)) % 4000, rng.random(len(size)) < 0.25
    to = np.where(common, 10**6 + name, np.arange(len(size)))
    lost = rng.random(len(t)) < 0.08
    p = pd.factorize(np.where(lost, 2 * 10**6 + np.arange(len(t)), to[t]))[0]
    rich = rng.pareto(2.2, len(size))[t] + 0.2
    return t, p, rng.uniform(0, 3, len(t)), rich * rng.gamma(2, 20, len(t))


def populations(unrelated):
    found = [
        *releases(),
        *((f.__name__, *f(np.random.default_rng(11))) for f in (shops, registry, households)),
        *((f.__name__, *f(np.random.default_rng(31))) for f in (patients, catalogue, donors)),
    ]
    for name, t, p, x, y in found:
        yield name, t, np.random.default_rng(3).permutation(p) if unrelated else p, x, y


def slope(name, y, x):
    """Slope of least squares, with influences over 1 less the leverage (MacKinnon and White 1985)."""

    def function(rows, w):
        X = np.column_stack([np.ones(len(rows)), x(rows)])
        part = np.linalg.solve(X.T @ (w[:, None] * X), X.T)
        B = part @ (w * y(rows))
        left = 1 - np.minimum(w * np.sum(X * part.T, axis=1), 0.9)
        return B[1], part[1] * (y(rows) - X @ B) / left

    return Statistic(name, function, terms=("first", "span"))


def statistics(released):
    many = 10 if released else 4
    span = 0.5 if released else 1.0
    return [
        count(),
        mean("size"),
        count(f"size>={many}"),
        count(f"size>={5 * many}") if released else share("size>=2"),
        share(f"span>={span}"),
        mean("span"),
        gini(),
        top(0.01),
        top(100),
        gini("sales") if not released else top(0.1),
        slope("log size on first", lambda rows: np.log(rows["size"]), lambda rows: rows["first"]),
        slope("span on log size", lambda rows: rows["span"], lambda rows: np.log(rows["size"])),
    ]


def study(draws, unrelated, sizes=(200, 400)):
    """Table of cells: population, number of draws and statistic."""
    cells = []
    for name, t, p, x, y in populations(unrelated):
        records = pd.RangeIndex(len(t))
        labels, prediction = (Clustering.of(pd.Series(c, records)) for c in (t, p))
        units = eb.measure(prediction, labels)
        table = pd.DataFrame({"record": records, "x": x, "y": y})
        attributes = Attributes.of(table, features_of(FEATURES), None, records)
        featured = Featured.of(units, prediction, labels, attributes)
        known = FittedStatistics.of(featured, statistics("for" in name))
        true = np.array([s.value(featured.entities, np.ones(len(units))) for s in known.statistics])
        of_record = labels.codes
        for n in sizes:
            rng, runs = np.random.default_rng(5), []
            for _ in range(draws):
                design = eb.UniformRecords()
                expansion = design.expand_draws(units, of_record[rng.integers(0, len(t), n)])
                found = estimate_impact(eb.Sample(units, design, expansion), known, featured)
                for j, fit in enumerate((found.plain, found.fit)):
                    ends = fit.interval()
                    mean = np.where(np.isnan(found.fit.mean), np.nan, fit.mean)
                    runs += zip(fit.names, [j] * len(true), mean, *ends.T, found.weights, strict=True)
            r = pd.DataFrame(runs, columns=["statistic", "assisted", "mean", "lower", "upper", "weight"])
            value = r["statistic"].map(dict(zip(found.fit.names, true, strict=True)))
            miss = np.maximum(r["lower"] - value, 0) + np.maximum(value - r["upper"], 0)
            r["cover"] = (miss == 0).where(r["mean"].notna())
            r["score"] = ((r["upper"] - r["lower"] + 40 * miss) / value.abs()).where(r["mean"].notna())
            r["error"] = (r["mean"] - value) / value.abs()
            r["refused"] = r["mean"].isna()
            by = r.groupby(["statistic", "assisted"], sort=False)
            table = by[["cover", "score", "error", "refused", "weight"]].mean()
            table["rmse"] = by["error"].agg(lambda e: np.sqrt((e**2).mean()))
            wide = table.unstack("assisted")
            wide.columns = [f"{'assisted' if j else 'plain'} {c}" for c, j in wide.columns]
            naive = dict(zip(found.fit.names, found.predicted / true - 1, strict=True))
            cells.append(wide.assign(population=name, n=n, naive=wide.index.map(naive)).reset_index())
    cells = pd.concat(cells)
    cells["ratio"] = cells["assisted score"] / cells["plain score"]
    return cells


def study_known(draws, sizes=(200, 400)):
    """Table of cells: metrics with and without the known number of predicted clusters."""
    metrics, runs = resolve_metrics(["entities", "mean-cluster-size", "singleton-share", "hill1"]), []
    for name, t, p, *_ in populations(False):
        units, of_record = eb.measure(pd.Series(p), pd.Series(t)), pd.factorize(t)[0]
        true = taylor(eb.Sample(units, eb.UniformClusters(len(units))), metrics).apply(metrics).mean
        designs: tuple[eb.UniformRecords | eb.UniformClusters, ...] = (
            eb.UniformRecords(),
            eb.UniformClusters(),
        )
        for design, n in product(designs, sizes):
            rng, by_record = np.random.default_rng(9), isinstance(design, eb.UniformRecords)
            for _ in range(draws):
                drawn = rng.integers(0, len(t) if by_record else len(units), n)
                drawn, draw = np.unique(of_record[drawn] if by_record else drawn, return_inverse=True)
                own = units.take(drawn)
                sample = eb.Sample(own, design, design.expand_draws(own, draw))
                plain = taylor(sample, metrics).apply(metrics)
                for kind, fit in (("plain", plain), ("known", ClosedForm()(sample, metrics))):
                    miss = np.maximum(fit.interval()[:, 0] - true, 0) + np.maximum(
                        true - fit.interval()[:, 1], 0
                    )
                    score = np.diff(fit.interval())[:, 0] + 40 * miss
                    cell = type(design).__name__, name, n
                    runs += [
                        (*cell, *r) for r in zip(fit.names, [kind] * 4, miss <= 1e-9, score, strict=True)
                    ]
    table = pd.DataFrame(runs, columns=["design", "population", "n", "metric", "kind", "cover", "score"])
    wide = table.groupby([*table.columns[:5]], sort=False)[["cover", "score"]].mean().unstack()
    found = wide["cover"].assign(ratio=wide["score"]["known"] / wide["score"]["plain"])
    return found.groupby(["design", "metric"], sort=False).agg(["mean", "min", "max"])


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[2:] == ["known"]:
        print(study_known(int(sys.argv[1])).round(3).to_string())
        stamp("impact", "seeds 5 and 9")
        sys.exit()
    cells = study(int(sys.argv[1]) if len(sys.argv) > 1 else 200, len(sys.argv) > 2)
    cells.to_csv(sys.stdout, index=False, float_format="%.4f")
    pd.set_option("display.width", 220, "display.max_columns", 30, "display.max_rows", 300)
    kept = ["plain cover", "assisted cover", "assisted refused", "ratio", "naive"]
    print(cells.groupby(["population", "n"], sort=False)[kept].mean().round(3), file=sys.stderr)
    print(cells.groupby("statistic", sort=False)[kept].mean().round(3), file=sys.stderr)
    low = cells[cells["assisted cover"] < 0.92]
    print(low[["population", "n", "statistic", *kept]].round(3).to_string(), file=sys.stderr)
    stamp("impact", "seeds 5 and 9")
