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
from matplotlib.figure import Figure
from own_families import BodyAndTail
from pytensor.compile.mode import Mode
from scipy import stats
from test_bayes import PRED, TRUE, clusters, rng, world

import erbayes as eb
from erbayes import bayes, datasets, plots
from erbayes import metrics as m
from erbayes.bayes.data import Evidence
from erbayes.bayes.model import Sizes
from erbayes.bayes.model_average import as_average
from erbayes.bayes.population import TIED, draw_populations
from erbayes.bayes.programs import CompiledPart, draw_from_prior, own_model
from erbayes.bayes.totals import EXPECTED
from erbayes.bayes.tree import Category, Share, categorical, event, factors
from erbayes.metrics import PER_RECORD, UNIT, Metric
from erbayes.metrics.columns import RECORDS, PieceSum
from erbayes.study import populations

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::erbayes.bayes.NotConverged"),
    pytest.mark.filterwarnings("ignore:Estimated shape parameter"),
]
P, R = m.pairwise_precision, m.pairwise_recall
PARTS = ["sizes", "retention", "leakage"]
GROUPS = {
    *("posterior", "by_size", "totals", "log_likelihood", "log_prior", "observed_data", "constant_data")
}


ONE_LAW = bayes.SizeModel(bayes.PredictionInformed(), bayes.Retention())
"""The default model with one law for each part."""


@pytest.fixture(scope="module")
def fit():
    return bayes.fast(clusters(60, 1), ONE_LAW, draws=400, rng=rng())


@pytest.fixture(scope="module")
def checks(fit):
    return fit.predictive(draws=150, rng=rng())


@pytest.fixture(autouse=True)
def closed():
    with plt.rc_context({"figure.max_open_warning": 0}):
        yield
    plt.close("all")


# The tree


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
    assert not {"log_prior", "unbroken", "unmet"} & set(posterior.data_vars)
    by_size = fit.tree["by_size"]
    assert by_size["kept_by_size"].dims == ("chain", "draw", "entity_size")
    np.testing.assert_array_equal(by_size["entity_size"], fit.size)
    np.testing.assert_allclose(by_size["intrusion_chance_by_size"].sum("intrusion"), 1, rtol=1e-9)
    known = fit.tree["constant_data"]
    np.testing.assert_array_equal(known["records_of_entity"], fit.sample.units.size)
    assert float(known["records"]) == 4000


def test_summary_is_of_parameters_and_metrics(fit):
    told = az.summary(fit.tree)
    assert len(told) < 80 and not told.index.str.contains(r"_by_size\[|log_prior|unbroken").any()
    told = az.summary(fit.tree, var_names=["metrics", "break_level"])
    assert {"mean", "r_hat", "ess_bulk"} <= set(told.columns) and "metrics[pairwise-recall]" in told.index


def test_convergence_of_each_law(fit):
    table = fit.convergence()
    assert list(table.columns) == ["probability", "khat", "r_hat", "worst", "effective"]
    assert table.index.names == ["part", "model"]
    assert table.groupby("part").probability.sum().to_numpy() == pytest.approx(1)
    for (place, law), row in table.iterrows():
        thetas = fit.parts[place][law].thetas
        r_hat = [az.rhat(thetas[..., i]) for i in range(thetas.shape[-1])]
        assert row.r_hat == pytest.approx(max(r_hat), rel=1e-6)
        names = CompiledPart.of(as_average(fit.model.tied[place]).models[law], fit.evidence.data).coordinates
        assert row.worst == names[int(np.argmax(r_hat))]
        ess = [az.ess(thetas[..., i], method="bulk") for i in range(thetas.shape[-1])]
        assert row.effective == pytest.approx(min(ess), rel=1e-6)


