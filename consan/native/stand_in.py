"""A native program on a machine without a GPU: consan's libcuda.so.1 and libcudart.so stand where the loader looks for NVIDIA's.

Their calls come through a socket, a connection for each thread of the program. Each of its processes has a session of its own.

A program that holds a static copy of the CUDA runtime is led to consan's (libcuda/source/static_copy.h), which is preloaded for that.

Not handled: such a program without its symbol table (its first call fails, and a sentence says what to do).
"""

from __future__ import annotations

import os
import socket
import struct
import threading
from typing import Final

from consan._errors import EnvironmentFailure
from consan.dataclass import dataclass
from consan.libcuda.build import DRIVER, RUNTIMES
from consan.libcuda.driver import StandInDriver
from consan.libcuda.remote import SocketMemory, serve
from consan.native.client import ProcessReport
from consan.native.server import listening
from consan.session.left_threads import STRAGGLERS, interrupt, join
from consan.session.planning.options import SessionOptions
from consan.session.session import Session
from consan.session.session_options import open_session
from consan.temporary import RunFolder

_SOCKET: Final = "_CONSAN_DRIVER"  # internal: where the libraries connect
_PATH, _PRELOAD = "LD_LIBRARY_PATH", "LD_PRELOAD"
_PRELOADED: Final = "libcuda.so.1", "libcudart.so.13"  # in front of the C library's locks; in the place of copies of the runtime
_CREDENTIALS: Final = struct.Struct("iII")  # process, user, group


@dataclass
class _Process:
    """A process of the program."""

    pid: int
    session: Session
    driver: StandInDriver


class StandInServer:
    """Serves the processes of one program. Use as a context."""

    def __init__(self, options: SessionOptions) -> None:
        self._options = options
        self._processes: dict[int, _Process] = {}
        self._threads: list[threading.Thread] = []
        self._failures: list[Exception] = []
        self._lock = threading.Lock()

    def __enter__(self) -> StandInServer:
        libraries = {"libcuda.so.1": DRIVER.data(), **{name: library.data() for name, library in RUNTIMES.items()}}
        try:
            with RunFolder.filled("native") as self._owned:
                self._folder = self._owned.path
                for name, data in libraries.items():
                    (self._folder / name).write_bytes(data)
                self._listener = listening(self._folder / "socket")
        except OSError as error:
            raise EnvironmentFailure(f"there is no folder for the libraries of the program (TMPDIR): {error.strerror or error}") from None
        threading.Thread(target=self._accept, daemon=True, name="consan-native").start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._listener.close()
        self._owned.remove()

    def environment(self) -> dict[str, str]:
        """The environment of the program."""
        path = ":".join(filter(None, (str(self._folder), os.environ.get(_PATH))))
        preloaded = ":".join(filter(None, (*(str(self._folder / name) for name in _PRELOADED), os.environ.get(_PRELOAD))))
        return {**os.environ, _SOCKET: str(self._folder / "socket"), _PATH: path, _PRELOAD: preloaded}

    def outcomes(self) -> tuple[list[ProcessReport], list[str]]:
        """The reports of all processes, and why they are incomplete. For after the program's end. Raises the error of a thread."""
        join(self._threads, STRAGGLERS)
        interrupt(thread for thread in self._threads if thread.is_alive())
        join(self._threads, STRAGGLERS)
        alive = any(thread.is_alive() for thread in self._threads)
        for failure in self._failures:
            raise failure
        found = []
        for process in self._processes.values():
            report = process.session.report()
            found.append(ProcessReport(process.pid, report, frozenset(process.session.places(report))))
            process.session.close()
        return found, ["a process of the program still ran when it ended: what it does is not in this report"] if alive else []

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        pid, user, _ = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
        with connection:
            try:
                if user == os.getuid():
                    serve(self._process(pid, connection).driver, connection)
            except KeyboardInterrupt:  # its launch did not end with the program
                pass
            except Exception as error:
                self._failures.append(error)

    def _process(self, pid: int, connection: socket.socket) -> _Process:
        with self._lock:
            if pid not in self._processes:
                session = open_session(self._options)
                session.alone = False  # a program may launch on other streams while a kernel runs
                session.unoptimised.meanwhile = lambda: "the program has other processes" if len(self._processes) > 1 else ""
                self._processes[pid] = _Process(pid, session, StandInDriver(session, SocketMemory(connection), needs_runtime=True))
            return self._processes[pid]
