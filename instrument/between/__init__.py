"""Finds the synchronisation between two accesses of a kernel, in its control-flow graph (`flow.py`). Computed on demand for a finding.

A function is reduced to the instructions that matter: the two accesses, synchronising instructions, and calls. Accesses of one source
place count as one access (an unrolled loop has several), because findings name source places.

Decides
- which of two accesses is intended to come first (`order`): the one that the other can follow, if only one can; in a loop, the one that
  reaches the other without a barrier; else the write; of two writes, the first in the text. So a race reads the same whatever order the
  schedule produced;
- whether a store puts back, changed, what was loaded from its address (`updates`);
- whether a load from the address of a store decides that it is made (`checks`);
- whether lanes have summed the value that they store, so that it differs by rounding only (`summed_lanes`);
- what synchronises between them, and directly before and after each (`stretches`), and whether every path executes it;
- what becomes of the value that an access loads (`value_use`), and of one that a shuffle takes from a lane that is not there.

Not handled; the answer is None: accesses in two functions (but for their order, in a module of one kernel: there the calls stand for
them), accesses in one called function (its callers may call it again), and `stretches` in a kernel that calls functions that
synchronise. A branch is evaluated if it depends only on the thread's index in the CTA. Other branches count as independent of each
other, so no thread need be able to take a given path of the graph. Therefore `always` is certain, and so is that an instruction is
not in a stretch; "not always" is not certain.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cached_property

from consan.instrument.between.exchanges import Exchanges
from consan.instrument.between.flow import Flow
from consan.instrument.between.guesses import FirstGuess
from consan.instrument.between.paths import Vertices
from consan.instrument.between.signals import signals_of
from consan.instrument.between.undefined_values import UndefinedValues
from consan.instrument.between.value_uses import ValueUses
from consan.instrument.control_flow import graph_of
from consan.instrument.ptx import Module
from consan.instrument.relations import Counted, Order, Signal, Stores, Stretches, SyncPoint, Thread, Threads, UndefinedUse, ValueUse, Warp
from consan.instrument.sites import Place, Site

__all__ = ["TextRelations"]


class TextRelations:
    """The relations of a module's sites (`relations.Relations`). The text is parsed on the first request."""

    def __init__(self, module: Callable[[], Module]) -> None:
        self._read = module
        self._flows: dict[str, Flow | None] = {}
        self._exchanges: dict[str, Exchanges] = {}
        self._values: dict[str, ValueUses] = {}
        self._undefined: dict[str, UndefinedValues] = {}

    def order(self, one: Site, other: Site, barriers: str) -> Order | None:
        """See `relations.Relations`."""
        found = self._located(one, other) or self._called(one, other)
        if found is None:
            return None
        flow, first, second = found
        if first == second:
            # Several vertices are copies in an unrolled loop, or stores of one statement; two lanes at one of them are in one round.
            own = flow.on_line(one.ptx_line) if one.ptx_line == other.ptx_line else first
            return Order(swapped=False, carried=True) if flow.repeats(own & first or first, barriers) else None
        # Values flow from writes to reads. If the graph allows both orders, the write is intended to come first.
        reads = one.only_reads, other.only_reads
        wanted = reads[0] if reads[0] != reads[1] else None
        if flow.are_unordered(first, second):
            return None if wanted is None or flow.has_rounds(first) or flow.has_rounds(second) else Order(wanted)
        return flow.order(first, second, barriers, wanted)

    def stretches(self, first: Site, second: Site, threads: Threads) -> Stretches | None:
        """See `relations.Relations`."""
        found = self._located(first, second)
        return found[0].stretches(*found[1:], threads) if found and not found[0].calls else None

    def in_branches(self, first: Site, second: Site, threads: Threads, wait: int = 0) -> tuple[bool, bool]:
        """See `relations.Relations`."""
        found = self._located(first, second)
        if found is None:
            return False, False
        flow, one, other = found
        return flow.in_branches(flow.on_line(wait) if wait else one, other, threads)

    def value_use(self, access: Site, threads: Collection[Thread]) -> ValueUse | None:
        """See `relations.Relations`."""
        flow = self._flow(access.function)
        if flow is None:
            return None
        if access.function not in self._values:
            self._values[access.function] = ValueUses(flow.module, flow.function, flow.data)
        return self._values[access.function].of(access.ptx_line, tuple(threads))

    def is_first_guess(self, access: Site) -> bool:
        """See `relations.Relations`."""
        flow = self._flow(access.function)
        load = None if flow is None else flow.data.load(access.ptx_line)
        return flow is not None and load is not None and FirstGuess(load, graph_of(flow.function), flow.data).holds()

    def undefined_use(self, entry: str, line: int, warp: Warp) -> UndefinedUse | None:
        """See `relations.Relations`."""
        known = self._undefined_values(entry)
        return known.use(line, warp) if known is not None else None

    def certain_shuffles(self, entry: str) -> tuple[int, ...]:
        """See `relations.Relations`."""
        known = self._undefined_values(entry)
        return known.certain if known is not None else ()

    def signals(self, entry: str) -> tuple[Signal, ...]:
        """See `relations.Relations`."""
        return signals_of(self._module, entry)

    def follows(self, entry: str, line: int, later: int) -> bool | None:
        """See `relations.Relations`."""
        flow = self._flow(entry)
        return flow.follows(line, later) if flow is not None else None

    def awaited_count(self, first: Site, second: Site) -> tuple[SyncPoint, SyncPoint] | None:
        """See `relations.Relations`."""
        flow = self._flow(first.function) if first.function == second.function else None
        return flow.awaited_count(flow.on_line(first.ptx_line), flow.on_line(second.ptx_line)) if flow is not None else None

    def barrier_behind(self, entry: str, line: int, later: int) -> Place | None:
        """See `relations.Relations`."""
        flow = self._flow(entry)
        return flow.barrier_behind(line, later) if flow is not None else None

    def loop(self, entry: str, *lines: int) -> Place | None:
        """See `relations.Relations`."""
        flow = self._flow(entry)
        return flow.loop(lines) if flow is not None else None

    def counted(self, barrier: Site) -> Counted | None:
        """See `relations.Relations`."""
        flow = self._flow(barrier.function)
        return flow.data.counted(barrier.ptx_line) if flow is not None else None

    def updates(self, write: Site) -> frozenset[int]:
        """See `relations.Relations`."""
        flow = self._flow(write.function)
        return flow.updates(write) if flow is not None else frozenset()

    def checks(self, write: Site) -> frozenset[int]:
        """See `relations.Relations`."""
        flow = self._flow(write.function)
        return flow.checks(write) if flow is not None else frozenset()

    def combines(self, write: Site) -> bool:
        """See `relations.Relations`."""
        flow = self._flow(write.function)
        return flow is not None and flow.combines(write)

    def keeps_extreme(self, write: Site) -> bool:
        """See `relations.Relations`."""
        flow = self._flow(write.function)
        return flow is not None and flow.keeps_extreme(write)

    def summed_lanes(self, write: Site) -> int:
        """See `relations.Relations`."""
        flow = self._flow(write.function)
        return flow.data.summed_lanes(write.ptx_line) if flow is not None else 0

    def exchanged(self, one: Site, other: Site) -> bool:
        """See `relations.Relations`."""
        pair = {site.access: site.ptx_line for site in (one, other)}
        flow = self._flow(one.function) if one.function == other.function and pair.keys() == {"read", "write"} else None
        if flow is None:
            return False
        known = self._exchanges.setdefault(one.function, Exchanges(flow.function))
        return known.order(pair["read"], pair["write"])

    def stores(self, access: Site) -> Stores | None:
        """See `relations.Relations`."""
        flow = self._flow(access.function)
        return flow.data.stores(access.ptx_line) if flow is not None and not flow.calls else None

    def variable(self, access: Site) -> str:
        """See `relations.Relations`."""
        flow = self._flow(access.function)
        return flow.data.variable(access.ptx_line) if flow is not None else ""

    def _undefined_values(self, entry: str) -> UndefinedValues | None:
        flow = self._flow(entry)
        if flow is not None and entry not in self._undefined:
            self._undefined[entry] = UndefinedValues(flow.module, flow.function, flow.data)
        return self._undefined.get(entry)

    @cached_property
    def _module(self) -> Module:
        return self._read()

    def _located(self, one: Site, other: Site) -> tuple[Flow, Vertices, Vertices] | None:
        flow = self._flow(one.function) if one.function == other.function else None
        if flow is None:
            return None
        vertices = flow.at(one), flow.at(other)
        return (flow, *vertices) if all(vertices) else None

    def _called(self, one: Site, other: Site) -> tuple[Flow, Vertices, Vertices] | None:
        """Accesses of two functions, at the calls of the only kernel that reach them."""
        entries = [f.name for f in self._module.functions if f.kind == "entry" and f.body is not None]
        flow = self._flow(entries[0]) if len(entries) == 1 and one.function != other.function else None
        vertices = (flow.at(one), flow.at(other)) if flow is not None else (set(), set())
        return (flow, *vertices) if flow is not None and all(vertices) else None

    def _flow(self, name: str) -> Flow | None:
        if name not in self._flows:
            function = next((f for f in self._module.functions if f.name == name and f.body is not None), None)
            self._flows[name] = Flow(self._module, function) if function and function.kind == "entry" else None
        return self._flows[name]
