"""A launch that a framework makes again and again: same kernel, grid, block and stream. The host does little for it.

All that `Frameworks.recorded` finds out about a launch was found out for one like it. What may have changed since is asked each time
(`_differs`); where something has, the launch takes the long way.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from consan.backends.armed import AlikeLaunches, Arming, Lent, MadeLaunches, armed_functions
from consan.backends.base import DEFAULT_STREAMS
from consan.backends.cost import COST
from consan.session.modules.device import Device
from consan.session.modules.parameters import Asked, Parameters
from consan.session.modules.prepared import Prepared

if TYPE_CHECKING:
    from consan.session.frameworks import FrameworkLaunch, Frameworks

_STREAM: Final = 8  # its place in a key
_MOST_TIMES: Final = 256  # sets of parameters whose launches are not counted yet
NOT_REPEATED: Final = object()
"""Given by `RepeatedLaunch.make` where the launch was not made."""


NOTHING: Final = "nothing"
"""What a launch takes that records nothing."""


@dataclass(eq=False, repr=False)
class SilentLaunches(AlikeLaunches[str]):
    """Those of a kernel that records nothing: they are counted."""

    device: Device
    lock: threading.RLock
    stream: int
    times: dict[Parameters | None, int] = field(default_factory=dict)

    def begin(self) -> str:
        """Nothing comes before the kernel."""
        return NOTHING

    def ended(self, taken: str) -> None:
        """Nothing comes behind it; the host waits for its stream."""
        if self.stream not in DEFAULT_STREAMS:
            self.device.backend.watch(self.stream)

    def left(self, taken: str) -> None:
        """Nothing is given back."""

    def lends(self) -> Lent[str] | None:
        """C asks neither whether another stream is captured nor waits for it."""
        return Lent((NOTHING,)) if self.stream in DEFAULT_STREAMS else None

    def lent(self) -> None:
        """Nothing is given away."""

    def taken_back(self, taken: Sequence[str], made: MadeLaunches) -> None:
        """All that is known of them is their number."""


@dataclass(eq=False, repr=False)
class RepeatedLaunch:
    """The launches like one that was made. `asks`: their parameters may tell more. `era`: of the frameworks, when it was made.

    How they are made depends on no parameter: only the later proofs do (global_looks.py).
    """

    frameworks: Frameworks
    prepared: Prepared
    launch: FrameworkLaunch
    alike: AlikeLaunches[Any]
    asks: bool
    era: int
    _args: Parameters | None = None  # of the last one
    _owner: Any = field(init=False)

    def __post_init__(self) -> None:
        self._owner = self.frameworks.device.owner

    def make(self, asked: Asked, launch: Callable[..., Any], given: tuple[Any, ...], *, gives_status: bool = False) -> Any:
        """Make a launch: `launch(*given)`. Gives what that gives; `NOT_REPEATED`: nothing was done.

        `asked`: reads its parameters. `gives_status`: it gives the status of the driver, which is not 0 if the launch was refused.
        """
        frameworks, alike, began = self.frameworks, self.alike, time.perf_counter()
        with frameworks.device.lock:
            args = asked() if self.asks else None
            taken = self._begins()
            if taken is None:
                return NOT_REPEATED
            own = frameworks.streams.own
            own.depth += 1
            at = time.perf_counter()
            try:
                result = launch(*given)
            except BaseException:
                alike.failed(taken)
                with frameworks.watch.ending(self.prepared, self.launch.entry, self.launch.threads):
                    raise
                return None
            finally:
                own.depth -= 1
                until = time.perf_counter()
            if gives_status and result:
                alike.failed(taken)
                return result
            self._args = args
            alike.end(taken, args)
            if len(alike.times) > _MOST_TIMES:
                self._tell(alike.counts())
        COST.add(time.perf_counter() - until + at - began)
        return result

    def _begins(self) -> Any:
        """What the launch takes. None: it takes the long way."""
        if self.era == self.frameworks.era and self.frameworks.device.owner is self._owner:
            taken = self.alike.resume()
            if taken is not None:
                return taken
        with self.frameworks.background.lock:
            self.alike.take_back()
        return None if self._differs() else self.alike.begin()

    def arm(self, key: Sequence[int | None] = ()) -> None:
        """Let C make the launches that follow, if it can. The launch before was made by `make`.

        `key`: the parameters of `cuLaunchKernel`, up to the stream; empty: Python makes the launches, and C what comes before and behind.
        """
        work = self.frameworks.device.backend.work
        if self.alike.is_armed or work is None or (functions := armed_functions()) is None:
            return
        streams, stream = self.frameworks.streams, self.launch.stream
        with self.frameworks.device.lock:
            if self._differs() or not streams.may_arm(stream) or (self.asks and key and self._args is None):
                return
            values = self._args or () if self.asks and key else ()
            words = [each or 0 for each in key] or [0] * _STREAM + [stream]
            self.alike.arm(Arming(functions, words, values, work.here, streams.followed_launch))

    def _differs(self) -> bool:
        """Whether this launch may not be like those before it."""
        frameworks = self.frameworks
        device, streams = frameworks.device, frameworks.streams
        if frameworks.era != self.era or device.lost or device.owner is not self._owner or self.prepared.logs.slow:
            return True
        if frameworks.judge.recording.accesses.wanted or not streams.adds_nothing(self.launch.stream):
            return True
        return isinstance(self.alike, SilentLaunches) and frameworks.elsewhere(self.launch.stream)

    def tell(self) -> None:
        """Count what was not counted yet."""
        self._tell(self.alike.counts())

    def _tell(self, times: Mapping[Parameters | None, int]) -> None:
        launch, frameworks = self.launch, self.frameworks
        for args, count in times.items() if self.asks else ():
            if args is not None:
                frameworks.looks.counts(self.prepared, launch, args, count)
        if times and isinstance(self.alike, SilentLaunches):
            kernels = frameworks.judge.recording.kernels
            kernels.counts_again(self.prepared, launch.entry, launch.grid, launch.block, launch.cluster, sum(times.values()))
