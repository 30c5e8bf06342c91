"""Statistics of a user's own: census, brute force, R, all samples enumerated, guards, and bad input."""

from contextlib import nullcontext, suppress
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from shell import done, refused
from test_statistics import slope_of_the_page

import erbayes as eb
from erbayes.analysis import impact as room
from erbayes.analysis.impact import impact_of
from erbayes.labels import Multipurpose, Records, draw
from erbayes.units import features

GOLDEN = Path(__file__).parent / "golden"
R = pd.read_csv(GOLDEN / "results.csv").set_index(["case", "estimator", "quantity"]).value
FEATURES = {"span": ("year", "range"), "sales": ("amount", "sum"), "shops": ("shop", "distinct")}
STATISTICS = [
    *"count count(size>=3) share(span>=5) mean(span) total(sales)".split(), "ratio(sales, shops)",
    *"gini gini(sales) top(5)".split(), "top(0.1, sales)", "quantile_share(0.5)",
]  # fmt: skip
SUMS = STATISTICS.index("gini")
"""Number of statistics that are sums, which databases compute."""


def population(entities=250, wrong=0.25, seed=0):
    r = np.random.default_rng(seed)
    size = np.minimum(r.zipf(2.0, entities), 20)
    t = np.repeat(np.arange(entities), size)
    mixed = np.where(r.random(len(t)) < wrong, r.integers(0, entities, len(t)), t)
    p = np.unique(mixed, return_inverse=True)[1]
    table = pd.DataFrame(
        {
            "record": np.arange(len(t)),
            "year": r.integers(1990, 2010, len(t)),
            "amount": r.gamma(2, 10, len(t)),
            "shop": r.choice(["a", "b", "c"], len(t)),
            "country": r.choice(["FR", "US"], len(t)),
        }
    )
    return pd.Series(t), pd.Series(p), table


TRUTH, PREDICTION, TABLE = population()
N, K = len(TRUTH), TRUTH.nunique()
GIVEN = {"attributes": TABLE, "features": FEATURES}
SOME_TEXT = TABLE["year"].astype(str).where(TABLE.index != 3, "then")


def brute_force(clusters, within=None):
    """Values of STATISTICS by pandas, of entities that weigh their share of records in a domain."""
    by = TABLE.groupby(clusters.to_numpy())
    size, sales, shops = by.size(), by["amount"].sum(), by["shop"].nunique()
    span = by["year"].max() - by["year"].min()
    w = np.ones(len(size)) if within is None else within.groupby(clusters.to_numpy()).mean()
    kept = pd.DataFrame({"size": size, "sales": sales, "shops": shops, "span": span, "w": w}).query("w > 0")

    def highest(name, k):
        rows = kept.sort_values(name, ascending=False)
        before = rows["w"].cumsum() - rows["w"]
        return (np.clip(k - before, 0, rows["w"]) * rows[name]).sum() / (kept["w"] * kept[name]).sum()

    def gini(name):
        x, w = kept[name].to_numpy(), kept["w"].to_numpy()
        return (w[:, None] * w * np.abs(x[:, None] - x)).sum() / (2 * w.sum() * (w @ x))

    total = kept["w"].sum()
    return [
        total,
        kept["w"][kept["size"] >= 3].sum(),
        kept["w"][kept["span"] >= 5].sum() / total,
        (kept["w"] * kept["span"]).sum() / total,
        (kept["w"] * kept["sales"]).sum(),
        (kept["w"] * kept["sales"]).sum() / (kept["w"] * kept["shops"]).sum(),
        gini("size"),
        gini("sales"),
        highest("size", 5),
        highest("sales", 0.1 * total),
        1 - highest("size", 0.5 * total),
    ]


def of_predicted(sampled, design, statistics=STATISTICS, **given):
    """Impact of sampled predicted clusters, with all records of the entities that they touch."""
    touched = TRUTH[TRUTH.isin(TRUTH[PREDICTION.isin(sampled)])]
    units = eb.measure_predicted(PREDICTION, touched, sampled)
    return impact_of(eb.Sample(units, design), PREDICTION, touched, statistics, **given)


class TestCensus:
    @pytest.mark.parametrize("by", [None, "country"])
    def test_a_census_of_entities_is_the_truth_without_error(self, by):
        found = eb.impact(PREDICTION, TRUTH, eb.UniformClusters(K), STATISTICS, by=by, **GIVEN)
        domains = [None] if by is None else [(TABLE["country"] == c).astype(float) for c in ("FR", "US")]
        truth, predicted = ([x for d in domains for x in brute_force(c, d)] for c in (TRUTH, PREDICTION))
        np.testing.assert_allclose(found.fit.mean, truth, rtol=1e-12)
        np.testing.assert_allclose(found.predicted, predicted, rtol=1e-12)
        assert (found.fit.sd == 0).all() and not any(found.fit.reasons)

    def test_a_census_of_predicted_clusters_is_the_truth(self):
        every = sorted(PREDICTION.unique())
        found = of_predicted(every, eb.UniformClusters(len(every)), **GIVEN)
        np.testing.assert_allclose(found.fit.mean, brute_force(TRUTH), rtol=1e-12)
        assert (found.fit.sd == 0).all()

    def test_a_census_of_blocks_is_the_truth(self):
        blocks = TRUTH // 10
        units = eb.measure(PREDICTION, TRUTH, blocks=blocks)
        sample = eb.Sample(units, eb.UniformClusters(blocks.nunique()))
        found = impact_of(sample, PREDICTION, TRUTH, STATISTICS, **GIVEN)
        np.testing.assert_allclose(found.fit.mean, brute_force(TRUTH), rtol=1e-12)
        assert (found.fit.sd == 0).all()


