"""Launches that repeat while `--overhead` leaves no time for a log: the kernel as it is is launched, by C where it can."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from consan.backends.armed import Lent
from consan.dataclass import dataclass
from consan.session.framework_launch import FrameworkLaunch
from consan.session.modules.parameters import Parameters
from consan.session.modules.prepared import Prepared
from consan.session.planning.selection import Selection
from consan.session.repeated_launch import PlainLaunches, RepeatedLaunch

if TYPE_CHECKING:
    from consan.session.frameworks import Frameworks


@dataclass(eq=False, repr=False, kw_only=True)
class SparedLaunches(PlainLaunches):
    """They are counted as left out. `over`: not 0 once there is time again."""

    selection: Selection
    over: ctypes.c_int64

    @classmethod
    def of(cls, frameworks: Frameworks, prepared: Prepared, launch: FrameworkLaunch) -> SparedLaunches | None:
        """Those like one that was made now. None: there is time."""
        extents = launch.grid, launch.block, launch.cluster
        over = frameworks.selection.until_there_is_time(prepared.number, launch.entry, extents) if launch.replaceable else None
        if over is None:
            return None
        instead, lock = frameworks.plain(prepared, launch), frameworks.background.lock
        return cls(frameworks.device, lock, launch.stream, instead=instead, selection=frameworks.selection, over=over)

    def covers(self, args: Parameters | None) -> bool:
        """Whether there is no time yet."""
        return not self.over.value

    def lends(self) -> Lent[str] | None:
        """C launches until there is time."""
        lent = super().lends()
        return None if lent is None else lent._replace(instead=self.instead, over=self.over)

    def once_over(self, then: Callable[[], None]) -> None:
        """Call something once there is time."""
        if self.selection.budget is not None:
            self.selection.budget.once_there_is_time(then)

    def tell(self, repeated: RepeatedLaunch, times: Mapping[Parameters | None, int]) -> None:
        """Count launches."""
        self.selection.spared[repeated.prepared.number, repeated.launch.entry] += sum(times.values())
