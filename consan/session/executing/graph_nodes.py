"""Recorded launches that become nodes of a graph: a log serves all launches of its node, and is read when the report is made.

In the captured stream, before the kernel: its log is cleared, by one kernel for all nodes of the stream that a capture began with, if all
calls of the program are followed; behind it: its receipt. The driver makes nodes of these, too. The last launch of a node is checked, and
stands for those before it if their receipts are equal: the node counts them. A kernel that records nothing is only counted.

Each node has a module of its own, whose variables are written once, so that nodes and other launches may run at the same time. Its memory
is never given back, since the program may launch its graph at any time.

A launch that is known to do what a checked one did (planning/decided.py), or whose kernel records nothing, becomes a node that is the
kernel as it is, and is only counted: with the launches of its graph (comparing/counted_graphs.py), or by a kernel for which no node waits.

Not handled: a time limit for launches of a graph while the program runs: it holds for the wait before a report. How far the memory of a
node that nobody launches any more could be used again.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import field, replace
from typing import TYPE_CHECKING, Final

from consan.backends.base import Handle
from consan.checker.judging.starting import give_module
from consan.checker.logs.launch import Launch
from consan.checker.logs.receipts import MOST_CLEARED, MOST_RESULTS, SLIP_BYTES, NodeFront, Slip
from consan.dataclass import dataclass
from consan.session.comparing.counted_graphs import CountedNode
from consan.session.executing.judging import Judge
from consan.session.executing.launch_check import LaunchCheck
from consan.session.executing.loading import Modules
from consan.session.modules.device import Device
from consan.session.modules.prepared import Prepared
from consan.session.planning.plan import PlannedLaunch

if TYPE_CHECKING:
    from consan.session.modules.parameters import Parameters

MOST_NODES: Final = 1024
MOST_BYTES: Final = 1 << 30  # of the logs of all nodes, where --trace-memory says nothing, and one launch may have no more
_TOO_MANY: Final = f"its graphs have more than {MOST_NODES:,} nodes that are recorded: launch it without a graph"
_ALTERED: Final = "the program changes parameters of graph nodes, whose launches are not checked then: launch the kernels without a graph"
_LOST: Final = "launches of graphs are not counted any more, since the program calls {}: launch their kernels without a graph"
_NO_WORK: Final = "this device takes no work of consan's own into a graph: launch it without a graph"
_NO_ROOM: Final = "the logs of the nodes of graphs have no room: launch it without a graph, or give more --trace-memory"


@dataclass(eq=False, kw_only=True)
class CapturedNode:
    """A node."""

    stream: int
    void: bool = False  # the driver has refused it

    @contextlib.contextmanager
    def refused(self) -> Iterator[None]:
        """Inside the block the driver may refuse it."""
        try:
            yield
        except BaseException:
            self.void = True
            raise


@dataclass(eq=False, kw_only=True)
class RecordedNode(CapturedNode):
    """A node with a log. `slip` counts its launches. `counted`: what reports have counted (`Slip.counts`)."""

    slip: Slip
    prepared: Prepared
    entry: str
    started: LaunchCheck
    counted: tuple[int, int, int] = (0, 0, 0)

    @property
    def memory(self) -> Launch:
        """Its log."""
        assert self.started.memory is not None
        return self.started.memory


@dataclass(eq=False, kw_only=True)
class KnownNode(CountedNode, CapturedNode):
    """A node that is the kernel as it is: each launch does what one did that was checked. `tell`: counts so many launches.

    `counter`: its address (`Receipts.counter`); 0: the launches of its graph are counted.
    """

    entry: str
    counter: int = 0
    tell: Callable[[int], None]
    counted: int = 0  # launches that reports have counted


@dataclass
class GraphNodes:
    """The nodes of a session."""

    device: Device
    modules: Modules
    judge: Judge
    _nodes: list[RecordedNode] = field(default_factory=list)
    _known: list[KnownNode] = field(default_factory=list)
    _shared: dict[bool, tuple[object, NodeFront]] = field(default_factory=dict)  # the fronts of the last capture; one only counts
    _bytes: int = 0

    def __post_init__(self) -> None:
        self.judge.watch.in_graphs = lambda: [node.started for node in self._nodes if not node.void]

    def begun(self, prepared: Prepared, entry: str, launch: PlannedLaunch, stream: int, args: Parameters) -> RecordedNode | None:
        """Put into the captured stream what comes before the kernel. None: the launch is not recorded, and the report says why."""
        if why := self._impossible():
            self.judge.recording.kernels.lacks_record(prepared, entry, why)
            return None
        whole = self.modules.with_global_races(prepared) if self.judge.recording.options.global_wanted else prepared
        form, started = self.judge.start(whole, entry, launch, None, args, background=True)
        if started is None:
            return None
        started.timeout = math.inf
        assert started.memory is not None
        if why := self._refusal(started.memory):
            started.free()
            self.judge.recording.kernels.lacks_record(form, entry, why)
            return None
        form.launched = True
        own = replace(form, handle=None, code=replace(form.code, load_later=None))
        node = RecordedNode(prepared=own, entry=entry, started=started, stream=stream, slip=self._slip())
        self.modules.used[form.number] = form
        self.modules.load(node.prepared)
        self._nodes.append(node)
        if not node.memory.silent:
            self._bytes += node.memory.log_bytes
            give_module(node.memory, node.prepared.loaded)
            for _, address, data in node.memory.variables():
                self.device.backend.poke(address, data)
        return node

    def known(
        self, entry: str, stream: int, tell: Callable[[int], None], capture: object | None, counted: list[CountedNode] | None
    ) -> KnownNode | None:
        """Put into the captured stream what comes before a known kernel. None: it is recorded instead.

        `counted`: the nodes of its capture that are counted with their graph. None: they are not.
        """
        if counted is not None:
            node = KnownNode(entry=entry, stream=stream, tell=tell)
            counted.append(node)
            self._known.append(node)
            return node
        if self._impossible() or sum(each.counter != 0 for each in self._known) >= MOST_NODES:
            return None
        with self.device.backend.outside_captures():
            node = KnownNode(entry=entry, stream=stream, counter=self.device.receipts.counter(), tell=tell)
        self._put_front(stream, node.counter, [], capture)
        self._known.append(node)
        return node

    def _slip(self) -> Slip:
        slip, copy = self.device.receipts.take(), self.device.logs.take("slips of nodes", SLIP_BYTES, clear=False)
        self.device.backend.poke(copy, bytes(SLIP_BYTES))
        slip.begin_node(copy)
        return slip

    def _impossible(self) -> str:
        if self.device.lost:
            return "the device is lost"
        return "" if self.device.backend.work is not None else _NO_WORK

    def _refusal(self, memory: Launch) -> str:
        if len(self._nodes) >= MOST_NODES:
            return _TOO_MANY
        most = self.judge.recording.options.trace_memory or max(MOST_BYTES, memory.most_bytes)
        has_room = memory.result_bytes <= MOST_RESULTS and self._bytes + memory.log_bytes <= most
        return "" if memory.silent or has_room else _NO_ROOM

    def arm(self, node: RecordedNode, capture: object | None) -> Handle | None:
        """Before the kernel. Returns the module whose kernel becomes the node.

        `capture`: that began with its stream; each node of it comes behind all nodes before. None: not known.
        """
        work = self.device.backend.work
        assert work is not None
        pieces = [] if node.memory.silent else node.memory.pieces.to_clear
        self._put_front(node.stream, node.slip, [(address, nbytes) for address, nbytes in pieces if nbytes <= MOST_CLEARED], capture)
        with work.entered():
            for address, nbytes in pieces:
                if nbytes > MOST_CLEARED:
                    work.clear(address, nbytes, node.stream)
        return node.prepared.loaded

    def _put_front(self, stream: int, node: Slip | int, clears: list[tuple[int, int]], capture: object | None) -> None:
        work, receipts, outside = self.device.backend.work, self.device.receipts, self.device.backend.outside_captures
        assert work is not None
        only_counts = isinstance(node, int)
        shared = self._shared.get(only_counts)
        front = shared[1] if shared is not None and shared[0] is capture and not shared[1].is_full else None
        if front is None:
            with outside():
                front = receipts.front()
            with work.entered():
                if only_counts:
                    receipts.counts_aside(front, stream)
                else:
                    receipts.begins(sum(nbytes for _, nbytes in clears) if capture is None else None, front, stream)
            if capture is not None:
                self._shared[only_counts] = capture, front
        with outside():
            receipts.put_front(front, node, clears)

    def ended(self, node: RecordedNode) -> None:
        """Put into the captured stream what comes behind the kernel."""
        work = self.device.backend.work
        assert work is not None
        if not node.memory.silent:
            with work.entered():
                self.device.receipts.ask(node.slip, *node.memory.receipt_of, node.stream, counts=True)

    def settle(self, *, altered: bool, lost: str) -> None:
        """Check what the last launches of all nodes have left.

        `altered`: the program has changed parameters of kernels' nodes. Nobody knows what wrote into their logs, if anything did.
        `lost`: the call since which launches of graphs may be missing.
        """
        if not (self._nodes or self._known):
            return
        if altered:
            self.judge.watch.reasons[_ALTERED] = None
            return
        if lost and any(not each.counter for each in self._known):
            self.judge.watch.reasons[_LOST.format(lost)] = None
        if not self.device.lost:
            self.judge.watch.synchronize()
        for node in self._nodes:
            if not node.void and node.slip.counts != node.counted:
                self._look(node)
            node.memory.stopped, node.started.ending.stopped = False, ""  # those of later launches
        for known in self._known:
            self._count(known)

    def _count(self, known: KnownNode) -> None:
        if self.device.lost:
            self.judge.loses(known.entry)
            return
        launches = self.device.receipts.counted(known.counter) if known.counter else known.launches
        before, known.counted = known.counted, launches
        if known.counted > before and not known.void:
            known.tell(known.counted - before)

    def _look(self, node: RecordedNode) -> None:
        memory, judge, counts = node.memory, self.judge, node.slip.counts
        (begun, runs, changes), node.counted = (new - old for new, old in zip(counts, node.counted, strict=True)), counts
        if memory.silent:
            runs = begun
        if self.device.lost or begun != runs:
            judge.loses(node.entry)
            return
        if not memory.silent:
            memory.received(node.slip.read(memory.result_bytes).results)
        examined = judge.examined(node.prepared, node.entry, node.started)
        judge.concluded(node.prepared, node.entry, node.started, examined)
        if runs > 1 and examined.checked.by_address:
            why = f"{node.entry}: of {runs:,} launches in a graph the last was checked: their receipts do not decide what they did"
            judge.watch.reasons[f"{why}: launch it without a graph"] = None
        elif changes:
            why = f"{node.entry}: of {runs:,} launches in a graph {changes:,} differ from the one before or ran beside it"
            judge.watch.reasons[f"{why}, and the last was checked: launch it without a graph"] = None
        elif runs > 1:
            judge.repeated(node.prepared, node.entry, node.started, examined.checked, runs - 1)
