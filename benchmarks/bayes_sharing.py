"""Fits that teach each other: five releases of one source, releases with nothing in common, and calibration.

    python benchmarks/bayes_sharing.py FILE [--judged] [--samples 20]
    python benchmarks/bayes_sharing.py --calibration [--samples 200]

The first compares the fit of the last of five releases alone with that `after` the four before, which is also
the fit of the last group `together` with them: mean coverage and mean score of 95 % intervals of pairwise
precision (P) and recall (R). The earlier releases have 100 uniform records each, the last 100 uniform records
or 100 uniform clusters. The populations were written down before any of these fits, and those of --judged
before the way to share was chosen. FILE keeps all intervals as CSV, and work that it has is not done again.

The second draws parameters of three groups and their data from the prior of `sharing`, for each part of the
default model, and counts where the truth lies among the draws of the first group, which the others have told
of it, and whether the spread of the others is as probable as it is said to be.
"""

import argparse
import warnings
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import populations as sim
from common import PLANS, PR, as_markdown
from scipy import stats

from erbayes.bayes import SizeModel, compiled, fast, with_history
from erbayes.bayes.data import Evidence
from erbayes.bayes.model_average import ModelAverage, compile_part, mix_draws
from erbayes.bayes.programs import ParameterDraws
from erbayes.bayes.samplers import Importance
from erbayes.bayes.sharing import (
    SPREADS,
    UNRELATED,
    approximate_likelihoods,
    borrow,
    find_scores,
    weigh,
    weigh_spreads,
)
from erbayes.study import draw_samples

RECORDS, RELEASES, SEED = 50_000, 5, 4100
Release = tuple[Any, ...]
"""A law of sizes and mechanisms of error, one after another."""
ALIKE: dict[str, tuple[Release, ...]] = {
    "Zeta 2.3, splits .1": 5 * ((sim.Zeta(2.3, 3000), sim.Splits(0.1), sim.Merges(0.03)),),
    "Zeta 2.2, capped at 80": 5 * ((sim.Zeta(2.2, 3000), sim.Capped(80), sim.Misattribution(0.02)),),
    "LogNormal 1.4, giants in two": 5 * ((sim.LogNormal(0.7, 1.4), sim.Even(2, 80), sim.Merges(0.02)),),
    "Pitman-Yor .35, larger drop more": 5 * ((sim.PitmanYor(900.0, 0.35), sim.SizeDependent(-5.0, 0.45)),),
    "NegBinomial .7, splits .04 to .08": tuple(
        (sim.NegativeBinomial(7.0, 0.7), sim.Splits(rate), sim.Merges(0.03))
        for rate in (0.04, 0.05, 0.06, 0.07, 0.08)
    ),
    "Zeta 2.35, eras .008": 5 * ((sim.Zeta(2.35, 2500), sim.Eras(0.008), sim.Misattribution(0.03)),),
}
"""Five releases of one source each."""


def _mix(alike: dict[str, tuple[Release, ...]]) -> dict[str, tuple[Release, ...]]:
    """Return five releases of five sources: each source is the last once, and the next four come before."""
    names, mixed = [*alike], {}
    for at, last in enumerate(names):
        others = [names[(at + i + 1) % len(names)] for i in range(RELEASES - 1)]
        mixed[f"strangers, {last}"] = (*(alike[name][i] for i, name in enumerate(others)), alike[last][-1])
    return mixed


STRANGERS = _mix(ALIKE)
"""Five releases of five sources, the last of which is named."""
JUDGED: dict[str, tuple[Release, ...]] = {
    "Zeta 2.5, splits .2": 5 * ((sim.Zeta(2.5, 2000), sim.Splits(0.2), sim.Misattribution(0.02)),),
    "Pitman-Yor .5, capped at 50": 5 * ((sim.PitmanYor(300.0, 0.5), sim.Capped(50), sim.Merges(0.02)),),
    "LogNormal 1.2, giants in four": 5 * ((sim.LogNormal(0.9, 1.2), sim.Even(4, 60), sim.Splits(0.03)),),
    "Ewens, larger drop more": 5 * ((sim.PitmanYor(1500.0), sim.SizeDependent(-4.5, 0.35)),),
    "NegBinomial 1.5, misattribution .02 to .06": tuple(
        (sim.NegativeBinomial(6.0, 1.5), sim.Misattribution(rate), sim.Splits(0.02))
        for rate in (0.02, 0.03, 0.04, 0.05, 0.06)
    ),
    "Zeta 2.25, eras .004": 5 * ((sim.Zeta(2.25, 2000), sim.Eras(0.004), sim.Merges(0.04)),),
}
"""Five releases of one source each, to judge ways to share on: set down before any fit to them."""
JUDGED_STRANGERS = _mix(JUDGED)
"""Five releases of five of these sources."""


