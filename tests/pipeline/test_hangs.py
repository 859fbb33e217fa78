"""Kernels that never end, in `check`, `run`, the Python API and pytest. What is proven is a deadlock, the rest incomplete."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import consan
from consan.__main__ import main
from consan.reports.model import Report
from consan.session.planning.options import SessionOptions
from consan.session.session import Session

SOURCE = """
extern "C" __global__ void flag(int* go, int* out) {
    __shared__ volatile int ready;
    if (threadIdx.x == 0) ready = 0;
    __syncthreads();
    if (threadIdx.x >= 32) while (ready == 0) {}
    __syncthreads();
    ready = 1;
    out[threadIdx.x] = 1;
}
extern "C" __global__ void go(int* go, int* out) {
    __shared__ int last;
    last = 1;
    while (((volatile int*)go)[3] == 0) {}
    out[threadIdx.x] = last;
}
extern "C" __global__ void later(int* go, int* out) {
    if (blockIdx.x == 0) while (*(volatile int*)go == 0) {}
    else if (blockIdx.x == gridDim.x - 1) *(volatile int*)go = 1;
}
extern "C" __global__ void bounded(int* go, int* out) {
    int looks = 0;
    while (*(volatile int*)go == 0 && looks < 100000000) ++looks;
    out[threadIdx.x] = looks;
}
extern "C" __global__ void mixed(int* go, int* out) {
    __shared__ volatile int ready;
    if (threadIdx.x == 0) ready = 0;
    __syncthreads();
    if (blockIdx.x == 0) while (ready == 0) {}
    else while (*(volatile int*)go == 0) {}
}
extern "C" __global__ void fine(int* go, int* out) { out[threadIdx.x] = 1; }
"""
LAUNCH = ["--device", "cpu", "--grid", "2", "--block", "64", "--arg", "i32[64]=zeros", "--arg", "i32[64]=zeros"]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("k.cu").write_text(SOURCE)


def launched(entry: str, grid: int = 2, *, alone: bool = True, **options: object) -> Report:
    """One launch of the entry; `alone`: nothing can run beside it."""
    session = Session(SessionOptions.of({"device": "cpu", **options}))  # type: ignore[arg-type]
    session.alone = alone
    prepared = session.prepare(consan.Kernel(SOURCE, entry).ptx)
    addresses = [session.backend.alloc(4096) for _ in range(2)]
    session.launch(prepared, entry, (grid, 1, 1), (64, 1, 1), [address.to_bytes(8, "little") for address in addresses])
    return session.report()


@pytest.mark.parametrize(
    ("entry", "polled", "markers"),
    [
        ("flag", "ready (shared offset 0, value 0)", {"while (ready == 0) {}", "    __syncthreads();\n    ready = 1"}),
        ("go", "element 3 of --arg 1 (go) (value 0)", {"while (((volatile"}),
    ],
)
def test_check_names_what_is_polled(entry: str, polled: str, markers: set[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "k.cu", "--entry", entry, *LAUNCH]) == 66
    text = " ".join(capsys.readouterr().out.split())
    assert f"Threads poll {polled} in loops that never end: no thread that is left writes there" in text
    assert f"spin, polls {polled}, at k.cu:" in text
    assert main(["check", "k.cu", "--entry", entry, *LAUNCH, "-o", "r.json"]) == 66
    data = json.loads(Path("r.json").read_text())
    (finding,) = data["findings"]
    assert (finding["kind"], finding["severity"], data["incomplete"]) == ("deadlock", "error", [])
    lines = {SOURCE[: SOURCE.index(marker)].count("\n") + 1 for marker in markers}
    assert {waiter["line"] for waiter in finding["waiters"]} == lines
    assert {waiter.get("polls") for waiter in finding["waiters"]} - {None} == {polled}


@pytest.mark.parametrize("seconds", ["0.001", "0.0000001"])
def test_a_time_limit_is_never_a_deadlock(seconds: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "k.cu", "--entry", "fine", *LAUNCH, "--timeout", seconds]) == 0
    out = capsys.readouterr().out
    assert "deadlock" not in out
    assert "verdict: incomplete" in out or "verdict: clean" in out


def test_a_bounded_spin_is_stopped_and_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    limited = launched("bounded", timeout=1.0)
    assert limited.verdict == "incomplete"
    (reason,) = limited.incomplete
    where = "; where its threads were: 4 warps of 2 CTAs (the first is (0,0,0)), 128 lanes, at "
    assert reason.startswith("bounded did not run to its end: stopped after 1 s (--timeout SECONDS)" + where)
    assert reason.endswith(", `ld.volatile.global.u32`")
    monkeypatch.setattr("consan.backends.cpu.engine.scheduler.IDLE_SECONDS", 0.5)
    given_up = launched("bounded")
    assert (given_up.verdict, given_up.findings) == ("incomplete", ())
    words = "bounded did not run to its end: stopped after its threads had polled for 0.5 s while no memory changed (--timeout SECONDS sets"
    assert given_up.incomplete[0].startswith(words)
    assert where in given_up.incomplete[0]


def test_a_cta_that_waits_for_a_later_one() -> None:
    """In one wave it ends; where the later one cannot start, nothing is proven."""
    assert launched("later", 2).verdict == "clean"
    report = launched("later", 400)
    assert (report.verdict, report.findings) == ("incomplete", ())
    assert "poll argument 1 (value 0) in loops that write nothing, and 300 CTAs had not started" in report.incomplete[0]
    assert "only a cooperative launch can rely on" in report.incomplete[0]


def test_in_a_program_the_host_may_write_global_memory() -> None:
    report = launched("go", alone=False)
    assert (report.verdict, report.findings) == ("incomplete", ())
    words = "byte 12 of argument 1 (value 0) in loops that write nothing: only the host or another launch could write it"
    assert words in report.incomplete[0]
    assert launched("flag", alone=False).verdict == "violations"


def test_each_cta_for_itself() -> None:
    """One CTA polls shared memory, which only it can write, the other global memory, which the host may write."""
    report = launched("mixed", alone=False)
    (finding,) = report.findings
    assert {tuple(waiter["block"]) for waiter in finding.waiters} == {(0, 0, 0)}
    assert "CTA (1,0,0)" in report.incomplete[0]


@pytest.mark.parametrize("stops", [True, False])
def test_a_device_that_runs_in_the_background(stops: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU: the launch returns at once, and the time limit is over while it runs."""
    session = Session(SessionOptions(device="cpu", timeout=0.5, engine="inline"), private=True)
    prepared = session.prepare(consan.Kernel(SOURCE, "fine").ptx)
    answers = iter([False, stops, True])
    monkeypatch.setattr(session.backend, "launch", lambda *args, **options: None)
    monkeypatch.setattr(session.backend, "synchronize", lambda timeout=None: next(answers, True))
    session.launch(prepared, "fine", (1, 1, 1), (64, 1, 1), [bytes(8), bytes(8)])
    reasons = tuple(session.watch.reasons)
    assert reasons[0] == "fine did not run to its end: stopped after 0.5 s (--timeout SECONDS)"
    assert reasons[1:] == (() if stops else ("fine did not react to the request to stop; the device was left to it",))
    assert (list(session.watch.endings), session.watch.findings) == (["timeout"], [])


