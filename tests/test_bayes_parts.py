"""Parts of one's own: their contract, their keys, and fits in several threads."""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from threading import Barrier
from typing import Any

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from checks import raises
from own_families import BLOCKS, PAGE
from scipy import stats
from scipy.special import logsumexp

import erbayes as eb
from erbayes import DataError, bayes
from erbayes import metrics as m
from erbayes.bayes.contract import DATA, RANK, RETURNED, coords
from erbayes.bayes.data import Evidence
from erbayes.bayes.model import Sizes, join_parts
from erbayes.bayes.priors import smooth, variable
from erbayes.bayes.programs import CompiledPart, ParameterDraws, PartDraws, Program, content, draw_from_prior
from erbayes.labels import Records
from erbayes.study import draw_samples
from erbayes.study.populations import Misattribution, Population, Zeta, simulate

pytestmark = pytest.mark.slow

ASKED = [m.pairwise_precision, m.pairwise_recall]


def population(seed: int = 1, errors: float = 0.1, largest: int = 60) -> Population:
    return simulate(Zeta(2.5, largest), Misattribution(errors), 4000, np.random.default_rng(seed))


def sample(seed: int = 1, n: int = 60, errors: float = 0.1, largest: int = 60) -> eb.Sample:
    units = population(seed, errors, largest).units
    return draw_samples(Records(), units, n, 1, np.random.default_rng(seed)).separate[0]


@pytest.fixture(scope="module")
def data():
    return Evidence.of(sample()).data


@pytest.fixture
def anew(monkeypatch):
    """No part that was made before."""
    monkeypatch.setattr(CompiledPart, "cache", {})
    monkeypatch.setattr(Program, "cache", [])


def power_law(data, exponent):
    """Log chances of the bins under a power law, by NumPy."""
    weights = -exponent * np.log(data["size"]) + np.log(data["width"]) + np.log(data["selection"])
    return weights - logsumexp(weights)


def log_density(data, theta, prior, exponent):
    """Log joint density of the draws in each bin and of θ, by SciPy."""
    return prior.logpdf(theta) + data["drawn"] @ power_law(data, exponent)


def log_weights(data, exponent):
    return -exponent * pt.log(data["size"]) + pt.log(data["width"])


@dataclass(frozen=True)
class OfFloat:
    sd: float

    def log_weights(self, data):
        return log_weights(data, 2 + pt.exp(pm.Normal("k", 0, self.sd)))


@dataclass(frozen=True)
class OfString:
    kind: str

    def log_weights(self, data):
        steepest = {"flat": 1.5, "steep": 3.0}[self.kind]
        return log_weights(data, steepest + pt.exp(pm.Normal("k", 0, 0.5)))


@dataclass(frozen=True)
class OfFunction:
    exponent: Callable[[Any], Any]

    def log_weights(self, data):
        return log_weights(data, self.exponent(pm.Normal("k", 0, 0.5)))


@dataclass(frozen=True)
class OfInner:
    inner: OfFloat
    pair: tuple[float, float] = (1.0, 1.0)

    def log_weights(self, data):
        return self.pair[0] * self.pair[1] * self.inner.log_weights(data)


@dataclass
class Unhashable:
    powers: list[float]

    def log_weights(self, data):
        return log_weights(data, sum(self.powers) + pt.exp(pm.Normal("k", 0, 0.5)))


class Plain:
    """No dataclass at all."""

    def __init__(self, least: float) -> None:
        self.least = least

    def log_weights(self, data):
        return log_weights(data, self.least + pt.exp(pm.Normal("k", 0, 0.5)))


HALF = stats.norm(0, 0.5)


@pytest.mark.parametrize("make, priors, exponents", [
    (OfFloat, {1.0: stats.norm(0, 1), 0.001: stats.norm(0, 0.001)}, lambda _, k: 2 + np.exp(k)),
    (OfString, {"flat": HALF, "steep": HALF}, lambda v, k: {"flat": 1.5, "steep": 3.0}[v] + np.exp(k)),
    (lambda v: OfFunction(lambda k: v + k), {2.0: HALF, 3.0: HALF}, lambda v, k: v + k),
    (lambda v: Unhashable([1.0, v]), {0.5: HALF, 2.0: HALF}, lambda v, k: 1 + v + np.exp(k)),
    (Plain, {0.5: HALF, 2.0: HALF}, lambda v, k: v + np.exp(k)),
], ids=["float", "str", "closure", "list", "no dataclass"])  # fmt: skip
def test_a_part_has_the_numbers_of_its_own_fields(make, priors, exponents, data, anew):
    first, _ = values = list(priors)
    for value in (*values, first):
        compiled = CompiledPart.of(Sizes(make(value)), data)
        wanted = log_density(data, 0.1, priors[value], exponents(value, 0.1))
        assert compiled.log_densities(np.array([[0.1]]))[0] == pytest.approx(wanted, rel=1e-10)