def test_quantities_of_the_tree_follow_from_its_parameters(fit):
    posterior, d = fit.tree["posterior"], fit.evidence.data
    level, slope, w = (posterior[f"break_{k}"].to_numpy() for k in ("level", "slope", "tilt_weights"))
    slope = slope + posterior["precision_slope"].to_numpy()
    log_hazard = level[..., None] + slope[..., None] * (d["x"] - d["centre"]) + w @ d["basis"].T
    intact, found = np.exp(-np.exp(log_hazard)), fit.tree["by_size"]["intact_by_size"].to_numpy()
    np.testing.assert_allclose(found[..., 1:], intact[..., 1:], rtol=1e-6)
    assert {v.name for v in fit.pymc.free_RVs} <= set(posterior.data_vars)


# Every plot and statistic that the docs name

V = ["break_level", "share_level", "size_slope"]
OF_SEVERAL = ["size", "share", "rate"]
OF_CHAINS = {
    **{f"plot_{k}": {"var_names": V} for k in ("trace", "trace_dist", "rank", "rank_dist", "autocorr")},
    **{f"plot_{k}": {"var_names": V} for k in ("ess", "ess_evolution", "mcse", "pair", "parallel")},
    "plot_convergence_dist": {"var_names": V},
    "plot_forest": {"var_names": ["metrics"], "coords": {"metric": [P.name, R.name]}},
    "plot_dist": {"var_names": ["metrics"], "coords": {"metric": [P.name, R.name]}},
    "plot_ridge": {"var_names": ["metrics"], "coords": {"metric": [P.name, R.name]}},
    "plot_psense_dist": {"var_names": ["metrics"], "coords": {"metric": [P.name, R.name]}},
    "plot_psense_quantities": {"var_names": ["metrics"], "coords": {"metric": [P.name, R.name]}},
    "summary": {},
    "rhat": {},
    "ess": {},
    "mcse": {},
    "diagnose": {},
    "psense_summary": {"var_names": ["metrics"]},
    "loo": {},
}
OF_PREDICTIONS = {
    "plot_ppc_dist": {"var_names": OF_SEVERAL, "kind": "ecdf"},
    "plot_ppc_pit": {"var_names": OF_SEVERAL},
    "plot_ppc_tstat": {"var_names": OF_SEVERAL},
    "plot_loo_pit": {},
    "plot_ppc_rootogram": {"var_names": ["size"]},
    "plot_ppc_pava": {"var_names": ["broken", "met"]},
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
    again = bayes.fast(fit.sample, ONE_LAW, draws=400, rng=rng(2))
    compared = az.compare({"one seed": fit.tree, "another": again.tree}, round_to="none")
    # over seeds, elpd has a Monte Carlo error of .8 with 400 draws
    assert compared["elpd"].max() - compared["elpd"].min() < 3
    assert az.plot_compare(compared) is not None


def test_docs_name_what_is_tested_here():
    page = (Path(__file__).parent.parent / "docs" / "guide" / "arviz.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\baz\.([a-z_]+)", page))
    tested = {*OF_CHAINS, *OF_PREDICTIONS, "plot_khat", "compare", "plot_compare", "from_netcdf"}
    assert len(named) > 30 and named == tested


# Sensitivity to priors


def test_log_prior_of_each_part(fit):
    d, parameters = fit.evidence.data, fit.draws.parameters
    for part, prior in fit.log_prior.items():
        model, _ = own_model(fit.model.tied[part], d)
        free = model.free_RVs
        density = pm.compile(
            [model.rvs_to_values[v] for v in free],
            model.logp(vars=free, jacobian=False),
            mode=Mode("py", None),
        )
        for at in ((0, 0), (2, 60)):
            wanted = density(*(parameters[v.name][at] for v in free))
            assert prior[at] == pytest.approx(float(wanted), rel=1e-6)
    assert list(fit.log_prior) == PARTS
    np.testing.assert_array_equal(fit.tree["log_prior"]["leakage"], fit.log_prior["leakage"])


