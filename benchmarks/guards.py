"""What each guard of assisted estimates earns: every guard on, and each one off, on the same samples.

    python benchmarks/guards.py OUTPUT [--off GUARD,GUARD,...] [--confirm] [--samples N]

Populations, metrics, score and rule were written down before any result was seen; no guard was chosen on
these populations or on their seeds. OUTPUT keeps the intervals of each population as a file of its own, so
that a stopped study goes on. `--off` starts from a set of guards that are off already: then each of the
others is turned off, and each of these is turned on again. `--confirm` takes populations that have no part in
the choice.

A cell is a population, a design, a number of draws and a metric. Cells in which fewer than 5 % of the samples
have help, with the guard or without it, are left out: there both estimates are the default. For each guard

- coverage is that of 95 % intervals, counted up to .95, since more is no merit;
- the score is the mean 95 % interval score over that of the default estimate on the same samples;
- differences are paired by sample.

Rule. A guard stays

1. if without it mean coverage, counted up to .95, is .01 lower over the cells, or
2. if without it the mean score is .05 higher, or
3. if it prevents a collapse: without it the coverage of a single cell is .90 or less, at least .05 lower than
   with it, and by at least four paired standard errors; or its score is at least .25 higher, by as many.

Four standard errors, because there are thousands of cells. What fails goes, all at once. Then each
guard that went is turned on again, and each that stayed is turned off, under the same rule.
"""

import argparse
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import populations as sim
from assisted import Case, joined, looser, paired, releases, shuffled, simulated, split
from common import PLANS
from common import table as as_table
from scipy.special import ndtr, ndtri, stdtrit

import erbayes as eb
from erbayes import metrics as m
from erbayes.auxiliary.correction import Linearised
from erbayes.auxiliary.reference import (
    FullCount,
    evaluate_metric,
    find_reached,
    mark_pieces,
    mark_possible_parts,
)
from erbayes.engine.closed_form import columns_of
from erbayes.engine.leave_one_out import scaled_changes
from erbayes.metrics.columns import Known
from erbayes.metrics.intervals import DEFAULT
from erbayes.study import draw_samples
from erbayes.units.units import Units

METRICS = (m.pairwise_precision, m.pairwise_recall, m.b3_precision, m.b3_recall, m.cluster_recall)
SAMPLES = 100
LEVEL = 0.95
HELPED = 0.05
"""Share of samples with help, below which a cell says nothing of guards."""
MEAN_COVERAGE, MEAN_SCORE = 0.01, 0.05
LEAST_COVERAGE, COLLAPSE, WORSE, ERRORS = 0.90, 0.05, 0.25, 4.0

GUARDS = {
    "folds": "the weight of a draw comes from the other four folds of draws",
    "tenth": "no help that explains less than a tenth of the variance",
    "shorter": "no help that does not shorten the interval",
    "fewest": "no help from fewer than two effective draws",
    "clip": "the weight is cut to [0, 1]",
    "pseudo": "two pseudo-draws on which the second clustering is wrong",
    "typical": "pseudo-draws move no further than a draw without help",
    "share": "pseudo-draws weigh more than 1/n if the design draws small entities rarely",
    "jackknife": "the variance of the jackknife, if it is larger",
    "kurtosis": "degrees of freedom from the kurtosis of what is left",
    "satterthwaite": "pseudo-draws add degrees of freedom",
    "skewness": "the end on the side of few large residuals is further away",
    "larger": "clusters larger than any reached one are out of reach",
    "parts": "parts of a predicted giant are out of reach",
    "most": "the cluster that matters most is out of reach",
    "half": "the place that matters most is halfway between both answers",
    "level": "the level of both ends of the range is lower (Imbens and Manski)",
    "reach": "all of the last five",
}
GONE = "folds,tenth,shorter,fewest,jackknife,kurtosis,satterthwaite,level"
"""Guards that the package had, and has no longer: `--off` with these is the package as it is."""


def without_large(case: Case, above: int) -> Case:
    """Leave large entities as the prediction has them: the second clustering mends small ones alone."""
    kind, truth, prediction, second = case
    large = np.bincount(truth)[truth] > above
    return kind, truth, prediction, np.where(large, second.max() + 1 + prediction, second)


