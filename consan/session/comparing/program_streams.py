"""The streams of the program that a session runs, where consan stands in for the framework (SEMANTICS 12, R-GM14).

The legacy default stream comes after all that blocking streams were given before, and they come after it. Non-blocking streams are apart.
Kernels are recorded for the comparison once the program has made a stream: until then nothing could run at the same time.

Not followed: host threads (what one of them waits for, all know), graphs, and priorities.
"""

from __future__ import annotations

import enum
import functools
import re
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from consan.backends.base import DEFAULT_STREAMS
from consan.checker.compiled.concurrent_launches import RetainedFlag, Rows, is_signalled, without_flags
from consan.dataclass import dataclass
from consan.reports.decoding.launch_race import OperationSide
from consan.session.comparing.array_rows import Placed, is_between, rows_of, span_of
from consan.session.comparing.comparisons import Comparisons
from consan.session.comparing.concurrent_launches import ConcurrentLaunches
from consan.session.comparing.freed_memory import FreedMemory
from consan.session.comparing.launch_memory import LaunchShape
from consan.session.comparing.streams import NONE, Event, Numbers, Stream

if TYPE_CHECKING:
    from consan.session.modules.prepared import Prepared

_FIRST_HANDLE: Final = 1 << 20
_BEFORE: Final = "what the default stream did before there could be launches at the same time"
_FUNCTION: Final = "the function of the host"
_INTERNAL: Final = ("consan", "cupy", "numpy", "torch", "triton")  # packages whose frames are not the program's
RUNTIMES: Final = re.compile(r"/(xla_cuda\d*_plugin|xla_extension|libjax_common|libjax|_jax)[^/]*\.so")


class Blocking(enum.Enum):
    """How a stream and the legacy default stream wait for each other."""

    DEFAULT = enum.auto()
    YES = enum.auto()
    NO = enum.auto()


_PARTNER: Final = {Blocking.DEFAULT: Blocking.YES, Blocking.YES: Blocking.DEFAULT}


class ProgramStream(Stream):
    """A stream of the program. `edge`: how the program lets `second` wait for `first`."""

    def __init__(self, streams: ProgramStreams, kind: Blocking, handle: int, edge: str, context: int = 0) -> None:
        super().__init__()
        self._timeline, self._lock = streams.concurrent.timeline, streams.lock
        self._reached, self.kind, self.handle, self.edge = streams.reached[context], kind, handle, edge
        self.name = "the default stream" if kind is Blocking.DEFAULT else ""
        self.context = context

    @property
    def over(self) -> Numbers:
        """The launches that are over once all launches of the stream so far are."""
        return self._over

    def record(self) -> Event:
        """An event that is reached once all that the stream was given so far is over."""
        with self._lock:
            return super().record()

    def wait(self, event: Event | Stream) -> None:
        """Let all that the stream is given later come after an event, or after what another stream was given so far."""
        with self._lock:
            super().wait(event)

    def _begins(self) -> None:
        assert self._timeline is not None
        others = self._timeline.left(self._reached.get(_PARTNER.get(self.kind), NONE))
        if not others <= self._over:
            self._over |= others
            self._last = None

    def _ends(self) -> None:
        assert self._timeline is not None
        if self.kind is Blocking.DEFAULT:  # there is one
            self._reached[self.kind] = self._over
        elif self.kind in _PARTNER:
            self._reached[self.kind] = self._timeline.left(self._reached.get(self.kind, NONE) | self._over)


_OF_A_RANK: Final = "a rank has used several streams: what they may do at the same time was not compared"
_DEVICES: Final = (
    "the program names the devices {} and {}, which are one on the virtual machine: their launches were not compared as those of two"
)


