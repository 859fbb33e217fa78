"""Which waits only wait (ISA "mbarrier.test_wait, mbarrier.try_wait"): the loops for which a deadlock can be proven (R-M7).

A failed wait may be a test after which the thread goes on to signal what others wait for. It counts as a wait only if, given that it
fails, every path leads back to it and has no effect on the way. Paths are followed with the values that the failure determines, because
compilers move the predicate into a register and back. Both sides of any other branch are followed.

Not recognised, so left to the watchdog: loops with an exit that does not depend on the barrier (a limit of tries), loops that wait for
several barriers or call a function, and loops that keep the result in memory (code compiled without optimisation).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from consan.instrument.control_flow import Graph, Key, PathStep, graph_of, key_of, written
from consan.instrument.isa import lookup, row_of
from consan.instrument.ptx import Function, Immediate, Instruction, Operand, Register, Symbol

_LIMIT = 4000  # limit of steps followed for one wait
_MASK = (1 << 64) - 1
_FALSE, _TRUE = 0, 1

Known = dict[Key, int]
Modifiers = Mapping[str, str]
Values = list[int | None]
_Place = tuple[int, int]


def pure_waits(function: Function, waits: Iterable[Instruction]) -> set[int]:
    """The `start` of those waits of a function to which a thread returns without any effect if they fail."""
    return set(failed_polls(function, waits))


def failed_polls(function: Function, waits: Iterable[Instruction]) -> dict[int, set[int]]:
    """The pure waits, and the instructions that a thread may pass from a failed one back to it: the `start` of each."""
    wanted = list(waits)
    if not wanted:
        return {}
    graph = graph_of(function)
    places = {id(step.instruction): (number, index) for number, node in enumerate(graph.nodes) for index, step in enumerate(node.steps)}
    found = {wait.start: _passed(graph, wait, places[id(wait)]) for wait in wanted}
    return {start: passed for start, passed in found.items() if passed is not None}


def _passed(graph: Graph, wait: Instruction, place: _Place) -> set[int] | None:
    """The instructions between a failed wait and its repetition; None if the thread does not come back, or has an effect before."""
    failed: Known = {_key(wait, wait.operands[0]): _FALSE} if isinstance(wait.operands[0], (Register, Symbol)) else {}
    pending = list(_following(graph, place, failed))
    seen: set[tuple[_Place, frozenset[tuple[Key, int]]]] = set()
    returned = False
    while pending:
        at, known = pending.pop()
        if at == place:
            returned = True
            continue
        state = (at, frozenset(known.items()))
        if state in seen:
            continue
        seen.add(state)
        step = graph.nodes[at[0]].steps[at[1]]
        if len(seen) > _LIMIT or not _harmless(step, known):
            return None
        pending += _following(graph, at, _after(step, known))
    return {graph.nodes[number].steps[index].instruction.start for (number, index), _ in seen} if returned else None


def _following(graph: Graph, place: _Place, known: Known) -> Iterator[tuple[_Place, Known]]:
    """The possible next steps. The end of the function is a missing step; `_harmless` has excluded the steps that lead there."""
    number, index = place
    node = graph.nodes[number]
    if index + 1 < len(node.steps):
        yield (number, index + 1), known
        return
    runs = _runs(node.steps[index], known) if node.steps and node.taken else None
    for target in node.taken if runs is not False else ():
        yield from _first(graph, target, known)
    if node.falls is not None and (runs is not True or not node.taken):
        yield from _first(graph, node.falls, known)


def _first(graph: Graph, number: int, known: Known) -> Iterator[tuple[_Place, Known]]:
    """The first step of a node, or of the next node that has steps."""
    while not graph.nodes[number].steps:
        falls = graph.nodes[number].falls
        if falls is None:
            return
        number = falls
    yield (number, 0), known


def _runs(step: PathStep, known: Known) -> bool | None:
    """Whether the guard is true; None if unknown."""
    if step.guard is None:
        return True
    value = known.get(step.guard.register)
    return None if value is None else bool(value) == step.guard.value


def _harmless(step: PathStep, known: Known) -> bool:
    """Whether a thread that passes the step has had no effect yet, and will reach another step."""
    instruction = step.instruction
    if _runs(step, known) is False:
        return True
    row = row_of(instruction)
    return row.branches or row.sleeps or row.is_harmless


def _after(step: PathStep, known: Known) -> Known:
    runs = _runs(step, known)
    if runs is False or row_of(step.instruction).branches:
        return known
    result = _value(step.instruction, known) if runs else None
    after = dict(known)
    for key in written(step.instruction):
        after.pop(key, None)
        if result is not None:
            after[key] = result
    return after


def _key(instruction: Instruction, operand: Register | Symbol) -> Key:
    return key_of(instruction.scope, operand.name)


def _known(instruction: Instruction, operand: Operand, known: Known) -> int | None:
    if isinstance(operand, Immediate):
        return int(operand.value) & _MASK if operand.kind == "int" else None
    return known.get(_key(instruction, operand)) if isinstance(operand, (Register, Symbol)) else None


def _value(instruction: Instruction, known: Known) -> int | None:
    """The result of an instruction with known operands, for the instructions that compilers put between a predicate and a branch."""
    row, operands = lookup(instruction.parts), instruction.operands
    if row is None or row.name not in _RESULTS or not operands or not isinstance(operands[0], (Register, Symbol)):
        return None
    values = [_known(instruction, operand, known) for operand in operands[1:]]
    return _RESULTS[row.name](row.modifiers(instruction.parts), values)


def _selected(_modifiers: Modifiers, values: Values) -> int | None:
    chosen = values[2]
    return None if chosen is None else values[0] if chosen else values[1]


def _moved(_modifiers: Modifiers, values: Values) -> int | None:
    return values[0] if len(values) == 1 else None


def _converted(modifiers: Modifiers, values: Values) -> int | None:
    """A truth value is the same in every type."""
    return _moved(modifiers, values) if values[0] in (_FALSE, _TRUE) else None


def _inverted(modifiers: Modifiers, values: Values) -> int | None:
    return _TRUE - values[0] if modifiers["type"] == "pred" and values[0] is not None else None


def _compared(modifiers: Modifiers, values: Values) -> int | None:
    if len(values) != 2 or None in values or modifiers["CmpOp"] not in ("eq", "ne") or set(modifiers) != {"CmpOp", "type"}:
        return None
    return int((values[0] == values[1]) == (modifiers["CmpOp"] == "eq"))


def _combined(operation: Callable[[int, int], int]) -> Callable[[Modifiers, Values], int | None]:
    def result(_modifiers: Modifiers, values: Values) -> int | None:
        given = [value for value in values if value is not None]
        return operation(*given) if len(given) == len(values) == 2 else None

    return result


_RESULTS: Final[dict[str, Callable[[Modifiers, Values], int | None]]] = {
    "selp": _selected,
    "mov": _moved,
    "cvt": _converted,
    "not": _inverted,
    "setp": _compared,
    "and": _combined(operator.and_),
    "or": _combined(operator.or_),
    "xor": _combined(operator.xor),
}
