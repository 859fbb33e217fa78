"""Samples of parametrised tests whose cases check one rule: most cases are marked slow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

import pytest


def one_in(number: int, values: Iterable[Any], ids: Callable[[Any], str]) -> list[Any]:
    """The cases. One of each `number` runs without `-m slow`, the others are marked slow."""
    return [pytest.param(value, id=ids(value), marks=pytest.mark.slow if at % number else ()) for at, value in enumerate(values)]


def but(slow: Collection[Any], values: Iterable[Any]) -> list[Any]:
    """The cases. Those of `slow` are marked slow: another one of the group checks the same."""
    return [pytest.param(value, marks=pytest.mark.slow if value in slow else ()) for value in values]


# How many cases of a parametrised test there are for each one that runs without `-m slow`, by its file and name. The first one does.
SAMPLES = {
    "device/test_bounds.py": {"test_bound": 3},
    "device/test_endings.py": {"test_a_spin_ends_by_the_time_limit": 2, "test_early_exits_release_the_slot": 3},
    "device/test_global_results.py": {"test_the_elements_that_a_tensor_store_covers": 3},
    "device/test_runtime_builds.py": {
        "test_each_pair_of_settings_passes_the_front_end": 4,
        "test_every_variant_compiles_and_is_cut_into_functions": 2,
        "test_hooks_of_a_tiled_kernel_do_not_spill": 3,
        "test_the_runtime_assembles": 2,
    },
    "faults/test_interrupts.py": {"test_a_signal_once_the_launch_is_over": 3, "test_run_reports_what_it_has": 3},
    "faults/test_ways_to_end.py": {"test_a_race_is_reported_whatever_ends_the_program": 3},
    "kernels/test_global_memory.py": {
        "test_a_correct_kernel_is_clean": 3,
        "test_a_race_is_reported": 3,
        "test_the_fix_is_that_of_what_lacks": 3,
    },
    "kernels/test_twins.py": {"test_fixed_twin_is_clean": 2, "test_legal_pattern_is_clean": 2, "test_racy_twin_is_reported": 2},
    "kernels/test_without_consan.py": {"test_result_is_right": 3},
    "native/test_interposer.py": {
        "test_a_program_survives_a_server_that_sends_garbage": 2,
        "test_a_server_that_dies": 2,
        "test_every_way_to_the_driver": 3,
    },
    "oracle/test_fuzz.py": {"test_programs": 3},
    "oracle/test_global_programs.py": {"test_litmus": 3},
    "oracle/test_litmus.py": {"test_each_scope_and_strength": 3},
    "oracle/test_litmus_async.py": {"test_oracle": 3, "test_product": 3},
    "oracle/test_regressions.py": {"test_regression": 3},
    "pipeline/test_cli.py": {"test_a_program": 3, "test_status_and_stored_report": 3},
    "ranks/test_ranks.py": {"test_a_fault_is_found_between_two_ranks": 3, "test_without_a_fault_it_is_clean": 3},
    "real/test_hopper_checked.py": {"test_clean_with_the_same_results": 3},
    "real/test_real_kernels.py": {
        "test_clean_in_another_schedule_and_recorded": 3,
        "test_clean_with_the_same_results": 3,
        "test_every_instruction_is_counted": 3,
    },
    "record/test_background.py": {"test_a_receipt_has_the_sums_of_all_threads": 3},
    "record/test_followed_streams.py": {"test_a_graph_of_many_nodes": 2},
    "record/test_planted_recorder_faults.py": {"test_a_fault_in_the_recorder": 3},
    "record/test_polled_hangs.py": {"test_a_fault_in_the_proof": 2},
    "record/test_proven_copies.py": {"test_what_is_proven": 3},
    "record/test_tensor_modes.py": {"test_the_engines_agree": 3},
    "record/test_tensor_twins.py": {
        "test_the_correct_kernel_is_clean_and_computes_the_result": 3,
        "test_the_racy_twin_is_reported": 3,
        "test_the_recorded_kernel_assembles": 3,
    },
    "reports_gold/test_reports_gold.py": {"test_its_sentences_read_as_stored": 3, "test_the_bug_is_reported": 3},
    "reports_read/test_reports_read.py": {"test_the_report_says_what_was_read": 3},
    "stress/test_stress_command.py": {"test_failures_of_a_programs_process_are_kept_apart": 2},
    "tutorials/test_snippets.py": {"test_a_snippet_runs": 2},
    "tutorials/test_tutorials.py": {"test_command_of_the_readme": 2},
    "unit/commands/test_cli_examples.py": {"test_the_wrong_example_is_reported_with_its_kind": 3},
    "vm/test_engine_progress.py": {"test_of_other_loops_nothing_is_proven": 2},
}


def mark_samples(items: Iterable[pytest.Item], folder: Path) -> None:
    """Mark the other cases slow. `folder`: that of the tests. Cases that are slow already are not counted."""
    seen: Counter[tuple[str, str]] = Counter()
    sampled = {name for tests in SAMPLES.values() for name in tests}
    for item in (each for each in items if getattr(each, "originalname", "") in sampled and each.path.is_relative_to(folder)):
        test = item.path.relative_to(folder).as_posix(), getattr(item, "originalname", "")
        number = SAMPLES.get(test[0], {}).get(test[1])
        if number is None or item.get_closest_marker("slow") is not None or item.get_closest_marker("gpu") is not None:
            continue
        if seen[test] % number:
            item.add_marker(pytest.mark.slow)
        seen[test] += 1
