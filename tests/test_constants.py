"""Each named number of the package has a test that fails if it is doubled, or a reason why it needs none.

`python tests/mutate.py [module.NAME ...]` doubles constants in a copy of the package and runs their guards.
"""

import ast
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from source import parse, parse_package

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "erbayes"

GUARDED = {
    "arrays.EXACT": "test_edges.py::test_integers_that_floating_point_would_round_are_no_scores",
    "assistance.BY_CHANCE": "test_assisted.py::test_draws_that_differ_once_in_ten_thousand_samples",
    "assistance.SHOWN": "test_assisted.py::test_the_variance_and_the_skew_by_hand",
    "assistance.TOO_MUCH": "test_thresholds.py::test_a_tenth_of_a_second_clustering_out_of_reach_is_said",
    "bounded_means.CAP": "test_stopping.py::test_bets_are_those_of_a_plain_loop",
    "bounded_means.GREATEST": "test_thresholds.py::test_single_draws_hold_at_most_twice_the_mean_share",
    "candidates.POWER": "test_candidates.py::test_by_text_against_brute_force",
    "changes.FEWEST": "test_thresholds.py::test_a_class_of_size_has_ten_resolved_draws",
    "closed_form.FEWEST_WRONG": "test_nonresponse.py::test_one_draw_that_nobody_can_decide_leaves_a_verdict_open_only_where_it_can_change_it",
    "closed_form.HALF": "test_entities.py::test_entities_of_one_size_have_the_rule_of_three",
    "columns.REPEATED": "test_reading.py::test_a_few_repeats_are_asked_about",
    "comparison.FEW": "test_overlap.py::test_of_five_predictions_differences_from_the_first_are_shown_and_others_when_asked",
    "contract.LARGEST": "test_hostile.py::test_refused",
    "contract.LENGTH": "test_bayes_sizes.py::test_basis_has_the_covariance_of_the_process",
    "contract.PER_DOUBLING": "test_bayes_sizes.py::test_larger_bins_are_thirds_of_a_doubling_from_eight_on",
    "contract.SEVERAL": "test_mistaken.py::test_labels_are_no_draws",
    "contract.SINGLE": "test_bayes_sizes.py::test_larger_bins_are_thirds_of_a_doubling_from_eight_on",
    "control_variate.FEWEST_DRAWS": "test_assisted.py::test_few_draws_and_a_census_are_the_default",
    "control_variate.MASS": "test_assisted.py::test_the_truth_as_second_clustering_leaves_pseudo_draws_and_what_is_out_of_reach",
    "data.MOST_NOISE": "test_bayes.py::test_noise_of_clusters_is_that_of_clusters_one_by_one",
    "data.PSEUDO": "test_bayes.py::test_dispersion_is_the_variance_between_entities",
    "data.REACH": "test_bayes_thresholds.py::test_sizes_reach_sixteen_times_the_largest_cluster",
    "data.SMOOTHING": "test_bayes.py::test_smoothing_moves_counts_and_loses_none",
    "diagnostics.ALL_WRONG": "test_diagnostics.py::test_labels_of_errors_alone_raise_an_alarm",
    "diagnostics.FELT": "test_alarms.py::test_a_discrepancy_that_no_metric_feels_is_a_note",
    "diagnostics.JOINED": "test_diagnostics.py::test_labels_of_drawn_records_alone_raise_an_alarm",
    "diagnostics.LEFT_OUT": "test_thresholds.py::test_a_twentieth_of_the_labels_left_out",
    "diagnostics.MISSED": "test_alarms.py::test_a_giant_that_chance_would_not_have_missed_is_out_of_balance",
    "digits.MOST": "test_digits.py::test_a_row_has_the_digits_of_its_standard_error",
    "drawing.LOOKED_AT": "test_heap.py::test_draw_and_plan_tell_it_before_any_label",
    "drawn.EACH": "test_draws_that_count.py::test_more_draws_than_anybody_needs_are_refused",
    "drawn.MOST": "test_draws_that_count.py::test_more_draws_than_anybody_needs_are_refused",
    "duckdb.THREADS": "test_sources.py::test_options_of_duckdb_are_checked_before_it_starts",
    "edges.SURE": "test_edges.py::test_distances_raise_an_alarm_beyond_four_and_a_half_standard_errors",
    "engine.IN_STUDY": "test_bayes_compiled.py::test_a_study_compiles_and_asks_for_few_draws",
    "engine.OF_CURVE": "test_bayes_compiled.py::test_many_predictions_are_compiled",
    "error_models.SMALL_PIECES": "test_bayes_sizes.py::test_retention_by_plain_loops",
    "explored.ROW": "test_explore.py::test_domains_have_the_values_of_their_table_and_names_are_no_markup",
    "explored.SHORT": "test_explore.py::test_names_next_to_an_axis_leave_room_on_a_phone",
    "features.WRITTEN": "test_impact.py::TestGuards::test_ten_clusters_of_several_records_are_suspect",
    "files.DEEPEST_JSON": "test_folder.py::test_brackets_within_brackets_and_tasks_that_do_not_exist_are_refused",
    "files.LINE": "test_sources.py::test_a_first_line_without_an_end_is_refused_early",
    "fit.DRAWS": "test_bayes_draws.py::test_an_answer_has_10_000_draws",
    "fit.MODEL": "test_averages.py::test_a_fit_shows_both_members_in_its_table",
    "fit.SURE": "test_bayes_models.py::test_an_interval_far_shorter_than_the_unreached_links_is_unreliable",
    "fit.UNREACHED": "test_bayes_models.py::test_an_interval_far_shorter_than_the_unreached_links_is_unreliable",
    "grouping.MOST": "test_domains.py::TestBadInput::test_many_values",
    "ids.CAST": "test_doors.py::test_the_list_has_what_libraries_write",
    "ids.CHANCE_BITS": "test_reading.py::test_integers_that_were_floats_have_lost_digits",
    "impact.FEWEST": "test_impact.py::TestGuards::test_the_guard_is_at_ten",
    "importance.BEND": "test_importance.py::test_coordinates_in_which_heavy_tails_are_light",
    "importance.DF": "test_importance.py::test_proposals_are_t_distributions",
    "importance.EFFECTIVE": "test_importance.py::test_effective_points_are_a_quarter_more_than_draws",
    "importance.FEWEST_DRAWS": "test_bayes_parts.py::test_the_fewest_draws_and_seeds",
    "importance.FIRST": "test_importance.py::test_a_first_round_is_a_quarter_of_the_draws_and_150_at_least",
    "importance.KHAT": "test_importance.py::test_unreliable_weights_have_rounds_in_their_tail",
    "importance.LARGE": "test_importance.py::test_a_tail_has_three_times_the_root_of_the_points",
    "importance.MISSING": "test_importance.py::test_a_later_round_has_four_fifths_of_the_missing_points_and_at_most_doubles_them",
    "importance.MOST": "test_importance.py::test_points_of_a_law_are_limited",
    "importance.SHRINKAGE": "test_importance.py::test_covariances_shrink_towards_the_one_before_by_three_draws_per_coordinate",
    "importance.SMALLEST": "test_importance.py::test_a_first_round_is_a_quarter_of_the_draws_and_150_at_least",
    "intervals.ROUNDING": "test_domains.py::test_simultaneous_intervals",
    "links.FEW": "test_reading.py::test_clusters_numbered_without_a_gap_are_no_records",
    "links.FEW_ROWS": "test_reading.py::test_readings",
    "links.HALF": "test_reading.py::test_a_list_tells_which_columns_have_records",
    "links.WORDS": "test_reading.py::test_questions_and_refusals",
    "measures.SURE": "test_study_measures.py::test_bold_is_what_is_not_worse_by_two_paired_errors",
    "measuring.CHANCE": "test_mistaken.py::test_bounds_of_what_is_taken_for_edges",
    "measuring.ELSEWHERE": "test_mistaken.py::test_bounds_of_what_is_taken_for_edges",
    "measuring.HITS": "test_mistaken.py::test_bounds_of_what_is_taken_for_edges",
    "measuring.NEARLY_ALL": "test_thresholds.py::test_no_policy_is_offered_if_nine_tenths_are_missing",
    "measuring.NOWHERE": "test_mistaken.py::test_bounds_of_what_is_taken_for_edges",
    "model.CEILING": "test_bayes_thresholds.py::test_common_links_have_a_spread_from_a_hundredth_to_a_half",
    "model.FLOOR": "test_bayes_thresholds.py::test_common_links_have_a_spread_from_a_hundredth_to_a_half",
    "model.MANY": "test_bayes_thresholds.py::test_the_mean_share_of_more_than_thirty_broken_entities_is_normal",
    "model.NEAR": "test_bayes.py::test_chosen_populations_have_the_common_links_of_the_draw",
    "page.LONGEST": "test_page.py::test_times_that_no_page_writes_are_refused",
    "pair_strata.FEWEST": "test_pairs.py::TestEstimates::test_fewer_than_two_labelled_pairs_of_a_part_are_no_estimate",
    "pair_strata.FEWEST_RIGHT": "test_pairs.py::TestEstimates::test_recall_needs_five_right_answers",
    "planning.MOST": "test_planning.py::test_a_metric_that_does_not_reach_its_width_takes_no_other_with_it",
    "priors.TAIL": "test_bayes_sizes.py::test_densities_against_scipy",
    "programs.MANY": "test_bayes_compiled.py::test_many_predictions_are_compiled",
    "reading.HEADS": "test_reading.py::test_heads_of_clusters_are_told_by_half_of_the_ids",
    "remembered.LONGEST": "test_remembered.py::test_no_value_of_a_call_ends_in_another_error",
    "replicates.FEWEST": "test_unseen.py::test_a_bootstrap_has_the_interval_of_the_closed_form_where_few_draws_move_a_metric",
    "results.LETTERS": "test_plots.py::test_legends_of_long_names_leave_room_for_axes",
    "returned.HASTY": "test_blind.py::test_times_come_from_pages_and_their_median_is_told",
    "rows.FEWEST": "test_thresholds.py::test_a_domain_has_an_interval_from_ten_effective_draws",
    "rows.LARGEST": "test_thresholds.py::test_more_than_four_thousand_estimates_by_domain_are_refused",
    "sample.ERRORS": "test_thresholds.py::test_out_of_balance",
    "scanning.MOST_GROUPS": "test_scan_groups.py::test_too_many_values_are_refused",
    "sensitivity.FARTHEST": "test_sensitivity.py::test_grid_and_tipping_point",
    "sensitivity.FIRST": "test_sensitivity.py::test_imputations_go_on_until_they_leave_little_error",
    "sensitivity.FURTHER": "test_sensitivity.py::test_imputations_go_on_until_they_leave_little_error",
    "sensitivity.LAST": "test_sensitivity.py::test_two_hundred_imputations_are_the_most",
    "sensitivity.PRECISE": "test_sensitivity.py::test_imputations_go_on_until_they_leave_little_error",
    "sensitivity.SPURIOUS": "test_sensitivity.py::test_more_additions_than_labels_can_hold_raise_an_alarm",
    "settled.ABOVE": "test_heap.py::test_the_bars_of_a_heap",
    "settled.BELOW": "test_heap.py::test_the_bars_of_a_heap",
    "settled.BY_CHANCE": "test_heap.py::test_looks_weigh_a_cap",
    "settled.CAPPED": "test_heap.py::test_looks_weigh_a_cap",
    "settled.ERRORS": "test_heap.py::test_the_bars_of_a_heap",
    "settled.FEWEST": "test_heap.py::test_the_bars_of_a_heap",
    "settled.GOES_ON": "test_heap.py::test_looks_weigh_a_cap",
    "settled.SETTLED": "test_heap.py::test_looks_silence_the_alarm_or_name_what_allows_for_a_cap",
    "settled.SMALLEST": "test_heap.py::test_the_bars_of_a_heap",
    "settled.TIMES": "test_heap.py::test_the_bars_of_a_heap",
    "stopping.MOST": "test_stopping.py::test_further_draws_are_0_if_decided_and_unknown_at_the_estimate",
    "tables.UNDECIDED": "test_nonresponse.py::test_the_alarm_of_undecided_draws_on_both_sides_of_its_threshold",
    "thresholds.CERTIFIED_FROM": "test_thresholds_curve.py::test_certificates_begin_with_thirty_effective_draws_and_with_enough_for_the_share",
    "totals.BEND": "test_bayes_heap.py::test_the_shape_of_sizes_below_a_cap_by_plain_loops",
    "totals.LEAST_AGREEING": "test_bayes_thresholds.py::test_draws_that_agree_with_the_known_links",
    "totals.SPREAD": "test_bayes_heap.py::test_the_shape_of_sizes_below_a_cap_by_plain_loops",
    "totals.STRAY": "test_bayes_heap.py::test_the_shape_of_sizes_below_a_cap_by_plain_loops",
    "units.FEW": "test_alarms.py::test_a_cluster_with_most_links_and_ids_in_two_cases_are_noted",
    "units.MOST": "test_alarms.py::test_a_cluster_with_most_links_and_ids_in_two_cases_are_noted",
    "unseen.FREE": "test_unseen.py::test_the_values_of_gains_and_losses",
    "unseen.NOTABLE": "test_reach.py::test_the_share_enters_the_intervals_of_precision_and_f1",
    "unseen.PRIOR": "test_unseen.py::test_the_values_of_gains_and_losses",
}
"""The test that fails if the constant is doubled (`python tests/mutate.py`), by `module.NAME`."""

