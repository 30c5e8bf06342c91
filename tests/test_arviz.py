"""The doors of the Bayesian engine to ArviZ and PyMC: every plot and statistic that the docs name, on real fits."""

import pickle
import re
from dataclasses import replace
from pathlib import Path

import arviz as az
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr
from checks import raises
from matplotlib.figure import Figure
from own_families import BodyAndTail
from pytensor.compile.mode import Mode
from scipy import stats
from test_bayes import PRED, TRUE, clusters, rng, world

import erbayes as eb
from erbayes import bayes, datasets, plots
from erbayes import metrics as m
from erbayes.bayes.data import Evidence
from erbayes.bayes.model import Sizes, draw_populations, poststratify
from erbayes.bayes.programs import CompiledPart, draw_from_prior, own_model
from erbayes.bayes.totals import EXPECTED, identifies
from erbayes.bayes.tree import Category, Event, Share, categorical, factors
from erbayes.metrics import PER_RECORD, UNIT, Metric
from erbayes.metrics.columns import RECORDS, PieceSum
from erbayes.study import populations

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::erbayes.bayes.NotConverged"),
    pytest.mark.filterwarnings("ignore:Estimated shape parameter"),
]
P, R = m.pairwise_precision, m.pairwise_recall
PARTS = ["sizes", "retention", "mates"]
GROUPS = {
    *("posterior", "by_size", "totals", "log_likelihood", "log_prior", "observed_data", "constant_data")
}


@pytest.fixture(scope="module")
def fit():
    return bayes.fast(clusters(60, 1), draws=400, rng=rng())


@pytest.fixture(scope="module")
def checks(fit):
    return fit.predictive(draws=150, rng=rng())


@pytest.fixture(autouse=True)
def many_pictures():
    with plt.rc_context({"figure.max_open_warning": 0}):
        yield


def test_groups_have_the_conventions_of_arviz(fit):
    assert set(fit.tree.children) == GROUPS
    for name, group in fit.tree.children.items():
        assert {"created_at", "creation_library"} <= set(group.attrs)
        assert group.attrs["inference_library"] == "erbayes"
        assert group.attrs["sampler"] == "importance sampling"
        assert group.attrs["inference_library_version"] == fit.tree.attrs["inference_library_version"]
        if not name.endswith("data"):
            assert group["chain"].to_numpy().tolist() == list(range(4))
            assert group["draw"].to_numpy().tolist() == list(range(100))
    ids = fit.sample.units.ids.astype(str)
    observed = fit.tree["observed_data"]
    assert observed["entity"].to_numpy().tolist() == ids.tolist()
    broken = fit.evidence.entities.broken
    assert observed["broken_entity"].to_numpy().tolist() == [
        i for i, bad, s in zip(ids, broken, fit.sample.units.size, strict=True) if bad and s > 2
    ]
    posterior = fit.tree["posterior"]
    assert posterior["metrics"].dims == ("chain", "draw", "metric")
    assert posterior["break_tilt_weights"].dims == ("chain", "draw", "break_tilt_basis")
    assert posterior["metric"].to_numpy().tolist() == [x.name for x in fit.metrics]
    assert not {"log_prior", "unbroken", "all_right"} & set(posterior.data_vars)
    by_size = fit.tree["by_size"]
    assert by_size["kept_by_size"].dims == ("chain", "draw", "entity_size")
    np.testing.assert_array_equal(by_size["entity_size"], fit.size)
    assert by_size["mates_right_by_size"].dims == ("chain", "draw", "cluster_size")
    known = fit.tree["constant_data"]
    np.testing.assert_array_equal(known["records_of_entity"], fit.sample.units.size)
    assert float(known["records"]) == 4000


def test_summary_is_of_parameters_and_metrics(fit):
    told = az.summary(fit.tree)
    assert len(told) < 80 and not told.index.str.contains(r"_by_size\[|log_prior|unbroken").any()
    told = az.summary(fit.tree, var_names=["metrics", "break_level"])
    assert {"mean", "r_hat", "ess_bulk"} <= set(told.columns) and "metrics[pairwise-recall]" in told.index