PROGRAM = """
import pathlib, cupy as cp
module = cp.RawModule(code=pathlib.Path("k.cu").read_text())
buffers = cp.zeros(64, dtype=cp.int32), cp.zeros(64, dtype=cp.int32)
module.get_function({entry!r})((2,), (64,), buffers)
"""


@pytest.mark.parametrize(("entry", "status", "word"), [("flag", 66, "poll ready (shared offset 0, value 0)"), ("go", 67, "only the host")])
def test_run(entry: str, status: int, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("p.py").write_text(PROGRAM.format(entry=entry))
    assert main(["run", "--strict", "--device", "cpu", "-o", "r.json", "p.py"]) == status
    assert word in " ".join(capsys.readouterr().out.split())


TEST = """
import pathlib, cupy as cp
def test_it():
    module = cp.RawModule(code=pathlib.Path("k.cu").read_text())
    module.get_function("bounded")((2,), (64,), (cp.zeros(64, dtype=cp.int32), cp.zeros(64, dtype=cp.int32)))
"""


@pytest.mark.parametrize(("words", "status"), [pytest.param([], 0, marks=pytest.mark.slow), (["--consan-strict"], 1)])
def test_pytest(words: list[str], status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONSAN_TIMEOUT", "1")
    Path("test_it.py").write_text(TEST)
    given = ["-p", "no:cacheprovider", "--consan", "--consan-device", "cpu", *words]
    done = subprocess.run([sys.executable, "-m", "pytest", *given], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == status, done.stdout
    assert "bounded did not run to its end: stopped after 1 s" in done.stdout
    assert "deadlock" not in done.stdout


def test_values_are_as_the_kernel_left_them() -> None:
    out = np.zeros(64, np.int32)
    report = consan.launch(consan.Kernel(SOURCE, "flag"), 1, 64, [np.zeros(64, np.int32), out], device="cpu")
    assert (report.verdict, out.any()) == ("violations", np.False_)


NAMED = """
extern "C" __global__ void named(int* x) {
    if (threadIdx.x < 64) asm volatile("bar.sync 1, 96;" ::: "memory");
    x[blockIdx.x * 128 + threadIdx.x] = 1;
}
extern "C" __global__ void signal(int* x) {
    __shared__ unsigned long long b;
    unsigned a = (unsigned)__cvta_generic_to_shared(&b);
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 2;" :: "r"(a) : "memory");
    __syncthreads();
    if (threadIdx.x == 0) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(a) : "memory");
    asm volatile("{ .reg .pred d; A: mbarrier.try_wait.parity.shared::cta.b64 d, [%0], 0; @!d bra A; }" :: "r"(a) : "memory");
    x[blockIdx.x * 128 + threadIdx.x] = 1;
}
extern "C" __global__ void poll(int* x) {
    while (*(volatile int*)x == 0) {}
    x[1 + threadIdx.x] = 1;
}"""


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_a_command_ends_where_a_kernel_on_a_gpu_does_not() -> None:
    """The hardware may hold the threads at a barrier, so that they do not leave when the host stops the launch."""
    Path("n.cu").write_text(NAMED)
    for entry in ("named", "signal", "poll"):
        words = [sys.executable, "-m", "consan", "check", "n.cu", "--device", "gpu", "--entry", entry, "--grid", "2", "--block", "128"]
        line = [*words, "--arg", "i32[256]=zeros", "--timeout", "3"]
        done = subprocess.run(line, check=False, timeout=150, capture_output=True, text=True)  # the first fills the cache
        assert done.returncode == 66, done.stdout + done.stderr


@pytest.mark.slow  # NVRTC takes long for cooperative groups
def test_a_cta_that_does_not_come_to_the_barrier_of_the_grid(capsys: pytest.CaptureFixture[str]) -> None:
    Path("grid.cu").write_text(
        "#include <cooperative_groups.h>\n"
        'extern "C" __global__ void k(int* a) {\n'
        "    if (blockIdx.x == 1) return;\n"
        "    cooperative_groups::this_grid().sync();\n"
        "    a[threadIdx.x] = 1;\n"
        "}\n"
    )
    assert main(["check", "grid.cu", "--grid", "2", "--block", "32", "--arg", "i32[32]=zeros", "--device", "cpu"]) == 66
    text = " ".join(capsys.readouterr().out.split())
    assert "Threads wait at the barrier of the grid, and not all CTAs come there" in text
    assert "let every thread of every CTA reach grid.sync() as often as the others" in text


@pytest.mark.parametrize("initialised", [False, True])
def test_a_wait_for_what_is_no_mbarrier_says_so(initialised: bool) -> None:
    made = 'if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(bar)); __syncthreads();'
    source = f"""
    extern "C" __global__ void waits() {{
        __shared__ unsigned long long full;
        unsigned bar = (unsigned)__cvta_generic_to_shared(&full);
        {made * initialised}
        asm volatile("{{.reg .pred p; L: mbarrier.try_wait.parity.shared.b64 p, [%0], 0; @!p bra L; }}" :: "r"(bar) : "memory");
    }}"""
    report = consan.launch(consan.Kernel(source, "waits", arch="sm_90"), 1, 32, [], device="cpu")
    found = next(each for each in report.findings if each.kind == "deadlock")
    assert ("nobody has initialised it" in found.missing, "initialise it in one thread" in found.fix) == (not initialised,) * 2
