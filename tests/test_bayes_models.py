"""Several laws for one part: their evidence, the draws of each, the range over them, and the alarm."""

import re
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from markupsafe import escape
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp

pytest.importorskip("pymc", reason="pymc is not installed")

import erbayes as eb
from erbayes import bayes
from erbayes import metrics as m
from erbayes._internal import remedies
from erbayes._internal.errors import Grade
from erbayes.bayes.by_model import REJECTED
from erbayes.bayes.data import Evidence
from erbayes.bayes.importance import approximated
from erbayes.bayes.model import Sizes
from erbayes.bayes.model_average import compile_part, draw_parts, mix_draws
from erbayes.bayes.programs import CompiledPart, ParameterDraws, PartDraws
from erbayes.bayes.sizes import PredictionInformed
from erbayes.bayes.summary import is_unreliable
from erbayes.engine import Taylor
from erbayes.engine.contract import Fitting
from erbayes.report import report
from erbayes.study.populations import Chain, Merges, Population, Splits, Zeta, population, simulate

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::erbayes.bayes.NotConverged", "ignore::erbayes.Alarm"),
]
P, R = m.pairwise_precision, m.pairwise_recall


@cache
def cut(most=40):
    """A population whose prediction has entities of more than `most` records in halves, which leave no heap."""
    true = population(Zeta(2.1, 800), 12_000, 3)
    of_entity = true.groupby(true)
    rank = of_entity.cumcount() % 2 * (of_entity.transform("size") > most)
    return Population(true.astype(str) + "-" + rank.astype(str), true)


def sample(design, n=80, seed=1, pop=None):
    pop, g = pop or cut(), np.random.default_rng(seed)
    if isinstance(design, eb.UniformClusters):
        ids = g.choice(pop.true.unique(), n, replace=False)
        return eb.Sample(eb.measure(pop.pred, pop.true[pop.true.isin(ids)]), design)
    drawn = pop.true.iloc[g.integers(len(pop.true), size=n)].tolist()
    units = eb.measure(pop.pred, pop.true[pop.true.isin(drawn)])
    return eb.Sample(units, eb.UniformRecords(drawn))


@pytest.fixture(scope="module")
def clusters():
    return bayes.fast(sample(eb.UniformClusters()), draws=400, rng=1)


@pytest.fixture(scope="module")
def records():
    return bayes.fast(sample(eb.UniformRecords()), draws=400, rng=1)


def test_data_have_one_type_whether_or_not_an_entity_is_broken():
    """A part that is compiled for one sample takes the next: its data must not change their type."""
    intact, broken = (Evidence.of(sample(eb.UniformClusters(), seed=s, pop=cut(20))) for s in (6, 1))
    assert intact.data["broken"].sum() == 0 < broken.data["broken"].sum()
    for name in intact.data:
        assert np.asarray(intact.data[name]).dtype == np.asarray(broken.data[name]).dtype, name


@dataclass(frozen=True)
class NamedLaw:
    """Compiled law whose quantities and parameters name the law, the chain and the draw."""

    number: int
    start = np.array([7.0])

    def evaluated(self, drawn, kept=slice(None)):
        value = (1000.0 * self.number + drawn.thetas[..., 0])[kept]
        own = {"common": value, f"only_{self.number}": value}
        about = (drawn.khat, drawn.problems, drawn.log_evidence)
        return PartDraws({"kept": value[..., None]}, own, value / 7, *about)


def test_the_posterior_of_a_law_is_its_weight_times_its_evidence():
    part = bayes.ModelAverage(
        {"a": bayes.ZetaSizes(), "b": bayes.ZetaSizes(), "c": bayes.ZetaSizes()},
        {"a": 6.0, "b": 3.0, "c": 1.0},
    )
    assert_allclose(part.posterior([0.0, 0.0, 0.0]), [0.6, 0.3, 0.1], rtol=1e-12)
    assert_allclose(part.posterior(np.log([1.0, 2.0, 6.0]) - 900), [1 / 3] * 3, rtol=1e-9)