def test_convergence_of_each_part(fit):
    table = fit.convergence()
    assert list(table.columns) == ["khat", "r_hat", "worst", "effective"]
    assert table.index.tolist() == PARTS and table.index.name == "part"
    for place, row in table.iterrows():
        thetas = fit.parts[place].thetas
        r_hat = [az.rhat(thetas[..., i]) for i in range(thetas.shape[-1])]
        assert row.r_hat == pytest.approx(max(r_hat), rel=1e-6)
        names = CompiledPart.of(fit.model.tied[place], fit.evidence.data).program.names
        assert row.worst == names[int(np.argmax(r_hat))]
        ess = [az.ess(thetas[..., i], method="bulk") for i in range(thetas.shape[-1])]
        assert row.effective == pytest.approx(min(ess), rel=1e-6) and row.khat == fit.parts[place].khat


def test_quantities_of_the_tree_follow_from_its_parameters(fit):
    posterior, d = fit.tree["posterior"], fit.evidence.data
    level, slope, w = (posterior[f"break_{k}"].to_numpy() for k in ("level", "slope", "tilt_weights"))
    slope = slope + posterior["precision_slope"].to_numpy()
    log_hazard = level[..., None] + slope[..., None] * (d["x"] - d["centre"]) + w @ d["basis"].T
    intact, found = np.exp(-np.exp(log_hazard)), fit.tree["by_size"]["intact_by_size"].to_numpy()
    np.testing.assert_allclose(found[..., 1:], intact[..., 1:], rtol=1e-6)
    assert {v.name for v in fit.pymc.free_RVs} <= set(posterior.data_vars)


V = ["break_level", "share_level", "size_slope"]
OF_SEVERAL = ["size", "share"]
OF_PR = {"var_names": ["metrics"], "coords": {"metric": [P.name, R.name]}}
OF_CHAINS = {
    **{f"plot_{k}": {"var_names": V} for k in ("trace", "trace_dist", "rank", "rank_dist", "autocorr")},
    **{f"plot_{k}": {"var_names": V} for k in ("ess", "ess_evolution", "mcse", "pair", "parallel")},
    "plot_convergence_dist": {"var_names": V},
    **{f"plot_{k}": OF_PR for k in ("forest", "dist", "ridge", "psense_dist", "psense_quantities")},
    **{k: {} for k in ("summary", "rhat", "ess", "mcse", "diagnose", "loo")},
    "psense_summary": {"var_names": ["metrics"]},
}
OF_PREDICTIONS = {
    "plot_ppc_dist": {"var_names": OF_SEVERAL, "kind": "ecdf"},
    "plot_ppc_pit": {"var_names": OF_SEVERAL},
    "plot_ppc_tstat": {"var_names": OF_SEVERAL},
    "plot_loo_pit": {},
    "plot_ppc_rootogram": {"var_names": ["size"]},
    "plot_ppc_pava": {"var_names": ["broken"]},
    "plot_loo_pava": {"var_names": ["broken"]},
    "plot_ppc_interval": {"var_names": ["share"]},
    "plot_prior_posterior": {"var_names": V},
    "psense_summary": {"var_names": ["metrics"]},
}


@pytest.mark.parametrize("name", OF_CHAINS)
def test_arviz_on_a_fit(fit, name):
    assert getattr(az, name)(fit.tree, **OF_CHAINS[name]) is not None


@pytest.mark.parametrize("name", OF_PREDICTIONS)
def test_arviz_on_predictions(checks, name):
    assert getattr(az, name)(checks, **OF_PREDICTIONS[name]) is not None


def test_arviz_on_leave_one_out(fit):
    left_out = az.loo(fit.tree, pointwise=True)
    assert np.isfinite(left_out.elpd) and left_out.pareto_k.shape == (60,)
    assert az.plot_khat(left_out) is not None
    again = bayes.fast(fit.sample, draws=400, rng=rng(2))
    compared = az.compare({"one seed": fit.tree, "another": again.tree}, round_to="none")
    # over seeds, elpd has a Monte Carlo error of .8 with 400 draws
    assert compared["elpd"].max() - compared["elpd"].min() < 3 and az.plot_compare(compared) is not None


