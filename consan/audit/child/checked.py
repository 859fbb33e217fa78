"""Checked launches on the virtual machine, each in a session of its own: of host code (launcher.py) and of launch files (described.py)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from consan.audit.launch_file import LaunchSize
from consan.reports.model import Report
from consan.reports.source.variables import Argument
from consan.session.modules.device import Device
from consan.session.modules.layouts import name_addresses
from consan.session.planning.options import SessionOptions
from consan.session.session import Session
from consan.suppressions import finish


@dataclass(frozen=True)
class CheckedLaunch:
    """A launch that was made: its kernel in C++, its shape, its report, the seconds that it took, whether it is a guess."""

    kernel: str
    shape: LaunchSize
    report: Report
    seconds: float
    guessed: bool = False


@dataclass(frozen=True)
class AuditedKernel:
    """A kernel that can be launched: its name in C++ and in PTX, its module, and the session of its next launch."""

    name: str
    entry: str
    prepared: Any
    session: Session


@dataclass
class CheckedLaunches:
    """Makes launches. `launched` is given each; `seconds` is the longest that one may take."""

    device: Device
    launched: Callable[[CheckedLaunch], None]
    seconds: float = 20.0

    @property
    def options(self) -> SessionOptions:
        """Of the session of a launch."""
        return SessionOptions(device="cpu", timeout=self.seconds)

    def opened(self) -> Session:
        """A session for one launch."""
        session = Session(self.options, on=self.device)
        session.recording.fixes.off = True  # a search for a fix takes longer than the launch
        return session

    def launch(
        self, kernel: AuditedKernel, shape: LaunchSize, values: Sequence[bytes], buffers: Sequence[Argument], *, guessed: bool = False
    ) -> Report:
        """Launch it with the bytes of its parameters, and check it."""
        started, session = time.monotonic(), kernel.session
        how: dict[str, Any] = {"shared": shape.shared, "cluster": shape.cluster, "cooperative": shape.cooperative}
        with session.turn():
            session.address_name = name_addresses(kernel.prepared, kernel.entry, buffers)
            session.launch(kernel.prepared, kernel.entry, shape.grid, shape.block, values, **how)
            report = finish(session.report())
        self.launched(CheckedLaunch(kernel.name, shape, report, time.monotonic() - started, guessed))
        return report