def test_draws_come_from_each_law_with_its_posterior_probability():
    laws = {name: NamedLaw(i) for i, name in enumerate("abc")}
    part = bayes.ModelAverage(laws, {"a": 6.0, "b": 3.0, "c": 1.0})
    thetas, states = np.arange(60.0).reshape(2, 30, 1), np.zeros((2, 30), dtype=int)
    drawn = {
        "a": ParameterDraws(thetas, states, 0.1, [], -20.0, np.full(2, -20.0)),
        "b": ParameterDraws(thetas, states, 0.9, ["bad"], -19.0, np.full(2, -19.0)),
        "c": ParameterDraws(thetas, states, 5.0, ["worse"], -80.0, np.full(2, -80.0)),
    }
    found = mix_draws("retention", part, drawn, np.random.default_rng(1))
    weights = np.array([0.6 * np.exp(-20.0), 0.3 * np.exp(-19.0), 0.1 * np.exp(-80.0)])
    law = found.parameters["retention_model"]
    for of_chain in law:
        assert_allclose(np.bincount(of_chain, minlength=3) / 30, weights / weights.sum(), atol=1 / 30)
    assert found.log_evidence == pytest.approx(np.log(weights.sum()))
    value = 1000.0 * law + np.arange(60).reshape(2, 30)
    assert_array_equal(found.parameters["common"], value)
    assert_array_equal(found.by_size["kept"][..., 0], value)
    # less the mean of each law, which is about half a unit per parameter below the density at its centre
    mean = (1000.0 * law + 7) / 7 - 0.5
    assert_allclose(found.log_prior, value / 7 - mean + np.log([0.6, 0.3, 0.1])[law])
    assert set(found.parameters) == {"common", "retention_model"}
    assert found.khat == 0.9 and found.problems == ["b: bad"], "a law without draws has no say"
    assert (law[0] != np.sort(law[0])).any(), "laws are mixed along a chain"


def test_the_evidence_of_a_law_is_its_marginal_likelihood():
    """By a sum over a fine grid of the only parameter, of the likelihood in plain NumPy."""
    data = Evidence.of(sample(eb.UniformClusters())).data
    s, width, n = data["size"], data["width"], data["drawn"]
    z = np.linspace(-8, 8, 4001)

    def marginal(sd):
        a = 1 + 1.2 * np.exp(sd * z)
        weights = -a[:, None] * np.log(s) + np.log(width)
        log_p = weights - logsumexp(weights, axis=1, keepdims=True)
        prior = -0.5 * z**2 - 0.5 * np.log(2 * np.pi) + np.log(z[1] - z[0])
        return logsumexp(log_p @ n + prior)

    scales = {"wide": 1.0, "narrow": 0.05}
    part = compile_part(
        bayes.ModelAverage({name: Sizes(bayes.ZetaSizes(sd)) for name, sd in scales.items()}), data
    )
    drawn = draw_parts({"sizes": part}, 4000, 1, np.random.default_rng(1))["sizes"]
    found = [d.log_evidence for d in drawn.values()]
    assert found == pytest.approx([marginal(sd) for sd in scales.values()], abs=0.05)
    assert abs(found[0] - found[1]) > 0.3, "the laws differ"