def test_weight_of_the_prior(fit):
    """By reweighting draws with the prior to the power 1.0001, against the slope."""
    draws = fit.apply([P, R])
    found = fit.prior_shift(draws)
    assert list(found.columns) == PARTS and list(found.index) == [P.name, R.name]
    for part, prior in fit.log_prior.items():
        w = np.exp(0.0001 * (prior - prior.mean())).ravel()
        moved = np.abs(w @ draws.flat / w.sum() - draws.mean) / np.log2(1.0001) / draws.sd
        np.testing.assert_allclose(found[part], moved, rtol=0.01, atol=0.001)
    np.testing.assert_allclose(fit.table().prior_shift[[P.name, R.name]], found.max(axis=1))


def test_every_part_has_its_weight():
    """Precision rests on the prior of leakage, recall on that of retention."""
    fit = bayes.fast(clusters(60, 1), ONE_LAW, draws=8000, rng=rng())
    told = {
        part: az.psense_summary(fit.tree, var_names=["metrics"], prior_var_names=[part])["prior"]
        for part in PARTS
    }
    assert told["leakage"][f"metrics[{P.name}]"] > told["retention"][f"metrics[{P.name}]"]
    assert told["retention"][f"metrics[{R.name}]"] > told["leakage"][f"metrics[{R.name}]"]


def test_priors_of_the_example_do_not_conflict_with_its_sample():
    """The calls of the guide: a prior that prefers a candidate for its number of parameters would conflict."""
    case = datasets.people()
    sample = eb.Sample(eb.measure(case.prediction, case.labels), eb.UniformRecords(case.drawn))
    tree = bayes.fast(sample, draws=10_000, rng=2).tree
    first = [f"metrics[{name}]" for name in (P.name, R.name, m.pairwise_f1.name)]
    assert (az.psense_summary(tree, var_names=["metrics"]).diagnosis[first] == "✓").all()
    for part in PARTS:
        of_part = az.psense_summary(tree, var_names=["metrics"], prior_var_names=[part])
        assert of_part.prior[first].max() < 0.06, "the limit is .05, with a Monte Carlo error of .01"


# Likelihood and predictions


def test_log_likelihood_of_each_entity(fit):
    e, d = fit.evidence.entities, fit.evidence.data
    found = fit.tree["log_likelihood"]["outcome"].to_numpy()
    assert found.shape == (4, 100, 60)
    value = np.exp2(d["log_intrusion"] + 3)
    for at_draw in ((0, 0), (2, 90)):
        by = {name: v[at_draw] for name, v in fit.by_size.items()}
        theta = {name: v[at_draw] for name, v in fit.draws.parameters.items()}
        chance = by["entities"] * d["selection"] / (by["entities"] @ d["selection"])
        for i in range(60):
            j = e.bin[i]
            wanted = e.draws[i] * np.log(chance[j]) + stats.bernoulli(by["met"][j]).logpmf(e.foreign[i] > 0)
            if e.size[i] > 1:
                intact = e.links[i] == e.size[i] * (e.size[i] - 1) / 2
                wanted += stats.bernoulli(by["intact"][j]).logpmf(intact)
                if not intact and e.size[i] > 2:
                    mean, precision = by["share_mean"][j], by["share_precision"][j]
                    wanted += stats.beta(mean * precision, (1 - mean) * precision).logpdf(e.share[i])
            if e.foreign[i] > 0:
                v, doubling = np.log2(value) - 3, np.floor(np.log2(e.size[i]))
                tilt = theta["intrusion_slope"] + theta["intrusion_by_size"] * (doubling + 0.5 - d["centre"])
                weight = np.exp(
                    d["log_exposure"] + tilt * v + d["intrusion_basis"] @ theta["intrusion_tilt_weights"]
                )
                at = np.argmin(np.abs(np.log(value) - np.log(e.foreign[i] / e.size[i])))
                wanted += np.log(weight[at] / weight.sum())
            assert found[at_draw][i] == pytest.approx(wanted, rel=1e-9)


