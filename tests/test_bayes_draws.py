"""Monte Carlo error of a fit: what ArviZ says of its draws is what they are."""

from functools import cache
from inspect import signature
from types import SimpleNamespace

import arviz as az
import numpy as np
import pytest
from scipy import stats

import erbayes as eb
from erbayes import bayes
from erbayes import metrics as m
from erbayes.bayes.importance import approximated
from erbayes.study.populations import LogNormal, Misattribution, simulate

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::erbayes.bayes.NotConverged")]
P, R = m.pairwise_precision, m.pairwise_recall
SEEDS = 32
SIMPLE = bayes.SizeModel(bayes.LogNormalSizes())
"""A model that is fitted in less time than the default one."""
KINDS = pytest.mark.parametrize(
    "kind", ["simple", *(pytest.param(kind, marks=pytest.mark.study) for kind in ("clusters", "records"))]
)
"""Fits of the simple model to a sample of entities, or of the default one to both kinds of samples."""


def part(log_densities, d):
    """A part with this log density."""
    return SimpleNamespace(
        log_densities=lambda thetas: np.atleast_1d(log_densities(thetas)), start=np.zeros(d), heavy_tails=[]
    )


@cache
def sample(kind):
    people = simulate(LogNormal(1.0, 1.0), Misattribution(0.1), 4000, np.random.default_rng(1))
    g = np.random.default_rng(2)
    if kind == "records":
        drawn = people.true.index[g.choice(len(people.true), 80, replace=False)]
        labels = people.true[people.true.isin(people.true[drawn])]
        return eb.Sample(eb.measure(people.pred, labels), eb.UniformRecords(people.true[drawn]))
    chosen = g.choice(people.true.nunique(), 80, replace=False)
    return eb.Sample(eb.measure(people.pred, people.true[people.true.isin(chosen)]), eb.UniformClusters())


@cache
def fits(kind):
    model = SIMPLE if kind == "simple" else bayes.SizeModel()
    drawn = sample("records" if kind == "records" else "clusters")
    return [bayes.fast(drawn, model, draws=400, rng=100 + seed) for seed in range(SEEDS)]


def test_effective_draws_are_those_of_the_means_over_seeds():
    """The variance of 200 means has a relative standard error of .1; effective are .8 to .9 of those said."""
    target = part(stats.multivariate_t([1.0, 2.0], [[1, 0.5], [0.5, 2]], df=5).logpdf, 2)
    said, means, variances = [], [], []
    for seed in range(200):
        thetas = approximated(target, 400, np.random.default_rng(seed), chains=4).draw(100)
        said.append([az.ess(thetas[..., j]) for j in range(2)])
        means.append(thetas.mean(axis=(0, 1)))
        variances.append(thetas.var(axis=(0, 1)))
    ratio = np.mean(variances, axis=0) / np.var(means, axis=0, ddof=1) / np.mean(said, axis=0)
    assert ((ratio > 0.65) & (ratio < 1.3)).all(), ratio


@pytest.mark.study
@pytest.mark.parametrize("kind", ["clusters", "records"])
def test_effective_draws_of_a_fit(kind):
    """The variance of 32 means has a relative standard error of .25; 1.3 from the studied samples is in the band."""
    values = np.stack([fit.apply([P, R]).values for fit in fits(kind)])
    said = [np.mean([az.ess(v[..., j]) for v in values]) for j in range(2)]
    means = values.mean(axis=(1, 2))
    real = values.reshape(SEEDS, -1, 2).var(axis=1).mean(axis=0) / means.var(axis=0, ddof=1)
    chances = stats.chi2(SEEDS - 1).ppf([0.001, 0.999]) / (SEEDS - 1)
    for ratio in real / said:
        assert chances[0] / 1.3 < 1 / ratio < 1.3 * chances[1]


@KINDS
def test_chains_are_independent(kind):
    """The variance of the mean of four chains is a quarter of that of one chain."""
    chains = np.stack([fit.apply([P, R]).values.mean(axis=1) for fit in fits(kind)])
    apart = chains - chains.mean(axis=(0, 1))
    together = apart.mean(axis=1).var(axis=0) * 4 / (apart**2).mean(axis=(0, 1))
    band = stats.chi2(SEEDS - 1).ppf([0.001, 0.999]) / (SEEDS - 1)
    assert ((together > 0.8 * band[0]) & (together < 1.25 * band[1])).all()
    for fit in fits(kind)[:4]:
        theta = fit.parts["retention"].thetas[..., 0]
        assert theta.shape == (4, 100)
        assert not any(np.intersect1d(theta[a], theta[b]).size for a in range(4) for b in range(a))


