"""One process of a program: its sessions, and the requests of its interposer.

One thread answers the requests, so the sessions have one user. A mistake of the program, or a thing that consan cannot do, becomes a
reason why the report is incomplete; the program runs on.
"""

from __future__ import annotations

import functools
import json
import re
import socket
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar, Final

from consan._errors import ConsanError, NotSupported
from consan.backends.base import DeviceLost
from consan.backends.cost import COST
from consan.dataclass import dataclass
from consan.native.calls import RemoteCalls
from consan.native.conversation import Conversation
from consan.native.counts import CountedLaunches
from consan.native.images import Links
from consan.native.launches import REFUSED, NotStarted, RecordedModules, prepare
from consan.native.orders import ENDED, Orders, name_of
from consan.native.sessions import ContextSessions, ProgramModule
from consan.native.wire import Broken, Malformed, Message, MessageKind
from consan.reports.formats.json_format import to_json
from consan.reports.model import Report, Uninstrumented
from consan.reports.verdict.conclusion import assemble, with_gaps
from consan.session.planning.options import SessionOptions

if TYPE_CHECKING:
    from consan.session.modules.prepared import Prepared
    from consan.session.session import Session

GPU: Final = "GPU"  # the device of a report in whose process consan has opened none
_ENTRY: Final = re.compile(r"\.entry\s+([\w$]+)")
_CLUSTERS: Final = re.compile(r"%cluster_|barrier\.cluster|\bmapa\b|multicast::cluster")
_LARGEST_CLUSTER: Final = 8  # CTAs that every GPU with clusters can run
_MACHINE_CODE: Final = (
    "machine code was loaded that no linker or ptxas of this run has made: "
    "empty the program's cache, so that ptxas makes it anew, or give the driver PTX"
)


@dataclass(frozen=True)
class ProcessReport:
    """The report of a process, and the source lines that were watched."""

    pid: int
    report: Report
    places: frozenset[tuple[str, int]] = frozenset()


class ReportsLeft:
    """The reports of a process that nobody has taken."""

    def __init__(self) -> None:
        self.left: list[ProcessReport] = []
        self.were_any = False

    def add(self, report: ProcessReport) -> None:
        """One more."""
        self.left.append(report)
        self.were_any = True

    def take(self) -> list[ProcessReport]:
        """All that are left."""
        taken, self.left = self.left, []
        return taken


