"""Clusters without findings are passed over without their logs (checker/judging/sweep.py): a check that has all logs finds the same."""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from compact_support import Hangs, Work, of_twin
from draws import examples
from measure import arguments
from oracle_strategies import STRATEGIES, batches
from planted import break_checker, plant, quick
from test_compact import MORE, work_with
from test_deduplication import BODIES

import consan
from consan.backends.virtual import VirtualBackend
from consan.checker.compiled import cores
from consan.checker.compiled.layouts import Status
from consan.checker.compiled.patience import Patience
from consan.checker.judging import recorder, sweep
from consan.checker.judging.checked import WHY, Checked
from consan.checker.judging.collected import LaunchedKernel
from consan.checker.logs import computing
from consan.checker.logs.launch import Launch
from consan.instrument.record import Recorded

TAKEN = (Path(__file__).parent / "recorded.txt").read_text().split()
NAMES = ("war_loop", "block_scan", "cp_async_off_by_one", "mbarrier_pipeline", "early_exit_lanes")
NAMES += ("divergent_barrier", "same_value")
RACES = {
    "one CTA races": "if (blockIdx.x == odd) tile[t ^ 32] = t; sum = tile[t];",
    "one of many races": "for (int i = 0; i < blockIdx.x; ++i) sum += tile[(t + i) & 63]; __syncthreads();"
    "if (blockIdx.x == odd) tile[t ^ 32] = t; sum += tile[t];",
    "values that may be the same": "tile[t & 1] = out[blockIdx.x & 3]; sum = tile[t & 1];",
    "the second order": "if (t < 32 && blockIdx.x == odd) { tile[64] = 1; } __syncthreads(); if (t == 40) tile[out[t] & 63] = 1;",
    "a long log": "for (int i = 0; i < (blockIdx.x == odd ? 300 : out[blockIdx.x] & 31); ++i) sum += tile[(t * i) & 63];",
    "a short log behind a long one": "for (int i = 0; i < (blockIdx.x < odd ? 300 : out[blockIdx.x] & 7); ++i) tile[t] += i;",
    "an old word": "if (out[blockIdx.x] & 1) tile[(out[t] + t) & 127] = 1; sum = tile[t];",
    "nobody wrote it": "if (blockIdx.x == odd) sum = tile[64 + t];",
}  # fmt: skip
ALL = {**BODIES, **MORE, **RACES}


@dataclass
class Passed:
    """The clusters that a check has replayed with their logs, and those that it has passed over."""

    replayed: list[int] = field(default_factory=list)
    clear: int = 0


def checked(launch: Launch, recorded: Recorded, work: Work, monkeypatch: pytest.MonkeyPatch, *, sweeps: bool) -> tuple[Checked, Passed]:
    """The result of a check, with or without a sweep of as few clusters as there are."""
    number, passed = recorded.entries.index(work.entry), Passed()
    histories, known = Launch.histories, sweep.Sweep.known

    def noted(of: Launch, clusters: Any) -> Any:
        passed.replayed += clusters
        return histories(of, clusters)

    def counted(one: sweep.Sweep, *given: Any) -> Any:
        found = known(one, *given)
        passed.clear += len(found)
        return found

    with monkeypatch.context() as patched:
        for module in (sweep, recorder):
            patched.setattr(module, "FEWEST", 1 if sweeps else 1 << 30)
        patched.setattr(sweep, "CORES", 1)  # several clusters in a task
        patched.setattr(Launch, "histories", noted)
        patched.setattr(sweep.Sweep, "known", counted)
        launched = LaunchedKernel(0, number, work.grid, work.block, recorded.kernels[number].cluster)
        return recorder.check(launch, recorded, launched, {}), passed


def outcome(of: Checked) -> Any:
    """All that a check says."""
    found = [(one.tolist(), row) for one, row in zip(of.collected.found, of.collected.rows, strict=True)]
    return found, of.gaps, of.left, of.tally, of.overtaken, of.unended, of.deadlocked, of.by_address, of.collected.lanes_gone


def compared(work: Work, monkeypatch: pytest.MonkeyPatch) -> Passed | None:
    """Check a launch in both ways. None: its logs are full ones."""
    recorded = work.recorded(compact=True)
    if recorded.refusal or not recorded.compact:
        return None
    launch = work.run(recorded)
    (plain, _), (swept, passed) = (checked(launch, recorded, work, monkeypatch, sweeps=sweeps) for sweeps in (False, True))
    assert outcome(swept) == outcome(plain)
    return passed


@pytest.mark.parametrize("name", ALL)
def test_the_same_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    passed = compared(work_with(ALL[name]), monkeypatch)
    assert passed is not None
    assert passed.clear + len(passed.replayed) > 0