def test_the_evidence_of_a_fit_has_the_known_total(clusters):
    """The parts' evidence, plus the log of the mean density of the known number of links."""
    one = next(iter(clusters.by_model.values()))
    parts = sum(d.log_evidence for of_laws in one.parts.values() for d in of_laws.values())
    tied = {place: compile_part(part, one.evidence.data) for place, part in one.model.tied.items()}
    by = {
        k: v
        for place, of_laws in one.parts.items()
        for name, d in of_laws.items()
        for k, v in tied[place].models[name].evaluated(d).by_size.items()
    }
    by = {k: v.reshape(1, -1, *v.shape[2:]) for k, v in by.items()}
    g, data, mean = np.random.default_rng(3), one.evidence.data, []
    s = data["size"]
    c2 = s * (s - 1) / 2
    for _ in range(3000):
        i, j, k = g.integers(400, size=3)
        M = by["entities"][0, i]
        p = 1 / M.sum()
        rest = M * np.maximum(1 - data["draws"] * p, 0)
        rest = rest * (data["records"] - data["sampled_records"]) / (rest @ s)
        kept, square = by["kept"][0, j], by["kept_square"][0, j]
        foreign, foreign_square = by["foreign"][0, k], by["foreign_square"][0, k]
        links = (
            rest @ (c2 * kept + s * foreign / 2) + data["sampled_common_links"] + data["sampled_foreign"] / 2
        )
        var = rest @ (c2**2 * square + s**2 * foreign_square / 4 + c2 * s * kept * foreign)
        var = min(var / links**2, 0.25) + 1e-4
        mean.append(-0.5 * np.log(var) - 0.5 * np.log(links / data["predicted_links"]) ** 2 / var)
    assert one.draws.log_evidence - parts == pytest.approx(logsumexp(mean) - np.log(3000), abs=0.15)


def test_a_share_of_the_records_is_in_larger_entities():
    family = PredictionInformed(
        larger_share=bayes.NormalPrior(-1.0, 1e-6),
        larger_factor=bayes.NormalPrior(2.0, 1e-6),
        larger_spread=bayes.NormalPrior(-0.5, 1e-6),
        slope=1e-6,
        amplitude=1e-6,
        single=bayes.StudentTPrior(0.0, 1e-6),
    )
    data = Evidence.of(sample(eb.UniformClusters())).data
    part = compile_part(Sizes(family), data)
    (drawn,) = draw_parts({"sizes": part}, 100, 1, np.random.default_rng(1))["sizes"].values()
    found = part.usual.evaluated(drawn)
    s = data["size"]
    body = np.exp(data["log_predicted"]) * s
    median, sd = np.exp(data["log_biased_mean"] + 2), np.exp(-0.5)
    tail = np.exp(-0.5 * (np.log(s / median) / sd) ** 2) / s * data["width"]
    share = 1 / (1 + np.e)
    records = data["records"] * ((1 - share) * body / body.sum() + share * tail / tail.sum())
    assert_allclose(found.by_size["entities"][0, 0] * s, records, rtol=1e-3, atol=1e-4)


def test_a_fit_has_each_combination_of_laws(clusters):
    assert list(clusters.by_model)[:2] == ["predicted, usual", "predicted, uneven"]
    assert len(clusters.by_model) == 6
    assert set(np.unique(clusters.draws.parameters["retention_model"])) <= {0, 1, 2}
    told = clusters.models([P, R])
    assert told.index.names == ["metric", "model"] and len(told) == 12
    assert told.log_evidence.max() == 0 and (told.rejected == (told.log_evidence < REJECTED)).all()
    of_laws = told.loc["pairwise-recall"]
    probability = {"predicted": 0.95, "larger": 0.05, "usual": 0.67, "uneven": 0.30, "threshold": 0.03}
    by_hand = [np.prod([probability[name] for name in law.split(", ")]) for law in of_laws.index]
    assert_allclose(of_laws.prior, by_hand)
    joint = by_hand * np.exp(of_laws.log_evidence)
    assert_allclose(of_laws.posterior, joint / joint.sum(), atol=0.06)
    assert of_laws.posterior.sum() == pytest.approx(1) and of_laws.posterior.max() > 0.3
    assert_array_equal(told.loc["pairwise-precision"].posterior, of_laws.posterior)
    under = clusters.by_model["larger, threshold"].apply(R)
    row = told.loc[("pairwise-recall", "larger, threshold")]
    assert [row.estimate, row.lower, row.upper] == pytest.approx([under.mean[0], *under.interval()[0]])
    table = clusters.table(metrics=[R, P])
    kept = told[~told.rejected]
    for name in ("pairwise-recall", "pairwise-precision"):
        assert table.model_lower[name] == kept.loc[name].lower.min()
        assert table.model_upper[name] == kept.loc[name].upper.max()
    assert clusters.table().index.size == 6, "all usual metrics"