# One sample, draw by draw
DRAWN = TRUTH.iloc[np.random.default_rng(4).integers(0, N, 120)].to_numpy()
LABELS = TRUTH[TRUTH.isin(DRAWN)]
BY_RECORDS = eb.UniformRecords(list(DRAWN))


def judged(statistics, prediction=PREDICTION, **given):
    return eb.impact(prediction, LABELS, BY_RECORDS, statistics, **given)


def each_draw(drawn):
    """The design of drawn records that count as often as they were drawn."""
    return eb.UniformRecords(list(drawn), repeats=True)


def by_loops(drawn, once):
    """Number of entities and mean of span with their standard errors, by loops over draws and records."""
    draws, years = len(drawn), TABLE["year"].to_numpy()
    drawn = sorted(set(drawn)) if once else drawn
    n = len(drawn)

    def missed(*entities):
        return (1 - sum((TRUTH == c).sum() for c in entities) / N) ** draws

    found = np.array([1 - missed(c) for c in drawn])
    left = np.sqrt((1 - found if once else 1) * n / (n - 1))
    # (π_cd - π_c π_d)/π_cd of the distinct entities
    share = np.zeros((n, n))
    for i, j in product(range(n), repeat=2) if once else ():
        both = found[i] if i == j else found[i] + found[j] - 1 + missed(drawn[i], drawn[j])
        share[i, j] = 1 - found[i] * found[j] / both

    def of(members):
        return np.array([1.0, np.ptp(years[members])])

    members = {c: np.flatnonzero(TRUTH == c) for c in set(drawn)}
    clusters = {k: np.flatnonzero(PREDICTION == k) for k in PREDICTION.unique()}
    w = 1 / found if once else [N / (n * len(members[c])) for c in drawn]
    rows = [of(members[c]) for c in drawn]
    led = [sum(of(clusters[PREDICTION[i]]) / len(clusters[PREDICTION[i]]) for i in members[c]) for c in drawn]
    d, e = (np.array([a * x for a, x in zip(w, side, strict=True)]) for side in (rows, led))
    predicted = sum(of(members) for members in clusters.values())
    results = []
    for both in (
        (d[:, 0], e[:, 0], d[:, 0].sum(), e[:, 0].sum(), predicted[0]),
        (
            (d[:, 1] - d[:, 0] * d[:, 1].sum() / d[:, 0].sum()) / d[:, 0].sum(),
            (e[:, 1] - e[:, 0] * e[:, 1].sum() / e[:, 0].sum()) / e[:, 0].sum(),
            d[:, 1].sum() / d[:, 0].sum(),
            e[:, 1].sum() / e[:, 0].sum(),
            predicted[1] / predicted[0],
        ),
    ):
        a, b, plain, mirrored, known = both
        d, e = left * (a - a.mean()), left * (b - b.mean())
        over = (a @ share @ b) / (b @ share @ b) if once else (d @ e) / (e @ e)
        weight = min(max(over, 0), 1)
        r, whole = d - weight * e, a - weight * b
        # two pseudo-draws of half a draw each, as large as draws of mean 0 differ
        typical = np.sqrt(sum(d**4) / sum(d**2) + 3 * sum(d**2) / n)
        if not once:  # over all pairs
            pairs = [x - y for x in d for y in d]
            assert np.isclose(typical**2, sum(x**4 for x in pairs) / sum(x**2 for x in pairs))
        variance = (whole @ share @ whole if once else r @ r) + 2 * typical**2 / 2
        # without a draw that lowers it, a number is larger
        second = r @ r + 2 * typical**2 / 2
        skew = [max(side * sum(r**3) + typical**3 / 2, 0) / second for side in (-1, 1)]
        results.append((plain + weight * (known - mirrored), np.sqrt(variance), weight, *skew))
    return np.transpose(results)


@pytest.mark.parametrize("once", [True, False])
@pytest.mark.parametrize("drawn", [DRAWN, DRAWN[:25]])
def test_estimates_are_those_of_loops_over_draws(drawn, once):
    labels = TRUTH[TRUTH.isin(drawn)]
    design = eb.UniformRecords(list(drawn)) if once else each_draw(drawn)
    statistics = ["count(size>=1)", "mean(span)"]  # count without a condition is gains less losses
    found = eb.impact(PREDICTION, labels, design, statistics, **GIVEN)
    mean, se, weight, down, up = by_loops(drawn, once)
    known = found.effective >= room.FEWEST
    assert known[0]
    np.testing.assert_allclose(found.weights[known], weight[known], rtol=1e-9)
    np.testing.assert_allclose(found.fit.mean[known], mean[known], rtol=1e-9)
    np.testing.assert_allclose(found.fit.sd[known], se[known], rtol=1e-9)
    # Student's quantiles of n - 1 degrees of freedom, about ends that the skew moves (Johnson 1978)
    n = len(set(drawn)) if once else len(drawn)
    t, z = stats.t.ppf(0.975, n - 1), stats.norm.ppf(0.975)
    ends = found.fit.interval(kind=eb.intervals.Symmetric())
    for j, (side, skew) in enumerate(((-1, down), (1, up))):
        centre = mean + side * skew * (1 + 2 * z**2) / 6
        wanted = centre + side * t * se
        np.testing.assert_allclose(ends[known, j], wanted[known], rtol=1e-9)


