"""Orders to a process: those of a launch are obeyed before it is let go, whichever thread has sent them."""

from __future__ import annotations

import socket
import threading

import pytest
from planted import plant

from consan.native import orders
from consan.native.wire import Message, MessageKind, call, receive, send

NOTHING = call("cuCtxGetDevice", [0], 1, b"", scratch=8, input_at=8, output=8)
ANSWER = Message(MessageKind.ANSWER)


def ends_early() -> bool:
    """Whether a kept order counts as gone while another thread, which has sent it, waits for the answers."""
    own, process = socket.socketpair()
    given, finished = orders.Orders(own), threading.Event()
    given.post(NOTHING)
    sends = threading.Thread(target=given, args=(NOTHING,))
    waits = threading.Thread(target=lambda: (given.are_kept, finished.set()))
    with own, process:
        sends.start()
        for _ in range(2):
            receive(process)
        waits.start()
        early = finished.wait(0.3)
        for _ in range(2):
            send(process, ANSWER)
        sends.join()
        waits.join()
    return early


def test_the_wait_for_orders_that_another_thread_has_sent() -> None:
    assert not ends_early()


def test_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, orders, "with self.lock:\n            return", "if True:\n            return")
    assert ends_early()
