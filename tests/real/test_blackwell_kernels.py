"""Triton's kernels compiled for Blackwell: products in tensor memory, with and without warp specialisation, and attention with A there.

The launches are those of `hopper_cases.py`. On the virtual machine in several schedules; no chip has run them here.
"""

from __future__ import annotations

import time

import hopper_cases
import pytest
from hopper_cases import HOPPER_CASES
from real_cases import Case
from real_run import ptx_of, run_checked, run_plain

from consan.session.planning.options import SessionOptions
from consan.session.session import Session
from consan.toolchain.assemble import assemble_cached

ARCH = "sm_100"
CASES = [case for case in HOPPER_CASES if case.name.startswith("triton_hopper/")]
# Triton 3.6 invalidates the mbarriers of the stages before it waits for the products whose commits arrive there (R-M12, T16).
FOUND = {"triton_hopper/matmul_specialised": ["barrier-misuse"]}
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@pytest.fixture(autouse=True)
def _blackwell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hopper_cases, "ARCH", ARCH)


@each_case
def test_assembles(case: Case) -> None:
    assert assemble_cached(ptx_of(case.name, ARCH), "sm_100a", name=case.name).info


@each_case
@pytest.mark.parametrize("seed", range(3))
def test_right_alone(case: Case, seed: int) -> None:
    ptx, launch = ptx_of(case.name, ARCH), case.launch("small", seed)
    run_plain(ptx, launch, Session(SessionOptions(device="cpu")).backend, seed=seed)
    launch.check()


@pytest.mark.slow
@each_case
def test_what_is_found_with_the_recording_engine(case: Case) -> None:
    if case.name.endswith("device_tma"):
        pytest.skip("makes tensor maps, which the recording engine does not take")
    ptx, launch = ptx_of(case.name, ARCH), case.launch("small", 0)
    _, report = run_checked(ptx, launch, Session(SessionOptions(device="cpu", engine="record"), private=True))
    assert {kernel.engine for kernel in report.kernels} == {"record"}
    found = FOUND.get(case.name, [])
    assert [each.kind for each in report.findings if each.severity != "note"] == found, report.findings
    assert report.verdict == ("violations" if found else "clean")
    launch.check()


def test_two_tiles_take_a_second_of_processor_time_at_most() -> None:
    """Five steps of 64 of K, 128 x 128 each: 0.12 s alone, and 0.5 s recorded and checked."""
    case = next(case for case in CASES if case.name.endswith("matmul_3_stages"))
    ptx, launch = ptx_of(case.name, ARCH), case.launch("small", 0)
    run_plain(ptx, launch, Session(SessionOptions(device="cpu")).backend, seed=0)  # compiles what the text needs
    begun = time.process_time()
    run_plain(ptx, launch, Session(SessionOptions(device="cpu")).backend, seed=0)
    alone = time.process_time()
    run_checked(ptx, launch, Session(SessionOptions(device="cpu", engine="record"), private=True))
    assert (alone - begun < 1, time.process_time() - alone < 1.5) == (True, True)
