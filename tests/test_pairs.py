"""Labelled pairs: drawing, estimates and limits, against enumeration, loops and solvers that share no code with them."""

import warnings
from fractions import Fraction
from itertools import combinations, product
from math import comb

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import brentq
from scipy.stats import binomtest, hypergeom

import erbayes as eb
from erbayes.analysis.pair_strata import PairStrata, estimate_precision, estimate_recall

EIGHT = pd.DataFrame({"l": list("abdcfa"), "r": list("bcedgc"), "score": [9.0, 8.0, 7.0, 4.0, 3.0, 2.0]})
ALL = list("abcdefgh")
TRUTH = dict(zip(ALL, "xxyyzwwz", strict=True))


def heights_of(edges, records):
    """The height of every pair that is ever joined, by a search through the graph at each score."""
    found = {}
    for score in sorted(set(edges["score"]), reverse=True):
        near = {r: set() for r in records}
        for l, r, s in edges.itertuples(index=False):
            if s >= score:
                near[l].add(r)
                near[r].add(l)
        for first in records:
            seen, waiting = {first}, [first]
            while waiting:
                waiting += [r for r in near[waiting.pop()] if r not in seen and not seen.add(r)]
            for other in seen - {first}:
                found.setdefault(frozenset((first, other)), score)
    return found


def answered(drawn, truth=TRUTH):
    return drawn.assign(same=[truth[l] == truth[r] for l, r in zip(drawn.left, drawn.right, strict=True)])


def random_edges(seed, N=40, E=60, values=12):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"l": rng.integers(0, N, E), "r": rng.integers(0, N, E)})
    return table.assign(score=rng.integers(0, values, E).astype(float)), range(N)


MANY, OF_MANY = random_edges(3, N=400, E=600, values=500)


def draw_many(n, bands, **more):
    return eb.pairs.draw_pairs(MANY, n, records=OF_MANY, seed=1, bands=bands, **more)


def judge_many(drawn, same):
    return eb.pairs.estimate(MANY, drawn.assign(same=same), records=OF_MANY)


def alike(M, n, right):
    """PairStrata of M pairs and n answers each."""
    y = np.array(right, dtype=float)
    return PairStrata(np.full_like(y, M), np.full_like(y, n), y, np.full(len(y), True))