NEEDS_NONE = {
    "analyses.SEED": "a seed",
    "axes.CROWDED": "a limit of layout",
    "axes.TICKS": "a limit of layout",
    "bounded_means.HALVINGS": "a limit of work: further halvings change no digit",
    "bounded_means.ROUNDING": "a limit of rounding",
    "candidates.CELLS": "a limit of memory: tests compare it with a smaller one",
    "candidates.CHANCE": "a stream of random numbers",
    "candidates.STOCK": "a limit of memory: tests set a smaller one",
    "contract.ROUNDING": "a limit of rounding",
    "control_variate.ROUNDING": "a limit of rounding",
    "counted.HINTED": "a limit of work",
    "counted.OF_KEY": "digits of a key: engines in which draws agree share it",
    "decisions.BINS": "a limit of numbering: no cluster has as many powers of 2",
    "decisions.FEW": "a prior chosen by coverage on one population, and judged on four others",
    "decisions.FEWEST": "chosen by coverage on one population, and judged on two others",
    "decisions.STEPS": "a limit of work: ten times as many change no estimate by .006",
    "decisions.WHOLE": "either way of keeping records is covered from a third to a half",
    "diagnostics.ROUNDING": "a limit of rounding",
    "differences.ROUNDING": "a limit of rounding",
    "digits.LONGEST": "a limit of layout",
    "drawing.MANY": "a limit of display: a note, and no number",
    "draws.MOST_CLASSES": "a limit of memory: more classes change no third digit (test_draws)",
    "draws.STEEPEST": "a limit of skewness that multipliers of rare units would pass, which moves no covariance",
    "duckdb.BYTES_OF_PLACE": "a measured size, which only chooses between two exact ways to count",
    "duckdb.BYTES_OF_ROW": "a measured size, which only chooses between two exact ways to count",
    "duckdb.DENSE": "a limit of memory, which only chooses between two exact ways to count",
    "duckdb.PART": "a limit of memory: tests set a smaller one",
    "duckdb.PLACES": "a limit of memory, which only chooses between two exact ways to count",
    "error_models.MOST_PRECISE": "a limit of floats",
    "files.HEADER": "a limit of work",
    "files.LARGE": "a limit of speed: both ways count the same, and tests set 0",
    "files.LARGEST_JSON": "a limit of memory: a test sets a smaller one",
    "files.LINKS": "a limit of the system",
    "fit.SENSITIVE": "a number that is printed: nothing is decided by it",
    "fit.STREAM": "a stream of random numbers",
    "fitted.LATEST": "a limit of memory: tests set a smaller one",
    "fitted.REMEMBERED": "a limit of memory: tests set a smaller one",
    "folder.VERSION": "a version number",
    "harness.BLOCK": "a limit of memory: tests set a smaller one",
    "harness.MOST_DRAWS": "a limit of memory: tests set a smaller one",
    "ids.CHUNK": "a limit of memory, by which tests choose their lengths",
    "ids.EXAMINED": "a limit of work",
    "importance.FARTHEST": "a limit of floats",
    "importance.TINY": "a limit of floats",
    "inputs.NAMED": "a limit of display",
    "intervals.LEAST_TAIL": "a limit of floats",
    "labelling_tasks.SHUFFLED": "a stream of random numbers",
    "labelling_tasks.STRANGERS": "a stream of random numbers",
    "links.FIRST": "a limit of work: all rows are asked after these",
    "links.HEAD": "a limit of work: all rows are asked after these",
    "measures.Z": "a quantile of the normal distribution",
    "measuring.EXAMINED": "a limit of work",
    "page.VERSION": "a version number",
    "prediction.LOOKED_UP": "a limit of work: all rows are asked if these refute nothing",
    "printing.FAULTS": "a limit of display",
    "printing.GAP": "a limit of display: the blanks that rich puts between columns",
    "printing.WIDTH": "a limit of display: no table is as wide",
    "priors.FLOOR": "a limit of floats",
    "priors.NEVER": "a limit of floats",
    "replicates.CHUNK": "a limit of memory: tests set a smaller one",
    "replicates.ROUNDING": "a limit of rounding",
    "research.FEW": "a limit of display: more dots are drawn without their limits",
    "results.SHOWN": "a limit of display",
    "sections.ATTRIBUTES": "a limit of layout",
    "sections.LONG": "a limit of layout",
    "sections.MOST": "a limit of layout",
    "sections.ROUNDING": "a limit of rounding",
    "sensitivity.MOST": "a limit of the range of rates",
    "sensitivity.NEAR": "a width that only steadies a slope",
    "sensitivity.TRIES": "a limit of work",
    "source.ACCEPTED": "a stream of random numbers",
    "source.BUCKETS": "the number of values of the first 16 bits of a key",
    "source.ORDER": "a stream of random numbers",
    "sums.LARGEST": "the largest number of 64 bits",
    "tables.ROUNDING": "a limit of rounding",
    "thresholds.SHOWN": "a limit of display",
    "totals.LARGE": "a limit of work: links of larger sets are scaled",
    "totals.ROUNDING": "a limit of rounding",
    "totals.SILENT": "a limit of rounding",
    "totals.SIMULATED": "a limit of work",
    "totals.SIZES": "a limit of work",
    "totals.STREAM": "a stream of random numbers",
    "tree.NEARLY": "a limit of floats",
    "tree.TINY": "a limit of floats",
    "unseen.MOST": "a limit of rounding: a Beta distribution of twice as large parameters is the same point",
    "unseen.ROUNDING": "a limit of rounding",
    "unseen.STILL": "a limit of rounding",
}
"""Why a constant needs no guard."""

