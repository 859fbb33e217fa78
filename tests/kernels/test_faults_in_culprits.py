"""Faults planted in what the words of a finding follow from, each with the test of another file that then fails."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import test_culprits
from planted import plant

from consan.instrument import relations
from consan.instrument.between import flow as text_flow
from consan.instrument.between.flow import Flow
from consan.reports import culprits
from consan.reports.culprits import hand_overs
from consan.reports.culprits.finders import (
    fence_before_wait,
    late_cluster_wait,
    unfenced,
    wait_of_another,
    waits_for_own,
)
from consan.reports.culprits.hand_overs import announced_alone, ends_early, not_waited_for, published_early, released_alone, released_early
from consan.reports.culprits.phases import (
    constant_parity,
    constant_parity_of_first,
    freeing,
    issued_only,
    late_hand_over,
    late_phase_wait,
    never_freed,
    other_mbarrier,
    passing_wait,
    passing_wait_of_copies,
    phase_in_loop,
)
from consan.reports.decoding import branches, decode, implied_commits
from consan.reports.waiting import signals
from consan.reports.words import ordering, wording

ORDER = next(row for row in test_culprits.ORDERS if row[0] == "exchange_in_functions")
BARRIER = test_culprits.test_a_barrier_behind_a_wait_is_outside_of_the_branch_of_the_wait


def _calls_do_not_stand_for_accesses(patch: pytest.MonkeyPatch) -> None:
    at = Flow.at
    patch.setattr(Flow, "at", lambda flow, site: at(flow, site) if site.function == flow.function.name else set())


# Finders of culprits; a twin, and what they say of it.
FINDERS = {
    (constant_parity, constant_parity_of_first): ("mbarrier_parity_constant", "asks for parity 0 in each round"),
    (phase_in_loop,): ("mbarrier_parity_of_step", "but for an earlier phase"),
    (late_hand_over,): ("mbarrier_number_read_before_wait", "comes only after the read"),
    (late_phase_wait,): ("bulk_load_waited_late", "comes only after the read"),
    (other_mbarrier,): ("bulk_load_other_waited", "waits for another mbarrier, ready"),
    (issued_only,): ("../blackwell/arrived_at_issue", "comes when the tcgen05.mma is issued, not when it is complete"),
    (fence_before_wait,): ("cp_async_fence_before_wait", "the bytes may not be there yet"),
    (passing_wait,): ("mbarrier_count_of_one_warp", "has let the copy begin before the"),
    (passing_wait_of_copies,): ("ring_parity_of_lap_in_structure", "has let the copy begin before the mbarrier.arrive"),
    (never_freed,): ("cluster_gather_not_handed_back", "nothing behind it signals to the issuer that the bytes are free"),
    (freeing,): ("../blackwell/operand_freed_between_products", "has let the bulk load at"),
    (released_alone,): ("mbarrier_leader_releases_alone", "is of another lane"),
    (released_early,): ("mbarrier_leader_releases_early", "comes before the read"),
    (announced_alone,): ("bulk_bytes_announced_alone", "does not arrive behind it"),
    (published_early,): ("named_barrier_early_publication", "publishes only what came before it"),
    (not_waited_for,): ("mbarrier_arrival_not_waited", "does not wait for that phase"),
    (wait_of_another,): ("mbarrier_warp_waits", "does not execute the mbarrier.try_wait"),
    (waits_for_own,): ("cp_async_waits_for_own", "waits for the groups of its own thread only, and no barrier comes after it"),
    (ends_early,): ("grid_barrier_goal_too_low", "has ended before the other CTA has added its own"),
    (late_cluster_wait,): ("cluster_read_before_split_wait", "comes only after the read"),
    (unfenced,): ("wgmma_filled_no_fence", "orders the threads only"),
}


@pytest.mark.slow
@pytest.mark.parametrize("finders", FINDERS, ids=lambda finders: finders[0].__name__)
def test_without_a_finder_nothing_is_said(finders: tuple[Callable[..., Any], ...], monkeypatch: pytest.MonkeyPatch) -> None:
    twin, sentence = FINDERS[finders]

    def says() -> bool:
        (report,) = test_culprits._racy(twin)
        return any(sentence in finding.message for finding in report.findings)

    assert says()
    monkeypatch.setattr(culprits, "RULES", tuple(rule for rule in culprits.RULES if rule.find not in finders))
    assert not says()


def _no_branch_of_the_wait(patch: pytest.MonkeyPatch) -> None:
    plant(patch, branches, "if behind_wait and wait is None:", "if False:")


def _no_wait(patch: pytest.MonkeyPatch) -> None:
    plant(patch, branches, '"waited-no-barrier"', '"no situation"')


def _warp_barrier_behind_the_branch(patch: pytest.MonkeyPatch) -> None:
    plant(patch, branches, "(one.block, one.warp) != (other.block, other.warp)", "False")


def _each_lane_for_itself(patch: pytest.MonkeyPatch) -> None:
    plant(patch, hand_overs, "case.around_any()", "None")


def _no_widened_index(patch: pytest.MonkeyPatch) -> None:
    plant(patch, relations, '(_WIDENED if name == "cvt" else _TYPES)', "_TYPES")


def _each_reader_updates(patch: pytest.MonkeyPatch) -> None:
    plant(
        patch,
        ordering,
        "_is_update(first, second, relations) and not _of_one_writer(finding, first, second, relations)",
        "_is_update(first, second, relations)",
    )


def _no_own_update(patch: pytest.MonkeyPatch) -> None:
    plant(patch, ordering, "relations.updates(site) for site in pair", "False for site in pair")


def _no_place_is_disjoint(patch: pytest.MonkeyPatch) -> None:
    plant(patch, ordering, "or (DISJOINT if", "or (DISJOINT if not finding and")


def _no_barrier_of_some_lanes(patch: pytest.MonkeyPatch) -> None:
    plant(patch, text_flow, '"lanes" if barriers == "warp" else barriers', "barriers")


def _each_operation_is_of_the_same_round(patch: pytest.MonkeyPatch) -> None:
    plant(patch, ordering, "order.swapped and order.carried", "False")


def _each_read_is_of_the_first_round(patch: pytest.MonkeyPatch) -> None:
    plant(patch, decode, "finding, pair = turned(finding, pair)", "pass")


def _each_commit_is_missed(patch: pytest.MonkeyPatch) -> None:
    plant(patch, implied_commits, "if by_all or by_own", "if by_all")


def _no_write_is_behind_a_copy(patch: pytest.MonkeyPatch) -> None:
    plant(patch, ordering, " or _is_behind_copy(finding, first, second, relations)", "")


def _no_wait_for_a_copy(patch: pytest.MonkeyPatch) -> None:
    plant(patch, wording, 'is not None and action.kind == "cp.async"', "is None")


def _no_loop_is_unrolled(patch: pytest.MonkeyPatch) -> None:
    plant(patch, text_flow, " or self._is_unrolled(first) != self._is_unrolled(second)", "")


def _copies_of_one_mbarrier_only(patch: pytest.MonkeyPatch) -> None:
    plant(patch, signals, " or _of_copies(awaited, signals)", "")


def _no_commit_is_implied(patch: pytest.MonkeyPatch) -> None:
    plant(patch, implied_commits, "if by_all or by_own", "if by_own")


def _says(twin: str, sentence: str) -> None:
    (report,) = test_culprits._racy(twin)
    assert sentence in f"{report.findings[0].message} {report.findings[0].fix}"


FAULTS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], Callable[[Path], Any]]] = {
    "calls stand for accesses": (
        _calls_do_not_stand_for_accesses,
        lambda _: test_culprits.test_a_race_reads_the_same_in_each_schedule(ORDER),
    ),
    "the branch of a wait": (_no_branch_of_the_wait, lambda folder: BARRIER(folder, "", "before stages.cu:7")),
    "no roles are disjoint": (
        _no_place_is_disjoint,
        lambda _: test_culprits.test_roles_that_exclude_each_other_need_an_arrival_and_a_wait(),
    ),
    "barriers of some lanes": (_no_barrier_of_some_lanes, lambda _: _says("half_warp_masks_next_round", "in the next iteration")),
    "an operation of the round before": (
        _each_operation_is_of_the_same_round,
        lambda _: _says("bulk_store_source_next_round", "can overwrite the bytes before the bulk store"),
    ),
    "a read of an earlier round": (
        _each_read_is_of_the_first_round,
        lambda _: _says("named_barrier_early_release_of_two", "can overwrite the bytes before the read"),
    ),
    "a commit of a warp that is late": (
        _each_commit_is_missed,
        lambda _: _says("wgmma_operand_refilled_at_once", "comes only after the write"),
    ),
    "a write behind a copy": (
        _no_write_is_behind_a_copy,
        lambda _: _says("cp_async_source_of_others", "can overwrite the bytes before the cp.async"),
    ),
    "a race with a copy": (_no_wait_for_a_copy, lambda _: _says("cp_async_source_of_others", "before the cp.async at")),
    "a loop that is unrolled": (_no_loop_is_unrolled, lambda _: _says("scan_write_behind_loop", "put __syncthreads() after the read")),
    "copies that are counted twice": (_copies_of_one_mbarrier_only, lambda _: _says("deadlock_copies_counted_in_ring", "arrive.noinc")),
    "a wait for all commits": (_no_commit_is_implied, lambda _: _says("cp_async_waited_all_late", "its own thread only")),
    "a widened index": (_no_widened_index, lambda _: test_culprits.test_a_branch_on_a_widened_index_is_decided()),
    "each reader updates": (_each_reader_updates, lambda _: test_culprits.test_one_thread_that_writes_loses_no_update()),
    "an update of its own has one barrier": (
        _no_own_update,
        lambda _: test_culprits.test_a_statement_whose_sum_others_read_needs_two_barriers_of_the_warp(),
    ),
    "a warp barrier behind the branch": (
        _warp_barrier_behind_the_branch,
        lambda _: test_culprits.test_a_warp_barrier_before_a_release_stands_in_the_branch_of_its_warp(),
    ),
    "each lane releases for itself": (
        _each_lane_for_itself,
        lambda _: test_culprits.test_a_leader_that_releases_early_is_the_culprit(),
    ),
    "the wait stands for the operation": (
        _no_wait,
        lambda folder: BARRIER(folder, "if (t == 0) ", "after the branch that contains stages.cu:6"),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_lets_a_test_fail(fault: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fault_of, test = FAULTS[fault]
    test(tmp_path)
    fault_of(monkeypatch)
    with pytest.raises(AssertionError):
        test(tmp_path)
