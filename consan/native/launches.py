"""Recorded launches of one process of a native program.

A recorded kernel writes its log where its module's variables say. So the interposer asks before each launch, launches when the log is
there, says that it has launched, and goes on when consan has asked for a receipt, or has judged the log where it waits for that
(consan/session/executing/background.py). Meanwhile no other thread of the process launches or loads, and one that makes a call that
orders streams waits behind it. Launches that are known, with nothing new to record, are made without a question (unasked.py). The variables
are those of the launch's context. A launch into a stream that is captured becomes a node with a module and a log of its own
(consan/session/executing/graph_nodes.py).

The program's own kernel, which counts as unchecked, serves what is no launch in a stream that consan can use (`_UNFOLLOWED`). It uses the
variables of the recorded module (consan/session/modules/variables.py).

Not handled: a kernel that waits for what its program does behind its first launch (it is stopped after the time limit), and
`cuLaunchGrid`.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable, Iterable
from dataclasses import field
from typing import TYPE_CHECKING, Final

from consan._errors import ConsanError, UsageError
from consan.backends.base import Dim3
from consan.backends.cost import COST
from consan.backends.cuda import CudaModule
from consan.dataclass import dataclass
from consan.libcuda.texts.built import know_source
from consan.native.remote import ClientBackend, NativeModule
from consan.native.sessions import ContextSessions, ProgramModule, backend_of, gone_with
from consan.native.unasked import LaunchKey, UnaskedLaunches
from consan.native.wire import CHANGED_NODE, NO_LAUNCH, OF_DEVICES, OF_THREAD, SHAPE, Broken, Malformed, Message, MessageKind
from consan.session.framework_launch import FrameworkLaunch
from consan.session.modules.parameters import DeclaredSizes, Parameters
from consan.session.modules.variables import bound
from consan.session.repeated_launch import NOT_REPEATED, RepeatedLaunch

if TYPE_CHECKING:
    from consan.session.modules.prepared import Prepared
    from consan.session.session import Session

_MOST_THREADS, _MOST_CTAS = 1024, 16  # of a CTA, and of a cluster
# In place of a stream: what a kernel is handed over for.
_UNFOLLOWED: Final = {
    NO_LAUNCH: "the program adds them to a graph node by node: capture the launches (cuStreamBeginCapture)",
    CHANGED_NODE: "the program changes parameters of a graph's nodes: capture the launches anew",
    OF_THREAD: "in a thread's own default stream: launch them in a stream that the program makes",
    OF_DEVICES: "by one call for several devices: launch them on each device by itself",
}
_MOST_REPEATED: Final = 1 << 12
_RECORDED: Final = 1
_BUFFER: Final = 2  # an answer with all parameters in one buffer
_OWN: Final = Message(MessageKind.ANSWER)  # launch what the program has named
REFUSED: Final = Message(MessageKind.ANSWER, 0, 2)  # launch nothing


class _Refused(UsageError):  # noqa: N818 - a state of a launch
    """The driver has refused a launch, as it would without consan."""


class NotStarted(Exception):  # noqa: N818 - a state of a launch
    """A recorded kernel that has no log must not be launched: why."""


@dataclass(frozen=True)
class _Asked:
    """The launch that a request is about."""

    grid: Dim3
    block: Dim3
    cluster: Dim3
    shared: int
    stream: int
    context: int  # 0: that in which the program's thread is not known
    programmatic: bool  # it may start while the launch before it runs
    records: bool  # an event, by an attribute

    @classmethod
    def read(cls, request: Message) -> _Asked:
        """Raises `Malformed`."""
        if len(request.data) != SHAPE.size:
            raise Malformed("no shape of a launch")
        *words, shared, context, programmatic, records = SHAPE.unpack(request.data)
        grid, block, cluster = ((words[at], words[at + 1], words[at + 2]) for at in (0, 3, 6))
        return cls(grid, block, cluster, shared, request.b, context, bool(programmatic), bool(records))

    def key(self, function: int, context: int) -> LaunchKey:
        """The facts by which the interposer knows it. `context`: that of the launch."""
        return LaunchKey(function, context, self.stream, (*self.grid, *self.block, *self.cluster, self.shared))

    @property
    def refused(self) -> bool:
        """Whether every driver refuses it."""
        return not 0 < math.prod(self.block) <= _MOST_THREADS or not 0 < math.prod(self.cluster) <= _MOST_CTAS


@dataclass
class RecordedModules:
    """The recorded modules of a process, by the handle that the driver has given them, and their launches."""

    ask: Callable[[Message], Message]  # answers a request, and gives the next one
    unchecked: dict[str, str] = field(default_factory=dict)  # why launches of a kernel are not checked
    unasked: UnaskedLaunches = field(default_factory=UnaskedLaunches)
    _known: dict[int, ProgramModule] = field(default_factory=dict)
    _declared: dict[tuple[Prepared, str], DeclaredSizes] = field(default_factory=dict)
    _plain: dict[tuple[int, int], CudaModule] = field(default_factory=dict)  # the program's own, by handle and context
    # Launches that were made, and how those like them are made that need no log.
    _repeated: dict[tuple[Prepared, FrameworkLaunch], RepeatedLaunch | None] = field(default_factory=dict)

    def add(self, loaded: ProgramModule) -> None:
        """A module was loaded."""
        self._known[loaded.handle] = loaded

    def forget(self, handles: Iterable[int]) -> None:
        """Modules were unloaded."""
        self.unasked.take_back()
        for each in filter(None, self._repeated.values()):
            each.tell()
        self._repeated.clear()
        for handle in handles:
            self._known.pop(handle, None)
        self._plain = {key: module for key, module in self._plain.items() if key[0] in self._known}

    def launch(self, sessions: ContextSessions, request: Message, name: str, owners: set[int]) -> Message:
        """The answer to the request for a launch of a kernel that was looked up from `owners`, once it has been made and judged.

        Raises `NotStarted` if it must not be made.
        """
        found, asked = self._module(request.a, name, owners), _Asked.read(request)
        if sessions.first is not None and asked.stream == CHANGED_NODE:
            sessions.first.followed.captures.altered = True
        if sessions.first is not None and asked.records:
            sessions.first.followed.launch_records_event()
        if found is None or asked.refused:
            return _OWN
        entry, loaded = found
        try:
            session = sessions.of(loaded.context or asked.context)
            prepared, module = loaded.within(session)
        except ConsanError as error:
            raise NotStarted(str(error)) from None
        if why := _UNFOLLOWED.get(asked.stream, ""):
            self.unchecked[entry] = why
            return self._own(session, asked, entry, prepared, module)
        sessions.asking.launching = True
        try:
            self._launched(session, asked, request.a, entry, prepared, module, keeps=session is sessions.first)
        finally:
            sessions.asking.launching = False
        return _OWN

    def leave(self, context: int) -> list[int]:
        """A context (0: any) is about to end, with what is loaded in it. Gives the handles of these modules."""
        self._plain = {key: module for key, module in self._plain.items() if context not in (0, key[1])}
        gone = gone_with(context, self._known.values())
        self.forget(gone)
        for each in self._known.values():
            each.forget_sessions()
        return gone

    def _own(self, session: Session, asked: _Asked, entry: str, prepared: Prepared, module: NativeModule) -> Message:
        """The program's own kernel, in the context of a session."""
        if prepared.recorded is None or entry in prepared.recorded.refused:  # it is as it was
            return _OWN
        backend = backend_of(session)
        key = module.handle, backend.found
        try:
            if key not in self._plain:
                text = bound(prepared.plain, lambda name: backend.global_of(module.handle, name, library=module.library))
                self._plain[key] = backend.load_cubin(text.encode())  # the driver compiles it for that device
            return Message(MessageKind.ANSWER, backend.function(self._plain[key], entry, asked.shared, asked.cluster))
        except ConsanError as error:
            raise NotStarted(str(error)) from None

    def _module(self, handle: int, name: str, owners: set[int]) -> tuple[str, ProgramModule] | None:
        """The kernel's name and its module, if that is recorded."""
        owned = [self._known[owner] for owner in owners if owner in self._known]
        if not self._known or not (owned or owners <= {0, handle}):  # looked up from another module
            return None
        for loaded in owned or self._known.values():
            if name in loaded.prepared.entries:
                return name, loaded
        if owned:
            raise NotStarted("its name is not known")
        return None

    def _launched(
        self, session: Session, asked: _Asked, handle: int, entry: str, prepared: Prepared, module: NativeModule, *, keeps: bool
    ) -> None:
        """`keeps`: how launches like this one are made from now on."""
        backend, answered = backend_of(session), False
        args = functools.partial(self._parameters, backend, prepared, entry)
        launch = FrameworkLaunch(entry, asked.grid, asked.block, asked.cluster, asked.stream, module, asked.shared, args, replaceable=True)

        def answer(function: int) -> int:
            """Let the program launch, and give the driver's status."""
            nonlocal answered
            session.followed.own.programmatic = asked.programmatic
            backend.settle()
            answered = True
            return self._status(self.ask(Message(MessageKind.ANSWER, function, _RECORDED)))

        try:
            key = prepared, launch.without_arguments
            known = self._repeated.get(key)
            with COST.outside():  # it counts by itself
                if known is not None and (status := known.make(args, answer, (0,), gives_status=True)) is not NOT_REPEATED:
                    if not status:
                        self.unasked.lend(known, asked.key(handle, backend.found))
                    return
            with session.framework_launch(prepared, launch) as other:
                if status := answer(0 if other is None else backend.function(other, entry, asked.shared, asked.cluster)):
                    raise _Refused(f"CUDA error {status}")
            if keeps and len(self._repeated) < _MOST_REPEATED:  # of one that is made once nothing more is loaded
                self._repeated[key] = session.frameworks.repeated(prepared, launch) if key in self._repeated else None
        except _Refused:
            pass
        except Exception as error:  # whatever it is, the kernel must not run with the log of another launch
            if answered or isinstance(error, Broken):
                raise
            raise NotStarted("; ".join(str(error).splitlines()) or type(error).__name__) from None

    def _parameters(self, backend: ClientBackend, prepared: Prepared, entry: str) -> Parameters | None:
        """The parameters of the launch that asks; None if they cannot be known."""
        if (prepared, entry) not in self._declared:
            self._declared[prepared, entry] = DeclaredSizes.of(prepared.instrumented.module, entry)
        declared = self._declared[prepared, entry]
        if not all(declared.sizes):
            return None
        answer = backend.ask(Message(MessageKind.PARAMETERS, data=struct.pack(f"<{len(declared.sizes)}I", *declared.sizes)))
        return declared.packed(answer.data) if answer.a == _BUFFER else declared.divided(answer.data)

    @staticmethod
    def _status(done: Message) -> int:
        if done.kind is not MessageKind.LAUNCHED:
            raise Malformed("no end of a launch")
        return done.a


def prepare(session: Session, ptx: str, name: str, cluster: int) -> Prepared:
    """A module of the program. `cluster`: of launches with called hooks."""
    if session.options.records:
        prepared = session.instrument_for_framework(ptx, name=name)
        know_source(session.unoptimised, prepared.plain, ptx)
        return prepared
    return session.instrument(ptx, name=name, cluster=cluster)