def chosen_on() -> dict[str, Case]:
    zeta = simulated(
        "good",
        sim.Zeta(2.5, 400),
        sim.Chain((sim.Splits(0.15), sim.Merges(0.1))),
        sim.Misattribution(0.03),
        901,
    )
    giants = simulated("good", sim.Zeta(2.2, 600), sim.Misattribution(0.1), sim.Misattribution(0.01), 902)
    crowd = simulated("good", sim.LogNormal(0.4, 1.3), sim.Misattribution(0.1), sim.Misattribution(0.01), 903)
    pairs = simulated("good", sim.Zeta(2.3, 600), sim.Merges(0.1), sim.Misattribution(0.01), 904)
    rare = sim.Chain((sim.RareErrors(60), sim.Splits(0.01)))
    return {
        "Zeta, splits and merges by .03 noise": zeta,
        "log-normal, .15 noise by splits .04": simulated(
            "good", sim.LogNormal(0.8, 1.1), sim.Misattribution(0.15), sim.Splits(0.04), 905
        ),
        "Pitman-Yor, .2 noise by .1 noise": simulated(
            "middling", sim.PitmanYor(800.0, 0.4), sim.Misattribution(0.2), sim.Misattribution(0.1), 906
        ),
        "negative binomial, .01 noise by .15 noise": simulated(
            "worse", sim.NegativeBinomial(2, 1), sim.Misattribution(0.01), sim.Misattribution(0.15), 907
        ),
        "log-normal, splits .2 by looser": looser(
            "worse", sim.LogNormal(0.6, 0.9), sim.Splits(0.2), sim.Merges(0.15), 908
        ),
        "Zeta by random clusters": shuffled(zeta),
        "Zeta, splits .3 by rare errors": simulated("rare", sim.Zeta(2.6, 150), sim.Splits(0.3), rare, 909),
        "log-normal by mended small entities": without_large(crowd, 15),
        "Zeta, first and third giants joined": joined(giants, (0, 2)),
        "log-normal, over 80 records split in four": split(crowd, 80, 4),
        "Zeta, ranks 5 to 34 joined in pairs": paired(pairs, 4, 34),
        "2019-03-12 by 2020-06-30 of 2021-12-30": releases("good", "20190312", "20200630", "20211230"),
        "2017-10-03 by 2019-08-20 of 2020-12-29": releases("middling", "20171003", "20190820", "20201229"),
        "log-normal, .15 noise by four of .5 noise": simulated(
            "several", sim.LogNormal(0.5, 1.0), sim.Misattribution(0.15), sim.Misattribution(0.5), 910
        ),
    }


def set_aside() -> dict[str, Case]:
    """Populations on which the guards that stay are judged once."""
    ewens = simulated("good", sim.PitmanYor(1500.0), sim.Misattribution(0.12), sim.Misattribution(0.02), 951)
    zeta = simulated("good", sim.Zeta(2.4, 500), sim.Splits(0.2), sim.Splits(0.02), 952)
    return {
        "Ewens, .12 noise by .02 noise": ewens,
        "Ewens, .12 noise by mended small entities": without_large(ewens, 25),
        "Zeta, splits .2, first two giants joined": joined(zeta),
        "Zeta, splits .2, over 60 records split in three": split(zeta, 60, 3),
        "negative binomial, merges .1 by rare errors": simulated(
            "rare", sim.NegativeBinomial(3, 1.2), sim.Merges(0.1), sim.RareErrors(80), 953
        ),
        "log-normal, merges .05 by looser": looser(
            "worse", sim.LogNormal(0.7, 1.0), sim.Merges(0.05), sim.Misattribution(0.2), 954
        ),
        "Pitman-Yor, .1 noise by .3 noise": simulated(
            "worse", sim.PitmanYor(900.0, 0.3), sim.Misattribution(0.1), sim.Misattribution(0.3), 955
        ),
        "2018-05-28 by 2020-03-31 of 2020-12-29": releases("good", "20180528", "20200331", "20201229"),
    }


def sizes(kind: str) -> tuple[int, ...]:
    """Numbers of draws: few ones too where the help is weak, since a weight fits their noise."""
    return (40, 100, 400) if kind in {"worse", "middling", "no use", "several"} else (100, 400)


# One sample, with the guards as switches