class Client:
    """The server's side of one process."""

    def __init__(self, pid: int, requests: socket.socket, orders: Orders, options: SessionOptions, links: Links, *, delays: bool) -> None:
        self.pid = pid
        self.outcomes = ReportsLeft()
        self._conversation = Conversation(requests)
        self._orders, self._options, self._links = orders, options, links
        self._calls = RemoteCalls(pid)
        self._sessions = ContextSessions(orders, options, self._calls, delays)
        self._prepared: list[tuple[Prepared, Session]] = []
        self._counts = CountedLaunches()
        self._recorded = RecordedModules(self._conversation.ask)  # those modules whose launches are recorded
        self._reasons: dict[str, None] = {}  # why the next report is incomplete
        self._notes: dict[str, None] = {}

    def serve(self, table_bytes: int) -> None:
        """Answer the interposer until its process ends."""
        COST.serves(self.pid)
        try:
            address = self._counts.share_table(self._orders, table_bytes, self._recorded.unasked)
            self._conversation.begin(Message(MessageKind.ANSWER, address))
            while True:
                request = self._conversation.request()
                answer = self._answer(request)
                self._conversation.answer(None if request.kind is MessageKind.NOTED else answer)
                self._count_interposer()
        except Malformed as error:
            self._reasons[f"process {self.pid} sent {error}: what it did from then on was not checked"] = None
        except (Broken, DeviceLost):
            pass
        finally:
            self._conversation.end()
            self._count_interposer()
            self._close()

    def _count_interposer(self) -> None:
        """Add to the cost what threads of the process were in the interposer for longer than it took to answer them."""
        more = self._counts.spent - COST.mine
        if more > 0:
            COST.add(more)

    def _answer(self, message: Message) -> Message:
        if message.kind not in self._ANSWERS:
            raise Malformed("what is no request")
        try:
            return self._answered(message)
        except DeviceLost as error:
            if error.name == ENDED:
                raise
            self._lose(f"the context of process {self.pid} ended with {error.name}: what ran after it was not checked")
        except Exception as error:  # whatever the program sends must not end the server
            self._reasons[f"a part of what process {self.pid} did was not checked: {_described(error)}"] = None
        return Message(MessageKind.ANSWER)

    def _answered(self, message: Message) -> Message:
        """The answer, once the device has what was written for it: the program may launch kernels then."""
        if message.kind is MessageKind.NOTED:  # nobody waits
            return self._calls_of_driver(message)
        with COST.working():  # a thread of the program waits
            try:
                answer = self._ANSWERS[message.kind](self, message)
            finally:
                self._recorded.unasked.review()
            self._sessions.settle()
            return answer

    def _lose(self, reason: str) -> None:
        self._reasons[reason] = None
        self._recorded.unasked.take_back()
        self._sessions.lose()

    # -- requests ----------------------------------------------------------------------------------------------------------------

    def _image(self, message: Message) -> Message:
        """An image that is about to be loaded -> the cubin to load instead, and its number; nothing: load it as it is."""
        if not self._links.may_know(message.data):
            self._notes[_MACHINE_CODE] = None
            return Message(MessageKind.ANSWER)
        name = f"module {len(self._prepared) + 1} of process {self.pid}"
        try:
            session = self._sessions.of(message.a)
            prepared = self._instrumented(session, message.data, name)
        except NotSupported as error:  # its launches are listed
            self._notes[f"{name} was not instrumented: {error}"] = None
            return Message(MessageKind.ANSWER)
        except DeviceLost:
            raise
        except Exception as error:  # whatever the program hands over must not end the server
            self._reasons[f"{name} was not instrumented: {_described(error)}"] = None
            return Message(MessageKind.ANSWER)
        if prepared is None:
            return Message(MessageKind.ANSWER)
        self._prepared.append((prepared, session))
        assert prepared.code.cubin is not None
        return Message(MessageKind.ANSWER, len(self._prepared) - 1, int(prepared.recorded is not None), prepared.code.cubin)

    def _instrumented(self, session: Session, image: bytes, name: str) -> Prepared | None:
        """The instrumented module. None without PTX, and if a filter leaves it out."""
        found = self._links.ptx_of(image, session.backend.arch)
        if found is None:
            return None
        (label, ptx), wanted = found, self._options.filter.kernel_name
        if wanted is not None and not any(map(wanted.matches, _ENTRY.findall(ptx))):
            return None
        prepared = prepare(session, ptx, label or name, cluster_of(ptx))
        self._counts.entries.update(_ENTRY.findall(ptx))
        return prepared

    def _loaded(self, message: Message) -> Message:
        """An exchanged image was loaded: write its control block."""
        handle, library = (int.from_bytes(message.data[begin : begin + 8], "little") for begin in (0, 8))
        if message.a < len(self._prepared):
            loaded = ProgramModule(*self._prepared[message.a], handle, bool(library))
            loaded.within(loaded.session)
            self._counts.owners.add(handle)
            if loaded.prepared.recorded is not None:
                self._recorded.add(loaded)
        return Message(MessageKind.ANSWER)

    def _input(self, message: Message) -> Message:
        """A linker of the program (`a`) gets an image."""
        self._links.add(self.pid, message.a, message.data)
        return Message(MessageKind.ANSWER)

    def _made(self, message: Message) -> Message:
        """A linker has made machine code, or has gone."""
        self._links.make(self.pid, message.a, message.data)
        return Message(MessageKind.ANSWER)

    def _refused(self, message: Message) -> Message:
        name = self._prepared[message.a][0].name if message.a < len(self._prepared) else "a module"
        self._reasons[f"{name} ran unchecked: the driver did not load its instrumented form (CUDA error {message.b})"] = None
        return Message(MessageKind.ANSWER)

    def _unloaded(self, message: Message) -> Message:
        """The driver may give the handles to another module: their launches are counted now."""
        self._recorded.forget(self._counts.unloaded(message.a))
        return Message(MessageKind.ANSWER)

    def _found(self, message: Message) -> Message:
        """A handle was looked up from another one (`b`), or is in a graph (0)."""
        self._counts.found(message.a, message.b, " ".join(message.data.decode(errors="replace").split()))  # for one line of a report
        return Message(MessageKind.ANSWER)

    def _collect(self, message: Message) -> Message:
        """The process is about to end, or a context (`b`; 0: any) is about to be destroyed (`a`) or left: report what has run."""
        gone = self._recorded.leave(message.b) if message.a else []
        if self._sessions.has(message.b):
            self._take()
            if message.a:
                self._sessions.end()
        self._counts.owners.difference_update(gone)
        return Message(MessageKind.ANSWER)

    def _taken(self, message: Message) -> Message:
        """A pytest plugin in the process takes what has been found since it last did."""
        self._counts.count()
        if not self._idle:
            self._take()
        found = [{"report": to_json(each.report), "places": sorted(each.places)} for each in self.outcomes.take()]
        return Message(MessageKind.ANSWER, data=json.dumps(found).encode())

    @property
    def _idle(self) -> bool:
        """Whether nothing was launched since the last report, as far as it is counted."""
        return not (self._counts.launched or self._counts.listed or self._reasons)

    # -- launches ----------------------------------------------------------------------------------------------------------------

    def _launch(self, message: Message) -> Message:
        """A kernel is about to be launched; it may need a log."""
        name, owners = self._counts.whose_or_asked(message.a, functools.partial(name_of, self._orders))
        try:
            return self._recorded.launch(self._sessions, message, name, owners)
        except NotStarted as why:
            self._reasons[f"a launch of {name} was not made, because it would be recorded without a log: {why}"] = None
            return REFUSED

    def _calls_of_driver(self, message: Message) -> Message:
        """A call that may order streams, or that must be reported of them."""
        return self._calls.answer(message, wanted=self._options.global_memory != "off")

    # -- reports -----------------------------------------------------------------------------------------------------------------

    def _close(self) -> None:
        """The process has ended. If it has not said so, its memory is gone, and only the ring of findings is left."""
        self._counts.count()
        if self._sessions.first is not None and self._prepared:
            ended = f"process {self.pid} ended, or closed consan's connection, before consan had read its counts"
            self._lose(f"{ended}: findings may be missing, and counts are lower bounds")
        try:
            self._take()
        except Exception as error:  # the program may write to the memory that holds its findings
            self._reasons[f"the findings of process {self.pid} cannot be read: {_described(error)}"] = None
            self._sessions.first = None
            self._take()

    def _take(self) -> None:
        """Make a report of what has run since the last one."""
        self._counts.count()
        session = self._sessions.first
        if self._idle and (self.outcomes.were_any or session is None):
            return
        report = self._report(session)
        counted = session is not None and not self._sessions.lost
        gaps = (*self._reasons, *(self._counts.unchecked(report, self._recorded.unchecked) if counted else ()))
        places = session.places(report) if session is not None else ()
        self.outcomes.add(ProcessReport(self.pid, with_gaps(report, gaps), frozenset(places)))
        self._counts.forget()
        self._recorded.unchecked.clear()
        self._reasons.clear()

    def _report(self, session: Session | None) -> Report:
        if session is None:
            listed = [Uninstrumented(name, count) for name, count in self._counts.listed.items()]
            return assemble(device=GPU, uninstrumented=listed, notes=tuple(self._notes))
        for name, count in self._counts.listed.items():
            session.uninstrumented(name, count)
        for note in self._notes:
            session.note(note)
        if self._counts.listed and self._options.filter.kernel_name is None:
            session.note(how_to_build(session.backend.arch))
        taken = None if self._sessions.lost else session.take()
        return taken or session.report()

    _ANSWERS: ClassVar[Mapping[MessageKind, Callable[[Client, Message], Message]]] = {
        MessageKind.IMAGE: _image,
        MessageKind.LOADED: _loaded,
        MessageKind.REFUSED: _refused,
        MessageKind.UNLOADED: _unloaded,
        MessageKind.FOUND: _found,
        MessageKind.COLLECT: _collect,
        MessageKind.INPUT: _input,
        MessageKind.MADE: _made,
        MessageKind.LAUNCH: _launch,
        MessageKind.TAKE: _taken,
        **dict.fromkeys((MessageKind.FOLLOW, MessageKind.FOLLOWING, MessageKind.CALLED, MessageKind.NOTED), _calls_of_driver),
    }


def _described(error: Exception) -> str:
    text = str(error) if isinstance(error, ConsanError) else f"{type(error).__name__}: {error}"
    return "; ".join(text.splitlines())


def cluster_of(ptx: str) -> int:
    """CTAs per cluster to instrument a module for: a launch can choose them, and comes when the module is loaded already."""
    return _LARGEST_CLUSTER if _CLUSTERS.search(ptx) else 1


def how_to_build(architecture: str) -> str:
    """A note for a report that lists kernels."""
    virtual = architecture.replace("sm_", "compute_")
    return f"kernels are checked where their PTX is in the program: nvcc -gencode arch={virtual},code={virtual} -lineinfo"
