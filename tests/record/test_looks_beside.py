"""Launches whose global memory is recorded are checked beside the program: no thread of it waits, and nothing is lost."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from framework_support import KERNELS, Framework, gap
from leaving_support import slow_clock
from planted import plant

from consan.checker.judging.checked import Checked
from consan.reports.model import Report
from consan.session import frameworks, global_looks
from consan.session.executing import background, in_flight_launch, judging
from consan.session.executing.background import Background
from consan.session.executing.judging import Examined, Judge
from consan.session.executing.launch_check import LaunchCheck
from consan.session.global_looks import GlobalLooks
from consan.session.modules.prepared import Prepared
from consan.textures.argument import Texture

LONGEST = 60.0  # seconds that a test waits for a thread
MIRRORS = """
extern "C" __global__ void mirrors(unsigned* out, unsigned* from, int turns) {
    __shared__ unsigned values[64];
    values[threadIdx.x ^ (turns & 1)] = threadIdx.x;
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = values[63 - threadIdx.x];
}
"""


@pytest.fixture(autouse=True)
def _slow(monkeypatch: pytest.MonkeyPatch) -> None:
    slow_clock(monkeypatch)


class Gate:
    """Checks begin when the test lets them. `begun`: the kernels, in the order of their checks."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.open, self.begun, known = threading.Event(), list[str](), Judge.examined

        def examined(judge: Judge, prepared: Prepared, entry: str, started: LaunchCheck) -> Examined:
            if not started.silent:
                self.begun.append(entry)
                assert threading.current_thread() is not threading.main_thread() or self.open.is_set(), "a thread of the program checks"
                assert self.open.wait(LONGEST), "the test has not opened the gate"
            return known(judge, prepared, entry, started)

        monkeypatch.setattr(Judge, "examined", examined)