def test_means_of_all_samples_are_the_truth_and_the_prediction():
    truth = pd.Series([0, 0, 0, 1, 2, 2])
    prediction = pd.Series([5, 5, 6, 6, 7, 7])
    weights = {"records": lambda c: len(truth) / (2 * (truth == c).sum()), "entities": lambda c: 3 / 2}
    for name, weight in weights.items():
        units = list(truth) if name == "records" else list(truth.unique())
        found = []
        for drawn in product(units, repeat=2):
            labels = truth[truth.isin(drawn)]
            design = eb.KnownWeights({c: weight(c) for c in labels.unique()}, list(drawn), absolute=True)
            sample = eb.Sample(eb.measure(prediction, labels), design)
            table, units = features.Attributes.of(None, (), None, pd.RangeIndex(6)), sample.units
            both = features.Featured.of(units, eb.Clustering.of(prediction), eb.Clustering.of(labels), table)
            known = room.FittedStatistics.of(both, ["count", "count(size>=2)"])
            entities = both.entities, both.entity_of, units.n / units.N, both.entity_shares
            clusters = both.clusters, both.cluster_of, units.n / units.m, both.cluster_shares
            found.append([room._linearise(sample, known, *side)[0] for side in (entities, clusters)])
        np.testing.assert_allclose(np.mean(found, axis=0), [[3, 2], [3, 3]], rtol=1e-12)


def test_totals_means_and_ratios_are_those_of_r():
    """R 4.2.2, survey 4.1-1: svytotal and svyratio of 60 draws with unequal chances."""
    records = pd.read_csv(GOLDEN / "records.csv").set_index("record")
    drawn = pd.read_csv(GOLDEN / "s_ppswr.csv")
    clusters = pd.read_csv(GOLDEN / "clusters.csv")
    size = records.groupby("true")["true"].transform("size")
    of_entity = clusters.set_index(clusters.columns[0])
    # the same value for each record of an entity, whose mean is that of the entity; clusters have theirs
    table = pd.DataFrame({"record": records.index, "size2": size.to_numpy()})
    for name in ("TP", "T2", "EXACT"):
        table[name] = of_entity[name].loc[records["true"]].to_numpy() / size.to_numpy()
    weights = drawn.drop_duplicates("cluster").set_index("cluster")["w"]
    labels = records["true"][records["true"].isin(drawn["cluster"])]
    design = eb.KnownWeights(weights, list(drawn["cluster"]), absolute=True)
    asked = ["total(TP)", "total(T2)", "ratio(TP, T2)", "mean(EXACT)"]
    given = {"attributes": table, "features": {name: (name, "sum") for name in ("TP", "T2", "EXACT")}}
    found = eb.impact(records["pred"], labels, design, asked, **given)
    for j, name in enumerate(("total_TP", "total_T2", "R", "clR")):
        assert found.plain.mean[j] == pytest.approx(float(R["pps_wr_nofpc", name, "est"]), rel=1e-10)
        assert found.plain.sd[j] == pytest.approx(float(R["pps_wr_nofpc", name, "se"]), rel=1e-10)


def test_gini_and_regression_are_the_formulas_of_convey_and_survey_by_hand():
    """R is not at hand. Langel and Tillé (2013), as convey linearises Gini, and the sandwich of svyglm."""
    statistics = ["gini", slope_of_the_page()]
    found = eb.impact(PREDICTION, LABELS, each_draw(DRAWN), statistics, **GIVEN)
    by, n = TABLE.loc[LABELS.index].groupby(LABELS), len(DRAWN)
    size, sales = by.size(), by["amount"].sum()
    draws = [(float(size[c]), float(sales[c]), N / (n * float(size[c]))) for c in DRAWN]
    K, T = sum(w for _, _, w in draws), sum(w * y for y, _, w in draws)
    G = sum(v * w * abs(x - y) for x, _, v in draws for y, _, w in draws) / (2 * K * T)
    u = []
    for y, _, _ in draws:
        below = sum(w for x, _, w in draws if x <= y)
        mean = sum(w * x for x, _, w in draws if x <= y) / below
        u.append((2 * below * (y - mean) + T - K * y - G * (T + K * y)) / (K * T))
    A = sum(w * np.outer([1, np.log(x)], [1, np.log(x)]) for x, _, w in draws)
    B = np.linalg.solve(A, sum(w * np.array([1, np.log(x)]) * y for x, y, w in draws))
    scores = [w * np.array([1, np.log(x)]) * (y - B @ [1, np.log(x)]) for x, y, w in draws]
    bread = np.linalg.inv(A)
    meat = n / (n - 1) * sum(np.outer(s - np.mean(scores, axis=0), s) for s in scores)
    np.testing.assert_allclose(found.plain.mean, [G, B[1]], rtol=1e-10)
    z = np.array([w * x for x, (_, _, w) in zip(u, draws, strict=True)])
    se = [np.sqrt(n * z.var(ddof=1)), np.sqrt((bread @ meat @ bread)[1, 1])]
    np.testing.assert_allclose(found.plain.sd, se, rtol=1e-9)


