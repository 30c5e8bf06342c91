"""The alarm of recall and the explanation of a fit, in Python and in reports; sizes of larger entities."""

import re
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from markupsafe import escape
from numpy.testing import assert_allclose

import erbayes as eb
from erbayes import bayes
from erbayes import metrics as m
from erbayes._internal import remedies
from erbayes._internal.errors import Grade
from erbayes.bayes.data import Evidence
from erbayes.bayes.fit import is_unreliable
from erbayes.bayes.model import Sizes
from erbayes.bayes.priors import PredictionInformed
from erbayes.bayes.programs import CompiledPart
from erbayes.engine import Taylor
from erbayes.engine.named import Fitting
from erbayes.report import report
from erbayes.study.populations import Chain, Merges, Population, Splits, Zeta, population, simulate

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::erbayes.bayes.NotConverged")]
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
    part = CompiledPart.of(Sizes(family), data)
    found = part.evaluated(part.sampled(100, 1, np.random.default_rng(1)))
    s = data["size"]
    body = np.exp(data["log_predicted"]) * s
    median, sd = np.exp(data["log_biased_mean"] + 2), np.exp(-0.5)
    tail = np.exp(-0.5 * (np.log(s / median) / sd) ** 2) / s * data["width"]
    share = 1 / (1 + np.e)
    records = data["records"] * ((1 - share) * body / body.sum() + share * tail / tail.sum())
    assert_allclose(found.by_size["entities"][0, 0] * s, records, rtol=1e-3, atol=1e-4)


def test_recall_of_split_giants_raises_an_alarm_under_clusters_and_none_under_records(clusters, records):
    truth = cut().value(R)
    (lower, upper), *_ = clusters.apply(R).interval()
    assert not lower <= truth <= upper, "the sample shows no giant"
    (alarm,) = clusters.remarks
    assert clusters.alarms == [*eb.alarms(clusters.sample, printed=clusters.table()), alarm]
    assert any("larger than any that the sample touches" in said for said in clusters.alarms)
    assert f"more than {clusters.evidence.entities.size.max():,.0f} records" in alarm
    assert alarm.remedies == (remedies.MORE, remedies.RECORDS) and alarm.grade is Grade.CAUTION
    assert f"interval of the model, {lower:.2f} to {upper:.2f}, is too short" in alarm
    assert records.remarks == []
    (lower, upper), *_ = records.apply(R).interval()
    assert lower <= truth <= upper


def test_a_report_shows_the_alarm_of_its_engine(clusters):
    engine = bayes.Modelled(draws=400)
    alarm, note = engine(clusters.sample, [R], 1).alarms
    assert note.startswith("Intervals average those of a size model") and note.grade is Grade.NOTE
    page = report(clusters.sample, [R], engines={"size model": engine})
    assert "size model: pairwise-recall depends on entities larger than any in the sample" in page
    assert "<li><b>caution</b>: size model: pairwise-recall depends on" in page and alarm[-40:] in page
    assert len(engine(clusters.sample, [P], 1).alarms) == 1


@pytest.mark.parametrize("share, length, raised", [
    (0.26, 0.12, True), (0.25, 0.12, False), (0.6, 0.29, True), (0.6, 0.31, False), (0.2, 0.01, False),
])  # fmt: skip
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
        "The alarm above calls this interval too short. With 20% of the closed form it is "
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
    shown, told, precision, recall = clusters.explain().split("\n\n")
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
    found = number(told, r"has ([\d,]+) records in ([\d,]+) clusters of up to ([\d,]+)")
    assert found == [len(pred), len(m_), m_.max()]
    assert number(told, r"([\d,]+) links\.") == [links.sum()]
    beyond = 100 * links[m_ > most].sum() / links.sum()
    assert number(told, r"links\. (.+) % of its") == pytest.approx([beyond], abs=0.5, rel=0.05)
    grid, population = clusters.evidence.grid, clusters.population
    bins = {sum(lower <= s for lower in grid.lower) - 1 for s in sizes}
    C2 = grid.size * (grid.size - 1) / 2
    unseen, larger = [], []
    for n in population.number.reshape(-1, len(grid.size)):
        every = sum(n * C2) + sum(s * (s - 1) / 2 for s in sizes)
        unseen.append(sum(n[j] * C2[j] for j in range(len(n)) if j not in bins) / every)
        larger.append(
            sum(n[j] * C2[j] for j in range(len(n)) if j not in bins and grid.size[j] > most) / every
        )
    share = r"(\S+) % \(95 %: (\S+) % to (\S+) %\) of the "
    for text, pattern, wanted in (
        (recall, share + "true links are expected in entities of sizes", unseen),
        (recall, r"and (\S+) % \(95 %: (\S+) % to (\S+) %\) in entities of more than", larger),
    ):
        three = [100 * np.mean(wanted), *(100 * np.quantile(wanted, [0.025, 0.975]))]
        assert number(text, pattern) == pytest.approx(three, abs=0.51), pattern
    labelled = make().true.isin(clusters.sample.units.ids)
    left = pred[~labelled].value_counts().to_numpy()
    share = 100 * (left * (left - 1) / 2).sum() / links.sum()
    assert number(precision, r"Of (\S+) % of the predicted links no record") == pytest.approx(
        [share], abs=0.51
    )
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
            text, r"move by (\S+) \(sizes\), (\S+) \(retention\), (\S+) \(mates\)"
        ) == pytest.approx(list(shift.loc[name]), abs=0.006)


def test_a_report_explains_the_fit_of_its_engine(clusters):
    engine = bayes.Modelled(draws=400)
    assert isinstance(engine, Fitting) and not isinstance(Taylor(), Fitting)
    page = report(clusters.sample, [R], engines={"size <model>": engine})
    assert "<h2>What the size &lt;model&gt; rests on</h2>" in page
    for paragraph in engine.fitted(clusters.sample, 1).explain().split("\n\n"):
        assert f"<p>{escape(paragraph)}</p>" in page
    assert 'alt="Share of links kept by size, with the sampled sizes marked"' in page
    assert "rests on</h2>" not in report(clusters.sample, [R], engines={"closed form": Taylor()})
