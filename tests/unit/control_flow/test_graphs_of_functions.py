"""The blocks of a function's text, and walks from instruction to instruction."""

from __future__ import annotations

import pytest

from consan.instrument.control_flow import Graph, graph_of, written
from consan.instrument.control_flow.places import instructions_of, places_reached
from consan.instrument.ptx import Instruction, parse


def _graph(body: str) -> Graph:
    head = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()"
    (function,) = parse(f"{head} {{ .reg .pred %p<5>; .reg .b32 %r<9>; {body} }}", "k.ptx").functions
    return graph_of(function)


ADD, SET = "add.u32 %r1, %r1, 1;", "setp.eq.u32 %p1, %r1, 0;"
SHAPES = {
    "a line": (f"{ADD} {SET} ret;", [(), ()], {0, 1}),
    "a branch": (f"{SET} @%p1 bra L; {ADD} L: ret;", [(2, 1), (2,), (), ()], {2, 3}),
    "a loop": (f"L: {ADD} {SET} @%p1 bra L; ret;", [(0, 1), (), ()], {1, 2}),
    "a way out of the middle": (f"{SET} @%p1 exit; {ADD} ret;", [(1,), (), ()], {0, 1, 2}),
    "a trap": (f"{SET} @%p1 bra L; trap; L: ret;", [(2, 1), (), (), ()], {2, 3}),
    "a table": (f"T: .branchtargets A, B; brx.idx %r1, T; A: {ADD} B: ret;", [(1, 2), (2,), (), ()], {2, 3}),
    "an address that no table has": ("brx.idx %r1, T; A: ret;", [(), (), ()], {0, 1, 2}),
    "no way there": (f"bra L; {ADD} L: ret;", [(2,), (2,), (), ()], {2, 3}),
    "two entries of a loop": (f"{SET} @%p1 bra B; A: {ADD} B: {SET} @%p1 bra A; ret;", [(2, 1), (2,), (1, 3), (), ()], {3, 4}),
    "no end": (f"L: {ADD} bra L;", [(0,), ()], {1}),
}


@pytest.mark.parametrize(("body", "successors", "leaving"), SHAPES.values(), ids=SHAPES)
def test_edges(body: str, successors: list[tuple[int, ...]], leaving: set[int]) -> None:
    graph = _graph(body)
    assert graph.successors == successors
    assert {number for number, node in enumerate(graph.nodes) if node.may_leave} == leaving
    for number, before in enumerate(graph.predecessors):
        assert before == [other for other, targets in enumerate(successors) if number in targets]


def test_a_label_belongs_to_its_block() -> None:
    graph = _graph(f"{{ @%p1 bra L; {ADD} L: }} {{ @%p1 bra L; {ADD} L: }} L: ret;")
    assert graph.successors[0] == (2, 1)
    assert graph.successors[2] == (4, 3), "not the first block's label, and not the function's"


def test_registers_of_two_scopes_with_one_name_are_two() -> None:
    graph = _graph(f"{{ .reg .b32 %t; {ADD.replace('%r1', '%t')} }} {{ .reg .b32 %t; {ADD.replace('%r1', '%t')} }} ret;")
    assert len({written(step.instruction) for step in graph.nodes[0].steps[:2]}) == 2


def test_guards() -> None:
    guards = _graph(f"@%p1 {ADD} @!%p1 {ADD} ret;").nodes[0].steps
    assert [(step.guard.register[1], step.guard.value) for step in guards if step.guard] == [("%p1", True), ("%p1", False)]


def test_what_a_node_leads_to() -> None:
    graph = _graph(f"L: {ADD} @%p1 bra L; {SET} @%p1 bra M; {ADD} M: ret;")
    assert graph.behind(0) == {0, 1, 2, 3}
    assert [graph.repeats(number) for number in range(4)] == [True, False, False, False]
    assert graph.leading_to([2]) == {0, 1, 2}
    assert graph.post_dominators.control_dependence[2] == {1}


def test_a_walk_stops_at_an_instruction_and_comes_round_a_loop() -> None:
    graph = _graph(f"L: {ADD} bar.sync 0; {SET} @%p1 bra L; {ADD} ret;")

    def is_barrier(instruction: Instruction) -> bool:
        return instruction.parts[0] == "bar"

    def places(*start: int) -> set[tuple[int, int]]:
        return set(places_reached(instructions_of(graph), graph.successors, [(start[0], start[1])], is_barrier))

    assert places(0, 0) == {(0, 0), (0, 1)}
    assert places(0, 2) == {(0, 2), (0, 3), (0, 0), (0, 1), (1, 0), (1, 1)}
    assert places(1, 0) == {(1, 0), (1, 1)}
