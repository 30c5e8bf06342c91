"""Size families and the densities and formulas given size: SciPy, quadrature and plain loops."""

import math

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from own_families import BodyAndTail, NegativeBinomial
from pytensor.compile.mode import Mode
from pytensor.graph.replace import clone_replace
from scipy import stats
from scipy.special import logsumexp

from erbayes import bayes
from erbayes.bayes.contract import LOG_FLAWLESS, RANK, SINGLE, SizeGrid, basis
from erbayes.bayes.error_models import asked_mates, beta_shares
from erbayes.bayes.priors import counts, events, flawless, smooth

pytestmark = pytest.mark.slow

PLAIN = Mode("py", None)
BIASED = 5.0
ROOT = np.sqrt(2 * np.pi)
SINGLES = np.arange(1.0, 3001)
FAR = np.concatenate([np.arange(1.0, 31), np.round(np.logspace(1.5, 6, 40))])


def given(build, values, **dims):
    """What `build` makes inside a model, at these values of its random variables."""
    with pm.Model(coords=dims) as model:
        made = build()
    alone = not isinstance(made, dict)
    outputs = [made] if alone else list(made.values())
    assert {v.name for v in model.free_RVs} == set(values)
    at = {model[name]: pt.constant(np.asarray(v, dtype=model[name].dtype)) for name, v in values.items()}
    found = pytensor.function([], clone_replace(outputs, at), mode=PLAIN)()
    return found[0] if alone else dict(zip(made, found, strict=True))


def data(size, width=None):
    x = np.log2(size)
    numbers = {
        "size": size,
        "width": np.ones_like(size) if width is None else width,
        "x": x,
        "centre": 1.5,
        "basis": basis(x) if len(x) < 100 else np.full((len(x), RANK), np.nan),
        "log_biased_mean": np.log(BIASED),
        "log_predicted": np.sin(x) - 2 * x,
    }
    return {k: pt.as_tensor(v) for k, v in numbers.items()}


def weights(family, values, size=SINGLES, width=None):
    dims = {"size_tilt_basis": np.arange(RANK)}
    return given(lambda: family.log_weights(data(size, width)), values, **dims)


def negative_binomial(a, b):
    """SciPy's distribution with ν = 4.5 e^a, α = e^b."""
    nu, alpha = (BIASED - 0.5) * np.exp(a), np.exp(b)
    return nu, alpha, (alpha + 1) / (nu + alpha + 1)


def log_normal(location, log_sigma):
    sigma = np.exp(log_sigma)
    return np.log(BIASED) + location - sigma**2, sigma


def exponent(excess):
    return 1 + 1.2 * np.exp(excess)


NB = [(0.0, 0.0), (1.0, -2.0), (-0.7, 1.5)]
LN = [(0.0, 0.0), (1.5, 0.4), (-1.0, -0.7)]


def cases():
    for a, b in NB:
        _, alpha, p = negative_binomial(a, b)
        yield (NegativeBinomial(), {"size_log_mean": a, "size_log_shape": b}, stats.nbinom(alpha, p).logpmf)
    for a, b in LN:
        mu, sigma = log_normal(a, b)
        values = {"size_location": a, "size_log_sigma": b}
        yield bayes.LogNormalSizes(), values, stats.lognorm(sigma, scale=np.exp(mu)).logpdf
    for a in (0.0, -1.0, 0.8):
        yield bayes.ZetaSizes(), {"size_log_excess": a}, stats.zipf(exponent(a)).logpmf


def test_every_public_family_has_a_case():
    public = {
        n for n in bayes.__all__ if isinstance(cls := getattr(bayes, n), type) and hasattr(cls, "log_weights")
    }
    with_formulas_below = {"PredictionInformed"}
    assert public - with_formulas_below <= {type(x).__name__ for x, *_ in cases()}, "add it to cases()"


@pytest.mark.parametrize("family, values, logpmf", list(cases()))
def test_families_against_scipy(family, values, logpmf):
    found, wanted = weights(family, values), logpmf(SINGLES)
    np.testing.assert_allclose(found - logsumexp(found), wanted - logsumexp(wanted), rtol=1e-9, atol=1e-9)
    width = np.linspace(1, 9, len(SINGLES))
    np.testing.assert_allclose(weights(family, values, width=width), found + np.log(width), rtol=1e-9)
    assert np.isfinite(weights(family, values, FAR)).all()


