"""The GPU is opened beside the imports of a session: a thread initialises the driver and makes the context, which needs no interpreter.

Both take tenths of a second, and so do the imports. Nothing here decides anything: what fails is done again, and reported, where the device
is used (driver.py, cuda.py). This file imports little, so that the thread starts first.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

LIBRARIES: Final = ("libcuda.so.1", "libcuda.so", "/usr/lib/wsl/lib/libcuda.so.1")
_FIRST: Final = 0  # the ordinal of the device that a session takes


def library() -> ctypes.CDLL | None:
    """NVIDIA's driver; None: there is none, or only the stand-in over the virtual machine (consan/libcuda)."""
    return next(filter(None, map(_opened, LIBRARIES)), None)


def _opened(name: str) -> ctypes.CDLL | None:
    try:
        found = ctypes.CDLL(name)
    except OSError:
        return None
    return None if hasattr(found, "consan_serve") else found


@contextlib.contextmanager
def opened_in_background(device: str, *, unless: bool = False) -> Iterator[Callable[[], object]]:
    """Inside the block a thread opens the GPU, if `device` may be one. Gives what waits for it, before the device is used.

    `unless`: there is nothing to do beside it. The context is kept to the end of the block.
    """
    if device == "cpu" or unless:
        yield lambda: None
        return
    held: list[Callable[[], object]] = []
    thread = threading.Thread(target=lambda: held.extend(_held()), name="consan: opens the GPU", daemon=True)
    thread.start()
    try:
        yield thread.join
    finally:
        thread.join()
        for give_back in held:
            give_back()


def _held() -> Iterator[Callable[[], object]]:
    """Make the context of the first device, and keep it until what is given is called."""
    driver: Any = library()
    number, context = ctypes.c_int(), ctypes.c_void_p()
    if driver is None or driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(number), _FIRST):
        return
    if not driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), number):
        yield lambda: driver.cuDevicePrimaryCtxRelease_v2(number)