UNGUARDED = {
    "contract.RANK": "not tried yet; tests of sizes import it",
    "definitions.UNIT": "not tried yet; all shares have it",
    "fit.CHAINS": "not tried yet; tests fit models",
    "importance.WIDER": "not tried yet; results are the same up to noise",
    "intervals.PATHS": "not tried yet; results are the same up to noise",
    "model.PARTNERS": "not tried yet; results are the same up to noise",
}
"""Why no guard of a constant has been found, which decides numbers or alarms all the same."""

MOST_UNGUARDED = 6
"""It may only fall."""


@dataclass(frozen=True)
class Constant:
    path: Path
    node: ast.expr  # of its value
    value: int | float | tuple


def evaluate(node):
    """Return the value of a number, of a sum or power of numbers, or of a tuple of them; None of all else."""
    plain = ast.Constant, ast.UnaryOp, ast.BinOp, ast.Tuple, ast.operator, ast.unaryop, ast.Load
    if not all(isinstance(part, plain) for part in ast.walk(node)):
        return None
    value = eval(compile(ast.Expression(node), "", "eval"))
    parts = value if isinstance(value, tuple) else (value,)
    return value if parts and all(type(part) in (int, float) for part in parts) else None


def assignments(statement):
    """Yield name and value of each name that a statement assigns to, also of `A, B = 1, 2`."""
    if isinstance(statement, ast.AnnAssign) and statement.value is not None:
        targets = [statement.target]
    else:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
    for target in targets:
        several = isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple)
        pairs = (
            zip(target.elts, statement.value.elts, strict=True) if several else [(target, statement.value)]
        )
        yield from ((name.id, value) for name, value in pairs if isinstance(name, ast.Name))


