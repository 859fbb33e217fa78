"""Hostile processes at the socket: a client that sends what it likes and answers orders as it likes, and a server toward a program.

The server must end with a report that can be written, and say in one line what it could not check. The program must run to its end.
"""

from __future__ import annotations

import contextlib
import os
import random
import socket
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from native_case import FATBINS, STATUS, Case, environment, options

from consan.native.build import INTERPOSER
from consan.native.client import Client
from consan.native.images import Links
from consan.native.orders import Orders
from consan.native.server import Server
from consan.native.wire import LONGEST, MAGIC, NO_LAUNCH, SHAPE, MessageKind
from consan.options import AUTO, RECORD
from consan.reports.formats.json_format import to_json
from consan.reports.model import CLEAN, INCOMPLETE, VIOLATIONS
from consan.toolchain.host_library import C, HostLibrary

pytestmark = pytest.mark.skipif(C.compiler() is None, reason="no C compiler")
HEAD = struct.Struct("<IIQQQ")
CALL = struct.Struct("<64s12QQQQQ")
ATTRIBUTES = {16: 132, 75: 9, 76: 0, 81: 233_472, 97: 232_448}
REQUESTS = [kind for kind in MessageKind if kind < MessageKind.LAUNCHED or kind >= MessageKind.FOLLOW]
TABLE = 1 << 18


def message(kind: int, a: int = 0, b: int = 0, data: bytes = b"", *, length: int | None = None, magic: int = MAGIC) -> bytes:
    return HEAD.pack(magic, kind, a, b, len(data) if length is None else length) + data


def exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size and (part := connection.recv(size - len(data))):
        data += part
    return data


# -- a hostile client -----------------------------------------------------------------------------------------------------------------