def test_docs_name_what_is_tested_here():
    page = (Path(__file__).parent.parent / "docs" / "guide" / "arviz.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\baz\.([a-z_]+)", page))
    tested = {*OF_CHAINS, *OF_PREDICTIONS, "plot_khat", "compare", "plot_compare", "from_netcdf"}
    assert len(named) > 30 and named == tested


def test_log_prior_of_each_part(fit):
    d, parameters = fit.evidence.data, fit.draws.parameters
    for part, prior in fit.draws.log_prior.items():
        model, _ = own_model(fit.model.tied[part], d)
        free = model.free_RVs
        values, logp = [model.rvs_to_values[v] for v in free], model.logp(vars=free, jacobian=False)
        density = pm.compile(values, logp, mode=Mode("py", None))
        wanted = [float(density(*(parameters[v.name][at] for v in free))) for at in np.ndindex(prior.shape)]
        wanted = np.reshape(wanted, prior.shape)
        if part != "mates":  # given the number of common links
            x = fit.draws.common
            wanted -= np.polyfit(x.ravel(), wanted.ravel(), 1)[0] * (x - x.mean())
        np.testing.assert_allclose(prior, wanted, rtol=1e-6)
    assert list(fit.draws.log_prior) == PARTS
    np.testing.assert_array_equal(fit.tree["log_prior"]["mates"], fit.draws.log_prior["mates"])


def test_weight_of_the_prior(fit):
    """By reweighting draws with the prior to the power 1.0001, against the slope."""
    draws = fit.apply([P, R])
    found = fit.prior_shift(draws)
    assert list(found.columns) == PARTS and list(found.index) == [P.name, R.name]
    for part, prior in fit.draws.log_prior.items():
        w = np.exp(0.0001 * (prior - prior.mean())).ravel()
        moved = np.abs(w @ draws.flat / w.sum() - draws.mean) / np.log2(1.0001) / draws.sd
        np.testing.assert_allclose(found[part], moved, rtol=0.01, atol=0.001)
    np.testing.assert_allclose(fit.table().prior_shift[[P.name, R.name]], found.max(axis=1))


def test_priors_of_the_example_and_its_sample():
    """The calls of the guide, and what it says of them: recall is about ArviZ's limit, by retention alone."""
    case = datasets.people()
    sample = eb.Sample(eb.measure(case.prediction, case.labels), eb.UniformRecords(case.drawn))
    fits = [bayes.fast(sample, draws=10_000, rng=seed) for seed in (1, 2, 3)]
    first = [f"metrics[{name}]" for name in (P.name, R.name, m.pairwise_f1.name)]
    told = [az.psense_summary(fit.tree, var_names=["metrics"]) for fit in fits]
    assert all(one.diagnosis[[first[0], first[2]]].tolist() == ["✓", "✓"] for one in told)
    prior, fit = sum(one.prior[first] for one in told) / 3, fits[1]  # seeds move it by .03
    assert prior.idxmax() == first[1] and prior[first[1]] < 0.07
    of_recall = {
        part: az.psense_summary(fit.tree, var_names=["metrics"], prior_var_names=[part]).prior[first[1]]
        for part in PARTS
    }
    assert max(of_recall, key=of_recall.get) == "retention" and sorted(of_recall.values())[1] < 0.05
    assert fit.table(metrics=R).prior_shift.item() < 0.15


