"""The state of the stand-in driver in one session: contexts, handles, memory. The calls are in the files *_calls.py.

Everything is over when a call returns. Which work would be over on a GPU is known to the session (session/comparing/program_streams.py).

Not handled: whether a device may reach the memory of another one (peer access), levels of detail, IPC, linking.
"""

from __future__ import annotations

import bisect
import contextlib
import itertools
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from consan._errors import ConsanError
from consan.backends.base import THREAD_STREAM
from consan.dataclass import dataclass
from consan.libcuda import calls
from consan.libcuda.calls import CallFailed, ProgramMemory
from consan.libcuda.texts.places import KernelPlaces
from consan.reports.source.variables import Argument
from consan.session.comparing.launch_memory import Memory

_FIRST_HANDLE, _STEP = 0x1000, 16
_WITHOUT_WAITING: Final = ("cuLaunchHostFunc", "_cudaLaunchHostFunc", "_consan_callback", "_consan_touched")  # behind them a call comes
_OF_MEMORY: Final = re.compile(r"cu(da)?(Mem(cpy|set)|Launch)")
_PER_THREAD: Final = re.compile(r"(cu(?!\w*(?:HostFunc|Callback))\w+)_pt[sd][zs]")
_THREAD_BITS: Final = 2  # of a handle
_numbers = itertools.count(1)
Bytes = npt.NDArray[np.uint8]
StreamWork = Callable[[Any], None]  # what is done in a stream of the session


class _Threads(threading.local):
    """Threads of the program, or those that answer its calls, by number: numbers of the system come again."""

    def __init__(self) -> None:
        self.number = next(_numbers)


_threads = _Threads()


def _served(name: str) -> tuple[calls.ServedCall | None, bool]:
    """The server of a call, and whether its stream 0 is the thread's own default stream (nvcc --default-stream per-thread)."""
    found = _PER_THREAD.fullmatch(name)
    if found is None:
        return calls.CALLS.get(name), False
    names = (f"_{found[1]}", found[1], f"{found[1]}_v2")
    return next((calls.CALLS[each] for each in names if each in calls.CALLS), None), True


@dataclass(eq=False)
class DriverContext:
    """A context of the program. All have one memory, whose addresses each device can use. `device`: its number."""

    handle: int = 0
    device: int = 0


class WorkCapture(Protocol):
    """A graph that is being captured (graphs/graph.py)."""

    ends: dict[int, list[Any]]

    def add(self, stream: int, work: StreamWork) -> None:
        """Work that a stream is given becomes a node of the graph."""

    def join(self, stream: int, after: Iterable[Any]) -> None:
        """A stream belongs to it, and comes after nodes."""


@dataclass(eq=False)
class SpecialMemory:
    """Memory that graphs allocate, which is theirs, by address; and what is memory of the program, too: its address there.

    Managed memory has the same address in the program, arrays of the host that stand for device memory have another. Pinned memory is
    the program's alone: its bytes, by address. `kept`: the places that the device keeps for such memory, should a kernel be given it.
    """

    of_graphs: set[int] = field(default_factory=set)
    managed: dict[int, int] = field(default_factory=dict)
    variables: dict[int, int] = field(default_factory=dict)  # of managed memory: the bytes of those that are variables
    laid: set[int] = field(default_factory=set)  # pages on which variables lie, which the program has, too
    lives: dict[int, Callable[[], bool]] = field(default_factory=dict)  # of managed memory: whether the program has its place still
    pinned: dict[int, int] = field(default_factory=dict)
    kept: dict[int, Any] = field(default_factory=dict)
    ranges: dict[int, Any] = field(default_factory=dict)  # of reserved addresses: their places (memory/virtual_calls.py)
    shared: dict[int, tuple[int, int]] = field(default_factory=dict)  # of pinned memory: begin and end of the pages that it alone lies on
    objects: dict[int, Any] = field(default_factory=dict)  # textures and surfaces of arrays, by handle (memory/texture_calls.py)
    is_here: bool = False  # whether the device has managed memory now, and not the program
    _pinned: list[int] = field(default_factory=list)  # where pinned memory begins, sorted

    def pin(self, address: int, nbytes: int) -> None:
        """Memory of the program is pinned."""
        if address not in self.pinned:
            bisect.insort(self._pinned, address)
        self.pinned[address] = nbytes

    def unpin(self, address: int) -> None:
        """It no longer is."""
        if self.pinned.pop(address, None) is not None:
            self._pinned.remove(address)
        self.shared.pop(address, None)

    def pinned_at(self, address: int) -> int:
        """Where the pinned memory begins that an address is one of; 0: it is none."""
        at = bisect.bisect(self._pinned, address) - 1
        return self._pinned[at] if at >= 0 and address < self._pinned[at] + self.pinned[self._pinned[at]] else 0

    def forget_dead(self) -> None:
        """Copy nothing to or from memory that the program has freed: it may be another's."""
        for address in [address for address, lives in self.lives.items() if not lives()]:
            del self.lives[address]
            self.managed.pop(address, None)