class HostileClient:
    """A process that opens a connection as it should, and goes on as its seed says."""

    def __init__(self, seed: int, images: list[bytes]) -> None:
        self.chance, self.images = random.Random(seed), images
        self.lies = self.chance.choice([0.0, 0.0, 0.02, 0.2])  # how often an order is answered wrongly
        self.launching = False  # whether a recorded launch is due to be said to be made

    def obey(self, connection: socket.socket) -> None:
        """Answer orders: device memory is noise, or zero."""
        chance = random.Random(self.chance.random())
        with connection, contextlib.suppress(OSError):  # the server closes the connection
            while len(head := exactly(connection, HEAD.size)) == HEAD.size:
                _, kind, a, _, length = HEAD.unpack(head)
                answer = self.answer(kind, a, exactly(connection, length), chance)
                connection.sendall(self.lie(chance) if chance.random() < self.lies else answer)

    def answer(self, kind: int, size: int, data: bytes, chance: random.Random) -> bytes:
        """What an honest process might say."""
        if kind != MessageKind.CALL:
            return message(MessageKind.ANSWER, 1 << 20, data=b"text" if kind == MessageKind.TEXT else b"")
        name, *arguments, _, _, _, output = CALL.unpack_from(data)
        if name.startswith(b"cuMemcpyDtoH") and chance.random() < 0.5:
            return message(MessageKind.ANSWER, data=chance.randbytes(output))
        if name.startswith(b"cuModuleGetGlobal") and chance.random() < 0.3:
            return message(MessageKind.ANSWER, 500, data=bytes(output))
        number = ATTRIBUTES.get(arguments[1], 1) if name.startswith(b"cuDeviceGetAttribute") else 1 << 30
        return message(MessageKind.ANSWER, data=number.to_bytes(8, "little")[:output].ljust(output, b"\0"))

    def lie(self, chance: random.Random) -> bytes:
        """A wrong answer."""
        lies = [
            message(MessageKind.ANSWER, chance.choice([1, 2, 201, 700, 999, 1 << 40]), data=chance.randbytes(chance.randrange(40))),
            message(MessageKind.ANSWER),
            message(MessageKind.IMAGE, data=b"?"),
            message(MessageKind.ANSWER, magic=1),
            message(MessageKind.ANSWER, length=LONGEST + 1),
        ]
        return chance.choice(lies)

    def request(self) -> bytes:
        """A message: mostly one that may be sent, with much wrong in it."""
        chance = self.chance
        if self.launching and chance.random() < 0.9:
            return message(MessageKind.LAUNCHED, chance.choice([0, 0, 0, 1, 700]))
        if chance.random() < 0.6:  # as a process that has something checked
            grid = chance.choice([(4, 1, 1), (4, 1, 1), (0, 1, 1), (1 << 31, 1 << 16, 1 << 16), (3, 2, 1)])
            cluster, context = chance.choice([(1, 1, 1), (2, 1, 1), (0, 0, 0)]), chance.choice([0, 0, 0, 7])
            shape = SHAPE.pack(*grid, chance.choice([256, 33, 1 << 20]), 1, 1, *cluster, 0, context, *chance.choices([0, 1, 1 << 31], k=2))
            some = [(MessageKind.IMAGE, 0, self.images[0]), (MessageKind.LOADED, 0, bytes(16)), (MessageKind.COLLECT, 0, b"")]
            some += [(MessageKind.FOUND, 5, b"sums"), (MessageKind.LAUNCH, chance.choice([5, 5, 6]), shape)] * 2
            kind, number, data = chance.choice(some)
            others = {MessageKind.IMAGE: 1, MessageKind.LAUNCH: chance.choice([0, 0, 0, 7, NO_LAUNCH])}  # as a library; the stream
            return message(kind, number, others.get(kind, 0), data)
        number = chance.choice([0, 0, 1, 2, 1 << 20, chance.getrandbits(64)])
        data = chance.choice([b"", chance.randbytes(chance.randrange(64)), chance.choice(self.images), self.spoilt()])
        if chance.random() < 0.9:
            return message(chance.choice(REQUESTS[2:]), number, chance.choice([0, 1, number]), data)
        return message(
            chance.randrange(20), number, length=chance.choice([None, 1, 1 << 40, (1 << 64) - 1]), magic=chance.choice([MAGIC, 0])
        )

    def spoilt(self) -> bytes:
        """An image with a few bytes changed, or cut off."""
        image = bytearray(self.chance.choice(self.images))
        for _ in range(self.chance.randrange(1, 5)):
            image[self.chance.randrange(len(image))] = self.chance.randrange(256)
        return bytes(image[: self.chance.choice([len(image), self.chance.randrange(len(image))])])

    def talk(self, requests: socket.socket, rounds: int) -> None:
        """Send requests, and wait for the answers as long as there are any."""
        requests.settimeout(20)
        request = bytes(HEAD.size)
        with requests:
            try:
                for _ in range(rounds):
                    if HEAD.unpack_from(request)[1] != MessageKind.NOTED:
                        answer = exactly(requests, HEAD.size)
                        if len(answer) < HEAD.size:
                            return
                        exactly(requests, HEAD.unpack(answer)[-1])
                        self.launching = HEAD.unpack(answer)[3] == 1 and HEAD.unpack_from(request)[1] == MessageKind.LAUNCH
                    request = self.request()
                    requests.sendall(request)
                    if HEAD.unpack_from(request)[-1] > len(request) - HEAD.size:
                        requests.shutdown(socket.SHUT_WR)  # the rest will not come
            except OSError:
                pass


def check_hostile_client(seed: int, images: list[bytes], rounds: int) -> Client:
    """Serve one, and hold its reports against what a report must be."""
    hostile = HostileClient(seed, images)
    (requests, own), (orders, obeying) = socket.socketpair(), socket.socketpair()
    asked = options(engine=(AUTO, RECORD)[seed % 2], timeout=0.3)
    client = Client(7, requests, Orders(orders), asked, Links(), delays=False)
    failures: list[BaseException] = []

    def serve() -> None:
        try:
            with requests, orders:
                client.serve(TABLE)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=serve), threading.Thread(target=hostile.obey, args=(obeying,))]
    for thread in threads:
        thread.start()
    hostile.talk(own, rounds)
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads)
    assert not failures, f"seed {seed}: {failures[0]!r}"
    for outcome in client.outcomes.left:
        assert to_json(outcome.report)
        assert outcome.report.verdict in (CLEAN, INCOMPLETE, VIOLATIONS)
        assert not any("\n" in reason for reason in outcome.report.incomplete), outcome.report.incomplete
    return client


