"""Threads that are left when a program has ended: launches of theirs that the virtual machine still makes are interrupted, as by Ctrl-C.

The end of its process would end them. They hold the device, which the report needs.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
import time
from collections.abc import Iterable
from typing import Final

OF_CONSAN: Final = "consan-"  # the names of consan's own threads
STRAGGLERS: Final = 2.0  # seconds that threads of the program have to end after it


def join(threads: Iterable[threading.Thread], seconds: float) -> None:
    """Wait for threads, so many seconds for all of them."""
    until = time.monotonic() + seconds
    for each in threads:
        each.join(max(0.0, until - time.monotonic()))


def interrupt(threads: Iterable[threading.Thread]) -> None:
    """Raise KeyboardInterrupt in threads, each once it executes Python."""
    for each in threads:
        if each.ident is not None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(each.ident), ctypes.py_object(KeyboardInterrupt))


def end_launches(lock: contextlib.AbstractContextManager[object]) -> None:
    """Interrupt the daemon threads of the program, if one of them has the device for long."""
    waits = threading.Thread(target=_take, args=(lock,), daemon=True, name=f"{OF_CONSAN}end")
    waits.start()
    waits.join(STRAGGLERS)
    if waits.is_alive():
        interrupt(each for each in threading.enumerate() if each.daemon and not each.name.startswith(OF_CONSAN))
        waits.join(STRAGGLERS)


def _take(lock: contextlib.AbstractContextManager[object]) -> None:
    with lock:
        pass
