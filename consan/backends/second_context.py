"""The contexts of a program: the one that it uses first, and others, of another device or made by itself.

A launcher of several processes says in the environment which one of its host a process is: that process uses the GPU with this number.

A context that the program has made may end at any time, and what consan holds in it with it: launches there are not checked.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from typing import Final

from consan.backends import driver as api
from consan.backends.base import DeviceLost
from consan.backends.cuda import CudaBackend

_MADE: Final = "it is launched in a context that the program has made (cuCtxCreate), and only primary contexts are checked"


class SecondContext(CudaBackend):
    """The GPU of the calling thread's context. A primary one is kept as long as the backend lives."""

    def __init__(self, context: int, *, driver: api.Driver | None = None) -> None:
        self._found, self._retained = context, False
        super().__init__(driver=driver)
        self.contexts.several = True
        self.contexts.refusal = "" if self._retained else _MADE

    def _open(self, ordinal: int) -> tuple[int, ctypes.c_void_p]:
        """The context that is there, and its device."""
        del ordinal
        device = self._driver.integer("cuCtxGetDevice")
        flags, active = ctypes.c_uint(), ctypes.c_int()
        self._driver.call("cuDevicePrimaryCtxGetState", device, ctypes.byref(flags), ctypes.byref(active))
        if active.value:
            _, primary = super()._open(device)
            self._retained = primary.value == self._found
            if not self._retained:
                self._driver.call("cuDevicePrimaryCtxRelease_v2", device)
        return device, ctypes.c_void_p(self._found)

    def close(self) -> None:
        """Leave the context to the program."""
        with contextlib.suppress(DeviceLost):
            self._streams.close()
            if self._retained:
                self._driver.call("cuDevicePrimaryCtxRelease_v2", self._device)


# Of torchrun, Open MPI, MVAPICH, Intel MPI and Slurm.
_OWN_NUMBERS: Final = (
    "LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"
)  # fmt: skip


def primary() -> CudaBackend:
    """The GPU of this process through its primary context: the first one, or of several processes of a launcher its own."""
    number = next(filter(None, map(os.environ.get, _OWN_NUMBERS)), "0")
    ordinal = int(number) if number.isdecimal() else 0
    return CudaBackend(ordinal if 0 < ordinal < api.driver().integer("cuDeviceGetCount") else 0)