@pytest.mark.parametrize("a, b", NB)
def test_negative_binomial_of_random_records(a, b):
    nu, alpha, p = negative_binomial(a, b)
    s = np.arange(1.0, 200_001)
    found = weights(NegativeBinomial(), {"size_log_mean": a, "size_log_shape": b}, s) + np.log(s)
    chance = np.exp(found - logsumexp(found))
    np.testing.assert_allclose(chance, stats.nbinom(alpha + 1, p).pmf(s - 1), rtol=1e-8, atol=1e-300)
    assert chance @ s == pytest.approx(nu + 1, rel=1e-9)


@pytest.mark.parametrize("a, b", LN)
def test_log_normal_of_random_records(a, b):
    _, sigma = log_normal(a, b)
    found = weights(bayes.LogNormalSizes(), {"size_location": a, "size_log_sigma": b}) + np.log(SINGLES)
    wanted = stats.lognorm(sigma, scale=BIASED * np.exp(a)).logpdf(SINGLES)
    np.testing.assert_allclose(found - logsumexp(found), wanted - logsumexp(wanted), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("body, xi, scale", [(7, 0.5, 0.0), (1, 1.2, 1.0), (4, 0.03, -1.0)])
def test_body_and_tail(body, xi, scale):
    w = np.arange(1.0, body + 2) / np.arange(1.0, body + 2).sum()
    values = {"size_body": w, "size_shape": xi, "size_log_scale": scale}
    family = BodyAndTail(body)
    found = np.exp(weights(family, values))
    np.testing.assert_allclose(found[:body], w[:body], rtol=1e-12)
    density = stats.genpareto(xi, scale=body * np.exp(scale)).pdf(SINGLES[body:] - body)
    np.testing.assert_allclose(found[body:], w[-1] * density / density.sum(), rtol=1e-9)
    assert np.isfinite(weights(family, values, FAR)).all()


def on_the_grid():
    """Each family with its values, and the log of its published probabilities up to a constant."""
    for family, values, log_p in cases():
        yield family, values, log_p
    for body in (1, 4, 7):
        w = np.arange(1.0, body + 2) / np.arange(1.0, body + 2).sum()

        def log_p(s, w=w, body=body):
            tail = stats.genpareto(0.5, scale=body).pdf(np.arange(body + 1, s.max() + 1) - body)
            return np.log(np.concatenate([w[:-1], w[-1] * tail / tail.sum()]))

        yield BodyAndTail(body), {"size_body": w, "size_shape": 0.5, "size_log_scale": 0.0}, log_p


@pytest.mark.parametrize(("family", "values", "log_p"), list(on_the_grid()))
def test_bins_of_the_grid_hold_the_probabilities_of_their_sizes(family, values, log_p):
    """On the grid of a fit. A bin has its width times the probability of its middle. Of an exponential that
    falls by the factor e^u over the bin, this is about u²/24 less than the sum, and more if log P bends too."""
    grid = SizeGrid.up_to(4000)
    sizes = np.arange(1, grid.lower[-1] + grid.width[-1])
    logs = log_p(sizes)
    p = np.exp(logs - logsumexp(logs))
    wanted = np.add.reduceat(p, grid.lower.astype(int) - 1)
    found = np.exp(weights(family, values, grid.size, grid.width))
    found /= found.sum()
    likely = wanted > 1e-4
    falls = np.maximum.reduceat(logs, grid.lower.astype(int) - 1) - np.minimum.reduceat(
        logs, grid.lower.astype(int) - 1
    )
    off = np.abs(np.log(found[likely] / wanted[likely]))
    assert likely.sum() > 5 and (off <= 0.02 + 0.2 * falls[likely] ** 2).all()


def test_prediction_informed_is_a_tilt_and_larger_entities():
    w = np.array([0.3, -0.2, 0.5, 1.0, -1.0])
    larger = {"larger_share_logit": -1.2, "larger_log_factor": 1.7, "larger_log_spread": -0.3}
    values = {"size_slope": 0.4, "size_single": -0.8, "size_tilt_weights": w, **larger}
    found = weights(bayes.PredictionInformed(), values, FAR)
    x, B = np.log2(FAR), basis(np.log2(FAR))
    tilted = [
        np.exp(np.sin(x[j]) - 2 * x[j] + 0.4 * (x[j] - 1.5) + sum(B[j, r] * w[r] for r in range(RANK)))
        for j in range(len(x))
    ]
    assert FAR[0] == 1 and FAR[1] == 2
    tilted[0] *= np.exp(-0.8)
    body = [tilted[j] * FAR[j] for j in range(len(x))]
    law = stats.lognorm(s=np.exp(-0.3), scale=BIASED * np.exp(1.7))
    tail = [law.pdf(s) for s in FAR]
    share = 1 / (1 + np.exp(1.2))
    wanted = [
        np.log(((1 - share) * body[j] / sum(body) + share * tail[j] / sum(tail)) / FAR[j])
        for j in range(len(x))
    ]
    np.testing.assert_allclose(found, wanted, rtol=1e-10)
    assert share * tail[29] / sum(tail) > body[29] / sum(body), "there are sizes of either kind"


def test_basis_has_the_covariance_of_the_process():
    x = SizeGrid.up_to(4000).x
    wanted = np.exp(-0.5 * ((x[:, None] - x) / 2.5) ** 2)
    found = basis(x) @ basis(x).T
    np.testing.assert_allclose(np.diag(found), 1, rtol=1e-12)
    near = abs(x[:, None] - x) < 4
    assert abs(found - wanted)[near].max() < 0.12
    np.testing.assert_allclose((basis(SizeGrid.up_to(10**6).x) ** 2).sum(axis=1), 1, rtol=1e-12)
    every = basis(x, rank=len(x) // 2)
    np.testing.assert_allclose(every @ every.T, wanted, atol=1e-9)


@pytest.mark.parametrize("top", [1, 15, 16, 17, 1000, 1169, 10**6])
def test_bins_partition_all_sizes(top):
    grid = SizeGrid.up_to(top)
    last = int(grid.lower[-1] + grid.width[-1]) - 1
    assert last >= top and grid.width.sum() == last
    np.testing.assert_array_equal(grid.lower[1:], grid.lower[:-1] + grid.width[:-1])
    np.testing.assert_array_equal(grid.size[: SINGLE - 1], np.arange(1.0, SINGLE))
    if top > 2000:
        return
    members = [
        [s for s in range(1, last + 1) if lo <= s < lo + w]
        for lo, w in zip(grid.lower, grid.width, strict=True)
    ]
    assert [s for held in members for s in held] == list(range(1, last + 1))
    np.testing.assert_array_equal(grid.size, [np.mean(held) for held in members])
    for j, held in enumerate(members):
        assert (grid.bin(np.array(held, dtype=float)) == j).all()


def test_larger_bins_are_thirds_of_a_doubling_from_eight_on():
    edges = [8 * 2 ** (i / 3) for i in range(1, 9)]
    lower = SizeGrid.up_to(40).lower
    assert lower.tolist() == [*range(1, 9), *map(round, edges)]


def log_density(make, value):
    with pm.Model(coords={"b": range(RANK), "sampled_size": range(3), "log_share": range(2)}) as model:
        make()
    rv = model.basic_RVs[0]
    return pytensor.function([], pm.logp(rv, pt.constant(value)), mode=PLAIN)()


def test_densities_against_scipy():
    w = np.array([0.3, -0.2, 0.5, 1.0, -1.0])
    with pm.Model(coords={"g_basis": range(RANK)}) as model:
        smooth("g", RANK, 0.4)
    found = pytensor.function([], pm.logp(model["g_weights"], pt.constant(w)), mode=PLAIN)()
    assert found == pytest.approx(stats.multivariate_t(np.zeros(RANK), 0.16 * np.eye(RANK), df=3).logpdf(w))
    p, k = np.array([[0.2, 0.5, 0.3], [0.7, 0.1, 0.2]]), np.array([[3, 4, 1], [5, 0, 2]])
    found = log_density(lambda: counts("k", k.sum(1), np.log(p), k), k)
    ways = [np.log(math.factorial(sum(v)) / math.prod(map(math.factorial, v))) for v in k.tolist()]
    wanted = [stats.multinomial(k[i].sum(), p[i]).logpmf(k[i]) - ways[i] for i in range(2)]
    np.testing.assert_allclose(found, wanted)
    n, h, k = np.array([0, 5, 40]), np.array([0.3, -2.0, 0.5]), np.array([0, 2, 30])
    found = log_density(lambda: events("k", n, h, k), k)
    ways = np.log([math.comb(*v) for v in zip(n.tolist(), k.tolist(), strict=True)])
    np.testing.assert_allclose(found, stats.binom(n, 1 - np.exp(-np.exp(h))).logpmf(k) - ways, atol=1e-12)
    rng, n, mean, precision = np.random.default_rng(1), [0, 1, 7], [0.5, 0.3, 0.8], [2.0, 5.0, 0.7]
    shares = [rng.uniform(0.01, 0.99, i) for i in n]
    sums = np.array([[np.log(v).sum(), np.log1p(-v).sum()] for v in shares])
    found = log_density(
        lambda: beta_shares("v", np.array(n), np.array(mean), np.array(precision), sums), sums
    )
    # (a - 1) Σ log w + (b - 1) Σ log(1 - w) - n log B(a, b)
    wanted = [
        stats.beta(m * t, (1 - m) * t).logpdf(v).sum()
        for m, t, v in zip(mean, precision, shares, strict=True)
    ]
    np.testing.assert_allclose(found, wanted, atol=1e-10)


def test_draws_follow_the_densities():
    h, n = np.array([-1.0, 0.4]), np.array([50, 7])
    with pm.Model(coords={"g_basis": range(RANK), "sampled_size": range(2), "log_share": range(2)}):
        g = smooth("g", RANK, 0.5)(np.eye(RANK))
        made = [
            g,
            events("k", n, h, n),
            counts("c", 30, np.log([0.2, 0.5, 0.3]), [10, 10, 10]),
            beta_shares("v", n, np.array([0.3, 0.8]), np.array([4.0, 9.0]), np.zeros((2, 2))),
        ]
        g, k, c, v = pm.draw(made, draws=4000, random_seed=1, mode=PLAIN)
    # a t with 3 degrees of freedom in each coordinate, all with one scale
    assert stats.kstest(g[:, 2] / 0.5, stats.t(3).cdf).pvalue > 1e-3
    assert stats.kstest(g[:, 0] / g[:, 1], stats.cauchy.cdf).pvalue > 1e-3
    wide = stats.f(RANK, 3)  # Σ w² / (rank scale²)
    assert stats.kstest((g**2).mean(axis=1) / 0.25, wide.cdf).pvalue > 1e-3
    np.testing.assert_allclose(k.mean(axis=0), n * (1 - np.exp(-np.exp(h))), rtol=0.02)
    np.testing.assert_allclose(c.mean(axis=0), [6, 15, 9], rtol=0.03)
    by_scipy = [
        [stats.beta(m * t, (1 - m) * t).expect(f) for f in (np.log, np.log1p)]
        for m, t in ((0.3, 4.0), (0.8, 9.0))
    ]
    lost = [stats.beta((1 - m) * t, m * t).expect(np.log) for m, t in ((0.3, 4.0), (0.8, 9.0))]
    wanted = np.array([[n[i] * by_scipy[i][0], n[i] * lost[i]] for i in range(2)])
    np.testing.assert_allclose(v.mean(axis=0), wanted, rtol=0.02)


SMALL = np.array([1.0, 2.0, 3.0, 10.0, 500.0])


def outcome_data():
    J = len(SMALL)
    return {
        "x": np.log2(SMALL),
        "centre": 1.5,
        "log_biased_mean": np.log(15.0),
        "size": SMALL,
        "basis": np.cos(np.arange(J * RANK)).reshape(J, RANK),
        "several": np.full(J, 3),
        "intact": np.full(J, 2),
        "broken": np.full(J, 1),
        "shares": np.full((J, 2), -1.0),
        "sampled": np.arange(J),
        "cluster_x": np.log2(SMALL),
        "cluster_basis": np.sin(np.arange(J * RANK)).reshape(J, RANK),
        "cluster_centre": 0.8,
        "asked": np.array([0.0, 2.5, 3.0, 0.7, 0.0]),
        "right": np.array([0.0, 2.5, 1.2, 0.7, 0.0]),
    }


def outcome(part, values):
    d = outcome_data()
    tilts = ("break_tilt", "share_tilt", "mates_tilt")
    dims = {f"{n}_basis": range(RANK) for n in tilts}
    dims |= {"entity_size": SMALL, "sampled_size": SMALL, "cluster_size": SMALL, "log_share": range(2)}
    return d, given(lambda: part.given_size({k: pm.Data(k, v) for k, v in d.items()}), values, **dims)


W = np.array([0.2, -0.1, 0.3, 0.05, -0.4])
KEEPING = {"break_level": -0.4, "break_slope": 0.3, "break_tilt_weights": W}
KEEPING |= {"share_level": 1.2, "share_slope": 0.2, "share_grain": 0.7, "share_tilt_weights": -W}
KEEPING |= {"precision_level": 1.1, "precision_slope": -0.1}
ASKING = {"mates_level": 1.4, "mates_slope": -0.3, "mates_tilt_weights": W}


def test_retention_by_plain_loops():
    d, found = outcome(bayes.Retention(), KEEPING | {"unbroken": 0})
    rng = np.random.default_rng(1)
    for j, s in enumerate(SMALL):
        x, tilt = np.log2(s) - 1.5, sum(d["basis"][j, r] * W[r] for r in range(RANK))
        lost = np.exp(-0.4 + (0.3 - 0.1) * x + tilt)  # pieces: their log rises by break_slope + δ
        pieces = stats.poisson(lost)
        intact, number = pieces.pmf(0), pieces.expect(lambda k: k, lb=1, conditional=True)
        mu = np.log(2) * np.tanh((0.3 - 0.1) / 0.4) + 0.2
        m = 1.2 + mu * x - tilt - np.log(number) + 0.7 / max(s - 1, 1)
        mean, precision = 1 / (1 + np.exp(-m)), np.exp(1.1 - 0.1 * x)
        if s == 1:
            assert found["intact"][j] == found["kept"][j] == found["kept_square"][j] == 1
            continue
        # an entity at a time: whole, or a share of the most that a broken one keeps, C2(s - 1)
        whole = rng.random(200_000) < intact
        most = ((s - 1) * (s - 2) / 2) / (s * (s - 1) / 2)
        y = np.where(whole, 1.0, most * rng.beta(mean * precision, (1 - mean) * precision, len(whole)))
        assert found["intact"][j] == pytest.approx(intact, rel=1e-12)
        assert found["kept"][j] == pytest.approx(y.mean(), abs=5 * y.std() / np.sqrt(len(y)) + 1e-12)
        assert found["kept_square"][j] == pytest.approx(
            (y**2).mean(), abs=5 * (y**2).std() / np.sqrt(len(y)) + 1e-12
        )
        # k of s - 2 steps, counted as (k + ½)/(s - 1)
        assert found["share_mean"][j] == pytest.approx((mean * (s - 2) + 0.5) / (s - 1), rel=1e-12)
        assert found["share_precision"][j] == pytest.approx(precision, rel=1e-12)


def test_mates_by_plain_loops():
    d, found = outcome(bayes.Mates(), ASKING | {"all_right": 0})
    total = 0.0
    for j, m in enumerate(SMALL):
        tilt = sum(d["cluster_basis"][j, r] * W[r] for r in range(RANK))
        q = 1 / (1 + np.exp(-(1.4 - 0.3 * (np.log2(m) - 0.8) + tilt)))
        assert found["mates_right"][j] == pytest.approx(q, rel=1e-10)
        total += d["right"][j] * np.log(q) + (d["asked"][j] - d["right"][j]) * np.log(1 - q)
    dims = {"cluster_size": SMALL}
    with pm.Model(coords=dims) as model:
        logit = np.log(found["mates_right"] / (1 - found["mates_right"]))
        asked_mates("y", d["asked"], pt.as_tensor(logit), d["right"])
    assert model.compile_logp(mode=PLAIN)({}) == pytest.approx(total, rel=1e-9)
    drawn = pm.draw(model["y"], 20_000, random_seed=1, mode=PLAIN)
    q = found["mates_right"]
    np.testing.assert_allclose(drawn.mean(axis=0), d["asked"] * q, atol=0.03)
    variance = d["asked"] ** 2 * q * (1 - q) / (d["asked"] + 1)
    np.testing.assert_allclose(drawn.var(axis=0), variance, rtol=0.06, atol=1e-9)


def test_a_prediction_without_errors():
    _, found = outcome(bayes.Retention(unbroken=0.03), KEEPING | {"unbroken": 1})
    for name in ("intact", "kept", "kept_square"):
        assert (found[name] == 1).all()
    assert found[LOG_FLAWLESS] == -np.inf, "some of the sampled are broken"
    _, found = outcome(bayes.Mates(), ASKING | {"all_right": 1})
    assert (found["mates_right"] == 1).all() and found[LOG_FLAWLESS] == -np.inf
    with pm.Model():
        _, none = flawless("u", 0.03, pt.zeros(4))
    assert pytensor.function([], none, mode=PLAIN)() == pytest.approx(np.log(0.03))