@dataclass(frozen=True)
class HostSymbol:
    """A kernel or a variable of the program: the handle of the image that holds it, and its name there."""

    image: int
    name: str


@dataclass(eq=False)
class HostCode:
    """The program's own code: its kernels and variables by address, and its functions that streams and graphs run (host_calls.py)."""

    symbols: dict[int, HostSymbol] = field(default_factory=dict)
    functions: dict[int, int] = field(default_factory=dict)  # by the handles of their kernels, on any device
    held_back: int = 0  # functions that do not run yet
    over: dict[int, Any] = field(default_factory=dict)  # by the numbers of functions: what is over behind them
    per_thread: bool = False  # stream 0 of the call that is served is the thread's own
    without_locks: list[Any] = field(default_factory=list)  # the same of those, since the last call, that gave no lock away


@dataclass(eq=False)
class KeptPtx:
    """The PTX of machine code that the program loads: by the digest of the code, or in folders, where names of kernels are unique."""

    texts: dict[bytes, str] = field(default_factory=dict)
    folders: list[Path] = field(default_factory=list)
    places: dict[str, KernelPlaces] = field(default_factory=dict)  # by kernel, of PTX without lines


@dataclass(frozen=True)
class FrameworkMemory:
    """The memory of the launch that a framework is about to make: buffers with names, and the host's arrays that it has copied for it.

    Without `copies` its parameters are the program's own. `cooperative`: what the framework launches on a GPU is so.
    """

    buffers: tuple[Argument, ...] = ()
    copies: Memory | None = None
    cooperative: bool = False


