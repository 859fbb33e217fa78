"""A rank whose GPU is not the first one of its process: a kernel that waits for a peer is recorded, as on the first one."""

from __future__ import annotations

from dataclasses import replace

import pytest
import test_other_contexts as gpus
from planted import plant
from test_peer_flags import KERNELS, ONE_PARAMETER

from consan.reports.model import Report
from consan.reports.verdict import combination
from consan.session.comparing import followed_streams
from consan.session.executing import recording
from consan.toolchain.nvrtc import compile_ptx


def rank_on_the_second_gpu(monkeypatch: pytest.MonkeyPatch, *, first: bool = False) -> Report:
    """A rank that waits for a flag of a peer, on the second of two GPUs. `first`: it has launched on the first one before."""
    process = gpus.Process(monkeypatch)
    process.text = compile_ptx(KERNELS.replace(*ONE_PARAMETER), arch="sm_90a").ptx
    process.session.followed.shares(1, 2).add_window("memory of 0 1", 1, process.shared, 4096, 'symmetric buffer "data", rank 1', 4)
    process.backends[2].write(process.shared + 384 * 4, (1).to_bytes(4, "little") * 2)
    if first:
        process.launch("takes", 1)
    process.launch("awaits", 2, at=process.shared)
    return process.report()


def test_a_rank_whose_gpu_is_not_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    report = rank_on_the_second_gpu(monkeypatch)
    assert (report.verdict, report.incomplete) == ("clean", ())


def test_a_rank_with_two_gpus_may_wait_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """The flag may be set by a launch that the program makes behind it."""
    report = rank_on_the_second_gpu(monkeypatch, first=True)
    assert any("points to symmetric buffer" in why for why in report.incomplete), report.incomplete


def test_a_gap_of_one_rank_is_not_filled_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has launched the kernel with one shape: the one launch was compared with all, the other with none of another GPU."""
    reports = [rank_on_the_second_gpu(monkeypatch, first=first) for first in (False, True)]
    others = replace(reports[1], kernels=tuple(each for each in reports[1].kernels if each.name == "awaits"))
    combined = combination.combine([reports[0], others])
    assert combined.verdict == "incomplete"
    assert [why for why in combined.incomplete if "awaits" in why] == [why for why in reports[1].incomplete if "awaits" in why]


def test_a_fault_in_what_counts_as_used(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, followed_streams, "return len(self._used) > 1", "return len(self._contexts) > 1")
    assert rank_on_the_second_gpu(monkeypatch).incomplete


def test_a_fault_in_the_gaps_that_count(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, recording, "self.options.global_required or (why and self.options.global_wanted and why in each)", "False")
    with pytest.raises(AssertionError):
        test_a_gap_of_one_rank_is_not_filled_by_another(monkeypatch)


def test_a_fault_in_what_reports_leave_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, combination, "for each in missing(kernel)", "for each in ()")
    with pytest.raises(AssertionError):
        test_a_gap_of_one_rank_is_not_filled_by_another(monkeypatch)
