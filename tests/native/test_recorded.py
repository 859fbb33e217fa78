"""Native programs whose launches are recorded (`--engine record`). The made-up driver writes a record of the virtual machine."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from native_case import STATUS, Case, options

from consan.checker.collected import LaunchedKernel
from consan.checker.recorder import start
from consan.instrument.record import module, text
from consan.instrument.record.templates import LINE_BYTES
from consan.native.build import compiler
from consan.options import RECORD
from consan.reports.model import INCOMPLETE, VIOLATIONS, Report
from consan.session.session import Session
from consan.session.variables import keeps_state

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C compiler")
GRID, BLOCK, WARPS = (4, 1, 1), (256, 1, 1), 32
ASKED = options(engine=RECORD)


@pytest.fixture(autouse=True)
def _full_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The virtual machine's record has every word."""
    monkeypatch.setattr(module, "COMPACT", False)


@pytest.fixture(scope="module")
def trace(case: Case, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The record that the racy kernel leaves, for the driver."""
    session = Session(device="cpu", engine=RECORD, private=True, global_memory="off")
    prepared, backend = session.prepare(Path(case.image("ptx")).read_text()), session.backend
    assert prepared.recorded is not None
    launched = LaunchedKernel(prepared.number, 0, GRID, BLOCK, (1, 1, 1))
    launch = start(session.device.logs, prepared.loaded, prepared.recorded, launched, 1 << 28)
    buffers = [backend.alloc(4096).to_bytes(8, "little"), backend.alloc(16).to_bytes(8, "little")]
    backend.launch(prepared.loaded, "sums", GRID, BLOCK, buffers)
    places = launch.places()
    arena, hashes = (int.from_bytes(places[at : at + 8], "little") for at in (text.ARENA, text.HASHES))
    hashed, used = backend.read(hashes, 4 * 256 * text.HASH_BYTES), _used(backend, arena, launch.lines)
    window, nbytes = launch.window()
    path = tmp_path_factory.mktemp("trace") / "trace"
    logs = b"".join(backend.read(arena + warp * launch.lines * LINE_BYTES, used * LINE_BYTES) for warp in range(WARPS))
    path.write_bytes(struct.pack("<IIQQ", window, nbytes, len(hashed), used) + hashed + logs)
    return {"FAKE_CUDA_TRACE": str(path)}


def _used(backend: object, arena: int, lines: int) -> int:
    """The lines of a warp's log that any warp has written to."""
    logs = [np.frombuffer(backend.read(arena + warp * lines * LINE_BYTES, (lines - 1) * LINE_BYTES), "<u4") for warp in range(WARPS)]  # type: ignore[attr-defined]
    return max(int(np.flatnonzero(log).max()) // (LINE_BYTES // 4) + 1 for log in logs)


def engines(report: Report) -> dict[str, int]:
    return {kernel.engine: kernel.launches for kernel in report.kernels if kernel.launches}


@pytest.mark.parametrize("loader", ["cuModuleLoadData", "cuLibraryLoadData"])
@pytest.mark.parametrize("launcher", ["cuLaunchKernel", "cuLaunchKernelEx"])
def test_each_launch_is_recorded_and_judged(launcher: str, loader: str, trace: dict[str, str], case: Case) -> None:
    status, report, handed = case.run("asked", loader, case.image("ptx"), launcher, "again", "again", given=ASKED, **trace)
    assert (status, report.verdict, engines(report)) == (STATUS, VIOLATIONS, {"record": 3})
    assert [(finding.kind, finding.ctas, finding.count) for finding in report.findings] == [("data-race", 4, 3 * 4 * 256 * 255)]
    assert handed == [f"{loader} elf that records", *[f"{launcher} sums"] * 3]
    assert not report.uninstrumented


def test_without_being_asked_hooks_are_called(trace: dict[str, str], case: Case) -> None:
    _, report, _ = case.run("asked", "cuModuleLoadData", case.image("ptx"), **trace)
    assert (report.verdict, engines(report)) == (VIOLATIONS, {"inline": 1})


@pytest.mark.parametrize(
    ("how", "words", "ran"),
    [
        ("asked", ("cuLaunchKernel", "capture", "again"), {"record": 1}),
        ("asked", ("cuLaunchKernelEx", "graph"), {"record": 1, "inline": 4}),
        ("threads", ("cuLaunchKernel",), {"inline": 1}),
        ("asked", ("cuLaunchCooperativeKernelMultiDevice",), {"inline": 2}),
    ],
    ids=["a launch into a graph", "a graph", "a thread's default stream", "several devices"],
)
def test_what_no_launch_follows_takes_hooks(
    how: str, words: tuple[str, ...], ran: dict[str, int], trace: dict[str, str], case: Case
) -> None:
    more = trace | {"FAKE_CUDA_RING": ""}
    status, report, handed = case.run(how, "cuModuleLoadData", case.image("ptx"), *words, given=ASKED, **more)
    assert (status, engines(report)) == (STATUS, ran)
    assert "cuModuleLoadDataEx elf with hooks" in handed
    assert not report.incomplete


def test_a_launch_that_the_driver_refuses_is_none(case: Case) -> None:
    status, report, _ = case.run("asked", "cuModuleLoadData", case.image("ptx"), given=ASKED)
    assert (status, report.verdict, engines(report)) == (5, INCOMPLETE, {}), "the program ends at the driver's error"


def test_a_handle_that_consan_has_not_seen_is_known_by_its_name(trace: dict[str, str], case: Case) -> None:
    _, report, _ = case.run("asked", "cuModuleLoadData", case.image("ptx"), "cuLaunchKernel", "unseen", "again", given=ASKED, **trace)
    assert (engines(report), report.uninstrumented, report.incomplete) == ({"record": 2}, (), ())


@pytest.mark.slow
def test_threads(trace: dict[str, str], case: Case) -> None:
    _, report, _ = case.run("asked", "cuModuleLoadData", case.image("ptx"), "cuLaunchKernel", "threads", given=ASKED, **trace)
    assert (report.verdict, engines(report)) == (VIOLATIONS, {"record": 401})


def test_a_module_with_a_variable_takes_hooks() -> None:
    kernel = ".visible .entry k() {{ .reg .b64 %r; mov.u64 %r, {}; ret; }}\n"
    head = ".version 8.0\n.target sm_90\n.address_size 64\n"
    assert keeps_state(head + ".visible .global .u32 count;\n" + kernel.format("count")) == "count"
    assert keeps_state(head + ".const .u32 table[2] = {1, 2};\n" + kernel.format("table")) == "table"
    assert keeps_state(head + ".global .u32 unused;\n" + kernel.format("0")) == ""
    assert keeps_state(head + ".global .align 1 .b8 $str[3] = {65, 66, 0};\n" + kernel.format("$str")) == ""
    assert keeps_state(head + ".shared .u32 tile[4];\n" + kernel.format("tile")) == ""