def test_a_fit_has_the_numbers_of_its_own_fields():
    """Compiled, and by the door: the posterior of k under a rigid prior is that prior."""
    at = sample()
    wide, rigid = (bayes.fast(at, bayes.SizeModel(OfFloat(sd)), draws=1000, rng=1) for sd in (1.0, 0.001))
    assert rigid.draws.parameters["k"].std() == pytest.approx(0.001, rel=0.2)
    assert wide.draws.parameters["k"].std() > 0.02


def test_nested_fields_count(data, anew):
    at, flat = np.array([[0.2]]), OfInner(OfFloat(0.5))
    found = [
        CompiledPart.of(Sizes(part), data).log_densities(at)[0]
        for part in (flat, OfInner(OfFloat(0.7)), OfInner(OfFloat(0.5), (1.0, 1.5)), flat)
    ]
    assert found[0] == found[-1] and len(set(found)) == 3


def test_a_function_that_changes_is_seen(data, anew):
    least = [2.0]
    part = Sizes(OfFunction(lambda k: least[0] + k))
    for least[0] in (2.0, 3.0, 2.0):
        wanted = log_density(data, 0.1, HALF, least[0] + 0.1)
        assert CompiledPart.of(part, data).log_densities(np.array([[0.1]]))[0] == pytest.approx(wanted)
    assert len(Program.cache) == 2, "an equal graph is not compiled again"


@dataclass(frozen=True, slots=True)
class Small:
    """A part with one number, whose prior a test gives it."""

    level: Any

    def given_size(self, data):
        return {"clean": pm.math.sigmoid(variable(self.level, "small_level") + data["x"])}


def test_values_of_priors_are_data(data, anew):
    for sd in (0.1, 0.2, np.float64(0.3)):
        compiled = CompiledPart.of(Sizes(bayes.ZetaSizes(sd)), data)
        wanted = log_density(data, 0.2, stats.norm(0, sd), 1 + 1.2 * np.exp(0.2))
        assert compiled.log_densities(np.array([[0.2]]))[0] == pytest.approx(wanted)
    CompiledPart.of(Small(level=lambda name: bayes.NormalPrior(0, 1)(name)), data)
    CompiledPart.of(Small(level=lambda name: bayes.NormalPrior(0, 2)(name)), data)
    assert len(Program.cache) == 2


def test_no_data_are_cut_to_whole_numbers(data, anew):
    part = Sizes(bayes.ZetaSizes())
    CompiledPart.of(part, data)
    raises(TypeError, "same_kind", CompiledPart.of, part, data | {"drawn": data["drawn"] + 0.5})


def test_keys_are_plain_values():
    @dataclass(frozen=True)
    class Late:
        sd: float

        def __post_init__(self):
            object.__setattr__(self, "more", 2 * self.sd)

    @dataclass(frozen=True)
    class Uncompared:
        sd: float = field(compare=False)

    assert content(bayes.ZetaSizes(1)) != content(bayes.ZetaSizes(1.0)) == content(bayes.ZetaSizes(1.0))
    assert content(Uncompared(1.0)) != content(Uncompared(2.0))
    assert content((1, "a", None, b"c", bayes.NormalPrior(0, 1))) is not None
    for opaque in (Late(1.0), (1, [2]), OfFunction(abs), np.ones(2), Plain(1.0), float, bayes.ZetaSizes):
        assert content(opaque) is None


def test_parameters_that_grow_with_the_data(data, anew):
    """As many parameters as bins: each sample has its own."""

    @dataclass(frozen=True)
    class Rough:
        def log_weights(self, data):
            return log_weights(data, 2.0) + pm.Normal("bump", 0 * data["x"], 0.1)

    more = Evidence.of(sample(2, largest=900)).data
    for at in (data, more, data):
        J, compiled = len(at["size"]), CompiledPart.of(Sizes(Rough()), at)
        theta = np.sin(np.arange(J))
        weights = power_law(at, 2.0) + theta
        wanted = stats.norm(0, 0.1).logpdf(theta).sum() + at["drawn"] @ (weights - logsumexp(weights))
        assert compiled.log_densities(theta[None])[0] == pytest.approx(wanted)
    assert len(data["size"]) != len(more["size"])