class Effects:
    """Effects of draws on metrics, and their exact changes without each draw, `jack`, (n, metrics)."""

    def __init__(self, sample: eb.Sample) -> None:
        first = Linearised.of(sample, METRICS)
        self.sample, self.fit, self.linear = sample, first.fit, first.linear
        self.refuse, self.varies = first.refuse, first.varies
        self.jack = scaled_changes(sample, eb.engine.taylor(sample, METRICS), METRICS)
        self.draws = np.broadcast_to(self.fit.effective, self.fit.mean.shape)

    def can_help(self, j: int) -> bool:
        return bool(np.isfinite(self.jack[:, j]).all()) and not self.fit.reasons[j] and self.varies(j)

    def of_interval(self, j: int) -> float:
        """Return the variance that the pseudo-draws of the default interval add to metric j."""
        reach, effective = self.fit.reach[j], self.draws[j]
        return float(DEFAULT.share(reach, effective) / effective * np.sum(reach**2))


class Reach:
    """Values of metrics with a second clustering as the truth, and as predicted out of reach, by guards."""

    def __init__(self, second: eb.auxiliary.Second) -> None:
        self.full, self.units = FullCount(second.whole, second.count), second.units
        self.metrics = {metric: self._prepare(metric) for metric in METRICS}

    def _prepare(self, metric: m.Metric) -> tuple:
        names, totals, known = self.full.totals([metric])
        columns, _ = columns_of([metric])
        cut = np.stack([self.full.cut.column(c) for c in columns], axis=1) - totals
        order = self.full.order_by_influence(metric, columns)
        return names, totals, known, columns, totals.sum(axis=0), cut, order

    def _as_predicted(self, beyond: np.ndarray) -> Units | None:
        """Return the records of some clusters as one unit, for which the prediction is right."""
        whole = self.full.whole
        inside = beyond[whole.unit]
        if not inside.any():
            return None
        cluster, piece = np.unique(whole.cluster[inside], return_inverse=True)
        n, sizes = np.bincount(piece, whole.n[inside]), np.empty(len(cluster))
        sizes[piece] = whole.m[inside]
        zero = np.zeros(len(n), dtype=np.int64)
        return Units(pd.Index(["all"]), zero, np.arange(len(n)), n, n, sizes, cluster, known=None)

    def values(self, position: np.ndarray, offs: list[frozenset[str]]) -> dict:
        """Return the three values of each metric for each set of guards that are off, (3,)."""
        mine, size, whole = mark_pieces(self.units, position), self.full.whole.size, self.full.whole
        reached = np.zeros(len(size), dtype=bool)
        reached[find_reached(self.units, mine, self.units.group, self.units.N)] = True
        limit = float(size[reached].max(initial=0))
        larger = (size > limit) & ~reached
        parts = mark_possible_parts(self.units, whole, mine, limit) & ~reached & ~larger
        found: dict = {}
        merged: dict = {}
        for metric, (names, totals, known, columns, every, cut, order) in self.metrics.items():
            for use in {_kinds(off) for off in offs}:
                beyond = larger * use[0] | parts * use[1]
                gone = totals[beyond].sum(axis=0)
                if use[:2] not in merged:
                    merged[use[:2]] = self._as_predicted(beyond)
                units = merged[use[:2]]
                counted = [c.count(units)[0] for c in columns] if units else np.zeros(len(columns))
                predicted = every - gone + counted
                free = order[~reached[order]]
                first = free[:1] if use[2] else free[:0]
                alone = free[~beyond[free]][:1] if use[2] else free[:0]
                most = every + cut[first].sum(axis=0)
                answers = np.stack([every, most, predicted + cut[alone].sum(axis=0)])
                found[metric, use] = evaluate_metric(
                    metric, names, np.hstack([answers, np.tile(known, (3, 1))])
                )
        return found


def _kinds(off: frozenset[str]) -> tuple[bool, bool, bool]:
    """Whether larger clusters, parts, and the one that matters most are out of reach."""
    return tuple("reach" not in off and kind not in off for kind in ("larger", "parts", "most"))


def likely(values: np.ndarray, right: float, off: frozenset[str]) -> tuple[float, float, float]:
    """Return the likely value of a metric, the least and the largest."""
    whole, most, predicted = values
    low, high = float(np.nanmin(values[[0, 2]])), float(np.nanmax(values[[0, 2]]))
    if not np.isfinite(values).all():
        return (low + high) / 2, low, high
    if "half" in off or "reach" in off or not _kinds(off)[2]:
        return float(right * whole + (1 - right) * predicted), low, high
    return float(np.clip((whole + most) / 2 + (1 - right) * (predicted - most), low, high)), low, high


