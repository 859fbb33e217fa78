"""A launch that a framework makes, as its adapter gives it to the session."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from consan.backends.base import Dim3, Handle
from consan.dataclass import dataclass
from consan.reports.source.variables import Argument
from consan.session.modules.parameters import Asked, unknown
from consan.session.planning.plan import PlannedLaunch

if TYPE_CHECKING:
    from consan.session.executing.in_flight_launch import Shape
    from consan.session.modules.prepared import Prepared


@dataclass(frozen=True)
class FrameworkLaunch:
    """One launch. `stream`: its handle. `module`: as the framework has loaded it. `shared`: bytes of dynamic shared memory.

    `args`: reads the parameters, before the launch. `edge`: how a program lets one stream of the framework wait for another.
    `buffers`: reads those among the arguments, whose names findings have. Only launches that may do something new need both.
    `replaceable`: where launches like it are made again, another kernel may be launched (`RepeatedLaunch.make`).
    """

    entry: str
    grid: Dim3
    block: Dim3
    cluster: Dim3
    stream: int
    module: Handle
    shared: int = 0
    args: Asked = unknown
    edge: str = ""
    buffers: Callable[[], Sequence[Argument]] | None = None
    replaceable: bool = False

    @property
    def threads(self) -> int:
        """Threads of the grid."""
        return math.prod(self.grid) * math.prod(self.block)

    @property
    def planned(self) -> PlannedLaunch:
        """It, for the plan of its log."""
        return PlannedLaunch(self.grid, self.block, self.cluster, asked=self.args)

    @property
    def without_arguments(self) -> FrameworkLaunch:
        """This launch, to be kept: a program's arguments live no longer than it wants."""
        return replace(self, args=unknown, buffers=None)


def records_global(form: Prepared, launch: FrameworkLaunch) -> bool:
    """Whether a form of a module records the global memory of a launch."""
    return form.recorded is not None and form.recorded.has_global(launch.entry)


def shape_of(prepared: Prepared, launch: FrameworkLaunch) -> Shape:
    """The shape of a launch, with the length of its log."""
    extents = launch.grid, launch.block, launch.cluster
    length = prepared.logs.length((prepared.number_of(launch.entry), *extents))
    return launch.module, prepared.number, launch.entry, *extents, length, launch.shared


@contextlib.contextmanager
def loaded_as(prepared: Prepared, module: Handle) -> Iterator[None]:
    """Inside the block the module is the one that the framework has loaded: it may load the same text more than once."""
    before, prepared.handle = prepared.handle, module
    try:
        yield
    finally:
        prepared.handle = before