def test_the_data_are_those_of_the_dictionary():
    at = sample()
    evidence = Evidence.of(at)
    assert set(evidence.data) == set(DATA)
    lengths = {dim: len(values) for dim, values in coords(evidence.data).items()}
    for name, datum in DATA.items():
        shape = np.shape(evidence.data[name])
        assert shape == tuple(lengths[dim] for dim in datum.dims), name


def test_what_parts_return_is_in_the_dictionary(data):
    for place, part in bayes.SizeModel().tied.items():
        with pm.Model(coords=coords(data)):
            returned = part.given_size({k: pt.constant(v) for k, v in data.items()})
        assert set(returned) - {"log_flawless"} == set(RETURNED[place])


@dataclass(frozen=True)
class Law:
    """Whatever a test gives it."""

    quantities: Callable[[Any], dict[str, Any]]

    def given_size(self, data):
        k = pm.Normal("k")
        kept = pm.math.sigmoid(k + 0 * data["size"])
        every = {"intact": kept, "kept": kept, "kept_square": kept**2}
        return every | {"share_mean": kept, "share_precision": kept} | self.quantities(data)


def unlike(name, value):
    return lambda data: {name: value(data)}


@pytest.mark.parametrize("quantities, message", [
    (unlike("kept", lambda d: 0.5), r"'kept' of Law has shape \(\): its dimensions must be \('entity_size',\)"),
    (unlike("kept", lambda d: d["basis"]), r"'kept' of Law has shape \(None, None\)"),
    (unlike("kept", lambda d: np.ones(1)), r"'kept' of Law has shape \(1,\)"),
    (unlike("intact", lambda d: 0.5 * d["x"][:3] ** 0), r"'intact' of Law has shape \(3,\), not \(\d+,\)"),
    (unlike("intact", lambda d: -d["size"]), r"'intact' of Law runs from -\d+ to -1: it must lie between 0 and 1"),
    (unlike("share_mean", lambda d: d["size"]), r"'share_mean' of Law runs from 1 to \d+"),
    (unlike("own", lambda d: pt.log(d["x"])), r"'own' of Law is not finite in 1 of \d+ places"),
    (unlike("own", lambda d: d["x"][:3] + d["x"][:4]), "Law cannot be computed where its sampler starts: "),
    (unlike("own", lambda d: d["sizes"]), "no data are called 'sizes'; a part receives size, width, x, basis"),
    (unlike("own", lambda d: pm.Normal.dist(d["x"])), "Law depends on a random variable outside its model"),
    (unlike("own", lambda d: d["x"] * pytensor.shared(1.0, "mine")), "Law depends on the shared variables mine"),
    (unlike("own", lambda d: d["x"] * pm.Bernoulli("b", 0.5)),
        "Law has 1 discrete random variables, 'b', and may have none: give others continuous priors"),
    (unlike("log_flawless", lambda d: pt.constant(0.0)), "Law returns 'log_flawless' alone: return it as `flawless` makes it"),
    (unlike("own", lambda d: (pm.Potential("bad", pt.constant(-np.inf)), d["x"])[1]),
        "the log density of Law is -inf where its sampler starts"),
])  # fmt: skip
def test_a_part_that_breaks_its_contract(quantities, message, anew):
    at, model = sample(), bayes.SizeModel(retention=Law(quantities))
    raises(DataError, message, CompiledPart.of, model.tied["retention"], Evidence.of(at).data)


def test_a_discrete_prior_is_named(anew):
    part = bayes.SizeModel(retention=bayes.Retention(break_level=pm.Poisson.dist(2))).tied["retention"]
    said = (
        "Retention has 2 discrete random variables, .*'break_level'.* may have only that of `flawless`: give"
    )
    raises(DataError, said, CompiledPart.of, part, Evidence.of(sample()).data)


@pytest.mark.parametrize("place", ["retention", "mates"])
def test_missing_quantities_are_named(place, data):
    class Mute:
        def given_size(self, data):
            pm.Normal("k")
            return {"intact": data["size"] ** 0}

    model = bayes.SizeModel(**{place: Mute()})
    lacking = ", ".join(f"'{name}'" for name in RETURNED[place] if name != "intact")
    wanted = f"Mute.given_size returns no {lacking}: as {place} of a SizeModel it must return "
    raises(DataError, wanted, CompiledPart.of, model.tied[place], data)


