"""The default of `draw`: its bound, what it says, its alarms, and the uniform records among its draws."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import erbayes as eb
from erbayes import labels as sa
from erbayes.engine.diagnostics import _estimate_records as estimate_records
from erbayes.engine.diagnostics import _explain_balance as explain_balance
from erbayes.labels.drawn import say_expected
from erbayes.labels.plans import PLANS, chances
from erbayes.labels.source import InMemory
from erbayes.study import draw_samples
from erbayes.units.units import KnownTotals

MULTIPURPOSE = sa.Multipurpose()
FLOOR = 2**-0.5
"""No record has a smaller share of its uniform chance: s² = ½ + (x² + y²)/4 has mean 1, hence mean s ≤ 1."""


def tables():
    """Sizes and numbers of predicted clusters: the ends of what there is, and 200 by chance."""
    yield np.array([7.0]), np.array([3.0])
    yield np.array([1.0]), np.array([1e9])
    yield np.array([1.0, 1e6]), np.array([1e6, 1.0])
    yield np.array([1.0, 2.0, 50.0]), np.array([1e9, 5.0, 1.0])
    rng = np.random.default_rng(1)
    for _ in range(200):
        size = np.unique(np.ceil(np.exp(rng.uniform(0, rng.uniform(0.5, 9), rng.integers(1, 40)))))
        yield size, np.maximum(1.0, np.round(np.exp(rng.uniform(0, 12, len(size)))))


def chances_of(size, count, plan=MULTIPURPOSE):
    return chances(plan, KnownTotals(size, count))(pd.DataFrame({"size": size}))


def test_no_record_has_less_than_its_share_and_no_variance_is_over_its_bound():
    rng, least = np.random.default_rng(2), 1.0
    for size, count in tables():
        p, records = chances_of(size, count), size * count
        N = records.sum()
        assert records @ p == pytest.approx(1, rel=1e-12)
        least = min(least, (N * p).min())
        if N > 20_000:
            continue
        # a census: entities of any records, with effects of any size
        of_record = np.repeat(p, records.astype(int))
        entity = rng.integers(0, max(N // 3, 1), int(N))
        of_entity, uniform = (np.bincount(entity, q) for q in (of_record, np.full(int(N), 1 / N)))
        there = uniform > 0
        for heavy in (1.0, 3.0, 9.0):
            effect = np.exp(heavy * rng.standard_normal(there.sum()))
            one, other = (effect**2 @ (1 / q[there]) for q in (of_entity, uniform))
            assert one <= 2**0.5 * other * (1 + 1e-12)
    assert FLOOR - 1e-12 <= least < 0.73  # close to what is proven


def test_predictions_without_links_or_of_one_size_give_uniform_records():
    for size, count in (([1.0], [9.0]), ([4.0], [5.0])):
        np.testing.assert_allclose(chances_of(np.array(size), np.array(count)), 1 / (size[0] * count[0]))


def test_names_of_records_and_clusters_do_not_matter():
    rng = np.random.default_rng(3)
    pred = pd.Series(np.repeat(np.arange(60), 1 + rng.poisson(2, 60)))
    other = pd.Series(pred.map(lambda k: f"c{(7 * k) % 61}").to_numpy(), [f"r{i}" for i in pred.index])
    order = rng.permutation(len(pred))
    for one in (other, other.iloc[order]):
        known = InMemory.of(one).known
        assert known.equals(InMemory.of(pred).known)
    tables = [sa.draw(one, n=50, seed=1).table for one in (other, other.iloc[order])]
    pd.testing.assert_frame_equal(*tables)


def expected_of(text):
    """The numbers of a sentence of expected draws: of the plan, and of uniform records."""
    mine, _, uniform = text.rstrip(")").partition(" (uniform records: ")
    return [int(part.split()[0].replace(",", "")) for part in mine.split(", ") if part[0].isdigit()], [
        int(k.replace(",", "")) for k in uniform.split(", ") if k
    ]


@pytest.mark.parametrize("plan", [sa.Multipurpose(), sa.LinkEnds(), sa.Records()], ids=repr)
def test_expected_draws_add_to_their_number_and_are_sums_of_chances(plan):
    for size, count in tables():
        known, p = KnownTotals(size, count), size * count * chances_of(size, count, sa.Records())
        if (size == 1).all() and plan == sa.LinkEnds():
            continue
        mine, uniform = expected_of(say_expected(plan, known, 300))
        assert sum(mine) == 300 and sum(uniform or [300]) == 300
        if size[0] == 1 and len(size) > 1 and plan == sa.Multipurpose():
            assert abs(uniform[0] - 300 * p[0]) <= 1
            assert abs(mine[0] - 300 * (size * count * chances_of(size, count))[0]) <= 1


def test_the_line_says_which_clusters_hold_half_of_the_links():
    known = KnownTotals(np.array([1.0, 2.0, 3.0, 9.0]), np.array([50.0, 10.0, 5.0, 2.0]))
    line = say_expected(sa.Multipurpose(), known, 100)
    # 10 + 15 links in the smaller clusters, and 72 in the others
    assert ", 28 of clusters of 2 to 8, " in line
    assert " of 9 or more, with 74% of the predicted links (" in line
    pairs = KnownTotals(np.array([1.0, 2.0]), np.array([516.0, 4742.0]))
    assert say_expected(sa.Multipurpose(), pairs, 300) == (
        "18 single records, 282 of clusters of 2 or more, with 100% of the predicted links (uniform records: "
        "15, 285)"
    )


# Two lists, of which a few matches are missed, as Splink's `link_only` finds febrl4
def two_lists():
    """800 pairs, and 100 single records which are 50 missed matches."""
    pred = pd.Series([*np.repeat(np.arange(800), 2), *range(800, 900)])
    true = pd.Series([*np.repeat(np.arange(800), 2), *np.repeat(np.arange(800, 850), 2)])
    return pred, true, eb.Clustering.of(pred)


def test_the_number_of_records_by_the_draws_has_its_error():
    """Two lists with .8 of the entities in each, of which .6 of the links are found."""
    rng = np.random.default_rng(1)
    true = pd.Series(np.nonzero(rng.random((9000, 2)) < 0.8)[0])
    missed = true.duplicated() & (rng.random(len(true)) > 0.6)
    pred = true.where(~missed, 9000 + true)
    people = eb.measure(pred, true)
    samples = draw_samples(sa.Multipurpose(), people, 150, 200, np.random.default_rng(1)).separate
    estimate, error, records = np.array([estimate_records(sample) for sample in samples]).T
    assert set(records) == {len(true)}
    own = np.sqrt(error**2 - (estimate / 150) ** 2)  # without that of one unseen draw
    assert own.mean() == pytest.approx(estimate.std(), rel=0.15) and own.min() > 0.8 * own.mean()
    assert abs(estimate.mean() - len(true)) < 4 * estimate.std() / 200**0.5


# Remedies
def unlike(weights, design):
    """A sample with too many or too few of 20 clusters of 20, the others being single, by a design."""
    pred = pd.Series([*range(400), *np.repeat(np.arange(400, 420), 20)])
    drawn = [*range(weights["small"]), *range(400, 400 + weights["large"])]
    labels = pred[pred.isin(drawn)]
    return eb.Sample(eb.measure(pred, labels), design(drawn, pred))


def of_size(drawn, pred):
    known = InMemory.of(pred).known
    return eb.design.ByPredictedSize(sa.Multipurpose().column(known), drawn, known)


DESIGNS = {
    "Multipurpose multipurpose": of_size,
    "UniformRecords uniform-records": lambda drawn, pred: eb.UniformRecords(drawn),
    "ByPredictedSize": lambda drawn, pred: eb.design.ByPredictedSize(eb.columns.RECORDS, drawn),
    "UniformClusters": lambda drawn, pred: eb.UniformClusters(draws=drawn),
    "DistinctEntities": lambda drawn, pred: eb.DistinctEntities(len(drawn)),
    "KnownSelection": lambda drawn, pred: eb.design.KnownSelection(
        {i: (1 if i < 400 else 20) / len(pred) for i in drawn}, drawn
    ),
    "BySize": lambda drawn, pred: eb.design.BySize(np.sqrt, drawn),
    "KnownWeights": lambda drawn, pred: eb.KnownWeights(dict.fromkeys(drawn, 1.0), drawn),
    "LinkEnds predicted-links": lambda drawn, pred: eb.design.ByPredictedSize(
        eb.columns.PREDICTED_LINKS, drawn
    ),
}


@pytest.mark.parametrize("name", DESIGNS)
def test_no_remedy_names_the_design_at_hand(name):
    shares = [{"small": 2, "large": 20}, {"small": 60, "large": 1}, {"small": 60, "large": 0}]
    if "LinkEnds" in name:
        shares = [{"small": 0, "large": 20}, {"small": 0, "large": 3}]
    said = []
    for weights, metrics in product(shares, [eb.metrics.DEFAULT_METRICS, ["b3-recall"]]):
        metrics = ["pairwise-precision"] if "LinkEnds" in name else metrics
        said += eb.alarms(unlike(weights, DESIGNS[name]), metrics)
    assert said
    for alarm in said:
        rest = alarm.removeprefix(alarm.what)
        assert not [word for word in [*name.split(), *PLANS] if word in rest], rest


@pytest.mark.parametrize(
    ("weights", "kind", "size"),
    [({"small": 2, "large": 20}, "small", "1 or fewer"), ({"small": 90, "large": 1}, "large", "20 or more")],
)
def test_a_sample_out_of_balance_says_which_clusters_it_has_too_few_of(weights, kind, size):
    for design, compared in (("Multipurpose multipurpose", True), ("UniformRecords uniform-records", False)):
        sample = unlike(weights, DESIGNS[design])
        (alarm,) = [a for a in eb.alarms(sample) if a.startswith("Out of balance")]
        assert f"by chance the sample has too few {kind} clusters (it estimates " in alarm
        assert f" records in clusters of {size}, the prediction holds 400), and its metrics" in alarm
        assert alarm.endswith("; label more draws (of a folder: erbayes draw --more N FOLDER).")
        assert ("is not the population that was sampled" in alarm) is not compared


def test_the_size_of_which_records_are_missing_is_where_most_of_them_are():
    """Of sizes 1, 2, 9 and 30, the sample has the right share of 2 and 9, and too many or too few of 30."""
    size = np.repeat([1, 2, 9, 30], [300, 150, 40, 10])  # 300, 300, 360 and 300 records
    pred = pd.Series(np.repeat(np.arange(500), size))
    weight = np.repeat([7.5, 5.0, 4.0, 1.0], [300, 150, 40, 10])
    for singles, giants, nines, said in (
        (2, 10, 10, "1 or fewer"),
        (40, 1, 10, "30 or more"),
        (40, 1, 5, "9 or more"),
    ):
        first = [*range(singles), *range(300, 330), *range(450, 450 + nines), *range(490, 490 + giants)]
        design = eb.KnownWeights({i: weight[i] for i in first}, first)
        alarm = explain_balance(eb.Sample(eb.measure(pred, pred[pred.isin(first)]), design), giants > 1)
        share = weight[first] * size[first]
        there = size == 1 if giants > 1 else size >= int(said[:2])
        found, known = share[there[first]].sum() * 1260 / share.sum(), size[there].sum()
        assert (
            f"(it estimates {found:,.0f} records in clusters of {said}, the prediction holds {known})"
            in alarm
        )


# The uniform records among the draws
PRED = pd.Series(np.repeat(np.arange(6), [1, 1, 1, 2, 4, 7]))


def test_what_stays_are_uniform_records():
    """Records of all sizes stay as often, .74 of the draws here, and one draw says nothing of another."""
    clusters, n = eb.Clustering.of(PRED), 3000
    drawn = [sa.draw(clusters, n=n, seed=seed).uniform() for seed in range(10)]
    found = pd.concat([one.table for one in drawn])
    counts = found["record"].value_counts().reindex(PRED.index, fill_value=0)
    assert stats.chisquare(counts).pvalue > 1e-3
    size = PRED.map(PRED.value_counts()).unique().astype(float)
    known = drawn[0].known
    share = len(PRED) * chances(sa.Multipurpose(), known)(pd.DataFrame({"size": np.sort(size)})).min()
    assert abs(len(found) / (10 * n) - share) < 4.5 * np.sqrt(share * (1 - share) / (10 * n))
    at = found["record"].to_numpy()
    pairs = np.bincount(at[:-1] * len(PRED) + at[1:], minlength=len(PRED) ** 2)
    assert stats.chisquare(pairs).pvalue > 1e-3 and (found["probability"] == 1 / len(PRED)).all()


def test_the_uniform_part_is_estimated_as_uniform_records_are():
    pred, true, clusters = two_lists()
    part = sa.draw(clusters, n=200, seed=1).uniform()
    assert part.plan == sa.Records() and part.n == len(part.table) < 200
    labels = true[true.isin(true[part.table["record"]])]
    design = part.design(labels)
    assert type(design) is eb.UniformRecords
    wanted = eb.UniformRecords(true[part.table["record"]].tolist())
    units = eb.measure(clusters, labels)
    np.testing.assert_array_equal(design.expand(units).weight, wanted.expand(units).weight)
    part.refuse_another(pred)
    # of more draws, those that stay begin with those that stayed
    more = sa.draw(clusters, n=300, seed=1).uniform().table
    pd.testing.assert_frame_equal(more.head(part.n), part.table)
    same = sa.draw(clusters, sa.Records(), n=30, seed=1)
    pd.testing.assert_frame_equal(same.uniform().table, same.table)


@pytest.mark.parametrize("plan", [sa.LinkEnds(), sa.PredictedClusters()], ids=repr)
def test_draws_without_a_uniform_part_are_refused(plan):
    with pytest.raises(
        eb.DataError, match=f"draws by {type(plan).__name__} leave no sample of uniform records"
    ):
        sa.draw(PRED, plan, n=3, seed=1).uniform()
