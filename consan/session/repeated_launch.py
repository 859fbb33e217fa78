"""A launch that a framework makes again and again: same kernel, grid, block and stream. The host does little for it.

All that `Frameworks.recorded` finds out about a launch was found out for one like it. What may have changed since is asked each time
(`_differs`); where something has, the launch takes the long way.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from consan.backends.armed import ArmedFunctions
from consan.backends.base import DEFAULT_STREAMS
from consan.backends.cost import COST
from consan.session.armed_launch import ArmedLaunch, Arming
from consan.session.executing.in_flight import Repeats, Slot
from consan.session.modules.parameters import Asked, Parameters
from consan.session.modules.prepared import Prepared

if TYPE_CHECKING:
    from consan.session.frameworks import FrameworkLaunch, Frameworks

NOT_REPEATED: Final = object()
"""Given by `RepeatedLaunch.make` where the launch was not made."""


@dataclass(eq=False, repr=False)
class RepeatedLaunch:
    """The launches like one that was made. `repeats`: None for a kernel that records nothing. `asks`: their parameters may tell more.

    `era`: of the frameworks, when it was made.
    """

    frameworks: Frameworks
    prepared: Prepared
    launch: FrameworkLaunch
    repeats: Repeats | None
    asks: bool
    era: int
    times: int = 0  # launches of a kernel that records nothing, which are not counted yet
    _args: Parameters | None = None
    _equal: int = 0  # launches with these parameters, which are not counted yet
    _armed: ArmedLaunch | None = None
    _owner: Any = field(init=False)

    def __post_init__(self) -> None:
        self._owner = self.frameworks.device.owner

    def make(self, asked: Asked, launch: Callable[..., Any], given: tuple[Any, ...], *, gives_status: bool = False) -> Any:
        """Make a launch: `launch(*given)`. Gives what that gives; `NOT_REPEATED`: nothing was done.

        `asked`: reads its parameters. `gives_status`: it gives the status of the driver, which is not 0 if the launch was refused.
        """
        frameworks, began = self.frameworks, time.perf_counter()
        with frameworks.device.lock:
            self._take_back()
            if self._differs():
                return NOT_REPEATED
            slot, args = None, asked() if self.asks else None
            if self.repeats is not None and (slot := self.repeats.begin()) is None:
                return NOT_REPEATED
            own = frameworks.streams.own
            own.depth += 1
            at = time.perf_counter()
            try:
                result = launch(*given)
            except BaseException:
                self._failed(slot)
                with frameworks.watch.ending(self.prepared, self.launch.entry, self.launch.threads):
                    raise
                return None
            finally:
                own.depth -= 1
                until = time.perf_counter()
            if gives_status and result:
                self._failed(slot)
                return result
            self._made(slot, args)
        COST.add(time.perf_counter() - until + at - began)
        return result

    def arm(self, functions: ArmedFunctions, key: Sequence[int | None]) -> None:
        """Let C make the launches that follow, if it can: they have the parameters of the last one.

        `key`: the parameters of the driver's function, up to the stream. The launch before was made by `make`.
        """
        streams, background, stream = self.frameworks.streams, self.frameworks.background, self.launch.stream
        with self.frameworks.device.lock:
            if self._armed is not None or self._differs() or not streams.may_arm(stream) or (self.asks and self._args is None):
                return
            if (followed := streams.followed_launch) is None and streams.facts is not None:
                return
            values = self._args or () if self.asks else ()
            arming = Arming(functions, [each or 0 for each in key], values, background.work.here, followed, self)
            self._armed = arming.armed() if self.repeats is None else self.repeats.arm(arming)

    def counts(self, launches: int) -> None:
        """C has made launches."""
        if self.asks:
            self._equal += launches
        if self.repeats is None:
            self.times += launches

    def _take_back(self) -> None:
        if self._armed is not None:
            with self.frameworks.background.lock:
                armed, self._armed = self._armed, None
                armed.take_back()

    def _differs(self) -> bool:
        """Whether this launch may not be like those before it."""
        frameworks = self.frameworks
        device, streams = frameworks.device, frameworks.streams
        if frameworks.era != self.era or device.lost or device.owner is not self._owner or self.prepared.logs.slow:
            return True
        if frameworks.judge.recording.accesses.wanted or not streams.adds_nothing(self.launch.stream):
            return True
        return self.repeats is None and frameworks.elsewhere(self.launch.stream)

    def _failed(self, slot: Slot | None) -> None:
        if slot is not None:
            self.repeats.failed(slot)  # type: ignore[union-attr]

    def _made(self, slot: Slot | None, args: Parameters | None) -> None:
        if self.asks:
            self._note(args)
        if slot is not None:
            self.repeats.end(slot)  # type: ignore[union-attr]
            return
        self.times += 1
        if self.launch.stream not in DEFAULT_STREAMS:
            self.frameworks.device.backend.watch(self.launch.stream)

    def _note(self, args: Parameters | None) -> None:
        if args != self._args:
            self._tell_parameters()
            self._args = args
        self._equal += 1

    def _tell_parameters(self) -> None:
        if self._equal and self._args is not None:
            self.frameworks.looks.counts(self.prepared, self.launch, self._args, self._equal)
        self._equal = 0

    def tell(self) -> None:
        """Count what was not counted yet."""
        self._take_back()
        self._tell_parameters()
        times, self.times = self.times, 0
        if times:
            launch = self.launch
            kernels = self.frameworks.judge.recording.kernels
            kernels.counts_again(self.prepared, launch.entry, launch.grid, launch.block, launch.cluster, times)
