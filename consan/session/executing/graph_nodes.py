"""Recorded launches that become nodes of a graph: a log serves all launches of its node, and is read when the report is made.

In the captured stream, before the kernel: its log is cleared, and its module gets its variables; behind it: its receipt. The driver makes
nodes of these, too. The last launch of a node is checked, and stands for those before it if their receipts are equal: the node counts them.

Each node has a module of its own, so that nodes and other launches may run at the same time. Its memory is never given back, since the
program may launch its graph at any time.

Not handled: kernels that hang in a graph; how far the memory of a node that nobody launches any more could be used again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from consan.backends.base import Handle
from consan.checker.judging.starting import give_module
from consan.checker.logs.receipts import MOST_RESULTS, Slip
from consan.session.executing.judging import Judge
from consan.session.executing.launch_check import LaunchCheck
from consan.session.executing.loading import Modules
from consan.session.modules.device import Device
from consan.session.modules.prepared import Prepared
from consan.session.planning.plan import PlannedLaunch

if TYPE_CHECKING:
    from consan.session.modules.parameters import Parameters

MOST_NODES: Final = 1024
MOST_BYTES: Final = 1 << 30  # of the logs of all nodes, where --trace-memory says nothing
_TOO_MANY: Final = f"its graphs have more than {MOST_NODES:,} nodes that are recorded: launch it without a graph"
_NO_ROOM: Final = "the logs of the nodes of graphs have no room: launch it without a graph, or give more --trace-memory"


@dataclass(eq=False)
class GraphNode:
    """A node. `told`: its launches that reports have counted."""

    prepared: Prepared
    entry: str
    started: LaunchCheck
    stream: int
    slip: Slip | None = None  # None: the kernel records nothing
    void: bool = False  # the driver has refused it
    told: int = 0


@dataclass
class GraphNodes:
    """The nodes of a session."""

    device: Device
    modules: Modules
    judge: Judge
    _nodes: list[GraphNode] = field(default_factory=list)
    _bytes: int = 0

    @property
    def recorded(self) -> bool:
        """Whether nodes are recorded. Those of a program in another process take hooks: it may end before their logs are read."""
        work = self.device.backend.work
        return work is not None and not work.vanishes and self.judge.keeper is None and not self.device.lost

    def begun(self, prepared: Prepared, entry: str, launch: PlannedLaunch, stream: int, args: Parameters) -> GraphNode | None:
        """Put into the captured stream what comes before the kernel. None: the launch is not recorded, and the report says why."""
        whole = self.modules.with_global_races(prepared) if self.judge.recording.options.global_wanted else prepared
        form, started = self.judge.start(whole, entry, launch, None, None, args, background=True)
        if started is None:
            return None
        started.timeout = math.inf
        node = GraphNode(replace(form, handle=None, loads=None, launched=True), entry, started, stream)
        memory = started.memory
        assert memory is not None
        if why := self._refusal(node):
            started.free()
            self.judge.recording.kernels.lacks_record(form, entry, why)
            return None
        self.modules.used[form.number] = form
        self.modules.load(node.prepared)
        self._nodes.append(node)
        if memory.silent:
            return node
        self._bytes += memory.log_bytes
        give_module(memory, node.prepared.loaded)
        node.slip = self.device.receipts.take()
        return node

    def _refusal(self, node: GraphNode) -> str:
        memory = node.started.memory
        assert memory is not None
        if memory.silent:
            return ""
        if memory.result_bytes > MOST_RESULTS or self._bytes + memory.log_bytes > (self.judge.recording.options.trace_memory or MOST_BYTES):
            return _NO_ROOM
        return _TOO_MANY if len(self._nodes) >= MOST_NODES else ""

    def arm(self, node: GraphNode) -> Handle | None:
        """Before the kernel. Returns the module whose kernel becomes the node."""
        work, memory, slip = self.device.backend.work, node.started.memory, node.slip
        assert work is not None
        assert memory is not None
        if slip is not None:
            with work.entered():
                for address, nbytes in memory.to_clear:
                    work.clear(address, nbytes, node.stream)
                for at, address, data in memory.variables():
                    work.copy(address, slip.given(at, data), node.stream)
        return node.prepared.loaded

    def ended(self, node: GraphNode) -> None:
        """Put into the captured stream what comes behind the kernel."""
        work, memory = self.device.backend.work, node.started.memory
        assert work is not None
        assert memory is not None
        if node.slip is not None:
            with work.entered():
                self.device.receipts.ask(node.slip, *memory.receipt_of, node.stream, counts=True)

    def settle(self) -> None:
        """Check what the last launches of all nodes have left."""
        if not self._nodes or self.device.lost:
            return
        self.device.backend.synchronize()
        for node in self._nodes:
            if node.slip is not None and not node.void:
                self._look(node, node.slip)

    def _look(self, node: GraphNode, slip: Slip) -> None:
        runs, changes = slip.runs
        fresh = runs - node.told
        if not fresh or node.started.memory is None:
            return
        node.told = runs
        memory, judge = node.started.memory, self.judge
        memory.forget()
        memory.received(slip.read(memory.result_bytes).results)
        examined = judge.examined(node.prepared, node.entry, node.started)
        judge.concluded(node.prepared, node.entry, node.started, examined)
        if changes:
            why = f"{node.entry}: of {runs:,} launches in a graph {changes:,} differ from the one before, and the last was checked"
            judge.watch.reasons[f"{why}: launch it without a graph"] = None
        elif fresh > 1:
            again = replace(examined, checked=examined.checked.again(fresh - 1), fixes={})
            judge.concluded(node.prepared, node.entry, node.started, again)
