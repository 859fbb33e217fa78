"""Programs whose repeated launches C makes, over a driver that does nothing (tests/bench/bench_launch.py)."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest

from consan.adapters.recorded import FrameworkModules
from consan.adapters.triton.gpu import RecordedRun
from consan.backends.armed import Armed
from consan.session.executing import time_limit
from consan.session.executing.judging import Judge

sys.path.append(str(Path(__file__).parents[1] / "bench"))
import bench_launch

OPEN: list[Program] = []  # the end of a test closes those that it has left open, also where it fails


class Program(bench_launch.Program):
    """A program of one framework. `python`: launches that C does not make; `helped`: those of them before which Python called C.

    `long`: those that are not made as one before them.
    """

    def __init__(self, library: bench_launch.NullLibrary, way: str, kernel: str, stream: int = 0, calls: Any = None, **more: Any) -> None:
        super().__init__(library, kernel, "auto", stream, calls, **more)
        OPEN.append(self)
        self.python = self.helped = self.long = 0
        self.way = way
        _, self._checked = getattr(self, way)()

    def sees(self, ours: Any) -> Any:
        def counted(*given: Any) -> int:
            self.python += 1
            return int(ours(*given))

        return counted

    def launch(self, times: int = 1) -> int:
        """Returns how many of them C has made, or helped to make."""
        before, helped, self.status = self.python, self.helped, 0
        for _ in range(times):
            self.status = self._checked()
        by_python = times if self.way == "core" else self.python - before
        return times - by_python + self.helped - helped

    def repeats(self, times: int) -> int:
        """Launch. Returns how many of the launches were made as one before them, by C or by Python."""
        before = self.long
        self.launch(times)
        return times - (self.long - before)

    def learn(self) -> int:
        """Launch until C makes a launch. Gives how many were made."""
        for times in range(1, 100):
            if self.launch():
                return times
            time.sleep(0.02)  # for the thread that checks
        raise AssertionError("C makes no launch")

    def counts(self) -> tuple[str, int]:
        """The verdict, and launches."""
        report = self.session.report()
        return report.verdict, sum(kernel.launches for kernel in report.kernels)

    def switch(self, name: str, value: int) -> None:
        """Set a variable of the driver."""
        self.library.set(name, value)

    def close(self) -> None:
        """The driver and the frameworks are as they were."""
        if self not in OPEN:
            return
        OPEN.remove(self)
        for name in ("null_sum", "null_status", "null_late"):
            self.switch(name, 0)
        super().close()


def launches_examined(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The launches that are examined from now on."""
    examined, known = list[Any](), Judge.examined
    monkeypatch.setattr(Judge, "examined", lambda *given: examined.append(given) or known(*given))
    return examined


def opened(
    given: str, library: bench_launch.NullLibrary, monkeypatch: pytest.MonkeyPatch, stream: int = 0, calls: Any = None, **more: Any
) -> Program:
    """A program, by its framework and kernel. `calls`: who reports calls of the driver. `more`: options."""
    monkeypatch.setattr(time_limit, "LOOK_EVERY", 60.0)  # its look takes launches back
    monkeypatch.setattr(Judge, "examined", Judge.examined)  # the program replaces it
    for name in bench_launch.OF_CORE if given.startswith("core") else ():
        monkeypatch.setitem(sys.modules, name, None)  # the same
    made, begin = Program(library, *given.split(), stream, calls, **more), Armed.begin

    def counted(armed: Armed) -> int | None:
        slot = begin(armed)
        made.helped += slot is not None
        return slot

    call = RecordedRun.__call__

    def counted_run(run: RecordedRun, *given: Any) -> Any:
        made.python += 1
        return call(run, *given)

    launching = FrameworkModules.launching

    def counted_long(modules: FrameworkModules, *given: Any) -> Any:
        made.long += 1
        return launching(modules, *given)

    monkeypatch.setattr(FrameworkModules, "launching", counted_long)
    monkeypatch.setattr(Armed, "begin", counted)
    monkeypatch.setattr(RecordedRun, "__call__", counted_run)
    return made
