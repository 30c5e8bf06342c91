"""Fits that start at an earlier fit: the same posteriors, from like samples and from others, in one process or others."""

from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import cloudpickle
import numpy as np
import pytest
from scipy import stats

import erbayes as eb
from erbayes import bayes
from erbayes import metrics as m
from erbayes.analysis.domains import in_domain
from erbayes.bayes.importance import Adapted, LightTails, Start, approximated
from erbayes.engine import Taylor
from erbayes.engine.contract import Preparing
from erbayes.metrics.columns import Domain, Links
from erbayes.study import Entities, study
from erbayes.study.populations import Chain, LogNormal, Merges, Misattribution, Splits, Zeta, simulate

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::erbayes.bayes.NotConverged")]
P, R = m.pairwise_precision, m.pairwise_recall


@cache
def world(kind="usual"):
    if kind == "usual":
        return simulate(LogNormal(1.0, 1.0), Misattribution(0.1), 4000, np.random.default_rng(1))
    errors = Chain((Splits(0.6), Merges(0.3)))
    return simulate(Zeta(1.6, 2000), errors, 30_000, np.random.default_rng(2))


def sample(seed, n=80, kind="usual"):
    pop = world(kind)
    chosen = np.random.default_rng(seed).choice(pop.true.nunique(), n, replace=False)
    return eb.Sample(eb.measure(pop.pred, pop.true[pop.true.isin(chosen)]), eb.UniformClusters())


@cache
def fit(seed, n=80, kind="usual", draws=400):
    return bayes.fast(sample(seed, n, kind), draws=draws, rng=seed)


@pytest.fixture
def searches(monkeypatch):
    """The laws whose mode is searched in full."""
    found, search = [], Adapted._approximate_laplace
    monkeypatch.setattr(
        Adapted, "_approximate_laplace", lambda self, start: found.append(self) or search(self, start)
    )
    return found


def agree(one, other, evidence=0.35):
    """Assert that metrics and evidence of two fits of one sample are the same, up to Monte Carlo error."""
    a, b = (f.apply([P, R]) for f in (one, other))
    assert (np.abs(a.mean - b.mean) < 0.2 * a.sd).all()
    assert (np.abs(np.log(a.sd / b.sd)) < 0.15).all()
    for place, laws in one.parts.items():
        for name, law in laws.items():
            assert abs(law.log_evidence - other.parts[place][name].log_evidence) < evidence


@pytest.mark.parametrize("seed", [2, 3])
def test_a_near_start_gives_the_same_posterior(seed):
    one = sample(seed, 300)
    full = bayes.fast(one, draws=8000, rng=1)
    agree(full, bayes.fast(one, draws=8000, near=fit(1, 300), rng=2))


def test_a_near_start_needs_few_searches(searches):
    earlier = fit(1, 300)
    searches.clear()
    for seed in range(2, 8):
        bayes.fast(sample(seed, 300), draws=250, near=earlier, rng=seed)
    assert len(searches) <= 9  # of 36 laws


def test_a_fit_of_a_far_sample_is_no_help_and_does_no_harm(searches):
    far = fit(1, 400, "giants")
    full = bayes.fast(sample(2), draws=8000, rng=1)
    searches.clear()
    near = bayes.fast(sample(2), draws=8000, near=far, rng=2)
    assert len(searches) >= 2
    agree(full, near)


def test_a_near_fit_is_deterministic_and_does_not_change_the_earlier_one():
    before = fit(1).apply([P, R]).values
    one, two = (bayes.fast(sample(2), draws=200, near=fit(1), rng=5).apply([P, R]).values for _ in range(2))
    assert (one == two).all() and (fit(1).apply([P, R]).values == before).all()


def test_near_must_be_a_fit_with_the_laws_of_the_model():
    with pytest.raises(eb.DataError, match=r"near has the laws .*'usual', 'uneven', 'threshold'"):
        bayes.fast(sample(2), bayes.SizeModel(retention=bayes.Retention()), near=fit(1))
    with pytest.raises(eb.DataError, match=r"near is an earlier fit .*, not Modelled"):
        bayes.fast(sample(2), near=bayes.Modelled())
    with pytest.raises(eb.DataError, match="near has the laws"):
        bayes.fast(sample(2), near=next(iter(fit(1).by_law.values())))


def part(log_densities, d):
    """A part with this log density."""
    return SimpleNamespace(
        log_densities=lambda thetas: np.atleast_1d(log_densities(thetas)),
        start=np.zeros(d),
        heavy_tails=[],
        log_flawless=-np.inf,
        program=None,
    )


def start(centre, scale):
    return Start(LightTails(len(centre), []), np.asarray(centre, float), scale**2 * np.eye(len(centre)))


@pytest.mark.parametrize(("centre", "scale", "helps"), [(3.0, 1.5, True), (1e4, 1e-3, False)])
def test_a_start_that_is_poor_is_dropped(centre, scale, helps, searches):
    truth = stats.multivariate_normal([2.0, -1.0, 0.5], np.diag([1.0, 4.0, 0.25]))
    law = part(lambda x: truth.logpdf(x) + 3.0, 3)
    (found,) = approximated([law], 4000, np.random.default_rng(1), near=[start(np.full(3, centre), scale)])
    assert (len(searches) == 0) is helps
    assert found.log_evidence == pytest.approx(3.0, abs=0.05)
    assert found.centre == pytest.approx([2.0, -1.0, 0.5], abs=0.15)
    assert found.adapted.effective >= 1.25 * 4000


