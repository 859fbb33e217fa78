"""SIGTERM ends a command as Ctrl-C does, with a report of what was found: `timeout` and batch systems send it.

A second SIGTERM ends the process at once, and so does a SIGTERM to a process that the program has forked. A child process that has a report
to write gets a handler of its own.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Final


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """Inside the block SIGTERM raises KeyboardInterrupt, unless it already has a handler."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        _restore_default()


def _interrupt(number: int, frame: FrameType | None) -> None:
    _restore_default()
    raise KeyboardInterrupt


def _restore_default() -> None:
    if signal.getsignal(signal.SIGTERM) is _interrupt:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


# -- a child that has a report to write ---------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """SIGTERM is ignored inside the block, in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before if before is not None else signal.SIG_DFL)


def before_termination(call: Callable[[], None]) -> None:
    """Call it when SIGTERM ends the process, unless the program has its own handler."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return
    begun = threading.Event()

    def handler(number: int, frame: FrameType | None) -> None:
        begun.set()
        call()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    signal.signal(signal.SIGTERM, handler)
    _insist(lambda: not begun.wait(_AGAIN) and signal.getsignal(signal.SIGTERM) is handler)


_AGAIN: Final = 0.1  # seconds


def _insist(waits: Callable[[], bool]) -> None:
    """Repeat a SIGTERM while its Python handler waits to run.

    CPython runs handlers in the main thread only. A signal that comes just before the main thread blocks (a worker of a pool does, at the
    lock of its queue), or that another thread receives, does not interrupt it.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    if before != -1:  # an event loop of the program: it wakes up by itself
        signal.set_wakeup_fd(before)
        return
    os.register_at_fork(after_in_child=lambda: drop_wakeup(writer))
    threading.Thread(target=_repeat, args=(reader, waits), daemon=True, name="consan-termination").start()


def drop_wakeup(writer: int) -> None:
    """In a forked process, which has no thread that reads: its signals must not wake the parent's."""
    current = signal.set_wakeup_fd(-1)
    if current != writer:
        signal.set_wakeup_fd(current)


def _repeat(reader: int, waits: Callable[[], bool]) -> None:
    while signal.SIGTERM not in os.read(reader, 64):
        pass
    main = threading.main_thread().ident
    while main is not None and waits():
        signal.pthread_kill(main, signal.SIGTERM)


# -- forks --------------------------------------------------------------------------------------------------------------------------------
#
# In a forked process CPython drops signals that arrive before its fork hooks run. A SIGTERM that the parent sends at once would be lost,
# although without a handler it would end the process. So SIGTERM is blocked until the handler is removed.

_held = threading.local()


def _hold() -> None:
    _held.mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})


def _release() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _held.mask)


def _release_in_child() -> None:
    _restore_default()
    _release()


os.register_at_fork(before=_hold, after_in_parent=_release, after_in_child=_release_in_child)