@pytest.mark.parametrize("weights, message", [
    (lambda data: data["x"], "Own has no continuous parameter: it must create a random variable"),
    (lambda data: pm.Normal("k"), r"'log_weights' of Own has shape \(\): its dimensions must be"),
    (lambda data: pm.Normal("k", shape=1), r"'log_weights' of Own has shape \(1,\): its dimensions must be"),
    (lambda data: pm.Normal("k") * data["x"][:5], "Own cannot be computed where its sampler starts"),
])  # fmt: skip
def test_families_that_break_their_contract(weights, message, data, anew):
    class Own:
        def log_weights(self, data):
            return weights(data)

    raises(DataError, message, CompiledPart.of, Sizes(Own()), data)


@pytest.mark.parametrize("part, message", [
    ({"sizes": bayes.LogNormalSizes}, r"LogNormalSizes is a class: pass an object of it, LogNormalSizes\(\.\.\.\)"),
    ({"sizes": "log-normal"}, "sizes of a SizeModel must have a method log_weights, not 'log-normal'"),
    ({"sizes": bayes.Mates()}, "sizes of a SizeModel must have a method log_weights, not Mates"),
    ({"mates": bayes.LogNormalSizes()}, "mates of a SizeModel must have a method given_size, not LogNormal"),
    ({"mates": None}, "mates of a SizeModel must have a method given_size, not None"),
])  # fmt: skip
def test_parts_in_a_wrong_place_are_refused_by_the_door(part, message):
    raises(DataError, message, bayes.SizeModel, **part)


@pytest.mark.parametrize("prior, message", [
    (lambda name: pm.Normal("other"), "the prior of 'share_level' created no variable of that name"),
    (lambda name: pm.Normal.dist(0, 1), "the prior of 'share_level' created no variable of that name"),
    (lambda name: pm.Normal(name, shape=3), "the prior of 'share_level' created 1 dimensions"),
    (pm.Normal.dist(0, 1, shape=3), "the prior of 'share_level' created 1 dimensions"),
    (2 * pm.Normal.dist(0, 1), r"the prior of 'share_level' is a TensorVariable: it must be a distribution as pm\.Normal\.dist"),
    (0.5, "the prior of 'share_level' is a float: it must be a distribution .*, or be called with a name"),
])  # fmt: skip
def test_priors_that_are_none(prior, message, data, anew):
    raises(DataError, message, CompiledPart.of, bayes.Retention(share_level=prior), data)


def test_a_distribution_of_pymc_is_a_prior(data, anew):
    """The same density as by a callable. One distribution serves two fits, and two priors independently."""
    usual, other = pm.Normal.dist(0.3, 2.0), pm.Normal.dist(0.3, 0.5)
    by_name = CompiledPart.of(Small(level=lambda name: pm.Normal(name, 0.3, 2.0)), data)
    thetas = np.random.default_rng(1).normal(size=(5, len(by_name.start)))
    for prior, same in ((usual, True), (usual, True), (other, False)):
        found = CompiledPart.of(Small(level=prior), data).log_densities(thetas)
        assert np.allclose(found, by_name.log_densities(thetas), rtol=1e-12) == same
    part = bayes.Retention(break_level=usual, share_level=usual)
    both = draw_from_prior(part, data, 400, np.random.default_rng(2))
    a, b = (both.parameters[k].ravel() for k in ("break_level", "share_level"))
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.2 and stats.kstest(a, stats.norm(0.3, 2.0).cdf).pvalue > 1e-4
    positive = CompiledPart.of(Small(level=pm.Exponential.dist(1.0)), data)
    assert "small_level_log__" in positive.program.names
    assert usual.name is None, "the distribution of the user is unchanged"


class Nested:
    """A scale, three values of that scale, and one between 0 and it, whose transform depends on it."""

    def log_weights(self, data):
        scale = pm.HalfNormal("scale", 1.0)
        values, inside = pm.Normal("values", 5.0, scale, shape=3), pm.Uniform("inside", 0.0, scale)
        return log_weights(data, 2 + inside + values.sum())


