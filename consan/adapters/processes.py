"""`torch.distributed` on GPUs, where each rank is a process: its symmetric memory, and the calls in which the processes meet.

Read against torch 2.11 and 2.13. `rendezvous` gives the addresses of an allocation in all ranks, and all processes call it in the same
order: so an allocation has a number. Collectives order what each process did before in its current stream with what it does later there; a
barrier is also one for the host. consan/session/comparing/processes.py compares the processes.

Not handled: `send` and `recv`, collectives that C++ makes (DDP), `torch.ops.symm_mem`, memory of other processes that the program opens
itself.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final
from weakref import WeakKeyDictionary

from consan.adapters.seam import Seam
from consan.adapters.sources import assigned

_SYMMETRIC: Final = "torch.distributed._symmetric_memory"
_BARRIER: Final = "barrier"
_COLLECTIVES: Final = (
    *(_BARRIER, "monitored_barrier", "broadcast", "all_reduce", "all_reduce_coalesced", "reduce_scatter", "reduce_scatter_tensor"),
    *("all_gather", "all_gather_into_tensor", "all_gather_coalesced", "all_to_all", "all_to_all_single"),
    *("all_gather_object", "broadcast_object_list"),
)
_ON_HOST: Final = ("gloo", "mpi")
_HANDLE: Final = {"barrier": (True, True), "put_signal": (True, False), "wait_signal": (False, True)}
"""Methods of a handle: whether others wait for what comes before, and whether it waits for others."""


class TorchProcesses(Seam):
    """Follows the processes of a program that torchrun starts."""

    name = "torch.distributed"
    title = "torch.distributed"
    package = "torch.distributed"
    distribution = "torch"
    covers = "symmetric memory between processes, and collectives, for a comparison of their launches"

    def __init__(self) -> None:
        super().__init__()
        self._names: dict[int, str] = {}  # of allocations, by address
        self._keys: dict[int, str] = {}  # of allocations, by the addresses of the own memory
        self._watched: set[Any] = set()  # classes of handles, and that of work
        self._works: WeakKeyDictionary[Any, tuple[str, bool, bool]] = WeakKeyDictionary()  # the exchange, of hosts, the host waits for it

    def _begin(self, module: ModuleType) -> None:
        for name in _COLLECTIVES:
            if hasattr(module, name):
                self._wrap(module, name, self._collective, module, name)
        self._when(_SYMMETRIC, self._begin_symmetric)

    def _begin_symmetric(self, module: ModuleType) -> None:
        self._wrap(module, "empty", self._empty)
        self._wrap(module, "rendezvous", self._rendezvous)

    @property
    def _followed(self) -> Any:
        return self._open.here().followed

    def _collective(self, module: Any, name: str, original: Callable[..., Any], *args: Any, **how: Any) -> Any:
        result = original(*args, **how)
        if self._session is not None and self._keys:  # memory is shared
            given = inspect.signature(original).bind(*args, **how).arguments
            group = given.get("group") or module.group.WORLD
            if not isinstance(group, module.ProcessGroup):  # the process is none of the group
                return result
            key, on_host = f"group {_name_of(group)}", module.get_backend(group) in _ON_HOST
            if not (given.get("async_op") and self._begins(module, result, key, on_host=on_host, waits=name == _BARRIER)):
                self._met(key, on_host=on_host, waits=name == _BARRIER)
        return result

    def _begins(self, module: Any, work: Any, key: str, *, on_host: bool, waits: bool) -> bool:
        """An asynchronous collective: others wait for what comes before it, and its stream for others only behind `work.wait()`."""
        log = self._followed.log
        if log is None or not isinstance(work, module.Work):
            return False
        if module.Work not in self._watched:
            self._watched.add(module.Work)
            self._wrap(module.Work, "wait", self._waited)
        exchange = log.numbered(key)
        self._works[work] = exchange, on_host, waits
        self._followed.met(exchange, None if on_host else _current_stream(), waits=False, receives=False)
        return True

    def _waited(self, original: Callable[..., Any], work: Any, *args: Any, **how: Any) -> Any:
        result = original(work, *args, **how)
        if self._session is not None and work in self._works:
            exchange, on_host, waits = self._works[work]
            self._followed.met(exchange, None if on_host else _current_stream(), waits=waits, sends=False)
        return result

    def _met(self, key: str, *, on_host: bool = False, waits: bool = False, sends: bool = True, receives: bool = True) -> None:
        log = self._followed.log
        if log is not None:
            stream = None if on_host else _current_stream()
            self._followed.met(log.numbered(key), stream, waits=waits, sends=sends, receives=receives)

    def _empty(self, original: Callable[..., Any], *args: Any, **how: Any) -> Any:
        found = original(*args, **how)
        self._names[found.data_ptr()] = assigned()
        return found

    def _rendezvous(self, original: Callable[..., Any], *args: Any, **how: Any) -> Any:
        handle = original(*args, **how)
        given = inspect.signature(original).bind(*args, **how).arguments
        tensor, group = given["tensor"], given.get("group")
        log = self._followed.shares(int(handle.rank), int(handle.world_size))
        key = log.numbered(f"memory of {group if isinstance(group, str) else _name_of(group)}")
        name, element = self._names.get(tensor.data_ptr(), "buffer"), int(tensor.element_size())
        for rank, (buffer, pad) in enumerate(zip(handle.buffer_ptrs, handle.signal_pad_ptrs, strict=True)):
            log.add_window(key, rank, int(buffer), int(handle.buffer_size), f'symmetric buffer "{name}", rank {rank}', element)
            log.add_window(f"{key}, signals", rank, int(pad), int(handle.signal_pad_size), f'signal pad of "{name}", rank {rank}', 4)
        self._watch(type(handle))
        self._keys[int(handle.buffer_ptrs[handle.rank])] = key
        return handle

    def _watch(self, kind: Any) -> None:
        """Follow what the handles of a class are called for."""
        if kind not in self._watched:
            self._watched.add(kind)
            for method in (name for name in _HANDLE if hasattr(kind, name)):
                self._wrap(kind, method, self._called, method)

    def _called(self, method: str, original: Callable[..., Any], handle: Any, *args: Any, **how: Any) -> Any:
        result = original(handle, *args, **how)
        key = self._keys.get(int(handle.buffer_ptrs[handle.rank]))
        if key is not None and self._session is not None:
            names = [name for name in ("dst_rank", "src_rank", "channel") if name != ("src_rank" if method == "put_signal" else "dst_rank")]
            given = dict(zip(names if method != _BARRIER else ("channel",), args, strict=False)) | how
            own, other = int(handle.rank), given.get("dst_rank", given.get("src_rank"))
            way = "" if other is None else f" from {own} to {other}" if method == "put_signal" else f" from {other} to {own}"
            sends, receives = _HANDLE[method]
            self._met(f"{key}, channel {given.get('channel', 0)}{way}", sends=sends, receives=receives)
        return result


def _name_of(group: Any) -> str:
    return str(getattr(group, "group_name", "of all"))


def _current_stream() -> int:
    torch: Any = sys.modules["torch"]
    return int(torch.cuda.current_stream().cuda_stream)