@KINDS
@pytest.mark.parametrize("of", ["apply", "estimate"])
def test_ends_move_from_seed_to_seed_as_their_errors_say(kind, of):
    """Of the posterior, and of its average with the closed form, which no seed moves; by as much on average."""
    found = [getattr(fit, of)([P, R]) for fit in fits(kind)]
    real = np.stack([draws.interval() for draws in found]).std(axis=0, ddof=1)
    tables = [draws.table(errors=True)[["lower_mcse", "upper_mcse"]].to_numpy() for draws in found]
    ratio = real / np.sqrt(np.mean(np.square(tables), axis=0))
    moving = np.array([draws.interval() for draws in found]).min(axis=0) > 0
    moving &= np.array([draws.interval() for draws in found]).max(axis=0) < 1
    band = np.sqrt(stats.chi2(SEEDS - 1).ppf([0.001, 0.999]) / (SEEDS - 1))
    assert moving.sum() >= 3 and ((ratio > 0.8 * band[0]) & (ratio < 1.25 * band[1]))[moving].all(), ratio
    assert 1 / 1.3 < ratio[moving].mean() < 1.3
    shown = fits(kind)[0].table(metrics=[P, R], errors=True)
    assert (shown[["lower_mcse", "upper_mcse"]] > 0).all(axis=None)


@KINDS
def test_error_of_prior_shift_is_that_over_seeds(kind):
    shifts = [(fit.prior_shift(d), fit.prior_shift_error(d)) for fit in fits(kind) for d in [fit.apply(R)]]
    found, said = (np.stack([pair[i].to_numpy()[0] for pair in shifts]) for i in range(2))
    best = (found.mean(axis=0) / said.mean(axis=0)).argmax()  # near 0 an absolute value varies less
    ratio = found[:, best].std(ddof=1) / np.sqrt((said[:, best] ** 2).mean())
    assert 0.5 < ratio < 1.8
    table = fits(kind)[0].table(metrics=R)
    first = shifts[0][1].to_numpy()[0, shifts[0][0].to_numpy()[0].argmax()]
    assert table.prior_shift_error.item() == pytest.approx(first, rel=1e-12)


def test_copies_of_a_point_stand_side_by_side():
    copies = 0
    for chain in fits("simple")[0].parts["retention"].thetas[..., 0]:
        runs, distinct = 1 + np.count_nonzero(np.diff(chain)), len(np.unique(chain))
        assert runs == distinct
        copies += len(chain) - distinct
    assert copies > 10


def test_later_rounds_count_more_in_the_evidence():
    target = part(stats.multivariate_normal([1.0, 2.0]).logpdf, 2)
    adapted, total, start = approximated(target, 3000, np.random.default_rng(1)), 0.0, 0
    numbers = [round(np.exp(n)) for _, n in adapted.proposals]
    for r, n in enumerate(numbers):
        total += (r + 1) * np.exp(adapted.ratios[start : start + n]).sum()
        start += n
    count = sum((r + 1) * n for r, n in enumerate(numbers))
    assert len(numbers) > 1 and adapted.log_evidence == pytest.approx(np.log(total / count), abs=1e-12)


def test_an_answer_has_10_000_draws():
    assert bayes.Modelled(SIMPLE).fitted(sample("clusters"), 1).population.true.shape == (4, 2500)
    assert signature(bayes.fast).parameters["draws"].default == 10_000


@pytest.mark.parametrize("draws", [400, 400.0, 398, np.int64(397)])
def test_numbers_of_draws(draws):
    found = bayes.fast(sample("clusters"), SIMPLE, draws=draws, rng=1)
    assert found.population.true.shape == (4, 100)


FEW = "draws are too few: draws must be 50 or more"


@pytest.mark.parametrize(
    ("draws", "said"),
    [(49, f"49 {FEW}"), (0, f"0 {FEW}"), (-4, "a whole number, 0 or more")]
    + [(bad, "draws must be") for bad in (2.5, np.nan, np.inf, "1000", None, True, [1000])],
)
def test_what_is_no_number_of_draws(draws, said):
    with pytest.raises(eb.DataError, match=said):
        bayes.fast(sample("clusters"), draws=draws, rng=1)
