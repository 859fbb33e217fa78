"""`consan run` on programs that start processes: what those launch is in the one report."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from sampled import but

from consan.adapters import DEVICES, adapters
from consan.process import children
from consan.reports.formats.json_format import dumps
from consan.reports.model import KernelSummary
from consan.reports.verdict.conclusion import assemble
from consan.toolchain import find

needs_nvrtc = pytest.mark.skipif(find.locate(find.NVRTC) is None, reason="NVRTC is not installed")
COMMON = r'''
SOURCE = r"""
extern "C" __global__ void NAME(const float *x, float *y) {
    __shared__ float tile[64];
    tile[threadIdx.x] = x[threadIdx.x];
    SYNC
    y[threadIdx.x] = tile[63 - threadIdx.x];
}
"""
def launch(name):
    import cupy as cp
    sync = "" if name == "racy" else "__syncthreads();"
    kernel = cp.RawKernel(SOURCE.replace("NAME", name).replace("SYNC", sync), name)
    x, y = cp.arange(64, dtype=cp.float32), cp.zeros(64, dtype=cp.float32)
    kernel((1,), (64,), (x, y))
    return name
'''
MULTIPROCESSING = """
import multiprocessing, sys
from common import launch
if __name__ == "__main__":
    launch("of_parent")
    context = multiprocessing.get_context(sys.argv[1])
    if sys.argv[2] == "pool":
        with context.Pool(2) as pool:
            print(pool.map(launch, ["clean", "racy"]))
    else:
        child = context.Process(target=launch, args=("racy",))
        child.start()
        child.join()
        sys.exit(child.exitcode)
"""
SUBPROCESS = """
import subprocess, sys
subprocess.run([sys.executable, "-c", "from common import launch; launch('racy')"], check=True)
subprocess.run([sys.executable, "-c", "import sys; sys.exit('cupy' in sys.modules or 'consan' in sys.modules)"], check=True)
"""
KILLED = """
import os, signal
from common import launch
if os.fork() == 0:
    launch("clean")
    os.kill(os.getpid(), signal.SIGKILL)
os.wait()
launch("of_parent")
"""
RETURNS = """
import os
import re
from common import launch
launch("of_parent")
if os.fork():
    os.wait()
else:
    launch("racy")
"""
ENDS = """
import multiprocessing, os, signal, sys, threading, time
import cupy as cp
from common import SOURCE, launch
def hangs():
    kernel = cp.RawKernel(SOURCE.replace("NAME", "hangs").replace("SYNC", "while (x[0] == 0) __syncthreads();"), "hangs")
    kernel.compile()
    threading.Thread(target=lambda: (time.sleep(1), os.kill(os.getpid(), signal.SIGTERM))).start()
    kernel((1,), (64,), (cp.arange(64, dtype=cp.float32), cp.zeros(64, dtype=cp.float32)))
def refused():
    from consan._errors import NotSupported
    raise NotSupported("no sparse arrays")
def fails():
    raise ValueError("mine")
if __name__ == "__main__":
    launch("of_parent")
    child = multiprocessing.get_context(sys.argv[1]).Process(target=globals()[sys.argv[2]])
    child.start()
    child.join()
