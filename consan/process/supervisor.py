"""The process that the user started: it waits for the program, which runs in a fork of it, and speaks where the program's process did not.

The fork is made before anything heavy is imported and before the device is opened. The program has the terminal, the standard streams
and the process group that it would have without consan. A program that ends in Python reports by itself, and its process leaves a file
that says so. Without this file (`os._exit`, `exec`, a signal, a crash) the supervisor reports what the processes of the run have stored.

Signals that come to the supervisor alone are sent on. One that the whole process group gets, such as Ctrl-C, has reached the program: its
interpreter writes the number of each signal into a pipe. If the supervisor is killed, the program gets SIGTERM.

Not handled: a program that sets a wake-up file of its own (an event loop) and shares a process group with the supervisor gets a signal that
`kill` sends to the group twice.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from consan.dataclass import dataclass
from consan.process.termination import drop_wakeup, terminable

_SENT_ON: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_WATCHED: Final = (*_SENT_ON, signal.SIGCHLD)
_SPOKE: Final = "spoke"  # the name of the file
_NO_STATUS: Final = "-"  # in the file: it raised an exception, whose status is that of the process
_REACHED: Final = 0.05  # seconds in which a signal of the process group reaches the program
_PR_SET_PDEATHSIG: Final = 1
_BEYOND: Final = 200  # a program that closes the first files and opens others must not get the pipe's number


@dataclass(frozen=True)
class Ended:
    """How the program's process ended. `spoke`: it has reported by itself."""

    pid: int
    status: int  # that of a shell: 128 and the number of a signal
    by: str  # the name of the signal, if one has ended it
    spoke: bool


@dataclass
class Speaking:
    """In the program's process: the status with which it means to end."""

    status: int = 0


def can_supervise() -> bool:
    """Whether this system has what it takes, and no thread would be lost in the fork."""
    return hasattr(signal, "sigtimedwait") and threading.active_count() == 1 and threading.current_thread() is threading.main_thread()


def supervise(folder: Path) -> Ended | None:
    """Fork. In the program's process it returns None at once; in the supervisor how that process ended."""
    sys.stdout.flush()
    sys.stderr.flush()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
    reader, writer = os.pipe()
    supervisor = os.getpid()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _tell_signals(writer)
        _end_with(supervisor)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return None
    os.close(writer)
    try:
        return _ended(child, _waited(child, reader), folder)
    finally:
        os.close(reader)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _waited(child: int, reader: int) -> int:
    """Wait for the process, and send signals on to it. Returns its wait status."""
    while True:
        came = signal.sigwaitinfo(_WATCHED)
        if came.si_signo != signal.SIGCHLD:
            if not _has_reached(came, reader):
                os.kill(child, came.si_signo)
            continue
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return status


def _has_reached(came: Any, reader: int) -> bool:
    """Whether the program got the signal, too. The kernel sends those of a terminal to the process group."""
    if came.si_code > 0:
        return True
    while select.select([reader], [], [], _REACHED)[0]:
        numbers = os.read(reader, 1 << 16)
        if came.si_signo in numbers:
            return True
        if not numbers:  # the program has become another one
            return False
    return False


def _ended(pid: int, status: int, folder: Path) -> Ended:
    code = os.waitstatus_to_exitcode(status)
    own = _read(folder / _SPOKE)
    if own and code == 0:  # a function at exit has called os._exit
        code = own
    return Ended(pid, code if code >= 0 else 128 - code, _name(-code) if code < 0 else "", spoke=own is not None)


def _read(path: Path) -> int | None:
    try:
        return int(path.read_text().replace(_NO_STATUS, "0"))
    except (OSError, ValueError):
        return None


def _name(number: int) -> str:
    return signal.Signals(number).name if number in signal.Signals.__members__.values() else f"signal {number}"


# -- the program's process -----------------------------------------------------------------------------------------------------------------


def _tell_signals(writer: int) -> None:
    """Let the interpreter write the number of each signal that it handles into the pipe."""
    import fcntl  # late: not every system has it

    high = fcntl.fcntl(writer, fcntl.F_DUPFD_CLOEXEC, _BEYOND)
    os.close(writer)
    os.set_blocking(high, False)
    signal.set_wakeup_fd(high, warn_on_full_buffer=False)
    os.register_at_fork(after_in_child=lambda: drop_wakeup(high))


def _end_with(supervisor: int) -> None:
    """Let SIGTERM end this process when the supervisor is killed."""
    import ctypes  # late: the supervisor needs none

    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
    if os.getppid() != supervisor:
        os.kill(os.getpid(), signal.SIGTERM)


@contextlib.contextmanager
def speaking(folder: Path) -> Iterator[Speaking]:
    """Inside the block the program runs and its report is printed. Its end is noted, unless something has interrupted the report."""
    own, process = Speaking(), os.getpid()
    with terminable():
        try:
            yield own
        except Exception:
            _note(folder, _NO_STATUS)
            raise
        if os.getpid() == process:  # else a child that the program has forked came back
            _note(folder, str(own.status))


def _note(folder: Path, text: str) -> None:
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    with contextlib.suppress(OSError):
        (folder / _SPOKE).write_text(text)