@cache
def find_constants():
    """Return the named numbers of all modules by `module.NAME`; two of one such name have that of the room before."""
    found = []
    for path, tree in parse_package(PACKAGE).items():
        for statement in tree.body:
            for name, node in assignments(statement):
                if name.isupper() and (value := evaluate(node)) is not None:
                    module = path.parent if path.stem == "__init__" else path.with_suffix("")
                    found.append(((*module.parts, name), Constant(path, node, value)))
    times = Counter(parts[-2:] for parts, _ in found)
    return {".".join(parts[-2 - (times[parts[-2:]] > 1) :]): constant for parts, constant in found}


@cache
def names_of_tests(path):
    """Return the functions of a file of tests, and the methods of its classes as `Class::method`."""
    found = []
    for node in parse(path).body:
        if isinstance(node, ast.ClassDef):
            found += [f"{node.name}::{f.name}" for f in node.body if isinstance(f, ast.FunctionDef)]
        elif isinstance(node, ast.FunctionDef):
            found.append(node.name)
    return {name for name in found if name.rpartition("::")[2].startswith("test")}


def test_every_named_number_has_a_guard_or_a_reason():
    listed = [*GUARDED, *NEEDS_NONE, *UNGUARDED]
    new, gone = sorted({*find_constants()} - {*listed}), sorted({*listed} - {*find_constants()})
    assert not new, (
        f"add {', '.join(map(repr, new))} to GUARDED with the test that fails if it is doubled, "
        "or to NEEDS_NONE with the reason why it needs none"
    )
    assert not gone, f"take out {', '.join(map(repr, gone))}: no module has such a number"
    assert len(listed) == len(set(listed)), "a constant is listed once"
    for table in (GUARDED, NEEDS_NONE, UNGUARDED):
        assert [*table] == sorted(table), "constants are sorted by name"