"""
CHILD_ENDS = {
    "hangs": "hangs did not run to its end: its process was ended",
    "refused": "consan ended a process of the program: no sparse arrays",
    "fails": "a process of the program ended by ValueError, and consan stands in for its GPU",
}


def run(folder: Path, script: str, *words: str, traceback: bool = False) -> tuple[int, dict[str, Any], str]:
    """The status, the report and the output; the temporary folder has a short name, for forkserver binds a socket in it."""
    (folder / "common.py").write_text(COMMON)
    (folder / "script.py").write_text(script)
    command = [sys.executable, "-m", "consan", "run", "--device", "cpu", "-o", "r.json", "script.py", *words]
    with tempfile.TemporaryDirectory(dir="/tmp") as temporary:
        environment = {**os.environ, "TMPDIR": temporary}
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False)
        assert traceback or "Traceback" not in done.stderr, done.stderr
        assert not [path for path in Path(temporary).iterdir() if path.name.startswith("consan")]
    return done.returncode, json.loads((folder / "r.json").read_text()), done.stdout


def launches(report: dict[str, Any]) -> dict[str, int]:
    return {kernel["name"]: kernel["launches"] for kernel in report["kernels"] if kernel["launches"]}


WAYS = ("fork process", "fork pool", "spawn process", "forkserver process")


@needs_nvrtc
@pytest.mark.parametrize("words", but(["fork process", "spawn process"], WAYS))
def test_multiprocessing(tmp_path: Path, words: str) -> None:
    status, report, _ = run(tmp_path, MULTIPROCESSING, *words.split())
    expected = {"of_parent": 1, "racy": 1} | ({"clean": 1} if words.endswith("pool") else {})
    assert (status, report["verdict"], report["incomplete"]) == (66, "violations", [])
    assert launches(report) == expected
    assert [finding["kernel"] for finding in report["findings"]] == ["racy"]
    assert f"{len(expected) - 1} child process" in report["notes"][-1]
    assert report["sources"]


@needs_nvrtc
def test_a_subprocess(tmp_path: Path) -> None:
    """The parent launches nothing itself, which is no gap then; a process that uses no framework imports nothing of consan."""
    status, report, _ = run(tmp_path, SUBPROCESS)
    assert (status, launches(report), report["incomplete"]) == (66, {"racy": 1}, [])
    assert report["exit"] == 0


@needs_nvrtc
def test_a_forked_child_that_comes_back_prints_no_report_of_its_own(tmp_path: Path) -> None:
    status, report, output = run(tmp_path, RETURNS)
    assert (status, launches(report)) == (66, {"of_parent": 1, "racy": 1})
    assert output.count("== verdict") == 1


@needs_nvrtc
def test_a_child_that_was_killed_makes_the_run_incomplete(tmp_path: Path) -> None:
    status, report, _ = run(tmp_path, KILLED)
    assert (status, report["verdict"], launches(report)) == (67, "incomplete", {"of_parent": 1, "clean": 1})
    assert "launched kernels and did not report at its end" in report["incomplete"][0]


SLOW_ENDS = ("fork refused", "fork fails", "spawn hangs", "spawn fails")


@needs_nvrtc
@pytest.mark.parametrize("words", but(SLOW_ENDS, [f"{method} {how}" for method in ("fork", "spawn") for how in CHILD_ENDS]))
def test_a_child_whose_launch_or_work_was_cut_off_makes_the_run_incomplete(tmp_path: Path, words: str) -> None:
    status, report, _ = run(tmp_path, ENDS, *words.split(), traceback=True)
    assert (status, report["verdict"], report["incomplete"]) == (67, "incomplete", [CHILD_ENDS[words.split()[1]]])


def test_the_next_sitecustomize_runs_and_the_path_is_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import builtins\nbuiltins.ran = True\n")
    told = {"folder": str(tmp_path), "prefix": os.path.realpath(sys.prefix), "options": {"device": "cpu"}}
    startup = Path(children.__file__).with_name("startup")
    environment = {**os.environ, "PYTHONPATH": f"{startup}{os.pathsep}{tmp_path}", children.VARIABLE: json.dumps(told)}
    code = f"import sys; print(ran, {str(startup)!r} in sys.path, len([f for f in sys.meta_path if type(f).__name__ == '_Trigger']))"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("True False 1\n", "")
    told["prefix"] = "/another"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**environment, children.VARIABLE: json.dumps(told)}, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("True False 0\n", "")


def test_the_import_of_each_framework_arms_a_child() -> None:
    text = (Path(children.__file__).with_name("startup") / "sitecustomize.py").read_text()
    known = set(ast.literal_eval(re.findall(r"^_FRAMEWORKS = (.*)$", text, re.M)[0]))
    packages = {getattr(adapter, "package", "cupy").partition(".")[0] for device in DEVICES for adapter in adapters(device)}
    assert packages <= known


def test_merging(tmp_path: Path) -> None:
    parent = assemble(device="cpu", checked=("barriers",))
    assert children.merged(parent, tmp_path) is parent
    child = assemble(device="cpu", kernels=[KernelSummary("k", launches=2)], checked=("barriers",))
    (tmp_path / "7-1.json").write_text(dumps(child))
    together = children.merged(parent, tmp_path)
    assert (together.verdict, together.kernels[0].launches, together.notes) == ("clean", 2, ("1 child process included",))
    (tmp_path / "8-1.json").write_text("{")
    (tmp_path / "9-1.mark").touch()
    spoiled = children.merged(parent, tmp_path)
    assert spoiled.verdict == "incomplete"
    assert ["process 8 cannot be read" in reason or "process 9 launched" in reason for reason in spoiled.incomplete] == [True, True]