@dataclass(eq=False)
class StandInDriver:
    """One session's driver. `memory`: that of the program, as the thread reaches it whose call is served."""

    session: Any
    memory: ProgramMemory
    handles: dict[int, Any] = field(default_factory=dict)
    allocations: dict[int, int] = field(default_factory=dict)  # bytes, by address
    kept_ptx: KeptPtx = field(default_factory=KeptPtx)
    of_framework: FrameworkMemory = FrameworkMemory()
    parameter_names: dict[str, tuple[str, ...]] = field(default_factory=dict)  # by kernel, where a framework has given them
    captures: dict[int, WorkCapture] = field(default_factory=dict)  # by the handles of their streams
    special: SpecialMemory = field(default_factory=SpecialMemory)
    host: HostCode = field(default_factory=HostCode)
    needs_runtime: bool = False  # whether who asks for the tables of the CUDA runtime is lost without them; libraries of Python go on
    lock: threading.RLock = field(default_factory=threading.RLock)
    _stacks: threading.local = field(default_factory=threading.local)
    _printed: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.primaries = [self.made(DriverContext(device=device)) for device in range(self.session.options.gpus)]

    def call(self, name: str, words: Sequence[int], memory: ProgramMemory | None = None) -> int:
        """Answer a call of the program: the code that it returns. Never raises. `memory`: the program's, where it is another process."""
        (served, per_thread), known_as = _served(name), name.lstrip("_")
        try:
            with self.lock:
                self.memory, self.host.per_thread = memory or self.memory, per_thread
                self.session.streams.places.use(self.device)
                if served is None:
                    raise CallFailed(calls.NOT_SUPPORTED, "consan's stand-in driver does not serve it")
                served.answer(self, self.memory, words)
        except CallFailed as error:
            if error.code == calls.NOT_SUPPORTED:
                self._lacks(known_as)
            if error.why:
                self._tell(f"{known_as} failed: {error.why}")
            return error.code
        except ConsanError as error:
            self._tell(f"{known_as} failed: {error}")
            return calls.UNKNOWN
        except Exception as error:
            self._tell(f"{known_as} failed inside consan: {type(error).__name__}: {error}")
            return calls.UNKNOWN
        finally:
            if self.host.without_locks and name not in _WITHOUT_WAITING:
                self.host_may_know()
        return calls.SUCCESS

    def host_may_know(self) -> None:
        """From the next call of the program on, the host may know the results of functions of the host."""
        for over in self.host.without_locks:
            self.session.streams.perhaps_over(over)
        self.host.without_locks.clear()

    def stream(self, handle: int) -> Any:
        """A stream of the session. Each thread of the program has a default stream of its own on each device."""
        if handle == THREAD_STREAM or (self.host.per_thread and not handle):
            handle = THREAD_STREAM | (_threads.number * len(self.primaries) + self.device) << _THREAD_BITS
        return self.session.streams.of(handle)

    def work(self, stream: int, work: StreamWork) -> None:
        """Do what the program puts into a stream, or keep it for a graph."""
        capture = self.captures.get(stream)
        if capture is not None:
            capture.add(stream, work)
            return
        with self.having_managed():
            work(self.stream(stream))

    @contextlib.contextmanager
    def having_managed(self) -> Iterator[None]:
        """Inside, managed memory and arrays of the host are the device's, also for the host's code that has their addresses there."""
        if self.special.is_here:
            yield
            return
        managed = self._fetched()
        try:
            yield
        finally:
            self.special.is_here = False
        self.special.forget_dead()  # the program's objects go when the garbage collector runs, also in the middle of a launch
        places = set(self.special.managed.values())
        self._give_back([each for each in managed if each[0] in places])

    def managed_blocks(self) -> list[tuple[int, int]]:
        """Address and bytes of each block of managed memory."""
        sizes = self.allocations | self.special.variables
        return [(address, sizes[address]) for address in self.special.managed if address in sizes]

    def _managed(self) -> list[tuple[int, Bytes]]:
        return [(self.special.managed[address], self.view(address, nbytes)) for address, nbytes in self.managed_blocks()]

    def _fetched(self) -> list[tuple[int, Bytes]]:
        self.special.forget_dead()
        managed = self._managed()
        for place, view in managed:
            view[...] = np.frombuffer(self.memory.read(place, view.size), np.uint8)
        self.special.is_here = True
        return managed

    def _give_back(self, managed: list[tuple[int, Bytes]]) -> None:
        for place, view in managed:
            self.memory.write(place, view.tobytes())

    @contextlib.contextmanager
    def elsewhere(self) -> Iterator[ProgramMemory]:
        """Inside, the program runs while its call is served: managed memory is its own, and other threads may call."""
        memory, was_here = self.memory, self.special.is_here
        if was_here:
            self._give_back(self._managed())
            self.special.is_here = False
        self.lock.release()
        try:
            yield memory
        finally:
            self.lock.acquire()
            self.memory = memory
        if was_here:
            self._fetched()

    def _lacks(self, name: str) -> None:
        """A call is not made: its work is a gap. Libraries of Python also ask for calls that they can do without."""
        if self.needs_runtime or _OF_MEMORY.match(name):
            self.session.streams.comparisons.incomplete(
                f"{name} is not served without a GPU: what the program does with it was not checked"
            )

    def _tell(self, sentence: str) -> None:
        if sentence not in self._printed:
            self._printed.add(sentence)
            self.session.note(sentence)
            print(f"consan: {sentence}", file=sys.stderr)

    # -- handles ----------------------------------------------------------------------------------------------------------------

    def made(self, value: Any) -> int:
        """A new handle of an object."""
        handle = _FIRST_HANDLE + _STEP * len(self.handles)
        self.handles[handle] = value
        if hasattr(value, "handle"):
            value.handle = handle
        return handle

    def of(self, handle: int, kind: type) -> Any:
        """The object of a handle. Raises CallFailed."""
        found = self.handles.get(handle)
        if not isinstance(found, kind):
            raise CallFailed(calls.INVALID_HANDLE)
        return found

    # -- contexts ---------------------------------------------------------------------------------------------------------------

    @property
    def stack(self) -> list[int]:
        """The contexts of the calling thread; the last one is current."""
        if not hasattr(self._stacks, "contexts"):
            self._stacks.contexts = []
        found: list[int] = self._stacks.contexts
        return found

    @property
    def device(self) -> int:
        """The device of the current context."""
        found = self.handles[self.stack[-1]] if self.stack else None
        return found.device if isinstance(found, DriverContext) else 0

    def primary(self, device: int) -> int:
        """The primary context of a device. Raises CallFailed."""
        if not 0 <= device < len(self.primaries):
            raise CallFailed(calls.INVALID_DEVICE)
        return self.primaries[device]

    # -- memory -----------------------------------------------------------------------------------------------------------------

    def allocate(self, nbytes: int) -> int:
        """New device memory. Raises CallFailed."""
        if not nbytes:
            raise CallFailed(calls.INVALID_VALUE)
        return self.keep(self.session.backend.alloc(nbytes), nbytes)

    def keep(self, address: int, nbytes: int) -> int:
        """Know an allocation of the virtual machine: its address."""
        self.allocations[address] = nbytes
        return address

    def free(self, address: int) -> None:
        """Free what `allocate` gave. Raises CallFailed."""
        if address in self.special.of_graphs:
            return
        if self.allocations.pop(address, None) is None:
            raise CallFailed(calls.INVALID_VALUE)
        self.special.managed.pop(address, None)
        self.special.lives.pop(address, None)
        self.session.backend.free(address)

    def allocation(self, address: int) -> tuple[int, int] | None:
        """Begin and size of the allocation that an address lies in."""
        found = self.session.backend.machine.arena.find(address)
        return (found.address, self.allocations[found.address]) if found is not None and found.address in self.allocations else None

    def variable(self, address: int) -> tuple[int, int] | None:
        """Begin and size of the variables of a module that an address lies among."""
        found = self.session.backend.machine.arena.find(address)
        return None if found is None or found.separate or found.address in self.allocations else (found.address, found.nbytes)

    def is_device(self, address: int) -> bool:
        """Whether an address is one of device memory. Addresses of the host may lie in the same range."""
        return self.session.backend.machine.arena.find(address) is not None

    def view(self, address: int, nbytes: int) -> Bytes:
        """Device memory as an array. Raises CallFailed for what is in no allocation."""
        try:
            found: Bytes = self.session.backend.machine.view(address, np.uint8, nbytes)
        except ConsanError as error:
            raise CallFailed(calls.INVALID_VALUE, str(error)) from None
        return found