def test_leave_one_out_tells_priors_of_leakage_apart(fit):
    """Stray pieces drawn to large clusters, e³ times as much for each doubling: not what the sample shows."""
    leakage = bayes.Leakage(tilt=bayes.StudentTPrior(3.0, 0.05), tilt_amplitude=0.01)
    absurd = bayes.fast(fit.sample, bayes.SizeModel(leakage=leakage), draws=400, rng=rng())
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
    np.testing.assert_allclose(total, fit.tree["log_likelihood"]["outcome"], rtol=1e-9)


def test_which_entity_shows_what():
    """x: three records, broken; v: two, broken; y: two, intact; z: one, which alone meets no foreign one."""
    units = eb.measure(PRED, {r: e for r, e in TRUE.items() if e in "xvyz"})
    evidence = Evidence.of(eb.Sample(units, eb.UniformClusters()))
    J, ones = len(evidence.grid.size), np.full((1, 5, len(evidence.grid.size)), 0.5)
    doublings, bins = (len(evidence.data[k]) for k in ("doubling_x", "log_intrusion"))
    by_size = {k: ones for k in ("entities", "intact", "met", "share_mean", "share_precision")}
    by_size["intrusion_chance"] = np.full((1, 5, doublings, bins), 1 / bins)
    found = factors(evidence.entities, evidence.data, by_size)
    shown = {name: sorted(units.ids[f.entity]) for name, f in found.items()}
    assert shown == {
        "size": ["v", "x", "y", "z"],
        "broken": ["v", "x", "y"],
        "share": ["x"],
        "met": ["v", "x", "y", "z"],
        "rate": ["v", "x", "y"],
    }
    np.testing.assert_allclose(found["size"].log_density(), -np.log(J))
    np.testing.assert_allclose(found["broken"].log_density(), np.log(0.5))