class TestDesigns:
    def test_a_stratified_sample_adds_up_its_strata(self):
        strata = {c: c % 2 for c in range(K)}
        counts = {h: sum(1 for c in range(K) if c % 2 == h) for h in (0, 1)}
        chosen = [c for c in range(120) if c % 2 or c < 60]
        labels = TRUTH[TRUTH.isin(chosen)]
        found = eb.impact(PREDICTION, labels, eb.Stratified(strata, counts), "total(sales)", **GIVEN)
        sales = TABLE.groupby(TRUTH)["amount"].sum()
        parts = [sales[[c for c in chosen if c % 2 == h]] for h in (0, 1)]
        plain = sum(counts[h] * part.mean() for h, part in enumerate(parts))
        each = [(counts[h], part.var(), len(part)) for h, part in enumerate(parts)]
        variance = sum(K_h**2 * (1 - n / K_h) * v / n for K_h, v, n in each)
        assert found.plain.mean[0] == pytest.approx(plain)
        assert found.plain.sd[0] == pytest.approx(np.sqrt(variance)) and found.fit.sd[0] < found.plain.sd[0]

    @pytest.mark.parametrize("design, drawn, asked, metric", [
        (eb.UniformClusters(), range(100), ["count", "mean(span)"], "entities"),
        (eb.DistinctEntities(len(DRAWN)), DRAWN, ["mean(size)"], "mean-cluster-size"),
    ])  # fmt: skip
    def test_weights_up_to_a_factor_and_distinct_entities(self, design, drawn, asked, metric):
        """Statistics that are metrics have their estimates and errors."""
        labels = TRUTH[TRUTH.isin(drawn)]
        found = eb.impact(PREDICTION, labels, design, asked, **GIVEN)
        sample = eb.Sample(eb.measure(PREDICTION, labels), design)
        first = eb.engine.taylor(sample, metric).apply(metric, order=1)
        assert found.plain.mean[0] == pytest.approx(first.mean[0])
        assert found.plain.sd[0] == pytest.approx(first.sd[0])

    @pytest.mark.parametrize("design", [
        eb.design.Responding(BY_RECORDS, [True] * len(DRAWN) + [False] * 5),
        eb.design.Pooled([eb.UniformRecords(list(DRAWN[:70])), eb.UniformRecords(list(DRAWN[70:]))]),
        eb.UniformRecords(list(DRAWN), population=N),
    ])  # fmt: skip
    def test_every_design_with_a_variance_is_taken(self, design):
        found = eb.impact(PREDICTION, LABELS, design, STATISTICS, **GIVEN)
        some = np.array([not why for why in found.fit.reasons])
        assert some.sum() >= 8 and (found.fit.sd[some] > 0).all()
        assert (np.abs(found.fit.mean - brute_force(TRUTH)) <= 5 * found.plain.sd)[some].all()

    @pytest.mark.parametrize("plan", [Multipurpose(), Records()])
    def test_designs_of_plans_are_taken(self, plan):
        drawn = draw(PREDICTION, plan, n=150, seed=1)
        labels = TRUTH[TRUTH.isin(TRUTH[drawn.table["record"]])]
        found = eb.impact(PREDICTION, labels, drawn.design(labels), STATISTICS, **GIVEN)
        assert found.fit.sd[0] < found.plain.sd[0]
        assert (np.abs(found.fit.mean - brute_force(TRUTH)) <= 4 * found.fit.sd).all()

    def test_predicted_clusters_lead_to_the_truth_by_their_pieces(self):
        sampled = sorted(PREDICTION.unique())[:90]
        clusters = PREDICTION.nunique()
        found = of_predicted(sampled, eb.UniformClusters(clusters), ["count"])
        size = TRUTH.groupby(TRUTH).transform("size")
        each = np.array([(1 / size[PREDICTION == k]).sum() for k in sampled])
        assert found.plain.mean[0] == pytest.approx(clusters * each.mean())
        se = clusters * np.sqrt((1 - 90 / clusters) / 90) * each.std(ddof=1)
        assert found.plain.sd[0] == pytest.approx(se)


def test_parts_of_entities_in_a_domain_have_the_variance_of_a_simple_sample():
    """The textbook's N²(1 - n/N)s²/n of what each entity adds: its share of records in the country."""
    drawn = np.random.default_rng(4).choice(K, 60, replace=False)
    labels, statistics = TRUTH[TRUTH.isin(drawn)], ["count", "count(size>=3)"]
    found = eb.impact(PREDICTION, labels, eb.UniformClusters(K), statistics, by="country", **GIVEN)
    assert found.domains == ("FR", "FR", "US", "US")
    for j, (country, least) in enumerate([("FR", 1), ("FR", 3), ("US", 1), ("US", 3)]):
        share = (TABLE["country"] == country).groupby(TRUTH.to_numpy()).mean()
        adds = (share * (TRUTH.value_counts().sort_index() >= least))[drawn]
        assert found.plain.mean[j] == pytest.approx(K * adds.mean())
        assert found.plain.sd[j] == pytest.approx(K * np.sqrt((1 - 60 / K) * adds.var(ddof=1) / 60))


class TestControl:
    def test_a_correction_does_not_leave_the_range_of_a_share(self):
        """Of 212 sampled entities 12 have one record and 200 ten, of which the prediction splits one off."""
        truth = pd.Series(np.repeat(np.arange(812), [1] * 12 + [10] * 800))
        split = ~truth.duplicated() & truth.between(12, 211)
        prediction, labels = truth.where(~split, 10_000 + truth), truth[truth < 212]
        found = eb.impact(prediction, labels, each_draw(range(212)), "share(size>=2)")
        # a draw of one of ten records weighs a tenth of that of a single record
        estimate, mirrored, known = 20 / 32, 20 / 52, 800 / 1012
        assert found.plain.mean[0] == pytest.approx(estimate)
        assert estimate + found.weights[0] * (known - mirrored) > 1 and found.fit.mean[0] == 1

    def test_an_unrelated_prediction_does_no_harm(self):
        shuffled = pd.Series(np.random.default_rng(1).permutation(PREDICTION))
        found = judged(STATISTICS, shuffled, **GIVEN)
        known = np.array([not why for why in found.fit.reasons])
        known[0] = False  # the number of entities follows the clusters whatever they are
        assert (found.fit.sd[known] <= 1.05 * found.plain.sd[known]).all()
        assert found.fit.sd[0] <= 1.5 * found.plain.sd[0]

    def test_equivalent_labels_are_those_that_the_plain_estimate_would_need(self):
        found = judged(["count"], **GIVEN)
        gain = (found.plain.sd[0] / found.fit.sd[0]) ** 2
        assert found.equivalent_labels[0] == round(120 * (gain - 1)) and found.equivalent_labels[0] > 0


