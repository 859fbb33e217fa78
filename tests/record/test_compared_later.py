"""Launches of several streams are compared when their checks are over, and no thread of the program waits for these."""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Callable
from typing import Any

import pytest
from followed_programs import EDGES, ENTRY, NO_EDGES
from framework_support import FakeCalls, Framework, gap
from leaving_support import slow_clock
from planted import plant
from test_looks_beside import Gate, nobody_waits

from consan.reports.model import Report
from consan.reports.verdict.coverage import by_kernel
from consan.session import frameworks, global_looks
from consan.session.comparing import concurrent_launches
from consan.session.comparing.pairs import done
from consan.session.executing import background, in_flight_launch, judging
from consan.session.executing.background import Background
from consan.session.executing.judging import Judge
from consan.session.planning import plan, selection
from consan.session.planning.budget import FIRST

Between = Callable[[Framework, int, int], None]
BYTES = 1 << 11


@pytest.fixture(autouse=True)
def _slow(monkeypatch: pytest.MonkeyPatch) -> None:
    slow_clock(monkeypatch)


def nothing(framework: Framework, first: int, second: int) -> None:
    """There is no edge."""


def freed(framework: Framework, first: int, second: int) -> None:
    """The memory is freed behind the first launch, and given again."""
    framework.calls.call("cuMemFreeAsync", framework.out, first)


def two_launches(between: Between, monkeypatch: pytest.MonkeyPatch, *, waits: bool = False) -> Report:
    """Two launches that write the same bytes, in two streams. Unless the program waits, all checks come behind them."""
    framework = Framework(calls=FakeCalls())
    with monkeypatch.context() as inside:
        gate, calls = Gate(inside), framework.calls
        calls.call("cuMemAllocAsync", framework.out, BYTES, 0)
        first, second = calls.stream(), calls.stream()
        if waits:
            gate.open.set()
            inside.setattr(Background, "accepts", lambda *_, **__: False)
        with contextlib.nullcontext() if waits else nobody_waits(framework, inside):
            framework.launch(ENTRY, 1, stream=first)
            framework.backend.advance(first)
            framework.session.frameworks.background.look()
            between(framework, first, second)
            framework.launch(ENTRY, 1, stream=second, out=4)
        gate.open.set()
        return framework.report()


def test_with_an_edge_they_are_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for edge in ("event", "stream", "context"):
        report = two_launches(EDGES[edge], monkeypatch)
        assert (report.verdict, "global-memory" in report.checked, report.findings) == ("clean", True, ()), (edge, gap(report))


def test_without_one_they_race_as_if_the_program_had_waited(monkeypatch: pytest.MonkeyPatch) -> None:
    for edge in ("nothing", "other way"):
        later, waited = (two_launches(NO_EDGES[edge], monkeypatch, waits=waits) for waits in (False, True))
        assert [finding.kind for finding in later.findings] == ["global-race"]
        assert (later.verdict, later.findings, later.checked) == (waited.verdict, waited.findings, waited.checked)


def test_a_launch_stands_before_what_is_done_later_to_other_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    for waits in (False, True):
        report = two_launches(freed, monkeypatch, waits=waits)
        assert (report.verdict, report.findings) == ("clean", ()), gap(report)


def test_what_came_before_the_memory_was_freed_races(monkeypatch: pytest.MonkeyPatch) -> None:
    """The accesses of the first launch come when its memory is other memory already."""
    framework = Framework(calls=FakeCalls())
    with monkeypatch.context() as inside:
        gate, calls = Gate(inside), framework.calls
        calls.call("cuMemAllocAsync", framework.out, BYTES, 0)
        first, second = calls.stream(), calls.stream()
        framework.launch(ENTRY, 1, stream=first)
        framework.launch(ENTRY, 1, stream=second, out=4)
        freed(framework, first, second)
        gate.open.set()
        assert [finding.kind for finding in framework.report().findings] == ["global-race"]


