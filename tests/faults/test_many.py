"""Much of everything: launches from many threads, thousands of launches, a hundred thousand findings."""

from __future__ import annotations

import gc
import resource
import threading
import time
import tracemalloc
from typing import Any

import numpy as np
import pytest
from faults_support import MODULE

import consan
from consan.reports import render
from consan.reports.formats.json_format import dumps, loads
from consan.reports.model import Access, Finding
from consan.reports.verdict.conclusion import assemble
from consan.reports.verdict.speaking.merging import merge_findings
from consan.session.planning.options import SessionOptions
from consan.session.session import Session

KERNELS = {name: consan.Kernel(MODULE, name) for name in ("clean", "racy")}
EXPECTED = np.arange(64) ^ 32


def in_threads(count: int, work: Any) -> None:
    """Run `work(index)` in that many threads; the first error of any is raised here."""
    errors: list[BaseException] = []

    def guarded(index: int) -> None:
        try:
            work(index)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_each_of_eight_threads_gets_the_findings_of_its_own_launches() -> None:
    """`consan.launch` makes a session a call, and all sessions of a process share one device."""
    wrong: list[object] = []

    def work(index: int) -> None:
        for turn in range(6):
            name, out = ("racy", "clean")[(index + turn) % 2], np.zeros(64, np.uint32)
            report = consan.launch(KERNELS[name], 1, 64, [out, index], device="cpu")
            found = report.verdict, [(kernel.name, kernel.launches) for kernel in report.kernels if kernel.launches]
            if found != ("clean" if name == "clean" else "violations", [(name, 1)]) or (out != EXPECTED + index).any():
                wrong.append((name, found))

    in_threads(8, work)
    assert not wrong


def test_sessions_of_eight_threads_launch_in_turns() -> None:
    """Long-lived sessions: what one has found stays its own while the others launch."""
    sessions = [Session(SessionOptions(device="cpu")) for _ in range(8)]

    def work(index: int) -> None:
        session = sessions[index]
        prepared, address = session.prepare(MODULE), session.backend.alloc(256)
        for _ in range(5):
            session.launch(prepared, "racy" if index == 3 else "clean", (1, 1, 1), (64, 1, 1), [address.to_bytes(8, "little"), bytes(4)])
        session.backend.free(address)

    in_threads(8, work)
    reports = [session.report() for session in sessions]
    assert [report.verdict for report in reports] == ["violations" if index == 3 else "clean" for index in range(8)]
    assert all(sum(kernel.launches for kernel in report.kernels) == 5 for report in reports)


def test_the_first_sessions_of_eight_threads_share_one_device(monkeypatch: pytest.MonkeyPatch) -> None:
    from consan.session.modules import device as module

    slow = module.open_backend
    monkeypatch.setattr(module, "DEVICES", {})
    monkeypatch.setattr(module, "open_backend", lambda name: (time.sleep(0.05), slow(name))[1])
    devices: list[object] = []
    in_threads(8, lambda index: devices.append(module.shared_device("cpu")))
    assert len({id(device) for device in devices}) == 1


def memory_of(count: int) -> tuple[int, int]:
    """Bytes that launches leave behind: of Python's, and of the process."""
    before = tracemalloc.get_traced_memory()[0], resident()
    for index in range(count):
        out = np.zeros(64, np.uint32)
        consan.launch(KERNELS["racy" if index % 2 else "clean"], 1, 64, [out, index], device="cpu")
    gc.collect()
    return tracemalloc.get_traced_memory()[0] - before[0], resident() - before[1]