@pytest.mark.parametrize(("centre", "better"), [(2.5, True), (1e4, False)])
def test_a_search_after_a_poor_start_begins_at_the_better_point(centre, better, monkeypatch):
    """The start is too wide. If it is near the mode it is better than the part's own start, 0."""
    began, search = [], Adapted._approximate_laplace
    monkeypatch.setattr(
        Adapted, "_approximate_laplace", lambda self, at: began.append(at) or search(self, at)
    )
    truth = stats.multivariate_normal([2.0, 2.0, 2.0], 4 * np.eye(3))
    near = start(np.full(3, centre), 300.0)
    approximated([part(truth.logpdf, 3)], 400, np.random.default_rng(1), near=[near])
    assert len(began) == 1 and began[0].any() == better


@pytest.mark.parametrize(("off", "steps"), [(0.3, 1), (1.2, 2), (30.0, 3)])
def test_a_short_step_is_the_last(off, steps, monkeypatch):
    asked, densities = [], Adapted._negate_density
    monkeypatch.setattr(
        Adapted, "_negate_density", lambda self, u: asked.append(len(u)) or densities(self, u)
    )
    truth = stats.multivariate_normal(np.zeros(2), np.eye(2))
    law = Adapted.__new__(Adapted)
    law.part, law.tails = part(truth.logpdf, 2), LightTails(2, [])
    point, cov = law._move_start(start([off, 0.0], 1.0))
    whole = [5] if off < 30 else []  # a short step is taken without trying others
    assert asked == [5, 4] * (steps - len(whole)) + whole
    assert point == pytest.approx([max(off - 6, 0), 0], abs=1e-6) and cov == pytest.approx(np.eye(2))


def test_a_start_of_another_dimension_is_not_used(searches):
    law = part(lambda x: stats.multivariate_normal(np.ones(2)).logpdf(x), 2)
    approximated([law], 400, np.random.default_rng(1), near=[start(np.zeros(3), 1.0)])
    assert len(searches) == 1


def test_points_of_a_law_are_limited(monkeypatch):
    """Weights that never become reliable."""
    monkeypatch.setattr(Adapted, "smoothed", property(lambda self: (np.exp(self.log_w), 0.9)))
    law = part(lambda x: stats.multivariate_normal(np.ones(2)).logpdf(x), 2)
    (found,) = approximated([law], 50, np.random.default_rng(1))
    assert len(found.adapted.points) == 40 * 50


class Learns:
    """An engine that prepares for samples like one, and shows by a shift that it did."""

    def __init__(self, shift=0.0, fails=False):
        self.shift, self.fails = shift, fails

    def like(self, sample, metrics, rng=None):
        if self.fails:
            raise eb.DataError("not this sample")
        return Learns(1e-3 * rng.random())

    def __call__(self, sample, metrics, rng=None):
        result = Taylor()(sample, metrics)
        return replace(result, mean=result.mean + self.shift)


def test_a_study_prepares_an_engine_by_the_first_sample_of_a_block(monkeypatch):
    monkeypatch.setattr("erbayes.study.harness.BLOCK", 5)
    assert isinstance(Learns(), Preparing) and isinstance(bayes.Modelled(), Preparing)
    assert not isinstance(Taylor(), Preparing)
    people = {"people": world()}

    def runs(engine):
        plan = {"c": Entities()}
        found = study(people, plan, [40], {"e": engine}, [P], repetitions=10, seed=3)
        return found.runs.estimate.to_numpy()

    added = runs(Learns()) - runs(Taylor())
    assert np.ptp(added[:5]) < 1e-9 and np.ptp(added[5:]) < 1e-9 and abs(added[0] - added[5]) > 1e-6
    assert (runs(Learns(fails=True)) == runs(Taylor())).all()


class AnotherProcess:
    """As `joblib.Parallel`, in this process: each job and its result are pickled as for another one."""

    def __init__(self, return_as):
        assert return_as == "generator_unordered"

    def __call__(self, jobs):
        for job in jobs:
            work, arguments, options = cloudpickle.loads(cloudpickle.dumps(job))
            yield cloudpickle.loads(cloudpickle.dumps(work(*arguments, **options)))


def test_a_study_with_near_fits_is_the_same_in_other_processes(searches, monkeypatch):
    def runs():
        plans, engines = {"one": Entities(), "two": Entities()}, {"model": bayes.Modelled(draws=60)}
        people = {"people": world()}
        found = study(people, plans, [60], engines, [P, R], repetitions=3, seed=3)
        assert not found.runs.failed.any()
        return found.runs[["estimate", "lower", "upper"]].to_numpy()

    one = runs()
    assert len(searches) < 2 * 6 + 2 * 3 * 2  # two fits in full, and few searches of the six that start there
    monkeypatch.setattr("erbayes.study.harness.joblib.Parallel", AnotherProcess)
    assert (one == runs()).all()


def test_each_domain_starts_at_its_own_fit(monkeypatch):
    pop = world()
    kind = (pop.true % 2).map({0: "A", 1: "B"}).rename("kind")
    chosen = [np.random.default_rng(s).choice(pop.true.nunique(), 150, replace=False) for s in (1, 2)]
    one, two = (
        eb.Sample(
            eb.measure(pop.pred, pop.true[pop.true.isin(c)]).grouped(kind, prediction=pop.pred),
            eb.UniformClusters(),
        )
        for c in chosen
    )
    metrics = [in_domain(P, Domain("kind", (k,))) for k in "AB"]
    plain = bayes.Modelled(draws=1000)
    engine = plain.like(one, metrics, 1)
    assert list(engine.near) == [(Domain("kind", (k,)), Links.SHARED) for k in "AB"]
    a, b = plain(two, metrics, 2), engine(two, metrics, 3)
    assert (np.abs(a.mean - b.mean) < 0.4 * a.sd).all()