def fit_weights(target: np.ndarray, effect: np.ndarray, unit: np.ndarray, off: frozenset[str]) -> np.ndarray:
    """Return the weight of each draw, (n,)."""
    if "folds" in off:
        square = np.sum(effect**2)
        slope = np.full(len(unit), np.sum(target * effect) / square if square > 0 else 0.0)
    else:
        first_to_last = effect, target, np.bincount(unit)[unit].astype(float)
        rounded = [np.round(x / (np.abs(x).max() or 1.0), 9) for x in first_to_last]
        order = np.lexsort((unit, *rounded[::-1], np.abs(rounded[0])))
        fold = np.empty(len(unit), dtype=np.int64)
        fold[order] = (np.cumsum(np.diff(unit[order], prepend=-1) != 0) - 1) % 5
        product, square = (np.bincount(fold, x, 5) for x in (target * effect, effect**2))
        others = square.sum() - square
        slope = np.divide(product.sum() - product, others, out=np.zeros(5), where=others > 0)[fold]
    return slope if "clip" in off else np.clip(slope, 0, 1)


def choose_weights(
    target: np.ndarray, effects: np.ndarray, unit: np.ndarray, off: frozenset[str]
) -> np.ndarray:
    """Return the weight of each second clustering for each draw, (n, s)."""
    weights, left = np.zeros_like(effects), target
    for _ in range(effects.shape[1]):
        moves = [e - np.sum(weights * effects, axis=1) for e in effects.T]
        steps = [fit_weights(left, move, unit, off) for move in moves]
        rests = [left - step * move for step, move in zip(steps, moves, strict=True)]
        best = int(np.argmin([np.sum(rest**2) for rest in rests]))
        if np.sum(rests[best] ** 2) >= (1.0 if "tenth" in off else 0.9) * np.sum(left**2):
            break
        weights *= 1 - steps[best][:, None]
        weights[:, best] += steps[best]
        left = rests[best]
    return weights


def default(own: Effects, j: int) -> np.ndarray:
    """Return what an interval is made of: mean, variance, df, draws, reach, range, skew, beyond, help."""
    fit = own.fit
    beyond = np.broadcast_to(fit.beyond, fit.mean.shape)[j]
    return np.array(
        [fit.mean[j], fit.cov[j, j], fit.df[j], own.draws[j], *fit.reach[j], 0, 0, 0, 0, beyond, 0]
    )


def share_of_average(own: Effects, j: int) -> float:
    """Return the share of an average entity in the total that metric j averages over."""
    totals = [(c, share) for c, share in METRICS[j].size if not isinstance(c, Known)]
    if not totals:
        return 0.0
    counted = own.sample.contributions([column for column, _ in totals])
    a, weight = counted @ np.array([share for _, share in totals], dtype=float), own.sample.expansion.weight
    return float(np.sum(weight * a) / (weight.sum() * a.sum()))


def pseudo_moves(own: Effects, j: int, right: float, share: float, off: frozenset[str]) -> np.ndarray:
    """Return how far pseudo-draws move metric j, (2,)."""
    reach, n = own.fit.reach[j], len(own.linear)
    if "pseudo" in off:
        return np.zeros(2)
    each = 1 / n if "share" in off else max(share, 1 / n)
    moves = (reach - right * reach[::-1]) * each * np.sqrt(own.sample.expansion.variance.theta_mean)
    if "typical" in off:
        return moves
    r = own.linear[:, j]
    square = np.sum(r**2)
    most = np.sqrt(np.sum(r**4) / square + 3 * square / n)
    return np.clip(moves, -most, most)


def prepare(own: Effects, j: int, helpers: list[tuple[Effects, dict]]) -> dict:
    """Return what all variants share."""
    able = [
        (effects, values, effects.draws[j] * effects.sample.expansion.variance.theta_mean)
        for effects, values in helpers
        if not own.refuse(j) and own.can_help(j) and effects.can_help(j)
    ]
    share, of_interval = (share_of_average(own, j), own.of_interval(j)) if able else (0.0, 0.0)
    return {"plain": default(own, j), "able": able, "share": share, "of interval": of_interval}


OF_WEIGHTS = frozenset({"folds", "tenth", "clip", "fewest"})