class TestGuards:
    def test_fewer_than_ten_effective_draws_are_refused_with_their_number(self):
        rare = TRUTH.isin(pd.unique(DRAWN)[:1]).astype(float)
        given = {"attributes": TABLE.assign(rare=rare), "features": {"rare": ("rare", lambda x: x.max())}}
        found = judged(["count(rare>=1)", "count"], **given)
        few, enough = found.effective
        assert few < room.FEWEST <= enough
        row = found.table().iloc[0]
        assert np.isnan(row[["estimate", "se", "lower", "equivalent_labels"]].astype(float)).all()
        assert f"{few:.1f} effective draws, fewer than 10" in row["reason"]
        assert found.table()["reason"].iloc[1] == "" and "no estimate of the truth" in found.sentences()[0]

    @pytest.mark.parametrize("k", [8, 12])
    def test_the_guard_is_at_ten(self, k):
        """Of 400 draws of single records k change a total, in pairs of opposite sign."""
        truth = pd.Series(np.arange(1000))
        amount = np.zeros(1000)
        amount[:k] = (-1.0) ** np.arange(k)
        table = pd.DataFrame({"record": truth.index, "amount": amount})
        design = eb.UniformRecords([*range(400)])
        given = {"attributes": table, "features": {"x": ("amount", "sum")}}
        found = eb.impact(truth, truth[:400], design, "total(x)", **given)
        assert found.effective[0] == pytest.approx(k) and (found.fit.reasons[0] == "") == (k == 12)

    def test_a_statistic_that_no_draw_changes_is_refused(self):
        given = {"attributes": TABLE, "features": {"one": ("amount", lambda x: 1.0)}}
        found = judged(["share(size>=1)", "count(size>=99)", "top(5, one)"], **given)
        assert all("do not differ" in why for why in found.fit.reasons)

    def test_an_empty_domain_is_refused(self):
        table = TABLE.assign(country=np.where(TRUTH.isin(DRAWN), "FR", "US"))
        found = judged(["count"], attributes=table, by="country")
        assert found.domains == ("FR", "US") and "no labelled entity" in found.fit.reasons[1]

    def test_what_the_matcher_wrote_is_refused(self):
        golden = TABLE.assign(year=PREDICTION.to_numpy())
        with pytest.raises(eb.DataError, match="'year' is the same in all records of each predicted cluster"):
            judged("mean(span)", attributes=golden, features={"span": ("year", "range")})
        own = judged("mean(span)", attributes=golden, features={"span": ("year", np.ptp)})
        assert own.predicted[0] == 0

    @pytest.mark.every(2)
    @pytest.mark.parametrize(("how", "other"), [
        ("range", "-1"), ("range", None), ("sum", "999999"), ("sum", None), ("distinct", "-1"),
        ("distinct texts", "999999"), ("distinct texts", None),
    ])  # fmt: skip
    def test_one_record_that_differs_in_its_cluster_shows_another_hand(self, folder, how, other):
        best = PREDICTION.astype(str)
        if other is not None:
            best[best.index[best.duplicated(keep="last")][0]] = other
        table = TABLE.assign(best=(best if " " in how else best.astype(float)).to_numpy())
        table.to_parquet(folder / "golden.parquet")
        given = {"features": {"x": ("best", how.split()[0])}}
        scanned = (folder / "clusters.parquet", folder / "golden.parquet")
        for prediction, attributes in ((PREDICTION, table), scanned):
            said = pytest.raises(eb.DataError, match="'best' is the same in all records of each predicted")
            with nullcontext() if other else said:
                judged("mean(x)", prediction, attributes=attributes, **given)

    def test_ten_clusters_of_several_records_are_suspect(self):
        for several, suspect in ((9, False), (10, True)):
            prediction = pd.Series([*np.repeat(np.arange(several), 2), *range(100, 130)])
            truth = pd.Series([*np.repeat(np.arange(several), 2), *np.repeat(range(200, 215), 2)])
            table = pd.DataFrame({"record": prediction.index, "x": prediction})
            given = {"attributes": table, "features": {"x": ("x", "mean")}}
            design = eb.UniformClusters(truth.nunique())
            with pytest.raises(eb.DataError, match="golden record") if suspect else nullcontext():
                assert eb.impact(prediction, truth, design, "mean(x)", **given).fit.sd[0] == 0

    def test_records_that_a_design_never_draws_are_named(self):
        links = eb.columns.PREDICTED_LINKS
        labels = TRUTH[TRUTH.isin(TRUTH[PREDICTION.isin([1, 2, 3])])]
        with pytest.raises(eb.NotIdentified, match="pool the draws with uniform records"):
            eb.impact(PREDICTION, labels, eb.design.ByPredictedSize(links), "count")


