"""The graph by its counters has each path that an execution takes, and not those that no execution takes."""

from __future__ import annotations

import random

import pytest

from consan.instrument.control_flow.counted import counted
from consan.instrument.control_flow.graph import Graph, graph_of
from consan.instrument.ptx import Immediate, Instruction, parse

HEADER = ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{\n.reg .pred %p<9>; .reg .b32 %r<9>;\n"
OPERATIONS = ("mov.b32 %r{0}, {3};", "add.s32 %r{0}, %r{1}, {3};", "xor.b32 %r{0}, %r{1}, %r{2};", "sub.u32 %r{0}, %r{1}, {3};",
              "selp.b32 %r{0}, %r{1}, {3}, %p{2};", "setp.lt.s32 %p{0}, %r{1}, {3};", "setp.ge.u32 %p{0}, %r{1}, {3};",
              "setp.ne.b32 %p{0}, %r{1}, %r{2};", "mov.u32 %r{0}, %tid.x;",
              "@%p{1} mov.b32 %r{0}, {3};", "mul.lo.u32 %r{0}, %r{1}, 3;")  # fmt: skip


def program(seed: int) -> str:
    """Blocks that end in a branch to any of them; the last one returns. Every other program begins with constants."""
    chosen, blocks = random.Random(seed), []
    for number in range(5):
        lines = (each.format(*(chosen.randrange(4) for _ in range(3)), chosen.randrange(-2, 5)) for each in chosen.choices(OPERATIONS, k=4))
        blocks.append(f"B{number}: {' '.join(lines)} @{chosen.choice(['', '!'])}%p{chosen.randrange(4)} bra B{chosen.randrange(6)};")
    first = " ".join(f"mov.b32 %r{n}, {chosen.randrange(4)}; setp.ne.b32 %p{n}, %r{n}, 1;" for n in range(4)) if seed % 2 else ""
    return HEADER + first + "\n".join(blocks) + "\nB5: ret;\n}\n"


def ran(instruction: Instruction, held: dict[str, int]) -> int:
    """The result, computed from the text."""
    name, *words = instruction.parts
    values = [each.value if isinstance(each, Immediate) else held.get(each.text, 0) for each in instruction.operands[1:]]
    if name == "setp" and words[-1] != "s32":
        values = [int(each) & 0xFFFFFFFF for each in values]
    if name == "setp" and words[-1] == "s32":
        values = [(int(each) + (1 << 31)) % (1 << 32) - (1 << 31) for each in values]
    a, b, c = [*map(int, values), 0, 0][:3]
    found = {"mov": a, "add": a + b, "xor": a ^ b, "sub": a - b, "selp": a if c else b, "mul": a * b}
    return int({"lt": a < b, "ge": a >= b, "ne": a != b}[words[0]]) if name == "setp" else found[name] & 0xFFFFFFFF


def walk(graph: Graph, by_counters: Graph, steps: int, start: dict[str, int]) -> int:
    """Execute, and follow the same edges in the other graph. Returns the nodes that were passed."""
    held, node, copies = dict(start), graph.entries[0], set(by_counters.entries)
    for passed in range(steps):
        for step in graph.nodes[node].steps:
            instruction, guard = step.instruction, step.guard
            if instruction.parts[0] in ("mov", "add", "xor", "sub", "selp", "mul", "setp") and (
                guard is None or bool(held.get(guard.register[1], 0)) == guard.value
            ):
                held[instruction.operands[0].text] = ran(instruction, held)
        block = graph.nodes[node]
        if not block.successors:
            return passed
        jumps = bool(block.taken) and (block.guard is None or bool(held.get(block.guard.register[1], 0)) == block.guard.value)
        following = block.taken[0] if jumps else block.falls
        assert following is not None
        steps_there = graph.nodes[following].steps
        made = (by_counters.nodes[each].taken if jumps else (by_counters.nodes[each].falls,) for each in copies)
        copies = {each for found in made for each in found if each is not None and by_counters.nodes[each].steps is steps_there}
        assert copies, "an execution takes an edge that is not there"
        node = following
    return steps


@pytest.mark.parametrize("part", range(4))
def test_executions_stay_in_the_graph(part: int) -> None:
    made = 0
    for seed in range(part * 100, part * 100 + 100):
        graph = graph_of(parse(program(seed)).functions[0])
        by_counters = counted(graph)
        if by_counters is not None:
            made += 1
            walk(graph, by_counters, 60, {"%tid.x": seed % 7, **{f"%r{n}": seed >> n & 3 for n in range(4)}})
    assert made > 50


@pytest.mark.parametrize(("last", "nodes"), [("9", 10), ("%r3", 0)])
def test_turns_of_a_loop_are_counted_if_they_are_constant(last: str, nodes: int) -> None:
    text = f"{HEADER}mov.b32 %r1, 0;\nLOOP: add.s32 %r1, %r1, 1; setp.le.s32 %p1, %r1, {last}; @%p1 bra LOOP;\nret;\n}}\n"
    graph = graph_of(parse(text).functions[0])
    made = counted(graph)
    assert made is not None
    turns = sum(node.steps is graph.nodes[1].steps for node in made.nodes)
    assert turns == nodes or (not nodes and turns == 41)