def images_of(case: Case) -> list[bytes]:
    return [Path(case.image("ptx")).read_bytes(), *(path.read_bytes() for path in sorted(FATBINS.glob("*.fatbin")))]


def test_a_hostile_client_does_not_end_the_server(case: Case) -> None:
    for seed in range(12):
        check_hostile_client(seed, images_of(case), 25)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 400, 50))
def test_many_hostile_clients(first: int, case: Case) -> None:
    for seed in range(first + 1000, first + 1050):
        check_hostile_client(seed, images_of(case), 60)


def test_what_is_no_message_is_told_in_the_report(case: Case) -> None:
    (requests, own), (orders, obeying) = socket.socketpair(), socket.socketpair()
    client = Client(7, requests, Orders(orders), options(), Links(), delays=False)
    obeying.sendall(message(MessageKind.ANSWER, 1 << 20))
    own.sendall(message(MessageKind.ORDERS))
    with requests, own, orders, obeying:
        client.serve(TABLE)
    (outcome,) = client.outcomes.left
    assert outcome.report.verdict == INCOMPLETE
    assert "process 7 sent what is no request: what it did from then on was not checked" in outcome.report.incomplete


def test_connections_that_say_nothing_are_not_in_the_way(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """More of them than the server greets at a time."""
    monkeypatch.setattr("consan.native.server._GREETING", 0.2)
    with environment(case.environment), Server(options()) as server:
        strangers = [socket.socket(socket.AF_UNIX) for _ in range(100)]
        threads = [threading.Thread(target=each.connect, args=(server.environment()["_CONSAN_SOCKET"],)) for each in strangers]
        for thread in threads:
            thread.start()
        program = [case.folder / "program", "asked", "cuModuleLoadData", case.image("ptx")]
        status = subprocess.run(program, env=server.environment(), timeout=60, check=False).returncode
        (outcome,), _ = server.outcomes()
        for thread, each in zip(threads, strangers, strict=True):
            thread.join(10)
            each.close()
    assert (status, outcome.report.verdict) == (STATUS, VIOLATIONS)


# -- a hostile server -----------------------------------------------------------------------------------------------------------------

GONE = "consan: error: the consan process has gone; kernels loaded from now on are not checked\n"
STRANGE = "consan: error: what listens at the socket is no consan process; kernels are not checked\n"
NO_CODE = "consan: error: the consan process has sent what is no machine code; a module is not checked\n"


def elf(**fields: int) -> bytes:
    """The head of an ELF file with some fields set."""
    names = {"phoff": (32, 8), "shoff": (40, 8), "phentsize": (54, 2), "phnum": (56, 2), "shentsize": (58, 2), "shnum": (60, 2)}
    head = bytearray(b"\x7fELF\x02\x01\x01".ljust(64, b"\0"))
    for name, value in fields.items():
        at, size = names[name]
        head[at : at + size] = value.to_bytes(size, "little")
    return bytes(head)


def section(offset: int, size: int) -> bytes:
    return struct.pack("<IIQQQQIIQQ", 0, 1, 0, 0, offset, size, 0, 0, 0, 0)


# Answers to the request for an image, and what the program is told on its standard error.
IMAGES = {
    "nothing": (message(MessageKind.ANSWER), ""),
    "text": (message(MessageKind.ANSWER, data=b".version 9.0"), NO_CODE),
    "a head alone": (message(MessageKind.ANSWER, data=elf()), NO_CODE),
    "sections beyond the end": (message(MessageKind.ANSWER, data=elf(shoff=64, shentsize=64, shnum=9)), NO_CODE),
    "a far table": (message(MessageKind.ANSWER, data=elf(shoff=(1 << 64) - 64, shentsize=64, shnum=1)), NO_CODE),
    "a section beyond": (message(MessageKind.ANSWER, data=elf(shoff=64, shentsize=64, shnum=1) + section(0, 1 << 30)), NO_CODE),
    "segments beyond": (message(MessageKind.ANSWER, data=elf(phoff=64, phentsize=56, phnum=60_000)), NO_CODE),
    "another kind": (message(MessageKind.CALL, data=b"x"), GONE),
    "too long": (message(MessageKind.ANSWER, length=LONGEST + 1), GONE),
    "cut off": (message(MessageKind.ANSWER, length=1000), GONE),
    "no magic": (message(MessageKind.ANSWER, magic=7), GONE),
    "the end": (b"", GONE),
}


def order(
    name: bytes, *, pointers: int = 0, scratch: int = 0, input_at: int = 0, output: int = 0, data: bytes = b"", arguments: int = 0
) -> bytes:
    return message(MessageKind.CALL, data=CALL.pack(name, *[arguments] * 12, pointers, scratch, input_at, output) + data)


# Orders, and whether the program still answers behind them.
ORDERS = {
    "a function of the C library": (order(b"abort"), True),
    "no function": (order(b"cu" + b"x" * 62), True),
    "a text that the driver has not named": (message(MessageKind.TEXT, 64), False),
    "an offset beyond the scratch memory": (order(b"cuDriverGetVersion", pointers=1, scratch=8, input_at=8, output=8, arguments=9), False),
    "more output than memory": (order(b"cuDriverGetVersion", output=1 << 20), False),
    "endless memory": (order(b"cuDriverGetVersion", scratch=1 << 62, input_at=1 << 62), False),
    "a short order": (message(MessageKind.CALL, data=b"cuInit"), False),
    "no order": (message(MessageKind.HELLO), False),
    "no file": (message(MessageKind.MAP, 4096), True),
}


class HostileServer:
    """Listens as consan does, and answers one program."""

    def __init__(self, case: Case, folder: Path, library: bytes = b"") -> None:
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(folder / "socket"))
        self.listener.listen()
        self.listener.settimeout(20)
        (folder / "library.so").write_bytes(library or INTERPOSER.data())
        given = {"_CONSAN_SOCKET": str(folder / "socket"), "LD_PRELOAD": str(folder / "library.so")}
        words = [case.folder / "program", "asked", "cuModuleLoadData", case.image("ptx")]
        self.program = subprocess.Popen(words, env={**os.environ, **case.environment, **given}, stderr=-1, text=True)
        self.requests, self.orders = self.listener.accept()[0], self.listener.accept()[0]
        self.asked(self.requests), self.asked(self.orders)

    def asked(self, connection: socket.socket) -> int:
        """The kind of the next message."""
        head = HEAD.unpack(exactly(connection, HEAD.size))
        exactly(connection, head[-1])
        return int(head[1])

    def mapped(self, size: int, file_size: int) -> int:
        """Have the program map a file of a size: the address that it names."""
        with tempfile.TemporaryFile() as file:
            file.truncate(file_size)
            socket.send_fds(self.orders, [message(MessageKind.MAP, size)], [file.fileno()])
        return int(HEAD.unpack(exactly(self.orders, HEAD.size))[2])

    def welcome(self, calls: bytes = b"") -> None:
        """The program gets its table, and which calls it is to follow."""
        self.requests.sendall(message(MessageKind.ANSWER, self.mapped(TABLE, TABLE)))
        assert self.asked(self.requests) == MessageKind.FOLLOW
        self.requests.sendall(message(MessageKind.ANSWER, data=calls))
        if calls:
            assert self.asked(self.requests) == MessageKind.FOLLOWING
            self.requests.sendall(message(MessageKind.ANSWER))
        assert self.asked(self.requests) == MessageKind.IMAGE

    def end(self) -> str:
        """What the program has said; it must have come to its end."""
        for each in (self.requests, self.orders, self.listener):
            each.close()
        _, errors = self.program.communicate(timeout=30)
        assert self.program.returncode == STATUS
        return str(errors)