class TestFeatures:
    @pytest.mark.parametrize("how", ["sum", "mean", "min", "max", "range", "distinct"])
    def test_aggregates_are_those_of_pandas(self, how):
        codes = np.random.default_rng(0).integers(0, 30, 400)
        x = np.random.default_rng(1).integers(-5, 5, 400).astype(float)
        by = pd.Series(x).groupby(codes)
        own = {"range": lambda: by.max() - by.min(), "distinct": by.nunique}
        expected = own.get(how, getattr(by, how, None))()
        np.testing.assert_allclose(features.AGGREGATES[how](codes, x, codes.max() + 1), expected)

    def test_a_function_of_a_users_own_sees_the_values_of_each_entity(self):
        given = {"attributes": TABLE, "features": {"middle": ("amount", lambda x: x.median())}}
        found = eb.impact(PREDICTION, TRUTH, eb.UniformClusters(K), "mean(middle)", **given)
        assert found.fit.mean[0] == pytest.approx(TABLE.groupby(TRUTH)["amount"].median().mean())

    def test_the_order_of_records_does_not_matter(self):
        prediction = PREDICTION.iloc[np.random.default_rng(2).permutation(N)]
        labels, table = LABELS.sample(frac=1, random_state=1), TABLE.sample(frac=1, random_state=2)
        one = judged(STATISTICS, **GIVEN)
        other = eb.impact(prediction, labels, BY_RECORDS, STATISTICS, attributes=table, features=FEATURES)
        pd.testing.assert_frame_equal(one.table(), other.table(), rtol=1e-9)

    def test_records_that_the_prediction_lacks_are_refused_or_left_out(self):
        there = PREDICTION.drop(LABELS.index[:3])
        design = BY_RECORDS
        with pytest.raises(eb.DataError, match='missing="omit"'):
            judged("count", there)
        found = judged("count", there, missing=eb.Missing.OMIT)
        left = eb.impact(there, LABELS.drop(LABELS.index[:3]), design, "count")
        assert found.table().equals(left.table())
        with pytest.raises(eb.DataError, match=r"statistics of predicted clusters need all of them"):
            judged("count", there, missing=eb.Missing.TOGETHER)

    def test_a_frame_leaves_newer_records_out(self):
        old = PREDICTION.index[: N - 40]
        labels = LABELS[LABELS.index.isin(old)]
        drawn = [c for c in DRAWN if c in set(labels)]
        found = eb.impact(PREDICTION, labels, eb.UniformRecords(drawn), "count", frame=old)
        alone = eb.impact(PREDICTION[old], labels, eb.UniformRecords(drawn), "count")
        assert found.table().equals(alone.table())

    @pytest.mark.parametrize(("given", "said"), [
        ({}, "attributes=table"),
        ({"attributes": TABLE.drop(columns="year")}, "has no column 'year'"),
        ({"attributes": TABLE.iloc[:-2]}, "2 of .* records of the prediction have no attributes"),
        ({"attributes": pd.concat([TABLE, TABLE[:3]])}, "3 rows .* repeat a record.*: keep one row of each, as by"),
        ({"attributes": TABLE.assign(year=TABLE["year"].where(TABLE.index > 4))}, "missing for 5 of"),
        ({"attributes": TABLE.assign(year="then")}, "cannot be used, such as 'then'"),
        ({"attributes": TABLE.assign(year=SOME_TEXT)}, "1 of .* cannot be used, such as 'then'"),
        ({"attributes": TABLE.assign(year=np.arange(N, dtype=complex))}, "cannot be used"),
        ({"attributes": TABLE.assign(year=pd.period_range("2020", periods=N, freq="D"))}, "cannot be used"),
        ({"attributes": pd.concat([TABLE, TABLE[["year"]]], axis=1)}, "has several columns 'year': rename all but"),
        ({"attributes": TABLE.assign(record=[f"r{i}" for i in range(N)])}, "are of type"),
        ({"attributes": 3}, "a DataFrame or an Arrow table"),
        ({"attributes": TABLE, "features": {"span": "year"}}, r"is \(column, aggregate\)"),
        ({"attributes": TABLE, "features": {"span": ("year", "median")}}, "aggregates are sum, mean"),
        ({"attributes": TABLE, "features": {"size": ("year", "sum")}}, "give the feature another name"),
        ({"attributes": TABLE, "features": {"other": ("year", "sum")}}, "features={'span'"),
        ({"attributes": TABLE, "features": {"span": ("year", lambda x: np.nan)}}, "no finite number"),
        ({"attributes": TABLE, "features": ["span"]}, "features map names"),
    ])  # fmt: skip
    def test_what_is_no_feature_is_refused(self, given, said):
        given = {"features": FEATURES, **given}
        with pytest.raises(eb.DataError, match=said):
            judged("mean(span)", **given)

    def test_texts_of_features(self):
        assert features.Feature.parse("a=b:c=d:sum") == features.Feature("a", "b:c=d", "sum")
        for text in ("span", "span=year", "=year:sum", "span=:sum"):
            with pytest.raises(eb.DataError, match="NAME=COLUMN:AGGREGATE"):
                features.Feature.parse(text)


def test_sentences_say_how_wrong_the_clusters_are():
    found = judged(["count", "mean(size)"])
    first, second = found.sentences()
    row = found.table().iloc[0]
    assert f"the clusters say {row['predicted']:,.0f}" in first
    assert [*row["predicted"] - row[["upper", "lower"]]] == [*row[["least", "most"]]]
    assert "too high" in first or "do not show this number to be wrong" in first
    assert "too low" in second or "do not show this number to be wrong" in second
    assert repr(found).startswith("Impact\n")