def mates_of(fit, q, i):
    """Log-likelihood of the mates of entity i, by its records in predicted clusters of two or more."""
    units, total = fit.sample.units, 0.0
    size, labelled = fit.evidence.grid, np.bincount(units.cluster, units.n)
    for n, m_, unit, cluster in zip(units.n, units.m, units.unit, units.cluster, strict=True):
        if unit == i and (records := m_ - labelled[cluster] + n) > 1:
            right, chance = (n - 1) / (records - 1), q[size.bin(np.array([records]))[0]]
            # all entities have the same chance, and mates stand for those of entities that no draw found
            missed = (1 - units.size.mean() / fit.evidence.data["records"]) ** 60
            weight = n / records * missed / fit.evidence.mates.dispersion
            total += weight * (right * np.log(chance) + (1 - right) * np.log(1 - chance))
    return total


def test_log_likelihood_of_each_entity(fit):
    e, d = fit.evidence.entities, fit.evidence.data
    found = fit.tree["log_likelihood"]["outcome"].to_numpy()
    assert found.shape == (4, 100, 60)
    for at_draw in ((0, 0), (2, 90)):
        by = {name: v[at_draw] for name, v in fit.by_size.items()}
        chance = by["entities"] * d["selection"] / (by["entities"] @ d["selection"])
        for i in range(60):
            j = e.bin[i]
            wanted = e.draws[i] * np.log(chance[j]) + mates_of(fit, by["mates_right"], i)
            if e.size[i] > 1:
                intact = e.links[i] == e.size[i] * (e.size[i] - 1) / 2
                wanted += stats.bernoulli(by["intact"][j]).logpmf(intact)
                if not intact and e.size[i] > 2:
                    mean, precision = by["share_mean"][j], by["share_precision"][j]
                    wanted += stats.beta(mean * precision, (1 - mean) * precision).logpdf(e.share[i])
            assert found[at_draw][i] == pytest.approx(wanted, rel=1e-9)


def test_leave_one_out_tells_priors_of_mates_apart(fit):
    """Mates that are wrong three times out of four, whatever the cluster: not what the sample shows."""
    mates = bayes.Mates(bayes.NormalPrior(-1.0, 1e-6), bayes.StudentTPrior(0.0, 1e-6), 1e-6)
    absurd = bayes.fast(fit.sample, bayes.SizeModel(mates=mates), draws=400, rng=rng())
    compared = az.compare({"default": fit.tree, "absurd": absurd.tree}, round_to="none")
    assert list(compared.index) == ["default", "absurd"]
    assert compared.loc["absurd", "elpd_diff"] < -5 and compared.loc["default", "weight"] > 0.95


def test_parts_of_the_likelihood_add_to_that_of_the_entity(fit, checks):
    total = np.zeros((4, 100, 60))
    ids = fit.tree["observed_data"]["entity"].to_numpy().tolist()
    for name, v in checks["log_likelihood"].data_vars.items():
        (dim,) = set(v.dims) - {"chain", "draw"}
        assert v.shape[2:] == checks["observed_data"][name].shape
        total[..., [ids.index(i) for i in v[dim].to_numpy()]] += v.to_numpy()
    for i in range(60):
        total[2, 90, i] += mates_of(fit, fit.by_size["mates_right"][2, 90], i)
    np.testing.assert_allclose(total[2, 90], fit.tree["log_likelihood"]["outcome"][2, 90], rtol=1e-9)


def test_which_entity_shows_what():
    """x: three records, broken; v: two, broken; y: two, intact; z: one."""
    units = eb.measure(PRED, {r: e for r, e in TRUE.items() if e in "xvyz"})
    evidence = Evidence.of(eb.Sample(units, eb.UniformClusters()))
    J, ones = len(evidence.grid.size), np.full((1, 5, len(evidence.grid.size)), 0.5)
    by_size = {k: ones for k in ("entities", "intact", "share_mean", "share_precision")}
    found = factors(evidence.entities, evidence.data, by_size)
    shown = {name: sorted(units.ids[f.entity]) for name, f in found.items()}
    assert shown == {"size": ["v", "x", "y", "z"], "broken": ["v", "x", "y"], "share": ["x"]}
    np.testing.assert_allclose(found["size"].log_density(), -np.log(J))
    np.testing.assert_allclose(found["broken"].log_density(), np.log(0.5))


