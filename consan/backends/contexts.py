"""The other GPUs of a backend's process: the context that is current, and the GPU that holds the memory at an address.

CUDA Driver API, "Context Management", "Unified Addressing". Memory that another process shares has the number of the GPU on which it lies.

Not known here: memory of another process on the same GPU.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Final

from consan.backends import driver as api

_MEMORY_TYPE, _IS_MANAGED, _ORDINAL = 2, 8, 9  # CU_POINTER_ATTRIBUTE_*
_HOST: Final = 1  # CU_MEMORYTYPE_HOST
_SMALLEST_ADDRESS: Final = 1 << 16
HOST_MEMORY: Final = "the host, which each GPU reaches"


class CudaContexts:
    """The questions of one backend, which has one device and one context, about the others."""

    def __init__(self, driver: api.Driver, device: int, context: ctypes.c_void_p) -> None:
        self._driver, self.device, self._context = driver, device, context
        self.own = context.value or 0
        self.refusal = ""  # why launches in this context cannot be checked
        self.several = False  # the process has used another context

    @functools.cached_property
    def alone(self) -> bool:
        """Whether the process sees one GPU, and so no memory of another one."""
        return self._driver.integer("cuDeviceGetCount") <= 1

    def other(self) -> int:
        """The context of the calling thread, if it is another one than the backend's; 0 if it is the same, or there is none."""
        found = ctypes.c_void_p()
        self._driver.call("cuCtxGetCurrent", ctypes.byref(found))
        if found.value in (None, self._context.value):
            return 0
        self.several = True
        return found.value or 0

    def holder(self, address: int) -> str:
        """Another holder of the memory at an address: a GPU, or the host; empty: there is none, or it is no address."""
        if address < _SMALLEST_ADDRESS or (ordinal := self._attribute(_ORDINAL, address)) is None:
            return ""
        if ordinal != self.device:
            return f"GPU {ordinal}"
        of_host = self.several and (self._attribute(_MEMORY_TYPE, address) == _HOST or self._attribute(_IS_MANAGED, address))
        return HOST_MEMORY if of_host else ""

    def _attribute(self, number: int, address: int) -> int | None:
        value = ctypes.c_int()
        failed = self._driver.status("cuPointerGetAttribute", ctypes.byref(value), number, ctypes.c_uint64(address))
        return None if failed else value.value


class OneContext(CudaContexts):
    """The same, for a backend whose launches come from its own context."""

    def other(self) -> int:
        """None."""
        return 0
