"""SIGTERM ends a command as Ctrl-C does, with a report of what was found: `timeout` and batch systems send it.

The second one ends the process as ever, and so does one that a process gets which the program has forked.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM raises KeyboardInterrupt, unless somebody else has said already what it does."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        _as_ever()


def _interrupt(number: int, frame: FrameType | None) -> None:
    _as_ever()
    raise KeyboardInterrupt


def _as_ever() -> None:
    if signal.getsignal(signal.SIGTERM) is _interrupt:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


# -- forks --------------------------------------------------------------------------------------------------------------------------------
#
# CPython forgets, in a forked process, the signals that came before its hooks run: one that the parent sends at once would be lost, where
# without a handler it ends the process. So it has to wait until the handler is gone.

_held = threading.local()


def _hold() -> None:
    _held.mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})


def _release() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _held.mask)


def _release_in_child() -> None:
    _as_ever()
    _release()


os.register_at_fork(before=_hold, after_in_parent=_release, after_in_child=_release_in_child)
