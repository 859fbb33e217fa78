"""Memory of the virtual machine at its own addresses: one of the device is the same in the process, so the host's code reaches it.

The place is fixed. Something else of the process may lie there, as the system lays out each one anew.
"""

from __future__ import annotations

import ctypes
import mmap
from typing import Any, Final

from consan.backends.cpu.state.memory import GLOBAL_BASE

_BYTES: Final = 1 << 35
_READ_WRITE: Final = 3
_FIXED: Final = 0x100000  # MAP_FIXED_NOREPLACE
_NO_RESERVE: Final = 0x4000
_TAKEN: Final = (1 << 64) - 1  # MAP_FAILED


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


def memory_in_place() -> Any:
    """A mapping for an arena; None where the place is taken."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _FIXED | _NO_RESERVE
    address = _libc().mmap(GLOBAL_BASE, _BYTES, _READ_WRITE, flags, -1, 0)
    if address == GLOBAL_BASE:
        return _Mapping.from_address(GLOBAL_BASE)
    if address not in (None, _TAKEN):  # of a kernel that does not know the flag
        _unmap(address)
    return None


def release_memory() -> None:
    """Leave the place to others. The arena of it is not to be used any more."""
    _unmap(GLOBAL_BASE)


def _unmap(address: int) -> None:
    _libc().munmap(ctypes.c_void_p(address), ctypes.c_size_t(_BYTES))
