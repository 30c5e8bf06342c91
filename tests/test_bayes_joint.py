"""Joint calibration: the parts tied by the known links, then completed, on populations drawn from the prior.

The parts alone are calibrated in test_bayes.py. Here whole populations come from the model: numbers of
entities, the links of each, its foreign records, and the number of predicted links. A fit to a sample of
each must cover the population's own precision and recall as often as it says.
"""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy import stats

pytest.importorskip("pymc", reason="pymc is not installed")

import pymc as pm
from pytensor.compile.mode import Mode

import erbayes as eb
from erbayes import bayes
from erbayes.bayes import NormalPrior, StudentTPrior
from erbayes.bayes.contract import LOG_FLAWLESS
from erbayes.bayes.data import Evidence, SampledEntities, _count_draws, _count_errors
from erbayes.bayes.grid import INTRUSION
from erbayes.bayes.model_average import as_average, compile_part, draw_parts, mix_draws
from erbayes.bayes.population import draw_populations, join_parts
from erbayes.bayes.programs import own_model
from erbayes.metrics.columns import pairs
from erbayes.study.populations import LogNormal, Misattribution, simulate

pytestmark = [pytest.mark.slow, pytest.mark.study]

SIZES = bayes.PredictionInformed(
    0.08, 0.12, NormalPrior(-3.0, 0.5), NormalPrior(1.0, 0.3), NormalPrior(-0.5, 0.2)
)
LEVELS = [NormalPrior(*of) for of in ((-0.7, 0.5), (1.0, 0.4), (1.5, 0.4), (2.0, 0.5))]
SLOPES = [StudentTPrior(*of) for of in ((0.25, 0.08), (0.05, 0.05), (0.0, 0.05))]
DEFAULT_METRICS = bayes.Retention(*LEVELS, *SLOPES, 0.08, 0.1, unbroken=0.0)
HALF = replace(DEFAULT_METRICS, break_level=NormalPrior(0.5, 0.4), share_slope=StudentTPrior(-0.2, 0.05))
LEAKAGE = bayes.Leakage(
    NormalPrior(-1.5, 0.5),
    StudentTPrior(0.3, 0.06),
    0.08,
    StudentTPrior(-0.5, 0.1),
    StudentTPrior(-0.03, 0.02),
    0.2,
    unmet=0.0,
)
ONE = bayes.SizeModel(SIZES, DEFAULT_METRICS, LEAKAGE)
SEVERAL = bayes.SizeModel(SIZES, bayes.ModelAverage({"usual": DEFAULT_METRICS, "half": HALF}), LEAKAGE)
"""Priors about a third as wide as the defaults, so that every population can be drawn and fitted."""


@dataclass(frozen=True)
class World:
    """One population of the model: the evidence of a sample of it, and its precision and recall."""

    data: dict
    truth: np.ndarray


def drawn(model, evidence, number, seed):
    """Quantities by size of `number` draws from the prior; each from one of its laws.

    Each law has a seed of its own. With one seed, variables of different parts would be the same numbers.
    """
    values, g = {}, np.random.default_rng(seed)
    for part in model.tied.values():
        one_of = as_average(part)
        chosen = g.choice(len(one_of.models), number, p=list(one_of.probability.values()))
        of_laws = []
        for law in one_of.models.values():
            _, by = own_model(law, evidence.data)
            by.pop(LOG_FLAWLESS, None)
            seed, mode = int(g.integers(2**31)), Mode("py", None)
            drawn_ones = pm.draw(list(by.values()), number, random_seed=seed, mode=mode)
            of_laws.append(dict(zip(by, drawn_ones, strict=True)))
        values |= {k: np.stack([v[k] for v in of_laws])[chosen, np.arange(number)] for k in of_laws[0]}
    return values