@pytest.mark.parametrize("name", IMAGES)
def test_a_program_goes_on_with_its_own_image(name: str, case: Case, tmp_path: Path) -> None:
    server = HostileServer(case, tmp_path)
    server.welcome()
    answer, told = IMAGES[name]
    server.requests.sendall(answer)
    assert server.end().startswith(told) if told else server.end() in ("", GONE)


@pytest.mark.parametrize("calls", [b"/no/such/library\0", b"no end of a text", b"libc.so.6\0" + b"\xff" * 60])
def test_a_program_follows_no_calls_of_what_is_no_library_for_it(calls: bytes, case: Case, tmp_path: Path) -> None:
    server = HostileServer(case, tmp_path)
    server.welcome(calls)
    server.requests.sendall(message(MessageKind.ANSWER))
    assert server.end() in ("", GONE)


@pytest.mark.parametrize("name", ORDERS)
def test_a_program_goes_on_behind_a_wrong_order(name: str, case: Case, tmp_path: Path) -> None:
    server = HostileServer(case, tmp_path)
    server.welcome()
    wrong, answered = ORDERS[name]
    server.orders.sendall(wrong)
    server.orders.settimeout(5)
    server.orders.sendall(order(b"cuDriverGetVersion", pointers=1, scratch=8, input_at=8, output=8)) if answered else None
    answers = [exactly(server.orders, HEAD.size) for _ in range(2 if answered else 1)] if answered else []
    assert all(len(answer) == HEAD.size for answer in answers)
    server.end()


