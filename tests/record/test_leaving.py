"""Recorded launches on a device that runs in the background and does not end them by itself, as a GPU: who stops them, and what is proven.

The virtual machine stands in for it: it begins a launch only once the host waits without a limit, or has signalled the threads to leave.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import twin_file
from leaving_support import SHADOW, SOURCE, Background, launched, slow_clock
from planted import break_checker, quick
from twin_file import KernelFile

import consan
from consan import api
from consan.__main__ import main
from consan.backends.base import DeviceLost
from consan.backends.cpu.state.mbarriers import MBarriers
from consan.checker.compiled import replay
from consan.checker.logs import log_lines
from consan.commands import check
from consan.commands.parts import again
from consan.instrument.record import leaving, module, record
from consan.launching.placement import placed
from consan.reports.formats.json_format import dumps
from consan.session.modules.device import Device
from consan.session.planning import plan
from consan.session.planning.options import SessionOptions
from consan.session.session import Session


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Background:
    return slow_clock(monkeypatch)


def test_a_launch_that_ends(backend: Background) -> None:
    report, out = launched(backend, "waits", 0)
    assert (report.verdict, report.findings, report.notes, backend.launches) == ("clean", (), (), 1)
    assert (out == 1).all()
    assert [each.engine for each in report.kernels if each.launches] == ["record"]


def test_a_deadlock_is_proven_by_the_record(backend: Background) -> None:
    backend.hangs = True
    report, _ = launched(backend, "waits", 1)
    assert (report.verdict, report.incomplete, backend.launches) == ("violations", (), 1)
    (finding,) = report.findings
    assert (finding.kind, finding.ctas) == ("deadlock", 2)
    assert {(waiter["why"], waiter["threads"]) for waiter in finding.waiters} == {("mbarrier", 64), ("barrier", 32)}
    assert finding.barrier.items() >= {"phase": 0, "pending": 1, "expected": 33}.items()


@pytest.mark.parametrize("owned", [True, False])
def test_without_a_proof(owned: bool, backend: Background) -> None:
    """The report says where its threads were."""
    backend.hangs = True
    report, _ = launched(backend, "counts", 300, owned=owned)
    assert (report.verdict, report.findings, backend.launches) == ("incomplete", (), 1)
    (reason,) = report.incomplete
    assert "stopped after 30 s (--timeout SECONDS); --engine inline checks it" in reason
    assert "where its threads were: 6 warps of 2 CTAs" in reason


@pytest.mark.parametrize(("rounds", "verdict"), [(100, "clean"), (3500, "incomplete")])
def test_short_loops_do_not_look(rounds: int, verdict: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """To look takes long, so the first rounds of a loop that are counted do not."""
    monkeypatch.setattr(leaving, "LONG", 0xFFFFFFFF)
    backend = Background()
    backend.hangs = True
    report, out = launched(backend, "differ", rounds, 1, 32, owned=False)
    assert report.verdict == verdict
    assert (out == (verdict == "clean")).all()


def test_a_launch_that_ends_while_it_is_stopped(backend: Background) -> None:
    backend.hangs = True
    report, out = launched(backend, "waits", 0)
    assert (report.verdict, report.notes, backend.launches) == ("clean", (), 1)
    assert (out == 1).all()


@pytest.mark.parametrize("owned", [True, False])
def test_replays_that_take_too_long(owned: bool, backend: Background, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "LONGEST_CHECK", 0.0)
    report, _ = launched(backend, "differ", 2, 3, 64, owned=owned)
    assert (report.verdict, {each.engine for each in report.kernels}) == ("incomplete", {"record"})
    assert "that would take more than 0 s (--sample N checks some, --engine inline all)" in report.incomplete[0]


@pytest.mark.slow
def test_a_full_log_is_longer_the_second_time(backend: Background, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "COMPACT", False)  # a compact log of these rounds is empty
    monkeypatch.setattr(log_lines, "MOST_LINES", 64)
    monkeypatch.setattr(log_lines, "LONG_BYTES", 1)
    report, out = launched(backend, "differ", 60, 2, 64)
    assert (report.verdict, backend.launches) == ("clean", 2)
    assert [each.engine for each in report.kernels if each.launches] == ["record"]
    assert (out == 1).all()
    report, _ = launched(Background(), "differ", 3000, 1, 64)
    assert [each.engine for each in report.kernels if each.launches] == ["record"]
    assert "1 CTA ran out of room in their logs" in report.incomplete[0]


def test_a_fault_is_looked_at_again_by_a_new_process(
    backend: Background, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def lost(timeout: float | None = None) -> bool:
        raise DeviceLost("made up", code=700, name="CUDA_ERROR_ILLEGAL_ADDRESS")

    racy = consan.launch(consan.Kernel(SOURCE, "waits"), 1, 96, [np.zeros(96, np.uint32), -31], device="cpu")
    assert racy.verdict == "violations"
    commands: list[list[str]] = []

    def run(command: list[str], **options: Any) -> None:
        commands.append(command)
        Path(command[-1]).write_text(dumps(racy))

    monkeypatch.setattr(backend, "synchronize", lost)
    monkeypatch.setattr(again.subprocess, "run", run)

    def opened(options: SessionOptions, cta_limit: int) -> Session:
        return Session(SessionOptions(engine="record"), on=Device(backend), cta_limit=cta_limit)

    monkeypatch.setattr(check, "open_session", opened)
    file = tmp_path / "k.cu"
    file.write_text(SOURCE)
    given = ["check", str(file), "--entry", "differ", "--grid", "1", "--block", "64", "--arg", "u32[64]=zeros", "--arg", "i32=2"]
    assert main([*given, "--notes"]) == 66
    (command,) = commands
    assert command[1:-1] == ["-m", "consan", *given, "--notes", "--device", "cpu", "--timeout", "60", "--format", "json", "-o"]
    told = " ".join(capsys.readouterr().out.split())
    assert "checked again on the virtual machine (--device cpu) in a new process" in told
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in told


@pytest.mark.parametrize("known", [True, False], ids=["arrays", "an address"])
def test_a_fault_in_the_api_is_looked_at_by_the_virtual_machine(known: bool, backend: Background, monkeypatch: pytest.MonkeyPatch) -> None:
    """More arrivals than the count end a launch on a chip, and take its log."""

    def lost(timeout: float | None = None) -> bool:
        raise DeviceLost("made up", code=719, name="CUDA_ERROR_LAUNCH_FAILED")

    def opened(options: SessionOptions) -> Session:
        return Session(options, on=Device(backend, arena_bytes=SHADOW) if options.device == "gpu" else None)

    monkeypatch.setattr(backend, "synchronize", lost)
    monkeypatch.setattr(api, "Session", opened)
    out = np.zeros(96, np.uint32)
    words = out if known else int(backend.alloc(out.nbytes)).to_bytes(8, "little")
    report = consan.launch(consan.Kernel(SOURCE, "waits"), 1, 96, [words, -31], device="gpu", engine="record")
    assert any("CUDA_ERROR_LAUNCH_FAILED (one cause: more arrivals" in why for why in report.incomplete)
    assert (out == 0).all()  # nothing came back
    assert report.verdict == "violations"
    assert "fault" in {finding.kind for finding in report.findings}
    assert ("barrier-misuse" in {finding.kind for finding in report.findings}) == known
    assert any("checked again on the virtual machine" in note for note in report.notes) == known


def test_a_kernel_that_no_loop_can_hold_up_has_no_looks() -> None:
    plain = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n"
    assert "%clock" not in record(plain, leaves=True).ptx


POLL = """
extern "C" __global__ void polls(unsigned* out, int missing) {
    volatile unsigned* flag = out + 64;
    if (blockIdx.x == 1 && !missing) { out[0] = 1; __threadfence(); *flag = 1; }
    if (blockIdx.x == 0) { while (*flag == 0); __threadfence(); out[1] = out[0]; }
}
"""


@pytest.mark.parametrize("compact", [True, False], ids=["compact", "full"])
@pytest.mark.parametrize("missing", [1, 0], ids=["never set", "set"])
def test_a_poll_of_a_flag(missing: int, compact: bool, backend: Background, monkeypatch: pytest.MonkeyPatch) -> None:
    """A round that leaves nothing looks whether the host stops the launch, and a log that ends there is read."""
    monkeypatch.setattr(module, "COMPACT", compact)
    backend.hangs = bool(missing)
    session = Session(SessionOptions(engine="record", global_memory="on"), on=Device(backend, arena_bytes=SHADOW))
    prepared = session.prepare(consan.Kernel(POLL, "polls").module, name="polls.cu")
    assert prepared.recorded is not None
    assert prepared.recorded.compact is compact
    out = backend.alloc(512)
    backend.write(out, bytes(512))
    session.launch(prepared, "polls", (2, 1, 1), (1, 1, 1), [out.to_bytes(8, "little"), missing.to_bytes(4, "little")])
    report = session.report()
    assert (report.verdict, report.findings, len(report.incomplete)) == ("incomplete" if missing else "clean", (), missing)
    assert "did not run to its end" in "".join(report.incomplete) or not missing


def _launched(twin: str, racy: bool, backend: Background) -> tuple[Any, KernelFile]:
    """The report on a launch of a twin, by its path in the folder of kernels; and its file."""
    path = Path(twin_file.__file__).parent / twin
    spec = twin_file.read(path)
    session = Session(on=Device(backend, arena_bytes=SHADOW))
    prepared = session.prepare(twin_file.kernel(path, racy).module, name=path.name)
    with placed(session) as placement:
        values = placement.parameters(spec.parameters(spec.fresh_args()), "argument")
        session.launch(prepared, "kernel", spec.grid, spec.block, values, shared=spec.smem)
    return session.report(), spec


@pytest.mark.parametrize("name", ["lock_without_fence", "progress_off_by_one", "store_ends_release_sequence"])
@pytest.mark.parametrize("racy", [True, False], ids=["racy", "repaired"])
def test_polls_of_global_memory(name: str, racy: bool, backend: Background) -> None:
    """The number of a poll's block is stored behind its words, also where a round leaves nothing."""
    report, _ = _launched(f"global/{name}.cu", racy, backend)
    assert ("global-memory" in report.checked, report.verdict) == (True, "violations" if racy else "clean"), report


