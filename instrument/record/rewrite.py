"""The recording pass over a module: it walks each kernel, and each device function that has events, once, in the order of the text.

A block of the log ends where control may diverge: at a label, a branch, a call, an exit, and after an instruction that may wait (a
barrier, a warp-synchronous instruction).
Words are stored before the instruction that they describe, because it may overwrite its own operands.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any

from consan.instrument.isa import flow_of, has_action, lookup
from consan.instrument.passes.analyse import external_calls, plan_functions
from consan.instrument.passes.context import Context, FunctionPlan, Work
from consan.instrument.passes.emit import Unsupported
from consan.instrument.passes.flow import CONTROL, Graph, Key, definitions, graph_of, written
from consan.instrument.passes.points import Join, Point, find_points
from consan.instrument.passes.registers import is_debug
from consan.instrument.passes.static import static_findings
from consan.instrument.passes.variables import shared_variables
from consan.instrument.ptx import Edits, Instruction, Label, Module, Operand, parse
from consan.instrument.record import (
    accesses,
    bulk,
    clusters,
    copies,
    functions,
    global_memory,
    launch_control,
    matrix,
    mbarriers,
    seals,
    sides,
    tensor_memory,
    text,
)
from consan.instrument.record.cuts import can_idle, cut_nodes, longest_path
from consan.instrument.record.global_memory import Mode
from consan.instrument.record.header import header
from consan.instrument.record.leaving import Leaving
from consan.instrument.record.recorded import Recorded, Refusal
from consan.instrument.record.takes import polls_shared, recorded_sides, refusal
from consan.instrument.record.templates import Event, Flag, Template, TemplateEvent
from consan.instrument.record.words import Words
from consan.instrument.runtime import RuntimeLibrary, Variant

_DEPARTURES = frozenset({"return", "exit"})
_BREAKS = CONTROL | {"call"}
_HANDLERS = (
    accesses.HANDLERS
    | copies.HANDLERS
    | bulk.HANDLERS
    | matrix.HANDLERS
    | clusters.HANDLERS
    | tensor_memory.HANDLERS
    | launch_control.HANDLERS
)
_BLOCKING = accesses.BARRIERS | {"cluster-barrier"}


def record(source: str | Module, name: str = "<ptx>", *, outer: bool = False, isa: bool = False, leaves: bool = False) -> Recorded:
    """Rewrite a module. Raises `Refusal` where it has something that is not recorded yet.

    `outer`: global memory is checked too. `isa`: by the strict reading of the ISA.
    `leaves`: threads leave the kernel when the host stops its launch (leaving.py), and a block's number is stored behind its words. Else
    logs say where threads wait, for a backend that ends launches by itself. The templates do not depend on it.
    """
    module = parse(source, name) if isinstance(source, str) else source
    plans = plan_functions(module, recorded=True)
    shared = outer and (global_memory.synchronises(plans, ("shared", "generic")) or polls_shared(plans))
    mode = global_memory.mode_of(plans, shared=shared) if outer else Mode.OFF
    if reason := refusal(module, plans, mode, isa=isa):
        raise Refusal(reason)
    for plan in plans.values():
        plan.stats.shared = shared_variables(module, plan.function)
        plan.stats.families |= {work.row.family for work in plan.work}
    context = Context(module, Edits(module), Variant(), plans, RuntimeLibrary({}, {}))
    templates: list[Template] = []
    reads, writes = recorded_sides(plans)
    fences = mode is Mode.SYNCED or clusters.relaxes(plans.values())
    called = functions.recorded_functions(plans, reads, writes, mode)
    how: dict[str, Any] = {"reads": reads, "writes": writes, "fences": fences, "called": called, "leaves": leaves}
    how |= {"apart": functions.may_part(plans, called), "sealing": writes and not reads and not any(map(bulk.reads_global, plans.values()))}
    kernels = [KernelRewrite(context, plan, number, templates, **how) for number, plan in enumerate(context.entries())]
    kernels += [KernelRewrite(context, plan, -1, templates, **how) for name, plan in plans.items() if name in called]
    for kernel in kernels if outer else ():
        kernel.outer = global_memory.OuterRecorder(kernel, mode, shared=shared)
    try:
        words = max((kernel.rewrite() for kernel in kernels), default=1)
    except Unsupported as error:
        raise Refusal(str(error)) from None
    for kernel in kernels:
        kernel.cut(words)
    return Recorded(
        target=header(context),  # before the text is made
        ptx=context.edits.apply(),
        sites=tuple(context.sites),
        functions=tuple(plan.stats for plan in plans.values()),
        entries=tuple(plan.function.name for plan in context.entries()),
        templates=tuple(templates),
        words=words,
        calls=bool(called),
        loops=bool(called) or any(kernel.cuts for kernel in kernels),
        clusters=tuple(clusters.required(plan) for plan in context.entries()),
        lines=tuple(context.edits.line_map()),
        external=tuple(sorted(set().union(*(external_calls(plan, plans) for plan in plans.values()), set()))),
        hazards=static_findings(module, {family for plan in plans.values() for family in plan.stats.families}),
        debug=is_debug(module),
        mode=mode,
        isa=isa,
        leaves=leaves,
        silent=frozenset(kernel.plan.function.name for kernel in kernels if kernel.is_silent),
    )


@dataclass
class KernelRewrite:
    """One kernel or device function being rewritten; `templates`: of the module, so that block numbers are unique in it."""

    context: Context
    plan: FunctionPlan
    number: int
    templates: list[Template]
    block: Words | None = None
    graph: Graph = field(init=False)
    points: dict[int, Point] = field(default_factory=dict)  # by the start of their instruction
    joins: dict[tuple[int, bool], list[Join]] = field(default_factory=dict)  # by instruction, and whether the place is after it
    keys: dict[tuple[str, int], int] = field(default_factory=dict)  # of points with a mask: by opcode
    words: dict[int, int] = field(default_factory=dict)  # stored in each node
    cuts: set[int] = field(default_factory=set)
    loads: dict[int, int] = field(default_factory=dict)  # from tensor memory: their numbers by the start of their instruction
    completions: dict[int, list[int]] = field(default_factory=dict)  # the loads that an instruction completes, by its start
    queries: set[int] = field(default_factory=set)  # of launch control, for an id: the starts of their instructions
    shown: dict[int, list[int]] = field(default_factory=dict)  # the queries whose id an instruction shows, by its start
    pending: str = ""
    reads: bool = False  # loads from global memory can meet an asynchronous copy
    writes: bool = False  # writes to it can
    fences: bool = False  # fences are recorded
    called: frozenset[str] = frozenset()  # the device functions that are recorded
    apart: bool = False  # lanes of a warp may part in one of those
    departures: list[Instruction] = field(default_factory=list)  # where threads exit or return
    suspensions: list[Instruction] = field(default_factory=list)  # calls of these functions
    outer: global_memory.OuterRecorder | None = None  # where global memory is checked: then it records all of these accesses
    leaves: bool = False  # threads leave when the host stops the launch
    leaving: Leaving | None = None  # how they do
    sealing: bool = False  # of asynchronous copies with a side in global memory, the module has cp.async only
    seals: frozenset[int] = frozenset()  # by the start of their instruction

    @functools.cached_property
    def definitions(self) -> dict[Key, list[Instruction]]:
        """The instructions that write each register."""
        return definitions(self.plan.function)

    def rewrite(self) -> int:
        """Insert everything; returns the most words between two cuts."""
        body = self.plan.function.body
        assert body is not None
        self.graph = graph_of(self.plan.function)
        self.leaving = Leaving(self.plan) if self.leaves else None
        self._seal()
        self._find_points()
        self.completions = tensor_memory.completions(self)
        self.shown = launch_control.uses(self)
        # A kernel that deals out its registers has none left for the exchange of the values of stmatrix.
        self.is_tight = any(has_action(each, "special", "registers") for each in self.plan.function.instructions())
        works = {work.instruction.start: work for work in self.plan.work}
        nodes = {id(step.instruction): number for number, node in enumerate(self.graph.nodes) for step in node.steps}
        last: Instruction | None = None
        node = 0
        for statement in body.walk():
            if isinstance(statement, Label):
                self.context.edits.insert_before(statement, self.closed(node))
                last = None
            elif isinstance(statement, Instruction):
                node, last = nodes[id(statement)], statement
                self._instruction(statement, works.get(statement.start), node)
        self.cuts = cut_nodes(self.graph)
        if last is None or last.predicate is not None or flow_of(last) not in CONTROL:
            self.context.edits.insert_at(body.close, self.closed(node) + ("" if self.is_silent else self._end("return")))
        if not self.is_silent:
            for instruction in self.departures:
                self.context.edits.insert_before(instruction, self._departure(instruction, flow_of(instruction)))
            kept = self.outer.declarations() if self.outer is not None else ""
            self.context.edits.insert_at(body.open + 1, "\n" + self._prologue() + kept)
        return longest_path(self.graph, self.cuts, self.words) + 1

    @property
    def is_silent(self) -> bool:
        """Whether nothing is recorded of a kernel, and nobody needs to stop it: it has no loop, and a fault loses every record."""
        return self.leaves and self.plan.is_entry and not (self.words or self.cuts or self.suspensions)

    def _prologue(self) -> str:
        if not self.plan.is_entry:
            return text.function_prologue()
        return text.prologue(self.number) + (text.state() if self.suspensions else "")

    def _end(self, flow: str) -> str:
        """The text before a thread returns from here, or exits."""
        return text.suspend() if flow == "return" and not self.plan.is_entry else text.epilogue()

    def _seal(self) -> None:
        """Leave out what only matters while a cp.async is in flight, if none can be then."""
        if self.sealing and self.outer is None:
            self.seals = seals.seals_of(self.plan, self.graph)
            self.writes &= not self.seals

    def _find_points(self) -> None:
        points, joins = find_points(self.plan.function)
        any_open = any(point.open for point in points)
        self.plan.stats.open_points = sum(point.open for point in points)
        alone = self.apart or any(map(mbarriers.is_wait, self.plan.work))  # a lane may wait alone: the log must hold where lanes meet
        every = any_open or alone
        self.points = {point.instruction.start: point for point in points if every or not point.certain}
        for join in joins:
            self.joins.setdefault((join.instruction.start, join.after), []).append(join)

    def cut(self, words: int) -> None:
        """Insert the checks for room. `words`: the most between two cuts, and one."""
        for number in sorted(self.cuts):
            first = self.graph.nodes[number].steps[0].instruction
            idles = can_idle(self.graph, number, self._acts)
            plain = text.cut(words) + text.stop() * idles
            self.context.edits.insert_at(first.start, plain if self.leaving is None else self.leaving.cut(words, first, idles=idles))
        for call in self.suspensions:
            self.context.edits.insert_after(call, "\n" + text.resume() + text.cut(words))
        if not self.plan.is_entry:
            assert self.plan.function.body is not None
            self.context.edits.insert_at(self.plan.function.body.open + 1, text.cut(words))

    def _acts(self, node: int) -> bool:
        """Whether a thread that passes a node has an event, or a wait that it leaves at."""
        waits = self.leaving.waits if self.leaving is not None else set[int]()
        return bool(self.words.get(node)) or any(step.instruction.start in waits for step in self.graph.nodes[node].steps)

    def _instruction(self, instruction: Instruction, work: Work | None, node: int) -> None:
        self.pending = ""
        for join in self.joins.get((instruction.start, False), ()):
            self._join(join)
        for query in self.shown.get(instruction.start, ()):
            launch_control.add_use(self, instruction, query)
        self._events(instruction, work, node)
        flow = flow_of(instruction)
        if flow in _BREAKS or mbarriers.is_wait(work):
            self.pending += self.closed(node)
        if flow in _DEPARTURES:
            self.departures.append(instruction)
        if functions.is_recorded_call(instruction, self.called):
            self.suspensions.append(instruction)
            self.pending += text.suspend() + (text.suspend_limit() if self.plan.is_entry else "")
        if text_before := self.pending + (self.leaving.before_barrier(work) if self.leaving is not None else ""):
            self.context.edits.insert_before(instruction, text_before)
        if self.block is not None:
            self.block.written(written(instruction))
        self.pending = ""
        self._behind(instruction, work, node)
        for join in self.joins.get((instruction.start, True), ()):
            self._join(join)
        if self.pending:
            self.context.edits.insert_after(instruction, "\n" + self.pending)

    def _behind(self, instruction: Instruction, work: Work | None, node: int) -> None:
        """Events that an instruction makes once it has been executed."""
        if self.leaving is not None:
            self.pending += self.leaving.behind_barrier(work)
        if work is not None and mbarriers.is_wait(work):
            mbarriers.add_wait(self, work, node)
        if work is not None and tensor_memory.is_alloc(work):
            tensor_memory.add_allocated(self, work)
        if work is not None and launch_control.is_query(work):
            launch_control.add_answer(self, work)
        for load in self.completions.get(instruction.start, ()):
            tensor_memory.add_completed(self, load)
        if self.outer is not None:
            self.pending += self.outer.after()

    def _events(self, instruction: Instruction, work: Work | None, node: int) -> None:
        point, family = self.points.get(instruction.start), work.row.family if work else ""
        if point is not None:
            self._point(point)
            if family == "stmatrix" and not self.is_tight:  # its values are exchanged between lanes: the log holds the point before that
                self.pending += self.closed(node) + self._stop()
        if self.outer is not None:
            self.outer.before(instruction, node)
        if work is not None and family in _HANDLERS:
            _HANDLERS[family](self, work)
        elif work is not None and family in mbarriers.FAMILIES and not mbarriers.is_wait(work):
            mbarriers.add(self, work)
        self.plan.stats.sync_sites += family == "fence"
        if self.outer is None and ((self.writes and sides.writes_global(instruction)) or (self.reads and sides.reads_global(instruction))):
            sides.add_access(self, instruction)
            self.plan.stats.memory_sites += family not in accesses.FAMILIES
        waits = family in _BLOCKING or tensor_memory.is_alloc(work)
        if point is not None or waits or (self.points and family == "wgmma"):  # it may never be left
            self.pending += self.closed(node) + self._stop()

    def _stop(self) -> str:
        return "" if self.leaves else text.stop()

    def open_block(self) -> Words:
        """The block that the walk is in; a new one if it is in none."""
        if self.block is None:
            self.block = Words(len(self.templates) + 1, clusters.window(self.context.module.target, self.context.module.version))
            self.templates.append(self.block.template)
            self.pending += self.block.header(late=self.leaves)
        return self.block

    def closed(self, node: int) -> str:
        """End the block, if there is one."""
        if self.block is None:
            return ""
        block, self.block = self.block, None
        words = block.template.words
        self.words[node] = self.words.get(node, 0) + words
        return (text.number(block.number) if self.leaves else "") + text.close(words)

    def _departure(self, instruction: Instruction, flow: str) -> str:
        predicate = instruction.predicate
        if predicate is None:
            return self._end(flow)
        skip, guard = f"$__consan_stay{instruction.start}", "" if predicate.negated else "!"
        return f"@{guard}{predicate.register} bra {skip};\n{self._end(flow)}{skip}:\n"

    # -- events ----------------------------------------------------------------------------------------------------------

    def _point(self, point: Point) -> None:
        instruction, block = point.instruction, self.open_block()
        guard = self.guard(block, instruction)
        site, members = self.site_of(instruction), point.members
        if members.mask is None:
            flags, key, (a, a_word) = Flag.WHOLE if members.whole else Flag.ALIGNED, site, (0xFFFFFFFF, -1)
        else:
            flags, (a, a_word) = Flag.MASKED, self.number_of(block, instruction, members.mask)
            key = self.keys.setdefault((instruction.opcode, 0), len(self.keys))
        block.add(TemplateEvent(Event.POINT, flags, site, offset=point.join, guard_word=guard, a=a, a_word=a_word, b=key))

    def _join(self, join: Join) -> None:
        site = self.site_of(join.shown)
        self.open_block().add(TemplateEvent(Event.JOIN, site=site, a=join.passes))

    def guard(self, block: Words, instruction: Instruction) -> int:
        """The word that says whether an instruction executes."""
        word, code = block.guard(instruction)
        self.pending += code
        return word

    def number_of(self, block: Words, instruction: Instruction, operand: Operand | None) -> tuple[int, int]:
        """The value of an operand, or its word."""
        if operand is None:
            raise Unsupported(f"{instruction.opcode} without an operand")
        value, word, code = block.number_word(instruction, operand)
        self.pending += code
        return value, word

    def site_of(self, instruction: Instruction) -> int:
        """The number of the site of an instruction that accesses nothing."""
        row = lookup(instruction.parts)
        return self.context.site_of(self.plan, instruction, row.family if row else "", "none", "none", 0).number
