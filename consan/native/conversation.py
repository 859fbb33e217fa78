"""The requests of one process, and their answers. The process waits for each of them."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Final

from consan.backends.cost import COST
from consan.native.wire import Broken, Message, MessageKind, receive, send

_STILL: Final = 15.0  # seconds; a process that hears nothing for long takes consan to be gone


class Conversation:
    """The server's end of the connection on which a process asks. While it works on a request, it says so from time to time."""

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
        self._speaking = threading.Lock()
        self._working = False
        self._ended = threading.Event()

    def begin(self, message: Message) -> None:
        """Send the first message."""
        threading.Thread(target=self._reassure, daemon=True).start()
        send(self._requests, message)

    def request(self) -> Message:
        """Wait for the next request."""
        message, self._working = receive(self._requests), True
        return message

    def answer(self, message: Message | None) -> None:
        """Answer the last request. None: nobody waits for an answer."""
        with self._speaking:
            self._working = False
            if message is not None:
                send(self._requests, message)

    def ask(self, answer: Message) -> Message:
        """Answer a request in the middle of what it asks for, and read the next one."""
        self.answer(answer)
        with COST.outside():
            return self.request()

    def end(self) -> None:
        """The process has gone."""
        self._ended.set()

    def _reassure(self) -> None:
        with contextlib.suppress(Broken):
            while not self._ended.wait(_STILL):
                with self._speaking:
                    if self._working:
                        send(self._requests, Message(MessageKind.WAIT))
