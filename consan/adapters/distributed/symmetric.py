"""`torch.distributed._symmetric_memory` between the ranks of one process (docs: "Symmetric Memory" of torch.distributed).

An allocation is called by the variable that the program assigns it to. Barriers of a handle order all ranks, as they do on GPUs. Signals of
the host order two ranks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from consan._errors import NotSupported, UsageError
from consan.adapters.distributed.order import hosts_meet, meets
from consan.adapters.sources import assigned
from consan.dataclass import dataclass
from consan.instrument.rewriting.multicast import ABOVE
from consan.ranks.crew import Crew
from consan.ranks.memory import PAD_BYTES, SymmetricArray, SymmetricWindow, address_of
from consan.session.comparing.program_streams import ProgramStreams


@dataclass(frozen=True)
class Tensors:
    """How tensors are made: `empty(shape, dtype=)`, and one of the bytes of an array."""

    empty: Callable[..., Any]
    from_bytes: Callable[[Any, Any], Any]
    default: Any = None


class SymmetricCalls:
    """The symmetric memory of a crew."""

    def __init__(self, crew: Crew, makes: Tensors, streams: ProgramStreams) -> None:
        self._crew, self._makes, self._streams = crew, makes, streams

    def functions(self) -> dict[str, Any]:
        """By the names that they have in `torch.distributed._symmetric_memory`."""
        return {
            "empty": self.empty,
            "rendezvous": self.rendezvous,
            "enable_symm_mem_for_group": lambda group_name: None,
            "is_symm_mem_enabled_for_group": lambda group_name: True,
            "set_backend": lambda name: None,
            "get_backend": lambda device=None: "CUDA",
        }

    def empty(self, *size: Any, dtype: Any = None, device: Any = None) -> Any:
        """A tensor of symmetric memory of the rank that runs."""
        shape = tuple(size[0]) if len(size) == 1 and isinstance(size[0], Sequence) else size
        dtype = self._makes.default if dtype is None else dtype
        element = int(self._makes.empty((1,), dtype=dtype).element_size())
        made = self._crew.memory.allocate(self._crew.rank, math.prod(shape) * element, assigned(), element)
        return self._makes.from_bytes(made.bytes, dtype)[: math.prod(shape)].reshape(shape)

    def rendezvous(self, tensor: Any, group: Any = None) -> Handle:
        """The handle of the allocation that each rank gives."""
        own = self._crew.memory.holding(int(tensor.data_ptr()))
        if own is None:
            raise UsageError("rendezvous: the tensor is not of symmetric memory; make it with torch.distributed._symmetric_memory.empty")
        window = self._window_of(own)
        if window is None:
            among = () if group is None or isinstance(group, str) else group.ranks
            found: list[SymmetricArray] = hosts_meet(self._crew, "rendezvous", own, among)
            if len({each.bytes.nbytes for each in found}) > 1:
                raise UsageError(f"rendezvous: the ranks have {', '.join(str(each.bytes.nbytes) for each in found)} bytes")
            window = self._crew.memory.join(found)
        return Handle(self._crew, self._makes, self._streams, window, int(tensor.data_ptr()) - address_of(own.bytes))

    def _window_of(self, own: SymmetricArray | None) -> SymmetricWindow | None:
        """The window of an allocation, once its rendezvous is over."""
        return next((each for each in self._crew.memory.windows if own in each.ranks), None)

    def part_of(self, tensor: Any, rank: int) -> Any:
        """The tensor of another rank at the place of this one."""
        return self._makes.from_bytes(self._bytes_of(tensor, rank), tensor.dtype).reshape(tensor.shape)

    def word_of(self, tensor: Any, rank: int) -> Any:
        """The first element of a tensor of integers, at its place in the memory of a rank, as an array of one."""
        nbytes = int(tensor.element_size())
        return self._bytes_of(tensor, rank)[:nbytes].view(f"i{nbytes}")

    def _bytes_of(self, tensor: Any, rank: int) -> Any:
        own = self._crew.memory.holding(int(tensor.data_ptr()))
        window = self._window_of(own)
        if own is None or window is None:
            raise UsageError("the tensor is not of symmetric memory")
        begin = int(tensor.data_ptr()) - address_of(own.bytes)
        return window.ranks[rank].bytes[begin : begin + tensor.numel() * tensor.element_size()]


class Handle:
    """The handle that `rendezvous` returns. The methods and properties are those of torch's `_SymmetricMemory`."""

    def __init__(self, crew: Crew, makes: Tensors, streams: ProgramStreams, window: SymmetricWindow, offset: int) -> None:
        self._crew, self._makes, self._streams, self._window = crew, makes, streams, window
        self._among = [each.rank for each in window.ranks]
        self.rank, self.world_size, self.offset = self._among.index(crew.rank), len(self._among), offset
        self.buffer_size, self.signal_pad_size = window.ranks[0].bytes.nbytes, PAD_BYTES
        self.buffer_ptrs = [address_of(each.bytes) for each in window.ranks]
        self.signal_pad_ptrs = [address_of(each.signals) for each in window.ranks]
        self.buffer_ptrs_dev, self.signal_pad_ptrs_dev = address_of(window.buffers), address_of(window.signals)
        self.multicast_ptr = self.buffer_ptrs[0] - ABOVE

    def get_buffer(self, rank: int, sizes: Sequence[int], dtype: Any, storage_offset: int = 0) -> Any:
        """A tensor in the memory of a rank; the offset is in elements."""
        return self._part(self._window.ranks[rank].bytes, sizes, dtype, storage_offset)

    get_remote_tensor = get_buffer

    def get_signal_pad(self, rank: int, sizes: Sequence[int] = (), dtype: Any = None, storage_offset: int = 0) -> Any:
        """The signals of a rank."""
        if dtype is None:
            raise NotSupported("get_signal_pad: with --ranks it needs sizes and a dtype")
        return self._part(self._window.ranks[rank].signals, sizes, dtype, storage_offset)

    def _part(self, found: Any, sizes: Sequence[int], dtype: Any, offset: int) -> Any:
        return self._makes.from_bytes(found, dtype)[offset : offset + math.prod(sizes)].reshape(tuple(sizes))

    def barrier(self, channel: int = 0, timeout_ms: int = 0) -> None:
        """All its ranks meet, by a kernel in the current stream of each."""
        meets(self._crew, self._streams.current(), f"a barrier of symmetric memory, channel {channel}", None, self._among)

    def put_signal(self, dst_rank: int, channel: int = 0, timeout_ms: int = 0) -> None:
        """Send a signal to a rank, in the current stream."""
        key, arrived = (self.rank, dst_rank, channel), self._window.arrived
        self._crew.until(lambda: key not in arrived, f"rank {dst_rank} to take an earlier signal of channel {channel}")
        arrived[key] = self._streams.current().record()

    def wait_signal(self, src_rank: int, channel: int = 0, timeout_ms: int = 0) -> None:
        """Let the current stream wait for a signal of a rank, and clear it."""
        key, arrived = (src_rank, self.rank, channel), self._window.arrived
        self._crew.until(lambda: key in arrived, f"a signal of rank {src_rank}, channel {channel}")
        self._streams.current().wait(arrived.pop(key))
