"""A kernel as the proof reads it: its nodes, cut behind each barrier of the CTA or of all lanes of a warp, and what is not modelled.

Other synchronisation (fences, named barriers, flags) is passed over: it only orders more. phases/warps.py has barriers of warps.
An instruction whose accesses are not those of the executing thread at addresses of the text has no proof.

Calls are passed over where no function of the module, whichever is called, does anything but compute; they may load where nobody writes.
Their results are not known. A call through a pointer is taken to reach a function of the module.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field, replace
from typing import Final

from consan.dataclass import dataclass
from consan.instrument.control_flow import BasicBlock, Graph, Key, PathStep, definitions, graph_of, is_unread, key_of, read, written
from consan.instrument.control_flow.dataflow import read_later
from consan.instrument.control_flow.slices import backward_slice
from consan.instrument.effects import BulkCommit, BulkWait, CopyCommit, CopyWait
from consan.instrument.isa import Row, lookup, observing, row_of
from consan.instrument.isa.roles import names
from consan.instrument.ptx import Function, Immediate, Instruction, Module, Register, Symbol, Variable
from consan.instrument.rewriting.matrix_operands import operands_in_memory
from consan.prove.atomics.broadcasts import broadcasts_of
from consan.prove.phases.counters import is_bulk_store, is_followed, measure_of

_OF_COPIES: Final = (CopyCommit, CopyWait, BulkCommit, BulkWait)
_ALL_LANES: Final = 0xFFFFFFFF
_OF_RUNTIME: Final = ("vprintf", "__assertfail")  # functions of CUDA's runtime that print what they are given


class Unproven(Exception):  # noqa: N818
    """There is no proof: why, and at which line of the PTX (0: at none)."""

    def __init__(self, why: str, line: int = 0) -> None:
        super().__init__(why)
        self.line = line


@dataclass(frozen=True)
class ProvedKernel:
    """The nodes of a kernel. `barriers`: those that end with a barrier of all threads of the CTA; `warp_barriers`: of all lanes of a warp.
    `live`: what a node's begin may need. `broadcasts`: loads of what the first thread has stored, each with that store.
    """

    graph: Graph
    barriers: frozenset[int]
    warp_barriers: frozenset[int]
    needed: frozenset[Key]
    live: tuple[frozenset[Key], ...]
    broadcasts: Mapping[int, Instruction] = field(default_factory=dict)

    def counting(self, counters: frozenset[Key]) -> ProvedKernel:
        """The same, with counters that all nodes may need."""
        return replace(self, live=tuple(each | counters for each in self.live), needed=self.needed | counters)


def has_strong_accesses(function: Function) -> bool:
    """Whether a kernel has accesses whose order matters beyond races, which a proof does not judge."""
    return any(map(is_strong, function.instructions()))


def sees_others(function: Function) -> bool:
    """Whether a thread may see, by a strong access, what others have done: a strong load, or an atomic, whose result something reads.

    Without one, strong writes in no order leave nothing to look for beyond races (SEMANTICS.md, R-MO1 and R-MO2).
    """
    return any(is_strong(each) and _observes(each) and not is_unread(function, each) for each in function.instructions())


def _observes(instruction: Instruction) -> bool:
    return observing.observes_strongly(instruction, row_of(instruction))


def is_observed(instruction: Instruction) -> bool:
    """Whether an instruction reads global memory that others may write meanwhile, without a race."""
    row = lookup(instruction.parts)
    touches = [] if row is None else row.accesses(instruction)
    return row is not None and observing.observes_strongly(instruction, row) and not any(each.in_shared for each in touches)


def is_strong(instruction: Instruction) -> bool:
    """Whether an instruction is a strong access of memory."""
    row = lookup(instruction.parts)
    return row is not None and (observing.observes_strongly(instruction, row) or observing.writes_strongly(instruction, row))


def kernel_of(function: Function, module: Module, threads: int) -> ProvedKernel:
    """Read a kernel. `threads`: of a CTA. Raises `Unproven`."""
    calls = [each for each in function.instructions() if (row := lookup(each.parts)) is not None and row.calls]
    if calls:
        _check_calls(calls, function, module)
    for instruction in function.instructions():
        if instruction not in calls:
            _check(instruction, threads)
    graph = _cut(graph_of(function), threads)
    ends = [(number, node.steps[-1].instruction) for number, node in enumerate(graph.nodes) if node.steps]
    barriers = frozenset(number for number, each in ends if is_barrier(each, threads))
    broadcasts = broadcasts_of(function, graph, barriers)
    needed = _needed(function, broadcasts)
    spread = {each.start for each in broadcasts.values()}
    uses, makes = zip(*(_reads(node, needed, spread) for node in graph.nodes), strict=True)
    later = read_later(graph.successors, uses, makes)
    live = tuple(frozenset(use | (after - make)) for use, make, after in zip(uses, makes, later, strict=True))
    warps = frozenset(number for number, each in ends if is_of_all_lanes(each))
    return ProvedKernel(graph, barriers, warps, needed, live, broadcasts)


def _check(instruction: Instruction, threads: int) -> None:
    row, line = lookup(instruction.parts), instruction.line
    if row is None or row.is_never_recorded or row.status == "in part" or not row.fits(instruction):
        raise Unproven(f"{instruction.opcode} is not modelled", line)
    known = row.is_steady or row.is_barrier or row.is_ordinary or row.is_matrix_access or row.is_mbarrier
    copies = row.is_copy or is_followed(instruction) or is_bulk_store(instruction)
    known |= copies or row.is_of_products or (row.is_of_groups and row.makes[0].kind in _OF_COPIES)
    if not known or row.may_be_late or row.calls:
        raise Unproven(f"{instruction.opcode} is not modelled", line)
    if row.is_cta_barrier:
        is_barrier(instruction, threads)


def calls_through_pointers(function: Function) -> bool:
    """Whether a kernel calls what a register says."""
    return any(row_of(each).calls and _callee(each) is None for each in function.instructions())


def _callee(call: Instruction) -> str | None:
    """The name of the function that a call is to; None: a register says which."""
    return next((each.name for each in call.operands if isinstance(each, Symbol)), None) if not _pointers(call) else None


def _pointers(call: Instruction) -> list[Register]:
    return [each for each in call.operands if isinstance(each, Register)]


def _check_calls(calls: list[Instruction], function: Function, module: Module) -> None:
    """Raise `Unproven` unless all functions of the module only compute, or only load where nobody writes."""
    bodies = {each.name: each for each in module.functions if each.kind != "entry" and each.body is not None}
    for call in calls:
        if (name := _callee(call)) is not None and name not in bodies and name not in _OF_RUNTIME:
            raise Unproven(f"{name} is called, and its text is not known", call.line)
    _check_parameters(function)
    writes = any(touch.writes and touch.is_visible for each in function.instructions() for touch in row_of(each).accesses(each))
    if not all(_only_computes(each, loads=not writes) for body in bodies.values() for each in body.instructions()):
        raise Unproven("a function that may be called does more than compute", calls[0].line)


def _check_parameters(function: Function) -> None:
    """Raise `Unproven` unless the parameters of calls have names of their own, and no register has the address of one."""
    inside = (each for each in function.body.walk() if isinstance(each, Variable)) if function.body is not None else ()
    own = {name.name for each in inside if each.space == "param" for name in each.names}
    for each in function.instructions():
        row = row_of(each)
        named = own.intersection(name for operand in each.operands for name in names(operand))
        if named and not (row.is_load or row.is_store or row.calls):
            raise Unproven("a register has the address of a parameter of a call", each.line)
    if shared := own.intersection(each.name for each in function.params):
        raise Unproven(f"{min(shared)} is a parameter of the kernel and one of a call")


def _only_computes(instruction: Instruction, *, loads: bool) -> bool:
    row = lookup(instruction.parts)
    if row is None or row.is_never_recorded or row.status == "in part" or not row.fits(instruction):
        return False
    visible = [each for each in row.accesses(instruction) if each.is_visible]
    known = row.is_arithmetic or row.is_of_addresses or row.is_ordinary or row.branches or row.returns
    return known and not (any(each.writes for each in visible) or (visible and not loads))


def is_barrier(instruction: Instruction, threads: int) -> bool:
    """Whether an instruction waits for all threads of the CTA at barrier 0. Raises `Unproven` if that is not known."""
    row = row_of(instruction)
    if not row.is_cta_barrier:
        return False
    operands = dict(zip(row.roles(instruction), instruction.operands, strict=True))
    name, count = operands["barrier"], operands.get("count")
    if not isinstance(name, Immediate):
        raise Unproven("the number of the barrier is in a register", instruction.line)
    if name.value != 0:
        return False
    if row.arrives_only or (count is not None and not (isinstance(count, Immediate) and count.value == threads)):
        raise Unproven("barrier 0 is one of a part of the threads", instruction.line)
    if instruction.predicate is not None:
        raise Unproven("the barrier has a guard", instruction.line)
    return True


def is_of_all_lanes(instruction: Instruction) -> bool:
    """Whether an instruction is a barrier of a warp that names all lanes."""
    if not row_of(instruction).is_warp_barrier:
        return False
    (mask,) = instruction.operands
    return instruction.predicate is None and isinstance(mask, Immediate) and int(mask.value) & _ALL_LANES == _ALL_LANES


def _cut(graph: Graph, threads: int) -> Graph:
    """The graph with a node's end behind each barrier."""
    pieces = [_pieces(node, threads) for node in graph.nodes]
    starts, total = [], 0
    for each in pieces:
        starts.append(total)
        total += len(each)
    nodes: list[BasicBlock] = []
    for node, parts in zip(graph.nodes, pieces, strict=True):
        for steps in parts[:-1]:
            nodes.append(BasicBlock(steps, falls=len(nodes) + 1))
        falls = None if node.falls is None else starts[node.falls]
        nodes.append(BasicBlock(parts[-1], node.guard, tuple(starts[each] for each in node.taken), falls))
    return Graph(nodes, tuple(starts[entry] for entry in graph.entries))


