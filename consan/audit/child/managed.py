"""A GPU for audited files. The memory that it gives is managed, so the host's code reaches it at the address that kernels have.

A process that forks loses its context. So the device is opened by the process that launches first, and each run of a program is one.

Not handled: `cudaMemset` of a variable of the device, texture objects, and bounds of memory, which the virtual machine alone knows.
"""

from __future__ import annotations

import ctypes
from typing import Final

from consan._errors import EnvironmentFailure
from consan.backends.cost import COST
from consan.backends.cuda import CudaBackend
from consan.backends.cuda_memory import CudaMemory
from consan.session.modules.device import Device

_GLOBAL: Final = 1  # CU_MEM_ATTACH_GLOBAL


class ManagedBackend(CudaBackend):
    """A GPU whose memory the host's code reaches."""

    def alloc(self, nbytes: int) -> int:
        """Allocate managed memory."""
        address = ctypes.c_uint64()
        with self.current():
            self._driver.call("cuMemAllocManaged", ctypes.byref(address), ctypes.c_size_t(max(nbytes, 1)), _GLOBAL)
        return address.value

    def alloc_separate(self, nbytes: int) -> int:
        """Consan's own memory, which the host need not reach."""
        return COST.took(self, CudaMemory.alloc(self, nbytes), nbytes)

    def copy(self, to: int, origin: int, nbytes: int) -> None:
        """Copy between any two addresses, of host or device."""
        with self.current():
            self._driver.call("cuMemcpy", ctypes.c_uint64(to), ctypes.c_uint64(origin), ctypes.c_size_t(nbytes))


def open_gpu() -> Device:
    """A device of this process. Raises EnvironmentFailure."""
    try:
        return Device(ManagedBackend())
    except (EnvironmentFailure, OSError) as error:
        raise EnvironmentFailure(f"--device gpu: {error}") from None
