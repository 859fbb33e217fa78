"""The library in the process of a Python program: its calls go to the driver of the innermost session.

It is loaded once and stays. A program that asks the loader for libcuda.so.1 later is given this one, also where the machine has a driver.
Without a session a call returns CUDA_ERROR_DEINITIALIZED.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from consan.dataclass import dataclass
from consan.libcuda import calls, cudart_calls, runtime_calls  # noqa: F401 - it fills the table of calls
from consan.libcuda.build import DRIVER
from consan.libcuda.driver import FrameworkMemory, StandInDriver
from consan.libcuda.module_calls import digest
from consan.reports.source.variables import Argument
from consan.session.comparing.launch_memory import Memory

_WORDS: Final = 16
_FUNCTION: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_SERVER: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint64))


class OwnMemory:
    """The memory of this process."""

    is_own: Final = True

    def read(self, address: int, nbytes: int) -> bytes:
        """Bytes of it."""
        return ctypes.string_at(address, nbytes)

    def write(self, address: int, data: bytes) -> None:
        """Change bytes of it."""
        ctypes.memmove(address, data, len(data))

    def string(self, address: int) -> bytes:
        """The bytes up to a zero."""
        return ctypes.string_at(address)

    def lay(self, address: int, nbytes: int) -> bool:
        """Not done: the virtual machine's memory is this process's."""
        del address, nbytes
        return False

    def run(self, number: int, function: int, data: int, shared: Sequence[tuple[int, int]]) -> tuple[bytes, bool]:
        """Run a function of the program. Its accesses and locks are not seen."""
        del number, shared
        _FUNCTION(function)(data)
        return b"", False


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
    """Calls go to the driver of this session from now on. Raises EnvironmentFailure."""
    load()
    drivers = _loaded[0].drivers
    known = bool(drivers) and drivers[-1].session is session
    drivers.append(drivers[-1] if known else StandInDriver(session, OwnMemory()))


def driver() -> StandInDriver:
    """The driver of the innermost session."""
    return _loaded[0].drivers[-1]


@contextlib.contextmanager
def launching(buffers: Iterable[Argument], copies: Memory | None = None, *, cooperative: bool = False) -> Iterator[None]:
    """Inside the block the framework launches with these buffers: reports name memory by them. `copies`: those of arrays."""
    inner = driver()
    inner.of_framework = FrameworkMemory(tuple(buffers), copies, cooperative)
    try:
        yield
    finally:
        inner.of_framework = FrameworkMemory()


def keep_ptx(folder: Path) -> None:
    """Machine code is taken for the PTX of the same kernels in a folder, in the innermost session."""
    driver().kept_ptx.folders.append(folder)


def keep_ptx_of(code: bytes, text: str) -> None:
    """This machine code is taken for its PTX, in the innermost session."""
    driver().kept_ptx.texts[digest(code)] = text


def file() -> str:
    """The path of the library, for programs that link it under another name. Raises EnvironmentFailure."""
    load()
    return str(_loaded[0].library._name)


def leave() -> None:
    """Calls go to the session around this one."""
    if _loaded and _loaded[0].drivers:
        _loaded[0].drivers.pop()