class TestDrawing:
    @pytest.mark.parametrize("seed", range(20))
    def test_numbers_of_pairs_by_band_and_the_pairs_themselves_are_those_of_a_search(self, seed):
        edges, records = random_edges(seed)
        heights = heights_of(edges, records)
        drawn = eb.pairs.draw_pairs(edges, 10**6, records=records, seed=seed, bands=[9, 6, 5, 0])
        brute = {}
        for pair, height in heights.items():
            brute.setdefault(max(b for b in (9, 6, 5, 0) if b <= height), set()).add(pair)
        counts = {band: len(pairs) for band, pairs in brute.items()}
        assert counts == dict(zip(drawn.band, drawn.pairs, strict=True))
        for band, rows in drawn.groupby("band"):
            found = map(sorted, rows[["left", "right"]].to_numpy().tolist())
            assert sorted(found) == sorted(map(sorted, brute[band]))

    @pytest.mark.slow
    def test_every_pair_of_a_band_is_as_likely(self):
        heights = heights_of(EIGHT, ALL)
        low = [pair for pair, height in heights.items() if height < 7]
        times = dict.fromkeys(low, 0)
        for seed in range(200):
            drawn = eb.pairs.draw_pairs(EIGHT, 5, records=ALL, seed=seed, bands=[7, 2])
            for row in drawn[drawn.band == 2].itertuples():
                times[frozenset((row.left, row.right))] += 1
        expected = sum(times.values()) / len(low)
        chi = sum((t - expected) ** 2 / expected for t in times.values())
        assert chi < 20.1  # the .99 quantile of 8 degrees of freedom, whatever the seven pairs
        assert len(low) == 7 and min(times.values()) > 0

    def test_a_band_ends_at_the_threshold_and_half_of_the_bands_are_above(self):
        bands = draw_many(100, 6, threshold=321.0).band.unique()
        assert 321.0 in bands and (bands >= 321).sum() == 3 and (bands < 321).sum() == 3
        assert bands.min() == MANY["score"].min()

    def test_bands_have_equal_numbers_or_all_of_their_pairs_in_random_order(self):
        drawn = draw_many(100, [498, 300, 100, 0])
        count = drawn.groupby("band").agg(n=("pairs", "size"), M=("pairs", "first"))
        small = count["M"] < 25
        assert small.any() and (count["n"][small] == count["M"][small]).all() and count["n"].sum() == 100
        assert np.ptp(count["n"][~small]) <= 1 and (np.diff(drawn.band) != 0).sum() > 30
        again = draw_many(100, [498, 300, 100, 0])
        pd.testing.assert_frame_equal(drawn, again)

    def test_more_pairs_than_a_list_could_have(self):
        """Two chains of 100,000 records, which one edge of a lower score joins."""
        N = 200_000
        edges = pd.DataFrame({"l": np.arange(N - 1), "r": np.arange(1, N), "score": 2.0})
        edges.loc[N // 2, "score"] = 1.0
        drawn = eb.pairs.draw_pairs(edges, 50, records=range(N), seed=1, bands=[2, 1])
        one, other = N // 2 + 1, N - N // 2 - 1
        counts = {2.0: one * (one - 1) // 2 + other * (other - 1) // 2, 1.0: one * other}
        assert dict(zip(drawn.band, drawn.pairs, strict=True)) == counts
        across = (drawn.left < one) != (drawn.right < one)
        assert (across == (drawn.band == 1)).all()

    @pytest.mark.parametrize(("options", "said"), [
        ({"n": 3, "bands": [7, 2]}, "3 pairs in 2 bands are fewer than 2 each: draw 4 or more"),
        ({"n": 9, "threshold": 12}, "no edge has a score of 12"),
        ({"n": 9, "threshold": 1}, "below the least score"),
        ({"n": 9, "threshold": 4, "bands": 1}, "half of which are above the threshold, must be .* 2 or"),
        ({"n": 0}, "number of pairs must be"),
        ({"n": 9, "seed": -1}, "seed must be"),
    ])  # fmt: skip
    def test_refusals(self, options, said):
        with pytest.raises(eb.DataError, match=said):
            eb.pairs.draw_pairs(EIGHT, **{"records": ALL, "seed": 1} | options)


class TestEstimates:
    @pytest.mark.slow
    def test_enumeration_of_all_samples_of_eight_records(self):
        """Shares are unbiased, and so is the square of the standard error of precision, over all samples."""
        heights = heights_of(EIGHT, ALL)
        bands = {7.0: [p for p in heights if heights[p] >= 7], 2.0: [p for p in heights if heights[p] < 7]}
        same = {p: len({TRUTH[r] for r in p}) == 1 for p in heights}
        rows = []
        for high, low in product(combinations(bands[7.0], 2), combinations(bands[2.0], 2)):
            shown = [(*sorted(p), b, same[p]) for b, ps in ((7.0, high), (2.0, low)) for p in ps]
            table = pd.DataFrame(shown, columns=["left", "right", "band", "same"])
            found = eb.pairs.estimate(EIGHT, table, records=ALL).table([7, 2])
            rows.append(found.loc[found.metric == "precision of links", ["estimate", "se"]].to_numpy())
        estimate, se = np.moveaxis(np.array(rows), 2, 0)
        of_strict = np.mean([same[p] for p in bands[7.0]])
        of_all = np.mean(list(same.values()))
        assert_allclose(estimate.mean(axis=0), [of_strict, of_all], rtol=1e-12)
        assert_allclose((se**2).mean(axis=0), estimate.var(axis=0), rtol=1e-12)
        assert estimate.var(axis=0).min() > 0.01

    def test_a_census_has_the_truth_without_error_at_every_threshold(self):
        edges, records = random_edges(8)
        truth = {r: r % 7 for r in records}
        drawn = eb.pairs.draw_pairs(edges, 10**6, records=records, seed=1)
        found = eb.pairs.estimate(edges, answered(drawn, truth), records=records)
        heights = heights_of(edges, records)
        right = {p for p in heights if len({truth[r] for r in p}) == 1}
        table = found.table(sorted(set(edges["score"])))
        for row in table.itertuples():
            links = {p for p in heights if heights[p] >= row.threshold}
            true = len(links & right) / (len(links) if row.metric == "precision of links" else len(right))
            assert row.pairs == len(links)
            assert_allclose([row.estimate, row.lower, row.upper, row.se], [true, true, true, 0], atol=1e-12)

    def test_standard_errors_are_those_of_svyratio_by_strata(self):
        """R is not at hand: the linearisation of svyratio, pair by pair, as its manual writes it."""
        M, n, y = [40, 300, 9000, 10**6], [10, 12, 15, 20], [10, 9, 6, 1]
        strata = PairStrata(*np.array([M, n, y], dtype=float), np.array([True, True, False, False]))
        for function, bottom_is_right in ((estimate_precision, False), (estimate_recall, True)):
            draws = []
            for h in range(4):
                for k in range(n[h]):
                    right, above = k < y[h], h < 2
                    draws.append((h, M[h] / n[h], right and above, right if bottom_is_right else above))
            top, bottom = sum(w * a for _, w, a, _ in draws), sum(w * b for _, w, _, b in draws)
            ratio, variance = top / bottom, 0.0
            for h in range(4):
                z = [w * (a - ratio * b) / bottom for s, w, a, b in draws if s == h]
                mean = sum(z) / len(z)
                spread = sum((x - mean) ** 2 for x in z)
                variance += (1 - n[h] / M[h]) * n[h] / (n[h] - 1) * spread
            found = function(strata, 0.95)
            assert_allclose([found.value, found.se], [ratio, variance**0.5], rtol=1e-12)

    @pytest.mark.parametrize("level", [Fraction(4, 5), Fraction(19, 20)])
    def test_limits_of_a_stratum_cover_all_numbers_of_right_pairs(self, level):
        """All samples of all populations of up to 14 pairs, by whole numbers of combinations."""
        for M in range(1, 15):
            for n in range(1, M + 1):
                low, high = M * alike(M, n, np.arange(n + 1)).limits(float(level))
                for K in range(M + 1):
                    kept = np.flatnonzero((low < K + 1e-9) & (K - 1e-9 < high)).tolist()
                    assert Fraction(sum(comb(K, y) * comb(M - K, n - y) for y in kept), comb(M, n)) >= level

    def test_limits_of_a_stratum_are_no_longer_than_its_tests(self):
        """One pair further, y or more right answers (or n - y or more wrong ones) are too rare."""
        rng = np.random.default_rng(3)
        for _ in range(100):
            M = int(10 ** rng.uniform(1, 6))
            n = int(rng.integers(1, min(M, 300) + 1))
            y, tail = int(rng.integers(0, n + 1)), rng.choice([0.005, 0.025, 0.1])
            low, high = np.round(M * alike(M, n, [y]).limits(1 - 2 * tail)[:, 0]).astype(int)
            for fewest, of in ((low, y), (M - high, n - y)):
                assert hypergeom.sf(of - 1, M, fewest, n) > tail - 1e-9
                assert fewest == 0 or hypergeom.sf(of - 1, M, fewest - 1, n) <= tail + 1e-9

    def test_limits_among_very_many_pairs_are_those_of_clopper_and_pearson(self):
        for n, y in ((60, 0), (60, 2), (60, 60), (2000, 3), (2000, 1000)):
            ends = binomtest(y, n).proportion_ci(0.95, "exact")
            found = alike(10**12, n, [y]).limits(0.95)[:, 0]
            assert_allclose(found, [ends.low, ends.high], rtol=1e-8, atol=1e-12)

    def test_limits_hold_the_share_at_every_level(self):
        """The share of 60 in 99 is that of 60.6 pairs in 100, of which neither 60 nor 61 has it."""
        for level in (0.01, 0.1, 0.2):
            strata = alike(100, 99, [60])
            low, high = strata.limits(level)
            assert low[0] <= strata.share[0] <= high[0] and low[0] < high[0]

    def test_limits_solve_their_equations(self):
        rng = np.random.default_rng(2)
        for _ in range(60):
            S = 4
            n = rng.integers(2, 30, S)
            M = n + rng.integers(0, 10 ** rng.integers(1, 7), S)
            y = rng.binomial(n, rng.choice([0.0, 0.05, 0.5, 0.97, 1.0], S))
            above = np.array([True, True, False, False])
            if not y.any():
                continue
            level = rng.choice([0.8, 0.95])
            mu = y / n
            strata = PairStrata(*(x.astype(float) for x in (M, n, y)), above)
            low, high = strata.limits(level)
            total = M[above].sum()
            down = np.sqrt((((mu - low) * M)[above] ** 2).sum()) / total
            up = np.sqrt((((high - mu) * M)[above] ** 2).sum()) / total
            P = (mu * M)[above].sum() / total
            assert_allclose(estimate_precision(strata, level)[2:], [P - down, P + up], rtol=1e-9)

            def slack(r, side, mu=mu, M=M, above=above, low=low, high=high):
                """The limit of (1-r) A - r B on one side, which is 0 at the limit of recall."""
                c = np.where(above, 1 - r, -r) * M
                step = np.where(above == (side > 0), high - mu, mu - low)
                return c @ mu + side * np.sqrt(((c * step) ** 2).sum())

            found = estimate_recall(strata, level)
            assert 0 <= found.lower <= found.value <= found.upper <= 1
            for side, limit in ((-1, found.lower), (1, found.upper)):
                if slack(1e-12, side) > 0 > slack(1 - 1e-12, side):
                    root_r = brentq(slack, 1e-12, 1 - 1e-12, args=(side,), xtol=1e-14)
                    assert_allclose(limit, root_r, atol=1e-7)
                else:
                    assert limit < 1e-9 or limit > 1 - 1e-9

    def test_a_threshold_inside_a_band_splits_it(self):
        """With all answers of both parts, the part above counts with the numbers of its own pairs."""
        edges, records = random_edges(5)
        truth = {r: r % 3 for r in records}
        table = answered(eb.pairs.draw_pairs(edges, 200, records=records, seed=4, bands=[8, 0]), truth)
        heights = heights_of(edges, records)
        (row,) = eb.pairs.estimate(edges, table, records=records).table([5]).iloc[:1].itertuples()
        links = [p for p in heights if heights[p] >= 5]
        want = 0.0
        for inside in ([p for p in links if heights[p] >= 8], [p for p in links if heights[p] < 8]):
            shown = [r.same for r in table.itertuples() if frozenset((r.left, r.right)) in inside]
            want += len(inside) * np.mean(shown) / len(links)
        assert_allclose(row.estimate, want, rtol=1e-12)
        assert row.pairs == len(links)

    def test_fewer_than_two_labelled_pairs_of_a_part_are_no_estimate(self):
        edges, records = random_edges(3, N=100, E=150, values=500)
        drawn = eb.pairs.draw_pairs(edges, 24, records=records, seed=1, bands=[300, 0])
        found = eb.pairs.estimate(edges, drawn.assign(same="y"), records=records)
        heights = heights_of(edges, records)
        labelled = [heights[frozenset((r.left, r.right))] for r in drawn.itertuples()]
        fewest = set()
        for threshold in sorted({h for h in labelled if h < 300}):
            parts = [
                (sum(low <= h < high for h in labelled), sum(low <= h < high for h in heights.values()))
                for low, high in ((threshold, 300), (0, threshold))
            ]
            enough = [n >= min(2, M) for n, M in parts]
            fewest.add(min(n for n, _ in parts))
            table = found.table([threshold])
            # precision needs no pair below the threshold
            assert table.estimate.notna().tolist() == [enough[0], all(enough)]
            for told, why in zip(table.estimate.notna(), table.get("reason", ["", ""]), strict=True):
                assert told or "bands and parts of bands have fewer than 2 labelled pairs" in why
        assert {0, 1, 2} <= fewest

    def test_a_part_of_one_pair_that_is_labelled_has_an_estimate(self):
        edges = pd.DataFrame({"l": list("aceg"), "r": list("bdfh"), "score": [9.0, 5.0, 5.0, 5.0]})
        drawn = eb.pairs.draw_pairs(edges, 4, records=list("abcdefgh"), seed=1, bands=[7, 5])
        found = eb.pairs.estimate(edges, drawn.assign(same="y"), records=list("abcdefgh"))
        assert found.table([7]).estimate.tolist()[0] == 1

    @pytest.mark.parametrize(("right", "told"), [(4, False), (5, True)])
    def test_recall_needs_five_right_answers(self, right, told):
        drawn = draw_many(60, [300, 0])
        table = judge_many(drawn, np.arange(60) < right).table([300])
        assert table.estimate.notna().tolist() == [True, told]
        if not told:
            assert table.reason[1] == "4 right answers are fewer than 5"
        assert "reason" in table or told

    def test_cannot_tell_is_kept_and_counted(self):
        drawn = draw_many(60, [300, 0])
        same = np.where(np.arange(60) % 2, "y", "N ").astype(object)
        same[:5] = "?"
        found = judge_many(drawn, same)
        without = judge_many(drawn[5:], same[5:])
        pd.testing.assert_frame_equal(found.table().drop(columns=["worst", "best"]), without.table())
        bands = found.bands()
        assert bands.cannot_tell.sum() == 5 and bands.labelled.sum() == 55
        (note,) = found.alarms()
        assert note.grade.value == "note" and note.startswith("5 of 60 answers are undecided")

    def test_undecided_pairs_are_all_wrong_or_all_right_in_the_worst_cases(self):
        """Ends are those of answers that say so: n or y for precision, and against or for the threshold."""
        drawn = draw_many(120, [400, 300, 0])
        same = np.where(np.arange(120) % 5, "y", "n").astype(object)
        same[::9] = "?"
        unknown, strict = same == "?", (drawn["band"] >= 300).to_numpy()

        def judge(above, below):
            return judge_many(drawn, np.where(unknown, np.where(strict, above, below), same))

        found = judge("?", "?").table([300])
        (P, R), lower, upper = found.index, "lower", "upper"
        for row, end, column, case in (
            (P, "worst", lower, ("n", "n")),
            (P, "best", upper, ("y", "y")),
            (R, "worst", lower, ("n", "y")),
            (R, "best", upper, ("y", "n")),
        ):
            assert found.loc[row, end] == judge(*case).table([300]).loc[row, column]
        assert (found["worst"] < found["lower"]).all() and (found["best"] > found["upper"]).all()

    @pytest.mark.parametrize(("unknown", "grade"), [(11, "note"), (13, "fault")])
    def test_from_a_tenth_of_undecided_pairs_on_worst_and_best_are_quoted(self, unknown, grade):
        drawn = draw_many(120, [0])
        same = np.array(["y"] * 120, dtype=object)
        same[:unknown] = "?"
        (alarm,) = judge_many(drawn, same).alarms()
        assert alarm.grade.value == grade
        assert ("quote the range from worst to best" in alarm) is (grade == "fault")

    @pytest.mark.parametrize(("false", "doubted"), [(0, False), (1, True), (7, True), (8, False)])
    def test_few_right_answers_that_stand_for_most_right_pairs_raise_an_alarm(self, false, doubted):
        drawn = draw_many(60, [450, 0])
        loose = (drawn.band == 0).to_numpy()
        same = ~loose | (loose & (np.cumsum(loose) <= false))
        weight = drawn.pairs[loose].iloc[0] / loose.sum()
        assert weight > drawn.pairs[~loose].iloc[0]
        with warnings.catch_warnings(record=True, action="always") as raised:
            found = judge_many(drawn, same)
        assert [str(w.message) for w in raised] == [str(doubt) for doubt in found.alarms()]
        assert len(raised) == doubted
        if doubted:
            (doubt,) = found.alarms()
            few = false // 2 + 1
            assert doubt.startswith(
                f"Most pairs that are estimated to be right are so by {few} of {same.sum()} right answers, which "
                f"stand for {weight:,.0f} pairs each in the band that ends at {drawn.band.min():g}: one wrong"
            )
            assert "bands=[...]" in doubt

    def test_recall_of_the_loosest_band_is_one_by_definition(self):
        drawn = draw_many(60, [300, 0])
        table = judge_many(drawn, "y").table()
        said = ["", "", "", "1 by definition: no band is below"]
        assert table.reason.tolist() == said and table.lower[3] == table.estimate[3] == 1

    def test_bands_are_a_calibration_with_exact_limits(self):
        drawn = draw_many(60, [300, 0])
        for row in judge_many(drawn, drawn.index % 3 == 0).bands(0.9).itertuples():
            of_band = drawn[drawn.band == row.band]
            right = (of_band.index % 3 == 0).sum()
            assert (row.labelled, row.right, row.pairs) == (len(of_band), right, of_band.pairs.iloc[0])
            low, high = np.round(np.array([row.lower, row.upper]) * row.pairs)
            as_many = hypergeom.sf(row.right - 1, row.pairs, [low - 1, low], row.labelled)
            as_few = hypergeom.cdf(row.right, row.pairs, [high, high + 1], row.labelled)
            assert as_many[0] <= 0.05 < as_many[1] and as_few[1] <= 0.05 < as_few[0]

    def test_answers_that_contradict_each_other_are_told_and_kept(self):
        table = answered(eb.pairs.draw_pairs(EIGHT, 100, records=ALL, seed=1, bands=[8, 2]))
        table["same"] = [{*pair} in ({*"ab"}, {*"bc"}) for pair in zip(table.left, table.right, strict=True)]
        with pytest.warns(eb.Alarm, match="1 pairs are answered as different, whose records are the same"):
            found = eb.pairs.estimate(EIGHT, table, records=ALL)
        assert found.table([8]).estimate[0] == 2 / 3


class TestBadAnswers:
    GOOD = answered(eb.pairs.draw_pairs(EIGHT, 6, records=ALL, seed=1, bands=[7, 2]))

    @pytest.mark.parametrize(("change", "said"), [
        (lambda t: t.drop(columns="band"), "chosen by hand or by active learning are not representative"),
        (lambda t: t.drop(columns="same"), "no column 'same'"),
        (lambda t: t[:0], "no row"),
        (lambda t: pd.concat([t, t[:1].rename(columns={"left": "right", "right": "left"})]), "1 of 7 labelled pairs, .* are there twice, perhaps reversed"),
        (lambda t: t.assign(right=t.left), "of a record with itself"),
        (lambda t: t.assign(left="q"), "6 of 6 labelled pairs, such as 'q', .* have a record that is not among all records"),
        (lambda t: t.assign(same=[0.5, 1, 1, 0, 0, 1]), r"1 of 6 labelled pairs, .* have answers in 'same' such as 0.5 and not y, n or \?"),
        (lambda t: t.assign(same=["", "y", None, "n", "y", "y"]), "2 of 6 labelled pairs, .* have no answer in 'same'"),
        (lambda t: t.assign(answer=t.same, same=""), "6 of 6 labelled pairs, .* have no answer in 'same'"),
        (lambda t: t.assign(band=t.band.replace(2, 4)), "of 6 .* no candidates"),
        (lambda t: t.assign(band=t.band.iloc[::-1].to_numpy()), "bands of something else than the height at which two records join"),
        (lambda t: t.assign(pairs=t.pairs + 1), "one of another size"),
        (lambda t: t.assign(band="high"), "bands are thresholds"),
        (lambda t: t.assign(left="g", right="h")[:1], "no candidates, since no band reaches them"),
        (lambda t: t.to_dict(), "expected a DataFrame"),
    ])  # fmt: skip
    def test_refusals(self, change, said):
        with pytest.raises(eb.DataError, match=said):
            eb.pairs.estimate(EIGHT, change(self.GOOD.copy()), records=ALL)

    def test_the_table_of_splinks_labels_needs_its_bands_alone(self):
        names = {"left": "unique_id_l", "right": "unique_id_r", "same": "clerical_match_score"}
        table = self.GOOD.assign(same=self.GOOD["same"].astype(float)).rename(columns=names)
        found = eb.pairs.estimate(EIGHT, table, records=ALL)
        pd.testing.assert_frame_equal(found.table(), eb.pairs.estimate(EIGHT, self.GOOD, records=ALL).table())
        with pytest.raises(eb.DataError, match="not representative"):
            eb.pairs.scored_edges(EIGHT, table.drop(columns="band"), records=ALL)
        with pytest.raises(eb.DataError, match=r"have answers in 'same' such as 0\.5"):
            eb.pairs.estimate(EIGHT, table.assign(clerical_match_score=0.5), records=ALL)

    def test_thresholds_below_the_bands(self):
        found = eb.pairs.estimate(EIGHT, self.GOOD[self.GOOD.band == 7], records=ALL)
        said = "7 pairs are between 3 and the loosest band, which ends at 7: none of them was drawn"
        with pytest.raises(eb.DataError, match=said):
            found.table([7, 3])


class TestNames:
    """No table of one estimand has the name of another."""

    def test_pairs_and_edges(self):
        edges, records = random_edges(3, N=60, E=90)
        heights = heights_of(edges, records)
        drawn = eb.pairs.draw_pairs(edges, 10**6, records=records, seed=1, bands=[6, 0])
        rng = np.random.default_rng(1)
        truth = dict(zip(records, rng.integers(0, 2, 60), strict=True))
        pairs = eb.pairs.estimate(edges, answered(drawn, truth), records=records)
        apart = edges[edges.l != edges.r]
        best = apart.groupby(lambda i: tuple(sorted(edges.loc[i, ["l", "r"]])))["score"].max()
        rows = [(l, r, 6.0 if s >= 6 else 0.0) for (l, r), s in best.items()]
        table = pd.DataFrame(rows, columns=["left", "right", "band"])
        of_edges = eb.pairs.scored_edges(edges, answered(table, truth), records=records)
        assert list(pairs.table().metric.unique()) == ["precision of links", "recall of candidate pairs"]
        assert list(of_edges.table().metric.unique()) == ["right scored edges", "right edges kept"]
        right = {(l, r) for l, r in best.index if truth[l] == truth[r]}
        strict = {p for p in best.index if best[p] >= 6}
        want = [len(right & strict) / len(strict), len(right & strict) / len(right)]
        assert_allclose(of_edges.table([6]).estimate, want, rtol=1e-12)
        links = {p for p in heights if heights[p] >= 6}
        true = np.mean([len({truth[r] for r in p}) == 1 for p in links])
        assert_allclose(pairs.table([6]).estimate[0], true, rtol=1e-12)
        assert abs(true - want[0]) > 0.01
        others = (of_edges, ("link", "precision", "recall", "candidate"))
        for found, wrong in ((pairs, ("scored", "edge", "all links")), others):
            said = f"{found!r} {found._repr_html_()}"
            assert not [word for word in wrong if word in said]

    def test_labels_by_bands_of_edges_are_no_pairs_by_height(self):
        """An edge of the loose band whose records other edges join earlier is in the strict band by height."""
        ends = {"left": list("aab"), "right": list("bcc")}
        table = pd.DataFrame({**ends, "band": [8.0, 2.0, 8.0], "same": "y"})
        eb.pairs.scored_edges(EIGHT, table, records=ALL)
        with pytest.raises(eb.DataError, match="bands of something else than the height"):
            eb.pairs.estimate(EIGHT, table, records=ALL)
        drawn = answered(eb.pairs.draw_pairs(EIGHT, 100, records=ALL, seed=1, bands=[8, 2]))
        with pytest.raises(eb.DataError, match="no candidates"):
            eb.pairs.scored_edges(EIGHT, drawn, records=ALL)