def assist(
    own: Effects, j: int, helpers: list[tuple[Effects, dict]], off: frozenset[str], known: dict
) -> np.ndarray:
    """Return what the interval of metric j is made of. `known` keeps what variants share."""
    if not known:
        known.update(prepare(own, j, helpers))
    plain, metric = known["plain"], METRICS[j]
    usable = [
        (effects, values[metric, _kinds(off)])
        for effects, values, draws in known["able"]
        if "fewest" in off or draws >= 2.0
    ]
    if not usable:
        return plain
    target = own.linear[:, j]
    choosing = np.stack([effects.linear[:, j] for effects, _ in usable], axis=1)
    if off & OF_WEIGHTS not in known:
        known[off & OF_WEIGHTS] = choose_weights(target, choosing, own.sample.expansion.unit, off)
    shares = known[off & OF_WEIGHTS]
    if not shares.any():
        return plain
    used, left = shares.mean(axis=0), target - np.sum(shares * choosing, axis=1)
    right = min(float(used.sum()), 1.0)
    ends = [likely(values, right, off) for _, values in usable]
    between = np.array(
        [np.sum(used * [v - lo for v, lo, _ in ends]), np.sum(used * [hi - v for v, _, hi in ends])]
    )
    moves = pseudo_moves(own, j, right, known["share"], off)
    pseudo = 0.5 * float(np.sum(moves**2))
    of_draws = float(np.sum(left**2))
    if "jackknife" not in off:
        changes = np.stack([effects.jack[:, j] for effects, _ in usable], axis=1)
        of_draws = max(of_draws, float(np.sum((own.jack[:, j] - np.sum(shares * changes, axis=1)) ** 2)))
    squares, df = left**2, own.fit.df[j]
    if "kurtosis" not in off and squares.any():
        kurtosis = len(left) * np.sum(squares**2) / np.sum(squares) ** 2
        df = min(df, max(2 * len(left) / max(kurtosis - 1, 1e-9), 1.0))
    if "satterthwaite" not in off:
        df = df * (1 + pseudo / of_draws) ** 2 if of_draws > 0 else np.inf
    remaining = np.sqrt(min(squares.sum() / np.sum(target**2), 1.0))
    lengths = [
        (variance + share**2 * known["of interval"]) * stdtrit(min(degrees, 1e12), 0.975) ** 2
        for variance, share, degrees in (
            (of_draws + pseudo, remaining, df),
            (np.sum(target**2), 1.0, plain[2]),
        )
    ]
    if "shorter" not in off and lengths[0] >= lengths[1]:
        return plain
    third = np.maximum([-1, 1] * (0.5 * moves**3 - np.sum(left**3)), 0) / max(of_draws + pseudo, 1e-300)
    skew = np.zeros(2) if "skewness" in off else third
    correction = sum(w * (v - e.fit.mean[j]) for w, (v, _, _), (e, _) in zip(used, ends, usable, strict=True))
    low, high = own.fit.support[j]
    mean = np.clip(own.fit.mean[j] + correction, low, high)
    reach = own.fit.reach[j] * remaining
    return np.array([mean, of_draws + pseudo, df, plain[3], *reach, *between, *skew, 0, 1])


def bounds(parts: np.ndarray, level_off: np.ndarray) -> np.ndarray:
    """Return 95 % intervals, (..., 2), of what `assist` returns, (..., 12); all metrics are shares."""
    mean, V, df, effective = np.moveaxis(parts[..., :4], -1, 0)
    reach, between, skew = parts[..., 4:6], parts[..., 6:8], parts[..., 8:10]
    width, se = between.sum(axis=-1), np.sqrt(V)
    low, high = np.full(V.shape, ndtri(LEVEL)), np.full(V.shape, ndtri((1 + LEVEL) / 2))
    apart = np.divide(width, se, out=np.full(V.shape, np.inf), where=se > 0)
    for _ in range(50):  # c of Imbens and Manski, by halving
        middle = (low + high) / 2
        over = ndtr(middle + apart) - ndtr(-middle) >= LEVEL
        low, high = np.where(over, low, middle), np.where(over, middle, high)
    one = np.where(level_off | (width == 0), LEVEL, 2 * ndtr(high) - 1)
    further = between + skew * (1 + 2 * ndtri((1 + LEVEL) / 2) ** 2) / 6
    ends = []
    for sign, shift in ((-1, -further[..., 0]), (1, further[..., 1])):
        at = mean + shift
        fit = SimpleNamespace(
            mean=at[..., None], sd=se[..., None], df=df[..., None], effective=effective[..., None],
            reach=reach[..., None, :], support=((0.0, 1.0),),
        )  # fmt: skip
        quantile = DEFAULT.quantile(fit, ((1 + sign * one) / 2)[..., None])[..., 0]
        ends.append(np.clip(np.minimum(quantile, at) if sign < 0 else np.maximum(quantile, at), 0, 1))
    beyond = parts[..., 10, None]
    return (1 - beyond) * np.stack(ends, axis=-1) + beyond * np.array([0.0, 1.0])