@pytest.mark.parametrize("table", ["an address that it has not mapped", "none", "a file that is too short"])
def test_a_program_counts_in_no_memory_but_its_own(table: str, case: Case, tmp_path: Path) -> None:
    server = HostileServer(case, tmp_path)
    addresses: dict[str, Callable[[], int]] = {
        "an address that it has not mapped": lambda: server.mapped(TABLE, TABLE) + 4096,
        "none": lambda: 0,
        "a file that is too short": lambda: server.mapped(TABLE, 4096) or 4096,
    }
    server.requests.sendall(message(MessageKind.ANSWER, addresses[table]()))
    assert server.end() == STRANGE


@pytest.fixture(scope="module")
def impatient() -> bytes:
    """The interposer, with a second of patience."""
    files = INTERPOSER.sources()
    return INTERPOSER.compiled(files | {"driver.h": "#define SILENCE_SECONDS 1\n" + files["driver.h"]})


@pytest.mark.parametrize("from_the_start", [True, False])
def test_a_program_does_not_wait_for_ever_for_a_silent_server(from_the_start: bool, impatient: bytes, case: Case, tmp_path: Path) -> None:
    server = HostileServer(case, tmp_path, impatient)
    if not from_the_start:
        server.welcome()
    assert server.program.wait(20) == STATUS
    assert server.end() == (STRANGE if from_the_start else GONE)


def test_a_server_that_works_for_long_says_so(impatient: bytes, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    ptx_of = Links.ptx_of

    def slowly(self: Links, *given: Any) -> Any:
        time.sleep(2)
        return ptx_of(self, *given)

    monkeypatch.setattr(Links, "ptx_of", slowly)
    monkeypatch.setattr("consan.native.conversation._STILL", 0.3)
    monkeypatch.setattr(HostLibrary, "data", lambda _: impatient)
    status, report, _ = case.run("asked", "cuModuleLoadData", case.image("ptx"))
    assert (status, report.verdict) == (STATUS, VIOLATIONS)