def test_a_function_of_a_users_own_with_and_without_influence():
    def spread(rows, weights):
        return weights @ rows["span"] / weights.sum()

    def linear(rows, weights):
        mean = weights @ rows["span"] / weights.sum()
        return mean, (rows["span"].to_numpy() - mean) / weights.sum()

    found = judged([spread, linear, "mean(span)"], **GIVEN)
    np.testing.assert_allclose(found.predicted, found.predicted[2])
    assert found.fit.mean[1] == pytest.approx(found.fit.mean[2])
    assert found.fit.mean[0] == pytest.approx(found.fit.mean[2], rel=0.02)
    assert found.fit.sd[0] == pytest.approx(found.fit.sd[2], rel=0.1)


# Where the prediction lies, and the shell
@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("impact")
    clusters = pd.DataFrame({"record": PREDICTION.index, "cluster": PREDICTION})
    clusters.to_parquet(place / "clusters.parquet")
    clusters.to_csv(place / "clusters.csv", index=False)
    TABLE.to_parquet(place / "orders.parquet")
    TABLE.to_csv(place / "orders.csv", index=False)
    pd.DataFrame({"record": LABELS.index, "entity": LABELS}).to_csv(place / "labels.csv", index=False)
    pd.Series(DRAWN, name="entity").to_csv(place / "drawn.csv", index=False)
    return place


@pytest.mark.slow
def test_a_scan_is_as_in_memory(folder, monkeypatch):
    """Also in parts of ten records, some of which have no cluster."""
    memory = judged(STATISTICS[:SUMS], attributes=TABLE, features=FEATURES)
    place = {"prediction": folder / "clusters.parquet", "attributes": folder / "orders.parquet"}
    for part in (20_000_000, 10):
        monkeypatch.setattr("erbayes.large.duckdb.PART", part)
        scanned = judged(STATISTICS[:SUMS], features=FEATURES, **place)
        pd.testing.assert_frame_equal(memory.table(), scanned.table(), rtol=1e-9)


@pytest.mark.parametrize("how", ["sum", "known-sum", "mean", "range", "distinct", "known-distinct"])
@pytest.mark.parametrize(
    "values", [(0, 0), (np.nan, np.nan), (1, np.nan), (-1, 1), (np.inf, 1), (None, None)]
)
def test_a_scan_of_degenerate_columns_is_as_in_memory(folder, tmp_path, values, how):
    pytest.importorskip("duckdb")
    table = pd.DataFrame({"record": TABLE["record"], "x": [values[i % 2] for i in TABLE.index], "one": 1})
    table.to_parquet(tmp_path / "a.parquet")
    asked, found = ["share(f>0)", "mean(f)", "total(f)", "ratio(f, n)", "ratio(n, f)"], []
    given = {"features": {"f": ("x", how), "n": ("one", "sum")}}
    for prediction, rows in ((PREDICTION, table), (folder / "clusters.parquet", tmp_path / "a.parquet")):
        with suppress(eb.DataError):
            found.append(judged(asked, prediction, attributes=rows, **given).table())
    assert not found or pd.testing.assert_frame_equal(*found, rtol=1e-9) is None  # both refuse, or both agree


@pytest.mark.parametrize(("given", "said"), [
    ({"features": {"own": ("year", np.ptp)}}, "no database runs"),
    ({"statistics": ["count", "gini", "top(5)"]}, "'gini', 'top\\(5\\)' needs a row for each .*: read the"),
    ({"features": {"x": ("when", "sum")}}, "has no column 'when'"),
    ({"attributes": TABLE.iloc[3:]}, "3 of .* records of the prediction have no attributes"),
    ({"attributes": pd.concat([TABLE, TABLE[:2]])}, "2 rows of the attributes repeat a record"),
    ({"frame": [1, 2]}, "takes no frame and no by here"),
    ({"by": "country"}, "takes no frame and no by here"),
])  # fmt: skip
def test_what_a_scan_refuses(folder, given, said):
    given = {"attributes": folder / "orders.parquet", "features": {"x": ("year", "range")}} | given
    with pytest.raises(eb.DataError, match=said):
        eb.impact(folder / "clusters.parquet", LABELS, BY_RECORDS, **given)


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)


SHELL = ("labels.csv", "--design", "uniform-records", "--drawn", "drawn.csv", "--statistic", "count",
         "--statistic", "mean(span)", "--feature", "span=year:range", "--attributes", "orders.csv")  # fmt: skip


def test_the_shell_refuses_in_its_words(here):
    assert "(--attributes TABLE)" in refused("impact", "clusters.csv", *SHELL[:-2])
    in_place = ("--memory-limit", "1GB", "--annotator-errors", "missed=.1")
    assert "which does not fit in memory" in refused("impact", "clusters.csv", *SHELL, *in_place)
    unknown = refused("impact", "clusters.csv", *SHELL, "--statistic", "mean(tall)")
    assert "(--feature span=year:range)" in unknown


def test_numbers_as_text_in_another_order_of_records_are_the_same_numbers():
    """Texts are read at once by Arrow, or one by one by pandas if one has blanks, and rows without use are left."""
    plain = judged(STATISTICS, **GIVEN).table()
    shuffled = TABLE.sample(frac=1, random_state=1)
    beyond = pd.DataFrame([{**TABLE.iloc[0], TABLE.columns[0]: TABLE.iloc[:, 0].max() + 1}])
    for year in (shuffled["year"].astype(str), " " + shuffled["year"].astype(str)):
        table = pd.concat([shuffled.assign(year=year), beyond.assign(year="then")])
        found = judged(STATISTICS, **GIVEN | {"attributes": table})
        pd.testing.assert_frame_equal(found.table(), plain, rtol=1e-12)


