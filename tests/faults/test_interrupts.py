"""Ctrl-C and SIGTERM, in `check` and in `run`: no traceback, status 130, and what was found before is reported."""

from __future__ import annotations

import html
import os
import re
import signal
import subprocess
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from faults_support import ARGS, LAUNCH, MODULE, Outcome, finish, start

import consan
from consan._errors import UsageError
from consan.reports import render
from consan.reports.formats.json_format import loads
from consan.session.planning.options import SessionOptions
from consan.session.session import Session

pytestmark = pytest.mark.usefixtures("ctrl_c")

PROMPT = 10  # seconds; it takes one, but this machine may be busy

KERNEL = '''
import sys, pathlib, threading, numpy as np, consan
sys.stdout.reconfigure(line_buffering=True)
import cupy as cp
CODE = """extern "C" __global__ void racy(int* out) {
    __shared__ int tile[64];
    tile[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = tile[63 - threadIdx.x];
}
extern "C" __global__ void spin(int* out) { unsigned n = 0; while (*(volatile int*)out < 1000 && n != ~0u) ++n; out[1] = n; }"""
module = cp.RawModule(code=CODE)
out = cp.zeros(64, dtype=cp.int32)
from consan.backends.virtual import VirtualBackend
module.get_function("racy")((1,), (64,), (out,))
'''
SPIN = """launch = VirtualBackend.launch
VirtualBackend.launch = lambda *a, **k: (pathlib.Path('running').touch(), launch(*a, **k))[1]
module.get_function('spin')((1,), (64,), (out,))
"""


def interrupted(process: subprocess.Popen[str], when: str, number: int = signal.SIGINT, *, alone: bool = False) -> Outcome:
    """Ctrl-C, or another signal, once the process has made the file `when`, and a moment later."""
    end = time.monotonic() + 60
    while not Path(when).exists() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(0.3)
    (os.kill if alone else os.killpg)(process.pid, number)
    began = time.monotonic()
    done = finish(process)
    assert time.monotonic() - began < PROMPT
    return done


# Makes the file `running` a second after the launch, when the kernel has raced and spins.
WATCHED = """
import pathlib, sys, threading
from consan.__main__ import main
from consan.backends.virtual import VirtualBackend
launch = VirtualBackend.launch
def watched(*a, **k):
    threading.Timer(1, pathlib.Path("running").touch).start()
    return launch(*a, **k)
VirtualBackend.launch = watched
sys.exit(main(sys.argv[1:]))
"""


