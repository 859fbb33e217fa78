"""The sessions of one process: one for each context in which it loads or launches, and the modules that they have instrumented.

The first one is opened with the first image, or with the first recorded launch behind the end of a context; it has the others
(consan/session/other_contexts.py). With the end of a context that has a session all of them go, and what lives on is prepared anew: a
library belongs to no context, and a module may be another context's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import TYPE_CHECKING, Final

from consan._errors import NotSupported
from consan.dataclass import dataclass
from consan.native.calls import RemoteCalls
from consan.native.orders import Orders, primary_context
from consan.native.remote import Asking, ClientBackend, NativeModule
from consan.session.modules.device import Device
from consan.session.planning.options import SessionOptions
from consan.session.session_options import open_session

if TYPE_CHECKING:
    from consan.session.modules.prepared import Prepared
    from consan.session.session import Session

_MOST: Final = 64  # contexts


@dataclass(eq=False)
class ProgramModule:
    """A module that the program has loaded, and the session that has instrumented it. `library`: it belongs to no context."""

    prepared: Prepared
    session: Session
    handle: int
    library: bool
    _forms: dict[Session, tuple[Prepared, NativeModule]] = field(default_factory=dict)

    def within(self, session: Session) -> tuple[Prepared, NativeModule]:
        """The module for launches in a session, attached to it. A library has variables of its own in each context."""
        if session not in self._forms:
            prepared, backend = self.prepared if session is self.session else session.same(self.prepared), backend_of(session)

            def write(name: str, data: bytes) -> None:
                backend.write(backend.global_of(self.handle, name, library=self.library), data)

            session.device.hand_to(session)
            session.modules.attach(prepared, write)
            self._forms[session] = prepared, NativeModule(self.handle, library=self.library)
        return self._forms[session]

    def forget_sessions(self) -> None:
        """They may have ended."""
        self._forms.clear()

    @property
    def context(self) -> int:
        """The one that it belongs to; 0: none."""
        return 0 if self.library else backend_of(self.session).found


@dataclass(eq=False)
class ContextSessions:
    """Those of one process. `first`: None until one is needed."""

    orders: Orders
    options: SessionOptions
    calls: RemoteCalls
    delays: bool
    asking: Asking = field(default_factory=Asking)
    first: Session | None = None
    _opened: dict[int, Session] = field(default_factory=dict)

    def of(self, context: int) -> Session:
        """The session of a context. Without one (0), and if it is the first that is opened, that of the runtime on the first device."""
        first = self.first or self._open(context or primary_context(self.orders))
        self.asking.context = context
        if context not in (0, *self._opened) and len(self._opened) >= _MOST:
            raise NotSupported(f"the program uses more than {_MOST} contexts")
        session = first.here()
        self._opened[backend_of(session).found] = session
        return session

    def _open(self, context: int) -> Session:
        backend = self.calls.backend = ClientBackend(self.orders, context, self.asking)
        backend.calls = self.calls
        device = Device(backend, arena_bytes=self.options.shadow_memory)
        if self.delays:
            device.delay(self.options.seed)
        first = self.first = open_session(self.options, on=device)
        first.alone = False  # a program may launch in other streams while a kernel runs
        assert first.followed is not None  # a program may make streams before it launches
        self._opened[context] = first
        return first

    def has(self, context: int) -> bool:
        """Whether a context (0: any) has a session."""
        return bool(self._opened) if not context else context in self._opened

    def settle(self) -> None:
        """Wait until each device has what was written for it."""
        for session in self._opened.values():
            if not session.device.lost:
                backend_of(session).settle()

    def lose(self) -> None:
        """The devices are lost."""
        for session in self._opened.values():
            session.device.lost = True

    @property
    def lost(self) -> bool:
        """Whether they are."""
        return any(session.device.lost for session in self._opened.values())

    def end(self) -> None:
        """A context is about to end: the thread that obeys orders must not be in it when the next one comes."""
        self.orders.leave()
        self.first, self.calls.backend = None, None
        self._opened.clear()


def backend_of(session: Session) -> ClientBackend:
    """Its backend, which is that of a process."""
    assert isinstance(session.backend, ClientBackend)
    return session.backend


def gone_with(context: int, modules: Iterable[ProgramModule]) -> list[int]:
    """The handles of the modules that end with a context (0: with any)."""
    return [each.handle for each in modules if each.context and context in (0, each.context)]
