"""Measures of studies: Monte Carlo errors against their own spread, paired differences, scores, tables for print."""

import numpy as np
import pandas as pd
import pytest

import erbayes as eb
from erbayes import metrics as m
from erbayes.engine import Estimator, Taylor
from erbayes.labels import Records
from erbayes.study import Study, study
from erbayes.study import populations as sim

STUDIES, EACH = 500, 100
CELL = {
    "population": "p", "plan": "r", "n": 9, "metric": "P", "seconds": 1.0, "warned": 0.0, "reason": "",
    "kind": "t",
}  # fmt: skip
MEASURES = tuple("bias rmse se_ratio coverage missed_below missed_above width interval_score wis".split())


def simulated(reps, seed=1, estimators=("a", "b")):
    """Runs of two estimators on common samples, whose errors are skewed and whose standard errors vary."""
    rng, found = np.random.default_rng(seed), []
    shock = rng.gamma(3, 1, reps) - 3
    for name in estimators:
        error = 0.04 * (shock + rng.normal(0, 0.5, reps)) + 0.01
        se = 0.07 * rng.gamma(20, 1 / 20, reps)
        x = 0.5 + error
        runs = CELL | {"estimator": name, "repetition": range(reps), "truth": 0.5, "estimate": x, "se": se}
        runs |= {"lower": x - 1.6 * se, "upper": x + 1.6 * se}
        runs |= {"lower_0.5": x - 0.6 * se, "upper_0.5": x + 0.6 * se}
        found.append(pd.DataFrame(runs))
    return pd.concat(found, ignore_index=True)


