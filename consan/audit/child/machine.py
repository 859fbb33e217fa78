"""The virtual machine whose memory the host's code reaches: an address of the device is the same address in the process.

The mapping is at a fixed place. Where that is taken, the process has to be started again: the system lays out each one anew.
"""

from __future__ import annotations

import ctypes
import mmap
from typing import Any, Final

from consan._errors import EnvironmentFailure
from consan.backends.cpu import Machine
from consan.backends.cpu.state.memory import GLOBAL_BASE, Arena
from consan.backends.virtual import VirtualBackend
from consan.session.modules.device import Device

_BYTES: Final = 1 << 35
_READ_WRITE: Final = 3
_FIXED: Final = 0x100000  # MAP_FIXED_NOREPLACE
_NO_RESERVE: Final = 0x4000


class TakenError(EnvironmentFailure):
    """Something else is where the memory of the machine has to be."""


class _Mapping(ctypes.c_uint8 * _BYTES):  # type: ignore[misc]
    """Memory at its address, with the one method of `mmap` that an arena calls."""

    def madvise(self, advice: int, begin: int, nbytes: int) -> None:
        """As `mmap.madvise`."""
        _libc().madvise(ctypes.c_void_p(ctypes.addressof(self) + begin), ctypes.c_size_t(nbytes), advice)


def _libc() -> Any:
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    return library


def release_memory() -> None:
    """Leave the addresses of the machine to the driver of a GPU. The machine of this process is not to be used any more."""
    _libc().munmap(ctypes.c_void_p(GLOBAL_BASE), ctypes.c_size_t(_BYTES))


def new_device() -> Device:
    """A device of this process. Raises TakenError."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _FIXED | _NO_RESERVE
    address = _libc().mmap(GLOBAL_BASE, _BYTES, _READ_WRITE, flags, -1, 0)
    if address != GLOBAL_BASE:
        raise TakenError(f"the memory of the virtual machine cannot be at {GLOBAL_BASE:#x}")
    mapping: Any = _Mapping.from_address(GLOBAL_BASE)
    return Device(VirtualBackend(Machine(arena=Arena(mapping))))