def resident() -> int:
    """Bytes of this process in memory now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


@pytest.mark.parametrize("count", [20, pytest.param(10_000, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])])
def test_launches_leave_no_memory_behind(count: int) -> None:
    tracemalloc.start()
    try:
        # The warm-up decodes the code of rare events (a wrap of the epochs), and garbage between two collections reaches its peak.
        memory_of(max(60, count // 5))
        python, process = memory_of(count)
    finally:
        tracemalloc.stop()
    assert python < 200_000
    assert process < 32 << 20


@pytest.mark.parametrize("count", [60, pytest.param(10_000, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])])
@pytest.mark.parametrize("entry", ["clean", "racy", "ends_in_trap"])
def test_launches_of_one_session_leave_no_memory_behind(count: int, entry: str) -> None:
    session = Session(SessionOptions(device="cpu"))
    prepared, address = session.prepare(MODULE), session.backend.alloc(256)
    values = [address.to_bytes(8, "little"), bytes(4)]

    def launch(times: int) -> int:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(times):
            session.launch(prepared, entry, (1, 1, 1), (64, 1, 1), values)
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before

    first = max(20, count // 5)  # what launches seldom come to (a wrap of the epochs) is decoded once
    tracemalloc.start()
    try:
        launch(first)
        grown = launch(count)
    finally:
        tracemalloc.stop()
    session.backend.free(address)
    report = session.report()
    assert grown < 100_000
    assert sum(kernel.launches for kernel in report.kernels) == first + count
    assert len(report.findings) == {"clean": 0, "racy": 1, "ends_in_trap": 2}[entry]  # a race, and the trap


def finding(site: int, block: int, **more: Any) -> Finding:
    """A race between two places, in one CTA."""
    accesses = tuple(
        Access(
            role, "st.shared.u32", file="k.cu", line=line, column=3, ptx_line=line, block=(block, 0, 0), thread=(0, 0, 0), warp=0, lane=0
        )
        for role, line in (("write", site), ("read", site + 1))
    )
    return Finding("data-race", "k", hazard="RAW", message="m", accesses=accesses, **more)


@pytest.mark.parametrize("sites", [1000, *(pytest.param(sites, marks=pytest.mark.slow) for sites in (1, 100_000))])
@pytest.mark.timeout(60)
def test_a_hundred_thousand_findings_merge_by_their_places(sites: int) -> None:
    merged = merge_findings(finding(number % sites, number // sites) for number in range(100_000))
    assert len(merged) == sites
    assert {(one.count, one.ctas) for one in merged} == {(100_000 // sites, 100_000 // sites)}


@pytest.mark.timeout(60)
def test_a_hundred_thousand_waiters_merge() -> None:
    """A deadlock lists who waits; lists must not be compared pair by pair."""
    waiters = [tuple({"block": [block, 0, 0], "warp": warp, "ptx_line": 7} for warp in range(10)) for block in range(5000)]
    (merged,) = merge_findings([Finding("deadlock", "k", waiters=one) for one in (*waiters, *waiters)])
    assert (merged.count, len(merged.waiters)) == (10_000, 50_000)
    assert merged.waiters[:10] == waiters[0]


@pytest.mark.parametrize("count", [500, pytest.param(100_000, marks=[pytest.mark.slow, pytest.mark.timeout(300)])])
def test_a_report_of_many_findings_is_written_and_read(count: int) -> None:
    report = assemble(device="cpu", findings=[finding(number, number) for number in range(count)], checked=("shared-memory",))
    assert report.verdict == "violations"
    assert loads(dumps(report)) == report
    if count <= 500:  # in words a hundred thousand take minutes, and nobody reads them
        assert render(report, "text").count("error[data-race]") == count


def test_what_the_machine_itself_finds_is_merged_as_it_comes() -> None:
    """Faults are not in the device's tables: a program may have one in each of its launches."""
    text = MODULE + ".visible .entry wild() {\n.reg .b64 %rd<2>;\nmov.u64 %rd1, 64;\nst.global.u32 [%rd1], 0;\nret;\n}\n"
    session = Session(SessionOptions(device="cpu"))
    prepared = session.prepare(text)
    for _ in range(700):
        session.launch(prepared, "wild", (1, 1, 1), (1, 1, 1), [])
    assert len(session.watch.findings) < 600
    (found,) = session.report().findings
    assert (found.kind, found.count) == ("out-of-bounds", 700)