def test_draws_of_a_prior_depend_on_each_other_as_it_says(data, anew):
    found = draw_from_prior(Sizes(Nested()), data, 2000, np.random.default_rng(3)).parameters
    scale, values, inside = (found[name][0] for name in ("scale", "values", "inside"))
    z, share = (values - 5) / scale[:, None], inside / scale
    for drawn, law in ((scale, stats.halfnorm), (share, stats.uniform), *((v, stats.norm) for v in z.T)):
        assert stats.kstest(drawn, law.cdf).pvalue > 1e-3
    together = np.corrcoef(np.column_stack([scale, share, z, np.abs(z)]), rowvar=False)
    assert np.abs(together - np.eye(8)).max() < 0.1


def test_any_callable_is_a_prior(data, anew):
    """Also one of more than one variable."""

    def mixed(name):
        return pm.Deterministic(name, pm.Exponential(f"{name}_size", 1) * pm.Normal(f"{name}_z", 0, 1))

    compiled = CompiledPart.of(Small(level=mixed), data)
    assert {"small_level_size_log__", "small_level_z"} == set(compiled.program.names)


def test_the_prior_density_has_all_variables_whatever_their_names(data, anew):
    class Own:
        def log_weights(self, data):
            a, b = pm.Normal("size_a", 0, 2), pm.Gamma("b", 2, 3)
            pm.Potential("c", -a * b)
            return log_weights(data, 2 + a + b)

    compiled = CompiledPart.of(Sizes(Own()), data)
    at = ParameterDraws(np.array([[[0.3, np.log(0.7)]]]), np.zeros((1, 1), dtype=np.int64))
    drawn = compiled.evaluated(at)
    wanted = stats.norm(0, 2).logpdf(0.3) + stats.gamma(2, scale=1 / 3).logpdf(0.7) - 0.3 * 0.7
    assert drawn.log_prior == pytest.approx(np.array([[wanted]]))


def test_smooth_functions_of_any_name(data, anew):
    class Own:
        scale = 0.3

        def log_weights(self, data):
            return log_weights(data, 2) + smooth("wave", RANK, self.scale)(data["basis"])

    part = Own()
    for part.scale in (0.3, 0.6):
        compiled = CompiledPart.of(Sizes(part), data)
        ((at, location, scale),) = compiled.heavy_tails
        assert (location, scale) == (0.0, part.scale) and list(at) == list(range(RANK))
        assert compiled.program.names == ["wave_weights"] * RANK
    assert len(Program.cache) == 1
    retention = CompiledPart.of(bayes.Retention(), data)
    wanted = {
        "precision_slope": (0.15, 0.3),
        "break_slope": (0.07, 0.25),
        "share_slope": (0.0, 0.25),
        "break_tilt_weights": (0.0, 0.5),
        "share_tilt_weights": (0.0, 0.5),
    }
    found = {retention.program.names[at[0]]: tuple(prior) for at, *prior in retention.heavy_tails}
    assert found == wanted


def test_parts_with_a_name_in_common_are_refused(data):
    one = np.ones((1, 4, len(data["size"])))
    parts = {
        "sizes": PartDraws({"entities": one}, {"k": one[..., 0]}, one[..., 0]),
        "mates": PartDraws({"mates_right": one}, {"k": one[..., 0]}, one[..., 0]),
    }
    with pytest.raises(DataError, match="both sizes and mates have a 'k': rename one of them"):
        join_parts(parts, data, np.random.default_rng(1))


def test_the_fewest_draws_and_seeds():
    at, P = sample(), [m.pairwise_precision]
    by_seed = bayes.fast(at, draws=50, rng=5).apply(P).values
    again = bayes.fast(at, draws=50, rng=np.random.default_rng(5)).apply(P).values
    np.testing.assert_array_equal(by_seed, again)
    other, another = (bayes.fast(at, draws=50).apply(P).values for _ in range(2))
    assert (other != another).any()


def at_once(work, number):
    """What `work` returns for each of so many threads that start together."""
    gate = Barrier(number)

    def begin(i):
        gate.wait()
        return work(i)

    with ThreadPoolExecutor(number) as threads:
        return list(threads.map(begin, range(number)))


def test_two_threads_get_their_own_posteriors():
    samples = [sample(1, errors=0.02), sample(2, errors=0.4)]
    asked = [m.pairwise_precision, m.b3_recall]

    def fit(i):
        return bayes.fast(samples[i % 2], draws=200, rng=5).apply(asked).values

    alone = [fit(0), fit(1)]
    for i, found in enumerate(at_once(lambda i: [fit(i) for _ in range(3)], 4)):
        for values in found:
            np.testing.assert_array_equal(values, alone[i % 2])


