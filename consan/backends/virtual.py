"""The PTX virtual machine as a backend.

A launch is complete when `launch` returns, so `synchronize` never waits. Not handled: streams (launches run in order).
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from consan._errors import UsageError
from consan.backends.base import CallSource, Contexts, Dim3, EntryResources, HostBytes, StreamWork
from consan.backends.cpu import LaunchStats, LoadedModule, Machine
from consan.backends.cpu.state.memory import Arena
from consan.backends.cpu.state.placed import memory_in_place
from consan.tensormap.description import TensorMapInfo
from consan.tensormap.encoding import encode
from consan.textures.description import TextureInfo, TextureMemory

_MEMORY = 2 << 30  # memory size reported to programs
_MODULES_KEPT = 48  # a decoded one takes up to 50 MB


class DeviceTurns:
    """Host threads take turns. A thread may free memory in its own turn, since finalisers run anywhere: that is done at the turn's end.

    A finaliser may also run between the lock and `_holder`: nothing is under way then, so it may take the lock again.
    """

    def __init__(self) -> None:
        self._lock, self._holder = threading.RLock(), 0
        self._later: list[Callable[[], None]] = []

    def __enter__(self) -> None:
        self._lock.acquire()
        self._holder = threading.get_ident()

    def __exit__(self, *_: object) -> None:
        try:
            while self._later:
                self._later.pop(0)()
        finally:
            self._holder = 0
            self._lock.release()

    def soon(self, work: Callable[[], None]) -> None:
        """Do it now, or at the end of this thread's turn."""
        if self._holder == threading.get_ident():
            self._later.append(work)
            return
        with self:
            work()


