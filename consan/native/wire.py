"""Messages between the interposer and the server: a head, then its payload. `source/messages.h` has the other side."""

from __future__ import annotations

import enum
import socket
import struct
from typing import Final

from consan.dataclass import dataclass

MAGIC: Final = 0x6E61736E
LONGEST: Final = 1 << 31  # bytes of a payload
_HEAD: Final = struct.Struct("<IIQQQ")
_CALL: Final = struct.Struct("<64s12QQQQQ")
LAUNCH: Final = struct.Struct("<QQ")  # an entry of the table of launches: handle, count
SPENT: Final = struct.Struct("<QQ")  # behind the table: nanoseconds in the interposer, with requests and without
SHAPE: Final = struct.Struct("<10IQII")  # a launch: grid, block, cluster, bytes of shared memory; context; programmatic dependent; event
# In place of a stream: a node that is added to a graph, or changed; the default stream of a thread; a call for several devices.
NO_LAUNCH: Final = (1 << 64) - 1
OF_THREAD: Final = 2
OF_DEVICES: Final = (1 << 64) - 2
CHANGED_NODE: Final = (1 << 64) - 3


class MessageKind(enum.IntEnum):
    """The kinds of messages. The interposer sends those before ANSWER and from FOLLOW on, the server the others; NOTED has no answer."""

    HELLO = 1
    ORDERS = 2
    IMAGE = 3
    LOADED = 4
    REFUSED = 5
    UNLOADED = 6
    FOUND = 7
    COLLECT = 8
    INPUT = 9
    MADE = 10
    LAUNCH = 11
    LAUNCHED = 12
    ANSWER = 13
    CALL = 14
    MAP = 15
    TEXT = 16
    WAIT = 17
    PARAMETERS = 18
    FOLLOW = 19
    FOLLOWING = 20
    CALLED = 21
    TAKE = 22
    NOTED = 23


class Broken(Exception):  # noqa: N818 - a state of the connection
    """The other side has gone."""


class Malformed(Broken):
    """The other side sends what is no message, or none that is due."""


@dataclass(frozen=True)
class Message:
    """One message. What `a` and `b` are depends on the kind."""

    kind: MessageKind
    a: int = 0
    b: int = 0
    data: bytes = b""


def encoded(message: Message) -> bytes:
    """The bytes of a message."""
    return _HEAD.pack(MAGIC, message.kind, message.a, message.b, len(message.data)) + message.data


def send(connection: socket.socket, message: Message, file: int | None = None, *, before: bytes = b"") -> None:
    """Send a message, and an open file with it. `before`: messages that are sent first."""
    data = encoded(message)
    try:
        if file is None:
            connection.sendall(before + data)
        else:  # the file comes with the message's first byte
            connection.sendall(before)
            connection.sendall(data[socket.send_fds(connection, [data], [file]) :])
    except OSError as error:
        raise Broken(str(error)) from None


def receive(connection: socket.socket, *, at_most: int = LONGEST) -> Message:
    """Read a message with a payload of at most so many bytes."""
    magic, kind, a, b, length = _HEAD.unpack(_exactly(connection, _HEAD.size))
    if magic != MAGIC or length > at_most or kind not in MessageKind.__members__.values():
        raise Malformed("what is no message of consan")
    return Message(MessageKind(kind), a, b, _exactly(connection, length))


def _exactly(connection: socket.socket, length: int) -> bytes:
    """So many bytes. Memory is taken as they come: a length is only a claim."""
    data = bytearray()
    while len(data) < length:
        try:
            part = connection.recv(min(length - len(data), 1 << 20))
        except OSError as error:
            raise Broken(str(error)) from None
        if not part:
            raise Broken("the connection has ended")
        data += part
    return bytes(data)


def call(name: str, arguments: list[int], pointers: int, given: bytes, *, scratch: int, input_at: int, output: int) -> Message:
    """The order to call a function. Bit i of `pointers`: argument i is an offset into the scratch memory."""
    padded = [*arguments, *[0] * (12 - len(arguments))]
    return Message(MessageKind.CALL, data=_CALL.pack(name.encode(), *padded, pointers, scratch, input_at, output) + given)