def test_threads_that_compile_at_once(anew):
    """Functions of NumPy change threads within a call, and share what holds their arguments."""
    every = [Evidence.of(sample(i, n=30 + 10 * i)).data for i in range(4)]
    thetas = np.linspace(-1, 1, 21)[:, None]

    def densities(i):
        found = []
        for _ in range(20):
            part = Sizes(bayes.ZetaSizes(0.5 + 0.1 * i))
            found.append(CompiledPart.of(part, every[i]).log_densities(thetas))
        return np.array(found)

    for i, found in enumerate(at_once(densities, 4)):
        prior = stats.norm(0, 0.5 + 0.1 * i)
        wanted = [log_density(every[i], k, prior, 1 + 1.2 * np.exp(k)) for k in thetas[:, 0]]
        np.testing.assert_allclose(found, np.broadcast_to(wanted, found.shape), rtol=1e-10)
    assert len(Program.cache) == 1


def test_the_page_shows_the_whole_contract():
    """A block `{contract} NAME` is a table of what the contract says, made when the site is built."""
    assert re.findall(r"^```\{contract\} (\w+)$", PAGE, re.M) == ["DATA", "RETURNED"]
    assert all(q.meaning for each in RETURNED.values() for q in each.values())


def test_the_page_runs(monkeypatch):
    """Its family against SciPy, its outcomes against plain formulas, and its fits near the truth."""
    monkeypatch.setattr(bayes, "fast", partial(bayes.fast, draws=400))
    at = sample(3, n=150)
    page: dict[str, Any] = {"sample": at}
    fits = []
    for block in BLOCKS:
        exec(block, page)
        fits.append(page["fit"])
    by_family, by_outcome = fits
    assert by_family.model.sizes is page["family"]
    s, grid = by_family.evidence.grid.size, by_family.evidence.grid
    log_mean, log_shape = (by_family.draws.parameters[f"size_{name}"] for name in ("mu", "alpha"))
    mean, alpha = np.exp(log_mean)[..., None], np.exp(log_shape)[..., None]
    weights = stats.nbinom(alpha, alpha / (mean + alpha)).pmf(np.floor(s)) * grid.width
    wanted = 4000 * weights / (weights * s).sum(-1, keepdims=True)
    np.testing.assert_allclose(by_family.by_size["entities"], wanted, rtol=1e-6, atol=1e-12)
    prior = stats.norm(1.5, 1).logpdf(log_mean) + stats.norm(0, 1.5).logpdf(log_shape)
    common = by_family.draws.common.ravel()
    slope, _ = np.polyfit(common, prior.ravel(), 1)  # given the number of common links
    told = prior.ravel() - slope * (common - common.mean())
    np.testing.assert_allclose(by_family.draws.log_prior["sizes"].ravel(), told, rtol=1e-6)
    drawn = by_outcome.draws.parameters
    x = np.log2(s) - by_outcome.evidence.data["centre"]
    hazard = np.exp(drawn["break_level"][..., None] + drawn["break_slope"][..., None] * x)
    mean = 1 / (1 + np.exp(-drawn["share_logit"][..., None]))
    intact = np.where(s > 1, np.exp(-hazard), 1)
    kept = intact + (1 - intact) * np.maximum(s - 2, 0) / s * mean
    np.testing.assert_allclose(by_outcome.by_size["intact"], intact, rtol=1e-9)
    np.testing.assert_allclose(by_outcome.by_size["kept"], kept, rtol=1e-9)
    spread = stats.beta.var(*(p * np.exp(drawn["share_log_precision"][..., None]) for p in (mean, 1 - mean)))
    most = np.maximum(s - 2, 0) / s
    square = intact + (1 - intact) * most**2 * (mean**2 + spread)
    np.testing.assert_allclose(by_outcome.by_size["kept_square"], square, rtol=1e-9)
    for fit in fits:
        intervals = fit.apply(ASKED).interval(0.999)
        truth = [population(3).value(metric) for metric in ASKED]
        assert ((intervals[:, 0] < truth) & (truth < intervals[:, 1])).all()
        checks = fit.predictive(draws=50, rng=1)
        assert set(checks["prior_predictive"].data_vars) == set(checks["observed_data"].data_vars)
        assert set(fit.tree["log_prior"].data_vars) == {"sizes", "retention", "mates"}
