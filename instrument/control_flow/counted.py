"""A graph whose nodes are copied by the values of counters: two counters of one loop that run together take no path on which they differ.

A counter is a 32-bit register that follows from constants by operations of `isa/words.py`, and on which a guard of a node depends. All else
is not known. A node that many values reach gets one more copy, in which none is known, so a loop without constant bounds ends, too.

Not handled: guards of single instructions, and counters of 16 or 64 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from consan.instrument.control_flow.graph import BasicBlock, Graph, PathStep
from consan.instrument.control_flow.registers import Key, key_of, keys_read, written
from consan.instrument.isa.words import of_words
from consan.instrument.ptx import Immediate, Instruction, Register

_COPIES: Final = 40  # of one node
_MOST: Final = 4000  # nodes of a graph
_BITS: Final = 0xFFFFFFFF
Values = frozenset[tuple[Key, int]]


def counted(graph: Graph) -> Graph | None:
    """The graph by its counters; None if it has none, or would be too large."""
    counters = _counters(graph)
    if not counters:
        return None
    numbers: dict[tuple[int, Values], int] = {}
    copies = [0] * len(graph.nodes)
    nodes: list[BasicBlock] = []

    def copy_of(node: int, values: Values) -> int:
        if (node, values) not in numbers:
            if copies[node] >= _COPIES:
                values = frozenset()
            if (node, values) not in numbers:
                copies[node] += 1
                numbers[node, values] = len(nodes)
                nodes.append(BasicBlock(graph.nodes[node].steps))
                pending.append((node, values))
        return numbers[node, values]

    pending: list[tuple[int, Values]] = []
    entries = tuple(copy_of(entry, frozenset()) for entry in graph.entries)
    while pending:
        node, values = pending.pop()
        _join(graph.nodes[node], nodes[numbers[node, values]], _after(graph.nodes[node], values, counters), copy_of)
        if len(nodes) > _MOST:
            return None
    return Graph(nodes, entries)


def _join(node: BasicBlock, made: BasicBlock, known: dict[Key, int], copy_of: Callable[[int, Values], int]) -> None:
    """The edges of a copy, without the one that its guard excludes."""
    values, guard = frozenset(known.items()), node.guard
    held = known.get(guard.register) if guard else None
    if guard is None or held is None or bool(held) == guard.value:
        made.taken = tuple(copy_of(each, values) for each in node.taken)
    if node.falls is not None and (guard is None or held is None or bool(held) != guard.value):
        made.falls = copy_of(node.falls, values)
    made.guard = guard if held is None else None


def _counters(graph: Graph) -> set[Key]:
    """The registers of the guards of nodes, and those from which they follow."""
    writers: dict[Key, list[PathStep]] = {}
    for step in graph.steps():
        for key in written(step.instruction):
            writers.setdefault(key, []).append(step)
    pending = [node.guard.register for node in graph.nodes if node.guard]
    found: set[Key] = set()
    while pending:
        key = pending.pop()
        ways = [step.instruction for step in writers.get(key, ()) if step.guard is None and of_words(step.instruction)]
        if key not in found and ways:
            found.add(key)
            pending += [each for way in ways for each in keys_read(way)]
    return found


def _after(node: BasicBlock, values: Values, counters: set[Key]) -> dict[Key, int]:
    """The values of the counters behind a node, as far as they are known."""
    known = dict(values)
    for step in node.steps:
        keys = [key for key in written(step.instruction) if key in counters]
        result = _result(step.instruction, known) if keys and step.guard is None else None
        for key in keys:
            if result is None or len(keys) > 1:
                known.pop(key, None)
            else:
                known[key] = result
    return known


def _result(instruction: Instruction, known: dict[Key, int]) -> int | None:
    """The result of an instruction; None if it is not known."""
    computed = of_words(instruction)
    given = [_value(operand, instruction, known) for operand in instruction.operands[1:]]
    return None if computed is None or None in given else int(computed(*given)) & _BITS


def _value(operand: object, instruction: Instruction, known: dict[Key, int]) -> int | None:
    if isinstance(operand, Immediate):
        return int(operand.value) & _BITS if operand.kind == "int" else None
    return known.get(key_of(instruction.scope, operand.name)) if isinstance(operand, Register) else None