def test_draws_of_what_entities_show():
    """Frequencies of many draws are those of the densities."""
    g, n, none = rng(), (1, 40_000), np.arange(2)
    p = np.array([0.2, 0.9])
    happens = Event(none, np.array([1, 0]), np.broadcast_to(p, (*n, 2)))
    np.testing.assert_allclose(happens.drawn(g).mean(axis=1)[0], p, atol=0.01)
    np.testing.assert_allclose(happens.log_density()[0, 0], np.log([0.2, 0.1]))
    mean, precision = np.array([0.3, 0.7]), np.array([2.0, 40.0])
    share = Share(none, np.array([0.5, 0.6]), *(np.broadcast_to(v, (*n, 2)) for v in (mean, precision)))
    drawn = share.drawn(g)[0]
    np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=0.01)
    np.testing.assert_allclose(drawn.var(axis=0), mean * (1 - mean) / (precision + 1), rtol=0.05)
    value = np.array([0.5, 1.0, 7.0])
    of_draws, of_distinct = np.array([1.0, 3.0, 4.0]), np.array([2.0, 1.0, 1.0])
    chances = (np.broadcast_to(v, (*n, 3)) for v in (of_draws / 8, of_distinct))
    size = Category(none, np.array([0, 2]), value, *chances, np.array([1, 3]))
    found = [(size.drawn(g) == v).mean() for v in value]
    np.testing.assert_allclose(found, of_distinct / 4, atol=0.01)
    np.testing.assert_allclose(size.log_density()[0, 0], [np.log(1 / 8), 3 * np.log(4 / 8)])
    assert size.observed.tolist() == [0.5, 7.0]


def test_draws_of_many_categories():
    weights = rng(2).random((50, 7)) ** 4
    row = np.repeat(np.arange(50), 4000)
    found = categorical(weights, row, rng())
    observed = np.stack([np.bincount(found[row == r], minlength=7) for r in range(50)])
    np.testing.assert_allclose(observed / 4000, weights / weights.sum(1, keepdims=True), atol=0.04)
    assert set(categorical(np.array([[0.0, 0.0, 5.0, 0.0]]), np.zeros(999, dtype=int), rng())) == {2}