@dataclass(eq=False)
class ProgramStreams:
    """The streams of a session's program, and its operations in them. `looks_at_global`: global memory is checked."""

    comparisons: Comparisons
    looks_at_global: bool
    concurrent: ConcurrentLaunches = field(default_factory=lambda: ConcurrentLaunches(required=False))
    lock: threading.RLock = field(default_factory=threading.RLock)  # held from a launch to its comparison
    reached: dict[int, dict[Blocking | None, Numbers]] = field(default_factory=lambda: defaultdict(dict))
    """By context: what is over once all streams of a kind are done."""
    _known: dict[int, ProgramStream] = field(default_factory=dict)  # by their handles
    chained: bool = False  # launches of one stream may overlap
    _devices: dict[int | None, tuple[int | None, int | None]] = field(default_factory=dict)
    """By rank: the current device, and the one that it has named first."""
    shared: bool = False  # the host may touch memory that work of the device uses
    _signals: Numbers = NONE  # work that the host may know of by a flag in memory
    _used: dict[int, ProgramStream] = field(default_factory=dict)  # by rank: the stream that it has used first
    _busy: bool = False  # the default stream has done something before there was another one

    def __post_init__(self) -> None:
        self.default = ProgramStream(self, Blocking.DEFAULT, 0, "")
        self.memory = FreedMemory(self.concurrent)
        self._known |= dict.fromkeys(DEFAULT_STREAMS, self.default)

    @property
    def compares(self) -> bool:
        """Whether there is a second stream, or memory that is shared with the host, and launches are compared."""
        return (self.chained or self.shared or len(self._known) > len(DEFAULT_STREAMS)) and self.comparisons.accesses.wanted

    def names_device(self, device: int | None, rank: int | None = None, *, sets: bool = False) -> None:
        """The program, or a rank of it, names a device by its number; None: the current one, of a rank its own. All of them are one here.

        `sets`: it is the current one from now on.
        """
        current, first = self._devices.get(rank, (0 if rank is None else None, None))
        found = current if device is None else device
        self._devices[rank] = device if sets else current, found if first is None else first
        if None not in (first, found) and first != found and self.looks_at_global:
            self.comparisons.incomplete(_DEVICES.format(first, found))

    def used(self, stream: ProgramStream, rank: int) -> None:
        """A rank does something in a stream. The work of its streams is compared as that of one."""
        if self._used.setdefault(rank, stream) is not stream and self.looks_at_global:
            self.comparisons.incomplete(_OF_A_RANK)

    def make(self, *, blocking: bool, edge: str = "", handle: int = 0) -> ProgramStream:
        """The program makes a stream."""
        self._want()
        number = handle or _FIRST_HANDLE + len(self._known)
        return self.keep(ProgramStream(self, Blocking.YES if blocking else Blocking.NO, number, edge))

    def _want(self) -> None:
        """Accesses are kept from now on."""
        accesses = self.comparisons.accesses
        if not accesses.wanted and self.looks_at_global:
            accesses.wanted = True
            if self._busy:
                self.concurrent.operated(self.comparisons, OperationSide(_BEFORE, "", 0), self.default, None)

    def chain(self, by: Comparisons) -> None:
        """There is a kernel that may start while the launch before it runs, or lets the next one start."""
        with self.lock:
            self._want()
            self.chained = True

    def share_with_host(self) -> None:
        """There is memory that the host's code may touch while work of the device uses it."""
        with self.lock:
            self._want()
            self.shared = True

    def in_flight(self, blocks: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int, bool]]:
        """The ranges of these that work may still use: begin, end, and whether it writes."""
        with self.lock:
            for _, rows in self.concurrent.unfinished():
                first, last = span_of(rows)
                for begin, end in ((begin, end) for begin, end in blocks if begin < last and first < end):
                    yield from _used(rows[is_between(rows, begin, end)], begin, end)

    def host_touched(self, touched: Rows) -> None:
        """Compare what the host's code has touched with the work that may still run. Work whose flag it looks at may be over for it."""
        with self.lock:
            self._signals |= Numbers(number for number, rows in self.concurrent.unfinished() if is_signalled(rows, touched))
            for number, rows in [each for each in self.concurrent.unfinished() if each[0] not in self._signals]:
                self.concurrent.met_host(self.comparisons, number, without_flags(rows, touched))

    def host_function(self, stream: ProgramStream, touched: Rows) -> Event:
        """A function of the host has run in the order of a stream: what it has touched. Gives what is over behind it."""
        with self.lock:
            if self.compares:
                self.concurrent.operated(self.comparisons, OperationSide(_FUNCTION, "", 0), stream, touched)
            return stream.record()

    def perhaps_over(self, event: Event) -> None:
        """The host may know, in a way that nobody sees, that an event is reached."""
        with self.lock:
            timeline = self.concurrent.timeline
            timeline.perhaps_over = timeline.left(timeline.perhaps_over | event.over)

    def keep(self, stream: ProgramStream) -> ProgramStream:
        """Know a stream by its handle."""
        self._known[stream.handle] = stream
        return stream

    def of(self, handle: int, edge: str = "") -> ProgramStream:
        """The stream with a handle. A stream that was not made here is taken for a blocking one."""
        return self._known.get(handle) or self.make(blocking=True, edge=edge, handle=handle)

    def synchronize(self) -> None:
        """The host waits for the device."""
        with self.lock:
            self._busy = False
            self.concurrent.timeline.host_waits(self.concurrent.timeline.everything)

    def host_waits(self, stream: ProgramStream) -> None:
        """The host waits for a stream."""
        with self.lock:
            self._busy &= stream is not self.default
            stream.synchronize()

    def host_waits_for(self, event: Event) -> None:
        """The host waits for an event."""
        with self.lock:
            self.concurrent.timeline.host_waits(event.over)

    def launched(self, prepared: Prepared, shape: LaunchShape, stream: ProgramStream, *, programmatic: bool = False) -> None:
        """Compare the last launch that was made with those that may run at the same time."""
        with self.lock:
            self._busy = True
            if self.compares:
                self.memory.look()
                self.concurrent.launched(self.comparisons, prepared, shape, stream, programmatic=programmatic)

    def operated(
        self, name: str, stream: ProgramStream, reads: Sequence[Placed] = (), writes: Sequence[Placed] = (),
        *, known: bool = True, owners: Sequence[Any] = (),
    ) -> None:  # fmt: skip
        """Compare an operation of the framework on arrays with what may run at the same time. `known`: there is no more than these arrays.

        `owners`: objects that keep the arrays where they are.
        """
        with self.lock:
            self._busy = True
            if self.compares:
                self.memory.look()
                self.concurrent.operated(
                    self.comparisons, OperationSide(name, *caller()), stream, rows_of(reads, writes) if known else None, owners
                )

    def given(self, address: int, nbytes: int, stream: ProgramStream) -> None:
        """An array was given memory while a stream was current."""
        with self.lock:
            if self.compares:
                self.memory.given(address, nbytes, stream)

    def freed(self, address: int, nbytes: int, stream: ProgramStream) -> None:
        """Memory that was given to a stream was freed. May be called at any time."""
        if self.compares:
            self.memory.freed.append((address, nbytes, stream))

    def forget(self, address: int, nbytes: int) -> None:
        """Memory was freed in the order of a stream: what is done there later is done to other memory."""
        with self.lock:
            self.concurrent.detached(address, nbytes)