def world(by, evidence, n, g):
    """Draw a finite population from quantities by size, and a sample of n of its entities.

    Shares are those of the model, in (0, 1). If the links of small entities were cut to the possible ones,
    shares would look more alike than they are, and the posterior would be too sure of their precision.
    """
    s, grid = evidence.grid.size, evidence.grid
    at = np.repeat(np.arange(len(s)), g.poisson(by["entities"]))
    size, mean, precision = s[at], by["share_mean"][at], by["share_precision"][at]
    whole = g.random(len(at)) < by["intact"][at]
    share = g.beta(np.maximum(mean * precision, 1e-6), np.maximum((1 - mean) * precision, 1e-6))
    share = np.clip(share, 1e-12, 1 - 1e-12)
    steps = np.maximum(size - 2, 0)
    kept = (share * (steps + 1) - 0.5) / np.maximum(steps, 1)
    links = np.where(whole, pairs(size), np.where(steps > 0, kept * pairs(size - 1), 0))
    links = np.where(size == 1, 0, links)
    chance = by["intrusion_chance"].cumsum(axis=1)[grid.doubling[at]]
    value = INTRUSION[: chance.shape[1]][
        (g.random(len(at))[:, None] > chance).sum(axis=1).clip(max=chance.shape[1] - 1)
    ]
    foreign = np.where(g.random(len(at)) < by["met"][at], value * size, 0.0)
    unit, times = np.unique(g.integers(len(at), size=n), return_counts=True)
    entities = SampledEntities(size[unit], links[unit], foreign[unit], times, at[unit])
    common, predicted = links.sum(), links.sum() + foreign.sum() / 2
    known = {"records": size.sum(), "predicted_links": max(predicted, 0.5)}
    counted = _count_draws(grid, entities) | _count_errors(grid, INTRUSION[: chance.shape[1]], entities)
    lost = entities.broken & (entities.size > 2)
    logs = np.log(share[unit][lost]), np.log1p(-share[unit][lost])
    counted["shares"] = np.column_stack([np.bincount(entities.bin[lost], v, len(s)) for v in logs])
    data = evidence.data | counted | known
    return World(data, np.array([common / predicted, common / pairs(size).sum()]))


def fitted(model, data, g):
    """Draws of precision and recall, as `fast` makes them, and the number of them that agree with the total.

    A population without links has lost none.
    """
    parts = {}
    for place, part in model.tied.items():
        one_of = compile_part(part, data)
        parts[place] = mix_draws(place, one_of, draw_parts({place: one_of}, 1000, 1, g)[place], g)
    found = join_parts(parts, data, g)
    population = draw_populations(found.by_size, data, g)
    predicted, true = population.common + population.false, population.true
    shares = [np.where(n > 0, population.common / np.maximum(n, 1e-300), 1.0) for n in (predicted, true)]
    return np.stack(shares, axis=-1)[0], found.agreeing


def ranks(model, number, seed=1):
    pop = simulate(LogNormal(1.0, 1.1), Misattribution(0.1), 8000, 3)
    g = np.random.default_rng(seed)
    ids = g.choice(pop.true.unique(), 100, replace=False)
    units = eb.measure(pop.pred, pop.true[pop.true.isin(ids)])
    evidence = Evidence.of(eb.Sample(units, eb.UniformClusters()))
    prior, rank, agreeing = drawn(model, evidence, number, seed), [], []
    for i in range(number):
        one = world({k: v[i] for k, v in prior.items()}, evidence, 100, g)
        values, n = fitted(model, one.data, g)
        rank.append((values < one.truth).mean(axis=0))
        agreeing.append(n)
    return np.array(rank), np.array(agreeing)


@pytest.mark.parametrize("model", [ONE, SEVERAL], ids=["one law", "two laws"])
def test_joint_calibration(model):
    rank, agreeing = ranks(model, 150)
    for name, r in zip("PR", rank.T, strict=True):
        inside = ((r > 0.025) & (r < 0.975)).mean()
        p = stats.kstest(r, "uniform").pvalue
        deciles = np.histogram(r, 10, (0, 1))[0]
        print(name, "95 % intervals cover", inside.round(3), "KS p", round(p, 4), "deciles", deciles)
        assert inside > 0.95 - 3 * np.sqrt(0.95 * 0.05 / 150) and p > 1e-3
    print("fewer than 100 draws agree with the total:", (agreeing < 100).mean().round(3))