def in_studies(runs):
    """The same runs as many studies, each one a plan of its own."""
    return Study(runs.assign(plan=runs.repetition // EACH, repetition=runs.repetition % EACH), 0.9)


@pytest.mark.parametrize("paired", [False, True])
def test_monte_carlo_errors_are_the_spread_over_studies(paired):
    many = in_studies(simulated(STUDIES * EACH))
    table = many.against("a").table() if paired else many.table().query("estimator == 'b'")
    assert len(table) == STUDIES
    for measure in MEASURES:
        spread, error = table[measure].std(), np.sqrt((table[f"{measure}_mcse"] ** 2).mean())
        assert error == pytest.approx(spread, rel=0.1), measure
    apart = many.table().query("estimator == 'b'")
    if paired:
        precise = (table.rmse_mcse.to_numpy() < 0.75 * apart.rmse_mcse).mean()
        assert precise > 0.95, "the same samples make differences more precise"


def test_paired_differences_are_of_runs_in_which_neither_failed():
    runs = simulated(40)
    runs.loc[3, "estimate"] = runs.loc[50, "estimate"] = np.nan
    runs.loc[[3, 50], "reason"] = ["3 fails in a", "10 fails in b"]
    trial = Study(runs, 0.9)
    row = trial.against("a").iloc[0]
    both = trial.runs[~trial.runs.repetition.isin([3, 10])]
    own, theirs = (both[both.estimator == e].reset_index(drop=True) for e in "ba")
    error, of_theirs = own.estimate - own.truth, theirs.estimate - theirs.truth
    assert row.pairs == 38 and row.failures == 1 and row.bias == pytest.approx((error - of_theirs).mean())
    assert row.bias_mcse == pytest.approx((error - of_theirs).std() / np.sqrt(38))
    assert row.rmse == pytest.approx(np.sqrt((error**2).mean()) - np.sqrt((of_theirs**2).mean()))
    inside = [(x.lower <= x.truth) & (x.truth <= x.upper) for x in (own, theirs)]
    change = inside[0].astype(float) - inside[1]
    assert row.coverage == pytest.approx(change.mean()) and change.any()
    assert row.coverage_mcse == pytest.approx(change.std() / np.sqrt(38))
    assert trial.failures()[["estimator", "reason", "runs"]].to_numpy().tolist() == [
        ["a", "3 fails in a", 1],
        ["b", "10 fails in b", 1],
    ]
    with pytest.raises(eb.DataError, match="the study has no estimator 'c'; it has 'a', 'b'"):
        trial.against("c")


def test_shares_of_one_have_limits_and_errors():
    runs = simulated(30).assign(lower=0.0, upper=1.0)
    row = Study(runs, 0.9).table().iloc[0]
    assert row.coverage == 1 and row.coverage_mcse == pytest.approx(1.96 / (30 + 1.96**2) / 2)
    assert row.coverage_lower == pytest.approx(30 / (30 + 1.96**2)) and row.coverage_upper == pytest.approx(1)
    # one more gain and one more loss among 32 pairs, none or all of which gain
    never = runs.assign(lower=1.0 * (runs.estimator == "a"))
    for x, error in ((runs, np.sqrt(2 / 32 / 32)), (never, np.sqrt((1 - (30 / 32) ** 2) / 32))):
        assert Study(x, 0.9).against("a").table().coverage_mcse.iloc[0] == pytest.approx(error)


def test_a_bound_that_misses_by_rounding_covers():
    truth = pd.Series(np.tile([0.3, 0.6, 900.0], 20))
    runs = simulated(30).assign(truth=truth, estimate=truth + 0.1, lower=0.0)
    exact, rounded, missed = (runs.assign(upper=truth * x) for x in (1.0, 1 - 3e-16, 1 - 1e-6))
    pd.testing.assert_frame_equal(Study(exact, 0.9).table(), Study(rounded, 0.9).table())
    pd.testing.assert_series_equal(Study(exact, 0.9).pit(), Study(rounded, 0.9).pit())
    assert (Study(rounded, 0.9).table()[["coverage", "missed_below"]] == [1, 0]).all(axis=None)
    assert (Study(rounded, 0.9).against("a")["coverage"] == 0).all()
    assert (Study(missed, 0.9).table()[["coverage", "missed_below"]] == [0, 1]).all(axis=None)


def test_without_a_pair_there_is_no_error_and_a_reference_may_never_err():
    runs = simulated(40)
    right = runs["estimator"] == "a"
    never = Study(runs.assign(estimate=runs["estimate"].mask(right, runs["truth"])), 0.9)
    row, own = never.against("a").iloc[0], never.table().query("estimator == 'b'").iloc[0]
    assert row.rmse == own.rmse and row.rmse_mcse == pytest.approx(own.rmse_mcse)
    none = Study(runs.assign(estimate=runs["estimate"].mask(right)), 0.9).against("a").iloc[0]
    errors = [name for name in none.index if name.endswith("_mcse")]
    assert none.pairs == 0 and none[errors].isna().all()


def test_the_weighted_interval_score_by_hand():
    one = simulated(1, estimators=("a",)).assign(truth=0.5, estimate=0.6, lower=0.55, upper=0.9)
    one[["lower_0.5", "upper_0.5"]] = 0.57, 0.7
    wide, narrow = 0.35 + 2 / 0.1 * 0.05, 0.13 + 2 / 0.5 * 0.07
    row = Study(one, 0.9).table().iloc[0]
    assert row.wis == pytest.approx((0.1 / 2 + 0.1 / 2 * wide + 0.5 / 2 * narrow) / 2.5)
    assert "wis" not in Study(one.drop(columns=["lower_0.5", "upper_0.5"]), 0.9).table()


def test_pit_values_are_between_the_bounds_next_to_the_truth():
    truth = [0.0, 0.15, 0.25, 0.6, 0.99, 0.1, 0.4]
    runs = pd.concat([simulated(1, estimators=("a",))] * 7, ignore_index=True)
    bounds = {"lower": 0.1, "upper": 0.9, "lower_0.5": 0.2, "upper_0.5": 0.3}
    pit = Study(runs.assign(truth=truth, **bounds), 0.9).pit()
    ends = [(0, 0.05), (0.05, 0.25), (0.25, 0.75), (0.75, 0.95), (0.95, 1), (0, 0.25), (0.75, 0.95)]
    assert all(first < x < last for x, (first, last) in zip(pit, ends, strict=True))
    flat = runs.assign(truth=0.1, lower=0.1, upper=0.1, **{"lower_0.5": 0.1, "upper_0.5": 0.1})
    many = Study(pd.concat([flat] * 300, ignore_index=True), 0.9).pit()
    assert abs(many.mean() - 0.5) < 0.03 and abs(many.std() - 12**-0.5) < 0.02


def test_text_has_the_digits_of_its_monte_carlo_error():
    trial = Study(simulated(200), 0.9)
    table, text = trial.table(), trial.rounded(("bias", "coverage"))
    for i, row in table.iterrows():
        for measure in ("bias", "coverage"):
            places = len(text[measure][i].partition(".")[2])
            assert 10.0**-places <= row[f"{measure}_mcse"] < 10.0 ** (1 - places)
            assert float(text[measure][i]) == pytest.approx(row[measure], abs=0.5 * 10.0**-places)
    assert text.coverage[0] in repr(trial) and "Study, 90 % intervals" in repr(trial)
    with pytest.raises(eb.DataError, match="a study has no measure 'variance'"):
        trial.rounded(["variance"])


def test_latex_has_a_caption_and_the_best_of_each_cell_in_bold():
    runs = simulated(200).replace({"estimator": {"a": "50 %_a"}})
    worse = runs.estimator == "b"
    runs.loc[worse, ["estimate", "lower", "upper"]] += 0.2
    text = Study(runs, 0.9).latex(("bias", "coverage"), "A caption.", "tab:one")
    assert "\\caption{A caption.}" in text and "\\label{tab:one}" in text and "50 \\%\\_a" in text
    (line,) = (line for line in text.splitlines() if line.startswith("p & "))
    cells = [cell.strip(" \\") for cell in line.split("&")]
    assert [cell.startswith("textbf") for cell in cells[-4:]] == [True, False, True, False]


BEST = {"coverage": 0.9, "se_ratio": 1.0, "missed_below": 0.05, "missed_above": 0.05}


def figures(runs):
    """Numbers of the runs of one estimator, whose means make the measures."""
    error, width = runs.estimate - runs.truth, runs.upper - runs.lower
    below, above = runs.upper < runs.truth, runs.lower > runs.truth
    missed = np.maximum(runs.truth - runs.upper, 0) + np.maximum(runs.lower - runs.truth, 0)
    score = width + 20 * missed
    inner = runs["upper_0.5"] - runs["lower_0.5"]
    out = np.maximum(runs.truth - runs["upper_0.5"], 0) + np.maximum(runs["lower_0.5"] - runs.truth, 0)
    wis = (error.abs() / 2 + 0.05 * score + 0.25 * (inner + 4 * out)) / 2.5
    found = {"bias": error, "se": runs.se, "coverage": 1 - (below | above), "missed_below": below}
    found |= {"missed_above": above, "width": width, "interval_score": score, "wis": wis}
    return {name: np.asarray(x, dtype=float) for name, x in found.items()}


def by_hand(of, measure, kept=slice(None)):
    """A measure of the runs of one estimator that are kept."""
    if measure == "rmse":
        return np.sqrt((of["bias"][kept] ** 2).mean())
    if measure == "se_ratio":
        return of["se"][kept].mean() / of["bias"][kept].std(ddof=1)
    return of[measure][kept].mean()


def jackknife(value, repetitions):
    """The standard error of a function of the repetitions that are kept."""
    left = np.array([value(np.arange(repetitions) != i) for i in range(repetitions)])
    return np.sqrt((repetitions - 1) / repetitions * ((left - left.mean()) ** 2).sum())


def test_errors_are_those_of_a_jackknife_in_print_too():
    n = 200
    runs = simulated(n)
    a, b = (figures(runs[runs.estimator == name]) for name in "ab")
    trial = Study(runs, 0.9)
    for found, value in (
        (trial, lambda measure, kept=slice(None): by_hand(b, measure, kept)),
        (
            trial.against("a"),
            lambda measure, kept=slice(None): by_hand(b, measure, kept) - by_hand(a, measure, kept),
        ),
    ):
        row, text = found.table().iloc[-1], found.rounded(MEASURES, errors=True).iloc[-1]
        for measure in MEASURES:
            error = jackknife(lambda kept, measure=measure, value=value: value(measure, kept), n)
            assert row[measure] == pytest.approx(value(measure), abs=1e-12)
            assert row[f"{measure}_mcse"] == pytest.approx(error, rel=1e-6), measure
            shown, digit = text[measure].rstrip(")").split("(")
            last = 10.0 ** -len(shown.partition(".")[2])
            assert 1 <= int(digit) <= 9 and abs(float(shown) - row[measure]) <= last / 2 * 1.0001
            assert abs(int(digit) * last - error) <= 0.5 * last * 1.0001


def test_bold_is_what_is_not_worse_by_two_paired_errors():
    runs = simulated(150, estimators=("a", "b", "c", "d"))
    runs["estimate"] += runs.estimator.map({"a": 0.0, "b": 0.003, "c": 0.06, "d": -0.06})
    of = {name: figures(rows) for name, rows in runs.groupby("estimator")}
    text = Study(runs, 0.9).latex(MEASURES)
    (line,) = (line for line in text.splitlines() if line.startswith("p & "))
    bold, seen = iter(["textbf" in cell for cell in line.split("&")[4:]]), []
    for measure in MEASURES:

        def distance(name, kept=slice(None), measure=measure):
            return abs(by_hand(of[name], measure, kept) - BEST.get(measure, 0.0))

        best = min(of, key=distance)
        for name in of:

            def worse(kept=slice(None), name=name, best=best, distance=distance):
                return distance(name, kept) - distance(best, kept)

            error, is_bold = jackknife(worse, 150), next(bold)
            if name == best:
                assert is_bold, measure
            else:
                assert is_bold == (worse() <= 2 * error), (measure, name)
                seen.append(is_bold)
    assert len(seen) == 27 and 5 < sum(seen) < 22


def test_better_by_one_repetition_has_no_error():
    found = Study(simulated(1, 1), 0.9).against("a").better(["rmse"]).iloc[0]
    assert found["cells"] == 1 and np.isnan(found["change_mcse"]) and np.isnan(found["errors"])


def test_better_counts_cells_and_errors():
    runs = pd.concat([simulated(400, seed).assign(n=seed) for seed in range(1, 9)], ignore_index=True)
    b = runs.estimator == "b"
    runs.loc[b, "estimate"] = runs.truth + (runs.estimate - runs.truth) * np.where(runs.n < 6, 0.8, 1.05)
    found = Study(runs, 0.9).against("a").better(["rmse"]).iloc[0]
    changes, errors = [], []
    for _, cell in runs.groupby("n"):
        a, of_b = (figures(cell[cell.estimator == name]) for name in "ab")

        def change(kept=slice(None), a=a, of_b=of_b):
            return by_hand(of_b, "rmse", kept) - by_hand(a, "rmse", kept)

        changes.append(change())
        errors.append(jackknife(change, 400))
    changes, errors = np.array(changes), np.array(errors)
    assert found[["estimator", "metric", "measure"]].tolist() == ["b", "P", "rmse"]
    assert found.cells == 8 and found.better == (changes < 0).sum() == 5
    assert found.surely_better == (changes < -2 * errors).sum() > 0
    assert found.surely_worse == (changes > 2 * errors).sum()
    assert found.change == pytest.approx(changes.mean())
    assert found.change_mcse == pytest.approx(np.sqrt((errors**2).sum()) / 8)
    assert found.errors == pytest.approx(found.change / found.change_mcse)
    with pytest.raises(eb.DataError, match="no measure 'variance'"):
        Study(runs, 0.9).against("a").better(["variance"])


def test_several_sizes_stand_in_one_paired_table():
    runs = pd.concat([simulated(40, n).assign(n=n) for n in (50, 100)], ignore_index=True)
    found = Study(runs, 0.9).against("a")
    text = found.latex(["rmse"], across=["n", "estimator"], errors=True)
    (line,) = (line for line in text.splitlines() if line.startswith("p & "))
    cells = [cell.strip(" \\") for cell in line.split("&")][3:]
    bare = [cell.removeprefix("textbf{").removesuffix("}") for cell in cells]
    assert bare == found.rounded(["rmse"], errors=True)["rmse"].tolist() and len(cells) == 2
    sure = (found.table()["rmse"] < -2 * found.table()["rmse_mcse"]).tolist()
    assert [cell.startswith("textbf") for cell in cells] == sure
    with pytest.raises(eb.DataError, match="no 'size' to go across; it has 'population', 'plan', 'n'"):
        found.latex(across="size")


def test_estimators_that_answer_alike_and_kinds_of_several_methods_are_told():
    runs = simulated(20)
    same = runs[runs.estimator == "a"].assign(estimator="again")
    runs = pd.concat([runs, same], ignore_index=True)
    runs.loc[runs.estimator == "b", "kind"] = ["Beta", "t"] * 10
    trial = Study(runs, 0.9)
    assert trial.alike()["estimators"].tolist() == [("a", "again")]
    apart = runs["upper_0.5"] + (runs.estimator == "again")
    assert Study(runs.assign(**{"upper_0.5": apart}), 0.9).alike().empty
    assert trial.table()["kind"].tolist() == ["t", "Beta; t", "t"]
    assert trial.notes == (
        "Alike (see Study.alike): a and again in 1 of 1 cells and metrics.",
        "Several kinds of interval: b in 1 of 1 cells and metrics.",
    )
    shown, latex = repr(trial), trial.latex()
    assert all(note in shown and f"% {note}" in latex for note in trial.notes)
    once = Study(runs[runs.repetition == 0], 0.9)  # without Monte Carlo errors
    assert once.alike()["estimators"].tolist() == [("a", "again")]
    line = next(line for line in once.latex(["rmse"]).splitlines() if line.startswith("p & "))
    bold = ["textbf" in cell for cell in line.split("&")[-3:]]
    assert bold[0] == bold[2] != bold[1], "of answers that are alike, both are bold or none is"
    none = Study(runs.assign(estimate=np.nan), 0.9)
    assert none.alike().empty and Study(simulated(20), 0.9).notes == ()
    bare = Study(
        pd.concat([runs.assign(lower=np.nan, upper=np.nan), runs.assign(n=10)], ignore_index=True), 0.9
    )
    assert (bare.table()["failures"] == 0).all(), "no estimator of the cell gives an interval"


@pytest.mark.slow
def test_a_study_at_several_levels_covers_as_they_say():
    easy = sim.simulate(sim.Empirical([3, 4, 5]), sim.Misattribution(0.2), 20_000, 1)
    levels = (0.95, 0.8, 0.5, 0.2)
    kinds = {"default": Taylor(), "Wald": Estimator(Taylor(), eb.intervals.WALD)}
    given = {"e": easy}, {"r": Records()}, [300], kinds, m.pairwise_precision
    trial = study(*given, repetitions=1000, seed=1, level=levels)
    table = trial.table()
    assert (np.abs(table.bias) < 4 * table.rmse / np.sqrt(1000)).all()
    for level, end in zip(levels, ("", "_0.8", "_0.5", "_0.2"), strict=True):
        inside = trial.runs.truth.between(trial.runs[f"lower{end}"], trial.runs[f"upper{end}"])
        assert inside.groupby(trial.runs.estimator).mean().to_numpy() == pytest.approx(level, abs=0.05)
    counts = np.histogram(trial.pit(), [0, 0.1, 0.25, 0.5, 0.75, 0.9, 1])[0] / len(trial.runs)
    assert counts == pytest.approx([0.1, 0.15, 0.25, 0.25, 0.15, 0.1], abs=0.03)


@pytest.mark.slow
def test_pit_values_go_to_arviz_without_runs_in_which_an_estimator_failed():
    az = pytest.importorskip("arviz")
    runs = simulated(60)
    runs.loc[7, ["estimate", "lower", "upper", "lower_0.5", "upper_0.5"]] = np.nan
    trial = Study(runs, 0.9)
    tree, pit = trial.tree("P"), trial.pit()
    for name in ("a", "b"):
        kept = pit[(runs.estimator == name) & (runs.repetition != 7)]
        np.testing.assert_allclose(tree["prior_sbc"][name].to_numpy().ravel(), kept)
    pytest.importorskip("matplotlib").use("agg")
    assert az.plot_ecdf_pit(tree) is not None
