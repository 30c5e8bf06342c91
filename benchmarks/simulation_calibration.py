"""Simulation-based calibration of the default size model, as a picture.

    python benchmarks/simulation_calibration.py [SIMULATIONS]

Parameters of each part are drawn from its prior, and a sample of 100 entities from the model with these
parameters. The share of posterior draws below the truth is then
uniform, if fits are right. The picture has the distance of its distribution from the uniform one, with
p-values of tests of uniformity. Writes docs/images/simulated-ranks.png; 300 simulations take two minutes.
"""

import sys
from pathlib import Path

import arviz as az
import numpy as np
import pymc as pm
from pytensor.compile.mode import Mode

import erbayes as eb
from erbayes import bayes
from erbayes.bayes.data import Evidence
from erbayes.bayes.programs import CompiledPart, own_model
from erbayes.study import populations as simulate

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "simulated-ranks.png"
DRAWS = 1000
OBSERVED = {
    "drawn_sizes": "drawn",
    "broken_entities": "intact",
    "kept_shares": "shares",
    "right_mates": "right",
}
"""Data of a part by the observed variables of its model."""


def evidence_of_a_sample():
    """Return the evidence of 100 uniform clusters, whose sizes all simulations have."""
    errors = simulate.Chain([simulate.Splits(0.3), simulate.Merges(0.1)])
    world = simulate.simulate(simulate.LogNormal(1.0, 1.0), errors, 4000, 11)
    persons = world.true.drop_duplicates().sample(100, random_state=11)
    return Evidence.of(
        eb.Sample(eb.measure(world.pred, world.true[world.true.isin(persons)]), eb.UniformClusters())
    )


def changed(data, observed):
    """Return the data of a part with simulated observations."""
    new = {}
    for name, values in observed.items():
        place = OBSERVED[name]
        where = slice(None) if place in ("drawn", "right") else data["sampled"]
        new[place] = np.zeros_like(data[place])
        new[place][where] = values
    if "intact" in new:
        broken = new["intact"].sum()
        new["intact"] = data["several"] - new["intact"]
        if not broken:
            new |= {"broken": 0 * data["broken"], "shares": 0 * data["shares"]}
    return data | new


def quantities(by_size, size):
    """Return what is ranked: quantities of entities and of clusters of some sizes, and the links of all."""
    found = {}
    for name, title, sizes in (("kept", "links kept", (6, 40)), ("mates_right", "right mates", (2, 6, 20))):
        if name in by_size:
            at = {s: np.searchsorted(size, s) for s in sizes}
            found |= {f"{title}, size {s}": by_size[name][..., j] for s, j in at.items()}
    if "entities" in by_size:
        M = by_size["entities"]
        found["entities"], found["true links"] = M.sum(-1), (M * size * (size - 1)).sum(-1)
    return found


def shares_below(part, evidence, simulations, rng):
    """Return the share of posterior draws below the truth, for each quantity, (simulations,)."""
    data, size, found = evidence.data, evidence.grid.size, {}
    model, by_size = own_model(part, data)
    by_size.pop("log_flawless", None)
    seen = [v.name for v in model.observed_RVs]
    values = [*by_size.values(), *(model[v] for v in seen)]
    drawn = pm.draw(values, simulations, random_seed=rng, mode=Mode("py", None))
    truth = quantities(dict(zip(by_size, drawn, strict=False)), size)
    for i in range(simulations):
        observed = {name: v[i] for name, v in zip(seen, drawn[len(by_size) :], strict=True)}
        compiled = CompiledPart.of(part, changed(data, observed))
        posterior = quantities(compiled.evaluated(compiled.sampled(DRAWS, 1, rng)).by_size, size)
        for name, draws in posterior.items():
            below, ties = (draws < truth[name][i]).sum(), (draws == truth[name][i]).sum()
            # between 0 and 1, and uniform among equal values
            rank = below + (ties + 1) * rng.random()
            found.setdefault(name, []).append(rank / (DRAWS + 1))
    return {name: np.array(v) for name, v in found.items()}


def main(simulations=300):
    """Draw the picture, and print the share of ranks in the middle 90 %."""
    evidence, rng, found = evidence_of_a_sample(), np.random.default_rng(1), {}
    for part in bayes.SizeModel().tied.values():
        found |= shares_below(part, evidence, simulations, rng)
    for name, share in found.items():
        print(
            f"{name}: {np.mean(np.abs(share - 0.5) < 0.45):.3f} in the middle 90 %, mean {share.mean():.3f}"
        )
    tree = az.from_dict({"prior_sbc": {name: v[None] for name, v in found.items()}})
    shown = az.plot_ecdf_pit(
        tree,
        envelope_prob=0.99,
        backend="matplotlib",
        col_wrap=4,
        visuals={"xlabel": False},
        figure_kwargs={"figsize": (11, 6)},
    )
    shown.savefig(PICTURE, dpi=90, bbox_inches="tight")


if __name__ == "__main__":
    main(*(int(x) for x in sys.argv[1:]))