def test_predictions_are_of_distinct_entities(checks, fit):
    """Sizes among distinct entities: an entity of many records, drawn time and again, counts once."""
    pop = populations.simulate(populations.Zeta(1.9, 3000), populations.Splits(0.1), 4000, rng(3))
    drawn = pop.true.iloc[rng(4).integers(len(pop.true), size=150)].tolist()
    sample = eb.Sample(eb.measure(pop.pred, pop.true[pop.true.isin(drawn)]), eb.UniformRecords(draws=drawn))
    repeated = bayes.fast(sample, draws=1000, rng=rng())
    assert len(sample.units) < 110, "entities drawn more than once matter here"
    size = repeated.predictive(draws=50, rng=rng())["posterior_predictive"]["size"].to_numpy()
    J = len(repeated.size)
    wanted, g = np.zeros(J), rng(5)
    for M in repeated.by_size["entities"].reshape(-1, J)[::2]:
        each = np.repeat(np.arange(J), g.poisson(M))
        q = repeated.size[each]
        got = np.unique(g.choice(len(each), 150, p=q / q.sum()))
        wanted += np.bincount(each[got], minlength=J) / len(got)
    found = np.array([(size == s // 1).mean() for s in repeated.size])
    np.testing.assert_allclose(found.cumsum(), wanted.cumsum() / 500, atol=0.03)


def test_predictions(checks, fit):
    assert checks["prior"].sizes["draw"] == checks["prior_predictive"].sizes["draw"] == 150
    names = set(checks["observed_data"].data_vars)
    for group in ("prior_predictive", "posterior_predictive", "log_likelihood"):
        assert set(checks[group].data_vars) == names == {"size", "broken", "share"}
        assert not any(np.isnan(v).any() for v in checks[group].data_vars.values())
    assert GROUPS | {"prior", "prior_predictive", "posterior_predictive"} == set(checks.children)
    assert list(fit.tree["log_likelihood"].data_vars) == ["outcome"], "the fit's own tree stays"
    for name, v in checks["posterior_predictive"].data_vars.items():
        pit = float(
            (v < checks["observed_data"][name]).mean() + (v == checks["observed_data"][name]).mean() / 2
        )
        assert 0.35 < pit < 0.65, name
    e = fit.evidence.entities
    np.testing.assert_array_equal(checks["observed_data"]["size"], np.floor(fit.size[e.bin]))


def test_draws_of_the_prior(fit):
    """Against PyMC's own draws from the same model."""
    for part in (*fit.model.tied.values(), Sizes(BodyAndTail())):
        found = draw_from_prior(part, fit.evidence.data, 400, rng())
        model, by_size = own_model(part, fit.evidence.data)
        names = [k for k in by_size if k in found.by_size]
        drawn = pm.draw([by_size[k] for k in names], 400, random_seed=2, mode=Mode("py", None))
        wanted = dict(zip(names, drawn, strict=True))
        for name in names:
            a, b = found.by_size[name][0].reshape(400, -1)[:, ::9], wanted[name].reshape(400, -1)[:, ::9]
            for x, y in zip(a.T, b.T, strict=True):
                assert stats.ks_2samp(x, y).pvalue > 1e-4, name
        assert {v.name for v in model.free_RVs} == set(found.parameters)
    often = draw_from_prior(bayes.Retention(unbroken=0.4), fit.evidence.data, 500, rng())
    assert often.parameters["unbroken"].mean() == pytest.approx(0.4, abs=0.08)
    assert ((often.by_size["kept"] == 1).all(axis=-1) == (often.parameters["unbroken"] == 1)).all()


def test_nothing_shown_is_no_variable():
    pop = populations.simulate(populations.LogNormal(1.0, 1.0), populations.Merges(0.1), 4000, rng())
    whole = bayes.fast(clusters(40, 5, pop), draws=400, rng=rng())
    assert set(whole.tree["observed_data"].data_vars) == {"size", "broken"}
    assert np.isfinite(az.loo(whole.tree).elpd)
    assert "unbroken" in whole.tree["posterior"], "no entity is broken: it may be that none is"


def test_pictures_of_predictions(checks, fit):
    ax = plots.draw_predicted_sizes(checks, ax=Figure().subplots())
    sampled = ax.lines[-1].get_ydata()
    wanted = [(fit.sample.units.size >= lower).sum() for lower in fit.evidence.grid.lower]
    np.testing.assert_array_equal(np.nan_to_num(sampled), wanted)
    drawn = checks["posterior_predictive"]["size"].to_numpy()
    middle = [np.median((drawn >= s).sum(axis=-1)) for s in fit.evidence.grid.lower]
    np.testing.assert_array_equal(ax.lines[-2].get_ydata(), middle)


def test_predictions_of_a_seed(fit):
    one, other = (fit.predictive(draws=20, rng=3)["posterior_predictive"] for _ in range(2))
    np.testing.assert_array_equal(one["size"], other["size"])


def test_the_graph_of_pymc_has_only_variables(fit):
    """Nodes are parameters, quantities by size and observations; an arrow leads to what depends on it."""
    text, model = pm.model_to_mermaid(fit.pymc), fit.pymc
    arrows = set(re.findall(r"^(\w+) --> (\w+)$", text, re.M))
    nodes = set(re.findall(r"^(\w+)@", text, re.M))
    assert nodes == {v.name for v in (*model.free_RVs, *model.deterministics, *model.observed_RVs)}
    assert len(nodes) < 40
    tied = {"entities_by_size", "kept_by_size", "kept_square_by_size"}
    assert {a for a, b in arrows if b == "log_common_links"} == tied
    assert {a for a, b in arrows if b == "expected_precision"} == {"mates_right_by_size"}
    assert ("break_slope", "kept_by_size") in arrows and ("break_slope", "broken_entities") in arrows


def test_do(fit):
    """An intervention changes the quantities that follow; data have no name, and are refused."""
    whole = pm.do(fit.pymc, {"break_level": -60.0})
    usual, kept = (
        pm.draw(model["kept_by_size"], 20, random_seed=1, mode=Mode("py", None))
        for model in (fit.pymc, whole)
    )
    assert kept.min() > 1 - 1e-6 and usual.min() < 0.9
    assert {v.name for v in fit.pymc.free_RVs} - {v.name for v in whole.free_RVs} == {"break_level"}
    raises(KeyError, "records", pm.do, fit.pymc, {"records": 1.0})


def log_densities(model, point):
    """Log densities of the variables of a model of PyMC at values of its variables, by name."""
    values = {model.rvs_to_values[v].name: point[v.name] for v in model.free_RVs}
    log_p = model.compile_fn(model.logp(sum=False, jacobian=False), mode=Mode("py", None))(values)
    return {v.name: float(np.sum(x)) for v, x in zip(model.basic_RVs, log_p, strict=True)}


def test_the_model_of_pymc(fit):
    """The densities of the parts, and that of the log number of common links, by SciPy."""
    whole, data, log_common = bayes.SizeModel(), fit.evidence.data, np.log(fit.draws.common)
    model = whole.build(fit.evidence, log_common)
    start = model.initial_point()
    point = {v.name: start[model.rvs_to_values[v].name] + 0.1 for v in model.free_RVs}
    assert not {"unbroken", "all_right"} & set(point), "the sample shows errors of either kind"
    by_name, wanted = log_densities(model, point), 0.0
    for part in whole.tied.values():
        compiled = CompiledPart.of(part, data)
        theta = np.concatenate([np.ravel(point[k]) for k in dict.fromkeys(compiled.program.names)])
        wanted += compiled.log_densities(theta[None])[0] - np.log(0.99) * (part.place != "sizes")
    total = by_name.pop("log_common_links")
    assert sum(by_name.values()) == pytest.approx(wanted, rel=1e-9)
    names = [f"{name}_by_size" for name in ("kept", "kept_square", "entities")] + ["expected_recall"]
    fixed = pm.do(model, point)
    kept, kept_square, entities, recall = pm.draw([fixed[name] for name in names], mode=Mode("py", None))
    s, n = data["size"], data["draws"]
    rest = entities * np.maximum(1 - n / entities.sum(), 0)
    rest = rest * (data["records"] - data["sampled_records"]) / (rest @ s)
    c2 = s * (s - 1) / 2
    common = rest @ (c2 * kept) + data["sampled_common_links"]
    variance = min(rest @ (c2**2 * kept_square) / common**2, 0.25) + 1e-4 + log_common.var()
    assert total == pytest.approx(stats.norm(np.log(common), np.sqrt(variance)).logpdf(log_common.mean()))
    assert recall == pytest.approx(common / (rest @ c2 + data["sampled_true_links"]), rel=1e-9)


def test_a_prediction_without_errors_is_in_the_model_of_pymc():
    """If no sampled entity has an error, the model has the state without any, with the fit's density."""
    pop = populations.simulate(populations.LogNormal(1.0, 1.0), populations.Merges(0.1), 4000, rng())
    model = bayes.SizeModel(bayes.PredictionInformed(), bayes.Retention(unbroken=0.3))
    whole = bayes.fast(clusters(40, 5, pop), model, draws=400, rng=rng())
    names = {v.name for v in whole.pymc.free_RVs}
    assert "unbroken" in names and "all_right" not in names
    point = {v.name: whole.draws.parameters[v.name][0, 3] for v in whole.pymc.free_RVs}
    found = log_densities(whole.pymc, point | {"unbroken": 1})
    part = whole.model.compile(whole.evidence.data)["retention"]
    told = found["unbroken"] + found["broken_entities"] + found["kept_shares"]
    assert told == pytest.approx(part.log_flawless) == pytest.approx(np.log(0.3))


@pytest.mark.study
@pytest.mark.parametrize("sampler", ["nutpie", "pymc"])
def test_samplers_of_pymc_give_what_a_fit_has(sampler):
    """Ends of precision and recall, of finite populations, are those of a fit (three CPU minutes)."""
    case = datasets.people()
    sample = eb.Sample(eb.measure(case.prediction, case.labels), eb.UniformRecords(case.drawn))
    fast = bayes.fast(sample, draws=4000, rng=rng())
    settings = {"chains": 2, "cores": 1, "progressbar": False, "nuts_sampler": sampler}
    found = pm.sample(1000, tune=500, model=fast.pymc, random_seed=1, **settings)["posterior"]
    by_size = {k: found[f"{k}_by_size"].to_numpy() for k in ("intact", "entities", "kept", "kept_square")}
    data = fast.evidence.data
    common, _ = poststratify(found["mates_right_by_size"].to_numpy(), data, rng())
    drawn = draw_populations(by_size, common, data, rng())
    for metric, values in ((P, common / fast.evidence.predicted_links), (R, drawn.common / drawn.true)):
        own = fast.apply(metric).values
        ends = (np.quantile(v, [0.025, 0.975]) for v in (values, own))
        assert np.abs(np.subtract(*ends)).max() < 0.2 * own.std()


def test_a_fit_is_pickled(fit):
    fit.tree, fit.pymc  # noqa: B018, what is derived is not kept
    again = pickle.loads(pickle.dumps(fit))
    np.testing.assert_array_equal(again.apply(again.metrics).values, fit.apply(fit.metrics).values)
    assert again.table().equals(fit.table()) and again.sample.units.ids.equals(fit.sample.units.ids)


def test_a_tree_is_written_and_read(fit, tmp_path):
    pytest.importorskip("h5netcdf")
    fit.tree.to_netcdf(tmp_path / "fit.nc", engine="h5netcdf")
    read = az.from_netcdf(tmp_path / "fit.nc")
    for name, group in fit.tree.children.items():
        xr.testing.assert_identical(read[name].to_dataset(), group.to_dataset())
    assert az.loo(read).elpd == az.loo(fit.tree).elpd


def test_a_column_of_ones_own(fit, monkeypatch):
    """Records of unsplit entities, as in the guide."""
    whole = PieceSum("whole", lambda n, N, m: n * (n == N))
    kept = Metric("kept-whole", (whole, RECORDS), lambda w, r: w / r, PER_RECORD, UNIT, "")
    with pytest.raises(
        eb.NotIdentified, match=r"'whole': use the closed form or .* erbayes\.bayes\.EXPECTED"
    ):
        fit.apply([kept])
    assert not identifies(kept)
    monkeypatch.setitem(EXPECTED, whole, lambda fit: fit.size * fit.by_size["intact"])
    assert identifies(kept)
    found = fit.apply([kept])
    pop = world()
    unsplit = pop.pred.groupby(pop.true).nunique() == 1
    truth = pop.true.map(unsplit).mean()
    assert abs(found.mean[0] - truth) < 3 * found.sd[0] and found.sd[0] < 0.1
    # an expectation that does not know of the known totals
    monkeypatch.setitem(EXPECTED, whole, lambda fit: 2 * fit.size + 0 * fit.by_size["intact"])
    assert (replace(fit).apply([kept]).values == 1).all()


def test_a_fit_answers_as_other_results_do(fit):
    table = fit.table()
    pd.testing.assert_frame_equal(fit.summary(0.9), fit.table(0.9))
    pd.testing.assert_series_equal(fit["pairwise-recall"], table.loc["pairwise-recall"][:6])
    np.testing.assert_allclose(fit.interval(0.9), fit.table(0.9)[["lower", "upper"]])
    for ax in (fit.plot(), plots.draw_forest({"model": fit})):
        np.testing.assert_allclose(ax.get_lines()[0].get_xdata(), table["estimate"])
    raises(eb.DataError, re.escape("az.summary(fit.tree)"), az.summary, fit)