def _read_in_captures(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The threads of a sweep that read a log while a capture of the program could see it."""
    outside, read, found = threading.local(), VirtualBackend.read_into, list[str]()

    @contextlib.contextmanager
    def entered(_: VirtualBackend) -> Iterator[None]:
        outside.entered = True
        yield
        outside.entered = False

    def noted(backend: VirtualBackend, *given: Any, **how: Any) -> None:
        if threading.current_thread() is not threading.main_thread() and not getattr(outside, "entered", False):
            found.append(threading.current_thread().name)
        read(backend, *given, **how)

    monkeypatch.setattr(VirtualBackend, "outside_captures", entered)
    monkeypatch.setattr(VirtualBackend, "read_into", noted)
    monkeypatch.setattr(cores, "_SHORT", 1)  # in threads
    assert compared(work_with(RACES["a long log"]), monkeypatch) is not None
    return found


def test_threads_that_read_logs_are_outside_of_captures(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _read_in_captures(monkeypatch) == []


def test_a_thread_within_a_capture_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, sweep, "with self.launch.backend.outside_captures():", "if True:", name="Sweep._of_task")
    assert _read_in_captures(monkeypatch)


def test_only_what_may_have_findings_is_replayed_with_its_log(monkeypatch: pytest.MonkeyPatch) -> None:
    passed = compared(work_with(RACES["one CTA races"]), monkeypatch)
    assert passed == Passed([7], 1)  # of the others all do the same
    passed = compared(work_with(RACES["a long log"]), monkeypatch)
    assert passed is not None
    assert passed.replayed == []
    assert passed.clear > 4


def of_kernels(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compared(of_twin(name), monkeypatch)
    with contextlib.suppress(Hangs):
        compared(of_twin(name, racy=True), monkeypatch)


@pytest.mark.parametrize("name", NAMES)
def test_kernels(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    of_kernels(name, monkeypatch)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", TAKEN)
def test_every_kernel(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    of_kernels(name, monkeypatch)


def of_random_programs(strategy: str, count: int, number: int, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """The clusters of so many random kernels of four programs each that were passed over, and those that were replayed."""
    clear = replayed = 0
    for batch in examples(batches(strategy, 4), number, count):
        work = Work(batch.ptx, consan.Kernel(batch.ptx).entry, (batch.grid, 1, 1), (batch.threads, 1, 1), arguments())
        try:
            passed = compared(work, monkeypatch)
        except Hangs:
            continue
        if passed is not None:
            clear, replayed = clear + passed.clear, replayed + len(passed.replayed)
    return clear, replayed


@pytest.mark.parametrize("strategy", ["synchronous", "ending"])
def test_random_programs(strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    of_random_programs(strategy, 4, 5, monkeypatch)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_many_random_programs(strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    of_random_programs(strategy, 40, 17, monkeypatch)


def test_a_sweep_that_is_ended_leaves_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """The CTAs that it has not come to are not clear, and no log of them is computed for nothing."""
    work = work_with(RACES["a long log"])
    recorded = work.recorded(compact=True)
    launch, patience = work.run(recorded), Patience(60.0, halt=ctypes.c_uint32(1))
    for module in (sweep, recorder):
        monkeypatch.setattr(module, "FEWEST", 1)
    monkeypatch.setattr(Patience, "over", lambda *_: False)
    monkeypatch.setattr(Launch, "histories", None)
    done = recorder.check(launch, recorded, LaunchedKernel(0, 0, work.grid, work.block), {}, patience=patience)
    assert done.gaps or done.left
    assert {*done.gaps, *(each.why for each in done.left.values())} == {WHY[Status.HALTED]}


FAULTS = {
    "findings are not looked at": quick(
        "sweep.hpp", "output.status != OK || output.records || output.by_address || output.overtaken", "output.status != OK"
    ),
    "too little room": quick("sweep.hpp", "longest + given_.words <= room_", "longest <= 64 * room_"),
    "the same log for all": quick(
        "sweep.hpp", "cluster * given_.one.ctas + number / given_.expansion.warps", "number / given_.expansion.warps"
    ),
    "a log by the room of another": quick("expansion.hpp", "at + sizeof value <= room_", "at + 2048 <= room_"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults(fault: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    break_checker(monkeypatch, tmp_path, (computing,), *FAULTS[fault])
    found_the_same = all(_holds(compared, work_with(body), monkeypatch) for body in (*RACES.values(), *BODIES.values()))
    assert not (found_the_same and _holds(test_only_what_may_have_findings_is_replayed_with_its_log, monkeypatch))


def _holds(test: Callable[..., Any], *given: Any) -> bool:
    try:
        test(*given)
    except AssertionError:
        return False
    return True