def ends(file: Path, samples: int, sources: dict[str, tuple[Release, ...]]) -> pd.DataFrame:
    """Return the ends of all intervals, one row per sample, way and metric."""
    rows = pd.read_csv(file).to_dict("records") if file.exists() else []
    done = {(row["source"], row["plan"]) for row in rows}
    for source, releases in sources.items():
        if all((source, plan) in done for plan in PLANS):
            continue
        rng = np.random.default_rng([SEED, *map(ord, source)])
        people = [sim.simulate(law, sim.Chain(errors), RECORDS, rng) for law, *errors in releases]
        records = PLANS["uniform records"]
        earlier = [draw_samples(records, p.units, 100, samples, rng).separate for p in people[:-1]]
        last = {k: draw_samples(p, people[-1].units, 100, samples, rng).separate for k, p in PLANS.items()}
        for i in range(samples):
            with warnings.catch_warnings(), compiled():
                warnings.simplefilter("ignore")
                model = with_history(*(fast(of[i], draws=1000, rng=i) for of in earlier), rng=i)
                fits = {
                    (plan, way): fast(drawn[i], of_way, draws=1000, rng=i)
                    for (plan, drawn), (way, of_way) in product(
                        last.items(), (("alone", None), ("after", model))
                    )
                }
            for (plan, way), fit in fits.items():
                for metric, (lower, upper) in zip(PR, fit.apply(PR).interval(), strict=True):
                    cell = {"source": source, "plan": plan, "repetition": i, "way": way}
                    cell |= {"metric": metric.name, "truth": people[-1].value(metric)}
                    rows.append(cell | {"lower": lower, "upper": upper})
        pd.DataFrame(rows).to_csv(file, index=False)
    return pd.DataFrame(rows)


def judge(runs: pd.DataFrame) -> pd.DataFrame:
    """Return mean coverage and score alone and after, and the ratio of scores, by source, plan and metric."""
    miss = (runs.lower - runs.truth).clip(lower=0) + (runs.truth - runs.upper).clip(lower=0)
    runs = runs.assign(covered=(miss == 0).astype(float), score=runs.upper - runs.lower + 40 * miss)
    by = runs.groupby(["source", "plan", "metric", "way"], sort=False)[["covered", "score"]].mean()
    wide = by.unstack("way")
    table = pd.DataFrame(
        {
            "covered alone": wide["covered", "alone"],
            "covered after": wide["covered", "after"],
            "score alone": wide["score", "alone"],
            "score after": wide["score", "after"],
            "ratio": wide["score", "after"] / wide["score", "alone"],
        }
    )
    return table.reset_index()