# A study


def variants(off: frozenset[str]) -> dict[str, frozenset[str]]:
    """Each guard in the other state; "" is none of them, and "all" has all of them on."""
    return {"": off} | {guard: off ^ {guard} for guard in GUARDS} | ({"all": frozenset[str]()} if off else {})


def run(case: Case, offs: list[frozenset[str]], samples: int, seed: int) -> dict:
    """Return the truth, and for each design and n the parts of intervals of default and of variants."""
    kind, truth, prediction, *seconds = case
    if kind == "several":
        rng = np.random.default_rng(seed)
        seconds += [sim.Misattribution(0.5).apply(truth, rng) for _ in range(3)]
    truth, prediction = pd.Series(truth), pd.Series(prediction)
    units = eb.measure(prediction, truth)
    counted = [eb.auxiliary.Second.of(prediction, truth, pd.Series(second)) for second in seconds]
    reaches = [Reach(second) for second in counted]
    people = sim.Population(prediction, truth)
    found: dict = {"truth": np.array([people.value(metric) for metric in METRICS])}
    for (name, plan), n in ((p, n) for p in PLANS.items() for n in sizes(kind)):
        rows = []
        for sample in draw_samples(plan, units, n, samples, np.random.default_rng([seed, n])).separate:
            rows.append(one_sample(sample, counted, reaches, offs))
        found[name, n] = np.array(rows)
    return found


def one_sample(sample: eb.Sample, counted: list, reaches: list, offs: list[frozenset[str]]) -> list:
    """Return the parts of the default and of each variant, (1 + variants, metrics, parts)."""
    own, helpers = Effects(sample), []
    for second, reach in zip(counted, reaches, strict=True):
        position = second.position(sample.units)
        effects = Effects(sample.with_units(second.units.take(position)))
        helpers.append((effects, reach.values(position, offs)))
    plain = [default(own, j) for j in range(len(METRICS))]
    known: list[dict] = [{} for _ in METRICS]
    return [plain, *([assist(own, j, helpers, off, known[j]) for j in range(len(METRICS))] for off in offs)]


def agrees(case: Case, samples: int = 3) -> bool:
    """Return whether the laboratory without what is gone equals the package, on a few samples."""
    truth, prediction, second = (pd.Series(codes) for codes in case[1:])
    counted, off = eb.auxiliary.Second.of(prediction, truth, second), frozenset(GONE.split(","))
    draws = draw_samples(
        PLANS["uniform records"], eb.measure(prediction, truth), 100, samples, np.random.default_rng(1)
    )
    parts = np.array([one_sample(sample, [counted], [Reach(counted)], [off])[1] for sample in draws.separate])
    engine = eb.auxiliary.Assisted(counted)
    wanted = np.array([engine(sample, METRICS).interval() for sample in draws.separate])
    return bool(np.allclose(bounds(parts, np.array([True])), wanted, atol=1e-6))