def test_the_check_of_one_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    known, numbers = Judge.examined, itertools.count()

    def examined(judge: Judge, *about: Any) -> Any:
        if next(numbers):
            raise ValueError("it fails")
        return known(judge, *about)

    monkeypatch.setattr(Judge, "examined", examined)
    report = two_launches(nothing, monkeypatch)
    assert (report.verdict, report.findings) == ("incomplete", ())
    assert any("a launch was not checked: it fails" in why for why in report.incomplete)
    assert "all its accesses are not known" in gap(report)


def test_pairs_are_compared_by_the_thread_that_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program's next launch only reports what was found."""
    framework = Framework(calls=FakeCalls())
    gate, calls = Gate(monkeypatch), framework.calls
    first, second = calls.stream(), calls.stream()
    for stream, out in ((first, 0), (second, 4)):
        framework.launch(ENTRY, 1, stream=stream, out=out)
    for stream in (first, second):
        framework.backend.advance(stream)
    gate.open.set()
    flights, concurrent = framework.session.frameworks.background, framework.session.followed.concurrent
    flights.settle()
    with monkeypatch.context() as inside:
        inside.setattr(concurrent_launches.LaunchPair, "raced", lambda pair: pytest.fail("a thread of the program compares"))
        concurrent.tell_awaited(framework.session.followed.lock)
    assert [finding.kind for finding in framework.report().findings] == ["global-race"]


def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Which launches are recorded, if the check of the second one takes 5 s by a clock of the test."""
    framework = Framework(calls=FakeCalls())
    gate, clock = Gate(monkeypatch), itertools.chain((0.0, 0.5, 1.0, 6.0), itertools.repeat(6.0))
    calls = framework.calls
    streams = [calls.stream() for _ in range(4)]
    monkeypatch.setattr(in_flight_launch, "monotonic", lambda: next(clock))
    gate.open.set()
    for number, stream in enumerate(streams):
        framework.launch(ENTRY, 1, stream=stream, out=256 * number)
        if number == 1:
            framework.settle()
    framework.report()
    return framework.exchanged


def test_checks_for_comparisons_take_some_seconds_in_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    assert looked_at(monkeypatch) == [True, True, True, False]  # the third one is the first look of its shape at one launch


class FullPool:
    """A program whose launches of a shape are checked while there is no room for one more log."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **options: Any) -> None:
        self.framework, self.gate, self.waited = Framework(global_memory="off", **options), Gate(monkeypatch), list[str]()
        known = Background.wait

        def wait(flights: Background, sent: Any, among: Any = None, **how: Any) -> float:
            self.waited.append("a check" if among is None else "a kernel")
            self.gate.open.set()
            return known(flights, sent, among, **how)

        monkeypatch.setattr(Background, "wait", wait)

    def launch(self, numbers: range) -> list[str]:
        """Launch, each time with other values, and let the device work. What the program has waited for."""
        self.waited.clear()
        for number in numbers:
            self.framework.backend.write(self.framework.source, bytes(range(number, number + 128)) * 2)
            self.framework.launch("exchanges", 1)
            self.framework.backend.advance(0)
            self.framework.session.frameworks.background.look()
        return list(self.waited)


def full(monkeypatch: pytest.MonkeyPatch, **options: Any) -> tuple[list[str], Report]:
    program = FullPool(monkeypatch, **options)
    assert program.launch(range(FIRST)) == []
    monkeypatch.setattr(Background, "has_room", lambda *_, **__: bool(program.gate.open.is_set()))
    waited = program.launch(range(FIRST, 10))
    program.gate.open.set()
    return waited, program.framework.report()


def test_where_checks_have_the_memory_for_logs_launches_are_left_out_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    waited, report = full(monkeypatch)
    assert (waited, report.verdict) == ([], "clean")
    assert by_kernel(report)["exchanges"]["barriers"] == f"sampled ({FIRST} of 10)"
    (left,) = report.uninstrumented
    assert (left.launches, "the checks of earlier launches had the memory for logs" in left.reason) == (10 - FIRST, True)


