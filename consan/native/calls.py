"""The calls of the driver that a native program makes, as its interposer reports them (`CallSource`).

The interposer subscribes to CUPTI in the program, as consan/backends/callbacks.py does in a Python program: the same library and the same
calls, with the same meaning.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from consan.backends.call_filter import CallForm, CallKind, forms_of
from consan.backends.callbacks import NO_LIBRARY, DriverCall, DriverFacts, Listener, libraries, refused
from consan.backends.contexts import ProcessMemory
from consan.native.wire import Malformed, Message, MessageKind
from consan.session.comparing.driver_calls import LAYOUTS, matters

if TYPE_CHECKING:
    from consan.native.remote import ClientBackend

# An entry of the answer to FOLLOW: number, bytes, place of a pointer, how far before the value; way of telling, place of the stream.
_CALL: Final = struct.Struct("<IIQQQQ")
_CONTEXT: Final = struct.Struct("<Q")
_NOWHERE: Final = 1 << 32  # beyond all parameters
_IS_ASKED, _MAY_BE_NOTED, _ENDS_STREAMS = range(3)  # ways of telling
# The server asks the driver nothing about these calls, if it knows their stream: the program goes on beside them.
_NOTED: Final = frozenset((CallKind.EVENT, CallKind.EVENT_USE, CallKind.EVENT_WAIT, CallKind.WAIT, CallKind.OPERATION))
_LAST: Final = ("cuStreamDestroy", "cuCtxDestroy", "cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxReset")


class RemoteCalls(DriverFacts):
    """The calls of one process. `backend`: None until the process has a context."""

    def __init__(self, process: int = 0) -> None:
        self._process = process
        self.backend: ClientBackend | None = None
        self.memory = ProcessMemory(self.status)
        self._forms: dict[int, CallForm] = {}
        self._listener: Listener | None = None
        self._why = NO_LIBRARY

    def offered(self) -> bytes:
        """The orders for the interposer: the path of CUPTI and the calls. Empty where there is none."""
        for path in libraries():
            try:
                self._forms = forms_of(ctypes.CDLL(path), matters, LAYOUTS)
            except (OSError, AttributeError):
                continue
            return path.encode() + b"\0" + b"".join(map(_entry, self._forms, self._forms.values()))
        return b""

    def began(self, status: int) -> None:
        """The interposer has subscribed, or could not."""
        self._why = refused(status)

    def follow(self, listener: Listener, _: Callable[[str], bool], __: Mapping[str, str]) -> str:
        """Tell a listener of each call from now on (`CallSource`)."""
        self._listener = listener
        return self._why

    def count_kernel(self, handle: int) -> bool:
        """The interposer makes all launches."""
        return False

    def taken_count(self, handle: int) -> int:
        """The interposer makes all launches."""
        return 0

    def pass_over(self, stream: int, context: int, graph: int = 0) -> None:
        """The interposer drops no call."""

    def tell_all(self) -> None:
        """The interposer drops no call."""

    notes = serves_alone = False
    reads_attributes = True  # the request for a launch says it

    def followed_launch(self) -> None:
        """The interposer makes launches."""

    def note(self, context: int | None, streams: Sequence[int] | None = None) -> None:
        """The interposer chooses which calls need no answer."""

    def ends_order(self) -> None:
        """The interposer drops no call."""

    def name_kernel(self, handle: int) -> None:
        """The interposer knows no names."""

    def read_noted(self) -> None:
        """They have come in their order."""

    def called(self, message: Message) -> None:
        """The program has made a call. One that is noted may be over for some time."""
        noted = message.kind is MessageKind.NOTED
        form = self._forms.get(message.a)
        if form is None or len(message.data) < _CONTEXT.size + form.nbytes:
            raise Malformed("no call of the driver")
        (context,) = _CONTEXT.unpack_from(message.data)
        values = form.unpacked(message.data[_CONTEXT.size :])
        self.memory.called(form.name, values)
        if self._listener is not None:
            self._listener.called(DriverCall(form.name, values, form.per_thread, context, message.b, noted, process=self._process))

    def status(self, function: str, *arguments: Any) -> int:
        """Ask the driver of the process."""
        return 1 if self.backend is None else self.backend.status(function, *arguments)

    def kernel(self, function: int) -> str:
        """The name of a kernel; empty where the driver does not give it."""
        return "" if self.backend is None else self.backend.name_of(function)

    def answer(self, message: Message, *, wanted: bool) -> Message:
        """The answer to a message about calls. `wanted`: launches of several streams are to be compared."""
        data = b""
        if message.kind is MessageKind.FOLLOW:
            data = self.offered() if wanted else b""
        elif message.kind is MessageKind.FOLLOWING:
            self.began(ctypes.c_int32(message.a & 0xFFFFFFFF).value)
        else:
            self.called(message)
        return Message(MessageKind.ANSWER, data=data)


def _entry(number: int, form: CallForm) -> bytes:
    place, behind = form.pointer or (_NOWHERE, 0)
    stream, _ = form.stream or (_NOWHERE, 0)
    way = _MAY_BE_NOTED if form.kind in _NOTED else _ENDS_STREAMS if form.name in _LAST else _IS_ASKED
    return _CALL.pack(number, form.nbytes, place, behind, way, stream)
