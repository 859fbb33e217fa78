"""Real kernels that use Hopper's asynchronous instructions: their PTX assembles, and alone it computes what it should.

`hopper_cases.py` has the launches. On the virtual machine in several schedules: copies and products land early or late there.
"""

from __future__ import annotations

import pytest
from hopper_cases import ARCH, CLUSTER_CASES, HANGING_CASES, HOPPER_CASES, RACY
from real_cases import Case, Size
from real_run import ptx_of, run_plain

from consan.instrument.isa import is_memory_or_sync, lookup
from consan.instrument.ptx import parse
from consan.session.planning.options import SessionOptions
from consan.session.session import Session
from consan.toolchain.assemble import assemble_cached

ALL_CASES = (*HOPPER_CASES, *CLUSTER_CASES)
each_steady_case = pytest.mark.parametrize("case", [case for case in ALL_CASES if case.name not in RACY], ids=lambda case: case.name)
every_case = pytest.mark.parametrize("case", ALL_CASES, ids=lambda case: case.name)


@every_case
def test_every_instruction_is_known(case: Case) -> None:
    for function in parse(ptx_of(case.name, ARCH)).functions:
        for instruction in function.body.instructions() if function.body else ():
            assert lookup(instruction.parts) is not None or not is_memory_or_sync(instruction.parts), instruction.text


@every_case
def test_assembles(case: Case) -> None:
    assert assemble_cached(ptx_of(case.name, ARCH), ARCH, name=case.name).info


@every_case
def test_right_alone(case: Case, device: str) -> None:
    ptx = ptx_of(case.name, ARCH)
    size: Size = "small" if device == "cpu" else "full"
    backend = Session(SessionOptions(device=device)).backend
    results = []
    for seed in range(2):
        launch = case.launch(size, 0)
        results.append(run_plain(ptx, launch, backend, seed=seed))
        launch.check()
    assert results[0] == results[1]


@pytest.mark.slow
@each_steady_case
def test_right_alone_in_many_schedules(case: Case) -> None:
    ptx = ptx_of(case.name, ARCH)
    for seed in range(2, 12):
        launch = case.launch("small", seed)
        run_plain(ptx, launch, Session(SessionOptions(device="cpu")).backend, seed=seed)
        launch.check()


@pytest.mark.parametrize("case", HANGING_CASES, ids=lambda case: case.name)
def test_what_hangs_is_seen_to_hang(case: Case) -> None:
    ptx = ptx_of(case.name, ARCH)
    with pytest.raises(AssertionError, match="deadlocked=True"):
        run_plain(ptx, case.launch("small", 0), Session(SessionOptions(device="cpu")).backend)