@contextmanager
def nobody_waits(framework: Framework, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Inside the block the program's thread neither waits for the device nor reads from it."""
    with monkeypatch.context() as inside:
        for name in ("synchronize", "read"):
            inside.setattr(framework.backend, name, lambda *_: pytest.fail("the host waits"))
        yield


@pytest.mark.parametrize(("apart", "verdict"), [(0, "violations"), (1, "clean")])
@pytest.mark.parametrize("entry", ["scatters", "exchanges"])
def test_the_program_goes_on_while_the_first_launch_is_checked(
    entry: str, apart: int, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    framework, gate = Framework(), Gate(monkeypatch)
    with nobody_waits(framework, monkeypatch):
        framework.launch(entry, apart)
    assert framework.backend.done == []  # it has not even run
    framework.backend.advance(0)
    with nobody_waits(framework, monkeypatch):
        for _ in range(3):
            framework.launch("fills")
    gate.open.set()
    report = framework.report()
    assert framework.exchanged == [True, False, False, False]
    assert (report.verdict, "global-memory" in report.checked) == (verdict, True), gap(report)
    assert {kernel.name: kernel.launches for kernel in report.kernels if kernel.launches} == {entry: 1, "fills": 3}
    assert {access.name.partition(" of ")[2] for finding in report.findings for access in finding.pair} <= {"argument 1"}


def test_with_all_launches_looked_at_none_waits_and_each_is_checked_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """All have one receipt but for the parameter that says where they write: one of them races."""
    framework, gate = Framework(global_memory="on"), Gate(monkeypatch)
    with nobody_waits(framework, monkeypatch):
        for apart in (1, 0, 1):
            framework.launch("scatters", apart)
    gate.open.set()
    report = framework.report()
    assert (report.verdict, gate.begun) == ("violations", ["scatters"] * 3)
    waits = Framework(global_memory="on")
    monkeypatch.setattr(Background, "accepts", lambda *_, **__: False)
    for apart in (1, 0, 1):
        waits.launch("scatters", apart)
    assert report.findings == waits.report().findings


FETCHES = """
extern "C" __global__ void fetches(unsigned* out, unsigned* from, int texture) {
    out[blockIdx.x * blockDim.x + threadIdx.x] = tex1Dfetch<unsigned>((cudaTextureObject_t)texture, threadIdx.x);
}
"""


def texture_destroyed_at_once() -> Report:
    framework = Framework(KERNELS + FETCHES)
    texture = Texture(np.zeros(64, np.uint32), memory="linear").at(framework.source)
    framework.launch("fetches", handle := framework.backend.make_texture(texture))
    framework.backend.advance(0)
    framework.backend.free_texture(handle)
    return framework.report()


def test_a_launch_that_fetches_is_checked_while_its_texture_is_there() -> None:
    report = texture_destroyed_at_once()
    assert (report.verdict, report.incomplete) == ("clean", ()), gap(report)


def test_a_fault_in_what_waits_for_a_texture(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, background, "(whole and prepared.fetches(entry))", "False")
    assert texture_destroyed_at_once().verdict == "incomplete"


def in_turn(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The kernels whose checks have begun, and those whose launches are not concluded then: while the last check goes on, and before."""
    framework, turns, known = Framework(KERNELS + MIRRORS), threading.Semaphore(0), Judge.examined
    begun, ended = list[str](), threading.Semaphore(0)

    def examined(judge: Judge, prepared: Prepared, entry: str, started: LaunchCheck) -> Examined:
        begun.append(entry)
        assert turns.acquire(timeout=LONGEST)
        found = known(judge, prepared, entry, started)
        ended.release()
        return found

    monkeypatch.setattr(Judge, "examined", examined)
    flights = framework.session.frameworks.background
    for entry, number in (("mirrors", 0), ("scatters", 1), ("mirrors", 1)):
        framework.launch(entry, number)
        framework.backend.advance(0)
        flights.look()  # the first check has begun, or the others wait for it
    for _ in range(2):
        turns.release()
        assert ended.acquire(timeout=LONGEST)
    until = time.monotonic() + LONGEST
    while len(flights.sent) > 1 and time.monotonic() < until:
        flights.look()
    found = [list(begun), [each.entry for each in flights.sent]]
    turns.release()
    assert framework.report().verdict == "clean"
    return found


def test_checks_that_others_need_come_first_and_wait_for_no_long_one(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, left = in_turn(monkeypatch)
    assert (begun[:2], left) == (["mirrors", "mirrors"], ["scatters"])


def looks_again(monkeypatch: pytest.MonkeyPatch) -> tuple[list[bool], bool]:
    """Which launches of a shape took the form with global memory: the check of the first one has left a part, and goes on for a while.

    And whether launches that repeat, which C may make, take the long way since then.
    """
    monkeypatch.setattr(Checked, "compares_all_pairs", property(lambda checked: False))
    framework, gate = Framework(), Gate(monkeypatch)
    monkeypatch.setattr(GlobalLooks, "owes", lambda looks, whole, shape: True)
    for _ in range(3):
        framework.launch("scatters", 1)
        framework.backend.advance(0)
    era = framework.session.frameworks.era
    gate.open.set()
    framework.settle()
    again = framework.session.frameworks.era > era
    framework.launch("scatters", 1)
    framework.report()
    return framework.exchanged, again


def test_launches_made_while_one_is_checked_are_not_looked_at_and_later_ones_are(monkeypatch: pytest.MonkeyPatch) -> None:
    assert looks_again(monkeypatch) == ([True, False, False, True], True)


def counted(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """The launches by kernel: a form of the module has one in flight when another form takes the last launch."""
    framework, gate = Framework(), Gate(monkeypatch)
    for ctas in (2, 2, 3):
        framework.launch("exchanges", 1, ctas)
    gate.open.set()
    report = framework.report()
    assert framework.exchanged == [True, False, True]
    return {kernel.name: kernel.launches for kernel in report.kernels if kernel.launches}


def test_launches_of_both_forms_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert counted(monkeypatch) == {"exchanges": 3}


FAULTS: dict[str, tuple[Any, str, str, Any]] = {
    "a receipt stands for other addresses": (
        background, "or sent.by_itself:", "or False:", test_with_all_launches_looked_at_none_waits_and_each_is_checked_by_itself,
    ),
    "the program waits": (
        frameworks, "self.background.accepts(form, entry, repeats=False)\n", "self.background.accepts(form, entry)\n",
        test_with_all_launches_looked_at_none_waits_and_each_is_checked_by_itself,
    ),
    "a long check comes first": (
        background, "(sent.by_itself, next(_ORDER)", "(False, next(_ORDER)",
        test_checks_that_others_need_come_first_and_wait_for_no_long_one,
    ),
    "what comes behind a long check waits": (
        in_flight_launch, "[each for each in found if not each.by_itself][:1]", "found[:1]",
        test_checks_that_others_need_come_first_and_wait_for_no_long_one,
    ),
    "a form is not listed": (
        judging, "        self.modules.used[prepared.number] = prepared  # again", "        # again",
        test_launches_of_both_forms_are_counted,
    ),
    "launches that repeat go on": (
        background, "self.repeating.on_left()", "pass", test_launches_made_while_one_is_checked_are_not_looked_at_and_later_ones_are,
    ),
    "all are looked at meanwhile": (
        global_looks, "if is_looked_at(", "if False and is_looked_at(",
        test_launches_made_while_one_is_checked_are_not_looked_at_and_later_ones_are,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, old, new, fails = FAULTS[name]
    plant(monkeypatch, module, old, new)
    monkeypatch.setattr(sys.modules[__name__], "LONGEST", 3.0)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        fails(monkeypatch)