def test_recall_of_split_giants_raises_an_alarm_under_clusters_and_none_under_records(clusters, records):
    truth = cut().value(R)
    (lower, upper), *_ = clusters.apply(R).interval()
    assert not lower <= truth <= upper, "the sample shows no giant"
    (alarm,) = clusters.alarms
    table = clusters.table(metrics=R)
    assert f"between {table.model_lower.iloc[0]:.2f} and {table.model_upper.iloc[0]:.2f}" in alarm
    assert f"more than {clusters.evidence.entities.size.max():,.0f} records" in alarm
    assert alarm.remedies == (remedies.MORE, remedies.RECORDS) and alarm.grade is Grade.CAUTION
    assert f"interval of the model, {lower:.2f} to {upper:.2f}, is too short" in alarm
    assert records.alarms == []
    (lower, upper), *_ = records.apply(R).interval()
    assert lower <= truth <= upper


def test_a_sample_of_records_finds_the_size_above_which_entities_are_cut():
    pop = population(Zeta(1.9, 800), 12_000, 5)
    cut_above = pop.groupby(pop).transform("size") > 60
    third = pd.Series(np.random.default_rng(1).integers(3, size=len(pop)), pop.index)
    world = Population(pop.astype(str) + "-" + third.where(cut_above, 0).astype(str), pop)
    chosen = sample(eb.UniformRecords(), 120, 2, world)
    evidence = {
        name: approximated([CompiledPart.of(law, Evidence.of(chosen).data)], 500, np.random.default_rng(1))[0]
        for name, law in bayes.RETENTION.models.items()
    }
    best = evidence.pop("threshold").log_evidence
    assert best > 10 + max(other.log_evidence for other in evidence.values())
    model = bayes.SizeModel(bayes.PredictionInformed(), bayes.Threshold())
    fit = bayes.fast(chosen, model, draws=400, rng=1)
    place = fit.evidence.data["log_biased_mean"] / np.log(2) + fit.draws.parameters["threshold"]
    assert abs(np.median(place) - np.log2(60)) < 0.5
    (lower, upper), *_ = fit.apply(R).interval()
    assert lower <= world.value(R) <= upper and upper - lower < 0.25


def test_one_law_has_an_alarm_without_a_range(clusters):
    model = bayes.SizeModel(bayes.PredictionInformed(), bayes.Retention())
    one = bayes.fast(clusters.sample, model, draws=200, rng=1)
    assert one.by_model == {} and one.models().empty
    (alarm,) = one.alarms
    assert "Candidate" not in alarm and "draw records instead of entities" in alarm
    assert "model_lower" not in one.table(metrics=R)


def test_a_report_shows_the_alarm_of_its_engine(clusters):
    engine = bayes.Modelled(draws=400)
    alarm, note = engine(clusters.sample, [R], 1).alarms
    assert note.startswith("Intervals average those of a size model") and note.grade is Grade.NOTE
    page = report(clusters.sample, [R], engines={"size model": engine})
    assert "size model: pairwise-recall depends on entities larger than any in the sample" in page
    assert "<li><b>caution</b>: size model: pairwise-recall depends on" in page and alarm[-40:] in page
    assert len(engine(clusters.sample, [P], 1).alarms) == 1


@pytest.mark.parametrize(
    ("share", "length", "raised"),
    [(0.26, 0.12, True), (0.25, 0.12, False), (0.6, 0.29, True), (0.6, 0.31, False), (0.2, 0.01, False)],
)
def test_an_interval_far_shorter_than_the_unreached_links_is_unreliable(share, length, raised):
    """The bars are a quarter of the true links, and half of their share, by draws made for the purpose."""
    values = np.linspace(0.5 - length / 1.9, 0.5 + length / 1.9, 2001)  # 95 % of it are `length` long
    draws = eb.metrics.Estimates.of_draws((R.name,), values[None, :, None], ((0.0, 1.0),))
    fit = SimpleNamespace(unreached_share=np.full((1, 7), share), apply=lambda metrics: draws)
    assert is_unreliable(fit) is raised


