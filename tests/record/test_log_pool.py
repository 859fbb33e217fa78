"""The memory for logs in a session: it has the size of what was used, all launches share it, and the program gets it back."""

from __future__ import annotations

import time

import framework_support
import pytest
from framework_support import FakeCalls
from leaving_support import SHADOW, slow_clock
from streams_support import Streams
from test_background import RACES

from consan.checker.logs import log_lines
from consan.session.executing import judging
from consan.session.framework_launch import FrameworkLaunch
from consan.session.modules.device import Device
from consan.session.modules.parameters import unknown
from consan.session.planning.options import SessionOptions
from consan.session.session import Session
from consan.toolchain.nvrtc import compile_ptx

BLOCK = (96, 1, 1)
SMALL = 1 << 12


class Program:
    """A framework that launches `scatters`, and lets the device work."""

    def __init__(self, **options: object) -> None:
        self.backend = Streams()
        options = {"global_memory": "off", **options}
        self.session = Session(SessionOptions.of(options), on=Device(self.backend, arena_bytes=SHADOW))
        self.prepared = self.session.instrument_for_framework(compile_ptx(RACES, arch="sm_90a").ptx)
        self.module = self.backend.load(self.prepared.instrumented.ptx)
        self.session.attach(self.prepared, lambda name, data: self.backend.write(self.backend.symbol(self.module, name)[0], data))
        self.out = self.backend.alloc(4 * 192)

    def launch(self, rounds: int, ctas: int = 2, *, tells: bool = False) -> int:
        """Launch, and return the bytes that logs take then. `tells`: the parameters are known."""
        values = (self.out.to_bytes(8, "little"), rounds.to_bytes(4, "little"))
        args = (lambda: values) if tells else unknown
        launch = FrameworkLaunch("scatters", (ctas, 1, 1), BLOCK, (1, 1, 1), 0, self.module, args=args)
        with self.session.framework_launch(self.prepared, launch):
            self.backend.launch(self.module, "scatters", launch.grid, BLOCK, values, stream=0)
        used = self.session.device.logs.used
        self.backend.advance(0)
        self.session.report()  # the launch is concluded
        return used


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    slow_clock(monkeypatch)
    monkeypatch.setattr(log_lines, "SMALL_BYTES", SMALL)
    monkeypatch.setattr(judging, "SMALL_BYTES", SMALL)


def test_later_launches_take_what_the_first_has_used() -> None:
    program = Program()
    first, *later = [program.launch(3) for _ in range(3)]
    assert first > 1 << 26
    assert max(later) < 1 << 18
    report = program.session.report()
    assert (report.verdict, sum(kernel.launches for kernel in report.kernels)) == ("clean", 3)


@pytest.mark.parametrize("rounds", [0, 3, 400, 4000])
def test_the_first_launch_takes_what_its_parameters_let_it_use(rounds: int) -> None:
    """A round stores one word: 192 threads have 4 bytes for each, and a check for room keeps some more free."""
    program = Program()
    assert program.launch(rounds, tells=True) < 8 * 192 * 4 * (rounds + 20)
    assert program.session.report().verdict == "clean"


def test_a_log_that_was_full_has_no_bound() -> None:
    """Launches with other parameters have left the memory of the log: the next one of each shape has much."""
    program = Program()
    for rounds in (3, 3, 400):
        program.launch(rounds, tells=True)
    assert program.session.report().verdict == "incomplete"
    program.session.take()
    assert program.launch(3, 3, tells=True) > 1 << 26
    assert program.session.report().verdict == "clean"


def test_a_launch_that_uses_more_than_those_before_it_is_told_and_the_next_has_room() -> None:
    program = Program()
    for rounds in (3, 3):
        program.launch(rounds)
    small = program.launch(3)
    program.launch(400)
    report = program.session.report()
    assert report.verdict == "incomplete"
    assert [why for why in report.incomplete if "scatters: 2 CTAs ran out of room" in why], report.incomplete
    program.session.take()
    assert program.launch(400) > 100 * small
    assert program.launch(3) > 100 * small  # launches of this shape differ
    assert program.session.report().verdict == "clean"


def test_shapes_share_the_pool() -> None:
    """What a launch of one shape does not use is there for another."""
    program = Program(trace_memory=1 << 20)
    used = [program.launch(3, ctas) for _ in range(3) for ctas in range(1, 9)]
    assert max(used) <= 1 << 21  # the log of a launch, and what there is beside it
    assert program.session.report().verdict == "clean"


def test_the_program_gets_the_memory_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the device has none for it, before it tries again."""
    calls = FakeCalls()
    framework = framework_support.Framework(calls=calls)
    freed: list[int] = []
    free = framework.backend.free
    monkeypatch.setattr(framework.backend, "free", lambda address: (freed.append(address), free(address)))
    logs = framework.session.device.logs
    for _ in range(6):
        framework.launch("exchanges", 1)
        framework.backend.advance(0)
        time.sleep(0.05)  # for the thread that checks; a launch that did what an earlier one did leaves its memory to the next
    for _ in range(2):  # both have logs at the same time
        framework.launch("exchanges", 1)
    framework.backend.advance(0)
    framework.launch("exchanges", 1)
    before, used = len(freed), logs.used
    calls.listener.lacks_memory()
    assert len(freed) > before
    assert logs.used < used
    framework.launch("exchanges", 1)
    assert framework.report().verdict == "clean"
