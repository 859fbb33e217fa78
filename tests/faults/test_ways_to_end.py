"""Ways in which a program ends after a kernel with a race: the finding is reported each time, and the status is never 0."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from faults_support import finish, start
from sampled import but

from consan.reports.formats.json_format import loads
from consan.toolchain import find

pytestmark = pytest.mark.skipif(find.locate(find.NVRTC) is None, reason="NVRTC is not installed")

COMMON = '''
import cupy as cp
def launch(name="racy", sync=""):
    code = """extern "C" __global__ void NAME(int* out) {
        __shared__ int tile[64];
        tile[threadIdx.x] = threadIdx.x;
        SYNC
        out[threadIdx.x] = tile[63 - threadIdx.x];
    }"""
    cp.RawKernel(code.replace("NAME", name).replace("SYNC", sync), name)((1,), (64,), (cp.zeros(64, dtype=cp.int32),))
'''
HEAD = """import atexit, ctypes, multiprocessing, os, resource, signal, subprocess, sys, threading, time
from common import launch
if __name__ == "__main__":
    launch()
"""

# What the program does behind the kernel, the status that the report keeps of it, and a part of the reason why the report is incomplete.
ENDS: dict[str, tuple[str, int, str]] = {
    "the last line": ("pass", 0, ""),
    "sys.exit": ("sys.exit(3)", 3, ""),
    "an exception": ("raise RuntimeError('of the program')", 1, ""),
    "an exception of a thread": ("t = threading.Thread(target=lambda: 1 / 0); t.start(); t.join()", 0, ""),
    "with a daemon thread": ("threading.Thread(target=time.sleep, args=(60,), daemon=True).start()", 0, ""),
    "os._exit": ("os._exit(0)", 0, ""),
    "os._exit in a thread": ("threading.Thread(target=os._exit, args=(5,)).start(); time.sleep(60)", 5, ""),
    "os._exit at exit": ("atexit.register(os._exit, 0)", 0, ""),
    "a launch at exit": ("atexit.register(launch, 'second')", 0, ""),
    "exit functions of which one fails": ("atexit.register(launch, 'second'); atexit.register(lambda: 1 / 0)", 0, "ZeroDivisionError"),
    "an exit function that another one adds": ("atexit.register(lambda: atexit.register(launch, 'second'))", 0, ""),
    "an exit function that is taken back": ("atexit.register(launch, 'third'); atexit.unregister(launch)", 0, ""),
    "exit of the C library": ("ctypes.CDLL(None).exit(0)", 0, "status 0 outside of Python"),
    "_exit of the C library": ("ctypes.CDLL(None)._exit(7)", 7, "status 7 outside of Python"),
    "execv of another program": ("os.execv('/bin/true', ['true'])", 0, ""),
    "execv of Python": ("os.execv(sys.executable, [sys.executable, '-c', 'from common import *; launch(\"second\")'])", 0, ""),
    "execve with an environment": (
        "os.execve(sys.executable, [sys.executable, '-c', 'from common import *; launch(\"second\")'], {'PATH': os.environ['PATH']})",
        0,
        "",
    ),
    "execv that fails": ("\n    try: os.execv('/nowhere', ['nowhere'])\n    except OSError: launch('second')", 0, ""),
    "SIGTERM": ("os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)", 130, ""),
    "SIGINT": ("os.kill(os.getpid(), signal.SIGINT); time.sleep(60)", 130, ""),
    "SIGKILL": ("os.kill(os.getpid(), signal.SIGKILL)", 128 + signal.SIGKILL, "ended by SIGKILL"),
    "SIGSEGV": ("resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); ctypes.string_at(0)", 128 + signal.SIGSEGV, "ended by SIGSEGV"),
    "abort": ("resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); os.abort()", 128 + signal.SIGABRT, "ended by SIGABRT"),
    "SIGHUP": ("os.kill(os.getpid(), signal.SIGHUP)", 128 + signal.SIGHUP, "ended by SIGHUP"),
    "too little time": ("resource.setrlimit(resource.RLIMIT_CPU, (1, 2))\n    while True: pass", 128 + signal.SIGXCPU, "ended by SIGXCPU"),
    "too little memory": ("resource.setrlimit(resource.RLIMIT_AS, (1 << 20, -1)); bytearray(1 << 30)", 1, ""),
    "a killed thread's process": ("threading.Thread(target=os.kill, args=(os.getpid(), 9)).start(); time.sleep(60)", 137, "SIGKILL"),
    "a closed standard output": ("os.close(1)", 0, ""),
    "a forked child that leaves": ("\n    if os.fork() == 0: launch('second'); os._exit(0)\n    os.wait(); os._exit(0)", 0, ""),
    "a killed child": ("\n    if os.fork() == 0: launch('second'); os.kill(os.getpid(), 9)\n    os.wait()", 0, "child process"),
    "a child of spawn": (
        "p = multiprocessing.get_context('spawn').Process(target=launch, args=('second',)); p.start(); p.join(); os._exit(0)",
        0,
        "",
    ),
}

# What others of these show: an end of Python's, of the C library, by a signal, of a thread.
ALIKE = (
    *("sys.exit", "an exception of a thread", "with a daemon thread", "os._exit in a thread", "exit of the C library", "abort", "SIGHUP"),
    *(
        "an exit function that another one adds",
        "an exit function that is taken back",
        "execve with an environment",
        "too little time",
        "too little memory",
        "a killed thread's process",
    ),
)


def program(here: Path, end: str) -> list[str]:
    (here / "common.py").write_text(COMMON)
    (here / "script.py").write_text(HEAD + "    " + end + "\n")
    return ["run", "--device", "cpu", "-o", "r.json", "script.py"]


def kernels_found(here: Path) -> set[str]:
    return {finding.kernel for finding in loads((here / "r.json").read_text()).findings}


def test_launches_without_a_finding_are_counted_also_if_the_program_is_killed(here: Path) -> None:
    end, status, reason = ENDS["SIGKILL"]
    command = program(here, end)
    script = here / "script.py"
    script.write_text(script.read_text().replace("launch()", 'launch("clean", "__syncthreads();")'))
    assert finish(start(*command)).status == status
    report = loads((here / "r.json").read_text())
    assert (report.verdict, [(each.name, each.launches) for each in report.kernels]) == ("incomplete", [("clean", 1)])
    assert reason in " ".join(report.incomplete)


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("way", but(ALIKE, ENDS))
def test_a_race_is_reported_whatever_ends_the_program(here: Path, way: str) -> None:
    end, status, reason = ENDS[way]
    done = finish(start(*program(here, end)))
    assert done.status == 66, done
    report = loads((here / "r.json").read_text())
    assert (report.verdict, report.exit) == ("violations", status)
    assert kernels_found(here) == {"racy"} | ({"second"} if "second" in end else set())
    assert bool(report.incomplete) == bool(reason), report.incomplete
    assert reason in " ".join(report.incomplete)
    if "closed" not in way:
        assert done.out.count("== verdict: violations") == 1
