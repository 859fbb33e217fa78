"""The devices of this process: each has a backend, the shadow and the prepared modules, and successive sessions share it."""

from __future__ import annotations

import functools
import itertools
import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from consan import late
from consan._errors import EnvironmentFailure
from consan.backends.base import Backend, Handle
from consan.checker.logs.memory import LogMemory
from consan.checker.logs.receipts import Receipts
from consan.instrument import CONTROL, SEED
from consan.instrument.abi.variant import Variant
from consan.session.modules.prepared import Prepared


def open_backend(device: str) -> Backend:
    """The backend for `--device`. `auto` takes the GPU if there is one."""
    if device == "cpu":
        return late.virtual_backend.VirtualBackend.in_place()
    try:
        return late.second_context.primary()
    except (EnvironmentFailure, OSError) as error:
        if device == "gpu":
            raise EnvironmentFailure(f"--device gpu: {error}") from None
        return late.virtual_backend.VirtualBackend()


if TYPE_CHECKING:
    from consan.session.modules.shadow import Shadow

_Wanted = tuple[str, Variant, bool, bool, bool, str]  # text and variant; if it is assembled fast, recorded, with global memory; why not


class Owner(Protocol):
    """The session for which the shadow records."""

    cta_limit: int

    def harvest(self) -> None:
        """Store what was recorded, because another session gets the shadow."""


