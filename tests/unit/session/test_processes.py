"""Processes that share memory, each a rank: what they have written is compared once they have ended. Each has addresses of its own."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from consan.checker.judging import grid
from consan.reports.model import Finding
from consan.session.comparing import process_log, processes
from consan.session.comparing.array_rows import rows_between
from consan.session.comparing.process_log import SUFFIX

sys.path.append(str(Path(__file__).parents[2] / "record"))
from framework_support import FakeCalls, Framework

KERNELS = """
// Each thread writes an element `number` behind its own: its rank's window, or a peer's.
extern "C" __global__ void fills(unsigned* out, unsigned* from, int number) { out[blockIdx.x * blockDim.x + threadIdx.x + number] = 1; }
extern "C" __global__ void reads(unsigned* out, unsigned* from, int number) {
    unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
    from[at] = out[at + number];
}
extern "C" __global__ void adds(unsigned* out, unsigned* from, int number) { atomicAdd_system(out + number, 1u); }
extern "C" __global__ void adds_in_gpu(unsigned* out, unsigned* from, int number) { atomicAdd(out + number, 1u); }
template <class Fence> __device__ void raise(unsigned* out, Fence fence) {
    out[threadIdx.x] = 1;
    __syncthreads();
    fence();
    if (!threadIdx.x) atomicExch_system(out + 300, 1u);
}
extern "C" __global__ void raises(unsigned* out, unsigned* from, int) { raise(out, [] { __threadfence_system(); }); }
extern "C" __global__ void raises_in_gpu(unsigned* out, unsigned* from, int) { raise(out, [] { __threadfence(); }); }
extern "C" __global__ void raises_relaxed(unsigned* out, unsigned* from, int) { raise(out, [] { }); }
extern "C" __global__ void raises_narrow(unsigned* out, unsigned* from, int) {
    out[threadIdx.x] = 1;
    __threadfence_system();
    if (!threadIdx.x) atomicExch(out + 300, 1u);
}
"""
HALF = 1024  # bytes of a window: two ranks have the halves of an array


class FakeContexts:
    """One GPU that another process reaches."""

    own, device, refusal, alone, several = 1, 0, "", True, False

    def other(self) -> int:
        return 0

    def holder(self, address: int) -> str:
        return "GPU 1" if address >> 60 else ""


class Rank:
    """One process. Its array stands for the windows of both ranks. `clock`: when its launches run."""

    def __init__(self, rank: int, clock: Clock, kernels: str = KERNELS) -> None:
        self.framework, self.rank, self.clock = Framework(kernels, calls=FakeCalls()), rank, clock
        self.framework.backend.contexts = FakeContexts()  # type: ignore[assignment]
        self.framework.backend.alloc(4096 * rank)
        self.framework.calls.call("cuMemImportFromShareableHandle", 7)
        self.streams = self.framework.session.followed
        log = self.streams.shares(rank, 2)
        key = log.numbered("memory of 0")
        for owner in (0, 1):
            log.add_window(key, owner, self.framework.out + HALF * owner, HALF, f'symmetric buffer "data", rank {owner}', 4)

    def launch(self, entry: str, number: int = 0, *, stream: int = 0, at: float = 0) -> None:
        """A launch that begins at a time and takes one unit."""
        self.clock.now = at
        self.framework.launch(entry, number, stream=stream)

    def meets(self, handle: int | None = 0, *, key: str = "group 0", waits: bool = True, sends: bool = True, receives: bool = True) -> None:
        self.streams.exchanges.met(self.streams.log.numbered(key), handle, waits=waits, sends=sends, receives=receives)

    def end(self, folder: Path) -> Any:
        report = self.framework.report()
        log = self.streams.log
        assert log is not None
        log.save(folder / str(self.rank))
        return report


class Clock:
    """The clock of the machine: each look at it takes a tenth."""

    now = 0.0

    def __call__(self) -> float:
        self.now += 0.1
        return self.now + 1


@pytest.fixture
def ranks(monkeypatch: pytest.MonkeyPatch) -> list[Rank]:
    clock = Clock()
    monkeypatch.setattr(process_log, "now", clock)
    return [Rank(rank, clock) for rank in (0, 1)]


def compared(ranks: list[Rank], folder: Path) -> tuple[list[Finding], list[str]]:
    reports = [rank.end(folder) for rank in ranks]
    assert not any(report.incomplete for report in reports)
    return processes.compared(folder)


def test_two_launches_at_the_same_time_race(ranks: list[Rank], tmp_path: Path) -> None:
    ranks[0].launch("fills")
    ranks[1].launch("reads")
    (finding, *more), reasons = compared(ranks, tmp_path)
    assert (finding.kind, finding.hazard, finding.situation, more, reasons) == ("global-race", "RAW", "no-rank-edge", [], [])
    assert [access.rank for access in finding.accesses] == [0, 1]
    assert all(access.name == 'elements 0..127 of symmetric buffer "data", rank 0' for access in finding.accesses), finding.accesses
    assert "rank 0" in finding.message


def test_launches_at_other_bytes_do_not_meet(ranks: list[Rank], tmp_path: Path) -> None:
    ranks[0].launch("fills")
    ranks[1].launch("fills", 256)
    assert compared(ranks, tmp_path) == ([], [])


def alike(ranks: list[Rank], folder: Path) -> tuple[list[Finding], list[str]]:
    """Three launches have the same accesses, and race with nothing. One with others does."""
    for at in (0, 10, 20):
        ranks[0].launch("fills", 256, at=at)
    ranks[0].launch("fills", at=30)
    ranks[1].launch("reads", at=30)
    return compared(ranks, folder)


def test_accesses_of_launches_that_are_alike_are_kept_once(ranks: list[Rank], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of_two = 3 * 128  # of the first launch with the values that it stores, of those that are known without
    monkeypatch.setattr(process_log, "MOST_LOGGED", of_two)
    findings, reasons = alike(ranks, tmp_path)
    assert ([finding.hazard for finding in findings], reasons) == (["RAW"], [])


def test_too_many_accesses_are_said(ranks: list[Rank], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_log, "MOST_LOGGED", 2 * 128 - 1)
    _findings, reasons = alike(ranks, tmp_path)
    assert reasons == ["there were more accesses to symmetric memory, or launches that touch it, than are compared"]


def test_launches_one_after_the_other_are_named(ranks: list[Rank], tmp_path: Path) -> None:
    """The processes may have waited in a way that is not seen."""
    ranks[0].launch("fills")
    ranks[1].launch("reads", at=10)
    findings, (reason,) = compared(ranks, tmp_path)
    assert not findings
    assert "no order between them was seen" in reason


HOST_MAY_KNOW: dict[str, Callable[[Rank], Any]] = {
    "it waited": lambda rank: rank.framework.calls.call("cuCtxSynchronize"),
    "it queried": lambda rank: rank.framework.calls.call("cuStreamQuery", 0),
    "by work of unknown accesses": lambda rank: rank.framework.calls.call("cuLaunchKernel", 1, *[1] * 7, 0, 0, 0),
}


def later(ranks: list[Rank], folder: Path, between: Callable[[Rank], Any]) -> tuple[list[Finding], list[str]]:
    """A rank makes a second launch, which touches other bytes, behind the launch of the other rank."""
    ranks[0].launch("fills")
    ranks[1].launch("reads", at=10)
    between(ranks[0])
    ranks[0].launch("fills", 256, at=20)
    return compared(ranks, folder)


def test_a_launch_whose_end_no_host_knows_when_another_rank_launches(ranks: list[Rank], tmp_path: Path) -> None:
    (finding,), reasons = later(ranks, tmp_path, lambda _rank: None)
    assert (finding.situation, finding.hazard, reasons) == ("no-rank-edge", "RAW", [])


@pytest.mark.parametrize("how", HOST_MAY_KNOW)
def test_a_launch_whose_end_the_host_may_know(ranks: list[Rank], tmp_path: Path, how: str) -> None:
    findings, (reason,) = later(ranks, tmp_path, HOST_MAY_KNOW[how])
    assert not findings
    assert "no order between them was seen" in reason


def test_a_launch_whose_end_the_host_may_have_known_before_another_rank_launches(ranks: list[Rank], tmp_path: Path) -> None:
    ranks[0].launch("fills")
    ranks[0].launch("fills", 256, at=5)
    ranks[1].launch("reads", at=10)
    findings, (reason,) = compared(ranks, tmp_path)
    assert not findings
    assert "no order between them was seen" in reason


Between = Callable[[Rank], None]
ORDERS: dict[str, Between] = {
    "a barrier": lambda rank: rank.meets(),
    "a collective": lambda rank: rank.meets(waits=False),
    "a signal": lambda rank: rank.meets(sends=not rank.rank, receives=bool(rank.rank)),
    "hosts that have waited": lambda rank: (rank.framework.calls.call("cuCtxSynchronize"), rank.meets(None))[1],
}
NO_ORDERS: dict[str, Between] = {
    "one of them alone": lambda rank: rank.meets() if rank.rank else None,
    "the other way": lambda rank: rank.meets(sends=bool(rank.rank), receives=not rank.rank),
    "hosts that have not waited": lambda rank: rank.meets(None),
    "another stream": lambda rank: rank.meets(rank.framework.calls.stream(), waits=False),
}


@pytest.mark.parametrize("order", [*ORDERS, *NO_ORDERS])
def test_meetings_order_launches(ranks: list[Rank], tmp_path: Path, order: str) -> None:
    ranks[0].launch("fills")
    for rank in ranks:
        (ORDERS | NO_ORDERS)[order](rank)
    ranks[1].launch("reads", at=10)
    findings, reasons = compared(ranks, tmp_path)
    assert (not findings, not reasons) == (True, order in ORDERS), reasons


def test_meetings_are_transitive(ranks: list[Rank], tmp_path: Path) -> None:
    """What rank 0 did before one meeting is before what it does behind a later one in another rank."""
    ranks[0].launch("fills")
    for rank in ranks:
        rank.meets()
        rank.meets(waits=False)
    ranks[1].launch("reads", at=10)
    assert compared(ranks, tmp_path) == ([], [])


def handed_on(folder: Path, clock: Clock) -> tuple[list[Finding], list[str]]:
    """Rank 0 signals to rank 1, and that to rank 2."""
    first, second, third = ranks = [Rank(rank, clock) for rank in range(3)]
    first.launch("fills")
    first.meets(key="one", receives=False)
    second.launch("fills", 256)
    second.meets(key="one", sends=False)
    second.meets(key="two", receives=False)
    third.meets(key="two", sends=False)
    third.launch("reads", at=10)
    return compared(ranks, folder)


def test_signals_are_handed_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(process_log, "now", clock := Clock())
    assert handed_on(tmp_path, clock) == ([], [])


def test_atomics_of_system_scope_do_not_race(ranks: list[Rank], tmp_path: Path) -> None:
    for rank in ranks:
        rank.launch("adds")
    assert compared(ranks, tmp_path) == ([], [])


def test_a_kernel_that_may_signal_is_not_judged(ranks: list[Rank], tmp_path: Path) -> None:
    ranks[0].launch("raises")
    ranks[1].launch("reads", at=0.05)  # what the rank did since the other launch began is not known
    findings, (reason,) = compared(ranks, tmp_path)
    assert not findings
    assert "they may synchronise through memory" in reason


@pytest.mark.parametrize("room", [grid.MOST_PEER_FLAGS, 0])  # 0: flags are not known
@pytest.mark.parametrize("entry", ["raises_in_gpu", "raises_relaxed", "raises_narrow"])
def test_a_signal_of_no_other_gpu_orders_nothing(
    ranks: list[Rank], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str, room: int
) -> None:
    """A release, or the write that others may see, is of a narrower scope than that of the system, or there is no release."""
    monkeypatch.setattr(grid, "MOST_PEER_FLAGS", room)
    ranks[0].launch(entry)
    ranks[1].launch("reads")
    (finding,), reasons = compared(ranks, tmp_path)
    assert (finding.situation, finding.hazard, reasons) == ("no-rank-edge", "RAW", [])


def test_atomics_of_gpu_scope_race(ranks: list[Rank], tmp_path: Path) -> None:
    for rank in ranks:
        rank.launch("adds_in_gpu")
    (finding,), reasons = compared(ranks, tmp_path)
    assert (finding.situation, reasons) == ("no-rank-edge", [])


def test_a_process_that_has_written_nothing(ranks: list[Rank], tmp_path: Path) -> None:
    ranks[0].end(tmp_path)
    assert processes.compared(tmp_path) == ([], ["what rank 1 has done in symmetric memory is not known"])


def test_memory_of_others_in_no_window(ranks: list[Rank]) -> None:
    rank = ranks[0]
    peers = rank.framework.session.frameworks.peers
    for address, known in ((1 << 61, False), (1 << 30, True)):
        assert peers.others_know(rows_between([], [(rank.framework.out, rank.framework.out + 4), (address, address + 4)])) is known


def test_a_damaged_file(tmp_path: Path) -> None:
    (tmp_path / f"1{SUFFIX}").write_bytes(json.dumps({}).encode())
    findings, (reason,) = processes.compared(tmp_path)
    assert not findings
    assert "cannot be read" in reason
