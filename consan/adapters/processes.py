"""`torch.distributed` on GPUs, where each rank is a process: its symmetric memory, and the calls in which the processes meet.

Read against torch 2.11 and 2.13. `rendezvous` gives the addresses of an allocation in all ranks, and all processes call it in the same
order: so an allocation has a number. Collectives order what each process did before in its current stream with what it does later there; a
barrier is also one for the host. Some have one sender or one receiver (`_ROOTS`), as `send` and `recv` do. An asynchronous one runs in a
stream of the library, so a host that waits for the device waits for it, too. consan/session/comparing/processes.py compares the processes.

Not handled: collectives that C++ makes (DDP), `torch.ops.symm_mem`, memory of other processes that the program opens itself.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from consan.adapters.seam import Seam
from consan.adapters.sources import assigned

if TYPE_CHECKING:
    from consan.session.comparing.program_streams import ProgramStream

_SYMMETRIC: Final = "torch.distributed._symmetric_memory"
_BARRIER: Final = "barrier"
_COLLECTIVES: Final = (
    *(_BARRIER, "monitored_barrier", "broadcast", "all_reduce", "all_reduce_coalesced", "reduce_scatter", "reduce_scatter_tensor"),
    *("all_gather", "all_gather_into_tensor", "all_gather_coalesced", "all_to_all", "all_to_all_single"),
    *("all_gather_object", "broadcast_object_list", "scatter", "reduce", "gather", "gather_object"),
)
_ROOTS: Final = {
    **dict.fromkeys(("broadcast", "broadcast_object_list", "scatter"), ("src", True)),
    **dict.fromkeys(("reduce", "gather", "gather_object"), ("dst", False)),
}
"""Collectives in which all others wait for one rank, or that for them: the argument that names it, and whether it sends."""
_WAITS: Final = ("wait", "synchronize", "is_completed")
"""Methods of work. Behind the last one the host knows that the exchange is over; the others are for the current stream."""
_ON_HOST: Final = ("gloo", "mpi")
_signature: Final = functools.lru_cache(inspect.signature)
_HANDLE: Final = {"barrier": (True, True), "put_signal": (True, False), "wait_signal": (False, True)}
"""Methods of a handle: whether others wait for what comes before, and whether it waits for others."""


@dataclass(frozen=True)
class _Exchange:
    """Processes meet. `on_host`: their hosts alone; `waits`: the host waits for it; `stream`: that of the library in which it runs."""

    key: str
    on_host: bool = False
    waits: bool = False
    sends: bool = True
    receives: bool = True
    stream: ProgramStream | None = None


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
        self._handles: WeakKeyDictionary[Any, tuple[int, str | None]] = WeakKeyDictionary()  # rank, and key of the allocation
        self._watched: set[Any] = set()  # classes of handles, and that of work
        self._works: WeakKeyDictionary[Any, list[_Exchange]] = WeakKeyDictionary()
        self._batch: list[_Exchange] | None = None  # that is being begun

    def _begin(self, module: ModuleType) -> None:
        for name in _COLLECTIVES:
            if hasattr(module, name):
                self._wrap(module, name, self._collective, module, name)
        if hasattr(module, "ProcessGroup"):
            for name in ("send", "recv"):  # isend, irecv and batches of them call these
                self._wrap(module.ProcessGroup, name, self._point_to_point, module, name)
            for name in _WAITS:
                self._wrap(module.Work, name, self._waited, name)
            self._wrap(module, "batch_isend_irecv", self._batched)
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
            given = _signature(original).bind(*args, **how).arguments
            group = given.get("group") or module.group.WORLD
            if not isinstance(group, module.ProcessGroup):  # the process is none of the group
                return result
            sends, receives = _directions(module, name, group, given)
            on_host = module.get_backend(group) in _ON_HOST
            exchange = _Exchange(f"group {_name_of(group)}", on_host, waits=name == _BARRIER, sends=sends, receives=receives)
            if given.get("async_op") and isinstance(result, module.Work):
                self._works[result] = [self._begins(exchange)]
            else:
                self._met(exchange)
        return result

    def _point_to_point(self, module: Any, name: str, original: Callable[..., Any], group: Any, *args: Any, **how: Any) -> Any:
        """`send` and `recv` of a group, which return work."""
        work = original(group, *args, **how)
        if self._session is not None and self._keys and len(args) == 3:
            (_, peer, tag), own, sends = args, int(group.rank()), name == "send"
            on_host = module.get_backend(group) in _ON_HOST
            key = f"group {_name_of(group)}, {_way(own, peer, sends=sends)}" + (f", tag {tag}" if on_host else "")
            begun = self._begins(_Exchange(key, on_host, sends=sends, receives=not sends))
            if self._batch is not None:
                self._batch.append(begun)
            if isinstance(work, module.Work):
                self._works[work] = [begun]
        return work

    def _batched(self, original: Callable[..., Any], *args: Any, **how: Any) -> Any:
        """Sends and receives that begin together: one work may stand for all."""
        begun = self._batch = list[_Exchange]()
        try:
            works = original(*args, **how)
        finally:
            self._batch = None
        for work in works:
            self._works.setdefault(work, begun)
        return works

    def _begins(self, exchange: _Exchange) -> _Exchange:
        """An asynchronous exchange: others wait for what the current stream did before it."""
        log = self._followed.log
        if log is None:
            return exchange
        exchange = replace(exchange, key=log.numbered(exchange.key))
        if not exchange.on_host:
            way = {"sends": exchange.sends, "receives": exchange.receives}
            return replace(exchange, stream=self._followed.exchanges.began(exchange.key, _current_stream(), **way))
        if exchange.sends:
            self._followed.exchanges.met(exchange.key, None, waits=False, receives=False)
        return exchange

    def _waited(self, method: str, original: Callable[..., Any], work: Any, *args: Any, **how: Any) -> Any:
        result = original(work, *args, **how)
        if self._session is not None and (method != "is_completed" or result):
            for exchange in self._works.get(work, ()):
                if exchange.on_host and exchange.receives:
                    self._followed.exchanges.met(exchange.key, None, waits=False, sends=False)
                elif exchange.stream is not None:
                    self._followed.exchanges.waited(exchange.stream, _current_stream(), waits=exchange.waits or method == "is_completed")
        return result

    def _met(self, exchange: _Exchange) -> None:
        log = self._followed.log
        if log is not None:
            stream = None if exchange.on_host else _current_stream()
            way = {"sends": exchange.sends, "receives": exchange.receives}
            self._followed.exchanges.met(log.numbered(exchange.key), stream, waits=exchange.waits, **way)

    def _empty(self, original: Callable[..., Any], *args: Any, **how: Any) -> Any:
        found = original(*args, **how)
        self._names[found.data_ptr()] = assigned()
        return found

    def _rendezvous(self, original: Callable[..., Any], *args: Any, **how: Any) -> Any:
        handle = original(*args, **how)
        given = _signature(original).bind(*args, **how).arguments
        tensor, group = given["tensor"], given.get("group")
        log = self._followed.shares(int(handle.rank), int(handle.world_size))
        key = log.numbered(f"memory of {group if isinstance(group, str) else _name_of(group)}")
        name, element = self._names.get(tensor.data_ptr(), "buffer"), int(tensor.element_size())
        for rank, (buffer, pad) in enumerate(zip(handle.buffer_ptrs, handle.signal_pad_ptrs, strict=True)):
            log.add_window(key, rank, int(buffer), int(handle.buffer_size), f'symmetric buffer "{name}", rank {rank}', element)
            log.add_window(f"{key}, signals", rank, int(pad), int(handle.signal_pad_size), f'signal pad of "{name}", rank {rank}', 4)
        self._watch(type(handle))
        self._keys[int(handle.buffer_ptrs[handle.rank])] = key
        self._handles.clear()  # the addresses may be those of an earlier allocation
        return handle

    def _watch(self, kind: Any) -> None:
        """Follow what the handles of a class are called for."""
        if kind not in self._watched:
            self._watched.add(kind)
            for method in (name for name in _HANDLE if hasattr(kind, name)):
                self._wrap(kind, method, self._called, method)

    def _called(self, method: str, original: Callable[..., Any], handle: Any, *args: Any, **how: Any) -> Any:
        result = original(handle, *args, **how)
        own, key = self._place(handle)
        if key is not None and self._session is not None:
            names = [name for name in ("dst_rank", "src_rank", "channel") if name != ("src_rank" if method == "put_signal" else "dst_rank")]
            given = dict(zip(names if method != _BARRIER else ("channel",), args, strict=False)) | how
            other = given.get("dst_rank", given.get("src_rank"))
            sends, receives = _HANDLE[method]
            way = "" if other is None else f" {_way(own, other, sends=sends)}"
            self._met(_Exchange(f"{key}, channel {given.get('channel', 0)}{way}", sends=sends, receives=receives))
        return result

    def _place(self, handle: Any) -> tuple[int, str | None]:
        """The rank of a handle, and the key of its allocation. Each look at a handle makes lists."""
        try:
            return self._handles[handle]
        except (KeyError, TypeError):  # a class whose objects are no keys
            rank = int(handle.rank)
            found = rank, self._keys.get(int(handle.buffer_ptrs[rank]))
        with contextlib.suppress(TypeError):
            self._handles[handle] = found
        return found


def _directions(module: Any, name: str, group: Any, given: Mapping[str, Any]) -> tuple[bool, bool]:
    """Whether others wait for what this process did before a collective, and whether it waits for them."""
    if name not in _ROOTS:
        return True, True
    argument, sends = _ROOTS[name]
    of_group = given.get(f"group_{argument}")
    is_root = module.get_rank() == (given.get(argument) or 0) if of_group is None else group.rank() == of_group
    return is_root is sends, is_root is not sends


def _way(own: int, other: int, *, sends: bool) -> str:
    return f"from {own} to {other}" if sends else f"from {other} to {own}"


def _name_of(group: Any) -> str:
    return str(getattr(group, "group_name", "of all"))


def _current_stream() -> int:
    torch: Any = sys.modules["torch"]
    core: Any = getattr(torch, "_C", None)
    if hasattr(core, "_cuda_getCurrentRawStream") and hasattr(core, "_cuda_getDevice"):  # Triton asks in this way, too: no object is made
        return int(core._cuda_getCurrentRawStream(core._cuda_getDevice()))
    return int(torch.cuda.current_stream().cuda_stream)
