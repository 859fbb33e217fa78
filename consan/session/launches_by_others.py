"""Launches of recorded kernels that no framework makes: a program has taken the handle of one, and gives it to the driver.

Such a kernel runs without a log. The listener of the driver's calls counts it (consan/backends/call_filter.py): the report is incomplete.

Not seen: launches where the driver's calls are not followed (`--global off`), and how often a graph with such a launch runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from consan.backends.armed import AlikeParameters, MadeLaunches, armed_functions
from consan.backends.base import LaunchWork, StreamWork
from consan.dataclass import compile_now, dataclass
from consan.session.executing.in_flight import Repeats
from consan.session.executing.in_flight_launch import ReceiptGroup
from consan.session.planning.decided import DecidedLaunches
from consan.session.repeated_launch import KnownLaunches, LaunchesLikeOne, RepeatedLaunch, SilentLaunches

if TYPE_CHECKING:
    from consan.backends.base import Handle
    from consan.session.executing.checked_kernels import CheckedKernels
    from consan.session.modules.prepared import Prepared

WHY: Final = "the program calls the driver with its handle (cuLaunchKernel), and not its framework"

_OF_REPEATED: Final = (
    *(AlikeParameters, DecidedLaunches, KnownLaunches, LaunchesLikeOne, LaunchWork, MadeLaunches, ReceiptGroup),
    *(RepeatedLaunch, Repeats, SilentLaunches),
)


def get_ready(work: StreamWork | None) -> None:
    """Load and compile what launches that repeat need: that takes as long as a hundred of them."""
    if work is not None and armed_functions() is not None:
        _ = work.here
        compile_now(*_OF_REPEATED)


@dataclass(eq=False)
class LaunchesByOthers:
    """Those of one session. `backend`: that of a GPU, if it has calls. `used`: the modules in use, by their numbers."""

    backend: Any
    kernels: CheckedKernels
    used: dict[int, Prepared]
    _known: dict[int, tuple[Prepared, str]] = field(default_factory=dict)  # by handle

    def add(self, prepared: Prepared, module: Handle, handles: Callable[[str], Iterable[int]]) -> None:
        """A framework has loaded a module. `handles`: gives those of a kernel that are not of the module."""
        if self.backend.calls is None:
            return
        for entry in prepared.entries:
            for handle in (self.backend.function(module, entry, 0, (1, 1, 1)), *handles(entry)):
                self.backend.calls.count_kernel(handle)
                self._known[handle] = prepared, entry

    def tell(self) -> None:
        """Count the launches since the last time."""
        for handle, (prepared, entry) in self._known.items() if self.backend.calls is not None else ():
            if count := self.backend.calls.taken_count(handle):
                self.kernels.lacks_record(prepared, entry, WHY, count)
                self.used[prepared.number] = prepared