def _pieces(node: BasicBlock, threads: int) -> list[list[PathStep]]:
    pieces: list[list[PathStep]] = [[]]
    for step in node.steps:
        pieces[-1].append(step)
        if is_barrier(step.instruction, threads) or is_of_all_lanes(step.instruction):
            pieces.append([])
    return pieces


def _needed(function: Function, broadcasts: Mapping[int, Instruction]) -> frozenset[Key]:
    """The registers that addresses, guards and branches follow from."""
    made = definitions(function)
    seeds = [key for each in function.instructions() for key in _seeds(each)]

    def through(each: Instruction) -> list[Key]:
        return stored_by(broadcasts[each.start]) if each.start in broadcasts else sources(each)

    found = backward_slice(made, seeds, through)
    return frozenset([*seeds, *(key for each in found for key in (*written(each), *through(each)))])


def stored_by(store: Instruction) -> list[Key]:
    """The registers whose values a store writes."""
    return _keys(store, [name for each in store.operands[1:] for name in names(each)])


def _seeds(instruction: Instruction) -> list[Key]:
    row = row_of(instruction)
    wanted = [name for each in row.accesses(instruction) for name in names(each.address)]
    if row.turns:
        wanted += read(instruction)
    if row.is_product:
        wanted += [name for each in operands_in_memory(instruction) for name in names(each.descriptor)]
    if (row.is_mbarrier or row.is_bulk) and (measure := measure_of(instruction)) is not None:
        wanted += names(measure)
    if is_strong(instruction) and instruction.parts[-1][0] in "usb":
        wanted += read(instruction)
    return _keys(instruction, wanted)


def sources(instruction: Instruction) -> list[Key]:
    """The registers that a result follows from, where a rule may know it."""
    row: Row = row_of(instruction)
    return _keys(instruction, list(read(instruction)) if row.is_arithmetic or row.is_of_addresses else [])


def _keys(instruction: Instruction, wanted: list[str]) -> list[Key]:
    guard = instruction.predicate
    wanted = [*wanted, *(() if guard is None else (guard.register,))]
    return [key_of(instruction.scope, name) for name in wanted if instruction.scope.is_register(name)]


def _reads(node: BasicBlock, needed: frozenset[Key], spread: Collection[int]) -> tuple[set[Key], set[Key]]:
    """The registers that a node reads before it writes them, and those that it writes in any case. `spread`: stores that are broadcast."""
    uses, makes = set[Key](), set[Key]()
    for step in node.steps:
        more = stored_by(step.instruction) if step.instruction.start in spread else ()
        uses |= {*sources(step.instruction), *_seeds(step.instruction), *more} - makes
        own = set(written(step.instruction))
        if step.guard is None:
            makes |= own
        else:
            uses |= own - makes  # where the guard does not hold, the value before it stays
    return uses & needed, makes