class VirtualBackend:
    """One virtual device."""

    device_name = choice = "cpu"
    simulates = seeded = survives_fork = True
    assembles = False
    modules_kept: int | None = _MODULES_KEPT
    arch = "sm_90a"
    memory_bytes = _MEMORY
    allocates_zeros = True
    ordered_streams = ()  # nobody waits long here
    work: StreamWork | None = None  # launches have ended when they return
    calls: CallSource | None = None
    contexts: Contexts | None = None

    def __init__(self, machine: Machine | None = None) -> None:
        self.machine = machine or Machine()
        self._texture_handles = 0  # how many were given
        self._lock = DeviceTurns()  # only one launch at a time

    @classmethod
    def in_place(cls) -> VirtualBackend:
        """One for programs: where it is possible, the host's code reaches its memory."""
        return cls(Machine(arena=Arena(memory_in_place())))

    @property
    def sm_count(self) -> int:
        """Number of virtual multiprocessors."""
        return self.machine.sm_count

    def alloc(self, nbytes: int) -> int:
        """Allocate device memory. It reads as zero."""
        with self._lock:
            return self.machine.alloc(max(nbytes, 1))

    def alloc_separate(self, nbytes: int) -> int:
        """Allocate consan's own memory, far away: a kernel that overruns its buffer must not hit it."""
        with self._lock:
            return self.machine.alloc(max(nbytes, 1), separate=True)

    def free(self, address: int) -> None:
        """Free what `alloc` gave."""
        self._lock.soon(functools.partial(self.machine.free, address))

    def allocation(self, address: int) -> tuple[int, int] | None:
        """Begin and bytes of the allocation that an address lies in."""
        found = self.machine.arena.find(address)
        return None if found is None else (found.address, found.nbytes)

    def write(self, address: int, data: bytes | npt.NDArray[Any]) -> None:
        """Copy host bytes to the device."""
        self.machine.write(address, data)

    def free_bytes(self) -> int:
        """All of it: memory costs nothing until it is touched."""
        return self.memory_bytes

    def peek(self, address: int, nbytes: int) -> bytes:
        """Same as `read`."""
        return self.read(address, nbytes)

    def poke(self, address: int, data: bytes) -> None:
        """Same as `write`: nothing runs in the background."""
        self.machine.write(address, data)

    def read(self, address: int, nbytes: int) -> bytes:
        """Copy device bytes to the host."""
        return self.machine.read(address, nbytes)

    def read_into(self, target: npt.NDArray[Any], address: int, *, running: bool) -> None:
        """The same into an array."""
        del running
        target.reshape(-1).view(np.uint8)[:] = self.machine.view(address, np.uint8, target.nbytes)

    def fill(self, address: int, value: int, nbytes: int) -> None:
        """Set every byte of a range."""
        self.machine.view(address, np.uint8, nbytes)[...] = value

    def tensor_map(self, info: TensorMapInfo) -> bytes:
        """The 128 bytes of a tensor map."""
        return encode(info)

    def make_texture(self, info: TextureInfo) -> int:
        """The handle of a new texture object: numbers from one on, each used once."""
        self._texture_handles += 1
        self.machine.arena.textures[self._texture_handles] = info
        if info.reference:
            self.machine.arena.bound[info.reference] = info
        return self._texture_handles

    def free_texture(self, handle: int) -> None:
        """Free what `make_texture` gave."""
        self.machine.arena.bound.pop(self.machine.arena.textures.pop(handle).reference, None)

    def contents(self, most: int) -> list[tuple[int, npt.NDArray[np.uint8]]]:
        """The bytes in memory of programs, by address; nothing if it is more than `most` bytes."""
        return self.machine.arena.contents(most)

    def texture_memory(self, handle: int) -> TextureMemory | None:
        """The bytes of a texture object that have addresses."""
        found = self.machine.arena.texture(handle)
        return None if found is None else found.reached

    def load(self, ptx: str, *, name: str = "<ptx>") -> LoadedModule:
        """Parse a module and place its variables."""
        with self._lock:
            return self.machine.load(ptx, name)

    def decode(self, handle: LoadedModule, entry: str, block: Dim3, ctas: int) -> None:
        """Decode a kernel for launches of so many CTAs, without dynamic shared memory."""
        with self._lock:
            handle.decode(entry, block, ctas)

    def resources(self, handle: LoadedModule, entry: str) -> EntryResources:
        """Shared memory of an entry. There are no registers to count."""
        with self._lock:
            return EntryResources(static_shared=handle.reach(entry).static_shared)

    def shared_offsets(self, handle: LoadedModule, entry: str) -> dict[str, int]:
        """Offsets of an entry's shared variables, by symbol."""
        with self._lock:
            return {variable.name: offset for variable, offset in handle.reach(entry).shared.items()}

    def load_cubin(self, cubin: bytes) -> LoadedModule:
        """Machine code does not run here."""
        raise NotImplementedError

    def resident_ctas(self, handle: LoadedModule, entry: str, threads: int, shared: int = 0) -> None:
        """All CTAs of a cooperative launch run at once, however many."""

    def unload(self, handle: LoadedModule) -> None:
        """Free a module's memory. The module must not be used any more."""
        with self._lock:
            handle.unload()

    def symbol(self, handle: LoadedModule, name: str) -> tuple[int, int]:
        """Address and size of a module's global variable."""
        return handle.symbol(name)

    def launch(
        self,
        handle: LoadedModule,
        entry: str,
        grid: Dim3,
        block: Dim3,
        args: Sequence[bytes],
        *,
        shared: int = 0,
        cluster: Dim3 = (1, 1, 1),
        cooperative: bool = False,
        seed: int = 0,
        timeout: float | None = None,
        stream: int | None = None,
        first: int = 0,
    ) -> LaunchStats:
        """Run a launch to its end, its first fault, a deadlock or the time limit. `first`: only so many CTAs start (0: all)."""
        del stream
        params = _pack_parameters(handle, entry, args)
        how: dict[str, Any] = {"shared": shared, "cluster": cluster, "seed": seed, "timeout": timeout, "cooperative": cooperative}
        with self._lock:
            return self.machine.launch(handle, entry, grid, block, params, first=first, **how)

    def synchronize(self, timeout: float | None = None) -> bool:
        """Nothing runs in the background."""
        return True

    def ends(self, timeout: float | None, longest: float) -> bool:
        """The same: no stream is unknown."""
        return self.synchronize(longest if timeout is None else timeout)

    def host_ring(self, nbytes: int) -> tuple[int, HostBytes]:
        """Device memory that the host sees as an array."""
        address = self.machine.alloc(nbytes, separate=True)
        return address, self.machine.view(address, np.uint8, nbytes)

    def free_ring(self, address: int) -> None:
        """Free what `host_ring` gave."""
        self.machine.free(address)

    def watch(self, stream: int) -> None:
        """Launches have ended when they return."""

    def capturing(self, stream: int | None) -> bool:
        """There are no graphs."""
        del stream
        return False

    def outside_captures(self) -> contextlib.AbstractContextManager[None]:
        """There are no captures."""
        return contextlib.nullcontext()

    def on_ctas(self, tell: Callable[[int, int], None]) -> None:
        """Call it while a launch runs."""
        self.machine.on_ctas = tell

    def restart(self) -> None:
        """Number launches (%gridid) from one again."""
        self.machine.restart()

    def renew(self) -> None:
        """Memory reads as zero again, variables have their initial values, and launches are counted from one."""
        self.machine.renew()


def _pack_parameters(handle: LoadedModule, entry: str, args: Sequence[bytes]) -> bytes:
    """Lay the parameters out in order, naturally aligned (PTX ISA "Kernel Function Parameters")."""
    info = handle.entry(entry)
    if len(info.params) != len(args) or any(p.nbytes != len(a) for p, a in zip(info.params, args, strict=False)):
        wanted, given = ", ".join(str(p.nbytes) for p in info.params) or "no", ", ".join(map(str, map(len, args))) or "no"
        raise UsageError(f"{entry} takes parameters of {wanted} bytes, but got {given}")
    block = bytearray(info.param_bytes)
    for parameter, value in zip(info.params, args, strict=True):
        block[parameter.offset : parameter.offset + len(value)] = value
    return bytes(block)
