"""Checked launches on the virtual machine or a GPU, a session each: of host code (launcher.py), launch files (described.py)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

from consan.audit.child.managed import open_gpu
from consan.audit.child.questions import MemoryQuestions
from consan.audit.launch_file import LaunchSize
from consan.audit.rows import LaunchAnswers
from consan.dataclass import dataclass
from consan.reports.model import Report
from consan.reports.source.variables import Argument
from consan.session.modules.device import Device
from consan.session.modules.layouts import name_addresses
from consan.session.planning.options import SessionOptions
from consan.session.session import Session
from consan.suppressions import finish


@dataclass(frozen=True)
class CheckedLaunch:
    """A launch that was made: its kernel in C++, its shape, its report, the seconds that it took, whether it is a guess.

    `stopped`: it did not run to its end, so what it was to write is not there.
    """

    kernel: str
    shape: LaunchSize
    report: Report
    seconds: float
    guessed: bool = False
    answers: LaunchAnswers | None = None
    stopped: bool = False


@dataclass(frozen=True)
class AuditedKernel:
    """A kernel that can be launched: its name in C++ and in PTX, its module, and the session of its next launch."""

    name: str
    entry: str
    prepared: Any
    session: Session


@dataclass
class AuditedDevice:
    """The device of a file: the server's virtual machine, or a GPU (managed.py), which the process that launches opens."""

    machine: Device | None = None
    _gpu: Device | None = field(default=None, init=False)

    @property
    def is_gpu(self) -> bool:
        """Whether it is a GPU."""
        return self.machine is None

    @property
    def opened(self) -> Device:
        """The device for this process."""
        if self.machine is not None:
            return self.machine
        self._gpu = self._gpu or open_gpu()
        return self._gpu


@dataclass
class CheckedLaunches:
    """Makes launches. `launched` is given each; `seconds` is the longest that one may take. `seeds`: of the schedules that each is to have;
    0: one, and no questions. `first_threads`: of the CTAs of a launch that start; 0: all, as always on a GPU."""

    audited: AuditedDevice
    launched: Callable[[CheckedLaunch], None]
    seconds: float = 20.0
    seeds: int = 0
    first_threads: int = 0

    @property
    def device(self) -> Device:
        """Where launches are made."""
        return self.audited.opened

    @property
    def arena(self) -> Any:
        """The memory of the machine."""
        return self.device.backend.machine.arena  # type: ignore[attr-defined]

    def answers(self, session: Session, launch: Callable[[Session], object], entry: str, values: Sequence[bytes]) -> LaunchAnswers | None:
        """Make a launch, with the questions about it if there are any. `launch` makes it in a session."""
        if not self.seeds:
            launch(session)
            return None

        def run(seed: int) -> bool:
            session.seed = seed
            launch(session)
            return not session.watch.endings

        def quiet() -> None:
            other = self.opened()
            with other.turn():
                launch(other)

        return MemoryQuestions(self.arena, self.seeds, run, quiet, session.address_name).answers(entry, values)

    @property
    def options(self) -> SessionOptions:
        """The options of the session of a launch."""
        return SessionOptions(device="gpu" if self.audited.is_gpu else "cpu", timeout=self.seconds)

    def opened(self) -> Session:
        """A session for one launch."""
        session = Session(self.options, on=self.device)
        self.prepare(session)
        return session

    def prepare(self, session: Session) -> None:
        """Make a session's launches as these are to be."""
        session.recording.fixes.off = True  # a search for a fix takes longer than the launch
        session.recording.first_threads = self.first_threads

    def _leaves_out(self, shape: LaunchSize) -> bool:
        """Whether some CTAs of a launch do not start."""
        return bool(self.first_threads) and math.prod(shape.grid) * math.prod(shape.block) > self.first_threads

    def launch(
        self, kernel: AuditedKernel, shape: LaunchSize, values: Sequence[bytes], buffers: Sequence[Argument], *, guessed: bool = False
    ) -> Report:
        """Launch it with the bytes of its parameters, and check it."""
        started, session = time.monotonic(), kernel.session
        how: dict[str, Any] = {"shared": shape.shared, "cluster": shape.cluster, "cooperative": shape.cooperative}
        prepared, entry = kernel.prepared, kernel.entry
        with session.turn():
            session.address_name = name_addresses(prepared, entry, buffers)
            answers = self.answers(
                session, lambda used: used.launch(prepared, entry, shape.grid, shape.block, values, **how), entry, values
            )
            report = finish(session.report())
        taken = time.monotonic() - started
        stopped = bool(session.watch.endings) or self._leaves_out(shape)
        self.launched(CheckedLaunch(kernel.name, shape, report, taken, guessed, answers, stopped))
        return report
