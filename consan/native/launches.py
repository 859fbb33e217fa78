"""Recorded launches of one process of a native program.

A recorded kernel writes its log where its module's variables say. So the interposer asks before each launch, launches when the log is
there, says that it has launched, and goes on when the record has been judged. Meanwhile no other thread of the process launches or loads.

What is no single launch that consan can wait for (a node of a graph, a launch to a thread's own default stream) takes the form with called
hooks, which is a module of its own. So only modules without variables are recorded: two forms would have two values of each.

Not handled: a kernel that waits for what its program does behind the launch (it is stopped after the time limit), and `cuLaunchGrid`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from consan._errors import UsageError
from consan.native.remote import ClientBackend, NativeModule
from consan.native.wire import NO_LAUNCH, SHAPE, Broken, Malformed, Message, MessageKind
from consan.session.frameworks import FrameworkLaunch
from consan.session.variables import keeps_state

if TYPE_CHECKING:
    from consan.session.prepared import Prepared
    from consan.session.session import Session

_MOST_THREADS, _MOST_CTAS = 1024, 16  # of a CTA, and of a cluster
_RECORDED: Final = 1
_OWN: Final = Message(MessageKind.ANSWER)  # launch what the program has named
REFUSED: Final = Message(MessageKind.ANSWER, 0, 2)  # launch nothing


class _Refused(UsageError):  # noqa: N818 - a state of a launch
    """The driver has refused a launch, as it would without consan."""


class NotStarted(Exception):  # noqa: N818 - a state of a launch
    """A recorded kernel that has no log must not be launched: why."""


@dataclass
class RecordedModules:
    """The recorded modules of a process, by the handle that the driver has given them, and their launches."""

    ask: Callable[[Message], Message]  # answers a request, and gives the next one
    _known: dict[int, tuple[Prepared, NativeModule]] = field(default_factory=dict)

    def add(self, prepared: Prepared, handle: int, *, library: bool) -> None:
        """A module was loaded."""
        self._known[handle] = prepared, NativeModule(handle, library=library)

    def forget(self, handles: Iterable[int] | None = None) -> None:
        """Modules were unloaded, or all of them."""
        for handle in list(self._known) if handles is None else handles:
            self._known.pop(handle, None)

    def launch(self, session: Session, request: Message, name: str, owners: set[int]) -> Message:
        """The answer to the request for a launch of a kernel that was looked up from `owners`, once it has been made and judged.

        Raises `NotStarted` if it must not be made.
        """
        found = self._module(request.a, name, owners)
        if found is None:
            return _OWN
        backend = session.backend
        assert isinstance(backend, ClientBackend)
        backend.launching, backend.without_log = True, request.b == NO_LAUNCH
        try:
            self._launched(session, backend, request, *found)
        finally:
            backend.launching = backend.without_log = False
        return _OWN

    def _module(self, handle: int, name: str, owners: set[int]) -> tuple[str, Prepared, NativeModule] | None:
        """The kernel's name and its module, if that is recorded."""
        owned = [self._known[owner] for owner in owners if owner in self._known]
        if not self._known or not (owned or owners <= {0, handle}):  # looked up from another module
            return None
        for prepared, module in owned or self._known.values():
            if name in prepared.entries:
                return name, prepared, module
        if owned:
            raise NotStarted("its name is not known")
        return None

    def _launched(
        self, session: Session, backend: ClientBackend, request: Message, entry: str, prepared: Prepared, module: NativeModule
    ) -> None:
        if len(request.data) != SHAPE.size:
            raise Malformed("no shape of a launch")
        x, y, z, a, b, c, *cluster, shared = SHAPE.unpack(request.data)
        shape = (cluster[0], cluster[1], cluster[2])
        if not 0 < a * b * c <= _MOST_THREADS or not 0 < math.prod(shape) <= _MOST_CTAS:
            return  # every driver refuses it
        launch = FrameworkLaunch(entry, (x, y, z), (a, b, c), shape, 0 if backend.without_log else request.b, module)
        asked = False
        try:
            with session.framework_launch(prepared, launch) as other:
                function = 0 if other is None else backend.function(other, entry, shared, shape)
                backend.settle()
                asked = True
                self._made(self.ask(Message(MessageKind.ANSWER, function, _RECORDED)))
        except _Refused:
            pass
        except Exception as error:  # whatever it is, the kernel must not run with the log of another launch
            if asked or isinstance(error, Broken):
                raise
            raise NotStarted("; ".join(str(error).splitlines()) or type(error).__name__) from None

    @staticmethod
    def _made(done: Message) -> None:
        if done.kind is not MessageKind.LAUNCHED:
            raise Malformed("no end of a launch")
        if done.a:
            raise _Refused(f"CUDA error {done.a}")


def prepare(session: Session, ptx: str, name: str, cluster: int) -> Prepared:
    """A module of the program: recorded if the session records, it has no variables, and the engine takes it; else with hooks."""
    if session.recording.wanted(session.backend):
        variable = keeps_state(ptx)
        found = None if variable else session.instrument_for_framework(ptx, name=name)
        if found is not None and (found.recorded is not None or cluster == 1):
            return found
        if found is not None:
            session.modules.used.pop(found.number, None)  # it has hooks for another cluster
        if variable:
            session.recording.takes_hooks(name, f"its variable {variable} must not exist twice")
    return session.instrument(ptx, name=name, cluster=cluster)
