"""The streams of the program that a session runs, where consan stands in for the framework (SEMANTICS 12, R-GM14).

The legacy default stream comes after all that blocking streams were given before, and they come after it. Non-blocking streams are apart.
Kernels are recorded for the comparison from the first one on if the program's text makes a stream, else once the program has made one. What
the default stream did before that, and may still do, makes the report incomplete.

A stream is one of a device. Each device has a default stream of its own, and so has each rank of a program, which is a device with a host
of its own (rank_launches.py).

Not followed: host threads (what one of them waits for, all know), graphs, and priorities.
"""

from __future__ import annotations

import enum
import functools
import operator
import re
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from consan.backends.base import DEFAULT_STREAMS
from consan.checker.compiled.concurrent_launches import RetainedFlag, Rows, without_flags
from consan.dataclass import dataclass
from consan.reports.decoding.launch_race import OperationSide
from consan.session.comparing.array_rows import Placed, is_between, rows_of, span_of
from consan.session.comparing.comparisons import BEFORE, Comparisons
from consan.session.comparing.concurrent_launches import ConcurrentLaunches
from consan.session.comparing.freed_memory import FreedMemory
from consan.session.comparing.launch_memory import LaunchShape
from consan.session.comparing.streams import NONE, Event, Numbers, Stream

if TYPE_CHECKING:
    from consan.session.modules.prepared import Prepared

_FIRST_HANDLE: Final = 1 << 20
_FUNCTION: Final = "the function of the host"
# Packages whose frames are not the program's.
_INTERNAL: Final = frozenset(
    ("consan", "cuda", "cupy", "cutlass", "helion", "jax", "numba", "numba_cuda", "numba_cuda_mlir", "numpy", "tilelang", "torch",
     "triton", "tvm", "tvm_ffi", "warp")
)  # fmt: skip
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

    @property
    def before(self) -> Numbers:
        """The launches that are over when what the stream is given next starts."""
        self._begins()
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
        others = self._timeline.left(self._reached.get(_PARTNER.get(self.kind), NONE) | self._reached.get(None, NONE))
        if not others <= self._over:
            self._over |= others
            self._last = None

    def _ends(self) -> None:
        assert self._timeline is not None
        if self.kind is Blocking.DEFAULT:  # there is one
            self._reached[self.kind] = self._over
        elif self.kind in _PARTNER:
            self._reached[self.kind] = self._timeline.left(self._reached.get(self.kind, NONE) | self._over)


_DEVICES: Final = (
    "the program names the devices {} and {}, which are one on the virtual machine: their launches were not compared as those of two"
)
_LEGACY: Final = 1  # the lowest bits of the handle that a default stream of a further device is known by


@dataclass(eq=False)
class CurrentPlaces:
    """The current device of each thread, and its current streams. `rank`: of a program of several ranks, the one that runs."""

    devices: int = 1
    rank: Callable[[], int] | None = None
    _of_thread: threading.local = field(default_factory=threading.local)

    @property
    def here(self) -> int:
        """The current device of this thread, or the rank that runs."""
        device: int = self.rank() if self.rank is not None else getattr(self._of_thread, "device", 0)
        return device

    def use(self, device: int) -> int:
        """Make a device the current one of this thread. Gives the one before."""
        before, self._of_thread.device = getattr(self._of_thread, "device", 0), device
        return before

    @property
    def chosen(self) -> dict[tuple[str, int], Any]:
        """The streams that frameworks have made current in this thread, on each device."""
        found: dict[tuple[str, int], Any] = vars(self._of_thread).setdefault("streams", {})
        return found