def test_draws_of_what_entities_show():
    """Frequencies of many draws are those of the densities."""
    g, n, none = rng(), (1, 40_000), np.arange(2)
    p = np.array([0.2, 0.9])
    happens = event(none, np.array([1, 0]), np.broadcast_to(p, (*n, 2)))
    np.testing.assert_allclose(happens.drawn(g).mean(axis=1)[0], p, atol=0.01)
    np.testing.assert_allclose(happens.log_density()[0, 0], np.log([0.2, 0.1]))
    assert happens.observed.tolist() == [1, 0]
    mean, precision = np.array([0.3, 0.7]), np.array([2.0, 40.0])
    share = Share(none, np.array([0.5, 0.6]), *(np.broadcast_to(v, (*n, 2)) for v in (mean, precision)))
    drawn = share.drawn(g)[0]
    np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=0.01)
    np.testing.assert_allclose(drawn.var(axis=0), mean * (1 - mean) / (precision + 1), rtol=0.05)
    chance = np.array([[0.1, 0.6, 0.3], [0.8, 0.0, 0.2]])
    value = np.array([0.5, 1.0, 7.0])
    chances = np.broadcast_to(chance, (*n, 2, 3))
    rate = Category(none, np.array([1, 0]), np.array([2, 1]), value, chances, chances)
    found = [(rate.drawn(g)[0] == v).mean(axis=0) for v in value]
    np.testing.assert_allclose(np.transpose(found), chance[[1, 0]], atol=0.01)
    np.testing.assert_allclose(rate.log_density()[0, 0], np.log([0.2, 0.6]))
    assert rate.observed.tolist() == [7.0, 1.0]
    of_draws, of_distinct = np.array([1.0, 3.0, 4.0]), np.array([2.0, 1.0, 1.0])
    size = Category(
        none,
        np.zeros(2, dtype=int),
        np.array([0, 2]),
        value,
        *(np.broadcast_to(v, (*n, 1, 3)) for v in (of_draws / 8, of_distinct)),
        np.array([1, 3]),
    )
    found = [(size.drawn(g) == v).mean() for v in value]
    np.testing.assert_allclose(found, of_distinct / 4, atol=0.01)
    np.testing.assert_allclose(size.log_density()[0, 0], [np.log(1 / 8), 3 * np.log(4 / 8)])


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
    repeated = bayes.fast(sample, ONE_LAW, draws=1000, rng=rng())
    assert len(sample.units) < 110, "entities drawn more than once matter here"
    size = repeated.predictive(draws=50, rng=rng())["posterior_predictive"]["size"].to_numpy()
    J = len(repeated.size)
    wanted, g = np.zeros(J), rng(5)
    for M in repeated.by_size["entities"].reshape(-1, J)[::10]:
        each = np.repeat(np.arange(J), g.poisson(M))
        q = repeated.size[each]
        got = np.unique(g.choice(len(each), 150, p=q / q.sum()))
        wanted += np.bincount(each[got], minlength=J) / len(got)
    found = np.array([(size == s // 1).mean() for s in repeated.size])
    np.testing.assert_allclose(found.cumsum(), wanted.cumsum() / 100, atol=0.03)


def test_predictions(checks, fit):
    assert checks["prior"].sizes["draw"] == checks["prior_predictive"].sizes["draw"] == 150
    names = set(checks["observed_data"].data_vars)
    for group in ("prior_predictive", "posterior_predictive", "log_likelihood"):
        assert set(checks[group].data_vars) == names == {"size", "broken", "share", "met", "rate"}
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
    np.testing.assert_array_equal(checks["observed_data"]["met"], e.foreign > 0)


def test_draws_of_the_prior(fit):
    """Against PyMC's own draws from the same model."""
    for part in (*fit.model.tied.values(), Sizes(BodyAndTail())):
        found = draw_from_prior(part, fit.evidence.data, 400, rng())
        model, by_size = own_model(part, fit.evidence.data)
        names = [k for k in by_size if k in found.by_size]
        wanted = dict(
            zip(
                names,
                pm.draw([by_size[k] for k in names], 400, random_seed=2, mode=Mode("py", None)),
                strict=True,
            )
        )
        for name in names:
            a, b = found.by_size[name][0].reshape(400, -1)[:, ::9], wanted[name].reshape(400, -1)[:, ::9]
            for x, y in zip(a.T, b.T, strict=True):
                assert stats.ks_2samp(x, y).pvalue > 1e-4, name
        assert {v.name for v in model.free_RVs} == set(found.parameters)
    often = draw_from_prior(bayes.Retention(unbroken=0.4), fit.evidence.data, 500, rng())
    assert often.parameters["unbroken"].mean() == pytest.approx(0.4, abs=0.08)
    assert ((often.by_size["kept"] == 1).all(axis=-1) == (often.parameters["unbroken"] == 1)).all()


def test_the_prior_has_all_candidate_models(fit):
    """A quarter of prior draws are from the candidate that breaks nearly all entities, as its weight says."""
    level = {"rarely": bayes.NormalPrior(-5.0, 0.1), "often": bayes.NormalPrior(3.0, 0.1)}
    candidates = {name: bayes.Retention(break_level=prior, unbroken=0.0) for name, prior in level.items()}
    model = bayes.SizeModel(retention=bayes.ModelAverage(candidates, {"rarely": 3, "often": 1}))
    tree = bayes.fast(fit.sample, model, draws=200, rng=rng()).predictive(draws=400, rng=rng())
    level, broken = tree["prior"]["break_level"].to_numpy(), tree["prior_predictive"]["broken"].to_numpy()
    often = level > 0
    assert set(np.round(level.ravel() / 4)) == {-1, 1}
    assert often.mean() == pytest.approx(0.25, abs=0.07)
    assert ((broken.mean(axis=-1) > 0.5) == often).mean() > 0.97


def test_nothing_shown_is_no_variable():
    pop = populations.simulate(populations.LogNormal(1.0, 1.0), populations.Merges(0.1), 4000, rng())
    whole = bayes.fast(clusters(40, 5, pop), ONE_LAW, draws=400, rng=rng())
    assert set(whole.tree["observed_data"].data_vars) == {"size", "broken", "met", "rate"}
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


# PyMC


def test_predictions_of_a_seed(fit):
    one, other = (fit.predictive(draws=20, rng=3)["posterior_predictive"] for _ in range(2))
    np.testing.assert_array_equal(one["size"], other["size"])


def test_the_graph_of_pymc_has_only_variables(fit):
    """Nodes are parameters, quantities by size and observations; an arrow leads to what depends on it."""
    text, model = pm.model_to_mermaid(fit.pymc), fit.pymc
    arrows = set(re.findall(r"^(\w+) --> (\w+)$", text, re.M))
    nodes = set(re.findall(r"^(\w+)@", text, re.M))
    assert nodes == {v.name for v in (*model.free_RVs, *model.deterministics, *model.observed_RVs)}
    assert len(nodes) < 40 and "Data" not in text
    tied = {"entities_by_size", *(f"{k}{q}_by_size" for k in ("kept", "foreign") for q in ("", "_square"))}
    assert {a for a, b in arrows if b == "log_predicted_links"} == tied
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
    with pytest.raises(KeyError, match="records"):
        pm.do(fit.pymc, {"records": 1.0})


def log_densities(model, point):
    """Log densities of the variables of a model of PyMC at values of its variables, by name."""
    values = {model.rvs_to_values[v].name: point[v.name] for v in model.free_RVs}
    log_p = model.compile_fn(model.logp(sum=False, jacobian=False), mode=Mode("py", None))(values)
    return {v.name: float(np.sum(x)) for v, x in zip(model.basic_RVs, log_p, strict=True)}


def test_the_model_of_pymc(fit):
    """Under each pair of candidate models: their densities, their weights, and that of the known total."""
    whole, data = bayes.SizeModel(), fit.evidence.data
    model = whole.build(fit.evidence)
    start = model.initial_point()
    point = {v.name: start[model.rvs_to_values[v].name] + 0.1 for v in model.free_RVs}
    of_threshold = ["threshold", "above_break", "above_share", "above_share_slope", "above_precision"]
    for sizes, retention in ((0, 0), (1, 1), (0, 2)):
        by_name = log_densities(model, point | {"sizes_model": sizes, "retention_model": retention})
        wanted = 2 * -np.log(0.99)  # parts have the prior chance that there are errors of either kind
        for place, which in (("sizes", sizes), ("retention", retention), ("leakage", 0)):
            average = as_average(whole.tied[place])
            name, candidate = list(average.models.items())[which]
            part = CompiledPart.of(candidate, data)
            theta = np.concatenate([np.ravel(point[k]) for k in dict.fromkeys(part.coordinates)])
            wanted += part.log_densities(theta[None])[0] + np.log(average.probability[name])
        if retention < 2:
            wanted += sum(by_name[k] for k in of_threshold)
        total = by_name.pop("log_predicted_links")
        assert np.isfinite(total) and sum(by_name.values()) == pytest.approx(wanted, rel=1e-9)


def test_the_model_of_pymc_is_printed_on_a_page(fit):
    text = bayes.SizeModel().build(fit.evidence).str_repr()
    assert len(text.splitlines()) <= 42 and "<normal>" not in text, "variables have their names"
    assert "sizes_model ~ Categorical" in text and "break_slope ~ StudentT(3, f(retention_model)" in text
    assert "expected_recall = Deterministic(f(kept_by_size, entities_by_size))" in text


def test_a_prediction_without_errors_is_in_the_model_of_pymc():
    """If no sampled entity has an error, the model has the state without any, with the fit's density."""
    pop = populations.simulate(populations.LogNormal(1.0, 1.0), populations.Merges(0.1), 4000, rng())
    model = bayes.SizeModel(bayes.PredictionInformed(), bayes.Retention(unbroken=0.3))
    whole = bayes.fast(clusters(40, 5, pop), model, draws=400, rng=rng())
    names = {v.name for v in whole.pymc.free_RVs}
    assert "unbroken" in names and "unmet" not in names
    point = {v.name: whole.draws.parameters[v.name][0, 3] for v in whole.pymc.free_RVs}
    found = log_densities(whole.pymc, point | {"unbroken": 1})
    part = whole.model.compile(whole.evidence.data)["retention"].usual
    told = found["unbroken"] + found["broken_entities"] + found["kept_shares"]
    assert told == pytest.approx(part.log_flawless) == pytest.approx(np.log(0.3))


def test_candidates_with_other_kinds_of_priors_have_variables_of_their_own(fit):
    other = bayes.Retention(break_level=bayes.StudentTPrior(-0.5, 1.0))
    average = bayes.ModelAverage({"normal": bayes.Retention(), "heavy": other})
    model = bayes.SizeModel(bayes.PredictionInformed(), average).build(fit.evidence)
    assert {"normal_break_level", "heavy_break_level"} < {v.name for v in model.free_RVs}
    kept = [
        pm.do(model, {"retention_model": which, "normal_break_level": -60.0})["kept_by_size"]
        for which in (0, 1)
    ]
    whole, heavy = (pm.draw(v, 5, random_seed=1, mode=Mode("py", None)).min() for v in kept)
    assert whole > 1 - 1e-6 and heavy < 0.9


@pytest.mark.study
@pytest.mark.parametrize("sampler", ["nutpie", "pymc"])
def test_samplers_take_the_model_as_it_is(fit, sampler):
    found = pm.sample(
        500,
        tune=500,
        chains=2,
        cores=1,
        model=fit.pymc,
        nuts_sampler=sampler,
        random_seed=1,
        progressbar=False,
    )
    for name in ("break_level", "meet_level", "size_slope"):
        own = fit.draws.parameters[name]
        assert abs(float(found["posterior"][name].mean()) - own.mean()) < 0.3 * own.std()


@pytest.mark.study
def test_pymc_samples_all_candidate_models(fit):
    """Ends of precision and recall, of finite populations, are those of a fit (three CPU minutes)."""
    case = datasets.people()
    sample = eb.Sample(eb.measure(case.prediction, case.labels), eb.UniformRecords(case.drawn))
    fast, settings = (
        bayes.fast(sample, draws=4000, rng=rng()),
        {"chains": 2, "cores": 1, "progressbar": False},
    )
    found = pm.sample(1000, tune=500, model=fast.pymc, random_seed=1, **settings)["posterior"]
    by_size = {k: found[f"{k}_by_size"].to_numpy() for k in ("intact", *TIED)}
    drawn = draw_populations(by_size, fast.evidence.data, rng())
    for metric, values in ((P, drawn.common / (drawn.common + drawn.false)), (R, drawn.common / drawn.true)):
        own = fast.apply(metric).values
        ends = (np.quantile(v, [0.025, 0.975]) for v in (values, own))
        assert np.abs(np.subtract(*ends)).max() < 0.2 * own.std()
    usual = (found["retention_model"] == 0).mean(), (fast.draws.parameters["retention_model"] == 0).mean()
    assert usual[0] == pytest.approx(usual[1], abs=0.15)


# Kept


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


# Columns of one's own


def test_a_column_of_ones_own(fit, monkeypatch):
    """Records of unsplit entities, as in the guide."""
    whole = PieceSum("whole", lambda n, N, m: n * (n == N))
    kept = Metric("kept-whole", (whole, RECORDS), lambda w, r: w / r, PER_RECORD, UNIT, "")
    with pytest.raises(
        eb.NotIdentified, match=r"'whole': use the closed form or .* erbayes\.bayes\.EXPECTED"
    ):
        fit.apply([kept])
    assert not fit.identifies(kept)
    monkeypatch.setitem(EXPECTED, whole, lambda fit: fit.size * fit.by_size["intact"])
    assert fit.identifies(kept)
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
    with pytest.raises(eb.DataError, match=re.escape("az.summary(fit.tree)")):
        az.summary(fit)