def judge(found: dict, names: list[str], offs: list[frozenset[str]]) -> Iterator[dict]:
    """Yield one row per design, n, variant and metric, against the first variant."""
    for (plan, n), parts in ((key, x) for key, x in found.items() if key != "truth"):
        level = np.array([False, *("level" in off for off in offs)])[:, None]
        helped = parts[..., -1].mean(axis=0)
        ends, true = bounds(parts, level), found["truth"]
        held = (ends[..., 0] <= true + 1e-12) & (true <= ends[..., 1] + 1e-12)
        missed = np.maximum(ends[..., 0] - true, 0) + np.maximum(true - ends[..., 1], 0)
        score = np.ptp(ends, axis=-1) + 2 / (1 - LEVEL) * missed
        base = score[:, 0].mean(axis=0)
        for v, name in enumerate(names, 1):
            for j, metric in enumerate(METRICS):
                if base[j] <= 0:
                    continue
                # a guard that is off at the start is turned on by its variant
                on, off = (v, 1) if name in {*offs[0], "all"} else (1, v)
                lost = held[:, on, j].astype(float) - held[:, off, j]
                worse = (score[:, off, j] - score[:, on, j]) / base[j]
                root = np.sqrt(len(parts))
                means = held[:, on, j].mean(), held[:, off, j].mean()
                scores = score[:, on, j].mean() / base[j], score[:, off, j].mean() / base[j]
                yield {
                    "plan": plan, "n": n, "guard": name, "metric": metric.name,
                    "helped": max(helped[1, j], helped[v, j]),
                    "default": held[:, 0, j].mean(), "on": means[0], "off": means[1],
                    "score on": scores[0], "score off": scores[1],
                    "lost": lost.mean(), "lost se": lost.std() / root,
                    "worse": worse.mean(), "worse se": worse.std() / root,
                }  # fmt: skip


def summarise(cells: pd.DataFrame) -> pd.DataFrame:
    """Return one row per guard: what turning it changes, and whether it earns its place."""
    rows = []
    for guard, part in cells[(cells.guard != "") & (cells.helped >= HELPED)].groupby("guard", sort=False):
        on, off = (np.minimum(part[x], LEVEL) for x in ("on", "off"))
        k = len(part)
        collapse = part[
            (part.off <= LEAST_COVERAGE) & (part.lost >= COLLAPSE) & (part.lost >= ERRORS * part["lost se"])
        ]
        dear = part[(part.worse >= WORSE) & (part.worse >= ERRORS * part["worse se"])]
        worst = part.iloc[int((part.off - part.on).to_numpy().argmin())]
        rows.append(
            {
                "guard": guard, "cells": k, "coverage on": part.on.mean(), "coverage off": part.off.mean(),
                "lost to .95": (on - off).mean(), "lost se": np.sqrt(np.sum(part["lost se"] ** 2)) / k,
                "lowest off": part.off.min(),
                "score on": part["score on"].mean(), "worse": part.worse.mean(),
                "worse se": np.sqrt(np.sum(part["worse se"] ** 2)) / k,
                "collapses": len(collapse), "dear": len(dear),
                "worst": f"{worst.population}, {worst['plan']}, {worst.n}, {worst.metric}: "
                f"{worst.on:.2f} to {worst.off:.2f}",
            }
        )  # fmt: skip
    table = pd.DataFrame(rows).set_index("guard")
    earns = (table["lost to .95"] >= MEAN_COVERAGE) | (table.worse >= MEAN_SCORE)
    return table.assign(earns=earns | (table.collapses > 0) | (table.dear > 0))


def load(
    output: Path, cases: Callable[[], dict[str, Case]], off: frozenset[str], samples: int
) -> pd.DataFrame:
    """Run what OUTPUT has not, and return all cells."""
    named, parts = variants(off), []
    for seed, (name, case) in enumerate(cases().items(), 1000 if cases is chosen_on else 2000):
        file = output / f"{name}.pickle"
        if not file.exists():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", eb.Alarm)
                found = run(case, list(named.values()), samples, seed)
            file.write_bytes(pickle.dumps(found))
            print(name, file=sys.stderr, flush=True)
        rows = judge(pd.read_pickle(file), list(named), list(named.values()))
        parts.append(pd.DataFrame(rows).assign(population=name, kind=case[0]))
    return pd.concat(parts, ignore_index=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("output", type=Path)
    parser.add_argument("--off", default="")
    parser.add_argument("--confirm", action="store_true")
    parser.add_argument("--samples", type=int, default=SAMPLES)
    asked = parser.parse_args()
    if not agrees(joined(set_aside()["Ewens, .12 noise by .02 noise"])):
        sys.exit("the laboratory is not the package")
    asked.output.mkdir(exist_ok=True)
    off = frozenset(filter(None, asked.off.split(",")))
    cells = load(asked.output, set_aside if asked.confirm else chosen_on, off, asked.samples)
    cells.to_pickle(asked.output / "cells.pkl")
    table = summarise(cells)
    shown = table.round(3).astype(str).reset_index()
    print(as_table(list(shown.columns), shown.to_numpy().tolist()))


if __name__ == "__main__":
    main()
