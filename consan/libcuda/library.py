"""The library in the process of a Python program: its calls go to the driver of the innermost session.

It is loaded once and stays. A program that asks the loader for libcuda.so.1 later is given this one, also where the machine has a driver.
Without a session a call returns CUDA_ERROR_DEINITIALIZED.
"""

from __future__ import annotations

import atexit
import ctypes
from dataclasses import dataclass
from typing import Any, Final

import consan.libcuda.device_calls
import consan.libcuda.launch_calls
import consan.libcuda.memory_calls
import consan.libcuda.module_calls
import consan.libcuda.stream_calls
import consan.libcuda.tensormap_calls  # noqa: F401 - the files fill the table of calls
from consan.libcuda import calls
from consan.libcuda.build import DRIVER
from consan.libcuda.driver import StandInDriver

_WORDS: Final = 16
_SERVER: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint64))


class OwnMemory:
    """The memory of this process."""

    def read(self, address: int, nbytes: int) -> bytes:
        """Bytes of it."""
        return ctypes.string_at(address, nbytes)

    def write(self, address: int, data: bytes) -> None:
        """Change bytes of it."""
        ctypes.memmove(address, data, len(data))

    def string(self, address: int) -> bytes:
        """The bytes up to a zero."""
        return ctypes.string_at(address)


@dataclass
class _Loaded:
    """The library, and the drivers of the sessions that are open, the innermost last."""

    library: Any
    server: Any
    drivers: list[StandInDriver]


_loaded: list[_Loaded] = []


def _answer(name: bytes, words: Any) -> int:
    drivers = _loaded[0].drivers
    return drivers[-1].call(name.decode(), words[:_WORDS]) if drivers else calls.DEINITIALIZED


def load() -> None:
    """Put the library in front. Raises EnvironmentFailure."""
    if not _loaded:
        server = _SERVER(_answer)
        _loaded.append(_Loaded(DRIVER.load(), server, []))
        _loaded[0].library.consan_serve(server)
        atexit.register(_loaded[0].library.consan_serve, None)  # the interpreter cannot be called once it ends


def enter(session: Any) -> None:
    """Calls go to a driver of this session from now on. Sessions with one device share its memory. Raises EnvironmentFailure."""
    load()
    _loaded[0].drivers.append(StandInDriver(session, OwnMemory()))


def leave() -> None:
    """Calls go to the session around this one."""
    if _loaded and _loaded[0].drivers:
        _loaded[0].drivers.pop()
