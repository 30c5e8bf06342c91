"""Simulation-based calibration of the default size model, as a picture.

    python benchmarks/simulation_calibration.py [SIMULATIONS] [--joint]

Parameters of each part are drawn from its prior, and a sample of 100 entities from the model with these
parameters. The share of posterior draws below the truth is then
uniform, if fits are right. The picture has the distance of its distribution from the uniform one, with
p-values of tests of uniformity. Writes docs/images/simulated-ranks.png; 300 simulations take two minutes.

--joint ranks what `"posterior"` says of whole populations, one half of them under draws of records, the other
under draws of entities. Mates from their prior say how many links without a label are right. Sizes and
retention from theirs make populations, and the first with as many outside its sample is taken (to .03).
All but the priors is written here anew.
"""

import argparse
from pathlib import Path

import arviz as az
import numpy as np
import pymc as pm
from pytensor.compile.mode import Mode
from scipy import stats

import erbayes as eb
from erbayes import bayes
from erbayes.bayes.data import Evidence
from erbayes.bayes.model import join_and_complete
from erbayes.bayes.programs import CompiledPart, draw_from_prior, own_model
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


def simulate_sample(by_records, evidence, rng, draws=100):
    """Return the data of a sample of a simulated population, and precision, recall, links and entities."""
    data, s = evidence.data, evidence.grid.size
    parts = {k: draw_from_prior(v, data, 400, rng) for k, v in bayes.SizeModel().tied.items()}
    c2, at = s * (s - 1) / 2, rng.integers(400)
    q, links, kappa = (
        v[data["unlabelled_links"] > 0]
        for v in (
            parts["mates"].by_size["mates_right"][0, at],
            data["unlabelled_links"],
            data["unlabelled_precision"],
        )
    )
    share = np.where(q < 1, rng.beta(np.maximum(q * kappa, 1e-9), np.maximum((1 - q) * kappa, 1e-9)), q)
    right = share @ links
    M = parts["sizes"].by_size["entities"][0]
    r = {k: v[0] for k, v in parts["retention"].by_size.items()}
    expected = np.maximum((M * c2 * r["kept"]).sum(axis=1), 0.5)
    V = (M * c2**2 * r["kept_square"]).sum(axis=1) / expected**2
    V = V.clip(0, 0.25) + 1e-4
    # the others make no population with as many common links
    likely = np.flatnonzero(np.abs(np.log(np.maximum(right, 0.5) / expected)) < 1 + 3 * np.sqrt(V))
    if not len(likely):
        return None
    for i in rng.choice(likely, 3000):
        entity = np.repeat(np.arange(len(s)), rng.poisson(M[i]))
        if len(entity) < 2 * draws or len(entity) > 10**6:
            continue
        several, most = s[entity] > 1, np.maximum(s[entity] - 2, 0)
        broken = several & (rng.random(len(entity)) > r["intact"][i][entity])
        mean, precision = r["share_mean"][i][entity], r["share_precision"][i][entity]
        w = rng.beta(np.maximum(mean * precision, 1e-9), np.maximum((1 - mean) * precision, 1e-9))
        w = w.clip(0.5 / (most + 1), (most + 0.5) / (most + 1))
        kept = (w * (most + 1) - 0.5) / np.maximum(most, 1) * (s[entity] - 1) * most / 2
        kept = np.where(broken, kept, c2[entity])
        chance = s[entity] if by_records else np.ones(len(entity))
        drawn = rng.choice(len(entity), draws, p=chance / chance.sum())
        ids = np.unique(drawn)
        rest = kept.sum() - kept[ids].sum()
        if abs(np.log(max(rest, 0.5) / max(right, 0.5))) < 0.03:
            break
    else:
        return None
    J, of, cut = len(s), entity[ids], broken[ids] & (s[entity[ids]] > 2)
    shares = np.zeros((J, 2))
    np.add.at(shares, of[cut], np.column_stack([np.log(w[ids][cut]), np.log1p(-w[ids][cut])]))
    asked = np.round(data["asked"])
    new = data | {
        "selection": s if by_records else np.ones(J),
        "repeats": 1.0,
        "fixed_size": 1.0,
        "draws": draws,
        "records": s[entity].sum(),
        "drawn": np.bincount(entity[drawn], minlength=J),
        "several": np.bincount(of[several[ids]], minlength=J),
        "intact": np.bincount(of[several[ids] & ~broken[ids]], minlength=J),
        "broken": np.bincount(of[cut], minlength=J),
        "shares": shares,
        "sampled": np.unique(of),
        "distinct": len(ids),
        "sampled_records": s[of].sum(),
        "sampled_true_links": c2[of].sum(),
        "sampled_common_links": kept[ids].sum(),
        "asked": asked,
        "right": rng.binomial(
            asked.astype(int), parts["mates"].by_size["mates_right"][0, at].clip(0, 1)
        ).astype(float),
    }
    C, T = right + kept[ids].sum(), c2[entity].sum()
    return new, {"links right": C, "recall": kept.sum() / T, "true links": T, "entities": float(len(entity))}


def rank_populations(simulations, rng):
    """Print how the ranks of simulated populations are distributed among the draws of the posterior."""
    evidence, model = evidence_of_a_sample(), bayes.SizeModel()
    for by_records in (True, False):
        found, lost = {}, 0
        while len(found.get("recall", ())) < simulations // 2:
            made = simulate_sample(by_records, evidence, rng)
            if made is None:
                lost += 1
                continue
            data, truth = made
            parts = {k: v.evaluated(v.sampled(250, 4, rng)) for k, v in model.compile(data).items()}
            draws, population = join_and_complete(parts, data, rng)
            T = population.scale_true(draws.common)
            values = {
                "links right": draws.common,
                "recall": draws.common / np.maximum(T, 1),
                "true links": T,
                "entities": population.number.sum(-1) + data["distinct"],
            }
            for name, v in values.items():
                below, ties = (v < truth[name]).sum(), (v == truth[name]).sum()
                found.setdefault(name, []).append((below + (ties + 1) * rng.random()) / (v.size + 1))
        print(f"draws of {'records' if by_records else 'entities'}, {lost} simulations without a population")
        for name, of in found.items():
            share = np.array(of)
            p = stats.kstest(share, "uniform").pvalue
            middle = [np.mean(np.abs(share - 0.5) < half) for half in (0.25, 0.475)]
            print(
                f"{name}: mean {share.mean():.3f}, sd {share.std():.3f}, p {p:.2f}, "
                f"{middle[0]:.3f} in the middle 50 %, {middle[1]:.3f} in 95 %",
                flush=True,
            )


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
    asked = argparse.ArgumentParser(description="Simulation-based calibration of the default size model.")
    asked.add_argument("simulations", type=int, nargs="?", default=300)
    asked.add_argument("--joint", action="store_true", help="of whole populations")
    args = asked.parse_args()
    if args.joint:
        with bayes.compiled():
            rank_populations(args.simulations, np.random.default_rng(68))
    else:
        main(args.simulations)
