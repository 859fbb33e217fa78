"""A launch that a framework makes again and again: same kernel, grid, block and stream. The host does little for it.

All that `Frameworks.recorded` finds out about a launch was found out for one like it. Facts that may have changed since are compared each
time (`differs`); where something has, the launch takes the long way.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from consan._errors import ConsanError
from consan.backends.armed import AlikeLaunches, Arming, Lent, MadeLaunches, armed_functions
from consan.backends.base import DEFAULT_STREAMS, FollowedLaunch
from consan.backends.cost import COST
from consan.backends.driver import MADE, QUIET
from consan.dataclass import dataclass
from consan.instrument.record.recorded import DecidingBytes
from consan.ranges import LaunchExtents
from consan.reports.model import AllLaunchesProof
from consan.session.executing.in_flight_launch import shape_but_log
from consan.session.framework_launch import FrameworkLaunch
from consan.session.modules.device import Device
from consan.session.modules.parameters import Asked, Parameters
from consan.session.modules.prepared import Prepared
from consan.session.planning.decided import DecidedLaunches

if TYPE_CHECKING:
    from consan.session.executing.background import Background
    from consan.session.executing.in_flight_launch import InFlightLaunch, ReceiptGroup, Shape
    from consan.session.frameworks import Frameworks

_STREAM: Final = 8  # its place in a key
MOST_UNKNOWN: Final = 64  # launches with parameters that none before them had: most of that kernel may have new ones
_MOST_TIMES: Final = 256  # sets of parameters whose launches are not counted yet
_HEARD: Final = ctypes.c_int()  # counts for nobody
NOT_REPEATED: Final = object()
"""Given by `RepeatedLaunch.make` where the launch was not made."""

NOTHING: Final = "nothing"
"""The arguments of a launch that records nothing."""


def deciding(bytes_of: Sequence[DecidingBytes] | None, args: Parameters | None) -> list[tuple[int, int, bytes]]:
    """The bytes that parameters must have, as C takes them: those of these parameters."""
    return [(each.parameter, each.offset, each.within(args or ())) for each in bytes_of or ()]


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

    def once_over(self, then: Callable[[], None]) -> None:
        """Call something once such launches are not to be made by others any more (`Lent.over`)."""

    def taken_back(self, taken: Sequence[str], made: MadeLaunches) -> None:
        """All that is known of them is their number."""

    def tell(self, repeated: RepeatedLaunch, times: Mapping[Parameters | None, int]) -> None:
        """Count launches."""
        launch, kernels = repeated.launch, repeated.frameworks.judge.recording.kernels
        kernels.counts_again(repeated.prepared, launch.entry, launch.grid, launch.block, launch.cluster, sum(times.values()))


@dataclass(eq=False, repr=False, kw_only=True)
class PlainLaunches(SilentLaunches):
    """Those in whose place the kernel as it is is launched, and which are counted. `instead`: the handle of that kernel."""

    instead: int
    _unknown: int = 0  # launches that are none of them

    @property
    def serves(self) -> bool:
        """Whether most launches are such."""
        return self._unknown < MOST_UNKNOWN


@dataclass(eq=False, repr=False, kw_only=True)
class LaunchesByProof(PlainLaunches):
    """Those of a kernel that has no race in any launch (planning/launch_proofs.py). Memory may have moved since, so Python looks at each.

    `proves`: the proof, if it covers a launch with some parameters.
    """

    asks = True
    by_itself = False
    proves: Callable[[Parameters], AllLaunchesProof | None]
    _proof: AllLaunchesProof | None = None

    @classmethod
    def of(
        cls, frameworks: Frameworks, prepared: Prepared, launch: FrameworkLaunch, before: AlikeLaunches[Any] | None
    ) -> LaunchesByProof | None:
        """Those like one that was made now. None: there is no proof, or only parameters decide what they do, so they are soon known."""
        judge, recording = frameworks.judge, frameworks.judge.recording
        compact = None if prepared.recorded is None else prepared.recorded.kernel(launch.entry).compact
        without = recording.asked or not launch.replaceable or judge.may_stop(prepared, launch.entry)
        if judge.always is None or without or (compact is not None and not compact.hashes):
            return None
        if isinstance(before, LaunchesByProof):
            return before if before.serves else None
        extents, args = LaunchExtents(launch.grid, launch.block), launch.args()
        if args is None or (proof := judge.proof_of(prepared, launch.entry, extents, args)) is None:
            return None
        recording.kernels.covers(prepared, launch.entry, proof)
        judge.keep_shown(prepared, launch.entry, extents, args)
        proves = functools.partial(judge.proof_of_shown, prepared, launch.entry, extents)
        instead, lock = frameworks.plain(prepared, launch), frameworks.background.lock
        return cls(frameworks.device, lock, launch.stream, instead=instead, proves=proves)

    def covers(self, args: Parameters | None) -> bool:
        """Whether the proof covers a launch."""
        found = None if args is None else self.proves(args)
        self._proof = found or self._proof
        self._unknown += found is None
        return found is not None

    def tell(self, repeated: RepeatedLaunch, times: Mapping[Parameters | None, int]) -> None:
        """Count launches."""
        launch, kernels = repeated.launch, repeated.frameworks.judge.recording.kernels
        if self._proof is not None:
            kernels.counts_always(
                repeated.prepared, launch.entry, self._proof, launch.grid, launch.block, recorded=False, times=sum(times.values())
            )


@dataclass(eq=False, repr=False, kw_only=True)
class KnownLaunches(PlainLaunches):
    """Those that are known to do what a checked one did (planning/decided.py)."""

    background: Background
    decided: DecidedLaunches[ReceiptGroup]

    @classmethod
    def of(
        cls, frameworks: Frameworks, prepared: Prepared, launch: FrameworkLaunch, shape: Shape, before: AlikeLaunches[Any] | None
    ) -> KnownLaunches | None:
        """Those of a shape. None: none is known, or most are not."""
        background = frameworks.background
        decided = background.repeating.decided(shape) if launch.replaceable else None
        if decided is None or frameworks.judge.may_stop(prepared, launch.entry, decided=True):
            return None
        if not (isinstance(before, KnownLaunches) and before.decided is decided):
            instead = frameworks.plain(prepared, launch)
            before = cls(frameworks.device, background.lock, launch.stream, background=background, decided=decided, instead=instead)
        return before if before.serves else None

    def covers(self, args: Parameters | None) -> bool:
        """Whether it is known what a launch does."""
        known = self.decided.of(args) is not None
        self.known = args if known else self.known
        self._unknown += not known
        return known

    @property
    def asks(self) -> bool:
        """Whether parameters decide what launches do."""
        return bool(self.decided.decides)

    def lends(self) -> Lent[str] | None:
        """C compares the bytes that decide with those of the launch before."""
        lent = super().lends()
        return None if lent is None else lent._replace(instead=self.instead, decides=deciding(self.decided.decides, self.known))

    def tell(self, repeated: RepeatedLaunch, times: Mapping[Parameters | None, int]) -> None:
        """Count launches."""
        for args, count in times.items():
            if (account := self.decided.of(args)) is not None:
                self.background.counts(account, count)


@dataclass(eq=False, repr=False, kw_only=True)
class LaunchesLikeOne(PlainLaunches):
    """Those with the deciding bytes of a launch that is checked now. They count as it does, once that is known."""

    background: Background
    checked: InFlightLaunch
    _decided: Parameters | None = None  # the parameters of one

    @classmethod
    def of(cls, frameworks: Frameworks, prepared: Prepared, launch: FrameworkLaunch, shape: Shape) -> LaunchesLikeOne | None:
        """The launches like one. None: there is none that is checked now, or more than parameters decides what they do."""
        background, compact = frameworks.background, None if prepared.recorded is None else prepared.recorded.kernel(launch.entry).compact
        if compact is None or compact.hashes or not launch.replaceable or background.work.vanishes:
            return None
        if frameworks.judge.may_stop(prepared, launch.entry, decided=True):
            return None
        like, args = shape_but_log(shape), launch.args()
        with background.lock:
            background.look()
            found = (each for each in background.sent if shape_but_log(each.shape) == like and each.is_checked_now and each.decides(args))
            checked = next(found, None)
        if checked is None:
            if not prepared.plain_loaded:  # the first launch takes longer than to load what serves the next ones
                with contextlib.suppress(ConsanError):  # that is said where it is needed
                    frameworks.plain(prepared, launch)
            return None
        instead = frameworks.plain(prepared, launch)
        return cls(frameworks.device, background.lock, launch.stream, instead=instead, background=background, checked=checked)

    def covers(self, args: Parameters | None) -> bool:
        """Whether a launch is such a one, and the check goes on."""
        covered = self.checked.is_checked_now and ((args is not None and args is self._decided) or self.checked.decides(args))
        self._decided = args if covered else self._decided
        self._unknown += not covered
        return covered

    @property
    def asks(self) -> bool:
        """Whether parameters decide what launches do."""
        return bool(self.checked.memory.decided_by)

    def lends(self) -> Lent[str] | None:
        """C compares the bytes that decide with those of the launch that is checked, until that is over."""
        lent, account = super().lends(), self.checked.account
        if lent is None or account is None:
            return None
        return lent._replace(instead=self.instead, decides=deciding(self.checked.memory.decided_by, self.checked.args), over=account.over)

    def tell(self, repeated: RepeatedLaunch, times: Mapping[Parameters | None, int]) -> None:
        """Count launches."""
        self.background.repeating.counts_like(self.checked, sum(times.values()))


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
    args: Parameters | None = None  # of the last one
    _by_words: bool = False  # C may make them
    # Whether calls let it, and how it notes them: when it was armed, and at the last launch that Python has made.
    _armed_with: tuple[bool, FollowedLaunch | None] = (False, None)
    _seen: tuple[bool, FollowedLaunch | None] = (False, None)
    _in_turn: bool = False  # the last one was no programmatic dependent launch
    _owner: Any = field(init=False)

    def __post_init__(self) -> None:
        self._owner = self.frameworks.device.owned_by

    def make(self, asked: Asked, launch: Callable[..., Any], given: tuple[Any, ...], *, at: int = 0, gives_status: bool = False) -> Any:
        """Make a launch: `launch(*given)`. Gives what that gives; `NOT_REPEATED`: nothing was done.

        `asked`: reads its parameters. `at`: which of those given is the handle of the kernel. `gives_status`: it gives the status of
        the driver, which is not 0 if the launch was refused.
        """
        frameworks, alike, began = self.frameworks, self.alike, time.perf_counter()
        if alike.instead:
            given = (*given[:at], alike.instead, *given[at + 1 :])
        with frameworks.device.lock:
            counted, streams, prepared, entry = self.asks or alike.asks, frameworks.streams, self.prepared, self.launch.entry
            looks_where = frameworks.looks_where(prepared, entry)
            args = asked() if counted or streams.several or looks_where else None
            placed = None if streams.adds_nothing(self.launch.stream) else frameworks.among_streams(prepared, self.launch, args)
            known = placed is not None and placed.look.known is not None
            if looks_where and not known and frameworks.peers.may_reach(prepared, entry, args):
                return NOT_REPEATED
            taken = self._begins(alike, args, placed=placed is not None)
            if taken is None:
                return NOT_REPEATED
            if placed is not None:
                frameworks.begun(placed.look)
            own, made, args = streams.own, MADE.count, args if counted else None
            quiet = QUIET.count if (placed is None or self._in_turn) and streams.drops(placed=placed is not None) else _HEARD
            own.programmatic = False
            own.depth += 1
            made.value += 1
            quiet.value += 1
            reached = time.perf_counter()
            try:
                result = launch(*given)
            except BaseException:
                alike.end(taken, args, made=False)
                with frameworks.watch.ending(self.prepared, self.launch.entry, self.launch.threads):
                    raise
                return None
            finally:
                own.depth -= 1
                made.value -= 1
                quiet.value -= 1
                until = time.perf_counter()
            if gives_status and result:
                alike.end(taken, args, made=False)
                return result
            self.args, self._in_turn = args, not own.programmatic
            alike.end(taken, args)
            if placed is not None:
                frameworks.launched_again(self.prepared, self.launch, placed)
            if len(alike.times) > _MOST_TIMES:
                self._tell(alike.counts())
        COST.add(time.perf_counter() - until + reached - began)
        return result

    def _begins(self, alike: AlikeLaunches[Any], args: Parameters | None, *, placed: bool) -> Any:
        """The arguments of the launch. None: it takes the long way. `placed`: its place among those of several streams is given to it."""
        frameworks, stream = self.frameworks, self.launch.stream
        if alike.instead and (args is None or args is not alike.known) and not alike.covers(args):
            return None
        if self.era == frameworks.era and frameworks.device.owned_by is self._owner and alike.armed is not None:
            sees, self._seen = self._seen, frameworks.streams.in_c(stream)
            c_sees = self._by_words and sees == self._seen != self._armed_with  # what it did not see when it was armed, and twice since
            idle = placed or frameworks.streams.adds_nothing(stream)
            taken = alike.resume() if idle and not (c_sees or frameworks.judge.recording.accesses.wanted) else None
            if taken is not None:
                return taken
        with frameworks.background.lock:
            alike.take_back()
        return None if self.differs(placed=placed) else alike.begin()

    def arm(self, key: Sequence[int | None] = ()) -> None:
        """Let C make the launches that follow, if it can. The launch before was made by `make`.

        `key`: the parameters of `cuLaunchKernel`, up to the stream; empty: Python makes the launches, and C what comes before and behind.
        So it does where Python looks at each launch: its parameters are not known, or memory is shared.
        """
        work = self.frameworks.device.backend.work
        if work is None or (functions := armed_functions()) is None:
            return
        frameworks = self.frameworks
        streams, stream, asks, sharings = frameworks.streams, self.launch.stream, self.asks or self.alike.asks, functions.shares()
        self._by_words, self._armed_with = bool(key) and self.alike.by_itself, streams.in_c(stream)
        may, followed = self._armed_with
        looked_at = not (self._by_words and may) or frameworks.peers.shares or (asks and self.args is None)
        key = () if looked_at else key
        with frameworks.device.lock:
            if frameworks.peers.of_process or self.differs():
                return
            values = self.args or () if asks and key else ()
            words = [each or 0 for each in key] or [0] * _STREAM + [stream]
            self.alike.arm(Arming(functions, words, values, work.here, followed, sharings))

    def differs(self, *, placed: bool = False) -> bool:
        """Whether this launch may not be like those before it. `placed`: see `_begins`."""
        frameworks = self.frameworks
        device = frameworks.device
        if frameworks.era != self.era or device.lost or device.owned_by is not self._owner or self.prepared.logs.slow:
            return True
        if not self._adds_nothing(placed=placed):
            return True
        return isinstance(self.alike, SilentLaunches) and frameworks.elsewhere(self.launch.stream)

    def _adds_nothing(self, *, placed: bool) -> bool:
        """Whether the launch adds nothing to what is known of the order of launches."""
        frameworks = self.frameworks
        return not frameworks.judge.recording.accesses.wanted and (placed or frameworks.streams.adds_nothing(self.launch.stream))

    def tell(self) -> None:
        """Count what was not counted yet."""
        self._tell(self.alike.counts())

    def _tell(self, times: Mapping[Parameters | None, int]) -> None:
        launch, frameworks = self.launch, self.frameworks
        for args, count in times.items() if self.asks and not isinstance(self.alike, LaunchesByProof) else ():
            if args is not None:
                frameworks.looks.counts(self.prepared, launch, args, count)
        if times and isinstance(self.alike, SilentLaunches):
            self.alike.tell(self, times)
