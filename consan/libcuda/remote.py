"""The calls of a program in a process of its own, through a socket (source/remote.h has the other side).

A call is its name's length, the name, and 16 words. Until the answer, questions about the program's memory may go the other way.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterable, Sequence
from typing import ClassVar, Final

from consan.dataclass import dataclass
from consan.libcuda import cudart_calls  # noqa: F401 - it fills the table of calls
from consan.libcuda.driver import StandInDriver
from consan.libcuda.memory_calls import CLOSED, TOUCHED, in_flight

_WORDS: Final = struct.Struct("<16Q")
_LENGTH: Final = struct.Struct("<Q")
_QUESTION: Final = struct.Struct("<IiQQ")  # what, the code of an answer, an address, bytes
_ANSWER, _READ, _WRITE, _STRING, _WATCH, _RUN, _LAY = range(7)
_RAN: Final = struct.Struct("<2Q")  # how often a function has given a lock away, and how many of its accesses follow
_LONGEST: Final = 1 << 10  # of a call's name


class Gone(Exception):  # noqa: N818 - a state of the connection
    """The program has closed its end."""


@dataclass(frozen=True)
class SocketMemory:
    """The memory of the program, as the thread reaches it that waits for an answer."""

    connection: socket.socket
    is_own: ClassVar[bool] = False

    def read(self, address: int, nbytes: int) -> bytes:
        """Bytes of it."""
        self.connection.sendall(_QUESTION.pack(_READ, 0, address, nbytes))
        return received(self.connection, nbytes)

    def write(self, address: int, data: bytes) -> None:
        """Change bytes of it."""
        self.connection.sendall(_QUESTION.pack(_WRITE, 0, address, len(data)) + data)

    def string(self, address: int) -> bytes:
        """The bytes up to a zero."""
        self.connection.sendall(_QUESTION.pack(_STRING, 0, address, 0))
        return received(self.connection, *_LENGTH.unpack(received(self.connection, _LENGTH.size)))

    def lay(self, address: int, nbytes: int) -> bool:
        """Lay pages of the program there, of zeros. False: something of it lies there."""
        self.connection.sendall(_QUESTION.pack(_LAY, 0, address, nbytes))
        return any(received(self.connection, _LENGTH.size))

    def run(self, number: int, function: int, data: int, shared: Sequence[tuple[int, int]]) -> tuple[bytes, bool]:
        """Let the thread run a function. All that it touches of shared memory counts, not only what work may still use."""
        watched = _watched((begin, end - begin, CLOSED) for begin, end in shared)
        self.connection.sendall(watched + _QUESTION.pack(_RUN, number, function, data))
        gave, count = _RAN.unpack(received(self.connection, _RAN.size))
        return received(self.connection, count * TOUCHED.size), bool(gave)


def serve(driver: StandInDriver, connection: socket.socket) -> None:
    """Answer the calls of a thread of the program, until it ends."""
    memory = SocketMemory(connection)
    with contextlib.suppress(Gone, OSError):
        while True:
            (length,) = _LENGTH.unpack(received(connection, _LENGTH.size))
            if length > _LONGEST:
                return
            name = received(connection, length).decode(errors="replace")
            code = driver.call(name, _WORDS.unpack(received(connection, _WORDS.size)), memory)
            connection.sendall(_watched(in_flight(driver)) + _QUESTION.pack(_ANSWER, code, 0, 0))


def _watched(ranges: Iterable[tuple[int, int, int]]) -> bytes:
    return b"".join(_QUESTION.pack(_WATCH, how, begin, nbytes) for begin, nbytes, how in ranges)


def received(connection: socket.socket, nbytes: int) -> bytes:
    """So many bytes. Raises Gone."""
    data = bytearray()
    while len(data) < nbytes:
        part = connection.recv(min(nbytes - len(data), 1 << 20))
        if not part:
            raise Gone
        data += part
    return bytes(data)