# Attributes that are no numbers, or that some records lack
COUNT = np.arange(len(TABLE))
DAYS = pd.Timestamp("2020-01-01") + pd.to_timedelta(COUNT % 50, "D")
UNSUITABLE = {
    **{f"timestamp[{unit}]": (DAYS.astype(f"datetime64[{unit}]"), "range") for unit in ("ms", "us", "ns")},
    "timestamp with a zone": (DAYS.tz_localize("UTC"), "mean"),
    "duration": (pd.to_timedelta(COUNT % 50, "D"), "sum"),
    "date": (DAYS.date, "max"),
    "endless": (np.where(COUNT == 5, np.inf, 1.0), "max"),
    "texts of none": (np.where(COUNT == 5, "nan", "1"), "sum"),
    "texts of endless": (np.where(COUNT == 5, "inf", "1"), "max"),
    "texts with _": (np.where(COUNT == 5, "1_000", "1"), "sum"),
    "empty texts": (np.where(COUNT == 5, "", "1"), "sum"),
    "large integers": (COUNT % 3 + 2**60, "range"),
    "largest integers": (np.uint64(2**64 - 1) - COUNT.astype("uint64"), "max"),
    "texts of large integers": ((COUNT % 3 + 2**60).astype(str), "range"),
    "lists": ([[i] for i in COUNT], "distinct"),
    "structs": ([{"a": i} for i in COUNT], "distinct"),
    "sums of lists": ([[i] for i in COUNT], "sum"),
    "sums without end": (np.full(len(COUNT), 1.7e308), "sum"),
}


@pytest.mark.every(3)
@pytest.mark.parametrize("kind", UNSUITABLE)
def test_what_is_no_number_is_refused_at_both_doors(folder, tmp_path, kind):
    values, how = UNSUITABLE[kind]
    pd.DataFrame({"record": TABLE["record"], "x": values}).to_parquet(tmp_path / "a.parquet", index=False)
    scanned = (folder / "clusters.parquet", tmp_path / "a.parquet")
    said = r"needs finite numbers below 2\*\*53|lists or|no finite number"
    for prediction, attributes in (scanned, (PREDICTION, pd.read_parquet(tmp_path / "a.parquet"))):
        with pytest.raises(eb.DataError, match="cannot be used" if kind == "endless" else said):
            judged("mean(s)", prediction, attributes=attributes, features={"s": ("x", how)})


KNOWN = {"pay": ("wages", "known-sum"), "employers": ("wages", "known-distinct")}
PARTLY = TABLE.assign(wages=(TABLE["year"] % 7 + 1.0).where(COUNT % 2 == 0))


@pytest.mark.parametrize("place", ["memory", "scan", "text"])
def test_values_that_are_there_are_aggregated_if_that_is_asked_for(folder, tmp_path, place):
    # rows of other records are not counted
    table, prediction = pd.concat([PARTLY, PARTLY.tail(9).assign(record=range(-9, 0))]), PREDICTION
    if place != "memory":
        prediction, table = folder / "clusters.parquet", tmp_path / "a.parquet"
        wages = PARTLY["wages"].astype("Int64").astype("string") if place == "text" else PARTLY["wages"]
        PARTLY.assign(wages=wages).to_parquet(table)
    asked = ["mean(pay)", "mean(employers)"]
    found = judged(asked, prediction, attributes=table, features=KNOWN)
    groups = PARTLY.set_index("record")["wages"].groupby(PREDICTION)
    np.testing.assert_allclose(found.predicted, [groups.sum().mean(), groups.nunique().mean()])
    # as with the zeros that the missing values add to a sum
    filled = PARTLY.assign(wages=PARTLY["wages"].fillna(0))
    zero = judged("mean(pay)", attributes=filled, features={"pay": ("wages", "sum")})
    np.testing.assert_allclose(found.fit.mean[0], zero.fit.mean[0])
    missing = f"'wages' is missing for {len(TABLE) // 2:,} of {len(TABLE):,} records"
    assert [note.grade.value for note in found.notes] == ["note", "note"]
    assert f"{missing}, and 'pay' is the sum of the values that are there." in found.sentences()[-2]
    with pytest.raises(eb.DataError, match=f"{missing}.*: fill it in, or aggregate .* by known-sum"):
        judged("mean(pay)", prediction, attributes=table, features={"pay": ("wages", "sum")})
    with pytest.raises(eb.DataError, match="the feature 'pay' is no finite number for"):
        judged("mean(pay)", prediction, attributes=table, features={"pay": ("wages", "known-mean")})


def test_the_shell_says_what_is_aggregated(here, tmp_path):
    PARTLY.to_csv(tmp_path / "partly.csv", index=False)
    words = [*SHELL[:5], "--feature", "pay=wages:known-sum", "--statistic", "mean(pay)"]
    words += ["--attributes", str(tmp_path / "partly.csv")]
    for more in ((), ("--format", "csv"), ("--memory-limit", "1GB")):
        found = done("impact", "clusters.csv", *words, *more)
        assert "'pay' is the sum of the values that are there." in found.stderr


def test_a_column_of_the_matcher_is_recognised_if_some_clusters_lack_it(folder, tmp_path):
    code = pd.Series(pd.factorize(PREDICTION)[0].astype(float), PREDICTION.index)
    table = TABLE.assign(golden=code.where(code % 3 > 0).loc[TABLE["record"]].to_numpy())
    table.to_parquet(tmp_path / "a.parquet")
    given = {"features": {"x": ("golden", "known-sum")}}
    scanned = (folder / "clusters.parquet", tmp_path / "a.parquet")
    for prediction, attributes in ((PREDICTION, table), scanned):
        with pytest.raises(eb.DataError, match="as if the matcher wrote it"):
            judged("mean(x)", prediction, attributes=attributes, **given)