def test_a_report_has_the_answer_of_an_unreliable_recall(clusters):
    engine = bayes.Modelled(draws=400)
    fit = engine.fitted(clusters.sample, 1)
    page = report(clusters.sample, [P, R], engines={"model": engine, "default": Taylor()})
    heads = re.findall(r'<table class="estimates".*?</thead>', page, re.S)[0]
    assert re.findall("<th>([a-z, ]+)</th>", heads) == ["model", "default"]
    rows = dict(re.findall(r"<tr><th>(pairwise-[a-z]+)<small>.*?</small></th>(.*?)</tr>", page, re.S))
    firsts = {name: re.findall(r"<td>.*?\n(.*?)–(.*?)</td>", row) for name, row in rows.items()}
    (of_precision, (lower, upper)) = fit.estimate([P, R]).interval()
    assert [float(x) for x in firsts[R.name][0]] == pytest.approx([lower, upper], abs=6e-3)
    assert [float(x) for x in firsts[P.name][0]] == pytest.approx(of_precision, abs=6e-3)
    assert (
        "The alarm above calls this interval too short. With the share of the closed form it is "
        f"{lower:.3f} to {upper:.3f}." in page
    )


def number(text, pattern):
    """The numbers that a pattern finds in a text."""
    (found,) = re.findall(pattern, text)
    return [float(x.replace(",", "")) for x in (found if isinstance(found, tuple) else (found,))]


@cache
def leaky():
    """A population with false links and lost ones."""
    return simulate(Zeta(2.1, 300), Chain([Splits(0.3), Merges(0.05)]), 8_000, 3)