def test_check_reports_what_it_has(here: Path) -> None:
    """The kernel races, then spins."""
    Path("w.py").write_text(WATCHED)
    words = ["check", "k.ptx", "--entry", "spin", *LAUNCH, *ARGS, "-o", "r.json"]
    process = subprocess.Popen(
        [os.sys.executable, "w.py", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    done = interrupted(process, "running")
    assert not done.crashed, done
    report = loads(Path("r.json").read_text())
    assert [finding.kind for finding in report.findings] == ["data-race"]
    (reason,) = report.incomplete
    where = "warps 0 and 1 of CTA (0,0,0), 64 lanes, at PTX line"
    assert reason.startswith(f"spin did not run to its end: interrupted; where its threads were: {where}")
    assert reason in " ".join(render(report, "text").replace("\n", " ").split())
    assert html.escape(reason) in render(report, "html")
    assert (report.exit, report.verdict, done.status) == (130, "violations", 66)


@pytest.mark.parametrize(
    ("ending", "status", "place"),
    [
        (SPIN, 66, "script.py:17"),
        ("pathlib.Path('running').touch()\nwhile True: pass", 66, "script.py:16"),
        ("threading.Thread(target=lambda: (pathlib.Path('running').touch(), threading.Event().wait(5))).start()", 66, ""),
    ],
    ids=["in a launch", "in the program", "waiting for a thread"],
)
def test_run_reports_what_it_has(here: Path, ending: str, status: int, place: str) -> None:
    Path("script.py").write_text(KERNEL + ending + "\n")
    done = interrupted(start("run", "--device", "cpu", "-o", "r.json", "script.py"), "running")
    assert not done.crashed, done
    report = loads(Path("r.json").read_text())
    assert (report.exit, done.status) == (130, status)
    assert [finding.kernel for finding in report.findings if finding.kind == "data-race"] == ["racy"]
    assert "data-race" in done.out
    if place:
        assert f"consan: interrupted at {here / place}" in done.err
    reasons = [reason for reason in report.incomplete if reason.startswith("spin did not run to its end: interrupted")]
    assert len(reasons) == ("spin" in ending)
    for reason in reasons:
        assert reason in " ".join(done.out.split())
        assert re.search(r"warps 0 and 1 of CTA \(0,0,0\), 64 lanes, at \S+:10:\d+, `ld.volatile.global.u32`$", reason), reason


FORKED = """import multiprocessing, time
def work(): time.sleep(60)
child = multiprocessing.get_context("fork").Process(target=work)
child.start()
child.terminate()
child.join()
print("child:", child.exitcode)
"""
FOR_GOOD = """import os, signal, time
pathlib.Path("running").touch()
try:
    time.sleep(60)
except KeyboardInterrupt:
    os.kill(os.getpid(), signal.SIGTERM)
"""


def test_sigterm_reports_what_there_is(here: Path) -> None:
    """What `timeout` and batch systems send. A process that the program has forked ends as ever."""
    Path("script.py").write_text(KERNEL + FORKED + SPIN)
    done = interrupted(start("run", "--device", "cpu", "-o", "r.json", "script.py"), "running", signal.SIGTERM)
    assert not done.crashed, done
    report = loads(Path("r.json").read_text())
    assert (report.exit, report.verdict, done.status) == (130, "violations", 66)
    assert any("spin did not run to its end: interrupted; where its threads were: warps 0 and 1" in reason for reason in report.incomplete)
    assert f"child: {-signal.SIGTERM}" in done.out


# A race, then rounds whose replay takes half a minute or more: each has a store, since rounds that only load are not replayed.
# The file `running` is made some time after `OWNER.NAME` began.
LONG = '''
import importlib, pathlib, threading
import cupy as cp
CODE = """extern "C" __global__ void racy(int* out, int rounds) {
    __shared__ int tile[1024];
    __shared__ volatile int own[1024];
    int t = threadIdx.x, sum = 0;
    tile[t] = t;
    out[t] = tile[t ^ 32];
    __syncthreads();
    for (int i = 0; i < rounds; ++i) own[t] = sum += tile[(t + i * i) & 1023];
    out[t] += sum;
}"""
owner = importlib.import_module("OWNER")
for word in "NAME".split(".")[:-1]: owner = getattr(owner, word)
name = "NAME".split(".")[-1]
call = getattr(owner, name)
def marked(*words, **options):
    threading.Timer(AFTER, pathlib.Path("running").touch).start()
    done = call(*words, **options)
    return done
setattr(owner, name, marked)
out = cp.zeros(1024, dtype=cp.int32)
cp.RawModule(code=CODE).get_function("racy")((1,), (1024,), (out, cp.int32(ROUNDS)))
'''
MOMENTS = {
    "its log is read": (
        "consan.checker.logs.launch",
        "Launch.grouped",
        0,
        60_000,
        ["1 CTA were not checked, but for the beginning of the first: it was interrupted"],
    ),
    "its replay": ("consan.checker.judging.recorder", "replay", 3, 25_000, ["1 CTA were replayed in part: the time was over"]),
    "its fixes are sought": ("consan.session.executing.recording", "Recording.fixes_of", 0, 10, []),
}


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_a_signal_once_the_launch_is_over(here: Path, moment: str, number: int) -> None:
    """The report comes within a second of an idle machine, with what was found."""
    owner, name, after, rounds, reasons = MOMENTS[moment]
    script = LONG.replace("OWNER", owner).replace("NAME", name).replace("AFTER", str(after)).replace("ROUNDS", str(rounds))
    if "fixes" in moment:
        script = script.replace("    done = call", "    import time; time.sleep(60)\n    done = call")
    Path("script.py").write_text(script)
    done = interrupted(start("run", "--device", "cpu", "-o", "r.json", "script.py"), "running", number)
    assert not done.crashed, done
    report = loads(Path("r.json").read_text())
    assert (report.exit, list(report.incomplete)) == (130, [f"racy: {each}" for each in reasons])
    assert ([each.kind for each in report.findings], done.status) == (["data-race"], 66)
    assert report.kernels[0].launches == 1


def test_a_second_sigterm_ends_the_program_but_not_the_report(here: Path) -> None:
    Path("script.py").write_text(KERNEL + FOR_GOOD)
    done = interrupted(start("run", "--device", "cpu", "-o", "r.json", "script.py"), "running", signal.SIGTERM)
    assert (done.status, loads(Path("r.json").read_text()).exit) == (66, 128 + signal.SIGTERM)
    assert "consan: the program was ended by SIGTERM" in done.err


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_a_signal_to_the_supervisor_alone_reaches_the_program_once(here: Path, number: int) -> None:
    """A second one would end it: the program needs a moment for its own end."""
    ending = "import time\ntry: pathlib.Path('running').touch(); time.sleep(60)\nfinally: time.sleep(0.5); print('an end', flush=True)\n"
    for alone in (True, False):
        Path("running").unlink(missing_ok=True)
        Path("script.py").write_text(KERNEL + ending)
        done = interrupted(start("run", "--device", "cpu", "-o", "r.json", "script.py"), "running", number, alone=alone)
        assert (done.status, loads(Path("r.json").read_text()).exit) == (66, 130)
        assert done.out.count("an end") == 1


def test_a_killed_supervisor_takes_the_program_with_it(here: Path) -> None:
    Path("script.py").write_text(KERNEL + "pathlib.Path('running').touch()\nimport time; time.sleep(60)\n")
    began = time.monotonic()
    done = interrupted(start("run", "--device", "cpu", "-o", "r.json", "script.py"), "running", signal.SIGKILL, alone=True)
    assert done.status == -signal.SIGKILL
    assert time.monotonic() - began < 50  # its end closes the pipes
    assert "data-race" in done.out


def test_a_clean_program_that_is_interrupted_ends_with_130(here: Path) -> None:
    Path("script.py").write_text("import pathlib, time\npathlib.Path('running').touch()\ntime.sleep(60)\n")
    done = interrupted(start("run", "--device", "cpu", "script.py"), "running")
    assert not done.crashed, done
    assert done.status == 130
    assert "verdict: incomplete" in done.out  # nothing was launched


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of the Ctrl-C that was lost
def test_the_device_works_after_an_interrupted_launch() -> None:
    session = Session(SessionOptions(device="cpu", engine="inline"))
    prepared = session.prepare(MODULE)
    address = session.backend.alloc(256)
    values = [address.to_bytes(8, "little"), bytes(4)]
    main_thread = threading.main_thread().ident
    assert main_thread is not None
    done, ring = threading.Event(), session.shadow.ring  # its lock is held while the kernel runs

    def interrupt() -> None:
        """Ctrl-C once the race is recorded. Python loses one that comes while an object is being freed, so it comes again."""
        while not ring.any() and not done.wait(0.05):
            pass
        while not done.wait(1.0):
            signal.pthread_kill(main_thread, signal.SIGINT)

    timer = threading.Thread(target=interrupt)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            session.launch(prepared, "spin", (1, 1, 1), (64, 1, 1), values)
    finally:
        done.set()
        timer.join()
    assert session.report().verdict == "violations"
    for name, verdict in (("clean", "clean"), ("racy", "violations"), ("clean", "clean")):
        out = np.zeros(64, np.uint32)
        report = consan.launch(consan.Kernel(MODULE, name), 1, 64, [out, 5], device="cpu")
        assert report.verdict == verdict
        np.testing.assert_array_equal(out, (np.arange(64) ^ 32) + 5)
    session.backend.free(address)


def test_a_launch_that_is_refused_on_its_way_is_not_forgotten() -> None:
    """A program may catch the error and go on: the verdict must not be `clean` for a kernel that stopped half way."""
    refused = MODULE + ".visible .entry refused() {\n.reg .b32 %r<2>;\n.reg .b64 %rd<2>;\n"
    refused += "suq.width.b32 %r1, [%rd1];\nret;\n}\n"
    session = Session(SessionOptions(device="cpu"))
    prepared = session.prepare(refused)
    address = session.backend.alloc(256)
    session.launch(prepared, "clean", (1, 1, 1), (64, 1, 1), [address.to_bytes(8, "little"), bytes(4)])
    with pytest.raises(UsageError, match=r"suq\.width"):
        session.launch(prepared, "refused", (1, 1, 1), (64, 1, 1), [])
    report = session.report()
    assert report.verdict == "incomplete"
    ended = "refused did not run to its end: the PTX virtual machine does not execute 'suq"
    assert any(reason.startswith(ended) for reason in report.incomplete)


def test_a_launch_that_is_bad_usage_leaves_the_verdict_alone() -> None:
    session = Session(SessionOptions(device="cpu"))
    prepared = session.prepare(MODULE)
    address = session.backend.alloc(256)
    values = [address.to_bytes(8, "little"), bytes(4)]
    session.launch(prepared, "clean", (1, 1, 1), (64, 1, 1), values)
    with pytest.raises(UsageError, match="not possible"):
        session.launch(prepared, "clean", (0, 1, 1), (64, 1, 1), values)
    assert session.report().verdict == "clean"