class Device:
    """One device of this process: its backend, its shadow and its prepared modules. Successive sessions share it."""

    def __init__(self, backend: Backend, *, arena_bytes: int | None = None) -> None:
        self.backend = backend
        self.logs = LogMemory(backend)
        self.modules: OrderedDict[_Wanted, Prepared] = OrderedDict()  # least recently used first
        self._alive: weakref.WeakValueDictionary[int, Prepared] = weakref.WeakValueDictionary()  # kept modules, and those in use
        self._unused: deque[Handle] = deque()  # loaded modules that no session holds any more
        self.lost = False
        self.unsettled: Callable[[], None] | None = None  # concludes the launches of the owner that nobody has waited for
        self.free_idle: Callable[[], None] = lambda: None  # frees the memory of the owner's logs that no launch uses
        self.delay_seed: int | None = None  # seed of the delays in assembled code; None: no delays
        self.owned_by: weakref.ref[Owner] | None = None  # `owner`: one object for each session
        self.lock = threading.RLock()  # host threads prepare modules, and choose and count launches, one at a time
        self.numbers = itertools.count()  # of modules
        self._arena_bytes = arena_bytes

    @functools.cached_property
    def shadow(self) -> Shadow:
        """The shadow tables of called hooks. Created with the first module that has them."""
        made = late.hooks.Shadow(self.backend, arena_bytes=self.most_shadow)
        made.reset(cta_limit=self.owner.cta_limit if self.owner is not None else 0)
        return made

    @property
    def has_hooks(self) -> bool:
        """Whether a module with called hooks was made."""
        return "shadow" in self.__dict__

    @functools.cached_property
    def receipts(self) -> Receipts:
        """Slips for the receipts of recorded launches. Made with the first that nobody waits for."""
        return Receipts(self.logs)

    @property
    def most_shadow(self) -> int:
        """Limit on the bytes of shadow cells."""
        return self._arena_bytes or late.hooks.arena_bytes_of(self.backend)

    @property
    def owner(self) -> Owner | None:
        """The session that the shadow records for."""
        return self.owned_by() if self.owned_by is not None else None

    def hand_to(self, session: Owner | None) -> None:
        """Let the shadow record for this session. The previous one keeps its own records."""
        with self.lock:
            before = self.owner
            if session is None or session is before:
                return
            if self.unsettled is not None:
                self.unsettled()
            if before is not None:
                before.harvest()
            if not self.lost:
                self.start(session.cta_limit)
            self.owned_by = weakref.ref(session)

    def give_back(self) -> None:
        """Free what no launch uses: the program lacks memory. Does nothing while another thread has the device."""
        if self.lost or not self.lock.acquire(blocking=False):
            return
        try:
            self.free_idle()
            self.logs.release()
        finally:
            self.lock.release()

    def start(self, cta_limit: int) -> None:
        """Forget what was recorded. On the virtual machine the next launch then runs as in a new process: same seed, same report."""
        if self.has_hooks:
            self.shadow.reset(cta_limit=cta_limit)
        self.backend.restart()

    def renew(self) -> None:
        """Reset what earlier launches left behind, where the backend is `seeded`: the next launch runs as a first one."""
        self.owned_by = None
        self.backend.renew()
        if self.has_hooks:
            self.shadow.renew()
            for prepared in self.prepared():
                self.plant(prepared)

    def recall(self, wanted: _Wanted) -> Prepared | None:
        """A prepared module from the cache, or None."""
        found = self.modules.get(wanted)
        if found is not None:
            self.modules.move_to_end(wanted)
        return found

    def keep(self, wanted: _Wanted, prepared: Prepared) -> Prepared:
        """Keep a module by its content. Beyond the limit the least recently used is dropped, and unloaded once no session holds it."""
        self.modules[wanted] = self._alive[prepared.number] = prepared
        while self.backend.modules_kept is not None and len(self.modules) > self.backend.modules_kept:
            self.modules.popitem(last=False)
        while self._unused:
            self.backend.unload(self._unused.popleft())
        return prepared

    def prepared(self) -> list[Prepared]:
        """All modules that can still be launched."""
        return list(self._alive.values())

    def unload_with(self, prepared: Prepared, loaded: Handle) -> None:
        """Unload a module after it is freed, at the next `keep`, when no launch is running. Does nothing if all modules are kept."""
        if self.backend.modules_kept is not None:
            weakref.finalize(prepared, self._unused.append, loaded).atexit = False

    def plant(self, prepared: Prepared) -> None:
        """Write the control block of a loaded module, if it has one, and the seed of its delays."""
        if prepared.handle is not None and prepared.recorded is None:
            address, _ = self.backend.symbol(prepared.handle, CONTROL)
            self.backend.write(address, self.shadow.control_block(prepared.number, prepared.counter))
        if prepared.handle is not None and prepared.code.delayed:
            self.backend.write(self.backend.symbol(prepared.handle, SEED)[0], self.delay_bytes())

    def delay(self, seed: int | None) -> None:
        """Delay warps at synchronising instructions of the modules that are prepared from now on, by this seed. None: no more."""
        self.delay_seed = seed
        for prepared in self.prepared():
            self.plant(prepared)

    def delay_bytes(self) -> bytes:
        """The bytes of a module's SEED."""
        return ((self.delay_seed or 0) & 0xFFFFFFFF).to_bytes(4, "little")

    def close(self) -> None:
        """Free the shadow, if it exists, and the memory of logs, if the context is alive."""
        if not self.lost:
            if (receipts := self.__dict__.pop("receipts", None)) is not None:
                receipts.close()
            self.logs.close()
        shadow = self.__dict__.pop("shadow", None)
        if shadow is not None and not self.lost:
            self.modules.clear()
            shadow.close()


DEVICES: dict[tuple[str, int | None], Device] = {}
"""The shared devices, by name and limit on shadow cells."""

_DEVICES_LOCK = threading.Lock()


def new_device(name: str, shadow_memory: int | None = None) -> Device:
    """A device for this caller alone."""
    return Device(open_backend(name), arena_bytes=shadow_memory)


def shared_device(name: str, shadow_memory: int | None = None) -> Device:
    """The process's device of this kind, with this limit on shadow cells. A lost GPU is not reused."""
    found = _shared(name, shadow_memory, lambda: open_backend(name))
    with _DEVICES_LOCK:
        DEVICES.setdefault((found.backend.choice, shadow_memory), found)
    return found


def device_in(context: int, shadow_memory: int | None = None) -> Device:
    """The process's device for launches in a context, which is the calling thread's and not that of another device."""
    return _shared(f"context {context:#x}", shadow_memory, lambda: late.second_context.SecondContext(context))


def _shared(name: str, shadow_memory: int | None, opened: Callable[[], Backend]) -> Device:
    with _DEVICES_LOCK:
        found = DEVICES.get((name, shadow_memory))
        if found is None or found.lost:
            found = DEVICES[name, shadow_memory] = Device(opened(), arena_bytes=shadow_memory)
        return found