def simulate_data(by_size: dict[str, Any], data: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Return data of a group with these quantities by size, (J,) each, and as many draws as `data` has."""
    p = by_size["entities"] * data["selection"]
    drawn = rng.multinomial(data["draws"], p / p.sum())
    J, doubling = len(drawn), data["in_doubling"]
    several = np.where(data["size"] > 1, drawn, 0)
    intact = rng.binomial(several, by_size["intact"])
    broken = np.where(data["size"] > 2, several - intact, 0)
    at = np.repeat(np.arange(J), broken)
    mean, precision = by_size["share_mean"][at], by_size["share_precision"][at]
    w = rng.beta(mean * precision, (1 - mean) * precision).clip(1e-12, 1 - 1e-12)
    shares = np.column_stack([np.bincount(at, v, J) for v in (np.log(w), np.log1p(-w))])
    met = rng.binomial(drawn, by_size["met"])
    met_by_doubling = np.bincount(doubling, met, len(data["met_by_doubling"])).astype(int)
    chance = by_size["intrusion_chance"] / by_size["intrusion_chance"].sum(axis=1, keepdims=True)
    return data | {
        "drawn": drawn,
        "entities": drawn,
        "several": several,
        "intact": intact,
        "broken": broken,
        "shares": shares,
        "met": met,
        "met_by_doubling": met_by_doubling,
        "intrusions": rng.multinomial(met_by_doubling, chance),
        "sampled": np.flatnonzero(drawn),
        "sampled_doublings": np.unique(doubling[drawn > 0]),
    }


def draw_truths(part: ModelAverage, at: int, groups: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return quantities by size of each group, from the prior of `sharing` with the spread at this position.

    The first may be a stranger.
    """
    names = [*part.models]
    chosen = rng.choice(len(names), groups, p=[*part.probability.values()])
    alike = np.full(groups, SPREADS[at] < 1)
    chosen[alike] = chosen[-1]
    if rng.random() < UNRELATED:
        alike[0], chosen[0] = False, rng.choice(len(names), p=[*part.probability.values()])
    found = []
    common = rng.standard_normal(len(part.models[names[chosen[-1]]].coordinates))
    for law, shares in zip((part.models[names[i]] for i in chosen), alike, strict=True):
        z, scores = rng.standard_normal(len(law.coordinates)), find_scores(law)
        if shares:
            z = np.sqrt(1 - SPREADS[at] ** 2) * common + SPREADS[at] * z
        drawn = ParameterDraws(scores.theta(z)[None, None], np.zeros((1, 1), dtype=np.int64), 0.0)
        found.append({k: v[0, 0] for k, v in law.evaluated(drawn).by_size.items()})
    return found


WAYS = ("alone", "taught")
WATCHED = {"sizes": ("entities", 100), "retention": ("kept", 30), "leakage": ("met", 10)}
"""A quantity of each part, and the size of which it is watched."""


def calibrate(samples: int, groups: int = 3) -> pd.DataFrame:
    """Return ranks of the truth among the draws of the first group, and of the spread, by part."""
    rng = np.random.default_rng(SEED)
    people = sim.simulate(sim.Zeta(2.3, 3000), sim.Splits(0.1), RECORDS, rng)
    sample = draw_samples(PLANS["uniform records"], people.units, 100, 1, rng).separate[0]
    data, tied = Evidence.of(sample).data, SizeModel().tied
    parts = {place: compile_part(part, data) for place, part in tied.items()}
    sampler, rows = Importance(250, 4), []
    for _ in range(samples):
        at = int(rng.integers(len(SPREADS)))
        truths = {place: draw_truths(part, at, groups, rng) for place, part in parts.items()}
        group_data = [
            simulate_data({k: v for found in truths.values() for k, v in found[g].items()}, data, rng)
            for g in range(groups)
        ]
        own = [{place: compile_part(part, d) for place, part in tied.items()} for d in group_data]
        drawn = [dict(zip(of, sampler([*of.values()], rng), strict=True)) for of in own]
        others = {
            p: [approximate_likelihoods(own[g][p], drawn[g][p]) for g in range(1, groups)] for p in parts
        }
        weights, told = borrow(own[0], others)
        spread = weigh_spreads([weigh(own[0][place], others[place])[0] for place in parts])
        rank = spread[:at].sum() + rng.random() * spread[at]
        for place, found in truths.items():
            laws = {
                name: replace(law, start=told[place][name].centre, informed=told[place][name])
                for name, law in own[0][place].models.items()
            }
            taught = ModelAverage(laws, weights[place])
            quantity, size = WATCHED[place]
            bin_of = int(np.argmin(np.abs(data["size"] - size)))
            ranks = {}
            fits = ((own[0][place], drawn[0][place]), (taught, sampler([taught], rng)[0]))
            for way, (part, draws) in zip(WAYS, fits, strict=True):
                values = mix_draws(place, part, draws, rng).by_size[quantity][..., bin_of]
                ranks[way] = (values < found[0][quantity][bin_of]).mean()
            rows.append({"part": place, **ranks, "spread": rank})
    return pd.DataFrame(rows)


def judge_ranks(ranks: pd.DataFrame) -> pd.DataFrame:
    """Return coverage of intervals and the p-value of uniform ranks, by part and quantity."""
    of_parts = [(part, way, of[way]) for part, of in ranks.groupby("part", sort=False) for way in WAYS]
    of_spread = ranks.drop_duplicates("spread")["spread"]
    rows = []
    for part, way, rank in [*of_parts, ("every part", "spread", of_spread)]:
        inside = {f"{level:g} %": ((rank - 0.5).abs() < level / 200).mean() for level in (50, 80, 95)}
        p = stats.kstest(rank, "uniform").pvalue
        rows.append({"part": part, "of": way, **inside, "mean rank": rank.mean(), "p": p})
    return pd.DataFrame(rows)


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description="Fits that teach each other.")
    asked.add_argument("file", type=Path, nargs="?", help="CSV file that keeps finished work")
    asked.add_argument("--judged", action="store_true", help="the sources that nothing was chosen on")
    asked.add_argument("--calibration", action="store_true", help="simulation-based calibration instead")
    asked.add_argument("--samples", type=int, help="samples per source, or repetitions")
    args = asked.parse_args()
    if args.calibration:
        print(as_markdown(judge_ranks(calibrate(args.samples or 200))))
    else:
        sources = JUDGED | JUDGED_STRANGERS if args.judged else ALIKE | STRANGERS
        print(as_markdown(judge(ends(args.file, args.samples or 20, sources))))