def test_the_first_launches_of_a_shape_are_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "FIRST", 3)
    waited, report = full(monkeypatch)
    assert (waited[:1], report.verdict) == (["a check"], "clean")
    assert by_kernel(report)["exchanges"]["barriers"] == "checked"


def test_the_program_waits_for_checks_some_seconds_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Launches of a shape of which none was recorded for that make the report incomplete."""
    monkeypatch.setattr(background, "LONGEST_WAITED", 0.0)
    program = FullPool(monkeypatch)
    program.launch(range(FIRST))
    monkeypatch.setattr(Background, "has_room", lambda *_, **__: bool(program.gate.open.is_set()))
    program.framework.launch("exchanges", 1, ctas=1)
    assert program.waited == []
    program.gate.open.set()
    report = program.framework.report()
    assert report.verdict == "incomplete"
    assert any("1 launch of exchanges could not be recorded: there was no room for their logs" in why for why in report.incomplete)


def test_a_large_log_that_takes_long_leaves_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Launches that are not looked at by themselves need none of the room of those."""
    framework, gate = Framework(), Gate(monkeypatch)
    with monkeypatch.context() as inside:
        inside.setattr(Background, "wait", lambda *_, **__: pytest.fail("the program waits"))
        framework.launch("exchanges", 1)  # with its global memory
        framework.backend.advance(0)
        framework.session.frameworks.background.look()
        inside.setattr(type(framework.session.recording), "pool_bytes", 0x1000)
        framework.launch("exchanges", 1)
    gate.open.set()
    assert framework.report().verdict == "clean"


def test_the_program_waits_for_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    program = FullPool(monkeypatch)
    program.gate.open.set()
    for _ in range(40):  # nobody lets the device work
        program.framework.launch("exchanges", 1)
    assert program.waited
    assert set(program.waited) == {"a kernel"}
    assert by_kernel(program.framework.report())["exchanges"]["barriers"] == "checked"


SHIFTS = """
extern "C" __global__ void shifts(unsigned* out, unsigned* from, int racing) {  // no two CTAs do the same
    __shared__ unsigned values[128];
    values[threadIdx.x + blockIdx.x] = threadIdx.x;
    if (blockIdx.x != racing) __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = values[63 - threadIdx.x + blockIdx.x];
}
"""


def of_slow_replays(monkeypatch: pytest.MonkeyPatch, racing: int) -> list[str]:
    """The verdicts behind each launch of a kernel whose replays take long: the first one has no time for any."""
    monkeypatch.setattr(judging, "SLOW", -1.0)
    monkeypatch.setattr(plan, "LONGEST_CHECK", 0.0)
    framework, verdicts = Framework(SHIFTS, global_memory="off"), list[str]()
    for _ in range(4):
        with nobody_waits(framework, monkeypatch):
            framework.launch("shifts", racing, ctas=20)
            framework.backend.advance(0)
        framework.settle()
        monkeypatch.setattr(plan, "LONGEST_CHECK", 60.0)
        verdicts.append(framework.session.so_far().verdict)
    return verdicts


