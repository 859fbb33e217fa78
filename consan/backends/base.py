"""The interface of a backend: memory, modules, launches. Implemented by `cuda` and `virtual`.

Addresses are integers in the device's global address space. Kernel arguments are the bytes of
each parameter, in order. A launch may still run when `launch` returns; errors of the kernel surface in `synchronize`.

Not handled: streams other than by handle, memory pools, more than one device in a process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from consan._errors import ConsanError
from consan.tensormap import TensorMapInfo

Dim3 = tuple[int, int, int]
HostBytes = npt.NDArray[np.uint8]


class DeviceLost(ConsanError):  # noqa: N818 - CUDA's own word for it; it is a state of the device
    """The kernel broke the device's context (illegal address, trap, ...). Nothing more runs; host-mapped memory stays readable."""

    def __init__(self, message: str, *, code: int, name: str) -> None:
        super().__init__(message)
        self.code = code
        self.name = name


@dataclass(frozen=True)
class EntryResources:
    """Resources of one entry of a loaded module, as the device reports them. Zero if the backend does not count them."""

    registers: int = 0
    local_bytes: int = 0
    static_shared: int = 0
    max_threads: int = 1024


@runtime_checkable
class Backend(Protocol):
    """A device that runs PTX."""

    @property
    def device_name(self) -> str:
        """Name for reports, e.g. "NVIDIA H200" or "cpu"."""
        ...

    @property
    def arch(self) -> str:
        """Architecture to compile for, e.g. "sm_90a"."""
        ...

    @property
    def sm_count(self) -> int:
        """Number of multiprocessors."""
        ...

    @property
    def memory_bytes(self) -> int:
        """Bytes of device memory."""
        ...

    @property
    def allocates_zeros(self) -> bool:
        """Whether `alloc` gives zeroed memory."""
        ...

    def poke(self, address: int, data: bytes) -> None:
        """Write while kernels run or hang."""
        ...

    def alloc(self, nbytes: int) -> int:
        """Allocate device memory, 256-byte aligned."""
        ...

    def alloc_apart(self, nbytes: int) -> int:
        """The same for consan's own memory, far from the kernels' buffers if the backend can choose."""
        ...

    def free(self, address: int) -> None:
        """Free what `alloc` gave."""
        ...

    def write(self, address: int, data: bytes | npt.NDArray[Any]) -> None:
        """Copy host bytes to the device. Complete on return."""
        ...

    def read(self, address: int, nbytes: int) -> bytes:
        """Copy device bytes to the host, after all earlier work."""
        ...

    def fill(self, address: int, value: int, nbytes: int) -> None:
        """Set every byte of a range."""
        ...

    def tensor_map(self, info: TensorMapInfo) -> bytes:
        """The 128 bytes of a tensor map for this device."""
        ...

    def load(self, ptx: str) -> Any:
        """Load a module; the handle goes to `symbol` and `launch`."""
        ...

    def resources(self, handle: Any, entry: str) -> EntryResources:
        """Resources of a loaded entry."""
        ...

    def symbol(self, handle: Any, name: str) -> tuple[int, int]:
        """Address and size of a module's global variable."""
        ...

    def launch(
        self,
        handle: Any,
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
    ) -> Any:
        """Start a launch. `args` are the bytes of each parameter."""
        ...

    def synchronize(self, timeout: float | None = None) -> bool:
        """Wait for all work. False if it still runs after `timeout` seconds. Raises `DeviceLost` after a fatal kernel error."""
        ...

    def host_ring(self, nbytes: int) -> tuple[int, HostBytes]:
        """Zeroed memory shared by host and device: its device address, and a view that outlives the context."""
        ...

    def free_ring(self, address: int) -> None:
        """Free what `host_ring` gave."""
        ...