@dataclass(eq=False)
class ProgramStreams:
    """The streams of a session's program, and its operations in them. `looks_at_global`: global memory is checked."""

    comparisons: Comparisons
    looks_at_global: bool
    places: CurrentPlaces = field(default_factory=CurrentPlaces)
    concurrent: ConcurrentLaunches = field(default_factory=lambda: ConcurrentLaunches(required=False))
    lock: threading.RLock = field(default_factory=threading.RLock)  # held from a launch to its comparison
    reached: dict[int, dict[Blocking | None, Numbers]] = field(default_factory=lambda: defaultdict(dict))
    """By device or rank: what is over once all streams of a kind are done; and, for None, what the host of a rank knows to be over."""
    _known: dict[int, ProgramStream] = field(default_factory=dict)  # by their handles
    chained: bool = False  # launches of one stream may overlap
    _devices: dict[int | None, tuple[int | None, int | None]] = field(default_factory=dict)
    """By rank: the current device, and the one that it has named first."""
    shared: bool = False  # the host may touch memory that work of the device uses
    expected: bool = False  # the program's text makes a stream
    _signals: Numbers = NONE  # work that the host may know of by a flag in memory
    _busy: bool = False  # the default stream has done something before there was another one

    def __post_init__(self) -> None:
        self.default = ProgramStream(self, Blocking.DEFAULT, 0, "")
        self.memory = FreedMemory(self.concurrent)
        self._known |= dict.fromkeys(DEFAULT_STREAMS, self.default)
        for device in range(1, self.places.devices):
            self.default_of(device)
            self.comparisons.accesses.peers = True
        self.concurrent.devices |= {device: device for device in range(self.places.devices) if self.places.devices > 1}

    @property
    def several(self) -> bool:
        """Whether there is a second stream."""
        return len(self._known) > len(DEFAULT_STREAMS)

    @property
    def compares(self) -> bool:
        """Whether there is a second stream, or memory that is shared with the host, and launches are compared here."""
        wanted = self.expected or self.chained or self.shared or self.several
        return wanted and self.comparisons.accesses.wanted and self.places.rank is None

    @property
    def here(self) -> int:
        """The current device of this thread, or the rank that runs."""
        return self.places.here

    def current(self, framework: str = "", device: int | None = None) -> ProgramStream:
        """The current stream of this thread on a device, by default the current one: each framework has its own."""
        where = self.here if device is None else device
        found: ProgramStream | None = self.places.chosen.get((framework, where))
        return found or self.default_of(where)

    def choose(self, stream: ProgramStream, framework: str = "") -> None:
        """Make a stream the current one of this thread on its device."""
        self.places.chosen[framework, stream.context] = stream

    def default_of(self, device: int) -> ProgramStream:
        """The default stream of a device or rank."""
        key = device << 2 | _LEGACY if device else 0
        if key not in self._known:
            if self.places.rank is None:
                self._want()
            self.keep(ProgramStream(self, Blocking.DEFAULT, 0, "", device), key)
        return self._known[key]

    def names_device(self, device: int | None, rank: int | None = None, *, sets: bool = False) -> None:
        """The program, or a rank of it, names a device by its number; None: the current one, of a rank its own. All of them are one here.

        `sets`: it is the current one from now on.
        """
        current, first = self._devices.get(rank, (0 if rank is None else None, None))
        found = current if device is None else device
        self._devices[rank] = device if sets else current, found if first is None else first
        if None not in (first, found) and first != found and self.looks_at_global:
            self.comparisons.incomplete(_DEVICES.format(first, found))

    def make(self, *, blocking: bool, edge: str = "", handle: int = 0, device: int | None = None) -> ProgramStream:
        """The program makes a stream, by default on the current device."""
        self._want()
        kind, number = Blocking.YES if blocking else Blocking.NO, handle or _FIRST_HANDLE + len(self._known)
        return self.keep(ProgramStream(self, kind, number, edge, self.here if device is None else device))

    def _want(self) -> None:
        """Accesses are kept from now on."""
        accesses = self.comparisons.accesses
        if not accesses.wanted and self.looks_at_global:
            accesses.wanted = True
            if self._busy:
                self.concurrent.operated(self.comparisons, OperationSide(BEFORE, "", 0), self.default, None)

    def chain(self, by: Comparisons) -> None:
        """There is a kernel that may start while the launch before it runs, or lets the next one start."""
        with self.lock:
            self._want()
            self.chained = True

    def expect(self) -> None:
        """The program's text makes a stream: what it does before is compared, too."""
        with self.lock:
            self._want()
            self.expected = True

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
            self._signals |= self.concurrent.flagged(touched)
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

    def behind(self, stream: ProgramStream, edge: str = "") -> ProgramStream:
        """A stream of a library, behind what another one did before."""
        made = ProgramStream(self, Blocking.NO, 0, edge, stream.context)
        made.wait(stream)
        return made

    def keep(self, stream: ProgramStream, key: int = 0) -> ProgramStream:
        """Know a stream by its handle, or by a key."""
        self._known[key or stream.handle] = stream
        return stream

    def of(self, handle: int, edge: str = "") -> ProgramStream:
        """The stream with a handle. A stream that was not made here is taken for a blocking one."""
        if handle in DEFAULT_STREAMS:
            return self.default_of(self.here)
        return self._known.get(handle) or self.make(blocking=True, edge=edge, handle=handle)

    def on(self, device: int) -> list[ProgramStream]:
        """The streams of a device or rank."""
        return [*dict.fromkeys(each for each in self._known.values() if each.context == device)]

    def over_on(self, device: int) -> Numbers:
        """The launches that are over once all that a device or rank was given is."""
        return functools.reduce(operator.or_, (each.before for each in self.on(device)), NONE)

    def synchronize(self) -> None:
        """The host waits for the current device."""
        with self.lock:
            self._busy, one = False, self.places.devices == 1 and self.places.rank is None
            self._host_knows(self.concurrent.timeline.everything if one else self.over_on(self.here))

    def host_waits(self, stream: ProgramStream) -> None:
        """The host waits for a stream."""
        with self.lock:
            self._busy &= stream is not self.default
            self._host_knows(stream.before)

    def host_waits_for(self, event: Event) -> None:
        """The host waits for an event."""
        with self.lock:
            self._host_knows(event.over)

    def is_over(self, over: Numbers) -> bool:
        """The answer to a question of the host (`LaunchOrder.is_over`)."""
        with self.lock:
            return self.concurrent.timeline.is_over(over)

    def _host_knows(self, over: Numbers) -> None:
        """All later launches are behind these; if there are several ranks, those of the one that runs."""
        timeline = self.concurrent.timeline
        if self.places.rank is None:
            timeline.host_waits(over)
        else:
            known = self.reached[self.here]
            known[None] = timeline.left(known.get(None, NONE) | over)

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

    XLA puts functions into streams for itself: each wakes the thread that waits for a result, by locks that nobody can see.
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
