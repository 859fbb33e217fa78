"""The same campaign wherever its runs are done; workers that die; an interruption."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from stress_support import FLAKY, LAUNCH, consan, stress, write_kernel

from consan.triage.executors import Workers
from consan.triage.outcome import CRASH, OK, Job, Outcome, Request
from consan.triage.show import Bar
from consan.triage.subject import KernelSource, KernelSubject, LaunchText

KERNEL = ["flaky.cu", *LAUNCH]
VARYING = ("seconds", "executor", "command")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_kernel(tmp_path)


def _same(document: Any) -> Any:
    return {key: value for key, value in document.items() if key not in VARYING}


def test_two_processes_find_what_one_finds() -> None:
    here = stress("--seeds", "8", *KERNEL, out=Path("0.json"))
    there = stress("--seeds", "8", *KERNEL, out=Path("2.json"), workers="2")
    assert there["executor"] == "2 processes"
    assert _same(there) == _same(here)


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install consan[dask]")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=None, host="127.0.0.1") as found:
        yield found.scheduler_address.replace("tcp://", "dask://")


@pytest.mark.filterwarnings("ignore")  # of Dask's own
def test_a_dask_cluster_finds_the_same(cluster: str) -> None:
    here = stress("--seeds", "8", *KERNEL, out=Path("0.json"))
    there = stress("--seeds", "8", "--executor", cluster, *KERNEL, out=Path("d.json"))
    assert there["executor"] == cluster
    assert _same(there) == _same(here)


def test_no_scheduler_is_one_line(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert consan("stress", "--device", "cpu", "--executor", "dask://127.0.0.1:1", *KERNEL) == 2
    assert "pip install 'distributed" in capfd.readouterr().err


class _Deadly(Request):
    """Ends the process that reads it."""

    def __reduce__(self) -> Any:
        return os._exit, (3,)


def test_the_run_that_kills_its_worker_is_the_only_one_lost() -> None:
    from consan.toolchain.nvrtc import compile_ptx

    ptx = compile_ptx(FLAKY, name="flaky.cu", arch="sm_90a").ptx
    launch = LaunchText("exchange", (1, 1, 1), (64, 1, 1), args=("i32[64]=arange", "i32[64]=zeros"))
    job = Job(KernelSubject(KernelSource("flaky.cu"), launch), ptx)
    requests = [_Deadly(seed) if seed == 2 else Request(seed) for seed in range(5)]
    with Workers(1) as workers:
        found = dict(workers.results(job, requests))
    assert {index: outcome.status for index, outcome in found.items()} == {n: CRASH if n == 2 else OK for n in range(5)}
    assert found[2].seed == 2


def test_what_was_found_before_ctrl_c_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    advance = Bar.advance

    def interrupt(self: Bar, outcome: Outcome) -> None:
        advance(self, outcome)
        if outcome.seed == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(Bar, "advance", interrupt)
    document = stress("--seeds", "100", *KERNEL, out=Path("p.json"), status=130)
    assert document["partial"]
    assert document["seeds"] == {"first": 1, "last": 100, "asked": 100, "done": 4}
    assert document["findings"][0]["runs"] == document["runs"]["ok"] == 4


def test_ctrl_c_before_the_first_run_is_no_usage_error(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Workers, "results", interrupt)
    assert consan("stress", "--device", "cpu", "--seeds", "3", "-o", "p.json", *KERNEL) == 130
    assert capfd.readouterr().err == "consan: error: interrupted before the first run ended: there is nothing to keep\n"
    assert not Path("p.json").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_in_a_terminal() -> None:
    """The signal goes to all processes of the group, as from a terminal."""
    words = [sys.executable, "-m", "consan", "stress", "--device", "cpu", "--workers", "2", "--seeds", "100000", "-o", "p.json", *KERNEL]
    running = subprocess.Popen(words, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(25)
    os.killpg(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=30)
    assert running.returncode == 130, err
    assert "PARTIAL: interrupted after" in out
    assert "Traceback" not in err
    assert 0 < json.loads(Path("p.json").read_text())["seeds"]["done"] < 100000