def _bytes_at_once(backend: Background, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, KernelFile]:
    """The launch of a twin in which the bytes of a warp's st.async pass the number that is expected, so that the phase never ends."""
    monkeypatch.setattr(MBarriers, "completion", lambda self, unit, size, times=1: lambda: self.signal(unit, tx=-size * times))
    backend.hangs = True
    return _launched("twins/cluster_st_async_bytes_short.cu", True, backend)


def test_bytes_of_a_warp_that_complete_at_once(backend: Background, monkeypatch: pytest.MonkeyPatch) -> None:
    """A replay takes the stores one after the other: its phase ends before the last one."""
    report, spec = _bytes_at_once(backend, monkeypatch)
    assert report.verdict == "violations"
    assert [finding.kind for finding in report.findings] == ["barrier-misuse"]
    places = [*report.findings[0].pair, *(more for access in report.findings[0].pair for more in access.inlined)]
    assert all(spec.markers[name] & {place.line for place in places} for name in ("push", "expect"))


# Whether the last wait of a thread is compared with what happened in the launch.
WAIT_PASSED = quick("mbarriers.hpp", "object.pending == object.expected && last != object.seen_at.end()", "false")


def test_a_wait_that_failed_in_the_launch_is_compared(backend: Background, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without that nothing is found in a launch whose phase never ended."""
    break_checker(monkeypatch, tmp_path, (replay,), *WAIT_PASSED)
    assert _bytes_at_once(backend, monkeypatch)[0].findings == ()


def test_rounds_of_a_failed_wait_are_not_counted() -> None:
    """The host takes a wait once."""
    path = Path(twin_file.__file__).parent / "twins" / "bulk_bytes_never_come.cu"
    recorded = record(twin_file.kernel(path, True).ptx, leaves=True)
    assert recorded.compact
    assert re.search(r"\bW:\s*mbarrier\.try_wait", recorded.ptx)


def test_a_kernel_that_records_nothing_stores_nothing(backend: Background) -> None:
    report, out = launched(backend, "adds", 0, grid=5)
    assert (report.verdict, [(each.ctas, each.histories) for each in report.kernels if each.launches]) == ("clean", [(5, 1)])
    assert (out == 1).all()
    plain = consan.Kernel(SOURCE, "adds").ptx
    recorded = record(plain, leaves=True, compact=False)
    assert recorded.kernel("adds").silent
    assert recorded.ptx.partition("adds(")[2].partition(".entry")[0].count("__consan") == 0


@pytest.mark.parametrize(("word", "due"), [("try_wait", False), ("test_wait", True)])
def test_a_wait_that_has_waited_long_looks_each_time(word: str, due: bool) -> None:
    """A try_wait fails after its time limit only: threads that looked in a slice of the clock would leave after seconds."""
    plain = consan.Kernel(SOURCE.replace("test_wait", word), "waits").ptx
    behind = record(plain, leaves=True).ptx.partition("waits(")[2].partition(f"mbarrier.{word}")[2].partition("[__consan_record+8]")[0]
    assert behind
    assert ("%clock" in behind) == due
