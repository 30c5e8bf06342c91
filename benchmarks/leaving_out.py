"""Can leave-one-out of a size model be trusted for the giants of a sample?

    python benchmarks/leaving_out.py [--samples K]

For the five largest entities of a sample, PSIS-LOO (`arviz.loo`) of a fit against an exact refit without the
entity: the log density of its outcome, and their difference. PSIS-LOO keeps the density of the known number
of predicted links, in which the links of the entity still count as observed. A refit does not.

Samples are of 100 draws from five pairs of PatentsView releases and noise, uniform clusters and uniform
records. On 1 core it takes some minutes.
"""

import argparse
import warnings
from dataclasses import replace
from typing import Any

import arviz as az
import numpy as np
import pandas as pd
from common import PLANS, decimals
from common import table as markdown
from figures import stamp
from heavy_tails import populations
from scipy.special import logsumexp

from erbayes import bayes
from erbayes.bayes.data import SampledEntities
from erbayes.bayes.tree import factors
from erbayes.design.sample import Sample
from erbayes.study import draw_samples

LARGEST, DRAWS = 5, 2000


def without(sample: Sample, unit: int) -> Sample:
    """The sample without one of its units, and without its draws."""
    units = sample.units.take(np.delete(np.arange(len(sample.units)), unit))
    design: Any = sample.design
    drawn = pd.Series(design.draws)
    return Sample(units, replace(design, draws=drawn[drawn != sample.units.ids[unit]].to_numpy()))


def refitted(fit: bayes.Fit, unit: int, rng: int) -> float:
    """Log density of a sampled entity, by a fit without it."""
    rest = bayes.fast(without(fit.sample, unit), draws=DRAWS, rng=rng)
    all_entities, at = fit.evidence.entities, slice(unit, unit + 1)
    size = all_entities.size[at]
    one = SampledEntities(
        size,
        all_entities.links[at],
        all_entities.draws[at],
        rest.evidence.grid.bin(size),
    )
    by_factor = factors(one, rest.evidence.data, rest.by_size).values()
    terms = [factor.log_density().sum(axis=-1) for factor in by_factor]
    mates = fit.evidence.mates
    own = mates.entity == unit
    q = np.clip(rest.by_size["mates_right"][..., rest.evidence.grid.bin(mates.size[own])], 1e-300, 1 - 1e-15)
    y = mates.right[own]
    terms.append((mates.weight[own] * (y * np.log(q) + (1 - y) * np.log1p(-q))).sum(axis=-1))
    log_density = np.sum(terms, axis=0).ravel()
    return float(logsumexp(log_density) - np.log(len(log_density)))


def compared(fit: bayes.Fit) -> pd.DataFrame:
    """PSIS-LOO and exact refits of the largest entities of a sample."""
    entities = fit.evidence.entities
    loo = az.loo(fit.tree, pointwise=True)
    rows = []
    for unit in np.argsort(-entities.size, kind="stable")[:LARGEST]:
        approximate, exact = float(loo.elpd_i[unit]), refitted(fit, int(unit), 1)
        rows.append(
            {
                "records": f"{entities.size[unit]:.0f}",
                "share of |P|": float(entities.links[unit] / fit.evidence.predicted_links),
                "k": float(loo.pareto_k[unit]),
                "PSIS-LOO": approximate,
                "refit": exact,
                "difference": approximate - exact,
            }
        )
    return pd.DataFrame(rows)


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description="PSIS-LOO against exact refits.")
    asked.add_argument("--samples", type=int, default=1, help="samples per population and design")
    args = asked.parse_args()
    warnings.simplefilter("ignore")
    found = []
    for plan, drawing in PLANS.items():
        for name, population in populations().items():
            rng = np.random.default_rng(7)
            for sample in draw_samples(drawing, population.units, 100, args.samples, rng).separate:
                table = compared(bayes.fast(sample, draws=DRAWS, rng=1))
                found.append(table.assign(sample=f"{name}, {plan}"))
                print(found[-1].to_string(float_format=lambda x: decimals(x, 2)), flush=True)
    table = pd.concat(found)
    off = table.difference.abs()
    print(
        markdown(
            ["", "entities", "median", "largest"],
            [
                [name, str(len(group)), decimals(group.median(), 2), decimals(group.max(), 2)]
                for name, group in (
                    ("all", off),
                    ("k below .7", off[table.k < 0.7]),
                    ("k of .7 or more", off[table.k >= 0.7]),
                )
            ],
        )
    )
    stamp("heavy-tails", "seed 7")
