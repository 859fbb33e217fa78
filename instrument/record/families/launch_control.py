"""The recording of cluster launch control (ISA "clusterlaunchcontrol.try_cancel", "clusterlaunchcontrol.query_cancel").

The response is opaque: whether it is a refusal is asked by the instruction that the ISA has for it, also where the kernel asks for the id
only. An id counts as used where an instruction may show it: a memory access or a branch that depends on it. Arithmetic passes it on, since
compilers compute ahead; a selection ends it (`selp`, or predicates joined), because it may be by `is_canceled`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from consan.instrument.control_flow import Graph, Key, key_of, read, written
from consan.instrument.control_flow.dataflow import Marks, spread_marks
from consan.instrument.effects import NO_WORD, WordValue
from consan.instrument.effects.kinds import LaunchAnswer, LaunchUse
from consan.instrument.effects.makes import Makes
from consan.instrument.isa import Row, is_of_predicates, row_of
from consan.instrument.ptx import Instruction, Register
from consan.instrument.rewriting.context import FunctionPlan, Work, operand_of
from consan.instrument.rewriting.emit import Snippet, Unsupported, guard_text, predicate_of

if TYPE_CHECKING:
    from consan.instrument.record.recorder import FunctionRecorder

_SELECTS = ("selp", "slct")
_JOINS = ("and", "or")  # of predicates; of words they are arithmetic, as in the address tile * 64 | lane


def add_answer(kernel: FunctionRecorder, work: Work, made: Makes) -> None:
    """After a query: whether the response names a cluster."""
    instruction, block, snippet = work.instruction, kernel.open_block(), Snippet()
    guard = kernel.guard(block, instruction)
    number = instruction.start if instruction.start in kernel.facts.queries else 0
    decision, given = snippet.register("pred"), snippet.register("b32")
    snippet.add(f"setp.ne.u32 {decision}, 0, 0;")
    if number:
        response = operand_of(work, "src")
        if not isinstance(response, Register):
            raise Unsupported(f"{instruction.opcode}: {response!r}")
        snippet.add(f"{guard_text(instruction)}clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 {decision}, {response.name};")
    else:
        result = operand_of(work, "dst")
        assert result is not None
        snippet.add(f"{guard_text(instruction)}mov.pred {decision}, {predicate_of(result)[0]};")
    snippet.add(f"selp.b32 {given}, 1, 0, {decision};")
    word, code = block.hashed(given, snippet)
    kernel.pending += code
    site = kernel.context.site(kernel.plan, work, "none", "none", 0).number
    block.add(LaunchAnswer(site=site, guard=guard, cancelled=WordValue(0, word), query=number))


def add_use(kernel: FunctionRecorder, instruction: Instruction, query: int) -> None:
    """An instruction shows the id that a query gave."""
    block = kernel.open_block()
    guard = kernel.guard(block, instruction) if not row_of(instruction).flow else NO_WORD
    site = kernel.site_of(instruction)
    block.add(LaunchUse(site=site, guard=guard, query=query))


def queries_of(plan: FunctionPlan) -> set[int]:
    """The queries for an id. The number of a query is its own start."""
    answers = ((work.instruction.start, made) for work in plan.work for made in work.row.makes if made.kind is LaunchAnswer)
    return {start for start, made in answers if not made.operands}


def shown(graph: Graph, queries: set[int]) -> dict[int, list[int]]:
    """The queries whose id an instruction shows, by its start."""

    def through(instruction: Instruction, marks: Marks) -> Iterator[int]:
        if instruction.start in queries:
            marks[instruction.start] = frozenset(written(instruction))
        elif marks:
            yield from _passed_on(instruction, marks)

    return spread_marks(graph, through)


def selects(instruction: Instruction, row: Row | None) -> bool:
    """Whether an instruction chooses between values, or joins predicates."""
    if row is None or row.name not in _JOINS:
        return row is not None and row.name in _SELECTS
    return is_of_predicates(instruction)


def _passed_on(instruction: Instruction, marks: Marks) -> Iterator[int]:
    """Change a marks by an instruction that is no query; yields the queries whose id it shows."""
    row, writes, guard = row_of(instruction), frozenset(written(instruction)), instruction.predicate
    names = set(read(instruction))
    operands = names - ({guard.register} if guard is not None else set())
    passes = row.is_arithmetic and not selects(instruction, row)
    shows = row.is_ordinary or row.is_bulk or row.is_of_tensor_memory or bool(row.flow)
    for query, registers in list(marks.items()):
        if shows and registers & _keys(instruction, names):
            yield query
        kept = registers if guard is not None else registers - writes
        marks[query] = kept | writes if passes and registers & _keys(instruction, operands) else kept


def _keys(instruction: Instruction, names: set[str]) -> set[Key]:
    return {key_of(instruction.scope, name) for name in names}