@pytest.mark.parametrize("make", [cut, leaky])
def test_the_explanation_has_facts_of_the_fit(make):
    """Its figures, counted again from the units, the prediction and the draws by plain loops."""
    clusters = bayes.fast(sample(eb.UniformClusters(), pop=make()), draws=400, rng=1)
    sizes, pred = clusters.sample.units.size, make().pred
    number_of, beyond = clusters.population.number.reshape(-1, len(clusters.size)), 0.0
    for s, count in zip(clusters.size, number_of.T, strict=True):
        beyond = beyond + count * s * (s - 1) / 2 * (s > max(sizes))
    assert_allclose(clusters.unreached_share.ravel(), beyond / clusters.population.true.ravel(), rtol=1e-9)
    shown, told, laws_, precision, recall = clusters.explain().split("\n\n")
    draws, entities, least, most = number(
        shown, r"has (\d+) draws of (\d+) entities, of (\d+) to (\d+) records"
    )
    assert (draws, entities, least, most) == (80, 80, min(sizes), max(sizes))
    units = clusters.sample.units.table()
    several = units[units.records > 1]
    broken = int((several.common_links < several.true_links).sum())
    assert f"{broken} of {len(several)} with two records or more are broken" in shown
    assert f"{int((units.predicted_links > units.common_links).sum())} of 80 meet a foreign record" in shown

    m_ = pred.value_counts().to_numpy()
    links = m_ * (m_ - 1) / 2
    assert number(told, r"has ([\d,]+) records in ([\d,]+) clusters of up to ([\d,]+)") == [
        len(pred),
        len(m_),
        m_.max(),
    ]
    assert number(told, r"([\d,]+) links\.") == [links.sum()]
    beyond = 100 * links[m_ > most].sum() / links.sum()
    assert number(told, r"links\. (.+) % of its") == pytest.approx([beyond], abs=0.5, rel=0.05)

    grid, population = clusters.evidence.grid, clusters.population
    bins = {sum(lower <= s for lower in grid.lower) - 1 for s in sizes}
    C2 = grid.size * (grid.size - 1) / 2
    unseen, larger, false = [], [], []
    drawn = [x.reshape(-1, x.shape[-1]) for x in (population.number, clusters.by_size["foreign"])]
    for n, foreign in zip(*drawn, strict=True):
        every = sum(n * C2) + sum(s * (s - 1) / 2 for s in sizes)
        unseen.append(sum(n[j] * C2[j] for j in range(len(n)) if j not in bins) / every)
        larger.append(
            sum(n[j] * C2[j] for j in range(len(n)) if j not in bins and grid.size[j] > most) / every
        )
        met = sum(n * grid.size * foreign) + clusters.evidence.entities.foreign.sum()
        at_unseen = sum(n[j] * grid.size[j] * foreign[j] for j in range(len(n)) if j not in bins)
        false.append(at_unseen / met if met else 0.0)
    share = r"(\S+) % \(95 %: (\S+) % to (\S+) %\) of the "
    for text, pattern, wanted in (
        (recall, share + "true links are expected in entities of sizes", unseen),
        (recall, r"and (\S+) % \(95 %: (\S+) % to (\S+) %\) in entities of more than", larger),
        (precision, share + "false links belong", false),
    ):
        three = [100 * np.mean(wanted), *(100 * np.quantile(wanted, [0.025, 0.975]))]
        assert number(text, pattern) == pytest.approx(three, abs=0.51), pattern

    for place, names in (("sizes", ("predicted", "larger")), ("retention", ("usual", "uneven", "threshold"))):
        law = clusters.draws.parameters[f"{place}_model"]
        for i, name in enumerate(names):
            after, before = number(laws_, rf"'{name}' (\S+) \(before the sample (\d\.\d\d)\)")
            assert after == pytest.approx((law == i).mean(), abs=0.0051)
            assert before == getattr(clusters.model, place).probability[name]
    table = clusters.table(metrics=[P, R])
    posterior = clusters.apply([P, R])
    shift = clusters.prior_shift(posterior)
    for text, name, mean in zip(
        (precision, recall), posterior.names, posterior.flat.mean(axis=0), strict=True
    ):
        row = table.loc[name]
        assert number(text, r" is (\S+), 95 % interval (\S+) to (\S+)\. ") == pytest.approx(
            [mean, row.posterior_lower, row.posterior_upper], abs=6e-4
        )
        assert number(
            text, r"move by (\S+) \(sizes\), (\S+) \(retention\), (\S+) \(leakage\)"
        ) == pytest.approx(list(shift.loc[name]), abs=0.006)
        assert number(text, r"reach from (\S+) to (\d\.\d+)\.") == pytest.approx(
            [row.model_lower, row.model_upper], abs=6e-4
        )


def test_one_law_is_explained_without_a_range(clusters):
    model = bayes.SizeModel(bayes.PredictionInformed(), bayes.Retention())
    text = bayes.fast(clusters.sample, model, draws=200, rng=1).explain(0.9)
    assert "Probabilities" not in text and "combinations" not in text and "90 % interval" in text


def test_a_report_explains_the_fit_of_its_engine(clusters):
    engine = bayes.Modelled(draws=400)
    assert isinstance(engine, Fitting) and not isinstance(Taylor(), Fitting)
    page = report(clusters.sample, [R], engines={"size <model>": engine})
    assert "<h2>What the size &lt;model&gt; rests on</h2>" in page
    for paragraph in engine.fitted(clusters.sample, 1).explain().split("\n\n"):
        assert f"<p>{escape(paragraph)}</p>" in page
    assert 'alt="Share of links kept by size, with the sampled sizes marked"' in page
    assert "rests on</h2>" not in report(clusters.sample, [R], engines={"closed form": Taylor()})


@pytest.mark.parametrize(
    ("laws", "weights", "message"),
    [
        ({}, {}, "ModelAverage needs one model or more"),
        ({"a": None}, {"b": 1.0}, "weights must be above 0, one for each of a, not {'b': 1.0}"),
        ({"a": None, "b": None}, {"a": 1.0, "b": 0.0}, "weights must be above 0, one for each of a, b"),
    ],
)
def test_laws_that_cannot_be_weighed(laws, weights, message):
    with pytest.raises(eb.DataError, match=message):
        bayes.ModelAverage(laws, weights)