def test_launches_of_slow_replays_are_checked_beside_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each replays some more CTAs, until all are known."""
    assert of_slow_replays(monkeypatch, 99) == ["incomplete", "incomplete", "incomplete", "clean"]
    assert of_slow_replays(monkeypatch, 19)[-1] == "violations"


def test_a_look_without_room_is_put_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "LONGEST_WAITED", 0.0)
    framework, gate = Framework(), Gate(monkeypatch)
    with monkeypatch.context() as inside:
        framework.launch("exchanges", 1)
        framework.backend.advance(0)
        framework.session.frameworks.background.look()
        inside.setattr(Background, "has_room", lambda flights, nbytes, alone: not alone)
        framework.launch("exchanges", 1, ctas=1)
    gate.open.set()
    framework.settle()
    framework.launch("exchanges", 1, ctas=1)
    assert framework.report().verdict == "clean"
    assert framework.exchanged == [True, False, True]


FAULTS: dict[str, tuple[Any, str, str, str, Any]] = {
    "the program waits": (
        *(frameworks, "Frameworks.recorded", "later=alone", "later=False"),
        test_without_one_they_race_as_if_the_program_had_waited,
    ),
    "nothing is told": (
        *(frameworks, "Frameworks.settle", "self.streams.concurrent.tell_awaited(self.streams.lock)", "pass"),
        test_without_one_they_race_as_if_the_program_had_waited,
    ),
    "accesses are lost": (
        *(in_flight_launch, "InFlightLaunch.compares", "self.awaited.come(examined.checked.retained)", "self.awaited.come(None)"),
        test_without_one_they_race_as_if_the_program_had_waited,
    ),
    "a pair is lost": (
        *(concurrent_launches, "ConcurrentLaunches._compare", "self._awaited.append(pair)", "pass"),
        test_without_one_they_race_as_if_the_program_had_waited,
    ),
    "memory that is freed": (
        *(done, "MadeLaunch.known", "else rows[~is_inside(rows, address, nbytes)]", "else rows"),
        test_a_launch_stands_before_what_is_done_later_to_other_memory,
    ),
    "memory that is freed later": (
        *(concurrent_launches, "ConcurrentLaunches.detached", "freed=(*done.freed, (address, nbytes))", "freed=done.freed"),
        test_a_launch_stands_before_what_is_done_later_to_other_memory,
    ),
    "a check that fails": (
        *(background, "Background._conclude", "sent.awaited.come(None)", "pass"),
        test_the_check_of_one_fails,
    ),
    "the program compares": (
        *(in_flight_launch, "InFlightLaunch.compares", "self.awaited.compare()", "pass"),
        test_pairs_are_compared_by_the_thread_that_checks,
    ),
    "checks take all time": (
        *(global_looks, "GlobalLooks.may_compare", "self.seconds += each.seconds", "pass"),
        test_checks_for_comparisons_take_some_seconds_in_sum,
    ),
    "none is left out": (
        *(background, "Background.idle", "not first or", ""),
        test_where_checks_have_the_memory_for_logs_launches_are_left_out_and_counted,
    ),
    "the first ones too": (
        *(background, "Background.idle", "not first or", "True or"),
        test_the_first_launches_of_a_shape_are_recorded,
    ),
    "they wait for ever": (
        *(background, "Background.idle", "self.time_limit.waited >= LONGEST_WAITED", "False"),
        test_the_program_waits_for_checks_some_seconds_in_all,
    ),
    "a shape without a launch that was recorded": (
        *(frameworks, "Frameworks.settle", "self.selection.left_in_a_hurry(never=True)", ""),
        test_the_program_waits_for_checks_some_seconds_in_all,
    ),
    "one pool for all": (
        *(background, "Background.has_room", "by_itself <= pool if alone else logs.used - by_itself <= most", "logs.used <= most"),
        test_a_large_log_that_takes_long_leaves_room_for_others,
    ),
    "the program waits for slow replays": (
        *(frameworks, "Frameworks._launched", "= shape_of(form, launch), self", "= shape_of(form, launch), not form.logs.slow and self"),
        test_launches_of_slow_replays_are_checked_beside_the_program,
    ),
    "looks are lost": (
        *(global_looks, "GlobalLooks.put_off", ".discard((launch", ".add((launch"),
        test_a_look_without_room_is_put_off,
    ),
    "they are not counted": (
        *(
            frameworks,
            "Frameworks._without_room",
            "self.selection.hurried[prepared.number, launch.entry, (launch.grid, launch.block, launch.cluster)] += 1",
            "pass",
        ),
        test_where_checks_have_the_memory_for_logs_launches_are_left_out_and_counted,
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, member, old, new, fails = FAULTS[name]
    plant(monkeypatch, module, old, new, member)
    monkeypatch.setattr(sys.modules["test_looks_beside"], "LONGEST", 3.0)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        fails(monkeypatch)
