"""The server of a native program's interposers: a socket that only this user can reach, and a thread for each process that connects."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import struct
import threading
import time
from pathlib import Path
from typing import Final

from consan._errors import EnvironmentFailure
from consan.native.build import INTERPOSER
from consan.native.client import Client, ProcessReport
from consan.native.images import Links
from consan.native.orders import Orders
from consan.native.python import frameworks
from consan.native.wire import Broken, MessageKind, receive
from consan.session.left_threads import STRAGGLERS, interrupt, join
from consan.session.planning.options import SessionOptions
from consan.temporary import RunFolder

_SOCKET: Final = "_CONSAN_SOCKET"  # internal: where the interposer connects
_PRELOAD: Final = "LD_PRELOAD"
_CREDENTIALS: Final = struct.Struct("iII")  # process, user, group
_GREETING: Final = 10.0  # seconds for the first message, and for a process's second connection
_MOST_GREETED: Final = 64  # connections whose first message has not come
_AGAIN: Final = 0.05  # seconds
INTERRUPTED: Final = 10.0  # seconds for the reports of processes whose checks are interrupted


class Server:
    """Serves the processes of one program. Use as a context."""

    def __init__(self, options: SessionOptions, *, delays: bool = False) -> None:
        self._options, self._delays = options, delays
        self._clients: list[Client] = []
        self.serving: dict[threading.Thread, socket.socket] = {}  # the conversations, by their threads
        self._orders: dict[int, socket.socket] = {}  # of processes whose requests have not connected yet
        self._failures: list[Exception] = []
        self._changed = threading.Condition()
        self._greeting = threading.Semaphore(_MOST_GREETED)
        self._closed = False
        self._links = Links()

    def __enter__(self) -> Server:
        library = INTERPOSER.data()
        try:
            with RunFolder.filled("native") as self._owned:
                self._folder = self._owned.path
                (self._folder / "interposer.so").write_bytes(library)
                self._links.kept = self._folder / "kept"
                self._links.kept.mkdir()
                self._listener = listening(self._folder / "socket")
        except OSError as error:  # also a name that is too long for a socket
            raise EnvironmentFailure(f"there is no folder for the socket of the program (TMPDIR): {error.strerror or error}") from None
        threading.Thread(target=self._accept, daemon=True, name="consan-native").start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed = True
        self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._listener.close()
        with self._changed:
            for connection in self._orders.values():
                connection.close()
        self._owned.remove()

    def environment(self) -> dict[str, str]:
        """The environment of the program."""
        mine = {
            _SOCKET: str(self._folder / "socket"),
            _PRELOAD: ":".join(filter(None, (str(self._folder / "interposer.so"), os.environ.get(_PRELOAD)))),
        }
        return {**os.environ, **frameworks.environment(self._folder / "kept"), **mine}

    def outcomes(self) -> tuple[list[ProcessReport], list[str]]:
        """The reports of all processes, and why they are incomplete. For after the program's end. Raises the error of a thread."""
        join(list(self.serving), STRAGGLERS)
        alive = self._interrupt()
        join(list(self.serving), INTERRUPTED)
        with self._changed:
            clients = list(self._clients)
        for failure in self._failures:
            raise failure
        running = [f"{alive} of the program's processes still ran when it ended: what they do is not in this report"] if alive else []
        return [outcome for client in clients for outcome in list(client.outcomes.left)], running

    def _interrupt(self) -> int:
        """End the conversations with processes that still run, and checks: what they have found is reported. How many there are."""
        left = {thread: connection for thread, connection in list(self.serving.items()) if thread.is_alive()}
        interrupt(left)
        for connection in left.values():
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        return len(left)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                if self._closed:
                    return
                time.sleep(_AGAIN)  # no file is left for now
                continue
            self._greeting.acquire()
            thread = threading.Thread(target=self._greet, args=(connection,), daemon=True)
            thread.start()

    def _greet(self, connection: socket.socket) -> None:
        """The first message says what a connection is for."""
        pid, user, _ = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
        try:
            connection.settimeout(_GREETING)
            first = receive(connection, at_most=0)
            connection.settimeout(None)
            if user != os.getuid() or first.kind not in (MessageKind.HELLO, MessageKind.ORDERS):
                raise Broken("a stranger")
        except Broken:
            connection.close()
            return
        finally:
            self._greeting.release()
        if first.kind is MessageKind.ORDERS:
            with self._changed:
                before, self._orders[pid] = self._orders.get(pid), connection
                self._changed.notify_all()
            if before is not None:
                before.close()
        else:
            self._serve(pid, connection, first.b)

    def _serve(self, pid: int, connection: socket.socket, table_bytes: int) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: pid in self._orders, _GREETING):
                connection.close()
                return
            orders = self._orders.pop(pid)
            client = Client(pid, connection, Orders(orders), self._options, self._links, delays=self._delays)
            self._clients.append(client)
            self.serving[threading.current_thread()] = connection
        try:
            with connection, orders:
                client.serve(table_bytes)
        except KeyboardInterrupt:  # the program has ended beside a check: its findings are kept
            pass
        except Exception as error:
            self._failures.append(error)


def listening(path: Path) -> socket.socket:
    """A socket that this user can reach."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(path))
        os.chmod(path, 0o600)
        listener.listen(64)
    except OSError:
        listener.close()
        shutil.rmtree(path.parent, ignore_errors=True)
        raise
    return listener
