"""Forward and backward analyses over small graphs, against paths; marks, destinations and slices over the registers of a text."""

from __future__ import annotations

from collections.abc import Iterator

from graphs import ANY_TIME, LOOP, graphs, leads
from hypothesis import given, strategies as st

from consan.instrument.control_flow import Key, definitions, graph_of, key_of, read, written
from consan.instrument.control_flow.dataflow import Marks, destinations, forward, read_later, spread_marks, union
from consan.instrument.control_flow.paths import reached
from consan.instrument.control_flow.slices import backward_slice, forward_slice
from consan.instrument.ptx import Function, Instruction, parse

Graph = list[tuple[int, ...]]
Facts = frozenset[int]
FACTS = st.lists(st.frozensets(st.integers(0, 2)), min_size=8, max_size=8)


def _holds(edges: Graph, fact: int, makes: list[Facts], ends: list[Facts]) -> set[int]:
    """The nodes before which a fact may hold: a path leads there from one that makes it, and passes none that ends it."""
    makers = [node for node in reached(edges, (0,)) if fact in makes[node]]
    enders = {node for node in range(len(edges)) if fact in ends[node] and fact not in makes[node]}
    free = leads(edges, enders)
    return {node for node in range(len(edges)) if any(free[maker][node] for maker in makers)}


@ANY_TIME
@given(graphs(), FACTS, FACTS)
def test_what_may_hold(edges: Graph, makes: list[Facts], ends: list[Facts]) -> None:
    def join(known: Facts, more: Facts) -> Facts | None:
        return None if more <= known else known | more

    states = forward(edges, {0: Facts()}, lambda node, facts: (facts - ends[node]) | makes[node], join)
    assert states.keys() == reached(edges, (0,))
    for node, facts in states.items():
        assert facts == {fact for fact in range(3) if node in _holds(edges, fact, makes, ends)}


@ANY_TIME
@given(graphs(), FACTS, FACTS)
def test_what_holds_on_all_paths(edges: Graph, makes: list[Facts], ends: list[Facts]) -> None:
    """It is what may not fail to hold: the start fails to, and so does what is behind a node that ends it."""

    def join(known: Facts, more: Facts) -> Facts | None:
        return None if known <= more else known & more

    states = forward(edges, {0: Facts()}, lambda node, facts: (facts | makes[node]) - ends[node], join)
    for node, facts in states.items():
        for fact in range(3):
            keep = {each for each in range(len(edges)) if fact in makes[each] and fact not in ends[each]}
            enders = [each for each in reached(edges, (0,)) if fact in ends[each]]
            free = leads(edges, keep)
            fails = node == 0 or any(free[ender][node] for ender in enders) or (0 not in keep and free[0][node])
            assert (fact in facts) != fails


def test_a_node_from_which_no_thread_goes_on() -> None:
    states = forward(LOOP, {0: 1}, lambda node, state: None if node == 1 else state + 1, lambda known, more: None)
    assert states == {0: 1, 1: 2}


@ANY_TIME
@given(graphs(), FACTS, FACTS)
def test_what_is_read_later(edges: Graph, uses: list[Facts], makes: list[Facts]) -> None:
    keys = [[{(0, str(each)) for each in facts} for facts in some] for some in (uses, makes)]
    found = read_later(edges, *keys)
    for fact in range(3):
        free = leads(edges, {node for node in range(len(edges)) if fact in makes[node]})
        for node in range(len(edges)):
            later = any(free[node][other] and fact in uses[other] for other in range(len(edges)))
            assert ((0, str(fact)) in found[node]) == later


def _function(body: str) -> Function:
    head = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()"
    (function,) = parse(f"{head} {{ .reg .pred %p<5>; .reg .b32 %r<9>; {body} ret; }}", "k.ptx").functions
    return function


def _texts(instructions: list[Instruction]) -> set[str]:
    return {each.text for each in instructions}


def _keys(function: Function, *names: str) -> set[Key]:
    assert function.body is not None
    return {key_of(function.body, name) for name in names}


CHAIN = _function("mov.u32 %r1, 1; add.u32 %r2, %r1, 1; L: add.u32 %r3, %r3, %r2; mov.u32 %r4, 5; @%p1 bra L; st.shared.u32 [%r4], %r3;")


def _reads(instruction: Instruction) -> Iterator[Key]:
    return (key_of(instruction.scope, name) for name in read(instruction))


def test_a_backward_slice() -> None:
    found = backward_slice(definitions(CHAIN), _keys(CHAIN, "%r3"), _reads)
    assert _texts(found) == {"mov.u32 %r1, 1;", "add.u32 %r2, %r1, 1;", "add.u32 %r3, %r3, %r2;"}


def test_a_forward_slice() -> None:
    instructions = list(CHAIN.instructions())
    found = forward_slice(instructions, _keys(CHAIN, "%r1"), lambda each, found: not found.isdisjoint(_reads(each)))
    assert found == _keys(CHAIN, "%r1", "%r2", "%r3")


def test_where_values_go() -> None:
    """The result of an instruction goes where its operands go; a store has a bit for its address and one for its value."""

    def used(instruction: Instruction, goes: dict[Key, int]) -> Iterator[tuple[Key, int]]:
        if instruction.parts[0] == "st":
            yield key_of(instruction.scope, "%r4"), 1
            yield key_of(instruction.scope, "%r3"), 2
        else:
            yield from ((key, union(goes, written(instruction))) for key in _reads(instruction))

    goes = destinations(CHAIN, used)
    assert {name: union(goes, tuple(_keys(CHAIN, name))) for name in ("%r1", "%r2", "%r3", "%r4", "%p1")} == {
        "%r1": 2,
        "%r2": 2,
        "%r3": 2,
        "%r4": 1,
        "%p1": 0,
    }


def test_marks_are_joined_in_a_loop() -> None:
    """A load in a loop is looked at by the instruction before it, too: in the next iteration."""
    function = _function("L: add.u32 %r2, %r1, 1; ld.shared.u32 %r1, [%r3]; @%p1 bra L; add.u32 %r4, %r1, 1;")
    instructions = list(function.instructions())

    def through(instruction: Instruction, marks: Marks) -> Iterator[int]:
        if instruction.parts[0] == "ld":
            marks[7] = frozenset(written(instruction))
        elif marks.get(7, frozenset()) & set(_reads(instruction)):
            yield 7

    assert spread_marks(graph_of(function), through) == {instructions[0].start: [7], instructions[3].start: [7]}