def _used(rows: Rows, begin: int, end: int) -> Iterator[tuple[int, int, bool]]:
    for flag in (RetainedFlag.READS, RetainedFlag.WRITES):
        first, last = span_of(rows[rows["flags"] & flag > 0])
        if first < last:
            yield max(first, begin), min(last, end), flag is RetainedFlag.WRITES


def caller() -> tuple[str, int]:
    """The program's line that is running; none in a thread of consan, which serves a program that is not Python."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _INTERNAL:
        frame = frame.f_back
    return ("", 0) if frame.f_globals.get("__name__") == threading.__name__ else (frame.f_code.co_filename, frame.f_lineno)


@functools.lru_cache(maxsize=1 << 10)
def is_of_runtime(function: int, process: int = 0) -> bool:
    """Whether the code at an address of a process (0: this one) is of a framework's runtime.

    XLA puts functions into streams for itself: each tells the thread that waits for a result, by locks that nobody can see.
    """
    try:
        with open(f"/proc/{process or 'self'}/maps") as lines:
            for line in lines:
                begin, _, end = line.partition(" ")[0].partition("-")
                if int(begin, 16) <= function < int(end, 16):
                    return RUNTIMES.search(line) is not None
    except (OSError, ValueError):  # the process has ended
        pass
    return False