@pytest.mark.slow
def test_guards_are_tests():
    for name, guard in GUARDED.items():
        file, _, test = guard.partition("::")
        path = TESTS / file
        there = path.exists() and test in names_of_tests(path)
        assert there, f"{guard}, the guard of {name}, is no test: name the test that fails if it is doubled"


def test_reasons_are_given_and_unguarded_constants_become_fewer():
    assert all({**NEEDS_NONE, **UNGUARDED}.values())
    assert len(UNGUARDED) <= MOST_UNGUARDED, "write the test that fails if the new constant is doubled"
    assert len(UNGUARDED) == MOST_UNGUARDED, f"lower MOST_UNGUARDED to {len(UNGUARDED)}"


def test_numbers_are_found_in_all_their_forms(monkeypatch, tmp_path):
    room = tmp_path / "house" / "room"
    room.mkdir(parents=True)
    (room / "door.py").write_text(
        "A, B = 1, 2.5\nC: int = 2**3\nD = (-1, 1 - 1e-9)\nE = F = 1\nG = 'x'\nH = True\nI = A\nlower = 1\nJ = [1]\n",
        encoding="utf-8",
    )
    (tmp_path / "house" / "door.py").write_text("A = 7\n", encoding="utf-8")
    monkeypatch.setattr("test_constants.PACKAGE", tmp_path / "house")
    found = {name: constant.value for name, constant in find_constants.__wrapped__().items()}
    assert found == {
        "house.door.A": 7,
        "room.door.A": 1,
        "door.B": 2.5,
        "door.C": 8,
        "door.D": (-1, 1 - 1e-9),
        "door.E": 1,
        "door.F": 1,
    }
